"""What stands for one of several objects, of which a tensor decides which it is."""

from __future__ import annotations

import functools
import operator
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from hybridflow.array import elementwise
from hybridflow.autograph.runtime.mutation_check import refers_to
from hybridflow.autograph.runtime.state import active
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError, TraceError


def record_may_alias(groups: Sequence[tuple[Any, ...]], frame: FrameType | None = None) -> None:
    """Keep in mind what stands for one of several objects: none of them may be changed in place while another lives.
    It was made for ``frame``, by default the one whose statement the running code is inside of."""
    if frame is None and active.scope is not None:
        frame = active.scope.frame
    if frame is not None:
        active.may_alias += [(frame, group) for group in groups]


def alias_classes(but: Container[int]) -> dict[int, list[Any]]:
    """By the id of each object that may be another one, or that another may be: all that it may be, itself included.
    What is noted of objects whose ids are in ``but`` does not count."""
    result: dict[int, list[Any]] = {}
    for _, group in [*active.may_alias, *_read_of()]:
        if group and id(group[0]) not in but:
            joined = list({id(x): x for one in group for x in result.get(id(one), (one,))}.values())
            result.update((id(x), joined) for x in joined)
    return result


class Selected(NamedTuple):
    """What was ``value`` of several objects, by the number ``code``: whoever changes it changes one of them.  What one
    ``order`` has made of different numbers are different ones."""

    value: Any
    code: Tensor
    values: Sequence[Any]
    frame: FrameType
    order: object


def record_selected(selection: object, code: Tensor, values: Sequence[Any], frame: FrameType, order: object) -> None:
    active.selected[id(selection)] = Selected(selection, code, values, frame, order)


def origins(value: object) -> Iterator[tuple[Any, Tensor]]:
    """The objects that a value was read of, if a tensor chose it among several, each with the truth of that it is the
    one; these may have been chosen themselves."""
    for held, ways in _origins(value):
        matches = [elementwise.equal(code, k) for code, k in ways]
        yield held, functools.reduce(elementwise.logical_and, matches)


def _origins(value: object, ways: tuple[tuple[Tensor, int], ...] = ()) -> Iterator[tuple[Any, Any]]:
    one = active.selected.get(id(value))
    if one is None:
        return
    for k, held in enumerate(one.values):
        yield held, (*ways, (one.code, k))
        yield from _origins(held, (*ways, (one.code, k)))


def check_not_aliased(value: object, frame: FrameType) -> None:
    """Before ``value`` is changed in place by ``frame``: raise TraceError if it depends on a tensor whether another
    object that names still hold is that same one."""
    active.changes += 1
    _check_selected(value, frame)
    met, frames = {id(value): value}, {frame}
    known = -1
    while known != len(met):  # what stands for one of several may be one of several again
        known = len(met)
        for aliases, group in active.may_alias if len(met) == 1 else [*active.may_alias, *_read_of()]:
            if any(id(one) in met for one in group):
                met.update((id(one), one) for one in group)
                frames.add(aliases)
    del met[id(value)]
    if met and refers_to(_names_of(frames), met.values()):
        raise _one_of_several(value)


def _read_of() -> list[tuple[FrameType, tuple[Any, ...]]]:
    """What was read of several objects, with these."""
    return [(one.frame, (one.value, *one.values)) for one in active.selected.values()]


def check_not_shared(value: object, frame: FrameType) -> None:
    """Before ``value`` is changed in a way that those do not see that it was read of: raise TraceError if names still
    hold one."""
    check_not_aliased(value, frame)
    one = active.selected.get(id(value))
    if one is not None and refers_to(_names_of({frame, one.frame}), [held for held, _ in _origins(value)]):
        raise _one_of_several(value)


def may_alias(one: object, other: object) -> bool:
    """Whether it depends on a tensor that two values are one object."""
    made_of: dict[int, list[Any]] = {}
    for _, (result, *values) in filter(operator.itemgetter(1), [*active.may_alias, *_read_of()]):
        made_of.setdefault(id(result), []).extend(values)
    return not _all_that(one, made_of).isdisjoint(_all_that(other, made_of))


def _all_that(value: object, made_of: Mapping[int, Sequence[Any]]) -> set[int]:
    """The ids of a value and of all that it may be."""
    result: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if id(value) not in result:
            result.add(id(value))
            waiting.extend(made_of.get(id(value), ()))
    return result


def check_identity(one: object, other: object) -> None:
    """Raise TraceError if it depends on a tensor whether two values are one object."""
    if one is not other:
        mine, others = ({id(x), *(id(held) for held, _ in _origins(x))} for x in (one, other))
        if mine & others:
            raise ConcretizationError(
                "convert", "it depends on a tensor whether two values are one object. Compare positions instead."
            )


def _names_of(frames: Iterable[FrameType]) -> list[Any]:
    return [held for frame in frames for name, held in frame.f_locals.items() if name.isidentifier()]


def _check_selected(value: object, frame: FrameType) -> None:
    """The same of what was read of several objects, among which is this one, or those that it was read of."""
    if not active.selected:
        return
    known = {id(value), *(id(held) for held, _ in _origins(value))}
    selection = active.selected.get(id(value))
    for one in active.selected.values():
        if id(one.value) in known or not any(id(held) in known for held, _ in _origins(one.value)):
            continue
        is_apart = selection is not None and selection.order is not None and selection.order is one.order
        if not is_apart and refers_to(_names_of({frame, one.frame}), [one.value]):
            raise _one_of_several(value)


def _one_of_several(value: object) -> TraceError:
    kind = "tensor" if isinstance(value, Tensor) else type(value).__name__
    return ConcretizationError(
        "convert",
        f"a {kind} is changed in place, and it depends on a tensor which of several it is. "
        "Copy it before, or make a new one instead of changing it.",
    )
