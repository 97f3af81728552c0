"""f.tune: the schedules that take least are kept for the machine, and programs that follow have them.  What they take
is made up here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler.target import AVX2, AVX512
from hybridflow.eager import measured_schedules
from hybridflow.errors import ArgumentError, ArgumentTypeError, TraceError
from hybridflow.jit import tuning
from hybridflow.jit.profiling import KernelTimer
from tests.support.bits import same_bits
from tests.support.paths import ROOT

X = hf.asarray(np.random.default_rng(0).normal(size=(30, 40)).astype(np.float32))

Takes = Callable[[str], float]


def product():
    return hf.function(lambda x, y: hf.exp(x @ y))


def schedule_of(f) -> str:
    (program,) = (c.executable.program for c in f.concrete_functions())
    (found,) = [k.schedule for k in program.kernels if "matmul" in k.ops]
    return found


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[Takes], None]]:
    """Has kernels take what a function of their schedules says, on a disk of the test's own."""
    monkeypatch.setattr(measured_schedules, "_remembered", {})

    def set_times(seconds: Takes) -> None:
        class Timer(KernelTimer):
            def run(self) -> np.ndarray:
                super().run()
                kernels = self.executable.program.kernels
                return np.array([seconds(kernels[task].schedule) for task in self.tasks])

        monkeypatch.setattr(tuning, "KernelTimer", Timer)

    with flags.CACHE_DIR(str(tmp_path)):
        yield set_times


def test_the_best_schedule_is_kept_and_used(takes) -> None:
    f = product()
    expected, usual = f(X, X.T), schedule_of(f)
    takes(lambda schedule: 2.0 if schedule == usual else 1.0 + len(schedule) / 1000)
    found = f.tune(X, X.T, runs=1)
    (row,) = found.kernels
    assert row["usual schedule"] == usual != row["schedule"] and row["gain"] > 1 and row["candidates"] > 2
    assert found.file is not None and row["schedule"] in json.loads(Path(found.file).read_text())["schedules"].values()
    for again in (f, product()):
        assert same_bits(np.asarray(again(X, X.T)), np.asarray(expected)) and schedule_of(again) == row["schedule"]
    assert usual in found.wide() and "1 other schedule" in str(found)
    with flags.SCHEDULE(1):  # says more than the file
        other = product()
        other(X, X.T)
        assert schedule_of(other) != row["schedule"]


def test_what_gains_little_is_no_reason_to_change(takes) -> None:
    f = product()
    f(X, X.T)
    usual = schedule_of(f)
    takes(lambda schedule: 1.0 if schedule == usual else 0.99)
    (row,) = f.tune(X, X.T, runs=2).kernels
    assert row["schedule"] == usual and row["gain"] == 1
    f(X, X.T)
    assert schedule_of(f) == usual


def test_without_a_disk_the_process_remembers(takes) -> None:
    takes(lambda schedule: float(len(schedule)))
    with flags.CACHE_DIR("off"):
        f = product()
        found = f.tune(X, X.T, runs=1)
        assert found.file is None
        f(X, X.T)
        assert schedule_of(f) == found.kernels[0]["schedule"]


def test_variables_keep_their_values_and_equal_kernels_are_one_row(takes) -> None:
    takes(len)
    v = hf.Variable(hf.zeros((30, 30)))

    @hf.function
    def f(x: hf.Tensor) -> hf.Tensor:
        v.assign_add(x @ x.T)
        return v + hf.exp(hf.sin(x) @ hf.cos(x).T)

    found = f.tune(X, runs=1)
    assert not np.any(np.asarray(v)) and len(found.kernels) >= 1
    assert len({row["facts"] for row in found.kernels}) == len(found.kernels)


def test_a_function_without_a_choice(takes) -> None:
    takes(len)
    found = hf.function(lambda x: hf.sort(x)).tune(X, runs=1)
    assert not len(found.kernels) and "no kernel" in str(found)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": 1}', '{"version": 1, "schedules": 3}', "null"])
def test_a_damaged_file_is_as_if_it_were_not_there(takes, content: str) -> None:
    path = measured_schedules.keep(AVX2, {"facts": "schedule"})
    assert path is not None and measured_schedules.measured(AVX2) == {"facts": "schedule"}
    Path(path).write_text(content)
    os.utime(path, (1, 1))
    assert measured_schedules.measured(AVX2) == {}


def test_files_of_machines(takes) -> None:
    measured_schedules.keep(AVX2, {"a": "1"})
    measured_schedules.keep(AVX2, {"b": "2"})
    assert measured_schedules.measured(AVX2) == {"a": "1", "b": "2"} and measured_schedules.measured(AVX512) == {}
    assert measured_schedules.choices_for(AVX2).measured == {"a": "1", "b": "2"}
    with flags.SCHEDULE(3):
        assert measured_schedules.choices_for(AVX2).forced == 3


def test_several_that_tune_at_once_lose_nothing(takes) -> None:
    program = """
import sys
from hybridflow.compiler.target import AVX2
from hybridflow.eager import measured_schedules
sys.stdin.read()
for k in range(20):
    measured_schedules.keep(AVX2, {f"{sys.argv[1]}.{k}": "1"})
"""
    command = [sys.executable, "-c", program]
    there = {**os.environ, "HF_CACHE_DIR": flags.CACHE_DIR.value}
    processes = [subprocess.Popen([*command, str(k)], stdin=subprocess.PIPE, env=there, cwd=ROOT) for k in range(2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()  # both begin

    def keep(name: str) -> None:
        for k in range(20):
            measured_schedules.keep(AVX2, {f"{name}.{k}": "1"})

    threads = [threading.Thread(target=keep, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for worker in (*threads, *processes):
        worker.join() if isinstance(worker, threading.Thread) else worker.wait()
    assert [process.returncode for process in processes] == [0, 0]
    assert set(measured_schedules.measured(AVX2)) == {f"{name}.{k}" for name in "01ab" for k in range(20)}


def test_other_threads_do_not_take_what_is_tried() -> None:
    found = []
    with measured_schedules.forced(3):
        thread = threading.Thread(target=lambda: found.append(measured_schedules.choices_for(AVX2).forced))
        thread.start()
        thread.join()
        assert measured_schedules.choices_for(AVX2).forced == 3
    assert found == [None]


def test_wrong_use() -> None:
    f = product()
    with pytest.raises(ArgumentError, match="runs is 0"):
        f.tune(X, X.T, runs=0)
    with pytest.raises(ArgumentTypeError, match="TensorSpec"):
        f.tune(hf.TensorSpec((3, 4)), X)
    with pytest.raises(TraceError, match="outside"):
        hf.function(lambda x: f.tune(x, x))(X)
