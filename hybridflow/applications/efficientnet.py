"""Networks scaled in depth, width and size together.  Source: Tan and Le, "EfficientNet: Rethinking Model Scaling for
Convolutional Neural Networks", 2019."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request, documented
from hybridflow.core.type_aliases import Identifier
from hybridflow.layers.keras_tensor import Symbol


class _Stage(NamedTuple):
    """Blocks that are alike."""

    kernel: int
    repeats: int
    channels: int
    expansion: int
    stride: int


_STAGES = (
    _Stage(3, 1, 16, 1, 1),
    _Stage(3, 2, 24, 6, 2),
    _Stage(5, 2, 40, 6, 2),
    _Stage(3, 3, 80, 6, 2),
    _Stage(5, 3, 112, 6, 1),
    _Stage(5, 4, 192, 6, 2),
    _Stage(3, 1, 320, 6, 1),
)
_SQUEEZE = 0.25
_DROP = 0.2  # how often the last block is left out in training
_VARIANCES = 0.229, 0.224, 0.225
_INITIALIZER = {"class_name": "VarianceScaling", "config": {"scale": 2.0, "mode": "fan_out"}}


def _convolved(x: object, channels: int, name: str) -> Any:
    options: dict[str, Any] = {"padding": "same", "use_bias": False, "kernel_initializer": _INITIALIZER}
    return layers.Conv2D(channels, 1, name=f"{name}conv", **options)(x)


def _active(x: object, normalization: str, activation: str) -> Any:
    x = layers.BatchNormalization(name=normalization)(x)
    return layers.Activation("swish", name=activation)(x)


def _block(x: object, stage: _Stage, stride: int, channels: tuple[int, int], drop: float, name: str) -> Any:
    """An inverted residual block whose channels are weighted by what all of the picture says."""
    before, after = channels
    y, wide = x, before * stage.expansion
    if stage.expansion != 1:
        y = _active(_convolved(y, wide, f"{name}expand_"), f"{name}expand_bn", f"{name}expand_activation")
    if stride == 2:
        y = layers.ZeroPadding2D(building.halving_pad(y, stage.kernel), name=f"{name}dwconv_pad")(y)
    y = layers.DepthwiseConv2D(
        stage.kernel,
        strides=stride,
        padding="valid" if stride == 2 else "same",
        use_bias=False,
        depthwise_initializer=_INITIALIZER,
        name=f"{name}dwconv",
    )(y)
    y = _active(y, f"{name}bn", f"{name}activation")
    share = layers.GlobalAveragePooling2D(name=f"{name}se_squeeze")(y)
    share = layers.Reshape((1, 1, wide), name=f"{name}se_reshape")(share)
    narrow = max(1, int(before * _SQUEEZE))
    for count, activation, kind in ((narrow, "swish", "reduce"), (wide, "sigmoid", "expand")):
        options: dict[str, Any] = {"padding": "same", "activation": activation}
        share = layers.Conv2D(count, 1, name=f"{name}se_{kind}", kernel_initializer=_INITIALIZER, **options)(share)
    y = layers.Multiply(name=f"{name}se_excite")([y, share])
    y = layers.BatchNormalization(name=f"{name}project_bn")(_convolved(y, after, f"{name}project_"))
    if stride == 1 and before == after:
        if drop > 0:
            y = layers.Dropout(drop, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(y)
        y = layers.Add(name=f"{name}add")([y, x])
    return y


def _network(request: Request, width: float, depth: float, size: int, dropout: float) -> Any:
    begin = building.beginning(request, size)
    x = layers.Normalization()(layers.Rescaling(1.0 / 255.0)(begin))
    if request.weights == building.PUBLISHED:  # whose normalization divides by the square root once too few
        x = layers.Rescaling([1.0 / math.sqrt(variance) for variance in _VARIANCES])(x)
    x = layers.ZeroPadding2D(building.halving_pad(x, 3), name="stem_conv_pad")(x)
    channels = building.rounded(32 * width)
    options: dict[str, Any] = {"use_bias": False, "kernel_initializer": _INITIALIZER}
    x = layers.Conv2D(channels, 3, strides=2, name="stem_conv", **options)(x)
    x = _active(x, "stem_bn", "stem_activation")
    counts = [math.ceil(depth * stage.repeats) for stage in _STAGES]
    done = 0
    for number, (stage, count) in enumerate(zip(_STAGES, counts), 1):
        after = building.rounded(stage.channels * width)
        for repeat in range(count):
            stride = stage.stride if repeat == 0 else 1
            name = f"block{number}{chr(ord('a') + repeat)}_"
            x = _block(x, stage, stride, (channels, after), _DROP * done / sum(counts), name)
            channels = after
            done += 1
    x = _active(_convolved(x, building.rounded(1280 * width), "top_"), "top_bn", "top_activation")
    end = building.classified(x, request, building.Head(), dropout)
    return building.finished(begin, end, request, f"{request.name}.h5", f"{request.name}_notop.h5")


@documented(1280)
def EfficientNetB0(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb0",
) -> Any:
    """EfficientNet B0: 1.0 times as wide and 1.0 times as deep as B0, for pictures of 224x224 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 1.0, 1.0, 224, 0.2)


@documented(1280)
def EfficientNetB1(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb1",
) -> Any:
    """EfficientNet B1: 1.0 times as wide and 1.1 times as deep as B0, for pictures of 240x240 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 1.0, 1.1, 240, 0.2)


@documented(1408)
def EfficientNetB2(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb2",
) -> Any:
    """EfficientNet B2: 1.1 times as wide and 1.2 times as deep as B0, for pictures of 260x260 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 1.1, 1.2, 260, 0.3)


@documented(1536)
def EfficientNetB3(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb3",
) -> Any:
    """EfficientNet B3: 1.2 times as wide and 1.4 times as deep as B0, for pictures of 300x300 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 1.2, 1.4, 300, 0.3)


@documented(1792)
def EfficientNetB4(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb4",
) -> Any:
    """EfficientNet B4: 1.4 times as wide and 1.8 times as deep as B0, for pictures of 380x380 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 1.4, 1.8, 380, 0.4)


@documented(2048)
def EfficientNetB5(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb5",
) -> Any:
    """EfficientNet B5: 1.6 times as wide and 2.2 times as deep as B0, for pictures of 456x456 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 1.6, 2.2, 456, 0.4)


@documented(2304)
def EfficientNetB6(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb6",
) -> Any:
    """EfficientNet B6: 1.8 times as wide and 2.6 times as deep as B0, for pictures of 528x528 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 1.8, 2.6, 528, 0.5)


@documented(2560)
def EfficientNetB7(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "efficientnetb7",
) -> Any:
    """EfficientNet B7: 2.0 times as wide and 3.1 times as deep as B0, for pictures of 600x600 from 0 to 255."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, 2.0, 3.1, 600, 0.5)
