"""The op table.  Importing this package declares every op that programs have; ``TABLE`` is the only list of them.

``collectives``, which no program has, are declared when something maps functions over examples or replicas.
"""

from hybridflow.compiler.ops import (  # noqa: F401  (imported for their declarations)
    checked_integers,
    complex_folds,
    concat_pad,
    control_flow,
    convolution,
    creation,
    elementwise_binary,
    elementwise_unary,
    floor_division,
    fourier,
    indexing,
    inner_product,
    lapack,
    matmul,
    philox,
    reductions,
    row_blocks,
    sampling,
    searchsorted,
    sliding_windows,
    sparse_matmul,
    special,
    views,
)
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, TABLE, Kind, OpDef, define

__all__ = ["NOT_DIFFERENTIABLE", "TABLE", "Kind", "OpDef", "define"]
