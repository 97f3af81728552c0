"""``tf.random``: shapes come first, and an op's own seed means a stream of its own."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.compat.adapters import streams
from hybridflow.compat.adapters.values import axes, extents, operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended
from hybridflow.core.type_aliases import ShapeLike
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


_generator: object = None  # the global one, once it is asked for
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


@tf_export("random.normal")
def normal(
    shape: object, mean: Any = 0.0, stddev: Any = 1.0, dtype: object = dtypes.float32, seed: object = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.random.normal``."""
    return generator_of(seed).normal(extents(axes(shape)), mean, stddev, dtype)


@tf_export("random.truncated_normal")
def truncated_normal(
    shape: object,
    mean: ArrayLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: object = None,
    name: str | None = None,
) -> Any:
    """``tf.random.truncated_normal``."""
    return generator_of(seed).truncated_normal(extents(axes(shape)), mean, stddev, dtype)


@tf_export("random.uniform")
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: Any = None,
    name: str | None = None,
) -> Any:
    """``tf.random.uniform``: floats below 1, or ints below ``maxval``."""
    source, sizes = generator_of(seed), extents(axes(shape))
    if dtypes.is_integer(hf.zeros((), dtype).dtype):
        if maxval is None:
            raise ArgumentError("random.uniform", "ints need a maxval.")
        return source.randint(sizes, minval, maxval, dtype)
    return source.uniform(sizes, minval, 1.0 if maxval is None else maxval, dtype)


@tf_export("random.gamma", "keras.random.gamma")
def gamma(
    shape: ShapeLike,
    alpha: ArrayLike,
    beta: ArrayLike | None = None,
    dtype: DTypeLike | None = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """``tf.random.gamma``: ``shape`` draws of each pair of parameters."""
    a, b = hf.broadcast_arrays(hf.asarray(alpha, dtype), hf.asarray(1.0 if beta is None else beta, dtype))
    return generator_of(seed).gamma((*extents(axes(shape)), *a.shape), a, b, dtype)


@tf_export("random.poisson")
def poisson(
    shape: object, lam: ArrayLike, dtype: DTypeLike = dtypes.float32, seed: object = None, name: str | None = None
) -> Any:
    """``tf.random.poisson``: ``shape`` draws of each rate."""
    rate = hf.asarray(lam, dtypes.float32)
    draws = generator_of(seed).poisson((*extents(axes(shape)), *rate.shape), rate)
    return hf.astype(draws, dtype)


@tf_export("random.categorical")
def categorical(
    logits: TensorLike, num_samples: int, dtype: DTypeLike = dtypes.int64, seed: object = None, name: str | None = None
) -> Any:
    """``tf.random.categorical``: ``num_samples`` for each row."""
    scores = operand(logits)
    draws = generator_of(seed).categorical(scores, (int(num_samples),))
    return hf.astype(hf.matrix_transpose(draws), dtype)


@tf_export("random.shuffle")
def shuffle(value: TensorLike, seed: object = None, name: str | None = None) -> Any:
    """``tf.random.shuffle``: along the first axis."""
    x = operand(value)
    return hf.take(x, generator_of(seed).permutation(x.shape[0]), axis=0)


@tf_export("random.stateless_uniform")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: int | None = None,
) -> Any:
    """``tf.random.stateless_uniform``."""
    stage = "random.stateless_uniform"
    streams.check_algorithm(stage, alg)
    return streams.uniform(streams.state_of(seed, stage), extents(axes(shape)), minval, maxval, dtype, stage)


@tf_export("random.stateless_normal")
def stateless_normal(
    shape: ShapeLike, seed: ArrayLike, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: object = dtypes.float32,
    name: str | None = None, alg: int | None = None,
) -> Any:  # fmt: skip
    """``tf.random.stateless_normal``."""
    stage = "random.stateless_normal"
    streams.check_algorithm(stage, alg)
    state, sizes = streams.state_of(seed, stage), extents(axes(shape))
    return streams.normal(state, sizes, mean, stddev, dtype, stage)


@tf_export("random.stateless_truncated_normal")
def stateless_truncated_normal(
    shape: ShapeLike, seed: ArrayLike, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: object = dtypes.float32,
    name: str | None = None, alg: int | None = None,
) -> Any:  # fmt: skip
    """``tf.random.stateless_truncated_normal``."""
    stage = "random.stateless_truncated_normal"
    streams.check_algorithm(stage, alg)
    state, sizes = streams.state_of(seed, stage), extents(axes(shape))
    return streams.normal(state, sizes, mean, stddev, dtype, stage, truncated=True)


@tf_export("random.stateless_categorical")
def stateless_categorical(
    logits: TensorLike, num_samples: int, seed: ArrayLike, dtype: DTypeLike = dtypes.int64, name: str | None = None
) -> Any:
    """``tf.random.stateless_categorical``."""
    return streams.categorical(streams.state_of(seed, "random.stateless_categorical"), logits, int(num_samples), dtype)


@tf_export("random.experimental.stateless_shuffle")
def stateless_shuffle(value: TensorLike, seed: ArrayLike, alg: object = None, name: str | None = None) -> Any:
    """``tf.random.experimental.stateless_shuffle``."""
    return hf.random.stateless_shuffle(operand(value), seed)


@tf_export("keras.random.normal")
def keras_normal(
    shape: ShapeLike, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: object = None, seed: int | None = None
) -> Any:
    """``keras.random.normal``."""
    return stateless_normal(shape, streams.keras_seed(seed), mean, stddev, dtype or dtypes.float32)


@tf_export("keras.random.truncated_normal")
def keras_truncated_normal(
    shape: ShapeLike, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: object = None, seed: int | None = None
) -> Any:
    """``keras.random.truncated_normal``."""
    return stateless_truncated_normal(shape, streams.keras_seed(seed), mean, stddev, dtype or dtypes.float32)


@tf_export("keras.random.uniform")
def keras_uniform(
    shape: TensorLike,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike | None = 1.0,
    dtype: object = None,
    seed: object = None,
) -> Any:
    """``keras.random.uniform``."""
    return stateless_uniform(shape, streams.keras_seed(seed), minval, maxval, dtype or dtypes.float32)


@tf_export("keras.random.categorical")
def keras_categorical(
    logits: TensorLike, num_samples: int, dtype: DTypeLike = dtypes.int32, seed: object = None
) -> Any:
    """``keras.random.categorical``."""
    return stateless_categorical(logits, num_samples, streams.keras_seed(seed), dtype)


@tf_export("keras.random.randint")
def keras_randint(shape: Any, minval: object, maxval: object, dtype: Any = dtypes.int32, seed: Any = None) -> Any:
    """``keras.random.randint``."""
    wide = dtype if str(dtype) == "int32" else dtypes.int64
    return hf.astype(stateless_uniform(shape, streams.keras_seed(seed), minval, maxval, wide), dtype)


@tf_export("keras.random.shuffle")
def keras_shuffle(x: TensorLike, axis: int = 0, seed: object = None) -> Any:
    """``keras.random.shuffle``."""
    value = operand(x)
    order = hf.argsort(stateless_uniform((value.shape[axis],), streams.keras_seed(seed)))
    return hf.take(value, order, axis=axis)


@tf_export("keras.random.dropout")
def keras_dropout(inputs: ArrayLike, rate: Any, noise_shape: Any = None, seed: Any = None) -> Any:
    """``keras.random.dropout``: drops whenever it is called."""
    return inputs if rate == 0 else stateless_dropout(inputs, rate, streams.keras_seed(seed), None, noise_shape)


@tf_export("nn.experimental.stateless_dropout")
def stateless_dropout(
    x: TensorLike,
    rate: Any,
    seed: ArrayLike,
    rng_alg: int | None = None,
    noise_shape: Any = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.experimental.stateless_dropout``: what is dropped follows from the seed."""
    value = operand(x)
    if noise_shape is None:
        noise_shape = value.shape
    sizes = [extent if wanted is None else wanted for extent, wanted in zip(value.shape, noise_shape)]
    kept = stateless_uniform(sizes, seed, dtype=value.dtype, alg=rng_alg) >= rate
    return hf.where(kept, hf.multiply(value, 1 / (1 - rate)), 0)


@tf_export("random.Algorithm", "random.experimental.Algorithm")
class Algorithm(enum.Enum):
    """``tf.random.Algorithm``: streams are Philox's."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


@tf_export("random.set_global_generator", "random.experimental.set_global_generator")
def set_global_generator(generator: object) -> None:
    """``tf.random.set_global_generator``: the global one goes on where this one is."""
    global _generator
    _generator = generator


@tf_export("random.get_global_generator", "random.experimental.get_global_generator")
def get_global_generator() -> Any:
    """``tf.random.get_global_generator``: made at its first use."""
    if _generator is None:
        with suspended():
            set_global_generator(streams.Generator.from_non_deterministic_state())
    return _generator


@tf_export("random.create_rng_state", "random.experimental.create_rng_state")
def create_rng_state(seed: object, alg: object = None) -> Any:
    """``tf.random.create_rng_state``: what ``Generator.from_state`` takes."""
    return streams.Generator.from_seed(seed, alg).state.value()


@tf_export("random.stateless_gamma")
def stateless_gamma(
    shape: ShapeLike,
    seed: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Any:
    """``tf.random.stateless_gamma``."""
    sizes = extents(axes(shape))
    a, b = (hf.broadcast_to(hf.asarray(x, dtype), sizes) for x in (alpha, 1.0 if beta is None else beta))
    return hf.random.stateless_gamma(sizes, seed, a, b, dtype)


@tf_export("random.stateless_poisson")
def stateless_poisson(
    shape: ShapeLike, seed: ArrayLike, lam: TensorLike, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Any:
    """``tf.random.stateless_poisson``."""
    return hf.astype(hf.random.stateless_poisson(extents(axes(shape)), seed, operand(lam)), dtype)


@tf_export("random.stateless_binomial")
def stateless_binomial(
    shape: ShapeLike,
    seed: ArrayLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Any:
    """``tf.random.stateless_binomial``."""
    draws = hf.random.stateless_binomial(extents(axes(shape)), seed, operand(counts), operand(probs))
    return hf.astype(draws, output_dtype)
