"""Truth values as bits of uint8, and back."""

from __future__ import annotations

import numpy as np

from hybridflow.array.elementwise import bitwise_and, bitwise_right_shift, multiply, not_equal
from hybridflow.array.reductions import sum
from hybridflow.array.shapes import pad, slice_axis
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast, expand, literal, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError


def _flat_or_along(stage: str, x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    if axis is None:
        return reshape_to(x, (product(x.shape),)), 0
    return x, type_rules.axis(stage, x.type, axis)


def _shifts(stage: str, bitorder: str) -> list[int]:
    if bitorder not in ("big", "little"):
        raise ArgumentError(stage, f"bitorder is {bitorder!r}. Expected 'big' or 'little'.")
    return list(range(8)) if bitorder == "little" else list(range(7, -1, -1))


@operation
def packbits(x: ArrayLike, /, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Packed bits: eight truth values in each byte; 0 fills up the last one.

    Args:
        x: bools or integers, of which anything but 0 is true.
        axis: the axis to pack along; None for the flattened tensor.
        bitorder: "big" has the first value in the highest bit, "little" in the lowest.

    Returns:
        A uint8 tensor with an eighth of the elements along ``axis``, rounded up.

    Raises:
        AxisError: for an axis out of range.
        DTypeError: for floats.
        ArgumentError: for another ``bitorder``.

    >>> hf.packbits([1, 0, 1, 0, 0, 0, 0, 0, 1])
    <Tensor u8[2] cpu> [160 128]
    """
    x = as_tensor(x, "packbits")
    shifts = _shifts("packbits", bitorder)
    if not (dtypes.is_bool(x.dtype) or dtypes.is_integer(x.dtype)):
        raise DTypeError("packbits", f"x is {x.type}. Expected bools or integers.")
    x, axis = _flat_or_along("packbits", x, axis)
    bits = cast(x if dtypes.is_bool(x.dtype) else not_equal(x, 0), dtypes.uint8)
    extent = bits.shape[axis]
    count = (extent + 7) // 8
    bits = pad(bits, [(0, 8 * count - extent if k == axis else 0) for k in range(bits.ndim)])
    before, after = bits.shape[:axis], bits.shape[axis + 1 :]
    weights = reshape_to(literal(np.array([1 << shift for shift in shifts], np.uint8)), (8, *(1 for _ in after)))
    return sum(multiply(reshape_to(bits, (*before, count, 8, *after)), weights), axis + 1, dtypes.uint8)


@operation
def unpackbits(x: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Tensor:
    """Unpacked bits: an element, 0 or 1, for each bit of uint8.

    Args:
        x: a uint8 tensor.
        axis: the axis to unpack along; None for the flattened tensor.
        count: the number of bits along ``axis``: 0 fills up, a negative number says how many are left out at the
            end. All unless given.
        bitorder: "big" has the first value in the highest bit, "little" in the lowest.

    Returns:
        A uint8 tensor with eight times the elements along ``axis``, or ``count``.

    Raises:
        AxisError: for an axis out of range.
        DTypeError: for another dtype than uint8.
        ArgumentError: for another ``bitorder``, or a ``count`` that leaves out more than there is.

    >>> hf.unpackbits(hf.asarray([160, 128], dtype="uint8"), count=9)
    <Tensor u8[9] cpu> [1 0 1 0 0 0 0 0 1]
    """
    x = as_tensor(x, "unpackbits")
    shifts = _shifts("unpackbits", bitorder)
    if x.dtype != dtypes.uint8:
        raise DTypeError("unpackbits", f"x is {x.type}. Expected uint8.")
    x, axis = _flat_or_along("unpackbits", x, axis)
    before, extent, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    wide = (*before, extent, 8, *after)
    amounts = reshape_to(literal(np.array(shifts, np.uint8)), (8, *(1 for _ in after)))
    bytes_ = expand(reshape_to(x, (*before, extent, 1, *after)), wide)
    bits = reshape_to(bitwise_and(bitwise_right_shift(bytes_, amounts), 1), (*before, 8 * extent, *after))
    if count is None:
        return bits
    wanted = type_rules.integer("unpackbits", "count", count)
    size = wanted if wanted >= 0 else 8 * extent + wanted
    if size < 0:
        raise ArgumentError("unpackbits", f"count is {count}, and there are {8 * extent} bits along axis {axis}.")
    if size <= 8 * extent:
        return slice_axis(bits, axis, 0, size)
    return pad(bits, [(0, size - 8 * extent if k == axis else 0) for k in range(bits.ndim)])
