"""Calls of compiled programs: what fits runs natively, everything else goes to Python."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import add_process_reason, reasons
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.runtime import cpu
from hybridflow.runtime.calls import entry, front_end, variable_locks
from hybridflow.runtime.calls.argument_specs import LiteralArg, SequenceArg, TensorArg
from hybridflow.runtime.calls.entry import Dispatcher
from hybridflow.runtime.calls.guard_program import GuardProgram
from hybridflow.runtime.calls.guard_steps import GuardStep
from hybridflow.runtime.calls.native_call import ConstantInput, NativeCall, VariableInput
from hybridflow.runtime.calls.result_steps import Make, tuple_of
from hybridflow.runtime.memory import memory_pool
from tests.support.garbage import collect_all
from tests.support.runtime_programs import accumulate, add, plus_one, pointwise, square_table

F32, F64 = np.dtype("f4"), np.dtype("f8")


pytestmark = pytest.mark.usefixtures("native")


class Callable(Dispatcher):
    """A function as the front end has them, whose slow path says that it was taken."""

    __slots__ = ("__weakref__", "slow_calls")

    def __init__(self, *signatures):
        self._dispatch = signatures
        self.slow_calls = 0

    def _call_slow(self, *args, **kwargs):
        self.slow_calls += 1
        return "slow", args, kwargs


class Variable:
    __slots__ = ("__weakref__", "_gate", "_own", "_tensor")

    def __init__(self, array, own=False):
        self._tensor, self._gate = wrap(array), variable_locks.VariableLock()
        self._own = self._tensor if own else None


N = Dim("n")


def vector(input=0, shape=(N,), dtype=F32):
    return TensorArg(dtype, shape, input)


def tensor(*values, dtype=np.float32):
    return wrap(np.array(values, dtype))


def is_slow(result):
    return isinstance(result, tuple) and len(result) == 3 and result[0] == "slow"


def check(result, expected):
    assert type(result) is Tensor
    assert result._array.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(result._array, expected)


# What fits, and what does not.


@pytest.mark.parametrize("n", [0, 1, 3, 64, 1000])
def test_tensor(n):
    f = Callable(NativeCall(cpu.load(plus_one()), [vector()]))
    x = np.linspace(-1, 1, n, dtype=np.float32)
    result = f(wrap(x))
    check(result, x + np.float32(1))
    assert result._array.ctypes.data % 64 == 0 and result._array.flags.writeable
    assert f.slow_calls == 0


def test_calls_that_do_not_fit():
    class Sub(Tensor):
        __slots__ = ()

    class SubArray(np.ndarray):
        pass

    derived = object.__new__(Sub)
    derived._array = np.zeros(3, np.float32)
    x = tensor(1, 2, 3)
    calls = [
        ((), {}),
        ((x, x), {}),
        ((x,), {"y": x}),
        ((), {"x": x}),
        ((1,), {}),
        ((None,), {}),
        ((np.zeros(3),), {}),
        ((np.float32(1),), {}),
        ((np.zeros(3, ">f4"),), {}),
        ((derived,), {}),
        ((object.__new__(Tensor),), {}),  # no array yet
        ((wrap(np.zeros(3, np.float32).view(SubArray)),), {}),
        ((wrap([1.0]),), {}),
        ((tensor(1, 2, dtype=np.float64),), {}),
        ((wrap(np.zeros(3, ">f4")),), {}),
        ((wrap(np.zeros((3, 1), np.float32)),), {}),
        ((wrap(np.float32(3).reshape(())),), {}),
    ]
    f = Callable(NativeCall(cpu.load(plus_one()), [vector()]))
    for count, (args, kwargs) in enumerate(calls, 1):
        result = f(*args, **kwargs)
        assert is_slow(result) and result[2] == kwargs
        assert len(result[1]) == len(args) and all(a is b for a, b in zip(result[1], args))
        assert f.slow_calls == count
    check(f(x), np.array([2, 3, 4], np.float32))


def test_memory_that_a_program_cannot_read_as_it_is():
    f = Callable(NativeCall(cpu.load(plus_one()), [vector()]))
    values = np.arange(6, dtype=np.float32)
    unaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    for array in (values[::2], values[::-1], np.broadcast_to(np.float32(7), 4), unaligned, values[:0:-2]):
        for x in (array, wrap(array)):
            check(f(x), array + np.float32(1))
    assert f.slow_calls == 0 and values.tolist() == list(range(6))


def test_empty_and_odd_tables():
    f = Callable()
    assert is_slow(f(tensor(1)))
    for table in ([NativeCall(cpu.load(plus_one()), [vector()])], (1, None, "x"), None, "no"):
        f._dispatch = table
        assert is_slow(f(tensor(1)))
    del f._dispatch
    assert is_slow(f(tensor(1)))


def test_static_shape_and_several_signatures():
    executable = cpu.load(plus_one(dims=False))
    f = Callable(
        NativeCall(executable, [vector(shape=(4,)), vector(None, (2, Dim("k")), F64)]),
        NativeCall(executable, [vector(shape=(4,))]),
    )
    x = tensor(1, 2, 3, 4)
    check(f(x), np.array([2, 3, 4, 5], np.float32))
    check(f(x, wrap(np.zeros((2, 7)))), np.array([2, 3, 4, 5], np.float32))
    assert is_slow(f(tensor(1, 2, 3)))
    assert is_slow(f(x, wrap(np.zeros((3, 7)))))


def test_symbolic_extents_agree_and_have_minimums():
    f = Callable(NativeCall(cpu.load(add()), [vector(), vector(1)], minimums={"n": 2}))
    check(f(tensor(1, 2), tensor(10, 20)), np.array([11, 22], np.float32))
    assert is_slow(f(tensor(1, 2), tensor(10, 20, 30)))
    assert is_slow(f(tensor(1), tensor(2)))
    assert is_slow(f(tensor(), tensor()))


def test_literals():
    program, nan = plus_one(), float("nan")
    marker = object()
    values = [1, 1.0, True, 0.0, -0.0, nan, None, "text", 1 << 80, -7, marker]
    for value in values:
        f = Callable(NativeCall(cpu.load(program), [vector(), LiteralArg(value)]))
        assert not is_slow(f(tensor(1), value))
        for other in values:
            if other is not value:
                assert is_slow(f(tensor(1), other)), (value, other)
    # Equal values of the same type fit, whichever object they are.
    f = Callable(NativeCall(cpu.load(program), [vector(), LiteralArg(1234567.25), LiteralArg(987654321)]))
    assert not is_slow(f(tensor(1), float("1234567.25"), int("987654321")))


def test_keywords():
    f = Callable(NativeCall(cpu.load(plus_one()), [vector(), LiteralArg(True)], keywords=["training"]))
    x = tensor(1)
    check(f(x, training=True), np.array([2], np.float32))
    assert is_slow(f(x, training=False))
    assert is_slow(f(x, True))
    assert is_slow(f(x, other=True))
    assert is_slow(f(x, training=True, other=1))
    check(f(x, training=True), np.array([2], np.float32))


# Guards.


def test_guards():
    cell, module, owner = types.CellType(1.5), {"w": F32}, types.SimpleNamespace(w=F64)
    f = Callable(
        NativeCall(
            cpu.load(plus_one()),
            [vector()],
            guards=GuardProgram(
                [
                    GuardStep("root", operand=cell),
                    GuardStep("cell", 0, None, "number", 1.5),
                    GuardStep("root", operand=module),
                    GuardStep("item", 2, "w", "is", F32),
                    GuardStep("root", operand=owner),
                    GuardStep("attribute", 4, "w", "is", F64),
                ]
            ),
        )
    )
    x = tensor(1)
    for change, undo in (
        (lambda: setattr(cell, "cell_contents", 2.5), lambda: setattr(cell, "cell_contents", 1.5)),
        (lambda: delattr(cell, "cell_contents"), lambda: setattr(cell, "cell_contents", 1.5)),
        (lambda: module.update(w=1), lambda: module.update(w=F32)),
        (lambda: module.pop("w"), lambda: module.update(w=F32)),
        (lambda: setattr(owner, "w", 1), lambda: setattr(owner, "w", F64)),
        (lambda: delattr(owner, "w"), lambda: setattr(owner, "w", F64)),
    ):
        assert not is_slow(f(x))
        change()
        assert is_slow(f(x))
        undo()
    check(f(x), np.array([2], np.float32))


# Captures and state.


def test_constant_and_variable():
    constant, variable = np.array([10, 20, 30, 40], np.float32), Variable(np.array([1, 2, 3, 4], np.float32))
    executable = cpu.load(add(dims=False))
    f = Callable(NativeCall(executable, [], [ConstantInput(0, constant), VariableInput(1, variable)]))
    check(f(), np.array([11, 22, 33, 44], np.float32))
    variable._tensor = tensor(5, 5, 5, 5)
    check(f(), np.array([15, 25, 35, 45], np.float32))
    for other in (tensor(1, 2), tensor(1, 2, 3, 4, dtype=np.float64), 3):
        variable._tensor = other
        assert is_slow(f())
    del variable._tensor
    assert is_slow(f())


def state_function(array, own=False, in_place=True):
    variable = Variable(array, own)
    signature = NativeCall(
        cpu.load(accumulate(outputs=1, in_place=in_place)),
        [vector(1, (4,), F64)],
        [VariableInput(0, variable)],
    )
    return variable, Callable(signature)


def test_a_value_of_the_variables_own_is_written_over():
    variable, f = state_function(np.arange(4.0), own=True)
    address = variable._tensor._array.ctypes.data
    one = wrap(np.ones(4))
    for k in range(3):
        check(f(one), np.arange(4.0) + k)
    assert variable._tensor._array.ctypes.data == address and f.slow_calls == 0
    np.testing.assert_array_equal(variable._tensor._array, np.arange(4.0) + 3)


def test_a_value_that_others_may_see_is_replaced():
    array = np.arange(4.0)
    variable, f = state_function(array)
    before, one = variable._tensor, wrap(np.ones(4))
    check(f(one), np.arange(4.0))
    np.testing.assert_array_equal(array, np.arange(4.0))
    assert variable._tensor is not before and variable._own is variable._tensor
    address = variable._tensor._array.ctypes.data
    check(f(one), np.arange(4.0) + 1)  # from here on the memory is the variable's own
    assert variable._tensor._array.ctypes.data == address and f.slow_calls == 0
    np.testing.assert_array_equal(variable._tensor._array, np.arange(4.0) + 2)


def test_a_program_that_must_not_write_in_place_gets_other_memory():
    variable, f = state_function(np.arange(4.0), own=True, in_place=False)
    array, one = variable._tensor._array, wrap(np.ones(4))
    check(f(one), np.arange(4.0))
    np.testing.assert_array_equal(array, np.arange(4.0))
    np.testing.assert_array_equal(variable._tensor._array, np.arange(4.0) + 1)
    assert variable._own is variable._tensor


@pytest.mark.parametrize("word", [variable_locks.CLAIMED, variable_locks.RUNNING, variable_locks.READERS])
def test_a_variable_that_somebody_is_at_work_on_is_left_alone(word):
    variable, f = state_function(np.arange(4.0), own=True)
    array = variable._tensor._array
    variable._gate.words[word] = 1
    result = f(wrap(np.ones(4)))
    np.testing.assert_array_equal(array, np.arange(4.0))
    if word == variable_locks.READERS:  # of the old memory: the new value goes elsewhere
        check(result, np.arange(4.0))
        np.testing.assert_array_equal(variable._tensor._array, np.arange(4.0) + 1)
    else:
        assert is_slow(result)
    variable._gate.words[word] = 0
    check(f(wrap(np.ones(4))), np.arange(4.0) + (word == variable_locks.READERS))


# Results.


FIRST, SECOND = Make("output", 0), Make("output", 1)


class Point:
    __slots__ = ("__dict__", "x")


def test_results():
    executable, x = cpu.load(plus_one(outputs=2)), tensor(1)

    def f(*steps):
        return Callable(NativeCall(executable, [vector()], results=steps))(x)

    for kind in (tuple, list):
        result = f(FIRST, SECOND, Make(kind.__name__, None, 2))
        assert type(result) is kind and len(result) == 2
        for item in result:
            check(item, np.array([2], np.float32))
        assert result[0]._array.ctypes.data != result[1]._array.ctypes.data
        assert f(Make(kind.__name__)) == kind()
    assert f(Make("object", None)) is None
    assert f(Make("extent", N + 4)) == 5
    named = f(SECOND, FIRST, Make("dict", ("b", 1), 2))
    assert list(named) == ["b", 1]
    check(named["b"], np.array([2], np.float32))
    same, extent, one = f(
        FIRST, Make("extent", N), Make("extent", 7), Make("tuple", None, 2), FIRST, Make("list", None, 3)
    )
    assert same is one and extent == (1, 7)
    point = f(Make("object", 1), FIRST, Make("object", 2), Make("instance", (Point, ("y", "x", "z")), 3))
    assert type(point) is Point and list(vars(point)) == ["y", "z"] and type(point.x) is Tensor
    assert f(FIRST, Make("call", lambda out: out.shape, 1)) == (1,) and f(Make("call", dict)) == {}


def test_arguments_in_results():
    results = [Make("argument", 1), Make("output", 0), Make("argument", 1), Make("tuple", None, 3)]
    f = Callable(NativeCall(cpu.load(plus_one()), [SequenceArg(list, (vector(),))], results=results))
    x, array = tensor(1, 2), np.array([3, 4, 5, 6], np.float32)
    assert [part is x for part in f([x])] == [True, False, True]
    for given in (array, array[::2]):  # which the caller may change
        first, out, second = f([given])
        assert first is second
        check(first, given)
        check(out, given + 1)
        assert not np.shares_memory(first._array, array)
    assert f.slow_calls == 0


def test_results_that_cannot_be_made():
    class Bad:
        def __hash__(self):
            raise KeyError("broken")

    class Sealed:
        x = property(lambda self: 1)

    executable, x, key = cpu.load(plus_one(outputs=2)), tensor(1), Bad.__new__(Bad)

    def f(*steps):
        return NativeCall(executable, [vector()], results=steps)

    live = memory_pool.stats().live
    for _ in range(20):
        with pytest.raises(KeyError, match="broken"):
            Callable(f(FIRST, Make("call", lambda out: {}["broken"], 1)))(x)
        with pytest.raises(KeyError, match="broken"):
            Callable(f(SECOND, FIRST, Make("dict", (key,), 1), Make("tuple", None, 2)))(x)
        with pytest.raises(AttributeError):
            Callable(f(FIRST, Make("instance", (Sealed, ("x",)), 1)))(x)
    assert memory_pool.stats().live <= live
    for steps in (
        (),
        (FIRST, SECOND),
        (Make("tuple", None, 1),),
        (FIRST, Make("dict", ("a", "b"), 1)),
        (Make("output", 2),),
        (Make("argument", 1),),
        (Make("other"),),
        (FIRST, SECOND, Make("call", print, 2)),
        (Make("call", 3),),
    ):
        with pytest.raises((errors.ArgumentError, IndexError)):
            f(*steps)


def test_failed_check():
    f = Callable(NativeCall(cpu.load(plus_one(unlucky=3)), [vector()]))
    e = entry.elementwise(cpu.load(plus_one(unlucky=3)))
    live = memory_pool.stats().live
    for call in (f, e) * 20:
        with pytest.raises(errors.DivisionError, match=r"\[pointwise\] 3 elements.  \(train.py:7\)"):
            call(tensor(1, 2, 3))
        check(call(tensor(1)), np.array([2], np.float32))
    assert memory_pool.stats().live <= live and f.slow_calls == 0


def test_slow_path_errors_pass():
    class Failing(Dispatcher):
        __slots__ = ()

        def _call_slow(self, x):
            raise ValueError(f"no signature for {x}")

    with pytest.raises(ValueError, match="no signature for 3"):
        Failing()(3)
    with pytest.raises(TypeError, match="positional argument"):
        Failing()(3, 4)
    with pytest.raises(NotImplementedError, match="_call_slow"):
        Dispatcher()(3)


def test_busy():
    f = Callable(NativeCall(cpu.load(plus_one()), [vector()]))
    add_process_reason(1)
    try:
        assert is_slow(f(tensor(1)))
    finally:
        add_process_reason(-1)
    assert not is_slow(f(tensor(1)))


def test_no_memory():
    f = Callable(NativeCall(cpu.load(square_table()), [vector(dtype=np.dtype("u1"))]))
    assert f(wrap(np.zeros(10, np.uint8)))._array.shape == (10, 10)
    live = memory_pool.stats().live
    with pytest.raises(MemoryError, match="an array of 140737488355328 bytes"):
        f(wrap(np.zeros(1 << 22, np.uint8)))  # 128 TiB
    assert memory_pool.stats().live <= live
    with pytest.raises(MemoryError):
        f(wrap(np.broadcast_to(np.zeros(1, np.uint8), (1,)).repeat(1 << 22)))
    assert f(wrap(np.zeros(3, np.uint8)))._array.shape == (3, 3)


# Ownership.


def test_nothing_leaks():
    variable, constant = Variable(np.ones(4, np.float32)), np.ones(4, np.float32)
    f = Callable(
        NativeCall(
            cpu.load(pointwise("%r = fadd float %v0, %v2", inputs=3, dims=False, outputs=2)),
            [vector(0, (4,)), LiteralArg(2.5)],
            [ConstantInput(1, constant), VariableInput(2, variable)],
            results=tuple_of(2),
        )
    )
    e = entry.elementwise(cpu.load(add()))
    x = tensor(1, 2, 3, 4)
    watched = (x, x._array, variable, variable._tensor, constant, f._dispatch[0], f._dispatch, F32, None, Tensor)

    def calls():
        for _ in range(200):
            f(x, 2.5), f(x), f(x, k=2), e(x, x), e(x), e(x, 1.0)
            f._dispatch[0].executable  # noqa: B018

    calls()
    collect_all()
    before, live, objects = [sys.getrefcount(o) for o in watched], memory_pool.stats().live, len(gc.get_objects())
    calls()
    collect_all()
    after = [sys.getrefcount(o) for o in watched]
    assert all(abs(b - a) <= 3 for a, b in zip(before, after)), (before, after)
    assert memory_pool.stats().live <= live and len(gc.get_objects()) - objects < 100


def test_everything_goes_with_its_function():
    variable = Variable(np.ones(4, np.float32))
    f = Callable(
        NativeCall(cpu.load(add(dims=False)), [vector(0, (4,))], [VariableInput(1, variable)]),
    )
    f(tensor(1, 2, 3, 4))
    code = weakref.ref(f._dispatch[0].executable._codes[-1])
    signature, variable_ref = weakref.ref(f._dispatch[0]), weakref.ref(variable)
    del variable
    f(tensor(1, 2, 3, 4))
    del f
    collect_all()
    assert code() is None and signature() is None and variable_ref() is None


def test_threads():
    """Large programs run without the GIL, read variables that others replace, and share the pool."""
    n = 1 << 18
    executable = cpu.load(add())
    f = Callable(NativeCall(executable, [vector(), vector(1)]))
    variable = Variable(np.zeros(n, np.float32))
    g = Callable(
        NativeCall(
            cpu.load(add()),
            [vector()],
            [VariableInput(1, variable)],
        )
    )
    failures = []

    def work(k):
        try:
            x = wrap(np.full(n, k, np.float32))
            small = wrap(np.full(3, k, np.float32))
            for i in range(10):
                assert (f(x, x)._array == 2 * k).all()
                out = g(x)._array
                assert (out == out[0]).all()
                variable._tensor = wrap(np.full(n, i, np.float32))
                assert (f(small, small)._array == 2 * k).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and f.slow_calls == g.slow_calls == 0


def test_call_as_an_attribute():
    f = Callable(NativeCall(cpu.load(plus_one()), [vector()]))
    assert callable(f) and callable(Dispatcher.__call__)
    check(f.__call__(tensor(1)), np.array([2], np.float32))
    check(Callable.__call__(f, tensor(1)), np.array([2], np.float32))
    assert is_slow(f.__call__(1))
    with pytest.raises((TypeError, AttributeError)):
        Dispatcher.__call__(object(), 1)


# Signatures that make no whole.


@pytest.mark.parametrize(
    "make",
    [
        lambda ex: NativeCall(ex, [vector()]),  # input 1 has no source
        lambda ex: NativeCall(ex, [vector(), vector(0)]),
        lambda ex: NativeCall(ex, [vector(), vector(1), vector(2)]),
        lambda ex: NativeCall(ex, [vector(), vector(1, dtype=F64)]),
        lambda ex: NativeCall(ex, [vector(), vector(1, (Dim("n"), 1))]),
        lambda ex: NativeCall(ex, [vector(), vector(1)], defaults=[1, 2, 3]),
        lambda ex: NativeCall(ex, [vector(), vector(1)], keywords=["a", "b", "c"]),
        lambda ex: NativeCall(ex, [], [VariableInput(0, Variable(np.zeros(2))), ConstantInput(1, np.zeros(2))]),
        lambda ex: NativeCall(ex, [vector()], [VariableInput(1, object())]),
    ],
)
def test_inconsistent_signatures_raise(make):
    with pytest.raises((errors.ArgumentError, TypeError)):
        make(cpu.load(add()))


def test_another_tensor_class_is_refused():
    front_end.setup(Tensor, Variable, reasons)
    with pytest.raises(errors.ArgumentError, match="already set up"):
        front_end.setup(Variable, Variable, reasons)


# Elementwise functions.


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (0, 4), (1, 1, 7), (2, 3, 4, 5)])
def test_elementwise_shapes(shape):
    f = entry.elementwise(cpu.load(add()))
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    check(f(wrap(x), wrap(x)), x + x)


def test_elementwise_misses():
    f = entry.elementwise(cpu.load(add()), "add")
    x = tensor(1, 2, 3)
    wrong = [
        (),
        (x,),
        (x, x, x),
        (x, 1.0),
        (1.0, x),
        (None, x),
        (x, x._array),
        (x, tensor(1, 2)),
        (x, tensor(1)),
        (x, wrap(np.ones((3, 1), np.float32))),
        (x, tensor(1, 2, 3, dtype=np.float64)),
        (tensor(1, 2, 3, dtype=np.int32), x),
        (x, wrap(np.ones(6, np.float32)[::2])),
        (wrap(np.ones((3, 2), np.float32).T), wrap(np.ones((2, 3), np.float32))),
        (wrap("text"), x),
        (object.__new__(Tensor), x),
        (x, object.__new__(Tensor)),
    ]
    for args in wrong:
        assert f(*args) is NotImplemented, args
    with pytest.raises(TypeError):
        f(x, y=x)
    assert f.__name__ == "add"


def test_elementwise_needs_an_elementwise_program():
    for program in (square_table(), accumulate(), add(dims=False), plus_one(outputs=2)):
        if program.name != "table":
            with pytest.raises(errors.ArgumentError):
                entry.elementwise(cpu.load(program))


def test_arguments_that_get_other_values_in_another_thread(native):
    """A program that runs without the interpreter's lock reads what was there when it began."""
    size = 1 << 22
    x = hf.ones((size,))

    @hf.function
    def f(x):
        return x + 1.0

    for _ in range(3):
        f(x), hf.exp(x)
    done = threading.Event()

    def give_values():
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
        for z in (f(x), hf.exp(x)):
            assert z.numpy().min() == z.numpy().max()
    thread.join()


def test_the_text_of_the_entry_is_short():
    """It is compiled at the first call on a machine: lines are what that costs.  Each return writes little."""
    from hybridflow.runtime.calls import entry_code

    text = entry_code.build(entry.offsets())
    assert text.count("\n") < 8650
    assert text.count("\ndefine ") < 80
