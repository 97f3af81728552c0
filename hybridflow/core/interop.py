"""Arrays of other libraries (PyTorch's, JAX's, CuPy's, pandas' columns, buffers) as NumPy arrays over their memory."""

from __future__ import annotations

import array
import functools
from collections.abc import Callable
from operator import is_
from typing import Any, NoReturn, TypeVar

import numpy as np

from hybridflow.core import pytree
from hybridflow.core.tensor import Operators, wrap
from hybridflow.errors import ArgumentTypeError, HybridflowError
from hybridflow.runtime import uninterruptible

Args = TypeVar("Args", tuple[Any, ...], dict[str, Any])

_class_of: Callable[[Any], type] = type
_BUFFERS = (array.array, memoryview)
_KNOWN = (Operators, np.ndarray, np.generic)
_GPU = (2, 13)  # DLPack's numbers for CUDA, and for memory that it manages


def is_array(value: object) -> bool:
    """Whether a value is an array of another library: a tensor argument, as NumPy's are.

    Objects that only know how to become an array, without a shape and a dtype of their own, are none.
    """
    return _is_array_class(_class_of(value))


def becomes_array(value: object) -> bool:
    """Whether a value that is none of ours or NumPy's can be read as an array."""
    return _is_readable_class(_class_of(value))


@functools.lru_cache(maxsize=256)
def _is_array_class(kind: type) -> bool:
    if issubclass(kind, _KNOWN):
        return False
    if issubclass(kind, _BUFFERS) or hasattr(kind, "__dlpack__") or hasattr(kind, "__array_interface__"):
        return True
    return hasattr(kind, "__array__") and hasattr(kind, "shape") and hasattr(kind, "dtype")


@functools.lru_cache(maxsize=256)
def _is_readable_class(kind: type) -> bool:
    names = ("__array__", "__dlpack__", "__array_interface__")
    return not issubclass(kind, _KNOWN) and (issubclass(kind, _BUFFERS) or any(hasattr(kind, name) for name in names))


def adopted(values: Args, stage: str) -> Args:
    """Arguments of a compiled function, by position or by name, as it takes them: with arrays over the memory of other
    libraries' arrays, or tensors over that of those on GPUs, in their place, at any depth.  The very ``values`` where
    there are none.
    """
    if isinstance(values, dict):
        leaves = list(values.values())
        converted = [_adopted(value, stage) for value in leaves]
        return values if all(map(is_, converted, leaves)) else dict(zip(values, converted))
    converted = [_adopted(value, stage) for value in values]
    return values if all(map(is_, converted, values)) else tuple(converted)


def _adopted(value: object, stage: str) -> Any:
    if is_array(value):
        gpu_array = on_gpu(value, stage)
        return as_numpy(value, stage) if gpu_array is None else wrap(gpu_array)
    if not pytree.is_container(value):
        return value
    leaves, structure = pytree.flatten(value)
    if not any(map(is_array, leaves)):
        return value
    return pytree.unflatten(structure, [_adopted(leaf, stage) for leaf in leaves])


def on_gpu(value: object, stage: str) -> Any:
    """An array of CuPy's over the memory of an array of another library that lies on a GPU; None for others.

    Raises ArgumentTypeError, with the reason that the library gives, where there is none.
    """
    where = _device_type(value)
    if where is None:
        if not hasattr(type(value), "__cuda_array_interface__") or not hasattr(value, "__cuda_array_interface__"):
            return None
    elif where not in _GPU:
        return None
    from hybridflow.runtime.cuda import gpu_memory

    try:
        return gpu_memory.shared(value)
    except Exception as error:
        refuse(value, error, stage)


def _device_type(value: Any) -> int | None:
    """DLPack's number for the kind of device where an array says that it lies."""
    try:
        return int(value.__dlpack_device__()[0])
    except Exception:  # it says nothing, or DLPack does not know where that is, which the other protocol can tell
        return None


@uninterruptible.loaded
def _dlpack() -> Any:
    from hybridflow.core import dlpack  # which most arrays do without

    return dlpack


def as_numpy(value: object, stage: str) -> np.ndarray:
    """An array over the memory of another library's array, or over what that makes of it.

    Raises ArgumentTypeError, with the reason that the library gives, where there is none.
    """
    kind = type(value)
    reason: Exception = TypeError("it has no elements")
    if hasattr(kind, "__array__") or hasattr(kind, "__array_interface__") or issubclass(kind, _BUFFERS):
        try:
            return np.asarray(value)
        except Exception as error:
            reason = error
    if hasattr(kind, "__dlpack__"):  # which knows dtypes that NumPy does not
        try:
            result: np.ndarray = _dlpack().imported(value)
            return result
        except Exception as error:
            reason = error
    refuse(value, reason, stage)


def refuse(value: object, reason: Exception, stage: str) -> NoReturn:
    """Raise what tells the user why another library's array cannot be read."""
    if isinstance(reason, HybridflowError):
        raise reason
    raise ArgumentTypeError(stage, f"a {type(value).__name__} cannot be read{_why(value, reason)}") from None


def _why(value: object, reason: Exception) -> str:
    if getattr(value, "requires_grad", False) is True:
        return (
            ": it requires a gradient in its own library, which would not pass through here. Pass x.detach(), or make "
            "it an hf.Variable."
        )
    return f": {str(reason).rstrip('.')}. Pass a dense array in the CPU's memory."
