"""Compile one hand-written kernel and call it on arrays."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.structured import SpecialKernel, kernel_parameters
from hybridflow.compiler.program import Check
from hybridflow.compiler.target import Target
from hybridflow.runtime import machine_code

Emit = Callable[[ModuleText, Emitter], SpecialKernel]


def kernel_text(emit: Emit, target: Target, buffers: int, checks: list[Check] | None = None) -> tuple[str, Any]:
    """A module with the kernel ``k`` that ``emit`` adds, and an ``entry`` of the same parameters that can be called."""
    module, e = ModuleText(target), Emitter(target)
    noted = [] if checks is None else checks
    e.status = "%status"
    e.on_check = lambda check: (noted.append(check), len(noted))[1]
    kernel = emit(module, e)
    parameters = kernel_parameters(buffers)
    caller = Emitter(target)
    caller.line(f"call void @k({parameters})")
    caller.line("ret void")
    module.function(caller, "entry", parameters, linkage="ptx_kernel" if target.kind == "cuda" else "")
    return module.render(), kernel


class Kernel:
    """The kernel ``k`` that ``emit`` adds to a module, over ``buffers`` buffers, for symbolic extents ``dims``."""

    def __init__(self, emit: Emit, target: Target, buffers: int, dims: Sequence[str] = ()) -> None:
        self.checks: list[Check] = []
        self.text, self.info = kernel_text(emit, target, buffers, self.checks)
        self.image = machine_code.compile_object(self.text, target)
        self._code = machine_code.load_object(self.image, "entry")
        self.dims = tuple(dims)
        pointers = [ctypes.c_void_p] * (buffers + 3)
        self.entry = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64, ctypes.c_int64)(self._code.addresses["entry"])

    def units(self, **extents: int) -> int:
        return int(np.prod([x if isinstance(x, int) else extents[str(x)] for x in self.info.units], dtype=np.int64))

    def __call__(
        self, *arrays: np.ndarray, cuts: Sequence[int] = (), status: bool = False, **extents: int
    ) -> Check | None:
        """Run over all units, in one call or cut at ``cuts``; the check that failed, if any."""
        dims = np.array([extents[name] for name in self.dims], np.int64)
        bytes_needed = self.info.scratch.at(extents)
        scratch = np.full(bytes_needed + 128, 0xFF, np.uint8)  # floats read before they are written are NaN
        start = -scratch.ctypes.data % 64
        code = np.zeros(1, np.int32)
        pointers = [a.ctypes.data for a in arrays]
        pointers += [scratch.ctypes.data + start, dims.ctypes.data, code.ctypes.data]
        total = self.units(**extents)
        bounds = [0, *cuts, total]
        for begin, end in itertools.pairwise(bounds):
            self.entry(*pointers, begin, end)
        assert (scratch[:start] == 0xFF).all() and (scratch[start + bytes_needed :] == 0xFF).all(), "scratch overrun"
        return self.checks[-int(code[0]) - 1] if code[0] else None
