"""Second factors of integer products laid out as kernels read them: panels of columns, in pairs along the depth.

A matrix [k, n] is [n / width, k / 2, width, 2], of the same dtype.  To a graph that is an array like others, and
the matrix is a view of it: only who knows the layout reads whole panels (``codegen/products/product_schedule.py``).
"""

from __future__ import annotations

from typing import Any

from hybridflow.compiler.target import Target

PAIR = 2


def panel_width(target: Target) -> int:
    """Columns of a panel: those of two vectors of sums."""
    return 2 * target.lanes(32)


def panels_of(b: Any, matrix: Any, width: int) -> Any:
    """The panels of a matrix [k, n]; ``width`` divides n, and 2 divides k."""
    k, n = matrix.type.shape
    lines = b.reshape(matrix, shape=(k // PAIR, PAIR, n // width, width, 1))
    lines = b.transpose(lines, perm=(1, 2, 0, 3, 4))
    shape = n // width, k // PAIR, width, 1
    sides = [b.slice(lines, start=(g, 0, 0, 0, 0), stop=(g + 1, *shape)) for g in range(PAIR)]
    return b.concat(*(b.reshape(side, shape=shape) for side in sides), axis=3)  # of neighbours: by shuffles


def matrix_of(b: Any, panels: Any) -> Any:
    """The matrix of panels, as a view."""
    blocks, pairs, width, _ = panels.type.shape
    return b.reshape(b.transpose(panels, perm=(1, 3, 0, 2)), shape=(pairs * PAIR, blocks * width))
