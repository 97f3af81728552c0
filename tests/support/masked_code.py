"""Code for vectors of 512 bits with masks, run on any machine: LLVM splits what its registers do not hold.

The code is that for a machine with scalable vectors, which has no instructions of AVX-512 by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybridflow.compiler import target
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target

WIDE = target.AARCH64.with_(vector_bits=512, masked=True)


def run_masked(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the program of a graph returns."""
    program, here = compile_graph(graph, WIDE), host_target.target()
    text = program.text.replace(WIDE.triple, here.triple)
    return cpu.load(replace(program, text=text, target=here)).run(arrays)
