"""Layers: when weights are made, what training reaches, conversions, configurations, and wrong use."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers, losses
from hybridflow.core import layer_context

pytestmark = pytest.mark.every_python

EVERY = {
    "activation": (lambda: layers.Activation("tanh"), lambda x: np.tanh(x)),
    "relu": (lambda: layers.ReLU(), lambda x: np.maximum(x, 0)),
    "relu all": (
        lambda: layers.ReLU(1.0, 0.25, 0.5),
        lambda x: np.minimum(np.where(x > 0.5, x, 0.25 * (x - 0.5)), 1.0),
    ),
    "leaky": (lambda: layers.LeakyReLU(0.25), lambda x: np.where(x > 0, x, 0.25 * x)),
    "elu": (lambda: layers.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "softmax": (
        lambda: layers.Softmax(axis=1),
        lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
    ),
    "dense": (
        lambda: layers.Dense(3, "relu", kernel_initializer="ones", bias_initializer="ones"),
        lambda x: np.maximum(x.sum(axis=-1, keepdims=True).repeat(3, -1) + 1, 0),
    ),
    "dense without bias": (
        lambda: layers.Dense(2, use_bias=False, kernel_initializer={"class_name": "Constant", "config": {"value": 2}}),
        lambda x: 2 * x.sum(axis=-1, keepdims=True).repeat(2, -1),
    ),
    "flatten": (lambda: layers.Flatten(), lambda x: x.reshape(len(x), -1)),
    "reshape": (lambda: layers.Reshape((-1, 2)), lambda x: x.reshape(len(x), -1, 2)),
    "permute": (lambda: layers.Permute((2, 1)), lambda x: x.transpose(0, 2, 1)),
    "dropout": (lambda: layers.Dropout(0.5), lambda x: x),
    "repeat": (lambda: layers.RepeatVector(3), lambda x: np.repeat(x[:, 0, None], 3, axis=1)),
    "identity": (lambda: layers.Identity(), lambda x: x),
    "lambda": (lambda: layers.Lambda(lambda x, by: x * by, arguments={"by": 3.0}), lambda x: 3 * x),
    "masking": (lambda: layers.Masking(), lambda x: x),
    "noise": (lambda: layers.GaussianNoise(0.5), lambda x: x),
    "dropout of channels": (lambda: layers.SpatialDropout1D(0.5), lambda x: x),
    "layer norm": (lambda: layers.LayerNormalization(), lambda x: normal(x, -1, 1e-3)),
    "layer norm of several": (
        lambda: layers.LayerNormalization([1, -1], 0.1, beta_initializer="ones", gamma_initializer=twos),
        lambda x: 2 * normal(x, (1, 2), 0.1) + 1,
    ),
    "layer norm inside": (
        lambda: layers.LayerNormalization(1, center=False, scale=False),
        lambda x: normal(x, 1, 1e-3),
    ),
    "rms norm": (lambda: layers.RMSNormalization(), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)),
    "unit norm": (lambda: layers.UnitNormalization(1), lambda x: x / np.sqrt((x * x).sum(1, keepdims=True))),
    "group norm": (
        lambda: layers.GroupNormalization(3, beta_initializer="ones", gamma_initializer=twos),
        lambda x: 2 * normal(x.reshape(5, 4, 3, 2), (1, 3), 1e-3).reshape(x.shape) + 1,
    ),
    "group norm inside": (
        lambda: layers.GroupNormalization(2, axis=1),
        lambda x: normal(x.reshape(5, 2, 2, 6), (2, 3), 1e-3).reshape(x.shape),
    ),
    "instance norm": (lambda: layers.GroupNormalization(-1), lambda x: normal(x, 1, 1e-3)),
    "batch norm": (
        lambda: layers.BatchNormalization(moving_mean_initializer="ones", moving_variance_initializer=twos),
        lambda x: (x - 1) / np.sqrt(2 + 1e-3),
    ),
    "mean of steps": (lambda: layers.GlobalAveragePooling1D(), lambda x: x.mean(1)),
    "mean of steps, channels first": (
        lambda: layers.GlobalAveragePooling1D("channels_first", keepdims=True),
        lambda x: x.mean(2, keepdims=True),
    ),
    "maximum of steps": (lambda: layers.GlobalMaxPooling1D(), lambda x: x.max(1)),
}


def twos(shape: Any, dtype: Any) -> Any:
    return hf.full(shape, 2.0, dtype=dtype)


def normal(x: np.ndarray, axis: Any, epsilon: float) -> np.ndarray:
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis, keepdims=True) + epsilon)


def given(name: str, dtype: Any) -> np.ndarray:
    x = np.random.default_rng(3).standard_normal((5, 4, 6)).astype(dtype)
    return x[:, 0] if name == "repeat" else x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EVERY)
def test_layers_are_what_numpy_calculates(name: str, dtype: str) -> None:
    make, reference = EVERY[name]
    layer: Any = make()
    layer = type(layer).from_config(layer.get_config() | {"dtype": dtype})
    x = given(name, dtype)
    found = layer(x)
    assert found.dtype == hf.asarray(np.zeros(1, dtype)).dtype
    wanted = reference(x.astype("f8") if name != "repeat" else x[:, None].astype("f8"))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
    compiled = hf.function(layer)
    assert compiled(x).numpy().tobytes() == found.numpy().tobytes()


@pytest.mark.parametrize("name", EVERY)
def test_configurations_make_others_alike(name: str) -> None:
    layer: Any = EVERY[name][0]()
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config() and again.built == (type(again).build is layers.Layer.build)
    assert again(given(name, "f4")).numpy().tobytes() == layer(given(name, "f4")).numpy().tobytes()


A, B, C = (np.random.default_rng(k).standard_normal((3, 4, 2)) for k in (1, 2, 3))
MERGES: dict[str, tuple[Any, list[np.ndarray], np.ndarray]] = {
    "add": (layers.Add(), [A, B, C], A + B + C),
    "add other ranks": (layers.Add(), [A, B[:, 0]], A + B[:, :1]),
    "subtract": (layers.Subtract(), [A, B], A - B),
    "multiply": (layers.Multiply(), [A, B, C[:, :1]], A * B * C[:, :1]),
    "average": (layers.Average(), [A, B, C], (A + B + C) / 3),
    "maximum": (layers.Maximum(), [A, B, C], np.maximum(np.maximum(A, B), C)),
    "minimum": (layers.Minimum(), [A, B, C], np.minimum(np.minimum(A, B), C)),
    "concatenate": (layers.Concatenate(), [A, B, C], np.concatenate([A, B, C], -1)),
    "concatenate steps": (layers.Concatenate(1), [A, B], np.concatenate([A, B], 1)),
    "dot": (layers.Dot(1), [A, B], np.stack([a.T @ b for a, b in zip(A, B)])),
    "dot of other axes": (layers.Dot((2, -1)), [A, B[:, 0]], np.stack([a @ b for a, b in zip(A, B[:, 0])])),
    "dot of vectors": (layers.Dot(-1), [A[:, 0], B[:, 0]], (A[:, 0] * B[:, 0]).sum(-1, keepdims=True)),
    "cosine": (
        layers.Dot(1, normalize=True),
        [A[:, 0], B[:, 0]],
        ((A * B)[:, 0].sum(-1) / np.linalg.norm(A[:, 0], axis=-1) / np.linalg.norm(B[:, 0], axis=-1))[:, None],
    ),
}


@pytest.mark.parametrize("name", MERGES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layers_of_several_inputs(name: str, dtype: str) -> None:
    layer, inputs, wanted = MERGES[name]
    layer = type(layer).from_config(layer.get_config() | {"dtype": dtype})
    given = [x.astype(dtype) for x in inputs]
    found = layer(given)
    assert str(found.dtype) == dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert hf.function(lambda *inputs: layer(inputs))(*given).numpy().tobytes() == found.numpy().tobytes()


def test_places_pooled() -> None:
    x = np.random.default_rng(3).standard_normal((2, 3, 4, 5)).astype("f4")
    np.testing.assert_allclose(layers.GlobalAveragePooling2D()(x).numpy(), x.mean((1, 2)), rtol=1e-5, atol=1e-6)
    assert layers.GlobalMaxPooling2D("channels_first")(x).tolist() == x.max((2, 3)).tolist()


@pytest.mark.parametrize("decorate", [lambda f: f, hf.function])
@pytest.mark.parametrize("axis", [-1, 1])
def test_batch_normalization_moves_its_averages(decorate: Any, axis: int) -> None:
    layer = layers.BatchNormalization(axis, momentum=0.75, gamma_initializer=twos, beta_initializer="ones")
    run = decorate(lambda x, training: layer(x, training=training))
    over = (0, 1) if axis == -1 else (0, 2)
    size = 3 if axis == -1 else 4
    average, variance = np.zeros(size), np.ones(size)
    shape = (1, 1, 3) if axis == -1 else (1, 4, 1)
    for k in range(3):
        x = np.random.default_rng(k).standard_normal((6, 4, 3)) + k
        found = run(x.astype("f4"), True)
        m, v = x.mean(over), x.var(over)
        average, variance = 0.75 * average + 0.25 * m, 0.75 * variance + 0.25 * v
        wanted = 2 * (x - m.reshape(shape)) / np.sqrt(v.reshape(shape) + 1e-3) + 1
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(layer.moving_mean.numpy(), average, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(layer.moving_variance.numpy(), variance, rtol=1e-5)
    before = layer.get_weights()
    found = run(x.astype("f4"), False)
    wanted = 2 * (x - average.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-3) + 1
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)
    layer.trainable = False
    assert run(x.astype("f4"), True).numpy().tobytes() == found.numpy().tobytes()
    assert all(map(np.array_equal, before, layer.get_weights()))
    assert [len(part) for part in (layer.variables, layer.trainable_variables)] == [4, 0]


def test_what_is_frozen_is_frozen_throughout() -> None:
    inner = hf.Sequential([hf.Input((3,)), layers.Dense(3), layers.BatchNormalization()])
    model = hf.Sequential([hf.Input((3,)), inner, layers.Dense(2)])
    model.trainable = False
    assert not inner.trainable
    assert not inner.layers[1].trainable
    before = inner.layers[1].moving_mean.numpy()
    model(hf.ones((4, 3)), training=True)  # with the averages as they are
    assert np.array_equal(before, inner.layers[1].moving_mean.numpy())
    inner.trainable = True
    assert not model.trainable_variables
    model.trainable = True
    inner.layers[0].trainable = False
    assert len(model.trainable_variables) == 4


def test_batch_normalization_of_eager_and_compiled_steps_is_the_same() -> None:
    x = np.random.default_rng(0).standard_normal((16, 5)).astype("f4")
    found = []
    for decorate in (lambda f: f, hf.function):
        hf.random.set_seed(3)
        model = hf.Sequential([layers.Dense(4), layers.BatchNormalization(), layers.ReLU(), layers.Dense(1)])
        optimizer = hf.optimizers.SGD(0.1)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            with hf.GradientTape() as tape:
                loss = hf.mean(hf.square(model(x, training=True)))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        run = decorate(step)
        losses = [run(x).item() for _ in range(5)]
        assert losses[-1] < losses[0]
        found.append([v.numpy().tobytes() for v in model.variables])
    assert found[0] == found[1]


def test_masked_steps_do_not_count() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 2))
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1]], bool)
    layer = layers.BatchNormalization(momentum=0.0)
    layer(x, training=True, mask=hf.asarray(mask))
    np.testing.assert_allclose(layer.moving_mean.numpy(), x[mask].mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.numpy(), x[mask].var(0), rtol=1e-5)
    found = layers.GlobalAveragePooling1D()(x, mask=hf.asarray(mask))
    np.testing.assert_allclose(found.numpy(), [row[there].mean(0) for row, there in zip(x, mask)], rtol=1e-5, atol=1e-6)


def test_embeddings() -> None:
    table = np.arange(12.0).reshape(6, 2)
    layer = layers.Embedding(6, 2, weights=[table])
    numbers = np.array([[1, 5], [0, 1]])
    assert layer(numbers).tolist() == table[numbers].tolist() == layer(numbers.astype("f4")).tolist()
    assert hf.function(layer)(numbers).tolist() == table[numbers].tolist() and layer.compute_mask(numbers) is None
    with hf.GradientTape() as tape:
        total = hf.sum(layer(numbers) * hf.asarray([1.0, 10.0]))
    wanted = np.zeros((6, 2))
    np.add.at(wanted, numbers, [1.0, 10.0])
    assert hf.asarray(tape.gradient(total, layer.embeddings)).tolist() == wanted.tolist()
    fresh = layers.Embedding.from_config(layer.get_config())
    fresh(numbers)
    assert 0 < np.abs(fresh.embeddings.numpy()).max() <= 0.05


def test_relu_at_its_corners_is_keras_s() -> None:
    x = hf.asarray([-np.inf, -1.0, 0.0, 0.5, 0.75, 6.0])
    recorded: list[tuple[dict[str, float], list[float], list[float]]] = [  # options, results, gradients: Keras 3.15
        ({}, [0, 0, 0, 0.5, 0.75, 6], [0, 0, 0, 1, 1, 1]),
        ({"threshold": 0.5}, [0, 0, 0, 0, 0.75, 6], [0, 0, 0, 0, 1, 1]),
        ({"negative_slope": 0.5}, [-np.inf, -0.5, 0, 0.5, 0.75, 6], [0.5, 0.5, 0.5, 1, 1, 1]),
        (
            {"threshold": 0.5, "negative_slope": 0.5, "max_value": 0.75},
            [-np.inf, -0.75, -0.25, 0, 0.75, 0.75],
            [0.5, 0.5, 0.5, 0, 1, 0],
        ),
        ({"negative_slope": 0.5, "max_value": 0.75}, [-np.inf, -0.5, 0, 0.5, 0.75, 0.75], [0.5, 0.5, 0, 1, 1, 0]),
        ({"max_value": 6.0}, [0, 0, 0, 0.5, 0.75, 6], [0, 0, 0, 1, 1, 0]),
    ]
    for options, results, gradients in recorded:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = layers.ReLU(**options)(x)
        assert y.tolist() == results, options
        assert tape.gradient(y, x).tolist() == gradients, options


def test_masks_go_with_results_outside_of_models() -> None:
    numbers = np.array([[1, 2, 0, 0], [3, 0, 0, 0]])
    table = layers.Embedding(4, 2, mask_zero=True)
    recurrent, mean, squares = layers.LSTM(3), layers.GlobalAveragePooling1D(), losses.MeanSquaredError()
    wide = layers.LSTM(3, dtype="float64")
    for layer in (recurrent, wide):
        layer(table(numbers))
    wide.set_weights(recurrent.get_weights())

    def all_of(numbers: Any) -> Any:
        x = table(numbers)
        return recurrent(x), mean(x), squares(hf.zeros_like(x), x), wide(x)

    found = all_of(numbers)
    for one, compiled in zip(found, hf.function(all_of)(numbers)):
        assert one.numpy().tobytes() == compiled.numpy().tobytes()
    x, there = table(numbers).numpy(), numbers != 0
    np.testing.assert_allclose(found[1].numpy(), [row[its].mean(0) for row, its in zip(x, there)], rtol=1e-6)
    np.testing.assert_allclose(float(found[2]), (x[there] ** 2).mean(), rtol=1e-6)
    for k, steps in enumerate((2, 1)):
        wanted = recurrent(x[k : k + 1, :steps])  # an array: nothing is masked
        np.testing.assert_allclose(found[0][k : k + 1].numpy(), wanted.numpy(), rtol=1e-6)
        np.testing.assert_allclose(found[3][k : k + 1].numpy(), wanted.numpy(), rtol=1e-5)


@pytest.mark.parametrize("eagerly", [False, True])
def test_masks_end_with_their_tensors_and_compiled_functions(eagerly: bool) -> None:
    numbers = np.array([[1, 2, 0, 0]])
    table, mean = layers.Embedding(4, 2, mask_zero=True), layers.GlobalAveragePooling1D()
    gc.collect()  # of masks that earlier tests have left
    before = len(layer_context._everywhere)
    x = table(numbers)
    assert len(layer_context._everywhere) == before + 1 and layer_context.mask_of(x).tolist() == (numbers != 0).tolist()
    hf.config.run_functions_eagerly(eagerly)
    try:
        compiled, inner = hf.function(mean), hf.function(table)
        assert compiled(x).tolist() == mean(hf.asarray(x.numpy())).tolist() != mean(x).tolist()
        nested = hf.function(lambda numbers: (compiled(table(numbers)), mean(inner(numbers))))
        for found in nested(numbers):
            assert found.tolist() == compiled(x).tolist()
        assert layer_context.mask_of(inner(numbers)) is None
    finally:
        hf.config.run_functions_eagerly(False)
    del x
    assert len(layer_context._everywhere) == before


@pytest.mark.parametrize("decorate", [lambda f: f, hf.function])
def test_masks_travel_within_the_layer_around_all(decorate: Any) -> None:
    seen: list[Any] = []

    class See(layers.Layer):
        def call(self, inputs: Any, mask: Any = None) -> Any:
            seen.append(mask if mask is None else hf.asarray(mask).shape)
            return inputs * 1.0

    numbers = np.array([[1, 0, 2], [3, 0, 0]])
    start = [layers.Embedding(4, 2, mask_zero=True, weights=[np.arange(8.0).reshape(4, 2)]), layers.Dropout(0.1)]
    decorate(hf.Sequential([*start, layers.Dense(2), layers.Activation("relu"), See(), See()]))(numbers)
    assert seen[-2:] == [(2, 3), None]  # one that does not support masks loses them
    seen.clear()
    decorate(hf.Sequential([*start, lambda x: x + 1, See()]))(numbers)
    assert seen.pop() is None
    pooled = decorate(hf.Sequential([*start, layers.GlobalAveragePooling1D()]))(numbers)
    assert pooled.tolist() == [[3.0, 4.0], [6.0, 7.0]]

    class Both(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = layers.Masking(), layers.Masking(7.0)

        def call(self, x: Any, y: Any) -> Any:
            joined = layers.Concatenate()([self.first(x), self.second(y)])
            added = layers.Add()([self.first(x), self.second(y)])
            pool = layers.GlobalAveragePooling1D()
            return pool(joined), pool(added), pool(layers.Add()([self.first(x), y]))

    x, y = np.array([[[1.0], [0.0], [0.0]]]), np.array([[[7.0], [3.0], [7.0]]])
    joined, added, plain = decorate(Both())(x, y)
    assert joined.tolist() == [[0.5, 1.5]] and added.tolist() == [[2.0]] and plain.tolist() == [[6.0]]


@pytest.mark.parametrize("kind", [layers.GaussianNoise, layers.GaussianDropout])
def test_noise(kind: Any) -> None:
    x = np.full((200, 100), 2.0, "f4")
    layer = kind(0.2, seed=5)
    assert layer(x).numpy().tobytes() == x.tobytes()
    run = hf.function(lambda x: layer(x, training=True))
    a, b = run(x).numpy(), run(x).numpy()
    assert len(run.retraces()) == 0 and not np.array_equal(a, b)
    assert kind(0.2, seed=5)(x, training=True).numpy().tobytes() == a.tobytes()
    assert a.mean() == pytest.approx(2, abs=0.05)
    assert a.std() == pytest.approx(0.2 if kind is layers.GaussianNoise else 2 * 0.5, rel=0.05)


def test_channels_are_dropped_as_wholes() -> None:
    for layer, shape in (
        (layers.SpatialDropout1D(0.25, seed=1), (100, 3, 50)),
        (layers.SpatialDropout2D(0.25, seed=1), (100, 3, 2, 50)),
    ):
        found = layer(np.ones(shape, "f4"), training=True).numpy()
        kept = found.reshape(100, -1, 50)
        assert (kept == kept[:, :1]).all() and set(np.unique(found)) == {0.0, np.float32(1 / 0.75)}
        assert abs((found == 0).mean() - 0.25) < 0.03


def test_narrow_floats_are_normalised_in_wide_ones() -> None:
    x = (np.random.default_rng(0).standard_normal((4, 8)) * 300).astype("f2")  # squares overflow
    for make in (layers.LayerNormalization, layers.BatchNormalization, lambda **o: layers.GroupNormalization(2, **o)):
        layer = make(dtype="float16")
        found = layer(x, training=True) if make is layers.BatchNormalization else layer(x)
        assert found.dtype == hf.float16 and np.abs(found.numpy()).max() > 1
        assert np.isfinite(found.numpy()).all()


def test_weights_are_made_at_the_first_call_wherever_it_is() -> None:
    hf.random.set_seed(5)
    eager = hf.Sequential([layers.Dense(4, "relu"), layers.Dense(2)])
    assert eager.variables == []
    first = eager(np.ones((3, 6), "f4"))
    hf.random.set_seed(5)
    graph = hf.Sequential([layers.Dense(4, "relu"), layers.Dense(2)])
    run = hf.function(lambda x: graph(x))
    assert run(np.ones((3, 6), "f4")).numpy().tobytes() == first.numpy().tobytes()
    assert [v.shape for v in graph.variables] == [(6, 4), (4,), (4, 2), (2,)]
    assert list(graph.named_variables()) == ["layers.0.kernel", "layers.0.bias", "layers.1.kernel", "layers.1.bias"]
    run(np.ones((3, 6), "f4"))
    assert len(run.retraces()) == 0
    with hf.GradientTape() as tape:
        fresh = layers.Dense(2)
        fresh(np.ones((3, 6), "f4"))
    assert {id(v) for v in tape.watched_variables()} == {id(v) for v in fresh.variables}


def test_layers_train_as_the_one_around_them_does() -> None:
    seen: list[Any] = []

    class Tell(layers.Layer):
        def call(self, inputs: Any, training: Any = None) -> Any:
            seen.append(training)
            return inputs

    class Around(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Tell()

        def call(self, inputs: Any) -> Any:  # knows nothing of training
            return self.inner(inputs)

    model = hf.Sequential([Tell(), Around(), lambda x: x])
    x = hf.ones((2, 2))
    model(x)
    model(x, training=True)
    model(x, training=False)
    model.layers[0](x, training=True)
    assert seen == [None, None, True, True, False, False, True]

    class Failing(layers.Layer):
        def call(self, inputs: Any, training: Any = None) -> Any:
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        Failing()(x, training=True)
    model(x)
    assert seen[-2:] == [None, None]


def test_dropout() -> None:
    x = np.ones((100, 100), "f4")
    layer = layers.Dropout(0.25, seed=3)
    assert layer(x).numpy().tobytes() == x.tobytes()
    run = hf.function(lambda x: layer(x, training=True))
    a, b = run(x).numpy(), run(x).numpy()
    assert len(run.retraces()) == 0 and not np.array_equal(a, b)
    assert set(np.unique(a)) == {0.0, np.float32(1 / 0.75)} and abs((a == 0).mean() - 0.25) < 0.02
    again = layers.Dropout(0.25, seed=3)
    assert again(x, training=True).numpy().tobytes() == a.tobytes()
    assert layers.Dropout(1.0)(x, training=True).numpy().sum() == 0
    assert layer.variables and not layer.trainable_variables


def test_inputs_become_tensors_of_the_layers_dtype() -> None:
    class Same(layers.Layer):
        def call(self, *inputs: Any) -> Any:
            return inputs

    same = Same(dtype="float64")
    x, n, pair, text, nothing = same(np.ones(2, "f4"), [1, 2], [hf.ones(2), hf.asarray([1])], "text", None)
    assert (x.dtype, n.dtype) == (hf.float64, hf.int64)
    assert [part.dtype for part in pair] == [hf.float64, hf.int64] and (text, nothing) == ("text", None)
    assert Same(dtype=hf.bfloat16)(hf.ones(2))[0].dtype == hf.bfloat16


def test_weights_as_arrays() -> None:
    a, b = layers.Dense(2, name="a"), layers.Dense(2)
    a(np.ones((1, 3)))
    b(np.ones((1, 3)))
    b.set_weights(a.get_weights())
    assert a(np.ones((1, 3))).tolist() == b(np.ones((1, 3))).tolist() and a.count_params() == 8
    held = a.get_weights()[0]
    held[:] = 9.0
    assert a.kernel.numpy().max() < 9.0
    before = b.get_weights()
    with pytest.raises(errors.ShapeError, match="must have its shape"):
        b.set_weights([np.ones((3, 2)), np.ones(5)])
    assert all(map(np.array_equal, before, b.get_weights()))


def test_models_are_made_again_from_their_layers() -> None:
    model = hf.Sequential(
        [layers.Dense(3, "relu"), hf.Sequential([layers.Dropout(0.5), layers.Dense(2)], name="inner")]
    )
    again = hf.Sequential.from_config(model.get_config())
    model(np.ones((1, 4)))
    again(np.ones((1, 4)))
    again.set_weights(model.get_weights())
    assert again(np.ones((1, 4))).tolist() == model(np.ones((1, 4))).tolist()
    assert again.get_config() == model.get_config() and again.layers[1].name == "inner"
    with pytest.raises(errors.ArgumentTypeError, match="is no layer"):
        hf.Sequential([np.sin]).get_config()


def test_layers_without_weights_are_built_from_the_start(caplog: Any) -> None:
    layer = layers.Flatten()
    run = hf.function(lambda x: layer(x))
    for _ in range(3):
        run(hf.ones((2, 3, 4)))
    assert len(run.retraces()) == 0 and not caplog.records
    assert np.all(layers.Dropout(1.0)([np.inf, np.nan], training=True).numpy() == 0)


def test_frozen_layers_do_not_train() -> None:
    model = hf.Sequential([layers.Dense(3), layers.Dense(2)])
    model(np.ones((1, 3)))
    model.layers[0].trainable = False
    assert [v.shape for v in model.trainable_variables] == [(3, 2), (2,)]
    assert len(layers.Dense(3, trainable=False).trainable_variables) == 0


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: layers.Dense(0), errors.ArgumentError, r"\[dense\] units is 0"),
        (lambda: layers.Dense(2.5), errors.ArgumentError, "units is 2.5"),
        (lambda: layers.Dense(2, "rely"), errors.ArgumentError, "nothing is called 'rely'"),
        (lambda: layers.Dense(2, 3), errors.ArgumentTypeError, "3 is neither a name nor a function"),
        (lambda: layers.Dense(2)(hf.asarray(1.0)), errors.ShapeError, "takes batches"),
        (lambda: (d := layers.Dense(2))(hf.ones((1, 3))) + d(hf.ones((1, 4))), errors.ShapeError, r"\[dense\].*of 3"),
        (lambda: layers.Dropout(1.5), errors.ArgumentError, "rate is 1.5"),
        (lambda: layers.Add()(hf.ones(3)), errors.ArgumentError, "takes one list"),
        (lambda: layers.Subtract()([hf.ones(3)]), errors.ArgumentError, "has 1 inputs; the layer takes 2"),
        (lambda: layers.Dot(0)([hf.ones((2, 3))] * 2), errors.AxisError, "must be one behind the batch"),
        (lambda: layers.Dot((1, 2, 3)), errors.ArgumentError, "an integer or a pair"),
        (lambda: layers.Dot(1)([hf.ones((2, 3)), hf.ones((2, 4))]), errors.ShapeError, "same extent"),
        (lambda: layers.Lambda(3), errors.ArgumentTypeError, "3 is no function"),
        (lambda: layers.GaussianNoise(-1.0), errors.ArgumentError, "stddev is -1"),
        (lambda: layers.GaussianDropout(1.0), errors.ArgumentError, "rate is 1.0"),
        (lambda: layers.SpatialDropout1D(0.5)(hf.ones((2, 2)), training=True), errors.ShapeError, "must have 3 axes"),
        (lambda: layers.LayerNormalization(3)(hf.ones((2, 2))), errors.AxisError, "axis 3 is none"),
        (lambda: layers.GroupNormalization(0), errors.ArgumentError, "groups is 0"),
        (lambda: layers.GroupNormalization(4)(hf.ones((2, 6))), errors.ArgumentError, "4 equal groups"),
        (lambda: layers.BatchNormalization(momentum=2), errors.ArgumentError, "momentum is 2"),
        (lambda: (b := layers.BatchNormalization())(hf.ones((1, 3))) + b(hf.ones((1, 1))), errors.ShapeError, "3 chan"),
        (lambda: layers.Embedding(0, 2), errors.ArgumentError, "input_dim is 0"),
        (lambda: layers.Embedding(3, 2)(hf.asarray([3])), errors.IndexRangeError, "3"),
        (lambda: layers.Embedding(3, 2, weights=[np.ones((2, 2))])(hf.asarray([1])), errors.ShapeError, "shape"),
        (lambda: layers.GlobalMaxPooling1D()(hf.ones((2, 3))), errors.ShapeError, "must have 3 axes"),
        (lambda: layers.GlobalMaxPooling1D("last"), errors.ArgumentError, "data_format is 'last'"),
        (
            lambda: layers.LSTM(2)(hf.ones((2, 3, 4, 5))),
            errors.ShapeError,
            r"\[lstm\].*must be \[batch, steps, features",
        ),
        (lambda: layers.RepeatVector(2)(hf.ones((2, 3, 4))), errors.ShapeError, r"\[repeat_vector\].*batch, features"),
        (lambda: layers.Reshape((1,))(2.0), errors.ShapeError, r"\[reshape\].*must be \[batch, "),
        (lambda: layers.Masking()(2.0), errors.ShapeError, r"\[masking\].*axis of features"),
        (lambda: layers.Embedding(3, 2)([True]), errors.DTypeError, r"\[embedding\].*bool.*integers"),
        (lambda: layers.Permute((1, 3)), errors.ArgumentError, "name each axis"),
        (lambda: hf.Sequential([3]), errors.ArgumentTypeError, "3 is no layer"),
        (lambda: layers.Layer()(hf.ones(1)), NotImplementedError, "has to define call"),
        (lambda: layers.Dense(2).set_weights([1, 2]), errors.ArgumentError, "call the layer first"),
        (lambda: layers.Layer().add_weight((None, 3)), errors.ArgumentError, "known extent"),
    ],
)
def test_wrong_use(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run()


NO_TENSORS: list[tuple[Any, str]] = [
    ((np.ones((2, 4, 4), "f4"), np.ones((2, 4, 4), "f4")), r"a tuple of 2: f32\[2,4,4\], f32\[2,4,4\]"),
    ([np.ones((2, 4), "f4")], r"a list of 1: f32\[2,4\]"),
    ([], "an empty list"),
    ({"image": np.ones((2, 4), "f4")}, "a dict with the keys 'image'"),
    (None, "the input is None"),
    ("text", "str, 'text'"),
    ([None, np.ones(2)], "a list of 2: NoneType, f32"),
    ({1, 2}, "set, {1, 2}"),
]

OF_ONE_TENSOR: list[Callable[[], Any]] = [
    lambda: layers.Dense(2),
    lambda: layers.Flatten(),
    lambda: layers.Reshape((-1,)),
    lambda: layers.Activation("relu"),
    lambda: layers.Dropout(0.5),
    lambda: layers.Conv2D(2, 3),
    lambda: layers.Conv1DTranspose(2, 3),
    lambda: layers.DepthwiseConv2D(3),
    lambda: layers.SeparableConv1D(2, 3),
    lambda: layers.MaxPooling2D(),
    lambda: layers.GlobalAveragePooling1D(),
    lambda: layers.ZeroPadding2D(),
    lambda: layers.UpSampling1D(),
    lambda: layers.BatchNormalization(),
    lambda: layers.LayerNormalization(),
    lambda: layers.GroupNormalization(1),
    lambda: layers.Embedding(3, 2),
    lambda: layers.Masking(),
    lambda: layers.Normalization(),
    lambda: layers.RandomFlip(),
    lambda: layers.RandomRotation(0.1),
    lambda: layers.CenterCrop(2, 2),
    lambda: layers.RandomCrop(2, 2),
    lambda: layers.LSTM(2),
    lambda: layers.RNN(layers.GRUCell(2)),
    lambda: layers.Bidirectional(layers.GRU(2)),
    lambda: layers.TimeDistributed(layers.Dense(2)),
]


@pytest.mark.parametrize("make", OF_ONE_TENSOR)
def test_layers_of_one_tensor_say_what_they_were_given(make: Callable[[], Any]) -> None:
    """Under their own name, and before they make weights; symbols of graphs are refused as data is."""
    for given, message in NO_TENSORS:
        layer = make()
        with pytest.raises(errors.ArgumentTypeError, match=rf"\[{layer.name}\].*{message}.*takes one tensor"):
            layer(given)
        assert not layer.variables
    for symbols in [hf.Input((4, 4)), hf.Input((4, 4))], {"image": hf.Input((4,))}:
        layer = make()
        with pytest.raises(errors.ArgumentTypeError, match=rf"\[{layer.name}\].*takes one tensor"):
            layer(symbols)


@pytest.mark.parametrize(
    ("layer", "good", "bad", "built"),
    [
        (layers.Dense(3, name="mine"), [(2, 4)], [(2, 5)], "a last extent of 4"),
        (layers.LayerNormalization(name="mine"), [(2, 4)], [(2, 5)], "4 channels"),
        (layers.LayerNormalization((1, 2), name="mine"), [(2, 3, 4)], [(2, 4, 3)], r"the extents \(3, 4\) of the axes"),
        (layers.RMSNormalization(name="mine"), [(2, 4)], [(2, 5)], "4 channels"),
        (layers.GroupNormalization(2, center=False, name="mine"), [(2, 4)], [(2, 6)], "4 channels"),
        (layers.MultiHeadAttention(2, 3, name="mine"), [(2, 3, 4)] * 2, [(2, 3, 4), (2, 3, 5)], "a last extent of 4"),
    ],
)
def test_layers_say_what_they_were_built_for(layer: Any, good: Any, bad: Any, built: str) -> None:
    layer(*[hf.zeros(shape) for shape in good])
    for call in (layer, hf.function(lambda *inputs: layer(*inputs))):
        with pytest.raises(errors.ShapeError, match=rf"^\[mine\] the .* is f32.*; the layer was built for {built}"):
            call(*[hf.zeros(shape) for shape in bad])


def test_errors_of_operations_say_in_which_layers_they_were() -> None:
    inner = layers.Reshape((3, 2), name="cut")
    model = hf.Sequential([inner, layers.Dense(1)], name="whole")
    for call in (model, hf.function(lambda x: model(x))):
        with pytest.raises(errors.ShapeError) as caught:
            call(hf.zeros((5, 8)))
        assert caught.value.__notes__ == [
            "in the layer 'cut', Reshape, which was called with f32[5,8]",
            "in the layer 'whole', Sequential, which was called with f32[5,8]",
        ]


def test_a_call_of_ones_own_takes_what_it_likes() -> None:
    class Two(layers.Dense):
        def call(self, inputs: Any) -> Any:
            return super().call(inputs["left"]) + super().call(inputs["right"])

        def build(self, input_shape: Any) -> None:
            super().build(input_shape["left"])

    class More(layers.Dense):
        def get_config(self) -> dict[str, Any]:
            return super().get_config()

    x = hf.ones((1, 3))
    layer = Two(2)
    result = layer({"left": x, "right": x})
    np.testing.assert_allclose(result.numpy(), 2 * layer.kernel.numpy().sum(0, keepdims=True), rtol=1e-6)
    with pytest.raises(errors.ArgumentTypeError, match="takes one tensor"):
        More(2)({"left": x, "right": x})


def test_parts_of_lists_are_tensors() -> None:
    for layer in layers.Add(), layers.Concatenate():
        with pytest.raises(errors.ArgumentTypeError, match=rf"\[{layer.name}\] the input is None; .* list of tensors"):
            layer([hf.ones((2, 3)), None])
    for attention in layers.Attention(), layers.AdditiveAttention():
        with pytest.raises(errors.ArgumentTypeError, match="the input is a dict with the keys 'a'"):
            attention([hf.ones((2, 3, 4)), {"a": 1}])


def test_weights_by_the_names_of_keras() -> None:
    layer = layers.BatchNormalization()
    layer(hf.ones((2, 3)))
    assert layer.trainable_weights == layer.trainable_variables and len(layer.trainable_weights) == 2
    assert layer.non_trainable_weights == layer.non_trainable_variables and len(layer.weights) == 4


def test_variables_know_the_layers_that_made_them() -> None:
    class Inner(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(2)

        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight((2,), name="scale")

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs) * self.scale

    inner = Inner()
    model = hf.Sequential([layers.Dense(3, name="first"), inner])
    model(np.ones((1, 3)))
    assert [v.path for v in model.variables] == [
        "sequential/first/kernel",
        "sequential/first/bias",
        "sequential/inner/scale",
        "sequential/inner/dense/kernel",
        "sequential/inner/dense/bias",
    ]
    alone = layers.Dense(2, use_bias=False)
    alone.build((None, 3))
    assert alone.kernel.path == "dense/kernel" and hf.Variable(1.0).path == "variable"


def test_paths_are_there_without_the_layers() -> None:
    def kernel_of(layer: Any) -> hf.Variable:
        layer(np.ones((1, 3)))
        return layer.kernel

    assert kernel_of(layers.Dense(2)).path == "dense/kernel"
    model = hf.Sequential([layers.Dense(3)], name="model")
    model(np.ones((1, 3)))
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert [v.path for v in again.variables] == ["model/dense/kernel", "model/dense/bias"]
        again.name = "again"
        assert again.variables[0].path == "again/dense/kernel" and model.variables[0].path == "model/dense/kernel"


def test_paths_need_no_names_of_arguments() -> None:
    class Outer(layers.Layer):
        def build(this, input_shape: Any) -> None:
            this.inner = layers.Dense(2)
            this.inner.build(input_shape)

        def call(this, inputs: Any) -> Any:
            return this.inner(inputs)

    outer = Outer(name="outer")
    outer(np.ones((1, 3)))
    assert [v.path for v in outer.variables] == ["outer/dense/kernel", "outer/dense/bias"]


def test_what_is_called_for_weights_adds_no_loss_to_the_call() -> None:
    class Outer(layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.inner = layers.ActivityRegularization(l2=1.0)
            self.inner(np.full((1, 1), 3.0, np.float32))

        def call(self, inputs: Any) -> Any:
            return self.inner(inputs)

    model = hf.Sequential([Outer()])
    model(np.full((1, 1), 2.0, np.float32))
    assert [float(loss) for loss in model.losses] == [4.0]
