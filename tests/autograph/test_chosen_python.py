"""Programs of ordinary Python in which a tensor chooses mean compiled what they mean eagerly."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support import chosen_python as corpus

pytestmark = pytest.mark.code


def form(value: Any) -> Any:
    """What is compared: tensors and numbers alike, numbers of Python's by value, for they leave as tensors."""
    if isinstance(value, dict):
        return [form(list(value)), form(list(value.values()))]
    if isinstance(value, (list, tuple)):
        return list(map(form, value))
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (np.generic, hf.Tensor)):
        array = np.asarray(value)
        if array.shape == () and array.dtype in (np.bool_, np.int64, np.float64):
            return array.item()
        return str(array.dtype), array.shape, array.tobytes()
    return value


def state() -> Any:
    module = corpus
    parts = [module.LAST, module.COUNT, vars(module.SETTINGS), module.Settings.best, module.SEEN(), module.CACHE]
    return form(parts), float(module.TOTAL.numpy())


def reset() -> None:
    corpus.LAST, corpus.COUNT = None, 0
    vars(corpus.SETTINGS).clear()
    corpus.Settings.best = None
    corpus.SET_SEEN(hf.constant(0.0))
    corpus.CACHE.clear()
    corpus.TOTAL.assign(0.0)


def shown(error: BaseException) -> Any:
    return type(error).__name__, str(error).partition("  (")[0]


def outcome(function: Callable[..., Any], args: Any) -> Any:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            found = function(*args)
        return form(found), out.getvalue(), state()
    except Exception as error:
        return shown(error), out.getvalue()


@pytest.mark.parametrize("name", corpus.PROGRAMS)
def test_compiled_is_eager(name: str) -> None:
    function, calls = corpus.PROGRAMS[name]
    compiled = hf.function(function)
    for args in calls:
        reset()
        want = outcome(function, args)
        for _ in range(2):
            reset()
            got = outcome(compiled, args)
            assert got == want, args
    reset()


@pytest.mark.parametrize("name", sorted(corpus.GRADIENTS))
def test_gradients(name: str) -> None:
    function, calls = corpus.PROGRAMS[name]

    def total(*args: Any) -> Any:
        return sum(hf.sum(x) for x in hf.tree.leaves(function(*args)))

    compiled = hf.function(total)
    for args in calls:
        want = outcome(hf.grad(total), args)
        assert outcome(hf.function(hf.grad(total)), args) == want
        assert outcome(hf.grad(compiled), args) == want
