"""Pieces of rules for many examples at once (``OpDef.batch``): values of examples have one axis more, in front.

A rule is called as ``rule(b, op, size, batched, *inputs, **attrs)``: ``batched`` says which of the inputs have the
axis, of extent ``size``; at least one has.  It returns the op's result with the axis; of ops with several results that
do not all depend on the examples, ``PartlyBatched``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hybridflow.compiler.ir.build import Builder
from hybridflow.compiler.ir.types import Extent

Attrs = Mapping[str, Any]


class PartlyBatched(NamedTuple):
    """Results of which those that are ``batched`` have the axis of examples."""

    results: Sequence[Any]
    batched: tuple[bool, ...]


def axis_to_front(b: Builder, x: Any, has_axis: bool, size: Extent) -> Any:
    """``x`` with the axis of examples: repeated along it, unless it has it already."""
    if has_axis:
        return x
    return b.broadcast(x, shape=(size, *x.type.shape), axes=tuple(range(1, x.type.ndim + 1)))


def broadcast_batched(attrs_of: Callable[[Extent, Attrs], dict[str, Any]]) -> Callable[..., Any]:
    """The rule of ops that are applied to all examples at once, under other attributes.

    ``attrs_of(size, attrs)`` are the attributes when every input has the axis.
    """

    def rule(b: Builder, op: Any, size: Extent, batched: Sequence[bool], /, *inputs: Any, **attrs: Any) -> Any:
        operands = [axis_to_front(b, x, own, size) for x, own in zip(inputs, batched)]
        return b.emit(op, *operands, **attrs_of(size, attrs))

    return rule
