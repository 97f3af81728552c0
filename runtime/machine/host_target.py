"""The machine that this process runs on, as the compiler's Target."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hybridflow.compiler.target import Target
from hybridflow.runtime import uninterruptible

_override: Target | None = None


def target() -> Target:
    """The Target that programs are compiled for: the host, unless a test chose another one."""
    return _override if _override is not None else detect()


@contextmanager
def use(other: Target) -> Iterator[None]:
    """Compile for ``other`` inside the block: a test runs the code of a narrower machine on this one."""
    global _override
    before, _override = _override, other
    try:
        yield
    finally:
        _override = before


@functools.cache
def detect() -> Target:
    """Ask LLVM for the CPU and its features, and the kernel for the cache sizes."""
    return uninterruptible.run_uninterruptible(_detect)


def _detect() -> Target:
    from hybridflow.runtime.machine.llvm_binding import binding  # LLVM is loaded when something needs it

    llvm = binding()
    triple = llvm.get_process_triple()
    features = llvm.get_host_cpu_features()
    arm = triple.startswith(("aarch64", "arm64"))
    if features.get("amx-tile", False) and not _tiles_are_permitted():
        features.update({name: False for name in features if name.startswith("amx-")})
    if features.get("avx", False) and "sse4a" in features:
        # Its shuffles by AMD have no form for AVX: each that LLVM chooses between 256-bit instructions costs 100 ns.
        features["sse4a"] = False
    # Wide registers pay only with the byte/word and short-vector forms, which every server core since 2017 has.
    wide = all(features.get(name, False) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl"))
    if wide:
        vector_bits = 512
    elif features.get("avx2", False):
        vector_bits = 256
    else:
        vector_bits = 128
    caches: dict[str, Any] = {f"l{level}": size for level, size in _cache_sizes().items() if level in (1, 2, 3)}
    return Target(
        kind="cpu",
        triple=triple,
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        vector_bits=vector_bits,
        registers=32 if wide or arm else 16,
        fma=arm or features.get("fma", False),
        half=arm or features.get("f16c", False),
        masked=wide,
        **caches,
    )


_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18  # of Linux on x86-64


def _tiles_are_permitted() -> bool:
    """Ask Linux, once for the whole process, to keep x86's tile registers for its threads: without that their first
    use ends it."""
    if not sys.platform.startswith("linux"):
        return False
    call = ctypes.CDLL(None).syscall
    call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long] * 3
    return bool(call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)


@functools.lru_cache(maxsize=64)
def can_run(other: Target) -> bool:
    """Whether this machine executes the code of ``other``: same architecture and features, and registers at least
    as wide."""
    here = detect()
    if other.kind != "cpu" or other.triple.partition("-")[0] != here.triple.partition("-")[0]:
        return False
    return (
        other.vector_bits <= here.vector_bits
        and (here.fma or not other.fma)
        and (here.half or not other.half)
        and (here.masked or not other.masked)
        and all(here.has(name[1:]) for name in other.features.split(",") if name.startswith("+"))
    )


def _cache_sizes(folder: str = "/sys/devices/system/cpu/cpu0/cache") -> dict[int, int]:
    """Bytes of the data or unified cache at each level; empty where the system does not say."""
    sizes: dict[int, int] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return sizes
    for name in names:
        if not name.startswith("index"):
            continue
        try:
            kind, level, size = (_read(os.path.join(folder, name, field)) for field in ("type", "level", "size"))
            if kind in ("Data", "Unified"):
                sizes[int(level)] = int(size.rstrip("K")) * 1024
        except (OSError, ValueError):  # a field that is missing or written otherwise: keep the default
            continue
    return sizes


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


@functools.cache
def memory_bytes() -> int:
    """Memory that this process may use: the machine's, or the control group's limit where that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = _read("/sys/fs/cgroup/memory.max")
        if limit.isdigit():
            total = min(total, int(limit))
    except OSError:
        pass
    return total
