"""What models are made of: layers wherever they are, their names, graphs in subclasses, nested inputs, later layers."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import callbacks, errors, layers

RNG = np.random.default_rng(4)
X = RNG.standard_normal((6, 3)).astype("f4")
Y = RNG.standard_normal((6, 1)).astype("f4")


class Deep(hf.Model):
    """Layers in lists, tuples and dicts in each other, and in a module that is no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = {"a": [layers.Dense(4), [layers.Dense(3)]], "b": (layers.Dense(2), {"c": layers.Dense(1)})}
        self.more = hf.Module()
        self.more.last = layers.Activation("tanh")  # type: ignore[attr-defined]
        self.metric = [{"own": hf.metrics.Mean("own")}]

    def call(self, inputs: Any) -> Any:
        for layer in self.layers:
            inputs = layer(inputs)
        self.metric[0]["own"].update_state(inputs)
        return inputs


def test_layers_are_found_at_any_depth(capsys: pytest.CaptureFixture[str]) -> None:
    model = Deep()
    assert [layer.name for layer in model.layers] == ["dense", "dense_1", "dense_2", "dense_3", "activation"]
    assert model.get_layer("dense_2") is model.blocks["b"][0]
    model.compile("sgd", "mse")
    history = model.fit(X, Y, verbose=0)
    assert sorted(history.history) == ["loss", "own"]
    model.summary()
    text = capsys.readouterr().out
    assert all(f"dense_{n} (Dense)" in text for n in (1, 2, 3)) and "Total params: 42" in text


def test_names_are_those_of_the_place_whatever_was_made_before() -> None:
    def model() -> Any:
        inputs = hf.Input((3,)), hf.Input((3,))
        x = layers.Dense(2)(layers.Add()(inputs))
        return hf.Model(inputs, [layers.Dense(1)(x), layers.Dense(1, name="dense")(x)])

    found = [[layer.name for layer in model().layers] for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert found[0] == ["input_layer", "input_layer_1", "add", "dense_1", "dense_2", "dense"]
    assert model().output_names == ["dense_2", "dense"]


def test_a_layer_keeps_its_name_in_a_second_model() -> None:
    first = hf.Sequential([layers.Dense(1), layers.Dense(2)])
    second = hf.Sequential([layers.Dense(3), first.layers[1]])
    assert [layer.name for layer in second.layers] == ["dense", "dense_1"] == [layer.name for layer in first.layers]
    third = hf.Sequential([first.layers[0], second.layers[0]])  # both are called dense so far
    assert [layer.name for layer in third.layers] == ["dense", "dense_1"]


def test_files_do_not_depend_on_names(tmp_path: Path) -> None:
    def model() -> Any:
        return hf.Sequential([hf.Input((3,)), layers.Dense(2), layers.Dense(1)])

    first, second = model(), model()
    second.layers[0].name = "other"
    first.save_weights(tmp_path / "w.safetensors")
    second.load_weights(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(first(X), second(X))


class OfGraph(hf.Model):
    """A subclass that says what graph it is of."""

    def __init__(self, units: int = 2, **options: Any) -> None:
        inputs = hf.Input((3,), name="x")
        hidden = layers.Dense(units)(inputs)
        super().__init__(inputs=inputs, outputs=layers.Dense(1)(hidden), **options)
        self.units = units

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"units": self.units}


@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: OfGraph.from_config(model.get_config()),
        lambda model: type(model).from_config(model.get_config()),
    ],
)
def test_a_subclass_may_be_of_a_graph(copied: Any) -> None:
    model = OfGraph(5, name="own")
    assert isinstance(model, OfGraph) and [v.shape for v in model.variables] == [(3, 5), (5,), (5, 1), (1,)]
    assert [layer.name for layer in model.layers] == ["x", "dense", "dense_1"] and model.name == "own"
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    other = copied(model)
    other.set_weights(model.get_weights())
    assert isinstance(other, OfGraph) and other.units == 5 and other.name == "own"
    np.testing.assert_array_equal(other(X), model({"x": X}))
    assert OfGraph().count_params() == 11  # a second one


def test_nested_inputs() -> None:
    a, b, c = (hf.Input((3,), name=name) for name in "abc")
    model = hf.Model({"a": a, "others": [b, (c,)]}, layers.Subtract()([layers.Add()([a, b]), c]))
    given = {"a": X, "others": [2 * X, (4 * X,)], "more": X}
    np.testing.assert_allclose(model(given), -X, rtol=1e-6)
    np.testing.assert_allclose(model.predict(given, verbose=0), -X, rtol=1e-6)
    model.compile("sgd", "mse")
    assert model.evaluate(given, -X, verbose=0) < 1e-10
    np.testing.assert_allclose(model([X, 2 * X, 4 * X]), -X, rtol=1e-6)
    again = type(model).from_config(model.get_config())
    np.testing.assert_allclose(again(given), -X, rtol=1e-6)
    with pytest.raises(errors.ArgumentError, match=r"takes 1 inputs, and was given 2, in inputs\['others'\]\[1\]"):
        model({"a": X, "others": [X, (X, X)]})
    with pytest.raises(errors.ArgumentError, match="no input 'others' in inputs"):
        model({"a": X})


def test_layers_come_and_go_after_training() -> None:
    model = hf.Sequential([layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    model.predict(X, verbose=0)
    model.add(layers.Dense(4))
    model.fit(X, Y, verbose=0)
    assert model.predict(X, verbose=0).shape == (6, 4) and len(model.optimizer.variables) > 4
    last = model.pop()
    assert last.name == "dense_1" and model.predict(X, verbose=0).shape == (6, 2)  # type: ignore[attr-defined]
    kept = last.get_weights()  # type: ignore[attr-defined]
    model.fit(X, Y, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(kept, last.get_weights()))  # type: ignore[attr-defined]


def test_models_are_built_for_shapes() -> None:
    model = hf.Sequential([layers.Dense(2), layers.BatchNormalization(), layers.Dense(1)])
    model.build((None, 3))
    assert model.built and model.count_params() == 19
    deep = Deep()
    deep.build((None, 3))
    assert deep.count_params() == 42 and float(deep.metric[0]["own"].result()) == 0.0


@pytest.mark.parametrize("steps", [None, 2])
def test_training_goes_on_with_a_model_that_is_built_by_its_data(tmp_path: Path, steps: int | None) -> None:
    class Stop(callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                raise KeyboardInterrupt

    def run(*more: Any, folder: str = "one") -> Any:
        hf.random.set_seed(3)
        model = hf.Sequential([layers.Dense(2), layers.Dense(1)])
        model.compile("adam", "mse")
        backup = callbacks.BackupAndRestore(tmp_path / folder)
        data = hf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
        model.fit(data, epochs=4, steps_per_epoch=steps, verbose=0, callbacks=[backup, *more])
        return model

    with pytest.raises(KeyboardInterrupt):
        run(Stop())
    resumed = run()
    assert resumed.history.epoch == [2, 3]
    for a, b in zip(resumed.get_weights(), run(folder="two").get_weights()):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("kind", "steps", "every"),
    [
        ("arrays", None, "epoch"),
        ("arrays", 3, 4),
        ("dataset", None, "SIGTERM"),
        ("dataset", 3, "epoch"),
        ("weighed", 3, 1),
        ("loader", None, 2),
        ("loader", 3, "SIGTERM"),
        ("sequence", None, 1),
    ],
)
def test_a_resumed_training_has_the_bits_of_one_that_was_not_interrupted(
    tmp_path: Path, kind: str, steps: int | None, every: Any
) -> None:
    """Orders of samples and what is dropped are those that would have come, and so is what is logged; an epoch may
    begin amid the data, and a run amid an epoch, be it after its last batch."""
    is_told, ends = every == "SIGTERM", 0 if every == 2 else 1
    interruption = SystemExit if is_told else KeyboardInterrupt

    class Stop(callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if is_told and batch == 1 and len(self.model.history.epoch) == 2:
                signal.raise_signal(signal.SIGTERM)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if not is_told and batch == ends and len(self.model.history.epoch) == 2:
                raise KeyboardInterrupt

    class Samples:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return X[4 * index : 4 * index + 4], Y[4 * index : 4 * index + 4]

    def backup() -> Any:
        return callbacks.BackupAndRestore(tmp_path, "epoch" if is_told else every)

    def run(*given: Any) -> Any:
        hf.random.set_seed(3)
        model = hf.Sequential([hf.Input((3,)), layers.Dense(4), layers.Dropout(0.5), layers.Dense(1)])
        model.compile("adam", "mse", metrics=["mae"])
        options: dict[str, Any] = {"epochs": 5, "steps_per_epoch": steps, "verbose": 0, "callbacks": list(given)}
        rows = hf.data.Dataset.from_tensor_slices((X, Y))
        if kind == "dataset":
            model.fit(rows.shuffle(5).batch(4).prefetch(2), **options)
        elif kind == "loader":
            model.fit(hf.data.DataLoader(list(zip(X, Y)), batch_size=4, shuffle=True), **options)
        elif kind == "sequence":
            model.fit(Samples(), **options)
        else:
            weights = {0: 1.0, 1: 3.0} if kind == "weighed" else None
            model.fit(X, Y, batch_size=4, class_weight=weights, **options)
        logged = [values[-3:] for values in model.history.history.values()]  # of epochs that a resumed run has, too
        return [*model.get_weights(), *map(np.array, logged)]

    plain = run()
    with pytest.raises(interruption) as raised:
        run(backup(), Stop())
    assert not is_told or raised.value.code == 75
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    resumed = run(backup())
    assert not os.listdir(tmp_path) and len(plain) == len(resumed)
    for a, b in zip(plain, resumed):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_what_was_forked_from_a_training_ends_by_sigterm(tmp_path: Path) -> None:
    ended: list[int] = []

    class Fork(callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            child = os.fork()
            if not child:
                os.kill(os.getpid(), signal.SIGTERM)
                os._exit(0)
            ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    model = hf.Sequential([hf.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0, callbacks=[callbacks.BackupAndRestore(tmp_path), Fork()])
    assert ended == [-signal.SIGTERM] and not os.listdir(tmp_path)


def test_iterators_that_were_given_are_not_closed() -> None:
    def batches() -> Iterator[Any]:
        while True:
            yield X, Y

    given, model = batches(), hf.Sequential([hf.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(given, steps_per_epoch=2, verbose=0)
    assert model.evaluate(given, steps=1, verbose=0) > 0 and next(given) is not None


def test_two_layers_of_one_name_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="two layers are called 'one'"):
        hf.Sequential([layers.Dense(1, name="one"), layers.Dense(1, name="one")])


def test_sparse_inputs() -> None:
    """Batches of a sparse tensor are the rows of the whole one; entries at one place are added up."""
    places = [[0, 0], [0, 2], [0, 2], [4, 3], [5, 0]]
    rows = hf.sparse.COO(places, [1.0, 2.0, 3.0, 4.0, 5.0], (7, 4))
    model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(2)])
    whole = rows.to_dense()
    np.testing.assert_array_equal(model(rows), model(whole))
    np.testing.assert_array_equal(model.predict(rows, batch_size=4), model.predict(whole, batch_size=4))
    model.compile("sgd", "mse")
    y = np.ones((7, 2), np.float32)
    assert model.evaluate(rows, y) == model.evaluate(whole, y)
    assert model.fit(rows, y, shuffle=True, validation_split=0.3).history["loss"][0] > 0
    with pytest.raises(hf.errors.ShapeError, match="samples differ"):
        model.fit(rows, y[:3])
