"""What instrumented byte code calls: see ``autograph.transform.instrument_bytecode``.

Like the calls of instrumented source, but that operands come first, and that a condition is Python's own.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from hybridflow.autograph.hooks.recorder import (
    Recorder,
    before_method,
    global_value,
    prepared_method,
    update_in_place,
    write_cell,
)
from hybridflow.autograph.runtime import list_append
from hybridflow.autograph.runtime.iterables import IterationSpace
from hybridflow.effects import runtime_text
from hybridflow.errors import TraceError
from hybridflow.guards import container_reads
from hybridflow.guards.attribute_reads import MISSING, read_attribute
from hybridflow.guards.guard_builder import active
from hybridflow.guards.read_events import INERT, note_cell
from hybridflow.tracing.symbolic_tensor import why_unconverted


class CodeRecorder(Recorder):
    """The one object that instrumented byte code knows."""

    __slots__ = ()

    # Names

    def cell_value(self, cell: types.CellType, name: str) -> Any:
        """A variable of an enclosing function."""
        recording = active.recording
        if recording is not None:
            recording.note(note_cell, cell, name)
        try:
            return list_append.check_read(cell.cell_contents)
        except ValueError:
            said = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
            raise NameError(said, name=name) from None

    def class_name(self, name: str) -> Any:
        """A name in the body of a class."""
        frame = sys._getframe(1)
        return frame.f_locals[name] if name in frame.f_locals else global_value(frame.f_globals, name)

    def class_cell(self, cell: types.CellType, name: str) -> Any:
        """A variable of an enclosing function in the body of a class, unless that has one of the name."""
        body = sys._getframe(1).f_locals
        return body[name] if name in body else self.cell_value(cell, name)

    def name_or_global(self, body: Mapping[str, Any], name: str) -> Any:
        """A name in a scope of its own within the body of a class."""
        return body[name] if name in body else global_value(sys._getframe(1).f_globals, name)

    def name_or_cell(self, body: Mapping[str, Any], cell: types.CellType, name: str) -> Any:
        return body[name] if name in body else self.cell_value(cell, name)

    def writes_cell_value(self, cell: types.CellType, name: str) -> None:
        """Before a variable of an enclosing function is assigned or deleted."""
        write_cell(cell, name)

    def imported_from(self, module: object, name: str) -> None:
        """Before a name is imported from a module."""
        recording = active.recording
        if recording is not None and issubclass(type(module), types.ModuleType):
            recording.note(read_attribute, module, name, getattr(module, name, MISSING))

    def super_attribute(self, kind: object, owner: type, instance: object, name: str, has_arguments: bool) -> Any:
        """``super().name``, where ``kind`` is what goes by the name ``super``."""
        if kind is super:
            return self.attribute(super(owner, instance), name)
        return self.attribute(self.fn(kind)(*((owner, instance) if has_arguments else ())), name)

    # Operators

    def operation(self, left: object, right: object, name: str) -> Any:
        return self.binary(name, left, right)

    def changed(self, left: object, right: object, name: str) -> Any:
        """``left += right``"""
        self.use(right)
        update_in_place(name, left, sys._getframe(1))
        return getattr(operator, f"i{name.strip('_')}")(left, right)

    def compared(self, left: object, right: object, name: str) -> Any:
        return getattr(operator, name)(self.use(left), self.use(right))

    def asked(self, left: object, right: object, name: str) -> bool:
        """Whether a comparison holds."""
        return self.truth(self.compared(left, right, name))

    def is_(self, left: object, right: object) -> bool:
        if left is None or right is None:
            return self.identity(left) is self.identity(right)
        return self.identical(left, right)

    def is_not(self, left: object, right: object) -> bool:
        return not self.is_(left, right)

    def truth(self, value: object) -> bool:
        """What Python branches on."""
        return value if type(value) is bool else bool(self.test(value))

    def iterate(self, value: Any, depth: int = 0) -> Any:
        if issubclass(type(value), IterationSpace) and not isinstance(value.length, int):
            remedy = why_unconverted(sys._getframe(1)) or "Use hf.while_loop."
            raise TraceError("for", f"the number of iterations of a loop depends on a tensor. {remedy}")
        return super().iterate(value, depth)

    # Calls

    def callee(self, function: Any) -> Any:
        """What is about to be called."""
        if active.recording is None or function is builtins.__build_class__:
            return function
        owner = function.__self__ if type(function) in _METHODS else None
        if owner is None or issubclass(type(owner), types.ModuleType):
            return self.fn(function)
        name = function.__name__
        before_method(owner, name, sys._getframe(1))
        return prepared_method(owner, name, self.fn(function))

    # Texts

    def formatted(self, value: object, spec: object, conversion: str) -> Any:
        """``f"{value!r:spec}"``"""
        return self.joined((value, conversion, spec))

    def converted(self, value: object, conversion: str) -> Any:
        """``f"{value!r}"``, before its format specification."""
        recording = active.recording
        if recording is not None and type(value) not in INERT:
            recording.note(container_reads.read_text, value)
        return runtime_text.text_of(_CONVERSIONS[conversion], value)

    def text(self, pieces: tuple[Any, ...]) -> Any:
        """Texts, each of which may be made when the program runs, as one."""
        return self.joined(*(piece if type(piece) is str else (piece, "", "") for piece in pieces))


_METHODS = (types.BuiltinMethodType, types.MethodType)
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}

CODE_RECORDER = CodeRecorder()
