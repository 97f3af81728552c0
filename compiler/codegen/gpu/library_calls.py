"""Products that a library may compute on a GPU: those whose bits need not be a CPU's, of arrays as they lie in memory.

``fastmath`` allows that for all floats, ``precision="high"`` for a product of float32.  A program keeps its own kernel,
for extents and arrays for which the library has nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.dtypes import SHORT
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.loops.kernel import Kernel, base
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction_dims import Contraction, Factor
from hybridflow.compiler.program import Buffer, LibraryCall, Matrix
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass

LEAST = 1 << 24  # multiplications: below, a launch takes about as long as the product.  Not measured
LEAST_SIDE = 16  # rows, columns and depth: less makes a product one of vectors, which memory limits
DTYPES = (dt.float32, dt.float16, dt.bfloat16)


@dataclass(frozen=True)
class MatrixLayout:
    """An array as matrices, see ``program.Matrix``."""

    node: Node
    transposed: bool
    pitch: Extent
    stride: Extent

    def matrix(self, buffer: Buffer) -> Matrix:
        return Matrix(buffer, self.transposed, self.pitch, self.stride)


@dataclass(frozen=True)
class LibraryProduct:
    """``batch`` products of m x n elements of depth k; ``rounds``: elements of float32 may be rounded to TF32."""

    left: MatrixLayout
    right: MatrixLayout
    result: MatrixLayout
    batch: Extent
    m: Extent
    n: Extent
    k: Extent
    rounds: bool

    def call(self, kernel: int, buffer: Callable[[Node], Buffer]) -> LibraryCall:
        """The call, in the place of a kernel, over the buffers of nodes."""
        left, right, result = (x.matrix(buffer(x.node)) for x in (self.left, self.right, self.result))
        factors, sums = SHORT[self.left.node.dtype], SHORT[self.result.node.dtype]
        extents = self.batch, self.m, self.n, self.k
        return LibraryCall(kernel, factors, sums, self.rounds, *extents, left, right, result, LEAST)


def by_library(kernel: Kernel, fastmath: bool) -> LibraryProduct | None:
    """What a library is to compute for a kernel; None where that cannot be, does not pay, or may not be."""
    node = kernel.cluster.anchor
    if kernel.cluster.kind is not Kind.CONTRACT or list(kernel.roots) != [node]:
        return None
    x, y = node.inputs
    axes: Contraction = node.op.contraction((x.type, y.type), node.attrs)
    rounds = x.dtype == dt.float32 and axes.precision == "high"
    if not (fastmath or rounds) or axes.lanes or x.dtype not in DTYPES or node.dtype not in (x.dtype, dt.float32):
        return None
    if any(base(factor) not in kernel.inputs for factor in (x, y)):
        return None  # something is computed on the way
    parts = axes.extents(x.type, y.type)
    batch, m, n, k = map(product, (parts.batch, parts.rows, parts.columns, parts.summed))
    work = batch * m * n * k
    if (isinstance(work, int) and work < LEAST) or any(isinstance(x, int) and x < LEAST_SIDE for x in (m, n, k)):
        return None
    left, right = _lines(x, axes.left, rows_are_free=True), _lines(y, axes.right, rows_are_free=False)
    if left is None or right is None:
        return None
    return LibraryProduct(left, right, MatrixLayout(node, False, n, m * n), batch, m, n, k, rounds)


def describe_schedule(product: LibraryProduct, target: Target, schedule: str) -> str:
    """The schedule of a kernel, as text, with what is said of the library."""
    if not target.library:
        return f"{schedule}; cuBLASLt would do it, but is not installed: pip install 'hybridflow[gpu-libraries]'"
    kind = "in TF32" if product.rounds else f"with float32 sums of {product.left.node.dtype}"
    work = product.batch * product.m * product.n * product.k
    where = "" if isinstance(work, int) else f" from {LEAST} multiplications on"
    return f"cuBLASLt {kind}{where}; else {schedule}"


def _lines(node: Node, factor: Factor, rows_are_free: bool) -> MatrixLayout | None:
    """A factor as matrices; None where it cannot be seen so."""
    steps = [_step(node.shape, part) for part in (factor.batch, factor.free, factor.summed)]
    stride, free, summed = steps
    if stride is None or free is None or summed is None:
        return None
    if summed == 1:
        return MatrixLayout(node, not rows_are_free, free, stride)
    return MatrixLayout(node, rows_are_free, summed, stride) if free == 1 else None


def _step(shape: Shape, axes: tuple[int, ...]) -> Extent | None:
    """Elements from one position along these axes, counted as one, to the next; None where it is not always as many."""
    if any(b != a + 1 for a, b in pairwise(axes)):
        return None
    return product(shape[axes[-1] + 1 :]) if axes else 0
