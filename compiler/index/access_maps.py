"""Which elements a node reads: its op's own element rule, run with a recorder in place of an emitter.

Views are transparent: a read through broadcasts, transposes and reshapes is a read of the node beneath them, at the
index that the views make of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.index.index_expr import Index, IndexExpr, as_index, computed
from hybridflow.compiler.ir.attributes import node_attrs_key
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Literal, Node
from hybridflow.compiler.ops import Kind
from hybridflow.errors import CompileError

if TYPE_CHECKING:
    from hybridflow.compiler.program import Check


IsLeaf = Callable[[Node], bool]


class _Anything:
    """Stands for every emitter value and method while reads are recorded: the values do not matter."""

    def __getattr__(self, name: str) -> _Anything:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> _Anything:
        return self

    def __getitem__(self, item: object) -> _Anything:
        return self

    def __enter__(self) -> _Anything:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def _decided(self, *others: object) -> Any:
        raise CompileError("element", "an element rule decides by a value, which is not known before the program runs")

    __bool__ = __len__ = __iter__ = __int__ = __index__ = __float__ = __contains__ = _decided
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _decided
    __hash__ = None  # type: ignore[assignment]


ANYTHING = _Anything()


class Views:
    """What rows of views read, found once for all that are of the same ops: those of an unrolled loop's steps."""

    def __init__(self, is_leaf: IsLeaf) -> None:
        self.is_leaf = is_leaf
        self._rows: dict[Node, tuple[int, Node] | None] = {}
        self._numbers: dict[Hashable, int] = {}
        self._found: dict[Hashable, AccessMaps] = {}

    def row(self, view: Node) -> tuple[int, Node] | None:
        """A number that views of the same ops down to what they read share, and what this one reads: a leaf, or
        something that is created where it is read.  None where it reads something else."""
        if view in self._rows:
            return self._rows[view]
        source = view.inputs[0]
        beneath: Hashable = None
        result: tuple[int, Node] | None = None
        if self.is_leaf(source):
            result = 0, source
        elif source.op.kind is Kind.VIEW:
            result = self.row(source)
        elif not source.inputs:
            result, beneath = (0, source), (source.op.name, node_attrs_key(source))
        if result is not None:
            key = view.op.name, node_attrs_key(view), view.type, source.type, result[0], beneath
            result = self._numbers.setdefault(key, len(self._numbers) + 1), result[1]
        self._rows[view] = result
        return result

    def reads(self, view: Node, index: Index) -> tuple[Node, AccessMaps] | None:
        """What is read for the element of a view at ``index``: the node beneath, in place of the leaves' nodes, and the
        reads; None where that is not one node."""
        row = self.row(view)
        if row is None:
            return None
        key = row[0], index.key
        maps = self._found.get(key)
        if maps is None:
            maps = self._found[key] = AccessMaps(self.is_leaf)
            view.op.element(_Recorder(maps, view), index, **view.attrs)
        return row[1], maps


class AccessMaps:
    """``leaves``: (node, index) of each read of a leaf.  ``positions``: index expressions used as numbers."""

    def __init__(self, is_leaf: IsLeaf, views: Views | None = None) -> None:
        self.is_leaf, self.views = is_leaf, views
        self.leaves: list[tuple[Node, Index]] = []
        self.positions: list[IndexExpr] = []

    def follow(self, node: Node, index: Index) -> None:
        if self.is_leaf(node):
            self.leaves.append((node, index))
        elif node.op.kind is Kind.ELEMENTWISE:
            for source in node.inputs:
                self.follow(source, index)
        else:
            self.element(node, index)

    def element(self, node: Node, index: Index) -> None:
        """Note what the node's own rule reads for its element at ``index``."""
        known = self.views.reads(node, index) if self.views is not None and node.op.kind is Kind.VIEW else None
        if known is None:
            node.op.element(_Recorder(self, node), index, **node.attrs)
            return
        leaf, reads = known
        self.leaves += [(leaf, at) for _, at in reads.leaves]
        self.positions += reads.positions


class SymbolicSource:
    """The element-source interface (see ``ops.op_table.OpDef.element``) where nothing is computed: indices that are
    data are unknown ones in range."""

    e = ANYTHING

    def __init__(self, node: Node) -> None:
        self.types = tuple(n.type for n in node.inputs)
        self.out = node.type

    def linear(self, index: Index) -> IndexExpr:
        return index.linear

    def begin(self, ix: IndexExpr, multiple: int) -> None:
        """There are no lanes here."""

    def sure(self, value: Any, extent: Extent) -> IndexExpr:
        return computed(value, extent)

    def repeat_while(
        self, start: Sequence[Any], iteration: Callable[..., Sequence[Any]], again: Callable[..., Any]
    ) -> Sequence[Any]:
        return iteration(*start)

    def fold(
        self,
        first: Any,
        last: Any,
        extent: Any,
        of: Any,
        start: Any,
        add: Callable[..., Any],
        by_position: bool = False,
    ) -> Any:
        return add(computed(first, extent), start)

    def clamp(self, value: Any, extent: Extent) -> IndexExpr:
        return computed(value, extent)

    def check_index(self, value: Any, extent: Extent, check: Check) -> IndexExpr:
        return computed(value, extent)


class _Recorder(SymbolicSource):
    """Notes what is read."""

    def __init__(self, reads: AccessMaps, node: Node) -> None:
        super().__init__(node)
        self.reads, self.node = reads, node

    def load(self, k: int, index: Index | tuple[IndexExpr | int, ...]) -> _Anything:
        source = self.node.inputs[k]
        if not isinstance(index, Index):
            index = Index(source.shape, axes=tuple(as_index(ix) for ix in index))
        self.reads.follow(source, index)
        return ANYTHING

    def load_linear(self, k: int, position: IndexExpr) -> _Anything:
        source = self.node.inputs[k]
        self.reads.follow(source, Index(source.shape, linear=position))
        return ANYTHING

    def inside(
        self, k: int, index: tuple[IndexExpr, ...], where: Sequence[tuple[IndexExpr, Extent]], otherwise: object
    ) -> _Anything:
        self.reads.positions += [ix for ix, _ in where]
        return self.load(k, index)

    def value(self, ix: IndexExpr | Extent) -> Any:
        self.reads.positions.append(as_index(ix))
        return ANYTHING

    def literal(self, value: Literal, index: Index) -> _Anything:
        if value.type.shape:
            self.reads.positions.append(index.linear)
        return ANYTHING


def access_maps_of(node: Node, index: Index, is_leaf: IsLeaf, views: Views | None = None) -> AccessMaps:
    """What a compute node reads to make its element at ``index`` (for a reduction: of one element at ``index`` of its
    input).  ``views`` keeps what is found of views."""
    reads = AccessMaps(is_leaf, views)
    kind = node.op.kind
    if kind in (Kind.ELEMENTWISE, Kind.REDUCE, Kind.PROJECT):
        for source in node.inputs:
            reads.follow(source, index)
    else:
        reads.element(node, index)
    return reads
