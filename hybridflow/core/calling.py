"""Whether the layers that are being called train: what a layer hands on to those within it."""

from __future__ import annotations

from contextvars import ContextVar, Token

_training: ContextVar[bool | None] = ContextVar("hybridflow.training", default=None)


def training_now() -> bool:
    """Whether the innermost layer that was told, or has told itself, trains; False outside of all."""
    return bool(_training.get())


def enter(training: bool | None) -> Token[bool | None]:
    """Begin the call of a layer; None leaves it as it is."""
    return _training.set(_training.get() if training is None else bool(training))


def leave(token: Token[bool | None]) -> None:
    """End the call that ``enter`` began."""
    _training.reset(token)
