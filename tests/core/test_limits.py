"""How large a tensor may be, how many axes it may have, how deep lists may be nested: one error, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, HybridflowError, ShapeError

pytestmark = pytest.mark.code

X = hf.asarray([1.0, 2.0, 3.0])


def once(x: Any) -> list[Any]:
    itself: list[Any] = [x]
    itself.append(itself)
    return itself


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a sum of 2**66": lambda x: hf.sum(hf.broadcast_to(x[0], (2**33, 2**33))),
    "a sum of 2**63": lambda x: hf.sum(hf.broadcast_to(x[0], (2**31, 2**32))),
    "a sum of joined views": lambda x: hf.sum(hf.concat([hf.broadcast_to(x[0], (2**59,))] * 2)),
    "a sum of stacked views": lambda x: hf.sum(hf.stack([hf.broadcast_to(x[0], (2**59,))] * 2)),
    "a product": lambda x: hf.broadcast_to(x[0], (2**33, 1)) @ hf.broadcast_to(x[0], (1, 2**33)),
    "broadcast operands": lambda x: hf.broadcast_to(x, (2**57, 3)) * hf.broadcast_to(x[0], (8, 1, 1)),
    "zeros": lambda x: hf.zeros((2**62,)),
    "zeros of bytes": lambda x: hf.zeros((2**60,), dtype=hf.int8),
    "zeros of 2**64": lambda x: hf.zeros((2**64,)),
    "zeros beside nothing": lambda x: hf.zeros((0, 2**62)),
    "full": lambda x: hf.full((2**62,), x[0]),
    "arange": lambda x: hf.arange(2**62),
    "linspace": lambda x: hf.linspace(0.0, 1.0, 2**62),
    "eye": lambda x: hf.eye(2**40),
    "pad": lambda x: hf.pad(x, [(0, 2**62)]),
    "one_hot": lambda x: hf.nn.one_hot(hf.asarray([1, 2]), 2**61),
    "tile": lambda x: hf.tile(x, (2**62,)),
    "repeat": lambda x: hf.repeat(x, 2**64),
    "random": lambda x: hf.random.uniform((2**62,)),
    "reshape to 65 axes": lambda x: hf.reshape(x, (3,) + (1,) * 64),
    "a 65th axis": lambda x: hf.expand_dims(hf.reshape(x, (3,) + (1,) * 63), 0),
    "an index of 65 axes": lambda x: x[(None,) * 64 + (slice(None),)],
    "an extent of 2**64": lambda x: hf.reshape(x[:0], (-1, 2**64)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_tensor_is_too_large_or_has_too_many_axes(name: str) -> None:
    program = PROGRAMS[name]
    messages = []
    if name == "a product":  # also where native code has answered calls of this form
        for _ in range(4):
            hf.broadcast_to(X[0], (3, 1)) @ hf.broadcast_to(X[0], (1, 3))
    for call in (program, hf.function(program)):
        with pytest.raises(HybridflowError, match=r"Expected (fewer than 2\*\*60|at most 64)") as caught:
            call(X)
        assert isinstance(caught.value, ShapeError)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_the_limits_themselves_are_allowed() -> None:
    many = hf.function(lambda x: hf.sum(hf.reshape(x, (3,) + (1,) * 63)))
    assert many(X).item() == many.python_function(X).item() == 6
    assert hf.function(lambda x: hf.broadcast_to(x[0], (2**30, 2**29))[7, 9])(X).item() == 1


def test_lists_that_contain_themselves() -> None:
    for make in (lambda x: hf.asarray(once(1.0)), lambda x: hf.stack(once(x)), lambda x: hf.asarray(once(x))):
        for call in (make, hf.function(make)):
            with pytest.raises(ArgumentError, match="contains itself"):
                call(X)
    with pytest.raises(ArgumentError, match="contains itself"):
        hf.function(lambda a: X)(once(1.0))
