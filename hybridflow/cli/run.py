"""``hybridflow run``: a script in several processes that share the replicas of its strategies out."""

from __future__ import annotations

import argparse
from typing import Any

from hybridflow.distribute import launcher


def add_to(commands: Any) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "run",
        help="run a script in several processes that share out the replicas of its strategies",
        description="Run a script in several processes. Each runs all of it; strategies and meshes share their "
        "replicas out, and the bits of what comes out do not depend on how many processes there are.",
    )
    parser.add_argument("-n", type=int, default=1, metavar="N", help="how many processes (1)")
    parser.add_argument(
        "--timeout", type=float, default=300.0, help="seconds that processes wait for each other in a collective (300)"
    )
    parser.add_argument("--threads", type=int, help="threads of each process (the cores, divided by N)")
    parser.add_argument("script", help="the script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    with launcher.stopped_by_sigterm():
        return launcher.launch([options.script, *options.arguments], options.n, options.timeout, options.threads)
