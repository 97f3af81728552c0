"""Attention without its scores: products whose elements are only looked at row by row are made a few rows at a time.

``softmax(scale(q @ k) + mask) @ v``, however it is written, makes a large array out of small ones, and small ones out
of that again.  Its rows need none of each other until their products with others are added up.  So a ``panels`` node
(see ``ops.row_blocks``) computes a panel of rows at a time, in all its steps, while it is in the cache: no array of all
scores lies in memory.  Orders of sums are those of the single ops: sums over rows are cut where products cut them.

A *region* (see ``tile_regions``) grows from a product: all that is made of it row by row.  What is *wide* in it, has
as many elements a row as the product, never leaves a panel.  Derivatives come later than what is made of the results,
so a region has *levels*, each of which is a node of its own: wide values that a later one needs are computed again,
others are kept.

On a CPU panels go one after another where products add up rows.  On a GPU they have no order: what such products are
made of is computed once more, by panels of columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from typing import NamedTuple

from hybridflow.compiler.index.access_maps import AccessMaps
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, variable
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.extents import Extent, compare
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import Shape, TensorType, is_one, product
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.compiler.ops.mask_analysis import is_masked
from hybridflow.compiler.passes.axis_roles import (
    ROW,
    SUMMED,
    Part,
    Roles,
    contraction_of,
    in_row_block,
    input_roles,
    is_created,
    long_axes,
    parts_of,
    row_block_shape,
)
from hybridflow.compiler.passes.tile_heights import TileHeights
from hybridflow.compiler.passes.tile_regions import Region, first_region, region_of_columns


def tile_and_fuse(graph: Graph, heights: TileHeights) -> Graph:
    tried: set[Node] = set()
    while True:
        region = first_region(graph, tried)
        if region is None:
            return graph
        better = _rebuilt(graph, region, heights)
        if better is not None:
            graph = better


def _rebuilt(graph: Graph, region: Region, heights: TileHeights) -> Graph | None:
    """The graph with panels in the place of a region; None where there are none, or they do not pay."""
    if heights.adds_up and region.sums_entries:
        return None
    if region.sums and not heights.adds_up:
        return _by_rows_and_columns(graph, region, heights)
    plan = _Plan(graph, region, heights)
    return plan.rebuilt() if plan.pays else None


def _by_rows_and_columns(graph: Graph, region: Region, heights: TileHeights) -> Graph | None:
    """The same where sums over rows do not go from panel to panel: what they are sums of is computed once more, by
    panels of columns, in each of which a sum is one over a whole line."""
    graph, copies, sums = region.with_copies(graph)
    columns = region_of_columns(graph, region, copies, sums)
    if columns is None:
        return None
    plan = _Plan(graph, columns, heights, wide=2)  # shares, and their derivatives
    better = plan.rebuilt() if plan.pays else None
    if better is None:
        return None
    rows = Region(better, better.users(), region.seed, region.roles[region.seed])
    if rows.sums or not rows.is_closed:
        return None
    plan = _Plan(better, rows, heights)
    return plan.rebuilt() if plan.pays else None


class _Source(NamedTuple):
    """Where an operand of a panel lies: in ``node`` from ``start`` on, and how many elements apart along each axis of
    what is read in a panel, and from one batch entry, and row, to the next: by their roles."""

    node: Node
    start: Extent
    strides: tuple[Extent, ...]
    steps: dict[int, Extent]


class _Plan:
    """The levels of a region as nodes, which have so many ``wide`` values at a time."""

    def __init__(self, graph: Graph, region: Region, heights: TileHeights, wide: int = 1) -> None:
        self.graph, self.region, self.heights, self.wide = graph, region, heights, wide
        self.levels = self._find_levels()
        self.made = self._find_results()  # by level: rows, then sums
        self.blocks = {level: self._block(level) for level in self.made}

    def _is_wide(self, node: Node) -> bool:
        return self.region.is_wide(node, self.region.roles[node])

    def _find_levels(self) -> dict[Node, int]:
        """The level of each node of the region; of others, how many levels must be there before."""
        roles = self.region.roles
        result: dict[Node, int] = {}
        for node in self.graph.nodes:
            is_level = node in roles or node in self.region.sums
            level = max(
                (result.get(n, 0) + (n in roles and not is_level) + (n in self.region.sums) for n in node.inputs),
                default=0,
            )
            if level:
                result[node] = level
        for node in (*roles, *self.region.sums):
            result.setdefault(node, 0)
        return result

    def _find_results(self) -> dict[int, list[Node]]:
        """What leaves the panels of each level: what others read, and what later levels need of it that is not wide."""
        roles, sums = self.region.roles, self.region.sums
        by_level: dict[int, dict[Node, None]] = {}
        for node in (*roles, *sums):
            if (
                node in sums
                or node in self.region.results
                or any(n not in roles and n not in sums for n in self.region.users[node])
            ):
                by_level.setdefault(self.levels[node], {})[node] = None
        for level in range(max(by_level), -1, -1):
            waiting = list(by_level.get(level, ()))
            seen = set(waiting)
            while waiting:
                for node in waiting.pop().inputs:
                    if node not in roles or node in seen:
                        continue
                    seen.add(node)
                    if self.levels[node] == level or self._is_wide(node):
                        waiting.append(node)
                    else:
                        by_level.setdefault(self.levels[node], {})[node] = None
        place = self.region.place
        return {level: sorted(nodes, key=lambda n: (n in sums, place[n])) for level, nodes in sorted(by_level.items())}

    def _sums(self, level: int) -> int:
        return sum(node in self.region.sums for node in self.made[level])

    def _block(self, level: int) -> int:
        """The rows of a panel."""
        region = self.region
        if self._sums(level):
            return min(region.rows, K_BLOCK)
        nbytes = self.wide * region.seed.dtype.itemsize
        return self.heights.of(region.rows, product(region.batch), region.long, nbytes)

    @property
    def pays(self) -> bool:
        """Whether there are panels enough for threads to share, and sums may go on from panel to panel."""
        for level, block in self.blocks.items():
            units = product(self.region.batch)
            if self._sums(level) and block < self.region.rows:
                sums = [n for n in self.made[level] if n in self.region.sums]
                if any(dt.compute_dtype(n.dtype) != n.dtype or contraction_of(n).lanes for n in sums):
                    return False
            else:
                units = units * -(-self.region.rows // block)
            if compare(self.heights.few - 1, units) is True:
                return False
        return bool(self.made)

    def rebuilt(self) -> Graph | None:
        """The graph with a node of panels for each level; None where checks would change their order."""
        b = GraphBuilder(TABLE)
        new: dict[Node, Node] = dict(zip(self.graph.inputs, self.graph.inputs))
        gone = {*self.region.roles, *self.region.sums}
        place = {node: level for level, nodes in self.made.items() for node in nodes}
        writers = {level: _Writer(self, level, place) for level in self.made}
        built: set[int] = set()

        def needs(item: Node | int) -> list[Node | int]:
            nodes = writers[item].operands if isinstance(item, int) else item.inputs
            return [place.get(n, n) for n in nodes]

        def is_there(item: Node | int) -> bool:
            return item in built if isinstance(item, int) else item in new

        for node in (*self.graph.nodes, *self.graph.results):
            if node in gone and node not in place:
                continue
            todo: list[Node | int] = [place.get(node, node)]
            while todo:
                item = todo[-1]
                if is_there(item):
                    todo.pop()
                    continue
                missing = [n for n in needs(item) if not is_there(n)]
                if missing:
                    todo += missing
                elif isinstance(item, int):
                    new.update(writers[item].write(b, new))
                    built.add(item)
                else:
                    new[item] = item
                    if any(new[n] is not n for n in item.inputs):
                        new[item] = Node(item.op, [new[n] for n in item.inputs], item.attrs, item.type, item.where)
                    b.nodes.append(new[item])
        checks = [new[n] for n in self.graph.nodes if n.may_raise and n in new]
        if checks != [n for n in b.nodes if n.may_raise]:
            return None
        return self.graph.rebuild(new, b.nodes)


class _Writer:
    """The node of one level."""

    def __init__(self, plan: _Plan, level: int, place: dict[Node, int]) -> None:
        self.plan, self.level, self.place = plan, level, place
        self.region = plan.region
        self.made = plan.made[level]
        self.block, self.rows = plan.blocks[level], self.region.rows
        self.sources: dict[tuple[Node, Roles], int] = {}  # the operands as they are read, in their order
        self.found: list[_Source] = []
        self.adds_up = plan._sums(level) > 0 and self.block < self.rows
        self.body = self._graph(self.block)  # which finds the operands

    @property
    def operands(self) -> list[Node]:
        return [source.node for source in self.found]

    def write(self, b: GraphBuilder, new: dict[Node, Node]) -> dict[Node, Node]:
        """Add the node; what stands for each of its results."""
        region = self.region
        rest = self.rows % self.block
        steps = []
        for source in self.found:
            steps.append(tuple(source.steps.get(role, 0) for role in (*range(len(region.batch)), ROW)))
        b.location = self.made[0].where
        whole = b.panels(
            *(new[source.node] for source in self.found),
            body=self.body,
            tail=(self._graph(rest),) if rest else (),
            batch=region.batch,
            rows=self.rows,
            block=self.block,
            starts=tuple(source.start for source in self.found),
            steps=tuple(steps),
            sums=self.plan._sums(self.level),
        )
        return {node: self._result(b, b.project(whole, index=k), node) for k, node in enumerate(self.made)}

    def _roles(self, node: Node) -> Roles:
        """Of a result."""
        if node in self.region.roles:
            return self.region.roles[node]
        axes = contraction_of(node)
        known = next(k for k, n in enumerate(node.inputs) if n in self.region.roles)
        roles = self.region.roles[node.inputs[known]]
        batch = tuple(roles[axis] for axis in axes.factors[known].batch)
        return (*batch, *(None for _ in range(len(node.shape) - len(batch))))

    def _parts(self, node: Node) -> list[int | None]:
        """The roles of the parts of a result's axes, but for those of one element."""
        roles = self._roles(node)
        return [role for axis in long_axes(node.shape) for role, _ in parts_of(roles[axis], node.shape[axis])]

    def _result(self, b: GraphBuilder, result: Node, node: Node) -> Node:
        """A result of what panels make: batch axes, rows, all others."""
        parts = self._parts(node)

        def key(place: int) -> tuple[int, int]:
            role = parts[place]
            return (2, place) if role is None else (1, 0) if role == ROW else (0, role)

        order = sorted(range(len(parts)), key=key)
        if order != sorted(order):
            result = b.transpose(result, perm=tuple(order.index(place) for place in sorted(order)))
        return result if result.shape == node.shape else b.reshape(result, shape=node.shape)

    # ---- graphs

    def _graph(self, height: int) -> Graph:
        """What is done for a panel of so many rows."""
        b = GraphBuilder(TABLE, "panel")
        first = b.parameter(TensorType((), dt.int64), "row")
        copier = _Copier(self, b, first, height)
        outputs = [self._output(b, copier.copy_of(node), node, height) for node in self.made]
        sums = self.plan._sums(self.level)
        inputs = [first, *copier.parameters.values()]
        if self.adds_up:
            stacked = len(outputs) - sums
            before = [b.parameter(node.type, f"sum{k}") for k, node in enumerate(outputs[stacked:])]
            outputs[stacked:] = [b.add(x, y) for x, y in zip(before, outputs[stacked:])]
            inputs += before
        return Graph("panel", tuple(inputs), tuple(b.nodes), tuple(outputs))

    def _output(self, b: GraphBuilder, value: Node, node: Node, height: int) -> Node:
        """A result in the order of its axes, rows first, without those of the batch."""
        roles = [in_row_block(role) for role in self._roles(node)]
        order = [axis for axis in long_axes(node.shape) if roles[axis] is None or roles[axis] == ROW]
        order.sort(key=lambda axis: roles[axis] is None)
        if order != sorted(order):
            rest = [axis for axis in range(len(node.shape)) if axis not in order]
            value = b.transpose(value, perm=(*rest, *order))
        panel = row_block_shape(node.shape, self._roles(node), height)
        shape = tuple(panel[axis] for axis in order)
        return value if value.shape == shape else b.reshape(value, shape=shape)

    def operand(self, node: Node, roles: Roles) -> int:
        """The number of an operand."""
        result = self.sources.get((node, roles))
        if result is None:
            result = self.sources[node, roles] = len(self.found)
            self.found.append(_source(node, roles, self.region.roles))
        return result

    def is_operand(self, node: Node, roles: Roles) -> bool:
        """Whether a value lies in memory, rather than to be made in a panel."""
        if node.is_parameter:
            return True
        if node in self.region.roles:
            return node in self.place and self.place[node] < self.level
        if is_created(node, roles):
            return False
        if node.op.kind is Kind.VIEW:
            return input_roles(node, roles, {}) is None or _source(node, roles, self.region.roles).node is not node
        return node.op.kind is not Kind.ELEMENTWISE or node.may_raise or not self.region.is_wide(node, roles)


class _Copier:
    """Writes what a panel of ``height`` rows needs."""

    def __init__(self, writer: _Writer, b: GraphBuilder, first: Node, height: int) -> None:
        self.writer, self.b, self.first, self.height = writer, b, first, height
        self.roles = writer.region.roles
        self.copies: dict[tuple[Node, Roles], Node] = {}
        self.parameters: dict[int, Node] = {}
        self.operands: dict[int, Node] = {}

    def copy_of(self, node: Node) -> Node:
        """A result: what of the region it takes, in order, and then it."""
        roles = self.roles.get(node, SUMMED)
        needed: list[tuple[Node, Roles]] = []
        waiting = [(node, roles)]
        seen = set(waiting)
        while waiting:
            item = waiting.pop()
            needed.append(item)
            new = [one for one in self._inputs_with_roles(*item) if one not in seen]
            seen.update(new)
            waiting += dict.fromkeys(new)
        place = self.writer.region.place
        for one, node_roles in sorted(needed, key=lambda item: place.get(item[0], -1)):
            self._copy(one, node_roles)
        return self.copies[node, roles]

    def _inputs_with_roles(self, node: Node, roles: Roles) -> list[tuple[Node, Roles]]:
        if roles is not SUMMED and self.writer.is_operand(node, roles):
            return []
        wanted = input_roles(node, roles, self.roles)
        assert wanted is not None
        return list(zip(node.inputs, wanted))

    def _shape(self, shape: Shape, roles: Roles) -> Shape:
        return row_block_shape(shape, roles, self.height)

    def _copy(self, node: Node, roles: Roles) -> None:
        if (node, roles) in self.copies:
            return
        b = self.b
        b.location = node.where
        if roles is not SUMMED and self.writer.is_operand(node, roles):
            self.copies[node, roles] = self._operand(node, roles)
            return
        inputs = [self.copies[item] for item in self._inputs_with_roles(node, roles)]
        attrs = dict(node.attrs)
        if "shape" in attrs:
            attrs["shape"] = self._shape(attrs["shape"], roles)
        if node.op.kind is Kind.CONTRACT and is_masked(node.inputs[0], self.roles):
            attrs["gaps"] = True
        value = b.emit(node.op, *inputs, **attrs)
        if node.op.name == "iota" and roles[attrs["axis"]] == ROW:
            value = b.add(value, b.broadcast(b.convert(self.first, dtype=node.dtype), shape=value.shape, axes=()))
        self.copies[node, roles] = value

    def _operand(self, node: Node, roles: Roles) -> Node:
        """The part of an operand that a panel reads.

        The input is taken for an array whose axes are as far apart as those of the operand, which may reach beyond what
        there is; of that array the part is a slice.
        """
        b, number = self.b, self.writer.operand(node, roles)
        strides = self.writer.found[number].strides
        shape = self._shape(node.shape, roles)
        axes = _by_stride(shape, strides)
        pitches = [strides[axis] for axis in axes]
        extents: list[Extent] = [shape[axis] for axis in axes]
        # each a multiple of the next, as ``_source`` has seen to it
        whole = [*extents[:1], *(a // b for a, b in itertools.pairwise(pitches))]
        if pitches and not is_one(pitches[-1]):
            whole.append(pitches[-1])
            extents.append(1)
        value = self.parameters[number] = b.parameter(TensorType(tuple(whole), node.dtype), f"x{number}")
        if whole != extents:
            start, step = (0,) * len(whole), (1,) * len(whole)
            value = b.slice(value, start=start, stop=tuple(extents), step=step)
        value = b.reshape(value, shape=tuple(shape[axis] for axis in axes)) if len(whole) != len(axes) else value
        if axes != sorted(axes):
            value = b.transpose(value, perm=tuple(axes.index(axis) for axis in sorted(axes)))
        return value if value.shape == shape else b.reshape(value, shape=shape)


def _by_stride(shape: Sequence[Extent], strides: Sequence[Extent]) -> list[int]:
    """The axes of more than one element, those that are farthest apart in memory first."""
    axes = long_axes(tuple(shape))
    if all(isinstance(strides[axis], int) for axis in axes):
        axes.sort(key=lambda axis: strides[axis], reverse=True)
    return axes


def _source(node: Node, roles: Roles, inside: Container[Node]) -> _Source:
    """Where a value lies that is read by steps along its axes: in what it is a view of, if it is one without
    divisions whose axes lie within each other, else by itself.  What panels have ``inside`` lies by itself, whatever it
    is a view of there."""
    parts = [parts_of(role, extent) for role, extent in zip(roles, node.shape)]
    loops = [[LoopVar(f"i{k}_{j}", n) for j, (_, n) in enumerate(axis_roles)] for k, axis_roles in enumerate(parts)]
    reads = AccessMaps(lambda n: n.is_parameter or n.op.kind is not Kind.VIEW or n in inside)
    reads.follow(node, Index(node.shape, axes=[_joined(axis_roles) for axis_roles in loops]))
    if len(reads.leaves) == 1 and not reads.positions:
        leaf, index = reads.leaves[0]
        position = index.linear
        if position.is_affine:
            strides_of = position.strides
            strides = [[strides_of.get(loop, 0) for loop in axis_roles] for axis_roles in loops]
            if _nests(parts, strides):
                return _by_roles(leaf, strides_of.get(None, 0), parts, strides)
    whole = _joined([loop for axis_roles in loops for loop in axis_roles]).strides if loops else {}
    return _by_roles(node, 0, parts, [[whole.get(loop, 0) for loop in axis_roles] for axis_roles in loops])


def _joined(loops: Sequence[LoopVar]) -> IndexExpr:
    """The position along an axis of which the loops are parts."""
    result = variable(loops[0])
    for loop in loops[1:]:
        result = result * loop.extent + variable(loop)
    return result


def _by_roles(
    node: Node, start: Extent, parts: Sequence[Sequence[Part]], strides: Sequence[Sequence[Extent]]
) -> _Source:
    steps: dict[int, Extent] = {}
    in_panels: list[Extent] = []
    for axis_roles, apart in zip(parts, strides):
        steps.update({role: stride for (role, _), stride in zip(axis_roles, apart) if role is not None})
        in_panels.append(next((s for (role, _), s in zip(axis_roles, apart) if role is None or role == ROW), apart[-1]))
    return _Source(node, start, tuple(in_panels), steps)


def _nests(parts: Sequence[Sequence[Part]], strides: Sequence[Sequence[Extent]]) -> bool:
    """Whether the axes of a panel's part lie within each other in memory, as those of an array do."""
    inner: list[tuple[int, Extent]] = []
    for (role, extent), stride in zip(itertools.chain(*parts), itertools.chain(*strides)):
        if is_one(extent):
            continue
        if not isinstance(stride, int) or stride < 0:
            return False
        if role is None or role == ROW:
            inner.append((stride, extent))
    inner.sort(key=lambda pair: pair[0], reverse=True)
    if any(stride == 0 for stride, _ in inner):
        return False
    return all(a % b == 0 and compare(a // b, n) is True for (a, _), (b, n) in itertools.pairwise(inner))
