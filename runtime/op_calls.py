"""What stands behind functions of one op: a program, the operands that it takes, and the same call in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.errors import ArgumentError
from hybridflow.runtime import front_end, native
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.matching import MISS, NUMBER, canonical, fitting, number
from hybridflow.runtime.records import FIXED, KERNEL, MAX_INPUTS, SCALAR, SPEC, Writer


class Kernel:
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
        self._dtypes = tuple(canonical(NUMPY[slot.dtype]) for slot in program.inputs)
        self._codes = tuple(
            NUMBER.get(slot.dtype, "none") if scalar else "none" for slot, scalar in zip(program.inputs, scalars)
        )
        out = canonical(NUMPY[program.outputs[0].dtype])
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
        if self._always or not front_end.known().busy.value:
            result = self._try(args)
            if result is not MISS:
                return result
        return NotImplemented if self._fallback is None else self._fallback(*args)

    def _try(self, args: tuple[Any, ...]) -> Any:
        if len(args) != len(self._scalars):
            return MISS
        shape: tuple[int, ...] | None = None
        arrays = []
        for value, scalar, dtype, code in zip(args, self._scalars, self._dtypes, self._codes):
            if type(value) is not front_end.tensor_type():
                array = number(value, dtype, code) if scalar else None
            elif scalar:
                array = fitting(value, dtype, (), {})
            else:
                if shape is None:
                    held: Any = getattr(value, front_end.known().array_slot, None)
                    shape = np.shape(held)
                array = fitting(value, dtype, shape, {})
            if array is None:
                return MISS
            arrays.append(array if scalar else array.reshape(-1))
        (out,) = self._executable.run(arrays)
        return front_end.wrap(out.reshape(shape))


class Fixed:
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
        self._types = [(canonical(dtype), shape) for dtype, shape in types]
        dims = {source.name: shapes[source.input][source.axis] for source in program.dims}
        dtype, shape = canonical(out[0]), out[1]
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
            array = fitting(value, dtype, shape, {})
            if array is None:
                return NotImplemented
            arrays.append(array.reshape(normal))
        (result,) = self._executable.run(arrays)
        return front_end.wrap(result.reshape(self._out[1]))
