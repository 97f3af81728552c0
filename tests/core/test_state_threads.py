"""Writers of a variable take turns, those of different ones run side by side, and a reader sees a value as it was or
as it is: whatever runs beside it, tapes, new shapes, errors, forks and interrupts included."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core import variable as variable_module
from hybridflow.core.context import current
from hybridflow.core.tensor import wrap
from hybridflow.core.variable import current_values
from hybridflow.errors import IndexRangeError
from hybridflow.runtime.calls import variable_locks

LARGE = 400_000  # elements: programs give up the interpreter's lock
FOR_EVER = 300  # seconds, on a busy machine


@pytest.fixture(autouse=True)
def hasty():
    """Threads change often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*works, seconds=0.5, until=all):
    """Call each in a thread of its own, over and over, for some time, and then until the counts of the calls are so;
    the counts.  Raises what one raises."""
    failures, counts, begin = [], [0] * len(works), time.monotonic()

    def goes_on():
        time_left = begin + FOR_EVER - time.monotonic()
        return not failures and time_left > 0 and (FOR_EVER - time_left < seconds or not until(counts))

    def loop(k):
        try:
            while goes_on():
                works[k]()
                counts[k] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=loop, args=(k,), daemon=True) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * FOR_EVER)
        assert not thread.is_alive(), "a thread waits for ever"
    if failures:
        raise failures[0]
    assert until(counts), counts
    return counts


def same(array):
    assert array.min() == array.max(), f"a mixture of {array.min()} and {array.max()}"
    return float(array.flat[0])


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, LARGE])
@pytest.mark.parametrize("with_tape", [False, True])
def test_readers_see_whole_values_and_no_update_is_lost(n, with_tape):
    v, w = hf.Variable(np.zeros(n, np.float32)), hf.Variable(np.zeros(n, np.float32))
    one, bad = hf.ones((n,)), hf.asarray([n])

    @hf.function
    def step(x):
        v.assign_add(x)
        w.assign_add(x)

    @hf.function
    def reversed_step(x):
        w.assign_add(x)
        v.assign_add(x)

    @hf.function
    def failing(x, i):
        v.assign_add(x)
        w.assign_add(hf.take(x, i)[0])

    read = hf.function(lambda: (hf.min(v), hf.max(v)))
    kept = []

    def reader():
        value = v.value()
        kept.append((value, same(value.numpy())))
        for old, was in kept[-4:]:
            assert same(old.numpy()) == was, "an old value changed"
        low, high = read()
        assert low.item() == high.item()

    def under_a_tape():
        with hf.GradientTape() as tape:
            y = hf.sum(v * v)
            step(one)
            same(v.numpy())
        assert same(tape.gradient(y, v).numpy()) >= 0

    def fails():
        with pytest.raises(IndexRangeError):
            failing(one, bad)

    def eagerly():
        v.assign_add(one)
        w.assign_add(one)

    works = [lambda: step(one), lambda: reversed_step(one), eagerly, reader, fails]
    counts = together(*works, *[under_a_tape] * with_tape, seconds=0.75)
    done = counts[0] + counts[1] + counts[2] + sum(counts[5:])
    assert same(v.numpy()) == same(w.numpy()) == done


def test_new_shapes_are_traced_beside_steps():
    v = hf.Variable(np.zeros(1000, np.float32))

    @hf.function
    def step(x):
        v.assign_add(hf.full((1000,), 1.0) + 0 * hf.sum(x))

    sizes = itertools.count()
    counts = together(
        lambda: step(hf.ones((4,))), lambda: step(hf.ones((next(sizes) % 40 + 1,))), lambda: same(v.numpy())
    )
    assert same(v.numpy()) == counts[0] + counts[1]


def test_a_large_step_gives_up_the_interpreters_lock():
    v = hf.Variable(np.zeros(LARGE, np.float32))
    x = hf.ones((LARGE,))

    @hf.function
    def step(x):
        v.assign(hf.sin(v + x))

    for _ in range(3):
        step(x)
    seen = set()
    look = lambda: seen.add(v._gate.words[variable_locks.RUNNING])  # noqa: E731
    together(
        lambda: step(x), look, until=lambda _: variable_locks.IN_PLACE in seen
    )  # else nobody can look while it runs
    assert v._own is v._tensor


def test_different_models_run_at_the_same_time():
    models = [hf.Variable(np.zeros(LARGE, np.float32)) for _ in range(2)]
    x = hf.ones((LARGE,))

    def step_of(v):
        return hf.function(lambda x: v.assign(hf.sin(v + x)).shape[0])

    first, second = map(step_of, models)
    most = [0]

    def look():
        most[0] = max(most[0], sum(bool(v._gate.words[variable_locks.RUNNING]) for v in models))

    together(lambda: first(x), lambda: second(x), look, until=lambda _: most[0] == 2)


def test_turns_in_any_order_never_lock_up():
    """Calls through Python, which wait for each other: of any two, one came first."""
    variables = [hf.Variable(np.zeros(16, np.float32)) for _ in range(4)]
    one = {"x": hf.ones((16,))}

    def step_of(order):
        @hf.function
        def step(box):
            for k in order:
                variables[k].assign_add(box["x"])

        return lambda: step(one)

    orders = [(0, 1, 2), (2, 1, 0), (3, 0), (1, 3), (2,)]
    counts = together(*map(step_of, orders), seconds=0.75)
    for k, v in enumerate(variables):
        assert same(v.numpy()) == sum(n for order, n in zip(orders, counts) if k in order)


def test_nobody_starves_behind_a_busy_writer():
    v = hf.Variable(np.zeros(LARGE, np.float32))
    x = hf.ones((LARGE,))
    step = hf.function(lambda x: v.assign_add(x).shape[0])
    works = [lambda: step(x), lambda: v.assign_add(x), lambda: same(v.numpy())]
    counts = together(*works, until=lambda counts: min(counts) >= 5)
    assert same(v.numpy()) == counts[0] + counts[1]


class _Writing:
    """Writes a variable when it goes."""

    def __init__(self, variable):
        self.variable = variable

    def __del__(self):
        self.variable.assign_add(1.0)
        self.variable.numpy()


def test_a_finalizer_may_write_what_is_being_written():
    v = hf.Variable(np.zeros(4, np.float32))

    def action():
        assert variable_locks.with_locks((v._gate,), lambda: 5) == 5
        held = _Writing(v)
        del held
        return v.numpy()[0]

    others = hf.Variable(0.0)
    counts = together(
        lambda: variable_locks.with_locks((v._gate,), action),
        lambda: variable_locks.with_locks((others._gate, v._gate), lambda: _Writing(others) and None),
    )
    assert same(v.numpy()) == counts[0] and others.item() == counts[1]


def test_an_interrupted_turn_holds_nobody_up():
    v = hf.Variable(0.0)
    for error in (KeyboardInterrupt, SystemExit, ValueError):
        with pytest.raises(error):
            variable_locks.with_locks((v._gate,), lambda error=error: (_ for _ in ()).throw(error))
    entered, over = threading.Event(), threading.Event()

    def hold():
        variable_locks.with_locks((v._gate,), lambda: (entered.set(), over.wait(300)))

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(300)
    waiting = variable_locks._LockRequest(
        (v._gate,)
    )  # one that is interrupted while it waits: it never comes to an end properly
    with waiting.lock:
        waiting.enter()
    waiting.leave()
    third = []
    action = lambda: (third.append(over.is_set()), v.assign_add(1.0))  # noqa: E731
    last = threading.Thread(target=lambda: variable_locks.with_locks((v._gate,), action))
    last.start()
    last.join(0.2)
    assert not third, "it did not wait for the first"
    over.set()
    last.join(300)
    holder.join(300)
    assert third == [True] and v.item() == 1
    step = hf.function(lambda: v.assign_add(1.0).shape)
    for _ in range(3):
        step()
    assert v.item() == 4 and not v._gate.words[variable_locks.CLAIMED]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("nested", [False, True])
def test_a_child_finds_whole_values_and_free_turns(nested):
    v = hf.Variable(np.zeros(LARGE, np.float32))

    @hf.function
    def step(box):
        v.assign_add(box["x"] if isinstance(box, dict) else box)

    x = hf.ones((LARGE,))
    argument = {"x": x} if nested else x
    step(argument)
    over = threading.Event()

    def work():
        while not over.is_set():
            step(argument)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            child = os.fork()
            if not child:
                code = 1
                try:
                    found = v.numpy()
                    before = float(found[0])
                    whole = found.min() == found.max()
                    for _ in range(2):
                        step(argument)
                    v.assign_add(x)
                    code = 0 if whole and (v.numpy() == before + 3).all() else 2
                finally:
                    os._exit(code)
            end = time.monotonic() + FOR_EVER
            while (result := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
                time.sleep(0.005)
            if result[0] == 0:
                os.kill(child, 9)
                os.waitpid(child, 0)
            assert result[0] and os.waitstatus_to_exitcode(result[1]) == 0
    finally:
        over.set()
        for thread in threads:
            thread.join()
    same(v.numpy())


@pytest.mark.parametrize("n", [4, LARGE])
@pytest.mark.parametrize("way", ["nested arguments", "tape", "native"])
def test_one_call_reads_all_variables_at_one_moment(n, way):
    """A step updates several variables, one of which others see, so that it gets new memory; a call reads them all."""
    variables = [hf.Variable(np.zeros(n, np.float32)) for _ in range(5)]
    one = hf.ones((n,))

    @hf.function
    def step(x):
        for v in variables:
            v.assign_add(x)

    @hf.function
    def read(box):
        return [hf.max(v) for v in variables] + [hf.min(v) for v in variables]

    @hf.function
    def failing(x, i):
        step(x)
        return hf.take(x, i)

    def reader():
        if way == "tape":
            with hf.GradientTape():
                found = read(one)
        else:
            found = read(one if way == "native" else [one])
        assert len({x.item() for x in found}) == 1, [x.item() for x in found]

    def fails():
        with pytest.raises(IndexRangeError):
            failing(one, [n])

    together(lambda: step(one), reader, lambda: variables[2].value(), fails, reader)


class _Writers:
    """Others that come and go while a thread reads variables, played in that thread, one at a time: programs that
    update all variables without the interpreter's lock, and readers that let the values be seen."""

    def __init__(self, variables, rng):
        self.variables, self.rng = variables, rng
        self.number = 0.0  # what the last program that is over has written
        self.in_place, self.fresh = [], []  # of the program that runs: the variables it writes, those it replaces
        self.done = 0

    def step(self):
        """Anything that may happen at this moment."""
        action = self.rng.choice([self.begin, self.end, self.end, self.see, lambda: None, lambda: None])
        action()

    def begin(self):
        words = [v._gate.words for v in self.variables]
        if any(w[variable_locks.CLAIMED] or w[variable_locks.RUNNING] for w in words):
            return
        for v, word in zip(self.variables, words):
            own = v._own is v._tensor
            (self.in_place if own else self.fresh).append(v)
            word[variable_locks.RUNNING] = variable_locks.IN_PLACE if own else variable_locks.ELSEWHERE
            if own:
                v._tensor._array[:1] = self.number + 1  # the first half

    def end(self):
        if not self.in_place and not self.fresh:
            return
        self.number += 1
        self.done += 1
        for v in self.in_place:
            v._tensor._array[:] = self.number
        for v in self.fresh:
            v._tensor = v._own = wrap(np.full(2, self.number, np.float32))
        for v in self.variables:
            v._gate.words[variable_locks.RUNNING] = 0
        self.in_place, self.fresh = [], []

    def see(self):
        self.rng.choice(self.variables)._own = None

    def wait(self, condition):
        while not condition():
            self.end()
            if not condition() and self.rng.random() < 0.7:  # it looks late: the next one is there
                self.begin()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("chance", [0.05, 0.3, 1.0])
def test_a_reader_is_right_whatever_others_do_between_its_steps(count, chance, monkeypatch):
    done = 0
    for seed in range(300):
        rng = random.Random(seed)
        variables = [hf.Variable(np.zeros(2, np.float32)) for _ in range(count)]
        writers = _Writers(variables, rng)
        monkeypatch.setattr(variable_locks, "_wait", writers.wait)
        for v in variables:
            v._own = v._tensor

        def look(frame, event, arg, writers=writers, rng=rng):
            if frame.f_globals.get("__name__") not in (variable_module.__name__, variable_locks.__name__):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_code.co_name not in ("wait", "enter", "leave") and rng.random() < chance:
                writers.step()
            return look

        before = sys.gettrace()
        sys.settrace(look)
        try:
            found = current_values(variables)
        finally:
            sys.settrace(before)
        values = [same(x.numpy()) for x in found]
        assert len(set(values)) == 1, "values of different moments"
        for _ in range(20):
            writers.step()
        writers.end()
        assert [same(x.numpy()) for x in found] == values, "somebody writes into what was read"
        assert not any(v._gate.words[variable_locks.CLAIMED] for v in variables)
        done += writers.done
    assert done > 300


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals")
def test_a_signal_handler_may_write_what_its_thread_waits_for():
    v = hf.Variable(0.0)
    entered, over, called, order = threading.Event(), threading.Event(), threading.Event(), []

    def handler(*_):
        called.set()
        v.assign_add(1.0)
        order.append("handler")

    def hold():
        variable_locks.with_locks((v._gate,), lambda: (entered.set(), over.wait(300), order.append("holder")))

    def interrupt():
        while v._gate.last.thread != threading.main_thread().ident:
            time.sleep(0.001)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        called.wait(300)
        over.set()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        threads = [threading.Thread(target=hold), threading.Thread(target=interrupt)]
        threads[0].start()
        entered.wait(300)
        threads[1].start()
        variable_locks.with_locks((v._gate,), lambda: order.append(f"main {v._gate.words[variable_locks.CLAIMED]}"))
        for thread in threads:
            thread.join(300)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert order == ["holder", "handler", "main 1"]
    assert v.item() == 1 and not v._gate.words[variable_locks.CLAIMED] and v._gate.last is None


def test_a_tape_that_another_thread_has_closed_is_forgotten():
    def generator():
        with hf.GradientTape() as tape:
            yield tape

    held = generator()
    tape = next(held)
    thread = threading.Thread(target=lambda: list(held))
    thread.start()
    thread.join()
    with hf.GradientTape() as other:
        assert current.tapes == (other,)
    assert current.tapes == () and tape not in current.tapes
