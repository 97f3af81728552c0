"""Convolutions of one channel by one filter along one axis, as products of the filter with windows of the input.

The tile of a convolution has its columns in lanes, and here is one column.  The product reads the input once for each
element of the filter, with the places in lanes; no window is copied.  Both have the order of a product's blocks
(``ops/evaluation_order.py``), so the bits are the same.
"""

from __future__ import annotations

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.passes.rewriter import rewrite

LEAST_PLACES = 32  # fewer do not fill the lanes of a tile


def filters_to_matmul(graph: Graph) -> Graph:
    return rewrite(graph, _as_matmul)


def _as_matmul(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.name != "convolve" or node.dtype not in (dt.float32, dt.float64):
        return None
    x, f = node.inputs
    if x.type.ndim != 4 or (*x.shape[2:], *f.shape[1:]) != (1,) * 5:
        return None
    ((low,), (high,)) = (node.attrs[name] for name in ("low", "high"))
    count, length = x.shape[:2]
    size, places = f.shape[0], node.shape[1]
    is_plain = node.attrs["step"] == (1,) and node.attrs["interior"] == (0,) and min(low, high) >= 0
    if not is_plain or not isinstance(places, int) or places < LEAST_PLACES or not isinstance(length, int):
        return None
    lines = b.reshape(x, shape=(count, length))
    if low or high:
        lines = b.pad(lines, low=(0, low), high=(0, high), value=0.0)
    seen = b.windows(lines, axes=(1,), size=(places,), step=node.attrs["dilation"], dilation=(1,))
    weights = b.broadcast(b.reshape(f, shape=(size,)), shape=(count, 1, size), axes=(2,))
    return b.reshape(b.matmul(weights, seen, lanes=False), shape=node.shape)
