"""TensorFlow 1's products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.compat.v1.arguments import aligned
from hybridflow.compat.v1.table import Table

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


TABLE = Table()
op = TABLE.op


@op("MatMul", "matmul")
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
) -> Any:
    a, b = aligned(a, b)
    a = hf.matrix_transpose(hf.asarray(a)) if transpose_a or adjoint_a else a
    b = hf.matrix_transpose(hf.asarray(b)) if transpose_b or adjoint_b else b
    return hf.matmul(a, b)


TABLE["batch_matmul"] = matmul


@op("TensorDot", default="Tensordot")
def tensordot(a: ArrayLike, b: ArrayLike, axes: object) -> Any:
    return hf.tensordot(a, b, axes)


@op("Einsum", default="einsum")
def einsum(equation: str, *inputs: Any) -> Any:
    return hf.einsum(equation, *inputs)
