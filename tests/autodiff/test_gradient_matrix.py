"""Derivatives of orders 1 to 3 of every op: eagerly, in compiled functions, with tapes in them and outside of them.

Eager ones are checked against finite differences of the order below; the others have their bits.  Which op meets which
order in which way is drawn by its name, so that every op is compiled in one of them and all of them see many ops.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import Kind, OpDef
from hybridflow.eager.dispatch import apply
from tests.compiler.ops.test_ops_table import DIFFERENTIABLE, NO_SECOND, smooth
from tests.support.bits import same_bits

pytestmark = pytest.mark.code

# Not those that lack a derivative to one of their inputs, see NO_SECOND.
OPS = [op for op in DIFFERENTIABLE if op.kind is not Kind.CONTROL and op.name not in NO_SECOND]
Number = Callable[..., Any]


class Subject:
    """An op at a sample: a number made of its result, and a direction for its arguments."""

    def __init__(self, op: OpDef) -> None:
        rng = np.random.default_rng(zlib.crc32(op.name.encode()))
        fitting = [
            (arrays, attrs)
            for arrays, attrs in op.samples(rng, dt.float64)
            if 0 < arrays[0].size <= 40 and attrs.get("dtype", dt.float64) == dt.float64
        ]
        self.op = op
        arrays, self.attrs = fitting[len(fitting) // 2]
        arrays = smooth(op, arrays, rng)
        self.places = [k for k, a in enumerate(arrays) if a.dtype == dt.float64]
        self.arrays = [hf.asarray(a) for a in arrays]
        self.floats = [self.arrays[k] for k in self.places]
        self.direction = [hf.asarray(rng.standard_normal(x.shape)) for x in self.floats]

    def number(self, *floats: Any) -> Any:
        given: list[Any] = list(self.arrays)
        for k, x in zip(self.places, floats):
            given[k] = x
        out = apply(self.op, *given, **self.attrs)
        return sum(hf.sum(hf.sin(x)) for x in (out if isinstance(out, tuple) else (out,)) if dt.is_float(x.dtype))

    def along(self, f: Number) -> Number:
        """The derivative of a number along the direction."""

        def derivative(*floats: Any) -> Any:
            gradients = hf.grad(f, tuple(range(len(floats))))(*floats)
            return sum(hf.sum(g * v) for g, v in zip(gradients, self.direction))

        return derivative

    def moved(self, step: float) -> list[Any]:
        return [x + step * v for x, v in zip(self.floats, self.direction)]


def nested(f: Number, order: int, wrap: Callable[[Number], Number]) -> Number:
    for _ in range(order):
        f = wrap(f)
    return f


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_orders_of_derivatives(op: OpDef) -> None:
    subject = Subject(op)
    for order in (1, 2, 3):
        below = nested(subject.number, order - 1, subject.along)
        h = 1e-5
        wanted = (below(*subject.moved(h)).numpy() - below(*subject.moved(-h)).numpy()) / (2 * h)
        found = subject.along(below)(*subject.floats).numpy()
        scale = max(1.0, abs(below(*subject.floats).numpy()))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * scale, err_msg=f"order {order}")


WAYS = ("tape in graph", "tape outside", "both", "order by order")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_ways_of_derivatives_have_the_same_bits(op: OpDef) -> None:
    subject = Subject(op)
    draw = zlib.crc32(op.name.encode()[::-1])
    order, way = 1 + draw % 3, WAYS[draw // 3 % 4]
    eager = nested(subject.number, order, subject.along)
    if way == "tape in graph":
        other = hf.function(eager)
    elif way == "tape outside":
        other = nested(hf.function(subject.number), order, subject.along)
    elif way == "both":
        other = hf.function(nested(hf.function(subject.number), order, subject.along))
    else:
        other = nested(subject.number, order, lambda f: hf.function(subject.along(f)))
    wanted = eager(*subject.floats).numpy()
    for _ in range(2):
        assert same_bits(other(*subject.floats).numpy(), wanted), f"order {order}, {way}"


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_many_examples_of_derivatives(op: OpDef) -> None:
    """The gradients of many examples at once, and the gradient of what many examples make, are those of each."""
    subject = Subject(op)
    examples = [hf.stack([x, x * 0.875, x]) for x in subject.floats]
    numbers = tuple(range(len(examples)))
    each = hf.grad(subject.number, numbers)
    if len(subject.places) < len(subject.arrays):  # with indices, which are the same for all
        examples = [hf.stack([x, x, x]) for x in subject.floats]
    rows = [each(*(x[k] for x in examples)) for k in range(3)]
    inside = hf.vmap(each)(*examples)
    around = hf.grad(lambda *xs: hf.sum(hf.vmap(subject.number)(*xs)), numbers)(*examples)
    for k in numbers:
        wanted = np.stack([row[k].numpy() for row in rows])
        np.testing.assert_allclose(inside[k].numpy(), wanted, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(around[k].numpy(), wanted, rtol=1e-12, atol=1e-12)
