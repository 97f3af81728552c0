"""A GPU emulated on the CPU, for machines that have none.

It stands in for CuPy: just what hybridflow uses of it, and as strict (an array of the device never becomes NumPy's by
itself).  Kernels run in emulated blocks (``cuda_blocks``), the last thread first unless a test says otherwise.  What it
cannot show is how PTX and the hardware behave; ``tests/test_gpu.py`` does, on a machine that has a GPU.
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
from tests.cuda_blocks import ORDERS, Blocks


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

    def __init__(self, blocks: Blocks, symbol: str, emulator: Emulator) -> None:
        self._blocks, self._symbol, self._emulator = blocks, symbol, emulator

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], given: list[Any]) -> None:
        self._blocks.launch(self._symbol, grid, block, given, ORDERS[self._emulator.order])


class Emulator:
    """The module ``cupy``, with ``devices`` GPUs, on which threads go first in the ``order`` of that name."""

    def __init__(self, devices: int) -> None:
        self.order = "reversed"
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

    def entry_points(self, program: Program) -> dict[str, EntryPoint]:
        """The entry points of a CUDA program as host code."""
        blocks = Blocks(program.text)
        return {launch.symbol: EntryPoint(blocks, launch.symbol, self) for launch in program.launches}

    def ascontiguousarray(self, array: Array) -> Array:
        return array.copy()


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """Two emulated GPUs in the place of CuPy's."""
    emulator = Emulator(2)
    monkeypatch.setattr(gpus, "cupy", lambda: emulator)
    monkeypatch.setattr(executable, "_entry_points", emulator.entry_points)
    gpus.target.cache_clear()
    yield emulator
    gpus.target.cache_clear()
