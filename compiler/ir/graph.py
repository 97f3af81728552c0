"""Graphs: typed SSA in program order, with immutable nodes.

A node is its own value.  One with several results has a tuple type (``results.TupleType``), and a ``project`` node for
each result that somebody reads.  An attribute may be a graph: control flow carries its bodies so.  Such sub-graphs are
closed: all that they read comes in through their inputs, but for symbolic extents, which are the whole program's.

State is functional: a variable enters as an input with role STATE, and the value it has at
the end leaves in ``Graph.updates``; the order of its reads and writes is therefore data flow, which no pass can
break, and the buffer plan turns an update into a write in place.  Arguments that calls give up have updates, too:
results that may lie in their memory.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ir.types import TensorType
from hybridflow.quick_dataclasses import dataclass


class Effect(enum.Enum):
    """What else computing a node may do."""

    __hash__ = object.__hash__  # members are single objects; the hash of their names takes a call in Python

    NONE = "none"
    CHECKED = "checked"  # it may fail a check of its own result, which nobody misses where nobody reads that
    RAISES = "raises"  # it may fail a check; of two such nodes the first in program order is the one that counts
    ORDERED = "ordered"  # it takes a token and hands one on: all of these happen, once each, in the tokens' order

    @property
    def is_observable(self) -> bool:
        """Whether a node is computed even if nobody reads its value."""
        return self is Effect.RAISES or self is Effect.ORDERED


class Op(Protocol):
    """What the IR knows of an op; the full declaration is ``compiler.ops.table.OpDef``."""

    name: str
    effect: Effect  # the most that any use of it does
    raises: Any  # (types, attrs) -> bool: whether it may fail a check; None where it never does
    calls_host: bool  # whether it is a function in Python


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
        return np.frombuffer(self.data, self.type.dtype).reshape(self.type.shape)


class _Parameter:
    """The pseudo-op of graph inputs."""

    name = "parameter"
    effect = Effect.NONE
    raises = None
    calls_host = False

    def __repr__(self) -> str:
        return "PARAMETER"


PARAMETER: object = _Parameter()


class Role(enum.Enum):
    """Where a graph input comes from at a call."""

    ARGUMENT = "argument"  # a tensor that the caller passes
    CAPTURE = "capture"  # a tensor that the traced function closed over
    STATE = "state"  # a Variable's buffer, read and perhaps updated


class _Draft:
    """A node that is being made: attributes are set as usual."""

    __slots__ = ("_attrs_key", "attrs", "inputs", "is_parameter", "kept_by", "op", "type", "where")


class Node(_Draft):
    """One operation and its value.  Immutable; compared by identity."""

    __slots__ = ()

    op: Any
    inputs: tuple[Node, ...]
    attrs: Mapping[str, Any]
    type: Any  # a TensorType, or a TupleType where there are several results
    where: str | None  # the user's file:line
    is_parameter: bool
    kept_by: tuple[Any, ...]  # rules that are known to leave it as it is, see passes.rewriter
    _attrs_key: Any  # see ir.attributes.node_attrs_key, which sets it when it is first asked

    def __new__(
        cls,
        op: Any,
        inputs: Iterable[Node],
        attrs: Mapping[str, Any],
        type: Any,
        where: str | None = None,
    ) -> Node:
        # As a draft, because setting attributes of something immutable takes three times as long.
        result: Any = object.__new__(_Draft)
        result.op = op
        result.inputs = tuple(inputs)
        result.attrs = attrs
        result.type = type
        result.where = where
        result.is_parameter = op is PARAMETER
        result.kept_by = ()
        result.__class__ = cls
        return result

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"[ir] nodes are immutable: cannot set {name!r}")

    def note_kept_by(self, rule: object) -> None:
        object.__setattr__(self, "kept_by", (*self.kept_by, rule))

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    @property
    def may_raise(self) -> bool:
        """Whether computing it may fail a check."""
        op = self.op
        return op.raises is not None and op.raises(tuple([n.type for n in self.inputs]), self.attrs)

    @property
    def effect(self) -> Effect:
        """What computing this node may do besides making its value."""
        most = self.op.effect
        if most is Effect.NONE:
            return most
        if most is Effect.ORDERED and any(is_token(n.type) for n in self.inputs):
            return most
        if not self.may_raise:
            return Effect.NONE
        if most is Effect.ORDERED:
            inner = {node.effect for graph in graphs_in(self.attrs) for node in graph.nodes} - {Effect.NONE}
            return Effect.CHECKED if inner == {Effect.CHECKED} else Effect.RAISES
        return most

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.type}>"


def parameter(type: TensorType, name: str, role: Role = Role.ARGUMENT, where: str | None = None) -> Node:
    return Node(PARAMETER, (), {"name": name, "role": role}, type, where)


@dataclass(frozen=True, eq=False)
class Graph:
    """``nodes`` holds every non-parameter node, each after its inputs.  ``outputs`` and the values of ``updates``
    (input position -> its last STATE, or what may replace that ARGUMENT) may be any node, parameters and repeats
    included.  ``conditions`` are extents that are 0 or more in every call: what a program that goes elsewhere takes for
    granted, and whoever calls it checks."""

    name: str
    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    updates: Mapping[int, Node] = field(default_factory=dict)
    conditions: tuple[Any, ...] = ()

    @property
    def results(self) -> tuple[Node, ...]:
        """Outputs, then updates in input order: everything that must be computed."""
        return self.outputs + tuple(self.updates[i] for i in sorted(self.updates))

    @property
    def arguments(self) -> list[Node]:
        """Those of the inputs that are arguments of the function."""
        return [node for node in self.inputs if node.attrs["role"] is Role.ARGUMENT]

    @cached_property
    def may_raise(self) -> bool:
        """Whether running it may fail a check."""
        return any(node.may_raise for node in self.nodes)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether something in it happens in an order that tokens give."""
        return any(node.effect is Effect.ORDERED for node in self.nodes)

    @cached_property
    def calls_host(self) -> bool:
        """Whether it calls functions in Python: the user's, or LAPACK's."""
        for node in self.nodes:
            if node.op.calls_host or any(graph.calls_host for graph in graphs_in(node.attrs)):
                return True
        return False

    @cached_property
    def calls_functions(self) -> bool:
        """Whether it calls functions of the user's, which it knows by their numbers."""
        for node in self.nodes:
            if node.op.calls_host and "number" in node.attrs:
                return True
            if any(graph.calls_functions for graph in graphs_in(node.attrs)):
                return True
        return False

    def users(self) -> dict[Node, list[Node]]:
        """The nodes that read each node, a reader once per use."""
        readers: dict[Node, list[Node]] = {n: [] for n in self.inputs + self.nodes}
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
            self.conditions,
        )


def graphs_in(attrs: Mapping[str, Any]) -> list[Graph]:
    """The sub-graphs among a node's attributes, in the order of their names."""
    by_attr: dict[str, list[Graph]] = {}
    for name, value in attrs.items():
        if isinstance(value, Graph):
            by_attr[name] = [value]
        elif isinstance(value, tuple):
            graphs = list(_graphs_among(value))
            if graphs:
                by_attr[name] = graphs
    return [graph for name in sorted(by_attr) for graph in by_attr[name]] if by_attr else []


def _graphs_among(values: tuple[Any, ...]) -> Iterator[Graph]:
    for value in values:
        if isinstance(value, Graph):
            yield value
        elif isinstance(value, tuple):
            yield from _graphs_among(value)
