"""LLVM code that opens and closes tapes (see ``recording``), a module of its own.

What the running context holds is replaced in one go: no Python code runs in between that could be interrupted.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls import entry_code
from hybridflow.runtime.calls.entry_words import is_type
from hybridflow.runtime.native import layout
from hybridflow.runtime.native.ir_builder import I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.native.records import TapeOffsets


def build(offsets: TapeOffsets, checked: bool = False) -> str:
    """The module's text; for ``checked`` see ``entry_code``."""
    module = entry_code.new_module(checked)
    _forget_state(module, offsets)
    _set_state(module)
    _try_enter(module, offsets)
    _try_exit(module, offsets)
    for name in ("enter", "exit"):
        _export(module, name)
    return str(module.ir)


def _forget_state(module: Module, offsets: TapeOffsets) -> None:
    """void forget_state(state): the last context that held a state is gone; it is not counted any more."""
    f = module.function("forget_state", VOID, PTR)
    (state,) = f.args
    with f.b.if_then(f.eq(f.load(state, offsets.is_counted, PTR), module.symbol("_Py_TrueStruct"))):
        f.set(module.symbol("busy"), f.b.sub(f.get(module.symbol("busy"), I32), i32(1)))
    f.ret()


def _set_state(module: Module) -> None:
    """PyObject *set_state(state, result): let the running context hold a state; ``result``, or null and an error."""
    f = module.function("set_state", PTR, PTR, PTR, inline=True)
    state, result = f.args
    with f.owned(f.call("PyContextVar_Set", PTR, module.symbol("State"), state)) as token:
        f.ret_if(f.is_null(token.value), NULL)
        f.ret(f.incref(result))


def _set_field(f: Function, obj: ir.Value, offset: int, value: ir.Value) -> None:
    """Let a slot of an object hold another object."""
    before = f.load(obj, offset, PTR)
    f.store(f.incref(value), obj, offset)
    with f.owned(before, counted=False):
        pass


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
        f.store(f.incref(tape), tapes.value, layout.TUPLE_ITEMS)
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
            _set_field(f, tape, offsets.recording, yes)
            f.ret(f.call("set_state", PTR, state.value, tape))


def _try_exit(module: Module, offsets: TapeOffsets) -> None:
    """PyObject *try_exit(tape): None, when the tape is closed; ``miss`` where the context holds something else."""
    f = module.function("try_exit", PTR, PTR)
    (tape,) = f.args
    none, miss, idle = (module.symbol(name) for name in ("_Py_NoneStruct", "miss", "Idle"))
    _set_field(f, tape, offsets.recording, module.symbol("_Py_FalseStruct"))
    with f.owned(_state_here(f)) as state:
        f.ret_if(f.eq(state.value, idle), f.incref(none))
        for offset in (offsets.trace, offsets.device):
            f.ret_if(f.ne(f.load(state.value, offset, PTR), none), miss)
        tapes = f.load(state.value, offsets.tapes, PTR)
        f.ret_if(f.b.not_(is_type(f, tapes, "PyTuple_Type")), miss)
        f.ret_if(f.ne(f.load(tapes, layout.SIZE, I64), i64(1)), miss)
        f.ret_if(f.ne(f.load(tapes, layout.TUPLE_ITEMS, PTR), tape), miss)
        f.ret(f.call("set_state", PTR, idle, none))


def _export(module: Module, name: str) -> None:
    """PyObject *name(tape, args, i64 nargs): what ``try_...`` gives, else the method in Python."""
    f = module.function(name, PTR, PTR, PTR, I64)
    tape = f.args[0]
    result = entry_code.balanced(f, f"try_{name}", tape)
    f.ret_if(f.ne(result, module.symbol("miss")), result)
    arguments = f.local(PTR, tape)
    f.ret(f.call("PyObject_VectorcallMethod", PTR, module.symbol(f"Name_{name}"), arguments, i64(1), NULL))
