"""Which kernels have the same code: those of one structure, whatever buffers they run over.

Unrolled loops and equal layers give the same kernel hundreds of times.  Writing its code takes a hundred times as long
as comparing structures, so only the first of them is written.  That is sound because the code of a kernel is decided
by what stands in its key, and by what all kernels of a program share: target, flags, names of symbolic extents.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hybridflow.compiler.ir.attributes import node_attrs_key
from hybridflow.compiler.ir.graph import Literal, Node, parameter
from hybridflow.compiler.loops.kernel import READS_MEMORY, IsLeaf, Kernel, raises
from hybridflow.compiler.loops.space import Space
from hybridflow.compiler.ops import Kind

MANY = 4  # kernels that differ in numbers only, from which on they share their code


def structure(kernel: Kernel, is_leaf: IsLeaf) -> Hashable | None:
    """A key that kernels of the same code share; None for one that no other shares: the codes of its checks are part
    of its code."""
    if raises(kernel):
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


class Part(NamedTuple):
    """What lies in the buffer of a node from a byte on."""

    node: Node
    offset: int


class Template(NamedTuple):
    """A kernel that stands for those which differ from it in where they read: ``parts`` has what its nodes, where they
    are not the graph's own, stand for.  ``copies`` are its nodes that stand for others, by those."""

    kernel: Kernel
    parts: dict[Node, Part]
    copies: dict[Node, Node]


def template_of(kernel: Kernel, lifted: bool = False) -> Template:
    """The kernel, with each slice of something in memory replaced by one that begins with the first element there is
    of memory that begins later.  Steps of an unrolled loop, which read other slices of one input, become equal.

    ``lifted``: constant numbers are read from memory as well.
    """
    parts: dict[Node, Part] = {}
    copies: dict[Node, Node] = {}
    if kernel.cluster.kind in READS_MEMORY or raises(kernel):
        return Template(kernel, parts, copies)
    begun: dict[Part, Node] = {}
    inputs = dict.fromkeys(kernel.inputs)
    used: set[Node] = set()
    computed = set(kernel.nodes)
    for node in _sources(kernel, inputs):
        if lifted and literal_of(node) is not None and node not in computed:
            copies[node] = begun[Part(node, 0)] = parameter(node.type, "part")
            parts[copies[node]] = Part(node, 0)
            continue
        reads, attrs = [copies.get(n, n) for n in node.inputs], node.attrs
        origin = node.op.origin
        found = origin(node.inputs[0].type, **attrs) if origin is not None and node.inputs[0] in inputs else None
        if found is not None and found[0]:
            place, attrs = found
            part = Part(node.inputs[0], place * node.dtype.itemsize)
            reads = [begun.setdefault(part, parameter(part.node.type, "part"))]
            parts[reads[0]] = part
        if reads != list(node.inputs):
            copies[node] = Node(node.op, reads, attrs, node.type, node.where)
        used.update(reads)
    if not copies:
        return Template(kernel, parts, copies)
    parts.update((copies[root], Part(root, 0)) for root in kernel.roots if root in copies)
    cluster = kernel.cluster
    return Template(
        replace(
            kernel,
            cluster=replace(
                cluster,
                anchor=copies.get(cluster.anchor, cluster.anchor),
                members=[copies.get(n, n) for n in cluster.members],
                rows={copies.get(n, n) for n in cluster.rows},
            ),
            roots=[copies.get(n, n) for n in kernel.roots],
            inputs=[*(n for n in kernel.inputs if n in used), *begun.values()],
            nodes=[copies.get(n, n) for n in kernel.nodes],
        ),
        parts,
        copies,
    )


def literal_of(node: Node) -> Literal | None:
    """The value of a node that is a constant number."""
    value = node.attrs.get("value")
    if not isinstance(value, Literal) or node.op.kind is not Kind.CREATE:
        return None
    return value if value.type.shape == () and len(value.data) <= 8 else None


def templates_of(kernels: Sequence[Kernel], is_leaf: IsLeaf) -> list[Template]:
    """The template of each kernel.  Numbers are read from memory where at least ``MANY`` kernels would be equal but
    for them; elsewhere they are part of the code, which is a little quicker."""
    plain = [template_of(kernel) for kernel in kernels]
    lifted = [template_of(kernel, lifted=True) for kernel in kernels]
    variants: dict[Hashable, set[Hashable]] = {}
    keys: list[Hashable | None] = []
    for one, other in zip(plain, lifted):
        key = None
        if len(other.parts) > len(one.parts):
            key = structure(other.kernel, _with_copies(is_leaf, other))
            variants.setdefault(key, set()).add(structure(one.kernel, _with_copies(is_leaf, one)))
        keys.append(key)
    return [
        other if key is not None and len(variants[key]) >= MANY else one for one, other, key in zip(plain, lifted, keys)
    ]


def _with_copies(is_leaf: IsLeaf, template: Template) -> IsLeaf:
    originals = {copy: node for node, copy in template.copies.items()}
    return lambda node: node.is_parameter or is_leaf(originals.get(node, node))


def _loops(space: Space) -> Hashable:
    return tuple([(var.name, var.extent) for var in space.vars]), space.reduced


def _sources(kernel: Kernel, known: Iterable[Node]) -> list[Node]:
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
