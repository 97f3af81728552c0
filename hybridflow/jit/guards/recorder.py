"""The recorder: what instrumented code calls at each read, write and call.

Every method does what the user wrote and gives what it gives; while its thread traces, it notes what was read first.
"""

from __future__ import annotations

import builtins
import contextlib
import decimal
import functools
import inspect
import operator
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.array import elementwise, reductions
from hybridflow.array.elementwise import logical_not
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.blocks import block
from hybridflow.core.context import current
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.effects import caught, late
from hybridflow.jit.guards import calls, contents, questions
from hybridflow.jit.guards.attributes import MISSING, before_attribute, read_attribute
from hybridflow.jit.guards.recognition import ATOMS
from hybridflow.jit.guards.recording import Recording, active
from hybridflow.jit.guards.specials import (
    check_identity,
    check_repeats,
    is_open,
    known,
    method_of_list,
    method_of_lookup,
    method_of_tensor,
    method_of_text,
    special,
)
from hybridflow.jit.guards.twins import is_twin
from hybridflow.tracing import numbers
from hybridflow.tracing.convert.instrument import OPERATORS
from hybridflow.tracing.flow import blame, clauses, doubles, endings, guarding, journal, paths, stacks, state, taking
from hybridflow.tracing.flow.forks import Fork, truth
from hybridflow.tracing.flow.loops import Loop
from hybridflow.tracing.flow.places import CONTAINERS, UNBOUND, cell_place, global_place, place_of
from hybridflow.tracing.numbers import SymbolicNumber, refuse
from hybridflow.tracing.symbolic import SymbolicTensor

# Types of values of which nothing is read that could change.
_INERT = (ATOMS - {decimal.Decimal}) | {Tensor, SymbolicTensor, SymbolicNumber}


class Recorder:
    """The one object that instrumented code knows."""

    __slots__ = ()

    def name(self, name: str) -> Any:
        """A global or builtin name."""
        return _global(sys._getframe(1).f_globals, name)

    def name_in_class(self, name: str, body: Mapping[str, Any]) -> Any:
        """A global or builtin name in the body of a class, unless that has one of its own."""
        return body[name] if name in body else _global(sys._getframe(1).f_globals, name)

    def cell(self, probe: types.FunctionType) -> Any:
        """A variable of an enclosing function, which ``probe`` refers to and returns."""
        recording = active.recording
        if recording is not None:
            recording.note(_note_cell, probe)
        return stacks.seen(probe())

    def attribute(self, value: Any, name: str) -> Any:
        recording = active.recording
        if type(value) is SymbolicNumber:
            return numbers.attribute(value, name)
        if recording is None or type(value) in _INERT:
            return getattr(known(value) if type(value) is Dim and hasattr(int, name) else value, name)
        return stacks.seen(questions.get_attribute(recording, value, name))

    def method(self, value: Any, name: str) -> Any:
        """An attribute that is called."""
        if state.active.path is not None:
            if type(value) in CONTAINERS:
                journal.touch(place_of(value))
            taking.check_takes(value)
        if state.active.doubles and type(value) in CONTAINERS and name in _CHANGES and not stacks.is_appended(value):
            doubles.check_single(value, sys._getframe(1))
        found = self.fn(self.attribute(value, name))
        if isinstance(value, (dict, set, frozenset)):
            return method_of_lookup(value, found)
        if isinstance(value, list):
            return method_of_list(value, name, found)
        if isinstance(value, (Tensor, Variable)):
            return method_of_tensor(value, name, found)
        return found if type(value) is not str else method_of_text(value, name, found)

    def fn(self, function: Any) -> Any:
        """Something that is called."""
        recording = active.recording
        if recording is None or function is breakpoint:  # which looks at the frame that calls it
            return function
        found = recording.note(calls.prepare, function)
        if state.active.path is not None or state.active.spent:
            found = _touching(function, found)
        return special(function, found)

    def item(self, value: Any, key: Any) -> Any:
        recording = active.recording
        if recording is None:
            return value[key]
        if type(value) in _INERT:
            if type(key) not in ATOMS:
                recording.note(contents.consume, key)
            return value[key]
        return stacks.seen(questions.get_item(recording, value, questions.sought(value, key)))

    slice = staticmethod(slice)

    def iterate(self, value: Any) -> Any:
        recording = active.recording
        if recording is not None and type(value) not in _INERT:
            recording.note(questions.iterate, value)
            taking.check_takes(value)
        return value

    def test(self, value: Any) -> Any:
        """A value whose truth is asked for."""
        recording = active.recording
        if recording is not None and type(value) not in _INERT:
            recording.note(_note_truth, value)
        return value

    # Control flow: see ``tracing.convert.flow``.

    unbound = UNBOUND
    failures = Exception
    anything = BaseException
    stays = object()
    Fork = Fork

    def fork(self, value: Any, names: Sequence[str], loop: Loop | None) -> Any:
        """The condition of a statement or operator: a bool, or a Fork where it is a tensor."""
        if value is True or value is False:
            return value
        if is_open(value):
            frame = sys._getframe(1)
            return _forked(value, frame, names, loop)
        return bool(self.test(value))

    def fork_not(self, value: Any, names: Sequence[str], loop: Loop | None) -> Any:
        """As ``fork``, of the opposite."""
        if is_open(value):
            return _forked(logical_not(truth(value)), sys._getframe(1), names, loop)
        return not self.test(value)

    def negated(self, value: Any) -> Any:
        """``not value``"""
        return logical_not(truth(value)) if is_open(value) else not self.test(value)

    @staticmethod
    def chosen(fork: Any, one: Any, other: Any) -> Any:
        """``one if ... else other``"""
        return one if fork is True else other if fork is False else fork.value(one, other)

    @staticmethod
    def second(first: Any, second: Any, fork: Any) -> Any:
        """``first and second``, ``first or second``, where ``fork`` says whether it is the second."""
        if fork is True:
            return second
        if fork is False:
            return first
        fork.between()
        return fork.value(second, first, binds=False)

    def truth_of_second(self, first: Any, second: Any, fork: Any) -> Any:
        """As ``second``, where nothing but its truth matters."""
        if fork is True:
            return second
        if fork is False:
            return first
        second = truth(second) if is_open(second) else bool(self.test(second))
        fork.between()
        return fork.value(second, truth(first), binds=False)

    @staticmethod
    def live() -> bool:
        """Whether what follows a statement that may leave is come to."""
        path = state.active.path
        return path is None or path.bundle is None or path.frame is not sys._getframe(1)

    def returns(self, value: Any, names: Sequence[str]) -> Any:
        """What ``return`` returns in fact, or ``stays``; ``finally`` may yet read the names."""
        return value if state.active.path is None else endings.returned(sys._getframe(1), value, self.stays, names)

    def returned_by_end(self) -> Any:
        """What a function returns that has come to its end."""
        return None if state.active.path is None else endings.returned(sys._getframe(1), None, None)

    @staticmethod
    def yields(value: Any) -> Any:
        """Before ``yield``."""
        if state.active.path is not None:
            paths.check_not_staged(sys._getframe(1), "yield stands", "Return tensors, or choose with hf.where.")
        return value

    @staticmethod
    def depth() -> Any:
        """Before ``try`` or ``with``."""
        return paths.depth()

    @staticmethod
    def pause(since: Any, names: Sequence[str]) -> Any:
        """At the end of a block that may have been left, but at whose end something is to run."""
        return None if state.active.path is None else endings.pause(sys._getframe(1), since, names)

    @staticmethod
    def common(bundle: Any, names: Sequence[str]) -> list[Any]:
        """When ``finally`` begins after a pause."""
        return endings.common(sys._getframe(1), bundle, names)

    @staticmethod
    def resume(bundle: Any, names: Sequence[str], ended: int) -> list[Any]:
        """After such a block; ``ended`` is the line at which a block with ``finally`` begins, 0 for others."""
        frame = sys._getframe(1)
        if ended:
            endings.changed(frame, bundle)
            bundle = caught.passed_on(frame, bundle, ended)
        return endings.resume(frame, bundle, names)

    @staticmethod
    def caught_really(since: Any) -> None:
        """When ``except`` has caught something."""
        endings.caught(since)

    @staticmethod
    def passed(since: Any) -> None:
        """When ``finally`` begins."""
        endings.passed(since[0])

    @staticmethod
    def tries(
        first: int, last: int, catches: tuple[str, ...], names: tuple[str, ...], is_group: bool, loop: Loop | None
    ) -> Any:
        """Before ``try``, of whose lines some may raise what it ``catches``."""
        if current.trace is None:
            return None
        frame = sys._getframe(1)
        if loop is not None:
            loop.enter_path(blame.here(frame, "try"))
        guarded = clauses.Guarded(frame, first, last, catches, names, is_group=is_group)
        guarding.guard(guarded)
        return caught.Try(frame, guarded)

    @staticmethod
    def arrived(one: Any) -> bool:
        """Whether a ``try`` has errors to catch of which a tensor decides."""
        return one is not None and state.active.path is not None and one.arrived()

    @staticmethod
    def finally_(first: int, last: int, names: tuple[str, ...], loop: Loop | None) -> None:
        """Before ``try`` with ``finally``, and the lines after which that runs."""
        if current.trace is not None:
            frame = sys._getframe(1)
            if loop is not None:
                loop.enter_path(blame.here(frame, "try"))
            guarding.guard(clauses.Guarded(frame, first, last, (), names, is_finally=True))

    @staticmethod
    def manager(value: Any, first: int, last: int) -> Any:
        """The manager of a ``with``, and its lines."""
        if current.trace is not None:
            guarding.guard(clauses.Guarded(sys._getframe(1), first, last, (), manager=value))
        return value

    @staticmethod
    def threw(since: Any) -> bool:
        """Whether an exception has left a block in the program."""
        return caught.threw(sys._getframe(1), since)

    @staticmethod
    def is_staged() -> bool:
        """Whether it depends on a tensor that the running line is come to."""
        return state.active.path is not None and paths.is_staged(sys._getframe(1))

    @staticmethod
    def raises_later(error: Any, cause: Any) -> None:
        """``raise error from cause`` where it depends on a tensor whether that is come to."""
        caught.raise_later(sys._getframe(1), _exception(error), _exception(cause))

    @staticmethod
    def raises_again() -> None:
        """``raise`` there."""
        error = sys.exc_info()[1]
        if error is None:
            error = RuntimeError("No active exception to reraise")
        caught.raise_later(sys._getframe(1), error, error.__cause__)

    @staticmethod
    def require(value: Any, *message: Any) -> None:
        """``assert value, message`` of a tensor."""
        caught.require(sys._getframe(1), truth(value), AssertionError(*message))

    is_open = staticmethod(is_open)
    assertion = AssertionError

    @staticmethod
    def loop(names: Sequence[str], outer: Loop | None, has_else: bool) -> Loop:
        """A ``while`` begins."""
        return Loop(sys._getframe(1), names, outer, has_else)

    def each(self, names: Sequence[str], outer: Loop | None, has_else: bool, lists: Sequence[str], value: Any) -> Loop:
        """A ``for`` over ``value`` begins; of what the names ``lists`` hold its body does nothing but append to it."""
        found = Loop(sys._getframe(1), names, outer, has_else, lists)
        found.over_items(self.iterate(value))
        return found

    def use(self, value: Any) -> Any:
        """An operand of a comparison or a unary operator."""
        recording = active.recording
        if recording is not None and type(value) not in _INERT:
            recording.note(contents.consume, value)
            taking.check_takes(value)
        return value

    def joined(self, *pieces: Any) -> Any:
        """``f"..."``: texts, and values with their conversions and format specifications."""
        recording = active.recording
        if recording is not None:
            for piece in pieces:
                if type(piece) is tuple and type(piece[0]) not in _INERT:
                    recording.note(contents.read_text, piece[0])
        return late.joined(pieces)

    def binary(self, name: str, left: Any, right: Any) -> Any:
        recording = active.recording
        operation = _OPERATORS[name]
        if type(left) is str and name == "mod":
            operation = functools.partial(late.text_of, operation)
        elif type(right) is SymbolicNumber or type(left) is SymbolicNumber:
            check_repeats(left, right)
        if recording is None:
            return operation(left, right)
        if type(left) in _INERT and type(right) in _INERT:
            return recording.note(_quiet, operation, left, right)
        recording.note(_note_operands, left, right)
        return operation(left, right)

    def contains(self, item: Any, container: Any) -> Any:
        """``item in container``"""
        recording = active.recording
        if isinstance(container, SymbolicTensor) or (is_open(item) and type(container) in _SEQUENCES):
            return _is_among(item, container)
        if recording is not None and type(container) not in _INERT:
            item = questions.sought(container, item)
            recording.note(_note_membership, item, container)
            _note_identity(item)
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
        _note_identity(value)
        return self.identity(known(value))

    def identical(self, left: Any, right: Any) -> bool:
        """``left is right``, neither of them a constant."""
        check_identity(left, right)
        _note_identity(left)
        _note_identity(right)
        return self.identity(known(left)) is self.identity(known(right))

    def matched(self, value: Any, *names: str) -> Any:
        """The subject of ``match``, whose attributes ``names`` and items the patterns may look at."""
        refuse(value, "match looks at", "Ask with if and ==.")
        value = known(value)
        recording = active.recording
        if recording is not None and type(value) not in _INERT:
            recording.note(_note_match, value, names)
        return value

    def tried(self, read: Callable[[], Any]) -> None:
        """Reads that the code may come to later, or not at all; errors are raised when it does."""
        if active.recording is not None:
            with contextlib.suppress(Exception):
                read()

    def enter(self, value: Any) -> Any:
        """The context manager of ``with``."""
        recording = active.recording
        if recording is not None:
            recording.note(contents.before_operator, value, "__enter__", "__exit__", "__aenter__", "__aexit__")
        return value

    def imports(self, module: str, level: int) -> None:
        """Before an import statement."""
        recording = active.recording
        if recording is not None:
            recording.note(_note_module, sys._getframe(1).f_globals, module, level)

    def imported(self, module: str, level: int, name: str) -> None:
        """After an import of a name from a module."""
        recording = active.recording
        if recording is not None:
            recording.note(_note_import, sys._getframe(1).f_globals, module, level, name)

    # Writes

    def writes_name(self, name: str) -> None:
        """Before a global name is assigned or deleted."""
        recording = active.recording
        if recording is not None:
            recording.note(Recording.writes_global, sys._getframe(1).f_globals, name)
            journal.touch(global_place(sys._getframe(1).f_globals, name))

    def writes_cell(self, probe: types.FunctionType) -> None:
        """Before a variable of an enclosing function, which ``probe`` refers to, is assigned or deleted."""
        recording = active.recording
        if recording is not None:
            cell, name = (probe.__closure__ or ())[0], probe.__code__.co_freevars[0]
            recording.note(Recording.writes_cell, cell, name)
            journal.touch(cell_place(cell, name))

    def writes(self, value: Any, name: str) -> Any:
        """Before ``value.name`` is assigned or deleted."""
        recording = active.recording
        if recording is not None:
            recording.note(contents.before_write, value, name)
            if state.active.doubles:
                doubles.check_single(value, sys._getframe(1))
            if state.active.path is not None:
                journal.touch_attribute(value, name, sys._getframe(1))
        return value

    def updates(self, value: Any, name: str) -> Any:
        """Before ``value.name += ...``"""
        self.attribute(value, name)
        return self.writes(value, name)

    def writes_item(self, value: Any) -> Any:
        """Before ``value[...]`` is assigned or deleted."""
        recording = active.recording
        if recording is not None and type(value) not in _INERT:
            recording.note(_note_item_write, value)
        if state.active.doubles:
            doubles.check_single(value, sys._getframe(1))
        if state.active.path is not None:
            if type(value) is SymbolicTensor:
                journal.rebound(value)
            elif isinstance(value, np.ndarray):
                journal.check_can_be_undone("a NumPy array is changed")
            else:
                journal.touch(place_of(value))
        return value

    updates_item = writes_item

    def updates_in_place(self, name: str, value: Any) -> None:
        """Before ``name += ...``: lists and arrays change in place."""
        recording = active.recording
        if recording is not None and type(value) not in _INERT:
            recording.note(_note_update, name, value)
            if state.active.doubles:
                doubles.check_single(value, sys._getframe(1))
            if type(value) in CONTAINERS and state.active.path is not None:
                journal.touch(place_of(value))
            elif isinstance(value, np.ndarray):
                journal.check_can_be_undone("a NumPy array is changed")


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


_SEQUENCES = frozenset((list, tuple, dict, set, frozenset, range))


def _is_among(item: Any, container: Any) -> Any:
    """``item in container``, where it takes the value of a tensor to know."""
    parts = [container] if isinstance(container, Tensor) else list(container)
    found: Any = False
    for part in parts:
        if isinstance(part, (Tensor, bool, int, float)):
            equal = reductions.any(part == item)
            found = equal if found is False else elementwise.logical_or(found, equal)
    return found


def _exception(value: Any) -> Any:
    """What ``raise`` makes of its operand."""
    if isinstance(value, type) and issubclass(value, BaseException):
        value = value()
    if value is not None and not isinstance(value, BaseException):
        raise TypeError("exceptions must derive from BaseException")
    return value


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
            if type(value) in CONTAINERS:
                journal.touch(place_of(value))
        if function is setattr or function is delattr:
            journal.touch(place_of(*args[:2]))
        return found(*args, **kwargs)

    return call


def _forked(value: Any, frame: types.FrameType, names: Sequence[str], loop: Loop | None) -> Fork:
    where = blame.here(frame, "if")
    if loop is not None:
        loop.enter_path(where)
    recording, active.recording = active.recording, None
    try:
        return Fork(value, frame, names, where)
    finally:
        active.recording = recording


def _global(namespace: dict[str, Any], name: str) -> Any:
    recording = active.recording
    if recording is not None:
        recording.note(_note_name, namespace, name)
    if name in namespace:
        if state.active.path is not None:
            taking.saw(namespace[name])
            return stacks.seen(namespace[name])
        return namespace[name]
    names = _builtins(namespace)
    if name in names:
        return names[name]
    raise NameError(f"name '{name}' is not defined", name=name)


def _builtins(namespace: dict[str, Any]) -> dict[str, Any]:
    found = namespace.get("__builtins__", builtins)  # which a namespace given to types.FunctionType may lack
    return found if isinstance(found, dict) else found.__dict__


def _note_name(recording: Recording, namespace: dict[str, Any], name: str) -> None:
    slot = recording.root(namespace, namespace.get("__name__", "globals()"))
    if name in namespace:
        recording.read(slot, "item", name, namespace[name], name)
        return
    recording.absent(slot, "item", name, name)
    names = _builtins(namespace)
    slot = recording.root(names, "builtins")
    if name in names:
        recording.read(slot, "item", name, names[name], name)
    else:
        recording.absent(slot, "item", name, name)


def _note_cell(recording: Recording, probe: types.FunctionType) -> None:
    (cell,), (name,) = probe.__closure__ or (), probe.__code__.co_freevars
    slot = recording.cell_slot(cell, name)
    try:
        value = cell.cell_contents
    except ValueError:
        recording.absent(slot, "cell", None, name)
    else:
        recording.read(slot, "cell", None, value, name)


def _note_truth(recording: Recording, value: Any) -> None:
    if contents.base_container(value) is not None:
        contents.read_length(recording, value)
    elif isinstance(value, np.ndarray):
        contents.read_elements(recording, value)
    else:
        contents.before_operator(recording, value, "__bool__", "__len__")


def _note_operands(recording: Recording, left: Any, right: Any) -> None:
    live = isinstance(left, Tensor) or isinstance(right, Tensor)
    contents.consume(recording, left, live=live)
    contents.consume(recording, right, live=live)


def _quiet(_: Recording, operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    return operation(left, right)


def _note_membership(recording: Recording, item: Any, container: Any) -> None:
    slot = recording.slot_of(container)
    if slot is not None and type(container) in contents.MAPPINGS:
        if item in container:
            contents.read_item(recording, container, item, container[item], False)
        else:
            recording.absent(slot, "item", item, f"{recording.texts[slot]}[{item!r}]")
        return
    contents.before_operator(recording, container, "__contains__", "__iter__", "__getitem__")
    contents.consume(recording, container)
    contents.consume(recording, item)


def _note_identity(value: Any) -> None:
    """What the program does may depend on which tensors are one object."""
    if isinstance(value, Tensor) and current.trace is not None:
        current.trace.tells_apart = True


def _note_match(recording: Recording, value: Any, names: Sequence[str], depth: int = 8) -> None:
    """Note what patterns with these attributes may look at, in the subject and in what it holds, some levels down."""
    contents.consume(recording, value)
    slot = recording.slot_of(value)
    if slot is not None:
        recording.read(slot, "class", None, type(value), f"type({recording.texts[slot]})")
    parts = contents.items_of(value) if contents.base_container(value) is not None else []
    for name in (*names, *getattr(type(value), "__match_args__", ())):
        before_attribute(recording, value, name)
        found = _found(value, name)
        read_attribute(recording, value, name, found)
        parts.append(found)
    for part in parts if depth > 0 else ():
        if part is not MISSING and not contents.is_plain(part):
            _note_match(recording, part, names, depth - 1)


def _found(value: Any, name: str) -> Any:
    """``value.name`` where that runs nobody's code; else what is found in the class: it is recorded as it runs."""
    found = inspect.getattr_static(value, name, MISSING)
    if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return getattr(value, name, MISSING)
    return found


def _note_module(recording: Recording, namespace: dict[str, Any], module: str, level: int) -> types.ModuleType | None:
    if level:
        import importlib.util

        module = importlib.util.resolve_name("." * level + module, namespace.get("__package__") or "")
    found = sys.modules.get(module)
    slot = recording.root(sys.modules, "sys.modules")
    if found is None:
        recording.reason(f"imports {module}, which is not loaded", "import it outside of the function", is_effect=True)
        return None
    recording.read(slot, "item", module, found, f"the module {module}")
    return found


def _note_import(recording: Recording, namespace: dict[str, Any], module: str, level: int, name: str) -> None:
    found = _note_module(recording, namespace, module, level)
    if found is not None and name != "*":
        read_attribute(recording, found, name, getattr(found, name, MISSING))


def _note_item_write(recording: Recording, value: Any) -> None:
    if not isinstance(value, Variable) and contents.outlives(recording, value):  # a variable's are part of the program
        recording.effect(value, "sets items of {}")
    contents.before_operator(recording, value, "__setitem__", "__delitem__", "__getitem__")


def _note_update(recording: Recording, name: str, value: Any) -> None:
    mutable = contents.base_container(value) not in (None, tuple, frozenset) or isinstance(value, np.ndarray)
    if mutable and contents.outlives(recording, value):
        recording.effect(value, "changes {} in place")
    contents.consume(recording, value)
    contents.before_operator(recording, value, f"__i{name.strip('_')}__")


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


_OWN = os.path.dirname(__file__) + os.sep
guarding.is_converted.append(lambda frame: is_twin(frame.f_code) or frame.f_code.co_filename.startswith(_OWN))
