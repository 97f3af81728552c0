"""Functions that were there before ``gc.freeze()``, which servers call before they fork, are found all the same."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hybridflow as hf
from tests.support import left_behind

factor = 3.0


class Encoder(json.JSONEncoder):
    """The library's code calls ``default``, unseen."""

    def default(self, o: Any) -> Any:
        return factor


class Outer:
    class Inner(json.JSONEncoder):
        def default(self, o: Any) -> Any:
            return factor * 2


class WithLambda(json.JSONEncoder):
    default = lambda self, o: factor * 4  # noqa: E731


def scaled_by_a_lambda(x: Any) -> Any:
    return x * float(json.dumps(object(), cls=WithLambda))


@pytest.fixture
def frozen() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        _thaw()


def _thaw() -> None:
    """All but what is frozen for the whole run."""
    gc.unfreeze()
    left_behind.freeze()


def scaled(x: Any) -> Any:
    return x * float(json.dumps(object(), cls=Encoder))


def scaled_by_a_nested_class(x: Any) -> Any:
    return x * float(json.dumps(object(), cls=Outer.Inner))


@pytest.mark.parametrize(
    ("python", "expected"), [(scaled, 3.0), (scaled_by_a_nested_class, 6.0), (scaled_by_a_lambda, 12.0)]
)
def test_code_that_a_library_calls_is_recorded(
    frozen: None, monkeypatch: pytest.MonkeyPatch, python: Callable[[Any], Any], expected: float
) -> None:
    function = hf.function(python)
    x = hf.asarray(1.0)
    for _ in range(4):
        assert function(x) == expected
    assert len(function.signatures()) == 1, "it is traced at each call"
    monkeypatch.setattr(f"{__name__}.factor", 5.0)
    assert function(x) == expected / 3 * 5


def test_what_cannot_be_found_says_how_to_help(caplog: pytest.LogCaptureFixture) -> None:
    factors = [4.0]

    class Local(json.JSONEncoder):
        def default(self, o: Any) -> Any:
            return factors[0]

    function = hf.function(lambda x: x * float(json.dumps(object(), cls=Local)))
    gc.freeze()
    try:
        x = hf.asarray(1.0)
        assert [function(x).item() for _ in range(3)] == [4.0] * 3
        factors[0] = 5.0
        assert function(x) == 5.0
    finally:
        _thaw()
    (text,) = [record.getMessage() for record in caplog.records if "traced anew" in record.getMessage()]
    assert "define it after gc.freeze()" in text
