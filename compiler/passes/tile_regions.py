"""Regions of graphs that are made row by row of a product; see ``tile_and_fuse``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import compare
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import is_one, is_static, product, static_size
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.passes.axis_roles import (
    ROW,
    SUMMED,
    Roles,
    contraction_of,
    free_extents,
    has_row,
    input_roles,
    is_created,
    kinds,
    long_axes,
    parts_of,
    result_roles,
)

LEAST = 1 << 16  # elements of a product that leaves the nearer caches


def region_of_columns(graph: Graph, region: Region, copies: Mapping[Node, Node], sums: Iterable[Node]) -> Region | None:
    """A region in which columns are what rows are to another one, of copies of what its sums are made of, and them."""
    users = graph.users()
    for node, copy in copies.items():
        if node.op.kind is not Kind.CONTRACT:
            continue
        roles = region.roles[node]
        others = [axis for axis in long_axes(node.shape) if roles[axis] is None]
        if len(others) != 1 or not isinstance(node.shape[others[0]], int):
            return None
        columns = tuple(ROW if axis in others else None if has_row([role]) else role for axis, role in enumerate(roles))
        grown = Region(graph, users, copy, columns)
        whole = not grown.sums and all(node in grown.roles for node in sums)
        return grown if whole and grown.is_closed else None
    return None


def first_region(graph: Graph, tried: set[Node]) -> Region | None:
    users: dict[Node, list[Node]] | None = None
    for node in graph.nodes:
        if node.op.kind is not Kind.CONTRACT or node in tried:
            continue
        tried.add(node)
        sides = list(_sides(node))
        if not sides:
            continue
        if users is None:
            users = graph.users()
        seeds = [*sides, *_partitioned(node, sides, users)]
        for roles in seeds:
            region = Region(graph, users, node, roles)
            if region.is_closed and region.folds:
                return region
    return None


def _sides(node: Node) -> Iterable[Roles]:
    """The ways to take one side of a product that is larger than its factors for rows."""
    axes = contraction_of(node)
    extents = axes.extents(*(n.type for n in node.inputs))
    if len(extents.rows) != 1 or len(extents.columns) != 1 or axes.lanes or not dt.is_float(node.dtype):
        return
    sides = extents.rows[0], extents.columns[0]
    depth = product(extents.summed)
    if any(compare(side, depth) is False for side in sides) or compare(LEAST - 1, product(node.shape)) is True:
        return
    batch: list[int | None] = []
    for extent in extents.batch:
        batch.append(None if is_one(extent) else sum(role is not None for role in batch))
    for side, rows in enumerate(sides):
        if isinstance(rows, int) and rows > 1:
            yield (*batch, *(ROW if k == side else None for k in range(2)))


def _partitioned(node: Node, sides: Iterable[Roles], users: Mapping[Node, Sequence[Node]]) -> Iterable[Roles]:
    """The same where what is made of a product is reshaped so that its rows are those of several entries."""
    for roles in sides:
        axis = roles.index(ROW)
        rows = _rows_of_entries(node, axis, users)
        if rows is not None:
            entries = (sum(role is not None for role in roles) - 1, static_size((node.shape[axis],)) // rows)
            yield (*roles[:axis], (entries, (ROW, rows)), *roles[axis + 1 :])


def _rows_of_entries(node: Node, axis: int, users: Mapping[Node, Sequence[Node]]) -> int | None:
    """The last part of an axis that a reshape cuts, of what is made of a node element by element."""
    waiting, seen = [node], {node}
    while waiting:
        one = waiting.pop()
        for user in users[one]:
            if user.op.name == "reshape" and is_static((*node.shape, *user.shape)):
                behind, whole = static_size(node.shape[axis + 1 :]), static_size((node.shape[axis],))
                for k in range(len(user.shape)):
                    part = static_size(user.shape[k : k + 1])
                    if static_size(user.shape[k + 1 :]) == behind and 1 < part < whole and whole % part == 0:
                        return part
            elif user.op.kind is Kind.ELEMENTWISE and user not in seen:
                seen.add(user)
                waiting.append(user)
    return None


class Region:
    """What is made row by row of a product: the roles of the axes of each node, and the products that add up rows."""

    def __init__(self, graph: Graph, users: dict[Node, list[Node]], seed: Node, roles: Roles) -> None:
        self.users, self.results, self.seed = users, set(graph.results), seed
        self.place = {node: k for k, node in enumerate(graph.nodes)}
        self.long = product(tuple(free_extents(seed.shape, roles)))
        parts = [part for n, role in zip(seed.shape, roles) for part in parts_of(role, n)]
        self.rows = static_size(tuple(n for role, n in parts if role == ROW))
        self.batch = tuple(n for role, n in parts if role is not None and role != ROW)
        self.all_roles = {*range(len(self.batch)), ROW}
        self.roles: dict[Node, Roles] = {}
        self.sums: dict[Node, None] = {}
        self.sound = True
        self._open: deque[Node] = deque()
        self._add(seed, roles)
        while self._open and self.sound:
            self._grow(self._open.popleft())  # what is near first: there it is seen soon that a region leaks
        if self.sound:
            self._prune()

    def is_wide(self, node: Node, roles: Roles) -> bool:
        """Whether a row has as many elements as one of the product."""
        return has_row(roles) and compare(product(tuple(free_extents(node.shape, roles))), self.long) is True

    def has_wide_factor(self, node: Node) -> bool:
        return any(n in self.roles and self.is_wide(n, self.roles[n]) for n in node.inputs)

    def _add(self, node: Node, roles: Roles) -> None:
        known = self.roles.get(node)
        if known is not None:
            self.sound &= known == roles
            return
        self.roles[node] = roles
        self._open.append(node)
        self.sound &= not self._leaks(node, roles)

    def _leaks(self, node: Node, roles: Roles) -> bool:
        """Whether a node is wide and somebody outside looks at it, whatever else the region will reach.

        Most products are part of no region, and what is made of them goes on to the end of the program: ``is_closed``
        would say the same, but only after all of that was added.
        """
        if not self.is_wide(node, roles):
            return False
        if node in self.results or kinds(roles) - {None} != self.all_roles:
            return True
        return any(self._stays_outside(user, roles) for user in self.users[node])

    def _stays_outside(self, user: Node, roles: Roles) -> bool:
        """Whether a user of a wide node with such roles can be no part of the region."""
        if user.op.kind is Kind.REDUCE:
            return user.may_raise or any(roles[axis] is not None for axis in user.attrs["axes"])
        if user.op.kind is Kind.ELEMENTWISE:
            return user.may_raise or any(self.roles.get(n, roles) != roles for n in user.inputs)
        return user.op.kind is not Kind.CONTRACT and user.op.name not in ("reshape", "broadcast", "transpose")

    def _grow(self, node: Node) -> None:
        roles = self.roles[node]
        for user in self.users[node]:
            user_roles = result_roles(user, self.roles)
            if user_roles is None:
                continue
            if user_roles is SUMMED:
                if self.has_wide_factor(user):
                    self.sums.setdefault(user)
                    self._reach(user, SUMMED)
            elif user.op.kind is not Kind.CONTRACT or self.has_wide_factor(user) or self.is_wide(user, user_roles):
                self._add(user, user_roles)
        self._reach(node, roles)

    def _reach(self, node: Node, roles: Roles) -> None:
        """Add the wide products that a node is made of, with what lies between."""
        source_roles = input_roles(node, roles, self.roles)
        if source_roles is None:
            self.sound = False
            return
        for source, wanted in zip(node.inputs, source_roles):
            if source not in self.roles and self.is_wide(source, wanted) and self._has_product(source, wanted):
                self._add(source, wanted)

    def _has_product(self, node: Node, roles: Roles) -> bool:
        """Whether a wide value is made of a wide product, by what is made element by element."""
        if node.is_parameter or node.may_raise or kinds(roles) - {None} != self.all_roles:
            return False
        if node.op.kind is Kind.CONTRACT:
            return input_roles(node, roles, self.roles) is not None
        if node.op.kind is not Kind.ELEMENTWISE and node.op.kind is not Kind.VIEW:
            return False
        source_roles = input_roles(node, roles, self.roles)
        return source_roles is not None and any(
            n in self.roles or (self.is_wide(n, wanted) and self._has_product(n, wanted))
            for n, wanted in zip(node.inputs, source_roles)
        )

    def _prune(self) -> None:
        """Keep what is wide or made of what is, and what that takes; and what then finishes a result, so that it is no
        further one."""
        kept: set[Node] = set()
        waiting = [n for n, r in self.roles.items() if self.is_wide(n, r) or self.has_wide_factor(n)]
        while waiting:
            node = waiting.pop()
            if node not in kept:
                kept.add(node)
                waiting += [n for n in node.inputs if n in self.roles]
        for node in sorted(self.roles, key=self.place.__getitem__, reverse=True):
            if node not in kept and (self._is_needed(node) or self._finishes(node)):
                kept.add(node)
            if node not in kept:
                del self.roles[node]

    def _is_needed(self, node: Node) -> bool:
        return any(user in self.roles for user in self.users[node])

    def _finishes(self, node: Node) -> bool:
        """Whether a node that nothing in the region reads leaves no more memory to write than what it is made of."""
        if any(n not in self.roles and not is_created(n) for n in node.inputs if not n.is_parameter):
            return False
        others = [n for n in node.inputs if n in self.roles and not self._is_result(n, node)]
        sizes = sum((product(n.shape) for n in dict.fromkeys(others)), start=0)
        return compare(sizes, product(node.shape)) is True

    def _is_result(self, node: Node, but: Node) -> bool:
        """Whether others than the region, and one that is left out, read a node."""
        return node in self.results or any(
            user is not but and user not in self.roles and user not in self.sums for user in self.users[node]
        )

    def with_copies(self, graph: Graph) -> tuple[Graph, dict[Node, Node], list[Node]]:
        """The graph in which sums over rows are those of copies of what is wide; the copies, and those sums."""
        needed: set[Node] = set()
        waiting = list(self.sums)
        while waiting:
            for node in waiting.pop().inputs:
                if node in self.roles and node not in needed and self.is_wide(node, self.roles[node]):
                    needed.add(node)
                    waiting.append(node)
        new: dict[Node, Node] = dict(zip(graph.inputs, graph.inputs))
        copies: dict[Node, Node] = {}
        nodes: list[Node] = []
        for node in graph.nodes:
            replacements = copies if node in self.sums else {}
            inputs = [replacements.get(n, new[n]) for n in node.inputs]
            changed = any(a is not b for a, b in zip(inputs, node.inputs))
            new[node] = Node(node.op, inputs, node.attrs, node.type, node.where) if changed else node
            nodes.append(new[node])
            if node in needed:
                inputs = [copies.get(n, new[n]) for n in node.inputs]
                copies[node] = Node(node.op, inputs, node.attrs, node.type, node.where)
                nodes.append(copies[node])
        return graph.rebuild(new, nodes), copies, [new[node] for node in self.sums]

    @property
    def sums_entries(self) -> bool:
        """Whether sums are those of the rows of several entries."""
        factors = (n for node in self.sums for n in node.inputs if n in self.roles)
        return any(isinstance(role, tuple) and has_row([role]) for n in factors for role in self.roles[n])

    @property
    def folds(self) -> bool:
        """Whether something wide is folded along rows."""
        wide = (node for node, roles in self.roles.items() if self.is_wide(node, roles))
        return any(user.op.kind is Kind.REDUCE for node in wide for user in self.users[node])

    @property
    def is_closed(self) -> bool:
        """Whether nobody else looks at what is wide, all of which serves products."""
        if not self.sound:
            return False
        multiplies = False
        for node, roles in self.roles.items():
            source_roles = input_roles(node, roles, self.roles)
            if kinds(roles) - {None} != self.all_roles or source_roles is None:
                return False
            if any(self.roles.get(n, wanted) != wanted for n, wanted in zip(node.inputs, source_roles)):
                return False
            if not self.is_wide(node, roles):
                continue
            if node in self.results:
                return False
            for user in self.users[node]:
                if user not in self.roles and user not in self.sums:
                    return False
                multiplies |= user.op.kind is Kind.CONTRACT
        return multiplies
