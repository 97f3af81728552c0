"""Activations, normalisations, dropout and losses against plain NumPy, with extreme inputs and gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5)) * 3
EDGES = np.array([0.0, -0.0, 1e-8, -1e-8, 3.0, -3.0, 6.0, 50.0, -50.0, 1000.0, -1000.0, np.inf, -np.inf, np.nan])


def erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def softplus(x):
    return np.logaddexp(x, 0)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": softplus,
    "log_sigmoid": lambda x: -softplus(-x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}


@pytest.mark.parametrize("dtype, rtol", [("float32", 3e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, dtype, rtol):
    x = np.concatenate([X.ravel(), EDGES]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = ACTIVATIONS[name](x.astype(np.float64))
    ours = getattr(hf.nn, name)(x)
    assert ours.dtype == np.dtype(dtype)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n not in ("relu", "relu6")])
def test_activations_take_integers(name):
    assert getattr(hf.nn, name)([1, 2]).dtype == np.float32


def test_relu_of_integers_and_its_gradient():
    assert hf.nn.relu([-1, 2]).tolist() == [0, 2] and hf.nn.relu([-1, 2]).dtype == np.int64
    v = hf.Variable([-1.0, 0.0, 2.0, 6.0, 7.0])
    with hf.GradientTape(persistent=True) as tape:
        y, z = hf.nn.relu(v), hf.nn.relu6(v)
    assert tape.gradient(y, v).tolist() == [0, 0, 1, 1, 1]
    assert tape.gradient(z, v).tolist() == [0, 0, 1, 0, 0]


def test_gelu_by_tanh():
    expected = 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(hf.nn.gelu(X, approximate=True).numpy(), expected, rtol=1e-12, atol=1e-14)


def test_smooth_gradients_at_zero():
    v = hf.Variable([0.0])
    for function, slope in ((hf.nn.softplus, 0.5), (hf.nn.log_sigmoid, 0.5), (hf.nn.gelu, 0.5), (hf.nn.silu, 0.5)):
        with hf.GradientTape() as tape:
            y = function(v)
        assert tape.gradient(y, v).tolist() == [slope]


@pytest.mark.parametrize("axis", [0, -1, (0, 1)])
def test_softmax(axis):
    powers = np.exp(X)
    expected = powers / powers.sum(axis, keepdims=True)
    np.testing.assert_allclose(hf.nn.softmax(X, axis).numpy(), expected, rtol=1e-13)
    np.testing.assert_allclose(hf.nn.log_softmax(X, axis).numpy(), np.log(expected), rtol=1e-12)


def test_softmax_of_extremes():
    x = np.array([[1e30, 0.0, -1e30], [-np.inf, 2.0, 2.0], [1000.0, 999.0, -1000.0]], np.float32)
    ours = hf.nn.softmax(x).numpy()
    np.testing.assert_allclose(ours, [[1, 0, 0], [0, 0.5, 0.5], [0.7310586, 0.26894143, 0]], rtol=1e-6)
    assert hf.nn.log_softmax(x).numpy()[2, 2] == pytest.approx(-2000.3132617)
    assert hf.nn.softmax(hf.ones((3,), hf.float16)).dtype == np.float16
    many = hf.nn.softmax(hf.zeros((70000,), hf.float16))
    assert many.numpy().astype(np.float64).sum() == pytest.approx(1, abs=0.05)
    with pytest.raises(errors.ShapeError, match="axis 2"):
        hf.nn.softmax(x, axis=2)


def test_softmax_gradient():
    v = hf.Variable(X)
    weights = hf.asarray(RNG.standard_normal(X.shape))
    with hf.GradientTape() as tape:
        out = hf.sum(hf.nn.softmax(v) * weights)
    s, w = hf.nn.softmax(v).numpy(), weights.numpy()
    np.testing.assert_allclose(tape.gradient(out, v).numpy(), s * (w - (s * w).sum(-1, keepdims=True)), rtol=1e-9)


def test_normalisations():
    mean, var = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
    scale, offset = RNG.standard_normal(5), RNG.standard_normal(5)
    normal = (X - mean) / np.sqrt(var + 1e-5)
    np.testing.assert_allclose(hf.nn.layer_norm(X).numpy(), normal, rtol=1e-10)
    np.testing.assert_allclose(hf.nn.layer_norm(X, scale, offset).numpy(), normal * scale + offset, rtol=1e-10)
    over_all = (X - X.mean()) / np.sqrt(X.var() + 1e-3)
    np.testing.assert_allclose(hf.nn.layer_norm(X, axis=(0, 1), epsilon=1e-3).numpy(), over_all, rtol=1e-10)
    rms = X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(hf.nn.rms_norm(X, scale).numpy(), rms * scale, rtol=1e-10)
    unit = X / np.linalg.norm(X, axis=-1, keepdims=True)
    np.testing.assert_allclose(hf.nn.l2_normalize(X).numpy(), unit, rtol=1e-10)
    assert hf.nn.l2_normalize(hf.zeros((3,))).tolist() == [0, 0, 0]
    assert hf.nn.layer_norm(hf.full((4,), 300.0).astype(hf.float16), hf.ones((4,))).dtype == np.float16
    m, v = hf.nn.moments(X, 0)
    np.testing.assert_allclose((m.numpy(), v.numpy()), (X.mean(0), X.var(0)), rtol=1e-10)


def test_dropout():
    x = hf.ones((100, 100))
    y = hf.nn.dropout(x, 0.25, generator=hf.random.Generator(1))
    values = y.numpy()
    assert set(np.unique(values)) == {0, np.float32(1 / 0.75)} and abs((values == 0).mean() - 0.25) < 0.02
    assert hf.nn.dropout(x, 0.25, generator=hf.random.Generator(1)).tolist() == y.tolist()
    assert hf.nn.dropout(x, 0.5, seed=(1, 2)).tolist() == hf.nn.dropout(x, 0.5, seed=(1, 2)).tolist()
    for same in (hf.nn.dropout(x, 0.5, training=False), hf.nn.dropout(x, 0)):
        assert same is not x and same.tolist() == x.tolist()
    assert hf.nn.dropout(hf.full((50,), np.nan), 0.5, seed=(0, 0)).numpy().tolist().count(0) > 5
    v = hf.Variable(np.ones(1000))
    with hf.GradientTape() as tape:
        y = hf.nn.dropout(v, 0.5, seed=(3, 4))
    np.testing.assert_array_equal(tape.gradient(y, v).numpy(), np.where(y.numpy() != 0, 2.0, 0.0))
    hf.random.set_seed(5)
    step = hf.function(lambda x: hf.nn.dropout(x, 0.5))
    first, second = step(x).tolist(), step(x).tolist()
    assert first != second
    hf.random.set_seed(5)
    assert hf.nn.dropout(x, 0.5).tolist() == first
    for rate in (1.0, -0.1, "a"):
        with pytest.raises(errors.ArgumentError, match="rate"):
            hf.nn.dropout(x, rate)


# ---- losses

LABELS = RNG.integers(0, 5, 6)
ONE_HOT = np.eye(5)[LABELS]


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize("reduction, fold", [("mean", np.mean), ("sum", np.sum), ("none", lambda x: x)])
def test_losses(reduction, fold):
    y = RNG.standard_normal(X.shape)
    error = np.abs(y - X)
    cases = [
        (hf.losses.mean_squared_error, y, error**2),
        (hf.losses.mean_absolute_error, y, error),
        (hf.losses.huber, y, np.where(error <= 1, error**2 / 2, error - 0.5)),
        (hf.losses.sigmoid_cross_entropy, ONE_HOT, np.logaddexp(X, 0) - X * ONE_HOT),
        (hf.losses.softmax_cross_entropy, ONE_HOT, -(ONE_HOT * log_softmax(X)).sum(-1)),
        (hf.losses.softmax_cross_entropy, LABELS, -log_softmax(X)[np.arange(6), LABELS]),
    ]
    for loss, labels, expected in cases:
        np.testing.assert_allclose(loss(labels, X, reduction=reduction).numpy(), fold(expected), rtol=1e-11)


def test_softmax_cross_entropy_options():
    smooth = 0.9 * ONE_HOT + 0.1 / 5
    expected = -(smooth * log_softmax(X)).sum(-1).mean()
    for labels in (ONE_HOT, LABELS):
        ours = hf.losses.softmax_cross_entropy(labels, X, label_smoothing=0.1)
        assert ours.item() == pytest.approx(expected, rel=1e-12)
    ours = hf.losses.softmax_cross_entropy(LABELS, X.T, axis=0, reduction="none").numpy()
    np.testing.assert_allclose(ours, -log_softmax(X)[np.arange(6), LABELS], rtol=1e-11)
    weights = 2.0 * ONE_HOT
    ours = hf.losses.softmax_cross_entropy(weights, X, reduction="none").numpy()
    np.testing.assert_allclose(ours, -(weights * log_softmax(X)).sum(-1), rtol=1e-11)
    narrow = hf.asarray(X).astype(hf.bfloat16)
    assert hf.losses.softmax_cross_entropy(LABELS, narrow).dtype == hf.bfloat16


def test_cross_entropies_of_extremes():
    logits = np.array([[1000.0, -1000.0], [-1000.0, 1000.0]], np.float32)
    assert hf.losses.softmax_cross_entropy([0, 0], logits, reduction="none").tolist() == [0, 2000]
    assert hf.losses.sigmoid_cross_entropy([1.0, 0.0], [1000.0, -1000.0], reduction="none").tolist() == [0, 0]
    assert hf.losses.sigmoid_cross_entropy([0.0, 1.0], [1000.0, -1000.0], reduction="none").tolist() == [1000, 1000]


def test_gradients_of_losses():
    v = hf.Variable(X)
    with hf.GradientTape() as tape:
        loss = hf.losses.softmax_cross_entropy(LABELS, v)
    expected = (np.exp(log_softmax(X)) - ONE_HOT) / 6
    np.testing.assert_allclose(tape.gradient(loss, v).numpy(), expected, rtol=1e-9, atol=1e-12)
    with hf.GradientTape() as tape:
        loss = hf.losses.sigmoid_cross_entropy(ONE_HOT, v)
    expected = (1 / (1 + np.exp(-X)) - ONE_HOT) / X.size
    np.testing.assert_allclose(tape.gradient(loss, v).numpy(), expected, rtol=1e-9, atol=1e-12)
    w = hf.Variable([0.5, -0.5, 3.0, -3.0, 0.0])
    with hf.GradientTape() as tape:
        loss = hf.losses.huber(hf.zeros((5,)), w, reduction="sum")
    assert tape.gradient(loss, w).tolist() == [0.5, -0.5, 1, -1, 0]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: hf.losses.mean_squared_error(hf.ones((3,)), hf.ones((3, 1))),
            errors.ShapeError,
            "must have one shape",
        ),
        (lambda: hf.losses.softmax_cross_entropy(hf.ones((2, 3)), [1, 2]), errors.DTypeError, "Labels come first"),
        (lambda: hf.losses.softmax_cross_entropy([1], hf.ones((2, 3))), errors.ShapeError, "without axis 1"),
        (lambda: hf.losses.softmax_cross_entropy([0, 3], hf.ones((2, 3))), errors.IndexRangeError, "out of range"),
        (lambda: hf.losses.softmax_cross_entropy([1.0], hf.ones((1, 3))), errors.ShapeError, "shape of the logits"),
        (lambda: hf.losses.huber([1.0], [1.0], reduction="avg"), errors.ArgumentError, "'avg'"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=rf"{message}"):
        call()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1)])
def test_shares_of_nothing_are_nothing(name: str, axis: Any) -> None:
    f = getattr(hf.nn, name)
    for g in (lambda x: f(x, axis=axis), hf.grad(lambda x: hf.sum(f(x, axis=axis)))):
        for run in (g, hf.function(g)):
            assert run(hf.zeros((3, 0))).shape == (3, 0)
    compiled = hf.function(lambda x: f(x[2:]))
    for n in (5, 4, 3, 2, 6):
        assert compiled(hf.ones(n)).shape == (n - 2,)
