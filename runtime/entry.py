"""The native entry: calls of compiled programs with no Python frame between the caller and the machine code.

``Dispatcher`` is the base of callables: ``f(x)`` tries the signatures in ``f._dispatch``, a tuple of ``Signature``,
and runs the program of the first that fits; else it calls ``f._call_slow(*args, **kwargs)``.  ``elementwise`` makes
a function of one op.  Everything here has two implementations with one meaning: LLVM code that reads CPython's and
NumPy's objects (``entry_code``), and Python, where ``layout.problem`` says that the objects lie otherwise.

Nothing native happens before the first call that finds a signature, or the first elementwise function: importing this
module is cheap.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CellType
from typing import Any

import numpy as np

from hybridflow.compiler.program import DimSource, Program, Size, Slot
from hybridflow.errors import ArgumentError
from hybridflow.runtime import host, layout, machine_code, memory, native
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.records import (
    ARGUMENT,
    CAPTURE,
    FIXED,
    GUARD,
    HEAD,
    KERNEL,
    MAX_BUFFERS,
    MAX_INPUTS,
    SCALAR,
    SPEC,
    STRUCTURE,
    Offsets,
    Writer,
    size_words,
)

_SYMBOL = {"f32": "float to f32", "f64": "float to f64", "i32": "int to i32", "i64": "int to i64"}
_NUMBER = {"f32": "number to f32", "f64": "number to f64", "i32": "int to i32", "i64": "int to i64"}
_MISS = object()


# What a call must look like.


@dataclass(frozen=True)
class TensorArg:
    """A Tensor: dtype, and extents that are ints or names of symbolic extents.  ``input`` is its place in the
    program, or None when the program does not read it."""

    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]
    input: int | None


@dataclass(frozen=True)
class ScalarArg:
    """A Python number of any value: a float for a float input of the program, an int for an integer input."""

    input: int


@dataclass(frozen=True)
class LiteralArg:
    """A fixed Python value: floats and ints are compared by type and bits, everything else by identity."""

    value: Any


@dataclass(frozen=True)
class ConstantInput:
    """An input that is always this array."""

    input: int
    array: np.ndarray


@dataclass(frozen=True)
class VariableInput:
    """An input that is the current tensor of a variable, read from its slot at each call.  Where the program updates
    it, native code writes in place if nobody else holds the tensor, its array or its memory; else it is a miss."""

    input: int
    variable: Any
    slot: str = "_tensor"


@dataclass(frozen=True)
class CellGuard:
    """A closure cell that must still hold this object."""

    cell: CellType
    expected: Any


@dataclass(frozen=True)
class ItemGuard:
    """A dict, such as a module's globals, that must still hold this object."""

    mapping: dict[str, Any]
    key: str
    expected: Any


@dataclass(frozen=True)
class AttributeGuard:
    """An attribute that must still be this object."""

    owner: Any
    name: str
    expected: Any


@dataclass(frozen=True)
class ListGuard:
    """A list that must still hold these objects, and no more."""

    owner: list[Any]
    expected: tuple[Any, ...]


@dataclass(frozen=True)
class AbsentGuard:
    """A dict, such as an instance's, that must still lack this key."""

    mapping: dict[str, Any]
    key: str


Argument = TensorArg | ScalarArg | LiteralArg
Capture = ConstantInput | VariableInput
Guard = CellGuard | ItemGuard | AttributeGuard | ListGuard | AbsentGuard


class Signature:
    """One kind of call and the program that answers it; it keeps alive everything that it points to.

    ``arguments``  those given by position, then those given by name, whose names are ``keywords`` in that order
    ``captures``   the inputs of the program that are no arguments
    ``structure``  "none", "single", "tuple" or "list" of the outputs as tensors, or a callable that is given the tuple
    ``minimums``   the least value of a symbolic extent, 0 where it is not named
    ``borrowed``   more guards, whose objects the caller keeps alive: they are not held, and only native code tries them
    Raises ArgumentError when the parts do not make a whole.
    """

    __slots__ = (
        "__weakref__",
        "_names",
        "_native_only",
        "_python_calls",
        "_record",
        "arguments",
        "captures",
        "executable",
        "guards",
        "keywords",
        "minimums",
        "structure",
    )

    def __init__(
        self,
        executable: Executable,
        arguments: Sequence[Argument],
        captures: Sequence[Capture] = (),
        *,
        keywords: Sequence[str] = (),
        guards: Sequence[Guard] = (),
        borrowed: Sequence[Guard] = (),
        structure: str | Callable[..., Any] = "single",
        minimums: Mapping[str, int] | None = None,
    ) -> None:
        self.executable = executable
        self.arguments, self.captures, self.guards = tuple(arguments), tuple(captures), tuple(guards)
        # Keyword names are compared by address, and those of calls written in source are interned.
        self.keywords = tuple(map(sys.intern, keywords))
        self.structure, self.minimums = structure, dict(minimums or {})
        self._names = self._dim_names()
        self._python_calls = 0
        self._native_only = bool(borrowed)
        self._check()
        self._record = self._packed(borrowed)

    @property
    def calls(self) -> int:
        """Calls that it has answered."""
        return self._python_calls + struct.unpack_from("<Q", self._record, 8 * HEAD.index("calls"))[0]

    @property
    def updates_state(self) -> bool:
        return any(slot.updated for slot in self.executable.program.inputs)

    def _dim_names(self) -> dict[str, int]:
        """Index of each symbolic extent: the program's first, in its order, then those of unread arguments."""
        names = {source.name: k for k, source in enumerate(self.executable.program.dims)}
        for argument in self.arguments:
            for extent in argument.shape if isinstance(argument, TensorArg) else ():
                if isinstance(extent, str):
                    names.setdefault(extent, len(names))
        return names

    def _check(self) -> None:
        program = self.executable.program
        given = [a.input for a in self.arguments if not isinstance(a, LiteralArg) and a.input is not None]
        given += [c.input for c in self.captures]
        self._require(sorted(given) == list(range(len(program.inputs))), "each input of the program needs one source")
        self._require(len(self.keywords) <= len(self.arguments), "more keywords than arguments")
        bound: set[str] = set()
        for argument in self.arguments:
            if isinstance(argument, TensorArg):
                bound.update(extent for extent in argument.shape if isinstance(extent, str))
                if argument.input is not None:
                    self._check_slot(program.inputs[argument.input], argument.dtype, argument.shape)
            elif isinstance(argument, ScalarArg):
                slot = program.inputs[argument.input]
                fits = slot.shape == () and slot.dtype in _SYMBOL
                self._require(fits, f"a Python number cannot be {slot.dtype}{list(slot.shape)}")
        self._require(bound == set(self._names), "each symbolic extent must be an extent of some argument")
        for capture in self.captures:
            slot = program.inputs[capture.input]
            if isinstance(capture, ConstantInput):
                self._check_slot(slot, capture.array.dtype, capture.array.shape)
                flags = capture.array.flags
                self._require(flags.c_contiguous and flags.aligned and not slot.updated, "a constant is not constant")
        self._require(len(program.inputs) + len(program.outputs) <= MAX_BUFFERS, f"more than {MAX_BUFFERS} buffers")
        known = callable(self.structure) or self.structure in STRUCTURE
        self._require(known and (self.structure != "single" or len(program.outputs) == 1), "structure does not fit")

    def _check_slot(self, slot: Slot, dtype: np.dtype[Any], shape: tuple[int | str, ...]) -> None:
        self._require(NUMPY[slot.dtype] == dtype and slot.shape == shape, f"{dtype}{shape} given for {slot}")

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise ArgumentError("signature", f"{message}, in a signature of {self.executable.program.name}.")

    # The record.

    def _packed(self, borrowed: Sequence[Guard]) -> bytes:
        program, writer = self.executable.program, Writer(HEAD)
        structure = "call" if callable(self.structure) else self.structure
        least = [self.minimums.get(name, 0) for name in self._names]
        return writer.pack(
            {
                "entry": self.executable.address,
                "positional": len(self.arguments) - len(self.keywords),
                "keywords": len(self.keywords),
                "keyword_names": writer.section(id(name) for name in self.keywords),
                "arguments": writer.items(map(self._argument_item, self.arguments)),
                "dims": len(self._names),
                "minimums": writer.section(least),
                "guards": len(self.guards) + len(borrowed),
                "guard_items": writer.items(map(_guard_item, (*self.guards, *borrowed))),
                "inputs": len(program.inputs),
                "captures": len(self.captures),
                "capture_items": writer.items(map(self._capture_item, self.captures)),
                "outputs": len(program.outputs),
                "output_items": writer.items(map(self._output_item, program.outputs)),
                "arena": writer.section(size_words(program.arena_bytes, self._names)),
                "work": writer.section(size_words(self._work(), self._names)),
                "structure": STRUCTURE[structure],
                "callable": id(self.structure),
                "calls": 0,
            }
        )

    def _extents(self, shape: Iterable[int | str]) -> list[int]:
        return [-1 - self._names[extent] if isinstance(extent, str) else extent for extent in shape]

    def _argument_item(self, argument: Argument) -> tuple[int, ...]:
        if isinstance(argument, TensorArg):
            place = -1 if argument.input is None else argument.input
            dtype = _canonical(argument.dtype)
            return ARGUMENT["tensor"], place, id(dtype), len(argument.shape), *self._extents(argument.shape)
        if isinstance(argument, ScalarArg):
            dtype_name = self.executable.program.inputs[argument.input].dtype
            return ARGUMENT["scalar"], argument.input, SCALAR[_SYMBOL[dtype_name]]
        value = argument.value
        if type(value) is float:
            return ARGUMENT["float"], _bits(value)
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return ARGUMENT["int"], value
        return ARGUMENT["identity"], id(value)

    def _capture_item(self, capture: Capture) -> tuple[int, ...]:
        if isinstance(capture, ConstantInput):
            return CAPTURE["constant"], capture.input, capture.array.ctypes.data
        slot = self.executable.program.inputs[capture.input]
        offset = _inherited_slot_offset(type(capture.variable), capture.slot)
        dtype = _canonical(NUMPY[slot.dtype])
        head = (CAPTURE["variable"], capture.input, id(capture.variable), offset, int(slot.updated), id(dtype))
        return *head, len(slot.shape), *self._extents(slot.shape)

    def _output_item(self, slot: Slot) -> tuple[int, ...]:
        dtype = _canonical(NUMPY[slot.dtype])
        return 0, id(dtype), dtype.itemsize, len(slot.shape), *self._extents(slot.shape)

    def _work(self) -> Size:
        """Bytes read and written, for the choice to release the GIL; zero, which keeps it, where state is updated:
        two threads would write the same buffer."""
        if self.updates_state:
            return Size(())
        program = self.executable.program
        terms = []
        for slot in (*program.inputs, *program.outputs):
            factor, names = NUMPY[slot.dtype].itemsize, tuple(e for e in slot.shape if isinstance(e, str))
            for extent in slot.shape:
                factor *= extent if isinstance(extent, int) else 1
            terms.append((factor, names))
        return Size(tuple(terms))

    def _fail(self, status: int) -> None:
        """Called by native code when a run-time check failed."""
        self.executable.raise_check(status)

    # The same in Python.

    def _try(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call's result, or _MISS."""
        arrays = self._bind(args, kwargs)
        if arrays is None:
            return _MISS
        tensors = [_wrap(array) for array in self.executable.run(arrays)]
        self._python_calls += 1
        if callable(self.structure):
            return self.structure(tuple(tensors))
        if self.structure == "none":
            return None
        if self.structure == "single":
            return tensors[0]
        return tensors if self.structure == "list" else tuple(tensors)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[np.ndarray] | None:
        """One array per input of the program, or None when the call does not fit.

        State to be updated is a miss: whether someone else holds its buffer shows in reference counts only.
        """
        positional = len(self.arguments) - len(self.keywords)
        unfit = self.updates_state or self._native_only
        if unfit or len(args) != positional or tuple(kwargs) != self.keywords:
            return None
        arrays: list[Any] = [None] * len(self.executable.program.inputs)
        dims: dict[str, int] = {}
        for argument, value in zip(self.arguments, (*args, *kwargs.values())):
            if isinstance(argument, TensorArg):
                array = _fitting(value, argument.dtype, argument.shape, dims)
                if array is None:
                    return None
                if argument.input is not None:
                    arrays[argument.input] = array
            elif isinstance(argument, ScalarArg):
                slot = self.executable.program.inputs[argument.input]
                arrays[argument.input] = converted = _scalar(value, slot.dtype, _SYMBOL[slot.dtype])
                if converted is None:
                    return None
            elif not _same_literal(value, argument.value):
                return None
        if any(dims[name] < least for name, least in self.minimums.items() if name in dims):
            return None
        if not all(map(_holds, self.guards)):
            return None
        for capture in self.captures:
            if isinstance(capture, ConstantInput):
                arrays[capture.input] = capture.array
            else:
                slot = self.executable.program.inputs[capture.input]
                tensor = getattr(capture.variable, capture.slot, None)
                arrays[capture.input] = array = _fitting(tensor, NUMPY[slot.dtype], slot.shape, dims)
                if array is None:
                    return None
        return arrays


class Dispatcher:
    """Base of callables that run compiled programs.  Subclasses define ``_call_slow(*args, **kwargs)``, which also
    puts signatures into ``_dispatch``: a tuple, replaced as a whole, most likely signature first."""

    __slots__ = ("_dispatch",)
    _dispatch: tuple[Signature, ...]

    def _call_slow(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._call_slow")

    def _call_python(self, *args: Any, **kwargs: Any) -> Any:
        """``__call__`` in Python: native code takes its place at the first call that finds a signature."""
        if _setup is not None and not _setup.busy.value:
            for signature in getattr(self, "_dispatch", ()):
                enable()
                result = signature._try(args, kwargs)
                if result is not _MISS:
                    return result
        return self._call_slow(*args, **kwargs)

    __call__ = _call_python


class _Kernel:
    """What stands behind a function made by ``elementwise``."""

    _definition: native.MethodDef
    __slots__ = ("_always", "_codes", "_definition", "_dtypes", "_executable", "_fallback", "_record", "_scalars")

    def __init__(
        self, executable: Executable, scalars: tuple[bool, ...], fallback: Callable[..., Any] | None, always: bool
    ) -> None:
        program = executable.program
        fits = (
            len(program.outputs) == 1
            and len(program.inputs) == len(scalars) <= MAX_INPUTS
            and program.arena_bytes.is_static
            and not all(scalars)
            and len(program.dims) == 1
        )
        if not fits:
            raise ArgumentError(
                "elementwise", f"{program.name} is not an elementwise program of {len(scalars)} inputs."
            )
        self._executable, self._fallback, self._scalars, self._always = executable, fallback, scalars, always
        self._dtypes = tuple(_canonical(NUMPY[slot.dtype]) for slot in program.inputs)
        self._codes = tuple(
            _NUMBER.get(slot.dtype, "none") if scalar else "none" for slot, scalar in zip(program.inputs, scalars)
        )
        out = _canonical(NUMPY[program.outputs[0].dtype])
        writer = Writer(KERNEL)
        specs = writer.items(
            (SPEC["scalar" if scalar else "tensor"], id(dtype), SCALAR[code])
            for scalar, dtype, code in zip(scalars, self._dtypes, self._codes)
        )
        self._record = writer.pack(
            {
                "entry": executable.address,
                "inputs": len(scalars),
                "specs": specs,
                "dtype": id(out),
                "itemsize": out.itemsize,
                "arena": program.arena_bytes.at({}),
                "always": int(always),
            }
        )

    def _fail(self, status: int) -> None:
        self._executable.raise_check(status)

    def _call(self, *args: Any) -> Any:
        """The call in Python."""
        if self._always or not _front_end().busy.value:
            result = self._try(args)
            if result is not _MISS:
                return result
        return NotImplemented if self._fallback is None else self._fallback(*args)

    def _try(self, args: tuple[Any, ...]) -> Any:
        if len(args) != len(self._scalars):
            return _MISS
        shape: tuple[int, ...] | None = None
        arrays = []
        for value, scalar, dtype, code in zip(args, self._scalars, self._dtypes, self._codes):
            if type(value) is not _tensor_type():
                array = _scalar(value, dtype, code) if scalar else None
            elif scalar:
                array = _fitting(value, dtype, (), {})
            else:
                if shape is None:
                    held: Any = getattr(value, _front_end().array_slot, None)
                    shape = np.shape(held)
                array = _fitting(value, dtype, shape, {})
            if array is None:
                return _MISS
            arrays.append(array if scalar else array.reshape(-1))
        (out,) = self._executable.run(arrays)
        return _wrap(out.reshape(shape))


def elementwise(
    executable: Executable,
    *,
    scalars: Sequence[bool] = (),
    fallback: Callable[..., Any] | None = None,
    always: bool = False,
    name: str = "elementwise",
) -> Callable[..., Any]:
    """A function of tensors, for a program over ``n`` elements: inputs [n] each, output [n], one symbolic extent.

    All tensors must have one shape, which the result has too.  Where ``scalars`` says so, an input is a single
    element: a 0-d tensor, or a Python number that its dtype represents.  Anything else, a busy thread included,
    calls ``fallback`` with the same arguments, or returns NotImplemented where there is none.  ``always`` is for
    callers that have seen to tapes and traces themselves: it does not look whether the thread is busy.
    """
    kernel = _Kernel(executable, tuple(scalars) or (False,) * len(executable.program.inputs), fallback, always)
    addresses = enable()
    if addresses is None:
        return kernel._call
    kernel._definition = native.method_def(name, addresses["elementwise"])
    return native.builtin(kernel._definition, kernel)


class _Fixed:
    """What stands behind a function made by ``fixed``."""

    _definition: native.MethodDef
    __slots__ = ("_definition", "_executable", "_out", "_record", "_shapes", "_types")

    def __init__(
        self,
        executable: Executable,
        types: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
        shapes: Sequence[tuple[int, ...]],
        out: tuple[np.dtype[Any], tuple[int, ...]],
    ) -> None:
        program = executable.program
        self._executable, self._out, self._shapes = executable, out, shapes
        self._types = [(_canonical(dtype), shape) for dtype, shape in types]
        dims = {source.name: shapes[source.input][source.axis] for source in program.dims}
        dtype, shape = _canonical(out[0]), out[1]
        writer = Writer(FIXED)
        self._record = writer.pack(
            {
                "entry": executable.address,
                "inputs": len(types),
                "specs": writer.items((SPEC["tensor"], id(d), len(s), *s) for d, s in self._types),
                "dims": writer.section(dims.values()),
                "dtype": id(dtype),
                "ndim": len(shape),
                "shape": writer.section(shape),
                "bytes": math.prod(shape) * dtype.itemsize,
                "arena": program.arena_bytes.at(dims),
            }
        )

    def _fail(self, status: int) -> None:
        self._executable.raise_check(status)

    def _call(self, *args: Any) -> Any:
        """The call in Python."""
        if len(args) != len(self._types):
            return NotImplemented
        arrays = []
        for value, (dtype, shape), normal in zip(args, self._types, self._shapes):
            array = _fitting(value, dtype, shape, {})
            if array is None:
                return NotImplemented
            arrays.append(array.reshape(normal))
        (result,) = self._executable.run(arrays)
        return _wrap(result.reshape(self._out[1]))


def fixed(
    executable: Executable,
    types: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
    shapes: Sequence[tuple[int, ...]],
    out: tuple[np.dtype[Any], tuple[int, ...]],
) -> Callable[..., Any]:
    """A function of tensors of exactly these types (dtype and shape), for a program of one output.

    The program sees the same elements as arrays of ``shapes``, and its output as an array of the type ``out``.  For
    any other arguments the result is NotImplemented.  Tapes and traces are the caller's business.
    """
    if len(types) != len(executable.program.inputs) or len(types) > MAX_INPUTS or len(executable.program.outputs) != 1:
        raise ArgumentError("fixed", f"{executable.program.name} is not a program of {len(types)} inputs, one output.")
    kernel = _Fixed(executable, types, shapes, out)
    addresses = enable()
    if addresses is None:
        return kernel._call
    kernel._definition = native.method_def(executable.program.name, addresses["fixed"])
    return native.builtin(kernel._definition, kernel)


# Set-up.


@dataclass(frozen=True)
class _Setup:
    tensor_type: type
    array_slot: str
    busy: ctypes.c_int32


_setup: _Setup | None = None


def setup(tensor_type: type, busy: ctypes.c_int32, array_slot: str = "_array") -> None:
    """Tell the entry about the front end: its Tensor class, the slot that holds the array, and the counter of reasons
    not to take shortcuts.  Called once, at import; native code reads ``busy`` at its address from then on."""
    global _setup
    if _setup is not None and _setup.tensor_type is not tensor_type:
        raise ArgumentError("runtime", "the native entry is already set up for another Tensor class.")
    _setup = _setup or _Setup(tensor_type, array_slot, busy)


def _front_end() -> _Setup:
    if _setup is None:
        raise ArgumentError("runtime", "entry.setup(Tensor, busy) has not been called.")
    return _setup


def _tensor_type() -> type:
    return _front_end().tensor_type


@native.once
def enable() -> dict[str, int] | None:
    """Load the native code and give it to Dispatcher, once.  Addresses by symbol, or None for the Python paths."""
    front_end = _front_end()
    pool = memory.pool()
    if pool is None:
        return None
    offsets = Offsets(
        tensor_array=layout.slot_offset(front_end.tensor_type, front_end.array_slot),
        dispatch_table=layout.slot_offset(Dispatcher, "_dispatch"),
        signature_record=layout.slot_offset(Signature, "_record"),
        kernel_record=layout.slot_offset(_Kernel, "_record"),
        kernel_fallback=layout.slot_offset(_Kernel, "_fallback"),
        fixed_record=layout.slot_offset(_Fixed, "_record"),
    )
    imports = {
        "Tensor_Type": id(front_end.tensor_type),
        "Signature_Type": id(Signature),
        "PyArray_Type": id(np.ndarray),
        "Name_fail": id(_NAMES[0]),
        "Name_slow": id(_NAMES[1]),
        "busy": ctypes.addressof(front_end.busy),
        **{name: pool.addresses[name] for name in ("pool_allocate", "pool_release", "make_array")},
    }

    def build() -> str:
        from hybridflow.runtime import entry_code  # only where the disk cache has no machine code for it

        return entry_code.build(offsets)

    addresses = native.load(build, (offsets, *layout.SETTINGS), ("call", "elementwise", "fixed", "sample"), imports)
    definition = native.method_def("__call__", addresses["call"], keywords=True)
    native_call = native.method(definition, Dispatcher)
    if not _self_test(native_call, addresses):
        return None
    Dispatcher.__call__ = native_call  # type: ignore[method-assign]
    return addresses


_NAMES = ("_fail", "_call_slow")  # the objects whose addresses native code holds


class _Sample(Dispatcher):
    """A callable over a known program.  ``_call_slow`` tells that native code did not take the call."""

    __slots__ = ()

    def _call_slow(self, *args: Any, **kwargs: Any) -> Any:
        return _MISS


def _self_test(native_call: Callable[..., Any], addresses: Mapping[str, int]) -> bool:
    """Whether calls of a known program give the right result, and every reference that they took back."""
    vector = Slot(("n",), "f32")
    program = Program("sample", host.detect(), "", "sample", (vector,), (vector,), (DimSource("n", 0, 0),), Size(()))
    executable = Executable(program, machine_code.Code({"sample": addresses["sample"]}))
    kernel = _Kernel(executable, (False,), None, always=True)
    kernel._definition = native.method_def("sample", addresses["elementwise"])
    sample = _Sample()
    sample._dispatch = (Signature(executable, [TensorArg(NUMPY["f32"], ("n",), 0)]),)
    values = np.arange(5, dtype=np.float32)
    x, expected = _wrap(values), ~values.view(np.int32)
    probe = object()  # with as many references as a result that nobody else holds
    watched = (x, kernel, sample, sample._dispatch, sample._dispatch[0])
    before = list(map(sys.getrefcount, watched))
    for call in (native.builtin(kernel._definition, kernel), functools.partial(native_call, sample)):
        for _ in range(3):
            result = call(x)
            if result is _MISS and _front_end().busy.value:
                break  # the first use came under a tape or in a trace, where calls go the slow way
            if type(result) is not _front_end().tensor_type or sys.getrefcount(result) != sys.getrefcount(probe):
                return False
            array = getattr(result, _front_end().array_slot)
            if array.shape != (5,) or not np.array_equal(array.view(np.int32), expected):
                return False
            del result, array
        del call
    return list(map(sys.getrefcount, watched)) == before


# Shared rules of the Python paths; each mirrors a function of entry_code.


def _wrap(array: np.ndarray) -> Any:
    front_end = _front_end()
    tensor: Any = object.__new__(front_end.tensor_type)
    setattr(tensor, front_end.array_slot, array)
    return tensor


def _fitting(value: Any, dtype: np.dtype[Any], shape: tuple[int | str, ...], dims: dict[str, int]) -> np.ndarray | None:
    """The array of a Tensor of this dtype and shape, C-contiguous; binds symbolic extents."""
    front_end = _front_end()
    if type(value) is not front_end.tensor_type:
        return None
    array = getattr(value, front_end.array_slot, None)
    if type(array) is not np.ndarray or array.dtype != dtype or array.ndim != len(shape):
        return None
    if not (array.flags.c_contiguous and array.flags.aligned):
        return None
    for extent, expected in zip(array.shape, shape):
        if extent != (dims.setdefault(expected, extent) if isinstance(expected, str) else expected):
            return None
    return array


def _scalar(value: Any, dtype: Any, code: str) -> np.ndarray | None:
    """A Python number as a 0-d array, if its type is one that the code takes and an int is representable."""
    dtype = NUMPY[dtype] if isinstance(dtype, str) else dtype
    if type(value) is float and code.startswith(("float", "number")):
        with np.errstate(over="ignore"):
            return np.array(value, dtype)
    if type(value) is int and code.startswith(("int", "number")):
        if code.startswith("number"):
            reach = 1 << (24 if dtype.itemsize == 4 else 53)
        else:
            reach = 1 << (8 * dtype.itemsize - 1)
        # Two's complement reaches one further below zero; among floats the power of two itself is exact.
        if -reach <= value < reach or (value == reach and code.startswith("number")):
            return np.array(value, dtype)
    return None


def _same_literal(value: Any, expected: Any) -> bool:
    if type(value) is float and type(expected) is float:
        return _bits(value) == _bits(expected)
    if type(value) is int and type(expected) is int:
        return value == expected
    return value is expected


def _holds(guard: Guard) -> bool:
    try:
        if isinstance(guard, ListGuard):
            return tuple(map(id, guard.owner)) == tuple(map(id, guard.expected))
        if isinstance(guard, AbsentGuard):
            return guard.key not in guard.mapping
        if isinstance(guard, CellGuard):
            return guard.cell.cell_contents is guard.expected
        if isinstance(guard, ItemGuard):
            return guard.mapping[guard.key] is guard.expected
        return getattr(guard.owner, guard.name) is guard.expected
    except Exception:  # gone, or a property that fails: not what it was
        return False


def _guard_item(guard: Guard) -> tuple[int, ...]:
    if isinstance(guard, ListGuard):
        return GUARD["list"], id(guard.owner), *map(id, guard.expected), 0
    if isinstance(guard, AbsentGuard):
        return GUARD["absent"], id(guard.mapping), id(guard.key)
    if isinstance(guard, CellGuard):
        return GUARD["cell"], id(guard.cell), 0, id(guard.expected)
    if isinstance(guard, ItemGuard):
        return GUARD["item"], id(guard.mapping), id(guard.key), id(guard.expected)
    return GUARD["attribute"], id(guard.owner), id(guard.name), id(guard.expected)


def _bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def _canonical(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The one dtype object that arrays made by NumPy and by us carry, which native code compares by address."""
    return _CANONICAL[dtype]


_CANONICAL = {dtype: dtype for dtype in NUMPY.values()}


def _inherited_slot_offset(type_: type, name: str) -> int:
    for base in type_.__mro__:
        if name in base.__dict__:
            return layout.slot_offset(base, name)
    raise ArgumentError("signature", f"{type_.__name__} has no slot {name!r}.")
