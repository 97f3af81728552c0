"""Sparse tensors: ``hf.sparse``, nested values of dense tensors.

``COO`` holds entries with their coordinates, ``CSR`` a matrix in rows.  Both go through functions, ``vmap``, datasets
and checkpoints like any dataclass of tensors.  Names and arguments of functions are those of ``tf.sparse``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.sparse.formats import COO, CSR
from hybridflow.sparse.operations import (
    add,
    concat,
    eye,
    from_dense,
    from_scipy,
    matmul,
    multiply,
    reduce_max,
    reduce_min,
    reduce_sum,
    reorder,
    sddmm,
    softmax,
    sparse_dense_matmul,
    to_dense,
    transpose,
)

__all__ = [
    "COO",
    "CSR",
    "add",
    "concat",
    "eye",
    "from_dense",
    "from_scipy",
    "matmul",
    "multiply",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
    "reorder",
    "sddmm",
    "softmax",
    "sparse_dense_matmul",
    "to_dense",
    "transpose",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
