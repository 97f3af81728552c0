"""Attention without heads, contractions, preparing layers and later losses, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers, losses
from tests.layers.test_layer import twos

RNG = np.random.default_rng(8)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("mode", ["dot", "concat", "additive"])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_attention(mode: str, scaled: bool, causal: bool, masked: bool) -> None:
    q, v, k = (RNG.standard_normal((2, n, 4)).astype("f4") for n in (3, 5, 5))
    mask = [np.array([[1, 1, 0], [1, 0, 0]], bool), np.array([[1, 1, 0, 1, 0], [1, 0, 0, 0, 0]], bool), None]
    layer: Any
    if mode == "additive":
        layer = layers.AdditiveAttention(use_scale=scaled)
    else:
        layer = layers.Attention(scaled, mode)
    given = [hf.asarray(one) for one in mask[:2]] if masked else None
    layer([q, v, k])
    weights = [RNG.standard_normal(w.shape).astype("f4") for w in layer.get_weights()]
    layer.set_weights(weights)
    factor = weights[0].astype(float) if scaled else 1.0
    if mode == "dot":
        scores = factor * np.einsum("bqe,bke->bqk", q, k, dtype=float)
    else:
        both = q[:, :, None].astype(float) + k[:, None]
        scores = (np.tanh(factor * both) if mode == "concat" else factor * np.tanh(both)).sum(-1)
        scores *= weights[-1] if mode == "concat" else 1.0
    seen = np.ones((2, 3, 5), bool) & (np.tril(np.ones((3, 5), bool)) if causal else True)
    seen &= mask[1][:, None] if masked else True  # type: ignore[index]
    shares = softmax(np.where(seen, scores, -np.inf))
    expected = shares @ v * (mask[0][..., None] if masked else 1.0)  # type: ignore[index]
    found, found_shares = layer([q, v, k], mask=given, use_causal_mask=causal, return_attention_scores=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found_shares, shares, rtol=1e-4, atol=1e-6)
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes", "shape", "of_weights"),
    [
        ("ab,bc->ac", 7, "c", (3, 4), [(4, 7), (7,)]),
        ("...x,xy->...y", 6, "y", (2, 3, 4), [(4, 6), (6,)]),
        ("...x,xy->...y", 6, None, (2, 4), [(4, 6)]),
        ("abc,cde->abde", (None, 2, 3), "de", (3, 5, 4), [(4, 2, 3), (2, 3)]),
        ("abc,cde->abde", (None, 2, 3), "d", (3, 5, 4), [(4, 2, 3), (2, 1)]),
        ("ab...,bc->ac...", 6, "c", (2, 3, 4), [(3, 6), (6, 1)]),
        ("abc,bd->adc", (6, 4), "d", (2, 3, 4), [(3, 6), (6, 1)]),
    ],
)
def test_contractions(equation: str, output_shape: Any, bias_axes: Any, shape: Any, of_weights: Any) -> None:
    layer = layers.EinsumDense(equation, output_shape, "tanh", bias_axes, bias_initializer="ones")
    x = RNG.standard_normal(shape)
    found = layer(x.astype("f4"))
    assert [v.shape for v in layer.variables] == of_weights
    expected = np.tanh(np.einsum(equation, x, layer.get_weights()[0].astype(float)) + (bias_axes is not None))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize(
    ("axis", "shape"), [(-1, (6, 4)), (None, (6, 4)), ((1, 2), (5, 2, 3)), (1, (5, 2, 3)), (-1, (5, 2, 3))]
)
def test_normalization(axis: Any, shape: Any) -> None:
    x = 1000 + 3 * RNG.standard_normal(shape)  # whose squares cancel
    axes = () if axis is None else (axis,) if isinstance(axis, int) else axis
    others = tuple(n for n in range(len(shape)) if n not in {a % len(shape) for a in axes})
    mean, deviation = x.mean(others, keepdims=True), x.std(others, keepdims=True)
    for data in (x, iter([x[:1], x[1:4], x[4:]])):
        layer = layers.Normalization(axis)
        layer.adapt(data)
        np.testing.assert_allclose(layer(x), (x - mean) / deviation, rtol=1e-3, atol=1e-3)
        assert not layer.trainable_variables
    own = [shape[a] for a in sorted(a % len(shape) for a in axes)]
    back = layers.Normalization(axis, mean.reshape(own), deviation.reshape(own) ** 2, invert=True)
    np.testing.assert_allclose(back((x - mean) / deviation), x, rtol=1e-5)


X = RNG.standard_normal((3, 4, 5)).astype("f4")
LAYERS: dict[str, tuple[Any, Any, Any]] = {
    "prelu": (lambda: layers.PReLU(twos), X, lambda x: np.where(x > 0, x, 2 * x)),
    "prelu shared": (lambda: layers.PReLU(twos, shared_axes=[1]), X, lambda x: np.where(x > 0, x, 2 * x)),
    "rescaling": (lambda: layers.Rescaling(2.0, -1), X, lambda x: 2 * x - 1),
    "bins": (lambda: layers.Discretization([-1.0, 0.0, 1]), X, lambda x: np.digitize(x, [-1, 0, 1])),
    "mean": (lambda: layers.GlobalAveragePooling3D(), X[None, ..., None], lambda x: x.mean((1, 2, 3))),
    "maximum": (
        lambda: layers.GlobalMaxPool3D("channels_first", keepdims=True),
        X[None, None],
        lambda x: x.max((2, 3, 4), keepdims=True),
    ),
    "one-hot": (lambda: layers.CategoryEncoding(4, "one_hot"), [[1], [3]], lambda x: np.eye(4)[x[:, 0].astype(int)]),
    "multi-hot": (lambda: layers.CategoryEncoding(3), [[0, 2, 2]], lambda x: np.array([[1, 0, 1]])),
    "counts": (lambda: layers.CategoryEncoding(3, "count"), [[0, 2, 2]], lambda x: np.array([[1, 0, 2]])),
    "alpha dropout": (lambda: layers.AlphaDropout(0.5), X, lambda x: x),
    "activity": (lambda: layers.ActivityRegularization(0.1), X, lambda x: x),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_what_numpy_calculates(name: str) -> None:
    make, x, reference = LAYERS[name]
    layer = make()
    found = layer(x)
    np.testing.assert_allclose(found, reference(np.asarray(x, float)), rtol=1e-5, atol=1e-6)
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()
    assert hf.function(layer)(x).numpy().tobytes() == found.numpy().tobytes()


def test_shared_slopes_are_one_weight() -> None:
    layer = layers.PReLU(shared_axes=[1])
    layer(X)
    assert [v.shape for v in layer.variables] == [(1, 5)]


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = RNG.standard_normal(40000).astype("f4")
    found = layers.AlphaDropout(0.4, seed=2)(x, training=True).numpy()
    assert abs(found.mean()) < 0.03 and abs(found.std() - 1) < 0.03
    _, counts = np.unique(found, return_counts=True)
    assert abs(counts.max() / len(x) - 0.4) < 0.02  # those that were dropped


def test_flips_are_of_whole_samples() -> None:
    x = np.arange(24.0, dtype="f4").reshape(4, 2, 3, 1).repeat(20, 0)
    found = layers.RandomFlip(seed=4)(x, training=True).numpy()
    kinds = set()
    for one, made in zip(x, found):
        ways = {"as it is": one, "sideways": one[:, ::-1], "upside down": one[::-1], "both": one[::-1, ::-1]}
        kinds.add(next(name for name, way in ways.items() if np.array_equal(way, made)))
    assert len(kinds) == 4


LOGITS = 2 * RNG.standard_normal((4, 5))
SHARES = softmax(LOGITS)
SIGMOID = 1 / (1 + np.exp(-LOGITS))
NUMBERS = np.array([1, 0, 4, 2])
ONE_HOT = np.eye(5)[NUMBERS]
RIGHT = ONE_HOT * SIGMOID + (1 - ONE_HOT) * (1 - SIGMOID)
SMOOTH = 0.8 * ONE_HOT + 0.2 / 5
SHARED = (ONE_HOT * SIGMOID).sum(-1)
LOSSES: dict[str, tuple[Any, Any, Any, np.ndarray]] = {
    "hinge": (
        losses.CategoricalHinge(),
        ONE_HOT,
        LOGITS,
        np.maximum(((1 - ONE_HOT) * LOGITS).max(-1) - LOGITS[range(4), NUMBERS] + 1, 0),
    ),
    "binary focal": (
        losses.BinaryFocalCrossentropy(),
        ONE_HOT,
        SIGMOID,
        (-((1 - RIGHT) ** 2) * np.log(RIGHT)).mean(-1),
    ),
    "balanced": (
        losses.BinaryFocalCrossentropy(True, 0.3, 1.5, from_logits=True),
        ONE_HOT,
        LOGITS,
        (-((1 - RIGHT) ** 1.5) * np.log(RIGHT) * np.where(ONE_HOT, 0.3, 0.7)).mean(-1),
    ),
    "focal": (
        losses.CategoricalFocalCrossentropy(0.5, 3.0, label_smoothing=0.2),
        ONE_HOT,
        3 * SHARES,
        -(SMOOTH * 0.5 * (1 - SHARES) ** 3 * np.log(SHARES)).sum(-1),
    ),
    "focal of logits": (
        losses.CategoricalFocalCrossentropy(from_logits=True),
        ONE_HOT,
        LOGITS,
        -(ONE_HOT * 0.25 * (1 - SHARES) ** 2 * np.log(SHARES)).sum(-1),
    ),
    "generalized": (
        losses.CategoricalGeneralizedCrossEntropy(0.7),
        NUMBERS,
        SHARES,
        (1 - SHARES[range(4), NUMBERS] ** 0.7) / 0.7,
    ),
    "dice": (losses.Dice(axis=-1), ONE_HOT, SIGMOID, 1 - 2 * SHARED / (1 + SIGMOID.sum(-1))),
    "tversky": (
        losses.Tversky(0.3, 0.8, axis=-1),
        ONE_HOT,
        SIGMOID,
        1 - SHARED / (SHARED + 0.3 * (1 - SHARED) + 0.8 * (SIGMOID.sum(-1) - SHARED)),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_what_numpy_calculates(name: str) -> None:
    loss, y, p, expected = LOSSES[name]
    p, y = p.astype("f4"), y.astype("f4") if y.dtype.kind == "f" else y
    each = type(loss).from_config(loss.get_config() | {"reduction": "none"})
    np.testing.assert_allclose(each(y, p), expected, rtol=1e-4, atol=1e-6)
    weights = np.array([1.0, 0.5, 0.0, 2.0])
    np.testing.assert_allclose(loss(y, p, sample_weight=weights), (expected * weights).mean(), rtol=1e-4)
    assert type(hf.losses.get({"class_name": type(loss).__name__, "config": loss.get_config()})) is type(loss)


@pytest.mark.parametrize(
    ("run", "kind", "text"),
    [
        (lambda: layers.EinsumDense("ab-bc", 3), errors.ArgumentError, "it must be like"),
        (lambda: layers.EinsumDense("ab,bc->ac", 3, bias_axes="x"), errors.ArgumentError, "bias_axes is 'x'"),
        (lambda: layers.EinsumDense("ab,bc->ac", 3)(np.ones((2, 3, 4))), errors.ShapeError, "einsum_dense.*another"),
        (lambda: layers.EinsumDense("ab,bc->ac", ())(np.ones((2, 3))), errors.ShapeError, "output_shape is"),
        (lambda: layers.Attention()(np.ones((2, 3, 4))), errors.ArgumentError, "a list of query and value"),
        (lambda: layers.Attention(score_mode="sum"), errors.ArgumentError, "score_mode"),
        (lambda: layers.Normalization(mean=1.0), errors.ArgumentError, "given both"),
        (lambda: layers.Normalization().adapt(iter([])), errors.ArgumentError, "empty"),
        (lambda: layers.Discretization([2.0, 1.0]), errors.ArgumentError, "that rise"),
        (lambda: layers.RandomFlip("sideways"), errors.ArgumentError, "mode is"),
        (lambda: losses.CategoricalGeneralizedCrossEntropy(1.5), errors.ArgumentError, "q is 1.5"),
    ],
)
def test_wrong_use(run: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        run()


def test_softmax_leaves_out_what_is_masked() -> None:
    x, mask = np.random.default_rng(5).standard_normal((3, 4, 5)).astype("f4"), np.arange(60).reshape(3, 4, 5) % 3 > 0
    for axis in (-1, 1):
        shares = np.exp(x) * mask
        expected = shares / shares.sum(axis, keepdims=True)
        np.testing.assert_allclose(layers.Softmax(axis)(x, mask=mask).numpy(), expected, rtol=1e-5)
    assert (layers.Softmax()(x, mask=mask[:, :, 0]).numpy() == layers.Softmax()(x).numpy()).all()
    half = layers.Softmax(dtype="float16")(x, mask=mask).numpy()
    assert half.dtype == np.float16 and (half[~mask] == 0).all()


@pytest.mark.parametrize("kind", [layers.RandomRotation, layers.RandomZoom])
def test_pictures_are_moved_each_by_itself_and_alike_when_compiled(kind: Any) -> None:
    x = np.broadcast_to(np.arange(48, dtype="f4").reshape(6, 8, 1), (4, 6, 8, 1))
    eager, compiled = kind(0.2, seed=3), kind(0.2, seed=3)
    wanted = [eager(x, training=True).numpy() for _ in range(2)]
    step = hf.function(lambda x: compiled(x, training=True))
    for one in wanted:
        np.testing.assert_array_equal(step(x), one)
    assert not np.array_equal(wanted[0], wanted[1]) and not np.array_equal(wanted[0][0], wanted[0][1])
    np.testing.assert_array_equal(eager(x, training=False), x)
    again = kind.from_config(eager.get_config())
    np.testing.assert_array_equal(again(x, training=True), wanted[0])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: layers.Resizing(0, 2), "height is 0"),
        (lambda: layers.Resizing(2, 2, "cubic"), "interpolation is 'cubic'"),
        (lambda: layers.RandomRotation((0.2, 0.1)), "factor is"),
        (lambda: layers.RandomTranslation(0.1, 0.1, fill_mode="wrap"), "fill_mode is 'wrap'"),
    ],
)
def test_what_layers_for_pictures_do_not_take(make: Any, text: str) -> None:
    with pytest.raises(errors.ArgumentError, match=text):
        make()
