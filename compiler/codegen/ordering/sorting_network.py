"""Sorting vectors in memory by networks of minima and maxima: no branch depends on the data.

A *row* is a vector of signed integers, or of floats without NaN; ``sort_columns`` sorts each lane by itself, down the
rows.  Sixteen rows at a time are sorted in registers.  Then sorted runs are merged two by two: the first step compares
a run with the mirror image of the other one, the next ones rows at half the distance, a quarter, and so on down to
neighbours.  Four such levels at a time are done on the rows that they bring together, in registers.  ``merge_lanes``
goes on in the same way, where the runs are the columns themselves.

Every level leaves the smaller key at the lower place, so the largest keys behind the last row never move: what would
touch nothing else is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val, mangle, type_text
from hybridflow.compiler.ir import dtypes as dt

ROWS = 16  # that are in registers at once
_LEVELS = 4  # log2 of them
_BLOCK = 256  # rows that are done with while they lie in the innermost cache


def mirror_negatives(e: Emitter, bits: Val) -> Val:
    """Negative floats in reverse: their bits as integers in the order of the numbers, and back."""
    return e.xor(bits, e.and_(e.ashr(bits, 8 * bits.dtype.itemsize - 1), int(np.iinfo(bits.dtype).max)))


def sort_columns(c: KernelBuilder, rows: str, count: Ref, key: np.dtype, lanes: int) -> None:
    """Sort the lanes of the ``count`` rows of ``lanes`` keys at ``rows``.  Memory reaches to the next power of two, at
    least ROWS, and is filled with the largest key there."""
    if not isinstance(count, int) or count > _BLOCK:
        symbol = rows_function(c.e, "sort_columns", key, lanes, _write_sort)
        c.e.line(f"call void {symbol}(ptr {rows}, i64 {count})")
        return
    small = rows_function(c.e, "sort_rows", key, lanes, _write_sort_rows)
    c.e.line(f"call void {small}(ptr {rows}, i64 {count})")
    for level in range(_LEVELS + 1, _BLOCK.bit_length()):
        _merge_stage(c, rows, count, level, True, key, lanes)


def merge_lanes(c: KernelBuilder, rows: str, count: Ref, key: np.dtype, lanes: int) -> None:
    """Merge the sorted lanes of ``count`` rows, a power of two not below ROWS: lane 0 then has the smallest keys, in
    order, and so on."""
    level = bits(c, count)
    for step in range(lanes.bit_length() - 1):
        symbol = rows_function(c.e, f"cross_lanes{step}", key, lanes, functools.partial(_write_cross_lanes, step=step))
        c.e.line(f"call void {symbol}(ptr {rows}, i64 {count})")
        _merge_stage(c, rows, count, level, False, key, lanes)


def _merge_stage(c: KernelBuilder, rows: str, count: Ref, level: Ref, flip: bool, key: np.dtype, lanes: int) -> None:
    """Merge runs that are together 2**level rows; with ``flip`` the second ones are taken from their ends.  Where it is
    known how many rows there are, nothing but what they need is written."""
    e = c.e
    if not isinstance(count, int) or not isinstance(level, int):
        name = "merge_flipped" if flip else "merge_straight"
        write = functools.partial(_write_stage, flip=flip)
        symbol = rows_function(e, name, key, lanes, write, "i64 %count, i64 %level")
        e.line(f"call void {symbol}(ptr {rows}, i64 {count}, i64 {level})")
        return
    size, first = 1 << level, (level - 1) % _LEVELS + 1
    limit = (count + size // 2 - 1) // size * size  # where the second run has no row, the first one is in order
    if limit > 0:
        _call_levels(e, rows, limit, size, first, flip, key, lanes)
        if level - first == _LEVELS:
            symbol = rows_function(e, "last_four", key, lanes, _write_last_four, "i64 %limit")
            e.line(f"call void {symbol}(ptr {rows}, i64 {limit})")
        elif level > first:
            symbol = rows_function(e, "last_levels", key, lanes, _write_last_levels, "i64 %limit, i64 %left")
            e.line(f"call void {symbol}(ptr {rows}, i64 {limit}, i64 {level - first})")


def _call_levels(
    e: Emitter, rows: str, limit: Ref, size: Ref, levels: int, flip: bool, key: np.dtype, lanes: int
) -> None:
    name = f"first_levels{levels}{'f' if flip else 's'}"
    write = functools.partial(_write_first_levels, levels=levels, flip=flip)
    symbol = rows_function(e, name, key, lanes, write, "i64 %limit, i64 %size")
    e.line(f"call void {symbol}(ptr {rows}, i64 {limit}, i64 {size})")


def power_above(c: KernelBuilder, count: Ref) -> Ref:
    """The least power of two that is neither below ``count`` nor below ROWS."""
    if isinstance(count, int):
        return 1 << max(count - 1, ROWS - 1).bit_length()
    return c.value(_shift(c, 1, bits(c, c.max(count, ROWS)))).ref


def bits(c: KernelBuilder, count: Ref) -> Ref:
    """How many bits count - 1 has."""
    if isinstance(count, int):
        return (count - 1).bit_length()
    c.e.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    zeros = c.e.fresh("i")
    c.e.line(f"{zeros} = call i64 @llvm.ctlz.i64(i64 {c.sub(count, 1)}, i1 false)")
    return c.sub(64, zeros)


def _shift(c: KernelBuilder, value: Ref, by: Ref) -> Ref:
    if isinstance(value, int) and isinstance(by, int):
        return value << by
    return c.e.shl(c.e.const(value, dt.int64, 1) if isinstance(value, int) else c.value(value), c.value(by)).ref


def rows_function(
    e: Emitter,
    name: str,
    key: np.dtype,
    lanes: int,
    write: Callable[[NetworkRows], str | None],
    parameters: str = "i64 %count",
) -> str:
    """The function ``name`` of ``ptr %rows`` and ``parameters``, of which a module holds one.  ``write`` gives the i64
    that it returns, if any."""
    symbol = f"@{name}.{mangle(key, lanes)}"
    if symbol not in e.globals:
        inner = Emitter(e.target, lanes, e.fastmath)
        inner.globals[symbol] = ""  # it may call itself
        result = write(NetworkRows(inner, key, lanes))
        del inner.globals[symbol]
        e.declares |= inner.declares
        lines = "\n".join(inner.lines)
        kind, returned = ("void", "ret void") if result is None else ("i64", f"ret i64 {result}")
        head = f"define internal {kind} {symbol}(ptr %rows, {parameters}) noinline #0 {{"
        e.globals.update(inner.globals)
        e.globals[symbol] = f"{head}\nentry:\n{lines}\n{returned}\n}}"
    return symbol


def in_order(e: Emitter, a: Val, b: Val) -> tuple[Val, Val]:
    """The smaller and the larger one of each lane, of equal floats (0.0 and -0.0) one and the other."""
    if not dt.is_float(a.dtype):
        return e.minimum(a, b), e.maximum(a, b)
    kind = _AVX.get(a.dtype)
    if kind and e.target.triple.startswith("x86") and e.target.vector_bits >= 256 == 8 * a.width * a.dtype.itemsize:
        # What the comparison and selections below become in any case, in fewer steps for the code generator.
        return _avx(e, "min", kind, a, b), _avx(e, "max", kind, b, a)
    with e.strict():
        less = e.lt(a, b)
        return e.select(less, a, b), e.select(less, b, a)


_AVX = {dt.float32: "ps", dt.float64: "pd"}


def _avx(e: Emitter, which: str, kind: str, a: Val, b: Val) -> Val:
    """x86's minimum and maximum: the second one where neither is less, or greater."""
    name, vector = f"@llvm.x86.avx.{which}.{kind}.256", type_text(a.dtype, a.width)
    e.declare(f"declare {vector} {name}({vector}, {vector})")
    return e.assign(f"call {vector} {name}({vector} {a.ref}, {vector} {b.ref})", a.dtype, a.width)


class NetworkRows:
    """What the functions are written with."""

    def __init__(self, e: Emitter, key: np.dtype, lanes: int) -> None:
        self.e, self.key, self.lanes, self.c = e, key, lanes, KernelBuilder(e)

    def at(self, row: Ref, base: str = "%rows") -> str:
        return self.c.at(base, self.c.mul(row, self.lanes), self.key.itemsize)

    def from_row(self, row: Ref, step: Ref, count: int) -> list[str]:
        """The addresses of ``count`` rows from ``row`` on, each ``step`` bytes after the one before."""
        result = [self.at(row)]
        while len(result) < count:
            result.append(self.c.at(result[-1], step, 1))
        return result

    def load(self, places: Sequence[str]) -> list[Val]:
        return [self.e.load(place, self.key) for place in places]

    def store(self, values: Sequence[Val], places: Sequence[str]) -> None:
        for value, place in zip(values, places):
            self.e.store(value, place)

    def exchange(self, values: list[Val], i: int, j: int) -> None:
        """The smaller one first."""
        values[i], values[j] = in_order(self.e, values[i], values[j])

    def halve(self, values: list[Val], distance: int) -> None:
        """The levels from ``distance`` on, among neighbours of that many rows."""
        while distance:
            for i in range(len(values)):
                if not i & distance:
                    self.exchange(values, i, i + distance)
            distance //= 2


def _write_sort(r: NetworkRows) -> None:
    c, e = r.c, r.e
    small = rows_function(e, "sort_rows", r.key, r.lanes, _write_sort_rows)
    with c.loop(0, "%count", _BLOCK) as block:
        base, remainder = r.at(block.index), c.min(c.sub("%count", block.index), _BLOCK)
        e.line(f"call void {small}(ptr {base}, i64 {remainder})")
        for level in range(_LEVELS + 1, _BLOCK.bit_length()):
            _merge_stage(c, base, remainder, level, True, r.key, r.lanes)
    with c.loop(_BLOCK.bit_length(), c.add(bits(c, c.max("%count", 1)), 1)) as at:
        _merge_stage(c, "%rows", "%count", at.index, True, r.key, r.lanes)


def _write_sort_rows(r: NetworkRows) -> None:
    """Sort each ROWS rows of %count, by Batcher's network of odd and even merges."""
    with r.c.loop(0, "%count", ROWS) as block:
        places = [r.at(r.c.add(block.index, k)) for k in range(ROWS)]
        values = r.load(places)
        for i, j in _odd_even(ROWS):
            r.exchange(values, i, j)
        r.store(values, places)


def _odd_even(n: int) -> list[tuple[int, int]]:
    """Batcher's odd-even merge sort of n places, a power of two."""
    result, p = [], 1
    while p < n:
        k = p
        while k:
            for j in range(k % p, n - k, 2 * k):
                for i in range(min(k, n - j - k)):
                    if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                        result.append((i + j, i + j + k))
            k //= 2
        p *= 2
    return result


def _write_merge_rows(r: NetworkRows) -> None:
    places = [r.at(r.c.mul("%stride", k)) for k in range(ROWS)]
    values = r.load(places)
    r.halve(values, ROWS // 2)
    r.store(values, places)


def _write_stage(r: NetworkRows, flip: bool) -> None:
    """Blocks of 2**%level rows: one to four levels, so that the others can be done four by four."""
    c, e = r.c, r.e
    size, half = _shift(c, 1, "%level"), _shift(c, 1, c.sub("%level", 1))
    # Where the second run has no row, the first one is in order.
    blocks = e.lshr(c.value(c.add("%count", c.sub(half, 1))), c.value("%level")).ref
    limit = c.mul(blocks, size)
    first = c.add(e.and_(c.value(c.sub("%level", 1)), _LEVELS - 1).ref, 1)
    last = rows_function(e, "last_levels", r.key, r.lanes, _write_last_levels, "i64 %limit, i64 %left")
    with c.when(c.compare("sgt", limit, 0)):
        for levels in range(1, _LEVELS + 1):
            with c.when(c.compare("eq", first, levels)):
                _call_levels(e, "%rows", limit, size, levels, flip, r.key, r.lanes)
        e.line(f"call void {last}(ptr %rows, i64 {limit}, i64 {c.sub('%level', first)})")


def _write_last_levels(r: NetworkRows) -> None:
    """Four by four; the last eight block by block."""
    c, limit, left = r.c, "%limit", "%left"
    with c.loop(0, c.sub(left, 2 * _LEVELS), _LEVELS) as done:
        distance = _shift(c, 1, c.sub(c.sub(left, _LEVELS), done.index))
        with c.loop(0, limit, c.mul(distance, ROWS)) as block, c.loop(0, distance) as row:
            _merge(r, c.add(block.index, row.index), distance)
    two = c.compare("sge", left, 2 * _LEVELS)
    with c.when(two), c.loop(0, limit, ROWS * ROWS) as block:
        with c.loop(0, ROWS) as row:
            _merge(r, c.add(block.index, row.index), ROWS)
        with c.loop(0, ROWS) as row:
            _merge(r, c.add(block.index, c.mul(row.index, ROWS)), 1)
    one = c.both(c.negation(two), c.compare("sge", left, _LEVELS))
    with c.when(one):
        _write_last_four(r)


def _write_last_four(r: NetworkRows) -> None:
    with r.c.loop(0, "%limit", ROWS) as block:
        _merge(r, block.index, 1)


def _merge(r: NetworkRows, row: Ref, distance: Ref) -> None:
    """Four levels of the ROWS rows from ``row`` at that distance."""
    symbol = rows_function(r.e, "merge_rows", r.key, r.lanes, _write_merge_rows, "i64 %stride")
    r.e.line(f"call void {symbol}(ptr {r.at(row)}, i64 {distance})")


def _write_first_levels(r: NetworkRows, levels: int, flip: bool) -> None:
    """The first levels of blocks of %size rows."""
    c, half, limit, size = r.c, 1 << levels - 1, "%limit", "%size"
    apart = r.e.lshr(c.value(size), levels).ref
    step = c.mul(apart, r.lanes * r.key.itemsize)
    with c.loop(0, limit, size) as block, c.loop(0, apart) as row:
        begin = c.add(block.index, row.index)
        if flip:
            end = c.sub(c.sub(c.add(block.index, size), 1), row.index)
            places = r.from_row(begin, step, half) + r.from_row(c.sub(end, c.mul(apart, half - 1)), step, half)
        else:
            places = r.from_row(begin, step, 2 * half)
        values = r.load(places)
        if flip:
            for k in range(half):
                r.exchange(values, k, 2 * half - 1 - k)
        r.halve(values, half // 2 if flip else half)
        r.store(values, places)


def _write_cross_lanes(r: NetworkRows, step: int) -> None:
    """Runs of 2**step lanes: first pairs of rows and of lanes, then the lanes of each row; rows come next."""
    c, e, lanes = r.c, r.e, r.lanes
    mirror = [lane ^ (2 << step) - 1 for lane in range(lanes)]
    low = _lanes_without(e, 1 << step)
    with c.loop(0, c.div("%count", 2)) as row:
        places = [r.at(row.index), r.at(c.sub(c.sub("%count", 1), row.index))]
        a, b = r.load(places)
        b = e.shuffle(b, None, mirror)
        least, most = in_order(e, a, b)
        values = [e.select(low, least, most), e.shuffle(e.select(low, most, least), None, mirror)]
        for bit in reversed(range(step)):
            below = _lanes_without(e, 1 << bit)
            for k, value in enumerate(values):
                other = e.shuffle(value, None, [lane ^ 1 << bit for lane in range(lanes)])
                values[k] = e.select(below, *in_order(e, value, other))
        r.store(values, places)


def _lanes_without(e: Emitter, bit: int) -> Val:
    """The mask of the lanes whose numbers lack a bit."""
    return e.eq(e.and_(e.iota(dt.int32), bit), 0)
