"""Integer arithmetic in the fewest bits that hold it: a register has four times as many bytes as numbers of 32 bits.

An op on integers that were converted from narrower ones, or are known, is computed in the narrowest dtype that has all
numbers which its inputs and its exact result can be (``ops/bounds.py``); then its bits are those of the wider one.  What
comes of it is converted back, and an op that reads that begins there.  What lies in memory with its full width stays as
it is: it would be narrowed only to be widened again.
"""

from __future__ import annotations

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops.bounds import bounds, of_dtype
from hybridflow.compiler.passes.match import splat
from hybridflow.compiler.passes.rewrite import rewrite

_RELATIONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_ARITHMETIC = {
    *("add", "subtract", "multiply", "floor_divide", "remainder", "minimum", "maximum", "where"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
}
_NARROWER = (dt.uint8, dt.int8, dt.uint16, dt.int16, dt.uint32, dt.int32)


def narrow(graph: Graph) -> Graph:
    return rewrite(graph, _narrowed)


def _narrowed(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.name not in _RELATIONS and node.op.name not in _ARITHMETIC:
        return None
    values = node.inputs[-2:]  # but for a condition
    wide = values[0].dtype
    if not dt.is_integer(wide) or wide.itemsize == 1:
        return None
    sources = [_source(value) for value in values]
    known = [splat(value) for value in values]
    if not any(sources) or any(s is None and k is None for s, k in zip(sources, known)):
        return None
    bits = max(s.dtype.itemsize for s in sources if s is not None)
    dtype = _dtype_for([*values, node] if node.dtype == wide else values, bits, wide.itemsize)
    if dtype is None:
        return None
    inputs = [
        b.full(int(k), TensorType(value.shape, dtype)) if s is None else b.convert(s, dtype=dtype)
        for value, s, k in zip(values, sources, known)
    ]
    found = b.emit(node.op, *node.inputs[:-2], *inputs, **node.attrs)
    return found if found.type == node.type else b.convert(found, dtype=wide)


def _source(value: Node) -> Node | None:
    """The integers that a value was widened from."""
    if value.is_parameter or value.op.name != "convert":
        return None
    source = value.inputs[0]
    return source if dt.is_integer(source.dtype) and source.dtype.itemsize < value.dtype.itemsize else None


def _dtype_for(values: list[Node] | tuple[Node, ...], least: int, below: int) -> dt.DType | None:
    """The narrowest dtype that has all these integers, of ``least`` bytes and of less than ``below``."""
    ends = [bounds(value) for value in values]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    for dtype in _NARROWER:
        first, last = of_dtype(dtype)
        if least <= dtype.itemsize < below and first <= low and high <= last:
            return dtype
    return None
