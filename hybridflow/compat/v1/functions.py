"""TensorFlow 1's functions of tensors, with its arguments, over hybridflow's: all of them, by name."""

from __future__ import annotations

from hybridflow.compat.v1 import (
    clipping,
    constants,
    creation,
    elementwise,
    grouping,
    linalg,
    operators,
    random_ops,
    reductions,
    shaping,
    slicing,
)
from hybridflow.compat.v1.nodes import Tensor
from hybridflow.compat.v1.table import Table

TABLE = Table()
for _module in (
    constants,
    creation,
    shaping,
    slicing,
    elementwise,
    linalg,
    clipping,
    reductions,
    random_ops,
    grouping,
):
    TABLE.update(_module.TABLE)

Tensor.operate = staticmethod(operators.operate)
