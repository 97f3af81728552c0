"""A GPU emulated on the CPU, for machines that have none.

It stands in for CuPy: just what hybridflow uses of it, and as strict (an array of the device never becomes NumPy's by
itself).  Below it is the driver of ``fake_driver``, which the product's own code launches programs with; kernels run in
emulated blocks (``cuda_blocks``), the last thread first unless a test says otherwise.  What it cannot show is how PTX
and the hardware behave; ``tests/gpu/test_gpu.py`` does, on a machine that has a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hybridflow.core import dlpack
from hybridflow.eager import single_op_programs
from hybridflow.runtime.cuda import device, driver, executable, gpu_memory
from tests.support.cuda_blocks import MOST_SHARED
from tests.support.fake_driver import FakeDriver, Memory


class OutOfMemoryError(MemoryError):
    """Named as CuPy's."""


class Array:
    """The part of cupy.ndarray that hybridflow uses.  Made of a NumPy array, it is a copy on a device, as far behind a
    multiple of 64 as that is, and with its strides."""

    def __init__(self, host_array: np.ndarray, number: int) -> None:
        assert Emulator.now is not None
        behind = host_array.ctypes.data % 64
        made = Emulator.now.array(host_array.shape, host_array.dtype, number, host_array.strides, behind)
        made._host[...] = host_array
        self.__dict__ = made.__dict__

    dtype = property(lambda self: self._host.dtype)
    shape = property(lambda self: self._host.shape)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    base = property(lambda self: None)

    @staticmethod
    def over(memory: Any, host_array: np.ndarray, number: int) -> Array:
        found = Array.__new__(Array)
        found._memory, found._host, found.device = memory, host_array, types.SimpleNamespace(id=number)
        return found

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self._host.ctypes.data if self.nbytes else 0, mem=self._memory)

    @property
    def flags(self) -> Any:
        return types.SimpleNamespace(c_contiguous=self._host.flags.c_contiguous)

    def reshape(self, *shape: Any) -> Array:
        assert self._host.flags.c_contiguous
        return Array.over(self._memory, self._host.reshape(*shape), self.device.id)

    def copy(self, order: str = "C") -> Array:
        Emulator.now.driver.synchronize()
        return Array(np.ascontiguousarray(self._host).reshape(self.shape), self.device.id)

    def get(self) -> np.ndarray:
        Emulator.now.driver.synchronize()
        return self._host.copy()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None) -> Any:
        assert dl_device in (None, self.__dlpack_device__())
        Emulator.now.follow({None: 0, 1: 0}.get(stream, stream), Emulator.now._stream.ptr)
        capsule = self._host.__dlpack__(max_version=max_version)
        header = dlpack._header(capsule)
        header.device_type, header.device_id = self.__dlpack_device__()
        return capsule

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")


class _Held:
    """Memory of the device, which goes back to the pool with its last user."""

    def __init__(self, emulator: Emulator, size: int, stream: int) -> None:
        try:
            self.memory: Memory = emulator.driver.allocate(size, stream)
        except MemoryError:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes") from None
        weakref.finalize(self, emulator.driver.release, self.memory).atexit = False


def _pinned(size: int) -> Any:
    """cupy.cuda.PinnedMemoryPointer: whoever lets go of it must not have copies under way."""
    memory = np.full(size, 0xFF, np.uint8)
    kind = type("Pinned", (ctypes.c_uint8 * size,), {"ptr": property(ctypes.addressof)})
    pinned = kind.from_buffer(memory)
    weakref.finalize(pinned, memory.fill, 0xFF).atexit = False
    return pinned


class Emulator:
    """The module ``cupy``, with ``devices`` GPUs."""

    now: Emulator | None = None
    ndarray = Array

    def __init__(self, devices: int) -> None:
        self.driver = FakeDriver()
        self._current = 0
        self._streams: dict[int, Any] = {0: types.SimpleNamespace(ptr=0)}  # the current one of each device
        runtime = types.SimpleNamespace(
            getDeviceCount=lambda: devices, getDevice=lambda: self._current, memGetInfo=self._bind
        )
        self.cuda = types.SimpleNamespace(
            runtime=runtime,
            Device=self._device,
            get_current_stream=lambda: self._stream,
            alloc_pinned_memory=self._pinned,
        )

    @property
    def _stream(self) -> Any:
        """The current stream of the current device.  Those of the other devices are streams of their own, too."""
        return self.stream_of(self._current)

    @_stream.setter
    def _stream(self, stream: Any) -> None:
        self._streams[self._current] = stream

    def stream_of(self, number: int) -> Any:
        if number not in self._streams:
            handle = ctypes.c_uint64()
            self._bind()
            assert not self.driver.library.cuStreamCreate(ctypes.addressof(handle), 1)
            self._streams[number] = types.SimpleNamespace(ptr=handle.value)
        return self._streams[number]

    @property
    def order(self) -> str:
        """In which order threads go."""
        return self.driver.order

    @order.setter
    def order(self, order: str) -> None:
        self.driver.order = order

    def _pinned(self, size: int) -> Any:
        self.driver._require_no_capture("allocates")
        return _pinned(size)

    def _bind(self) -> tuple[int, int]:
        self.driver.bind()
        return 0, 0

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
        context.attributes = {"MaxSharedMemoryPerBlockOptin": MOST_SHARED}  # type: ignore[attr-defined]
        return context

    @contextlib.contextmanager
    def on_stream(self) -> Iterator[int]:
        """Another stream as the current one."""
        handle = ctypes.c_uint64()
        self._bind()
        assert not self.driver.library.cuStreamCreate(ctypes.addressof(handle), 1)
        before, self._stream = self._stream, types.SimpleNamespace(ptr=handle.value)
        try:
            yield handle.value
        finally:
            self._stream = before

    def array(self, shape: Any, dtype: Any, number: int, strides: Any = None, behind: int = 0) -> Array:
        """Fresh memory, ``behind`` bytes after an address that is a multiple of 64."""
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        held = _Held(self, behind + size, self.stream_of(number).ptr)
        memory = (ctypes.c_char * (behind + size)).from_address(held.memory.start)
        host = np.ndarray(shape, dtype, memory, behind, strides if size else None)
        return Array.over(held, host, number)

    def empty(self, shape: Any, dtype: Any) -> Array:
        return self.array(shape, dtype, self._current)

    def follow(self, stream: int, after: int) -> None:
        """Let a stream wait for what is queued on another one."""
        if stream == after:
            return
        event = ctypes.c_uint64()
        self._bind()
        library = self.driver.library
        assert not library.cuEventCreate(ctypes.addressof(event), 2)
        assert not library.cuEventRecord(event.value, after) and not library.cuStreamWaitEvent(stream, event.value, 0)

    def from_dlpack(self, value: Any) -> Array:
        kind, number = value.__dlpack_device__()
        assert kind in (2, 13), "CuPy reads what lies on a GPU"
        capsule = value.__dlpack__(stream=self._stream.ptr or 1)
        header = dlpack._header(capsule)
        words = ctypes.addressof(header) + 24  # shape and strides follow, in elements
        shape, strides = (
            (ctypes.c_int64 * header.ndim).from_address(ctypes.c_uint64.from_address(words + 8 * k).value)[:]
            for k in (0, 1)
        )
        dtype = np.dtype(f"{'iuf'[header.code]}{header.bits // 8}")
        memory = (ctypes.c_char * (int(np.prod(shape)) * dtype.itemsize)).from_address(header.data)
        host = np.ndarray(shape, dtype, memory, 0, [dtype.itemsize * s for s in strides])
        return Array.over((capsule, value), host, number)

    def ascontiguousarray(self, array: Array) -> Array:
        return array.copy()


class _Loaded(executable.CudaExecutable):
    """A program whose arrays have to lie on its device."""

    def _ready(self, arrays: Any) -> Any:
        assert all(array.device.id == self.device for array in arrays), self.program.name
        return super()._ready(arrays)


@contextlib.contextmanager
def emulating(monkeypatch: pytest.MonkeyPatch, devices: int) -> Iterator[Emulator]:
    """Emulated GPUs in the place of CuPy's, and of the driver's."""
    emulator = Emulator(devices)
    monkeypatch.setattr(gpu_memory, "cupy", lambda: emulator)
    monkeypatch.setattr(gpu_memory, "_bound", type(gpu_memory._bound)())
    monkeypatch.setattr(device, "_devices", {})
    monkeypatch.setattr(device, "driver", lambda: driver.Driver(emulator.driver.library))
    monkeypatch.setattr(executable, "ptx", types.SimpleNamespace(assemble=lambda program: program.text))
    here = {
        key: found
        for key, found in single_op_programs._programs.items()
        if not isinstance(found, executable.CudaExecutable)
    }
    monkeypatch.setattr(executable, "CudaExecutable", _Loaded)
    monkeypatch.setattr(single_op_programs, "_programs", here)
    monkeypatch.setattr(Emulator, "now", emulator)
    gpu_memory.target.cache_clear()
    yield emulator
    gpu_memory.target.cache_clear()
    assert not emulator.driver.broken, "\n".join(emulator.driver.broken)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """Two emulated GPUs."""
    with emulating(monkeypatch, 2) as emulator:
        yield emulator
