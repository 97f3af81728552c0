"""Memory of outputs and temporaries: a pool of 64-byte aligned blocks that are reused when freed.

A fresh 64 MiB output costs more in page faults than the kernel that fills it, so freed blocks are kept, within bounds
(see ``memory_pool_code``) and for a while.  Arrays own their block through NumPy's memory-handler mechanism: nothing is
copied, and the block comes back when the last reference to the array goes.  Without native code (see
``object_layout.problem``) arrays come from NumPy.
"""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hybridflow import flags
from hybridflow.errors import CompileError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.machine import host_target
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import POOL_STATE

ALIGNMENT = 64
WORTH_ALIGNING = 16 << 10  # bytes of a copy that a block of the pool is taken for: that takes 2 microseconds more
LIMIT = 4 << 30  # bytes kept for reuse; an eighth of the machine's memory where that is less
AGE = 10  # seconds: taking a block from the system costs less than a thousandth of that


class Stats(NamedTuple):
    """``live`` bytes are in use, ``cached`` ones kept for reuse; ``hits`` and ``misses`` count allocations."""

    live: int
    cached: int
    hits: int
    misses: int


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy/ndarraytypes.h."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


def default_limit() -> int:
    """Bytes that are kept for reuse unless ``set_limit`` says otherwise."""
    return min(LIMIT, host_target.memory_bytes() // 8)


_chosen_limit: int | None = None


def limit() -> int:
    """Bytes that are kept for reuse at most."""
    return default_limit() if _chosen_limit is None else _chosen_limit


def set_limit(bytes_: int) -> None:
    """Keep at most so many bytes for reuse; what is kept beyond goes back to the system."""
    global _chosen_limit
    _chosen_limit = bytes_
    if _loaded.made:
        blocks = pool()
        if blocks is not None:
            blocks.set_limit(bytes_)
            if blocks.stats().cached > bytes_:
                blocks.trim()


@uninterruptible.loaded
def _pool_code() -> ModuleType:
    from hybridflow.runtime.memory import memory_pool_code  # only where the disk cache has no machine code for it

    return memory_pool_code


class Pool:
    """The process's pool.  ``addresses`` are those of its native functions, for other native code to call."""

    def __init__(self) -> None:
        entries = ("pool_allocate", "pool_release", "pool_trim", "pool_look", "make_array", "empty")
        hooks = ("handler_malloc", "handler_calloc", "handler_realloc", "handler_free")
        imports = {
            "PyArray_Type": object_layout.numpy_api(object_layout.API_ARRAY_TYPE),
            "PyArray_NewFromDescr": object_layout.numpy_api(object_layout.API_NEW_FROM_DESCR),
        }
        symbols = (*entries, *hooks, *POOL_STATE, "handler")
        checked = bool(flags.VERIFY.value)
        settings = *object_layout.SETTINGS, checked
        self.addresses = native_functions.load(lambda: _pool_code().build(checked), settings, symbols, imports)
        self._state = {name: ctypes.c_int64.from_address(self.addresses[name]) for name in POOL_STATE}
        self._handler = _Handler(b"hybridflow", 1, None, *(self.addresses[name] for name in hooks))
        make = ctypes.pythonapi.PyCapsule_New
        make.argtypes, make.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
        self._name = b"mem_handler"  # the capsule points to it
        self._capsule = make(ctypes.addressof(self._handler), self._name, None)
        ctypes.c_void_p.from_address(self.addresses["handler"]).value = id(self._capsule)
        self.set_limit(limit())
        self.set_age(AGE)
        self.set_poison(bool(flags.POISON.value))
        self._definition = native_functions.method_def("empty", self.addresses["empty"])
        self.empty: Callable[[tuple[int, ...], np.dtype[Any], int], np.ndarray]
        self.empty = native_functions.builtin(self._definition, self._capsule)
        # PYFUNCTYPE keeps the GIL, which is what guards the pool.
        self.trim = ctypes.PYFUNCTYPE(None)(self.addresses["pool_trim"])
        self.look = ctypes.PYFUNCTYPE(None)(self.addresses["pool_look"])

    def set_limit(self, limit: int) -> None:
        self._state["limit"].value = limit

    def set_age(self, seconds: int) -> None:
        """Return large blocks that were not used for so long; looked for when others are taken or freed."""
        self._state["age"].value = seconds

    def set_poison(self, poison: bool) -> None:
        self._state["poison"].value = int(poison)

    def stats(self) -> Stats:
        return Stats(*(self._state[name].value for name in Stats._fields))


def pool() -> Pool | None:
    """The pool, loaded on first use and kept for good; None where native code cannot run."""
    loaded = _loaded()
    return loaded if isinstance(loaded, Pool) else None


def problem() -> str | None:
    """Why there is no pool, or None when there is one."""
    loaded = _loaded()
    return loaded if isinstance(loaded, str) else None


@uninterruptible.once
def _loaded() -> Pool | str:
    """The pool, or what is wrong."""
    problem = object_layout.problem()
    if problem is not None:
        return problem
    try:
        result = Pool()
    except (AttributeError, CompileError, ImportError, OSError) as error:  # no such symbol or library
        return f"native code does not load: {error}"
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(result))  # arrays freed at interpreter exit still need its handler
    return result


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """A fresh C-contiguous array at a 64-byte boundary."""
    shape = tuple(map(operator.index, shape))
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0:
        raise ValueError(f"negative extent in {shape}")
    if size > sys.maxsize:
        raise MemoryError(f"there is no memory for an array of {size} bytes")
    blocks = pool()
    if blocks is not None:
        return blocks.empty(shape, dtype, size)
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    if flags.POISON.value:
        raw.fill(0xFF)
    return raw[start : start + size].view(dtype).reshape(shape)


def copied(array: np.ndarray) -> np.ndarray:
    """A C-contiguous copy that owns its memory.  Large ones are at a 64-byte boundary, and the largest ones in large
    pages: kernels read memory of NumPy's, which is at boundaries of 16 bytes and mostly in small pages, up to twice
    slower."""
    if array.nbytes < WORTH_ALIGNING:
        return np.array(array, order="C", subok=False)
    copy = empty(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy


def stats() -> Stats:
    """Statistics of the pool of memory that tensors come from; zeros where there is none.

    Blocks that were not used for long go back to the system.

    Returns:
        A named tuple: ``live`` and ``cached`` bytes, ``hits`` and ``misses`` of requests.

    >>> hf.memory.stats().live >= 0
    True
    """
    blocks = pool()
    if blocks is not None:
        blocks.look()
    return blocks.stats() if blocks is not None else Stats(0, 0, 0, 0)


def trim() -> None:
    """Return all blocks that are kept for reuse to the system.

    Returns:
        None.

    >>> _ = hf.memory.trim()
    """
    blocks = pool()
    if blocks is not None:
        blocks.trim()
