"""From a graph to something that runs: the one place that says what executes traced programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.graph import Graph
from hybridflow.core import devices
from hybridflow.eager import host_ops, nan_checks
from hybridflow.eager.program_cache import program_for
from hybridflow.runtime import uninterruptible

if TYPE_CHECKING:
    from hybridflow.runtime.cpu import Executable
    from hybridflow.runtime.cuda.executable import CudaExecutable


Functions = Sequence[Callable[..., Any]]


def executable_for(
    graph: Graph, fastmath: bool = False, device: str = devices.CPU, functions: Functions = (), checked: bool = False
) -> Executable | CudaExecutable:
    """Make ``graph`` runnable on a device.  ``run`` takes one array per graph input, all on that device, and returns
    fresh outputs; arrays of updated STATE inputs are written in place.  ``functions`` are those that it calls by
    number.  With ``checked`` all that it computes is, see ``numerics``."""
    if checked:
        graph, functions = nan_checks.checked(graph, functions)
    # LLVM and CuPy are loaded when something is compiled, not at import.
    if device == devices.CPU:
        return _on_cpu(graph, fastmath, functions)
    from hybridflow.runtime.cuda import executable as cuda, gpu_memory

    number = devices.number(device)
    target = gpu_memory.target(number)
    return cuda.load(uninterruptible.run_uninterruptible(lambda: program_for(graph, target, fastmath)), number)


def timed_executable_for(
    graph: Graph, arrays: Sequence[np.ndarray], fastmath: bool = False, functions: Functions = ()
) -> Executable:
    """The same for the CPU and for a ``runtime.timing.TimingHost``, which has to be given to each run.  Its kernels are
    cut for threads where those of a call with ``arrays`` are."""
    shared = _on_cpu(graph, fastmath, functions, timed=True, shared=True)
    return shared if shared.timing_team(arrays) else _on_cpu(graph, fastmath, functions, timed=True)


def _on_cpu(
    graph: Graph, fastmath: bool, functions: Functions, timed: bool = False, shared: bool = False
) -> Executable:
    def load() -> Executable:
        from hybridflow.runtime import cpu
        from hybridflow.runtime.machine import host_target

        return cpu.load(program_for(graph, host_target.target(), fastmath, timed, shared), functions, host_ops.named)

    return uninterruptible.run_uninterruptible(load)


@uninterruptible.loaded
def _import_compiler() -> None:
    from hybridflow.compiler import pipeline  # noqa: F401
