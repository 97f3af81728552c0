"""Random numbers from a counter: one seed gives the same numbers eagerly, traced, and on every device.

A ``Generator`` holds (seed, counter) in a Variable.  A draw of n 32-bit words takes them from Philox-4x32-10 at the
counter and moves it on by ceil(n / 4).  So a traced function continues the stream just as eager code does.  The
functions of this module draw from one global generator, which starts from the operating system's entropy until
``set_seed``.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hybridflow.array.elementwise import add, bitwise_or, bitwise_xor
from hybridflow.array.shapes import concat, reshape, stack
from hybridflow.array.transformed_distributions import TransformedDistributions
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Extent
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.context import suspended
from hybridflow.core.devices import placing
from hybridflow.core.promotion import default_float, default_int, to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike, ShapeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, scalar, to_shape
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, entered
from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.calls.variable_locks import with_locks

_MASK = 2**64 - 1
_SPLIT, _FOLD_IN = 0x9D8A7C3E5B1F2604, 0x3C6EF372FE94F82B  # what sets streams of seeds apart from those of numbers


class _StateName(str):
    """The name of a variable that is the state of a generator, and of its copies: no text that users give one."""

    __slots__ = ()


_STATE = _StateName("random_state")


class Generator(TransformedDistributions):
    """Random generator: a stream of random numbers with its own state; make it outside traced functions.

    Args:
        seed: an integer.

    Raises:
        ArgumentTypeError: for another seed.

    >>> hf.random.Generator(0).uniform((2, 3)).shape
    (2, 3)
    """

    has_plans = True  # see ``eager.public_op``

    @entered
    def __init__(self, seed: int) -> None:
        """The stream number ``seed`` (its low 64 bits) from its beginning."""
        seed = type_rules.integer("random.Generator", "seed", seed)
        self._state = Variable(np.array([seed & _MASK, 0], np.uint64), trainable=False, name=_STATE)

    @classmethod
    def from_seed(cls, seed: int, alg: str | None = None) -> Generator:
        """The stream number ``seed`` from its beginning.

        Args:
            seed: the number of the stream, an int.
            alg: "philox", "auto_select" or None: all streams are Philox.

        Returns:
            A new generator.

        Raises:
            ArgumentError: for another algorithm.
        """
        if alg not in (None, "philox", "auto_select"):
            raise ArgumentError("random.Generator.from_seed", f'alg is {alg!r}; there is "philox".')
        return cls(seed)

    @classmethod
    @entered
    def from_state(cls, state: Any, alg: str | None = None) -> Generator:
        """A stream that goes on where another one was.

        Args:
            state: two integers, as the property ``state`` has them; or three as TensorFlow has them, two of the
                counter and the key.
            alg: "philox", "auto_select" or None: all streams are Philox.

        Returns:
            A new generator.

        Raises:
            ArgumentError: for another algorithm.
            ArgumentTypeError: for anything that is no such state.

        >>> a = hf.random.Generator(1)
        >>> b = hf.random.Generator.from_state(a.state)
        >>> (a.normal((3,)) == b.normal((3,))).tolist()
        [True, True, True]
        """
        if np.shape(state) == (3,):
            *counter, key = np.asarray(state).tolist()
            return cls.from_key_counter(key, counter, alg)
        result = cls.from_seed(0, alg)
        result._state.assign(_pair(state, "random.Generator.from_state"))
        return result

    @classmethod
    def from_non_deterministic_state(cls) -> Generator:
        """A stream whose number comes from the operating system's entropy.

        Returns:
            A new generator.
        """
        return cls(int.from_bytes(os.urandom(8), "little"))

    @property
    def state(self) -> Variable:
        """(seed, counter) as uint64[2]; assign it to go back to an earlier place."""
        return self._state

    def _checkpoint_variables(self) -> dict[str, Variable]:
        return {"state": self.state}

    @property
    def key(self) -> Tensor:
        """The seed, as a uint64 scalar."""
        return self._state.value()[0]

    @property
    def algorithm(self) -> int:
        """TensorFlow's number of Philox."""
        return 1

    @classmethod
    @entered
    def from_key_counter(cls, key: int, counter: object, alg: str | None = None) -> Generator:
        """The stream number ``key`` from the block ``counter`` on.

        Args:
            key: the number of the stream, an int.
            counter: the block to start from: an int, or two, of which the first has the low 64 bits.
            alg: "philox", "auto_select" or None: all streams are Philox.

        Returns:
            A new generator.

        Raises:
            ArgumentError: for a counter of more than 64 bits, or another algorithm.
        """
        result = cls.from_seed(type_rules.integer("random.Generator.from_key_counter", "key", key), alg)
        result.reset_from_key_counter(key, counter)
        return result

    @entered
    def reset_from_key_counter(self, key: int, counter: object) -> None:
        """Go on with the stream number ``key`` from the block ``counter`` on.

        Args:
            key: the number of the stream, an int.
            counter: the block to start from: an int, or two, of which the first has the low 64 bits.

        Raises:
            ArgumentError: for a counter of more than 64 bits.
        """
        stage = "random.Generator.reset_from_key_counter"
        low, *high = [type_rules.integer(stage, "counter", n) for n in np.asarray(counter).reshape(-1).tolist() or [0]]
        if any(high) or not 0 <= low <= _MASK:
            raise ArgumentError(stage, f"the counter is {counter!r}; blocks are counted in 64 bits.")
        key = type_rules.integer(stage, "key", key)
        self._state.assign(np.array([key & _MASK, low], np.uint64))

    @operation
    def uniform_full_int(self, shape: ShapeLike, dtype: DTypeLike = dtypes.uint64, name: str | None = None) -> Tensor:
        """Integers of which every value of the dtype is as likely: uint32, uint64, int32 or int64.

        Raises DTypeError for another one.
        """
        wanted, stage = to_dtype(dtype, "random.Generator"), "random.Generator.uniform_full_int"
        if wanted not in (dtypes.uint32, dtypes.uint64, dtypes.int32, dtypes.int64):
            raise DTypeError(stage, f"dtype is {wanted}; it must be an integer of 32 or 64 bits.")
        sizes = to_shape(shape, stage)
        return cast(self._words64(sizes) if wanted.itemsize == 8 else self.bits(sizes), wanted)

    @entered
    def reset(self, seed: int) -> None:
        """Start the stream number ``seed`` from its beginning.

        Args:
            seed: the number of the stream, an int.
        """
        seed = type_rules.integer("random.Generator.reset", "seed", seed)
        self._state.assign(np.array([seed & _MASK, 0], np.uint64))

    reset_from_seed = reset  # TensorFlow's name

    @entered
    def skip(self, blocks: int) -> None:
        """Go ``blocks`` blocks of four 32-bit words ahead, or back if it is negative.

        Args:
            blocks: the number of blocks of four 32-bit words.
        """
        self._drawn(type_rules.integer("random.Generator.skip", "blocks", blocks) & _MASK)

    @operation
    def make_seeds(self, count: int = 1) -> Tensor:
        """``count`` seeds for stateless functions, as the columns of an int64[2, count]."""
        shape = to_shape((2, count), "random.Generator.make_seeds")
        return cast(self._words64(shape), default_int)

    @entered
    def split(self, count: int = 1) -> list[Generator]:
        """Generators with seeds drawn from this stream.

        Args:
            count: the number of generators.

        Returns:
            A list of new generators.

        >>> len(hf.random.Generator(1).split(3))
        3
        """
        shape = to_shape((count,), "random.Generator.split")
        return [Generator(int(word)) for word in self._words64(shape).numpy()]

    def _drawn(self, blocks: Extent) -> Tensor:
        if isinstance(blocks, int):
            step: Any = np.array([0, blocks], np.uint64)
        else:
            step = stack([scalar(n, dtypes.uint64, "random") for n in (0, blocks)])

        def advance() -> Tensor:
            state = self._state.value()
            with placing(self._state.device):  # numbers are made where they are wanted, the state stays where it is
                self._state.assign(add(state, as_tensor(step, "random")))
            return state

        return with_locks((self._state._gate,), advance)  # two threads never draw the same numbers

    def __repr__(self) -> str:
        seed, counter = self._state._current().tolist()
        return f"<random.Generator seed={seed} counter={counter}>"


def is_state(variable: Variable) -> bool:
    """Whether a variable is the state of a generator."""
    return isinstance(variable.name, _StateName)


def _pair(seed: ArrayLike, stage: str) -> Tensor:
    """Two integers as uint64[2]."""
    pair = as_tensor(seed, stage)
    if pair.shape != (2,) or not dtypes.is_integer(pair.dtype):
        raise ArgumentTypeError(stage, f"the seed is {pair.type}; it must be two integers.")
    return cast(pair, dtypes.uint64)


def _key(seed: ArrayLike, stage: str) -> Tensor:
    """The uint64[1] key of a seed pair.  It is drawn at the pair, so that seeds that differ in either number get
    unrelated ones."""
    words = cast(apply(TABLE["random_bits"], _pair(seed, stage), shape=(2,)), dtypes.uint64)
    return bitwise_or(words[:1], words[1:] << 32)


def _seeds(seed: ArrayLike, purpose: int, place: object, count: Extent, stage: str) -> Tensor:
    """``count`` seed pairs, int64[count, 2], drawn from ``place`` on in a stream that serves this purpose alone."""
    state = concat([bitwise_xor(_key(seed, stage), purpose), place])
    words = cast(apply(TABLE["random_bits"], state, shape=(count, 4)), dtypes.uint64)
    return cast(bitwise_or(words[:, ::2], words[:, 1::2] << 32), default_int)


class Stateless(TransformedDistributions):
    """The numbers that a seed pair alone determines."""

    def __init__(self, seed: ArrayLike) -> None:
        self._key = _key(seed, "random.stateless")
        self._used: Extent = 0

    def _drawn(self, blocks: Extent) -> Tensor:
        state = concat([self._key, reshape(scalar(self._used, dtypes.uint64, "random"), (1,))])
        self._used = self._used + blocks
        return state


_global: Generator | None = None
_making = fork_safe_locks.make()


def global_generator() -> Generator:
    """The generator behind the functions of this module.

    Returns:
        A Generator.

    >>> isinstance(hf.random.global_generator(), hf.random.Generator)
    True
    """
    global _global
    if _global is None:
        with _making, suspended():  # its state must not belong to a trace that happens to be the first to draw
            _global = _global or Generator(int.from_bytes(os.urandom(8), "little"))
    return _global


def set_seed(seed: int) -> None:
    """Set the seed of the global stream of random numbers, which starts anew.

    Args:
        seed: an integer.

    Returns:
        None.

    Raises:
        ArgumentTypeError: for another seed.

    >>> hf.random.set_seed(1)
    >>> first = hf.random.uniform((2,))
    >>> hf.random.set_seed(1)
    >>> hf.all(hf.random.uniform((2,)) == first)
    <Tensor bool[] cpu> True
    """
    global_generator().reset(seed)


@operation
def bits(shape: ShapeLike) -> Tensor:
    """Independent, uniformly distributed uint32 words.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.

    Returns:
        A uint32 tensor of ``shape``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.random.bits((2,)).dtype
    dtype('uint32')
    """
    return global_generator().bits(shape)


@operation
def uniform(
    shape: ShapeLike | None = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Floats in [``minval``, ``maxval``); see ``Generator.uniform``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        minval: the least number.
        maxval: the end of the range, which is left out.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.random.uniform((2, 3)).shape
    (2, 3)
    """
    return global_generator().uniform(shape, minval, maxval, dtype)


@operation
def normal(
    shape: ShapeLike | None = None, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Normally distributed floats; see ``Generator.normal``.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``stddev``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        mean: the mean; a number or a tensor.
        stddev: the standard deviation; a number or a tensor.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.normal((2, 3)).shape
    (2, 3)
    """
    return global_generator().normal(shape, mean, stddev, dtype)


@operation
def truncated_normal(
    shape: ShapeLike | None = None, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Normally distributed floats within two standard deviations; see ``Generator.truncated_normal``.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``stddev``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        mean: the mean; a number or a tensor.
        stddev: the standard deviation; a number or a tensor.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.all(hf.abs(hf.random.truncated_normal((1000,))) <= 2)
    <Tensor bool[] cpu> True
    """
    return global_generator().truncated_normal(shape, mean, stddev, dtype)


@operation
def exponential(shape: ShapeLike | None = None, rate: ArrayLike = 1.0, dtype: DTypeLike = default_float) -> Tensor:
    """Exponentially distributed floats; see ``Generator.exponential``.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``rate``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        rate: the inverse of the mean.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.exponential((2, 3)).shape
    (2, 3)
    """
    return global_generator().exponential(shape, rate, dtype)


@operation
def laplace(
    shape: ShapeLike | None = None, mean: ArrayLike = 0.0, scale: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Floats of the double exponential distribution; see ``Generator.laplace``.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``scale``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        mean: the mean; a number or a tensor.
        scale: the mean distance from the mean.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.laplace((2, 3)).shape
    (2, 3)
    """
    return global_generator().laplace(shape, mean, scale, dtype)


@operation
def gamma(
    shape: ShapeLike | None = None, alpha: ArrayLike = 1.0, beta: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Gamma distributed floats of shape parameter ``alpha`` and rate ``beta``; see ``Generator.gamma``.

    Raises ShapeError for a negative extent, ArgumentError for negative ``alpha``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        alpha: the shape parameter.
        beta: the rate: the inverse of the scale.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.gamma((2, 3), 0.5).shape
    (2, 3)
    """
    return global_generator().gamma(shape, alpha, beta, dtype)


@operation
def bernoulli(p: ArrayLike = 0.5, shape: ShapeLike | None = None) -> Tensor:
    """True with probability ``p``; see ``Generator.bernoulli``.

    Raises ShapeError for a negative extent, ArgumentError for a number outside [0, 1].

    Args:
        p: the probability of True, from 0 to 1.
        shape: the shape of the result; by default the broadcast shape of the parameters.

    Returns:
        A bool tensor of ``shape``.

    >>> hf.random.bernoulli(1.0, (3,))
    <Tensor bool[3] cpu> [ True  True  True]
    """
    return global_generator().bernoulli(p, shape)


@operation
def poisson(shape: ShapeLike | None = None, lam: ArrayLike = 1.0, dtype: DTypeLike = default_int) -> Tensor:
    """Numbers of the Poisson distribution with mean ``lam``; see ``Generator.poisson``.

    Raises ShapeError for a negative extent, ArgumentError for negative ``lam``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        lam: the mean.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.poisson((3,), 0.0)
    <Tensor i64[3] cpu> [0 0 0]
    """
    return global_generator().poisson(shape, lam, dtype)


@operation
def binomial(
    shape: ShapeLike | None = None, counts: ArrayLike = 1, probs: ArrayLike = 0.5, dtype: DTypeLike = default_int
) -> Tensor:
    """How many of ``counts`` trials succeed; see ``Generator.binomial``.

    Raises ShapeError for a negative extent, ArgumentError for probabilities outside [0, 1].

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        counts: the number of trials.
        probs: the probability of success, from 0 to 1.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.binomial((3,), 5, 1.0)
    <Tensor i64[3] cpu> [5 5 5]
    """
    return global_generator().binomial(shape, counts, probs, dtype)


@operation
def randint(shape: ShapeLike, minval: int, maxval: int, dtype: DTypeLike = default_int) -> Tensor:
    """Integers in [``minval``, ``maxval``); see ``Generator.randint``.

    Raises ShapeError for a negative extent, ArgumentError for an empty range.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        minval: the least number.
        maxval: the end of the range, which is left out.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.randint((3,), 5, 6)
    <Tensor i64[3] cpu> [5 5 5]
    """
    return global_generator().randint(shape, minval, maxval, dtype)


@operation
def categorical(logits: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = default_int) -> Tensor:
    """Positions drawn with probabilities ``softmax(logits)``; see ``Generator.categorical``.

    Args:
        logits: unnormalised logarithms of probabilities, ``(..., classes)``.
        shape: the shape of the result; by default the broadcast shape of the parameters.
        dtype: the dtype of the result.

    Returns:
        A tensor of shape ``(*shape, *logits.shape[:-1])``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.random.categorical([[0.0, -hf.inf]], 3)
    <Tensor i64[3,1] cpu>
    [[0]
     [0]
     [0]]
    """
    return global_generator().categorical(logits, shape, dtype)


@operation
def permutation(x: ArrayLike) -> Tensor:
    """A random order of 0 to ``x - 1`` or of the slices of ``x``; see ``Generator.permutation``.

    Args:
        x: how many numbers, or a tensor whose slices are put in order.

    Returns:
        A tensor of the shape of ``x``, or of ``x`` int64 numbers.

    Raises:
        ShapeError: for a tensor without axes.

    >>> hf.sort(hf.random.permutation(4))
    <Tensor i64[4] cpu> [0 1 2 3]
    """
    return global_generator().permutation(x)


shuffle = permutation


@entered
def choice(a: ArrayLike, shape: ShapeLike = (), replace: bool = True, p: ArrayLike | None = None) -> Tensor:
    """Elements of ``a`` at random, with probabilities ``p``; see ``Generator.choice``.

    Raises ShapeError for a negative extent, ArgumentError where there are too few elements.

    Args:
        a: how many numbers to choose from, or a tensor whose slices are chosen.
        shape: the shape of the result; by default the broadcast shape of the parameters.
        replace: whether one may be chosen twice.
        p: a probability for each of them; equal ones unless given.

    Returns:
        A tensor of ``shape``, then the axes of a slice.

    >>> hf.random.choice([10, 20, 30], 2, p=[0.0, 1.0, 0.0])
    <Tensor i64[2] cpu> [20 20]
    """
    return global_generator().choice(a, shape, replace, p)


@entered
def stateless_uniform(
    shape: ShapeLike,
    seed: ArrayLike,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    dtype: DTypeLike = default_float,
) -> Tensor:
    """Stateless ``uniform``: a pure function of ``seed``, two integers.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        minval: the least number.
        maxval: the end of the range, which is left out.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.random.stateless_uniform((3,), seed=[1, 2]).shape
    (3,)
    """
    return Stateless(seed).uniform(shape, minval, maxval, dtype)


@entered
def stateless_normal(
    shape: ShapeLike, seed: ArrayLike, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Stateless ``normal``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``stddev``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        mean: the mean; a number or a tensor.
        stddev: the standard deviation; a number or a tensor.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_normal((3,), seed=[1, 2]).shape
    (3,)
    """
    return Stateless(seed).normal(shape, mean, stddev, dtype)


@entered
def stateless_truncated_normal(
    shape: ShapeLike, seed: ArrayLike, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Stateless ``truncated_normal``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``stddev``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        mean: the mean; a number or a tensor.
        stddev: the standard deviation; a number or a tensor.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_truncated_normal((3,), seed=[1, 2]).shape
    (3,)
    """
    return Stateless(seed).truncated_normal(shape, mean, stddev, dtype)


@entered
def stateless_exponential(
    shape: ShapeLike, seed: ArrayLike, rate: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Stateless ``exponential``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``rate``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        rate: the inverse of the mean.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_exponential((3,), seed=[1, 2]).shape
    (3,)
    """
    return Stateless(seed).exponential(shape, rate, dtype)


@entered
def stateless_laplace(
    shape: ShapeLike, seed: ArrayLike, mean: ArrayLike = 0.0, scale: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Stateless ``laplace``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for a number below 0 as ``scale``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        mean: the mean; a number or a tensor.
        scale: the mean distance from the mean.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_laplace((3,), seed=[1, 2]).shape
    (3,)
    """
    return Stateless(seed).laplace(shape, mean, scale, dtype)


@entered
def stateless_gamma(
    shape: ShapeLike, seed: ArrayLike, alpha: ArrayLike, beta: ArrayLike = 1.0, dtype: DTypeLike = default_float
) -> Tensor:
    """Stateless ``gamma``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for negative ``alpha``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        alpha: the shape parameter.
        beta: the rate: the inverse of the scale.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_gamma((3,), seed=[1, 2], alpha=0.5).shape
    (3,)
    """
    return Stateless(seed).gamma(shape, alpha, beta, dtype)


@entered
def stateless_bernoulli(p: ArrayLike, seed: ArrayLike, shape: ShapeLike | None = None) -> Tensor:
    """Stateless ``bernoulli``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for a number outside [0, 1].

    Args:
        p: the probability of True, from 0 to 1.
        seed: two integers; equal seeds give equal numbers.
        shape: the shape of the result; by default the broadcast shape of the parameters.

    Returns:
        A bool tensor of ``shape``.

    >>> hf.random.stateless_bernoulli(1.0, seed=[1, 2], shape=(3,))
    <Tensor bool[3] cpu> [ True  True  True]
    """
    return Stateless(seed).bernoulli(p, shape)


@entered
def stateless_poisson(shape: ShapeLike, seed: ArrayLike, lam: ArrayLike, dtype: DTypeLike = default_int) -> Tensor:
    """Stateless ``poisson``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for negative ``lam``.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        lam: the mean.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_poisson((3,), seed=[1, 2], lam=0.0)
    <Tensor i64[3] cpu> [0 0 0]
    """
    return Stateless(seed).poisson(shape, lam, dtype)


@entered
def stateless_binomial(
    shape: ShapeLike, seed: ArrayLike, counts: object, probs: ArrayLike, dtype: DTypeLike = default_int
) -> Tensor:
    """Stateless ``binomial``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for probabilities outside [0, 1].

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        counts: the number of trials.
        probs: the probability of success, from 0 to 1.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_binomial((3,), seed=[1, 2], counts=5, probs=1.0)
    <Tensor i64[3] cpu> [5 5 5]
    """
    return Stateless(seed).binomial(shape, counts, probs, dtype)


@entered
def stateless_randint(
    shape: ShapeLike, seed: ArrayLike, minval: int, maxval: int, dtype: DTypeLike = default_int
) -> Tensor:
    """Stateless ``randint``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError for an empty range.

    Args:
        shape: the shape of the result; by default the broadcast shape of the parameters.
        seed: two integers; equal seeds give equal numbers.
        minval: the least number.
        maxval: the end of the range, which is left out.
        dtype: the dtype of the result.

    Returns:
        A tensor of ``shape`` and ``dtype``.

    >>> hf.random.stateless_randint((3,), seed=[1, 2], minval=5, maxval=6)
    <Tensor i64[3] cpu> [5 5 5]
    """
    return Stateless(seed).randint(shape, minval, maxval, dtype)


@entered
def stateless_categorical(
    logits: ArrayLike, seed: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = default_int
) -> Tensor:
    """Stateless ``categorical``: a pure function of ``seed``, two integers.

    Args:
        logits: unnormalised logarithms of probabilities, ``(..., classes)``.
        seed: two integers; equal seeds give equal numbers.
        shape: the shape of the result; by default the broadcast shape of the parameters.
        dtype: the dtype of the result.

    Returns:
        A tensor of shape ``(*shape, *logits.shape[:-1])``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.random.stateless_categorical([0.0, -hf.inf], seed=[1, 2], shape=3)
    <Tensor i64[3] cpu> [0 0 0]
    """
    return Stateless(seed).categorical(logits, shape, dtype)


@entered
def stateless_permutation(x: ArrayLike, seed: ArrayLike) -> Tensor:
    """Stateless ``permutation``: a pure function of ``seed``, two integers.

    Args:
        x: how many numbers, or a tensor whose slices are put in order.
        seed: two integers; equal seeds give equal numbers.

    Returns:
        A tensor of the shape of ``x``, or of ``x`` int64 numbers.

    Raises:
        ShapeError: for a tensor without axes.

    >>> hf.sort(hf.random.stateless_permutation(4, seed=[1, 2]))
    <Tensor i64[4] cpu> [0 1 2 3]
    """
    return Stateless(seed).permutation(x)


stateless_shuffle = stateless_permutation


@entered
def stateless_choice(
    a: ArrayLike, seed: ArrayLike, shape: ShapeLike = (), replace: bool = True, p: ArrayLike | None = None
) -> Tensor:
    """Stateless ``choice``: a pure function of ``seed``, two integers.

    Raises ShapeError for a negative extent, ArgumentError where there are too few elements.

    Args:
        a: how many numbers to choose from, or a tensor whose slices are chosen.
        seed: two integers; equal seeds give equal numbers.
        shape: the shape of the result; by default the broadcast shape of the parameters.
        replace: whether one may be chosen twice.
        p: a probability for each of them; equal ones unless given.

    Returns:
        A tensor of ``shape``, then the axes of a slice.

    >>> hf.random.stateless_choice([7, 7], seed=[1, 2], shape=2)
    <Tensor i64[2] cpu> [7 7]
    """
    return Stateless(seed).choice(a, shape, replace, p)


@entered
def split(seed: ArrayLike, count: int = 2) -> Tensor:
    """Split a seed.

    ``count`` seeds for stateless functions from one: the rows of an int64[count, 2].

    Args:
        seed: two integers; equal seeds give equal numbers.
        count: how many.

    Returns:
        An int64 tensor of shape ``(count, 2)``.

    Raises:
        ShapeError: for a negative count.

    >>> hf.random.split([1, 2], 3).shape
    (3, 2)
    """
    (number,) = to_shape((count,), "random.split")
    return _seeds(seed, _SPLIT, np.zeros(1, np.uint64), number, "random.split")


@entered
def fold_in(seed: ArrayLike, data: object) -> Tensor:
    """The seed for stateless functions, int64[2], that belongs to ``seed`` and the integer ``data``: a step's number.

    Args:
        seed: two integers; equal seeds give equal numbers.
        data: an integer.

    Returns:
        An int64 tensor of two elements.

    Raises:
        ArgumentTypeError: where ``data`` is not an integer.

    >>> hf.random.fold_in([1, 2], 3).shape
    (2,)
    """
    place = as_tensor(data, "random.fold_in")
    if place.shape or not dtypes.is_integer(place.dtype):
        raise ArgumentTypeError("random.fold_in", f"data is {place.type}; it must be an integer.")
    return _seeds(seed, _FOLD_IN, reshape(cast(place, dtypes.uint64), (1,)), 1, "random.fold_in")[0]
