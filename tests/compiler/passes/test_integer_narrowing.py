"""Integer arithmetic that is computed in fewer bits than it is written in: NumPy's results, for all pairs of bytes."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf

EVERY = np.arange(256)
A, B = (side.ravel() for side in np.meshgrid(EVERY, EVERY))
WIDE = ["int16", "uint16", "int32", "uint32", "int64", "uint64"]
PROGRAMS = {
    "sum": lambda l, a, b: a + b,
    "difference": lambda l, a, b: a - b,
    "product": lambda l, a, b: a * b,
    "square of a product": lambda l, a, b: a * b * (a * b),
    "saturating sum": lambda l, a, b: l.minimum(a + b, 255),
    "rounded mean": lambda l, a, b: (a + b + 1) >> 1,
    "scaled": lambda l, a, b: (a * b + 127) // 255,
    "weighed": lambda l, a, b: (a * 77 + b * 179) >> 8,
    "shifted": lambda l, a, b: (a << 4) | (b >> 4),
    "joined": lambda l, a, b: ((a | b) + (a ^ b) * 2 - (a ^ 300)) >> 1,
    "shifted far": lambda l, a, b: (a >> 9) + (a << 9),
    "quotient": lambda l, a, b: a // (b | 1),
    "remainder": lambda l, a, b: a % (b | 1) + b,
    "distance": lambda l, a, b: l.where(a > b, a - b, b - a),
    "chosen": lambda l, a, b: l.where(a * 3 < b + 100, a, 300),
    "compared": lambda l, a, b: (a * b == b * 7) | (a + b >= 300) | (a != 3),
    "masked": lambda l, a, b: (a * b) & 0xFF0,
    "clipped": lambda l, a, b: l.maximum(l.minimum(a * 5 - b * 3, 200), 20),
}


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("source", ["uint8", "int8"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_pairs_of_bytes(name, source, wide):
    program = PROGRAMS[name]
    a, b = A.astype(source), B.astype(source)
    with np.errstate(all="ignore"):
        expected = program(np, a.astype(wide), b.astype(wide))
    for result in (expected.dtype.name, "uint8", "float32"):
        found = hf.function(lambda a, b: hf.astype(program(hf, hf.astype(a, wide), hf.astype(b, wide)), result))  # noqa: B023
        assert np.array_equal(found(a, b), expected.astype(result))


@pytest.mark.parametrize("wide", ["int64", "uint64"])
@pytest.mark.parametrize("between", ["uint16", "uint32"])
def test_a_conversion_on_the_way_wraps(between, wide):
    a = EVERY.astype("int8")

    def program(l, a):
        x = l.astype(l.astype(a, between), wide)
        return l.astype((x + 1) >> 1, between), l.astype(x * 3 // 7, between), x // 3 > 5000

    for found, expected in zip(hf.function(lambda a: program(hf, a))(a), program(np, a)):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("view", ["reshape", "transpose", "slice", "broadcast"])
def test_views_of_what_is_compared(view):
    a = np.arange(48, dtype="uint8").reshape(6, 8)

    def program(l, a):
        wide = l.astype(a, "int32") * 3
        compared = wide[0, 0] < 100 if view == "broadcast" else wide > 100
        return {
            "reshape": lambda: l.reshape(compared, (4, 12)),
            "transpose": lambda: l.matrix_transpose(compared),
            "slice": lambda: compared[1:, ::2],
            "broadcast": lambda: l.broadcast_to(compared, (3, 4)),
        }[view]()

    assert np.array_equal(hf.function(lambda a: program(hf, a))(a), program(np, a))
