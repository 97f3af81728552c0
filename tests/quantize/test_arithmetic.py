"""Quantized numbers against NumPy in float64, with what has no number of its own."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

SPECIAL = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e30, -1e30, np.inf, -np.inf, 126.6, -128.4], np.float32)
BOUNDS = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}


def expected(x: np.ndarray, scale: float, zero_point: int, dtype: str) -> np.ndarray:
    low, high = BOUNDS[dtype]
    return np.clip(np.rint(x.astype(np.float64) / scale) + zero_point, low, high)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("zero_point", [None, 3])
def test_numbers_are_the_nearest_and_clipped(dtype: str, zero_point: int | None) -> None:
    found = hf.quantize.quantize(SPECIAL, 0.5, zero_point, dtype=dtype)
    compiled = hf.function(lambda x: hf.quantize.quantize(x, 0.5, zero_point, dtype=dtype))(SPECIAL)
    np.testing.assert_array_equal(found.astype("int32").numpy(), expected(SPECIAL, 0.5, zero_point or 0, dtype))
    np.testing.assert_array_equal(found.astype("int32").numpy(), compiled.astype("int32").numpy())
    back = hf.quantize.dequantize(found, 0.5, zero_point)
    np.testing.assert_array_equal(
        back.numpy(), 0.5 * (expected(SPECIAL, 0.5, zero_point or 0, dtype) - (zero_point or 0))
    )
    fake = hf.quantize.fake_quantize(SPECIAL, 0.5, zero_point, dtype=dtype)
    np.testing.assert_array_equal(fake.numpy(), back.numpy())


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 3)])
def test_scales_along_an_axis(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    scale = np.array([0.1, 0.02, 3.0], np.float32)[: shape[1]]
    found = hf.quantize.quantize(x, scale, axis=-1)
    np.testing.assert_array_equal(found.numpy(), np.clip(np.rint(x / scale), -128, 127))
    np.testing.assert_allclose(hf.quantize.dequantize(found, scale, axis=1).numpy(), found.numpy() * scale)


def test_the_scale_of_the_largest_amount() -> None:
    x = np.array([[-2.54, 1.0], [0.0, -0.0]], np.float32)
    np.testing.assert_allclose(hf.quantize.find_scale(x, axis=1).numpy(), [[0.02], [1.0]], rtol=1e-6)
    np.testing.assert_allclose(hf.quantize.find_scale(x, dtype="int4").numpy(), [[2.54 / 7]], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_gradient_goes_straight_through_inside_of_the_range(compiled: bool) -> None:
    def gradient(x: hf.Tensor) -> hf.Tensor:
        return hf.grad(lambda x: hf.sum(hf.quantize.fake_quantize(x, 0.1, 5, dtype="uint8") * 3))(x)

    x = hf.asarray([-0.6, -0.4, 0.0, 1.234, 24.9, 25.2])
    found = (hf.function(gradient) if compiled else gradient)(x)
    np.testing.assert_array_equal(found.numpy(), np.float32([0, 3, 3, 3, 3, 0]))


def test_fake_quantization_of_narrow_floats_is_that_of_quantized_values() -> None:
    x = hf.asarray(np.random.default_rng(0).normal(size=200), dtype="bfloat16")
    back = hf.quantize.dequantize(hf.quantize.quantize(x, 0.013), 0.013, dtype="bfloat16")
    np.testing.assert_array_equal(hf.quantize.fake_quantize(x, 0.013).numpy(), back.numpy())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: hf.quantize.quantize([1.0], 0.1, dtype="int16"), errors.DTypeError),
        (lambda: hf.quantize.quantize([1], 0.1), errors.DTypeError),
        (lambda: hf.quantize.dequantize([1.0], 0.1), errors.DTypeError),
        (lambda: hf.quantize.quantize([[1.0, 2.0]], [0.1], axis=1), errors.ArgumentError),
        (lambda: hf.quantize.quantize([[1.0, 2.0]], [0.1, 0.1], axis=2), errors.ArgumentError),
        (lambda: hf.quantize.find_scale([1.0], axis=1), errors.AxisError),
        (lambda: hf.quantize.find_scale([1.0], dtype="uint8"), errors.DTypeError),
        (lambda: hf.quantize.quantize([1.0], 0.1, 3.7), errors.DTypeError),
        (lambda: hf.quantize.dequantize(np.array([2**40]), 1.0), errors.DTypeError),
        (lambda: hf.quantize.dequantize(np.array([3], np.int8), 1.0, dtype="int32"), errors.DTypeError),
    ],
)
def test_what_cannot_be(call: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()  # type: ignore[operator]
