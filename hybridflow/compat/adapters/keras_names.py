"""``tf.keras`` beside layers and models: descriptions of objects, utilities, and activations of few formulas."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters import models
from hybridflow.compat.adapters.values import as_dtype, operand
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.core import serialization
from hybridflow.core.serialization import Configured, described, described_of, description, kinds_of
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.layers.named_activations import FURTHER

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike


# ---- descriptions


@tf_export(
    "keras.layers.serialize",
    "keras.optimizers.serialize",
    "keras.optimizers.schedules.serialize",
    "keras.losses.serialize",
    "keras.metrics.serialize",
    "keras.initializers.serialize",
    "keras.regularizers.serialize",
    "keras.constraints.serialize",
)
def serialize(obj: object) -> Any:
    """``tf.keras.layers.serialize`` and its kin: the class's name and the configuration."""
    from hybridflow.compat.adapters.tensors import keras_description

    return keras_description(description(obj)) if isinstance(obj, Configured) else getattr(obj, "__name__", obj)


serialize_keras_object = serialize


def _deserializing(get: Callable[[Any], Any]) -> Callable[..., Any]:
    def deserialize(config: object, custom_objects: Mapping[str, Any] | None = None, safe_mode: bool = True) -> Any:
        """What ``serialize`` described."""
        with serialization.custom_objects(custom_objects or {}):
            return get(config)

    return deserialize


def _layer_of(config: Mapping[str, Any]) -> Any:
    return described_of(hf.layers.Layer, config, "layers.deserialize")


deserialize_layer = _deserializing(_layer_of)
deserialize_loss = _deserializing(models.get_loss)
deserialize_metric = _deserializing(hf.metrics.get)
deserialize_optimizer = _deserializing(hf.optimizers.get)
deserialize_schedule = _deserializing(lambda config: hf.optimizers.schedules.from_config(config))
deserialize_initializer = _deserializing(hf.initializers.get)
deserialize_regularizer = _deserializing(hf.regularizers.get)
deserialize_constraint = _deserializing(hf.constraints.get)
deserialize_activation = _deserializing(hf.layers.activation_functions.activation)
_ROOMS = (
    hf.layers.Layer, hf.losses.Loss, hf.metrics.Metric, hf.optimizers.Optimizer, hf.initializers.Initializer,
    hf.regularizers.Regularizer, hf.constraints.Constraint,
)  # fmt: skip


@tf_export("keras.utils.deserialize_keras_object", "keras.saving.deserialize_keras_object")
def deserialize_keras_object(
    config: object, custom_objects: Mapping[str, Any] | None = None, safe_mode: bool = True
) -> Any:
    """``tf.keras.utils.deserialize_keras_object``: of any class that has a configuration."""
    if not isinstance(config, dict) or "class_name" not in config:
        return config
    known: dict[str, Any] = {}
    for base in _ROOMS:
        known |= kinds_of(base)
    with serialization.custom_objects(custom_objects or {}):
        return described(known, config, "deserialize_keras_object")


# ---- activations


def _of_one(formula: Callable[..., Any], name: str) -> Callable[..., Any]:
    def activation(x: TensorLike, *args: object, **options: object) -> Any:
        return formula(operand(x), *args, **options)

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"``tf.keras.activations.{name}``."
    return activation


(
    celu, glu, hard_shrink, hard_tanh, mish, soft_shrink, sparse_plus, sparse_sigmoid, sparsemax, squareplus,
    tanh_shrink, threshold,
) = (_of_one(formula, name) for name, formula in FURTHER.items())  # fmt: skip


# ---- losses as functions


@tf_export("keras.losses.categorical_hinge", "keras.metrics.categorical_hinge")
def categorical_hinge(y_true: ArrayLike, y_pred: ArrayLike) -> Any:
    """``tf.keras.losses.categorical_hinge``: the loss of each sample."""
    return hf.losses.CategoricalHinge(reduction="none")(y_true, y_pred)


@tf_export("keras.losses.binary_focal_crossentropy", "keras.metrics.binary_focal_crossentropy")
def binary_focal_crossentropy(
    y_true: ArrayLike, y_pred: ArrayLike, apply_class_balancing: bool = False, alpha: float = 0.25, gamma: float = 2.0,
    from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
) -> Any:  # fmt: skip
    """``tf.keras.losses.binary_focal_crossentropy``: the loss of each sample."""
    return hf.losses.BinaryFocalCrossentropy(
        apply_class_balancing=apply_class_balancing, alpha=alpha, gamma=gamma, from_logits=from_logits,
        label_smoothing=label_smoothing, axis=axis, reduction="none",
    )(y_true, y_pred)  # fmt: skip


@tf_export("keras.losses.categorical_focal_crossentropy", "keras.metrics.categorical_focal_crossentropy")
def categorical_focal_crossentropy(
    y_true: ArrayLike, y_pred: ArrayLike, alpha: float = 0.25, gamma: float = 2.0, from_logits: bool = False,
    label_smoothing: float = 0.0, axis: int = -1,
) -> Any:  # fmt: skip
    """``tf.keras.losses.categorical_focal_crossentropy``: the loss of each sample."""
    return hf.losses.CategoricalFocalCrossentropy(
        alpha=alpha, gamma=gamma, from_logits=from_logits, label_smoothing=label_smoothing, axis=axis,
        reduction="none",
    )(y_true, y_pred)  # fmt: skip


@tf_export("keras.losses.categorical_generalized_cross_entropy")
def categorical_generalized_cross_entropy(y_true: ArrayLike, y_pred: ArrayLike, q: float) -> Any:
    """``tf.keras.losses.categorical_generalized_cross_entropy``: the loss of each sample."""
    return hf.losses.CategoricalGeneralizedCrossEntropy(q=q, reduction="none")(y_true, y_pred)


@tf_export("keras.losses.dice")
def dice(y_true: ArrayLike, y_pred: ArrayLike, axis: AxisLike = None) -> Any:
    """``tf.keras.losses.dice``."""
    return hf.losses.Dice(axis=axis, reduction="none")(y_true, y_pred)


@tf_export("keras.losses.tversky")
def tversky(y_true: ArrayLike, y_pred: ArrayLike, alpha: float = 0.5, beta: float = 0.5, axis: AxisLike = None) -> Any:
    """``tf.keras.losses.tversky``."""
    return hf.losses.Tversky(alpha=alpha, beta=beta, axis=axis, reduction="none")(y_true, y_pred)


# ---- utilities


@tf_export("keras.utils.img_to_array", "keras.preprocessing.image.img_to_array")
def img_to_array(img: object, data_format: str | None = None, dtype: DTypeLike | None = None) -> np.ndarray:
    """``tf.keras.utils.img_to_array``: [height, width, channels], as float32."""
    array = np.asarray(img, "float32" if dtype is None else as_dtype(dtype).dtype)
    array = array[..., None] if array.ndim == 2 else array
    if array.ndim != 3:
        raise ArgumentError("img_to_array", f"the shape {array.shape} is that of no picture.")
    return np.moveaxis(array, -1, 0) if data_format == "channels_first" else array


@tf_export("keras.utils.array_to_img", "keras.preprocessing.image.array_to_img")
def array_to_img(
    x: TensorLike, data_format: str | None = None, scale: bool = True, dtype: DTypeLike | None = None
) -> Any:
    """``tf.keras.utils.array_to_img``: a picture of Pillow, which has to be installed."""
    from PIL import Image

    values = np.asarray(x.numpy() if hasattr(x, "numpy") else x, np.float32)
    values = np.moveaxis(values, 0, -1) if data_format == "channels_first" else values
    if scale:
        values = values - values.min()
        values = values / (values.max() or 1.0) * 255.0
    pixels = values.astype(np.uint8)
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


@tf_export("keras.utils.load_img", "keras.preprocessing.image.load_img")
def load_img(
    path: Any, color_mode: str = "rgb", target_size: tuple[int, int] | None = None, interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:  # fmt: skip
    """``tf.keras.utils.load_img``: a picture of Pillow, which has to be installed."""
    from PIL import Image

    kinds = {"rgb": "RGB", "rgba": "RGBA", "grayscale": "L"}
    if color_mode not in kinds:
        raise ArgumentError("load_img", f"color_mode is {color_mode!r}; it must be one of {', '.join(kinds)}.")
    result = Image.open(path).convert(kinds[color_mode])
    if target_size is None:
        return result
    high, wide = target_size
    box = None
    if keep_aspect_ratio:  # the largest part from the middle that has the target's ratio
        width, height = result.size
        part = min(width, height * wide // high), min(height, width * high // wide)
        left, top = (width - part[0]) // 2, (height - part[1]) // 2
        box = (left, top, left + part[0], top + part[1])
    return result.resize((wide, high), getattr(Image, interpolation.upper()), box)


@tf_export("keras.utils.save_img", "keras.preprocessing.image.save_img")
def save_img(
    path: object, x: TensorLike, data_format: str | None = None, file_format: object = None, scale: bool = True
) -> None:
    """``tf.keras.utils.save_img``, by Pillow, which has to be installed."""
    array_to_img(x, data_format, scale).save(path, format=file_format)


@tf_export("keras.utils.split_dataset")
def split_dataset(
    dataset: Any, left_size: Any = None, right_size: Any = None, shuffle: bool = False, seed: int | None = None,
    preferred_backend: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """``tf.keras.utils.split_dataset``: two datasets; sizes are counts, or shares of the whole."""
    whole = dataset if isinstance(dataset, hf.data.Dataset) else hf.data.Dataset.from_tensor_slices(_joined(dataset))
    count = int(whole.cardinality())
    if count < 0:
        count = sum(1 for _ in whole)
    whole = whole.shuffle(max(count, 1), seed, reshuffle_each_iteration=False) if shuffle else whole
    left, right = (
        None if size is None else round(size * count) if isinstance(size, float) else size
        for size in (left_size, right_size)
    )
    if left is None and right is None:
        raise ArgumentError("split_dataset", "give left_size, right_size, or both.")
    first = count - (right or 0) if left is None else left
    return whole.take(first), whole.skip(first).take(count - first if right is None else right)


def _joined(arrays: object) -> Any:
    return tuple(arrays) if isinstance(arrays, list) and len(arrays) and isinstance(arrays[0], np.ndarray) else arrays


@tf_export("keras.utils.pack_x_y_sample_weight")
def pack_x_y_sample_weight(x: TensorLike, y: TensorLike | None = None, sample_weight: TensorLike | None = None) -> Any:
    """``tf.keras.utils.pack_x_y_sample_weight``."""
    if y is None:
        return (x,) if isinstance(x, (list, tuple)) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


@tf_export("keras.utils.unpack_x_y_sample_weight")
def unpack_x_y_sample_weight(data: TensorLike) -> tuple[Any, Any, Any]:
    """``tf.keras.utils.unpack_x_y_sample_weight``."""
    parts: Sequence[Any] = tuple(data) if isinstance(data, (list, tuple)) else (data,)
    if not 1 <= len(parts) <= 3:
        raise ArgumentError("unpack_x_y_sample_weight", f"there are {len(parts)} parts, not x, y and sample_weight.")
    return (*parts, *[None] * (3 - len(parts)))


@tf_export("keras.utils.is_keras_tensor", "keras.backend.is_keras_tensor")
def is_keras_tensor(x: TensorLike) -> bool:
    """``tf.keras.utils.is_keras_tensor``: whether it is what ``Input`` and layers of it give."""
    return isinstance(x, Symbol)


@tf_export("keras.utils.standardize_dtype", "keras.backend.standardize_dtype")
def standardize_dtype(dtype: DTypeLike) -> str:
    """``tf.keras.utils.standardize_dtype``: a name."""
    return "float32" if dtype is None else as_dtype(dtype).name


@tf_export("keras.utils.get_custom_objects", "keras.saving.get_custom_objects")
def get_custom_objects() -> dict[str, Any]:
    """``tf.keras.utils.get_custom_objects``: what ``custom_object_scope`` has given."""
    return dict(serialization._custom_objects.get())


@tf_export("keras.utils.get_registered_name", "keras.saving.get_registered_name")
def get_registered_name(obj: Any) -> str:
    """``tf.keras.utils.get_registered_name``: of classes, their own."""
    return str(obj.__name__)


_UIDS: dict[str, int] = {}


@tf_export("keras.backend.get_uid")
def get_uid(prefix: str = "") -> int:
    """``tf.keras.backend.get_uid``: 1, 2, ... for each prefix."""
    _UIDS[prefix] = _UIDS.get(prefix, 0) + 1
    return _UIDS[prefix]


@tf_export("keras.utils.Progbar")
class Progbar:
    """``tf.keras.utils.Progbar``: a line of how far something is; ``values`` are averaged, but for those in
    ``stateful_metrics``."""

    def __init__(
        self, target: int | None, width: int = 20, verbose: int = 1, interval: float = 0.05,
        stateful_metrics: Any = None, unit_name: str = "step",
    ) -> None:  # fmt: skip
        self.target, self.width, self.verbose, self.unit_name = target, width, verbose, unit_name
        self._kept = set(stateful_metrics or ())
        self._sums: dict[str, tuple[float, float]] = {}
        self._seen, self._begun = 0, time.perf_counter()

    def update(self, current: int, values: Iterable[Any] | None = None, finalize: bool | None = None) -> None:
        """Say that ``current`` steps are done, with (name, value) pairs."""
        for name, value in values or ():
            steps = max(current - self._seen, 1)
            total, count = self._sums.get(name, (0.0, 0.0))
            kept = name in self._kept
            self._sums[name] = (float(value), 1.0) if kept else (total + float(value) * steps, count + steps)
        self._seen = current
        done = current == self.target if finalize is None else finalize
        if not self.verbose or (self.verbose == 2 and not done):
            return
        said = " - ".join(f"{name}: {total / max(count, 1):.4f}" for name, (total, count) in self._sums.items())
        share = 0.0 if not self.target else min(current / self.target, 1.0)
        bar = "=" * math.floor(share * self.width) + "." * (self.width - math.floor(share * self.width))
        seconds = time.perf_counter() - self._begun
        line = f"{current}/{self.target or '?'} [{bar}] {seconds:.0f}s" + (f" - {said}" if said else "")
        print(line, end="\n" if done else "\r", flush=True)

    def add(self, n: int, values: Sequence[tuple[str, Any]] | None = None) -> None:
        """Say that ``n`` more steps are done."""
        self.update(self._seen + n, values)


@tf_export("keras.mixed_precision.dtype_policy")
def dtype_policy() -> Any:
    """``tf.keras.mixed_precision.dtype_policy``."""
    return hf.mixed_precision.global_policy()


# ---- backend


@tf_export("keras.backend.batch_dot")
def batch_dot(x: TensorLike, y: TensorLike, axes: Any = None) -> Any:
    """``tf.keras.backend.batch_dot``: over one axis of each, within the batch."""
    a, b = operand(x), operand(y)
    if axes is None:
        axes = (a.ndim - 1, max(b.ndim - 2, 1))
    first, second = (axes, axes) if isinstance(axes, int) else axes
    first, second = first % a.ndim, second % b.ndim
    if not first or not second:
        raise ArgumentTypeError("batch_dot", f"axes are {axes}; axis 0 is the batch.")
    left, right = list(range(1, a.ndim)), list(range(a.ndim, a.ndim + b.ndim - 1))
    right[second - 1] = left[first - 1]
    out = [k for k in left if k != left[first - 1]] + [k for k in right if k != left[first - 1]]
    letters = "zabcdefghijklmnop"
    text = lambda ks: "z" + "".join(letters[k] for k in ks)  # noqa: E731
    products = hf.einsum(f"{text(left)},{text(right)}->{text(out)}", a, b)
    return products if out else products[:, None]


@tf_export("keras.backend.batch_flatten")
def batch_flatten(x: TensorLike) -> Any:
    """``tf.keras.backend.batch_flatten``."""
    value = operand(x)
    return hf.reshape(value, (value.shape[0], -1))


@tf_export("keras.backend.switch")
def switch(condition: TensorLike, then_expression: TensorLike, else_expression: TensorLike) -> Any:
    """``tf.keras.backend.switch``: of two values, or of two functions."""
    chosen = operand(condition)
    if callable(then_expression) and callable(else_expression):
        return hf.cond(chosen, then_expression, else_expression)
    a, b = operand(then_expression), operand(else_expression)
    while chosen.ndim < a.ndim:
        chosen = chosen[..., None]
    return hf.where(chosen, a, b)


@tf_export("keras.backend.random_bernoulli")
def random_bernoulli(shape: Any, p: float = 0.0, dtype: object = None, seed: Any = None) -> Any:
    """``tf.keras.backend.random_bernoulli``."""
    from hybridflow.compat.adapters.draws import generator_of

    return hf.astype(generator_of(seed).bernoulli(p, tuple(shape)), as_dtype(dtype or "float32").dtype)


@tf_export("keras.backend.gradients")
def gradients(loss: object, variables: object) -> Any:
    """``tf.keras.backend.gradients``: there is none where operations run at once."""
    raise ArgumentError("gradients", "operations run at once: record them with tf.GradientTape, and ask that.")


@tf_export("keras.backend.repeat_elements")
def repeat_elements(x: TensorLike, rep: int, axis: int) -> Any:
    """``tf.keras.backend.repeat_elements``."""
    return hf.repeat(operand(x), rep, axis=axis)


@tf_export("keras.backend.repeat")
def repeat(x: TensorLike, n: int) -> Any:
    """``tf.keras.backend.repeat``: rows [batch, features] as [batch, n, features]."""
    return hf.repeat(hf.expand_dims(operand(x), axis=1), n, axis=1)


@tf_export("keras.backend.reverse")
def reverse(x: TensorLike, axes: AxisLike) -> Any:
    """``tf.keras.backend.reverse``."""
    return hf.flip(operand(x), tuple(axes) if isinstance(axes, list) else axes)


def _updating(method: str) -> Callable[..., Any]:
    def update(x: object, value: object) -> Any:
        return getattr(x, method)(value)

    return update


update, update_add, update_sub = _updating("assign"), _updating("assign_add"), _updating("assign_sub")


@tf_export("keras.backend.moving_average_update")
def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    """``tf.keras.backend.moving_average_update``."""
    return x.assign(momentum * x + (1.0 - momentum) * value)


@tf_export("keras.backend.batch_get_value")
def batch_get_value(tensors: Iterable[Any]) -> list[np.ndarray]:
    """``tf.keras.backend.batch_get_value``."""
    return [x.numpy() for x in tensors]


@tf_export("keras.backend.batch_set_value")
def batch_set_value(tuples: Iterable[Any]) -> None:
    """``tf.keras.backend.batch_set_value``."""
    for variable, value in tuples:
        variable.assign(value)


@tf_export("keras.backend.count_params")
def count_params(x: Any) -> int:
    """``tf.keras.backend.count_params``."""
    return int(np.prod(x.shape))


@tf_export("keras.backend.dtype")
def k_dtype(x: TensorLike) -> str:
    """``tf.keras.backend.dtype``: a name."""
    return str(operand(x).dtype.name)


@tf_export("keras.backend.spatial_2d_padding")
def spatial_2d_padding(
    x: TensorLike, padding: str | Sequence[Sequence[SupportsIndex]] = ((1, 1), (1, 1)), data_format: str | None = None
) -> Any:
    """``tf.keras.backend.spatial_2d_padding``."""
    inner = [tuple(pair) for pair in padding]
    return hf.pad(operand(x), [(0, 0), (0, 0), *inner] if data_format == "channels_first" else [(0, 0), *inner, (0, 0)])


@tf_export("keras.backend.temporal_padding")
def temporal_padding(x: TensorLike, padding: str | Sequence[object] = (1, 1)) -> Any:
    """``tf.keras.backend.temporal_padding``."""
    return hf.pad(operand(x), [(0, 0), tuple(padding), (0, 0)])


@tf_export(
    "keras.applications.mobilenet_v3.preprocess_input",
    "keras.applications.efficientnet.preprocess_input",
    "keras.applications.convnext.preprocess_input",
)
def unscaled(x: TensorLike, data_format: object = None) -> Any:
    """``preprocess_input`` of models that scale pictures themselves: the pictures as they are."""
    return x


export(deserialize_layer, "keras.layers.deserialize")
export(deserialize_optimizer, "keras.optimizers.deserialize")
export(deserialize_schedule, "keras.optimizers.schedules.deserialize")
export(deserialize_loss, "keras.losses.deserialize")
export(deserialize_metric, "keras.metrics.deserialize")
export(deserialize_initializer, "keras.initializers.deserialize")
export(deserialize_regularizer, "keras.regularizers.deserialize")
export(deserialize_constraint, "keras.constraints.deserialize")
export(celu, "keras.activations.celu", "keras.ops.celu")
export(glu, "keras.activations.glu", "keras.ops.glu")
export(threshold, "keras.activations.threshold", "keras.ops.threshold")
export(sparsemax, "keras.activations.sparsemax", "keras.ops.sparsemax")
export(squareplus, "keras.activations.squareplus", "keras.ops.squareplus")
export(sparse_plus, "keras.activations.sparse_plus", "keras.ops.sparse_plus")
export(mish, "keras.activations.mish", "keras.ops.mish")
export(hard_tanh, "keras.activations.hard_tanh", "keras.ops.hard_tanh")
export(sparse_sigmoid, "keras.activations.sparse_sigmoid", "keras.ops.sparse_sigmoid")
export(tanh_shrink, "keras.activations.tanh_shrink", "keras.ops.tanh_shrink")
export(hard_shrink, "keras.activations.hard_shrink", "keras.ops.hard_shrink")
export(soft_shrink, "keras.activations.soft_shrink", "keras.ops.soft_shrink")
export(deserialize_activation, "keras.activations.deserialize")
export(serialize_keras_object, "keras.utils.serialize_keras_object", "keras.saving.serialize_keras_object")
export(update, "keras.backend.update")
export(update_add, "keras.backend.update_add")
export(update_sub, "keras.backend.update_sub")
