"""One value, place or outcome of the two that the sides of a condition have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from hybridflow.autograph.runtime import diagnostics, dynamic_list, narrowing
from hybridflow.autograph.runtime.aliasing import record_may_alias
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.exits import VALUE, ExitKind, Exits, Values, relabel, single_code
from hybridflow.autograph.runtime.mutable_locations import UNREAD, Location, is_unbound
from hybridflow.autograph.runtime.phi import ABSENT, PhiBuilder
from hybridflow.autograph.runtime.type_mismatch import TypeMismatch
from hybridflow.autograph.runtime.undo_log import logged_write
from hybridflow.core.tensor import Tensor
from hybridflow.tracing.control_nodes import emit_cond
from hybridflow.tracing.subtrace import SubTrace


def merge_branches(pred: Tensor, pairs: Sequence[tuple[Branch, Exits]], alias: Mapping[ExitKind, ExitKind]) -> Exits:
    """One bundle for two sides, recorded into the trace around them."""
    regions = [side.region for side, _ in pairs]
    assert regions[0] is not None and regions[1] is not None
    both = [regions[0], regions[1]]
    joined = PhiBuilder(lambda k: both[k].entered(), [side for side, _ in pairs], dynamic_list.align)
    ends = [relabel(bundle, alias, region) for (_, bundle), region in zip(pairs, both)]
    kinds = list(dict.fromkeys([*ends[0].by_kind, *ends[1].by_kind]))
    merged = {kind: _merge_bindings(joined, ends[0].by_kind.get(kind), ends[1].by_kind.get(kind)) for kind in kinds}
    places = _merge_locations(joined, [side for side, _ in pairs], [end.always_raises for end in ends])
    code = None
    if len(kinds) > 1:
        codes = []
        for end, region in zip(ends, both):
            with region.entered():
                codes.append(single_code(end) if end.code is None else end.code)
        code = joined.output(codes[0], codes[1])
    tensors = emit_cond(pred, both, joined.outputs)
    for place, value, is_new in places:
        if is_new:
            place.put(joined.result(value, tensors))
        else:
            logged_write(place, joined.result(value, tensors))
    results = {
        kind: {name: joined.result(value, tensors) for name, value in values.items()} for kind, values in merged.items()
    }
    record_may_alias(joined.created)
    narrowing.note_choices(pred, joined.choices)
    return Exits(results, None if code is None else joined.result(code, tensors))


def _merge_bindings(joined: PhiBuilder, a: Values | None, b: Values | None) -> Values:
    if a is None or b is None:
        one = (b if a is None else a) or {}
        return {
            name: joined.merge(ABSENT, value) if a is None else joined.merge(value, ABSENT)
            for name, value in one.items()
        }
    return {name: joined.merge(a.get(name, UNREAD), b.get(name, UNREAD)) for name in dict.fromkeys([*a, *b])}


def _merge_locations(
    joined: PhiBuilder, sides: Sequence[Branch], raised: Sequence[bool]
) -> list[tuple[Location, Any, bool]]:
    """What places are to hold, and whether nobody else knows them: one side made them.  Of a side that has ``raised``
    nothing is left."""
    result: list[tuple[Location, Any, bool]] = []
    if all(raised):
        return result
    places = {key: place for side in sides for key, (place, _) in side.undo_log.items()}
    for key, place in places.items():
        before = place.get()
        a, b = (
            ABSENT if gone else _read_value(side.final_values.get(key, before)) for side, gone in zip(sides, raised)
        )
        news = [side.was_created_here(key) for side in sides]
        if any(news):
            result.append((place, joined.merge(a if news[0] else ABSENT, b if news[1] else ABSENT), True))
            continue
        grows = type(a) is list and type(b) is list and dynamic_list.differ(a, b)
        if grows and not dynamic_list.may_grow(place.holder):
            value: object = TypeMismatch("structure", a, b)
        else:
            value = joined.merge(a, b)
        if isinstance(value, TypeMismatch) and not place.keeps_conflicts:
            raise diagnostics.changed_error(place, value)
        if value is not before and not (is_unbound(value) and is_unbound(before)):
            result.append((place, value, False))
    return result


def _read_value(value: object) -> Any:
    """What a place holds, which has a value or none, and never may have one."""
    return UNREAD if is_unbound(value) else value


def merge_values(pred: Tensor, a: Values, b: Values, names: Sequence[str], frame: FrameType | None = None) -> Values:
    regions = [SubTrace("a choice"), SubTrace("a choice")]
    joined = PhiBuilder(lambda k: regions[k].entered(), [Branch(region) for region in regions], dynamic_list.align)
    merged = {name: joined.merge(a.get(name, UNREAD), b.get(name, UNREAD)) for name in names}
    tensors = emit_cond(pred, regions, joined.outputs)
    result = {name: joined.result(value, tensors) for name, value in merged.items()}
    record_may_alias(joined.created, frame)
    narrowing.note_choices(pred, joined.choices)
    return result


def select(pred: Tensor, a: object, b: object, frame: FrameType) -> Any:
    """``a if pred else b`` of values that are there already, for ``frame``.  Raises TraceError where they have no one
    type."""
    result = merge_values(pred, {VALUE: a}, {VALUE: b}, [VALUE], frame)[VALUE]
    if isinstance(result, TypeMismatch):
        raise diagnostics.choice_error(result)
    return result
