"""What one core of this machine can do at most, measured: memory read, memory copied, fused multiply-adds.

The loops are written in LLVM IR by hand, apart from the compiler, so that the compiler is not its own yardstick.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hybridflow.cli import measure
from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import host_target, machine_code

_BYTES = 192 << 20  # of memory that is read; far more than caches hold
LARGE = 32 << 20  # bytes from which a program is held against the limits of memory
HOW = """Limits are those of one thread, measured in turns with each program: memory read by a loop over 192 MiB (in one
or three streams, whichever is faster), memory copied from 64 MiB to 64 MiB (by a loop with ordinary or streaming stores
or by NumPy, whichever is fastest; bytes read and written both count), and the arithmetic peak by a loop of fused
multiply-adds in registers. The first two count only for programs that move 32 MiB or more; smaller ones may stay in the
caches, and are held against the arithmetic peak alone."""


@dataclass(frozen=True)
class Limits:
    """Bytes per second read, bytes per second copied (read and written), float32 operations per second."""

    read: float
    copy: float
    flops: float

    def least_seconds(self, read: int, written: int, operations: int) -> tuple[float, str]:
        """The time that the machine needs at least for that many bytes and operations, and what takes it."""
        memory = 0.0
        if read + written >= LARGE:
            # Results much smaller than the arguments take no part in the copying.
            memory = (read + written) / (self.read if written * 10 < read else self.copy)
        arithmetic = operations / self.flops
        return max((memory, "memory"), (arithmetic, "arithmetic"))


class Machine:
    """The loops that show the limits, the fastest of each kind, ready to take turns with programs."""

    def __init__(self, budget: float = 1.5) -> None:
        here = host_target.detect()
        source = np.ones(_BYTES // 8, np.int64)  # written, so that every page is there
        target = np.zeros(source.size // 3, np.int64)
        part = source[: target.size]
        self._copied = 2 * part.nbytes
        reads = read_samplers(source)
        copies = {
            "copy": _loop(_copy_text(here, False), part.ctypes.data, part.nbytes, target.ctypes.data),
            "streaming copy": _loop(_copy_text(here, True), part.ctypes.data, part.nbytes, target.ctypes.data),
            "numpy's copy": measure.calls(np.copyto, target, part),
        }
        timings = measure.interleaved({**reads, **copies}, budget)
        self.samplers = {
            "limit: read": reads[min(reads, key=lambda name: timings[name].median)],
            "limit: copy": copies[min(copies, key=lambda name: timings[name].median)],
            "limit: fma": fma_sampler(),
        }
        self._arrays = source, target  # the loops hold addresses

    def limits(self, timings: Mapping[str, measure.Timing]) -> Limits:
        """The limits that the samplers showed."""
        read, copy, fma = (timings[name].median for name in self.samplers)
        return Limits(_BYTES / read, self._copied / copy, fma_work() / fma)


def read_samplers(array: np.ndarray) -> dict[str, measure.Sampler]:
    """The loops that read all of ``array``, whose bytes are a multiple of 2304; the caller holds the array."""
    here = host_target.detect()
    return {f"read {n}": _loop(_read_text(here, n), array.ctypes.data, array.nbytes) for n in (1, 3)}


def _loop(text: str, address: int, size: int, target: int = 0) -> measure.Sampler:
    """Calls of the function ``loop(source, bytes, target)`` of a module."""
    here = host_target.detect()
    code = machine_code.load_object(machine_code.compile_object(text, here), "loop")
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    function = kind(code.addresses["loop"])
    sink = np.zeros(4096, np.uint8)  # where loops without a target leave what they computed
    sampler = measure.calls(function, address, size, target or sink.ctypes.data)

    def run(repeats: int) -> float:
        assert code is not None and sink is not None  # held as long as the sampler: the loop is theirs
        return sampler(repeats)

    return run


def _read_text(target: Target, streams: int) -> str:
    """Combines all vectors of the source, read front to back in some streams side by side."""
    lanes, unroll = target.lanes(64), 12 // streams
    step = unroll * lanes * 8
    body = []
    for s in range(streams):
        body.append(f"  %at{s} = add i64 %i, {'0' if s == 0 else f'%start{s}'}")
        for u in range(unroll):
            k = s * unroll + u
            body += [
                f"  %o{k} = add i64 %at{s}, {u * lanes * 8}",
                f"  %p{k} = getelementptr i8, ptr %source, i64 %o{k}",
                f"  %x{k} = load <{lanes} x i64>, ptr %p{k}, align 8",
                f"  %b{k} = xor <{lanes} x i64> %a{k}, %x{k}",
            ]
    starts = [f"  %length = udiv i64 %bytes, {streams}"]
    starts += [f"  %start{s} = mul i64 %length, {s}" for s in range(1, streams)]
    vectors = [(f"%a{k}", f"%b{k}", "zeroinitializer") for k in range(12)]
    return _module(target, "\n".join(starts), "%length", step, f"<{lanes} x i64>", vectors, body)


def _copy_text(target: Target, streaming: bool) -> str:
    lanes = target.lanes(64)
    hint, body = ", !nontemporal !0" if streaming else "", []
    for k in range(4):
        body += [
            f"  %o{k} = add i64 %i, {k * lanes * 8}",
            f"  %p{k} = getelementptr i8, ptr %source, i64 %o{k}",
            f"  %q{k} = getelementptr i8, ptr %target, i64 %o{k}",
            f"  %x{k} = load <{lanes} x i64>, ptr %p{k}, align 8",
            f"  store <{lanes} x i64> %x{k}, ptr %q{k}, align {16 if streaming else 8}{hint}",
        ]
    return _module(target, "", "%bytes", 4 * lanes * 8, "", [], body)


_FMA_ROUNDS = 20_000


def _accumulators(target: Target) -> int:
    """Enough independent chains to cover the latency of an operation on every unit, in registers."""
    return 24 if target.registers >= 32 else 12


def fma_work() -> int:
    """Floating-point operations of one call of the loop."""
    here = host_target.detect()
    return 2 * _FMA_ROUNDS * _accumulators(here) * here.lanes(32)


def fma_sampler() -> measure.Sampler:
    """The loop of fused multiply-adds (products and sums, where the machine has no fused ones)."""
    here = host_target.detect()
    kind = f"<{here.lanes(32)} x float>"
    factor, body = f"{kind} splat (float 0.5)", []
    for k in range(_accumulators(here)):
        if here.fma:
            name = f"llvm.fma.v{here.lanes(32)}f32"
            body.append(f"  %b{k} = call {kind} @{name}({kind} %a{k}, {factor}, {factor})")
        else:
            body += [
                f"  %m{k} = fmul {kind} %a{k}, splat (float 0.5)",
                f"  %b{k} = fadd {kind} %m{k}, splat (float 0.5)",
            ]
    vectors = [(f"%a{k}", f"%b{k}", f"splat (float {k}.0)") for k in range(_accumulators(here))]
    text = _module(here, "", "%bytes", 1, kind, vectors, body)
    if here.fma:
        text += f"declare {kind} @{name}({kind}, {kind}, {kind})\n"
    return _loop(text, 0, _FMA_ROUNDS)


def _module(
    target: Target, before: str, count: str, step: int, kind: str, carried: list[tuple[str, str, str]], body: list[str]
) -> str:
    """The function ``loop``: ``body`` for i = 0, step ... below ``count``.

    ``carried`` are vectors (name, next, first) that go round the loop, and to the target at its end.
    """
    phis = [f"  {name} = phi {kind} [ {first}, %entry ], [ {then}, %again ]" for name, then, first in carried]
    stores = []
    for k, (_, then, _) in enumerate(carried):
        stores.append(f"  %out{k} = getelementptr {kind}, ptr %target, i64 {k}")
        stores.append(f"  store {kind} {then}, ptr %out{k}, align 4")
    lines = [
        f'target triple = "{target.triple}"',
        "define void @loop(ptr %source, i64 %bytes, ptr %target) #0 {",
        "entry:",
        before,
        "  br label %again",
        "again:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %again ]",
        *phis,
        *body,
        f"  %next = add i64 %i, {step}",
        f"  %more = icmp ult i64 %next, {count}",
        "  br i1 %more, label %again, label %done",
        "done:",
        *stores,
        "  ret void",
        "}",
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bits}" }}',
        "!0 = !{i32 1}",
    ]
    return "\n".join(line for line in lines if line) + "\n"
