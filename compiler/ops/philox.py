"""Random bits: Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC 2011).

A generator's state is uint64[2], seed and counter.  The seed is the key; a block of four words is made of a 128-bit
counter, whose low half is the state's counter plus the number of the block.  The high half is 0 for ``random_bits``,
or the third number of a state of three; the samplers (``sampling.py``) count their tries in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.types import Extent, Shape, TensorType, product
from hybridflow.compiler.ops import samples, type_rules
from hybridflow.compiler.ops.emitter_protocol import ElementSource, Emit, Val
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.errors import ShapeError

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key in each round
_ROUNDS = 10
_LOW32 = 0xFFFFFFFF
WORDS = 4  # of a block


def philox(counter: np.ndarray, seed: int, third: object = 0, fourth: object = 0) -> np.ndarray:
    """The blocks of four words for an array of 64-bit counters, as uint32[..., 4]; ``third`` and ``fourth`` are the
    words of the counter's high half."""
    counter = np.asarray(counter, np.uint64)
    high = [np.broadcast_to(np.asarray(word, np.uint64), counter.shape) for word in (third, fourth)]
    words = [counter & np.uint64(_LOW32), counter >> np.uint64(32), *high]
    keys = [int(seed) & _LOW32, int(seed) >> 32]
    for _ in range(_ROUNDS):
        first, second = (words[2 * k] * np.uint64(m) for k, m in enumerate(_MULTIPLIERS))
        words = [
            (second >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0]),
            second & np.uint64(_LOW32),
            (first >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1]),
            first & np.uint64(_LOW32),
        ]
        keys = [(key + w) & _LOW32 for key, w in zip(keys, _WEYL)]
    return np.stack(words, axis=-1).astype(np.uint32)


def block(e: Emit, seed: Val, counter: Val, third: Val | None = None, fourth: Val | None = None) -> list[Val]:
    """The four words of a block in each lane.  All values are uint64, of results only the low halves count: a product
    of low halves is one instruction on lanes of 64 bits, and conversions between widths are none."""
    zero = e.const(0, dt.uint64, counter.width)
    words = [counter, e.lshr(counter, 32), third or zero, fourth or zero]
    keys = [e.and_(seed, _LOW32), e.lshr(seed, 32)]
    for round in range(_ROUNDS):
        if round:
            keys = [e.add(key, w) for key, w in zip(keys, _WEYL)]
        first, second = (e.mul(e.and_(words[2 * k], _LOW32), m) for k, m in enumerate(_MULTIPLIERS))
        words = [
            e.xor(e.xor(e.lshr(second, 32), words[1]), keys[0]),
            second,
            e.xor(e.xor(e.lshr(first, 32), words[3]), keys[1]),
            first,
        ]
    return words


# ---- random_bits


def _reference(state: np.ndarray, shape: tuple[int, ...], first: int) -> np.ndarray:
    many = state.shape[:-1]
    words = [_words(one, shape, first) for one in state.reshape(-1, state.shape[-1])]
    return np.array(words, np.uint32).reshape((*many, *shape))


def _words(state: np.ndarray, shape: tuple[int, ...], first: int) -> np.ndarray:
    seed, counter, *high = (int(word) for word in state)
    end = first + int(np.prod(shape, dtype=np.int64))
    with np.errstate(over="ignore"):
        blocks = np.uint64(counter) + np.arange(-(-end // WORDS), dtype=np.uint64)
        upper = np.uint64(high[0]) + (blocks < np.uint64(counter)) if high else np.uint64(0)
    third, fourth = upper & np.uint64(_LOW32), upper >> np.uint64(32)
    return philox(blocks, seed, third, fourth).reshape(-1)[first:end].reshape(shape)


def check_state(name: str, state: TensorType, sizes: tuple[int, ...] = (2,)) -> None:
    """Raises DTypeError or ShapeError where ``state`` is not the state of a generator, or of many."""
    type_rules.check_dtype(name, state, frozenset((dt.uint64,)), "the state")
    if not state.shape or state.shape[-1] not in sizes:
        raise ShapeError(name, f"the state is {state}. Expected u64[2], or many of them: seed and counter.")


def _infer(state: TensorType, shape: Shape, first: Extent) -> TensorType:
    check_state("random_bits", state, (2, 3))
    return TensorType((*state.shape[:-1], *shape), dt.uint32)


def _canon(types: Sequence[TensorType], attrs: dict[str, Any]) -> dict[str, Extent | tuple[Extent, ...]]:
    return {
        "shape": type_rules.shape("random_bits", attrs["shape"]),
        "first": type_rules.extent("random_bits", "first", attrs.get("first", 0)),
    }


def _element(g: ElementSource, index: tuple[Any, ...], shape: Shape, first: Extent) -> Val:
    many = len(index) - len(shape)
    place = (g.linear(index) % product(shape) if many else g.linear(index)) + first
    state = [g.load(0, (*index[:many], k)) for k in range(3 if g.types[0].shape[-1] == 3 else 2)]
    position = g.e.convert(g.value(place), dt.uint64)
    begin = g.begin(place, 2 * WORDS)
    if begin is None:
        return _one_by_one(g.e, state, position)
    return _in_blocks(g.e, state, begin, position)


def _one_by_one(e: Emit, state: list[Val], position: Val) -> Val:
    """The word at each position: a block for each lane."""
    return e.call("random_word" if len(state) == 2 else "random_word_of_three", _word, *state, position)[0]


def _block_at(e: Emit, state: Sequence[Val], position: Val) -> list[Val]:
    """The block that the word at a position is in."""
    seed, start, *high = state
    counter = e.add(start, e.lshr(position, 2))
    if not high:
        return block(e, seed, counter)
    upper = e.add(high[0], e.select(e.lt(counter, start), 1, e.const(0, dt.uint64, position.width)))
    return block(e, seed, counter, upper, e.lshr(upper, 32))


def _word(e: Emit, *state_and_position: Val) -> list[Val]:
    *state, position = state_and_position
    words = _block_at(e, state, position)
    zero = e.const(0, dt.uint64, position.width)
    odd = e.ne(e.and_(position, 1), zero)
    upper = e.ne(e.and_(position, 2), zero)
    chosen = e.select(upper, e.select(odd, words[3], words[2]), e.select(odd, words[1], words[0]))
    return [e.convert(chosen, dt.uint32)]


def _in_blocks(e: Emit, state: list[Val], begin: Val, position: Val) -> Val:
    """The words at positions that follow each other from ``begin`` on.  Where that is a multiple of four the lanes are
    the words of whole blocks; elsewhere each lane makes a block for itself."""
    aligned, other, after = (e.new_label(hint) for hint in ("aligned", "other", "after"))
    e.branch_if(e.any(e.eq(e.and_(begin, WORDS - 1), 0)), aligned, other)
    e.label(aligned)
    firsts = [e.every(v, WORDS) for v in (*state, position)]
    low, high = e.call("random_blocks" if len(state) == 2 else "random_blocks_of_three", _blocks, *firsts)
    words = e.halves(e.interleaved(low, high))
    end = e.block
    e.branch(after)
    e.label(other)
    single = _one_by_one(e, state, position)
    end_of_other = e.block
    e.branch(after)
    e.label(after)
    return e.phi((words, end), (single, end_of_other))


def _blocks(e: Emit, *state_and_position: Val) -> list[Val]:
    """The four words of the blocks that begin at positions, two in each uint64."""
    *state, position = state_and_position
    words = _block_at(e, state, position)
    return [e.or_(e.and_(a, _LOW32), e.shl(b, 32)) for a, b in (words[:2], words[2:])]


def _samples(rng: np.random.Generator, dtype: object) -> list[samples.Sample]:
    states = [(0, 0), (2**64 - 1, 2**64 - 1), (0x0123456789ABCDEF, 2**32 - 1)]
    shapes = [(8,), (9,), (3, 5), (0,), (), (2, 67), (3, 5), ()]
    result: list[samples.Sample] = [
        ((np.array(state, np.uint64),), {"shape": shape})
        for state, shape in zip([*states * 2, states, [states]], shapes)
    ]
    three = [((np.array((7, 2**64 - 2, 2**32 - 1), np.uint64),), {"shape": (size,)}) for size in (1, 130)]
    return [*result, *three, *(((np.array(states[2], np.uint64),), {"shape": (130,), "first": n}) for n in (1, 4))]


define(
    "random_bits",
    Kind.CREATE,
    1,
    doc="""Words of Philox 4x32-10.  The state is uint64[2]: seed and counter.  Element i, in row-major order, is word
    n % 4 of the block for the 128-bit counter ``counter + n // 4`` (the sum wraps at 64 bits; the high half is 0),
    where n is ``first + i``.  A state of three has the high half as its last, and the sum carries into it.  Each of
    several states has words of its own: the result has the state's leading axes, then those of ``shape``.""",
    batch=lambda b, op, size, batched, state, shape, first: b.random_bits(state, shape=shape, first=first),
    canon=_canon,
    infer=_infer,
    reference=_reference,
    element=_element,
    vjp=NOT_DIFFERENTIABLE,
    samples=_samples,
    dtypes=(dt.uint64,),
    facts={"exact": True},
)
