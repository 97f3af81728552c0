"""Methods that a room above gives to a class of this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.errors import entered


def give(owner: type, name: str, function: Callable[..., Any]) -> None:
    """Make a function, which nobody else uses, the method ``name`` of ``owner``; it looks as if written there."""
    function.__name__, function.__qualname__ = name, f"{owner.__name__}.{name}"
    setattr(owner, name, entered(function))
