"""Programs of Keras on hybridflow, which ``test_keras.py`` runs: a script, because Keras has one backend for all."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hybridflow.keras_backend  # isort: skip  # before Keras
import keras
import numpy as np
from keras import ops

import hybridflow as hf


def program(function: Callable[[], None]) -> Callable[[], None]:
    """Run it, and say how it went."""
    try:
        function()
    except Exception:
        print(f"--- {function.__name__}\n{traceback.format_exc()}--- end", flush=True)
    else:
        print(f"passed {function.__name__}", flush=True)
    return function


@program
def the_page_of_the_guide() -> None:
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, names)


@program
def a_step_is_traced_once() -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "relu"), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    x, y = np.ones((16, 4), "float32"), np.ones((16, 1), "float32")
    model.fit(x, y, batch_size=4, epochs=1, verbose=0)
    with hf.stance("fail_on_retrace"):
        model.fit(x, y, batch_size=4, epochs=2, verbose=0)


@program
def compiled_and_eager_steps_agree() -> None:
    losses = []
    for eagerly in (False, True):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, "tanh"), keras.layers.Dropout(0.3)])
        model.add(keras.layers.BatchNormalization())
        model.add(keras.layers.Dense(2))
        model.compile(optimizer="adamw", loss="mse", metrics=["mae"], run_eagerly=eagerly)
        x = np.sin(np.arange(60, dtype="float32")).reshape(10, 6)
        logs = model.fit(x, x[:, :2], batch_size=5, epochs=2, shuffle=False, verbose=0).history
        losses.append(logs["loss"] + logs["mae"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


@program
def recurrent_layers_take_any_length() -> None:
    inputs = keras.Input((None, 3))
    layer = keras.layers.LSTM(4, return_sequences=True)
    model = keras.Model(inputs, layer(inputs))
    assert model.output_shape == (None, None, 4)
    x = np.cos(np.arange(30, dtype="float64")).reshape(2, 5, 3)
    kernel, inner, bias = (w.astype("float64") for w in layer.get_weights())
    h = c = np.zeros((2, 4))
    for t in range(5):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ inner + bias, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-part)) for part in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
    np.testing.assert_allclose(np.asarray(model(x.astype("float32")))[:, -1], h, rtol=2e-5, atol=1e-6)
    assert model.predict(np.ones((3, 7, 3), "float32"), verbose=0).shape == (3, 7, 4)


@program
def the_dtypes_are_those_of_keras() -> None:
    for function in (ops.add, ops.divide, ops.matmul, ops.maximum):
        for a in ("bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "float64"):
            for b in ("int16", "uint8", "float16", "float32"):
                x, y = ops.ones((2, 2), a), ops.ones((2, 2), b)
                symbols = keras.KerasTensor((2, 2), a), keras.KerasTensor((2, 2), b)
                assert str(function(x, y).dtype) == function(*symbols).dtype, (function.__name__, a, b)
    assert str((ops.ones((2,), "bfloat16") * 2.5).dtype) == "bfloat16"


@program
def a_number_has_the_dtype_of_the_tensor_beside_it() -> None:
    x = ops.convert_to_tensor(np.array([0.0, -0.0, np.nan, np.inf, -np.inf], "float32"))
    np.testing.assert_array_equal(ops.maximum(x, 0), np.maximum(np.asarray(x), 0))
    assert ops.zeros((0, 3)).shape == (0, 3) and float(ops.sum(ops.zeros((0, 3)))) == 0.0


@program
def variables_take_part_in_operators() -> None:
    v = keras.Variable(np.ones((2,), "float32"))
    t = hf.asarray([2.0, 3.0])
    for found, wanted in ((t + v, [3, 4]), (v * t, [2, 3]), (t - v, [1, 2]), (hf.exp(v * 0), [1, 1])):
        np.testing.assert_array_equal(found, wanted)
    v.assign_add([1.0, 1.0])
    np.testing.assert_array_equal(v, [2, 2])


@program
def loops_and_branches() -> None:
    total, squares = ops.scan(lambda c, x: (c + x, x * x), 0.0, ops.arange(5, dtype="float32"))
    assert float(total) == 10.0 and list(np.asarray(squares)) == [0, 1, 4, 9, 16]
    assert int(ops.while_loop(lambda i: i < 7, lambda i: i + 2, 0)) == 8
    assert float(ops.cond(ops.convert_to_tensor(True), lambda: 1.0, lambda: 2.0)) == 1.0
    assert list(np.asarray(ops.vectorized_map(lambda x: x + 1, ops.arange(3)))) == [1, 2, 3]


@program
def a_seed_gives_the_same_numbers() -> None:
    for draw in (keras.random.normal, keras.random.uniform, keras.random.truncated_normal):
        np.testing.assert_array_equal(draw((3,), seed=5), draw((3,), seed=5))
        assert (np.asarray(draw((3,), seed=5)) != np.asarray(draw((3,), seed=6))).any()
    seeds = keras.random.SeedGenerator(1)
    first, second = (np.asarray(keras.random.normal((3,), seed=seeds)) for _ in range(2))
    assert (first != second).any()


def fitted_without_retrace(model: Any, loss: Any = "mse", metrics: Any = ()) -> None:
    """Fit, and fit again with no trace."""
    model.compile(optimizer="adam", loss=loss, metrics=list(metrics))
    x, y = np.ones((8, 4), "float32"), np.zeros((8, 1), "float32")
    model.fit(x, y, batch_size=4, verbose=0)
    with hf.stance("fail_on_retrace"):
        model.fit(x, y, batch_size=4, verbose=0)


class Product(keras.layers.Layer):
    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[-1], 1))

    def call(self, x: Any) -> Any:
        return ops.matmul(x, self.kernel)


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = keras.layers.Dense(3, "relu"), Product()

    def call(self, x: Any) -> Any:
        return self.outer(self.inner(x))


class Squares(keras.losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        return ops.mean((y_true - y_pred) ** 2, axis=-1)


class Total(keras.metrics.Metric):
    def __init__(self) -> None:
        super().__init__(name="total")
        self.sum = self.add_variable(shape=(), initializer="zeros", name="sum")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.sum.assign_add(ops.sum(ops.ones_like(y_true)))

    def result(self) -> Any:
        return self.sum


class Stepped(Subclassed):
    def train_step(self, data: Any) -> Any:
        x, y = data
        with hf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
        return {"error": loss}


@program
def classes_of_the_user_are_traced_once() -> None:
    fitted_without_retrace(Subclassed(), Squares(), [Total()])
    fitted_without_retrace(Subclassed(), lambda y_true, y_pred: ops.mean((y_true - y_pred) ** 2))
    fitted_without_retrace(Stepped())


@program
def custom_steps_learn_and_count() -> None:
    model, x = Stepped(), np.cos(np.arange(32, dtype="float32")).reshape(8, 4)
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
    losses = model.fit(x, x.sum(1, keepdims=True), epochs=30, verbose=0).history["error"]
    assert losses[-1] < losses[0] / 2, losses
    other = Subclassed()
    other.compile(optimizer="sgd", loss="mse", metrics=[Total()])
    assert other.fit(x, x[:, :1], batch_size=2, epochs=2, verbose=0).history["total"] == [8.0, 8.0]


@program
def what_a_custom_layer_holds_is_guarded() -> None:
    class Scaled(keras.layers.Layer):
        scale = 2.0

        def call(self, x: Any) -> Any:
            return ops.multiply(x, self.scale)

    layer = Scaled()
    model, x = keras.Sequential([keras.Input((1,)), layer]), np.ones((2, 1), "float32")
    np.testing.assert_array_equal(model.predict(x, verbose=0), 2 * x)
    layer.scale = 5.0
    np.testing.assert_array_equal(model.predict(x, verbose=0), 5 * x)


@program
def gradients_of_keras_variables() -> None:
    v = keras.Variable(np.array([1.0, 2.0], "float32"))
    with hf.GradientTape() as tape:
        y = ops.sum(v * v)
    np.testing.assert_array_equal(tape.gradient(y, {"v": [v]})["v"][0], [2, 4])
    with hf.GradientTape() as tape:
        y = v * 3.0
    np.testing.assert_array_equal(tape.jacobian(y, v), 3 * np.eye(2))


@program
def preprocessing_layers() -> None:
    x = np.arange(2 * 4 * 4 * 3, dtype="float32").reshape(2, 4, 4, 3)
    np.testing.assert_allclose(keras.layers.Rescaling(0.5, 1.0)(x), x * 0.5 + 1)
    normalization = keras.layers.Normalization(axis=-1)
    normalization.adapt(x)
    mean, deviation = x.astype("float64").mean((0, 1, 2)), x.astype("float64").std((0, 1, 2))
    np.testing.assert_allclose(normalization(x), (x - mean) / deviation, rtol=1e-4, atol=1e-5)
    flipped = np.asarray(keras.layers.RandomFlip("horizontal", seed=1)(x, training=True))
    assert all((one == kept).all() or (one == kept[:, ::-1]).all() for one, kept in zip(flipped, x))
    np.testing.assert_array_equal(keras.layers.CenterCrop(2, 2)(x), x[:, 1:3, 1:3])


@program
def categories_are_of_their_rows() -> None:
    for rows in (1, 2, 3):
        logits = np.full((rows, 3), -np.inf, "float32")
        logits[np.arange(rows), np.arange(rows)] = 0.0
        drawn = keras.random.categorical(logits, 2, seed=3)
        np.testing.assert_array_equal(drawn, np.arange(rows)[:, None].repeat(2, 1))


@program
def large_integers_are_drawn_whole() -> None:
    drawn = np.asarray(keras.random.randint((64,), 2**62, 2**62 + 1000, dtype="int64", seed=4))
    assert ((drawn >= 2**62) & (drawn < 2**62 + 1000)).all() and (drawn % 8).any() and len(set(drawn)) > 40
    small = keras.random.randint((100,), -1, 2, dtype="int8", seed=4)
    assert str(small.dtype) == "int8" and set(np.asarray(small)) == {-1, 0, 1}


@program
def datasets_of_hybridflow_are_fitted() -> None:
    x = np.cos(np.arange(40, dtype="float32")).reshape(10, 4)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    dataset = hf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)
    assert len(model.fit(dataset, epochs=2, validation_data=dataset, verbose=0).history["val_loss"]) == 2
    np.testing.assert_allclose(
        model.evaluate(dataset, verbose=0), model.evaluate(x, x[:, :1], batch_size=4, verbose=0), rtol=1e-6
    )
    alone = hf.data.Dataset.from_tensor_slices(x).batch(4)
    np.testing.assert_allclose(model.predict(alone, verbose=0), model.predict(x, verbose=0), rtol=1e-6)
    endless = dataset.repeat()
    model.fit(endless, steps_per_epoch=2, verbose=0)
    try:
        model.fit(dataset, x, verbose=0)
    except ValueError as error:
        assert "hf.data.Dataset" in str(error)
    else:
        raise AssertionError("no error")


@program
def the_way_out_of_export_works() -> None:
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
    signature = [hf.TensorSpec([None, 8], "float32")]
    hf.saved.save(hf.function(lambda x: model(x), input_signature=signature), "exported")
    x = np.ones((3, 8), "float32")
    np.testing.assert_allclose(hf.saved.load("exported")(x), model.predict(x, verbose=0), rtol=1e-6)


@program
def export_and_sparse_inputs_are_refused() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    for refused in (lambda: model.export("refused", verbose=False), lambda: keras.Input((2,), sparse=True)):
        try:
            refused()
        except (NotImplementedError, ValueError) as error:
            assert "hybridflow" in str(error)
        else:
            raise AssertionError("no error")
