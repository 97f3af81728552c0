"""``hybridflow doctor``: what hybridflow finds on this machine, and whether it works."""

from __future__ import annotations

import argparse
import ctypes.util
import glob
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow import flags
from hybridflow.cli import cache, output
from hybridflow.runtime.calls import entry
from hybridflow.runtime.cuda import gpu_memory
from hybridflow.runtime.machine import disk_cache, host_target, machine_code
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import native_functions
from hybridflow.runtime.threads import thread_count, thread_pool


@dataclass(frozen=True)
class Finding:
    """One line of the report.  ``state`` is "ok", "note" for what works but could be better, or "failed"."""

    subject: str
    state: str
    text: str


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check this installation",
        description="Say what is installed and found, and compile and run a kernel. Exits with 1 if something that "
        "every user needs fails; a missing GPU is no failure.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    findings = [finding for check in _CHECKS for finding in _guarded(check)]
    if options.json:
        output.print_json([vars(finding) for finding in findings])
    else:
        width = max(len(finding.subject) for finding in findings)
        styles = {"ok": "green", "note": "yellow", "failed": "red"}
        for f in findings:
            print(f"{output.colour(f.state.ljust(6), styles[f.state])}  {f.subject.ljust(width)}  {f.text}")
    return 1 if any(finding.state == "failed" for finding in findings) else 0


def _guarded(check: Callable[[], list[Finding]]) -> list[Finding]:
    """The findings of a check; one that breaks is a finding itself, and the others still run."""
    try:
        return check()
    except Exception as error:
        return [Finding(check.__name__.strip("_").replace("_", " "), "failed", f"{type(error).__name__}: {error}")]


def _versions() -> list[Finding]:
    return [
        Finding("hybridflow", "ok", f"{hf.__version__} in {os.path.dirname(hf.__file__)}"),
        Finding("python", "ok", f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"),
        Finding("numpy", "ok", np.__version__),
        Finding("llvm", "ok", machine_code.versions()),
    ]


def _machine() -> list[Finding]:
    target = host_target.detect()
    caches = ", ".join(f"L{k} {size >> 10} KiB" for k, size in ((1, target.l1), (2, target.l2), (3, target.l3)))
    return [
        Finding("target", "ok", f"{target.cpu} ({target.triple}), vectors of {target.vector_bits} bits, {caches}"),
        Finding("cores", "ok", f"{thread_count.cores()} for this process"),
    ]


def _flags() -> list[Finding]:
    settings = [f"{flag.name}={os.environ[flag.name]}" for flag in flags.ALL if os.environ.get(flag.name)]
    return [Finding("flags", "note", ", ".join(settings))] if settings else []


def _native_entry() -> list[Finding]:
    problem = entry.problem()
    if problem is not None:
        return [Finding("native entry", "note", f"off, calls take the Python path: {problem}")]
    return [Finding("native entry", "ok", "active")]


def _threads() -> list[Finding]:
    number, problem = thread_pool.threads(), thread_pool.problem()
    if problem is not None:
        return [Finding("threads", "note", f"programs run on one: {problem}")]
    flag, setting = flags.NUM_THREADS, thread_count.openmp()
    why = f" ({flag.name})" if flag.value else f" (OMP_NUM_THREADS, of {thread_count.cores()} cores)" if setting else ""
    return [Finding("threads", "ok", f"{number} for a program{why}")]


def _memory() -> list[Finding]:
    problem = memory_pool.problem()
    if problem is not None:
        return [Finding("memory pool", "note", f"off, all memory is new: {problem}")]
    return [Finding("memory pool", "ok", f"keeps up to {memory_pool.limit() >> 20} MiB of freed memory")]


def _cache() -> list[Finding]:
    stat = disk_cache.stat()
    state = "ok" if stat.folder is not None and stat.writable else "note"
    result = [Finding("disk cache", state, cache.describe(stat))]
    if stat.folder is not None and native_functions.source() is None:
        text = "compiled anew in each process: their source, which would be part of their key, is not to be found"
        result.append(Finding("native calls", "note", text))
    return result


def _kernel() -> list[Finding]:
    """Compile without the cache, run, and compare with NumPy."""
    x = np.linspace(-2, 2, 1001, dtype=np.float32)
    with flags.CACHE_DIR("off"):
        compiled = hf.function(lambda v: hf.sum(v * 3.0 + 1.0))
        result = compiled(hf.asarray(x)).item()
    expected = float(np.sum(x.astype(np.float64) * 3 + 1))
    if abs(result - expected) > 1e-3 * abs(expected):
        return [Finding("test kernel", "failed", f"compiled, but gives {result} instead of {expected}")]
    (concrete,) = compiled.concrete_functions()
    return [Finding("test kernel", "ok", f"compiled in {concrete.compile_ms:.1f} ms, right result")]


def _gpu() -> list[Finding]:
    driver = ctypes.util.find_library("cuda")
    devices = sorted(glob.glob("/dev/nvidia[0-9]*"))
    toolkit = os.environ.get("CUDA_PATH") or os.environ.get("CUDA_HOME")
    findings = [
        Finding("nvidia driver", "ok" if driver else "note", driver or "libcuda not found"),
        Finding("nvidia devices", "ok" if devices else "note", ", ".join(devices) or "no /dev/nvidia*"),
    ]
    if toolkit:
        state, text = ("ok", toolkit) if os.path.isdir(toolkit) else ("note", f"{toolkit} does not exist")
        findings.append(Finding("cuda toolkit", state, text))
    if importlib.util.find_spec("cupy") is None:
        return [*findings, Finding("cupy", "note", "not installed; for GPUs: pip install 'hybridflow[gpu]'")]
    return [*findings, *_cupy()]


def _cupy() -> list[Finding]:
    try:
        cupy = gpu_memory.cupy()
    except Exception as error:  # a broken installation raises whatever its parts raise
        return [Finding("cupy", "note", f"cannot be imported: {error}")]
    count = gpu_memory.count()
    result = [Finding("cupy", "ok", f"{cupy.__version__} in {os.path.dirname(cupy.__file__)}")]
    if not count:
        return [*result, Finding("gpu", "note", "CuPy finds none")]
    for number in range(count):
        name = cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
        result.append(Finding(f"gpu:{number}", "ok", f"{name}, target {gpu_memory.target(number).cpu}"))
    return result


_CHECKS = (_versions, _machine, _flags, _native_entry, _threads, _memory, _cache, _kernel, _gpu)
