"""Residual networks.  Source: He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", 2015; version 2:
"Identity Mappings in Deep Residual Networks", 2016."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request, documented
from hybridflow.core.type_aliases import Identifier
from hybridflow.layers.keras_tensor import Symbol

_EPSILON = 1.001e-5
_WIDTHS = 64, 128, 256, 512


def _normalized(x: object, name: str) -> Any:
    return layers.BatchNormalization(epsilon=_EPSILON, name=f"{name}_bn")(x)


def _active(x: object, name: str) -> Any:
    return layers.Activation("relu", name=f"{name}_relu")(_normalized(x, name))


def _block(x: object, width: int, stride: int, widens: bool, name: str) -> Any:
    """Three convolutions, normalised behind each, and a way around them."""
    around = x
    if widens:
        around = _normalized(layers.Conv2D(4 * width, 1, strides=stride, name=f"{name}_0_conv")(x), f"{name}_0")
    x = _active(layers.Conv2D(width, 1, strides=stride, name=f"{name}_1_conv")(x), f"{name}_1")
    x = _active(layers.Conv2D(width, 3, padding="same", name=f"{name}_2_conv")(x), f"{name}_2")
    x = _normalized(layers.Conv2D(4 * width, 1, name=f"{name}_3_conv")(x), f"{name}_3")
    x = layers.Add(name=f"{name}_add")([around, x])
    return layers.Activation("relu", name=f"{name}_out")(x)


def _block_v2(x: object, width: int, stride: int, widens: bool, name: str) -> Any:
    """Three convolutions, normalised before each."""
    before = _active(x, f"{name}_preact")
    if widens:
        around = layers.Conv2D(4 * width, 1, strides=stride, name=f"{name}_0_conv")(before)
    else:
        around = layers.MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
    y = _active(layers.Conv2D(width, 1, use_bias=False, name=f"{name}_1_conv")(before), f"{name}_1")
    y = layers.ZeroPadding2D(1, name=f"{name}_2_pad")(y)
    y = _active(layers.Conv2D(width, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")(y), f"{name}_2")
    y = layers.Conv2D(4 * width, 1, name=f"{name}_3_conv")(y)
    return layers.Add(name=f"{name}_out")([around, y])


def _stack(x: object, number: int, width: int, count: int) -> Any:
    for block in range(1, count + 1):
        stride = 2 if block == 1 and number > 2 else 1
        x = _block(x, width, stride, block == 1, f"conv{number}_block{block}")
    return x


def _stack_v2(x: object, number: int, width: int, count: int) -> Any:
    """The pictures become smaller in the last block, not in the first."""
    for block in range(1, count + 1):
        stride = 2 if block == count and number < 5 else 1
        x = _block_v2(x, width, stride, block == 1, f"conv{number}_block{block}")
    return x


def _network(request: Request, counts: tuple[int, ...], file: str, is_second: bool) -> Any:
    begin = building.beginning(request, 224)
    x = layers.ZeroPadding2D(3, name="conv1_pad")(begin)
    x = layers.Conv2D(64, 7, strides=2, name="conv1_conv")(x)
    if not is_second:
        x = _active(x, "conv1")
    x = layers.ZeroPadding2D(1, name="pool1_pad")(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    for number, (width, count) in enumerate(zip(_WIDTHS, counts), 2):
        x = (_stack_v2 if is_second else _stack)(x, number, width, count)
    if is_second:
        x = _active(x, "post")
    end = building.classified(x, request, building.Head())
    whole = f"{file}_weights_tf_dim_ordering_tf_kernels"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_notop.h5")


@documented(2048)
def ResNet50(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "resnet50",
) -> Any:
    """A residual network of 50 layers."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (3, 4, 6, 3), "resnet50", False)


@documented(2048)
def ResNet101(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "resnet101",
) -> Any:
    """A residual network of 101 layers."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (3, 4, 23, 3), "resnet101", False)


@documented(2048)
def ResNet152(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "resnet152",
) -> Any:
    """A residual network of 152 layers."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (3, 8, 36, 3), "resnet152", False)


@documented(2048)
def ResNet50V2(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "resnet50v2",
) -> Any:
    """A residual network of 50 layers, of the second kind: what is added is normalised before it is convolved."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (3, 4, 6, 3), "resnet50v2", True)


@documented(2048)
def ResNet101V2(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "resnet101v2",
) -> Any:
    """A residual network of 101 layers, of the second kind: what is added is normalised before it is convolved."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (3, 4, 23, 3), "resnet101v2", True)


@documented(2048)
def ResNet152V2(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "resnet152v2",
) -> Any:
    """A residual network of 152 layers, of the second kind: what is added is normalised before it is convolved."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (3, 8, 36, 3), "resnet152v2", True)
