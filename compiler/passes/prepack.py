"""Prepacking: factors that each iteration of a loop reads are laid out for products once, before the loop.

Products of a few rows spend more time on packing the other factor than on sums.  In a recurrent network that factor is
the same weight in all iterations.  Integers alone are prepacked, whose sums have the same bits in any order and which
kernels read in pairs along the depth; floats are read where they lie.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, parameter
from hybridflow.compiler.ops.lowering import Scan
from hybridflow.compiler.ops.packed_panels import matrix_of, panel_width, panels_of, pays, reads_panels
from hybridflow.compiler.passes.rewriter import rewrite
from hybridflow.compiler.target import Target

FEW_ITERATIONS = 4  # which laying out in a loop of its own would not pay for


def prepack(graph: Graph, target: Target) -> Graph:
    """The graph whose loops are given panels of the integer matrices that their products read."""
    if not reads_panels(target):
        return graph
    return rewrite(graph, functools.partial(_scan, width=panel_width(target)))


def _scan(b: GraphBuilder, node: Node, width: int) -> Node | None:
    if node.op.name != "scan":
        return None
    assert node.op.lower is not None
    how: Scan = node.op.lower(tuple([n.type for n in node.inputs]), node.attrs)
    if isinstance(how.length, int) and how.length < FEW_ITERATIONS:
        return None
    body: Graph = node.attrs["body"]
    first = node.attrs["carries"] + node.attrs["stacked"]
    operands = dict(zip(body.inputs[first:], node.inputs[first:]))
    packed = dict.fromkeys(
        [_factor(inner) for inner in body.nodes if _pays(inner, width) and inner.inputs[1] in operands]
    )
    if not packed:
        return None
    inputs, arguments = list(body.inputs), list(node.inputs)
    places: dict[tuple[Node, bool], Node] = {}
    for matrix, transposed in packed:
        operand = operands[matrix]
        panels = panels_of(b, b.transpose(operand, perm=(1, 0)) if transposed else operand, width)
        place = parameter(panels.type, f"panels{len(inputs)}")
        places[matrix, transposed] = place
        inputs.append(place)
        arguments.append(panels)

    def product(inside: GraphBuilder, inner: Node) -> Node | None:
        if not _pays(inner, width) or _factor(inner) not in places:
            return None
        left, place = inner.inputs[0], places[_factor(inner)]
        attrs = {**inner.attrs, "transpose_b": False}
        return inside.matmul(left, matrix_of(inside, place), **attrs)

    changed = rewrite(body, product)
    # A matrix that nobody reads any more is not given: where it is a view of panels, it would be copied.
    read = {*changed.results, *(operand for inner in changed.nodes for operand in inner.inputs)}
    kept = [k for k, place in enumerate(inputs) if k < first or place in read or place not in operands]
    inputs, arguments = [inputs[k] for k in kept], [arguments[k] for k in kept]
    return b.emit(node.op, *arguments, **{**node.attrs, "body": replace(changed, inputs=tuple(inputs))})


def _factor(product: Node) -> tuple[Node, bool]:
    """What panels are made of: a matrix, and whether it is transposed before."""
    return product.inputs[1], product.attrs["transpose_b"]


def _pays(node: Node, width: int) -> bool:
    """Whether a node is a product of integers that reads panels of its second factor."""
    if node.op.name != "matmul" or node.dtype != dt.int32:
        return False
    right = node.inputs[1]
    if right.type.ndim != 2 or not right.type.is_static or node.attrs["lanes"]:
        return False
    if not dt.is_integer(right.dtype) or not dt.embeds(right.dtype, dt.int16):
        return False
    k, n = right.shape[::-1] if node.attrs["transpose_b"] else right.shape
    return pays(k, n, width)
