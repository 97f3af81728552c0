"""The native entry: LLVM code that takes a Python call to a compiled program and back without a Python frame.

``call`` is the ``__call__`` of functions: it walks the records of the known signatures, and runs the program of the
first that fits.  ``elementwise`` is one op over tensors of any one shape.  Both give up, by calling Python, on
whatever they do not know; they never guess.  A record says what a call must look like (see ``entry_words``).

Python code can run while an object is allocated (a finalizer) or a guard is read (a property), and nothing else may
change under us: records are held by a reference to their table, arguments by the caller, and the pointers of
variables are read after the last such moment.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime import entry_match, layout, op_code
from hybridflow.runtime.entry_words import WORD, head, is_type, items, section, word, word_address
from hybridflow.runtime.ir_builder import I1, I8, I32, I64, NULL, PTR, VOID, Module, i32, i64
from hybridflow.runtime.records import HEAD, RELEASE_GIL_BYTES, STRUCTURE, Offsets

MAX_NDIM = 64  # NumPy's bound


def build(offsets: Offsets) -> str:
    module = Module()
    module.variable("miss", I8)  # its address says: not this signature
    entry_match.define(module, offsets)
    _make_tensor(module, offsets)
    _size_at(module)
    _run(module)
    _fail(module)
    _drop(module)
    _make_outputs(module)
    _result(module)
    _attempt(module, offsets)
    _call(module, offsets)
    op_code.define(module, offsets)
    _sample(module)
    return str(module.ir)


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


def _size_at(module: Module) -> None:
    """i64 size_at(words, dims): a Size: its count of terms; each term a factor, a count of dims, and their indices."""
    f = module.function("size_at", I64, PTR, PTR, inline=True)
    words, dims = f.args
    total, cursor = f.local(I64, i64(0)), f.local(PTR, f.at(words, WORD))
    with f.count(f.get(words, I64)):
        term = f.get(cursor, PTR)
        product, names = f.local(I64, word(f, term, 0)), word(f, term, 1)
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
    with items(f, section(f, record, "output_items"), head(f, record, "outputs")) as (i, item):
        size, ndim = f.local(I64, word(f, item, 3)), word(f, item, 4)
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
        descr = word(f, item, 2, PTR)
        tensor = f.call("make_tensor", PTR, descr, f.b.trunc(ndim, I32), shape, f.get(size, I64))
        f.ret_if(f.is_null(tensor), ir.Constant(I1, 0))
        f.set(f.element(outs, i, PTR), tensor)
    f.ret(ir.Constant(I1, 1))


def _result(module: Module) -> None:
    """PyObject *result(record, outs): the call's result; takes the references in outs."""
    f = module.function("result", PTR, PTR, PTR)
    record, outs = f.args
    structure, count = head(f, record, "structure"), head(f, record, "outputs")
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
            final = f.call("PyObject_CallOneArg", PTR, head(f, record, "callable", PTR), made)
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
    inputs, outputs = head(f, record, "inputs"), head(f, record, "outputs")
    arguments = f.b.add(head(f, record, "positional"), head(f, record, "keywords"))
    buffers = f.local_array(PTR, f.b.add(inputs, outputs))
    cells = f.local_array(I64, arguments)
    dim_count = head(f, record, "dims")
    dims = f.local_array(I64, dim_count)
    with f.count(dim_count) as i:
        f.set(f.element(dims, i, I64), i64(-1))
    fits = f.call("match_arguments", I1, record, args, positional, kwnames, buffers, cells, dims)
    f.ret_if(f.b.not_(fits), miss)
    with f.b.if_then(f.ne(head(f, record, "guards"), i64(0))):
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
    captures = head(f, record, "captures")
    held = f.local_array(PTR, captures)
    with f.b.if_then(f.ne(captures, i64(0))):
        with f.count(captures) as i:
            f.set(f.element(held, i, PTR), NULL)
        gathered = f.call("gather_captures", I1, record, buffers, dims, held)
        with f.b.if_then(f.b.not_(gathered), likely=False):
            f.call("drop", VOID, held, captures)
            f.call("drop", VOID, outs, outputs)
            f.ret(miss)
    arena = f.call("size_at", I64, section(f, record, "arena"), dims)
    work = f.call("size_at", I64, section(f, record, "work"), dims)
    large = f.b.icmp_unsigned(">=", work, i64(RELEASE_GIL_BYTES))
    status = f.call("run", I32, head(f, record, "entry", PTR), buffers, dims, arena, large)
    f.call("drop", VOID, held, captures)
    with f.b.if_then(f.ne(status, i32(0)), likely=False):
        f.call("drop", VOID, outs, outputs)
        f.call("fail", VOID, signature, status)
        f.ret(NULL)
    calls = word_address(f, record, i64(HEAD.index("calls")))
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
    with f.b.if_then(usable, likely=True), f.b.if_then(is_type(f, table, "PyTuple_Type"), likely=True):
        f.call("Py_IncRef", VOID, table)
        with f.count(f.load(table, layout.SIZE, I64)) as i:
            signature = f.get(f.element(f.at(table, layout.TUPLE_ITEMS), i, PTR), PTR)
            with f.b.if_then(is_type(f, signature, "Signature_Type"), likely=True):
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


def _sample(module: Module) -> None:
    """i32 sample(buffers, dims, arena): a program for the self-test: float32[n] to float32[n], the bits inverted."""
    f = module.function("sample", I32, PTR, PTR, PTR)
    buffers, dims, _ = f.args
    x, y = f.get(buffers, PTR), f.load(buffers, WORD, PTR)
    with f.count(f.get(dims, I64)) as i:
        value = f.get(f.element(x, i, I32), I32)
        f.set(f.element(y, i, I32), f.b.not_(value))
    f.ret(i32(0))
