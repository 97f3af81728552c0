"""Networks for telephones.  Sources: Howard and others, "MobileNets: Efficient Convolutional Neural Networks for Mobile
Vision Applications", 2017; Sandler and others, "MobileNetV2: Inverted Residuals and Linear Bottlenecks",
2018; Howard and others, "Searching for MobileNetV3", 2019."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request, documented, rounded
from hybridflow.core.type_aliases import Identifier
from hybridflow.errors import ArgumentError
from hybridflow.layers.keras_tensor import Symbol

_MOMENTUM = 0.999


def _normalized(x: object, name: str) -> Any:
    return layers.BatchNormalization(momentum=_MOMENTUM, name=name)(x)


def _convolved(x: Symbol, channels: int, name: str, size: int = 1, **options: Any) -> Any:
    return layers.Conv2D(channels, size, padding="same", use_bias=False, name=name, **options)(x)


def _by_channel(x: object, kernel: int, stride: int, pad: str, name: str) -> Any:
    """A convolution of each channel by itself."""
    if stride == 2:
        x = layers.ZeroPadding2D(building.halving_pad(x, kernel), name=pad)(x)
    padding = "valid" if stride == 2 else "same"
    return layers.DepthwiseConv2D(kernel, strides=stride, padding=padding, use_bias=False, name=name)(x)


# Version 1: channels and strides.
_PAIRS = (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)
_WIDTHS = {0.25: "2_5", 0.5: "5_0", 0.75: "7_5", 1.0: "1_0"}  # in the names of files


@documented(1024)
def MobileNet(
    input_shape: Sequence[int | None] | None = None,
    alpha: float = 1.0,
    depth_multiplier: int = 1,
    dropout: float = 1e-3,
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str | None = None,
) -> Any:
    """Convolutions of each channel by itself, and of all channels at each point, in turn."""
    request = Request(
        include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name or "mobilenet"
    )
    _check_width(request, alpha)
    begin = building.beginning(request, 224)
    rows = begin.shape[1] if begin.shape[1] in (128, 160, 192, 224) and begin.shape[1] == begin.shape[2] else 224
    if name is None:
        request = request._replace(name=f"mobilenet_{alpha:0.2f}_{begin.shape[1]}")
    building.warn_unusual(request, rows if begin.shape[1] is None else begin.shape[1])

    def active(x: Symbol, name: str) -> Any:
        return layers.ReLU(6.0, name=f"{name}_relu")(layers.BatchNormalization(name=f"{name}_bn")(x))

    x = active(_convolved(begin, int(32 * alpha), "conv1", 3, strides=2), "conv1")
    for number, (channels, stride) in enumerate(_PAIRS, 1):
        if stride == 2:
            x = layers.ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{number}")(x)
        one, padding = f"conv_dw_{number}", "valid" if stride == 2 else "same"
        options: dict[str, Any] = {"padding": padding, "depth_multiplier": depth_multiplier, "use_bias": False}
        x = active(layers.DepthwiseConv2D(3, strides=stride, name=one, **options)(x), one)
        x = active(_convolved(x, int(channels * alpha), f"conv_pw_{number}"), f"conv_pw_{number}")
    if include_top:
        x = layers.Dropout(dropout, name="dropout")(layers.GlobalAveragePooling2D(keepdims=True)(x))
        x = layers.Conv2D(classes, 1, padding="same", name="conv_preds")(x)
        x = layers.Reshape((classes,), name="reshape_2")(x)
        end = layers.Activation(classifier_activation or "linear", name="predictions")(x)
    else:
        end = building.pooled(x, request, building.Head(None, None))
    whole = f"mobilenet_{_WIDTHS.get(alpha, alpha)}_{rows}_tf"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_no_top.h5")


# Version 2: channels, blocks and the stride of the first of them.
_STAGES = (16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)


def _block_v2(x: Symbol, channels: int, stride: int, number: int) -> Any:
    name = f"block_{number}_" if number else "expanded_conv_"
    before, y = x.shape[-1], x
    if number:
        y = _normalized(_convolved(y, 6 * before, f"{name}expand"), f"{name}expand_BN")
        y = layers.ReLU(6.0, name=f"{name}expand_relu")(y)
    y = _by_channel(y, 3, stride, f"{name}pad", f"{name}depthwise")
    y = layers.ReLU(6.0, name=f"{name}depthwise_relu")(_normalized(y, f"{name}depthwise_BN"))
    y = _normalized(_convolved(y, channels, f"{name}project"), f"{name}project_BN")
    return layers.Add(name=f"{name}add")([x, y]) if before == channels and stride == 1 else y


@documented(1280)
def MobileNetV2(
    input_shape: Sequence[int | None] | None = None,
    alpha: float = 1.0,
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str | None = None,
) -> Any:
    """Inverted residual blocks: wide within, narrow between them."""
    request = Request(
        include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name or "mobilenetv2"
    )
    _check_width(request, alpha)
    begin = building.beginning(request, 224)
    rows = begin.shape[1] if begin.shape[1] in (96, 128, 160, 192, 224) and begin.shape[1] == begin.shape[2] else 224
    if name is None:
        request = request._replace(name=f"mobilenetv2_{alpha:0.2f}_{rows}")
    building.warn_unusual(request, rows if begin.shape[1] is None else begin.shape[1])
    x = _normalized(_convolved(begin, rounded(32 * alpha), "Conv1", 3, strides=2), "bn_Conv1")
    x = layers.ReLU(6.0, name="Conv1_relu")(x)
    number = 0
    for channels, count, first in _STAGES:
        for place in range(count):
            x = _block_v2(x, rounded(int(channels * alpha)), first if place == 0 else 1, number)
            number += 1
    last = rounded(1280 * alpha) if alpha > 1.0 else 1280
    x = _normalized(_convolved(x, last, "Conv_1"), "Conv_1_bn")
    x = layers.ReLU(6.0, name="out_relu")(x)
    end = building.classified(x, request, building.Head(None, None))
    whole = f"mobilenet_v2_weights_tf_dim_ordering_tf_kernels_{float(alpha)}_{rows}"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_no_top.h5")


def _check_width(request: Request, alpha: object) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 100:
        raise ArgumentError(request.name, f"alpha is {alpha!r}; it is a positive number.")


class _Block(NamedTuple):
    """A block of version 3."""

    expansion: float
    channels: int
    kernel: int
    stride: int
    squeezes: bool
    activation: str  # "relu" or "hard_swish"


_LARGE = (
    _Block(1, 16, 3, 1, False, "relu"),
    _Block(4, 24, 3, 2, False, "relu"),
    _Block(3, 24, 3, 1, False, "relu"),
    _Block(3, 40, 5, 2, True, "relu"),
    _Block(3, 40, 5, 1, True, "relu"),
    _Block(3, 40, 5, 1, True, "relu"),
    _Block(6, 80, 3, 2, False, "hard_swish"),
    _Block(2.5, 80, 3, 1, False, "hard_swish"),
    _Block(2.3, 80, 3, 1, False, "hard_swish"),
    _Block(2.3, 80, 3, 1, False, "hard_swish"),
    _Block(6, 112, 3, 1, True, "hard_swish"),
    _Block(6, 112, 3, 1, True, "hard_swish"),
    _Block(6, 160, 5, 2, True, "hard_swish"),
    _Block(6, 160, 5, 1, True, "hard_swish"),
    _Block(6, 160, 5, 1, True, "hard_swish"),
)
_SMALL = (
    _Block(1, 16, 3, 2, True, "relu"),
    _Block(72 / 16, 24, 3, 2, False, "relu"),
    _Block(88 / 24, 24, 3, 1, False, "relu"),
    _Block(4, 40, 5, 2, True, "hard_swish"),
    _Block(6, 40, 5, 1, True, "hard_swish"),
    _Block(6, 40, 5, 1, True, "hard_swish"),
    _Block(3, 48, 5, 1, True, "hard_swish"),
    _Block(3, 48, 5, 1, True, "hard_swish"),
    _Block(6, 96, 5, 2, True, "hard_swish"),
    _Block(6, 96, 5, 1, True, "hard_swish"),
    _Block(6, 96, 5, 1, True, "hard_swish"),
)


def _activated(x: object, activation: str) -> Any:
    return layers.ReLU()(x) if activation == "relu" else layers.Activation("hard_swish")(x)


def _weighted(x: object, channels: int, name: str) -> Any:
    """Channels times what all of the picture says of each."""
    share = layers.GlobalAveragePooling2D(keepdims=True, name=f"{name}avg_pool")(x)
    share = layers.Conv2D(rounded(channels * 0.25), 1, padding="same", name=f"{name}conv")(share)
    share = layers.ReLU(name=f"{name}relu")(share)
    share = layers.Conv2D(channels, 1, padding="same", name=f"{name}conv_1")(share)
    share = layers.Activation("hard_sigmoid")(share)
    return layers.Multiply(name=f"{name}mul")([x, share])


def _block_v3(x: Symbol, block: _Block, number: int) -> Any:
    name = f"expanded_conv_{number}_" if number else "expanded_conv_"
    before, y = x.shape[-1], x
    wide = rounded(before * block.expansion)
    if number:
        y = _normalized(_convolved(y, wide, f"{name}expand"), f"{name}expand_bn")
        y = _activated(y, block.activation)
    y = _by_channel(y, block.kernel, block.stride, f"{name}depthwise_pad", f"{name}depthwise")
    y = _activated(_normalized(y, f"{name}depthwise_bn"), block.activation)
    if block.squeezes:
        y = _weighted(y, wide, f"{name}squeeze_excite_")
    y = _normalized(_convolved(y, block.channels, f"{name}project"), f"{name}project_bn")
    return layers.Add(name=f"{name}add")([x, y]) if block.stride == 1 and before == block.channels else y


class _Options(NamedTuple):
    """What only MobileNetV3 is asked."""

    alpha: float
    minimalistic: bool
    dropout_rate: float
    include_preprocessing: bool


def _network_v3(request: Request, options: _Options, blocks: tuple[_Block, ...], last: int, kind: str) -> Any:
    _check_width(request, options.alpha)
    begin = x = building.beginning(request, 224, any_size=True)
    building.warn_unusual(request, begin.shape[1])
    plain = options.minimalistic
    activation = "relu" if plain else "hard_swish"
    if options.include_preprocessing:
        x = layers.Rescaling(1.0 / 127.5, -1.0)(x)
    x = _normalized(_convolved(x, 16, "conv", 3, strides=2), "conv_bn")
    x = _activated(x, activation)
    for number, block in enumerate(blocks):
        one = block._replace(channels=rounded(block.channels * options.alpha))
        if plain:
            one = one._replace(kernel=3, squeezes=False, activation="relu")
        x = _block_v3(x, one, number)
    x = _normalized(_convolved(x, rounded(6 * x.shape[-1]), "conv_1"), "conv_1_bn")
    x = _activated(x, activation)
    if request.include_top:
        x = layers.GlobalAveragePooling2D(keepdims=True)(x)
        width = rounded(last * options.alpha) if options.alpha > 1.0 else last
        x = _activated(layers.Conv2D(width, 1, padding="same", name="conv_2")(x), activation)
        if options.dropout_rate > 0:
            x = layers.Dropout(options.dropout_rate)(x)
        x = layers.Conv2D(request.classes, 1, padding="same", name="logits")(x)
        end = layers.Activation(request.classifier_activation or "linear", name="predictions")(layers.Flatten()(x))
    else:
        end = building.pooled(x, request, building.Head())
    whole = f"weights_mobilenet_v3_{kind}{'_minimalistic' if plain else ''}_224_{options.alpha}_float"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_no_top_v2.h5")


@documented(576)
def MobileNetV3Small(
    input_shape: Sequence[int | None] | None = None,
    alpha: float = 1.0,
    minimalistic: bool = False,
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    classes: int = 1000,
    pooling: str | None = None,
    dropout_rate: float = 0.2,
    classifier_activation: Identifier = "softmax",
    include_preprocessing: bool = True,
    name: str = "MobileNetV3Small",
) -> Any:
    """The small one of two networks that a search found: inverted residual blocks with weighted channels."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    options = _Options(alpha, minimalistic, dropout_rate, include_preprocessing)
    return _network_v3(request, options, _SMALL, 1024, "small")


@documented(960)
def MobileNetV3Large(
    input_shape: Sequence[int | None] | None = None,
    alpha: float = 1.0,
    minimalistic: bool = False,
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    classes: int = 1000,
    pooling: str | None = None,
    dropout_rate: float = 0.2,
    classifier_activation: Identifier = "softmax",
    include_preprocessing: bool = True,
    name: str = "MobileNetV3Large",
) -> Any:
    """The large one of two networks that a search found: inverted residual blocks with weighted channels."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    options = _Options(alpha, minimalistic, dropout_rate, include_preprocessing)
    return _network_v3(request, options, _LARGE, 1280, "large")
