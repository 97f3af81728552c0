"""One process of ``hybridflow run``: it joins the group, runs the script, and tells the launcher how that ended."""

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
from typing import Any

from hybridflow.distribute.group import VARIABLE, Inherited, join
from hybridflow.flags import RELEASE

_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Let the process be ended where the launcher is, whatever ends that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _told(script: str) -> dict[str, Any]:
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
    script = arguments[0]
    inherited = Inherited.read(os.environ.pop(VARIABLE, ""))
    _end_with_parent()
    sys.argv[:] = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    if inherited.rank:  # what all print alike is shown once
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (open until the process ends)
    try:
        join(inherited, lambda: _told(script))
        from hybridflow import random

        random.set_seed(inherited.seed)  # one stream of random numbers for all
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code is not None and not isinstance(end.code, int):
            _report(inherited.report, {"rank": inherited.rank, "error": str(end.code), "is_later": False})
        return code
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        _report(
            inherited.report,
            {
                "rank": inherited.rank,
                "error": _text(error),
                # Whoever waits in vain for one that has failed is not who failed.
                "is_later": type(error).__name__ == "WorkerLost",
            },
        )
        return 1
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
