"""Processes that an engine places: how they begin, what is shown of them, and how they are started again.

The engine here runs watchers in this process.  Where Ray is installed it has a run of its own, in a network of its own.
"""

from __future__ import annotations

import concurrent.futures
import importlib.util
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybridflow import errors
from hybridflow.core.processes import MISSED
from hybridflow.distribute import cluster_launcher, ray_engine, watcher as watcher_module
from hybridflow.distribute.cluster_launcher import counts, launch
from hybridflow.distribute.ray_engine import RayEngine
from hybridflow.distribute.watcher import News, Watcher
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

    def wait(self, begun: Sequence[Any], timeout: float | None = None) -> Any:
        return next(iter(concurrent.futures.wait(begun, timeout, return_when="FIRST_COMPLETED").done), None)

    def value(self, begun: Any) -> Any:
        return begun.result()

    def remove(self, watchers: Sequence[Watcher]) -> None:
        for watcher in watchers:
            watcher.end()
        self._threads.shutdown()
        self._threads = concurrent.futures.ThreadPoolExecutor(8)


class Told:
    """An engine without processes: each watcher is a rank, and what is news of it, in the order of ``events``."""

    def __init__(self, *events: tuple[int, News]) -> None:
        self._events, self.placed, self.told = list(events), 0, 0

    def room(self) -> int:
        return 3

    def place(self, count: int) -> list[int]:
        self.placed += 1
        return list(range(count))

    def begin(self, watcher: int, method: str, *arguments: Any) -> Any:
        return watcher, method

    def wait(self, begun: Sequence[Any], timeout: float | None = None) -> Any:
        return (self._events[0][0], "news") if self._events else None

    def value(self, begun: Any) -> Any:
        if begun[1] == "address":
            return "127.0.0.1", 1
        return self._events.pop(0)[1] if begun[1] == "news" else None

    def remove(self, watchers: Sequence[int]) -> None:
        pass


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[str], list[str]]]:
    """What is printed, and what of it as errors."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HF_OPT", "0")
    found: tuple[list[str], list[str]] = [], []
    monkeypatch.setattr(cluster_launcher, "_show", lambda text, is_error: found[is_error].append(text.decode()))
    yield found


def test_they_begin_and_end(tmp_path: Path, shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of fewer than wanted where there is room for fewer, which an error ends; then one of all."""
    monkeypatch.setattr(cluster_launcher, "_LATER", DEADLINE)  # the cause is waited for, however late it is noticed
    engine = Here(2, 3)
    code = launch(engine, [SCRIPT, "raises", str(tmp_path)], 2, 3, DEADLINE, 1, {"HF_NUM_THREADS": "1"}, patience=0.0)
    out, err = map("".join, shown)
    assert code == 0 and engine.placed == 2, err
    assert out == "2 processes, total 10\n3 processes, total 10\ndone\n"
    assert "ValueError: on rank 1" in err and "[run] rank 1 of 2: ended with exit code 1." in err
    assert "restarts left: 0" in err


def test_the_cause_is_shown_whoever_is_noticed_first(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 misses rank 2, and is noticed before it; the errors of all are kept."""
    monkeypatch.setattr(cluster_launcher, "_LATER", math.inf)
    lost, error = News(b"", b"WorkerLost\n", MISSED), News(b"", b"the cause\n", 3)
    for events in ([(1, lost), (0, lost), (2, error)], [(0, lost), (2, error), (1, lost)], [(2, error), (0, lost)]):
        for text in shown:
            text.clear()
        assert launch(Told(*events), [SCRIPT], 3, 3, 1.0) == 3
        assert "".join(shown[1]).endswith("the cause\n[run] rank 2 of 3: ended with exit code 3.\n"), events
        assert "".join(shown[1]).count("WorkerLost") == events.index((2, error))
    for events in ([(1, lost)], [(1, lost), (0, lost), (2, News(b"", b"", 0))]):  # none says more in time, or at all
        assert launch(Told(*events), [SCRIPT], 3, 3, 1.0) == MISSED
        assert shown[1][-1] == f"[run] rank 1 of 3: ended with exit code {MISSED}.\n"


def test_the_last_errors_are_kept(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_launcher, "_KEPT", 8)
    events = [(1, News(b"", text, None)) for text in (b"01234567", b"89", b"")] + [(1, News(b"", b"ab", 1))]
    assert launch(Told((2, News(b"", b"", 0)), *events), [SCRIPT], 3, 3, 1.0) == 1
    assert shown[1][0] == "[run] rank 1 of 3 has printed more before:\n456789ab\n"
    shown[1].clear()
    assert launch(Told(events[0], (1, News(b"", b"", 1))), [SCRIPT], 3, 3, 1.0) == 1
    assert shown[1][0] == "01234567\n"


def test_bytes_are_shown_as_they_come(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = "a\u00e9\U0001f600".encode()
    for is_error in (False, True):
        for k in range(len(text)):  # each character is cut
            cluster_launcher._show(text[k : k + 1], is_error)
    assert tuple(capfdbinary.readouterr()) == (text, text)


def test_told_to_end_while_there_is_no_room() -> None:
    class Full(Told):
        def room(self) -> int:
            handler = signal.getsignal(signal.SIGTERM)
            assert callable(handler)
            handler(signal.SIGTERM, None)
            return 1

    engine = Full()
    assert launch(engine, [SCRIPT], 2, 3, 1.0, patience=math.inf) == 128 + signal.SIGTERM
    assert not engine.placed


def test_the_last_news_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process prints last comes just after the lock is given back, and then its pipes close."""

    class Late(threading.Condition):
        is_late = False

        def __exit__(self, *error: Any) -> None:
            super().__exit__(*error)
            if self.is_late and threading.current_thread() is asks:
                self.is_late = False
                os.write(ends[1], b"the traceback")
                for end in ends:
                    os.close(end)
                with self:
                    self.wait_for(lambda: not watcher._open)

    pipes, asks = [os.pipe(), os.pipe()], threading.current_thread()
    ends = [end for _, end in pipes]
    out, err = (os.fdopen(end, "rb") for end, _ in pipes)
    process = types.SimpleNamespace(stdout=out, stderr=err, wait=lambda: 1)
    monkeypatch.setattr(watcher_module.subprocess, "Popen", lambda *arguments, **options: process)
    monkeypatch.setattr(watcher_module, "_SOON", 0.0)
    watcher = Watcher()
    watcher._news = news = Late()
    watcher.start([], {}, str(tmp_path))
    news.is_late = True
    assert watcher.news() == (b"", b"", None)
    assert watcher.news() == (b"", b"the traceback", 1)
    assert watcher.news() == (b"", b"", 1)


class Ray:
    """Ray, as far as the engine asks it: machines with so many cores, which never place more than some actors."""

    def __init__(self, cores: Sequence[float], most: int) -> None:
        nodes = {str(k): {"CPU": count} if count else {} for k, count in enumerate(cores)}
        state = types.SimpleNamespace(available_resources_per_node=lambda: nodes)
        self._private, self._most, self.killed = types.SimpleNamespace(state=state), most, 0

    def init(self, **options: Any) -> None:
        pass

    def remote(self, **options: Any) -> Any:
        actor = types.SimpleNamespace(host=types.SimpleNamespace(remote=object))
        return lambda kind: types.SimpleNamespace(remote=lambda: actor)

    def wait(self, begun: list[Any], num_returns: int, timeout: float | None) -> Any:
        return begun[: self._most], begun[self._most :]

    def kill(self, actor: Any) -> None:
        self.killed += 1


def test_room_is_counted_machine_by_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Ray([3, 3.5, 0, 5, 1], 2)
    monkeypatch.setattr(ray_engine, "_loaded", lambda: found)
    assert [RayEngine(threads, 8, 7.0).room() for threads in (1, 2, 3, 4, 6)] == [12, 4, 3, 1, 0]
    engine = RayEngine(3, 8, 7.0)
    assert len(engine.place(2)) == 2 and not found.killed
    with pytest.raises(errors.WorkerLost, match=r"placed 2 of 3 processes, 3 cores each, in 7 seconds\."):
        engine.place(3)
    assert found.killed == 3


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
    script = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_OPT": "0", "HOME": str(tmp_path)}
    environment["RAY_raylet_start_wait_time_s"] = f"{DEADLINE:g}"  # else it gives up where much else runs
    result = subprocess.run(
        [*script, *command, SCRIPT, "lost", str(tmp_path)],
        capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment,
    )  # fmt: skip
    if result.returncode:
        alone = [sys.executable, "-c", "import ray; ray.init(address='local', num_cpus=2, include_dashboard=False)"]
        if subprocess.run([*script, *alone], capture_output=True, check=False, env=environment).returncode:
            pytest.skip("Ray does not start here, of itself")
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("2 processes, total 10\ndone\n") and "restarts left: 0" in result.stderr
