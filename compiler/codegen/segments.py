"""Kernels of concat and pad: one loop nest for each input that is laid into the output, after a fill if there is one.

Inputs that are computed rather than stored are computed here, so a concat of activations needs no copies.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from hybridflow.compiler.codegen.elements import Elements, Place
from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Shape
from hybridflow.compiler.loops import space as spaces
from hybridflow.compiler.loops.index import Index, Ix, LoopVar
from hybridflow.compiler.loops.kernel import Kernel
from hybridflow.compiler.loops.operands import Reads


class Segments:
    """Writes the kernel of a SEGMENT node."""

    def __init__(
        self, e: Emitter, code: Code, kernel: Kernel, is_leaf: Callable[[Node], bool], pointers: dict[Node, str]
    ) -> None:
        self.e, self.code, self.kernel, self.is_leaf, self.pointers = e, code, kernel, is_leaf, pointers
        self.node = kernel.cluster.anchor
        self.places = {n: Place(pointers[n]) for n in kernel.inputs}

    def write(self) -> None:
        node = self.node
        types = tuple(n.type for n in node.inputs)
        for k, offsets, steps in node.op.segments(types, node.type, **node.attrs):
            if k is None:
                self._lay(None, node.shape, offsets, steps)
            else:
                self._lay(node.inputs[k], node.inputs[k].shape, offsets, steps)

    def _lay(self, source: Node | None, shape: Shape, offsets: tuple[int, ...], steps: tuple[int, ...]) -> None:
        if 0 in shape:
            return

        def target(space: spaces.Space) -> Ix:
            axes = Index(shape, linear=space.full).axes
            return Index(self.node.shape, axes=[ix * s + o for o, ix, s in zip(offsets, axes, steps)]).linear

        space = spaces.over(shape)
        accesses = [target(space)]
        if source is not None:
            reads = Reads(self.is_leaf)
            reads.follow(source, Index(shape, linear=space.full))
            accesses += [index.linear for _, index in reads.leaves] + reads.positions
        space = spaces.merged(space, accesses)
        width = self.e.target.lanes(32)
        if not space.vars:
            self._store(source, shape, space, target(space), None, {}, None)
            return
        last = space.vars[-1]
        counters: dict[LoopVar, Ref] = {}
        code = self.code
        with ExitStack() as stack:
            for var in space.vars[:-1]:
                counters[var] = stack.enter_context(code.loop(0, code.extent(var.extent))).index

            def at(i: Ref, mask: Val | None) -> None:
                counters[last] = i
                self._store(source, shape, space, target(space), last, counters, mask)

            code.vector_loop(0, code.extent(last.extent), width, at)

    def _store(
        self,
        source: Node | None,
        shape: Shape,
        space: spaces.Space,
        target: Ix,
        lane: LoopVar | None,
        counters: dict[LoopVar, Ref],
        mask: Val | None,
    ) -> None:
        elements = Elements(self.code, counters, lane, self.places, {}, mask)
        if source is None:
            value = self.e.const(self.node.attrs["value"], self.node.dtype)
        else:
            value = elements.value(source, Index(shape, linear=space.full))
        elements.store(value, self.pointers[self.node], target)
