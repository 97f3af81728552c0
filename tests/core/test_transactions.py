"""A call that raises leaves every variable as it was, and the error is that of the first check in program order."""

from __future__ import annotations

import collections
import contextlib
import signal
import threading
import time

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core.context import transactions
from hybridflow.errors import DivisionError, IndexRangeError

pytestmark = pytest.mark.code


@pytest.fixture(params=["compiled", "eager", "nested", "tape"])
def mode(request):
    """How a function is called."""
    hf.config.run_functions_eagerly(request.param == "eager")
    yield request.param
    hf.config.run_functions_eagerly(False)


def call(mode, f, *args):
    if mode == "nested":
        return hf.function(lambda *a: f(*a))(*args)
    if mode == "tape":
        with hf.GradientTape():
            return f(*args)
    return f(*args)


def values(*variables):
    return [v.numpy().tolist() for v in variables]


def test_updates_around_a_failing_check_do_not_happen(mode):
    a, b = hf.Variable([1.0, 2.0]), hf.Variable([40.0, 50.0])

    @hf.function
    def step(x, i):
        a.assign_add(x)
        z = hf.take(x, i)
        b.assign_add(z[0])
        return hf.sum(b)

    x, good, bad = hf.asarray([1.0, 1.0]), hf.asarray([1]), hf.asarray([9])
    for k in range(3):
        for _ in range(3):
            with pytest.raises(IndexRangeError):
                call(mode, step, x, bad)
            assert values(a, b) == [[1.0 + k, 2.0 + k], [40.0 + k, 50.0 + k]]
        call(mode, step, x, good)


def test_native_calls_within_a_call_that_raises_are_taken_back(native):
    """What is called by way of native code writes no variable behind the back of the call around it."""
    total, table, under_way = hf.Variable([3]), hf.asarray([0]), transactions.value

    @hf.function
    def add(x):
        total.assign_add(hf.take(x, table))

    def fails():
        add(x)
        add(x)
        raise ValueError("afterwards")

    x = hf.asarray([2])
    for _ in range(4):
        add(x)
    assert values(total) == [[11]]
    for compiled in (hf.function(fails), hf.function(lambda: fails())):
        for _ in range(3):
            with pytest.raises(ValueError, match="afterwards"):
                compiled()
            assert values(total) == [[11]]
    assert transactions.value <= under_way  # calls of other threads, and what an interrupted one has left
    before = sum(call.calls for call in add._cache.native_calls())
    add(x)
    assert values(total) == [[13]]
    assert under_way or sum(call.calls for call in add._cache.native_calls()) == before + 1


def test_a_writer_that_raises_itself_writes_nothing(mode):
    v = hf.Variable([8, 9, 10])

    @hf.function
    def step(d):
        v.assign(v // d)

    for _ in range(3):
        with pytest.raises(DivisionError):
            call(mode, step, hf.asarray([2, 0, 1]))
        assert v.tolist() == [8, 9, 10]
    call(mode, step, hf.asarray([2, 2, 2]))
    assert v.tolist() == [4, 4, 5]


def test_a_large_table_survives_a_bad_row(mode):
    """Many units of work: those that are done before the bad one must not show either."""
    table = hf.Variable(np.arange(40_000.0, dtype=np.float32).reshape(2000, 20))
    before = table.numpy().copy()

    @hf.function
    def step(rows, updates):
        table.assign(hf.scatter_add(table, rows, updates) * 2)

    rows = np.arange(2000)
    rows[1999] = 5000
    for _ in range(2):
        with pytest.raises(IndexRangeError):
            call(mode, step, hf.asarray(rows), hf.ones((2000, 20)))
        np.testing.assert_array_equal(table.numpy(), before)


def test_the_state_of_generators_is_part_of_it(mode):
    generator = hf.random.Generator(7)

    @hf.function
    def draw(i):
        return hf.take(generator.uniform((4,)), i)

    expected = hf.random.Generator(7).uniform((4,)).numpy()
    for _ in range(2):
        with pytest.raises(IndexRangeError):
            call(mode, draw, hf.asarray([4]))
    np.testing.assert_array_equal(call(mode, draw, hf.asarray([0, 1, 2, 3])).numpy(), expected)


def test_a_python_error_takes_back_what_the_body_assigned():
    v, w = hf.Variable([1.0]), hf.Variable([2.0])

    @hf.function
    def inner(x):
        v.assign_add(x)

    @hf.function
    def outer(x, error):
        inner(x)
        w.assign(v * 10)
        v.assign_sub(5.0)
        raise error

    hf.config.run_functions_eagerly(True)
    try:
        for error in (ValueError(), KeyboardInterrupt(), SystemExit()):
            with pytest.raises(type(error)):
                outer(hf.asarray([1.0]), error)
            assert values(v, w) == [[1.0], [2.0]]
        with pytest.raises(RuntimeError):  # what is outside of any function is not taken back
            inner(hf.asarray([1.0]))
            raise RuntimeError
        assert v.tolist() == [2.0]
    finally:
        hf.config.run_functions_eagerly(False)


def test_an_inner_call_that_is_caught_keeps_its_writes_until_the_outer_one_raises():
    v = hf.Variable(0.0)

    @hf.function
    def inner():
        v.assign_add(1.0)
        raise ValueError

    @hf.function
    def outer(fails):
        with contextlib.suppress(ValueError):
            inner()
        if fails:
            raise KeyError

    hf.config.run_functions_eagerly(True)
    try:
        outer(False)
        assert v.item() == 1
        with pytest.raises(KeyError):
            outer(True)
        assert v.item() == 1
    finally:
        hf.config.run_functions_eagerly(False)


def test_variables_made_in_a_failing_trace_draw_the_same_numbers_again():
    generator = hf.random.Generator(3)
    holder = []

    @hf.function
    def f(x):
        if not holder:
            holder.append(hf.Variable(generator.normal((3,))))
            raise ValueError("in the trace")
        return x

    before = generator._state.tolist()
    with pytest.raises(ValueError, match="in the trace"):
        f(hf.ones((2,)))
    assert generator._state.tolist() == before


def test_old_values_stay_what_they_are_after_errors():
    v = hf.Variable(np.zeros(100, np.float32))
    step = hf.function(lambda x, i: (v.assign_add(x), hf.take(x, i))[1])
    x = hf.ones((100,))
    kept = []
    for k in range(6):
        kept.append((v.value(), float(k)))
        with pytest.raises(IndexRangeError):
            step(x, hf.asarray([100]))
        step(x, hf.asarray([0]))
    for value, expected in kept:
        assert (value.numpy() == expected).all()


CHECKS = {
    "both": ([0, 1], [9], DivisionError),
    "second": ([1, 1], [9], IndexRangeError),
}


@pytest.mark.parametrize("case", CHECKS)
@pytest.mark.parametrize("swapped", [False, True])
def test_the_first_check_in_program_order_is_reported(mode, case, swapped):
    """Whatever the kernels are, and in whatever order they run: here the results are used in the other order."""
    divisors, indices, error = CHECKS[case]
    v = hf.Variable([1.0])

    @hf.function
    def f(x, d, i):
        if swapped:
            taken = hf.take(x, i)
            quotient = 7 // d
        else:
            quotient = 7 // d
            taken = hf.take(x, i)
        v.assign_add(hf.sum(taken))
        square = hf.expand_dims(taken, 0) @ hf.expand_dims(taken, 1)
        return hf.cumulative_sum(square[0], axis=0), hf.sum(quotient), hf.sort(taken)

    first = IndexRangeError if swapped else error
    for _ in range(2):
        with pytest.raises(first):
            call(mode, f, hf.asarray([1.0, 2.0]), hf.asarray(divisors), hf.asarray(indices))
    assert v.tolist() == [1.0]


def test_many_checks_of_one_kind_name_the_first_line():
    @hf.function
    def f(x, i, j, k):
        a = hf.take(x, i)  # line a
        b = hf.take(x, j)  # line b
        c = hf.take(x, k)  # line c
        return hf.sort(c), hf.cumulative_sum(b, axis=0), a

    x, good, bad = hf.arange(5), hf.asarray([1]), hf.asarray([7])
    first = f.python_function.__code__.co_firstlineno + 2
    for which, arguments in enumerate([(bad, bad, bad), (good, bad, bad), (good, good, bad)]):
        for _ in range(2):
            with pytest.raises(IndexRangeError, match=rf"test_transactions\.py:{first + which}\)"):
                f(x, *arguments)


def test_updates_stay_in_place_where_nothing_can_fail_afterwards():
    table, v, w = (hf.Variable(np.ones((50, 4), np.float32)) for _ in range(3))

    @hf.function
    def step(rows):
        v.assign_sub(0.5 * v)
        taken = hf.take(table, rows, axis=0)
        w.assign_add(hf.sum(taken))

    @hf.function
    def dividing(x):
        n = hf.sum(v) // x
        w.assign(w + hf.sum(n.astype(hf.float32)))
        return hf.take(w, hf.reshape(hf.astype(hf.sum(w) < 0, hf.int64), (1,)), axis=0)

    for f, x in ((step, hf.asarray([1, 2])), (dividing, hf.asarray([2.0]))):
        f(x)
    kinds = {row["name"] or "?": row["kind"] for row in step.memory_plan() if "update" in row["kind"]}
    assert set(kinds.values()) == {"in-place update"}  # the check runs before both writers
    assert [row["kind"] for row in dividing.memory_plan() if "update" in row["kind"]] == ["fresh update"]
    addresses = []
    for _ in range(3):
        step(hf.asarray([1, 2]))
        addresses.append((v._tensor._array.ctypes.data, w._tensor._array.ctypes.data))
    assert addresses[1] == addresses[2]


def test_an_interrupt_leaves_all_variables_of_a_step_at_one_step():
    """Whenever it comes, in the Python path as well: either all new values are there, or none."""
    variables = [hf.Variable(np.zeros(64, np.float32)) for _ in range(12)]

    @hf.function
    def step(box):
        for v in variables:
            v.assign_add(box["x"])

    box = {"x": hf.ones((64,))}  # nested: calls go through Python
    step(box)
    interrupted = 0

    def interrupt():
        main = threading.main_thread().ident
        while not over.is_set():
            time.sleep(0.0003)
            signal.pthread_kill(main, signal.SIGALRM)

    def raise_interrupt(number, frame):
        if inside[0]:
            inside[0] = False
            raise KeyboardInterrupt

    inside, over = [False], threading.Event()
    before = signal.signal(signal.SIGALRM, raise_interrupt)
    thread = threading.Thread(target=interrupt)
    thread.start()
    end = time.monotonic() + 1.5
    try:
        while time.monotonic() < end or not interrupted:
            try:
                inside[0] = True
                step(box)
                inside[0] = False
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        over.set()
        thread.join()
        time.sleep(0.01)
        signal.signal(signal.SIGALRM, before)
    counts = {float(x) for v in variables for x in v.numpy()}
    assert len(counts) == 1 and interrupted
    done = counts.pop()
    step(box)  # nothing is stuck
    for v in variables:
        v.assign_add(1.0)
    assert {float(x) for v in variables for x in v.numpy()} == {done + 2}


class Scaled(collections.namedtuple("Scaled", "value twice")):
    """A result whose class makes its fields itself."""

    def __new__(cls, value):
        return super().__new__(cls, value, value * 2)


def test_results_are_assembled_without_the_users_code(mode):
    v = hf.Variable([1.0, 2.0])

    @hf.function
    def step(x):
        v.assign_add(x)
        return Scaled(hf.sum(v))

    for k in range(1, 4):
        result = call(mode, step, hf.asarray([1.0, 1.0]))
        assert type(result) is Scaled and values(v) == [[1.0 + k, 2.0 + k]]
        assert [x.item() for x in result] == [3.0 + 2 * k, 6.0 + 4 * k]


def test_adding_at_indices_writes_a_table_in_place_and_not_at_all_when_one_is_bad() -> None:
    table = hf.Variable(np.arange(12, dtype=np.float32).reshape(6, 2))

    @hf.function
    def step(indices: hf.Tensor, updates: hf.Tensor) -> None:
        table.assign(hf.scatter_add(table, indices, updates))

    good, ones = hf.constant([1, -1, 1]), hf.ones((3, 2))
    step(good, ones)
    expected = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.add.at(expected, [1, 5, 1], 1)
    np.testing.assert_array_equal(table.numpy(), expected)
    assert "in-place update" in str(step.memory_plan(good, ones))
    with pytest.raises(hf.errors.IndexRangeError):
        step(hf.constant([1, 6, 2]), ones)
    np.testing.assert_array_equal(table.numpy(), expected)
