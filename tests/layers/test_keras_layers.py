"""Convolutional memories, grouped attention and spectral normalization: against Keras, and wrong use."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import layers
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.support import layer_values

RECORDED: dict[str, list[list[float]]] = json.loads(layer_values.RECORDED.read_text(encoding="utf-8"))


def assert_recorded(name: str, found: list[Any]) -> None:
    for value, wanted in zip(found, RECORDED[name], strict=True):
        np.testing.assert_allclose(np.ravel(value), np.array(wanted, np.float32), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", layer_values.CASES)
def test_results_are_those_of_keras(name: str) -> None:
    layer, found = layer_values.results(name, layers)
    assert_recorded(name, found)
    kind, _, shapes, options = layer_values.CASES[name]
    again = getattr(layers, kind).from_config(layer.get_config())
    inputs = layer_values.arrays(1, shapes)
    again(*inputs)
    again.set_weights(layer.get_weights())
    made = hf.function(lambda *args: again(*args, **options))(*inputs)
    for one, other in zip(made if isinstance(made, tuple) else [made], found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_spectral_normalization_is_that_of_keras() -> None:
    assert_recorded("normalized", layer_values.normalized(layers))


def test_spectral_normalization_leaves_kernels_of_zeros() -> None:
    layer = layers.SpectralNormalization(layers.Dense(2, kernel_initializer="zeros"))
    np.testing.assert_array_equal(layer(np.ones((1, 3), np.float32), training=True), [[0.0, 0.0]])
    assert not np.any(np.isnan(layer.vector_u))


def test_spectral_normalization_brings_the_largest_singular_value_to_1() -> None:
    layer = layers.SpectralNormalization(layers.Conv2D(3, 2), power_iterations=20)
    x = np.ones((1, 4, 4, 2), np.float32)
    for _ in range(3):
        layer(x, training=True)
    largest = np.linalg.svd(layer.layer.kernel.numpy().reshape(-1, 3), compute_uv=False)[0]
    np.testing.assert_allclose(largest, 1.0, rtol=1e-4)
    before = layer.layer.kernel.numpy().copy()
    layer(x)
    np.testing.assert_array_equal(layer.layer.kernel, before)


def test_a_model_with_spectral_normalization_learns() -> None:
    model = hf.Sequential([layers.SpectralNormalization(layers.Dense(4, "tanh")), layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(16, 3)).astype("f4")
    losses = model.fit(x, x[:, :1], epochs=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_what_has_no_kernel_cannot_be_normalized() -> None:
    with pytest.raises(ArgumentError, match="neither a kernel nor embeddings"):
        layers.SpectralNormalization(layers.Flatten())(np.ones((1, 2), np.float32))
    with pytest.raises(ArgumentTypeError, match="no layer"):
        layers.SpectralNormalization(3)


def test_convolutional_memories_keep_states_between_calls() -> None:
    x = np.random.default_rng(0).normal(size=(1, 4, 5, 2)).astype("f4")
    whole = layers.ConvLSTM1D(2, 3, padding="same")
    wanted = whole(x)
    parts = layers.ConvLSTM1D(2, 3, padding="same", stateful=True)
    parts(x[:, :2])
    parts.set_weights(whole.get_weights())
    parts.reset_state()
    parts(x[:, :2])
    np.testing.assert_allclose(parts(x[:, 2:]), wanted, rtol=1e-6)


def test_masked_steps_change_no_state() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 1)).astype("f4")
    layer = layers.ConvLSTM1D(2, 2)
    short = layer(x[:, :2])
    np.testing.assert_array_equal(layer(x, mask=hf.asarray([[True, True, False]] * 2)), short)


def test_channels_may_come_first() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5, 2)).astype("f4")
    last, first = layers.ConvLSTM2D(3, 2), layers.ConvLSTM2D(3, 2, data_format="channels_first")
    first(np.moveaxis(x, -1, 2))
    wanted = last(x)
    first.set_weights(last.get_weights())
    np.testing.assert_allclose(np.moveaxis(first(np.moveaxis(x, -1, 2)), 1, -1), wanted, rtol=1e-5, atol=1e-6)


def test_dropped_elements_are_the_same_at_all_steps() -> None:
    layer = layers.ConvLSTM1D(1, 1, dropout=0.5, use_bias=False, return_sequences=True, seed=3, activation="linear")
    x = np.ones((1, 4, 50, 1), np.float32)
    out = layer(x, training=True).numpy()[0, :, :, 0]
    silent = out[0] == 0
    assert 0 < silent.sum() < 50 and not out[:, silent].any()


def test_gradients_pass_through_convolutional_memories() -> None:
    layer = layers.ConvLSTM1D(2, 2)
    x = np.random.default_rng(0).normal(size=(1, 3, 4, 1)).astype("f4")
    layer(x)
    with hf.GradientTape() as tape:
        loss = hf.sum(layer(x) ** 2)
    (slope,) = tape.gradient(loss, [layer.cell.kernel])
    kernel, step = layer.cell.kernel, 1e-2
    start = kernel.numpy().copy()
    values = []
    for sign in (1, -1):
        moved = start.copy()
        moved[0, 0, 0] += sign * step
        kernel.assign(moved)
        values.append(float(hf.sum(layer(x) ** 2)))
    np.testing.assert_allclose(slope.numpy()[0, 0, 0], (values[0] - values[1]) / (2 * step), rtol=2e-2, atol=1e-4)


def test_wrong_inputs_are_named() -> None:
    with pytest.raises(ShapeError, match="steps"):
        layers.ConvLSTM2D(2, 2)(np.ones((1, 4, 4, 1), np.float32))
    with pytest.raises(ArgumentError, match="cannot share"):
        layers.GroupQueryAttention(2, 3, 2)
    with pytest.raises(ArgumentError, match="dropout"):
        layers.ConvLSTM2D(2, 2, dropout=1.5)


def test_dropout_draws_for_its_noise_shape() -> None:
    x = hf.ones((4, 5, 6))
    layer = hf.layers.Dropout(0.5, noise_shape=(None, 1, 6), seed=3)
    again = hf.layers.Dropout.from_config(layer.get_config())
    found = layer(x, training=True).numpy()
    assert (found == found[:, :1]).all() and set(found.ravel()) == {0.0, 2.0}
    assert (hf.function(lambda x: again(x, training=True))(x).numpy() == found).all()
    with pytest.raises(ShapeError, match="noise_shape"):
        layer(hf.ones((4, 5)), training=True)


def test_flatten_of_channels_first_is_that_of_channels_last() -> None:
    x = np.arange(24.0).reshape(2, 2, 2, 3)
    layer = hf.layers.Flatten(data_format="channels_first")
    expected = hf.layers.Flatten()(x).numpy()
    assert (layer(x.transpose(0, 3, 1, 2)).numpy() == expected).all()
    assert layer.get_config()["data_format"] == "channels_first"
    with pytest.raises(ArgumentError, match="data_format"):
        hf.layers.Flatten("channels")


def test_recurrent_layers_take_unroll() -> None:
    layer = hf.layers.GRU(3, unroll=True, return_sequences=True)
    x = hf.asarray(np.linspace(-1, 1, 24).reshape(2, 4, 3).astype(np.float32))
    rolled = hf.layers.GRU.from_config(layer.get_config() | {"unroll": False})
    layer(x), rolled(x)
    rolled.set_weights(layer.get_weights())
    assert (layer(x).numpy() == rolled(x).numpy()).all()
    assert layer.get_config()["unroll"] is True


def test_weights_of_spectral_normalization_have_keras_order() -> None:
    layer = layers.SpectralNormalization(layers.Dense(3))
    layer(np.ones((2, 4), np.float32))
    assert [v.shape for v in layer.weights] == [(4, 3), (1, 3), (3,)]  # the kernel, its vector, the bias
    assert list(layer.named_variables()) == ["layer.kernel", "vector_u", "layer.bias"]
    layer.layer.trainable = False
    assert not layer.trainable_variables


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_bilinear_upsampling(data_format: str) -> None:
    x = np.array([[0.0, 4.0]], np.float32).reshape((1, 1, 2, 1) if data_format == "channels_last" else (1, 1, 1, 2))
    found = layers.UpSampling2D((1, 2), data_format, interpolation="bilinear")(x)
    assert np.ravel(found).tolist() == [0.0, 1.0, 3.0, 4.0]
    with pytest.raises(hf.errors.ArgumentError, match="interpolation is 'cubic'"):
        layers.UpSampling2D(interpolation="cubic")


@pytest.mark.parametrize("kind", [layers.SpatialDropout2D, layers.SpatialDropout3D])
def test_dropout_of_channels_that_come_first(kind: Any) -> None:
    layer = kind(0.5, "channels_first", 1)
    x = np.ones((2, 30, 2) + (2,) * (layer._axes - 3), np.float32)
    found = np.asarray(layer(x, training=True)).reshape(2, 30, -1)
    assert (found == found[:, :, :1]).all() and len(np.unique(found[0, :, 0])) == 2
    assert kind.from_config(layer.get_config()).data_format == "channels_first"


def test_first_weights_of_bidirectional() -> None:
    x = np.ones((2, 3, 4), np.float32)
    layer = layers.Bidirectional(layers.SimpleRNN(2))
    expected = layer(x)
    again = layers.Bidirectional(layers.SimpleRNN(2), "concat", layer.get_weights())
    assert np.array_equal(again(x), expected)


def test_the_whole_shape_of_an_input() -> None:
    assert layers.InputLayer(batch_shape=(2, None, 3)).output.shape[0] == 2
    assert layers.InputLayer(batch_shape=(None, 3)).shape == (3,)
    with pytest.raises(hf.errors.ArgumentError, match="give batch_shape"):
        layers.InputLayer((3,), batch_shape=(None, 3))


def test_random_crop_takes_one_part_of_all_pictures() -> None:
    x = np.arange(2 * 5 * 6 * 2, dtype="f4").reshape(2, 5, 6, 2)
    layer = hf.layers.RandomCrop(2, 3, seed=4)
    again = hf.layers.RandomCrop.from_config(layer.get_config())
    crop = hf.function(lambda x: again(x, training=True))
    places = set()
    for _ in range(60):
        found = layer(x, training=True).numpy()
        row, column = (int(n) for n in np.argwhere(x[0, :, :, 0] == found[0, 0, 0, 0])[0])
        np.testing.assert_array_equal(found, x[:, row : row + 2, column : column + 3])
        np.testing.assert_array_equal(crop(x).numpy(), found)
        places.add((row, column))
    assert {row for row, _ in places} == {0, 1, 2, 3} and {column for _, column in places} == {0, 1, 2, 3}
    np.testing.assert_array_equal(hf.layers.RandomCrop(5, 6)(x[0], training=True).numpy(), x[0])


@pytest.mark.parametrize("training", [True, False])
def test_random_crop_keeps_the_ratio_where_it_does_not_draw(training: bool) -> None:
    x = np.arange(2 * 4 * 6, dtype="f4").reshape(2, 4, 6, 1)
    found = hf.layers.RandomCrop(8, 8)(x, training=training).numpy()
    np.testing.assert_array_equal(found, hf.layers.Resizing(8, 8)(x[:, :, 1:5]).numpy())
    small = hf.layers.RandomCrop(2, 2)(x, training=False).numpy()  # the middle
    np.testing.assert_array_equal(small, hf.layers.Resizing(2, 2)(x[:, :, 1:5]).numpy())


def test_states_are_reset_by_their_old_name() -> None:
    mean = hf.metrics.Mean()
    mean.update_state(3.0)
    mean.reset_states()
    assert float(mean.result()) == 0
    x = np.ones((2, 3, 4), "f4")
    for layer in hf.layers.GRU(3, stateful=True), hf.layers.Bidirectional(hf.layers.GRU(3, stateful=True)):
        first, second = layer(x).numpy(), layer(x).numpy()
        layer.reset_states()
        assert (layer(x).numpy() == first).all() and (second != first).any()
    generator = hf.random.Generator(1)
    drawn = generator.uniform((3,)).numpy()
    generator.reset_from_seed(1)
    assert (generator.uniform((3,)).numpy() == drawn).all()


# The names of arguments that may be given without one, in Keras 3.15's order.
_STARTS = ["kernel_initializer", "recurrent_initializer", "bias_initializer"]
_RULES = ["kernel_regularizer", "recurrent_regularizer", "bias_regularizer", "activity_regularizer"]
_RULES += ["kernel_constraint", "recurrent_constraint", "bias_constraint", "dropout", "recurrent_dropout"]
_WALKS = ["return_sequences", "return_state", "go_backwards", "stateful"]
_RNN = ["units", "activation", "recurrent_activation", "use_bias", *_STARTS]
_CELL = [name for name in _RULES if name != "activity_regularizer"]
_DENSE = ["activation", "use_bias", "kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer"]
_DENSE += ["activity_regularizer", "kernel_constraint", "bias_constraint"]
_PLACES = ["filters", "kernel_size", "strides", "padding"]
_DEPTH = ["depthwise_initializer", "bias_initializer", "depthwise_regularizer", "bias_regularizer"]
_DEPTH += ["activity_regularizer", "depthwise_constraint", "bias_constraint"]
_BOTH = ["depthwise_initializer", "pointwise_initializer", "bias_initializer", "depthwise_regularizer"]
_BOTH += ["pointwise_regularizer", "bias_regularizer", "activity_regularizer", "depthwise_constraint"]
_BOTH += ["pointwise_constraint", "bias_constraint"]
_AFFINE = ["axis", "epsilon", "center", "scale", "beta_initializer", "gamma_initializer"]
_ENDS = ["beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint"]
_MOVING = ["moving_mean_initializer", "moving_variance_initializer"]
_MEMORY = ["unit_forget_bias", *_RULES, "seed", *_WALKS]
ORDERS = {
    "Dense": ["units", *_DENSE],
    "Conv2D": [*_PLACES, "data_format", "dilation_rate", "groups", *_DENSE],
    "Conv2DTranspose": [*_PLACES, "output_padding", "data_format", "dilation_rate", *_DENSE],
    "Conv3DTranspose": [*_PLACES, "data_format", "output_padding", "dilation_rate", *_DENSE],
    "DepthwiseConv2D": [
        *("kernel_size", "strides", "padding", "depth_multiplier", "data_format", "dilation_rate", "activation"),
        *("use_bias", *_DEPTH),
    ],
    "SeparableConv2D": [
        *(*_PLACES, "data_format", "dilation_rate", "depth_multiplier", "activation", "use_bias"),
        *_BOTH,
    ],
    "BatchNormalization": ["axis", "momentum", *_AFFINE[1:], *_MOVING, *_ENDS],
    "LayerNormalization": [*_AFFINE, *_ENDS],
    "GroupNormalization": ["groups", *_AFFINE, *_ENDS],
    "LSTMCell": [*_RNN, "unit_forget_bias", *_CELL, "seed"],
    "GRUCell": [*_RNN, *_CELL],
    "SimpleRNNCell": ["units", "activation", "use_bias", *_STARTS, *_CELL, "seed"],
    "LSTM": [*_RNN, *_MEMORY, "unroll"],
    "GRU": [*_RNN, *_RULES, "seed", *_WALKS, "unroll", "reset_after"],
    "SimpleRNN": ["units", "activation", "use_bias", *_STARTS, *_RULES, *_WALKS, "unroll", "seed"],
    "ConvLSTM2D": [*_PLACES, "data_format", "dilation_rate", *_RNN[1:], *_MEMORY],
}
_WORDS = {"activation": "relu", "recurrent_activation": "tanh", "padding": "same", "data_format": "channels_first"}
_NUMBERS = {"output_padding": 0, "axis": 1, "epsilon": 0.25, "momentum": 0.5, "dropout": 0.25, "recurrent_dropout": 0.5}


def _unlike(name: str, place: int) -> Any:
    """A value that an argument does not have unless it is given, and that no other of its kind has."""
    if name in _WORDS or name in _NUMBERS:
        return _WORDS.get(name, _NUMBERS.get(name))
    kind = name.rpartition("_")[2]
    if kind == "initializer":
        return hf.initializers.Constant(float(place))
    if kind == "regularizer":
        return hf.regularizers.L2(float(place))
    if kind == "constraint":
        return hf.constraints.MaxNorm(float(place))
    flags = "use_bias", "center", "scale", "unit_forget_bias", "reset_after"
    if name in flags:
        return False
    return True if name in (*_WALKS, "unroll") else 2


@pytest.mark.parametrize("name", ORDERS)
def test_arguments_without_names_have_the_order_of_keras(name: str) -> None:
    given = {argument: _unlike(argument, place) for place, argument in enumerate(ORDERS[name])}
    if "groups" in given and name == "Conv2D":
        given["groups"] = 1
    kind = getattr(layers, name)
    assert kind(*given.values()).get_config() == kind(**given).get_config()


def test_too_many_arguments_without_a_name_are_an_error() -> None:
    with pytest.raises(ArgumentTypeError, match="there are 22 arguments without a name; at most 20"):
        layers.SimpleRNN(2, *[None] * 22)
    with pytest.raises(ArgumentTypeError, match="activation is given twice"):
        layers.LSTM(2, "relu", activation="tanh")


def test_a_layer_that_nobody_told_trains_as_its_own_call_says() -> None:
    class Twice(layers.Layer):
        def call(self, inputs: Any, training: bool = True) -> Any:
            return inputs * 2 if training else inputs

    x = np.ones((1, 2), np.float32)
    model = hf.Sequential([Twice()])
    for found, wanted in (
        (Twice()(x), 2),
        (model(x), 2),
        (model(x, training=False), 1),
        (model.predict(x, verbose=0), 1),
        (hf.function(lambda x: model(x))(x), 2),
    ):
        np.testing.assert_array_equal(found, x * wanted)
    pictures = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(layers.RandomFlip()(pictures, training=False), pictures)
    for kind in (layers.RandomRotation((0.25, 0.25)), layers.RandomContrast((0.5, 0.5)), layers.RandomZoom((0.5, 0.5))):
        assert not np.array_equal(kind(pictures), pictures)
        assert not np.array_equal(hf.Sequential([kind])(pictures), pictures)
        np.testing.assert_array_equal(hf.Sequential([kind])(pictures, training=False), pictures)


@pytest.mark.parametrize("steps", [1, 4])
def test_a_layer_whose_calls_change_it_is_called_step_by_step(steps: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, steps, 2)).astype("f4")
    alone, around, compiled = (layers.BatchNormalization(momentum=0.5) for _ in range(3))
    wanted = np.stack([alone(x[:, step], training=True).numpy() for step in range(steps)], axis=1)
    found = layers.TimeDistributed(around)(x, training=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    whole = layers.TimeDistributed(compiled)
    np.testing.assert_array_equal(hf.function(lambda x: whole(x, training=True))(x), found)
    for one, other, third in zip(alone.get_weights(), around.get_weights(), compiled.get_weights()):
        np.testing.assert_allclose(one, other, rtol=1e-6)
        np.testing.assert_array_equal(other, third)
    fixed = alone(x.reshape(-1, 2)).numpy().reshape(x.shape)
    np.testing.assert_allclose(layers.TimeDistributed(alone)(x), fixed, rtol=1e-6)


def test_a_layer_that_its_calls_leave_alone_is_called_once_for_all_steps() -> None:
    called: list[Any] = []

    class Told(layers.Dense):
        def call(self, inputs: Any) -> Any:
            called.append(inputs.shape)
            return super().call(inputs)

    layer = layers.TimeDistributed(Told(2))
    x = np.ones((3, 4, 2), np.float32)
    layer(x)
    called.clear()
    layer(x, training=True)
    assert called == [(12, 2)]


def test_models_reset_the_states_of_those_layers_that_can() -> None:
    class Counting(hf.layers.Layer):
        stateful = True

        def call(self, inputs: Any) -> Any:
            return inputs

    model = hf.Sequential([Counting(), hf.layers.GRU(3, stateful=True)])
    x = np.ones((2, 3, 4), "f4")
    first, second = model(x).numpy(), model(x).numpy()
    model.reset_states()
    assert (model(x).numpy() == first).all() and (second != first).any()


def test_bins_of_batches_are_those_of_the_whole() -> None:
    values = np.arange(9.0)
    layer, whole = hf.layers.Discretization(num_bins=3), hf.layers.Discretization(num_bins=3)
    layer.adapt(hf.data.Dataset.from_tensor_slices(values).batch(4))
    whole.adapt(values)
    assert layer.bin_boundaries == whole.bin_boundaries == [2.0, 5.0]
    with pytest.raises(hf.errors.ArgumentError, match="no data"):
        hf.layers.Discretization(num_bins=3).adapt([])


def test_specs_show_what_they_say() -> None:
    spec = hf.layers.InputSpec
    assert [repr(s) for s in (spec(ndim=0), spec(axes={-1: 3}), spec())] == [
        "InputSpec(ndim=0)", "InputSpec(axes={-1: 3})", "InputSpec()"
    ]  # fmt: skip
