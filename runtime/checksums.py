"""CRC-32 of large buffers, in native code where the machine multiplies polynomials.

The sum is the remainder of the bytes, as a polynomial over bits, by a fixed one.  The native function keeps 64 bytes
with the remainder of all that it has read: it multiplies these by a power of x, four times 16 bytes at once, and adds
the next 64; what remains goes through a table byte by byte.  Source: Gopal and others, "Fast CRC Computation for
Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
"""

from __future__ import annotations

import ctypes
import functools
import zlib
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
import numpy as np

from hybridflow.runtime.machine import host_target
from hybridflow.runtime.native import native_functions
from hybridflow.runtime.native.ir_builder import I8, I32, I64, PTR, Function, Module, i32, i64

_POLYNOMIAL = 0xEDB88320  # lowest power first
_FUNCTION = "hf_crc32"
_LANES = ir.VectorType(I64, 2)
_BLOCK = 64  # bytes that are kept
_LARGE = 1 << 18  # bytes from which on native code is worth loading


def crc32(data: Any, total: int = 0) -> int:
    """The CRC-32 of a contiguous buffer of bytes that comes after what has the sum ``total``: as ``zlib.crc32``.

    Other threads run meanwhile.
    """
    native = _native() if len(data) >= _LARGE else None
    return zlib.crc32(data, total) if native is None else native(data, total)


def joined(first: int, second: int, count: int) -> int:
    """The sum of what has the sum ``first`` followed by ``count`` bytes of the sum ``second``."""
    return _product(_power(8 * count), first) ^ second


@functools.cache
def _native() -> Callable[[Any, int], int] | None:
    """``crc32`` in native code; None where the machine has none that is faster than zlib's."""
    if not host_target.detect().has("pclmul"):
        return None
    address = native_functions.load(_build, (), (_FUNCTION,), {})[_FUNCTION]
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    native = ctypes.CFUNCTYPE(number, pointer, ctypes.c_int64, number, pointer, pointer)(address)
    values, factors = _table(), _factors()

    def total_of(data: Any, total: int) -> int:
        content = np.frombuffer(data, np.uint8)
        crc: int = native(
            content.ctypes.data, content.size, total ^ 0xFFFFFFFF, values.ctypes.data, factors.ctypes.data
        )
        return crc ^ 0xFFFFFFFF

    return total_of


def _table() -> np.ndarray:
    """What each byte becomes when it is the last one."""
    values: np.ndarray = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = values >> 1 ^ np.where(values & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return values


def _factors() -> np.ndarray:
    """What the halves of 16 bytes are multiplied by, to stand where those that come 64 bytes later do."""
    bits = 8 * _BLOCK
    return np.array([_power(bits + 32) << 1, _power(bits - 32) << 1], np.uint64)


def _product(a: int, b: int) -> int:
    """The product of two remainders, whose highest bits are the lowest powers."""
    result = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            result ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return result


@functools.lru_cache(maxsize=64)
def _power(exponent: int) -> int:
    """The remainder of a power of x."""
    result, square = 1 << 31, 1 << 30
    while exponent:
        if exponent & 1:
            result = _product(result, square)
        square = _product(square, square)
        exponent >>= 1
    return result


def _build() -> str:
    """u32 hf_crc32(ptr data, i64 count, u32 state, ptr table, ptr factors): the state after the bytes."""
    f = Module().function(_FUNCTION, I32, PTR, I64, I32, PTR, PTR)
    data, count, state, values, _ = f.args
    place, rest, total = f.local(I64, i64(0)), f.local(I64, count), f.local(I32, state)
    kept = f.local(ir.ArrayType(I64, _BLOCK // 8))
    with f.b.if_then(f.b.icmp_unsigned(">=", count, i64(2 * _BLOCK))):
        _fold(f, place, kept)
        f.set(rest, f.b.sub(count, f.get(place, I64)))
        f.set(total, _bytes(f, kept, i64(_BLOCK), i32(0), values))
    f.ret(_bytes(f, f.at(data, f.get(place, I64)), f.get(rest, I64), f.get(total, I32), values))
    return str(f.module.ir)


def _fold(f: Function, place: ir.Value, kept: ir.Value) -> None:
    """Read whole blocks, and leave in ``kept`` bytes of the same remainder; ``place`` is where the rest begins."""
    data, count, state, _, constants = f.args
    factors = _lanes(f, constants, 0)
    lanes = [f.local(_LANES, _lanes(f, data, 16 * i)) for i in range(4)]
    first = f.b.insert_element(ir.Constant(_LANES, [0, 0]), f.b.zext(state, I64), i32(0))
    f.set(lanes[0], f.b.xor(f.get(lanes[0], _LANES), first))
    f.set(place, i64(_BLOCK))
    last = f.b.sub(count, i64(_BLOCK))
    with f.loop(lambda: f.b.icmp_signed("<=", f.get(place, I64), last)):
        block = f.at(data, f.get(place, I64))
        for i, lane in enumerate(lanes):
            halves = [_times(f, f.get(lane, _LANES), factors, half) for half in (0x00, 0x11)]
            f.set(lane, f.b.xor(f.b.xor(*halves), _lanes(f, block, 16 * i)))
        f.set(place, f.b.add(f.get(place, I64), i64(_BLOCK)))
    for i, lane in enumerate(lanes):
        f.b.store(f.get(lane, _LANES), f.at(kept, 16 * i)).align = 8


def _times(f: Function, a: ir.Value, b: ir.Value, halves: int) -> ir.Value:
    return f.call("llvm.x86.pclmulqdq", _LANES, a, b, ir.Constant(I8, halves))


def _lanes(f: Function, pointer: ir.Value, offset: int) -> ir.Value:
    value = f.load(pointer, offset, _LANES)
    value.align = 1
    return value


def _bytes(f: Function, data: ir.Value, count: ir.Value, state: ir.Value, values: ir.Value) -> ir.Value:
    """The state after bytes that are looked up one after another."""
    total = f.local(I32)
    f.set(total, state)
    with f.count(count) as i:
        byte = f.b.zext(f.get(f.at(data, i), I8), I32)
        index = f.b.and_(f.b.xor(f.get(total, I32), byte), i32(255))
        entry = f.get(f.element(values, f.b.zext(index, I64), I32), I32)
        f.set(total, f.b.xor(f.b.lshr(f.get(total, I32), i32(8)), entry))
    return f.get(total, I32)
