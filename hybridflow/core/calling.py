"""What a layer that is being called hands on to those within it: whether it trains, and masks of their inputs."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, NamedTuple


class _Call(NamedTuple):
    """The innermost call.  ``masks`` are those of all results within the outermost one, by id, with the results."""

    training: bool | None
    masks: dict[int, tuple[Any, Any]]


_now: ContextVar[_Call | None] = ContextVar("hybridflow.calling", default=None)


def training_now() -> bool:
    """Whether the innermost layer that was told, or has told itself, trains; False outside of all."""
    call = _now.get()
    return call is not None and bool(call.training)


def enter(training: bool | None) -> Token[_Call | None]:
    """Begin the call of a layer; None leaves it as it is."""
    outer = _now.get()
    if outer is None:
        outer = _Call(None, {})
    return _now.set(outer if training is None else _Call(bool(training), outer.masks))


def leave(token: Token[_Call | None]) -> None:
    """End the call that ``enter`` began."""
    _now.reset(token)


def mask_of(value: Any) -> Any:
    """The mask that ``keep_mask`` was given within the outermost call that goes on, or None; for a list of values the
    list of theirs, or None where none has one."""
    call = _now.get()
    if call is None or not call.masks:
        return None
    if isinstance(value, (list, tuple)):
        masks = [mask_of(part) for part in value]
        return None if all(mask is None for mask in masks) else masks
    return call.masks.get(id(value), (None, None))[1]


def keep_mask(value: Any, mask: Any) -> None:
    """Let ``mask_of(value)`` be that mask until the outermost call ends.  Values and masks may be lists, one of None
    among them where a value has none."""
    call = _now.get()
    if call is None or mask is None:
        return
    if isinstance(value, (list, tuple)) and isinstance(mask, (list, tuple)):
        for one, its in zip(value, mask):
            keep_mask(one, its)
    else:
        call.masks[id(value)] = value, mask  # the value too: another one must not get its id
