"""Quantized models: what their layers compute, that compiled code has the same bits, and that files keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.quantize.quantized_weight import DynamicRange, QuantizedWeight, StaticRange
from hybridflow.quantize.scheme import Scheme
from tests.support.bits import same_bits

L = hf.layers


def texts() -> tuple[Any, np.ndarray]:
    """Layers of every kind over steps, with odd extents."""
    inputs = hf.Input((7,))
    x = L.Embedding(19, 9)(inputs)
    x = L.MultiHeadAttention(3, 5)(x, x)
    x = L.GRU(5, return_sequences=True)(L.LSTM(11, return_sequences=True)(x))
    x = L.EinsumDense("...c,cd->...d", 7)(x)
    x = L.Dense(6, activation="relu")(L.Conv1D(5, 3, padding="causal")(x))
    return hf.Model(inputs, L.Dense(3)(L.GlobalAveragePooling1D()(x))), np.arange(28).reshape(4, 7) % 19


def images(data_format: str = "channels_last", groups: int = 1) -> tuple[Any, np.ndarray]:
    shape = (9, 9, 4) if data_format == "channels_last" else (4, 9, 9)
    form = {"data_format": data_format}
    model = hf.Sequential(
        [
            hf.Input(shape),
            L.Conv2D(6, 3, padding="same", groups=groups, activation="relu", **form),
            L.Conv2D(5, 3, strides=2, **form),
            L.DepthwiseConv2D(2, **form),
            L.Conv2DTranspose(3, 2, **form),
            L.Flatten(),
            L.Dense(3),
        ]
    )
    return model, np.random.default_rng(1).normal(size=(4, *shape)).astype(np.float32)


def quantized(model: Any, scheme: str, samples: Any) -> Any:
    parsed = Scheme.parse(scheme)
    if parsed.inputs == "static":
        return hf.quantize.static(model, samples)
    if parsed.inputs == "dynamic":
        return hf.quantize.dynamic(model, parsed.dtype)
    return hf.quantize.weights(model, parsed.dtype, parsed.group_size)


MODELS: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "texts": texts,
    "images": images,
    "channels_first": lambda: images("channels_first"),
    "groups": lambda: images(groups=2),
}


CASES = [
    *(("texts", scheme) for scheme in ("int8_weights", "int4_weights_3", "int4")),
    *(("images", scheme) for scheme in ("int4_weights", "int8_static")),
    ("channels_first", "int8_static"),
    ("groups", "int8_static"),
]


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = hf.config.get_num_threads()
    yield hf.config.set_num_threads
    hf.config.set_num_threads(before)


@pytest.mark.parametrize(("kind", "scheme"), CASES)
def test_a_quantized_model_is_near_and_has_the_same_bits_everywhere(
    kind: str, scheme: str, tmp_path: Path, threads: Callable[[int], None]
) -> None:
    model, x = MODELS[kind]()
    compiled = hf.function(lambda x: model(x))
    before = compiled(x).numpy()
    report = quantized(model, scheme, x)
    after = model(x).numpy()
    assert report.bytes_after < report.bytes_before * (0.75 if "4" in scheme else 0.5)
    assert np.abs(after - before).max() < np.abs(before).max() * (0.8 if "int4" in scheme else 0.1)
    np.testing.assert_array_equal(compiled(x).numpy(), after)  # which was traced with other weights
    for count in (1, 3):
        threads(count)
        np.testing.assert_array_equal(compiled(x).numpy(), after)
    model.save(str(tmp_path / "model"))
    np.testing.assert_array_equal(hf.models.load_model(str(tmp_path / "model"))(x).numpy(), after)


@pytest.mark.parametrize("inputs", ["float", "dynamic", "static"])
@pytest.mark.parametrize("dtype", ["int8", "int4"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 3), (32, 17)])
def test_a_product_against_the_numbers_in_double_precision(rows: int, columns: int, dtype: str, inputs: str) -> None:
    rng = np.random.default_rng(rows)
    w, x = rng.normal(size=(rows, columns)), rng.normal(size=(2, 4, rows)).astype(np.float32)
    weight = QuantizedWeight(Scheme(dtype, inputs), w.shape, (-1,), np.dtype("float32"), "kernel")
    if inputs == "static":
        weight.input_range = StaticRange(-1.0, 2.0)
    weight.fill(hf.asarray(w, dtype="float32"))
    high = 7 if dtype == "int4" else 127
    scale = np.abs(w.astype(np.float32)).max(axis=0) / high
    exact = np.rint(w.astype(np.float32) / scale) * scale.astype(np.float64)
    np.testing.assert_allclose(weight.numpy(), exact, rtol=1e-6)
    seen = x.astype(np.float64)
    if inputs == "dynamic":
        step = (np.abs(x).max(axis=-1, keepdims=True) / np.float32(127)).astype(np.float64)
        seen = np.rint(seen / step) * step
    elif inputs == "static":
        step = float(np.float32(3 / 255))
        zero = np.clip(np.rint(-128 + 1 / step), -128, 127)
        seen = (np.clip(np.rint(seen / step) + zero, -128, 127) - zero) * step
    np.testing.assert_allclose(weight.product(hf.asarray(x)).numpy(), seen @ exact, rtol=1e-5, atol=1e-5)


EQUATIONS = {
    "abc,cd->abd": (3, 5),
    "abc,cde->adbe": (5, 3, 2),
    "abc,bcd->ad": 5,
    "...c,cd->...d": 5,
    "abc,bcd->abd": (3, 5),
}


RANGES = {"float": type(None), "dynamic": DynamicRange, "static": StaticRange}


@pytest.mark.parametrize("scheme", ["int8_weights", "int8", "int8_static"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_equations(equation: str, scheme: str) -> None:
    letters = equation.split(",")[0].replace("...", "xb")
    x = np.random.default_rng(3).normal(size=[{"a": 2, "b": 3, "c": 4, "x": 2}[k] for k in letters]).astype(np.float32)
    layer = L.EinsumDense(equation, EQUATIONS[equation])
    layer(x)
    quantized(layer, scheme, x)
    assert type(layer.kernel.input_range) is RANGES[Scheme.parse(scheme).inputs]
    exact = np.einsum(equation, x.astype(np.float64), layer.kernel.numpy().astype(np.float64))
    np.testing.assert_allclose(layer(x).numpy(), exact, atol=1e-5 if scheme == "int8_weights" else 0.03)


@pytest.mark.parametrize("scheme", ["int8_weights", "int4_weights", "int8", "int8_static"])
def test_gradients_of_inputs_are_those_of_the_floats(scheme: str) -> None:
    layer, x = L.Dense(3), hf.asarray(np.random.default_rng(0).normal(size=(4, 5)), dtype="float32")
    layer(x)
    quantized(layer, scheme, x)
    expected = np.broadcast_to(layer.kernel.numpy().astype(np.float64).sum(axis=1), (4, 5))
    for run in (lambda f: f, hf.function):
        found = run(lambda x: hf.grad(lambda x: hf.sum(layer(x)))(x))(x)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_inputs_that_are_nothing_finite_or_none() -> None:
    layer = L.Dense(2, use_bias=False)
    layer(hf.ones((1, 3)))
    hf.quantize.dynamic(layer)
    out = layer([[0.0, 0.0, -0.0], [1.0, np.nan, 2.0], [1.0, np.inf, 2.0]]).numpy()
    assert (out[0] == 0).all() and np.isnan(out[1]).all() and not np.isfinite(out[2]).any()
    assert layer(hf.zeros((0, 3))).shape == (0, 2)


@pytest.mark.parametrize("scheme", ["int8_weights", "int4_weights", "int8", "int8_static"])
def test_narrow_floats_are_summed_in_float32(scheme: str) -> None:
    layer = L.Dense(2, kernel_initializer="ones", dtype="mixed_float16")
    x = np.full((1, 1500), 0.5, np.float32)
    layer(x)
    quantized(layer, scheme, x)
    out = layer(x)
    assert out.dtype == hf.float16
    np.testing.assert_allclose(out.astype("float32").numpy(), 750.0, rtol=2e-3)


@pytest.mark.parametrize("scheme", ["int8_weights", "int8", "int8_static"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_inputs_that_are_no_floats(dtype: str, scheme: str) -> None:
    layer, x = L.Dense(3), (np.arange(12).reshape(2, 6) % 2).astype(dtype)
    before = layer(x.astype("float32")).numpy()
    quantized(layer, scheme, x.astype("float32"))
    np.testing.assert_allclose(layer(x).numpy(), before, atol=0.05)


def test_sums_that_int32_does_not_hold_are_floats() -> None:
    layer, x = L.Dense(1, kernel_initializer="ones", use_bias=False), np.ones((1, 70_000), np.float32)
    layer(x)
    hf.quantize.static(layer, x)
    np.testing.assert_allclose(layer(x).numpy(), 70_000, rtol=1e-4)


def test_rows_of_a_table_have_their_groups_of_scales() -> None:
    layer = L.Embedding(5, 7)
    layer([0])
    hf.quantize.weights(layer, "int4", group_size=3)
    np.testing.assert_array_equal(layer([[3, 0]]).numpy()[0], layer.embeddings.numpy()[[3, 0]])


@pytest.mark.parametrize("scheme", ["int4_weights_2", "int4", "int8_static"])
def test_files_that_other_programs_run(scheme: str, tmp_path: Path) -> None:
    layer, x = L.Dense(3, activation="relu"), np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    model = hf.Sequential([hf.Input((5,)), layer])
    quantized(model, scheme, x)

    @hf.function(input_signature=[hf.TensorSpec((None, 5), "float32")])
    def answer(x: Any) -> Any:
        return model(x)

    hf.saved.save(answer, str(tmp_path / "answer.hf"))
    np.testing.assert_array_equal(hf.saved.load(str(tmp_path / "answer.hf"))(x).numpy(), model(x).numpy())
    pytest.importorskip("onnx")
    hf.onnx.save(model, str(tmp_path / "model.onnx"))
    np.testing.assert_array_equal(hf.onnx.load(str(tmp_path / "model.onnx"))(x).numpy(), model(x).numpy())


def test_ranges_of_inputs_that_are_not_finite_or_not_seen() -> None:
    model, x = images()
    hf.quantize.prepare_training(model)
    with pytest.raises(errors.ArgumentError, match="no finite input"):
        hf.quantize.convert(model)
    model(x, training=True)
    model(np.full_like(x, np.nan), training=True)
    before = model(x).numpy()
    hf.quantize.convert(model)
    np.testing.assert_allclose(model(x).numpy(), before, rtol=1e-4, atol=1e-3 * np.abs(before).max())


def test_nothing_is_converted_where_one_layer_was_not_seen() -> None:
    model, x = images()
    hf.quantize.prepare_training(model)
    model.layers[0](x, training=True)
    with pytest.raises(errors.ArgumentError, match="no finite input"):
        hf.quantize.convert(model)
    assert not any(isinstance(getattr(layer, "kernel", None), QuantizedWeight) for layer in model.layers)


def test_weights_alone_are_prepared_and_loaded(tmp_path: Path) -> None:
    model, x = images()
    hf.quantize.prepare_training(model, quantizes_inputs=False)
    model.save(str(tmp_path / "model"))
    np.testing.assert_array_equal(hf.models.load_model(str(tmp_path / "model"))(x).numpy(), model(x).numpy())


def test_training_for_quantization() -> None:
    model, x = images()
    y = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)
    model.compile("adam", "mse")
    model.fit(x, y, epochs=1, verbose=0)
    hf.quantize.prepare_training(model)
    losses = model.fit(x, y, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    before = model(x).numpy()
    hf.quantize.convert(model)
    after = model(x).numpy()
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=2e-3 * np.abs(before).max())
    biases = model.fit(x, y, epochs=3, verbose=0).history["loss"]  # what is left to train
    assert biases[-1] <= biases[0]


def test_a_training_step_is_that_of_rounded_weights() -> None:
    layer = L.Dense(2, use_bias=False)
    x = hf.asarray([[0.3, -1.0, 0.7]])
    layer(x)
    hf.quantize.prepare_training(layer, quantizes_inputs=False)
    with hf.GradientTape() as tape:
        loss = hf.sum(layer(x) ** 2)
    gradient = tape.gradient(loss, layer.trainable_variables[0]).numpy()
    exact = 2 * np.outer(x.numpy()[0].astype(np.float64), layer(x).numpy()[0])
    np.testing.assert_allclose(gradient, exact, rtol=1e-5)


def test_a_policy_builds_weights_to_be_loaded() -> None:
    layer = L.Dense(3, dtype="int4_weights_2_from_mixed_bfloat16")
    assert layer(hf.ones((2, 5))).dtype == hf.bfloat16
    assert isinstance(layer.kernel, QuantizedWeight) and layer.get_config()["dtype"].startswith("int4_weights_2_from_")


def test_saved_functions_and_checkpoints(tmp_path: Path) -> None:
    model, x = texts()
    hf.quantize.weights(model, "int4")
    after = model(x).numpy()

    @hf.function(input_signature=[hf.TensorSpec((None, 7), "int64")])
    def answer(x: Any) -> Any:
        return model(x)

    hf.saved.save(answer, str(tmp_path / "answer.hf"))
    np.testing.assert_array_equal(hf.saved.load(str(tmp_path / "answer.hf"))(x).numpy(), after)
    kept = hf.checkpoint.Checkpoint(model=model).save(str(tmp_path / "kept"))
    other, _ = texts()
    hf.quantize.weights(other, "int4")
    hf.checkpoint.Checkpoint(model=other).restore(kept)
    np.testing.assert_array_equal(other(x).numpy(), after)


def test_only_some_layers() -> None:
    model, _ = images()
    report = hf.quantize.weights(model, where=lambda path, layer: isinstance(layer, L.Dense))
    assert len(report.rows) == 1 and "in all" in repr(report)
    assert isinstance(model.layers[0].kernel, hf.Variable)


def test_a_wrapper_that_changes_weights_is_left_alone() -> None:
    layer = L.SpectralNormalization(L.Dense(3))
    layer(hf.ones((1, 2)))
    with pytest.raises(errors.ArgumentError, match="where="):
        hf.quantize.weights(layer)


def unfinished() -> Any:
    layer = L.Dense(2, kernel_initializer=hf.initializers.Constant(np.inf))
    layer(hf.ones((1, 2)))
    return layer


@pytest.mark.parametrize(
    "call",
    [
        lambda: hf.quantize.weights(hf.Sequential([L.Dense(3)])),
        lambda: hf.quantize.weights(hf.Sequential([hf.Input((3,)), L.ReLU()])),
        lambda: hf.quantize.weights(images()[0], "int5"),
        lambda: hf.quantize.weights(images()[0], group_size=0),
        lambda: hf.quantize.weights(unfinished()),
        lambda: hf.quantize.static(images()[0], []),
        lambda: hf.quantize.static(images()[0], np.full((1, 9, 9, 4), np.nan, np.float32)),
        lambda: hf.quantize.static(images()[0], 3),
        lambda: hf.quantize.dynamic(images()[0], "int8_weights"),
        lambda: hf.quantize.weights(images()[0], where=lambda path, layer: False),
        lambda: hf.quantize.weights(images()[0], where=3),
        lambda: hf.quantize.convert(images()[0]),
        lambda: images()[0].quantize("int8_static"),
        lambda: L.Dense(3, dtype="int9_from_float32"),
        lambda: L.Dense(3, dtype="int8_4_from_float32")(hf.ones((1, 4))),
    ],
)
def test_what_cannot_be_quantized(call: Callable[[], Any]) -> None:
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError)):
        call()


def test_a_failed_call_changes_nothing() -> None:
    model, x = images()
    before = model(x).numpy()
    with pytest.raises(errors.HybridflowError):
        hf.quantize.static(model, np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(model(x).numpy(), before)
    hf.quantize.weights(model)
    with pytest.raises(errors.ArgumentError, match="quantized already"):
        hf.quantize.dynamic(model)
    with pytest.raises(errors.ArgumentTypeError):
        hf.quantize.weights(3)


def test_names_in_files_stay(tmp_path: Path) -> None:
    """Files that were written before an attribute was renamed are read after it."""
    model = hf.Sequential([hf.Input((16,)), hf.layers.Dense(4)])
    hf.quantize.weights(model)
    path = tmp_path / "weights.safetensors"
    model.save_weights(path)
    assert b'layers.0.kernel.numbers"' in path.read_bytes()
    again = hf.Sequential([hf.Input((16,)), hf.layers.Dense(4)])
    hf.quantize.weights(again)
    again.load_weights(path)
    x = hf.ones((3, 16))
    assert same_bits(np.asarray(again(x)), np.asarray(model(x)))
