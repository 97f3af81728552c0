"""Checkpoints in pieces: written by any number of processes, read by one, and never torn.

The processes are threads here, each of which has a group of its own.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.checkpoint import checkpoint, files, pieces
from hybridflow.core import processes
from tests.support.bits import same_bits

pytestmark = pytest.mark.code
RNG = np.random.default_rng(3)
ARRAYS: dict[str, Any] = {
    "big": RNG.normal(size=(37, 11)).astype(np.float32),
    "bfloat16": RNG.normal(size=(5,)).astype(ml_dtypes.bfloat16),
    "scalar": np.float64(-0.0),
    "empty": np.empty((0, 3), np.int64),
    "nan": np.array([np.nan, -0.0, np.inf], np.float16),
    "bool": RNG.random((3, 2, 1)) < 0.5,
    "complex": RNG.normal(size=(4, 3)).astype(np.complex64).T,
}


class Member:
    """One of several threads that stand for processes."""

    def __init__(self, rank: int, size: int, meeting: threading.Barrier, said: dict[int, list[int]]) -> None:
        self.rank, self.size, self._meeting, self._said = rank, size, meeting, said

    def say(self, what: str, numbers: Any) -> list[list[int]]:
        self._said[self.rank] = list(numbers)
        self._meeting.wait()
        result = [self._said[rank] for rank in range(self.size)]
        self._meeting.wait()
        return result

    def once(self, what: str, do: Any) -> None:
        self._meeting.wait()
        if self.rank == 0:
            do()
        self._meeting.wait()


class Here(threading.local):
    member: Any = None


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    found = Here()
    monkeypatch.setattr(processes, "place", lambda: (found.member.rank, found.member.size) if found.member else (0, 1))
    monkeypatch.setattr(processes, "say", lambda what, n: found.member.say(what, n) if found.member else [list(n)])
    monkeypatch.setattr(processes, "once", lambda what, do: found.member.once(what, do) if found.member else do())
    yield found


def write(here: Here, path: Path, size: int, state: Any) -> list[Any]:
    """What each of so many processes raises as they save a state."""
    meeting, said, found = threading.Barrier(size, timeout=300), dict[int, list[int]](), [None] * size

    def run(rank: int) -> None:
        here.member = Member(rank, size, meeting, said)
        try:
            begun = checkpoint.in_pieces(path, state, 3)
            begun.write()
            begun.finish()
        except Exception as error:
            found[rank] = error  # type: ignore[call-overload]

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def state_of(**arrays: Any) -> Any:
    return hf.checkpoint.Checkpoint(**{name: hf.Variable(value) for name, value in arrays.items()}, epoch=7)._state()


@pytest.mark.parametrize("size", (1, 2, 3, 9))
def test_any_number_writes_what_one_reads(tmp_path: Path, here: Here, size: int) -> None:
    path = tmp_path / "run-3.safetensors"
    for count in (2, size):  # which replaces what is there
        assert write(here, path, count, state_of(**ARRAYS)) == [None] * count
    file, plain, counter = checkpoint.opened(path)
    assert plain == {"epoch": 7} and counter == 3 and file.names == list(ARRAYS)
    for name, found in file.tensors(file.names).items():
        expected = np.asarray(ARRAYS[name])
        assert found.shape == file.shape(name) == expected.shape and same_bits(found.numpy(), expected)
    written = [entry.stat().st_size for entry in pieces.folder_of(path).iterdir()]
    assert len(written) == size and sorted(os.listdir(tmp_path)) == [path.name, f"{path.name}.pieces"]
    target = hf.checkpoint.Checkpoint(**{name: hf.Variable(np.zeros_like(v)) for name, v in ARRAYS.items()}, epoch=0)
    target.restore(path).assert_consumed()
    assert target.epoch == 7 and target.save_counter == 3 and same_bits(target.big.numpy(), ARRAYS["big"])


@pytest.mark.parametrize("replaces", (True, False))
def test_a_disk_that_is_full_at_one_process_is_an_error_of_all(
    tmp_path: Path, here: Here, replaces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run-1.safetensors"
    if replaces:
        assert write(here, path, 2, state_of(x=np.arange(9))) == [None, None]
    before = sorted(str(entry) for entry in tmp_path.rglob("*"))
    real = files._write_into

    def full(file: Any, arrays: Any, texts: Any) -> None:
        if here.member.rank == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, arrays, texts)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_write_into", full)
        first, second, third = write(here, path, 3, state_of(x=np.arange(9) + 1))
    assert isinstance(third, OSError) and third.errno == errno.ENOSPC
    for error in (first, second):
        assert isinstance(error, errors.ReplicaError) and "rank 2 fails: No space left on device" in str(error)
    assert sorted(str(entry) for entry in tmp_path.rglob("*")) == before
    if replaces:
        assert checkpoint.opened(path)[0].tensor("x").numpy()[0] == 0


def test_what_a_process_left_that_was_killed_is_no_checkpoint(tmp_path: Path, here: Here) -> None:
    """Pieces without an index are none, and go with the next save of that name."""
    path = tmp_path / "ckpt-1.safetensors"
    begun = checkpoint.in_pieces(path, state_of(x=np.arange(4)), 1)
    begun.write()
    assert hf.checkpoint.latest_checkpoint(tmp_path) is None and len(os.listdir(pieces.folder_of(path))) == 1
    assert write(here, path, 2, state_of(x=np.arange(4) * 2)) == [None, None]
    assert len(os.listdir(pieces.folder_of(path))) == 2
    assert checkpoint.opened(path)[0].tensor("x").numpy().tolist() == [0, 2, 4, 6]


def test_damaged_pieces_are_said(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "run-1.safetensors"
    write(here, path, 2, state_of(x=np.arange(100), y=np.arange(3)))
    one, two = sorted(pieces.folder_of(path).iterdir())
    content = two.read_bytes()
    for damaged in (content[:-1], content[:-1] + b"\xff"):
        two.write_bytes(damaged)
        with pytest.raises(errors.CheckpointError, match="cannot be read"):
            checkpoint.opened(path)[0].tensors(["x", "y"])
    two.write_bytes(one.read_bytes())
    with pytest.raises(errors.CheckpointError, match="do not fit together"):
        checkpoint.opened(path)[0].tensors(["x"])
    two.unlink()
    with pytest.raises(errors.CheckpointError, match="lacks its piece"):
        checkpoint.opened(path)[0].tensors(["x"])


def test_a_manager_keeps_the_last_and_writes_while_the_program_goes_on(tmp_path: Path) -> None:
    step = hf.Variable(np.zeros(1000, np.int32))
    saved = hf.checkpoint.Checkpoint(step=step)
    manager = hf.checkpoint.CheckpointManager(saved, tmp_path, max_to_keep=2, sharded=True)
    for number in range(1, 5):
        step.assign(np.full(1000, number, np.int32))
        path = manager.save(wait=False)
        step.assign_add(hf.ones(1000, dtype=hf.int32) * 100)
    manager.wait()
    assert manager.latest_checkpoint == path and len(os.listdir(tmp_path)) == 4
    manager.restore()
    assert step.numpy().tolist() == [4] * 1000
