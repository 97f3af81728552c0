"""Adding updates at indices: out = a copy of x, to which the updates are added one after another.

The order is row-major in the updates, and each sum is rounded to the dtype, so the bits do not depend on how the
kernel is cut: threads share out what lies before and behind the indexed axis, and each walks all indices of its part.

x may be out's own buffer; the copy is left out then.  An index out of range fails the given check and is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.phases import KernelCode, kernel_parameters, one_phase
from hybridflow.compiler.codegen.structured import (
    Code,
    Ref,
    lanes_for,
    merged_extent,
)
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.program import Check


def emit_scatter_add(
    module: ModuleText,
    e: Emitter,
    symbol: str,
    dtype: np.dtype,
    index_dtype: np.dtype,
    shape: Sequence[Extent],
    indices: Sequence[Extent],
    axis: int,
    check: Check,
    dims: Sequence[str] = (),
) -> KernelCode:
    """Add the kernel ``symbol``: %a0 = x of ``shape``, %a1 = indices of the shape ``indices``, %a2 = updates of shape
    ``shape[:axis] + indices + shape[axis + 1:]``, %a3 = out.  Units: elements before the axis times those behind."""
    s = _Scatter(e, dtype, shape, axis, check, dims, indices)
    c, item = s.c, dtype.itemsize
    count = c.product(indices)
    with c.spans("%begin", "%end", s.inner) as (outer, first, last):
        out = s.copied(outer, first, last)
        updates = c.at("%a2", c.mul(c.mul(outer, count), s.inner), item)
        with c.loop(0, count) as j, c.width(1):
            index = e.convert(e.load(c.at("%a1", j.index, index_dtype.itemsize), index_dtype), dt.int64)
            index, inside = s.checked(index)
            with c.when(inside.ref):
                to = c.at(out, c.mul(index.ref, s.inner), item)
                update = c.at(updates, c.mul(j.index, s.inner), item)

                def add(i: Ref, mask: Val | None) -> None:
                    here = c.at(to, i, item)
                    e.store(s.sum(e.load(here, dtype, mask), e.load(c.at(update, i, item), dtype, mask)), here, mask)

                c.vector_loop(first, last, s.width, add)
    return s.finish(module, symbol)


def emit_scatter_add_along_axis(
    module: ModuleText,
    e: Emitter,
    symbol: str,
    dtype: np.dtype,
    index_dtype: np.dtype,
    shape: Sequence[Extent],
    count: Extent,
    axis: int,
    check: Check,
    dims: Sequence[str] = (),
) -> KernelCode:
    """Add the kernel ``symbol``: %a0 = x of ``shape``, %a1 = indices and %a2 = updates, which have ``count`` elements
    along ``axis`` and otherwise the shape of x, %a3 = out.  Units: elements before the axis times those behind."""
    s = _Scatter(e, dtype, shape, axis, check, dims, (count,))
    c, item = s.c, dtype.itemsize
    with c.spans("%begin", "%end", s.inner) as (outer, first, last):
        out = s.copied(outer, first, last)
        with c.loop(0, c.extent(count)) as j:
            row = c.mul(c.add(c.mul(outer, c.extent(count)), j.index), s.inner)

            def add(i: Ref, mask: Val | None) -> None:
                position = c.add(row, i)
                index = e.load(c.at("%a1", position, index_dtype.itemsize), index_dtype, mask)
                index, inside = s.checked(e.convert(index, dt.int64))
                active = inside if mask is None else e.and_(inside, mask)
                # Lanes lie in different columns, so no two of them meet in one element.
                columns = e.add(e.splat(c.value(i)), e.iota())
                offsets = e.add(e.mul(index, e.splat(c.value(s.inner))), columns)
                update = e.load(c.at("%a2", position, item), dtype, mask)
                e.scatter(s.sum(e.gather(out, dtype, offsets, active), update), out, offsets, active)

            c.vector_loop(first, last, s.width, add)
    return s.finish(module, symbol)


class _Scatter:
    """What both kernels share: x as [outer, n, inner], its copy, and the checking of indices."""

    def __init__(
        self,
        e: Emitter,
        dtype: np.dtype,
        shape: Sequence[Extent],
        axis: int,
        check: Check,
        dims: Sequence[str],
        others: Sequence[Extent],
    ) -> None:
        self.e, self.dtype, self.check = e, dtype, check
        self.c = c = Code(e, dims, (*shape, *others))
        self.n, self.inner = c.extent(shape[axis]), c.product(shape[axis + 1 :])
        self.width = lanes_for(e.target, dtype, merged_extent(shape[axis + 1 :]))
        self.units = (*shape[:axis], *shape[axis + 1 :])

    def copied(self, outer: Ref, first: Ref, last: Ref) -> str:
        """Copy columns [first, last) of entry ``outer`` from x to out; the address of that entry of out."""
        c, e, item = self.c, self.e, self.dtype.itemsize
        start = c.mul(c.mul(outer, self.n), self.inner)
        source, to = c.at("%a0", start, item), c.at("%a3", start, item)

        def copy(i: Ref, mask: Val | None) -> None:
            e.store(e.load(c.at(source, i, item), self.dtype, mask), c.at(to, i, item), mask)

        with c.when(c.different("%a0", "%a3")):
            if self.inner == 1:
                c.vector_loop(0, self.n, lanes_for(e.target, self.dtype, 64), copy)
            else:
                with c.loop(0, self.n) as row:
                    begin = c.mul(row.index, self.inner)
                    c.vector_loop(c.add(begin, first), c.add(begin, last), self.width, copy)
        return to

    def checked(self, index: Val) -> tuple[Val, Val]:
        """The index counted from the front, and whether it lies inside; the check fails where it does not."""
        e = self.e
        n = e.splat(self.c.value(self.n))
        index = e.select(e.lt(index, 0), e.add(index, n), index)
        inside = e.and_(e.ge(index, 0), e.lt(index, n))
        e.raise_if(e.not_(inside), self.check)
        return index, inside

    def sum(self, a: Val, b: Val) -> Val:
        e, wide = self.e, dt.compute_dtype(self.dtype)
        return e.convert(e.add(e.convert(a, wide), e.convert(b, wide)), self.dtype)

    def finish(self, module: ModuleText, symbol: str) -> KernelCode:
        self.e.line("ret void")
        symbol = module.function(self.e, symbol, kernel_parameters(4), linkage="internal")
        return one_phase(symbol, self.units, self.width)
