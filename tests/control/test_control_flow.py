"""Control flow as functions: eager and compiled results have the same bits, and errors say what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code


def bits(tree: Any) -> Any:
    return [(x.dtype, x.shape, x.numpy().tobytes()) if isinstance(x, hf.Tensor) else x for x in hf.tree.leaves(tree)]


def both(function: Callable[..., Any], *args: Any, variables: tuple[hf.Variable, ...] = ()) -> Any:
    """The result of ``function``, which is the same eagerly and compiled; so is what it leaves in variables."""
    before = [v.numpy().copy() for v in variables]
    want = function(*args)
    after = [v.numpy().copy() for v in variables]
    compiled = hf.function(function)
    for _ in range(2):
        for v, x in zip(variables, before):
            v.assign(x)
        got = compiled(*args)
        assert hf.tree.structure(got) == hf.tree.structure(want)
        assert bits(got) == bits(want)
        assert [v.numpy().tobytes() for v in variables] == [x.tobytes() for x in after]
    return got


@pytest.mark.parametrize("x", [-2.5, 0.0, 2.5])
def test_cond(x: float) -> None:
    assert both(lambda x: hf.cond(x < 0, lambda x: -x, lambda x: x, x), hf.asarray(x)) == abs(x)


def test_branches_of_nested_values() -> None:
    def f(p: Any, x: Any) -> Any:
        return hf.cond(p, lambda: {"a": (x, 1), "b": None}, lambda: {"a": (x * 2, 2), "b": None})

    for p in (True, False):
        found = both(f, hf.asarray(p), hf.asarray([1.0, 2.0]))
        assert found["b"] is None and found["a"][1].dtype == hf.int64


@pytest.mark.parametrize("numbers", [(1, 2.5), (True, 2), (1, 2)])
def test_numbers_of_branches_meet(numbers: tuple[Any, Any]) -> None:
    for p in (True, False):
        both(lambda p: hf.cond(p, lambda: numbers[0], lambda: numbers[1]), hf.asarray(p))
        both(lambda p, x: hf.cond(p, lambda: numbers[1], lambda: x), hf.asarray(p), hf.asarray(1.0, dtype=hf.float64))


@pytest.mark.parametrize("k", [-3, 0, 1, 2, 3, 2**40])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_switch_case(k: int, dtype: str) -> None:
    if not np.iinfo(dtype).min <= k <= np.iinfo(dtype).max:
        return
    index, x = hf.asarray(k, dtype=dtype), hf.asarray([1.5, -2.0])
    three = [lambda x: x + 1, lambda x: x * 2, lambda x: x - 3]
    both(lambda k, x: hf.switch_case(k, three, x), index, x)
    both(lambda k, x: hf.switch_case(k, three, x, default=lambda x: -x), index, x)
    both(lambda k, x: hf.switch_case(k, {2: three[0], 0: three[1], -3: three[2]}, x), index, x)


@pytest.mark.parametrize("x", [-3.0, 0.0, 3.0])
def test_case(x: float) -> None:
    def sign(x: Any) -> Any:
        return hf.case([(x < 0, lambda: -1), (x > 0, lambda: 1)], default=lambda: 0.0)

    assert both(sign, hf.asarray(x)) == np.sign(x)


@pytest.mark.parametrize("n", [1, 2, 27])
def test_collatz(n: int) -> None:
    def steps(n: Any) -> Any:
        def body(n: Any, count: Any) -> Any:
            return hf.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

        return hf.while_loop(lambda n, count: n != 1, body, (n, 0))

    both(steps, hf.asarray(n))


@pytest.mark.parametrize("turns", [0, 1, 2, 7])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3)])
def test_while_loop_over_a_dict(turns: int, shape: tuple[int, ...]) -> None:
    def f(x: Any, n: Any) -> Any:
        def body(s: Any) -> Any:
            return {"i": s["i"] + 1, "x": hf.sin(s["x"]) + y}

        y = x * 0.5
        return hf.while_loop(lambda s: s["i"] < n, body, {"x": x, "i": 0})

    both(f, hf.asarray(np.linspace(-1, 2, int(np.prod(shape))).reshape(shape).astype("f")), hf.asarray(turns))


@pytest.mark.parametrize("limit", [0, 1, 4, 100])
def test_maximum_iterations(limit: int) -> None:
    def f(x: Any, n: Any) -> Any:
        # The condition divides by what is 0 after the last turn.
        return hf.while_loop(lambda i, x: 7 // (n - i) > 0, lambda i, x: (i + 1, x * 2), (0, x), n)

    if limit < 8:
        assert both(f, hf.asarray(1.5), hf.asarray(limit))[0] == limit


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_numbers_that_loops_start_with_widen(turns: int) -> None:
    for start in (0, True, 0.5):
        for step in (hf.asarray(1), hf.asarray(0.25), hf.asarray(2.0, dtype=hf.float64), 1, 0.5):
            both(lambda n, y=start, s=step: hf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + s), (0, y)),
                 hf.asarray(turns))  # fmt: skip


def test_fori_loop() -> None:
    for n in (0, 1, 2, 10):
        both(lambda x, n: hf.fori_loop(0, n, lambda i, y: y * x + i, 1.0), hf.asarray(2.0), hf.asarray(n))
        both(lambda x, n=n: hf.fori_loop(2, n, lambda i, y: y * x + i, x), hf.asarray([2.0, 3.0]))


def test_variables_in_branches_and_loops() -> None:
    v, w = hf.Variable(1.0), hf.Variable([0, 0])

    def f(x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            v.assign(v * 1.5 + x)
            hf.cond(v > 10, lambda: (w.assign_add([1, 0]), None)[1], lambda: None)
            return i + 1, x + v

        i, x = hf.while_loop(lambda i, x: (i < 5) & (v < 1000), body, (0, x))
        return hf.cond(x > 3, lambda: v.assign(0.5).value(), lambda: v + 1), i

    for x in (1.0, -1.0, 1000.0):
        both(f, hf.asarray(x), variables=(v, w))


def test_random_numbers_in_loops() -> None:
    g = hf.random.Generator(3)

    def f(n: Any) -> Any:
        return hf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + g.normal((3,))), (0, hf.zeros(3)))[1]

    for n in (0, 4):
        both(f, hf.asarray(n), variables=(g._state,))


def test_a_branch_that_is_not_taken_raises_nothing() -> None:
    def f(x: Any, d: Any) -> Any:
        return hf.cond(d != 0, lambda: x // d, lambda: x)

    assert both(f, hf.asarray(7), hf.asarray(0)) == 7
    with pytest.raises(errors.DivisionError, match="test_control_flow"):
        hf.function(lambda x, d: hf.cond(d == 0, lambda: x // d, lambda: x))(hf.asarray(7), hf.asarray(0))


def test_a_loop_that_fails_leaves_variables_as_they_were() -> None:
    v = hf.Variable(3)

    @hf.function
    def f(d: Any) -> Any:
        def body(d: Any) -> Any:
            v.assign(v + 12 // d)
            return d - 1

        return hf.while_loop(lambda d: d > -2, body, d)

    with pytest.raises(errors.DivisionError):
        f(hf.asarray(3))
    assert v.numpy() == 3


BAD: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "shapes of branches": (
        lambda x: hf.cond(hf.sum(x) > 0, lambda: x, lambda: x[:1]),
        errors.ShapeError,
        r"f32\[3\] in one branch and f32\[1\] in another.*hf.pad",
    ),
    "dtypes of branches": (
        lambda x: hf.cond(hf.sum(x) > 0, lambda: x, lambda: hf.zeros(3, dtype=hf.int64)),
        errors.DTypeError,
        r"f32\[3\] in one branch and i64\[3\] in another.*hf.astype",
    ),
    "structures of branches": (
        lambda x: hf.cond(hf.sum(x) > 0, lambda: x, lambda: (x, x)),
        errors.ArgumentTypeError,
        r"f32\[3\] in the first branch and tuple\(\*, \*\) in branch 1",
    ),
    "a value of one branch": (
        lambda x: hf.cond(hf.sum(x) > 0, lambda: x, lambda: None),
        errors.ArgumentTypeError,
        r"f32\[3\] in the first branch and None in branch 1",
    ),
    "constants of branches": (
        lambda x: hf.cond(hf.sum(x) > 0, lambda: "a", lambda: "b"),
        errors.ArgumentError,
        r"'a' in the first branch and 'b' in branch 1",
    ),
    "no function": (lambda x: hf.cond(hf.sum(x) > 0, x, x), errors.ArgumentTypeError, r"Expected a function"),
    "no function in a loop": (lambda x: hf.while_loop(x, x, x), errors.ArgumentTypeError, r"is no function"),
    "no scalar": (lambda x: hf.cond(x > 0, lambda: x, lambda: x), errors.ShapeError, r"bool\[3\].*hf.any"),
    "no bool": (lambda x: hf.cond(hf.sum(x), lambda: x, lambda: x), errors.DTypeError, r"f32\[\].*x != 0"),
    "growing": (
        lambda x: hf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, hf.concat([x, x])), (0, x)),
        errors.ShapeError,
        r"loop_vars\[1\] is f32\[3\] before an iteration and f32\[6\] after it.*hf.TensorArray",
    ),
    "another rank": (
        lambda x: hf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x[None]), (0, x)),
        errors.ShapeError,
        r"f32\[3\] before an iteration and f32\[1,3\] after it",
    ),
    "a number that becomes an array": (
        lambda x: hf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + x), (0, 0)),
        errors.ShapeError,
        r"the number 0 before an iteration and f32\[3\] after it.*hf.zeros",
    ),
    "another dtype": (
        lambda x: hf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x.astype(hf.float64)), (0, x)),
        errors.DTypeError,
        r"f32\[3\] before an iteration and f64\[3\] after it.*hf.astype\(x, hf.float32\)",
    ),
    "another structure": (
        lambda x: hf.while_loop(lambda i, x: i < 5, lambda i, x: i + 1, (0, x)),
        errors.ArgumentTypeError,
        r"tuple\(\*, \*\) before an iteration and i64\[\] after it",
    ),
    "a condition that is no bool": (
        lambda x: hf.while_loop(lambda x: hf.sum(x), lambda x: x, x),
        errors.DTypeError,
        r"the condition is f32\[\]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_programs(name: str) -> None:
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as caught:
        hf.function(function)(hf.ones(3))
    assert "test_control_flow.py" in str(caught.value) and str(caught.value).count("\n") < 12


def test_leaked_tensors() -> None:
    leak: list[Any] = []

    @hf.function(strict=True)
    def f(x: Any) -> Any:
        hf.while_loop(lambda x: x < 3, lambda x: (leak.append(x * 2), x + 1)[1], x)
        return leak[0] + 1

    with pytest.raises(
        errors.TraceError, match=r"made by multiply at test_control_flow.py.*leaked.*body of while_loop"
    ):
        f(hf.asarray(0))


def test_conditions_assign_nothing() -> None:
    v = hf.Variable(1.0)
    f = hf.function(lambda: hf.while_loop(lambda i: v.assign(v + 1) < 3, lambda i: i + 1, 0))
    with pytest.raises(errors.TraceError, match="the condition assigns a variable"):
        f()


def test_a_value_known_to_python_stays_in_python() -> None:
    seen = []
    hf.function(lambda x: hf.cond(True, lambda: seen.append(1) or x, lambda: seen.append(2) or x))(hf.ones(2))
    assert seen == [1]


def test_calls_of_a_loop_do_not_trace_again() -> None:
    @hf.function
    def f(x: Any) -> Any:
        return hf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))

    for k in range(5):
        f(hf.asarray(float(k)))
    assert len(f.signatures()) == 1 and not f.retraces()


WALKS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: hf.scan(lambda a, x: a * 0.5 + x, x),
    "scan in reverse": lambda x: hf.scan(lambda a, x: hf.sin(a) + x, x, reverse=True),
    "scan from": lambda x: hf.scan(lambda a, x: (a[0] + x, a[1] + 1), x, (x[0] * 0, 0)),
    "scan from in reverse": lambda x: hf.scan(lambda a, x: (a[0] * x, 2), x, (x[0] + 1, 0.5), reverse=True),
    "scan of a dict": lambda x: hf.scan(lambda a, e: a + e["x"] * e["y"], {"x": x, "y": x + 1}, x[0]),
    "foldl": lambda x: hf.foldl(lambda a, x: 2 * a + x, x),
    "foldr": lambda x: hf.foldr(lambda a, x: 2 * a + x, x),
    "foldr from": lambda x: hf.foldr(lambda a, x: 2 * a + hf.sum(x), x, 1),
    "map_fn": lambda x: hf.map_fn(lambda x: (hf.cos(x), {"s": hf.sum(x), "n": None, "k": 1}), x),
    "map_fn in map_fn": lambda x: hf.map_fn(lambda r: hf.foldl(lambda a, e: a + e * r, x, r * 0), x),
    "associative_scan": lambda x: hf.associative_scan(hf.add, x),
    "associative_scan in reverse": lambda x: hf.associative_scan(
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1), reverse=True
    ),
}


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (1, 3), (5, 0), (6, 2, 2)])
@pytest.mark.parametrize("name", WALKS)
def test_walks(name: str, shape: tuple[int, ...]) -> None:
    x = hf.asarray(np.linspace(-1, 1.5, int(np.prod(shape))).reshape(shape).astype("f"))
    both(WALKS[name], x)


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_walks_over_nothing(shape: tuple[int, ...]) -> None:
    x = hf.zeros(shape)
    start = hf.ones(shape[1:])
    for function in (
        lambda x: hf.scan(lambda a, x: (a[0] + x, a[1] + 0.5), x, (start, 0)),
        lambda x: hf.foldl(lambda a, x: a + hf.sum(x), x, 0),
        lambda x: hf.map_fn(lambda x: (hf.sum(x), x > 0), x),
        lambda x: hf.associative_scan(hf.add, x),
    ):
        both(function, x)
    with pytest.raises(errors.ArgumentError, match="no initializer"):
        hf.foldl(hf.add, x)


@pytest.mark.parametrize("n", range(1, 18))
def test_associative_scan_is_a_running_result(n: int) -> None:
    matrices = np.random.default_rng(n).integers(-2, 3, (2, n, 2, 2))
    want = matrices.copy()
    for k in range(1, n):
        want[:, k] = want[:, k - 1] @ matrices[:, k]
    assert (hf.associative_scan(hf.matmul, hf.asarray(matrices), axis=1).numpy() == want).all()


def test_walks_over_rows_of_symbolic_number() -> None:
    f = hf.function(WALKS["scan from"])
    g = hf.function(lambda x: hf.fori_loop(0, x.shape[0], lambda i, s: s + hf.sum(x), 0.0))
    for n in (3, 5, 9, 17):
        x = hf.asarray(np.arange(2.0 * n).reshape(n, 2).astype("f"))
        assert bits(f(x)) == bits(WALKS["scan from"](x))
        assert g(x) == n * hf.sum(x)


def test_elements_that_a_loop_writes_have_the_shape_of_the_first() -> None:
    """In a loop over an open extent, which may be run never."""

    @hf.function
    def every_other(x: Any) -> Any:
        found = hf.TensorArray("float32", x.shape[0])
        for i in hf.arange(x.shape[0]):
            if i % 2 == 0:
                found = found.write(i, x[i] * 2)
        return found.stack()

    concrete = every_other.get_concrete_function(hf.TensorSpec([None, 2], hf.float32))
    x = hf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with hf.GradientTape() as tape:
        y = concrete(x * 1.0)
    assert y.numpy().tolist() == [[2.0, 4.0], [0.0, 0.0], [10.0, 12.0]]
    assert tape.gradient(y, x).numpy().tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]

    @hf.function
    def first(x: Any, n: Any) -> Any:
        found, i = hf.TensorArray("float32", 3), hf.asarray(0)
        while i < n:
            found, i = found.write(i, x[i]), i + 1
        return found.stack()

    assert first(x, hf.asarray(1)).numpy().tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]
    for run in (first, first.python_function):
        with pytest.raises(hf.errors.ArgumentError, match=r"\[TensorArray.stack\] no element was written yet"):
            run(x, hf.asarray(0))


def _filled(x: Any, n: Any) -> Any:
    ta = hf.TensorArray("float32", 3)
    for i in hf.arange(n):
        ta = ta.write(i, x[i])
    return ta


def _begun_anew(x: Any, n: Any) -> Any:
    empty = hf.TensorArray("float32", 3)
    ta = empty.unstack(x)
    for i in hf.arange(n):
        if i == 1:
            ta = empty
        else:
            ta = ta.write(i, x[2])
    if n == 0:
        ta = empty
    return ta.write(1, x[0]).stack()


def _caught(x: Any, n: Any) -> Any:
    try:
        return _filled(x, n).stack()
    except hf.errors.ArgumentError:
        return hf.zeros((3, 2)) - 1


def _asked(x: Any, n: Any) -> Any:
    ta = _filled(x, n)
    return hf.zeros((3, 2)) - 2 if ta.element_shape is None else ta.stack()


def _under_if(x: Any, n: Any) -> Any:
    ta = hf.TensorArray("float32", 3)
    if n > 1:
        ta = ta.write(0, x[0])
    return ta


def _flags(x: Any, n: Any) -> Any:
    ta = hf.TensorArray(hf.bool_, 3)
    for i in hf.arange(n):
        ta = ta.write(i, x[i] > 2)
    return ta


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: _filled(x, n).stack(),
        lambda x, n: _filled(x, n).read(0),
        lambda x, n: _filled(x, n).gather([1, 0]),
        lambda x, n: _filled(x, n).concat(),
        lambda x, n: _under_if(x, n).stack(),
        lambda x, n: _under_if(x, n).write(1, x[2]).stack(),
        _begun_anew,
        _caught,
        _asked,
        lambda x, n: _flags(x, n).stack(),
    ],
)
def test_arrays_of_which_a_tensor_decides_whether_they_were_written(f: Any) -> None:
    x = hf.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    compiled = hf.function(f, strict=True)

    def outcome(run: Any, n: int) -> Any:
        try:
            return run(x, hf.asarray(n)).numpy().tolist()
        except hf.errors.HybridflowError as error:
            return type(error), str(error)

    for n in range(4):
        assert outcome(compiled, n) == outcome(f, n)


@pytest.mark.runs_eagerly
def test_the_next_element_of_an_array_whose_shape_a_tensor_decides() -> None:
    def grows(x: Any, n: Any) -> Any:
        ta = hf.TensorArray("float32", 0, dynamic_size=True)
        if n > 1:
            ta = ta.write(2, x[0])
        return ta.write(0, x[0]).stack()

    def other(x: Any, n: Any) -> Any:
        return _under_if(x, n).write(1, x[0, :1]).stack()

    x = hf.asarray([[1.0, 2.0]])
    for f in (grows, other):
        with pytest.raises(hf.errors.TraceError, match="Give TensorArray its size and element_shape"):
            hf.function(f, strict=True)(x, hf.asarray(0))
        assert hf.function(f)(x, hf.asarray(0)).numpy().tolist() == f(x, hf.asarray(0)).numpy().tolist()


def test_tensor_arrays() -> None:
    def f(x: Any, n: Any) -> Any:
        def body(i: Any, ta: Any) -> Any:
            return i + 1, ta.write(i, hf.sin(x) * i)

        i, ta = hf.while_loop(lambda i, _: i < n, body, (0, hf.TensorArray(hf.float32, 4, (2,))))
        return ta.stack(), ta.read(i - 1), ta.gather([0, 2]), ta.concat(), ta

    for n in (1, 3, 4):
        both(f, hf.asarray([0.5, 2.0]), hf.asarray(n))
    for function in (f, hf.function(f)):
        with pytest.raises(errors.IndexRangeError):
            function(hf.asarray([0.5, 2.0]), hf.asarray(5))
    late = hf.TensorArray("float32", 2).write(0, hf.ones(3)).write(-1, hf.zeros(3) + 2)
    assert late.stack().tolist() == [[1, 1, 1], [2, 2, 2]] and late.size() == 2 and late.element_shape == (3,)
    assert late.unstack(hf.zeros((2, 5))).element_shape == (5,)
    with pytest.raises(errors.DTypeError, match=r"hf\.astype"):
        late.write(0, hf.zeros(3, dtype=hf.int32))
    with pytest.raises(errors.ShapeError, match=r"f32\[4\]. Expected the shape of all elements, \[3\]"):
        late.write(0, hf.zeros(4))
    with pytest.raises(errors.ArgumentError, match="no element was written"):
        hf.TensorArray("float32", 2).stack()


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_through_tensor_arrays(compiled: bool) -> None:
    def f(x: Any) -> Any:
        ta = hf.TensorArray(hf.float32, 3, ())
        ta = hf.fori_loop(0, 3, lambda i, ta: ta.write(i, x[i] ** 2), ta)
        return ta.read(2) * 3 + hf.sum(ta.stack())

    gradient = hf.grad(f)
    found = (hf.function(gradient) if compiled else gradient)(hf.asarray([1.0, 2.0, 3.0]))
    assert found.tolist() == [2, 4, 24]


def test_a_function_with_loops_inside_of_another_one() -> None:
    """A function of symbolic extents is recorded anew where they are known."""
    f = hf.function(lambda x: hf.scan(lambda a, x: a * 0.5 + x, x, x[0] * 0))
    inner = f.get_concrete_function(hf.TensorSpec((None, 3), hf.float32))
    g = hf.function(lambda x: inner(x * 2) + 1)
    for n in (3, 4, 9):
        x = hf.asarray(np.arange(3.0 * n).reshape(n, 3).astype("f"))
        assert bits(g(x)) == bits(f(x * 2) + 1)


def test_an_endless_loop_can_be_interrupted_by_its_limit() -> None:
    f = hf.function(lambda x: hf.while_loop(lambda x: x > 0, lambda x: x + 0.0, x, maximum_iterations=100000))
    assert f(hf.asarray(1.0)) == 1


DTYPES = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (3, 2), (4, 1, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    """Branches, loops and walks over each dtype, with a variable that they assign."""
    kind = getattr(hf, dtype if dtype != "bool" else "bool_")
    values = np.random.default_rng(len(shape)).integers(0, 4, shape)
    x = hf.astype(hf.asarray(values), kind)
    v = hf.Variable(hf.zeros(shape[1:], dtype=kind))
    step = hf.logical_xor if dtype == "bool" else hf.add

    def f(x: Any, n: Any) -> Any:
        def turn(a: Any, row: Any) -> Any:
            v.assign(hf.cond(hf.any(row == a), lambda: step(a, v), lambda: row))
            return step(a, hf.where(row == v, row, a))

        folded = hf.foldl(turn, x, v.value())
        walked = hf.scan(turn, x, folded, reverse=True)
        i, looped = hf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, hf.flip(step(y, x))), (0, x))
        return folded, walked, looped, hf.switch_case(i, [lambda: x, lambda: looped, lambda: step(x, x)])

    for n in (0, 1, 3):
        both(f, x, hf.asarray(n), variables=(v,))
