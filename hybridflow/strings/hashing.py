"""Hashes of texts as published: FarmHash's Fingerprint64, SipHash-2-4 and MurmurHash64A."""

from __future__ import annotations

import struct

_M = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _u64(s: bytes, at: int = 0) -> int:
    return int.from_bytes(s[at : at + 8], "little")


def _u32(s: bytes, at: int = 0) -> int:
    return int.from_bytes(s[at : at + 4], "little")


def _ror(x: int, n: int) -> int:
    return ((x >> n) | (x << (64 - n))) & _M if n else x


def _mix(x: int) -> int:
    return x ^ (x >> 47)


def _len16(u: int, v: int, mul: int) -> int:
    a = ((u ^ v) * mul) & _M
    a ^= a >> 47
    b = ((v ^ a) * mul) & _M
    b ^= b >> 47
    return (b * mul) & _M


def _to_16(s: bytes) -> int:
    n = len(s)
    if n >= 8:
        mul = (_K2 + n * 2) & _M
        a, b = (_u64(s) + _K2) & _M, _u64(s, n - 8)
        c = (_ror(b, 37) * mul + a) & _M
        d = ((_ror(a, 25) + b) * mul) & _M
        return _len16(c, d, mul)
    if n >= 4:
        mul = (_K2 + n * 2) & _M
        return _len16(n + (_u32(s) << 3), _u32(s, n - 4), mul)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[n - 1] << 2)
        return (_mix((y * _K2 ^ z * _K0) & _M) * _K2) & _M
    return _K2


def _to_32(s: bytes) -> int:
    n = len(s)
    mul = (_K2 + n * 2) & _M
    a, b = (_u64(s) * _K1) & _M, _u64(s, 8)
    c, d = (_u64(s, n - 8) * mul) & _M, (_u64(s, n - 16) * _K2) & _M
    return _len16((_ror((a + b) & _M, 43) + _ror(c, 30) + d) & _M, (a + _ror((b + _K2) & _M, 18) + c) & _M, mul)


def _to_64(s: bytes) -> int:
    n = len(s)
    mul = (_K2 + n * 2) & _M
    a, b = (_u64(s) * _K2) & _M, _u64(s, 8)
    c, d = (_u64(s, n - 8) * mul) & _M, (_u64(s, n - 16) * _K2) & _M
    y = (_ror((a + b) & _M, 43) + _ror(c, 30) + d) & _M
    z = _len16(y, (a + _ror((b + _K2) & _M, 18) + c) & _M, mul)
    e, f = (_u64(s, 16) * mul) & _M, _u64(s, 24)
    g, h = ((y + _u64(s, n - 32)) * mul) & _M, ((z + _u64(s, n - 24)) * mul) & _M
    return _len16((_ror((e + f) & _M, 43) + _ror(g, 30) + h) & _M, (e + _ror((f + a) & _M, 18) + g) & _M, mul)


def _weak(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = struct.unpack_from("<4Q", s, at)
    a = (a + w) & _M
    b = _ror((b + a + z) & _M, 21)
    c = a
    a = (a + x + y) & _M
    b = (b + _ror(a, 44)) & _M
    return (a + z) & _M, (b + c) & _M


def fingerprint64(s: bytes) -> int:
    """FarmHash's Fingerprint64: the function ``farmhashna::Hash64``."""
    n = len(s)
    if n <= 16:
        return _to_16(s)
    if n <= 32:
        return _to_32(s)
    if n <= 64:
        return _to_64(s)
    x, y = 81, (81 * _K1 + 113) & _M
    z = (_mix((y * _K2 + 113) & _M) * _K2) & _M
    v, w = (0, 0), (0, 0)
    x = (x * _K2 + _u64(s)) & _M
    end, last = ((n - 1) // 64) * 64, n - 64
    for at in range(0, end, 64):
        x = (_ror((x + y + v[0] + _u64(s, at + 8)) & _M, 37) * _K1) & _M
        y = (_ror((y + v[1] + _u64(s, at + 48)) & _M, 42) * _K1) & _M
        x ^= w[1]
        y = (y + v[0] + _u64(s, at + 40)) & _M
        z = (_ror((z + w[0]) & _M, 33) * _K1) & _M
        v = _weak(s, at, (v[1] * _K1) & _M, (x + w[0]) & _M)
        w = _weak(s, at + 32, (z + w[1]) & _M, (y + _u64(s, at + 16)) & _M)
        z, x = x, z
    mul = (_K1 + ((z & 0xFF) << 1)) & _M
    at = last
    w = ((w[0] + ((n - 1) & 63)) & _M, w[1])
    v = ((v[0] + w[0]) & _M, v[1])
    w = ((w[0] + v[0]) & _M, w[1])
    x = (_ror((x + y + v[0] + _u64(s, at + 8)) & _M, 37) * mul) & _M
    y = (_ror((y + v[1] + _u64(s, at + 48)) & _M, 42) * mul) & _M
    x ^= (w[1] * 9) & _M
    y = (y + v[0] * 9 + _u64(s, at + 40)) & _M
    z = (_ror((z + w[0]) & _M, 33) * mul) & _M
    v = _weak(s, at, (v[1] * mul) & _M, (x + w[0]) & _M)
    w = _weak(s, at + 32, (z + w[1]) & _M, (y + _u64(s, at + 16)) & _M)
    z, x = x, z
    first = (_len16(v[0], w[0], mul) + _mix(y) * _K0 + z) & _M
    return _len16(first, (_len16(v[1], w[1], mul) + x) & _M, mul)


def siphash(s: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 with a key of two numbers of 64 bits."""
    k0, k1 = key[0] & _M, key[1] & _M
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count: int) -> None:
        a, b, c, d = v
        for _ in range(count):
            a = (a + b) & _M
            b = _ror(b, 51) ^ a
            a = _ror(a, 32)
            c = (c + d) & _M
            d = _ror(d, 48) ^ c
            a = (a + d) & _M
            d = _ror(d, 43) ^ a
            c = (c + b) & _M
            b = _ror(b, 47) ^ c
            c = _ror(c, 32)
        v[:] = a, b, c, d

    padded = s + bytes(7 - len(s) % 8) + bytes([len(s) & 0xFF])
    for (m,) in struct.iter_unpack("<Q", padded):
        v[3] ^= m
        rounds(2)
        v[0] ^= m
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def murmur64(s: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """MurmurHash64A, whose last bytes count by place."""
    m, r, n = 0xC6A4A7935BD1E995, 47, len(s)
    h = (seed ^ (n * m)) & _M
    whole = n & ~7
    for at in range(0, whole, 8):
        k = (_u64(s, at) * m) & _M
        k ^= k >> r
        k = (k * m) & _M
        h = ((h ^ k) * m) & _M
    if n > whole:
        h ^= int.from_bytes(s[whole:], "little")
        h = (h * m) & _M
    h ^= h >> r
    h = (h * m) & _M
    return h ^ (h >> r)


def combined(fingerprint: int, other: int) -> int:
    """The fingerprint of two fingerprints, in their order: ``FingerprintCat64``."""
    m = 0xC6A4A7935BD1E995
    result = fingerprint ^ m
    result ^= (_mix((other * m) & _M) * m) & _M
    result = (result * m) & _M
    result = (_mix(result) * m) & _M
    return _mix(result)
