"""What axes of values are to a panel of rows: an axis of the batch, the axis of rows, or neither.

``Roles`` has for each axis the number of a batch axis, ROW, or None.  Axes of one element are neither.  A node is local
where each of its rows, of one batch entry, is made of the same rows of its operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent, Shape, is_one, same_extents
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction import Contraction

ROW = -1
Roles = tuple["int | None", ...]
SUMMED: Roles = (ROW, ROW)  # of no value: that of a product whose sum goes over the rows


def result_roles(node: Node, known: Mapping[Node, Roles]) -> Roles | None:
    """The roles of a node's axes, given those of one of its inputs, or of several; SUMMED where it adds up rows; None
    where it is not local, or nobody knows."""
    kind = node.op.kind
    given = {known[n] for n in node.inputs if n in known}
    if kind is Kind.CONTRACT:
        return _product_roles(node, known)
    if len(given) != 1 or node.may_raise:
        return None
    (roles,) = given
    if kind is Kind.ELEMENTWISE:
        return roles
    if kind is Kind.REDUCE:
        axes = node.attrs["axes"]
        if any(roles[axis] is not None for axis in axes):
            return None
        return tuple(role for axis, role in enumerate(roles) if axis not in axes)
    pairs = _axes_of_view(node)
    if pairs is None:
        return None
    found: list[int | None] = [None] * len(node.shape)
    for source, axis in pairs:
        found[axis] = roles[source]
    return tuple(found)


def input_roles(node: Node, roles: Roles, known: Mapping[Node, Roles]) -> list[Roles] | None:
    """The roles of the axes of each input of a local node; those that are ``known`` stay."""
    kind = node.op.kind
    if kind is Kind.CONTRACT:
        return _factor_roles(node, roles, known)
    if kind is Kind.ELEMENTWISE:
        return [roles] * len(node.inputs)
    if kind is Kind.REDUCE:
        return [known[n] for n in node.inputs] if all(n in known for n in node.inputs) else None
    if kind is Kind.CREATE:
        return [] if not node.inputs else None
    pairs = _axes_of_view(node)
    if pairs is None:
        return None
    found: list[int | None] = [None] * len(node.inputs[0].shape)
    for source, axis in pairs:
        found[source] = roles[axis]
    lost = {role for role in roles if role is not None} - set(found)
    return [tuple(found)] if not lost or node.op.name == "broadcast" else None


def contraction_of(node: Node) -> Contraction:
    found: Contraction = node.op.contraction(tuple([n.type for n in node.inputs]), node.attrs)
    return found


def _product_roles(node: Node, known: Mapping[Node, Roles]) -> Roles | None:
    axes = contraction_of(node)
    given = [known.get(n) for n in node.inputs]
    batch: list[int | None] = []
    for pair in zip(axes.left.batch, axes.right.batch):
        found = {roles[axis] for roles, axis in zip(given, pair) if roles is not None}
        if len(found) != 1 or ROW in found:
            return None
        batch.append(found.pop())
    free: list[int | None] = []
    summed: list[Roles] = []
    for roles, factor in zip(given, axes.factors):
        own = [None if roles is None else roles[axis] for axis in (*factor.free, *factor.summed)]
        if any(role is not None and role != ROW for role in own):
            return None
        free += own[: len(factor.free)]
        if roles is not None:
            summed.append(tuple(own[len(factor.free) :]))
    if any(ROW in roles for roles in summed):
        return SUMMED if len(set(summed)) == 1 and ROW not in free else None
    return (*batch, *free) if free.count(ROW) == 1 else None


def _factor_roles(node: Node, roles: Roles, known: Mapping[Node, Roles]) -> list[Roles] | None:
    """``roles`` may be SUMMED."""
    axes = contraction_of(node)
    rows = len(axes.left.batch)
    if roles is SUMMED:
        one = next(i for i, n in enumerate(node.inputs) if n in known)
        roles_of, factor = known[node.inputs[one]], axes.factors[one]
        batch, summed = (tuple(roles_of[axis] for axis in part) for part in (factor.batch, factor.summed))
        free: list[Roles] = [(None,) * len(f.free) for f in axes.factors]
    else:
        last = rows + len(axes.left.free)
        batch, summed = roles[:rows], tuple(None for _ in axes.left.summed)
        free = [roles[rows:last], roles[last:]]
    found = [f.arranged(batch, own, summed) for f, own in zip(axes.factors, free)]
    fits = all(known.get(n, own) == own for n, own in zip(node.inputs, found))
    return found if fits else None


def _axes_of_view(node: Node) -> list[tuple[int, int]] | None:
    """(axis of the input, axis of the view) for all axes of the input, but for those of one element, that go on as they
    are; None where some do not."""
    if node.op.kind is not Kind.VIEW:
        return None
    shape = node.inputs[0].shape
    if node.op.name == "broadcast":
        return [(k, axis) for k, axis in enumerate(node.attrs["axes"]) if not is_one(shape[k])]
    if node.op.name == "transpose":
        return [(source, axis) for axis, source in enumerate(node.attrs["perm"])]
    if node.op.name == "reshape":
        before, after = long_axes(shape), long_axes(node.shape)
        if same_extents(*(tuple(s[a] for a in axes) for s, axes in ((shape, before), (node.shape, after)))):
            return list(zip(before, after))
    return None


def long_axes(shape: Shape) -> list[int]:
    """The axes of other than one element."""
    return [axis for axis, extent in enumerate(shape) if not is_one(extent)]


def free_extents(shape: Sequence[Extent], roles: Roles) -> Iterator[Extent]:
    """The extents of what belongs to one row."""
    return (extent for extent, role in zip(shape, roles) if role is None)
