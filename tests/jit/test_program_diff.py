"""What the programs of two functions differ in."""

from __future__ import annotations

from typing import Any

import pytest

import hybridflow as hf
from hybridflow import errors


def made(body: Any) -> Any:
    return hf.function(body)


def test_the_same_program_has_no_difference() -> None:
    f = made(lambda x: hf.sum(hf.exp(x) * x))

    @hf.function
    def other(x: Any) -> Any:
        y = hf.exp(x)

        return hf.sum(y * x)

    assert str(f.diff(other, hf.ones(3))) == ""
    assert str(f.diff(other, hf.ones(3), stage="traced")) == ""


def test_one_more_operation_is_one_line() -> None:
    f = made(lambda x: hf.sum(hf.exp(x) * x, axis=0))
    g = made(lambda x: hf.sum(hf.sin(hf.exp(x)) * x, axis=0))
    lines = f.diff(g, hf.ones((3, 4)), stage="traced").splitlines()
    changed = [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]
    assert any("sin" in line and line.startswith("+") for line in changed)
    assert not any("exp" in line or "sum" in line for line in changed)


def test_what_is_no_function() -> None:
    f = made(hf.exp)
    with pytest.raises(errors.ArgumentTypeError, match="no function"):
        f.diff(hf.exp, hf.ones(2))
    with pytest.raises(errors.ArgumentError, match="stage"):
        f.diff(f, hf.ones(2), stage="asm")
