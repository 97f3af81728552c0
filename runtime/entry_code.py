"""The native entry: LLVM code that takes a Python call to a compiled program and back without a Python frame.

``call`` is the ``__call__`` of functions: it walks the records of the known signatures, and runs the program of the
first that fits.  ``elementwise`` is one op over tensors of any one shape.  Both give up, by calling Python, on
whatever they do not know; they never guess.

A record is an array of 64-bit words inside a bytes object (see ``entry.Signature``, which writes it).  It starts with
the words named in ``HEAD``; the sections that they point to (as word offsets) hold variable-length items, each
beginning with its kind and its length in words.  Symbolic extents are written as negative numbers: -1 - index.

Python code can run while an object is allocated (a finalizer) or a guard is read (a property), and nothing else may
change under us: records are held by a reference to their table, arguments by the caller, and the pointers of
variables are read after the last such moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.ir as ir

from hybridflow.runtime import layout
from hybridflow.runtime.ir_builder import F32, F64, I1, I8, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.records import (
    ARGUMENT,
    CAPTURE,
    FIXED,
    GUARD,
    HEAD,
    KERNEL,
    MAX_INPUTS,
    RELEASE_GIL_BYTES,
    SCALAR,
    SPEC,
    STRUCTURE,
    Offsets,
)

WORD = 8
MAX_NDIM = 64  # NumPy's bound


def build(offsets: Offsets) -> str:
    module = Module()
    module.variable("miss", I8)  # its address says: not this signature
    _check_array(module)
    _array_of(module, offsets)
    _make_tensor(module, offsets)
    _convert_scalar(module)
    _size_at(module)
    _run(module)
    _fail(module)
    _match_value(module)
    _match_arguments(module)
    _same_list(module)
    _holds(module)
    _match_guards(module)
    _owns_memory(module)
    _gather_captures(module)
    _drop(module)
    _make_outputs(module)
    _result(module)
    _attempt(module, offsets)
    _call(module, offsets)
    _elementwise(module, offsets)
    _fixed(module, offsets)
    _sample(module)
    return str(module.ir)


def _word(f: Function, pointer: ir.Value, index: int, type_: ir.Type = I64) -> ir.Value:
    return f.load(pointer, index * WORD, type_)


def _word_address(f: Function, pointer: ir.Value, index: ir.Value) -> ir.Value:
    return f.element(pointer, index, I64)


def _section(f: Function, record: ir.Value, name: str) -> ir.Value:
    """Address of the section whose offset is the header word ``name``."""
    return _word_address(f, record, _head(f, record, name))


def _head(f: Function, record: ir.Value, name: str, type_: ir.Type = I64) -> ir.Value:
    return _word(f, record, HEAD.index(name), type_)


def _is_type(f: Function, obj: ir.Value, type_name: str) -> ir.Value:
    """Whether ``type(obj)`` is exactly this type."""
    return f.eq(f.load(obj, layout.TYPE, PTR), f.module.symbol(type_name))


@contextmanager
def _items(f: Function, start: ir.Value, count: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over ``count`` variable-length items; the body sees the index and the item."""
    cursor = f.local(PTR, start)
    with f.count(count) as index:
        item = f.get(cursor, PTR)
        yield index, item
        f.set(cursor, _word_address(f, item, _word(f, item, 1)))


def _check_array(module: Module) -> None:
    """i1 check_array(array, descr, i64 ndim, extents, dims): C-contiguous, of that dtype and shape; binds dims."""
    f = module.function("check_array", I1, PTR, PTR, I64, PTR, PTR, inline=True)
    array, descr, ndim, extents, dims = f.args
    no, yes = ir.Constant(I1, 0), ir.Constant(I1, 1)
    f.ret_if(f.b.not_(_is_type(f, array, "PyArray_Type")), no)
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
    f.ret_if(f.b.not_(_is_type(f, obj, "Tensor_Type")), NULL)
    f.ret(f.load(obj, offsets.tensor_array, PTR))


def _make_tensor(module: Module, offsets: Offsets) -> None:
    """PyObject *make_tensor(descr, i32 ndim, shape, i64 bytes): a Tensor over a fresh array, or null and an error."""
    f = module.function("make_tensor", PTR, PTR, I32, PTR, I64, inline=True)
    array = f.call("make_array", PTR, *f.args)
    f.ret_if(f.is_null(array), NULL)
    tensor = f.call("PyType_GenericAlloc", PTR, module.symbol("Tensor_Type"), i64(0))
    with f.b.if_then(f.is_null(tensor), likely=False):
        f.call("Py_DecRef", VOID, array)
        f.ret(NULL)
    f.store(array, tensor, offsets.tensor_array)
    f.ret(tensor)


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

    with f.b.if_then(_is_type(f, obj, "PyFloat_Type")):
        value = f.call("PyFloat_AsDouble", F64, obj)
        with f.b.if_then(among("float to f32", "number to f32")):
            f.store(f.b.fptrunc(value, F32), cell)
            f.ret(yes)
        with f.b.if_then(among("float to f64", "number to f64")):
            f.store(value, cell)
            f.ret(yes)
        f.ret(no)
    f.ret_if(f.b.not_(_is_type(f, obj, "PyLong_Type")), no)
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


def _size_at(module: Module) -> None:
    """i64 size_at(words, dims): a Size: its count of terms; each term a factor, a count of dims, and their indices."""
    f = module.function("size_at", I64, PTR, PTR, inline=True)
    words, dims = f.args
    total, cursor = f.local(I64, i64(0)), f.local(PTR, f.at(words, WORD))
    with f.count(f.get(words, I64)):
        term = f.get(cursor, PTR)
        product, names = f.local(I64, _word(f, term, 0)), _word(f, term, 1)
        indices = f.at(term, 2 * WORD)
        with f.count(names) as i:
            extent = f.get(f.element(dims, f.get(f.element(indices, i, I64), I64), I64), I64)
            f.set(product, f.b.mul(f.get(product, I64), extent))
        f.set(total, f.b.add(f.get(total, I64), f.get(product, I64)))
        f.set(cursor, f.element(indices, names, I64))
    f.ret(f.get(total, I64))


def _run(module: Module) -> None:
    """i32 run(entry, buffers, dims, i64 arena bytes, i1 release): the program; -1 when there is no memory."""
    f = module.function("run", I32, PTR, PTR, PTR, I64, I1, inline=True)
    entry, buffers, dims, size, release = f.args
    arena = f.local(PTR, NULL)
    with f.b.if_then(f.ne(size, i64(0))):
        f.set(arena, f.call("pool_allocate", PTR, size))
        f.ret_if(f.is_null(f.get(arena, PTR)), i32(-1))
    status = f.local(I32)
    with f.b.if_else(release, likely=False) as (large, small):
        with large:
            thread = f.call("PyEval_SaveThread", PTR)
            f.set(status, f.call_pointer(entry, I32, buffers, dims, f.get(arena, PTR)))
            f.call("PyEval_RestoreThread", VOID, thread)
        with small:
            f.set(status, f.call_pointer(entry, I32, buffers, dims, f.get(arena, PTR)))
    with f.b.if_then(f.ne(size, i64(0))):
        f.call("pool_release", VOID, f.get(arena, PTR))
    f.ret(f.get(status, I32))


def _fail(module: Module) -> None:
    """void fail(owner, i32 status): set the Python error that a nonzero status stands for."""
    f = module.function("fail", VOID, PTR, I32)
    owner, status = f.args
    with f.b.if_then(f.eq(status, i32(-1))):
        f.call("PyErr_NoMemory", PTR)
        f.ret()
    number = f.call("PyLong_FromLong", PTR, f.b.sext(status, I64))
    with f.b.if_then(f.is_null(number)):
        f.ret()
    arguments = f.local_array(PTR, i64(2))
    f.store(owner, arguments)
    f.store(number, arguments, WORD)
    result = f.call("PyObject_VectorcallMethod", PTR, module.symbol("Name_fail"), arguments, i64(2), NULL)
    f.call("Py_DecRef", VOID, number)
    with f.b.if_then(f.b.not_(f.is_null(result))):
        f.call("Py_DecRef", VOID, result)
    f.ret()


def _match_arguments(module: Module) -> None:
    """i1 match_arguments(record, args, i64 positional, kwnames, buffers, cells, dims): whether the call's arguments
    are those of the record; fills the buffers of inputs, with ``cells`` as memory for scalars, and binds dims."""
    f = module.function("match_arguments", I1, PTR, PTR, I64, PTR, PTR, PTR, PTR, inline=True)
    record, args, positional, kwnames, buffers, cells, dims = f.args
    no = ir.Constant(I1, 0)
    f.ret_if(f.ne(positional, _head(f, record, "positional")), no)
    keywords = f.local(I64, i64(0))
    with f.b.if_then(f.b.not_(f.is_null(kwnames)), likely=False):
        f.set(keywords, f.load(kwnames, layout.SIZE, I64))
    f.ret_if(f.ne(f.get(keywords, I64), _head(f, record, "keywords")), no)
    names = _section(f, record, "keyword_names")
    with f.count(f.get(keywords, I64)) as i:  # names written in source are interned, so identity decides
        given = f.get(f.element(f.at(kwnames, layout.TUPLE_ITEMS), i, PTR), PTR)
        f.ret_if(f.ne(given, f.get(f.element(names, i, PTR), PTR)), no)

    def bind(index: ir.Value, pointer: ir.Value) -> None:
        f.set(f.element(buffers, index, PTR), pointer)

    total = f.b.add(positional, f.get(keywords, I64))
    with _items(f, _section(f, record, "arguments"), total) as (i, item):
        obj = f.get(f.element(args, i, PTR), PTR)
        kind = _word(f, item, 0)
        with f.b.if_else(f.eq(kind, i64(ARGUMENT["tensor"]))) as (tensor, other):
            with tensor:
                array = f.call("array_of", PTR, obj)
                f.ret_if(f.is_null(array), no)
                descr, ndim = _word(f, item, 3, PTR), _word(f, item, 4)
                fits = f.call("check_array", I1, array, descr, ndim, f.at(item, 5 * WORD), dims)
                f.ret_if(f.b.not_(fits), no)
                index = _word(f, item, 2)
                with f.b.if_then(f.b.icmp_signed(">=", index, i64(0))):
                    bind(index, f.load(array, layout.ARRAY_DATA, PTR))
            with other:
                fits = f.call("match_value", I1, obj, item, f.element(cells, i, I64))
                f.ret_if(f.b.not_(fits), no)
                with f.b.if_then(f.eq(kind, i64(ARGUMENT["scalar"]))):
                    bind(_word(f, item, 2), f.element(cells, i, I64))
    minimums = _section(f, record, "minimums")
    with f.count(_head(f, record, "dims")) as i:
        extent, least = (f.get(f.element(array, i, I64), I64) for array in (dims, minimums))
        f.ret_if(f.b.icmp_signed("<", extent, least), no)
    f.ret(ir.Constant(I1, 1))


def _match_value(module: Module) -> None:
    """i1 match_value(object, item, cell): whether an argument that is no tensor is the item's; scalars go to cell."""
    f = module.function("match_value", I1, PTR, PTR, PTR)
    obj, item, cell = f.args
    no = ir.Constant(I1, 0)
    kind = _word(f, item, 0)
    with f.b.if_then(f.eq(kind, i64(ARGUMENT["identity"]))):
        f.ret(f.eq(obj, _word(f, item, 2, PTR)))
    with f.b.if_then(f.eq(kind, i64(ARGUMENT["scalar"]))):
        f.ret(f.call("convert_scalar", I1, obj, _word(f, item, 3), cell))
    for name, code in (("float", "float to f64"), ("int", "int to i64")):
        with f.b.if_then(f.eq(kind, i64(ARGUMENT[name]))):
            converted = f.call("convert_scalar", I1, obj, i64(SCALAR[code]), cell)
            f.ret_if(f.b.not_(converted), no)
            f.ret(f.eq(f.get(cell, I64), _word(f, item, 2)))  # as bits: 0.0 and -0.0 differ, a NaN equals itself
    f.ret(no)


def _same_list(module: Module) -> None:
    """i1 same_list(list, item): whether a list holds just the objects of a guard."""
    f = module.function("same_list", I1, PTR, PTR)
    owner, item = f.args
    count = f.b.sub(_word(f, item, 1), i64(_LIST_GUARD_WORDS))
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
    kind, owner, name = _word(f, item, 0), _word(f, item, 2, PTR), _word(f, item, 3, PTR)
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
    same = f.eq(found, _word(f, item, 4, PTR))
    f.call("Py_DecRef", VOID, found)
    f.ret(same)


def _match_guards(module: Module) -> None:
    """i1 match_guards(record): whether every guard holds."""
    f = module.function("match_guards", I1, PTR)
    (record,) = f.args
    with _items(f, _section(f, record, "guard_items"), _head(f, record, "guards")) as (_, item):
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
    f.ret_if(f.b.not_(_is_type(f, base, "PyArray_Type")), no)
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
    with _items(f, _section(f, record, "capture_items"), _head(f, record, "captures")) as (i, item):
        slot = f.element(buffers, _word(f, item, 2), PTR)
        with f.b.if_else(f.eq(_word(f, item, 0), i64(CAPTURE["constant"]))) as (constant, variable):
            with constant:
                f.set(slot, _word(f, item, 3, PTR))
            with variable:
                tensor = f.get(f.at(_word(f, item, 3, PTR), _word(f, item, 4)), PTR)
                f.ret_if(f.is_null(tensor), no)
                array = f.call("array_of", PTR, tensor)
                f.ret_if(f.is_null(array), no)
                descr, ndim = _word(f, item, 6, PTR), _word(f, item, 7)
                fits = f.call("check_array", I1, array, descr, ndim, f.at(item, 8 * WORD), dims)
                f.ret_if(f.b.not_(fits), no)
                with f.b.if_else(f.ne(_word(f, item, 5), i64(0))) as (updated, read):
                    with updated:
                        for owned in (tensor, array):
                            f.ret_if(f.ne(f.load(owned, layout.REFCOUNT, I32), i32(1)), no)
                        f.ret_if(f.b.not_(f.call("owns_memory", I1, array)), no)
                    with read:
                        f.call("Py_IncRef", VOID, tensor)
                        f.set(f.element(held, i, PTR), tensor)
                f.set(slot, f.load(array, layout.ARRAY_DATA, PTR))
    f.ret(ir.Constant(I1, 1))


def _drop(module: Module) -> None:
    """void drop(objects, i64 count): give up references; nulls are none."""
    f = module.function("drop", VOID, PTR, I64)
    objects, count = f.args
    with f.count(count) as i:
        f.call("Py_DecRef", VOID, f.get(f.element(objects, i, PTR), PTR))  # takes null
    f.ret()


def _make_outputs(module: Module) -> None:
    """i1 make_outputs(record, dims, outs): a fresh tensor per output; false with an error set, and the rest null."""
    f = module.function("make_outputs", I1, PTR, PTR, PTR)
    record, dims, outs = f.args
    shape = f.local_array(I64, i64(MAX_NDIM))
    with _items(f, _section(f, record, "output_items"), _head(f, record, "outputs")) as (i, item):
        size, ndim = f.local(I64, _word(f, item, 3)), _word(f, item, 4)
        with f.count(ndim) as axis:
            extent = f.local(I64, f.get(f.element(f.at(item, 5 * WORD), axis, I64), I64))
            with f.b.if_then(f.b.icmp_signed("<", f.get(extent, I64), i64(0)), likely=False):
                f.set(extent, f.get(f.element(dims, f.b.sub(i64(-1), f.get(extent, I64)), I64), I64))
            f.set(f.element(shape, axis, I64), f.get(extent, I64))
            product = f.b.umul_with_overflow(f.get(size, I64), f.get(extent, I64))
            with f.b.if_then(f.b.extract_value(product, 1), likely=False):
                f.call("PyErr_NoMemory", PTR)
                f.ret(ir.Constant(I1, 0))
            f.set(size, f.b.extract_value(product, 0))
        descr = _word(f, item, 2, PTR)
        tensor = f.call("make_tensor", PTR, descr, f.b.trunc(ndim, I32), shape, f.get(size, I64))
        f.ret_if(f.is_null(tensor), ir.Constant(I1, 0))
        f.set(f.element(outs, i, PTR), tensor)
    f.ret(ir.Constant(I1, 1))


def _result(module: Module) -> None:
    """PyObject *result(record, outs): the call's result; takes the references in outs."""
    f = module.function("result", PTR, PTR, PTR)
    record, outs = f.args
    structure, count = _head(f, record, "structure"), _head(f, record, "outputs")
    with f.b.if_then(f.eq(structure, i64(STRUCTURE["single"]))):
        f.ret(f.get(outs, PTR))
    with f.b.if_then(f.eq(structure, i64(STRUCTURE["none"]))):
        f.call("Py_IncRef", VOID, module.symbol("_Py_NoneStruct"))
        f.ret(module.symbol("_Py_NoneStruct"))
    for make, fill, condition in (
        ("PyList_New", "PyList_SetItem", f.eq(structure, i64(STRUCTURE["list"]))),
        ("PyTuple_New", "PyTuple_SetItem", ir.Constant(I1, 1)),
    ):
        with f.b.if_then(condition):
            made = f.call(make, PTR, count)
            with f.b.if_then(f.is_null(made), likely=False):
                f.call("drop", VOID, outs, count)
                f.ret(NULL)
            with f.count(count) as i:
                f.call(fill, I32, made, i, f.get(f.element(outs, i, PTR), PTR))
            f.ret_if(f.ne(structure, i64(STRUCTURE["call"])), made)
            final = f.call("PyObject_CallOneArg", PTR, _head(f, record, "callable", PTR), made)
            f.call("Py_DecRef", VOID, made)
            f.ret(final)
    f.b.unreachable()


def _attempt(module: Module, offsets: Offsets) -> None:
    """PyObject *attempt(signature, args, i64 positional, kwnames): the call's result, or null with an error, or the
    address of ``miss`` when the signature does not fit."""
    f = module.function("attempt", PTR, PTR, PTR, I64, PTR)
    signature, args, positional, kwnames = f.args
    miss = module.symbol("miss")
    holder = f.load(signature, offsets.signature_record, PTR)
    f.ret_if(f.is_null(holder), miss)
    record = f.at(holder, layout.BYTES_DATA)
    inputs, outputs = _head(f, record, "inputs"), _head(f, record, "outputs")
    arguments = f.b.add(_head(f, record, "positional"), _head(f, record, "keywords"))
    buffers = f.local_array(PTR, f.b.add(inputs, outputs))
    cells = f.local_array(I64, arguments)
    dim_count = _head(f, record, "dims")
    dims = f.local_array(I64, dim_count)
    with f.count(dim_count) as i:
        f.set(f.element(dims, i, I64), i64(-1))
    fits = f.call("match_arguments", I1, record, args, positional, kwnames, buffers, cells, dims)
    f.ret_if(f.b.not_(fits), miss)
    with f.b.if_then(f.ne(_head(f, record, "guards"), i64(0))):
        f.ret_if(f.b.not_(f.call("match_guards", I1, record)), miss)

    outs = f.local_array(PTR, outputs)
    with f.count(outputs) as i:
        f.set(f.element(outs, i, PTR), NULL)
    with f.b.if_then(f.b.not_(f.call("make_outputs", I1, record, dims, outs)), likely=False):
        f.call("drop", VOID, outs, outputs)
        f.ret(NULL)
    with f.count(outputs) as i:
        array = f.call("array_of", PTR, f.get(f.element(outs, i, PTR), PTR))
        f.set(f.element(buffers, f.b.add(inputs, i), PTR), f.load(array, layout.ARRAY_DATA, PTR))

    # From here to the end of the run no Python code runs and nothing is allocated through Python.
    captures = _head(f, record, "captures")
    held = f.local_array(PTR, captures)
    with f.b.if_then(f.ne(captures, i64(0))):
        with f.count(captures) as i:
            f.set(f.element(held, i, PTR), NULL)
        gathered = f.call("gather_captures", I1, record, buffers, dims, held)
        with f.b.if_then(f.b.not_(gathered), likely=False):
            f.call("drop", VOID, held, captures)
            f.call("drop", VOID, outs, outputs)
            f.ret(miss)
    arena = f.call("size_at", I64, _section(f, record, "arena"), dims)
    work = f.call("size_at", I64, _section(f, record, "work"), dims)
    large = f.b.icmp_unsigned(">=", work, i64(RELEASE_GIL_BYTES))
    status = f.call("run", I32, _head(f, record, "entry", PTR), buffers, dims, arena, large)
    f.call("drop", VOID, held, captures)
    with f.b.if_then(f.ne(status, i32(0)), likely=False):
        f.call("drop", VOID, outs, outputs)
        f.call("fail", VOID, signature, status)
        f.ret(NULL)
    calls = _word_address(f, record, i64(HEAD.index("calls")))
    f.set(calls, f.b.add(f.get(calls, I64), i64(1)))
    f.ret(f.call("result", PTR, record, outs))


def _call(module: Module, offsets: Offsets) -> None:
    """PyObject *call(self, args, i64 nargs, kwnames): ``self(*args, **kwargs)``."""
    f = module.function("call", PTR, PTR, PTR, I64, PTR)
    self, args, nargs, kwnames = f.args
    miss = module.symbol("miss")
    table = f.load(self, offsets.dispatch_table, PTR)
    idle = f.eq(f.get(module.symbol("busy"), I32), i32(0))
    usable = f.b.and_(idle, f.b.not_(f.is_null(table)))
    with f.b.if_then(usable, likely=True), f.b.if_then(_is_type(f, table, "PyTuple_Type"), likely=True):
        f.call("Py_IncRef", VOID, table)
        with f.count(f.load(table, layout.SIZE, I64)) as i:
            signature = f.get(f.element(f.at(table, layout.TUPLE_ITEMS), i, PTR), PTR)
            with f.b.if_then(_is_type(f, signature, "Signature_Type"), likely=True):
                result = f.call("attempt", PTR, signature, args, nargs, kwnames)
                with f.b.if_then(f.ne(result, miss), likely=True):
                    f.call("Py_DecRef", VOID, table)
                    f.ret(result)
        f.call("Py_DecRef", VOID, table)
    slow = f.call("PyObject_GetAttr", PTR, self, module.symbol("Name_slow"))
    f.ret_if(f.is_null(slow), NULL)
    result = f.call("PyObject_Vectorcall", PTR, slow, args, nargs, kwnames)
    f.call("Py_DecRef", VOID, slow)
    f.ret(result)


def _elementwise(module: Module, offsets: Offsets) -> None:
    """PyObject *elementwise(kernel, args, i64 nargs): one op over tensors of one shape, and scalars."""
    fast = module.function("elementwise_fast", PTR, PTR, PTR, I64)
    _elementwise_body(fast, offsets)
    f = module.function("elementwise", PTR, PTR, PTR, I64)
    kernel, args, nargs = f.args
    always = _kernel_word(f, kernel, offsets, "always")
    idle = f.eq(f.get(module.symbol("busy"), I32), i32(0))
    with f.b.if_then(f.b.or_(idle, f.ne(always, i64(0))), likely=True):
        result = f.call("elementwise_fast", PTR, kernel, args, nargs)
        f.ret_if(f.ne(result, module.symbol("miss")), result)
    fallback = f.load(kernel, offsets.kernel_fallback, PTR)
    none = f.b.or_(f.is_null(fallback), f.eq(fallback, module.symbol("_Py_NoneStruct")))
    with f.b.if_then(none):
        f.call("Py_IncRef", VOID, module.symbol("_Py_NotImplementedStruct"))
        f.ret(module.symbol("_Py_NotImplementedStruct"))
    f.ret(f.call("PyObject_Vectorcall", PTR, fallback, args, nargs, NULL))


def _kernel_word(f: Function, kernel: ir.Value, offsets: Offsets, name: str) -> ir.Value:
    record = f.at(f.load(kernel, offsets.kernel_record, PTR), layout.BYTES_DATA)
    return _word(f, record, KERNEL.index(name))


def _elementwise_body(f: Function, offsets: Offsets) -> None:
    """The result, or null with an error, or the address of ``miss``."""
    kernel, args, nargs = f.args
    miss = f.module.symbol("miss")
    holder = f.load(kernel, offsets.kernel_record, PTR)
    f.ret_if(f.is_null(holder), miss)
    record = f.at(holder, layout.BYTES_DATA)

    def head(name: str, type_: ir.Type = I64) -> ir.Value:
        return _word(f, record, KERNEL.index(name), type_)

    f.ret_if(f.ne(nargs, head("inputs")), miss)
    buffers, cells = f.local_array(PTR, i64(MAX_INPUTS + 1)), f.local_array(I64, i64(MAX_INPUTS))
    first = f.local(PTR, NULL)  # the tensor that decides the shape
    with _items(f, _word_address(f, record, head("specs")), nargs) as (i, item):
        obj, buffer = f.get(f.element(args, i, PTR), PTR), f.element(buffers, i, PTR)
        array, cell = f.call("array_of", PTR, obj), f.element(cells, i, I64)
        scalar = f.ne(_word(f, item, 0), i64(SPEC["tensor"]))
        with f.b.if_else(f.is_null(array)) as (number, tensor):
            with number:
                f.ret_if(f.b.not_(scalar), miss)
                f.ret_if(f.b.not_(f.call("convert_scalar", I1, obj, _word(f, item, 3), cell)), miss)
                f.set(buffer, cell)
            with tensor:
                ndim, shape = f.local(I64, i64(0)), f.local(PTR, NULL)
                known = f.get(first, PTR)
                with f.b.if_then(f.b.not_(scalar)):
                    with f.b.if_then(f.is_null(known)):
                        f.set(first, array)
                    like = f.get(first, PTR)
                    # The type of the first is looked at here, before its fields; of the others, in check_array.
                    f.ret_if(f.b.not_(_is_type(f, like, "PyArray_Type")), miss)
                    f.set(ndim, f.b.sext(f.load(like, layout.ARRAY_NDIM, I32), I64))
                    f.set(shape, f.load(like, layout.ARRAY_SHAPE, PTR))
                descr = _word(f, item, 2, PTR)
                fits = f.call("check_array", I1, array, descr, f.get(ndim, I64), f.get(shape, PTR), NULL)
                f.ret_if(f.b.not_(fits), miss)
                f.set(buffer, f.load(array, layout.ARRAY_DATA, PTR))
    like = f.get(first, PTR)
    f.ret_if(f.is_null(like), miss)
    ndim, shape = f.load(like, layout.ARRAY_NDIM, I32), f.load(like, layout.ARRAY_SHAPE, PTR)
    count = f.local(I64, i64(1))
    with f.count(f.b.sext(ndim, I64)) as axis:
        f.set(count, f.b.mul(f.get(count, I64), f.get(f.element(shape, axis, I64), I64)))
    size = f.b.mul(f.get(count, I64), head("itemsize"))
    out = f.call("make_tensor", PTR, head("dtype", PTR), ndim, shape, size)
    f.ret_if(f.is_null(out), NULL)
    data = f.load(f.call("array_of", PTR, out), layout.ARRAY_DATA, PTR)
    f.set(f.element(buffers, nargs, PTR), data)
    large = f.b.icmp_unsigned(">=", size, i64(RELEASE_GIL_BYTES))
    status = f.call("run", I32, head("entry", PTR), buffers, count, head("arena"), large)
    with f.b.if_then(f.ne(status, i32(0)), likely=False):
        f.call("Py_DecRef", VOID, out)
        f.call("fail", VOID, kernel, status)
        f.ret(NULL)
    f.ret(out)


def _fixed(module: Module, offsets: Offsets) -> None:
    """PyObject *fixed(kernel, args, i64 nargs): a program for tensors of known types; NotImplemented for others."""
    f = module.function("fixed", PTR, PTR, PTR, I64)
    kernel, args, nargs = f.args
    record = f.at(f.load(kernel, offsets.fixed_record, PTR), layout.BYTES_DATA)
    other = module.symbol("_Py_NotImplementedStruct")

    def head(name: str, type_: ir.Type = I64) -> ir.Value:
        return _word(f, record, FIXED.index(name), type_)

    def give_up(unless: ir.Value) -> None:
        with f.b.if_then(f.b.not_(unless), likely=False):
            f.call("Py_IncRef", VOID, other)
            f.ret(other)

    give_up(f.eq(nargs, head("inputs")))
    buffers = f.local_array(PTR, i64(MAX_INPUTS + 1))
    with _items(f, _word_address(f, record, head("specs")), nargs) as (i, item):
        array = f.call("array_of", PTR, f.get(f.element(args, i, PTR), PTR))
        give_up(f.b.not_(f.is_null(array)))
        extents = _word_address(f, item, i64(4))
        give_up(f.call("check_array", I1, array, _word(f, item, 2, PTR), _word(f, item, 3), extents, NULL))
        f.set(f.element(buffers, i, PTR), f.load(array, layout.ARRAY_DATA, PTR))
    shape, size = _word_address(f, record, head("shape")), head("bytes")
    out = f.call("make_tensor", PTR, head("dtype", PTR), f.b.trunc(head("ndim"), I32), shape, size)
    f.ret_if(f.is_null(out), NULL)
    f.set(f.element(buffers, nargs, PTR), f.load(f.call("array_of", PTR, out), layout.ARRAY_DATA, PTR))
    dims = _word_address(f, record, head("dims"))
    large = f.b.icmp_unsigned(">=", size, i64(RELEASE_GIL_BYTES))
    status = f.call("run", I32, head("entry", PTR), buffers, dims, head("arena"), large)
    with f.b.if_then(f.ne(status, i32(0)), likely=False):
        f.call("Py_DecRef", VOID, out)
        f.call("fail", VOID, kernel, status)
        f.ret(NULL)
    f.ret(out)


def _sample(module: Module) -> None:
    """i32 sample(buffers, dims, arena): a program for the self-test: float32[n] to float32[n], the bits inverted."""
    f = module.function("sample", I32, PTR, PTR, PTR)
    buffers, dims, _ = f.args
    x, y = f.get(buffers, PTR), f.load(buffers, WORD, PTR)
    with f.count(f.get(dims, I64)) as i:
        value = f.get(f.element(x, i, I32), I32)
        f.set(f.element(y, i, I32), f.b.not_(value))
    f.ret(i32(0))
