"""Programs that mean compiled what they mean eagerly: values, dtypes, gradients, what they print, raise and leave."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import TraceError

Program = Callable[..., Any]


class Case(NamedTuple):
    function: Program
    calls: tuple[tuple[Any, ...], ...]
    gradient: bool
    reset: Callable[[], None]
    state: Callable[[], Any]


class Corpus:
    """Programs of one subject, each with the arguments of its calls."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}

    def __call__(
        self,
        *calls: Any,
        gradient: bool = False,
        reset: Callable[[], None] = lambda: None,
        state: Callable[[], Any] = lambda: None,
    ) -> Callable[[Program], Program]:
        def add(function: Program) -> Program:
            assert function.__name__ not in self.cases, function.__name__
            given = tuple(call if isinstance(call, tuple) else (call,) for call in calls)
            self.cases[function.__name__] = Case(function, given, gradient, reset, state)
            return function

        return add

    def parametrized(self) -> pytest.MarkDecorator:
        return pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in self.cases.items()])


def form(value: Any) -> Any:
    """What is compared.  A number of Python's leaves a compiled function as a tensor, takes the dtype of what it
    meets on another way, and may be an int or a float of one value there."""
    if isinstance(value, dict):
        return [form(list(value)), form(list(value.values()))]
    if isinstance(value, (list, tuple)):
        return list(map(form, value))
    if isinstance(value, (np.generic, np.ndarray, hf.Tensor)):
        array = np.asarray(value)
        if array.shape == () and array.dtype.kind in "biuf":
            return Number(array.item(), None if array.dtype in (np.bool_, np.int64, np.float64) else array.dtype)
        return str(array.dtype), array.shape, array.astype(array.dtype).tobytes()
    if isinstance(value, (bool, int, float)):
        return Number(value, None)
    if type(getattr(value, "__dict__", None)) is dict:
        return type(value).__name__, form(vars(value))
    return value


class Number:
    """A scalar, of a ``dtype`` or one of Python's: a NaN equals a NaN, and -0 is not 0."""

    def __init__(self, value: float, dtype: Any) -> None:
        self.value, self.dtype = value, dtype

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Number):
            return False
        if self.dtype == other.dtype:
            same = (type(self.value) is bool) is (type(other.value) is bool)
            return same and _text(float(self.value)) == _text(float(other.value))
        if None not in (self.dtype, other.dtype):
            return False
        dtype = self.dtype or other.dtype
        return _text(dtype.type(self.value).item()) == _text(dtype.type(other.value).item())

    def __repr__(self) -> str:
        return f"{self.value!r}" if self.dtype is None else f"{self.dtype}({self.value!r})"


def _text(value: Any) -> str:
    return "nan" if isinstance(value, float) and math.isnan(value) else repr(value)


def outcome(function: Program, args: Sequence[Any], case: Case) -> Any:
    case.reset()
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            found = function(*args)
    except TraceError:
        raise
    except Exception as error:
        result: Any = type(error).__name__, str(error).partition("  (")[0]
    else:
        result = form(found)
    return result, out.getvalue(), form(case.state())


def check(case: Case) -> None:
    """Raise AssertionError if a program means anything else when it is compiled."""
    compiled = hf.function(case.function)
    for args in case.calls:
        want = outcome(case.function, args, case)
        for _ in range(2):
            assert outcome(compiled, args, case) == want, args
        if case.gradient:
            got, want = gradients(compiled, args, case), gradients(case.function, args, case)
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
    case.reset()


def gradients(function: Program, args: Sequence[Any], case: Case) -> list[np.ndarray]:
    """Of the sum of all floats that it returns, with zeros where there is no way."""
    case.reset()
    sources = [x for x in args if isinstance(x, hf.Tensor) and x.dtype.kind == "f"]
    with hf.GradientTape() as tape:
        for x in sources:
            tape.watch(x)
        total = hf.constant(0.0)
        try:
            found = function(*args)
        except (IndexError, KeyError, ValueError):
            return []
        for part in _leaves(found):
            if isinstance(part, hf.Tensor) and part.dtype.kind == "f":
                total = total + hf.sum(hf.astype(part, "float32"))
    made = tape.gradient(total, sources)
    return [np.zeros(x.shape, x.dtype) if one is None else np.asarray(one) for one, x in zip(made, sources)]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def vector(*values: float, dtype: str = "float32") -> hf.Tensor:
    return hf.asarray(np.array(values, dtype))


def scalar(value: float, dtype: str = "float32") -> hf.Tensor:
    return hf.asarray(np.array(value, dtype))


def integer(value: int) -> hf.Tensor:
    return scalar(value, "int64")
