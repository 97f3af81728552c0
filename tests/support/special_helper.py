"""Compile one hand-written kernel and call it on arrays."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.codegen.core.elements import MemoryPlace
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.operand import LinearOperand, Operand
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.ordering import (
    argsort,
    ordering_schedule,
    prefix_scan,
    scatter_add,
    top_k,
    vector_sort,
)
from hybridflow.compiler.codegen.ordering.argsort import SortOperand
from hybridflow.compiler.codegen.products.matmul import (
    Epilogue,
    MatmulOperands,
    MatmulShape,
    emit_matmul as matmul_emit_matmul,
)
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.graph import parameter
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import OpDef
from hybridflow.compiler.ops.lowering import ScatterAdd, Sort
from hybridflow.compiler.program import Check, value_at
from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import machine_code

Emit = Callable[[LLVMModule, Emitter], EmittedKernel]


def kernel_text(
    emit: Emit, target: Target, buffers: int, checks: list[Check] | None = None, in_place: bool = False
) -> tuple[str, EmittedKernel]:
    """A module with the kernel ``k`` that ``emit`` adds, and functions ``entry0``, ``entry1``, ... of the same
    parameters, one for each of its phases, that can be called; those of a single thread if ``in_place``."""
    module, e = LLVMModule(target), Emitter(target)
    noted = [] if checks is None else checks
    e.status = "%status"
    e.on_check = lambda check: (noted.append(check), len(noted))[1]
    kernel = emit(module, e)
    kernel = kernel.single_threaded() if in_place else kernel
    parameters = kernel_parameters(buffers)

    def write_callers() -> None:
        for k, phase in enumerate(kernel.phases):
            caller = Emitter(target)
            caller.line(f"; phase {k}")  # or equal functions would become one
            caller.line(f"call void @{phase.symbol}({parameters})")
            caller.line("ret void")
            module.function(caller, f"entry{k}", parameters, linkage="ptx_kernel" if target.kind == "cuda" else "")

    return module.render() + module.addition(write_callers), kernel


def emit_matmul(
    module: LLVMModule,
    e: Emitter,
    symbol: str,
    dtype: Any,
    batch: Sequence[int | str],
    *sizes: int | str,
    sum_dtype: Any = None,
    lanes: bool = False,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dims: Sequence[str] = (),
    buffers: int = 3,
    epilogue: Epilogue | None = None,
    at_home: bool = False,
    symmetric: bool = False,
) -> EmittedKernel:
    """Add the kernel of a product of two matrices of ``sizes`` m, n, k that lie in memory: %a0 = x[batch, m, k],
    %a1 = y[batch, k, n] (each perhaps with its last two axes swapped), and without ``epilogue`` %a2 = out, where totals
    may grow if they are ``at_home`` there."""
    leading, (m, n, k) = (tuple(Dim(s) if isinstance(s, str) else s for s in group) for group in (batch, sizes))
    result = np.dtype(sum_dtype or dtype)
    shape = MatmulShape(leading, m, n, k)

    def source() -> MatmulOperands:
        code = KernelBuilder(e.sibling(), dims)

        def operand(pointer: str, rows: Any, columns: Any, free: int, summed: int) -> Operand:
            node = parameter(TensorType((*leading, rows, columns), np.dtype(dtype)), pointer)
            axes = len(leading)
            parts = (tuple(range(axes)), (axes + free,), (axes + summed,))
            return Operand(code, node, parts, {node: MemoryPlace(pointer)})

        left = operand("%a0", k, m, 1, 0) if transpose_a else operand("%a0", m, k, 0, 1)
        right = operand("%a1", n, k, 0, 1) if transpose_b else operand("%a1", k, n, 1, 0)

        def store(e: Emitter, value: Any, entry: str, row: str, col: str, mask: Any) -> None:
            line = code.add(code.mul(entry, code.extent(m)), row)
            position = code.add(code.mul(line, code.extent(n)), col)
            e.store(value, code.at("%a2", position, value.dtype.itemsize), mask)

        return MatmulOperands(code, left, right, epilogue or store, "%a2" if at_home else None)

    return matmul_emit_matmul(module, source, symbol, shape, buffers, result, lanes, symmetric=symmetric)[0]


def _flat(dtype: Any, shape: Any, pointer: str) -> LinearOperand:
    node = parameter(TensorType(tuple(shape), np.dtype(dtype)), pointer)
    return LinearOperand(node, {node: MemoryPlace(pointer)})


def emit_scan(
    module: LLVMModule, e: Emitter, symbol: str, op: OpDef, dtype: Any, shape: Any, axis: int, dims: Sequence[str] = ()
) -> EmittedKernel:
    """Add the kernel of a scan of arrays in memory: the inputs, then the output."""
    inputs = [_flat(dtype, shape, f"%a{k}") for k in range(op.arity or 0)]
    running = op.lower((), {"axis": axis})
    return prefix_scan.emit_scan(
        module, e, symbol, op, dtype, shape, running, dims, inputs, len(inputs) + 1, thread_groups=False
    )


def emit_argsort(
    module: LLVMModule,
    e: Emitter,
    symbol: str,
    dtype: Any,
    shape: Any,
    axis: int,
    descending: bool = False,
    dims: Sequence[str] = (),
) -> EmittedKernel:
    """Add the kernel that sorts %a0 = x in memory: %a1 = positions."""
    x = _flat(dtype, shape, "%a0")
    return argsort.emit_argsort(module, e, symbol, SortOperand(Sort(axis, descending), x, dims, 2))


def emit_sort(
    module: LLVMModule,
    e: Emitter,
    symbol: str,
    dtype: Any,
    shape: Any,
    axis: int,
    descending: bool = False,
    dims: Sequence[str] = (),
) -> EmittedKernel:
    """Add the kernel that sorts %a0 = x in memory: %a1 = its elements, by vectors where the target has any."""
    x, ranking = _flat(dtype, shape, "%a0"), Sort(axis, descending, values=True)
    emit = (
        vector_sort.emit_vector_sort
        if ordering_schedule.sorts_vectors(e.target, x.node.dtype)
        else argsort.emit_argsort
    )
    return emit(module, e, symbol, SortOperand(ranking, x, dims, 2))


def emit_top(
    module: LLVMModule, e: Emitter, symbol: str, dtype: Any, shape: Any, count: int, descending: bool, dims: Any = ()
) -> EmittedKernel:
    """Add the kernel that finds the first elements of %a0 = x in memory along its last axis: %a1 = positions."""
    ranking = Sort(len(shape) - 1, descending, count=count)
    return top_k.emit_top_k(module, e, symbol, SortOperand(ranking, _flat(dtype, shape, "%a0"), dims, 2))


def emit_scatter_add(
    module: LLVMModule,
    e: Emitter,
    symbol: str,
    adding: ScatterAdd,
    dtype: Any,
    index_dtype: Any,
    shape: Any,
    extents: Any,
    dims: Sequence[str] = (),
) -> EmittedKernel:
    """Add the kernel of a scatter of arrays in memory: %a0 = x of ``shape``, %a1 = indices of the shape ``extents``,
    %a2 = updates, %a3 = out."""
    axis = adding.axis
    updated = extents if adding.paired else (*shape[:axis], *extents, *shape[axis + 1 :])
    x, updates = _flat(dtype, shape, "%a0"), _flat(dtype, updated, "%a2")
    indices = _flat(index_dtype, extents, "%a1")
    return scatter_add.emit_scatter_add(
        module, e, symbol, scatter_add.ScatterOperands(adding, x, indices, updates, dims, 4)
    )


class Kernel:
    """The kernel ``k`` that ``emit`` adds to a module, over ``buffers`` buffers, for symbolic extents ``dims``."""

    def __init__(
        self, emit: Emit, target: Target, buffers: int, dims: Sequence[str] = (), in_place: bool = False
    ) -> None:
        self.checks: list[Check] = []
        self.text, self.info = kernel_text(emit, target, buffers, self.checks, in_place)
        self.image = machine_code.compile_object(self.text, target)
        symbols = [f"entry{k}" for k in range(len(self.info.phases))]
        self._code = machine_code.load_object(self.image, *symbols)
        self.dims = tuple(dims)
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (buffers + 4), ctypes.c_int64, ctypes.c_int64)
        self.entries = [function(self._code.addresses[symbol]) for symbol in symbols]

    def units(self, **extents: int) -> int:
        """Units of the first phase."""
        return _units(self.info.phases[0], extents)

    def __call__(
        self, *arrays: np.ndarray, cuts: Sequence[int] = (), status: bool = False, **extents: int
    ) -> Check | None:
        """Run over all units, in one call per phase or cut at ``cuts``; the check that failed, if any."""
        dims = np.array([extents[name] for name in self.dims], np.int64)
        scratch, shared = (_Guarded(value_at(size, extents)) for size in (self.info.scratch, self.info.shared))
        code = np.zeros(1, np.int32)
        pointers = [a.ctypes.data for a in arrays]
        pointers += [shared.address, scratch.address, dims.ctypes.data, code.ctypes.data]
        for entry, phase in zip(self.entries, self.info.phases):
            total = _units(phase, extents)
            bounds = [0, *(c for c in cuts if c < total), total]
            for begin, end in itertools.pairwise(bounds):
                entry(*pointers, begin, end)
        assert scratch.intact() and shared.intact(), "scratch or shared memory overrun"
        return self.checks[-int(code[0]) - 1] if code[0] else None


def _units(phase: Phase, extents: dict[str, int]) -> int:
    return int(np.prod([value_at(x, extents) for x in phase.units], dtype=np.int64))


class _Guarded:
    """Aligned memory between bytes that show when somebody writes beyond it.  Floats read before they are written are
    NaN."""

    def __init__(self, size: int) -> None:
        self._memory = np.full(size + 128, 0xFF, np.uint8)
        self._start, self._size = -self._memory.ctypes.data % 64, size
        self.address = self._memory.ctypes.data + self._start

    def intact(self) -> bool:
        outside = self._memory[: self._start], self._memory[self._start + self._size :]
        return all((part == 0xFF).all() for part in outside)
