"""Adding updates at indices: out = a copy of x, to which the updates are added one after another.

The order is that of ``ops/order.py``, row-major in the updates, and each sum is rounded to the dtype.  So the bits do
not depend on how the kernel is cut: a piece of the work has a part of the result to itself, columns where there are
many, else rows, and walks all indices of that part.

The indices are looked at first, in a phase of their own: where one is out of range a program ends before anything is
written, unless an earlier check is still to come.  So x may be out's own buffer, even that of state; the copy is left
out then.  What is written does not depend on checks: where one has failed that comes later, others read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.phases import KernelCode, Phase, kernel_parameters
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

_ENOUGH = 64  # vectors of columns, from which on these are what is cut
_WIDE = 64  # elements side by side, when there are more of them than a vector holds

Range = tuple[Ref, Ref]


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
    ``shape[:axis] + indices + shape[axis + 1:]``, %a3 = out.  Units: elements before the axis times those behind, or
    times rows."""
    s = _Scatter(e, dtype, index_dtype, shape, axis, check, dims, indices)
    c, item = s.c, dtype.itemsize
    count = c.product(indices)
    with s.parts() as (outer, rows, columns):
        out = s.copied(outer, rows, columns)
        updates = c.at("%a2", c.mul(c.mul(outer, count), s.inner), item)
        with c.loop(0, count) as j, c.width(1):
            index = s.index(j.index, None)
            with c.when(s.within(index, rows).ref):
                to = c.at(out, c.mul(index.ref, s.inner), item)
                update = c.at(updates, c.mul(j.index, s.inner), item)

                def add(i: Ref, mask: Val | None) -> None:
                    here = c.at(to, i, item)
                    e.store(s.sum(e.load(here, dtype, mask), e.load(c.at(update, i, item), dtype, mask)), here, mask)

                c.vector_loop(*columns, s.width, add)
    return s.finish(module, symbol, tuple(indices))


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
    along ``axis`` and otherwise the shape of x, %a3 = out.  Units: elements before the axis times those behind,
    or times rows."""
    s = _Scatter(e, dtype, index_dtype, shape, axis, check, dims, (count,))
    c, item = s.c, dtype.itemsize
    with s.parts() as (outer, rows, columns):
        out = s.copied(outer, rows, columns)
        with c.loop(0, c.extent(count)) as j:
            row = c.mul(c.add(c.mul(outer, c.extent(count)), j.index), s.inner)

            def add(i: Ref, mask: Val | None) -> None:
                position = c.add(row, i)
                index = s.index(position, mask)
                inside = s.within(index, rows)
                active = inside if mask is None else e.and_(inside, mask)
                # Lanes lie in different columns, so no two of them meet in one element.
                lanes = e.add(e.splat(c.value(i)), e.iota())
                offsets = e.add(e.mul(index, e.splat(c.value(s.inner))), lanes)
                update = e.load(c.at("%a2", position, item), dtype, mask)
                e.scatter(s.sum(e.gather(out, dtype, offsets, active), update), out, offsets, active)

            c.vector_loop(*columns, s.width, add)
    return s.finish(module, symbol, (*shape[:axis], count, *shape[axis + 1 :]))


class _Scatter:
    """What both kernels share: x as [outer, n, inner], its parts and their copy, and the indices."""

    def __init__(
        self,
        e: Emitter,
        dtype: np.dtype,
        index_dtype: np.dtype,
        shape: Sequence[Extent],
        axis: int,
        check: Check,
        dims: Sequence[str],
        others: Sequence[Extent],
    ) -> None:
        self.e, self.dtype, self.index_dtype, self.check = e, dtype, index_dtype, check
        self.shape, self.axis, self.dims, self.others = tuple(shape), axis, dims, tuple(others)
        self.c = c = Code(e, dims, (*shape, *others))
        before, behind = self.shape[:axis], self.shape[axis + 1 :]
        self.n, self.inner = c.extent(shape[axis]), c.product(behind)
        self.width = lanes_for(e.target, dtype, merged_extent(behind))
        # A piece of rows takes one walk over the indices whatever its size, a thread of a GPU one for each unit.
        columns = math.prod((*before, *behind))
        few = not (isinstance(columns, int) and columns >= _ENOUGH * self.width)
        self.by_rows = few and e.target.kind == "cpu"
        self.units = (*before, shape[axis]) if self.by_rows else (*before, *behind)

    @contextmanager
    def parts(self) -> Iterator[tuple[Ref, Range, Range]]:
        """The parts of the result that units stand for: (outer, rows, columns)."""
        with self.c.spans("%begin", "%end", self.n if self.by_rows else self.inner) as (outer, first, last):
            if self.by_rows:
                yield outer, (first, last), (0, self.inner)
            else:
                yield outer, (0, self.n), (first, last)

    def copied(self, outer: Ref, rows: Range, columns: Range) -> str:
        """Copy a part of entry ``outer`` from x to out; the address of that entry of out."""
        c, e, item = self.c, self.e, self.dtype.itemsize
        start = c.mul(c.mul(outer, self.n), self.inner)
        source, to = c.at("%a0", start, item), c.at("%a3", start, item)

        def copy(i: Ref, mask: Val | None) -> None:
            e.store(e.load(c.at(source, i, item), self.dtype, mask), c.at(to, i, item), mask)

        with c.when(c.different("%a0", "%a3")):
            if self.by_rows:
                begin, end = (c.mul(row, self.inner) for row in rows)
                c.vector_loop(begin, end, lanes_for(e.target, self.dtype, _WIDE), copy)
            else:
                with c.loop(*rows) as row:
                    begin = c.mul(row.index, self.inner)
                    first, last = (c.add(begin, column) for column in columns)
                    c.vector_loop(first, last, self.width, copy)
        return to

    def index(self, position: Ref, mask: Val | None) -> Val:
        """The indices from ``position``, counted from the front."""
        c, e = self.c, self.e
        address = c.at("%a1", position, self.index_dtype.itemsize)
        index = e.convert(e.load(address, self.index_dtype, mask), dt.int64)
        return e.select(e.lt(index, 0), e.add(index, e.splat(c.value(self.n))), index)

    def within(self, index: Val, rows: Range) -> Val:
        e = self.e
        first, last = (e.splat(self.c.value(row)) for row in rows)
        return e.and_(e.ge(index, first), e.lt(index, last))

    def sum(self, a: Val, b: Val) -> Val:
        e, wide = self.e, dt.compute_dtype(self.dtype)
        return e.convert(e.add(e.convert(a, wide), e.convert(b, wide)), self.dtype)

    def finish(self, module: ModuleText, symbol: str, indices: tuple[Extent, ...]) -> KernelCode:
        """The phase that is written, after that of the check of all ``indices``."""
        e = self.e
        looking = _Scatter(
            e.beside(), self.dtype, self.index_dtype, self.shape, self.axis, self.check, self.dims, self.others
        )
        looking.look()
        phases = []
        for body, name, units, grain, checks in (
            (looking.e, f"{symbol}_check", indices, _WIDE, True),
            (e, symbol, self.units, 1 if self.by_rows else self.width, False),
        ):
            body.line("ret void")
            written = module.function(body, name, kernel_parameters(4), linkage="internal")
            phases.append(Phase(written, units, grain, checks))
        return KernelCode(tuple(phases))

    def look(self) -> None:
        """Fail the check where an index is out of range, and slices have elements that would be added there."""
        c, e = self.c, self.e
        slices = c.product((*self.shape[: self.axis], *self.shape[self.axis + 1 :]))

        def check(i: Ref, mask: Val | None) -> None:
            e.raise_if(e.not_(self.within(self.index(i, mask), (0, self.n))), self.check)

        with c.when(c.compare("ne", slices, 0)):
            c.vector_loop("%begin", "%end", lanes_for(e.target, dt.int64, _WIDE), check)
