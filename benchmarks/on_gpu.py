"""What the product and its peers take on an NVIDIA GPU, next to what the device can do.

    python benchmarks/on_gpu.py [--only WORD ...] [--sides hybridflow,jax,...] [--json FILE]

Each side runs in a process of its own, one after another, so that one which fails, or whose GPU does, takes none with
it; sides that are not installed, or see no GPU, are left out and said to be.  A time is the median of samples of
calls that are queued one behind another, with one wait at the end of each sample; the results are on the GPU before
and after.  Programs that move memory are compared with a copy on the device by CuPy (bytes in both directions),
products with cuBLAS, which PyTorch calls, and networks with JAX and ``torch.compile``.  Products of float32 are those
of all 24 bits on each side, but for the side ``fastmath``.  ``launch`` is what the host takes to queue a program of 20
kernels.  All results are compared with the first side's.

``--device cpu`` runs the same on a CPU, on which only the script itself can be tried.  Times are in milliseconds.
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
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

from benchmarks.suite.case import Case, Draw, leaves, made_ready
from benchmarks.suite.libraries import HybridFlow, Jax, Library, NotOffered, Torch, TorchCompile
from benchmarks.suite.programs.networks import CASES as NETWORKS

OURS = "hybridflow"
LAUNCHES = 20
CHECKED = 997  # elements of a result that are compared
SAMPLE = 0.1  # seconds
SAMPLES = 9


def _product(dtype: str, size: int) -> Case:
    def program(l: Any, x: Any, y: Any) -> Any:
        return l.matmul(x, y)

    def arguments(d: Draw) -> list[Any]:
        import ml_dtypes

        wanted = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        return [d.floats(size, size).astype(wanted) for _ in range(2)]

    return Case(program, arguments, 2e-2 if dtype == "bfloat16" else 1e-3)


def _chain(l: Any, x: Any) -> Any:
    """Scans do not fuse: a kernel each."""
    for k in range(LAUNCHES):
        x = l.cumsum(x, axis=k % 2) * 0.5
    return x


def programs(small: bool) -> dict[str, Case]:
    """By name; what moves memory begins with "64M", products with "matmul"."""
    side, size = (64, 96) if small else (8192, 4096)

    def square(count: int) -> Callable[[Draw], list[Any]]:
        return lambda d: [d.floats(side, side) for _ in range(count)]

    steps = ["784-512-10 step", "network of images, step", "transformer gradient", "LSTM gradient", "RNN gradient"]
    steps += ["word2vec step", "attention gradient", "causal attention gradient", "batch norm gradient"]
    return {
        "64M sum(x+y*z)": Case(lambda l, x, y, z: l.sum(x + y * z), square(3), 1e-2),
        "64M gelu": Case(lambda l, x: l.gelu(x), square(1)),
        "64M softmax": Case(lambda l, x: l.softmax(x), square(1)),
        "64M layer norm": Case(lambda l, x: l.layer_norm(x), square(1), 2e-3),
        f"matmul {size} float32": _product("float32", size),
        f"matmul {size} bfloat16": _product("bfloat16", size),
        **{name: NETWORKS[name] for name in steps},
        "launch": Case(_chain, lambda d: [d.floats(40, 40)], 1e-3),
    }


class Side:
    """A library on a device: ``wait`` for what is queued."""

    def __init__(self, device: str) -> None:
        raise NotImplementedError

    library: Library
    name = ""
    wait: Callable[[], None]

    def limits(self) -> dict[str, Any]:
        """What is measured besides programs."""
        return {}


class Ours(Side):
    fastmath = False

    def __init__(self, device: str) -> None:
        import hybridflow as hf

        self.device = device
        where = "gpu:0" if device == "gpu" else "cpu"
        fastmath = self.fastmath

        class OnDevice(HybridFlow):
            def array(self, x: Any) -> Any:
                return super().array(x).to_device(where)

            def compiled(self, program: Any) -> Any:
                return hf.function(program, fastmath=True) if fastmath else hf.function(program)

        self.library = OnDevice(1)
        if device == "gpu":
            import cupy

            self.wait = lambda: cupy.cuda.Device().synchronize()
            self.name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        else:
            self.wait = lambda: None

    def limits(self) -> dict[str, Any]:
        if self.device != "gpu" or self.fastmath:
            return {}
        import cupy

        source, target = (cupy.zeros(1 << 26, cupy.float32) for _ in range(2))
        return {"name": self.name, "copy": 2 * source.nbytes / sampled(lambda: cupy.copyto(target, source), self.wait)}


class Fastmath(Ours):
    fastmath = True


class JaxSide(Side):
    def __init__(self, device: str) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        if device == "gpu" and jax.default_backend() != "gpu":
            raise RuntimeError(f"this JAX has no GPU: its backend is {jax.default_backend()}")
        jax.config.update("jax_default_matmul_precision", "highest")
        self.last: Any = None
        side = self

        class Queued(Jax):
            def compiled(self, program: Any) -> Any:
                made = jax.jit(program)

                def run(*given: Any) -> Any:
                    side.last = made(*given)
                    return side.last

                return run

        self.library = Queued(1)
        self.wait = lambda: jax.block_until_ready(self.last)


class TorchSide(Side):
    kind: type[Torch] = Torch

    def __init__(self, device: str) -> None:
        import torch

        where = "cuda" if device == "gpu" else "cpu"
        if device == "gpu" and not torch.cuda.is_available():
            raise RuntimeError("this PyTorch has no GPU")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

        class OnDevice(self.kind):  # type: ignore[misc, name-defined]
            def array(self, x: Any) -> Any:
                return super().array(x).to(where)

            def numpy(self, x: Any) -> np.ndarray:
                found: np.ndarray = super().numpy(x.detach().cpu())
                return found

        self.library = OnDevice(1)
        self.wait = torch.cuda.synchronize if device == "gpu" else lambda: None


class TorchCompileSide(TorchSide):
    kind = TorchCompile


SIDES: dict[str, tuple[str, type[Side]]] = {
    OURS: ("hybridflow", Ours),
    "fastmath": ("hybridflow", Fastmath),
    "jax": ("jax", JaxSide),
    "torch": ("torch", TorchSide),
    "torch-compile": ("torch", TorchCompileSide),
}


def sampled(run: Callable[[], object], wait: Callable[[], None]) -> float:
    """Seconds of a call: the median over samples of calls that are queued, and waited for together."""
    run()
    wait()
    count = 1
    while True:
        taken = _timed(run, wait, count)
        if taken >= SAMPLE / 4 or count >= 4096:
            break
        count *= 2
    count = max(1, min(4096, round(count * SAMPLE / max(taken, 1e-6))))
    return float(np.median([_timed(run, wait, count) for _ in range(SAMPLES)])) / count


def _timed(run: Callable[[], object], wait: Callable[[], None], count: int) -> float:
    wait()
    start = time.perf_counter()
    for _ in range(count):
        run()
    wait()
    return time.perf_counter() - start


def queued(run: Callable[[], object], wait: Callable[[], None]) -> float:
    """Seconds that the host takes to queue a call: few enough that it never waits for the device."""
    run()
    times = []
    for _ in range(50):
        wait()
        start = time.perf_counter()
        for _ in range(20):
            run()
        times.append((time.perf_counter() - start) / 20)
    return float(np.median(times))


def measured(side: Side, name: str, case: Case) -> dict[str, Any]:
    """One program on one side."""
    own = side.library
    run, given = made_ready(case, own)
    start = time.perf_counter()
    results = run(*given)
    side.wait()
    first = time.perf_counter() - start
    parts = [own.numpy(x) for x in leaves(results)]
    told = [x.reshape(-1)[:: max(1, x.size // CHECKED)].astype(np.float64).tolist() for x in parts]
    moved = sum(x.nbytes for x in parts) + sum(own.numpy(x).nbytes for x in leaves(given))
    timing = queued if name == "launch" else sampled
    return {"time": timing(lambda: run(*given), side.wait), "first": first, "bytes": moved, "results": told}


def serve(options: argparse.Namespace) -> None:
    """The process of a side: a line of JSON for each thing it has found."""

    def tell(**found: Any) -> None:
        print("\n" + json.dumps(found), flush=True)

    try:
        side = SIDES[options.serve][1](options.device)
        tell(limits=side.limits())
    except Exception as error:
        tell(absent=f"{type(error).__name__}: {error}"[:300])
        return
    for name, case in chosen(options).items():
        try:
            tell(program=name, **measured(side, name, case))
        except NotOffered as reason:
            tell(program=name, why=f"not offered: {reason}")
        except Exception as error:  # the next program may run all the same
            tell(program=name, why=f"{type(error).__name__}: {error}"[:300])


def chosen(options: argparse.Namespace) -> dict[str, Case]:
    found = programs(options.small)
    return {n: c for n, c in found.items() if not options.only or any(word in n for word in options.only)}


def asked(side: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What a side has found by its end, or by the end of its time."""
    command = [sys.executable, os.path.abspath(__file__), "--serve", side, "--device", options.device]
    command += ["--small"] * options.small + (["--only", *options.only] if options.only else [])
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60 * options.minutes, check=False)
        text, end = done.stdout, f"its process ended with {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired as late:
        text, end = (late.stdout or b"").decode(), f"stopped after {options.minutes:g} minutes"
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [*found, {"ended": end}] if end else found


def differs(ours: list[list[float]], theirs: list[list[float]], tolerance: float) -> str:
    """What is wrong with results, as text; empty where nothing is."""
    if [len(x) for x in ours] != [len(x) for x in theirs]:
        return "results of other shapes"
    worst = 0.0
    for x, y in zip(map(np.array, ours), map(np.array, theirs), strict=True):
        scale = np.abs(x).max(initial=0.0)
        worst = max(worst, float((np.abs(x - y) / (np.abs(x) + scale + 1e-30)).max(initial=0.0)))
    return "" if worst <= tolerance else f"differs by {worst:.1e}"


def report(found: dict[str, list[dict[str, Any]]], options: argparse.Namespace) -> str:
    lines, copy = [], None
    answers: dict[str, dict[str, dict[str, Any]]] = {}
    for side, items in found.items():
        for item in items:
            if "program" in item:
                answers.setdefault(item["program"], {})[side] = item
            elif item.get("limits"):
                copy = item["limits"].get("copy", copy)
                lines.append(f"{item['limits'].get('name', '')}: a copy moves {(copy or 0) / 1e9:.0f} GB/s")
            elif "absent" in item or "ended" in item:
                lines.append(f"{side}: {item.get('absent') or item['ended']}")
    cases = chosen(options)
    lines.append(f"{'milliseconds':28}" + "".join(f"{side:>16}" for side in found))
    for name, by_side in answers.items():
        ours, cells, notes = by_side.get(OURS, {}), [], []
        for side in found:
            answer = by_side.get(side, {})
            cells.append(f"{1e3 * answer['time']:16.4f}" if "time" in answer else f"{'-':>16}")
            if "why" in answer:
                notes.append(f"{side}: {answer['why']}")
            elif answer and side != OURS and "results" in ours:
                tolerance = max(cases[name].tolerance, 2e-2 if side == "fastmath" else 0.0)
                if wrong := differs(ours["results"], answer["results"], tolerance):
                    notes.append(f"{side} {wrong}")
        if "time" in ours:
            rivals = [a["time"] for s, a in by_side.items() if "time" in a and s not in (OURS, "fastmath")]
            if rivals:
                notes.insert(0, f"best peer / ours {min(rivals) / ours['time']:.2f}")
            if copy and name.startswith("64M"):
                notes.insert(0, f"{ours['bytes'] / ours['time'] / copy:.2f} of the copy")
            if name.startswith("matmul"):
                size = int(name.split()[1])
                notes.insert(0, f"{2e-12 * size**3 / ours['time']:.1f} TFLOP/s")
        lines.append(f"{name:28}" + "".join(cells) + "   " + "; ".join(notes))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="programs that have a word in their name")
    parser.add_argument("--sides", default=",".join(SIDES), help=f"of {', '.join(SIDES)}")
    parser.add_argument("--json", metavar="FILE", help="write all that was found")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--small", action="store_true", help="small arrays, whose times mean little")
    parser.add_argument("--minutes", type=float, default=8.0, help="for each side (8)")
    parser.add_argument("--serve", choices=list(SIDES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options)
        return
    found: dict[str, list[dict[str, Any]]] = {}
    for side in options.sides.split(","):
        if side not in SIDES:
            parser.error(f"no such side: {side}; there are {', '.join(SIDES)}")
        if importlib.util.find_spec(SIDES[side][0]) is None:
            found[side] = [{"absent": "not installed"}]
            continue
        print(f"{side} ...", file=sys.stderr, flush=True)
        found[side] = asked(side, options)
        if options.json:  # after each side: a run may be cut short
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
    print(report(found, options))


if __name__ == "__main__":
    main()
