"""Products of every kind and size against NumPy, JAX and PyTorch, and against the arithmetic peak of the same rounds.

    python benchmarks/products.py [--threads N] [--rounds N] [--peers numpy,jax,torch] [--json] [WORD ...]

Only programs whose names have one of the words are measured, if any are given.  Every side lives in a process of its
own, since waiting threads of one would take the cores of another, and is asked in turn for a sample of each program;
all have the same number of threads.  Figures are medians over the samples, with their quartiles.  Every program is
checked once: all sides must agree before any of them is timed.

The peak is that of fused multiply-adds of float32 in registers, by as many processes at once as there are threads.  The
last column is the share of it that hybridflow's time is for the sums of products alone; small integers and bfloat16 may
have instructions that do more at once than that.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

PEERS = ("numpy", "jax", "torch")
SAMPLE = 0.05  # seconds
PEAK = "arithmetic peak"


class Case(NamedTuple):
    """``program(library, *arguments)`` on arguments of these shapes; ``sums`` counts its multiply-adds."""

    program: Callable[..., Any]
    sums: float
    shapes: list[tuple[int, ...]]
    dtype: str = "float32"


def product(m: int, k: int, n: int, dtype: str = "float32", batch: int = 0, transposed: str = "") -> Case:
    """x @ y of one pair of matrices or a batch of them; a factor whose letter is in ``transposed`` lies so."""
    left = (k, m) if "x" in transposed else (m, k)
    right = (n, k) if "y" in transposed else (k, n)

    def program(library: Any, x: Any, y: Any) -> Any:
        return library.matmul(x.T if "x" in transposed else x, y.T if "y" in transposed else y)

    lead = (batch,) if batch else ()
    return Case(program, max(batch, 1) * m * k * n, [(*lead, *left), (*lead, *right)], dtype)


def einsum(equation: str, sums: float, *shapes: tuple[int, ...]) -> Case:
    return Case(lambda library, *arguments: library.einsum(equation, *arguments), sums, list(shapes))


def _distances(library: Any, x: Any, y: Any) -> Any:
    return (x * x).sum(1)[:, None] - 2 * library.matmul(x, y.T) + (y * y).sum(1)[None]


def _inference(library: Any, x: Any, v: Any, b: Any, w: Any, c: Any) -> Any:
    return library.softmax(library.matmul(library.relu(library.matmul(x, v) + b), w) + c)


def _step(library: Any, x: Any, labels: Any, v: Any, b: Any, w: Any, c: Any) -> Any:
    """The new weights of a network of two layers, by gradients written out."""
    hidden = library.relu(library.matmul(x, v) + b)
    error = library.softmax(library.matmul(hidden, w) + c) - labels
    back = library.where(hidden > 0, library.matmul(error, w.T), 0.0)
    rate = 1e-4
    new = v - rate * library.matmul(x.T, back), w - rate * library.matmul(hidden.T, error)
    return (*new, b - rate * back.sum(0), c - rate * error.sum(0))


def _residual(library: Any, x: Any, v: Any, b: Any) -> Any:
    return x + library.relu(library.matmul(x, v) + b)


CASES = {
    **{f"matmul {n}": product(n, n, n) for n in (64, 128, 256, 512, 1024, 2048)},
    "matmul 511": product(511, 511, 511),
    "matmul 513": product(513, 513, 513),
    "matmul 127x333x65": product(127, 333, 65),
    "matmul 10000x64x64": product(10000, 64, 64),
    "matmul 64x10000x64": product(64, 10000, 64),
    "matmul 64x64x10000": product(64, 64, 10000),
    "matmul x.T y 512": product(512, 512, 512, transposed="x"),
    "matmul x y.T 512": product(512, 512, 512, transposed="y"),
    "matmul x.T y.T 512": product(512, 512, 512, transposed="xy"),
    "matmul f64 512": product(512, 512, 512, "float64"),
    "matmul f64 1024": product(1024, 1024, 1024, "float64"),
    "strided 512": Case(lambda library, x, y: library.matmul(x[:, ::2], y), 512**3, [(512, 1024), (512, 512)]),
    **{f"single {n}x{n}": product(n, n, n) for n in (4, 8, 16, 32)},
    "10000 of 3x3": product(3, 3, 3, batch=10000),
    "10000 of 4x4": product(4, 4, 4, batch=10000),
    "10000 of 8x8": product(8, 8, 8, batch=10000),
    "1000 of 16x16": product(16, 16, 16, batch=1000),
    "1000 of 32x32": product(32, 32, 32, batch=1000),
    "64 of 128x128": product(128, 128, 128, batch=64),
    "broadcast batch": Case(lambda library, x, y: library.matmul(x, y), 32 * 128**3, [(128, 128), (32, 128, 128)]),
    "matrix-vector 512": Case(lambda library, x, y: library.matmul(x, y), 512**2, [(512, 512), (512,)]),
    "matrix-vector 4096": Case(lambda library, x, y: library.matmul(x, y), 4096**2, [(4096, 4096), (4096,)]),
    "vector-matrix 512": Case(lambda library, x, y: library.matmul(y, x), 512**2, [(512, 512), (512,)]),
    "vector-matrix 4096": Case(lambda library, x, y: library.matmul(y, x), 4096**2, [(4096, 4096), (4096,)]),
    "outer 2048": Case(lambda library, x, y: x[:, None] * y[None], 2048**2, [(2048,), (2048,)]),
    "attention scores": einsum("bqhd,bkhd->bhqk", 8 * 256 * 8 * 256 * 64, (8, 256, 8, 64), (8, 256, 8, 64)),
    "attention values": einsum("bhqk,bkhd->bqhd", 8 * 256 * 8 * 256 * 64, (8, 8, 256, 256), (8, 256, 8, 64)),
    "einsum abc,bd->adc": einsum("abc,bd->adc", 64 * 64 * 100 * 64, (64, 64, 100), (64, 64)),
    "bfloat16 512": product(512, 512, 512, "bfloat16"),
    "bfloat16 1024": product(1024, 1024, 1024, "bfloat16"),
    "float16 512": product(512, 512, 512, "float16"),
    "int8 512": product(512, 512, 512, "int8"),
    "int8 1024": product(1024, 1024, 1024, "int8"),
    "int32 256": product(256, 256, 256, "int32"),
    "distances 1000x1000x64": Case(_distances, 1000 * 1000 * 64, [(1000, 64), (1000, 64)]),
    "distances 2000x2000x3": Case(_distances, 2000 * 2000 * 3, [(2000, 3), (2000, 3)]),
    "gradient x.T g, 10 columns": product(784, 64, 10, transposed="x"),
    "gradient x.T g, 10000 rows": product(128, 10000, 10, transposed="x"),
    "layer with residual 256x512": Case(_residual, 256 * 512 * 512, [(256, 512), (512, 512), (512,)]),
    "60x784-128-10 inference": Case(
        _inference, 60 * 128 * (784 + 10), [(60, 784), (784, 128), (128,), (128, 10), (10,)]
    ),
    "784-512-10 step": Case(
        _step, 64 * 512 * (2 * 784 + 3 * 10), [(64, 784), (64, 10), (784, 512), (512,), (512, 10), (10,)]
    ),
}


class Library(NamedTuple):
    """What a side names its own way.  Products of int8 are summed in int32; ``compiled`` makes a callable that returns
    when the results are there."""

    array: Callable[[np.ndarray], Any]
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]]
    matmul: Callable[[Any, Any], Any]
    einsum: Callable[..., Any]
    relu: Callable[[Any], Any]
    softmax: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]
    numpy: Callable[[Any], np.ndarray]


def _hybridflow() -> Library:
    import hybridflow as hf

    def matmul(x: Any, y: Any) -> Any:
        return hf.matmul(x, y, sum_dtype=hf.int32 if x.dtype == hf.int8 else None)

    def array(x: Any) -> Any:
        return hf.astype(hf.asarray(x.astype(np.float32)), hf.bfloat16) if x.dtype.name == "bfloat16" else hf.asarray(x)

    def numpy(x: Any) -> np.ndarray:
        return np.asarray(hf.astype(x, hf.float64))

    return Library(array, hf.function, matmul, hf.einsum, hf.nn.relu, hf.nn.softmax, hf.where, numpy)


def _numpy() -> Library:
    def matmul(x: Any, y: Any) -> Any:
        if x.dtype in (np.int8, np.float16) or x.dtype.name == "bfloat16":
            wide = np.float32 if x.dtype != np.int8 else np.int32
            return (x.astype(wide) @ y.astype(wide)).astype(np.int32 if x.dtype == np.int8 else x.dtype)
        return x @ y

    def relu(x: Any) -> Any:
        return np.maximum(x, 0)

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def einsum(equation: str, *arguments: Any) -> Any:
        return np.einsum(equation, *arguments, optimize=True)

    def same(x: Any) -> Any:
        return x

    return Library(same, same, matmul, einsum, relu, softmax, np.where, np.asarray)


def _jax() -> Library:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # or float64 would be cut down

    def compiled(program: Callable[..., Any]) -> Callable[..., Any]:
        made = jax.jit(program)
        return lambda *arguments: jax.block_until_ready(made(*arguments))

    def matmul(x: Any, y: Any) -> Any:
        return jnp.matmul(x, y, preferred_element_type=jnp.int32 if x.dtype == jnp.int8 else None)

    return Library(jnp.asarray, compiled, matmul, jnp.einsum, jax.nn.relu, jax.nn.softmax, jnp.where, np.asarray)


def _torch(threads: int) -> Library:
    import torch

    torch.set_num_threads(threads)

    def array(x: np.ndarray) -> Any:
        if x.dtype.name == "bfloat16":
            return torch.from_numpy(x.astype(np.float32)).to(torch.bfloat16)
        return torch.from_numpy(x)

    def compiled(program: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            with torch.no_grad():
                return program(*arguments)

        return run

    def matmul(x: Any, y: Any) -> Any:
        return torch._int_mm(x, y) if x.dtype == torch.int8 else torch.matmul(x, y)

    def numpy(x: Any) -> np.ndarray:
        return x.to(torch.float64).numpy()

    return Library(
        array, compiled, matmul, torch.einsum, torch.relu, lambda x: torch.softmax(x, -1), torch.where, numpy
    )


def library(side: str, threads: int) -> Library:
    if side == "torch":
        return _torch(threads)
    return {"hybridflow": _hybridflow, "numpy": _numpy, "jax": _jax}[side]()


def arguments(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    if case.dtype.startswith("int"):
        return [rng.integers(-100, 100, shape).astype(case.dtype) for shape in case.shapes]
    found = [rng.standard_normal(shape, np.float32) for shape in case.shapes]
    if case.dtype == "bfloat16":
        import ml_dtypes

        return [x.astype(ml_dtypes.bfloat16) for x in found]
    return [x.astype(case.dtype) for x in found]


def serve(side: str, threads: int) -> None:
    """Answer each line, a program's name, with the seconds of a call and, for the first one, the sums of the results'
    elements and of their magnitudes."""
    if side == PEAK:
        _serve_peak()
        return
    # Not all peers keep to the number of threads that they are told.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    own = library(side, threads)
    known: dict[str, tuple[Callable[..., Any], list[Any]]] = {}
    for line in sys.stdin:
        name, sums = line.strip(), []
        if name not in known:
            case = CASES[name]
            program = own.compiled(lambda *given, case=case: case.program(own, *given))
            known[name] = program, [own.array(x) for x in arguments(case)]
            results = program(*known[name][1])
            for result in results if isinstance(results, tuple) else (results,):
                values = own.numpy(result).astype(np.float64)
                sums += [float(values.sum()), float(np.abs(values).sum())]
        program, given = known[name]
        print(json.dumps([_seconds(program, given), sums]), flush=True)


def _seconds(program: Callable[..., Any], given: list[Any]) -> float:
    program(*given)  # threads that sleep are awake, what another program left in caches is gone
    count, taken = 1, 0.0
    while taken < 1e-4:
        count *= 2
        start = time.perf_counter()
        for _ in range(count):
            program(*given)
        taken = time.perf_counter() - start
    times = []
    end = time.perf_counter() + SAMPLE
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            program(*given)
        times.append((time.perf_counter() - start) / count)
    return float(np.median(times))


def _serve_peak() -> None:
    """Answer each line with the multiply-adds per second of this process."""
    from hybridflow.cli import limits

    sampler = limits.fma_sampler()
    for _ in sys.stdin:
        times = [sampler(1) for _ in range(20)]
        print(json.dumps(limits.fma_work() / 2 / float(np.median(times))), flush=True)


class Side:
    """A process that answers."""

    def __init__(self, side: str, threads: int) -> None:
        variables = ("HF_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        environment |= dict.fromkeys(variables, str(threads))
        if threads == 1:
            environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        command = [sys.executable, __file__, "--serve", side, "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, name: str) -> None:
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def quartiles(samples: list[float]) -> dict[str, float]:
    low, median, high = np.percentile(samples, [25, 50, 75])
    return {"median": float(median), "low": float(low), "high": float(high)}


def _compare(name: str, side: str, sums: list[float], expected: list[float]) -> None:
    narrow = CASES[name].dtype in ("bfloat16", "float16")
    for k in range(0, len(expected), 2):
        if abs(sums[k] - expected[k]) > (1e-2 if narrow else 1e-4) * expected[k + 1]:
            raise SystemExit(f"{name}: {side} has results whose sum is {sums[k]}, hybridflow {expected[k]}")


def measured(threads: int, rounds: int, sides: list[str], names: list[str]) -> dict[str, Any]:
    processes = {side: Side(side, threads) for side in sides}
    peaks = [Side(PEAK, 1) for _ in range(threads)]
    found: dict[str, Any] = {}
    for name in names:
        samples: dict[str, list[float]] = {side: [] for side in (*sides, PEAK)}
        for turn in range(rounds):
            expected: list[float] = []
            for side, process in processes.items():
                process.ask(name)
                seconds, sums = process.answer()
                samples[side].append(seconds)
                if turn == 0:
                    expected = expected or sums
                    _compare(name, side, sums, expected)
            for process in peaks:
                process.ask(PEAK)
            samples[PEAK].append(sum(process.answer() for process in peaks))
        found[name] = {side: quartiles(values) for side, values in samples.items()}
    for process in (*processes.values(), *peaks):
        process.end()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="parts of the names of programs")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of every side")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each side and program")
    parser.add_argument("--peers", default=",".join(PEERS), help="sides to compare with")
    parser.add_argument("--json", action="store_true", help="print all figures, in seconds, as JSON")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads)
        return
    from hybridflow.cli import output

    peers = [peer for peer in options.peers.split(",") if peer and importlib.util.find_spec(peer)]
    sides = ["hybridflow", *peers]
    names = [name for name in CASES if not options.words or any(word in name for word in options.words)]
    found = measured(options.threads, options.rounds, sides, names)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    rows = []
    for name, row in found.items():
        ours = row["hybridflow"]["median"]
        cells = [
            f"{output.seconds(row[side]['median'])} ({output.seconds(row[side]['low'])} to "
            f"{output.seconds(row[side]['high'])})"
            for side in sides
        ]
        best = f"{min(row[side]['median'] for side in peers) / ours:.2f}" if peers else ""
        rows.append([name, *cells, best, f"{CASES[name].sums / ours / row[PEAK]['median']:.2f}"])
    print(output.table(["program", *sides, "times best peer", "share of peak"], rows))


if __name__ == "__main__":
    main()
