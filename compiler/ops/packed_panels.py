"""Second factors of integer products laid out as kernels read them: panels of columns, in pairs along the depth.

A matrix [k, n] is [n / width, k / 2, width, 2], of the same dtype.  To a graph that is an array like others, and
the matrix is a view of it: only who knows the layout reads whole panels (``codegen/products/product_schedule.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compiler.target import Target

PAIR = 2
LEAST = 4096  # elements of a factor: smaller ones are packed in no time
_BYTES_IN_FOURS = ("avxvnni", "avx512vnni", "amx-int8")  # features of targets that read bytes otherwise
ORDER = 1, 3, 0, 2  # of the axes of panels in a matrix


def reads_panels(target: Target) -> bool:
    """Whether kernels of a target read pairs of integers."""
    return target.kind == "cpu" and target.triple.startswith("x86_64") and not any(map(target.has, _BYTES_IN_FOURS))


def panel_width(target: Target) -> int:
    """Columns of a panel: those of two vectors of sums."""
    return 2 * target.lanes(32)


def pays(k: int, n: int, width: int) -> bool:
    """Whether a matrix [k, n] is worth laying out, in whole panels."""
    return n % width == 0 and n > width and k % PAIR == 0 and k > PAIR and k * n >= LEAST


def panels_of(b: Any, matrix: Any, width: int) -> Any:
    """The panels of a matrix [k, n]; ``width`` divides n, and 2 divides k."""
    k, n = matrix.type.shape
    if matrix.op.name == "reshape" and matrix.inputs[0].op.name == "transpose":  # a view of panels
        whole = matrix.inputs[0].inputs[0]
        if matrix.inputs[0].attrs["perm"] == ORDER and whole.type.shape == (n // width, k // PAIR, width, PAIR):
            return whole
    lines = b.reshape(matrix, shape=(k // PAIR, PAIR, n // width, width, 1))
    lines = b.transpose(lines, perm=(1, 2, 0, 3, 4))
    shape = n // width, k // PAIR, width, 1
    sides = [b.slice(lines, start=(g, 0, 0, 0, 0), stop=(g + 1, *shape)) for g in range(PAIR)]
    return b.concat(*(b.reshape(side, shape=shape) for side in sides), axis=3)  # of neighbours: by shuffles


def matrix_of(b: Any, panels: Any) -> Any:
    """The matrix of panels, as a view."""
    blocks, pairs, width, _ = panels.type.shape
    return b.reshape(b.transpose(panels, perm=ORDER), shape=(pairs * PAIR, blocks * width))


def panels_of_array(matrix: np.ndarray, width: int) -> np.ndarray:
    """The panels of a matrix that is known before there is a graph."""
    k, n = matrix.shape
    return np.ascontiguousarray(matrix.reshape(k // PAIR, PAIR, n // width, width).transpose(2, 0, 3, 1))
