"""NumPy scalars are weak: next to a tensor they have no say in the dtype, wherever the tensor is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf

pytestmark = pytest.mark.code

SCALARS = [np.float64(2.5), np.float16(2.5), np.float32(2.5), np.int64(3), np.uint8(3), np.bool_(True)]
OF_TWO: list[Callable[[Any, Any], Any]] = [
    lambda x, s: x * s,
    lambda x, s: s - x,
    lambda x, s: x / s,
    lambda x, s: hf.maximum(s, x),
    lambda x, s: hf.where(x > s, x, s),
    lambda x, s: hf.clip(x, s, None),
    lambda x, s: hf.stack([x[0], s]),
    lambda x, s: hf.asarray([x[0], s]),
    lambda x, s: x % s,
    lambda x, s: hf.full_like(x, s),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_they_are_what_python_numbers_are(dtype: str, scalar: Any) -> None:
    x = hf.asarray([1.5, -2.0, 7.0], dtype=dtype)
    for form in OF_TWO:
        got, wanted = form(x, scalar), form(x, scalar.item())
        assert got.dtype == wanted.dtype == x.dtype
        assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()


def test_integers_and_bools() -> None:
    n, b = hf.asarray([1, 2], dtype=hf.int8), hf.asarray([True])
    assert (n + np.int64(3)).dtype == hf.int8
    assert (n * np.float64(0.5)).dtype == hf.float32
    assert (b + np.int8(1)).dtype == hf.int64
    assert (b * np.float64(1)).dtype == hf.float32
    assert (n + ml_dtypes.bfloat16(1)).dtype == hf.float32
    with pytest.raises(hf.errors.ArgumentError, match="does not fit int8"):
        n + np.int64(1000)
    assert (n + np.complex128(1)).dtype == hf.complex64


def test_alone_they_keep_their_dtype() -> None:
    s = np.float64(0.1)
    assert hf.asarray(s).dtype == hf.sin(s).dtype == hf.add(s, 1).dtype == hf.float64
    assert hf.asarray([s, 1.0]).dtype == hf.asarray([np.float32(1), s]).dtype == hf.float64
    assert hf.add(np.float16(1), 2.0).dtype == hf.float16
    assert hf.asarray(s).item() == s
    assert hf.asarray(ml_dtypes.bfloat16(1)).dtype == hf.bfloat16
    assert hf.result_type(s, 1) == hf.float64
    assert hf.result_type(s, hf.ones(2)) == hf.float32


def test_arrays_without_axes_are_not_scalars() -> None:
    assert (hf.ones(2) * np.asarray(2.0)).dtype == hf.float64
    assert hf.result_type(np.asarray(2.0), hf.ones(2)) == hf.float64


def test_in_traces() -> None:
    x = hf.asarray([1.5, -2.0])
    outside = np.sqrt(64.0)

    @hf.function
    def f(x: Any, s: Any) -> Any:
        return x / outside, x * s, x * (s * 2 + 1), x - (-s), hf.sqrt(s) * x

    for s in (np.float64(3.7), np.float32(0.1), np.int64(4)):
        for eager, compiled in zip(f.python_function(x, s), f(x, s)):
            assert eager.dtype == compiled.dtype
            assert np.asarray(eager).tobytes() == np.asarray(compiled).tobytes()
    assert all(part.dtype == hf.float32 for part in f(x, np.float32(1)))
    assert f(x, np.asarray(3.7))[1].dtype == hf.float64  # an array is told from a scalar
    assert f(x, hf.asarray(3.7, dtype=hf.float64))[1].dtype == hf.float64
    assert f(x, np.float64(3.7))[1].dtype == hf.float32
    assert "NumPy scalar float64" in str(f.retraces())


def test_gradients_and_variables() -> None:
    v = hf.Variable([1.0, 2.0])
    with hf.GradientTape() as tape:
        y = hf.sum(v * np.float64(3) / np.sqrt(4.0))
    assert y.dtype == hf.float32
    gradient = tape.gradient(y, v)
    assert gradient is not None and gradient.dtype == hf.float32 and np.asarray(gradient).tolist() == [1.5, 1.5]
    v.assign_sub(np.float64(0.5) * gradient)
    v.assign_add(np.float64(1))
    assert v.dtype == hf.float32 and np.asarray(v).tolist() == [1.25, 2.25]
    w = hf.Variable(1.0)
    w.assign(np.float64(0.1))
    assert w.dtype == hf.float32 and w.value().item() == np.float32(0.1)


def test_a_declared_dtype_takes_them() -> None:
    f = hf.function(lambda s: s * 2, input_signature=[hf.TensorSpec([], hf.float32)])
    assert f(np.float64(0.1)).dtype == hf.float32


def test_what_takes_them_takes_those_that_are_arguments() -> None:
    """Each function of a scalar and a tensor gives what it gives eagerly, dtype and bits."""
    x = hf.asarray([1.5, -2.0, 7.0])

    def changed(x: Any, s: Any) -> Any:
        x = +x
        x[1:] = s
        return x

    forms: list[Callable[[Any, Any], Any]] = [
        changed,
        lambda x, s: hf.full(3, s),
        lambda x, s: hf.full((2, 2), s, dtype=hf.float16),
        lambda x, s: hf.full_like(x, s),
        lambda x, s: hf.losses.mean_squared_error(s, 3),
        lambda x, s: hf.losses.sigmoid_cross_entropy(s, 1e10),
        lambda x, s: hf.nn.leaky_relu(s, 0.5) + x,
        lambda x, s: hf.where(s > 1, hf.asarray(s), 1.0),
        lambda x, s: (-s + abs(s)) * x,
        lambda x, s: hf.random.stateless_bernoulli(s * 0 + 0.5, (1, 2), (3,)),
    ]
    for form in forms:
        for s in (np.float64(2.5), np.float32(0.1), np.int64(4)):
            eager = form(x, s)
            for compiled in (hf.function(form)(x, s), *(form(x, s) for _ in range(6))):  # and the plans of functions
                assert compiled.dtype == eager.dtype
                assert np.asarray(compiled).tobytes() == np.asarray(eager).tobytes()


VALUES: list[Any] = [
    True,
    3,
    2.5,
    *(np.dtype(name).type(value) for name, value in (("bool", 1), ("uint8", 2), ("int64", 5))),
    *(np.dtype(name).type(1.5) for name in ("float16", "float32", "float64")),
    *(np.asarray(2, name) for name in ("int32", "float64")),
    hf.asarray(2.5),
    hf.asarray(2, dtype=hf.int16),
    hf.asarray([1.5, 2.0]),
    hf.asarray([1.5, 2.0], dtype=hf.bfloat16),
    hf.asarray([1, 2], dtype=hf.int8),
]
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt,
    operator.eq, operator.and_, operator.lshift,
]  # fmt: skip
FUNCTIONS = [
    hf.add, hf.divide, hf.remainder, hf.maximum, hf.less, hf.hypot, hf.bitwise_or, hf.isclose, np.add, np.maximum,
]  # fmt: skip


def left_to_numpy(op: Any, a: Any, b: Any) -> bool:
    """Whether NumPy or Python would compute by a rule of their own: NumPy makes scalars of arrays without axes, and
    adds bools as bools, which are errors here."""
    if op in FUNCTIONS[:-2] or any(isinstance(value, hf.Tensor) for value in (a, b)):
        return False
    kinds = [np.asarray(value).dtype.kind for value in (a, b)]
    numbers = not any(hasattr(value, "dtype") for value in (a, b))
    return numbers or kinds == ["b", "b"] or any(type(value) is np.ndarray for value in (a, b))


def described(found: Any) -> Any:
    if isinstance(found, str):
        return found
    return [(array.dtype, array.shape, array.tobytes()) for array in map(np.asarray, found)]


@pytest.mark.parametrize("op", [*OPERATORS, *FUNCTIONS], ids=lambda op: f"{type(op).__name__}-{op.__name__}")
def test_every_pair_has_one_dtype_eagerly_and_compiled(op: Any) -> None:
    """By itself, and next to tensors that show whether the result is weak."""
    small = hf.asarray([1, 2], dtype=hf.int16), hf.asarray([0.5], dtype=hf.float16)
    pairs = [(a, b) for a in range(len(VALUES)) for b in range(len(VALUES))]
    pairs = [(a, b) for a, b in pairs if not left_to_numpy(op, VALUES[a], VALUES[b])]

    def all_pairs(values: Any) -> Any:
        found: list[Any] = []
        for a, b in pairs:
            try:
                result = op(values[a], values[b])
                found.append([result, small[0] * result, small[1] + result])
            except (TypeError, ValueError, OverflowError):  # what is found when it runs is not caught in compiled code
                found.append("raises")
        return found

    with np.errstate(all="ignore"):
        eager = all_pairs(VALUES)
    for pair, wanted, found in zip(pairs, eager, hf.function(all_pairs)(VALUES), strict=True):
        assert described(found) == described(wanted), [VALUES[k] for k in pair]


def test_functions_make_tensors_of_scalars() -> None:
    s, x = np.float64(1.5), hf.ones(2)
    for run in (lambda f: f, hf.function):
        assert run(lambda s, x: hf.add(s, 2) * x)(s, x).dtype == hf.float64
        assert run(lambda s, x: (s + 2) * x)(s, x).dtype == hf.float32
        assert run(lambda s, x: np.sqrt(s) * x)(s, x).dtype == hf.float32
        assert run(lambda s, x: hf.sqrt(s) * x)(s, x).dtype == hf.float64
        assert run(lambda s, x: (s > 1) * hf.asarray(2, dtype=hf.int8) + ((s > 1) + 1))(s, x).dtype == hf.int8
        n = np.int64(7)
        assert run(lambda n: n / 3)(n).dtype == np.float64
        assert np.asarray(run(lambda n: n / 3)(n)) == np.float64(7) / 3
