"""The recorder: what instrumented code calls at each read, write and call.

Every method does what the user wrote and gives what it gives; while its thread traces, it notes what was read first.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import operator
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hybridflow.array import elementwise, reductions
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.blocks import block
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.effects import late, managers
from hybridflow.jit.guards import (
    calls,
    choosing,
    comparing,
    contents,
    indexed,
    list_reads,
    matching,
    ordering,
    questions,
)
from hybridflow.jit.guards.attributes import in_class
from hybridflow.jit.guards.branches import Branches
from hybridflow.jit.guards.libraries import is_recorded, is_users_class
from hybridflow.jit.guards.notes import (
    INERT,
    builtins_of,
    note_cell,
    note_identity,
    note_import,
    note_item_write,
    note_match,
    note_membership,
    note_module,
    note_name,
    note_operand,
    note_operands,
    note_update,
)
from hybridflow.jit.guards.recognition import ATOMS
from hybridflow.jit.guards.recording import Recording, active
from hybridflow.jit.guards.specials import (
    check_identity,
    check_repeats,
    known,
    known_number,
    method_of_list,
    method_of_tensor,
    method_of_text,
    special,
)
from hybridflow.jit.guards.twins import is_converted
from hybridflow.tracing import numbers
from hybridflow.tracing.convert.instrument import OPERATORS
from hybridflow.tracing.flow import doubles, growth, guarding, journal, narrowing, stacks, state, taking, trees
from hybridflow.tracing.flow.choices import Choice
from hybridflow.tracing.flow.places import CONTAINERS, cell_place, global_place, is_container, place_of
from hybridflow.tracing.flow.ranges import TensorRange
from hybridflow.tracing.numbers import SymbolicNumber, refuse
from hybridflow.tracing.symbolic import SymbolicTensor


class Recorder(Branches):
    """The one object that instrumented code knows."""

    __slots__ = ()

    def name(self, name: str) -> Any:
        """A global or builtin name."""
        return global_value(sys._getframe(1).f_globals, name)

    def name_in_class(self, name: str, body: Mapping[str, Any]) -> Any:
        """A global or builtin name in the body of a class, unless that has one of its own."""
        return body[name] if name in body else global_value(sys._getframe(1).f_globals, name)

    def cell(self, probe: types.FunctionType) -> Any:
        """A variable of an enclosing function, which ``probe`` refers to and returns."""
        recording = active.recording
        if recording is not None:
            recording.note(note_cell, *cell_of(probe))
        return stacks.seen(probe())

    def attribute(self, value: Any, name: str) -> Any:
        recording = active.recording
        if type(value) is SymbolicNumber:
            return numbers.attribute(value, name)
        if isinstance(value, Choice):
            return choosing.each(value, lambda one: self.attribute(one, name), is_pure=True)
        if recording is None or type(value) in INERT:
            return getattr(known_number(value) if type(value) is Dim and hasattr(int, name) else value, name)
        return stacks.seen(questions.get_attribute(recording, value, name))

    def method(self, value: Any, name: str) -> Any:
        """An attribute that is called."""
        if isinstance(value, Choice):
            value = choosing.of_owner(value, lambda one: self.attribute(one, name))
            if isinstance(value, Choice):
                return functools.partial(choosing.call_each, lambda one: self.method(one, name), value)
        before_method(value, name, sys._getframe(1))
        if list_reads.is_grown(value):
            return list_reads.method(value, name, getattr(value, name))
        found = self.fn(self.attribute(value, name))
        if type(value) in CONTAINERS and name in choosing.KEEPS:
            found = getattr(found, "__wrapped__", found)
        return prepared_method(value, name, found)

    def fn(self, function: Any) -> Any:
        """Something that is called."""
        recording = active.recording
        if isinstance(function, Choice):
            return functools.partial(choosing.call_each, self.fn, function)
        if recording is None or function is breakpoint:  # which looks at the frame that calls it
            return function
        found = recording.note(calls.prepare, function)
        if state.active.path is not None or state.active.spent:
            found = _touching(function, found)
            if isinstance(function, type) and _makes_anew(function):
                found = _making(function, found)
        found = special(function, found)
        if any(function is one for one in _LOOK_AT_CALLERS):
            return found
        if type(function) is not types.FunctionType or not is_recorded(function.__code__):
            found = list_reads.called_with(function, found)
        return found if _is_followed(function) else choosing.Spread(found)  # a tensor may choose what it is given

    def made(self, value: Any) -> Any:
        """A list, dict or set that the code makes."""
        if state.active.path is not None:
            journal.note_made(value)
        return value

    def item(self, value: Any, key: Any) -> Any:
        recording = active.recording
        if isinstance(value, Choice) or isinstance(key, Choice):
            return self._item_of_each(value, key)
        if recording is None:
            return value[key]
        if list_reads.is_grown(value):
            return list_reads.item(value, key)
        if indexed.takes(value, key):
            return stacks.seen(indexed.item(recording, value, key))
        if type(value) in INERT:
            if type(key) not in ATOMS:
                recording.note(contents.consume, key)
            return value[key]
        return stacks.seen(questions.get_item(recording, value, questions.sought(value, key)))

    def _item_of_each(self, value: Any, key: Any) -> Any:
        if isinstance(value, Choice):
            return choosing.each(value, lambda one: self.item(one, key), is_pure=True)
        recording, key = active.recording, narrowing.narrowed(key)
        if recording is not None and indexed.takes(value, key):
            return indexed.item(recording, value, key)
        if not isinstance(key, Choice):
            return self.item(value, key)
        return choosing.each(key, lambda one: self.item(value, one), is_pure=True)

    slice = staticmethod(slice)

    def use(self, value: Any) -> Any:
        """An operand of a comparison or a unary operator."""
        recording = active.recording
        if isinstance(value, Choice):
            return narrowing.narrowed(value)
        if state.active.grown:
            value = list_reads.settled(value)
        if recording is not None and type(value) not in INERT:
            recording.note(note_operand, value)
            taking.check_takes(value)
        return value

    def compares(self, value: Any) -> Any:
        """An operand of a comparison by value."""
        if type(value) in (tuple, list) and active.recording is not None and comparing.depends(value):
            return comparing.Row(value)
        return self.use(value)

    def joined(self, *pieces: Any) -> Any:
        """``f"..."``: texts, and values with their conversions and format specifications."""
        recording = active.recording
        if state.active.grown:
            list_reads.settled(pieces)
        if recording is not None:
            for piece in pieces:
                if type(piece) is tuple and type(piece[0]) not in INERT:
                    recording.note(contents.read_text, piece[0])
        return late.joined(pieces)

    def binary(self, name: str, left: Any, right: Any) -> Any:
        recording = active.recording
        operation = _OPERATORS[name]
        if isinstance(left, Choice):
            return choosing.each(left, lambda one: self.binary(name, one, right), is_pure=True)
        if isinstance(right, Choice):
            return choosing.each(right, lambda one: self.binary(name, left, one), is_pure=True)
        if state.active.grown and not (name == "add" and type(left) is type(right) is list):
            left, right = list_reads.settled(left), list_reads.settled(right)
        if type(left) is str and name == "mod":
            operation = functools.partial(late.text_of, operation)
        elif type(right) is SymbolicNumber or type(left) is SymbolicNumber:
            check_repeats(left, right)
        if recording is None:
            return operation(left, right)
        if type(left) in INERT and type(right) in INERT:
            return recording.note(_quiet, operation, left, right)
        recording.note(note_operands, name, left, right)
        return operation(left, right)

    def contains(self, item: Any, container: Any) -> Any:
        """``item in container``"""
        recording = active.recording
        if isinstance(container, Choice):
            return choosing.each(container, lambda one: self.contains(item, one), is_pure=True)
        if isinstance(item, Choice):
            return choosing.known_of_each(item, lambda one: self.contains(one, container))
        if isinstance(container, TensorRange):
            return container.holds(item)
        if state.active.grown:
            container = list_reads.settled(container)
        if recording is not None and indexed.is_sought(container, item):
            return indexed.contains(recording, container, item)
        if isinstance(container, SymbolicTensor):
            return reductions.any(container == item)
        if recording is not None and indexed.may_be_among(item, container):
            return indexed.is_among(recording, item, container)
        if recording is not None and type(container) not in INERT:
            item = questions.sought(container, item)
            recording.note(note_membership, item, container)
            note_identity(item)
            taking.check_takes(container)
        return item in container

    def identity(self, value: Any) -> Any:
        """An operand of ``is``."""
        recording = active.recording
        if recording is not None and contents.base_container(value) is not None:
            slot = recording.slot_of(value)
            if slot is not None:
                recording.check(slot, "is", value, "identity")
        return value

    def same(self, value: Any) -> Any:
        """An operand of a chain of ``is``, or of one beside a constant that is a number."""
        check_identity(value, 0)
        note_identity(value)
        return self.identity(known_number(value))

    def is_none(self, value: Any) -> Any:
        """``value is None``"""
        return choosing.is_same(value, None) if isinstance(value, Choice) else self.identity(value) is None

    def identical(self, left: Any, right: Any) -> Any:
        """``left is right``, neither of them None."""
        if isinstance(left, Choice) or isinstance(right, Choice):
            one, other = (left, right) if isinstance(left, Choice) else (right, left)
            return choosing.is_same(one, other)
        check_identity(left, right)
        if state.active.selected:
            doubles.check_identity(left, right)
        note_identity(left)
        note_identity(right)
        return self.identity(known_number(left)) is self.identity(known_number(right))

    def matched(self, value: Any, *names: str) -> Any:
        """The subject of ``match``, whose attributes ``names`` and items the patterns may look at."""
        if isinstance(value, Choice):
            value = choosing.one(value, "match looks at it")
        refuse(value, "match looks at", "Ask with if and ==.")
        value = list_reads.settled(value)
        value = known(value)
        recording = active.recording
        if recording is not None and type(value) not in INERT:
            recording.note(note_match, value, names)
        return value

    def subject(self, value: Any, *names: str) -> Any:
        """The same where the patterns are matched by ``matching``."""
        value = narrowing.narrowed(known(value))
        recording = active.recording
        if recording is not None and type(value) not in INERT and not isinstance(value, Choice):
            recording.note(note_match, value, names)
        return value

    def matching(self, subject: Any, pattern: Any, *operands: Any) -> Any:
        """A pattern of ``match``, with the classes and values that it names."""
        matcher = matching.Matcher(operands, self.fn(isinstance))
        return matcher.case(subject, pattern)

    def tried(self, read: Callable[[], Any]) -> None:
        """Reads that the code may come to later, or not at all; errors are raised when it does."""
        if active.recording is not None:
            with contextlib.suppress(Exception):
                read()

    def enter(self, value: Any) -> Any:
        """The context manager of ``with``."""
        if isinstance(value, Choice):
            value = choosing.one(value, "it is the manager of a with")
        recording = active.recording
        if recording is not None:
            recording.note(contents.before_operator, value, "__enter__", "__exit__", "__aenter__", "__aexit__")
        return value

    def imports(self, module: str, level: int) -> None:
        """Before an import statement."""
        recording = active.recording
        if recording is not None:
            recording.note(note_module, sys._getframe(1).f_globals, module, level)

    def imported(self, module: str, level: int, name: str) -> None:
        """After an import of a name from a module."""
        recording = active.recording
        if recording is not None:
            recording.note(note_import, sys._getframe(1).f_globals, module, level, name)

    # Writes

    def writes_name(self, name: str) -> None:
        """Before a global name is assigned or deleted."""
        recording = active.recording
        if recording is not None:
            recording.note(Recording.writes_global, sys._getframe(1).f_globals, name)
            journal.touch(global_place(sys._getframe(1).f_globals, name))

    def writes_cell(self, probe: types.FunctionType) -> None:
        """Before a variable of an enclosing function, which ``probe`` refers to, is assigned or deleted."""
        write_cell(*cell_of(probe))

    def writes(self, value: Any, name: str) -> Any:
        """Before ``value.name`` is assigned or deleted."""
        return _written(value, name, sys._getframe(1))

    def updates(self, value: Any, name: str) -> Any:
        """Before ``value.name += ...``"""
        self.attribute(value, name)
        return _written(value, name, sys._getframe(1))

    def writes_item(self, value: Any) -> Any:
        """Before ``value[...]`` is assigned or deleted."""
        if isinstance(value, Choice):
            value = choosing.one(value, "an item of it is set")
        if type(value) in _IN_ROWS and (state.active.path is not None or state.active.grown):
            growth.check_change(value)
        recording = active.recording
        if recording is not None and type(value) not in INERT:
            recording.note(note_item_write, value)
        if state.active.doubles or state.active.selected:
            check = doubles.check_single if type(value) in _SETS_ITEMS else doubles.check_own
            check(value, sys._getframe(1))
        if state.active.path is not None and recording is not None:
            if type(value) is SymbolicTensor:
                journal.rebound(value)
            elif isinstance(value, np.ndarray):
                journal.check_can_be_undone("a NumPy array is changed")
            else:
                journal.touch(place_of(value))
        if list_reads.is_grown(value):
            return list_reads.Writer(value)
        return indexed.Items(value) if recording is not None and type(value) in _SETS_ITEMS else value

    updates_item = writes_item

    def updates_in_place(self, name: str, value: Any) -> None:
        """Before ``name += ...``: lists and arrays change in place."""
        update_in_place(name, value, sys._getframe(1))


def _written(value: Any, name: str, frame: types.FrameType) -> Any:
    """Before an attribute of a value is assigned or deleted by ``frame``."""
    recording = active.recording
    if isinstance(value, Choice):
        value = narrowing.narrowed(value)
        if isinstance(value, Choice):
            return _attributes_of_one(value, name)
    if recording is None:
        return value
    recording.note(contents.before_write, value, name)
    if state.active.doubles or state.active.selected:
        doubles.check_single(value, frame)
    if state.active.path is not None:
        journal.touch_attribute(value, name, frame)
    origins = list(doubles.origins(value))
    return indexed.Attributes(value, origins) if origins else value


def _attributes_of_one(choice: Choice, name: str) -> Any:
    """One of several objects, of which ``name`` is assigned."""
    recording, left = active.recording, narrowing.left_of(choice)
    owners = [choice.options[k] for k in left]
    if recording is None or not all(hasattr(one, name) and hasattr(one, "__dict__") for one in owners):
        raise choice.refused(f"its attribute {name} is set")
    for one in owners:
        recording.note(contents.before_write, one, name)
        doubles.check_single(one, choosing.frame_of_user())
    return indexed.Attributes(choice, [(one, elementwise.equal(choice.code, k)) for k, one in zip(left, owners)])


def cell_of(probe: types.FunctionType) -> tuple[types.CellType, str]:
    """The cell that a function over one variable refers to, and the variable's name."""
    (cell,), (name,) = probe.__closure__ or (), probe.__code__.co_freevars
    return cell, name


def write_cell(cell: types.CellType, name: str) -> None:
    """Before a variable of an enclosing function is assigned or deleted."""
    recording = active.recording
    if recording is not None:
        recording.note(Recording.writes_cell, cell, name)
        journal.touch(cell_place(cell, name))


def update_in_place(name: str, value: Any, frame: types.FrameType) -> None:
    """Before ``frame`` does an operation that may change ``value`` in place."""
    recording = active.recording
    if recording is not None and type(value) not in INERT:
        recording.note(note_update, name, value)
        if type(value) in CONTAINERS and (state.active.path is not None or state.active.grown):
            growth.check_change(value)
        if state.active.doubles or state.active.selected:
            doubles.check_own(value, frame)
        if state.active.path is not None and is_container(value):
            journal.touch(place_of(value))
        elif isinstance(value, np.ndarray):
            journal.check_can_be_undone("a NumPy array is changed")


def before_method(value: Any, name: str, frame: types.FrameType) -> None:
    """Before ``frame`` calls a method of ``value``."""
    if active.recording is None:  # code of ours runs, which shares functions with the user's
        return
    if state.active.path is not None:
        if is_container(value):
            journal.touch(place_of(value))
        taking.check_takes(value)
    if state.active.grown and type(value) in CONTAINERS and name in _CHANGES:
        growth.check_change(value)
    known = state.active.doubles or state.active.selected
    if known and type(value) in CONTAINERS and name in _CHANGES and not stacks.is_appended(value):
        doubles.check_own(value, frame)


# What may be an item of a list whose length a tensor decides, and be changed.
_IN_ROWS = CONTAINERS | {SymbolicTensor}


def prepared_method(value: Any, name: str, found: Any) -> Any:
    """What to call for a method of ``value``, which was prepared as ``found``."""
    kind = type(value)  # ``isinstance`` may run the user's ``__getattribute__``
    if issubclass(kind, (dict, set, frozenset)):
        return indexed.method_of_lookup(value, name, found)
    if issubclass(kind, list):
        return indexed.method_of_sequence(value, name, method_of_list(value, name, found))
    if kind is tuple:
        return indexed.method_of_sequence(value, name, found)
    if issubclass(kind, (Tensor, Variable)):
        return method_of_tensor(value, name, found)
    return found if kind is not str else method_of_text(value, name, found)


# Methods of containers that change them.
_CHANGES = frozenset(
    [
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "pop",
        "popleft",
        "popitem",
        "remove",
        "discard",
        "clear",
        "sort",
        "reverse",
        "rotate",
        "update",
        "setdefault",
        "add",
        "intersection_update",
        "difference_update",
        "symmetric_difference_update",
        "move_to_end",
        "__setitem__",
        "__delitem__",
        "__iadd__",
        "__ior__",
        "__imul__",
    ]
)


_SETS_ITEMS = frozenset((list, dict, collections.OrderedDict))


_LOOK_AT_CALLERS = (locals, globals, vars, dir, eval, exec, super, breakpoint, __import__, sys._getframe)


def _next(take: Callable[..., Any]) -> Callable[..., Any]:
    """``next``, which cannot be taken back: but for a generator, it is not known who made the iterator, and when."""

    def call(*args: Any) -> Any:
        if args and type(args[0]) is types.GeneratorType:
            taking.check_takes(args[0])
        elif not (args and hasattr(type(args[0]), "_turns_of_program")):
            journal.check_can_be_undone("next() is called")
        return take(*args)

    return call


# What makes an object that nobody else knows.
_MAKERS = tuple([kind.__new__ for kind in (object, *CONTAINERS)])


def _makes_anew(kind: type) -> bool:
    """Whether a class makes a new object at each call, as code of the user's, which may return another, might not."""
    return any(kind.__new__ is maker for maker in _MAKERS) and in_class(type(kind), "__call__") is _CALL


_CALL = type.__dict__["__call__"]


def _making(kind: type, make: Callable[..., Any]) -> Callable[..., Any]:
    """``make``, of which it is noted that it makes an object."""

    def call(*args: Any, **kwargs: Any) -> Any:
        value = make(*args, **kwargs)
        if type(value) is kind:
            journal.note_made(value)
        return value

    return call


def _touching(function: Any, found: Any) -> Any:
    """What to call for a function in C, which may change what it is given: not all that it does can be undone."""
    if function is next:
        return _next(found)
    if isinstance(function, (types.FunctionType, types.MethodType)) or any(function is one for one in _LOOK_AT_CALLERS):
        return found
    changes = isinstance(function, types.BuiltinFunctionType) and function.__module__ not in ("sys", "builtins")
    changes = changes or function is setattr or function is delattr
    if not changes and not taking.takes_are_watched():
        return found

    def call(*args: Any, **kwargs: Any) -> Any:
        taking.check_takes(*args, *kwargs.values())
        for value in args if changes else ():
            if is_container(value):
                journal.touch(place_of(value))
        if function is setattr or function is delattr:
            journal.touch(place_of(*args[:2]))
        return found(*args, **kwargs)

    return call


def global_value(namespace: dict[str, Any], name: str) -> Any:
    """A global or builtin name of the code that these are the globals of."""
    recording = active.recording
    if recording is not None:
        recording.note(note_name, namespace, name)
    if name in namespace:
        if state.active.path is not None:
            taking.saw(namespace[name])
            return stacks.seen(namespace[name])
        return namespace[name]
    names = builtins_of(namespace)
    if name in names:
        return names[name]
    raise NameError(f"name '{name}' is not defined", name=name)


def _is_followed(function: Any) -> bool:
    """Whether code of the user's takes what a function is given, and asks itself."""
    if isinstance(function, type):
        return is_users_class(function) or issubclass(function, BaseException)
    python = function.__func__ if isinstance(function, types.MethodType) else function
    return isinstance(python, types.FunctionType) and is_recorded(python.__code__)


def _quiet(_: Recording, operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    return operation(left, right)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {name: getattr(operator, name) for name in OPERATORS.values()}

RECORDER = Recorder()


@block
def recording_to(recording: Recording) -> Iterator[None]:
    """Note in ``recording`` what the current thread reads."""
    before, active.recording = active.recording, recording
    try:
        yield
        if active.recording is not recording:
            recording.reason("was not recorded to its end", "report this: it is a defect of hybridflow")
    finally:
        active.recording = before


# Where code lies that stands for what converted code does: ``for`` asks a loop for its items.
_OWN = (os.path.dirname(__file__) + os.sep, os.path.dirname(state.__file__) + os.sep)
trees.is_users_class.append(is_users_class)
ordering.called.append(RECORDER.fn)
indexed.called_attribute.append(RECORDER.attribute)
guarding.is_converted.append(lambda frame: is_converted(frame.f_code) or frame.f_code.co_filename.startswith(_OWN))
managers.is_users.append(lambda function: isinstance(function, types.FunctionType) and is_recorded(function.__code__))
