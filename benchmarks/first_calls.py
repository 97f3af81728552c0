"""How long the first call of ordinary small programs takes, with nothing on disk, against JAX's ``jit``; and with what
that left on disk.

    python benchmarks/first_calls.py [--json] [--only WORDS] [--repeat N]

Each side runs in processes of its own, in turns (A B A B ...), which have compiled and run another function before and
then make the programs' first calls one after another.  ``first`` is a first call by the clock, ``cpu`` the same in
seconds of the processor: JAX compiles on several threads, and what else the machine does lengthens the first only.
``from disk`` is hybridflow in another process, which finds there what the one before has compiled.
All are the least of the samples.  A side that is not installed is left out (``pip install '.[peers]'``).
"""

from __future__ import annotations

import argparse
import importlib.util
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

Program = Callable[..., Any]
Shapes = tuple[tuple[int, ...], ...]


class Side:
    """What a program is written with: a namespace of array functions, and what the two sides call by other names."""

    def __init__(self, name: str) -> None:
        if name == "hybridflow":
            import hybridflow as hf

            self.xp: Any = hf
            self.compiled = hf.function
            self.softmax, self.log_softmax = hf.nn.softmax, hf.nn.log_softmax
            self.asarray = hf.asarray
        else:
            import jax

            self.xp = jax.numpy
            self.compiled = jax.jit
            self.softmax, self.log_softmax = jax.nn.softmax, jax.nn.log_softmax
            self.asarray = jax.numpy.asarray
        self.name = name

    def finished(self, result: Any) -> None:
        """Wait for a result: JAX gives it back before it is there."""
        if self.name == "jax":
            import jax

            jax.block_until_ready(result)

    def with_gradient(self, loss: Program, count: int) -> Program:
        """The loss and its gradients in its first ``count`` arguments."""
        if self.name == "jax":
            import jax

            return jax.value_and_grad(loss, argnums=tuple(range(count)))

        def both(*arguments: Any) -> Any:
            with self.xp.GradientTape() as tape:
                for x in arguments[:count]:
                    tape.watch(x)
                value = loss(*arguments)
            return value, tape.gradient(value, list(arguments[:count]))

        return both


def chain(side: Side) -> Program:
    xp = side.xp

    def run(x: Any) -> Any:
        for _ in range(10):
            x = xp.tanh(x) * 1.01 + 0.1
        return x

    return run


def normalized(side: Side) -> Program:
    xp = side.xp

    def run(x: Any, scale: Any, offset: Any) -> Any:
        centred = x - xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean(centred * centred, axis=-1, keepdims=True)
        return centred / xp.sqrt(variance + 1e-5) * scale + offset

    return run


def mlp(side: Side) -> Program:
    return lambda x, w, b, v, c: side.softmax(side.xp.maximum(x @ w + b, 0.0) @ v + c)


def mlp_step(side: Side) -> Program:
    def loss(w: Any, b: Any, v: Any, c: Any, x: Any, y: Any) -> Any:
        scores = side.log_softmax(side.xp.tanh(x @ w + b) @ v + c)
        return -side.xp.mean(side.xp.sum(scores * y, axis=-1))

    return side.with_gradient(loss, 4)


def attention(side: Side) -> Program:
    def run(q: Any, k: Any, v: Any) -> Any:
        return side.softmax(q @ side.xp.permute_dims(k, (0, 2, 1)) / 5.657) @ v

    return run


def heat(side: Side) -> Program:
    def run(u: Any) -> Any:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u[1:-1, 1:-1] + 0.1 * (around - 4.0 * u[1:-1, 1:-1])

    return run


def blur(side: Side) -> Program:
    weights = 0.1, 0.2, 0.4, 0.2, 0.1

    def run(x: Any) -> Any:
        total = weights[0] * x[:-4]
        for k in range(1, 5):
            total = total + weights[k] * x[k : x.shape[0] - 4 + k]
        return total

    return run


def standardized(side: Side) -> Program:
    return lambda x: (x - side.xp.mean(x, axis=0)) / (side.xp.std(x, axis=0) + 1e-6)


def scaled(side: Side) -> Program:
    return lambda x: (x - side.xp.min(x)) / (side.xp.max(x) - side.xp.min(x))


def distances(side: Side) -> Program:
    def run(x: Any) -> Any:
        difference = x[:, None] - x[None]
        return side.xp.sqrt(side.xp.sum(difference * difference, axis=-1))

    return run


def nearest(side: Side) -> Program:
    xp = side.xp

    def run(x: Any, centres: Any) -> Any:
        squares = xp.sum(centres * centres, axis=-1) - 2.0 * (x @ centres.T)
        return xp.argmin(squares, axis=-1)

    return run


def regression(side: Side) -> Program:
    def loss(w: Any, b: Any, x: Any, y: Any) -> Any:
        return side.xp.mean((x @ w + b - y) ** 2)

    both = side.with_gradient(loss, 2)

    def step(w: Any, b: Any, x: Any, y: Any) -> Any:
        _, (dw, db) = both(w, b, x, y)
        return w - 0.1 * dw, b - 0.1 * db

    return step


def cell(side: Side) -> Program:
    xp = side.xp

    def run(x: Any, h: Any, w: Any, u: Any) -> Any:
        z = 1.0 / (1.0 + xp.exp(-(x @ w[:, :64] + h @ u[:, :64])))
        r = 1.0 / (1.0 + xp.exp(-(x @ w[:, 64:128] + h @ u[:, 64:128])))
        new = xp.tanh(x @ w[:, 128:] + (r * h) @ u[:, 128:])
        return (1.0 - z) * h + z * new

    return run


def pooled(side: Side) -> Program:
    return lambda x: side.xp.max(side.xp.reshape(x, (8, 16, 2, 16, 2, 16)), axis=(2, 4))


def oscillator(side: Side) -> Program:
    xp = side.xp

    def slope(y: Any) -> Any:
        return xp.stack([y[1], 2.0 * (1.0 - y[0] * y[0]) * y[1] - y[0]])

    def run(y: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + 0.005 * k1)
        k3 = slope(y + 0.005 * k2)
        k4 = slope(y + 0.01 * k3)
        return y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return run


def joined(side: Side) -> Program:
    return lambda x, y: side.xp.sum(side.xp.concat([side.xp.sin(x), y * y], axis=1), axis=1)


def returns(side: Side) -> Program:
    xp = side.xp

    def run(prices: Any) -> Any:
        steps = xp.log(prices[1:] / prices[:-1])
        return xp.mean(steps), xp.std(steps), xp.max(xp.abs(steps))

    return run


PROGRAMS: dict[str, tuple[Callable[[Side], Program], Shapes]] = {
    "30-op chain": (chain, ((1000,),)),
    "softmax, 1000x10": (lambda side: side.softmax, ((1000, 10),)),
    "softmax, 64x1000": (lambda side: side.softmax, ((64, 1000),)),
    "layer norm": (normalized, ((64, 512), (512,), (512,))),
    "mlp": (mlp, ((60, 784), (784, 128), (128,), (128, 10), (10,))),
    "mlp, loss and gradient": (mlp_step, ((784, 128), (128,), (128, 10), (10,), (60, 784), (60, 10))),
    "attention": (attention, ((8, 64, 32), (8, 64, 32), (8, 64, 32))),
    "heat, 2-D stencil": (heat, ((256, 256),)),
    "blur, 1-D stencil": (blur, ((4096,),)),
    "sum of squares": (lambda side: lambda x: side.xp.sum(x * x), ((1 << 18,),)),
    "column sums": (lambda side: lambda x: side.xp.sum(x, axis=0), ((1000, 1000),)),
    "row sums": (lambda side: lambda x: side.xp.sum(x, axis=1), ((1000, 1000),)),
    "standardized columns": (standardized, ((1000, 20),)),
    "scaled to 0..1": (scaled, ((1000,),)),
    "cumsum": (lambda side: side.xp.cumsum if side.name == "jax" else side.xp.cumulative_sum, ((1000,),)),
    "sort": (lambda side: side.xp.sort, ((1000,),)),
    "matmul, bias": (lambda side: lambda x, w, b: x @ w + b, ((64, 64), (64, 64), (64,))),
    "matrix times vector": (lambda side: lambda x, v: x @ v, ((200, 300), (300,))),
    "distances": (distances, ((200, 3),)),
    "nearest centres": (nearest, ((500, 16), (10, 16))),
    "regression step": (regression, ((16,), (), (200, 16), (200,))),
    "gated cell": (cell, ((16, 32), (16, 64), (32, 192), (64, 192))),
    "max pooling": (pooled, ((8, 32, 32, 16),)),
    "runge-kutta step": (oscillator, ((2,),)),
    "joined arrays": (joined, ((100, 30), (100, 40))),
    "log returns": (returns, ((1000,),)),
}


def sample(side: Side, words: list[str]) -> dict[str, tuple[float, float]]:
    """In this process: seconds of each program's first call, by the clock and of the processor."""
    rng = np.random.default_rng(0)

    def argument(shape: tuple[int, ...]) -> Any:
        return side.asarray((rng.random(shape) + 0.5).astype(np.float32))

    # What is compiled once for the whole library, such as the native code of operators, of tapes and of threads, is no
    # program's.
    warm_up = side.with_gradient(lambda x: side.xp.sum(side.xp.tanh(x @ x) - x), 1)
    side.finished(side.compiled(warm_up)(argument((4, 4))))
    side.finished(side.compiled(lambda x: side.xp.sum(2 * x, axis=0))(argument((1000, 500))))
    found = {}
    for name, (build, shapes) in PROGRAMS.items():
        if not any(word in name for word in words):
            continue
        program, arguments = build(side), [argument(shape) for shape in shapes]
        start, busy = time.perf_counter(), time.process_time()
        side.finished(side.compiled(lambda *given, program=program: program(*given))(*arguments))
        found[name] = time.perf_counter() - start, time.process_time() - busy
    return found


def sampled(side: str, only: str, folder: str) -> dict[str, tuple[float, float]]:
    """The same of a fresh process that has that folder for its disk cache."""
    command = [sys.executable, __file__, "--sample", side, "--only", only]
    done = subprocess.run(command, env={**os.environ, "HF_CACHE_DIR": folder}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{side}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def least(samples: list[dict[str, tuple[float, float]]]) -> dict[str, tuple[float, ...]]:
    """The least first call and the least time of the processor of each program."""
    return {name: tuple(map(min, zip(*(found[name] for found in samples), strict=True))) for name in samples[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print seconds as JSON")
    parser.add_argument("--only", default="", help="programs whose name contains one of these words")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sample", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sample:
        print(json.dumps(sample(Side(options.sample), options.only.split(","))))
        return
    has_peer = importlib.util.find_spec("jax") is not None
    sides = ["hybridflow", "from disk", *(["jax"] if has_peer else [])]
    taken: dict[str, list[dict[str, tuple[float, float]]]] = {side: [] for side in sides}
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            for side in sides:
                taken[side].append(sampled("jax" if side == "jax" else "hybridflow", options.only, folder))
    found = {side: least(samples) for side, samples in taken.items()}
    if options.json:
        print(json.dumps(found))
        return
    columns = [f"{side} {what}" for side in sides for what in ("first", "cpu")]
    print(f"{'program':24}", *(f"{column:>16}" for column in columns), "   ratio of firsts" if has_peer else "")
    for name, ours in found["hybridflow"].items():
        times = [1000 * seconds for side in sides for seconds in found[side][name]]
        ratio = f"{ours[0] / found['jax'][name][0]:10.2f}" if has_peer else ""
        print(f"{name:24}", *(f"{ms:13.1f} ms" for ms in times), ratio)


if __name__ == "__main__":
    main()
