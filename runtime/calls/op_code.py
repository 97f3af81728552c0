"""LLVM code for calls of one op: over tensors of one shape (``elementwise``), or of known types (``fixed``)."""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls.record_access import is_type, items
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import I1, I32, I64, NULL, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.native.records import (
    ELEMENTWISE,
    ELEMENTWISE_INPUT,
    FIXED,
    FIXED_INPUT,
    MAX_INPUTS,
    RELEASE_GIL_WORK,
    Offsets,
    View,
)

# Exported functions, and the function behind each, whose result is ``miss`` for what it does not take.
BODIES = {"elementwise": "try_elementwise", "fixed": "try_fixed"}


def define(module: Module, offsets: Offsets) -> None:
    """Add the bodies to a module that has the rest of the entry."""
    _elementwise(module, offsets)
    _fixed(module, offsets)


def _elementwise(module: Module, offsets: Offsets) -> None:
    """PyObject *try_elementwise(kernel, args, i64 nargs): one op over tensors of one shape."""
    f = module.function("try_elementwise", PTR, PTR, PTR, I64)
    kernel, args, nargs = f.args
    miss = module.symbol("miss")
    head = ELEMENTWISE.at(f, f.at(f.load(kernel, offsets.elementwise_record, PTR), object_layout.BYTES_DATA))
    f.ret_if(f.ne(nargs, head.inputs), miss)
    # The type of the first array is looked at before its fields; of the others, in check_array.
    like = f.call("array_of", PTR, f.get(args, PTR))
    f.ret_if(f.is_null(like), miss)
    f.ret_if(f.b.not_(is_type(f, like, "PyArray_Type")), miss)
    ndim, shape = f.load(like, object_layout.ARRAY_NDIM, I32), f.load(like, object_layout.ARRAY_SHAPE, PTR)
    axes = f.b.sext(ndim, I64)
    buffers = f.local_array(PTR, i64(MAX_INPUTS + 1))
    with f.owned_array(nargs) as arrays:  # tensors may be given other ones meanwhile
        with items(f, head.specs, nargs) as (i, item):
            array = f.call("array_of", PTR, f.get(f.element(args, i, PTR), PTR))
            f.ret_if(f.is_null(array), miss)
            fits = f.call("check_array", I1, array, ELEMENTWISE_INPUT.at(f, item).dtype, axes, shape, NULL)
            f.ret_if(f.b.not_(fits), miss)
            f.set(f.element(buffers, i, PTR), f.load(array, object_layout.ARRAY_DATA, PTR))
            f.put(f.element(arrays, i, PTR), f.incref(array))
        count = f.local(I64, i64(1))
        with f.count(axes) as axis:
            f.set(count, f.b.mul(f.get(count, I64), f.get(f.element(shape, axis, I64), I64)))
        size = f.b.mul(f.get(count, I64), head.itemsize)
        work = f.b.mul(f.get(count, I64), head.work)
        f.ret_if(f.b.not_(f.call("ask", I1, head.start, kernel, work)), NULL)
        out = f.call("make_tensor", PTR, head.dtype, ndim, shape, size)
        _finish(f, head, out, buffers, count, work)


def _fixed(module: Module, offsets: Offsets) -> None:
    """PyObject *try_fixed(kernel, args, i64 nargs): a program for tensors of known types."""
    f = module.function("try_fixed", PTR, PTR, PTR, I64)
    kernel, args, nargs = f.args
    miss = module.symbol("miss")
    head = FIXED.at(f, f.at(f.load(kernel, offsets.fixed_record, PTR), object_layout.BYTES_DATA))
    f.ret_if(f.ne(nargs, head.inputs), miss)
    buffers = f.local_array(PTR, i64(MAX_INPUTS + 1))
    with f.owned_array(nargs) as arrays:  # tensors may be given other ones meanwhile
        with items(f, head.specs, nargs) as (i, item):
            expected = FIXED_INPUT.at(f, item)
            array = f.call("array_of", PTR, f.get(f.element(args, i, PTR), PTR))
            f.ret_if(f.is_null(array), miss)
            fits = f.call("check_array", I1, array, expected.dtype, expected.ndim, expected.extents, NULL)
            f.ret_if(f.b.not_(fits), miss)
            f.set(f.element(buffers, i, PTR), f.load(array, object_layout.ARRAY_DATA, PTR))
            f.put(f.element(arrays, i, PTR), f.incref(array))
        f.ret_if(f.b.not_(f.call("ask", I1, head.start, kernel, head.work)), NULL)
        out = f.call("make_tensor", PTR, head.dtype, f.b.trunc(head.ndim, I32), head.shape, head.bytes)
        _finish(f, head, out, buffers, head.dims, head.work)


def _finish(f: Function, head: View, out: ir.Value, buffers: ir.Value, dims: ir.Value, work: ir.Value) -> None:
    """Run the program, of so much work, into the new tensor ``out``, and return it, or null with an error."""
    kernel, _, nargs = f.args
    with f.owned(out) as tensor:
        f.ret_if(f.is_null(out), NULL)
        f.set(f.element(buffers, nargs, PTR), f.load(f.call("array_of", PTR, out), object_layout.ARRAY_DATA, PTR))
        large = f.b.icmp_signed(">=", work, i64(RELEASE_GIL_WORK))
        status = f.call("run", I32, head.start, buffers, dims, head.arena, head.scratch, work, large)
        with f.b.if_then(f.ne(status, i32(0)), likely=False):
            f.call("fail", VOID, kernel, status)
            f.ret(NULL)
        f.ret(tensor.given())
