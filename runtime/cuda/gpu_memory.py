"""The GPUs of this process, their memory, and copies of arrays on them.  Memory and streams are CuPy's.

CuPy is imported, and a device touched, when something first runs there; everything else of the product does without.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any

from hybridflow.compiler.target import CUDA_SM80, CUDA_SM90, Target
from hybridflow.errors import DeviceError, DeviceMemoryError
from hybridflow.runtime.cuda import cublaslt

_INSTALL = "Install CuPy for your CUDA version: pip install 'hybridflow[gpu]'."


@functools.cache
def cupy() -> Any:
    """The CuPy module.  Raises DeviceError where it is not installed."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError("cuda", f"CuPy cannot be imported ({error}). {_INSTALL}") from None
    return cupy


def count() -> int:
    """The number of GPUs that this process can use."""
    try:
        return cupy().cuda.runtime.getDeviceCount()
    except Exception:  # no CuPy, no driver, or none of this version: CuPy raises errors of its own for the latter
        return 0


def check_device(number: int) -> None:
    """Raises DeviceError unless there is a GPU of that number."""
    cupy()
    available = count()
    if number >= available:
        has = "no GPU" if not available else f"gpu:0 to gpu:{available - 1}" if available > 1 else "gpu:0 alone"
        raise DeviceError("cuda", f"there is no gpu:{number} here; this process has {has}. Check nvidia-smi.")


@functools.cache
def target(number: int) -> Target:
    """The Target that programs for a GPU are compiled for.  Raises DeviceError for one that is too old."""
    check_device(number)
    device = cupy().cuda.Device(number)
    capability = int(device.compute_capability)
    if capability < CUDA_SM80.sm:
        raise DeviceError("cuda", f"gpu:{number} is of compute capability {capability}; {CUDA_SM80.sm} is needed.")
    base = CUDA_SM90 if capability >= CUDA_SM90.sm else CUDA_SM80
    memory = int(device.attributes["MaxSharedMemoryPerBlockOptin"])
    return base.with_(library=cublaslt.is_installed(), block_memory=memory)


_bound = threading.local()  # the devices whose contexts this thread has used


def _devices_of_thread() -> set[int]:
    try:
        return _bound.devices
    except AttributeError:
        _bound.devices = set()
        return _bound.devices


def on(number: int) -> Any:
    """``with on(0):`` makes a GPU the current one, for CuPy and for the driver."""
    device = cupy().cuda.Device(number)
    known = _devices_of_thread()
    if number not in known:
        try:
            with device:
                cupy().cuda.runtime.memGetInfo()  # which gives the thread the device's context
        except Exception as error:
            raise _failed(number, error) from None
        known.add(number)
        return cupy().cuda.Device(number)
    return device


def stream() -> int:
    """The handle of the stream on which CuPy, and so we, work on the current GPU."""
    return int(cupy().cuda.get_current_stream().ptr)


def empty(shape: object, dtype: object) -> Any:
    """A fresh array on the current GPU.  Raises DeviceMemoryError where there is no room."""
    try:
        return cupy().empty(shape, dtype)
    except Exception as error:
        raise _failed(cupy().cuda.runtime.getDevice(), error) from None


def is_whole(array: Any) -> bool:
    """Whether a GPU array has memory of its own, which this process took like that of other arrays here and nobody else
    refers to, all of it and in order."""
    if not (array.nbytes and array.flags.c_contiguous and array.base is None):
        return False
    memory = type(array.data.mem)
    if memory.__name__ == "UnownedMemory":  # of another library
        return False
    with on(array.device.id):
        probe = empty(1, array.dtype)
    return type(probe.data.mem) is memory and _references(array) == _references(probe)


def _references(array: Any) -> int:
    return sys.getrefcount(array.data.mem)


def _failed(number: int, error: Exception) -> Exception:
    """What CuPy raised, as an error that says what to do; the very error where it is none of a device."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    reason = str(error).rstrip(".")
    if "OutOfMemoryError" in kinds:
        return DeviceMemoryError("cuda", f"gpu:{number} has no room: {reason}. Free tensors, or take smaller batches.")
    if kinds & {"CUDARuntimeError", "CUDADriverError"}:
        return DeviceError(
            "cuda",
            f"gpu:{number} cannot be used: {reason}. Check nvidia-smi; a process that was forked after the first use "
            "of a GPU, or whose GPU has failed, has to be started again.",
        )
    return error


def shared(array: Any) -> Any:
    """An array over the memory of a GPU array of any library, or over a copy where that is not contiguous.  What we do
    with it comes after all that its library has queued: the library sees to that, by DLPack's protocol of streams."""
    if not isinstance(array, cupy().ndarray):
        array = cupy().from_dlpack(array) if hasattr(type(array), "__dlpack__") else cupy().asarray(array)
    if array.flags.c_contiguous:
        return array
    with on(array.device.id):
        return cupy().ascontiguousarray(array)


def exported(array: Any, stream: Any, options: dict[str, Any]) -> Any:
    """The DLPack capsule of an array of a GPU, for who works on a stream.  It comes after all that is queued here."""
    with on(array.device.id):
        return array.__dlpack__(stream=stream, **options)
