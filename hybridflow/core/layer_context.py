"""What layers hand on to those within them, around them and after them: whether they train, losses, masks."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, MutableMapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from hybridflow.core.context import current, now, recorded_by, suspended
from hybridflow.core.tensor import Tensor, looked_at


class Label:
    """What a layer is called, for what outlives the layer, or is copied with it: the weights that it made."""

    __slots__ = ("name",)
    name: str


class _Call:
    """The innermost call of a layer, or making of its weights.  ``added`` are what layers within the outermost one add
    to the loss, each with its layer.  Each call makes one, which a named tuple would take twice as long for."""

    __slots__ = ("added", "label", "outer", "training")

    def __init__(self, training: bool | None, added: list[tuple[Mark, Any]], label: Label, outer: _Call | None) -> None:
        self.training, self.added, self.label, self.outer = training, added, label, outer


_now: ContextVar[_Call | None] = ContextVar("hybridflow.calling", default=None)


def building() -> AbstractContextManager[None]:
    """Make weights, of which no tape has to know.  What is made inside of control flow is made before it, once."""
    trace = now().trace
    if trace is None or trace.root is trace:
        return recorded_by(())
    trace.root.before_variable_creation()
    return suspended()


class Mark:
    """What stands here for a layer, one for each: compiled functions watch all that layers hold which are handed on."""

    __slots__ = ("__weakref__",)


class _Added(NamedTuple):
    """What a layer added to the loss, and the layer in whose call that was: weakly, it may be the same."""

    values: tuple[Any, ...]
    outermost: weakref.ref[Mark]


# What layers added to the loss in their last calls outside of traces.  In a trace it is the trace that keeps this:
# there they are tensors that nothing else may see.
_added_losses: weakref.WeakKeyDictionary[Mark, _Added] = weakref.WeakKeyDictionary()


def training_now() -> bool | None:
    """Whether the innermost layer that was told, or has told itself, trains; None where none was."""
    call = _now.get()
    return None if call is None else call.training


def labels_now() -> tuple[Label, ...]:
    """Those of the layers that are being called or made, the outermost first."""
    labels: list[Label] = []
    call = _now.get()
    while call is not None:
        if not labels or labels[-1] is not call.label:  # a layer that makes its weights when it is called is one
            labels.append(call.label)
        call = call.outer
    return tuple(reversed(labels))


def enter(training: bool | None, label: Label) -> Token[_Call | None]:
    """Begin the call of a layer; None leaves it as it is."""
    outer = _now.get()
    if outer is None:
        return _now.set(_Call(training, [], label, None))
    return _now.set(_Call(outer.training if training is None else bool(training), outer.added, label, outer))


def leave(token: Token[_Call | None], layer: Mark) -> None:
    """End the call of a layer that ``enter`` began.  If it was the outermost, what was added to the loss is kept, in
    place of what was added in its call before."""
    call, outer = _now.get(), token.old_value
    _now.reset(token)
    if call is None or not (outer is Token.MISSING or outer is None):
        return
    store = _store()
    if store:
        for one, added in list(store.items()):
            if added.outermost() is layer or one is layer:
                store.pop(one, None)
    for one, value in call.added:
        _keep(one, value, layer)


def enter_making(label: Label) -> Token[_Call | None]:
    """Begin to make the weights of a layer: what layers add to the loss that are called for that belongs to no call."""
    outer = _now.get()
    return _now.set(_Call(None if outer is None else outer.training, [], label, outer))


def leave_making(token: Token[_Call | None]) -> None:
    """End what ``enter_making`` began."""
    _now.reset(token)


# Losses


def add_loss(layer: Mark, value: object) -> None:
    """Let ``losses_of`` the layer have this value, until the layer around all that is being called is called again."""
    call = _now.get()
    if call is None:
        _keep(layer, value, layer)
    else:
        call.added.append((layer, value))


def losses_of(layers: Iterable[Mark]) -> list[Any]:
    """What these layers have added in the call that goes on, or in the last ones."""
    call = _now.get()
    if call is not None:
        wanted = set(layers)
        return [value for layer, value in call.added if layer in wanted]
    store = _store()
    return [value for layer in layers if layer in store for value in store[layer].values] if store else []


def _store() -> MutableMapping[Mark, _Added]:
    trace = current.trace
    return _added_losses if trace is None else trace.added_losses


def _keep(layer: Mark, value: object, outermost: Mark) -> None:
    store = _store()
    before = store.get(layer)
    values = before.values if before is not None and before.outermost() is outermost else ()
    store[layer] = _Added((*values, value), weakref.ref(outermost))


# Masks

_Masks = dict[int, tuple[weakref.ref[Tensor], Any]]  # by the id of a tensor, which lives for as long as the entry

# What a run of a compiled function knows of masks begins and ends with it, be it traced, inlined or run eagerly: where
# it is compiled, its arguments, results and what it captures are other tensors than those that its caller has.
_everywhere: _Masks = {}
_masks: ContextVar[_Masks] = ContextVar("hybridflow.masks", default=_everywhere)


def enter_function() -> Token[_Masks]:
    """Begin a run of the Python function of a compiled one."""
    return _masks.set({})


def leave_function(token: Token[_Masks]) -> None:
    """End the run that ``enter_function`` began."""
    _masks.get().clear()  # entries refer to what they are in
    _masks.reset(token)


def mask_of(value: object) -> Any:
    """The mask that ``keep_mask`` was given, or None; for a list of values the list of theirs, or None where none has
    one."""
    masks = _masks.get()
    if not masks:
        return None
    if isinstance(value, (list, tuple)):
        each = [mask_of(part) for part in value]
        return None if all(mask is None for mask in each) else each
    entry = masks.get(id(value))
    return None if entry is None else entry[1]


def keep_mask(value: object, mask: object) -> None:
    """Let ``mask_of(value)`` be that mask for as long as the tensor lives, unless it has one already.

    Values and masks may be lists, one of None among them where a value has none; a mask alone is that of the first.
    """
    if mask is None:
        return
    if isinstance(value, (list, tuple)):
        for one, its in zip(value, mask if isinstance(mask, (list, tuple)) else [mask]):
            keep_mask(one, its)
    elif isinstance(value, Tensor):
        masks, key = _masks.get(), id(value)
        if key not in masks:
            # A late mask may be made of the value, and would keep it alive.
            masks[key] = weakref.ref(value, functools.partial(masks.pop, key)), looked_at(mask)
