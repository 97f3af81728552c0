"""Attribute values: which types may stand in a node's attributes, and when two of them are the same.

Python's ``==`` will not do: 1, 1.0 and True are equal there, 0.0 equals -0.0 and nan differs from itself.  Here two
values are the same when their types and their bits are.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from hybridflow.compiler.ir.graph import Graph, Literal, Node
from hybridflow.compiler.ir.results import TokenType
from hybridflow.compiler.ir.types import Dim, TensorType

_PLAIN = (int, str, Dim, Literal, TensorType, TokenType, type(None))


def float_bits(value: float) -> bytes:
    return struct.pack("<d", value)


def key(value: Any) -> Hashable:
    """A hashable stand-in for an attribute value: equal keys mean the same type and bits.

    Raises TypeError for a value that may not be an attribute.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return tuple([key(v) for v in value])
    # A tag is a type object, which is no attribute itself, so that tagged pairs and tuples cannot be confused.
    if kind is bool:
        return (bool, value)
    if kind is float:
        return (float, float_bits(value))
    if isinstance(value, np.dtype):
        return (np.dtype, value)
    if kind is Graph:
        return graph_key(value)
    raise TypeError(f"{value!r} of type {kind.__name__} may not be an attribute")


def attrs_key(attrs: Mapping[str, Any]) -> Hashable:
    """``key`` of a whole set of attributes, whatever their order."""
    if not attrs:
        return ()
    return tuple([(name, key(attrs[name])) for name in sorted(attrs)])


def node_attrs_key(node: Node) -> Hashable:
    """The key of a node's attributes, found once for each node: passes ask for it again and again."""
    try:
        return node._attrs_key
    except AttributeError:
        result = attrs_key(node.attrs)
        object.__setattr__(node, "_attrs_key", result)
        return result


class _GraphKey:
    """The structure of a graph, hashed once."""

    __slots__ = ("_hash", "parts")

    def __init__(self, parts: Hashable) -> None:
        self.parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is _GraphKey and self._hash == other._hash and self.parts == other.parts)


def graph_key(graph: Graph) -> Hashable:
    """Equal keys mean graphs that compute the same: names and the user's lines do not count."""
    result = graph.__dict__.get("_key")
    if result is None:
        number: dict[Node, int] = {}
        for node in (*graph.inputs, *graph.nodes):
            number.setdefault(node, len(number))

        def place(node: Node) -> int:
            return number.get(node, -1)  # -1: a value of another graph, which the verifier refuses

        nodes = [(n.op.name, tuple(map(place, n.inputs)), n.type, node_attrs_key(n)) for n in graph.nodes]
        results = (tuple(map(place, graph.outputs)), tuple((i, place(n)) for i, n in sorted(graph.updates.items())))
        result = _GraphKey((tuple(n.type for n in graph.inputs), tuple(nodes), *results))
        graph.__dict__["_key"] = result
    return result


def same_attrs(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return attrs_key(a) == attrs_key(b)
