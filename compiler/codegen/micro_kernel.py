"""The innermost loop of a product: a tile of sums in registers, over one block of the depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.order import PAIR
from hybridflow.compiler.target import Target

_NORMAL = 2.0**-126  # the least float32 that is not denormal


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
    paired: bool = False,
) -> str:
    """Add the function of one tile over one k-block: totals = (0 if %first else totals) + the block's sums.  Its name.

    %a has the tile's rows ``row_step`` apart and their elements ``k_step`` apart, %b the columns side by side and
    %b_pitch apart; ``one_block`` says that %first is always true, ``paired`` in which order k goes (see ``turns``).
    """
    item = dtype.itemsize
    e = Emitter(target, tile.width, fastmath)
    c = Code(e)
    zeros = [e.zero(dtype)] * (tile.rows * tile.vectors)
    carry = [*zeros, c.value(0), c.value(0)]
    for begin, end, offsets in turns(c, 0, "%depth", paired):
        with c.loop(begin, end, len(offsets), carry) as turn:
            *sums, a_position, b_position = turn.carried
            for offset in offsets:
                a_k = c.at("%a", c.add(a_position.ref, offset * k_step), item)
                b_k = c.at("%b", c.add(b_position.ref, c.mul("%b_pitch", offset)), item)
                b = [e.load(c.at(b_k, v * tile.width, item), dtype) for v in range(tile.vectors)]
                for r in range(tile.rows):
                    a = e.load_splat(c.at(a_k, r * row_step, item), dtype)
                    for v in range(tile.vectors):
                        i = r * tile.vectors + v
                        sums[i] = multiply_add(e, a, b[v], sums[i], paired)
            ahead = c.value(c.mul("%b_pitch", len(offsets)))
            turn.next = [*sums, e.add(a_position, k_step * len(offsets)), e.add(b_position, ahead)]
        carry = turn.carried
    first = e.splat(Val("%first", dt.bool_, 1))  # a mask: a scalar condition would become a branch each time
    for i, p in enumerate(carry[: len(zeros)]):
        address = c.at("%totals", i * tile.width, item)
        before = e.zero(dtype)
        if not one_block:
            before = e.select(first, before, e.load(address, dtype))
        e.store(e.add(before, p), address)
    e.line("ret void")
    parameters = "ptr noalias %a, ptr noalias %b, i64 %b_pitch, ptr noalias %totals, i64 %depth, i1 %first"
    return module.function(e, symbol, parameters, linkage="internal")


def turns(c: Code, begin: Ref, end: Ref, paired: bool) -> list[tuple[Ref, Ref, tuple[int, ...]]]:
    """Loops over the depth, one after the other: from, to, and which k each turn adds, in order."""
    if not paired:
        return [(begin, end, (0,))]
    whole = c.add(begin, c.mul(c.div(c.sub(end, begin), PAIR), PAIR))
    return [(begin, whole, tuple(reversed(range(PAIR)))), (whole, end, (0,))]


def factor(e: Emitter, value: Val, dtype: np.dtype, paired: bool) -> Val:
    """A factor in the dtype of the sums; in pairs denormal ones are 0."""
    value = e.convert(value, dtype)
    return e.select(e.lt(e.abs(value), _NORMAL), 0, value) if paired else value


def multiply_add(e: Emitter, a: Val, b: Val, total: Val, paired: bool) -> Val:
    """One step of a sum of products: fused for floats; integers wrap.  In pairs denormal sums are 0."""
    if not dt.is_float(a.dtype):
        return e.add(e.mul(a, b), total)
    if not paired:
        return e.fma(a, b, total)
    with e.strict():
        # Whether a sum is denormal is asked after rounding as if exponents had no bounds: where it may be, all terms
        # are small enough to be scaled up.
        up = 2.0**32
        scaled = e.fma(e.mul(a, up), e.mul(b, up), e.mul(total, up * up))
        return e.select(e.lt(e.abs(scaled), _NORMAL * up * up), 0, e.fma(a, b, total))
