"""Convolutions of complex numbers, and roots of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf

RNG = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(7, 3), (3, 7), (1, 1), (5, 5)])
def test_sequences(name: str, mode: str, sizes: tuple[int, int]) -> None:
    x, y = (drawn(n) for n in sizes)
    found = getattr(hf, name)(x, y, mode)
    np.testing.assert_allclose(found.numpy(), getattr(np, name)(x, y, mode), rtol=1e-12, atol=1e-12)
    compiled = hf.function(lambda x, y: getattr(hf, name)(x, y, mode))(hf.asarray(x), hf.asarray(y))
    assert compiled.numpy().tobytes() == found.numpy().tobytes()
    mixed = getattr(hf, name)(x, np.real(y), mode)
    np.testing.assert_allclose(mixed.numpy(), getattr(np, name)(x, np.real(y), mode), rtol=1e-12, atol=1e-12)


def test_layers_of_channels_and_their_gradients() -> None:
    x, f = hf.asarray(drawn(2, 5, 6, 3)), hf.asarray(drawn(3, 2, 3, 4))

    def loss(x: Any, f: Any) -> Any:
        y = hf.nn.conv2d(x, f, strides=2, padding="SAME")
        return hf.sum(hf.real(y) * hf.cos(hf.reshape(hf.arange(y.size, dtype=hf.float64), y.shape)) - hf.imag(y))

    with hf.GradientTape() as tape:
        tape.watch(x)
        tape.watch(f)
        value = loss(x, f)
    found = tape.gradient(value, [x, f])
    for k, operand in enumerate((x, f)):
        along = drawn(*operand.shape)
        step = 1e-6
        moved = [loss(*(t + s * along if i == k else t for i, t in enumerate((x, f)))) for s in (step, -step)]
        wanted = (float(moved[0]) - float(moved[1])) / (2 * step)
        assert float(np.real(np.sum(np.conj(found[k].numpy()) * along))) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    "p", [[1.0, -3.0, 2.0], [0.0, 0.0, 2.0, 4.0], [1.0, 0.0, 0.0], [3.0], [], [0.0], [1.0, 1j, -2.0, 0.5]], ids=str
)
def test_roots(p: list[Any]) -> None:
    found = hf.roots(np.asarray(p))
    assert found.dtype == np.complex128 and found.shape == np.roots(p).shape
    near = np.abs(found.numpy()[:, None] - np.roots(p)[None, :])
    assert near.size == 0 or max(near.min(0).max(), near.min(1).max()) < 1e-7


def test_roots_in_functions_and_their_gradient() -> None:
    p = hf.asarray([1.0, -3.0, 2.0, 7.0], dtype=hf.float64)
    compiled = hf.function(hf.roots)(p)
    assert compiled.numpy().tobytes() == hf.roots(p).numpy().tobytes()

    def loss(p: Any) -> Any:
        return hf.sum(hf.abs(hf.roots(p)) ** 2)

    found = hf.grad(loss)(p).numpy()
    for k in range(4):
        moved = [float(loss(p + s * hf.asarray(np.eye(4)[k]))) for s in (1e-6, -1e-6)]
        assert found[k] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-6)
    with pytest.raises(hf.errors.LinAlgError):
        hf.function(hf.roots)(hf.asarray([0.0, 1.0, 2.0]))
    with pytest.raises(hf.errors.ShapeError):
        hf.roots([[1.0, 2.0]])
