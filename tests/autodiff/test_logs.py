"""What tapes note in words: native code and Python write the same, and gradients are found by them."""

import contextvars
import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autodiff import compiled_backward
from hybridflow.core import tier_up
from hybridflow.eager import fast_path
from hybridflow.runtime.calls import entry, variable_locks
from tests.support.bits import same_bits
from tests.support.compare_programs import gradients_replayed
from tests.support.fresh_functions import forget_calls

native_only = pytest.mark.skipif(entry.enable() is None, reason="there is no native code here")


@pytest.fixture(autouse=True)
def fresh():
    """Tapes are native code's, and nothing is known of what was called."""
    for _ in range(tier_up.TAPES.threshold):
        hf.GradientTape()
    forget_calls()
    compiled_backward.passes.clear()


def tensor(*shape, seed=0, dtype=np.float32):
    return hf.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def in_python(tape):
    """Let a tape that knows nothing yet keep its log in Python."""
    tape._values, tape._definitions, tape._words, tape._table = [], [], bytearray(), {}


def same(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a is None if b is None else a.dtype == b.dtype and same_bits(a.numpy(), b.numpy())


X, Y, V, W = tensor(3, 4), tensor(3, 4, seed=1), hf.Variable(tensor(4, seed=2)), hf.Variable(tensor(4, 2, seed=3))
FIXED = hf.Variable(tensor(4, seed=4), trainable=False)


def _assigned(x):
    y = x * V
    V.assign_add(hf.zeros(4))
    return y + V * V


PROGRAMS = {
    "square": lambda x: hf.sum(x * x),
    "number": lambda x: 2.0 * x - 1,
    "other tensor": lambda x: x * Y + Y,
    "list": lambda x: hf.concat([x, Y, x], axis=0),
    "nothing": lambda x: Y * Y,
    "variables": lambda x: hf.nn.relu(x @ W) @ hf.matrix_transpose(W) * V,
    "variable on the left": lambda x: V * x - V,
    "not trainable": lambda x: x * FIXED,
    "assigned": _assigned,
    "array": lambda x: hf.maximum(x, np.ones((3, 4), np.float32)),
    "comparison": lambda x: hf.where(x > 0, x, Y),
}


@native_only
@pytest.mark.parametrize("name", PROGRAMS)
def test_native_code_writes_what_python_does(name):
    program = PROGRAMS[name]
    for _ in range(8):  # wholes are made

        def logged(prepare):
            with hf.GradientTape() as tape:
                prepare(tape)
                tape.watch(X)
                program(X)
            return tape

        native, python = logged(lambda tape: None), logged(in_python)
    assert type(native._table) is bytearray and type(python._table) is dict
    assert bytes(native._words) == bytes(python._words)
    assert native._is_plain == python._is_plain
    entries = [[log._entry(x) for x in log._values] for log in (native, python)]
    assert entries[0] == entries[1] == [2 * k + (e & 1) for k, e in enumerate(entries[0])]
    outside = [[x for x in log._values if x is X or x is Y or isinstance(x, hf.Variable)] for log in (native, python)]
    assert list(map(id, outside[0])) == list(map(id, outside[1]))
    assert list(map(type, native._definitions)) == list(map(type, python._definitions))


@native_only
def test_a_table_grows():
    xs = [hf.asarray([float(k)]) for k in range(3000)]
    with hf.GradientTape() as tape:
        for x in xs[::2]:
            tape.watch(x)
        assert [tape._entry(x) for x in xs] == [k + 1 if k % 2 == 0 else -1 for k in range(3000)]
        for x in xs[::2]:
            tape.watch(x)
    assert len(tape._values) == 1500 and tape._watched() == set(range(1500))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_single_ops(name):
    def step():
        with hf.GradientTape() as tape:
            tape.watch(X)
            y = PROGRAMS[name](X)
        return tape.gradient(y, [X, V, W, FIXED])

    with hf.GradientTape(), gradients_replayed(False):  # whose tape has the others record single ops
        expected = step()
    for _ in range(10):
        assert same(step(), expected)


def test_sources_of_all_kinds():
    def step(sources):
        with hf.GradientTape() as tape:
            tape.watch([X, Y])
            y = hf.sum(X * Y * V)
        return tape.gradient(y, sources)

    expected = [(Y * V).numpy(), (X * V).numpy(), hf.sum(X * Y, axis=0).numpy()]
    for _ in range(6):
        assert np.allclose(step(X), expected[0]) and np.allclose(step(V), expected[2])
        for kind in (list, tuple):
            found = step(kind([X, Y, V]))
            assert type(found) is kind and all(map(np.allclose, found, expected))
        found = step({"x": X, "v": [V]})
        assert np.allclose(found["x"], expected[0]) and np.allclose(found["v"][0], expected[2])
        first, second = step([X, X])
        assert first is not second and np.allclose(first, expected[0]) and np.allclose(second, expected[0])
        assert step([]) == [] and step(()) == ()
        assert step([X, FIXED])[1] is None


def test_which_variables_are_watched():
    v, w = hf.Variable([1.0, 2.0]), hf.Variable([3.0, 4.0], trainable=False)
    n = hf.Variable([1, 2])
    x = hf.asarray([1.0, 1.0])

    def watched(prepare, **how):
        for _ in range(6):
            with hf.GradientTape(**how) as tape:
                prepare(tape)
                x * v, x * w, x * n
        return tape.watched_variables()

    assert watched(lambda tape: None) == (v,)
    assert watched(lambda tape: tape.watch(w)) == (w, v)
    assert watched(lambda tape: None, watch_accessed_variables=False) == ()
    assert watched(lambda tape: tape.watch([w, n]), watch_accessed_variables=False) == (w,)
    w.trainable = 1
    assert watched(lambda tape: None) == (v, w)
    v.trainable = None
    assert watched(lambda tape: None) == (w,)


def test_a_variable_that_is_watched_after_its_value_was_used():
    x, w = hf.asarray([1.0, 2.0]), hf.Variable([3.0, 5.0], trainable=False)
    for _ in range(6):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = x * w
            tape.watch(w)
            z = y * w
        assert same(tape.gradient(z, [x, w]), [hf.asarray([9.0, 25.0]), hf.asarray([6.0, 20.0])])


def test_a_value_that_a_tape_read_is_not_written_over():
    v, x = hf.Variable([1.0, 2.0]), hf.asarray([1.0, 1.0])

    @hf.function
    def step():
        v.assign_add([1.0, 1.0])

    for k in range(6):
        step()
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = x * v
            before = v.numpy().copy()
            step()
            z = y * v
        assert np.array_equal(tape.gradient(z, x), before * (before + 1)), k


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collections begin between instructions of Python alone")
def test_a_program_that_begins_to_write_while_a_log_is_made_is_waited_for(monkeypatch):
    v, waited, began = hf.Variable([1.0, 2.0]), [], []
    words = v._gate.words

    def begin(phase, info):  # as another thread could in a collection
        gc.set_threshold(0)
        began.append(phase)
        words[variable_locks.RUNNING] = variable_locks.IN_PLACE

    def end(gate, replaced):
        words[variable_locks.RUNNING] = 0
        waited.append(gate)
        return True

    def read(threshold):
        with hf.GradientTape() as tape:
            gc.set_threshold(threshold)
            y = hf.sum(v)
        return tape.gradient(y, v)

    monkeypatch.setattr(variable_locks.VariableLock, "wait_while_written", end)
    before = gc.get_threshold()
    gc.collect()
    try:
        for _ in range(20):
            read(0)
        lists = [[] for _ in range(1000)]  # the interpreter keeps no more of them: making one may collect
        gc.callbacks.append(begin)
        found = read(1)
    finally:
        if begin in gc.callbacks:
            gc.callbacks.remove(begin)
        words[variable_locks.RUNNING] = 0
        gc.set_threshold(*before)
    assert began and lists and waited == [v._gate] and np.array_equal(found, [1.0, 1.0])


def test_nothing_is_kept():
    def gone(use):
        x = tensor(50)
        held = weakref.ref(x)
        use(x)
        del x
        return held() is None

    def gradient(x, close=True):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(x * x)
        if close:
            tape.gradient(y, x)
        return tape

    for _ in range(6):
        assert gone(gradient)
        assert gone(lambda x: gradient(x, close=False) and None)
    tape = hf.GradientTape()
    with tape:
        x = tensor(50)
        tape.watch(x)
        held = weakref.ref(x)
        tape._reasons = {0: (tape, "a circle")}
    del tape, x
    gc.collect()
    assert held() is None


def test_a_tape_that_tracks_nothing_of_it_does_not_change_what_is_computed():
    w = hf.asarray([2.0, 3.0])

    @hf.function
    def f(x):
        return x * w, [x + 1]

    def run():
        return [*f(Y[0, :2]), Y > 0, -Y, Y[1:, ::2], float(Y[0, 0]), bool(Y[1, 1] > 0), hf.argmax(Y, axis=1)]

    for _ in range(12):
        expected = run()
    for persistent in (False, True):
        with hf.GradientTape(persistent=persistent) as tape:
            tape.watch(X)
            for _ in range(6):
                found = run()
        assert tape._records() == []
        assert [np.array_equal(a, b) for a, b in zip(found, expected)] == [True] * len(found)
    for _ in range(6):
        with hf.GradientTape() as tape:
            tape.watch(w)
            y, _ = f(hf.asarray([5.0, 7.0]))
        assert np.array_equal(tape.gradient(y, w), [5.0, 7.0])


@pytest.mark.parametrize("how", ["closure", "scalar", "default", "keyword", "dict", "attribute"])
def test_what_a_tape_tracks_is_found_wherever_a_function_has_it(how):
    x, a = hf.asarray([1.0, 2.0]), hf.asarray([5.0, 7.0])
    one = hf.asarray(2.0)

    class Holder:
        def __init__(self):
            self.x = x

        @hf.function
        def times(self, a):
            return a * self.x

    function, args, kwargs, source = {
        "closure": (hf.function(lambda a: a * x), (a,), {}, x),
        "scalar": (hf.function(lambda a: a * one), (a,), {}, one),
        "default": (hf.function(lambda a, b=x: a * b), (a,), {}, x),
        "keyword": (hf.function(lambda a, *, b: a * b), (a,), {"b": x}, x),
        "dict": (hf.function(lambda d: d["a"] * d["x"]), ({"a": a, "x": x},), {}, x),
        "attribute": (Holder().times, (a,), {}, x),
    }[how]
    for _ in range(6):
        function(*args, **kwargs)
        with hf.GradientTape() as tape:
            tape.watch(source)
            y = function(*args, **kwargs)
        assert np.array_equal(tape.gradient(y, source), 12.0 if source is one else [5.0, 7.0])


def test_operators_that_python_answers_until_there_is_native_code():
    fast_path.make_python()
    x = hf.asarray([1.0, -2.0, 3.0])
    for _ in range(3 * tier_up.OPERATORS.threshold):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = -(x * x) + abs(x) / 2.0
        np.testing.assert_array_equal(tape.gradient(y, x), -2 * x.numpy() + np.sign(x) / 2)
    fast_path.make_python()


def test_the_methods_are_still_documented():
    for name, parameters in {
        "gradient": ["self", "target", "sources", "output_gradients", "unconnected_gradients"],
        "watch": ["self", "value"],
        "__enter__": ["self"],
    }.items():
        method = getattr(hf.GradientTape, name)
        assert list(inspect.signature(method).parameters) == parameters
        assert inspect.getdoc(method) == inspect.getdoc(getattr(hf.GradientTape, f"_{name.strip('_')}"))


def test_arguments_by_name_and_wrong_ones():
    with hf.GradientTape() as tape:
        tape.watch(value=X)
        y = hf.sum(X * X)
    with pytest.raises(TypeError):
        tape.gradient(y)
    with pytest.raises(TypeError):
        tape.watch()
    with pytest.raises(hf.errors.ArgumentTypeError):
        tape.gradient(y, [X, 3.0])
    assert np.allclose(tape.gradient(sources=X, target=y), 2 * X.numpy())
    with pytest.raises(hf.errors.GradientError):
        tape.gradient(y, X)


def test_a_class_of_ones_own():
    class Counting(hf.GradientTape):
        entered = 0

        def __enter__(self):
            self.entered += 1
            return super().__enter__()

    for _ in range(5):
        with Counting() as tape:
            tape.watch(X)
            y = hf.sum(X * X)
        assert tape.entered == 1 and np.allclose(tape.gradient(y, X), 2 * X.numpy())


def test_threads_have_tapes_of_their_own():
    wrong = []

    def work(seed):
        x = tensor(20, seed=seed)
        for _ in range(200):
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = hf.sum(x * x * V[0])
            found = tape.gradient(y, [x, V])
            if not np.allclose(found[0], 2 * x.numpy() * V.numpy()[0], rtol=1e-5):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@native_only
@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_threads_that_share_a_tape(python):
    """Each call is found with its own operands, and no program is taken for the gradient of another order."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for turn in range(10):
            xs = [tensor(k + 2, seed=turn) for k in range(4)]
            found = [None] * 4
            with hf.GradientTape(persistent=turn % 2 == 0) as tape:
                if python:
                    in_python(tape)
                for x in xs:
                    tape.watch(x)

                def work(k, xs=xs, found=found):
                    y = xs[k]
                    for step in range(20):
                        y = hf.reshape(y * 2.0**k, (1, -1)) + np.float32(step)
                        y = hf.reshape(y, (-1,))[::-1]
                    found[k] = hf.sum(y)

                threads = [
                    threading.Thread(target=contextvars.copy_context().run, args=(work, k)) for k in range(len(xs))
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            gradients = tape.gradient(found, xs)
            for k, gradient in enumerate(gradients):
                assert np.array_equal(gradient, np.full(k + 2, 2.0 ** (20 * k), np.float32)), (turn, k)
    finally:
        sys.setswitchinterval(before)


def test_every_reference_is_given_back():
    program = """
import gc, sys
import numpy as np, hybridflow as hf
x, v, w = hf.ones((3, 4)), hf.Variable(hf.ones((4, 2))), hf.Variable(hf.ones(2))
def step():
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(hf.nn.relu(x @ v + w) * 2.0)
        hf.argmax(v), x[0] > 0
    return tape.gradient(y, [x, v, w])
for _ in range(30):
    step()
counts, objects = [sys.getrefcount(o) for o in (x, v, w, v._tensor, None)], len(gc.get_objects())
for _ in range(200):
    step()
for before, after in zip(counts, [sys.getrefcount(o) for o in (x, v, w, v._tensor, None)]):
    assert before - 50 < after < before + 50, (before, after)
assert len(gc.get_objects()) < objects + 50
gradient = step()[0]
assert sys.getrefcount(gradient) == 2
print("done")
"""
    for verify in ("0", "1"):
        environment = {**os.environ, "HF_VERIFY": verify}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == "done", done.stderr
