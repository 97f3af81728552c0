"""What stands behind functions of one op: a program, and the record that says which operands it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.program import value_at
from hybridflow.errors import ArgumentError
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY, canonical
from hybridflow.runtime.native import functions
from hybridflow.runtime.native.records import ELEMENTWISE, ELEMENTWISE_INPUT, FIXED, FIXED_INPUT, MAX_INPUTS, Writer


class ElementwiseCall:
    """What stands behind a function made by ``elementwise``."""

    _definition: functions.MethodDef
    __slots__ = ("_definition", "_executable", "_record")

    def __init__(self, executable: Executable) -> None:
        program = executable.program
        arena = program.memory()
        few = len(program.outputs) == len(program.dims) == 1 and 0 < len(program.inputs) <= MAX_INPUTS
        if not few or not isinstance(arena, int):
            raise ArgumentError("elementwise", f"{program.name} is not an elementwise program.")
        self._executable = executable
        out = canonical(NUMPY[program.outputs[0].dtype])
        dtypes = [canonical(NUMPY[slot.dtype]) for slot in program.inputs]
        writer = Writer(ELEMENTWISE)
        self._record = writer.pack(
            entry=executable.address,
            inputs=len(dtypes),
            specs=writer.items(ELEMENTWISE_INPUT.pack(dtype=id(dtype)) for dtype in dtypes),
            dtype=id(out),
            itemsize=out.itemsize,
            arena=arena,
        )

    def _fail(self, status: int) -> None:
        """Called by native code when a run-time check failed."""
        self._executable.raise_check(status)


class FixedCall:
    """What stands behind a function made by ``fixed``."""

    _definition: functions.MethodDef
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
            entry=executable.address,
            inputs=len(types),
            specs=writer.items(FIXED_INPUT.pack(*s, dtype=id(canonical(d)), ndim=len(s)) for d, s in types),
            dims=writer.section(dims.values()),
            dtype=id(dtype),
            ndim=len(shape),
            shape=writer.section(shape),
            bytes=math.prod(shape) * dtype.itemsize,
            arena=value_at(program.memory(), dims),
        )

    def _fail(self, status: int) -> None:
        """Called by native code when a run-time check failed."""
        self._executable.raise_check(status)
