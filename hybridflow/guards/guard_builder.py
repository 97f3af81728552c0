"""What one trace reads from outside: a program of guards that finds each value again, and what no guard can hold.

An object is *outside* if it came from an argument, a global, a closure or from another outside object.  Each read of an
outside object becomes a step (``calls.guard_steps.GuardStep``): where the value is found, starting from what an earlier
step found, and how it is recognised.  Nothing needs to be kept alive for that, and nothing is looked at that was not
read.

What cannot be guarded is a *reason*: a call of ``time.time``, an item appended to a list that outlives the call.  A
trace with reasons serves the one call that it was made for.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

from hybridflow.autograph.runtime import undo_log
from hybridflow.autograph.runtime.choices import Choice
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core import pytree
from hybridflow.core.context_manager import Nested
from hybridflow.core.pytree import instance_dict
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor, looked_at
from hybridflow.effects.runtime_text import RuntimeText
from hybridflow.errors import TraceError, is_internal, user_location
from hybridflow.guards import attribute_writes, c_function_models, trace_undo_log
from hybridflow.guards.code_ownership import is_recorded, is_users_class
from hybridflow.guards.value_checks import (
    ATOMS,
    CONTAINERS,
    MAPPINGS,
    ArrayContents,
    SameResult,
    check_of,
    items_of,
    same_items,
)
from hybridflow.runtime.calls.guard_steps import GuardStep, first_failing, has_own_dict, mro_of
from hybridflow.runtime.fork_safe_locks import thread_states, trace_states
from hybridflow.tracing.symbolic_float import SymbolicFloat
from hybridflow.tracing.symbolic_number import SymbolicNumber
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_KEEP = "return what changes, or keep it in an hf.Variable"
_NOTHING = object()


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why the calls of a function cannot be answered by what was traced: ``text`` says what it does, at ``where``."""

    text: str
    where: str | None
    remedy: str
    is_effect: bool = False


class _Active(threading.local):
    """The recording that goes on in this thread; None also while a note is taken, which runs code of its own."""

    recording: GuardBuilder | None = None
    innermost: Nested | None = None  # the block in which it goes on


active = _Active()
thread_states.append(active)
trace_states.append(active)


def set_trace(function: Any) -> None:
    """``sys.settrace``, which Python 3.11 refuses while another thread is inside of it."""
    while True:
        try:
            sys.settrace(function)
            return
        except RuntimeError:
            time.sleep(0)  # let the other thread finish


def _is_caught(value: object) -> bool:
    """Whether it is a class of exceptions."""
    return issubclass(type(value), type) and issubclass(value, BaseException)  # type: ignore[arg-type]


class GuardBuilder:
    """The reads of one trace of the function ``name``."""

    def __init__(self, name: str, is_step: bool = False) -> None:
        self.name = name
        # Libraries that count as pure in this trace, besides those that do in all.
        self.pure_packages = c_function_models.PURE_IN_STEPS if is_step else frozenset()
        self.steps: list[GuardStep] = []
        self.texts: list[str] = []  # how the user would write what each step reads
        self.reasons: list[Reason] = []
        self.followed: dict[int, types.FunctionType] = {}  # functions that are recorded as they run, by id
        self.swaps: Any = None  # see instrumented_code.CodeSwaps
        self.prepare: Any = None  # see calls.prepare, which needs what needs this class
        self.tracer: Any = None  # of sys.settrace, while this recording alone has one: see unseen
        self.consumed: set[tuple[int, bool]] = set()  # ids of objects that were given to others: see contents
        self.untracked: set[types.CodeType] = set()  # code that ran although nothing recorded what it reads
        self.special: dict[type, Any] = {}  # the special methods of classes whose objects were given to others
        self.imports = 0  # how deep in imports the function was called: see unseen
        self.live: dict[int, Any] = {}  # outside arrays that the program reads where they lie, by id
        self._slots: dict[int, int] = {}  # id(outside object) -> a slot in which it is found
        self._known: dict[Any, int] = {}  # what was read -> its slot
        self._alive: list[Any] = []  # keeps the ids above unique
        self._copies: dict[int, str] = {}  # containers among the arguments: the function sees copies of them
        self._watched: list[tuple[Any, Any, str, bool]] = []  # (object, what it held, text, is a copy)
        self._assigned: list[tuple[Callable[[], Any], Callable[[], None], str, str | None]] = []  # names: look, restore
        self._cells: dict[int, tuple[int, int]] = {}  # id(cell) -> slot of its function, position in the closure
        self._locations: dict[
            tuple[int, str], attribute_writes.AttributeSlot
        ] = {}  # by slot of the dict of an object's own, and name
        self._taken: list[
            tuple[attribute_writes.AttributeSlot, Any]
        ] = []  # of these the program's results, with what the trace left
        self._undo = trace_undo_log.Log()

    def note(self, function: Callable[..., Any], *args: Any) -> Any:
        """``function(self, *args)``, with nothing recorded of what that runs."""
        before, active.recording = active.recording, None
        tracer = self.tracer if before is not None else None
        if tracer is not None:
            set_trace(None)  # nothing to see, and it costs at each call
        try:
            return function(self, *args)
        finally:
            if tracer is not None:
                set_trace(tracer)
            active.recording = before

    def called(self, function: Any, text: str) -> Callable[..., Any]:
        """What code of ours calls in the place of a function, method or object.  If it is the user's, what it reads is
        recorded, from what it belongs to on: no step leads there."""
        kind = type(function)
        python = function.__func__ if kind is types.MethodType else function
        if kind is not types.FunctionType and kind is not types.MethodType:
            python = next((vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base)), None)
        if not isinstance(python, types.FunctionType) or not is_recorded(python.__code__):
            return function
        self.weak_root(function.__self__ if kind is types.MethodType else function, text)
        return self.note(self.prepare, function)

    # Outside objects

    def slot_of(self, value: object) -> int | None:
        """The slot in which an outside object is found; None for what the trace made itself."""
        return self._slots.get(id(value))

    def text_of(self, value: object) -> str:
        slot = self.slot_of(value)
        return self._copies.get(id(value), type(value).__name__) if slot is None else self.texts[slot]

    def is_copy(self, value: object) -> bool:
        """Whether a value is the function's own copy of a container that was passed to it."""
        return id(value) in self._copies

    def root(self, value: object, text: str) -> int:
        """The slot of an object that is always there: a namespace, a module, a class, a cell."""
        known = self.slot_of(value)
        return (
            known
            if known is not None
            else self._add_guard_step(("root", id(value)), "root", -1, value, "any", None, text, value)
        )

    def weak_root(self, value: object, text: str) -> int:
        """The slot of an object that the caller holds, or that no path leads to; kept alive only where it must be."""
        known = self.slot_of(value)
        if known is not None:
            return known
        try:
            reference = weakref.ref(value)
        except TypeError:
            return self.root(value, text)
        return self._add_guard_step(("root", id(value)), "weak", -1, reference, "any", None, text, value)

    def copied_argument(self, container: object, path: str) -> None:
        """Note that the function sees a copy of a container of the caller's."""
        self._alive.append(container)
        self._copies[id(container)] = path
        self._watch_mutations(container, path, True)

    def closure_of(self, function: types.FunctionType, slot: int) -> None:
        """Remember how the cells of an outside function are reached."""
        for k, cell in enumerate(function.__closure__ or ()):
            self._cells.setdefault(id(cell), (slot, k))

    def cell_slot(self, cell: types.CellType, name: str) -> int:
        """The slot of a closure's cell."""
        known = self.slot_of(cell)
        if known is not None:
            return known
        cell_read = self._cells.get(id(cell))
        if cell_read is None:
            return self.root(cell, name)
        slot, position = cell_read
        function = self.texts[slot]
        closure = self._add_guard_step(
            (slot, "closure"), "closure", slot, None, "type", tuple, f"{function}.__closure__"
        )
        return self._add_guard_step(
            (slot, "cell", position), "index", closure, position, "type", types.CellType, name, cell
        )

    # Reads

    def guard_read(self, owner: int, read: str, operand: object, value: object, text: str) -> int:
        """Note that reading ``operand`` of the object in slot ``owner`` gave ``value``; the slot of the value.

        What the trace has set there itself is not outside, and the slot is the owner's."""
        if read == "item" and self._was_written_here((owner, operand)):
            return owner
        key = (owner, read, type(operand), operand)
        known = self._known.get(key)
        if known is not None:
            return known
        check, expected = check_of(value)
        earlier = self.slot_of(value)
        if check == "type" and earlier is not None:
            check, expected = "same", earlier  # another way to one container
        slot = self._add_guard_step(key, read, owner, operand, check, expected, text, value)
        self._guard_exception(slot, value)
        return slot

    def _guard_exception(self, slot: int, value: object) -> None:
        """Of an exception, or a class of such, note the bases, which decide what clause catches it."""
        if issubclass(type(value), tuple):
            self._guard_caught(slot, value)
            return
        is_class = issubclass(type(value), type)
        kind: Any = value if is_class else type(value)
        if not issubclass(kind, BaseException) or not is_users_class(kind):
            return
        if is_class:
            self.guard_mro(slot, kind)
        else:
            self.guard_read(slot, "class", None, kind, f"type({self.texts[slot]})")

    def _guard_caught(self, slot: int, value: Any) -> None:
        """Of a tuple of classes of exceptions, of which a clause takes each, note them; what its own class may say of
        them a clause does not ask."""
        if not all(map(_is_caught, tuple.__iter__(value))):
            return
        if type(value) is tuple:
            self.add_guard(slot, "length", len(value))
        else:
            self.add_guard(slot, "call", SameResult(tuple.__len__, tuple.__len__(value)), "length")
        for k, item in enumerate(tuple.__iter__(value)):
            self.guard_read(slot, "index", k, item, f"{self.texts[slot]}[{k}]")

    def guard_instance_dict(self, slot: int, value: object, attributes: object) -> int:
        """Note that the attributes of the object in a slot are in the dict ``attributes``; the slot of that."""
        read, operand = ("own", None) if has_own_dict(value, attributes) else ("attribute", "__dict__")
        return self.guard_read(slot, read, operand, attributes, f"vars({self.texts[slot]})")

    def guard_mro(self, slot: int, kind: type) -> None:
        """Note the method resolution order of the class in a slot."""
        expected = tuple(map(weakref.ref, mro_of(kind)))
        self._add_guard_step((slot, "mro"), "mro", slot, None, "referents", expected, f"{self.texts[slot]}.__mro__")

    def guard_absent(self, owner: int, read: str, operand: object, text: str) -> None:
        """Note that there was nothing to read."""
        key = (owner, read, type(operand), operand)
        if key not in self._known:
            self._add_guard_step(key, read, owner, operand, "absent", None, text)

    def add_guard(self, slot: int, check: str, expected: object, key: object = None) -> None:
        """Check one more thing of a value that was read."""
        key = ("check", slot, check, key)
        if key not in self._known:
            self._add_guard_step(key, "slot", slot, None, check, expected, self.texts[slot])

    def _add_guard_step(
        self,
        key: Any,
        read: str,
        owner: int,
        operand: object,
        check: str,
        expected: object,
        text: str,
        value: Any = None,
    ) -> int:
        known = self._known.get(key)
        if known is not None:
            return known
        slot = len(self.steps)
        self.steps.append(GuardStep(read, owner, operand, check, expected))
        self.texts.append(text)
        self._known[key] = slot
        self._alive.append(value)
        if type(value) not in ATOMS and id(value) not in self._slots:
            self._slots[id(value)] = slot
            self._watch_mutations(value, text, False)
        if type(looked_at(value)) is Tensor and key[0] != "value":  # which may be given another value
            array = value._array
            self._add_guard_step(("value", slot), "attribute", slot, "_array", *check_of(array), text, array)
        return slot

    # Changes

    def reason(
        self, text: str, remedy: str, is_effect: bool = False, where: str | None = None, can_undo: bool = False
    ) -> None:
        """Note that the trace cannot serve another call.  It ``can_undo`` what is done, or nothing is."""
        self.reasons.append(Reason(text, where or user_location(2), remedy, is_effect))
        self._undo.is_complete &= can_undo

    def opaque_array(self, value: object) -> None:
        """Note that the elements of another library's array, or of what has an ``__array__``, were read."""
        said = f"reads the elements of a {type(value).__name__}"
        self.reason(said, "pass hf.asarray of it as an argument", can_undo=True)

    def shared_memory(self, tensor: object, array: Any) -> None:
        """Note the elements of a tensor over memory that an array of somebody else's has."""
        tensor_slot = self.slot_of(tensor)
        slot = None if tensor_slot is None else self._known.get(("value", tensor_slot))
        if slot is None:
            slot = self.weak_root(array, "memory of a tensor")
        self.add_guard(slot, "call", ArrayContents(array), "elements")

    def on_array_shared(self, array: Any) -> None:
        """Before code that is not recorded sees an array's elements, which it may write: keep what they are."""
        if self._undo.is_complete and array.flags.writeable:
            self._undo.note(array)

    def effect(self, value: object, what: str) -> None:
        """Note that an object that outlives the call is changed.  Raises TraceError if its owner would not see it."""
        if self.is_copy(value):
            raise self._argument_mutation_error(self._copies[id(value)])
        self.reason(what.format(self.text_of(value)), _KEEP, is_effect=True, can_undo=self._undo.note(value))

    def on_attribute_write(self, owner: object, name: str) -> None:
        """Note that an attribute of an object that outlives the call is about to be set or deleted."""
        if self.is_copy(owner) or not attribute_writes.has_instance_attribute(owner, name):
            restore = self._undo.note_attribute(owner, name)
            if restore is not None:
                text = f"{self.text_of(owner)}.{name}"
                self._assigned.append(
                    (lambda: trace_undo_log.instance_attribute(owner, name), restore, text, user_location(2))
                )
            self.effect(owner, f"sets {{}}.{name}")
            return
        slot, attributes = self.weak_root(owner, type(owner).__name__), owner.__dict__
        where = self.guard_instance_dict(slot, owner, attributes)
        if (where, name) not in self._locations:
            reads = (slot, "attribute"), (slot, "method"), (where, "item")
            was_read = any((*read, str, name) in self._known for read in reads)
            self.effect(owner, f"sets {{}}.{name}")
            before = attributes.get(name, attribute_writes.NOTHING)
            self._locations[where, name] = attribute_writes.AttributeSlot(
                owner, attributes, name, before, self.reasons[-1], was_read
            )
        self._locations[where, name].set_here()

    def is_set(self, owner: object, name: str) -> bool:
        """Whether the trace has set an attribute, so that what it reads there is its own."""
        return bool(self._locations) and self._was_written_here((self.slot_of(instance_dict(owner)), name))

    def _was_written_here(self, key: Any) -> bool:
        """Whether what is about to be read at a place was set by the trace; else it depends on what was there."""
        place = self._locations.get(key)
        if place is None:
            return False
        if place.is_set(undo_log.enclosing_branches()):
            return True
        place.was_read = True
        return False

    def written_values(self) -> list[Any]:
        """What the attributes hold that were set so far."""
        return [place.was_present.get(place.name, attribute_writes.NOTHING) for place in self._locations.values()]

    def collect_outputs(self, result: object) -> list[tuple[attribute_writes.AttributeSlot, Any]]:
        """The attributes that each call sets, beside its ``result``, with what the trace left there.  They hold again
        what they held before it."""
        writes = [
            (place, place.was_present.get(place.name, attribute_writes.NOTHING))
            for place in self._locations.values()
            if attribute_writes.can_be_result(
                place.was_present.get(place.name, attribute_writes.NOTHING), lambda x: self.slot_of(x) is not None
            )
        ]
        if not attribute_writes.are_apart([result, *(value for _, value in writes)]):
            return []
        for place, value in writes:
            place.restore()
            if place.can_be_set(value):
                self.reasons.remove(place.reason)
        self._taken = writes
        return writes

    def _first_failing(self) -> int | None:
        """The first step that a call would fail at which finds flags as this one did, and one that finds those set
        that were not read before; None if either has no such step."""
        failing = self._failing_with([place.is_flag for place, _ in self._taken])
        if failing is None:
            return None
        return self._failing_with([place.is_flag and place.was_read for place, _ in self._taken])

    def _failing_with(self, as_before: Sequence[bool]) -> int | None:
        """The first step that a call would fail at which finds these attributes as this one did, and others set."""
        for (place, value), is_before in zip(self._taken, as_before):
            if not is_before:
                place.was_present[place.name] = value
        try:
            return first_failing(self.steps)
        finally:
            for place, _ in self._taken:
                place.restore()

    @property
    def can_rerun(self) -> bool:
        """Whether the code may run once more: all that the trace did to objects that outlive the call can be undone."""
        return self._undo.is_complete and not self.untracked

    @property
    def can_undo(self) -> bool:
        """Whether the trace changed objects that outlive the call, and all of that can be undone."""
        return self.can_rerun and self._find_effect() is not None

    def undo(self) -> None:
        """Give objects that outlive the call what they held before the trace, as far as that is known."""
        self._undo.undo()
        for place in self._locations.values():
            place.restore()
        for value, before, _, is_copy in self._watched:
            if not is_copy and not same_items(before, _contents_of(value) or []):
                _restore_contents(value, before)

    def first_effect(self) -> Reason:
        effect = self._find_effect()
        assert effect is not None
        return effect

    def _find_effect(self) -> Reason | None:
        """What the trace does to objects that outlive the call; None if nothing."""
        noted = next((reason for reason in self.reasons if reason.is_effect), None)
        if noted is not None:
            return noted
        changed = [
            *(text for value, before, text, _ in self._watched if not same_items(before, _contents_of(value) or [])),
            *map(self.text_of, self._undo.find_changed_arrays()),
        ]
        return Reason(f"changes {changed[0]}", None, _KEEP, is_effect=True) if changed else None

    def rollback(self) -> None:
        """Give attributes that hold tensors of the trace what they held before it."""
        for place in self._locations.values():
            if any(map(_is_leaked_tracer, pytree.flatten(place.was_present.get(place.name))[0])):
                place.restore()

    def writes_global(self, namespace: dict[str, Any], name: str) -> None:
        """Note that a global is about to be assigned or deleted."""
        before = namespace.get(name, _NOTHING)

        def restore() -> None:
            if before is _NOTHING:
                namespace.pop(name, None)
            else:
                namespace[name] = before

        self._assigned.append((lambda: namespace.get(name), restore, name, user_location(2)))
        self._undo.add(restore)
        self.reason(f"assigns the global {name}", _KEEP, is_effect=True, can_undo=True)

    def writes_cell(self, cell: types.CellType, name: str) -> None:
        """Note that a variable of an enclosing function is about to be assigned or deleted."""
        before = _contents(cell)

        def restore() -> None:
            if before is _NOTHING:
                del cell.cell_contents
            else:
                cell.cell_contents = before

        self._assigned.append((lambda: _contents(cell), restore, name, user_location(2)))
        self._undo.add(restore)
        self.reason(f"assigns {name} of the enclosing function", _KEEP, is_effect=True, can_undo=True)

    def _argument_mutation_error(self, path: str) -> TraceError:
        return TraceError(
            self.name,
            f"the argument {path} is changed. A compiled function works on a copy of the containers that it is given, "
            "so its caller would not see the change. Return the new value instead.",
        )

    def _watch_mutations(self, value: object, text: str, is_copy: bool) -> None:
        held = _contents_of(value)
        if held is not None:
            self._watched.append((value, held, text, is_copy))

    def items_of_watched(self) -> list[list[Any] | None]:
        """What the objects that outlive the call hold now."""
        return [_contents_of(value) for value, *_ in self._watched]

    def keep_changes(self, held: Sequence[list[Any] | None]) -> None:
        """What was changed since objects ``held`` this would not happen again: the trace cannot be undone."""
        for (value, *_), before in zip(self._watched, held):
            if not same_items(before or [], _contents_of(value) or []):
                self._undo.is_complete = False

    def finish(self) -> None:
        """Look for changes that were not seen.  Raises TraceError for traced tensors that were left outside."""
        for look, restore, text, where in self._assigned:
            if _is_leaked_tracer(look()):
                restore()
                raise self._leaked_tracer_error(text, where)
        for value, before, text, is_copy in self._watched:
            after = _contents_of(value)
            if same_items(before, after or []):
                continue
            if is_copy:
                raise self._argument_mutation_error(text)
            if any(map(_is_leaked_tracer, after or [])):
                place = _location_of_tensor(value, text)
                _restore_contents(value, before)
                effects = [reason.where for reason in self.reasons if reason.is_effect]
                raise self._leaked_tracer_error(place, effects[0] if effects else None)
            if not self.reasons:
                self.reason(f"changes {text}", _KEEP, is_effect=True, can_undo=True)
        failing = None if self.reasons else self._first_failing()
        if failing is not None:
            can_undo = bool(self._undo.find_changed_arrays())
            self.reason(f"changes {self.texts[failing]}", _KEEP, is_effect=True, can_undo=can_undo)

    def _leaked_tracer_error(self, text: str, where: str | None) -> TraceError:
        return TraceError(
            self.name,
            f"a tensor of the trace is left in {text}, which outlives the call. It stands for a value during the trace "
            "only: return it from the function, or keep it in an hf.Variable.",
            where=where,
        )


# What stands for values during a trace only.
_LEFT = frozenset((SymbolicTensor, SymbolicFloat, SymbolicNumber, Dim, Choice, RuntimeText))
_WALKED = 1000  # objects that are looked into


def _is_leaked_tracer(value: object, met: dict[int, Any] | None = None) -> bool:
    """Whether a value is, or holds, what stands for a value during a trace only."""
    if type(value) in _LEFT:
        return True
    parts = _parts(value)
    if not parts:
        return False
    met = {} if met is None else met
    if id(value) in met or len(met) > _WALKED:
        return False
    met[id(value)] = value
    return any(_is_leaked_tracer(part, met) for part in parts)


def _parts(value: Any) -> Collection[Any]:
    """What a container, or an instance of a class of the user's, holds."""
    kind = type(value)
    if kind in _SEQUENCES:
        return value
    if kind in MAPPINGS:
        return value.values()
    attributes = instance_dict(value) if is_users_class(kind) else None
    return attributes.values() if type(attributes) is dict else ()


_SEQUENCES = frozenset((tuple, list, set, collections.deque, Shape))


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


def _location_of_tensor(value: object, text: str) -> str:
    """How the user would write where a container or an object holds a tensor of the trace."""
    pairs = value.items() if isinstance(value, dict) else (instance_dict(value) or {}).items()
    for key, item in pairs:
        if _is_leaked_tracer(item):
            return f"{text}[{key!r}]" if isinstance(value, dict) else f"{text}.{key}"
    return text


def _restore_contents(value: Any, held: list[Any]) -> None:
    """Give a container or an object what it held before."""
    contents = value if isinstance(value, dict) else instance_dict(value)
    if isinstance(contents, dict):
        contents.clear()
        contents.update(zip(held[::2], held[1::2]))
    elif isinstance(value, list):
        value[:] = held
    else:
        value.clear()
        value.update(held) if isinstance(value, set) else value.extend(held)


_CHANGING = frozenset((list, dict, set, collections.deque, bytearray, *MAPPINGS))


def _is_namespace(value: object) -> bool:
    """Whether a dict belongs to a module: other threads may bind names in it while this one traces."""
    return value is sys.modules or (type(value) is dict and "__name__" in value and "__builtins__" in value)


def _contents_of(value: object) -> list[Any] | None:
    """What a mutable object holds now; None for objects that hold nothing that is looked at."""
    if _is_namespace(value):
        return None
    if type(value) in CONTAINERS:
        return items_of(value) if type(value) in _CHANGING else None
    if is_users_class(type(value)):
        attributes = instance_dict(value)
        return items_of(attributes) if type(attributes) is dict else None
    return None


def caller_globals() -> dict[str, Any]:
    """The globals of the innermost frame outside of hybridflow."""
    frame: Any = sys._getframe(1)
    while is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_globals
