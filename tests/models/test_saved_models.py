"""Models as text and as files: made again with shared layers, nested models, functions, and the state of training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers, models

RNG = np.random.default_rng(5)
X = RNG.standard_normal((8, 3)).astype("f4")
Y = RNG.standard_normal((8, 1)).astype("f4")


def swapped(x: Any) -> Any:
    return x[:, ::-1]


class Scaled(layers.Layer):
    """One of the user's own, with an argument."""

    def __init__(self, by: Any = 2.0, **options: Any) -> None:
        super().__init__(**options)
        self.by = by

    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight(input_shape[-1:], initializer=hf.initializers.Constant(self.by))

    def call(self, inputs: Any) -> Any:
        return inputs * self.factor

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"by": self.by}


class Two(hf.Model):
    """A subclass, which is built by its first input."""

    def __init__(self, units: int = 4, **options: Any) -> None:
        super().__init__(**options)
        self.units = units
        self.parts = [layers.Dense(units, "tanh"), {"out": layers.Dense(1)}]

    def call(self, inputs: Any) -> Any:
        return self.parts[1]["out"](self.parts[0](inputs))  # type: ignore[index]

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"units": self.units}


def graph() -> Any:
    """A shared layer, a nested model in two places, slices, numbers, masks, several outputs."""
    inner_input = hf.Input((4,))
    inner = hf.Model(inner_input, layers.Dense(4, kernel_regularizer="l2")(inner_input) + 1.0, name="inner")
    a, b = hf.Input((3,), name="a"), hf.Input((3,), name="b")
    shared = layers.Dense(4, activation="relu")
    left, right = inner(shared(a)), inner(shared(b))
    joined = layers.Concatenate()([left[:, 1:3], 2.0 - right, Scaled(0.5)(left)])
    return hf.Model({"a": a, "b": b}, [layers.Dense(1)(joined), right[..., 0]])


def recurrent() -> Any:
    return hf.Sequential(
        [
            layers.Embedding(9, 5, mask_zero=True),
            layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
            layers.TimeDistributed(layers.Dense(2)),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1, kernel_initializer=hf.initializers.HeNormal(seed=3), bias_constraint="non_neg"),
        ]
    )


MODELS: dict[str, tuple[Any, Any]] = {
    "graph": (graph, {"a": X, "b": X[::-1]}),
    "recurrent, not built": (recurrent, RNG.integers(0, 9, (4, 6))),
    "sequential": (lambda: hf.Sequential([hf.Input((3,)), Scaled(3.0), layers.Dropout(0.5), layers.Dense(1)]), X),
    "subclass": (lambda: Two(3), X),
}


def alike(first: Any, second: Any) -> None:
    for one, two in zip(hf.tree.leaves(first), hf.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("again", [lambda m: models.model_from_json(m.to_json()), models.clone_model])
def test_models_are_made_again(name: str, again: Any) -> None:
    make, x = MODELS[name]
    model = make()
    expected = model(x)
    other = again(model)
    other(x)
    assert [layer.name for layer in other.layers] == [layer.name for layer in model.layers]
    assert other.get_config() == model.get_config() and len(other.variables) == len(model.variables)
    assert all(v is not w for v in other.variables for w in model.variables)
    other.set_weights(model.get_weights())
    alike(other(x), expected)


@pytest.mark.parametrize("name", ["recurrent, not built", "sequential", "subclass"])
def test_training_goes_on_from_a_file(name: str, tmp_path: Path) -> None:
    make, x = MODELS[name]
    model, y = make(), Y[: len(MODELS[name][1])]
    rate = hf.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    model.compile(
        hf.optimizers.Adam(rate, clipnorm=1.0), hf.losses.Huber(0.3), metrics=["mae", hf.metrics.Mean("m")][:1]
    )
    model.fit(x, y, epochs=3, verbose=0)
    path = tmp_path / "model.safetensors"
    model.save(path)
    other = models.load_model(path)
    assert type(other) is type(model) and other.optimizer.get_config() == model.optimizer.get_config()
    alike(other.predict(x, verbose=0), model.predict(x, verbose=0))
    for one in (model, other):
        hf.random.set_seed(0)
        one.fit(x, y, epochs=2, shuffle=False, verbose=0)
    assert other.history.history == model.history.history
    alike(other.get_weights(), model.get_weights())
    apart = models.load_model(path, compile=False)
    assert not apart.compiled and len(apart.get_weights()) == len(model.get_weights())


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_files_say_of_which_dtype_the_input_was(dtype: str, tmp_path: Path) -> None:
    """A model that never saw hf.Input is exported for what it was called with, be it after a file."""
    model = hf.Sequential([layers.Rescaling(0.5), layers.Dense(2)])
    x = hf.asarray(np.arange(6).reshape(2, 3).astype(dtype))
    wanted = model(x)
    model.save(tmp_path / "model")
    again = models.load_model(tmp_path / "model")
    hf.saved.save(again, tmp_path / "program")
    program = hf.saved.load(tmp_path / "program").signatures["serving_default"]
    assert [str(spec.dtype) for spec in program.structured_input_signature[0]] == [dtype]
    np.testing.assert_array_equal(program(x), wanted)
    kept = models.load_model(tmp_path / "model")
    model(x)
    checkpoint = hf.checkpoint.Checkpoint(model=model)
    checkpoint.restore(tmp_path / "model")  # what a file of a model says beside its weights is not missed
    np.testing.assert_array_equal(kept(x), wanted)


def test_files_without_the_dtype_of_the_input_are_read(tmp_path: Path) -> None:
    model = hf.Sequential([layers.Dense(2)])
    model(X)
    model._seen_dtype = None
    told = {"version": 1, "shape": "[null, 3]", "compiled": "null", "architecture": model.to_json()}
    hf.checkpoint.Checkpoint(model=model, **told).write(tmp_path / "old")
    again = models.load_model(tmp_path / "old")
    np.testing.assert_array_equal(again(X), model(X))


def test_functions_and_classes_are_given_by_name(tmp_path: Path) -> None:
    def own_loss(y: Any, p: Any) -> Any:
        return hf.mean((y - p) ** 4)

    model = hf.Sequential([hf.Input((3,)), layers.Lambda(swapped), Scaled(2.0), layers.Dense(1, activation=hf.nn.silu)])
    model.compile("sgd", own_loss)
    path = tmp_path / "model.safetensors"
    model.save(path)
    with pytest.raises(errors.ArgumentError, match=r"the function 'swapped' is not kept: give custom_objects"):
        models.load_model(path)
    with pytest.raises(FileExistsError):
        model.save(path, overwrite=False)

    class Other(Scaled):
        """What the file's ``Scaled`` is to be."""

    given = {"swapped": swapped, "own_loss": own_loss, "Scaled": Other}
    other = models.load_model(path, custom_objects=given)
    assert type(other.layers[1]) is Other
    alike(other(X), model(X))
    assert other.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)


def test_classes_that_are_called_like_ours(tmp_path: Path) -> None:
    import hybridflow.compat.v1  # noqa: F401  # which has an Adam of its own

    class Dense(Scaled):
        pass

    model = hf.Sequential([hf.Input((3,)), layers.Dense(1), Dense(3.0)])
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "model.keras")
    for again in (hf.models.load_model(tmp_path / "model.keras"), hf.Sequential.from_config(model.get_config())):
        assert [type(layer) for layer in again.layers] == [layers.Dense, Dense]
        assert again.layers[1].by == 3.0
    assert type(hf.models.load_model(tmp_path / "model.keras").optimizer) is hf.optimizers.Adam
    written = layers.layer.describe(Dense())
    assert type(layers.layer.as_layer(written | {"module": "the_script_of_yesterday"})) is Dense
    assert type(layers.layer.as_layer({"class_name": "Dense", "config": {"units": 2}})) is layers.Dense
    assert type(layers.layer.as_layer({"class_name": "Dense", "module": "keras.layers", "config": {"units": 2}})) is (
        layers.Dense
    )
    with pytest.raises(errors.ArgumentError, match="nothing is called 'Conv1D'"):
        layers.layer.as_layer({"class_name": "Conv1D", "module": "theirs", "config": {}})


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    model = hf.Sequential([hf.Input((3,)), layers.Dense(1)])
    path = tmp_path / "weights.safetensors"
    model.save_weights(path)
    with pytest.raises(errors.CheckpointError, match="holds no checkpoint"):
        models.load_model(path)
    hf.checkpoint.Checkpoint(model=model).write(path)
    with pytest.raises(errors.CheckpointError, match="holds no model"):
        models.load_model(path)
    model.save(path)
    whole = path.read_bytes()
    for cut in (len(whole) - 3, len(whole) // 2, 9):
        path.write_bytes(whole[:cut])
        with pytest.raises(errors.CheckpointError):
            models.load_model(path)
    told = {"version": 9, "architecture": "{}", "shape": "null", "compiled": "null"}
    hf.checkpoint.Checkpoint(model=model, **told).write(path)
    with pytest.raises(errors.CheckpointError, match="format 9"):
        models.load_model(path)


@pytest.mark.parametrize(("name", "file"), [("model.keras", "model.keras"), ("model.h5", "model.h5.safetensors")])
def test_names_of_other_formats(name: str, file: str, tmp_path: Path) -> None:
    model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    x = hf.ones((1, 3))
    model.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [file]
    assert models.load_model(tmp_path / name)(x).tolist() == model(x).tolist()
    with pytest.raises(FileExistsError):
        model.save(tmp_path / name, overwrite=False)
    weights = tmp_path / "only.weights.h5"
    model.save_weights(weights)
    model.layers[-1].kernel.assign(hf.zeros((3, 2)))
    model.load_weights(weights)
    assert models.load_model(tmp_path / name)(x).tolist() == model(x).tolist()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "no JSON"),
        ('{"$object": "layer", "class_name": "Dence", "config": {}}', "did you mean 'Dense'"),
        ('{"$object": "layer", "class_name": "Dense"}', "damaged"),
        ('{"$object": "module", "class_name": "os"}', "damaged"),
        ('{"$call": "os.system"}', "does not know"),
        ('{"$array": [1, 2], "dtype": "object", "tensor": true}', "damaged"),
        ('{"$object": "layer", "class_name": "Dense", "config": {"units": 2}}', "no model"),
        ("[1, 2]", "no model"),
    ],
)
def test_hostile_texts(text: str, match: str) -> None:
    with pytest.raises(errors.ArgumentError, match=match):
        models.model_from_json(text)


def test_what_cannot_be_written_is_named() -> None:
    model = hf.Sequential([layers.Lambda(swapped, arguments={"x": object()})], name="mine")
    with pytest.raises(errors.ArgumentTypeError, match=r"\[mine\] <object object .* cannot be written"):
        model.to_json()


def test_clones_of_chosen_layers() -> None:
    def chosen(layer: Any) -> Any:
        return layer if isinstance(layer, Scaled) else type(layer).from_config(layer.get_config())

    model = graph()
    other = models.clone_model(model, clone_function=chosen)
    own = {id(v) for v in model.variables}
    assert sum(id(v) in own for v in other.variables) == 1  # the factor of Scaled
    sequential = hf.Sequential([hf.Input((3,)), layers.Dense(2), Scaled()])
    other = models.clone_model(sequential, clone_function=lambda layer: layer)
    assert other.built and other.layers == sequential.layers


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (lambda: layers.Dense(4), (None, 3), (None, 4)),
        (lambda: layers.Conv2D(8, 3, 2, "same"), (2, 9, None, 3), (2, 5, None, 8)),
        (lambda: layers.LSTM(3, return_sequences=True), (None, None, 4), (None, None, 3)),
        (lambda: layers.Embedding(4, 5), (None, 7), (None, 7, 5)),
        (lambda: layers.Concatenate(), [(None, 3), (None, 4)], (None, 7)),
        (lambda: layers.Flatten(), (None, 3, 4), (None, 12)),
        (graph, {"a": (None, 3), "b": (None, 3)}, [(None, 1), (None,)]),
        (recurrent, (None, 6), (None, 1)),
        (Two, (None, 3), (None, 1)),
    ],
)
def test_shapes_of_results(layer: Any, shape: Any, expected: Any) -> None:
    made = layer()
    before, variables = hf.random.global_generator().state.numpy().tolist(), len(made.variables)
    assert made.compute_output_shape(shape) == expected
    assert hf.random.global_generator().state.numpy().tolist() == before and len(made.variables) == variables


def test_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.dot"
    text = hf.plot_model(graph(), path, show_shapes=True, show_layer_names=True, show_dtype=True, rankdir="LR")
    assert path.read_text() == text + "\n" and 'rankdir="LR"' in text
    assert 'label="inner (Functional)\\n(None, 4)\\nfloat32"' in text and text.count("->") == 12
    monkeypatch.setitem(__import__("sys").modules, "pydot", None)
    with pytest.raises(ImportError, match=r"hybridflow\[plot\]"):
        hf.plot_model(graph(), tmp_path / "graph.png")
    assert json.loads(graph().to_json(indent=1))["class_name"] == "Functional"


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"model": hf.ones(2)}, hf.errors.ArgumentTypeError),
        ({"model": None}, hf.errors.ArgumentTypeError),
        ({"to_file": 3}, hf.errors.ArgumentTypeError),
        ({"dpi": -1}, hf.errors.ArgumentError),
        ({"dpi": "96"}, hf.errors.ArgumentError),
        ({"rankdir": ["LR"]}, hf.errors.ArgumentError),
    ],
)
def test_pictures_of_what_cannot_be_drawn(wrong: dict[str, Any], kind: type[Exception], tmp_path: Path) -> None:
    arguments = {"model": graph(), "to_file": tmp_path / "model.dot", **wrong}
    with pytest.raises(kind, match=next(iter(wrong))):
        hf.plot_model(**arguments)
    assert not (tmp_path / "model.dot").exists()


class Untold(layers.Layer):
    """One of the user's own that says no configuration."""

    def __init__(self, units: int, rate: float = 0.5, note: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.dense, self.times = layers.Dense(units), rate

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs) * self.times


class Fixed(layers.Layer):
    """The same, which takes nothing else."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.times = by

    def call(self, inputs: Any) -> Any:
        return inputs * self.times


class UntoldModel(hf.Model):
    """A model that says no configuration."""

    def __init__(self, units: int = 30, **options: Any) -> None:
        super().__init__(**options)
        self.hidden = Untold(units, 0.25)

    def call(self, inputs: Any) -> Any:
        return self.hidden(inputs)


@pytest.mark.parametrize("suffix", ["keras", "safetensors"])
def test_classes_of_the_users_without_a_configuration_are_made_of_what_they_were_given(
    suffix: str, tmp_path: Path
) -> None:
    if suffix == "keras":
        pytest.importorskip("h5py")
    assert Untold(3, rate=0.1, name="a").get_config() == {
        "name": "a", "trainable": True, "dtype": "float32", "units": 3, "rate": 0.1,
    }  # fmt: skip
    assert Fixed(4.0).get_config() == {"by": 4.0}
    assert "units" not in Untold(3, note=object()).get_config()  # nothing that a file could hold
    for model in (UntoldModel(4), hf.Sequential([hf.Input((3,)), Untold(2, 0.1), Fixed(3.0)])):
        expected = model(X)
        path = tmp_path / f"m.{suffix}"
        model.save(path)
        again = models.load_model(path, custom_objects={"UntoldModel": UntoldModel, "Untold": Untold, "Fixed": Fixed})
        np.testing.assert_array_equal(again(X).numpy(), expected.numpy())


def test_what_a_layer_was_given_is_not_what_its_lists_became() -> None:
    sizes = [1, 2]

    class Listed(layers.Layer):
        def __init__(self, sizes: list[int]) -> None:
            super().__init__()
            self.sizes = sizes

    layer = Listed(sizes)
    sizes.append(3)
    assert layer.get_config() == {"sizes": [1, 2]}
