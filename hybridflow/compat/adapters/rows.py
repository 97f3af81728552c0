"""What TensorFlow's functions of tensors give of ragged ones: what they give of the values, in the same rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from hybridflow.compat import export
from hybridflow.ragged import Ragged

# Functions of one tensor whose elements are made each of one element, and of two
UNARY = (
    "math.abs",
    "math.acos",
    "math.acosh",
    "math.angle",
    "math.asin",
    "math.asinh",
    "math.atan",
    "math.atanh",
    "math.ceil",
    "math.conj",
    "math.cos",
    "math.cosh",
    "math.digamma",
    "math.erf",
    "math.erfc",
    "math.erfinv",
    "math.exp",
    "math.expm1",
    "math.floor",
    "math.imag",
    "math.is_finite",
    "math.is_inf",
    "math.is_nan",
    "math.lgamma",
    "math.log",
    "math.log1p",
    "math.log_sigmoid",
    "math.logical_not",
    "math.negative",
    "math.real",
    "math.reciprocal",
    "math.rint",
    "math.round",
    "math.rsqrt",
    "math.sigmoid",
    "math.sign",
    "math.sin",
    "math.sinh",
    "math.softplus",
    "math.sqrt",
    "math.square",
    "math.tan",
    "math.tanh",
    "nn.elu",
    "nn.gelu",
    "nn.leaky_relu",
    "nn.relu",
    "nn.relu6",
    "nn.selu",
    "nn.silu",
    "nn.softsign",
    "cast",
    "identity",
    "ones_like",
    "zeros_like",
    "clip_by_value",
    "strings.as_string",
    "strings.length",
    "strings.lower",
    "strings.upper",
    "strings.regex_replace",
    "strings.to_number",
    "strings.to_hash_bucket_fast",
    "strings.strip",
    "bitwise.invert",
)
BINARY = (
    "math.add",
    "math.atan2",
    "math.divide",
    "math.divide_no_nan",
    "math.equal",
    "math.floordiv",
    "math.floormod",
    "math.greater",
    "math.greater_equal",
    "math.less",
    "math.less_equal",
    "math.logical_and",
    "math.logical_or",
    "math.logical_xor",
    "math.maximum",
    "math.minimum",
    "math.mod",
    "math.multiply",
    "math.multiply_no_nan",
    "math.not_equal",
    "math.pow",
    "math.squared_difference",
    "math.subtract",
    "math.truediv",
    "math.xdivy",
    "math.xlogy",
    "bitwise.bitwise_and",
    "bitwise.bitwise_or",
    "bitwise.bitwise_xor",
)


def function_named(name: str) -> Any:
    """What a dotted name stands for, None where there is none."""
    room, _, last = name.rpartition(".")
    return export.ROOMS.get(room or ".", {}).get(last)


@functools.cache
def _operands_of() -> dict[Callable[..., Any], int]:
    """How many operands an elementwise function has."""
    counts = [*((name, 1) for name in UNARY), *((name, 2) for name in BINARY)]
    return {function: count for name, count in counts if (function := function_named(name)) is not None}


def of_rows(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An elementwise function of ragged tensors.  Raises RowsGiven for another one."""
    count = _operands_of().get(function)
    if count is None:
        raise export.RowsGiven
    bound = inspect.signature(function).bind(*args, **kwargs)
    names = list(bound.arguments)[:count]
    operands = [bound.arguments.pop(name) for name in names]
    call = functools.partial(_call, function, names, dict(bound.arguments))
    if count == 1:
        return operands[0].map(call)
    if isinstance(operands[0], Ragged):
        return operands[0]._with(call, operands[1])
    return operands[1]._with(lambda y, x: call(x, y), operands[0])


def _call(function: Callable[..., Any], names: list[str], others: dict[str, Any], *operands: object) -> Any:
    return function(**dict(zip(names, operands)), **others)


export.answer_rows(of_rows)
