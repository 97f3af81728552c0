"""Whether one thread's first call waits for another's: two threads whose functions are compiled at once, and one whose
machine code is on disk beside one that compiles.

    python benchmarks/concurrent_first_calls.py [--json] [--repeat N] [--threads N]

``at once``: two functions of about the same length, each called first in a thread of its own, over the slower of the
two alone.  ``beside``: the first call of a small function that another process has left on disk, while a thread
compiles products of many shapes; over the same call alone.  Each sample is a process, the arrangements in turns, and
what is shown are medians, since what a call waits for differs from sample to sample.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _ROOT)

ARRANGEMENTS = ("first", "second", "at once", "small", "beside")


def _functions() -> dict[str, Callable[[], Any]]:
    """First calls by name."""
    import hybridflow as hf

    x = hf.ones((70, 90))

    @hf.function
    def first(x: hf.Tensor) -> hf.Tensor:
        y = hf.nn.softmax(hf.tanh(x @ hf.matrix_transpose(x)))
        return hf.sort(y, axis=0) + hf.cumulative_sum(y, axis=1)

    @hf.function
    def second(x: hf.Tensor) -> hf.Tensor:
        y = hf.nn.softmax(hf.sin(hf.matrix_transpose(x) @ x))
        return hf.sort(y, axis=1) + hf.cumulative_sum(y, axis=0)

    @hf.function
    def small(x: hf.Tensor) -> hf.Tensor:
        return hf.exp(x) * 2.0 + 1.0

    @hf.function
    def warm(x: hf.Tensor) -> hf.Tensor:
        return hf.sum(x * 3.0)

    def many() -> None:
        other = os.getpid() % 500  # than what is on disk
        for k in range(12):
            y = hf.ones((20 + k, 31 + other))
            hf.function(lambda y: y @ hf.matrix_transpose(y))(y)

    warm(x)
    return {"first": lambda: first(x), "second": lambda: second(x), "small": lambda: small(x), "many": many}


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _sample(arrangement: str) -> float:
    """Seconds, in this process."""
    calls = _functions()
    if arrangement == "beside":
        thread = threading.Thread(target=calls["many"])
        thread.start()
        time.sleep(0.1)  # until it compiles
        seconds = _timed(calls["small"])
        thread.join()
        return seconds
    if arrangement == "at once":
        threads = [threading.Thread(target=calls[name]) for name in ("first", "second")]
        return _timed(lambda: [*map(threading.Thread.start, threads), *map(threading.Thread.join, threads)])
    return _timed(calls[arrangement])


def _measured(repeat: int, threads: int | None) -> dict[str, float]:
    samples: dict[str, list[float]] = {name: [] for name in ARRANGEMENTS}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(repeat + 1):
            for name in ARRANGEMENTS:
                environment = {**os.environ, "HF_CACHE_DIR": folder if name in ("small", "beside") else "off"}
                if threads is not None:
                    environment["HF_NUM_THREADS"] = str(threads)
                command = [sys.executable, __file__, "--sample", name]
                out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
                if number:  # the first round fills the disk
                    samples[name].append(float(out))
    return {name: statistics.median(found) for name, found in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, help="of each program, as HF_NUM_THREADS")
    parser.add_argument("--sample", choices=ARRANGEMENTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sample:
        print(_sample(given.sample))
        return
    found = _measured(given.repeat, given.threads)
    ratios = {
        "at once": found["at once"] / max(found["first"], found["second"]),
        "beside": found["beside"] / found["small"],
    }
    if given.json:
        print(json.dumps({"seconds": found, "ratios": ratios}))
        return
    for name, seconds in found.items():
        ratio = f"{ratios[name]:6.2f}" if name in ratios else ""
        print(f"{name:8} {seconds * 1e3:8.1f} ms {ratio}")


if __name__ == "__main__":
    main()
