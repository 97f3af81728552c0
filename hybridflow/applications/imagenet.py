"""What is before and behind networks that were trained with ImageNet: scaled pictures, and names of classes."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

import numpy as np

from hybridflow.applications.building import keras_file
from hybridflow.array.creation import asarray
from hybridflow.array.elementwise import astype
from hybridflow.array.shapes import flip
from hybridflow.core.context import suspended
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.errors import ArgumentError, DataError, ShapeError
from hybridflow.layers.basic import Lambda
from hybridflow.layers.keras_tensor import Symbol

_STAGE = "preprocess_input"
_MEANS = {"torch": (0.485, 0.456, 0.406), "caffe": (103.939, 116.779, 123.68)}
_DEVIATIONS = (0.229, 0.224, 0.225)
_CLASSES = 1000
_INDEX = "imagenet_class_index.json"


def preprocess_input(x: ArrayLike, data_format: str | None = None, mode: str = "caffe") -> Any:
    """Scale pictures with values from 0 to 255 as a network's weights were trained.

    Args:
        x: pictures, with red, green and blue in this order; or a symbol of them, in the making of a model.
        data_format: "channels_last", which None stands for, or "channels_first".
        mode: "caffe" for ResNet and VGG: blue, green, red, less their means; "tf" for ResNetV2, MobileNetV2,
            InceptionV3, Xception and Hugging Face's ViT: from -1 to 1; "torch" for DenseNet and torchvision's ViT: from
            0 to 1, less their means, divided by their standard deviations. MobileNetV3, EfficientNet and ConvNeXt
            scale themselves.

    Returns:
        A tensor of the shape of ``x``; an array of NumPy's if that is one. Integers become float32.

    Raises:
        ArgumentError: for another ``mode`` or ``data_format``.
        ShapeError: where the channels are not 3.

    >>> hf.applications.preprocess_input(hf.full((1, 1, 1, 3), 255.0), mode="tf").numpy().ravel()
    array([1., 1., 1.], dtype=float32)
    """
    if mode not in ("caffe", "tf", "torch"):
        raise ArgumentError(_STAGE, f"mode is {mode!r}; it is 'caffe', 'tf' or 'torch'.")
    if data_format not in (None, "channels_last", "channels_first"):
        raise ArgumentError(_STAGE, f"data_format is {data_format!r}; it is 'channels_last' or 'channels_first'.")
    if isinstance(x, Symbol):
        return Lambda(preprocess_input, arguments={"data_format": data_format, "mode": mode})(x)
    is_array = isinstance(x, np.ndarray)
    value = asarray(x)
    if value.dtype.kind != "f" and value.dtype.name != "bfloat16":
        value = astype(value, "float32")
    if mode == "tf":
        result = value / 127.5 - 1.0
    else:
        result = _centred(value, mode, data_format)
    return result.numpy() if is_array else result


def _centred(value: Any, mode: str, data_format: str | None) -> Any:
    axis = value.ndim - 3 if data_format == "channels_first" else value.ndim - 1
    if value.ndim not in (3, 4) or value.shape[axis] != 3:
        raise ShapeError(_STAGE, f"pictures have 3 channels in the axis {axis}, and the shape is {tuple(value.shape)}.")
    extents = [3 if place == axis else 1 for place in range(value.ndim)]

    def along(numbers: tuple[float, ...]) -> Any:
        return asarray(np.array(numbers).reshape(extents), dtype=value.dtype)

    if mode == "caffe":
        return flip(value, axis=axis) - along(_MEANS[mode])
    return (value / 255.0 - along(_MEANS[mode])) / along(_DEVIATIONS)


def decode_predictions(
    preds: object, top: int = 5, class_index: str | os.PathLike[str] | None = None
) -> list[list[tuple[str, str, float]]]:
    """The names of the likeliest classes of ImageNet.

    Args:
        preds: probabilities of the 1000 classes, a row for each picture.
        top: how many classes of each row.
        class_index: the path of ``imagenet_class_index.json``; None for the one in the folder ``models`` of
            ``$KERAS_HOME`` or of ``~/.keras``. Nothing is downloaded.

    Returns:
        For each row a list of (WordNet's number, name, probability), the likeliest first.

    Raises:
        ShapeError: for anything else than rows of 1000.
        ArgumentError: where the file is not there.
        DataError: for a file without 1000 classes.

    >>> import json, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "index.json")
    >>> with open(path, "w") as file:
    ...     json.dump({str(n): [f"n{n}", f"thing {n}"] for n in range(1000)}, file)
    >>> hf.applications.decode_predictions(np.eye(1000)[[7]], top=1, class_index=path)
    [[('n7', 'thing 7', 1.0)]]
    """
    rows = np.asarray(preds)
    if rows.ndim != 2 or rows.shape[1] != _CLASSES:
        raise ShapeError("decode_predictions", f"there are rows of {_CLASSES} predictions; the shape is {rows.shape}.")
    if not isinstance(top, (int, np.integer)) or not 1 <= top <= _CLASSES:
        raise ArgumentError("decode_predictions", f"top is {top!r}; it is from 1 to {_CLASSES}.")
    names = _names(os.fspath(class_index) if class_index is not None else str(keras_file(_INDEX)))
    result = []
    for row in rows:
        best = np.argsort(-row, kind="stable")[:top]
        result.append([(*names[n], float(row[n])) for n in best.tolist()])
    return result


@functools.lru_cache(maxsize=8)
def _names(path: str) -> list[tuple[str, str]]:
    """The numbers and names of the classes."""
    if not os.path.isfile(path):
        raise ArgumentError(
            "decode_predictions", f"there is no {path}, and nothing is downloaded. Put Keras's {_INDEX} there."
        )
    try:
        with suspended(), open(path, encoding="utf-8") as file:
            held = json.load(file)
        return [(str(held[str(n)][0]), str(held[str(n)][1])) for n in range(_CLASSES)]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError("decode_predictions", f"{path} has no {_CLASSES} classes: {error!r:.100}.") from None
