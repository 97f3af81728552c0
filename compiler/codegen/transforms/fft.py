"""Fourier transforms by vectors whose lanes do the same to different numbers, as ``ops/fourier_plan.py`` says.

**Columns.**  Where other axes lie behind that of the transform, lanes are neighbours along these.

**Rows.**  Where numbers lie side by side, the n2 transforms of n1 numbers have neighbours in the lanes of vectors, and
so have the n1 transforms of n2 numbers after them.  Between the two squares are turned in registers.  One worker does
both for a row, or, where rows are few and long, each of the two is shared out.

Within vectors real and imaginary parts are apart; they are pairs in operands and results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters, one_phase
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.loops.tuning import FEW_TRANSFORMS, SHARED_TRANSFORM
from hybridflow.compiler.ops import fourier_plan
from hybridflow.compiler.ops.fourier_plan import Split
from hybridflow.compiler.ops.lowering import FourierTransform

Load = Callable[[Ref], tuple[Val, Val]]
Store = Callable[[Ref, Val, Val], None]
_PAGE = 4096  # bytes after which rows would take each other's place in a cache


@dataclass(frozen=True)
class FourierOperands:
    """What a kernel is given: where the numbers and the table of constants lie, the names of extents, and how many
    buffers there are, the last of which is the result."""

    transform: FourierTransform
    shape: Shape
    dtype: np.dtype
    x: str
    table: str
    dims: Sequence[str]
    buffers: int

    @property
    def behind(self) -> Extent:
        """Numbers from one along the axis to the next."""
        end = len(self.shape) - (not dt.is_complex(self.dtype))
        return product(self.shape[self.transform.axis + 1 : end])


def emit_fourier(module: LLVMModule, e: Emitter, symbol: str, operands: FourierOperands) -> EmittedKernel:
    """Add the kernel ``symbol``.  Units: vectors of columns, rows, or vectors of the two steps of a row."""
    shape, axis = operands.shape, operands.transform.axis
    lines, behind = shape[:axis], operands.behind
    n = shape[axis]
    assert isinstance(n, int)

    def written(body: Emitter, name: str, write: Callable[[_Transform], None], for_host: bool = False) -> str:
        with body.strict():
            write(_Transform(body, operands))
        body.line("ret void")
        return module.function(body, name, kernel_parameters(operands.buffers), linkage="internal", for_host=for_host)

    sizes = _Transform(Emitter(e.target, 1), operands)
    if behind != 1:
        lanes = lanes_for(e.target, sizes.dtype, behind)
        blocks = (behind + (lanes - 1)) // lanes
        name = written(e, symbol, _Transform.columns)
        return one_phase(name, (*lines, blocks), scratch=sizes.scratch_of(sizes.split, lanes))
    whole = written(e, symbol, _Transform.rows)
    needed = sizes.row_scratch
    count = product(lines)
    if sizes.split.is_butterfly or not isinstance(count, int) or n < SHARED_TRANSFORM or count > FEW_TRANSFORMS:
        return one_phase(whole, lines, grain=sizes.lanes if sizes.split.is_butterfly else 1, scratch=needed)
    steps = [
        Phase(written(Emitter(e.target, 1, e.fastmath), f"{symbol}_{name}", write, True), (count, blocks))
        for name, write, blocks in (
            ("first", _Transform.first_of_rows, sizes.first_blocks),
            ("second", _Transform.second_of_rows, sizes.second_blocks),
        )
    ]
    return EmittedKernel(tuple(steps), needed, sizes.between * count, Phase(whole, (count,)))


class _Transform:
    """Such a function being written.

    Memory between the steps of a row: for each c the real parts of s[k1, c], and then the imaginary parts, in
    ``pitch`` elements each.
    """

    def __init__(self, e: Emitter, operands: FourierOperands) -> None:
        self.e, self.c, self.how = e, KernelBuilder(e, operands.dims), operands.transform
        self.dtype, self.x, self.table = dt.part_dtype(operands.dtype), operands.x, operands.table
        self.item = self.dtype.itemsize
        self.out = f"%a{operands.buffers - 1}"
        shape, axis = operands.shape, self.how.axis
        n = shape[axis]
        assert isinstance(n, int)
        self.n = n
        self.behind = operands.behind
        self.split = fourier_plan.plan(n)
        self.lanes = lanes_for(e.target, self.dtype, product(shape[:axis]))  # of short rows
        if not self.split.is_butterfly:
            first, second = self.split.parts
            self.first_lanes = lanes_for(e.target, self.dtype, second.n)
            self.second_lanes = lanes_for(e.target, self.dtype, first.n)
            self.first_blocks = -(-second.n // self.first_lanes)
            self.second_blocks = -(-first.n // self.second_lanes)
            most = max(self.first_lanes, self.second_lanes)
            self.pitch = -(-first.n // most) * most
            if 2 * self.pitch * self.item % _PAGE == 0:
                self.pitch += most

    # ---- sizes

    def scratch_of(self, split: Split, lanes: int) -> int:
        """Bytes that a transform in lanes takes for what lies between its steps."""
        if split.is_butterfly:
            return 0
        return 2 * split.n * lanes * self.item + max(self.scratch_of(part, lanes) for part in split.parts)

    @property
    def between(self) -> int:
        """Bytes between the two steps of a row, a multiple of 64."""
        return 0 if self.split.is_butterfly else -(-2 * self.pitch * self.split.parts[1].n * self.item // 64) * 64

    @property
    def _staged(self) -> int:
        """Bytes of the vectors of a first step, before they are turned."""
        first = self.split.parts[0]
        return 2 * -(-first.n // self.first_lanes) * self.first_lanes**2 * self.item

    @property
    def row_scratch(self) -> int:
        if self.split.is_butterfly:
            return -(-2 * self.n // self.lanes) * self.lanes**2 * self.item
        first, second = self.split.parts
        in_first = self._staged + self.scratch_of(first, self.first_lanes)
        return self.between + max(in_first, self.scratch_of(second, self.second_lanes))

    # ---- operands and results

    def _load(self, start: Ref, valid: Ref | None) -> tuple[Val, Val]:
        """Neighbours from number ``start`` on, of which the first ``valid`` are there."""
        c, e = self.c, self.e
        lanes, place = e.width, c.at(self.x, c.mul(start, 2), self.item)
        if lanes == 1:
            real, imaginary = e.load(place, self.dtype), e.load(c.at(place, 1, self.item), self.dtype)
        else:
            with c.width(2 * lanes):
                mask = None if valid is None else c.lanes_below(c.mul(valid, 2))
                both = e.load(place, self.dtype, mask)
            real, imaginary = (e.shuffle(both, None, range(part, 2 * lanes, 2)) for part in (0, 1))
        return self._swapped(real, imaginary)

    def _swapped(self, real: Val, imaginary: Val) -> tuple[Val, Val]:
        """The inverse is the transform with both parts swapped, before and after."""
        return (imaginary, real) if self.how.inverse else (real, imaginary)

    def _scaled(self, real: Val, imaginary: Val) -> tuple[Val, Val]:
        if self.how.scale == 1:
            return real, imaginary
        factor = self.e.const(self.dtype.type(self.how.scale), self.dtype)
        return self.e.mul(real, factor), self.e.mul(imaginary, factor)

    def _store(self, start: Ref, real: Val, imaginary: Val, valid: Ref | None) -> None:
        c, e = self.c, self.e
        lanes, place = e.width, c.at(self.out, c.mul(start, 2), self.item)
        real, imaginary = self._swapped(*self._scaled(real, imaginary))
        if lanes == 1:
            e.store(real, place)
            e.store(imaginary, c.at(place, 1, self.item))
            return
        both = e.interleaved(real, imaginary)
        with c.width(2 * lanes):
            e.store(both, place, None if valid is None else c.lanes_below(c.mul(valid, 2)))

    # ---- a transform in each lane

    def _transform(self, split: Split, load: Load, store: Store, scratch: str) -> None:
        c, e = self.c, self.e
        if split.is_butterfly:
            xs = [load(i) for i in range(split.n)]
            for k, y in enumerate(fourier_plan.butterfly(_Constants(e), xs, self.dtype)):
                store(k, *y)
            return
        first, second = split.parts
        size = e.width * self.item
        rest = c.at(scratch, 2 * split.n * size, 1)

        def at(k1: Ref, column: Ref, part: int) -> str:
            return c.at(scratch, c.add(c.mul(c.add(c.mul(k1, second.n), column), 2), part), size)

        with c.loop(0, second.n) as loop:
            column = loop.index

            def store_row(k1: Ref, real: Val, imaginary: Val) -> None:
                if not fourier_plan.is_one(split, k1):
                    place = c.add(c.mul(k1, second.n), column)
                    wr, wi = (
                        e.load_splat(
                            c.at(self.table, c.add(place, split.offset + part * split.n), self.item), self.dtype
                        )
                        for part in (0, 1)
                    )
                    real, imaginary = fourier_plan.times(e, (real, imaginary), (wr, wi))
                for part, value in enumerate((real, imaginary)):
                    e.store(value, at(k1, column, part))

            self._transform(first, lambda i: load(c.add(c.mul(i, second.n), column)), store_row, rest)
        with c.loop(0, first.n) as loop:
            k1 = loop.index

            def load_row(column: Ref) -> tuple[Val, Val]:
                return e.load(at(k1, column, 0), self.dtype), e.load(at(k1, column, 1), self.dtype)

            self._transform(second, load_row, lambda k2, r, i: store(c.add(c.mul(k2, first.n), k1), r, i), rest)

    # ---- columns

    def columns(self) -> None:
        """Units: vectors of neighbours behind the axis."""
        c, e = self.c, self.e
        lanes = lanes_for(e.target, self.dtype, self.behind)
        behind = c.extent(self.behind)
        full = c.div(behind, lanes)
        blocks = c.div(c.add(behind, lanes - 1), lanes)

        def block(line: Ref, number: Ref, valid: Ref | None) -> None:
            start = c.add(c.mul(c.mul(line, self.n), behind), c.mul(number, lanes))
            with c.width(lanes):
                self._transform(
                    self.split,
                    lambda i: self._load(c.add(start, c.mul(i, behind)), valid),
                    lambda k, r, i: self._store(c.add(start, c.mul(k, behind)), r, i, valid),
                    "%scratch",
                )

        with c.spans("%begin", "%end", blocks) as (line, first, last):
            with c.loop(first, c.min(last, full)) as loop:
                block(line, loop.index, None)
            if not (isinstance(behind, int) and behind % lanes == 0):
                with c.when(c.both(c.compare("eq", last, blocks), c.compare("ne", blocks, full))):
                    block(line, full, c.sub(behind, c.mul(full, lanes)))

    # ---- rows

    def rows(self) -> None:
        """Units: rows."""
        c = self.c
        if self.split.is_butterfly:
            c.vector_loop("%begin", "%end", self.lanes, self._short_rows)
            return
        with c.loop("%begin", "%end") as loop:
            start = c.mul(loop.index, self.n)
            scratch = c.at("%scratch", self.between, 1)
            self._first(start, "%scratch", scratch, 0, self.first_blocks)
            self._second(start, "%scratch", scratch, 0, self.second_blocks)

    def _short_rows(self, row: Ref, mask: Val | None) -> None:
        """A row in each lane.  Squares of rows and parts of numbers are turned in registers, before and after."""
        c, e = self.c, self.e
        if mask is not None or e.width == 1:
            self._few_short_rows(row, mask)
            return
        lanes, parts = e.width, 2 * self.n

        def vector(part: Ref) -> str:
            return c.at("%scratch", part, lanes * self.item)

        def squares(base: str) -> Iterator[tuple[list[str], Val | None, list[str]]]:
            """The places of a square's rows, which parts of these there are, and where they lie when turned."""
            for first in range(0, parts, lanes):
                rows = [c.at(base, c.add(c.mul(c.add(row, k), parts), first), self.item) for k in range(lanes)]
                some = None if first + lanes <= parts else c.lanes_below(parts - first)
                yield rows, some, [vector(first + k) for k in range(lanes)]

        for rows, some, turned in squares(self.x):
            values = transpose_in_registers(e, [e.load(place, self.dtype, some) for place in rows])
            for value, place in zip(values, turned):
                e.store(value, place)

        def load(i: Ref) -> tuple[Val, Val]:
            return self._swapped(*(e.load(vector(c.add(c.mul(i, 2), part)), self.dtype) for part in (0, 1)))

        def store(k: Ref, real: Val, imaginary: Val) -> None:
            for part, value in enumerate(self._swapped(*self._scaled(real, imaginary))):
                e.store(value, vector(c.add(c.mul(k, 2), part)))

        self._transform(self.split, load, store, "%scratch")
        for rows, some, turned in squares(self.out):
            values = transpose_in_registers(e, [e.load(place, self.dtype) for place in turned])
            for value, place in zip(values, rows):
                e.store(value, place, some)

    def _few_short_rows(self, row: Ref, mask: Val | None) -> None:
        """The same for the last rows, whose numbers are looked up one by one."""
        c, e = self.c, self.e
        start = c.mul(row, self.n)
        apart = e.numbers([2 * self.n * k for k in range(e.width)], dt.int64) if e.width > 1 else e.const(0, dt.int64)

        def place(base: str, number: Ref, part: int) -> str:
            return c.at(base, c.add(c.mul(c.add(start, number), 2), part), self.item)

        def load(i: Ref) -> tuple[Val, Val]:
            real, imaginary = (e.gather(place(self.x, i, part), self.dtype, apart, mask) for part in (0, 1))
            return self._swapped(real, imaginary)

        def store(k: Ref, real: Val, imaginary: Val) -> None:
            for part, value in enumerate(self._swapped(*self._scaled(real, imaginary))):
                e.scatter(value, place(self.out, k, part), apart, mask)

        self._transform(self.split, load, store, "%scratch")

    def first_of_rows(self) -> None:
        """Units: the vectors of the first step of a row, row after row."""
        c = self.c
        scratch = c.at("%scratch", self.between, 1)
        with c.spans("%begin", "%end", self.first_blocks) as (row, first, last):
            self._first(c.mul(row, self.n), c.at("%shared", c.mul(row, self.between), 1), scratch, first, last)

    def second_of_rows(self) -> None:
        """Units: those of the second step."""
        c = self.c
        scratch = c.at("%scratch", self.between, 1)
        with c.spans("%begin", "%end", self.second_blocks) as (row, first, last):
            self._second(c.mul(row, self.n), c.at("%shared", c.mul(row, self.between), 1), scratch, first, last)

    def _each_block(self, begin: Ref, end: Ref, extent: int, lanes: int, block: Callable[[Ref, int], None]) -> None:
        """``block(start, valid)`` for the blocks of so many lanes in a range; the last may have fewer."""
        c = self.c
        full, rest = divmod(extent, lanes)
        with c.width(lanes):
            with c.loop(begin, c.min(end, full)) as loop:
                block(c.mul(loop.index, lanes), lanes)
            if rest:
                with c.when(c.compare("sgt", end, full)):
                    block(full * lanes, rest)

    def _first(self, start: Ref, between: str, scratch: str, begin: Ref, end: Ref) -> None:
        """Transforms of ``first.n`` numbers in the lanes, times constants, turned into rows."""
        c, e, lanes = self.c, self.e, self.first_lanes
        first, second = self.split.parts
        rest = c.at(scratch, self._staged, 1)
        plane = -(-first.n // lanes) * lanes  # vectors of real parts

        def staged(part: int, k1: Ref) -> str:
            return c.at(scratch, c.add(k1, part * plane), lanes * self.item)

        def block(column: Ref, valid: int) -> None:
            some = None if valid == lanes else valid

            def store(k1: Ref, real: Val, imaginary: Val) -> None:
                if not fourier_plan.is_one(self.split, k1):
                    place = c.add(c.mul(k1, second.n), column)
                    mask = None if some is None else c.lanes_below(some)
                    wr, wi = (
                        e.load(c.at(self.table, c.add(place, self.split.offset + part * self.n), self.item),
                               self.dtype, mask)
                        for part in (0, 1)
                    )  # fmt: skip
                    real, imaginary = fourier_plan.times(e, (real, imaginary), (wr, wi))
                for part, value in enumerate((real, imaginary)):
                    e.store(value, staged(part, k1))

            def load(i: Ref) -> tuple[Val, Val]:
                return self._load(c.add(start, c.add(c.mul(i, second.n), column)), some)

            self._transform(first, load, store, rest)
            with c.loop(0, plane, lanes) as loop:
                for part in (0, 1):
                    vectors = [e.load(staged(part, c.add(loop.index, j)), self.dtype) for j in range(lanes)]
                    for lane, vector in enumerate(transpose_in_registers(e, vectors)[:valid]):
                        place = c.add(c.mul(c.add(c.mul(c.add(column, lane), 2), part), self.pitch), loop.index)
                        e.store(vector, c.at(between, place, self.item))

        self._each_block(begin, end, second.n, lanes, block)

    def _second(self, start: Ref, between: str, scratch: str, begin: Ref, end: Ref) -> None:
        """Transforms of ``second.n`` numbers in the lanes."""
        c, e, lanes = self.c, self.e, self.second_lanes
        first, second = self.split.parts

        def block(k1: Ref, valid: int) -> None:
            some = None if valid == lanes else valid

            def load(column: Ref) -> tuple[Val, Val]:
                place = c.add(c.mul(c.mul(column, 2), self.pitch), k1)
                real, imaginary = (
                    e.load(c.at(between, c.add(place, part * self.pitch), self.item), self.dtype) for part in (0, 1)
                )
                return real, imaginary

            def store(k2: Ref, real: Val, imaginary: Val) -> None:
                self._store(c.add(start, c.add(c.mul(k2, first.n), k1)), real, imaginary, some)

            self._transform(second, load, store, scratch)

        self._each_block(begin, end, first.n, lanes, block)


class _Constants:
    """The emitter, for numbers that are constants."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self.add, self.sub, self.neg = e.add, e.sub, e.neg

    def mul(self, a: Val, b: Val | np.floating) -> Val:
        return self.e.mul(a, b if isinstance(b, Val) else self.e.const(b, a.dtype))

    def fma(self, a: Val, b: Val | np.floating, c: Val) -> Val:
        return self.e.fma(a, b if isinstance(b, Val) else self.e.const(b, a.dtype), c)
