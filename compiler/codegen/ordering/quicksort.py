"""Sorting a long run of keys where it lies, by parting it until its pieces are few keys, which a network sorts.

A run is parted by a pivot, a vector at a time: AVX-512 presses the lanes whose keys are less together, and the others;
AVX2 puts them into an order from a table, the lanes that are less first.
The outermost vectors wait in scratch memory, so there is always room at both ends for what the next few vectors have.

The pivot is a median of medians of keys from all over the run.  Where nothing is less than it, all that equals it comes
first and is done, so equal keys cost nothing.  A run whose pivots were bad too often is parted in the middle of what
keys there are between its least and its largest: each such step takes a bit off their difference, whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val, mangle, type_text
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.ordering import sorting_network
from hybridflow.compiler.codegen.ordering.sorting_network import NetworkRows, in_order, mirror_negatives, rows_function
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.target import Target

NETWORK_KEYS = 1024  # keys that a network sorts
_TOGETHER = 8  # vectors that are read at once
_BAD = 2  # times as many steps as halving takes are done before the middle of the keys is taken
_TABLE_BITS = 256  # of vectors whose lanes are put into order by AVX2
_SAMPLES = 9  # vectors of keys of which the pivot is a median


def partitions_vectors(target: Target, key: np.dtype) -> bool:
    """Whether the target brings chosen lanes of vectors of ``key`` together."""
    able = target.masked or target.vector_bits == _TABLE_BITS
    return able and target.triple.startswith("x86") and key.itemsize >= 4


def min_partitioned(target: Target, key: np.dtype) -> int:
    """How many keys a line has at least that is parted, rather than sorted by a network as a whole.  Where parting goes
    by a table a network is as quick while a second-level cache has the line, its copy and others' data."""
    return NETWORK_KEYS + 1 if target.masked else max(NETWORK_KEYS + 1, target.l2 // 4 // key.itemsize)


def sort_run(c: KernelBuilder, keys: str, scratch: str, count: Ref, key: np.dtype, lanes: int) -> None:
    """Sort ``count`` keys; ``scratch`` has room for FEW."""
    symbol = _function(c.e, "sort_run", key, lanes, _write_sort, "ptr %scratch, i64 %count, i64 %depth")
    length = sorting_network.bits(c, c.max(count, 2))
    c.e.line(f"call void {symbol}(ptr {keys}, ptr {scratch}, i64 {count}, i64 {c.mul(length, _BAD)})")


def _function(
    e: Emitter, name: str, key: np.dtype, lanes: int, write: Callable[[_Keys], str | None], parameters: str
) -> str:
    return rows_function(e, name, key, lanes, lambda rows: write(_Keys(rows.e, key, lanes)), parameters)


class _Keys(NetworkRows):
    """What the functions are written with."""

    def __init__(self, e: Emitter, key: np.dtype, lanes: int) -> None:
        super().__init__(e, key, lanes)
        self.bits, self.unsigned = (np.dtype(f"{kind}{8 * key.itemsize}") for kind in ("int", "uint"))
        self.type = type_text(key)

    def place(self, base: str, position: Ref) -> str:
        return self.c.at(base, position, self.key.itemsize)

    # ---- lanes

    def first(self, count: Ref) -> Val:
        """The mask of the first ``count`` lanes, of no more than there are."""
        e, lanes = self.e, self.lanes
        with self.c.width(1):
            bits = e.lshr(e.const((1 << lanes) - 1, dt.int64), self.c.value(self.c.sub(lanes, count)))
        narrow = e.fresh("m")
        e.line(f"{narrow} = trunc i64 {bits.ref} to i{lanes}")
        return e.assign(f"bitcast i{lanes} {narrow} to <{lanes} x i1>", dt.bool_, lanes)

    def compressed(self, value: Val, mask: Val) -> Val:
        """The lanes that a mask has, in the first lanes."""
        vector, lanes = type_text(self.key, self.lanes), f"<{self.lanes} x i1>"
        name = f"@llvm.experimental.vector.compress.{mangle(self.key, self.lanes)}"
        self.e.declare(f"declare {vector} {name}({vector}, {lanes}, {vector})")
        text = f"call {vector} {name}({vector} {value.ref}, {lanes} {mask.ref}, {vector} poison)"
        return self.e.assign(text, self.key, self.lanes)

    def partition(self, value: Val, mask: Val) -> Val:
        """The lanes that a mask has, and behind them the others."""
        e, lanes, words = self.e, self.lanes, self.key.itemsize // 4
        numbers = np.arange(1 << lanes)[:, None] >> np.arange(lanes)
        orders = np.argsort(~numbers & 1, axis=1, kind="stable")
        table = (orders[:, :, None] * words + np.arange(words)).astype(np.uint8)
        at = self.c.at(e.table(table.ravel(), f"parted{lanes}"), self.c.mul(self.c.bits_of(mask), lanes * words), 1)
        order = e.convert(e.load(at, dt.uint8, width=lanes * words), dt.int32)
        name, vector, keys = "@llvm.x86.avx2.permd", type_text(dt.int32, lanes * words), type_text(self.key, lanes)
        e.declare(f"declare {vector} {name}({vector}, {vector})")
        whole = e.assign(f"bitcast {keys} {value.ref} to {vector}", dt.int32, lanes * words)
        moved = e.assign(f"call {vector} {name}({vector} {whole.ref}, {vector} {order.ref})", dt.int32, lanes * words)
        return e.assign(f"bitcast {vector} {moved.ref} to {keys}", self.key, lanes)

    def store_first(self, value: Val, place: str, count: Ref) -> None:
        """Store the first ``count`` lanes, of as many as there are."""
        c, e = self.c, self.e
        if e.target.masked:
            e.store(value, place, self.first(c.max(c.min(count, self.lanes), 0)))
            return
        whole = c.compare("sge", count, self.lanes)
        with c.when(whole):
            e.store(value, place)
        with c.when(c.both(c.negation(whole), c.compare("sgt", count, 0))):
            e.store(value, place, self.first(count))

    # ---- keys as integers in their order

    @property
    def largest(self) -> int | float:
        return np.inf if dt.is_float(self.key) else int(np.iinfo(self.key).max)

    @property
    def last(self) -> int:
        """The integer of the largest key."""
        return int(np.array(self.largest, self.key).view(self.bits))

    def ordered(self, key: Val) -> Val:
        """Of zeros that of the positive one."""
        if not dt.is_float(self.key):
            return key
        with self.e.strict():
            return mirror_negatives(self.e, self.e.bitcast(self.e.add(key, 0.0), self.bits))

    def unordered(self, number: Val) -> Val:
        return self.e.bitcast(mirror_negatives(self.e, number), self.key) if dt.is_float(self.key) else number


def _write_sort(r: _Keys) -> None:
    """Part the run until it is short; sort the shorter part by this function, and go on with the longer one."""
    c, e = r.c, r.e
    part = _function(e, "part_run", r.key, r.lanes, _write_partition, f"ptr %scratch, i64 %count, {r.type} %pivot")
    few = _function(e, "sort_few", r.key, r.lanes, _write_few, "ptr %scratch, i64 %count")

    def parted(keys: str, count: str, pivot: Val) -> str:
        result = e.fresh("low")
        e.line(f"{result} = call i64 {part}(ptr {keys}, ptr %scratch, i64 {count}, {r.type} {pivot.ref})")
        return result

    head, long, short, done = (e.new_label(hint) for hint in ("head", "long", "short", "done"))
    again, alike, apart = (e.new_label(hint) for hint in ("again", "alike", "apart"))
    keys, count, depth = (e.fresh(hint) for hint in ("keys", "count", "depth"))
    e.branch(head)
    e.label(head)
    at = len(e.lines)
    e.branch_if(str(c.compare("sgt", count, NETWORK_KEYS)), long, short)
    e.label(short)
    e.line(f"call void {few}(ptr {keys}, ptr %scratch, i64 {count})")
    e.branch(done)
    e.label(long)
    pivot, settled = _pivot(r, keys, count, depth)
    low = parted(keys, count, pivot)
    e.branch_if(str(c.compare("eq", low, 0)), alike, apart)

    e.label(alike)
    last, following = _following(r, pivot)
    more = e.new_label("more")
    e.branch_if(str(c.either(settled, last.ref)), done, more)
    e.label(more)
    equal = parted(keys, count, following)
    alike_keys, alike_rest = r.place(keys, equal), c.sub(count, equal)
    e.branch(again)

    e.label(apart)
    high, remainder = r.place(keys, low), c.sub(count, low)
    left = c.compare("slt", low, remainder)
    deeper = c.sub(depth, 1)
    symbol = f"@sort_run.{mangle(r.key, r.lanes)}"
    e.line(
        f"call void {symbol}(ptr {c.choose_pointer(left, keys, high)}, ptr %scratch, "
        f"i64 {c.choose(left, low, remainder)}, i64 {deeper})"
    )
    apart_keys, apart_rest = c.choose_pointer(left, high, keys), c.choose(left, remainder, low)
    e.branch(again)
    e.label(again)
    next_keys, next_count = e.fresh("keys"), e.fresh("count")
    e.line(f"{next_keys} = phi ptr [ {alike_keys}, %{more} ], [ {apart_keys}, %{apart} ]")
    e.line(f"{next_count} = phi i64 [ {alike_rest}, %{more} ], [ {apart_rest}, %{apart} ]")
    next_depth = c.sub(depth, 1)
    e.branch(head)
    e.lines[at:at] = [
        f"  {keys} = phi ptr [ %rows, %entry ], [ {next_keys}, %{again} ]",
        f"  {count} = phi i64 [ %count, %entry ], [ {next_count}, %{again} ]",
        f"  {depth} = phi i64 [ %depth, %entry ], [ {next_depth}, %{again} ]",
    ]
    e.label(done)


# ---- pivots


def _pivot(r: _Keys, keys: str, count: str, depth: str) -> tuple[Val, str]:
    """The key to part a run by, and whether all keys are known to be alike if nothing is less than it."""
    c, e = r.c, r.e
    usual, seldom, after = (e.new_label(hint) for hint in ("usual", "seldom", "after"))
    e.branch_if(str(c.compare("sgt", depth, 0)), usual, seldom)
    e.label(usual)
    median = _median(r, keys, count)
    ends = [(median, e.block)]
    e.branch(after)
    e.label(seldom)
    middle = _middle(r, keys, count)
    ends.append((middle, e.block))
    e.branch(after)
    e.label(after)
    return e.phi(*ends), str(c.compare("sle", depth, 0))


def _median(r: _Keys, keys: str, count: str) -> Val:
    """A key near the median of the run: medians of three, of medians of three, in all lanes and then across lanes."""
    c, e = r.c, r.e
    step = c.div(c.sub(count, r.lanes), _SAMPLES - 1)
    samples = [e.load(r.place(keys, c.mul(step, k)), r.key) for k in range(_SAMPLES)]
    while len(samples) > 1:
        samples = [_middle_of(e, *samples[k : k + 3]) for k in range(0, len(samples), 3)]
    (vector,) = samples
    turned = [
        e.shuffle(vector, None, [(lane + k * (r.lanes // 3)) % r.lanes for lane in range(r.lanes)]) for k in (1, 2)
    ]
    return e.extract(_middle_of(e, vector, *turned), 0)


def _middle_of(e: Emitter, a: Val, b: Val, d: Val) -> Val:
    low, high = in_order(e, a, b)
    return in_order(e, low, in_order(e, high, d)[0])[1]


def _middle(r: _Keys, keys: str, count: str) -> Val:
    """The key in the middle between the least and the largest one, above the least where these differ."""
    c, e = r.c, r.e
    first = e.load_splat(keys, r.key)
    whole = c.mul(c.div(count, r.lanes), r.lanes)
    with c.loop(0, whole, r.lanes, [first, first]) as at:
        low, high = at.carried
        value = e.load(r.place(keys, at.index), r.key)
        at.next = [in_order(e, low, value)[0], in_order(e, high, value)[1]]
    low, high = at.carried
    remainder = c.sub(count, r.lanes)  # some are read twice
    value = e.load(r.place(keys, remainder), r.key)
    low, high = in_order(e, low, value)[0], in_order(e, high, value)[1]
    distance = r.lanes // 2
    while distance:
        lanes = [lane ^ distance for lane in range(r.lanes)]
        low = in_order(e, low, e.shuffle(low, None, lanes))[0]
        high = in_order(e, high, e.shuffle(high, None, lanes))[1]
        distance //= 2
    with c.width(1):
        a, b = (r.ordered(e.extract(v, 0)) for v in (low, high))
        # Half of the difference, rounded up, as it may be too large for a signed number.
        half = e.lshr(e.bitcast(e.sub(b, a), r.unsigned), 1)
        odd = e.and_(e.bitcast(e.sub(b, a), r.unsigned), 1)
        return r.unordered(e.add(a, e.bitcast(e.add(half, odd), r.bits)))


def _following(r: _Keys, pivot: Val) -> tuple[Val, Val]:
    """Whether no key is larger, and the next larger one if there is."""
    e = r.e
    with r.c.width(1):
        number = r.ordered(pivot)
        return e.eq(number, r.last), r.unordered(e.add(number, 1))


# ---- parting


def _write_partition(r: _Keys) -> str:
    """Move what is less than %pivot to the front of the run, and say how many keys that are."""
    c, e = r.c, r.e
    together = _TOGETHER * r.lanes
    pivot = e.splat(Val("%pivot", r.key, 1))
    inner = c.sub("%count", 2 * together)  # keys between those that wait
    for k in range(_TOGETHER):
        for begin, place in ((0, 0), (c.sub("%count", together), together)):
            value = e.load(r.place("%rows", c.add(begin, k * r.lanes)), r.key)
            e.store(value, r.place("%scratch", place + k * r.lanes))

    def write(value: Val, read: Ref, low: Ref) -> Ref:
        """Store a vector when ``read`` keys have been written; the new number of low ones among them.  There is room
        for a whole one at both ends."""
        less = e.lt(value, pivot)
        count, end = c.lanes_of(less), c.sub("%count", c.sub(read, low))
        if e.target.masked:
            more = e.not_(less)
            others = c.lanes_of(more)
            e.store(r.compressed(value, less), r.place("%rows", low))
            e.store(r.compressed(value, more), r.place("%rows", c.sub(end, others)), r.first(others))
        else:
            parted = r.partition(value, less)
            e.store(parted, r.place("%rows", low))
            e.store(parted, r.place("%rows", c.sub(end, r.lanes)))
        return c.add(low, count)

    def step(begin: Ref, end: Ref, vectors: int, left: Val, low: Val) -> tuple[Val, Val]:
        """Part the keys read from ``begin`` to ``end``, so many vectors at a time from the end that has less room.
        ``left`` keys were read from the front."""
        size = vectors * r.lanes
        with c.loop(begin, end, size, [left, low]) as iteration:
            left, low = iteration.carried
            done = iteration.index  # keys that are written
            front = c.add(left.ref, together)
            back = c.sub("%count", c.add(c.sub(done, left.ref), together))
            room = c.sub(front, low.ref)
            other = c.sub(c.sub("%count", c.sub(done, low.ref)), back)
            first = c.compare("sle", room, other)
            at = c.choose(first, front, c.sub(back, size))
            values = [e.load(r.place("%rows", c.add(at, k * r.lanes)), r.key) for k in range(vectors)]
            written: Ref = low.ref
            for k, value in enumerate(values):
                written = write(value, c.add(done, k * r.lanes), written)
            iteration.next = [c.value(c.add(left.ref, c.choose(first, size, 0))), c.value(written)]
        return iteration.carried[0], iteration.carried[1]

    groups = c.mul(c.div(inner, together), together)
    whole = c.mul(c.div(inner, r.lanes), r.lanes)
    left, low = step(0, groups, _TOGETHER, c.value(0), c.value(0))
    left, low = step(groups, whole, 1, left, low)
    last = c.sub(inner, whole), c.add(left.ref, together)
    return str((_partition_last_compressed if e.target.masked else _partition_last)(r, pivot, last, whole, low.ref))


def _partition_last_compressed(r: _Keys, pivot: Val, last: tuple[Ref, Ref], done: Ref, low: Ref) -> Ref:
    """Part what is left, a number of keys from a place on and those that wait, when ``done`` keys between these are
    written, ``low`` of them in front.  Returns how many are in front in the end."""
    c, e = r.c, r.e

    def write(value: Val, mask: Val | None, read: Ref, low: Ref) -> Ref:
        less = e.lt(value, pivot)
        more = e.not_(less)
        if mask is not None:
            less, more = e.and_(less, mask), e.and_(more, mask)
        count, others = (c.lanes_of(lanes) for lanes in (less, more))
        e.store(r.compressed(value, less), r.place("%rows", low), r.first(count))
        end = c.sub("%count", c.sub(read, low))
        e.store(r.compressed(value, more), r.place("%rows", c.sub(end, others)), r.first(others))
        return c.add(low, count)

    count, begin = last
    remainder = r.first(count)
    written = write(e.load(r.place("%rows", begin), r.key, remainder), remainder, done, low)
    with c.loop(0, 2 * _TOGETHER * r.lanes, r.lanes, [c.value(written)]) as iteration:
        value = e.load(r.place("%scratch", iteration.index), r.key)
        iteration.next = [
            c.value(write(value, None, c.add(c.add(done, count), iteration.index), iteration.carried[0].ref))
        ]
    return iteration.carried[0].ref


def _partition_last(r: _Keys, pivot: Val, last: tuple[Ref, Ref], done: Ref, low: Ref) -> Ref:
    """The same where storing a part of a vector is dear: they are parted in scratch memory, where there is room, from
    both ends of a piece, and then moved to where they belong, side by side."""
    c, e = r.c, r.e
    (count, begin), waiting = last, 2 * _TOGETHER * r.lanes
    room = waiting + 2 * r.lanes
    front, behind = (r.place("%scratch", waiting + k * room) for k in (0, 1))

    def write(value: Val, less: Val, ends: list[Val]) -> list[Val]:
        front_end, back = ends
        parted = r.partition(value, less) if value.width > 1 else value
        e.store(parted, r.place(front, front_end.ref))
        e.store(parted, r.place(behind, c.sub(back.ref, value.width)))
        smaller = c.lanes_of(less)
        others = c.sub(value.width, smaller)
        return [c.value(c.add(front_end.ref, smaller)), c.value(c.sub(back.ref, others))]

    with c.loop(0, waiting, r.lanes, [c.value(0), c.value(room)]) as iteration:
        value = e.load(r.place("%scratch", iteration.index), r.key)
        iteration.next = write(value, e.lt(value, pivot), iteration.carried)
    with c.width(1), c.loop(0, count, 1, iteration.carried) as one:
        value = e.load(r.place("%rows", c.add(begin, one.index)), r.key, width=1)
        one.next = write(value, e.lt(value, Val("%pivot", r.key, 1)), one.carried)
    smaller, back = (v.ref for v in one.carried)
    for source, to, many in ((front, low, smaller), (r.place(behind, back), c.add(low, smaller), c.sub(room, back))):
        size = c.mul(many, r.key.itemsize)
        e.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        e.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {r.place('%rows', to)}, ptr {source}, i64 {size}, i1 false)")
    return c.add(low, smaller)


# ---- few keys


def _write_few(r: _Keys) -> None:
    """Sort up to FEW keys by networks, in %scratch."""
    c, e, lanes = r.c, r.e, r.lanes
    count = c.div(c.add("%count", lanes - 1), lanes)
    rows = sorting_network.power_above(c, count)
    largest = e.splat(e.const(r.largest, r.key, 1))
    with c.loop(0, count) as row:
        at = c.mul(row.index, lanes)
        mask = r.first(c.min(c.sub("%count", at), lanes))
        value = e.load(r.place("%rows", at), r.key, mask)
        e.store(e.select(mask, value, largest), r.place("%scratch", at))
    with c.loop(count, rows) as row:
        e.store(largest, r.place("%scratch", c.mul(row.index, lanes)))
    sorting_network.sort_columns(c, "%scratch", count, r.key, lanes)
    sorting_network.merge_lanes(c, "%scratch", rows, r.key, lanes)
    with c.loop(0, rows, lanes) as row:
        places = [r.place("%scratch", c.mul(c.add(row.index, k), lanes)) for k in range(lanes)]
        for lane, run in enumerate(transpose_in_registers(e, r.load(places))):
            first = c.add(c.mul(rows, lane), row.index)
            r.store_first(run, r.place("%rows", first), c.sub("%count", first))
