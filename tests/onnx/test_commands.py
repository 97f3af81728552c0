"""``hybridflow onnx``: models of ONNX files in a shell."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hybridflow.cli import commands

onnx = pytest.importorskip("onnx")

from tests.support.onnx_files import model_of, saved  # noqa: E402

pytestmark = pytest.mark.code
F32 = np.float32


@pytest.fixture
def model(tmp_path: Path) -> str:
    nodes = [onnx.helper.make_node("Sub", ["x:0", "file"], ["file_1/d"]), onnx.helper.make_node("Neg", ["file"], ["n"])]
    return saved(model_of(nodes, {"x:0": (F32, ["batch", 2]), "file": (F32, [2])}, ["file_1/d", "n"]), tmp_path)


def written(path: Path, **arrays: np.ndarray) -> str:
    """np.savez has no array named "file"."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array)
    return str(path)


def test_arrays_by_the_names_of_inputs(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = np.array([[1, 2], [3, np.nan], [-0.0, 5]], F32), np.array([1, 0.5], F32)
    given = written(tmp_path / "in.npz", **{"file": y, "x:0": x})  # in any order
    result = str(tmp_path / "out.npz")
    assert commands.run(["onnx", "run", model, given, "-o", result, "--runs", "1"]) == 0
    assert f"{result}: file_1/d [3, 2]" in capsys.readouterr().out
    with np.load(result) as found:
        np.testing.assert_array_equal(found["file_1/d"], x - y)
        np.testing.assert_array_equal(found["n"], -y)
    assert commands.run(["onnx", "run", model, given, "--json", "--runs", "1"]) == 0
    first = json.loads(capsys.readouterr().out)["results"][0]
    assert first == {"name": "file_1/d", "shape": [3, 2], "dtype": "float32"}


def test_random_numbers(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["onnx", "run", model, "--shape", "x:0=5x2", "--runs", "1"]) == 0
    assert "f32[5,2]" in capsys.readouterr().out.replace("float32", "f32").replace("(5, 2)", "[5,2]")


def test_files_that_do_not_fit(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros((3, 2), F32)
    np.save(tmp_path / "one.npy", x)
    (tmp_path / "text.npz").write_text("x,y\n1,2\n")
    (tmp_path / "cut.npz").write_bytes(Path(written(tmp_path / "whole.npz", x=x, file=x[0])).read_bytes()[:-40])
    np.savez(tmp_path / "objects.npz", **{"x:0": np.array([{}]), "y": x}, allow_pickle=True)
    for name, text in (
        ("one.npy", "but an array of NumPy's"),
        ("text.npz", "text.npz is none of safetensors"),
        ("cut.npz", "cut.npz cannot be read"),
        ("objects.npz", "objects.npz cannot be read"),
        ("whole.npz", "takes x:0: "),
        ("none.npz", "none.npz"),
    ):
        assert commands.run(["onnx", "run", model, str(tmp_path / name)]) != 0, name
        assert text in capsys.readouterr().err, name
    whole = str(tmp_path / "whole.npz")
    assert commands.run(["onnx", "run", model, whole, "-o", "out.csv"]) != 0
    assert "end it in .npz" in capsys.readouterr().err
    nowhere = str(tmp_path / "nowhere" / "out.npz")
    assert commands.run(["onnx", "run", str(tmp_path / "none.onnx"), "-o", nowhere]) != 0
    assert "nowhere/out.npz cannot be written" in capsys.readouterr().err  # before anything else is looked at
    assert commands.run(["onnx", "run", model, whole, "-o", str(tmp_path / "out.npz")]) != 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".hybridflow", "out"))]
    assert commands.run(["onnx", "run", model, whole, "--shape", "x:0=2x2"]) != 0
    assert "--shape is for random numbers" in capsys.readouterr().err
