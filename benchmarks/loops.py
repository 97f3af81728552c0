"""Loops inside of compiled functions, next to the same loops unrolled and to JAX's.

    python benchmarks/loops.py [--rounds 30] [WORDS]

Each line is a median over rounds in which the programs take turns (A B A B ...), with the quartiles.  JAX takes part
where it can be imported, with one thread.

scalar          10 000 turns of a ``while_loop`` over two numbers: nanoseconds a turn.
lorenz          the Lorenz system by Runge, Kutta and Fehlberg with steps that adapt (about 1200 of them): milliseconds.
lstm            50 steps of 32 sequences, 64 inputs, 128 units: ``scan``, a ``for`` over the rows of a tensor, and the
                unrolled program, milliseconds.
rnn gradient    32 steps of a tanh cell, 16 sequences of 32 units, with respect to both matrices: likewise.
conversion      What it takes to convert and trace a function of 200 lines for the first time, milliseconds.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None

Program = Callable[[], Any]
_TABLEAU = (
    (),
    (1 / 4,),
    (3 / 32, 9 / 32),
    (1932 / 2197, -7200 / 2197, 7296 / 2197),
    (439 / 216, -8.0, 3680 / 513, -845 / 4104),
    (-8 / 27, 2.0, -3544 / 2565, 1859 / 4104, -11 / 40),
)
_FIFTH = (16 / 135, 0.0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55)
_FOURTH = (25 / 216, 0.0, 1408 / 2565, 2197 / 4104, -1 / 5, 0.0)


def _rates(s: Any) -> tuple[Any, Any, Any]:
    x, y, z = s
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - (8.0 / 3.0) * z


def _along(s: Any, h: Any, weights: Any, rates: Any) -> tuple[Any, ...]:
    found = []
    for k in range(3):
        value = s[k]
        for weight, rate in zip(weights, rates):
            if weight:
                value = value + (h * weight) * rate[k]
        found.append(value)
    return tuple(found)


def _step(xp: Any, t: Any, s: Any, h: Any, n: Any, end: float, tolerance: float) -> tuple[Any, ...]:
    h = xp.minimum(h, end - t)
    rates: list[Any] = []
    for weights in _TABLEAU:
        rates.append(_rates(_along(s, h, weights, rates)))
    better, worse = _along(s, h, _FIFTH, rates), _along(s, h, _FOURTH, rates)
    error = xp.abs(better[0] - worse[0])
    for a, b in zip(better[1:], worse[1:]):
        error = xp.maximum(error, xp.abs(a - b))
    error = error + 1e-30
    good = error <= tolerance
    factor = xp.minimum(xp.maximum(0.9 * (tolerance / error) ** 0.2, 0.2), 5.0)
    return xp.where(good, t + h, t), tuple(xp.where(good, a, b) for a, b in zip(better, s)), h * factor, n + 1


END, TOLERANCE = 12.3, 1e-7


def scalar() -> dict[str, Program]:
    n, x = hf.asarray(10_000), hf.asarray(1.0)
    ours = hf.function(lambda x, n: hf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 0.999 + 0.5), (0, x))[1])
    programs: dict[str, Program] = {"hybridflow": lambda: ours(x, n)}
    if jax is not None:
        theirs = jax.jit(
            lambda x, n: jax.lax.while_loop(
                lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * np.float32(0.999) + np.float32(0.5)), (0, x)
            )
        )
        programs["jax"] = lambda: jax.block_until_ready(theirs(np.float32(1), 10_000))
    return programs


def lorenz() -> dict[str, Program]:
    ours = hf.function(
        lambda t, s: hf.while_loop(
            lambda t, s, h, n: t < END, lambda t, s, h, n: _step(hf, t, s, h, n, END, TOLERANCE), (t, s, t + 0.01, 0)
        )
    )
    start = hf.asarray(0.0, dtype=hf.float64), tuple(hf.ones((), dtype=hf.float64) for _ in range(3))
    print(f"lorenz: {int(ours(*start)[3])} steps")
    programs: dict[str, Program] = {"hybridflow": lambda: ours(*start)}
    if jax is not None:
        theirs = jax.jit(
            lambda t, s: jax.lax.while_loop(
                lambda c: c[0] < END, lambda c: _step(jnp, *c, END, TOLERANCE), (t, s, t + 0.01, 0)
            )
        )
        programs["jax"] = lambda: jax.block_until_ready(theirs(0.0, (1.0, 1.0, 1.0)))
    return programs


def _cell(s: Any, x: Any, w: Any, u: Any, b: Any) -> tuple[Any, Any]:
    i, f, o, g = hf.split(x @ w + s[0] @ u + b, 4, axis=-1)
    c = hf.sigmoid(f) * s[1] + hf.sigmoid(i) * hf.tanh(g)
    return hf.sigmoid(o) * hf.tanh(c), c


def _drawn(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [hf.asarray(rng.normal(0, 0.3, shape).astype(np.float32)) for shape in shapes]


def lstm() -> dict[str, Program]:
    x, w, u, b = _drawn((50, 32, 64), (64, 512), (128, 512), (512,))
    zero = hf.zeros((32, 128))

    def unrolled(x: Any, w: Any, u: Any, b: Any) -> Any:
        s, found = (zero, zero), []
        for t in range(50):
            s = _cell(s, x[t], w, u, b)
            found.append(s[0])
        return hf.stack(found)

    def rows(x: Any, w: Any, u: Any, b: Any) -> Any:
        s, found = (zero, zero), []
        for row in x:
            s = _cell(s, row, w, u, b)
            found.append(s[0])
        return hf.stack(found)

    loop = hf.function(lambda x, w, u, b: hf.scan(lambda s, x: _cell(s, x, w, u, b), x, (zero, zero))[0])
    flat, each = hf.function(unrolled), hf.function(rows)
    return {
        "scan": lambda: loop(x, w, u, b),
        "for over rows": lambda: each(x, w, u, b),
        "unrolled": lambda: flat(x, w, u, b),
    }


def rnn_gradient() -> dict[str, Program]:
    x, w, u = _drawn((32, 16, 32), (32, 32), (32, 32))
    zero = hf.zeros((16, 32))

    def scanned(w: Any, u: Any) -> Any:
        return hf.sum(hf.scan(lambda h, x: hf.tanh(x @ w + h @ u), x, zero) ** 2)

    def unrolled(w: Any, u: Any) -> Any:
        h, found = zero, []
        for t in range(32):
            h = hf.tanh(x[t] @ w + h @ u)
            found.append(h)
        return hf.sum(hf.stack(found) ** 2)

    def rows(w: Any, u: Any) -> Any:
        h, found = zero, []
        for row in x:
            h = hf.tanh(row @ w + h @ u)
            found.append(h)
        return hf.sum(hf.stack(found) ** 2)

    loop, each, flat = (hf.function(hf.grad(f, argnums=(0, 1))) for f in (scanned, rows, unrolled))
    return {"scan": lambda: loop(w, u), "for over rows": lambda: each(w, u), "unrolled": lambda: flat(w, u)}


def conversion() -> dict[str, Program]:
    """A function of 200 lines, a new one for each round: conversion and trace, without what compiles."""
    block = """    a = x * {k} + b[{j}]
    if {k} > limit:
        a = hf.tanh(a)
    else:
        a = a - helper(a, {k})
    for j in range(2):
        b[j] = b[j] * 0.5 + a
"""
    body = "".join(block.format(k=k, j=k % 2) for k in range(28))
    text = f"def f(x, limit=14):\n    b = [x, x + 1]\n{body}    return a + b[0]\n"
    names: dict[str, Any] = {"hf": hf, "helper": _helper}
    made = itertools.count()

    def one() -> Any:
        file = f"<model {next(made)}>"
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        exec(compile(text, file, "exec"), names)
        return hf.function(names["f"]).get_concrete_function(x)

    x = hf.ones((4,))
    return {"200 lines": one}


def _helper(a: Any, k: int) -> Any:
    return hf.maximum(a, k) * 0.1


CASES: dict[str, tuple[Callable[[], dict[str, Program]], float, str]] = {
    "scalar": (scalar, 1e9 / 10_000, "ns a turn"),
    "lorenz": (lorenz, 1e3, "ms"),
    "lstm": (lstm, 1e3, "ms"),
    "rnn gradient": (rnn_gradient, 1e3, "ms"),
    "conversion": (conversion, 1e3, "ms"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    for name, (make, scale, unit) in CASES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        programs = make()
        times: dict[str, list[float]] = {}
        for label, program in programs.items():
            start = time.perf_counter()
            program()
            print(f"{name}, {label}: first call {time.perf_counter() - start:.3f} s")
            times[label] = []
        for _ in range(options.rounds):
            for label, program in programs.items():
                start = time.perf_counter()
                program()
                times[label].append(time.perf_counter() - start)
        for label, taken in times.items():
            low, middle, high = np.percentile(taken, (25, 50, 75)) * scale
            print(f"{name}, {label}: {middle:.4g} {unit} ({low:.4g} to {high:.4g})")


if __name__ == "__main__":
    main()
