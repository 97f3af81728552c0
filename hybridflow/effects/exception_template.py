"""What an exception consists of, and others like it: what is in it may have its value later.

Of the frames of the user's code that was traced, names and lines are kept.  Where an error is raised, code of such a
name, file and line is made, and run: so the traceback has a frame that shows the user's text.
"""

from __future__ import annotations

import os
import sys
from types import BuiltinFunctionType, FrameType, MemberDescriptorType, TracebackType, WrapperDescriptorType
from typing import Any, NamedTuple

from hybridflow import code_traits
from hybridflow.errors import is_internal

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


# Tracebacks

_TRACER = os.path.join(code_traits.PACKAGE, "jit", "tracer.py")  # what calls the function that is traced
_MOST = 64  # frames, of which the outermost are left out


class Place(NamedTuple):
    """A line that a function had come to."""

    filename: str
    function: str
    line: int


def frames_of_user(error: BaseException) -> list[Place]:
    """Where the code that is traced has come to, and, of an error that it has raised, where: outermost first."""
    frames: list[tuple[FrameType, int | None]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _TRACER:
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    frames.reverse()
    entry: TracebackType | None = error.__traceback__
    inner = entry and entry.tb_frame
    frames = frames[: next((k for k, (outer, _) in enumerate(frames) if outer is inner), None)]
    while entry is not None:
        frames.append((entry.tb_frame, entry.tb_lineno))
        entry = entry.tb_next
    places: list[Place] = []
    for f, line in frames:
        code = f.f_code
        place = Place(code.co_filename, code.co_name, line or code.co_firstlineno)
        if not is_internal(code.co_filename) and not _is_part_of(place, places[-1:]):
            places.append(place)
    return places[-_MOST:]


def _is_part_of(place: Place, before: list[Place]) -> bool:
    """Whether it is a lambda in the line that calls it, as comprehensions are while they are traced."""
    return place.function == "<lambda>" and any(place[::2] == other[::2] for other in before)


def traceback_of(places: list[Place]) -> TracebackType | None:
    """A traceback with a frame for each place, outermost first."""
    result: TracebackType | None = None
    for place in reversed(places):
        frame = _frame_of(place)
        result = TracebackType(result, frame, frame.f_lasti, place.line)
    return result


def _frame_of(place: Place) -> FrameType:
    code = compile("frame()", place.filename, "eval")
    names = {"frame": lambda: sys._getframe(1), "__builtins__": {}}
    frame: FrameType = eval(
        code.replace(
            co_name=place.function,
            co_qualname=place.function,
            co_firstlineno=place.line,
            co_linetable=_of_one_line(len(code.co_code) // 2),
        ),
        names,
    )
    return frame


def _of_one_line(instructions: int) -> bytes:
    """CPython's table of the lines of code (Objects/locations.md), all of which is on its first line: of up to eight
    instructions, that no columns are known (kind 13), and that the line is the one before."""
    return b"".join(bytes([0x80 | 13 << 3 | min(8, instructions - k) - 1, 0]) for k in range(0, instructions, 8))
