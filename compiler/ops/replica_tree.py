"""The tree by which the values of replicas are added up: left-complete and binary, a function of their number alone.

The node over the replicas [low, high) combines those over [low, middle) and [middle, high).  There ``middle`` is as far
from ``low`` as the largest power of two below ``high - low``.  A run of neighbouring replicas consists of few whole
nodes, so whoever has a run can combine them.  The nodes of all runs make the same total whatever the runs are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def middle(low: int, high: int) -> int:
    """Where a node over the replicas [low, high), two or more, is divided."""
    return low + (1 << ((high - low - 1).bit_length() - 1))


def folded(combine: Callable[[T, T], T], values: Sequence[T]) -> T:
    """The root of the tree over ``values``.  Nodes of one length over one object all along are one node."""
    known: dict[tuple[int, int], T] = {}
    alike = all(value is values[0] for value in values)

    def node(low: int, high: int) -> T:
        if high - low == 1:
            return values[low]
        key = (0, high - low) if alike else (low, high)
        if key not in known:
            at = middle(low, high)
            known[key] = combine(node(low, at), node(at, high))
        return known[key]

    return node(0, len(values))


def canonical_nodes(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """The largest nodes of the tree over ``size`` replicas that lie within the run [begin, end), in order."""

    def within(low: int, high: int) -> list[tuple[int, int]]:
        if end <= low or high <= begin:
            return []
        if begin <= low and high <= end:
            return [(low, high)]
        at = middle(low, high)
        return within(low, at) + within(at, high)

    return within(0, size) if size and begin < end else []


def finished(combine: Callable[[T, T], T], nodes: dict[tuple[int, int], T], size: int) -> T:
    """The root, from nodes that cover all ``size`` replicas, each once."""

    def node(low: int, high: int) -> T:
        if (low, high) in nodes:
            return nodes[low, high]
        at = middle(low, high)
        return combine(node(low, at), node(at, high))

    return node(0, size)
