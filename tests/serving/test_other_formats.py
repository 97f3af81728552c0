"""ONNX and Keras models where commands and servers take a saved file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.cli import commands
from hybridflow.serving import endpoint

pytestmark = pytest.mark.code
pytest.importorskip("onnx")
pytest.importorskip("h5py")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[hf.Sequential, Path]:
    folder = tmp_path_factory.mktemp("models")
    layers: list[Any] = [hf.Input((3,)), hf.layers.Dense(2)]
    model = hf.Sequential(layers)
    hf.onnx.save(model, folder / "line.onnx")
    model.save(folder / "line.keras")
    return model, folder


@pytest.mark.parametrize("kind", ["onnx", "keras"])
def test_a_server_has_the_names_of_the_file(files: tuple[hf.Sequential, Path], kind: str) -> None:
    model, folder = files
    served = endpoint.load(str(folder / f"line.{kind}"))
    names = [port.name for port in (*served.inputs, *served.outputs)]
    assert names == (["inputs", "output"] if kind == "onnx" else ["inputs", "output_0"])
    assert served.is_batched
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(served([x])[0], model(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["onnx", "keras"])
def test_commands_take_them(
    files: tuple[hf.Sequential, Path], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(files[1] / f"line.{kind}")
    assert commands.run(["compile", path, "-o", str(tmp_path), "--json"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["files"]["object"]).stat().st_size


def test_a_server_calls_functions_of_any_parameters() -> None:
    spec = hf.TensorSpec((None, 2), hf.float32)

    @hf.function
    def total(*parts: hf.Tensor, scale: hf.Tensor) -> hf.Tensor:
        return (parts[0] + parts[1]) * scale

    total.get_concrete_function(spec, spec, scale=spec)
    served = endpoint.of_function(total)
    ones = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(served([ones, ones, 3 * ones])[0], 6 * ones)
