"""Native code of the exchange between processes: rounds over shared memory, sums by a fixed tree, and gathers.

Each process has a slot on a board and an outbox with two halves, which it writes and others read.  A round is: write
data into a half, then a header and the number of the round on the board; wait until all others have that number.
Halves are used in turn: whose number is that of the next round has read this one, so his half may be written again two
rounds later.  What does not fit into a half takes several rounds.

Who waits spins for a short time and then sleeps on the word that it waits for.  It wakes every so often to see whether
the other has ended or the time is over.  After the first failure a group does nothing more: each call fails at once.
"""

from __future__ import annotations

import platform

import llvmlite.ir as ir

from hybridflow.compiler.program import EXCHANGE, INTERRUPT_POLL
from hybridflow.runtime.native.ir_builder import F32, F64, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.process_exchange_words import (
    ADD,
    ARRIVED,
    BLOCK,
    BOARD,
    BOXES,
    CHUNK,
    COUNT,
    DIFFERENT,
    DTYPES,
    ELEMENT,
    GATHER,
    HALF,
    HASH,
    HEADERS,
    HELD,
    INTERRUPTED,
    KIND,
    LEFT,
    LENGTH,
    LOST,
    NOTE,
    NUMBER,
    PEERS,
    RANK,
    ROW_BYTES,
    ROWS,
    SCRATCH,
    SHARED,
    SINCE,
    SIZE,
    SLEEPERS,
    SLICE,
    SLOT,
    SPINS,
    STATUS,
    STEPS,
    TEXT,
    TEXT_LENGTH,
    TEXT_ROOM,
    TIMED_OUT,
    TIMEOUT,
    WHO,
    WORDS,
)
from hybridflow.runtime.threads.thread_count import FUTEX

_WAIT, _WAKE = 0, 1  # on words that several processes have
_TYPES = (ir.IntType(8), ir.IntType(16), I32, I64, F32, F64)
_VECTOR = 32  # bytes


def build(checked: bool = False) -> str:
    """``current``: the group of programs; ``hf_exchange(record, source, target)`` for it; ``group_exchange(group,
    record, source, target, polls)``; and ``group_round(group, hash, bytes, polls)``, a round alone.  Each returns 0, or
    the status with which the group has failed."""
    module = Module(checked)
    module.variable("current", PTR)
    for code in range(len(DTYPES)):
        _add(module, code)
    _wake(module)
    _fail(module)
    _sleep(module)
    _round(module)
    _note(module)
    _gather(module)
    _tree(module)
    _sum(module)
    _exchange(module)
    return str(module.ir)


def _function(module: Module, name: str, result: ir.Type, *arguments: ir.Type) -> Function:
    """A function that only this module calls."""
    f = module.function(name, result, *arguments)
    f.ir.linkage = "internal"
    return f


def _group(f: Function, group: ir.Value, word: int) -> ir.Value:
    return f.word(group, 8 * word)


def _record(f: Function, record: ir.Value, word: int) -> ir.Value:
    return f.word(record, 8 * word)


def _slot(f: Function, group: ir.Value, rank: ir.Value) -> ir.Value:
    return f.at(f.pointer(group, 8 * BOARD), f.b.mul(rank, i64(SLOT)))


def _half(f: Function, group: ir.Value, rank: ir.Value, number: ir.Value) -> ir.Value:
    """The half of a process's outbox that a round uses."""
    box = f.get(f.element(f.pointer(group, 8 * BOXES), rank, PTR), PTR)
    return f.at(box, f.b.mul(f.b.and_(number, i64(1)), _group(f, group, HALF)))


def _copy(f: Function, target: ir.Value, source: ir.Value, size: ir.Value) -> None:
    f.call("memcpy", PTR, target, source, size)


def _least(f: Function, a: ir.Value, b: ir.Value) -> ir.Value:
    return f.b.select(f.b.icmp_signed("<", a, b), a, b)


def _add(module: Module, code: int) -> None:
    """void addK(target, a, b, i64 count): sums of elements of a type.  The target may be one of the arrays."""
    f = _function(module, f"add{code}", VOID, PTR, PTR, PTR, I64)
    target, a, b, count = f.args
    type_ = _TYPES[code]
    size = DTYPES[code][1]
    lanes = _VECTOR // size
    wide = ir.VectorType(type_, lanes)
    add = f.b.fadd if type_ in (F32, F64) else f.b.add
    done = f.local(I64, i64(0))
    last = f.b.sub(count, i64(lanes - 1))
    with f.loop(lambda: f.b.icmp_signed("<", f.get(done, I64), last)):
        at = f.b.mul(f.get(done, I64), i64(size))
        x, y = (f.b.load(f.at(p, at), align=size, typ=wide) for p in (a, b))
        f.b.store(add(x, y), f.at(target, at), align=size)
        f.set(done, f.b.add(f.get(done, I64), i64(lanes)))
    with f.loop(lambda: f.b.icmp_signed("<", f.get(done, I64), count)):
        at = f.b.mul(f.get(done, I64), i64(size))
        x, y = (f.b.load(f.at(p, at), typ=type_) for p in (a, b))
        f.b.store(add(x, y), f.at(target, at))
        f.set(done, f.b.add(f.get(done, I64), i64(1)))
    f.ret()


def _futex(f: Function, word: ir.Value, operation: int, value: ir.Value, timeout: ir.Value) -> None:
    number = FUTEX.get(platform.machine())
    if number is not None:
        f.call_variadic("syscall", I64, 1, i64(number), word, i32(operation), value, timeout, NULL, i32(0))


def _wake(module: Module) -> None:
    """void wake(slot): whoever sleeps on the number of a process."""
    f = _function(module, "wake", VOID, PTR)
    sleepers = f.atomic_load(f.at(f.args[0], SLEEPERS), I32)
    with f.b.if_then(f.ne(sleepers, i32(0))):
        _futex(f, f.at(f.args[0], ARRIVED), _WAKE, i32(2**31 - 1), NULL)
    f.ret()


def _fail(module: Module) -> None:
    """i64 failed(group, status, who): note it, and leave, so that the others see it."""
    f = _function(module, "failed", I64, PTR, I64, I64)
    group, status, who = f.args
    f.store(status, group, 8 * STATUS)
    f.store(who, group, 8 * WHO)
    mine = _slot(f, group, _group(f, group, RANK))
    f.exchange(f.at(mine, LEFT), i32(1))
    f.call("wake", VOID, mine)
    f.ret(status)


def _behind(f: Function, slot: ir.Value, number: ir.Value) -> ir.Value:
    """Whether a process has not yet come to a round."""
    arrived = f.atomic_load(f.at(slot, ARRIVED), I32)
    return f.b.icmp_signed("<", f.b.sub(arrived, f.b.trunc(number, I32)), i32(0))


def _sleep(module: Module) -> None:
    """i64 wait_for(group, peer, number, polls): sleep until a process has come to a round; 0, or what has happened."""
    f = _function(module, "wait_for", I64, PTR, I64, I64, I64)
    group, peer, number, polls = f.args
    slot = _slot(f, group, peer)
    start, last, state = f.monotonic_ns(), f.local(I64, i64(0)), f.local(I64, i64(0))
    moment = f.local(ir.ArrayType(I64, 2))
    f.store(i64(0), moment, 0)
    f.store(i64(SLICE), moment, 8)
    f.fetch_add(f.at(slot, SLEEPERS), i32(1))

    def goes_on() -> ir.Value:
        return f.b.and_(f.eq(f.get(state, I64), i64(0)), _behind(f, slot, number))

    with f.loop(goes_on):
        seen = f.atomic_load(f.at(slot, ARRIVED), I32)
        ahead = f.b.icmp_signed("<", f.b.sub(seen, f.b.trunc(number, I32)), i32(0))
        with f.b.if_then(ahead):
            if platform.machine() in FUTEX:
                _futex(f, f.at(slot, ARRIVED), _WAIT, seen, moment)
            else:
                f.call("poll", I32, NULL, i64(0), i32(1))
        has_left = f.ne(f.atomic_load(f.at(slot, LEFT), I32), i32(0))
        sockets = f.pointer(group, 8 * PEERS)
        f.call("poll", I32, sockets, f.b.sub(_group(f, group, SIZE), i64(1)), i32(0))
        # The sockets of others, in the order of their ranks: struct pollfd is an int and two shorts.
        place = f.b.sub(peer, f.b.zext(f.b.icmp_signed(">", peer, _group(f, group, RANK)), I64))
        events = f.load(f.at(sockets, f.b.mul(place, i64(8))), 6, ir.IntType(16))
        has_ended = f.ne(events, ir.Constant(ir.IntType(16), 0))
        with f.b.if_then(f.b.and_(f.b.or_(has_left, has_ended), _behind(f, slot, number))):
            f.set(state, i64(LOST))
        late = f.b.icmp_signed(">", f.b.sub(f.monotonic_ns(), start), _group(f, group, TIMEOUT))
        with f.b.if_then(f.b.and_(late, goes_on())):
            f.set(state, i64(TIMED_OUT))
        with f.b.if_then(f.ne(polls, i64(0))):
            answer = f.call(INTERRUPT_POLL, I32, last)
            with f.b.if_then(f.ne(answer, i32(0))):
                f.set(state, i64(INTERRUPTED))
    f.fetch_add(f.at(slot, SLEEPERS), i32(-1))
    f.ret(f.get(state, I64))


def _round(module: Module) -> None:
    """i64 group_round(group, i64 hash, i64 bytes, i64 polls): say that data is there, and wait for that of all."""
    f = module.function("group_round", I64, PTR, I64, I64, I64)
    group, hash_, size, polls = f.args
    before = _group(f, group, STATUS)
    f.ret_if(f.ne(before, i64(0)), before)
    rank, number = _group(f, group, RANK), f.b.add(_group(f, group, NUMBER), i64(1))
    f.store(number, group, 8 * NUMBER)
    mine, parity = _slot(f, group, rank), f.b.mul(f.b.and_(number, i64(1)), i64(16))
    header = f.at(f.at(mine, HEADERS), parity)
    f.store(hash_, header, 0)
    f.store(size, header, 8)
    f.exchange(f.at(mine, ARRIVED), f.b.trunc(number, I32))
    f.call("wake", VOID, mine)
    with f.count(_group(f, group, SIZE)) as peer, f.b.if_then(f.ne(peer, rank)):
        slot = _slot(f, group, peer)
        spins = f.local(I64)
        f.set(spins, _group(f, group, SPINS))
        with f.loop(lambda: f.b.and_(f.b.icmp_signed(">", f.get(spins, I64), i64(0)), _behind(f, slot, number))):
            f.pause()
            f.set(spins, f.b.sub(f.get(spins, I64), i64(1)))
        with f.b.if_then(_behind(f, slot, number)):
            state = f.call("wait_for", I64, group, peer, number, polls)
            with f.b.if_then(f.ne(state, i64(0))):
                f.ret(f.call("failed", I64, group, state, peer))
        theirs = f.word(f.at(f.at(slot, HEADERS), parity), 0)
        with f.b.if_then(f.ne(theirs, hash_)):
            f.ret(f.call("failed", I64, group, i64(DIFFERENT), peer))
    f.ret(i64(0))


def _note(module: Module) -> None:
    """void note(group, text, i64 length): say on the board what comes now."""
    f = _function(module, "note", VOID, PTR, PTR, I64)
    group, text, length = f.args
    mine = _slot(f, group, _group(f, group, RANK))
    length = _least(f, length, i64(TEXT_ROOM))
    f.store(f.b.add(_group(f, group, NUMBER), i64(1)), mine, NOTE)
    f.store(f.monotonic_ns(), mine, SINCE)
    f.store(length, mine, LENGTH)
    _copy(f, f.at(mine, TEXT), text, length)
    f.ret()


def _gather(module: Module) -> None:
    """i64 gather(group, record, source, target, polls): the bytes of all, behind each other."""
    f = _function(module, "gather", I64, PTR, PTR, PTR, PTR, I64)
    group, record, source, target, polls = f.args
    size, rank, each = _group(f, group, SIZE), _group(f, group, RANK), _record(f, record, ROW_BYTES)
    rows = f.at(record, 8 * WORDS)
    half = _group(f, group, HALF)
    most = f.b.mul(_record(f, record, ROWS), each)
    share = f.b.mul(f.get(f.element(rows, rank, I64), I64), each)
    done = f.local(I64, i64(0))
    again = f.local(I64, i64(1))
    with f.loop(lambda: f.ne(f.get(again, I64), i64(0))):
        start = f.get(done, I64)
        number = f.b.add(_group(f, group, NUMBER), i64(1))
        mine = _least(f, half, f.b.sub(share, start))
        with f.b.if_then(f.b.icmp_signed(">", mine, i64(0))):
            _copy(f, _half(f, group, rank, number), f.at(source, start), mine)
        status = f.call("group_round", I64, group, _record(f, record, HASH), mine, polls)
        f.ret_if(f.ne(status, i64(0)), status)
        offset = f.local(I64)
        f.set(offset, i64(0))
        with f.count(size) as peer:
            total = f.b.mul(f.get(f.element(rows, peer, I64), I64), each)
            part = _least(f, half, f.b.sub(total, start))
            with f.b.if_then(f.b.icmp_signed(">", part, i64(0))):
                place = f.at(target, f.b.add(f.get(offset, I64), start))
                _copy(f, place, _half(f, group, peer, number), part)
            f.set(offset, f.b.add(f.get(offset, I64), total))
        f.set(done, f.b.add(start, half))
        f.set(again, f.b.zext(f.b.icmp_signed("<", f.get(done, I64), most), I64))
    f.ret(i64(0))


def _tree(module: Module) -> None:
    """void tree(group, record, i64 number, source, i64 lo, i64 begin, i64 end, target, also): finish the tree for
    elements of the chunk that begins at ``lo``, from ``begin`` to ``end`` within it.  Nodes are its own, at ``source``,
    and those of others, in their halves of a round.  Blocks are small, so that what is computed stays in the cache.
    Sums are copied to ``also``, unless that is null."""
    f = _function(module, "tree", VOID, PTR, PTR, I64, PTR, I64, I64, I64, PTR, PTR)
    group, record, number, source, lo, begin, end, target, also = f.args
    size, chunk = _record(f, record, ELEMENT), _record(f, record, CHUNK)
    rank, count = _group(f, group, RANK), _record(f, record, COUNT)
    steps = f.at(f.at(record, 8 * WORDS), f.b.mul(_group(f, group, SIZE), i64(8)))
    scratch = f.pointer(group, 8 * SCRATCH)
    stack = f.local(ir.ArrayType(PTR, 80))
    block = f.b.sdiv(i64(BLOCK), size)
    at = f.local(I64, begin)
    with f.loop(lambda: f.b.icmp_signed("<", f.get(at, I64), end)):
        first = f.get(at, I64)
        n = _least(f, block, f.b.sub(end, first))
        out = f.at(target, f.b.mul(first, size))
        depth = f.local(I64)
        f.set(depth, i64(0))
        with f.count(_record(f, record, STEPS)) as k:
            step = f.get(f.element(steps, k, I64), I64)
            level = f.get(depth, I64)
            with f.b.if_else(f.b.icmp_signed("<", step, i64(0))) as (adds, loads):
                with adds:
                    last = f.eq(k, f.b.sub(_record(f, record, STEPS), i64(1)))
                    below = f.b.sub(level, i64(2))
                    a = f.get(f.element(stack, below, PTR), PTR)
                    b = f.get(f.element(stack, f.b.sub(level, i64(1)), PTR), PTR)
                    place = f.b.select(last, out, f.at(scratch, f.b.mul(below, i64(BLOCK))))
                    with f.switch(_record(f, record, ADD)) as case:
                        for code in range(len(DTYPES)):
                            with case(code):
                                f.call(f"add{code}", VOID, place, a, b, n)
                    f.set(f.element(stack, below, PTR), place)
                    f.set(depth, f.b.sub(level, i64(1)))
                with loads:
                    owner, row = f.b.lshr(step, i64(32)), f.b.and_(step, i64(2**32 - 1))
                    with f.b.if_else(f.eq(owner, rank)) as (is_owner, other):
                        with is_owner:
                            element = f.b.add(f.b.mul(row, count), f.b.add(lo, first))
                            f.set(f.element(stack, level, PTR), f.at(source, f.b.mul(element, size)))
                        with other:
                            element = f.b.add(f.b.mul(row, chunk), first)
                            box = _half(f, group, owner, number)
                            f.set(f.element(stack, level, PTR), f.at(box, f.b.mul(element, size)))
                    f.set(depth, f.b.add(level, i64(1)))
        top = f.get(stack, PTR)
        with f.b.if_then(f.ne(f.b.ptrtoint(top, I64), f.b.ptrtoint(out, I64))):
            _copy(f, out, top, f.b.mul(n, size))
        with f.b.if_then(f.b.not_(f.is_null(also))):
            _copy(f, f.at(also, f.b.mul(first, size)), out, f.b.mul(n, size))
        f.set(at, f.b.add(first, n))
    f.ret()


def _bound(f: Function, group: ir.Value, n: ir.Value, rank: ir.Value) -> ir.Value:
    """Where the share of a process of ``n`` elements begins."""
    size = _group(f, group, SIZE)
    even = f.b.and_(f.b.sdiv(f.b.mul(n, rank), size), i64(~15))
    return f.b.select(f.eq(rank, size), n, even)


def _sum(module: Module) -> None:
    """i64 sum(group, record, source, target, polls): the root of the tree over the nodes of all.

    Where there is much, each process finishes the tree for its share of the elements, and hands the sums out.  This
    goes piece by piece: a round carries the nodes of a piece and the sums of the piece before, so there is one round
    more than there are pieces.  What is written is read while it is in the cache."""
    f = _function(module, "sum", I64, PTR, PTR, PTR, PTR, I64)
    group, record, source, target, polls = f.args
    rank, processes, count = _group(f, group, RANK), _group(f, group, SIZE), _record(f, record, COUNT)
    size, chunk, hash_ = (_record(f, record, word) for word in (ELEMENT, CHUNK, HASH))
    rows = f.get(f.element(f.at(record, 8 * WORDS), rank, I64), I64)
    is_shared = _record(f, record, SHARED)
    shared = f.ne(is_shared, i64(0))
    sums = f.b.mul(f.b.mul(_record(f, record, ROWS), chunk), size)  # where they are in a half
    lo = f.local(I64, i64(0))  # of the piece whose nodes are handed out; the one before it is added up
    stop = f.b.add(count, f.b.select(shared, chunk, i64(0)))
    again = f.local(I64, i64(1))
    with f.loop(lambda: f.ne(f.get(again, I64), i64(0))):
        here, before = f.get(lo, I64), f.b.sub(f.get(lo, I64), chunk)
        n = _least(f, chunk, f.b.sub(count, here))
        number = f.b.add(_group(f, group, NUMBER), i64(1))
        box = _half(f, group, rank, number)
        with f.b.if_then(f.b.icmp_signed(">", n, i64(0))):
            begin = f.b.select(shared, _bound(f, group, n, rank), i64(0))
            end = f.b.select(shared, _bound(f, group, n, f.b.add(rank, i64(1))), i64(0))
            with f.count(rows) as row:  # but for its own share, which only it reads
                start = f.at(source, f.b.mul(f.b.add(f.b.mul(row, count), here), size))
                place = f.at(box, f.b.mul(f.b.mul(row, chunk), size))
                _copy(f, place, start, f.b.mul(begin, size))
                behind = f.b.mul(end, size)
                _copy(f, f.at(place, behind), f.at(start, behind), f.b.mul(f.b.sub(n, end), size))
        adds = f.b.and_(shared, f.b.icmp_signed(">", here, i64(0)))
        length = _least(f, chunk, f.b.sub(count, before))  # of the piece before
        out = f.at(target, f.b.mul(before, size))
        with f.b.if_then(adds):
            first, end = _bound(f, group, length, rank), _bound(f, group, length, f.b.add(rank, i64(1)))
            last = f.b.sub(number, i64(1))
            f.call("tree", VOID, group, record, last, source, before, first, end, out, f.at(box, sums))
        status = f.call("group_round", I64, group, hash_, n, polls)
        f.ret_if(f.ne(status, i64(0)), status)
        with f.b.if_then(f.eq(is_shared, i64(0))):
            destination = f.at(target, f.b.mul(here, size))
            f.call("tree", VOID, group, record, number, source, here, i64(0), n, destination, ir.Constant(PTR, None))
        with f.b.if_then(adds), f.count(processes) as peer, f.b.if_then(f.ne(peer, rank)):
            first = _bound(f, group, length, peer)
            part = f.b.sub(_bound(f, group, length, f.b.add(peer, i64(1))), first)
            start = f.b.mul(first, size)
            there = f.at(f.at(_half(f, group, peer, number), sums), start)
            _copy(f, f.at(out, start), there, f.b.mul(part, size))
        f.set(lo, f.b.add(here, chunk))
        f.set(again, f.b.zext(f.b.icmp_signed("<", f.get(lo, I64), stop), I64))
    f.ret(i64(0))


def _exchange(module: Module) -> None:
    f = module.function("group_exchange", I64, PTR, PTR, PTR, PTR, I64)
    group, record, source, target, polls = f.args
    with f.loop(lambda: f.ne(f.exchange(f.at(group, 8 * HELD), i64(1)), i64(0))):
        f.call("poll", I32, NULL, i64(0), i32(1))  # another thread is at it

    def release() -> None:
        f.exchange(f.at(group, 8 * HELD), i64(0))

    with f.leaving(release):
        before = _group(f, group, STATUS)
        f.ret_if(f.ne(before, i64(0)), before)
        words = f.b.add(i64(WORDS), f.b.add(_group(f, group, SIZE), _record(f, record, STEPS)))
        text = f.at(record, f.b.mul(words, i64(8)))
        f.call("note", VOID, group, text, _record(f, record, TEXT_LENGTH))
        with f.b.if_then(f.eq(_record(f, record, KIND), i64(GATHER))):
            f.ret(f.call("gather", I64, group, record, source, target, polls))
        f.ret(f.call("sum", I64, group, record, source, target, polls))

    f = module.function(EXCHANGE, I32, PTR, PTR, PTR)
    group = f.get(module.ir.globals["current"], PTR)
    f.ret_if(f.is_null(group), i32(-1))
    f.ret(f.b.trunc(f.call("group_exchange", I64, group, *f.args, i64(0)), I32))
