"""``keras.random``: numbers that are functions of a seed."""

from __future__ import annotations

import numpy as np
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed  # noqa: F401

import hybridflow as hf
from hybridflow.keras_backend.modules.core import convert_to_tensor


def _seed(seed):
    return seed if isinstance(seed, hf.Tensor) else convert_to_tensor(draw_seed(seed))


def _extents(shape):
    return tuple(int(n) if isinstance(n, hf.Tensor) else n for n in shape)


def _computed(dtype):
    """The dtype to draw in, for one that is narrow."""
    return dtype if dtype in ("float32", "float64") else "float32"


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    dtype = dtype or floatx()
    drawn = hf.random.stateless_normal(_extents(shape), _seed(seed), dtype=_computed(dtype))
    return convert_to_tensor(drawn * stddev + mean, dtype)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    dtype = dtype or floatx()
    drawn = hf.random.stateless_uniform(_extents(shape), _seed(seed), dtype=_computed(dtype))
    low, high = convert_to_tensor(minval, drawn.dtype.name), convert_to_tensor(maxval, drawn.dtype.name)
    return convert_to_tensor(drawn * (high - low) + low, dtype)


def categorical(logits, num_samples, dtype="int32", seed=None):
    logits = convert_to_tensor(logits)
    drawn = hf.random.stateless_categorical(logits, _seed(seed), (num_samples,))
    return convert_to_tensor(hf.moveaxis(drawn, 0, -1), dtype)


def randint(shape, minval, maxval, dtype="int32", seed=None):
    if all(isinstance(bound, (int, np.integer)) for bound in (minval, maxval)) and "int" in dtype:
        return hf.random.stateless_randint(_extents(shape), _seed(seed), int(minval), int(maxval), dtype)
    drawn = uniform(shape, 0.0, 1.0, "float64", seed)
    low, high = convert_to_tensor(minval, "float64"), convert_to_tensor(maxval, "float64")
    return convert_to_tensor(hf.floor(drawn * (high - low)) + low, dtype)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    dtype = dtype or floatx()
    drawn = hf.random.stateless_truncated_normal(_extents(shape), _seed(seed), dtype=_computed(dtype))
    return convert_to_tensor(drawn * stddev + mean, dtype)


def dropout(inputs, rate, noise_shape=None, seed=None):
    inputs = convert_to_tensor(inputs)
    if rate == 1.0:
        return hf.zeros_like(inputs)
    if rate == 0.0:
        return inputs
    shape = tuple(inputs.shape)
    if noise_shape is not None:
        shape = tuple(n if wanted is None else wanted for n, wanted in zip(shape, noise_shape))
    kept = hf.random.stateless_uniform(shape, _seed(seed)) >= rate
    return hf.where(kept, inputs / (1.0 - rate), hf.zeros_like(inputs))


def shuffle(x, axis=0, seed=None):
    x = convert_to_tensor(x)
    order = hf.argsort(hf.random.stateless_uniform((x.shape[axis],), _seed(seed)))
    return hf.take(x, order, axis=axis)


def gamma(shape, alpha, dtype=None, seed=None):
    dtype = dtype or floatx()
    alpha = convert_to_tensor(alpha, _computed(dtype))
    drawn = hf.random.stateless_gamma(_extents(shape), _seed(seed), alpha, dtype=_computed(dtype))
    return convert_to_tensor(drawn, dtype)


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    counts, probabilities = convert_to_tensor(counts, "int64"), convert_to_tensor(probabilities, "float32")
    drawn = hf.random.stateless_binomial(_extents(shape), _seed(seed), counts, probabilities)
    return convert_to_tensor(drawn, dtype or floatx())


def beta(shape, alpha, beta, dtype=None, seed=None):
    dtype = dtype or floatx()
    alpha, beta = (convert_to_tensor(x, _computed(dtype)) for x in (alpha, beta))
    drawn = hf.random.stateless_beta(_extents(shape), _seed(seed), alpha, beta, dtype=_computed(dtype))
    return convert_to_tensor(drawn, dtype)
