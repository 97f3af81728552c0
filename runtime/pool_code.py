"""The native side of the memory pool: a NumPy memory handler whose freed blocks are kept for reuse, by size class.

A block is a 64-byte header and the data behind it.  The header's words are: next free block, size class, block bytes.
Classes are eight per power of two, so at most an eighth of a block is unused.  All of it runs under the GIL.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime import layout
from hybridflow.runtime.ir_builder import I1, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.records import POOL_STATE

HEADER = 64
CLASSES = 8 * 48
NEXT, CLASS, BYTES = 0, 8, 16
HUGE = 4 << 20  # blocks from here on are aligned for, and ask for, pages of 2 MiB: 512 times fewer page faults
HUGE_PAGE = 2 << 20
MADV_HUGEPAGE = 14


def build() -> str:
    module = Module()
    free_lists = module.variable("free_lists", PTR, CLASSES)
    state = {name: module.variable(name, I64) for name in POOL_STATE}
    handler = module.variable("handler", PTR)

    _release_all(module, free_lists, state)
    _allocate(module, free_lists, state)
    _release(module, free_lists, state)
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


def _allocate(module: Module, free_lists: ir.Value, state: dict[str, ir.Value]) -> None:
    """ptr pool_allocate(i64 size): data of at least ``size`` bytes at a 64-byte boundary, or null."""
    f = module.function("pool_allocate", PTR, I64)
    (size,) = f.args
    f.ret_if(f.b.icmp_unsigned(">", size, i64(1 << 46)), NULL)
    index, total = _class_of(f, f.b.add(size, i64(HEADER)))
    slot = f.element(free_lists, index, PTR)
    block = f.local(PTR, f.get(slot, PTR))
    with f.b.if_else(f.is_null(f.get(block, PTR)), likely=False) as (miss, hit):
        with hit:
            f.set(slot, f.load(f.get(block, PTR), NEXT, PTR))
            _add(f, state["cached"], f.b.neg(total))
            _add(f, state["hits"], i64(1))
        with miss:
            huge = f.b.icmp_unsigned(">=", total, i64(HUGE))
            alignment = f.b.select(huge, i64(HUGE_PAGE), i64(64))
            failed = f.call("posix_memalign", I32, block, alignment, total)
            with f.b.if_then(f.ne(failed, i32(0)), likely=False):
                f.call("pool_trim", VOID)
                again = f.call("posix_memalign", I32, block, alignment, total)
                f.ret_if(f.ne(again, i32(0)), NULL)
            made = f.get(block, PTR)
            with f.b.if_then(huge):
                f.call("madvise", I32, made, total, i32(MADV_HUGEPAGE))  # advice: a refusal changes nothing
            f.store(index, made, CLASS)
            f.store(total, made, BYTES)
            _fill(f, made, state)
            _add(f, state["misses"], i64(1))
    _add(f, state["live"], total)
    f.ret(f.at(f.get(block, PTR), HEADER))


def _release(module: Module, free_lists: ir.Value, state: dict[str, ir.Value]) -> None:
    """void pool_release(ptr data): keep the block for reuse; at the limit, first return all kept blocks."""
    f = module.function("pool_release", VOID, PTR)
    (data,) = f.args
    with f.b.if_then(f.is_null(data), likely=False):
        f.ret()
    block = f.at(data, -HEADER)
    total = f.load(block, BYTES, I64)
    _fill(f, block, state)
    _add(f, state["live"], f.b.neg(total))
    limit = f.get(state["limit"], I64)
    with f.b.if_then(f.b.icmp_signed(">", f.b.add(f.get(state["cached"], I64), total), limit), likely=False):
        f.call("pool_trim", VOID)  # sizes in use now are worth more than those of long ago
        with f.b.if_then(f.b.icmp_signed(">", total, limit)):
            f.call("free", VOID, block)
            f.ret()
    slot = f.element(free_lists, f.load(block, CLASS, I64), PTR)
    f.store(f.get(slot, PTR), block, NEXT)
    f.set(slot, block)
    _add(f, state["cached"], total)
    f.ret()


def _release_all(module: Module, free_lists: ir.Value, state: dict[str, ir.Value]) -> None:
    """void pool_trim(): return every kept block to the system."""
    f = module.function("pool_trim", VOID)
    with f.count(i64(CLASSES)) as index:
        slot = f.element(free_lists, index, PTR)
        with f.loop(lambda: f.b.not_(f.is_null(f.get(slot, PTR)))):
            block = f.get(slot, PTR)
            f.set(slot, f.load(block, NEXT, PTR))
            f.call("free", VOID, block)
    f.set(state["cached"], i64(0))
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
    made = f.call("pool_allocate", PTR, size)
    f.ret_if(f.is_null(made), NULL)
    with f.b.if_then(f.b.not_(f.is_null(old))):
        room = f.b.sub(f.load(old, BYTES - HEADER, I64), i64(HEADER))
        f.call("memcpy", PTR, made, old, f.b.select(f.b.icmp_unsigned("<", room, size), room, size))
        f.call("pool_release", VOID, old)
    f.ret(made)

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
        f.ret(f.call("PyErr_NoMemory", PTR))
    f.call("Py_IncRef", VOID, descr)  # the call below takes a reference, also when it fails
    flags = layout.C_CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE
    array_type = module.symbol("PyArray_Type")
    array = f.call("PyArray_NewFromDescr", PTR, array_type, descr, ndim, shape, NULL, data, i32(flags), NULL)
    with f.b.if_then(f.is_null(array), likely=False):
        f.call("pool_release", VOID, data)
        f.ret(NULL)
    owner = f.get(handler, PTR)
    f.call("Py_IncRef", VOID, owner)
    f.store(owner, array, layout.ARRAY_HANDLER)
    old = f.load(array, layout.ARRAY_FLAGS, I32)
    f.store(f.b.or_(old, i32(layout.OWN_DATA)), array, layout.ARRAY_FLAGS)
    f.ret(array)


def _empty(module: Module) -> None:
    """PyObject *empty(self, args, nargs) of shape (a tuple), dtype and bytes; the Python caller made sure of them."""
    f = module.function("empty", PTR, PTR, PTR, I64)
    shape, descr, size = (f.load(f.args[1], 8 * i, PTR) for i in range(3))
    ndim = f.load(shape, layout.SIZE, I64)
    extents = f.local_array(I64, ndim)
    with f.count(ndim) as i:
        item = f.get(f.element(f.at(shape, layout.TUPLE_ITEMS), i, PTR), PTR)
        f.set(f.element(extents, i, I64), f.call("PyLong_AsSsize_t", I64, item))
    size = f.call("PyLong_AsSsize_t", I64, size)
    f.ret(f.call("make_array", PTR, descr, f.b.trunc(ndim, I32), extents, size))
