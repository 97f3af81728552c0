"""Image files as pixels, which Pillow reads: models that take files are not compiled."""

from __future__ import annotations

import io

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.core.tensor import Tensor
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call


@operator("ImageDecoder", since=20, raw=(0,))
def decoded(call: Call, data: object, *, pixel_format: str = "RGB") -> Tensor:
    """[height, width, channels] of bytes; an empty tensor for bytes that are no image."""
    try:
        from PIL import Image
    except ImportError:
        raise call.fault("image files are read by Pillow: pip install 'hybridflow[images]'.") from None
    modes = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
    if pixel_format not in modes:
        raise call.fault(f"pixel_format is {pixel_format!r}. Expected one of {', '.join(modes)}.")
    channels = 1 if pixel_format == "Grayscale" else 3
    try:
        picture = Image.open(io.BytesIO(call.numbers(data).astype(np.uint8, copy=False).tobytes()))
        call.check_size([picture.height, picture.width, channels])
        pixels = np.asarray(picture.convert(modes[pixel_format]))
    except Image.DecompressionBombError as error:
        raise call.fault(f"the picture is too large: {error}") from None
    except (OSError, SyntaxError, ValueError):
        return asarray(np.zeros((0, 0, channels), np.uint8))
    pixels = pixels.reshape(*pixels.shape[:2], channels)
    return asarray(np.ascontiguousarray(pixels[..., ::-1] if pixel_format == "BGR" else pixels))
