"""Programs whose sizes vary: open extents give the same bits, and the same errors, as known ones and as eager mode."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support.bits import same_bits
from tests.support.everyday_programs import EVERYDAY, Everyday, gradient_of

pytestmark = pytest.mark.code

SIZES = (17, 0, 1, 2, 64, 3, 5)


def arguments(program: Everyday, sizes: dict[str, int]) -> list[hf.Tensor]:
    rng = np.random.default_rng(7)
    found = []
    for k, shape in enumerate(program.shapes):
        known = [sizes[e] if isinstance(e, str) else e for e in shape]
        dtype = program.dtypes[k] if program.dtypes else "float32"
        values = rng.integers(0, 4, known) if dtype == "int64" else rng.normal(size=known)
        found.append(hf.asarray(values.astype(dtype)))
    return found


def outcome(f: Any, xs: list[hf.Tensor]) -> Any:
    """The leaves of a result as arrays, or the type of the error."""
    try:
        result = f(*xs)
    except hf.errors.HybridflowError as error:
        return type(error)
    return [np.asarray(leaf) for leaf in (result if isinstance(result, (list, tuple)) else [result])]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    return len(a) == len(b) and all(map(same_bits, a, b))


def opened(program: Everyday) -> list[hf.TensorSpec]:
    dtypes = program.dtypes or ("float32",) * len(program.shapes)
    shapes = [[None if isinstance(e, str) else e for e in shape] for shape in program.shapes]
    return [hf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, dtypes)]


def calls(program: Everyday) -> list[dict[str, int]]:
    names = sorted({e for shape in program.shapes for e in shape if isinstance(e, str)})
    if len(names) == 1:
        return [{names[0]: n} for n in SIZES]
    some = itertools.product((17, 0, 1, 2, 5), repeat=2)
    return [dict(zip(names, (*pair, 4))) for pair in some]


def _of_arity(count: int, body: Any) -> Any:
    """``body`` with so many parameters, which a signature needs."""
    return [None, lambda a: body(a), lambda a, b: body(a, b), lambda a, b, c: body(a, b, c), None][count] or (
        lambda a, b, c, d: body(a, b, c, d)
    )


def check(program: Everyday, body: Any) -> hf.function:
    body = _of_arity(len(program.shapes), body)
    f = hf.function(body, input_signature=opened(program))
    known = hf.function(body)
    for sizes in calls(program):
        xs = arguments(program, sizes)
        eager = outcome(body, xs)
        assert same(outcome(known, xs), eager), (sizes, "known extents")
        for _ in range(2):  # the second time natively
            assert same(outcome(f, xs), eager), (sizes, outcome(f, xs), eager)
    return f


@pytest.mark.parametrize("name", EVERYDAY)
@pytest.mark.sample(4)
def test_open_extents_give_what_known_ones_give(name: str) -> None:
    check(EVERYDAY[name], EVERYDAY[name].body)


def _loss(program: Everyday) -> Any:
    def loss(*xs: Any) -> Any:
        result = program.body(*xs)
        leaves = result if isinstance(result, (list, tuple)) else [result]
        total = hf.zeros(())
        for leaf in leaves:
            if leaf.dtype == np.float32:
                total = total + hf.sum(leaf * leaf)
        return total

    return loss


@pytest.mark.parametrize("name", EVERYDAY)
@pytest.mark.sample(4)
def test_gradients_of_open_extents(name: str) -> None:
    program = EVERYDAY[name]
    check(program, gradient_of(_loss(program)))


@pytest.mark.parametrize("name", EVERYDAY)
@pytest.mark.sample(4)
def test_gradients_through_compiled_calls(name: str) -> None:
    program = EVERYDAY[name]
    f = hf.function(program.body, input_signature=opened(program))

    def through(*xs: Any) -> Any:
        return gradient_of(_loss(program._replace(body=f)))(*xs)

    for sizes in calls(program):
        xs = arguments(program, sizes)
        assert same(outcome(through, xs), outcome(gradient_of(_loss(program)), xs)), sizes
