"""What Python asks of objects in C, and turns into a bool at once: their truth, and what is in them.  The code of the
user's that answers may say what a tensor decides about: it is called here."""

from __future__ import annotations

import types
from typing import Any

from hybridflow.array import elementwise
from hybridflow.guards.attribute_reads import MISSING, in_class
from hybridflow.guards.code_ownership import is_users_class
from hybridflow.guards.container_reads import is_followed_class
from hybridflow.guards.guard_builder import active
from hybridflow.guards.read_events import INERT, note_truth
from hybridflow.tracing.symbolic_number import is_number, number_of, number_tensor


def special_method(value: object, *names: str) -> tuple[str, types.FunctionType] | None:
    """The first of these methods that the class of an object has, if that is code of the user's."""
    kind = type(value)
    if kind in INERT or not is_users_class(kind) or not is_followed_class(kind):
        return None
    for name in names:
        method = in_class(kind, name)
        if method is not MISSING:
            return (name, method) if isinstance(method, types.FunctionType) else None
    return None


def truth(value: object) -> Any:
    """The truth of an object whose class says it in code of the user's, a bool or a number of the program's; anything
    else as it is."""
    named_method = special_method(value, "__bool__", "__len__")
    if named_method is None:
        return value
    name, method = named_method
    if active.recording is not None:
        active.recording.note(note_truth, value)
    result = method(value)
    if name == "__len__":
        return number_of(elementwise.greater(number_tensor(result, int), 0)) if is_number(result) else _Sized(result)
    if type(result) is not bool and not is_number(result):
        raise TypeError(f"__bool__ should return bool, returned {type(result).__name__}")
    return result


class _Sized:
    """Has a length that was asked for: Python says what is none, and whether it is 0."""

    __slots__ = ("_length",)

    def __init__(self, length: object) -> None:
        self._length = length

    def __len__(self) -> Any:
        return self._length
