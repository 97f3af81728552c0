"""Ctrl-C in compiled loops: the interrupt arrives, variables are whole, and the process goes on.

Each program runs in a process of its own, which sends itself a real signal.  Nothing is said of how long it takes but
that it ends: without the interrupt none of these loops does.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import hybridflow as hf
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import INTERRUPT_POLL
from hybridflow.compiler.target import AVX2, CUDA_SM80
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.runtime import interrupt_checks

LIMIT = 600  # seconds, for a machine that does much else

PRELUDE = """
import contextlib, ctypes, os, signal, sys, threading, time
import numpy as np
import hybridflow as hf

def interrupt():
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

@contextlib.contextmanager
def interrupted():
    over = threading.Event()

    def send():
        os.kill(os.getpid(), signal.SIGINT)
        while not over.wait(20):  # Python drops one that comes within a finalizer, or a callback of the collector
            os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.1, send)
    timer.daemon = True
    try:
        timer.start()
        yield
    except KeyboardInterrupt:
        over.set()
        return
    raise SystemExit("it was not interrupted")

@hf.function
def endless(x):
    while x > 0:
        x = x * 0.5 + 1
    return x
"""


def run(program: str, *arguments: str, stdin: str | None = None) -> str:
    """What a program prints, which has to end by itself."""
    command = [sys.executable, *(arguments or ("-c", PRELUDE + program))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, input=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loops_of_all_kinds_end_and_leave_variables_as_they_were() -> None:
    program = """
v = hf.Variable(hf.ones((4,)))

@hf.function
def over_arrays(x):
    while hf.sum(x) > 0:
        x = hf.tanh(x @ x) + 1
    return x

@hf.function
def nested(x):
    while x > 0:
        k = hf.asarray(0)
        while k < 3:
            k = k + 1
        x = x * 0.5 + k.astype(hf.float32)
    return x

@hf.function
def counted(n):
    return hf.fori_loop(0, n, lambda i, c: c * 0.5 + 1, hf.asarray(1.0))

@hf.function
def inside_of_a_walk(rows):
    for row in rows:
        while row > 0:
            row = row * 0.5 + 1
    return row

@hf.function
def training(x):
    v.assign_add(hf.ones((4,)))
    with hf.GradientTape() as tape:
        y = v * 1.0
        while x > 0:
            y = hf.tanh(y) * v
        loss = hf.sum(y)
    v.assign_sub(tape.gradient(loss, v))

@hf.function
def calling(x):
    n = hf.asarray(0)
    while x > 0:
        n = n + hf.py_function(lambda value: value + 1, [n], hf.TensorSpec((), hf.int64))
    return n

def taped(x):
    with hf.GradientTape() as tape:
        tape.watch(x)
        endless(x)

cases = [
    (endless, hf.asarray(1.0)), (over_arrays, hf.ones((30, 30))), (nested, hf.asarray(1.0)),
    (counted, hf.asarray(10**17)), (inside_of_a_walk, hf.ones(3)), (training, hf.asarray(1.0)),
    (calling, hf.asarray(1.0)), (taped, hf.asarray(1.0)),
]
for f, x in cases * 2:
    with interrupted():
        f(x)
    assert np.array_equal(v.numpy(), np.ones(4)), f
    assert endless(hf.asarray(-1.0)).item() == -1
    training(hf.asarray(-1.0))
    v.assign(hf.ones((4,)))
print("done")
"""
    assert run(program) == "done\n"


def test_threads_that_loop_leave_the_lock_to_others_and_end_by_what_is_raised_in_them() -> None:
    program = """
started, ended = threading.Event(), []

def work():
    started.set()
    try:
        endless(hf.asarray(1.0))
    except ZeroDivisionError:
        ended.append(True)

endless(hf.asarray(-1.0))  # compiled: what is raised in the thread meets the loop
thread = threading.Thread(target=work)
thread.start()
started.wait()
with interrupted():
    while True:
        time.sleep(0.01)
assert thread.is_alive()  # the interrupt is the main thread's
ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(ZeroDivisionError))
thread.join()
assert ended == [True] and endless(hf.asarray(-1.0)).item() == -1
started.clear()
threading.Thread(target=work, daemon=True).start()
started.wait()
print("done")  # the process ends while a loop goes on
"""
    assert run(program) == "done\n"


def test_a_handler_may_read_and_write_the_variables_of_the_loop() -> None:
    program = """
v = hf.Variable(1.0)
seen = []

@hf.function
def step(x):
    v.assign_add(1.0)
    while x > 0:
        v.assign_add(1.0)

def handler(number, frame):
    seen.append(v.numpy().item())
    v.assign(7.0)
    seen.append(v.numpy().item())
    raise KeyboardInterrupt

step(hf.asarray(-1.0))
signal.signal(signal.SIGINT, handler)
with interrupted():
    step(hf.asarray(1.0))
assert seen == [2, 7] and v.numpy() == 7, (seen, v)
step(hf.asarray(-1.0))
assert v.numpy() == 8
print("done")
"""
    assert run(program) == "done\n"


def test_a_console_and_the_command_line_go_on_or_say_so(tmp_path: Path) -> None:
    file = tmp_path / "loops.py"
    file.write_text(PRELUDE)
    typed = "interrupt(); endless(hf.asarray(1.0))\nendless(hf.asarray(-1.0)).item()\n"
    assert run("", "-i", "-q", str(file), stdin=typed).rstrip() == "-1.0"
    signature = "endless = hf.function(endless.__wrapped__, input_signature=[hf.TensorSpec(())])\n"
    file.write_text(PRELUDE + "interrupt()\n" + signature)
    command = [sys.executable, "-m", "hybridflow", "profile", f"{file}::endless"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode != 0
    assert "interrupted" in done.stderr and "Traceback" not in done.stderr


def _text(concrete: ConcreteFunction, target: object) -> str:
    return compile_graph(concrete.graph, target).text  # type: ignore[arg-type]


def test_only_loops_that_may_be_long_look_and_none_on_a_gpu() -> None:
    def turns(length: int) -> str:
        step = hf.function(lambda x: hf.fori_loop(0, length, lambda i, c: c * 0.5 + 1, x))
        return _text(step.get_concrete_function(hf.asarray(1.0)), AVX2)

    assert INTERRUPT_POLL not in turns(1000)
    assert INTERRUPT_POLL in turns(10**8)
    loop = hf.function(lambda x: hf.while_loop(lambda x: x > 0, lambda x: x * 0.5, (x,)))
    concrete = loop.get_concrete_function(hf.asarray(1.0))
    assert INTERRUPT_POLL in _text(concrete, AVX2)
    assert INTERRUPT_POLL not in _text(concrete, CUDA_SM80)


def test_what_a_thread_kept_meets_no_later_one() -> None:
    """Systems give the numbers of threads that have ended to others."""

    def raises() -> int:
        raise KeyboardInterrupt

    def leaves() -> None:
        numbers.add(threading.get_ident())
        assert interrupt_checks.keeping(raises)() == 1

    def asks() -> None:
        again.append(threading.get_ident() in numbers)
        try:
            interrupt_checks.raise_pending()
        except KeyboardInterrupt:
            wrong.append(True)

    numbers: set[int] = set()
    again: list[bool] = []
    wrong: list[bool] = []
    for work in [leaves, asks] * 20:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert any(again) and not wrong
    leaves()
    with pytest.raises(KeyboardInterrupt):
        interrupt_checks.raise_pending()
    interrupt_checks.raise_pending()
