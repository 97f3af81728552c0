"""Open extents: one program serves all of 2 and more, 0 and 1 have their own, and each gives what eager mode gives."""

import gc
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir.extents import symbols
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import value_at
from hybridflow.errors import HybridflowError, ShapeError
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits

pytestmark = pytest.mark.code

SIZES = (0, 1, 2, 3, 65)


def data(shape, dtype="float32", seed=0):
    return hf.asarray(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def outcome(f, *args):
    """The leaves of a result as arrays, or the type of the error."""
    try:
        result = f(*args)
    except HybridflowError as error:
        return type(error)
    return [np.asarray(leaf) for leaf in (result if isinstance(result, (list, tuple)) else [result])]


def same_outcome(a, b):
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    return len(a) == len(b) and all(map(same_bits, a, b))


def gradient_of(f):
    def gradient(*xs):
        with hf.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
            y = y[0] if isinstance(y, tuple) else y
            loss = hf.sum(y * hf.cos(y))
        return [g for g in tape.gradient(loss, list(xs)) if g is not None]

    return gradient


ROWS = {
    "sum0": lambda x: hf.sum(x, axis=0),
    "sum1": lambda x: hf.sum(x, axis=1),
    "sum": lambda x: hf.sum(x),
    "mean": lambda x: hf.mean(x, axis=0),
    "var": lambda x: hf.var(x, axis=0),
    "prod0": lambda x: hf.prod(x, axis=0),
    "prod1": lambda x: hf.prod(x, axis=1),
    "prod": lambda x: hf.prod(x),
    "max0": lambda x: hf.max(x, axis=0),
    "max1": lambda x: hf.max(x, axis=1),
    "min": lambda x: hf.min(x),
    "argmax0": lambda x: hf.argmax(x, axis=0),
    "argmin1": lambda x: hf.argmin(x, axis=1),
    "logsumexp": lambda x: hf.logsumexp(x, axis=0),
    "softmax": lambda x: hf.nn.softmax(x, axis=0),
    "softmax1": lambda x: hf.nn.softmax(x, axis=1),
    "layer_norm": lambda x: hf.nn.layer_norm(x),
    "sort": lambda x: hf.sort(x, axis=0),
    "argsort": lambda x: hf.argsort(x, axis=1),
    "cumulative_sum": lambda x: hf.cumulative_sum(x, axis=0),
    "product": lambda x: x @ x.T,
    "product2": lambda x: x.T @ x,
    "outer sum": lambda x: x[:, None, :] + x[None, :, :],
    "reversed": lambda x: hf.sum(x[::-1] * x, axis=0),
    "center": lambda x: x - hf.mean(x, axis=0, keepdims=True),
    "broadcast": lambda x: hf.sum(x * hf.sum(x, axis=1, keepdims=True), axis=0),
    "take": lambda x: hf.take(x, [0, 1], axis=0),
    "position": lambda x: x[0],
    "last": lambda x: x[:, -1],
    "any": lambda x: hf.any(x > 0, axis=0),
    "flatten": lambda x: hf.sum(hf.reshape(x.T, (-1,))),
}
SPECS = {"rows": ((None, 5), lambda n: (n, 5)), "columns": ((5, None), lambda n: (5, n)), "both": ((None, None), None)}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", ROWS)
def test_every_extent_gives_what_eager_gives(name, spec):
    body, (shape, of) = ROWS[name], SPECS[spec]
    f = hf.function(body, input_signature=[hf.TensorSpec(shape)])
    g = hf.function(body).get_concrete_function
    try:
        concrete = g(hf.TensorSpec(shape))
    except HybridflowError:
        pytest.skip("the program cannot be traced with this open extent")
    # Of both together each with itself and with two others: one trace serves all but those with 0 and 1.
    shapes = (
        [of(n) for n in SIZES]
        if of
        else [(n, SIZES[(k + by) % len(SIZES)]) for k, n in enumerate(SIZES) for by in (0, 1, 3)]
    )
    for actual in [*shapes, *shapes]:  # the second time natively
        x = data(actual)
        eager = outcome(body, x)
        assert same_outcome(outcome(f, x), eager), actual
        assert same_outcome(outcome(concrete, x), eager), actual
        if name not in ("argmax0", "argmin1", "argsort", "any"):
            assert same_outcome(outcome(gradient_of(f), x), outcome(gradient_of(body), x)), actual


def test_zero_and_one_are_traced_once_each_and_the_rest_together():
    f = hf.function(lambda x: hf.sum(x, axis=0), input_signature=[hf.TensorSpec((4, None))])
    for n in (3, 1, 0, 7, 2, 1, 0, 3, 1):
        f(data((4, n)))
    assert sorted(map(str, (c.key.leaves[0] for c in f.concrete_functions()))) == ["f32[4,0]", "f32[4,1]", "f32[4,?]"]
    assert f.get_concrete_function() is f.get_concrete_function(data((4, 9)))
    assert f.get_concrete_function(data((4, 1))) is not f.get_concrete_function()
    assert [(r.argument, r.old, r.new) for r in f.retraces()] == [
        ("x", "f32[4,?]", "f32[4,1]"),
        ("x", "f32[4,?]", "f32[4,0]"),
    ] or len(f.retraces()) == 2
    assert all("once" in r.suggestion for r in f.retraces())


def test_zero_and_one_beside_extents_that_opened_by_themselves_are_no_reason_to_pad():
    f = hf.function(lambda x: hf.sum(x))
    for n in (2, 3, 1, 0):
        f(data((n, 3)))
    opened, one, zero = f.retraces()
    assert (opened.new, one.new, zero.new) == ("f32[?,3]", "f32[1,3]", "f32[0,3]")
    assert all("trace of its own, once" in retrace.suggestion for retrace in (one, zero))
    f(data((1, 4)))
    assert "pad or batch" in f.retraces()[-1].suggestion


def test_a_native_call_with_an_open_extent_leaves_zero_and_one_alone():
    f = hf.function(lambda x: hf.sum(x, axis=0), input_signature=[hf.TensorSpec((4, None))])
    cancelling = hf.asarray(np.array([1e8, 1, -1e8, 1], "float32").reshape(4, 1))
    for _ in range(5):
        f(data((4, 3)))
    assert f(cancelling).item() == hf.sum(cancelling, axis=0).item() == 2.0


def test_a_concrete_function_serves_every_extent_also_inside_a_trace():
    def body(x, y):
        return hf.max(x + y, axis=0) * hf.sum(x, axis=0)

    concrete = hf.function(body).get_concrete_function(hf.TensorSpec((None, 4)), hf.TensorSpec((4,)))
    y = data((4,), seed=1)
    programs = (concrete, hf.function(lambda x, y: concrete(x, y)))
    open_ = hf.function(lambda x, y: concrete(x, y), input_signature=[hf.TensorSpec((None, 4)), hf.TensorSpec((4,))])
    for n in (1, 5, 0, 2, 1, 0, 5):
        x = data((n, 4))
        for f in (*programs, open_):
            assert same_outcome(outcome(f, x, y), outcome(body, x, y)), (n, f)
    with pytest.raises(ShapeError):
        concrete(data((3, 5)), y)


def test_a_concrete_function_outlives_its_function():
    concrete = hf.function(lambda x: hf.sum(x, axis=0)).get_concrete_function(hf.TensorSpec((4, None)))
    gc.collect()
    for n in (3, 1, 0):
        assert same_bits(np.asarray(concrete(data((4, n)))), np.asarray(hf.sum(data((4, n)), axis=0)))


def test_open_extents_of_arguments_with_like_names_are_not_one_extent():
    f = hf.function(lambda a, a_0: hf.sum(a[0]) + 2 * hf.sum(a_0))
    concrete = f.get_concrete_function([hf.TensorSpec((None,))], hf.TensorSpec((None,)))
    assert concrete([hf.ones(3)], hf.ones(5)).item() == 13
    assert concrete([hf.ones(1)], hf.ones(5)).item() == 11


def test_scalars_and_static_extents_of_one_are_what_they_are():
    f = hf.function(lambda x, y: x * y, input_signature=[hf.TensorSpec(()), hf.TensorSpec((1, None))])
    for n in (1, 4, 0):
        assert f(2.0, hf.ones((1, n))).shape == (1, n)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "any", "argmin"])
def test_eager_reductions_over_nothing(name):
    for shape, axis in [((0,), 0), ((0, 3), 0), ((3, 0), 1), ((2, 0, 3), 1), ((0, 0), 0), ((0, 3), 1)]:
        array = np.zeros(shape, bool if name == "any" else np.float32)
        try:
            expected = getattr(np, name)(array, axis=axis)
        except ValueError:
            with pytest.raises(ShapeError):
                getattr(hf, name)(hf.asarray(array), axis=axis)
            continue
        np.testing.assert_array_equal(np.asarray(getattr(hf, name)(hf.asarray(array), axis=axis)), expected)


def test_eager_products_scans_and_scatters_of_nothing():
    np.testing.assert_array_equal(hf.ones((3, 0)) @ hf.ones((0, 2)), np.zeros((3, 2)))
    np.testing.assert_array_equal(hf.ones((2, 3, 0)) @ hf.ones((2, 0, 2)), np.zeros((2, 3, 2)))
    assert hf.cumulative_sum(hf.ones((0, 3)), axis=0).shape == hf.sort(hf.ones((0, 3)), axis=0).shape == (0, 3)
    empty = hf.asarray(np.zeros(0, np.int64))
    np.testing.assert_array_equal(hf.scatter_add(hf.ones((3, 2)), empty, hf.ones((0, 2))), np.ones((3, 2)))
    assert hf.take(hf.ones((3, 2)), empty, axis=0).shape == (0, 2)


# Dicts in another order


def first_minus_second(values):
    first, second = values.values()
    return first - second


@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda entries: defaultdict(list, entries)])
def test_the_body_sees_a_dict_in_the_order_of_the_call(kind):
    f = hf.function(first_minus_second)
    x, y = hf.asarray([1.0, 2.0]), hf.asarray([5.0, 7.0])
    ways = [kind([("a", x), ("b", y)]), kind([("b", y), ("a", x)])]
    for values in (*ways, *ways):
        assert f(values).tolist() == first_minus_second(values).tolist()
    assert len(f.concrete_functions()) == 2
    assert "order" in f.retraces()[0].suggestion
    concrete = f.get_concrete_function(ways[0])
    for values in ways:
        assert concrete(values).tolist() == first_minus_second(values).tolist()


def test_nested_dicts_keywords_and_input_signatures_keep_the_order_of_the_call():
    x, y = hf.asarray([1.0, 2.0]), hf.asarray([5.0, 7.0])
    spec = hf.TensorSpec((2,))
    nested = hf.function(lambda pairs: first_minus_second(pairs[0]["inner"]))
    keywords = hf.function(lambda **values: first_minus_second(values))
    declared = hf.function(first_minus_second, input_signature=[{"a": spec, "b": spec}])
    for _ in range(2):
        for values in ({"a": x, "b": y}, {"b": y, "a": x}):
            expected = first_minus_second(values).tolist()
            assert nested([{"inner": values}]).tolist() == expected
            assert keywords(**values).tolist() == expected
            assert declared(values).tolist() == expected


def test_captured_dicts_keep_their_order():
    values = {"a": 1.0, "b": 5.0}
    f = hf.function(lambda x: x * first_minus_second(values))
    assert f(hf.ones(1)).item() == -4.0
    values["a"] = values.pop("a")
    assert list(values) == ["b", "a"] and f(hf.ones(1)).item() == 4.0


# Programs with more buffers than fit on the stack


def test_many_buffers():
    v = hf.Variable(0.0)

    @hf.function
    def many(x):
        v.assign_add(1.0)
        return [x + k for k in range(600)]

    for n in (1, 2, 3):
        assert many(hf.ones(1))[599].item() == 600.0 and v.item() == n
    captured = [hf.asarray([float(k)]) for k in range(600)]
    f = hf.function(lambda x: hf.concat([x, *captured], axis=0))
    g = hf.function(lambda xs: xs[0] + xs[-1])
    values = [hf.asarray([float(k)]) for k in range(6000)]
    for _ in range(3):
        assert f(hf.ones(1)).tolist() == [1.0, *map(float, range(600))]
        assert g(values).item() == 5999.0
    for function in (many, f, g):
        assert function._cache.variants()[-1].native_hits > 0


def test_products_with_one_column_and_an_epilogue():
    y = data((1, 1), seed=1)
    bodies = (
        lambda x, y: (x.T @ y) * 2,
        lambda x, y: (x.T @ y).T + x,
        lambda x, y: y @ x + (x.T @ y).T,
        lambda x, y: hf.tanh(y @ x) * x,
    )
    for body in bodies:
        concrete = hf.function(body).get_concrete_function(hf.TensorSpec((1, None)), hf.TensorSpec((1, 1)))
        for n in (2, 3, 17, 40, 1, 0):
            x = data((1, n))
            assert same_outcome(outcome(concrete, x, y), outcome(body, x, y)), n


# The derivative of a product


def products_of_others(x, left_out):
    """For each element the product of all others but those in ``left_out``, in float64; 0 for those."""
    x = np.asarray(x, np.float64).ravel()
    return [0.0 if k in left_out else float(np.prod(np.delete(x, [k, *left_out]))) for k in range(x.size)]


@pytest.mark.parametrize("zeros", [(), (2,), (0, 3), (1, 2, 4)])
def test_derivatives_of_a_product_at_zeros(zeros):
    array = np.array([1.5, -2.0, 0.5, 3.0, -1.25])
    array[list(zeros)] = 0.0
    x = hf.asarray(array)
    for f in (hf.prod, hf.function(hf.prod), hf.function(hf.prod, input_signature=[hf.TensorSpec((None,), "float64")])):
        with hf.GradientTape() as outer:
            outer.watch(x)
            with hf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            gradient = inner.gradient(y, x)
        np.testing.assert_allclose(gradient, products_of_others(array, []), rtol=1e-14)
        hessian = outer.jacobian(gradient, x)
        for k in range(5):
            np.testing.assert_allclose(hessian[k], products_of_others(array, [k]), rtol=1e-14)


@pytest.mark.parametrize(
    ("axes", "dtype"),
    [
        *((axes, "float32") for axes in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2), (-1, 0))),
        *(((0, 2), dtype) for dtype in ("float16", "bfloat16", "float64")),
    ],
)
def test_the_derivative_of_products_over_axes(axes, dtype):
    array = np.random.default_rng(1).uniform(0.5, 1.5, (3, 4, 5))
    array[1, 2, 3] = 0.0
    x = hf.astype(hf.asarray(array), dtype)
    wide = np.asarray(hf.astype(x, "float64"))
    kept = tuple(k for k in range(3) if k not in tuple(a % 3 for a in axes))
    lines = wide.transpose(*kept, *(a % 3 for a in axes)).reshape(*(wide.shape[k] for k in kept), -1)
    expected = np.apply_along_axis(lambda line: products_of_others(line, []), -1, lines)
    order = (*kept, *(a % 3 for a in axes))
    expected = expected.reshape([wide.shape[k] for k in order]).transpose(np.argsort(order))

    def body(x):
        return hf.prod(x, axis=axes)

    open_ = hf.function(body, input_signature=[hf.TensorSpec((None, 4, None), dtype)])
    found = []
    for f in (body, hf.function(body), open_):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(f(x))
        found.append(np.asarray(tape.gradient(y, x)))
        inside = hf.function(lambda x, f=f: _gradient_inside(f, x))
        found.append(np.asarray(inside(x)))
    tolerance = {"float16": 5e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(found[0].astype(np.float64), expected, rtol=tolerance, atol=tolerance * 1e-2)
    assert all(same_bits(one, found[0]) for one in found)


def _gradient_inside(f, x):
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(f(x))
    return tape.gradient(y, x)


def test_the_derivative_of_a_product_of_many_short_floats_stays_in_range():
    x = hf.asarray(np.array([300.0, 300.0, 1e-3, 1e-3], "float16"))
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.prod(x)
    np.testing.assert_allclose(tape.gradient(y, x), [3e-4, 3e-4, 90, 90], rtol=2e-2)


def test_the_derivative_of_a_product_with_an_infinity():
    x = hf.asarray(np.array([np.inf, 2.0, 3.0]))
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.prod(x)
    assert tape.gradient(y, x).tolist() == [6.0, np.inf, np.inf]


def test_memory_that_is_divided_is_counted_at_every_call():
    # What a cut scan keeps for each chunk is a quotient of the extent.
    f = hf.function(lambda x: hf.cumulative_sum(x, axis=0), input_signature=[hf.TensorSpec((None, 1), "float32")])
    for n in (5, 4096, 4097, 9000, 5):
        x = np.random.default_rng(n).normal(size=(n, 1)).astype(np.float32)
        assert np.array_equal(f(x).numpy(), hf.cumulative_sum(hf.asarray(x), axis=0).numpy())


def test_values_of_open_size_take_no_more_room_than_others():
    """A value ends at a line of the cache as a whole, not each of its elements."""

    def rows(x):
        for _ in range(3):
            x = hf.cumulative_sum(x, axis=0)
        return x

    open_size = hf.function(rows, input_signature=[hf.TensorSpec([None, 3], hf.float32)])
    program = compile_graph(open_size.get_concrete_function().graph, host_target.target())
    (n,) = symbols(program.arena_bytes)
    for size in (2, 1000, 1001):
        assert 2 * 12 * size <= value_at(program.arena_bytes, {n: size}) <= 2 * 12 * size + 512


HALVES = {
    "joined": lambda x: hf.reshape(hf.concat([x[::2], x[1::2]], axis=0), x.shape),
    "flat": lambda x: hf.reshape(x[: x.shape[0] // 2], (-1,)) + hf.reshape(x[(x.shape[0] + 1) // 2 :], (-1,)),
    "flat, one more": lambda x: hf.reshape(x[: (x.shape[0] + 1) // 2], (-1,)) * hf.reshape(x[x.shape[0] // 2 :], (-1,)),
    "asked": lambda x: x if 3 * (x.shape[0] // 2) == 3 * (x.shape[0] - (x.shape[0] + 1) // 2) else -x,
    "product": lambda x: x[: x.shape[0] // 2].T @ x[(x.shape[0] + 1) // 2 :],
    "chosen": lambda x: hf.cond(
        hf.sum(x) > 0, lambda: x[: x.shape[0] // 2] * 2, lambda: x[(x.shape[0] + 1) // 2 :] * 3
    ),
}


@pytest.mark.parametrize("name", HALVES)
def test_halves_that_are_spelled_in_two_ways_have_one_program(name):
    body = HALVES[name]
    for plain in (body, gradient_of(body)):
        f = hf.function(plain)
        for n in (8, 7, 9, 12):
            x = data((n, 3), seed=n)
            assert same_outcome(outcome(f, x), outcome(plain, x)), n
        assert len(f.signatures()) == 2  # of 8 rows, and of any number


def test_an_answer_that_holds_for_multiples_is_given_for_those_alone():
    """Whether the extents are one is not seen; each of their spellings divides others."""

    def body(x):
        n = x.shape[0]
        return 2 * x if (n // 2) * (n // 2) == (n - (n + 1) // 2) * (n - (n + 1) // 2) else x

    f = hf.function(body, input_signature=[hf.TensorSpec((None,), "float32")])
    for n in (8, 7, 9, 12):
        assert f(hf.ones((n,))).tolist() == [2.0] * n


def test_an_extent_that_is_always_zero_does_not_keep_a_trace_busy() -> None:
    @hf.function(input_signature=[hf.TensorSpec((None,), "float32")])
    def f(x):
        return hf.reshape(x[:0], (x.shape[0] // 2 - 1, -1))

    with pytest.raises(hf.errors.SymbolicExtentError, match="open"):
        f.get_concrete_function()
    for n in (4, 6, 7, 12):
        assert f(hf.ones(n)).shape == (n // 2 - 1, 0)
