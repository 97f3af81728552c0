"""Fusion: which nodes share a kernel, and which values live in memory.

Nodes are taken in program order.  Each joins the cluster of its producers when that cluster's loops visit the
elements that the node needs in the same order (compared as index expressions, so reshapes cost nothing and a row's
statistic may be used again across its row), else it opens a cluster.  Two clusters of one space merge when a node
needs both.  Then, from the results backwards, every value that a kernel needs from another cluster is either
recomputed there, when that is cheap or moves no work, or given a buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import Shape, is_static, same_size, static_size
from hybridflow.compiler.loops import space as spaces
from hybridflow.compiler.loops.index import Index, Ix
from hybridflow.compiler.loops.operands import Reads, reads_of
from hybridflow.compiler.loops.space import Space
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.target import Target

# Kinds with kernels of their own.  The result of a contraction may be finished (bias, activation) as it is stored.
OWN_KERNEL = frozenset({Kind.CONTRACT, Kind.SORT, Kind.SCAN, Kind.SCATTER, Kind.SEGMENT})

MAX_MEMBERS = 256  # LLVM's register allocation grows faster than linearly with the body
CHEAP = 10  # instructions per element that may be repeated rather than kept in memory


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
    why: str = ""  # why it does not share its producers' kernel


@dataclass(eq=False)
class Kernel:
    """A cluster's live part: ``roots`` are written to memory, ``inputs`` are read from it."""

    cluster: Cluster
    roots: list[Node]
    inputs: list[Node]
    nodes: list[Node]  # what is computed here, in program order, recomputed producers included


@dataclass(eq=False)
class Fusion:
    """Kernels in an order that respects their inputs; ``computed`` are the nodes that are not mere views."""

    kernels: list[Kernel]
    computed: set[Node]

    def is_leaf(self, node: Node) -> bool:
        return node.is_parameter or node in self.computed


def base(node: Node) -> Node:
    """The node whose buffer holds this node's value: reshapes share memory with their input."""
    while not node.is_parameter and node.op.name == "reshape":
        node = node.inputs[0]
    return node


class _Fuser:
    def __init__(self, graph: Graph, target: Target, cost: Callable[[Node], int]) -> None:
        self.graph, self.target, self.cost = graph, target, cost
        self.users = graph.users()
        self.cluster_of: dict[Node, Cluster] = {}
        self.clusters: list[Cluster] = []
        self.stored: set[Node] = set()
        self.computed: set[Node] = set()
        self._flat: dict[Shape, Space] = {}
        self._reductions: dict[tuple, Space] = {}
        self._reads: dict[tuple[Node, Ix], Reads] = {}

    # What is a leaf of index maps: parameters, and nodes that compute rather than rename elements.

    def is_leaf(self, node: Node) -> bool:
        return node.is_parameter or node in self.computed

    def mark_computed(self) -> None:
        must_store = {base(n) for n in self.graph.results}
        for node in self.graph.nodes:
            if node.op.kind in OWN_KERNEL and node.op.kind is not Kind.SEGMENT:
                must_store.update(base(n) for n in node.inputs)
        for node in self.graph.nodes:
            kind = node.op.kind
            if kind is Kind.VIEW or (kind is Kind.CREATE and not node.inputs):
                if node in must_store:
                    self.computed.add(node)
            else:
                self.computed.add(node)
        self.stored = {n for n in must_store if not n.is_parameter}
        for node in self.graph.nodes:
            if node.op.kind is Kind.GATHER:  # its data is read at random, so it must lie in memory
                for leaf in self.leaves_beneath(node.inputs[0]):
                    if not leaf.is_parameter:
                        self.stored.add(leaf)

    def leaves_beneath(self, node: Node) -> list[Node]:
        if self.is_leaf(node):
            return [node]
        found: list[Node] = []
        for source in node.inputs:
            found += self.leaves_beneath(source)
        return found

    # Spaces and reads.

    def flat(self, shape: Shape) -> Space:
        key = (static_size(shape),) if is_static(shape) else shape
        if key not in self._flat:
            self._flat[key] = spaces.flat(shape)
        return self._flat[key]

    def reduction(self, shape: Shape, axes: tuple[int, ...]) -> Space:
        key = (shape, axes)
        if key not in self._reductions:
            self._reductions[key] = spaces.reduction(shape, axes)
        return self._reductions[key]

    def reads(self, node: Node, position: Ix) -> Reads:
        """What ``node`` reads when the loops are at ``position`` of its space."""
        key = (node, position)
        if key not in self._reads:
            shape = node.inputs[0].shape if node.op.kind is Kind.REDUCE else node.shape
            self._reads[key] = reads_of(node, Index(shape, linear=position), self.is_leaf)
        return self._reads[key]

    # Clustering.

    def build(self) -> None:
        for node in self.graph.nodes:
            if node in self.computed:
                self.place(node)

    def place(self, node: Node) -> None:
        kind = node.op.kind
        if kind in OWN_KERNEL:
            self.open(node, kind, self.flat(node.shape), node.shape, "has a kernel of its own")
            return
        shape = node.inputs[0].shape if kind is Kind.REDUCE else node.shape
        reads = self.reads(node, self.flat(shape).full)
        candidates = self.candidates(reads)
        why = ""
        for cluster in candidates:
            level, refusal = self.fits(node, cluster, shape)
            if level is not None:
                self.join(node, cluster, level, shape)
                return
            why = why or refusal
        space = self.reduction(shape, node.attrs["axes"]) if kind is Kind.REDUCE else self.flat(shape)
        self.open(node, Kind.ELEMENTWISE, space, shape, why)

    def open(self, node: Node, kind: Kind, space: Space, shape: Shape, why: str) -> None:
        cluster = Cluster(kind, space, shape, node, [node], why=why)
        if node.op.kind is Kind.REDUCE:
            cluster.rows.add(node)
        self.cluster_of[node] = cluster
        self.clusters.append(cluster)
        self.note_leaves(node, cluster)

    def note_leaves(self, node: Node, cluster: Cluster) -> None:
        if node.op.kind in OWN_KERNEL:
            for source in node.inputs:
                cluster.leaves.update(self.leaves_beneath(source))
        else:
            shape = node.inputs[0].shape if node.op.kind is Kind.REDUCE else node.shape
            cluster.leaves.update(leaf for leaf, _ in self.reads(node, self.flat(shape).full).leaves)

    def candidates(self, reads: Reads) -> list[Cluster]:
        """Clusters of the producers, latest first; then those that read the same tensors (siblings)."""
        found: list[Cluster] = []
        for leaf, _ in reversed(reads.leaves):
            cluster = self.cluster_of.get(leaf)
            if cluster is not None and cluster not in found:
                found.append(cluster)
        if not found:
            shared = {leaf for leaf, _ in reads.leaves if leaf.is_parameter}
            found += [c for c in reversed(self.clusters[-8:]) if c.kind is Kind.ELEMENTWISE and shared & c.leaves]
        return found

    def fits(self, node: Node, cluster: Cluster, shape: Shape) -> tuple[str | None, str]:
        """The level ("full" or "row") at which the node may join, or None and why not."""
        is_reduce = node.op.kind is Kind.REDUCE
        if cluster.kind is Kind.CONTRACT:
            if is_reduce:
                return None, "a contraction's epilogue cannot reduce"
            if not is_static(cluster.shape) and len(cluster.shape) > 2:
                return None, "a batched contraction of symbolic extents is stored as it is"
        elif cluster.kind is not Kind.ELEMENTWISE:
            return None, f"{cluster.anchor.op.name} has a kernel of its own"
        if len(cluster.members) >= MAX_MEMBERS:
            return None, "the kernel is large enough"
        space = cluster.space
        level, refusal = None, "its loops visit other elements"
        if same_size(shape, cluster.shape):
            if is_reduce:
                own = self.reduction(shape, node.attrs["axes"])
                if not space.has_reduction:
                    space = own  # the cluster will take the reduction's loops
                elif spaces.signature(own) != spaces.signature(space):
                    return None, "its reduction runs over other axes"
            level, refusal = self.reads_fit(node, cluster, space, space.full, "full")
        per_row = same_size(shape, tuple(v.extent for v in space.kept))
        if level is None and not is_reduce and space.has_reduction and per_row:
            level, refusal = self.reads_fit(node, cluster, space, space.row, "row")
        return level, refusal

    def reads_fit(self, node: Node, cluster: Cluster, space: Space, position: Ix, level: str) -> tuple[str | None, str]:
        others: set[Cluster] = set()
        uses_row = False
        for leaf, index in self.reads(node, position).leaves:
            home = self.cluster_of.get(leaf)
            if home is cluster:
                row = leaf in cluster.rows
                if index.linear != (space.row if row else space.full):
                    return None, f"it reads {leaf.op.name} in another order"
                if row and leaf.shape != () and not space.has_reduction:
                    return None, "its loops visit other elements"
                if level == "row" and not row:
                    return None, "it needs one element of a row"
                uses_row |= row and level == "full"
            elif home is not None:
                others.add(home)
        if uses_row and not self.row_stays_near(space):
            return None, "the row is too long to stay in cache between its passes"
        for other in others:
            if self.depends(other, cluster):
                return None, "it would wait for a kernel that waits for it"
        return level, ""

    def row_stays_near(self, space: Space) -> bool:
        extents = tuple(v.extent for v in space.folded)
        return not is_static(extents) or static_size(extents) * 4 <= self.target.l2

    def depends(self, cluster: Cluster, on: Cluster) -> bool:
        """Whether ``cluster`` needs, directly or not, a value of ``on``."""
        stack, seen = [cluster], {cluster}
        while stack:
            for leaf in stack.pop().leaves:
                home = self.cluster_of.get(leaf)
                if home is on:
                    return True
                if home is not None and home not in seen:
                    seen.add(home)
                    stack.append(home)
        return False

    def join(self, node: Node, cluster: Cluster, level: str, shape: Shape) -> None:
        if node.op.kind is Kind.REDUCE:
            if not cluster.space.has_reduction:
                cluster.space, cluster.shape = self.reduction(shape, node.attrs["axes"]), shape
            level = "row"
        if level == "row":
            cluster.rows.add(node)
        cluster.members.append(node)
        self.cluster_of[node] = cluster
        self.note_leaves(node, cluster)
        self.absorb_producers(node, cluster)

    def absorb_producers(self, node: Node, cluster: Cluster) -> None:
        """Merge clusters without reductions of their own that this node reads in the cluster's order."""
        if node in cluster.rows and node.op.kind is not Kind.REDUCE:
            return
        for leaf, index in self.reads(node, cluster.space.full).leaves:
            other = self.cluster_of.get(leaf)
            if other is None or other is cluster or other.kind is not Kind.ELEMENTWISE:
                continue
            if other.space.has_reduction or index.linear != cluster.space.full:
                continue
            if not same_size(other.shape, cluster.shape):  # a slice of one element reads at 0, as loops over one do
                continue
            if len(other.members) + len(cluster.members) > MAX_MEMBERS:
                continue
            others = [self.cluster_of[x] for x in cluster.leaves if x in self.cluster_of]
            if self.depends(other, cluster) or any(self.depends(o, other) for o in others if o not in (other, cluster)):
                continue
            cluster.members += other.members
            cluster.leaves |= other.leaves
            for member in other.members:
                self.cluster_of[member] = cluster
            self.clusters.remove(other)

    # Buffers: from the results backwards.

    def choose_stored(self) -> list[Kernel]:
        order = {node: k for k, node in enumerate(self.graph.nodes)}
        for cluster in self.clusters:
            cluster.members.sort(key=order.__getitem__)
        # A cluster comes after all that it depends on; so backwards, every reader is seen before what it reads.
        kernels: list[Kernel] = []
        for cluster in reversed(self.ordered()):
            raising = [m for m in cluster.members if m.op.may_raise(tuple(i.type for i in m.inputs), m.attrs)]
            self.stored.update(m for m in raising if not self.reaches_stored(m, cluster))
            roots = [m for m in cluster.members if m in self.stored]
            if roots:
                kernels.append(self.kernel(cluster, roots, order))
        kernels.reverse()
        return kernels

    def reaches_stored(self, node: Node, cluster: Cluster) -> bool:
        """Whether computing what is stored already runs this node, checks included."""
        stack, seen = [node], set()
        while stack:
            current = stack.pop()
            if current in self.stored:
                return True
            for user in self.users[current]:
                if user not in seen:
                    seen.add(user)
                    stack.append(user)
        return False

    def ordered(self) -> list[Cluster]:
        done: dict[Cluster, bool] = {}
        out: list[Cluster] = []

        def visit(cluster: Cluster) -> None:
            stack = [(cluster, iter(sorted(self.producers(cluster), key=self.clusters.index)))]
            done[cluster] = False
            while stack:
                top, producers = stack[-1]
                for producer in producers:
                    if producer not in done:
                        done[producer] = False
                        stack.append((producer, iter(sorted(self.producers(producer), key=self.clusters.index))))
                        break
                else:
                    out.append(top)
                    stack.pop()

        for cluster in self.clusters:
            if cluster not in done:
                visit(cluster)
        return out

    def producers(self, cluster: Cluster) -> set[Cluster]:
        return {self.cluster_of[leaf] for leaf in cluster.leaves if leaf in self.cluster_of} - {cluster}

    def kernel(self, cluster: Cluster, roots: list[Node], order: dict[Node, int]) -> Kernel:
        inputs: dict[Node, None] = {}
        seen: set[tuple[Node, Ix]] = set()
        space = cluster.space

        def compute(node: Node, position: Ix) -> None:
            if (node, position) in seen:
                return
            seen.add((node, position))
            if node.op.kind is Kind.SEGMENT:
                for source in node.inputs:
                    reads = Reads(self.is_leaf)
                    reads.follow(source, Index(source.shape, linear=self.flat(source.shape).full))
                    read_all(reads, source.shape)
            elif node.op.kind in OWN_KERNEL:
                inputs.update(dict.fromkeys(base(source) for source in node.inputs))
            else:
                read_all(self.reads(node, space.full if node.op.kind is Kind.REDUCE else position), cluster.shape)

        def read_all(reads: Reads, visited: Shape) -> None:
            for leaf, index in reads.leaves:
                if not leaf.is_parameter and self.cluster_of[leaf] is cluster:
                    compute(leaf, space.row if leaf in cluster.rows else space.full)
                elif leaf.is_parameter or leaf in self.stored or not self.recomputable(leaf, cluster, visited):
                    if not leaf.is_parameter:
                        self.stored.add(leaf)
                    inputs.setdefault(leaf)
                else:
                    compute(leaf, index.linear)

        for root in roots:
            compute(root, space.row if root in cluster.rows else space.full)
        nodes = sorted({node for node, _ in seen}, key=order.__getitem__)
        return Kernel(cluster, roots, list(inputs), nodes)

    def recomputable(self, leaf: Node, cluster: Cluster, visited: Shape) -> bool:
        """Whether another cluster's value should be computed here, where ``visited`` elements read it, instead of
        being kept in memory."""
        if leaf.op.kind in OWN_KERNEL or leaf.op.kind is Kind.REDUCE or leaf in self.cluster_of[leaf].rows:
            return False
        work = self.work(leaf)
        if work is None:
            return False
        if work <= CHEAP:
            return True
        return self.readers(leaf) == {cluster} and same_size(leaf.shape, visited)

    def readers(self, leaf: Node) -> set[Cluster]:
        """The clusters that read a value, through views."""
        found: set[Cluster] = set()
        stack = [leaf]
        while stack:
            for user in self.users[stack.pop()]:
                if user in self.computed:
                    found.add(self.cluster_of[user])
                else:
                    stack.append(user)
        return found

    def work(self, leaf: Node, depth: int = 0) -> int | None:
        """Instructions to compute one element from memory; None when it takes another kernel or is too deep."""
        if leaf.is_parameter or leaf in self.stored:
            return 1
        if depth > 12 or leaf.op.kind in OWN_KERNEL or leaf.op.kind is Kind.REDUCE:
            return None
        total = self.cost(leaf)
        for source in leaf.inputs:
            for beneath in self.leaves_beneath(source):
                part = self.work(beneath, depth + 1)
                if part is None:
                    return None
                total += part
                if total > 4096:
                    return None
        return total


def fuse(graph: Graph, target: Target, cost: Callable[[Node], int]) -> Fusion:
    """Partition a graph into kernels.  ``cost(node)`` estimates the instructions of one element of a node."""
    fuser = _Fuser(graph, target, cost)
    fuser.mark_computed()
    fuser.build()
    kernels = fuser.choose_stored()
    return Fusion(kernels, fuser.computed)


IsLeaf = Callable[[Node], bool]


def loops_of(kernel: Kernel, is_leaf: IsLeaf) -> Space:
    """The loops for a kernel: of the shapes that its nodes offer, the one whose accesses divide least, merged."""
    cluster = kernel.cluster
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
    """Where a kernel touches memory: every position, and for each input those at which it is read."""

    positions: dict[Ix, None] = field(default_factory=dict)
    of_input: dict[Node, set[Ix]] = field(default_factory=dict)


def accesses(kernel: Kernel, space: Space, is_leaf: IsLeaf) -> Accesses:
    cluster = kernel.cluster
    inside = set(kernel.nodes)
    found = Accesses()
    seen: set[tuple[Node, Ix]] = set()
    stack = [(root, space.row if root in cluster.rows else space.full) for root in kernel.roots]
    found.positions.update(dict.fromkeys(position for _, position in stack))
    while stack:
        node, position = stack.pop()
        if (node, position) in seen or node.op.kind in OWN_KERNEL:
            continue
        seen.add((node, position))
        reduces = node.op.kind is Kind.REDUCE
        shape = node.inputs[0].shape if reduces else node.shape
        reads = reads_of(node, Index(shape, linear=space.full if reduces else position), is_leaf)
        found.positions.update(dict.fromkeys(reads.positions))
        for leaf, index in reads.leaves:
            if leaf in inside:
                stack.append((leaf, space.row if leaf in cluster.rows else index.linear))
            else:
                found.positions.setdefault(index.linear)
                found.of_input.setdefault(leaf, set()).add(index.linear)
    return found


def read_in_place(kernel: Kernel, is_leaf: IsLeaf) -> set[Node]:
    """Inputs of which element i is read only to make element i of the results: a result may take their memory."""
    cluster = kernel.cluster
    if cluster.kind not in (Kind.ELEMENTWISE, Kind.CONTRACT) or cluster.space.has_reduction:
        return set()
    found = accesses(kernel, cluster.space, is_leaf)
    operands = {base(n) for n in cluster.anchor.inputs} if cluster.kind is Kind.CONTRACT else set()
    return {
        leaf for leaf, positions in found.of_input.items() if positions == {cluster.space.full} and leaf not in operands
    }
