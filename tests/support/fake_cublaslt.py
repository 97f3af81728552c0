"""A stand-in for cuBLASLt and its bindings in nvmath-python, on the stand-in for the driver: it computes with NumPy, at
the addresses that it is given, when its stream comes to that.

Wrong use is kept in ``broken`` of the driver: descriptions that were destroyed, or have other types than the product,
leading dimensions of less than a column, operands that do not lie where alignments and layouts say, and memory that is
not the device's, or was freed.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
import types
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from hybridflow.runtime.cuda.cublaslt import Bindings
from tests.support.fake_driver import FakeDriver

_P, _SIZE = ctypes.c_void_p, ctypes.c_size_t
CREATED = _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _SIZE, _P  # the arguments of cublasLtMatmul
TYPES = {0: np.dtype(np.float32), 2: np.dtype(np.float16), 14: np.dtype(ml_dtypes.bfloat16)}
RESULT = np.dtype(
    [("algo", "u8", 8), ("workspace_size", "u8"), ("state", "i4"), ("waves", "f4"), ("reserved", "i4", 4)]
)


# The numbers of the C library, as its bindings have them.
class MatrixLayoutAttribute(enum.IntEnum):
    LD, BATCH_COUNT, STRIDED_BATCH_OFFSET = 4, 5, 6


class MatmulDescAttribute(enum.IntEnum):
    TRANSA, TRANSB = 3, 4


class MatmulPreferenceAttribute(enum.IntEnum):
    MAX_WORKSPACE_BYTES, REDUCTION_SCHEME_MASK = 1, 3
    MIN_ALIGNMENT_A_BYTES, MIN_ALIGNMENT_B_BYTES, MIN_ALIGNMENT_C_BYTES, MIN_ALIGNMENT_D_BYTES = 5, 6, 7, 8


class ReductionScheme(enum.IntEnum):
    NONE, INPLACE, COMPUTE_TYPE, OUTPUT_TYPE, MASK = 0, 1, 2, 4, 7


class ComputeType(enum.IntEnum):
    COMPUTE_32F, COMPUTE_32F_FAST_TF32 = 68, 77


class Operation(enum.IntEnum):
    N, T, C = 0, 1, 2


class CudaDataType(enum.IntEnum):
    CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF = 0, 2, 14


DTYPES: dict[str, dict[int, Any]] = {
    "matrix_layout": {4: np.int64, 5: np.int32, 6: np.int64},
    "matmul_desc": {3: np.int32, 4: np.int32},
    "matmul_preference": {1: np.uint64, 3: np.uint32, **dict.fromkeys((5, 6, 7, 8), np.uint32)},
}


class cuBLASLtError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class MatmulHeuristicResult:
    def __init__(self) -> None:
        self.array = np.zeros(1, RESULT)
        self.ptr = self.array.ctypes.data
        self.array["state"] = 7  # anything but success

    workspace_size = property(lambda self: int(self.array["workspace_size"][0]))
    state = property(lambda self: int(self.array["state"][0]))


@dataclass
class Made:
    """A layout, a description or a preference: what it was made of, and its attributes."""

    kind: str
    given: tuple[int, ...]
    attributes: dict[int, int] = field(default_factory=dict)


class FakeCublasLt:
    """``calls`` are the products that were queued, as the library sees them: m, n, k, batch, transpositions, leading
    dimensions and how it computes.  ``workspace`` is what algorithms ask for; ``refuses`` is a status of what chooses
    them, ``fails`` one of calls."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver, self.calls, self.asked = driver, list[tuple[Any, ...]](), 0
        self.workspace, self.refuses, self.fails = 1 << 12, 0, 0
        self._made: dict[int, Made] = {}
        self._handles: set[int] = set()
        self._numbers = itertools.count(0x100000, 64)
        self._alignments: dict[int, list[int]] = {}  # of algorithms
        self._function = ctypes.CFUNCTYPE(ctypes.c_int, *CREATED)(self._matmul)
        names = ["create", "matmul_algo_get_heuristic"]
        for kind in DTYPES:
            names += [f"{kind}_create", f"{kind}_destroy", f"{kind}_set_attribute", f"get_{kind}_attribute_dtype"]
        lt: Any = types.SimpleNamespace(**{name: getattr(self, f"_{name}", None) or self._one(name) for name in names})
        lt.MatrixLayoutAttribute, lt.MatmulDescAttribute = MatrixLayoutAttribute, MatmulDescAttribute
        lt.MatmulPreferenceAttribute, lt.ReductionScheme = MatmulPreferenceAttribute, ReductionScheme
        lt.MatmulHeuristicResult, lt.cuBLASLtError = MatmulHeuristicResult, cuBLASLtError
        cublas = types.SimpleNamespace(ComputeType=ComputeType, Operation=Operation)
        address = ctypes.cast(self._function, _P).value or 0
        self.bindings = Bindings(lt, cublas, CudaDataType, address)

    @property
    def live(self) -> int:
        """Descriptions that were not destroyed."""
        return len(self._made)

    def _one(self, name: str) -> Any:
        kind = next(kind for kind in DTYPES if kind in name)
        if name.startswith("get_"):
            return DTYPES[kind].__getitem__
        if name.endswith("_create"):
            return lambda *given: self._make(kind, given)
        if name.endswith("_destroy"):
            return lambda number: self._made.pop(number)
        return lambda *given: self._set(kind, *given)

    def _make(self, kind: str, given: tuple[int, ...]) -> int:
        number = next(self._numbers)
        self._made[number] = Made(kind, tuple(map(int, given)))
        return number

    def _set(self, kind: str, number: int, attribute: int, place: int, size: int) -> None:
        dtype = np.dtype(DTYPES[kind][int(attribute)])
        assert self._made[number].kind == kind and size == dtype.itemsize
        self._made[number].attributes[int(attribute)] = int(np.frombuffer(ctypes.string_at(place, size), dtype)[0])

    def _create(self) -> int:
        assert self.driver.is_bound
        handle = next(self._numbers)
        self._handles.add(handle)
        return handle

    def _matmul_algo_get_heuristic(
        self, handle: int, desc: int, a: int, b: int, c: int, d: int, preference: int, most: int, out: int, count: int
    ) -> None:
        assert handle in self._handles and most == 1
        wants = self._made[preference]
        assert wants.kind == "matmul_preference" and wants.attributes[3] == ReductionScheme.COMPUTE_TYPE
        self.asked += 1
        if self.refuses:
            raise cuBLASLtError(self.refuses)
        self._described(desc, a, b, c, d)
        number = next(self._numbers)
        self._alignments[number] = [wants.attributes[k] for k in (5, 6, 7, 8)]
        found = np.zeros(1, RESULT)
        found["algo"][0, 0] = number
        found["workspace_size"] = min(self.workspace, wants.attributes[1])
        ctypes.memmove(out, found.ctypes.data, RESULT.itemsize)
        ctypes.c_int32.from_address(count).value = 1

    def _described(self, desc: int, *layouts: int) -> tuple[Made, list[Made], tuple[int, int, int, int]]:
        """What handles stand for, and m, n, k and the batch; refuses what does not fit."""
        form, matrices = self._made[desc], [self._made[number] for number in layouts]
        assert form.kind == "matmul_desc" and all(matrix.kind == "matrix_layout" for matrix in matrices)
        assert form.given[0] in tuple(ComputeType) and form.given[1] == CudaDataType.CUDA_R_32F
        for matrix in matrices:
            _, rows, columns, pitch = matrix.given
            assert rows > 0 and columns > 0 and pitch >= rows, "a leading dimension is less than a column"
        (m, k), (other, n) = (
            matrix.given[1:3][:: -1 if form.attributes[at] == Operation.T else 1]
            for matrix, at in zip(matrices, (3, 4))
        )
        assert k == other and matrices[2].given[1:3] == matrices[3].given[1:3] == (m, n), "extents differ"
        (batch,) = {matrix.attributes[5] for matrix in matrices}
        dtypes = [matrix.given[0] for matrix in matrices]
        assert dtypes[0] == dtypes[1] and dtypes[2] == dtypes[3] and dtypes[2] in (0, dtypes[0])
        assert form.given[0] == ComputeType.COMPUTE_32F or dtypes[0] == 0, "TF32 is of float32"
        return form, matrices, (m, n, k, batch)

    def _matmul(self, *given: Any) -> int:
        with self.driver._lock:
            try:
                return self._queued(*(value or 0 for value in given))
            except BaseException as error:
                self.driver.broken.append(f"cublasLtMatmul: {type(error).__name__}: {error}")
                return 7

    def _queued(
        self, handle: int, desc: int, alpha: int, a: int, a_form: int, b: int, b_form: int, beta: int, c: int,
        c_form: int, d: int, d_form: int, algorithm: int, workspace: int, size: int, stream: int,
    ) -> int:  # fmt: skip
        driver = self.driver
        assert driver.is_bound and handle in self._handles
        assert driver._stream(stream).capture is None, "addresses by value in a graph"
        form, matrices, (m, n, k, batch) = self._described(desc, a_form, b_form, c_form, d_form)
        scalars = [ctypes.c_float.from_address(place).value for place in (alpha, beta)]
        assert scalars == [1, 0] and c == d
        alignments = self._alignments[ctypes.c_uint64.from_address(algorithm).value]
        assert size >= min(self.workspace, 1 << 25) and (not size or workspace % 256 == 0)
        if size:
            driver._require_memory(workspace, size)
        for address, matrix, alignment in zip((a, b, c, d), matrices, alignments):
            assert address % alignment == 0, "an operand is not aligned"
            driver._require_memory(address, _extent(matrix))
        if self.fails:
            return self.fails
        turned = form.attributes[3], form.attributes[4]
        pitches = tuple(matrix.given[3] for matrix in matrices[:2])
        self.calls.append((m, n, k, batch, turned, pitches, ComputeType(form.given[0]).name))

        def run() -> None:
            left, right = (
                (x.swapaxes(1, 2) if t == Operation.T else x).astype(np.float32)
                for x, t in zip((_view(a, matrices[0]), _view(b, matrices[1])), turned)
            )
            if form.given[0] == ComputeType.COMPUTE_32F_FAST_TF32:
                left, right = (_rounded(x) for x in (left, right))
            with np.errstate(all="ignore"):
                found = left.astype(np.float64) @ right.astype(np.float64)
                if size:
                    ctypes.memset(workspace, 0x5A, size)
                result = _view(d, matrices[3])
                result[...] = found.astype(result.dtype)

        driver._put(stream, run)
        return 0


def _extent(matrix: Made) -> int:
    """Bytes from the first element to the last one."""
    dtype, rows, columns, pitch = matrix.given
    last = (matrix.attributes[5] - 1) * matrix.attributes[6] + (columns - 1) * pitch + rows
    return last * TYPES[dtype].itemsize


def _view(address: int, matrix: Made) -> np.ndarray:
    """The matrices of a batch, whose columns lie side by side."""
    number, rows, columns, pitch = matrix.given
    dtype = TYPES[number]
    memory = (ctypes.c_char * _extent(matrix)).from_address(address)
    strides = [dtype.itemsize * step for step in (matrix.attributes[6], 1, pitch)]
    return np.ndarray((matrix.attributes[5], rows, columns), dtype, memory, 0, strides)


def _rounded(x: np.ndarray) -> np.ndarray:
    """To TF32."""
    words = np.ascontiguousarray(x).view(np.uint32)
    return np.where(np.isfinite(x), ((words + 0x1000) & 0xFFFFE000).view(np.float32), x)
