"""LLVM code that compares: arguments, guards and captured state with what a record says of them."""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime import layout
from hybridflow.runtime.entry_words import WORD, head, is_type, items, section, word
from hybridflow.runtime.ir_builder import F32, F64, I1, I32, I64, NULL, PTR, VOID, Module, i32, i64
from hybridflow.runtime.records import ARGUMENT, CAPTURE, GUARD, SCALAR, Offsets


def define(module: Module, offsets: Offsets) -> None:
    """Add the functions to a module, in the order in which they call each other."""
    _check_array(module)
    _array_of(module, offsets)
    _convert_scalar(module)
    _match_value(module)
    _match_arguments(module)
    _same_list(module)
    _holds(module)
    _match_guards(module)
    _owns_memory(module)
    _gather_captures(module)


def _check_array(module: Module) -> None:
    """i1 check_array(array, descr, i64 ndim, extents, dims): C-contiguous, of that dtype and shape; binds dims."""
    f = module.function("check_array", I1, PTR, PTR, I64, PTR, PTR, inline=True)
    array, descr, ndim, extents, dims = f.args
    no, yes = ir.Constant(I1, 0), ir.Constant(I1, 1)
    f.ret_if(f.b.not_(is_type(f, array, "PyArray_Type")), no)
    f.ret_if(f.ne(f.load(array, layout.ARRAY_DESCR, PTR), descr), no)
    f.ret_if(f.ne(f.b.sext(f.load(array, layout.ARRAY_NDIM, I32), I64), ndim), no)
    wanted = i32(layout.C_CONTIGUOUS | layout.ALIGNED)
    f.ret_if(f.ne(f.b.and_(f.load(array, layout.ARRAY_FLAGS, I32), wanted), wanted), no)
    shape = f.load(array, layout.ARRAY_SHAPE, PTR)
    with f.count(ndim) as axis:
        extent = f.get(f.element(shape, axis, I64), I64)
        expected = f.local(I64, f.get(f.element(extents, axis, I64), I64))
        with f.b.if_then(f.b.icmp_signed("<", f.get(expected, I64), i64(0)), likely=False):
            bound = f.element(dims, f.b.sub(i64(-1), f.get(expected, I64)), I64)
            with f.b.if_then(f.b.icmp_signed("<", f.get(bound, I64), i64(0))):
                f.set(bound, extent)
            f.set(expected, f.get(bound, I64))
        f.ret_if(f.ne(extent, f.get(expected, I64)), no)
    f.ret(yes)


def _array_of(module: Module, offsets: Offsets) -> None:
    """ptr array_of(object): the ndarray of an exact Tensor, or null."""
    f = module.function("array_of", PTR, PTR, inline=True)
    (obj,) = f.args
    f.ret_if(f.b.not_(is_type(f, obj, "Tensor_Type")), NULL)
    f.ret(f.load(obj, offsets.tensor_array, PTR))


def _convert_scalar(module: Module) -> None:
    """i1 convert_scalar(object, i64 code, cell): write a Python number into an 8-byte cell, if it converts exactly.

    ``code`` is one of SCALAR: which Python types are taken, and the C type that is written.  A float narrows to
    float32 as NumPy narrows it; an int must be representable.
    """
    f = module.function("convert_scalar", I1, PTR, I64, PTR)
    obj, code, cell = f.args
    no, yes = ir.Constant(I1, 0), ir.Constant(I1, 1)

    def among(*names: str) -> ir.Value:
        found = ir.Constant(I1, 0)
        for name in names:
            found = f.b.or_(found, f.eq(code, i64(SCALAR[name])))
        return found

    with f.b.if_then(is_type(f, obj, "PyFloat_Type")):
        value = f.call("PyFloat_AsDouble", F64, obj)
        with f.b.if_then(among("float to f32", "number to f32")):
            f.store(f.b.fptrunc(value, F32), cell)
            f.ret(yes)
        with f.b.if_then(among("float to f64", "number to f64")):
            f.store(value, cell)
            f.ret(yes)
        f.ret(no)
    f.ret_if(f.b.not_(is_type(f, obj, "PyLong_Type")), no)
    overflow = f.local(I32)
    value = f.call("PyLong_AsLongLongAndOverflow", I64, obj, overflow)
    f.ret_if(f.ne(f.get(overflow, I32), i32(0)), no)
    with f.b.if_then(among("int to i64")):
        f.store(value, cell)
        f.ret(yes)
    with f.b.if_then(among("int to i32")):
        narrow = f.b.trunc(value, I32)
        f.ret_if(f.ne(f.b.sext(narrow, I64), value), no)
        f.store(narrow, cell)
        f.ret(yes)
    for name, type_, digits in (("number to f32", F32, 24), ("number to f64", F64, 53)):
        with f.b.if_then(among(name)):
            reach = i64(1 << digits)  # integers up to here are all representable
            inside = f.b.icmp_unsigned("<=", f.b.add(value, reach), i64(2 << digits))
            f.ret_if(f.b.not_(inside), no)
            f.store(f.b.sitofp(value, type_), cell)
            f.ret(yes)
    f.ret(no)


def _match_arguments(module: Module) -> None:
    """i1 match_arguments(record, args, i64 positional, kwnames, buffers, cells, dims): whether the call's arguments
    are those of the record; fills the buffers of inputs, with ``cells`` as memory for scalars, and binds dims."""
    f = module.function("match_arguments", I1, PTR, PTR, I64, PTR, PTR, PTR, PTR, inline=True)
    record, args, positional, kwnames, buffers, cells, dims = f.args
    no = ir.Constant(I1, 0)
    f.ret_if(f.ne(positional, head(f, record, "positional")), no)
    keywords = f.local(I64, i64(0))
    with f.b.if_then(f.b.not_(f.is_null(kwnames)), likely=False):
        f.set(keywords, f.load(kwnames, layout.SIZE, I64))
    f.ret_if(f.ne(f.get(keywords, I64), head(f, record, "keywords")), no)
    names = section(f, record, "keyword_names")
    with f.count(f.get(keywords, I64)) as i:  # names written in source are interned, so identity decides
        given = f.get(f.element(f.at(kwnames, layout.TUPLE_ITEMS), i, PTR), PTR)
        f.ret_if(f.ne(given, f.get(f.element(names, i, PTR), PTR)), no)

    def bind(index: ir.Value, pointer: ir.Value) -> None:
        f.set(f.element(buffers, index, PTR), pointer)

    total = f.b.add(positional, f.get(keywords, I64))
    with items(f, section(f, record, "arguments"), total) as (i, item):
        obj = f.get(f.element(args, i, PTR), PTR)
        kind = word(f, item, 0)
        with f.b.if_else(f.eq(kind, i64(ARGUMENT["tensor"]))) as (tensor, other):
            with tensor:
                array = f.call("array_of", PTR, obj)
                f.ret_if(f.is_null(array), no)
                descr, ndim = word(f, item, 3, PTR), word(f, item, 4)
                fits = f.call("check_array", I1, array, descr, ndim, f.at(item, 5 * WORD), dims)
                f.ret_if(f.b.not_(fits), no)
                index = word(f, item, 2)
                with f.b.if_then(f.b.icmp_signed(">=", index, i64(0))):
                    bind(index, f.load(array, layout.ARRAY_DATA, PTR))
            with other:
                fits = f.call("match_value", I1, obj, item, f.element(cells, i, I64))
                f.ret_if(f.b.not_(fits), no)
                with f.b.if_then(f.eq(kind, i64(ARGUMENT["scalar"]))):
                    bind(word(f, item, 2), f.element(cells, i, I64))
    minimums = section(f, record, "minimums")
    with f.count(head(f, record, "dims")) as i:
        extent, least = (f.get(f.element(array, i, I64), I64) for array in (dims, minimums))
        f.ret_if(f.b.icmp_signed("<", extent, least), no)
    f.ret(ir.Constant(I1, 1))


def _match_value(module: Module) -> None:
    """i1 match_value(object, item, cell): whether an argument that is no tensor is the item's; scalars go to cell."""
    f = module.function("match_value", I1, PTR, PTR, PTR)
    obj, item, cell = f.args
    no = ir.Constant(I1, 0)
    kind = word(f, item, 0)
    with f.b.if_then(f.eq(kind, i64(ARGUMENT["identity"]))):
        f.ret(f.eq(obj, word(f, item, 2, PTR)))
    with f.b.if_then(f.eq(kind, i64(ARGUMENT["scalar"]))):
        f.ret(f.call("convert_scalar", I1, obj, word(f, item, 3), cell))
    for name, code in (("float", "float to f64"), ("int", "int to i64")):
        with f.b.if_then(f.eq(kind, i64(ARGUMENT[name]))):
            converted = f.call("convert_scalar", I1, obj, i64(SCALAR[code]), cell)
            f.ret_if(f.b.not_(converted), no)
            f.ret(f.eq(f.get(cell, I64), word(f, item, 2)))  # as bits: 0.0 and -0.0 differ, a NaN equals itself
    f.ret(no)


def _same_list(module: Module) -> None:
    """i1 same_list(list, item): whether a list holds just the objects of a guard."""
    f = module.function("same_list", I1, PTR, PTR)
    owner, item = f.args
    count = f.b.sub(word(f, item, 1), i64(_LIST_GUARD_WORDS))
    f.ret_if(f.ne(f.load(owner, layout.SIZE, I64), count), ir.Constant(I1, 0))
    objects = f.load(owner, layout.LIST_ITEMS, PTR)
    with f.count(count) as i:
        expected = f.get(f.element(item, f.b.add(i, i64(3)), PTR), PTR)
        f.ret_if(f.ne(f.get(f.element(objects, i, PTR), PTR), expected), ir.Constant(I1, 0))
    f.ret(ir.Constant(I1, 1))


_LIST_GUARD_WORDS = 4  # kind, length, owner, and one that fills up


def _holds(module: Module) -> None:
    """i1 holds(item): whether a guarded cell, dict item, attribute or list still is what is expected."""
    f = module.function("holds", I1, PTR)
    (item,) = f.args
    kind, owner, name = word(f, item, 0), word(f, item, 2, PTR), word(f, item, 3, PTR)
    with f.b.if_then(f.eq(kind, i64(GUARD["list"])), likely=False):
        f.ret(f.call("same_list", I1, owner, item))
    with f.b.if_then(f.eq(kind, i64(GUARD["absent"])), likely=False):
        f.ret(f.is_null(f.call("PyDict_GetItemWithError", PTR, owner, name)))
    value = f.local(PTR)
    with f.b.if_else(f.eq(kind, i64(GUARD["item"]))) as (of_dict, other):
        with of_dict:
            borrowed = f.call("PyDict_GetItemWithError", PTR, owner, name)
            f.set(value, borrowed)
            with f.b.if_then(f.b.not_(f.is_null(borrowed))):
                f.call("Py_IncRef", VOID, borrowed)
        with other, f.b.if_else(f.eq(kind, i64(GUARD["cell"]))) as (of_cell, of_object):
            with of_cell:
                f.set(value, f.call("PyCell_Get", PTR, owner))
            with of_object:
                f.set(value, f.call("PyObject_GetAttr", PTR, owner, name))
    found = f.get(value, PTR)
    with f.b.if_then(f.is_null(found), likely=False):
        f.call("PyErr_Clear", VOID)
        f.ret(ir.Constant(I1, 0))
    same = f.eq(found, word(f, item, 4, PTR))
    f.call("Py_DecRef", VOID, found)
    f.ret(same)


def _match_guards(module: Module) -> None:
    """i1 match_guards(record): whether every guard holds."""
    f = module.function("match_guards", I1, PTR)
    (record,) = f.args
    with items(f, section(f, record, "guard_items"), head(f, record, "guards")) as (_, item):
        f.ret_if(f.b.not_(f.call("holds", I1, item)), ir.Constant(I1, 0))
    f.ret(ir.Constant(I1, 1))


def _owns_memory(module: Module) -> None:
    """i1 owns_memory(array): whether nobody else can see the memory: it is the array's own, or that of an array that
    only this one holds."""
    f = module.function("owns_memory", I1, PTR)
    (array,) = f.args
    yes, no = ir.Constant(I1, 1), ir.Constant(I1, 0)

    def has(of: ir.Value, flag: int) -> ir.Value:
        return f.ne(f.b.and_(f.load(of, layout.ARRAY_FLAGS, I32), i32(flag)), i32(0))

    f.ret_if(f.b.not_(has(array, layout.WRITEABLE)), no)
    f.ret_if(has(array, layout.OWN_DATA), yes)
    base = f.load(array, layout.ARRAY_BASE, PTR)
    f.ret_if(f.is_null(base), no)
    f.ret_if(f.b.not_(is_type(f, base, "PyArray_Type")), no)
    f.ret_if(f.ne(f.load(base, layout.REFCOUNT, I32), i32(1)), no)
    f.ret(has(base, layout.OWN_DATA))


def _gather_captures(module: Module) -> None:
    """i1 gather_captures(record, buffers, dims, held): pointers of the inputs that are no arguments.

    A variable that is only read has its tensor held, so that another thread's update makes a new one.  A variable
    that is updated must be the only owner of its tensor and buffer: then, and only then, it is written in place.
    """
    f = module.function("gather_captures", I1, PTR, PTR, PTR, PTR)
    record, buffers, dims, held = f.args
    no = ir.Constant(I1, 0)
    with items(f, section(f, record, "capture_items"), head(f, record, "captures")) as (i, item):
        slot = f.element(buffers, word(f, item, 2), PTR)
        with f.b.if_else(f.eq(word(f, item, 0), i64(CAPTURE["constant"]))) as (constant, variable):
            with constant:
                f.set(slot, word(f, item, 3, PTR))
            with variable:
                tensor = f.get(f.at(word(f, item, 3, PTR), word(f, item, 4)), PTR)
                f.ret_if(f.is_null(tensor), no)
                array = f.call("array_of", PTR, tensor)
                f.ret_if(f.is_null(array), no)
                descr, ndim = word(f, item, 6, PTR), word(f, item, 7)
                fits = f.call("check_array", I1, array, descr, ndim, f.at(item, 8 * WORD), dims)
                f.ret_if(f.b.not_(fits), no)
                with f.b.if_else(f.ne(word(f, item, 5), i64(0))) as (updated, read):
                    with updated:
                        for owned in (tensor, array):
                            f.ret_if(f.ne(f.load(owned, layout.REFCOUNT, I32), i32(1)), no)
                        f.ret_if(f.b.not_(f.call("owns_memory", I1, array)), no)
                    with read:
                        f.call("Py_IncRef", VOID, tensor)
                        f.set(f.element(held, i, PTR), tensor)
                f.set(slot, f.load(array, layout.ARRAY_DATA, PTR))
    f.ret(ir.Constant(I1, 1))
