"""The op table.  Importing this package declares every op; ``TABLE`` is the only list of them."""

from hybridflow.compiler.ops import (  # noqa: F401  (imported for their declarations)
    checked,
    contract,
    control,
    convolution,
    create,
    division,
    elementwise_binary,
    elementwise_unary,
    index,
    inner,
    lapack,
    panels,
    philox,
    reduce,
    sampling,
    search,
    segment,
    special,
    view,
    windows,
)
from hybridflow.compiler.ops.table import NOT_DIFFERENTIABLE, TABLE, Kind, OpDef, define

__all__ = ["NOT_DIFFERENTIABLE", "TABLE", "Kind", "OpDef", "define"]
