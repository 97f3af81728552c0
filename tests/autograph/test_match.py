"""``match`` on tensors: patterns that are values choose as ``if`` does; on everything else it means what it meant."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf

pytestmark = pytest.mark.code


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Numbers:
    three = 3


def _values(x: Any, n: Any) -> Any:
    match n:
        case 2:
            return x * 2
        case 7 | 8:
            return x * 7
        case Numbers.three:
            return x * 33
        case -1:
            x = x - 1
        case k if k > 100:
            x = x * k
        case other:
            x = x + other
    return x


def _in_a_loop(x: Any, n: Any) -> Any:
    for i in range(n):
        match i % 3:
            case 0:
                continue
            case 1:
                x = x + 1
            case _ if hf.sum(x) > 20:
                break
            case _:
                x = x * 2
    return x


def _nested(x: Any, n: Any) -> Any:
    match n:
        case 0:
            y = x
        case 1:
            match hf.sum(x) > 1:
                case 0:
                    y = x * 6
                case _:
                    y = x * 5
        case _:
            y = -x
    return y


def _objects(x: Any, e: Any) -> Any:
    match e:
        case Colour.RED:
            return x * 2
        case None:
            return x * 3
        case "text" | 1.5:
            return x * 4
        case True:
            return x * 6
        case [a, *_]:
            return x * a
        case {"k": k}:
            return x - k
    return x * 5


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "values": (_values, [*map(hf.constant, (2, 7, 8, 3, -1, 200, 50)), 2, 7, 3, -1, 200, 50]),
    "in a loop": (_in_a_loop, [hf.constant(0), hf.constant(5), hf.constant(9), 4]),
    "nested": (_nested, [hf.constant(0), hf.constant(1), hf.constant(2), 0, 1]),
    "objects": (_objects, [Colour.RED, Colour.BLUE, None, "text", 1.5, True, 1, [7.0, 1], {"k": 2.0}]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_compiled_as_run(name: str) -> None:
    f, arguments = CASES[name]
    compiled = hf.function(f)
    x = hf.constant([1.0, 2.0, 3.0])
    for argument in arguments:
        assert compiled(x, argument).tolist() == f(x, argument).tolist()


def test_gradients_pass_through_what_was_matched() -> None:
    x = hf.constant([1.0, 2.0, 3.0])
    for n in (2, 7, -1, 200):
        number = hf.constant(n)
        eager, compiled = (
            hf.grad(lambda x, f=f, n=number: hf.sum(f(x, n) * x))(x) for f in (_values, hf.function(_values))
        )
        assert eager.tolist() == compiled.tolist()
