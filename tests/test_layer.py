"""Layers: when weights are made, what training reaches, conversions, configurations, and wrong use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers

EVERY = {
    "activation": (lambda: layers.Activation("tanh"), lambda x: np.tanh(x)),
    "relu": (lambda: layers.ReLU(), lambda x: np.maximum(x, 0)),
    "relu all": (
        lambda: layers.ReLU(1.0, 0.25, 0.5),
        lambda x: np.minimum(np.where(x >= 0.5, x, 0.25 * (x - 0.5)), 1.0),
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
}


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
    assert again.get_config() == layer.get_config() and not again.built
    assert again(given(name, "f4")).numpy().tobytes() == layer(given(name, "f4")).numpy().tobytes()


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
    assert seen == [False, False, True, True, False, False, True]

    class Failing(layers.Layer):
        def call(self, inputs: Any, training: Any = None) -> Any:
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        Failing()(x, training=True)
    model(x)
    assert seen[-2:] == [False, False]


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
        (lambda: layers.Dense(2)(hf.asarray(1.0)), errors.ShapeError, "last extent must be known"),
        (lambda: (d := layers.Dense(2))(hf.ones((1, 3))) + d(hf.ones((1, 4))), errors.ShapeError, r"\[dense\].*of 3"),
        (lambda: layers.Dropout(1.5), errors.ArgumentError, "rate is 1.5"),
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
