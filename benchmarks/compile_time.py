"""How long the first call of a large program takes: with nothing on disk, and with everything there.

    python benchmarks/compile_time.py [--json] [--only WORDS] [--repeat N]

Every sample is a fresh process, which has compiled and run another function before (what is loaded once is not the
program's).  ``cold`` is its first call with an empty disk cache, ``disk`` that with what ``cold`` left, ``call`` the
calls after it.  ``nodes`` are those of the traced graph.  Times are seconds of the processor, of which nothing waits
for anything, and the least of the samples: whatever else runs on the machine only makes them longer.

chain N        N elementwise ops, one after another, on 64 floats: few kernels, long ones.
loop N         an unrolled loop of N nodes: matrix-vector products, sums and elementwise ops, the same at each step.
mixed N        N ops whose kernels are small and differ: shapes, slices, literals and ops vary.
lstm           a step of training a character model (one layer of 64, batch 16, 50 unrolled steps): loss and gradients.
cholesky       a factor of 100 x 100 column by column, the log-determinant; and with its gradient.
rk4            100 steps of the classic method of Runge and Kutta for two equations; and with its gradient.
"""

from __future__ import annotations

import argparse
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

import hybridflow as hf  # noqa: E402

Built = tuple[Callable[..., Any], tuple[Any, ...]]
_rng = np.random.default_rng(0)


def _floats(*shape: int) -> hf.Tensor:
    return hf.asarray((_rng.normal(size=shape) / 4).astype(np.float32))


def with_gradient(function: Callable[..., Any], count: int = 1) -> Callable[..., Any]:
    """The function, which gives a number, and its gradient in its first ``count`` arguments."""

    def both(*arguments: Any) -> Any:
        with hf.GradientTape() as tape:
            for x in arguments[:count]:
                tape.watch(x)
            value = function(*arguments)
        return value, tape.gradient(value, list(arguments[:count]))

    return both


def chain(n: int) -> Built:
    def run(x: hf.Tensor) -> hf.Tensor:
        y = x
        for k in range(n):
            y = (hf.tanh(y), y + x, y * 0.5, hf.maximum(y, x))[k % 4]
        return y

    return run, (_floats(64),)


def loop(n: int) -> Built:
    def run(x: hf.Tensor, w: hf.Tensor, u: hf.Tensor) -> hf.Tensor:
        h = x
        for _ in range(n // 5):
            h = hf.tanh(w @ h) / (1.0 + hf.sum(h * u))
        return h

    return run, (_floats(16), _floats(16, 16), _floats(16))


def mixed(n: int) -> Built:
    def run(x: hf.Tensor) -> hf.Tensor:
        parts = []
        for k in range(n // 5):
            size = 3 + k % 61
            y = x[k % 40 : k % 40 + size] * (0.5 + k)
            y = hf.exp(y) if k % 3 else hf.cumulative_sum(y)
            parts.append(hf.sum(y + k % 7, axis=0))
        return hf.stack(parts)

    return run, (_floats(128),)


def lstm() -> Built:
    steps, batch, width, letters = 50, 16, 64, 40
    text = _rng.integers(0, letters, (steps + 1, batch))
    eye = np.eye(letters, dtype=np.float32)
    inputs, targets = hf.asarray(eye[text[:-1]]), hf.asarray(eye[text[1:]])

    def loss(w: hf.Tensor, u: hf.Tensor, b: hf.Tensor, v: hf.Tensor, xs: hf.Tensor, ys: hf.Tensor) -> hf.Tensor:
        h = c = hf.zeros((batch, width))
        total = hf.zeros(())
        for t in range(steps):
            gates = xs[t] @ w + h @ u + b
            i, f, o = (hf.sigmoid(gates[:, k * width : (k + 1) * width]) for k in range(3))
            c = f * c + i * hf.tanh(gates[:, 3 * width :])
            h = o * hf.tanh(c)
            total = total - hf.mean(hf.sum(hf.nn.log_softmax(h @ v) * ys[t], axis=-1))
        return total

    weights = _floats(letters, 4 * width), _floats(width, 4 * width), _floats(4 * width), _floats(width, letters)
    return with_gradient(loss, 4), (*weights, inputs, targets)


def _cholesky(a: hf.Tensor) -> hf.Tensor:
    n = a.shape[0]
    rows = hf.arange(n)
    total = hf.zeros((), a.dtype)
    for j in range(n):
        root = hf.sqrt(a[j, j])
        column = hf.where(rows >= j, a[:, j] / root, 0.0)
        a = a - column[:, None] * column[None, :]
        total = total + hf.log(root)
    return 2.0 * total


def _positive(n: int) -> hf.Tensor:
    x = _rng.normal(size=(n, n))
    return hf.asarray(x @ x.T + n * np.eye(n))


def cholesky() -> Built:
    return _cholesky, (_positive(100),)


def cholesky_gradient() -> Built:
    return with_gradient(_cholesky), (_positive(100),)


def _rk4(y: hf.Tensor, steps: int = 100, h: float = 0.01) -> hf.Tensor:
    def slope(y: hf.Tensor) -> hf.Tensor:
        place, speed = y[0], y[1]
        return hf.stack([speed, 2.0 * (1.0 - place * place) * speed - place])

    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def rk4() -> Built:
    return _rk4, (_floats(2),)


def rk4_gradient() -> Built:
    return with_gradient(lambda y: hf.sum(_rk4(y))), (_floats(2),)


PROGRAMS: dict[str, Callable[[], Built]] = {
    **{f"chain {n}": lambda n=n: chain(n) for n in (1000, 5000, 20000)},
    **{f"loop {n}": lambda n=n: loop(n) for n in (1000, 5000, 20000)},
    **{f"mixed {n}": lambda n=n: mixed(n) for n in (1000, 5000)},
    "lstm, gradient": lstm,
    "cholesky": cholesky,
    "cholesky, gradient": cholesky_gradient,
    "rk4": rk4,
    "rk4, gradient": rk4_gradient,
}


def sample(name: str) -> dict[str, float]:
    """In this process: seconds of the first call, and of the quickest of some others; how large the program is."""
    warm_up = hf.function(lambda x: hf.sum(hf.tanh(x @ x)))
    warm_up(_floats(4, 4))
    function, arguments = PROGRAMS[name]()
    compiled = hf.function(function)
    start = time.process_time()
    compiled(*arguments)
    first = time.process_time() - start
    calls = []
    for _ in range(20):
        start = time.perf_counter()
        compiled(*arguments)
        calls.append(time.perf_counter() - start)
    concrete = compiled.get_concrete_function(*arguments)
    return {
        "first": first,
        "call": min(calls),
        "nodes": len(concrete.graph.nodes),
        "kernels": len(compiled.kernels()),
        "trace": concrete.trace_ms / 1000,
    }


def measure(name: str, repeat: int) -> dict[str, float]:
    """The least times of ``repeat`` processes with an empty disk cache, each followed by one that finds it full."""
    cold, disk = [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            for found in (cold, disk):
                environment = {**os.environ, "HF_CACHE_DIR": folder}
                command = [sys.executable, __file__, "--sample", name]
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                if done.returncode:
                    raise SystemExit(f"{name}: {done.stderr}")
                found.append(json.loads(done.stdout.splitlines()[-1]))
    best = min(cold, key=lambda s: s["first"])
    return {
        "cold": best["first"],
        "disk": min(s["first"] for s in disk),
        "trace": min(s["trace"] for s in cold + disk),
        "call": min(s["call"] for s in cold + disk),
        "nodes": best["nodes"],
        "kernels": best["kernels"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="programs whose name contains one of these words")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--sample", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sample:
        print(json.dumps(sample(options.sample)))
        return
    words = options.only.split(",")
    if not options.json:
        titles = (f"{title:>8}" for title in ("nodes", "kernels", "cold s", "ms/node", "disk s", "trace s", "call ms"))
        print(f"{'program':20}", *titles)
    for name in PROGRAMS:
        if not any(word in name for word in words):
            continue
        found = measure(name, options.repeat)
        if options.json:
            print(json.dumps({"program": name, **found}), flush=True)
            continue
        numbers = [f"{found['nodes']:8}", f"{found['kernels']:8}"]
        each, call = 1000 * found["cold"] / found["nodes"], 1000 * found["call"]
        numbers += [f"{n:8.2f}" for n in (found["cold"], each, found["disk"], found["trace"])]
        print(f"{name:20}", *numbers, f"{call:8.3f}", flush=True)


if __name__ == "__main__":
    main()
