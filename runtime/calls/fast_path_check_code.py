"""LLVM code for the question that every native call begins with: may it take the shortcut here?"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.native.ir_builder import FALSE, I1, I32, NULL, PTR, TRUE, VOID, Function, Module, i32


def define(module: Module) -> None:
    """Add ``PyObject *state_here()``: the state of the running context, or null where the whole process has a reason
    (see ``front_end.Reasons``); and ``i1 state_is_idle()``, whether there is no reason at all."""
    f = module.function("state_here", PTR)
    f.ret_if(f.ne(f.get(module.symbol("everywhere"), I32), i32(0)), NULL)
    state = f.local(PTR, NULL)
    failed = f.call("PyContextVar_Get", I32, module.symbol("State"), NULL, state)
    with f.b.if_then(f.ne(failed, i32(0)), likely=False):
        f.call("PyErr_Clear", VOID)
        f.ret(NULL)
    with f.owned(f.get(state, PTR)) as value:
        f.ret(value.given())

    f = module.function("state_is_idle", I1)
    here = f.call("state_here", PTR)
    f.ret_if(f.is_null(here), FALSE)
    with f.owned(here) as value:
        f.ret(f.eq(value.value, module.symbol("Idle")))


def is_idle(f: Function) -> ir.Value:
    """Whether the call may take the shortcut: one comparison where no context has a reason not to."""
    idle = f.local(I1, TRUE)
    with f.b.if_then(f.ne(f.get(f.module.symbol("busy"), I32), i32(0)), likely=False):
        f.set(idle, f.call("state_is_idle", I1))
    return f.get(idle, I1)
