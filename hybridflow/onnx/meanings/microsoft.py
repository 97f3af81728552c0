"""Operators of ``com.microsoft``, as onnxruntime's own tools put them into files: a list that grows by need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.array.linalg import matmul
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.nn import functional
from hybridflow.onnx.meanings import normalization, quantization, recurrent
from hybridflow.onnx.operators import MICROSOFT, operator
from hybridflow.onnx.running import Call


def _codes(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix as int8, with its scale and zero point: unsigned bytes between its extremes, less 128."""
    low, high = quantization.extremes(x)
    scale = (high - low) / 255.0
    scale = ew.where(ew.equal(scale, 0.0), 1.0, scale)
    zero = ew.round(ew.minimum(ew.maximum(-low / scale, 0.0), 255.0))
    wide = ew.minimum(ew.maximum(ew.round(ew.divide(x, scale)) + zero, 0.0), 255.0)
    return ew.astype(wide - 128.0, dtypes.int8), scale, ew.astype(zero - 128.0, dtypes.int32)


class _Weights:
    """The int8 matrix of one direction, its scales, and what a zero point of rows takes away."""

    def __init__(self, call: Call, w: object, scale: Tensor, zero: object, k: int) -> None:
        bits = quantization.signed(call, w)
        matrix: object = bits[k]
        if isinstance(bits, np.ndarray):
            matrix = call.constant(bits, ("direction", k), lambda array: np.ascontiguousarray(array[k]))
        self.columns = call.derive(
            matrix,
            "columns",
            lambda array: array.sum(axis=0, dtype=np.int32),
            lambda tensor: reductions.sum(tensor, axis=0, dtype=dtypes.int32),
        )
        self.scale = scale[k] if scale.ndim else scale
        points = quantization.origin(call, zero, w)
        self.zero = None if points is None else (points[k] if points.ndim else points)
        self.matrix = quantization.second_factor(call, matrix)

    def product(self, x: Tensor) -> Tensor:
        """Rows of floats times it: rows are quantised together."""
        codes, scale, zero = _codes(x)
        total = matmul(codes, self.matrix, sum_dtype=dtypes.int32) - zero * self.columns
        if self.zero is not None:
            rows = reductions.sum(codes, axis=-1, keepdims=True, dtype=dtypes.int32)
            total = total - (rows - zero * x.shape[-1]) * self.zero
        return ew.astype(total, dtypes.float32) * (scale * self.scale)


@operator("DynamicQuantizeLSTM", domain=MICROSOFT, raw=(1, 2, 9, 11))
def dynamic_quantize_lstm(
    call: Call,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Tensor | None,
    h: Tensor | None,
    c: Tensor | None,
    p: Tensor | None,
    w_scale: Tensor,
    w_zero: object,
    r_scale: Tensor,
    r_zero: object,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: object = None,
    activation_alpha: object = None,
    activation_beta: object = None,
    clip: float | None = None,
    input_forget: int = 0,
) -> tuple[Tensor, ...]:
    """LSTM whose matrices are bytes [directions, inputs, 4 * units]; rows are quantised before each product."""
    products: list[tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = []
    for k in range(w.shape[0]):
        products.append((_Weights(call, w, w_scale, w_zero, k).product, _Weights(call, r, r_scale, r_zero, k).product))
    return recurrent.lstm_of(
        call,
        x,
        products,
        r.shape[1],
        b,
        lengths,
        (h, c),
        p,
        recurrent.Settings(direction, activations, activation_alpha, activation_beta, clip, 0),
        bool(input_forget),
    )


@operator("MatMulIntegerToFloat", domain=MICROSOFT, raw=(1, 4, 5))
def matmul_integer_to_float(
    call: Call,
    a: Tensor,
    b: object,
    scale_a: Tensor,
    scale_b: Tensor,
    zero_a: object = None,
    zero_b: object = None,
    bias: Tensor | None = None,
) -> Tensor:
    total = quantization.product_of_bytes(call, a, b, zero_a, zero_b)
    result = ew.astype(total, scale_a.dtype) * (scale_a * scale_b)
    return result if bias is None else result + bias


@operator("DynamicQuantizeMatMul", domain=MICROSOFT, raw=(1, 3))
def dynamic_quantize_matmul(
    call: Call, a: Tensor, b: object, scale_b: Tensor, zero_b: object = None, bias: Tensor | None = None
) -> Tensor:
    codes, scale, zero = quantization.dynamic_quantize(call, a)
    total = quantization.product_of_bytes(call, codes, b, zero, zero_b)
    result = ew.astype(total, dtypes.float32) * (scale * scale_b)
    return result if bias is None else result + bias


@operator("FusedMatMul", domain=MICROSOFT)
def fused_matmul(
    call: Call,
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    if transBatchA or transBatchB:
        raise call.fault("transposed batches are not supported.")
    a = shapes.matrix_transpose(a) if transA else a
    b = shapes.matrix_transpose(b) if transB else b
    result = matmul(a, b)
    return result if alpha == 1 else result * alpha


@operator("Gelu", domain=MICROSOFT, elementwise=True)
def gelu(call: Call, x: Tensor) -> Tensor:
    return functional.gelu(x)


@operator("FastGelu", domain=MICROSOFT)
def fast_gelu(call: Call, x: Tensor, bias: Tensor | None = None) -> Tensor:
    return functional.gelu(x if bias is None else x + bias, approximate=True)


@operator("BiasGelu", domain=MICROSOFT)
def bias_gelu(call: Call, x: Tensor, bias: Tensor) -> Tensor:
    return functional.gelu(x + bias)


@operator("QuickGelu", domain=MICROSOFT, elementwise=True)
def quick_gelu(call: Call, x: Tensor, *, alpha: float = 1.702) -> Tensor:
    return x * ew.sigmoid(x * alpha)


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    call: Call,
    x: Tensor,
    skip: Tensor,
    scale: Tensor,
    shift: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
) -> Tensor:
    total = x + skip if bias is None else x + skip + bias
    if call.wants(1) or call.wants(2) or call.wants(3):
        raise call.fault("its further results are not supported.")
    result: Tensor = normalization.layer_normalization(call, total, scale, shift, epsilon=epsilon)
    return result
