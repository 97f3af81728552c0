"""Signatures: what a call must look like, and the program that answers it.

A signature writes itself as a record for native code (``entry_code``), and can answer calls in Python as well.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridflow.compiler.program import Size, Slot
from hybridflow.errors import ArgumentError
from hybridflow.runtime import layout
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.front_end import wrap
from hybridflow.runtime.guards import Guard, guard_item, holds
from hybridflow.runtime.matching import MISS, SYMBOL, bits, canonical, fitting, number, same_literal
from hybridflow.runtime.records import ARGUMENT, CAPTURE, HEAD, MAX_BUFFERS, SCALAR, STRUCTURE, Writer, size_words


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


Argument = TensorArg | ScalarArg | LiteralArg
Capture = ConstantInput | VariableInput


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
                fits = slot.shape == () and slot.dtype in SYMBOL
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
                "guard_items": writer.items(map(guard_item, (*self.guards, *borrowed))),
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
            dtype = canonical(argument.dtype)
            return ARGUMENT["tensor"], place, id(dtype), len(argument.shape), *self._extents(argument.shape)
        if isinstance(argument, ScalarArg):
            dtype_name = self.executable.program.inputs[argument.input].dtype
            return ARGUMENT["scalar"], argument.input, SCALAR[SYMBOL[dtype_name]]
        value = argument.value
        if type(value) is float:
            return ARGUMENT["float"], bits(value)
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return ARGUMENT["int"], value
        return ARGUMENT["identity"], id(value)

    def _capture_item(self, capture: Capture) -> tuple[int, ...]:
        if isinstance(capture, ConstantInput):
            return CAPTURE["constant"], capture.input, capture.array.ctypes.data
        slot = self.executable.program.inputs[capture.input]
        offset = _inherited_slot_offset(type(capture.variable), capture.slot)
        dtype = canonical(NUMPY[slot.dtype])
        head = (CAPTURE["variable"], capture.input, id(capture.variable), offset, int(slot.updated), id(dtype))
        return *head, len(slot.shape), *self._extents(slot.shape)

    def _output_item(self, slot: Slot) -> tuple[int, ...]:
        dtype = canonical(NUMPY[slot.dtype])
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
        """The call's result, or MISS."""
        arrays = self._bind(args, kwargs)
        if arrays is None:
            return MISS
        tensors = [wrap(array) for array in self.executable.run(arrays)]
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
                array = fitting(value, argument.dtype, argument.shape, dims)
                if array is None:
                    return None
                if argument.input is not None:
                    arrays[argument.input] = array
            elif isinstance(argument, ScalarArg):
                slot = self.executable.program.inputs[argument.input]
                arrays[argument.input] = converted = number(value, slot.dtype, SYMBOL[slot.dtype])
                if converted is None:
                    return None
            elif not same_literal(value, argument.value):
                return None
        if any(dims[name] < least for name, least in self.minimums.items() if name in dims):
            return None
        if not all(map(holds, self.guards)):
            return None
        for capture in self.captures:
            if isinstance(capture, ConstantInput):
                arrays[capture.input] = capture.array
            else:
                slot = self.executable.program.inputs[capture.input]
                tensor = getattr(capture.variable, capture.slot, None)
                arrays[capture.input] = array = fitting(tensor, NUMPY[slot.dtype], slot.shape, dims)
                if array is None:
                    return None
        return arrays


def _inherited_slot_offset(type_: type, name: str) -> int:
    for base in type_.__mro__:
        if name in base.__dict__:
            return layout.slot_offset(base, name)
    raise ArgumentError("signature", f"{type_.__name__} has no slot {name!r}.")
