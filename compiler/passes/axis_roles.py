"""What axes of values are to a panel of rows: an axis of the batch, the axis of rows, or neither.

``Roles`` has for each axis the number of a batch axis, ROW, or None.  Axes of one element are neither.  An axis that a
reshape has made of several has the *parts* that it consists of, row-major, each with its extent: heads that share keys
are rows of one product, and heads of their own further on.  A node is local where each of its rows, of one batch entry,
is made of the same rows of its operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Union

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent, Shape, is_one, is_static, product, same_extents, static_size
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction_dims import Contraction

ROW = -1
Part = tuple["int | None", Extent]
Role = Union[int, None, tuple[Part, ...]]
Roles = tuple[Role, ...]
SUMMED: Roles = (ROW, ROW)  # of no value: that of a product whose sum goes over the rows


def result_roles(node: Node, known: Mapping[Node, Roles]) -> Roles | None:
    """The roles of a node's axes, given those of one of its inputs, or of several; SUMMED where it adds up rows; None
    where it is not local, or nobody knows."""
    kind = node.op.kind
    operand_roles = {known[n] for n in node.inputs if n in known}
    if kind is Kind.CONTRACT:
        return _product_roles(node, known)
    if len(operand_roles) != 1 or node.may_raise:
        return None
    (roles,) = operand_roles
    if kind is Kind.ELEMENTWISE:
        return roles
    if kind is Kind.REDUCE:
        axes = node.attrs["axes"]
        if any(roles[axis] is not None for axis in axes):
            return None
        return tuple(role for axis, role in enumerate(roles) if axis not in axes)
    if node.op.name == "reshape":
        return _reshaped(roles, node.inputs[0].shape, node.shape)
    pairs = _axes_of_view(node)
    if pairs is None:
        return None
    roles_of_result: list[Role] = [None] * len(node.shape)
    for source, axis in pairs:
        roles_of_result[axis] = roles[source]
    return tuple(roles_of_result)


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
    if node.op.name == "reshape":
        reshaped = _reshaped(roles, node.shape, node.inputs[0].shape)
        return None if reshaped is None else [reshaped]
    pairs = _axes_of_view(node)
    if pairs is None:
        return None
    roles_of_input: list[Role] = [None] * len(node.inputs[0].shape)
    for source, axis in pairs:
        roles_of_input[source] = roles[axis]
    lost = {role for role in roles if role is not None} - set(roles_of_input)
    return [tuple(roles_of_input)] if not lost or node.op.name == "broadcast" else None


def contraction_of(node: Node) -> Contraction:
    result: Contraction = node.op.contraction(tuple([n.type for n in node.inputs]), node.attrs)
    return result


def _product_roles(node: Node, known: Mapping[Node, Roles]) -> Roles | None:
    axes = contraction_of(node)
    operand_roles = [known.get(n) for n in node.inputs]
    batch: list[Role] = []
    for pair in zip(axes.left.batch, axes.right.batch):
        candidates = {roles[axis] for roles, axis in zip(operand_roles, pair) if roles is not None}
        role = candidates.pop()
        if candidates or has_row([role]) or (role is not None and None in kinds([role])):
            return None
        batch.append(role)
    free: list[Role] = []
    summed: list[Roles] = []
    for roles, factor in zip(operand_roles, axes.factors):
        free_roles = [None if roles is None else roles[axis] for axis in (*factor.free, *factor.summed)]
        if any(role is not None and not has_row([role]) for role in free_roles):
            return None
        free += free_roles[: len(factor.free)]
        if roles is not None:
            summed.append(tuple(free_roles[len(factor.free) :]))
    if any(map(has_row, summed)):
        return SUMMED if len(set(summed)) == 1 and not has_row(free) else None
    return (*batch, *free) if sum(has_row([role]) for role in free) == 1 else None


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
    arranged_roles = [f.arranged(batch, free_roles, summed) for f, free_roles in zip(axes.factors, free)]
    fits = all(known.get(n, free_roles) == free_roles for n, free_roles in zip(node.inputs, arranged_roles))
    return arranged_roles if fits else None


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
    return None


def _reshaped(roles: Roles, before: Shape, after: Shape) -> Roles | None:
    """The roles of the axes of what is reshaped; None where a part that is something to rows would be cut, or where an
    axis would have several parts that a panel has more than one element of."""
    axes, others = long_axes(before), long_axes(after)
    roles_after: list[Role] = [None] * len(after)
    if same_extents(tuple(before[a] for a in axes), tuple(after[a] for a in others)):
        for source, axis in zip(axes, others):
            roles_after[axis] = roles[source]
        return tuple(roles_after)
    if not is_static((*before, *after)) or 0 in before:
        return None
    parts = [(part, static_size((n,))) for a in axes for part, n in parts_of(roles[a], before[a])]
    for axis in others:
        own_axes: list[tuple[int | None, int]] = []
        missing = static_size((after[axis],))
        while missing > 1:
            part, extent = parts.pop(0)
            if extent > missing and part is None and extent % missing == 0:
                parts.insert(0, (None, extent // missing))
                extent = missing
            if missing % extent:
                return None
            missing //= extent
            if own_axes and own_axes[-1][0] is part is None:
                own_axes[-1] = None, own_axes[-1][1] * extent
            else:
                own_axes.append((part, extent))
        if sum(part is None or part == ROW for part, _ in own_axes) > 1:
            return None
        roles_after[axis] = own_axes[0][0] if len(own_axes) == 1 else tuple(own_axes)
    return tuple(roles_after)


def parts_of(role: Role, extent: Extent) -> tuple[Part, ...]:
    """The parts of an axis."""
    return role if isinstance(role, tuple) else ((role, extent),)


def kinds(roles: Iterable[Role]) -> set[int | None]:
    """The roles of all parts of axes."""
    return {part for role in roles for part, _ in parts_of(role, 1)}


def has_row(roles: Iterable[Role]) -> bool:
    """Whether rows are among the parts of axes."""
    return ROW in kinds(roles)


def in_row_block(role: Role) -> int | None:
    """What an axis is within a panel: ROW; None where it has all elements of a part; else there is one element."""
    row_kinds = kinds([role])
    return ROW if ROW in row_kinds else None if None in row_kinds else row_kinds.pop()


def row_block_shape(shape: Shape, roles: Roles, height: int) -> Shape:
    """The shape of what a panel of so many rows has of a value."""

    def extent(part: int | None, whole: Extent) -> Extent:
        return whole if part is None else height if part == ROW else 1

    return tuple(product(tuple(extent(*part) for part in parts_of(role, whole))) for role, whole in zip(roles, shape))


def long_axes(shape: Shape) -> list[int]:
    """The axes of other than one element."""
    return [axis for axis, extent in enumerate(shape) if not is_one(extent)]


def free_extents(shape: Sequence[Extent], roles: Roles) -> Iterator[Extent]:
    """The extents of what belongs to one row."""
    parts = (part for extent, role in zip(shape, roles) for part in parts_of(role, extent))
    return (extent for part, extent in parts if part is None)


def is_created(node: Node, roles: Roles | None = None) -> bool:
    """Whether a value is made of nothing but counters and numbers, so that a panel can make its part; or whatever rows
    are, if nothing is said of its axes."""
    if node.is_parameter or node.op.kind not in (Kind.CREATE, Kind.VIEW, Kind.ELEMENTWISE):
        return False
    roles = (None,) * len(node.shape) if roles is None else roles
    if node.op.kind is Kind.CREATE:
        return _is_counted(node, roles)
    operand_roles = input_roles(node, roles, {})
    return operand_roles is not None and all(
        is_created(n, operand_role) for n, operand_role in zip(node.inputs, operand_roles)
    )


def _is_counted(node: Node, roles: Roles) -> bool:
    """Whether a panel can make its part of what is made of nothing."""
    if node.op.name == "constant":
        return node.shape == ()
    if node.op.name != "iota":
        return False
    role = roles[node.attrs["axis"]]
    return role is None or (role == ROW and dt.is_integer(node.dtype))
