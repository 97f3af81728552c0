"""Reverse-mode differentiation over a list of records: one walk for the eager tape and for compiled backward programs.

A record says which values an operation read and made.  The walk goes through a builder, so that whatever values are
(live tensors, traced ones, graph nodes) the derivative rules of the op table apply, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Deferred, Kind

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder, Value


class Results(tuple[Any, ...]):
    """The results of an operation that has several."""


class Record(NamedTuple):
    """One operation: an op of the table with its attributes, or any function with ``vjp(*cotangents of outputs)``.

    ``outputs`` of an op with several results are ``Results``, all of them.  Its rule takes a tuple of cotangents, None
    for a result that has none, and the results.

    A ``vjp`` takes None for an output that has no cotangent, and returns one cotangent (or None) per input.  One with
    ``accumulates`` true stands for several operations: it also takes, as ``so_far=``, what has come together for each
    input (or None), and returns totals.  They are added up in the order in which single operations would be.
    """

    op: Any
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    outputs: Sequence[Any]  # a Results where the op has several
    vjp: Callable[..., Sequence[Any]] | None = None


def backward(
    b: Builder,
    records: Sequence[Record],
    seeds: Iterable[tuple[Any, Any]],
    sources: Sequence[Value],
    as_rows: bool = False,
) -> list[Any | None]:
    """Cotangents of ``sources``, None for those on which no seeded value depends.

    ``records`` are in the order in which they happened; ``seeds`` are (value, its cotangent) pairs.  Values are told
    apart by identity.  Nothing is computed for values that do not depend on a source.  With ``as_rows`` the cotangents
    of sources that nothing but look-ups read are ``SparseGrad``.
    """
    path = _on_path(records, sources)
    wanted = {id(source) for source in sources}
    kept = wanted - {id(out) for record in records for out in record.outputs} if as_rows else ()
    cotangents: dict[int, Any] = {}
    for value, cotangent in seeds:
        key = id(value)
        if key in path:
            cotangents[key] = cotangent if key not in cotangents else b.add(cotangents[key], cotangent)
    for record in reversed(records):
        op, inputs, attrs, outputs, vjp = record
        if vjp is None and isinstance(outputs, Results):
            gs = [_take_cotangent(cotangents, wanted, id(out)) for out in outputs]
            if all(g is None for g in gs):
                continue
            if op.accumulates:
                _totals(b, record, gs, path, cotangents)
                continue
            results = op.vjp(b, tuple(gs), outputs, *inputs, **attrs)
        elif vjp is None:
            out = outputs[0]
            key = id(out)
            g = cotangents.get(key) if key in wanted else cotangents.pop(key, None)  # as _taken, without the call
            if g is None:
                continue
            results = op.vjp(b, g, out, *inputs, **attrs)
        else:
            gs = [_take_cotangent(cotangents, wanted, id(out)) for out in outputs]
            if all(g is None for g in gs):
                continue
            if getattr(vjp, "accumulates", False):
                so_far = [_so_far(cotangents, id(value)) if id(value) in path else None for value in inputs]
                for value, total in zip(inputs, vjp(*gs, so_far=so_far)):
                    if total is not None and id(value) in path:
                        is_kept = id(value) in kept or not isinstance(total, Deferred)
                        cotangents[id(value)] = total if is_kept else total()
                continue
            results = vjp(*gs)
        for value, result in zip(inputs, results):
            key = id(value)
            if result is not None and key in path:
                if callable(result) and not (key in kept and isinstance(result, Deferred)):
                    result = result()
                earlier = cotangents.get(key)
                if earlier is not None:
                    result = add_cotangents(b, earlier, result) if kept else b.add(earlier, result)
                cotangents[key] = result
    return [cotangents.get(id(source)) for source in sources]


def add_cotangents(b: Any, x: Any, y: Any) -> Any:
    """The sum of two cotangents: rows as long as both are."""
    if isinstance(x, Deferred):
        if isinstance(y, Deferred):
            return x.plus(y)
        x = x()
    return b.add(x, y() if isinstance(y, Deferred) else y)


def _so_far(cotangents: Mapping[int, Any], key: int) -> Any:
    """What has come together for a value, for code that adds to it."""
    total = cotangents.get(key)
    return total() if isinstance(total, Deferred) else total


def _totals(b: Any, record: Record, gs: Sequence[Any], path: set[int], cotangents: dict[int, Any]) -> None:
    """Have an op that stands for several add its share to the ``cotangents``.  An operand that comes twice has come
    together once."""
    op, inputs, attrs, outputs, _ = record
    keys = [id(value) for value in inputs]
    first = [key in path and key not in keys[:k] for k, key in enumerate(keys)]
    so_far = [_so_far(cotangents, key) if is_first else None for key, is_first in zip(keys, first)]
    wanted = [key in path for key in keys]
    for key, is_first, total in zip(
        keys, first, op.vjp(b, tuple(gs), outputs, *inputs, so_far=so_far, wanted=wanted, **attrs)
    ):
        if total is not None and key in path:
            cotangents[key] = total if is_first or key not in cotangents else add_cotangents(b, cotangents[key], total)


def _on_path(records: Sequence[Record], sources: Sequence[Value]) -> set[int]:
    """The ids of the float values that depend differentiably on a source, sources included."""
    path = set(map(id, sources))
    for record in records:
        for value in record.inputs:
            if id(value) in path:
                if record.vjp is not None or record.op.vjp is not NOT_DIFFERENTIABLE:
                    for out in record.outputs:
                        if dt.is_inexact(out.dtype):
                            path.add(id(out))
                break
    return path


def records_of(nodes: Sequence[Node]) -> list[Record]:
    """A graph's nodes as records, whose values are the nodes.  One with several results takes the place of the nodes
    that project them, which there must be for all its results (see ``Builder.results``)."""
    first: dict[tuple[Node, int], Node] = {}
    for node in nodes:
        if node.op.kind is Kind.PROJECT:
            first.setdefault((node.inputs[0], node.attrs["index"]), node)
    records = []
    for node in nodes:
        if isinstance(node.type, TupleType):
            outputs = Results([first[node, k] for k in range(len(node.type.parts))])
            records.append(Record(node.op, node.inputs, node.attrs, outputs))
        elif node.op.kind is not Kind.PROJECT:
            records.append(Record(node.op, node.inputs, node.attrs, (node,)))
        elif (same := first[node.inputs[0], node.attrs["index"]]) is not node:
            records.append(Record(None, (same,), {}, (node,), lambda g: (g,)))
    return records


def _take_cotangent(cotangents: dict[int, Any], wanted: set[int], key: int) -> Any:
    """The cotangent of a value all readers of which have been passed: it is complete, and kept only for a source."""
    return cotangents.get(key) if key in wanted else cotangents.pop(key, None)
