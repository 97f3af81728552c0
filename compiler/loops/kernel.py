"""Clusters of nodes, the kernels that become of them, and where a kernel touches memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.index.access_maps import AccessMaps, access_maps_of
from hybridflow.compiler.index.index_expr import Index, IndexExpr
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.graph import Effect, Node
from hybridflow.compiler.ir.types import Shape, same_size
from hybridflow.compiler.ops import Kind

# Sums of products, whose results may be finished (bias, activation) as they are stored.
PRODUCTS = frozenset({Kind.CONTRACT, Kind.CONVOLVE})

# Kinds with kernels of their own.
DEDICATED_KERNEL = PRODUCTS | {Kind.SORT, Kind.TRANSFORM, Kind.SCAN, Kind.SCATTER, Kind.SEGMENT, Kind.CONTROL}

# Those of them whose kernels take their inputs as they lie in memory; others read through views, and through what is
# cheap to compute.
READS_MEMORY = frozenset({Kind.TRANSFORM, Kind.CONTROL})

# Those whose kernels go by row-major positions: they read through what does not divide these.
READS_LINEAR = frozenset({Kind.SORT, Kind.SCAN, Kind.SCATTER})

IsLeaf = Callable[[Node], bool]


@dataclass(eq=False)
class Cluster:
    """Nodes computed by one kernel.  ``rows`` are the members that have one element per row of a reduced space."""

    kind: Kind  # ELEMENTWISE for loop nests, else the kind of the anchor that has a kernel of its own
    space: Space
    shape: Shape  # of the full space
    anchor: Node  # the node that opened it: where the kind has a kernel of its own, what that kernel computes
    members: list[Node]
    rows: set[Node] = field(default_factory=set)
    leaves: set[Node] = field(default_factory=set)  # what members read, members included
    elsewhere: set[Node] = field(default_factory=set)  # leaves read at another place than the reader's own
    work: int = 0  # instructions per element, those of all members
    reductions: int = 0
    why: str = ""  # why it does not share its producers' kernel


@dataclass(eq=False)
class Kernel:
    """A cluster's live part: ``roots`` are written to memory, ``inputs`` are read from it."""

    cluster: Cluster
    roots: list[Node]
    inputs: list[Node]
    nodes: list[Node]  # what is computed here, in program order, recomputed producers included


def raises(kernel: Kernel) -> bool:
    return any(node.may_raise for node in kernel.nodes)


def has_effect(kernel: Kernel) -> bool:
    return any(node.effect is not Effect.NONE for node in kernel.nodes)


@dataclass(eq=False)
class Fusion:
    """Kernels in an order that respects their inputs; ``computed`` are the nodes that are not mere views."""

    kernels: list[Kernel]
    computed: set[Node]

    def is_leaf(self, node: Node) -> bool:
        return node.is_parameter or node in self.computed


def base(node: Node) -> Node:
    """The node whose buffer holds this node's value: some views share memory with their input."""
    while not node.is_parameter and node.op.shares_memory:
        node = node.inputs[0]
    return node


def loops_of(kernel: Kernel, is_leaf: IsLeaf) -> Space:
    """The loops for a kernel: of the shapes that its nodes offer, the one whose accesses divide least, merged."""
    cluster = kernel.cluster
    if cluster.kind is Kind.SEGMENT:
        return spaces.over(cluster.shape)
    if cluster.space.has_reduction:
        options = [cluster.space]
    else:
        shapes = dict.fromkeys([cluster.shape, *(n.shape for n in kernel.nodes if same_size(n.shape, cluster.shape))])
        options = [spaces.over(shape) for shape in shapes]
    best: tuple[tuple[int, int], Space] | None = None
    for space in options:
        positions = accesses(kernel, space, is_leaf).positions
        merged = spaces.merged(space, positions)
        score = (sum(not ix.is_affine for ix in positions), len(merged.vars))
        if best is None or score < best[0]:
            best = score, merged
    assert best is not None
    return best[1]


@dataclass(eq=False)
class Accesses:
    """Where a kernel touches memory: every position, for each input those at which it is read, and for each node those
    at which it is computed."""

    positions: dict[IndexExpr, None] = field(default_factory=dict)
    of_node: dict[Node, set[IndexExpr]] = field(default_factory=dict)
    of_input: dict[Node, set[IndexExpr]] = field(default_factory=dict)


def accesses(
    kernel: Kernel,
    space: Space,
    is_leaf: IsLeaf,
    wanted: Sequence[tuple[Node, IndexExpr]] | None = None,
    known: Container[Node] = (),
) -> Accesses:
    """What making the results touches, or what making others touches that are ``wanted``, at a position of each, and
    of nodes that are not ``known``."""
    cluster = kernel.cluster
    inside = set(kernel.nodes)
    result = Accesses()
    seen: set[tuple[Node, IndexExpr]] = set()
    stack: list[tuple[Node, IndexExpr]] = []

    def follow(reads: AccessMaps) -> None:
        result.positions.update(dict.fromkeys(reads.positions))
        for leaf, index in reads.leaves:
            if leaf in known:
                continue
            if leaf in inside:
                stack.append((leaf, space.row if leaf in cluster.rows else index.linear))
            else:
                result.positions.setdefault(index.linear)
                result.of_input.setdefault(leaf, set()).add(index.linear)

    if wanted is None:
        stack += [(root, space.row if root in cluster.rows else space.full) for root in kernel.roots]
        result.positions.update(dict.fromkeys(position for _, position in stack))
    else:
        reads = AccessMaps(is_leaf)
        for node, position in wanted:
            reads.follow(node, Index(node.shape, linear=position))
        follow(reads)
    while stack:
        node, position = stack.pop()
        if (node, position) in seen or (node is cluster.anchor and node.op.kind in DEDICATED_KERNEL):
            continue
        seen.add((node, position))
        result.of_node.setdefault(node, set()).add(position)
        reduces = node.op.kind is Kind.REDUCE
        shape = node.inputs[0].shape if reduces else node.shape
        follow(access_maps_of(node, Index(shape, linear=space.full if reduces else position), is_leaf))
    return result


def between(
    kernel: Kernel, wanted: Sequence[Node], position: IndexExpr, known: Container[Node], is_leaf: IsLeaf
) -> list[Node]:
    """The kernel's nodes, in program order, of whose elements at ``position`` the wanted ones there are made, but for
    those that are ``known``.  Evaluated in this order no node's rule has to wait for another's."""
    inside, used = set(kernel.nodes), set()
    reads = AccessMaps(is_leaf)
    for node in wanted:
        reads.follow(node, Index(node.shape, linear=position))
    stack = reads.leaves
    while stack:
        node, index = stack.pop()
        if index.linear != position or node in used or node not in inside or node in known:
            continue
        if node.op.kind is not Kind.REDUCE and node.op.kind not in DEDICATED_KERNEL:
            used.add(node)
            stack += access_maps_of(node, Index(node.shape, linear=position), is_leaf).leaves
    return [node for node in kernel.nodes if node in used]


def read_in_place(kernel: Kernel, is_leaf: IsLeaf) -> set[Node]:
    """Inputs of which element i is read only to make element i of the results: a result may take their memory."""
    cluster = kernel.cluster
    if cluster.kind is Kind.SCATTER:  # a unit has a part of the result to itself, and copies that part first
        copied, *others = cluster.anchor.inputs
        reads = AccessMaps(set(kernel.inputs).__contains__)
        reads.follow(copied, Index(copied.shape, linear=cluster.space.full))
        elsewhere = {leaf for leaf, index in reads.leaves if index.linear != cluster.space.full}
        return {leaf for leaf, _ in reads.leaves} - elsewhere - _beneath(others, kernel)
    if cluster.kind not in (Kind.ELEMENTWISE, *PRODUCTS) or cluster.space.has_reduction:
        return set()
    kernel_reads = accesses(kernel, cluster.space, is_leaf)
    operands = _beneath(cluster.anchor.inputs, kernel) if cluster.kind in PRODUCTS else set()
    return {
        leaf
        for leaf, positions in kernel_reads.of_input.items()
        if positions == {cluster.space.full} and leaf not in operands
    }


def checks_first(kernel: Kernel) -> bool:
    """Whether a kernel that raises does so before it writes anything."""
    return kernel.cluster.kind is Kind.SCATTER


def _beneath(nodes: Sequence[Node], kernel: Kernel) -> set[Node]:
    """The kernel's inputs of which ``nodes`` are made."""
    inputs, result, seen, stack = set(kernel.inputs), set(), set(), list(nodes)
    while stack:
        node = stack.pop()
        if node in inputs:
            result.add(node)
        elif node not in seen:
            seen.add(node)
            stack += node.inputs
    return result
