"""What architectures share: their inputs, their heads, and files of weights."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hybridflow import layers
from hybridflow.core.type_aliases import Identifier
from hybridflow.errors import ArgumentError
from hybridflow.layers.functional_graph import Input, InputLayer
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.models.functional import Functional

PUBLISHED = "imagenet"
_CLASSES = 1000  # of the published weights

_ARGUMENTS = {
    "include_top": "whether the classifier is part of it.",
    "weights": """None for random ones, the path of a file, or "imagenet". That is Keras's published file, which has to
            be in the folder ``models`` of ``$KERAS_HOME`` or of ``~/.keras``: nothing is downloaded.""",
    "input_tensor": "an ``hf.Input``, or what layers made of one, to begin with.",
    "input_shape": "height, width and channels of a picture.",
    "pooling": """without a classifier: None, "avg" or "max" for one vector for each picture.""",
    "classes": "how many classes the classifier has.",
    "classifier_activation": "its activation; None for logits.",
    "name": "the name of the model.",
    "alpha": "how wide it is: all numbers of channels are multiplied by it.",
    "depth_multiplier": "how many channels are made of each where each is convolved by itself.",
    "dropout": "the share of what the classifier takes that is left out in training.",
    "minimalistic": "whether it does without wide kernels, hard swish and weighted channels.",
    "dropout_rate": "the share of what the classifier takes that is left out in training.",
    "include_preprocessing": "whether its first layer scales pictures from 0 to 255.",
}
_REST = """
    Returns:
        An ``hf.Model``, whose layers have Keras's names.

    Raises:
        ArgumentError: for shapes and arguments that do not fit; where the file of weights is not there.
        CheckpointError: for a file of another model.

    >>> model = hf.applications.{name}(include_top=False, weights=None, pooling="avg"){skip}
    >>> model.output_shape{skip}
    (None, {channels})
"""
# Examples of these are not run: they are those of others of their families, with more layers.
_SLOW = (
    *("ResNet101", "ResNet101V2", "ResNet152", "ResNet152V2"),
    *("EfficientNetB1", "EfficientNetB2", "EfficientNetB3", "VGG19"),
    *("EfficientNetB4", "EfficientNetB5", "EfficientNetB6", "EfficientNetB7", "DenseNet169", "DenseNet201"),
)


def documented(channels: int) -> Callable[[Any], Any]:
    """Adds to the docstring of an architecture what its arguments are; ``channels`` are those of its last pictures."""

    def with_arguments(build: Callable[..., Any]) -> Callable[..., Any]:
        if build.__doc__ is None:  # python -OO
            return build
        lines = [f"        {name}: {_ARGUMENTS[name]}\n" for name in inspect.signature(build).parameters]
        skip = "  # doctest: +SKIP" if build.__name__ in _SLOW else ""
        rest = _REST.format(name=build.__name__, channels=channels, skip=skip)
        build.__doc__ = f"{build.__doc__.rstrip()}\n\n    Args:\n{''.join(lines)}{rest}"
        return build

    return with_arguments


class Request(NamedTuple):
    """What an architecture was asked for."""

    include_top: bool
    weights: str | os.PathLike[str] | None
    input_tensor: Symbol | None
    input_shape: Sequence[int | None] | None
    pooling: str | None
    classes: int
    classifier_activation: Identifier
    name: str


def beginning(request: Request, size: int, smallest: int = 32, any_size: bool = False) -> Any:
    """The symbol of the pictures.  ``size`` is the usual height and width, ``smallest`` the least; with ``any_size``
    even a model with a classifier takes pictures of any size."""
    stage = request.name
    if request.weights is not None and not isinstance(request.weights, (str, os.PathLike)):
        raise ArgumentError(stage, f"weights is {request.weights!r:.60}; give None, 'imagenet' or a path.")
    if request.pooling not in (None, "avg", "max"):
        raise ArgumentError(stage, f"pooling is {request.pooling!r}; it is None, 'avg' or 'max'.")
    if request.weights == PUBLISHED and request.include_top and request.classes != _CLASSES:
        raise ArgumentError(stage, f"the published weights have {_CLASSES} classes, and classes is {request.classes}.")
    if request.weights is not None and request.include_top and request.classifier_activation not in (None, "softmax"):
        raise ArgumentError(
            stage, f"with weights, classifier_activation is None or 'softmax'; it is {request.classifier_activation!r}."
        )
    if request.input_tensor is not None:
        if not isinstance(request.input_tensor, Symbol):
            raise ArgumentError(stage, "input_tensor is made by hf.Input and layers.")
        return request.input_tensor
    shape = request.input_shape
    if shape is None:
        shape = (size, size, 3) if request.include_top and not any_size else (None, None, 3)
    if not isinstance(shape, (list, tuple)) or len(shape) != 3:
        raise ArgumentError(stage, f"input_shape is {shape!r:.60}; it is height, width and channels.")
    shape = tuple(shape)
    if request.weights == PUBLISHED and shape[2] != 3:
        raise ArgumentError(stage, f"the published weights are for 3 channels, and input_shape is {shape}.")
    if any(extent is not None and extent < smallest for extent in shape[:2]):
        raise ArgumentError(stage, f"pictures have at least {smallest}x{smallest} points; input_shape is {shape}.")
    if request.include_top and not any_size and None in shape:
        raise ArgumentError(stage, f"a model with a classifier has a fixed input_shape, which is {shape}.")
    return Input(shape)


class Head(NamedTuple):
    """The names of layers at the end of an architecture; None for those that get one by themselves."""

    average: str | None = "avg_pool"
    maximum: str | None = "max_pool"
    classifier: str = "predictions"


def pooled(x: object, request: Request, head: Head) -> Any:
    """The end without a classifier."""
    if request.pooling == "avg":
        return layers.GlobalAveragePooling2D(name=head.average)(x)
    if request.pooling == "max":
        return layers.GlobalMaxPooling2D(name=head.maximum)(x)
    return x


def classified(x: object, request: Request, head: Head, dropout: float = 0.0) -> Any:
    """A mean of all places, and the classifier; or the end without one."""
    if not request.include_top:
        return pooled(x, request, head)
    x = layers.GlobalAveragePooling2D(name=head.average)(x)
    if dropout:
        x = layers.Dropout(dropout, name="top_dropout")(x)
    return layers.Dense(request.classes, activation=request.classifier_activation, name=head.classifier)(x)


def finished(begin: Symbol, end: object, request: Request, with_top: str, without_top: str) -> Any:
    """The model between two symbols, with its weights.  The last two are Keras's names of the published files."""
    inputs = begin if request.input_tensor is None else _sources(begin)
    model = Functional(inputs, end, name=request.name)
    if request.weights is not None:
        advice = "Put Keras's published file there, set KERAS_HOME to the folder in whose 'models' it is"
        place = keras_file(with_top if request.include_top else without_top)
        model.load_weights(weights_file(request, place, advice))
    return model


def _sources(symbol: Symbol) -> Any:
    """The inputs that a symbol is made of."""
    sources: list[Symbol] = []
    seen: set[int] = set()
    stack = [symbol]
    while stack:
        one = stack.pop()
        if id(one.call) in seen:
            continue
        seen.add(id(one.call))
        if isinstance(one.call.layer, InputLayer):
            sources.append(one)
        stack += reversed(one.call.inputs())
    return sources[0] if len(sources) == 1 else sources


def keras_file(name: str) -> Path:
    """Where a file that Keras would have downloaded is, in the folder where Keras keeps them."""
    return Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "models" / name


def weights_file(request: Request, published: Path, advice: str) -> str:
    """The file of weights that was asked for, which is there.  ``advice`` says how ``published`` gets to its place."""
    if request.weights is not None and request.weights != PUBLISHED:
        path = os.fspath(request.weights)
        if not os.path.exists(path):
            raise ArgumentError(request.name, f"there is no file {path} of weights.")
        return path
    if not published.exists():
        raise ArgumentError(
            request.name,
            f"there is no {published}, and nothing is downloaded. {advice}, or give weights=None or the path of a "
            "file.",
        )
    return str(published)


def rounded(channels: float, divisor: int = 8) -> int:
    """A number of channels that ``divisor`` divides, less than a tenth below the one that was asked for."""
    result = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return result + divisor if result < 0.9 * channels else result


def halving_pad(x: Any, kernel: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Zeros around pictures so that a convolution with stride 2 has places where TensorFlow's has them."""
    height, width = x.shape[1], x.shape[2]
    half = kernel // 2
    odd = (0, 0) if height is None else (height % 2, width % 2)
    return (half - 1 + odd[0], half), (half - 1 + odd[1], half)


def warn_unusual(request: Request, rows: object) -> None:
    """Say that the published weights were trained with pictures of 224 rows."""
    if request.weights == PUBLISHED and rows != 224:
        warnings.warn(f"{request.name}: the published weights are those for pictures of 224x224.", stacklevel=4)
