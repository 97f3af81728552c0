"""The driver of NVIDIA's GPUs: its functions, and what their errors mean to people.

It is what programs are loaded and launched with; memory and streams are CuPy's, which shares the device's context.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from hybridflow.errors import DeviceError, DeviceMemoryError

_P, _I32, _I64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_SIZE = ctypes.c_size_t
LEAST = 11080  # CUDA 11.8, the first whose driver reads the PTX that is written for sm_90

# Functions by their types of arguments; all of them return an error's number, 0 for none.
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuDriverGetVersion": (_P,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_P, _P),
    "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuModuleUnload": (_P,),
    "cuFuncSetAttribute": (_P, _I32, _I32),
    "cuLaunchKernel": (_P, *[ctypes.c_uint] * 7, _P, _P, _P),
    "cuLaunchCooperativeKernel": (_P, *[ctypes.c_uint] * 7, _P, _P),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (_P, _P, _I32, _SIZE),
    "cuCtxGetDevice": (_P,),
    "cuDeviceGetAttribute": (_P, _I32, _I32),
    "cuMemcpyAsync": (_P, _P, _SIZE, _P),
    "cuMemcpyDtoDAsync_v2": (_P, _P, _SIZE, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _P, _SIZE, _P),
    "cuMemcpyHtoDAsync_v2": (_P, _P, _SIZE, _P),
    "cuMemsetD32Async": (_P, ctypes.c_uint, _SIZE, _P),
    "cuEventCreate": (_P, ctypes.c_uint),
    "cuEventRecord": (_P, _P),
    "cuEventQuery": (_P,),
    "cuEventDestroy_v2": (_P,),
    "cuStreamCreate": (_P, ctypes.c_uint),
    "cuStreamDestroy_v2": (_P,),
    "cuStreamWaitEvent": (_P, _P, ctypes.c_uint),
    "cuStreamBeginCapture_v2": (_P, _I32),
    "cuStreamEndCapture": (_P, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, ctypes.c_ulonglong),
    "cuGraphDestroy": (_P,),
    "cuGraphExecDestroy": (_P,),
    "cuGraphLaunch": (_P, _P),
}

# Those that native code calls, in the order in which it finds them (see ``command_buffer_code``).
WALKED = (
    "cuLaunchKernel",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemsetD32Async",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuGraphLaunch",
    "cuLaunchCooperativeKernel",
)

EXHAUSTED, NOT_READY = 2, 600
NON_BLOCKING, NO_TIMING = 1, 2  # flags of a stream, and of an event
MULTIPROCESSORS = 16  # an attribute of a device
MOST_MEMORY = 8  # an attribute of a kernel: bytes of a block's memory that its launches may ask for
THREAD_LOCAL = 1  # a capture that other threads do not disturb

_LOST = "The device is gone for this process: save what is on the CPU, and start the process again."
_MEANINGS = {
    3: ("the GPU cannot be used in a process that was forked after its first use", "Start processes by 'spawn'."),
    4: ("the driver is shutting down", "Nothing can run on a GPU while the interpreter exits."),
    46: ("the device is in use by another process, or unavailable", "Check nvidia-smi."),
    100: ("there is no GPU", "Check nvidia-smi."),
    209: ("there is no code for this GPU", "Update the NVIDIA driver."),
    214: ("the GPU's memory reported an error that it could not correct", _LOST),
    218: ("the driver rejects the PTX", "Update the NVIDIA driver."),
    220: ("the link between GPUs failed", _LOST),
    222: ("the driver is too old for the PTX", "Update the NVIDIA driver."),
    700: ("a kernel used memory that is not its own", _LOST),
    702: ("a kernel took longer than the system lets it", _LOST),
    709: ("the context of the device is gone", _LOST),
    715: ("a kernel met an instruction that the GPU lacks", _LOST),
    716: ("a kernel used an address that is not aligned", _LOST),
    719: ("a kernel failed", _LOST),
    802: ("the system is not ready for CUDA", "Check nvidia-smi, and the fabric manager."),
    803: ("the driver and the library of CUDA do not fit each other", "Reinstall the NVIDIA driver, or reboot."),
    999: ("the device failed for a reason that the driver does not know", _LOST),
}


class Driver:
    """The functions of a loaded driver.  ``table`` has the addresses of those that native code calls."""

    def __init__(self, library: object) -> None:
        self._functions: dict[str, Any] = {}
        for name, types in SIGNATURES.items():
            function = getattr(library, name, None)
            if function is None:
                raise DeviceError(
                    "cuda", f"the NVIDIA driver is too old: it has no {name}. Update it to one for CUDA 12 or later."
                )
            function.argtypes, function.restype = types, _I32
            self._functions[name] = function
        version = self.number("cuDriverGetVersion")
        if version < LEAST:
            raise DeviceError(
                "cuda",
                f"the NVIDIA driver is for CUDA {_dotted(version)}; {_dotted(LEAST)} or later is needed. Update it.",
            )
        addresses = [ctypes.cast(self._functions[name], _P).value or 0 for name in WALKED]
        self.table = (_I64 * len(WALKED))(*addresses)

    def status(self, name: str, *arguments: object) -> int:
        """Call a function; the number of its error, 0 for none."""
        return int(self._functions[name](*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.  Raises DeviceError where it fails."""
        status = self.status(name, *arguments)
        if status:
            raise failure(status, name)

    def number(self, name: str, *arguments: Any) -> int:
        """The int that a function finds."""
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def made(self, name: str, *arguments: object) -> int:
        """The handle that a function makes."""
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle.value or 0


def failure(status: int, what: str) -> DeviceError:
    """The error of the driver of that number, which came of ``what``."""
    if status == EXHAUSTED:
        return DeviceMemoryError("cuda", f"the GPU has no room ({what}). Free tensors, or take smaller batches.")
    meaning, remedy = _MEANINGS.get(status, ("the driver reports an error", "Check nvidia-smi and the system's log."))
    return DeviceError("cuda", f"{meaning} ({what}: error {status}). {remedy}")


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


@functools.cache
def driver() -> Driver:
    """The driver of this machine.  Raises DeviceError where there is none, or one that is too old."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError("cuda", f"there is no NVIDIA driver here ({error}). Install it; check nvidia-smi.") from None
    return Driver(library)
