"""Where the processes of a run meet that something else has started: Slurm, mpirun, torchrun, or TensorFlow's way."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from hybridflow.errors import ArgumentError

_FIRST_PORT, _PORTS = 20000, 12000  # of those that no system gives to connections


class Meeting(NamedTuple):
    """Who a process is, and where the processes meet: at rank 0."""

    rank: int
    size: int
    host: str
    port: int


def meeting(environment: Mapping[str, str], address: str | None = None) -> Meeting | None:
    """What the environment says; None where nothing has started several processes.  ``address`` is that of rank 0.

    Raises ArgumentError for numbers that do not fit together, and where nothing says the address.
    """
    place = (
        _of_tensorflow(environment)
        or _of(environment, "RANK", "WORLD_SIZE", "", "MASTER_ADDR")
        or _of(environment, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "MASTER_ADDR")
        or _of(environment, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "MASTER_ADDR")
        or _of(environment, "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "MASTER_ADDR")
    )
    if place is None:
        return None
    rank, size, host, port = place
    if address is not None:
        host, _, text = address.rpartition(":")
        if not host or not text.isdigit():
            raise ArgumentError("run", f"--address is {address!r}. Expected HOST:PORT.")
        port = int(text)
    if not 0 <= rank < size:
        raise ArgumentError("run", f"this is rank {rank} of {size} processes, which cannot be.")
    if not host and size > 1:
        raise ArgumentError("run", "nothing says where rank 0 is: give --address HOST:PORT, or set MASTER_ADDR.")
    return Meeting(rank, size, host, port)


def _of(environment: Mapping[str, str], rank: str, size: str, job: str, host: str) -> Meeting | None:
    if rank not in environment or size not in environment:
        return None
    default = _FIRST_PORT + zlib.crc32(environment.get(job, "").encode()) % _PORTS
    port = _number(environment, "MASTER_PORT") if "MASTER_PORT" in environment else default
    return Meeting(
        _number(environment, rank), _number(environment, size), environment.get(host) or _first_host(environment), port
    )


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise ArgumentError("run", f"{name} is {environment[name]!r}. Expected a number.") from None


def _first_host(environment: Mapping[str, str]) -> str:
    """Of a list as Slurm has it, ``node[01-04,07],other``; this machine where all processes are here."""
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST") or ""
    match = re.match(r"([^,\[]+)(?:\[([^\]]*)\])?", nodes)
    if match:
        return match[1] + re.split("[,-]", match[2])[0] if match[2] else match[1]
    here, there = (environment.get(f"OMPI_COMM_WORLD_{name}") for name in ("LOCAL_SIZE", "SIZE"))
    local, whole = (environment.get(name) for name in ("MPI_LOCALNRANKS", "PMI_SIZE"))
    is_one_machine = (here is not None and here == there) or (local is not None and local == whole)
    return "127.0.0.1" if is_one_machine else ""


def _of_tensorflow(environment: Mapping[str, str]) -> Meeting | None:
    """TF_CONFIG: workers, of which a chief is the first one.  Rank 0's own port is the one that they meet at."""
    text = environment.get("TF_CONFIG")
    if not text:
        return None
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        members = [(kind, k) for kind in ("chief", "worker") for k in range(len(cluster.get(kind, ())))]
        rank = members.index((task["type"], int(task["index"])))
        host, _, port = cluster[members[0][0]][0].rpartition(":")
        return Meeting(rank, len(members), host, int(port))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise ArgumentError(
            "run", f"TF_CONFIG is {text!r:.200}. Expected JSON of a cluster of workers, and a task among them."
        ) from None
