"""What the running code is doing: tracing, recording gradients, placing on a device, or none of it.

The state follows Python's contexts (``contextvars``), so each thread and each asyncio task has its own, and a task
starts with that of the code which made it.  A state is never changed, only replaced.

``busy`` counts the states in use that are not ``idle``, and the reasons of the whole process (functions run eagerly),
for which a call may not take a native shortcut.  It is a C integer because native code reads it first: mostly it is
zero, and there is nothing more to look at.  Only if not does the context's own state, or ``everywhere``, decide.
A state leaves the count when the last context that holds it is gone, be it that its thread died inside a tape.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import FrameType, ModuleType
from typing import Any, Protocol

from hybridflow.runtime import uninterruptible
from hybridflow.runtime.calls.front_end import Reasons
from hybridflow.runtime.fork_safe_locks import trace_states


class Recorder(Protocol):
    """What is told of everything that is computed: a tape, or what stands among the tapes to listen.

    Values are tensors, or what a compiled program has in the place of one; ``vjp`` maps the cotangents of outputs to
    those of inputs.
    """

    _recording: bool  # whether it is still there
    takes_wholes: bool  # whether it may be told of public functions in the place of the ops that they consist of
    is_forward: bool  # whether it is told after those that are not, so that these see what it makes of an op last

    def record(self, op: Any, inputs: tuple[Any, ...], attrs: Mapping[str, Any], out: Any, /) -> None:
        """An op has been applied."""

    def record_whole(self, call: Any, out: Any, /, *arguments: Any) -> None:
        """A public function has been, by a native call, whose ``whole`` knows its ops (see ``eager.taped_calls``)."""

    def record_custom(self, inputs: tuple[Any, ...], outputs: Sequence[Any], vjp: Callable[..., Any], /) -> None:
        """Something with a derivative of its own has been."""

    def follow(self, value: Any, outputs: Sequence[Any], /) -> None:
        """A value came to be one of the ``outputs`` of an earlier ``record_custom``."""

    def watch_read(self, variable: Any, tensor: Any, /) -> None:
        """A variable was read, and had this value."""

    def note_assign(self, variable: Any, value: Any, /) -> None:
        """A variable was assigned."""

    def watches(self, variable: Any, /) -> bool:
        """Whether derivatives with respect to reads of the variable are of interest."""

    def tracks(self, tensor: Any, /) -> bool:
        """Whether derivatives with respect to the tensor are."""

    def rename(self, tensor: Any, before: Any, after: Any, /) -> None:
        """A tensor was given another value: ``before`` stands for the one that it had, and it for ``after``."""

    def alias(self, tensor: Any, other: Any, /) -> None:
        """``other`` came to be one more object with the value of ``tensor``."""


class Tracer(Protocol):
    """What ops go into instead of being run."""

    name: str  # of the function that is traced
    live_arrays: Mapping[int, Any]  # arrays of others, by id, that the program reads anew at each call
    depends_on_identity: bool  # whether something looked at which tensors are one object
    assumptions: Any  # what it takes for granted of symbolic extents
    numbers: dict[Any, Any]  # tensors of Python numbers as operands, see ``eager.operands.aligned``
    added_losses: dict[Any, Any]  # what layers add to the loss, see ``core.calling``

    def record(self, op: Any, inputs: Sequence[Any], attrs: Mapping[str, Any], /) -> Any:
        """Append one op; the tensor that stands for its result."""

    def add_custom_vjp(self, inputs: Iterable[Any], outputs: Iterable[Any], vjp: Callable[..., Any], /) -> None:
        """Give ``outputs``, just recorded, their own derivative with respect to ``inputs``."""

    def read_variable(self, variable: Any, /) -> Any:
        """The variable's value at this point."""

    def write_variable(self, variable: Any, value: Any, /) -> None:
        """Later reads of the variable see ``value``."""

    def read_foreign(self, value: Any, /) -> None:
        """The elements of an object that is not an array of NumPy's were read; at the next call they may be others."""

    def read_shared(self, tensor: Any, array: Any, /) -> None:
        """The elements of a tensor over somebody else's memory, an array, were read."""

    def called(self, function: Callable[..., Any], text: str, /) -> Callable[..., Any]:
        """What to call in the place of a function that may be the user's, see ``users``."""

    def on_attribute_write(self, owner: Any, name: str, /) -> None:
        """Code of ours is about to set an attribute of an object of the user's."""

    def known_elements(self, node: Any, /) -> Any:
        """The elements that a recorded value has whatever the function is given; None where it depends on that."""

    def enclosing(self) -> Iterable[Any]:
        """This trace and those that it is part of, innermost first."""

    @property
    def root(self) -> Any:
        """The last of ``enclosing``, which is that of the function itself."""

    def strategy_axis(self) -> Any:
        """The mesh axis of the strategy one of whose replicas this is part of; None where there is none."""

    def before_variable_creation(self) -> None:
        """A variable is about to be made; raises TraceError where none may be."""

    def initial_value(self, tensor: Any, /) -> Any:
        """The value, now, of what a variable made here starts from."""


_recorders: set[weakref.ref[Any]] = set()  # to all that there are, at work or not


def add_recorder(recorder: Recorder) -> None:
    """Let a recorder know, for as long as it lives, what happens to tensors, be it in another context."""
    _recorders.add(weakref.ref(recorder, _recorders.discard))


def recorders() -> list[Recorder]:
    """All that hold something."""
    living = [reference() for reference in list(_recorders)]
    return [recorder for recorder in living if recorder is not None]


busy = ctypes.c_int32(0)
everywhere = ctypes.c_int32(0)  # those of the reasons that hold in every context


class State:
    """The ``trace`` that ops go into, the active ``tapes``, outermost first, and the ``device`` of the innermost scope.

    A tape may have stopped recording in another context than the one that holds it here.  ``only_tape`` is there where
    it is all that is to be heeded, and takes wholes.
    """

    __slots__ = ("_is_counted", "device", "only_tape", "tapes", "trace")
    narrow: Any = None  # the dtype that weights of layers are computed with, see ``Narrow``

    def __init__(
        self, trace: Tracer | None = None, tapes: tuple[Recorder, ...] = (), device: str | None = None
    ) -> None:
        self._is_counted = False
        self.trace, self.tapes, self.device = trace, tapes, device
        alone = len(tapes) == 1 and trace is None and device is None and tapes[0].takes_wholes
        self.only_tape = tapes[0] if alone else None

    def count(self) -> None:
        # No lock, which a thread that does not exist in a forked child could hold when states of such threads are
        # freed there: the interpreter does not switch threads within these statements.
        busy.value += 1
        self._is_counted = True

    def __del__(self) -> None:
        try:
            if self._is_counted:
                busy.value -= 1
        except AttributeError:  # a signal handler has raised as soon as there was the object
            pass


class Narrow(State):
    """A state in the call of a layer with mixed precision: reads of its weights are converted to the dtype ``narrow``
    (see ``Variable._seen``).  A class of its own, as native code makes and leaves states without it."""

    __slots__ = ("narrow",)

    def __init__(self, narrow: object, trace: Tracer | None, tapes: tuple[Recorder, ...], device: str | None) -> None:
        super().__init__(trace, tapes, device)
        self.narrow = narrow
        self.only_tape = None


idle = State()
_state = ContextVar("hybridflow", default=idle)
now: Callable[[], State] = _state.get  # the state of the running code
transactions = ctypes.c_int32(0)
reasons = Reasons(busy, everywhere, _state, idle, transactions)


class _Current:
    """The fields of ``now()``, for code where a Python call more does not matter."""

    __slots__ = ()

    @property
    def trace(self) -> Tracer | None:
        return now().trace

    @property
    def tapes(self) -> tuple[Recorder, ...]:
        return now().tapes

    @property
    def device(self) -> str | None:
        return now().device


current = _Current()


def add_process_reason(step: int) -> None:
    """One reason more, or less, in every context."""
    busy.value += step
    everywhere.value += step


def _enter(trace: Tracer | None, tapes: tuple[Recorder, ...], device: str | None, narrow: object = None) -> None:
    if trace is None and not tapes and device is None and narrow is None:
        _state.set(idle)
        return
    state = State(trace, tapes, device) if narrow is None else Narrow(narrow, trace, tapes, device)
    state.count()
    _state.set(state)


def enter_device(device: str | None) -> str | None:
    """Make ``device`` that of the innermost scope; returns the one before."""
    before = now()
    _enter(before.trace, before.tapes, device, before.narrow)
    return before.device


def enter_narrow(dtype: object) -> Any:
    """Let reads of layers' weights be converted to ``dtype``, or not, if it is None; returns the dtype before."""
    before = now()
    if before.narrow is not dtype:
        _enter(before.trace, before.tapes, before.device, dtype)
    return before.narrow


class _Replaced:
    """A block with another trace, and other tapes than those from outside.

    A class: a signal handler that raises as a generator's context manager is entered leaves the block open.  Where one
    raises as ``__exit__`` begins, the block is left when nobody holds this any more: it is an ``_Open`` one meanwhile.
    """

    __slots__ = ("_before", "_inside", "_tapes", "_trace")

    def __init__(self, trace: Tracer | None, tapes: tuple[Recorder, ...] = ()) -> None:
        self._trace, self._tapes = trace, tapes
        self._before = self._inside = idle

    def __enter__(self) -> None:
        self._before = now()
        try:
            self.__class__ = _Open
            _enter(self._trace, self._tapes, self._before.device, self._before.narrow)
            self._inside = now()
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self._leave()
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        _enter(self._before.trace, self._before.tapes, now().device, self._before.narrow)
        self._inside = idle
        self.__class__ = _Replaced  # which goes without any code in Python, where an interrupt would get lost


class _Open(_Replaced):
    """One that was entered."""

    __slots__ = ()

    def __del__(self) -> None:
        try:
            if self._inside is not idle and now() is self._inside:  # else this is another thread
                self._leave()
        except AttributeError:  # as in State
            pass


def return_to(state: State) -> None:
    """After an exception: be in the state from before what raised it.  Interrupts in quick succession, of which one
    comes as a block is left, may have left that open."""
    inside = now()
    if inside is not state and (inside.trace is not state.trace or inside.tapes != state.tapes):
        _state.set(state)


def users(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """A function, method or object that code of ours was given earlier and is about to call.

    If it is the user's and this is being traced, what it reads is recorded, from the object on to which it belongs;
    ``text`` is what messages call that.
    """
    trace = now().trace
    return function if trace is None else trace.called(function, text)


def only_tape() -> Recorder | None:
    """The one tape that is told of what happens here, if it takes wholes and there is nothing else to heed."""
    return None if everywhere.value else now().only_tape


def tracing(trace: Tracer) -> AbstractContextManager[None]:
    """Record ops into ``trace``.  Tapes from outside do not see what happens inside; nor do handlers of signals take
    part in it."""
    return _Replaced(trace) if now().trace is not None else _Begun(trace)


class _Begun:
    """The block of a trace that is part of no other."""

    __slots__ = ("_block", "_handlers")

    def __init__(self, trace: Tracer) -> None:
        self._block, self._handlers = _Replaced(trace), without_handlers()

    def __enter__(self) -> None:
        self._handlers.__enter__()
        try:
            for state in trace_states:  # interrupts in quick succession may have left what an earlier trace set
                state.__dict__.clear()
                state.__init__()  # type: ignore[misc]
            self._block.__enter__()
        except BaseException:
            self._handlers.__exit__(None, None, None)
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self._block.__exit__()
        finally:
            self._handlers.__exit__(None, None, None)


def without_handlers(is_outermost: bool = False) -> AbstractContextManager[None]:
    """A block of which handlers of signals are no part (see ``runtime.handlers``)."""
    block: AbstractContextManager[None] = _handlers().HandlerThread(_leave_all, is_outermost)
    return block


def _leave_all() -> None:
    _state.set(idle)


@uninterruptible.loaded
def _handlers() -> ModuleType:
    from hybridflow.runtime import signal_handlers  # which a first operation does without

    return signal_handlers


def suspended() -> AbstractContextManager[None]:
    """Run eagerly and unrecorded, whatever surrounds the block."""
    return _Replaced(None)


def resumed(state: State) -> AbstractContextManager[None]:
    """Go on with the trace and the tapes of an earlier state, in whose block this one lies."""
    return _Replaced(state.trace, state.tapes)


def recorded_by(tapes: tuple[Recorder, ...]) -> AbstractContextManager[None]:
    """Let these tapes alone be told of what happens."""
    return _Replaced(now().trace, tapes)


def push_tape(tape: Recorder) -> None:
    state = now()
    tapes = (*filter(_records, state.tapes), tape)
    if any(t.is_forward for t in tapes):
        tapes = (*(t for t in tapes if not t.is_forward), *(t for t in tapes if t.is_forward))
    _enter(state.trace, tapes, state.device, state.narrow)


def pop_tape(tape: Recorder) -> None:
    """Take the tape from the active ones.  Other contexts that hold it find that it does not record any more."""
    state = now()
    if tape not in state.tapes:
        return
    tapes = tuple([t for t in state.tapes if t is not tape and _records(t)])
    _enter(state.trace, tapes, state.device, state.narrow)


def _records(tape: Recorder) -> bool:
    """Whether the tape is still there: a generator that holds one may have been closed in another context."""
    return tape._recording


_BETWEEN = "hybridflow.errors", "hybridflow.tracing.numpy_scalar", "hybridflow.autograph.hooks.recorder"


class Dialect:
    """The dialect in which the package answers programs: its own, or TensorFlow's, where they use its names.

    What classes of the package say of themselves to a program may differ between the two: shapes, dtypes, words.  Code
    of the package always has its own answers, so that nothing in it meets another type because of the names.
    """

    __slots__ = ("is_tensorflow",)

    def __init__(self) -> None:
        self.is_tensorflow = False

    def is_spoken_to(self, caller: FrameType) -> bool:
        """Whether code that runs there has TensorFlow's answers: code outside of the package, in its dialect."""
        return self.is_tensorflow and not caller.f_globals.get("__name__", "").startswith("hybridflow.")

    def is_spoken_in(self, caller: FrameType) -> bool:
        """The same of an operator or a function of NumPy, beyond what notes places of errors and follows a trace."""
        if not self.is_tensorflow:
            return False
        while caller.f_globals.get("__name__") in _BETWEEN and caller.f_back is not None:
            caller = caller.f_back
        return self.is_spoken_to(caller)


dialect = Dialect()
