"""The orders of folds, products, scans and scatters: part of what the ops mean, written down once.

A float sum depends on the order of its terms, so the bits of a result are those of one stated order: it follows from
the op, its attributes and the shapes, and from nothing else (no vector width, no threads, nothing that was fused). The
constants here are the only ones; the functions are the references in NumPy of what the code generator emits, operation
by operation in the dtype of the states.  Every compiled result has their bits, but for the payloads of NaNs.

**Folds** (reductions).  Axes of one element play no part.  Of the others, the maximal group of trailing axes that are
all reduced is one run of R elements.  The remaining reduced axes are, in row-major order, an outer sequence of such
runs (of elements, where the last axis is kept).  A run folds in superchunks of SUPERCHUNK elements, of chunks of CHUNK,
of LANES lanes: lane l of a chunk folds elements l, l + LANES, ...; the lanes of the chunks fold into those of the
superchunk; these fold by halving, lane l with lane l + 32, then + 16, ... + 1; and the superchunks fold one after the
other.  The outer sequence folds in a cascade: TERMS terms into a first level, TERMS of those into a second, and those
into the total.

**Products.**  The sum over k goes in blocks of K_BLOCK consecutive k, each from 0, one k after the other, each an fma;
the blocks' sums are added one after the other.  bfloat16 factors whose sums are float32 go in runs of RUN k, as x86's
tile registers take them (``tdpbf16ps``): in each the terms of even k and those of odd k are summed apart, from 0, one
after the other, each by an fma; the sum of both is added to that of the block; and denormal factors and sums (up to
those of a block, before they are added up) are zeros. A product of one row or one column that goes by ``lanes`` is a
sum in the order of a row reduction: of the rounded products of its elements, in the dtype of the sums.

**Convolutions.**  The sum over what a window sees goes as those of products do, by blocks of k through the elements of
the window and then the channels of the group, in row-major order; those of a filter's derivative through the images and
the places in them.  Zeros of the padding are factors like others.  bfloat16 goes one k after the other, like all else.

**Scans.**  A line goes in chunks of SCAN_CHUNK elements, of runs of SCAN_RUN.  Each run is scanned by itself, from the
identity; totals of runs carry over to the next run of the chunk, and totals of chunks to the next chunk, one after the
other; out = (carry of the chunk + carry of the run) + what the run's own scan gives.

**Sparse products.**  The entries of a row go one after the other, from 0, in the dtype of the sums; each product is
rounded.

**Scatters.**  Updates of one element are added one after the other, in row-major order of the updates; each sum is
rounded to the dtype.

**Replicas.**  The values of the replicas along a mesh axis fold by a binary tree over their numbers that is complete
from the left: a node over n of them is that of the first 2**k, the largest power of two below n, and then that of the
rest.  bfloat16 and float16 fold in float32.

Starting from the identity changes no bits: it is -0.0 for float sums, which leaves a -0.0 as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import exact_fma, reference_arrays, type_rules
from hybridflow.compiler.ops.convolution import convolved, convolved_filter

LANES = 64
CHUNK = 64 * LANES
SUPERCHUNK = 64 * CHUNK
TERMS = 64

K_BLOCK = 256
RUN = 32  # of bfloat16 factors, whose terms of even k and of odd k are summed apart, flushing denormals

SCAN_RUN = 64
SCAN_CHUNK = 64 * SCAN_RUN

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
State = tuple[np.ndarray, ...]


# ---- folds


def ordered_sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The bits of the ``sum`` op for floats."""
    return reference_arrays.convert(0.0 + ordered_fold(np.add, -0.0, reference_arrays.computed(x), axes), x.dtype)


def ordered_prod(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The bits of the ``prod`` op for floats."""
    return reference_arrays.convert(ordered_fold(np.multiply, 1.0, reference_arrays.computed(x), axes), x.dtype)


def ordered_fold(combine: Combine, identity: object, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """``x`` folded over ``axes`` in its own dtype; ``identity`` must be one that changes no bits."""
    kept_shape = tuple(x.shape[a] for a in type_rules.kept_axes(x.ndim, axes))
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


# ---- products


def ordered_product(x: np.ndarray, y: np.ndarray, sum_dtype: np.dtype, lanes: bool = False) -> np.ndarray:
    """The bits of x[..., m, k] @ y[..., k, n] with that ``sum_dtype``, which the result has."""
    wide = dt.compute_dtype(sum_dtype)
    a, b = (reference_arrays.convert(v, wide) for v in (x, y))
    if lanes:
        with np.errstate(all="ignore"):
            terms = a[..., :, None, :] * np.swapaxes(b, -1, -2)[..., None, :, :]
        sums = ordered_sum(terms, (terms.ndim - 1,)) if dt.is_float(wide) else terms.sum(-1, dtype=wide)
    else:
        sums = _by_blocks(a, b, by_interleaved_runs(x.dtype, wide))
    return reference_arrays.convert(sums, sum_dtype)


def _by_blocks(a: np.ndarray, b: np.ndarray, runs: bool) -> np.ndarray:
    k, sum_dtype = a.shape[-1], a.dtype
    zero = np.zeros((*a.shape[:-1], b.shape[-1]), sum_dtype)
    total = zero
    with np.errstate(all="ignore"):
        for begin in range(0, k, K_BLOCK):
            end = min(k, begin + K_BLOCK)
            total = total + (_runs if runs else _sequential)(a[..., begin:end], b[..., begin:end, :], zero)
    return total


def _sequential(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    for k in range(a.shape[-1]):
        left, right = a[..., :, k, None], b[..., None, k, :]
        total = exact_fma.fma(left, right, total) if dt.is_float(total.dtype) else left * right + total
    return total


def _runs(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    for begin in range(0, a.shape[-1], RUN):
        sums = [np.zeros_like(total)] * 2
        for k in range(begin, min(begin + RUN, a.shape[-1])):
            sums[k % 2] = exact_fma.fma_flushed(a[..., :, k, None], b[..., None, k, :], sums[k % 2])
        total = exact_fma.flushed(total + exact_fma.flushed(sums[0] + sums[1]))
    return total


def by_interleaved_runs(dtype: np.dtype, sum_dtype: np.dtype) -> bool:
    """Whether a product of that dtype goes through k in runs."""
    return bool(dtype == dt.bfloat16 and sum_dtype == dt.float32)


# ---- convolutions (see convolution.py, also for the attributes)


def ordered_convolution(x: np.ndarray, f: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
    """The bits of the ``convolve`` op."""
    return reference_arrays.convert(
        convolved(_one_by_one, reference_arrays.computed(x), reference_arrays.computed(f), attrs), x.dtype
    )


def ordered_convolution_filter(
    x: np.ndarray, g: np.ndarray, size: tuple[int, ...], attrs: Mapping[str, Any]
) -> np.ndarray:
    """The bits of the ``convolution_filter_gradient`` op."""
    return reference_arrays.convert(
        convolved_filter(_one_by_one, reference_arrays.computed(x), reference_arrays.computed(g), size, attrs), x.dtype
    )


def _one_by_one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _by_blocks(a, b, False)


# ---- scans


def ordered_scan(
    combine: Callable[[State, State], State],
    identity: Sequence[Any],
    lifted: Sequence[np.ndarray],
    axis: int,
    exclusive: bool = False,
) -> State:
    """States along ``axis`` (before each element, if ``exclusive``), for one array per component of the state."""
    lines = [np.moveaxis(x, axis, 0) for x in lifted]
    start = tuple(np.full(x.shape[1:], value, x.dtype) for x, value in zip(lines, identity))
    out = tuple(np.empty_like(x) for x in lines)
    chunk = start
    with np.errstate(all="ignore"):
        for chunk_begin in range(0, len(lines[0]), SCAN_CHUNK):
            run = start
            for begin in range(chunk_begin, min(chunk_begin + SCAN_CHUNK, len(lines[0])), SCAN_RUN):
                before, local = combine(chunk, run), start
                for i in range(begin, min(begin + SCAN_RUN, len(lines[0]), chunk_begin + SCAN_CHUNK)):
                    after = combine(local, tuple(x[i] for x in lines))
                    for target, value in zip(out, combine(before, local if exclusive else after)):
                        target[i] = value
                    local = after
                run = combine(run, local)
            chunk = combine(chunk, run)
    return tuple(np.moveaxis(x, 0, axis) for x in out)


# ---- scatters


def ordered_scatter_add(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int) -> np.ndarray:
    """``x`` plus the updates of its slices at the indices, which count from the front and lie inside."""
    out = np.moveaxis(x.copy(), axis, 0)
    slices = updates.reshape(*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    for i, update in zip(indices.ravel(), np.moveaxis(slices, axis, 0)):
        out[i] = _rounded_sum(out[i], update)
    return np.moveaxis(out, 0, axis)


def ordered_scatter_add_along_axis(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int) -> np.ndarray:
    """``x`` plus the updates at the indices of their own lines, which count from the front and lie inside."""
    out = np.moveaxis(x.copy(), axis, 0)
    rest: tuple[np.ndarray, ...] = tuple(np.indices(out.shape[1:], sparse=True))
    for at, update in zip(np.moveaxis(indices, axis, 0), np.moveaxis(updates, axis, 0)):
        out[(at, *rest)] = _rounded_sum(out[(at, *rest)], update)
    return np.moveaxis(out, 0, axis)


def _rounded_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return reference_arrays.convert(reference_arrays.computed(a) + reference_arrays.computed(b), a.dtype)


# ---- replicas


def replica_fold(combine: Combine, x: np.ndarray) -> np.ndarray:
    """The slices of ``x`` along its first axis, which are the replicas, folded in its own dtype.

    Nodes of equal size are joined as soon as they lie next to each other, and what is left from the right.
    """
    nodes: list[tuple[int, np.ndarray]] = []
    with np.errstate(all="ignore"):
        for value in x:
            size, total = 1, value
            while nodes and nodes[-1][0] == size:
                total, size = combine(nodes.pop()[1], total), 2 * size
            nodes.append((size, total))
        _, total = nodes.pop()
        while nodes:
            total = combine(nodes.pop()[1], total)
    return np.asarray(total)
