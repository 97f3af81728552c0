"""Policies, weights that layers see in another dtype, and losses that are scaled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, ArgumentTypeError

Policy = hf.mixed_precision.Policy
rng = np.random.default_rng(3)


@pytest.fixture
def half() -> Iterator[None]:
    hf.mixed_precision.set_global_policy("mixed_float16")
    yield
    hf.mixed_precision.set_global_policy("float32")


@pytest.mark.parametrize(
    ("name", "compute", "variable"),
    [
        ("mixed_float16", hf.float16, hf.float32),
        ("mixed_bfloat16", hf.bfloat16, hf.float32),
        ("float64", hf.float64, hf.float64),
        (hf.bfloat16, hf.bfloat16, hf.bfloat16),
        ("f16", hf.float16, hf.float16),
    ],
)
def test_policies_name_two_dtypes(name: Any, compute: Any, variable: Any) -> None:
    policy = Policy(name)
    assert (policy.compute_dtype, policy.variable_dtype) == (compute, variable)
    assert Policy.from_config(policy.get_config()) == policy == Policy(policy.name)
    layer = hf.layers.Dense(2, dtype=policy)
    assert (layer.compute_dtype, layer.dtype, layer.variable_dtype) == (compute, variable, variable)
    again = hf.layers.Dense.from_config(layer.get_config())
    assert again.dtype_policy == policy


@pytest.mark.parametrize("name", ["mixed_float32", "mixed_int8", "narrow", "mixed_", None, 3])
def test_what_is_no_policy_is_refused(name: Any) -> None:
    with pytest.raises(ArgumentError, match="is no policy; give 'mixed_float16'"):
        Policy(name)


def test_the_global_policy_is_that_of_layers_that_are_made_then(half: None) -> None:
    before = hf.layers.Dense(1)
    own = hf.layers.Dense(1, dtype="float32")
    hf.mixed_precision.set_global_policy("bfloat16")
    assert [layer.dtype_policy.name for layer in (before, own, hf.layers.Dense(1))] == [
        "mixed_float16",
        "float32",
        "bfloat16",
    ]
    before.dtype_policy = "float64"
    assert before([[1.0]]).dtype == hf.float64


def test_a_dense_layer_computes_in_half_with_weights_of_float32() -> None:
    layer = hf.layers.Dense(3, dtype="mixed_float16", bias_initializer="ones")
    x = rng.normal(size=(4, 5)).astype(np.float32)
    out = layer(x)
    kernel = layer.kernel.numpy()
    assert (kernel.dtype, out.dtype) == (np.float32, hf.float16)
    wide = x.astype(np.float16).astype(np.float32) @ kernel.astype(np.float16).astype(np.float32)
    expected = wide.astype(np.float16) + np.float16(1)
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-3)
    assert layer.kernel.value().dtype == hf.float32  # outside of the call it is what it is
    np.testing.assert_array_equal(hf.function(layer)(hf.asarray(x)).numpy(), out.numpy())


class Own(hf.layers.Layer):
    def build(self, input_shape: Any) -> None:
        self.listed = [self.add_weight((2,), "ones", name=f"w{i}") for i in range(2)]
        self.whole = self.add_weight((2,), "ones", autocast=False)
        self.plain = hf.Variable([1.0, 1.0])
        self.count = self.add_weight((), "zeros", trainable=False)
        self.seen: Any = None

    def call(self, inputs: Any) -> Any:
        self.count.assign_add(hf.sum(inputs))
        self.whole.assign(inputs)
        dtypes = [hf.multiply(v, 1.0).dtype for v in (*self.listed, self.whole, self.plain)]
        dtypes += [(self.listed[0] * 2.0).dtype, hf.stack([self.listed[0], self.listed[1]]).dtype]
        dtypes += [self.listed[0].value().dtype, (inputs + self.listed[0]).dtype, self.listed[0][0].dtype]
        self.seen = [dtype.name for dtype in dtypes]
        return inputs * self.listed[0] + self.listed[1]


@pytest.mark.parametrize("way", ["eager", "compiled", "taped"])
def test_weights_are_seen_in_half_within_the_call_alone(way: str) -> None:
    layer = Own(dtype="mixed_float16")
    x = hf.asarray([1.0, 2.0])
    if way == "taped":
        with hf.GradientTape() as tape:
            out = hf.sum(layer(x).astype("float32"))
        gradient = tape.gradient(out, layer.listed[0])
        assert gradient.dtype == hf.float32
        np.testing.assert_array_equal(gradient.numpy(), [1.0, 2.0])
    else:
        out = (hf.function(layer) if way == "compiled" else layer)(x)
        np.testing.assert_array_equal(out.numpy(), [2.0, 3.0])
        assert out.dtype == hf.float16
    h, f = "float16", "float32"
    assert layer.seen == [h, h, f, f, h, h, h, h, h]
    assert [v.dtype for v in layer.variables] == [hf.float32] * 5
    assert (layer.count.item(), layer.whole.tolist()) == (3.0, [1.0, 2.0])
    assert hf.multiply(layer.listed[0], 1.0).dtype == hf.float32


def test_layers_within_have_policies_of_their_own() -> None:
    class Outer(hf.layers.Layer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.inner = hf.layers.Dense(2, dtype="float32", use_bias=False, kernel_initializer="ones")
            self.found: list[str] = []

        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight((), "ones")

        def call(self, inputs: Any) -> Any:
            inner = self.inner(inputs)
            with hf.GradientTape() as tape:  # a scope within the scope
                tape.watch(inner)
                made = inner * self.scale
            self.found = [inner.dtype.name, made.dtype.name, (self.scale * 1.0).dtype.name]
            return inner * 1e-3

    outer = Outer(dtype="mixed_bfloat16")
    assert outer([[1.0, 2.0]]).dtype == hf.float32
    assert outer.found == ["float32", "float32", "bfloat16"]
    hf.function(outer)(hf.ones((1, 2)))
    assert outer.found == ["float32", "float32", "bfloat16"]


def test_an_error_in_a_call_ends_what_the_call_began() -> None:
    class Broken(hf.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight((), "ones")

        def call(self, inputs: Any) -> Any:
            raise RuntimeError("broken")

    layer = Broken(dtype="mixed_float16")
    with pytest.raises(RuntimeError, match="broken"):
        layer([1.0])
    assert (layer.w * 1.0).dtype == hf.float32


def test_compiled_functions_within_a_call_see_what_it_sees() -> None:
    class Compiled(hf.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight((2,), "ones")

        @hf.function
        def twice(self, x: Any) -> Any:
            return x * self.w * 2.0

        def call(self, inputs: Any) -> Any:
            return self.twice(inputs)

    layer = Compiled(dtype="mixed_float16")
    assert layer([1.0, 2.0]).dtype == hf.float16
    assert hf.function(layer)(hf.asarray([1.0, 2.0])).dtype == hf.float16
    assert layer.twice(hf.asarray([1.0, 2.0])).dtype == hf.float32
    assert layer([1.0, 2.0]).dtype == hf.float16


def test_loops_and_branches_in_a_call_see_it_too() -> None:
    class Looping(hf.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight((2,), "ones")

        def call(self, inputs: Any) -> Any:
            total = inputs
            for _ in hf.arange(3):
                total = total + self.w
            if hf.sum(total) > 0:
                total = total * self.w
            return total

    layer = Looping(dtype="mixed_float16")
    compiled = hf.function(layer)(hf.asarray([1.0, 2.0]))
    assert compiled.dtype == hf.float16
    np.testing.assert_array_equal(compiled.numpy(), layer([1.0, 2.0]).numpy())


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: hf.layers.BatchNormalization(), (4, 3)),
        (lambda: hf.layers.LayerNormalization(), (4, 3)),
        (lambda: hf.layers.GroupNormalization(1), (4, 3)),
        (lambda: hf.layers.RMSNormalization(), (4, 3)),
        (lambda: hf.layers.Softmax(), (4, 3)),
    ],
)
def test_means_and_sums_are_taken_in_float32(half: None, layer: Any, shape: Any) -> None:
    made = layer()
    x = (300 * rng.normal(size=shape)).astype(np.float16)  # whose squares are too large for float16
    out = made(hf.asarray(x), training=True) if isinstance(made, hf.layers.BatchNormalization) else made(hf.asarray(x))
    assert out.dtype == hf.float16
    wide = type(made).from_config({**made.get_config(), "dtype": "float32"})
    taught = {"training": True} if isinstance(made, hf.layers.BatchNormalization) else {}
    expected = wide(hf.asarray(x.astype(np.float32)), **taught)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-3, atol=1e-4)
    assert all(v.dtype == hf.float32 for v in made.variables)


def test_other_layers_run_in_half(half: None) -> None:
    numbers = np.array([[1, 2, 3], [3, 2, 1]])
    embedding = hf.layers.Embedding(5, 4)
    x = embedding(numbers)
    attention = hf.layers.MultiHeadAttention(2, 3)
    made = [
        x,
        hf.layers.LSTM(3)(x),
        hf.layers.Bidirectional(hf.layers.GRU(2, return_sequences=True))(x),
        hf.layers.Conv1D(3, 2)(x),
        hf.layers.TimeDistributed(hf.layers.Dense(2))(x),
        attention(x, x),
        hf.layers.Dropout(0.5)(x, training=True),
    ]
    assert {out.dtype for out in made} == {hf.float16}
    assert all(v.dtype == hf.float32 for v in (*embedding.variables, *attention.variables))


def test_losses_are_float32_and_do_not_overflow() -> None:
    y, p = np.zeros((2, 3), np.float32), np.full((2, 3), 300, np.float16)
    found = hf.losses.MeanSquaredError()(y, hf.asarray(p))
    assert (found.dtype, found.item()) == (hf.float32, 90000.0)
    layer = hf.layers.Dense(1, dtype="mixed_float16", kernel_initializer="ones", activity_regularizer="l2")
    layer([[300.0]])
    assert layer.losses[0].item() == pytest.approx(900.0)


# Scaled losses


def pairs(*values: float) -> list[tuple[Any, hf.Variable]]:
    return [(hf.asarray(value), hf.Variable(1.0)) for value in values]


def test_the_scale_follows_what_gradients_do() -> None:
    optimizer = hf.mixed_precision.LossScaleOptimizer(hf.optimizers.SGD(1.0), 8.0, dynamic_growth_steps=2)
    w = hf.Variable(1.0)

    def step(gradient: float) -> tuple[float, float, int, int]:
        optimizer.apply_gradients([(hf.asarray(gradient), w)])
        counted = optimizer.step_counter.item(), int(optimizer.iterations.item())
        return w.item(), optimizer.dynamic_scale.item(), *counted

    assert optimizer.scale_loss(hf.asarray(2.0)).item() == 16.0
    assert step(8.0) == (0.0, 8.0, 1, 1)
    assert step(8.0) == (-1.0, 16.0, 0, 2)
    assert step(16.0) == (-2.0, 16.0, 1, 3)
    assert step(float("nan")) == (-2.0, 8.0, 0, 3)
    assert step(float("inf")) == (-2.0, 4.0, 0, 3)
    assert step(4.0) == (-3.0, 4.0, 1, 4)


def test_one_gradient_that_is_not_finite_stops_all_updates() -> None:
    inner = hf.optimizers.Adam(0.1)
    optimizer = hf.mixed_precision.LossScaleOptimizer(inner)
    given = pairs(1.0, float("-inf"), 2.0)
    optimizer.apply_gradients(given)
    assert [v.item() for _, v in given] == [1.0, 1.0, 1.0]
    assert all(slot.item() == 0 for _, v in given for slot in inner._state.slots[id(v)].values())
    assert inner.iterations.item() == 0


def test_gradients_are_divided_before_they_are_clipped() -> None:
    optimizer = hf.mixed_precision.LossScaleOptimizer(hf.optimizers.SGD(1.0, clipvalue=0.5), 4.0)
    given = pairs(1.0, 4.0)
    optimizer.apply_gradients(given)
    assert [v.item() for _, v in given] == [0.75, 0.5]


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("broken", [False, True])
def test_gradients_of_look_ups_stay_rows(way: str, broken: bool) -> None:
    tables = [hf.Variable(np.ones((4000, 8), np.float32)) for _ in range(2)]
    inner = hf.optimizers.SGD(1.0)
    scaled, plain = hf.optimizers.LossScaleOptimizer(inner, 4.0), hf.optimizers.SGD(1.0)
    rows: list[Any] = []
    inner.update_rows = lambda *given: (rows.append(given), hf.optimizers.SGD.update_rows(inner, *given))  # type: ignore
    factors = np.array([1.0, 2.0, np.inf if broken else 3.0], np.float32)

    def step(numbers: Any, factors: Any) -> None:
        for table, optimizer in zip(tables, (scaled, plain)):
            with hf.GradientTape() as tape:
                loss = hf.sum(hf.gather(table, numbers) * factors[:, None])
                loss = optimizer.scale_loss(loss)
            optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    chosen = hf.function(step) if way == "compiled" else step
    chosen(hf.asarray([3, 7, 3]), hf.asarray(factors))
    assert rows
    expected = np.ones((4000, 8)) if broken else tables[1].numpy()
    np.testing.assert_array_equal(tables[0].numpy(), expected)
    assert scaled.dynamic_scale.item() == (2.0 if broken else 4.0)


def test_the_rate_and_the_rest_are_those_of_the_inner_optimizer() -> None:
    inner = hf.optimizers.Adam(0.1, gradient_accumulation_steps=2)
    optimizer = hf.mixed_precision.LossScaleOptimizer(inner, 2.0, 7)
    optimizer.learning_rate = 0.5
    assert inner.learning_rate.item() == 0.5
    assert {id(v) for v in optimizer.variables} >= {id(v) for v in inner.variables}
    w = hf.Variable(1.0)
    for _ in range(3):
        optimizer.apply_gradients([(hf.asarray(1.0), w)])
    assert optimizer.iterations.item() == inner.iterations.item() == 1
    again = hf.optimizers.get({"class_name": "LossScaleOptimizer", "config": optimizer.get_config()})
    assert again.get_config() == optimizer.get_config()
    pickled = pickle.loads(pickle.dumps(optimizer))
    assert pickled.inner_optimizer._state is pickled._state
    assert copy.deepcopy(optimizer).dynamic_scale is not optimizer.dynamic_scale


@pytest.mark.parametrize("wrong", ["inner", "twice", "scale", "steps"])
def test_arguments_that_make_no_sense_are_refused(wrong: str) -> None:
    make = hf.mixed_precision.LossScaleOptimizer
    sgd = hf.optimizers.SGD()
    if wrong in ("inner", "twice"):
        with pytest.raises(ArgumentTypeError, match="give an optimizer of another kind"):
            make("sgd" if wrong == "inner" else make(sgd))
        return
    with pytest.raises(ArgumentError, match=r"initial_scale|dynamic_growth_steps"):
        make(sgd, **({"initial_scale": 0.0} if wrong == "scale" else {"dynamic_growth_steps": 0}))


def test_the_scale_is_saved_in_checkpoints(tmp_path: Path) -> None:
    model = hf.Sequential([hf.Input((2,)), hf.layers.Dense(1)])
    optimizer = hf.mixed_precision.LossScaleOptimizer(hf.optimizers.Adam(), 8.0)
    kernel = model.trainable_variables[0]
    optimizer.apply_gradients([(hf.asarray([[np.inf], [0.0]], dtype="float32"), kernel)])
    optimizer.apply_gradients([(hf.ones((2, 1)), kernel)])
    hf.checkpoint.Checkpoint(model=model, optimizer=optimizer).write(tmp_path / "one.safetensors")
    other = hf.mixed_precision.LossScaleOptimizer(hf.optimizers.Adam())
    hf.checkpoint.Checkpoint(model=model, optimizer=other).restore(tmp_path / "one.safetensors")
    assert (other.dynamic_scale.item(), other.step_counter.item(), other.iterations.item()) == (4.0, 1, 1)
    name = next(iter(optimizer._state.slots[id(kernel)]))
    np.testing.assert_array_equal(other.get_slot(kernel, name).numpy(), optimizer.get_slot(kernel, name).numpy())


def data(count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    return x, (x[:, :1] - 2 * x[:, 1:2] + 0.5).astype(np.float32)


def line(policy: str) -> hf.Model:
    first = hf.layers.Dense(8, "tanh", dtype=policy, kernel_initializer=hf.initializers.GlorotUniform(1))
    last = hf.layers.Dense(1, dtype=policy, kernel_initializer=hf.initializers.GlorotUniform(2))
    return hf.Sequential([hf.Input((4,)), first, last], dtype=policy)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_model_is_trained_as_in_float32_within_rounding(policy: str) -> None:
    x, y = data()
    histories = []
    for chosen in (policy, "float32"):
        model = line(chosen)
        model.compile("sgd", "mse")
        assert isinstance(model.optimizer, hf.optimizers.LossScaleOptimizer) == (chosen == "mixed_float16")
        sgd = hf.optimizers.SGD(0.05)  # with a scale that needs not be found first
        scaled = hf.optimizers.LossScaleOptimizer(sgd, 256.0) if chosen == "mixed_float16" else sgd
        model.compile(scaled, "mse")
        history = model.fit(x, y, batch_size=8, epochs=5, verbose=0, shuffle=False)
        histories.append(history.history["loss"])
        assert all(v.dtype == hf.float32 for v in model.variables)
    np.testing.assert_allclose(histories[0], histories[1], rtol=0.02 if policy == "mixed_float16" else 0.1)


def test_a_written_step_scales_the_loss_itself() -> None:
    x, y = data()
    model = line("mixed_float16")
    optimizer = hf.mixed_precision.LossScaleOptimizer(hf.optimizers.SGD(0.05))
    loss = hf.losses.MeanSquaredError()

    @hf.function
    def step(x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
            scaled = optimizer.scale_loss(value)
        optimizer.apply(tape.gradient(scaled, model.trainable_variables), model.trainable_variables)
        return value

    found = [step(x[i : i + 8], y[i : i + 8]).item() for _ in range(5) for i in range(0, 32, 8)]
    other = line("mixed_float16")
    other.compile(hf.optimizers.SGD(0.05), "mse")
    expected = [other.train_on_batch(x[i : i + 8], y[i : i + 8]) for i in range(0, 32, 8)]
    assert found[0] == pytest.approx(expected[0])
    assert found[-1] < found[0] / 2


def test_scaling_can_be_left_to_the_user() -> None:
    model = line("mixed_float16")
    model.compile("sgd", "mse", auto_scale_loss=False)
    assert type(model.optimizer) is hf.optimizers.SGD
    own = hf.optimizers.LossScaleOptimizer(hf.optimizers.SGD(), 4.0)
    model.compile(own, "mse")
    assert model.optimizer is own


def test_a_saved_model_computes_in_half(tmp_path: Path) -> None:
    x, _ = data(3)
    model = line("mixed_float16")
    expected = model(x)
    spec = hf.TensorSpec((None, 4), hf.float32)
    hf.saved.save(hf.function(lambda x: model(x), input_signature=[spec]), tmp_path / "model")
    found = hf.saved.load(tmp_path / "model")(hf.asarray(x))
    assert found.dtype == expected.dtype == hf.float16
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_first_layers_of_float32_get_inputs_as_they_are(half: None) -> None:
    inputs = hf.Input((1,))
    kept = hf.layers.Lambda(lambda x: x * 4096.0, dtype="float32")
    functional = hf.Model(inputs, kept(inputs))
    sequential = hf.Sequential([hf.layers.Lambda(lambda x: x * 4096.0, dtype="float32")])
    x = np.array([[1 + 2**-20]], np.float32)
    for model in (functional, sequential):
        assert model(x).numpy() == x * 4096


def test_a_function_that_makes_layers_heeds_the_policy() -> None:
    class Rescale(hf.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs * 0.5

    @hf.function
    def made(x: Any) -> Any:
        return Rescale()(x)

    try:
        assert made(hf.ones(2)).dtype == hf.float32
        hf.mixed_precision.set_global_policy("mixed_float16")
        assert made(hf.ones(2)).dtype == hf.float16
    finally:
        hf.mixed_precision.set_global_policy("float32")
    assert made(hf.ones(2)).dtype == hf.float32


def test_copies_of_a_weight_are_seen_as_it_is() -> None:
    layer = hf.layers.Dense(1, dtype="mixed_float16")
    layer([[1.0]])
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert again([[1.0]]).dtype == hf.float16


def test_functional_models_of_a_mixed_policy_come_back() -> None:
    try:
        hf.mixed_precision.set_global_policy("mixed_float16")
        inputs = hf.layers.Input([2])
        model = hf.Model(inputs, hf.layers.Dense(1)(inputs))
    finally:
        hf.mixed_precision.set_global_policy("float32")
    again = hf.models.model_from_json(model.to_json())
    assert again.layers[-1].compute_dtype == "float16" and again.inputs[0].dtype == model.inputs[0].dtype == hf.float32
    assert hf.layers.Input([2], dtype="mixed_bfloat16").dtype == hf.bfloat16
