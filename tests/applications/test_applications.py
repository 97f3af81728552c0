"""Architectures have the layers and weights of Keras's, in its order: digests of what Keras 3.15 has are kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import applications, errors
from hybridflow.weights.keras_layout import in_keras_order

# For pictures of so many rows, with 10 classes or as the last column says: how many arrays of weights there are, and
# the beginning of the SHA-256 of their lines "layer weight shape" in Keras's order.
KEPT = {
    line.split()[0]: line.split()[1:]
    for line in (Path(__file__).parent / "keras_weights.txt").read_text(encoding="utf-8").splitlines()
}


def built(name: str, **options: Any) -> Any:
    rows = int(KEPT[name][0])
    options = {"weights": None, "classes": 10, "input_shape": (rows, rows, 3), **options}
    return getattr(applications, name)(include_top=KEPT[name][3] == "top", **options)


def lines_of(model: Any) -> list[str]:
    lines = []
    for _, one in in_keras_order(model):
        for layer in getattr(one, "layers", [one]):
            for path, variable in layer._named_weights().items():
                shape = ",".join(map(str, variable.shape))
                lines.append(f"{layer.name} {path.rpartition('.')[2].removeprefix('adapt_')} {shape}")
    return lines


@pytest.mark.parametrize("name", KEPT)
def test_names_and_shapes_are_keras_s(name: str) -> None:
    lines = lines_of(built(name))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    assert [str(len(lines)), digest] == KEPT[name][1:3], "\n".join(lines[:20])


def as_earlier(name: str) -> str:
    """A layer's name as files have it that were written by an earlier Keras."""
    return name.replace("_bn", "/BatchNorm").replace("expanded_conv_", "expanded_conv/", 1)


def test_files_are_read_by_names(tmp_path: Path) -> None:
    model = built("MobileNetV3Small")
    rng = np.random.default_rng(3)
    with h5py.File(tmp_path / "m.h5", "w") as file:
        layers = [layer for layer in model.layers if layer.variables]
        file.attrs["layer_names"] = [as_earlier(layer.name).encode() for layer in reversed(layers)]
        for layer in layers:
            group = file.create_group(as_earlier(layer.name))
            names = [f"{layer.name}/{path}:0" for path in layer._named_weights()]
            group.attrs["weight_names"] = [name.encode() for name in names]
            for name, variable in zip(names, layer._named_weights().values()):
                group[name] = rng.normal(size=variable.shape).astype(np.float32)
    report = model.load_weights(tmp_path / "m.h5")
    assert not report.missing
    assert not report.unused
    again = built("MobileNetV3Small", weights=tmp_path / "m.h5")
    for one, two in zip(model.variables, again.variables):
        np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_published_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(errors.ArgumentError, match=r"models.mobilenet_v2_weights_tf_dim_ordering.*_1.0_224_no_top.h5"):
        applications.MobileNetV2(include_top=False)
    with pytest.raises(errors.ArgumentError, match=r"there is no .*imagenet_class_index.json"):
        applications.decode_predictions(np.zeros((1, 1000)))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "imagenet_class_index.json").write_text('{"0": ["n0"]}')
    with pytest.raises(errors.DataError, match="has no 1000 classes"):
        applications.decode_predictions(np.zeros((1, 1000)))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"weights": 3}, "weights is 3"),
        ({"weights": "imagenet", "classes": 7}, "1000 classes"),
        ({"weights": "nowhere.h5"}, "there is no file nowhere.h5"),
        ({"pooling": "sum"}, "pooling is 'sum'"),
        ({"input_shape": (31, 64, 3)}, "at least 32x32"),
        ({"input_shape": (64, 64)}, "height, width and channels"),
        ({"input_shape": 64}, "height, width and channels"),
        ({"input_shape": (None, 64, 3)}, "fixed input_shape"),
        ({"input_tensor": np.zeros((1, 32, 32, 3))}, "input_tensor is made by"),
        ({"weights": "x.h5", "classifier_activation": "relu"}, "None or 'softmax'"),
    ],
)
def test_what_does_not_fit(options: dict[str, Any], match: str) -> None:
    with pytest.raises(errors.ArgumentError, match=match):
        applications.MobileNetV2(**{"weights": None, **options})


def test_pictures_are_scaled() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (2, 3, 4, 3), dtype=np.uint8)
    wide = x.astype(np.float64)
    expected = {
        "tf": wide / 127.5 - 1,
        "caffe": wide[..., ::-1] - [103.939, 116.779, 123.68],
        "torch": (wide / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
    }
    for mode, result in expected.items():
        found = applications.preprocess_input(x, mode=mode)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, result, rtol=1e-5, atol=1e-5)
        turned = applications.preprocess_input(hf.asarray(x.transpose(0, 3, 1, 2)), "channels_first", mode)
        np.testing.assert_allclose(turned.numpy().transpose(0, 2, 3, 1), result, rtol=1e-5, atol=1e-5)
    with pytest.raises(errors.ShapeError):
        applications.preprocess_input(np.zeros((1, 4, 4, 1)))
    with pytest.raises(errors.ArgumentError):
        applications.preprocess_input(x, mode="other")


def test_names_of_classes(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    path.write_text(json.dumps({str(n): [f"n{n:04}", f"kind {n}"] for n in range(1000)}))
    rows = np.zeros((2, 1000))
    rows[0, [3, 5]], rows[1, 999] = (0.25, 0.75), 1.0
    found = applications.decode_predictions(rows, 2, path)
    assert found[0] == [("n0005", "kind 5", 0.75), ("n0003", "kind 3", 0.25)]
    assert found[1][0] == ("n0999", "kind 999", 1.0)
    with pytest.raises(errors.ShapeError):
        applications.decode_predictions(np.zeros((1, 10)))
