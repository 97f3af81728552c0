"""Assertions about tensors, in compiled functions as outside of them: they hold whenever the code is come to.

What is wrong is an ``InvalidArgumentError`` that says where, with the values; about ranks, shapes and dtypes, which are
known while a function is traced, a ``ShapeError`` or ``DTypeError`` right then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

import numpy as np

from hybridflow.array import elementwise
from hybridflow.autodiff.custom import custom_gradient
from hybridflow.compiler.ir.dtypes import is_float, is_narrow_float
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.context import current
from hybridflow.core.promotion import to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.eager import nan_checks
from hybridflow.eager.operands import as_tensor, common_dtype
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import (
    ArgumentError,
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    entered,
    short_location,
    user_location,
)

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal", "assert_less",
    "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative", "assert_non_positive",
    "assert_none_equal", "assert_positive", "assert_rank", "assert_rank_at_least", "assert_rank_in", "assert_scalar",
    "assert_shapes", "assert_type", "check_numerics", "disable_check_numerics", "enable_check_numerics",
]  # fmt: skip

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


# ---- what is known when the program runs


def _require(stage: str, ok: Tensor, said: Callable[..., str], values: Sequence[Any], message: str | None) -> None:
    """Raise InvalidArgumentError with ``said(*values)`` where some element of ``ok`` is False."""
    where = user_location(2)

    def error(message: object, *values: object) -> InvalidArgumentError:
        return InvalidArgumentError(stage, _before(message) + said(*values), where)

    check_all(ok, InvalidArgumentError, error, [message, *values], f"{_before(message)}[{stage}] does not hold.")


def _before(message: object) -> str:
    """A message as what is said first; in traced code it may be known later."""
    return "" if message is None else f"{message!s}. "


def _text(array: np.ndarray, summarize: int | None = None) -> str:
    array = array.astype(np.float32) if is_narrow_float(array.dtype) else array
    if array.dtype.hasobject and not array.ndim:  # NumPy takes it for another object
        return repr(array.item())
    return np.array2string(array, threshold=0, edgeitems=3 if summarize is None else max(summarize, 1))


def _compare(
    stage: str,
    sign: str,
    x: Any,
    y: Any,
    holds: Callable[..., Tensor],
    message: str | None,
    summarize: int | None,
) -> None:
    x, y = common_dtype(stage, [x, y])
    ok = holds(x, y)

    def description(ok: Tensor, x: Tensor, y: Tensor) -> str:
        first_values, second_values = np.asarray(x), np.asarray(y)
        flags, a, b = np.broadcast_arrays(ok.numpy(), first_values, second_values)
        first = tuple(map(int, np.argwhere(~flags)[0]))
        place = f" at {list(first)}: {a[first]} and {b[first]}" if flags.ndim else ""
        return (
            f"x {sign} y does not hold for {np.count_nonzero(~flags)} of {flags.size} elements{place}. "
            f"x = {_text(first_values, summarize)}, y = {_text(second_values, summarize)}"
        )

    _require(stage, ok, description, [ok, x, y], message)


_DOC = """Assert that ``{relation}`` for all elements, each time the code runs.

    Args:
{operands}
        message: the beginning of the error message.
        summarize: how many elements at each end of an axis the error shows.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        InvalidArgumentError: where that does not hold."""
_ONE_OPERAND = "        x: a tensor, or what becomes one."
_TWO_OPERANDS = "        x: a tensor, or what becomes one.\n        y: the same; both are broadcast."


def _comparison(name: str, sign: str, holds: Callable[..., Tensor], example: str) -> Callable[..., None]:
    stage = f"assert_{name}"

    def call(
        x: object, y: object, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        _compare(name or stage, sign, x, y, holds, message, summarize)

    doc = _DOC.format(relation=f"x {sign} y", operands=_TWO_OPERANDS)
    return _named(call, stage, doc, example)


def _sign(name: str, sign: str, holds: Callable[..., Tensor], example: str) -> Callable[..., None]:
    stage = f"assert_{name}"

    def call(x: object, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        _compare(name or stage, sign, x, 0, holds, message, summarize)

    doc = _DOC.format(relation=f"x {sign} 0", operands=_ONE_OPERAND)
    return _named(call, stage, doc, example)


def _named(call: Callable[..., None], name: str, doc: str, example: str) -> Callable[..., None]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{doc}\n\n    >>> hf.debugging.{name}({example})\n    "
    return entered(call)


assert_equal = _comparison("equal", "==", elementwise.equal, "hf.asarray([1, 2]), [1, 2]")
assert_none_equal = _comparison("none_equal", "!=", elementwise.not_equal, "hf.asarray([1, 2]), 0")
assert_less = _comparison("less", "<", elementwise.less, "hf.asarray([1, 2]), 3")
assert_less_equal = _comparison("less_equal", "<=", elementwise.less_equal, "hf.asarray([1, 2]), 2")
assert_greater = _comparison("greater", ">", elementwise.greater, "hf.asarray([1, 2]), 0")
assert_greater_equal = _comparison("greater_equal", ">=", elementwise.greater_equal, "hf.asarray([1, 2]), 1")
assert_positive = _sign("positive", ">", elementwise.greater, "hf.asarray([1, 2])")
assert_non_negative = _sign("non_negative", ">=", elementwise.greater_equal, "hf.asarray([0, 2])")
assert_negative = _sign("negative", "<", elementwise.less, "hf.asarray([-1, -2])")
assert_non_positive = _sign("non_positive", "<=", elementwise.less_equal, "hf.asarray([0, -2])")


@entered
def assert_near(
    x: object,
    y: object,
    rtol: object = None,
    atol: object = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Assert that ``abs(x - y) <= atol + rtol * abs(y)`` for all elements, each time the code runs.

    Args:
        x: a float tensor or array-like value.
        y: the same; both are broadcast.
        rtol: the relative tolerance; None for 10 epsilons of the dtype.
        atol: the absolute tolerance; None for 10 epsilons of the dtype.
        message: the beginning of the error message.
        summarize: how many elements at each end of an axis the error shows.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        InvalidArgumentError: where an element is not near.
        DTypeError: for what is not a float.

    >>> hf.debugging.assert_near(hf.asarray([1.0, 2.0]), [1.0, 2.0000002])
    """
    stage = name or "assert_near"
    x, y = common_dtype(stage, [x, y])
    if not is_float(x.dtype):
        raise DTypeError(stage, f"x and y are {x.dtype}. Expected floats: compare others with assert_equal.")
    epsilon = 10 * float(np.finfo(np.float32 if is_narrow_float(x.dtype) else x.dtype).eps)
    rtol, atol = (epsilon if value is None else value for value in (rtol, atol))

    def holds(x: Tensor, y: Tensor) -> Tensor:
        return elementwise.less_equal(abs(x - y), atol + rtol * abs(y))

    _compare(stage, "is near", x, y, holds, message, summarize)


@entered
def Assert(condition: object, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> None:
    """Assert that all of ``condition`` is True, each time the code runs.

    Args:
        condition: a bool tensor, or what becomes one.
        data: what the error shows.
        summarize: how many elements at each end of an axis the error shows.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        InvalidArgumentError: where ``condition`` does not hold.

    >>> hf.debugging.Assert(hf.asarray(2.0) > 1, ["too small"])
    """

    def said(*values: object) -> str:
        texts = [_text(np.asarray(value), summarize) if isinstance(value, Tensor) else str(value) for value in values]
        return f"the condition does not hold: {', '.join(texts)}"

    stage = name or "Assert"
    _require(stage, as_tensor(condition, stage), said, list(data), None)


# ---- NaN and infinity


@entered
def check_numerics(tensor: object, message: str, name: str | None = None) -> Tensor:
    """Assert that all elements of a tensor are finite, and so are those of its gradient, if one is asked for.

    Args:
        tensor: a float tensor or array-like value.
        message: what the error says.
        name: the name of the assertion in the error.

    Returns:
        ``tensor``, of the same shape and dtype.

    Raises:
        InvalidArgumentError: where some are not; it counts NaNs and infinities.
        DTypeError: for what is not a float.

    >>> hf.debugging.check_numerics(hf.asarray([1.0, 2.0]), "the loss")
    <Tensor f32[2] cpu> [1. 2.]
    """
    stage, where = name or "check_numerics", user_location(1)
    x = as_tensor(tensor, stage)
    if not is_float(x.dtype):
        raise DTypeError(stage, f"the tensor is {x.type}. Expected floats.")

    def derivative(g: Tensor) -> Tensor:
        _check_finite(stage, g, f"the gradient of {message!s}, which is checked at {short_location(where)},")
        return g

    _check_finite(stage, x, message)
    tracked = current.trace is not None or any(tape.tracks(x) for tape in current.tapes)
    result: Tensor = custom_gradient(lambda x: (x, derivative))(x) if tracked else x
    return result


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Check the result of every op for NaNs and infinities from now on, in the whole process.

    That goes for eager ops, compiled functions, loops and derivatives. An op that makes a NaN or an infinity raises
    InvalidArgumentError with its name, your line, and how many there are.

    Ops that only move elements are not asked, nor is one that hands on negative infinities, which scores are masked
    with. Functions are compiled once more, with the checks, and much slower.

    Args:
        stack_height_limit: accepted for compatibility; it has no effect.
        path_length_limit: accepted for compatibility; it has no effect.

    Returns:
        None.

    >>> hf.debugging.enable_check_numerics()
    >>> hf.log(hf.asarray([1.0, 0.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hybridflow.errors.InvalidArgumentError: [log] the result has 0 NaN and 1 infinite of 2 elements (f32[2]). ...
    >>> hf.debugging.disable_check_numerics()
    """
    nan_checks.switch(True)


def disable_check_numerics() -> None:
    """End what ``hf.debugging.enable_check_numerics`` began; what was compiled before it is used again.

    Returns:
        None.

    >>> hf.debugging.disable_check_numerics()
    """
    nan_checks.switch(False)


@entered
def assert_all_finite(x: object, message: str = "the tensor", name: str | None = None) -> None:
    """Assert that no element is a NaN or an infinity, each time the code runs.

    Args:
        x: a float tensor or array-like value.
        message: what the error calls the tensor.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        InvalidArgumentError: where some are; it counts NaNs and infinities.

    >>> hf.debugging.assert_all_finite(hf.asarray([1.0, 2.0]))
    """
    stage = name or "assert_all_finite"
    _check_finite(stage, as_tensor(x, stage), message)


def _check_finite(stage: str, x: Tensor, message: str) -> None:
    node = getattr(x, "_node", None)
    origin = f" It was made by {node.op.name} at {short_location(node.where)}." if node and node.where else ""

    def said(x: Tensor) -> str:
        return f"{message} has {nan_checks.statistics(x.numpy(), x.type)}{origin}"

    _require(stage, elementwise.isfinite(x), said, [x], None)


# ---- what is known while tracing


@entered
def assert_rank(x: object, rank: int, message: str | None = None, name: str | None = None) -> None:
    """Assert that a tensor has a number of axes.

    Args:
        x: a tensor or array-like value.
        rank: the number of axes.
        message: the beginning of the error message.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        ShapeError: where it has another one.

    >>> hf.debugging.assert_rank(hf.ones((2, 3)), 2)
    """
    _check_rank(name or "assert_rank", x, lambda n: n == rank, str(rank), message)


@entered
def assert_rank_at_least(x: object, rank: int, message: str | None = None, name: str | None = None) -> None:
    """Assert that a tensor has a number of axes, or more.

    Args:
        x: a tensor or array-like value.
        rank: the smallest number of axes.
        message: the beginning of the error message.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        ShapeError: where it has less.

    >>> hf.debugging.assert_rank_at_least(hf.ones((2, 3)), 1)
    """
    _check_rank(name or "assert_rank_at_least", x, lambda n: n >= rank, f"{rank} or more", message)


@entered
def assert_rank_in(x: object, ranks: Iterable[int], message: str | None = None, name: str | None = None) -> None:
    """Assert that a tensor has one of several numbers of axes.

    Args:
        x: a tensor or array-like value.
        ranks: the numbers of axes.
        message: the beginning of the error message.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        ShapeError: where it has none of them.

    >>> hf.debugging.assert_rank_in(hf.ones((2, 3)), (1, 2))
    """
    allowed = tuple(ranks)
    _check_rank(name or "assert_rank_in", x, allowed.__contains__, " or ".join(map(str, allowed)), message)


@entered
def assert_scalar(x: object, message: str | None = None, name: str | None = None) -> None:
    """Assert that a tensor has no axes.

    Args:
        x: a tensor or array-like value.
        message: the beginning of the error message.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        ShapeError: where it has some.

    >>> hf.debugging.assert_scalar(hf.asarray(1.0))
    """
    _check_rank(name or "assert_scalar", x, lambda n: n == 0, "0", message)


def _check_rank(stage: str, x: object, fits: Callable[[int], bool], wanted: str, message: str | None) -> None:
    tensor = as_tensor(x, stage)
    if not fits(len(tensor.shape)):
        before = _before(message)
        raise ShapeError(stage, f"{before}{tensor.type} has {len(tensor.shape)} axes. Expected {wanted}.")


@entered
def assert_type(x: object, dtype: DTypeLike, message: str | None = None, name: str | None = None) -> None:
    """Assert that a tensor has a dtype.

    Args:
        x: a tensor or array-like value.
        dtype: the dtype.
        message: the beginning of the error message.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        DTypeError: where it has another one.

    >>> hf.debugging.assert_type(hf.asarray(1.0), hf.float32)
    """
    stage = name or "assert_type"
    tensor, wanted = as_tensor(x, stage), to_dtype(dtype, stage)
    if tensor.dtype != wanted:
        raise DTypeError(stage, f"{_before(message)}{tensor.type} is no {wanted}.")


@entered
def assert_shapes(shapes: Iterable[Any], message: str | None = None, name: str | None = None) -> None:
    """Assert that tensors have shapes, whose extents may have names.

    Args:
        shapes: pairs of a tensor and a shape: ints, None for any extent, or names. Extents of one name are equal.
        message: the beginning of the error message.
        name: the name of the assertion in the error.

    Returns:
        None.

    Raises:
        ShapeError: where one has another shape.

    >>> hf.debugging.assert_shapes([(hf.ones((2, 3)), ("N", 3)), (hf.ones(2), ("N",))])
    """
    stage, before = name or "assert_shapes", _before(message)
    known: dict[str, Any] = {}
    for x, shape in shapes.items() if isinstance(shapes, Mapping) else shapes:
        tensor = as_tensor(x, stage)
        wanted = (shape,) if isinstance(shape, (int, str)) else tuple(shape)
        if len(wanted) != len(tensor.shape):
            raise ShapeError(stage, f"{before}{tensor.type} has {len(tensor.shape)} axes. Expected {wanted}.")
        for axis, (extent, one) in enumerate(zip(tensor.shape, wanted)):
            if not isinstance(one, (int, str, type(None))):
                raise ArgumentError(stage, f"{one!r} is no extent. Expected an int, a name or None.")
            expected = known.setdefault(one, extent) if isinstance(one, str) else one
            if expected is not None and expected != extent:
                called = f"{one} = {expected}" if isinstance(one, str) else str(one)
                raise ShapeError(stage, f"{before}axis {axis} of {tensor.type} has {extent} elements, not {called}.")
