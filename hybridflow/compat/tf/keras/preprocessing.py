"""TensorFlow's ``tf.keras.preprocessing``: datasets of files in folders, and pictures that are changed by chance."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.files import Dataset
from hybridflow.compat.adapters.keras_names import img_to_array, load_img
from hybridflow.compat.export import tf_export
from hybridflow.compat.tf.audio import sound_of
from hybridflow.compat.tf.io import opened, pixels_of
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError

_PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")


def _files(folder: Path, endings: Sequence[str], follow_links: bool) -> list[str]:
    """The files in a folder and in those inside of it, in Keras's order."""
    walk = sorted(os.walk(folder, followlinks=follow_links), key=lambda entry: entry[0])
    return [
        os.path.join(where, name)
        for where, _, names in walk
        for name in sorted(names)
        if name.lower().endswith(tuple(endings))
    ]


def _indexed(
    stage: str,
    directory: Any,
    labels: Any,
    class_names: Sequence[str] | None,
    endings: Sequence[str],
    follow_links: bool,
) -> tuple[list[str], list[int] | None, list[str]]:
    """The files of a folder in their order, the number of the class of each, and the names of the classes.

    Raises ArgumentError where the names are not those of the folders, and for another number of labels than files.
    """
    root = Path(directory)
    if not root.is_dir():
        raise FileNotFoundError(f"[{stage}] there is no folder {os.fspath(root)!r}")
    if labels != "inferred":
        paths = _files(root, endings, follow_links)
        if labels is None:
            return paths, None, []
        if len(labels) != len(paths):
            raise ArgumentError(stage, f"there are {len(labels)} labels for {len(paths)} files.")
        numbers = [int(label) for label in labels]
        return paths, numbers, list(class_names or map(str, sorted(set(numbers))))
    folders = sorted(part.name for part in root.iterdir() if part.is_dir() and not part.name.startswith("."))
    names = list(class_names or folders)
    if set(names) != set(folders):
        raise ArgumentError(stage, f"class_names are {names}; the folders in {os.fspath(root)!r} are {folders}.")
    pairs = [(path, number) for number, name in enumerate(names) for path in _files(root / name, endings, follow_links)]
    return [path for path, _ in pairs], [number for _, number in pairs], names


def _dataset(
    stage: str,
    directory: str | os.PathLike[str],
    labels: Any,
    label_mode: str | None,
    class_names: Sequence[str] | None,
    endings: Sequence[str],
    read: Callable[[str], Any],
    spec: hf.TensorSpec,
    batch_size: int | None,
    shuffle: bool,
    seed: int | None,
    validation_split: float | None,
    subset: str | None,
    follow_links: bool,
    verbose: bool,
) -> Any:
    """A dataset of what ``read`` makes of the files of a folder, with their labels; for both subsets, two datasets."""
    if label_mode not in ("int", "categorical", "binary", None):
        raise ArgumentError(stage, f"label_mode is {label_mode!r}; it is 'int', 'categorical', 'binary' or None.")
    if subset not in (None, "training", "validation", "both"):
        raise ArgumentError(stage, f"subset is {subset!r}; it is 'training', 'validation' or 'both'.")
    if bool(validation_split) != bool(subset) or (validation_split and not 0 < validation_split < 1):
        raise ArgumentError(stage, "validation_split, from 0 to 1, and subset go together.")
    if validation_split and shuffle and seed is None:
        raise ArgumentError(stage, "give a seed: without one, training and validation would have the same files.")
    paths, numbers, names = _indexed(
        stage, directory, labels if label_mode else None, class_names, endings, follow_links
    )
    if numbers is not None and label_mode == "binary" and len(names) != 2:
        raise ArgumentError(stage, f"label_mode is 'binary', and there are the classes {names}.")
    if not paths:
        raise ArgumentError(stage, f"there are no files in {os.fspath(directory)!r} that end in {', '.join(endings)}.")
    if shuffle:
        order = np.arange(len(paths))
        seed = int(np.random.randint(1_000_000)) if seed is None else seed
        np.random.RandomState(seed).shuffle(order)
        paths = [paths[k] for k in order]
        numbers = None if numbers is None else [numbers[k] for k in order]
    if verbose:
        print(f"Found {len(paths)} files belonging to {len(names)} classes.")
    columns = None if numbers is None else _labels(numbers, label_mode, len(names))
    held = int((validation_split or 0) * len(paths))

    def part(which: str | None) -> Any:
        rows = slice(None if which != "validation" else -held, -held if which == "training" else None)
        chosen, own_labels = paths[rows], None if columns is None else columns[rows]
        if verbose and which is not None:
            print(f"Using {len(chosen)} files for {which}.")

        def elements() -> Iterator[Any]:
            for k, path in enumerate(chosen):
                yield read(path) if own_labels is None else (read(path), own_labels[k])

        specs = spec if own_labels is None else (spec, hf.TensorSpec(own_labels.shape[1:], own_labels.dtype))
        dataset = Dataset.from_generator(elements, output_signature=specs).assert_cardinality(len(chosen))
        if shuffle:
            dataset = dataset.shuffle((batch_size or 128) * 8, seed)
        dataset = (dataset.batch(batch_size) if batch_size is not None else dataset).prefetch(2)
        dataset.class_names, dataset.file_paths = names, chosen
        return dataset

    return (part("training"), part("validation")) if subset == "both" else part(subset)


def _labels(numbers: list[int], mode: str | None, count: int) -> np.ndarray:
    """The numbers of classes as Keras's labels, in an array with a row for each file."""
    if mode == "categorical":
        return np.eye(count, dtype=np.float32)[numbers]
    return np.array(numbers, np.float32)[:, None] if mode == "binary" else np.array(numbers, np.int32)


@tf_export("keras.utils.image_dataset_from_directory", "keras.preprocessing.image_dataset_from_directory")
def image_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    color_mode: str = "rgb",
    batch_size: int | None = 32,
    image_size: tuple[int, int] = (256, 256),
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    interpolation: str = "bilinear",
    follow_links: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    data_format: object = None,
    verbose: bool = True,
) -> Any:
    """``tf.keras.utils.image_dataset_from_directory``: batches of pictures as float32, read when they are wanted, with
    the numbers of their folders."""
    stage, channels = "image_dataset_from_directory", {"rgb": 3, "rgba": 4, "grayscale": 1}.get(color_mode)
    if channels is None:
        raise ArgumentError(stage, f"color_mode is {color_mode!r}; it is 'rgb', 'rgba' or 'grayscale'.")
    height, width = image_size
    resize = hf.layers.Resizing(height, width, interpolation, crop_to_aspect_ratio)

    def read(path: str) -> np.ndarray:
        pixels = pixels_of(stage, opened(stage, Path(path).read_bytes()), channels)
        result: np.ndarray = resize(pixels.astype(np.float32)).numpy()
        return result

    return _dataset(
        stage, directory, labels, label_mode, class_names, _PICTURES, read,
        hf.TensorSpec((height, width, channels), "float32"), batch_size, shuffle, seed, validation_split, subset,
        follow_links, verbose,
    )  # fmt: skip


@tf_export("keras.utils.audio_dataset_from_directory")
def audio_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    sampling_rate: int | None = None,
    output_sequence_length: int | None = None,
    ragged: bool = False,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    verbose: bool = True,
) -> Any:
    """``tf.keras.utils.audio_dataset_from_directory``: batches of sounds [samples, channels] of one length.

    Without ``output_sequence_length`` all have to be equally long.
    """
    stage = "audio_dataset_from_directory"
    if ragged or sampling_rate is not None:
        raise ArgumentError(stage, "sounds are read as they are: leave out ragged and sampling_rate.")

    def read(path: str) -> np.ndarray:
        return sound_of(Path(path).read_bytes(), desired_samples=output_sequence_length or -1)[0]

    first = _files(Path(directory), (".wav",), follow_links)[:1]
    channels = read(first[0]).shape[1] if first else 1
    return _dataset(
        stage, directory, labels, label_mode, class_names, (".wav",), read,
        hf.TensorSpec((output_sequence_length, channels), "float32"), batch_size, shuffle, seed, validation_split,
        subset, follow_links, verbose,
    )  # fmt: skip


@tf_export("keras.utils.text_dataset_from_directory", "keras.preprocessing.text_dataset_from_directory")
def text_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    max_length: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """``tf.keras.utils.text_dataset_from_directory``: pairs of texts and labels, read when they are wanted."""

    def read(path: str) -> Any:
        return hf.strings.constant(Path(path).read_bytes()[:max_length])

    return _dataset(
        "text_dataset_from_directory", directory, labels, label_mode, class_names, (".txt",), read,
        hf.TensorSpec((), "string"), batch_size, shuffle, seed, validation_split, subset, follow_links, verbose,
    )  # fmt: skip


@tf_export("keras.preprocessing.image.ImageDataGenerator")
class ImageDataGenerator:
    """``tf.keras.preprocessing.image.ImageDataGenerator``: batches of pictures, changed by chance."""

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: object = 0.0,
        height_shift_range: object = 0.0,
        brightness_range: Any = None,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Callable[..., object] | None = None,
        data_format: object = None,
        validation_split: float = 0.0,
        interpolation_order: int = 1,
        dtype: DTypeLike | None = None,
    ) -> None:
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
        self.mean: object = None
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
        self, x: object, y: object = None, batch_size: int = 32, shuffle: bool = True, sample_weight: object = None,
        seed: int | None = None, save_to_dir: object = None, save_prefix: str = "", save_format: str = "png",
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
        self, directory: str | None, target_size: tuple[int, int] = (256, 256), color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical", batch_size: int = 32, shuffle: bool = True, seed: int | None = None,
        save_to_dir: object = None, save_prefix: str = "", save_format: str = "png", follow_links: bool = False,
        subset: str | None = None, interpolation: str = "nearest", keep_aspect_ratio: bool = False,
    ) -> Flow:  # fmt: skip
        """Batches of pictures of a folder, with the classes of the folders in it, without an end."""
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
        self,
        generator: ImageDataGenerator,
        n: int,
        read: Callable[..., object],
        rest: list[Any],
        batch_size: int,
        shuffle: bool,
        seed: int | None,
    ) -> None:
        self.n = self.samples = n
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.image_data_generator, self.batch_index, self.total_batches_seen = generator, 0, 0
        self._read, self._rest, self._order = read, rest, np.arange(n)
        self.class_indices: dict[str, int] = {}
        self.classes: object = None
        self.filenames: list[str] = []
        self.filepaths: list[str] = []
        self.num_classes = 0
        self.class_mode: str | None = None
        self.image_shape: object = None

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
