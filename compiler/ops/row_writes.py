"""What iterations of a loop write into rows of carries that they do not read: lists whose length a tensor decides.

Without a loop the derivative of what becomes of such a list comes before those of all that reads its items in the loop.
So it begins the sum for an item, which is why derivatives of iterations ask here what is written, and when.  It is not
so with rows of a tensor that code replaces: that is done where it stands, and such rows are left alone here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ops.op_table import TABLE, Kind

LIST_IS_FULL = "a list needs more room."
"""What ``require`` says of the number of items that a list has when more were written into its rows."""


@dataclass(frozen=True)
class RowWrites:
    """The ``nodes`` of a body that write rows of the carries ``buffers``.

    ``late`` has for written values that an iteration hands to the next one their carry.  What the nodes that write
    those read besides is ``operands``."""

    nodes: tuple[Node, ...] = ()
    buffers: tuple[int, ...] = ()
    late: dict[Node, int] = field(default_factory=dict)
    operands: tuple[Node, ...] = ()


def row_writes(body: Graph, carries: int) -> RowWrites:
    """What iterations write into rows."""
    readers, counts = _readers(body), _counts(body)
    chains: dict[int, list[Node]] = {}
    for k in range(carries):
        result = _chain(body.outputs[k], readers, counts) if _is_float(body.inputs[k]) else None
        if result is not None and result[0] is body.inputs[k] and result[1]:
            chains[k] = result[1]
    if not chains:
        return RowWrites()
    nodes = {node for chain in chains.values() for node in chain}
    late: dict[Node, int] = {}
    for chain in chains.values():
        for value in [value for node in chain for value in _written(node)]:
            carry = next((k for k in range(carries) if body.outputs[k] is value), None)
            if carry is not None and carry not in chains and value not in body.inputs:
                late[value] = carry
    ordered = tuple([node for node in body.nodes if node in nodes])
    inside = {*nodes, *late, *(body.inputs[k] for k in chains)}
    read = (
        dict.fromkeys(x for node in ordered for x in node.inputs if not _is_of(x, inside) or not _is_float(x))
        if late
        else {}
    )
    invariant = set(body.inputs[carries:])
    return RowWrites(ordered, tuple(chains), late, tuple([x for x in read if x not in invariant]))


def _is_of(value: Node, nodes: set[Node]) -> bool:
    return value in nodes or (not value.is_parameter and value.op.kind is Kind.PROJECT and value.inputs[0] in nodes)


def _is_float(value: Node) -> bool:
    return not is_token(value.type) and is_inexact(value.type.dtype)


def _readers(graph: Graph) -> Counter[Node]:
    """How often each value is read, or returned."""
    return Counter([*(x for node in graph.nodes for x in node.inputs), *graph.outputs])


def _counts(graph: Graph) -> set[Node]:
    """The numbers of items that lists have before more are written into their rows."""
    totals = [n.inputs[1] for n in graph.nodes if n.op is TABLE["require"] and n.attrs["message"] == LIST_IS_FULL]
    return {x for total in totals if _is_sum(total) for x in total.inputs if x.is_parameter or x.op.name != "constant"}


def _is_sum(node: Node) -> bool:
    return not node.is_parameter and node.op.name in ("add", "checked_add")


def _is_row_of_list(write: Node, counts: set[Node]) -> bool:
    """Whether rows are written behind the items of a list."""
    at = write.inputs[1]
    if not at.is_parameter and at.op is TABLE["take"]:
        at = at.inputs[1]
    return at in counts or (_is_sum(at) and not counts.isdisjoint(at.inputs))


def _chain(node: Node, readers: Counter[Node], counts: set[Node]) -> tuple[Node, list[Node]] | None:
    """The parameter that a value is, but for rows of a list that are written, and the nodes that write them, the last
    one first; None for other values, and where something reads one on the way."""
    chain: list[Node] = []
    while readers[node] == 1:
        if node.is_parameter:
            return node, chain
        if node.op is TABLE["scatter_set"]:
            if not _is_row_of_list(node, counts):
                return None
            chain.append(node)
            node = node.inputs[0]
            continue
        cond = node.inputs[0] if node.op.kind is Kind.PROJECT else node
        if cond.op is not TABLE["cond"] or any(is_token(x.type) for x in cond.inputs):
            return None
        position = _passed_on(cond, node.attrs["index"])
        if position is None or any(_is_float(cond.inputs[k]) for k in _uses(cond)[1] - {position}):
            return None  # what a branch computes for a row has its derivative where it stands
        chain.append(cond)
        node = cond.inputs[position]
    return None


def _passed_on(cond: Node, index: int) -> int | None:
    """Which operand a result of a cond is but for rows that are written, if it is the only result of floats."""
    positions = set()
    for branch in cond.attrs["branches"]:
        if [k for k, out in enumerate(branch.outputs) if _is_float(out)] != [index]:
            return None
        result = _chain(branch.outputs[index], _readers(branch), _counts(branch))
        positions.add(None if result is None else branch.inputs.index(result[0]) + 1)
    return positions.pop() if len(positions) == 1 else None


def _written(node: Node) -> Sequence[Node]:
    """The values that a node of a chain writes as they are, and does nothing else with."""
    if node.op is TABLE["scatter_set"]:
        return [node.inputs[2]]
    written, others = _uses(node)
    return [node.inputs[k] for k in sorted(written - others) if _is_float(node.inputs[k])]


def _uses(cond: Node) -> tuple[set[int], set[int]]:
    """The operands of a cond that some branch only writes into rows, and those that some branch reads otherwise."""
    written: set[int] = set()
    others: set[int] = set()
    for branch in cond.attrs["branches"]:
        updates = Counter(n.inputs[2] for n in branch.nodes if n.op is TABLE["scatter_set"])
        readers = _readers(branch)
        for k, value in enumerate(branch.inputs):
            if readers[value]:
                (written if updates[value] == readers[value] else others).add(k + 1)
    return written, others
