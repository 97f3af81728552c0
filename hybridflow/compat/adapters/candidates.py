"""Classes drawn by chance, and losses over them instead of all: samplers of ``tf.random``, losses of ``tf.nn``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.draws import generator_of
from hybridflow.compat.adapters.values import operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


class Candidates(NamedTuple):
    """What a sampler returns: classes, how often each of the true ones and of those is expected to be drawn."""

    sampled_candidates: object
    true_expected_count: object
    sampled_expected_count: object


def _drawn(
    true_classes: TensorLike, count: int, unique: bool, chances: ArrayLike, seed: object, stage: str
) -> Candidates:
    """``count`` classes with these chances.  Without repetition: those with the largest keys ``log(chance) + Gumbel``,
    as the first ``count`` different ones of an endless row of draws are.  Raises ArgumentError for too many."""
    logits = hf.astype(hf.log(chances), dtypes.float32)
    classes = logits.shape[0]
    source = generator_of(seed)
    if unique and count > classes:
        raise ArgumentError(stage, f"num_sampled is {count}, of {classes} classes that are all to be different.")
    if unique:
        noise = -hf.log(-hf.log(hf.maximum(source.uniform((classes,)), 1e-30)))
        _, drawn = hf.top_k(logits + noise, count)
    else:
        drawn = source.categorical(logits, (count,))
    share = hf.astype(chances, dtypes.float32)
    if unique:  # how often one is among them, in as many tries as that takes about
        tries = _tries(np.asarray(chances), count)
        expected = -hf.expm1(tries * hf.log1p(-hf.minimum(share, 1.0 - 1e-7)))
    else:
        expected = share * count
    true = hf.astype(operand(true_classes), dtypes.int64)
    return Candidates(hf.astype(drawn, dtypes.int64), hf.take(expected, true), hf.take(expected, drawn))


def _tries(chances: np.ndarray, count: int) -> float:
    """After how many draws about ``count`` different classes were drawn: where the expected number is that."""
    if count >= len(chances):
        return 1e9
    low, high = float(count), float(count)
    seen = lambda tries: -np.expm1(tries * np.log1p(-np.minimum(chances, 1 - 1e-12))).sum()  # noqa: E731
    while seen(high) < count and high < 1e12:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if seen(middle) < count else (low, middle)
    return high


@tf_export("random.log_uniform_candidate_sampler")
def log_uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: object = None,
    name: str | None = None,
) -> Candidates:  # fmt: skip
    """``tf.random.log_uniform_candidate_sampler``: class k with the chance ``log((k + 2) / (k + 1)) / log(n + 1)``."""
    numbers = np.arange(range_max, dtype=np.float64)
    chances = np.log((numbers + 2) / (numbers + 1)) / np.log(range_max + 1)
    return _drawn(true_classes, num_sampled, unique, chances, seed, "log_uniform_candidate_sampler")


@tf_export("random.uniform_candidate_sampler")
def uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: object = None,
    name: str | None = None,
) -> Candidates:  # fmt: skip
    """``tf.random.uniform_candidate_sampler``: all classes alike."""
    chances = np.full(range_max, 1.0 / range_max)
    return _drawn(true_classes, num_sampled, unique, chances, seed, "uniform_candidate_sampler")


@tf_export("nn.learned_unigram_candidate_sampler", "random.learned_unigram_candidate_sampler")
def learned_unigram_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: object = None,
    name: str | None = None,
) -> Candidates:  # fmt: skip
    """``tf.random.learned_unigram_candidate_sampler``: as often as they are among the true classes, and once more."""
    counts = np.bincount(np.asarray(operand(true_classes).numpy()).reshape(-1), minlength=range_max) + 1.0
    return _drawn(true_classes, num_sampled, unique, counts / counts.sum(), seed, "learned_unigram_candidate_sampler")


@tf_export("nn.fixed_unigram_candidate_sampler", "random.fixed_unigram_candidate_sampler")
def fixed_unigram_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, vocab_file: str = "",
    distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1, shard: int = 0, unigrams: Any = (),
    seed: object = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """``tf.random.fixed_unigram_candidate_sampler``, of ``unigrams``, the weights of the classes."""
    weights = np.asarray([0.0] * num_reserved_ids + list(unigrams), np.float64) ** distortion
    weights[:num_reserved_ids] = 0.0
    if vocab_file or len(weights) != range_max or num_shards != 1:
        raise ArgumentError("fixed_unigram_candidate_sampler", f"give unigrams, a weight for each of {range_max}.")
    return _drawn(true_classes, num_sampled, unique, weights / weights.sum(), seed, "fixed_unigram_candidate_sampler")


@tf_export("nn.all_candidate_sampler", "random.all_candidate_sampler")
def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: object = None,
    name: str | None = None,
) -> Candidates:
    """``tf.random.all_candidate_sampler``: every class once."""
    true = operand(true_classes)
    return Candidates(hf.arange(num_sampled), hf.ones(true.shape), hf.ones((num_sampled,)))


def _scores(
    weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: int,
    num_classes: int, num_true: int,
    sampled_values: Iterable[Any], remove_accidental_hits: bool, seed: object,
) -> tuple[Any, Any]:  # fmt: skip
    """Scores of the true classes and of those that were drawn, less the logarithms of how often they are expected; and
    what the labels of these are."""
    table = hf.concat(list(weights), axis=0) if isinstance(weights, (list, tuple)) else operand(weights)
    true = hf.reshape(hf.astype(operand(labels), dtypes.int64), (-1, num_true))
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(true, num_true, num_sampled, True, num_classes, seed)
    drawn, often, drawn_often = (hf.stop_gradient(x) for x in sampled_values)
    x, bias = operand(inputs), operand(biases)
    true_scores = hf.sum(hf.take(table, true, axis=0) * x[:, None, :], axis=-1) + hf.take(bias, true)
    others = hf.matmul(x, hf.matrix_transpose(hf.take(table, drawn, axis=0))) + hf.take(bias, drawn)
    if remove_accidental_hits:
        hits = hf.any(true[:, :, None] == drawn[None, None, :], axis=1)
        others = hf.where(hits, hf.asarray(np.finfo(np.float32).min, others.dtype), others)
    true_scores, others = true_scores - hf.log(often), others - hf.log(drawn_often)
    labelled = hf.concat([hf.ones_like(true_scores) / num_true, hf.zeros_like(others)], axis=1)
    return hf.concat([true_scores, others], axis=1), labelled


@tf_export("nn.nce_loss")
def nce_loss(
    weights: ArrayLike,
    biases: ArrayLike,
    labels: ArrayLike,
    inputs: ArrayLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = None,
    seed: object = None,
) -> Any:
    """``tf.nn.nce_loss``: of each example."""
    scores, labelled = _scores(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        seed,
    )  # fmt: skip
    return hf.sum(hf.losses.sigmoid_cross_entropy(labelled, scores, reduction="none"), axis=-1)


@tf_export("nn.sampled_softmax_loss")
def sampled_softmax_loss(
    weights: ArrayLike,
    biases: ArrayLike,
    labels: ArrayLike,
    inputs: ArrayLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: object = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.sampled_softmax_loss``: of each example."""
    scores, labelled = _scores(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        seed,
    )  # fmt: skip
    return hf.losses.softmax_cross_entropy(hf.stop_gradient(labelled), scores, reduction="none")
