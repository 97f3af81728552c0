"""Several processes: the bits of one, errors on all when one fails, and nothing left behind.

``python -m tests.distribute.test_processes`` compares the bits of more numbers of processes, and sizes of buckets.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybridflow import errors
from hybridflow.compiler.ops.evaluation_order import replica_fold
from hybridflow.compiler.ops.replica_tree import canonical_nodes, folded
from hybridflow.distribute import group as groups
from hybridflow.distribute.group import Group, Inherited
from hybridflow.distribute.launcher import launch
from hybridflow.optimizers import sharded_state
from hybridflow.runtime import process_exchange, process_exchange_words
from tests.support.bits import same_bits
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.code,
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="processes share memory without a name on Linux"),
]
SCRIPTS = Path(__file__).parent / "scripts"
EXAMPLE = ROOT / "examples/distributed/digits_on_processes.py"
# Seconds.  On a machine that does much else at the same time processes come late, which is no error: only one that
# would wait for ever meets these.
DEADLINE, PATIENCE = 300.0, 600.0


def command(count: int, script: str, *arguments: str, timeout: float = DEADLINE, restarts: int = 0) -> list[str]:
    options = ["-n", str(count), "--timeout", str(timeout), "--threads", "1", "--restarts", str(restarts)]
    return [sys.executable, "-m", "hybridflow", "run", *options, str(SCRIPTS / script), *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_OPT": "0"}


def run(count: int, script: str, *arguments: str, **options: Any) -> Any:
    return subprocess.run(
        command(count, script, *arguments, **options),
        capture_output=True, text=True, timeout=PATIENCE, env=environment(), check=False,
    )  # fmt: skip


def workers(marker: str) -> list[int]:
    """The processes of runs with this argument."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"hybridflow.distribute.worker" in words and marker.encode() in words:
            found.append(int(folder.name))
    return found


def gone(marker: str) -> bool:
    """Whether there are none any more, soon."""
    deadline = time.monotonic() + 60
    while workers(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not workers(marker)


# ---- the bits


@pytest.mark.slow
def test_the_bits_do_not_depend_on_the_number_of_processes() -> None:
    """Weights, optimizers' state, losses, metrics and predictions: of 8, 6 and 4 replicas, batches whose last one is
    short, runs of replicas of unequal length, and buckets of few gradients; the example has all in one."""
    one, three = run(1, "train.py"), run(3, "train.py", "100")
    for result in (one, three):
        assert result.returncode == 0 and not result.stderr, result.stderr
    assert len(one.stdout.splitlines()) == 5
    assert one.stdout == three.stdout


def check_files(folder: Path, before: int, after: int) -> None:
    """A run that is told to end within an epoch goes on with another number of processes as if nothing had been, and so
    does one of which a process is killed: the bits of weights, and the bytes of all files."""
    folders = [folder / "whole", folder / "cut"]
    for each in folders:
        each.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharded_state, "SMALLEST", sharded_state.SMALLEST)  # which the script sets
        whole = runpy.run_path(str(SCRIPTS / "resume.py"))["train"](folders[0], "whole")
    cut = run(before, "resume.py", str(folders[1]), f"5:{before - 1}:SIGTERM")
    assert cut.returncode == 75 and cut.stderr.startswith("[fit] SIGTERM: ends after epoch 1, batch "), cut.stderr
    assert len(cut.stderr.splitlines()) == 1, "they are no errors"
    resumed = run(after, "resume.py", str(folders[1]), f"7:{after - 1}:SIGKILL", restarts=1)
    assert resumed.returncode == 0, resumed.stderr
    assert "signal 9, SIGKILL" in resumed.stderr and "restarts left: 0" in resumed.stderr
    assert resumed.stdout == f"{whole}\n" and len(whole) == 16
    files = [
        {
            path.relative_to(each).as_posix(): path.read_bytes()
            for path in each.rglob("*")
            if path.is_file() and path.suffix and "pieces-" not in str(path)
        }
        for each in folders
    ]
    assert files[0].keys() == files[1].keys() and not [name for name in files[0] if name.endswith(".part")]
    assert "backup.safetensors" in files[0] and not [name for name in files[0] if files[0][name] != files[1][name]]


@pytest.mark.slow
def test_a_run_that_was_ended_goes_on_with_any_number(tmp_path: Path) -> None:
    check_files(tmp_path, 3, 1)


@pytest.mark.slow
def test_the_example_runs_on_two_processes() -> None:
    """Of few samples, the last batch of which is short."""
    result = run(2, str(EXAMPLE), "--epochs", "1", "--samples", "150")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "2 processes, 8 replicas" and len(result.stdout.splitlines()) == 2


# ---- failures


@pytest.mark.parametrize(
    ("what", "code", "texts"),
    [
        ("killed", 1, ["rank 1 of 2: ended by signal 9, SIGKILL"]),
        ("raises", 1, ["rank 1 of 2", 'raise ValueError("the fourth step")', "ValueError: the fourth step"]),
        ("exits", 7, ["rank 1 of 2: ended with exit code 7"]),
        ("leaves", 1, ["WorkerLost", "rank 1 has ended", "fail.py:22"]),
        ("elsewhere", 1, ["ReplicaError", "rank 0 is in exchange", "at fail.py:22", "all_gather", "fail.py:46"]),
    ],
)
def test_one_that_fails_ends_all_with_its_error(what: str, code: int, texts: list[str]) -> None:
    started = time.monotonic()
    result = run(2, "fail.py", what, "failing")
    assert result.returncode == code
    for text in texts:
        assert text in result.stderr
    assert time.monotonic() - started < DEADLINE, "nobody waits for the deadline"
    assert result.stderr.count("Traceback") <= 1, "the first error is the one that is shown"
    if what == "leaves":  # elsewhere the other may be shown, and end this one, first
        assert "3 steps before" in result.stdout, "a step that fails has changed nothing"
    assert gone("failing")


def test_one_that_is_stuck_is_named_at_the_deadline() -> None:
    """What is told on the command line holds until then: one that starts late is not stuck."""
    result = run(2, "fail.py", "stopped", "stuck")
    assert result.returncode == 1 and f"timeout {DEADLINE:g}" in result.stdout
    assert "CollectiveTimeout" in result.stderr and "rank 1 did not come within 3 s" in result.stderr
    assert "rank 0: in exchange" in result.stderr and "rank 1: in exchange" in result.stderr
    assert "3 steps before" in result.stdout and gone("stuck")


@pytest.mark.parametrize("number", (signal.SIGKILL, signal.SIGTERM))
def test_processes_end_with_the_launcher(number: int) -> None:
    marker = f"orphan{int(number)}"
    with subprocess.Popen(
        command(2, "fail.py", "waits", marker),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n" and len(workers(marker)) == 2
        process.send_signal(number)
        process.wait(300)
        assert process.returncode != 0
    assert gone(marker)


def test_bad_commands(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("")
    for arguments, text in (
        ((["missing.py"], 2, 1.0), "no script 'missing.py'"),
        (([str(script)], 0, 1.0), "-n is 0"),
        (([str(script)], 65, 1.0), "-n is 65"),
        (([str(script)], 2, 0.0), "--timeout is 0"),
        (([str(script)], 2, 1.0, 1, {}, -1), "--restarts is -1"),
    ):
        with pytest.raises(errors.ArgumentError, match=text):
            launch(*arguments)
    for text in ("{}", "no json", '{"rank": 3, "size": 2}', Inherited(3, 2, [0, 0], [], 0, 0, 0, 1.0).text()):
        with pytest.raises(errors.ArgumentError, match="hybridflow run"):
            Inherited.read(text)


# ---- groups, of threads


@pytest.fixture
def make() -> Iterator[Callable[[int], list[Group]]]:
    made: list[Group] = []
    opened: list[int] = []

    def group_of(size: int, timeout: float = DEADLINE) -> list[Group]:
        pairs = {(a, b): socket.socketpair() for a in range(size) for b in range(a + 1, size)}
        outboxes, board = [groups.outbox(f"test-{k}", size) for k in range(size)], groups.board(size)
        opened.extend([*outboxes, board])
        descriptors = {place: tuple(one.detach() for one in pair) for place, pair in pairs.items()}
        for rank in range(size):
            peers = [-1 if k == rank else descriptors[min(k, rank), max(k, rank)][int(rank > k)] for k in range(size)]
            made.append(Group(Inherited(rank, size, peers, outboxes, board, -1, 0, timeout)))
        return made[-size:]

    yield group_of
    for group in made:
        group.close()
    for descriptor in opened:
        os.close(descriptor)


@contextlib.contextmanager
def threads_of(function: Callable[[], None]) -> Iterator[None]:
    """A thread beside a block."""
    thread = threading.Thread(target=function)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def together(members: list[Group], function: Callable[[Group], Any]) -> list[Any]:
    """What the function returns, or raises, for each."""
    found: list[Any] = [None] * len(members)

    def call(k: int) -> None:
        try:
            found[k] = function(members[k])
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=call, args=(k,)) for k in range(len(members))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("size", (2, 3, 4))
@pytest.mark.parametrize("is_small", (True, False))
def test_sums_of_all_sizes(size: int, is_small: bool, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one round or in many, finished by each process as a whole or in shares, the bits are those of the tree."""
    if is_small:
        monkeypatch.setattr(groups, "_HALF", 4096)
        monkeypatch.setattr(process_exchange, "WHOLE", 0)
    members, rng = make(size), np.random.default_rng(0)
    for replicas in (2, 5, 8):
        for shape, dtype in (
            ((), np.float32),
            ((0,), np.float32),
            ((1,), np.int64),
            ((3, 7), np.float64),
            ((1237,), np.uint8),
            ((501,), np.int16),
            ((37,), np.complex64),
            ((33,), np.float16),
            ((9001,), np.float32),
        ):
            x = (rng.normal(size=(replicas, *shape)) * 1e3).astype(dtype)
            if x.dtype.kind in "fc" and x.size > 2:
                x.reshape(-1)[:2] = -0.0, np.inf

            def summed(member: Group, x: np.ndarray = x) -> np.ndarray:
                begin, end = member.run_of(member.rank, len(x))
                nodes = [folded(np.add, list(x[a:b])) for a, b in canonical_nodes(begin, end, len(x))]
                mine = np.stack(nodes) if nodes else np.empty((0, *x.shape[1:]), x.dtype)
                return member.summed("sum", mine, x.shape[1:], len(x), None)

            def gathered(member: Group, x: np.ndarray = x) -> np.ndarray:
                begin, end = member.run_of(member.rank, len(x))
                return member.gathered("all", x[begin:end], x.shape[1:], len(x), None)

            expected = replica_fold(np.add, x)
            for found in together(members, summed):
                assert same_bits(np.asarray(found), expected)
            for found in together(members, gathered):
                assert same_bits(found, x)


def test_bytes_of_any_number(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_HALF", 4096)
    members = make(3)
    for count in (10, 100_000, 1, 4096, 0, 50_000):
        found = together(members, lambda member, n=count: member.exchange(
            "bytes", np.full(n * (member.rank + 1), member.rank, np.uint8)
        ))  # fmt: skip
        for parts in found:
            assert [part.tobytes() for part in parts] == [bytes([rank]) * count * (rank + 1) for rank in range(3)]


def test_processes_that_differ_do_not_begin(make: Any) -> None:
    found = together(make(2), lambda member: member.agree("handshake", {"the version": f"1.{member.rank}"}))
    assert all(isinstance(error, errors.ReplicaError) and "the version is '1." in str(error) for error in found)
    assert together(make(3), lambda member: member.agree("handshake", {"the version": "1.0"})) == [None] * 3


def test_different_collectives_and_shapes_are_an_error_on_all(make: Any) -> None:
    def differ(member: Group) -> Any:
        return member.gathered(
            "all_gather", np.zeros((1, 2 + member.rank)), (2 + member.rank,), 2, f"f.py:{member.rank}"
        )

    for error in together(make(2), differ):
        assert isinstance(error, errors.ReplicaError)
        assert "rank 0 is in exchange 1" in str(error) and "f.py:0" in str(error) and "f.py:1" in str(error)


def test_a_full_memory_is_an_error_before_anything_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text("")
    descriptors = len(os.listdir("/proc/self/fd"))

    def refuse(descriptor: int, offset: int, count: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(errors.ArgumentError, match=r"no memory for 2 processes to share.*No space left"):
        launch([str(script)], 2, 1.0)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_after_a_failure_nothing_more_is_exchanged(make: Any) -> None:
    one, other = make(2, 30.0)
    other.close()
    for _ in range(2):
        with pytest.raises(errors.WorkerLost, match="rank 1 has ended"):
            one.exchange("sum", np.zeros(1))


def test_who_was_interrupted_says_so_from_then_on(make: Any) -> None:
    one, _ = make(2, DEADLINE)

    def interrupt() -> None:
        while not one._place(0)[0]:
            time.sleep(0.001)
        signal.raise_signal(signal.SIGINT)

    with threads_of(interrupt), pytest.raises(KeyboardInterrupt):
        one.exchange("sum", np.zeros(1))
    for _ in range(2):
        with pytest.raises(errors.WorkerLost, match="rank 0 was interrupted in an exchange"):
            one.exchange("sum", np.zeros(1))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_what_was_forked_takes_no_part_and_hides_no_end(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = make(2, DEADLINE)
    monkeypatch.setattr(groups, "_group", other)
    reading, writing = os.pipe()
    told, tell = os.pipe()
    with other._lock:  # as a thread might that the child does not have
        other._words[process_exchange_words.HELD] = 1
        child = os.fork()
        if not child:
            said = "nothing"
            try:
                other.exchange("sum", np.zeros(1))
            except errors.ReplicaError as error:
                said = str(error)
            finally:
                os.write(writing, said.encode())
                os.read(told, 1)
                os._exit(0)
        other._words[process_exchange_words.HELD] = 0
    try:
        assert b"was forked from rank 1" in os.read(reading, 1000)
        assert one._arrived(1) == 0, "nobody sees what it did"
        other.close()
        with pytest.raises(errors.WorkerLost, match="rank 1 has ended"):
            one.exchange("sum", np.zeros(1))
    finally:
        os.write(tell, b".")
        os.waitpid(child, 0)
        for descriptor in (reading, writing, told, tell):
            os.close(descriptor)


def test_one_that_never_comes(make: Any) -> None:
    one, _ = make(2, 0.2)
    with pytest.raises(
        errors.CollectiveTimeout, match=r"rank 1 did not come within 0\.2 s.*rank 1: not yet here, MISSING"
    ):
        one.exchange("sum", np.zeros(1))


def test_what_is_done_once_is_done_before_anyone_goes_on(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    monkeypatch.setattr(threading, "main_thread", threading.current_thread)

    def once(member: Group) -> int:
        def do() -> None:
            time.sleep(0.05)
            member.once("within", lambda: done.append(member.rank))

        member.once("writing", do)
        return len(done)

    assert together(make(3), once) == [1, 1, 1] and done == [0]

    def fails() -> None:
        raise OSError(28, "No space left on device")

    first, *others = together(make(3), lambda member: member.once("writing", fails))
    assert isinstance(first, OSError)
    for error in others:
        assert isinstance(error, errors.ReplicaError) and "rank 0 fails: OSError" in str(error)


def main() -> None:
    """More numbers of processes than a run of the tests has time for."""
    expected = run(1, "train.py").stdout
    assert len(expected.splitlines()) == 5
    for count in (2, 3, 4, 5, 8):
        for size in ("1", "100", "1000000"):
            result = run(count, "train.py", size)
            print(count, size, "same" if result.stdout == expected else f"DIFFERS: {result.stdout}{result.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        for before, after in itertools.product((1, 2, 3), repeat=2):
            check_files(Path(folder) / f"{before}-{after}", before, after)
            print(f"files of {before}, read by {after}: same")


if __name__ == "__main__":
    main()
