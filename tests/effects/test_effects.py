"""Functions in Python that programs call: when they are called, with what, and what becomes of their errors."""

from __future__ import annotations

import contextlib
import gc
import re
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hybridflow import errors, flags
from hybridflow.compiler import target as targets
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.results import TOKEN
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.passes.pass_pipeline import SKIPPABLE
from hybridflow.compiler.pipeline import compile_graph, optimize
from hybridflow.eager import program_cache
from hybridflow.runtime import cpu
from hybridflow.runtime.calls.argument_specs import TensorArg
from hybridflow.runtime.calls.native_call import NativeCall
from hybridflow.runtime.machine import host_target, machine_code
from tests.support.cutting_host import cutting
from tests.support.fuzz import fast_compiler
from tests.support.jit_helper import runnable_targets
from tests.support.random_control import Generator

I, B = TensorType((), dt.int64), TensorType((), dt.bool_)
VEC = TensorType((Dim("n"),), dt.int64)
THREE = TensorType((3,), dt.int64)


def build(function: Callable[..., Any], *types: Any) -> Graph:
    """The graph of a function of a builder and parameters, which returns its outputs."""
    b = GraphBuilder(TABLE)
    return b.finish(function(b, *(b.parameter(t) for t in types)))


def note(b: GraphBuilder, token: Node, *xs: Node) -> Node:
    """Function 0 is told of values."""
    (token,) = b.results(b.callback(token, *xs, number=0, types=()))
    return token


def ask(b: GraphBuilder, token: Node, x: Node) -> tuple[Node, ...]:
    """Function 1 makes another value."""
    return b.results(b.callback(token, x, number=1, types=(x.type,)))


def one(b: GraphBuilder) -> Node:
    return b.literal(1, dt.int64)


class Log:
    """What functions were called with.  Function 1 returns one more than it is given."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.functions = [self.note, self.ask]

    def note(self, *arrays: np.ndarray) -> None:
        self.entries.append([a.tolist() for a in arrays])

    def ask(self, array: np.ndarray) -> np.ndarray:
        self.entries.append(("ask", array.tolist()))
        return np.asarray(array + 1)


# ---- programs: (function of a builder and inputs, types, several lists of arguments)


def in_a_row(b, x):
    """A result that nobody reads, equal calls, and values that are computed in between."""
    token, _ = ask(b, b.token(), x)
    token, y = ask(b, token, x)
    token = note(b, token, b.add(x, y), b.sum(y, axes=(0,)))
    note(b, note(b, token))
    return [b.multiply(y, y)]


def in_a_loop(b, x, n):
    def cond(b, i, x, n):
        return [b.less(i, n)]

    def body(b, token, i, x, n):
        token, x = ask(b, token, x)
        return [note(b, token, i), b.add(i, one(b)), x]

    types = (TOKEN, I, x.type, I)
    start = b.literal(0, dt.int64)
    whole = b.emit(TABLE["while"], b.token(), start, x, n, cond=build(cond, *types[1:]), body=build(body, *types))
    token, i, x = b.results(whole)
    note(b, token, i)
    return [x]


def in_branches(b, which, x):
    def first(b, token, x):
        return [note(b, note(b, token, x)), x]

    def second(b, token, x):
        return ask(b, token, x)

    types = (TOKEN, x.type)
    branches = (build(first, *types), build(second, *types), build(lambda b, token, x: [token, x], *types))
    token, y = b.results(b.cond(which, b.token(), x, branches=branches))
    note(b, token)
    return [y]


def in_a_scan(b, x):
    """Backwards; a call in a branch in the body, and results that are stacked."""

    def body(b, token, total, e):
        def told(b, token, e):
            return [note(b, token, e)]

        inner = (build(told, TOKEN, I), build(lambda b, token, e: [token], TOKEN, I))
        odd = b.equal(b.remainder(e, b.literal(2, dt.int64)), one(b))
        (token,) = b.results(b.cond(odd, token, e, branches=inner))
        token, e = ask(b, token, e)
        return [token, b.add(total, e), e]

    attrs = {"carries": 2, "stacked": 1, "length": x.shape[0], "reverse": True}
    start = b.literal(0, dt.int64)
    token, total, made = b.results(b.scan(b.token(), start, x, body=build(body, TOKEN, I, I), **attrs))
    note(b, token, total)
    return [total, made]


def among_checks(b, x, y, z):
    """Three divisions and a call after each."""
    token = b.token()
    found = []
    for d in (x, y, z):
        found.append(b.floor_divide(b.full(12, like=d), d))
        token = note(b, token, d)
    return [b.add(found[0], found[2])]  # the middle one is only there for its check


def checks_in_a_loop(b, x, n):
    """Each turn divides by a carry that comes to 0, between two calls."""

    def cond(b, i, x, n):
        return [b.less(i, n)]

    def body(b, token, i, x, n):
        token = note(b, token, i)
        q = b.floor_divide(b.full(12, like=x), b.subtract(x, b.broadcast(i, shape=x.shape, axes=())))
        return [note(b, token, q), b.add(i, one(b)), x]

    types = (TOKEN, I, x.type, I)
    start = b.literal(0, dt.int64)
    whole = b.emit(TABLE["while"], b.token(), start, x, n, cond=build(cond, *types[1:]), body=build(body, *types))
    token, _, x = b.results(whole)
    note(b, token)
    return [b.floor_divide(x, b.subtract(x, b.full(1, like=x)))]


def vectors(*lists):
    return [np.array(values, np.int64) for values in lists]


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], list[list[np.ndarray]]]] = {
    "in a row": (in_a_row, (VEC,), [vectors(range(n)) for n in (2, 5, 40)]),
    "in a loop": (in_a_loop, (VEC, I), [vectors([3, 4], n) for n in (0, 1, 2, 5)]),
    "in a loop over one": (in_a_loop, (I, I), [vectors(3, n) for n in (0, 1, 2, 5)]),
    "in branches": (in_branches, (I, VEC), [vectors(k, [1, 2]) for k in (0, 1, 2, -1)]),
    "in a scan": (in_a_scan, (THREE,), [vectors([4, 5, 7])]),
    "in a scan over n": (in_a_scan, (VEC,), [vectors(range(n)) for n in (2, 5)]),
    "in a scan over none": (in_a_scan, (TensorType((0,), dt.int64),), [vectors([])]),
    "among checks": (
        among_checks,
        (VEC, VEC, VEC),
        [vectors([1, a], [b, 1], [1, c]) for a in (0, 1) for b in (0, 2) for c in (0, 3)],
    ),
    "checks in a loop": (
        checks_in_a_loop,
        (THREE, I),
        [vectors(x, n) for x, n in (([4, 5, 6], 3), ([4, 2, 6], 3), ([0, 1, 1], 2), ([4, 1, 6], 0), ([4, 4, 4], 9))],
    ),
}


def graph_of(name: str) -> Graph:
    function, types, _ = PROGRAMS[name]
    return build(function, *types)


def outcome(run: Callable[[list[Any]], Any]) -> tuple[Any, Any]:
    """What was called with what; and the results, or the error."""
    log = Log()
    try:
        result = [np.asarray(x).tolist() for x in run(log.functions)]
    except errors.HybridflowError as error:
        result = [re.sub(r"  \(.*", "", str(error))]
    return log.entries, result


def run_of(executable: cpu.Executable, arrays: list[np.ndarray]) -> tuple[Any, Any]:
    return outcome(lambda functions: run_with(executable, functions, arrays))


def run_with(executable: cpu.Executable, functions: list[Any], arrays: list[np.ndarray]) -> Any:
    executable.functions = tuple(functions)
    return executable.run(arrays)


def compiled(graph: Graph, target: Any = None) -> cpu.Executable:
    return cpu.load(compile_graph(graph, target or host_target.target()), Log().functions)


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_are_called_as_the_interpreter_calls_them(name):
    graph = graph_of(name)
    verify(graph)
    text = to_text(graph)
    assert to_text(parse(text, TABLE)) == text
    with flags.VERIFY(1):
        better = optimize(graph)
    executables = [compiled(graph), *(compiled(graph, target) for target in runnable_targets().values())]
    for skipped in ("dce", "cse,simplify", ",".join(SKIPPABLE)):
        with flags.SKIP(skipped):
            executables.append(compiled(graph))
    for k, arrays in enumerate(PROGRAMS[name][2]):
        want = outcome(lambda functions, arrays=arrays: interpret(graph, arrays, functions)[0])
        assert outcome(lambda functions, arrays=arrays: interpret(better, arrays, functions)[0]) == want
        for executable in executables:
            assert run_of(executable, arrays) == want
            with cutting(k):
                assert run_of(executable, arrays) == want


def test_what_is_told():
    """The log itself, rather than that of another implementation."""
    log, _ = run_of(compiled(graph_of("in a loop")), vectors([3, 4], 2))
    assert log == [("ask", [3, 4]), [0], ("ask", [4, 5]), [1], [2]]
    log, result = run_of(compiled(graph_of("among checks")), vectors([1, 1], [0, 1], [1, 1]))
    assert log == [[[1, 1]]] and "divided by zero" in result[0]
    log, result = run_of(compiled(graph_of("among checks")), vectors([1, 1], [1, 1], [1, 0]))
    assert log == [[[1, 1]], [[1, 1]]] and "divided by zero" in result[0]
    log, _ = run_of(compiled(graph_of("in branches")), vectors(2, [1, 2]))
    assert log == [[]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_machines(name):
    program = compile_graph(graph_of(name), targets.AARCH64)
    assert machine_code.compile_object(program.text, program.target)
    with pytest.raises(errors.CompileError, match="a GPU cannot call a function in Python"):
        compile_graph(graph_of(name), targets.CUDA_SM90)


# ---- errors in Python


class Stopped(BaseException):
    pass


def failing_at(turn: int, error: BaseException) -> tuple[list[Any], Any]:
    seen: list[Any] = []

    def watch(*arrays: np.ndarray) -> None:
        seen.append([a.tolist() for a in arrays])
        if len(seen) > turn:
            raise error

    return seen, watch


@pytest.mark.parametrize("error", [ValueError("no"), Stopped(), errors.DivisionError("stage", "text")])
@pytest.mark.parametrize("workers", [0, 3])
def test_an_error_ends_the_call_as_it_is(error, workers):
    executable = compiled(graph_of("in a loop"))
    seen, watch = failing_at(1, error)
    executable.functions = (watch, lambda x: x)
    with pytest.raises(type(error)) as caught:
        if workers:
            with cutting(0, workers):
                executable.run(vectors([3, 4], 5))
        else:
            executable.run(vectors([3, 4], 5))
    assert caught.value is error and seen == [[0], [1]]
    assert "watch" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    executable.functions = tuple(Log().functions)
    assert executable.run(vectors([3, 4], 1))[0].tolist() == [4, 5]  # nothing is left of it


def test_an_error_comes_before_checks_below_it_and_after_those_above():
    executable = compiled(graph_of("among checks"))
    seen, watch = failing_at(1, KeyError("second"))
    executable.functions = (watch,)
    with pytest.raises(KeyError):
        executable.run(vectors([1, 1], [1, 1], [0, 0]))
    assert len(seen) == 2
    seen, watch = failing_at(1, KeyError("second"))
    executable.functions = (watch,)
    with pytest.raises(errors.DivisionError):
        executable.run(vectors([1, 1], [0, 1], [1, 1]))
    assert len(seen) == 1


@pytest.mark.parametrize("in_place", [False, True])
def test_an_error_leaves_state_as_it_was(in_place):
    """A call that comes after the new value is computed, which may need that value."""
    b = GraphBuilder(TABLE)
    v = b.parameter(THREE, "v", Role.STATE)
    after = b.add(v, b.full(1, like=v))
    note(b, b.token(), *([] if in_place else [after]))
    graph = b.finish([], {0: after})
    executable, state = compiled(graph), np.array([1, 2, 3])
    assert bool(executable.in_place) == in_place
    seen, watch = failing_at(1, ValueError())
    executable.functions = (watch,)
    executable.run([state])
    assert state.tolist() == [2, 3, 4]
    with pytest.raises(ValueError):
        executable.run([state])
    assert state.tolist() == [2, 3, 4] and len(seen) == 2


def test_an_error_is_not_kept():
    class Watched(Exception):
        pass

    def failing(x: np.ndarray) -> None:
        raise Watched

    executable = compiled(build(lambda b, x: [x, note(b, b.token(), x)][:1], THREE))
    executable.functions = (failing,)
    gc.collect()
    gc.disable()
    try:
        try:
            executable.run(vectors([1, 2, 3]))
        except Watched as error:
            gone = weakref.ref(error)
        assert gone() is None
    finally:
        gc.enable()


WRONG = {
    "returned int32[3] as result 0. Expected int64[3]": lambda x: x.astype(np.int32),
    "returned int64[2] as result 0. Expected int64[3]": lambda x: x[:2],
    "returned int64[1,3] as result 0. Expected int64[3]": lambda x: x[None],
    "returned object[] as result 0. Expected int64[3]": lambda x: None,
}


@pytest.mark.parametrize("message", WRONG)
def test_what_a_function_returns_must_be_of_the_declared_type(message):
    b = GraphBuilder(TABLE)
    x = b.parameter(THREE)
    b.location = "user.py:7"
    executable = compiled(b.finish([ask(b, b.token(), x)[1]]))
    executable.functions = (None, WRONG[message])
    with pytest.raises((errors.ShapeError, errors.DTypeError)) as caught:
        executable.run(vectors([1, 2, 3]))
    assert f"<lambda> {message}.  (user.py:7)" in str(caught.value)


@pytest.mark.parametrize(("returned", "found"), [(None, "NoneType"), ((1, 2, 3), "3 values"), (np.zeros(2), "ndarray")])
def test_several_results_are_a_tuple(returned, found):
    b = GraphBuilder(TABLE)
    _, x, y = b.results(b.callback(b.token(), number=0, types=(I, THREE)))
    executable = compiled(b.finish([y, x]))
    executable.functions = (lambda: [np.int64(4), np.array([1, 2, 3])],)
    assert [a.tolist() for a in executable.run([])] == [[1, 2, 3], 4]
    executable.functions = (lambda: returned,)
    with pytest.raises(errors.ArgumentError, match=f"returned {found}. Expected 2 arrays"):
        executable.run([])


def test_every_dtype_goes_in_and_out():
    for dtype in dt.REAL:
        type = TensorType((4,), dtype)
        executable = compiled(build(lambda b, x: [ask(b, b.token(), x)[1]], type))
        given = np.array([0, 1, 1, 0]).astype(dtype)
        executable.functions = (None, lambda x: x[::-1])
        (out,) = executable.run([given])
        assert out.dtype == dtype and out.tobytes() == given[::-1].tobytes()


def test_functions_keep_what_they_are_given():
    kept: list[np.ndarray] = []
    executable = compiled(graph_of("in a loop"))
    executable.functions = (lambda *xs: kept.extend(xs), lambda x: x + 1)
    for _ in range(2):
        executable.run(vectors([3, 4], 3))
    assert [int(x) for x in kept] == [0, 1, 2, 3] * 2


def test_a_function_may_run_the_same_program():
    executable = compiled(graph_of("in a loop"))
    depth = 0

    def again(*_: np.ndarray) -> None:
        nonlocal depth
        if depth < 3:
            depth += 1
            assert executable.run(vectors([0, 1], 1))[0].tolist() == [2, 3]
            depth -= 1

    executable.functions = (again, lambda x: x + 2)
    assert executable.run(vectors([3, 4], 2))[0].tolist() == [7, 8]


def test_programs_need_their_functions():
    program = compile_graph(graph_of("in a loop"), host_target.target())
    with pytest.raises(errors.ArgumentError, match="it calls 2 functions in Python, 1 given"):
        cpu.load(program, [print])
    slots = [TensorArg(np.dtype(np.int64), slot.shape, k) for k, slot in enumerate(program.inputs)]
    with pytest.raises(errors.ArgumentError, match="native code cannot call Python"):
        NativeCall(cpu.load(program, [print, print]), slots)


def test_programs_with_callbacks_are_kept_with_their_lines(tmp_path):
    def graph(line: int) -> Graph:
        def body(b, token, x):
            b.location = f"user.py:{line}"
            return [*ask(b, token, x)[:1], b.floor_divide(x, x)]

        b = GraphBuilder(TABLE)
        x = b.parameter(THREE)
        b.location = "user.py:1"
        return b.finish(b.results(b.call(b.token(), x, body=build(body, TOKEN, THREE)))[1:])

    with flags.CACHE_DIR(str(tmp_path)), flags.VERIFY(0):
        for line in (5, 6):
            for _ in range(2):
                program = program_cache.program_for(graph(line), host_target.target())
                assert [callback.where for callback in program.callbacks] == [f"user.py:{line}"]
                assert {check.where for check in program.checks} == {f"user.py:{line}"}


BAD = {
    "there is no operand. Expected a token": lambda b, x: b.callback(number=0, types=()),
    "the first operand is i64[3]. Expected a token": lambda b, x: b.callback(x, number=0, types=()),
    "number is -1. Expected that of a function": lambda b, x: b.callback(b.token(), number=-1, types=()),
    "Expected a tuple of types of arrays": lambda b, x: b.callback(b.token(), number=0, types=(TOKEN,)),
}


@pytest.mark.parametrize("message", BAD)
def test_callbacks_that_make_no_sense(message):
    with pytest.raises(errors.HybridflowError) as caught:
        build(BAD[message], THREE)
    assert message in str(caught.value)


BLOCKS = 4


@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_programs(block, request):
    """Nested control flow with calls, checks and errors in Python: results, errors and logs are the interpreter's."""
    count = max(request.config.getoption("fuzz") // (2 * BLOCKS), 1)
    first = request.config.getoption("fuzz_seed") + count * block
    calls = 0
    for seed in range(first, first + count):
        generator = Generator(seed, symbolic=seed % 3 == 0, effects=True)
        graph, arrays = generator.program()
        verify(graph)
        text = to_text(graph)
        assert to_text(parse(text, TABLE)) == text
        with flags.SKIP(("", "cse", "dce,fold", "simplify", "control")[seed % 5]), fast_compiler():
            executable = cpu.load(compile_graph(graph, host_target.target()), generator.functions([]))
        want = random_outcome(generator, lambda f, g=graph, a=arrays: interpret(g, a, f)[0])
        for workers in (0, 3):
            with cutting(seed, workers) if workers else contextlib.nullcontext():
                got = random_outcome(generator, lambda f, e=executable, a=arrays: run_with(e, f, a))
            assert got == want, f"seed {seed}\n{text}"
        calls += len(want[0])
    assert calls


def random_outcome(generator: Generator, run: Callable[[list[Any]], Any]) -> tuple[Any, Any]:
    log: list[Any] = []
    try:
        with np.errstate(all="ignore"):
            return log, [np.asarray(x).tobytes() for x in run(generator.functions(log))]
    except (errors.HybridflowError, KeyError) as error:
        return log, type(error).__name__
