"""Layers and functions that change the light and the colours of images: against TensorFlow's numbers and NumPy."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compat import tf
from hybridflow.errors import ArgumentError, ShapeError

IMAGE = np.array(
    [
        [[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [0.61, 0.73, 0.54]],
        [[0.94, 0.82, 0.0], [0.86, 0.03, 0.73], [0.18, 0.86, 0.54]],
    ],
    np.float32,
)


def test_hue_saturation_and_value_there_and_back():
    wanted = np.array([[colorsys.rgb_to_hsv(*map(float, pixel)) for pixel in row] for row in IMAGE])
    found = tf.image.rgb_to_hsv(IMAGE)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    np.testing.assert_allclose(tf.image.hsv_to_rgb(found), IMAGE, atol=1e-6)


def test_hue_and_saturation_as_tensorflow_has_them():
    # TensorFlow 2.21's results, of the last three pixels
    saturated = [0.94, 0.82, 0.0, 0.86, 0.0, 0.725301, 0.0, 0.86, 0.455294]
    turned = [0.0, 0.94, 0.632, 0.86, 0.824, 0.03, 0.404, 0.18, 0.86]
    back = [0.94, 0.0, 0.308, 0.03, 0.066, 0.86, 0.636, 0.86, 0.18]
    np.testing.assert_allclose(np.ravel(tf.image.adjust_saturation(IMAGE, 3))[9:], saturated, atol=2e-6)
    np.testing.assert_allclose(np.ravel(tf.image.adjust_hue(IMAGE, 0.3))[9:], turned, atol=2e-6)
    np.testing.assert_allclose(np.ravel(tf.image.adjust_hue(IMAGE, -0.2))[9:], back, atol=2e-6)
    bytes_ = tf.image.adjust_saturation((IMAGE * 255).astype(np.uint8), 0.5)
    assert np.ravel(bytes_).tolist()[6:12] == [170, 186, 161, 239, 224, 119]


def test_sobel_edges():
    x = np.arange(24, dtype=np.float32).reshape(1, 4, 6, 1) ** 1.5
    wide = np.pad(x[0, :, :, 0].astype(np.float64), 1, mode="reflect")
    kernel = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
    wanted = [
        [[np.sum(wide[i : i + 3, j : j + 3] * k) for k in (kernel, kernel.T)] for j in range(6)] for i in range(4)
    ]
    np.testing.assert_allclose(np.squeeze(tf.image.sobel_edges(x)), wanted, rtol=1e-5)


def test_stateless_changes_go_by_their_seed():
    for name, bounds in (
        ("brightness", (0.5,)),
        ("contrast", (0.1, 0.9)),
        ("saturation", (0.5, 2.0)),
        ("hue", (0.2,)),
        ("crop", ((1, 2, 3),)),
        ("flip_left_right", ()),
        ("flip_up_down", ()),
    ):
        change = getattr(tf.image, f"stateless_random_{name}")
        one, again = (np.asarray(change(IMAGE, *bounds, seed=(1, 2))) for _ in range(2))
        np.testing.assert_array_equal(one, again)
        assert any((np.asarray(change(IMAGE, *bounds, seed=(k, 0))) != one).any() for k in range(20)), name


def test_contrast_is_around_the_mean_of_each_channel():
    layer = hf.layers.RandomContrast((0.25, 0.5), value_range=(-10, 10), seed=3)
    x = np.stack([IMAGE, IMAGE * 2])
    out, middle = np.asarray(layer(x, training=True)), x.mean((1, 2), keepdims=True)
    factors = ((out - middle)[:, 1, 0, 0] / (x - middle)[:, 1, 0, 0]).tolist()
    assert all(0.75 <= factor <= 1.5 for factor in factors) and factors[0] != factors[1]
    wanted = (x - middle) * np.array(factors).reshape(2, 1, 1, 1) + middle
    np.testing.assert_allclose(out, wanted, atol=1e-5)


def test_brightness_stays_in_its_range():
    layer = hf.layers.RandomBrightness(0.9, value_range=(0, 1))
    out = np.asarray(layer(np.stack([IMAGE] * 16), training=True))
    assert out.min() == 0.0 and out.max() == 1.0
    np.testing.assert_array_equal(layer(IMAGE, training=False), IMAGE)
    again = hf.layers.RandomBrightness.from_config(layer.get_config())
    assert (again.factor, again.value_range) == (0.9, (0, 1))


def test_wrong_factors_are_named():
    with pytest.raises(ArgumentError, match="factor"):
        hf.layers.RandomContrast(1.5)
    with pytest.raises(ArgumentError, match="factor"):
        hf.layers.RandomBrightness(2)
    with pytest.raises(ArgumentError, match="value_range"):
        hf.layers.RandomBrightness(0.5, value_range=(1, 0))
    with pytest.raises(ShapeError):
        hf.layers.RandomContrast(0.5)(np.ones(3, np.float32))


def test_units_may_be_an_integer_of_numpy():
    assert hf.layers.Dense(np.asarray(3))(np.ones((1, 2), np.float32)).shape == (1, 3)
    for wrong in (0, True, 2.0):
        with pytest.raises(ArgumentError, match="positive integer"):
            hf.layers.Dense(wrong)
