"""Decompositions of complex matrices against NumPy's, eager and compiled, and their gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf

RNG = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def hermitian(x: Any) -> Any:
    return x @ hf.conj(hf.matrix_transpose(x)) + 2 * hf.eye(x.shape[-1], dtype=x.dtype)


def adjoint(x: Any) -> Any:
    return hf.conj(hf.matrix_transpose(x))


SQUARE, TALL, WIDE, SIDE = drawn(3, 3), drawn(4, 2), drawn(2, 4), drawn(3, 2)

# Functions of matrices whose values do not depend on the phases of vectors.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "cholesky": (lambda x: hf.linalg.cholesky(hermitian(x)), (SQUARE,)),
    "upper cholesky": (lambda x: hf.linalg.cholesky(hermitian(x), upper=True), (SQUARE,)),
    "cholesky_solve": (lambda x, y: hf.linalg.cholesky_solve(hf.linalg.cholesky(hermitian(x)), y), (SQUARE, SIDE)),
    "upper cholesky_solve": (
        lambda x, y: hf.linalg.cholesky_solve(hf.linalg.cholesky(hermitian(x), upper=True), y, upper=True),
        (SQUARE, SIDE),
    ),
    "solve": (hf.linalg.solve, (SQUARE, SIDE)),
    "triangular_solve": (hf.linalg.triangular_solve, (SQUARE, SIDE)),
    "inv": (hf.linalg.inv, (SQUARE,)),
    "det": (hf.linalg.det, (SQUARE,)),
    "slogdet": (hf.linalg.slogdet, (SQUARE,)),
    "lu": (lambda x: hf.linalg.lu(x)[1:], (SQUARE,)),
    "qr": (hf.linalg.qr, (SQUARE,)),
    "qr of tall": (hf.linalg.qr, (TALL,)),
    "qr of wide": (hf.linalg.qr, (WIDE,)),
    "svdvals": (hf.linalg.svdvals, (TALL,)),
    "svd": (lambda x: projections(*hf.linalg.svd(x)), (SQUARE,)),
    "svd of tall": (lambda x: projections(*hf.linalg.svd(x, full_matrices=False)), (TALL,)),
    "svd of wide": (lambda x: projections(*hf.linalg.svd(x, full_matrices=False)), (WIDE,)),
    "eigvalsh": (lambda x: hf.linalg.eigvalsh(hermitian(x)), (SQUARE,)),
    "eigh": (lambda x: projected(*hf.linalg.eigh(hermitian(x))), (SQUARE,)),
    "expm": (hf.linalg.expm, (SQUARE,)),
    "sqrtm": (hf.linalg.sqrtm, (SQUARE,)),
    "logm": (hf.linalg.logm, (SQUARE,)),
    "pinv": (hf.linalg.pinv, (TALL,)),
    "pinv of wide": (hf.linalg.pinv, (WIDE,)),
    "lstsq": (lambda x, y: tuple(hf.linalg.lstsq(x, y)[i] for i in (0, 1, 3)), (TALL, drawn(4, 2))),
    "lstsq of wide": (lambda x, y: hf.linalg.lstsq(x, y)[0], (WIDE, drawn(2, 3))),
}


def projected(w: Any, v: Any) -> Any:
    """What eigenvectors span, each with its own weight; and their values."""
    weights = hf.astype(hf.asarray([1.0, -2.0, 0.5], dtype=hf.float64)[: v.shape[-1]], v.dtype)
    return w, (v * weights) @ adjoint(v)


def projections(u: Any, s: Any, vh: Any) -> Any:
    count = s.shape[-1]
    weights = hf.astype(hf.asarray([1.0, -2.0, 0.5], dtype=hf.float64)[:count], u.dtype)
    u, vh = u[..., :count], vh[..., :count, :]
    return s, (u * weights) @ adjoint(u), (u * weights) @ vh, adjoint(vh) @ (hf.expand_dims(weights, axis=-1) * vh)


def parts(found: Any) -> list[Any]:
    found = found if isinstance(found, tuple) else (found,)
    return [x for one in found for x in ((hf.real(one), hf.imag(one)) if one.dtype == np.complex128 else (one,))]


def total(function: Callable[..., Any], *inputs: Any) -> Any:
    """A real number that depends on every part of every result."""
    result = hf.asarray(0.0, dtype=hf.float64)
    for k, x in enumerate(parts(function(*inputs))):
        weights = hf.reshape(hf.cos(hf.arange(x.size, dtype=hf.float64) * (k + 1.3)), x.shape)
        result = result + hf.sum(x * weights)
    return result


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_differences(name: str) -> None:
    function, arrays = PROGRAMS[name]
    inputs = [hf.asarray(a) for a in arrays]
    with hf.GradientTape() as tape:
        for x in inputs:
            tape.watch(x)
        y = total(function, *inputs)
    found = tape.gradient(y, inputs)
    for k, x in enumerate(arrays):
        along = drawn(*x.shape)
        step = 1e-6

        def moved(by: float, k: int = k, x: np.ndarray = x, along: np.ndarray = along) -> float:
            return float(total(function, *[hf.asarray(x + by * along) if i == k else t for i, t in enumerate(inputs)]))

        wanted = (moved(step) - moved(-step)) / (2 * step)
        got = float(np.real(np.sum(np.conj(found[k].numpy()) * along)))
        assert got == pytest.approx(wanted, rel=2e-6, abs=2e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_have_the_same_bits(name: str) -> None:
    function, arrays = PROGRAMS[name]
    inputs = [hf.asarray(a.astype(np.complex64)) for a in arrays]

    def program(*inputs: Any) -> Any:
        found = function(*inputs)
        return found if isinstance(found, tuple) else (found,)

    for got, wanted in zip(hf.function(program)(*inputs), program(*inputs)):
        assert got.dtype == wanted.dtype and got.numpy().tobytes() == wanted.numpy().tobytes()


@pytest.mark.parametrize("front", [(), (2,), (2, 3), (0,)])
def test_they_are_numpys(front: tuple[int, ...]) -> None:
    a, t, y = drawn(*front, 3, 3), drawn(*front, 4, 2), drawn(*front, 4, 1)
    h = a @ np.swapaxes(a, -1, -2).conj() + np.eye(3)

    def near(found: Any, wanted: np.ndarray) -> None:
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-11)

    near(hf.linalg.cholesky(h), np.linalg.cholesky(h))
    near(hf.linalg.eigvalsh(h), np.linalg.eigvalsh(h))
    near(hf.linalg.svdvals(t), np.linalg.svd(t, compute_uv=False))
    near(hf.linalg.pinv(t), np.linalg.pinv(t))
    for square in (a, h):
        near(hf.linalg.expm(hf.linalg.logm(square)), square)
        near(hf.linalg.sqrtm(square) @ hf.linalg.sqrtm(square), square)
    for found, wanted in zip(hf.linalg.slogdet(a), np.linalg.slogdet(a)):
        near(found, np.asarray(wanted))
    for complete in (True, False):
        u, s, vh = hf.linalg.svd(t, full_matrices=complete)
        assert u.dtype == vh.dtype == np.complex128 and s.dtype == np.float64
        near((u[..., :2] * hf.astype(hf.expand_dims(s, axis=-2), u.dtype)) @ vh, t)
    q, r = hf.linalg.qr(t)
    near(q @ r, t)
    near(adjoint(q) @ q, np.broadcast_to(np.eye(2, dtype=complex), (*front, 2, 2)))
    w, v = hf.linalg.eigh(h)
    near(v * hf.astype(hf.expand_dims(w, axis=-2), v.dtype) @ adjoint(v), h)
    p, lower, upper = hf.linalg.lu(t)
    near(p @ lower @ upper, t)
    assert hf.linalg.matrix_rank(t).dtype == np.int64
    solution, residuals, rank, values = hf.linalg.lstsq(t, y)
    near(solution, np.linalg.pinv(t) @ y)
    near(residuals, (np.abs(t @ (np.linalg.pinv(t) @ y) - y) ** 2).sum(-2))
    assert rank.dtype == np.int64 and values.dtype == np.float64


def test_roots_and_logarithms_of_negative_numbers() -> None:
    for x in (np.diag([-4.0, 1.0]) + 0j, np.array([[-4.0, 1.0], [0.0, -1.0]], complex)):
        root = hf.linalg.sqrtm(x)
        np.testing.assert_allclose((root @ root).numpy(), x, atol=1e-12)
        np.testing.assert_allclose(hf.linalg.expm(hf.linalg.logm(x)).numpy(), x, atol=1e-12)
    with pytest.raises(hf.errors.LinAlgError):
        hf.linalg.logm(np.zeros((2, 2), complex))


def test_what_has_no_result() -> None:
    with pytest.raises(hf.errors.LinAlgError):
        hf.linalg.cholesky(-np.eye(2) * (1 + 0j))
    with pytest.raises(hf.errors.LinAlgError):
        hf.linalg.solve(np.zeros((2, 2), complex), np.ones(2, complex))
    sign, size = hf.linalg.slogdet(np.zeros((2, 2), complex))
    assert complex(sign) == 0 and float(size) == -np.inf
