"""Elementwise functions.

All of them broadcast their operands and bring them to one dtype as ``convert`` describes; errors are DTypeError for
dtypes that the function does not take, ShapeError for shapes that do not broadcast.  NaN, infinities and signed zeros
behave as IEEE 754 and NumPy have them.
"""

from __future__ import annotations

__traits__ = ("makes tensors",)

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ops import TABLE
from hybridflow.core.context import busy, only_tape, reasons
from hybridflow.core.promotion import default_float, result_dtype, to_dtype, weak_kind
from hybridflow.core.string_tensor import StringTensor
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.fast_path import natives, note_taped_call, note_use, taped_calls, try_binary, try_unary
from hybridflow.eager.operands import (
    aligned,
    as_tensor,
    broadcast_all,
    cast,
    common_dtype,
    exclusive,
    filled,
    float_operand,
    strong,
    weak_cast,
)
from hybridflow.eager.public_op import OperatorCall, operation
from hybridflow.errors import ArgumentError, DTypeError, entered, of_user

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


# ---- the shapes of elementwise functions


def _binary(op: OpDef, x: ArrayLike, y: ArrayLike) -> Tensor:
    """``op`` on operands of one promoted dtype."""
    return _quickly(op, _promoted, x, y)


def _quickly(op: OpDef, body: Callable[[Any, Any, Any], Tensor], x: ArrayLike, y: ArrayLike) -> Tensor:
    """``body(op, x, y)``, by native code or as a whole where that can be."""
    if not busy.value or reasons.none_here():
        out = try_binary(op, x, y)
        if out is not None:
            return out
    elif only_tape() is not None:
        return _integer(op, body)(x, y)
    return body(op, x, y)


def _at_once(op: OpDef, x: ArrayLike, y: ArrayLike) -> Tensor | None:
    """What native code gives while nothing records, or NumPy before there is any; else None: there may be a plan."""
    native = natives.get(op)
    if native is None:
        return try_binary(op, x, y)
    out = native(x, y)
    return None if out is NotImplemented else out


def _operator(op: OpDef, body: Callable[[Any, Any, Any], Tensor], x: ArrayLike, y: ArrayLike) -> Tensor:
    """As ``_quickly``, of an op behind one of Python's operators, which is a function with plans of its own."""
    try:
        if not busy.value or reasons.none_here():
            out = _at_once(op, x, y)
            if out is not None:
                return out
        elif only_tape() is None:  # a trace, for one, to which native code is of no use
            return body(op, x, y)
        else:
            note_use(0)
        out = _of_slot(op, body)(x, y)
        return body(op, x, y) if out is NotImplemented else out
    except Exception as error:
        raise of_user(error)  # noqa: B904  # the very error


def _of_slot(op: OpDef, body: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The whole of an op that is all that one of Python's operators does: its slot may call it, too."""
    whole = taped_calls.get(op)
    if whole is None:
        whole = _taped[op] = OperatorCall(_named(op, body), is_constant=False)
        note_taped_call(op, whole)
    return whole


def _integer(op: OpDef, body: Callable[..., Tensor]) -> Callable[..., Tensor]:
    whole = _taped.get(op)
    if whole is None:
        whole = _taped[op] = operation(_named(op, body))
    return whole


_taped: dict[Any, Callable[..., Tensor]] = {}  # functions that are one op in all but promotion


def _named(op: OpDef, body: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def of_one(x: ArrayLike) -> Tensor:
        return body(op, x)

    def of_two(x: ArrayLike, y: ArrayLike) -> Tensor:
        out = try_binary(op, x, y) if not busy.value or reasons.none_here() else None
        return body(op, x, y) if out is None else out

    function: Any = of_one if op.arity == 1 else of_two

    function.__name__ = op.name
    return function


def _promoted(op: OpDef, x: Tensor, y: Tensor) -> Tensor:
    if type(x) is Variable:
        x = x._seen()
    if type(y) is Variable:
        y = y._seen()
    if _alike(x, y):
        return apply(op, x, y)
    stage = op.name
    if type(x) is StringTensor or type(y) is StringTensor:
        return apply(op, *broadcast_all(stage, common_dtype(stage, (x, y))))
    x, y = strong(x, stage), strong(y, stage)
    dtype = result_dtype(stage, (x, y))
    return apply(op, *aligned(stage, dtype, x, y))


def _alike(x: object, y: object) -> bool:
    """Whether two operands are tensors of one type, which need neither promotion nor broadcasting."""
    if type(x) is not Tensor or type(y) is not Tensor:
        return False
    a, b = x._array, y._array
    return a.dtype is b.dtype and a.shape == b.shape and type(a) is type(b)  # scalars may have to change devices


def _float_binary(op: OpDef, x: ArrayLike, y: ArrayLike) -> Tensor:
    """``op``, which takes floats only: integers and bools become float32."""
    return _quickly(op, _promoted_to_float, x, y)


def _promoted_to_float(op: OpDef, x: Tensor, y: Tensor) -> Tensor:
    if _alike(x, y) and dtypes.is_inexact(x.dtype):
        return apply(op, x, y)
    stage = op.name
    x, y = strong(x, stage), strong(y, stage)
    dtype = result_dtype(stage, (x, y))
    dtype = dtype if dtypes.is_inexact(dtype) else default_float
    return apply(op, *aligned(stage, dtype, x, y))


def _unary(op: OpDef, x: ArrayLike) -> Tensor:
    """``op`` on an operand of any dtype."""
    try:
        out = try_unary(op, x) if not busy.value or reasons.none_here() else None
        return apply(op, x if type(x) is Tensor else as_tensor(x, op.name)) if out is None else out
    except Exception as error:
        raise of_user(error)  # noqa: B904  # the very error


def _unary_operator(op: OpDef, x: ArrayLike) -> Tensor:
    """As ``_unary``, of an op behind one of Python's operators."""
    try:
        if type(x) is Variable or (busy.value and only_tape() is not None):
            note_use(0)
            return _of_slot(op, _unary)(x)
        return _unary(op, x)
    except Exception as error:
        raise of_user(error)  # noqa: B904  # the very error


def _float_unary(op: OpDef, x: ArrayLike) -> Tensor:
    """``op``, which takes floats only: integers and bools become float32."""
    out = try_unary(op, x) if not busy.value or reasons.none_here() else None
    return apply(op, float_operand(x, op.name)) if out is None else out


def _rounding(op: OpDef, x: ArrayLike) -> Tensor:
    """Integers are round already."""
    x = as_tensor(x, op.name)
    return exclusive(x) if dtypes.is_integer(x.dtype) else apply(op, x)


def _logical(op: OpDef, x: ArrayLike, y: ArrayLike) -> Tensor:
    """``op`` on truth values: anything but zero is true."""
    tensors = (as_tensor(x, op.name, dtypes.bool_), as_tensor(y, op.name, dtypes.bool_))
    return apply(op, *broadcast_all(op.name, tensors))


def _classify(op: OpDef, x: ArrayLike, of_integers: bool) -> Tensor:
    """A predicate about floats, which is the same for every integer."""
    x = as_tensor(x, op.name)
    if dtypes.is_inexact(x.dtype):
        return apply(op, x)
    floats = dtypes.is_float(dtypes.wide_dtype(x.dtype))  # which are stored
    x = cast(x, default_float)
    return apply(op, x) if floats else apply(TABLE["equal" if of_integers else "not_equal"], x, x)


# ---- arithmetic


def add(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise sum: ``x1 + x2``.  Integers wrap around.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: where an operand is bool.

    >>> hf.add([1.0, 2.0], 3)
    <Tensor f32[2] cpu> [4. 5.]
    """
    return _operator(_ADD, _promoted, x1, x2)


def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise difference: ``x1 - x2``.  Integers wrap around.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: where an operand is bool.

    >>> hf.subtract([1.0, 2.0], 3)
    <Tensor f32[2] cpu> [-2. -1.]
    """
    return _operator(_SUBTRACT, _promoted, x1, x2)


def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise product: ``x1 * x2``.  Integers wrap around.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: where an operand is bool.

    >>> hf.multiply([1.0, 2.0], 3)
    <Tensor f32[2] cpu> [3. 6.]
    """
    return _operator(_MULTIPLY, _promoted, x1, x2)


def divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise quotient: ``x1 / x2`` in floats; integers and bools are converted to float32 first.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where both are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.divide([1, 2], 4)
    <Tensor f32[2] cpu> [0.25 0.5 ]
    """
    return _operator(_DIVIDE, _promoted_to_float, x1, x2)


_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = (TABLE[name] for name in ("add", "subtract", "multiply", "divide"))


@operation
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Floor division: ``x1 // x2``, rounded towards minus infinity.  Raises DivisionError for an integer divided by
    zero.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: where an operand is bool.

    >>> hf.floor_divide([7, -7], 2)
    <Tensor i64[2] cpu> [ 3 -4]
    """
    return _binary(TABLE["floor_divide"], x1, x2)


@operation
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise remainder: ``x1 % x2``, with the sign of ``x2``.  Raises DivisionError for an integer remainder by
    zero.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: where an operand is bool.

    >>> hf.remainder([7, -7], 3)
    <Tensor i64[2] cpu> [1 2]
    """
    return _binary(TABLE["remainder"], x1, x2)


@operation
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise power: ``x1 ** x2``.

    Python's 0, 1, 2, 3, 4, -1, 0.5 and -0.5 as ``x2`` are products, quotients and roots. Their results at signed zeros,
    infinities and NaN are those of the power; float32 to the power 4 is rounded once. Raises ArgumentError for a
    negative Python exponent of integers.

    Args:
        x1: the base.
        x2: the exponent; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.pow([1.0, 2.0, 3.0], 2)
    <Tensor f32[3] cpu> [1. 4. 9.]
    """
    kind = weak_kind(x2)
    if (kind is int or kind is float) and type(x2) is not Dim:
        if isinstance(x2, Tensor):
            return _power_by_value(x1, x2)
        exponent: Any = x2
        special = _POWERS.get(exponent)
        if special is not None and isinstance(x1, Tensor) and dtypes.is_float(x1.dtype):
            return special(x1)
        base = strong(x1, "pow")
        dtype = result_dtype("pow", (base, x2))
        if exponent < 0 and not dtypes.is_inexact(dtype):
            raise ArgumentError("pow", f"an integer to the power {x2} is not an integer; convert with hf.astype first.")
        if special is not None and weak_kind(base) is None:
            return special(cast(base, dtype))
    return _binary(TABLE["pow"], x1, x2)


power = pow


def _power_by_value(x1: ArrayLike, x2: Tensor) -> Tensor:
    """A power by a NumPy scalar that an argument of a traced function is: what it is for the value that comes."""
    base = strong(x1, "pow")
    out = _binary(TABLE["pow"], base, x2)
    if weak_kind(base) is None:
        base = cast(base, out.dtype)
        for value, special in _POWERS.items():
            if dtypes.is_float(out.dtype) or (type(value) is int and value >= 0):
                out = where(equal(x2, value), special(base), out)
    return out


def _cube(x: Tensor) -> Tensor:
    return multiply(square(x), x)


def _fourth(x: Tensor) -> Tensor:
    """As exact as pow: float64 has the square of a float32 whole, and room for its square."""
    if x.dtype == dtypes.float32:
        return cast(square(square(cast(x, dtypes.float64))), x.dtype)
    return _binary(TABLE["pow"], x, 4) if dtypes.is_float(x.dtype) else square(square(x))


def _ones(x: Tensor) -> Tensor:
    """1 for every element, NaN too.  It depends on ``x`` to a tape: the derivative is 0, and not missing."""
    return where(True, 1, x)


def _half_power(x: Tensor) -> Tensor:
    return _unary(TABLE["sqrt" if dtypes.is_complex(x.dtype) else "pow_half"], x)


def _minus_half_power(x: Tensor) -> Tensor:
    return _unary(TABLE["rsqrt" if dtypes.is_complex(x.dtype) else "pow_minus_half"], x)


def negative(x: ArrayLike, /) -> Tensor:
    """Elementwise negation: ``-x``.  Unsigned integers wrap around; raises DTypeError for bool.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.negative([1.0, -2.0])
    <Tensor f32[2] cpu> [-1.  2.]
    """
    return _unary_operator(TABLE["negative"], x)


@entered
def positive(x: ArrayLike, /) -> Tensor:
    """Elementwise plus.

    ``+x``: ``x`` as a tensor.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.positive([1.0, -2.0])
    <Tensor f32[2] cpu> [ 1. -2.]
    """
    return exclusive(as_tensor(x, "positive"))


def abs(x: ArrayLike, /) -> Tensor:
    """The absolute value.  Its derivative at 0 is 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        DTypeError: where ``x`` is bool.

    >>> hf.abs([-1.5, 2.0])
    <Tensor f32[2] cpu> [1.5 2. ]
    """
    return _unary_operator(TABLE["abs"], x)


@operation
def sign(x: ArrayLike, /) -> Tensor:
    """Sign: -1, 0 or 1; NaN for NaN.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        DTypeError: where ``x`` is bool.

    >>> hf.sign([-2.0, 0.0, 3.0])
    <Tensor f32[3] cpu> [-1.  0.  1.]
    """
    return _unary(TABLE["sign"], x)


@operation
def square(x: ArrayLike, /) -> Tensor:
    """Elementwise square: ``x * x``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        DTypeError: where ``x`` is bool.

    >>> hf.square([3.0, -2.0])
    <Tensor f32[2] cpu> [9. 4.]
    """
    return _unary(TABLE["square"], x)


@operation
def reciprocal(x: ArrayLike, /) -> Tensor:
    """Elementwise reciprocal: ``1 / x`` in floats.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.reciprocal([2.0, 4.0])
    <Tensor f32[2] cpu> [0.5  0.25]
    """
    return _float_unary(TABLE["reciprocal"], x)


_POWERS: dict[Any, Callable[[Tensor], Tensor]] = {
    0: _ones,
    1: positive,
    2: square,
    3: _cube,
    4: _fourth,
    -1: reciprocal,
    0.5: _half_power,
    -0.5: _minus_half_power,
}


# ---- exponentials and logarithms (floats; integers and bools are converted to float32 first)


@operation
def exp(x: ArrayLike, /) -> Tensor:
    """e to the power ``x``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.exp([0.0, 1.0])
    <Tensor f32[2] cpu> [1.        2.7182817]
    """
    return _float_unary(TABLE["exp"], x)


@operation
def exp2(x: ArrayLike, /) -> Tensor:
    """Elementwise power of two: ``2 ** x``; integers and bools become float32.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.exp2([-1, 0, 10])
    <Tensor f32[3] cpu> [5.000e-01 1.000e+00 1.024e+03]
    """
    return _float_unary(TABLE["exp2"], x)


@operation
def cbrt(x: ArrayLike, /) -> Tensor:
    """Elementwise cube root, with the sign of ``x``; integers and bools become float32.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.cbrt([27.0, -8.0, 0.0])
    <Tensor f32[3] cpu> [ 3. -2.  0.]
    """
    return _float_unary(TABLE["cbrt"], x)


@operation
def expm1(x: ArrayLike, /) -> Tensor:
    """Exponential less one: ``exp(x) - 1``, exact near 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.expm1([0.0, 1e-6])
    <Tensor f32[2] cpu> [0.0000000e+00 1.0000005e-06]
    """
    return _float_unary(TABLE["expm1"], x)


@operation
def log(x: ArrayLike, /) -> Tensor:
    """The natural logarithm: -inf at 0, NaN below.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.log([1.0, 10.0])
    <Tensor f32[2] cpu> [0.        2.3025851]
    """
    return _float_unary(TABLE["log"], x)


@operation
def log1p(x: ArrayLike, /) -> Tensor:
    """Logarithm of one plus x: ``log(1 + x)``, exact near 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.log1p([0.0, 1e-6])
    <Tensor f32[2] cpu> [0.000000e+00 9.999995e-07]
    """
    return _float_unary(TABLE["log1p"], x)


@operation
def log2(x: ArrayLike, /) -> Tensor:
    """The logarithm to base 2.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.log2([1.0, 8.0])
    <Tensor f32[2] cpu> [0. 3.]
    """
    return _float_unary(TABLE["log2"], x)


@operation
def log10(x: ArrayLike, /) -> Tensor:
    """The logarithm to base 10.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.log10([1.0, 1000.0])
    <Tensor f32[2] cpu> [0. 3.]
    """
    return _float_unary(TABLE["log10"], x)


@operation
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Logarithm of the sum of exponentials: ``log(exp(x1) + exp(x2))`` without overflow.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where both are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.logaddexp([0.0, 1000.0], [0.0, 1000.0])
    <Tensor f32[2] cpu> [6.9314718e-01 1.0006932e+03]
    """
    return _float_binary(TABLE["logaddexp"], x1, x2)


@operation
def sqrt(x: ArrayLike, /) -> Tensor:
    """The square root; NaN below 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.sqrt([4.0, 2.0])
    <Tensor f32[2] cpu> [2.        1.4142135]
    """
    return _float_unary(TABLE["sqrt"], x)


@operation
def rsqrt(x: ArrayLike) -> Tensor:
    """Reciprocal square root: ``1 / sqrt(x)``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.rsqrt([4.0, 16.0])
    <Tensor f32[2] cpu> [0.5  0.25]
    """
    return _float_unary(TABLE["rsqrt"], x)


@operation
def erf(x: ArrayLike) -> Tensor:
    """The error function.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.erf([0.0, 1.0])
    <Tensor f32[2] cpu> [0.         0.84270084]
    """
    return _float_unary(TABLE["erf"], x)


@operation
def sigmoid(x: ArrayLike) -> Tensor:
    """Sigmoid: ``1 / (1 + exp(-x))`` without overflow.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.sigmoid([0.0, 100.0])
    <Tensor f32[2] cpu> [0.5 1. ]
    """
    return _float_unary(TABLE["sigmoid"], x)


# ---- trigonometric and hyperbolic functions (floats; integers and bools are converted to float32 first)


@operation
def sin(x: ArrayLike, /) -> Tensor:
    """The sine of ``x`` radians.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.sin([0.0, 1.0])
    <Tensor f32[2] cpu> [0.         0.84147096]
    """
    return _float_unary(TABLE["sin"], x)


@operation
def cos(x: ArrayLike, /) -> Tensor:
    """The cosine of ``x`` radians.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.cos([0.0, 1.0])
    <Tensor f32[2] cpu> [1.        0.5403023]
    """
    return _float_unary(TABLE["cos"], x)


@operation
def tan(x: ArrayLike, /) -> Tensor:
    """The tangent of ``x`` radians.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.tan([0.0, 1.0])
    <Tensor f32[2] cpu> [0.        1.5574077]
    """
    return _float_unary(TABLE["tan"], x)


@operation
def asin(x: ArrayLike, /) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is ``x``; NaN outside [-1, 1].

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.asin([0.0, 1.0])
    <Tensor f32[2] cpu> [0.        1.5707964]
    """
    return _float_unary(TABLE["asin"], x)


@operation
def acos(x: ArrayLike, /) -> Tensor:
    """The angle in [0, pi] whose cosine is ``x``; NaN outside [-1, 1].

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.acos([-1.0, 1.0])
    <Tensor f32[2] cpu> [3.1415927 0.       ]
    """
    return _float_unary(TABLE["acos"], x)


@operation
def atan(x: ArrayLike, /) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is ``x``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.atan([0.0, 1.0])
    <Tensor f32[2] cpu> [0.        0.7853982]
    """
    return _float_unary(TABLE["atan"], x)


@operation
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The angle of the point (``x2``, ``x1``) in [-pi, pi].

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where both are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.atan2([1.0, -1.0], [0.0, 0.0])
    <Tensor f32[2] cpu> [ 1.5707964 -1.5707964]
    """
    return _float_binary(TABLE["atan2"], x1, x2)


@operation
def sinh(x: ArrayLike, /) -> Tensor:
    """The hyperbolic sine.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.sinh([0.0, 1.0])
    <Tensor f32[2] cpu> [0.        1.1752012]
    """
    return _float_unary(TABLE["sinh"], x)


@operation
def cosh(x: ArrayLike, /) -> Tensor:
    """The hyperbolic cosine.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.cosh([0.0, 1.0])
    <Tensor f32[2] cpu> [1.        1.5430806]
    """
    return _float_unary(TABLE["cosh"], x)


@operation
def tanh(x: ArrayLike, /) -> Tensor:
    """The hyperbolic tangent.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.tanh([0.0, 1.0])
    <Tensor f32[2] cpu> [0.        0.7615942]
    """
    return _float_unary(TABLE["tanh"], x)


@operation
def asinh(x: ArrayLike, /) -> Tensor:
    """The inverse of ``sinh``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.asinh([0.0, 1.0])
    <Tensor f32[2] cpu> [0.        0.8813736]
    """
    return _float_unary(TABLE["asinh"], x)


@operation
def acosh(x: ArrayLike, /) -> Tensor:
    """The non-negative inverse of ``cosh``; NaN below 1.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.acosh([1.0, 2.0])
    <Tensor f32[2] cpu> [0.       1.316958]
    """
    return _float_unary(TABLE["acosh"], x)


@operation
def atanh(x: ArrayLike, /) -> Tensor:
    """The inverse of ``tanh``; NaN outside [-1, 1].

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.atanh([0.0, 0.5])
    <Tensor f32[2] cpu> [0.         0.54930615]
    """
    return _float_unary(TABLE["atanh"], x)


@operation
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Hypotenuse: ``sqrt(x1**2 + x2**2)`` without overflow in between.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where both are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.hypot([3.0, 5.0], [4.0, 12.0])
    <Tensor f32[2] cpu> [ 5. 13.]
    """
    return _float_binary(TABLE["hypot"], x1, x2)


# ---- rounding and floating-point facts


@operation
def floor(x: ArrayLike, /) -> Tensor:
    """The largest whole number not above ``x``, in the dtype of ``x``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.floor([1.8, -1.2])
    <Tensor f32[2] cpu> [ 1. -2.]
    """
    return _rounding(TABLE["floor"], x)


@operation
def ceil(x: ArrayLike, /) -> Tensor:
    """The smallest whole number not below ``x``, in the dtype of ``x``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.ceil([1.2, -1.2])
    <Tensor f32[2] cpu> [ 2. -1.]
    """
    return _rounding(TABLE["ceil"], x)


@operation
def round(x: ArrayLike, /) -> Tensor:
    """The nearest whole number; halves go to the even one.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.round([0.5, 1.5, 2.4])
    <Tensor f32[3] cpu> [0. 2. 2.]
    """
    return _rounding(TABLE["round"], x)


@operation
def trunc(x: ArrayLike, /) -> Tensor:
    """Truncate: ``x`` without its fraction.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.trunc([1.8, -1.8])
    <Tensor f32[2] cpu> [ 1. -1.]
    """
    return _rounding(TABLE["trunc"], x)


@operation
def isnan(x: ArrayLike, /) -> Tensor:
    """Where ``x`` is NaN, as bool.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A bool tensor of the shape of ``x``.

    >>> hf.isnan([1.0, hf.inf, hf.nan])
    <Tensor bool[3] cpu> [False False  True]
    """
    return _classify(TABLE["isnan"], x, False)


@operation
def isinf(x: ArrayLike, /) -> Tensor:
    """Where ``x`` is infinite, as bool.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A bool tensor of the shape of ``x``.

    >>> hf.isinf([1.0, hf.inf, hf.nan])
    <Tensor bool[3] cpu> [False  True False]
    """
    return _classify(TABLE["isinf"], x, False)


@operation
def isfinite(x: ArrayLike, /) -> Tensor:
    """Where ``x`` is neither infinite nor NaN, as bool.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A bool tensor of the shape of ``x``.

    >>> hf.isfinite([1.0, hf.inf, hf.nan])
    <Tensor bool[3] cpu> [ True False False]
    """
    return _classify(TABLE["isfinite"], x, True)


@operation
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The magnitude of ``x1`` with the sign of ``x2``, in floats.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where both are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.copysign([1.0, 2.0], [-1.0, 1.0])
    <Tensor f32[2] cpu> [-1.  2.]
    """
    return _float_binary(TABLE["copysign"], x1, x2)


@entered
def signbit(x: ArrayLike, /) -> Tensor:
    """Where the sign of ``x`` is set, as bool: below zero, at -0.0, and for NaN with that sign.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A bool tensor of the shape of ``x``.

    Raises:
        DTypeError: for bool and unsigned integers.

    >>> hf.signbit([-0.0, 0.0])
    <Tensor bool[2] cpu> [ True False]
    """
    x = as_tensor(x, "signbit")
    if dtypes.is_signed(x.dtype):
        return less(x, 0)
    if not dtypes.is_float(x.dtype):
        raise DTypeError("signbit", f"{x.type} has no sign.")
    return less(copysign(1, x), 0)


@entered
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The float next to ``x1`` in the direction of ``x2``; no gradient flows through it.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where both are integers or bools.

    Raises:
        DTypeError: for complex numbers.
        ShapeError: if the shapes do not broadcast.

    >>> hf.nextafter(hf.asarray(1.0, dtype=hf.float64), 2.0).item()
    1.0000000000000002
    """
    if any(
        dtypes.is_narrow_float(x.dtype) for x in (x1, x2) if isinstance(x, (Tensor, Variable, np.ndarray, np.generic))
    ):
        x, y = strong(x1, "nextafter"), strong(x2, "nextafter")
        dtype = result_dtype("nextafter", (x, y))
        if dtypes.is_narrow_float(dtype):
            return _next_of_narrow(*aligned("nextafter", dtype, x, y))
    return _float_binary(TABLE["nextafter"], x1, x2)


@operation
def _next_of_narrow(x: Tensor, y: Tensor) -> Tensor:
    """Of floats that kernels hold in float32, which has room for all steps between two of them."""
    info = ml_dtypes.finfo(x.dtype)
    x, y = (cast(stop_gradient(part), dtypes.float32) for part in broadcast_all("nextafter", [x, y]))
    size = abs(x)
    power = apply(TABLE["exponent"], size) - 1
    lowest = int(info.minexp)
    away = equal(greater(y, x), greater(x, 0))
    # Towards 0 a power of two is followed by floats that lie half as far apart.
    one = filled(1, x.dtype, x.shape, "nextafter")
    is_power = equal(size, apply(TABLE["ldexp"], one, power))
    power = where(logical_and(is_power, logical_not(away)), power - 1, power)
    step = apply(TABLE["ldexp"], one, maximum(power, lowest) - int(info.nmant))
    least = float(info.smallest_subnormal)
    result = where(isinf(x), float(info.max), where(equal(x, 0), least, where(away, size + step, size - step)))
    result = copysign(result, where(equal(x, 0), y, x))
    result = where(equal(x, y), y, result)
    return cast(where(logical_or(isnan(x), isnan(y)), x + y, result), info.dtype)


# ---- complex numbers and their parts


def _number(x: ArrayLike, stage: str) -> Tensor:
    tensor = as_tensor(x, stage)
    if dtypes.is_bool(tensor.dtype):
        raise DTypeError(stage, f"{tensor.type} is bool, which is no number; convert it with hf.astype.")
    return tensor


@entered
def conj(x: ArrayLike, /) -> Tensor:
    """The complex conjugate: ``x`` itself where it is real.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.conj([1 + 2j, 3j])
    <Tensor c64[2] cpu> [1.-2.j 0.-3.j]
    """
    x = _number(x, "conj")
    return apply(TABLE["conj"], x) if dtypes.is_complex(x.dtype) else exclusive(x)


@entered
def real(x: ArrayLike, /) -> Tensor:
    """The real part: ``x`` itself where it is real.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``; float32 for complex64, float64 for complex128, else the dtype of ``x``.

    >>> hf.real([1 + 2j, 3j])
    <Tensor f32[2] cpu> [1. 0.]
    """
    x = _number(x, "real")
    return apply(TABLE["real"], x) if dtypes.is_complex(x.dtype) else exclusive(x)


@entered
def imag(x: ArrayLike, /) -> Tensor:
    """The imaginary part: zeros where ``x`` is real.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``; float32 for complex64, float64 for complex128, else the dtype of ``x``.

    >>> hf.imag([1 + 2j, 3j])
    <Tensor f32[2] cpu> [2. 3.]
    """
    x = _number(x, "imag")
    return apply(TABLE["imag"], x) if dtypes.is_complex(x.dtype) else filled(0, x.dtype, x.shape, "imag")


@operation
def complex(real: ArrayLike, imag: ArrayLike, /) -> Tensor:
    """The complex numbers of real and imaginary parts, which keep signed zeros and infinities as they are.

    Args:
        real: the real parts: a tensor, array, nested list or number, of a real dtype.
        imag: the imaginary parts; the shapes broadcast.

    Returns:
        A complex128 tensor where a part is float64, else a complex64 one.

    Raises:
        DTypeError: where a part is complex already.
        ShapeError: if the shapes do not broadcast.

    >>> hf.complex([1.0, 2.0], -0.0)
    <Tensor c64[2] cpu> [1.-0.j 2.-0.j]
    """
    real, imag = strong(real, "complex"), strong(imag, "complex")
    dtype = result_dtype("complex", (real, imag))
    part = dtypes.part_dtype(dtypes.complex_dtype(dtype))
    return apply(TABLE["complex"], *aligned("complex", dtype if dtypes.is_complex(dtype) else part, real, imag))


@operation
def angle(z: ArrayLike, /) -> Tensor:
    """The angle of a complex number in radians, from -pi to pi; 0 or pi of a real one.

    Args:
        z: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``z``; float32 for complex64 and integers, float64 for complex128.

    >>> hf.angle([1j, -1.0, 1 + 1j])
    <Tensor f32[3] cpu> [1.5707964 3.1415927 0.7853982]
    """
    z = float_operand(_number(z, "angle"), "angle")
    if dtypes.is_complex(z.dtype):
        return apply(TABLE["atan2"], apply(TABLE["imag"], z), apply(TABLE["real"], z))
    return atan2(filled(0, z.dtype, z.shape, "angle"), z)


# ---- extremes


@operation
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The larger operand; NaN if either is.  The gradient of a tie goes to ``x1``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.maximum([1, 5], [3, 2])
    <Tensor i64[2] cpu> [3 5]
    """
    return _binary(TABLE["maximum"], x1, x2)


@operation
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The smaller operand; NaN if either is.  The gradient of a tie goes to ``x1``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.minimum([1, 5], [3, 2])
    <Tensor i64[2] cpu> [1 2]
    """
    return _binary(TABLE["minimum"], x1, x2)


@operation
def clip(x: ArrayLike, /, min: Any = None, max: Any = None) -> Tensor:
    """Clamp: ``x`` limited to [``min``, ``max``]; a bound of None is no bound.  The result has the dtype of ``x``.

    Args:
        x: a tensor, array, nested list or number.
        min: the least value, a scalar or what broadcasts; None for no bound.
        max: the largest value, likewise.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        DTypeError: when a bound is a float and ``x`` is not.

    >>> hf.clip([1, 5, 9], 2, 6)
    <Tensor i64[3] cpu> [2 5 6]
    """
    x = as_tensor(x, "clip")
    for bound, name in ((min, "min"), (max, "max")):
        if (
            bound is not None
            and not dtypes.is_float(x.dtype)
            and dtypes.is_float(result_dtype("clip", (strong(bound, "clip"),)))
        ):
            raise DTypeError("clip", f"{name} is a float and x is {x.type}; convert x with hf.astype first.")
    if min is not None:
        x = cast(maximum(x, min), x.dtype)
    if max is not None:
        x = cast(minimum(x, max), x.dtype)
    return exclusive(x) if min is None and max is None else x


# ---- comparisons (bool results)


def equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise equality: ``x1 == x2``; NaN equals nothing.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.equal([1, 2, 3], 2)
    <Tensor bool[3] cpu> [False  True False]
    """
    return _operator(TABLE["equal"], _promoted, x1, x2)


def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise inequality: ``x1 != x2``; NaN differs from everything.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.not_equal([1, 2, 3], 2)
    <Tensor bool[3] cpu> [ True False  True]
    """
    return _operator(TABLE["not_equal"], _promoted, x1, x2)


def less(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise comparison: ``x1 < x2``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.less([1, 2, 3], 2)
    <Tensor bool[3] cpu> [ True False False]
    """
    return _operator(TABLE["less"], _promoted, x1, x2)


def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise comparison: ``x1 <= x2``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.less_equal([1, 2, 3], 2)
    <Tensor bool[3] cpu> [ True  True False]
    """
    return _operator(TABLE["less_equal"], _promoted, x1, x2)


def greater(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise comparison: ``x1 > x2``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.greater([1, 2, 3], 2)
    <Tensor bool[3] cpu> [False False  True]
    """
    return _operator(TABLE["greater"], _promoted, x1, x2)


def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Elementwise comparison: ``x1 >= x2``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.greater_equal([1, 2, 3], 2)
    <Tensor bool[3] cpu> [False  True  True]
    """
    return _operator(TABLE["greater_equal"], _promoted, x1, x2)


@operation
def isclose(x1: ArrayLike, x2: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where ``|x1 - x2| <= atol + rtol * |x2|``; equal infinities are close, NaN only with ``equal_nan``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: what it is compared with, and what ``rtol`` is a part of.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.isclose([1.0, 2.0], [1.0 + 1e-7, 2.1])
    <Tensor bool[2] cpu> [ True False]
    """
    x1, x2 = float_operand(x1, "isclose"), float_operand(x2, "isclose")
    near = logical_and(less_equal(abs(subtract(x1, x2)), add(atol, multiply(rtol, abs(x2)))), isfinite(x2))
    close = logical_or(near, equal(x1, x2))
    return logical_or(close, logical_and(isnan(x1), isnan(x2))) if equal_nan else close


# ---- logic and bits


@operation
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Both are true; anything but zero is true.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.logical_and([True, False], [True, True])
    <Tensor bool[2] cpu> [ True False]
    """
    return _logical(TABLE["logical_and"], x1, x2)


@operation
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Either is true; anything but zero is true.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.logical_or([True, False], [False, False])
    <Tensor bool[2] cpu> [ True False]
    """
    return _logical(TABLE["logical_or"], x1, x2)


@operation
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Exactly one is true; anything but zero is true.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A bool tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.logical_xor([True, False], [True, True])
    <Tensor bool[2] cpu> [False  True]
    """
    return _logical(TABLE["logical_xor"], x1, x2)


@operation
def logical_not(x: ArrayLike, /) -> Tensor:
    """Where ``x`` is zero.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A bool tensor of the shape of ``x``.

    >>> hf.logical_not([True, False])
    <Tensor bool[2] cpu> [False  True]
    """
    return apply(TABLE["logical_not"], as_tensor(x, "logical_not", dtypes.bool_))


def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Bitwise and: ``x1 & x2`` of integers or bools.

    Args:
        x1: integers or bools.
        x2: integers or bools; the shapes broadcast.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.bitwise_and([12, 10], 6)
    <Tensor i64[2] cpu> [4 2]
    """
    return _operator(TABLE["bitwise_and"], _promoted, x1, x2)


def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Bitwise or: ``x1 | x2`` of integers or bools.

    Args:
        x1: integers or bools.
        x2: integers or bools; the shapes broadcast.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.bitwise_or([12, 10], 6)
    <Tensor i64[2] cpu> [14 14]
    """
    return _operator(TABLE["bitwise_or"], _promoted, x1, x2)


def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Bitwise exclusive or: ``x1 ^ x2`` of integers or bools.

    Args:
        x1: integers or bools.
        x2: integers or bools; the shapes broadcast.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.bitwise_xor([12, 10], 6)
    <Tensor i64[2] cpu> [10 12]
    """
    return _operator(TABLE["bitwise_xor"], _promoted, x1, x2)


@entered
def bitwise_invert(x: ArrayLike, /) -> Tensor:
    """Bitwise not: ``~x`` of integers or bools.

    Args:
        x: a tensor of integers or bools.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.bitwise_invert([0, 5])
    <Tensor i64[2] cpu> [-1 -6]
    """
    return _unary(TABLE["bitwise_invert"], x)


def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Bitwise left shift: ``x1 << x2`` of integers.

    Args:
        x1: integers.
        x2: how many bits: integers, not negative; the shapes broadcast.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.bitwise_left_shift([1, 3], 2)
    <Tensor i64[2] cpu> [ 4 12]
    """
    return _operator(TABLE["bitwise_left_shift"], _promoted, x1, x2)


def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Bitwise right shift: ``x1 >> x2`` of integers; the sign is kept.

    Args:
        x1: integers.
        x2: how many bits: integers, not negative; the shapes broadcast.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.bitwise_right_shift([4, -8], 2)
    <Tensor i64[2] cpu> [ 1 -2]
    """
    return _operator(TABLE["bitwise_right_shift"], _promoted, x1, x2)


# ---- selection, conversion


@operation
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Select elements: ``x1`` where ``condition`` is true, ``x2`` elsewhere; all three broadcast.

    Args:
        condition: bools.
        x1: what is taken where they are true.
        x2: what is taken elsewhere.

    Returns:
        A tensor of the common shape, in the promoted dtype of ``x1`` and ``x2``.

    Raises:
        DTypeError: when ``condition`` is not bool.
        ShapeError: if the shapes do not broadcast.

    >>> hf.where([True, False], [1, 2], 0)
    <Tensor i64[2] cpu> [1 0]
    """
    condition = as_tensor(condition, "where")
    if not dtypes.is_bool(condition.dtype):
        raise DTypeError("where", f"the condition is {condition.type}; it must be bool. Compare it, as in x != 0.")
    if type(x1) is StringTensor or type(x2) is StringTensor:
        return apply(TABLE["where"], *broadcast_all("where", (condition, *common_dtype("where", (x1, x2)))))
    x1, x2 = strong(x1, "where"), strong(x2, "where")
    dtype = result_dtype("where", (x1, x2))
    values = (weak_cast(x1, dtype, "where"), weak_cast(x2, dtype, "where"))
    return apply(TABLE["where"], *broadcast_all("where", (condition, *values)))


@operation
def astype(x: ArrayLike, dtype: DTypeLike, /, copy: bool = True, *, device: str | None = None) -> Tensor:
    """Cast: ``x`` with another dtype, on ``device`` where that is given.

    Floats become integers by truncation (NaN becomes 0, what is out of range the nearest limit); integers wrap around;
    everything but zero becomes True.  ``copy`` changes nothing: no tensor sees what is assigned to another one.

    Args:
        x: a tensor, array, nested list or number.
        dtype: the dtype of the result.
        copy: has no effect: tensors share nothing that can be seen.
        device: where the result lies.

    Returns:
        A tensor of the shape of ``x`` with ``dtype``.

    Raises:
        DTypeError: for complex numbers that are to become real ones.

    >>> hf.astype([1.7, -1.7], hf.int32)
    <Tensor i32[2] cpu> [ 1 -1]
    """
    wanted = to_dtype(dtype, "astype")
    # Python floats go to the wanted float dtype at once; ints wrap around, as those in tensors do.
    out = as_tensor(x, "astype", wanted) if dtypes.is_inexact(wanted) else cast(as_tensor(x, "astype"), wanted)
    if device is not None:
        return out.to_device(device)
    return exclusive(out) if isinstance(x, (Tensor, Variable)) else out


@operation
def nan_to_num(x: ArrayLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities: ``x`` with NaN and the infinities replaced; by default by 0 and the dtype's extreme
    finite values.

    Args:
        x: a tensor, array, nested list or number.
        nan: what stands for NaN.
        posinf: what stands for inf; the largest finite number unless given.
        neginf: what stands for -inf; the least finite number unless given.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.nan_to_num([hf.nan, 1.0], nan=-1.0)
    <Tensor f32[2] cpu> [-1.  1.]
    """
    x = as_tensor(x, "nan_to_num")
    if dtypes.is_complex(x.dtype):
        return complex(*[nan_to_num(part, nan, posinf, neginf) for part in (real(x), imag(x))])
    if not dtypes.is_float(dtypes.wide_dtype(x.dtype)):
        return exclusive(x)
    largest = _largest(x.dtype)
    x = where(isnan(x), nan, x)
    x = where(equal(x, math.inf), largest if posinf is None else posinf, x)
    return where(equal(x, -math.inf), -largest if neginf is None else neginf, x)


def _largest(dtype: np.dtype[Any]) -> float:
    if dtype == dtypes.bfloat16:
        return float.fromhex("0x1.fep127")
    return builtins.float(np.finfo(dtype).max)


@entered
def stop_gradient(x: ArrayLike) -> Tensor:
    """Stop the gradient: ``x``, through which no gradient flows.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.grad(lambda x: x * hf.stop_gradient(x))(3.0)
    <Tensor f32[] cpu> 3.0
    """
    return _unary(TABLE["stop_gradient"], x)
