"""Python's operators as slots in native code: they answer exactly what the methods in Python answer."""

from __future__ import annotations

import gc
import math
import operator
import os
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.dtypes import bfloat16
from hybridflow.core import tier_up
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.eager import fast_path, native_operators
from hybridflow.runtime.calls import operators as slots
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native.records import FORMS, SLOTS_OF_ONE, SLOTS_OF_TWO
from tests.support.bits import same_bits
from tests.support.fresh_functions import forget_calls
from tests.support.garbage import collect_all

OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
OF_ONE: dict[str, Callable[[Any], Any]] = {"neg": operator.neg, "abs": abs, "invert": operator.invert}


@pytest.fixture
def native_slots(native: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(fast_path, "_uses_left", math.inf)
    assert fast_path.make_native()
    yield
    fast_path.make_python()


def outcome(function: Callable[..., Any], *operands: Any) -> Any:
    """What an operator gives: a result, or the error as text."""
    try:
        return function(*operands)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def assert_native_is_python(function: Callable[..., Any], cases: Sequence[Sequence[Any]]) -> None:
    """The outcome in Python, and in native code, which knows the operands of the last calls."""
    fast_path.make_python()
    python = [outcome(function, *operands) for operands in cases]
    assert fast_path.make_native()
    for expected, operands in zip(python, cases):
        for _ in range(3):
            assert_alike(expected, outcome(function, *operands))


def assert_alike(a: Any, b: Any) -> None:
    assert type(a) is type(b), (a, b)
    if not isinstance(a, Tensor):
        assert a == b
        return
    assert (a.dtype, a.shape, a._array.flags.c_contiguous) == (b.dtype, b.shape, b._array.flags.c_contiguous)
    assert same_bits(a.numpy(), b.numpy()), (a, b)


def values(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Any:
    """Ordinary numbers and the ends of the dtype's range."""
    rng = np.random.default_rng(seed)
    if dtypes.is_bool(dtype):
        return hf.asarray(rng.integers(0, 2, shape).astype(bool))
    if dtypes.is_integer(dtype):
        limits = np.iinfo(dtype)
        special = [limits.min, limits.max, 0, 1, limits.max // 2]
        ordinary = rng.integers(0, 20, shape)
    else:
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.0, -2.5]
        ordinary = rng.normal(size=shape) * 3
    data = np.asarray(ordinary).astype(dtype)
    flat = data.reshape(-1)
    flat[: len(special)] = np.array(special[seed : seed + flat.size] + special[:seed], dtype)[: flat.size]
    return wrap(data)


class Foreign:
    """Something that knows no operator but one of the right operand."""

    def __radd__(self, other: Any) -> str:
        return "mine"


def operands_next_to(dtype: np.dtype[Any]) -> list[Any]:
    limits = [] if dtypes.is_float(dtype) or dtypes.is_bool(dtype) else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    return [
        *[
            values(dtype, shape, seed=2)
            for shape in ((3, 4), (4,), (3, 1), (), (1,), (1, 1), (1, 1, 1), (2, 3, 4), (5,))
        ],
        wrap(values(dtype, (4, 3), seed=1)._array.T),
        values(np.dtype("float32"), (3, 4)),
        values(np.dtype("int64"), (3, 4)),
        *(
            0,
            1,
            2,
            3,
            -1,
            0.0,
            -0.0,
            1.5,
            2.0,
            float("nan"),
            float("inf"),
            1e300,
            1e-46,
            2**24 + 1,
            2**53 + 1,
            2**63,
            2**70,
        ),
        *limits,
        *(limit + 1 for limit in limits),
        *(True, np.float32(1.5), np.int64(3), None, "text", [1, 2, 3, 4], np.arange(4.0), Foreign(), 1j),
        hf.Variable(values(np.dtype("float32"), (3, 4))),
    ]


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=str)
@pytest.mark.parametrize("name", SLOTS_OF_TWO)
@pytest.mark.usefixtures("native_slots")
def test_operators_of_two_are_the_ones_in_python(name: str, dtype: np.dtype[Any]) -> None:
    x, empty, others = values(dtype, (3, 4)), wrap(np.empty((0, 4), dtype)), operands_next_to(dtype)
    cases = [*[(x, other) for other in others], *[(other, x) for other in others]]
    cases += [(empty, other) for other in (empty, values(dtype, (4,)), values(dtype, ()), 2)]
    assert_native_is_python(OF_TWO[name], cases)


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=str)
@pytest.mark.parametrize("name", SLOTS_OF_ONE)
@pytest.mark.usefixtures("native_slots")
def test_operators_of_one_are_the_ones_in_python(name: str, dtype: np.dtype[Any]) -> None:
    strided = wrap(values(dtype, (4, 3))._array.T)
    tensors = [values(dtype, shape) for shape in ((3, 4), (), (1,), (0, 2), (300,))]
    assert_native_is_python(OF_ONE[name], [(x,) for x in (*tensors, strided)])


@pytest.mark.usefixtures("native_slots")
def test_native_code_answers() -> None:
    """The other tests would pass if everything went to Python."""
    half = hf.asarray(0.5)
    x, y = values(np.dtype("float32"), (3, 4)), values(np.dtype("float32"), (3, 4), seed=1)
    cases = [lambda: x + y, lambda: x * 2.0, lambda: 2 - x, lambda: x > y, lambda: -x, lambda: x / half]
    for case in cases:
        case(), case()
    for name in (*SLOTS_OF_TWO, *SLOTS_OF_ONE):
        assert type(Tensor.__dict__[f"__{name}__"]) is type(int.__dict__["__add__"])
    called: list[Any] = []
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code) if event == "call" else None)
    try:
        for case in cases:
            case()
    finally:
        sys.setprofile(None)
    assert called == [case.__code__ for case in cases]


@pytest.mark.usefixtures("native_slots")
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "lt", "eq"])
def test_plans_answer_what_slots_do_not_know(name: str) -> None:
    """Shapes that are broadcast, strides, two dtypes, variables and NumPy's arrays."""
    forget_calls()
    function = OF_TWO[name]
    x, row = values(np.dtype("float32"), (3, 4)), values(np.dtype("float32"), (4,), seed=1)
    whole, doubled = values(np.dtype("int32"), (3, 4)), values(np.dtype("float32"), (3, 8))[:, ::2]
    pairs = [(x, row), (row, x), (x, doubled), (x, whole), (x, hf.Variable(row)), (x, row.numpy()), (x, x[:, :1])]
    for left, right in pairs:
        first = function(left, right)
        for _ in range(20):
            found = function(left, right)
            assert found.dtype == first.dtype and same_bits(found.numpy(), first.numpy())

    def again() -> None:
        for left, right in pairs:
            function(left, right)

    called: list[Any] = []
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code) if event == "call" else None)
    try:
        again()
    finally:
        sys.setprofile(None)
    assert called == [again.__code__]


def test_what_an_op_refuses_is_asked_for_once(native_slots: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = native_operators._application
    monkeypatch.setattr(native_operators, "_application", lambda *args: asked.append(args) or real(*args))
    op = native_operators._elementwise(native_operators.TABLE["bitwise_and"])
    function = slots.function(op, 2, "probe")
    x = values(np.dtype("float32"), (3,))
    assert function is not None
    assert [function(x, x) for _ in range(4)] == [NotImplemented] * 4
    assert len(asked) == 1


def test_an_error_of_making_the_code_is_raised_once(native_slots: Any) -> None:
    def make(dtype: Any, form: int) -> None:
        raise KeyboardInterrupt

    function = slots.function(slots.ElementwiseOp(make), 1, "probe")
    x = values(np.dtype("float32"), (3,))
    assert function is not None
    with pytest.raises(KeyboardInterrupt):
        function(x)
    assert function(x) is NotImplemented
    assert function(x, x) is NotImplemented and function() is NotImplemented


def test_numbers_of_dtypes_that_are_registered_have_places(native_slots: Any) -> None:
    x = wrap(np.arange(4).astype(bfloat16))
    for _ in range(3):
        assert (x + x).tolist() == [0, 2, 4, 6]
    table = native_operators.native_ops()["add"]._table
    assert table[(24 + np.dtype(bfloat16).num - 256) * FORMS] > 1 << 12


def test_the_other_byte_order_is_not_taken(native_slots: Any) -> None:
    function = fast_path.natives[native_operators.TABLE["add"]]
    x = hf.ones(3)
    x + x, x + x
    swapped = wrap(np.ones(3, np.dtype("float32").newbyteorder()))
    for _ in range(3):
        assert function(swapped, swapped) is NotImplemented


# ---- subscripts and conversions

BOUNDS: list[Any] = [None, 0, 1, -1, 2, 5, -7, 2**70, -(2**70)]


def keys() -> list[Any]:
    """Keys for three axes: known ones, those of other kinds, and errors."""
    rng = random.Random(1)
    ranges = [slice(a, b, c) for a in BOUNDS for b in BOUNDS for c in (None, 1, 2, -1, -2)]
    parts = [0, 1, -1, None, ..., *rng.sample(ranges, 8)]
    plain = [*parts, 3, -4, 2**63, 2**70, (), (0,), (0, 1, 2), (..., ...), (0, 0, 0, 0), slice(None, None, 0)]
    mixed = [tuple(rng.choices(parts, k=rng.randint(2, 5))) for _ in range(60)]
    n = hf.asarray(1)
    others = [True, n, 1.0, "a", [0, 1], np.array([0, 1]), np.int64(1), slice(n, None), slice(True, 2), slice(1.5, 2)]
    others += [
        (0, [0, 1]),
        (0, n),
        (slice(None), True),
        hf.asarray([True, False, True]),
        object(),
        range(2),
        (0, [0], 1),
    ]
    return [*plain, *ranges, *mixed, *others]


class Length(int):
    """An int of a class of its own, which says something else as an index."""

    def __index__(self) -> int:
        return 1


@pytest.mark.usefixtures("native_slots")
def test_subscripts_are_the_ones_in_python() -> None:
    x = hf.asarray(np.arange(3 * 4 * 2, dtype=np.int32).reshape(3, 4, 2))
    strided = wrap(np.arange(24.0).reshape(2, 4, 3).T)
    single = hf.asarray(2.5)
    function = operator.getitem
    native_operators_are_python(function, [(x, key) for key in (*keys(), Length(2), (0, Length(2)))])
    native_operators_are_python(function, [(strided, key) for key in keys()[::7]])
    native_operators_are_python(
        function, [(single, key) for key in (0, ..., (), None, (None, ...), slice(None), (..., 0))]
    )
    native_operators_are_python(function, [(wrap(np.empty((0, 3))), key) for key in (0, slice(1, None), (..., 1), -1)])


def native_operators_are_python(function: Callable[..., Any], cases: Sequence[Sequence[Any]]) -> None:
    """As ``assert_native_is_python``; views may lie elsewhere."""
    fast_path.make_python()
    expected = [outcome(function, *operands) for operands in cases]
    assert fast_path.make_native()
    for value, operands in zip(expected, cases):
        found = outcome(function, *operands)
        assert type(found) is type(value), operands
        if isinstance(value, Tensor):
            assert found.dtype == value.dtype and same_bits(found.numpy(), value.numpy()), operands
        else:
            assert found == value, operands


@pytest.mark.usefixtures("native_slots")
def test_subscripts_show_the_memory_that_is_there() -> None:
    x = hf.asarray(np.arange(12.0).reshape(3, 4))
    counts = [sys.getrefcount(x._array)]
    views = [x[0], x[1:], x[..., 1], x[None], x[2, 3], x[::-1, 0]]
    counts.append(sys.getrefcount(x._array))
    assert all(np.shares_memory(x._array, view._array) for view in views)
    assert views[4].shape == () and type(views[4]._array) is np.ndarray
    del views
    counts.append(sys.getrefcount(x._array))
    assert counts == [counts[0], counts[0] + 6, counts[0]]


@pytest.mark.usefixtures("native_slots")
def test_conversions_are_the_ones_in_python() -> None:
    numbers = [0, 1, -1, 2**31, -(2**63), 2**63, 2**64 - 1, 0.0, -0.0, 0.5, np.nan, np.inf, 1e300]
    tensors = []
    with np.errstate(all="ignore"):
        for dtype in dtypes.REAL:
            for number in numbers:
                array = np.array(number).astype(dtype)
                tensors += [wrap(array), wrap(array.reshape(1, 1))]
    tensors += [hf.ones(3), wrap(np.zeros((0,))), wrap(np.ones((2, 2))[:1, :1]), wrap(np.array(3, ">i4"))]
    for function in (bool, float, int, operator.index, len):
        native_operators_are_python(lambda x, f=function: repr(f(x)), [(x,) for x in tensors])


@pytest.mark.usefixtures("native_slots")
def test_products_are_the_ones_in_python() -> None:
    x, y = hf.ones((3, 4)), hf.ones((4, 2))
    for left, right in ((x, y), (x, [1.0] * 4), (np.ones((2, 3), np.float32), x), (x, x), (x, "text")):
        native_operators_are_python(operator.matmul, [(left, right)])


@pytest.mark.usefixtures("native_slots")
def test_traces_see_subscripts_and_conversions() -> None:
    x = hf.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    one = hf.asarray(1.0)

    @hf.function
    def f(x: Any, c: Any) -> Any:
        with pytest.raises(hf.errors.TraceError):
            c[0, 1].tolist()
        return x[0] + c[1, ...] * float(one) * float(c[0, 1]) + len(x)

    for _ in range(3):
        assert f(x, x).tolist() == [5, 7, 9]
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(x[1, 1:] * 3.0)
    assert tape.gradient(y, x).tolist() == [[0, 0, 0], [0, 3, 3]]


# ---- who else has a say


@pytest.mark.usefixtures("native_slots")
def test_tapes_traces_and_devices_see_operators() -> None:
    x = hf.asarray(np.arange(4, dtype=np.float32))
    x + x, x * 3.0, x + x, x * 3.0
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum((x + x) * 3.0 * x)
    assert tape.gradient(y, x).tolist() == [12.0 * k for k in range(4)]

    @hf.function
    def f(x: Any, c: Any) -> Any:
        return -(x + c) * 2.0 + abs(c), x > c

    for _ in range(3):
        value, mask = f(x, x)
        assert value.tolist() == [-3.0 * k for k in range(4)] and mask.tolist() == [False] * 4


@pytest.mark.usefixtures("native_slots")
def test_classes_of_users_keep_their_operators() -> None:
    class Mine(Tensor):
        __slots__ = ()

        def __radd__(self, other: Any) -> Any:
            return "right"

        def __mul__(self, other: Any) -> Any:
            return "times"

        def __lt__(self, other: Any) -> Any:
            return "less"

    x, mine = hf.ones(3), object.__new__(Mine)
    mine._array = np.ones(3, np.float32)
    assert (x + mine, mine * x, mine < x, x > mine) == ("right", "times", "less", "less")
    assert (mine + x).tolist() == [2, 2, 2] and (-mine).tolist() == [-1, -1, -1]
    before = Tensor.__add__
    with pytest.raises(TypeError):
        Mine.__add__(3, x)  # type: ignore[arg-type]
    assert Mine.__add__ is before and isinstance(mine, Tensor)


class Left:
    def __add__(self, other: Any) -> Any:
        return NotImplemented

    def __sub__(self, other: Any) -> Any:
        return "left"

    def __gt__(self, other: Any) -> Any:
        return NotImplemented


@pytest.mark.usefixtures("operators")
def test_foreign_operands() -> None:
    x = hf.ones(3)
    assert Left() - x == "left"
    for case in (lambda: Left() + x, lambda: x + Left(), lambda: Left() > x, lambda: x < Left()):
        with pytest.raises(hf.errors.ArgumentTypeError, match="Left is not a tensor"):
            case()
    a = np.arange(3.0, dtype=np.float32)
    for y in (a + x, x + a, np.float32(1) + x):
        assert type(y) is Tensor
    assert x.__radd__(2.0).tolist() == [3, 3, 3] and x.__rsub__(2.0).tolist() == [1, 1, 1]
    with pytest.raises(TypeError):
        pow(x, 2, 3)


@pytest.mark.usefixtures("operators")
def test_errors_name_the_line_of_the_operator() -> None:
    x, y = hf.ones(3), hf.ones(4)
    for _ in range(3):
        with pytest.raises(hf.errors.ShapeError) as info:
            x + y
        assert info.value.where == f"{__file__}:{info.tb.tb_lineno}"
    n, zero = hf.asarray([1, 2]), hf.asarray([1, 0])
    for _ in range(3):
        with pytest.raises(hf.errors.DivisionError) as info:
            n // zero
        assert info.value.where == f"{__file__}:{info.tb.tb_lineno}"
        with pytest.raises(hf.errors.DivisionError):
            n % 0


# ---- references and memory


@pytest.mark.usefixtures("operators")
def test_operators_leak_nothing() -> None:
    x, y, half = hf.ones(10), hf.ones(10), 0.5
    bad, obj = hf.ones(7), Foreign()
    number = 123456789

    def work() -> None:
        x + y, x * half, half - x, -x, x > y, x == number, y / hf.asarray(2.0), x @ y
        for other in (bad, obj, "text"):
            with pytest.raises(hf.errors.HybridflowError):
                x + other

    for _ in range(20):
        work()
    watched = (x, y, half, bad, obj, number, Tensor, x._array, x.dtype, None, NotImplemented)
    collect_all()
    before, live = list(map(sys.getrefcount, watched)), memory_pool.stats().live
    for _ in range(2000):
        work()
    collect_all()
    after = list(map(sys.getrefcount, watched))
    assert all(abs(a - b) < 50 for a, b in zip(after, before)), list(zip(before, after))
    assert memory_pool.stats().live <= live


@pytest.mark.usefixtures("native_slots")
def test_a_hundred_thousand_results_come_and_go() -> None:
    x, y = hf.ones(10), hf.ones(10)
    for _ in range(3):
        x = x + y * 0.5
    collect_all()
    objects, stats = len(gc.get_objects()), memory_pool.stats()
    counts = [sys.getrefcount(v) for v in (Tensor, y, y.dtype)]
    for _ in range(100_000):
        x = x + y * 0.5
    collect_all()
    assert len(gc.get_objects()) - objects < 1000
    assert memory_pool.stats().live - stats.live < 1024 and memory_pool.stats().misses - stats.misses < 100
    assert [sys.getrefcount(v) for v in (Tensor, y, y.dtype)] == counts
    assert sys.getrefcount(x) == 2


@pytest.mark.usefixtures("native_slots")
def test_results_have_weak_references_and_no_attributes() -> None:
    x = hf.ones(3)
    x + x
    y = x + x
    gone: list[Any] = []
    reference = weakref.ref(y, gone.append)
    assert reference() is y and not hasattr(y, "__dict__")
    with pytest.raises(AttributeError):
        y.extra = 1  # type: ignore[attr-defined]
    del y
    assert gone == [reference]


@pytest.mark.usefixtures("native_slots")
def test_threads_share_operators() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        x = values(np.dtype("float32"), (64,), seed % 3)
        with np.errstate(all="ignore"):
            expected = (x._array * np.float32(3) - x._array) > 0
        for _ in range(3000):
            if not np.array_equal(((x * 3.0 - x) > 0)._array, expected):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):  # the slots come and go meanwhile
        fast_path.make_python()
        fast_path.make_native()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.usefixtures("native_slots")
def test_operands_that_get_other_values_in_another_thread() -> None:
    """An op that runs without the interpreter's lock reads what was there when it began."""
    size = 1 << 22
    x, y = hf.ones((size,)), hf.zeros((size,))
    x + y, -x, x + y, -x
    done = threading.Event()

    def give_values() -> None:
        for k in range(40):
            for value in (k, -5):  # the second into the memory of what nobody holds any more
                array = memory_pool.empty((size,), np.dtype(np.float32))
                array.fill(value)
                if value == k:
                    x._array = array
        done.set()

    thread = threading.Thread(target=give_values)
    thread.start()
    while not done.is_set():
        for z in (x + y, -x):
            assert z.numpy().min() == z.numpy().max()
    thread.join()


@pytest.mark.usefixtures("native_slots")
def test_large_results_are_of_the_pool() -> None:
    x = hf.ones((1 << 19,))
    x + x, x + x
    live = memory_pool.stats().live
    y = x + x
    assert memory_pool.stats().live - live >= y._array.nbytes
    del y
    assert memory_pool.stats().live <= live


# ---- when native code is loaded


def test_operators_become_native_after_some_use() -> None:
    program = f"""
import sys
import hybridflow as hf
x = hf.ones(3)
assert not any(name.startswith("llvmlite") for name in sys.modules)
for _ in range({tier_up.OPERATORS.threshold} - 1):
    x = x + x
assert not any(name.startswith("llvmlite") for name in sys.modules) and "__add__" not in vars(hf.Tensor)
x = x + x
assert "__add__" in vars(hf.Tensor)
for k in range(100):
    x = x * 0.5
assert x.tolist() == [2.0 ** -68] * 3
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


def test_traces_load_no_native_code_of_operators_and_tapes() -> None:
    program = f"""
import sys
import hybridflow as hf

def loss(x):
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for k in range({2 * tier_up.OPERATORS.threshold}):
            y = y * x
    return tape.gradient(y, x)

for _ in range(3):
    hf.function(lambda x: hf.sum(loss(x)))(hf.ones(3))
y = hf.function(lambda x: sum((x for _ in range({2 * tier_up.OPERATORS.threshold})), x))(hf.ones(3))
assert "__add__" not in vars(hf.Tensor) and type(vars(hf.GradientTape)["__enter__"]) is type(loss)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.parametrize("broken", ["PyLong_AsLongLongAndOverflow", "no wrapper"])
def test_where_slots_cannot_be_made_operators_stay_in_python(broken: str) -> None:
    program = f"""
from hybridflow.runtime.native import object_layout, native_functions
import hybridflow as hf
from hybridflow.eager import fast_path
from hybridflow.runtime.calls import entry

if {broken!r} == "no wrapper":
    object_layout.WRAPPER_KIND = 16  # where the class is
else:
    real = native_functions.load
    def load(build, settings, symbols, imports):
        if "slot_add" not in symbols:
            return real(build, settings, symbols, imports)
        return real(lambda: build().replace({broken!r}, "Py_NotHere"), (*settings, "broken"), symbols, imports)
    native_functions.load = load
x = hf.ones(3)
assert not fast_path.make_native() and "__add__" not in vars(hf.Tensor) and entry.enable() is not None
for _ in range(100):
    assert (x + x * 0.5).tolist() == [1.5] * 3
print("done")
"""
    environment = {**os.environ, "HF_CACHE_DIR": "off"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr
