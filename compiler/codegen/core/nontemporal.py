"""Results that are written past the caches: large ones, whose first elements would have left them before the last one
is written.

An ordinary store reads a line of memory before it writes it, and takes the place of what is still needed; a streaming
one does neither, which makes a copy of large arrays nearly twice as fast.  It needs an aligned address, which is looked
at with each vector: buffers of callers begin where they like, and rows end anywhere.  What is written over one of the
inputs is in the caches, and stays there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import is_static, static_size
from hybridflow.compiler.loops.kernel import Kernel
from hybridflow.compiler.loops.tuning import CACHE_LINE, LONG_NONTEMPORAL_ROW, MAX_NONTEMPORAL_STREAMS
from hybridflow.compiler.target import Target


def _nontemporal_results(target: Target, kernel: Kernel, roots: Sequence[Node], run: Extent) -> list[Node]:
    """Those of the roots, results of whole arrays, that would not stay in the caches."""
    ends = [*kernel.inputs, *kernel.roots]
    if target.kind != "cpu" or len(roots) > MAX_NONTEMPORAL_STREAMS or not all(is_static(node.shape) for node in ends):
        return []
    if sum(map(_nbytes, ends)) <= target.l3:
        return []
    return [node for node in roots if 4 * _nbytes(node) > target.l3 and _fills_cache_lines(run, node.dtype.itemsize)]


@contextmanager
def nontemporal_stores(
    code: KernelBuilder, kernel: Kernel, pointers: dict[Node, str], roots: Sequence[Node], run: Extent
) -> Iterator[None]:
    """Code that stores vectors of the roots, ``run`` elements side by side at a time, and does not read them again."""
    e = code.e
    for node in _nontemporal_results(e.target, kernel, roots, run):
        elsewhere: str | bool = True
        for other in kernel.inputs:
            if _nbytes(other) == _nbytes(node):
                elsewhere = code.both(elsewhere, code.pointers_differ(pointers[node], pointers[other]))
        e.nontemporal[pointers[node]] = elsewhere
    yield
    if e.nontemporal:
        e.nontemporal.clear()
        e.line("fence seq_cst")  # no other store keeps its place among streaming ones, such as that of: done


def _nbytes(node: Node) -> int:
    return static_size(node.shape) * node.dtype.itemsize


def _fills_cache_lines(run: Extent, itemsize: int) -> bool:
    """Whether runs are lines of the cache but for their ends: parts of lines cost as much as whole ones."""
    return isinstance(run, int) and (run * itemsize % CACHE_LINE == 0 or run * itemsize >= LONG_NONTEMPORAL_ROW)
