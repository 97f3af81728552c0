"""``hf.linalg``: values against NumPy in float64, gradients against finite differences, eager against compiled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, flags
from hybridflow.compiler import target as targets
from hybridflow.compiler.batching import batch
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph, optimize
from hybridflow.eager import program_cache
from hybridflow.runtime.machine import host_target

pytestmark = pytest.mark.code

L = hf.linalg
RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(2, 4, 4))
SPD = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(4)
TALL = RNG.normal(size=(2, 5, 3))
SIDES = RNG.normal(size=(2, 4, 2))


class Case(NamedTuple):
    function: Callable[..., Any]
    at: np.ndarray
    symmetric: bool = False


def _turned(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(hf.matrix_transpose(x))


CASES = {
    "cholesky": Case(lambda x: L.cholesky(x), SPD, True),
    "cholesky upper": Case(lambda x: L.cholesky(x, upper=True), SPD, True),
    "inv": Case(lambda x: L.inv(x), SQUARE),
    "det": Case(lambda x: L.det(x), SQUARE),
    "slogdet": Case(lambda x: L.slogdet(x).logabsdet, SQUARE),
    "solve, matrix": Case(lambda x: L.solve(x, hf.asarray(SIDES)), SQUARE),
    "solve, sides": Case(lambda x: L.solve(hf.asarray(SQUARE), x), SIDES),
    "solve, one vector": Case(lambda x: L.solve(hf.asarray(SQUARE), x), SIDES[0, :, 0]),
    "triangle": Case(lambda x: L.triangular_solve(x, hf.asarray(SIDES)), SPD),
    "upper triangle": Case(lambda x: L.triangular_solve(x, hf.asarray(SIDES), lower=False, transpose=True), SPD),
    "triangle, sides": Case(lambda x: L.triangular_solve(hf.asarray(SPD), x, transpose=True), SIDES),
    "pinv": Case(lambda x: L.pinv(x), TALL),
    "pinv, wide": Case(_turned(lambda x: L.pinv(x)), TALL),
    "qr": Case(lambda x: L.qr(x).Q @ hf.asarray(SQUARE[0, :3]) + hf.sum(L.qr(x).R), TALL),
    "qr, wide, Q": Case(_turned(lambda x: L.qr(x).Q), TALL),
    "qr, wide, R": Case(_turned(lambda x: L.qr(x).R), TALL),
    "qr, complete": Case(lambda x: L.qr(x, mode="complete").Q, SQUARE),
    "svd, S": Case(lambda x: L.svd(x, full_matrices=False).S, TALL),
    "svd, U": Case(lambda x: L.svd(x, full_matrices=False).U, TALL),
    "svd, Vh": Case(lambda x: L.svd(x, full_matrices=False).Vh, TALL),
    "svd, wide, U": Case(_turned(lambda x: L.svd(x, full_matrices=False).U), TALL),
    "svd, wide, Vh": Case(_turned(lambda x: L.svd(x, full_matrices=False).Vh), TALL),
    "svd, square": Case(lambda x: L.svd(x).U, SQUARE),
    "svdvals": Case(lambda x: L.svdvals(x), TALL),
    "eigh, values": Case(lambda x: L.eigh(x).eigenvalues, SPD, True),
    "eigh, vectors": Case(lambda x: L.eigh(x).eigenvectors, SPD, True),
    "eigvalsh": Case(lambda x: L.eigvalsh(x), SPD, True),
    "nuclear norm": Case(lambda x: L.matrix_norm(x, ord="nuc"), TALL),
    "norm": Case(lambda x: L.vector_norm(x), TALL),
    "norm 3": Case(lambda x: L.vector_norm(x, axis=1, ord=3), TALL),
    "cross": Case(lambda x: L.cross(x, hf.asarray(TALL[::-1].copy())), TALL),
    "power": Case(lambda x: L.matrix_power(x, -3), SQUARE),
}


def _differences(case: Case, g: np.ndarray) -> np.ndarray:
    """The gradient, of the symmetric part where that is all the function looks at."""
    out, step = np.zeros_like(case.at), 1e-6
    for index in np.ndindex(case.at.shape):
        d = np.zeros_like(case.at)
        d[index] = step
        if case.symmetric:
            d = (d + d.swapaxes(-1, -2)) / 2
        high, low = (np.asarray(case.function(hf.asarray(case.at + s * d))) for s in (1, -1))
        out[index] = ((high - low) * g).sum() / (2 * step)
    return out


def bits(x: Any) -> bytes:
    array = np.asarray(x)
    return array.tobytes() + str((array.dtype, array.shape)).encode()


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_compiled_functions(name: str) -> None:
    case = CASES[name]
    x, compiled = hf.asarray(case.at), hf.function(case.function)
    g = RNG.normal(size=case.function(x).shape)
    found = []
    for function in (case.function, compiled):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        found.append((y, tape.gradient(y, x, hf.asarray(g))))
    np.testing.assert_allclose(found[0][1], _differences(case, g), rtol=1e-5, atol=1e-6)
    assert [*map(bits, found[0])] == [*map(bits, found[1])]
    assert bits(compiled(x)) == bits(found[0][0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(dtype: str) -> None:
    a, s, t, y = (x.astype(dtype) for x in (SQUARE, SPD, TALL, SIDES))
    close = {"rtol": 1e-4 if dtype == "float32" else 1e-12, "atol": 1e-4 if dtype == "float32" else 1e-12}

    def same(found: Any, expected: Any) -> None:
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, **close)

    same(L.cholesky(s), np.linalg.cholesky(s))
    same(L.cholesky(s, upper=True), np.linalg.cholesky(s, upper=True))
    same(L.inv(a), np.linalg.inv(a))
    same(L.pinv(t), np.linalg.pinv(t))
    same(L.pinv(t, rtol=0.9), np.linalg.pinv(t, rcond=0.9))
    same(L.det(a), np.linalg.det(a))
    same(L.solve(a, y), np.linalg.solve(a, y))
    same(L.triangular_solve(s, y), np.linalg.solve(np.tril(s), y))
    same(L.triangular_solve(s, y, lower=False, transpose=True), np.linalg.solve(np.triu(s).swapaxes(-1, -2), y))
    for found, expected in (
        (L.qr(t), np.linalg.qr(t)),
        (L.qr(t, mode="complete"), np.linalg.qr(t, mode="complete")),
        (L.svd(t), np.linalg.svd(t)),
        (L.svd(t, full_matrices=False), np.linalg.svd(t, full_matrices=False)),
        (L.eigh(s), np.linalg.eigh(s)),
        (L.slogdet(a), np.linalg.slogdet(a)),
    ):
        assert found._fields == expected._fields
        for one, other in zip(found, expected):
            same(one, other)
    same(L.qr(t, mode="r"), np.linalg.qr(t, mode="r"))
    lower, upper = L.lu(t, permute_l=True)
    same(lower @ upper, t)
    same(L.svdvals(t), np.linalg.svdvals(t))
    same(L.eigvalsh(s), np.linalg.eigvalsh(s))
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keepdims in (False, True):
            expected = np.linalg.matrix_norm(t, ord=order, keepdims=keepdims)
            same(L.matrix_norm(t, ord=order, keepdims=keepdims), expected)
    for order in (2, 1, 0, 3, 0.5, np.inf, -np.inf, -2):
        for axis in (None, 0, (1, 2)):
            same(L.vector_norm(t, ord=order, axis=axis), np.linalg.vector_norm(t, ord=order, axis=axis))
    for n in (-2, 0, 1, 5):
        same(L.matrix_power(a, n), np.linalg.matrix_power(a, n))
    same(L.cross(t, t[..., ::-1]), np.linalg.cross(t, t[..., ::-1]))


def test_large_triangles_go_by_blocks() -> None:
    a, y = RNG.normal(size=(70, 70)) + 20 * np.eye(70), RNG.normal(size=(70, 3))
    for lower in (True, False):
        for transpose in (True, False):
            triangle = np.tril(a) if lower else np.triu(a)
            expected = np.linalg.solve(triangle.T if transpose else triangle, y)
            np.testing.assert_allclose(L.triangular_solve(a, y, lower=lower, transpose=transpose), expected, rtol=1e-10)


def test_ranks_and_singular_matrices() -> None:
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert L.matrix_rank(singular).item() == 1 and L.matrix_rank(np.zeros((3, 2))).item() == 0
    assert L.matrix_rank(np.stack([singular, np.eye(2)])).tolist() == [1, 2]
    assert L.matrix_rank(np.diag([1.0, 0.1]), rtol=0.5).item() == 1
    assert L.slogdet(np.zeros((2, 2))).sign.item() == 0
    x = hf.asarray(singular)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = L.det(x)
    np.testing.assert_allclose(tape.gradient(y, x), [[4, -2], [-2, 1]], atol=1e-12)  # the cofactors
    for function in (L.inv, lambda x: L.solve(x, x), lambda x: L.triangular_solve(hf.zeros_like(x), x)):
        for run in (function, hf.function(function)):
            with pytest.raises(
                np.linalg.LinAlgError, match=r"there is no result for f64\[2,2\].*test_linalg"
            ) as caught:
                run(x)
            assert isinstance(caught.value, errors.LinAlgError) and L.LinAlgError is errors.LinAlgError
    for run in (L.cholesky, hf.function(lambda x: L.cholesky(x))):
        with pytest.raises(errors.LinAlgError, match="positive definite"):
            run(-x)


def test_errors_come_in_program_order_and_leave_variables_alone() -> None:
    v = hf.Variable(np.ones((2, 2)))

    @hf.function
    def first_the_matrix(x: Any, i: Any) -> Any:
        v.assign_add(x)
        return L.inv(x), hf.take(x, i, axis=0)

    @hf.function
    def first_the_index(x: Any, i: Any) -> Any:
        v.assign_add(x)
        return hf.take(x, i, axis=0), L.inv(x)

    x, i = hf.zeros((2, 2), dtype=hf.float64), hf.asarray([5])
    with pytest.raises(errors.LinAlgError):
        first_the_matrix(x, i)
    with pytest.raises(errors.IndexRangeError):
        first_the_index(x, i)
    assert v.numpy().tolist() == [[1, 1], [1, 1]]


def test_second_derivatives() -> None:
    x = hf.asarray(SPD[0])
    for function in (
        L.inv,
        L.det,
        lambda x: L.slogdet(x).logabsdet,
        L.cholesky,
        lambda x: L.pinv(x[:, :2]),
        L.eigvalsh,
    ):
        for run in (function, hf.function(function)):

            def slope(at: Any, run: Any = run) -> Any:
                with hf.GradientTape() as inner:
                    inner.watch(at)
                    y = hf.sum(hf.square(run(at)))
                return inner.gradient(y, at)

            with hf.GradientTape() as outer:
                outer.watch(x)
                total = hf.sum(slope(x) * hf.asarray(SQUARE[1]))
            d = (SQUARE[0] + SQUARE[0].T) / 2
            high, low = (np.sum(slope(hf.asarray(SPD[0] + s * 1e-5 * d)).numpy() * SQUARE[1]) for s in (1, -1))
            found = np.sum(outer.gradient(total, x).numpy() * d)
            np.testing.assert_allclose(found, (high - low) / 2e-5, rtol=1e-4, atol=1e-4)


def _along(a: np.ndarray, *directions: np.ndarray) -> float:
    """The derivative of the determinant along several matrices, exactly: each takes the place of a row in turn."""

    def determinant(rows: list[list[Fraction]]) -> Fraction:
        total = Fraction(0)
        for order in itertools.permutations(range(len(rows))):
            odd = sum(i > j for i, j in itertools.combinations(order, 2)) % 2
            total += math.prod((row[k] for row, k in zip(rows, order)), start=Fraction(-1 if odd else 1))
        return total

    exact = [[[Fraction(float(x)) for x in row] for row in m] for m in (a, *directions)]
    total = Fraction(0)
    for places in itertools.permutations(range(len(a)), len(directions)):
        rows = list(exact[0])
        for place, m in zip(places, exact[1:]):
            rows[place] = m[place]
        total += determinant(rows)
    return float(total)


def _reverse(f: Any, v: np.ndarray) -> Any:
    return lambda x: hf.sum(hf.grad(f)(x) * v)


def _forward(f: Any, v: np.ndarray) -> Any:
    return lambda x: hf.jvp(f, (x,), (hf.asarray(v),))[1]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_derivatives_of_determinants_of_all_ranks(n: int) -> None:
    """Of a polynomial, whatever the matrix is: also where there is no inverse, and hardly one."""
    rng = np.random.default_rng(n)
    for rank in range(n + 1):
        a = (rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, n))).astype(float)
        directions = [rng.integers(-3, 4, (n, n)).astype(float) for _ in range(3)]
        for at in (a, a + 1e-9 * rng.normal(size=(n, n))):
            x, (p, q, r) = hf.asarray(at), directions

            first, second, third = (_along(at, *directions[:k]) for k in (1, 2, 3))
            scale = 100.0 * np.abs(at).max() ** max(n - 2, 0) + 100.0
            ways = [
                (_reverse(L.det, p), first),
                (_reverse(_reverse(L.det, p), q), second),
                (_forward(_reverse(L.det, p), q), second),
                (_reverse(_forward(L.det, p), q), second),
                (_forward(_forward(L.det, p), q), second),
                (_reverse(_reverse(_reverse(L.det, p), q), r), third),
            ]
            for way, wanted in ways:
                np.testing.assert_allclose(way(x).numpy(), wanted, rtol=1e-12, atol=1e-13 * scale)
            if at is a:
                found = [way(x) for way, _ in (ways[1], ways[-1])]
                compiled = hf.function(lambda x: [way(x) for way, _ in (ways[1], ways[-1])])  # noqa: B023
                assert [*map(bits, compiled(x))] == [*map(bits, found)]


def test_second_derivatives_of_determinants_of_open_extents() -> None:
    compiled = hf.function(lambda x: hf.grad(lambda x: hf.sum(hf.grad(lambda x: hf.sum(L.det(x)))(x) ** 2))(x))
    for n in (2, 4, 3, 5, 1, 0):
        x = hf.asarray(np.tril(RNG.normal(size=(2, n, n)), -1) + np.eye(n))
        assert bits(compiled(x)) == bits(compiled.python_function(x))
    assert len(compiled.signatures()) < 5


def test_derivatives_where_values_are_equal() -> None:
    """Those that do not depend on how vectors of equal values turn: of symmetric functions of the values, of the polar
    factor, and of the largest value that is alone.  All others are finite."""

    def polar(x: Any) -> Any:
        u, _, vh = L.svd(x)
        return u @ vh

    def restored(x: Any) -> Any:
        u, s, vh = L.svd(x)
        return (u * s) @ vh

    functions = (polar, restored, L.svdvals, lambda x: L.eigvalsh(x + x.mT), lambda x: L.eigh(x + x.mT)[1])

    def seconds(x: Any) -> list[Any]:
        slopes = [hf.grad(lambda x, f=f: hf.sum(f(x) ** 2)) for f in functions]
        return [hf.grad(lambda x, slope=slope: hf.sum(slope(x) ** 2))(x) for slope in slopes]

    compiled = hf.function(seconds)
    several = ([1.0, 1.0, 1.0, 1.0], [3.0, 2.0, 2.0, 1.0], [2.0, 2.0, 1e-3, 1e-3], [1.0, 1.0, 0.0, 0.0])
    for seed, values in itertools.product(range(10), several):
        rng = np.random.default_rng(seed)
        basis, other = (np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2))
        weight = rng.normal(size=(4, 4))
        at = (basis * values) @ other
        x = hf.asarray(at)
        if values[-1]:
            found = hf.grad(lambda x: hf.sum(polar(x) * weight))(x).numpy()  # noqa: B023
            turns = basis.T @ weight @ other.T
            wanted = basis @ ((turns - turns.T) / np.add.outer(values, values)) @ other
            assert np.abs(found - wanted).max() <= 1e-9 * np.abs(wanted).max()
        np.testing.assert_allclose(hf.grad(lambda x: hf.sum(hf.square(restored(x))))(x).numpy(), 2 * at, atol=1e-12)
        eager = seconds(x)
        assert all(np.isfinite(found.numpy()).all() for found in eager)
        assert [*map(bits, compiled(x))] == [*map(bits, eager)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gap", [0, 4, 16, 50, 1e5])
def test_derivatives_where_values_are_nearly_equal(dtype: Any, gap: float) -> None:
    """Two values are ``gap`` rounding errors apart.  Rounding is not divided by that: derivatives of functions of the
    whole matrix are exact where the direction has its eigenvectors, and elsewhere wrong by no more than that what the
    two have in common is left out."""
    eps = float(np.finfo(dtype).eps)

    def of_values(x: Any, weight: Any) -> Any:
        w, v = L.eigh(x)
        return hf.sum(((v * hf.exp(w)) @ v.mT) * weight)

    def second(x: Any, weight: Any) -> Any:
        return hf.grad(lambda x: hf.sum(hf.grad(of_values)(x, np.eye(4, dtype=dtype)) * weight))(x)

    for seed in range(30):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        values = np.array([1.0, 2.0, 2.0 + gap * eps, 3.0])
        exact = (basis * values) @ basis.T
        x = hf.asarray(((exact + exact.T) / 2).astype(dtype))
        wanted = (basis * values * np.exp(values)) @ basis.T
        size = np.abs(wanted).max()
        assert np.abs(hf.grad(of_values)(x, x).numpy() - wanted).max() <= 100 * eps * size
        if gap <= 50:
            assert np.abs(second(x, x).numpy() - wanted).max() <= 2000 * eps * size
        weight = rng.normal(size=(4, 4))
        weight += weight.T
        quotients = np.subtract.outer(values, values)
        close = np.abs(quotients) < 0.5
        quotients = np.where(
            close, 0, np.subtract.outer(np.exp(values), np.exp(values)) / np.where(close, 1, quotients)
        )
        quotients = np.where(close, np.exp((values + values[:, None]) / 2), quotients)
        wanted = basis @ (quotients * (basis.T @ weight @ basis)) @ basis.T
        left_out = np.exp(2.0) * np.linalg.norm(weight)  # at most
        bound = left_out if gap < 20 else left_out * 10 / gap
        for function in (hf.grad(of_values), second) if gap <= 50 else (hf.grad(of_values),):
            error = function(x, weight.astype(dtype)).numpy() - wanted
            assert np.linalg.norm(error) <= bound + 100 * eps * np.linalg.norm(wanted), (seed, function)


def test_sizes_that_vary() -> None:
    functions = [
        lambda x: L.svd(x, full_matrices=False),
        lambda x: L.qr(x),
        lambda x: L.pinv(x),
        lambda x: L.matrix_rank(x),
        lambda x: L.solve(hf.matrix_transpose(x) @ x + hf.eye(x.shape[1], dtype=hf.float64), x[0]),
        lambda x: L.det(hf.matrix_transpose(x) @ x),
    ]
    for function in functions:
        compiled = hf.function(function)
        for m, n in ((4, 3), (5, 3), (6, 3), (2, 3), (3, 3), (7, 4), (5, 8), (1, 1)):
            x = hf.asarray(RNG.normal(size=(m, n)))
            found, expected = compiled(x), function(x)
            several = isinstance(expected, tuple)
            assert [*map(bits, found if several else [found])] == [*map(bits, expected if several else [expected])]


def test_empty_matrices() -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        x = hf.zeros(shape, dtype=hf.float64)
        for function, other in ((L.inv, np.linalg.inv), (L.det, np.linalg.det), (L.eigvalsh, np.linalg.eigvalsh)):
            for run in (function, hf.function(function)):
                np.testing.assert_array_equal(run(x), other(x.numpy()))
    assert L.matrix_rank(hf.zeros((2, 0, 3))).tolist() == [0, 0]
    assert L.svd(hf.zeros((0, 3)), full_matrices=False).U.shape == (0, 0)


def test_other_dtypes() -> None:
    assert L.inv(hf.asarray([[2, 0], [0, 4]])).dtype == hf.float32
    for dtype in (hf.float16, hf.bfloat16):
        found = L.solve(hf.asarray([[2, 0], [0, 4]], dtype=dtype), hf.ones(2, dtype=dtype))
        assert found.dtype == dtype and found.tolist() == [0.5, 0.25]


def test_bad_input() -> None:
    with pytest.raises(errors.ShapeError, match="square"):
        L.inv(hf.ones((2, 3)))
    with pytest.raises(errors.ShapeError, match="not a matrix"):
        L.svd(hf.ones(3))
    with pytest.raises(errors.ShapeError, match=r"has 3 rows. Expected 2"):
        L.solve(hf.ones((2, 2)), hf.ones((3, 1)))
    with pytest.raises(errors.ArgumentError, match="mode"):
        L.qr(hf.ones((2, 2)), mode="raw")
    with pytest.raises(errors.ArgumentError, match="ord"):
        L.matrix_norm(hf.ones((2, 2)), ord=3)
    with pytest.raises(errors.ShapeError, match="extent 3"):
        L.cross(hf.ones(2), hf.ones(2))
    with pytest.raises(errors.ShapeError, match="rtol"):
        L.pinv(hf.ones((2, 3)), rtol=hf.ones(2))
    with pytest.raises(errors.GradientError, match="full_matrices=False"):
        x = hf.ones((3, 2))
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = L.svd(x).U
        tape.gradient(y, x)


def _graph(symbolic: bool = False) -> Any:
    b = GraphBuilder(TABLE)
    n = Dim("n") if symbolic else 3
    x = b.parameter(TensorType((n, n), np.dtype(np.float64)))
    u, s, vt = b.results(b.svd(x, complete=False, rank=n))
    return b.finish([b.multiply(u, vt), b.exp(s)])


@pytest.mark.parametrize("symbolic", [False, True])
def test_graphs(symbolic: bool, tmp_path: Any) -> None:
    graph = _graph(symbolic)
    verify(graph)
    verify(optimize(graph))
    assert to_text(parse(to_text(graph), TABLE)) == to_text(graph)
    x = RNG.normal(size=(3, 3))
    u, _, vt = np.linalg.svd(x)
    outputs, _ = interpret(graph, [x])
    np.testing.assert_array_equal(outputs[0], u * vt)
    (batched, _), _ = interpret(batch(_graph(), {0}, 2), [np.stack([x, x.T])])
    np.testing.assert_array_equal(batched[0], u * vt)
    with flags.CACHE_DIR(str(tmp_path)), flags.VERIFY(0):
        for _ in range(2):  # compiled, then found on disk, where the function is a name
            program = program_cache.program_for(graph, host_target.target())
            assert [callback.function.name for callback in program.callbacks] == ["svd"]


def test_what_nobody_reads_may_still_raise() -> None:
    f = hf.function(lambda x: (L.inv(x), x)[1])
    with pytest.raises(errors.LinAlgError):
        f(hf.zeros((2, 2)))


def test_gpus_are_told() -> None:
    with pytest.raises(errors.CompileError, match=r"\[svd\] a GPU cannot call a function in Python"):
        compile_graph(_graph(), targets.CUDA_SM90)
