"""``tf.random``: shapes come first, and an op's own seed means a stream of its own."""

from __future__ import annotations

import enum
from typing import Any

import hybridflow as hf
from hybridflow.compat.adapters.values import axes, extents, operand
from hybridflow.compat.export import tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended
from hybridflow.errors import ArgumentError

_streams: dict[int, Any] = {}  # of ops that were given a seed, since the global one was set


def generator_of(seed: Any) -> Any:
    """The generator behind an op that was given ``seed``, None for none; a generator is itself."""
    if isinstance(seed, hf.random.Generator):
        return seed
    if seed is None:
        return hf.random.global_generator()
    if seed not in _streams:
        with suspended():  # its state must not belong to a trace that happens to be the first to draw
            _streams[seed] = hf.random.Generator(int(seed))
    return _streams[seed]


@tf_export("random.set_seed")
def set_seed(seed: int) -> None:
    """``tf.random.set_seed``."""
    _streams.clear()
    hf.random.set_seed(int(seed))


@tf_export("random.normal", "keras.random.normal")
def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.random.normal``."""
    return generator_of(seed).normal(extents(axes(shape)), mean, stddev, dtype)


@tf_export("random.truncated_normal", "keras.random.truncated_normal")
def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.random.truncated_normal``."""
    return generator_of(seed).truncated_normal(extents(axes(shape)), mean, stddev, dtype)


@tf_export("random.uniform", "keras.random.uniform")
def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, seed: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.random.uniform``: floats below 1, or ints below ``maxval``."""
    source, sizes = generator_of(seed), extents(axes(shape))
    if dtypes.is_integer(hf.zeros((), dtype).dtype):
        if maxval is None:
            raise ArgumentError("random.uniform", "ints need a maxval.")
        return source.randint(sizes, minval, maxval, dtype)
    return source.uniform(sizes, minval, 1.0 if maxval is None else maxval, dtype)


@tf_export("random.gamma", "keras.random.gamma")
def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: Any = None, name: str | None = None
) -> Any:
    """``tf.random.gamma``: ``shape`` draws of each pair of parameters."""
    a, b = hf.broadcast_arrays(hf.asarray(alpha, dtype), hf.asarray(1.0 if beta is None else beta, dtype))
    return generator_of(seed).gamma((*extents(axes(shape)), *a.shape), a, b, dtype)


@tf_export("random.poisson")
def poisson(shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: Any = None, name: str | None = None) -> Any:
    """``tf.random.poisson``: ``shape`` draws of each rate."""
    rate = hf.asarray(lam, dtypes.float32)
    draws = generator_of(seed).poisson((*extents(axes(shape)), *rate.shape), rate)
    return hf.astype(draws, dtype)


@tf_export("random.categorical", "keras.random.categorical")
def categorical(
    logits: Any, num_samples: int, dtype: Any = dtypes.int64, seed: Any = None, name: str | None = None
) -> Any:
    """``tf.random.categorical``: ``num_samples`` for each row."""
    scores = operand(logits)
    draws = generator_of(seed).categorical(scores, (int(num_samples),))
    return hf.astype(hf.matrix_transpose(draws), dtype)


@tf_export("random.shuffle", "keras.random.shuffle")
def shuffle(value: Any, seed: Any = None, name: str | None = None) -> Any:
    """``tf.random.shuffle``: along the first axis."""
    x = operand(value)
    return hf.take(x, generator_of(seed).permutation(x.shape[0]), axis=0)


@tf_export("random.stateless_uniform")
def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32,
    name: str | None = None, alg: Any = None,
) -> Any:  # fmt: skip
    """``tf.random.stateless_uniform``."""
    sizes = extents(axes(shape))
    if dtypes.is_integer(hf.zeros((), dtype).dtype):
        return hf.random.stateless_randint(sizes, seed, minval, maxval, dtype)
    return hf.random.stateless_uniform(sizes, seed, minval, 1.0 if maxval is None else maxval, dtype)


@tf_export("random.stateless_normal")
def stateless_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
    name: str | None = None, alg: Any = None,
) -> Any:  # fmt: skip
    """``tf.random.stateless_normal``."""
    return hf.random.stateless_normal(extents(axes(shape)), seed, mean, stddev, dtype)


@tf_export("random.stateless_truncated_normal")
def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
    name: str | None = None, alg: Any = None,
) -> Any:  # fmt: skip
    """``tf.random.stateless_truncated_normal``."""
    return hf.random.stateless_truncated_normal(extents(axes(shape)), seed, mean, stddev, dtype)


@tf_export("random.stateless_categorical")
def stateless_categorical(
    logits: Any, num_samples: int, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Any:
    """``tf.random.stateless_categorical``."""
    scores = operand(logits)
    draws = hf.random.stateless_categorical(scores, seed, (int(num_samples),))
    return hf.astype(hf.matrix_transpose(draws), dtype)


@tf_export("random.experimental.stateless_shuffle")
def stateless_shuffle(value: Any, seed: Any, alg: Any = None, name: str | None = None) -> Any:
    """``tf.random.experimental.stateless_shuffle``."""
    return hf.random.stateless_shuffle(operand(value), seed)


@tf_export("keras.random.randint")
def keras_randint(shape: Any, minval: Any, maxval: Any, dtype: Any = dtypes.int32, seed: Any = None) -> Any:
    """``keras.random.randint``."""
    return uniform(shape, minval, maxval, dtype, seed)


@tf_export("random.Algorithm", "random.experimental.Algorithm")
class Algorithm(enum.Enum):
    """``tf.random.Algorithm``: streams are Philox's."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


@tf_export("random.set_global_generator", "random.experimental.set_global_generator")
def set_global_generator(generator: Any) -> None:
    """``tf.random.set_global_generator``: the global one goes on where this one is."""
    hf.random.global_generator().state.assign(generator.state)


@tf_export("random.create_rng_state", "random.experimental.create_rng_state")
def create_rng_state(seed: Any, alg: Any = None) -> Any:
    """``tf.random.create_rng_state``: what ``Generator.from_state`` takes."""
    return hf.random.Generator(int(seed)).state.value()


@tf_export("random.stateless_gamma")
def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Any:
    """``tf.random.stateless_gamma``."""
    sizes = extents(axes(shape))
    a, b = (hf.broadcast_to(hf.asarray(x, dtype), sizes) for x in (alpha, 1.0 if beta is None else beta))
    return hf.random.stateless_gamma(sizes, seed, a, b, dtype)


@tf_export("random.stateless_poisson")
def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """``tf.random.stateless_poisson``."""
    return hf.astype(hf.random.stateless_poisson(extents(axes(shape)), seed, operand(lam)), dtype)


@tf_export("random.stateless_binomial")
def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dtypes.int32, name: str | None = None
) -> Any:
    """``tf.random.stateless_binomial``."""
    draws = hf.random.stateless_binomial(extents(axes(shape)), seed, operand(counts), operand(probs))
    return hf.astype(draws, output_dtype)
