"""What the nodes of one graph read through views, and the spaces over their shapes; each found once."""

from __future__ import annotations

from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.index.access_maps import AccessMaps, Views, access_maps_of
from hybridflow.compiler.index.index_expr import Index, IndexExpr, variable
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import Shape, is_static, product, static_size
from hybridflow.compiler.loops.kernel import READS_LINEAR, READS_MEMORY, base
from hybridflow.compiler.loops.tuning import MAX_DIVISIONS, MAX_VIEWS
from hybridflow.compiler.ops import Kind


class AccessAnalysis:
    """``computed`` are the nodes that are leaves of index maps: all but views, and the views that need a buffer.
    ``stored`` are the nodes that need a buffer whatever is fused."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.computed: set[Node] = set()
        self.stored: set[Node] = set()
        self._leaves: set[Node] = set(graph.inputs)
        self.is_leaf = self._leaves.__contains__
        self.views = Views(self.is_leaf)
        self._axes: dict[Shape, Index] = {}
        self._flat: dict[Shape, Space] = {}
        self._reductions: dict[tuple, Space] = {}
        self._reads: dict[tuple[Node, IndexExpr], AccessMaps] = {}
        self._mark()

    def _mark(self) -> None:
        must_store = {base(n) for n in self.graph.results}
        for node in self.graph.nodes:
            if node.op.kind in READS_MEMORY:
                must_store.update(base(n) for n in node.inputs)
            elif node.op.kind in READS_LINEAR:
                must_store.update(base(n) for n in node.inputs if not self._reads_flat(n))
            elif node.op.kind is Kind.PROJECT and node.inputs[0].op.kind in READS_MEMORY | READS_LINEAR:
                must_store.add(node)  # a kernel of its own knows memory only
        views: dict[Node, int] = {}  # how many views lie between a view and a leaf, itself included
        for node in self.graph.nodes:
            kind = node.op.kind
            if kind is not Kind.VIEW and not (kind is Kind.CREATE and not node.inputs):
                self._compute(node)
                continue
            if node in must_store:
                self._compute(node)
            elif kind is Kind.VIEW:
                views[node] = 1 + views.get(node.inputs[0], 0)
                # A reshape has no buffer of its own; the next view may have one.
                if not node.op.shares_memory and (views[node] > MAX_VIEWS or self._divisions(node) > MAX_DIVISIONS):
                    del views[node]
                    must_store.add(node)
                    self._compute(node)
        self.stored = {n for n in must_store if not n.is_parameter}
        for node in self.graph.nodes:
            if node.op.kind in (
                Kind.GATHER,
                Kind.SEARCH,
                Kind.SPARSE,
            ):  # data that is read at random must lie in memory
                for source in node.inputs if node.op.kind is Kind.SPARSE else node.inputs[:1]:
                    self.stored.update(leaf for leaf in self.leaves_beneath(source) if not leaf.is_parameter)

    def _compute(self, node: Node) -> None:
        self.computed.add(node)
        self._leaves.add(node)

    def _reads_flat(self, node: Node) -> bool:
        """Whether the views of a node walk what is beneath them without dividing row-major positions."""
        reads = AccessMaps(lambda n: n.is_parameter or not (n.op.kind is Kind.VIEW or n.op.kind is Kind.CREATE))
        reads.follow(node, Index(node.shape, linear=spaces.over((product(node.shape),)).full))
        return all(ix.is_affine for ix in (*(index.linear for _, index in reads.leaves), *reads.positions))

    def _divisions(self, view: Node) -> int:
        """How deep divisions are nested in the position at which a view's elements lie in the leaf beneath it."""
        if view.shape not in self._axes:
            axes = [variable(v) for v in spaces.over(view.shape).vars]
            self._axes[view.shape] = Index(view.shape, axes=axes)
        reads = access_maps_of(view, self._axes[view.shape], self.is_leaf, self.views)
        return max((leaf_index.linear.divisions for _, leaf_index in reads.leaves), default=0)

    def leaves_beneath(self, node: Node) -> list[Node]:
        if self.is_leaf(node):
            return [node]
        result: list[Node] = []
        for source in node.inputs:
            result += self.leaves_beneath(source)
        return result

    def linear(self, shape: Shape) -> Space:
        result = self._flat.get(shape)
        if result is None:  # one space for all shapes of the same size
            key = (static_size(shape),) if is_static(shape) else shape
            result = self._flat[shape] = self._flat.setdefault(key, spaces.flat(shape))
        return result

    def reduction(self, shape: Shape, axes: tuple[int, ...]) -> Space:
        key = (shape, axes)
        if key not in self._reductions:
            self._reductions[key] = spaces.reduction(shape, axes)
        return self._reductions[key]

    def reads(self, node: Node, position: IndexExpr) -> AccessMaps:
        """What ``node`` reads when the loops are at ``position`` of its space."""
        key = node, position
        result = self._reads.get(key)
        if result is None:
            index = Index(visited_shape(node), linear=position)
            result = self._reads[key] = access_maps_of(node, index, self.is_leaf, self.views)
        return result

    def own_reads(self, node: Node) -> AccessMaps:
        """What a node reads at the position of its own element."""
        return self.reads(node, self.linear(visited_shape(node)).full)


def visited_shape(node: Node) -> Shape:
    """The shape that loops over a node walk: for a reduction that of its input; none around several results."""
    if node.op.kind is Kind.REDUCE:
        return node.inputs[0].shape
    return () if isinstance(node.type, TupleType) else node.shape
