"""Models: what fit, evaluate and predict do with data of every kind, graphs of layers, and callbacks."""

from __future__ import annotations

import collections
import copy
import csv
import pickle
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import callbacks, errors, layers
from hybridflow.data import Dataset

RNG = np.random.default_rng(9)
X = RNG.standard_normal((20, 3)).astype("f4")
Y = (X @ [[1.0], [-2.0], [0.5]] + 0.3).astype("f4")
CLASSES = RNG.integers(0, 3, 20)


def line(**options: Any) -> Any:
    """A model that starts from the same weights each time."""
    model = hf.Sequential([layers.Dense(1, kernel_initializer="zeros")])
    model.compile(**({"optimizer": hf.optimizers.SGD(0.1), "loss": "mse"} | options))
    return model


def by_hand(batches: Any, epochs: int = 1) -> np.ndarray:
    """The weights of the line after training, in float64."""
    w = np.zeros(4)
    for _ in range(epochs):
        for x, y in batches:
            rows = np.concatenate([x, np.ones((len(x), 1))], 1).astype(float)
            w -= 0.1 * 2 * rows.T @ (rows @ w - y[:, 0]) / len(rows)
    return w


def weights(model: Any) -> np.ndarray:
    return np.concatenate([v.numpy().ravel() for v in model.variables])


BATCHES = [(X[i : i + 8], Y[i : i + 8]) for i in range(0, 20, 8)]


class Loader:
    """A sequence of batches, as torch and Keras have them."""

    def __init__(self) -> None:
        self.epochs = 0

    def __len__(self) -> int:
        return len(BATCHES)

    def __getitem__(self, index: int) -> Any:
        return BATCHES[index]

    def on_epoch_end(self) -> None:
        self.epochs += 1


@pytest.mark.parametrize("kind", ["arrays", "in lists", "tensors", "dataset"])
def test_a_shorter_last_batch_needs_no_program_of_its_own(kind: str) -> None:
    """20 rows in batches of 8: one program each serves 8 and 4, and learns what is learned step by step."""
    model = hf.Sequential([layers.Input((3,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizer=hf.optimizers.SGD(0.1), loss="mse")
    x, y = (hf.asarray(X), hf.asarray(Y)) if kind == "tensors" else (X, Y)
    options: dict[str, Any] = {"verbose": 0}
    if kind == "dataset":
        given: Any = (Dataset.from_tensor_slices((x, y)).batch(8).map(lambda x, y: (x, y)).prefetch(1),)
    else:
        given = ([x], [y]) if kind == "in lists" else (x, y)
        options["batch_size"] = 8
    for _ in range(2):
        model.fit(*given, epochs=2, shuffle=False, **options)
    model.evaluate(*given, **options)
    outputs = model.predict(*given[:1], **options)
    settings = model._settings
    assert [len(f.signatures()) for f in (settings.train_step, settings.test_step, settings.predict_step)] == [1, 1, 1]
    w = by_hand(BATCHES, 4)
    np.testing.assert_allclose(weights(model), w, rtol=1e-5)
    np.testing.assert_allclose(outputs, X @ w[:3, None] + w[3], rtol=1e-5, atol=1e-6)


class Unsized:
    """A loader whose class has a length, which its data do not have."""

    def __len__(self) -> int:
        raise TypeError("object of type 'Stream' has no len()")

    def __iter__(self) -> Any:
        return iter(BATCHES)


def test_fit_is_the_step_written_out() -> None:
    expected = by_hand(BATCHES, 3)
    loader = Loader()
    fits: dict[str, Any] = {
        "arrays": lambda m: m.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0),
        "tensors": lambda m: m.fit(hf.asarray(X), hf.asarray(Y), batch_size=8, epochs=3, shuffle=False, verbose=0),
        "lists": lambda m: m.fit(X.tolist(), Y.tolist(), batch_size=8, epochs=3, shuffle=False, verbose=0),
        "a dataset": lambda m: m.fit(
            hf.data.Dataset.from_tensor_slices((X, Y)).batch(8), epochs=3, verbose=0, shuffle=False
        ),
        "a loader without a length": lambda m: m.fit(Unsized(), epochs=3, verbose=0),
        "a dataset without end": lambda m: m.fit(
            hf.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat(), epochs=3, steps_per_epoch=3, verbose=0
        ),
        "a list of batches": lambda m: m.fit(iter(BATCHES * 3), epochs=3, steps_per_epoch=3, verbose=0),
        "a sequence": lambda m: m.fit(loader, epochs=3, shuffle=False, verbose=0),
        "one batch at a time": lambda m: [m.train_on_batch(x, y) for _ in range(3) for x, y in BATCHES],
        "eagerly": lambda m: m.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0),
    }
    for name, fit in fits.items():
        model = line(run_eagerly=name == "eagerly")
        fit(model)
        np.testing.assert_allclose(weights(model), expected, rtol=1e-4, atol=1e-5, err_msg=name)
    assert loader.epochs == 3


def test_shuffled_rows_stay_together_and_follow_the_seed() -> None:
    seen = []

    class See(hf.Model):
        def __init__(self) -> None:
            super().__init__()
            self.scale = hf.Variable(1.0)

        def call(self, inputs: Any) -> Any:
            return inputs * self.scale

        def train_step(self, data: Any) -> dict[str, Any]:
            seen.append([np.asarray(part) for part in data])
            return {"loss": 0.0}

    orders = []
    for _ in range(2):
        hf.random.set_seed(3)
        model = See()
        model.compile(run_eagerly=True)
        seen.clear()
        model.fit(X, Y, batch_size=7, epochs=2, verbose=0)
        assert [len(x) for x, _ in seen] == [7, 7, 6] * 2
        first = np.concatenate([x for x, _ in seen[:3]])
        assert sorted(first[:, 0]) == sorted(X[:, 0]) and not np.array_equal(first, X)
        for x, y in seen:
            np.testing.assert_allclose(x @ [[1.0], [-2.0], [0.5]] + 0.3, y, rtol=1e-5, atol=1e-6)
        orders.append(np.concatenate([x for x, _ in seen]))
    np.testing.assert_array_equal(*orders)
    assert not np.array_equal(orders[0][:20], orders[0][20:])


def test_logs_are_those_of_all_batches() -> None:
    model = hf.Sequential([layers.Dense(3)])
    model.compile(
        hf.optimizers.SGD(0.0),
        hf.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy", "crossentropy", hf.metrics.SparseTopKCategoricalAccuracy(2, name="top")],
        weighted_metrics=["acc"],
    )
    history = model.fit(X, CLASSES, batch_size=8, epochs=2, validation_data=(X[:5], CLASSES[:5]), verbose=0)
    logits = X @ model.variables[0].numpy() + model.variables[1].numpy()
    losses = np.log(np.exp(logits).sum(-1)) - logits[np.arange(20), CLASSES]
    hits = logits.argmax(-1) == CLASSES
    found = {name: values[1] for name, values in history.history.items()}
    assert found["loss"] == pytest.approx(losses.mean(), rel=1e-5) == found["crossentropy"]
    assert found["accuracy"] == pytest.approx(hits.mean()) == found["acc"]
    assert found["val_loss"] == pytest.approx(losses[:5].mean(), rel=1e-5)
    assert found["val_accuracy"] == pytest.approx(hits[:5].mean())
    assert history.epoch == [0, 1] and model.history is history
    w = np.linspace(0, 1, 20)
    measured = model.evaluate(X, CLASSES, sample_weight=w, return_dict=True, verbose=0)
    assert measured["loss"] == pytest.approx((w * losses).mean(), rel=1e-5)
    assert measured["acc"] == pytest.approx((w * hits).sum() / w.sum(), rel=1e-5)
    assert measured["accuracy"] == pytest.approx(hits.mean())
    assert model.evaluate(X, CLASSES, verbose=0)[0] == pytest.approx(losses.mean(), rel=1e-5)
    heavy = {0: 1.0, 1: 3.0, 2: 0.0}
    history = model.fit(X, CLASSES, class_weight=heavy, verbose=0)
    expected = (np.array([heavy[c] for c in CLASSES]) * losses).mean()
    assert history.history["loss"][0] == pytest.approx(expected, rel=1e-5)


def test_predictions_are_of_all_rows() -> None:
    model = line()
    expected = X @ np.zeros((3, 1))
    np.testing.assert_array_equal(model.predict(X, batch_size=7, verbose=0), expected)
    np.testing.assert_array_equal(model.predict(hf.data.Dataset.from_tensor_slices(X).batch(6), verbose=0), expected)
    np.testing.assert_array_equal(model.predict_on_batch(X[:4]), expected[:4])
    assert hf.Sequential([layers.Dense(2)]).predict(X, verbose=0).shape == (20, 2)  # without compile


def test_validation_split_and_epochs() -> None:
    model = line()
    history = model.fit(
        X, Y, batch_size=8, validation_split=0.2, epochs=5, initial_epoch=2, validation_freq=2, verbose=0
    )
    assert history.epoch == [2, 3, 4] and len(history.history["val_loss"]) == 1
    one = line()
    one.fit(X[:16], Y[:16], batch_size=8, epochs=3, shuffle=False, verbose=0)
    other = line()
    other.fit(X, Y, batch_size=8, epochs=3, shuffle=False, validation_split=0.2, verbose=0)
    np.testing.assert_array_equal(weights(one), weights(other))


def test_several_outputs() -> None:
    start = hf.Input((3,), name="x")
    middle = layers.Dense(4, "tanh", name="middle")(start)
    model = hf.Model(
        start, {"a": layers.Dense(2, name="a")(middle), "b": layers.Dense(1, name="b")(middle) * 2.0 - 1.0}
    )
    model.compile("sgd", loss={"a": "mse", "b": "mae"}, loss_weights={"a": 1.0, "b": 0.5}, metrics={"b": ["mae"]})
    targets = {"a": np.ones((20, 2)), "b": np.zeros((20, 1))}
    outputs = model(X)
    found = model.evaluate(X, targets, return_dict=True, verbose=0)
    squared = ((outputs["a"].numpy() - 1) ** 2).mean()
    absolute = abs(outputs["b"].numpy()).mean()
    assert found["loss"] == pytest.approx(squared + absolute / 2, rel=1e-5)
    assert found["a_loss"] == pytest.approx(squared, rel=1e-5)
    assert found["b_loss"] == pytest.approx(absolute, rel=1e-5)  # what is logged is not weighted
    assert found["b_mae"] == pytest.approx(absolute, rel=1e-5)
    model.fit(X, targets, epochs=1, verbose=0)
    predicted = model.predict(X, verbose=0)
    assert {name: value.shape for name, value in predicted.items()} == {"a": (20, 2), "b": (20, 1)}


def test_graphs_of_layers() -> None:
    shared = layers.Dense(3, name="shared")
    left, right = hf.Input((3,), name="left"), hf.Input((3,), name="right")
    joined = layers.Concatenate()([shared(left), layers.Dropout(0.5)(shared(right))])
    model = hf.Model([left, right], layers.Dense(1)(joined)[:, 0] + 1)
    assert len(model.variables) == 4 and model.output.shape == (None,) and model.input[0].shape == (None, 3)
    expected = model([X, 2 * X])
    by_names = model({"right": 2 * X, "left": X})
    np.testing.assert_array_equal(by_names, expected)
    again = type(model).from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again([X, 2 * X]), expected)
    inner = hf.Model(left, model.get_layer("shared").output)
    np.testing.assert_array_equal(inner(X), shared(X))
    outer = hf.Sequential([hf.Input((3,)), inner, layers.Dense(2)])
    assert outer.output.shape == (None, 2) and len(outer.variables) == 4
    np.testing.assert_array_equal(hf.function(model)([X, 2 * X]), expected)
    steps = hf.Input((None, 4))
    assert hf.Model(steps, layers.LSTM(5)(steps))(np.ones((2, 7, 4))).shape == (2, 5)


def test_first_layers_know_their_input() -> None:
    for model in (
        hf.Sequential([hf.Input((4, 2)), layers.Flatten(), layers.Dense(3)]),
        hf.Sequential([layers.Flatten(input_shape=(4, 2)), layers.Dense(3)]),
    ):
        assert model.built and [v.shape for v in model.variables] == [(8, 3), (3,)]
        again = hf.Sequential.from_config(model.get_config())
        assert again(np.ones((1, 4, 2))).shape == (1, 3)
    assert hf.Sequential([layers.Dense(3, input_dim=5)]).count_params() == 18


def test_a_step_of_ones_own() -> None:
    class Own(hf.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1, kernel_initializer="zeros")
            self.seen = hf.metrics.Mean("seen")

        def call(self, inputs: Any, training: bool = False) -> Any:
            return self.dense(inputs)

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with hf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True), x=x)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.seen.update_state(loss)
            return {"seen": self.seen.result(), "twice": 2 * loss}

    model = Own()
    model.compile(hf.optimizers.SGD(0.1), "mse")
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights(model), by_hand(BATCHES, 2), rtol=1e-4, atol=1e-5)
    assert set(history.history) == {"seen", "twice"} and model.metrics[-1] is model.seen


def test_a_step_of_ones_own_is_given_inputs_alone_where_there_is_nothing_else() -> None:
    class Own(hf.Model):
        def call(self, inputs: Any) -> Any:
            return inputs

        def train_step(self, data: Any) -> dict[str, Any]:
            return {"loss": hf.mean(data[:, 0] if isinstance(data, hf.Tensor) else data[0][:, 1])}

    model = Own()
    model.compile()
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    assert model.fit(x, verbose=0).history["loss"] == [2.0]
    assert model.fit(hf.data.Dataset.from_tensor_slices(x).batch(2), verbose=0).history["loss"] == [2.0]
    assert model.fit(x, x, verbose=0).history["loss"] == [3.0]
    np.testing.assert_array_equal(model.predict(x, verbose=0), x)


def test_steps_are_compiled_once_per_shape() -> None:
    model = hf.Sequential([layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    for _ in range(3):
        model.fit(X[:16], Y[:16], batch_size=8, epochs=2, validation_data=(X, Y), verbose=0)
    assert len(model._compiled.train_step.concrete_functions()) == 1
    assert model._compiled.train_step.retraces() == []


def test_early_stopping_brings_the_best_weights_back() -> None:
    kept: list[np.ndarray] = []
    losses = [3.0, 1.0, 2.0, 2.5, 0.1]

    class Say(callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            kept.append(weights(self.model))
            logs["val_loss"] = losses[epoch]

    model = line()
    stop = callbacks.EarlyStopping(patience=2, restore_best_weights=True)
    model.fit(X, Y, epochs=5, callbacks=[Say(), stop], verbose=0)
    assert len(kept) == 4 and stop.stopped_epoch == 3 and stop.best == 1.0
    np.testing.assert_array_equal(weights(model), kept[1])
    grows = callbacks.EarlyStopping("accuracy")
    assert grows.is_better(0.9, 0.8) and callbacks.EarlyStopping("loss").is_better(0.8, 0.9)


def test_callbacks_are_told_in_order() -> None:
    told: list[str] = []

    class Tell(callbacks.Callback):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if not name.startswith("on_"):
                return found

            def method(*args: Any) -> Any:
                told.append(name[3:])
                return found(*args)

            return method

    model = line(steps_per_execution=2)
    model.fit(X, Y, batch_size=8, validation_data=(X, Y), callbacks=[Tell()], verbose=0)
    batch = ["train_batch_begin", "train_batch_end"]
    test = ["test_batch_begin", "test_batch_end"]
    assert told == [
        "train_begin",
        "epoch_begin",
        *batch,
        *batch,
        "test_begin",
        *test * 3,
        "test_end",
        "epoch_end",
        "train_end",
    ]


def test_nothing_is_said_of_a_first_step(caplog: pytest.LogCaptureFixture) -> None:
    """Metrics are made in it, which later steps find: no reason to warn of tracing at each call."""
    for names in (["mae"], ["accuracy", "AUC"]):
        model = hf.Sequential([hf.Input((3,)), layers.Dense(1, "sigmoid")])
        model.compile("sgd", "mse", metrics=names)
        model.fit(X[:16], Y[:16] > 0, batch_size=8, epochs=2, verbose=0)
        model.evaluate(X, Y > 0, verbose=0)
        assert len(model._compiled.train_step.concrete_functions()) == 1
    assert not caplog.records


def test_training_goes_on_while_it_gets_better() -> None:
    history = line().fit(X, Y, epochs=4, callbacks=[callbacks.EarlyStopping("loss")], verbose=0)
    assert len(history.epoch) == 4


def test_each_validation_is_of_the_same_batches() -> None:
    model = line(optimizer=hf.optimizers.SGD(0.0))
    for data in ((X, Y), hf.data.Dataset.from_tensor_slices((X, Y)).batch(4)):
        history = (
            model.fit(X, Y, epochs=3, validation_data=data, validation_batch_size=4, validation_steps=1, verbose=0)
            if isinstance(data, tuple)
            else model.fit(X, Y, epochs=3, validation_data=data, validation_steps=1, verbose=0)
        )
        assert len(set(history.history["val_loss"])) == 1


def test_one_output_may_be_given_in_a_list() -> None:
    expected = line(metrics=["mae"], weighted_metrics=["mae"]).evaluate(X, Y, verbose=0, return_dict=True)
    assert set(expected) == {"loss", "mae", "weighted_mae"}
    for loss in (["mse"], {"out": "mse"}):
        model = line(loss=loss, metrics=["mae"], weighted_metrics=["mae"])
        assert model.evaluate(X, Y, verbose=0, return_dict=True) == expected
        assert model.metrics_names == list(expected)


def test_what_is_logged_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    model = line(metrics=["mae"])
    for append in (False, True):
        model.fit(X, Y, epochs=2, callbacks=[callbacks.CSVLogger(path, append=append)], verbose=0)
    model.fit(
        X,
        Y,
        epochs=2,
        validation_data=(X, Y),
        validation_freq=2,
        callbacks=[callbacks.CSVLogger(path, append=True)],
        verbose=0,
    )
    assert path.read_text().splitlines()[0] == "epoch,loss,mae,val_loss,val_mae"  # Keras's, from the first epoch on
    rows = list(csv.DictReader(path.open()))
    assert [row.pop("val_loss") != "NA" for row in rows] == [False] * 5 + [True]
    rows = rows[:4]
    assert len(rows) == 4 and [row["epoch"] for row in rows] == ["0", "1", "0", "1"]
    assert float(rows[3]["loss"]) < float(rows[0]["loss"])


def test_a_full_disk_says_which_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = callbacks.CSVLogger(tmp_path / "log.csv")
    records = hf.data.TFRecordWriter(tmp_path / "squares.tfrecord")
    board = hf.summary.create_file_writer(tmp_path / "board")

    def write_events() -> None:
        with board.as_default():
            hf.summary.text("text", "word " * 1000, 0)
        board.flush()

    def write_records() -> None:
        records.write(b"record" * 1000)
        records.flush()

    writes: dict[str, Callable[[], Any]] = {
        "log.csv": lambda: logger.on_epoch_end(0, {f"loss{k}": 0.125 for k in range(200)}),
        "squares.tfrecord": write_records,
        "board/events": write_events,
        ".records": lambda: Dataset.range(1000).save(str(tmp_path / "saved")),
        "-0.records": lambda: Dataset.range(1000).save(str(tmp_path / "packed"), "GZIP"),
    }
    logger.on_train_begin()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be cut off as well, and found by others
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, write in writes.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            with pytest.raises(OSError, match=f"{tmp_path}.*{name}"):
                write()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_and_bars(capsys: pytest.CaptureFixture[str]) -> None:
    model = line(metrics=["mae"])
    model.fit(X, Y, batch_size=8, epochs=2, verbose=2)
    text = capsys.readouterr().out
    assert text.startswith("Epoch 1/2\n3/3 - ") and "loss: " in text and "mae: " in text and text.count("\n") == 4
    model.fit(X, Y, batch_size=8, epochs=1, verbose=1)
    assert "Epoch 1/1" in capsys.readouterr().out
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)
    assert capsys.readouterr().out == ""


def test_summaries(capsys: pytest.CaptureFixture[str]) -> None:
    hf.Sequential([hf.Input((4,)), layers.Dense(3, name="first"), layers.Dropout(0.5), layers.Dense(2)]).summary()
    text = capsys.readouterr().out
    assert "first (Dense)      (None, 3)          15" in text and "Total params: 23 (92.00 B)" in text
    model = hf.Sequential([layers.Dense(3)])
    model(X)
    model.summary()
    assert "(None, 3)          12" in capsys.readouterr().out


def test_an_interrupted_fit_leaves_a_model_that_goes_on() -> None:
    class Stop(callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                raise KeyboardInterrupt

    model = line()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, batch_size=8, shuffle=False, callbacks=[Stop()], verbose=1)
    np.testing.assert_allclose(weights(model), by_hand(BATCHES[:2]), rtol=1e-4, atol=1e-5)
    model.fit(iter(BATCHES[2:]), verbose=0)
    np.testing.assert_allclose(weights(model), by_hand(BATCHES), rtol=1e-4, atol=1e-5)


def test_a_generator_that_ends_early_ends_training_and_keeps_what_was_learned() -> None:
    """Fifteen batches for epochs of six: the third epoch is short, a fourth one has nothing."""
    model = line()
    with pytest.warns(UserWarning, match="epoch 4: training ends"):
        history = model.fit(iter(BATCHES * 5), steps_per_epoch=2 * len(BATCHES), epochs=9, verbose=0)
    assert history.epoch == [0, 1, 2] and len(history.history["loss"]) == 3
    with pytest.warns(UserWarning, match="not validated"):
        history = model.fit(X, Y, validation_data=iter(BATCHES), epochs=3, verbose=0)
    assert len(history.history["loss"]) == 3 and len(history.history["val_loss"]) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_of_a_compiled_model_goes_on_by_itself(copied: Any) -> None:
    """It has the state of the optimizer and the metrics too, and shares nothing."""
    inputs = hf.Input((3,))
    model = hf.Model(inputs, layers.Dense(1)(layers.BatchNormalization()(inputs)))
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(X, Y, verbose=0)
    other = copied(model)
    before = model.get_weights()
    found = other.fit(X, Y, shuffle=False, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))
    assert found.history == model.fit(X, Y, shuffle=False, verbose=0).history
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), other.get_weights()))


def test_arrays_without_rows_train_nothing() -> None:
    model = hf.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="the data has no samples: nothing is trained"):
        history = model.fit(X[:0], Y[:0], epochs=2, verbose=0, validation_data=(X, Y)).history
    assert list(history) == ["val_loss"] and len(history["val_loss"]) == 2
    with pytest.warns(UserWarning, match="epochs are not validated"):
        assert list(model.fit(X, Y, verbose=0, validation_data=(X[:0], Y[:0])).history) == ["loss"]


def raising() -> Iterator[Any]:
    yield BATCHES[0]
    raise RuntimeError("the source is gone")


@pytest.mark.parametrize(
    ("use", "kind", "text"),
    [
        (lambda m: hf.Sequential([layers.Dense(1)]).fit(X, Y), errors.ArgumentError, "call compile"),
        (lambda m: m.fit(X, Y[:5], verbose=0), errors.ShapeError, "numbers of samples differ"),
        (lambda m: m.predict(X[:0], verbose=0), errors.ArgumentError, "no samples"),
        (lambda m: m.train_on_batch(X[:0], Y[:0]), errors.ArgumentError, "no samples"),
        (lambda m: m.fit(iter([]), verbose=0), errors.ArgumentError, "no batch"),
        (lambda m: m.fit(raising(), verbose=0), RuntimeError, "the source is gone"),
        (lambda m: m.fit(X, verbose=0), errors.ArgumentError, "no labels"),
        (lambda m: m.fit(object(), verbose=0), errors.ArgumentTypeError, "is no data"),
        (lambda m: m.fit(iter(BATCHES), Y, verbose=0), errors.ArgumentError, "y is given beside"),
        (lambda m: m.fit(X, Y, verbose=3), errors.ArgumentError, "verbose is 3"),
        (lambda m: m.fit(X, Y, batch_size=0, verbose=0), errors.ArgumentError, "batch_size is 0"),
        (lambda m: m.fit(X, Y, callbacks=[print], verbose=0), errors.ArgumentTypeError, "is no callback"),
        (lambda m: m.fit(X, Y, validation_split=1.5, verbose=0), errors.ArgumentError, "validation_split"),
        (
            lambda m: m.fit(X, Y, validation_data=(X, Y), validation_freq=0, verbose=0),
            errors.ArgumentError,
            "validation_freq",
        ),
        (lambda m: m.fit(X, Y, validation_freq=0, verbose=0), errors.ArgumentError, "validation_freq"),
        (lambda m: m.fit(X, Y, validation_freq=1.5, verbose=0), errors.ArgumentTypeError, "validation_freq is 1.5"),
        (lambda m: m.fit(X, Y, epochs=-1, verbose=0), errors.ArgumentError, "epochs is -1"),
        (lambda m: m.fit(X, Y, epochs="2", verbose=0), errors.ArgumentTypeError, "epochs is '2'"),
        (lambda m: m.fit(X, Y, initial_epoch=-1, verbose=0), errors.ArgumentError, "initial_epoch is -1"),
        (lambda m: m.fit(X, Y, batch_size=2.5, verbose=0), errors.ArgumentTypeError, "batch_size is 2.5"),
        (lambda m: m.fit(X, Y, validation_split="a", verbose=0), errors.ArgumentError, "validation_split is 'a'"),
        (lambda m: m.fit(X, Y, validation_split=1.0, verbose=0), errors.ArgumentError, "validation_split is 1.0"),
        (
            lambda m: m.fit(X, Y, validation_data=(X, Y), validation_batch_size=0, verbose=0),
            errors.ArgumentError,
            "batch_size is 0",
        ),
        (lambda m: m.fit(X, Y, validation_data=(X,), verbose=0), errors.ArgumentError, "no labels"),
        (lambda m: m.fit(X, Y, class_weight=[1, 2], verbose=0), errors.ArgumentTypeError, "class_weight is"),
        (
            lambda m: m.fit(X, Y, callbacks=[callbacks.TerminateOnNaN], verbose=0),
            errors.ArgumentTypeError,
            "is no callback",
        ),
        (
            lambda m: m.fit(iter([(X, Y), X]), verbose=0),
            errors.ArgumentError,
            "batch 1 is of another structure than those before it",
        ),
        (
            lambda m: m.fit(iter([(X, Y), ({"a": X}, Y)]), verbose=0),
            errors.ArgumentError,
            r"batch 1 is of another .*\(\{'a': array",
        ),
        (lambda m: m.fit(iter([(X, Y), None]), verbose=0), errors.ArgumentTypeError, "an element is None"),
        (lambda m: m.fit(iter([(X[:0], Y[:0])]), verbose=0), errors.ShapeError, "a batch has no samples"),
        (lambda m: m.fit(np.ma.array(X), Y, verbose=0), errors.ArgumentTypeError, "is a masked array"),
        (lambda m: m.compile("adm"), errors.ArgumentError, "did you mean 'Adam'"),
        (lambda m: m.compile(loss="mean_squared"), errors.ArgumentError, "did you mean 'MeanSquaredError'"),
        (lambda m: m.get_layer("dens"), errors.ArgumentError, "there are dense"),
        (lambda m: hf.Model(X, Y), errors.ArgumentTypeError, "neither"),
        (lambda m: hf.Model(hf.Input((3,)), hf.Input((3,))), errors.ArgumentError, "not among the inputs"),
        (lambda m: np.asarray(hf.Input((3,))), errors.ArgumentTypeError, "no value"),
        (lambda m: hf.Input(3), errors.ArgumentError, "give a tuple"),
    ],
)
def test_wrong_use(use: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        use(line())


def test_samples_are_no_batches() -> None:
    """A dataset that nobody batched is refused, and not trained on feature by feature."""
    rows = RNG.standard_normal((8, 3)).astype("f4")
    model = hf.Sequential([hf.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    data = Dataset.from_tensor_slices((rows, rows[:, :1]))
    with pytest.raises(errors.ArgumentError, match=r"is f32.3.; its shape must be .None, 3.. .*Dataset.batch"):
        model.fit(data, verbose=0)
    with pytest.raises(errors.ArgumentError, match="its shape must be"):
        model(rows[0])
    assert model.fit(data.batch(4), verbose=0).history["loss"]


def test_samples_are_no_batches_for_dense_layers() -> None:
    """Nor where the first layer says nothing of its input before there is data; no weights are made of it."""
    rows = RNG.standard_normal((8, 3)).astype("f4")
    model = hf.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")
    data = Dataset.from_tensor_slices((rows, rows[:, :1]))
    with pytest.raises(errors.ShapeError, match=r"the input is f32.3.; .* Dataset.batch"):
        model.fit(data, verbose=0)
    for one in (rows[0], rows[0, 0]):
        with pytest.raises(errors.ShapeError, match="One sample is no batch"):
            layers.Dense(1)(one)
    with pytest.raises(errors.ShapeError, match="One sample is no batch"):
        layers.Dense(1)(hf.Input(()))
    assert model.fit(data.batch(4), verbose=0).history["loss"]
    assert layers.Dense(2)(rows[None]).shape == (1, 8, 2)


def test_more_steps_than_there_are_batches() -> None:
    """What is predicted and evaluated ends with the data; training goes over them again."""
    model = line()
    assert model.predict(X, steps=100, verbose=0).shape == model.predict(X, verbose=0).shape
    seen: list[int] = []
    count = callbacks.LambdaCallback(on_test_batch_end=lambda batch, logs: seen.append(batch))
    model.evaluate(X, Y, batch_size=8, steps=100, verbose=0, callbacks=[count])
    assert len(seen) == -(-len(X) // 8)
    trained: list[int] = []
    count = callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: trained.append(batch))
    model.fit(X, Y, batch_size=8, steps_per_epoch=11, verbose=0, callbacks=[count])
    assert len(trained) == 11


def test_batches_in_lists_are_those_in_tuples() -> None:
    one, other = line(), line()
    other.set_weights(one.get_weights())
    one.fit(iter([(X, Y), (X, Y)]), verbose=0)
    other.fit(iter([[X, Y], [X, Y]]), verbose=0)
    assert all((a == b).all() for a, b in zip(one.get_weights(), other.get_weights()))


def test_metrics_by_name_are_made_within_the_first_step() -> None:
    """They hold thresholds and variables, which outlive the step that is traced then."""
    model = hf.Sequential([hf.Input((3,)), layers.Dense(1, "sigmoid")])
    names = ["AUC", "Precision", "Recall", "accuracy", "TruePositives"]
    model.compile("sgd", "binary_crossentropy", metrics=names)
    labels = (CLASSES > 0).astype("i4")
    for _ in range(2):
        found = model.evaluate(X, labels, batch_size=8, verbose=0, return_dict=True)
        p = model.predict(X, verbose=0)[:, 0]
        assert found["accuracy"] == pytest.approx(((p > 0.5) == labels).mean())
        assert found["TruePositives"] == ((p > 0.5) & (labels == 1)).sum()
        expected = hf.metrics.AUC()(labels, p)
        assert found["AUC"] == pytest.approx(float(expected))
        model.fit(X, labels, batch_size=8, verbose=0)


@pytest.mark.parametrize("by_name", [False, True])
def test_attention_in_a_graph(by_name: bool) -> None:
    query, value = hf.Input((4, 6)), hf.Input((5, 3))
    attention = layers.MultiHeadAttention(2, 3)
    made = attention(query=query, value=value) if by_name else attention(query, value)
    model = hf.Model([query, value], layers.GlobalAveragePooling1D()(layers.Add()([query, made])))
    q, v = RNG.standard_normal((2, 4, 6)).astype("f4"), RNG.standard_normal((2, 5, 3)).astype("f4")
    expected = (q + attention(query=q, value=v, key=v).numpy()).mean(1)
    np.testing.assert_allclose(model.predict([q, v], verbose=0), expected, rtol=1e-4, atol=1e-5)
    other = hf.Model.from_config(model.get_config())
    other.set_weights(model.get_weights())
    np.testing.assert_array_equal(other.predict([q, v], verbose=0), model.predict([q, v], verbose=0))


def test_an_input_may_be_given_by_its_name() -> None:
    dense, inputs = layers.Dense(2), hf.Input((3,))
    model = hf.Model(inputs, dense(inputs=inputs))
    np.testing.assert_array_equal(dense(inputs=X), model(X))
    ones = layers.Dense(1, kernel_initializer="ones")
    np.testing.assert_allclose(ones(inputs=X), X.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("what", ["loss", "loss_weights", "metrics"])
def test_names_that_no_output_has_are_refused(what: str) -> None:
    """Rather than an output trained without its loss; data may hold more than is asked for."""
    inputs = hf.Input((2,))
    outputs = {"left": hf.layers.Dense(1)(inputs), "right": hf.layers.Dense(1)(inputs)}
    model = hf.Model(inputs, outputs)
    x, y = np.ones((4, 2), "f4"), np.ones((4, 1), "f4")
    given: dict[str, Any] = {"loss": {"left": "mse", "right": "mae"}, "loss_weights": {"left": 1.0}, "metrics": {}}
    model.compile("sgd", **given)
    model.fit(x, {"left": y, "right": y, "more": y}, verbose=0)
    typo = given | {what: given[what] | {"rigth": {"loss": "mse", "loss_weights": 2.0, "metrics": ["mae"]}[what]}}
    model.compile("sgd", **typo)
    with pytest.raises(errors.ArgumentError, match=f"{what} has a part 'rigth'; the outputs are left, right"):
        model.fit(x, {"left": y, "right": y}, verbose=0)


def _linear(optimizer: Any) -> Any:
    model = hf.Sequential([hf.Input((2,)), hf.layers.Dense(1, kernel_initializer="ones", use_bias=False)])
    model.compile(optimizer, "mse")
    return model


def test_fit_ends_with_the_averages_of_the_variables() -> None:
    x, y = np.float32([[1, 0], [0, 1], [1, 1], [2, 1]]), np.zeros((4, 1), np.float32)
    w, average = np.ones((2, 1)), None
    for i in range(4):
        row = x[i : i + 1].astype(np.float64)
        w = w - 0.1 * 2 * row.T @ (row @ w)
        average = w if average is None else 0.75 * average + 0.25 * w
    model = _linear(hf.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.75))
    model.fit(x, y, batch_size=1, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], average, rtol=1e-6)
    untrained = _linear(hf.optimizers.SGD(0.1, use_ema=True))
    untrained.fit(x, y, epochs=0, verbose=0)
    np.testing.assert_array_equal(untrained.get_weights()[0], np.ones((2, 1)))


def test_what_one_batch_logs_is_of_that_batch_alone() -> None:
    model = _linear(hf.optimizers.SGD(0.0))
    x = np.float32([[1, 0], [3, 0]])
    assert model.train_on_batch(x[:1], np.zeros((1, 1))) == 1.0
    assert model.train_on_batch(x[1:], np.zeros((1, 1))) == 9.0
    assert model.test_on_batch(x[:1], np.zeros((1, 1))) == 1.0


class _GoesThroughMetrics(hf.Model):
    """Keras's example of a step of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = layers.Dense(4, "tanh"), layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.second(self.first(x))

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with hf.GradientTape() as tape:
            predictions = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=predictions)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, predictions)
        return {metric.name: metric.result() for metric in self.metrics}


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_steps_that_go_through_all_metrics(run_eagerly: bool) -> None:
    """Those of ``compile`` are there from the first batch on, before they were made."""
    model = _GoesThroughMetrics()
    model(X)
    same = hf.Sequential([hf.Input((3,)), layers.Dense(4, "tanh"), layers.Dense(1)])
    same.set_weights(model.get_weights())
    histories = []
    for one in (model, same):
        one.compile(
            "sgd", "mse", metrics=["mae", hf.metrics.RootMeanSquaredError(name="root")], run_eagerly=run_eagerly
        )
        # Whole batches: this step, as Keras's example, gives the loss of each batch the same weight.
        histories.append(one.fit(X[:16], Y[:16], batch_size=8, epochs=2, shuffle=False, verbose=0).history)
    assert set(histories[0]) == {"loss", "mae", "root"}
    for name, values in histories[1].items():
        assert histories[0][name] == pytest.approx(values, rel=1e-5)
    assert [metric.name for metric in model.metrics] == ["loss", "compile_metrics"]
    assert model.metrics[1].variables and set(model.metrics[1].result()) == {"mae", "root"}
    model.reset_metrics()
    assert all(not np.any(variable.numpy()) for variable in model.metrics[1].variables)
    assert model.metrics_names == ["loss", "mae", "root"]


@pytest.mark.parametrize("swap_on_epoch", [False, True])
def test_weights_come_back_where_evaluation_ends_by_an_error(swap_on_epoch: bool) -> None:
    class Stops(hf.callbacks.Callback):
        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            raise KeyboardInterrupt

    model = hf.Sequential([hf.layers.Dense(1)])
    model.compile(hf.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5), "mse")
    x, y = np.ones((8, 2), np.float32), np.ones(8, np.float32)
    model.fit(x, y, epochs=1, batch_size=4, verbose=0)
    model.fit(x, y, epochs=1, batch_size=4, verbose=0)
    model.layers[0].kernel.assign([[3.0], [4.0]])
    with pytest.raises(KeyboardInterrupt):
        model.evaluate(x, y, callbacks=[hf.callbacks.SwapEMAWeights(swap_on_epoch), Stops()], verbose=0)
    np.testing.assert_array_equal(model.layers[0].kernel.numpy(), [[3.0], [4.0]])


def _weighted(*symbols: Any) -> Any:
    """Each of the inputs with another weight."""
    return layers.Add()([layers.Rescaling(10.0**k)(symbol) for k, symbol in enumerate(symbols)])


class Pair(NamedTuple):
    second: Any
    first: Any


def test_named_tuples_of_inputs() -> None:
    """Their fields count in the order in which they stand."""
    a, b = hf.Input((3,)), hf.Input((3,))
    model = hf.Model(Pair(a, b), hf.layers.Subtract()([a, b]))
    one, two = np.ones((2, 3), "float32"), np.full((2, 3), 5.0, "float32")
    for given in (Pair(one, two), (one, two), Pair(hf.asarray(one), two)):
        assert np.array_equal(model(given).numpy(), one - two)
        assert np.array_equal(hf.function(model)(given).numpy(), one - two)
        assert np.array_equal(model.predict(given, verbose=0), one - two)


@pytest.mark.parametrize(
    ("made", "kind", "nested"),
    [("cab", dict, False), ("bca", dict, True), ("cba", collections.OrderedDict, False), ("abc", dict, False)],
)
def test_dicts_of_inputs_are_matched_by_keys(made: str, kind: Any, nested: bool, tmp_path: Path) -> None:
    """In whatever order a model was made of them and is given them."""
    symbols = {key: hf.Input((2,), name=f"input_{key}") for key in "abc"}
    inputs = kind((key, symbols[key]) for key in made)
    model = hf.Model([hf.Input((2,)), inputs] if nested else inputs, _weighted(*map(symbols.get, "abc")))
    values = {key: RNG.standard_normal((4, 2)).astype("f4") for key in "abc"}
    wanted = values["a"] + 10 * values["b"] + 100 * values["c"]

    def given(order: str) -> Any:
        found = {key: values[key] for key in order}
        return [np.zeros((4, 2), "f4"), found] if nested else found

    model.save(tmp_path / "model.hf")
    others = [hf.models.load_model(tmp_path / "model.hf"), hf.models.clone_model(model)]
    around = hf.Model(model.input, model(model.input))
    for one in (model, *others, around):
        for order in ("abc", "bca", made):
            np.testing.assert_allclose(one(given(order)).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(hf.function(model)(given("cba")).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(model.predict(given("bac"), verbose=0), wanted, rtol=1e-6)
    if not nested:
        data = Dataset.from_tensor_slices((given("bca"), wanted)).batch(2)
        model.compile("sgd", "mse")
        assert model.evaluate(data, verbose=0) < 1e-6 > model.evaluate(given("cab"), wanted, verbose=0)
        assert model.fit(given("bac"), wanted, verbose=0).history["loss"][0] < 1e-6
