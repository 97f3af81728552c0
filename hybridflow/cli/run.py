"""``hybridflow run``: a script in several processes that share the replicas of its strategies out."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hybridflow.distribute import cluster_launcher, launcher, meeting_place, watcher
from hybridflow.errors import ArgumentError


def add_to(commands: Any) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "run",
        help="run a script in several processes that share out the replicas of its strategies",
        description="Run a script in several processes. Each runs all of it; strategies and meshes share their "
        "replicas out, and the bits of what comes out do not depend on how many processes there are.",
    )
    parser.add_argument("-n", metavar="N", help="how many processes, all on this machine (1); of an engine LEAST:MOST")
    parser.add_argument(
        "--engine", choices=("ray",), help="what places processes on the machines of a cluster (this machine alone)"
    )
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="where rank 0 is, of processes that srun, mpirun or another has started"
    )
    parser.add_argument(
        "--timeout", type=float, default=300.0, help="seconds that processes wait for each other in a collective (300)"
    )
    parser.add_argument("--threads", type=int, help="threads of each process (the cores, divided by N)")
    parser.add_argument(
        "--restarts", type=int, default=0, metavar="K", help="how often all are started again after one has failed (0)"
    )
    parser.add_argument("script", help="the script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    command = [options.script, *options.arguments]
    if watcher.PARENT in os.environ:
        from hybridflow.distribute import worker

        worker.end_with_parent(int(os.environ.pop(watcher.PARENT)))
    if options.engine is not None:
        return _run_on_cluster(command, options)
    place = meeting_place.meeting(os.environ, options.address) if options.n is None else None
    if options.address is not None and place is None:
        raise ArgumentError(
            "run", "--address is for processes that srun, mpirun or torchrun starts, or that have RANK and WORLD_SIZE."
        )
    if place is not None and place.size > 1:
        if options.restarts:
            raise ArgumentError("run", "--restarts is for -n: what has started the processes starts them again.")
        return _take_part(command, place, options)
    least, most = cluster_launcher.counts(options.n or "1")
    if least != most:
        raise ArgumentError("run", f"-n is {options.n}. Expected one number: without --engine none joins or leaves.")
    return launcher.launch(command, most, options.timeout, options.threads, restarts=options.restarts)


def _run_on_cluster(command: list[str], options: argparse.Namespace) -> int:
    """Have an engine place processes."""
    if options.address is not None:
        raise ArgumentError("run", "--address is for processes that something else starts; RAY_ADDRESS is for Ray.")
    least, most = cluster_launcher.counts(options.n or "1")
    launcher.check(command, options.timeout)
    from hybridflow.distribute.ray_engine import RayEngine  # which loads Ray

    threads = options.threads or 1
    environment = {"HF_NUM_THREADS": str(threads)}
    with RayEngine(threads, most, options.timeout) as engine:
        return cluster_launcher.launch(
            engine, command, least, most, options.timeout, options.restarts, environment=environment
        )


def _take_part(command: list[str], place: meeting_place.Meeting, options: argparse.Namespace) -> int:
    """Run the script in this process, one of several that something else has started."""
    launcher.check(command, options.timeout)
    from hybridflow import config
    from hybridflow.distribute import worker  # only where there are several

    if options.threads is not None:
        config.set_num_threads(options.threads)
    return worker.take_part(command, place, options.timeout)
