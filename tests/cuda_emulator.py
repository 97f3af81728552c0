"""A GPU emulated on the CPU, for machines that have none.

It stands in for CuPy: just what hybridflow uses of it, and as strict (an array of the device never becomes NumPy's by
itself).  Kernels are the very text that is emitted for CUDA, compiled for the host; threads run one after the other,
the last one first, so that a kernel whose threads depended on each other would be found out.  What it cannot show is
how PTX and the hardware behave: memory, rounding, atomics.  ``tests/test_gpu.py`` does, on a machine that has a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hybridflow.compiler.program import Program
from hybridflow.runtime.cuda import executable, gpus
from hybridflow.runtime.machine import host, machine_code

REGISTERS = ("tid.x", "ntid.x", "ctaid.x", "nctaid.x")


class Array:
    """The part of cupy.ndarray that hybridflow uses."""

    def __init__(self, host_array: np.ndarray, number: int) -> None:
        self._host = host_array
        self.device = types.SimpleNamespace(id=number)

    dtype = property(lambda self: self._host.dtype)
    shape = property(lambda self: self._host.shape)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    base = property(lambda self: None)

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self._host.ctypes.data)

    @property
    def flags(self) -> Any:
        return types.SimpleNamespace(c_contiguous=self._host.flags.c_contiguous)

    def reshape(self, *shape: Any) -> Array:
        return Array(self._host.reshape(*shape), self.device.id)

    def copy(self, order: str = "C") -> Array:
        return Array(self._host.copy(order), self.device.id)

    def get(self) -> np.ndarray:
        return self._host.copy()

    def set(self, array: np.ndarray) -> None:
        assert array.dtype == self.dtype and array.shape == self.shape and array.flags.c_contiguous
        self._host[...] = array

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")


class EntryPoint:
    """A launchable kernel."""

    def __init__(self, code: machine_code.Code, symbol: str) -> None:
        self._code, self._symbol = code, symbol

    def __call__(self, grid: tuple[int], block: tuple[int], given: list[Any]) -> None:
        addresses = self._code.addresses
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * len(given))(addresses[self._symbol])
        registers = (ctypes.c_int32 * 4).from_address(addresses["emulated_registers"])
        for ctaid in reversed(range(grid[0])):
            for tid in reversed(range(block[0])):
                registers[:] = (tid, block[0], ctaid, grid[0])
                function(*(int(x) & 0xFFFFFFFFFFFFFFFF for x in given))


def entry_points(program: Program) -> dict[str, EntryPoint]:
    """The entry points of a CUDA program as host code."""
    lines = [line for line in program.text.splitlines() if not line.startswith("declare i32 @llvm.nvvm.read")]
    lines.append("@emulated_registers = global [4 x i32] zeroinitializer")
    for k, register in enumerate(REGISTERS):
        name = f"@llvm.nvvm.read.ptx.sreg.{register}"
        lines = [line.replace(f"{name}()", f"@emulated.{register}()") for line in lines]
        address = f"getelementptr (i32, ptr @emulated_registers, i64 {k})"
        lines.append(f"define i32 @emulated.{register}() {{\n  %r = load i32, ptr {address}\n  ret i32 %r\n}}")
    text = "\n".join(lines).replace("define ptx_kernel ", "define ")
    symbols = [launch.symbol for launch in program.launches]
    image = machine_code.compile_object(text, host.detect())
    code = machine_code.load_object(image, *symbols, "emulated_registers")
    return {symbol: EntryPoint(code, symbol) for symbol in symbols}


class Emulator:
    """The module ``cupy``, with ``devices`` GPUs."""

    def __init__(self, devices: int) -> None:
        self._current = 0
        runtime = types.SimpleNamespace(
            getDeviceCount=lambda: devices, memcpyAsync=self._memcpy, memcpyDeviceToDevice=3
        )
        stream = types.SimpleNamespace(ptr=0)
        self.cuda = types.SimpleNamespace(runtime=runtime, Device=self._device, get_current_stream=lambda: stream)

    def _device(self, number: int) -> Any:
        @contextlib.contextmanager
        def chosen() -> Iterator[None]:
            before, self._current = self._current, number
            try:
                yield
            finally:
                self._current = before

        context = chosen()
        context.compute_capability = "90"  # type: ignore[attr-defined]
        return context

    @staticmethod
    def _memcpy(target: int, source: int, size: int, kind: int, stream: int) -> None:
        ctypes.memmove(target, source, size)

    def empty(self, shape: Any, dtype: Any) -> Array:
        array = np.empty(shape, dtype)
        array.reshape(-1).view(np.uint8).fill(0xFF)  # nothing may rely on what fresh memory holds
        return Array(array, self._current)

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return Array(np.zeros(shape, dtype), self._current)

    def ascontiguousarray(self, array: Array) -> Array:
        return array.copy()


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """Two emulated GPUs in the place of CuPy's."""
    emulator = Emulator(2)
    monkeypatch.setattr(gpus, "cupy", lambda: emulator)
    monkeypatch.setattr(executable, "_entry_points", entry_points)
    gpus.target.cache_clear()
    yield emulator
    gpus.target.cache_clear()
