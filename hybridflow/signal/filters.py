"""Linear filters with feedback."""

from __future__ import annotations

from typing import Any

from hybridflow.array.creation import zeros
from hybridflow.array.shapes import concat, expand_dims, known_extent, moveaxis, slice_axis
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.control.scan import scan
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import cast, common_dtype, expand, float_operand, reshape_to
from hybridflow.errors import ShapeError, entered


@entered
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: object = None) -> Any:
    """Filter a signal: ``a[0] y[n] = sum(b[k] x[n - k]) - sum(a[k] y[n - k])``, the latter from k = 1 on.

    The filter is the transposed direct form II, a loop over the samples in the order of time.  Gradients flow to
    coefficients, samples and states.

    Args:
        b: coefficients of the samples that come in, a vector.
        a: coefficients of the samples that have gone out, a vector.
        x: the signal.
        axis: the axis of time.
        zi: the state before the first sample: as ``x``, with ``max(len(a), len(b)) - 1`` elements along ``axis``; by
            default zeros.

    Returns:
        A float tensor of the shape of ``x``; with ``zi`` the tuple of it and of the state behind the last sample.

    Raises:
        ShapeError: where coefficients are no vectors, or empty, or ``zi`` does not fit.
        AxisError: for an axis out of range.

    >>> hf.signal.lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0, 0.0])
    <Tensor f32[4] cpu> [1.    0.5   0.25  0.125]
    """
    stage = "lfilter"
    operands = [float_operand(v, stage) for v in (b, a, x)]
    if zi is not None:
        operands.append(float_operand(zi, stage))
    operands = common_dtype(stage, operands)
    dtype = operands[0].dtype
    forward, back, signal, *states = [cast(v, dtypes.compute_dtype(dtype)) for v in operands]
    for name, v in (("b", forward), ("a", back)):
        if v.ndim != 1 or known_extent(v, 0, stage) == 0:
            raise ShapeError(stage, f"{name} is {v.type}. Expected a vector of one coefficient or more.")
    if not signal.ndim:
        raise ShapeError(stage, "x is a scalar. Expected samples along an axis.")
    axis = type_rules.axis(stage, signal.type, axis)
    order = max(int(forward.shape[0]), int(back.shape[0])) - 1
    numerator, denominator = _coefficients(forward, order), _coefficients(back, order)
    numerator, denominator = numerator / denominator[0], denominator / denominator[0]
    samples = moveaxis(signal, axis, 0)
    rest = samples.shape[1:]
    if states:
        if states[0].ndim != signal.ndim:
            raise ShapeError(stage, f"zi is {states[0].type}. Expected as many axes as x has, which is {signal.type}.")
        state = moveaxis(states[0], axis, 0)
        if state.shape[0] != order:
            raise ShapeError(stage, f"zi is {states[0].type}. Expected {order} elements along axis {axis}.")
        state = expand(state, (order, *rest))
    else:
        state = zeros((order, *rest), samples.dtype)

    def column(v: Tensor) -> Tensor:
        return reshape_to(v, (order, *[1] * len(rest)))

    b_rest, a_rest = column(slice_axis(numerator, 0, 1, order + 1)), column(slice_axis(denominator, 0, 1, order + 1))
    first = numerator[0]

    def step(carried: Tensor, sample: Tensor) -> Any:
        z = carried[1]
        if order == 0:
            return first * sample, z
        out = first * sample + z[0]
        shifted = concat([slice_axis(z, 0, 1, order), zeros((1, *rest), z.dtype)], axis=0)
        return out, shifted + b_rest * expand_dims(sample, axis=0) - a_rest * expand_dims(out, axis=0)

    if known_extent(samples, 0, stage) == 0:
        out, final = samples, state
    else:
        outs, each = scan(step, samples, (zeros(rest, samples.dtype), state))
        out, final = outs, each[-1]
    filtered = cast(moveaxis(out, 0, axis), dtype)
    return filtered if zi is None else (filtered, cast(moveaxis(final, 0, axis), dtype))


def _coefficients(v: Tensor, order: int) -> Tensor:
    """With zeros behind."""
    missing = order + 1 - int(v.shape[0])
    return concat([v, zeros((missing,), v.dtype)], axis=0) if missing else v
