"""Patterns over nodes, written like the expressions that they match, for tables of local rewrites.

    X, Y = Value(), Value()
    -(-X)                        a negation of a negation
    X * 1                        multiplication by a constant that is 1 everywhere, in either order
    op.reshape(op.reshape(X))    any op, by its name

A pattern is also the name under which a match keeps the node that it matched.  Commutative ops match in either
order; a pattern that occurs twice must match one and the same node both times.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.graph import Literal, Node
from hybridflow.compiler.ops import TABLE, Kind


def literal(node: Node) -> Literal | None:
    """The array that a constant is; None for other nodes."""
    value = node.attrs.get("value")
    return value if isinstance(value, Literal) else None


def splat(node: Node) -> np.generic | None:
    """The scalar that every element of ``node`` is known to be, bit for bit, or None."""
    while not node.is_parameter and node.op.kind is Kind.VIEW:
        node = node.inputs[0]
    known = literal(node)
    if known is None:
        return None
    first = known.data[: known.type.dtype.itemsize]
    if not first or known.data != first * known.type.size:
        return None
    return np.frombuffer(first, known.type.dtype)[0]


def in_dtype(value: Any, dtype: dtypes.DType) -> np.generic | None:
    """The number ``value`` as a scalar of ``dtype``, or None where the dtype cannot hold it."""
    if dtypes.is_bool(dtype) != isinstance(value, (bool, np.bool_)):
        return None
    if dtypes.is_integer(dtype):
        info = np.iinfo(dtype)
        if not (info.min <= value <= info.max and value == int(value)):
            return None
    return np.array([value], dtype)[0]


def same_bits(a: np.generic, b: np.generic) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


class Match(dict["Pattern", Node]):
    """The nodes that the parts of a pattern matched; ``root`` is the node that the whole pattern matched."""

    def __init__(self, root: Node) -> None:
        super().__init__()
        self.root = root


class Pattern:
    """Something a node may match.  The operators build patterns of the ops of the same meaning."""

    def accepts(self, node: Node, match: Match) -> bool:
        """Whether ``node`` fits; what was bound on the way stands in ``match``."""
        raise NotImplementedError

    def bind(self, node: Node, match: Match) -> bool:
        if self in match:
            return match[self] is node
        if not self.accepts(node, match):
            return False
        match[self] = node
        return True

    def __add__(self, other: Pattern | float) -> Apply:
        return Apply("add", self, other)

    def __sub__(self, other: Pattern | float) -> Apply:
        return Apply("subtract", self, other)

    def __mul__(self, other: Pattern | float) -> Apply:
        return Apply("multiply", self, other)

    def __truediv__(self, other: Pattern | float) -> Apply:
        return Apply("divide", self, other)

    def __neg__(self) -> Apply:
        return Apply("negative", self)


class Value(Pattern):
    """Matches every node for which ``condition`` holds."""

    def __init__(self, condition: Callable[[Node], bool] | None = None) -> None:
        self.condition = condition

    def accepts(self, node: Node, match: Match) -> bool:
        return self.condition is None or self.condition(node)


class Number(Pattern):
    """Matches a constant that is this number everywhere, bit for bit: 0.0 is not -0.0."""

    def __init__(self, value: float) -> None:
        self.value = value

    def accepts(self, node: Node, match: Match) -> bool:
        value = splat(node)
        if value is None:
            return False
        wanted = in_dtype(self.value, value.dtype)
        return wanted is not None and same_bits(value, wanted)


class Apply(Pattern):
    """Matches an op by name with patterns for its inputs; numbers are constants, a lone ``...`` any inputs."""

    def __init__(self, name: str, *inputs: Pattern | float | EllipsisType) -> None:
        self.op = TABLE[name]
        self.any_inputs = inputs == (...,)
        operands = [p for p in inputs if not isinstance(p, EllipsisType)]
        self.inputs = tuple(p if isinstance(p, Pattern) else Number(p) for p in operands)
        self.swaps = bool(self.op.facts.get("commutative"))

    def accepts(self, node: Node, match: Match) -> bool:
        if node.op is not self.op:
            return False
        if self.any_inputs:
            return True
        return self._accepts(node.inputs, match) or (self.swaps and self._accepts(node.inputs[::-1], match))

    def _accepts(self, nodes: tuple[Node, ...], match: Match) -> bool:
        bound = len(match)
        for pattern, node in zip(self.inputs, nodes):
            if not pattern.bind(node, match):
                while len(match) > bound:  # undo, for another order
                    match.popitem()
                return False
        return True


class _Ops:
    """``op.name(patterns...)``: the pattern of the op with that name."""

    def __getattr__(self, name: str) -> Callable[..., Apply]:
        return lambda *inputs: Apply(name, *inputs)


op = _Ops()


def find(pattern: Pattern, node: Node) -> Match | None:
    """How ``pattern`` matches ``node``, or None."""
    match = Match(node)
    return match if pattern.bind(node, match) else None
