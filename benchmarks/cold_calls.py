"""What calls cost in a process that finds nothing on disk: the time per call over its first seconds, op by op.

    python benchmarks/cold_calls.py [--json] [--only WORDS] [--seconds S] [--warm]

Each op is called in a loop by a process of its own.  ``first`` is its first call, which compiles; the columns behind
it are medians of the calls in that part of the time after it, ``longest`` is the longest of these calls, and ``native``
is when calls had come down to three times what the last ones take.  ``loop`` is the share of the time that the loop
had a processor (the machine may do other things).  With ``--warm`` the processes share a disk cache that was filled
before.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _ROOT)

import numpy as np  # noqa: E402

EDGES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)  # seconds, between which calls are counted together
CALLS = 8  # that are timed at once

OPS = (
    "x + 1",
    "x * y",
    "x @ x",
    "x[1:]",
    "exp",
    "maximum",
    "sum",
    "softmax",
    "reshape",
    "sort",
    "cumulative_sum",
    "concat",
    "take",
    "zeros",
    "function",
    "function of two",
    "gradient",
)


def call_of(name: str) -> Callable[[], Any]:
    """The call that is repeated."""
    import hybridflow as hf

    x = hf.asarray(np.linspace(0.5, 1.5, 16, dtype=np.float32).reshape(4, 4))
    y, indices = x * 0.5, hf.asarray(np.array([2, 0]))
    function = hf.function(lambda x: hf.exp(x) * 2.0 + 1.0)
    of_two = hf.function(lambda x, y: (x @ y, hf.sum(x)))

    def gradient() -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            loss = hf.sum(x * x)
        return tape.gradient(loss, x)

    calls: dict[str, Callable[[], Any]] = {
        "x + 1": lambda: x + 1,
        "x * y": lambda: x * y,
        "x @ x": lambda: x @ x,
        "x[1:]": lambda: x[1:],
        "exp": lambda: hf.exp(x),
        "maximum": lambda: hf.maximum(x, y),
        "sum": lambda: hf.sum(x, axis=0),
        "softmax": lambda: hf.nn.softmax(x),
        "reshape": lambda: hf.reshape(x, (2, 8)),
        "sort": lambda: hf.sort(x),
        "cumulative_sum": lambda: hf.cumulative_sum(x, axis=1),
        "concat": lambda: hf.concat([x, y], axis=0),
        "take": lambda: hf.take(x, indices, axis=0),
        "zeros": lambda: hf.zeros((4, 4)),
        "function": lambda: function(x),
        "function of two": lambda: of_two(x, y),
        "gradient": gradient,
    }
    assert tuple(calls) == OPS
    return calls[name]


def sample(name: str, seconds: float) -> dict[str, Any]:
    """In this process: what the calls of one op take."""
    call, clock = call_of(name), time.perf_counter
    begin = clock()
    call()
    first = clock() - begin
    times, ends = [], []
    begin, busy, now = clock(), time.thread_time(), 0.0
    while now < seconds:
        start = clock()
        for _ in range(CALLS):
            call()
        now = clock() - begin
        ends.append(now)
        times.append((clock() - start) / CALLS)
    share = (time.thread_time() - busy) / now
    taken, at = np.array(times), np.array(ends)
    parts = [taken[(at >= low) & (at < high)] for low, high in itertools.pairwise(EDGES)]
    last = float(np.median(taken[-max(len(taken) // 10, 1) :]))
    smooth = [(float(np.median(taken[k : k + 9])), k) for k in range(0, len(taken), 9)]
    slow = [k for median, k in smooth if median > 3 * last]
    return {
        "first": first,
        "parts": [float(np.median(part)) if len(part) else None for part in parts],
        "longest": float(taken.max()) * CALLS,
        "last": last,
        "native": float(at[min(slow[-1] + 9, len(at) - 1)]) if slow else 0.0,
        "share": share,
    }


def sampled(name: str, seconds: float, folder: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--sample", name, "--seconds", str(seconds)]
    done = subprocess.run(command, env={**os.environ, "HF_CACHE_DIR": folder}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print seconds as JSON")
    parser.add_argument("--only", default="", help="ops whose name contains one of these words, separated by commas")
    parser.add_argument("--seconds", type=float, default=EDGES[-1])
    parser.add_argument("--warm", action="store_true", help="have everything on disk")
    parser.add_argument("--sample", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sample:
        print(json.dumps(sample(options.sample, options.seconds)))
        return
    found = {}
    for name in OPS:
        if any(word in name for word in options.only.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                if options.warm:
                    sampled(name, options.seconds, folder)
                found[name] = sampled(name, options.seconds, folder)
    if options.json:
        print(json.dumps(found))
        return
    columns = [f"-{high:g} s" for high in EDGES[1:]]
    print(f"{'op':16} {'first':>9}", *(f"{column:>9}" for column in columns), "  longest  native     loop")
    for name, row in found.items():
        parts = [f"{1e6 * part:6.1f} us" if part is not None else "        -" for part in row["parts"]]
        end = f"{1e3 * row['longest']:6.1f} ms {row['native']:5.2f} s {100 * row['share']:6.0f} %"
        print(f"{name:16} {1e3 * row['first']:6.1f} ms", *parts, end)


if __name__ == "__main__":
    main()
