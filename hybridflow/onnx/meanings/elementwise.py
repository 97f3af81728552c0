"""Operators of single elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from hybridflow.array import elementwise as ew, shapes
from hybridflow.array.creation import asarray
from hybridflow.array.datatypes import finfo
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.nn import functional
from hybridflow.onnx.library import dtype_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call


def number(x: Tensor, value: float) -> Any:
    """A constant beside a tensor, whose dtype it takes."""
    return float(value) if dtypes.is_float(x.dtype) else int(value)


def _unary(name: str, function: Callable[[Any], Any], since: int = 1) -> None:
    operator(name, since=since, elementwise=True)(lambda call, x: function(x))


def _binary(name: str, function: Callable[[Any, Any], Any], since: int = 7) -> None:
    operator(name, since=since, elementwise=True)(lambda call, a, b: function(a, b))


for _name, _function in {
    "Abs": ew.abs,
    "Acos": ew.acos,
    "Acosh": ew.acosh,
    "Asin": ew.asin,
    "Asinh": ew.asinh,
    "Atan": ew.atan,
    "Atanh": ew.atanh,
    "Ceil": ew.ceil,
    "Cos": ew.cos,
    "Cosh": ew.cosh,
    "Erf": ew.erf,
    "Exp": ew.exp,
    "Floor": ew.floor,
    "IsNaN": ew.isnan,
    "Log": ew.log,
    "Neg": ew.negative,
    "Not": ew.logical_not,
    "BitwiseNot": ew.bitwise_invert,
    "Reciprocal": ew.reciprocal,
    "Relu": functional.relu,
    "Round": ew.round,
    "Sigmoid": ew.sigmoid,
    "Sign": ew.sign,
    "Sin": ew.sin,
    "Sinh": ew.sinh,
    "Softplus": functional.softplus,
    "Softsign": functional.softsign,
    "Sqrt": ew.sqrt,
    "Tan": ew.tan,
    "Tanh": ew.tanh,
}.items():
    _unary(_name, _function)

_PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": ew.add,
    "Sub": ew.subtract,
    "Mul": ew.multiply,
    "And": ew.logical_and,
    "Or": ew.logical_or,
    "Xor": ew.logical_xor,
    "Greater": ew.greater,
    "Less": ew.less,
    "GreaterOrEqual": ew.greater_equal,
    "LessOrEqual": ew.less_equal,
    "BitwiseAnd": ew.bitwise_and,
    "BitwiseOr": ew.bitwise_or,
    "BitwiseXor": ew.bitwise_xor,
}
for _name, _combined in _PAIRS.items():
    _binary(_name, _combined)


def _placed(call: Call, a: Tensor, b: Tensor, axis: int) -> Tensor:
    """``b`` with axes behind its own: those of ``a`` from ``axis`` on are its."""
    behind = a.ndim - (axis + a.ndim if axis < 0 else axis) - b.ndim
    if behind < 0:
        raise call.fault(f"its second operand has {b.ndim} axes, which do not fit from axis {axis} on.")
    return shapes.reshape(b, (*b.shape, *(1,) * behind))


def _binary_by_axis(name: str, function: Callable[[Call, Any, Any], Any]) -> None:
    """How two operands went together before opset 7."""

    def meaning(
        call: Call, a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0, consumed_inputs: object = None
    ) -> Tensor:
        result: Tensor = function(call, a, b if axis is None or not broadcast else _placed(call, a, b, axis))
        return result

    operator(name, until=6)(meaning)


def _without_call(function: Callable[[Any, Any], Any]) -> Callable[[Call, Any, Any], Any]:
    return lambda call, a, b: function(a, b)


@operator("Equal", since=7, raw=(0, 1), elementwise=True)
def equal(call: Call, a: object, b: object) -> Any:
    if any(isinstance(value, np.ndarray) and value.dtype.kind == "U" for value in (a, b)):
        return a == b
    return ew.equal(call.tensor(a), call.tensor(b))


@operator("Identity", elementwise=True)
def identity(call: Call, x: Tensor) -> Tensor:
    return x


@operator("Div", since=7, elementwise=True)
def div(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """Integers are divided towards zero."""
    if not dtypes.is_integer(a.dtype):
        return ew.divide(a, b)
    below = ew.floor_divide(a, b)
    if not dtypes.is_signed(a.dtype):
        return below
    inexact = ew.not_equal(below * b, a)
    return ew.where(ew.logical_and(inexact, ew.less(below, number(a, 0))), below + number(a, 1), below)


@operator("Mod", since=10, elementwise=True)
def mod(call: Call, a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    if not fmod:
        return ew.remainder(a, b)
    if dtypes.is_integer(a.dtype):
        return a - div(call, a, b) * b
    return ew.copysign(ew.remainder(ew.abs(a), ew.abs(b)), a)


@operator("Pow", since=7, elementwise=True)
def power(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """In the dtype of the base."""
    if a.dtype == b.dtype:
        return ew.pow(a, b)
    if dtypes.is_integer(a.dtype) and dtypes.is_float(b.dtype):
        return ew.astype(ew.pow(ew.astype(a, dtypes.float64), ew.astype(b, dtypes.float64)), a.dtype)
    return ew.pow(a, ew.astype(b, a.dtype))


for _name, _combined in _PAIRS.items():
    if not _name.startswith("Bitwise"):
        _binary_by_axis(_name, _without_call(_combined))
_binary_by_axis("Equal", _without_call(ew.equal))
_binary_by_axis("Div", div)
_binary_by_axis("Pow", power)


@operator("Max", since=6, elementwise=True)
def largest(call: Call, *tensors: Tensor) -> Tensor:
    return reduce(ew.maximum, tensors)


@operator("Min", since=6, elementwise=True)
def smallest(call: Call, *tensors: Tensor) -> Tensor:
    return reduce(ew.minimum, tensors)


@operator("Sum", since=6, elementwise=True)
def total(call: Call, *tensors: Tensor) -> Tensor:
    return reduce(ew.add, tensors)


@operator("Mean", since=6, elementwise=True)
def mean(call: Call, *tensors: Tensor) -> Tensor:
    return ew.divide(reduce(ew.add, tensors), number(tensors[0], len(tensors)))


@operator("Where", since=9, elementwise=True)
def where(call: Call, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return ew.where(condition, a, b)


@operator("Clip", since=11, elementwise=True)
def clip(call: Call, x: Tensor, least: Tensor | None = None, most: Tensor | None = None) -> Tensor:
    if least is not None:
        x = ew.maximum(x, least)
    return x if most is None else ew.minimum(x, most)


@operator("Clip", since=6, until=6, elementwise=True)
def clip_by_attributes(
    call: Call, x: Tensor, *, min: float = -3.4028234663852886e38, max: float = 3.4028234663852886e38
) -> Tensor:
    return ew.minimum(ew.maximum(x, number(x, min)), number(x, max))


def converted(x: Tensor, to: np.dtype, saturate: bool = True) -> Tensor:
    """``x`` as another dtype.  What a small float is too small for becomes its largest number, where it saturates; an
    integer of few bits has the lowest of a larger one's."""
    if x.dtype == to:
        return x
    stored = dtypes.DEF[to].stored
    if isinstance(stored, dtypes.MiniFloat) and saturate:
        wide = ew.astype(x, dtypes.float32)
        largest = finfo(to).max
        held = ew.minimum(ew.maximum(wide, -largest), largest)
        x = ew.where(ew.isnan(wide), wide, held)
    if isinstance(stored, dtypes.MiniInt) and dtypes.is_float(x.dtype):
        x = ew.astype(x, dtypes.int32)
    return ew.astype(x, to)


@operator("Cast", since=6, elementwise=True)
def cast(call: Call, x: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return converted(x, dtype_of(to), bool(saturate))


@operator("CastLike", since=15, elementwise=True)
def cast_like(call: Call, x: Tensor, like: Tensor, *, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return converted(x, like.dtype, bool(saturate))


@operator("BitCast", since=26)
def bit_cast(call: Call, x: Tensor, *, to: int) -> Tensor:
    """The bits as those of another dtype: by NumPy, so that a compiled model runs eagerly."""
    array = call.numbers(x)
    return asarray(np.frombuffer(array.tobytes(), dtype_of(to)).reshape(array.shape))


@operator("BitShift", since=11, elementwise=True)
def shift(call: Call, x: Tensor, by: Tensor, *, direction: str) -> Tensor:
    """Bits that are shifted by their number or more are gone."""
    move = ew.bitwise_left_shift if direction == "LEFT" else ew.bitwise_right_shift
    return move(x, by)


@operator("IsInf", since=10, elementwise=True)
def is_infinite(call: Call, x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    infinite = ew.isinf(x)
    if not detect_negative:
        infinite = ew.logical_and(infinite, ew.greater(x, number(x, 0)))
    if not detect_positive:
        infinite = ew.logical_and(infinite, ew.less(x, number(x, 0)))
    return infinite


@operator("LeakyRelu", since=6, elementwise=True)
def leaky_relu(call: Call, x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return ew.where(ew.less(x, number(x, 0)), x * number(x, alpha), x)


@operator("PRelu", since=7, elementwise=True)
def prelu(call: Call, x: Tensor, slope: Tensor) -> Tensor:
    return ew.where(ew.less(x, number(x, 0)), x * slope, x)


@operator("PRelu", until=6)
def prelu_by_channel(call: Call, x: Tensor, slope: Tensor, *, consumed_inputs: object = None) -> Tensor:
    return prelu(call, x, _placed(call, x, slope, 1) if slope.ndim == 1 and x.ndim > 1 else slope)


@operator("Elu", since=6, elementwise=True)
def elu(call: Call, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return ew.where(ew.less(x, number(x, 0)), ew.expm1(ew.minimum(x, number(x, 0))) * number(x, alpha), x)


@operator("Celu", since=12, elementwise=True)
def celu(call: Call, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    a, zero = number(x, alpha), number(x, 0)
    return ew.maximum(x, zero) + ew.minimum(zero, a * ew.expm1(ew.divide(x, a)))


@operator("Selu", since=6, elementwise=True)
def selu(
    call: Call, x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    zero = number(x, 0)
    below = ew.expm1(ew.minimum(x, zero)) * number(x, alpha)
    return ew.where(ew.less_equal(x, zero), below, x) * number(x, gamma)


@operator("ThresholdedRelu", since=10, elementwise=True)
def thresholded_relu(call: Call, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return ew.where(ew.greater(x, number(x, alpha)), x, number(x, 0))


@operator("HardSigmoid", since=6, elementwise=True)
def hard_sigmoid(call: Call, x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    line = x * number(x, alpha) + number(x, beta)
    return ew.maximum(number(x, 0), ew.minimum(number(x, 1), line))


@operator("HardSwish", since=14, elementwise=True)
def hard_swish(call: Call, x: Tensor) -> Tensor:
    return x * hard_sigmoid(call, x, alpha=1 / 6, beta=0.5)


@operator("Swish", since=24, elementwise=True)
def swish(call: Call, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x * ew.sigmoid(x if alpha == 1 else x * number(x, alpha))


@operator("Mish", since=18, elementwise=True)
def mish(call: Call, x: Tensor) -> Tensor:
    return x * ew.tanh(functional.softplus(x))


@operator("Gelu", since=20, elementwise=True)
def gelu(call: Call, x: Tensor, *, approximate: str = "none") -> Tensor:
    return functional.gelu(x, approximate=approximate == "tanh")


@operator("Shrink", since=9, elementwise=True)
def shrink(call: Call, x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    limit, step, zero = number(x, lambd), number(x, bias), number(x, 0)
    return ew.where(ew.less(x, -limit), x + step, ew.where(ew.greater(x, limit), x - step, zero))


@operator("Dropout", since=12, elementwise=True)
def dropout(call: Call, x: Tensor, ratio: object = None, training: object = None, *, seed: int | None = None) -> Any:
    """Nothing is dropped but where a model says that it is in training."""
    if training is not None and bool(call.numbers(training)):
        from hybridflow.onnx.meanings.random import dropped

        return dropped(call, x, ratio, seed)
    return (x, ew.equal(x, x) | ew.not_equal(x, x)) if call.wants(1) else x


@operator("Dropout", since=7, until=10, elementwise=True)
@operator("Dropout", until=6, elementwise=True)
def dropout_of_inference(
    call: Call, x: Tensor, *, ratio: float = 0.5, is_test: int = 1, consumed_inputs: object = None
) -> Any:
    return (x, ew.equal(x, x) | ew.not_equal(x, x)) if call.wants(1) else x
