"""Recurrent layers against loops in NumPy: sequences, states, masks, directions, gradients; cells of users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers

RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 5, 2))
MASK = np.array([[1, 1, 0, 1, 0], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], bool)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def simple(x: Any, states: Any, k: Any, r: Any, b: Any) -> Any:
    h = np.tanh(x @ k + states[0] @ r + b)
    return h, [h]


def lstm(x: Any, states: Any, k: Any, r: Any, b: Any) -> Any:
    i, f, c, o = np.split(x @ k + states[0] @ r + b, 4, axis=-1)
    memory = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(c)
    h = sigmoid(o) * np.tanh(memory)
    return h, [h, memory]


def gru(x: Any, states: Any, k: Any, r: Any, b: Any) -> Any:
    both = np.zeros((2, len(k.T))) if np.ndim(b) == 0 else b
    xz, xr, xh = np.split(x @ k + both[0], 3, axis=-1)
    hz, hr, hh = np.split(states[0] @ r + both[1], 3, axis=-1)
    z = sigmoid(xz + hz)
    h = z * states[0] + (1 - z) * np.tanh(xh + sigmoid(xr + hr) * hh)
    return h, [h]


def gru_before(x: Any, states: Any, k: Any, r: Any, b: Any) -> Any:
    xz, xr, xh = np.split(x @ k + b, 3, axis=-1)
    n = states[0].shape[-1]
    z, reset = sigmoid(xz + states[0] @ r[:, :n]), sigmoid(xr + states[0] @ r[:, n : 2 * n])
    h = z * states[0] + (1 - z) * np.tanh(xh + (reset * states[0]) @ r[:, 2 * n :])
    return h, [h]


KINDS: dict[str, tuple[Any, Any, int]] = {
    "simple": (layers.SimpleRNN, simple, 1),
    "lstm": (layers.LSTM, lstm, 2),
    "gru": (layers.GRU, gru, 1),
    "gru, reset before": (lambda *a, **o: layers.GRU(*a, reset_after=False, **o), gru_before, 1),
}


def walked(
    step: Any, weights: Any, x: Any, states: Any, mask: Any = None, back: bool = False, zero: bool = False
) -> Any:
    """Outputs in the order in which they are made, the last one, and the last states."""
    outputs, out = [], np.zeros_like(states[0])
    for t in range(x.shape[1])[:: -1 if back else 1]:
        new, after = step(x[:, t], states, *weights)
        if mask is not None:
            there = mask[:, t, None]
            new = np.where(there, new, 0 if zero else out)
            after = [np.where(there, a, b) for a, b in zip(after, states)]
        outputs.append(new)
        out, states = new, after
    return np.stack(outputs, 1), out, states


def given_weights(layer: Any) -> list[np.ndarray]:
    """Weights that are not 0, as the layer's, in float64."""
    layer(X)
    weights = [0.7 * np.random.default_rng(len(w.shape)).standard_normal(w.shape) for w in layer.get_weights()]
    layer.set_weights(weights)
    return weights if layer.cell.use_bias else [*weights, np.zeros(())]


def check(layer: Any, found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == layer.dtype
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KINDS)
def test_layers_are_loops(name: str, dtype: str, back: bool, masked: bool) -> None:
    make, step, count = KINDS[name]
    mask = MASK if masked else None
    options = {"go_backwards": back, "return_state": True, "dtype": dtype}
    layer = make(4, return_sequences=True, **options)
    weights = given_weights(layer)
    outputs, last, states = walked(step, weights, X, [np.zeros((3, 4))] * count, mask, back)
    found = layer(X, mask=mask)
    check(layer, found, [outputs, *states])
    compiled = hf.function(lambda x: layer(x, mask=mask))
    assert [t.numpy().tobytes() for t in compiled(X)] == [t.numpy().tobytes() for t in found]
    one = make(4, **options)
    one(X)
    one.set_weights(layer.get_weights())
    found = one(X, mask=mask)
    check(layer, found, [last, *states])
    compiled = hf.function(lambda x: one(x, mask=mask))
    assert [t.numpy().tobytes() for t in compiled(X)] == [t.numpy().tobytes() for t in found]


@pytest.mark.parametrize("name", KINDS)
def test_without_bias_and_with_states_to_begin_with(name: str) -> None:
    make, step, count = KINDS[name]
    layer = make(4, use_bias=False, dtype="float64", return_sequences=True, zero_output_for_mask=True)
    weights = given_weights(layer)
    start = [RNG.standard_normal((3, 4)) for _ in range(count)]
    outputs = walked(step, weights, X, start, MASK, zero=True)[0]
    check(layer, [layer(X, initial_state=start, mask=MASK)], [outputs])


@pytest.mark.parametrize("name", KINDS)
def test_gradients_are_those_of_the_loop(name: str) -> None:
    make, step, count = KINDS[name]
    layer = make(3, dtype="float64")
    weights = given_weights(layer)

    def loss_of(*weights: Any) -> float:
        return float((walked(step, weights, X, [np.zeros((3, 3))] * count, MASK)[1] ** 2).sum())

    def gradients(x: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.sum(hf.square(layer(x, mask=MASK)))
        return tape.gradient(loss, layer.trainable_variables)

    found = gradients(X)
    assert [g.numpy().tobytes() for g in hf.function(gradients)(X)] == [g.numpy().tobytes() for g in found]
    for number, gradient in enumerate(found):
        for place in list(np.ndindex(gradient.shape))[:: max(1, gradient.size // 7)]:
            ends = []
            for shift in (1e-6, -1e-6):
                moved = [w.copy() for w in weights]
                moved[number][place] += shift
                ends.append(loss_of(*moved))
            assert gradient.numpy()[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-8)


MERGES: dict[str | None, Callable[[Any, Any], Any]] = {
    "concat": lambda a, b: np.concatenate([a, b], -1),
    "sum": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "ave": lambda a, b: (a + b) / 2,
}


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("mode", MERGES)
def test_both_directions(mode: str, sequences: bool) -> None:
    layer = layers.Bidirectional(
        layers.LSTM(4, return_sequences=sequences, return_state=True, dtype="float64"), mode, dtype="float64"
    )
    layer(X)
    weights = [given_weights(layer.forward_layer), given_weights(layer.backward_layer)]
    start = [np.zeros((3, 4))] * 2
    ahead = walked(lstm, weights[0], X, start, MASK, zero=sequences)
    back = walked(lstm, weights[1], X, start, MASK, back=True, zero=sequences)
    pair = (ahead[0], back[0][:, ::-1]) if sequences else (ahead[1], back[1])
    found = layer(X, mask=MASK)
    check(layer, found, [MERGES[mode](*pair), *ahead[2], *back[2]])
    run = hf.function(lambda x: layer(x, mask=MASK))
    assert [t.numpy().tobytes() for t in run(X)] == [t.numpy().tobytes() for t in found]
    both = layers.Bidirectional.from_config(layer.get_config() | {"merge_mode": None})
    both(X)
    both.set_weights(layer.get_weights())
    check(layer, both(X, mask=MASK), [*pair, *ahead[2], *back[2]])


def test_cells_one_after_another() -> None:
    layer = layers.RNN(
        [layers.LSTMCell(4, dtype="float64"), layers.GRUCell(2, dtype="float64")],
        return_sequences=True,
        return_state=True,
        dtype="float64",
    )
    outputs, of_lstm, of_gru = layer(X)
    first = layers.LSTM(4, return_sequences=True, return_state=True, dtype="float64")
    second = layers.GRU(2, return_sequences=True, return_state=True, dtype="float64")
    second(first(X)[0])
    first.set_weights(layer.cell.cells[0].get_weights())
    second.set_weights(layer.cell.cells[1].get_weights())
    wanted, *states = first(X)
    wanted, *more = second(wanted)
    check(layer, [outputs, *of_lstm, *of_gru], [wanted, *states, *more])
    run = hf.function(layer)
    assert run(X)[0].numpy().tobytes() == outputs.numpy().tobytes()
    again = layers.RNN.from_config(layer.get_config())
    assert [cell.units for cell in again.cell.cells] == [4, 2] and again.get_config() == layer.get_config()


class Leaky(layers.Layer):
    """A cell of a user: what is left of the state, and the input."""

    state_size = 2

    def __init__(self) -> None:
        super().__init__(dtype="float64")
        self.left = 0.5

    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "ones")

    def call(self, inputs: Any, states: Any) -> Any:
        state = states[0] * self.left + inputs * self.factor
        return state, state  # one state need not be a list


def test_a_cell_of_the_user_and_what_it_reads() -> None:
    cell = Leaky()
    layer = layers.RNN(cell, return_sequences=True, dtype="float64")
    run = hf.function(layer)

    def wanted(left: float) -> Any:
        return walked(lambda x, s: (s[0] * left + x, [s[0] * left + x]), (), X, [np.zeros((3, 2))])[0]

    for _ in range(2):
        np.testing.assert_allclose(run(X).numpy(), wanted(0.5))
    assert layer.variables == [cell.factor]
    cell.left = 0.25
    np.testing.assert_allclose(layer(X).numpy(), wanted(0.25))
    np.testing.assert_allclose(run(X).numpy(), wanted(0.25))


class Normed(layers.Layer):
    """A cell of layers that are built when they are called."""

    def __init__(self) -> None:
        super().__init__()
        self.state_size = self.output_size = 4
        self.cell, self.norm = layers.SimpleRNNCell(4, activation=None), layers.LayerNormalization()

    def call(self, inputs: Any, states: Any) -> Any:
        state = hf.tanh(self.norm(self.cell(inputs, states)[0]))
        return state, [state]


def test_a_cell_is_built_before_the_loop_that_calls_it() -> None:
    model = hf.Sequential([hf.Input((None, 2)), layers.RNN(Normed(), return_sequences=True)])
    assert [tuple(w.shape) for w in model.trainable_weights] == [(2, 4), (4, 4), (4,), (4,), (4,)]
    x = np.ones((3, 5, 2), "f4")
    found = model(x)
    assert found.shape == (3, 5, 4)
    assert hf.function(model)(x).numpy().tobytes() == found.numpy().tobytes()
    dense = layers.Dense(3, kernel_initializer="ones")

    @hf.function
    def summed(x: Any, n: Any) -> Any:
        total = hf.zeros((2, 3))
        for _ in hf.arange(n):
            total += dense(x)
        return total

    assert summed(hf.ones((2, 2)), hf.asarray(20)).numpy().tolist() == [[40.0] * 3] * 2
    assert len(dense.weights) == 2


@pytest.mark.parametrize("decorate", [lambda f: f, hf.function])
def test_states_that_stay(decorate: Any) -> None:
    layer = layers.GRU(4, stateful=True, dtype="float64")
    whole = layers.GRU(4, dtype="float64")
    run = decorate(lambda x: layer(x))
    run(X[:, :2])
    whole(X)
    whole.set_weights([w.numpy() for w in layer.trainable_variables])
    layer.reset_state()
    run(X[:, :2])
    found = run(X[:, 2:])
    np.testing.assert_allclose(found.numpy(), whole(X).numpy(), rtol=1e-12)
    with pytest.raises(errors.ShapeError, match="states are of a batch of 3"):
        run(X[:2])


def test_what_is_dropped_stays_so_for_a_sequence() -> None:
    ones = np.ones((50, 6, 40), "f4")
    start = {"kernel_initializer": "identity", "recurrent_initializer": "zeros", "activation": "linear"}
    layer = layers.SimpleRNN(40, dropout=0.5, seed=3, return_sequences=True, **start)
    assert layer(ones).numpy().tobytes() == ones.tobytes()
    run = hf.function(lambda x: layer(x, training=True))
    a, b = run(ones).numpy(), run(ones).numpy()
    assert (a == a[:, :1]).all() and set(np.unique(a)) == {0.0, 2.0} and abs(a.mean() - 1) < 0.1
    assert not np.array_equal(a, b) and len(run.retraces()) == 0
    again = layers.SimpleRNN.from_config(layer.get_config())
    assert again(ones, training=True).numpy().tobytes() == a.tobytes()
    kept = layers.SimpleRNN(
        40, "linear", recurrent_initializer="identity", kernel_initializer="identity", recurrent_dropout=0.5, seed=3
    )
    found = kept(ones, training=True).numpy()  # 1 where the state is dropped, else 1 + 2 * (1 + 2 * ...)
    assert set(np.unique(found)) == {1.0, 63.0}


def test_masks_reach_recurrent_layers() -> None:
    numbers = np.array([[1, 2, 0, 0], [3, 0, 0, 0]])
    model = hf.Sequential(
        [layers.Embedding(4, 2, mask_zero=True), layers.LSTM(3, return_sequences=True), layers.GRU(3)]
    )
    found = model(numbers)
    assert hf.function(model)(numbers).numpy().tobytes() == found.numpy().tobytes()
    np.testing.assert_allclose(found[1:].numpy(), model(numbers[1:, :1]).numpy(), rtol=1e-6)
    np.testing.assert_allclose(found[:1].numpy(), model(numbers[:1, :2]).numpy(), rtol=1e-6)


def test_a_compiled_layer_is_one_loop_for_any_length() -> None:
    layer = layers.LSTM(3)
    run = hf.function(layer, input_signature=[hf.TensorSpec([None, None, 2], "float32")])
    for batch, steps in ((3, 5), (2, 17), (1, 1), (4, 0)):
        x = RNG.standard_normal((batch, steps, 2)).astype("f4")
        assert run(x).numpy().tobytes() == layer(x).numpy().tobytes()
        assert batch not in (2, 3) or len(run.signatures()) == 1


def test_each_step() -> None:
    layer = layers.TimeDistributed(layers.Dense(3, dtype="float64"), dtype="float64")
    found = layer(X)
    kernel = layer.layer.kernel.numpy()
    np.testing.assert_allclose(found.numpy(), X @ kernel, rtol=1e-12)
    assert hf.function(layer)(X).numpy().tobytes() == found.numpy().tobytes()
    pooled = layers.TimeDistributed(layers.GlobalAveragePooling1D(dtype="float64"), dtype="float64")
    deep = RNG.standard_normal((2, 3, 4, 5))
    mask = RNG.random((2, 3, 4)) < 0.7
    wanted = (deep * mask[..., None]).sum(2) / mask.sum(2)[..., None]
    np.testing.assert_allclose(pooled(deep, mask=hf.asarray(mask)).numpy(), wanted, rtol=1e-12)
    again = layers.TimeDistributed.from_config(layer.get_config())
    assert again.layer.units == 3 and again(X).shape == (3, 5, 3)


@pytest.mark.parametrize("name", KINDS)
def test_configurations(name: str) -> None:
    layer = KINDS[name][0](4, activation="relu", kernel_regularizer="l2", recurrent_constraint="unit_norm", name="mine")
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config() and again.name == "mine" and again.cell.units == 4
    again(X)
    assert len(again.losses) == 1 and again.cell.recurrent_kernel.constraint is not None
    frozen = type(layer)(4, trainable=False)
    frozen(X)
    assert frozen.trainable_variables == []


def test_the_forget_gate_begins_open() -> None:
    layer = layers.LSTM(2)
    layer(X)
    assert layer.cell.bias.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    layer = layers.LSTM(2, unit_forget_bias=False)
    layer(X)
    assert layer.cell.bias.tolist() == [0] * 8


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: layers.LSTM(0), errors.ArgumentError, "units is 0"),
        (lambda: layers.LSTM(2, dropout=1.0), errors.ArgumentError, "dropout is 1.0"),
        (lambda: layers.LSTM(2)(hf.ones((3, 2))), errors.ShapeError, r"\[lstm\].*\[batch, steps, features\]"),
        (lambda: (r := layers.LSTM(2))(X) + r(X[..., :1]), errors.ShapeError, "built for a last extent of 2"),
        (lambda: layers.LSTM(4)(X, initial_state=[np.zeros((3, 4))]), errors.ArgumentError, "1 initial states"),
        (lambda: layers.RNN(3), errors.ArgumentError, "3 is no cell"),
        (lambda: layers.RNN([]), errors.ArgumentError, "no cells"),
        (lambda: layers.Bidirectional(layers.Dense(2)), errors.ArgumentTypeError, "no recurrent layer"),
        (lambda: layers.Bidirectional(layers.GRU(2), "max"), errors.ArgumentError, "merge_mode is 'max'"),
        (lambda: layers.Bidirectional(layers.GRU(2), backward_layer=layers.GRU(2)), errors.ArgumentError, "go backw"),
        (lambda: layers.TimeDistributed(3), errors.ArgumentTypeError, "3 is no layer"),
        (lambda: layers.TimeDistributed(layers.Dense(2))(hf.ones((2, 3))), errors.ShapeError, "steps"),
    ],
)
def test_wrong_use(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run()


def test_states_are_no_weights(tmp_path: Path) -> None:
    """What was trained with large batches goes on with small ones, and statelessly."""

    def model(batch: int, stateful: bool) -> hf.Sequential:
        made = hf.Sequential(
            [
                layers.LSTM(3, stateful=stateful, return_sequences=True),
                layers.Dropout(0.1, seed=3),
                layers.Bidirectional(layers.GRU(2, stateful=stateful)),
                layers.Dense(1),
            ]
        )
        made(np.ones((batch, 4, 2), "f4"))
        return made

    trained, one, free = model(5, True), model(1, True), model(2, False)
    assert len(trained.weights) == len(free.weights) == 3 + 2 * 3 + 2 < len(trained.variables)
    assert trained.count_params() == free.count_params()
    assert len(trained.non_trainable_weights) == 0 < len(trained.non_trainable_variables)
    one.set_weights(trained.get_weights())
    path = tmp_path / "weights.safetensors"
    trained.save_weights(path)
    free.load_weights(path)
    x = np.random.default_rng(0).random((1, 4, 2), "f4")
    for layer in (one.layers[0], one.layers[2]):
        layer.reset_state()
    np.testing.assert_allclose(one(x).numpy(), free(x).numpy(), rtol=1e-6)
    for a, b, c in zip(trained.get_weights(), one.get_weights(), free.get_weights()):
        assert (a == b).all() and (a == c).all()
