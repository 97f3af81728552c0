"""Which values lie in memory: from the results backwards, every value that a kernel needs from another cluster is
either computed again there, when that is cheap or moves no work, or given a buffer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.index.access_maps import AccessMaps
from hybridflow.compiler.index.index_expr import Index, IndexExpr
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.index.permutations import is_permutation
from hybridflow.compiler.ir.graph import Effect, Graph, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import Shape, TensorType, is_static, product, same_size, static_size
from hybridflow.compiler.loops.access_analysis import AccessAnalysis
from hybridflow.compiler.loops.kernel import (
    DEDICATED_KERNEL,
    PRODUCTS,
    READS_LINEAR,
    READS_MEMORY,
    Cluster,
    Kernel,
    base,
)
from hybridflow.compiler.loops.tuning import (
    CACHE_LINE,
    CHEAP,
    GATHERED_FRACTION,
    MAX_DEPTH,
    MAX_MOVED,
    MAX_RECOMPUTED,
    NEAR,
)
from hybridflow.compiler.ops import Kind

CostModel = Callable[[Node], int]
ReadCounts = Callable[[Node], Sequence["int | None"]]
"""How often the kernel of a node comes to each element of each input, None where it may not come to any."""


class _Visit(NamedTuple):
    """A place where a kernel reads a value: the position, the loops around it with the shape that they walk, and which
    of several loop nests (the inputs of a concat have one each).  ``times`` says how often a kernel of its own comes to
    an element there, None that it may not come to any; ``flat`` that positions are not to be divided; ``partly`` that
    there are turns in which the position is none."""

    position: IndexExpr
    shape: Shape
    space: Space
    nest: int = 0
    times: int | None = 1
    linear: bool = False
    partly: bool = False


class _Work(NamedTuple):
    """What it takes to compute one element from memory: instructions, and how deep rules call each other."""

    instructions: int
    depth: int


def covers(visit: _Visit, node: Node) -> bool:
    """Whether each element of the node is sure to be read there, none left out."""
    space = visit.space
    if visit.times is None or visit.partly:
        return False
    if same_size(node.shape, visit.shape) and is_permutation(visit.position, space):
        return True
    kept, folded = (tuple(v.extent for v in loops) for loops in (space.kept, space.folded))
    turning = is_static(folded) and static_size(folded) > 0  # without elements, a row may be passed over
    return visit.position == space.row and same_size(node.shape, kept) and turning


def stays_near(leaf: Node, position: IndexExpr, space: Space) -> bool:
    """Whether a walk in row-major order comes back to a line of memory, if it does, before many others."""
    vars = spaces.merged(space, [position]).vars
    if not vars or position.coefficient(vars[-1]) in (0, 1):
        return True
    lines = 1  # that the loops within take
    for var in reversed(vars):
        stride = position.coefficient(var)
        if stride is None or not isinstance(var.extent, int):
            return False
        if abs(stride) * leaf.dtype.itemsize < CACHE_LINE and lines > NEAR:
            return False
        if stride:
            lines *= var.extent
    return True


def choose_materialized(
    reader: AccessAnalysis,
    clusters: Sequence[Cluster],
    cluster_of: dict[Node, Cluster],
    cost: CostModel,
    times: ReadCounts,
    masked: bool,
) -> list[Kernel]:
    """The kernels of ``clusters``, which are given in an order in which they can run.  ``masked``: an element that may
    not be there is read as quickly as any other."""
    return _Materialization(reader, cluster_of, cost, times, masked).kernels(clusters)


def checked_before_effects(graph: Graph) -> set[Node]:
    """The nodes that may raise and stand above an effect, which happens only if they do not: they are computed where
    they stand, not somewhere in the kernels of their readers."""
    result: set[Node] = set()
    raising: list[Node] = []
    if graph.is_ordered:
        for node in graph.nodes:
            if node.effect is Effect.ORDERED:
                result.update(raising)
            elif node.may_raise:
                raising.append(node)
    return result


def _read_before_scatters(reader: AccessAnalysis) -> set[Node]:
    """What is scattered into an array, or says where, and is made of elements of that array, and the few elements that
    are looked up there: computed before the array's first element is written, which may then be where the old one was.
    """
    result: set[Node] = set()
    copied_anywhere: set[Node] = set()
    for node in reader.graph.nodes:
        if node.op.kind is Kind.SCATTER:
            copied = set(reader.leaves_beneath(node.inputs[0]))
            copied_anywhere |= copied
            for source in node.inputs[1:]:
                leaves = [leaf for leaf in reader.leaves_beneath(source) if not leaf.is_parameter]
                result.update(leaf for leaf in leaves if leaf not in copied and _is_made_of(leaf, copied, reader))
    for node in reader.graph.nodes if copied_anywhere else ():
        looks_up = node.op.kind is Kind.GATHER and _is_part(node.type, node.inputs[0].type)
        if looks_up and not copied_anywhere.isdisjoint(reader.leaves_beneath(node.inputs[0])):
            result.add(node)
    return result


def _is_part(type: TensorType, whole: TensorType) -> bool:
    """Whether a value has far fewer elements than another one."""
    return type.is_static and (not whole.is_static or GATHERED_FRACTION * type.size <= whole.size)


def _is_made_of(node: Node, sources: set[Node], reader: AccessAnalysis) -> bool:
    """Whether a value is made of one of these, with no more between than may be computed where it is read."""
    level = {node}
    for _ in range(MAX_DEPTH):
        level = {leaf for node in level for source in node.inputs for leaf in reader.leaves_beneath(source)}
        if not level.isdisjoint(sources):
            return True
        level = {leaf for leaf in level if not leaf.is_parameter and leaf.op.kind not in DEDICATED_KERNEL}
    return False


class _Materialization:
    def __init__(
        self, reader: AccessAnalysis, cluster_of: dict[Node, Cluster], cost: CostModel, times: ReadCounts, masked: bool
    ) -> None:
        self.reader, self.cluster_of, self.cost, self.times, self.masked = reader, cluster_of, cost, times, masked
        self.stored = set(reader.stored) | checked_before_effects(reader.graph) | _read_before_scatters(reader)
        self.users = reader.graph.users()
        self.number = {node: k for k, node in enumerate(reader.graph.nodes)}
        self.moved_to: dict[Node, Cluster] = {}  # of nodes that no kernel but this one computes
        self.work_of: dict[Node, _Work | None] = {}
        stored = set(self.stored)
        self._find_sure()
        if sources := self._common_sources():
            self.stored = stored | sources
            self._find_sure()

    def _find_sure(self) -> None:
        for node in self.reader.graph.nodes:
            if node in self.reader.computed:
                self.work_of[node] = self.work(node)
                if self.is_sure(node):
                    self.stored.add(node)

    def _common_sources(self) -> set[Node]:
        """Values that no other kernel reads, but from each of which several are cheaply made that others do read: one
        array then serves for those, as x does for x / 2 and x * x."""
        made_of: dict[Node, list[Node]] = {}  # what is wanted, by what it is cheaply made of
        for node, work in self.work_of.items():
            if work is None and node not in self.stored and self._is_wanted(node):
                for source in self._cheap_sources(node):
                    made_of.setdefault(source, []).append(node)
        result: set[Node] = set()
        served: set[Node] = set()
        for source in sorted(made_of, key=lambda n: (len(made_of[n]), self.number[n]), reverse=True):
            left = [node for node in made_of[source] if node not in served]
            if len(left) > 1:
                result.add(source)
                served.update(left)
        return result

    def _is_wanted(self, node: Node) -> bool:
        """Whether other kernels read a value, and all of them element by element."""
        cluster = self.cluster_of[node]
        if node.op.kind is not Kind.ELEMENTWISE or node in cluster.rows or self.readers(node) <= {cluster}:
            return False
        return all(user.op.kind in (Kind.ELEMENTWISE, Kind.REDUCE) for user in self.users[node])

    def _cheap_sources(self, node: Node) -> list[Node]:
        """The values of the same kernel and size of which a value can be made where it is read.  What nobody else needs
        on the way only moves there, and costs nothing."""
        cluster, result, chain = self.cluster_of[node], list[Node](), {node}
        moves, repeated = len(self.readers(node)) == 1, 0
        while node.op.kind is Kind.ELEMENTWISE and len(chain) <= MAX_DEPTH:
            repeated += 0 if moves else self.cost(node)
            leaves = [leaf for source in node.inputs for leaf in self.reader.leaves_beneath(source)]
            dear = {leaf for leaf in leaves if not self._is_near(leaf)}
            if repeated > CHEAP or len(dear) != 1:
                break
            (node,) = dear
            if self.cluster_of[node] is not cluster or node in cluster.rows or not same_size(node.shape, cluster.shape):
                break
            result.append(node)
            chain.add(node)
            moves = moves and chain.issuperset(self.users[node])
        return result

    def _is_near(self, leaf: Node) -> bool:
        """Whether a value lies in memory anyway, or is little more work than one that does."""
        work = None if leaf.is_parameter or leaf in self.stored else self.work_of[leaf]
        return leaf.is_parameter or leaf in self.stored or (work is not None and work.instructions <= CHEAP)

    def is_sure(self, node: Node) -> bool:
        """Whether a value is sure to be stored: another kernel reads it, and to compute it there is too much.  So what
        is cheaply made of it need not be stored as well."""
        if node.op.kind is Kind.PROJECT or isinstance(node.type, TupleType):
            return False
        readers = self.readers(node)
        if readers <= {self.cluster_of[node]}:
            return False
        work = self.work_of[node]
        if work is None:
            return node.op.kind in PRODUCTS
        return work.instructions > CHEAP and len(readers) > 1 and node.op.kind is Kind.ELEMENTWISE

    def kernels(self, clusters: Sequence[Cluster]) -> list[Kernel]:
        result: list[Kernel] = []
        for cluster in reversed(clusters):  # so that every reader is seen before what it reads
            cluster.members.sort(key=self.number.__getitem__)
            self.stored.update(
                m for m in cluster.members if m.effect is not Effect.NONE and not self.reaches_materialized(m)
            )
            roots = [m for m in cluster.members if m in self.stored]
            if roots:
                result.append(self.kernel(cluster, roots))
        result.reverse()
        return result

    def reaches_materialized(self, node: Node) -> bool:
        """Whether something that is stored needs this node: whoever computes that computes all of this node, too, or
        has it stored (see ``recomputable``)."""
        stack, seen = [node], {node}
        while stack:
            current = stack.pop()
            if current in self.stored:
                return True
            for user in self.users[current]:
                if user not in seen:
                    seen.add(user)
                    stack.append(user)
        return False

    def kernel(self, cluster: Cluster, roots: list[Node]) -> Kernel:
        """Nodes are taken from the last to the first: when the turn comes to one, all that reads it here is known."""
        inputs: dict[Node, None] = {}
        computed: list[Node] = []
        visits: dict[Node, dict[_Visit, None]] = {}
        latest: list[tuple[int, Node]] = []
        again = 0  # instructions of what is computed again

        def visit(node: Node, place: _Visit) -> None:
            if node.is_parameter:
                inputs.setdefault(node)
                return
            if node not in visits:
                visits[node] = {}
                heapq.heappush(latest, (-self.number[node], node))
            visits[node].setdefault(place)

        def visit_all(reads: AccessMaps, place: _Visit) -> None:
            for leaf, index in reads.leaves:
                at = index.linear
                visit(leaf, place if at is place.position else place._replace(position=at))

        for root in roots:
            visit(root, self.own_visit(root, cluster))
        while latest:
            _, node = heapq.heappop(latest)
            if self.cluster_of[node] is cluster:
                own_visit = self.own_visit(node, cluster)
                if node.op.kind in READS_MEMORY:
                    inputs.update(dict.fromkeys(base(source) for source in node.inputs))  # see Reader
                elif node.op.kind in DEDICATED_KERNEL:
                    times = self.times(node)
                    flat = node.op.kind in READS_LINEAR
                    for nest, source in enumerate(node.inputs):
                        reads = AccessMaps(self.reader.is_leaf, self.reader.views)
                        space = spaces.over((product(source.shape),)) if flat else self.reader.linear(source.shape)
                        reads.follow(source, Index(source.shape, linear=space.full))
                        visit_all(reads, _Visit(space.full, source.shape, space, nest, times[nest], flat))
                else:
                    visit_all(self.reader.reads(node, own_visit.position), own_visit)
            elif (
                node in self.stored
                or again > MAX_RECOMPUTED
                or not self.recomputable(node, cluster, list(visits[node]))
            ):
                self.stored.add(node)
                inputs.setdefault(node)
                continue
            else:
                again += self.cost(node) * len(visits[node])
                for place in visits[node]:
                    if node.op.kind is Kind.SEGMENT and not place.partly:
                        place = place._replace(partly=True)
                    visit_all(self.reader.reads(node, place.position), place)
            computed.append(node)
        return Kernel(cluster, roots, list(inputs), computed[::-1])

    def own_visit(self, node: Node, cluster: Cluster) -> _Visit:
        """Where a kernel computes its cluster's own nodes: reductions walk the full space, their results the rows."""
        in_rows = node in cluster.rows and node.op.kind is not Kind.REDUCE
        space = cluster.space
        return _Visit(space.row if in_rows else space.full, cluster.shape, space)

    def recomputable(self, leaf: Node, cluster: Cluster, visits: Sequence[_Visit]) -> bool:
        """Whether another cluster's value should be computed where it is read here, instead of being kept in memory."""
        if leaf in self.cluster_of[leaf].rows:
            return False
        if leaf.op.kind is Kind.SEGMENT and (cluster.kind is not Kind.ELEMENTWISE or cluster.space.has_reduction):
            return False  # other kernels walk, or move, what they read without asking whether it is there
        if leaf.op.kind is Kind.GATHER and any(place.partly for place in visits):
            return False
        if leaf.may_raise and not any(covers(place, leaf) for place in visits):
            return False  # what it raises elsewhere would be lost
        if leaf.may_raise and cluster.kind is Kind.SCATTER:
            return False  # which fails before it writes anything, or not at all (see ``checks_first``)
        needed: set[Node] = set()
        work = self.work(leaf, needed)
        if work is None or any(place.linear and self.divides(leaf, place.position) for place in visits):
            return False
        moves = self.readers(leaf) == {cluster}
        times = max(place.times or 1 for place in visits)
        once = len(visits) == times == 1 and same_size(leaf.shape, visits[0].shape)
        if work.instructions * times > CHEAP and not (moves and (once or self.in_parts(leaf, visits, times))):
            return False
        if moves:
            self.moved_to[leaf] = cluster
        self.stored |= needed
        return True

    def in_parts(self, leaf: Node, visits: Sequence[_Visit], times: int) -> bool:
        """Whether a value is read at several places, which have no more elements together than it has: slices of
        coordinates, say.  Computing it there is no more work."""
        shapes = [place.shape for place in visits]
        if times > 1 or not all(is_static(shape) for shape in (leaf.shape, *shapes)):
            return False
        return sum(map(static_size, shapes)) <= static_size(leaf.shape)

    def read_by_index(self, node: Node) -> bool:
        """Whether elements of a padded value are quickly found where they are read: neighbours lie side by side, or
        what else lies in the lines of memory that a row takes is read while they are near."""
        if not self.masked or node.op.element is None:
            return False
        source = node.inputs[0]
        space = spaces.over(source.shape)
        reads = AccessMaps(self.reader.is_leaf)
        reads.follow(source, Index(source.shape, linear=space.full))
        return all(stays_near(leaf, index.linear, space) for leaf, index in reads.leaves)

    def divides(self, leaf: Node, position: IndexExpr) -> bool:
        """Whether an element at a position is made of others whose positions take a division, or a look-up."""
        reads = self.reader.reads(leaf, position)
        return not all(ix.is_affine for ix in (*(index.linear for _, index in reads.leaves), *reads.positions))

    def readers(self, leaf: Node) -> set[Cluster]:
        """The clusters whose kernels read a value, through views."""
        result: set[Cluster] = set()
        stack = [leaf]
        while stack:
            for user in self.users[stack.pop()]:
                if user in self.reader.computed:
                    result.add(self.moved_to.get(user) or self.cluster_of[user])
                else:
                    stack.append(user)
        return result

    def work(self, node: Node, needed: set[Node] | None = None) -> _Work | None:
        """The work of one element from memory; None where that takes another kernel, or too much.  What it takes from
        kernels other than the node's own has to be in memory then: ``needed`` gets those values."""
        by_index = node.op.kind is Kind.SEGMENT and self.read_by_index(node)
        if node.op.kind is Kind.REDUCE or (node.op.kind in DEDICATED_KERNEL and not by_index):
            return None
        instructions, depth = self.cost(node), 0
        for source in node.inputs:
            for leaf in self.reader.leaves_beneath(source):
                beneath = _Work(1, 0) if leaf.is_parameter or leaf in self.stored else self.work_of[leaf]
                if by_index and (beneath is None or beneath.instructions > CHEAP):
                    beneath = _Work(1, 0)  # it has another shape, and so will not move: see ``recomputable``
                if beneath is None and self.cluster_of[leaf] is not self.cluster_of[node]:
                    beneath = _Work(1, 0)
                    if needed is not None:
                        needed.add(leaf)
                if beneath is None:
                    return None
                instructions, depth = instructions + beneath.instructions, max(depth, beneath.depth)
        return None if instructions > MAX_MOVED or depth >= MAX_DEPTH else _Work(instructions, depth + 1)
