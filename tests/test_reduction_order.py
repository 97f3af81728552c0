"""The reference order of reductions, against the same rule spelled out element by element."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import reduction_order as order

F32 = np.float32


def plain_run(elements: list[np.float32]) -> np.float32:
    """One run: lanes, chunks, superchunks, in scalars."""
    total = F32(-0.0)
    for begin in range(0, len(elements), order.SUPERCHUNK):
        block = elements[begin : begin + order.SUPERCHUNK]
        lanes = [F32(-0.0)] * 64
        for at in range(0, len(block), order.CHUNK):
            chunk = [F32(-0.0)] * 64
            for k, x in enumerate(block[at : at + order.CHUNK]):
                chunk[k % 64] += x
            lanes = [a + b for a, b in zip(lanes, chunk)]
        step = 32
        while step:
            lanes = [lanes[k] + lanes[k + step] for k in range(step)]
            step //= 2
        total += lanes[0]
    return total


def plain_cascade(terms: list[np.float32]) -> np.float32:
    total = F32(-0.0)
    for outer in range(0, len(terms), 4096):
        second = F32(-0.0)
        for inner in range(outer, min(outer + 4096, len(terms)), 64):
            first = F32(-0.0)
            for term in terms[inner : min(inner + 64, outer + 4096)]:
                first += term
            second += first
        total += second
    return total


def plain_sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Every output element on its own: the outer reduced axes in row-major order, the trailing group as runs."""
    real = [a for a in range(x.ndim) if x.shape[a] != 1]
    trailing: list[int] = []
    for a in reversed(real):
        if a not in axes:
            break
        trailing.insert(0, a)
    outer = [a for a in real if a in axes and a not in trailing]
    kept = [a for a in range(x.ndim) if a not in axes]
    out = np.zeros([x.shape[a] for a in kept], F32)
    for place in np.ndindex(*out.shape):
        index = [0] * x.ndim
        for a, i in zip(kept, place):
            index[a] = i
        terms = []
        for turn in itertools.product(*(range(x.shape[a]) for a in outer)):
            for a, i in zip(outer, turn):
                index[a] = i
            elements = []
            for step in itertools.product(*(range(x.shape[a]) for a in trailing)):
                for a, i in zip(trailing, step):
                    index[a] = i
                elements.append(x[tuple(index)])
            terms.append(plain_run(elements) if trailing else elements[0])
        out[place] = F32(0.0) + plain_cascade(terms)
    return out


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((), ()),
        ((1,), (0,)),
        ((63,), (0,)),
        ((65,), (0,)),
        ((4097,), (0,)),
        ((9001,), (0,)),
        ((3, 130), (1,)),
        ((130, 3), (0,)),
        ((4200, 2), (0,)),
        ((5, 67, 3), (0, 2)),
        ((70, 2, 5, 13), (0, 2, 3)),
        ((130, 1), (0,)),
        ((1, 130, 1), (1,)),
        ((130, 3, 1), (0, 2)),
        ((2, 0), (1,)),
        ((0, 2), (0,)),
        ((2, 3), ()),
    ],
)
def test_sums_fold_in_the_written_order(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape) + math.prod(shape))
    x = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape), F32)
    got = order.ordered_sum(x, axes)
    assert got.dtype == F32
    assert got.tobytes() == plain_sum(x, axes).tobytes()


def test_superchunks_fold_in_order() -> None:
    x = np.zeros(2 * order.SUPERCHUNK + 5, F32)
    x[0], x[order.SUPERCHUNK], x[-1] = 1.0, 2.0**-24, 2.0**-24  # each is lost when added to 1 on its own
    assert order.ordered_sum(x, (0,)) == 1.0
    x[order.SUPERCHUNK + 1], x[-1] = 2.0**-24, 0.0  # two of them meet first
    assert order.ordered_sum(x, (0,)) == F32(1 + 2.0**-23)


def test_zeros_and_narrow_floats() -> None:
    assert not np.signbit(order.ordered_sum(np.zeros(0, F32), (0,)))
    assert not np.signbit(order.ordered_sum(np.full(3, -0.0, F32), (0,)))
    # In float16, 2048 + 1 would stay 2048 at every step.
    ones = np.ones(3000, np.float16)
    assert order.ordered_sum(ones, (0,)) == np.float16(3000)
    assert order.ordered_sum(ones.astype(dt.bfloat16), (0,)).dtype == dt.bfloat16
    assert order.ordered_prod(np.full(3, -2.0, F32), (0,)) == -8
