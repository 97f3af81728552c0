"""From a graph to something that runs: the one place that says what executes traced programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybridflow.compiler.ir.graph import Graph

if TYPE_CHECKING:
    from hybridflow.runtime.cpu import Executable


def executable_for(graph: Graph, fastmath: bool = False) -> Executable:
    """Make ``graph`` runnable on this machine.  ``run`` takes one array per graph input and returns fresh outputs;
    arrays of updated STATE inputs are written in place."""
    # The code generator and LLVM are loaded when something is compiled, not at import.
    from hybridflow.compiler.pipeline import compile_graph
    from hybridflow.runtime import cpu, host

    return cpu.load(compile_graph(graph, host.target(), fastmath))
