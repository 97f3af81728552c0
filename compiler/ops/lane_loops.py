"""Loops of scalar rules, in basic blocks: all lanes go on until the last one is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.ops.emitter_protocol import Emit, Val


def while_any(
    e: Emit, start: Sequence[Val], condition: Callable[..., Val], body: Callable[..., Sequence[Val]]
) -> Sequence[Val]:
    """``while any(condition(*values)): values = body(*values)``; a body keeps the values of lanes that are done."""
    head, inside, after = (e.new_label(hint) for hint in ("head", "inside", "after"))
    before = e.block
    e.branch(head)
    e.label(head)
    first_phi = len(e.lines)
    values = [e.phi((v, before)) for v in start]
    e.branch_if(e.any(condition(*values)), inside, after)
    e.label(inside)
    following = body(*values)
    for k, v in enumerate(following):
        e.lines[first_phi + k] += f", [ {v.ref}, %{e.block} ]"
    e.branch(head)
    e.label(after)
    return values
