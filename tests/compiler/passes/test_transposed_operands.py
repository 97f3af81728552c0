"""Products of transposes, called again and again: their plans read them where they lie, with the bits of copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.eager.public_op import operation
from hybridflow.runtime.calls.argument_specs import TensorArg
from tests.compiler.codegen.test_kernels import same_bits

TIMES = 12  # calls, the last of which plans answer
DTYPES = [np.int8, np.int32, np.float16, np.float32, np.float64]


def _values(dtype: type, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * 9).astype(dtype)


def _tensor(x: np.ndarray, order: str) -> hf.Tensor:
    """Of these values, which lie in rows ("C"), in columns ("F"), or with gaps ("A")."""
    if order == "F":
        return hf.permute_dims(hf.asarray(np.ascontiguousarray(x.T)))
    if order == "A":
        return hf.asarray(np.repeat(x, 2, axis=-1))[..., ::2]
    return hf.asarray(x)


def _called(function: Callable[..., Any], *arrays: np.ndarray, orders: tuple[str, ...]) -> list[np.ndarray]:
    return [function(*map(_tensor, arrays, orders)).numpy() for _ in range(TIMES)]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_products_have_the_bits_of_copies(dtype):
    for m, k, n in ((2, 2, 2), (5, 3, 4), (33, 70, 9), (1, 6, 4), (6, 1, 1), (4, 7, 1), (0, 3, 2), (2, 0, 3)):
        x, y = _values(dtype, m, k), _values(dtype, k, n)
        (want, *_) = _called(hf.matmul, x, y, orders=("C", "C"))
        for orders in (("F", "C"), ("C", "F"), ("F", "F"), ("C", "A"), ("A", "F"), ("C", "C")):
            for found in _called(hf.matmul, x, y, orders=orders):
                same_bits(found, want)
        v = _values(dtype, k)
        (want, *_) = _called(hf.matmul, x, v, orders=("C", "C"))
        for found in _called(hf.matmul, x, v, orders=("F", "C")):
            same_bits(found, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
def test_forms_that_alternate_are_told_apart(dtype):
    """Square matrices, of which only the way they lie says what is meant."""
    x = _values(dtype, 8, 8)
    tensor = hf.asarray(x)
    turned = hf.permute_dims(tensor)
    first = [(a @ b).numpy() for a in (tensor, turned) for b in (tensor, turned)]
    for _ in range(TIMES):
        again = [(a @ b).numpy() for a in (tensor, turned) for b in (tensor, turned)]
        for found, want in zip(again, first, strict=True):
            same_bits(found, want)
    same_bits(hf.matmul(x.T, x).numpy(), first[2])  # an array of NumPy's
    symmetric = (turned @ tensor).numpy()
    np.testing.assert_allclose(symmetric, x.T.astype(np.float64) @ x, rtol=1e-4)


def test_transposes_are_read_where_they_lie():
    x, y = _values(np.float32, 50, 40), _values(np.float32, 40, 30)
    matmul = operation(hf.matmul.__wrapped__)  # which has no plans yet

    def answered() -> int:
        """Calls by plans for a transpose and an array of rows."""
        turned = [(p, [a.transposed for a in p.arguments if isinstance(a, TensorArg)]) for p in matmul._dispatch]
        return sum(plan.calls for plan, of_arguments in turned if of_arguments == [True, False])

    _called(matmul, x, y, orders=("C", "C"))
    _called(matmul, x, y, orders=("F", "C"))
    before = answered()
    _called(matmul, x, y, orders=("F", "C"))
    assert answered() == before + TIMES


def test_others_are_copied_as_before():
    """What is read by more than a product has plans for copies, and a function without products one plan for both."""
    x = _values(np.float32, 30, 20)
    for function in (hf.nn.softmax, lambda x: hf.sum(x, axis=0), hf.exp, hf.linalg.vector_norm):
        (want, *_) = _called(function, x, orders=("C",))
        for order in ("F", "A"):
            for found in _called(function, x, orders=(order,)):
                same_bits(found, want)


def test_more_axes_than_two():
    x, y = _values(np.float32, 3, 4, 5), _values(np.float32, 3, 5, 6)
    (want, *_) = _called(hf.matmul, x, y, orders=("C", "C"))
    for orders in (("F", "C"), ("F", "F"), ("A", "F")):
        for found in _called(hf.matmul, x, y, orders=orders):
            same_bits(found, want)


def test_gradients_of_products_of_transposes():
    x, y = hf.asarray(_values(np.float32, 7, 5)), hf.asarray(_values(np.float32, 7, 3))
    for _ in range(TIMES):
        with hf.GradientTape() as tape:
            tape.watch([x, y])
            loss = hf.sum(hf.permute_dims(x) @ y)
        found = tape.gradient(loss, [x, y])
        np.testing.assert_allclose(found[0], np.tile(y.numpy().sum(1, keepdims=True), (1, 5)), rtol=1e-5)
        np.testing.assert_allclose(found[1], np.tile(x.numpy().sum(1, keepdims=True), (1, 3)), rtol=1e-5)


def test_shapes_that_do_not_fit_say_so():
    x = hf.permute_dims(hf.asarray(_values(np.float32, 5, 4)))
    for _ in range(TIMES):
        hf.matmul(x, hf.asarray(_values(np.float32, 5, 2)))
    with pytest.raises(hf.errors.ShapeError, match="inner sizes differ"):
        hf.matmul(x, hf.asarray(_values(np.float32, 4, 2)))
