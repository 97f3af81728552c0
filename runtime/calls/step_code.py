"""LLVM code for the guards of a NativeCall (see ``steps``).

Values are borrowed from what holds them while nothing but this code runs.  Reading an attribute, a dict with keys of
the user's classes or a predicate can run Python code, which may drop anything; so a value that a later step uses has
a reference of its own until the program ends (``STEP``'s word ``keep``).
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls.entry_words import is_type
from hybridflow.runtime.calls.steps import CHECK, READ, SIZED
from hybridflow.runtime.native import layout
from hybridflow.runtime.native.ir_builder import F64, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.native.records import HEAD, STEP, WORD, View

HOLDS, FAILS, ERROR = 1, 0, -1

_C_NAMES = {"set": "PySet_Type", "frozenset": "PyFrozenSet_Type", "str": "PyUnicode_Type"}


def define(module: Module) -> None:
    """Add ``match_guards`` to a module."""
    _on_error(module)
    _why_null(module)
    _element(module)
    _compare(module)
    _predicate(module)
    _run_steps(module)
    _match_guards(module)


def _match_guards(module: Module) -> None:
    """i32 match_guards(record): HOLDS, FAILS, or ERROR with a BaseException set that is no Exception."""
    f = module.function("match_guards", I32, PTR)
    (record,) = f.args
    head = HEAD.at(f, record)
    slots = f.local_array(PTR, head.guards)
    with f.owned_array(head.keeps) as keeps:
        f.ret(f.call("run_steps", I32, record, slots, keeps))


def _run_steps(module: Module) -> None:
    """i32 run_steps(record, slots, keeps): as ``match_guards``; puts references into keeps."""
    f = module.function("run_steps", I32, PTR, PTR, PTR, inline=True)
    record, slots, keeps = f.args
    head = HEAD.at(f, record)
    steps, kept = head.guard_steps, f.local(PTR, keeps)
    with f.count(head.guards) as k:
        step = STEP.at(f, f.element(steps, f.b.mul(k, i64(STEP.size)), I64))
        value, fresh = f.local(PTR, NULL), f.local(PTR, NULL)
        _read(f, step, slots, value, fresh)
        found = f.get(value, PTR)
        f.set(f.element(slots, k, PTR), found)
        null = f.is_null(found)
        with f.owned(f.get(fresh, PTR)) as own, f.b.if_else(null, likely=False) as (nothing, something):
            with nothing:
                why = f.call("why_null", I32, step.read)
                with f.b.if_then(f.ne(why, i32(HOLDS))):
                    f.ret(why)
                f.ret_if(f.ne(step.check, i64(CHECK["absent"])), i32(FAILS))
            with something:
                with f.b.if_then(f.ne(step.keep, i64(0))):
                    with f.b.if_then(f.is_null(own.given()), likely=True):
                        f.incref(found)
                    f.put(f.get(kept, PTR), found)
                    f.set(kept, f.at(f.get(kept, PTR), WORD))
                _check(f, step, slots, found)
    f.ret(i32(HOLDS))


def _read(f: Function, step: View, slots: ir.Value, value: ir.Value, fresh: ir.Value) -> None:
    """Set ``value`` to what the step reads, or leave it null; ``fresh`` as well where it is a new reference."""
    operand = step.operand

    def owner() -> ir.Value:
        found = f.get(f.element(slots, step.owner, PTR), PTR)
        f.ret_if(f.is_null(found), i32(FAILS))
        return found

    def new(reference: ir.Value) -> None:
        f.set(fresh, reference)
        f.set(value, reference)

    with f.switch(step.read) as case:
        with case(READ["root"]):
            f.set(value, operand)
        with case(READ["weak"]):
            f.set(value, referent(f, operand))
        with case(READ["slot"]):
            f.set(value, f.get(f.element(slots, step.owner, PTR), PTR))
        with case(READ["item"]):  # which raises where the owner is no dict
            f.set(value, f.call("PyDict_GetItemWithError", PTR, owner(), operand))
        with case(READ["index"]):
            f.set(value, f.call("element", PTR, owner(), f.b.ptrtoint(operand, I64)))
        with case(READ["cell"]):
            cell = owner()
            f.ret_if(f.b.not_(is_type(f, cell, "PyCell_Type")), i32(FAILS))
            f.set(value, f.load(cell, layout.CELL_CONTENTS, PTR))
        with case(READ["code"]):
            function = owner()
            f.ret_if(f.b.not_(is_type(f, function, "PyFunction_Type")), i32(FAILS))
            f.set(value, f.load(function, layout.FUNCTION_CODE, PTR))
        with case(READ["class"]):
            f.set(value, f.load(owner(), layout.TYPE, PTR))
        with case(READ["own"]):
            instance = owner()
            f.ret_if(_is_a(f, instance, layout.IS_TYPE), i32(FAILS))
            new(f.call("PyObject_GenericGetDict", PTR, instance, NULL))
        with case(READ["attribute"]):
            new(f.call("PyObject_GetAttr", PTR, owner(), operand))
        with case(READ["lookup"]):
            class_ = owner()
            f.ret_if(f.b.not_(_is_a(f, class_, layout.IS_TYPE)), i32(FAILS))
            if layout.finds_in_classes():
                f.set(value, f.call("_PyType_Lookup", PTR, class_, operand))
            else:
                new(_in_python(f, "Python_lookup", class_, operand))
        with case(READ["method"]):
            instance = owner()
            if layout.finds_methods():
                method = f.local(PTR, NULL)
                unbound = f.call("_PyObject_GetMethod", I32, instance, operand, method)
                is_method = f.eq(unbound, i32(1))
                with f.owned(f.get(method, PTR)) as found, f.b.if_then(is_method, likely=True):
                    new(found.given())
            else:
                new(_in_python(f, "Python_method", instance, operand))


def _in_python(f: Function, function: str, owner: ir.Value, name: ir.Value) -> ir.Value:
    """What a function of ``steps`` returns: a new reference, or null and an error."""
    arguments = f.local(ir.ArrayType(PTR, 2))
    f.store(owner, arguments)
    f.store(name, arguments, WORD)
    return f.call("PyObject_Vectorcall", PTR, f.module.symbol(function), arguments, i64(2), NULL)


def _is_a(f: Function, obj: ir.Value, flag: int) -> ir.Value:
    """Whether the type of an object has a flag."""
    flags = f.word(f.load(obj, layout.TYPE, PTR), layout.TYPE_FLAGS)
    return f.ne(f.b.and_(flags, i64(flag)), i64(0))


def referent(f: Function, reference: ir.Value) -> ir.Value:
    """The object of a weak reference, or null: it is None when dead, and without references while it dies."""
    found = f.load(reference, layout.WEAKREF_OBJECT, PTR)
    dead = f.eq(found, f.module.symbol("_Py_NoneStruct"))
    dying = f.eq(f.load(found, layout.REFCOUNT, I32), i32(0))
    return f.b.select(f.b.or_(dead, dying), NULL, found)


def _check(f: Function, step: View, slots: ir.Value, value: ir.Value) -> None:
    """Return FAILS or ERROR unless the value passes."""
    expected = step.expected

    def require(condition: ir.Value) -> None:
        f.ret_if(f.b.not_(condition), i32(FAILS))

    with f.switch(step.check) as case:
        with case(CHECK["absent"]):
            f.ret(i32(FAILS))
        with case(CHECK["is"]):
            require(f.eq(value, expected))
        with case(CHECK["weak"]):
            require(f.eq(value, referent(f, expected)))
        with case(CHECK["same"]):
            other = f.element(slots, f.b.ptrtoint(expected, I64), PTR)
            require(f.eq(value, f.get(other, PTR)))
        with case(CHECK["type"]):
            require(f.eq(f.load(value, layout.TYPE, PTR), expected))
        for name in ("number", "text"):
            with case(CHECK[name]), f.b.if_then(f.ne(value, expected)):
                require(f.ne(f.call("compare", I32, value, expected), i32(0)))
        with case(CHECK["length"]):
            sized = ir.Constant(ir.IntType(1), 0)
            for kind in SIZED:
                type_name = _C_NAMES.get(kind.__name__, f"Py{kind.__name__.capitalize()}_Type")
                sized = f.b.or_(sized, is_type(f, value, type_name))
            require(sized)
            require(f.eq(f.call("PyObject_Size", I64, value), f.b.ptrtoint(expected, I64)))
        with case(CHECK["call"]):
            verdict = f.call("predicate", I32, expected, value)
            with f.b.if_then(f.ne(verdict, i32(HOLDS))):
                f.ret(verdict)


def _element(module: Module) -> None:
    """PyObject *element(owner, i64 index): borrowed, of a list or tuple; null for none."""
    f = module.function("element", PTR, PTR, I64)
    owner, given = f.args
    items = f.local(PTR, NULL)
    with f.b.if_then(_is_a(f, owner, layout.IS_TUPLE)):
        f.set(items, f.at(owner, layout.TUPLE_ITEMS))
    with f.b.if_then(_is_a(f, owner, layout.IS_LIST)):
        f.set(items, f.load(owner, layout.LIST_ITEMS, PTR))
        f.ret_if(f.is_null(f.get(items, PTR)), NULL)  # an empty list
    with f.b.if_then(f.is_null(f.get(items, PTR)), likely=False):
        f.call("PyErr_BadInternalCall", VOID)
        f.ret(NULL)
    size = f.load(owner, layout.SIZE, I64)
    negative = f.b.icmp_signed("<", given, i64(0))
    index = f.b.select(negative, f.b.add(given, size), given)
    f.ret_if(f.b.icmp_unsigned(">=", index, size), NULL)
    f.ret(f.get(f.element(f.get(items, PTR), index, PTR), PTR))


def _compare(module: Module) -> None:
    """i32 compare(value, expected): whether a float, int, str or bytes has the type and bits or value of another."""
    f = module.function("compare", I32, PTR, PTR)
    value, expected = f.args
    types = [f.load(obj, layout.TYPE, PTR) for obj in f.args]
    f.ret_if(f.ne(*types), i32(0))
    with f.b.if_then(is_type(f, value, "PyFloat_Type")):
        first, second = (f.b.bitcast(f.call("PyFloat_AsDouble", F64, obj), I64) for obj in f.args)
        f.ret(f.b.zext(f.eq(first, second), I32))
    equal = f.call("PyObject_RichCompareBool", I32, value, expected, i32(2))  # Py_EQ; of these types it cannot fail
    f.ret(equal)


def _predicate(module: Module) -> None:
    """i32 predicate(function, value): HOLDS, FAILS or ERROR."""
    f = module.function("predicate", I32, PTR, PTR)
    function, value = f.args
    with f.owned(f.call("PyObject_CallOneArg", PTR, function, value)) as answer:
        with f.b.if_then(f.is_null(answer.value), likely=False):
            f.ret(f.call("on_error", I32))
        truth = f.call("PyObject_IsTrue", I32, answer.value)
        with f.b.if_then(f.eq(truth, i32(-1)), likely=False):
            f.ret(f.call("on_error", I32))
        f.ret(truth)


def _why_null(module: Module) -> None:
    """i32 why_null(i64 read): after a read that gave null: HOLDS when there is nothing, FAILS or ERROR for an error."""
    f = module.function("why_null", I32, I64)
    (read,) = f.args
    with f.b.if_then(f.is_null(f.call("PyErr_Occurred", PTR))):
        no_method = f.eq(read, i64(READ["method"]))
        f.ret(f.b.select(no_method, i32(FAILS), i32(HOLDS)))
    missing = _matches(f, "PyExc_AttributeError")
    for name in ("attribute", "lookup"):  # own and method: not an instance of that kind
        with f.b.if_then(f.b.and_(f.eq(read, i64(READ[name])), missing)):
            f.call("PyErr_Clear", VOID)
            f.ret(i32(HOLDS))
    f.ret(f.call("on_error", I32))


def _on_error(module: Module) -> None:
    """i32 on_error(): FAILS and no error any more, for an Exception; the slow path will meet it again.  ERROR else."""
    f = module.function("on_error", I32)
    with f.b.if_then(_matches(f, "PyExc_Exception")):
        f.call("PyErr_Clear", VOID)
        f.ret(i32(FAILS))
    f.ret(i32(ERROR))


def _matches(f: Function, exception: str) -> ir.Value:
    """Whether the error that is set is such an exception."""
    kind = f.get(f.module.symbol(exception), PTR)
    return f.ne(f.call("PyErr_ExceptionMatches", I32, kind), i32(0))
