"""Operands of kernels of their own: elements found through index maps, like those of fused loops.

The axes of an operand fall into parts, say batch, rows and depth, and the kernel asks for elements by their position in
each part.  What lies between the operand and memory (transposes, broadcasts, slices, windows, conversions, cheap
arithmetic, look-ups) is index arithmetic and the ops' own rules, and takes no memory.

A part is walked by loops of its own.  Usually it is one loop, whose counter is the position.  Where the way to memory
would divide that (the pixels of a window, heads that were moved), the loops are the digits of the division.  A range of
positions falls into runs along the innermost of them: divisions are done once for a run, not for an element.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from hybridflow.compiler.codegen.core.cost_model import instructions
from hybridflow.compiler.codegen.core.elements import Elements, Known, MemoryPlace, within
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.index.access_maps import AccessMaps
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, Quotient, Remainder, variable
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.index.permutations import digit
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.kernel import base
from hybridflow.compiler.loops.tuning import FAR
from hybridflow.compiler.ops import Kind

UNKNOWN = 4096  # what a symbolic extent is taken for when ways to read are compared

Loops = tuple[LoopVar, ...]


class Operand:
    """``node`` as a kernel reads it: ``parts`` are groups of its axes, and ``places`` has what lies in memory.

    ``loops`` has for each part at least one loop, ``accesses`` every position that is read in memory.
    """

    def __init__(
        self, code: KernelBuilder, node: Node, parts: Sequence[tuple[int, ...]], places: Mapping[Node, MemoryPlace]
    ) -> None:
        self.code, self.node, self.parts, self.places = code, node, tuple(parts), dict(places)
        loops = [
            tuple(LoopVar(f"{'abcdef'[p]}{axis}", node.shape[axis]) for axis in part)
            for p, part in enumerate(self.parts)
        ]
        accesses = self._accesses(loops)
        loops = [tuple(digit for var in part for digit in _digits(var, accesses)) for part in loops]
        accesses = self._accesses(loops)
        self.loops: tuple[Loops, ...] = tuple(_merge_loops(part, accesses) for part in loops)
        self.index = self._index(self.loops)
        self.accesses = self._accesses(self.loops)

    def _index(self, loops: Sequence[Loops]) -> Index:
        axes: list[IndexExpr] = [IndexExpr({})] * len(self.node.shape)
        for part, vars in zip(self.parts, loops):
            extents = tuple(self.node.shape[axis] for axis in part)
            position = Space(vars, (False,) * len(vars)).full
            for axis, ix in zip(part, Index(extents, linear=position).axes):
                axes[axis] = ix
        return Index(self.node.shape, axes=axes)

    def _accesses(self, loops: Sequence[Loops]) -> list[IndexExpr]:
        reads = AccessMaps(lambda node: node in self.places or node.is_parameter)
        reads.follow(self.node, self._index(loops))
        return list(dict.fromkeys([*(index.linear for _, index in reads.leaves), *reads.positions]))

    @property
    def dtype(self) -> np.dtype:
        return self.node.dtype

    def along(self, part: int) -> int:
        """About how many neighbours along a part lie side by side in memory, or are one element, in each access."""
        var = self.loops[part][-1]
        if not all(ix.coefficient(var) in (0, 1) for ix in self.accesses):
            return 1
        return var.extent if isinstance(var.extent, int) else UNKNOWN

    @property
    def in_memory(self) -> tuple[str, IndexExpr] | None:
        """The pointer and the position of an element that is read as it lies there; None where it is computed."""
        node = self.node
        while node not in self.places and node.op.kind is Kind.VIEW:
            node = node.inputs[0]
        place = self.places.get(node)
        return None if place is None or len(self.accesses) != 1 else (place.pointer, self.accesses[0])

    def collides(self, part: int) -> bool:
        """Whether positions of a part are so far apart in memory that a cache has room for the lines of few of them
        alone: they take each other's place."""
        place = self.in_memory
        if place is None or not place[1].is_affine:
            return False
        apart = place[1].coefficient(self.loops[part][-1])
        return isinstance(apart, int) and apart != 0 and apart * self.dtype.itemsize % (4 * FAR) == 0

    @functools.cached_property
    def work(self) -> int:
        """Instructions that an element takes, beyond reading it."""
        total, seen, stack = 0, set(self.places), [self.node]
        while stack:
            node = stack.pop()
            if node not in seen and not node.is_parameter:
                seen.add(node)
                total += instructions(node)
                stack += node.inputs
        return total

    @property
    def start(self) -> OperandAccess:
        return OperandAccess(self, {}, {})


class OperandAccess:
    """An operand with some of its counters set: what these add to positions was computed where this was made."""

    def __init__(self, operand: Operand, counters: Mapping[LoopVar, Ref], sums: Mapping[IndexExpr, Ref]) -> None:
        self.operand, self.counters, self.sums = operand, counters, sums
        self._known = Known(counters, sums)

    def with_(self, counters: Mapping[LoopVar, Ref]) -> OperandAccess:
        """With these counters set as well."""
        if not counters:
            return self
        known = {**self.counters, **counters}
        elements = Elements(self.operand.code, known, None, {}, {}, known=self._known)
        sums = {part: elements.ref(part) for part in (within(ix, known) for ix in self.operand.accesses) if part.terms}
        return OperandAccess(self.operand, known, sums)

    def opaque(self) -> OperandAccess:
        """The same, whose positions have nothing in common with those of others, for all that LLVM sees."""
        return OperandAccess(
            self.operand, self.counters, {ix: self.operand.code.opaque(r) for ix, r in self.sums.items()}
        )

    def at(self, part: int, position: Ref) -> OperandAccess:
        """With all counters of a part set, to those of a position."""
        return self.with_(self.counters_at(part, position))

    def counters_at(self, part: int, position: Ref) -> dict[LoopVar, Ref]:
        """The counters of a part at a position."""
        return counters_at(self.operand.code, self.operand.loops[part], position)

    @contextmanager
    def runs(self, part: int, begin: Ref, end: Ref) -> Iterator[tuple[dict[LoopVar, Ref], Ref, Ref, Ref]]:
        """The runs of the positions [begin, end) of a part: (outer counters, first, last, behind) for the turns
        [first, last) of the innermost loop; the position is the loop's counter plus ``behind``."""
        *outer, inner = self.operand.loops[part]
        if not outer:
            yield {}, begin, end, 0
            return
        code = self.operand.code
        extent = code.extent(inner.extent)
        with code.spans(begin, end, extent) as (line, first, last):
            yield counters_at(code, outer, line), first, last, code.mul(line, extent)

    def value(self, counters: Mapping[LoopVar, Ref], lane: LoopVar | None = None, mask: Val | None = None) -> Val:
        """The element there, or those of the emitter's lanes: neighbours along the loop ``lane``."""
        operand = self.operand
        known = {**self.counters, **counters}
        elements = Elements(operand.code, known, lane, operand.places, {}, mask, known=self._known)
        return elements.value(operand.node, operand.index)

    def address(self, pointer: str, position: IndexExpr, counters: Mapping[LoopVar, Ref]) -> str:
        """The address of an element that is read as it lies in memory (see ``Operand.in_memory``)."""
        operand = self.operand
        elements = Elements(operand.code, {**self.counters, **counters}, None, {}, {}, known=self._known)
        return operand.code.at(pointer, elements.ref(position), operand.dtype.itemsize)


class LinearOperand:
    """``node`` as a kernel reads it that goes by row-major positions: what lies between does not divide them."""

    def __init__(self, node: Node, places: Mapping[Node, MemoryPlace]) -> None:
        self.node, self.places = node, dict(places)
        self.var = LoopVar("position", product(node.shape))

    @property
    def in_memory(self) -> str | None:
        """Where the elements lie, in order; None where they are computed."""
        place = self.places.get(base(self.node))
        return place.pointer if place is not None else None

    def value(self, code: KernelBuilder, position: Ref, mask: Val | None = None) -> Val:
        """The elements from a position, one for each of the emitter's lanes."""
        reader = code.e.node
        elements = Elements(code, {self.var: position}, self.var, self.places, {}, mask)
        value = elements.value(self.node, Index(self.node.shape, linear=variable(self.var)))
        if reader is not None:
            code.e.at(reader)  # what follows is its code again
        return value


def counters_at(code: KernelBuilder, loops: Sequence[LoopVar], position: Ref) -> dict[LoopVar, Ref]:
    """The counters of nested loops in the turn of that number."""
    result, rest = {}, position
    for var in reversed(loops[1:]):
        extent = code.extent(var.extent)
        result[var] = code.rem(rest, extent)
        rest = code.div(rest, extent)
    if loops:
        result[loops[0]] = rest
    return result


def stride(code: KernelBuilder, position: IndexExpr, var: LoopVar) -> Ref:
    """How far apart neighbours along a loop lie, where they lie evenly."""
    return code.extent(position.strides.get(var, 0))


def _digits(var: LoopVar, accesses: Sequence[IndexExpr]) -> Loops:
    """The loops of the digits into which accesses divide a counter; the counter itself where these do not fit."""
    if not isinstance(var.extent, int):
        return (var,)
    steps = {1, var.extent}
    stack = [atom for ix in accesses for atom in ix.atoms]
    while stack:
        atom = stack.pop()
        if isinstance(atom, (Quotient, Remainder)):
            stack += atom.value.atoms
            split = digit(atom)
            if split is not None and split[0] is var:
                _, step, base = split
                if not isinstance(base, int):
                    return (var,)
                steps |= {step, step * base}
    bounds = sorted(steps)
    if bounds[0] < 1 or any(above % below for below, above in itertools.pairwise(bounds)):
        return (var,)
    extents = [above // below for below, above in itertools.pairwise(bounds)]
    if len(extents) < 2:
        return (var,)
    return tuple(LoopVar(f"{var.name}.{k}", extent) for k, extent in enumerate(reversed(extents)))


def _merge_loops(loops: Loops, accesses: Sequence[IndexExpr]) -> Loops:
    """The loops with neighbours joined that all accesses walk as one; at least one loop."""
    merged = spaces.merged(Space(loops, (False,) * len(loops)), accesses).vars
    return merged or (LoopVar("one", 1),)
