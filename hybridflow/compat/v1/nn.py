"""``tf.nn`` of TensorFlow 1: its arguments over hybridflow's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import hybridflow as hf
from hybridflow.array.random import global_generator
from hybridflow.compat.adapters import candidates
from hybridflow.compat.tf import nn as network
from hybridflow.compat.v1.arguments import as_extents, as_ints
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.functions import TABLE as FUNCTIONS
from hybridflow.compat.v1.recording import Recorded, as_graph_tensor, is_symbolic
from hybridflow.compiler.ir import dtypes

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


TABLE: dict[str, Any] = {name: FUNCTIONS[name] for name in ("tanh", "sigmoid")}


def op(
    type: str, *names: str, default: str | None = None, draws: bool = False
) -> Callable[[Callable[..., Any]], Recorded]:
    """Enter a function into the table of ``tf.nn``, see ``functions.op``."""

    def enter(function: Callable[..., Any]) -> Recorded:
        recorded = Recorded(function, type, default, draws)
        for name in names or (function.__name__,):
            TABLE[name] = recorded
        return recorded

    return enter


def _of_features(apply_to_features: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(features: TensorLike) -> Any:
        return apply_to_features(features)

    apply.__doc__ = apply_to_features.__doc__
    return apply


for _name, _type in {
    "relu": "Relu", "relu6": "Relu6", "elu": "Elu", "selu": "Selu", "softplus": "Softplus", "softsign": "Softsign",
    "swish": "Swish", "gelu": "Gelu",
}.items():  # fmt: skip
    TABLE[_name] = Recorded(_of_features(getattr(hf.nn, _name)), _type)


@op("LeakyRelu")
def leaky_relu(features: ArrayLike, alpha: float = 0.2) -> Any:
    return hf.nn.leaky_relu(features, alpha)


@op("Softmax")
def softmax(logits: Any, axis: Any = None, dim: Any = None) -> Any:
    place = dim if axis is None else axis
    return hf.nn.softmax(logits, axis=-1 if place is None else place)


@op("LogSoftmax")
def log_softmax(logits: Any, axis: Any = None, dim: Any = None) -> Any:
    place = dim if axis is None else axis
    return hf.nn.log_softmax(logits, axis=-1 if place is None else place)


def _named(labels: object, logits: object, what: str) -> None:
    if labels is None or logits is None:
        raise ValueError(f"Only call `{what}` with named arguments (labels=..., logits=..., ...)")


_softmax_loss = Recorded(
    lambda labels, logits, axis: hf.losses.softmax_cross_entropy(
        hf.astype(hf.asarray(labels), logits.dtype), logits, axis, reduction="none"
    ),
    "SoftmaxCrossEntropyWithLogits",
    "softmax_cross_entropy_with_logits",
)
_sparse_loss = Recorded(
    lambda labels, logits: hf.losses.softmax_cross_entropy(labels, logits, reduction="none"),
    "SparseSoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
)
_sigmoid_loss = Recorded(
    lambda labels, logits: hf.losses.sigmoid_cross_entropy(
        hf.astype(hf.asarray(labels), logits.dtype), logits, reduction="none"
    ),
    "SigmoidCrossEntropy",
    "logistic_loss",
)


def softmax_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: object = None,
    logits: ArrayLike | None = None,
    dim: Any = -1,
    name: str | None = None,
    axis: Any = None,
) -> Any:
    """One loss for each row of logits, with labels that are probabilities."""
    _named(labels, logits, "softmax_cross_entropy_with_logits")
    return _softmax_loss(
        labels, logits if is_symbolic(logits) else convert_to_tensor(logits), dim if axis is None else axis, name=name
    )


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """The same with numbers of classes as labels."""
    _named(labels, logits, "sparse_softmax_cross_entropy_with_logits")
    return _sparse_loss(labels, logits, name=name)


def sigmoid_cross_entropy_with_logits(
    _sentinel: object = None, labels: object = None, logits: ArrayLike | None = None, name: str | None = None
) -> Any:
    """One loss for each element."""
    _named(labels, logits, "sigmoid_cross_entropy_with_logits")
    return _sigmoid_loss(labels, logits if is_symbolic(logits) else convert_to_tensor(logits), name=name)


TABLE.update(
    softmax_cross_entropy_with_logits=softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2=softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits=sparse_softmax_cross_entropy_with_logits,
    sigmoid_cross_entropy_with_logits=sigmoid_cross_entropy_with_logits,
)


@op("WeightedCrossEntropy")
def weighted_cross_entropy_with_logits(
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    pos_weight: ArrayLike | None = None,
    targets: TensorLike | None = None,
) -> Any:
    return network.weighted_cross_entropy_with_logits(targets if labels is None else labels, logits, pos_weight)


@op("L2Loss")
def l2_loss(t: ArrayLike) -> Any:
    return hf.sum(hf.square(t)) / 2


@op("L2Normalize", default="l2_normalize")
def l2_normalize(
    x: ArrayLike, axis: TensorLike | None = None, epsilon: float = 1e-12, dim: TensorLike | None = None
) -> Any:
    place = as_ints(dim if axis is None else axis)
    total = hf.sum(hf.square(x), axis=tuple(place) if isinstance(place, list) else place, keepdims=True)
    return x * hf.rsqrt(hf.maximum(total, epsilon))


@op("BiasAdd")
def bias_add(value: Any, bias: ArrayLike, data_format: object = None) -> Any:
    if data_format in ("NCHW", "NCDHW"):
        bias = hf.reshape(bias, (-1, *[1] * (len(value.shape) - 2)))
    return value + bias


@op("XwPlusB", default="xw_plus_b")
def xw_plus_b(x: ArrayLike, weights: ArrayLike, biases: object) -> Any:
    return hf.matmul(x, weights) + biases


def _dropped(x: Any, rate: Any, noise_shape: Any = None, generator: Any = None) -> Any:
    source = global_generator() if generator is None else generator
    if isinstance(rate, (int, float)) and rate == 0:
        return x
    shape = (
        x.shape
        if noise_shape is None
        else tuple(
            [
                own_extent if extent in (None, -1) else extent
                for own_extent, extent in zip(x.shape, as_extents(noise_shape))
            ]
        )
    )
    keeps = source.uniform(shape, 0.0, 1.0, x.dtype) >= rate
    return hf.where(keeps, x / (1 - rate), hf.zeros_like(x))


_dropout = Recorded(_dropped, "Dropout", "dropout", draws=True)


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """Elements set to 0 with probability ``rate``, or ``1 - keep_prob``, the others scaled up."""
    if keep_prob is None and rate is None:
        raise ValueError("You must provide a rate to dropout.")
    if rate is None and not is_symbolic(keep_prob) and not 0 < keep_prob <= 1:
        raise ValueError(f"keep_prob must be in (0, 1], got {keep_prob!r}.")
    result = _dropout(x, 1 - keep_prob if rate is None else rate, noise_shape, name=name, op_seed=seed)
    if is_symbolic(x) and is_symbolic(result):
        result.set_shape(as_graph_tensor(x).shape)
    return result


TABLE["dropout"] = dropout


def _steps(sizes: Any, data_format: object) -> Any:
    """Strides as hybridflow takes them: of the inner axes."""
    if isinstance(sizes, int):
        return sizes
    values = list(sizes)
    if len(values) == 4:
        return values[2:] if data_format == "NCHW" else values[1:3]
    return values


def _padding(padding: Any) -> Any:
    if isinstance(padding, str):
        return padding
    return [tuple(x) for x in list(padding)[1:3]]


@op("Conv2D")
def conv2d(
    input: ArrayLike,
    filter: Any = None,
    strides: object = None,
    padding: object = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: object = (1, 1, 1, 1),
    filters: Any = None,
) -> Any:
    return hf.nn.conv2d(
        input,
        filters if filter is None else filter,
        _steps(strides, data_format),
        _padding(padding),
        data_format,
        _steps(dilations, data_format),
    )


@op("Conv2DBackpropInput", default="conv2d_transpose")
def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: object = None,
    padding: str = "SAME",
    data_format: str = "NHWC",
    input: Any = None,
    filters: Any = None,
) -> Any:
    return hf.nn.conv2d_transpose(
        input if value is None else value,
        filters if filter is None else filter,
        as_extents(output_shape),
        _steps(strides, data_format),
        padding,
        data_format,
    )


@op("MaxPool")
def max_pool(
    value: Any = None,
    ksize: object = None,
    strides: object = None,
    padding: Any = None,
    data_format: str = "NHWC",
    input: Any = None,
) -> Any:
    return hf.nn.max_pool2d(
        input if value is None else value,
        _steps(ksize, data_format),
        _steps(strides, data_format),
        padding,
        data_format,
    )


@op("AvgPool")
def avg_pool(
    value: Any = None,
    ksize: object = None,
    strides: object = None,
    padding: Any = None,
    data_format: str = "NHWC",
    input: Any = None,
) -> Any:
    return hf.nn.avg_pool2d(
        input if value is None else value,
        _steps(ksize, data_format),
        _steps(strides, data_format),
        padding,
        data_format,
    )


@op("Moments", default="moments")
def moments(
    x: ArrayLike, axes: TensorLike, shift: TensorLike | None = None, keep_dims: object = None, keepdims: object = None
) -> Any:
    places = as_ints(axes)
    mean_and_variance = hf.nn.moments(
        x, tuple(places) if isinstance(places, list) else places, keepdims=bool(keepdims or keep_dims)
    )
    return tuple(mean_and_variance)


@op("BatchNorm", default="batchnorm")
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: TensorLike,
    variance_epsilon: Any,
) -> Any:
    factor = hf.rsqrt(variance + variance_epsilon)
    factor = factor if scale is None else factor * scale
    return x * factor + ((0 if offset is None else offset) - mean * factor)


@op("LRN", "local_response_normalization", "lrn", default="LRN")
def local_response_normalization(
    input: TensorLike, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5
) -> Any:
    return network.local_response_normalization(input, depth_radius, bias, alpha, beta)


@op("GatherV2", default="embedding_lookup")
def embedding_lookup(
    params: TensorLike,
    ids: TensorLike,
    partition_strategy: str = "mod",
    validate_indices: bool = True,
    max_norm: object = None,
) -> Any:
    return network.embedding_lookup(_whole(params, partition_strategy), ids, max_norm)


def _whole(params: object, strategy: str) -> Any:
    """A table of rows that may be in several parts: ``"mod"`` deals the rows out in turns, ``"div"`` in runs."""
    if not isinstance(params, (list, tuple)):
        return params
    if strategy == "div" or len(params) == 1:
        return hf.concat(list(params), axis=0)
    if strategy != "mod":
        raise ValueError(f"Unrecognized partition strategy: {strategy}")
    counts = [part.shape[0] for part in params]
    starts = [sum(counts[:k]) for k in range(len(counts))]
    places = [starts[k % len(counts)] + k // len(counts) for k in range(sum(counts))]
    return hf.take(hf.concat(list(params), axis=0), hf.asarray(places), axis=0)


class TopKV2(NamedTuple):
    """The greatest elements, and where they are."""

    values: Any
    indices: object


@op("TopKV2")
def top_k(input: ArrayLike, k: int = 1, sorted: bool = True) -> Any:
    values, places = hf.top_k(input, k)
    return TopKV2(values, hf.astype(places, dtypes.int32))


@op("InTopK")
def in_top_k(predictions: ArrayLike, targets: ArrayLike, k: int) -> Any:
    target_scores = hf.take_along_axis(predictions, hf.expand_dims(hf.astype(targets, dtypes.int64), -1), axis=-1)
    return hf.sum(hf.astype(predictions > target_scores, dtypes.int32), axis=-1) < k


def _over_candidates(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A loss over classes drawn by chance, of tables that may be in several parts."""

    def apply(
        weights: TensorLike,
        biases: TensorLike,
        labels: object,
        inputs: object,
        counts: Any,
        candidates: Any,
        strategy: str,
        hits_removed: bool,
        generator: Any = None,
    ) -> Any:
        tables = [_whole(table, strategy) for table in (weights, biases)]
        return loss(*tables, labels, inputs, *counts, candidates, hits_removed, seed=generator)

    return apply


_nce_loss = Recorded(_over_candidates(candidates.nce_loss), "NceLoss", "nce_loss", draws=True)
_sampled_loss = Recorded(
    _over_candidates(candidates.sampled_softmax_loss), "SampledSoftmaxLoss", "sampled_softmax_loss", draws=True
)


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: TensorLike | None = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = None,
) -> Any:
    """Noise-contrastive losses: true classes against some that are drawn log-uniformly, each time anew, or are
    ``sampled_values``: classes, and how often the true ones and they were expected."""
    counts = (num_sampled, num_classes, num_true)
    return _nce_loss(
        weights, biases, labels, inputs, counts, sampled_values, partition_strategy, remove_accidental_hits, name=name
    )


def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: TensorLike | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """Softmax losses over true classes and some that are drawn as for ``nce_loss``."""
    counts = (num_sampled, num_classes, num_true)
    return _sampled_loss(
        weights, biases, labels, inputs, counts, sampled_values, partition_strategy, remove_accidental_hits,
        name=name, op_seed=seed,
    )  # fmt: skip


TABLE.update(nce_loss=nce_loss, sampled_softmax_loss=sampled_softmax_loss)
__all__ = ["TABLE"]
