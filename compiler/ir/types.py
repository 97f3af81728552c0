"""Tensor types and symbolic dimensions.  Every rule about extents goes through the helpers here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from hybridflow.compiler.ir.dtypes import SHORT, DType


@dataclass(frozen=True)
class Dim:
    """A symbolic extent: unknown when compiling, read from an argument's shape at run time.

    Two Dims with one name are one extent.  A Dim never equals an int: what is not known is not assumed.
    """

    name: str

    def __str__(self) -> str:
        return self.name


Extent = Union[int, Dim]
Shape = tuple[Extent, ...]

MAX_AXES = 64
MAX_SIZE = 2**60
"""Tensors have fewer elements: positions, and bytes of any dtype, are 64-bit numbers with a sign."""


@dataclass(slots=True, unsafe_hash=True)
class TensorType:
    """Shape and dtype of one value; prints as ``f32[2,n]``.  Never changed once made.

    (It is no frozen dataclass because making one of those takes three times as long, and eager mode makes many.)
    """

    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return f"{SHORT[self.dtype]}[{','.join(map(str, self.shape))}]"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return is_static(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; only for static shapes."""
        return static_size(self.shape)

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)


def is_static(shape: Shape) -> bool:
    return all(isinstance(extent, int) for extent in shape)


def static_size(shape: Shape) -> int:
    size = 1
    for extent in shape:
        if not isinstance(extent, int):
            raise TypeError(f"[shape] {shape} has the symbolic extent {extent}, so its size is not known")
        size *= extent
    return size


def shape_fault(shape: Shape) -> str | None:
    """What forbids a shape, as the end of a sentence that begins with "the shape"; None where nothing does.

    Extents of 0 do not excuse others: strides are products of those.
    """
    size = 1
    for extent in shape:
        if isinstance(extent, int) and extent:
            size *= extent
    if size < MAX_SIZE and len(shape) <= MAX_AXES:
        return None
    shown = [str(extent) for extent in shape]
    if len(shown) > 8:
        shown[4:-3] = ["..."]
    if len(shape) > MAX_AXES:
        what = f"has {len(shape)} axes. Expected at most {MAX_AXES}."
    else:
        what = f"holds too many elements. Expected fewer than 2**{MAX_SIZE.bit_length() - 1}."
    return f"[{','.join(shown)}] {what}"


def is_one(extent: Extent) -> bool:
    return extent == 1


def same_extents(a: Shape, b: Shape) -> bool:
    """Whether two shapes are known to be equal."""
    return a == b


def factors(shape: Shape) -> tuple[int, tuple[str, ...]]:
    """The number of elements as (integer factor, sorted symbol names): equal pairs mean equal sizes."""
    known, names = 1, []
    for extent in shape:
        if isinstance(extent, int):
            known *= extent
            continue
        for part in extent.name.split("*"):
            if part.isdigit():
                known *= int(part)
            else:
                names.append(part)
    return known, tuple(sorted(names))


def product(shape: Shape) -> Extent:
    """The number of elements as one extent; where it is not known, a Dim that is named like the product it stands for.

    Such a Dim is the extent of a loop over several axes, never of an axis: graphs do not contain them.
    """
    known, names = factors(shape)
    if not names:
        return known
    return Dim("*".join([str(known), *names] if known != 1 else names))


def same_size(a: Shape, b: Shape) -> bool:
    """Whether two shapes are known to hold the same number of elements."""
    return factors(a) == factors(b)


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """NumPy broadcasting of two shapes; raises ValueError when they do not fit."""
    n = max(len(a), len(b))
    out: list[Extent] = []
    for x, y in zip((1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b):
        if x == y or is_one(y):
            out.append(x)
        elif is_one(x):
            out.append(y)
        else:
            raise ValueError(f"cannot broadcast {a} with {b}: {x} against {y}")
    return tuple(out)
