"""Plans of public functions: the same bits, errors and effects as the bodies, whatever comes between."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.array import elementwise
from hybridflow.compiler.ops import TABLE
from hybridflow.core import pytree, tier_up
from hybridflow.core.tier_up import SINGLE_OPS
from hybridflow.eager import public_op
from hybridflow.eager.dispatch import apply
from hybridflow.runtime.calls import entry
from tests.support.fresh_functions import forget_calls

native = pytest.mark.skipif(entry.problem() is not None, reason="plans are native calls")
RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """Functions without plans, whatever ran before."""
    forget_calls()


def _plans(function: Any) -> int:
    return sum(plan.calls for plan in function._dispatch)


def _bits(value: Any) -> list[tuple[Any, ...]]:
    """Of each tensor: all that tells it from others.  A NaN's sign and payload are free."""
    arrays = [x.numpy() for x in pytree.flatten(value)[0]]
    return [(a.dtype, a.shape, np.where(a != a, np.array(0, a.dtype), a).tobytes(), (a != a).tobytes()) for a in arrays]


def _random(*shape: int, dtype: Any = np.float32) -> hf.Tensor:
    values = RNG.standard_normal(shape) * 3
    return hf.asarray(np.asarray(values > 0 if dtype == np.bool_ else values).astype(dtype))


def _again(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the first call, which all later ones must have the bits of."""
    first = function(*args, **kwargs)
    for _ in range(8):
        assert _bits(function(*args, **kwargs)) == _bits(first)
    return first


X, Y, ROW = _random(3, 4), _random(3, 4), _random(4)
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (hf.nn.relu, (X,), {}),
    (hf.maximum, (X, ROW), {}),
    (hf.maximum, (X, 0), {}),
    (hf.where, (hf.greater(X, 0), X, 0.5), {}),
    (hf.pow, (X, 2), {}),
    (hf.clip, (X,), {"min": -1.0, "max": 1.0}),
    (hf.exp, (X,), {}),
    (hf.tanh, (_random(2, 3, dtype=np.int32),), {}),
    (hf.isnan, (X,), {}),
    (hf.astype, (X, hf.int64), {}),
    (hf.sum, (X,), {}),
    (hf.sum, (X,), {"axis": 1, "keepdims": True}),
    (hf.mean, (X, -1), {}),
    (hf.var, (X,), {"correction": 1.0}),
    (hf.std, (X,), {}),
    (hf.argmax, (X, 0), {}),
    (hf.any, (hf.greater(X, 0),), {}),
    (hf.logsumexp, (X,), {}),
    (hf.cumulative_sum, (X, 1), {}),
    (hf.matmul, (X, _random(4, 3)), {}),
    (hf.vecdot, (X, Y), {}),
    (hf.outer, (ROW, ROW), {}),
    (hf.sort, (X,), {"descending": True}),
    (hf.top_k, (X, 2), {}),
    (hf.take, (X, hf.asarray([2, 0, -1])), {"axis": 0}),
    (hf.one_hot, (hf.asarray([1, 2]), 4), {}),
    (hf.nn.softmax, (X,), {}),
    (hf.nn.log_softmax, (X, 0), {}),
    (hf.nn.gelu, (X, True), {}),
    (hf.nn.layer_norm, (X, ROW), {"offset": ROW}),
    (hf.losses.mean_squared_error, (X, Y), {}),
    (hf.losses.huber, (X, Y, 0.5), {"reduction": "none"}),
]
_IDS = [f"{function.__name__}-{k}" for k, (function, _, _) in enumerate(CALLS)]


@native
@pytest.mark.parametrize("call", CALLS, ids=_IDS)
def test_a_function_that_is_called_again_is_answered_natively(call: Any) -> None:
    function, args, kwargs = call
    expected = function.__wrapped__(*args, **kwargs)
    assert _bits(_again(function, *args, **kwargs)) == _bits(expected)
    assert _plans(function) > 3


@native
@pytest.mark.parametrize("call", CALLS[:24], ids=_IDS[:24])
def test_one_plan_serves_other_sizes(call: Any) -> None:
    function, args, kwargs = call
    _again(function, *args, **kwargs)
    before = _plans(function)

    def grown(x: Any) -> Any:
        if not isinstance(x, hf.Tensor) or x.ndim == 0:
            return x
        array = np.concatenate([x.numpy()] * 3, axis=-1)
        return hf.asarray(np.concatenate([array] * 3, axis=0) if x.ndim > 1 else array)

    if function in (hf.take, hf.gather):
        return
    larger = [grown(x) for x in args]
    if function is hf.matmul:
        larger = [larger[0], hf.asarray(np.ascontiguousarray(larger[1].numpy()))]
    others = {name: grown(x) for name, x in kwargs.items()}
    result = function(*larger, **others)
    assert _plans(function) == before + 1
    assert _bits(result) == _bits(function.__wrapped__(*larger, **others))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (1, 5), (2, 1, 3)])
@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float16, np.float32])
def test_shapes_and_dtypes_in_turn(shape: tuple[int, ...], dtype: Any) -> None:
    x = _random(*shape, dtype=dtype)
    full = _random(4, 5, dtype=dtype)
    for function in (hf.nn.relu, hf.exp, hf.sum, hf.mean, hf.nn.softmax):
        if function in (hf.nn.softmax,) and (not shape or 0 in shape):
            continue
        expected = _bits(function.__wrapped__(x))
        for value, wanted in ((x, expected), (full, _bits(function.__wrapped__(full)))):
            for _ in range(6):
                assert _bits(function(value)) == wanted


VALUES = [
    1,
    1.0,
    True,
    0,
    0.0,
    -0.0,
    False,
    float("nan"),
    float("inf"),
    2**40,
    np.float32(1),
    np.float64(1),
    np.int8(1),
]


@pytest.mark.parametrize("x", [X, _random(3, dtype=np.int32), _random(3, dtype=np.bool_)], ids=str)
def test_numbers_that_compare_equal_are_told_apart(x: hf.Tensor) -> None:
    for function in (hf.maximum, hf.copysign, hf.pow):
        for _ in range(8):
            for value in VALUES:
                try:
                    expected = _bits(function.__wrapped__(x, value))
                except hf.errors.HybridflowError as error:
                    with pytest.raises(type(error)):
                        function(x, value)
                else:
                    assert _bits(function(x, value)) == expected


def test_strided_and_reversed_operands() -> None:
    x = _random(6, 8)
    views = [hf.permute_dims(x), x[::2], x[:, ::-1], x[::-1, 1::3], hf.broadcast_to(x[0], (6, 8))]
    for function in (hf.nn.relu, hf.sum, hf.nn.softmax, hf.argmax):
        _again(function, x)
        for view in views:
            dense = hf.asarray(np.ascontiguousarray(view.numpy()))
            assert _bits(_again(function, view)) == _bits(function.__wrapped__(dense))


def test_special_values() -> None:
    x = hf.asarray(np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e38, 3]], np.float32))
    for function in (hf.nn.relu, hf.exp, hf.sum, hf.max, hf.argmax, hf.nn.softmax, hf.mean, hf.sort, hf.sign):
        expected = function.__wrapped__(x).numpy()
        for _ in range(6):
            np.testing.assert_array_equal(function(x).numpy(), expected)


def test_errors_are_those_of_the_body() -> None:
    x = _random(3, 4)
    bad: list[tuple[Any, tuple[Any, ...]]] = [
        (hf.take, (x, hf.asarray([0, 3, 1]), 0)),
        (hf.floor_divide, (hf.asarray([3, 4, 5]), hf.asarray([1, 0, 2]))),
        (hf.matmul, (x, x)),
        (hf.maximum, (x, _random(3))),
        (hf.sum, (x, 2)),
    ]
    good: list[tuple[Any, tuple[Any, ...]]] = [
        (hf.take, (x, hf.asarray([0, 2, 1]), 0)),
        (hf.floor_divide, (hf.asarray([3, 4, 5]), hf.asarray([1, 3, 2]))),
        (hf.matmul, (x, _random(4, 3))),
        (hf.maximum, (x, _random(4))),
        (hf.sum, (x, 1)),
    ]
    for (function, args), (_, fine) in zip(bad, good):
        with pytest.raises(hf.errors.HybridflowError) as first:
            function.__wrapped__(*args)
        expected = _again(function, *fine)
        for _ in range(3):
            with pytest.raises(hf.errors.HybridflowError) as error:
                function(*args)
            assert type(error.value) is type(first.value)
            assert _without_line(error.value) == _without_line(first.value)
            assert "test_public_ops.py" in str(error.value)
            assert _bits(function(*fine)) == _bits(expected)


def _without_line(error: Exception) -> str:
    return str(error).rpartition("(")[0]


def test_errors_name_the_line_of_the_call() -> None:
    x, fine, wrong = _random(3, 4), hf.asarray([0, 2]), hf.asarray([0, 9])
    _again(hf.take, x, fine, 0)
    lines = []
    for _ in range(2):
        try:
            hf.take(x, wrong, 0)
        except hf.errors.HybridflowError as error:
            lines.append(traceback.extract_tb(error.__traceback__)[0].lineno)
            assert f"test_public_ops.py:{lines[-1]}" in str(error)
    assert len(lines) == 2


def test_tapes_record_what_has_plans() -> None:
    x = _random(3, 4)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(hf.nn.softmax(x) * x)
    expected = _bits(tape.gradient(y, x))
    _again(hf.nn.softmax, x)
    _again(hf.sum, x)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(hf.nn.softmax(x) * x)
    assert _bits(tape.gradient(y, x)) == expected


def test_traces_see_the_primitives() -> None:
    x = _random(3, 4)
    _again(hf.nn.softmax, x)
    traced = hf.function(lambda v: hf.nn.softmax(v))
    assert _bits(traced(x)) == _bits(hf.nn.softmax(x))
    assert "exp" in traced.ir(x)


def test_variables_are_read_anew() -> None:
    v = hf.Variable(np.array([1.0, -2.0], np.float32))
    for k in range(8):
        v.assign([k, -k])
        assert hf.nn.relu(v).tolist() == [k, 0]


def test_results_are_apart() -> None:
    x = _random(3, 4)
    results = [hf.nn.softmax(x) for _ in range(8)]
    assert len({r.numpy().__array_interface__["data"][0] for r in results}) == len(results)


def test_random_numbers_go_on() -> None:
    hf.random.set_seed(3)
    expected = [hf.random.normal.__wrapped__(()).item() for _ in range(10)]  # type: ignore[attr-defined]
    hf.random.set_seed(3)
    assert [hf.random.normal(()).item() for _ in range(10)] == expected
    hf.random.set_seed(3)
    found = [hf.random.normal().item() if k % 2 else hf.random.normal(()).item() for k in range(10)]
    assert found == expected


@native
def test_generators_and_dropout_go_on() -> None:
    x, fixed = _random(5, 7), hf.random.Generator(3)
    draws: list[Callable[[], Any]] = [
        lambda: fixed.normal((3,)),
        lambda: fixed.bernoulli(0.5, (7,)),
        lambda: fixed.randint((4,), 0, 9),
        lambda: hf.nn.dropout(x, 0.5, generator=fixed),
        lambda: fixed.permutation(5),
    ]
    expected = []
    for _ in range(6):
        hf.config.run_functions_eagerly(True)
        expected += [_bits(draw()) for draw in draws]
        hf.config.run_functions_eagerly(False)
    fixed.reset(3)
    assert [_bits(draw()) for _ in range(6) for draw in draws] == expected
    for _ in range(8):
        hf.nn.dropout(x, 0.5)
    assert _plans(hf.nn.dropout) > 3
    other = hf.random.Generator(3)
    assert _bits(other.normal((3,))) == expected[0]


@native
def test_operators_that_convert_or_broadcast() -> None:
    x, row, whole = _random(3, 4), _random(4), _random(3, 4, dtype=np.int16)
    column = hf.permute_dims(_random(4, 3))
    array = RNG.standard_normal((3, 4)).astype(np.float32)
    for other in (row, whole, column, array, hf.Variable(row), True, 2, 2.5, np.float64(1.5), 2**40):
        for function in (hf.add, hf.subtract, hf.multiply, hf.divide, hf.less):
            dense = hf.asarray(np.array(other)) if isinstance(other, (np.ndarray, hf.Tensor)) else other
            expected = _bits(function(x, dense))
            for _ in range(6):
                assert _bits(function(x, other)) == expected
    for _ in range(6):
        with pytest.raises(hf.errors.ShapeError, match=r"add.*do not broadcast"):
            x + _random(3)
        with pytest.raises(hf.errors.ArgumentError):
            whole + 2**20


def test_masks_and_positions() -> None:
    x = _random(3, 4)
    for key in (hf.greater(x, 0), hf.asarray([True, False, True]), hf.asarray([2, -1, 0, 0]), hf.asarray([[0], [1]])):
        expected = x.numpy()[key.numpy()]
        result = x[key]
        assert result.shape == expected.shape and result.numpy().tobytes() == expected.tobytes()
    for wrong in (hf.asarray([3]), hf.asarray([True, False]), hf.asarray([0.5])):
        with pytest.raises(hf.errors.HybridflowError):
            x[wrong]
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(x[hf.asarray([0, 0, 2])])
    assert tape.gradient(y, x)[:, 0].tolist() == [2, 0, 1]


@native
def test_a_plan_that_never_answers_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Deaf:
        calls = 0

    monkeypatch.setattr(public_op, "_planner", lambda: lambda *_: made.append(Deaf()) or made[-1])

    @public_op.operation
    def twice(x: Any) -> Any:
        return x + x

    for _ in range(200):
        assert twice(ROW).shape == (4,)
    assert len(made) == 1


def test_functions_run_eagerly_go_through_the_bodies() -> None:
    x = _random(3)
    expected = _bits(_again(hf.exp, x))
    hf.config.run_functions_eagerly(True)
    try:
        before = _plans(hf.exp)
        assert _bits(hf.exp(x)) == expected
        assert _plans(hf.exp) == before
    finally:
        hf.config.run_functions_eagerly(False)


def test_threads() -> None:
    inputs = [_random(3, 4), _random(7), _random(2, 3, 4), _random(5, dtype=np.float64)]
    expected = [_bits(hf.nn.softmax.__wrapped__(x)) for x in inputs]  # type: ignore[attr-defined]
    wrong: list[Any] = []

    def work(first: int) -> None:
        for k in range(200):
            i = (k + first) % len(inputs)
            if _bits(hf.nn.softmax(inputs[i])) != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@native
def test_plans_and_forms_are_bounded() -> None:
    x = _random(3)
    for k in range(600):
        hf.maximum(x, float(k))
    assert len(hf.maximum._tier_up) <= tier_up.PUBLIC_OPS.capacity  # type: ignore[attr-defined]
    assert hf.maximum._dispatch == ()  # type: ignore[attr-defined]
    for k in range(12):
        for _ in range(40):
            hf.maximum(x, k + 0.5)
    tried, of_objects = hf.maximum._tier_up.tries  # type: ignore[attr-defined]
    assert 4 <= tried <= 16 and of_objects == 0
    assert len(hf.maximum._dispatch) <= public_op._MOST_PLANS  # type: ignore[attr-defined]


@native
def test_variables_that_come_and_go_leave_other_calls_their_plans() -> None:
    """As the weights of models do that are trained one after the other."""
    x, y = _random(3, 3), _random(3, 3, dtype=np.float64)
    for _ in range(30):
        weight = hf.Variable(x)
        for _ in range(60):
            hf.matmul(x, weight)
    of_values, of_objects = hf.matmul._tier_up.tries  # type: ignore[attr-defined]
    assert of_objects >= 8 and of_values == 0
    for _ in range(8):
        hf.matmul(y, y)
    assert hf.matmul._dispatch[0].calls >= 3  # type: ignore[attr-defined]


VIEWS: list[tuple[Any, tuple[Any, ...]]] = [
    (hf.reshape, ((6, 4),)),
    (hf.reshape, (-1,)),
    (hf.permute_dims, ()),
    (hf.permute_dims, ((2, 0, 1),)),
    (hf.matrix_transpose, ()),
    (hf.moveaxis, (0, 2)),
    (hf.expand_dims, (1,)),
    (hf.expand_dims, ((0, 4),)),
    (hf.squeeze, (1,)),
    (hf.broadcast_to, ((5, 3, 1, 8),)),
    (hf.unstack, ()),
    (hf.split, (3,)),
    (hf.split, ([1, 5, 2], 2)),
    (hf.flip, ((0, 2),)),
]


@native
@pytest.mark.parametrize("call", VIEWS, ids=[f"{f.__name__}-{k}" for k, (f, _) in enumerate(VIEWS)])
def test_views_stay_views(call: Any) -> None:
    function, args = call
    x = _random(3, 1, 8)
    expected = _bits(function.__wrapped__(x, *args))
    _again(function, x, *args)
    assert _plans(function) > 3
    for part in pytree.flatten(function(x, *args))[0]:
        assert np.shares_memory(part.numpy(), x.numpy())
        assert part._array.base is x._array  # and no chain of views
    # Of strided tensors, of views of views, and when the owner is gone.
    strided = hf.permute_dims(hf.asarray(np.ascontiguousarray(x.numpy().T)))
    assert _bits(_again(function, strided, *args)) == expected
    chain = hf.reshape(hf.reshape(x, (24,)), (3, 1, 8))
    result = function(chain, *args)
    before = _plans(function)
    result = function(chain, *args)
    assert _plans(function) == before + 1
    assert all(part._array.base is x._array for part in pytree.flatten(result)[0])
    del x, chain
    _ = [_random(3, 1, 8) for _ in range(50)]
    assert _bits(result) == expected
    with pytest.raises(ValueError, match="read-only"):
        pytree.flatten(result)[0][0].numpy()[...] = 0


class _Binding:
    """A cycle that, when it is collected, gives a tensor an array in which most of the old elements would not be."""

    def __init__(self, x: hf.Tensor) -> None:
        self.me, self.x = self, x

    def __del__(self) -> None:
        self.x._array = np.broadcast_to(np.float32(-1), self.x.shape)


@native
@pytest.mark.parametrize("allocations", range(1, 9))
def test_views_are_of_one_value_whatever_a_collection_does(allocations: int) -> None:
    x = _random(6, 5)
    _again(hf.unstack, x)
    before, thresholds = x.tolist(), gc.get_threshold()
    gc.collect()
    gc.disable()
    try:
        _Binding(x)
        gc.set_threshold(allocations)
        gc.enable()
        parts = hf.unstack(x)
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
    found = [part.tolist() for part in parts]
    assert found in (before, [[-1.0] * 5] * 6)


@native
def test_views_are_of_tensors_only() -> None:
    array = np.arange(6.0)
    for k in range(8):
        array[0] = k
        result = hf.reshape(array, (2, 3))
        array[0] = -1
        assert result[0, 0].item() == k
    x = hf.asarray(array)
    assert [hf.reshape(x, (6,)) is x for _ in range(6)] == [False] * 6


CONSTANTS: list[tuple[Any, tuple[Any, ...]]] = [
    (hf.zeros, ((3, 4),)),
    (hf.ones, (5, hf.int32)),
    (hf.full, ((2,), 3)),
    (hf.full, ((2,), 3.0)),
    (hf.full, ((2,), True)),
    (hf.full, ((2,), -0.0)),
    (hf.full, ((2,), 0.0)),
    (hf.arange, (10,)),
    (hf.arange, (10.0,)),
    (hf.arange, (True,)),
    (hf.arange, (1, 10, 3)),
    (hf.linspace, (0, 1, 5)),
    (hf.eye, (3,)),
]


def test_what_is_made_of_numbers_alone() -> None:
    expected = [_bits(function.__wrapped__(*args)) for function, args in CONSTANTS]
    for _ in range(8):
        for (function, args), wanted in zip(CONSTANTS, expected):
            assert _bits(function(*args)) == wanted
    first, second = (hf.zeros((3, 4)) for _ in range(2))
    assert first is not second
    v = hf.Variable(first)
    step = hf.function(lambda: v.assign_add(hf.ones((3, 4))))
    for _ in range(4):
        step()
    assert not hf.any(second).item() and not hf.any(hf.zeros((3, 4))).item()
    fill = hf.Variable(np.float32(1))
    for k in range(8):
        fill.assign(np.float32(k))
        assert hf.full((2,), fill).tolist() == [k, k]


def test_arguments_of_other_kinds() -> None:
    x, v, array = _random(3, 4), hf.Variable(_random(3, 4)), RNG.standard_normal((3, 4)).astype(np.float32)
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (hf.concat, ([x, x],)),
        (hf.stack, ((x, v), 1)),
        (hf.stack, ([x, array], -1)),
        (hf.einsum, ("ij,kj->ik", x, v)),
        (hf.maximum, (array, x)),
        (hf.multiply, (x, array)),
        (hf.take, (x, [2, 0, 0], 0)),
        (hf.sum, (x, (0, 1))),
        (hf.pad, (x, [(1, 2), (0, 3)])),
        (hf.where, (hf.greater(x, 0), v, np.float32(2))),
        (hf.astype, (v, hf.float32)),
        (hf.nn.relu, (v,)),
        (hf.nn.relu, ([1.0, -1.0],)),
    ]
    for k in range(7):
        v.assign(v.value() + float(k))
        array += k
        for function, args in calls:
            body = getattr(function, "__wrapped__", function)
            assert _bits(function(*args)) == _bits(body(*args))


def test_a_body_that_needs_values_has_no_plan() -> None:
    @public_op.operation
    def longest(x: Any) -> Any:
        return elementwise.multiply(x, float(x.numpy().max()))

    x = hf.asarray([1.0, 3.0])
    for k in range(8):
        assert longest(x + float(k)).tolist() == [(1.0 + k) * (3.0 + k), (3.0 + k) ** 2]


def test_operations_are_functions_in_all_but_type() -> None:
    assert hf.exp.__name__ == "exp" and hf.exp.__doc__ and "exp" in repr(hf.exp)
    assert pickle.loads(pickle.dumps(hf.nn.relu)) is hf.nn.relu
    assert copy.deepcopy(hf.exp) is hf.exp
    assert hash(hf.exp) == hash(hf.exp)
    x = _random(3)
    assert _bits(hf.function(hf.exp)(x)) == _bits(hf.exp(x))
    assert _bits(hf.function(lambda f, v: f(v))(hf.exp, x)) == _bits(hf.exp(x))
    with pytest.raises(TypeError, match="exp"):
        hf.exp(x, x)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected"):
        hf.exp(y=x)  # type: ignore[call-arg]

    class Layer:
        activation = hf.nn.relu

    assert _bits(Layer.activation(x)) == _bits(hf.nn.relu(x))


def test_many_tensors_have_no_plan() -> None:
    """Each of them would open its extents: compiling for some hundred takes minutes."""
    rows = [hf.asarray(np.array([k, -k], np.float32)) for k in range(300)]
    for _ in range(8):
        found = hf.stack(rows)
    assert hf.stack._dispatch == () and not hf.stack._tier_up
    np.testing.assert_array_equal(found.numpy(), np.stack([x.numpy() for x in rows]))
    for _ in range(8):
        few = hf.stack(rows[:3])
    assert _bits(few) == _bits(hf.asarray(np.stack([x.numpy() for x in rows[:3]])))


def test_a_loop_of_many_turns_outside_of_functions() -> None:
    x = np.linspace(0, 1, 500, dtype=np.float32)
    for _ in range(4):  # as often as plans are made for what comes again
        found = hf.scan(lambda s, r: s * 0.5 + r, hf.asarray(x), hf.zeros(()))
    expected, state = [], np.float32(0)
    for value in x:
        state = state * np.float32(0.5) + value
        expected.append(state)
    np.testing.assert_array_equal(found.numpy(), np.array(expected))


def test_unlike_shapes_are_errors_of_the_op_whether_native_code_answers_or_not():
    x = hf.ones((3,))
    for _ in range(2 * SINGLE_OPS.threshold):
        apply(TABLE["betainc"], x, x, x)
    for shapes in ([(3,), (3,), (2,)], [(3, 2), (2, 3), (3, 2)]):
        with pytest.raises(hf.errors.ShapeError, match="shapes differ"):
            apply(TABLE["betainc"], *map(hf.ones, shapes))
