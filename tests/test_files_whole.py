"""Files are whole at any moment, whoever writes them and whoever is killed."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.checkpoint import files


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
