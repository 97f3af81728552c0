"""Inception and Xception.  Sources: Szegedy and others, "Rethinking the Inception Architecture for Computer Vision",
2015; Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", 2016."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request, documented
from hybridflow.core.type_aliases import Identifier
from hybridflow.layers.keras_tensor import Symbol

_HEAD = building.Head("avg_pool", None)


class _Numbered:
    """Layers that are numbered in the order in which they are made: ``conv2d``, ``conv2d_1`` and so on."""

    def __init__(self, **normalization: Any) -> None:
        self._numbers = itertools.count()
        self._normalization = normalization

    def normalized(self, x: Any, filters: int, size: Any, **options: Any) -> Any:
        """A convolution without a bias, normalised."""
        number = next(self._numbers)
        end = f"_{number}" if number else ""
        x = layers.Conv2D(filters, size, use_bias=False, name=f"conv2d{end}", **options)(x)
        return layers.BatchNormalization(name=f"batch_normalization{end}", **self._normalization)(x)

    def chain(self, x: Symbol, *parts: tuple[int, Any], **last: object) -> Any:
        """Convolutions one behind another; ``last`` are options of the last one."""
        for place, (filters, size) in enumerate(parts, 1):
            options = last if place == len(parts) else {}
            x = layers.Activation("relu")(self.normalized(x, filters, size, **{"padding": "same"} | options))
        return x


def _mean_around(x: object) -> Any:
    return layers.AveragePooling2D(3, strides=1, padding="same")(x)


def _mixed(parts: Sequence[Any], name: str | None) -> Any:
    return layers.Concatenate(name=name)(parts)


_HALVING = {"strides": 2, "padding": "valid"}


def _inception(request: Request) -> Any:
    begin = building.beginning(request, 299, 75)
    block = _Numbered(scale=False)
    x = block.chain(begin, (32, 3), **_HALVING)
    x = block.chain(x, (32, 3), padding="valid")
    x = layers.MaxPooling2D(3, strides=2)(block.chain(x, (64, 3)))
    x = block.chain(x, (80, 1), padding="valid")
    x = layers.MaxPooling2D(3, strides=2)(block.chain(x, (192, 3), padding="valid"))
    for number, width in enumerate((32, 64, 64)):
        parts = [
            block.chain(x, (64, 1)),
            block.chain(x, (48, 1), (64, 5)),
            block.chain(x, (64, 1), (96, 3), (96, 3)),
            block.chain(_mean_around(x), (width, 1)),
        ]
        x = _mixed(parts, f"mixed{number}")
    parts = [
        block.chain(x, (384, 3), **_HALVING),
        block.chain(x, (64, 1), (96, 3), (96, 3), **_HALVING),
        layers.MaxPooling2D(3, strides=2)(x),
    ]
    x = _mixed(parts, "mixed3")
    for number, width in enumerate((128, 160, 160, 192), 4):
        parts = [
            block.chain(x, (192, 1)),
            block.chain(x, (width, 1), (width, (1, 7)), (192, (7, 1))),
            block.chain(x, (width, 1), (width, (7, 1)), (width, (1, 7)), (width, (7, 1)), (192, (1, 7))),
            block.chain(_mean_around(x), (192, 1)),
        ]
        x = _mixed(parts, f"mixed{number}")
    parts = [
        block.chain(x, (192, 1), (320, 3), **_HALVING),
        block.chain(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), **_HALVING),
        layers.MaxPooling2D(3, strides=2)(x),
    ]
    x = _mixed(parts, "mixed8")
    for number in range(2):
        one = block.chain(x, (320, 1))
        three = block.chain(x, (384, 1))
        three = _mixed([block.chain(three, (384, (1, 3))), block.chain(three, (384, (3, 1)))], f"mixed9_{number}")
        five = block.chain(x, (448, 1), (384, 3))
        five = _mixed([block.chain(five, (384, (1, 3))), block.chain(five, (384, (3, 1)))], None)
        x = _mixed([one, three, five, block.chain(_mean_around(x), (192, 1))], f"mixed{9 + number}")
    end = building.classified(x, request, _HEAD) if request.include_top else _unnamed(x, request)
    whole = "inception_v3_weights_tf_dim_ordering_tf_kernels"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_notop.h5")


def _unnamed(x: object, request: Request) -> Any:
    return building.pooled(x, request, building.Head(None, None))


def _separable(x: object, filters: int, name: str) -> Any:
    x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False, name=name)(x)
    return layers.BatchNormalization(name=f"{name}_bn")(x)


def _relu(x: object, name: str) -> Any:
    return layers.Activation("relu", name=f"{name}_act")(x)


def _xception(request: Request) -> Any:
    begin = x = building.beginning(request, 299, 71)
    numbered = _Numbered()
    for number, filters, stride in ((1, 32, 2), (2, 64, 1)):
        name = f"block1_conv{number}"
        x = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=name)(x)
        x = _relu(layers.BatchNormalization(name=f"{name}_bn")(x), name)
    for block in range(2, 14):
        name = f"block{block}"
        widths = {2: (128, 128), 3: (256, 256), 4: (728, 728), 13: (728, 1024)}.get(block, (728, 728, 728))
        shrinks = len(widths) == 2
        around = numbered.normalized(x, widths[-1], 1, strides=2, padding="same") if shrinks else x
        for number, filters in enumerate(widths, 1):
            one = f"{name}_sepconv{number}"
            if (block, number) != (2, 1):
                x = _relu(x, one)
            x = _separable(x, filters, one)
        if shrinks:
            x = layers.MaxPooling2D(3, strides=2, padding="same", name=f"{name}_pool")(x)
        x = layers.Add()([x, around])
    for number, filters in ((1, 1536), (2, 2048)):
        name = f"block14_sepconv{number}"
        x = _relu(_separable(x, filters, name), name)
    end = building.classified(x, request, _HEAD) if request.include_top else _unnamed(x, request)
    whole = "xception_weights_tf_dim_ordering_tf_kernels"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_notop.h5")


@documented(2048)
def InceptionV3(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "inception_v3",
) -> Any:
    """Convolutions of several sizes side by side, for pictures of 299x299."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _inception(request)


@documented(2048)
def Xception(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "xception",
) -> Any:
    """Depthwise separable convolutions with residuals, for pictures of 299x299."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _xception(request)
