"""Messages of converted code: the user's line, with a mark under the condition, and what to do."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

from hybridflow.autograph.runtime.type_mismatch import TypeMismatch
from hybridflow.core.context_manager import block
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError, HybridflowError, ShapeError, TraceError, short_location


class CodeLocation(NamedTuple):
    """A place in the user's text: what runs at ``offset`` of ``code``; ``what`` is the statement: ``if``, ``while``."""

    code: CodeType
    offset: int
    line: int
    what: str

    @property
    def location(self) -> str:
        return f"{self.code.co_filename}:{self.line}"

    def excerpt(self) -> str:
        """The line, and a mark under the columns; nothing where the text is not to be had."""
        text = linecache.getline(self.code.co_filename, self.line).rstrip()
        if not text:
            return ""
        for k, (line, last, start, end) in enumerate(self.code.co_positions()):
            if k == self.offset // 2 and line == self.line and start is not None and end is not None:
                end = end if last == line else len(text)
                indent = len(text) - len(text.lstrip())
                marks = " " * (start - indent) + "^" * max(end - start, 1)
                return f"\n    {text.strip()}\n    {marks}"
        return f"\n    {text.strip()}"


def here(frame: FrameType, what: str) -> CodeLocation:
    return CodeLocation(frame.f_code, frame.f_lasti, frame.f_lineno, what)


_FIXES = {
    "dtype": "Give both one dtype, as with hf.astype(x, hf.float32).",
    "shape": "Give both one shape, as with hf.broadcast_to, hf.reshape or hf.pad.",
    "structure": "Bind containers with the same keys, attributes or number of items on both sides.",
    "unbound": "Give it a value before, or on the other side.",
    "object": "Change attributes of one object instead, or bind what the two hold.",
    "cycle": "They lead back to themselves: bind what they hold, or change attributes of one object instead.",
    "changed": "One side changes it in place where the other binds another: make a new one on both sides.",
    "kind": "Bind tensors, or the same Python value, on both sides.",
}


class MismatchReport(NamedTuple):
    """Why a name has no value after ``where``."""

    conflict: TypeMismatch
    where: CodeLocation

    def error(self, name: str) -> TraceError:
        """The error for who reads it."""
        one, other = self.conflict.one, self.conflict.other
        fix = _FIXES[self.conflict.kind]
        first, second = ("where it is true", "where it is false")
        if self.where.what in ("while", "for"):
            first, second = "before an iteration", "after it"
        message = (
            f"{name} has no one type after this {self.where.what}, whose condition is a tensor: {first} it is {one}, "
            f"{second} {other}. {fix}{self.where.excerpt()}"
        )
        return ConcretizationError(self.where.what, message, self.where.location)


def returns(conflict: TypeMismatch) -> TraceError:
    return ConcretizationError(
        "return",
        f"which value is returned depends on a tensor, and they have no one type: one is {conflict.one}, another "
        f"{conflict.other}. {_FIXES[conflict.kind]}",
    )


def choice_error(conflict: TypeMismatch) -> TraceError:
    return ConcretizationError(
        "convert",
        f"which value is chosen depends on a tensor, and they have no one type: one is {conflict.one}, "
        f"another {conflict.other}. {_FIXES[conflict.kind]}",
    )


def changed_error(place: Any, conflict: TypeMismatch) -> TraceError:
    return ConcretizationError(
        "convert",
        f"{place.text} is changed under a condition that is a tensor, to what has no one type: {conflict.one} and "
        f"{conflict.other}. Make a new value in each branch instead, with the same structure.",
    )


def changed_in_loop_error(place: Any, conflict: TypeMismatch, where: CodeLocation) -> TraceError:
    return ConcretizationError(
        where.what,
        f"{place.text} is changed in a loop over a tensor, and has no one type: before an iteration it is "
        f"{conflict.one}, after it {conflict.other}. {_FIXES[conflict.kind]}{where.excerpt()}",
        where.location,
    )


def many_elements(x: Tensor) -> ShapeError:
    return ShapeError(
        "bool",
        f"{x.type} has {x.size} elements, one is needed. Reduce it with hf.all, hf.any or hf.sum first.",
    )


@block
def at(where: CodeLocation) -> Iterator[None]:
    """Errors of the block name the user's line."""
    try:
        yield
    except HybridflowError as error:
        if error.where is None:
            error.where = where.location
            error.args = (f"{error.args[0]}  ({short_location(where.location)})",)
        raise


_UNBOUND_NAME = re.compile(r"variable '(\w+)'")


def explain_unbound(error: BaseException, conflicts: Mapping[tuple[CodeType, str], MismatchReport]) -> BaseException:
    """The error; for one that says that a name has no value, which branches or loops took from it, one that says so."""
    match = _UNBOUND_NAME.search(str(error)) if isinstance(error, NameError) else None
    if match is None:
        return error
    entry, code = error.__traceback__, None
    while entry is not None:
        code, entry = entry.tb_frame.f_code, entry.tb_next
    causes = {
        cause.where: cause for (conflict, name), cause in conflicts.items() if name == match[1] and conflict is code
    }
    if not causes:
        return error
    cause = next(reversed(causes.values()))
    return cause.error(match[1]).with_traceback(error.__traceback__)
