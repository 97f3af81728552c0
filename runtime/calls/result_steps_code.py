"""LLVM code that makes the result of a call from what the program left (see ``results``)."""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls.guard_steps_code import ERROR, FAILS, HOLDS
from hybridflow.runtime.calls.record_access import extent_of, is_type, items
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import I1, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.native.records import (
    HEAD,
    ITEM,
    MAKE_CALL,
    MAKE_DICT,
    MAKE_INSTANCE,
    MAKE_LIST,
    MAKE_TUPLE,
    PUT_ARGUMENT,
    PUT_EXTENT,
    PUT_OBJECT,
    PUT_OUTPUT,
    PUT_VIEW,
    TENSOR,
)


def define(module: Module) -> None:
    """Add ``hand_through``, ``inputs`` and ``result`` to a module that has ``fresh_tensor``."""
    _as_tensor(module)
    _hand_through(module)
    _inputs(module)
    _make_dict(module)
    _make_instance(module)
    _make_called(module)
    _make_view(module)
    _result(module)


def _as_tensor(module: Module) -> None:
    """PyObject *as_tensor(object, item, buffers, dims): the tensor argument itself, or a tensor of its own for an array
    or a scalar, whose elements lie where ``buffers`` says; a new reference, or null and an error."""
    f = module.function("as_tensor", PTR, PTR, PTR, PTR, PTR)
    obj, item, buffers, dims = f.args
    is_tensor = is_type(f, obj, "Tensor_Type")
    with f.b.if_then(is_tensor, likely=True):
        f.ret(f.incref(obj))
    layout = TENSOR.at(f, item)
    tensor = f.call("fresh_tensor", PTR, layout.dtype, layout.itemsize, layout.ndim, layout.extents, dims)
    f.ret_if(f.is_null(tensor), NULL)
    array = f.call("array_of", PTR, tensor)
    size = f.local(I64, layout.itemsize)
    with f.count(layout.ndim) as axis:
        extent = f.get(f.element(f.load(array, object_layout.ARRAY_SHAPE, PTR), axis, I64), I64)
        f.set(size, f.b.mul(f.get(size, I64), extent))
    source = f.get(f.element(buffers, layout.input, PTR), PTR)
    f.call("memcpy", PTR, f.load(array, object_layout.ARRAY_DATA, PTR), source, f.get(size, I64))
    f.ret(tensor)


def _hand_through(module: Module) -> None:
    """i32 hand_through(record, objects, buffers, dims, handed): put there the arguments that the result holds, and the
    arrays of those that it shows, since tensors may be given other ones meanwhile: HOLDS; FAILS where that has happened
    already, or ERROR."""
    f = module.function("hand_through", I32, PTR, PTR, PTR, PTR, PTR)
    record, objects, buffers, dims, handed = f.args
    head = HEAD.at(f, record)
    with items(f, head.arguments, head.nodes) as (i, item), f.b.if_then(TENSOR.is_kind(f, item)):
        layout = TENSOR.at(f, item)
        obj, place = f.get(f.element(objects, i, PTR), PTR), f.element(handed, layout.handed, PTR)
        is_handed = f.b.icmp_signed(">=", layout.handed, i64(0))
        is_bare = f.ne(layout.bare, i64(0))
        with f.b.if_then(f.b.and_(is_handed, is_bare)):
            array = f.call("array_of", PTR, obj)
            f.ret_if(f.is_null(array), i32(FAILS))
            fits = f.call("check_array", I1, array, layout.dtype, layout.ndim, layout.extents, dims)
            f.ret_if(f.b.not_(fits), i32(FAILS))
            f.put(place, f.incref(array))
        with f.b.if_then(f.b.and_(is_handed, f.b.not_(is_bare))):
            tensor = f.call("as_tensor", PTR, obj, item, buffers, dims)
            f.put(place, tensor)
            f.ret_if(f.is_null(tensor), i32(ERROR))
    f.ret(i32(HOLDS))


def _inputs(module: Module) -> None:
    """PyObject *inputs(record, objects, buffers, dims): a tuple with a tensor for each input of the program that is an
    argument, and None for the others; or null and an error."""
    f = module.function("inputs", PTR, PTR, PTR, PTR, PTR)
    record, objects, buffers, dims = f.args
    head = HEAD.at(f, record)
    with f.owned(f.call("PyTuple_New", PTR, head.inputs)) as values:
        f.ret_if(f.is_null(values.value), NULL)
        with f.count(head.inputs) as i:
            f.call("PyTuple_SetItem", I32, values.value, i, f.incref(module.symbol("_Py_NoneStruct")))
        with items(f, head.arguments, head.nodes) as (i, item), f.b.if_then(TENSOR.is_kind(f, item)):
            index = TENSOR.at(f, item).input
            with f.b.if_then(f.b.icmp_signed(">=", index, i64(0))):
                tensor = f.call("as_tensor", PTR, f.get(f.element(objects, i, PTR), PTR), item, buffers, dims)
                f.ret_if(f.is_null(tensor), NULL)
                f.call("PyTuple_SetItem", I32, values.value, index, tensor)
        f.ret(values.given())


def _result(module: Module) -> None:
    """PyObject *result(record, outs, handed, dims): the call's result, or null with an error."""
    f = module.function("result", PTR, PTR, PTR, PTR, PTR)
    record, outs, handed, dims = f.args
    head = HEAD.at(f, record)
    with f.room(head.depth, NULL) as room, f.owned_array(head.depth, None, room) as stack:
        top = f.local(PTR, stack)  # the first place that is free
        with items(f, head.result_items, head.results) as (_, item):
            result = f.local(PTR, NULL)
            _one_step(f, item, top, result, outs, handed, dims)
            f.ret_if(f.is_null(f.get(result, PTR)), NULL)
            place = f.get(top, PTR)
            f.put(place, f.get(result, PTR))
            f.set(top, f.element(place, i64(1), PTR))
        f.ret(f.take(stack))


def _one_step(
    f: Function,
    item: ir.Value,
    top: ir.Value,
    result: ir.Value,
    outs: ir.Value,
    handed: ir.Value,
    dims: ir.Value,
) -> None:
    """Set ``result`` to a new reference, or leave it null and an error; lower ``top`` to the first operand."""

    def operands(count: ir.Value) -> ir.Value:
        f.set(top, f.element(f.get(top, PTR), f.b.neg(count), PTR))
        return f.get(top, PTR)

    with f.switch(ITEM.at(f, item).kind) as case:
        for kind, objects in ((PUT_OUTPUT, outs), (PUT_ARGUMENT, handed)):
            with case(kind.code):
                f.set(result, f.incref(f.get(f.element(objects, kind.at(f, item).index, PTR), PTR)))
        with case(PUT_OBJECT.code):
            f.set(result, f.incref(PUT_OBJECT.at(f, item).object))
        with case(PUT_EXTENT.code):
            f.set(result, f.call("PyLong_FromLongLong", PTR, extent_of(f, PUT_EXTENT.at(f, item).extent, dims)))
        with case(PUT_VIEW.code):
            f.set(result, f.call("make_view", PTR, item, handed))
        for kind, make, fill in (
            (MAKE_LIST, "PyList_New", "PyList_SetItem"),
            (MAKE_TUPLE, "PyTuple_New", "PyTuple_SetItem"),
        ):
            with case(kind.code):
                count = kind.at(f, item).count
                first = operands(count)
                sequence = f.call(make, PTR, count)
                f.ret_if(f.is_null(sequence), NULL)
                with f.count(count) as i:
                    f.call(fill, I32, sequence, i, f.take(f.element(first, i, PTR)))  # which steals it
                f.set(result, sequence)
        for kind, make in (
            (MAKE_DICT, "make_dict"),
            (MAKE_INSTANCE, "make_instance"),
            (MAKE_CALL, "make_called"),
        ):
            with case(kind.code):
                f.set(result, f.call(make, PTR, item, operands(kind.at(f, item).count)))


def _make_view(module: Module) -> None:
    """PyObject *make_view(item, handed): a tensor over the memory of an array: of one that is handed, or of its own."""
    f = module.function("make_view", PTR, PTR, PTR)
    item, handed = f.args
    view = PUT_VIEW.at(f, item)
    array = f.local(PTR, view.array)
    with f.b.if_then(f.b.icmp_signed(">=", view.index, i64(0))):
        f.set(array, f.get(f.element(handed, view.index, PTR), PTR))
    source, base = f.get(array, PTR), f.local(PTR, f.get(array, PTR))
    owner = f.load(source, object_layout.ARRAY_BASE, PTR)
    with f.b.if_then(f.b.not_(f.is_null(owner))), f.b.if_then(is_type(f, owner, "PyArray_Type")):
        f.set(base, owner)  # as NumPy does it: no chain of views grows
    data = f.at(f.load(source, object_layout.ARRAY_DATA, PTR), view.offset)
    flags = f.b.and_(
        f.load(source, object_layout.ARRAY_FLAGS, I32), i32(object_layout.ALIGNED | object_layout.WRITEABLE)
    )
    extents = view.extents_and_strides
    strides = f.element(extents, view.ndim, I64)
    dtype, ndim = view.dtype, f.b.trunc(view.ndim, I32)
    f.call("Py_IncRef", VOID, dtype)  # the call below takes a reference, also when it fails
    kind = module.symbol("PyArray_Type")
    array_view = f.call("PyArray_NewFromDescr", PTR, kind, dtype, ndim, extents, strides, data, flags, NULL)
    f.ret_if(f.is_null(array_view), NULL)
    f.call("Py_IncRef", VOID, f.get(base, PTR))
    f.store(f.get(base, PTR), array_view, object_layout.ARRAY_BASE)
    f.ret(f.call("tensor_over", PTR, array_view))


def _make_dict(module: Module) -> None:
    """PyObject *make_dict(item, values)"""
    f = module.function("make_dict", PTR, PTR, PTR)
    item, values = f.args
    step = MAKE_DICT.at(f, item)
    with f.owned(f.call("PyDict_New", PTR)) as entries:
        f.ret_if(f.is_null(entries.value), NULL)
        with f.count(step.count) as i, f.owned(f.take(f.element(values, i, PTR))) as value:
            key = f.get(f.element(step.keys, i, PTR), PTR)
            failed = f.ne(f.call("PyDict_SetItem", I32, entries.value, key, value.value), ir.Constant(I32, 0))
            f.ret_if(failed, NULL)
        f.ret(entries.given())


def _make_instance(module: Module) -> None:
    """PyObject *make_instance(item, values)"""
    f = module.function("make_instance", PTR, PTR, PTR)
    item, values = f.args
    step = MAKE_INSTANCE.at(f, item)
    with f.owned(f.call("PyObject_CallOneArg", PTR, module.symbol("Object_new"), step.type)) as instance:
        f.ret_if(f.is_null(instance.value), NULL)
        with f.count(step.count) as i, f.owned(f.take(f.element(values, i, PTR))) as value:
            name = f.get(f.element(step.names, i, PTR), PTR)
            failed = f.ne(
                f.call("PyObject_GenericSetAttr", I32, instance.value, name, value.value), ir.Constant(I32, 0)
            )
            f.ret_if(failed, NULL)
        f.ret(instance.given())


def _make_called(module: Module) -> None:
    """PyObject *make_called(item, values)"""
    f = module.function("make_called", PTR, PTR, PTR)
    item, values = f.args
    step = MAKE_CALL.at(f, item)
    with f.b.if_then(f.eq(step.count, i64(0))):
        f.ret(f.call("PyObject_CallNoArgs", PTR, step.callable))
    with f.owned(f.take(values)) as value:
        f.ret(f.call("PyObject_CallOneArg", PTR, step.callable, value.value))
