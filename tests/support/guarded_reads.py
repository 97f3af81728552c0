"""Kernels on arrays that end, or begin, at a page that nobody may read: `python tests/support/guarded_reads.py TARGET`.

For "host" those are products of bytes, for which a machine may have instructions that no named target has.

Says at each case what it runs; a kernel that reads beyond an array ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compiler import target as targets
from hybridflow.runtime.machine import host_target
from tests.support import avx512_machine

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PAGE = mmap.PAGESIZE
_MAPS: list[mmap.mmap] = []  # for as long as the process lives

Case = tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]


def guarded(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy between two pages that cannot be read: at the end of the room between them, or at its beginning."""
    room = -(-array.nbytes // _PAGE) * _PAGE
    memory = mmap.mmap(-1, room + 2 * _PAGE)
    _MAPS.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + _PAGE + room):
        if _LIBC.mprotect(page, _PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = _PAGE + (room - array.nbytes if at_end else 0)
    found = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    found[...] = array
    return found


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(3)

    def some(dtype: str, *shape: int) -> np.ndarray:
        return rng.integers(0, 9, shape).astype(dtype)

    def turned(x: Any) -> Any:
        return hf.permute_dims(x, (1, 0))

    integers = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    for dtype in (*integers, "float16", "float32", "float64"):
        for m, k, n in ((64, 8, 65), (19, 37, 21), *[(35, 128, 20)] * (dtype == "int8")):
            x, y = some(dtype, m, k), some(dtype, k, n)
            x_turned, y_turned = (np.ascontiguousarray(a.T) for a in (x, y))
            yield f"product {dtype} {m, k, n}", lambda x, y: x @ y, (x, y)
            yield f"turned product {dtype} {m, k, n}", lambda x, y: turned(x) @ y, (x_turned, y)
            yield f"product by turned {dtype} {m, k, n}", lambda x, y: x @ turned(y), (x, y_turned)
    for dtype in ("int8", "int16", "float32"):
        x = some(dtype, 358, 65)
        yield f"deep product {dtype}", lambda x, y: turned(x) @ y, (some(dtype, 358, 64), x)
        yield f"by vector {dtype}", lambda x, y: x @ y, (x, some(dtype, 65))
        yield f"turned by vector {dtype}", lambda x, y: turned(x) @ y, (x, some(dtype, 358))
        yield f"transposed {dtype}", lambda x: turned(x) + 1, (x,)
        yield f"sorted {dtype}", lambda x: (hf.sort(x), hf.argsort(x, axis=0), hf.top_k(x, 3)), (x,)
    for groups, channels in ((1, 3), (1, 17), (3, 3)):
        x, kernel = some("float32", 2, 11, 9, channels), some("float32", 3, 2, channels // groups, 5 * groups)
        yield f"convolution {groups, channels}", _convolved, (x, kernel)
    for steps in (150, 261):  # panels, with rows left over; keys and values are parts of a longer line
        yield f"attention {steps}", _attended, (some("float32", 8, steps, 3 * 5) / 9,)


def _attended(x: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(x)
        q, k, v = (x[..., 5 * i : 5 * i + 5] for i in range(3))
        y = hf.nn.softmax(q @ hf.permute_dims(k, (0, 2, 1))) @ v
        loss = hf.sum(y * y)
    return y, tape.gradient(loss, x)


def _convolved(x: Any, kernel: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(x)
        tape.watch(kernel)
        y = hf.nn.convolution(x, kernel, strides=[1, 1], padding="SAME")
        loss = hf.sum(y * y)
    return y, *tape.gradient(loss, [x, kernel])


def _arrays(results: Any) -> list[np.ndarray]:
    if isinstance(results, tuple):
        return [array for result in results for array in _arrays(result)]
    return [results.numpy()]


def main(name: str) -> None:
    avx512_machine.install_if_asked()
    with host_target.use(targets.NAMED.get(name, host_target.detect())):
        for label, program, inputs in cases():
            if name == "host" and not ("product" in label and "int8" in label):
                continue
            print(label, flush=True)
            function = hf.function(program)
            wanted = _arrays(function(*(hf.asarray(x.copy()) for x in inputs)))
            for at_end in (True, False):
                found = _arrays(function(*(guarded(x, at_end) for x in inputs)))
                assert all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True)), label
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
