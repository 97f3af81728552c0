"""The GPUs of this process, and copies of arrays to and on them.  Memory and streams are CuPy's.

CuPy is imported, and a device touched, when something first runs there; everything else of the product does without.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hybridflow.compiler.target import CUDA_SM80, CUDA_SM90, Target
from hybridflow.errors import DeviceError

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
    found = count()
    if number >= found:
        has = "no GPU" if not found else f"gpu:0 to gpu:{found - 1}" if found > 1 else "gpu:0 alone"
        raise DeviceError("cuda", f"there is no gpu:{number} here; this process has {has}. Check nvidia-smi.")


@functools.cache
def target(number: int) -> Target:
    """The Target that programs for a GPU are compiled for.  Raises DeviceError for one that is too old."""
    check_device(number)
    capability = int(cupy().cuda.Device(number).compute_capability)
    if capability < CUDA_SM80.sm:
        raise DeviceError("cuda", f"gpu:{number} is of compute capability {capability}; {CUDA_SM80.sm} is needed.")
    return CUDA_SM90 if capability >= CUDA_SM90.sm else CUDA_SM80


def to_device(array: np.ndarray, number: int) -> Any:
    """A copy of a host array on a GPU."""
    check_device(number)
    with cupy().cuda.Device(number):
        copied = cupy().empty(array.shape, array.dtype)
        copied.set(np.ascontiguousarray(array).reshape(array.shape))
    return copied


def copied(array: Any) -> Any:
    """A contiguous copy of a GPU array of any library, on its GPU."""
    array = cupy().asarray(array)
    with array.device:
        return cupy().array(array, order="C", copy=True)
