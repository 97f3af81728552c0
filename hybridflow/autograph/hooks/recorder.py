"""The recorder: what instrumented code calls at each read, write and call.

Every method does what the user wrote and gives what it gives; while its thread traces, it notes what was read first.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hybridflow import code_traits
from hybridflow.array import elementwise, reductions
from hybridflow.autograph.hooks import (
    comparisons,
    container_indexing,
    dynamic_list_reads,
    match_patterns,
    object_protocols,
    per_choice,
    sorting,
)
from hybridflow.autograph.hooks.builtin_overrides import (
    check_identity,
    check_repeats,
    known_number,
    known_values,
    method_of_list,
    method_of_tensor,
    method_of_text,
    special,
)
from hybridflow.autograph.hooks.control_flow import Branches
from hybridflow.autograph.runtime import (
    aliasing,
    dynamic_list,
    exception_handlers,
    iterator_advance,
    list_append,
    narrowing,
    object_trees,
    state,
    undo_log,
    with_statements,
)
from hybridflow.autograph.runtime.choices import Choice, is_choice
from hybridflow.autograph.runtime.mutable_locations import (
    CONTAINERS,
    cell_location,
    global_location,
    is_container,
    location_of,
)
from hybridflow.autograph.runtime.tensor_range import TensorRange
from hybridflow.autograph.transform.instrument import OPERATORS
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context_manager import Nested, block
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.effects import runtime_text
from hybridflow.guards import builtin_reads, calls, container_reads
from hybridflow.guards.attribute_reads import in_class
from hybridflow.guards.code_ownership import is_recorded, is_users_class
from hybridflow.guards.guard_builder import GuardBuilder, active
from hybridflow.guards.instrumented_code import is_converted
from hybridflow.guards.read_events import (
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
from hybridflow.guards.value_checks import ATOMS
from hybridflow.tracing import symbolic_number
from hybridflow.tracing.symbolic_number import SymbolicNumber, refuse
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


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
        return list_append.check_read(probe())

    def attribute(self, value: object, name: str) -> Any:
        recording = active.recording
        if type(value) is SymbolicNumber:
            return symbolic_number.attribute(value, name)
        if is_choice(value):
            return per_choice.each(value, lambda one: self.attribute(one, name), is_pure=True)
        if recording is None or type(value) in INERT:
            return getattr(known_number(value) if type(value) is Dim and hasattr(int, name) else value, name)
        return list_append.check_read(builtin_reads.get_attribute(recording, value, name))

    def method(self, value: Any, name: str) -> Any:
        """An attribute that is called."""
        if is_choice(value):
            value = per_choice.of_owner(value, lambda one: self.attribute(one, name))
            if is_choice(value):
                return functools.partial(per_choice.call_each, lambda one: self.method(one, name), value)
        before_method(value, name, sys._getframe(1))
        if dynamic_list_reads.is_grown(value):
            return dynamic_list_reads.method(value, name, getattr(value, name))
        function = self.fn(self.attribute(value, name))
        if type(value) in CONTAINERS and name in per_choice.KEEPS:
            function = getattr(function, "__wrapped__", function)
        return prepared_method(value, name, function)

    def fn(self, function: object) -> Any:
        """Something that is called."""
        recording = active.recording
        if is_choice(function):
            return functools.partial(per_choice.call_each, self.fn, function)
        if recording is None or function is breakpoint:  # which looks at the frame that calls it
            return function
        result = recording.note(calls.prepare, function)
        if state.active.scope is not None or state.active.spent:
            result = _touching(function, result)
            if isinstance(function, type) and _makes_anew(function):
                result = _making(function, result)
        result = special(function, result)
        if any(function is one for one in _LOOK_AT_CALLERS):
            return result
        if type(function) is not types.FunctionType or not is_recorded(function.__code__):
            result = dynamic_list_reads.callable_for(function, result)
        return result if _is_followed(function) else per_choice.Spread(result)  # a tensor may choose what it is given

    def made(self, value: object) -> Any:
        """A list, dict or set that the code makes."""
        if state.active.scope is not None:
            undo_log.note_made(value)
        return value

    def item(self, value: Any, key: object) -> Any:
        recording = active.recording
        if is_choice(value) or is_choice(key):
            return self._item_of_each(value, key)
        if recording is None:
            return value[key]
        if dynamic_list_reads.is_grown(value):
            return dynamic_list_reads.item(value, key)
        if container_indexing.takes(value, key):
            return list_append.check_read(container_indexing.item(recording, value, key))
        if type(value) in INERT:
            if type(key) not in ATOMS:
                recording.note(container_reads.consume, key)
            return value[key]
        return list_append.check_read(builtin_reads.get_item(recording, value, builtin_reads.sought(value, key)))

    def _item_of_each(self, value: object, key: object) -> Any:
        if is_choice(value):
            return per_choice.each(value, lambda one: self.item(one, key), is_pure=True)
        recording, key = active.recording, narrowing.narrow(key)
        if recording is not None and container_indexing.takes(value, key):
            return container_indexing.item(recording, value, key)
        if not is_choice(key):
            return self.item(value, key)
        return per_choice.each(key, lambda one: self.item(value, one), is_pure=True)

    slice = staticmethod(slice)

    def use(self, value: object) -> Any:
        """An operand of a comparison or a unary operator."""
        recording = active.recording
        if is_choice(value):
            return narrowing.narrow(value)
        if state.active.grown:
            value = dynamic_list_reads.materialize_lists(value)
        if recording is not None and type(value) not in INERT:
            recording.note(note_operand, value)
            iterator_advance.check_takes(value)
        return value

    def compares(self, value: object) -> Any:
        """An operand of a comparison by value."""
        if type(value) in (tuple, list) and active.recording is not None and comparisons.depends(value):
            return comparisons.Row(value)
        return self.use(value)

    def joined(self, *pieces: object) -> Any:
        """``f"..."``: texts, and values with their conversions and format specifications."""
        recording = active.recording
        if state.active.grown:
            dynamic_list_reads.materialize_lists(pieces)
        if recording is not None:
            for piece in pieces:
                if type(piece) is tuple and type(piece[0]) not in INERT:
                    recording.note(container_reads.read_text, piece[0])
        return runtime_text.joined(pieces)

    def binary(self, name: str, left: object, right: object) -> Any:
        recording = active.recording
        operation = _OPERATORS[name]
        if is_choice(left):
            return per_choice.each(left, lambda one: self.binary(name, one, right), is_pure=True)
        if is_choice(right):
            return per_choice.each(right, lambda one: self.binary(name, left, one), is_pure=True)
        if state.active.grown and not (name == "add" and type(left) is type(right) is list):
            left, right = dynamic_list_reads.materialize_lists(left), dynamic_list_reads.materialize_lists(right)
        if type(left) is str and name == "mod":
            operation = functools.partial(runtime_text.text_of, operation)
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
        if is_choice(container):
            return per_choice.each(container, lambda one: self.contains(item, one), is_pure=True)
        if is_choice(item):
            return per_choice.known_of_each(item, lambda one: self.contains(one, container))
        if isinstance(container, TensorRange):
            return container.holds(item)
        if state.active.grown:
            container = dynamic_list_reads.materialize_lists(container)
        if recording is not None and container_indexing.is_sought(container, item):
            return container_indexing.contains(recording, container, item)
        if isinstance(container, SymbolicTensor):
            return reductions.any(container == item)
        if recording is not None and container_indexing.may_be_among(item, container):
            return container_indexing.is_among(recording, item, container)
        if recording is not None and type(container) not in INERT:
            item = builtin_reads.sought(container, item)
            recording.note(note_membership, item, container)
            note_identity(item)
            iterator_advance.check_takes(container)
        method = object_protocols.special_method(container, "__contains__")
        if method is not None:
            return special(bool, bool)(per_choice.truth(method[1](container, item)))
        return item in container

    def identity(self, value: object) -> Any:
        """An operand of ``is``."""
        recording = active.recording
        if recording is not None and container_reads.base_container(value) is not None:
            slot = recording.slot_of(value)
            if slot is not None:
                recording.add_guard(slot, "is", value, "identity")
        return value

    def same(self, value: object) -> Any:
        """An operand of a chain of ``is``, or of one beside a constant that is a number."""
        check_identity(value, 0)
        note_identity(value)
        return self.identity(known_number(value))

    def is_none(self, value: object) -> Any:
        """``value is None``"""
        return per_choice.is_same(value, None) if is_choice(value) else self.identity(value) is None

    def identical(self, left: Any, right: Any) -> Any:
        """``left is right``, neither of them None."""
        if is_choice(left) or is_choice(right):
            one, other = (left, right) if is_choice(left) else (right, left)
            return per_choice.is_same(one, other)
        check_identity(left, right)
        if state.active.selected:
            aliasing.check_identity(left, right)
        note_identity(left)
        note_identity(right)
        return self.identity(known_number(left)) is self.identity(known_number(right))

    def matched(self, value: object, *names: str) -> Any:
        """The subject of ``match``, whose attributes ``names`` and items the patterns may look at."""
        if is_choice(value):
            value = per_choice.one(value, "match looks at it")
        refuse(value, "match looks at", "Ask with if and ==.")
        value = dynamic_list_reads.materialize_lists(value)
        value = known_values(value)
        recording = active.recording
        if recording is not None and type(value) not in INERT:
            recording.note(note_match, value, names)
        return value

    def subject(self, value: object, *names: str) -> Any:
        """The same where the patterns are matched by ``matching``."""
        value = narrowing.narrow(known_values(value))
        recording = active.recording
        if recording is not None and type(value) not in INERT and not is_choice(value):
            recording.note(note_match, value, names)
        return value

    def matching(self, subject: Any, pattern: Any, *operands: object) -> Any:
        """A pattern of ``match``, with the classes and values that it names."""
        matcher = match_patterns.Matcher(operands, self.fn(isinstance))
        return matcher.case(subject, pattern)

    def tried(self, read: Callable[[], Any]) -> None:
        """Reads that the code may come to later, or not at all; errors are raised when it does."""
        if active.recording is not None:
            with contextlib.suppress(Exception):
                read()

    def enter(self, value: object) -> Any:
        """The context manager of ``with``."""
        if is_choice(value):
            value = per_choice.one(value, "it is the manager of a with")
        recording = active.recording
        if recording is not None:
            recording.note(container_reads.before_operator, value, "__enter__", "__exit__", "__aenter__", "__aexit__")
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
            recording.note(GuardBuilder.writes_global, sys._getframe(1).f_globals, name)
            undo_log.record_write(global_location(sys._getframe(1).f_globals, name))

    def writes_cell(self, probe: types.FunctionType) -> None:
        """Before a variable of an enclosing function, which ``probe`` refers to, is assigned or deleted."""
        write_cell(*cell_of(probe))

    def writes(self, value: object, name: str) -> Any:
        """Before ``value.name`` is assigned or deleted."""
        return _record_attribute_write(value, name, sys._getframe(1))

    def updates(self, value: object, name: str) -> Any:
        """Before ``value.name += ...``"""
        self.attribute(value, name)
        return _record_attribute_write(value, name, sys._getframe(1))

    def writes_item(self, value: Any) -> Any:
        """Before ``value[...]`` is assigned or deleted."""
        if is_choice(value):
            value = per_choice.one(value, "an item of it is set")
        if type(value) in _IN_ROWS and (state.active.scope is not None or state.active.grown):
            dynamic_list.check_change(value)
        recording = active.recording
        if recording is not None and type(value) not in INERT:
            recording.note(note_item_write, value)
        if state.active.may_alias or state.active.selected:
            check = aliasing.check_not_aliased if type(value) in _SETS_ITEMS else aliasing.check_not_shared
            check(value, sys._getframe(1))
        if state.active.scope is not None and recording is not None:
            if type(value) is SymbolicTensor:
                undo_log.record_rebinding(value)
            elif isinstance(value, np.ndarray):
                undo_log.check_can_be_undone("a NumPy array is changed")
            else:
                undo_log.record_write(location_of(value))
        if dynamic_list_reads.is_grown(value):
            return dynamic_list_reads.Writer(value)
        return container_indexing.Items(value) if recording is not None and type(value) in _SETS_ITEMS else value

    updates_item = writes_item

    def updates_in_place(self, name: str, value: object) -> None:
        """Before ``name += ...``: lists and arrays change in place."""
        update_in_place(name, value, sys._getframe(1))


def _record_attribute_write(value: object, name: str, frame: types.FrameType) -> Any:
    """Before an attribute of a value is assigned or deleted by ``frame``."""
    recording = active.recording
    if is_choice(value):
        value = narrowing.narrow(value)
        if is_choice(value):
            return _attributes_of_one(value, name)
    if recording is None:
        return value
    recording.note(container_reads.before_write, value, name)
    if state.active.may_alias or state.active.selected:
        aliasing.check_not_aliased(value, frame)
    if state.active.scope is not None:
        undo_log.record_attribute_write(value, name, frame)
    origins = list(aliasing.origins(value))
    return container_indexing.Attributes(value, origins) if origins else value


def _attributes_of_one(choice: Choice, name: str) -> Any:
    """One of several objects, of which ``name`` is assigned."""
    recording, left = active.recording, narrowing.remaining_options(choice)
    owners = [choice.options[k] for k in left]
    if recording is None or not all(hasattr(one, name) and hasattr(one, "__dict__") for one in owners):
        raise choice.refused(f"its attribute {name} is set")
    for one in owners:
        recording.note(container_reads.before_write, one, name)
        aliasing.check_not_aliased(one, per_choice.frame_of_user())
    return container_indexing.Attributes(
        choice, [(one, elementwise.equal(choice.code, k)) for k, one in zip(left, owners)]
    )


def cell_of(probe: types.FunctionType) -> tuple[types.CellType, str]:
    """The cell that a function over one variable refers to, and the variable's name."""
    (cell,), (name,) = probe.__closure__ or (), probe.__code__.co_freevars
    return cell, name


def write_cell(cell: types.CellType, name: str) -> None:
    """Before a variable of an enclosing function is assigned or deleted."""
    recording = active.recording
    if recording is not None:
        recording.note(GuardBuilder.writes_cell, cell, name)
        undo_log.record_write(cell_location(cell, name))


def update_in_place(name: str, value: object, frame: types.FrameType) -> None:
    """Before ``frame`` does an operation that may change ``value`` in place."""
    recording = active.recording
    if recording is not None and type(value) not in INERT:
        recording.note(note_update, name, value)
        if type(value) in CONTAINERS and (state.active.scope is not None or state.active.grown):
            dynamic_list.check_change(value)
        if state.active.may_alias or state.active.selected:
            aliasing.check_not_shared(value, frame)
        if state.active.scope is not None and is_container(value):
            undo_log.record_write(location_of(value))
        elif isinstance(value, np.ndarray):
            undo_log.check_can_be_undone("a NumPy array is changed")


def before_method(value: object, name: str, frame: types.FrameType) -> None:
    """Before ``frame`` calls a method of ``value``."""
    if active.recording is None:  # code of ours runs, which shares functions with the user's
        return
    if state.active.scope is not None:
        if is_container(value):
            undo_log.record_write(location_of(value))
        iterator_advance.check_takes(value)
    if state.active.grown and type(value) in CONTAINERS and name in _CHANGES:
        dynamic_list.check_change(value)
    known = state.active.may_alias or state.active.selected
    if known and type(value) in CONTAINERS and name in _CHANGES and not list_append.is_appended(value):
        aliasing.check_not_shared(value, frame)


# What may be an item of a list whose length a tensor decides, and be changed.
_IN_ROWS = CONTAINERS | {SymbolicTensor}


def prepared_method(value: Any, name: str, method: Callable[..., Any]) -> Any:
    """What to call for a method of ``value``, which was prepared as ``method``."""
    kind = type(value)  # ``isinstance`` may run the user's ``__getattribute__``
    if issubclass(kind, (dict, set, frozenset)):
        return container_indexing.method_of_lookup(value, name, method)
    if issubclass(kind, list):
        return container_indexing.method_of_sequence(value, name, method_of_list(value, name, method))
    if kind is tuple:
        return container_indexing.method_of_sequence(value, name, method)
    if issubclass(kind, (Tensor, Variable)):
        return method_of_tensor(value, name, method)
    return method if kind is not str else method_of_text(value, name, method)


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

    def call(*args: object) -> Any:
        if args and type(args[0]) is types.GeneratorType:
            iterator_advance.check_takes(args[0])
        elif not (args and hasattr(type(args[0]), "_program_iterations")):
            undo_log.check_can_be_undone("next() is called")
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

    def call(*args: object, **kwargs: object) -> Any:
        value = make(*args, **kwargs)
        if type(value) is kind:
            undo_log.note_made(value)
        return value

    return call


def _touching(function: object, method: Callable[..., Any]) -> Any:
    """What to call for a function in C, which may change what it is given: not all that it does can be undone."""
    if function is next:
        return _next(method)
    if isinstance(function, (types.FunctionType, types.MethodType)) or any(function is one for one in _LOOK_AT_CALLERS):
        return method
    changes = isinstance(function, types.BuiltinFunctionType) and function.__module__ not in ("sys", "builtins")
    changes = changes or function is setattr or function is delattr
    if not changes and not iterator_advance.takes_are_watched():
        return method

    def call(*args: Any, **kwargs: object) -> Any:
        iterator_advance.check_takes(*args, *kwargs.values())
        for value in args if changes else ():
            if is_container(value):
                undo_log.record_write(location_of(value))
        if function is setattr or function is delattr:
            undo_log.record_write(location_of(*args[:2]))
        return method(*args, **kwargs)

    return call


def global_value(namespace: dict[str, Any], name: str) -> Any:
    """A global or builtin name of the code that these are the globals of."""
    recording = active.recording
    if recording is not None:
        recording.note(note_name, namespace, name)
    if name in namespace:
        if state.active.scope is not None:
            iterator_advance.saw(namespace[name])
            return list_append.check_read(namespace[name])
        return namespace[name]
    names = builtins_of(namespace)
    if name in names:
        return names[name]
    raise NameError(f"name '{name}' is not defined", name=name)


def _is_followed(function: object) -> bool:
    """Whether code of the user's takes what a function is given, and asks itself."""
    if isinstance(function, type):
        return is_users_class(function) or issubclass(function, BaseException)
    python = function.__func__ if isinstance(function, types.MethodType) else function
    return isinstance(python, types.FunctionType) and is_recorded(python.__code__)


def _quiet(_: GuardBuilder, operation: Callable[[Any, Any], Any], left: object, right: object) -> Any:
    return operation(left, right)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {name: getattr(operator, name) for name in OPERATORS.values()}

RECORDER = Recorder()


@block
def recording_to(recording: GuardBuilder) -> Iterator[None]:
    """Note in ``recording`` what the current thread reads."""
    before, here = active.recording, Nested(active.innermost)
    try:
        active.innermost, active.recording = here, recording
        yield
        if active.recording is not recording:
            recording.reason("was not recorded to its end", "report this: it is a defect of hybridflow")
    finally:
        if here.is_open(active.innermost):
            active.innermost, active.recording = here.outer, before


object_trees.is_users_class.append(is_users_class)
sorting.called.append(RECORDER.fn)
container_indexing.called_attribute.append(RECORDER.attribute)
exception_handlers.is_converted.append(
    lambda frame: is_converted(frame.f_code) or "stands in" in code_traits.of_file(frame.f_code.co_filename)
)
with_statements.is_users.append(
    lambda function: isinstance(function, types.FunctionType) and is_recorded(function.__code__)
)
