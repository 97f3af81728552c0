"""Files that Keras reads: what is in them, by Keras's own rules, and models that come back as they were."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers


def _chain() -> Any:
    parts = [hf.Input((6,)), layers.Dense(4, "relu", kernel_regularizer="l2"), layers.Dropout(0.3)]
    return hf.Sequential([*parts, layers.BatchNormalization(), layers.Dense(2)])


def _graph() -> Any:
    a, b = hf.Input((4,), name="a"), hf.Input((4,), name="b")
    shared = layers.Dense(4, "tanh", name="shared")
    x = layers.Add()([shared(a), shared(b)]) * 2.0 + 1.0
    y = layers.Concatenate()([layers.Dense(4, name="long")(x), a - b])
    return hf.Model([a, b], [layers.Dense(3, name="first")(y), layers.Dense(2, name="second")(1.0 / (abs(x) + 2.0))])


def _recurrent() -> Any:
    parts = [layers.Embedding(10, 4), layers.Bidirectional(layers.LSTM(3, return_sequences=True))]
    return hf.Sequential([hf.Input((5,)), *parts, layers.TimeDistributed(layers.Dense(3)), layers.GRU(2)])


def _attention() -> Any:
    x = hf.Input((5, 6))
    y = layers.Add()([x, layers.MultiHeadAttention(2, 3, dropout=0.1)(x, x)])
    inner = hf.Sequential([hf.Input((5, 6)), layers.Dense(6, "gelu")], name="inner")
    return hf.Model(x, layers.GlobalAveragePooling1D()(inner(layers.LayerNormalization()(y))))


MODELS = {"chain": _chain, "graph": _graph, "recurrent": _recurrent, "attention": _attention}


def _inputs(model: Any) -> Any:
    rng = np.random.default_rng(1)
    shapes = [(3, *symbol.shape[1:]) for symbol in model.inputs]
    found = [rng.integers(0, 4, shape).astype(np.float32) for shape in shapes]
    return found if len(found) > 1 else found[0]


def _results(model: Any, x: Any) -> list[Any]:
    found = model(x)
    return [one.numpy() for one in (found if isinstance(found, (list, tuple)) else [found])]


@pytest.mark.parametrize("name", MODELS)
def test_models_come_back(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    model.compile(hf.optimizers.Adam(0.25), loss="mse")
    x = _inputs(model)
    wanted = [np.zeros_like(one) for one in _results(model, x)]
    model.fit(x, wanted if len(wanted) > 1 else wanted[0], epochs=1, verbose=0)
    model.save(tmp_path / "m.keras")
    model.save_weights(tmp_path / "m.weights.h5")
    again = hf.models.load_model(tmp_path / "m.keras")
    for one, two in zip(_results(model, x), _results(again, x)):
        np.testing.assert_array_equal(one, two)
    assert again.optimizer.iterations.item() == model.optimizer.iterations.item()
    for one, two in zip(model.optimizer.variables, again.optimizer.variables):
        np.testing.assert_array_equal(one.numpy(), two.numpy())
    other = MODELS[name]()
    assert not other.load_weights(tmp_path / "m.weights.h5").missing
    for one, two in zip(_results(model, x), _results(other, x)):
        np.testing.assert_array_equal(one, two)
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:  # as Keras sees it
        archive.extract("model.weights.h5", tmp_path)
        names = set(archive.namelist())
        config = archive.read("config.json").decode()
    assert names == {"config.json", "metadata.json", "model.weights.h5", "hybridflow.safetensors"}
    theirs = hf.models.model_from_json(config)
    theirs.load_weights(tmp_path / "model.weights.h5")
    for one, two in zip(_results(model, x), _results(theirs, x)):
        np.testing.assert_array_equal(one, two)


def test_what_keras_finds_in_a_file(tmp_path: Path) -> None:
    model = _graph()
    model.save_weights(tmp_path / "m.weights.h5")
    with h5py.File(tmp_path / "m.weights.h5") as file:
        held: dict[str, str] = {}
        file.visititems(lambda path, one: held.update({path: one.attrs["name"]}) if path.endswith("/vars") else None)
    dense = {path: name for path, name in held.items() if "/dense" in path}
    # Keras's order: by the longest way to an output, then as a search from the outputs meets them.
    assert dense == {
        "layers/dense/vars": "shared",
        "layers/dense_1/vars": "long",
        "layers/dense_2/vars": "first",
        "layers/dense_3/vars": "second",
    }
    _chain().save_weights(tmp_path / "c.weights.h5")
    with h5py.File(tmp_path / "c.weights.h5") as file:
        assert sorted(file["layers/batch_normalization/vars"]) == ["0", "1", "2", "3"]


class _Own(hf.Model):
    """Layers as attributes: in dicts and lists, one of them twice, one private."""

    more = False

    def __init__(self, trainable: bool = True, dtype: Any = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self.blocks = {"a": layers.Dense(2), "b": layers.Dense(2)}
        self.nested = [[layers.Dense(2)], ("x",), [layers.Dense(2)]]
        self.again = self.blocks["a"]
        self.norms = [layers.BatchNormalization()]
        self._last = layers.Dense(2)
        if self.more:
            self.another = layers.Dense(2)

    def call(self, x: Any) -> Any:
        x = self.nested[2][0](self.nested[0][0](self.blocks["b"](self.blocks["a"](x))))
        x = self._last(self.norms[0](x))
        return self.another(x) if self.more else x


def test_models_of_a_class_of_their_own(tmp_path: Path) -> None:
    model, x = _Own(), np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)
    model.compile("sgd", "mse")
    model(x)
    model.save(tmp_path / "m.keras")
    model.save_weights(tmp_path / "m.weights.h5")
    other = _Own()
    other(x)
    assert not other.load_weights(tmp_path / "m.weights.h5").missing
    np.testing.assert_array_equal(other(x).numpy(), model(x).numpy())
    for compiled in (True, False):
        again = hf.models.load_model(tmp_path / "m.keras", {"_Own": _Own}, compile=compiled)
        np.testing.assert_array_equal(again(x).numpy(), model(x).numpy())
    with h5py.File(tmp_path / "m.weights.h5") as file:
        held: list[str] = []
        file.visit(held.append)
    # What Keras 3.15 calls them: attributes in the order of the alphabet, among which "layers" has all.
    first = {"again", "blocks/dense_1", "layers/dense_2", "layers/dense_3", "layers/dense_4"}
    assert {p.removesuffix("/vars/0") for p in held if p.endswith("/0")} == {*first, "layers/batch_normalization"}


@pytest.mark.parametrize("name", ["m.keras", "m.safetensors"])
@pytest.mark.parametrize("compiled", [True, False])
def test_files_of_another_model(name: str, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a model is compiled or not, no weight stays random, and none of the file is lost."""
    for more in (False, True):
        monkeypatch.setattr(_Own, "more", more)
        model = _Own()
        model.compile("sgd", "mse")
        model(np.ones((1, 3), np.float32))
        model.save(tmp_path / name)
        monkeypatch.setattr(_Own, "more", not more)
        with pytest.raises(errors.CheckpointError, match="another"):
            hf.models.load_model(tmp_path / name, {"_Own": _Own}, compile=compiled)


def test_layers_beside_a_graph(tmp_path: Path) -> None:
    class Beside(hf.Model):
        def __init__(self) -> None:
            start = hf.Input((3,))
            super().__init__(start, layers.Dense(2)(start))
            self.other = layers.Dense(2)
            self.other.build((None, 3))

    one, two = Beside(), Beside()
    one.save_weights(tmp_path / "m.weights.h5")
    assert len(two.load_weights(tmp_path / "m.weights.h5").restored) == 4
    np.testing.assert_array_equal(one.other.kernel.numpy(), two.other.kernel.numpy())


def test_functions_that_are_not_kept(tmp_path: Path) -> None:
    def twice(x: Any) -> Any:
        return x * 2

    hf.Sequential([hf.Input((3,)), layers.Dense(2, twice)]).save(tmp_path / "m.keras")
    with pytest.raises(errors.ArgumentError, match=r"^\[load_model\] the function 'twice' is not kept"):
        hf.models.load_model(tmp_path / "m.keras")
    assert hf.models.load_model(tmp_path / "m.keras", {"twice": twice}).built


def test_the_description_is_keras_s(tmp_path: Path) -> None:
    model = _graph()
    model.compile("adam", "mse")
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        config = json.loads(archive.read("config.json"))
    assert (config["module"], config["class_name"]) == ("keras.src.models.functional", "Functional")
    found = {one["name"]: one for one in config["config"]["layers"]}
    shared = found["shared"]
    assert (shared["module"], shared["class_name"], len(shared["inbound_nodes"])) == ("keras.layers", "Dense", 2)
    assert shared["config"]["kernel_initializer"]["module"] == "keras.initializers"
    assert found["a"]["config"]["batch_shape"] == [None, 4]
    divided = next(one for one in found.values() if one["class_name"] == "TrueDivide")
    assert divided["module"] == "keras.src.ops.numpy"
    assert divided["inbound_nodes"][0]["args"][0] == 1.0
    assert config["compile_config"]["optimizer"]["module"] == "keras.optimizers"


def test_the_same_model_is_the_same_file(tmp_path: Path) -> None:
    model = _chain()
    for name in ("a.keras", "b.keras"):
        model.save(tmp_path / name)
    assert (tmp_path / "a.keras").read_bytes() == (tmp_path / "b.keras").read_bytes()


def test_damaged_files(tmp_path: Path) -> None:
    _chain().save(tmp_path / "m.keras")
    whole = (tmp_path / "m.keras").read_bytes()
    rng = np.random.default_rng(5)
    for place in rng.integers(0, len(whole), 8):
        damaged = bytearray(whole)
        damaged[place] ^= 0x5A
        (tmp_path / "d.keras").write_bytes(damaged)
        try:
            hf.models.load_model(tmp_path / "d.keras")
        except (errors.CheckpointError, errors.ArgumentError):
            continue
    for cut in (10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "d.keras").write_bytes(whole[:cut])
        with pytest.raises(errors.CheckpointError):
            hf.models.load_model(tmp_path / "d.keras")
