"""Which kernels have the same code: those of one structure, whatever buffers they run over.

Unrolled loops and equal layers give the same kernel hundreds of times.  Writing its code takes a hundred times as long
as comparing structures, so only the first of them is written.  That is sound because the code of a kernel is decided
by what stands in its key, and by what all kernels of a program share: target, flags, names of symbolic extents.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from hybridflow.compiler.ir.attributes import node_attrs_key
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel
from hybridflow.compiler.loops.space import Space


def structure(kernel: Kernel, is_leaf: IsLeaf) -> Hashable | None:
    """A key that kernels of the same code share; None for one that no other shares: the codes of its checks are part
    of its code."""
    if any(node.may_raise for node in kernel.nodes):
        return None
    cluster = kernel.cluster
    numbers: dict[Node, int] = {}
    found: list[Any] = []
    for node in kernel.inputs:
        numbers[node] = len(numbers)
        found.append((node.type, node.is_parameter))
    inside = set(kernel.nodes)
    for node in _sources(kernel, numbers):
        numbers[node] = len(numbers)
        reads = tuple([numbers[n] for n in node.inputs])
        attrs = () if node.is_parameter else node_attrs_key(node)
        found.append((node.op.name, attrs, node.type, reads, node in inside, is_leaf(node)))
    return (
        cluster.kind,
        cluster.shape,
        _loops(cluster.space),
        numbers.get(cluster.anchor),
        tuple(sorted([numbers[n] for n in cluster.rows if n in numbers])),
        tuple([numbers[n] for n in kernel.nodes]),
        tuple([numbers[n] for n in kernel.roots]),
        tuple(found),
    )


def _loops(space: Space) -> Hashable:
    return tuple([(var.name, var.extent) for var in space.vars]), space.reduced


def _sources(kernel: Kernel, known: dict[Node, int]) -> list[Node]:
    """What the kernel computes, and what lies between that and its inputs, each after its own sources."""
    done: set[Node] = set(known)
    ordered: list[Node] = []
    stack = [(node, False) for node in reversed(kernel.nodes)]
    while stack:
        node, ready = stack.pop()
        if ready:
            ordered.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack += [(n, False) for n in reversed(node.inputs)]
    return ordered
