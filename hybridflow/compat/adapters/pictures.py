"""Pictures and sounds as files: ``tf.io.decode_png`` and its kin by Pillow, WAV by Python, and folders of them."""

from __future__ import annotations

import io
import os
import wave
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.files import Dataset
from hybridflow.compat.adapters.values import as_dtype, operand
from hybridflow.compat.export import tf_export
from hybridflow.errors import ArgumentError, OperandError

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")


def _bytes_of(contents: Any, stage: str) -> bytes:
    """The bytes of a text.  Raises ArgumentError for anything else."""
    result = contents.numpy() if hasattr(contents, "numpy") else contents
    result = result.item() if isinstance(result, np.ndarray) and result.ndim == 0 else result
    if isinstance(result, str):
        return result.encode("latin-1")
    if not isinstance(result, (bytes, bytearray)):
        raise ArgumentError(stage, f"{type(result).__name__} is no text with the bytes of a file.")
    return bytes(result)


def _opened(stage: str, contents: Any) -> Any:
    """A picture of Pillow.  Raises OperandError for bytes that are none."""
    from PIL import Image, UnidentifiedImageError

    data = _bytes_of(contents, stage)
    try:
        picture = Image.open(io.BytesIO(data))
        picture.load()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        start = data[:8]
        raise OperandError(
            stage, f"the {len(data)} bytes, which begin with {start!r}, are no picture: {error}."
        ) from error
    return picture


def _pixels(stage: str, picture: Any, channels: int) -> np.ndarray:
    """[height, width, channels] of bytes, or of 16 bits where the file has them; as many channels as it has for 0."""
    if channels not in (0, 1, 3, 4):
        raise ArgumentError(stage, f"channels is {channels!r}; it must be 0, 1, 3 or 4.")
    if picture.mode.startswith("I;16") or picture.mode == "I":
        array = np.asarray(picture).astype(np.uint16)[..., None]
        pixels = np.repeat(array, channels or 1, axis=-1)
        pixels[..., 3:] = 65535  # opaque
        return pixels
    if channels:
        return np.atleast_3d(np.asarray(picture.convert(_MODES[channels])))
    kept = picture.mode if picture.mode in _MODES.values() else "RGBA" if "transparency" in picture.info else "RGB"
    return np.atleast_3d(np.asarray(picture.convert("L" if picture.mode == "1" else kept)))


def _as_pixels(array: np.ndarray, dtype: Any) -> Any:
    """The pixels in a dtype: floats are from 0 to 1, 16 bits use all of them."""
    wanted = as_dtype(dtype)
    if wanted.is_floating:
        return hf.asarray((array / np.float32(np.iinfo(array.dtype).max)).astype(wanted.dtype))
    if wanted.dtype == np.uint16 and array.dtype == np.uint8:
        array = array.astype(np.uint16) * 257
    elif wanted.dtype == np.uint8 and array.dtype == np.uint16:
        array = array >> 8
    return hf.asarray(array.astype(wanted.dtype))


@tf_export("io.decode_png", "image.decode_png")
def decode_png(contents: Any, channels: int = 0, dtype: Any = "uint8", name: str | None = None) -> Any:
    """``tf.io.decode_png``: [height, width, channels]."""
    return _as_pixels(_pixels("decode_png", _opened("decode_png", contents), channels), dtype)


@tf_export("io.decode_jpeg", "image.decode_jpeg")
def decode_jpeg(
    contents: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.io.decode_jpeg``: [height, width, channels], smaller by ``ratio``."""
    picture = _opened("decode_jpeg", contents)
    if ratio != 1:
        picture = picture.reduce(ratio)
    return _as_pixels(_pixels("decode_jpeg", picture, channels), "uint8")


@tf_export("io.decode_and_crop_jpeg", "image.decode_and_crop_jpeg")
def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.io.decode_and_crop_jpeg``: the part [y, x, height, width]."""
    top, left, height, width = (int(one) for one in np.asarray(operand(crop_window).numpy()))
    return decode_jpeg(contents, channels, ratio)[top : top + height, left : left + width]


@tf_export("io.is_jpeg", "image.is_jpeg")
def is_jpeg(contents: Any, name: str | None = None) -> Any:
    """``tf.io.is_jpeg``: whether the bytes begin as those of a JPEG file."""
    return hf.asarray(_bytes_of(contents, "is_jpeg")[:3] == b"\xff\xd8\xff")


@tf_export("io.decode_bmp", "image.decode_bmp")
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Any:
    """``tf.io.decode_bmp``: [height, width, channels]."""
    return _as_pixels(_pixels("decode_bmp", _opened("decode_bmp", contents), channels), "uint8")


@tf_export("io.decode_gif", "image.decode_gif")
def decode_gif(contents: Any, name: str | None = None) -> Any:
    """``tf.io.decode_gif``: [frames, height, width, 3]."""
    from PIL import ImageSequence

    frames = [np.asarray(one.convert("RGB")) for one in ImageSequence.Iterator(_opened("decode_gif", contents))]
    return hf.asarray(np.stack(frames))


@tf_export("io.decode_image", "image.decode_image")
def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = "uint8", name: str | None = None,
    expand_animations: bool = True,
) -> Any:  # fmt: skip
    """``tf.io.decode_image``: [height, width, channels]; of a GIF all frames, with an axis for them before."""
    picture = _opened("decode_image", contents)
    if picture.format == "GIF" and expand_animations:
        frames = decode_gif(contents)
        return _as_pixels(frames.numpy(), dtype)
    return _as_pixels(_pixels("decode_image", picture, channels or (3 if picture.format == "GIF" else 0)), dtype)


def _encoded(stage: str, image: Any, form: str, depths: Sequence[type], **options: Any) -> bytes:
    """The bytes of a picture in a file.  Raises ArgumentError for another shape or dtype than files have."""
    from PIL import Image

    array = np.asarray(operand(image).numpy())
    if array.ndim != 3 or array.shape[-1] not in _MODES or array.dtype.type not in depths:
        raise ArgumentError(
            stage, f"the picture is {array.dtype}{list(array.shape)}. Expected [height, width, 1, 3 or 4] of bytes."
        )
    out = io.BytesIO()
    Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(out, form, **options)
    return out.getvalue()


@tf_export("io.encode_png", "image.encode_png")
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """``tf.io.encode_png``: the bytes of a file."""
    options = {} if compression < 0 else {"compress_level": compression}
    return _text(_encoded("encode_png", image, "PNG", (np.uint8, np.uint16), **options))


@tf_export("io.encode_jpeg", "image.encode_jpeg")
def encode_jpeg(
    image: Any, format: str = "", quality: int = 95, progressive: bool = False, optimize_size: bool = False,
    chroma_downsampling: bool = True, density_unit: str = "in", x_density: int = 300, y_density: int = 300,
    xmp_metadata: str = "", name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.io.encode_jpeg``: the bytes of a file."""
    sampling = 2 if chroma_downsampling else 0
    options = {"quality": int(quality), "progressive": progressive, "optimize": optimize_size, "subsampling": sampling}
    return _text(_encoded("encode_jpeg", image, "JPEG", (np.uint8,), dpi=(x_density, y_density), **options))


@tf_export("image.adjust_jpeg_quality")
def adjust_jpeg_quality(image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Any:
    """``tf.image.adjust_jpeg_quality``: the picture as a JPEG file of a quality keeps it, in its dtype."""
    x = operand(image)
    is_float = as_dtype(x.dtype).is_floating
    pixels = hf.astype(hf.clip(x * 255.5, 0, 255), "uint8") if is_float else x
    result = decode_jpeg(encode_jpeg(pixels, quality=int(jpeg_quality)), channels=x.shape[-1])
    return hf.astype(result, x.dtype) / 255 if is_float else result


def _text(data: bytes) -> Any:
    strings = getattr(hf, "strings", None)
    return Encoded(data) if strings is None else strings.asarray(data) if hasattr(strings, "asarray") else Encoded(data)


class Encoded(bytes):
    """The bytes of a file, of which programs of TensorFlow ask for ``numpy()``."""

    def numpy(self) -> bytes:
        """The bytes."""
        return bytes(self)


# ---- sounds


@tf_export("audio.decode_wav")
def decode_wav(contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None) -> Any:
    """``tf.audio.decode_wav``: [samples, channels] from -1 to 1, and the rate; of 16 bits.

    Raises OperandError for bytes that are no such file.
    """
    data = _bytes_of(contents, "decode_wav")
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, depth, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise OperandError(
            "decode_wav", f"the {len(data)} bytes are no WAV file: {error or 'they end early'}."
        ) from error
    if depth != 2:
        raise OperandError("decode_wav", f"samples have {8 * depth} bits; those of 16 bits are read.")
    sound = np.frombuffer(frames, "<i2").reshape(-1, channels).astype(np.float32) / np.float32(32768)
    if desired_channels > 0:
        sound = np.pad(sound[:, :desired_channels], [(0, 0), (0, max(desired_channels - channels, 0))])
    if desired_samples > 0:
        sound = np.pad(sound[:desired_samples], [(0, max(desired_samples - len(sound), 0)), (0, 0)])
    return Sound(hf.asarray(sound), hf.asarray(rate, "int32"))


class Sound(tuple):
    """What ``tf.audio.decode_wav`` gives: ``audio`` and ``sample_rate``."""

    __slots__ = ()

    def __new__(cls, audio: Any, sample_rate: Any) -> Sound:
        return tuple.__new__(cls, (audio, sample_rate))

    @property
    def audio(self) -> Any:
        """The samples, [samples, channels]."""
        return self[0]

    @property
    def sample_rate(self) -> Any:
        """The samples of a second."""
        return self[1]


@tf_export("audio.encode_wav")
def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Any:
    """``tf.audio.encode_wav``: the bytes of a file of [samples, channels] from -1 to 1, with 16 bits each."""
    array = np.asarray(operand(audio).numpy(), np.float32)
    if array.ndim != 2:
        raise ArgumentError("encode_wav", f"the sound is {list(array.shape)}. Expected [samples, channels].")
    samples = array * np.float32(32768.0)
    rounded = np.trunc(samples)
    rounded += np.copysign(np.abs(samples - rounded) >= 0.5, samples)  # halves away from zero
    clipped = np.clip(rounded, -32768, 32767).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(array.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(sample_rate))
        file.writeframes(clipped.tobytes())
    return _text(out.getvalue())


# ---- folders


def _indexed(
    stage: str, directory: Any, labels: Any, class_names: Any, endings: Sequence[str], follow_links: bool
) -> tuple[list[str], list[int] | None, list[str]]:
    """The files of a folder in their order, the number of the class of each, and the names of the classes."""
    root = Path(directory)
    if not root.is_dir():
        raise FileNotFoundError(f"[{stage}] there is no folder {os.fspath(root)!r}")
    folders = sorted(part.name for part in root.iterdir() if part.is_dir() and not part.name.startswith("."))
    if labels != "inferred":
        paths = _files(root, endings, follow_links)
        if labels is not None and len(labels) != len(paths):
            raise ArgumentError(stage, f"there are {len(labels)} labels for {len(paths)} files.")
        return paths, None if labels is None else [int(one) for one in labels], list(class_names or [])
    names = list(class_names or folders)
    if set(names) != set(folders):
        raise ArgumentError(stage, f"class_names are {names}; the folders in {os.fspath(root)!r} are {folders}.")
    result = [
        (path, number) for number, name in enumerate(names) for path in _files(root / name, endings, follow_links)
    ]
    return [path for path, _ in result], [number for _, number in result], names


def _files(folder: Path, endings: Sequence[str], follow_links: bool) -> list[str]:
    result = []
    for where, inner, names in os.walk(folder, followlinks=follow_links):
        inner.sort()
        result += [os.path.join(where, name) for name in sorted(names) if name.lower().endswith(tuple(endings))]
    return result


def _folder(
    stage: str, result: tuple[list[str], list[int] | None, list[str]], read: Any, spec: Any, label_mode: Any,
    batch_size: int | None, shuffle: bool, seed: Any, validation_split: Any, subset: Any,
) -> Any:  # fmt: skip
    """A dataset of what ``read`` makes of files, with their labels; for both subsets, two datasets."""
    paths, numbers, names = result
    if label_mode not in ("int", "categorical", "binary", None):
        raise ArgumentError(stage, f"label_mode is {label_mode!r}; it is 'int', 'categorical', 'binary' or None.")
    if label_mode == "binary" and len(names) != 2:
        raise ArgumentError(stage, f"label_mode is 'binary', and there are the classes {names}.")
    if bool(validation_split) != bool(subset) or (validation_split and not 0 < validation_split < 1):
        raise ArgumentError(stage, "validation_split, from 0 to 1, and subset go together.")
    if validation_split and shuffle and seed is None:
        raise ArgumentError(stage, "give a seed: without one, training and validation would have the same files.")
    if not paths:
        raise ArgumentError(stage, "there are no such files in the folder.")
    if shuffle:
        order = np.arange(len(paths))
        seed = int(np.random.randint(1_000_000)) if seed is None else seed
        np.random.RandomState(seed).shuffle(order)
        paths = [paths[k] for k in order]
        numbers = None if numbers is None else [numbers[k] for k in order]
    print(f"Found {len(paths)} files belonging to {len(names)} classes.")

    def part(which: Any) -> Any:
        first = len(paths) - int((validation_split or 0) * len(paths))
        rows = slice(first, None) if which == "validation" else slice(first if validation_split else None)
        members, own_numbers = paths[rows], None if numbers is None or label_mode is None else numbers[rows]

        def elements() -> Iterator[Any]:
            for k, path in enumerate(members):
                yield (
                    read(path) if own_numbers is None else (read(path), _label(own_numbers[k], label_mode, len(names)))
                )

        label = hf.TensorSpec(() if label_mode == "int" else (1,), "int32" if label_mode == "int" else "float32")
        if label_mode == "categorical":
            label = hf.TensorSpec((len(names),), "float32")
        dataset = Dataset.from_generator(elements, output_signature=spec if own_numbers is None else (spec, label))
        dataset = (
            dataset.apply(hf.data.assert_cardinality(len(members)))
            if hasattr(hf.data, "assert_cardinality")
            else dataset
        )
        if shuffle:
            dataset = dataset.shuffle((batch_size or 128) * 8, seed)
        dataset = dataset.batch(batch_size) if batch_size is not None else dataset
        dataset = dataset.prefetch(1)
        dataset.class_names, dataset.file_paths = names, members
        return dataset

    return (part("training"), part("validation")) if subset == "both" else part(subset)


def _label(number: int, label_mode: str, count: int) -> np.ndarray:
    if label_mode == "int":
        return np.int32(number)  # type: ignore[return-value]
    return np.eye(count, dtype="float32")[number] if label_mode == "categorical" else np.array([number], "float32")


@tf_export("keras.utils.image_dataset_from_directory", "keras.preprocessing.image_dataset_from_directory")
def image_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int", class_names: Any = None,
    color_mode: str = "rgb", batch_size: int | None = 32, image_size: Any = (256, 256), shuffle: bool = True,
    seed: int | None = None, validation_split: float | None = None, subset: str | None = None,
    interpolation: str = "bilinear", follow_links: bool = False, crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False, data_format: Any = None, verbose: bool = True,
) -> Any:  # fmt: skip
    """``tf.keras.utils.image_dataset_from_directory``: batches of pictures as float32, read when they are wanted, with
    the numbers of their folders."""
    stage, channels = "image_dataset_from_directory", {"rgb": 3, "rgba": 4, "grayscale": 1}.get(color_mode)
    if channels is None:
        raise ArgumentError(stage, f"color_mode is {color_mode!r}; it is 'rgb', 'rgba' or 'grayscale'.")
    height, width = image_size
    resize = hf.layers.Resizing(height, width, interpolation, crop_to_aspect_ratio)

    def read(path: str) -> np.ndarray:
        pixels = _pixels(stage, _opened(stage, Path(path).read_bytes()), channels)
        result: np.ndarray = resize(pixels.astype(np.float32)).numpy()
        return result

    spec = hf.TensorSpec((height, width, channels), "float32")
    result = _indexed(stage, directory, labels, class_names, _PICTURES, follow_links)
    mode = None if labels is None else label_mode
    return _folder(stage, result, read, spec, mode, batch_size, shuffle, seed, validation_split, subset)


@tf_export("keras.utils.audio_dataset_from_directory")
def audio_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int", class_names: Any = None,
    batch_size: int | None = 32, sampling_rate: int | None = None, output_sequence_length: int | None = None,
    ragged: bool = False, shuffle: bool = True, seed: int | None = None, validation_split: float | None = None,
    subset: str | None = None, follow_links: bool = False, verbose: bool = True,
) -> Any:  # fmt: skip
    """``tf.keras.utils.audio_dataset_from_directory``: batches of sounds [samples, channels] of one length.

    Without ``output_sequence_length`` all have to be equally long.
    """
    stage = "audio_dataset_from_directory"
    if ragged or sampling_rate is not None:
        raise ArgumentError(stage, "sounds are read as they are: leave out ragged and sampling_rate.")

    def read(path: str) -> np.ndarray:
        sound, _ = decode_wav(Path(path).read_bytes(), desired_samples=output_sequence_length or -1)
        result: np.ndarray = sound.numpy()
        return result

    result = _indexed(stage, directory, labels, class_names, (".wav",), follow_links)
    channels = read(result[0][0]).shape[1] if result[0] else 1
    spec = hf.TensorSpec((output_sequence_length, channels), "float32")
    mode = None if labels is None else label_mode
    return _folder(stage, result, read, spec, mode, batch_size, shuffle, seed, validation_split, subset)


# ---- ImageDataGenerator


@tf_export("keras.preprocessing.image.ImageDataGenerator")
class ImageDataGenerator:
    """``tf.keras.preprocessing.image.ImageDataGenerator``: batches of pictures, changed by chance."""

    def __init__(
        self, featurewise_center: bool = False, samplewise_center: bool = False,
        featurewise_std_normalization: bool = False, samplewise_std_normalization: bool = False,
        zca_whitening: bool = False, zca_epsilon: float = 1e-6, rotation_range: float = 0, width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0, brightness_range: Any = None, shear_range: float = 0.0, zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0, fill_mode: str = "nearest", cval: float = 0.0, horizontal_flip: bool = False,
        vertical_flip: bool = False, rescale: float | None = None, preprocessing_function: Any = None,
        data_format: Any = None, validation_split: float = 0.0, interpolation_order: int = 1, dtype: Any = None,
    ) -> None:  # fmt: skip
        if zca_whitening:
            raise ArgumentError("ImageDataGenerator", "there is no zca_whitening; whiten the pictures before.")
        self.featurewise_center, self.samplewise_center = featurewise_center, samplewise_center
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.rotation_range, self.shear_range = rotation_range, shear_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.zoom_range = (1 - zoom_range, 1 + zoom_range) if isinstance(zoom_range, (int, float)) else zoom_range
        self.brightness_range, self.channel_shift_range = brightness_range, channel_shift_range
        self.fill_mode, self.cval = fill_mode, cval
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.validation_split, self.dtype = validation_split, dtype or "float32"
        self.mean: Any = None
        self.std: Any = None

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Find the mean and the deviation of pictures, for the options that want them."""
        pictures = np.asarray(x, self.dtype)
        self.mean = pictures.mean(axis=(0, 1, 2), keepdims=True)[0]
        self.std = (pictures - self.mean).std(axis=(0, 1, 2), keepdims=True)[0]

    def standardize(self, x: Any) -> np.ndarray:
        """A picture with what is done to all of them."""
        x = np.array(x, self.dtype) if self.preprocessing_function is None else self.preprocessing_function(x)
        if self.rescale:
            x = x * np.asarray(self.rescale, self.dtype)
        if self.samplewise_center:
            x = x - np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x = x / (np.std(x, keepdims=True) + 1e-6)
        if self.featurewise_center and self.mean is not None:
            x = x - self.mean
        if self.featurewise_std_normalization and self.std is not None:
            x = x / (self.std + 1e-6)
        return np.asarray(x, self.dtype)

    def random_transform(self, x: Any, seed: int | None = None) -> np.ndarray:
        """A picture with what is done by chance."""
        draw: Any = np.random.RandomState(seed) if seed is not None else np.random
        x = np.asarray(x, self.dtype)
        height, width = x.shape[:2]
        angle = np.deg2rad(draw.uniform(-self.rotation_range, self.rotation_range)) if self.rotation_range else 0.0
        shear = np.deg2rad(draw.uniform(-self.shear_range, self.shear_range)) if self.shear_range else 0.0
        down = self._shift(draw, self.height_shift_range, height)
        right = self._shift(draw, self.width_shift_range, width)
        zooms = draw.uniform(*self.zoom_range, 2) if tuple(self.zoom_range) != (1, 1) else np.ones(2)
        matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        matrix = matrix @ np.array([[1, -np.sin(shear)], [0, np.cos(shear)]]) @ np.diag(zooms)
        if down or right or not np.allclose(matrix, np.eye(2)):
            x = self._moved(x, matrix, (down, right))
        if self.channel_shift_range:
            shift = draw.uniform(-self.channel_shift_range, self.channel_shift_range)
            x = np.clip(x + shift, x.min(), x.max())
        if self.horizontal_flip and draw.random_sample() < 0.5:
            x = x[:, ::-1]
        if self.vertical_flip and draw.random_sample() < 0.5:
            x = x[::-1]
        if self.brightness_range is not None:
            x = np.clip(x * draw.uniform(*self.brightness_range), 0, 255)
        return np.ascontiguousarray(x, self.dtype)

    @staticmethod
    def _shift(draw: Any, limit: Any, extent: int) -> float:
        if not np.any(limit):
            return 0.0
        shift = draw.choice(limit) if np.ndim(limit) else draw.uniform(-limit, limit)
        return float(shift * extent if np.max(np.abs(limit)) < 1 else shift)

    def _moved(self, x: np.ndarray, matrix: np.ndarray, shift: tuple[float, float]) -> np.ndarray:
        """Bilinear samples of a picture at the places that an affine map about its middle says."""
        extents = np.array(x.shape[:2])
        middle = ((extents - 1) / 2)[:, None]
        rows, columns = np.meshgrid(*map(np.arange, extents), indexing="ij")
        places = matrix @ (np.stack([rows.ravel(), columns.ravel()]) - middle + np.array(shift)[:, None]) + middle
        first = np.floor(places).astype(int)
        rest = (places - first)[..., None]
        result = np.zeros((places.shape[1], x.shape[2]), np.float64)
        for down in (0, 1):
            for right in (0, 1):
                at = first + np.array([[down], [right]])
                share = (rest[0] if down else 1 - rest[0]) * (rest[1] if right else 1 - rest[1])
                result += share * self._at(x, at)
        return result.reshape(x.shape).astype(x.dtype)

    def _at(self, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        extents = np.array(x.shape[:2])[:, None]
        if self.fill_mode == "wrap":
            inside = at % extents
        elif self.fill_mode == "reflect":
            turned = at % (2 * extents)
            inside = np.where(turned < extents, turned, 2 * extents - 1 - turned)
        else:
            inside = np.clip(at, 0, extents - 1)
        result = x[inside[0], inside[1]]
        if self.fill_mode == "constant":
            result = np.where(np.all((at >= 0) & (at < extents), axis=0).reshape(-1, 1), result, self.cval)
        return np.asarray(result)

    def flow(
        self, x: Any, y: Any = None, batch_size: int = 32, shuffle: bool = True, sample_weight: Any = None,
        seed: int | None = None, save_to_dir: Any = None, save_prefix: str = "", save_format: str = "png",
        ignore_class_split: bool = False, subset: str | None = None,
    ) -> Flow:  # fmt: skip
        """Batches of arrays, without an end."""
        arrays = [np.asarray(one) for one in (x, y, sample_weight) if one is not None]
        rows = self._rows(len(arrays[0]), subset)
        arrays = [one[rows] for one in arrays]

        def read(k: int) -> np.ndarray:
            return np.asarray(arrays[0][k], self.dtype)

        return Flow(self, len(arrays[0]), read, arrays[1:], batch_size, shuffle, seed)

    def _rows(self, count: int, subset: str | None) -> slice:
        held = int(self.validation_split * count)
        return slice(None) if subset is None else slice(held) if subset == "validation" else slice(held, None)

    def flow_from_directory(
        self, directory: Any, target_size: Any = (256, 256), color_mode: str = "rgb", classes: Any = None,
        class_mode: str | None = "categorical", batch_size: int = 32, shuffle: bool = True, seed: int | None = None,
        save_to_dir: Any = None, save_prefix: str = "", save_format: str = "png", follow_links: bool = False,
        subset: str | None = None, interpolation: str = "nearest", keep_aspect_ratio: bool = False,
    ) -> Flow:  # fmt: skip
        """Batches of pictures of a folder, with the classes of the folders in it, without an end."""
        from hybridflow.compat.adapters.keras_names import img_to_array, load_img

        result = _indexed("flow_from_directory", directory, "inferred", classes, _PICTURES, follow_links)
        rows = self._rows(len(result[0]), subset)
        paths, numbers, names = result[0][rows], np.array(result[1][rows] if result[1] else [], np.int64), result[2]
        print(f"Found {len(paths)} images belonging to {len(names)} classes.")

        def read(k: int) -> np.ndarray:
            return img_to_array(load_img(paths[k], color_mode, target_size, interpolation, keep_aspect_ratio))

        labels: list[Any] = []
        if class_mode == "categorical":
            labels = [np.eye(len(names), dtype=self.dtype)[numbers]]
        elif class_mode in ("binary", "sparse"):
            labels = [numbers.astype(self.dtype)]
        flow = Flow(self, len(paths), read, labels, batch_size, shuffle, seed)
        flow.class_indices, flow.classes = {name: k for k, name in enumerate(names)}, numbers.astype("int32")
        flow.filenames = [os.path.relpath(path, directory) for path in paths]
        flow.filepaths, flow.num_classes, flow.class_mode = list(paths), len(names), class_mode
        flow.image_shape = (*target_size, {"rgb": 3, "rgba": 4, "grayscale": 1}[color_mode])
        return flow


class Flow:
    """Batches of an ``ImageDataGenerator``: an iterator without an end, of which each batch also has a number."""

    def __init__(
        self, generator: ImageDataGenerator, n: int, read: Any, rest: list[Any], batch_size: int, shuffle: bool,
        seed: int | None,
    ) -> None:  # fmt: skip
        self.n = self.samples = n
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.image_data_generator, self.batch_index, self.total_batches_seen = generator, 0, 0
        self._read, self._rest, self._order = read, rest, np.arange(n)
        self.class_indices: dict[str, int] = {}
        self.classes: Any = None
        self.filenames: list[str] = []
        self.filepaths: list[str] = []
        self.num_classes = 0
        self.class_mode: str | None = None
        self.image_shape: Any = None

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def on_epoch_end(self) -> None:
        """Let the pictures come in another order, if they are shuffled."""
        if self.shuffle:
            seed = None if self.seed is None else self.seed + self.total_batches_seen
            self._order = np.random.RandomState(seed).permutation(self.n)

    def reset(self) -> None:
        """Begin with the first batch."""
        self.batch_index = 0

    def __getitem__(self, number: int) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(f"batch {number} of {len(self)}")
        if number == 0 and not self.total_batches_seen:
            self.on_epoch_end()
        rows = self._order[number * self.batch_size : (number + 1) * self.batch_size]
        source = self.image_data_generator
        pictures = np.stack([source.standardize(source.random_transform(self._read(int(k)))) for k in rows])
        self.total_batches_seen += 1
        return (pictures, *(one[rows] for one in self._rest)) if self._rest else pictures

    def __iter__(self) -> Flow:
        return self

    def __next__(self) -> Any:
        batch = self[self.batch_index]
        self.batch_index += 1
        if self.batch_index >= len(self):
            self.batch_index = 0
            self.on_epoch_end()
        return batch

    next = __next__
