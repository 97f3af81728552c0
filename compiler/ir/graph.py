"""Graphs: typed SSA in program order, with immutable nodes.

A node is its own (single) value.  Ops that will need several results return a tuple type and a projection, as in
XLA; there is none yet.  State is functional: a variable enters as an input with role STATE, and the value it has at
the end leaves in ``Graph.updates``; the order of its reads and writes is therefore data flow, which no pass can
break, and the buffer plan turns an update into a write in place.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hybridflow.compiler.ir.types import TensorType


class Op(Protocol):
    """What the IR knows of an op; the full declaration is ``compiler.ops.table.OpDef``."""

    name: str
    raises: Any  # (types, attrs) -> bool: whether it may fail a check; None where it never does


MAX_LITERAL_BYTES = 4096
"""Larger constants are arguments: a literal is compiled into the code, printed, hashed and compared."""


@dataclass(frozen=True)
class Literal:
    """A small constant array as a hashable attribute; equal means the same type and the same bits."""

    type: TensorType
    data: bytes

    @staticmethod
    def of(array: np.ndarray) -> Literal:
        return Literal(TensorType(array.shape, array.dtype), np.ascontiguousarray(array).tobytes())

    @property
    def array(self) -> np.ndarray:
        return np.frombuffer(self.data, self.type.dtype).reshape(self.type.shape)  # type: ignore[arg-type]


class _Parameter:
    """The pseudo-op of graph inputs."""

    name = "parameter"
    raises = None

    def __repr__(self) -> str:
        return "PARAMETER"


PARAMETER: Any = _Parameter()


class Role(enum.Enum):
    """Where a graph input comes from at a call."""

    ARGUMENT = "argument"  # a tensor that the caller passes
    CAPTURE = "capture"  # a tensor that the traced function closed over
    STATE = "state"  # a Variable's buffer, read and perhaps updated


class Node:
    """One operation and its value.  Immutable; compared by identity."""

    __slots__ = ("_attrs_key", "attrs", "inputs", "op", "type", "where")

    op: Any
    inputs: tuple[Node, ...]
    attrs: Mapping[str, Any]
    type: TensorType
    where: str | None  # the user's file:line
    _attrs_key: Any  # see ir.attributes.node_attrs_key, which sets it when it is first asked

    def __init__(
        self,
        op: Any,
        inputs: Iterable[Node],
        attrs: Mapping[str, Any],
        type: TensorType,
        where: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "op", op)
        put(self, "inputs", tuple(inputs))
        put(self, "attrs", attrs)
        put(self, "type", type)
        put(self, "where", where)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"[ir] nodes are immutable: cannot set {name!r}")

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    @property
    def is_parameter(self) -> bool:
        return self.op is PARAMETER

    @property
    def may_raise(self) -> bool:
        """Whether computing it may fail a check, so that it is never left out."""
        op = self.op
        return op.raises is not None and op.raises(tuple([n.type for n in self.inputs]), self.attrs)

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.type}>"


def parameter(type: TensorType, name: str, role: Role = Role.ARGUMENT, where: str | None = None) -> Node:
    return Node(PARAMETER, (), {"name": name, "role": role}, type, where)


@dataclass(frozen=True)
class Graph:
    """``nodes`` holds every non-parameter node, each after its inputs.  ``outputs`` and the values of ``updates``
    (input position -> final value of that STATE input) may be any node, parameters and repeats included."""

    name: str
    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    updates: Mapping[int, Node] = field(default_factory=dict)

    @property
    def results(self) -> tuple[Node, ...]:
        """Outputs, then updates in input order: everything that must be computed."""
        return self.outputs + tuple(self.updates[i] for i in sorted(self.updates))

    def users(self) -> dict[Node, list[Node]]:
        """The nodes that read each node, a reader once per use."""
        readers: dict[Node, list[Node]] = {n: [] for n in (*self.inputs, *self.nodes)}
        for node in self.nodes:
            for source in node.inputs:
                readers[source].append(node)
        return readers

    def rebuild(self, replaced: Mapping[Node, Node], nodes: Iterable[Node] | None = None) -> Graph:
        """This graph with its results mapped through ``replaced`` and the given nodes."""
        return Graph(
            self.name,
            self.inputs,
            tuple(self.nodes if nodes is None else nodes),
            tuple(replaced.get(n, n) for n in self.outputs),
            {i: replaced.get(n, n) for i, n in self.updates.items()},
        )
