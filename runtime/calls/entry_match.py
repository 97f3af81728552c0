"""LLVM code that compares arguments with what a record says of them."""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls import dims_code
from hybridflow.runtime.calls.entry_words import is_type, items
from hybridflow.runtime.native import layout
from hybridflow.runtime.native.ir_builder import F64, I1, I32, I64, NULL, PTR, Module, i32, i64
from hybridflow.runtime.native.records import CONSTANT, FLOAT, HEAD, IDENTITY, INT, TENSOR, Offsets


def define(module: Module, offsets: Offsets) -> None:
    """Add the functions to a module, in the order in which they call each other."""
    _check_array(module)
    define_array_of(module, offsets)
    _match_value(module)
    dims_code.define(module)
    _are_apart(module, offsets)
    _match_arguments(module)


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


def define_array_of(module: Module, offsets: Offsets) -> None:
    """ptr array_of(object): the ndarray of an exact Tensor, or null."""
    f = module.function("array_of", PTR, PTR, inline=True)
    (obj,) = f.args
    f.ret_if(f.b.not_(is_type(f, obj, "Tensor_Type")), NULL)
    f.ret(f.load(obj, offsets.tensor_array, PTR))


def _match_arguments(module: Module) -> None:
    """i1 match_arguments(record, args, i64 positional, kwnames, buffers, dims): whether the call's arguments are those
    of the record; fills the buffers of inputs, and binds dims."""
    f = module.function("match_arguments", I1, PTR, PTR, I64, PTR, PTR, PTR, inline=True)
    record, args, positional, kwnames, buffers, dims = f.args
    head, no = HEAD.at(f, record), ir.Constant(I1, 0)
    f.ret_if(f.ne(positional, head.positional), no)
    keywords = f.local(I64, i64(0))
    with f.b.if_then(f.b.not_(f.is_null(kwnames)), likely=False):
        f.set(keywords, f.load(kwnames, layout.SIZE, I64))
    f.ret_if(f.ne(f.get(keywords, I64), head.keywords), no)
    names = head.keyword_names
    with f.count(f.get(keywords, I64)) as i:  # names written in source are interned, so identity decides
        given = f.get(f.element(f.at(kwnames, layout.TUPLE_ITEMS), i, PTR), PTR)
        f.ret_if(f.ne(given, f.get(f.element(names, i, PTR), PTR)), no)

    total = f.b.add(positional, f.get(keywords, I64))
    with items(f, head.arguments, total) as (i, item):
        obj = f.get(f.element(args, i, PTR), PTR)
        with f.b.if_else(TENSOR.is_kind(f, item)) as (tensor, other):
            with tensor:
                expected = TENSOR.at(f, item)
                array = f.call("array_of", PTR, obj)
                f.ret_if(f.is_null(array), no)
                fits = f.call("check_array", I1, array, expected.dtype, expected.ndim, expected.extents, dims)
                f.ret_if(f.b.not_(fits), no)
                index = expected.input
                with f.b.if_then(f.b.icmp_signed(">=", index, i64(0))):
                    f.set(f.element(buffers, index, PTR), f.load(array, layout.ARRAY_DATA, PTR))
            with other:
                f.ret_if(f.b.not_(f.call("match_value", I1, obj, item)), no)
    with f.b.if_then(f.ne(head.apart, i64(0)), likely=False):
        f.ret_if(f.b.not_(f.call("are_apart", I1, record, args, total)), no)
    with f.b.if_then(f.ne(head.dim_step_count, i64(0)), likely=False):
        f.ret_if(f.b.not_(f.call("derive_dims", I1, record, dims)), no)
    minimums = head.minimums
    with f.count(head.dims) as i:
        extent, least = (f.get(f.element(array, i, I64), I64) for array in (dims, minimums))
        f.ret_if(f.b.icmp_signed("<", extent, least), no)
    f.ret(ir.Constant(I1, 1))


def _are_apart(module: Module, offsets: Offsets) -> None:
    """i1 are_apart(record, args, i64 count): whether the arrays of arguments, which fit, are as many places in memory,
    none of them that of a constant."""
    f = module.function("are_apart", I1, PTR, PTR, I64)
    record, args, count = f.args
    head, no = HEAD.at(f, record), ir.Constant(I1, 0)
    places, seen = f.local_array(PTR, count), f.local(I64, i64(0))
    with items(f, head.arguments, count) as (i, item), f.b.if_then(TENSOR.is_kind(f, item)):
        array = f.call("array_of", PTR, f.get(f.element(args, i, PTR), PTR))
        place, known = f.load(array, layout.ARRAY_DATA, PTR), f.get(seen, I64)
        with f.count(known) as k:
            f.ret_if(f.eq(f.get(f.element(places, k, PTR), PTR), place), no)
        f.set(f.element(places, known, PTR), place)
        f.set(seen, f.b.add(known, i64(1)))
    with items(f, head.capture_items, head.captures) as (_, item), f.b.if_then(CONSTANT.is_kind(f, item)):
        constant = CONSTANT.at(f, item).data
        with f.count(f.get(seen, I64)) as k:
            f.ret_if(f.eq(f.get(f.element(places, k, PTR), PTR), constant), no)
    f.ret(ir.Constant(I1, 1))


def _match_value(module: Module) -> None:
    """i1 match_value(object, item): whether an argument that is no tensor is the item's."""
    f = module.function("match_value", I1, PTR, PTR)
    obj, item = f.args
    no = ir.Constant(I1, 0)
    with f.b.if_then(IDENTITY.is_kind(f, item)):
        f.ret(f.eq(obj, IDENTITY.at(f, item).object))
    with f.b.if_then(FLOAT.is_kind(f, item)):
        f.ret_if(f.b.not_(is_type(f, obj, "PyFloat_Type")), no)
        value = f.b.bitcast(f.call("PyFloat_AsDouble", F64, obj), I64)
        f.ret(f.eq(value, FLOAT.at(f, item).bits))  # as bits: 0.0 and -0.0 differ, a NaN equals itself
    f.ret_if(f.b.not_(is_type(f, obj, "PyLong_Type")), no)
    overflow = f.local(I32)
    value = f.call("PyLong_AsLongLongAndOverflow", I64, obj, overflow)
    same = f.eq(value, INT.at(f, item).value)
    f.ret(f.b.and_(f.eq(f.get(overflow, I32), i32(0)), same))
