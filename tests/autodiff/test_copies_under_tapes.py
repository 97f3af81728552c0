"""Copies that are the tensor itself (``+x``, ``x[:]``, a cast to the dtype that it has ...) under every kind of tape.

To a tape a copy is made from its tensor, wherever that comes from and whether or not its elements are known while
tracing.  Eager derivatives are those of the expression without copies; compiled ones have their bits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.tf as tf
from tests.support.bits import same_bits

pytestmark = pytest.mark.code

N = 5
MASK = hf.asarray([True] * N)
Function = Callable[..., Any]


def in_place(x: Any) -> Any:
    x = x[:]
    x += 0.0
    x[:0] = 7.0
    return x


def powers(x: Any) -> Any:
    for k in (1, 1):
        x = x**k
    return x


COPIES: dict[str, Function] = {
    "+x": lambda x: +x,
    "x[:]": lambda x: x[:],
    "x[...]": lambda x: x[...],
    "x[0:]": lambda x: x[0:],
    "x[mask]": lambda x: x[MASK],
    "x[mask[:]]": lambda x: x[MASK[:]],
    "x[None][0]": lambda x: x[None][0],
    "x[range]": lambda x: x[hf.asarray(list(range(N)))],
    "astype": lambda x: x.astype(x.dtype),
    "hf.astype": lambda x: hf.astype(x, x.dtype, copy=False),
    "asarray": hf.asarray,
    "asarray with copy": lambda x: hf.asarray(x, copy=True),
    "constant": hf.constant,
    "copy": lambda x: x.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "to_device": lambda x: x.to_device("cpu"),
    "x**1": powers,
    "in place": in_place,
    "clip": lambda x: hf.clip(x),
    "positive": hf.positive,
    "real": hf.real,
    "reshape": lambda x: hf.reshape(x, (N,)),
    "reshape twice": lambda x: x.reshape(1, N).reshape(-1),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "T": lambda x: x.transpose(),
    "permute_dims": lambda x: hf.permute_dims(x, (0,)),
    "moveaxis": lambda x: hf.moveaxis(x, 0, 0),
    "broadcast_to": lambda x: hf.broadcast_to(x, (N,)),
    "broadcast_arrays": lambda x: hf.broadcast_arrays(x, 1.0)[0],
    "squeeze": lambda x: hf.squeeze(hf.expand_dims(x, axis=0), axis=0),
    "squeeze nothing": lambda x: hf.squeeze(x, axis=()),
    "flip nothing": lambda x: hf.flip(x, axis=()),
    "roll": lambda x: hf.roll(x, N),
    "roll by 0": lambda x: hf.roll(x, 0),
    "concat": lambda x: hf.concat([x]),
    "concat with nothing": lambda x: hf.concat([x, x[:0]]),
    "stack": lambda x: hf.stack([x])[0],
    "unstack": lambda x: hf.unstack(x[None])[0],
    "split": lambda x: hf.split(x, 1)[0],
    "tile": lambda x: hf.tile(x, 1),
    "repeat": lambda x: hf.repeat(x, 1),
    "pad": lambda x: hf.pad(x, [(0, 0)]),
    "take": lambda x: hf.take(x, hf.arange(N), axis=0),
    "where": lambda x: hf.where(True, x, 0.0),
    "diff": lambda x: hf.diff(x, n=0),
    "sum over nothing": lambda x: hf.sum(x, axis=()),
    "boolean_mask": lambda x: hf.boolean_mask(x, MASK),
    "nonzero": lambda x: x[hf.nonzero(MASK)],
    "sort": hf.sort,
    "unique_values": lambda x: hf.unique_values(x, size=N),
    "quantile": lambda x: hf.quantile(x, hf.linspace(0.0, 1.0, N)[:]).astype(x.dtype),
    "median": lambda x: hf.median(x[None], axis=0),
    "einsum": lambda x: hf.einsum("i->i", x),
    "tensordot": lambda x: hf.tensordot(x, hf.ones((), x.dtype), 0),
    "dropout": lambda x: hf.nn.dropout(x, 0.0),
    "identity": tf.identity,
    "tf.cast": lambda x: tf.cast(x, x.dtype),
    "convert_to_tensor": tf.convert_to_tensor,
    "tf.gather": lambda x: tf.gather(x, list(range(N))),
}


SOME = [COPIES[name] for name in ("+x", "x[:]", "in place", "x[mask]", "x**1", "astype", "roll", "concat")]


def number(x: Any) -> Any:
    """Sums of the squares of some copies, each of a weight of its own."""
    total = hf.sum(x * 0.25)
    for k, make in enumerate(SOME):
        total = total + hf.sum(make(x) ** 2) * (1.0 + k / 8)
    return total


WEIGHT = sum(1.0 + k / 8 for k in range(len(SOME)))
VALUE = np.linspace(-1.0, 2.0, N)
FIRST, SECOND = 2 * WEIGHT * VALUE + 0.25, np.full(N, 2 * WEIGHT)


@hf.custom_gradient
def passed_on(x: Any) -> Any:
    return x[:], lambda g: g[:] * 1.0


def gradient(f: Function, x: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def forward(f: Function, x: Any) -> Any:
    tangent = hf.ones(x.shape, x.dtype)
    with hf.ForwardAccumulator(x, tangent) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


def in_branches(x: Any) -> Any:
    total = 0.0 * hf.sum(x)
    if hf.sum(x) > 0.0:
        total = number(x)
    return total


def in_a_loop(x: Any) -> Any:
    total, k = 0.0 * hf.sum(x), hf.asarray(0)
    while k < 2:
        total = total + number(x) / 2
        k = k + 1
    return total


def in_a_scan(x: Any) -> Any:
    total = 0.0 * hf.sum(x)
    for row in hf.stack([x * 0.0 + 1.0, x * 0.0 + 1.0]):
        total = total + number(x) / 2 * row[0]
    return total


# Each takes what makes a number of x, and x: with compiled code inside of ``wrap``, or with all of it there.
NUMBERS: dict[str, Function] = {
    "plain": number,
    "branches": in_branches,
    "while": in_a_loop,
    "for": in_a_scan,
    "cond": lambda x: hf.cond(hf.sum(x) > 0, lambda: number(x), lambda: hf.sum(x)),
    "custom_gradient": lambda x: number(passed_on(x)),
    "recompute_grad": lambda x: hf.recompute_grad(number)(x),
    "vmap": lambda x: hf.sum(hf.vmap(lambda k: number(x) * k)(hf.asarray([0.25, 0.75], x.dtype))),
    "nested": lambda x: hf.function(number)(x),
    "nested, captured": lambda x: hf.function(lambda: number(x))(),
}
DERIVATIVES: dict[str, tuple[Function, np.ndarray]] = {
    "tape": (gradient, FIRST),
    "grad": (lambda f, x: hf.grad(f)(x), FIRST),
    "vjp": (lambda f, x: hf.vjp(f, x)[1](hf.ones((), x.dtype))[0], FIRST),
    "forward": (forward, np.sum(FIRST)),
    "jvp": (lambda f, x: hf.jvp(f, (x,), (hf.ones(x.shape, x.dtype),))[1], np.sum(FIRST)),
    "linearize": (lambda f, x: hf.linearize(f, x)[1](hf.ones(x.shape, x.dtype)), np.sum(FIRST)),
    "tape in tape": (lambda f, x: gradient(lambda x: hf.sum(gradient(f, x)), x), SECOND),
    "tape in forward": (lambda f, x: forward(lambda x: gradient(f, x), x), SECOND),
    "forward in tape": (lambda f, x: gradient(lambda x: forward(f, x), x), SECOND),
}


SMALL = hf.asarray(VALUE)
VARIABLE = hf.Variable(VALUE)

SOURCES: dict[str, Function] = {
    "captured": lambda: SMALL,
    "made of a list": lambda: hf.constant(VALUE.tolist(), hf.float64),
    "made of an array": lambda: hf.asarray(VALUE),
    "computed": lambda: hf.asarray(VALUE / 2) * 2.0,
    "a variable": VARIABLE.value,
}


def check(found: Any, eager: Any, wanted: np.ndarray, what: str) -> None:
    assert eager is not None and found is not None, what
    np.testing.assert_allclose(eager.numpy(), wanted, rtol=1e-12, atol=1e-12, err_msg=what)
    assert same_bits(found.numpy(), eager.numpy()), f"{what}: {found} for {eager}"


@pytest.mark.parametrize("source", SOURCES)
def test_each_copy(source: str) -> None:
    """The gradient through each copy alone."""

    def gradients() -> list[Any]:
        x = SOURCES[source]()
        return [gradient(lambda x, make=make: hf.sum(make(x) ** 2), x) for make in COPIES.values()]

    for name, found, eager in zip(COPIES, hf.function(gradients)(), gradients()):
        check(found, eager, 2 * VALUE, name)


def test_each_copy_with_a_tape_around_the_call() -> None:
    for name, make in COPIES.items():
        f = hf.function(lambda make=make: hf.sum(make(SMALL) ** 2))
        check(gradient(lambda x, f=f: f(), SMALL), 2 * SMALL, 2 * VALUE, name)


PAIRS = [
    (number, derivative)
    for k, number in enumerate(NUMBERS)
    for n, derivative in enumerate(DERIVATIVES)
    if number == "plain" or derivative == "tape" or (k + n) % 3 == 0
]


@pytest.mark.parametrize(("number", "derivative"), PAIRS)
def test_derivatives_in_compiled_functions(number: str, derivative: str) -> None:
    derive, wanted = DERIVATIVES[derivative]
    eager = derive(NUMBERS[number], SMALL)
    compiled = hf.function(lambda: derive(NUMBERS[number], SMALL))
    for _ in range(2):
        check(compiled(), eager, wanted, "captured")


@pytest.mark.parametrize("derivative", [d for d in DERIVATIVES if "tape" in d or "forward" in d])
def test_derivatives_around_compiled_functions(derivative: str) -> None:
    derive, wanted = DERIVATIVES[derivative]
    eager = derive(number, SMALL)
    compiled = hf.function(lambda: number(SMALL))
    for _ in range(2):
        check(derive(lambda x: compiled(), SMALL), eager, wanted, "captured")
    check(derive(hf.function(number), SMALL), eager, wanted, "an argument")
