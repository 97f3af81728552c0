"""Donation: results in the memory of arguments that calls give up, and nowhere else."""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, ArgumentTypeError, DeviceError, DonatedError, IndexRangeError
from hybridflow.runtime.cuda import gpu_memory
from tests.support.bits import same_bits
from tests.support.cuda_emulator import emulated  # noqa: F401

pytestmark = pytest.mark.filterwarnings("error")


def values(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def tensor(*shape, seed=0):
    return hf.asarray(values(*shape, seed=seed))


def place(x):
    return x._array.ctypes.data


def step(p, g):
    return p - 0.5 * g


@pytest.fixture
def giving():
    return hf.function(step, donate_argnums=0)


def test_a_result_lies_in_the_memory_that_was_given_up(giving):
    p, g = tensor(1000), tensor(1000, seed=1)
    want = step(p, g).numpy()
    before = place(p)
    for k in range(4):
        q = giving(p, g)
        assert place(q) == before, k
        assert k or same_bits(q.numpy().copy(), want)
        p, want = q, None


def test_its_use_is_an_error_that_names_the_call(giving):
    p, g = tensor(9), tensor(9, seed=1)
    kept = [p]
    giving(p, g)
    capturing = hf.function(lambda x: x + p)
    uses = [
        lambda: p + 1,
        lambda: hf.exp(p),
        lambda: p.numpy(),
        lambda: p[0],
        lambda: bool(hf.all(p == g)),
        lambda: np.asarray(p),
        lambda: p.__dlpack__(),
        lambda: giving(p, g),
        lambda: giving(g, p),
        lambda: hf.function(lambda x: x * 2)(p),
        lambda: capturing(g),
        lambda: hf.Variable(p),
        lambda: hf.GradientTape().watch(kept[0]),
        lambda: hf.stack([p, g]),
    ]
    for use in uses:
        with pytest.raises(DonatedError, match=r"f32\[9\] was given up to a call of step \(test_donation\.py:\d+\)"):
            use()
    assert isinstance(DonatedError("x", "y"), RuntimeError)
    assert p.shape == (9,) and p.dtype == np.float32 and p.ndim == 1 and p.device == "cpu"
    assert "given up to step" in repr(p) and str(p) == repr(p)
    with pytest.raises(DonatedError):
        p[0] = 1.0
    assert same_bits(g.numpy(), values(9, seed=1))


def test_programs_that_captured_it_say_so(giving):
    p, g = tensor(9), tensor(9, seed=1)
    f = hf.function(lambda x: x + p)
    f(g), f(g)
    with pytest.warns(UserWarning, match="others have its memory"):
        giving(p, g)  # native code keeps the array
    with pytest.raises(DonatedError):
        hf.function(lambda x: x * p)(g)


SHARED = {
    "numpy": lambda p: p.numpy(),
    "view of numpy": lambda p: p.numpy()[1:],
    "memoryview": lambda p: memoryview(p.numpy()),
    "dlpack": lambda p: np.from_dlpack(p),
    "capsule": lambda p: p.__dlpack__(max_version=(1, 0)),
    "variable": lambda p: hf.Variable(p),
    "view": lambda p: hf.reshape(p, (3, 3)),
    "row": lambda p: p[2:5],
    "copy": lambda p: +p,
    "array": lambda p: p._array,
}


@pytest.mark.parametrize("name", SHARED)
def test_what_others_have_is_not_written_to(name):
    p, g = tensor(9), tensor(9, seed=1)
    other = SHARED[name](p)
    shares = name != "copy" or other._array is p._array
    read = np.asarray(other) if name != "capsule" else None
    before = None if read is None else np.array(read)
    f = hf.function(step, donate_argnums=0)
    want = step(p, g).numpy().copy()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = f(p, g)
    assert same_bits(got.numpy(), want)
    assert read is None or same_bits(np.array(read), before)
    kept = other if name == "array" else None
    if shares and name not in ("view", "row"):  # eager views may be copies
        assert [w.category for w in said] == [UserWarning] and "step: p, f32[9], was donated" in str(said[0].message)
        assert said[0].filename == __file__
    with pytest.raises(DonatedError):
        p.numpy()
    del kept


def test_memory_that_others_let_go_of_is_written_to(giving):
    p, g = tensor(9), tensor(9, seed=1)
    view = p.numpy()
    print(p, view)
    del view
    before = place(p)
    assert place(giving(p, g)) == before


def test_arrays_of_numpy_are_read(giving):
    a, g = values(9), tensor(9, seed=1)
    want = step(hf.asarray(a), g).numpy()
    kept = a.copy()
    for _ in range(3):
        got = giving(a, g)  # a copy is given up
        assert same_bits(got.numpy(), want) and same_bits(a, kept)
    shared = hf.from_dlpack(a)
    with pytest.warns(UserWarning, match="NumPy or DLPack array"):
        giving(shared, g)
    assert same_bits(a, kept)
    giving(hf.from_dlpack(a), g)  # it was said
    assert same_bits(a, kept)


def test_one_tensor_in_two_places():
    f = hf.function(lambda x, y: (x[::-1] + y, x * y), donate_argnums=(0, 1))
    x = tensor(50)
    want = [v.numpy().copy() for v in (x[::-1] + x, x * x)]
    with pytest.warns(UserWarning, match="another argument"):
        got = f(x, x)
    assert all(same_bits(g.numpy(), w) for g, w in zip(got, want))
    f = hf.function(lambda x, y: x[::-1] + y, donate_argnums=0)
    x = tensor(50)
    with pytest.warns(UserWarning, match="another argument"):
        assert same_bits(f(x, x).numpy(), want[0])


def test_what_is_read_across_gets_memory_of_its_own():
    f = hf.function(lambda x: x[::-1] + 2 * x, donate_argnums=0)
    x = tensor(5000)
    want = (x[::-1] + 2 * x).numpy()
    assert same_bits(f(x).numpy(), want)
    assert "output 0 has memory of its own" in str(f.explain(tensor(5000)))


def test_nested_arguments_and_several_results():
    def update(state, grads, *, scale):
        new = {k: (v[0] * 0.9 + grads[k], v[1] - scale * grads[k]) for k, v in state.items()}
        return new, hf.sum(grads["c"])

    state = {"a": (tensor(40), tensor(40, seed=1)), "b": (tensor(3, 4), tensor(3, 4, seed=2))}
    grads = {"a": tensor(40, seed=3), "b": tensor(3, 4, seed=4), "c": tensor(5)}
    want, total = update(state, grads, scale=0.1)
    places = [place(v) for k in state for v in state[k]]
    f = hf.function(update, donate_argnames=("state",))
    new, sum_ = f(state, grads, scale=0.1)
    assert sorted(place(v) for k in new for v in new[k]) == sorted(places)
    assert all(same_bits(new[k][i].numpy(), want[k][i].numpy()) for k in new for i in (0, 1))
    assert same_bits(sum_.numpy(), total.numpy())
    with pytest.raises(DonatedError):
        _ = state["b"][1] + 1
    hf.sum(grads["a"])


def test_one_handed_through_is_a_tensor_of_its_own():
    f = hf.function(lambda x, y: (x, x + y), donate_argnums=(0, 1))
    x, y = tensor(9), tensor(9, seed=1)
    at = place(x), place(y)
    same, total = f(x, y)
    assert (place(same), place(total)) == at
    assert same_bits(same.numpy(), values(9)) and same_bits(total.numpy(), values(9) + values(9, seed=1))
    for old in (x, y):
        with pytest.raises(DonatedError):
            old.numpy()


def test_a_call_that_raises_gives_nothing_up():
    table = tensor(9)

    @hf.function(donate_argnums=0)
    def f(x, i):
        return x * 2 + hf.take(x, i, axis=0)

    with pytest.raises(IndexRangeError):
        f(table, hf.asarray([99]))
    assert same_bits(table.numpy().copy(), values(9))
    before = place(table)
    assert same_bits(f(table, hf.asarray([1])).numpy(), values(9) * 2 + values(9)[1])
    del before
    with pytest.raises(DonatedError):
        table.numpy()


def test_no_result_of_its_type():
    f = hf.function(lambda x: hf.sum(x), donate_argnums=0)
    x = tensor(9)
    with pytest.warns(
        UserWarning, match=r"<lambda>: x, f32\[9\], was donated, but no result that is left has its type"
    ):
        f(x)
    with pytest.raises(DonatedError):
        x.numpy()
    assert "x: f32[9]: no result has its type" in str(f.explain(tensor(9)))


def test_its_memory_is_free_when_the_call_is_over():
    f = hf.function(lambda x: hf.sum(x), donate_argnums=0)
    x = tensor(9)
    memory = weakref.ref(x._array)
    with pytest.warns(UserWarning):
        f(x)
    assert memory() is None


def test_explanations_and_plans(giving):
    p, g = tensor(9), tensor(9, seed=1)
    assert "donated arguments:\n  p: f32[9]: output 0 lies in its memory" in str(giving.explain(p, g))
    rows = [(row["kind"], row["name"], row["bytes"]) for row in giving.memory_plan()]
    assert rows[:3] == [("donated argument", "p", 36), ("argument", "g", 36), ("output", "in the memory of p", 0)]
    giving(p, g)


def test_eagerly_and_where_it_is_recorded_nothing_is_given_up(giving):
    p, g = tensor(9), tensor(9, seed=1)
    outer = hf.function(lambda x, y: giving(x, y) + x)
    outer(p, g)
    with hf.GradientTape() as tape:
        tape.watch(p)
        y = hf.sum(giving(p, g) * p)
    assert same_bits(tape.gradient(y, p).numpy(), (step(p, g) + p).numpy())
    hf.config.run_functions_eagerly(True)
    try:
        giving(p, g)
    finally:
        hf.config.run_functions_eagerly(False)
    assert same_bits(p.numpy(), values(9))


OPS = [
    lambda a, b: a + b,
    lambda a, b: a * b - a,
    lambda a, b: hf.flip(a, axis=0) + b,
    lambda a, b: a - hf.mean(b, axis=-1, keepdims=True),
    lambda a, b: hf.cumulative_sum(a, axis=0) * b,
    lambda a, b: a @ b,
    lambda a, b: hf.roll(b, 1, axis=1),
    lambda a, b: hf.permute_dims(a, (1, 0)) + b,
    lambda a, b: hf.sort(a, axis=-1),
    lambda a, b: a,
    lambda a, b: hf.take(a, hf.astype(hf.sum(b > 0) % 6, hf.int64)[None], axis=0) + b,
]


@pytest.mark.parametrize("seed", range(25))
def test_any_program_has_the_bits_that_it_has_without(seed):
    draw = np.random.default_rng(seed)
    chosen = draw.integers(0, [len(OPS), 100, 100], (8, 3))
    wanted = draw.permutation(11)[:4]

    def program(x, y, z):
        found = [x, y, z]
        for op, left, right in chosen:
            found.append(OPS[op](found[left % len(found)], found[right % len(found)]))
        return [found[k] for k in wanted]

    def arguments():
        return [tensor(6, 6, seed=100 * seed + k) for k in range(3)]

    want = [result.numpy() for result in hf.function(program)(*arguments())]
    f = hf.function(program, donate_argnums=(0, 1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(2):
            given = arguments()
            assert all(same_bits(got.numpy(), w) for got, w in zip(f(*given), want, strict=True))
            for x in given:
                with pytest.raises(DonatedError):
                    x.numpy()


def test_variables_are_as_ever():
    v = hf.Variable(values(9))

    @hf.function(donate_argnames="x")
    def f(x):
        v.assign_add(x)
        return x * v

    for k in range(3):
        x, before = tensor(9, seed=k), v.numpy().copy()
        at = place(x)
        y = f(x)
        assert place(y) == at
        assert same_bits(v.numpy(), before + values(9, seed=k))
        assert same_bits(y.numpy(), values(9, seed=k) * (before + values(9, seed=k)))


def test_open_extents(giving):
    for n in (5, 7, 9, 1, 0, 12):
        p, g = tensor(n), tensor(n, seed=1)
        want, at = step(p, g).numpy().copy(), place(p)
        q = giving(p, g)
        assert same_bits(q.numpy().copy(), want) and (place(q) == at or n == 0)


def test_methods_and_gathered_arguments():
    class Model:
        @hf.function(donate_argnums=(1, 3))
        def update(self, x, *rest, **others):
            return [x + 1, *(r + 1 for r in rest), *(o + 1 for o in others.values())]

    x, a, b, c = (tensor(9, seed=k) for k in range(4))
    at = {place(x), place(b)}
    got = Model().update(x, a, b, c=c)
    assert {place(v) for v in got} >= at
    for dead in (x, b):
        with pytest.raises(DonatedError):
            dead.numpy()
    assert same_bits(a.numpy(), values(9, seed=1)) and same_bits(c.numpy(), values(9, seed=3))

    @functools.wraps(step)
    def wrapper(*args, **kwargs):
        return step(*args, **kwargs)

    for how in ({"donate_argnames": "g"}, {"donate_argnums": 1}):
        for args, kwargs in ((("p", "g"), ()), (("p",), ("g",)), ((), ("g", "p"))):
            named = {"p": tensor(9, seed=5), "g": tensor(9, seed=6)}
            hf.function(wrapper, **how)(*(named[k] for k in args), **{k: named[k] for k in kwargs})
            with pytest.raises(DonatedError):
                named["g"].numpy()
            assert same_bits(named["p"].numpy(), values(9, seed=5))

    f = hf.function(lambda **others: others["k"] * 2, donate_argnames="k")
    f(k=a)
    with pytest.raises(DonatedError):
        a.numpy()


@pytest.mark.parametrize(
    ("how", "error", "match"),
    [
        ({"donate_argnums": 2}, ArgumentError, "donate_argnums has 2, and step takes 2 arguments"),
        ({"donate_argnums": (0, -3)}, ArgumentError, "donate_argnums has -3"),
        ({"donate_argnames": "q"}, ArgumentError, "'q', and step has the parameters p, g"),
        ({"donate_argnums": True}, ArgumentTypeError, "donate_argnums is"),
        ({"donate_argnums": "p"}, ArgumentTypeError, "Give one int, or several"),
        ({"donate_argnames": 0}, ArgumentTypeError, "donate_argnames is 0"),
    ],
)
def test_names_and_numbers_that_there_are_not(how, error, match):
    with pytest.raises(error, match=match):
        hf.function(step, **how)


def test_by_numbers_from_the_end_and_input_signatures():
    f = hf.function(step, donate_argnums=-1, input_signature=[hf.TensorSpec([None]), hf.TensorSpec([None])])
    p, g = tensor(9), tensor(9, seed=1)
    at = place(g)
    assert place(f(p, g)) == at
    p.numpy()


def test_threads_that_read_it_meanwhile(giving):
    """A thread that has begun to read a tensor keeps it: what it computes is whole."""
    n = 1 << 18
    reader = hf.function(lambda x: hf.max(hf.cumulative_sum(x)) - hf.min(x))
    x, g = hf.ones((n,)), hf.ones((n,))
    want = reader(x).item()
    reader(x)
    found, done = [], threading.Event()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        giving(hf.ones((n,)), g)
        box = [hf.ones((n,))]

        def read():
            while not done.is_set():
                with contextlib.suppress(DonatedError):
                    found.append(reader(box[0]).item())

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            giving(box[0], g)
            box[0] = hf.ones((n,))
        done.set()
        for thread in threads:
            thread.join()
    assert set(found) <= {want}


def test_on_a_gpu(emulated, giving):  # noqa: F811
    def on_gpu(seed):
        return hf.asarray(values(300, seed=seed)).to_device("gpu:0")

    p, g = on_gpu(0), on_gpu(1)
    want = step(values(300), values(300, seed=1) * np.float32(1))
    at = p._array.data.ptr
    q = giving(p, g)
    assert q._array.data.ptr == at and q.device == "gpu:0"
    assert same_bits(q.numpy(), step(hf.asarray(values(300)), hf.asarray(values(300, seed=1))).numpy()), want
    with pytest.raises(DonatedError):
        p.numpy()
    view = q._array.reshape(20, 15)
    with pytest.warns(UserWarning, match="others have its memory"):
        r = giving(q, g)
    assert r._array.data.ptr != at
    assert same_bits(view.get().reshape(-1), step(hf.asarray(values(300)), hf.asarray(values(300, seed=1))).numpy())


def test_a_gpu_without_memory_gives_nothing_up(emulated, giving, monkeypatch):  # noqa: F811
    p, g = (hf.asarray(values(300, seed=seed)).to_device("gpu:0") for seed in (0, 1))
    want = giving(p * 1, g).numpy()

    def full(*_):
        raise DeviceError("gpu:0", "there is no memory left.")

    with monkeypatch.context() as patch:
        patch.setattr(gpu_memory, "empty", full)
        with pytest.raises(DeviceError, match="no memory"):
            giving(p, g)
    assert same_bits(p.numpy(), values(300)) and same_bits(giving(p * 1, g).numpy(), want)


def test_state_that_is_copied_to_where_a_call_runs_gets_its_new_value(emulated):  # noqa: F811
    """It is the copy that may be written over, not what the variable has."""
    counter = hf.Variable(np.zeros(3, np.int64))

    @hf.function(donate_argnums=0)
    def counted(p):
        counter.assign_add([1, 2, 3])
        return p * 2 + hf.astype(counter[2], "float32")

    p, want = tensor(300) * 1, values(300)
    for calls, device in enumerate(("cpu", "cpu", "gpu:0", "gpu:0", "cpu", "gpu:0"), 1):
        p = p if p.device == device else p.to_device(device)
        p, want = counted(p), want * 2 + np.float32(3 * calls)
        assert p.device == device and same_bits(p.numpy(), want)
    assert counter.numpy().tolist() == [6, 12, 18]  # who looks at it before lets it have memory of its own
