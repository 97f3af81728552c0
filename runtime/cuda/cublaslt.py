"""Matrix products by cuBLASLt, through nvmath-python: what it is asked once for each kind of extents, and the words
with which native code then calls it (see ``command_words``).

Matrices of the library have columns side by side, so a product is asked for as that of its transposes.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.program import LibraryCall, Matrix, value_at
from hybridflow.errors import DeviceError
from hybridflow.runtime import uninterruptible

ALIGNMENT = 16  # of all operands
WORKSPACE, WORKSPACE_ALIGNMENT = 1 << 25, 256  # bytes that a product may take besides them, as NVIDIA advises
NOT_SUPPORTED = 15  # the status of a library that has nothing for a product

MatrixPlace = tuple[int, int]  # a base, and bytes behind it


@functools.cache
def is_installed() -> bool:
    """Whether there is nvmath-python.  Importing it takes long, so that is not tried."""
    return importlib.util.find_spec("nvmath") is not None


class Bindings(NamedTuple):
    """``lt`` and ``cublas`` are modules of nvmath, ``types`` its dtypes; ``matmul`` is the address of a function."""

    lt: object
    cublas: object
    types: Any
    matmul: int


@uninterruptible.once
def load() -> Bindings:
    """The library.  Raises DeviceError where it cannot be loaded."""
    try:
        from cuda import pathfinder
        from nvmath import CudaDataType
        from nvmath.bindings import cublas, cublasLt

        cublasLt.get_version()  # which loads it
        library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path)
        return Bindings(cublasLt, cublas, CudaDataType, ctypes.cast(library.cublasLtMatmul, ctypes.c_void_p).value or 0)
    except Exception as error:  # each of the packages has kinds of its own
        raise DeviceError(
            "cuda",
            f"nvmath-python is installed, but cuBLASLt cannot be loaded ({error}). Install what belongs to it: "
            "pip install 'hybridflow[gpu-libraries]'; without nvmath-python products do without.",
        ) from None


def failure(status: int) -> DeviceError:
    """The error of a product that the library did not queue."""
    return DeviceError(
        "cuda", f"cuBLASLt did not compute a product (error {status}). Check nvidia-smi and that it fits the driver."
    )


class Algorithm(NamedTuple):
    """How the library computes a product: with ``workspace`` bytes of its own, by what was ``made`` for that."""

    words: tuple[int, ...]
    workspace: int
    descriptors: tuple[int, ...]
    heuristic: object  # which the words point to

    def words_for(
        self, left: MatrixPlace, right: MatrixPlace, result: MatrixPlace, workspace: MatrixPlace
    ) -> np.ndarray:
        """The words that native code reads, for operands at these places."""
        return np.array([*self.words, *right, *left, *result, *workspace], np.int64)


class CublasLt:
    """The library on the GPU that is current when this is made."""

    def __init__(self) -> None:
        self._lt, self._cublas, self._types, self._matmul = load()
        self._handle = self._lt.create()
        self._scalars = np.array([1, 0], np.float32)

    def algorithm(self, call: LibraryCall, dims: Mapping[str, int]) -> Algorithm | None:
        """How to compute a product; None where that does not pay, or the library has nothing for it."""
        lt = self._lt
        batch, m, n, k = (value_at(extent, dims) for extent in (call.batch, call.m, call.n, call.k))
        if batch * m * n * k < call.least:
            return None

        def layout(dtype: str, matrix: Matrix, rows: int, columns: int) -> int:
            """That of the transposed matrix."""
            across, lines = (rows, columns) if matrix.transposed else (columns, rows)
            pitch = max(value_at(matrix.pitch, dims), across)  # a single line has none
            result = lt.matrix_layout_create(self._type(dtype), across, lines, pitch)
            attributes = lt.MatrixLayoutAttribute
            self._set("matrix_layout", result, attributes.BATCH_COUNT, batch)
            self._set("matrix_layout", result, attributes.STRIDED_BATCH_OFFSET, value_at(matrix.stride, dims))
            return result

        kinds = self._cublas.ComputeType
        form = lt.matmul_desc_create(
            kinds.COMPUTE_32F_FAST_TF32 if call.rounds else kinds.COMPUTE_32F, self._type("f32")
        )
        turned = self._cublas.Operation
        for name, matrix in (("TRANSA", call.right), ("TRANSB", call.left)):
            attribute = getattr(lt.MatmulDescAttribute, name)
            self._set("matmul_desc", form, attribute, turned.T if matrix.transposed else turned.N)
        right = layout(call.factors, call.right, k, n)
        left = layout(call.factors, call.left, m, k)
        result = layout(call.sums, call.result, m, n)
        heuristic = None
        try:
            heuristic = self._heuristic(form, right, left, result)
        finally:
            if heuristic is None:
                self._destroy(form, right, left, result)
        if heuristic is None:
            return None
        size = int(heuristic.workspace_size)
        one, zero = (self._scalars.ctypes.data + 4 * k for k in range(2))
        words = self._matmul, self._handle, form, one, zero, right, left, result, int(heuristic.ptr), size
        return Algorithm(words, size, (form, right, left, result), heuristic)

    def release(self, algorithm: Algorithm) -> None:
        """Let go of an algorithm, which nobody calls any more."""
        self._destroy(*algorithm.descriptors)

    def _destroy(self, form: int, *layouts: int) -> None:
        for layout in layouts:
            self._lt.matrix_layout_destroy(layout)
        self._lt.matmul_desc_destroy(form)

    def _heuristic(self, form: int, right: int, left: int, result: int) -> Any:
        """The algorithm that the library takes for the best."""
        lt = self._lt
        preference, attributes = lt.matmul_preference_create(), lt.MatmulPreferenceAttribute
        heuristic, count = lt.MatmulHeuristicResult(), np.zeros(1, np.int32)
        try:
            self._set("matmul_preference", preference, attributes.MAX_WORKSPACE_BYTES, WORKSPACE)
            # Sums of parts of the depth are not rounded before they are added up.
            exact = lt.ReductionScheme.COMPUTE_TYPE
            self._set("matmul_preference", preference, attributes.REDUCTION_SCHEME_MASK, exact)
            for operand in "ABCD":
                attribute = getattr(attributes, f"MIN_ALIGNMENT_{operand}_BYTES")
                self._set("matmul_preference", preference, attribute, ALIGNMENT)
            description = form, right, left, result, result, preference
            lt.matmul_algo_get_heuristic(self._handle, *description, 1, heuristic.ptr, count.ctypes.data)
        except lt.cuBLASLtError as error:
            if error.status != NOT_SUPPORTED:
                raise failure(error.status) from None
            return None
        finally:
            lt.matmul_preference_destroy(preference)
        return heuristic if count[0] and not heuristic.state else None

    def _type(self, dtype: str) -> int:
        names = {"f32": "CUDA_R_32F", "f16": "CUDA_R_16F", "bf16": "CUDA_R_16BF"}
        return int(getattr(self._types, names[dtype]))

    def _set(self, kind: str, handle: int, attribute: int, value: int) -> None:
        dtype = getattr(self._lt, f"get_{kind}_attribute_dtype")(attribute)
        word = np.array([value], dtype)
        getattr(self._lt, f"{kind}_set_attribute")(handle, attribute, word.ctypes.data, word.nbytes)
