"""Files that are no models: messages say what they are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core.file_kinds import kind_of


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("notes.txt", "nothing")
    return stream.getvalue()


def _npy() -> bytes:
    np.save(stream := io.BytesIO(), np.zeros(3))
    return stream.getvalue()


KINDS = {
    b"": "empty",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n": "a pointer of Git LFS, ",
    b"\x89PNG\r\n\x1a\n" + bytes(40): "a PNG image",
    b"\n <!DOCTYPE HTML>\n<html>404</html>": "a page of HTML or XML",
    ("überall " * 100).encode(): "text",
    ("x" + "ü" * 400).encode(): "text",  # whose character is cut where the reading ends
    gzip.compress(b"text"): "compressed by gzip",
    bz2.compress(b"text"): "compressed by bzip2",
    lzma.compress(b"text"): "compressed by xz",
    _zip(): "a zip archive",
    _npy(): "an array of NumPy's",
    bytes(257) + b"ustar\x0000": "a tar archive",
    b"\x1c\0\0\0TFL3" + bytes(40): "a TensorFlow Lite model",
    bytes(40): "",
    b"\xff\xfe\0\1": "",
    b"text\0": "",
    b"cut \xc3": "",
}


@pytest.mark.parametrize("content", KINDS, ids=[kind or "unknown" for kind in KINDS.values()])
def test_kinds(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    kind = kind_of(path)
    assert kind.startswith(KINDS[content]) and bool(kind) == bool(KINDS[content])
    for load in (hf.saved.load, hf.weights.read, hf.checkpoint.load_arrays):
        with pytest.raises(hf.errors.CheckpointError, match=kind if kind != "a zip archive" else "zip|holds no arrays"):
            load(path)


def test_what_cannot_be_read_has_no_kind(tmp_path: Path) -> None:
    assert kind_of(tmp_path) == kind_of(tmp_path / "none") == ""


def test_models_of_onnx_and_keras(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"<html></html>")
    with pytest.raises(hf.errors.CheckpointError, match="It is a page of HTML or XML"):
        hf.models.load_model(path)
    pytest.importorskip("onnx")
    with pytest.raises(hf.onnx.OnnxError, match=r"is no ONNX file. It is a page of HTML or XML\."):
        hf.onnx.load(path)
    path.write_bytes(b"")
    with pytest.raises(hf.onnx.OnnxError, match="it is empty"):
        hf.onnx.load(path)
