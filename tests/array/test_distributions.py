"""The distributions of hf.random: their functions, moments and frequencies, edge cases, and what is refused.

Everything is drawn from fixed seeds, so that a test passes always or never.
"""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

COUNT = 20_000


def philox(counter, key):
    """Philox-4x32-10 in Python integers, written from the paper, of four and two words."""
    low32 = 0xFFFFFFFF
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & low32, (p >> 32) ^ c[3] ^ k[1], p & low32]
        k = [(k[0] + 0x9E3779B9) & low32, (k[1] + 0xBB67AE85) & low32]
    return c


def test_the_reference_has_the_published_vectors():
    """The known answers that come with Random123."""
    ones = 0xFFFFFFFF
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([ones] * 4, [ones] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    assert philox(pi, [0xA4093822, 0x299F31D0]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_samplers_count_their_tries_in_the_high_half():
    """The first Poisson number below a mean of 10 is an inversion of one uniform, of the block of the first try."""
    words = philox([9, 0, 1, 0], [5, 0])
    u = (((words[1] << 32 | words[0]) >> 11) + 0.5) * 2.0**-53
    k, total = 0, math.exp(-3.0)
    chance = total
    while u >= total:
        k += 1
        chance *= 3.0 / k
        total += chance
    assert hf.random.Generator.from_state([5, 9]).poisson((), 3.0).item() == k


def distance(values, function):
    """Kolmogorov's and Smirnov's: the largest between the empirical distribution and ``function``, times sqrt(n)."""
    x = np.sort(np.asarray(values, np.float64))
    wanted = np.array([function(v) for v in x])
    steps = np.arange(len(x) + 1) / len(x)
    return max((steps[1:] - wanted).max(), (wanted - steps[:-1]).max()) * math.sqrt(len(x))


def phi(z):
    return math.erfc(-z / math.sqrt(2)) / 2


def gamma_function(a):
    """The distribution of gamma numbers by the series of the incomplete gamma function."""

    def function(x):
        if x <= 0:
            return 0.0
        term = total = 1 / a
        n = 0
        while term > total * 1e-12:
            n += 1
            term *= x / (a + n)
            total += term
        return min(1.0, total * math.exp(a * math.log(x) - x - math.lgamma(a)))

    return function


CONTINUOUS = {
    "uniform": (lambda g, d: g.uniform((COUNT,), -1.0, 3.0, d), lambda x: (x + 1) / 4),
    "normal": (lambda g, d: g.normal((COUNT,), 1.0, 2.0, d), lambda x: phi((x - 1) / 2)),
    "truncated": (
        lambda g, d: g.truncated_normal((COUNT,), 1.0, 2.0, d),
        lambda x: (phi((x - 1) / 2) - phi(-2)) / (phi(2) - phi(-2)),
    ),
    "exponential": (lambda g, d: g.exponential((COUNT,), 2.0, d), lambda x: 1 - math.exp(-2 * x)),
    "laplace": (
        lambda g, d: g.laplace((COUNT,), 1.0, 2.0, d),
        lambda x: math.exp((x - 1) / 2) / 2 if x < 1 else 1 - math.exp((1 - x) / 2) / 2,
    ),
    "gamma": (lambda g, d: g.gamma((COUNT,), 2.5, 2.0, d), lambda x: gamma_function(2.5)(2 * x)),
    "small gamma": (lambda g, d: g.gamma((COUNT,), 0.3, dtype=d), gamma_function(0.3)),
    "large gamma": (lambda g, d: g.gamma((COUNT,), 300.0, dtype=d), gamma_function(300.0)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, dtype):
    draw, function = CONTINUOUS[name]
    values = draw(hf.random.Generator(11), dtype)
    assert values.dtype == np.dtype(dtype)
    assert distance(values.numpy(), function) < 1.95  # a chance of one in a thousand
    assert abs(np.corrcoef(values.numpy()[1:], values.numpy()[:-1])[0, 1]) < 0.03


def chi_square(values, chance, least=5):
    """The statistic of Pearson's test over its degrees of freedom, rare values taken together."""
    values = np.asarray(values, np.int64)
    largest = int(values.max()) + 1
    wanted = np.array([chance(k) for k in range(largest)]) * len(values)
    found = np.bincount(values, minlength=largest).astype(float)
    common = wanted >= least
    cells = [*zip(found[common], wanted[common]), (found[~common].sum(), len(values) - wanted[common].sum())]
    terms = [(f - w) ** 2 / w for f, w in cells if w > 0.5]
    return sum(terms) / max(1, len(terms) - 1)


def poisson_chance(mean):
    return lambda k: math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))


def binomial_chance(n, p):
    def chance(k):
        if k > n:
            return 0.0
        ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))

    return chance


@pytest.mark.parametrize("mean", [0.1, 4.0, 9.99, 10.0, 30.0, 1000.0])
def test_poisson(mean):
    values = hf.random.Generator(3).poisson((COUNT,), mean).numpy()
    assert values.dtype == np.int64
    assert chi_square(values, poisson_chance(mean)) < 1.7
    assert abs(values.mean() - mean) < 4 * math.sqrt(mean / COUNT)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (10, 0.5), (100, 0.02), (21, 0.5), (100, 0.3), (1000, 0.97)])
def test_binomial(n, p):
    values = hf.random.Generator(4).binomial((COUNT,), n, p).numpy()
    assert values.min() >= 0 and values.max() <= n
    assert chi_square(values, binomial_chance(n, p)) < 1.7
    assert abs(values.mean() - n * p) < 4 * math.sqrt(n * p * (1 - p) / COUNT)


def test_large_means_keep_their_variance():
    g = hf.random.Generator(8)
    for mean in (1e6, 1e12, 1e15):
        z = (g.poisson((COUNT,), mean, hf.float64).numpy() - mean) / math.sqrt(mean)
        assert distance(z, phi) < 1.95
        z = (g.binomial((COUNT,), 2 * mean, 0.5, hf.float64).numpy() - mean) / math.sqrt(mean / 2)
        assert distance(z, phi) < 1.95
    z = g.gamma((COUNT,), 1e9, dtype=hf.float64).numpy()
    assert distance((z - 1e9) / math.sqrt(1e9), phi) < 1.95


def test_degenerate_parameters():
    g = hf.random.Generator(0)
    assert g.gamma((3,), 0.0).tolist() == [0, 0, 0]
    assert g.poisson((3,), 0.0).tolist() == [0, 0, 0]
    assert g.binomial((2,), 7, [0.0, 1.0]).tolist() == [0, 7]
    assert g.binomial((2,), 10**6, [0.0, 1.0]).tolist() == [0, 10**6]
    assert g.binomial((2,), 0, 0.5).tolist() == [0, 0]
    assert g.normal((3,), 2.0, 0.0).tolist() == [2, 2, 2]
    for empty in (g.gamma((0, 2)), g.poisson((0, 2)), g.normal((0, 2)), g.choice(5, (0, 2)), g.choice(0, (0, 2))):
        assert empty.shape == (0, 2)


@pytest.mark.parametrize("dtype", ["float16", hf.bfloat16, "float32", "float64"])
def test_dtypes(dtype):
    g = hf.random.Generator(2)
    for draw in (g.normal, g.truncated_normal, g.exponential, g.laplace, g.gamma, g.uniform):
        x = draw((5,), dtype=dtype)
        assert x.dtype == np.dtype(dtype) and np.isfinite(x.numpy().astype(np.float64)).all()


def test_truncated_normal_numbers_lie_within_two_deviations():
    for dtype in ("float32", "float64"):
        x = hf.random.Generator(2).truncated_normal((100_000,), dtype=dtype).numpy()
        assert 1.999 < abs(x).max() <= 2


def test_parameters_broadcast():
    g = hf.random.Generator(5)
    assert g.normal(mean=hf.zeros((3, 1)), stddev=hf.ones(4)).shape == (3, 4)
    independent = g.normal(mean=hf.zeros(3)).tolist()
    assert len(set(independent)) == 3
    means = np.array([[0.0, 1e6], [100.0, 3.0]])
    values = g.poisson((5000, 2, 2), means).numpy()
    np.testing.assert_allclose(values.mean(0), means, rtol=0.02)
    assert g.gamma((2, 3), [1.0, 2.0, 3.0], hf.ones((2, 1))).shape == (2, 3)
    with pytest.raises(errors.ShapeError, match=r"stddev is f32\[3\].*shape \(2,\)"):
        g.normal((2,), stddev=hf.ones(3))


def test_an_element_does_not_depend_on_its_neighbours():
    means = np.exp(np.linspace(-3, 9, 50))
    together = hf.random.Generator(1).poisson(None, means).numpy()
    for k in (0, 13, 31, 49):
        alone = hf.random.Generator.from_state([1, k]).poisson((), float(means[k]))
        assert alone.item() == together[k]


def test_integers_of_wide_ranges_are_equally_likely():
    values = hf.random.Generator(6).randint((COUNT,), 0, 3 * 2**62, dtype=hf.uint64).numpy()
    thirds = np.bincount((values >> np.uint64(62)).astype(int), minlength=3)
    assert (
        len(thirds) == 3 and abs(thirds - COUNT / 3).max() < 300
    )  # by a remainder the first would come twice as often


def test_categorical_by_many_classes():
    g = hf.random.Generator(7)
    chances = np.array([0.0, 3, 0, 0, 1, 4, 0, 2] * 4 + [0.0] * 5)
    with np.errstate(divide="ignore"):
        logits = np.log(chances)
    for given in (logits, logits.astype(np.float32), np.stack([logits, logits[::-1]])):
        values = g.categorical(given, (COUNT,)).numpy()
        first = values if given.ndim == 1 else values[:, 0]
        counts = np.bincount(first, minlength=len(chances))
        assert (counts[chances == 0] == 0).all()
        np.testing.assert_allclose(counts / COUNT, chances / chances.sum(), atol=0.01)
    assert g.categorical(np.array([1.0, np.inf, 3.0]), (50,)).tolist() == [1] * 50
    assert g.categorical([0.0] * 4, (3,), hf.int8).dtype == np.int8


def test_choice():
    g = hf.random.Generator(9)
    assert set(g.choice(4, (200,)).tolist()) == {0, 1, 2, 3}
    values = hf.asarray([10.0, 20.0, 30.0])
    assert sorted(g.choice(values, 3, replace=False).tolist()) == [10, 20, 30]
    assert g.choice(hf.reshape(hf.arange(6), (3, 2)), (4,)).shape == (4, 2)
    p = np.array([0.5, 0.0, 0.2, 0.3])
    counts = np.bincount(g.choice(4, (COUNT,), p=p).numpy(), minlength=4) / COUNT
    np.testing.assert_allclose(counts, p, atol=0.012)
    firsts = np.array([g.choice(4, 3, replace=False, p=p).tolist() for _ in range(1500)])
    assert all(set(row) == {0, 2, 3} for row in firsts.tolist())
    np.testing.assert_allclose(np.bincount(firsts[:, 0], minlength=4) / 1500, p, atol=0.04)
    # The second of two is drawn among those that are left.
    after = firsts[firsts[:, 0] == 0][:, 1]
    np.testing.assert_allclose(np.bincount(after, minlength=4) / len(after), [0, 0, 0.4, 0.6], atol=0.05)


def test_gradients_flow_through_parameters():
    g = hf.random.Generator(1)
    mean, scale = hf.Variable([1.0, -1.0]), hf.Variable(2.0)
    with hf.GradientTape() as tape:
        x = g.normal((5, 2), mean, scale)
        y = hf.sum(x)
    by_mean, by_scale = tape.gradient(y, [mean, scale])
    assert by_mean.tolist() == [5, 5]
    np.testing.assert_allclose(by_scale.item(), ((x - mean) / scale).numpy().sum(), rtol=1e-5)
    with hf.GradientTape(persistent=True) as tape:
        low, high = hf.Variable(1.0), hf.Variable(3.0)
        u = g.uniform((4,), low, high)
        gamma = hf.sum(g.gamma((4,), 2.0, scale))
    unit = (u.numpy() - 1) / 2
    np.testing.assert_allclose(tape.gradient(u, high).item(), unit.sum(), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(u, low).item(), (1 - unit).sum(), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(gamma, scale).item(), -gamma.item() / 2, rtol=1e-5)


DRAWS = {
    "truncated": lambda g: g.truncated_normal((7,), 1.0, 2.0, hf.float64),
    "laplace": lambda g: g.laplace((7,)),
    "gamma": lambda g: g.gamma((70,), np.linspace(0.1, 9, 70, dtype=np.float32)),
    "poisson": lambda g: g.poisson((70,), np.linspace(0.1, 90, 70)),
    "binomial": lambda g: g.binomial((70,), np.arange(70.0), 0.4),
    "wide": lambda g: g.randint((9,), 0, 2**40),
    "choice": lambda g: g.choice(9, (6,), replace=False),
    "weighted": lambda g: g.choice(40, (6,), p=np.arange(40)),
    "seeds": lambda g: g.make_seeds(3),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_one_stream_eagerly_traced_and_in_loops(draw):
    eager, mixed = hf.random.Generator(42), hf.random.Generator(42)
    traced = hf.function(lambda: draw(mixed))

    @hf.function
    def in_a_loop():
        return hf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, draw(mixed)), (0, draw(mixed)))[1]

    for step in range(3):
        expected = draw(eager).numpy()
        np.testing.assert_array_equal((traced() if step % 2 else draw(mixed)).numpy(), expected)
    expected = [draw(eager).numpy() for _ in range(4)][-1]
    np.testing.assert_array_equal(in_a_loop().numpy(), expected)
    assert eager.state.tolist() == mixed.state.tolist()


def test_words_at_any_place_of_a_row():
    """Rows whose length is no multiple of a block begin in the middle of one."""
    whole = hf.random.Generator(3).bits((7, 67))
    generator = hf.random.Generator(3)
    one = hf.function(lambda: generator.bits((7, 67))[:, 3:] + 0)
    wide = hf.random.Generator(3).bits((7 * 67,)).numpy().reshape(7, 67)
    np.testing.assert_array_equal(whole.numpy(), wide)
    np.testing.assert_array_equal(one().numpy(), wide[:, 3:])


def test_stateless_draws():
    functions = [
        lambda seed: hf.random.stateless_truncated_normal((5,), seed),
        lambda seed: hf.random.stateless_exponential((5,), seed),
        lambda seed: hf.random.stateless_laplace((5,), seed),
        lambda seed: hf.random.stateless_gamma((5,), seed, 2.0),
        lambda seed: hf.random.stateless_poisson((9,), seed, 100.0),
        lambda seed: hf.random.stateless_binomial((9,), seed, 1000, 0.5),
        lambda seed: hf.random.stateless_categorical([0.0] * 9, seed, (12,)),
        lambda seed: hf.random.stateless_choice(50, seed, (5,), replace=False),
        lambda seed: hf.random.stateless_shuffle(20, seed),
    ]
    for function in functions:
        assert len({tuple(function(seed).tolist()) for seed in ((0, 0), (0, 1), (1, 0))}) == 3
        assert hf.function(function)(hf.asarray([1, 2])).tolist() == function((1, 2)).tolist()


def test_seeds_from_seeds():
    rows = hf.random.split([1, 2], 4)
    assert rows.shape == (4, 2) and len({tuple(row) for row in rows.tolist()}) == 4
    folded = [tuple(hf.random.fold_in([1, 2], k).tolist()) for k in range(5)]
    assert len({*folded, *map(tuple, rows.tolist()), (1, 2)}) == 10
    traced = hf.function(lambda step: hf.random.fold_in([1, 2], step))
    assert tuple(traced(hf.asarray(3)).tolist()) == folded[3]
    for seed in (rows[0], hf.random.Generator(1).make_seeds(2)[:, 1]):
        assert hf.random.stateless_uniform((2,), seed).shape == (2,)
    with pytest.raises(errors.ArgumentTypeError, match="integer"):
        hf.random.fold_in([1, 2], 0.5)


def test_generators():
    one = hf.random.Generator.from_seed(7)
    one.normal((10,))
    two = hf.random.Generator.from_state(one.state)
    copies = [two, copy.deepcopy(one), pickle.loads(pickle.dumps(one)), hf.random.Generator.from_state([7, 5])]
    expected = one.normal((4,)).tolist()
    assert all(g.normal((4,)).tolist() == expected for g in copies)
    ahead = hf.random.Generator(7)
    ahead.skip(5)
    assert ahead.normal((4,)).tolist() == expected
    ahead.skip(-7)
    assert ahead.state.tolist() == [7, 0]
    entropy = [hf.random.Generator.from_non_deterministic_state() for _ in range(2)]
    assert entropy[0].state.tolist() != entropy[1].state.tolist()
    assert len({g.normal(()).item() for g in hf.random.Generator(1).split(3)}) == 3
    assert hf.random.Generator(1).make_seeds(3).shape == (2, 3)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda g: g.normal((2,), 0.0, -1.0), errors.ArgumentError, "stddev is -1.0"),
        (lambda g: g.normal((2,), 0.0, float("nan")), errors.ArgumentError, "stddev is nan"),
        (lambda g: g.laplace((2,), 0.0, -1.0), errors.ArgumentError, "scale is -1.0"),
        (lambda g: g.exponential((2,), -2.0), errors.ArgumentError, "rate is -2.0"),
        (lambda g: g.gamma((2,), -2.0), errors.ArgumentError, "alpha is -2.0"),
        (lambda g: g.gamma((2,), [1.0, -2.0]), errors.ArgumentError, "alpha holds"),
        (lambda g: g.gamma((2,), float("inf")), errors.ArgumentError, "alpha holds"),
        (lambda g: g.poisson((2,), [1.0, float("nan")]), errors.ArgumentError, "lam holds"),
        (lambda g: g.poisson((2,), 1.0, bool), errors.DTypeError, "bools"),
        (lambda g: g.binomial((2,), 3, 1.5), errors.ArgumentError, "outside"),
        (lambda g: g.binomial((2,), 2.5, 0.5), errors.ArgumentError, "whole"),
        (lambda g: g.gamma((2,), dtype=hf.int32), errors.DTypeError, "float"),
        (lambda g: g.categorical(hf.zeros((2, 0))), errors.ShapeError, "no class"),
        (
            lambda g: g.choice(3, (4,), replace=False),
            errors.ArgumentError,
            "4 elements cannot be chosen from 3 without",
        ),
        (lambda g: g.choice(0, (4,)), errors.ArgumentError, "4 elements cannot be chosen from 0"),
        (lambda g: g.choice(-2, (4,)), errors.ArgumentError, "from -2"),
        (lambda g: g.choice(hf.asarray(3.0), (4,)), errors.ShapeError, "no axis"),
        (lambda g: g.choice(3, (2,), p=[0.5, 0.5]), errors.ShapeError, "each of the 3"),
        (lambda g: g.choice(2, (2,), p=[1.5, -0.5]), errors.ArgumentError, "negative"),
        (lambda g: g.choice(2, (2,), replace=False, p=[1.0, 0.0]), errors.ArgumentError, "1 elements, and 2"),
        (lambda g: g.normal((2**62, 4)), errors.ShapeError, ""),
        (lambda g: hf.random.Generator.from_state([1, 2, 3, 4]), errors.ArgumentTypeError, "two integers"),
        (lambda g: g.skip(1.5), errors.ArgumentTypeError, "integer"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=rf"{message}.*test_distributions\.py"):
        call(hf.random.Generator(0))


def test_wrong_parameters_fail_in_compiled_functions_and_leave_the_state():
    g = hf.random.Generator(0)
    draw = hf.function(lambda alpha: g.gamma((3,), alpha))
    draw(hf.ones(3))
    before = g.state.tolist()
    with pytest.raises(errors.ArgumentError, match="alpha holds"):
        draw(hf.asarray([1.0, -1.0, 1.0]))
    assert g.state.tolist() == before
