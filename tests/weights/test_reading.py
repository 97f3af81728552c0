"""Weights of other programs: every kind of file, as its program writes it; damaged and hostile ones."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hybridflow as hf
from hybridflow.data.checksums import crc32c, masked
from hybridflow.weights import arrays, torch_files as reader
from tests.support import torch_files

ARRAYS = {
    "block.kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "block.bias": np.array([1.5, -0.0, np.nan]),
    "steps": np.array(7),
    "empty": np.zeros((0, 4), np.float32),
}


def _npz(path: Path) -> None:
    np.savez_compressed(path, **ARRAYS)  # type: ignore[arg-type]


def _safetensors(path: Path) -> None:
    hf.checkpoint.save_arrays(path, ARRAYS)


def _hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name, array in ARRAYS.items():
            file[name.replace(".", "/")] = array


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _message(*fields: tuple[int, Any]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        elif isinstance(value, np.uint32):
            out += _varint(number << 3 | 5) + struct.pack("<I", value)
        else:
            out += _varint(number << 3 | 2) + _varint(len(value)) + value
    return out


def _block(rows: list[tuple[bytes, bytes]]) -> bytes:
    """A block of LevelDB's, whose keys share their beginnings."""
    out, before = b"", b""
    for key, value in rows:
        shared = next((n for n, (a, b) in enumerate(zip(key, before)) if a != b), min(len(key), len(before)))
        out += _varint(shared) + _varint(len(key) - shared) + _varint(len(value)) + key[shared:] + value
        before = key
    out += struct.pack("<II", 0, 1)
    return out + b"\0" + struct.pack("<I", masked(crc32c(out + b"\0")))


def write_bundle(prefix: Path, arrays: dict[str, np.ndarray]) -> None:
    """A checkpoint as TensorFlow writes it."""
    kinds = {"float32": 1, "float64": 2, "int64": 9}
    rows, content = [(b"", _message((1, 1)))], b""
    for name, array in sorted(arrays.items()):
        data = array.tobytes()
        dims = b"".join(_message((2, _message((1, extent)))) for extent in array.shape)
        total = np.uint32(masked(crc32c(data)))
        value = _message((1, kinds[array.dtype.name]), (2, dims), (4, len(content)), (5, len(data)), (6, total))
        rows.append((f"{name}/.ATTRIBUTES/VARIABLE_VALUE".encode(), value))
        content += data
    data = _block(rows)
    index = _block([(b"\xff", _varint(0) + _varint(len(data) - 5))])
    meta = _block([])
    handles = _varint(len(data) + len(index)) + _varint(len(meta) - 5) + _varint(len(data)) + _varint(len(index) - 5)
    footer = handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    prefix.with_name(prefix.name + ".index").write_bytes(data + index + meta + footer)
    prefix.with_name(prefix.name + ".data-00000-of-00001").write_bytes(content)


def _bundle(path: Path) -> None:
    write_bundle(path, {name.replace(".", "/"): array for name, array in ARRAYS.items()})


KINDS = {
    "npz": _npz,
    "safetensors": _safetensors,
    "keras": _hdf5,
    "torch": lambda path: torch_files.write_new(path, ARRAYS),
    "torch before 1.6": lambda path: torch_files.write_old(path, ARRAYS),
    "tensorflow": _bundle,
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_those_that_were_written(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    KINDS[kind](path if kind != "npz" else path.with_suffix(".npz"))
    weights = hf.weights.read(path if kind != "npz" else path.with_suffix(".npz"))
    assert weights.format == kind.split()[0]
    assert {name.replace("/", ".") for name in weights} == set(ARRAYS)
    for name in weights:
        expected = ARRAYS[name.replace("/", ".")]
        assert (weights.shape(name), weights.dtype(name)) == (expected.shape, expected.dtype)
        assert weights.numpy(name).tobytes() == expected.tobytes()
        assert np.asarray(weights[name]).tobytes() == expected.tobytes()


def test_views_of_one_storage_and_nested_dicts_of_torch(tmp_path: Path) -> None:
    big = np.arange(12, dtype=np.float32).reshape(3, 4)
    torch_files.write_new(tmp_path / "a.pt", {"model": {"turned": big.T, "rows": [big, big[:2]]}, "epoch": 3})
    weights = hf.weights.read(tmp_path / "a.pt")
    assert list(weights) == ["model.turned", "model.rows.0", "model.rows.1"]
    assert weights.numpy("model.turned").tolist() == big.T.tolist()
    assert weights.numpy("model.rows.1").tolist() == big[:2].tolist()


def test_safetensors_in_several_files(tmp_path: Path) -> None:
    hf.checkpoint.save_arrays(tmp_path / "model-1.safetensors", {"a": np.ones(2, np.float32)})
    hf.checkpoint.save_arrays(tmp_path / "model-2.safetensors", {"b": np.zeros(3)})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}))
    assert list(hf.weights.read(index)) == list(hf.weights.read(tmp_path)) == ["a", "b"]
    for place in ("../model-1.safetensors", "/etc/passwd", "", "..", 3):
        index.write_text(json.dumps({"weight_map": {"a": place}}))
        with pytest.raises(hf.errors.CheckpointError, match=r"model\.safetensors\.index\.json"):
            hf.weights.read(index)


class _Evil:
    def __init__(self, function: Any, args: tuple[Any, ...]) -> None:
        self._call = function, args

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize("function", [print, eval, io.BytesIO, np.zeros, OrderedDict.fromkeys])
def test_pickles_that_name_anything_else_are_refused(function: Any, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("x/data.pkl", pickle.dumps({"a": _Evil(function, ("1",))}, protocol=2))
    with pytest.raises(hf.errors.CheckpointError, match="which is not read, as that could run code"):
        hf.weights.read(tmp_path / "a.pt")


def test_programs_of_torchscript_are_said_to_be_such_and_not_damaged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02c__torch__.net\nNet\n)\x81}b.")
    with pytest.raises(hf.errors.CheckpointError, match=r"program of TorchScript, __torch__\.net\.Net") as caught:
        hf.weights.read(tmp_path / "a.pt")
    assert "damaged" not in str(caught.value)


HOSTILE = {
    "sets attributes of what it names": b"\x80\x02ccollections\nOrderedDict\n}U\x01aK\x01sb.",
    "refers to itself": b"\x80\x02}q\0U\x01ah\0s.",
    "doubles": b"\x80\x02]q\0K\x01a" + b"".join(b"]q%c(h%ch%ce" % (n, n - 1, n - 1) for n in range(1, 40)) + b".",
    "storage of a number": b"\x80\x02}U\x01aK\x05Qs.",
    "no tensor": b"\x80\x02}U\x01aK\x05s.",
    "cut off": b"\x80\x02}U\x01a",
    "long": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "longer than any memory": b"\x80\x04\x8e" + b"\xff" * 6 + b"\0\0abc.",
    "an array of bytes that is not there": b"\x80\x05\x96\0\0\0\0\x40\0\0\0.",
    "remembers as the last of very many": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "hashes what is nested deep": b"\x80\x02})" + b"\x85" * 1_000_000 + b"Ns.",
    "hashes what is nested deep in pairs": b"\x80\x02ccollections\nOrderedDict\n]]()"
    + b"\x85" * 1_000_000
    + b"Neaa\x85R.",
    "hashes what is nested deep in a set": b"\x80\x04\x8f()" + b"\x85" * 1_000_000 + b"\x90.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("x/data.pkl", HOSTILE[name])
    with pytest.raises(hf.errors.CheckpointError, match=r"a\.pt"):
        hf.weights.read(tmp_path / "a.pt")


TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x04tQ%s"
    b"K\0K\x02\x85K\x01\x85tR%s"
)


def test_pickles_change_nothing_that_they_refer_to(tmp_path: Path) -> None:
    def read(storage: bytes, tensor: bytes, around: bytes = b"") -> hf.weights.Weights:
        with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
            archive.writestr(
                "x/data.pkl",
                b"\x80\x02ccollections\nOrderedDict\n)RU\x01a" + TENSOR % (storage, tensor) + b"s" + around + b".",
            )
            archive.writestr("x/data/0", np.arange(4, dtype=np.float32).tobytes())
        return hf.weights.read(tmp_path / "a.pt")

    assert read(b"", b"").numpy("a").tolist() == [0, 1]
    with pytest.raises(hf.errors.CheckpointError, match="would change"):
        read(b"N}U\x05countJ\0\0\0\x7fs\x86b", b"")
    with pytest.raises(hf.errors.CheckpointError, match="would change"):
        read(b"", b"N}U\x05entryNs\x86b")
    assert list(read(b"", b"", b"}U\x05itemsNsb")) == ["a"]  # PyTorch sets attributes of state dicts


@pytest.mark.parametrize(
    "offset, size, stride",
    [
        (1, (4,), (1,)),
        (0, (2, 3), (1 << 60, 1)),
        (0, (1 << 62,), (0,)),
        (-1, (2,), (1,)),
        (3, (2,), (-1,)),
        (0, (2, 2), (1,)),
        (5, (0,), (1,)),
    ],
)
def test_tensors_that_leave_their_storage(offset: int, size: Any, stride: Any) -> None:
    storage = reader._Storage(np.dtype(np.float32), 4, lambda: bytes(16))
    with pytest.raises(pickle.UnpicklingError, match=r"storage|shape"):
        reader._Tensor(storage, offset, size, stride)
    assert reader._Tensor(storage, 3, (2, 1), (0, 9)).entry.read().shape == (2, 1)


def test_hdf5_files_do_not_lead_out_of_themselves(tmp_path: Path) -> None:
    other = tmp_path / "secret.bin"
    other.write_bytes(bytes(range(16)))
    makers = {
        "external link": lambda f: f.__setitem__("a", h5py.ExternalLink(str(other), "/x")),
        "soft link": lambda f: f.__setitem__("a", h5py.SoftLink("/a")),
        "external elements": lambda f: f.create_dataset("a", (4,), "f4", external=[(str(other), 0, 16)]),
        "more than there is": lambda f: f.create_dataset("a", (1 << 40,), "f4", chunks=(1 << 16,)),
        "objects": lambda f: f.create_dataset("a", (2,), h5py.string_dtype()),
        "weights elsewhere": lambda f: f.__setitem__("model_weights", h5py.ExternalLink(str(other), "/")),
    }
    for name, make in makers.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            make(file)
        with pytest.raises(hf.errors.CheckpointError, match=r"\.h5"):
            hf.weights.read(tmp_path / f"{name}.h5")


def test_names_of_few_bytes_do_not_become_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_ARRAYS", 1000)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file
        for _ in range(40):  # 2**40 groups by their paths
            group.create_group("a")
            group["b"] = group["a"]
            group = group["a"]
    with pytest.raises(hf.errors.CheckpointError, match="more than 1000"):
        hf.weights.read(tmp_path / "a.h5")
    write_bundle(tmp_path / "b", {f"{'a' * 5000}{number}": np.ones(1) for number in range(3)})
    with pytest.raises(hf.errors.CheckpointError, match="damaged"):
        hf.weights.read(tmp_path / "b")


def test_blocks_of_a_bundle_do_not_overlap(tmp_path: Path) -> None:
    data = _block([(b"a", _message((1, 7), (12, bytes(1000))))])  # texts, which are left out
    for count in (1, 9):
        index = _block([(bytes([number]), _varint(0) + _varint(len(data) - 5)) for number in range(count)])
        handles = _varint(0) + _varint(0) + _varint(len(data)) + _varint(len(index) - 5)
        footer = handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
        (tmp_path / "a.index").write_bytes(data + index + footer)
        if count == 1:
            assert list(hf.weights.read(tmp_path / "a")) == []
            continue
        with pytest.raises(hf.errors.CheckpointError, match="overlap"):
            hf.weights.read(tmp_path / "a")


def test_archives_that_unpack_to_much_more_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"")
    content = bytearray((tmp_path / "a.npz").read_bytes())
    place = content.index(b"PK\x01\x02") + 24  # the size in the central directory
    content[place : place + 4] = struct.pack("<I", 0xFFFFFF00)
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(hf.errors.CheckpointError, match="unpacks to"):
        hf.weights.read(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_errors_that_name_the_file_or_are_read(kind: str, tmp_path: Path) -> None:
    if kind == "keras":
        pytest.skip("HDF5's own library reads these: see test_damaged_hdf5.py")
    path = tmp_path / ("weights.npz" if kind == "npz" else "weights")
    KINDS[kind](path)
    damaged = path if kind != "tensorflow" else path.with_name("weights.index")
    whole = damaged.read_bytes()
    rng = np.random.default_rng(len(kind))
    for number in range(200):
        content = bytearray(whole)
        if number % 3 == 0:
            del content[rng.integers(len(content)) :]
        else:
            for place in rng.integers(0, len(content), 1 + number % 4):
                content[place] = rng.integers(256)
        damaged.write_bytes(content)
        try:
            weights = hf.weights.read(path)
            for name in weights:
                weights.numpy(name)
        except (hf.errors.CheckpointError, FileNotFoundError):
            continue


def test_damage_that_hdf5_finds_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "weights.h5"
    _hdf5(path)
    whole = path.read_bytes()
    assert whole.count(b"SNOD")
    for content in (whole[:-1], whole[:100], whole.replace(b"SNOD", b"SNOT")):
        path.write_bytes(content)
        for read in (hf.weights.read, hf.Sequential([hf.Input((2,)), hf.layers.Dense(1)]).load_weights):
            with pytest.raises(hf.errors.CheckpointError, match=r"weights\.h5.*damaged"):
                read(path)


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words")
    for path in (tmp_path / "a.txt", tmp_path):
        with pytest.raises(hf.errors.CheckpointError):
            hf.weights.read(path)
    with pytest.raises(FileNotFoundError):
        hf.weights.read(tmp_path / "nothing.pt")
