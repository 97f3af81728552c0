"""Operations that wait for others: ``tf.group`` and its like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.nodes import Operation
from hybridflow.compat.v1.shaping import identity
from hybridflow.compat.v1.table import Table


def no_op(name: str | None = None) -> Operation:
    """Does nothing, after what ``control_dependencies`` says."""
    return default_graph().add("NoOp", name, [], [], lambda run, values: [])


def group(*inputs: object, name: str | None = None) -> Operation:
    """An operation that is done when all of these are."""
    graph = default_graph()
    flat: list[Any] = []
    for x in inputs:
        flat += x if isinstance(x, (list, tuple)) else [x]
    with graph.control_dependencies(flat):
        return no_op(name or "group_deps")


def tuple_(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, each of which waits for all of them."""
    graph = default_graph()
    with graph.control_dependencies([*[t for t in tensors if t is not None], *(control_inputs or ())]):
        return [None if t is None else identity(t) for t in tensors]


TABLE = Table(no_op=no_op, group=group, tuple=tuple_)
