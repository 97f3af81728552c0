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
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, short_location, user_location
from hybridflow.tracing.effect_token import require

Python = Callable[..., Any]
_ENDS = 2.0**63  # floats from here on are no int64


handlers: list[Callable[..., bool]] = []
"""Each is asked, as ``fail_unless`` is, whether the code that is traced catches the error itself: it goes on then where
there is none."""

guards: list[Callable[[type[BaseException]], None]] = []
"""Raise TraceError if an exception may be caught where the code is; ``flow.guarding`` adds what knows that."""


def fail_unless(ok: Tensor, python: Python, kinds: tuple[type[Exception], ...], *operands: Tensor) -> None:
    """Have the program end where ``ok`` is False, with the error of one of these ``kinds`` that ``python`` raises."""
    if any(handler(ok, python, kinds, *operands) for handler in handlers):
        return
    for check, kind in itertools.product(guards, (*kinds, ArgumentError)):
        check(kind)
    name, where = python.__name__, short_location(user_location(2))

    def fail(*arrays: np.ndarray) -> NoReturn:
        values = [array.item() for array in arrays]
        try:
            result = python(*values)
        except kinds as error:
            if where:
                error.add_note(f"raised by compiled code  ({where})")
            raise
        said = ", ".join(map(repr, values))
        raise ArgumentError(name, f"of {said} is {result!r}, which no number of a compiled function holds.")

    require(ok, fail, operands, kinds[0], f"{kinds[0].__name__} in {name}.")


def check_divisor(python: Python, a: Tensor, b: Tensor) -> None:
    """Nothing is divided by zero."""
    fail_unless(elementwise.not_equal(b, 0), python, (ZeroDivisionError,), a, b)


def check_shift(python: Python, a: Tensor, b: Tensor) -> None:
    """No shift is by a negative number."""
    fail_unless(elementwise.greater_equal(b, 0), python, (ValueError,), a, b)


def check_power(a: Tensor, b: Tensor, power: Tensor) -> None:
    """A power of finite floats is one."""
    finite = elementwise.isfinite
    is_right = elementwise.logical_or(
        finite(power), elementwise.logical_not(elementwise.logical_and(finite(a), finite(b)))
    )
    fail_unless(is_right, operator.pow, (ZeroDivisionError, OverflowError), a, b)


def check_integral(python: Python, x: Tensor, converted: Tensor) -> None:
    """An int of 64 bits is ``converted`` of the float ``x``."""
    fits = elementwise.logical_and(elementwise.greater_equal(converted, -_ENDS), elementwise.less(converted, _ENDS))
    fail_unless(fits, python, (ValueError, OverflowError), x)


def check_root(x: Tensor) -> None:
    """No square root is of a negative number."""
    fail_unless(elementwise.logical_not(elementwise.less(x, 0)), math.sqrt, (ValueError,), x)


PYTHON: dict[str, Python] = {
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
