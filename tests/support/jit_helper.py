"""Compile an emitter's expression and run it over arrays: the least that a test needs, apart from the runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np

from hybridflow.compiler import target as targets
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import host_target as machine_host_target, machine_code

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


def host_target() -> Target:
    """The named target that this machine can run at its widest."""
    here = machine_host_target.detect()
    if not here.triple.startswith("x86_64"):
        return targets.AARCH64
    if here.has("avx512vl") and here.has("avx512dq"):
        return targets.AVX512
    return targets.AVX2 if here.has("avx2") and here.fma else targets.SSE2


def runnable_targets() -> dict[str, Target]:
    """Every named CPU target whose code this machine runs."""
    order = [("sse2", targets.SSE2), ("avx2", targets.AVX2), ("avx512", targets.AVX512)]
    widest = host_target()
    if widest == targets.AARCH64:
        return {"aarch64": widest}
    return dict(order[: [t for _, t in order].index(widest) + 1])


def product_targets() -> dict[str, Target]:
    """Those and, where this machine has them, what has instructions for products of narrow numbers besides."""
    found, here = runnable_targets(), machine_host_target.detect()
    for name, extra in (("avx2", "avxvnni"), ("avx512", "avx512vnni")):
        if name in found and here.has(extra):
            found[f"{name}+{extra}"] = found[name].with_(features=f"+{extra}")
    if machine_host_target.detect().has("amx-int8") and machine_host_target.detect().has(
        "amx-bf16"
    ):  # which takes the system's permission
        found["avx512+amx"] = targets.AVX512.with_(features="+amx-int8,+amx-bf16,+amx-tile")
    return found


def machine(target: Target, opt: int = 2) -> llvm.TargetMachine:
    triple = target.triple
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt, reloc="pic", codemodel="default"
    )


def loop_text(
    build: Callable[..., Val], inputs: list[np.dtype], target: Target, width: int, fastmath: bool = False
) -> tuple[str, np.dtype]:
    """A module whose ``kernel(n, out, in...)`` applies ``build(e, *xs)`` to n elements, n a multiple of the width."""
    e = Emitter(target, width, fastmath)
    cuda = target.kind == "cuda"
    loop, done = e.new_label("loop"), e.new_label("done")
    e.branch(loop)
    e.label(loop)
    i = Val("%i", dt.int64, 1)
    position = len(e.lines)
    e.line("phi")  # rewritten below, when the block that closes the loop is known
    xs = [e.load(e.gep(f"%a{k}", dtype, i), dtype) for k, dtype in enumerate(inputs)]
    out = build(e, *xs)
    e.store(out, e.gep("%out", out.dtype, i))
    e.line(f"%next = add i64 %i, {width}")
    more = e.lt(Val("%next", dt.int64, 1), Val("%n", dt.int64, 1))
    e.lines[position] = f"  %i = phi i64 [ 0, %entry ], [ %next, %{e.block} ]"
    e.branch_if(more.ref, loop, done)
    e.label(done)
    e.line("ret void")
    module = LLVMModule(target)
    parameters = ", ".join(["i64 %n", "ptr %out", *(f"ptr %a{k}" for k in range(len(inputs)))])
    module.function(e, "kernel", parameters, linkage="ptx_kernel" if cuda else "")
    return module.render(), out.dtype


def assembly(text: str, target: Target) -> str:
    """The target's assembly of a module, verified and optimised on the way."""
    tm = machine(target)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.data_layout = str(tm.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes = llvm.create_pass_builder(tm, options)
    passes.getModulePassManager().run(module, passes)
    return tm.emit_assembly(module)


class Compiled:
    """``kernel`` of a module as a function from arrays to an array."""

    def __init__(self, text: str, target: Target, out_dtype: np.dtype, width: int) -> None:
        self._code = machine_code.load_object(machine_code.compile_object(text, target), "kernel")
        self._address = self._code.addresses["kernel"]
        self._out_dtype, self._width = out_dtype, width

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        n = arrays[0].size
        padded_size = max(self._width, -(-n // self._width) * self._width)
        padded = []
        for array in arrays:
            whole = np.zeros(padded_size, array.dtype)
            whole[:n] = array.ravel()
            whole[n:] = whole[0]  # a lane as good as any other: zeros would trap in a division
            padded.append(whole)
        out = np.zeros(padded_size, self._out_dtype)
        self.call(padded_size, out, *padded)
        return out[:n].reshape(arrays[0].shape)

    def call(self, n: int, *arrays: np.ndarray) -> None:
        """``kernel(n, arrays...)`` as it is."""
        kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * len(arrays))(self._address)
        kernel(n, *(a.ctypes.data for a in arrays))


def compile_loop(
    build: Callable[..., Val],
    inputs: list[np.dtype],
    width: int | None = None,
    target: Target | None = None,
    fastmath: bool = False,
) -> Compiled:
    target = target or host_target()
    if width is None:
        width = max(1, target.vector_bits // 32)
    text, out_dtype = loop_text(build, inputs, target, width, fastmath)
    return Compiled(text, target, out_dtype, width)
