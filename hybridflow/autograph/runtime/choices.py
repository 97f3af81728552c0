"""One of several values that have no one type, of which a tensor decides: ``None`` or a tensor, one of two functions, a
name that has a value or none.

What is done with such a value is done with each that it may be, in a branch of its own: see ``jit.guards.choosing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeGuard

from hybridflow.autograph.runtime import object_trees
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.type_mismatch import text_of
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError, TraceError

MOST_OPTIONS = 32


def is_choice(value: object) -> TypeGuard[Choice]:
    """Whether it is a choice.  ``isinstance`` would ask objects of the user's for a ``__class__`` of their own, whose
    code is traced, and asks this again."""
    return issubclass(type(value), Choice)


class _MissingError(ConcretizationError, AttributeError):
    """Which of several values it is has to be known; for who asks whether there is an attribute it has none."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)
        self.stage, self.where = "convert", None


class Choice:
    """``code``, an int32, says which of the ``options`` it is.  ``name`` is the variable that holds it, ``where`` the
    user's line that decides."""

    __slots__ = ("code", "name", "options", "where")
    name: str
    where: str | None
    is_awaited = False  # whether nobody has asked yet what it is, see ``carries``

    def __init__(self, code: Tensor, options: Sequence[Any]) -> None:
        self.code, self.options = code, tuple(options)
        active.chosen = True

    def refused(self, wish: str) -> TraceError:
        """The error for who needs to know which it is."""
        texts = [text_of(option) for option in self.options]
        several = f"{', '.join(texts[:-1])} or {texts[-1]}"
        return ConcretizationError(
            "convert",
            f"it depends on a tensor whether a value is {several}, and {wish}. Give it one type on all ways, or choose "
            "with if what is done.",
            getattr(self, "where", None),
        )

    def why_no_result(self) -> TraceError:
        """Why a compiled function cannot return it."""
        one, other = (text_of(option) for option in self.options[:2])
        return ConcretizationError(
            "return",
            f"which value is returned depends on a tensor, and they have no one type: one is {one}, another {other}. "
            "Bind tensors, or the same Python value, on both sides.",
            getattr(self, "where", None),
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name in self.__slots__:
            raise AttributeError(name)
        error = self.refused(f"its attribute {name} is asked for where no code of the user's runs")
        raise _MissingError(*error.args) from None

    def __repr__(self) -> str:
        return f"<one of {', '.join(map(text_of, self.options))}>"


object_trees.containers[Choice] = lambda choice: (("code", "options"), (choice.code, choice.options))


def options_of(value: object) -> tuple[Any, ...]:
    """What a value may be."""
    return value.options if is_choice(value) else (value,)
