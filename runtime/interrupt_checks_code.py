"""Native code that Python interrupts (see ``interrupts``): what is raised where it would get lost is kept."""

from __future__ import annotations

from hybridflow.compiler.program import INTERRUPT_POLL
from hybridflow.runtime.native.ir_builder import I32, I64, NULL, PTR, VOID, Module, i32, i64

PERIOD = 50_000_000  # nanoseconds between two calls of Python


def build(checked: bool = False) -> str:
    module = Module(checked)
    _keep(module)
    _ask_python(module)
    _answer(module)
    _look(module)
    return str(module.ir)


def _look(module: Module) -> None:
    """i32 hf_interrupted(ptr last): see ``codegen.control.inline_control_flow``."""
    f = module.function(INTERRUPT_POLL, I32, PTR)
    (last,) = f.args
    now, before = f.monotonic_ns(), f.get(last, I64)
    f.set(last, f.b.select(f.eq(before, i64(0)), now, before))
    early = f.b.icmp_signed("<", f.b.sub(now, f.get(last, I64)), i64(PERIOD))
    f.ret_if(early, i32(0))
    f.set(last, now)
    f.ret_if(f.ne(f.call("PyGILState_Check", I32), i32(0)), i32(0))
    state = f.call("PyGILState_Ensure", I32)
    answer = f.call("ask_python", I32)
    f.call("PyGILState_Release", VOID, state)
    f.set(last, f.monotonic_ns())
    f.ret(answer)


def _ask_python(module: Module) -> None:
    """i32 ask_python(): 1 where something was raised, which is kept now."""
    f = module.function("ask_python", I32)
    result = f.call("PyObject_CallNoArgs", PTR, module.symbol("attend"))
    with f.b.if_then(f.b.not_(f.is_null(result))):
        f.call("Py_DecRef", VOID, result)
        f.ret(i32(0))
    f.call("keep", VOID)
    f.ret(i32(1))


def _answer(module: Module) -> None:
    """PyObject *answer(function, args, i64 nargs): what a function in Python returns; 1 where it raises, which is
    kept."""
    f = module.function("answer", PTR, PTR, PTR, I64)
    result = f.call("PyObject_Vectorcall", PTR, *f.args, NULL)
    f.ret_if(f.b.not_(f.is_null(result)), result)
    f.call("keep", VOID)
    f.ret(f.call("PyLong_FromLong", PTR, i64(1)))


def _keep(module: Module) -> None:
    """void keep(): put the error that Python has just now where ``interrupts`` finds it."""
    f = module.function("keep", VOID)
    slots = [f.local(PTR, NULL) for _ in range(3)]
    f.call("PyErr_Fetch", VOID, *slots)
    f.call("PyErr_NormalizeException", VOID, *slots)
    kind, value, traceback = (f.get(slot, PTR) for slot in slots)
    with f.b.if_then(f.b.not_(f.is_null(traceback))):
        f.call("PyException_SetTraceback", I32, value, traceback)
    f.call("PyObject_SetAttrString", I32, module.symbol("kept"), module.text("error", "error"), value)
    f.call("PyErr_Clear", VOID)  # where there was no memory to keep it
    for reference in (kind, value, traceback):
        with f.b.if_then(f.b.not_(f.is_null(reference))):
            f.call("Py_DecRef", VOID, reference)
    f.ret()
