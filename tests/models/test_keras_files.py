"""Models that Keras wrote: configurations of Keras 1, 2 and 3, and whole files, whose results are kept here."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hybridflow as hf


def _tensor(layer: str, node: int = 0, place: int = 0) -> dict[str, Any]:
    config = {"shape": [None, 4], "dtype": "float32", "keras_history": [layer, node, place]}
    return {"class_name": "__keras_tensor__", "config": config}


def _layer3(kind: str, name: str, calls: list[list[Any]], **config: Any) -> dict[str, Any]:
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None}
    initializer = {"module": "keras.initializers", "class_name": "Zeros", "config": {}, "registered_name": None}
    more = {"kernel_initializer": initializer, "quantization_config": None} if kind == "Dense" else {}
    return {
        "module": "keras.layers",
        "class_name": kind,
        "config": {"name": name, "trainable": True, "dtype": policy, **more, **config},
        "registered_name": None,
        "build_config": {"input_shape": [None, 4]},
        "name": name,
        "inbound_nodes": [{"args": args, "kwargs": {}} for args in calls],
    }


def _graph3() -> dict[str, Any]:
    """A layer that is called twice, an operation of Keras's between layers, and a model within the model."""
    inner = {
        "module": "keras",
        "class_name": "Sequential",
        "name": "inner",
        "config": {
            "name": "inner",
            "layers": [_layer3("Dense", "deep", [], units=4, activation="relu")],
        },
        "inbound_nodes": [{"args": [_tensor("add")], "kwargs": {}}],
    }
    inputs = _layer3("InputLayer", "in", [], batch_shape=[None, 4], sparse=False, ragged=False)
    add = {
        "module": "keras.src.ops.numpy",
        "class_name": "Add",
        "config": {"name": "add"},
        "name": "add",
        "inbound_nodes": [{"args": [_tensor("shared", 0), _tensor("shared", 1)], "kwargs": {}}],
    }
    layers = [
        inner,  # layers may come before those that they take from
        inputs,
        _layer3("Dense", "shared", [[_tensor("in")], [_tensor("shared", 0)]], units=4, activation="tanh"),
        add,
        _layer3("Concatenate", "both", [[[_tensor("inner"), _tensor("in")]]], axis=-1),
        _layer3("Dense", "out", [[_tensor("both")]], units=2, activation="linear"),
    ]
    config = {"name": "graph", "layers": layers, "input_layers": [["in", 0, 0]], "output_layers": [["out", 0, 0]]}
    return {"module": "keras.src.models.functional", "class_name": "Functional", "config": config}


def _weights() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=shape).astype(np.float32) for shape in ((4, 4), (4,), (4, 4), (4,), (8, 2), (2,))]


def _expected(x: np.ndarray, w: list[np.ndarray]) -> np.ndarray:
    once = np.tanh(x @ w[0] + w[1])
    twice = np.tanh(once @ w[0] + w[1])
    inner = np.maximum((once + twice) @ w[2] + w[3], 0)
    return np.concatenate([inner, x], 1) @ w[4] + w[5]


def _keras3_file(path: Path, config: dict[str, Any]) -> None:
    w = _weights()
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        places = {"dense": ("shared", w[:2]), "sequential/layers/dense": ("deep", w[2:4]), "dense_1": ("out", w[4:])}
        for place, (name, arrays) in places.items():
            group = file.create_group(f"layers/{place}/vars")
            group.attrs["name"] = name
            for number, array in enumerate(arrays):
                group[str(number)] = array
        file.create_group("layers/sequential/vars").attrs["name"] = "inner"
    compiled = {
        "optimizer": {"class_name": "Adam", "config": {"learning_rate": 0.25, "weight_decay": None}},
        "loss": "mse",
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        archive.writestr("config.json", json.dumps({**config, "compile_config": compiled}))
        archive.writestr("model.weights.h5", content.getvalue())


def test_a_file_of_keras_3(tmp_path: Path) -> None:
    _keras3_file(tmp_path / "m.keras", _graph3())
    model = hf.models.load_model(tmp_path / "m.keras")
    x = np.random.default_rng(4).normal(size=(5, 4)).astype(np.float32)
    np.testing.assert_allclose(model(x).numpy(), _expected(x, _weights()), rtol=1e-5, atol=1e-5)
    assert model.compiled
    assert float(model.optimizer.learning_rate) == 0.25
    model.fit(x, np.zeros((5, 2), np.float32), epochs=1, verbose=0)
    assert not hf.models.load_model(tmp_path / "m.keras", compile=False).compiled


def test_the_text_of_keras_3_alone() -> None:
    model = hf.models.model_from_json(json.dumps(_graph3()))
    assert model.name == "graph"
    assert model.output_shape == (None, 2)
    assert model.count_params() == sum(w.size for w in _weights())


def _graph2() -> dict[str, Any]:
    def layer(kind: str, name: str, calls: Any, **config: Any) -> dict[str, Any]:
        return {"class_name": kind, "name": name, "config": {"name": name, **config}, "inbound_nodes": calls}

    uniform = {
        "class_name": "VarianceScaling",
        "config": {"scale": 1.0, "mode": "fan_avg", "distribution": "uniform", "seed": None},
    }
    dense = {"use_bias": True, "kernel_initializer": uniform, "bias_initializer": {"class_name": "Zeros", "config": {}}}
    layers = [
        layer("InputLayer", "in", [], batch_input_shape=[None, 4], dtype="float32", sparse=False),
        layer("Dense", "shared", [[["in", 0, 0, {}]], [["shared", 0, 0, {}]]], units=4, activation="tanh", **dense),
        layer("Add", "add", [[["shared", 0, 0, {}], ["shared", 1, 0, {}]]]),
        layer("Dense", "deep", [[["add", 0, 0, {}]]], units=4, activation="relu", **dense),
        layer("Concatenate", "both", [[["deep", 0, 0, {}], ["in", 0, 0, {}]]], axis=-1),
        layer("Dense", "out", [[["both", 0, 0, {}]]], units=2, activation="linear", **dense),
    ]
    config = {"name": "graph", "layers": layers, "input_layers": [["in", 0, 0]], "output_layers": [["out", 0, 0]]}
    return {"class_name": "Model", "keras_version": "2.0.5", "backend": "tensorflow", "config": config}


def test_a_file_of_keras_2(tmp_path: Path) -> None:
    w = _weights()
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.attrs["model_config"] = json.dumps(_graph2()).encode()
        training = {
            "optimizer_config": {"class_name": "Adam", "config": {"lr": 0.5, "decay": 0.0}},
            "loss": "mse",
            "metrics": ["mae"],
        }
        file.attrs["training_config"] = json.dumps(training).encode()
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = np.array(["in", "shared", "add", "deep", "both", "out"], "S")
        for name, arrays in {"in": [], "add": [], "both": [], "shared": w[:2], "deep": w[2:4], "out": w[4:]}.items():
            layer = group.create_group(name)
            names = [f"{name}/{part}:0" for part, _ in zip(("kernel", "bias"), arrays)]
            layer.attrs["weight_names"] = np.array(names, "S")
            for one, array in zip(names, arrays):
                layer[one] = array
    model = hf.models.load_model(tmp_path / "m.h5")
    x = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(model(x).numpy(), _expected(x, w), rtol=1e-5, atol=1e-5)
    assert float(model.optimizer.learning_rate) == 0.5


def test_a_sequential_model_of_keras_1() -> None:
    layers = [
        {
            "class_name": "Dense",
            "config": {"name": "d", "output_dim": 3, "batch_input_shape": [None, 2], "init": "glorot_uniform"},
        },
        {"class_name": "Dropout", "config": {"name": "drop", "p": 0.25}},
    ]
    model = hf.models.model_from_json(json.dumps({"class_name": "Sequential", "config": layers}))
    assert model.input_shape == (None, 2)
    assert model.layers[1].rate == 0.25


def _with(change: Any) -> str:
    config = _graph3()
    change(config["config"]["layers"])
    return json.dumps(config)


WRONG: dict[str, tuple[Any, str]] = {
    "unknown class": (lambda layers: layers[2].update(class_name="Dens"), "Dens"),
    "an argument that says something": (lambda layers: layers[2]["config"].update(new_argument=3), "new_argument"),
    "an unknown operation": (lambda layers: layers[3].update(class_name="Fft"), "Fft"),
    "a circle": (
        lambda layers: layers[3]["inbound_nodes"][0].update(args=[_tensor("out"), _tensor("out")]),
        "no layer gives",
    ),
    "no arguments": (lambda layers: layers[2].pop("config"), "config"),
    "code": (
        lambda layers: layers[4].update(class_name="Lambda", config={"name": "both", "function": ["4wEAAA=="]}),
        "Lambda",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_made_is_named(name: str) -> None:
    change, text = WRONG[name]
    with pytest.raises(hf.errors.HybridflowError, match=text):
        hf.models.model_from_json(_with(change))


def test_damaged_files(tmp_path: Path) -> None:
    _keras3_file(tmp_path / "m.keras", _graph3())
    whole = (tmp_path / "m.keras").read_bytes()
    rng = np.random.default_rng(0)
    for number in range(20):
        (tmp_path / "d.keras").write_bytes(whole[: int(rng.integers(10, len(whole)))] if number else whole[:8])
        with pytest.raises(hf.errors.HybridflowError):
            hf.models.load_model(tmp_path / "d.keras")
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file.attrs["layer_names"] = np.array([], "S")
    with pytest.raises(hf.errors.CheckpointError, match="weights and no model"):
        hf.models.load_model(tmp_path / "w.h5")
