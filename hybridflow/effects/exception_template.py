"""What an exception consists of, and others like it: what is in it may have its value later."""

from __future__ import annotations

from types import BuiltinFunctionType, MemberDescriptorType, WrapperDescriptorType
from typing import Any

# What exceptions of Python keep beside their arguments and attributes, and let be set.
_SLOTS = (
    *("code", "value", "name", "path", "msg", "errno", "strerror", "filename", "filename2"),
    *("lineno", "offset", "text", "end_lineno", "end_offset", "encoding", "object", "start", "end", "reason"),
)
_IN_C = (WrapperDescriptorType, BuiltinFunctionType)


def said_of(error: BaseException | None) -> list[Any]:
    """What ``parts_of_exception`` makes an error of: its type, arguments, attributes, what its class keeps elsewhere,
    and the errors of a group."""
    if error is None:
        return []
    slots = {name: getattr(error, name) for name in _SLOTS if _is_slot(type(error), name)}
    args, inner = error.args, []
    if isinstance(error, BaseExceptionGroup):
        args, inner = (error.message,), [said_of(one) for one in error.exceptions]
    return [type(error), list(args), dict(vars(error)), slots, inner]


def _is_slot(kind: type, name: str) -> bool:
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    return owner is not None and isinstance(vars(owner)[name], MemberDescriptorType)


def parts_of_exception(said: list[Any]) -> BaseException:
    """An error like one that was made while tracing.  A constructor in Python may take other arguments than the error
    keeps, and is not called."""
    kind, args, attributes, slots, inner = said
    if inner:
        args = [*args, [parts_of_exception(one) for one in inner]]
    result: BaseException
    if _is_constructed_in_python(kind):
        result = kind.__new__(kind, *args)
        result.args = tuple(args)
    else:
        result = kind(*args)
    for name, value in slots.items():
        if value is not None:
            setattr(result, name, value)
    vars(result).update(attributes)
    return result


def _is_constructed_in_python(kind: type) -> bool:
    made_by = [vars(base).get(name) for base in kind.__mro__ for name in ("__init__", "__new__")]
    return any(method is not None and not isinstance(method, _IN_C) for method in made_by)
