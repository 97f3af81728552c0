"""TensorFlow's ``tf.io``: pictures as files, which Pillow reads and writes.

Where a function is traced, contents are known when calls run: then the sizes of a picture are found in its header.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import as_dtype, operand
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.compiler.ir.dtypes import bool_, uint8
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.string_tensor import as_strings, string
from hybridflow.errors import ArgumentError, OperandError, ShapeError
from hybridflow.strings.host import extent, known, step

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike


export(hf.data.TFRecordWriter, "io.TFRecordWriter", "data.experimental.TFRecordWriter")

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_CHANNELS = {mode: channels for channels, mode in _MODES.items()}


def opened(stage: str, data: bytes) -> Any:
    """A picture of Pillow.  Raises OperandError for bytes that are none."""
    from PIL import Image, UnidentifiedImageError

    try:
        picture = Image.open(io.BytesIO(data))
        picture.load()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        start = data[:8]
        raise OperandError(
            stage, f"the {len(data)} bytes, which begin with {start!r}, are no picture: {error}."
        ) from error
    return picture


def pixels_of(stage: str, picture: Any, channels: int) -> np.ndarray:
    """[height, width, channels] of bytes, or of 16 bits where the file has them; as many channels as it has for 0."""
    if channels not in (0, 1, 3, 4):
        raise ArgumentError(stage, f"channels is {channels!r}; it must be 0, 1, 3 or 4.")
    if picture.mode.startswith("I;16") or picture.mode == "I":
        array = np.asarray(picture).astype(np.uint16)[..., None]
        pixels = np.repeat(array, channels or 1, axis=-1)
        pixels[..., 3:] = 65535  # opaque
        return pixels
    if channels == 1 and picture.format == "PNG" and picture.mode in ("RGB", "RGBA", "P"):
        return _gray(np.asarray(picture.convert("RGB")))
    if channels:
        return np.atleast_3d(np.asarray(picture.convert(_MODES[channels])))
    kept = picture.mode if picture.mode in _CHANNELS else "RGBA" if "transparency" in picture.info else "RGB"
    return np.atleast_3d(np.asarray(picture.convert("L" if picture.mode == "1" else kept)))


def _gray(array: np.ndarray) -> np.ndarray:
    """Colours as TensorFlow weighs them for grey where a file is a PNG."""
    weighed = (array.astype(np.int32) * np.array([299, 587, 114])).sum(-1, keepdims=True) // 1000
    return np.asarray(np.where(np.ptp(array, -1, keepdims=True) == 0, array[..., :1], weighed), np.uint8)


def _frames(picture: Any) -> np.ndarray:
    """[frames, height, width, 3]."""
    from PIL import ImageSequence

    return np.stack([np.asarray(one.convert("RGB")) for one in ImageSequence.Iterator(picture)])


def _in_dtype(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The pixels in a dtype: floats are from 0 to 1, 16 bits use all of them."""
    if dtype.kind not in "iu":
        return (array / np.float32(np.iinfo(array.dtype).max)).astype(dtype)
    if dtype == np.uint16 and array.dtype == np.uint8:
        array = array.astype(np.uint16) * 257
    elif dtype == np.uint8 and array.dtype == np.uint16:
        array = array >> 8
    return array.astype(dtype)


def decoded(
    stage: str,
    contents: object,
    read: Callable[[bytes], np.ndarray],
    dtype: np.dtype[Any],
    extents: Sequence[int | None],
) -> Any:
    """What ``read`` makes of the contents of a file: a tensor with these extents, of which None is found by calls.

    Raises ShapeError for several contents.
    """
    x = as_strings(contents, stage)
    if x.ndim:
        raise ShapeError(stage, f"the contents are {x.type}. Expected those of one file: a text without axes.")
    if known(x):
        return hf.asarray(read(x.texts.item()))

    def size(axis: int) -> Any:
        return extent(lambda texts: np.int64(read(texts.item()).shape[axis]), [x])

    shape = tuple([size(axis) if length is None else length for axis, length in enumerate(extents)])
    return step(lambda texts: read(texts.item()), [x], [TensorType(shape, dtype)])[0]


def _decoded_picture(stage: str, contents: object, channels: int, dtype: DTypeLike, ratio: int = 1) -> Any:
    wanted = as_dtype(dtype).dtype

    def read(data: bytes) -> np.ndarray:
        picture = opened(stage, data)
        return _in_dtype(pixels_of(stage, picture if ratio == 1 else picture.reduce(ratio), channels), wanted)

    return decoded(stage, contents, read, wanted, (None, None, channels or None))


@tf_export("io.decode_png", "image.decode_png")
def decode_png(contents: object, channels: int = 0, dtype: DTypeLike = "uint8", name: str | None = None) -> Any:
    """``tf.io.decode_png``: [height, width, channels]."""
    return _decoded_picture("decode_png", contents, channels, dtype)


@tf_export("io.decode_jpeg", "image.decode_jpeg")
def decode_jpeg(
    contents: object, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.io.decode_jpeg``: [height, width, channels], smaller by ``ratio``."""
    return _decoded_picture("decode_jpeg", contents, channels, "uint8", ratio)


@tf_export("io.decode_and_crop_jpeg", "image.decode_and_crop_jpeg")
def decode_and_crop_jpeg(
    contents: object, crop_window: TensorLike, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.io.decode_and_crop_jpeg``: the part [y, x, height, width]."""
    top, left, height, width = (int(one) for one in np.asarray(operand(crop_window).numpy()))
    return decode_jpeg(contents, channels, ratio)[top : top + height, left : left + width]


@tf_export("io.is_jpeg", "image.is_jpeg")
def is_jpeg(contents: object, name: str | None = None) -> Any:
    """``tf.io.is_jpeg``: whether the bytes begin as those of a JPEG file."""
    x = as_strings(contents, "is_jpeg")
    return step(lambda texts: texts.item()[:3] == b"\xff\xd8\xff", [x], [TensorType((), bool_)])[0]


@tf_export("io.extract_jpeg_shape", "image.extract_jpeg_shape")
def extract_jpeg_shape(contents: object, output_type: DTypeLike = "int32", name: str | None = None) -> Any:
    """``tf.io.extract_jpeg_shape``: height, width and channels."""
    dtype, x = as_dtype(output_type).dtype, as_strings(contents, "extract_jpeg_shape")

    def sizes(texts: np.ndarray) -> np.ndarray:
        return np.array(pixels_of("extract_jpeg_shape", opened("extract_jpeg_shape", texts.item()), 0).shape, dtype)

    return step(sizes, [x], [TensorType((3,), dtype)])[0]


@tf_export("io.decode_bmp", "image.decode_bmp")
def decode_bmp(contents: object, channels: int = 0, name: str | None = None) -> Any:
    """``tf.io.decode_bmp``: [height, width, channels]."""
    return _decoded_picture("decode_bmp", contents, channels, "uint8")


@tf_export("io.decode_gif", "image.decode_gif")
def decode_gif(contents: object, name: str | None = None) -> Any:
    """``tf.io.decode_gif``: [frames, height, width, 3]."""
    return decoded("decode_gif", contents, lambda data: _frames(opened("decode_gif", data)), uint8, (None,) * 3 + (3,))


@tf_export("io.decode_image", "image.decode_image")
def decode_image(
    contents: object, channels: int | None = None, dtype: DTypeLike = "uint8", name: str | None = None,
    expand_animations: bool = True,
) -> Any:  # fmt: skip
    """``tf.io.decode_image``: [height, width, channels]; of a GIF all frames, with an axis for them before.

    Raises ArgumentError in a traced function, unless ``expand_animations`` is False: the rank would not be known.
    """
    wanted = as_dtype(dtype).dtype

    def read(data: bytes) -> np.ndarray:
        picture = opened("decode_image", data)
        is_gif = picture.format == "GIF"
        if is_gif and expand_animations:
            return _in_dtype(_frames(picture), wanted)
        return _in_dtype(pixels_of("decode_image", picture, channels or (3 if is_gif else 0)), wanted)

    if expand_animations and not known(as_strings(contents, "decode_image")):
        raise ArgumentError(
            "decode_image",
            "a GIF would have an axis more, which a traced function cannot know. Give expand_animations=False.",
        )
    return decoded("decode_image", contents, read, wanted, (None, None, channels or None))


def _encoded(stage: str, image: TensorLike, form: str, depths: Sequence[type], **options: object) -> Any:
    """A picture as a file: a text.  Raises ArgumentError for another shape or dtype than files have."""
    x = operand(image)
    if x.ndim != 3 or x.shape[-1] not in _MODES or x.dtype.type not in depths:
        raise ArgumentError(stage, f"the picture is {x.type}. Expected [height, width, 1, 3 or 4] of bytes.")

    if x.dtype == np.uint16 and x.shape[-1] != 1:
        raise ArgumentError(stage, f"the picture is {x.type}. With 16 bits, pictures of one channel are written.")

    def write(array: np.ndarray) -> Any:
        from PIL import Image

        out = io.BytesIO()
        Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(out, form, **options)
        return out.getvalue()

    return step(write, [x], [TensorType((), string)])[0]


@tf_export("io.encode_png", "image.encode_png")
def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Any:
    """``tf.io.encode_png``: the bytes of a file."""
    options = {} if compression < 0 else {"compress_level": compression}
    return _encoded("encode_png", image, "PNG", (np.uint8, np.uint16), **options)


@tf_export("io.encode_jpeg", "image.encode_jpeg")
def encode_jpeg(
    image: TensorLike, format: str = "", quality: int = 95, progressive: bool = False, optimize_size: bool = False,
    chroma_downsampling: bool = True, density_unit: str = "in", x_density: int = 300, y_density: int = 300,
    xmp_metadata: str = "", name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.io.encode_jpeg``: the bytes of a file."""
    sampling = 2 if chroma_downsampling else 0
    options = {"quality": int(quality), "progressive": progressive, "optimize": optimize_size, "subsampling": sampling}
    return _encoded("encode_jpeg", image, "JPEG", (np.uint8,), dpi=(x_density, y_density), **options)


@tf_export("image.adjust_jpeg_quality")
def adjust_jpeg_quality(image: TensorLike, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Any:
    """``tf.image.adjust_jpeg_quality``: the picture as a JPEG file of a quality keeps it, in its dtype."""
    x = operand(image)
    is_float = as_dtype(x.dtype).is_floating
    pixels = hf.astype(hf.clip(x * 255.5, 0, 255), "uint8") if is_float else x
    result = decode_jpeg(encode_jpeg(pixels, quality=int(jpeg_quality)), channels=int(x.shape[-1]))
    return hf.astype(result, x.dtype) / 255 if is_float else result
