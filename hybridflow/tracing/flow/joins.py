"""One value, place or outcome of the two that the sides of a condition have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from hybridflow.core.tensor import Tensor
from hybridflow.tracing.flow import blame, growth, narrowing
from hybridflow.tracing.flow.doubles import note_doubles
from hybridflow.tracing.flow.journal import put
from hybridflow.tracing.flow.outcomes import VALUE, Bundle, Kind, Values, only_code, renamed
from hybridflow.tracing.flow.places import UNREAD, Place, is_unbound
from hybridflow.tracing.flow.sides import Side
from hybridflow.tracing.flow.texts import Conflict
from hybridflow.tracing.flow.values import ABSENT, Joined
from hybridflow.tracing.nodes import emit_cond
from hybridflow.tracing.region import Region


def combined(pred: Tensor, pairs: Sequence[tuple[Side, Bundle]], alias: Mapping[Kind, Kind]) -> Bundle:
    """One bundle for two sides, recorded into the trace around them."""
    regions = [side.region for side, _ in pairs]
    assert regions[0] is not None and regions[1] is not None
    both = [regions[0], regions[1]]
    joined = Joined(lambda k: both[k].entered(), [side for side, _ in pairs], growth.aligned)
    ends = [renamed(bundle, alias, region) for (_, bundle), region in zip(pairs, both)]
    kinds = list(dict.fromkeys([*ends[0].kinds, *ends[1].kinds]))
    found = {kind: _joined_values(joined, ends[0].kinds.get(kind), ends[1].kinds.get(kind)) for kind in kinds}
    places = _joined_places(joined, [side for side, _ in pairs], [end.has_raised for end in ends])
    code = None
    if len(kinds) > 1:
        codes = []
        for end, region in zip(ends, both):
            with region.entered():
                codes.append(only_code(end) if end.code is None else end.code)
        code = joined.output(codes[0], codes[1])
    tensors = emit_cond(pred, both, joined.outputs)
    for place, value, is_new in places:
        if is_new:
            place.put(joined.finished(value, tensors))
        else:
            put(place, joined.finished(value, tensors))
    made = {
        kind: {name: joined.finished(value, tensors) for name, value in values.items()}
        for kind, values in found.items()
    }
    note_doubles(joined.made)
    narrowing.note_choices(pred, joined.choices)
    return Bundle(made, None if code is None else joined.finished(code, tensors))


def _joined_values(joined: Joined, a: Values | None, b: Values | None) -> Values:
    if a is None or b is None:
        one = (b if a is None else a) or {}
        return {
            name: joined.value(ABSENT, value) if a is None else joined.value(value, ABSENT)
            for name, value in one.items()
        }
    return {name: joined.value(a.get(name, UNREAD), b.get(name, UNREAD)) for name in dict.fromkeys([*a, *b])}


def _joined_places(joined: Joined, sides: Sequence[Side], raised: Sequence[bool]) -> list[tuple[Place, Any, bool]]:
    """What places are to hold, and whether nobody else knows them: one side made them.  Of a side that has ``raised``
    nothing is left."""
    found: list[tuple[Place, Any, bool]] = []
    if all(raised):
        return found
    places = {key: place for side in sides for key, (place, _) in side.touched.items()}
    for key, place in places.items():
        before = place.get()
        a, b = (ABSENT if gone else _read(side.finals.get(key, before)) for side, gone in zip(sides, raised))
        news = [side.made(key) for side in sides]
        if any(news):
            found.append((place, joined.value(a if news[0] else ABSENT, b if news[1] else ABSENT), True))
            continue
        grows = type(a) is list and type(b) is list and growth.differ(a, b)
        if grows and not growth.may_grow(place.holder):
            value: Any = Conflict("structure", a, b)
        else:
            value = joined.value(a, b)
        if isinstance(value, Conflict) and not place.keeps_conflicts:
            raise blame.changed(place, value)
        if value is not before and not (is_unbound(value) and is_unbound(before)):
            found.append((place, value, False))
    return found


def _read(value: Any) -> Any:
    """What a place holds, which has a value or none, and never may have one."""
    return UNREAD if is_unbound(value) else value


def either(pred: Tensor, a: Values, b: Values, names: Sequence[str], frame: FrameType | None = None) -> Values:
    regions = [Region("a choice"), Region("a choice")]
    joined = Joined(lambda k: regions[k].entered(), [Side(region) for region in regions], growth.aligned)
    found = {name: joined.value(a.get(name, UNREAD), b.get(name, UNREAD)) for name in names}
    tensors = emit_cond(pred, regions, joined.outputs)
    made = {name: joined.finished(value, tensors) for name, value in found.items()}
    note_doubles(joined.made, frame)
    narrowing.note_choices(pred, joined.choices)
    return made


def chosen(pred: Tensor, a: Any, b: Any, frame: FrameType) -> Any:
    """``a if pred else b`` of values that are there already, for ``frame``.  Raises TraceError where they have no one
    type."""
    found = either(pred, {VALUE: a}, {VALUE: b}, [VALUE], frame)[VALUE]
    if isinstance(found, Conflict):
        raise blame.chosen(found)
    return found
