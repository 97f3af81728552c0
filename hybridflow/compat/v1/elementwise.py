"""TensorFlow 1's functions of single elements: conversions, arithmetic, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters import maths
from hybridflow.compat.v1.arguments import aligned, as_extent, is_whole
from hybridflow.compat.v1.kinds import kind_of
from hybridflow.compat.v1.literals import literal
from hybridflow.compat.v1.recording import Recorded
from hybridflow.compat.v1.table import Table
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor as Value

TABLE = Table()
op = TABLE.op


def _sizes_cast(x: Any, dtype: Any) -> Any:
    return x if dtypes.is_integer(kind_of(dtype)) else NotImplemented


@op("Cast", of_sizes=_sizes_cast)
def cast(x: Any, dtype: Any) -> Any:
    return hf.astype(hf.asarray(x), kind_of(dtype))


for _name, _dtype in {"to_float": "float32", "to_double": "float64", "to_int32": "int32", "to_int64": "int64"}.items():

    def _to(x: Any, name: str | None = None, dtype: str = _dtype, default: str = _name) -> Any:
        return cast(x, np.dtype(dtype), name=name)

    TABLE[_name] = _to


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> Any:
        return function(*aligned(x, y))

    apply.__doc__ = function.__doc__
    return apply


def _of_numbers(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> Any:
        pair = [as_extent(v) if is_whole(v) else v for v in (x, y)]
        if all(isinstance(v, (int, Dim)) for v in pair):
            return function(*pair)
        return NotImplemented

    return apply


def _truediv(x: Any, y: Any) -> Any:
    if all((hasattr(v, "dtype") and dtypes.is_integer(v.dtype)) or isinstance(v, int) for v in (x, y)):
        return hf.divide(hf.astype(hf.asarray(x), hf.float64), hf.astype(hf.asarray(y), hf.float64))
    return hf.divide(x, y)


def _div(x: Any, y: Any) -> Any:
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
    def apply(x: Any) -> Any:
        return function(x if isinstance(x, Value) else literal(x))

    apply.__doc__ = function.__doc__
    return apply


for _name, _type in _UNARY.items():
    _own, _, _ours = _name.partition(":")
    TABLE[_own] = Recorded(_unary(getattr(hf, _ours or _own)), _type)
TABLE["neg"] = TABLE["negative"]


@op("AddN")
def add_n(inputs: Any) -> Any:
    total = hf.asarray(inputs[0])
    for x in inputs[1:]:
        total = total + x
    return total


@op("AddN", "accumulate_n", default="AccumulateN")
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None) -> Any:
    return add_n.function(inputs)
