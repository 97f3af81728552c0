"""The fixed order in which reductions fold, in NumPy: what the compiled loops must match bit for bit.

Axes of one element play no part.  Of the others, the maximal group of trailing axes that are all reduced is one run of
R elements, and the remaining reduced axes are, in row-major order, an outer sequence of such runs (of elements, where
the last axis is kept).

A run folds in superchunks of 262144 elements, of chunks of 4096, of 64 lanes: lane l of a chunk folds elements l,
l + 64, ...; the lanes of the chunks fold into those of the superchunk; these fold by halving, lane l with lane l + 32,
then + 16, ... + 1; and the superchunks fold one after the other.  The outer sequence folds in a cascade: 64 terms into
a first level, 64 of those into a second, and those into the total.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hybridflow.compiler.ops import arrays, rules

LANES = 64
CHUNK = 64 * LANES
SUPERCHUNK = 64 * CHUNK
TERMS = 64

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def ordered_sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The bits of the ``sum`` op for floats."""
    return arrays.convert(0.0 + ordered_fold(np.add, -0.0, arrays.computed(x), axes), x.dtype)


def ordered_prod(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The bits of the ``prod`` op for floats."""
    return arrays.convert(ordered_fold(np.multiply, 1.0, arrays.computed(x), axes), x.dtype)


def ordered_fold(combine: Combine, identity: Any, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """``x`` folded over ``axes`` in its own dtype; ``identity`` must be one that changes no bits."""
    kept_shape = tuple(x.shape[a] for a in rules.kept_axes(x.ndim, axes))
    reduced = [a in axes for a in range(x.ndim) if x.shape[a] != 1]
    x = x.reshape([size for size in x.shape if size != 1])
    first = x.ndim
    while first and reduced[first - 1]:
        first -= 1
    outer = [a for a in range(first) if reduced[a]]
    kept = [a for a in range(first) if not reduced[a]]
    run = math.prod(x.shape[first:])
    moved = np.transpose(x, (*outer, *kept, *range(first, x.ndim)))
    terms = moved.reshape(math.prod(x.shape[a] for a in outer), math.prod(x.shape[a] for a in kept), run)
    start = np.full((), identity, x.dtype)
    with np.errstate(all="ignore"):
        rows = (_run(combine, start, term) for term in terms) if first < x.ndim else (term[:, 0] for term in terms)
        return _cascade(combine, start, rows, terms.shape[1]).reshape(kept_shape)


def _cascade(combine: Combine, start: np.ndarray, terms: Iterator[np.ndarray], width: int) -> np.ndarray:
    first = second = total = np.broadcast_to(start, width)
    for count, term in enumerate(terms, 1):
        first = combine(first, term)
        if count % TERMS == 0:
            first, second = np.broadcast_to(start, width), combine(second, first)
        if count % (TERMS * TERMS) == 0:
            second, total = np.broadcast_to(start, width), combine(total, second)
    return combine(total, combine(second, first))


def _run(combine: Combine, start: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Rows of ``x`` folded: [rows, R] to [rows]."""
    total = np.broadcast_to(start, x.shape[0])
    for begin in range(0, x.shape[1], SUPERCHUNK):
        block = x[:, begin : begin + SUPERCHUNK]
        lanes = np.broadcast_to(start, (x.shape[0], LANES))
        for at in range(0, block.shape[1], CHUNK):
            lanes = combine(lanes, _chunk(combine, start, block[:, at : at + CHUNK]))
        while lanes.shape[1] > 1:
            half = lanes.shape[1] // 2
            lanes = combine(lanes[:, :half], lanes[:, half:])
        total = combine(total, lanes[:, 0])
    return total


def _chunk(combine: Combine, start: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The lanes of one chunk: [rows, up to CHUNK] to [rows, LANES]."""
    rows, size = x.shape
    lanes = np.broadcast_to(start, (rows, LANES))
    filled = np.concatenate([x, np.broadcast_to(start, (rows, -size % LANES))], axis=1)
    for step in np.moveaxis(filled.reshape(rows, -1, LANES), 1, 0):
        lanes = combine(lanes, step)
    return lanes
