"""Code that is made quickly at first, and better code that takes its place while programs run."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, flags
from hybridflow.runtime import background, tiers
from hybridflow.runtime.machine import code_store, machine_code
from hybridflow.runtime.threads import thread_pool
from tests.support.paths import ROOT

X = np.random.default_rng(0).random((17, 33), np.float32)


@pytest.fixture(autouse=True)
def tiered(tmp_path: Path) -> Iterator[None]:
    """As users have it who say nothing, with nothing on disk."""
    before = thread_pool.threads()
    thread_pool.set_threads(2)
    code_store.forget()
    with flags.OPT("auto"), flags.CACHE_DIR(str(tmp_path)):
        yield
    background.wait()
    thread_pool.set_threads(before)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Nothing is made behind in here."""
    background._hold()
    try:
        yield
    finally:
        background._let_go()


def normalized(x: Any) -> Any:
    y = hf.nn.softmax(hf.tanh(x @ hf.matrix_transpose(x)))
    return hf.sort(y, axis=1), hf.cumulative_sum(y, axis=0), hf.sum(hf.exp(x), axis=0)


def bits(results: Any) -> list[bytes]:
    return [y.numpy().tobytes() for y in results]


def tiers_of(f: Any) -> tiers.Tiers:
    return f.concrete_functions()[0].executable.tiers


def test_threads_are_there() -> None:
    assert sys.platform != "linux" or thread_pool.problem() is None


def test_a_short_first_call_starts_at_level_0_and_comes_to_level_2_with_the_same_bits() -> None:
    with flags.OPT("2"), flags.CACHE_DIR("off"):
        expected = bits(hf.function(normalized)(hf.asarray(X)))
    code_store.forget()
    f = hf.function(normalized)
    with held():
        first = bits(f(hf.asarray(X)))
        assert tiers_of(f).level == 0 and not tiers_of(f).is_last
        assert {row["level"] for row in f.kernels()} == {0}
        assert "level 0; faster code is being made" in str(f.explain(hf.asarray(X)))
        again = [bits(f(hf.asarray(X))) for _ in range(5)]
    background.wait()
    assert tiers_of(f).level == 2 and tiers_of(f).is_last
    assert {row["level"] for row in f.kernels()} == {2}
    assert "level 2\n" in str(f.explain(hf.asarray(X)))
    assert [first, *again, bits(f(hf.asarray(X))), bits(f(hf.asarray(X)))] == [expected] * 8
    assert bits(normalized(hf.asarray(X))) == expected


def test_native_calls_run_the_new_code(native: dict[str, int]) -> None:
    """The word that they read is another one: what is in its place shows in the next call."""
    f = hf.function(lambda x: x + 1.0)
    x = hf.asarray(X)
    with held():
        for _ in range(4):
            f(x)
        executable = f.concrete_functions()[0].executable
        before = executable.plain.value
        assert [v.native_hits > 0 for v in f._cache.variants()] == [True]
    background.wait()
    assert executable.plain.value != before
    other = hf.function(lambda x: x + 2.0)
    other.compile(x)
    real, executable.plain.value = executable.plain.value, other.concrete_functions()[0].executable.plain.value
    try:
        np.testing.assert_array_equal(f(x).numpy(), X + np.float32(2))
    finally:
        executable.plain.value = real
    np.testing.assert_array_equal(f(x).numpy(), X + np.float32(1))


def test_another_process_starts_at_level_2_where_it_was_made() -> None:
    f = hf.function(normalized)
    expected = bits(f(hf.asarray(X)))
    background.wait()
    code_store.forget()  # as a new process begins
    g = hf.function(normalized)
    with held():
        assert bits(g(hf.asarray(X))) == expected
        assert tiers_of(g).level == 2 and tiers_of(g).is_last


def test_another_process_goes_on_where_level_2_was_not_made() -> None:
    with held():
        expected = bits(hf.function(normalized)(hf.asarray(X)))
        background._better.waiting.clear()
        code_store.forget()
        before = code_store.counts().compiled
        g = hf.function(normalized)
        assert bits(g(hf.asarray(X))) == expected
        assert code_store.counts().compiled == before  # the quick code is on disk
        assert tiers_of(g).level == 0
    background.wait()
    assert tiers_of(g).level == 2


def test_faster_code_that_cannot_be_made_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "failures", type(background.failures)(maxlen=8))
    functions = [hf.function(normalized), hf.function(lambda x: hf.tanh(x) * 3)]
    with caplog.at_level("WARNING", "hybridflow"), flags.CACHE_DIR("off"):
        code_store.forget()
        with held():
            first = [f(hf.asarray(X)) for f in functions]
            assert [tiers_of(f).level for f in functions] == [0, 0]

            def fail(*_: Any) -> Any:
                raise MemoryError("no room for code")

            for f in functions:
                kept = tiers_of(f)._open
                kept[:] = [dataclasses.replace(loaded, better=fail) for loaded in kept]
        background.wait()
        again = [f(hf.asarray(X)) for f in functions]
    assert [tiers_of(f).level for f in functions] == [0, 0] and len(background.failures) >= 2
    for f in functions:
        text = str(f.explain(hf.asarray(X)))
        assert "level 0; faster code could not be made: MemoryError: no room for code" in text
    said = [record for record in caplog.records if "cannot be made" in record.getMessage()]
    assert len(said) == 1 and "MemoryError: no room for code" in said[0].getMessage()
    assert bits([*first[0], first[1]]) == bits([*again[0], again[1]])


@pytest.mark.parametrize("level", ["0", "1", "2"])
def test_a_level_for_all(level: str) -> None:
    with flags.OPT(level), held():
        f = hf.function(normalized)
        f(hf.asarray(X))
        assert tiers_of(f).level == int(level) and tiers_of(f).is_last
        assert not background._better.waiting


def test_one_thread_has_nothing_behind() -> None:
    thread_pool.set_threads(1)
    f = hf.function(normalized)
    f(hf.asarray(X))
    assert tiers_of(f).level == 2 and not background._better.waiting and not background.is_at_work()


def test_setting_one_thread_waits_for_what_is_behind() -> None:
    f = hf.function(normalized)
    f(hf.asarray(X))
    hf.config.set_num_threads(1)
    assert not background.is_at_work() and tiers_of(f).level == 2


def test_long_first_runs_start_at_level_2() -> None:
    with held():
        f = hf.function(lambda x: x @ x)
        f.get_concrete_function(hf.TensorSpec([2048, 2048]))
        assert tiers_of(f).level == 2
        g = hf.function(lambda x: x @ x)
        g.get_concrete_function(hf.TensorSpec([32, 32]))
        assert tiers_of(g).level == 0


def test_loops_of_unknown_length_start_at_level_2() -> None:
    @hf.function
    def f(x):
        while hf.sum(x) < 100.0:
            x = x * 2.0
        return x

    @hf.function
    def g(x):
        for _ in hf.arange(10):
            x = x * 2.0
        return x

    with held():
        assert f(hf.ones(3)).tolist() == [64.0] * 3
        assert g(hf.ones(3)).tolist() == [1024.0] * 3
        assert tiers_of(f).level == 2 and tiers_of(g).level == 0


def test_wait() -> None:
    f = hf.function(normalized, wait=True)
    with held():
        f(hf.asarray(X))
        assert tiers_of(f).level == 2
    other = hf.function(lambda x: normalized(x - 1.0), wait=False)
    with held():
        other(hf.asarray(X))
        assert tiers_of(other).level == 0


def test_compile_ahead_runs_nothing() -> None:
    ran = []

    @hf.function
    def f(x):
        hf.py_function(lambda: ran.append(1), [], [])
        return normalized(x)

    with held():
        concrete = f.compile(hf.TensorSpec(X.shape))
        assert concrete is f.concrete_functions()[0] and not ran
        assert tiers_of(f).level == 2
        f(hf.asarray(X))
        assert len(f.signatures()) == 1 and ran == [1]


def test_compile_after_a_call_and_while_it_is_made_behind() -> None:
    f = hf.function(normalized)
    with held():
        expected = bits(f(hf.asarray(X)))
        f.compile(hf.asarray(X))
        assert tiers_of(f).level == 2 and tiers_of(f).is_last
        assert bits(f(hf.asarray(X))) == expected
    background.wait()
    assert tiers_of(f).level == 2 and len(f.concrete_functions()[0].executable._codes) == 2
    g = hf.function(lambda x: normalized(x + 1.0))
    g(hf.asarray(X))
    g.compile(hf.asarray(X))
    assert tiers_of(g).level == 2


def test_compile_is_no_part_of_a_trace() -> None:
    inner = hf.function(lambda x: x + 1.0)

    @hf.function
    def outer(x):
        inner.compile(x)
        return x

    with pytest.raises(errors.TraceError, match="compiles ahead of calls") as raised:
        outer(hf.ones(3))
    assert "test_tiers.py" in str(raised.value)


def test_profiles_are_of_level_2() -> None:
    f = hf.function(normalized)
    with held():
        f(hf.asarray(X))
        profile = f.profile(hf.asarray(X), runs=2)
    assert profile.level == 2 and "code of level 2" in str(profile)


def test_nothing_is_made_for_functions_that_are_gone() -> None:
    f = hf.function(normalized)
    with held():
        f(hf.asarray(X))
        gone = weakref.ref(f.concrete_functions()[0].executable)
        before = code_store.counts().compiled
        f.cache_clear()
        del f
        gc.collect()
        assert gone() is None
    background.wait()
    assert code_store.counts().compiled == before


def test_tiers_that_outlive_their_code_keep_nobody_busy() -> None:
    f = hf.function(normalized)
    with held():
        f(hf.asarray(X))
        executable = weakref.ref(f.concrete_functions()[0].executable)
        kept = tiers_of(f)
        f.cache_clear()
        del f
        gc.collect()
        assert executable() is None and not kept.is_last
    waiting = threading.Thread(target=background.wait, daemon=True)
    waiting.start()
    waiting.join(300)
    try:
        assert not waiting.is_alive()
    finally:
        background._better.waiting.clear()  # else it would go on for good
    assert kept.level == 0


def test_errors_behind_leave_the_quick_code(monkeypatch: pytest.MonkeyPatch) -> None:
    f = hf.function(normalized)
    real = machine_code.compile_serially

    def fail(*_: Any) -> bytes:
        raise errors.CompileError("machine code", "no")

    monkeypatch.setattr(machine_code, "compile_serially", fail)
    expected = bits(f(hf.asarray(X)))
    background.wait()
    assert tiers_of(f).level == 0 and bits(f(hf.asarray(X))) == expected
    monkeypatch.setattr(machine_code, "compile_serially", real)
    f.compile(hf.asarray(X))
    assert tiers_of(f).level == 2 and bits(f(hf.asarray(X))) == expected


def test_first_calls_do_not_wait_for_what_is_made_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even those of an equal program."""
    inside, go_on, real = threading.Event(), threading.Event(), machine_code.compile_serially

    def slow(*given: Any) -> bytes:
        inside.set()
        assert go_on.wait(300)
        return real(*given)

    monkeypatch.setattr(machine_code, "compile_serially", slow)
    f = hf.function(normalized)
    expected = bits(f(hf.asarray(X)))
    assert inside.wait(300)
    try:
        assert bits(hf.function(normalized)(hf.asarray(X))) == expected
        assert bits(hf.function(lambda x: normalized(x * 1.0))(hf.asarray(X))) == expected
    finally:
        go_on.set()
    background.wait()
    assert tiers_of(f).level == 2


STRESS = """
import concurrent.futures.thread, faulthandler, logging, os, random, signal, sys, threading, time
faulthandler.enable()
import numpy as np, numpy.testing
import hybridflow as hf
from hybridflow.runtime import background

signal.signal(signal.SIGALRM, signal.default_int_handler)
rng = np.random.default_rng(int(sys.argv[1]))
is_over = threading.Event()
shapes = [(7 + k, 19 + int(sys.argv[1]) % 5 + k) for k in range(12)]
given = [rng.random(shape).astype(np.float32) for shape in shapes]

def compute(x):
    return hf.nn.softmax(hf.tanh(x @ hf.matrix_transpose(x))), hf.cumulative_sum(x, axis=0)

def check(f, x):
    one, two = f(hf.asarray(x))
    y = np.tanh(x @ x.T)
    y = np.exp(y - y.max(-1, keepdims=True))
    np.testing.assert_allclose(one.numpy(), y / y.sum(-1, keepdims=True), rtol=2e-5)
    np.testing.assert_allclose(two.numpy(), np.cumsum(x, axis=0), rtol=2e-5)
    return one.numpy().tobytes(), two.numpy().tobytes()

failed, first = [], {}

def work(seed):
    own = random.Random(seed)
    f = hf.function(compute, reduce_retracing=False)
    try:
        while not is_over.is_set():
            if own.random() < 0.002:
                f = hf.function(compute, reduce_retracing=False)
            k = own.randrange(len(given))
            found = check(f, given[k])
            if first.setdefault(k, found) != found:
                failed.append(f"other bits, {k}")
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
for thread in threads: thread.start()
f = hf.function(compute, reduce_retracing=False)
children, interrupts = [], 0
for k in range(5):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05 * (1 + k), 20)  # again, as callbacks of the collector lose one
        while True: check(f, given[k])
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        interrupts += 1
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            faulthandler.dump_traceback_later(600, exit=True)
            found = check(f, given[k])
            background.wait()
            ok = check(f, given[k]) == found and first.setdefault(k, found) == found
            code = 0 if ok else 3
        except BaseException as error:
            os.write(2, repr(error).encode())
            code = 4
        os._exit(code)
    children.append(child)
is_over.set()
for thread in threads: thread.join()
states = [os.waitpid(child, 0)[1] for child in children]
print(failed, states, interrupts)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("seed", [1, 2])
def test_tiers_are_swapped_while_threads_call_fork_and_interrupt(seed: int, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HF_CACHE_DIR": "off",
        "HF_OPT": "auto",
        "HF_NUM_THREADS": "2",
    }
    command = [sys.executable, "-W", "ignore", "-c", STRESS, str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[] [0, 0, 0, 0, 0] 5\n", (done.stdout, done.stderr)


def test_the_end_of_the_process_waits_for_one_part_at_the_most(tmp_path: Path) -> None:
    program = """
import atexit, collections
began, ended = [], []
atexit.register(lambda: print(len(began) - ended[0] <= 1))  # the first that is registered is the last to run
import numpy as np, hybridflow as hf
from hybridflow.runtime import background

class Waiting(collections.deque):
    def clear(self):  # as the process ends
        ended.append(len(began))
        super().clear()

def counted(work):
    def begin():
        began.append(work)
        work()
    return begin

x = hf.asarray(np.ones((20, 30), np.float32))
background._hold()
functions = [hf.function(lambda x, k=k: hf.tanh(x @ hf.matrix_transpose(x)) + float(k)) for k in range(30)]
for f in functions: f(x)
background._better.waiting = Waiting(map(counted, background._better.waiting))
print(len(background._better.waiting) > 20)
background._let_go()
"""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HF_CACHE_DIR": "off",
        "HF_OPT": "auto",
        "HF_NUM_THREADS": "2",
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"] and not done.stderr


def test_what_a_short_program_has_for_threads_comes_with_its_better_code() -> None:
    f = hf.function(lambda x: hf.sum(x * x))
    x = hf.asarray(np.random.default_rng(1).random(1 << 18, np.float32))
    with held():
        first, second = bits([f(x)]), bits([f(x)])
        executable = f.concrete_functions()[0].executable
        assert executable.shared.value == 0 and tiers_of(f).level == machine_code.QUICK
    background.wait()
    assert executable.shared.value > 1 and tiers_of(f).is_last
    assert first == second == bits([f(x)])


def test_a_long_program_has_it_from_the_start() -> None:
    f = hf.function(lambda x: hf.sum(hf.sin(x)))
    with held():
        f(hf.ones(1 << 23))
        assert f.concrete_functions()[0].executable.shared.value > 1
