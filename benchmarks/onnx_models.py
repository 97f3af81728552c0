"""Models in ONNX files: answers and times beside onnxruntime.

    python -m benchmarks.onnx_models PATHS... [--batch N] [--extent N] [--shape NAME=2x3] [--threads N] [--repeats N]

For each file: the largest difference to onnxruntime and the largest value, whether compiled results have the bits of
eager ones on 1, 2 and 3 threads, and the times of both, interleaved, with as many threads each.  Inputs are random
numbers; open extents are ``--extent``, the first one ``--batch``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

import hybridflow as hf


def inputs_of(
    session: Any, batch: int, extent: int, shapes: dict[str, list[int]] | None = None, seed: int = 0
) -> list[np.ndarray]:
    """Random arguments that fit what onnxruntime says of a model."""
    rng = np.random.default_rng(seed)
    kinds = {
        "tensor(float)": np.float32,
        "tensor(double)": np.float64,
        "tensor(float16)": np.float16,
        "tensor(int64)": np.int64,
        "tensor(int32)": np.int32,
        "tensor(uint8)": np.uint8,
        "tensor(bool)": np.bool_,
    }
    found = []
    for port in session.get_inputs():
        shape = (shapes or {}).get(port.name) or [
            n if isinstance(n, int) else (batch if k == 0 else extent) for k, n in enumerate(port.shape)
        ]
        dtype = np.dtype(kinds[port.type])
        if port.name == "sr":
            found.append(np.full(shape, 16000, dtype))
        elif "len" in port.name and dtype.kind == "i":
            found.append(np.full(shape, extent, dtype))
        elif dtype.kind == "f":
            found.append((rng.random(shape) * 2 - 1).astype(dtype))
        elif dtype.kind == "b":
            found.append(np.ones(shape, dtype))
        else:
            found.append(rng.integers(0, 20, shape).astype(dtype))
    return found


def listed(value: Any) -> list[np.ndarray]:
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return [np.asarray(part.numpy()) for part in parts]


def same_bits(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b))


def difference(got: list[np.ndarray], wanted: list[np.ndarray]) -> tuple[float, float]:
    """The largest difference, and the largest value."""
    worst = largest = 0.0
    for x, y in zip(got, wanted, strict=True):
        if x.shape != y.shape:
            return float("inf"), 0.0
        if y.size:
            worst = max(worst, float(np.abs(x.astype(np.float64) - y.astype(np.float64)).max()))
            largest = max(largest, float(np.abs(y.astype(np.float64)).max()))
    return worst, largest


def timed(calls: list[Any], repeats: int) -> list[float]:
    """The least time of each, where they take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def measure(path: str, options: argparse.Namespace) -> str:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    shapes = {name: [int(n) for n in text.split("x")] for name, _, text in (s.rpartition("=") for s in options.shape)}
    arrays = inputs_of(session, options.batch, options.extent, shapes)
    feed = {port.name: array for port, array in zip(session.get_inputs(), arrays)}
    wanted = session.run(None, feed)
    start = time.perf_counter()
    model = hf.onnx.load(path)
    loading = time.perf_counter() - start
    tensors = [hf.asarray(array) for array in arrays]
    hf.config.set_num_threads(1)
    start = time.perf_counter()
    got = listed(model(*tensors))
    first = time.perf_counter() - start
    bits = []
    if not options.times_only:
        eager = listed(hf.eager(model.function)(*tensors))
        for threads in (1, 2, 3):
            hf.config.set_num_threads(threads)
            bits.append(same_bits(eager, listed(model(*tensors))))
    hf.config.set_num_threads(options.threads)
    worst, largest = difference(got, [np.asarray(w) for w in wanted])
    ours, theirs = timed([lambda: model(*tensors), lambda: session.run(None, feed)], options.repeats)
    equal = "yes" if all(bits) else f"NO {bits}"
    return (
        f"| {os.path.basename(path)} | {loading:.2f} | {first:.2f} | {worst:.1e} / {largest:.3g} | {equal} "
        f"| {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ours / theirs:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--extent", type=int, default=64)
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x48x320", help="of an input")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--times-only", action="store_true", help="do not compare with eager results")
    options = parser.parse_args()
    print(
        "| file | load, s | first call, s | difference / largest | eager == compiled | ms | onnxruntime, ms | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for path in options.paths:
        try:
            print(measure(path, options), flush=True)
        except Exception as error:
            print(f"| {os.path.basename(path)} | {type(error).__name__}: {str(error)[:200]} |", flush=True)


if __name__ == "__main__":
    main()
