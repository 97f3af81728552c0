"""Errors that a program raises when it runs: the user's own, with the values that it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, MemberDescriptorType, WrapperDescriptorType
from typing import Any, NoReturn

import numpy as np

from hybridflow.core.tensor import Tensor
from hybridflow.effects.late import Late
from hybridflow.errors import OF_PROGRAM, is_of_program, short_location, user_location
from hybridflow.tracing.flow.paths import check_not_caught
from hybridflow.tracing.order import require


def raise_unless(ok: Tensor, error: BaseException, cause: BaseException | None = None) -> None:
    """Have the program that is traced end with ``error`` where ``ok``, a scalar, is False.

    What it raises is of the error's type, with its arguments and attributes; tensors in them have values by then.
    """
    check_not_caught(type(error))
    where = short_location(user_location(2))
    late = Late([_said(error), _said(cause)])

    def fail(*arrays: np.ndarray) -> NoReturn:
        said, said_of_cause = late.filled(arrays)
        found = _made(said)
        if not is_of_program(found):
            found.add_note(f"{OF_PROGRAM}  ({where})" if where else OF_PROGRAM)
        if not said_of_cause:
            raise found
        raise found from _made(said_of_cause)

    require(ok, fail, late.given(), _text(error))


def fail_unless(
    ok: Tensor, kind: type[BaseException], make: Callable[..., BaseException], values: Sequence[Any], message: str
) -> None:
    """The same with an error of a ``kind`` that is made of values when it is raised."""
    check_not_caught(kind)
    late = Late(values, unwrapped=True)

    def fail(*arrays: np.ndarray) -> NoReturn:
        raise make(*late.filled(arrays))

    require(ok, fail, late.given(), message)


# What exceptions of Python keep beside their arguments and attributes, and let be set.
_SLOTS = (
    *("code", "value", "name", "path", "msg", "errno", "strerror", "filename", "filename2"),
    *("lineno", "offset", "text", "end_lineno", "end_offset", "encoding", "object", "start", "end", "reason"),
)
_IN_C = (WrapperDescriptorType, BuiltinFunctionType)


def _said(error: BaseException | None) -> list[Any]:
    """What ``_made`` makes an error of: its type, arguments, attributes, what its class keeps elsewhere, and the errors
    of a group."""
    if error is None:
        return []
    slots = {name: getattr(error, name) for name in _SLOTS if _is_slot(type(error), name)}
    args, inner = error.args, []
    if isinstance(error, BaseExceptionGroup):
        args, inner = (error.message,), [_said(one) for one in error.exceptions]
    return [type(error), list(args), dict(vars(error)), slots, inner]


def _is_slot(kind: type, name: str) -> bool:
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    return owner is not None and isinstance(vars(owner)[name], MemberDescriptorType)


def _made(said: list[Any]) -> BaseException:
    """An error like one that was made while tracing.  A constructor in Python may take other arguments than the error
    keeps, and is not called."""
    kind, args, attributes, slots, inner = said
    if inner:
        args = [*args, [_made(one) for one in inner]]
    found: BaseException
    if _is_constructed_in_python(kind):
        found = kind.__new__(kind, *args)
        found.args = tuple(args)
    else:
        found = kind(*args)
    for name, value in slots.items():
        if value is not None:
            setattr(found, name, value)
    vars(found).update(attributes)
    return found


def _is_constructed_in_python(kind: type) -> bool:
    made_by = [vars(base).get(name) for base in kind.__mro__ for name in ("__init__", "__new__")]
    return any(method is not None and not isinstance(method, _IN_C) for method in made_by)


def _text(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
