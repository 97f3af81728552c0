"""Attention of queries to keys and values, with PyTorch's names and arguments.

It is a composition of primitives, in two products with one kernel along the rows between them: the powers of the scores
meet the values before they are divided by their sums, so that the division is one of results and not of scores.  So the
derivative of the sums is read off the results too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hybridflow.array.creation import iota
from hybridflow.array.elementwise import (
    add,
    divide,
    equal,
    exp,
    greater_equal,
    maximum,
    multiply,
    rsqrt,
    stop_gradient,
    subtract,
    where,
)
from hybridflow.array.linalg import matmul
from hybridflow.array.reductions import max, sum
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Extent, broadcast_shapes, is_one, same_extents
from hybridflow.core.promotion import weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast, common_dtype, float_operand, reshape_to, scalar
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError
from hybridflow.nn.functional import dropout

_NAME = "scaled_dot_product_attention"


@operation
def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: object = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: object = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Scaled dot-product attention: ``softmax(scale * query @ key.mT) @ value``.

    [..., steps, features] looks at [..., others, features], whose values are [..., others, numbers], and gives [...,
    steps, numbers]. Leading axes broadcast.

    ``scale`` is 1 / sqrt(features) by default. ``attn_mask`` fits [..., steps, others]: where a bool is False a step
    does not see the other; floats are added to the scaled scores. With ``is_causal`` step i sees only others up to i;
    given both, both hold. A step that sees nothing gives 0. With probability ``dropout_p``, whether in training or not,
    a share counts as 0, and those that stay are scaled by ``1 / (1 - dropout_p)``.

    With ``enable_gqa`` axis -3 of the query is a multiple of that of key and value, which heads in a row share: nothing
    is repeated in memory. Scores of float16 and bfloat16 are formed in float32.

    Raises ShapeError for shapes that do not fit each other, and DTypeError for a mask of integers.

    Args:
        query: ``(..., steps, features)``.
        key: ``(..., others, features)``.
        value: ``(..., others, numbers)``.
        attn_mask: bools or floats that broadcast to ``(..., steps, others)``.
        dropout_p: the probability with which a share counts as 0.
        is_causal: whether a step sees those up to itself alone.
        scale: what products are multiplied with.
        enable_gqa: whether heads share keys and values.

    Returns:
        A tensor of shape ``(..., steps, numbers)``.

    >>> q, k, v = [[0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], [[1.0], [5.0]]
    >>> hf.nn.scaled_dot_product_attention(q, k, v)
    <Tensor f32[1,1] cpu>
    [[3.]]
    >>> hf.nn.scaled_dot_product_attention(q, k, v, is_causal=True)
    <Tensor f32[1,1] cpu>
    [[1.]]
    """
    q, k, v = common_dtype(_NAME, [float_operand(x, _NAME) for x in (query, key, value)])
    if weak_kind(dropout_p) is None or not 0 <= dropout_p < 1:
        raise ArgumentError(_NAME, f"dropout_p is {dropout_p!r}; it must be a Python number in [0, 1).")
    _check(q, k, v, enable_gqa)
    return attention(q, k, v, attn_mask, is_causal, scale, dropout_p)[0]


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any,
    causal: bool,
    scale: Any,
    rate: float,
    generator: object = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """What comes of operands that fit each other; and the shares that steps give to others before any is dropped, as
    powers and what to divide them by."""
    wide = dtypes.compute_dtype(q.dtype)
    scores = multiply(_product(q, k.mT, wide), _default_scale(q.shape[-1], wide) if scale is None else scale)
    powers, total = _powers(_masked(cast(scores, wide), mask, causal))
    weights = dropout(powers, rate, generator=generator) if rate else powers
    sums = _product(cast(weights, q.dtype), v, wide)
    return cast(divide(sums, total), q.dtype), powers, total


def _product(x: Tensor, y: Tensor, dtype: DTypeLike) -> Tensor:
    """``x @ y``.  Where one matrix of ``y`` serves several of ``x``, these are the rows of one product."""
    if x.ndim < 3 or y.ndim < 3 or same_extents(x.shape[-3:-2], y.shape[-3:-2]) or is_one(x.shape[-3]):
        return matmul(x, y, sum_dtype=dtype)
    *batch, matrices, rows, inner = x.shape
    group = matrices if is_one(y.shape[-3]) else matrices // y.shape[-3]
    out = matmul(reshape_to(x, (*batch, y.shape[-3], group * rows, inner)), y, sum_dtype=dtype)
    return reshape_to(out, (*out.shape[:-3], matrices, rows, y.shape[-1]))


def _default_scale(features: Extent, dtype: np.dtype[Any]) -> Any:
    """1 / sqrt(features); that of no features is 1, as their products are 0."""
    if isinstance(features, int):
        return 1 / math.sqrt(features or 1)
    return rsqrt(maximum(scalar(features, dtype, _NAME), 1))


def _masked(scores: Tensor, mask: ArrayLike, causal: bool) -> Tensor:
    """Scores of -inf where a step may not look, less or more by a mask of floats."""
    if mask is not None:
        mask = as_tensor(mask, _NAME)
        try:
            fits = same_extents(broadcast_shapes(mask.shape, scores.shape), scores.shape)
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(_NAME, f"attn_mask is {mask.type}; it must broadcast to the scores, {scores.type}.")
        if not (dtypes.is_bool(mask.dtype) or dtypes.is_float(mask.dtype)):
            raise DTypeError(_NAME, f"attn_mask is {mask.type}; it must be bool, or floats to add.")
        is_bool = dtypes.is_bool(mask.dtype)
        scores = where(mask, scores, -math.inf) if is_bool else add(scores, cast(mask, scores.dtype))
    if causal:
        steps = scores.shape[-2:]
        seen = greater_equal(iota(steps, 0, dtypes.int32), iota(steps, 1, dtypes.int32))
        scores = where(seen, scores, -math.inf)
    return scores


def _powers(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Shares along rows before they are divided, and by what: of rows that are -inf throughout 0, and 1."""
    if not isinstance(scores.shape[-1], int) or scores.shape[-1]:
        top = stop_gradient(max(scores, -1, keepdims=True))
        scores = subtract(scores, where(equal(top, -math.inf), 0, top))
    powers = exp(scores)
    total = sum(powers, -1, keepdims=True)
    return powers, where(equal(total, 0), 1, total)


def _check(q: Tensor, k: Tensor, v: Tensor, grouped: bool) -> None:
    """Raises ShapeError for operands that do not fit each other."""

    def wrong(what: str) -> ShapeError:
        return ShapeError(_NAME, f"{what}: query is {q.type}, key is {k.type}, value is {v.type}.")

    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise wrong("operands must be [..., steps, features]")
    if not same_extents(q.shape[-1:], k.shape[-1:]):
        raise wrong("query and key differ in their features, axis -1")
    if not same_extents(k.shape[-2:-1], v.shape[-2:-1]):
        raise wrong("key and value differ in their steps, axis -2")
    shapes = [x.shape[:-2] for x in (q, k, v)]
    if grouped:
        if min(q.ndim, k.ndim, v.ndim) < 3:
            raise wrong("with enable_gqa operands must be [..., heads, steps, features]")
        heads, shared, other = (shape[-1] for shape in shapes)
        if not same_extents((shared,), (other,)):
            raise wrong("key and value differ in their heads, axis -3")
        if not (is_one(shared) or same_extents((heads,), (shared,))):
            if not (isinstance(heads, int) and isinstance(shared, int)):
                raise wrong("heads that are shared must be known numbers, axis -3")
            if not shared or heads % shared:
                raise wrong("the heads of the query must be a multiple of those of key and value, axis -3")
        shapes = [shape[:-1] for shape in shapes]
    try:
        broadcast_shapes(broadcast_shapes(shapes[0], shapes[1]), shapes[2])
    except ValueError:
        hint = "" if grouped or q.ndim < 3 else " (heads that share a key need enable_gqa=True)"
        raise wrong(f"leading axes do not broadcast{hint}") from None
