"""Patterns of a traced graph that are one operator of ONNX: softmax and GELU.

A pattern is looked for where its last node is written.  What it is made of is written too, and left out at the end
where nobody reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir.graph import Node


class Composite(NamedTuple):
    """An operator, its operand and its attributes."""

    op: str
    operand: Node
    attributes: dict[str, Any]
    since: int  # the opset


def _plain(node: Node) -> Node:
    """What a value is a view of with the same elements: behind reshapes, broadcasts and stopped gradients."""
    while node.op.name in ("reshape", "broadcast", "stop_gradient"):
        (node,) = node.inputs
    return node


def _is_number(node: Node, value: float) -> bool:
    node = _plain(node)
    if node.op.name != "constant":
        return False
    array = node.attrs["value"].array
    return array.size == 1 and array.reshape(()) == np.asarray(value, array.dtype)


def _factors(node: Node, value: float) -> Node | None:
    """x, where the node is x times a number."""
    if node.op.name != "multiply":
        return None
    a, b = node.inputs
    if _is_number(b, value):
        return a
    return b if _is_number(a, value) else None


def softmax(node: Node) -> Composite | None:
    """exp(x - max(x)) / sum of it, along one axis."""
    above, below = node.inputs
    total = _plain(below)
    if (
        above.op.name != "exp"
        or total.op.name != "sum"
        or total.inputs[0] is not above
        or len(total.attrs["axes"]) != 1
    ):
        return None
    (moved,) = above.inputs
    if moved.op.name != "subtract":
        return None
    x, largest = moved.inputs[0], _plain(moved.inputs[1])
    if largest.op.name != "max" or largest.inputs[0] is not x or largest.attrs["axes"] != total.attrs["axes"]:
        return None
    (axis,) = total.attrs["axes"]
    kept = tuple(k for k in range(len(x.shape)) if k != axis)
    if any(not _is_along(view, kept) for view in (below, moved.inputs[1])):
        return None
    return Composite("Softmax", x, {"axis": axis}, 13)


def _is_along(view: Node, kept: tuple[int, ...]) -> bool:
    """Whether the last broadcast puts the axes back to where they were."""
    return view.op.name == "broadcast" and tuple(view.attrs["axes"]) == kept


def gelu(node: Node) -> Composite | None:
    """x / 2 * (1 + erf(x / sqrt(2)))"""
    for half, rest in (node.inputs, node.inputs[::-1]):
        x = _factors(half, 0.5)
        if x is None or rest.op.name != "add":
            continue
        for error, one in (rest.inputs, rest.inputs[::-1]):
            if error.op.name == "erf" and _is_number(one, 1.0) and _factors(error.inputs[0], 2**-0.5) is x:
                return Composite("Gelu", x, {}, 20)
    return None


PATTERNS: dict[str, Callable[[Node], Composite | None]] = {"divide": softmax, "multiply": gelu}
