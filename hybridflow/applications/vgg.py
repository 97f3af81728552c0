"""VGG.  Source: Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2014."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request, documented
from hybridflow.core.type_aliases import Identifier
from hybridflow.layers.keras_tensor import Symbol

_WIDTHS = 64, 128, 256, 512, 512


def _network(request: Request, counts: tuple[int, ...], file: str) -> Any:
    begin = x = building.beginning(request, 224)
    for block, (width, count) in enumerate(zip(_WIDTHS, counts), 1):
        for number in range(1, count + 1):
            x = layers.Conv2D(width, 3, activation="relu", padding="same", name=f"block{block}_conv{number}")(x)
        x = layers.MaxPooling2D(2, strides=2, name=f"block{block}_pool")(x)
    if request.include_top:
        x = layers.Flatten(name="flatten")(x)
        for name in ("fc1", "fc2"):
            x = layers.Dense(4096, activation="relu", name=name)(x)
        end = layers.Dense(request.classes, activation=request.classifier_activation, name="predictions")(x)
    else:
        end = building.pooled(x, request, building.Head(None, None))
    whole = f"{file}_weights_tf_dim_ordering_tf_kernels"
    return building.finished(begin, end, request, f"{whole}.h5", f"{whole}_notop.h5")


@documented(512)
def VGG16(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "vgg16",
) -> Any:
    """Thirteen or sixteen convolutions of 3x3, and three dense layers: 16 layers with weights."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (2, 2, 3, 3, 3), "vgg16")


@documented(512)
def VGG19(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "vgg19",
) -> Any:
    """Thirteen or sixteen convolutions of 3x3, and three dense layers: 19 layers with weights."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, (2, 2, 4, 4, 4), "vgg19")
