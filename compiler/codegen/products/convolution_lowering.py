"""Convolutions as nodes: what their kernels are given, and what fusion is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hybridflow.compiler.codegen.core.elements import MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.operand import Operand
from hybridflow.compiler.codegen.core.phases import EmittedKernel
from hybridflow.compiler.codegen.products.convolution import ConvolutionKernel, emit_convolution
from hybridflow.compiler.codegen.products.convolution_filter_gradient import emit_filter_gradient
from hybridflow.compiler.codegen.products.padded_input_tiles import Finish, WindowGeometry
from hybridflow.compiler.index.iteration_space import Space, over
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.loops.schedule_choice import Choose, take_first
from hybridflow.compiler.ops.lowering import Convolution

__all__ = ["Finish", "emit", "result_space", "summed_extents", "times_read"]


def sliding(node: Node) -> Convolution:
    result = node.op.lower(tuple(n.type for n in node.inputs), node.attrs)
    assert isinstance(result, Convolution), node.op
    return result


def windows_of(node: Node) -> WindowGeometry:
    """The windows, along three axes: those in front that an image lacks have one element."""
    how, x, other = sliding(node), node.inputs[0], node.inputs[1]
    axes = len(how.size)
    lacking = 3 - axes

    def three(values: tuple[Any, ...], usual: int) -> Any:
        return (*(usual,) * lacking, *values)

    places = other.shape[1 : axes + 1] if how.over_places else node.shape[1 : axes + 1]
    channels: Any = (*x.shape[-2:], other.shape[-1])
    return WindowGeometry(
        x.shape[0],
        three(x.shape[1 : axes + 1], 1),
        three(places, 1),
        three(how.size, 1),
        three(how.step, 1),
        three(how.low, 0),
        three(how.interior, 0),
        three(how.dilation, 1),
        *channels,
    )


def summed_extents(node: Node) -> Shape:
    how = sliding(node)
    if how.over_places:
        return node.inputs[1].shape[:-2]
    return (*how.size, node.inputs[0].shape[-1])


def result_space(node: Node) -> Space:
    """The loops of a result: those of its lines, and one over the columns of all groups."""
    if sliding(node).over_places:
        return over((product(node.shape[:-2]), product(node.shape[-2:])))
    lacking = (1,) * (6 - len(node.shape))
    return over((node.shape[0], *lacking, *node.shape[1:-2], product(node.shape[-2:])))


def times_read(node: Node) -> tuple[int | None, int | None]:
    """How often the kernel comes to each element of its inputs; strips overlap."""
    how = sliding(node)
    if 0 in node.shape or 0 in node.inputs[0].shape or 0 in node.inputs[1].shape:
        return None, None
    lows = (*how.low, *node.attrs["high"])
    all_seen = {*how.step, *how.dilation} == {1} and all(isinstance(n, int) and n >= 0 for n in lows)
    return (2 if all_seen else None), 1


def emit(
    module: LLVMModule,
    new_code: Callable[[], KernelBuilder],
    symbol: str,
    node: Node,
    places: Mapping[Node, MemoryPlace],
    finish: Callable[[KernelBuilder], Finish],
    buffers: int,
    thread_groups: bool,
    goes_by: Callable[[int], bool],
    choose: Choose = take_first,
) -> tuple[EmittedKernel, str]:
    """Add the kernel of a convolution, or of its derivative by the filter; also says how.  On a GPU units may be those
    of ``thread_groups`` of threads, and ``goes_by`` says how many neighbouring columns may be finished at once.  On a
    CPU ``choose`` takes one of the schedules."""
    w, x, other = windows_of(node), node.inputs[0], node.inputs[1]
    axes = len(x.shape) - 3
    before: tuple[tuple[int, ...], ...] = ((0,), *((),) * (3 - axes), *((a,) for a in range(1, axes)))
    group, channel = axes + 1, axes + 2

    def image(code: KernelBuilder, across: bool, whole: bool) -> Operand:
        if whole:
            return Operand(code, x, (*before, (axes, group, channel)), places)
        if not across:
            return Operand(code, x, (*before, (axes,), (group, channel)), places)
        return Operand(code, x, (*before, (axes,), (group,), (channel,)), places)

    over_places = sliding(node).over_places

    def second(code: KernelBuilder, across: bool) -> Operand:
        """The other factor by batch, columns and depth: f[*k, c, g, o], or g[n, *p, g, o]."""
        depth = tuple(range(axes + 1))
        parts = ((), (axes + 1, axes + 2), depth) if across else ((axes + 1,), (axes + 2,), depth)
        return Operand(code, other, parts, places)

    write = emit_filter_gradient if over_places else emit_convolution
    return write(
        ConvolutionKernel(
            module, new_code, symbol, w, image, second, finish, buffers, node.dtype, thread_groups, goes_by, choose
        )
    )
