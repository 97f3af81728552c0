"""Vision transformers read the layouts of torchvision and Hugging Face, and give what a formula in float64 gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import applications, errors
from hybridflow.applications import building, vit
from tests.support import torch_files

SIZE = vit.Size(patch=4, depth=2, width=12, heads=3, inner=20)
PLACES = 1 + 2 * 3  # pictures are 8x12
EPSILONS = {"torchvision": 1e-6, "transformers": 1e-12}


def built(**options: Any) -> Any:
    request = {"include_top": True, "weights": None, "input_tensor": None, "input_shape": (8, 12, 3), "pooling": None}
    request |= {"classes": 5, "classifier_activation": None, "name": "small"}
    epsilon = options.pop("epsilon", None)
    return vit.network(building.Request(**{**request, **options}), SIZE, epsilon, "vit_small.pth")


def random_weights() -> dict[str, np.ndarray]:
    """By the parts of the formula: linear weights are [outputs, inputs], the convolution's [out, in, rows, columns]."""
    rng = np.random.default_rng(5)
    width, inner = SIZE.width, SIZE.inner
    shapes: dict[str, tuple[int, ...]] = {"class": (1, 1, width), "positions": (1, PLACES, width)}
    pairs: dict[str, tuple[int, ...]] = {"patches": (width, 3, 4, 4), "norm": (width,), "head": (5, width)}
    for block in range(SIZE.depth):
        square = dict.fromkeys(("query", "key", "value", "out"), (width, width))
        parts = {**square, "up": (inner, width), "down": (width, inner), "norm_1": (width,), "norm_2": (width,)}
        pairs |= {f"{block}.{part}": shape for part, shape in parts.items()}
    for name, shape in pairs.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def as_torchvision(w: dict[str, np.ndarray], old: bool = False) -> dict[str, np.ndarray]:
    dense = ("mlp.linear_1", "mlp.linear_2") if old else ("mlp.0", "mlp.3")
    names = {"norm": "encoder.ln", "head": "heads.head", "patches": "conv_proj"}
    result = {"class_token": w["class"], "encoder.pos_embedding": w["positions"]}
    for block in range(SIZE.depth):
        start = f"encoder.layers.encoder_layer_{block}"
        parts = {"out": "self_attention.out_proj", "up": dense[0], "down": dense[1], "norm_1": "ln_1", "norm_2": "ln_2"}
        names |= {f"{block}.{part}": f"{start}.{name}" for part, name in parts.items()}
        for kind in ("weight", "bias"):
            joined = np.concatenate([w[f"{block}.{part}.{kind}"] for part in ("query", "key", "value")])
            result[f"{start}.self_attention.in_proj_{kind}"] = joined
    return result | {
        f"{there}.{kind}": w[f"{here}.{kind}"] for here, there in names.items() for kind in ("weight", "bias")
    }


def as_transformers(w: dict[str, np.ndarray], start: str = "vit.") -> dict[str, np.ndarray]:
    names = {"norm": f"{start}layernorm", "patches": f"{start}embeddings.patch_embeddings.projection"}
    result = {f"{start}embeddings.cls_token": w["class"], f"{start}embeddings.position_embeddings": w["positions"]}
    if start:
        names["head"] = "classifier"
    else:  # a model without a classifier, which has a pooler
        result |= {"pooler.dense.weight": np.ones((3, 3), np.float32), "pooler.dense.bias": np.ones(3, np.float32)}
    for block in range(SIZE.depth):
        parts = {part: f"attention.attention.{part}" for part in ("query", "key", "value")}
        parts |= {"out": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense"}
        parts |= {"norm_1": "layernorm_before", "norm_2": "layernorm_after"}
        names |= {f"{block}.{part}": f"{start}encoder.layer.{block}.{name}" for part, name in parts.items()}
    return result | {
        f"{there}.{kind}": w[f"{here}.{kind}"] for here, there in names.items() for kind in ("weight", "bias")
    }


def tokens(w: dict[str, np.ndarray], x: np.ndarray, epsilon: float) -> np.ndarray:
    """What the last normalization gives, in float64, for pictures [batch, rows, columns, channels]."""
    w = {name: array.astype(np.float64) for name, array in w.items()}

    def linear(y: np.ndarray, name: str) -> np.ndarray:
        return y @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(y: np.ndarray, name: str) -> np.ndarray:
        centred = y - y.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        return centred / scale * w[f"{name}.weight"] + w[f"{name}.bias"]

    def heads(y: np.ndarray) -> np.ndarray:
        return y.reshape(*y.shape[:2], SIZE.heads, -1).swapaxes(1, 2)

    batch, rows, columns, _ = x.shape
    cut = x.astype(np.float64).reshape(batch, rows // 4, 4, columns // 4, 4, 3)
    patches = np.einsum("nrpcqi,oipq->nrco", cut, w["patches.weight"]) + w["patches.bias"]
    first = np.broadcast_to(w["class"], (batch, 1, SIZE.width))
    y = np.concatenate([first, patches.reshape(batch, -1, SIZE.width)], 1) + w["positions"]
    for block in range(SIZE.depth):
        z = norm(y, f"{block}.norm_1")
        q, k, v = (heads(linear(z, f"{block}.{part}")) for part in ("query", "key", "value"))
        powers = np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
        mixed = (powers / powers.sum(-1, keepdims=True)) @ v
        y = y + linear(mixed.swapaxes(1, 2).reshape(y.shape), f"{block}.out")
        z = linear(norm(y, f"{block}.norm_2"), f"{block}.up")
        y = y + linear(0.5 * z * (1 + np.vectorize(math.erf)(z / math.sqrt(2))), f"{block}.down")
    return norm(y, "norm")


def pictures(batch: int) -> np.ndarray:
    return np.random.default_rng(batch).normal(size=(batch, 8, 12, 3)).astype(np.float32)


def written(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".safetensors":
        hf.checkpoint.save_arrays(path, arrays)
    else:
        torch_files.write_new(path, arrays)
    return path


LAYOUTS: dict[str, Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]] = {
    "torchvision.pth": as_torchvision,
    "torchvision.safetensors": lambda w: as_torchvision(w, old=True),
    "transformers.bin": as_transformers,
    "transformers.safetensors": as_transformers,
}


@pytest.mark.parametrize("file", LAYOUTS)
def test_published_layouts(file: str, tmp_path: Path) -> None:
    w = random_weights()
    noise = np.random.default_rng(1).normal(0, 1e-3, SIZE.width)
    w["positions"][0, 2] = noise - w["patches.bias"]  # a token of little variance, where the epsilon counts
    path = written(tmp_path / file, LAYOUTS[file](w))
    x = pictures(2)
    x[1] = 0
    epsilon = EPSILONS[file.partition(".")[0]]
    expected = tokens(w, x, epsilon)[:, 0] @ w["head.weight"].astype(np.float64).T + w["head.bias"]
    model = built(weights=path)
    np.testing.assert_allclose(model(x).numpy(), expected, rtol=1e-4, atol=1e-4)
    later = built(epsilon=epsilon)
    report = later.load_weights(path, source="torch")
    assert not report.missing
    assert not report.unused
    assert report.turned["layers.4.query_kernel"].endswith("by heads")
    np.testing.assert_array_equal(later(x).numpy(), model(x).numpy())
    if file == "transformers.bin":
        np.testing.assert_array_equal(hf.function(model)(x).numpy(), model(x).numpy())
        other = built(weights=path, epsilon=EPSILONS["torchvision"])
        assert np.abs(other(x).numpy() - expected).max() > 1e-3


def test_without_a_classifier(tmp_path: Path) -> None:
    w = random_weights()
    expected = tokens(w, pictures(3), 1e-12)
    for name, arrays in (("a", as_transformers(w)), ("b", as_transformers(w, ""))):
        path = written(tmp_path / f"{name}.safetensors", arrays)
        for pooling, end in ((None, expected), ("avg", expected.mean(1)), ("max", expected.max(1))):
            model = built(include_top=False, weights=path, pooling=pooling)
            np.testing.assert_allclose(model(pictures(3)).numpy(), end, rtol=1e-4, atol=1e-4)
    path = written(tmp_path / "c.pth", as_torchvision(w))
    np.testing.assert_allclose(
        built(include_top=False, weights=path, epsilon=1e-12)(pictures(3)).numpy(), expected, rtol=1e-4, atol=1e-4
    )
    with pytest.raises(
        errors.CheckpointError, match=r"missing in the file: layers\.19\."
    ):  # a classifier that the file lacks
        built(weights=written(tmp_path / "d.safetensors", as_transformers(w, "")))


def test_files_of_its_own(tmp_path: Path) -> None:
    model = built()
    model.save(tmp_path / "m.keras")
    model.save_weights(tmp_path / "m.safetensors")
    x = pictures(1)
    for again in (hf.models.load_model(tmp_path / "m.keras"), built(weights=tmp_path / "m.safetensors")):
        np.testing.assert_array_equal(again(x).numpy(), model(x).numpy())


def test_published_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(
        errors.ArgumentError, match=r"hub.checkpoints.vit_b_16-c867db91\.pth, and nothing is downloaded"
    ):
        applications.ViTB16()
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    w = {**random_weights(), "head.weight": np.ones((1000, 12), np.float32), "head.bias": np.ones(1000, np.float32)}
    written(tmp_path / "hub" / "checkpoints" / "vit_small.pth", as_torchvision(w))
    assert built(weights="imagenet", classes=1000).layers[-1].kernel.numpy().min() == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"input_shape": (8, 10, 3)}, "whole patches of 4x4, not"),
        ({"input_shape": (None, 8, 3)}, "fixed input_shape"),
        ({"input_shape": (None, 8, 3), "include_top": False}, "whole patches of 4x4"),
        ({"input_shape": (0, 8, 3)}, "at least 4x4"),
        ({"pooling": "token"}, "pooling is 'token'"),
        ({"weights": "nowhere.pth"}, "there is no file nowhere.pth"),
    ],
)
def test_what_does_not_fit(options: dict[str, Any], match: str) -> None:
    with pytest.raises(errors.ArgumentError, match=match):
        built(**options)


def test_weights_of_other_sizes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pth", as_torchvision(random_weights()))
    with pytest.raises(errors.CheckpointError, match=r"tokens\.positions of .* is \(1, 7, 12\)"):
        built(weights=path, input_shape=(8, 8, 3))
    with pytest.raises(errors.CheckpointError, match="of another model"):
        built().load_weights(written(tmp_path / "b.pth", {"other.weight": np.ones(3, np.float32)}), skip_mismatch=False)
