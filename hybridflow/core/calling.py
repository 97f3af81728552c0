"""What a layer that is being called hands on to those within it and around it: whether it trains, masks, losses."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from hybridflow.core.context import current


class _Call(NamedTuple):
    """The innermost call.  ``masks`` are those of all results within the outermost one, by id, with the results.

    ``added`` are what layers within the outermost one add to the loss, each with its layer; None in a step that is
    around all layers.
    """

    training: bool | None
    masks: dict[int, tuple[Any, Any]]
    added: list[tuple[Mark, Any]] | None


_now: ContextVar[_Call | None] = ContextVar("hybridflow.calling", default=None)


class Mark:
    """What stands here for a layer, one for each: compiled functions watch all that layers hold which are handed on."""

    __slots__ = ("__weakref__",)


class _Added(NamedTuple):
    """What a layer added to the loss, and the layer in whose call that was: weakly, it may be the same."""

    values: tuple[Any, ...]
    outermost: weakref.ref[Mark]


# What layers added to the loss in their last calls outside of traces.  In a trace it is the trace that keeps this:
# there they are tensors that nothing else may see.
_kept: weakref.WeakKeyDictionary[Mark, _Added] = weakref.WeakKeyDictionary()


def training_now() -> bool | None:
    """Whether the innermost layer that was told, or has told itself, trains; None where none was."""
    call = _now.get()
    return None if call is None else call.training


def enter(training: bool | None) -> Token[_Call | None]:
    """Begin the call of a layer; None leaves it as it is."""
    outer = _now.get()
    if outer is None:
        return _now.set(_Call(training, {}, []))
    if outer.added is None:
        return _now.set(_Call(training, outer.masks, []))
    return _now.set(outer if training is None else _Call(bool(training), outer.masks, outer.added))


def leave(token: Token[_Call | None], layer: Mark) -> None:
    """End the call of a layer that ``enter`` began.  If it was the outermost, what was added to the loss is kept, in
    place of what was added in its call before."""
    call, outer = _now.get(), token.old_value
    _now.reset(token)
    if call is None or not (outer is Token.MISSING or outer is None or outer.added is None):
        return
    kept = _store()
    if kept:
        for one, added in list(kept.items()):
            if added.outermost() is layer or one is layer:
                kept.pop(one, None)
    for one, value in call.added or ():
        _keep(one, value, layer)


def enter_step() -> Token[_Call | None]:
    """Begin a step in which masks outlive the calls of layers: a loss has those of predictions."""
    return _now.set(_Call(None, {}, None))


def leave_step(token: Token[_Call | None]) -> None:
    """End the step that ``enter_step`` began."""
    _now.reset(token)


# Losses


def add_loss(layer: Mark, value: Any) -> None:
    """Let ``losses_of`` the layer have this value, until the layer around all that is being called is called again."""
    call = _now.get()
    if call is None or call.added is None:
        _keep(layer, value, layer)
    else:
        call.added.append((layer, value))


def losses_of(layers: Iterable[Mark]) -> list[Any]:
    """What these layers have added in the call that goes on, or in the last ones."""
    call = _now.get()
    if call is not None and call.added is not None:
        wanted = set(layers)
        return [value for layer, value in call.added if layer in wanted]
    kept = _store()
    return [value for layer in layers if layer in kept for value in kept[layer].values] if kept else []


def _store() -> MutableMapping[Mark, _Added]:
    trace = current.trace
    return _kept if trace is None else trace.kept


def _keep(layer: Mark, value: Any, outermost: Mark) -> None:
    kept = _store()
    before = kept.get(layer)
    values = before.values if before is not None and before.outermost() is outermost else ()
    kept[layer] = _Added((*values, value), weakref.ref(outermost))


# Masks


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
