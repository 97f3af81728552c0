"""How often kernels of their own come to each element of what they read, which decides what is computed there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from hybridflow.compiler.codegen.ordering import histogram, scatter_add
from hybridflow.compiler.codegen.products import cache_blocking, convolution_lowering
from hybridflow.compiler.ir.attributes import node_attrs_key
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.target import Target


def read_counts(target: Target, node: Node) -> Sequence[int | None]:
    """For each input of ``node`` how often its kernel comes to each element, None where it may not come to any."""
    if node.op.kind is Kind.CONTRACT:
        return cache_blocking.times_read(target, node)
    if node.op.kind is Kind.CONVOLVE:
        return convolution_lowering.times_read(node)
    if node.op.kind is Kind.SCATTER and histogram.uses_histogram(target, node):
        return 1, 1, 1
    if node.op.kind is Kind.SCATTER:
        return scatter_add.times_read(target, node)
    return (2 if node.op.kind is Kind.SCAN else 1,) * len(node.inputs)  # a long line is summed up first


def read_counter(target: Target) -> Callable[[Node], Sequence[int | None]]:
    """``read_counts`` for a target.  Equal products, of which equal layers have many, are looked at once."""
    products: dict[Hashable, Sequence[int | None]] = {}

    def counts(node: Node) -> Sequence[int | None]:
        if node.op.kind is not Kind.CONTRACT:
            return read_counts(target, node)
        key = node.op.name, node.type, *[n.type for n in node.inputs], node_attrs_key(node)
        result = products.get(key)
        if result is None:
            result = products[key] = read_counts(target, node)
        return result

    return counts
