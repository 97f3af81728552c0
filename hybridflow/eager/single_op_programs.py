"""One op as a compiled program that serves every shape: how eager operations run.

The arrays are first brought to a normal form in which only a few extents remain: an elementwise op sees one axis, a
reduction sees alternating kept and reduced axes, an op along an axis sees what is before, along and behind it; those
extents are symbolic, so a program is compiled once for an op, its dtypes and its attributes, and kept on disk.  The
pipeline is the one that compiles functions, which is why eager and compiled results have the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.results import TupleType, ValueType
from hybridflow.compiler.ir.types import Dim, Extent, Shape, TensorType, static_size
from hybridflow.compiler.loops.tuning import FEW_TRANSFORMS, SHARED_TRANSFORM
from hybridflow.compiler.ops import TABLE, Kind, OpDef
from hybridflow.compiler.ops.contraction_dims import Contraction, Factor
from hybridflow.core import devices
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.eager import host_ops
from hybridflow.eager.executable import executable_for
from hybridflow.quick_dataclasses import dataclass
from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.calls import entry
from hybridflow.runtime.native.records import MAX_INPUTS

Attrs = Mapping[str, Any]
Types = tuple[Any, ...]  # TensorTypes of live arrays: their extents are numbers

FEW_SPARSE_COLUMNS = 512  # of a product with a sparse matrix, the number of which makes a program of its own

_programs: dict[Any, Any] = {}
_lock = fork_safe_locks.make()


@dataclass(frozen=True)
class NormalForm:
    """The normal form of an application of an op: for each input the shape it is given, and the shape that the program
    is compiled for; and the attributes as they are then."""

    shapes: tuple[tuple[int, ...], ...]
    dims: tuple[Shape, ...]
    attrs: Attrs


def run(op: OpDef, arrays: tuple[Any, ...], attrs: Attrs, out: ValueType) -> Any:
    """Run ``op`` with canonical attributes; ``out`` is the inferred type of the result.  Where that is several types,
    so are the results a tuple."""
    if op.calls_host:
        return host_ops.call(op, arrays, attrs)
    if isinstance(out, TupleType):
        return tuple([result.reshape(part.shape) for result, part in zip(_results(op, arrays, attrs), out.parts)])
    if 0 in out.shape and op.kind not in (Kind.GATHER, Kind.SCATTER):  # whose indices are checked all the same
        return devices.moved(np.empty(out.shape, out.dtype), devices.of(arrays[0]) if arrays else devices.scope())
    if op.kind is Kind.CREATE:
        return _created(op, arrays, attrs, out)
    if op.kind is Kind.VIEW or op.kind is Kind.SEGMENT:
        return _moved(op, arrays, attrs, out)
    (result,) = _results(op, arrays, attrs)
    return result.reshape(out.shape)


def _results(op: OpDef, arrays: tuple[Any, ...], attrs: Attrs) -> list[Any]:
    """The results in the shapes of the op's normal form."""
    types = tuple(TensorType(array.shape, array.dtype) for array in arrays)
    form = _FORMS[op.kind](op, types, attrs)
    executable = _executable(op, types, form, devices.of(arrays[0]))
    results: list[Any] = executable.run([array.reshape(shape) for array, shape in zip(arrays, form.shapes)])
    return results


def shortcut(op: OpDef, types: Types, attrs: Attrs) -> Callable[..., Any] | None:
    """A function of CPU tensors of these types that applies the op with canonical attributes, or returns NotImplemented
    for tensors that it cannot take as they are; None when there is none yet.  For ELEMENTWISE ops shapes do not
    matter."""
    if op.kind is Kind.VIEW:
        return functools.partial(_view, op, attrs)
    if op.calls_host:
        return functools.partial(_on_host, op, attrs)
    form_of = _FORMS.get(op.kind)
    if form_of is None or len(types) > MAX_INPUTS or not entry.note_use() or entry.enable() is None:
        return None
    out: Any = op.infer(*types, **attrs)
    if isinstance(out, TupleType) or 0 in out.shape:
        return None
    form = form_of(op, types, attrs)
    executable = _executable(op, types, form, devices.CPU)
    if op.kind is Kind.ELEMENTWISE:
        return entry.elementwise(executable, op.name)
    return entry.fixed(executable, [(t.dtype, t.shape) for t in types], form.shapes, (out.dtype, out.shape))


def _view(op: OpDef, attrs: Attrs, x: Tensor) -> Any:
    array = x._array
    if type(array) is not np.ndarray:
        return NotImplemented
    return wrap(op.reference(array, **attrs))


def _on_host(op: OpDef, attrs: Attrs, *inputs: Tensor) -> Any:
    arrays = tuple([x._array for x in inputs])
    if not all(type(array) is np.ndarray for array in arrays):
        return NotImplemented
    return tuple(map(wrap, host_ops.call(op, arrays, attrs)))


def _executable(op: OpDef, types: Types, form: NormalForm, device: str) -> Any:
    key = (op, tuple(t.dtype for t in types), form.dims, _frozen(form.attrs), device)
    result = _programs.get(key)
    if result is None:
        with _lock:
            result = _programs.get(key)
            if result is None:
                b = GraphBuilder(TABLE, op.name)
                parameters = [b.parameter(TensorType(shape, t.dtype)) for shape, t in zip(form.dims, types)]
                out = b.emit(op, *parameters, **form.attrs)
                outputs = b.results(out) if isinstance(out.type, TupleType) else [out]
                result = executable_for(b.finish(outputs), device=device)
                _programs[key] = result
    return result


def _frozen(attrs: Attrs) -> str:
    return repr(sorted(attrs.items()))  # as text 0.0 and -0.0 differ


def _symbols(shape: tuple[int, ...], names: Sequence[str]) -> Shape:
    """Symbols for the extents of 2 and more, as in functions: loops over one element or none are written as such."""
    return tuple(extent if extent < 2 else Dim(name) for extent, name in zip(shape, names))


def _flat(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """ELEMENTWISE: one axis of n elements, of which there may be none or one: their order does not matter."""
    return NormalForm(((types[0].size,),) * len(types), ((Dim("n"),),) * len(types), attrs)


def _reduced(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """REDUCE: neighbouring axes of one kind joined, axes of one element dropped."""
    extents: list[int] = []
    reduced: list[bool] = []
    for axis, extent in enumerate(types[0].shape):
        folds = axis in attrs["axes"]
        if extent == 1:
            continue
        if reduced and reduced[-1] == folds:
            extents[-1] *= extent
        else:
            extents.append(extent)
            reduced.append(folds)
    if not any(reduced):
        extents.append(1)
        reduced.append(True)
    dims = _symbols(tuple(extents), [f"n{k}" for k in range(len(extents))])
    count = len(types)  # of one shape
    axes = tuple(k for k, folds in enumerate(reduced) if folds)
    return NormalForm((tuple(extents),) * count, (dims,) * count, {**attrs, "axes": axes})


def _around(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Elements before an axis, along it and behind it."""
    return static_size(shape[:axis]), shape[axis], static_size(shape[axis + 1 :])


def _along_axis(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """SCAN and SORT: three axes, the middle one being the op's."""
    shape = _around(types[0].shape, attrs["axis"])
    return NormalForm((shape,) * len(types), (_symbols(shape, "anc"),) * len(types), {**attrs, "axis": 1})


def _transformed(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """TRANSFORM: lines of a length that is part of the code, as the number of a few long ones is."""
    x, table = types
    pair = () if dtypes.is_complex(x.dtype) else (2,)
    before, along, behind = _around(x.shape[: x.ndim - len(pair)], attrs["axis"])
    a, _, c = _symbols((before, along, behind), "anc")
    if along >= SHARED_TRANSFORM and before <= FEW_TRANSFORMS:
        a = before
    shape, dims = (before, along, behind, *pair), (a, along, c, *pair)
    return NormalForm((shape, table.shape), (dims, table.shape), {**attrs, "axis": 1})


def _indexed(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """GATHER and SCATTER: the data as [a, n, c]; the indices as [m], or as [a, m, c] for ops along an axis.

    There may be any number m of indices, none or one too: they are taken one by one.
    """
    x, indices, *updates = types
    before, along, behind = _around(x.shape, attrs["axis"])
    a, n, c = _symbols((before, along, behind), "anc")
    if op.paired:
        count = indices.shape[attrs["axis"]]
        index_shape: tuple[int, ...] = (before, count, behind)
        index_dims: Shape = (a, Dim("m"), c)
    else:
        count = indices.size
        index_shape, index_dims = (count,), (Dim("m"),)
    shapes = ((before, along, behind), index_shape, *[(before, count, behind)] * len(updates))
    return NormalForm(shapes, ((a, n, c), index_dims, *[(a, Dim("m"), c)] * len(updates)), {**attrs, "axis": 1})


def _searched(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """SEARCH: any number of rows, with any number of values for each."""
    x, wanted = types
    batch = attrs["batch"]
    rows, count = static_size(x.shape[:batch]), static_size(wanted.shape[batch:])
    shapes = ((rows, x.shape[-1]), (rows, count)) if batch else ((x.shape[-1],), (count,))
    dims = tuple(_symbols(shape, names[-len(shape) :]) for shape, names in zip(shapes, ("an", "am")))
    return NormalForm(shapes, dims, {**attrs, "batch": min(batch, 1)})


def _sparse(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """SPARSE: any number of rows and entries, by a number of columns that is part of the code where it is small."""
    x, values, columns, starts, ends = types
    across = static_size(x.shape[1:])
    dense = (x.shape[0], across) if across != 1 else x.shape[:1]
    shapes = (dense, values.shape, columns.shape, starts.shape, ends.shape)
    dims = [_symbols(shape, name) for shape, name in zip(shapes, ("m", "k", "k", "n", "n"))]
    if len(dense) > 1:
        dims[0] = (*_symbols(dense[:1], "m"), across if across <= FEW_SPARSE_COLUMNS else Dim("c"))
    return NormalForm(shapes, tuple(dims), attrs)


def _product(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """CONTRACT: the axes of each part (batch, rows, columns, summed) joined to one; they lie side by side."""
    assert op.contraction and op.contracting, op  # the table sees to it
    contraction = op.contraction(types, attrs)
    joined = [(static_size(extents),) if extents else () for extents in contraction.extents(*types)]
    factors = Contraction(_joined(contraction.left), _joined(contraction.right))

    def shapes(
        batch: tuple[Extent, ...], rows: tuple[Extent, ...], columns: tuple[Extent, ...], summed: tuple[Extent, ...]
    ) -> tuple[Any, Any]:
        return factors.left.arranged(batch, rows, summed), factors.right.arranged(batch, columns, summed)

    symbols = [_symbols(extents, name) for extents, name in zip(joined, "bmnk")]
    return NormalForm(shapes(*joined), shapes(*symbols), {**attrs, **(op.contracting(factors) or {})})


def _windowed(op: OpDef, types: Types, attrs: Attrs) -> NormalForm:
    """CONVOLVE: everything is part of the code, but for the number of images."""
    shapes = tuple(t.shape for t in types)
    how: Any = op.lower and op.lower(types, attrs)
    of_images = (True, how.over_places)
    dims = tuple((*_symbols(s[:1], "n"), *s[1:]) if is_image else s for s, is_image in zip(shapes, of_images))
    return NormalForm(shapes, dims, attrs)


def _joined(factor: Factor) -> Factor:
    """The factor of an operand in which the axes of each part have become one."""
    order = sorted((part for part in factor if part), key=lambda part: part[0])
    return Factor(*((order.index(part),) if part else () for part in factor))


_FORMS: dict[Kind, Callable[[OpDef, Types, Attrs], NormalForm]] = {
    Kind.ELEMENTWISE: _flat,
    Kind.REDUCE: _reduced,
    Kind.SCAN: _along_axis,
    Kind.SORT: _along_axis,
    Kind.TRANSFORM: _transformed,
    Kind.GATHER: _indexed,
    Kind.SEARCH: _searched,
    Kind.SPARSE: _sparse,
    Kind.SCATTER: _indexed,
    Kind.CONTRACT: _product,
    Kind.CONVOLVE: _windowed,
}


def _created(op: OpDef, arrays: tuple[Any, ...], attrs: Attrs, out: TensorType) -> Any:
    """CREATE: from nothing, from a key and parameters, or from a key alone."""
    if not arrays:
        return devices.placed(op.reference(**attrs))
    return _with_parameters(op, arrays, attrs, out) if len(arrays) > 1 else _from_key(op, arrays[0], attrs, out)


def _from_key(op: OpDef, key: Any, attrs: Attrs, out: TensorType) -> Any:
    """On the device of the innermost scope.  Arrays that are never read tell the program how many elements to make,
    and how many there are before."""
    key = devices.moved(key, devices.scope())
    many = key.shape[:-1]  # several keys make as many results, one after another
    if many:
        key = key.reshape(static_size(many), key.shape[-1])
    device = devices.of(key)
    dims = (*_symbols(key.shape[:-1], "m"), key.shape[-1])
    (first,) = _symbols((attrs["first"],), "f")
    known = (op, dims, first, device)
    executable = _programs.get(known)
    if executable is None:
        b, n = GraphBuilder(TABLE, op.name), Dim("n")
        parameters = [b.parameter(TensorType(dims, key.dtype))]
        for extent in (n, first):
            b.parameter(TensorType((extent,), np.dtype(np.bool_)), "extent")
        executable = executable_for(b.finish([b.emit(op, *parameters, shape=(n,), first=first)]), device=device)
        _programs[known] = executable
    extents = [np.empty(extent, np.bool_) for extent in (static_size(attrs["shape"]), attrs["first"])]
    (result,) = executable.run([key, *(devices.moved(extent, device) for extent in extents)])
    return result.reshape(out.shape)


def _with_parameters(op: OpDef, arrays: tuple[Any, ...], attrs: Attrs, out: TensorType) -> Any:
    """Where the parameters are; those of several keys one after another."""
    key, *parameters = arrays
    device = devices.of(parameters[0])
    many = (static_size(key.shape[:-1]),) if key.ndim > 1 else ()
    event_size = static_size(out.shape[key.ndim - 1 :])
    shapes = ((*many, key.shape[-1]), *([(*many, event_size)] * len(parameters)))
    dims = ((*_symbols(many, "m"), key.shape[-1]), *([(*_symbols(many, "m"), Dim("n"))] * len(parameters)))
    types = tuple(TensorType(array.shape, array.dtype) for array in arrays)
    executable = _executable(op, types, NormalForm(shapes, dims, attrs), device)
    operands = (devices.moved(key, device), *parameters)
    (result,) = executable.run([array.reshape(shape) for array, shape in zip(operands, shapes)])
    return result.reshape(out.shape)


def _moved(op: OpDef, arrays: tuple[Any, ...], attrs: Attrs, out: TensorType) -> Any:
    """VIEW and SEGMENT: elements change places and not their bits, which NumPy does without a copy where it can.

    On a GPU there is a program for each combination of shapes, because those of the results are no symbols.
    """
    device = devices.of(arrays[0])
    if device == devices.CPU:
        return op.reference(*arrays, **attrs)
    if op.shares_memory:
        return arrays[0].reshape(out.shape)
    types = tuple(TensorType(array.shape, array.dtype) for array in arrays)
    shapes = tuple(array.shape for array in arrays)
    (result,) = _executable(op, types, NormalForm(shapes, shapes, attrs), device).run(list(arrays))
    return result
