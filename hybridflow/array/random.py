"""Random numbers from a counter: one seed gives the same numbers eagerly, traced, and on every device.

A ``Generator`` holds (seed, counter) in a Variable.  A draw of n 32-bit words takes them from Philox-4x32-10 at the
counter and moves it on by ceil(n / 4), so a traced function continues the stream just as eager code does.  The
functions of this module draw from one global generator, which starts from the operating system's entropy until
``set_seed``.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from hybridflow.array.elementwise import (
    add,
    bitwise_or,
    bitwise_right_shift,
    cos,
    less,
    log,
    multiply,
    negative,
    remainder,
    sqrt,
    subtract,
    where,
)
from hybridflow.array.reductions import argmax
from hybridflow.array.shapes import broadcast_to, concat, expand_dims, reshape, stack, unstack
from hybridflow.array.sorting import argsort
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.ops import TABLE, rules
from hybridflow.core.context import suspended
from hybridflow.core.devices import device
from hybridflow.core.promotion import default_float, default_int, to_dtype, weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, scalar, to_shape
from hybridflow.eager.operations import operation
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, entered
from hybridflow.runtime import locks
from hybridflow.runtime.calls.turns import in_turn

_MASK = 2**64 - 1


class _Source:
    """The distributions, over a source of random words."""

    def _words(self, shape: Shape) -> Tensor:
        """uint32 words of ``shape``."""
        raise NotImplementedError

    @operation
    def bits(self, shape: Any) -> Tensor:
        """Independent, uniformly distributed uint32 words."""
        return self._words(to_shape(shape, "random.bits"))

    def _words64(self, shape: Shape) -> Tensor:
        """uint64 words, each from two uint32 words."""
        low, high = unstack(cast(self._words((2, *shape)), dtypes.uint64))
        return bitwise_or(low, high << 32)

    def _unit(self, shape: Shape, dtype: np.dtype[Any]) -> Tensor:
        """Multiples of 2**-p in [0, 1), where p is the precision of the dtype: each is exact."""
        digits = _PRECISION[dtype]
        if dtype == dtypes.float64:
            words = bitwise_right_shift(self._words64(shape), 64 - digits)
        else:
            words = bitwise_right_shift(self._words(shape), 32 - digits)
        return multiply(cast(words, dtype), 2.0**-digits)

    @operation
    def uniform(self, shape: Any = (), minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = default_float) -> Tensor:
        """Floats in [``minval``, ``maxval``): ``minval + u * (maxval - minval)``.

        u is a multiple of 2**-24 (float32) or 2**-53 (float64) in [0, 1).  Raises DTypeError for integer dtypes, which
        ``randint`` makes.
        """
        found = _float_dtype(dtype, "random.uniform")
        unit = self._unit(to_shape(shape, "random.uniform"), found)
        if minval is not None and type(minval) in (int, float) and type(maxval) in (int, float):
            if not minval <= maxval:
                raise ArgumentError("random.uniform", f"minval {minval} is above maxval {maxval}.")
            if (minval, maxval) == (0, 1):
                return unit
        low, high = (as_tensor(v, "random.uniform", found) for v in (minval, maxval))
        values = add(multiply(unit, subtract(high, low)), low)
        return where(less(values, high), values, low)  # rounding may reach the open end

    @operation
    def normal(self, shape: Any = (), mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = default_float) -> Tensor:
        """Normally distributed floats, by Box and Muller: ``sqrt(-2 log(1 - u)) * cos(2 pi v)`` from two uniforms each.

        float32 values lie within 5.8 standard deviations, float64 ones within 8.6.
        """
        found = _float_dtype(dtype, "random.normal")
        wide = dtypes.compute_dtype(found)
        u, v = unstack(self._unit((2, *to_shape(shape, "random.normal")), wide))
        radius = sqrt(multiply(log(subtract(1.0, u)), -2.0))
        values = multiply(radius, cos(multiply(v, 2.0 * math.pi)))
        values = add(multiply(values, as_tensor(stddev, "random.normal", wide)), as_tensor(mean, "random.normal", wide))
        return cast(values, found)

    @operation
    def bernoulli(self, p: Any = 0.5, shape: Any = None) -> Tensor:
        """True with probability ``p``; the shape of ``p`` unless ``shape`` is given."""
        if weak_kind(p) is not None and not isinstance(p, Tensor) and not 0 <= p <= 1:
            raise ArgumentError("random.bernoulli", f"p is {p}; a probability lies in [0, 1].")
        chance = as_tensor(p, "random.bernoulli", dtypes.float32 if weak_kind(p) else None)
        if not dtypes.is_float(chance.dtype):
            raise DTypeError("random.bernoulli", f"p is {chance.type}; it must be a float.")
        wide = cast(chance, dtypes.compute_dtype(chance.dtype))
        return less(self._unit(wide.shape if shape is None else to_shape(shape, "random.bernoulli"), wide.dtype), wide)

    @operation
    def randint(self, shape: Any, minval: int, maxval: int, dtype: Any = default_int) -> Tensor:
        """Integers in [``minval``, ``maxval``), from 64 random bits each modulo the range.

        The chance of a value is off by less than 2**-64.  Raises ArgumentError for an empty range, or one that the
        dtype does not hold.
        """
        found = to_dtype(dtype, "random.randint")
        if not dtypes.is_integer(found):
            raise DTypeError("random.randint", f"{found} is not an integer dtype.")
        low, high = (rules.integer("random.randint", name, v) for name, v in (("minval", minval), ("maxval", maxval)))
        limits = np.iinfo(found)
        if not (low < high and limits.min <= low and high - 1 <= limits.max):
            raise ArgumentError("random.randint", f"[{low}, {high}) is empty or does not fit {found}.")
        words = self._words64(to_shape(shape, "random.randint"))
        offsets = words if high - low == 2**64 else remainder(words, high - low)
        return add(cast(offsets, found), scalar(low, found, "random.randint"))

    @operation
    def permutation(self, x: Any) -> Tensor:
        """0 to ``x - 1`` in random order for an int, else the slices of ``x`` along its first axis in random order.

        Sorts 64-bit random keys; equal keys keep their order.
        """
        if weak_kind(x) is int:
            if x < 0:
                raise ArgumentError("random.permutation", f"{x} elements cannot be permuted.")
            return argsort(self._words64((x,)))
        x = as_tensor(x, "random.permutation")
        if not x.ndim:
            raise ShapeError("random.permutation", f"{x.type} has no axis to permute.")
        return apply(TABLE["take"], x, argsort(self._words64(x.shape[:1])), axis=0)

    shuffle = permutation

    @operation
    def categorical(self, logits: Any, shape: Any = ()) -> Tensor:
        """Positions along the last axis of ``logits``, drawn with probabilities ``softmax(logits)``, as int64.

        ``shape`` extents come in front.  The largest of logits plus Gumbel noise wins.
        """
        logits = as_tensor(logits, "random.categorical")
        if not dtypes.is_float(logits.dtype) or not logits.ndim:
            raise DTypeError("random.categorical", f"logits are {logits.type}; they must be floats with a last axis.")
        wide = cast(logits, dtypes.compute_dtype(logits.dtype))
        noise_shape = (*to_shape(shape, "random.categorical"), *wide.shape)
        # The uniforms lie in [0, 1): at 0 the noise is -inf, and never +inf.
        noise = negative(log(negative(log(self._unit(noise_shape, wide.dtype)))))
        return argmax(add(broadcast_to(wide, noise_shape), noise), -1)

    @operation
    def exponential(self, shape: Any = (), rate: Any = 1.0, dtype: Any = default_float) -> Tensor:
        """Exponentially distributed floats with mean ``1 / rate``."""
        found = _float_dtype(dtype, "random.exponential")
        unit = self._unit(to_shape(shape, "random.exponential"), dtypes.compute_dtype(found))
        return cast(negative(log(subtract(1.0, unit))) / as_tensor(rate, "random.exponential", unit.dtype), found)


_PRECISION = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


def _float_dtype(dtype: Any, stage: str) -> np.dtype[Any]:
    found = to_dtype(dtype, stage)
    if not dtypes.is_float(found):
        raise DTypeError(stage, f"{found} is not a float dtype; use hf.random.randint for integers.")
    return found


_STATE = "random_state"  # the name of the variables that are states of generators


class Generator(_Source):
    """A stream of random numbers with its own state; make it outside traced functions.

    >>> hf.random.Generator(0).uniform((2, 3)).shape
    (2, 3)
    """

    has_plans = True  # see ``eager.operations``

    @entered
    def __init__(self, seed: int) -> None:
        """The stream number ``seed`` (its low 64 bits) from its beginning."""
        seed = rules.integer("random.Generator", "seed", seed)
        self._state = Variable(np.array([seed & _MASK, 0], np.uint64), trainable=False, name=_STATE)

    @property
    def state(self) -> Variable:
        """(seed, counter) as uint64[2]; assign it to go back to an earlier place."""
        return self._state

    def reset(self, seed: int) -> None:
        """Start the stream number ``seed`` from its beginning."""
        self._state.assign(np.array([rules.integer("random.Generator", "seed", seed) & _MASK, 0], np.uint64))

    def split(self, count: int) -> list[Generator]:
        """``count`` generators with seeds drawn from this stream."""
        return [Generator(int(word)) for word in self._words64((count,)).numpy()]

    def _words(self, shape: Shape) -> Tensor:
        words = (product(shape) + 3) // 4
        if isinstance(words, int):
            step: Any = np.array([0, words], np.uint64)
        else:
            step = stack([scalar(n, dtypes.uint64, "random") for n in (0, words)])

        def advance() -> Tensor:
            state = self._state.value()
            with device(self._state.device):  # numbers are made where they are wanted, the state stays where it is
                self._state.assign(add(state, as_tensor(step, "random")))
            return state

        state = in_turn((self._state._gate,), advance)  # two threads never draw the same numbers
        return apply(TABLE["random_bits"], state, shape=shape)

    def __repr__(self) -> str:
        seed, counter = self._state._current().tolist()
        return f"<random.Generator seed={seed} counter={counter}>"


def is_state(variable: Variable) -> bool:
    """Whether a variable is the state of a generator."""
    return variable.name == _STATE and variable.dtype == dtypes.uint64 and variable.shape == (2,)


class _Stateless(_Source):
    """The numbers that a seed pair alone determines."""

    def __init__(self, seed: Any) -> None:
        pair = as_tensor(seed, "random.stateless")
        if pair.shape != (2,) or not dtypes.is_integer(pair.dtype):
            raise ArgumentTypeError("random.stateless", f"the seed is {pair.type}; it must be two integers.")
        # Seeds that differ in either number get unrelated keys: the key itself is drawn at the pair.
        words = cast(apply(TABLE["random_bits"], cast(pair, dtypes.uint64), shape=(2,)), dtypes.uint64)
        low, high = unstack(words)
        self._key = bitwise_or(low, high << 32)
        self._drawn = 0

    def _words(self, shape: Shape) -> Tensor:
        if self._drawn:
            raise ArgumentError("random.stateless", "a stateless source gives one draw.")
        self._drawn = 1
        state = concat([expand_dims(self._key), reshape(scalar(0, dtypes.uint64, "random"), (1,))])
        return apply(TABLE["random_bits"], state, shape=shape)


_global: Generator | None = None
_making = locks.make()


def global_generator() -> Generator:
    """The generator behind the functions of this module.

    >>> isinstance(hf.random.global_generator(), hf.random.Generator)
    True
    """
    global _global
    if _global is None:
        with _making, suspended():  # its state must not belong to a trace that happens to be the first to draw
            _global = _global or Generator(int.from_bytes(os.urandom(8), "little"))
    return _global


def set_seed(seed: int) -> None:
    """Restart the global stream at ``seed``.

    >>> hf.random.set_seed(1)
    >>> first = hf.random.uniform((2,))
    >>> hf.random.set_seed(1)
    >>> hf.all(hf.random.uniform((2,)) == first)
    <Tensor bool[] cpu> True
    """
    global_generator().reset(seed)


@operation
def bits(shape: Any) -> Tensor:
    """Independent, uniformly distributed uint32 words.

    Raises ShapeError for a negative extent.

    >>> hf.random.bits((2,)).dtype
    dtype('uint32')
    """
    return global_generator().bits(shape)


@operation
def uniform(shape: Any = (), minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = default_float) -> Tensor:
    """Floats in [``minval``, ``maxval``); see ``Generator.uniform``.

    Raises ShapeError for a negative extent.

    >>> hf.random.uniform((2, 3)).shape
    (2, 3)
    """
    return global_generator().uniform(shape, minval, maxval, dtype)


@operation
def normal(shape: Any = (), mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = default_float) -> Tensor:
    """Normally distributed floats; see ``Generator.normal``.

    Raises ShapeError for a negative extent.

    >>> hf.random.normal((2, 3)).shape
    (2, 3)
    """
    return global_generator().normal(shape, mean, stddev, dtype)


@operation
def bernoulli(p: Any = 0.5, shape: Any = None) -> Tensor:
    """True with probability ``p``; see ``Generator.bernoulli``.

    Raises ShapeError for a negative extent.

    >>> hf.random.bernoulli(1.0, (3,))
    <Tensor bool[3] cpu> [ True  True  True]
    """
    return global_generator().bernoulli(p, shape)


@operation
def randint(shape: Any, minval: int, maxval: int, dtype: Any = default_int) -> Tensor:
    """Integers in [``minval``, ``maxval``); see ``Generator.randint``.

    Raises ShapeError for a negative extent.

    >>> hf.random.randint((3,), 5, 6)
    <Tensor i64[3] cpu> [5 5 5]
    """
    return global_generator().randint(shape, minval, maxval, dtype)


@operation
def permutation(x: Any) -> Tensor:
    """A random order of 0 to ``x - 1`` or of the slices of ``x``; see ``Generator.permutation``.

    >>> hf.sort(hf.random.permutation(4))
    <Tensor i64[4] cpu> [0 1 2 3]
    """
    return global_generator().permutation(x)


shuffle = permutation


@operation
def categorical(logits: Any, shape: Any = ()) -> Tensor:
    """Positions drawn with probabilities ``softmax(logits)``; see ``Generator.categorical``.

    Raises ShapeError for a negative extent.

    >>> hf.random.categorical([[0.0, -hf.inf]], 3)
    <Tensor i64[3,1] cpu>
    [[0]
     [0]
     [0]]
    """
    return global_generator().categorical(logits, shape)


@operation
def exponential(shape: Any = (), rate: Any = 1.0, dtype: Any = default_float) -> Tensor:
    """Exponentially distributed floats; see ``Generator.exponential``.

    Raises ShapeError for a negative extent.

    >>> hf.random.exponential((2, 3)).shape
    (2, 3)
    """
    return global_generator().exponential(shape, rate, dtype)


@entered
def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = default_float
) -> Tensor:
    """``uniform`` as a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent.

    >>> hf.random.stateless_uniform((3,), seed=[1, 2]).shape
    (3,)
    """
    return _Stateless(seed).uniform(shape, minval, maxval, dtype)


@entered
def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = default_float) -> Tensor:
    """``normal`` as a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent.

    >>> hf.random.stateless_normal((3,), seed=[1, 2]).shape
    (3,)
    """
    return _Stateless(seed).normal(shape, mean, stddev, dtype)


@entered
def stateless_bernoulli(p: Any, seed: Any, shape: Any = None) -> Tensor:
    """``bernoulli`` as a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent.

    >>> hf.random.stateless_bernoulli(1.0, seed=[1, 2], shape=(3,))
    <Tensor bool[3] cpu> [ True  True  True]
    """
    return _Stateless(seed).bernoulli(p, shape)


@entered
def stateless_randint(shape: Any, seed: Any, minval: int, maxval: int, dtype: Any = default_int) -> Tensor:
    """``randint`` as a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent.

    >>> hf.random.stateless_randint((3,), seed=[1, 2], minval=5, maxval=6)
    <Tensor i64[3] cpu> [5 5 5]
    """
    return _Stateless(seed).randint(shape, minval, maxval, dtype)


@entered
def stateless_permutation(x: Any, seed: Any) -> Tensor:
    """``permutation`` as a pure function of ``seed``, two integers.

    >>> hf.sort(hf.random.stateless_permutation(4, seed=[1, 2]))
    <Tensor i64[4] cpu> [0 1 2 3]
    """
    return _Stateless(seed).permutation(x)
