"""Sort of values alone, where vectors are to be had: see ``network``.

Elements become keys that a network can order: signed integers, or float32 and float64 themselves, of which processors
compare more at once.  Lines of few elements are sorted side by side, one in each lane; a longer one is spread over the
lanes, sorted in each of them, and merged.

A network neither knows NaN, nor does it keep the order of -0.0 and 0.0, as equal elements should.  Floats that are keys
have infinity in the place of NaN.  What a line has of both is put right afterwards; few lines have any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import MOST_LANES, KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import EmittedKernel, kernel_parameters, one_phase
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.ordering import quicksort, sorting_network
from hybridflow.compiler.codegen.ordering.argsort import SortOperand
from hybridflow.compiler.codegen.ordering.ordering_schedule import SortSchedule, SortWay
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.tuning import MAX_LANE_SORT


def emit_vector_sort(module: LLVMModule, e: Emitter, symbol: str, operand: SortOperand) -> EmittedKernel:
    """Add the kernel ``symbol`` whose result are the elements in order.  Units: lines along the sorted axis."""
    x = operand.x
    shape, axis = x.node.shape, operand.ranking.axis
    sort = _Values(e, operand)
    sort.write()
    e.line("ret void")
    name = module.function(e, symbol, kernel_parameters(operand.buffers), linkage="internal")
    # Rows up to the next power of two: of a line in each lane, or of one in all of them.
    keys: Extent = sort.lanes * (sort.lanes + 2 * max(MAX_LANE_SORT, sorting_network.ROWS)) + 2 * (
        shape[axis] + sort.lanes
    )
    if sort._is_partitioned() is True:
        keys = quicksort.NETWORK_KEYS
    lines = (*shape[:axis], *shape[axis + 1 :])
    how = SortSchedule(SortWay.VECTORS, sort.lanes)
    code = one_phase(name, lines, scratch=keys * x.node.dtype.itemsize, least=sort.lanes)
    return replace(code, schedule=str(how))


class _Values:
    """Scratch: a square tile of keys, then rows of keys."""

    def __init__(self, e: Emitter, operand: SortOperand) -> None:
        ranking, x = operand.ranking, operand.x
        self.e, self.dtype, self.descending, self.x = e, x.node.dtype, ranking.descending, x
        self.out = f"%a{operand.buffers - 1}"
        self.bits = np.dtype(f"int{8 * self.dtype.itemsize}")
        self.largest = int(np.iinfo(self.bits).max)
        self.floats = self.dtype in (dt.float32, dt.float64)
        self.key = self.dtype if self.floats else self.bits
        self.c = c = KernelBuilder(e, operand.dims)
        shape, axis = x.node.shape, ranking.axis
        self.n, self.inner = c.extent(shape[axis]), c.product(shape[axis + 1 :])
        self.lanes = lanes_for(e.target, self.key, MOST_LANES)
        self.rows = c.at("%scratch", self.lanes * self.lanes, self.key.itemsize)

    def write(self) -> None:
        c = self.c
        few, parted = c.compare("sle", self.n, MAX_LANE_SORT), self._is_partitioned()
        for chosen, write in (
            (few, self._side_by_side),
            (c.both(c.negation(few), c.negation(parted)), self._spread),
            (parted, self._partition),
        ):
            if chosen is not False:
                with c.when(chosen):
                    write()

    def _is_partitioned(self) -> str | bool:
        """Whether to sort lines where they lie, in the output."""
        if not quicksort.partitions_vectors(self.e.target, self.key):
            return False
        c = self.c
        return c.both(
            c.compare("eq", self.inner, 1), c.compare("sge", self.n, quicksort.min_partitioned(self.e.target, self.key))
        )

    # ---- a line in each lane

    def _side_by_side(self) -> None:
        c = self.c
        self._fill(self.n, sorting_network.power_above(c, self.n), np.inf if self.floats else self.largest)
        in_tiles = c.both(c.compare("eq", self.inner, 1), c.compare("sge", self.n, self.lanes))
        with c.loop("%begin", "%end", self.lanes) as group:
            lines = c.min(c.sub("%end", group.index), self.lanes)
            with c.when(in_tiles):
                self._tiles(lambda at: self._read_tile(group.index, lines, at))
            with c.when(c.negation(in_tiles)):
                self._elements(group.index, lines, lambda at, place: self.e.store(self._read(at), place))
            put_right = self._prepare(self.n)
            sorting_network.sort_columns(c, self.rows, self.n, self.key, self.lanes)
            with c.when(in_tiles):
                self._tiles(lambda at: self._write_tile(group.index, lines, at))
            with c.when(c.negation(in_tiles)):
                self._elements(group.index, lines, lambda at, place: self._show(self._load(place), at))
            for needed, put in put_right:
                with c.when(needed), c.loop(0, lines) as lane:
                    put(self._start(c.add(group.index, lane.index)))

    def _tiles(self, body: Callable[[Ref], None]) -> None:
        """``body`` at the first rows of tiles; the last one may overlap the one before it."""
        c = self.c
        with c.loop(0, self.n, self.lanes) as row:
            body(c.min(row.index, c.sub(self.n, self.lanes)))

    def _read_tile(self, line: Ref, lines: Ref, row: Ref) -> None:
        c = self.c
        with c.loop(0, lines) as lane, c.width(self.lanes):
            at = c.add(c.mul(c.add(line, lane.index), self.n), row)
            self.e.store(self._read(at), self._of_tile(lane.index))
        self._transpose(self._of_tile, lambda k: self._row(c.add(row, k)))

    def _write_tile(self, line: Ref, lines: Ref, row: Ref) -> None:
        c = self.c
        self._transpose(lambda k: self._row(c.add(row, k)), self._of_tile)
        with c.loop(0, lines) as lane, c.width(self.lanes):
            at = c.add(c.mul(c.add(line, lane.index), self.n), row)
            self._show(self._load(self._of_tile(lane.index)), at)

    def _transpose(self, source: Callable[[int], str], target: Callable[[int], str]) -> None:
        with self.c.width(self.lanes):
            transposed = transpose_in_registers(self.e, [self._load(source(k)) for k in range(self.lanes)])
            for k, vector in enumerate(transposed):
                self.e.store(vector, target(k))

    def _elements(self, line: Ref, lines: Ref, body: Callable[[Ref, str], None]) -> None:
        """``body(position, key's place)`` for each element of some lines."""
        c = self.c
        with c.loop(0, lines) as lane:
            start = self._start(c.add(line, lane.index))
            with c.loop(0, self.n) as j:
                place = c.at(self.rows, c.add(c.mul(j.index, self.lanes), lane.index), self.key.itemsize)
                body(c.add(start, c.mul(j.index, self.inner)), place)

    # ---- a line in all lanes

    def _spread(self) -> None:
        c, e, lanes = self.c, self.e, self.lanes
        count = c.div(c.add(self.n, lanes - 1), lanes)
        rows = sorting_network.power_above(c, count)
        whole = c.div(self.n, lanes)
        dense = c.compare("eq", self.inner, 1)
        with c.loop("%begin", "%end") as line:
            start = self._start(line.index)
            self._fill(whole, rows, (-np.inf if self.descending else np.inf) if self.floats else self.largest)
            with c.when(dense), c.loop(0, whole) as row, c.width(lanes):
                e.store(self._read(c.add(start, c.mul(row.index, lanes))), self._row(row.index))
            first = c.choose(dense, c.mul(whole, lanes), 0)
            with c.loop(first, self.n) as j:
                key = self._read(c.add(start, c.mul(j.index, self.inner)))
                e.store(key, c.at(self.rows, j.index, self.key.itemsize))
            put_right = self._prepare(rows)
            sorting_network.sort_columns(c, self.rows, count, self.key, lanes)
            sorting_network.merge_lanes(c, self.rows, rows, self.key, lanes)
            with c.loop(0, rows, lanes) as row:
                self._transpose(lambda k: self._row(c.add(row.index, k)), self._of_tile)
                with c.loop(0, lanes) as lane:
                    self._write_run(start, lane.index, c.add(c.mul(lane.index, rows), row.index), dense)
            for needed, put in put_right:
                with c.when(needed):
                    put(start)

    def _write_run(self, start: Ref, lane: Ref, first: Ref, dense: str | bool) -> None:
        """The elements from ``first`` on that a row of the tile has."""
        c = self.c
        whole = c.both(dense, c.compare("sle", c.add(first, self.lanes), self.n))
        with c.when(whole), c.width(self.lanes):
            self._show(self._load(self._of_tile(lane)), c.add(start, first))
        with c.when(c.negation(whole)), c.loop(0, c.min(c.sub(self.n, first), self.lanes)) as j:
            place = c.at(self._of_tile(lane), j.index, self.key.itemsize)
            self._show(self._load(place), c.add(start, c.mul(c.add(first, j.index), self.inner)))

    # ---- a line in the output

    def _partition(self) -> None:
        c, e, lanes = self.c, self.e, self.lanes
        with c.loop("%begin", "%end") as line:
            start = self._start(line.index)

            def keys(j: Ref, mask: Val | None, seen: Sequence[Val]) -> list[Val]:
                """Store a vector of keys; what has been seen of numbers that a key does not tell."""
                value = self._read(c.add(start, j), mask)
                special: list[Val] = []
                if self.floats:
                    value, special = self._prepared(value)
                e.store(value, self._of_out(c.add(start, j)), mask)
                return [e.or_(a, b if mask is None else e.and_(b, mask)) for a, b in zip(seen, special)]

            with c.width(lanes):
                none = e.splat(e.const(False, dt.bool_, 1))
                whole = c.mul(c.div(self.n, lanes), lanes)
                with c.loop(0, whole, lanes, [none] * 3 if self.floats else []) as at:
                    at.next = keys(at.index, None, at.carried)
                seen = at.carried
                e.mask = c.lanes_below(c.sub(self.n, whole))
                seen = keys(whole, e.mask, seen)
                e.mask = None
            quicksort.sort_run(c, self._of_out(start), "%scratch", self.n, self.key, lanes)
            if self.descending or self._is_unsigned:
                c.vector_loop(start, c.add(start, self.n), lanes, self._show_key)
            for needed, put in self._restore_special_values(seen):
                with c.when(needed):
                    put(start)

    def _show_key(self, position: Ref, mask: Val | None) -> None:
        self._show(self.e.load(self._of_out(position), self.key, mask), position, mask)

    # ---- NaN and zeros

    def _prepare(self, rows: Ref) -> list[tuple[str, Callable[[Ref], None]]]:
        """Turn floats that were read into keys.  Gives what puts right a sorted line that begins at some position, and
        whether any of the lines may need it."""
        if not dt.is_float(self.dtype):
            return []
        c, e = self.c, self.e
        with c.width(self.lanes):
            none = e.splat(e.const(False, dt.bool_, 1))
            with c.loop(0, rows, 1, [none, none, none]) as row:
                key, special = self._prepared(self._load(self._row(row.index)))
                row.next = [e.or_(a, b) for a, b in zip(row.carried, special)]
                e.store(key, self._row(row.index))
            return self._restore_special_values(row.carried)

    def _restore_special_values(self, seen: Sequence[Val]) -> list[tuple[str, Callable[[Ref], None]]]:
        """What puts right a line in which numbers were seen (see ``_prepared``), and whether it may need it."""
        if not seen:
            return []
        nan, zero, negative_zero = (self.e.any(v) for v in seen)
        both = str(self.c.both(zero, negative_zero))
        return [*([(nan, self._place_nans)] if self.floats else []), (both, self._place_zeros)]

    def _prepared(self, value: Val) -> tuple[Val, list[Val]]:
        """The keys of floats, and where there is NaN, 0.0, and -0.0."""
        e = self.e
        bits = e.bitcast(value, self.bits)
        is_nan = e.gt(e.and_(bits, self.largest), self._infinity)
        special = [is_nan, e.eq(bits, 0), e.eq(bits, -self.largest - 1)]
        if self.floats:
            return e.select(is_nan, np.inf, e.neg(value) if self.descending else value), special
        bits = sorting_network.mirror_negatives(e, bits)
        return e.select(is_nan, self.largest, e.not_(bits) if self.descending else bits), special

    def _place_nans(self, start: Ref) -> None:
        """As many at the end as the line has."""
        c, e = self.c, self.e
        with c.loop(0, self.n, 1, [c.value(self.n)]) as j:
            is_nan = e.is_nan(self.x.value(c, c.add(start, c.mul(j.index, self.inner))))
            j.next = [e.sub(j.carried[0], e.convert(is_nan, dt.int64))]
        with c.loop(j.carried[0].ref, self.n) as j:
            e.store(e.const(np.nan, self.dtype, 1), self._of_out(c.add(start, c.mul(j.index, self.inner))))

    def _place_zeros(self, start: Ref) -> None:
        """Zeros in the order in which they come in the line."""
        c, e = self.c, self.e
        with c.loop(0, self.n, 1, [c.value(0)]) as j:
            key = self._order(self.x.value(c, c.add(start, c.mul(j.index, self.inner))))
            j.next = [e.add(j.carried[0], e.convert(e.lt(key, -1), dt.int64))]
        with c.loop(0, self.n, 1, [j.carried[0]]) as j:
            value = self.x.value(c, c.add(start, c.mul(j.index, self.inner)))
            key = self._order(value)
            zero = e.or_(e.eq(key, -1), e.eq(key, 0))
            with c.when(zero.ref):
                e.store(value, self._of_out(c.add(start, c.mul(j.carried[0].ref, self.inner))))
            j.next = [e.add(j.carried[0], e.convert(zero, dt.int64))]

    def _order(self, value: Val) -> Val:
        """Integers in the order of floats; zeros are -1 and 0."""
        e = self.e
        bits = e.bitcast(value, self.bits)
        order, is_nan = sorting_network.mirror_negatives(e, bits), e.gt(e.and_(bits, self.largest), self._infinity)
        return e.select(is_nan, self.largest, e.not_(order) if self.descending else order)

    # ---- places and keys

    def _start(self, line: Ref) -> Ref:
        """The position of a line's first element."""
        c = self.c
        if self.inner == 1:
            return c.mul(line, self.n)
        outer, inside = c.div(line, self.inner), c.rem(line, self.inner)
        return c.add(c.mul(c.mul(outer, self.n), self.inner), inside)

    def _row(self, row: Ref) -> str:
        return self.c.at(self.rows, self.c.mul(row, self.lanes), self.key.itemsize)

    def _of_tile(self, row: Ref) -> str:
        return self.c.at("%scratch", self.c.mul(row, self.lanes), self.key.itemsize)

    def _of_out(self, position: Ref) -> str:
        return self.c.at(self.out, position, self.dtype.itemsize)

    def _load(self, place: str) -> Val:
        return self.e.load(place, self.key)

    def _fill(self, begin: Ref, end: Ref, value: float) -> None:
        """A number in the rows [begin, end)."""
        with self.c.loop(begin, end) as row, self.c.width(self.lanes):
            self.e.store(self.e.splat(self.e.const(value, self.key, 1)), self._row(row.index))

    def _read(self, position: Ref, mask: Val | None = None) -> Val:
        """Elements as they go into rows: keys, but for floats, which are to be prepared."""
        e, value = self.e, self.x.value(self.c, position, mask)
        if dt.is_float(self.dtype):
            return e.bitcast(value, self.key)
        key = e.convert(value, self.key) if dt.is_bool(self.dtype) else e.bitcast(value, self.key)
        key = e.xor(key, -self.largest - 1) if self._is_unsigned else key
        return e.not_(key) if self.descending else key

    def _show(self, key: Val, position: Ref, mask: Val | None = None) -> None:
        """Store the elements that have these keys."""
        e = self.e
        if self.floats:
            value = e.neg(key) if self.descending else key
        else:
            key = e.not_(key) if self.descending else key
            if dt.is_float(self.dtype):
                value = e.bitcast(sorting_network.mirror_negatives(e, key), self.dtype)
            elif dt.is_bool(self.dtype):
                value = e.ne(key, 0)
            else:
                value = e.bitcast(e.xor(key, -self.largest - 1) if self._is_unsigned else key, self.dtype)
        e.store(value, self._of_out(position), mask)

    @property
    def _infinity(self) -> int:
        """The bits of infinity."""
        return int(np.array(np.inf, self.dtype).view(self.bits))

    @property
    def _is_unsigned(self) -> bool:
        return not (dt.is_signed(self.dtype) or dt.is_bool(self.dtype))
