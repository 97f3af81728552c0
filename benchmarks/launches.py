"""How long the host takes to launch a program on a GPU, without the driver's own time: no GPU is needed.

    python benchmarks/launches.py [--kernels N]

A program of N kernels (20), one after another, on a driver whose functions do nothing, and arrays that only say where
they lie.  ``walk`` is what native code takes to hand one call to the driver; ``run`` what Python does around it (checks
of the arrays, memory of the results); ``call`` the call of the compiled function as its user writes it.  Microseconds
of this thread's time on a core, the least of seven samples.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
import types
from collections.abc import Callable
from typing import Any, ClassVar

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf
from hybridflow.core.tensor import wrap
from hybridflow.eager.executable import executable_for
from hybridflow.runtime.cuda import device, driver, gpu_memory
from hybridflow.runtime.machine import host_target, machine_code

EXTENT = 40


class Array:
    """What the product asks of an array of CuPy's, which is no more than memory of the host here."""

    def __init__(self, shape: Any, dtype: Any) -> None:
        self._memory = np.zeros(shape, dtype)
        self.shape, self.dtype, self.ndim = self._memory.shape, self._memory.dtype, self._memory.ndim
        self.nbytes, self.size = self._memory.nbytes, self._memory.size
        self.data = types.SimpleNamespace(ptr=self._memory.ctypes.data)
        self.flags = types.SimpleNamespace(c_contiguous=True)
        self.device = types.SimpleNamespace(id=0)


class Device:
    """A device that is always the current one."""

    compute_capability = "90"
    attributes: ClassVar = {"MaxSharedMemoryPerBlockOptin": 227 << 10}

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def idle_cupy() -> Any:
    """The module, as far as programs need it; memory is that of one call, over and over."""
    memory: dict[Any, Array] = {}

    def empty(shape: Any, dtype: Any) -> Array:
        key = shape, dtype
        return memory.get(key) or memory.setdefault(key, Array(shape, dtype))

    stream = types.SimpleNamespace(ptr=0)
    here = Device()
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1, getDevice=lambda: 0, memGetInfo=lambda: (0, 0))
    cuda = types.SimpleNamespace(
        runtime=runtime,
        Device=lambda number: here,
        get_current_stream=lambda: stream,
        alloc_pinned_memory=lambda size: types.SimpleNamespace(ptr=np.empty(size, np.uint8).ctypes.data),
    )
    return types.SimpleNamespace(empty=empty, cuda=cuda)


def idle_driver() -> driver.Driver:
    """A driver whose functions succeed at once."""
    names = list(driver.SIGNATURES)
    text = "\n".join(f"define i32 @{name}() {{\n ret i32 0\n}}" for name in names)
    code = machine_code.load_object(machine_code.compile_object(text, host_target.detect()), *names)
    functions = {
        name: ctypes.CFUNCTYPE(ctypes.c_int, *types_)(code.addresses[name])
        for name, types_ in driver.SIGNATURES.items()
    }

    def version(out: int) -> int:
        ctypes.c_int.from_address(out).value = 13000
        return 0

    functions["cuDriverGetVersion"] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(version)
    idle = driver.Driver(types.SimpleNamespace(**functions))
    idle.code = code  # type: ignore[attr-defined]  # which lives as long as it
    return idle


def least(call: Callable[[], object], times: int = 2000) -> float:
    """Microseconds of one call."""
    samples = []
    for _ in range(7):
        start = time.thread_time()  # what others do on the machine meanwhile is no part of it
        for _ in range(times):
            call()
        samples.append((time.thread_time() - start) / times)
    return 1e6 * min(samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=20)
    count = parser.parse_args().kernels

    @hf.function
    def chain(x: Any) -> Any:
        for k in range(count):
            x = hf.cumulative_sum(x, axis=k % 2) * 0.5
        return x

    cupy = idle_cupy()
    idle = idle_driver()
    gpu_memory.cupy = lambda: cupy  # type: ignore[assignment]
    device.driver = lambda: idle  # type: ignore[attr-defined]
    array = Array((EXTENT, EXTENT), np.float32)
    x = wrap(array)
    chain(x)
    graph = chain.get_concrete_function(hf.TensorSpec([EXTENT, EXTENT], hf.float32)).graph
    executable = executable_for(graph, device="gpu:0")
    executable.compute([array])
    (plan,) = executable._known.values()  # type: ignore[union-attr]
    bases, streams = plan.bases(), (ctypes.c_int64 * 1)(0)
    print(f"{len(executable.program.launches)} launches, {'one graph' if plan.is_graph else 'no graph'}")
    for name, call in {
        "walk": lambda: plan.main(bases, streams),
        "run": lambda: executable.compute([array]),
        "call": lambda: chain(x),
    }.items():
        print(f"{name:>5} {least(call):8.2f} µs")


if __name__ == "__main__":
    main()
