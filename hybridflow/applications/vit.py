"""Vision transformers.  Source: Dosovitskiy and others, "An Image is Worth 16x16 Words", 2020.

Keras has none of them; the published files are torchvision's and Hugging Face's, and both layouts are read.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hybridflow import layers
from hybridflow.applications import building
from hybridflow.applications.building import Request
from hybridflow.array.shapes import broadcast_to, concat, reshape
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import Identifier
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.weights.reading import read

_EPSILON = 1e-6  # of torchvision
_EPSILON_OF_TRANSFORMERS = 1e-12
_FILE = "vit_b_16-c867db91.pth"
_BLOCK = re.compile(
    r"(?:encoder\.layers\.encoder_layer_|(?:vit\.)?encoder\.layer\.)(\d+)\."
    r"(ln_1|layernorm_before|ln_2|layernorm_after|self_attention|attention|mlp\.0|mlp\.linear_1|intermediate\.dense|"
    r"mlp\.3|mlp\.linear_2|output\.dense)\.(.+)"
)
_PARTS = {
    **dict.fromkeys(("ln_1", "layernorm_before"), "ln_1"),
    **dict.fromkeys(("ln_2", "layernorm_after"), "ln_2"),
    **dict.fromkeys(("self_attention", "attention"), "attention"),
    **dict.fromkeys(("mlp.0", "mlp.linear_1", "intermediate.dense"), "mlp_1"),
    **dict.fromkeys(("mlp.3", "mlp.linear_2", "output.dense"), "mlp_2"),
}
_OTHERS = {
    "conv_proj": "patches",
    "embeddings.patch_embeddings.projection": "patches",
    "class_token": "tokens.class_token",
    "embeddings.cls_token": "tokens.class_token",
    "encoder.pos_embedding": "tokens.positions",
    "embeddings.position_embeddings": "tokens.positions",
    "encoder.ln": "ln",
    "layernorm": "ln",
    "heads.head": "head",
    "classifier": "head",
}
_BESIDE = "pooler.", "embeddings.mask_token"  # in some of Hugging Face's files; the model has no place for them


class Size(NamedTuple):
    """What the members of the family differ in."""

    patch: int
    depth: int
    width: int
    heads: int
    inner: int


class Tokens(layers.Layer, one_tensor=True):
    """Patches ``[batch, rows, columns, features]`` as tokens: a learned one before them, and learned positions of all.

    Args:
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.
    """

    class_token: Variable
    positions: Variable

    def build(self, input_shape: Sequence[int]) -> None:
        rows, columns, width = input_shape[1:]
        self.class_token = self.add_weight((1, 1, width), "zeros")
        initializer = {"class_name": "RandomNormal", "config": {"stddev": 0.02}}
        self.positions = self.add_weight((1, 1 + rows * columns, width), initializer)

    def call(self, inputs: Tensor) -> Tensor:
        batch, rows, columns, width = inputs.shape
        patches = reshape(inputs, (batch, rows * columns, width))
        return concat([broadcast_to(self.class_token, (batch, 1, width)), patches], axis=1) + self.positions


def network(request: Request, size: Size, epsilon: float | None, published: str) -> Any:
    """A vision transformer of any size.  ``published`` is the name of torchvision's file of it."""
    if request.input_tensor is None and request.input_shape is None:
        request = request._replace(input_shape=(224, 224, 3))
    begin = building.beginning(request, 224, size.patch)
    if None in begin.shape[1:] or any(extent % size.patch for extent in begin.shape[1:3]):
        raise ArgumentError(
            request.name, f"pictures are whole patches of {size.patch}x{size.patch}, not {tuple(begin.shape[1:])}."
        )
    file, names = _weights_of(request, published)
    if epsilon is None:
        is_transformers = any(name.endswith("embeddings.cls_token") for name in names)
        epsilon = _EPSILON_OF_TRANSFORMERS if is_transformers else _EPSILON
    x = layers.Conv2D(size.width, size.patch, size.patch, kernel_initializer="lecun_normal", name="patches")(begin)
    x = Tokens(name="tokens")(x)
    for number in range(size.depth):
        x = _block(x, size, epsilon, f"block_{number}")
    x = layers.LayerNormalization(epsilon=epsilon, name="ln")(x)
    if request.include_top:
        x = layers.Dense(request.classes, activation=request.classifier_activation, name="head")(x[:, 0])
    elif request.pooling == "avg":
        x = layers.GlobalAveragePooling1D(name="avg_pool")(x)
    elif request.pooling == "max":
        x = layers.GlobalMaxPooling1D(name="max_pool")(x)
    model = building.finished(begin, x, request._replace(weights=None), "", "")
    model._torch_names = functools.partial(_name_here, request.include_top)
    if file is not None:
        is_published = any(_name_here(True, name) == "tokens.class_token" for name in names)
        model.load_weights(file, source="torch" if is_published else None)
    return model


def _block(x: object, size: Size, epsilon: float, name: str) -> Any:
    y = layers.LayerNormalization(epsilon=epsilon, name=f"{name}_ln_1")(x)
    y = layers.MultiHeadAttention(size.heads, size.width // size.heads, name=f"{name}_attention")(y, y)
    x = layers.Add(name=f"{name}_add_1")([x, y])
    y = layers.LayerNormalization(epsilon=epsilon, name=f"{name}_ln_2")(x)
    y = layers.Dense(size.inner, activation="gelu", name=f"{name}_mlp_1")(y)
    y = layers.Dense(size.width, name=f"{name}_mlp_2")(y)
    return layers.Add(name=f"{name}_add_2")([x, y])


def _weights_of(request: Request, published: str) -> tuple[str | None, tuple[str, ...]]:
    """The file of weights, and the names in it."""
    if request.weights is None:
        return None, ()
    home = os.environ.get("TORCH_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "torch")
    advice = "Put torchvision's published file there, set TORCH_HOME to the folder in whose 'hub/checkpoints' it is"
    file = building.weights_file(request, Path(home, "hub", "checkpoints", published), advice)
    return file, tuple(read(file))


def _name_here(include_top: bool, name: str) -> str | None:
    """The name of a weight of torchvision or Hugging Face in a model; None for one that it has no place for."""
    match = _BLOCK.fullmatch(name)
    if match is not None:
        return f"block_{match[1]}_{_PARTS[match[2]]}.{match[3]}"
    short = name.removeprefix("vit.")
    if short.startswith(_BESIDE):
        return None
    for there, here in _OTHERS.items():
        if short == there or short.startswith(f"{there}."):
            return None if here == "head" and not include_top else f"{here}{short[len(there) :]}"
    return name


def ViTB16(
    include_top: bool = True,
    weights: str | os.PathLike[str] | None = "imagenet",
    input_tensor: Symbol | None = None,
    input_shape: Sequence[int | None] | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Identifier = "softmax",
    epsilon: float | None = None,
    name: str = "vit_b_16",
) -> Any:
    """A vision transformer of the base size: 12 blocks of attention between patches of 16x16 points.

    Args:
        include_top: whether the classifier is part of it.
        weights: None for random ones, the path of a file, or "imagenet". That is torchvision's ``vit_b_16``, which has
            to be in ``hub/checkpoints`` of ``$TORCH_HOME`` or of ``~/.cache/torch``: nothing is downloaded. Files and
            folders of Hugging Face's ``ViTForImageClassification`` and ``ViTModel`` are read too.
        input_tensor: an ``hf.Input``, or what layers made of one, to begin with.
        input_shape: height, width and channels of a picture, (224, 224, 3) unless given. Weights are for one shape.
        pooling: without a classifier: None for all tokens, that of the picture first; "avg" or "max" for one vector.
        classes: how many classes the classifier has.
        classifier_activation: its activation; None for logits.
        epsilon: what keeps normalization finite. None for that of the weights: 1e-12 for Hugging Face's, else 1e-6.
        name: the name of the model.

    Returns:
        An ``hf.Model``, whose ``load_weights`` knows both layouts by ``source="torch"``.

    Raises:
        ArgumentError: for shapes and arguments that do not fit; where the file of weights is not there.
        CheckpointError: for a file of another model.

    >>> model = hf.applications.ViTB16(include_top=False, weights=None, input_shape=(32, 32, 3))  # doctest: +SKIP
    >>> model.output_shape  # doctest: +SKIP
    (None, 5, 768)
    """
    request = Request(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    return network(request, Size(16, 12, 768, 12, 3072), epsilon, _FILE)
