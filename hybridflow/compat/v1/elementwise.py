"""TensorFlow 1's functions of single elements: conversions, arithmetic, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.tf import math as maths
from hybridflow.compat.v1.arguments import aligned, as_extent, is_whole
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.literals import literal
from hybridflow.compat.v1.recording import Recorded, Sizes
from hybridflow.compat.v1.table import Table
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor as Value

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


TABLE = Table()
op = TABLE.op


def _sizes_cast(x: object, dtype: DTypeLike) -> Any:
    return x if dtypes.is_integer(kind_of(dtype)) else NotImplemented


@op("Cast", of_sizes=_sizes_cast)
def cast(x: ArrayLike, dtype: DTypeLike) -> Any:
    return hf.astype(hf.asarray(x), kind_of(dtype))


for _name, _dtype in {"to_float": "float32", "to_double": "float64", "to_int32": "int32", "to_int64": "int64"}.items():

    def _to(x: object, name: str | None = None, dtype: str = _dtype, default: str = _name) -> Any:
        return cast(x, np.dtype(dtype), name=name)

    TABLE[_name] = _to


def _of_numbers_alone(x: object, other: object) -> Any:
    """A list of Python's numbers as the tensor that it means beside the other operand, whose dtype it takes if that
    holds its kind."""
    if isinstance(x, Sizes) or not isinstance(x, (list, tuple)):
        return x
    if not all(isinstance(leaf, (bool, int, float)) for leaf in pytree.flatten(x)[0]):
        return x
    result = literal(x)
    if not isinstance(other, Value):
        return result
    kind = other.dtype
    holds = dtypes.is_float(kind) or (dtypes.is_integer(kind) and dtypes.is_integer(result.dtype))
    return hf.astype(result, kind) if holds and result.dtype != dtypes.bool_ else result


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(x: TensorLike, y: TensorLike) -> Any:
        return function(*aligned(_of_numbers_alone(x, y), _of_numbers_alone(y, x)))

    apply.__doc__ = function.__doc__
    return apply


def _of_numbers(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> Any:
        pair = [as_extent(v) if is_whole(v) else v for v in (x, y)]
        if all(isinstance(v, (int, Dim)) for v in pair):
            return function(*pair)
        return NotImplemented

    return apply


def _truediv(x: ArrayLike, y: ArrayLike) -> Any:
    if all((hasattr(v, "dtype") and dtypes.is_integer(v.dtype)) or isinstance(v, int) for v in (x, y)):
        return hf.divide(hf.astype(hf.asarray(x), hf.float64), hf.astype(hf.asarray(y), hf.float64))
    return hf.divide(x, y)


def _div(x: ArrayLike, y: ArrayLike) -> Any:
    """Python 2's division: of integers it is whole."""
    if all((hasattr(v, "dtype") and not dtypes.is_float(v.dtype)) or isinstance(v, int) for v in (x, y)):
        return hf.floor_divide(x, y)
    return hf.divide(x, y)


_BINARY: dict[str, tuple[str, Callable[[Any, Any], Any], Any]] = {
    "add": ("Add", hf.add, lambda a, b: a + b),
    "subtract": ("Sub", hf.subtract, lambda a, b: a - b),
    "multiply": ("Mul", hf.multiply, lambda a, b: a * b),
    "divide": ("RealDiv", _truediv, None),
    "truediv": ("RealDiv", _truediv, None),
    "realdiv": ("RealDiv", _truediv, None),
    "div": ("RealDiv", _div, lambda a, b: a // b),
    "floordiv": ("FloorDiv", hf.floor_divide, lambda a, b: a // b),
    "floor_div": ("FloorDiv", hf.floor_divide, lambda a, b: a // b),
    "mod": ("FloorMod", hf.remainder, lambda a, b: a % b),
    "floormod": ("FloorMod", hf.remainder, lambda a, b: a % b),
    "pow": ("Pow", hf.pow, None),
    "maximum": ("Maximum", hf.maximum, None),
    "minimum": ("Minimum", hf.minimum, None),
    "atan2": ("Atan2", hf.atan2, None),
    "equal": ("Equal", hf.equal, None),
    "not_equal": ("NotEqual", hf.not_equal, None),
    "less": ("Less", hf.less, None),
    "less_equal": ("LessEqual", hf.less_equal, None),
    "greater": ("Greater", hf.greater, None),
    "greater_equal": ("GreaterEqual", hf.greater_equal, None),
    "logical_and": ("LogicalAnd", hf.logical_and, None),
    "logical_or": ("LogicalOr", hf.logical_or, None),
    "logical_xor": ("LogicalXor", hf.logical_xor, None),
    "squared_difference": ("SquaredDifference", lambda x, y: hf.square(x - y), None),
    "div_no_nan": ("DivNoNan", maths.divide_no_nan, None),
}
for _name, (_type, _function, _sizes) in _BINARY.items():
    TABLE[_name] = Recorded(_binary(_function), _type, of_sizes=_of_numbers(_sizes) if _sizes else None)

_UNARY = {
    "abs": "Abs", "negative": "Neg", "sign": "Sign", "square": "Square", "sqrt": "Sqrt", "rsqrt": "Rsqrt",
    "reciprocal": "Reciprocal", "exp": "Exp", "expm1": "Expm1", "log": "Log", "log1p": "Log1p", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "round": "Round",
    "logical_not": "LogicalNot", "is_nan:isnan": "IsNan", "is_inf:isinf": "IsInf", "is_finite:isfinite": "IsFinite",
    "stop_gradient": "StopGradient",
}  # fmt: skip


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(x: TensorLike) -> Any:
        return function(x if isinstance(x, Value) else literal(x))

    apply.__doc__ = function.__doc__
    return apply


for _name, _type in _UNARY.items():
    _own, _, _ours = _name.partition(":")
    TABLE[_own] = Recorded(_unary(getattr(hf, _ours or _own)), _type)
TABLE["neg"] = TABLE["negative"]


@op("AddN")
def add_n(inputs: TensorLike) -> Any:
    """The sum of tensors of one dtype and shape.  Raises TypeError where dtypes differ, ValueError where shapes do."""
    terms = _terms(inputs)
    kinds = [str(x.dtype) for x in terms]
    if len(set(kinds)) > 1:
        raise TypeError(
            f"Tensors in list passed to 'inputs' of 'AddN' Op have types [{', '.join(kinds)}] that don't all match."
        )
    total = terms[0]
    for x in terms[1:]:
        total = total + x
    return total


def _terms(inputs: object) -> list[Any]:
    """What is to be added, as tensors.  Raises ValueError where there is none, or shapes differ."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError(
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
        )
    terms = [
        hf.astype(hf.asarray(x), hf.int32)
        if isinstance(x, (Sizes, Dim))
        else literal(x)
        if isinstance(x, _IN_PYTHON)
        else hf.asarray(x)
        for x in inputs
    ]
    first = terms[0].shape
    for x in terms[1:]:
        if len(x.shape) != len(first):
            raise ValueError(f"Shapes must be equal rank, but are {len(first)} and {len(x.shape)}")
        pairs = list(zip(first, x.shape))
        if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
            raise ValueError(f"Shapes {first} and {x.shape} are not compatible: terms of a sum have one shape.")
    return terms


_IN_PYTHON = (bool, int, float, list, tuple, np.ndarray, np.generic)


@op("AddN", "accumulate_n", default="AccumulateN")
def accumulate_n(inputs: TensorLike, shape: object = None, tensor_dtype: object = None) -> Any:
    """As ``add_n``, with ValueError for several dtypes, too."""
    if len({x.dtype for x in _terms(inputs)}) > 1:
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    return add_n.function(inputs)
