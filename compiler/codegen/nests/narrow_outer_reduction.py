"""Elements of columns that are fewer than a vector has lanes: what the lanes behind the last one compute is dropped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hybridflow.compiler.codegen.core.elements import Elements, MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.index.index_expr import IndexExpr, LoopVar
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size


class NarrowOuterReduction(Elements):
    """Vectors of the columns ``lane`` at a turn of the loop ``row`` that is not its last: where rows lie one behind the
    other, those lanes read the next one."""

    def __init__(
        self,
        code: KernelBuilder,
        counters: dict[LoopVar, Ref],
        lane: LoopVar,
        places: dict[Node, MemoryPlace],
        values: Mapping[Node, Val],
        row: LoopVar,
    ) -> None:
        super().__init__(code, counters, lane, places, dict(values))
        self.lane, self.row = lane, row

    def load(self, pointer: str, dtype: np.dtype, position: IndexExpr) -> Val:
        if not position.depends_on(self.lane) or position.depends_on(self.row):
            return super().load(pointer, dtype, position)
        first = self.counters[self.lane]
        assert isinstance(first, int)
        count, e = static_size((self.lane.extent,)) - first, self.e
        inside = self.code.lanes_below(count) if count < e.width else None
        return e.load(self.code.at(pointer, self.ref(position), dtype.itemsize), dtype, inside)
