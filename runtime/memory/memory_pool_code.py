"""The native side of the memory pool: a NumPy memory handler whose freed blocks are kept for reuse, by size class.

A block is a 64-byte header and the data behind it.  Classes are eight per power of two, so at most an eighth of a block
is unused.  All of it runs under the GIL.

Small blocks are kept up to a total.  Of large ones, which are worth thinking about, a list of all free ones in the
order of their last use says which to give back to the system.  Two things send them there.  A request may find no block
of its class or the two above, a quarter larger at most.  It makes room, so that the pool stays within a quarter of what
was in use at once lately; unless the requests repeat themselves, as in the steps of a loop, which are to find the
blocks of the step before.  And what nothing used for ``age`` seconds goes.
"""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ir

from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import I1, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.native.records import POOL_STATE

HEADER = 64
CLASSES = 8 * 48
MOST = 1 << 44  # bytes of a block: that many classes there are
# Words of the header: neighbours among the free blocks of the class, the class and its bytes; neighbours in the order
# of last use; the bytes of the class that was asked for; and when the block was freed.
NEXT, PREVIOUS, CLASS, BYTES, OLDER, NEWER, WANTED, FREED = range(0, HEADER, 8)
LARGE = 32 << 10
SMALL_LIMIT = 16 << 20  # bytes of small blocks kept for reuse
FLOOR = 32 << 20  # bytes that large blocks may always have
SLACK = 4  # and beyond what is in use: a quarter of it
CLOSE = 2  # classes whose blocks are taken as if they were smaller
ALIKE, REMEMBERED = 7, 4096  # large requests: how many make a pattern, and among how many it is looked for
LOOKS = 1024  # small allocations between two looks at the clock
PAGE = 64 << 10  # a multiple of every system's pages
MADV_DONTNEED = 4
HUGE = 4 << 20  # blocks from here on are aligned for, and ask for, pages of 2 MiB: 512 times fewer page faults
HUGE_PAGE = 2 << 20
MADV_HUGEPAGE = 14

_NO_MEMORY = "there is no memory for an array of %zd bytes"


def build(checked: bool = False) -> str:
    module = Module(checked)
    free_lists = module.variable("free_lists", PTR, CLASSES)
    state = {name: module.variable(name, I64) for name in POOL_STATE}
    handler = module.variable("handler", PTR)
    module.variable("recent", I64, REMEMBERED)

    for define in (_give_back, _unlink, _link, _evict, _look, _trim, _make, _find, _allocate, _release):
        define(module, free_lists, state)
    _handler_functions(module)
    _make_array(module, handler)
    _empty(module)
    return str(module.ir)


def _add(f: Function, variable: ir.Value, amount: ir.Value) -> None:
    f.set(variable, f.b.add(f.get(variable, I64), amount))


def _class_of(f: Function, total: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Size class of a block of ``total`` bytes, and the bytes of that class."""
    least = f.b.select(f.b.icmp_unsigned("<", total, i64(128)), i64(128), total)
    last = f.b.sub(least, i64(1))
    zeros = f.b.ctlz(last, ir.Constant(I1, 1))
    exponent = f.b.sub(i64(63), zeros)
    shift = f.b.sub(exponent, i64(3))
    eighth = f.b.and_(f.b.lshr(last, shift), i64(7))
    index = f.b.add(f.b.mul(exponent, i64(8)), eighth)
    return index, f.b.shl(f.b.add(eighth, i64(9)), shift)


def _fill(f: Function, block: ir.Value, state: dict[str, ir.Value]) -> None:
    """Under HF_POISON, make every word of the block's data a NaN."""
    with f.b.if_then(f.ne(f.get(state["poison"], I64), i64(0)), likely=False):
        size = f.b.sub(f.load(block, BYTES, I64), i64(HEADER))
        f.call("memset", PTR, f.at(block, HEADER), i32(0xFF), size)


State = dict[str, ir.Value]


def _give_back(module: Module, free_lists: ir.Value, state: State) -> None:
    """void give_back(ptr block): return a block that is in no list to the system."""
    f = module.function("give_back", VOID, PTR)
    (block,) = f.args
    total = f.load(block, BYTES, I64)
    with f.b.if_then(f.b.icmp_unsigned(">=", total, i64(LARGE))):
        _add(f, state["held"], f.b.neg(total))
        # The allocator may keep what it is given, so the pages go back before.
        start = f.b.ptrtoint(block, I64)
        first = f.b.and_(f.b.add(start, i64(PAGE - 1)), i64(-PAGE))
        last = f.b.and_(f.b.add(start, total), i64(-PAGE))
        with f.b.if_then(f.b.icmp_unsigned("<", first, last)):
            f.call("madvise", I32, f.b.inttoptr(first, PTR), f.b.sub(last, first), i32(MADV_DONTNEED))
    f.call("free", VOID, block)
    f.ret()


def _unlink(module: Module, free_lists: ir.Value, state: State) -> None:
    """void unlink(ptr block): take a large block out of the lists of free ones."""
    f = module.function("unlink_block", VOID, PTR)
    (block,) = f.args
    slot = f.element(free_lists, f.load(block, CLASS, I64), PTR)
    for before, after, first, last in ((PREVIOUS, NEXT, slot, None), (OLDER, NEWER, state["oldest"], state["newest"])):
        left, right = f.load(block, before, PTR), f.load(block, after, PTR)
        with f.b.if_else(f.is_null(left)) as (none, some):
            with none:
                f.set(first, right)
            with some:
                f.store(right, left, after)
        with f.b.if_else(f.is_null(right)) as (none, some):
            with none:
                if last is not None:
                    f.set(last, left)
            with some:
                f.store(left, right, before)
    _add(f, state["cached"], f.b.neg(f.load(block, BYTES, I64)))
    f.ret()


def _link(module: Module, free_lists: ir.Value, state: State) -> None:
    """void link(ptr block): put a large block among the free ones, as the one used last."""
    f = module.function("link_block", VOID, PTR)
    (block,) = f.args
    slot = f.element(free_lists, f.load(block, CLASS, I64), PTR)
    head, newest = f.get(slot, PTR), f.get(state["newest"], PTR)
    for value, offset in ((head, NEXT), (NULL, PREVIOUS), (newest, OLDER), (NULL, NEWER)):
        f.store(value, block, offset)
    f.store(f.call("time", I64, NULL), block, FREED)
    f.set(slot, block)
    f.set(state["newest"], block)
    with f.b.if_then(f.b.not_(f.is_null(head))):
        f.store(block, head, PREVIOUS)
    with f.b.if_else(f.is_null(newest)) as (none, some):
        with none:
            f.set(state["oldest"], block)
        with some:
            f.store(block, newest, NEWER)
    _add(f, state["cached"], f.load(block, BYTES, I64))
    f.ret()


def _evict(module: Module, free_lists: ir.Value, state: State) -> None:
    """void evict(): return the large block to the system that has been free for longest."""
    f = module.function("evict", VOID)
    block = f.get(state["oldest"], PTR)
    f.call("unlink_block", VOID, block)
    f.call("give_back", VOID, block)
    f.ret()


def _look(module: Module, free_lists: ir.Value, state: State) -> None:
    """void pool_look(): where ``age`` seconds have passed since the last time, return what was not used in them."""
    f = module.function("pool_look", VOID)
    now, age = f.call("time", I64, NULL), f.get(state["age"], I64)
    passed = f.b.sub(now, f.get(state["looked"], I64))
    with f.b.if_then(f.b.icmp_unsigned("<", passed, age), likely=True):  # a clock that was set back has passed, too
        f.ret()
    f.set(state["looked"], now)
    f.set(state["peak_before"], f.get(state["peak"], I64))
    f.set(state["peak"], f.get(state["live"], I64))

    def is_old() -> ir.Value:
        oldest = f.get(state["oldest"], PTR)
        with f.b.if_then(f.is_null(oldest)):
            f.ret()
        return f.b.icmp_signed(">=", f.b.sub(now, f.load(oldest, FREED, I64)), age)

    with f.loop(is_old):
        f.call("evict", VOID)
    f.ret()


def _trim(module: Module, free_lists: ir.Value, state: State) -> None:
    """void pool_trim(): return every kept block to the system."""
    f = module.function("pool_trim", VOID)
    with f.loop(lambda: f.b.not_(f.is_null(f.get(state["oldest"], PTR)))):
        f.call("evict", VOID)
    with f.count(i64(CLASSES)) as index:  # the small ones, which are linked one way only
        slot = f.element(free_lists, index, PTR)
        with f.loop(lambda: f.b.not_(f.is_null(f.get(slot, PTR)))):
            block = f.get(slot, PTR)
            f.set(slot, f.load(block, NEXT, PTR))
            f.call("give_back", VOID, block)
    f.set(state["cached"], i64(0))
    f.set(state["small"], i64(0))
    f.ret()


def _make(module: Module, free_lists: ir.Value, state: State) -> None:
    """ptr make_block(i64 index, i64 total): a block of the system's memory, or null."""
    f = module.function("make_block", PTR, I64, I64)
    index, total = f.args
    block = f.local(PTR, NULL)
    huge = f.b.icmp_unsigned(">=", total, i64(HUGE))
    alignment = f.b.select(huge, i64(HUGE_PAGE), i64(64))
    failed = f.call("posix_memalign", I32, block, alignment, total)
    with f.b.if_then(f.ne(failed, i32(0)), likely=False):
        f.call("pool_trim", VOID)
        again = f.call("posix_memalign", I32, block, alignment, total)
        f.ret_if(f.ne(again, i32(0)), NULL)
    fresh = f.get(block, PTR)
    with f.b.if_then(huge):
        f.call("madvise", I32, fresh, total, i32(MADV_HUGEPAGE))  # advice: a refusal changes nothing
    with f.b.if_then(f.b.icmp_unsigned(">=", total, i64(LARGE))):
        _add(f, state["held"], total)
    f.store(index, fresh, CLASS)
    f.store(total, fresh, BYTES)
    _fill(f, fresh, state)
    _add(f, state["misses"], i64(1))
    f.ret(fresh)


def _find(module: Module, free_lists: ir.Value, state: State) -> None:
    """ptr large_block(i64 index, i64 total): a large block of that class or a close one, or null."""
    f = module.function("large_block", PTR, I64, I64)
    index, total = f.args
    f.call("pool_look", VOID)
    repeats = _repeats(f, index, state)
    with f.count(i64(CLOSE + 1)) as step:
        block = f.get(f.element(free_lists, f.b.add(index, step), PTR), PTR)
        with f.b.if_then(f.b.not_(f.is_null(block))):
            f.call("unlink_block", VOID, block)
            _add(f, state["hits"], i64(1))
            f.ret(block)
    most = f.local(I64, f.b.add(f.get(state["live"], I64), total))
    for name in ("peak", "peak_before"):
        other = f.get(state[name], I64)
        f.set(most, f.b.select(f.b.icmp_signed(">", other, f.get(most, I64)), other, f.get(most, I64)))
    bound = f.b.add(f.get(most, I64), f.b.udiv(f.get(most, I64), i64(SLACK)))
    bound = f.b.select(f.b.icmp_signed("<", bound, i64(FLOOR)), i64(FLOOR), bound)

    def is_above() -> ir.Value:
        above = f.b.icmp_signed(">", f.b.add(f.get(state["held"], I64), total), bound)
        return f.b.and_(above, f.b.not_(f.is_null(f.get(state["oldest"], PTR))))

    with f.b.if_then(is_above()), f.b.if_then(f.b.not_(repeats())), f.loop(is_above):
        f.call("evict", VOID)
    f.ret(f.call("make_block", PTR, index, total))


def _repeats(f: Function, index: ir.Value, state: State) -> Callable[[], ir.Value]:
    """Note a request of a class; the result writes the question whether it and the ``ALIKE - 1`` before it followed
    each other before, among the last ``REMEMBERED``: whether the program goes through the same sizes again."""
    bits = 64 // ALIKE
    last = f.b.or_(f.b.shl(f.get(state["last"], I64), i64(bits)), index)
    last = f.b.and_(last, i64((1 << bits * ALIKE) - 1))
    f.set(state["last"], last)
    count = f.b.and_(f.get(state["requests"], I64), i64(REMEMBERED - 1))
    recent = f.module.ir.globals["recent"]
    before = f.local(PTR, f.element(recent, count, I64))

    def result() -> ir.Value:
        seen = f.local(I1)
        f.set(seen, ir.Constant(I1, 0))
        with f.count(i64(REMEMBERED)) as i:
            here = f.element(recent, i, I64)
            same = f.b.and_(f.eq(f.get(here, I64), last), f.ne(here, f.get(before, PTR)))
            f.set(seen, f.b.or_(f.get(seen, I1), same))
        return f.get(seen, I1)

    f.set(f.get(before, PTR), last)
    _add(f, state["requests"], i64(1))
    return result


def _allocate(module: Module, free_lists: ir.Value, state: State) -> None:
    """ptr pool_allocate(i64 size): data of at least ``size`` bytes at a 64-byte boundary, or null."""
    f = module.function("pool_allocate", PTR, I64)
    (size,) = f.args
    f.ret_if(f.b.icmp_unsigned(">", size, i64(MOST)), NULL)
    index, total = _class_of(f, f.b.add(size, i64(HEADER)))
    slot = f.element(free_lists, index, PTR)
    block = f.local(PTR)
    with f.b.if_else(f.b.icmp_unsigned(">=", total, i64(LARGE)), likely=False) as (large, small):
        with large:
            f.set(block, f.call("large_block", PTR, index, total))
            f.ret_if(f.is_null(f.get(block, PTR)), NULL)
        with small:
            f.set(block, f.get(slot, PTR))
            with f.b.if_else(f.is_null(f.get(block, PTR)), likely=False) as (miss, hit):
                with hit:
                    f.set(slot, f.load(f.get(block, PTR), NEXT, PTR))
                    _add(f, state["cached"], f.b.neg(total))
                    _add(f, state["small"], f.b.neg(total))
                    hits = f.b.add(f.get(state["hits"], I64), i64(1))
                    f.set(state["hits"], hits)
                    with f.b.if_then(f.eq(f.b.and_(hits, i64(LOOKS - 1)), i64(0)), likely=False):
                        f.call("pool_look", VOID)
                with miss:
                    f.set(block, f.call("make_block", PTR, index, total))
                    f.ret_if(f.is_null(f.get(block, PTR)), NULL)
    f.store(total, f.get(block, PTR), WANTED)
    live = f.b.add(f.get(state["live"], I64), total)
    f.set(state["live"], live)
    peak = f.get(state["peak"], I64)
    f.set(state["peak"], f.b.select(f.b.icmp_signed(">", live, peak), live, peak))
    f.ret(f.at(f.get(block, PTR), HEADER))


def _release(module: Module, free_lists: ir.Value, state: State) -> None:
    """void pool_release(ptr data): keep the block for reuse; at the limit, others that were not used for long go."""
    f = module.function("pool_release", VOID, PTR)
    (data,) = f.args
    with f.b.if_then(f.is_null(data), likely=False):
        f.ret()
    block = f.at(data, -HEADER)
    total = f.load(block, BYTES, I64)
    _fill(f, block, state)
    _add(f, state["live"], f.b.neg(f.load(block, WANTED, I64)))

    def is_too_much(kept: str, limit: ir.Value) -> ir.Value:
        return f.b.icmp_signed(">", f.b.add(f.get(state[kept], I64), total), limit)

    limit = f.get(state["limit"], I64)
    with f.b.if_then(f.b.icmp_unsigned(">=", total, i64(LARGE)), likely=False):
        f.call("pool_look", VOID)
        with f.loop(lambda: f.b.and_(is_too_much("cached", limit), f.b.not_(f.is_null(f.get(state["oldest"], PTR))))):
            f.call("evict", VOID)
        with f.b.if_else(is_too_much("cached", limit)) as (no_room, room):
            with no_room:
                f.call("give_back", VOID, block)
            with room:
                f.call("link_block", VOID, block)
        f.ret()
    with f.b.if_then(f.b.or_(is_too_much("cached", limit), is_too_much("small", i64(SMALL_LIMIT))), likely=False):
        f.call("give_back", VOID, block)
        f.ret()
    slot = f.element(free_lists, f.load(block, CLASS, I64), PTR)
    f.store(f.get(slot, PTR), block, NEXT)
    f.set(slot, block)
    _add(f, state["cached"], total)
    _add(f, state["small"], total)
    f.ret()


def _handler_functions(module: Module) -> None:
    """The four functions of a PyDataMem_Handler; their first argument is its context, which is unused."""
    f = module.function("handler_malloc", PTR, PTR, I64)
    f.ret(f.call("pool_allocate", PTR, f.args[1]))

    f = module.function("handler_calloc", PTR, PTR, I64, I64)
    product = f.b.umul_with_overflow(f.args[1], f.args[2])
    f.ret_if(f.b.extract_value(product, 1), NULL)
    size = f.b.extract_value(product, 0)
    data = f.call("pool_allocate", PTR, size)
    with f.b.if_then(f.b.not_(f.is_null(data))):
        f.call("memset", PTR, data, i32(0), size)
    f.ret(data)

    f = module.function("handler_realloc", PTR, PTR, PTR, I64)
    _, old, size = f.args
    fresh = f.call("pool_allocate", PTR, size)
    f.ret_if(f.is_null(fresh), NULL)
    with f.b.if_then(f.b.not_(f.is_null(old))):
        room = f.b.sub(f.load(old, BYTES - HEADER, I64), i64(HEADER))
        f.call("memcpy", PTR, fresh, old, f.b.select(f.b.icmp_unsigned("<", room, size), room, size))
        f.call("pool_release", VOID, old)
    f.ret(fresh)

    f = module.function("handler_free", VOID, PTR, PTR, I64)
    f.call("pool_release", VOID, f.args[1])
    f.ret()


def _make_array(module: Module, handler: ir.Value) -> None:
    """PyObject *make_array(descr, i32 ndim, i64 *shape, i64 bytes): a new array that owns a pool block, or an error.

    NumPy frees the data of an array through the array's own handler, so ownership is two fields and no base object.
    """
    f = module.function("make_array", PTR, PTR, I32, PTR, I64)
    descr, ndim, shape, size = f.args
    data = f.call("pool_allocate", PTR, size)
    with f.b.if_then(f.is_null(data), likely=False):
        kind, text = f.get(module.symbol("PyExc_MemoryError"), PTR), module.text("no_memory", _NO_MEMORY)
        f.ret(f.call_variadic("PyErr_Format", PTR, 2, kind, text, size))
    f.call("Py_IncRef", VOID, descr)  # the call below takes a reference, also when it fails
    flags = object_layout.C_CONTIGUOUS | object_layout.ALIGNED | object_layout.WRITEABLE
    array_type = module.symbol("PyArray_Type")
    array = f.call("PyArray_NewFromDescr", PTR, array_type, descr, ndim, shape, NULL, data, i32(flags), NULL)
    with f.b.if_then(f.is_null(array), likely=False):
        f.call("pool_release", VOID, data)
        f.ret(NULL)
    owner = f.get(handler, PTR)
    f.call("Py_IncRef", VOID, owner)
    f.store(owner, array, object_layout.ARRAY_HANDLER)
    old = f.load(array, object_layout.ARRAY_FLAGS, I32)
    f.store(f.b.or_(old, i32(object_layout.OWN_DATA)), array, object_layout.ARRAY_FLAGS)
    f.ret(array)


def _empty(module: Module) -> None:
    """PyObject *empty(self, args, nargs) of shape (a tuple), dtype and bytes; the Python caller made sure of them."""
    f = module.function("empty", PTR, PTR, PTR, I64)
    shape, descr, size = (f.load(f.args[1], 8 * i, PTR) for i in range(3))
    ndim = f.load(shape, object_layout.SIZE, I64)
    extents = f.local_array(I64, ndim)
    with f.count(ndim) as i:
        item = f.get(f.element(f.at(shape, object_layout.TUPLE_ITEMS), i, PTR), PTR)
        f.set(f.element(extents, i, I64), f.call("PyLong_AsSsize_t", I64, item))
    size = f.call("PyLong_AsSsize_t", I64, size)
    f.ret(f.call("make_array", PTR, descr, f.b.trunc(ndim, I32), extents, size))
