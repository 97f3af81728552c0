"""Vectors taken apart and put together: lanes of neighbours in memory that belong to different elements."""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.llvm_values import Val, mask_of
from hybridflow.compiler.ir import dtypes as dt

_PICKED = 3  # vectors from which lanes are picked one after the other: of more, rotating them takes fewer instructions


def deinterleave(e: Emitter, vectors: Sequence[Val]) -> list[Val]:
    """Of n vectors end to end, the elements 0, n, 2n, ..., then 1, n + 1, ..., and so on: n vectors of the same size.

    Halves of an even n are separated by themselves, after even and odd elements.  Where n is odd each result takes
    another lane from each vector, and in each lane the vectors follow each other in the same order, but from another
    one on: they are rotated, by as much as each lane needs, before lanes are put in order."""
    n, width = len(vectors), vectors[0].width
    if n == 1:
        return list(vectors)
    if n % 2 == 0:
        parts = []
        for odd in (0, 1):
            lanes = [2 * k + odd for k in range(width)]
            half = [e.shuffle(a, b, lanes) for a, b in zip(vectors[::2], vectors[1::2])]
            parts.append(deinterleave(e, e.opaque(half)))
        return [v for pair in zip(*parts) for v in pair]
    if n > _PICKED:
        step = pow(width, -1, n)
        rotated = _rotate(e, vectors, [lane * step % n for lane in range(width)])
        orders = [[(n * k + iteration) % width for k in range(width)] for iteration in range(n)]
        return [e.shuffle(rotated[iteration * step % n], None, order) for iteration, order in enumerate(orders)]
    result = []
    for iteration in range(n):
        source = [divmod(n * k + iteration, width) for k in range(width)]
        result.append(pick_lanes(e, vectors, source))
    return result


def interleave(e: Emitter, vectors: Sequence[Val]) -> list[Val]:
    """What ``separated`` has taken apart."""
    n, width = len(vectors), vectors[0].width
    if n == 1:
        return list(vectors)
    if n % 2 == 0:
        result = []
        halves = (e.opaque(interleave(e, half)) for half in (vectors[::2], vectors[1::2]))
        for a, b in zip(*halves):
            for half in (0, width // 2):
                result.append(
                    e.shuffle(a, b, [lane for k in range(half, half + width // 2) for lane in (k, width + k)])
                )
        return result
    if n > _PICKED:
        step, back = pow(width, -1, n), pow(n, -1, width)
        orders = [[(lane - iteration) * back % width for lane in range(width)] for iteration in range(n)]
        rotated = [e.shuffle(vectors[m * width % n], None, orders[m * width % n]) for m in range(n)]
        return _rotate(e, e.opaque(rotated), [-lane * step % n for lane in range(width)])
    return [
        pick_lanes(e, vectors, [((width * m + k) % n, (width * m + k) // n) for k in range(width)]) for m in range(n)
    ]


def _rotate(e: Emitter, vectors: Sequence[Val], amounts: Sequence[int]) -> list[Val]:
    """Lane l of vector m is that of vector m - amounts[l], counted around: rotated by 1, 2, 4, ... in the lanes that
    need it."""
    result, n, width = list(vectors), len(vectors), len(amounts)
    step = 1
    while step < n:
        lanes = [width + lane if amount & step else lane for lane, amount in enumerate(amounts)]
        result = e.opaque([e.shuffle(result[m], result[m - step], lanes) for m in range(n)])
        step *= 2
    return result


def pick_lanes(e: Emitter, vectors: Sequence[Val], source: Sequence[tuple[int, int]]) -> Val:
    """A vector of lanes of others: (which of them, which lane)."""
    width = len(source)
    used = sorted({number for number, _ in source})
    result = vectors[used[0]]
    lanes = [lane for _, lane in source]
    if len(used) == 1:
        return e.shuffle(result, None, lanes)
    for step, number in enumerate(used[1:]):
        mine = [k for k, (n, _) in enumerate(source) if n == number]
        keep = [k if step else lanes[k] for k in range(width)]  # from the second on, lanes are in place
        result = e.shuffle(result, vectors[number], [width + lanes[k] if k in mine else keep[k] for k in range(width)])
    return result


def spread(e: Emitter, mask: Val | None, step: int, number: int) -> Val:
    """The mask of every ``step``-th of ``step`` vectors' lanes, as vector ``number`` of these has it: lane ``step * i``
    of all is active where lane i of ``mask`` is."""
    lanes = [divmod(number * e.width + lane, step) for lane in range(e.width)]
    if mask is None:
        return mask_of([not remainder for _, remainder in lanes])
    return e.shuffle(mask, e.const(False, dt.bool_), [e.width if remainder else source for source, remainder in lanes])
