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


@program
def export_and_sparse_inputs_are_refused() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    for refused in (lambda: model.export("folder", verbose=False), lambda: keras.Input((2,), sparse=True)):
        try:
            refused()
        except (NotImplementedError, ValueError) as error:
            assert "hybridflow" in str(error)
        else:
            raise AssertionError("no error")
