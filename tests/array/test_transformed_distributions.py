"""Distributions of hf.random that are made of others, and the samplers of hypergeometric and von Mises numbers:
against SciPy's distribution functions, by tests of Kolmogorov and Smirnov, and of Pearson.

Everything is drawn from fixed seeds, so that a test passes always or never.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

COUNT = 20_000
ONE = (COUNT,)


@pytest.fixture(scope="module")
def stats() -> Any:
    """Not for who collects tests: it takes longer to import than they to be collected."""
    return pytest.importorskip("scipy.stats")


# What draws numbers, and their law.
CONTINUOUS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "beta": (lambda g, d: g.beta(ONE, 2.5, 0.75, d), lambda s: s.beta(2.5, 0.75)),
    "small beta": (lambda g, d: g.beta(ONE, 0.05, 0.1, d), lambda s: s.beta(0.05, 0.1)),
    "large beta": (lambda g, d: g.beta(ONE, 300.0, 100.0, d), lambda s: s.beta(300, 100)),
    "cauchy": (lambda g, d: g.cauchy(ONE, 1.0, 2.0, d), lambda s: s.cauchy(1, 2)),
    "chi_square": (lambda g, d: g.chi_square(ONE, 3.0, d), lambda s: s.chi2(3)),
    "f": (lambda g, d: g.f(ONE, 5.0, 2.0, d), lambda s: s.f(5, 2)),
    "gumbel": (lambda g, d: g.gumbel(ONE, 1.0, 2.0, d), lambda s: s.gumbel_r(1, 2)),
    "logistic": (lambda g, d: g.logistic(ONE, 1.0, 2.0, d), lambda s: s.logistic(1, 2)),
    "lognormal": (lambda g, d: g.lognormal(ONE, 0.5, 0.7, d), lambda s: s.lognorm(0.7, scale=math.exp(0.5))),
    "maxwell": (lambda g, d: g.maxwell(ONE, 2.0, d), lambda s: s.maxwell(scale=2)),
    "pareto": (lambda g, d: g.pareto(ONE, 3.0, 2.0, d), lambda s: s.pareto(3, scale=2)),
    "rayleigh": (lambda g, d: g.rayleigh(ONE, 2.0, d), lambda s: s.rayleigh(scale=2)),
    "student_t": (lambda g, d: g.student_t(ONE, 3.0, 1.0, 2.0, d), lambda s: s.t(3, 1, 2)),
    "student_t, small": (lambda g, d: g.student_t(ONE, 0.3, dtype=d), lambda s: s.t(0.3)),
    "triangular": (lambda g, d: g.triangular(ONE, -1.0, 0.0, 3.0, d), lambda s: s.triang(0.25, -1, 4)),
    "triangular, no rise": (lambda g, d: g.triangular(ONE, 0.0, 0.0, 3.0, d), lambda s: s.triang(0, 0, 3)),
    "von_mises": (lambda g, d: g.von_mises(ONE, 0.0, 2.0, d), lambda s: s.vonmises(2.0)),
    "von_mises, flat": (lambda g, d: g.von_mises(ONE, 0.0, 0.0, d), lambda s: s.uniform(-math.pi, 2 * math.pi)),
    "von_mises, almost flat": (lambda g, d: g.von_mises(ONE, 0.0, 0.01, d), lambda s: s.vonmises(0.01)),
    "von_mises, narrow": (lambda g, d: 100 * g.von_mises(ONE, 0.0, 1e4, d), lambda s: s.norm(scale=1.00005)),
    "von_mises, a point": (lambda g, d: 1e5 * g.von_mises(ONE, 0.0, 1e10, d), lambda s: s.norm()),
    "wald": (lambda g, d: g.wald(ONE, 2.0, 3.0, d), lambda s: s.invgauss(2 / 3, scale=3)),
    "wald, wide": (lambda g, d: g.wald(ONE, 50.0, 0.5, d), lambda s: s.invgauss(100, scale=0.5)),
    "weibull": (lambda g, d: g.weibull(ONE, 1.7, 2.0, d), lambda s: s.weibull_min(1.7, scale=2)),
    "ball": (lambda g, d: hf.linalg.vector_norm(g.ball(3, 2.0, ONE, d), axis=-1), lambda s: s.beta(3, 1)),
    "ball of the taxicab": (lambda g, d: hf.sum(hf.abs(g.ball(4, 1.0, ONE, d)), axis=-1), lambda s: s.beta(4, 1)),
    "dirichlet": (lambda g, d: g.dirichlet([0.4, 1.0, 2.0], ONE, d)[:, 1], lambda s: s.beta(1.0, 2.4)),
    "dirichlet, small": (lambda g, d: g.dirichlet([0.01, 0.02], ONE, d)[:, 1], lambda s: s.beta(0.02, 0.01)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str, dtype: str, stats: Any) -> None:
    draw, law_of = CONTINUOUS[name]
    law = law_of(stats)
    values = draw(hf.random.Generator(11), dtype)
    assert values.dtype == np.dtype(dtype)
    x = np.sort(values.numpy().astype(np.float64))
    assert np.isfinite(x).all()
    steps, wanted = np.arange(COUNT + 1) / COUNT, law.cdf(x)
    if "small" in name:  # many of them round to the ends of the range
        inside = (x > 1e-30) & (x < 1 - (1e-6 if dtype == "float32" else 1e-14))
        distance = np.abs(wanted - steps[1:])[inside].max()
    else:
        distance = max((steps[1:] - wanted).max(), (wanted - steps[:-1]).max())
    assert distance * math.sqrt(COUNT) < 1.95  # a chance of one in a thousand


DISCRETE: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "geometric": (lambda g: g.geometric(ONE, 0.3), lambda s: s.geom(0.3)),
    "geometric, rare": (lambda g: g.geometric(ONE, 0.01), lambda s: s.geom(0.01)),
    "hypergeometric": (lambda g: g.hypergeometric(ONE, 7, 5, 4), lambda s: s.hypergeom(12, 7, 4)),
    "hypergeometric, most": (lambda g: g.hypergeometric(ONE, 70, 30, 90), lambda s: s.hypergeom(100, 70, 90)),
    "hypergeometric, few": (lambda g: g.hypergeometric(ONE, 3, 2000, 500), lambda s: s.hypergeom(2003, 3, 500)),
    "hypergeometric, many": (lambda g: g.hypergeometric(ONE, 4000, 6000, 900), lambda s: s.hypergeom(10000, 4000, 900)),
    "negative_binomial": (lambda g: g.negative_binomial(ONE, 2.5, 0.4), lambda s: s.nbinom(2.5, 0.4)),
    "multinomial": (lambda g: g.multinomial(20, [1.0, 3.0, 0.0, 4.0], ONE)[:, 1], lambda s: s.binom(20, 0.375)),
    "multinomial, last": (lambda g: g.multinomial(20, [1.0, 3.0, 0.0, 4.0], ONE)[:, 3], lambda s: s.binom(20, 0.5)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str, stats: Any) -> None:
    draw, law_of = DISCRETE[name]
    law = law_of(stats)
    values = draw(hf.random.Generator(5)).numpy()
    assert values.dtype == np.int64
    counts = np.bincount(values)
    wanted = law.pmf(np.arange(len(counts))) * COUNT
    common = wanted >= 5
    cells = [*zip(counts[common], wanted[common]), (counts[~common].sum(), COUNT - wanted[common].sum())]
    statistic = sum((found - w) ** 2 / w for found, w in cells if w > 0.5)
    assert stats.chi2(len(cells) - 1).sf(statistic) > 1e-3
    assert abs(values.mean() - law.mean()) < 4 * law.std() / math.sqrt(COUNT)


def test_large_urns_keep_their_variance(stats: Any) -> None:
    values = hf.random.Generator(3).hypergeometric(ONE, 4 * 10**8, 6 * 10**8, 10**8, "float64").numpy()
    law = stats.hypergeom(10**9, 4 * 10**8, 10**8)
    z = np.sort((values - law.mean()) / law.std())
    assert np.abs(stats.norm.cdf(z) - np.arange(COUNT) / COUNT).max() * math.sqrt(COUNT) < 1.95


def test_vectors() -> None:
    g = hf.random.Generator(2)
    cov = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
    x = g.multivariate_normal([1.0, 2.0, 3.0], cov, ONE, "float64").numpy()
    np.testing.assert_allclose(x.mean(0), [1, 2, 3], atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)
    assert g.multivariate_normal(np.zeros((4, 1, 2)), np.broadcast_to(np.eye(2), (3, 2, 2))).shape == (4, 3, 2)
    q = g.orthogonal(4, (500,), "float64").numpy()
    np.testing.assert_allclose(q @ q.swapaxes(-1, -2), np.broadcast_to(np.eye(4), q.shape), atol=1e-12)
    assert 180 < (np.linalg.det(q) > 0).sum() < 320
    assert np.abs(q.mean(0)).max() < 0.1 and np.allclose((q**2).mean(0), 0.25, atol=0.05)
    p = g.dirichlet([[1.0, 2.0], [3.0, 4.0]], (5,)).numpy()
    assert p.shape == (5, 2, 2) and np.allclose(p.sum(-1), 1)
    many = g.multinomial(hf.asarray([5, 1000]), [[0.5, 0.5], [0.9, 0.1]]).numpy()
    assert many.sum(-1).tolist() == [5, 1000] and 860 < many[1, 0] < 940
    points = g.ball(2, 1.0, ONE).numpy()
    assert np.abs(points.mean(0)).max() < 0.02


def test_angles_turn_around() -> None:
    x = hf.random.Generator(1).von_mises((5000,), 3.0, 4.0).numpy()
    assert np.abs(x).max() <= np.float32(np.pi) and (x < 0).any()
    np.testing.assert_allclose(np.angle(np.exp(1j * x).mean()), 3.0, atol=0.05)


OF_GAMMA = {"gamma", "gamma, small", "gamma, large", "beta", "dirichlet", "chi_square", "f", "student_t"}
REPARAMETRISED: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "gamma": (lambda g, a: g.gamma((50,), a, dtype="float64"), (1.7,)),
    "gamma, small": (lambda g, a: g.gamma((50,), a, dtype="float64"), (0.2,)),
    "gamma, large": (lambda g, a: g.gamma((50,), a, dtype="float64"), (200.0,)),
    "beta": (lambda g, a, b: g.beta((50,), a, b, "float64"), (1.5, 0.6)),
    "dirichlet": (lambda g, a: g.dirichlet(a * np.array([1.0, 2.0]), (25,), "float64")[:, 0], (0.8,)),
    "chi_square": (lambda g, n: g.chi_square((50,), n, "float64"), (5.0,)),
    "f": (lambda g, m, n: g.f((50,), m, n, "float64"), (5.0, 7.0)),
    "student_t": (lambda g, n, x, s: g.student_t((50,), n, x, s, "float64"), (4.0, 1.0, 2.0)),
    "cauchy": (lambda g, x, s: g.cauchy((50,), x, s, "float64"), (1.0, 2.0)),
    "weibull": (lambda g, k, s: g.weibull((50,), k, s, "float64"), (1.5, 2.0)),
    "pareto": (lambda g, a: g.pareto((50,), a, dtype="float64"), (3.0,)),
    "triangular": (lambda g, a, b, c: g.triangular((50,), a, b, c, "float64"), (0.0, 1.0, 3.0)),
    "lognormal": (lambda g, m, s: g.lognormal((50,), m, s, "float64"), (0.5, 0.7)),
    "von_mises": (lambda g, x: g.von_mises((50,), x, 2.0, "float64"), (0.1,)),
    "multivariate_normal": (
        lambda g, s: g.multivariate_normal([0.0, 0.0], s * np.eye(2) + 0.5, (25,), "float64"),
        (1.5,),
    ),
}


@pytest.mark.parametrize("name", REPARAMETRISED)
def test_derivatives_by_reparametrisation(name: str) -> None:
    """Of what is made of uniform and normal numbers alone: with the same ones for other parameters.  Gamma numbers are
    drawn by rejection, so there is no such comparison: see the next test."""
    draw, parameters = REPARAMETRISED[name]
    values = [hf.asarray(p, dtype="float64") for p in parameters]
    for k in range(len(parameters)):
        found = hf.grad(lambda *v: hf.sum(draw(hf.random.Generator(9), *v)), argnums=k)(*values).item()
        assert np.isfinite(found) and found != 0
        if name not in OF_GAMMA:
            ends = []
            for step in (1e-6, -1e-6):
                moved = [hf.asarray(q + step * (j == k), dtype="float64") for j, q in enumerate(parameters)]
                ends.append(hf.sum(draw(hf.random.Generator(9), *moved)).item())
            np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-6)


MEANS = {
    "beta": (lambda g, a, b: g.beta((200_000,), a, b, "float64"), (1.5, 0.6), lambda a, b: a / (a + b)),
    "dirichlet": (lambda g, a: g.dirichlet([a, 2.0, 1.0], (200_000,), "float64")[:, 0], (0.8,), lambda a: a / (a + 3)),
    "chi_square": (lambda g, n: g.chi_square((200_000,), n, "float64"), (5.0,), lambda n: n),
    "student_t": (lambda g, n: g.student_t((200_000,), n, dtype="float64") ** 2, (12.0,), lambda n: n / (n - 2)),
}


@pytest.mark.parametrize("name", MEANS)
def test_derivatives_of_means(name: str) -> None:
    draw, parameters, mean = MEANS[name]
    values = [hf.asarray(p, dtype="float64") for p in parameters]
    for k in range(len(parameters)):
        found = hf.grad(lambda *v: hf.mean(draw(hf.random.Generator(9), *v)), argnums=k)(*values).item()
        ends = [mean(*(q + step * (j == k) for j, q in enumerate(parameters))) for step in (1e-6, -1e-6)]
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=0.03)


@pytest.mark.parametrize("alpha", [0.05, 0.7, 1.0, 3.0, 50.0, 2000.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_gamma_numbers_keep_their_quantile(alpha: float, dtype: str, stats: Any) -> None:
    a = hf.full((300,), alpha, dtype=dtype)
    x, slope = hf.value_and_grad(lambda a: hf.sum(hf.random.Generator(4).gamma(None, a, dtype=dtype)))(a)
    x = hf.random.Generator(4).gamma(None, a, dtype=dtype).numpy().astype(np.float64)
    some = x > 1e-30
    share = stats.gamma(alpha).cdf(x)
    some &= (share > 1e-9) & (share < 1 - 1e-9)
    h = alpha * 1e-4
    expected = (stats.gamma(alpha + h).ppf(share) - stats.gamma(alpha - h).ppf(share)) / (2 * h)
    np.testing.assert_allclose(slope.numpy()[some], expected[some], rtol=2e-3 if dtype == "float32" else 1e-4)
    assert (slope.numpy()[x == 0] == 0).all()


ALL = {
    "ball": lambda g: g.ball(3, 2.0, (4,)),
    "beta": lambda g: g.beta((7,), 0.5, 2.0),
    "dirichlet": lambda g: g.dirichlet([1.0, 2.0, 0.5], (3,)),
    "hypergeometric": lambda g: g.hypergeometric((70,), 50, 60, np.arange(70)),
    "multinomial": lambda g: g.multinomial(50, [0.2, 0.3, 0.5], (9,)),
    "von_mises": lambda g: g.von_mises((70,), 0.0, np.linspace(0.0, 90.0, 70)),
    "wald": lambda g: g.wald((9,), 2.0),
    "maxwell": lambda g: g.maxwell((9,)),
    "orthogonal": lambda g: g.orthogonal(3, (2,)),
    "geometric": lambda g: g.geometric((9,), 0.2),
}


@pytest.mark.parametrize("name", ALL)
def test_one_stream_eagerly_and_compiled(name: str) -> None:
    draw = ALL[name]
    eager, mixed = hf.random.Generator(42), hf.random.Generator(42)
    traced = hf.function(lambda: draw(mixed))
    for step in range(8):  # by then eager calls are compiled as a whole
        found = traced() if step % 2 else draw(mixed)
        assert found.numpy().tobytes() == draw(eager).numpy().tobytes()
    assert eager.state.tolist() == mixed.state.tolist()


@pytest.mark.parametrize("name", sorted(n for n in hf.random.__all__ if n.startswith("stateless_")))
def test_stateless_functions_have_the_stream_of_their_seed(name: str) -> None:
    arguments: dict[str, Any] = {
        "shape": (4,), "logits": [0.0, 1.0], "x": 9, "a": 9, "d": 2, "n": 2, "counts": 5, "probs": [0.5, 0.5],
        "mean": [0.0, 0.0], "cov": np.eye(2), "alpha": [1.0, 2.0], "lam": 3.0, "p": 0.5, "minval": 0, "maxval": 9,
    }  # fmt: skip
    import inspect

    function = getattr(hf.random, name)
    needed = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    given = {n: arguments[n] for n in needed if n != "seed"}
    if name in ("stateless_gamma", "stateless_binomial"):
        given |= {"alpha": 2.0} if "alpha" in given else {"counts": 5, "probs": 0.5}
    rows = [np.asarray(function(seed=seed, **given)).tolist() for seed in ([1, 2], [1, 2], [2, 1])]
    assert rows[0] == rows[1] and (rows[0] != rows[2] or np.size(rows[0]) < 4)
    assert pickle.loads(pickle.dumps(function)) is function
    compiled = hf.function(lambda s: function(seed=s, **given))(hf.asarray([1, 2]))
    assert compiled.tolist() == rows[0]


def test_functions_draw_from_the_global_generator() -> None:
    hf.random.set_seed(3)
    found = hf.random.beta((3,), 2.0).tolist(), hf.random.hypergeometric((3,), 50, 40, 30).tolist()
    g = hf.random.Generator(3)
    assert found == (g.beta((3,), 2.0).tolist(), g.hypergeometric((3,), 50, 40, 30).tolist())


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda g: g.beta((2,), -1.0), errors.ArgumentError, "a is -1.0"),
        (lambda g: g.beta((2,), hf.asarray([np.nan, 1.0])), errors.ArgumentError, "alpha holds"),
        (lambda g: g.cauchy((2,), scale=-1.0), errors.ArgumentError, "scale is -1.0"),
        (lambda g: g.triangular((2,), 2.0, 1.0, 3.0), errors.ArgumentError, "Expected this order"),
        (lambda g: g.geometric((2,), 0.0), errors.ArgumentError, "p is 0.0"),
        (lambda g: g.hypergeometric((2,), 3, 4, 8), errors.ArgumentError, "more are taken"),
        (lambda g: g.hypergeometric((2,), 0.5, 4, 1), errors.ArgumentError, "no whole number"),
        (lambda g: g.von_mises((2,), 0.0, hf.asarray([np.inf, 1.0])), errors.ArgumentError, "concentration holds"),
        (lambda g: g.multinomial(-1, [0.5, 0.5]), errors.ArgumentError, "negative"),
        (lambda g: g.multinomial(1, 0.5), errors.ShapeError, "known number of outcomes"),
        (lambda g: g.multivariate_normal([0.0], np.eye(2)), errors.ShapeError, "Expected a vector"),
        (lambda g: g.multivariate_normal([0.0, 0.0], -np.eye(2)), errors.LinAlgError, "positive definite"),
        (lambda g: g.ball(2, 0.5), errors.ArgumentError, "p is 0.5"),
        (lambda g: g.ball((2, 3)), errors.ArgumentTypeError, "Expected an integer"),
        (lambda g: g.dirichlet(1.0), errors.ShapeError, "Expected an axis"),
        (lambda g: g.wald((2,), dtype="int32"), errors.DTypeError, "not a float dtype"),
        (lambda g: g.gumbel((-1,)), errors.ShapeError, "-1"),
    ],
)
def test_bad_input(call: Callable[[Any], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(hf.random.Generator(0))


def test_edges() -> None:
    g = hf.random.Generator(0)
    assert g.geometric((3,), 1.0).tolist() == [1, 1, 1]
    assert g.hypergeometric(None, [0, 5, 5, 3, 2], [5, 0, 5, 2, 2], [3, 3, 0, 5, 4]).tolist() == [0, 3, 0, 3, 2]
    assert g.negative_binomial((2,), 3.0, 1.0).tolist() == [0, 0]
    assert g.chi_square((2,), 0.0).tolist() == [0, 0]
    for empty in (g.beta((0, 2)), g.von_mises((0,)), g.wald((2, 0)), g.multinomial(3, [0.5, 0.5], (0,))):
        assert 0 in empty.shape
    for dtype in ("float16", hf.bfloat16):
        assert g.student_t((3,), 5.0, dtype=dtype).dtype == np.dtype(dtype)
