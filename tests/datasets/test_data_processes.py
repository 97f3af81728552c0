"""Functions of datasets that other processes call: order, errors with their own traceback, deaths, states, Ctrl-C."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.data import Dataset, processes


def halved(x: Any) -> Any:
    number = int(x)
    if number == 5:
        raise KeyError("five")
    return {"x": hf.ones((2,)) * number / 2, "process": os.getpid(), "text": str(number)}


def dies(x: Any) -> Any:
    if int(x) == 3:
        os._exit(1)
    return x


def test_processes_call_functions() -> None:
    data = Dataset.range(9).map(halved, 2, processes=True)
    running = iter(data)
    found = [next(running) for _ in range(3)]
    assert [x["text"] for x in found] == ["0", "1", "2"] and found[1]["x"].tolist() == [0.5, 0.5]
    assert os.getpid() not in {int(x["process"]) for x in found}
    state = running.state()
    assert [next(running)["text"] for _ in range(2)] == ["3", "4"]
    with pytest.raises(KeyError, match="five") as caught:
        next(running)
    assert "Dataset.map of test_data_processes.py" in caught.value.__notes__[0]
    assert "number == 5" not in str(caught.value) and "in halved" in "".join(traceback.format_exception(caught.value))
    assert not multiprocessing.active_children()
    again = iter(data.take(5)).restore({"runner": {"left": 2, "source": state["runner"]}})
    assert [x["text"] for x in again] == ["3", "4"]
    assert not multiprocessing.active_children()


def test_processes_that_die() -> None:
    with pytest.raises(errors.WorkerError, match="a worker process died"):
        list(Dataset.range(9).map(dies, 1, False, processes=True))
    assert not multiprocessing.active_children()
    with pytest.raises(errors.ArgumentTypeError, match="Use a function of a module"):
        Dataset.range(3).map(lambda x: x, 2, processes=True)


def hangs(x: Any) -> Any:
    if int(x) == 1:
        time.sleep(10_000)
    return x


@pytest.mark.slow
def test_processes_that_hang_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """An iterator that is closed does not wait for ever."""
    monkeypatch.setattr(processes, "_GRACE", 0.1)
    running = iter(Dataset.range(9).map(hangs, 1, processes=True))
    assert int(next(running)) == 0
    assert multiprocessing.active_children()
    running.close()
    gc.collect()
    assert not multiprocessing.active_children()


PROGRAM = """
    import os, time
    import hybridflow as hf

    def slow(x):
        print("begun", flush=True)
        time.sleep(1.0)
        return x

    if __name__ == "__main__":
        try:
            list(hf.data.Dataset.range(100).map(slow, 1, processes=True))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_interrupts_end_processes(tmp_path: Path) -> None:
    """Ctrl-C goes to all processes of a terminal; one of them says so, and all end."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    program = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(hf.__file__).parent.parent)},
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "begun\n"
    os.killpg(program.pid, signal.SIGINT)
    said, wrong = program.communicate(timeout=900)  # which ends when no process holds the pipe any more
    assert said.splitlines()[-1] == "interrupted" and "Traceback" not in wrong, wrong
    assert program.returncode == 0
