"""Reverse-mode differentiation over a list of records: one walk for the eager tape and for compiled backward programs.

A record says which values an operation read and made.  The walk goes through a builder, so that whatever values are
(live tensors, traced ones, graph nodes) the derivative rules of the op table apply, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.table import NOT_DIFFERENTIABLE


class Record:
    """One operation: an op of the table with its attributes, or any function with ``vjp(*cotangents of outputs)``.

    A ``vjp`` takes None for an output that has no cotangent, and returns one cotangent (or None) per input.  One with
    ``accumulates`` true stands for several operations: it also takes, as ``so_far=``, what has come together for each
    input (or None), and returns totals, so that they are added up in the order in which single operations would be.
    """

    __slots__ = ("attrs", "inputs", "op", "outputs", "vjp")

    def __init__(
        self,
        op: Any,
        inputs: tuple[Any, ...],
        attrs: Mapping[str, Any],
        outputs: tuple[Any, ...],
        vjp: Callable[..., Sequence[Any]] | None = None,
    ) -> None:
        self.op, self.inputs, self.attrs, self.outputs, self.vjp = op, inputs, attrs, outputs, vjp


def backward(
    b: Any, records: Sequence[Record], seeds: Iterable[tuple[Any, Any]], sources: Sequence[Any]
) -> list[Any | None]:
    """Cotangents of ``sources``, None for those on which no seeded value depends.

    ``records`` are in the order in which they happened; ``seeds`` are (value, its cotangent) pairs.  Values are told
    apart by identity.  Nothing is computed for values that do not depend on a source.
    """
    path = _on_path(records, sources)
    wanted = {id(source) for source in sources}
    cotangents: dict[int, Any] = {}
    for value, cotangent in seeds:
        if id(value) in path:
            _accumulate(b, cotangents, id(value), cotangent)
    for record in reversed(records):
        outputs = record.outputs
        gs = []
        reached = False
        for out in outputs:
            key = id(out)
            # Every reader of the value has been passed, so its cotangent is complete, and needed no longer.
            g = cotangents.get(key) if key in wanted else cotangents.pop(key, None)
            reached = reached or g is not None
            gs.append(g)
        if not reached:
            continue
        if record.vjp is None:
            results = record.op.vjp(b, gs[0], outputs[0], *record.inputs, **record.attrs)
        elif getattr(record.vjp, "accumulates", False):
            so_far = [cotangents.get(id(value)) if id(value) in path else None for value in record.inputs]
            for value, total in zip(record.inputs, record.vjp(*gs, so_far=so_far)):
                if total is not None and id(value) in path:
                    cotangents[id(value)] = total
            continue
        else:
            results = record.vjp(*gs)
        for value, result in zip(record.inputs, results):
            if result is not None and id(value) in path:
                _accumulate(b, cotangents, id(value), result() if callable(result) else result)
    return [cotangents.get(id(source)) for source in sources]


def _on_path(records: Sequence[Record], sources: Sequence[Any]) -> set[int]:
    """The ids of the float values that depend differentiably on a source, sources included."""
    path = set(map(id, sources))
    for record in records:
        if record.vjp is None and record.op.vjp is NOT_DIFFERENTIABLE:
            continue
        for value in record.inputs:
            if id(value) in path:
                path.update(id(out) for out in record.outputs if dt.is_float(out.dtype))
                break
    return path


def _accumulate(b: Any, cotangents: dict[int, Any], key: int, cotangent: Any) -> None:
    so_far = cotangents.get(key)
    cotangents[key] = cotangent if so_far is None else b.add(so_far, cotangent)
