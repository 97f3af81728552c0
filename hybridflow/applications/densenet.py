"""Densely connected networks.  Source: Huang, Liu, van der Maaten and Weinberger, "Densely Connected Convolutional
Networks", 2016."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request, documented
from hybridflow.core.type_aliases import Identifier
from hybridflow.layers.keras_tensor import Symbol

_GROWTH = 32
_EPSILON = 1.001e-5


def _active(x: object, normalization: str, activation: str) -> Any:
    x = layers.BatchNormalization(epsilon=_EPSILON, name=normalization)(x)
    return layers.Activation("relu", name=activation)(x)


def _block(x: object, name: str) -> Any:
    """Channels that are added to those that were there."""
    y = _active(x, f"{name}_0_bn", f"{name}_0_relu")
    y = layers.Conv2D(4 * _GROWTH, 1, use_bias=False, name=f"{name}_1_conv")(y)
    y = _active(y, f"{name}_1_bn", f"{name}_1_relu")
    y = layers.Conv2D(_GROWTH, 3, padding="same", use_bias=False, name=f"{name}_2_conv")(y)
    return layers.Concatenate(name=f"{name}_concat")([x, y])


def _halved(x: Symbol, name: str) -> Any:
    """Half the channels, in pictures of half the size."""
    x = _active(x, f"{name}_bn", f"{name}_relu")
    x = layers.Conv2D(x.shape[-1] // 2, 1, use_bias=False, name=f"{name}_conv")(x)
    return layers.AveragePooling2D(2, strides=2, name=f"{name}_pool")(x)


def _network(request: Request, counts: tuple[int, ...], file: str) -> Any:
    begin = building.beginning(request, 224)
    x = layers.ZeroPadding2D(3)(begin)
    x = layers.Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(x)
    x = layers.ZeroPadding2D(1)(_active(x, "conv1_bn", "conv1_relu"))
    x = layers.MaxPooling2D(3, strides=2, name="pool1")(x)
    for stage, count in enumerate(counts, 2):
        for number in range(1, count + 1):
            x = _block(x, f"conv{stage}_block{number}")
        if stage < 5:
            x = _halved(x, f"pool{stage}")
    end = building.classified(_active(x, "bn", "relu"), request, building.Head())
    whole = f"{file}_weights_tf_dim_ordering_tf_kernels"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_notop.h5")


@documented(1024)
def DenseNet121(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "densenet121",
) -> Any:
    """A densely connected network of 121 layers: each takes the results of all before it."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (6, 12, 24, 16), "densenet121")


@documented(1664)
def DenseNet169(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "densenet169",
) -> Any:
    """A densely connected network of 169 layers: each takes the results of all before it."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (6, 12, 32, 32), "densenet169")


@documented(1920)
def DenseNet201(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "densenet201",
) -> Any:
    """A densely connected network of 201 layers: each takes the results of all before it."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (6, 12, 48, 32), "densenet201")
