"""LLVM code that writes what a tape is told, in words (see ``log``), and reads variables for it.

Here the table is a bytearray of 32-bit entries, a power of 2 of them: 0 where there is none, else 2 more than the entry
in Python.  A value's place follows from its address; those that are taken are passed over.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls.record_access import is_type
from hybridflow.runtime.calls.variable_locks import IN_PLACE, RUNNING
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import (
    FALSE,
    I1,
    I8,
    I32,
    I64,
    NULL,
    PTR,
    TRUE,
    VOID,
    Function,
    Module,
    i32,
    i64,
)
from hybridflow.runtime.native.records import (
    LOG_CALL,
    LOG_ENTRIES,
    LOG_INPUTS,
    LOG_OUTPUTS,
    LOG_READ,
    LOG_VALUE,
    LOG_VARIABLE,
    WORD,
    TapeOffsets,
)

NEW, ELSEWHERE = -1, -2  # instead of an entry: a value without one, and a table that is not native code's
FAILED, TOLD, UNKNOWN = 0, 1, 2  # what ``tell`` finds
_MAX_NDIM = 64


def define(module: Module, offsets: TapeOffsets) -> None:
    """Add the functions to a module, in the order in which they call each other."""
    _log_entry(module, offsets)
    _log_start(module, offsets)
    _log_insert(module)
    _log_place(module, offsets)
    _log_track(module, offsets)
    _log_write(module, offsets)
    _log_number(module, offsets)
    _log_call(module, offsets)
    _is_untouched(module)
    _read_variable(module, offsets)
    _tell(module, offsets)


def is_float(f: Function, tensor: ir.Value) -> ir.Value:
    """Whether a tensor's array is an ndarray of one of NumPy's own floats."""
    array = f.call("array_of", PTR, tensor)
    is_floating = f.local(I1, FALSE)
    with f.b.if_then(f.b.not_(f.is_null(array))), f.b.if_then(is_type(f, array, "PyArray_Type")):
        kind = f.load(f.load(array, object_layout.ARRAY_DESCR, PTR), object_layout.DESCR_KIND, I8)
        f.set(is_floating, f.eq(kind, ir.Constant(I8, ord("f"))))
    return f.get(is_floating, I1)


def set_field(f: Function, obj: ir.Value, offset: int, value: ir.Value) -> None:
    """Let a slot of an object hold another object."""
    before = f.load(obj, offset, PTR)
    f.store(f.incref(value), obj, offset)
    f.call("Py_DecRef", VOID, before)


# ---- the table


def _slots(f: Function, table: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The entries of a table, and how many there are, less 1."""
    count = f.b.udiv(f.load(table, object_layout.SIZE, I64), i64(4))
    return f.load(table, object_layout.BYTEARRAY_START, PTR), f.b.sub(count, i64(1))


def _place_of(f: Function, value: ir.Value, mask: ir.Value) -> ir.Value:
    """Where to look for a value first."""
    address = f.b.ptrtoint(value, I64)
    mixed = f.b.xor(f.b.lshr(address, i64(4)), f.b.lshr(address, i64(12)))
    return f.b.and_(mixed, mask)


def _next(f: Function, place: ir.Value, mask: ir.Value) -> None:
    f.set(place, f.b.and_(f.b.add(f.get(place, I64), i64(1)), mask))


def _log_find(f: Function, table: ir.Value, values: ir.Value, value: ir.Value) -> ir.Value:
    """The address of the entry of a value, or of the free place where it would be."""
    entries, mask = _slots(f, table)
    items = f.load(values, object_layout.LIST_ITEMS, PTR)
    place = f.local(I64, _place_of(f, value, mask))

    def is_other() -> ir.Value:
        entry = f.get(f.element(entries, f.get(place, I64), I32), I32)
        other = f.local(I1, FALSE)
        with f.b.if_then(f.ne(entry, i32(0))):
            number = f.b.sub(f.b.zext(f.b.lshr(entry, i32(1)), I64), i64(1))
            f.set(other, f.ne(f.get(f.element(items, number, PTR), PTR), value))
        return f.get(other, I1)

    with f.loop(is_other):
        _next(f, place, mask)
    return f.element(entries, f.get(place, I64), I32)


def _log_entry(module: Module, offsets: TapeOffsets) -> None:
    """i64 log_entry(tape, value): its entry, ``NEW`` or ``ELSEWHERE``."""
    f = module.function("log_entry", I64, PTR, PTR)
    tape, value = f.args
    table = f.load(tape, offsets.table, PTR)
    f.ret_if(f.eq(table, module.symbol("_Py_NoneStruct")), i64(NEW))
    f.ret_if(f.b.not_(is_type(f, table, "PyByteArray_Type")), i64(ELSEWHERE))
    slot = _log_find(f, table, f.load(tape, offsets.values, PTR), value)
    entry = f.b.zext(f.get(slot, I32), I64)
    f.ret(f.b.select(f.eq(entry, i64(0)), i64(NEW), f.b.sub(entry, i64(2))))


def _log_start(module: Module, offsets: TapeOffsets) -> None:
    """i1 log_start(tape): see to it that there is a table; or false and an error."""
    f = module.function("log_start", I1, PTR)
    (tape,) = f.args
    none = module.symbol("_Py_NoneStruct")
    f.ret_if(f.ne(f.load(tape, offsets.table, PTR), none), TRUE)
    with (
        f.owned(f.call("PyList_New", PTR, i64(0))) as values,
        f.owned(f.call("PyList_New", PTR, i64(0))) as definitions,
        f.owned(f.call("PyByteArray_FromStringAndSize", PTR, NULL, i64(0))) as words,
        f.owned(f.call("PyByteArray_FromStringAndSize", PTR, NULL, i64(4 * LOG_ENTRIES))) as table,
    ):
        logs = (values, definitions, words, table)
        for one in logs:
            f.ret_if(f.is_null(one.value), FALSE)
        f.ret_if(f.ne(f.load(tape, offsets.table, PTR), none), TRUE)  # Python code ran meanwhile
        entries = f.load(table.value, object_layout.BYTEARRAY_START, PTR)
        f.call("memset", PTR, entries, i32(0), i64(4 * LOG_ENTRIES))
        places = (offsets.values, offsets.definitions, offsets.words, offsets.table)
        for one, offset in zip(logs, places):
            set_field(f, tape, offset, one.value)
    f.ret(TRUE)


def _log_insert(module: Module) -> None:
    """void log_insert(entries, i64 mask, value, i32 entry): put an entry into the first free place for a value."""
    f = module.function("log_insert", VOID, PTR, I64, PTR, I32, inline=True)
    entries, mask, value, entry = f.args
    place = f.local(I64, _place_of(f, value, mask))
    with f.loop(lambda: f.ne(f.get(f.element(entries, f.get(place, I64), I32), I32), i32(0))):
        _next(f, place, mask)
    f.set(f.element(entries, f.get(place, I64), I32), entry)
    f.ret()


def _log_place(module: Module, offsets: TapeOffsets) -> None:
    """i64 log_place(tape, value, i64 tracked): give a value that is new the next number, which is the result; or -1 and
    an error."""
    f = module.function("log_place", I64, PTR, PTR, I64)
    tape, value, tracked = f.args
    values = f.load(tape, offsets.values, PTR)
    number = f.load(values, object_layout.SIZE, I64)
    entries, mask = _slots(f, f.load(tape, offsets.table, PTR))
    is_full = f.b.icmp_unsigned(">", f.b.mul(f.b.add(number, i64(1)), i64(2)), mask)
    with f.b.if_then(is_full, likely=False):
        room = f.b.mul(f.b.add(mask, i64(1)), i64(8))
        larger = f.call("PyByteArray_FromStringAndSize", PTR, NULL, room)
        f.ret_if(f.is_null(larger), i64(-1))
        new, new_mask = _slots(f, larger)
        f.call("memset", PTR, new, i32(0), room)
        items = f.load(values, object_layout.LIST_ITEMS, PTR)
        with f.count(f.b.add(mask, i64(1))) as k:
            entry = f.get(f.element(entries, k, I32), I32)
            with f.b.if_then(f.ne(entry, i32(0))):
                place = f.b.sub(f.b.zext(f.b.lshr(entry, i32(1)), I64), i64(1))
                f.call("log_insert", VOID, new, new_mask, f.get(f.element(items, place, PTR), PTR), entry)
        with f.owned(larger, counted=False) as table:
            set_field(f, tape, offsets.table, table.value)
    f.ret_if(f.ne(f.call("PyList_Append", I32, values, value), i32(0)), i64(-1))
    entries, mask = _slots(f, f.load(tape, offsets.table, PTR))
    entry = f.b.or_(f.b.shl(f.b.add(number, i64(1)), i64(1)), tracked)
    f.call("log_insert", VOID, entries, mask, value, f.b.trunc(entry, I32))
    f.ret(number)


def _log_track(module: Module, offsets: TapeOffsets) -> None:
    """void log_track(tape, value): a value that has a number is tracked from now on."""
    f = module.function("log_track", VOID, PTR, PTR)
    tape, value = f.args
    slot = _log_find(f, f.load(tape, offsets.table, PTR), f.load(tape, offsets.values, PTR), value)
    f.set(slot, f.b.or_(f.get(slot, I32), i32(1)))
    f.ret()


# ---- words


def _log_write(module: Module, offsets: TapeOffsets) -> None:
    """i1 log_write(tape, words, i64 count): append words; or false and an error."""
    f = module.function("log_write", I1, PTR, PTR, I64)
    tape, words, count = f.args
    held = f.load(tape, offsets.words, PTR)
    size, more = f.load(held, object_layout.SIZE, I64), f.b.mul(count, i64(WORD))
    failed = f.call("PyByteArray_Resize", I32, held, f.b.add(size, more))
    f.ret_if(f.ne(failed, i32(0)), FALSE)
    f.call("memcpy", PTR, f.at(f.load(held, object_layout.BYTEARRAY_START, PTR), size), words, more)
    f.ret(TRUE)


def write(f: Function, tape: ir.Value, *words: ir.Value) -> ir.Value:
    """Append these words; whether that worked."""
    item = f.local(ir.ArrayType(I64, len(words)))
    for k, word in enumerate(words):
        f.store(word, item, k * WORD)
    return f.call("log_write", I1, tape, item, i64(len(words)))


def _log_number(module: Module, offsets: TapeOffsets) -> None:
    """i64 log_number(tape, tensor, i64 tracked): the number of a tensor over an ndarray, which may be new; -1 and an
    error."""
    f = module.function("log_number", I64, PTR, PTR, I64)
    tape, tensor, tracked = f.args
    entry = f.call("log_entry", I64, tape, tensor)
    with f.b.if_then(f.b.icmp_signed(">=", entry, i64(0))):
        with f.b.if_then(f.ne(tracked, i64(0))):
            f.call("log_track", VOID, tape, tensor)
        f.ret(f.b.lshr(entry, i64(1)))
    number = f.call("log_place", I64, tape, tensor, tracked)
    f.ret_if(f.b.icmp_signed("<", number, i64(0)), i64(-1))
    array = f.call("array_of", PTR, tensor)
    ndim = f.b.sext(f.load(array, object_layout.ARRAY_NDIM, I32), I64)
    dtype = f.load(f.load(array, object_layout.ARRAY_DESCR, PTR), object_layout.DESCR_NUM, I32)
    item = f.local(ir.ArrayType(I64, 3 + _MAX_NDIM))
    for k, word in enumerate((i64(LOG_VALUE), f.b.sext(dtype, I64), ndim)):
        f.store(word, item, k * WORD)
    extents = f.b.mul(ndim, i64(WORD))
    f.call("memcpy", PTR, f.at(item, 3 * WORD), f.load(array, object_layout.ARRAY_SHAPE, PTR), extents)
    f.ret_if(f.b.not_(f.call("log_write", I1, tape, item, f.b.add(ndim, i64(3)))), i64(-1))
    f.ret(number)


def _log_call(module: Module, offsets: TapeOffsets) -> None:
    """i1 log_call(tape, definition, operands, i64 count, out): a call with one result, of which derivatives are of
    interest; or false and an error."""
    f = module.function("log_call", I1, PTR, PTR, PTR, I64, PTR)
    tape, definition, operands, count, out = f.args
    words = f.local_array(I64, f.b.add(count, i64(3)))
    head = LOG_CALL | 1 << LOG_OUTPUTS
    f.set(words, f.b.or_(i64(head), f.b.shl(count, i64(LOG_INPUTS))))
    f.store(f.b.ptrtoint(definition, I64), words, WORD)
    with f.count(count) as k:
        number = f.call("log_number", I64, tape, f.get(f.element(operands, k, PTR), PTR), i64(0))
        f.ret_if(f.b.icmp_signed("<", number, i64(0)), FALSE)
        f.set(f.element(words, f.b.add(k, i64(2)), I64), number)
    number = f.call("log_place", I64, tape, out, i64(1))
    f.ret_if(f.b.icmp_signed("<", number, i64(0)), FALSE)
    f.set(f.element(words, f.b.add(count, i64(2)), I64), number)
    failed = f.call("PyList_Append", I32, f.load(tape, offsets.definitions, PTR), definition)
    f.ret_if(f.ne(failed, i32(0)), FALSE)
    f.ret(f.call("log_write", I1, tape, words, f.b.add(count, i64(3))))


# ---- variables


def _read_variable(module: Module, offsets: TapeOffsets) -> None:
    """PyObject *read_variable(tape, variable): its value, of which the tape is told, and which is shown from now on;
    null with an error, or ``miss`` where Python has to wait or to look."""
    f = module.function("read_variable", PTR, PTR, PTR)
    tape, variable = f.args
    miss, yes = module.symbol("miss"), module.symbol("_Py_TrueStruct")
    f.ret_if(f.b.not_(f.call("log_start", I1, tape)), NULL)  # others may run in it, but not from here on
    value, gate = (f.load(variable, place, PTR) for place in (offsets.variable_tensor, offsets.variable_gate))
    f.ret_if(f.b.or_(f.is_null(value), f.is_null(gate)), miss)
    words = f.call("PyLong_AsVoidPtr", PTR, f.load(gate, offsets.gate_address, PTR))
    f.ret_if(f.eq(f.load(words, 4 * RUNNING, I32), i32(IN_PLACE)), miss)
    with f.owned(f.incref(value)) as tensor:
        entry = f.call("log_entry", I64, tape, tensor.value)
        f.ret_if(f.eq(entry, i64(ELSEWHERE)), miss)
        is_told = f.eq(f.load(tape, offsets.recording, PTR), yes)
        with f.b.if_then(f.b.and_(is_told, f.b.not_(_is_odd(f, entry)))):
            _note_read(f, offsets, tape, variable, tensor.value, entry)
        set_field(f, variable, offsets.variable_own, module.symbol("_Py_NoneStruct"))
        f.ret(tensor.given())


def _note_read(
    f: Function, offsets: TapeOffsets, tape: ir.Value, variable: ir.Value, tensor: ir.Value, entry: ir.Value
) -> None:
    """Tell a tape of a tensor that it does not track, if it watches the variable; return an error, or a miss."""
    miss, yes = f.module.symbol("miss"), f.module.symbol("_Py_TrueStruct")
    f.ret_if(f.b.not_(is_type(f, tensor, "Tensor_Type")), miss)
    f.ret_if(f.b.not_(is_float(f, tensor)), miss)
    known = f.call("log_entry", I64, tape, variable)
    accessed = f.eq(f.load(tape, offsets.watches_accessed, PTR), yes)
    answer = f.load(variable, offsets.variable_trainable, PTR)
    trainable = f.eq(answer, yes)
    f.ret_if(f.b.not_(f.b.or_(trainable, f.eq(answer, f.module.symbol("_Py_FalseStruct")))), miss)
    is_new = f.b.icmp_signed("<", known, i64(0))
    is_watched = f.b.or_(f.b.not_(is_new), f.b.and_(accessed, trainable))
    with f.b.if_then(is_watched):
        number = f.local(I64, f.b.lshr(known, i64(1)))
        with f.b.if_else(is_new, likely=True) as (first, again):
            with first:
                odd = f.b.zext(f.b.icmp_signed(">=", entry, i64(0)), I64)
                f.set(number, f.call("log_place", I64, tape, variable, odd))
                f.ret_if(f.b.icmp_signed("<", f.get(number, I64), i64(0)), NULL)
                f.ret_if(f.b.not_(write(f, tape, i64(LOG_VARIABLE))), NULL)
            with again:
                f.call("log_track", VOID, tape, variable)
        read = f.call("log_number", I64, tape, tensor, i64(1))
        f.ret_if(f.b.icmp_signed("<", read, i64(0)), NULL)
        f.ret_if(f.b.not_(write(f, tape, i64(LOG_READ), f.get(number, I64), read)), NULL)


# ---- calls


def _tell(module: Module, offsets: TapeOffsets) -> None:
    """i32 tell(tape, known, result, args, i64 count): tell a tape of a call: ``TOLD``; ``FAILED`` and an error; or
    ``UNKNOWN``, where Python has to do it."""
    f = module.function("tell", I32, PTR, PTR, PTR, PTR, I64)
    tape, known, result, args, count = f.args
    f.ret_if(f.ne(f.load(tape, offsets.recording, PTR), module.symbol("_Py_TrueStruct")), i32(TOLD))
    room = f.local(I64, i64(0))
    with f.count(count) as i:
        value = f.get(f.element(args, i, PTR), PTR)
        size = f.local(I64, i64(1))
        with f.b.if_then(_is_sequence(f, value)):
            f.set(size, f.load(value, object_layout.SIZE, I64))
        f.set(room, f.b.add(f.get(room, I64), f.get(size, I64)))
    operands, listed, tracked = f.local_array(PTR, f.get(room, I64)), f.local(I64, i64(0)), f.local(I64, i64(0))

    def take(value: ir.Value) -> None:
        with f.b.if_else(is_type(f, value, "Tensor_Type"), likely=True) as (tensor, other):
            with tensor:
                entry = f.call("log_entry", I64, tape, value)
                f.ret_if(f.eq(entry, i64(ELSEWHERE)), i32(UNKNOWN))
                f.ret_if(f.b.not_(is_type(f, f.call("array_of", PTR, value), "PyArray_Type")), i32(UNKNOWN))
                f.set(tracked, f.b.or_(f.get(tracked, I64), f.b.zext(_is_odd(f, entry), I64)))
                f.set(f.element(operands, f.get(listed, I64), PTR), value)
                f.set(listed, f.b.add(f.get(listed, I64), i64(1)))
            with other:
                f.ret_if(f.b.not_(_is_plain_value(f, value)), i32(UNKNOWN))

    with f.count(count) as i:
        value = f.get(f.element(args, i, PTR), PTR)
        with f.b.if_else(_is_sequence(f, value), likely=False) as (sequence, single):
            with sequence, f.count(f.load(value, object_layout.SIZE, I64)) as k:
                take(f.get(f.element(items_of(f, value), k, PTR), PTR))
            with single:
                take(value)
    f.ret_if(f.eq(f.get(tracked, I64), i64(0)), i32(TOLD))
    whole = f.load(known, offsets.whole, PTR)
    f.ret_if(f.eq(whole, module.symbol("_Py_NoneStruct")), i32(UNKNOWN))
    done = f.call("log_call", I1, tape, whole, operands, f.get(listed, I64), result)
    f.ret(f.b.select(done, i32(TOLD), i32(FAILED)))


def _is_untouched(module: Module) -> None:
    """i1 is_untouched(tape, args, i64 count): whether nothing among arguments is tracked, as far as native code sees:
    tensors and arrays, alone or in lists and tuples, and numbers."""
    f = module.function("is_untouched", I1, PTR, PTR, I64)
    tape, args, count = f.args

    def look(value: ir.Value) -> None:
        with f.b.if_else(is_type(f, value, "Tensor_Type"), likely=True) as (tensor, other):
            with tensor:
                entry = f.call("log_entry", I64, tape, value)
                f.ret_if(f.eq(entry, i64(ELSEWHERE)), FALSE)
                f.ret_if(_is_odd(f, entry), FALSE)
            with other:
                known = f.b.or_(_is_plain_value(f, value), is_type(f, value, "PyArray_Type"))
                f.ret_if(f.b.not_(known), FALSE)

    with f.count(count) as i:
        value = f.get(f.element(args, i, PTR), PTR)
        with f.b.if_else(_is_sequence(f, value), likely=False) as (sequence, single):
            with sequence, f.count(f.load(value, object_layout.SIZE, I64)) as k:
                look(f.get(f.element(items_of(f, value), k, PTR), PTR))
            with single:
                look(value)
    f.ret(TRUE)


def _is_odd(f: Function, entry: ir.Value) -> ir.Value:
    """Whether an entry is there, and that of a value that is tracked."""
    return f.b.and_(f.b.icmp_signed(">=", entry, i64(0)), f.eq(f.b.and_(entry, i64(1)), i64(1)))


def _is_sequence(f: Function, value: ir.Value) -> ir.Value:
    return f.b.or_(is_type(f, value, "PyList_Type"), is_type(f, value, "PyTuple_Type"))


def items_of(f: Function, sequence: ir.Value) -> ir.Value:
    """The address of the items of a list or tuple."""
    items = f.local(PTR, f.at(sequence, object_layout.TUPLE_ITEMS))
    with f.b.if_then(is_type(f, sequence, "PyList_Type")):
        f.set(items, f.load(sequence, object_layout.LIST_ITEMS, PTR))
    return f.get(items, PTR)


def _is_plain_value(f: Function, value: ir.Value) -> ir.Value:
    """Whether it is None, or a bool, a number or text of Python's."""
    result: ir.Value = f.eq(value, f.module.symbol("_Py_NoneStruct"))
    for name in ("PyLong_Type", "PyFloat_Type", "PyBool_Type", "PyUnicode_Type"):
        result = f.b.or_(result, is_type(f, value, name))
    return result
