"""One process of a run on a cluster, watched from beside it: what it prints, and how it ends.

An engine places a watcher where the process is to be; it knows nothing of what places it there.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

PARENT = "HF_PARENT"  # the environment variable that says whom the process ends with
_SOON = 0.2  # seconds after which who asks is answered, be there news or not


class News(NamedTuple):
    """What a process has printed since it was asked last, and its exit code when it has ended."""

    out: bytes
    err: bytes
    code: int | None


class Watcher:
    """It starts the process, and says what becomes of it.  The process ends with it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._printed: list[list[bytes]] = [[], []]
        self._open = 0  # of its pipes
        self._news = threading.Condition()

    def address(self) -> tuple[str, int]:
        """Where rank 0, if it is this one, can listen."""
        host = self.host()
        with socket.create_server((host, 0)) as server:
            return host, int(server.getsockname()[1])

    def host(self) -> str:
        """This machine, as others reach it."""
        return "127.0.0.1"

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        """Start ``hybridflow run`` with these arguments."""
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"there is no folder {folder!r} on {socket.gethostname()}")
        variables = {**os.environ, **environment, PARENT: str(os.getpid())}
        command = [sys.executable, "-m", "hybridflow", "run", *arguments]
        self._process = subprocess.Popen(
            command, env=variables, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for pipe, printed in zip((self._process.stdout, self._process.stderr), self._printed):
            assert pipe is not None
            with self._news:
                self._open += 1
            threading.Thread(target=self._read, args=(pipe, printed), daemon=True).start()

    def _read(self, pipe: IO[bytes], printed: list[bytes]) -> None:
        try:
            with pipe:
                while data := os.read(pipe.fileno(), 1 << 16):
                    with self._news:
                        printed.append(data)
                        self._news.notify()
        finally:
            with self._news:
                self._open -= 1
                self._news.notify()

    def news(self) -> News:
        """What there is since the last time, after a short wait."""
        assert self._process is not None
        with self._news:
            if not any(self._printed) and self._open:
                self._news.wait(_SOON)
            has_ended = not self._open  # then what is taken now is the last
            out, err = (b"".join(printed) for printed in self._printed)
            for printed in self._printed:
                printed.clear()
        return News(out, err, self._process.wait() if has_ended else None)

    def tell(self) -> None:
        """Ask the process to end: it saves what it needs to go on, if it can."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """End the process."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
