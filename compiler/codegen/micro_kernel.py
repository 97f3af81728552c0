"""The innermost loop of a product: a tile of sums in registers, over one block of the depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.structured import Code
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.target import Target


@dataclass(frozen=True)
class Tile:
    """The part of the product that the micro-kernel holds in registers: ``rows`` by ``vectors`` of ``width`` lanes."""

    rows: int
    vectors: int
    width: int

    @property
    def columns(self) -> int:
        return self.vectors * self.width


def emit_micro_kernel(
    module: ModuleText,
    symbol: str,
    target: Target,
    fastmath: bool,
    dtype: np.dtype,
    tile: Tile,
    row_step: int,
    k_step: int,
    one_block: bool,
) -> str:
    """Add the function of one tile over one k-block: totals = (0 if %first else totals) + the block's sums.  Its name.

    %a has the tile's rows ``row_step`` apart and their elements ``k_step`` apart, %b the columns side by side and
    %b_pitch apart; ``one_block`` says that %first is always true.
    """
    item = dtype.itemsize
    e = Emitter(target, tile.width, fastmath)
    c = Code(e)
    zeros = [e.zero(dtype)] * (tile.rows * tile.vectors)
    with c.loop(0, "%depth", 1, [*zeros, c.value(0), c.value(0)]) as at_k:
        *sums, a_position, b_position = at_k.carried
        a_k, b_k = c.at("%a", a_position.ref, item), c.at("%b", b_position.ref, item)
        b = [e.load(c.at(b_k, v * tile.width, item), dtype) for v in range(tile.vectors)]
        added = []
        for r in range(tile.rows):
            a = e.load_splat(c.at(a_k, r * row_step, item), dtype)
            added += [multiply_add(e, a, b[v], sums[r * tile.vectors + v]) for v in range(tile.vectors)]
        at_k.next = [*added, e.add(a_position, k_step), e.add(b_position, c.value("%b_pitch"))]
    first = e.splat(Val("%first", dt.bool_, 1))  # a mask: a scalar condition would become a branch each time
    for i, p in enumerate(at_k.carried[: len(zeros)]):
        address = c.at("%totals", i * tile.width, item)
        before = e.zero(dtype)
        if not one_block:
            before = e.select(first, before, e.load(address, dtype))
        e.store(e.add(before, p), address)
    e.line("ret void")
    parameters = "ptr noalias %a, ptr noalias %b, i64 %b_pitch, ptr noalias %totals, i64 %depth, i1 %first"
    return module.function(e, symbol, parameters, linkage="internal")


def multiply_add(e: Emitter, a: Val, b: Val, total: Val) -> Val:
    """One step of a sum of products: fused for floats; integers wrap."""
    return e.fma(a, b, total) if dt.is_float(a.dtype) else e.add(e.mul(a, b), total)
