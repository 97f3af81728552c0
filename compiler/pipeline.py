"""From a graph to a Program: passes, fusion, buffers, machine-independent text of LLVM."""

from __future__ import annotations

from hybridflow.compiler.codegen.cost import instructions
from hybridflow.compiler.codegen.module_builder import ModuleBuilder
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.loops.buffers import Plan, plan
from hybridflow.compiler.loops.cluster import Fusion, fuse
from hybridflow.compiler.program import Program
from hybridflow.compiler.target import Target


def optimize(graph: Graph) -> Graph:
    return graph


def compile_graph(graph: Graph, target: Target, fastmath: bool = False) -> Program:
    """Compile a graph for a target.  ``fastmath`` lets floats be reassociated and contracted."""
    graph = optimize(graph)
    fusion = fuse(graph, target, instructions)
    return ModuleBuilder(graph, fusion, plan(graph, fusion), target, fastmath).build()


__all__ = ["Fusion", "Plan", "compile_graph", "optimize"]
