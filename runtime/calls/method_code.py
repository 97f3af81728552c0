"""LLVM code for functions as Python calls them: ``f(x)``, and ``obj.f`` of a function in a class."""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls import entry_code
from hybridflow.runtime.calls.record_access import is_type
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import I32, I64, NULL, PTR, Function, Module, i64
from hybridflow.runtime.native.records import WORD, MethodOffsets


def build(offsets: MethodOffsets, checked: bool = False) -> str:
    """The module's text; for ``checked`` see ``entry_code``."""
    module = entry_code.new_module(checked)
    _call(module)
    _try_get(module, offsets)
    _get(module)
    return str(module.ir)


def _call(module: Module) -> None:
    """PyObject *slot_call(self, args, kwargs): ``self(*args, **kwargs)``, by the native ``call`` if there are no
    keywords, else by the method that knows them."""
    f = module.function("slot_call", PTR, PTR, PTR, PTR)
    self, args, kwargs = f.args
    count = f.load(args, object_layout.SIZE, I64)
    with f.b.if_then(f.b.not_(f.is_null(kwargs)), likely=False):
        some = f.ne(f.call("PyDict_Size", I64, kwargs), i64(0))
        with f.b.if_then(some):
            _call_with_keywords(f, count)
    f.ret(f.call("call", PTR, self, f.at(args, object_layout.TUPLE_ITEMS), count, NULL))


def _call_with_keywords(f: Function, count: ir.Value) -> None:
    """Return ``method(self, *args, **kwargs)``."""
    self, args, kwargs = f.args
    with f.owned(f.call("PyTuple_New", PTR, f.b.add(count, i64(1))), counted=False) as longer:
        f.ret_if(f.is_null(longer.value), NULL)
        f.call("PyTuple_SetItem", I32, longer.value, i64(0), f.incref(self))
        with f.count(count) as i:
            item = f.get(f.element(f.at(args, object_layout.TUPLE_ITEMS), i, PTR), PTR)
            f.call("PyTuple_SetItem", I32, longer.value, f.b.add(i, i64(1)), f.incref(item))
        f.ret(f.call("PyObject_Call", PTR, f.module.symbol("Call_method"), longer.value, kwargs))


def _try_get(module: Module, offsets: MethodOffsets) -> None:
    """PyObject *try_get(function, instance): the function of the instance, which is known, bound to it; or ``miss``."""
    f = module.function("try_get", PTR, PTR, PTR)
    function, instance = f.args
    miss = module.symbol("miss")
    f.ret_if(f.is_null(instance), miss)
    by_id = _loaded(f, _loaded(f, function, offsets.instances), offsets.held)
    number_held = f.local(PTR)
    with f.owned(f.call("PyLong_FromVoidPtr", PTR, instance)) as number:
        f.ret_if(f.is_null(number.value), NULL)
        f.set(number_held, f.call("PyDict_GetItemWithError", PTR, by_id, number.value))
    held = f.get(number_held, PTR)
    f.ret_if(f.is_null(held), miss)  # ints are hashed and compared without an error
    reference = _loaded(f, held, offsets.instance)
    f.ret_if(f.ne(f.load(reference, object_layout.WEAKREF_OBJECT, PTR), instance), miss)
    strong_function = _loaded(f, held, offsets.strong)
    f.ret_if(f.b.not_(is_type(f, strong_function, "Function_Type")), miss)
    dispatch = _loaded(f, strong_function, offsets.dispatch)
    with f.owned(f.incref(strong_function)) as strong, f.owned(f.incref(dispatch)) as table:
        bound = f.call("PyType_GenericAlloc", PTR, module.symbol("Bound_Type"), i64(0))
        f.ret_if(f.is_null(bound), NULL)
        f.store(f.incref(instance), bound, offsets.bound_self)
        f.store(table.given(), bound, offsets.dispatch)
        f.store(strong.given(), bound, offsets.bound_function)
        f.ret(bound)


def _loaded(f: Function, owner: ir.Value, offset: int) -> ir.Value:
    """What a slot holds; a miss if it is empty."""
    value = f.load(owner, offset, PTR)
    f.ret_if(f.is_null(value), f.module.symbol("miss"))
    return value


def _get(module: Module) -> None:
    """PyObject *slot_get(self, instance, owner): ``self.__get__(instance, owner)``, either may be null for None."""
    f = module.function("slot_get", PTR, PTR, PTR, PTR)
    self, instance, owner = f.args
    result = entry_code.balanced(f, "try_get", self, instance)
    f.ret_if(f.ne(result, module.symbol("miss")), result)
    none = module.symbol("_Py_NoneStruct")
    arguments = f.local_array(PTR, i64(3))
    for k, value in enumerate((self, instance, owner)):
        f.store(f.b.select(f.is_null(value), none, value), arguments, k * WORD)
    f.ret(f.call("PyObject_Vectorcall", PTR, module.symbol("Get_method"), arguments, i64(3), NULL))
