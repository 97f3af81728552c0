"""Processes that something else has started: where they meet, what they exchange over sockets, and how that fails."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

from hybridflow import errors
from hybridflow.compiler.ops.evaluation_order import replica_fold
from hybridflow.compiler.ops.replica_tree import canonical_nodes, folded
from hybridflow.distribute import socket_group
from hybridflow.distribute.meeting_place import Meeting, meeting
from hybridflow.distribute.socket_group import SocketGroup, meet
from hybridflow.runtime import process_exchange
from tests.support.bits import same_bits
from tests.support.paths import ROOT

pytestmark = pytest.mark.code
DEADLINE, PATIENCE = 300.0, 600.0  # seconds, for a machine that does much else


def free_port() -> int:
    """Below those that systems give to whoever asks for any: nobody has it by the time that it is used."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port is free")


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """What each returns, or raises."""
    found: list[Any] = [None] * len(calls)

    def run(k: int) -> None:
        try:
            found[k] = calls[k]()
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def groups(size: int, timeout: float = DEADLINE) -> list[SocketGroup]:
    port = free_port()
    found = in_threads(
        *(lambda rank=rank: meet(Meeting(rank, size, "127.0.0.1", port), timeout) for rank in range(size))
    )
    assert len({seed for _, seed in found}) == 1
    return [group for group, _ in found]


def together(members: list[SocketGroup], function: Callable[[SocketGroup], Any]) -> list[Any]:
    return in_threads(*(lambda member=member: function(member) for member in members))


# ---- where they meet


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"RANK": "0"}, None),
        (
            {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "host", "MASTER_PORT": "29500"},
            Meeting(1, 4, "host", 29500),
        ),
        (
            {
                "SLURM_PROCID": "3",
                "SLURM_NTASKS": "8",
                "SLURM_JOB_NODELIST": "node[07-09,12],other",
                "MASTER_PORT": "5",
            },
            Meeting(3, 8, "node07", 5),
        ),
        (
            {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "a1,a2", "MASTER_PORT": "5"},
            Meeting(0, 2, "a1", 5),
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "2",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
                "MASTER_PORT": "7",
            },
            Meeting(1, 2, "127.0.0.1", 7),
        ),
        (
            {
                "TF_CONFIG": json.dumps(
                    {
                        "cluster": {"chief": ["c:1"], "worker": ["w:2", "x:3"], "ps": ["p:4"]},
                        "task": {"type": "worker", "index": 1},
                    }
                )
            },
            Meeting(2, 3, "c", 1),
        ),
    ],
)
def test_what_launchers_say(environment: dict[str, str], expected: Meeting | None) -> None:
    assert meeting(environment) == expected


def test_ports_follow_from_the_job() -> None:
    def of(job: str) -> int:
        found = meeting({"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "a", "SLURM_JOB_ID": job})
        assert found is not None
        return found.port

    assert of("17") == of("17") != of("18") and 20000 <= of("17") < 32000


@pytest.mark.parametrize(
    ("environment", "address", "text"),
    [
        ({"RANK": "x", "WORLD_SIZE": "2"}, None, "RANK is 'x'"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "h"}, None, "rank 2 of 2"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, None, "give --address"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "nowhere", "Expected HOST:PORT"),
        ({"TF_CONFIG": "{"}, None, "TF_CONFIG"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}'}, None, "TF_CONFIG"),
    ],
)
def test_what_launchers_should_not_say(environment: dict[str, str], address: str | None, text: str) -> None:
    with pytest.raises(errors.ArgumentError, match=text):
        meeting(environment, address)


def test_ranks_that_do_not_fit_together() -> None:
    port = free_port()
    places = [Meeting(0, 3, "127.0.0.1", port), Meeting(1, 3, "127.0.0.1", port), Meeting(1, 3, "127.0.0.1", port)]
    for error in in_threads(*(lambda place=place: meet(place, DEADLINE) for place in places)):
        assert isinstance(error, errors.ArgumentError) and "two processes of rank 1" in str(error)
    port = free_port()
    places = [Meeting(0, 2, "127.0.0.1", port), Meeting(1, 3, "127.0.0.1", port)]
    for error in in_threads(*(lambda place=place: meet(place, DEADLINE) for place in places)):
        assert isinstance(error, errors.ArgumentError) and "rank 1 takes part in 3 processes" in str(error)


def test_nobody_waits_for_ever_for_others() -> None:
    port = free_port()
    with pytest.raises(errors.CollectiveTimeout, match="rank 1, 2 of 3 did not come"):
        meet(Meeting(0, 3, "127.0.0.1", port), 0.1)
    with pytest.raises(errors.CollectiveTimeout, match="cannot connect"):
        meet(Meeting(1, 3, "127.0.0.1", port), 0.1)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(errors.ArgumentError, match="cannot listen"):
        meet(Meeting(0, 2, "127.0.0.1", port), 0.1)


# ---- exchanges


@pytest.mark.parametrize("size", (2, 3, 4))
def test_sums_have_the_bits_of_the_tree(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one exchange or piece by piece."""
    monkeypatch.setattr(socket_group, "_CHUNK", 10_000)
    members, rng = groups(size), np.random.default_rng(0)
    for replicas in (2, 5, 8):
        for shape in ((), (0,), (7,), (process_exchange.WHOLE // 4 + 5,)):
            x = (rng.normal(size=(replicas, *shape)) * 1e3).astype(np.float32)

            def summed(member: SocketGroup, x: np.ndarray = x) -> np.ndarray:
                begin, end = member.run_of(member.rank, len(x))
                nodes = [folded(np.add, list(x[a:b])) for a, b in canonical_nodes(begin, end, len(x))]
                mine = np.stack(nodes) if nodes else np.empty((0, *x.shape[1:]), x.dtype)
                return member.summed("sum", mine, x.shape[1:], len(x), None)

            for found in together(members, summed):
                assert same_bits(np.asarray(found), replica_fold(np.add, x))
    for member in members:
        member.close()


def test_more_than_sockets_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """All send at the same time, and nobody waits until another has read."""
    members, data = groups(3), np.arange(3_000_000, dtype=np.uint8)
    for parts in together(members, lambda member: member.exchange("bytes", data[member.rank :])):
        assert [part.tobytes() == data[rank:].tobytes() for rank, part in enumerate(parts)] == [True] * 3
    for member in members:
        member.close()


def test_different_collectives_are_an_error_on_all() -> None:
    members = groups(3)

    def differ(member: SocketGroup) -> Any:
        return member.exchange(f"what {member.rank // 2}", np.zeros(5 * member.rank), f"f.py:{member.rank}")

    for error in together(members, differ):
        assert isinstance(error, errors.ReplicaError) and "processes do different things" in str(error)
        assert "f.py:2" in str(error)
    for error in together(members, lambda member: member.exchange("more", np.zeros(1))):
        assert isinstance(error, errors.ReplicaError), "a group that has failed does nothing more"
    for member in members:
        member.close()


def test_one_that_has_gone_and_one_that_never_comes() -> None:
    one, two, three = groups(3)
    two.close()
    for error in together([one, three], lambda member: member.exchange("sum", np.zeros(1), "f.py:3")):
        assert isinstance(error, errors.WorkerLost) and "has ended" in str(error)
    one, two = groups(2)
    together([one, two], lambda member: member.exchange("first", np.zeros(1), "f.py:3"))
    one.timeout = 0.1
    with pytest.raises(
        errors.CollectiveTimeout, match=r"rank 1 did not come.*rank 1: was in exchange 1, first at f.py:3, MISSING"
    ):
        one.exchange("sum", np.zeros(1))
    one.close()
    two.close()


def test_buffers_are_set_only_where_they_may_be_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the system would keep them shorter than those that it makes itself."""
    buffers = {(socket.SOL_SOCKET, socket.SO_SNDBUF): "wmem_max", (socket.SOL_SOCKET, socket.SO_RCVBUF): "rmem_max"}
    size = socket_group._BUFFER
    for most in ({"wmem_max": size - 1, "rmem_max": size}, {"wmem_max": size, "rmem_max": 212992}, {}):
        peer = mock.Mock()
        monkeypatch.setattr(socket_group, "_most_of_buffer", lambda name, most=most: most.get(name, 0))
        socket_group._set_options(peer, 1.0)
        given = {call.args for call in peer.setsockopt.call_args_list if call.args[:2] in buffers}
        assert given == {(*option, size) for option, name in buffers.items() if most.get(name) == size}
    monkeypatch.undo()
    assert socket_group._most_of_buffer("missing") == 0


# ---- the command


def test_processes_that_something_else_has_started() -> None:
    """Each shows its own error; who is killed leaves the others an error, not a hang."""
    for what, texts in (("nothing", ["[24.0] 6\n"]), ("killed", ["WorkerLost", "rank 1 has ended", "fail.py"])):
        port = free_port()
        command = [sys.executable, "-m", "hybridflow", "run", "--timeout", str(DEADLINE), "--threads", "1"]
        script = [str(ROOT / "tests/distribute/scripts/fail.py"), what, f"socket-{what}"]
        given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "HF_OPT": "0"}
        started = [
            subprocess.Popen(
                [*command, *script],
                env={**os.environ, "PYTHONPATH": str(ROOT), **given, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            shown = [process.communicate(timeout=PATIENCE)[0] for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        for text in texts:
            assert text in shown[0]
        assert started[1].returncode == (0 if what == "nothing" else -signal.SIGKILL) and shown[1] == ""
