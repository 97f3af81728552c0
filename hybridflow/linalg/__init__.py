"""Linear algebra: ``hf.linalg``, the extension of the array API standard, and more.

Decompositions are functions of the host, eagerly and in compiled functions; see each function for its gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.array.decompositions import (
    cholesky,
    cholesky_solve,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    lstsq,
    lu,
    lu_factor,
    lu_solve,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    triangular_solve,
)
from hybridflow.array.linalg import diagonal, kron, matmul, outer, tensordot, trace, vecdot
from hybridflow.array.matrix_functions import expm, logm, sqrtm
from hybridflow.array.norms import cond, cross, matrix_norm, matrix_power, norm, vector_norm
from hybridflow.array.shapes import matrix_transpose
from hybridflow.array.structured_matrices import block_diag, toeplitz
from hybridflow.core import name_hints as _name_hints
from hybridflow.errors import LinAlgError
from hybridflow.linalg.krylov import cg, gmres, lanczos

__all__ = [
    "LinAlgError",
    "block_diag",
    "cg",
    "cholesky",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "gmres",
    "inv",
    "kron",
    "lanczos",
    "logm",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "svdvals",
    "tensordot",
    "toeplitz",
    "trace",
    "triangular_solve",
    "vecdot",
    "vector_norm",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
