"""Derivatives through control flow: eager and compiled, of any order, against each other and finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler import target as targets
from hybridflow.compiler.forward_mode import jvp
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import types
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.eager.dispatch import apply
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, ptx
from hybridflow.runtime.machine import host_target, machine_code
from tests.support.bits import same_bits
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.jit_helper import runnable_targets
from tests.support.teams import threads

pytestmark = [pytest.mark.code, pytest.mark.sample(4)]

Loss = Callable[..., Any]


def gradients(loss: Loss, args: tuple[Any, ...]) -> list[Any]:
    with hf.GradientTape() as tape:
        tape.watch(args)
        value = loss(*args)
    return [value, *tape.gradient(value, args, unconnected_gradients="zero")]


def second(loss: Loss, args: tuple[Any, ...]) -> list[Any]:
    with hf.GradientTape() as tape:
        tape.watch(args)
        found = gradients(loss, args)[1:]
        total = sum(hf.sum(g * hf.cos(g)) for g in found)
    return tape.gradient(total, args, unconnected_gradients="zero")


def numbers(found: Any) -> list[np.ndarray]:
    return [np.asarray(x.numpy(), np.float64) for x in found]


def draw(*shapes: tuple[int, ...], seed: int = 0, dtype: Any = np.float64) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    return tuple(hf.asarray(rng.uniform(-1, 1, shape).astype(dtype)) for shape in shapes)


def _inner(a: Any, r: Any, w: Any) -> Any:
    return hf.foldl(lambda a, e: hf.tanh(a + e * w), r, a)


PROGRAMS: dict[str, tuple[Loss, list[tuple[int, ...]]]] = {
    "cond": (lambda p, x: hf.sum(hf.cond(hf.sum(p) > 0, lambda: x * p, lambda: hf.sin(x))), [(3,), (3,)]),
    "cond of operands": (lambda p, x: hf.cond(p > x, lambda a, b: a * b, lambda a, b: a / (b + 3), p, x), [(), ()]),
    "cond that reads one": (lambda p, x: hf.cond(p > 0, lambda: p * p, lambda: x * x) + p * x, [(), ()]),
    "switch_case": (
        lambda p, x: hf.switch_case(hf.astype(p * 3, hf.int64), [lambda: p * x, lambda: x * x, lambda: hf.exp(p)]),
        [(), ()],
    ),
    "nested cond": (
        lambda p, x: hf.cond(p > 0, lambda: hf.cond(x > 0, lambda: x * p, lambda: x * x), lambda: hf.sin(x) * p),
        [(), ()],
    ),
    "fold": (lambda h, w, x: hf.sum(hf.foldl(lambda h, x: hf.tanh(h @ w + x), x, h)), [(2, 4), (4, 4), (5, 2, 4)]),
    "fold from the first": (lambda w, x: hf.sum(hf.foldr(lambda h, x: hf.tanh(h * w + x), x)), [(4,), (5, 4)]),
    "scan": (lambda h, w, x: hf.sum(hf.scan(lambda h, x: hf.tanh(h @ w + x), x, h) ** 2), [(2, 4), (4, 4), (5, 2, 4)]),
    "scan in reverse": (
        lambda h, w, x: hf.sum(hf.scan(lambda h, x: hf.tanh(h @ w + x) * h, x, h, reverse=True) ** 2) + hf.sum(w * w),
        [(2, 3), (3, 3), (4, 2, 3)],
    ),
    "scan of one": (lambda h, w, x: hf.sum(hf.scan(lambda h, x: h * w + x, x, h) ** 2), [(3,), (3,), (1, 3)]),
    "two carries": (
        lambda a, x: hf.sum(hf.scan(lambda s, x: (s[1] * x, s[0] + hf.sin(s[1]), 1), x, (a, a * 2, 0))[1]),
        [(), (6,)],
    ),
    "map": (lambda w, x: hf.sum(hf.map_fn(lambda x: hf.sin(x * w) * hf.sum(x), x)), [(3,), (4, 3)]),
    "fori_loop": (lambda p, x: hf.fori_loop(1, 6, lambda i, y: hf.sin(y) * x + p / i, p), [(), ()]),
    "fold in map": (lambda w, x: hf.sum(hf.map_fn(lambda r: _inner(hf.sum(r), r, w), x)), [(), (3, 4)]),
    "cond in fold": (
        lambda w, x: hf.foldl(lambda a, e: hf.cond(a > e, lambda: a * w - e, lambda: hf.cos(a) + e * e), x, w),
        [(), (6,)],
    ),
    "fold in cond": (
        lambda w, x: hf.cond(hf.sum(x) > 0, lambda: _inner(w, x, w), lambda: _inner(w * w, x, w + 1)),
        [(), (6,)],
    ),
    "carry that is handed on": (lambda a, x: hf.sum(hf.foldl(lambda s, x: (s[0], s[1] * s[0] + x), x, (a, a))[1]),
                                [(), (4,)]),
    "while": (lambda x, y: hf.while_loop(lambda i, y: hf.abs(y) < 9, lambda i, y: (i + 1, y * (x + 2) + y), (0, y))[1],
              [(), ()]),
    "while without a counter": (
        lambda w, x: hf.sum(hf.while_loop(lambda y: hf.sum(y * y) < 40, lambda y: y * 1.5 + hf.sin(y @ w) + x, x)),
        [(3, 3), (3,)],
    ),
    "while without a turn": (lambda x, y: hf.while_loop(lambda y: y > 9, lambda y: y * x, y) * x, [(), ()]),
    "while in while": (lambda x, y: hf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, hf.while_loop(lambda j, y: j < i, lambda j, y: (j + 1, hf.sin(y) * x + y), (0, y))[1]),
        (0, y),
    )[1] * x, [(), ()]),
    "fori_loop of tensors": (
        lambda x, y: hf.fori_loop(hf.astype(x * 0, hf.int64), hf.astype(hf.abs(y) * 5, hf.int64) + 1,
                                  lambda i, s: s * x + y, y), [(), ()],
    ),
    "while in fold": (lambda w, x: hf.foldl(
        lambda a, e: hf.while_loop(lambda a: a < 2, lambda a: a + w * w + e * e + 0.1, a) - 2, x, w), [(), (4,)]),
    "fold in while": (lambda w, x: hf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, _inner(a, x, w)), (0, w))[1], [(), (4,)]),
    "cond in while": (lambda w, x: hf.while_loop(lambda i, a: i < 5, lambda i, a: (
        i + 1, hf.cond(a > 0, lambda: a * w - x, lambda: hf.cos(a) * w)), (0, x))[1], [(), ()]),
    "maximum_iterations": (lambda w, x: hf.while_loop(lambda a: a < 100, lambda a: a * w + x, x, 4), [(), ()]),
    "associative_scan": (lambda x: hf.sum(hf.associative_scan(hf.multiply, x) ** 2), [(7, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name: str) -> None:
    """Compiled within the function and outside of it, of two draws, which go other ways through branches."""
    loss, shapes = PROGRAMS[name]
    compiled, whole = hf.function(loss), hf.function(lambda *args: gradients(loss, args))
    for seed in (0, 1):
        args = draw(*shapes, seed=seed, dtype=np.float32)
        want, inside, outside = gradients(loss, args), whole(*args), gradients(compiled, args)
        for one, two, three in zip(want, inside, outside):
            if name != "fold in map":
                assert one.numpy().tobytes() == two.numpy().tobytes()
            assert two.numpy().tobytes() == three.numpy().tobytes()
            np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_against_finite_differences(name: str) -> None:
    loss, shapes = PROGRAMS[name]
    args = draw(*shapes, seed=2)
    compiled = hf.function(loss)
    found = numbers(gradients(compiled, args))[1:]
    along = numbers(draw(*shapes, seed=3))
    step = 1e-6
    ends = [compiled(*(hf.asarray(x.numpy() + s * step * d) for x, d in zip(args, along))) for s in (1, -1)]
    slope = (float(ends[0]) - float(ends[1])) / (2 * step)
    np.testing.assert_allclose(sum((g * d).sum() for g, d in zip(found, along)), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_gradients(name: str) -> None:
    loss, shapes = PROGRAMS[name]
    args = draw(*shapes, seed=4)
    want = numbers(second(loss, args))
    inside = numbers(hf.function(lambda *args: second(loss, args))(*args))
    outside = numbers(second(hf.function(loss), args))
    between = hf.function(lambda *args: gradients(loss, args)[1:])
    with hf.GradientTape() as tape:
        tape.watch(args)
        total = sum(hf.sum(g * hf.cos(g)) for g in between(*args))
    mixed = numbers(tape.gradient(total, args, unconnected_gradients="zero"))
    for one, *others in zip(want, inside, outside, mixed):
        for other in others:
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_mode(name: str) -> None:
    """Tangents by the graphs that the compiler makes, which the interpreter runs."""
    loss, shapes = PROGRAMS[name]
    args, along = draw(*shapes, seed=5), draw(*shapes, seed=6)
    graph = hf.function(loss).get_concrete_function(*args).graph
    results, _ = interpret(jvp(graph, range(len(args))), [x.numpy() for x in (*args, *along)])
    want = sum((g * d).sum() for g, d in zip(numbers(gradients(loss, args))[1:], numbers(along)))
    np.testing.assert_allclose(float(results[1]), want, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["scan", "while", "while in while", "cond in fold", "fold in cond"])
def test_gradients_on_other_machines(name: str) -> None:
    loss, shapes = PROGRAMS[name]
    args = draw(*shapes, dtype=np.float32)
    graph = hf.function(lambda *args: gradients(loss, args)).get_concrete_function(*args).graph
    program = compile_graph(graph, targets.AARCH64)
    assert machine_code.compile_object(program.text, program.target)
    for target in (targets.CUDA_SM80, targets.CUDA_SM90):
        assert ptx.assemble(compile_graph(graph, target))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_by_the_interpreter_and_other_vector_widths(name: str) -> None:
    loss, shapes = PROGRAMS[name]
    args = draw(*shapes, seed=7, dtype=np.float32)
    graph = hf.function(lambda *args: gradients(loss, args)).get_concrete_function(*args).graph
    verify(graph)
    assert to_text(parse(to_text(graph), TABLE)) == to_text(graph)
    arrays = [x.numpy() for x in args]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    for expected, found in zip(interpret(graph, arrays)[0], want):
        np.testing.assert_allclose(expected, found, rtol=1e-4, atol=1e-5)
    others = [cpu.load(compile_graph(graph, target)) for target in runnable_targets().values()]
    with flags.SKIP("scan_dedup,control"):
        others.append(cpu.load(compile_graph(graph, host_target.target())))
    for other in others:
        assert [x.tobytes() for x in other.run(arrays)] == [x.tobytes() for x in want]


@pytest.mark.parametrize("name", ["scan", "while", "while without a counter", "cond in fold"])
def test_gradients_on_an_emulated_gpu(name: str, emulated: Any) -> None:  # noqa: F811
    loss, shapes = PROGRAMS[name]
    args = draw(*shapes, seed=8, dtype=np.float32)
    graph = hf.function(lambda *args: gradients(loss, args)).get_concrete_function(*args).graph
    arrays = [x.numpy() for x in args]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    found = cuda.load(compile_graph(graph, targets.CUDA_SM90), 0).run([Array(x.copy(), 0) for x in arrays])
    assert [x.get().tobytes() for x in found] == [x.tobytes() for x in want]


@hf.custom_gradient
def _clipped(x: Any, w: Any) -> Any:
    y = hf.sin(x)
    return y * w, lambda g: (hf.clip(g * hf.cos(x), -0.5, 0.5), g * y)


CUSTOM: dict[str, tuple[Loss, list[tuple[int, ...]]]] = {
    "cond": (lambda p, x: hf.sum(hf.cond(hf.sum(p) > 0, lambda: _clipped(x, p), lambda: x)), [(3,), (3,)]),
    "fold": (lambda w, x: hf.sum(hf.foldl(lambda a, x: _clipped(a * 2 + x, w), x, w)), [(3,), (5, 3)]),
    "while": (
        lambda w, x: hf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, _clipped(a * 3, w) + x), (0, w))[1],
        [(), ()],
    ),
    "nested": (
        lambda w, x: hf.foldl(lambda a, e: hf.cond(a > e, lambda: _clipped(a * 3, e), lambda: _clipped(e, w)), x, w),
        [(), (5,)],
    ),
}


@pytest.mark.parametrize("name", CUSTOM)
def test_custom_gradients_inside(name: str) -> None:
    loss, shapes = CUSTOM[name]
    for seed in range(3):
        args = draw(*shapes, seed=seed)
        want = numbers(gradients(loss, args))
        for found in (
            hf.function(lambda *args: gradients(loss, args))(*args),
            gradients(hf.function(loss), args),
            gradients(lambda *args: hf.function(loss)(*args), args),
        ):
            for one, two in zip(want, numbers(found)):
                np.testing.assert_allclose(two, one, rtol=1e-12)
        for one, two in zip(numbers(second(loss, args)), numbers(hf.function(lambda *a: second(loss, a))(*args))):
            np.testing.assert_allclose(two, one, rtol=1e-9)


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_gradients_of_variables_that_loops_assign(p: bool, turns: int) -> None:
    """As in eager mode, the gradient is that of all that was read, whatever was assigned in between."""
    v, w = hf.Variable(0.5), hf.Variable(2.0)

    def loss(x: Any, p: Any, n: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            s = s + v * w
            v.assign(hf.sin(v * x) + 0.25)
            return i + 1, s * hf.cond(p, lambda: (v.assign(v * w), v * 3)[1], lambda: w * x)

        return hf.while_loop(lambda i, s: i < n, body, (0, x * 0))[1] + v * x

    def run(x: Any, p: Any, n: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            value = loss(x, p, n)
        return value, tape.gradient(value, [x, v, w], unconnected_gradients="zero")

    def outside(x: Any, p: Any, n: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            value = compiled(x, p, n)
        return value, tape.gradient(value, [x, v, w], unconnected_gradients="zero")

    compiled = hf.function(loss)
    args = hf.asarray(1.25), hf.asarray(p), hf.asarray(turns)
    results = []
    for function in (run, hf.function(run), outside):
        v.assign(0.5)
        value, found = function(*args)
        results.append(numbers([value, *found, v]))
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_loops_over_any_number_of_rows(reverse: bool) -> None:
    def loss(w: Any, x: Any) -> Any:
        return hf.sum(hf.scan(lambda a, x: a * w + hf.sin(x), x, w * 0, reverse=reverse) ** 2)

    signature = [hf.TensorSpec([3], hf.float32), hf.TensorSpec([None, 3], hf.float32)]
    compiled = hf.function(loss, input_signature=signature)
    inside = hf.function(lambda w, x: gradients(loss, (w, x)), input_signature=signature)
    for n in (1, 2, 3, 5, 9):
        args = draw((3,), (n, 3), seed=n, dtype=np.float32)
        want = gradients(loss, args)
        for found in (gradients(compiled, args), inside(*args)):
            assert [x.numpy().tobytes() for x in found] == [x.numpy().tobytes() for x in want]


def shrinking(x: Any) -> Any:
    return hf.while_loop(lambda y: hf.sum(y) > 1, lambda y: y * y / 3, x)


def shrinking_by_statements(x: Any) -> Any:
    while hf.sum(x) > 1:
        x = x * x / 3
    return x


@pytest.mark.parametrize("loop", [shrinking, shrinking_by_statements])
def test_derivatives_run_no_loop_again_to_count_its_turns(loop: Callable[[Any], Any]) -> None:
    step = hf.function(lambda x: hf.value_and_grad(lambda x: hf.sum(loop(x)))(x))
    x = hf.asarray([1.5, 2.0, 0.5])
    assert step.ir(x, stage="optimized").count("= while(") == 1
    _, gradient = step(x)
    _, expected = step.python_function(x)
    np.testing.assert_array_equal(gradient.numpy(), expected.numpy())


def nested_rows(rows: Any, x: Any) -> Any:
    for a in rows:
        x = hf.sin(x) + a
        for b in reversed(rows):
            x = hf.sin(x) + b * x
    return x


def test_what_derivatives_alone_make_is_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of nested loops are stacked twice: more elements than any value of the program itself has."""
    compiled = hf.function(
        nested_rows, input_signature=[hf.TensorSpec([None], "float32"), hf.TensorSpec([], "float32")]
    )
    args = draw((9,), (), seed=9, dtype=np.float32)
    want = [x.numpy().tobytes() for x in gradients(nested_rows, args)]
    assert [x.numpy().tobytes() for x in gradients(compiled, args)] == want
    monkeypatch.setattr(types, "MAX_SIZE", 80)
    with pytest.raises(hf.errors.ShapeError, match="a value that a derivative needs"):
        gradients(compiled, args)
    monkeypatch.undo()
    assert [x.numpy().tobytes() for x in gradients(compiled, args)] == want


def rows_and_whole(rows: Any, x: Any) -> Any:
    for a in rows:
        x = hf.sin(x) + a * hf.sum(rows * x)
    return x


def rows_twice(rows: Any, x: Any) -> Any:
    for a, b in zip(rows, reversed(rows)):
        x = hf.sin(x) * b + a
    return x


def unlike_first_turn(rows: Any, x: Any) -> Any:
    k: Any = 0
    for k, a in enumerate(rows):
        x = hf.sin(x) + a
        for b in reversed(rows):
            x = hf.sin(x) + b
            k = x
    return x + k


def appended_rows(rows: Any, x: Any) -> Any:
    found = []
    for a in rows:
        found.append(a * hf.sum(rows) * x)
    return hf.sum(hf.stack(found) * rows)


def folded_rows(rows: Any, x: Any) -> Any:
    return hf.foldl(lambda s, a: hf.sin(s) + a * hf.sum(rows * s), rows, x)


def scanned_backwards(rows: Any, x: Any) -> Any:
    return hf.sum(hf.scan(lambda s, a: hf.sin(s) + a * hf.sum(rows * s), rows, x, reverse=True) * rows)


@pytest.mark.parametrize(
    "loss",
    [nested_rows, rows_and_whole, rows_twice, unlike_first_turn, appended_rows, folded_rows, scanned_backwards],
)
def test_sums_of_what_a_loop_reads_in_two_ways(loss: Loss) -> None:
    """Floats are added up in the order in which they are without a compiled loop."""
    compiled = hf.function(loss)
    inside = hf.function(lambda *args: gradients(loss, args))
    for n in (9, 17):
        args = draw((n,), (), seed=n, dtype=np.float32)
        want = [x.numpy().tobytes() for x in gradients(loss, args)]
        for found in (gradients(compiled, args), inside(*args)):
            assert [x.numpy().tobytes() for x in found] == want


def assigned_in_branches(x: Any, n: Any) -> Any:
    y = x * 2
    if y[0] > y[1]:
        y[0] = y[1] * y[2]
    else:
        y[1] = y[0] * y[2]
        if y[1] > 0:
            y[2] = y[1] * y[2] * 3
    return hf.sum(y * x) * n


def assigned_in_turns(x: Any, n: Any) -> Any:
    y = x * 2
    i = 0
    while i < n:
        if x[i] > 0:
            y[i] = y[i] * y[(i + 1) % 3]
        z = y
        z[0] *= 1.5
        i += 1
    return hf.sum(y * x)


def assigned_and_returned(x: Any, n: Any) -> Any:
    def either(x: Any) -> Any:
        y = hf.sin(x)
        if x[0] > 0:
            y[0] = y[1] * y[2] * n
            return y
        y[1:] = y[0]
        return y * 2

    return hf.sum(either(x) * either(-x) * x)


@pytest.mark.parametrize("loss", [assigned_in_branches, assigned_in_turns, assigned_and_returned])
def test_gradients_through_items_that_branches_assign(loss: Loss) -> None:
    """Of tapes and of accumulators, outside of the compiled function and inside."""

    def forward(x: Any, n: Any) -> Any:
        return hf.jvp(lambda x: loss(x, n), (x,), (hf.cos(x),))

    def backward(x: Any, n: Any) -> Any:
        return gradients(lambda x: loss(x, n), (x,))

    compiled, inside = hf.function(loss), (hf.function(backward), hf.function(forward))
    for x in ([3.0, 2.0, 1.0], [1.0, -2.0, 3.0], [-0.5, 0.25, 2.0]):
        for n in (0, 1, 3):
            args = hf.constant(x), hf.constant(n)
            want = [np.asarray(g).tobytes() for g in (*backward(*args), *forward(*args))]
            outside = gradients(lambda x, n=args[1]: compiled(x, n), args[:1])
            assert [np.asarray(g).tobytes() for f in inside for g in f(*args)] == want
            assert [np.asarray(g).tobytes() for g in outside] == want[:2]


def _newton(x: Any, n: Any) -> Any:
    y, i = x, 0
    while i < n:
        y, i = 0.5 * (y + x / y), i + 1
    return y


def _two_begin_alike(x: Any, n: Any) -> Any:
    a, b, i = x, x, 0
    while i < n:
        a, b, i = b * hf.sin(x), a + b * x, i + 1
    return a * b * hf.exp(x)


def _handed_on(x: Any, n: Any) -> Any:
    a, b, i = x, hf.exp(x), 0
    while i < n:
        a, b, i = x, a * b, i + 1
    return a * b * b


def _loop_in_a_loop(x: Any, n: Any) -> Any:
    a, i = x, 0
    while i < n:
        b, j = a, 0
        while j < 2:
            b, j = b * x + hf.cos(a), j + 1
        a, i = b * a, i + 1
    return a * x


def _read_after(x: Any, n: Any) -> Any:
    z, i = hf.cos(x), 0
    c = z
    while i < n:
        c, i = hf.sin(c) * x + c * 0.5, i + 1
    return c * z * hf.exp(z)


def _counted(x: Any, n: Any) -> Any:
    return hf.fori_loop(0, n, lambda i, c: hf.sin(c) * x + c * hf.cos(x), x) * x + hf.cos(x)


def _counted_four_times(x: Any, n: Any) -> Any:
    return hf.fori_loop(0, 4, lambda i, c: hf.sin(c) * x + c * hf.cos(x), x) * x + hf.cos(x)


BEGIN_SHARED = [_newton, _two_begin_alike, _handed_on, _loop_in_a_loop, _read_after, _counted, _counted_four_times]


@pytest.mark.parametrize("loop", BEGIN_SHARED, ids=lambda loop: loop.__name__)
def test_what_a_loop_begins_with_is_read_elsewhere_too(loop: Any) -> None:
    """Sums go on where they stood: a loop's first iteration adds to what has come together for what it begins with."""

    def slope(x: Any, n: Any) -> Any:
        return gradients(lambda x: hf.sum(loop(x, n)), (x,))[1]

    (x,) = draw((200,), seed=3)
    x = hf.concat([x, hf.asarray([0.0, -0.0, 1e300, np.inf, np.nan])]) if loop is not _newton else x
    inside, compiled = hf.function(slope), hf.function(loop)
    for n in map(hf.asarray, (0, 1, 2, 5)):
        expected = np.asarray(slope(x, n))
        outside = gradients(lambda x, n=n: hf.sum(compiled(x, n)), (x,))[1]
        for result in (np.asarray(inside(x, n)), np.asarray(outside)):
            if int(n) == 0:  # eagerly what a loop leaves is then the very value that it began with, see limits.md
                np.testing.assert_allclose(result, expected, rtol=1e-14)
            else:
                assert same_bits(result, expected)


@pytest.mark.parametrize("length", [0, 1, 2, 4])
@pytest.mark.parametrize("team", [1, 2, 3])
def test_scans_of_any_length_that_begin_with_what_else_is_read(length: int, team: int) -> None:
    body = parse('graph "body"(%0: f64[7] "c", %1: f64[7] "x") {  %2: f64[7] = sin(%0)  %3: f64[7] = multiply(%2, %1)  '
                 "return %3 }", TABLE)  # fmt: skip
    (x,) = draw((7,))

    def scanned(x: Any) -> Any:
        return apply(TABLE["scan"], x, x, body=body, carries=1, stacked=0, length=length, reverse=False)[0] * x

    def unrolled(x: Any) -> Any:
        c = x
        for _ in range(length):
            c = hf.sin(c) * x
        return c * x

    with threads(team):
        result = hf.function(lambda x: gradients(lambda x: hf.sum(scanned(x)), (x,))[1])(x)
        expected = gradients(lambda x: hf.sum(unrolled(x)), (x,))[1]
    assert same_bits(np.asarray(result), np.asarray(expected))


def test_numbers_that_python_makes_of_tensors_have_no_derivative() -> None:
    def f(x: Any) -> Any:
        return x * float(x) + x * math.floor(x) + x * math.sqrt(float(x)) + x * min(2.0, float(x))

    compiled, inside = hf.function(f), hf.function(lambda x: gradients(f, (x,)))
    for x in (hf.constant(2.5), hf.constant(0.25)):
        want = numbers(gradients(f, (x,)))
        assert numbers(gradients(compiled, (x,))) == numbers(inside(x)) == want


def test_what_turns_stack_twice_is_stacked_once() -> None:
    """A result that the derivative asks for as well is one stack, which both read."""
    x, w = hf.ones((20, 3, 3)), hf.ones((3, 3))

    def loss(w: Any) -> Any:
        return hf.sum(hf.scan(lambda h, row: hf.tanh(h @ w + row), x, hf.zeros((3, 3))) ** 2)

    text = hf.function(hf.grad(loss)).ir(w, stage="optimized")
    assert "(f32[3,3], f32[20,3,3], f32[20,3,3]) = scan(" in text  # the states, and those before each turn
