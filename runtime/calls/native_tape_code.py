"""LLVM code of tapes' own methods (see ``recording``), a module of its own.

What the running context holds is replaced in one go: no Python code runs in between that could be interrupted.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls import array_match_code, entry_code, fast_path_check_code, tape_log_code
from hybridflow.runtime.calls.record_access import is_type
from hybridflow.runtime.calls.tape_log_code import set_field, write
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import I1, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.native.records import (
    LOG_SEEDS,
    LOG_WANTED,
    LOG_WATCH,
    WORD,
    Offsets,
    PassOffsets,
    TapeOffsets,
)


def build(offsets: Offsets, passes: PassOffsets, checked: bool = False) -> str:
    """The module's text; for ``checked`` see ``entry_code``."""
    module, tape = entry_code.new_module(checked), offsets.tape
    fast_path_check_code.define(module)
    array_match_code.define_array_of(module, offsets)
    _set_state(module)
    _try_enter(module, tape)
    _try_exit(module, tape)
    _try_watch(module, tape)
    _number_of(module, tape)
    _pass_for(module, tape)
    _clear(module, tape)
    _try_gradient(module, tape, passes)
    for name, count in (("enter", 0), ("exit", 3), ("watch", 1), ("gradient", 2)):
        _export(module, name, count)
    _functions(module)
    return str(module.ir)


# ---- blocks


def _set_state(module: Module) -> None:
    """PyObject *set_state(state, result): let the running context hold a state; ``result``, or null and an error."""
    f = module.function("set_state", PTR, PTR, PTR, inline=True)
    state, result = f.args
    with f.owned(f.call("PyContextVar_Set", PTR, module.symbol("State"), state)) as token:
        f.ret_if(f.is_null(token.value), NULL)
        f.ret(f.incref(result))


def _state_here(f: Function) -> ir.Value:
    """A new reference to the state of the running context, or null and an error."""
    state = f.local(PTR, NULL)
    failed = f.call("PyContextVar_Get", I32, f.module.symbol("State"), NULL, state)
    f.ret_if(f.ne(failed, i32(0)), NULL)
    return f.get(state, PTR)


def _try_enter(module: Module, offsets: TapeOffsets) -> None:
    """PyObject *try_enter(tape): the tape, which is open from now on, as the only thing that the context holds; or
    ``miss``."""
    f = module.function("try_enter", PTR, PTR)
    (tape,) = f.args
    none, yes, miss = (module.symbol(name) for name in ("_Py_NoneStruct", "_Py_TrueStruct", "miss"))
    is_open = f.ne(f.load(tape, offsets.recording, PTR), module.symbol("_Py_FalseStruct"))
    f.ret_if(is_open, miss)
    with f.owned(_state_here(f)) as before:
        f.ret_if(f.ne(before.value, module.symbol("Idle")), miss)
    with f.owned(f.call("PyTuple_New", PTR, i64(1))) as tapes:
        f.ret_if(f.is_null(tapes.value), NULL)
        f.store(f.incref(tape), tapes.value, object_layout.TUPLE_ITEMS)
        with f.owned(f.call("PyType_GenericAlloc", PTR, module.symbol("State_Type"), i64(0))) as state:
            f.ret_if(f.is_null(state.value), NULL)
            takes_wholes = f.eq(f.load(tape, offsets.takes_wholes, PTR), yes)
            only = f.b.select(takes_wholes, tape, none)
            for offset, value in (
                (offsets.trace, none),
                (offsets.device, none),
                (offsets.tapes, tapes.value),
                (offsets.only_tape, only),
                (offsets.is_counted, yes),
            ):
                f.store(f.incref(value), state.value, offset)
            f.set(module.symbol("busy"), f.b.add(f.get(module.symbol("busy"), I32), i32(1)))
            set_field(f, tape, offsets.recording, yes)
            f.ret(f.call("set_state", PTR, state.value, tape))


def _try_exit(module: Module, offsets: TapeOffsets) -> None:
    """PyObject *try_exit(tape, type, error, traceback): None, when the tape is closed; ``miss`` where the context holds
    something else."""
    f = module.function("try_exit", PTR, PTR, PTR, PTR, PTR)
    tape = f.args[0]
    none, miss, idle = (module.symbol(name) for name in ("_Py_NoneStruct", "miss", "Idle"))
    set_field(f, tape, offsets.recording, module.symbol("_Py_FalseStruct"))
    with f.owned(_state_here(f)) as state:
        with f.b.if_then(f.eq(state.value, idle)):
            f.ret(f.incref(none))
        f.ret_if(f.b.not_(is_type(f, state.value, "State_Type")), miss)
        for offset in (offsets.trace, offsets.device):
            f.ret_if(f.ne(f.load(state.value, offset, PTR), none), miss)
        tapes = f.load(state.value, offsets.tapes, PTR)
        f.ret_if(f.b.not_(is_type(f, tapes, "PyTuple_Type")), miss)
        f.ret_if(f.ne(f.load(tapes, object_layout.SIZE, I64), i64(1)), miss)
        f.ret_if(f.ne(f.load(tapes, object_layout.TUPLE_ITEMS, PTR), tape), miss)
        f.ret(f.call("set_state", PTR, idle, none))


# ---- watching


def _try_watch(module: Module, offsets: TapeOffsets) -> None:
    """PyObject *try_watch(tape, value): None when a tensor is watched; or ``miss``."""
    f = module.function("try_watch", PTR, PTR, PTR)
    tape, value = f.args
    none, yes, miss = (module.symbol(name) for name in ("_Py_NoneStruct", "_Py_TrueStruct", "miss"))
    for offset in (offsets.takes_wholes, offsets.is_plain):
        f.ret_if(f.ne(f.load(tape, offset, PTR), yes), miss)
    f.ret_if(f.b.not_(tape_log_code.is_float(f, value)), miss)
    f.ret_if(f.b.not_(f.call("log_start", I1, tape)), NULL)
    f.ret_if(f.eq(f.call("log_entry", I64, tape, value), i64(tape_log_code.ELSEWHERE)), miss)
    number = f.call("log_number", I64, tape, value, i64(1))
    f.ret_if(f.b.icmp_signed("<", number, i64(0)), NULL)
    f.ret_if(f.b.not_(write(f, tape, i64(LOG_WATCH), number)), NULL)
    f.ret(f.incref(none))


# ---- gradients


def _number_of(module: Module, offsets: TapeOffsets) -> None:
    """i64 number_of(tape, source): the number of the value that the derivative is taken of: of the tensor, or of the
    one that was read from a variable; -1 where Python has to look."""
    f = module.function("number_of", I64, PTR, PTR)
    tape, source = f.args
    entry = f.call("log_entry", I64, tape, source)
    f.ret_if(f.b.icmp_signed("<", entry, i64(0)), i64(-1))
    number, is_odd = f.b.lshr(entry, i64(1)), f.eq(f.b.and_(entry, i64(1)), i64(1))
    with f.b.if_then(is_type(f, source, "Tensor_Type"), likely=True):
        f.ret(f.b.select(is_odd, number, i64(-1)))
    regular = f.b.and_(is_type(f, source, "Variable_Type"), f.b.not_(is_odd))
    f.ret(f.b.select(regular, f.b.add(number, i64(1)), i64(-1)))


def _pass_for(module: Module, offsets: TapeOffsets) -> None:
    """PyObject *pass_for(tape, i64 target, sources, i64 count): what is known of the pass that the words of the tape
    and of what is asked for stand for; a borrowed reference, null with or without an error."""
    f = module.function("pass_for", PTR, PTR, I64, PTR, I64)
    tape, target, sources, count = f.args
    words = f.load(tape, offsets.words, PTR)
    size = f.load(words, object_layout.SIZE, I64)
    more = f.b.add(f.b.mul(count, i64(2 * WORD)), i64(6 * WORD))
    key = f.call("PyBytes_FromStringAndSize", PTR, NULL, f.b.add(size, more))
    with f.owned(key) as held:
        f.ret_if(f.is_null(held.value), NULL)
        start = f.at(held.value, object_layout.BYTES_DATA)
        f.call("memcpy", PTR, start, f.load(words, object_layout.BYTEARRAY_START, PTR), size)
        tail = f.at(start, size)
        for k, word in enumerate((i64(LOG_SEEDS), i64(1), target, i64(-1), i64(LOG_WANTED), count)):
            f.store(word, tail, k * WORD)
        with f.count(count) as k:
            number = f.call("number_of", I64, tape, f.get(f.element(sources, k, PTR), PTR))
            f.ret_if(f.b.icmp_signed("<", number, i64(0)), NULL)
            group = f.at(f.element(tail, f.b.mul(k, i64(2)), I64), 6 * WORD)
            f.set(group, i64(1))
            f.store(number, group, WORD)
        f.ret(f.call("PyDict_GetItemWithError", PTR, module.symbol("Passes"), held.value))


def _clear(module: Module, offsets: TapeOffsets) -> None:
    """void clear(tape): a gradient has been asked for; of a tape that is not persistent the variables among its values
    stay, for ``watched_variables``."""
    f = module.function("clear", VOID, PTR)
    (tape,) = f.args
    yes, none = module.symbol("_Py_TrueStruct"), module.symbol("_Py_NoneStruct")
    set_field(f, tape, offsets.used, yes)
    with f.b.if_then(f.ne(f.load(tape, offsets.persistent, PTR), yes), likely=True):
        places = (offsets.table, offsets.words, offsets.definitions)
        held = [f.load(tape, place, PTR) for place in places]
        for place in places:
            f.store(f.incref(none), tape, place)
        values = f.incref(f.load(tape, offsets.values, PTR))
        kept = _variables_first(f, values)
        failed = f.call("PyList_SetSlice", I32, values, kept, f.load(values, object_layout.SIZE, I64), NULL)
        with f.b.if_then(f.ne(failed, i32(0)), likely=False):  # there was no memory to take the others out
            f.call("PyErr_Clear", VOID)
        for one in (values, *held):  # Python code may run from here on
            f.call("Py_DecRef", VOID, one)
    f.ret()


def _variables_first(f: Function, values: ir.Value) -> ir.Value:
    """Put the variables of a list before all else in it, in their order.  Returns how many there are."""
    items, kept = f.load(values, object_layout.LIST_ITEMS, PTR), f.local(I64, i64(0))
    with f.count(f.load(values, object_layout.SIZE, I64)) as k:
        place = f.element(items, k, PTR)
        value = f.get(place, PTR)
        with f.b.if_then(is_type(f, value, "Variable_Type")):
            first = f.element(items, f.get(kept, I64), PTR)
            f.set(place, f.get(first, PTR))
            f.set(first, value)
            f.set(kept, f.b.add(f.get(kept, I64), i64(1)))
    return f.get(kept, I64)


def _try_gradient(module: Module, offsets: TapeOffsets, passes: PassOffsets) -> None:
    """PyObject *try_gradient(tape, target, sources): of a tensor with respect to tensors and variables, one or a list
    or tuple of them, by a known pass; or ``miss``."""
    f = module.function("try_gradient", PTR, PTR, PTR, PTR)
    tape, target, sources = f.args
    yes, no, miss = (module.symbol(name) for name in ("_Py_TrueStruct", "_Py_FalseStruct", "miss"))
    for offset, expected in ((offsets.used, no), (offsets.recording, no), (offsets.is_plain, yes)):
        f.ret_if(f.ne(f.load(tape, offset, PTR), expected), miss)
    f.ret_if(f.b.not_(fast_path_check_code.is_idle(f)), miss)
    f.ret_if(f.b.not_(is_type(f, target, "Tensor_Type")), miss)
    number = f.call("number_of", I64, tape, target)
    f.ret_if(f.b.icmp_signed("<", number, i64(0)), miss)
    is_list, is_tuple = (is_type(f, sources, name) for name in ("PyList_Type", "PyTuple_Type"))
    one = f.local(PTR, sources)
    items, count = f.local(PTR, one), f.local(I64, i64(1))
    with f.b.if_then(f.b.or_(is_list, is_tuple)):
        f.set(items, tape_log_code.items_of(f, sources))
        f.set(count, f.load(sources, object_layout.SIZE, I64))
    known_pass = f.call("pass_for", PTR, tape, number, f.get(items, PTR), f.get(count, I64))
    with f.b.if_then(f.is_null(known_pass), likely=False):
        f.ret_if(f.is_null(f.call("PyErr_Occurred", PTR)), miss)
        f.ret(NULL)
    f.incref(known_pass)
    values = f.incref(f.load(tape, offsets.values, PTR))
    with f.owned(known_pass) as known, f.owned(values) as held:
        call, numbers = f.load(known.value, passes.native, PTR), f.load(known.value, passes.numbers, PTR)
        f.ret_if(f.is_null(call), miss)
        f.ret_if(f.eq(call, module.symbol("_Py_NoneStruct")), miss)
        inputs = f.b.udiv(f.load(numbers, object_layout.SIZE, I64), i64(WORD))
        args = f.local_array(PTR, inputs)
        of_values = f.load(held.value, object_layout.LIST_ITEMS, PTR)
        with f.count(inputs) as k:
            place = f.get(f.element(f.at(numbers, object_layout.BYTES_DATA), k, I64), I64)
            f.set(f.element(args, k, PTR), f.get(f.element(of_values, place, PTR), PTR))
        answer = f.call("attempt", PTR, call, args, inputs, NULL)
        f.ret_if(f.eq(answer, miss), miss)
        with f.owned(answer) as results:
            f.ret_if(f.is_null(results.value), NULL)
            f.call("clear", VOID, tape)
            with f.b.if_then(is_tuple):
                f.ret(f.incref(results.value))
            with f.b.if_then(is_list):
                f.ret(f.call("PySequence_List", PTR, results.value))
            f.ret(f.incref(f.load(results.value, object_layout.TUPLE_ITEMS, PTR)))


# ---- what Python calls


def _export(module: Module, name: str, count: int) -> None:
    """PyObject *name(tape, args, i64 nargs, kwnames): what ``try_...`` gives for so many arguments, else the method in
    Python."""
    f = module.function(name, PTR, PTR, PTR, I64, PTR)
    tape, args, nargs, kwnames = f.args
    with f.b.if_then(f.b.and_(f.is_null(kwnames), f.eq(nargs, i64(count))), likely=True):
        passed = [f.load(args, k * WORD, PTR) for k in range(count)]
        result = entry_code.balanced(f, f"try_{name}", tape, *passed)
        f.ret_if(f.ne(result, module.symbol("miss")), result)
    named = f.local(I64, i64(0))
    with f.b.if_then(f.b.not_(f.is_null(kwnames)), likely=False):
        f.set(named, f.load(kwnames, object_layout.SIZE, I64))
    total = f.b.add(nargs, f.get(named, I64))
    arguments = f.local_array(PTR, f.b.add(total, i64(1)))
    f.set(arguments, tape)
    f.call("memcpy", PTR, f.at(arguments, WORD), args, f.b.mul(total, i64(WORD)))
    slow, positional = module.symbol(f"Name_{name}"), f.b.add(nargs, i64(1))
    f.ret(f.call("PyObject_VectorcallMethod", PTR, slow, arguments, positional, kwnames))


def _functions(module: Module) -> None:
    """PyObject *call_entry(none, args, i64 nargs): of a log and a value; call_track as well, and call_place of a bool
    more (see ``log``)."""
    f = module.function("call_entry", PTR, PTR, PTR, I64)
    log, value = (f.load(f.args[1], k * WORD, PTR) for k in range(2))
    f.ret(f.call("PyLong_FromLongLong", PTR, f.call("log_entry", I64, log, value)))

    f = module.function("call_track", PTR, PTR, PTR, I64)
    log, value = (f.load(f.args[1], k * WORD, PTR) for k in range(2))
    f.call("log_track", VOID, log, value)
    f.ret(f.incref(module.symbol("_Py_NoneStruct")))

    f = module.function("call_place", PTR, PTR, PTR, I64)
    log, value, tracked = (f.load(f.args[1], k * WORD, PTR) for k in range(3))
    is_tracked = f.b.zext(f.eq(tracked, module.symbol("_Py_TrueStruct")), I64)
    number = f.call("log_place", I64, log, value, is_tracked)
    f.ret_if(f.b.icmp_signed("<", number, i64(0)), NULL)
    f.ret(f.call("PyLong_FromLongLong", PTR, number))
