"""Small matrices of ``hf.linalg``: bits by the twins of ``ops/small_linalg.py``, what is irregular by NumPy's
LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ops import small_linalg
from hybridflow.compiler.ops.small_linalg import MOST
from hybridflow.runtime.machine import host_target
from tests.support.jit_helper import runnable_targets

pytestmark = pytest.mark.code

L = hf.linalg
RNG = np.random.default_rng(5)
TARGETS = runnable_targets()


def _given(op: str, dtype: str, front: tuple[int, ...], n: int, m: int = 1) -> list[np.ndarray]:
    a = RNG.normal(size=(*front, n, n)).astype(dtype)
    if op == "cholesky":
        return [(a @ a.swapaxes(-1, -2) + np.eye(n)).astype(dtype)]
    return [a, RNG.normal(size=(*front, n, m)).astype(dtype)] if op == "solve" else [a]


def _same(found: Any, expected: np.ndarray) -> None:
    """Equal bits, where a NaN is a NaN."""
    found = np.asarray(found)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    canonical = [np.where(np.isnan(x), np.nan, x).tobytes() for x in (found, expected)]
    assert canonical[0] == canonical[1], (found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", small_linalg.OPS)
def test_bits_are_those_of_the_twin(op: str, dtype: str) -> None:
    function, twin, numpys = getattr(L, op), getattr(small_linalg, op), getattr(np.linalg, op)
    compiled = hf.function(function)
    for n, m, front in (
        (1, 1, (3,)), (2, 1, (17,)), (2, 5, (4,)), (3, 1, ()), (3, 2, (2, 9)), (4, 1, (1,)), (4, 4, (8,)), (5, 3, (7,)),
        (8, 1, (16,)), (11, 16, (3,)), (MOST, MOST, (5,)),
    ):  # fmt: skip
        given = _given(op, dtype, front, n, m)
        expected = twin(*given)
        np.testing.assert_allclose(expected, numpys(*given), rtol=0.02 if dtype == "float32" else 1e-8, atol=1e-3)
        for run in (function, compiled):
            for _ in range(2):
                _same(run(*map(hf.asarray, given)), expected)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_bits_are_those_of_any_machine(name: str) -> None:
    with host_target.use(TARGETS[name]):
        for op in small_linalg.OPS:
            for dtype in ("float32", "float64"):
                given = _given(op, dtype, (19,), 4, 2)
                for run in (getattr(L, op), hf.function(getattr(L, op))):
                    _same(run(*map(hf.asarray, given)), getattr(small_linalg, op)(*given))


@pytest.mark.parametrize("op", small_linalg.OPS)
def test_a_matrix_has_the_bits_that_it_has_in_a_stack(op: str) -> None:
    given = _given(op, "float32", (21,), 5, 2)
    function = getattr(L, op)
    stack = np.asarray(function(*map(hf.asarray, given)))
    alone = np.stack([np.asarray(function(*[hf.asarray(x[k]) for x in given])) for k in range(21)])
    _same(stack, alone)
    _same(hf.vmap(function)(*map(hf.asarray, given)), stack)
    _same(hf.function(lambda *x: hf.vmap(function)(*x))(*map(hf.asarray, given)), stack)


@pytest.mark.parametrize("op", small_linalg.OPS)
def test_strides_and_empty_stacks(op: str) -> None:
    function = getattr(L, op)
    given = _given(op, "float64", (10,), 3, 2)
    turned = [np.ascontiguousarray(x.swapaxes(-1, -2)) for x in given]
    for run in (function, hf.function(function)):
        _same(run(*[hf.asarray(x)[::2] for x in given]), getattr(small_linalg, op)(*[x[::2] for x in given]))
        _same(
            run(*[hf.matrix_transpose(hf.asarray(x)) for x in turned]),
            getattr(small_linalg, op)(*given),
        )
        for front, n in (((0,), 3), ((2, 0), 1), ((2,), 0)):
            empty = [np.zeros((*front, n, n)), *([np.zeros((*front, n, 1))] if op == "solve" else [])]
            _same(run(*map(hf.asarray, empty)), getattr(np.linalg, op)(*empty))
    nothing = np.zeros((2, 3, 0))
    _same(L.solve(hf.asarray(given[0][:2]), hf.asarray(nothing)), nothing)


@pytest.mark.parametrize("position", [0, 5, 8])
@pytest.mark.parametrize("compiles", [False, True])
def test_singular_matrices(compiles: bool, position: int) -> None:
    """Whichever lane they are in, and wherever elimination comes upon them."""
    singular = [
        np.zeros((3, 3)), np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]]), np.array([[0.0, 0, 1], [0, 0, 2], [0, 0, 3]]),
        np.diag([1.0, 1, 0]), np.diag([0.0, 1, 1]),
    ]  # fmt: skip
    for matrix in singular:
        a = _given("inv", "float64", (9,), 3)[0]
        a[position] = matrix
        y = np.ones((9, 3, 1))

        def run(function: Any, *given: np.ndarray) -> Any:
            called = hf.function(function) if compiles else function
            for _ in range(2):  # the second call of a compiled function is native
                called(*[hf.asarray(np.eye(3) + 0 * x) if x.shape[-1] == 3 else hf.asarray(x) for x in given])
            return called(*map(hf.asarray, given))

        for function, given in ((L.inv, (a,)), (L.solve, (a, y))):
            with pytest.raises(errors.LinAlgError, match="Singular"):
                run(function, *given)
        found = np.asarray(run(L.det, a))
        assert found[position] == 0
        _same(found[:position], small_linalg.det(a[:position]))
        spd = _given("cholesky", "float64", (9,), 3)[0]
        spd[position] = matrix
        with pytest.raises(errors.LinAlgError, match="positive definite"):
            run(L.cholesky, spd)


@pytest.mark.parametrize("compiles", [False, True])
def test_what_is_not_finite_is_as_with_numpy(compiles: bool) -> None:
    for dtype in ("float32", "float64"):
        for value in (np.nan, np.inf, -np.inf):
            for place in ((0, 0), (1, 2), (2, 1)):
                for op in ("solve", "inv", "det", "cholesky"):
                    given = _given(op, dtype, (6,), 3)
                    given[0][2][place] = value
                    function = hf.function(getattr(L, op)) if compiles else getattr(L, op)
                    try:
                        expected = getattr(np.linalg, op)(*[x[2] for x in given])
                    except np.linalg.LinAlgError:
                        with pytest.raises(errors.LinAlgError):
                            function(*map(hf.asarray, given))
                        continue
                    for _ in range(2):
                        found = np.asarray(function(*map(hf.asarray, given)))
                        np.testing.assert_array_equal(np.isnan(found[2]), np.isnan(expected))
                        _same(found[3:], getattr(small_linalg, op)(*[x[3:] for x in given]))


def test_determinants_at_the_ends_of_the_range() -> None:
    """A product of pivots may leave the range where the determinant does not."""
    for pivots in ([1e200, 1e200, 1e-200, 1e-200], [1e-200, 1e-200, 1e200, 1e200], [-1e200] * 4, [1e-100] * 4):
        a = np.stack([np.diag(pivots), np.diag([1.0, 2, 3, 4])])
        for run in (L.det, hf.function(L.det)):
            for _ in range(2):
                _same(run(hf.asarray(a)), np.array([np.linalg.det(a[0]), 24.0]))


def test_larger_matrices_are_lapacks() -> None:
    for n, m in ((MOST + 1, 1), (3, MOST + 1)):
        a, y = _given("solve", "float32", (4,), n, m)
        for run in (L.solve, hf.function(L.solve)):
            _same(run(hf.asarray(a), hf.asarray(y)), np.linalg.solve(a, y))


def test_sizes_that_vary() -> None:
    compiled = hf.function(lambda a, y: (L.solve(a, y), L.det(a)))
    for count, n, m in ((3, 2, 1), (4, 2, 1), (9, 2, 1), (5, 3, 1), (5, 4, 2), (6, 5, 3), (2, MOST + 1, 1), (2, 1, 1)):
        a, y = _given("solve", "float32", (count,), n, m)
        x, d = compiled(hf.asarray(a), hf.asarray(y))
        _same(x, np.asarray(L.solve(hf.asarray(a), hf.asarray(y))))
        _same(d, np.asarray(L.det(hf.asarray(a))))


def test_native_calls_go_to_python_for_irregular_matrices_alone() -> None:
    """And a call that raises leaves variables as they were."""
    total = hf.Variable(np.zeros((2, 2)))

    @hf.function
    def added(a: Any) -> Any:
        found = L.inv(a)
        total.assign_add(found)
        return L.det(a)

    regular, singular = hf.asarray(np.diag([2.0, 4.0])), hf.zeros((2, 2), dtype=hf.float64)
    for _ in range(4):
        assert added(regular).item() == 8
    with pytest.raises(errors.LinAlgError, match=r"test_small_matrices\.py"):
        added(singular)
    assert total.numpy().tolist() == [[2, 0], [0, 1]]
    assert added(regular).item() == 8
    assert total.numpy().tolist() == [[2.5, 0], [0, 1.25]]


def test_within_loops_and_branches() -> None:
    a, y = _given("solve", "float64", (3,), 4, 1)
    a += 4 * np.eye(4)

    def run(a: Any, y: Any, singular: Any) -> Any:
        _, found = hf.while_loop(lambda k, x: k < 3, lambda k, x: (k + 1, L.solve(a, x)), (0, y))
        return hf.cond(singular, lambda: L.solve(a * 0.0, found), lambda: found)

    compiled, yes, no = hf.function(run), hf.asarray(True), hf.asarray(False)
    a, y = hf.asarray(a), hf.asarray(y)
    for _ in range(3):
        _same(compiled(a, y, no), np.asarray(run(a, y, no)))
    with pytest.raises(errors.LinAlgError):
        compiled(a, y, yes)
    _same(compiled(a, y, no), np.asarray(run(a, y, no)))
