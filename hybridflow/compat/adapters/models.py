"""``tf.keras`` beside its classes: losses as functions, utilities, the backend."""

from __future__ import annotations

import random as python_random
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters import draws
from hybridflow.compat.adapters.values import axes, operand
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.type_aliases import ArrayLike, ShapeLike
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError
from hybridflow.layers.layer import LayerOptions

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike
    from hybridflow.models.model import Model


def in_dtype_of(y_pred: Any, loss: Any) -> Any:
    """The loss, which is computed in the dtype of the predictions where that is a wide one."""
    loss.dtype = dtypes.float64 if getattr(operand(y_pred), "dtype", None) == dtypes.float64 else None
    return loss


def loss_function(kind: Any, name: str) -> Any:
    """The losses of samples that an object of ``kind`` reduces, as a function."""

    def loss(y_true: Any, y_pred: TensorLike, **options: Any) -> Any:
        return in_dtype_of(y_pred, kind(reduction="none", **options))(y_true, y_pred)

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"``tf.keras.losses.{name}``: the loss of each sample."
    return loss


mean_squared_error = loss_function(hf.losses.MeanSquaredError, "mean_squared_error")
mean_absolute_error = loss_function(hf.losses.MeanAbsoluteError, "mean_absolute_error")
mean_absolute_percentage_error = loss_function(hf.losses.MeanAbsolutePercentageError, "mean_absolute_percentage_error")
mean_squared_logarithmic_error = loss_function(hf.losses.MeanSquaredLogarithmicError, "mean_squared_logarithmic_error")
hinge = loss_function(hf.losses.Hinge, "hinge")
squared_hinge = loss_function(hf.losses.SquaredHinge, "squared_hinge")
poisson = loss_function(hf.losses.Poisson, "poisson")
log_cosh = loss_function(hf.losses.LogCosh, "log_cosh")
kl_divergence = loss_function(hf.losses.KLDivergence, "kl_divergence")


@tf_export("keras.losses.huber", "keras.metrics.huber")
def huber(y_true: TensorLike, y_pred: TensorLike, delta: float = 1.0) -> Any:
    """``tf.keras.losses.huber``: the loss of each sample."""
    return in_dtype_of(y_pred, hf.losses.Huber(delta, reduction="none"))(y_true, y_pred)


@tf_export("keras.losses.cosine_similarity")
def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Any:
    """``tf.keras.losses.cosine_similarity``: -1 where a prediction points where its label does."""
    return in_dtype_of(y_pred, hf.losses.CosineSimilarity(axis, reduction="none"))(y_true, y_pred)


@tf_export("keras.losses.ctc")
def ctc(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """``tf.keras.losses.ctc``: the loss of each sequence."""
    return in_dtype_of(y_pred, hf.losses.CTC(reduction="none"))(y_true, y_pred)


@tf_export("keras.losses.circle")
def circle(
    y_true: TensorLike, y_pred: TensorLike, ref_labels: object = None, ref_embeddings: object = None,
    remove_diagonal: bool = True,
    gamma: float = 80, margin: float = 0.4,
) -> Any:  # fmt: skip
    """``tf.keras.losses.circle``: the loss of each sample."""
    if ref_labels is not None or ref_embeddings is not None:
        raise ArgumentError("circle", "samples are compared with each other: there are no ref_labels here.")
    return in_dtype_of(y_pred, hf.losses.Circle(gamma, margin, remove_diagonal, reduction="none"))(y_true, y_pred)


@tf_export("keras.losses.binary_crossentropy", "keras.metrics.binary_crossentropy")
def binary_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Any:
    """``tf.keras.losses.binary_crossentropy``: the loss of each sample."""
    return in_dtype_of(y_pred, hf.losses.BinaryCrossentropy(from_logits, label_smoothing, axis, reduction="none"))(
        y_true, y_pred
    )


@tf_export("keras.losses.categorical_crossentropy", "keras.metrics.categorical_crossentropy")
def categorical_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Any:
    """``tf.keras.losses.categorical_crossentropy``: the loss of each sample."""
    return in_dtype_of(y_pred, hf.losses.CategoricalCrossentropy(from_logits, label_smoothing, axis, reduction="none"))(
        y_true, y_pred
    )


@tf_export("keras.losses.sparse_categorical_crossentropy", "keras.metrics.sparse_categorical_crossentropy")
def sparse_categorical_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> Any:
    """``tf.keras.losses.sparse_categorical_crossentropy``: the loss of each sample."""
    return in_dtype_of(y_pred, hf.losses.SparseCategoricalCrossentropy(from_logits, ignore_class, "none", axis))(
        y_true, y_pred
    )


@tf_export("keras.losses.get")
def get_loss(identifier: str) -> Any:
    """``tf.keras.losses.get``: a name in small letters is that of a function, which reduces nothing."""
    kind = hf.losses.get(identifier)
    is_function = isinstance(identifier, str) and (identifier.islower() or identifier.isupper())
    return loss_function(type(kind), identifier) if is_function else kind


@tf_export("keras.losses.Reduction")
class Reduction:
    """``tf.keras.losses.Reduction``."""

    AUTO = SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    SUM, NONE = "sum", "none"


@tf_export("keras.utils.to_categorical")
def to_categorical(x: TensorLike, num_classes: int | None = None) -> Any:
    """``tf.keras.utils.to_categorical``: rows of 0 and 1, as a NumPy array."""
    numbers = np.asarray(x.numpy() if hasattr(x, "numpy") else x).astype(np.int64)
    if numbers.ndim > 1 and numbers.shape[-1] == 1:
        numbers = numbers[..., 0]
    classes = int(numbers.max()) + 1 if num_classes is None else num_classes
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < classes:
        raise ArgumentError("to_categorical", f"classes from {numbers.min()} to {numbers.max()}, of {classes}.")
    return np.eye(classes)[numbers]


@tf_export("keras.utils.normalize")
def normalize(x: TensorLike, axis: int = -1, order: int = 2) -> Any:
    """``tf.keras.utils.normalize``: a NumPy array."""
    values = np.asarray(x)
    length = np.linalg.norm(values, order, axis, keepdims=True)
    return values / np.where(length == 0, 1, length)


@tf_export("keras.utils.set_random_seed")
def set_random_seed(seed: int) -> None:
    """``tf.keras.utils.set_random_seed``: of Python, NumPy, and here."""
    python_random.seed(seed)
    np.random.seed(seed)
    draws.set_seed(seed)


@tf_export("keras.utils.register_keras_serializable", "keras.saving.register_keras_serializable")
def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Any:
    """``tf.keras.utils.register_keras_serializable``: classes are found by ``custom_objects`` alone."""
    return lambda decorated: decorated


@tf_export("keras.config.epsilon", "keras.backend.epsilon")
def epsilon() -> float:
    """``tf.keras.backend.epsilon``."""
    return 1e-7


@tf_export("keras.config.floatx", "keras.backend.floatx")
def floatx() -> str:
    """``tf.keras.backend.floatx``."""
    return "float32"


@tf_export("keras.config.image_data_format", "keras.backend.image_data_format")
def image_data_format() -> str:
    """``tf.keras.backend.image_data_format``."""
    return "channels_last"


@tf_export("keras.utils.clear_session", "keras.backend.clear_session")
def clear_session(free_memory: bool = True) -> None:
    """``tf.keras.backend.clear_session``: there is nothing that layers or models share."""


@tf_export("keras.backend.mean", "keras.ops.mean")
def k_mean(x: TensorLike, axis: object = None, keepdims: bool = False) -> Any:
    """``tf.keras.backend.mean``."""
    value = operand(x)
    value = value if dtypes.is_float(value.dtype) else hf.astype(value, dtypes.float32)
    return hf.mean(value, axis=axes(axis), keepdims=keepdims)


@tf_export("keras.backend.argmax")
def k_argmax(x: TensorLike, axis: int = -1) -> Any:
    """``tf.keras.backend.argmax``."""
    return hf.argmax(operand(x), axis=axis)


@tf_export("keras.backend.int_shape")
def k_int_shape(x: Any) -> tuple[Any, ...]:
    """``tf.keras.backend.int_shape``."""
    return tuple(x.shape)


@tf_export("keras.backend.ndim", "keras.ops.ndim")
def k_ndim(x: TensorLike) -> int:
    """``tf.keras.backend.ndim``."""
    return operand(x).ndim


@tf_export("keras.backend.flatten", "keras.ops.ravel")
def k_flatten(x: TensorLike) -> Any:
    """``tf.keras.backend.flatten``."""
    return hf.reshape(operand(x), (-1,))


@tf_export("keras.backend.sqrt")
def k_sqrt(x: TensorLike) -> Any:
    """``tf.keras.backend.sqrt``: 0 of what is below 0."""
    return hf.sqrt(hf.maximum(operand(x), 0))


@tf_export("keras.backend.cast_to_floatx")
def cast_to_floatx(x: TensorLike) -> Any:
    """``tf.keras.backend.cast_to_floatx``."""
    return hf.astype(operand(x), dtypes.float32) if hasattr(x, "numpy") else np.asarray(x, np.float32)


@tf_export("keras.config.backend", "keras.backend.backend")
def backend() -> str:
    """``tf.keras.backend.backend``."""
    return "hybridflow"


@tf_export("keras.backend.eval", "keras.backend.get_value")
def get_value(x: Any) -> Any:
    """``tf.keras.backend.get_value``."""
    return x.numpy()


@tf_export("keras.backend.set_value")
def set_value(x: Variable, value: ArrayLike) -> None:
    """``tf.keras.backend.set_value``."""
    x.assign(value)


@tf_export("keras.activations.relu", "keras.backend.relu")
def relu(x: TensorLike, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """``tf.keras.activations.relu``."""
    if negative_slope == 0.0 and max_value is None and threshold == 0.0:
        return hf.nn.relu(operand(x))
    return hf.layers.ReLU(max_value, negative_slope, threshold)(operand(x))


@tf_export("keras.activations.softmax", "keras.backend.softmax", "keras.ops.softmax")
def softmax(x: TensorLike, axis: int = -1) -> Any:
    """``tf.keras.activations.softmax``."""
    return hf.nn.softmax(operand(x), axis=axis)


def merging(kind: Any, name: str) -> Any:
    """A layer of ``kind`` applied at once, as a function."""

    def merge(inputs: TensorLike, **options: Unpack[LayerOptions]) -> Any:
        return kind(**options)(inputs)

    merge.__name__ = merge.__qualname__ = name
    merge.__doc__ = f"``tf.keras.layers.{name}``."
    return merge


merged_add, merged_average = merging(hf.layers.Add, "add"), merging(hf.layers.Average, "average")
merged_maximum, merged_minimum = merging(hf.layers.Maximum, "maximum"), merging(hf.layers.Minimum, "minimum")
merged_multiply, merged_subtract = merging(hf.layers.Multiply, "multiply"), merging(hf.layers.Subtract, "subtract")


@tf_export("keras.layers.concatenate")
def concatenate(inputs: TensorLike, axis: int = -1, **options: Unpack[LayerOptions]) -> Any:
    """``tf.keras.layers.concatenate``."""
    return hf.layers.Concatenate(axis, **options)(inputs)


@tf_export("keras.layers.dot")
def dot(inputs: Any, axes: Any = -1, **options: Unpack[LayerOptions]) -> Any:
    """``tf.keras.layers.dot``."""
    return hf.layers.Dot(axes, **options)(inputs)


@tf_export("keras.utils.PyDataset", "keras.utils.Sequence")
class PyDataset:
    """``tf.keras.utils.PyDataset``, and ``Sequence``: batches by number, from ``__getitem__`` and ``__len__``."""

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        self.workers, self.use_multiprocessing, self.max_queue_size = workers, use_multiprocessing, max_queue_size

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has to define __getitem__(self, index)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has to define __len__(self)")

    def on_epoch_end(self) -> None:
        """For subclasses: what happens when all batches were taken."""

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]
        self.on_epoch_end()


@tf_export("keras.Input", "keras.layers.Input")
def input_of(
    shape: ShapeLike | None = None,
    batch_size: int | None = None,
    dtype: DTypeLike | None = None,
    sparse: object = None,
    ragged: object = None,
    batch_shape: ShapeLike | None = None,
    name: str | None = None,
) -> Any:
    """``tf.keras.Input``; sparse tensors become whole ones, batch by batch."""
    if ragged:
        raise ArgumentError("Input", "ragged inputs are not there; give whole tensors.")
    return hf.layers.InputLayer(shape, batch_size, dtype, name, batch_shape=batch_shape).output


@tf_export("keras.models.clone_model")
def clone_model(model: Model, input_tensors: object = None, clone_function: Callable[[Any], Any] | None = None) -> Any:
    """``tf.keras.models.clone_model``; inputs are always new ones."""
    if input_tensors is not None:
        raise ArgumentError("clone_model", "input_tensors is given; a clone has new inputs: call it with the tensors.")
    return hf.models.clone_model(model, clone_function)


@tf_export("keras.preprocessing.sequence.pad_sequences", "keras.utils.pad_sequences")
def pad_sequences(
    sequences: Iterable[object], maxlen: int | None = None, dtype: DTypeLike = "int32", padding: str = "pre",
    truncating: str = "pre",
    value: TensorLike = 0.0,
) -> np.ndarray:  # fmt: skip
    """``tf.keras.utils.pad_sequences``: rows of one length, as a NumPy array."""
    rows = [np.asarray(row) for row in sequences]
    length = max((len(row) for row in rows), default=0) if maxlen is None else maxlen
    inner = next((row.shape[1:] for row in rows if len(row)), ())
    result = np.full((len(rows), length, *inner), value, dtype)
    for k, row in enumerate(rows):
        kept = (row[-length:] if truncating == "pre" else row[:length]) if length else row[:0]
        if len(kept):
            place = slice(length - len(kept), None) if padding == "pre" else slice(0, len(kept))
            result[k, place] = kept
    return result


@tf_export(
    "keras.backend.set_image_data_format",
    "keras.backend.set_floatx",
    "keras.backend.set_epsilon",
    "keras.config.set_image_data_format",
    "keras.config.set_floatx",
    "keras.config.set_epsilon",
)
def fixed_setting(value: TensorLike) -> None:
    """``tf.keras.backend.set_floatx`` and its kin: what is there already.  Raises ArgumentError for anything else."""
    if value not in (floatx(), image_data_format(), epsilon()):
        raise ArgumentError(
            "keras.backend", f"{value!r} cannot be set: floats are float32, channels come last, and epsilon is 1e-7."
        )


export(merged_add, "keras.layers.add")
export(merged_average, "keras.layers.average")
export(merged_maximum, "keras.layers.maximum")
export(merged_minimum, "keras.layers.minimum")
export(merged_multiply, "keras.layers.multiply")
export(merged_subtract, "keras.layers.subtract")
export(
    mean_squared_error,
    "keras.losses.MSE",
    "keras.losses.mse",
    "keras.losses.mean_squared_error",
    "keras.metrics.MSE",
    "keras.metrics.mse",
    "keras.metrics.mean_squared_error",
)
export(
    mean_absolute_error,
    "keras.losses.MAE",
    "keras.losses.mae",
    "keras.losses.mean_absolute_error",
    "keras.metrics.MAE",
    "keras.metrics.mae",
    "keras.metrics.mean_absolute_error",
)
export(
    mean_absolute_percentage_error,
    "keras.losses.MAPE",
    "keras.losses.mape",
    "keras.losses.mean_absolute_percentage_error",
    "keras.metrics.MAPE",
    "keras.metrics.mape",
    "keras.metrics.mean_absolute_percentage_error",
)
export(
    mean_squared_logarithmic_error,
    "keras.losses.MSLE",
    "keras.losses.msle",
    "keras.losses.mean_squared_logarithmic_error",
    "keras.metrics.MSLE",
    "keras.metrics.msle",
    "keras.metrics.mean_squared_logarithmic_error",
)
export(
    kl_divergence,
    "keras.losses.KLD",
    "keras.losses.kld",
    "keras.losses.kl_divergence",
    "keras.losses.kullback_leibler_divergence",
    "keras.metrics.kullback_leibler_divergence",
    "keras.metrics.KLD",
    "keras.metrics.kld",
    "keras.metrics.kl_divergence",
)
export(hinge, "keras.losses.hinge", "keras.metrics.hinge")
export(squared_hinge, "keras.losses.squared_hinge", "keras.metrics.squared_hinge")
export(log_cosh, "keras.losses.log_cosh", "keras.losses.logcosh", "keras.metrics.logcosh")
export(poisson, "keras.losses.poisson", "keras.metrics.poisson")
