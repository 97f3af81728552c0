"""LLVM code that compares the arguments of a call, and what is nested in them, with a record (see ``arguments``).

Objects lie in one array in the order of their items: those of the call, which the caller holds, and behind them what
is found in containers, of which references are taken.  So nothing that Python code does meanwhile to a list or a dict
(a property that is read, a finalizer) takes away what has been looked at.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.compiler.program import LEAST
from hybridflow.runtime.calls.argument_specs import IntArg
from hybridflow.runtime.calls.guard_steps_code import ERROR, FAILS, HOLDS, referent
from hybridflow.runtime.calls.record_access import is_type, items
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import (
    F64,
    FALSE,
    I1,
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
    CONSTANT,
    DIM_STEP,
    DIM_STEPS,
    EQUAL,
    FLOAT,
    HEAD,
    IDENTITY,
    INSTANCE,
    INT,
    ITEM,
    MAPPING,
    OPEN_INT,
    ORDERED,
    REFERENT,
    SAME_OBJECT,
    SEQUENCE,
    TENSOR,
    Offsets,
    View,
)

_C_ORDER = 0  # NumPy's NPY_CORDER


def define(module: Module, offsets: Offsets) -> None:
    """Add the functions to a module that has those of ``guard_steps_code`` and ``array_match_code``."""
    define_symbolic_dims(module)
    _same_key(module)
    _open_sequence(module)
    _open_mapping(module)
    _open_ordered(module)
    _has_entries(module)
    _open_instance(module)
    _match_value(module)
    _are_apart(module)
    _copied(module)
    _match_arguments(module, offsets)


def _match_arguments(module: Module, offsets: Offsets) -> None:
    """i32 match_arguments(record, args, i64 positional, kwnames, objects, buffers, dims, copies, arrays): HOLDS if
    the call's arguments are those of the record, FAILS, or ERROR with a BaseException set.

    Fills objects, the buffers of inputs, dims, and ``arrays`` with references to what the buffers are of.  ``copies``
    is the place of a reference to what must be kept.
    """
    f = module.function("match_arguments", I32, PTR, PTR, I64, PTR, PTR, PTR, PTR, PTR, PTR, inline=True)
    record, args, positional, kwnames, objects, buffers, dims, copies, arrays = f.args
    head, no = HEAD.at(f, record), i32(FAILS)
    f.ret_if(f.ne(positional, head.positional), no)
    keywords = f.local(I64, i64(0))
    with f.b.if_then(f.b.not_(f.is_null(kwnames)), likely=False):
        f.set(keywords, f.load(kwnames, object_layout.SIZE, I64))
    f.ret_if(f.ne(f.get(keywords, I64), head.keywords), no)
    names = head.keyword_names
    with f.count(f.get(keywords, I64)) as i:
        name_passed = f.get(f.element(f.at(kwnames, object_layout.TUPLE_ITEMS), i, PTR), PTR)
        name = f.get(f.element(names, i, PTR), PTR)
        with f.b.if_then(f.ne(name_passed, name), likely=False):  # names written in source are interned
            f.ret_if(f.eq(f.call("same_key", I32, name_passed, name), i32(0)), no)
    total = f.b.add(positional, f.get(keywords, I64))
    free = f.local(PTR, objects)  # the first place that is not filled
    for source, count in ((args, total), (head.default_objects, head.defaults)):
        with f.count(count) as i:
            place = f.get(free, PTR)
            f.set(place, f.get(f.element(source, i, PTR), PTR))
            f.set(free, f.element(place, i64(1), PTR))
    with items(f, head.arguments, head.nodes) as (i, item):
        obj = f.get(f.element(objects, i, PTR), PTR)
        is_tensor = TENSOR.is_kind(f, item)
        with f.b.if_else(is_tensor, likely=True) as (tensor, other):
            with tensor:
                _match_tensor(f, offsets, obj, item, buffers, dims, copies, arrays)
            with other:
                verdict = f.call("match_value", I32, obj, item, free, buffers, dims)
                with f.b.if_then(f.ne(verdict, i32(HOLDS)), likely=False):
                    f.ret(verdict)
    with f.b.if_then(f.ne(head.apart, i64(0)), likely=False):
        f.ret_if(f.b.not_(f.call("are_apart", I1, record, objects)), no)
    with f.b.if_then(f.ne(head.dim_step_count, i64(0)), likely=False):
        f.ret_if(f.b.not_(f.call("derive_dims", I1, record, dims)), no)
    minimums = head.minimums
    with f.count(head.dims) as i:
        extent, least = (f.get(f.element(array, i, I64), I64) for array in (dims, minimums))
        f.ret_if(f.b.icmp_signed("<", extent, least), no)
    f.ret(i32(HOLDS))


def _match_tensor(
    f: Function,
    offsets: Offsets,
    obj: ir.Value,
    item: ir.Value,
    buffers: ir.Value,
    dims: ir.Value,
    copies: ir.Value,
    arrays: ir.Value,
) -> None:
    """Return FAILS unless the object is a Tensor, an ndarray or a scalar that the item allows; fill its buffer, and
    hold the array of a Tensor."""
    expected = TENSOR.at(f, item)
    held = f.local(PTR, NULL)
    kind, data = f.load(obj, object_layout.TYPE, PTR), f.local(PTR, f.at(obj, object_layout.SCALAR_DATA))
    is_array = f.is_null(expected.scalar)
    with f.b.if_else(is_array, likely=True) as (array_wanted, scalar_wanted):
        with array_wanted, f.b.if_else(f.ne(expected.elsewhere, i64(0)), likely=False) as (there, here):
            with there:
                _require_elsewhere(f, offsets, obj, kind)
            with here:
                f.set(data, _array_data(f, offsets, obj, kind, expected, dims, copies, held))
        with scalar_wanted:
            f.ret_if(f.ne(kind, expected.scalar), i32(FAILS))
    index = expected.input
    with f.b.if_then(f.b.icmp_signed(">=", index, i64(0))):
        f.set(f.element(buffers, index, PTR), f.get(data, PTR))
        f.put(f.element(arrays, index, PTR), f.incref(f.get(held, PTR)))


def _require_elsewhere(f: Function, offsets: Offsets, obj: ir.Value, kind: ir.Value) -> None:
    """Return FAILS unless the object is a Tensor of an array that is none of NumPy's."""
    f.ret_if(f.ne(kind, f.module.symbol("Tensor_Type")), i32(FAILS))
    array = f.load(obj, offsets.tensor_array, PTR)
    f.ret_if(f.is_null(array), i32(FAILS))
    f.ret_if(is_type(f, array, "PyArray_Type"), i32(FAILS))


def _array_data(
    f: Function,
    offsets: Offsets,
    obj: ir.Value,
    kind: ir.Value,
    expected: View,
    dims: ir.Value,
    copies: ir.Value,
    held: ir.Value,
) -> ir.Value:
    """Where the elements of a Tensor or array that fits lie, or those of a copy without strides; ``held`` becomes the
    array."""
    array, is_tensor = f.local(PTR, obj), f.eq(kind, f.module.symbol("Tensor_Type"))
    with f.b.if_else(is_tensor, likely=True) as (tensor, other):
        with tensor:
            f.set(array, f.load(obj, offsets.tensor_array, PTR))
            f.ret_if(f.is_null(f.get(array, PTR)), i32(FAILS))
            f.ret_if(f.b.not_(is_type(f, f.get(array, PTR), "PyArray_Type")), i32(FAILS))
        with other:
            ndarray = f.module.symbol("PyArray_Type")
            with f.b.if_then(f.ne(kind, ndarray), likely=False):  # what a subclass adds, no program sees
                f.ret_if(f.eq(f.call("PyType_IsSubtype", I32, kind, ndarray), i32(0)), i32(FAILS))
                has_mask = f.call("PyObject_HasAttr", I32, kind, f.module.symbol("Name_mask"))
                f.ret_if(f.ne(has_mask, i32(0)), i32(FAILS))  # which must not go unseen: Python says so
    source = f.get(array, PTR)
    f.set(held, source)
    fits = f.call("array_fits", I1, source, expected.dtype, expected.ndim, expected.extents, dims)
    f.ret_if(f.b.not_(fits), i32(FAILS))
    data = f.local(PTR, f.load(source, object_layout.ARRAY_DATA, PTR))
    flags = f.b.zext(f.load(source, object_layout.ARRAY_FLAGS, I32), I64)
    unusual = f.ne(f.b.and_(flags, expected.flags), expected.flags)
    foreign = f.ne(kind, f.module.symbol("Tensor_Type"))
    f.ret_if(f.b.and_(f.ne(expected.bare, i64(0)), f.b.or_(unusual, foreign)), i32(FAILS))
    with f.b.if_then(unusual, likely=False):
        unlike = f.ne(f.b.and_(flags, expected.unlike), i64(0))
        f.ret_if(f.b.and_(unlike, f.b.not_(foreign)), i32(FAILS))
        copy = f.call("copied", PTR, source, copies)
        with f.b.if_then(f.is_null(copy), likely=False):
            f.ret(i32(ERROR))
        f.set(data, f.load(copy, object_layout.ARRAY_DATA, PTR))
    return f.get(data, PTR)


def _copied(module: Module) -> None:
    """PyObject *copied(array, copies): a C-contiguous copy, borrowed from the list of copies, which is made if there
    is none yet; or null and an error."""
    f = module.function("copied", PTR, PTR, PTR)
    array, copies = f.args
    with f.b.if_then(f.is_null(f.get(copies, PTR))):
        copied = f.call("PyList_New", PTR, i64(0))
        f.ret_if(f.is_null(copied), NULL)
        f.put(copies, copied)
    with f.owned(f.call("PyArray_NewCopy", PTR, array, i32(_C_ORDER))) as copy:
        f.ret_if(f.is_null(copy.value), NULL)
        f.ret_if(f.ne(f.call("PyList_Append", I32, f.get(copies, PTR), copy.value), i32(0)), NULL)
    f.ret(copy.value)


def _match_value(module: Module) -> None:
    """i32 match_value(object, item, free, buffers, dims): as ``match_arguments``, for what is no tensor; puts the
    children of a container where ``free`` points to, which moves behind them."""
    f = module.function("match_value", I32, PTR, PTR, PTR, PTR, PTR)
    obj, item, free, buffers, dims = f.args

    def ret(condition: ir.Value) -> None:
        f.ret(f.b.select(condition, i32(HOLDS), i32(FAILS)))

    with f.switch(ITEM.at(f, item).kind) as case:
        with case(IDENTITY.code):
            ret(f.eq(obj, IDENTITY.at(f, item).object))
        with case(REFERENT.code):
            ret(f.eq(obj, referent(f, REFERENT.at(f, item).reference)))
        with case(SAME_OBJECT.code):
            f.ret(i32(HOLDS))  # when all objects are there, see ``are_apart``
        with case(FLOAT.code):
            f.ret_if(f.b.not_(is_type(f, obj, "PyFloat_Type")), i32(FAILS))
            value = f.b.bitcast(f.call("PyFloat_AsDouble", F64, obj), I64)
            ret(f.eq(value, FLOAT.at(f, item).bits))  # as bits: 0.0 and -0.0 differ, a NaN equals itself
        with case(INT.code):
            f.ret_if(f.b.not_(is_type(f, obj, "PyLong_Type")), i32(FAILS))
            overflow = f.local(I32)
            value = f.call("PyLong_AsLongLongAndOverflow", I64, obj, overflow)
            same = f.eq(value, INT.at(f, item).value)
            ret(f.b.and_(f.eq(f.get(overflow, I32), i32(0)), same))
        with case(OPEN_INT.code):
            _match_open_int(f, obj, OPEN_INT.at(f, item), buffers, dims)
        with case(EQUAL.code):
            expected = EQUAL.at(f, item).object
            f.ret_if(f.eq(obj, expected), i32(HOLDS))
            f.ret(f.call("compare", I32, obj, expected))
        for kind, name in (
            (SEQUENCE, "open_sequence"),
            (MAPPING, "open_mapping"),
            (ORDERED, "open_ordered"),
            (INSTANCE, "open_instance"),
        ):
            with case(kind.code):
                children = kind.at(f, item)
                f.ret_if(f.ne(f.load(obj, object_layout.TYPE, PTR), children.type), i32(FAILS))
                first = f.get(free, PTR)
                f.set(free, f.element(first, children.size, PTR))
                f.ret(f.call(name, I32, obj, item, first))
    f.ret(i32(FAILS))


def _match_open_int(f: Function, obj: ir.Value, expected: View, buffers: ir.Value, dims: ir.Value) -> None:
    """Return whether the object is an int that can be a symbol, which becomes it."""
    f.ret_if(f.b.not_(is_type(f, obj, "PyLong_Type")), i32(FAILS))
    overflow = f.local(I32)
    value = f.call("PyLong_AsLongLongAndOverflow", I64, obj, overflow)
    fits = f.b.and_(f.b.icmp_signed(">=", value, i64(LEAST)), f.b.icmp_signed("<=", value, i64(IntArg.MOST)))
    f.ret_if(f.b.not_(f.b.and_(f.eq(f.get(overflow, I32), i32(0)), fits)), i32(FAILS))
    f.set(f.element(buffers, expected.input, PTR), obj)
    with f.b.if_then(f.b.icmp_signed(">=", expected.extent, i64(0))):  # which is known
        f.ret(f.b.select(f.eq(expected.extent, value), i32(HOLDS), i32(FAILS)))
    place = f.element(dims, f.b.sub(i64(-1), expected.extent), I64)
    known = f.get(place, I64)
    with f.b.if_then(f.b.icmp_signed("<", known, i64(0))):
        f.set(place, value)
    f.ret(f.b.select(f.eq(f.get(place, I64), value), i32(HOLDS), i32(FAILS)))


# Containers: each function is given one of the right class, and puts its children into ``slots``.


def _open_sequence(module: Module) -> None:
    """i32 open_sequence(object, item, slots)"""
    f = module.function("open_sequence", I32, PTR, PTR, PTR)
    obj, item, slots = f.args
    expected = SEQUENCE.at(f, item)
    f.ret_if(f.ne(f.load(obj, object_layout.SIZE, I64), expected.size), i32(FAILS))
    held = f.local(PTR, f.at(obj, object_layout.TUPLE_ITEMS))
    with f.b.if_then(f.ne(expected.is_list, i64(0))):
        f.set(held, f.load(obj, object_layout.LIST_ITEMS, PTR))
    with f.count(expected.size) as i:
        f.put(f.element(slots, i, PTR), f.incref(f.get(f.element(f.get(held, PTR), i, PTR), PTR)))
    f.ret(i32(HOLDS))


def _open_mapping(module: Module) -> None:
    """i32 open_mapping(object, item, slots)"""
    f = module.function("open_mapping", I32, PTR, PTR, PTR)
    obj, item, slots = f.args
    expected = MAPPING.at(f, item)
    f.ret_if(f.ne(f.call("PyDict_Size", I64, obj), expected.size), i32(FAILS))
    with f.b.if_then(f.b.not_(f.is_null(expected.factory)), likely=False):
        factory_held = f.call("PyObject_GetAttr", PTR, obj, module.symbol("Name_factory"))
        with f.owned(factory_held) as factory:
            with f.b.if_then(f.is_null(factory.value), likely=False):
                f.ret(f.call("on_error", I32))
            f.ret_if(f.ne(factory.value, expected.factory), i32(FAILS))
    position, key, value = f.local(I64, i64(0)), f.local(PTR), f.local(PTR)
    with f.count(expected.size) as i:
        has_entry = f.call("PyDict_Next", I32, obj, position, key, value)
        f.ret_if(f.eq(has_entry, i32(0)), i32(FAILS))
        wanted = f.get(f.element(expected.keys, i, PTR), PTR)
        f.ret_if(f.eq(f.call("same_key", I32, f.get(key, PTR), wanted), i32(0)), i32(FAILS))
        f.put(f.element(slots, i, PTR), f.incref(f.get(value, PTR)))
    f.ret(i32(HOLDS))


def _open_ordered(module: Module) -> None:
    """i32 open_ordered(object, item, slots): an OrderedDict, whose order is not that of the dict below."""
    f = module.function("open_ordered", I32, PTR, PTR, PTR)
    obj, item, slots = f.args
    expected = ORDERED.at(f, item)
    f.ret_if(f.ne(f.call("PyDict_Size", I64, obj), expected.size), i32(FAILS))
    with f.owned(f.call("PyObject_GetIter", PTR, obj)) as keys:
        with f.b.if_then(f.is_null(keys.value), likely=False):
            f.ret(f.call("on_error", I32))
        with f.count(expected.size) as i, f.owned(f.call("PyIter_Next", PTR, keys.value)) as key:
            wanted = f.get(f.element(expected.keys, i, PTR), PTR)
            with f.b.if_then(f.is_null(key.value), likely=False):
                f.call("PyErr_Clear", VOID)
                f.ret(i32(FAILS))
            f.ret_if(f.eq(f.call("same_key", I32, key.value, wanted), i32(0)), i32(FAILS))
            value = f.call("PyDict_GetItemWithError", PTR, obj, key.value)
            with f.b.if_then(f.is_null(value), likely=False):
                f.call("PyErr_Clear", VOID)
                f.ret(i32(FAILS))
            f.put(f.element(slots, i, PTR), f.incref(value))
    f.ret(i32(HOLDS))


def _open_instance(module: Module) -> None:
    """i32 open_instance(object, item, slots): by its attributes, which may run Python code of its class."""
    f = module.function("open_instance", I32, PTR, PTR, PTR)
    obj, item, slots = f.args
    expected = INSTANCE.at(f, item)
    names, held, has_dict = expected.names, expected.held, f.b.icmp_signed(">=", expected.held, i64(0))
    with f.b.if_then(has_dict), f.owned(f.call("PyObject_GenericGetDict", PTR, obj, NULL)) as instance_dict:
        with f.b.if_then(f.is_null(instance_dict.value), likely=False):
            f.ret(f.call("on_error", I32))
        same = f.call("has_entries", I32, instance_dict.value, held, f.element(names, expected.size, PTR))
        f.ret_if(f.eq(same, i32(0)), i32(FAILS))
    with f.count(expected.size) as i:
        value = f.call("PyObject_GetAttr", PTR, obj, f.get(f.element(names, i, PTR), PTR))
        with f.b.if_then(f.is_null(value), likely=False):
            f.ret(f.call("on_error", I32))
        f.put(f.element(slots, i, PTR), value)
    f.ret(i32(HOLDS))


def _has_entries(module: Module) -> None:
    """i32 has_entries(dict, i64 size, names): whether these are its keys, in this order."""
    f = module.function("has_entries", I32, PTR, I64, PTR)
    instance_dict, size, names = f.args
    f.ret_if(f.ne(f.call("PyDict_Size", I64, instance_dict), size), i32(0))
    position, key, value = f.local(I64, i64(0)), f.local(PTR), f.local(PTR)
    with f.count(size) as i:
        f.ret_if(f.eq(f.call("PyDict_Next", I32, instance_dict, position, key, value), i32(0)), i32(0))
        same = f.call("same_key", I32, f.get(key, PTR), f.get(f.element(names, i, PTR), PTR))
        f.ret_if(f.eq(same, i32(0)), i32(0))
    f.ret(i32(1))


def _same_key(module: Module) -> None:
    """i32 same_key(key, expected): whether a key of a dict is another, as far as that runs no code of the user's: it is
    the same object, or both are str or int, and equal."""
    f = module.function("same_key", I32, PTR, PTR)
    key, expected = f.args
    f.ret_if(f.eq(key, expected), i32(1))
    plain = f.b.or_(is_type(f, key, "PyUnicode_Type"), is_type(f, key, "PyLong_Type"))
    f.ret_if(f.b.not_(plain), i32(0))
    f.ret(f.call("compare", I32, key, expected))


def _are_apart(module: Module) -> None:
    """i1 are_apart(record, objects): whether the arrays of tensors among the arguments, which fit, are as many places
    in memory; none is that of a constant; but for arguments that are to be the same as others.  Of others' arrays each
    becomes a tensor of its own."""
    f = module.function("are_apart", I1, PTR, PTR)
    record, objects = f.args
    head = HEAD.at(f, record)
    places, seen = f.local_array(PTR, head.nodes), f.local(I64, i64(0))
    with items(f, head.arguments, head.nodes) as (i, item):
        obj = f.get(f.element(objects, i, PTR), PTR)
        with f.b.if_then(SAME_OBJECT.is_kind(f, item)):
            f.ret_if(f.is_null(f.call("array_of", PTR, obj)), FALSE)
            f.ret_if(f.ne(obj, f.get(f.element(objects, SAME_OBJECT.at(f, item).node, PTR), PTR)), FALSE)
        with f.b.if_then(TENSOR.is_kind(f, item)):
            array = f.call("array_of", PTR, obj)
            with f.b.if_then(f.b.not_(f.is_null(array)), likely=True):
                place, known = f.load(array, object_layout.ARRAY_DATA, PTR), f.get(seen, I64)
                with f.count(known) as k:
                    f.ret_if(f.eq(f.get(f.element(places, k, PTR), PTR), place), FALSE)
                f.set(f.element(places, known, PTR), place)
                f.set(seen, f.b.add(known, i64(1)))
    with items(f, head.capture_items, head.captures) as (_, item), f.b.if_then(CONSTANT.is_kind(f, item)):
        constant = CONSTANT.at(f, item).data
        with f.count(f.get(seen, I64)) as k:
            f.ret_if(f.eq(f.get(f.element(places, k, PTR), PTR), constant), FALSE)
    f.ret(TRUE)


def define_symbolic_dims(module: Module) -> None:
    """i1 derive_dims(record, dims): fill the places of the array that arguments do not give; whether those that they
    give are what they should be, and every number fits 64 bits."""
    f = module.function("derive_dims", I1, PTR, PTR)
    record, dims = f.args
    head = HEAD.at(f, record)
    steps = head.dim_steps
    with f.count(head.dim_step_count) as i:
        step = DIM_STEP.at(f, f.element(steps, f.b.mul(i, i64(DIM_STEP.size)), I64))
        left, right = f.get(f.element(dims, step.left, I64), I64), f.local(I64, step.right)
        with f.b.if_then(f.ne(step.is_place, i64(0))):
            f.set(right, f.get(f.element(dims, f.get(right, I64), I64), I64))
        op, other = step.op, f.get(right, I64)
        target = f.element(dims, step.target, I64)
        with f.b.if_then(f.eq(op, i64(DIM_STEPS["same"]))):
            f.ret_if(f.ne(left, other), FALSE)
        for name, operation in (("add", f.b.sadd_with_overflow), ("multiply", f.b.smul_with_overflow)):
            with f.b.if_then(f.eq(op, i64(DIM_STEPS[name]))):
                result = operation(left, other)
                f.ret_if(f.b.extract_value(result, 1), FALSE)
                f.set(target, f.b.extract_value(result, 0))
        with f.b.if_then(f.eq(op, i64(DIM_STEPS["divide"]))):
            f.ret_if(f.b.icmp_signed("<=", other, i64(0)), FALSE)
            whole, rest = f.b.sdiv(left, other), f.b.srem(left, other)
            below = f.b.icmp_signed("<", rest, i64(0))
            f.set(target, f.b.select(below, f.b.sub(whole, i64(1)), whole))
    f.ret(TRUE)
