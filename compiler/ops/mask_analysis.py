"""Masks: which elements of a value anybody looks at, where that is said by counters and flags."""

from __future__ import annotations

from collections.abc import Container, Sequence

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops.op_table import Kind


def is_mask(node: Node, leaves: Container[Node] = ()) -> bool:
    """Whether a bool is made of counters, whole numbers and flags alone, as the masks of attention are: then whole
    regions of it are likely to be False.  What floats are compared to is scattered."""
    return dt.is_bool(node.dtype) and _is_whole(node, leaves)


def _is_whole(node: Node, leaves: Container[Node]) -> bool:
    if not (dt.is_bool(node.dtype) or dt.is_integer(node.dtype)) or node.may_raise:
        return False
    if node.is_parameter or node in leaves:
        return True
    if node.op.kind is Kind.CREATE:
        return not node.inputs  # rather than random
    return node.op.kind in (Kind.ELEMENTWISE, Kind.VIEW) and all(_is_whole(n, leaves) for n in node.inputs)


def is_masked(node: Node, within: Container[Node]) -> bool:
    """Whether a value is made element by element, of nodes ``within`` alone, of one that a mask has chosen."""
    waiting, seen = [node], {node}
    while waiting:
        one = waiting.pop()
        if one not in within or one.op.kind is not Kind.ELEMENTWISE:
            continue
        if one.op.name == "where" and is_mask(one.inputs[0]):
            return True
        new = [n for n in one.inputs if n not in seen]
        seen.update(new)
        waiting += new
    return False


def needed_elements(
    value: Node, nodes: Sequence[Node], results: Container[Node], leaves: Container[Node]
) -> Node | None:
    """The mask by which alone the ``nodes``, of which some are ``results``, look at ``value``; None where something
    looks at it in any case, or where there are several masks.  What lies in memory, ``leaves``, is not made of it."""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for n in dict.fromkeys(node.inputs):
            users.setdefault(n, []).append(node)
    masks: set[Node] = set()
    waiting, seen = [value], {value}
    while waiting:
        one = waiting.pop()
        if one in results or one.may_raise:
            return None
        for user in users.get(one, ()):
            if user.op.name == "where" and one is user.inputs[1] and one not in (user.inputs[0], user.inputs[2]):
                masks.add(user.inputs[0])
            elif user.op.kind is not Kind.ELEMENTWISE and user.op.name != "reshape":
                return None
            elif user not in seen:
                seen.add(user)
                waiting.append(user)
    if len(masks) != 1:
        return None
    (mask,) = masks
    return mask if is_mask(mask, leaves) else None
