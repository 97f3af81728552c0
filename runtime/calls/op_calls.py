"""What stands behind functions of one op: a program, and the record that says which operands it takes."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.program import value_at
from hybridflow.errors import ArgumentError
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY, canonical
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import (
    APPLICATION,
    DTYPES,
    ELEMENTWISE,
    ELEMENTWISE_INPUT,
    FIXED,
    FIXED_INPUT,
    FORMS,
    MAX_INPUTS,
    OPERATOR,
    WEAK,
    Writer,
)


def _program_words(executable: Executable) -> dict[str, int] | None:
    """What records say of a program over one symbolic extent, with its work for each element; None where it needs
    memory that depends on the extent."""
    program = executable.program
    arena, scratch = program.memory(), program.scratch_bytes
    if not isinstance(arena, int) or not isinstance(scratch, int):
        return None
    many = 1 << 20
    work = value_at(program.work, {source.name: many for source in program.dims}) // many
    shared = ctypes.addressof(executable.shared)
    return {
        "entry": ctypes.addressof(executable.plain),
        "shared": shared,
        "arena": arena,
        "scratch": scratch,
        "work": work,
    }


class ElementwiseCall:
    """What stands behind a function made by ``elementwise``."""

    _definition: native_functions.MethodDef
    __slots__ = ("_definition", "_executable", "_record")

    def __init__(self, executable: Executable) -> None:
        program = executable.program
        words = _program_words(executable)
        few = len(program.outputs) == len(program.dims) == 1 and 0 < len(program.inputs) <= MAX_INPUTS
        if not few or words is None:
            raise ArgumentError("elementwise", f"{program.name} is not an elementwise program.")
        self._executable = executable
        out = canonical(NUMPY[program.outputs[0].dtype])
        dtypes = [canonical(NUMPY[slot.dtype]) for slot in program.inputs]
        writer = Writer(ELEMENTWISE)
        self._record = writer.pack(
            **words,
            inputs=len(dtypes),
            specs=writer.items(ELEMENTWISE_INPUT.pack(dtype=id(dtype)) for dtype in dtypes),
            dtype=id(out),
            itemsize=out.itemsize,
        )

    def _share(self) -> None:
        """Called by native code where threads would be of use for the first time."""
        self._executable.share()

    def _fail(self, status: int) -> None:
        """Called by native code when a run-time check failed."""
        self._executable.raise_check(status)


class Application:
    """A program that applies an elementwise op to operands of one dtype: two of n elements, or one of them single.

    ``weak`` is a kind of ``records.WEAK`` for the Python numbers that it takes: floats, and ints from ``low`` to
    ``high``.  They become what the dtype has in their place.
    """

    __slots__ = ("_executable", "record")

    def __init__(
        self, executable: Executable, dtype: np.dtype[Any], weak: str = "none", low: int = 0, high: int = 0
    ) -> None:
        words = _program_words(executable)
        if len(executable.program.outputs) != 1 or words is None:
            raise ArgumentError("operator", f"{executable.program.name} is not an elementwise program.")
        self._executable = executable
        out = canonical(NUMPY[executable.program.outputs[0].dtype])
        self.record = Writer(APPLICATION).pack(
            **words,
            owner=id(self),
            dtype=id(canonical(dtype)),
            out=id(out),
            itemsize=out.itemsize,
            weak=WEAK[weak],
            low=low,
            high=high,
        )

    def _share(self) -> None:
        """Called by native code where threads would be of use for the first time."""
        self._executable.share()


class ElementwiseOp:
    """An op of one operand or two, behind Python's operators and the functions that ``operators.function`` makes.

    ``make(dtype, form)`` gives what applies it, or None; it is asked once for each, after ``WANTED`` calls in vain.
    Objects of this class live as long as the process.
    """

    WANTED = 8
    _definition: native_functions.MethodDef
    __slots__ = ("_applications", "_definition", "_make", "_record", "_table")

    def __init__(self, make: Callable[[np.dtype[Any], int], Application | None]) -> None:
        self._make = make
        self._applications: list[Application] = []
        self._table = (ctypes.c_uint64 * (DTYPES * FORMS))()
        self._record = Writer(OPERATOR).pack(owner=id(self), wanted=self.WANTED, table=ctypes.addressof(self._table))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _want(self, place: int, dtype: np.dtype[Any]) -> None:
        """Called by native code, at the time when a place of the table counts ``WANTED``."""
        application = self._make(dtype, place % FORMS)
        if application is not None:
            self._applications.append(application)
            self._table[place] = address_of(application.record)


def address_of(record: bytes) -> int:
    """Where native code finds the words of a record."""
    return id(record) + object_layout.BYTES_DATA


class FixedCall:
    """What stands behind a function made by ``fixed``."""

    _definition: native_functions.MethodDef
    __slots__ = ("_definition", "_executable", "_record")

    def __init__(
        self,
        executable: Executable,
        types: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
        shapes: Sequence[tuple[int, ...]],
        out: tuple[np.dtype[Any], tuple[int, ...]],
    ) -> None:
        program = executable.program
        if len(types) != len(program.inputs) or len(types) > MAX_INPUTS or len(program.outputs) != 1:
            raise ArgumentError("fixed", f"{program.name} is not a program of {len(types)} inputs, one output.")
        self._executable = executable
        dims = {source.name: source.value(shapes[source.input][source.axis]) for source in program.dims}
        dtype, shape = canonical(out[0]), out[1]
        writer = Writer(FIXED)
        self._record = writer.pack(
            entry=ctypes.addressof(executable.plain),
            shared=ctypes.addressof(executable.shared),
            inputs=len(types),
            specs=writer.items(FIXED_INPUT.pack(*s, dtype=id(canonical(d)), ndim=len(s)) for d, s in types),
            dims=writer.section(dims.values()),
            dtype=id(dtype),
            ndim=len(shape),
            shape=writer.section(shape),
            bytes=math.prod(shape) * dtype.itemsize,
            arena=value_at(program.memory(), dims),
            scratch=value_at(program.scratch_bytes, dims),
            work=value_at(program.work, dims),
        )

    def _share(self) -> None:
        """Called by native code where threads would be of use for the first time."""
        self._executable.share()

    def _fail(self, status: int) -> None:
        """Called by native code when a run-time check failed."""
        self._executable.raise_check(status)
