"""Tensor types.  Rules about shapes go through the helpers here, rules about one extent through ``extents``."""

from __future__ import annotations

from dataclasses import dataclass

from hybridflow.compiler.ir.dtypes import SHORT, DType
from hybridflow.compiler.ir.extents import Dim as Dim, Extent as Extent, equal

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
    # Asked all the time: a loop takes a third of the time of all() over a generator.
    for extent in shape:  # noqa: SIM110
        if not isinstance(extent, int):
            return False
    return True


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
    return isinstance(extent, int) and extent == 1


def same_extents(a: Shape, b: Shape) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(n is m or equal(n, m) is True for n, m in zip(a, b))


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are known to be equal, or are taken to where a trace goes on: it serves such calls alone.

    ``==`` asks the trace alone; of two spellings of one extent it is True in a trace, and False once that is over.
    """
    return len(a) == len(b) and (a == b or all(n == m or equal(n, m) is True for n, m in zip(a, b)))


def product(shape: Shape) -> Extent:
    """The number of elements as one extent."""
    size: Extent = 1
    for extent in shape:
        size = size * extent
    return size


def same_size(a: Shape, b: Shape) -> bool:
    """Whether two shapes are known to hold the same number of elements, or are taken to where a trace goes on.

    Their extents are not compared: those of (n, 3) and (3*n,) would be taken to be equal.
    """
    size, other = product(a), product(b)
    return equal(size, other) is True or size == other


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """NumPy broadcasting of two shapes; raises ValueError when they do not fit."""
    n = max(len(a), len(b))
    out: list[Extent] = []
    for x, y in zip((1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b):
        if x == y or is_one(y) or equal(x, y) is True:
            out.append(x)
        elif is_one(x):
            out.append(y)
        else:
            raise ValueError(f"cannot broadcast {a} with {b}: {x} against {y}")
    return tuple(out)
