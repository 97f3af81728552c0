"""One op as a compiled program that serves every shape: how eager operations run.

The arrays are first brought to a normal form in which only a few extents remain (an elementwise op sees one axis, a
reduction sees alternating kept and reduced axes, an op along an axis sees what is before, along and behind it); those
extents are symbolic, so a program is compiled once for an op, its dtypes and its attributes, and kept on disk.  The
pipeline is the one that compiles functions, which is why eager and compiled results have the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hybridflow import devices, execution
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType, static_size
from hybridflow.compiler.ops import TABLE, Kind, OpDef

_programs: dict[Any, Any] = {}
_lock = threading.Lock()

Attrs = Mapping[str, Any]


def run(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """Run ``op`` with canonical attributes; ``out`` is the inferred type of the result."""
    if out.shape and 0 in out.shape and op.kind is not Kind.GATHER:
        return devices.moved(np.empty(out.shape, out.dtype), devices.of(arrays[0]) if arrays else devices.scope())
    return _RUNNERS[op.kind](op, arrays, attrs, out)


def _executable(key: Any, op: OpDef, arrays: tuple[np.ndarray, ...], build: Callable[[GraphBuilder], Any]) -> Any:
    device = devices.of(arrays[0])
    key = (key, device)
    found = _programs.get(key)
    if found is None:
        with _lock:
            found = _programs.get(key)
            if found is None:
                b = GraphBuilder(TABLE, op.name)
                found = execution.executable_for(b.finish((build(b),)), device=device)
                _programs[key] = found
    return found


def _parameters(b: GraphBuilder, shapes: Any, arrays: tuple[np.ndarray, ...]) -> list[Any]:
    return [b.parameter(TensorType(tuple(shape), array.dtype)) for shape, array in zip(shapes, arrays)]


def _dtypes(arrays: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    return tuple(array.dtype for array in arrays)


def _frozen(attrs: Attrs) -> tuple[Any, ...]:
    return tuple(sorted(attrs.items()))


def _flat(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """ELEMENTWISE: one axis of n elements."""
    key = (op, _dtypes(arrays), _frozen(attrs))
    executable = _executable(
        key, op, arrays, lambda b: b.emit(op, *_parameters(b, [(Dim("n"),)] * len(arrays), arrays), **attrs)
    )
    (result,) = executable.run([array.reshape(-1) for array in arrays])
    return result.reshape(out.shape)


def _reduced(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """REDUCE: neighbouring axes of one kind joined, axes of one element dropped."""
    (x,) = arrays
    extents: list[int] = []
    reduced: list[bool] = []
    for axis, extent in enumerate(x.shape):
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

    def build(b: GraphBuilder) -> Any:
        # A loop over one element is written as such: its extent is no symbol, which could stand for any number.
        shape = tuple(1 if extent == 1 else Dim(f"n{k}") for k, extent in enumerate(extents))
        (p,) = _parameters(b, [shape], arrays)
        return b.emit(op, p, axes=tuple(k for k, folds in enumerate(reduced) if folds))

    executable = _executable((op, x.dtype, tuple(reduced), extents[-1] == 1), op, arrays, build)
    (result,) = executable.run([x.reshape(extents)])
    return result.reshape(out.shape)


def _around(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Elements before an axis, along it and behind it."""
    return static_size(shape[:axis]), shape[axis], static_size(shape[axis + 1 :])


def _along_axis(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """SCAN and SORT: three axes, the middle one being the op's."""
    (x,) = arrays
    others = {**attrs, "axis": 1}
    shape = tuple(map(Dim, "abc"))
    executable = _executable(
        (op, x.dtype, _frozen(others)), op, arrays, lambda b: b.emit(op, *_parameters(b, [shape], arrays), **others)
    )
    (result,) = executable.run([x.reshape(_around(x.shape, attrs["axis"]))])
    return result.reshape(out.shape)


def _indexed(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """GATHER and SCATTER: the data as [a, n, c]; the indices as [m], or as [a, m, c] for ops along an axis."""
    x, indices, *updates = arrays
    before, along, behind = _around(x.shape, attrs["axis"])
    a, n, m, c = map(Dim, "anmc")
    if op.facts.get("along_axis"):
        count = indices.shape[attrs["axis"]]
        index_shape, index_dims = (before, count, behind), (a, m, c)
    else:
        count = indices.size
        index_shape, index_dims = (count,), (m,)
    shapes = [(a, n, c), index_dims, *[(a, m, c)] * len(updates)]
    key = (op, _dtypes(arrays))
    executable = _executable(key, op, arrays, lambda b: b.emit(op, *_parameters(b, shapes, arrays), axis=1))
    given = [x.reshape(before, along, behind), indices.reshape(index_shape)]
    given += [update.reshape(before, count, behind) for update in updates]
    (result,) = executable.run(given)
    return result.reshape(out.shape)


def _product(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """CONTRACT: at most one batch axis."""
    m, k, n, batch = Dim("m"), Dim("k"), Dim("n"), Dim("b")
    batched = len(out.shape) > 2
    lead = (batch,) if batched else ()
    x_dims = (*lead, k, m) if attrs["transpose_a"] else (*lead, m, k)
    y_dims = (*lead, n, k) if attrs["transpose_b"] else (*lead, k, n)
    executable = _executable(
        (op, _dtypes(arrays), _frozen(attrs), batched),
        op,
        arrays,
        lambda b: b.emit(op, *_parameters(b, [x_dims, y_dims], arrays), **attrs),
    )
    if batched:
        arrays = tuple(array.reshape(-1, *array.shape[-2:]) for array in arrays)
    (result,) = executable.run(list(arrays))
    return result.reshape(out.shape)


def _created(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """CREATE, on the device of the innermost scope.  From a key: an array that is never read tells the program how many
    elements to make."""
    if not arrays:
        return devices.placed(op.reference(**attrs))
    arrays = tuple(devices.moved(array, devices.scope()) for array in arrays)
    n = Dim("n")

    def build(b: GraphBuilder) -> Any:
        parameters = _parameters(b, [array.shape for array in arrays], arrays)
        b.parameter(TensorType((n,), np.dtype(np.bool_)), "extent")
        return b.emit(op, *parameters, shape=(n,))

    executable = _executable((op, _dtypes(arrays)), op, arrays, build)
    extent = np.empty(static_size(out.shape), np.bool_)
    (result,) = executable.run([*arrays, devices.moved(extent, devices.of(arrays[0]))])
    return result.reshape(out.shape)


def _moved(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: Attrs, out: TensorType) -> np.ndarray:
    """VIEW and SEGMENT: elements change places and not their bits, which NumPy does without a copy where it can.

    On a GPU there is a program for each combination of shapes, because those of the results are no symbols.
    """
    if devices.of(arrays[0]) == devices.CPU:
        return op.reference(*arrays, **attrs)
    if op.name == "reshape":
        return arrays[0].reshape(out.shape)
    shapes = tuple(array.shape for array in arrays)
    executable = _executable(
        (op, _dtypes(arrays), shapes, repr(_frozen(attrs))),  # 0.0 and -0.0 differ
        op,
        arrays,
        lambda b: b.emit(op, *_parameters(b, shapes, arrays), **attrs),
    )
    (result,) = executable.run(list(arrays))
    return result


_RUNNERS: dict[Kind, Callable[..., np.ndarray]] = {
    Kind.ELEMENTWISE: _flat,
    Kind.REDUCE: _reduced,
    Kind.SCAN: _along_axis,
    Kind.SORT: _along_axis,
    Kind.GATHER: _indexed,
    Kind.SCATTER: _indexed,
    Kind.CONTRACT: _product,
    Kind.CREATE: _created,
    Kind.VIEW: _moved,
    Kind.SEGMENT: _moved,
}
