"""Ops that make values from nothing, or from a key."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import MAX_LITERAL_BYTES, Literal
from hybridflow.compiler.ir.types import Shape, TensorType, product
from hybridflow.compiler.ops import arrays, rules, samples
from hybridflow.compiler.ops.emission import ElementSource, Val
from hybridflow.compiler.ops.table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError

# ---- constant


def _constant_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    value = attrs["value"]
    if not isinstance(value, Literal):
        raise ArgumentTypeError("constant", f"value is {value!r}. Expected a Literal.")
    if len(value.data) > MAX_LITERAL_BYTES:
        raise ArgumentError(
            "constant", f"{value.type} takes {len(value.data)} bytes. Expected at most {MAX_LITERAL_BYTES}."
        )
    return attrs


define(
    "constant",
    Kind.CREATE,
    0,
    doc="A small array that is part of the program.",
    canon=_constant_canon,
    infer=lambda value: value.type,
    reference=lambda value: value.array,
    element=lambda g, index, value: g.literal(value, index),
    vjp=NOT_DIFFERENTIABLE,
    samples=lambda rng, dtype: [
        ((), {"value": Literal.of(array)})
        for array in (samples.values(rng, dtype, ()), samples.values(rng, dtype, (2, 3)), samples.edges(dtype))
    ],
    dtypes=dt.ALL,
    facts={"exact": True},
)


# ---- extent


def _extent_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    dtype = np.dtype(attrs["dtype"])
    rules.check_dtype("extent", TensorType((), dtype), frozenset(rules.NUMERIC), "the result")
    return {"value": rules.whole("extent", "value", attrs["value"]), "dtype": dtype}


define(
    "extent",
    Kind.CREATE,
    0,
    doc="An extent, or what is calculated from extents, as a number.",
    canon=_extent_canon,
    infer=lambda value, dtype: TensorType((), dtype),
    reference=lambda value, dtype: arrays.convert(np.asarray(value, np.int64), dtype),
    element=lambda g, index, value, dtype: g.e.convert(g.value(value), dt.compute_dtype(dtype)),
    vjp=NOT_DIFFERENTIABLE,
    samples=lambda rng, dtype: [((), {"value": value, "dtype": dtype}) for value in (0, 1, 100)],
    dtypes=rules.NUMERIC,
    facts={"exact": True},
)


# ---- iota


def _iota_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    shape, dtype = rules.shape("iota", attrs["shape"]), np.dtype(attrs["dtype"])
    type = TensorType(shape, dtype)
    rules.check_dtype("iota", type, frozenset(rules.NUMERIC), "the result")
    return {"shape": shape, "axis": rules.axis("iota", type, attrs["axis"]), "dtype": dtype}


def _iota_reference(shape: tuple[int, ...], axis: int, dtype: Any) -> np.ndarray:
    counted = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return np.broadcast_to(arrays.convert(counted, dtype), shape)


define(
    "iota",
    Kind.CREATE,
    0,
    doc="Each element's position along an axis.",
    canon=_iota_canon,
    infer=lambda shape, axis, dtype: TensorType(shape, dtype),
    reference=_iota_reference,
    element=lambda g, index, shape, axis, dtype: g.e.convert(g.value(index[axis]), dt.compute_dtype(dtype)),
    vjp=NOT_DIFFERENTIABLE,
    samples=lambda rng, dtype: [
        ((), {"shape": shape, "axis": axis, "dtype": dtype})
        for shape, axis in (((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 0), 1), ((300,), 0))
    ],
    dtypes=rules.NUMERIC,
    facts={"exact": True},
)


# ---- random bits: Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC 2011)

_PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key in each round
_PHILOX_ROUNDS = 10
_LOW32 = 0xFFFFFFFF


def philox(counter: Any, seed: int) -> np.ndarray:
    """The blocks of four words for an array of 64-bit counters, as uint32[..., 4]."""
    counter = np.asarray(counter, np.uint64)
    words = [counter & np.uint64(_LOW32), counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)]
    keys = [int(seed) & _LOW32, int(seed) >> 32]
    for _ in range(_PHILOX_ROUNDS):
        first, second = (words[2 * k] * np.uint64(m) for k, m in enumerate(_PHILOX_MULTIPLIERS))
        words = [
            (second >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0]),
            second & np.uint64(_LOW32),
            (first >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1]),
            first & np.uint64(_LOW32),
        ]
        keys = [(key + w) & _LOW32 for key, w in zip(keys, _PHILOX_WEYL)]
    return np.stack(words, axis=-1).astype(np.uint32)


def _random_bits_reference(state: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    many = state.shape[:-1]
    words = [_words(one, shape) for one in state.reshape(-1, 2)]
    return np.array(words, np.uint32).reshape((*many, *shape))


def _words(state: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    seed, counter = (int(word) for word in state)
    size = int(np.prod(shape, dtype=np.int64))
    with np.errstate(over="ignore"):
        blocks = np.uint64(counter) + np.arange(-(-size // 4), dtype=np.uint64)
    return philox(blocks, seed).reshape(-1)[:size].reshape(shape)


def _random_bits_infer(state: TensorType, shape: Shape) -> TensorType:
    rules.check_dtype("random_bits", state, frozenset((dt.uint64,)), "the state")
    if state.shape[-1:] != (2,):
        raise ShapeError("random_bits", f"the state is {state}. Expected u64[2], or many of them: seed and counter.")
    return TensorType((*state.shape[:-1], *shape), dt.uint32)


def _random_bits_element(g: ElementSource, index: tuple[Any, ...], shape: Shape) -> Val:
    e = g.e
    u32, u64 = dt.uint32, dt.uint64

    def low(x: Any) -> Any:
        return e.convert(x, u32)

    def high(x: Any) -> Any:
        return e.convert(e.lshr(x, e.const(32, u64)), u32)

    many = len(index) - len(shape)
    seed, start = g.load(0, (*index[:many], 0)), g.load(0, (*index[:many], 1))
    own = g.linear(index) % product(shape) if many else g.linear(index)
    position = e.convert(g.value(own), u64)
    counter = e.add(start, e.lshr(position, e.const(2, u64)))
    zero = e.const(0, u32)
    words = (low(counter), high(counter), zero, zero)
    keys = (low(seed), high(seed))
    for _ in range(_PHILOX_ROUNDS):
        first, second = (
            e.mul(e.convert(words[2 * k], u64), e.const(m, u64)) for k, m in enumerate(_PHILOX_MULTIPLIERS)
        )
        words = (
            e.xor(e.xor(high(second), words[1]), keys[0]),
            low(second),
            e.xor(e.xor(high(first), words[3]), keys[1]),
            low(first),
        )
        keys = (e.add(keys[0], e.const(_PHILOX_WEYL[0], u32)), e.add(keys[1], e.const(_PHILOX_WEYL[1], u32)))
    which = e.and_(low(position), e.const(3, u32))
    odd = e.ne(e.and_(which, e.const(1, u32)), zero)
    upper = e.ge(which, e.const(2, u32))
    return e.select(upper, e.select(odd, words[3], words[2]), e.select(odd, words[1], words[0]))


def _random_bits_samples(rng: np.random.Generator, dtype: Any) -> list[samples.Sample]:
    states = [(0, 0), (2**64 - 1, 2**64 - 1), (0x0123456789ABCDEF, 2**32 - 1)]
    return [
        ((np.array(state, np.uint64),), {"shape": shape})
        for state, shape in zip([*states * 2, states, [states]], [(8,), (9,), (3, 5), (0,), (), (2, 67), (3, 5), ()])
    ]


define(
    "random_bits",
    Kind.CREATE,
    1,
    doc="""Words of Philox 4x32-10.  The state is uint64[2]: seed and counter.  Element i, in row-major order, is word
    i % 4 of the block for the 128-bit counter ``counter + i // 4`` (the sum wraps at 64 bits; the high half is 0).
    Each of several states has words of its own: the result has the state's leading axes, then those of ``shape``.""",
    batch=lambda b, op, size, batched, state, shape: b.random_bits(state, shape=shape),
    canon=lambda types, attrs: {"shape": rules.shape("random_bits", attrs["shape"])},
    infer=_random_bits_infer,
    reference=_random_bits_reference,
    element=_random_bits_element,
    vjp=NOT_DIFFERENTIABLE,
    samples=_random_bits_samples,
    dtypes=(dt.uint64,),
    facts={"exact": True},
)
