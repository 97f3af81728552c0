"""Zeros at either end of the rows of a factor, which a product may leave out.

What a mask leaves of shares is such a factor: row i of causal attention ends with zeros behind element i, and column j
of it, a row in products of derivatives, begins with them.  Where y is finite, ``fma(0, y, sum)`` is the sum, but for
the sign of a zero; and that is lost when the sum of a block is added to the total, which begins with +0.  So the bits
of a product do not tell whether such terms were left out, and what there is to leave out is found when it runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.products.micro_kernel import Tile
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.dtypes import DType
from hybridflow.compiler.target import Target

SPAN = 16  # bytes: where elements other than zero begin and end, as two int64


def emit_nonzero_span(
    module: LLVMModule, symbol: str, target: Target, tile: Tile, dtype: DType, steps: tuple[int, int]
) -> str:
    """Add the function that stores at %span between which cells the rows of a tile at %a, of %depth cells, are not
    zero throughout.  ``steps``: how far apart rows and cells lie, of which one is 1.  Its name."""
    c = KernelBuilder(Emitter(target, tile.width))
    e, bits = c.e, _bits(dtype)
    row_step, k_step = steps

    def has_some(width: int, k: Ref, mask: Val | None = None) -> str:
        """Whether there is something in so many cells of all rows, from cell ``k`` on."""
        with c.width(width):
            masks = [
                e.shl(e.load(c.at("%a", c.add(c.mul(k, k_step), r * row_step), dtype.itemsize), bits, mask), 1)
                for r in range(tile.rows)
            ]
            return e.any(e.ne(_join_masks(e, masks), 0))

    def has_column(k: Ref) -> str:
        """The same of one cell of rows that lie side by side."""
        any_column, r = None, 0
        while r < tile.rows:
            width = min(tile.width, 1 << (tile.rows - r).bit_length() - 1)
            with c.width(width):
                at = c.at("%a", c.add(c.mul(k, k_step), r), dtype.itemsize)
                some = Val(e.any(e.ne(e.shl(e.load(at, bits), 1), 0)), dt.bool_, 1)
            any_column, r = some if any_column is None else e.or_(any_column, some), r + width
        assert any_column is not None
        return any_column.ref

    if row_step == 1:
        first: Ref = _first(c, "%depth", has_column)
        ahead = _first(c, c.sub("%depth", first), lambda k: has_column(c.sub(c.sub("%depth", 1), k)))
        end = c.sub("%depth", ahead)
    else:
        width = tile.width
        count = c.div("%depth", width)
        whole = c.mul(count, width)
        e.mask = c.lanes_below(c.sub("%depth", whole))
        (remainder,) = c.either_way(
            c.compare("eq", whole, "%depth"),
            lambda: [e.const(False, dt.bool_, 1)],
            lambda: [Val(has_some(width, whole, e.mask), dt.bool_, 1)],
        )
        e.mask = None
        first = c.mul(_first(c, count, lambda k: has_some(width, c.mul(k, width))), width)
        left = c.div(c.sub(whole, first), width)
        last = c.sub(count, 1)
        ahead = _first(c, left, lambda k: has_some(width, c.mul(c.sub(last, k), width)))
        end = c.choose(remainder.ref, "%depth", c.sub(whole, c.mul(ahead, width)))
    e.store(c.value(first), "%span")
    e.store(c.value(end), c.at("%span", 1, 8))
    e.line("ret void")
    return module.function(e, symbol, "ptr noalias %a, i64 %depth, ptr noalias %span", linkage="internal")


def _first(c: KernelBuilder, count: Ref, holds: Callable[[Ref], str]) -> str:
    """The first of ``count`` numbers of which something holds; ``count`` if there is none."""
    e = c.e
    head, body, after = (e.new_label(hint) for hint in ("look", "at", "found"))
    before = e.block
    e.branch(head)
    e.label(head)
    place = len(e.lines)
    at = e.phi((c.value(0), before))
    is_there = c.compare("slt", at.ref, count)
    assert isinstance(is_there, str)
    e.branch_if(is_there, body, after)
    e.label(body)
    is_nonzero, following = holds(at.ref), c.add(at.ref, 1)
    e.lines[place] += f", [ {following}, %{e.block} ]"
    e.branch_if(is_nonzero, after, head)
    e.label(after)
    return at.ref


def is_finite(c: KernelBuilder, tile: Tile, dtype: DType, panel: str, pitch: Ref, depth: Ref) -> str:
    """Whether all of a panel of columns is finite, whose lines lie ``pitch`` apart."""
    e, bits = c.e, _bits(dtype)
    with c.width(tile.width):
        limit = e.shl(e.bitcast(e.const(np.inf, dtype), bits), 1)
        with c.loop(0, depth, 1, [e.zero(bits)] * tile.vectors) as line:
            start = c.at(panel, c.mul(line.index, pitch), dtype.itemsize)
            vectors = [e.load(c.at(start, v * tile.width, dtype.itemsize), bits) for v in range(tile.vectors)]
            line.next = [e.maximum(most, e.shl(x, 1)) for most, x in zip(line.carried, vectors)]
        most = line.carried[0]
        for other in line.carried[1:]:
            most = e.maximum(most, other)
        return e.not_(Val(e.any(e.ge(most, limit)), dt.bool_, 1)).ref


def load_nonzero_span(c: KernelBuilder, spans: str, number: Ref) -> tuple[str, str]:
    """Where a tile's rows begin and end not to be zero."""
    at = c.at(spans, number, SPAN)
    first, end = (c.e.load(c.at(at, k, 8), dt.int64, width=1).ref for k in range(2))
    return first, end


def _bits(dtype: DType) -> DType:
    return dt.uint32 if dtype.itemsize == 4 else dt.uint64


def _join_masks(e: Emitter, values: list[Val]) -> Val:
    result = values[0]
    for value in values[1:]:
        result = e.or_(result, value)
    return result
