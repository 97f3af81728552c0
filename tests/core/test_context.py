"""Tapes, traces and device scopes belong to the context that opened them: a thread, an asyncio task."""

import asyncio
import contextvars
import gc
import threading

import pytest

import hybridflow as hf
from hybridflow.core.context import busy, idle, now
from hybridflow.runtime.calls import entry
from hybridflow.runtime.native import object_layout

native = pytest.mark.skipif(object_layout.problem() is not None, reason="native calls are off here")


@pytest.fixture(autouse=True)
def undisturbed():
    gc.collect()  # states that another test left in cycles
    assert busy.value == 0 and now() is idle
    yield
    gc.collect()
    assert busy.value == 0 and now() is idle


def in_thread(job):
    thread = threading.Thread(target=job)
    thread.start()
    thread.join(300)
    assert not thread.is_alive()


class Slow:
    """A compiled function that counts the calls which did not stay native."""

    def __init__(self):
        self.function = hf.function(lambda x: x + 1.0)
        self.x = hf.ones(3)
        for _ in range(3):
            self.function(self.x)

    def python_calls(self, calls=5):
        variant = self.function._cache.variants()[0]
        before = variant.python_calls
        for _ in range(calls):
            assert self.function(self.x).tolist() == [2.0, 2.0, 2.0]
        return variant.python_calls - before


@native
def test_a_tape_in_one_thread_leaves_the_others_native():
    function = Slow()
    opened, done = threading.Event(), threading.Event()

    def hold():
        with hf.GradientTape():
            opened.set()
            done.wait(300)

    thread = threading.Thread(target=hold)
    thread.start()
    opened.wait(300)
    try:
        assert busy.value == 1 and function.python_calls() == 0
        with hf.GradientTape() as tape:
            assert function.python_calls() == 0  # nobody has to be told of them
            tape.watch(function.x)
            assert function.python_calls() == 5
        assert function.python_calls() == 0
    finally:
        done.set()
        thread.join(300)


@native
def test_a_scope_in_one_thread_leaves_the_ops_of_others_native():
    x = hf.ones(3)
    for _ in range(3):
        hf.exp(x)
    opened, done = threading.Event(), threading.Event()

    def hold():
        with hf.device("cpu"):
            opened.set()
            done.wait(300)

    thread = threading.Thread(target=hold)
    thread.start()
    opened.wait(300)
    try:
        assert now() is idle and (x + x).tolist() == [2.0] * 3 and hf.negative(x).tolist() == [-1.0] * 3
    finally:
        done.set()
        thread.join(300)


@native
def test_a_thread_that_ended_inside_a_tape_leaves_nothing_behind():
    function = Slow()

    def die():
        hf.GradientTape().__enter__()
        hf.device("cpu").__enter__()
        assert busy.value

    in_thread(die)
    assert busy.value == 0 and function.python_calls() == 0


def test_reasons_of_the_process_hold_everywhere():
    function = Slow()
    hf.config.run_functions_eagerly(True)
    try:
        counts = []
        in_thread(lambda: counts.append(function.function(function.x).tolist()))
        assert counts == [[2.0] * 3] and not entry.front_end.is_idle() and busy.value == 1
    finally:
        hf.config.run_functions_eagerly(False)


def test_tasks_with_tapes_do_not_record_each_other():
    async def job(power, steps):
        x = hf.constant(3.0)
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x
            for _ in range(power - 1):
                y = y * x
                await asyncio.sleep(0)
        steps.append(len(tape._records()))
        return tape.gradient(y, x).item()

    async def main():
        steps = []
        found = await asyncio.gather(*(job(power, steps) for power in (2, 3, 4, 5)))
        assert sorted(steps) == [1, 2, 3, 4]
        return found

    assert asyncio.run(main()) == [power * 3.0 ** (power - 1) for power in (2, 3, 4, 5)]


def test_tasks_watch_the_variables_that_they_read():
    v, w = hf.Variable(2.0), hf.Variable(3.0)

    async def job(variable):
        with hf.GradientTape() as tape:
            await asyncio.sleep(0)
            y = variable * variable
            await asyncio.sleep(0)
        assert tape.watched_variables() == (variable,)
        return tape.gradient(y, variable).item()

    async def main():
        return await asyncio.gather(job(v), job(w))

    assert asyncio.run(main()) == [4.0, 6.0]


def test_a_task_made_inside_a_tape_is_recorded_while_the_tape_is_open():
    x = hf.constant(3.0)

    async def square():
        await asyncio.sleep(0)
        return x * x

    async def main():
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = await asyncio.create_task(square())
            late = asyncio.create_task(square())
        z = await late
        assert len(tape._records()) == 1
        assert tape.gradient(z, x) is None
        return tape.gradient(y, x).item()

    assert asyncio.run(main()) == 6.0


def test_threads_started_inside_a_tape_are_not_recorded():
    x, found = hf.constant(3.0), []
    with hf.GradientTape() as tape:
        tape.watch(x)
        in_thread(lambda: found.append(x * x))
    assert tape.gradient(found[0], x) is None


def test_a_tape_left_in_another_context_stops_recording_there():
    x = hf.constant(3.0)
    tape = hf.GradientTape(persistent=True)
    tape.watch(x)
    elsewhere = contextvars.copy_context()
    elsewhere.run(tape.__enter__)
    y = elsewhere.run(lambda: x * x)
    assert now() is idle
    tape.__exit__(None, None, None)
    z = elsewhere.run(lambda: x * x)
    assert tape.gradient(y, x).item() == 6.0 and tape.gradient(z, x) is None


def test_scopes_follow_the_task():
    async def inner():
        return now().device

    async def main():
        with hf.device("cpu"):
            task = asyncio.create_task(inner())
        return await task, now().device

    assert asyncio.run(main()) == ("cpu", None)


def test_tapes_that_overlap_without_nesting():
    x = hf.constant(2.0)
    a, b = hf.GradientTape(), hf.GradientTape()
    a.watch(x)
    b.watch(x)
    a.__enter__()
    y = x * x
    b.__enter__()
    z = y * x
    a.__exit__(None, None, None)
    u = x * x
    b.__exit__(None, None, None)
    assert a.gradient(z, x).item() == 12.0 and b.gradient(u, x).item() == 4.0


def test_a_tape_stopped_while_hidden_by_a_trace_is_out_afterwards():
    x = hf.constant(2.0)

    @hf.function
    def f(x):
        tape._pause()
        return x * x

    with hf.GradientTape() as tape:
        tape.watch(x)
        f(x)
        x * x
    assert not tape._records()


def test_a_tape_made_before_its_block_watches_variables():
    v = hf.Variable(3.0)
    tape = hf.GradientTape(watch_accessed_variables=False)
    tape.watch(v)
    with tape:
        y = v * v
    assert tape.gradient(y, v).item() == 6.0
