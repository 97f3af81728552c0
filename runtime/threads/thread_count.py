"""How many threads programs should run on: what the process may use of the machine, and what its user said of that."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import re
import sys
from collections.abc import Callable

from hybridflow import flags
from hybridflow.errors import ArgumentError
from hybridflow.runtime.thread_pool_words import MOST

FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}  # the number of the system call

PLACING = ("sched_getcpu", "pthread_getaffinity_np", "pthread_setaffinity_np")

_CGROUPS = "/sys/fs/cgroup"


def number() -> int:
    """The number of threads unless the program says otherwise: HF_NUM_THREADS; else OMP_NUM_THREADS where it is less
    than the cores that this process may use, or else these.

    Raises ArgumentError for a value of HF_NUM_THREADS that is no number of threads.
    """
    wanted = flags.NUM_THREADS.value
    if wanted:
        return checked("HF_NUM_THREADS", wanted)
    told = openmp()
    return min(cores(), MOST) if told is None else min(told, MOST)


def checked(name: str, value: object) -> int:
    """``value`` as a number of threads.  Raises ArgumentError for others."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ArgumentError(name, f"a number of threads from 1 to {MOST} is expected, got {value!r}.")
    return value


def has_futex() -> bool:
    """Whether threads wait for each other by Linux's futex; else by a condition variable, as on every POSIX system."""
    return sys.platform == "linux" and os.uname().machine in FUTEX


def has_places() -> bool:
    """Whether threads can be told which cores to run on, as Linux's C libraries do it."""
    return sys.platform == "linux" and all(hasattr(ctypes.CDLL(None), name) for name in PLACING)


def openmp() -> int | None:
    """What OMP_NUM_THREADS says of the outermost level, as OpenMP reads it; None where it says nothing."""
    match = re.fullmatch(r"\s*([0-9]+)\s*(,.*)?", os.environ.get("OMP_NUM_THREADS", ""))
    return int(match[1]) or None if match else None


@functools.cache
def cores() -> int:
    """Cores that this process may use: those of its affinity, but no more than the time that its control group has."""
    ask = getattr(os, "sched_getaffinity", None)
    count = len(ask(0)) if ask is not None else os.cpu_count() or 1
    quota = cpu_quota()
    return count if quota is None else max(1, min(count, math.ceil(quota)))


def cpu_quota(groups: str = "/proc/self/cgroup", root: str = _CGROUPS) -> float | None:
    """Cores' worth of time that the control groups of this process may have, None where nothing limits it."""
    try:
        with open(groups) as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        match line.split(":", 2):
            case [_, "", path]:
                limits += _limits(root, path, _of_version_2)
            case [_, controllers, path] if "cpu" in controllers.split(","):
                for folder in (controllers, "cpu"):
                    limits += _limits(os.path.join(root, folder), path, _of_version_1)
    return min(limits, default=None)


def _limits(root: str, path: str, read: Callable[[str], float | None]) -> list[float]:
    """The limits of a group and of those that it is in.  In a container the path may be one that is seen from outside:
    then the group that is mounted as the root is its own."""
    result = []
    parts = [part for part in path.split("/") if part]
    for depth in range(len(parts) + 1):
        limit = read(os.path.join(root, *parts[:depth]))
        if limit is not None:
            result.append(limit)
    return result


def _of_version_2(folder: str) -> float | None:
    match _words(os.path.join(folder, "cpu.max")):
        case [quota, period]:
            return _ratio(quota, period)
    return None


def _of_version_1(folder: str) -> float | None:
    quota, period = (_words(os.path.join(folder, f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
    return _ratio(quota[0], period[0]) if quota and period else None


def _ratio(quota: str, period: str) -> float | None:
    """Without a limit the quota is "max", or -1."""
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(quota) and int(period) else None


def _words(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []
