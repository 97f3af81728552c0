"""Pieces of rules for many examples at once (``OpDef.batch``): values of examples have one axis more, in front.

A rule is called as ``rule(b, op, size, batched, *inputs, **attrs)``: ``batched`` says which of the inputs have the
axis, of extent ``size``; at least one has.  It returns the op's result with the axis; of ops with several results that
do not all depend on the examples, ``PartlyBatched``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.compiler.ir.build import Builder, Value
from hybridflow.compiler.ir.graph import Graph, graphs_in
from hybridflow.compiler.ir.types import Extent
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


Attrs = Mapping[str, Any]


class PartlyBatched(NamedTuple):
    """Results of which those that are ``batched`` have the axis of examples; of an op with one result, that."""

    results: Any
    batched: tuple[bool, ...]


def axis_to_front(b: Builder, x: Value, has_axis: bool, size: Extent) -> Any:
    """``x`` with the axis of examples: repeated along it, unless it has it already."""
    if has_axis:
        return x
    return b.broadcast(x, shape=(size, *x.type.shape), axes=tuple(range(1, x.type.ndim + 1)))


def broadcast_batched(attrs_of: Callable[[Extent, Attrs], dict[str, Any]]) -> Callable[..., Any]:
    """The rule of ops that are applied to all examples at once, under other attributes.

    ``attrs_of(size, attrs)`` are the attributes when every input has the axis.
    """

    def rule(b: Builder, op: OpDef, size: Extent, batched: Sequence[bool], /, *inputs: Value, **attrs: object) -> Value:
        operands = [axis_to_front(b, x, is_batched, size) for x, is_batched in zip(inputs, batched)]
        return b.emit(op, *operands, **attrs_of(size, attrs))

    return rule


# ---- examples that are replicas (see ``collectives``)


class Share(NamedTuple):
    """The run of replicas that this process has, where several processes share them out.  One that has none, its
    ``length`` being 0, computes what another has, ``first``, and hands nothing out.

    ``sums`` and ``gathers`` make functions in Python that exchange arrays with the other processes: of the nodes of
    the tree of replicas, and of the values of this run; they return the sum and all values, and then an int32 that the
    next exchange is given.  ``live`` has such a function called with tensors, be it now or in the trace that goes on.
    ``part_of`` says which of so many elements are this process's, where each has a part.
    """

    first: int
    length: int
    sums: Callable[..., Any]
    gathers: Callable[..., Any]
    live: Callable[..., Any]
    part_of: Callable[[int], tuple[int, int]]


class MeshAxis(NamedTuple):
    """An axis of a mesh: its name, and how many logical replicas lie along it.  ``is_strategy``: it is a strategy's,
    whose optimizers, losses and metrics reduce over it by themselves.  ``shards_state``: processes share out the state
    of its optimizers."""

    name: str
    size: int
    is_strategy: bool = False
    share: Share | None = None
    shards_state: bool = False

    @property
    def here(self) -> int:
        """How many of the replicas this process computes."""
        return self.size if self.share is None else max(self.share.length, 1)


_mapped: ContextVar[tuple[MeshAxis | None, list[Callable[..., Any]]]] = ContextVar("mapped axis", default=(None, []))


def mapped_axis() -> MeshAxis | None:
    """The axis along which the examples are replicas, in the block of ``mapped``."""
    return _mapped.get()[0]


def numbered(function: Callable[..., Any]) -> int:
    """The number by which graphs that are made in the block of ``mapped`` call a function in Python."""
    functions = _mapped.get()[1]
    functions.append(function)
    return len(functions) - 1


@contextlib.contextmanager
def mapped(axis: MeshAxis | None, functions: list[Callable[..., Any]]) -> Iterator[None]:
    """A block in which the examples of graphs are the replicas along an axis, or along none; ``functions`` are what
    they call by number."""
    token = _mapped.set((axis, functions))
    try:
        yield
    finally:
        _mapped.reset(token)


def meets(op: OpDef, attrs: Mapping[str, Any]) -> bool:
    """Whether the replicas of the axis that is being mapped meet in an op, or somewhere inside of it."""
    axis = mapped_axis()
    if axis is None:
        return False
    if op.kind.value == "collective":
        return bool(attrs["axis"] == axis.name)
    return any(meets(node.op, node.attrs) for graph in graphs_in(attrs) for node in graph.nodes)


def refuse_divergence(op: Any, graphs: Sequence[Graph]) -> None:
    """Raise ArgumentError where replicas that go different ways, in one of these graphs, would not all come to a
    collective."""
    for graph in graphs:
        for node in graph.nodes:
            if meets(node.op, node.attrs):
                where = f", at {node.where}," if node.where else ""
                raise ArgumentError(
                    node.op.name,
                    f"it stands{where} inside of a {op.name} whose way is each replica's own, so that some would wait "
                    "for others that never come. Let the condition be the same for all, as one made of an all_reduce "
                    "is, or take the collective out.",
                )
