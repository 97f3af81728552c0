"""Memory shared with other libraries through DLPack, by NumPy's exporter and importer.

These two do not know bfloat16 and floats of 8 bits, whose elements travel as unsigned integers between NumPy and the
capsule, in which the dtype is set right: see ``_Header``.  Numbers of 4 and 2 bits lie side by side in a byte there,
and each in its own here, so that they cannot be shared.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, SharingError

CPU = 1  # kDLCPU
_UNSIGNED = 1  # kDLUInt
_CODES = {  # kDLBfloat, kDLFloat8_e4m3fn …
    dtypes.bfloat16: 4,
    dtypes.float8_e4m3fn: 10,
    dtypes.float8_e4m3fnuz: 11,
    dtypes.float8_e5m2: 12,
    dtypes.float8_e5m2fnuz: 13,
}
_DTYPES = {(code, 8 * dtype.itemsize, 1): dtype for dtype, code in _CODES.items()}
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_NO_READ_ONLY = (
    "tensors are immutable, and before DLPack 1.0 there is no way to say so. Allow a copy, or ask with "
    "max_version=(1, 0)."
)
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class _Header(ctypes.Structure):
    """The beginning of a DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


# Where it lies in what capsules of these names point to: a DLManagedTensor begins with it, a DLManagedTensorVersioned
# has a version of two 32-bit words, two pointers and 64 bits of flags before it.
_FLAGS = 24  # ... and where they are
_OFFSETS = {b"dltensor": 0, b"dltensor_versioned": 32}

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.argtypes, _name_of.restype = [ctypes.py_object], ctypes.c_char_p
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


def _header(capsule: object) -> _Header:
    """The header of the tensor in a capsule, as long as that lives.  Raises ValueError for what is no such capsule."""
    name = _name_of(capsule)
    offset = _OFFSETS.get(name)
    if offset is None:
        raise ValueError(f"its capsule is called {name!r}; consumed capsules cannot be read again")
    return _Header.from_address(_pointer_of(capsule, name) + offset)


def exported(
    array: np.ndarray,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule over the memory of an array, which is read-only to those who know such, or over a copy: the default of
    those who do not.  Raises SharingError where that is not allowed, and for other devices than the CPU's."""
    check_options(max_version, dl_device)
    if dl_device is not None and tuple(dl_device) != (CPU, 0):
        raise SharingError("dlpack", f"the tensor lies on the CPU, not on the DLPack device {tuple(dl_device)}.")
    knows_read_only = max_version is not None and max_version[0] >= 1
    if not knows_read_only and copy is False:
        raise SharingError("dlpack", _NO_READ_ONLY)
    code = _CODES.get(array.dtype)
    if code is not None:
        array = array.view(f"u{array.dtype.itemsize}")
    elif dtypes.is_stored(array.dtype):
        raise SharingError("dlpack", f"DLPack has no {array.dtype} with one number in a byte. Convert it with astype.")
    if copy or not knows_read_only:
        array = array.copy()
    capsule = array.__dlpack__(max_version=max_version if knows_read_only else None)
    if code is not None:
        _header(capsule).code = code
    return capsule


def exported_from_gpu(
    array: Any,
    stream: object,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """The same for an array of a GPU, for who works on ``stream`` (a number of DLPack's, None for the default one)."""
    from hybridflow.runtime.cuda import gpu_memory

    check_options(max_version, dl_device)
    options = {"max_version": max_version, "dl_device": dl_device}
    if not copy and max_version is not None and max_version[0] >= 1:
        capsule = gpu_memory.exported(array, stream, options)
        if _name_of(capsule) == b"dltensor_versioned":
            flags = _pointer_of(capsule, b"dltensor_versioned") + _FLAGS
            ctypes.c_uint64.from_address(flags).value |= _READ_ONLY
            return capsule
    if copy is False:
        raise SharingError("dlpack", _NO_READ_ONLY)
    return gpu_memory.exported(array.copy(), stream, options)


def check_options(max_version: object, dl_device: object) -> None:
    """Raise ArgumentTypeError unless both are pairs of ints, or None."""
    for name, value in (("max_version", max_version), ("dl_device", dl_device)):
        is_pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, int) for part in value)
        if value is not None and not is_pair:
            raise ArgumentTypeError("dlpack", f"{name} is {value!r}; it must be a tuple of two ints, or None.")


class _Producer:
    """Somebody's array as NumPy can import it."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.dtype: np.dtype[Any] | None = None  # where NumPy does not know it

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._value.__dlpack__(**options)
        header = _header(capsule)
        self.dtype = _DTYPES.get((header.code, header.bits, header.lanes))
        if self.dtype is not None:
            header.code = _UNSIGNED
        elif header.code not in _KINDS or header.lanes != 1:
            lanes = f" in vectors of {header.lanes}" if header.lanes != 1 else ""
            kind = _KINDS.get(header.code, f"code {header.code}")
            raise DTypeError("dlpack", f"its elements are of DLPack's {kind} with {header.bits} bits{lanes}.")
        return capsule


def imported(value: object, **options: Any) -> np.ndarray:
    """An array over the memory of what exports DLPack on the CPU.  Raises whatever it or NumPy raises."""
    producer = _Producer(value)
    array = np.from_dlpack(producer, **options)
    return array if producer.dtype is None else array.view(producer.dtype)


def no_stream(stream: object) -> None:
    """Raise ArgumentError if there is a stream to wait for, as there is none on a CPU."""
    if stream is not None:
        raise ArgumentError("dlpack", f"stream is {stream!r}; the CPU has none, so it must be None.")
