"""How often kernels of their own come to each element of what they read, which decides what is computed there."""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen import counting, product_blocks, scatter, windowed
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.target import Target


def times_read(target: Target, node: Node) -> Sequence[int | None]:
    """For each input of ``node`` how often its kernel comes to each element, None where it may not come to any."""
    if node.op.kind is Kind.CONTRACT:
        return product_blocks.times_read(target, node)
    if node.op.kind is Kind.CONVOLVE:
        return windowed.times_read(node)
    if node.op.kind is Kind.SCATTER and counting.counts(target, node):
        return 1, 1, 1
    if node.op.kind is Kind.SCATTER:
        return scatter.times_read(target, node)
    return (2 if node.op.kind is Kind.SCAN else 1,) * len(node.inputs)  # a long line is summed up first
