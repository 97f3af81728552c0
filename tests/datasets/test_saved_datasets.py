"""Datasets in folders: what is saved is what is loaded, and damage is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.data import Dataset

pytestmark = pytest.mark.code

ROWS = np.random.default_rng(4).standard_normal((7, 3)).astype("f4")


def data() -> Dataset:
    """Elements of several kinds, in tuples and dicts."""
    texts = [f"text {n}" for n in range(7)]
    return Dataset.from_tensor_slices(({"x": ROWS, "text": texts}, np.arange(7, dtype="u1")))


def listed(found: Any) -> list[Any]:
    return [(x["x"].tolist(), x["text"], y.item(), str(y.dtype)) for x, y in found]


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_what_is_saved_is_loaded(tmp_path: Path, compression: str | None) -> None:
    data().save(tmp_path / "kept", compression)
    found = Dataset.load(tmp_path / "kept")
    assert listed(found) == listed(found) == listed(data())
    assert (len(found), found.element_spec) == (7, data().element_spec)
    elements = iter(found)
    next(elements), next(elements)
    assert listed(iter(found).restore(elements.state())) == listed(data().skip(2))


def test_extents_that_differ_are_open(tmp_path: Path) -> None:
    Dataset.range(5).batch(2).save(tmp_path)
    found = Dataset.load(tmp_path, element_spec=hf.TensorSpec((None,), "int64"))
    assert (found.element_spec.shape, [x.tolist() for x in found]) == ((None,), [[0, 1], [2, 3], [4]])
    with pytest.raises(errors.ShapeError):
        Dataset.load(tmp_path, element_spec=hf.TensorSpec((None,), "int32"))


def test_shards_are_files(tmp_path: Path) -> None:
    Dataset.range(6).save(tmp_path, shard_func=lambda x: x % 2)
    assert len(list(tmp_path.glob("*.records"))) == 2
    assert [x.item() for x in Dataset.load(tmp_path)] == [0, 2, 4, 1, 3, 5]
    by_turns = Dataset.load(tmp_path, reader_func=lambda parts: parts.interleave(lambda part: part, cycle_length=2))
    assert [x.item() for x in by_turns] == [0, 1, 2, 3, 4, 5]


def test_saving_replaces_what_is_there_when_it_is_whole(tmp_path: Path) -> None:
    Dataset.range(3).save(tmp_path)

    def fails(x: Any) -> Any:
        return 1 // (3 - int(x))

    with pytest.raises(ZeroDivisionError):
        Dataset.range(5).map(fails).save(tmp_path)
    assert [x.item() for x in Dataset.load(tmp_path)] == [0, 1, 2]
    assert len(os.listdir(tmp_path)) == 2
    Dataset.load(tmp_path).map(lambda x: x * x).save(tmp_path)  # from the very folder
    assert [x.item() for x in Dataset.load(tmp_path)] == [0, 1, 4]
    Dataset.range(0).save(tmp_path)
    assert list(Dataset.load(tmp_path)) == []
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_damage_is_refused(tmp_path: Path, compression: str | None) -> None:
    data().save(tmp_path, compression)
    (file,) = tmp_path.glob("*.records")
    whole = file.read_bytes()
    for place in range(0, len(whole), 41):
        file.write_bytes(whole[:place])
        with pytest.raises(errors.DataError):
            list(Dataset.load(tmp_path))
    if compression is None:
        for place in range(0, len(whole), 13):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :])
            with pytest.raises(errors.DataError):
                list(Dataset.load(tmp_path))
        file.write_bytes(whole + whole)
        with pytest.raises(errors.DataError, match="more than 7"):
            list(Dataset.load(tmp_path))
    file.unlink()
    with pytest.raises(errors.DataError):
        list(Dataset.load(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"version": "1"},
        {"files": [["../secret.records", 1]]},
        {"files": [["/etc/passwd", 1]]},
        {"files": [["a.records", -1]]},
        {"files": 3},
        {"spec": {"tensor": [[1], "object"]}},
        {"spec": {"call": ["os.system"]}},
        {"compression": "SNAPPY"},
    ],
    ids=str,
)
def test_descriptions_that_are_none_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    Dataset.range(3).save(tmp_path)
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(errors.DataError, match=r"dataset\.json"):
        Dataset.load(tmp_path)
    path.write_text(path.read_text()[:-9])
    with pytest.raises(errors.DataError, match=r"dataset\.json"):
        Dataset.load(tmp_path)


def test_snapshots_are_written_once(tmp_path: Path) -> None:
    calls = []

    def work(x: Any) -> Any:
        calls.append(int(x))
        return x * 2

    made = Dataset.range(3).map(work).snapshot(tmp_path / "snapshot")
    list(made.take(2))
    assert not (tmp_path / "snapshot" / "dataset.json").exists()  # that was not all
    assert [x.item() for x in made] == [x.item() for x in made] == [0, 2, 4]
    assert calls == [0, 1, 0, 1, 2]
    elements = iter(made)
    next(elements)
    assert [x.item() for x in iter(made).restore(elements.state())] == [2, 4]
    assert len(os.listdir(tmp_path / "snapshot")) == 2


def test_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Dataset.load(tmp_path / "nowhere")
    with pytest.raises(errors.ArgumentError, match="compression"):
        Dataset.range(3).save(tmp_path, "ZIP")
    with pytest.raises(errors.ArgumentTypeError, match=r"Dataset\.save.*cannot be kept"):
        Dataset.range(3).window(2).save(tmp_path)
    with pytest.raises(errors.ShapeError):
        Dataset.from_generator(lambda: iter([np.ones(2), np.ones((2, 2))])).save(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_counts_that_no_file_can_have_are_refused_before_room_is_made(tmp_path: Path, compression: str | None) -> None:
    Dataset.range(5).save(str(tmp_path), compression)
    path = tmp_path / "dataset.json"
    told = json.loads(path.read_text())
    (file,) = told["files"]
    for count in (2**31, 2**62, 10**30):
        path.write_text(json.dumps({**told, "files": [[file[0], count]]}))
        with pytest.raises(errors.DataError, match="cannot have"):
            Dataset.load(str(tmp_path))
    path.write_text(json.dumps({**told, "files": [["other.records", 5]]}))
    with pytest.raises(errors.DataError, match=r"other\.records is missing"):
        Dataset.load(str(tmp_path))
