"""``hybridflow serve`` with its client, over loopback in a network namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hybridflow as hf

PROGRAM = """
import os, signal, subprocess, sys, time
import numpy as np
import hybridflow as hf
server = subprocess.Popen([sys.executable, "-m", "hybridflow", "serve", "digits=" + sys.argv[1], "--port", "8123"])
try:
    client = hf.serving.Client("http://127.0.0.1:8123")
    until = time.monotonic() + 300
    while not client.is_ready():
        assert server.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    expected = hf.saved.load(sys.argv[1])
    for rows in (1, 2, 7):
        x = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
        assert client.digits(x).tobytes() == expected(x).numpy().tobytes()
    for wrong in (np.ones((1, 4), np.float32), np.ones((1, 3), complex)):
        try:
            client.digits(wrong)
        except hf.errors.ArgumentError:
            continue
        raise AssertionError("it was taken")
    try:
        client.infer("other", 1.0)
    except hf.errors.HybridflowError as error:
        assert "there is no model" in str(error)
    server.send_signal(signal.SIGTERM)
    print("ended", server.wait(300))
finally:
    server.kill()
"""


def _namespace() -> list[str] | None:
    """How a program is run where loopback alone can be reached; None where that cannot be had."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return None
    tried = ["unshare", "-rn", "sh", "-c", "ip link set lo up"]
    if subprocess.run(tried, capture_output=True).returncode:
        return None
    return ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def test_a_server_and_its_client(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    prefix = _namespace()
    if prefix is None:
        pytest.skip("there is no network namespace of one's own here")
    path = tmp_path / "digits.hf"
    hf.saved.save(hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)]), path)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert "ended -15" in done.stdout  # the signal, once all was answered


def test_the_command_says_what_is_wrong() -> None:
    from hybridflow.__main__ import main

    assert main(["serve", "/nothing/there.hf"]) == 2
    pytest.importorskip("uvicorn")
    assert main(["serve", __file__, "--port", "65536"]) == 2


def test_a_connection_whose_answer_was_not_read_is_used_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither after Ctrl-C, nor in the child of a fork, which would read what its parent asked for."""
    client = hf.serving.Client("http://127.0.0.1:1")

    class Interrupted:
        def request(self, *_: object) -> None: ...

        def getresponse(self) -> None:
            raise KeyboardInterrupt

        def close(self) -> None: ...

    client._local.connection, client._local.process = Interrupted(), os.getpid()
    with pytest.raises(KeyboardInterrupt):
        client.metadata("a")
    first = client._connection()
    assert not isinstance(first, Interrupted)
    assert client._connection() is first
    pid = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: pid)
    assert client._connection() is not first
