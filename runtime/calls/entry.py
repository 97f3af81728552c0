"""The native entry: calls of compiled programs with no Python frame between the caller and the machine code.

``Dispatcher`` is the base of callables: ``f(x)`` tries what is in ``f._dispatch``, a tuple of ``NativeCall``,
and runs the program of the first that fits; else it calls ``f._call_slow(*args, **kwargs)``.  ``elementwise`` makes
a function of one op.  They are LLVM code that reads CPython's and NumPy's objects (``entry_code``); where that cannot
work (``problem`` says why) every call is a slow one, with the same result, and there are no functions of one op.

Nothing native happens before the first call that finds a NativeCall, or the first elementwise function: importing this
module is cheap.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from types import GeneratorType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import flags
from hybridflow.compiler.program import Dim, DimSource, Program, Slot
from hybridflow.errors import ArgumentError, CompileError, of_user
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.calls import background_code, front_end, guard_steps, variable_locks
from hybridflow.runtime.calls.op_calls import ElementwiseCall, ElementwiseOp, FixedCall
from hybridflow.runtime.calls.result_steps import tuple_of
from hybridflow.runtime.calls.tape_log import Recording, TapeLog
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.machine import host_target, machine_code
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import Offsets, TapeOffsets
from hybridflow.runtime.thread_pool_words import words as team_words

if TYPE_CHECKING:
    from hybridflow.runtime.calls.guard_program import GuardProgram
    from hybridflow.runtime.calls.native_call import NativeCall


class Dispatcher:
    """Base of callables that run compiled programs.  Subclasses define ``_call_slow(*args, **kwargs)``, which also
    puts native calls into ``_dispatch``: a tuple, replaced as a whole, the most likely first.  Those in ``_taped`` are
    for calls that one tape is told of (see ``front_end.Reasons``)."""

    __slots__ = ("_dispatch", "_taped")
    _dispatch: tuple[NativeCall, ...]
    _taped: tuple[NativeCall, ...]

    def _call_slow(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._call_slow")

    def _call_python(self, *args: Any, **kwargs: Any) -> Any:
        """``__call__`` in Python: native code takes its place at the first call that finds a NativeCall."""
        known = getattr(self, "_dispatch", ()) or getattr(self, "_taped", ())
        if known and note_use() and enable() is not None:
            return Dispatcher.__call__(self, *args, **kwargs)
        try:
            return self._call_slow(*args, **kwargs)
        except BaseException as error:
            raise of_user(error)  # noqa: B904  # the very error

    __call__ = _call_python


def elementwise(executable: Executable, name: str = "elementwise") -> Callable[..., Any] | None:
    """A function of tensors, for a program over ``n`` elements: inputs [n] each, output [n], one symbolic extent.

    All tensors must have one shape, which the result has too; for anything else the result is NotImplemented.  Tapes
    and traces are the caller's business.  None where there is no native code.
    """
    kernel = ElementwiseCall(executable)
    addresses = enable()
    if addresses is None:
        return None
    kernel._definition = native_functions.method_def(name, addresses["elementwise"])
    return native_functions.builtin(kernel._definition, kernel)


def fixed(
    executable: Executable,
    types: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
    shapes: Sequence[tuple[int, ...]],
    out: tuple[np.dtype[Any], tuple[int, ...]],
) -> Callable[..., Any] | None:
    """A function of tensors of exactly these types (dtype and shape), for a program of one output.

    The program sees the same elements as arrays of ``shapes``, and its output as an array of the type ``out``.  For
    any other arguments the result is NotImplemented.  Tapes and traces are the caller's business.  None where there is
    no native code.
    """
    kernel = FixedCall(executable, types, shapes, out)
    addresses = enable()
    if addresses is None:
        return None
    kernel._definition = native_functions.method_def(executable.program.name, addresses["fixed"])
    return native_functions.builtin(kernel._definition, kernel)


def answering(call: NativeCall) -> Callable[..., Any] | None:
    """A function that answers calls like this one, under tapes and in traces too; for others the result is
    NotImplemented.  None where there is no native code."""
    return _of_call("answer", call)


def binding(call: NativeCall) -> Callable[..., Any] | None:
    """As ``answering``, but what the function returns are the inputs of the program: a tuple with a tensor for each
    that is an argument, and None in the place of the others.  None where an argument is an int that may have any
    value: there is no tensor of its input."""
    if any(isinstance(node, _native_call().IntArg) for node in call.nodes):
        return None
    return _of_call("bind", call)


def checking(program: GuardProgram) -> Callable[[], bool] | None:
    """A function that says whether every step of the program passes; it raises what is no Exception.  None where there
    is no native code."""
    addresses = enable()
    if addresses is None:
        return None
    return native_functions.builtin(_definition("holds", addresses["holds"], False), program)


def on_tensors(executable: object) -> Callable[..., Any] | None:
    """A function of the inputs of a program as tensors, whose result is a tuple of the outputs, or NotImplemented for
    tensors of other types; it looks at no tape and no trace.  None where native code does not take the program."""
    if not isinstance(executable, Executable) or executable.updated or executable.program.callbacks:
        return None
    program, calls = executable.program, _native_call()
    arguments = [calls.TensorArg(NUMPY[slot.dtype], slot.shape, k) for k, slot in enumerate(program.inputs)]
    try:
        return answering(calls.NativeCall(executable, arguments, results=tuple_of(len(program.outputs))))
    except ArgumentError:  # too many buffers, or an extent that no input says
        return None


def nothing() -> Executable | None:
    """The program of no inputs and no outputs, which nobody has to compile.  None where there is no native code."""
    addresses = enable()
    return None if addresses is None else _nothing(addresses["nothing"])


@functools.cache
def _nothing(address: int) -> Executable:
    program = Program("nothing", host_target.detect(), "", "nothing", (), (), (), 0)
    return Executable(program, machine_code.Code({"nothing": address}))


def _of_call(name: str, call: NativeCall) -> Callable[..., Any] | None:
    addresses = enable()
    return None if addresses is None else native_functions.builtin(_definition(name, addresses[name]), call)


@functools.cache
def _definition(name: str, address: int, keywords: bool = True) -> native_functions.MethodDef:
    return native_functions.method_def(name, address, keywords)


_uses = 0  # calls that native code could have answered


def note_use() -> bool:
    """For a call that native code could spare the way through Python: ``is_due``, with this call."""
    global _uses
    _uses += 1
    return is_due()


def is_due() -> bool:
    """Whether native code is there, or lies on disk, or there were enough calls by now.  To make it takes as long as
    thousands of them: programs that call a little, on a machine where nothing was called before, do without, and others
    do so until it has been compiled in the background (see ``background``)."""
    return bool(_enabled.made) or (_uses > flags.NATIVE_AFTER.value and native_code.is_ready()) or bool(_is_kept())


def is_ready() -> bool:
    """The same, whatever the number of calls."""
    return bool(_enabled.made) or bool(_is_kept()) or native_code.is_ready()


def when_enabled(work: Callable[[], object]) -> None:
    """Run this work as soon as native code answers calls."""
    if work not in _waiting:
        _waiting.append(work)
    if _enabled.made:
        enable()


_waiting: list[Callable[[], object]] = []


def enable() -> dict[str, int] | None:
    """Load the native code and give it to Dispatcher, once.  Addresses by symbol, or None where every call is slow."""
    loaded = _enabled()
    while _waiting:
        with contextlib.suppress(IndexError):  # another thread runs it
            _waiting.pop()()
    return loaded if isinstance(loaded, dict) else None


def problem() -> str | None:
    """Why calls are slow ones, or None when native code answers them.  Loads it."""
    loaded = _enabled()
    return loaded if isinstance(loaded, str) else None


@uninterruptible.once
def _enabled() -> dict[str, int] | str:
    """Addresses by symbol, or what is wrong: calls must work wherever Python does."""
    try:
        if memory_pool.pool() is None:
            return memory_pool.problem() or "there is no pool"
        addresses = native_code.get()
    except (AttributeError, CompileError, OSError, TypeError) as error:  # no such symbol, field or library
        return f"native code does not load: {error}"
    definition = native_functions.method_def("__call__", addresses["call"], keywords=True)
    native_call = native_functions.method(definition, Dispatcher)
    if not _self_test(native_call, addresses):
        return "its self-test failed"
    state_type: Any = type(front_end.known().reasons.idle)
    with contextlib.suppress(AttributeError):  # an interrupt of one in Python would get lost, and leave it counted
        kind = object_layout.slot_kind("__del__", GeneratorType)
        state_type.__del__ = native_functions.slot(state_type, kind, addresses["forget_state"])
    Dispatcher.__call__ = native_call  # type: ignore[method-assign]
    return addresses


def offsets() -> Offsets:
    """Where the slots of the classes lie that native code reads."""
    known = front_end.known()
    return Offsets(
        tensor_array=object_layout.slot_offset(known.tensor_type, known.array_slot),
        tensor_size=known.tensor_type.__basicsize__,
        dispatch_table=object_layout.slot_offset(Dispatcher, "_dispatch"),
        taped_table=object_layout.slot_offset(Dispatcher, "_taped"),
        call_record=object_layout.slot_offset(_native_call().NativeCall, "_record"),
        guard_record=object_layout.slot_offset(_guard_program().GuardProgram, "_record"),
        elementwise_record=object_layout.slot_offset(ElementwiseCall, "_record"),
        fixed_record=object_layout.slot_offset(FixedCall, "_record"),
        operator_record=object_layout.slot_offset(ElementwiseOp, "_record"),
        tape=_tape_offsets(known.variable_type, type(known.reasons.idle)),
    )


def _tape_offsets(variable: type, state: type) -> TapeOffsets:
    return TapeOffsets(
        recording=object_layout.slot_offset(Recording, "_recording"),
        takes_wholes=object_layout.slot_offset(Recording, "takes_wholes"),
        watches_accessed=object_layout.slot_offset(Recording, "_watch_accessed"),
        used=object_layout.slot_offset(Recording, "_used"),
        persistent=object_layout.slot_offset(Recording, "persistent"),
        is_plain=object_layout.slot_offset(TapeLog, "_is_plain"),
        **{
            name: object_layout.slot_offset(TapeLog, f"_{name}") for name in ("values", "words", "table", "definitions")
        },
        variable_tensor=object_layout.slot_offset(variable, "_tensor"),
        variable_own=object_layout.slot_offset(variable, "_own"),
        variable_gate=object_layout.slot_offset(variable, "_gate"),
        variable_trainable=object_layout.slot_offset(variable, "trainable"),
        gate_address=object_layout.slot_offset(variable_locks.VariableLock, "address"),
        whole=object_layout.slot_offset(_native_call().NativeCall, "whole"),
        **{name: object_layout.slot_offset(state, name) for name in ("trace", "tapes", "device", "only_tape")},
        is_counted=object_layout.slot_offset(state, "_is_counted"),
    )


def common_imports(pool: memory_pool.Pool) -> dict[str, int]:
    """Addresses that every module that makes tensors uses."""
    known = front_end.known()
    return {
        "Tensor_Type": id(known.tensor_type),
        "Variable_Type": id(known.variable_type),
        "PyArray_Type": id(np.ndarray),
        "busy": ctypes.addressof(known.reasons.busy),
        "everywhere": ctypes.addressof(known.reasons.everywhere),
        "State": id(known.reasons.state),
        "Idle": id(known.reasons.idle),
        "team_words": ctypes.addressof(team_words),
        "Name_share": id(_NAMES[4]),
        "Name_mask": id(_NAMES[5]),
        **{name: pool.addresses[name] for name in ("pool_allocate", "pool_release", "make_array")},
    }


@uninterruptible.once
def _is_kept() -> bool:
    return background_code.is_kept(_module)


def _module(checked: bool) -> tuple[Offsets, tuple[object, ...], tuple[str, ...]]:
    """What decides the text of the module: where slots lie, and settings with these; and its symbols."""
    entry_symbols = (
        "call",
        "answer",
        "bind",
        "holds",
        "elementwise",
        "fixed",
        "sample",
        "nothing",
        "forget_state",
        *(("owned_references",) if checked else ()),
    )
    places = offsets()
    settings = (
        places,
        *object_layout.SETTINGS,
        object_layout.finds_methods(),
        object_layout.finds_in_classes(),
        checked,
    )
    return places, settings, (*entry_symbols, *TAPE_SYMBOLS, *SLOT_SYMBOLS)


def _loaded() -> dict[str, int]:
    pool, checked = memory_pool.pool(), bool(flags.VERIFY.value)
    assert pool is not None  # or nothing is enabled
    imports = {
        **common_imports(pool),
        "NativeCall_Type": id(_native_call().NativeCall),
        "transactions": ctypes.addressof(front_end.known().reasons.transactions),
        "Name_fail": id(_NAMES[0]),
        "Name_slow": id(_NAMES[1]),
        "Name_factory": id(_NAMES[2]),
        "Name_record": id(_NAMES[3]),
        "Object_new": id(_NEW),
        "PyArray_NewFromDescr": object_layout.numpy_api(object_layout.API_NEW_FROM_DESCR),
        "PyArray_NewCopy": object_layout.numpy_api(object_layout.API_NEW_COPY),
        "Python_lookup": id(guard_steps.lookup),
        "Python_method": id(guard_steps.method),
        "Name_popitem": id(_NAMES[6]),
        "running": ctypes.addressof(variable_locks.running),
        "closed": ctypes.addressof(variable_locks.closed),
    }
    places, settings, symbols = _module(checked)
    return background_code.load(lambda: _entry_code().build(places, checked), settings, symbols, imports)


native_code = background_code.BackgroundCode(_loaded)
"""Addresses by symbol."""


@uninterruptible.loaded
def _entry_code() -> ModuleType:
    from hybridflow.runtime.calls import entry_code  # only where the disk cache has no machine code for it

    return entry_code


@uninterruptible.loaded
def _guard_program() -> ModuleType:
    from hybridflow.runtime.calls import guard_program  # only where there is something to call

    return guard_program


@uninterruptible.loaded
def _native_call() -> ModuleType:
    from hybridflow.runtime.calls import native_call  # only where there is something to call

    return native_call


# What the code of tapes calls.
TAPE_SYMBOLS = ("attempt", "log_entry", "log_start", "log_place", "log_track", "log_number", "log_write")
SLOT_SYMBOLS = ("untouched_here",)  # what operators call
# Whose addresses native code holds.
_NAMES = ("_fail", "_call_slow", "default_factory", "record_whole", "_share", "mask", "popitem")
_NEW = object.__new__


class _Sample(Dispatcher):
    """A callable over a known program, whose slow calls tell that native code did not take them."""

    __slots__ = ()

    def _call_slow(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented


def _self_test(native_call: Callable[..., Any], addresses: Mapping[str, int]) -> bool:
    """Whether calls of a known program give the right result, and every reference that they took back."""
    vector = Slot((Dim("n"),), "f32")
    program = Program("sample", host_target.detect(), "", "sample", (vector,), (vector,), (DimSource("n", 0, 0),), 0)
    executable = Executable(program, machine_code.Code({"sample": addresses["sample"]}))
    kernel = ElementwiseCall(executable)
    kernel._definition = native_functions.method_def("sample", addresses["elementwise"])
    sample = _Sample()
    calls = _native_call()
    sample._dispatch = (calls.NativeCall(executable, [calls.TensorArg(NUMPY["f32"], vector.shape, 0)]),)
    values = np.arange(5, dtype=np.float32)
    x, expected = front_end.wrap(values), ~values.view(np.int32)
    probe = object()  # with as many references as a result that nobody else holds
    watched = (x, kernel, sample, sample._dispatch, sample._dispatch[0])
    before = list(map(sys.getrefcount, watched))
    for call in (native_functions.builtin(kernel._definition, kernel), functools.partial(native_call, sample)):
        for _ in range(3):
            result = call(x)
            if result is NotImplemented and not front_end.is_idle():
                break  # the first use came under a tape or in a trace, where calls go the slow way
            if type(result) is not front_end.tensor_type() or sys.getrefcount(result) != sys.getrefcount(probe):
                return False
            array = getattr(result, front_end.known().array_slot)
            if array.shape != (5,) or not np.array_equal(array.view(np.int32), expected):
                return False
            del result, array
        del call
    return list(map(sys.getrefcount, watched)) == before
