"""Clustering: which nodes share a kernel.

Nodes are taken in program order.  Each joins the cluster of its producers when that cluster's loops visit the elements
that the node needs in the same order.  Else it opens a cluster. Orders are compared as index expressions: reshapes cost
nothing, and a row's statistic may be used again across its row.  Two clusters of one space merge when a node needs
both.
"""

from __future__ import annotations

import functools
import itertools

from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.index.access_maps import AccessMaps
from hybridflow.compiler.index.index_expr import IndexExpr
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.graph import Effect, Graph, Node
from hybridflow.compiler.ir.types import Shape, is_static, same_size, static_size
from hybridflow.compiler.loops.access_analysis import AccessAnalysis, visited_shape
from hybridflow.compiler.loops.kernel import DEDICATED_KERNEL, PRODUCTS, Cluster, Fusion
from hybridflow.compiler.loops.materialization import CostModel, ReadCounts, checked_before_effects, choose_materialized
from hybridflow.compiler.loops.topological_order import Order
from hybridflow.compiler.loops.tuning import ACCUMULATORS, MAX_MEMBERS, MAX_REDUCTIONS, MAX_WORK, RECENT, SHORT_LOOP
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.evaluation_order import TERMS
from hybridflow.compiler.target import Target


class _Clustering:
    def __init__(self, reader: AccessAnalysis, target: Target, cost: CostModel) -> None:
        self.reader, self.target, self.cost = reader, target, cost
        self.cluster_of: dict[Node, Cluster] = {}
        self.order = Order()
        self.checked: list[Node] = []  # what may raise, so far: no later effect happens before it

    def place(self, node: Node) -> None:
        kind = node.op.kind
        shape = visited_shape(node)
        if kind in DEDICATED_KERNEL:
            self.open_cluster(
                node, Cluster(kind, self.reader.linear(shape), shape, node, [], why="has a kernel of its own")
            )
            if node.effect is Effect.ORDERED:
                self.order.need(self.cluster_of[node], {self.cluster_of[n] for n in self.checked})
                self.checked.clear()
            return
        if kind is Kind.PROJECT:  # made by the loops, or the kernel, that make the node with the results
            home = self.cluster_of[node.inputs[0]]
            if node.inputs[0] in home.rows:
                home.rows.add(node)
            self.add_to_cluster(node, home)
            return
        why = ""
        for cluster in self.candidates(self.reader.own_reads(node)):
            level, refusal = self.fusion_level(node, cluster, shape)
            if level is not None:
                self.fuse_into(node, cluster, level, shape)
                return
            why = why or refusal
        space = self.reader.reduction(shape, node.attrs["axes"]) if kind is Kind.REDUCE else self.reader.linear(shape)
        self.open_cluster(node, Cluster(Kind.ELEMENTWISE, space, shape, node, [], why=why))

    def open_cluster(self, node: Node, cluster: Cluster) -> None:
        if node.op.kind is Kind.REDUCE:
            cluster.rows.add(node)
        self.order.append(cluster, ())
        self.add_to_cluster(node, cluster)

    def add_to_cluster(self, node: Node, cluster: Cluster) -> None:
        cluster.members.append(node)
        cluster.work += self.cost(node)
        cluster.reductions += node.op.kind is Kind.REDUCE
        self.cluster_of[node] = cluster
        if node.op.kind in DEDICATED_KERNEL:
            leaves = {leaf for source in node.inputs for leaf in self.reader.leaves_beneath(source)}
            cluster.elsewhere |= leaves  # all of an operand, for any one element: it must be there beforehand
        else:
            linear = self.reader.linear(visited_shape(node)).full
            reads = self.reader.own_reads(node).leaves
            leaves = {leaf for leaf, _ in reads}
            cluster.elsewhere.update(
                [leaf for leaf, index in reads if index.linear is not linear and index.linear != linear]
            )
        cluster.leaves |= leaves
        self.order.need(cluster, {self.cluster_of[leaf] for leaf in leaves if leaf in self.cluster_of})

    def candidates(self, reads: AccessMaps) -> list[Cluster]:
        """Clusters of the producers, latest first; then those that read the same tensors (siblings)."""
        homes = (self.cluster_of.get(leaf) for leaf, _ in reversed(reads.leaves))
        result = list(dict.fromkeys(home for home in homes if home is not None))
        if not result:
            shared = {leaf for leaf, _ in reads.leaves if leaf.is_parameter}
            recent = itertools.islice(reversed(self.order), RECENT)
            result = [c for c in recent if c.kind is Kind.ELEMENTWISE and shared & c.leaves]
        return result

    def fusion_level(self, node: Node, cluster: Cluster, shape: Shape) -> tuple[str | None, str]:
        """The level ("full" or "row") at which the node may join, or None and why not."""
        is_reduce = node.op.kind is Kind.REDUCE
        if cluster.kind in PRODUCTS:
            if is_reduce:
                return None, "a product takes in no reduction behind it"
        elif cluster.kind is not Kind.ELEMENTWISE:
            return None, f"{cluster.anchor.op.name} has a kernel of its own"
        if self.too_large(len(cluster.members) + 1, cluster.work + self.cost(node), cluster.reductions + is_reduce):
            return None, "the kernel before it is as large as kernels get"
        space = cluster.space
        level, refusal = None, "it has another shape than the kernel before it"
        if same_size(shape, cluster.shape):
            if is_reduce:
                reduced = self.reader.reduction(shape, node.attrs["axes"])
                if not space.has_reduction:
                    space = reduced  # the cluster will take the reduction's loops
                elif spaces.signature(reduced) != spaces.signature(space):
                    return None, "it reduces other axes than the kernel before it"
            level, refusal = self.reads_fit(node, cluster, space, space.full, "full")
        may_be_row = level is None and not is_reduce and space.has_reduction
        if may_be_row and same_size(shape, tuple([v.extent for v in space.kept])):
            level, refusal = self.reads_fit(node, cluster, space, space.row, "row")
        return level, refusal

    def too_large(self, members: int, work: int, reductions: int) -> bool:
        return members > MAX_MEMBERS or work > MAX_WORK or reductions > MAX_REDUCTIONS

    def reads_fit(
        self, node: Node, cluster: Cluster, space: Space, position: IndexExpr, level: str
    ) -> tuple[str | None, str]:
        others: set[Cluster] = set()
        uses_row = False
        for leaf, index in self.reader.reads(node, position).leaves:
            home = self.cluster_of.get(leaf)
            if home is cluster:
                row = leaf in cluster.rows
                if index.linear != (space.row if row else space.full):
                    return None, f"it reads {leaf.op.name} in another order"
                if row and leaf.shape != () and not space.has_reduction:
                    return None, "it has another shape than the kernel before it"
                if level == "row" and not row:
                    return None, "it needs a whole row first"
                uses_row |= row and level == "full"
            elif home is not None:
                others.add(home)
        if uses_row and not self.row_stays_near(space):
            return None, "a row is too long to stay in cache"
        if uses_row and self.columns_are_few(space):
            return None, "columns are too few for vectors of them"
        if self.order.depends(others, cluster):
            return None, "another kernel has to run in between"
        return level, ""

    def row_stays_near(self, space: Space) -> bool:
        extents = tuple(v.extent for v in space.folded)
        return not is_static(extents) or static_size(extents) * 4 <= self.target.l2

    def columns_are_few(self, space: Space) -> bool:
        """Whether long columns fill no whole vectors: all elements of a few neighbouring rows do, where nothing is
        folded (``schedule.Schedule.flat``)."""
        if self.target.kind != "cpu" or space.reduced[-1] or not is_static(tuple(v.extent for v in space.vars)):
            return False
        columns, lanes = static_size((space.vars[-1].extent,)), self.target.lanes(32)
        terms = static_size(tuple(v.extent for v in space.folded))
        return columns <= SHORT_LOOP and columns % lanes != 0 and terms > ACCUMULATORS * TERMS

    def fuse_into(self, node: Node, cluster: Cluster, level: str, shape: Shape) -> None:
        if node.op.kind is Kind.REDUCE:
            if not cluster.space.has_reduction:
                cluster.space, cluster.shape = self.reader.reduction(shape, node.attrs["axes"]), shape
            level = "row"
        if level == "row":
            cluster.rows.add(node)
        self.add_to_cluster(node, cluster)
        self.absorb_producers(node, cluster)

    def absorb_producers(self, node: Node, cluster: Cluster) -> None:
        """Merge clusters without reductions of their own that this node reads in the cluster's order."""
        if node in cluster.rows and node.op.kind is not Kind.REDUCE:
            return
        for leaf, index in self.reader.reads(node, cluster.space.full).leaves:
            other = self.cluster_of.get(leaf)
            if other is None or other is cluster or other.kind is not Kind.ELEMENTWISE:
                continue
            if other.space.has_reduction or index.linear != cluster.space.full:
                continue
            if not same_size(other.shape, cluster.shape):  # a slice of one element reads at 0, as loops over one do
                continue
            if self.too_large(len(other.members) + len(cluster.members), other.work + cluster.work, cluster.reductions):
                continue
            # What some member reads elsewhere would be computed there again, with all that it needs.
            if not cluster.elsewhere.isdisjoint(other.members):
                continue
            if not self.order.depends_through_another(cluster, other):
                self.merge_clusters(other, cluster)

    def merge_clusters(self, other: Cluster, cluster: Cluster) -> None:
        cluster.members += other.members
        cluster.leaves |= other.leaves
        cluster.elsewhere |= other.elsewhere
        cluster.work += other.work
        for member in other.members:
            self.cluster_of[member] = cluster
        self.order.merge(other, cluster)


def fuse(graph: Graph, target: Target, cost: CostModel, times: ReadCounts) -> Fusion:
    """Partition a graph into kernels.  ``cost(node)`` estimates the instructions of one element of a node,
    ``times(node)`` how often a node with a kernel of its own comes to each element of its inputs."""
    reader = AccessAnalysis(graph)
    cost = functools.cache(cost)
    clustering = _Clustering(reader, target, cost)
    checked = checked_before_effects(graph)
    for node in graph.nodes:
        if node in reader.computed:
            clustering.place(node)
            if node in checked:
                clustering.checked.append(node)
    clustering.order.check()
    masked = target.masked or target.kind == "cuda"
    kernels = choose_materialized(reader, list(clustering.order), clustering.cluster_of, cost, times, masked)
    return Fusion(kernels, reader.computed)
