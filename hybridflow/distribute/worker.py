"""One process of ``hybridflow run``: it joins the group, runs the script, and tells how that ended."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import runpy
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from hybridflow.core import processes
from hybridflow.distribute.group import VARIABLE, Group, Inherited, join
from hybridflow.distribute.meeting_place import Meeting
from hybridflow.distribute.socket_group import meet
from hybridflow.flags import RELEASE
from hybridflow.runtime import fork_safe_locks

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int | None = None) -> None:
    """Let the process be ended where the launcher is, whatever ends that; at once if it is not ``parent`` any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        sys.exit(1)


def _configuration(script: str) -> dict[str, Any]:
    """What all processes must agree on before they begin."""
    with open(script, "rb") as file:
        code = hashlib.sha256(file.read()).hexdigest()[:16]
    return {
        "the version of hybridflow": RELEASE,
        "the version of Python": platform.python_version(),
        "the order of bytes": sys.byteorder,
        "the code of the script": code,
    }


def _report(descriptor: int, what: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        os.write(descriptor, json.dumps(what).encode() + b"\n")


def main(arguments: list[str]) -> int:
    """Run ``SCRIPT ARGUMENTS ...`` as its ``__main__``; the exit code."""
    inherited = Inherited.read(os.environ.pop(VARIABLE, ""))
    end_with_parent()
    reports = [inherited.report]
    # What is forked keeps nobody from seeing this process's end.
    fork_safe_locks.at_fork(after_in_child=lambda: os.close(reports.pop()) if reports else None)

    def begin() -> int:
        join(Group(inherited) if inherited.size > 1 else None, lambda: _configuration(arguments[0]))
        return inherited.seed

    def report(error: str, is_later: bool) -> None:
        for descriptor in reports:
            _report(descriptor, {"rank": inherited.rank, "error": error, "is_later": is_later})

    return _run(arguments, inherited.rank, begin, report)


def take_part(arguments: list[str], place: Meeting, timeout: float) -> int:
    """Run a script in this process, which is one of several that something else has started; the exit code."""

    def begin() -> int:
        place_found, seed = meet(place, timeout)
        join(place_found, lambda: _configuration(arguments[0]))
        return seed

    def report(error: str, is_later: bool) -> None:
        print(f"[run] rank {place.rank} of {place.size}: {error}", file=sys.stderr, flush=True)

    return _run(arguments, place.rank, begin, report)


def _run(arguments: list[str], rank: int, begin: Callable[[], int], report: Callable[[str, bool], None]) -> int:
    """Run the script after ``begin``, which returns the seed of random numbers.  ``report`` is told of an error, and
    whether it is one of who waits in vain for another."""
    script = arguments[0]
    sys.argv[:] = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    if rank:  # what all print alike is shown once
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (open until the process ends)
    try:
        seed = begin()
        from hybridflow import random

        random.set_seed(seed)  # one stream of random numbers for all
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code is not None and not isinstance(end.code, int):
            report(str(end.code), False)
        return code
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        is_later = type(error).__name__ == "WorkerLost"
        report(_text(error), is_later)
        return processes.MISSED if is_later else 1
    return 0


def _text(error: BaseException) -> str:
    """The traceback, from the script on."""
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        entry = entry.tb_next
    return "".join(traceback.format_exception(type(error), error, entry)).rstrip()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)
