"""Linear algebra: ``hf.linalg``, the extension of the array API standard but for what needs complex numbers.

Decompositions are computed by NumPy's LAPACK, eagerly and in compiled functions; see each function for its gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.array.decompositions import (
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    triangular_solve,
)
from hybridflow.array.linalg import diagonal, matmul, outer, tensordot, trace, vecdot
from hybridflow.array.norms import cross, matrix_norm, matrix_power, vector_norm
from hybridflow.array.shapes import matrix_transpose
from hybridflow.core import name_hints as _name_hints
from hybridflow.errors import LinAlgError

__all__ = [
    "LinAlgError",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "triangular_solve",
    "vecdot",
    "vector_norm",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
