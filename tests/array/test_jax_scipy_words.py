"""What the docs say to write for functions of ``jax.scipy``, beside SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support.array_function_names import scipy_words

stats = pytest.importorskip("scipy.stats")
linalg, signal, special = (pytest.importorskip(f"scipy.{name}") for name in ("linalg", "signal", "special"))

RNG = np.random.default_rng(25)
X, Y, SHARE = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 2)), RNG.uniform(0.1, 0.9, 5)
LINE, POSITIVE, COUNTS = RNG.normal(size=5), RNG.uniform(0.2, 3.0, 5), np.array([0.0, 1.0, 2.0, 3.0, 4.0])
VECTOR, OTHER = RNG.normal(size=4), RNG.normal(size=3)
COVARIANCE = X @ X.T + np.eye(4)
FREE = SHARE / SHARE.sum()
Case = tuple[dict[str, Any], Callable[..., Any]]
CASES: dict[str, Case] = {
    "linalg.circulant": ({"c": VECTOR}, linalg.circulant),
    "linalg.companion": ({"a": VECTOR}, linalg.companion),
    "linalg.convolution_matrix": ({"a": OTHER, "n": 5}, linalg.convolution_matrix),
    "linalg.dft": ({"n": 5}, linalg.dft),
    "linalg.expm_frechet": ({"x": X, "e": COVARIANCE}, linalg.expm_frechet),
    "linalg.fiedler": ({"a": VECTOR}, linalg.fiedler),
    "linalg.hankel": ({"c": OTHER, "r": VECTOR}, linalg.hankel),
    "linalg.hilbert": ({"n": 4}, linalg.hilbert),
    "linalg.leslie": ({"f": VECTOR, "s": OTHER}, linalg.leslie),
    "linalg.polar": ({"x": X}, lambda x: linalg.polar(x)[0]),
    "linalg.solve_sylvester": (
        {"a": COVARIANCE, "b": COVARIANCE[:2, :2], "q": X[:, :2], "m": 4, "n": 2},
        lambda a, b, q, m, n: linalg.solve_sylvester(a, b, q),
    ),
    "signal.convolve2d": ({"x": X, "y": Y}, signal.convolve2d),
    "signal.correlate2d": ({"x": X, "y": Y}, signal.correlate2d),
    "signal.detrend": ({"x": LINE, "t": np.arange(5.0)}, lambda x, t: signal.detrend(x)),
    "special.boxcox": ({"x": POSITIVE, "power": 0.3}, special.boxcox),
    "special.boxcox1p": ({"x": POSITIVE, "power": 0.3}, special.boxcox1p),
    "special.comb": ({"n": 7.0, "k": COUNTS}, special.comb),
    "special.factorial": ({"n": COUNTS}, special.factorial),
    "special.gammasgn": ({"x": 3 * LINE}, special.gammasgn),
    "special.poch": ({"x": POSITIVE, "n": 2.5}, special.poch),
    "stats.bernoulli": ({"k": COUNTS[:2], "p": SHARE[:2]}, stats.bernoulli.logpmf),
    "stats.beta": ({"x": SHARE, "a": 2.0, "b": 0.7}, stats.beta.logpdf),
    "stats.betabinom": ({"k": COUNTS, "n": 4.0, "a": 2.0, "b": 0.7}, stats.betabinom.logpmf),
    "stats.binom": ({"k": COUNTS, "n": 4.0, "p": SHARE}, stats.binom.logpmf),
    "stats.cauchy": ({"x": LINE}, stats.cauchy.logpdf),
    "stats.chi2": ({"x": POSITIVE, "d": 3.0}, stats.chi2.logpdf),
    "stats.dirichlet": ({"x": FREE, "a": POSITIVE}, stats.dirichlet.logpdf),
    "stats.expon": ({"x": POSITIVE}, stats.expon.logpdf),
    "stats.gamma": ({"x": POSITIVE, "a": 2.5}, stats.gamma.logpdf),
    "stats.gennorm": ({"x": LINE, "b": 1.5}, stats.gennorm.logpdf),
    "stats.geom": ({"k": COUNTS + 1, "p": 0.3}, stats.geom.logpmf),
    "stats.gumbel_l": ({"x": LINE}, stats.gumbel_l.logpdf),
    "stats.gumbel_r": ({"x": LINE}, stats.gumbel_r.logpdf),
    "stats.laplace": ({"x": LINE}, stats.laplace.logpdf),
    "stats.logistic": ({"x": LINE}, stats.logistic.logpdf),
    "stats.mode": ({"x": np.array([3, 1, 1, 2, 2, 0])}, lambda x: stats.mode(x).mode),
    "stats.multinomial": ({"k": COUNTS, "n": 10.0, "p": FREE}, lambda k, n, p: stats.multinomial.logpmf(k, 10, p)),
    "stats.multivariate_normal": (
        {"x": VECTOR, "mean": X[0], "cov": COVARIANCE},
        stats.multivariate_normal.logpdf,
    ),
    "stats.nbinom": ({"k": COUNTS, "n": 2.5, "p": 0.3}, stats.nbinom.logpmf),
    "stats.norm": ({"x": LINE}, stats.norm.logpdf),
    "stats.pareto": ({"x": POSITIVE + 1, "b": 2.5}, stats.pareto.logpdf),
    "stats.poisson": ({"k": COUNTS, "mu": 1.5}, stats.poisson.logpmf),
    "stats.rankdata": ({"x": np.array([3.0, 1.0, 1.0, 2.0, 7.0])}, stats.rankdata),
    "stats.sem": ({"x": LINE}, stats.sem),
    "stats.t": ({"x": LINE, "d": 3.5}, stats.t.logpdf),
    "stats.truncnorm": ({"x": SHARE, "a": -1.0, "b": 2.0}, stats.truncnorm.logpdf),
    "stats.uniform": ({"x": LINE}, stats.uniform.logpdf),
    "stats.vonmises": ({"x": LINE, "d": 2.0}, stats.vonmises.logpdf),
    "stats.wrapcauchy": ({"x": SHARE, "c": 0.4}, stats.wrapcauchy.logpdf),
}


def written(words: str, names: dict[str, Any]) -> Any:
    """The value of what the words say: an expression, or assignments and an expression."""
    words = words.split("; ")[0]
    before, _, value = words.rpartition(", and ")
    scope: dict[str, Any] = {"hf": hf, **names}
    for step in reversed(before.split(" of ")):
        exec(step, scope)
    return eval(value, scope)


@pytest.mark.parametrize("name", CASES)
def test_words_mean_what_the_function_does(name: str) -> None:
    operands, expected = CASES[name]
    tensors = {key: hf.asarray(v) if isinstance(v, np.ndarray) else v for key, v in operands.items()}
    if not name.startswith("linalg") and name not in ("special.boxcox", "special.boxcox1p"):
        tensors = {key: hf.asarray(v, dtype="float64") if isinstance(v, float) else v for key, v in tensors.items()}
    found = written(scipy_words()[name], tensors)
    exact = expected(*operands.values())
    parts = zip(found, exact) if isinstance(found, tuple) else [(found, exact)]
    for ours, theirs in parts:
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-5, atol=1e-5)
