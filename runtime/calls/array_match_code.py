"""LLVM code that finds the arrays of tensors, and compares them with what a record says of them."""

from __future__ import annotations

from hybridflow.runtime.calls.record_access import is_contiguous, is_type
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import FALSE, I1, I32, I64, NULL, PTR, TRUE, Module, i64
from hybridflow.runtime.native.records import Offsets


def define(module: Module, offsets: Offsets) -> None:
    """Add the functions to a module, in the order in which they call each other."""
    _array_fits(module)
    _is_plain(module)
    _check_array(module)
    define_array_of(module, offsets)


def _check_array(module: Module) -> None:
    """i1 check_array(array, descr, i64 ndim, extents, dims): an ndarray, no subclass's, C-contiguous, of that dtype and
    shape; binds dims."""
    f = module.function("check_array", I1, PTR, PTR, I64, PTR, PTR, inline=True)
    f.ret_if(f.b.not_(is_type(f, f.args[0], "PyArray_Type")), FALSE)
    f.ret_if(f.b.not_(f.call("array_fits", I1, *f.args)), FALSE)
    f.ret(f.call("is_plain", I1, f.args[0]))


def _is_plain(module: Module) -> None:
    """i1 is_plain(array): whether an ndarray is C-contiguous and aligned, see ``record_access``."""
    f = module.function("is_plain", I1, PTR, inline=True)
    f.ret(is_contiguous(f, f.args[0]))


def _array_fits(module: Module) -> None:
    """i1 array_fits(array, descr, i64 ndim, extents, dims): whether an ndarray has that dtype and shape; binds dims."""
    f = module.function("array_fits", I1, PTR, PTR, I64, PTR, PTR, inline=True)
    array, descr, ndim, extents, dims = f.args
    f.ret_if(f.ne(f.load(array, object_layout.ARRAY_DESCR, PTR), descr), FALSE)
    f.ret_if(f.ne(f.b.sext(f.load(array, object_layout.ARRAY_NDIM, I32), I64), ndim), FALSE)
    shape = f.load(array, object_layout.ARRAY_SHAPE, PTR)
    with f.count(ndim) as axis:
        extent = f.get(f.element(shape, axis, I64), I64)
        expected = f.local(I64, f.get(f.element(extents, axis, I64), I64))
        with f.b.if_then(f.b.icmp_signed("<", f.get(expected, I64), i64(0)), likely=False):
            bound = f.element(dims, f.b.sub(i64(-1), f.get(expected, I64)), I64)
            with f.b.if_then(f.b.icmp_signed("<", f.get(bound, I64), i64(0))):
                f.set(bound, extent)
            f.set(expected, f.get(bound, I64))
        f.ret_if(f.ne(extent, f.get(expected, I64)), FALSE)
    f.ret(TRUE)


def define_array_of(module: Module, offsets: Offsets) -> None:
    """ptr array_of(object): the ndarray of an exact Tensor, or null."""
    f = module.function("array_of", PTR, PTR, inline=True)
    (obj,) = f.args
    f.ret_if(f.b.not_(is_type(f, obj, "Tensor_Type")), NULL)
    f.ret(f.load(obj, offsets.tensor_array, PTR))
