"""Kernels with reductions: the passes over a row or a tile that they need.

A stage computes what only needs results of earlier stages.  A value that two stages need is computed twice when that is
cheap, else it is kept: in the node's own buffer when it has one, in scratch memory of one row otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen.elements import Elements
from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.nest import Nest
from hybridflow.compiler.codegen.reduction import Fold, State
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent, factors
from hybridflow.compiler.loops.index import ZERO, Index, LoopVar, variable
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel
from hybridflow.compiler.loops.operands import reads_of
from hybridflow.compiler.loops.space import Space
from hybridflow.compiler.ops import Kind


class Staged(Nest):
    """``first[n]`` is the stage in which a node of the full space can be computed, ``ready[n]`` the first stage that
    can use a row's value, ``within`` the position among the elements that a result folds together."""

    def __init__(
        self, e: Emitter, code: Code, kernel: Kernel, space: Space, is_leaf: IsLeaf, pointers: dict[Node, str]
    ) -> None:
        super().__init__(e, code, kernel, space, is_leaf, pointers)
        self.first: dict[Node, int] = {}
        self.ready: dict[Node, int] = dict.fromkeys(kernel.inputs, 0)
        self.stages = 0
        self._find_stages()
        self.within = ZERO
        for var in space.folded:
            self.within = self.within * var.extent + variable(var)

    def _find_stages(self) -> None:
        for node in self.kernel.nodes:  # in program order
            reduces = node.op.kind is Kind.REDUCE
            shape = node.inputs[0].shape if reduces else node.shape
            position = self.space.row if node in self.rows and not reduces else self.space.full
            reads = reads_of(node, Index(shape, linear=position), self.is_leaf)
            stage = max((self.ready.get(leaf, self.first.get(leaf, 0)) for leaf, _ in reads.leaves), default=0)
            if reduces:
                self.first[node], self.ready[node] = stage, stage + 1
            elif node in self.rows:
                self.ready[node] = stage
            else:
                self.first[node] = stage
            if node not in self.rows or reduces:
                self.stages = max(self.stages, stage + 1)

    def _roots_of(self, stage: int) -> list[Node]:
        return [n for n in self.kernel.roots if n not in self.rows and self.first[n] == stage]

    def _folds_of(self, stage: int) -> list[Fold]:
        return [Fold(n) for n in self.kernel.nodes if n.op.kind is Kind.REDUCE and self.first[n] == stage]

    def _row_nodes(self, stage: int) -> list[Node]:
        """Members with one element per row, other than the reductions, that can be computed before ``stage``."""
        return [
            n for n in self.kernel.nodes if n in self.rows and n.op.kind is not Kind.REDUCE and self.ready[n] == stage
        ]

    def _position(self, vars: Sequence[LoopVar]) -> Ref:
        position: Ref = 0
        for var in vars:
            position = self.code.add(self.code.mul(position, self.code.extent(var.extent)), self.counters[var])
        return position

    def _lift(self, elements: Elements, fold: Fold) -> State:
        node = fold.node
        source = node.inputs[0]
        value = elements.value(source, Index(source.shape, linear=self.space.full))
        self.e.at(node)
        wide = self.e.convert(value, dt.compute_dtype(value.dtype))
        return tuple(node.op.lift(self.e, wide, elements.lanes(self.within)))


def known_product(extents: Sequence[Extent]) -> int | None:
    factor, names = factors(tuple(extents))
    return None if names else factor
