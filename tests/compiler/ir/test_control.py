"""Control flow built by hand: text, verifier, passes, interpreter and compiled code agree, to the bit."""

from __future__ import annotations

import itertools
import re
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
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.passes.pass_pipeline import SKIPPABLE
from hybridflow.compiler.pipeline import compile_graph, optimize
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, ptx
from hybridflow.runtime.machine import host_target, machine_code
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.jit_helper import runnable_targets

F, I, B = (TensorType((), d) for d in (dt.float32, dt.int64, dt.bool_))
N = Dim("n")
VEC = TensorType((N,), dt.float32)
FIVE = TensorType((5,), dt.float32)


def build(function: Callable[..., Any], *types: Any, name: str = "g", role: Role = Role.ARGUMENT) -> Graph:
    """The graph of a function of a builder and parameters, which returns its outputs."""
    b = GraphBuilder(TABLE, name)
    return b.finish(function(b, *(b.parameter(t, f"x{i}", role) for i, t in enumerate(types))))


def number(b: GraphBuilder, value: Any, dtype: Any = dt.int64) -> Node:
    return b.literal(value, dtype)


def loop(b: GraphBuilder, carries: list[Node], rest: list[Node], cond: Any, body: Any) -> tuple[Node, ...]:
    types = [n.type for n in (*carries, *rest)]
    return b.results(
        b.emit(TABLE["while"], *carries, *rest, cond=build(cond, *types, name="cond"), body=build(body, *types))
    )


def choose(b: GraphBuilder, which: Node, given: list[Node], *branches: Any) -> tuple[Node, ...]:
    types = [n.type for n in given]
    return b.results(b.cond(which, *given, branches=tuple(build(f, *types, name="branch") for f in branches)))


def below(b: GraphBuilder, *xs: Node) -> list[Node]:
    """Goes on while the first carry, a counter, is below the last operand."""
    return [b.less(xs[0], xs[-1])]


def next_of(b: GraphBuilder, i: Node) -> Node:
    return b.add(i, number(b, 1))


# ---- programs: (function of a builder and inputs, types, several lists of arguments)


def powers(b, x, i, n):
    return loop(b, [i, x], [n], below, lambda b, i, x, n: [next_of(b, i), b.multiply(x, number(b, 1.5, dt.float32))])


def decay(b, x, n):
    """A loop over an array with a scalar counter, which reads what is the same in each turn."""

    def body(b, i, y, x, n):
        return [next_of(b, i), b.subtract(b.multiply(y, y), b.sin(x))]

    return loop(b, [number(b, 0), x], [x, n], below, body)


def until_small(b, x):
    """The condition is a fold over an array."""

    def cond(b, y):
        return [b.less(number(b, 1.0, dt.float32), b.sum(b.multiply(y, y), axes=(0,)))]

    return loop(b, [x], [], cond, lambda b, y: [b.multiply(y, b.full(0.5, like=y))])


def swapped(b, x, y, n):
    def body(b, i, x, y, n):
        return [next_of(b, i), y, x]

    return loop(b, [number(b, 0), x, y], [n], below, body)[1:]


def of_two(b, which, x, y):
    def first(b, x, y):
        return [b.add(x, y), b.sum(x, axes=(0,))]

    def second(b, x, y):
        return [y, b.max(b.multiply(x, y), axes=(0,))]

    return choose(b, which, [x, y], first, second)


def of_three(b, which, x):
    return choose(b, which, [x], *(lambda b, x, k=k: [b.multiply(x, number(b, k, dt.float32))] for k in (2, 3, 5)))


def running(b, x, start):
    """A scan over scalars with a scalar carry."""
    body = build(lambda b, c, x: [b.add(b.multiply(c, number(b, 0.5, dt.float32)), x), b.sin(c)], F, F)
    return b.results(b.scan(start, x, body=body, carries=1, stacked=1, length=x.shape[0], reverse=False))


def rows(b, x, start):
    """A scan over rows, backwards, that stacks rows and sums."""
    row = TensorType(x.shape[1:], x.dtype)

    def body(b, c, x):
        y = b.add(b.sin(c), x)
        return [y, b.multiply(y, x), b.sum(y, axes=(0,))]

    attrs = {"carries": 1, "stacked": 1, "length": x.shape[0], "reverse": True}
    return b.results(b.scan(start, x, body=build(body, row, row), **attrs))


def nested(b, x, n):
    """A cond in a while in a while, all of single elements."""

    def inner_body(b, j, s, n):
        odd = b.equal(b.remainder(j, number(b, 2)), number(b, 1))
        (t,) = choose(b, odd, [s, j], lambda b, s, j: [b.multiply(s, s)], lambda b, s, j: [b.cos(s)])
        return [next_of(b, j), t]

    def body(b, i, s, n):
        _, t = loop(b, [number(b, 0), s], [i], below, inner_body)
        return [next_of(b, i), t]

    return loop(b, [number(b, 0), x], [n], below, body)


def nested_arrays(b, x, n):
    """A scan and a cond in a while over an array."""

    def body(b, i, y, n):
        attrs = {"carries": 1, "stacked": 1, "length": y.shape[0], "reverse": False}
        inner = build(lambda b, c, e: [b.add(c, e), b.multiply(c, e)], F, F)
        total, products = b.results(b.scan(number(b, 0.25, dt.float32), y, body=inner, **attrs))
        big = b.less(number(b, 10.0, dt.float32), b.abs(total))
        (z,) = choose(b, big, [y, products], lambda b, y, p: [b.tanh(y)], lambda b, y, p: [b.add(y, p)])
        return [next_of(b, i), z]

    return loop(b, [number(b, 0), x], [n], below, body)


def dividing(b, d, n):
    """Each turn divides by a carry that comes to 0."""

    def body(b, i, d, s, n):
        return [next_of(b, i), b.subtract(d, number(b, 1)), b.add(s, b.floor_divide(number(b, 100), d))]

    return loop(b, [number(b, 0), d, number(b, 0)], [n], below, body)


def dividing_arrays(b, d, n):
    def body(b, i, d, s, n):
        return [next_of(b, i), b.subtract(d, b.full(1, like=d)), b.add(s, b.floor_divide(s, d))]

    return loop(b, [number(b, 0), d, d], [n], below, body)


def looked_up(b, x, n):
    """Elements of an array by a counter, out of range in the end."""

    def body(b, i, s, x, n):
        return [next_of(b, i), b.add(s, b.take(x, i, axis=0))]

    return loop(b, [number(b, 0), number(b, 0.0, dt.float32)], [x, n], below, body)


def called(b, x, y):
    body = build(lambda b, x, y: [b.add(x, b.sin(y)), b.sum(x, axes=(0,))], x.type, y.type)
    first = b.results(b.call(x, y, body=body))
    return [*first, *b.results(b.call(y, first[0], body=body))]


def ints(*values):
    return [np.array(v, np.int64) for v in values]


def floats(n, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, n).astype(np.float32)


def scalar(value):
    return np.array(value, np.float32)


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], list[list[np.ndarray]]]] = {
    "powers": (powers, (F, I, I), [[scalar(1.25), *ints(0, n)] for n in (0, 1, 2, 9)]),
    "decay": (decay, (VEC, I), [[floats(m), *ints(n)] for m, n in itertools.product((2, 7, 40), (0, 1, 2, 5))]),
    "decay of five": (decay, (FIVE, I), [[floats(5), *ints(n)] for n in (0, 1, 2, 3)]),
    "until small": (until_small, (VEC,), [[floats(m) * s] for m, s in ((3, 0.1), (3, 10), (50, 40))]),
    "swapped": (swapped, (VEC, VEC, I), [[floats(6), floats(6, 1), *ints(n)] for n in (0, 1, 2, 3)]),
    "of two": (of_two, (B, VEC, VEC), [[np.array(w), floats(9), floats(9, 1)] for w in (True, False)]),
    "of three": (of_three, (I, F), [[*ints(k), scalar(1.5)] for k in (-1, 0, 1, 2, 3, 2**40)]),
    "running": (running, (VEC, F), [[floats(m), scalar(1)] for m in (2, 3, 33)]),
    "running none": (running, (TensorType((0,), dt.float32), F), [[floats(0), scalar(1)]]),
    "rows": (
        rows,
        (TensorType((N, 3), dt.float32), TensorType((3,), dt.float32)),
        [[floats((m, 3)), floats(3, 1)] for m in (2, 3, 8)],
    ),
    "rows of symbols": (
        rows,
        (TensorType((4, N), dt.float32), TensorType((N,), dt.float32)),
        [[floats((4, m)), floats(m, 1)] for m in (2, 5, 70)],
    ),
    "nested": (nested, (F, I), [[scalar(0.7), *ints(n)] for n in (0, 1, 5)]),
    "nested arrays": (nested_arrays, (VEC, I), [[floats(m), *ints(n)] for m, n in ((2, 0), (6, 3), (20, 4))]),
    "dividing": (dividing, (I, I), [ints(d, n) for d, n in ((5, 0), (5, 3), (5, 5), (5, 6), (3, 10**9))]),
    "dividing arrays": (
        dividing_arrays,
        (TensorType((N,), dt.int64), I),
        [[np.array([7, 3, 9]), *ints(n)] for n in (0, 2, 3, 4, 10**9)],
    ),
    "looked up": (looked_up, (TensorType((4,), dt.float32), I), [[floats(4), *ints(n)] for n in (0, 3, 4, 5, 10**9)]),
    "called": (called, (VEC, VEC), [[floats(7), floats(7, 1)]]),
}


def graph_of(name: str) -> Graph:
    function, types, _ = PROGRAMS[name]
    return build(function, *types, name=name)


def outcome(run: Callable[[], Any]) -> Any:
    """The bytes of all results, or the error."""
    try:
        return [(np.asarray(x).dtype, np.asarray(x).shape, np.asarray(x).tobytes()) for x in run()]
    except errors.HybridflowError as error:
        return type(error), re.sub(r"  \(.*", "", str(error))


def close(got: Any, want: Any) -> None:
    """Equal errors, or results that differ by how references round."""
    assert type(got) is type(want), (got, want)
    if isinstance(want, tuple):
        assert got == want
        return
    for (dtype, shape, data), (other, other_shape, expected) in zip(got, want, strict=True):
        assert (dtype, shape) == (other, other_shape)
        a, b = np.frombuffer(data, dtype), np.frombuffer(expected, dtype)
        if dt.is_float(dtype):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, b)


def compiled(graph: Graph, arrays: list[np.ndarray], target: Any = None) -> Any:
    executable = cpu.load(compile_graph(graph, target or host_target.target()))
    return outcome(lambda arrays=arrays: executable.run(arrays))


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_and_passes(name):
    graph = graph_of(name)
    verify(graph)
    text = to_text(graph)
    again = parse(text, TABLE)
    verify(again)
    assert to_text(again) == text
    with flags.VERIFY(1):
        better = optimize(graph)
    for arrays in PROGRAMS[name][2]:
        want = outcome(lambda arrays=arrays: interpret(graph, arrays)[0])
        assert outcome(lambda arrays=arrays: interpret(again, arrays)[0]) == want
        assert outcome(lambda arrays=arrays: interpret(better, arrays)[0]) == want


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_do_what_the_interpreter_does(name):
    graph = graph_of(name)
    executable = cpu.load(compile_graph(graph, host_target.target()))
    others = [cpu.load(compile_graph(graph, target)) for target in runnable_targets().values()]
    for skipped in ("dce", "cse,simplify", ",".join(SKIPPABLE)):
        with flags.SKIP(skipped):
            others.append(cpu.load(compile_graph(graph, host_target.target())))
    for arrays in PROGRAMS[name][2]:
        want = outcome(lambda arrays=arrays: interpret(graph, arrays)[0])
        got = outcome(lambda arrays=arrays: executable.run(arrays))
        close(got, want)
        for other in others:
            assert outcome(lambda other=other, arrays=arrays: other.run(arrays)) == got


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_machines(name):
    graph = graph_of(name)
    program = compile_graph(graph, targets.AARCH64)
    assert machine_code.compile_object(program.text, program.target)
    for target in (targets.CUDA_SM80, targets.CUDA_SM90):
        assert ptx.assemble(compile_graph(graph, target))


@pytest.mark.parametrize("name", PROGRAMS)
def test_emulated_gpu(name, emulated):  # noqa: F811
    graph = graph_of(name)
    executable = cuda.load(compile_graph(graph, targets.CUDA_SM90), 0)
    for arrays in PROGRAMS[name][2]:
        want = compiled(graph, arrays)
        given = [Array(a.copy(), 0) for a in arrays]
        got = outcome(lambda given=given: [x.get() for x in executable.run(given)])
        assert got == want


@pytest.mark.parametrize("raises", [False, True])
def test_state_in_a_loop(raises):
    """A variable goes through a loop as a carry; a turn that fails leaves it as it was."""
    b = GraphBuilder(TABLE)
    v = b.parameter(TensorType((3,), dt.int64), "v", Role.STATE)
    d, n = b.parameter(TensorType((3,), dt.int64)), b.parameter(I)

    def body(b, i, v, d, n):
        return [next_of(b, i), b.floor_divide(b.add(v, v), b.subtract(d, b.broadcast(i, shape=d.shape, axes=())))]

    _, after = loop(b, [number(b, 0), v], [d, n], below, body)
    graph = b.finish([b.sum(v, axes=(0,))], {0: after})
    verify(graph)
    state, divisors = np.array([7, 8, 9]), np.array([2, 3, 4])
    executable = cpu.load(compile_graph(graph, host_target.target()))
    turns = np.array(5 if raises else 2)
    want = interpret(graph, [state, divisors, np.array(2)])[1][0]
    if raises:
        with pytest.raises(errors.DivisionError):
            executable.run([state, divisors, turns])
        assert state.tolist() == [7, 8, 9]
    else:
        (total,) = executable.run([state, divisors, turns])
        assert total == 24 and state.tolist() == want.tolist()


def test_checks_tell_their_line_and_the_first_counts():
    def body(b, i, s, d, n):
        b.location = "user.py:3"
        q = b.floor_divide(s, d)
        b.location = "user.py:4"
        return [next_of(b, i), b.floor_divide(q, b.subtract(d, d))]

    b = GraphBuilder(TABLE)
    d, n = b.parameter(I), b.parameter(I)
    b.location = "user.py:9"
    graph_results = loop(b, [number(b, 0), n], [d, n], below, body)
    b.location = "user.py:10"
    late = b.floor_divide(n, d)
    executable = cpu.load(compile_graph(b.finish([*graph_results, late]), host_target.target()))
    with pytest.raises(errors.DivisionError, match=r"user.py:3"):
        executable.run(ints(0, 2))
    with pytest.raises(errors.DivisionError, match=r"user.py:4"):
        executable.run(ints(1, 2))
    with pytest.raises(errors.DivisionError, match=r"user.py:10"):
        executable.run(ints(0, 0))


def test_a_branch_that_is_not_taken_raises_nothing():
    def divide(b, x, d):
        return [b.floor_divide(x, d)]

    b = GraphBuilder(TABLE)
    which, x, d = b.parameter(B), b.parameter(I), b.parameter(I)
    graph = b.finish(choose(b, which, [x, d], divide, lambda b, x, d: [x]))
    executable = cpu.load(compile_graph(graph, host_target.target()))
    assert executable.run([np.array(False), *ints(7, 0)]) == [7]
    with pytest.raises(errors.DivisionError):
        executable.run([np.array(True), *ints(7, 0)])


def test_nothing_is_run_with_what_a_check_found_wrong():
    """The loop would not end with the index that was out of range."""
    b = GraphBuilder(TABLE)
    x, i = b.parameter(TensorType((4,), dt.int64)), b.parameter(I)
    step = b.take(x, i, axis=0)

    def cond(b, k, step):
        return [b.less(k, number(b, 10))]

    (total,) = loop(b, [number(b, 0)], [step], cond, lambda b, k, step: [b.add(k, step)])
    executable = cpu.load(compile_graph(b.finish([total]), host_target.target()))
    assert executable.run([np.array([0, 3, 1, 1]), np.array(1)]) == [12]
    with pytest.raises(errors.IndexRangeError):
        executable.run([np.array([0, 3, 1, 1]), np.array(4)])


BAD = {
    "result 0 of the body is f64[], and carry 0 is f32[]": lambda b, x: loop(
        b, [x], [], lambda b, x: [number(b, True, dt.bool_)], lambda b, x: [b.convert(x, dtype=dt.float64)]
    ),
    "the condition returns f32[]. Expected bool[]": lambda b, x: loop(b, [x], [], lambda b, x: [x], lambda b, x: [x]),
    "result 0 of branch 1 is f32[1], and that of branch 0 is f32[]": lambda b, x: choose(
        b, b.less(x, x), [x], lambda b, x: [x], lambda b, x: [b.reshape(x, shape=(1,))]
    ),
    "branch 1 has 2 results, and branch 0 has 1": lambda b, x: choose(
        b, b.less(x, x), [x], lambda b, x: [x], lambda b, x: [x, x]
    ),
    "what chooses the branch is f32[]": lambda b, x: choose(b, x, [x], lambda b, x: [x]),
    "a bool chooses among 1 branches": lambda b, x: choose(b, b.less(x, x), [x], lambda b, x: [x]),
    "the body takes 1 values, and is given 2": lambda b, x: b.call(x, x, body=build(lambda b, x: [x], F)),
    "the body is 3. Expected a graph": lambda b, x: b.call(x, body=3),
    "has state or captures of its own": lambda b, x: b.call(x, body=build(lambda b, x: [x], F, role=Role.STATE)),
    "operand 1 is f32[]. Expected 4 slices": lambda b, x: b.scan(
        x, x, body=build(lambda b, c, x: [c], F, F), carries=1, stacked=1, length=4
    ),
    "there are 3 carries and 1 stacked operands, but 2 operands": lambda b, x: b.scan(
        x, x, body=build(lambda b, c, x: [c], F, F), carries=3, stacked=1, length=4
    ),
    "index is 2. Expected a number below 1": lambda b, x: b.project(
        b.call(x, body=build(lambda b, x: [x], F)), index=2
    ),
    "the input is f32[]. Expected a value with several results": lambda b, x: b.project(x, index=0),
}


@pytest.mark.parametrize("message", BAD)
def test_graphs_that_do_not_fit_are_refused(message):
    with pytest.raises(errors.HybridflowError, match=re.escape(message)):
        build(lambda b, x: BAD[message](b, x), F)
