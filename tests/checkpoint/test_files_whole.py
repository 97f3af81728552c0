"""Files are whole at any moment, whoever writes them and whoever is killed."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import threading
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.checkpoint import files
from hybridflow.core import locked_files
from hybridflow.data import file_cache, numpy_files, snapshot

pytestmark = pytest.mark.code


def test_threads_that_write_to_one_path(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    faults: list[BaseException] = []

    def work(k: int) -> None:
        checkpoint = hf.checkpoint.Checkpoint(v=hf.Variable(hf.full((100_000,), float(k))))
        for _ in range(10):
            try:
                checkpoint.write(path)
                found = np.asarray(hf.checkpoint.load_arrays(path)["v"])
                assert found.min() == found.max()
            except BaseException as error:
                faults.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[0]
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_parts_that_are_written_are_left_alone(tmp_path: Path) -> None:
    """What another writer has begun is not removed, even if no process here has the number in its name."""
    target = tmp_path / "w.safetensors"
    begun, file = files._begun(target)
    other = begun.with_name(begun.name.replace(f"-{os.getpid()}-", "-999999-"))
    os.rename(begun, other)
    files.write(target, {"x": np.arange(3)}, {})
    assert other.exists()
    file.close()
    files.write(target, {"x": np.arange(3)}, {})
    assert not other.exists()


def test_a_part_is_removed_while_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is free between the moment it is made and the moment its writer locks it: who takes it for one that was
    left removes it before the writer can lock it, and the writer begins another."""
    lock, taken = locked_files._lock, []

    def later(file: Any) -> bool:
        if taken:
            return lock(file)
        taken.append(Path(file.name))
        with locked_files.abandoned_part(taken[0]) as is_left:
            assert is_left
            assert not lock(file)
            taken[0].unlink()
        return lock(file)

    monkeypatch.setattr(locked_files, "_lock", later)
    target = tmp_path / "w.safetensors"
    files.write(target, {"x": np.arange(3)}, {})
    assert not taken[0].exists()
    assert np.asarray(hf.checkpoint.load_arrays(target)["x"]).tolist() == [0, 1, 2]
    taken.clear()
    elements(3).save(str(tmp_path / "elements"))
    assert not taken[0].exists()
    assert [int(x) for x in hf.data.Dataset.load(str(tmp_path / "elements"))] == [0, 1, 2]


def test_a_part_that_is_finished_is_none_that_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer renames it between the moment others open it and the moment they lock it."""
    part, target = tmp_path / "a.part", tmp_path / "a"
    part.touch()
    flock = locked_files.fcntl.flock

    def later(file: Any, how: int) -> None:
        os.replace(part, target)
        flock(file, how)

    monkeypatch.setattr(locked_files, "fcntl", SimpleNamespace(flock=later, LOCK_EX=2, LOCK_NB=4))
    with locked_files.abandoned_part(part) as is_left:
        assert not is_left


def manager(folder: Path, v: Any, hours: float) -> Any:
    checkpoint = hf.checkpoint.Checkpoint(v=v)
    return hf.checkpoint.CheckpointManager(checkpoint, folder, 2, keep_checkpoint_every_n_hours=hours)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_kill_while_it_is_noted_what_is_kept_for_ever(tmp_path: Path) -> None:
    v = hf.Variable(hf.zeros((10,)))
    first = manager(tmp_path, v, 1e-9)
    for _ in range(6):
        first.save()
    child = os.fork()
    if child == 0:

        def killed(*args: Any, **options: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        def emptied(self: Path, text: str, **options: Any) -> None:
            open(self, "w").close()
            killed()

        pathlib.Path.write_text = emptied  # type: ignore[method-assign]
        os.replace = killed  # type: ignore[assignment]
        first.save()
        os._exit(0)
    os.waitpid(child, 0)
    manager(tmp_path, v, 1.0).save()
    assert {f"ckpt-{k}.safetensors" for k in range(1, 5)} <= set(os.listdir(tmp_path))


@pytest.mark.parametrize("text", [b"", b"{", b"[1, 2]", b"[" * 5000, b"\xff", b'{"a": 1}'])
def test_nothing_is_deleted_where_nobody_knows_what_is_kept(tmp_path: Path, text: bytes) -> None:
    v = hf.Variable(hf.zeros((10,)))
    first = manager(tmp_path, v, 1e-9)
    for _ in range(5):
        first.save()
    (tmp_path / "ckpt-kept.json").write_bytes(text)
    before = set(os.listdir(tmp_path))
    with pytest.warns(UserWarning, match="no checkpoint is deleted"):
        manager(tmp_path, v, 1.0).save()
    assert before < set(os.listdir(tmp_path))


# ---- configurations that ask for more than their file has


def with_text(path: Path, old: str, new: str) -> None:
    """The file with another text, and right sums."""
    file = files.File(path)
    assert old in file.texts["plain"]
    texts = {**file.texts, "plain": file.texts["plain"].replace(old, new)}
    files.write(path, {name: np.array(file.tensor(name)) for name in file.names}, texts)


def network() -> Any:
    model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(3), hf.layers.Dense(2)])
    model.compile("adam", "mse", metrics=[hf.metrics.AUC(num_thresholds=77)])
    return model


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('\\"units\\": 3', '\\"units\\": 300000000'),
        ('\\"units\\": 3', '\\"units\\": 1000000000000000'),
        ('\\"num_thresholds\\": 77', '\\"num_thresholds\\": 3000000000'),
    ],
)
def test_shapes_are_compared_before_anything_is_made(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "m.safetensors"
    network().save(path)
    with_text(path, old, new)
    tracemalloc.start()
    try:
        with pytest.raises(errors.CheckpointError, match="is to be made, and the file has none"):
            hf.models.load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_models_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model = network()
    model.save(path)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(hf.models.load_model(path)(x), model(x))


# ---- damaged texts


DEEP = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize("key", ["plain", "architecture", "shape", "compiled"])
@pytest.mark.parametrize("text", [DEEP, "[1", '{"$tuple": 3}', '{"$object": "layer"}', '{"$slice": []}', "3", "null"])
def test_damaged_texts_of_models(tmp_path: Path, key: str, text: str) -> None:
    path = tmp_path / "m.safetensors"
    network().save(path)
    file = files.File(path)
    plain = json.loads(file.texts["plain"])
    told = text if key == "plain" else json.dumps({**plain, key: text})
    files.write(path, {name: np.array(file.tensor(name)) for name in file.names}, {**file.texts, "plain": told})
    try:
        hf.models.load_model(path)
    except errors.HybridflowError:
        return
    assert key in ("shape", "compiled")  # which may be of anything, or of nothing


@pytest.mark.parametrize(
    "state", [DEEP, '{"dict": [[]]}', '{"array": 3, "tensor": true}', '{"texts": [], "shape": [7]}']
)
def test_damaged_states_of_iterators(tmp_path: Path, state: str) -> None:
    path = tmp_path / "c.safetensors"
    given = iter(hf.data.Dataset.range(5).shuffle(3))
    checkpoint = hf.checkpoint.Checkpoint(it=given)
    checkpoint.write(path)
    file = files.File(path)
    told = f'{{"it": {state}}}'
    files.write(path, {name: np.array(file.tensor(name)) for name in file.names}, {**file.texts, "plain": told})
    with pytest.raises(errors.CheckpointError):
        checkpoint.restore(path, partial=True)


@pytest.mark.parametrize(
    "header",
    [
        DEEP,
        "[null, [[]]]",
        '[null, [["float32", [-1]]]]',
        '[{}, [["U9", [1]]]]',
        "[3, [3]]",
        '[null, [["str", [1], [9, 9]]]]',
    ],
)
def test_damaged_elements(header: str) -> None:
    data = header.encode()
    with pytest.raises(errors.DataError):
        file_cache.unpacked(len(data).to_bytes(4, "little") + data + bytes(64), "here")


# ---- folders of elements


def elements(n: int) -> Any:
    return hf.data.Dataset.range(n)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_saving_that_is_killed_leaves_nothing_for_ever(tmp_path: Path) -> None:
    elements(3).save(str(tmp_path))
    for _ in range(3):
        child = os.fork()
        if child == 0:
            writer = snapshot.Writer(str(tmp_path), None, None, "Dataset.save")
            writer.add(hf.asarray(1))
            writer._files[0].flush()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    assert len(os.listdir(tmp_path)) == 4, "the files of the last one alone are left"
    other = snapshot.Writer(str(tmp_path), None, None, "Dataset.save")  # of somebody who is still writing
    other.add(hf.asarray(7))
    elements(5).save(str(tmp_path))
    assert [int(x) for x in hf.data.Dataset.load(str(tmp_path))] == [0, 1, 2, 3, 4]
    assert len(os.listdir(tmp_path)) == 4, os.listdir(tmp_path)
    other.finish()
    other.drop()
    assert [int(x) for x in hf.data.Dataset.load(str(tmp_path))] == [7]
    assert len(os.listdir(tmp_path)) == 2


# ---- NumPy's files


@pytest.fixture(params=["as a whole", "row by row"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(numpy_files, "_SMALL", 1 << 40 if request.param == "as a whole" else 0)
    return str(request.param)


@pytest.mark.parametrize("shape", [(5,), (6, 3), (4, 2, 2), (3, 0), (0, 4)])
def test_rows_of_files(tmp_path: Path, how: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    np.save(tmp_path / "x.npy", array)
    data = hf.data.NumpyDataset(tmp_path / "x.npy")
    assert [x.tolist() for x in data] == array.tolist()
    assert [x.tolist() for x in data.batch(2)] == [array[k : k + 2].tolist() for k in range(0, len(array), 2)]
    shuffled = [x for batch in data.shuffle(10, seed=1).batch(3) for x in batch.tolist()]
    assert sorted(shuffled) == sorted(array.tolist())


def test_a_file_that_is_written_anew_ends_no_process(tmp_path: Path, how: str) -> None:
    """A mapped file would end it: SIGBUS."""
    path = tmp_path / "x.npy"
    array = np.arange(300_000.0).reshape(3000, 100)
    np.save(path, array)
    given = iter(hf.data.NumpyDataset(path).batch(10))
    assert next(given).tolist() == array[:10].tolist()
    np.save(path, np.zeros((2, 2)))  # in place, and shorter
    if how == "as a whole":
        assert next(given).tolist() == array[10:20].tolist()
    else:
        with pytest.raises(errors.DataError, match="written anew"):
            next(given)


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6.0))
    given = iter(hf.data.NumpyDataset(path))
    next(given)
    np.save(tmp_path / "y.npy", np.zeros(2))
    os.replace(tmp_path / "y.npy", path)
    assert [float(x) for x in given] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_damaged_headers(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(60.0).reshape(6, 10))
    whole = path.read_bytes()
    for damaged in (
        whole[:-8], whole[:100], whole[:7], whole.replace(b"(6, 10)", b"(6,1000)"), whole.replace(b"<f8", b"|O8"),
        whole.replace(b"(6, 10)", b"(-6, 1)"), whole.replace(b"{", b"["), b"",
    ):  # fmt: skip
        path.write_bytes(damaged)
        with pytest.raises(errors.HybridflowError):
            list(hf.data.NumpyDataset(path))
    with pytest.raises(FileNotFoundError):
        hf.data.NumpyDataset(tmp_path / "nothing.npy")
