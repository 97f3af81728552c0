"""TensorFlow's streams of random numbers: Philox with its seeds, its order of words and its ways from words to numbers.

A seed pair is scrambled into a key and the high half of a counter.  A float is made of the low bits of a word, normal
numbers are pairs of Box and Muller's.  Truncated ones are the first of a group of these that lie within two standard
deviations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.array.random import Generator as _Generator
from hybridflow.compat.adapters.replicas import follow
from hybridflow.compat.adapters.values import axes, extents, operand
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import TABLE
from hybridflow.core.promotion import to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ShapeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, InvalidArgumentError, entered
from hybridflow.runtime.calls.variable_locks import with_locks

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


_SCRAMBLING_KEY = 0x02461E293EC8F720
_MANTISSA = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}
_LEAST = 1e-7  # of the number whose logarithm is taken
_BLOCKS_OF_A_GROUP = 256  # which four truncated normal numbers may use
_BLOCKS_LOOKED_AT = {False: 6, True: 12}  # of them; that these do not hold four has a chance below 1e-25
_SKIPPED = 256  # blocks for each element that a generator draws
_PHILOX = 1
_ALGORITHMS = {"philox": 1, "threefry": 2, "autoselect": 3}


def check_algorithm(stage: str, alg: int | None) -> None:
    """Raise for an algorithm that is not Philox: on CPUs TensorFlow has none either."""
    if isinstance(alg, str):
        number = _ALGORITHMS.get(alg.strip().lower().replace("-", "").replace("_", ""))
    else:
        number = 3 if alg is None else getattr(alg, "value", alg)
    if number == _ALGORITHMS["threefry"]:
        raise ArgumentError(stage, "there is no ThreeFry: streams are Philox's, alg='philox'.")
    if number not in (1, 3):
        raise ArgumentError(stage, f"alg is {alg!r}. Supported values are 'philox' and 'auto_select'.")


def seed_pair(seed: ArrayLike, stage: str) -> Tensor:
    """Two integers as uint64[2]."""
    pair = hf.asarray(seed)
    if pair.shape != (2,) or not dtypes.is_integer(pair.dtype):
        raise ArgumentTypeError(stage, f"the seed is {pair.type}; it must be two integers.")
    return hf.astype(pair, dtypes.uint64)


def state_of(seed: ArrayLike, stage: str) -> Tensor:
    """The state uint64[3] (key, and the halves of the counter) of a seed pair."""
    pair = seed_pair(seed, stage)
    start = hf.concat([hf.asarray(np.array([_SCRAMBLING_KEY], np.uint64)), pair])
    mixed = _join_words(apply(TABLE["random_bits"], start, shape=(4,)))
    return hf.concat([mixed[:1], hf.asarray(np.zeros(1, np.uint64)), mixed[1:]])


def _join_words(words: Tensor) -> Tensor:
    """uint64s of pairs of words along the last axis, the first of which is the low half."""
    wide = hf.astype(words, dtypes.uint64)
    return hf.bitwise_or(wide[..., ::2], wide[..., 1::2] << 32)


def _words(state: Tensor, count: object) -> Tensor:
    return apply(TABLE["random_bits"], state, shape=(count,))


def _units(words: Tensor, dtype: DTypeLike) -> Tensor:
    """Floats in [0, 1) of a dtype, of each word, or for float64 of each pair of words."""
    digits = _MANTISSA[dtype]
    if dtype == dtypes.float64:  # here the low half is the second word
        wide = hf.astype(words, dtypes.uint64)
        whole = hf.bitwise_or((wide[..., ::2] & 0xFFFFF) << 32, wide[..., 1::2])
    else:
        whole = words & (2**digits - 1)
    return hf.astype(whole, dtype) * hf.asarray(2.0**-digits, dtype)


def _normals(words: Tensor, dtype: DTypeLike) -> Tensor:
    """Normal numbers by Box and Muller's method: two of two numbers in [0, 1)."""
    units = _units(words, dtype)
    radius = hf.sqrt(-2.0 * hf.log(hf.maximum(units[..., ::2], hf.asarray(_LEAST, dtype))))
    angle = units[..., 1::2] * hf.asarray(2 * math.pi, dtype)
    pairs = hf.stack([hf.sin(angle) * radius, hf.cos(angle) * radius], axis=-1)
    return hf.reshape(pairs, units.shape)


def _wide(dtype: DTypeLike) -> Any:
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


def _even(count: Any, multiple: int) -> Any:
    return -(-count // multiple) * multiple


def _float_dtype(dtype: DTypeLike, stage: str) -> Any:
    result = to_dtype(dtype, stage)
    if result not in _MANTISSA:
        raise DTypeError(stage, f"dtype is {result}; it must be a float's.")
    return result


def unit_floats(state: Tensor, shape: Any, dtype: Any) -> Tensor:
    """Floats in [0, 1), of a state."""
    count = product(shape)
    words = _words(state, 2 * count if dtype == dtypes.float64 else count)
    return hf.reshape(_units(words, dtype), shape)


def normals(state: Tensor, shape: Any, dtype: DTypeLike) -> Tensor:
    """Normal numbers of the mean 0 and the standard deviation 1, of a state."""
    count, wide = product(shape), _wide(dtype)
    words = _words(state, _even(count, 2) * (2 if wide == dtypes.float64 else 1))
    return hf.astype(hf.reshape(_normals(words, wide)[:count], shape), dtype)


def truncated_normals(state: Tensor, shape: Any, dtype: DTypeLike) -> Tensor:
    """Normal numbers within two standard deviations, of a state."""
    count, wide = product(shape), _wide(dtype)
    double = wide == dtypes.float64
    size = 2 if double else 4  # of a group
    groups = _even(count, size) // size
    # each group has blocks of its own: the state of the group is that of the first of them
    firsts = hf.astype(hf.arange(groups), dtypes.uint64) * (_BLOCKS_OF_A_GROUP * size // 4)
    key, low, high = state[0], state[1] + firsts, state[2]
    carried = high + hf.astype(low < state[1], dtypes.uint64)
    states = hf.stack([hf.broadcast_to(key, low.shape), low, carried], axis=-1)
    candidates = _normals(apply(TABLE["random_bits"], states, shape=(_BLOCKS_LOOKED_AT[double] * 4,)), wide)
    within = hf.abs(candidates) < 2.0
    number = hf.cumulative_sum(hf.astype(within, dtypes.int32), axis=-1)
    places = hf.stack([hf.argmax(number == k, axis=-1) for k in range(1, size + 1)], axis=-1)
    drawn = hf.take_along_axis(candidates, places, axis=-1)
    return hf.astype(hf.reshape(hf.reshape(drawn, (-1,))[:count], shape), dtype)


def full_ints(state: Tensor, shape: Any, dtype: Any) -> Tensor:
    """Integers of which every value of the dtype is as likely, of a state."""
    count = product(shape)
    words = _join_words(_words(state, 2 * count)) if dtype.itemsize == 8 else _words(state, count)
    return hf.reshape(hf.astype(words, dtype), shape)


def ints(state: Tensor, shape: Any, minval: Any, maxval: Any, dtype: Any, stage: str) -> Tensor:
    """Integers from ``minval`` on below ``maxval``, of a state."""
    low, high = (hf.astype(hf.asarray(x), dtype) for x in (minval, maxval))
    unsigned = dtypes.uint64 if dtype.itemsize == 8 else dtypes.uint32
    if not isinstance(minval, Tensor) and not isinstance(maxval, Tensor) and not np.all(np.less(minval, maxval)):
        raise InvalidArgumentError(stage, f"Need minval < maxval, got {minval} >= {maxval}")
    span = hf.astype(high, unsigned) - hf.astype(low, unsigned)
    return hf.astype(full_ints(state, shape, unsigned) % span + hf.astype(low, unsigned), dtype)


def uniform(state: Tensor, shape: Any, minval: Any, maxval: Any, dtype: Any, stage: str) -> Tensor:
    """``stateless_uniform`` of a state."""
    wanted = to_dtype(dtype, stage)
    if not dtypes.is_integer(wanted):
        wanted = _float_dtype(wanted, stage)
        low, high = hf.asarray(minval, wanted), hf.asarray(1.0 if maxval is None else maxval, wanted)
        return unit_floats(state, shape, wanted) * (high - low) + low
    if wanted.itemsize < 4:
        raise DTypeError(stage, f"dtype is {wanted}; it must be a float's, or an integer's of 32 or 64 bits.")
    if minval is None and maxval is None:
        return full_ints(state, shape, wanted)
    if minval is None or maxval is None:
        raise ArgumentError(stage, "ints need a minval and a maxval, or neither: both None is the whole range.")
    if wanted in (dtypes.uint32, dtypes.uint64):
        raise ArgumentError(stage, "unsigned ints have the whole range: minval and maxval must be None.")
    return ints(state, shape, minval, maxval, wanted, stage)


def normal(
    state: Tensor,
    shape: Any,
    mean: ArrayLike,
    stddev: ArrayLike,
    dtype: Any,
    stage: str,
    *,
    truncated: bool = False,
) -> Any:
    """``stateless_normal`` or ``stateless_truncated_normal`` of a state."""
    wanted = _float_dtype(dtype, stage)
    drawn = (truncated_normals if truncated else normals)(state, shape, wanted)
    return drawn * hf.asarray(stddev, wanted) + hf.asarray(mean, wanted)


def categorical(state: Tensor, logits: TensorLike, count: int, dtype: DTypeLike) -> Tensor:
    """``stateless_categorical`` of a state: the class at which the sum of probabilities passes a number."""
    scores = hf.astype(operand(logits), dtypes.float64)
    finite = hf.isfinite(scores)
    largest = hf.max(hf.where(finite, scores, -math.inf), axis=-1, keepdims=True)
    sums = hf.cumulative_sum(hf.where(finite, hf.exp(scores - largest), 0.0), axis=-1)
    unit = unit_floats(state, (scores.shape[0], count), dtypes.float64)
    passed = hf.expand_dims(unit * sums[:, -1:], -1) >= hf.expand_dims(sums, 1)
    return hf.astype(hf.sum(hf.astype(passed, dtypes.int64), axis=-1), dtype)


class Generator(_Generator):
    """``tf.random.Generator``: a stream of random numbers whose state is the two halves of a counter and a key.

    Draws that TensorFlow makes by other methods than words, floats and normal numbers have hybridflow's numbers.

    Args:
        copy_from: A generator that this one is to go on like.
        state: The three integers of a state.
        alg: "philox", or its number.
    """

    @entered
    def __init__(self, copy_from: Any = None, state: Any = None, alg: Any = None) -> None:
        if isinstance(copy_from, int):
            copy_from, state = None, _state_of_seed(copy_from)
        check_algorithm("random.Generator", alg)
        state = copy_from.state.value() if copy_from is not None else state
        if state is None:
            raise ArgumentError(
                "random.Generator", "give a state: Generator.from_seed(1), or Generator(state=..., alg=...)."
            )
        self._state = Variable(_three(state), trainable=False, name="StateVar")
        self._strategy = follow(self)

    @classmethod
    def from_seed(cls, seed: object, alg: object = None) -> Generator:
        """The stream number ``seed`` from its beginning."""
        return cls(state=_state_of_seed(seed), alg=alg)

    @classmethod
    def from_state(cls, state: object, alg: object = None) -> Generator:
        """A stream that goes on where ``state`` says."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: object = None) -> Generator:
        """A stream whose state comes from the operating system's entropy."""
        import os

        return cls(state=np.frombuffer(os.urandom(24), np.int64), alg=alg)

    @classmethod
    def from_key_counter(cls, key: TensorLike, counter: object, alg: object = None) -> Generator:
        """The stream of a key from a counter on."""
        return cls(state=_of_key_counter(key, counter), alg=alg)

    @entered
    def reset(self, state: ArrayLike) -> None:
        """Go on where ``state`` says."""
        self._state.assign(_three(state))

    @entered
    def reset_from_seed(self, seed: object) -> None:
        """Start the stream number ``seed`` from its beginning."""
        self._state.assign(_three(_state_of_seed(seed)))

    @entered
    def reset_from_key_counter(self, key: TensorLike, counter: object) -> None:
        """Go on with the stream of a key from a counter on."""
        self._state.assign(_three(_of_key_counter(key, counter)))

    @property
    def key(self) -> Tensor:
        """The key."""
        return self._state.value()[2]

    def skip(self, delta: Any) -> Any:
        """Go past what ``delta`` elements use; returns the state before."""
        return self._advance(delta * _SKIPPED)

    def _advance(self, blocks: ArrayLike) -> Tensor:
        step = hf.astype(hf.asarray(blocks), dtypes.uint64)

        def advance() -> Tensor:
            state = self._state.value()
            low, high, key = (hf.astype(state[k], dtypes.uint64) for k in range(3))
            after = low + step
            counter = hf.stack([after, high + hf.astype(after < low, dtypes.uint64), key])
            self._state.assign(hf.astype(counter, dtypes.int64))
            return state

        return with_locks((self._state._gate,), advance)

    def _drawn(self, blocks: Any) -> Tensor:
        """Of the methods that are not TensorFlow's: a seed and a counter."""
        state = hf.astype(self._advance(-(-blocks // _SKIPPED) * _SKIPPED), dtypes.uint64)
        return hf.stack([hf.bitwise_xor(state[2], state[1]), state[0]])

    def _take_state(self, shape: object) -> tuple[Any, Tensor]:
        """A shape, and the state (key, halves of the counter) from which its elements are drawn."""
        sizes = extents(axes(shape))
        state = hf.astype(self.skip(product(sizes)), dtypes.uint64)
        return sizes, hf.stack([self._key_of_replica(state[2]), state[0], state[1]])

    def _key_of_replica(self, key: Tensor) -> Tensor:
        """The key, or what is made of it and the number of the replica that draws."""
        if self._strategy is None:
            return key
        number = self._strategy.number.value()
        start = hf.stack([key, hf.astype(number, dtypes.uint64), hf.asarray(np.uint64(0))])
        return hf.where(number < 0, key, uniform(start, (), None, None, dtypes.uint64, "random.Generator"))

    def normal(  # type: ignore[override]  # TensorFlow's arguments
        self,
        shape: object,
        mean: Any = 0.0,
        stddev: ArrayLike = 1.0,
        dtype: object = dtypes.float32,
        name: object = None,
    ) -> Any:
        """Normally distributed floats."""
        sizes, state = self._take_state(shape)
        return normal(state, sizes, mean, stddev, dtype, "random.Generator.normal")

    def truncated_normal(  # type: ignore[override]  # TensorFlow's arguments
        self,
        shape: object,
        mean: ArrayLike = 0.0,
        stddev: ArrayLike = 1.0,
        dtype: object = dtypes.float32,
        name: object = None,
    ) -> Any:
        """Normally distributed floats within two standard deviations."""
        sizes, state = self._take_state(shape)
        return normal(state, sizes, mean, stddev, dtype, "random.Generator.truncated_normal", truncated=True)

    def uniform(  # type: ignore[override]  # TensorFlow's arguments
        self,
        shape: ShapeLike,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = dtypes.float32,
        name: object = None,
    ) -> Any:
        """Floats from ``minval`` on below ``maxval``, or integers."""
        sizes, state = self._take_state(shape)
        return uniform(state, sizes, minval, maxval, dtype, "random.Generator.uniform")

    def uniform_full_int(self, shape: object, dtype: Any = dtypes.uint64, name: object = None) -> Any:
        """Integers of which every value of the dtype is as likely."""
        sizes, state = self._take_state(shape)
        return uniform(state, sizes, None, None, dtype, "random.Generator.uniform_full_int")

    def make_seeds(self, count: int = 1) -> Tensor:
        """``count`` seeds for stateless functions, as the columns of an int64[2, count]."""
        keys = self.uniform_full_int((count,), dtypes.int64)
        return hf.stack([keys, hf.zeros_like(keys)])

    def split(self, count: int = 1) -> list[Any]:
        """``count`` generators, with keys drawn from this stream."""
        keys = self.uniform_full_int((count,), dtypes.int64)
        return [type(self)(state=[0, 0, int(key)]) for key in keys.numpy()]

    def __repr__(self) -> str:
        return f"<tf.random.Generator state={self._state._current().tolist()}>"


def _signed(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _state_of_seed(seed: object) -> Any:
    """The state that TensorFlow makes of a seed: an integer, or several."""
    if isinstance(seed, int):
        return [_signed(seed >> 64 * k & (2**64 - 1)) for k in range(3)]
    numbers = np.asarray(seed).reshape(-1)[:3]
    return np.concatenate([np.zeros(3 - len(numbers), np.int64), numbers.astype(np.int64)])


def _of_key_counter(key: Any, counter: object) -> Any:
    numbers = [int(n) for n in np.asarray(counter).reshape(-1)]
    return [*(_signed(n) for n in (*numbers, 0, 0)[:2]), _signed(int(key))]


def _three(state: ArrayLike) -> Any:
    if isinstance(state, list | tuple) and all(isinstance(n, int) for n in state):
        state = np.array([_signed(n) for n in state], np.int64)
    values = hf.asarray(state.value() if isinstance(state, Variable) else state)
    if values.shape != (3,) or not dtypes.is_integer(values.dtype):
        raise ArgumentError("random.Generator", f"the state is {values.type}; Philox has three integers.")
    return hf.astype(values, dtypes.int64)


# ---- Keras's


class SeedGenerator(_Generator):
    """``keras.random.SeedGenerator``: a seed, and the number of pairs that it has given.

    Args:
        seed: An integer; one from the operating system's entropy by default.
        name: Its name.
    """

    @entered
    def __init__(self, seed: int | None = None, name: str | None = None, **kwargs: object) -> None:
        self._initial_seed, self.name = seed, name or "seed_generator"
        if seed is None:
            seed = int(_Generator.from_non_deterministic_state().state.numpy()[0] % 10**9)
        if not isinstance(seed, int):
            raise ArgumentError("SeedGenerator", f"Argument `seed` must be an integer. Received: seed={seed}")
        self._state = Variable(np.array([_signed(seed), 0], np.int64), trainable=False, name="seed_generator_state")

    @entered
    def next(self, ordered: bool = True) -> Tensor:
        """The next pair."""

        def advance() -> Tensor:
            state = self._state.value()
            self._state.assign(state + np.array([0, 1]) if ordered else (state + 1) * 5387 % 933199)
            return state

        return with_locks((self._state._gate,), advance)

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` takes."""
        return {"seed": self._initial_seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """The generator that a dict describes."""
        return cls(**config)

    def reset(self, seed: int) -> None:
        """Start anew, with another seed."""
        self._state.assign(np.array([_signed(seed), 0], np.int64))

    def _drawn(self, blocks: object) -> Tensor:
        return state_of(keras_seed(self), "SeedGenerator")[:2]

    def __repr__(self) -> str:
        return f"<SeedGenerator {self.name} {self._state._current().tolist()}>"


def keras_seed(seed: object) -> Any:
    """The pair for a stateless function that Keras makes of a seed: an integer, a generator or None."""
    if isinstance(seed, SeedGenerator):
        return seed.next() % (2**31 - 2)
    if seed is None:
        return hf.random.global_generator().make_seeds()[:, 0]
    if isinstance(seed, _Generator):
        return seed.make_seeds()[:, 0]
    if not isinstance(seed, int):
        raise ArgumentError(
            "keras.random", f"Argument `seed` must be either an integer or an instance of `SeedGenerator`: {seed!r}."
        )
    return np.array([_signed(seed) % (2**31 - 2), 0], np.int64)
