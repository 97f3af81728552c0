"""Tensors: making them, operators and promotion, leaving to Python and NumPy, immutability, what they look like."""

from __future__ import annotations

import copy
import operator
import pickle

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import tracing
from hybridflow.tracing.trace import Trace

pytestmark = pytest.mark.usefixtures("operators")

DTYPES = dtypes.REAL
_INT_ORDER = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


def documented_promotion(a, b):
    """The rule as the documentation has it, written independently of ``dtypes.promote``; None where it raises."""
    kind = {d: 0 if d == np.bool_ else 2 if dtypes.is_float(d) else 1 for d in (a, b)}
    if a == b:
        return a
    if kind[a] != kind[b]:
        return a if kind[a] > kind[b] else b
    if kind[a] == 2:
        if {a.itemsize, b.itemsize} == {2}:
            return np.dtype("float32")
        return max(a, b, key=lambda d: d.itemsize)
    # NumPy's integer rule, which goes to float64 exactly where we raise.
    found = np.promote_types(a, b)
    return found if found.kind in "iu" else None


@pytest.mark.parametrize("a", DTYPES, ids=str)
@pytest.mark.parametrize("b", DTYPES, ids=str)
def test_promotion_of_every_pair(a, b):
    x, y = hf.ones((2,), a), hf.ones((2,), b)
    expected = documented_promotion(a, b)
    if expected is None:
        with pytest.raises(errors.DTypeError, match="no integer dtype holds both"):
            x + y
        return
    assert hf.where(hf.asarray([True, False]), x, y).dtype == expected
    assert hf.equal(x, y).tolist() == [True, True]
    if expected != np.bool_:
        assert (x + y).dtype == expected
        assert (x + y).tolist() == [2, 2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("value", [True, 2, 0.5])
def test_python_scalars_are_weak(dtype, value):
    x = hf.ones((3,), dtype)
    if isinstance(value, bool):
        expected = dtype
    elif isinstance(value, int):
        expected = np.dtype("int64") if dtype == np.bool_ else dtype
    else:
        expected = dtype if dtypes.is_float(dtype) else np.dtype("float32")
    if expected == np.bool_:
        with pytest.raises(errors.DTypeError, match="bool"):
            x + value
    else:
        for out in (x + value, value + x):
            assert out.dtype == expected
            assert out.tolist() == [1 + value] * 3


def test_python_scalars_that_do_not_fit():
    x = hf.ones((2,), hf.int8)
    with pytest.raises(errors.ArgumentError, match=r"\[add\].*300 does not fit int8 \(-128 to 127\)"):
        x + 300
    with pytest.raises(errors.ArgumentError, match="-1 does not fit uint8"):
        hf.ones((2,), hf.uint8) * -1
    with pytest.raises(errors.ArgumentError, match="too large"):
        hf.ones((2,)) + 10**400
    assert (hf.ones((1,), hf.float16) * 1e6).tolist() == [np.inf]
    assert (hf.asarray([2**53 + 1], hf.int64) + 0).item() == 2**53 + 1
    assert (hf.zeros((), hf.float64) + 2**64).item() == 2.0**64


def test_numpy_arrays_keep_their_dtype():
    x = hf.ones((2, 3))
    array = np.arange(3.0)
    for out in (x + array, array + x, x * np.asarray(2.0)):
        assert isinstance(out, hf.Tensor) and out.dtype == np.float64
    assert (x + np.int8(1)).dtype == np.float32
    assert (array + x).shape == (2, 3)
    array[:] = 9
    y = hf.asarray(array)
    array[:] = 0
    assert y.tolist() == [9, 9, 9]


BINARY = [
    (operator.add, "fiu"),
    (operator.sub, "fiu"),
    (operator.mul, "fiu"),
    (operator.truediv, "f"),
    (operator.floordiv, "fi"),
    (operator.mod, "fi"),
    (operator.eq, "fiub"),
    (operator.ne, "fiub"),
    (operator.lt, "fiu"),
    (operator.le, "fiu"),
    (operator.gt, "fiu"),
    (operator.ge, "fiu"),
    (operator.and_, "iub"),
    (operator.or_, "iub"),
    (operator.xor, "iub"),
]


@pytest.mark.parametrize(
    "op, dtype",
    [
        (op, dtype)
        for op, kinds in BINARY
        for dtype in ("float32", "float64", "int32", "int64", "uint8", "bool")
        if np.dtype(dtype).kind in kinds
    ],
)
def test_operators_match_numpy(op, dtype):
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((4, 1, 3)) * 10).astype(dtype)
    b = np.where(rng.random((5, 3)) < 0.5, -3, 7).astype(dtype)
    if dtype.startswith("float"):
        a[0, 0] = [np.nan, np.inf, -0.0]
    with np.errstate(all="ignore"):
        expected = op(a, b)
    for out in (op(hf.asarray(a), hf.asarray(b)), op(hf.asarray(a), b), op(a, hf.asarray(b))):
        assert out.dtype == expected.dtype
        np.testing.assert_array_equal(out.numpy(), expected)
        if expected.dtype.kind == "f":
            real = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(out.numpy())[real], np.signbit(expected)[real])


SHORT_WAY = [
    *(op for op, _ in BINARY),
    hf.negative,
    hf.abs,
    hf.square,
    hf.bitwise_invert,
    hf.sqrt,
    hf.floor,
    hf.ceil,
    hf.trunc,
    hf.round,
    hf.isnan,
    hf.isinf,
    hf.isfinite,
]


@pytest.mark.parametrize("dtype", ["float16", hf.bfloat16, "float32", "float64", "int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("op", SHORT_WAY, ids=lambda op: op.__name__)
def test_the_short_way_of_operators_gives_the_same_bits(op, dtype):
    """Plain tensors may skip the op table; while a tape records, they do not."""
    values = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 6e-8, 3e38, 65000, 100, -100])
    x = hf.asarray(values).astype(dtype)
    if op in [b for b, _ in BINARY]:
        pairs = [(x[:, None], x), (hf.Variable(x), x)]
        pairs += [p for s in (2, -3, 0, 2**11 + 1, 2**30 + 1, 0.1, -0.0, 1e300, True) for p in ((x, s), (s, x))]
    else:
        pairs = [(x,)]

    def outcome(arguments):
        try:
            out = op(*arguments)
        except errors.HybridflowError as error:
            return type(error)
        found = out.numpy()
        return out.type, np.where(found != found, 0, found.astype(np.float64)).tobytes()

    for arguments in pairs:
        short = outcome(arguments)
        with hf.GradientTape():
            assert outcome(arguments) == short, arguments


def test_unary_operators_and_shifts():
    x = hf.asarray([-3, 0, 5])
    assert (-x).tolist() == [3, 0, -5]
    assert abs(x).tolist() == [3, 0, 5]
    assert (+x) is not x and (+x).tolist() == x.tolist()
    assert (~x).tolist() == [2, -1, -6]
    assert (x << 2).tolist() == [-12, 0, 20]
    assert (x >> 1).tolist() == [-2, 0, 2]
    assert (2 ** hf.asarray([1, 2, 3])).tolist() == [2, 4, 8]
    assert round(hf.asarray([0.5, 1.5, -2.5])).tolist() == [0, 2, -2]
    quotient, rest = divmod(x, 2)
    assert quotient.tolist() == [-2, 0, 2] and rest.tolist() == [1, 0, 1]
    assert (~hf.asarray([True, False])).tolist() == [False, True]


def test_errors_name_types_and_the_users_line():
    with pytest.raises(errors.ShapeError, match=r"\[add\].*f32\[2,3\] with f32\[4\].*\(test_tensor\.py:\d+\)"):
        hf.ones((2, 3)) + hf.ones((4,))
    with pytest.raises(errors.ShapeError, match=r"give the second operand a last axis with x\[\.\.\., None\]"):
        hf.ones((2, 3)) * hf.ones((2,))
    with pytest.raises(errors.DTypeError, match=r"\[bitwise_and\].*f32"):
        hf.ones((2,)) & hf.ones((2,))
    with pytest.raises(errors.ArgumentTypeError, match=r"\[add\] str is not a tensor"):
        hf.ones((2,)) + "a"
    with pytest.raises(ZeroDivisionError):
        hf.asarray([4]) // 0


# ---- making tensors


def test_defaults_of_python_values():
    assert hf.asarray(1).dtype == np.int64
    assert hf.asarray(1.0).dtype == np.float32
    assert hf.asarray(True).dtype == np.bool_
    assert hf.asarray([1, 2.5]).dtype == np.float32
    assert hf.asarray([True, 2]).dtype == np.int64
    assert hf.asarray([]).type == hf.zeros((0,)).type
    assert hf.asarray([[], []]).shape == (2, 0)
    assert hf.asarray(range(3)).tolist() == [0, 1, 2]
    assert hf.asarray([np.float64(1), 2]).dtype == np.float64
    assert hf.asarray(np.float16(1)).dtype == np.float16


@pytest.mark.parametrize("name", ["float32", "f32", np.float32, hf.float32, float])
def test_ways_to_name_a_dtype(name):
    assert hf.asarray([1, 2], dtype=name).dtype == np.float32


def test_dtypes_that_do_not_exist_here():
    with pytest.raises(errors.DTypeError, match=r"complex256|clongdouble"):
        hf.asarray(np.zeros(2, np.clongdouble))
    with pytest.raises(errors.DTypeError, match="object"):
        hf.asarray(np.array([None, 1]))
    with pytest.raises(errors.DTypeError, match="'float33' is not a dtype"):
        hf.zeros((2,), dtype="float33")


def test_ragged_lists_say_where():
    with pytest.raises(errors.ArgumentError, match=r"row 1 has 2 elements, row 0 has 3 elements"):
        hf.asarray([[1, 2, 3], [4, 5]])
    with pytest.raises(errors.ArgumentError, match=r"row 1 of \[1\] has 1 element, row 0 has 2 elements"):
        hf.constant([[[1, 2], [3, 4]], [[5, 6], [7]]])
    with pytest.raises(errors.ArgumentError, match="it is a scalar"):
        hf.asarray([[1], 2])
    with pytest.raises(errors.ArgumentError, match="300 does not fit uint8"):
        hf.asarray([1, 300], dtype=hf.uint8)
    with pytest.raises(errors.ArgumentError, match=r"1\.5 is not a whole number"):
        hf.asarray([1.5], dtype=hf.int32)


def test_lists_of_tensors_are_stacked():
    x, v = hf.asarray([1.0, 2.0]), hf.Variable([3.0, 4.0])
    out = hf.asarray([[x, v], [v, x]])
    assert out.shape == (2, 2, 2) and out[0, 1].tolist() == [3, 4]
    with hf.GradientTape() as tape:
        total = hf.sum(hf.asarray([v[0] * 2, v[1], 1.0]))
    assert tape.gradient(total, v).tolist() == [2, 1]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a.T,
        lambda a: a.astype(">f4"),
        lambda a: np.asfortranarray(a),
        lambda a: np.broadcast_to(a[0], a.shape),
        lambda a: a[:0],
        lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(np.float32).reshape(a.shape),
    ],
)
def test_any_numpy_layout(view):
    array = view(np.arange(12, dtype=np.float32).reshape(3, 4))
    x = hf.asarray(array)
    assert x.numpy().flags.c_contiguous and x.numpy().flags.aligned and x.dtype == np.float32
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal((x + x).numpy(), array + array)
    np.testing.assert_array_equal((x * array).numpy(), array * array)


def test_creation_functions():
    np.testing.assert_array_equal(hf.arange(5).numpy(), np.arange(5))
    np.testing.assert_array_equal(hf.arange(5, 0, -2).numpy(), np.arange(5, 0, -2))
    np.testing.assert_array_equal(hf.arange(0.0, 1.0, 0.25).numpy(), np.arange(0, 1, 0.25, dtype=np.float32))
    assert hf.arange(3, 1).shape == (0,) and hf.arange(0).dtype == np.int64 and hf.arange(2.0).dtype == np.float32
    np.testing.assert_array_equal(hf.linspace(0, 1, 7).numpy(), np.linspace(0, 1, 7).astype(np.float32))
    np.testing.assert_array_equal(
        hf.linspace(0, 1, 4, endpoint=False).numpy(), np.linspace(0, 1, 4, False, dtype=np.float32)
    )
    assert hf.linspace(0, 1, 1).tolist() == [0] and hf.linspace(2, 3, 0).shape == (0,)
    for shape, k in (((3, 3), 0), ((2, 4), 1), ((4, 2), -1), ((3, 3), 5)):
        np.testing.assert_array_equal(hf.eye(*shape, k=k).numpy(), np.eye(*shape, k=k))
    x = np.arange(24.0).reshape(2, 3, 4)
    for k in (-2, 0, 1, 9):
        np.testing.assert_array_equal(hf.tril(x, k).numpy(), np.tril(x, k))
        np.testing.assert_array_equal(hf.triu(x, k).numpy(), np.triu(x, k))
    for indexing in ("xy", "ij"):
        axes = ([1, 2], [3, 4, 5], [6])
        for ours, theirs in zip(hf.meshgrid(*axes, indexing=indexing), np.meshgrid(*axes, indexing=indexing)):
            np.testing.assert_array_equal(ours.numpy(), theirs)
    assert hf.full((2, 2), 7).dtype == np.int64 and hf.full((), 1.5).item() == 1.5
    assert hf.zeros_like(hf.ones((2,), hf.int8)).dtype == np.int8
    assert hf.ones_like(x, dtype=hf.float32).type == hf.ones(x.shape).type
    assert hf.constant(3.0, shape=(2, 2)).tolist() == [[3, 3], [3, 3]]
    assert hf.constant([1, 2, 3, 4], shape=(2, 2)).tolist() == [[1, 2], [3, 4]]
    assert hf.zeros(3).shape == (3,) and hf.zeros(np.array([2, 3])).shape == (2, 3)
    with pytest.raises(errors.ArgumentError, match="step is 0"):
        hf.arange(0, 5, 0)
    with pytest.raises(errors.ShapeError, match="negative extent -2"):
        hf.zeros((2, -2))
    with pytest.raises(errors.ArgumentTypeError, match=r"2\.5"):
        hf.zeros((2.5,))


def test_the_class_is_not_a_constructor():
    with pytest.raises(errors.ArgumentTypeError, match=r"hf\.asarray"):
        hf.Tensor([1])


def test_questions_about_dtypes():
    assert hf.result_type(hf.ones((2,), hf.int8), hf.int16, 3) == np.int16
    assert hf.result_type(hf.int8, 2.5) == np.float32 and hf.result_type(1, 2) == np.int64
    assert hf.result_type(np.zeros(1), hf.float32) == np.float64
    assert hf.can_cast(hf.int8, hf.int32) and hf.can_cast(hf.ones((1,), hf.bool), hf.int8)
    assert not hf.can_cast(hf.float64, hf.float32) and not hf.can_cast(hf.uint64, hf.int64)
    assert hf.isdtype(hf.bfloat16, "real floating") and hf.isdtype(hf.uint8, ("bool", "unsigned integer"))
    assert hf.isdtype(hf.int8, hf.int8) and not hf.isdtype(hf.bool, "numeric")
    assert hf.finfo(hf.float32).eps == 2.0**-23 and hf.finfo(hf.bfloat16).bits == 16
    assert hf.iinfo(hf.ones((1,), hf.uint8)).max == 255
    for call in (lambda: hf.result_type(), lambda: hf.isdtype(hf.int8, "int")):
        with pytest.raises(errors.ArgumentError):
            call()
    for call in (lambda: hf.finfo(hf.int8), lambda: hf.iinfo(hf.float32), lambda: hf.result_type(hf.uint64, hf.int8)):
        with pytest.raises(errors.DTypeError):
            call()


# ---- leaving


def test_numpy_views_are_read_only_and_share_memory():
    x = hf.ones((2,))
    view = x.numpy()
    assert np.shares_memory(view, x.numpy())
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5
    assert np.asarray(x) is not None and np.asarray(x, dtype=np.float64).dtype == np.float64
    changed = np.array(x)
    changed[0] = 5
    assert x.tolist() == [1, 1]
    with pytest.raises(errors.ArgumentError, match="without a copy"):
        np.asarray(x, dtype=np.float64, copy=False)


def test_scalars_leave_by_value():
    x = hf.asarray([[3.7]])
    assert (float(x), int(x), x.item(), bool(x)) == (float(np.float32(3.7)), 3, float(np.float32(3.7)), True)
    assert range(10)[hf.asarray(3)] == 3
    assert hf.asarray(2.5, dtype=hf.bfloat16).item() == 2.5
    with pytest.raises(errors.ShapeError, match=r"\[bool\] f32\[2\] has 2 elements"):
        bool(hf.ones((2,)))
    with pytest.raises(errors.ShapeError, match="has 0 elements"):
        bool(hf.ones((0,)))
    with pytest.raises(errors.DTypeError, match="not an integer"):
        operator.index(hf.asarray(1.0))
    with pytest.raises(TypeError, match="no length"):
        len(hf.asarray(1))
    with pytest.raises(TypeError, match="iterated"):
        list(hf.asarray(1))
    assert [row.tolist() for row in hf.asarray([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert 3 in hf.asarray([1, 3]) and 4 not in hf.asarray([1, 3])


def test_tensors_are_values_and_unhashable():
    x = hf.ones((2,))
    with pytest.raises(TypeError, match=r"id\(x\)"):
        hash(x)
    before = x
    x += 1
    assert before.tolist() == [1, 1] and x.tolist() == [2, 2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pickling_and_copying(dtype):
    x = hf.ones((2, 0, 3), dtype)
    y = pickle.loads(pickle.dumps(x))
    assert y.type == x.type
    x = hf.asarray(3, dtype=hf.int64).astype(dtype)
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.type == x.type and y.tolist() == x.tolist()


def test_dlpack_both_ways():
    x = hf.asarray([[1.0, 2.0]])
    array = np.from_dlpack(x)
    assert np.shares_memory(array, x.numpy()) and not array.flags.writeable
    source = np.arange(6.0).reshape(2, 3)
    y = hf.from_dlpack(source)
    assert np.shares_memory(source, y.numpy()) and y.dtype == np.float64
    assert not np.shares_memory(source, hf.from_dlpack(source, copy=True).numpy())
    assert hf.from_dlpack(source.T).tolist() == source.T.tolist()
    assert x.__dlpack_device__() == (1, 0)


def test_array_namespace_and_attributes():
    x = hf.ones((2, 3), hf.int16)
    assert x.__array_namespace__() is hf
    assert (x.ndim, x.size, x.device, x.shape, str(x.type)) == (2, 6, "cpu", (2, 3), "i16[2,3]")
    assert x.T.shape == (3, 2) and hf.ones((4, 2, 3)).mT.shape == (4, 3, 2)
    assert x.to_device("cpu").tolist() == x.tolist()
    assert x.reshape(3, 2).shape == x.reshape((3, -1)).shape == (3, 2)
    with pytest.raises(errors.DeviceError, match="cuda:7"):
        x.to_device("cuda:7")
    with pytest.raises(errors.ShapeError, match=r"x\.mT"):
        hf.ones((2, 2, 2)).T  # noqa: B018


def test_bfloat16_meets_numpy():
    array = np.array([1.5, np.nan, -0.0], ml_dtypes.bfloat16)
    x = hf.asarray(array)
    assert x.dtype == hf.bfloat16 and (x + x).dtype == hf.bfloat16
    assert (x + x).numpy()[0] == 3 and str(x.type) == "bf16[3]"
    assert "1.5" in repr(x)


# ---- looks


def test_repr():
    assert repr(hf.asarray(1.5)) == "<Tensor f32[] cpu> 1.5"
    assert repr(hf.asarray([1, 2])) == "<Tensor i64[2] cpu> [1 2]"
    assert repr(hf.asarray([[1.0, 2.0], [3.0, 4.0]])) == "<Tensor f32[2,2] cpu>\n[[1. 2.]\n [3. 4.]]"
    assert repr(hf.zeros((0, 3))) == "<Tensor f32[0,3] cpu>\n[]"
    values = np.arange(2000, dtype=np.float32)
    values[7] = np.nan
    text = repr(hf.asarray(values))
    assert text.startswith("<Tensor f32[2000] cpu> min=0 max=1999 mean=1000 nan=1\n") and "..." in text
    assert "true=1200 of 1200" in repr(hf.ones((1200,), hf.bool))
    assert "min=1 max=1 mean=1" in repr(hf.ones((1200,), hf.int8))


def test_format():
    assert f"{hf.asarray(3.14159):.2f}" == "3.14"
    assert f"{hf.asarray([7]):d}" == "7"
    assert f"{hf.asarray([1, 2])}" == "[1 2]"
    with pytest.raises(errors.ShapeError, match="has 2 elements"):
        f"{hf.asarray([1, 2]):.2f}"


# ---- symbolic tensors


def trace(body, *args):
    return hf.function(body)(*args)


@pytest.mark.parametrize(
    "body, remedy",
    [
        (lambda x: x.numpy(), "Return it"),
        (lambda x: np.asarray(x), "Return it"),
        (lambda x: x.item(), "Return it"),
        (lambda x: x.tolist(), "Return it"),
    ],
)
def test_a_traced_tensor_has_no_value(body, remedy):
    with pytest.raises(errors.TraceError, match=rf"{remedy}.*test_tensor\.py:\d+"):
        trace(body, hf.ones((3,)))


@pytest.mark.parametrize("body", [lambda x: x[x > 0], lambda x: hf.nonzero(x)])
def test_one_program_has_one_size(body):
    with pytest.raises(errors.TraceError, match=r"hf\.where.*test_tensor\.py:\d+"):
        hf.function(body).get_concrete_function(hf.ones((3,)))


def test_sizes_that_tensors_decide_are_refused_where_all_has_to_be_compiled():
    with pytest.raises(errors.ConcretizationError, match=r"Python argument.*test_tensor\.py:\d+"):
        hf.function(lambda x: operator.index(hf.astype(x[0], hf.int64)), strict=True)(hf.ones((3,)))
    with pytest.raises(errors.ConcretizationError, match=r"Python argument.*test_tensor\.py:\d+"):
        hf.function(lambda x: hf.zeros((hf.astype(x[0], hf.int64),))).get_concrete_function(hf.ones((3,)))


def test_repr_while_tracing_names_the_line():
    """To code that is not converted; in converted functions texts show the values, when there are."""
    shown = Trace("shown")
    with tracing(shown):
        x = shown.argument(hf.ones((2, 2)).type, "x")
        y = x @ x
        assert str(y) == f"{y}" == repr(y)
        text = repr(y)
    assert text.startswith("<sym f32[2,2] from test_tensor.py:") and text.endswith('"matmul">')


def test_a_leaked_tensor_says_so():
    kept = []
    trace(lambda x: kept.append(x + 1) or x, hf.ones((2,)))  # undone, and run eagerly
    assert kept.pop().tolist() == [2.0, 2.0] and not kept
    with pytest.raises(errors.TraceError, match="left in kept"):
        hf.function(lambda x: kept.append(x + 1) or x, strict=True)(hf.ones((2,)))
    assert not kept
    forgotten = Trace("leaky")
    with tracing(forgotten):
        kept.append(forgotten.argument(hf.ones((2,)).type, "x") + 1)
    with pytest.raises(errors.TraceError, match="has no value"):
        kept[0] * 2


@pytest.mark.parametrize("text", [",", "f4,(", "(1,)(", ") a,=", "8a|:uu", "float3", ""])
def test_texts_that_name_no_dtype(text):
    """NumPy raises errors of other kinds for some of them, as it reads them as code."""
    with pytest.raises(hf.errors.DTypeError, match="is not a dtype here"):
        hf.zeros(3, dtype=text)
