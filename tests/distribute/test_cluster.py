"""Processes that an engine places: how they begin, what is shown of them, and how they are started again.

The engine here runs watchers in this process.  Where Ray is installed it has a run of its own, in a network of its own.
"""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybridflow import errors
from hybridflow.distribute import cluster_launcher
from hybridflow.distribute.cluster_launcher import counts, launch
from hybridflow.distribute.watcher import Watcher
from tests.support.paths import ROOT

pytestmark = pytest.mark.code
SCRIPT = str(Path(__file__).parent / "scripts/small.py")
DEADLINE, PATIENCE = 300.0, 600.0  # seconds, for a machine that does much else


class Here:
    """An engine that places watchers in this process, for so many ``rooms`` at each start."""

    def __init__(self, *rooms: int) -> None:
        self.rooms, self.placed = list(rooms), 0
        self._threads = concurrent.futures.ThreadPoolExecutor(8)

    def room(self) -> int:
        return self.rooms.pop(0) if len(self.rooms) > 1 else self.rooms[0]

    def place(self, count: int) -> list[Watcher]:
        self.placed += 1
        return [Watcher() for _ in range(count)]

    def begin(self, watcher: Watcher, method: str, *arguments: Any) -> Any:
        if method == "start":  # by the thread that does not end, as the process ends with it
            return self._done(watcher.start(*arguments))
        return self._threads.submit(getattr(watcher, method), *arguments)

    @staticmethod
    def _done(value: Any) -> Any:
        found: concurrent.futures.Future[Any] = concurrent.futures.Future()
        found.set_result(value)
        return found

    def wait(self, begun: Sequence[Any]) -> Any:
        return next(iter(concurrent.futures.wait(begun, return_when="FIRST_COMPLETED").done))

    def value(self, begun: Any) -> Any:
        return begun.result()

    def remove(self, watchers: Sequence[Watcher]) -> None:
        for watcher in watchers:
            watcher.end()
        self._threads.shutdown()
        self._threads = concurrent.futures.ThreadPoolExecutor(8)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[str], list[str]]]:
    """What is printed, and what of it as errors."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HF_OPT", "0")
    found: tuple[list[str], list[str]] = [], []
    monkeypatch.setattr(cluster_launcher, "_show", lambda text, is_error: found[is_error].append(text.decode()))
    yield found


def test_they_begin_and_end(tmp_path: Path, shown: Any) -> None:
    """A run of fewer than wanted where there is room for fewer, which an error ends; then one of all."""
    engine = Here(2, 3)
    code = launch(engine, [SCRIPT, "raises", str(tmp_path)], 2, 3, DEADLINE, 1, {"HF_NUM_THREADS": "1"}, patience=0.0)
    out, err = map("".join, shown)
    assert code == 0 and engine.placed == 2, err
    assert out == "2 processes, total 10\n3 processes, total 10\ndone\n"
    assert "ValueError: on rank 1" in err and "[run] rank 1 of 2: ended with exit code 1." in err
    assert "restarts left: 0" in err


def test_bad_calls(tmp_path: Path) -> None:
    assert counts("4") == (4, 4) and counts("2:8") == (2, 8)
    for text in ("", "x", "0", "3:2", "1:65", ":"):
        with pytest.raises(errors.ArgumentError, match="-n is"):
            counts(text)
    with pytest.raises(errors.ArgumentError, match="room for 1 processes"):
        launch(Here(1), [SCRIPT], 2, 3, 1.0, patience=0.0)
    with pytest.raises(errors.ArgumentError, match="--restarts is -1"):
        launch(Here(1), [SCRIPT], 1, 1, 1.0, restarts=-1)
    with pytest.raises(errors.ArgumentError, match="no script"):
        launch(Here(1), ["missing.py"], 1, 1, 1.0)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Watcher().start([SCRIPT], {}, str(tmp_path / "missing"))


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no network of one's own")
def test_ray_places_them(tmp_path: Path) -> None:
    """An actor is lost with its process, and all are started again."""
    command = [
        sys.executable,
        "-m",
        "hybridflow",
        "run",
        "--engine",
        "ray",
        "-n",
        "1:2",
        "--restarts",
        "1",
        "--timeout",
        f"{DEADLINE:g}",
    ]
    script = 'ip link set lo up && exec "$@"'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_OPT": "0", "HOME": str(tmp_path)}
    environment["RAY_raylet_start_wait_time_s"] = f"{DEADLINE:g}"  # else it gives up where much else runs
    result = subprocess.run(
        ["unshare", "-rn", "sh", "-c", script, "sh", *command, SCRIPT, "lost", str(tmp_path)],
        capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment,
    )  # fmt: skip
    if "timed out during startup" in result.stderr or "GCS" in result.stderr:
        pytest.skip("Ray did not start in its own time")
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("2 processes, total 10\ndone\n") and "restarts left: 0" in result.stderr
