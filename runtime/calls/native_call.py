"""Native calls: what a call must look like, and the program that answers it.

A NativeCall writes itself as a record for native code (``entry_code``).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridflow.compiler.program import Dim, Extent, Slot
from hybridflow.errors import ArgumentError
from hybridflow.runtime.calls import steps as guard_steps
from hybridflow.runtime.calls.dims import Dims
from hybridflow.runtime.calls.steps import Step
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY, canonical
from hybridflow.runtime.native import layout
from hybridflow.runtime.native.records import (
    CONSTANT,
    DIM_STEP,
    FLOAT,
    FLOPS_PER_BYTE,
    HEAD,
    IDENTITY,
    INT,
    MAX_BUFFERS,
    OUTPUT,
    STRUCTURE,
    TENSOR,
    VARIABLE,
    Writer,
)


@dataclass(frozen=True)
class TensorArg:
    """A Tensor: dtype, and extents that are ints or symbols.  ``input`` is its place in the
    program, or None when the program does not read it."""

    dtype: np.dtype[Any]
    shape: tuple[Extent, ...]
    input: int | None


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
    """An input that is the current tensor of a variable, read at each call.  Where the program updates it, native code
    writes over the old value if that is the variable's own, else a fresh tensor takes its place.

    The variable has slots ``_tensor``, its value, and ``_own``, the same object if nobody else can see its memory; and
    a ``_gate`` (see ``turns``).
    """

    input: int
    variable: Any


Argument = TensorArg | LiteralArg
Capture = ConstantInput | VariableInput


class NativeCall:
    """One kind of call and the program that answers it; it keeps alive everything that it points to.

    ``arguments``  those given by position, then those given by name, whose names are ``keywords`` in that order
    ``captures``   the inputs of the program that are no arguments
    ``structure``  "none", "single", "tuple" or "list" of the outputs as tensors, or a callable that is given the tuple
    ``apart``      whether it answers only calls in which no array is in two places
    ``minimums``   the least value of a symbol, 0 where it is not named
    ``conditions`` extents that are 0 or more
    ``guards``     what else must be as it was (see ``steps``)
    ``repeats``    whether a call in which a run-time check fails is made again in Python, which knows what to raise
    Raises ArgumentError when the parts do not make a whole.
    """

    __slots__ = (
        "__weakref__",
        "_dims",
        "_record",
        "apart",
        "arguments",
        "captures",
        "conditions",
        "executable",
        "guards",
        "keywords",
        "minimums",
        "repeats",
        "structure",
    )

    def __init__(
        self,
        executable: Executable,
        arguments: Sequence[Argument],
        captures: Sequence[Capture] = (),
        *,
        keywords: Sequence[str] = (),
        guards: Sequence[Step] = (),
        structure: str | Callable[..., Any] = "single",
        minimums: Mapping[str, int] | None = None,
        conditions: Sequence[Extent] = (),
        apart: bool = False,
        repeats: bool = False,
    ) -> None:
        self.executable, self.apart, self.repeats = executable, apart, repeats
        self.arguments, self.captures = tuple(arguments), tuple(captures)
        self.guards = guard_steps.checked(guards)
        # Keyword names are compared by address, and those of calls written in source are interned.
        self.keywords = tuple(map(sys.intern, keywords))
        self.structure, self.minimums = structure, dict(minimums or {})
        self.conditions = tuple(conditions)
        self._dims = Dims(executable.program.dims, self._named())
        self._check()
        self._record = self._packed()

    @property
    def calls(self) -> int:
        """Calls that it has answered."""
        return struct.unpack_from("<Q", self._record, HEAD.offset("calls"))[0]

    def _check(self) -> None:
        program = self.executable.program
        given = [a.input for a in self.arguments if isinstance(a, TensorArg) and a.input is not None]
        given += [c.input for c in self.captures]
        self._require(not program.callbacks, "native code cannot call Python")
        self._require(sorted(given) == list(range(len(program.inputs))), "each input of the program needs one source")
        self._require(len(self.keywords) <= len(self.arguments), "more keywords than arguments")
        for argument in self.arguments:
            if isinstance(argument, TensorArg) and argument.input is not None:
                self._check_slot(program.inputs[argument.input], argument.dtype, argument.shape)
        named = set(self._named())
        sources = {Dim(source.name) * source.scale + source.offset for source in program.dims}
        self._require(sources <= named, "each symbolic extent must be an extent of some argument")
        for capture in self.captures:
            slot = program.inputs[capture.input]
            if isinstance(capture, ConstantInput):
                self._check_slot(slot, capture.array.dtype, capture.array.shape)
                flags = capture.array.flags
                self._require(flags.c_contiguous and flags.aligned and not slot.updated, "a constant is not constant")
        buffers = len(program.inputs) + len(program.outputs) + len(self.executable.updated)
        self._require(buffers <= MAX_BUFFERS, f"more than {MAX_BUFFERS} buffers")
        known = callable(self.structure) or self.structure in STRUCTURE
        self._require(known and (self.structure != "single" or len(program.outputs) == 1), "structure does not fit")

    def _named(self) -> list[Extent]:
        """The extents that the shapes of arguments say."""
        return [extent for argument in self.arguments if isinstance(argument, TensorArg) for extent in argument.shape]

    def _check_slot(self, slot: Slot, dtype: np.dtype[Any], shape: tuple[Extent, ...]) -> None:
        self._require(NUMPY[slot.dtype] == dtype and slot.shape == shape, f"{dtype}{shape} given for {slot}")

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise ArgumentError("native call", f"{message}, in one of {self.executable.program.name}.")

    # The record.

    def _packed(self) -> bytes:
        program, writer = self.executable.program, Writer(HEAD)
        structure = "call" if callable(self.structure) else self.structure
        steps, keeps = guard_steps.step_words(self.guards)
        outputs = writer.items(map(self._output_item, program.outputs))
        captures = writer.items(map(self._capture_item, self.captures))
        arguments = writer.items(map(self._argument_item, self.arguments))
        arena, work = self._extents((program.memory(), self._work()))
        least: dict[Extent, int] = {Dim(name): value for name, value in self.minimums.items()}
        for condition in self.conditions:
            if isinstance(condition, Dim):
                self._dims.index(condition)
                least[condition] = max(least.get(condition, 0), 0)
        return writer.pack(
            entry=self.executable.address,
            positional=len(self.arguments) - len(self.keywords),
            keywords=len(self.keywords),
            keyword_names=writer.section(id(name) for name in self.keywords),
            arguments=arguments,
            apart=int(self.apart),
            dims=len(self._dims),
            dim_step_count=len(self._dims.steps) // DIM_STEP.size,
            dim_steps=writer.section(self._dims.steps),
            minimums=writer.section(self._dims.minimums(least)),
            guards=len(self.guards),
            guard_steps=writer.section(steps),
            keeps=keeps,
            inputs=len(program.inputs),
            captures=len(self.captures),
            capture_items=captures,
            updates=len(self.executable.updated),
            outputs=len(program.outputs),
            output_items=outputs,
            arena=arena,
            work=work,
            structure=STRUCTURE[structure],
            callable=id(self.structure),
            repeats=int(self.repeats),
            calls=0,
        )

    def _extents(self, shape: Iterable[Extent]) -> list[int]:
        return [-1 - self._dims.index(extent) if isinstance(extent, Dim) else extent for extent in shape]

    def _argument_item(self, argument: Argument) -> tuple[int, ...]:
        if isinstance(argument, TensorArg):
            return TENSOR.pack(
                *self._extents(argument.shape),
                input=-1 if argument.input is None else argument.input,
                dtype=id(canonical(argument.dtype)),
                ndim=len(argument.shape),
            )
        value = argument.value
        if type(value) is float:
            return FLOAT.pack(bits=struct.unpack("<Q", struct.pack("<d", value))[0])
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return INT.pack(value=value)
        return IDENTITY.pack(object=id(value))

    def _capture_item(self, capture: Capture) -> tuple[int, ...]:
        if isinstance(capture, ConstantInput):
            return CONSTANT.pack(input=capture.input, data=capture.array.ctypes.data)
        slot, variable = self.executable.program.inputs[capture.input], capture.variable
        dtype = canonical(NUMPY[slot.dtype])
        return VARIABLE.pack(
            *self._extents(slot.shape),
            input=capture.input,
            object=id(variable),
            tensor=_inherited_slot_offset(type(variable), "_tensor"),
            own=_inherited_slot_offset(type(variable), "_own"),
            words=variable._gate.address,
            update=self.executable.updated.index(capture.input) if slot.updated else -1,
            in_place=int(slot.in_place),
            dtype=id(dtype),
            itemsize=dtype.itemsize,
            ndim=len(slot.shape),
        )

    def _output_item(self, slot: Slot) -> tuple[int, ...]:
        dtype = canonical(NUMPY[slot.dtype])
        return OUTPUT.pack(*self._extents(slot.shape), dtype=id(dtype), itemsize=dtype.itemsize, ndim=len(slot.shape))

    def _work(self) -> Extent:
        """Bytes read and written, and arithmetic in terms of them, for the choice to release the GIL."""
        program = self.executable.program
        total: Extent = sum(k.flops or 0 for k in program.kernels) // FLOPS_PER_BYTE
        for slot in (*program.inputs, *program.outputs):
            nbytes: Extent = NUMPY[slot.dtype].itemsize
            for extent in slot.shape:
                nbytes = nbytes * extent
            total = total + nbytes
        return total

    def _fail(self, status: int) -> None:
        """Called by native code when a run-time check failed."""
        self.executable.raise_check(status)


def _inherited_slot_offset(type_: type, name: str) -> int:
    for base in type_.__mro__:
        if name in base.__dict__:
            return layout.slot_offset(base, name)
    raise ArgumentError("native call", f"{type_.__name__} has no slot {name!r}.")
