"""Products of matrices."""

from __future__ import annotations

from hybridflow.array import linalg as products, shapes
from hybridflow.array.elementwise import astype
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call


@operator("MatMul")
def matmul(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return products.matmul(a, b)


@operator("Gemm")
def gemm(
    call: Call,
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 1,
) -> Tensor:
    a = shapes.permute_dims(a, (1, 0)) if transA else a
    b = shapes.permute_dims(b, (1, 0)) if transB else b
    result = products.matmul(a, b)
    if alpha != 1:
        result = result * (alpha if dtypes.is_float(result.dtype) else int(alpha))
    if c is None:
        return result
    return result + (c if beta == 1 else c * (beta if dtypes.is_float(c.dtype) else int(beta)))


@operator("Einsum", since=12)
def einsum(call: Call, *tensors: Tensor, equation: str) -> Tensor:
    return products.einsum(equation.replace(" ", ""), *tensors)


@operator("Det", since=11)
def determinant(call: Call, x: Tensor) -> Tensor:
    from hybridflow.linalg import det

    return astype(det(x), x.dtype)
