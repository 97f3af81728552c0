"""Inputs that a function hides: what differs between two traces with the same arguments."""

from __future__ import annotations

from itertools import zip_longest

from hybridflow.compiler.ir import text
from hybridflow.compiler.ir.graph import Node
from hybridflow.core.devices import CPU, moved
from hybridflow.core.tensor import Tensor
from hybridflow.errors import TraceError
from hybridflow.jit.concrete_function import VALUE, ConcreteFunction
from hybridflow.jit.value_key import value_key


def check(one: ConcreteFunction, other: ConcreteFunction) -> None:
    """Raise TraceError, with the line, where two traces differ, which were made with the same arguments."""
    captured = _capture_that_differs(one, other)
    if captured is not None:
        raise _error(one, captured, "a tensor that it makes while it is traced holds other numbers the second time")
    names = text.value_names(one.graph), text.value_names(other.graph)
    for a, b in zip_longest(one.graph.nodes, other.graph.nodes):
        if a is None or b is None:
            raise _error(one, a or b, "one of them does more")
        was, now = (text.node_text(n, node_names, locations=False) for n, node_names in zip((a, b), names))
        if was != now:
            raise _error(one, a, f"``{was}`` the first time, and ``{now}`` the second")
    if text.to_text(one.graph, locations=False) != text.to_text(other.graph, locations=False):
        raise _error(one, None, "what is computed is used in another way the second time")
    for (kind, value), (_, again) in zip(one.plan, other.plan):
        if kind == VALUE and value_key(value) is not None and value_key(value) != value_key(again):
            raise _error(one, None, f"the result holds {value!r} the first time, and {again!r} the second")


def _capture_that_differs(one: ConcreteFunction, other: ConcreteFunction) -> Node | None:
    """The first node that reads a captured tensor which is another one in the other trace."""
    pairs = zip(one.graph.inputs, one.staged.sources, other.staged.sources)
    for node, a, b in pairs:
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a is not b and not _same(a, b):
            return next((n for n in one.graph.nodes if node in n.inputs), node)
    return None


def _same(a: Tensor, b: Tensor) -> bool:
    x, y = (moved(t._array, CPU) for t in (a, b))  # as they are: numpy() would lock arrays of the user's
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def _error(concrete: ConcreteFunction, node: Node | None, what: str) -> TraceError:
    return TraceError(
        concrete.name,
        f"two traces with the same arguments differ: {what}. It depends on something that is no argument and cannot be "
        "watched, such as a time, a random number or a counter: pass that as an argument, or use hf.random.",
        where=None if node is None else node.where,
    )
