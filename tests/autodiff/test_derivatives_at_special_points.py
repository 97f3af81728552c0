"""Second derivatives where formulas like to be wrong: at ties, zeros, bounds and singular points, and next to them.

A formula that replaces a term by a constant at one point has the right value there, and the wrong derivative.
Gradients are compared with one-sided differences of values, second derivatives, taken in all orders of forward and
reverse mode, with one-sided differences of gradients, wherever both sides agree that there is a derivative.  Compiled
derivatives have the bits of eager ones.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.tf as tf
from hybridflow import losses, nn
from hybridflow.compiler.ops import Kind
from hybridflow.eager.dispatch import apply
from tests.compiler.ops.test_ops_table import DIFFERENTIABLE, NO_SECOND
from tests.support.bits import same_bits

pytestmark = pytest.mark.code

Function = Callable[..., Any]
L = hf.linalg

POINTS = np.array([-3.0, -2.0, -1.0, -0.5, -1e-3, 0.0, 1e-3, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0])
PAIRS = np.array([*itertools.product([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0], repeat=2), (0.5, 0.501), (1e-3, 0.0)]).T
ABOVE = PAIRS[:, PAIRS[1] > 0]
ROWS = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]])
STEP = 2e-4
SINGULAR = 4e2  # difference quotients above it are of something that has no derivative


class Subject(NamedTuple):
    function: Function
    arrays: tuple[np.ndarray, ...]


def op_subjects() -> dict[str, Subject]:
    """The elementwise ops of floats."""
    found = {}
    for op in DIFFERENTIABLE:
        domains = op.facts.get("domain")
        if op.kind is not Kind.ELEMENTWISE or not domains or op.name in ("transfer", "transfer_back", "convert"):
            continue
        pairs = PAIRS[:, PAIRS[0] != 0] if op.name == "copysign" else PAIRS
        grids = [POINTS if len(domains) == 1 else pairs[0], pairs[1], pairs.sum(0)][: len(domains)]
        # Inputs to which there is no second derivative stand still.
        fixed = {k: hf.asarray(np.abs(grids[k]) + 1.5) for k in NO_SECOND.get(op.name, ())}
        found[f"op {op.name}"] = subject(op, fixed, len(grids), [g for k, g in enumerate(grids) if k not in fixed])
    return found


def subject(op: Any, fixed: dict[int, Any], count: int, grids: list[np.ndarray]) -> Subject:
    def function(*xs: Any) -> Any:
        rest = iter(xs)
        return apply(op, *(fixed[k] if k in fixed else next(rest) for k in range(count)))

    return Subject(function, tuple(grids))


def half(x: np.ndarray) -> np.ndarray:
    return np.where(np.arange(x.size) % 2, 1.0, 0.0)


ELEMENTWISE: dict[str, Subject] = op_subjects()
NN = "elu gelu hard_sigmoid hard_swish leaky_relu log_sigmoid relu relu6 selu silu softplus softsign tanh"
ACTIVATIONS = "mish squareplus celu hard_tanh hard_shrink soft_shrink tanh_shrink sparse_plus sparse_sigmoid"
SPECIAL = "erfc bessel_i0 bessel_i1 bessel_i0e bessel_i1e softplus log_sigmoid digamma lgamma erfinv erfcinv"
for name in NN.split():
    ELEMENTWISE[f"nn.{name}"] = Subject(getattr(nn, name), (POINTS,))
for name in ACTIVATIONS.split():
    ELEMENTWISE[f"activation {name}"] = Subject(hf.layers.Activation(name, dtype="float64"), (POINTS,))
for name in SPECIAL.split():
    ELEMENTWISE[f"tf.math.{name}"] = Subject(getattr(tf.math, name), (POINTS,))
for name in ("multiply_no_nan", "squared_difference"):
    ELEMENTWISE[f"tf.math.{name}"] = Subject(getattr(tf.math, name), (*PAIRS,))
for name in ("xlogy", "xdivy", "xlog1py", "divide_no_nan"):  # TensorFlow's have none where the first operand is 0
    ELEMENTWISE[f"tf.math.{name}"] = Subject(getattr(tf.math, name), (*ABOVE[:, ABOVE[0] != 0],))
for name in ["exprel", "sinc", "entr", "ndtr", "log_ndtr", "erf", "erfc", "i0", "i1", "gammaln", "expit", "spence"]:
    ELEMENTWISE[f"special.{name}"] = Subject(getattr(hf.special, name), (POINTS,))
for name in ("xlogy", "xlog1py", "beta", "betaln", "rel_entr", "kl_div"):
    pairs = ABOVE if name in ("xlogy", "xlog1py") else ABOVE[:, ABOVE[0] > 0]
    ELEMENTWISE[f"special.{name}"] = Subject(getattr(hf.special, name), (*pairs,))
ELEMENTWISE["fmod"] = Subject(hf.fmod, (*PAIRS[:, PAIRS[1] != 0],))
for power in (0, 1, 2, 3, 4, -1, -2, 0.5, 2.0, 2.5):
    ELEMENTWISE[f"x**{power}"] = Subject(lambda x, power=power: x**power, (POINTS,))
ELEMENTWISE |= {
    "gelu approximately": Subject(lambda x: nn.gelu(x, approximate=True), (POINTS,)),
    "huber": Subject(lambda x, y: nn.huber(x, y, reduction="none"), (*PAIRS,)),
    "LogCosh": Subject(lambda x, y: losses.LogCosh(reduction="none")(x[:, None], y[:, None]), (*PAIRS,)),
    "Huber": Subject(lambda x, y: losses.Huber(0.5, reduction="none")(x[:, None], y[:, None]), (*PAIRS,)),
    "cross entropy": Subject(lambda x: nn.sigmoid_cross_entropy(half(POINTS), x, reduction="none"), (POINTS,)),
    "tf cross entropy": Subject(
        lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=half(POINTS), logits=x), (POINTS,)
    ),
    "weighted cross entropy": Subject(
        lambda x: tf.nn.weighted_cross_entropy_with_logits(half(POINTS), x, 2.0), (POINTS,)
    ),
    "focal cross entropy": Subject(
        lambda x: losses.BinaryFocalCrossentropy(from_logits=True, reduction="none")(half(POINTS)[:, None], x[:, None]),
        (POINTS,),
    ),
    "log_poisson_loss": Subject(lambda x: tf.nn.log_poisson_loss(half(POINTS), x), (POINTS,)),
    "clip": Subject(lambda x: hf.clip(x, -1.0, 0.5), (POINTS,)),
    "where": Subject(lambda x: hf.where(x > 0, hf.sqrt(hf.where(x > 0, x, 1.0)), x), (POINTS,)),
    "polar": Subject(lambda x, y: hf.sin(hf.atan2(x, y)) * hf.hypot(x, y), (*PAIRS[:, PAIRS.any(0)],)),
}


def along(f: Function, axis: int) -> Function:
    return lambda x: f(x, axis=axis)


ROW_FUNCTIONS: dict[str, Function] = {
    **{f"{f.__name__} of rows": along(f, 1) for f in (hf.sum, hf.mean, hf.prod, hf.var, hf.max, hf.min, hf.logsumexp)},
    **{f"{f.__name__} of columns": along(f, 0) for f in (hf.prod, hf.max, hf.min)},
    "std": lambda x: hf.std(x[::3], axis=1),
    "cumulative_prod": lambda x: hf.cumulative_prod(x, axis=1),
    "cumulative_sum": lambda x: hf.cumulative_sum(x, axis=1),
    "cumulative_logsumexp": lambda x: tf.math.cumulative_logsumexp(x, axis=1),
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "layer_norm": lambda x: nn.layer_norm(x[::3]),
    "rms_norm": lambda x: nn.rms_norm(x[[0, 1, 3]]),
    "l2_normalize": lambda x: nn.l2_normalize(x[[0, 1, 3]], axis=1),
    "cosine similarity": lambda x: losses.CosineSimilarity(reduction="none")(ROWS[::-1][[0, 1, 3]] + 1.0, x[[0, 1, 3]]),
    "quantile": lambda x: hf.quantile(x, 0.3, axis=1),
    "sort": hf.sort,
    "vecdot": lambda x: hf.vecdot(x, x[::-1]),
    "matmul": lambda x: x @ x.mT,
    "norm 1": lambda x: L.vector_norm(x, axis=1, ord=1),
    "norm 2": lambda x: L.vector_norm(x, axis=1),
    "norm 3": lambda x: L.vector_norm(x, axis=1, ord=3),
    "norm 4": lambda x: L.vector_norm(x, axis=1, ord=4),
    "norm inf": lambda x: L.vector_norm(x, axis=1, ord=math.inf),
    "segment_prod": lambda x: hf.segment_prod(x, np.array([0, 0, 1, 1]), num_segments=2),
    "segment_max": lambda x: hf.segment_max(x, np.array([0, 0, 1, 1]), num_segments=2),
    "associative_scan": lambda x: hf.associative_scan(hf.multiply, x, axis=1),
    "categorical cross entropy": lambda x: nn.softmax_cross_entropy(np.eye(3)[[0, 1, 2, 0]], x),
    "attention": lambda x: nn.scaled_dot_product_attention(*[x[None, :, None]] * 3),
    "det": lambda x: L.det(x[:3]),
    "matrix_power": lambda x: L.matrix_power(x[1:], 3),
    "expm": lambda x: tf.linalg.expm(x[1:]),
    "cross": lambda x: L.cross(x, x[::-1]),
    "moments": lambda x: nn.moments(x, [0])[1],
    "einsum": lambda x: hf.einsum("ij,kj,kl->il", x, x, x),
}


def sided(f: Callable[[float], np.ndarray], side: float) -> np.ndarray:
    """The derivative at 0 from one side, of third order."""
    h = STEP * side
    with np.errstate(all="ignore"):
        return (-11 * f(0.0) + 18 * f(h) - 9 * f(2 * h) + 2 * f(3 * h)) / (6 * h)


def compare(found: np.ndarray, f: Callable[[float], np.ndarray], what: str, tolerance: float) -> int:
    """Hold a derivative against difference quotients; how many elements had one."""
    right, left = sided(f, 1.0), sided(f, -1.0)
    with np.errstate(invalid="ignore"):
        scale = np.maximum(1.0, np.abs(right))
        smooth = (np.abs(right - left) < tolerance * scale) & (np.abs(right) < SINGULAR)
        wrong = smooth & ~(np.abs(found - right) < 3 * tolerance * scale)
    assert not wrong.any(), f"{what} at {np.argwhere(wrong).tolist()}: {found[wrong]} for {right[wrong]}"
    return int(smooth.sum())


def same(f: Function, args: Any, eager: Any, name: str) -> None:
    found = hf.function(f)(*args)
    assert same_bits(found.numpy(), eager.numpy()), f"{name}: {found} compiled for {eager}"


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    f, arrays = ELEMENTWISE[name]
    xs = [hf.asarray(a) for a in arrays]
    directions = list(itertools.product([0.0, 1.0], repeat=len(xs)))[1:]
    numbers = tuple(range(len(xs)))
    gradient = hf.grad(lambda *xs: hf.sum(f(*xs)), numbers)
    held = 0
    for direction in directions:
        tangents = [hf.full(x.shape, t, dtype=x.dtype) for x, t in zip(xs, direction)]

        def total(gradients: Any, tangents: Any, direction: Any = direction) -> Any:
            return sum(g * t for g, t, moves in zip(gradients, tangents, direction) if moves)

        def at(step: float, direction: Any = direction) -> list[Any]:
            return [x + step * t for x, t in zip(xs, direction)]

        def along(*xs: Any, tangents: Any = tangents) -> Any:
            return total(gradient(*xs), tangents)

        def pushed(g: Function, tangents: Any = tangents) -> Function:
            return lambda *xs: hf.jvp(g, xs, tangents)[1]

        compare(along(*xs).numpy(), lambda h: f(*at(h)).numpy().reshape(-1), f"gradient {direction}", 1e-5)
        first = pushed(f)
        compare(first(*xs).numpy().reshape(-1), lambda h: f(*at(h)).numpy().reshape(-1), "tangent", 1e-5)

        def both(*xs: Any, along: Any = along, tangents: Any = tangents) -> Any:
            return total(hf.grad(lambda *xs: hf.sum(along(*xs)), numbers)(*xs), tangents)

        def reversed_tangent(*xs: Any, first: Any = first, tangents: Any = tangents) -> Any:
            return total(hf.grad(lambda *xs: hf.sum(first(*xs)), numbers)(*xs), tangents)

        ways = {"reverse, reverse": both, "forward, reverse": pushed(along), "reverse, forward": reversed_tangent}
        ways["forward, forward"] = pushed(first)
        chosen = list(ways)[zlib.crc32(name.encode()) % len(ways)]
        for way, second in ways.items():
            found = second(*xs)
            held += compare(found.numpy().reshape(-1), lambda h: along(*at(h)).numpy(), f"{way} {direction}", 1e-4)
            if way == chosen and direction == directions[-1]:
                same(second, xs, found, way)
    assert held or name in ("op sign", "op copysign")


@pytest.mark.parametrize("name", ROW_FUNCTIONS)
def test_rows(name: str) -> None:
    function = ROW_FUNCTIONS[name]
    x = hf.asarray(ROWS.reshape(-1))
    weight = np.random.default_rng(1).normal(size=function(hf.asarray(ROWS)).shape) + 2.0

    def f(x: Any) -> Any:
        return hf.sum(function(hf.reshape(x, ROWS.shape)) * weight)

    gradient = hf.grad(f)
    ways = {
        "reverse, reverse": hf.jacrev(gradient),
        "forward, reverse": hf.jacfwd(gradient),
        "forward, forward": hf.jacfwd(hf.jacfwd(f)),
    }
    found = {way: second(x) for way, second in ways.items()}
    chosen = list(ways)[zlib.crc32(name.encode()) % len(ways)]
    same(ways[chosen], [x], found[chosen], chosen)
    held = 0
    for k in range(x.size):
        at = np.eye(x.size)[k]
        compare(gradient(x).numpy()[k], lambda h, at=at: f(x + h * at).numpy(), f"gradient of {k}", 1e-5)
        for way, hessian in found.items():
            step = lambda h, at=at: gradient(x + h * at).numpy()  # noqa: E731
            held += compare(hessian.numpy()[:, k], step, f"{way} of {k}", 1e-4)
    assert held
