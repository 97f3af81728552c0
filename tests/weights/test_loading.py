"""Models that take the weights of Keras, PyTorch and TensorFlow: their results are those of the other program.

PyTorch's modules are written out in NumPy here, from its documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hybridflow as hf
from tests.support import torch_files
from tests.weights.test_reading import write_bundle

RNG = np.random.default_rng


def _arrays(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, np.ndarray]:
    rng = RNG(seed)
    return {name: rng.normal(size=shape).astype(np.float32) * 0.5 for name, shape in shapes.items()}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _torch_conv2d(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, groups: int = 1) -> np.ndarray:
    """[n, c, h, w], correlation without padding."""
    n, _, height, width = x.shape
    out, per_group, kh, kw = weight.shape
    result = np.zeros((n, out, height - kh + 1, width - kw + 1))
    for o in range(out):
        first = o // (out // groups) * per_group
        for i in range(result.shape[2]):
            for j in range(result.shape[3]):
                part = x[:, first : first + per_group, i : i + kh, j : j + kw]
                result[:, o, i, j] = (part * weight[o]).sum((1, 2, 3)) + bias[o]
    return result


def _torch_lstm(x: np.ndarray, w: Mapping[str, np.ndarray], suffix: str = "") -> np.ndarray:
    """[n, t, f] to all outputs; gates i, f, g, o."""
    units = w[f"weight_hh_l0{suffix}"].shape[1]
    h = c = np.zeros((x.shape[0], units))
    result = []
    for t in range(x.shape[1]):
        gates = x[:, t] @ w[f"weight_ih_l0{suffix}"].T + w[f"bias_ih_l0{suffix}"]
        gates = gates + h @ w[f"weight_hh_l0{suffix}"].T + w[f"bias_hh_l0{suffix}"]
        i, f, g, o = np.split(gates, 4, 1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        result.append(h)
    return np.stack(result, 1)


def _torch_gru(x: np.ndarray, w: Mapping[str, np.ndarray]) -> np.ndarray:
    units = w["weight_hh_l0"].shape[1]
    h = np.zeros((x.shape[0], units))
    result = []
    for t in range(x.shape[1]):
        of_x = x[:, t] @ w["weight_ih_l0"].T + w["bias_ih_l0"]
        of_h = h @ w["weight_hh_l0"].T + w["bias_hh_l0"]
        (xr, xz, xn), (hr, hz, hn) = np.split(of_x, 3, 1), np.split(of_h, 3, 1)
        r, z = _sigmoid(xr + hr), _sigmoid(xz + hz)
        n = np.tanh(xn + r * hn)
        h = (1 - z) * n + z * h
        result.append(h)
    return np.stack(result, 1)


def _torch_attention(x: np.ndarray, w: Mapping[str, np.ndarray], heads: int) -> np.ndarray:
    n, t, width = x.shape
    q, k, v = np.split(x @ w["in_proj_weight"].T + w["in_proj_bias"], 3, 2)

    def split(a: np.ndarray) -> np.ndarray:
        return a.reshape(n, t, heads, width // heads).transpose(0, 2, 1, 3)

    scores = split(q) @ split(k).transpose(0, 1, 3, 2) / np.sqrt(width // heads)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (weights / weights.sum(-1, keepdims=True)) @ split(v)
    return mixed.transpose(0, 2, 1, 3).reshape(n, t, width) @ w["out_proj.weight"].T + w["out_proj.bias"]


def _below(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def test_torch_images_with_a_dense_layer_behind_them(tmp_path: Path) -> None:
    shapes = {
        "0.weight": (4, 3, 3, 3),
        "0.bias": (4,),
        "1.weight": (4,),
        "1.bias": (4,),
        "1.running_mean": (4,),
        "1.running_var": (4,),
        "2.weight": (4, 1, 2, 2),
        "2.bias": (4,),
        "5.weight": (6, 4 * 3 * 5),
        "5.bias": (6,),
    }
    arrays = _arrays(shapes)
    arrays["1.running_var"] = np.abs(arrays["1.running_var"]) + 0.5
    torch_files.write_new(tmp_path / "a.pt", {**arrays, "1.num_batches_tracked": np.array(7)})
    layers = hf.layers
    model = hf.Sequential(
        [
            hf.Input((6, 8, 3)),
            layers.Conv2D(4, 3),
            layers.BatchNormalization(epsilon=1e-5),
            layers.DepthwiseConv2D(2),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(6),
        ]
    )
    report = model.load_weights(tmp_path / "a.pt")
    assert "channels first" in report.turned["layers.5.kernel"]
    assert not report.missing
    assert not report.unused
    x = RNG(1).normal(size=(2, 3, 6, 8))
    y = _torch_conv2d(x, arrays["0.weight"], arrays["0.bias"])
    mean, var, gamma, beta = (
        arrays[f"1.{name}"][:, None, None] for name in ("running_mean", "running_var", "weight", "bias")
    )
    y = (y - mean) / np.sqrt(var + 1e-5) * gamma + beta
    y = _torch_conv2d(y, arrays["2.weight"], arrays["2.bias"], groups=4)
    y = y.reshape(2, -1) @ arrays["5.weight"].T + arrays["5.bias"]
    result = model(x.transpose(0, 2, 3, 1).astype(np.float32)).numpy()
    np.testing.assert_allclose(result, y, rtol=1e-4, atol=1e-4)


def test_torch_recurrent_layers_and_attention(tmp_path: Path) -> None:
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    lstm = dict(zip(names, ((20, 8), (20, 5), (20,), (20,))))
    gru = dict(zip(names, ((9, 10), (9, 3), (9,), (9,))))
    shapes = {
        "attend.in_proj_weight": (24, 8),
        "attend.in_proj_bias": (24,),
        "attend.out_proj.weight": (8, 8),
        "attend.out_proj.bias": (8,),
        **{f"both.{name}": shape for name, shape in lstm.items()},
        **{f"both.{name}_reverse": shape for name, shape in lstm.items()},
        **{f"gru.{name}": shape for name, shape in gru.items()},
    }
    arrays = _arrays(shapes, 2)

    class Net(hf.models.Model):
        def __init__(self) -> None:
            super().__init__()
            self.attend = hf.layers.MultiHeadAttention(2, 4)
            self.both = hf.layers.Bidirectional(hf.layers.LSTM(5, return_sequences=True))
            self.gru = hf.layers.GRU(3, return_sequences=True)

        def call(self, x: Any) -> Any:
            return self.gru(self.both(self.attend(x, x)))

    model = Net()
    x = RNG(3).normal(size=(2, 6, 8)).astype(np.float32)
    model(x)
    torch_files.write_old(tmp_path / "a.pth", arrays)
    model.load_weights(tmp_path / "a.pth")
    y = _torch_attention(x, _below(arrays, "attend."), 2)
    w = _below(arrays, "both.")
    y = np.concatenate([_torch_lstm(y, w), _torch_lstm(y[:, ::-1], w, "_reverse")[:, ::-1]], 2)
    y = _torch_gru(y, _below(arrays, "gru."))
    np.testing.assert_allclose(model(x).numpy(), y, rtol=1e-4, atol=1e-5)


def test_torch_transposed_convolution_embedding_and_norms(tmp_path: Path) -> None:
    shapes = {"up.weight": (2, 3, 2, 2), "up.bias": (3,), "norm.weight": (3,), "norm.bias": (3,)}
    arrays = _arrays(shapes, 4)
    model = hf.Sequential(
        [
            hf.Input((2, 3, 2)),
            hf.layers.Conv2DTranspose(3, 2, name="up"),
            hf.layers.LayerNormalization(epsilon=1e-5, name="norm"),
        ]
    )
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(hf.errors.ArgumentError, match="source"):
        model.load_weights(tmp_path / "a.npz")
    model.load_weights(tmp_path / "a.npz", source="torch")
    x = RNG(5).normal(size=(1, 2, 3, 2))
    y = np.zeros((1, 3, 4, 3)) + arrays["up.bias"]
    for i in range(2):
        for j in range(3):
            y[0, i : i + 2, j : j + 2] += np.einsum("c,cokl->klo", x[0, i, j], arrays["up.weight"])
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
    y = y * arrays["norm.weight"] + arrays["norm.bias"]
    np.testing.assert_allclose(model(x.astype(np.float32)).numpy(), y, rtol=1e-4, atol=1e-5)


def _square() -> hf.models.Model:
    return hf.Sequential([hf.Input((4,)), hf.layers.Dense(4, name="dense"), hf.layers.Dense(4, name="last")])


def test_a_square_weight_is_turned_by_its_rule_alone(tmp_path: Path) -> None:
    arrays = _arrays(
        {f"{part}.{name}": (4, 4) if name == "weight" else (4,) for part in "ab" for name in ("weight", "bias")}
    )
    hf.checkpoint.save_arrays(tmp_path / "a.safetensors", arrays)
    model = _square()
    before = [w.copy() for w in model.get_weights()]
    with pytest.raises(hf.errors.CheckpointError):
        model.load_weights(tmp_path / "a.safetensors", source="torch")
    assert all((a == b).all() for a, b in zip(before, model.get_weights()))
    report = model.load_weights(tmp_path / "a.safetensors", source="torch", rename={"a": "dense", "b": "last"})
    assert report.turned == {"layers.0.kernel": "transposed (1, 0)", "layers.1.kernel": "transposed (1, 0)"}
    assert (model.get_weights()[0] == arrays["a.weight"].T).all()


def test_what_does_not_fit_is_said_and_nothing_changes(tmp_path: Path) -> None:
    model = _square()
    before = [w.copy() for w in model.get_weights()]
    good = {"dense.weight": np.ones((4, 4), np.float32), "dense.bias": np.ones(4, np.float32)}
    cases: list[tuple[dict[str, np.ndarray], str]] = [
        ({**good, "last.weight": np.ones((5, 4), np.float32), "last.bias": np.ones(4, np.float32)}, "last.weight"),
        ({**good, "last.weight": np.ones((4, 4), np.int32), "last.bias": np.ones(4, np.float32)}, "int32"),
        (good, "missing"),
        (
            {**good, "last.weight": np.ones((4, 4), np.float32), "last.bias": good["dense.bias"], "more": np.ones(1)},
            "more",
        ),
        ({"x": np.ones(1)}, "x"),
    ]
    for arrays, text in cases:
        torch_files.write_new(tmp_path / "a.pt", arrays) if text != "int32" else hf.checkpoint.save_arrays(
            tmp_path / "a.pt", arrays
        )
        with pytest.raises(hf.errors.CheckpointError, match=text):
            model.load_weights(tmp_path / "a.pt", source="torch")
        assert all((a == b).all() for a, b in zip(before, model.get_weights()))
    torch_files.write_new(tmp_path / "a.pt", good)
    report = model.load_weights(tmp_path / "a.pt", skip_mismatch=True)
    assert report.restored == ["layers.0.bias", "layers.0.kernel"]


def _keras_group(file: Any, path: str, name: str, arrays: list[np.ndarray]) -> None:
    group = file.create_group(f"{path}/vars")
    group.attrs["name"] = name
    for number, array in enumerate(arrays):
        group[str(number)] = array


def _trained() -> tuple[hf.models.Model, list[np.ndarray]]:
    layers = hf.layers
    model = hf.Sequential(
        [
            hf.Input((5, 3)),
            layers.Bidirectional(layers.LSTM(2, return_sequences=True), name="both"),
            layers.BatchNormalization(name="norm"),
            layers.Dense(2, name="one"),
            layers.Dense(2, name="two"),
        ]
    )
    rng = RNG(7)
    return model, [rng.normal(size=w.shape).astype(np.float32) for w in model.get_weights()]


@pytest.mark.parametrize("named", [True, False])
def test_weights_files_of_keras_3(named: bool, tmp_path: Path) -> None:
    model, w = _trained()
    names = ["both", "norm", "one", "two"] if named else ["x", "y", "dense_7", "dense_8"]
    with h5py.File(tmp_path / "a.weights.h5", "w") as file:
        _keras_group(file, "layers/bidirectional", names[0], [])
        _keras_group(file, "layers/bidirectional/forward_layer/cell", "lstm_cell", w[:3])
        _keras_group(file, "layers/bidirectional/backward_layer/cell", "lstm_cell", w[3:6])
        _keras_group(file, "layers/batch_normalization", names[1], w[6:10])
        _keras_group(file, "layers/dense", names[2], w[10:12])
        _keras_group(file, "layers/dense_1", names[3], w[12:14])
        _keras_group(file, "optimizer", "adam", [np.zeros(()), np.ones(())])
    report = model.load_weights(tmp_path / "a.weights.h5")
    assert len(report.restored) == 14
    assert not report.unused
    assert all((a == b).all() for a, b in zip(model.get_weights(), w))


@pytest.mark.parametrize("suffix", ["", ":0"])
@pytest.mark.parametrize("named", [True, False])
def test_weights_files_of_keras_2(named: bool, suffix: str, tmp_path: Path) -> None:
    model, w = _trained()
    layers = {
        "both": [
            f"both/{d}_lstm/lstm_cell/{n}"
            for d in ("forward", "backward")
            for n in ("kernel", "recurrent_kernel", "bias")
        ],
        "norm": [f"norm/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")],
        "one": ["one/kernel", "one/bias"],
        "two": ["two/kernel", "two/bias"],
    }
    values = iter(w)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kept = [name if named else f"old_{name}" for name in layers]
        file.attrs["layer_names"] = np.array(kept, "S")
        for name, weights in zip(kept, layers.values()):
            group = file.create_group(name)
            group.attrs["weight_names"] = np.array([one + suffix for one in weights], "S")
            for one in weights:
                group[one + suffix] = next(values)
    model.load_weights(tmp_path / "a.h5")
    assert all((a == b).all() for a, b in zip(model.get_weights(), w))


def test_a_weight_alone_is_not_given_to_one_of_another_name(tmp_path: Path) -> None:
    model = hf.Sequential([hf.Input((3,)), hf.layers.LayerNormalization(center=False, name="norm")])
    for name in ("beta", "Variable"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.attrs["layer_names"] = np.array(["norm"], "S")
            file.create_group("norm").attrs["weight_names"] = np.array([f"norm/{name}:0"], "S")
            file[f"norm/norm/{name}:0"] = np.full(3, 5.0, np.float32)
    with pytest.raises(hf.errors.CheckpointError, match="gamma"):
        model.load_weights(tmp_path / "beta.h5")
    model.load_weights(tmp_path / "Variable.h5")
    assert model.get_weights()[0].tolist() == [5.0, 5.0, 5.0]


def test_checkpoints_of_tensorflow(tmp_path: Path) -> None:
    model, w = _trained()
    names = [
        f"layer_with_weights-0/{d}_layer/cell/{n}"
        for d in ("forward", "backward")
        for n in ("kernel", "recurrent_kernel", "bias")
    ]
    names += [f"layer_with_weights-1/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")]
    names += [f"layer_with_weights-{k}/{n}" for k in (2, 3) for n in ("kernel", "bias")]
    arrays = dict(zip(names, w)) | {"optimizer/iter": np.array(3), f"{names[0]}/.OPTIMIZER_SLOT/optimizer/m": w[0]}
    write_bundle(tmp_path / "ckpt-1", arrays)
    model.load_weights(tmp_path / "ckpt-1")
    assert all((a == b).all() for a, b in zip(model.get_weights(), w))
    folder = tmp_path / "saved" / "variables"
    folder.mkdir(parents=True)
    write_bundle(folder / "variables", arrays)
    assert len(_trained()[0].load_weights(tmp_path / "saved", source="tf").restored) == 14


def test_a_flatten_whose_input_is_not_known_is_warned_of(tmp_path: Path) -> None:
    model = hf.Sequential([hf.layers.Flatten(), hf.layers.Dense(2)])
    model(hf.ones((1, 2, 3)))
    torch_files.write_new(
        tmp_path / "a.pt", {"1.weight": np.ones((2, 6), np.float32), "1.bias": np.ones(2, np.float32)}
    )
    with pytest.warns(UserWarning, match=r"hf\.Input"):
        model.load_weights(tmp_path / "a.pt")


def test_models_without_variables_and_wrong_arguments(tmp_path: Path) -> None:
    torch_files.write_new(tmp_path / "a.pt", {"a": np.ones(1, np.float32)})
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: hf.Sequential([hf.layers.Dense(2)]).load_weights(tmp_path / "a.pt"), "no variables yet"),
        (lambda: _square().load_weights(tmp_path / "a.pt", source="jax"), "source is 'jax'"),
        (lambda: _square().load_weights(tmp_path / "a.pt", source="keras"), "a file of torch"),
        (lambda: _square().load_weights(tmp_path / "a.pt", rename=lambda name: "same"), "is of another model"),
    ]
    for call, text in wrong:
        with pytest.raises((hf.errors.ArgumentError, hf.errors.CheckpointError), match=text):
            call()
