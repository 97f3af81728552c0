"""Builders: the one way to apply an op, to traced nodes here and to live tensors in the front end.

Rules of the op table (derivatives, expansions) are written against a builder, so they are one code for both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Union

import numpy as np

from hybridflow.compiler.ir.graph import Graph, Literal, Node, Role, parameter
from hybridflow.compiler.ir.types import TensorType


class Value(Protocol):
    """What ops are applied to: a node of a graph, a live tensor, or a tensor of a trace."""

    @property
    def type(self) -> TensorType: ...


# What a derivative rule returns for an input: its cotangent, a function that makes it on demand, or None for zero.
Cotangent = Union[Value, Callable[[], Value], None]


class Builder:
    """``b.add(x, y)`` applies the op named ``add``.  A value is anything with a ``type``.

    Strict: shapes and dtypes must already fit.  Subclasses say what applying an op means.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table

    def emit(self, op: Any, *inputs: Any, **attrs: Any) -> Any:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        try:
            op = self._table[name]
        except KeyError:
            raise AttributeError(f"[builder] there is no op {name!r}") from None

        self.__dict__[name] = result = functools.partial(self.emit, op)
        return result

    def literal(self, value: Any, dtype: Any) -> Any:
        """A scalar constant of shape ()."""
        return self.constant(value=Literal.of(np.asarray(value, dtype)))

    def results(self, value: Any) -> tuple[Any, ...]:
        """The results of an op with several, as values of their own."""
        return tuple([self.project(value, index=k) for k in range(len(value.type.parts))])

    def full(self, value: Any, like: Any) -> Any:
        """``value`` everywhere, with the shape and dtype of ``like``, a type or a value."""
        scalar = self.literal(value, like.dtype)
        return self.broadcast(scalar, shape=like.shape, axes=()) if like.shape else scalar


class GraphBuilder(Builder):
    """Records nodes.  ``location``, the user's file:line, is stamped on each new node."""

    def __init__(self, table: Mapping[str, Any], name: str = "graph") -> None:
        super().__init__(table)
        self.name = name
        self.inputs: list[Node] = []
        self.nodes: list[Node] = []
        self.location: str | None = None
        self.exchanged: Node | None = None  # what the last exchange with other processes returned, for the next one

    def parameter(self, type: TensorType, name: str = "", role: Role = Role.ARGUMENT) -> Node:
        node = parameter(type, name or f"x{len(self.inputs)}", role, self.location)
        self.inputs.append(node)
        return node

    def emit(self, op: Any, *inputs: Node, **attrs: Any) -> Node:
        types = tuple([n.type for n in inputs])
        if op.canon is not None:
            attrs = op.canon(types, attrs)
        node = Node(op, inputs, attrs, op.result(types, attrs), self.location)
        self.nodes.append(node)
        return node

    def change(self, node: Node, **attrs: Any) -> None:
        """Give a node of a graph that is not finished other attributes, and the type that it has with them: for calls
        whose results are known one by one."""
        types = tuple([n.type for n in node.inputs])
        changed = dict(node.attrs) | attrs
        changed = changed if node.op.canon is None else node.op.canon(types, changed)
        object.__setattr__(node, "attrs", changed)
        object.__setattr__(node, "type", node.op.result(types, changed))

    def finish(self, outputs: Any, updates: Any = None) -> Graph:
        return Graph(self.name, tuple(self.inputs), tuple(self.nodes), tuple(outputs), dict(updates or {}))
