"""``hf.special`` against mpmath: stated errors, edges, dtypes, derivatives, and the bits of compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support.bits import same_bits

mpmath = pytest.importorskip("mpmath", reason="the references need mpmath")

pytestmark = pytest.mark.code
mp = mpmath.mp

INF, NAN = math.inf, math.nan
EDGES = np.array([0.0, -0.0, 0.5, 1.0, -1.0, -0.5, 2.0, -2.0, 1e-300, 1e300, 5e-324, INF, -INF, NAN])


@pytest.fixture(autouse=True)
def digits() -> Any:
    with mpmath.workdps(40):
        yield


def spread(low: float, high: float, n: int = 60) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, n)


def scales(low: float, high: float, n: int = 40) -> np.ndarray:
    return np.exp(spread(math.log(low), math.log(high), n))


def beyond(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, -x])


def scaled_bessel(function: Any, order: int, sign: int) -> Callable[[Any], Any]:
    return lambda x: function(order, x) * mp.exp(sign * (abs(x) if sign < 0 else x))


POSITIVE = np.concatenate([scales(1e-200, 1e15), spread(0, 12)])
LINE = np.concatenate([beyond(spread(0, 6)), scales(1e-200, 1)])
BESSEL = np.concatenate([spread(0, 20), scales(8, 1e6), scales(1e-200, 1)])

# name: (mpmath's, arguments, largest error in ulp)
ONE: dict[str, tuple[Callable[[Any], Any], np.ndarray, float]] = {
    "gamma": (mp.gamma, np.concatenate([spread(0, 170), -spread(0, 170), scales(1e-300, 1)]), 6),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))) if x < 1e5 else mp.loggamma(x), POSITIVE, 6),
    "digamma": (mp.digamma, np.concatenate([POSITIVE, 1.4616321449683623 * (1 + beyond(scales(1e-15, 0.1)))]), 6),
    "erfc": (mp.erfc, np.concatenate([spread(-6, 6), spread(0, 27)]), 4),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), np.concatenate([spread(-26, 10), scales(1e-10, 30)]), 6),
    "erfinv": (mp.erfinv, np.concatenate([spread(-1, 1), 1 - scales(1e-16, 0.3), scales(1e-300, 1e-3)]), 4),
    "i0e": (scaled_bessel(mp.besseli, 0, -1), BESSEL, 5),
    "i1e": (scaled_bessel(mp.besseli, 1, -1), beyond(BESSEL), 5),
    "k0e": (scaled_bessel(mp.besselk, 0, 1), BESSEL, 10),
    "k1e": (scaled_bessel(mp.besselk, 1, 1), BESSEL, 10),
    "expi": (mp.ei, np.concatenate([-scales(1e-3, 700), spread(0.5, 60), scales(40, 700)]), 12),
    "exp1": (mp.e1, scales(1e-3, 700), 12),
    "spence": (lambda x: mp.polylog(2, 1 - x), np.concatenate([spread(0, 3), scales(1, 1e10), scales(1e-300, 1)]), 6),
    "lambertw": (lambda x: mp.lambertw(x).real, np.concatenate([spread(-0.3, 5), scales(1, 1e308)]), 4),
}


def ulps(got: np.ndarray, exact: list[Any], scale: list[Any] | None = None) -> np.ndarray:
    """Errors in units in the last place of float64, at ``scale`` where that is given."""
    return np.array(
        [
            float(abs(mp.mpf(float(v)) - w) / mp.mpf(float(np.spacing(float(abs(s))))))
            for v, w, s in zip(got, exact, scale or exact, strict=True)
        ]
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ONE)
def test_errors_are_within_what_is_stated(name: str) -> None:
    reference, x, bound = ONE[name]
    error = ulps(getattr(hf.special, name)(x).numpy(), [reference(mp.mpf(float(v))) for v in x])
    assert error.max() <= bound, x[int(np.argmax(error))]


@pytest.mark.parametrize("name", ONE)
def test_results_in_float32_are_those_of_float64_rounded_once(name: str) -> None:
    x = ONE[name][1].astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        wide = getattr(hf.special, name)(x.astype(np.float64)).numpy().astype(np.float32)
    got = getattr(hf.special, name)(x)
    assert got.dtype == np.float32
    assert same_bits(got.numpy(), wide)


@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions_with_zeros(order: int) -> None:
    x = BESSEL
    exact = [mp.besselj(order, float(v)) for v in x]
    scale = [max(abs(w), mp.sqrt(2 / (mp.pi * float(v))) if v > 2 else abs(w)) for v, w in zip(x, exact)]
    function = getattr(hf.special, f"j{order}")
    assert ulps(function(x).numpy(), exact, scale).max() <= 6
    assert same_bits(function(-x).numpy(), -function(x).numpy() if order else function(x).numpy())


@pytest.mark.parametrize("name", ["gammaln", "digamma"])
def test_reflected_arguments(name: str) -> None:
    """The error is relative to the larger of two parts, of which log(pi) or pi is a small one."""
    x = -scales(1e-3, 30)
    reference = ONE[name][0]
    exact = [reference(mp.mpf(float(v))) for v in x]
    assert ulps(getattr(hf.special, name)(x).numpy(), exact, [max(abs(w), 2) for w in exact]).max() <= 30


def test_inverses() -> None:
    p = np.concatenate([scales(1e-300, 0.4), spread(0.1, 0.9)])
    for inverse, function in (("erfcinv", "erfc"), ("ndtri", "ndtr")):
        x = getattr(hf.special, inverse)(p)
        again = getattr(hf.special, function)(x).numpy()
        # What one unit in the last place of x changes is x**2 times as much of p.
        assert np.all(np.abs(again - p) <= 4e-16 * p * (4 + 4 * x.numpy() ** 2))
    x = spread(-6, 6)
    np.testing.assert_allclose(hf.special.logit(hf.special.expit(x)).numpy(), x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        hf.special.logit(0.5 + beyond(scales(1e-15, 0.2))).numpy(), 4 * beyond(scales(1e-15, 0.2)), rtol=0.2
    )


@pytest.mark.parametrize("x", [-40.0, -30.0, -5.0, -1.0, 0.0, 1.0, 5.0, 8.0, 20.0, 37.0])
def test_log_ndtr(x: float) -> None:
    exact = mp.log(mp.ncdf(x)) if x < 1 else mp.log1p(-mp.ncdf(-x))
    assert float(hf.special.log_ndtr(hf.asarray(x, dtype="float64")).numpy()) == pytest.approx(float(exact), rel=1e-14)


def test_incomplete_gamma() -> None:
    a = np.concatenate([scales(1e-10, 1, 20), scales(1e-2, 300, 40), scales(300, 1e6, 10)])
    x = a * scales(0.2, 5, a.size)
    x[-10:] = a[-10:] + np.sqrt(a[-10:]) * spread(-6, 6, 10)
    for name, ends in (("gammainc", (0, None)), ("gammaincc", (None, mp.inf))):
        got = getattr(hf.special, name)(a, x).numpy()
        for v, p, q in zip(got, map(float, a), map(float, x)):
            low, high = (q if end is None else end for end in ends)
            exact = mp.gammainc(p, low, high, regularized=True)
            assert exact < 1e-290 or abs(mp.mpf(float(v)) - exact) <= 4e-13 * exact, (name, p, q)


def test_incomplete_gamma_of_huge_parameters() -> None:
    """Against Temme's uniform expansion in forty digits, with one term more."""
    a = np.repeat([1.01e10, 3e12, 1e15], 6)
    x = a + np.sqrt(a) * np.tile([-6.0, -2.0, -0.3, 0.7, 5.0, 30.0], 3)
    lower, upper = hf.special.gammainc(a, x).numpy(), hf.special.gammaincc(a, x).numpy()
    for p, q, below, above in zip(a, x, lower, upper):
        mu = (mp.mpf(q) - mp.mpf(p)) / mp.mpf(p)
        eta = mp.sign(mu) * mp.sqrt(2 * (mu - mp.log1p(mu)))
        second = 1 / eta**3 - 1 / mu**3 - 1 / mu**2 - 1 / (12 * mu)
        rest = mp.exp(-p * eta**2 / 2) / mp.sqrt(2 * mp.pi * p) * (1 / mu - 1 / eta + second / p)
        root = eta * mp.sqrt(mp.mpf(p) / 2)
        assert abs(above - (mp.erfc(root) / 2 + rest)) <= 1e-11 * above, (p, q)
        assert abs(below - (mp.erfc(-root) / 2 - rest)) <= 1e-11 * below, (p, q)
    ends = hf.asarray([[1e100, 1.0], [1e200, 1e100], [1e300, 1e300], [1e308, 1.7e308]], dtype="float64")
    assert hf.special.gammainc(ends[:, 0], ends[:, 1]).tolist() == [0.0, 0.0, 0.5, 1.0]


def test_slopes_to_huge_parameters_of_gammainc() -> None:
    """Against differences of the expansion that the values are tested against, of which mpmath has the digits."""
    a = np.repeat([1.01e10, 3e12, 1e15, 1e20], 7)
    x = a + np.sqrt(a) * np.tile([-20.0, -6.0, -2.0, -0.3, 0.7, 5.0, 30.0], 4)

    def lower(p: Any, q: float) -> Any:
        mu = (mp.mpf(q) - p) / p
        eta = mp.sign(mu) * mp.sqrt(2 * (mu - mp.log1p(mu)))
        second = 1 / eta**3 - 1 / mu**3 - 1 / mu**2 - 1 / (12 * mu)
        rest = mp.exp(-p * eta**2 / 2) / mp.sqrt(2 * mp.pi * p) * (1 / mu - 1 / eta + second / p)
        return mp.erfc(-eta * mp.sqrt(p / 2)) / 2 - rest

    slopes = hf.grad(lambda a: hf.sum(hf.special.gammainc(a, hf.asarray(x))))(hf.asarray(a)).numpy()
    with mp.workdps(300):
        for p, q, got in zip(a, x, slopes):
            step = mp.mpf(p) * mp.mpf(10) ** -40
            exact = (lower(p + step, q) - lower(p - step, q)) / (2 * step)
            assert abs(got - exact) <= 1e-11 * abs(exact), (p, q)
    ends = hf.asarray([[1e12, 1e11], [1e12, 1e13], [1e300, 1.0], [1e300, 1e300], [1e12, 0.0]], dtype="float64")
    at_ends = hf.grad(lambda a: hf.sum(hf.special.gammainc(a, ends[:, 1])))(ends[:, 0]).numpy()
    np.testing.assert_allclose(at_ends, [0, 0, 0, -3.989422804014327e-151, 0], rtol=1e-12)


def test_neighbours_of_huge_parameters_have_their_slopes() -> None:
    a, x = (hf.asarray(values, dtype="float64") for values in ([1e12, 1e12, 2.0], [1e12, 1e11, 1.0]))
    assert hf.special.gammainc(a, x).numpy()[2] == pytest.approx(float(mp.gammainc(2, 0, 1)), rel=1e-14)
    slope = hf.grad(lambda a: hf.sum(hf.special.gammainc(a, x)))(a).numpy()
    exact = float(mp.diff(lambda p: mp.gammainc(p, 0, 1, regularized=True), 2))
    assert slope[0] == pytest.approx(-1 / np.sqrt(2e12 * np.pi), rel=1e-5)
    assert slope[1] == 0.0 and slope[2] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("name", ["gamma", "gammaln", "digamma", "erfinv", "expi", "gammainc"])
def test_a_result_does_not_depend_on_its_neighbours(name: str) -> None:
    """Of which some take code that the others skip."""
    x = np.array([0.3, 0.9999999, 9.5, -2.5, 1e-20, 60.0, -0.5, NAN, 3.5, 1e12, 0.1, -INF, 2.5])
    if name == "gammainc":
        x = np.abs(x)
    operands = (x, x[::-1]) if name == "gammainc" else (x,)
    function = getattr(hf.special, name)
    whole = function(*[hf.asarray(v) for v in operands]).numpy()
    for k in range(x.size):
        assert same_bits(function(*[hf.asarray(v[k : k + 1].copy()) for v in operands]).numpy()[0], whole[k]), k


def test_incomplete_beta() -> None:
    a, b = scales(1e-3, 300, 60), scales(1e-3, 300, 60)[::-1].copy()
    x = np.clip(a / (a + b) * scales(0.5, 2, 60), 1e-6, 1 - 1e-6)
    got = hf.special.betainc(a, b, x).numpy()
    for v, p, q, z in zip(got, a, b, x):
        exact = mp.betainc(float(p), float(q), 0, float(z), regularized=True)
        assert abs(mp.mpf(float(v)) - exact) <= 1e-12 * exact, (p, q, z)


def test_derivatives_to_the_parameters_of_incomplete_functions() -> None:
    a, b, x = (hf.asarray(v, dtype="float64") for v in ([0.3, 2.5, 20.0], [1.5, 0.7, 9.0], [0.2, 0.6, 0.7]))
    step = mp.mpf(10) ** -12
    with hf.GradientTape() as tape:
        tape.watch([a, b, x])
        total = hf.sum(hf.special.gammainc(a, 10.0 * x)) + hf.sum(hf.special.betainc(a, b, x))
    for gradient, which in zip(tape.gradient(total, [a, b]), (0, 1)):
        for k in range(3):
            p, q, z = (mp.mpf(float(v.numpy()[k])) for v in (a, b, x))

            def value(move: Any, p: Any = p, q: Any = q, z: Any = z, which: int = which) -> Any:
                p, q = (p + move, q) if which == 0 else (p, q + move)
                return mp.gammainc(p, 0, 10 * z, regularized=True) + mp.betainc(p, q, 0, z, regularized=True)

            exact = (value(step) - value(-step)) / (2 * step)
            assert float(gradient.numpy()[k]) == pytest.approx(float(exact), rel=1e-9)


TWO: dict[str, Callable[[Any, Any], Any]] = {
    "xlogy": lambda x, y: x * mp.log(y),
    "xlog1py": lambda x, y: x * mp.log1p(y),
    "rel_entr": lambda x, y: x * mp.log(x / y),
    "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
    "beta": mp.beta,
    "betaln": lambda x, y: mp.log(mp.beta(x, y)),
    "zeta": lambda x, y: mp.zeta(1 + x, y),
}


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_operands(name: str) -> None:
    x, y = spread(0.2, 9), spread(0.2, 9)[::-1].copy()
    got = getattr(hf.special, name)(x + (name == "zeta"), y).numpy()
    exact = [float(TWO[name](mp.mpf(float(p)), mp.mpf(float(q)))) for p, q in zip(x, y)]
    np.testing.assert_allclose(got, exact, rtol=1e-12, atol=1e-13)


def test_the_beta_function_of_large_operands() -> None:
    for x, y in ((0.5, 1e8), (3.0, 1e12), (20.0, 25.0), (1e-10, 1e6)):
        exact = mp.log(mp.gamma(x)) + mp.loggamma(y) - mp.loggamma(mp.mpf(x) + y)
        got = float(hf.special.betaln(hf.asarray(x, dtype="float64"), y).numpy())
        assert got == pytest.approx(float(exact), rel=2e-14)


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "gamma": [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (-INF, NAN), (172.0, INF), (-200.5, 0.0)],
    "gammaln": [(0.0, INF), (-0.0, INF), (-3.0, INF), (1.0, 0.0), (2.0, 0.0), (INF, INF), (-INF, INF), (1e306, INF)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1.0, NAN), (INF, INF)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0), (30.0, 0.0)],
    "erfcx": [(INF, 0.0), (-INF, INF), (0.0, 1.0), (-30.0, INF)],
    "erfinv": [(1.0, INF), (-1.0, -INF), (1.5, NAN), (0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324)],
    "erfcinv": [(0.0, INF), (2.0, -INF), (-0.5, NAN), (2.5, NAN), (1.0, 0.0)],
    "i0e": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "i1e": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0)],
    "j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0)],
    "k0e": [(0.0, INF), (-1.0, NAN), (INF, 0.0)],
    "k1e": [(0.0, INF), (-1.0, NAN), (INF, 0.0)],
    "expi": [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, -0.0)],
    "exp1": [(0.0, INF), (-1.0, NAN), (INF, 0.0)],
    "spence": [(1.0, 0.0), (0.0, math.pi**2 / 6), (-1.0, NAN)],
    "lambertw": [(0.0, 0.0), (-0.0, -0.0), (-0.5, NAN), (INF, INF)],
    "entr": [(0.0, 0.0), (-1.0, -INF)],
    "exprel": [(0.0, 1.0), (INF, INF), (-INF, 0.0)],
    "sinc": [(0.0, 1.0)],
    "logit": [(0.0, -INF), (1.0, INF), (2.0, NAN), (0.5, 0.0)],
    "ndtr": [(INF, 1.0), (-INF, 0.0), (0.0, 0.5)],
    "log_ndtr": [(INF, 0.0), (-INF, -INF)],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, dtype: str) -> None:
    x, expected = (np.array(column, dtype) for column in zip(*SPECIAL[name], (NAN, NAN)))
    got = getattr(hf.special, name)(x).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    zero = expected == 0
    if name not in ("log_ndtr", "gammaln", "gamma"):
        assert same_bits(np.signbit(got[zero]), np.signbit(expected[zero]))


ALL = sorted(set(hf.special.__all__) - {"softmax", "log_softmax", "logsumexp", "polygamma", "multigammaln"})


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ALL)
def test_compiled_code_has_the_bits_of_eager_calls(name: str, threads: int) -> None:
    function = getattr(hf.special, name)
    count = 3 if name == "betainc" else 2 if name in (*TWO, "gammainc", "gammaincc") else 1
    rng = np.random.default_rng(1)
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(threads)
    try:
        for shape in ((5000,), (3, 1, 7), (0,), ()):
            arrays = [hf.asarray(rng.normal(size=shape) * 3, dtype="float32") for _ in range(count)]
            assert same_bits(hf.function(function)(*arrays).numpy(), function(*arrays).numpy())
        edges = [hf.asarray(np.roll(EDGES, k)) for k in range(count)]
        assert same_bits(hf.function(function)(*edges).numpy(), function(*edges).numpy())
        open_extent = hf.function(function, input_signature=[hf.TensorSpec([None], "float64")] * count)
        assert same_bits(open_extent(*edges).numpy(), function(*edges).numpy())
    finally:
        hf.config.set_num_threads(before)


def test_polygamma_and_multigammaln() -> None:
    x = spread(0.1, 20)
    for n in range(5):
        exact = [float(mp.psi(n, float(v))) for v in x]
        np.testing.assert_allclose(hf.special.polygamma(n, x).numpy(), exact, rtol=1e-12)
    with pytest.raises(hf.errors.ArgumentError, match="n is -1"):
        hf.special.polygamma(-1, x)
    with pytest.raises(hf.errors.ArgumentError, match="d is 0"):
        hf.special.multigammaln(x, 0)
    exact = [float(3 * mp.log(mp.pi) / 2 + sum(mp.loggamma(float(v) - k / mp.mpf(2)) for k in range(3))) for v in x + 2]
    np.testing.assert_allclose(hf.special.multigammaln(x + 2, 3).numpy(), exact, rtol=1e-13, atol=1e-13)


def test_integers_become_float32_and_operands_broadcast() -> None:
    assert hf.special.gammaln([1, 2, 3]).dtype == np.float32
    assert hf.special.betainc([[1], [2]], [1, 2, 3], 0.5).shape == (2, 3)
    with pytest.raises(hf.errors.ShapeError, match="do not broadcast"):
        hf.special.gammainc([1.0, 2.0], [1.0, 2.0, 3.0])


def test_second_derivatives_that_nobody_knows_are_refused() -> None:
    a = hf.asarray(2.0)
    with hf.GradientTape() as outer:
        outer.watch(a)
        with hf.GradientTape() as inner:
            inner.watch(a)
            value = hf.special.gammainc(a, 1.0)
        first = inner.gradient(value, a)
    with pytest.raises(hf.errors.GradientError, match="no derivative"):
        outer.gradient(first, a)


def test_vmap_and_jvp() -> None:
    x = hf.asarray(spread(0.2, 3, 6).reshape(2, 3), dtype="float64")
    assert same_bits(hf.vmap(hf.special.gammaln)(x).numpy(), hf.special.gammaln(x).numpy())
    _, tangent = hf.jvp(hf.special.gammaln, (x,), (hf.ones_like(x),))
    np.testing.assert_allclose(tangent.numpy(), hf.special.digamma(x).numpy(), rtol=1e-14)


def test_extremes() -> None:
    """Quotients and sums that overflow on the way, infinite operands, and derivatives of digamma left of 0."""
    huge = np.float32(1e38)
    assert hf.special.rel_entr(np.float64(1e300), 1e-10).item() == pytest.approx(
        1e300 * math.log(1e300) - 1e300 * math.log(1e-10)
    )
    assert hf.special.rel_entr(np.float32(1e-10), huge).item() == pytest.approx(-1.1052409e-08)
    assert hf.special.betaln(huge, huge).item() == pytest.approx(-2e38 * math.log(2))
    assert hf.special.betaln([1.0, 20.0], INF).tolist() == [-INF, -INF] and hf.special.beta(2.0, INF).item() == 0.0
    assert hf.special.ndtri(0.5).numpy().tobytes() == np.float32(0).tobytes()
    for a, b in ((11.0, 10.5), (30.0, 1e5), (1e10, 1e3), (12.0, 12.0)):
        expected = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
        assert hf.special.betaln(np.float64(a), b).item() == pytest.approx(float(expected), rel=1e-14)
    x = np.array([-0.5, -2.3, -10.25, -1e-3])
    for n in (2, 3, 5):
        expected = [float(mp.psi(n, v)) for v in x]
        np.testing.assert_allclose(hf.special.polygamma(n, x).numpy(), expected, rtol=1e-11)
        slope = hf.grad(lambda x, n=n: hf.sum(hf.special.polygamma(n, x)))(hf.asarray(x))
        np.testing.assert_allclose(slope.numpy(), [float(mp.psi(n + 1, v)) for v in x], rtol=1e-10)
