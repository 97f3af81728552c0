"""Layers of convolutions, pooling, padding, cropping and upsampling, against plain loops in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import layers
from tests.compiler.codegen.test_convolution import close, convolved, pooled

RNG = np.random.default_rng(6)


def drawn_apart(x: np.ndarray, f: np.ndarray, step: int, before: int, extents: tuple[int, ...]) -> np.ndarray:
    """Each element of x[n, *p, c] puts the kernel f[*k, o, c], times itself, ``step`` apart; cut to ``extents``."""
    axes = f.ndim - 2
    whole = np.zeros((len(x), *(p * step + max(f.shape) + max(extents) for p in x.shape[1:-1]), f.shape[-2]))
    for place in np.ndindex(x.shape[1:-1]):
        at = tuple(slice(p * step, p * step + k) for p, k in zip(place, f.shape))
        values = np.einsum("nc,...oc->n...o", x[(slice(None), *place)], f)
        whole[(slice(None), *at)] += values
    return whole[(slice(None), *(slice(before, before + n) for n in extents[:axes]))]


def weights(layer: Any) -> list[np.ndarray]:
    """Random weights, which the layer is given, in float64."""
    found = [RNG.standard_normal(w.shape).astype(np.float32) for w in layer.get_weights()]
    layer.set_weights(found)
    return [w.astype(np.float64) for w in found]


Case = tuple[Callable[..., Any], tuple[int, ...], Callable[..., np.ndarray]]

CASES: dict[str, Case] = {
    "conv1d": (
        lambda **o: layers.Conv1D(4, 3, 2, padding="same", **o),
        (2, 9, 3),
        lambda x, k, b: convolved(x, k, 2, (1,), (1,), 1, 1) + b,
    ),
    "conv1d causal": (
        lambda **o: layers.Conv1D(4, 3, padding="causal", dilation_rate=2, use_bias=False, **o),
        (2, 9, 3),
        lambda x, k: convolved(x, k, 1, (4,), (0,), 2, 1),
    ),
    "conv2d": (
        lambda **o: layers.Conv2D(6, (3, 2), activation="relu", groups=2, **o),
        (2, 6, 5, 4),
        lambda x, k, b: np.maximum(convolved(x, k, 1, (0, 0), (0, 0), 1, 2) + b, 0),
    ),
    "conv3d": (
        lambda **o: layers.Conv3D(2, 2, strides=2, **o),
        (1, 4, 5, 6, 2),
        lambda x, k, b: convolved(x, k, 2, (0, 0, 0), (0, 0, 0), 1, 1) + b,
    ),
    "transposed, valid": (
        lambda **o: layers.Conv2DTranspose(3, (3, 3), strides=2, **o),
        (2, 4, 3, 2),
        lambda x, k, b: drawn_apart(x, k, 2, 0, (9, 7)) + b,
    ),
    "transposed, same": (
        lambda **o: layers.Conv1DTranspose(3, 5, strides=2, padding="same", **o),
        (2, 4, 2),
        lambda x, k, b: drawn_apart(x, k, 2, 1, (8,)) + b,
    ),
    "transposed, padded": (
        lambda **o: layers.Conv1DTranspose(3, 3, strides=2, padding="same", output_padding=1, **o),
        (2, 4, 2),
        lambda x, k, b: drawn_apart(x, k, 2, 0, (8,)) + b,
    ),
    "transposed volumes": (
        lambda **o: layers.Conv3DTranspose(2, 2, strides=2, **o),
        (1, 2, 2, 3, 2),
        lambda x, k, b: drawn_apart(x, k, 2, 0, (4, 4, 6)) + b,
    ),
    "depthwise": (
        lambda **o: layers.DepthwiseConv1D(3, depth_multiplier=2, **o),
        (2, 6, 3),
        lambda x, k, b: convolved(x, k.reshape(3, 1, 6), 1, (0,), (0,), 1, 3) + b,
    ),
    "separable": (
        lambda **o: layers.SeparableConv2D(4, 3, padding="same", **o),
        (1, 4, 5, 3),
        lambda x, k, p, b: convolved(x, k.reshape(3, 3, 1, 3), 1, (1, 1), (1, 1), 1, 3) @ p[0, 0] + b,
    ),
    "max": (lambda **o: layers.MaxPooling2D(**o), (2, 5, 6, 3), lambda x: pooled(x, 2, 2, 0, 0)[0]),
    "average": (
        lambda **o: layers.AveragePooling2D(3, 1, "same", **o),
        (2, 5, 6, 3),
        lambda x: pooled(x, 3, 1, 1, 1)[2],
    ),
    "zeros": (
        lambda **o: layers.ZeroPadding2D((1, (0, 2)), **o),
        (2, 3, 4, 2),
        lambda x: np.pad(x, [(0, 0), (1, 1), (0, 2), (0, 0)]),
    ),
    "cropped": (lambda **o: layers.Cropping1D((1, 2), **o), (2, 6, 2), lambda x: x[:, 1:4]),
    "larger": (
        lambda **o: layers.UpSampling2D((2, 3), **o),
        (2, 3, 2, 2),
        lambda x: x.repeat(2, axis=1).repeat(3, axis=2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_layers(name: str) -> None:
    make, shape, reference = CASES[name]
    x = RNG.standard_normal(shape).astype(np.float32)
    layer = make()
    layer(x)
    own = weights(layer)
    expected = reference(x.astype(np.float64), *own)
    close(layer(x), expected)
    first = make(data_format="channels_first")
    first(np.moveaxis(x, -1, 1))
    first.set_weights(layer.get_weights())
    close(first(np.moveaxis(x, -1, 1)), np.moveaxis(expected, -1, 1))
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    again(x)
    assert [w.shape for w in again.get_weights()] == [w.shape for w in layer.get_weights()]


def test_a_small_network_learns() -> None:
    hf.random.set_seed(1)
    x = RNG.standard_normal((32, 8, 8, 1)).astype(np.float32)
    y = (x[:, 2:6, 2:6].mean(axis=(1, 2, 3)) > 0).astype(np.int64)
    model = hf.Sequential(
        [
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    optimizer = hf.optimizers.Adam(0.01)
    loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)

    @hf.function
    def step(x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            value = loss(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value

    values = [float(step(x, y)) for _ in range(40)]
    assert values[-1] < values[0] / 2


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: layers.Conv2D(0, 3), "filters is 0"),
    (lambda: layers.Conv2D(4, (3, 3, 3)), "kernel_size is"),
    (lambda: layers.Conv2D(4, 3, padding="causal"), "padding is 'causal'"),
    (lambda: layers.Conv2D(4, 3, data_format="NHWC"), "data_format is"),
    (lambda: layers.Conv2D(4, 3, groups=3), "4 filters"),
    (lambda: layers.Conv2D(4, 3, groups=2)(hf.ones((1, 4, 4, 3))), "3 channels"),
    (lambda: layers.Conv2D(4, 3)(hf.ones((4, 4, 3))), "4 axes"),
    (lambda: layers.Conv2D(4, 5)(hf.ones((1, 4, 4, 3))), "takes 5 elements"),
    (lambda: layers.Conv1DTranspose(4, 3, 2, output_padding=2), "less than the strides"),
    (lambda: layers.MaxPooling1D(2)(hf.ones((1, 4, 4, 3))), "3 axes"),
    (lambda: layers.Cropping1D(3)(hf.ones((1, 4, 3))), "fewer elements"),
    (lambda: layers.ZeroPadding2D(-1), "padding is -1"),
    (lambda: layers.UpSampling2D(2, interpolation="cubic"), "interpolation"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    call, text = ERRORS[number]
    with pytest.raises((hf.errors.ArgumentError, hf.errors.ShapeError), match=text):
        call()


@pytest.mark.parametrize("pooling", [layers.MaxPooling2D, layers.AveragePooling2D])
@pytest.mark.parametrize("shape", [(2, 0, 4, 3), (2, 4, 0, 3), (0, 4, 4, 3)])
def test_pooling_of_no_places(pooling: Any, shape: tuple[int, ...]) -> None:
    expected = (shape[0], shape[1] // 2, shape[2] // 2, 3)
    assert pooling()(hf.ones(shape)).shape == expected
    assert hf.function(pooling())(hf.ones(shape)).shape == expected
