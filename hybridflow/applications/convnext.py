"""ConvNeXt.  Source: Liu, Mao, Wu, Feichtenhofer, Darrell and Xie, "A ConvNet for the 2020s", 2022."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request, documented
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import Identifier
from hybridflow.core.variable import Variable
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.models.sequential import Sequential

_EPSILON = 1e-6
_MEANS = 0.485, 0.456, 0.406
_DEVIATIONS = 0.229, 0.224, 0.225


class LayerScale(layers.Layer, one_tensor=True):
    """Each channel times a learned factor.

    Args:
        init_values: what the factors begin with.
        projection_dim: the number of channels.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.
    """

    gamma: Variable

    def __init__(self, init_values: float, projection_dim: int, **options: Any) -> None:
        super().__init__(**options)
        self.init_values, self.projection_dim = float(init_values), int(projection_dim)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        initializer = {"class_name": "Constant", "config": {"value": self.init_values}}
        self.gamma = self.add_weight((self.projection_dim,), initializer)

    def call(self, inputs: Tensor) -> Any:
        return inputs * self.gamma


def _block(x: object, width: int, name: str) -> Any:
    y = layers.Conv2D(width, 7, padding="same", groups=width, name=f"{name}_depthwise_conv")(x)
    y = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_layernorm")(y)
    y = layers.Dense(4 * width, name=f"{name}_pointwise_conv_1")(y)
    y = layers.Activation("gelu", name=f"{name}_gelu")(y)
    y = layers.Dense(width, name=f"{name}_pointwise_conv_2")(y)
    y = LayerScale(1e-6, width, name=f"{name}_layer_scale")(y)
    y = layers.Activation("linear", name=f"{name}_identity")(y)
    return layers.Add()([x, y])


def _smaller(width: int, stage: int, name: str) -> Any:
    """What makes pictures smaller before a stage, as a model of its own."""
    if stage == 0:
        parts = [
            layers.Conv2D(width, 4, strides=4, name=f"{name}_stem_conv"),
            layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_stem_layernorm"),
        ]
        return Sequential(parts, name=f"{name}_stem")
    place = stage - 1
    parts = [
        layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_downsampling_layernorm_{place}"),
        layers.Conv2D(width, 2, strides=2, name=f"{name}_downsampling_conv_{place}"),
    ]
    return Sequential(parts, name=f"{name}_downsampling_block_{place}")


def _network(request: Request, include_preprocessing: bool, counts: tuple[int, ...], widths: tuple[int, ...]) -> Any:
    begin = x = building.beginning(request, 224)
    name = request.name
    if include_preprocessing and begin.shape[-1] == 3:
        means, variances = [255 * mean for mean in _MEANS], [(255 * one) ** 2 for one in _DEVIATIONS]
        x = layers.Normalization(mean=means, variance=variances, name=f"{name}_prestem_normalization")(x)
    for stage, (count, width) in enumerate(zip(counts, widths)):
        x = _smaller(width, stage, name)(x)
        for number in range(count):
            x = _block(x, width, f"{name}_stage_{stage}_block_{number}")
    if request.include_top:
        x = layers.GlobalAveragePooling2D(name=f"{name}_head_gap")(x)
        x = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_head_layernorm")(x)
        end = layers.Dense(request.classes, activation=request.classifier_activation, name=f"{name}_head_dense")(x)
    else:
        end = building.pooled(x, request, building.Head(None, None))
        end = layers.LayerNormalization(epsilon=_EPSILON)(end)
    return building.finished(begin, end, request, f"{name}.h5", f"{name}_notop.h5")


@documented(768)
def ConvNeXtTiny(
    include_top: bool = True,
    include_preprocessing: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    name: str = "convnext_tiny",
) -> Any:
    """A convolutional network in the form of a transformer, the smallest of its family."""
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return _network(request, include_preprocessing, (3, 3, 9, 3), (96, 192, 384, 768))
