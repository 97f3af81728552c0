"""LLVM code for calls of one op: over tensors of one shape (``elementwise``), or of known types (``fixed``)."""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime import layout
from hybridflow.runtime.entry_words import is_type, items, word, word_address
from hybridflow.runtime.ir_builder import I1, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.records import FIXED, KERNEL, MAX_INPUTS, RELEASE_GIL_BYTES, SPEC, Offsets


def define(module: Module, offsets: Offsets) -> None:
    """Add ``elementwise`` and ``fixed`` to a module that has the rest of the entry."""
    _elementwise(module, offsets)
    _fixed(module, offsets)


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
    return word(f, record, KERNEL.index(name))


def _elementwise_body(f: Function, offsets: Offsets) -> None:
    """The result, or null with an error, or the address of ``miss``."""
    kernel, args, nargs = f.args
    miss = f.module.symbol("miss")
    holder = f.load(kernel, offsets.kernel_record, PTR)
    f.ret_if(f.is_null(holder), miss)
    record = f.at(holder, layout.BYTES_DATA)

    def head(name: str, type_: ir.Type = I64) -> ir.Value:
        return word(f, record, KERNEL.index(name), type_)

    f.ret_if(f.ne(nargs, head("inputs")), miss)
    buffers, cells = f.local_array(PTR, i64(MAX_INPUTS + 1)), f.local_array(I64, i64(MAX_INPUTS))
    first = f.local(PTR, NULL)  # the tensor that decides the shape
    with items(f, word_address(f, record, head("specs")), nargs) as (i, item):
        obj, buffer = f.get(f.element(args, i, PTR), PTR), f.element(buffers, i, PTR)
        array, cell = f.call("array_of", PTR, obj), f.element(cells, i, I64)
        scalar = f.ne(word(f, item, 0), i64(SPEC["tensor"]))
        with f.b.if_else(f.is_null(array)) as (number, tensor):
            with number:
                f.ret_if(f.b.not_(scalar), miss)
                f.ret_if(f.b.not_(f.call("convert_scalar", I1, obj, word(f, item, 3), cell)), miss)
                f.set(buffer, cell)
            with tensor:
                ndim, shape = f.local(I64, i64(0)), f.local(PTR, NULL)
                known = f.get(first, PTR)
                with f.b.if_then(f.b.not_(scalar)):
                    with f.b.if_then(f.is_null(known)):
                        f.set(first, array)
                    like = f.get(first, PTR)
                    # The type of the first is looked at here, before its fields; of the others, in check_array.
                    f.ret_if(f.b.not_(is_type(f, like, "PyArray_Type")), miss)
                    f.set(ndim, f.b.sext(f.load(like, layout.ARRAY_NDIM, I32), I64))
                    f.set(shape, f.load(like, layout.ARRAY_SHAPE, PTR))
                descr = word(f, item, 2, PTR)
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
        return word(f, record, FIXED.index(name), type_)

    def give_up(unless: ir.Value) -> None:
        with f.b.if_then(f.b.not_(unless), likely=False):
            f.call("Py_IncRef", VOID, other)
            f.ret(other)

    give_up(f.eq(nargs, head("inputs")))
    buffers = f.local_array(PTR, i64(MAX_INPUTS + 1))
    with items(f, word_address(f, record, head("specs")), nargs) as (i, item):
        array = f.call("array_of", PTR, f.get(f.element(args, i, PTR), PTR))
        give_up(f.b.not_(f.is_null(array)))
        extents = word_address(f, item, i64(4))
        give_up(f.call("check_array", I1, array, word(f, item, 2, PTR), word(f, item, 3), extents, NULL))
        f.set(f.element(buffers, i, PTR), f.load(array, layout.ARRAY_DATA, PTR))
    shape, size = word_address(f, record, head("shape")), head("bytes")
    out = f.call("make_tensor", PTR, head("dtype", PTR), f.b.trunc(head("ndim"), I32), shape, size)
    f.ret_if(f.is_null(out), NULL)
    f.set(f.element(buffers, nargs, PTR), f.load(f.call("array_of", PTR, out), layout.ARRAY_DATA, PTR))
    dims = word_address(f, record, head("dims"))
    large = f.b.icmp_unsigned(">=", size, i64(RELEASE_GIL_BYTES))
    status = f.call("run", I32, head("entry", PTR), buffers, dims, head("arena"), large)
    with f.b.if_then(f.ne(status, i32(0)), likely=False):
        f.call("Py_DecRef", VOID, out)
        f.call("fail", VOID, kernel, status)
        f.ret(NULL)
    f.ret(out)
