"""The registry of lowerings: for each building block of ``ops/lowering.py`` the function that emits its kernel.

``EMITTERS`` has the blocks whose kernel is emitted alone: prefix scans, sorts, Fourier transforms, scatters.  A new
block of that kind is one function and one line here.  Blocks that run graphs have their tables where the graphs run:
``control/control_flow.py`` and ``nests/row_block_loop.py``.  Products and convolutions take what follows them into
their kernels, and are emitted by ``module_builder.py``; so are loops of elements, whose nests are in its ``NESTS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridflow.compiler.codegen.core.elements import MemoryPlace
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.operand import LinearOperand
from hybridflow.compiler.codegen.core.phases import EmittedKernel
from hybridflow.compiler.codegen.gpu import group_scatter, group_sort
from hybridflow.compiler.codegen.ordering import argsort, histogram, prefix_scan, scatter_add, top_k, vector_sort
from hybridflow.compiler.codegen.ordering.ordering_schedule import (
    ScatterSchedule,
    ScatterWay,
    SortWay,
    sort_schedule,
)
from hybridflow.compiler.codegen.transforms.fft import FourierOperands, emit_fourier
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.kernel import Kernel
from hybridflow.compiler.ops.lowering import FourierTransform, PrefixScan, ScatterAdd, Sort
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """A kernel to emit: the function ``symbol`` for ``node``, with the emitter ``e``.

    ``dims`` are the names of symbolic extents, and ``buffers`` counts the parameters.  ``is_outermost`` says that a
    whole launch of a GPU may run it, and not one thread.
    """

    module: LLVMModule
    e: Emitter
    symbol: str
    node: Node
    inputs: list[LinearOperand]
    dims: list[str]
    buffers: int
    is_outermost: bool

    @property
    def uses_thread_groups(self) -> bool:
        """Whether blocks of threads of a GPU work together."""
        return self.module.target.kind == "cuda" and self.is_outermost


def emit_prefix_scan(request: Request, block: PrefixScan) -> EmittedKernel:
    x, op = request.node.inputs[0], request.node.op
    return prefix_scan.emit_scan(
        request.module, request.e, request.symbol, op, x.dtype, x.shape, block, request.dims, request.inputs,
        request.buffers, request.is_outermost,
    )  # fmt: skip


def emit_sort(request: Request, block: Sort) -> EmittedKernel:
    """A sort by blocks of a GPU's threads, of values by vectors, of the first few positions, or of all positions."""
    x = request.node.inputs[0]
    how = sort_schedule(request.module.target, block, x.dtype, x.shape, request.uses_thread_groups)
    operand = argsort.SortOperand(block, request.inputs[0], request.dims, request.buffers)
    code = SORTS[how.way](request.module, request.e, request.symbol, operand)
    return replace(code, schedule=code.schedule or str(how))


SORTS: dict[SortWay, Callable[[LLVMModule, Emitter, str, argsort.SortOperand], EmittedKernel]] = {
    SortWay.GROUPS: group_sort.emit_group_sort,
    SortWay.VECTORS: vector_sort.emit_vector_sort,
    SortWay.FIRST: top_k.emit_top_k,
    SortWay.RADIX: argsort.emit_argsort,
}


def emit_fourier_transform(request: Request, block: FourierTransform) -> EmittedKernel:
    x = request.node.inputs[0]
    numbers, table = (str(operand.in_memory) for operand in request.inputs)
    operands = FourierOperands(block, x.shape, x.dtype, numbers, table, request.dims, request.buffers)
    return emit_fourier(request.module, request.e, request.symbol, operands)


def emit_scatter(request: Request, block: ScatterAdd) -> EmittedKernel:
    """A scatter by blocks of a GPU's threads, through a histogram of its own for each thread, or in order."""
    if block.check is not None:
        block = replace(block, check=replace(block.check, where=request.node.where))
    x, indices, updates = request.inputs
    emit = group_scatter.emit_group_scatter if request.uses_thread_groups else scatter_add.emit_scatter_add
    if histogram.uses_histogram(request.module.target, request.node):
        emit = histogram.emit_histogram
    operands = scatter_add.ScatterOperands(block, x, indices, updates, request.dims, request.buffers)
    code = emit(request.module, request.e, request.symbol, operands)
    return replace(code, schedule=code.schedule or str(ScatterSchedule(ScatterWay.GROUPS, 1)))


EMITTERS: dict[type, Callable[[Request, Any], EmittedKernel]] = {
    PrefixScan: emit_prefix_scan,
    Sort: emit_sort,
    FourierTransform: emit_fourier_transform,
    ScatterAdd: emit_scatter,
}


def emit_block(
    module: LLVMModule, e: Emitter, symbol: str, kernel: Kernel, dims: list[str], buffers: int, is_outermost: bool
) -> EmittedKernel:
    """Emit the kernel of a node by the building block that its op's ``lower`` returns."""
    node = kernel.cluster.anchor
    assert node.op.lower is not None
    block = node.op.lower(tuple(n.type for n in node.inputs), node.attrs)
    places = {i: MemoryPlace(f"%a{k}") for k, i in enumerate(kernel.inputs)}
    inputs = [LinearOperand(n, places) for n in node.inputs]
    return EMITTERS[type(block)](Request(module, e, symbol, node, inputs, dims, buffers, is_outermost), block)
