"""Waiting until a process is at rest.

Threads of some libraries go on looking for work after a call, with all that their cores have: OpenBLAS's for a tenth of
a second, OpenMP's for some milliseconds.  Whoever is measured meanwhile has the rest of the machine.
"""

from __future__ import annotations

import os
import time

MOST = 0.3  # seconds that a process is given to come to rest
_BLIND = 0.15  # seconds after which it should be, where nobody can say
_LOOKS = 2  # one after another that find no thread running


def wait(process: int) -> None:
    """Return when no thread of a process runs."""
    end, quiet = time.perf_counter() + MOST, 0
    while quiet < _LOOKS and time.perf_counter() < end:
        running = _running(process)
        if running is None:
            time.sleep(_BLIND)
            return
        quiet = 0 if running else quiet + 1
        time.sleep(0.0005)


def _running(process: int) -> bool | None:
    """Whether a thread of a process runs; None where the system does not tell."""
    folder = f"/proc/{process}/task"
    try:
        return any(_state(f"{folder}/{thread}/stat") == "R" for thread in os.listdir(folder))
    except OSError:
        return None


def _state(path: str) -> str:
    """R, for one that runs or would like to, S for one that sleeps, and the like; a thread that is gone sleeps."""
    try:
        with open(path) as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "S"
