"""Random numbers: the generator against its published test vectors, reproducibility, and the distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.array import random as generators

pytestmark = pytest.mark.code


def philox(seed, start, count):
    """Philox-4x32-10 in Python integers, written from the paper."""
    low32 = 0xFFFFFFFF
    words = []
    for block in range(-(-count // 4)):
        counter = (start + block) & (2**64 - 1)
        c = [counter & low32, counter >> 32, 0, 0]
        k = [seed & low32, seed >> 32]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(q >> 32) ^ c[1] ^ k[0], q & low32, (p >> 32) ^ c[3] ^ k[1], p & low32]
            k = [(k[0] + 0x9E3779B9) & low32, (k[1] + 0xBB67AE85) & low32]
        words += c
    return words[:count]


def test_the_reference_has_the_published_first_block():
    assert philox(0, 0, 4) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("seed", [0, 1, 2**40 + 7, 2**64 - 1])
def test_words_and_counter(seed):
    generator = hf.random.Generator(seed)
    drawn, counter = [], 0
    for shape in ((3,), (2, 2), (), (0,), (9,)):
        words = generator.bits(shape)
        assert words.dtype == np.uint32 and words.shape == shape
        assert words.numpy().ravel().tolist() == philox(seed, counter, words.size)
        counter += -(-words.size // 4)
        drawn.append(words)
    assert generator.state.tolist() == [seed, counter]


def test_the_counter_wraps_around():
    generator = hf.random.Generator(5)
    generator.state.assign(np.array([5, 2**64 - 1], np.uint64))
    assert generator.bits((8,)).tolist() == philox(5, 2**64 - 1, 8)
    assert generator.state.tolist() == [5, 1]


DRAWS = {
    "uniform": lambda g: g.uniform((5, 3)),
    "uniform64": lambda g: g.uniform((5, 3), -1, 2, dtype=hf.float64),
    "normal": lambda g: g.normal((7,), 1.0, 2.0),
    "bernoulli": lambda g: g.bernoulli(0.3, (9,)),
    "randint": lambda g: g.randint((6,), -5, 5, dtype=hf.int32),
    "permutation": lambda g: g.permutation(10),
    "shuffle": lambda g: g.shuffle(hf.arange(6)),
    "categorical": lambda g: g.categorical([0.1, 2.0, -1.0], (8,)),
    "exponential": lambda g: g.exponential((4,)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_one_stream_eagerly_and_traced(draw):
    eager, mixed = hf.random.Generator(42), hf.random.Generator(42)
    traced = hf.function(lambda: draw(mixed))
    for step in range(4):
        expected = draw(eager).numpy()
        np.testing.assert_array_equal((traced() if step % 2 else draw(mixed)).numpy(), expected)
    assert eager.state.tolist() == mixed.state.tolist()


def test_seeds():
    hf.random.set_seed(7)
    first, second = hf.random.normal((4,)), hf.random.normal((4,))
    hf.random.set_seed(7)
    assert hf.random.normal((4,)).tolist() == first.tolist()
    assert hf.random.normal((4,)).tolist() == second.tolist() != first.tolist()
    assert hf.random.Generator(7).normal((4,)).tolist() == first.tolist()
    generator = hf.random.Generator(8)
    generator.bits((5,))
    generator.reset(7)
    assert generator.normal((4,)).tolist() == first.tolist()
    assert repr(generator) == "<random.Generator seed=7 counter=2>"
    children = hf.random.Generator(1).split(3)
    assert len({tuple(g.bits((4,)).tolist()) for g in children}) == 3


def test_the_first_draw_of_all_may_happen_in_a_trace(monkeypatch):
    monkeypatch.setattr(generators, "_global", None)
    draw = hf.function(lambda: hf.random.uniform((2,)))
    assert draw().tolist() != draw().tolist()


def test_stateless():
    for function in (
        lambda seed: hf.random.stateless_uniform((5,), seed),
        lambda seed: hf.random.stateless_normal((5,), seed),
        lambda seed: hf.random.stateless_randint((5,), seed, 0, 1000),
        lambda seed: hf.random.stateless_permutation(20, seed),
        lambda seed: hf.random.stateless_bernoulli(0.5, seed, (40,)),
    ):
        drawn = {tuple(function(seed).tolist()) for seed in ((0, 0), (0, 1), (1, 0), (-1, 3))}
        assert len(drawn) == 4
        assert function((1, 2)).tolist() == function(hf.asarray([1, 2])).tolist()
        assert hf.function(function)(hf.asarray([1, 2])).tolist() == function((1, 2)).tolist()
    with pytest.raises(errors.ArgumentTypeError, match="two integers"):
        hf.random.stateless_uniform((2,), 3)


@pytest.mark.parametrize("dtype", ["float16", hf.bfloat16, "float32", "float64"])
def test_uniform(dtype):
    generator = hf.random.Generator(0)
    x = generator.uniform((20000,), dtype=dtype)
    values = x.numpy().astype(np.float64)
    assert x.dtype == np.dtype(dtype) and values.min() >= 0 and values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01 and abs(values.var() - 1 / 12) < 0.01
    counts = np.histogram(values, 16, (0, 1))[0]
    assert ((counts - 1250) ** 2 / 1250).sum() < 60
    narrow = generator.uniform((20000,), 1.0, 1.01, dtype=dtype).numpy()
    high = np.asarray(1.01).astype(x.dtype)
    assert (narrow >= 1).all() and ((narrow < high).all() or high == 1)


def test_uniform_has_all_its_digits():
    words = philox(3, 0, 8)
    assert hf.random.Generator(3).uniform((4,)).tolist() == [(w >> 8) / 2**24 for w in words[:4]]
    wide = [((words[4 + i] << 32 | words[i]) >> 11) / 2**53 for i in range(4)]
    assert hf.random.Generator(3).uniform((4,), dtype=hf.float64).tolist() == wide


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype):
    values = hf.random.Generator(0).normal((20000,), 3.0, 2.0, dtype=dtype).numpy()
    assert values.dtype == dtype and np.isfinite(values).all()
    z = (values - 3) / 2
    assert (
        abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.03 and abs((z**3).mean()) < 0.1 and abs((z**4).mean() - 3) < 0.2
    )
    assert abs((z < 1).mean() - 0.8413) < 0.01
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 0.03


def test_other_distributions():
    generator = hf.random.Generator(0)
    assert abs(generator.bernoulli(0.25, (10000,)).numpy().mean() - 0.25) < 0.02
    assert not generator.bernoulli(0.0, (100,)).numpy().any() and generator.bernoulli(1.0, (100,)).numpy().all()
    assert generator.bernoulli(hf.asarray([0.0, 1.0])).tolist() == [False, True]
    dice = generator.randint((12000,), 1, 7).numpy()
    assert dice.dtype == np.int64 and set(dice) == {1, 2, 3, 4, 5, 6}
    counts = np.bincount(dice)[1:]
    assert ((counts - 2000) ** 2 / 2000).sum() < 25
    assert set(generator.randint((200,), -128, 128, dtype=hf.int8).numpy()) <= set(range(-128, 128))
    assert generator.randint((3,), 5, 6).tolist() == [5, 5, 5]
    generator.randint((3,), -(2**63), 2**63)
    generator.randint((3,), 0, 2**64, dtype=hf.uint64)
    assert sorted(generator.permutation(50).tolist()) == list(range(50))
    rows = hf.reshape(hf.arange(30), (10, 3))
    assert sorted(generator.permutation(rows).tolist()) == rows.tolist()
    assert generator.permutation(0).shape == (0,)
    drawn = generator.categorical(np.log([0.2, 0.3, 0.5]), (10000,)).numpy()
    np.testing.assert_allclose(np.bincount(drawn) / 10000, [0.2, 0.3, 0.5], atol=0.02)
    assert generator.categorical([[0.0, -np.inf], [-np.inf, 0.0]], (5,)).tolist() == [[0, 1]] * 5
    assert abs(generator.exponential((10000,), rate=2.0).numpy().mean() - 0.5) < 0.02


def test_permutations_are_all_as_likely():
    generator = hf.random.Generator(0)
    orders = {}
    for _ in range(600):
        order = tuple(generator.permutation(3).tolist())
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 6 and sum((n - 100) ** 2 / 100 for n in orders.values()) < 25


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda g: g.uniform((2,), dtype=hf.int32), errors.DTypeError, "randint"),
        (lambda g: g.uniform((2,), 2.0, 1.0), errors.ArgumentError, "above maxval"),
        (lambda g: g.randint((2,), 3, 3), errors.ArgumentError, "empty"),
        (lambda g: g.randint((2,), 0, 300, dtype=hf.uint8), errors.ArgumentError, "does not fit uint8"),
        (lambda g: g.randint((2,), 0, 3, dtype=hf.float32), errors.DTypeError, "not an integer dtype"),
        (lambda g: g.bernoulli(1.5), errors.ArgumentError, "probability"),
        (lambda g: g.permutation(hf.asarray(3)), errors.ShapeError, "no axis"),
        (lambda g: g.permutation(-1), errors.ArgumentError, "-1 elements"),
        (lambda g: g.normal((-1,)), errors.ShapeError, "negative"),
        (lambda g: hf.random.Generator(1.5), errors.ArgumentTypeError, "seed"),
        (lambda g: g.categorical([1, 2]), errors.DTypeError, "floats"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=rf"{message}.*test_random\.py"):
        call(hf.random.Generator(0))


def test_bounds_of_integers_may_be_tensors() -> None:
    source = hf.random.Generator(3)

    def drawn(low: Any, high: Any) -> Any:
        return source.randint((64,), low, high, hf.int32)

    low, high = hf.asarray(-2, hf.int64), hf.asarray(5, hf.int32)
    found = drawn(low, high)
    assert found.dtype == hf.int32 and sorted(set(found.tolist())) == list(range(-2, 5))
    for again, ends in ((drawn, (-2, 5)), (hf.function(drawn), (low, high))):
        source = hf.random.Generator(3)
        assert again(*ends).tolist() == found.tolist()
    source = hf.random.Generator(3)
    each = hf.random.randint((50, 3), hf.asarray([0, 10, 20]), hf.asarray([1, 12, 23]))
    assert [sorted(set(column)) for column in each.numpy().T.tolist()] == [[0], [10, 11], [20, 21, 22]]
    for call in (drawn, hf.function(drawn)):
        with pytest.raises(hf.errors.DivisionError):
            call(high, low)
    with pytest.raises(hf.errors.DTypeError):
        drawn(0, hf.asarray(2.0))
