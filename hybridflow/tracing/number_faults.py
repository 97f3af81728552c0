"""Where Python's numbers raise an error: what a program checks of those that a tensor decides about.

A program that finds such a place ends with the error that Python's own function raises of the values that it has found;
where that gives what 64 bits cannot hold (an int of more, a complex number) with one that says so.
"""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from hybridflow.array import elementwise
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast
from hybridflow.errors import ArgumentError, IntegerOverflowError, short_location, user_location
from hybridflow.tracing.order import require

Python = Callable[..., Any]
_ENDS = 2.0**63  # floats from here on are no int64


_REMEDY = (
    "which no number of a compiled function holds: ints that a tensor decides have 64 bits. Use floats, or keep them "
    "below 2**63."
)


def _is_huge(python: Python, a: Any, b: Any) -> bool:
    """Whether an int is not worth to be calculated for a message."""
    if type(a) is not int or type(b) is not int or b < 0:
        return False
    return b * (a.bit_length() if python is operator.pow else 1) > 4096


catchers: list[Callable[[type[BaseException]], bool]] = []
"""Say whether an exception may be caught where the code is; ``flow.guarding`` adds what knows that."""


guards: list[Callable[[type[BaseException]], None]] = []
"""Raise TraceError if an exception may be caught where the code is; ``flow.guarding`` adds what knows that."""


def fail_unless(ok: Tensor, python: Python, kinds: tuple[type[Exception], ...], *operands: Tensor) -> None:
    """Have the program end where ``ok`` is False, with the error of one of these ``kinds`` that ``python`` raises."""
    for check, kind in itertools.product(guards, (*kinds, ArgumentError)):
        check(kind)
    name, where = python.__name__, short_location(user_location(2))

    def fail(*arrays: np.ndarray) -> NoReturn:
        values = [array.item() for array in arrays]
        said = ", ".join(map(repr, values))
        if python in (operator.pow, operator.lshift) and _is_huge(python, *values):
            raise IntegerOverflowError(name, f"of {said} is far too large, {_REMEDY}")
        try:
            found = python(*values)
        except kinds as error:
            if where:
                error.add_note(f"raised by compiled code  ({where})")
            raise
        if type(found) is int:
            raise IntegerOverflowError(name, f"of {said} is {found}, {_REMEDY}")
        raise ArgumentError(name, f"of {said} is {found!r}, which no number of a compiled function holds.")

    require(ok, fail, operands, f"{kinds[0].__name__} in {name}.")


def check_divisor(python: Python, a: Tensor, b: Tensor) -> None:
    """Nothing is divided by zero."""
    fail_unless(elementwise.not_equal(b, 0), python, (ZeroDivisionError,), a, b)


def check_shift(python: Python, a: Tensor, b: Tensor) -> None:
    """No shift is by a negative number."""
    fail_unless(elementwise.greater_equal(b, 0), python, (ValueError,), a, b)


def check_power(a: Tensor, b: Tensor, made: Tensor) -> None:
    """A power of finite floats is one."""
    finite = elementwise.isfinite
    is_right = elementwise.logical_or(
        finite(made), elementwise.logical_not(elementwise.logical_and(finite(a), finite(b)))
    )
    fail_unless(is_right, operator.pow, (ZeroDivisionError, OverflowError), a, b)


def check_whole(python: Python, x: Tensor, made: Tensor) -> None:
    """An int of 64 bits is ``made`` of the float ``x``."""
    fits = elementwise.logical_and(elementwise.greater_equal(made, -_ENDS), elementwise.less(made, _ENDS))
    fail_unless(fits, python, (ValueError, OverflowError), x)


def check_root(x: Tensor) -> None:
    """No square root is of a negative number."""
    fail_unless(elementwise.logical_not(elementwise.less(x, 0)), math.sqrt, (ValueError,), x)


def check_fits(name: str, a: Tensor, b: Tensor | None, made: Tensor, step: Any = None) -> None:
    """What Python's operator ``name`` makes of ints is what 64 bits have made of them; ``step`` is the second one as
    the code has it.

    Not where an error may be caught: which one it is would decide how the code goes on.
    """
    find = _FITS.get(name)
    if find is None or any(is_caught(IntegerOverflowError) for is_caught in catchers):
        return
    operands = (a,) if b is None else (a, b)
    if name in ("add", "sub") and type(step) is int:  # most are steps of counters
        rises = (step >= 0) == (name == "add")
        ok = (elementwise.greater_equal if rises else elementwise.less_equal)(made, a)
    else:
        ok = find(*operands, made)
    fail_unless(ok, PYTHON[name], (OverflowError,), *operands)


def _is_sum(a: Tensor, b: Tensor, made: Tensor) -> Tensor:
    """A sum has left the range where it has neither the one sign nor the other."""
    return elementwise.greater_equal(
        elementwise.bitwise_and(elementwise.bitwise_xor(a, made), elementwise.bitwise_xor(b, made)), 0
    )


def _is_difference(a: Tensor, b: Tensor, made: Tensor) -> Tensor:
    return elementwise.greater_equal(
        elementwise.bitwise_and(elementwise.bitwise_xor(a, b), elementwise.bitwise_xor(a, made)), 0
    )


def _is_near(exact: Tensor, made: Tensor) -> Tensor:
    """Whether ints are what floats say but for rounding: those that wrapped are 2**64 off, or a multiple."""
    return elementwise.less(elementwise.abs(elementwise.subtract(exact, cast(made, dtypes.float64))), 2.0**62)


def _is_product(a: Tensor, b: Tensor, made: Tensor) -> Tensor:
    return _is_near(elementwise.multiply(cast(a, dtypes.float64), cast(b, dtypes.float64)), made)


def _is_power(a: Tensor, b: Tensor, made: Tensor) -> Tensor:
    return _is_near(elementwise.pow(cast(a, dtypes.float64), cast(b, dtypes.float64)), made)


def _is_shifted(a: Tensor, b: Tensor, made: Tensor) -> Tensor:
    return elementwise.equal(elementwise.bitwise_right_shift(made, b), a)


def _has_negative(a: Tensor, made: Tensor) -> Tensor:
    return elementwise.not_equal(a, _LEAST)


def _is_quotient(a: Tensor, b: Tensor, made: Tensor) -> Tensor:
    return elementwise.logical_or(elementwise.not_equal(a, _LEAST), elementwise.not_equal(b, -1))


_LEAST = -(2**63)
_FITS: dict[str, Callable[..., Tensor]] = {
    "add": _is_sum,
    "sub": _is_difference,
    "mul": _is_product,
    "pow": _is_power,
    "lshift": _is_shifted,
    "floordiv": _is_quotient,
    "neg": _has_negative,
    "abs": _has_negative,
}

PYTHON: dict[str, Python] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": operator.abs,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "trunc": int,
    "round": builtins.round,
    "floor": math.floor,
    "ceil": math.ceil,
}


def check_operands(name: str, a: Tensor, b: Tensor) -> None:
    """Python's operator ``name`` raises no error of these operands."""
    if name in ("truediv", "floordiv", "mod"):
        check_divisor(PYTHON[name], a, b)
    elif name in ("lshift", "rshift"):
        check_shift(PYTHON[name], a, b)
