"""Work behind: whatever it does, who waits for it goes on, and the process ends quietly."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import hybridflow as hf
from hybridflow.runtime import background, gc_pause
from hybridflow.runtime.threads import thread_pool
from tests.support.paths import ROOT

LIMIT = 300  # seconds, for a machine that does much else


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = thread_pool.threads()
    thread_pool.set_threads(2)
    yield
    thread_pool.set_threads(before)


def test_work_behind_does_not_wait_for_itself() -> None:
    """As in a finalizer of the user's that runs there."""
    done = threading.Event()

    def work() -> None:
        hf.config.set_num_threads(1)
        done.set()

    assert background.begin(work)
    assert done.wait(LIMIT)
    background.wait()
    assert hf.config.get_num_threads() == 1


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_what_is_raised_behind_ends_one_piece(error: type[BaseException]) -> None:
    later = threading.Event()

    def work() -> None:
        raise error

    assert background.begin(work) and background.begin(later.set)
    waiting = threading.Thread(target=background.wait, daemon=True)
    waiting.start()
    waiting.join(LIMIT)
    assert not waiting.is_alive() and later.is_set()


def test_the_collector_is_given_way_by_who_holds_it_back_alone() -> None:
    on = gc.isenabled()
    with gc_pause.give_way():
        assert gc.isenabled() == on
    assert gc.isenabled() == on and not gc_pause._holders
    with gc_pause.paused():
        with gc_pause.give_way():
            assert gc.isenabled() == on
        assert not gc.isenabled()
    assert gc.isenabled() == on


def test_the_end_of_a_process_that_loads_llvm_only_then_is_quiet(tmp_path: Path) -> None:
    """It waits for work behind, which imports llvmlite when that can no longer hear of the end."""
    program = """
import atexit, sys, threading
import hybridflow as hf
from hybridflow.runtime import background, uninterruptible
from hybridflow.runtime.machine import host_target, machine_code

begun, ends, codes = threading.Event(), threading.Event(), []

def work():
    begun.set()
    ends.wait()
    print("llvmlite.binding" in sys.modules)
    target = host_target.detect()
    for k in range(2):
        image = machine_code.compile_image([f"define i32 @f{k}() {{\\n ret i32 1\\n}}\\n"], target)
        codes.append(machine_code.load_object(image, f"f{k}"))
    print(len(codes))

print(background.begin(work))
begun.wait()  # what has not begun by the end is left
atexit.register(ends.set)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_CACHE_DIR": "off", "HF_NUM_THREADS": "2"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nFalse\n2\n", "")


@pytest.mark.parametrize("ends_after", [3, None])
def test_better_code_waits_for_a_first_call_but_not_for_long(
    ends_after: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, looks, begun = [100.0], list[float](), list[int]()

    def look(seconds: float) -> None:
        clock[0] += seconds
        looks.append(clock[0])
        if len(looks) == ends_after:
            background.FirstCalls.end()

    monkeypatch.setattr(background, "time", types.SimpleNamespace(monotonic=lambda: clock[0], sleep=look))
    monkeypatch.setattr(background.FirstCalls, "began", 0.0)
    monkeypatch.setattr(background.FirstCalls, "over", 0.0)
    background.FirstCalls.begin()
    background.begin(lambda: begun.append(len(looks)))
    background.wait()
    longest = background._LONGEST / background._LOOK
    assert begun == [ends_after] if ends_after else longest - 2 < begun[0] < longest + 2


def test_first_calls_are_at_work_while_they_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_LONGEST", 1e9)
    seen = []

    @hf.function
    def f(x: hf.Tensor) -> hf.Tensor:
        seen.append(background.FirstCalls.is_at_work())
        if len(seen) == 2:
            raise ValueError
        return x + 1

    f(hf.asarray([1.0]))
    assert seen == [True] and not background.FirstCalls.is_at_work()
    with pytest.raises(ValueError):
        f(hf.asarray([1.0, 2.0]))
    assert not background.FirstCalls.is_at_work()
