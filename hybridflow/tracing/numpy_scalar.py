"""NumPy scalars while tracing: what Python's operators and NumPy's ufuncs make of them alone is a NumPy scalar again.

Outside of traces that is NumPy's own doing, so the dtypes are those that NumPy computes in.  Like the scalars, the
results are weak: they have no say in the dtype of what they are combined with.  Functions of ours give tensors, of
NumPy scalars too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.core.promotion import is_pythons, is_supported, weak_kind
from hybridflow.core.tensor import Operators
from hybridflow.eager.operands import as_tensor
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_OF_TWO: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_OF_ONE: dict[str, np.ufunc] = {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}


def _are_weak(values: Sequence[Any]) -> bool:
    return all(weak_kind(value) is not None for value in values)


def _of_scalars(ufunc: np.ufunc, compute: Callable[..., Any], values: Sequence[Any]) -> Any:
    """``compute`` of scalars, which stand for the operands of ``ufunc``, as scalars."""
    operands = [_operands(x) for x in values]
    try:
        dtypes = ufunc.resolve_dtypes((*operands, *(None,) * ufunc.nout))
    except TypeError:  # NumPy has no such operation: the error is that of ours
        return compute(*values)
    if all(map(is_supported, dtypes[: ufunc.nin])):
        values = [as_tensor(x, ufunc.__name__, dtype) for x, dtype in zip(values, dtypes)]
    out = compute(*values)
    return tuple(map(_weak, out)) if isinstance(out, tuple) else _weak(out)


def _operands(value: object) -> Any:
    """What NumPy is told of a scalar: a dtype, or that it is an int or float of Python's."""
    kind = weak_kind(value) if is_pythons(value) else None
    return kind if kind in (int, float) else np.dtype(getattr(value, "dtype", type(value)))


def _weak(out: object) -> Any:
    return SymbolicTensor(out._node, out._trace, is_weak=True) if isinstance(out, SymbolicTensor) else out


def _operator(name: str, ufunc: np.ufunc, is_reflected: bool = False) -> None:
    general = getattr(Operators, name)

    def method(self: Any, *others: object) -> Any:
        if not self.is_weak or not _are_weak(others):
            return general(self, *others)
        if is_reflected:
            return _of_scalars(ufunc, lambda other, number: general(number, other), (*others, self))
        return _of_scalars(ufunc, general, (self, *others))

    method.__name__ = name
    setattr(SymbolicTensor, name, method)


def _array_ufunc(self: object, ufunc: np.ufunc, method: str, /, *inputs: object, **options: object) -> Any:
    def general(*values: object) -> Any:
        return Operators.__array_ufunc__(self, ufunc, method, *values, **options)  # type: ignore[attr-defined]

    if method != "__call__" or options or not _are_weak(inputs):
        return general(*inputs)
    return _of_scalars(ufunc, general, inputs)


def install() -> None:
    """Give the class the methods; called once, when something is traced for the first time."""
    for name, ufunc in (*_OF_TWO.items(), *_COMPARISONS.items(), *_OF_ONE.items()):
        _operator(f"__{name}__", ufunc)
    for name, ufunc in _OF_TWO.items():
        _operator(f"__r{name}__", ufunc, is_reflected=True)
    SymbolicTensor.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
