"""Which kernels have the same code: those of one structure, whatever buffers they run over.

Unrolled loops and equal layers give the same kernel hundreds of times.  Writing its code takes a hundred times as long
as comparing structures, so only the first of them is written.  That is sound because the code of a kernel is decided
by what stands in its key, and by what all kernels of a program share: target, flags, names of symbolic extents.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hybridflow.compiler.ir.attributes import attrs_key, node_attrs_key
from hybridflow.compiler.ir.graph import Literal, Node, parameter
from hybridflow.compiler.loops.kernel import READS_MEMORY, IsLeaf, Kernel, raises
from hybridflow.compiler.ops import Kind

MANY = 4  # kernels that differ in numbers only, from which on they share their code


class BufferPart(NamedTuple):
    """What lies in the buffer of a node from a byte on."""

    node: Node
    offset: int


class SharedKernelCode(NamedTuple):
    """A kernel that stands for those of the same code.  ``copies`` are its nodes that stand for others, by those."""

    kernel: Kernel
    copies: dict[Node, Node]


class StructuralKey(NamedTuple):
    """What decides a kernel's code, but for the values of constant numbers: kernels with equal ``key`` and ``numbers``
    have the same code, and those with equal keys too where numbers are read from memory.

    ``inputs`` are read as they lie there; ``parts`` have where slices of others begin, and the numbers, in the order in
    which the kernel comes to them.
    """

    key: Hashable
    inputs: list[Node]
    parts: list[BufferPart]
    numbers: dict[Node, Literal]


def structural_key(kernel: Kernel, is_leaf: IsLeaf, whole: bool = False) -> StructuralKey | None:
    """The structure of a kernel; None for one that shares its code with no other: the codes of its checks are part of
    it.  ``whole``: it is given whole buffers, so that where slices begin, and numbers, are part of its code as well."""
    if raises(kernel):
        return None
    whole = whole or kernel.cluster.kind in READS_MEMORY
    inside = set(kernel.nodes)
    inputs_read = dict.fromkeys(kernel.inputs)
    sources = _sources(kernel, inputs_read)
    parts: dict[BufferPart, None] = {}
    begun: dict[Node, tuple[BufferPart, dict[str, Any]]] = {}
    literals: dict[Node, Literal] = {}
    read: set[Node] = set()
    for node in sources:
        value = None if whole or node in inside else literal_of(node)
        part_origin = None if whole or value is not None else _origin(node, inputs_read)
        if value is not None:
            literals[node] = value
            parts[BufferPart(node, 0)] = None
        elif part_origin is not None:
            begun[node] = part_origin
            parts[part_origin[0]] = None
        else:
            read.update(node.inputs)
    inputs = [n for n in inputs_read if n in read] if begun else kernel.inputs
    numbers: dict[Any, int] = {}
    for item in (*inputs, *parts, *sources):
        numbers.setdefault(item, len(numbers))
    nodes: list[Any] = [n.type for n in inputs]
    nodes += [part.node.type for part in parts]
    for node in sources:
        if node in literals:
            nodes.append(numbers[BufferPart(node, 0)])
            continue
        if node in begun:
            part, changed = begun[node]
            attrs, reads = attrs_key(changed), [numbers[part]]
        else:
            attrs, reads = node_attrs_key(node), [numbers[n] for n in node.inputs]
        nodes.append((node.op.name, attrs, node.type, *reads, node in inside, is_leaf(node)))
    cluster = kernel.cluster
    key = (
        cluster.kind,
        cluster.shape,
        cluster.space.key,
        numbers.get(cluster.anchor),
        tuple(sorted([numbers[n] for n in cluster.rows if n in numbers])),
        tuple([numbers[n] for n in kernel.nodes]),
        tuple([numbers[n] for n in kernel.roots]),
        len(inputs),
        len(parts),
        tuple(nodes),
    )
    return StructuralKey(key, inputs, list(parts), literals)


def _origin(node: Node, inputs: Container[Node]) -> tuple[BufferPart, dict[str, Any]] | None:
    """Of a slice of an input that does not begin with its first element: the part of memory from its own first element
    on, and the attributes of the slice which takes that part to be the whole."""
    origin = node.op.origin
    if origin is None or node.inputs[0] not in inputs:
        return None
    part = origin(node.inputs[0].type, **node.attrs)
    if part is None or not part[0]:
        return None
    return BufferPart(node.inputs[0], part[0] * node.dtype.itemsize), part[1]


def literal_of(node: Node) -> Literal | None:
    """The value of a node that is a constant number."""
    if node.is_parameter or node.op.kind is not Kind.CREATE:
        return None
    value = node.attrs.get("value")
    if not isinstance(value, Literal):
        return None
    return value if value.type.shape == () and len(value.data) <= 8 else None


class KernelKey(NamedTuple):
    """A kernel whose code may be another's: those of equal ``key``, where it is not None, have the same.  That takes
    the buffers of ``inputs``, then ``parts``, then those of the kernel's roots.  ``lifted`` as for ``template_of``."""

    kernel: Kernel
    key: Hashable | None
    inputs: Sequence[Node]
    parts: Sequence[BufferPart]
    lifted: bool


def kernel_key(kernels: Sequence[Kernel], is_leaf: IsLeaf, whole: bool = False) -> list[KernelKey]:
    """Which kernels have the same code.  Numbers are read from memory where at least ``MANY`` kernels would be equal
    but for them; elsewhere they are part of the code, which is a little quicker.  ``whole`` as for ``structure``."""
    number_of: dict[Hashable, int] = {}
    variants: list[set[tuple[Literal, ...]]] = []
    keys: list[tuple[StructuralKey | None, int, tuple[Literal, ...]]] = []
    for kernel in kernels:
        one = structural_key(kernel, is_leaf, whole)
        if one is None:
            keys.append((None, -1, ()))
            continue
        number, values = number_of.setdefault(one.key, len(variants)), tuple(one.numbers.values())
        if number == len(variants):
            variants.append(set())
        variants[number].add(values)
        keys.append((one, number, values))
    result = []
    for kernel, (one, number, values) in zip(kernels, keys):
        if one is None:
            result.append(KernelKey(kernel, None, kernel.inputs, (), False))
            continue
        lifted = bool(values) and len(variants[number]) >= MANY
        parts = one.parts if lifted or not values else [part for part in one.parts if part.node not in one.numbers]
        result.append(KernelKey(kernel, (number, lifted or values), one.inputs, parts, lifted))
    return result


def template_of(key: KernelKey) -> SharedKernelCode:
    """The kernel, with each slice of something in memory replaced by one that begins with the first element there is of
    memory that begins later; where they are ``lifted``, with constant numbers read from memory.  Steps of an unrolled
    loop, which read other slices of one input, become equal."""
    kernel, cluster, inputs = key.kernel, key.kernel.cluster, set(key.kernel.inputs)
    begun = {part: parameter(part.node.type, "part") for part in key.parts}
    copies: dict[Node, Node] = {part.node: copy for part, copy in begun.items() if literal_of(part.node) is not None}
    for node in _sources(kernel, inputs):
        if node in copies:
            continue
        reads, attrs = [copies.get(n, n) for n in node.inputs], node.attrs
        origin = _origin(node, inputs)
        if origin is not None:
            part, attrs = origin
            reads = [begun[part]]
        if reads != list(node.inputs):
            copies[node] = Node(node.op, reads, attrs, node.type, node.where)
    replaced = replace(
        kernel,
        cluster=replace(
            cluster,
            anchor=copies.get(cluster.anchor, cluster.anchor),
            members=[copies.get(n, n) for n in cluster.members],
            rows={copies.get(n, n) for n in cluster.rows},
        ),
        roots=[copies.get(n, n) for n in kernel.roots],
        inputs=[*key.inputs, *begun.values()],
        nodes=[copies.get(n, n) for n in kernel.nodes],
    )
    return SharedKernelCode(replaced, copies)


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
