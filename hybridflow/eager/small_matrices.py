"""Small matrices (``compiler/ops/small_linalg.py``) of host ops, by native code that is made when it is first
needed."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ops import small_linalg
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.machine import host_target, machine_code
from hybridflow.runtime.memory import memory_pool

_Native = Callable[..., int]


def computed(op: str, arrays: Sequence[np.ndarray], by_lapack: Callable[..., Any]) -> np.ndarray | None:
    """The one result for contiguous arrays, None where matrices are not small.  ``by_lapack`` is asked for those that
    are irregular, and may raise."""
    first = arrays[0]
    if not small_linalg.is_small(op, [x.shape for x in arrays]) or not first.size:
        return None
    n, m = first.shape[-1], arrays[-1].shape[-1]
    out = np.empty(first.shape[:-2] if op == "det" else arrays[-1].shape, first.dtype)
    native, nbytes = _native(op, first.dtype, host_target.target())
    memory = memory_pool.empty((nbytes,), np.dtype(np.uint8))
    places = [x.ctypes.data for x in (first, arrays[-1], out, memory)]
    if native(*places, first.size // (n * n), n, m):
        bad = small_linalg.irregular(op, out)
        out[bad] = by_lapack(*[x[bad] for x in arrays])
    return out


@uninterruptible.loaded
def _small_matrices() -> Any:
    from hybridflow.compiler.codegen.products import batched_small_linalg  # only where something is compiled

    return batched_small_linalg


@functools.cache
def _native(op: str, dtype: np.dtype, target: Any) -> tuple[_Native, int]:
    """The function, and how many bytes of memory it takes."""
    text = _small_matrices().text(op, dtype, target)
    code = machine_code.cached_code(
        machine_code.object_key(text, target),
        lambda: machine_code.compile_object(text, target),
        op,
        label=f"small {op}",
    )
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 3)
    call = kind(code.addresses[op])

    def run(*addresses: int) -> int:
        assert code  # held as long as its function
        return int(call(*addresses))

    return run, _small_matrices().memory_bytes(target, dtype)
