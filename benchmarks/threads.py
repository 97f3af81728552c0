"""What threads are worth: the cost of sharing out a task, and programs on one thread, on several, and by the peers.

    python benchmarks/threads.py [--threads N] [--rounds N] [--json]

Every side (hybridflow with one thread, hybridflow with N; NumPy, JAX and PyTorch with N, where they can be imported)
lives in a process of its own, since waiting threads of one would take the cores of another, and is asked in turn for a
sample of each program, when those of the one before are at rest.  Figures are medians over the samples, with their
quartiles.

fork and join   a task of empty pieces, one for each thread, called from native code: one after another, and with pauses
                between the calls, in which the threads find nothing to do.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

from benchmarks.suite import resting

SIDES = ("one thread", "threads", "numpy", "jax", "torch")
PAUSES = (0, 20, 200, 10_000)  # microseconds
SAMPLE = 0.1  # seconds
MILLION = 1 << 20
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "x + 1, 16": [(16,)],
    "x + y, eager, 16M": [(16 * MILLION,)] * 2,
    "sum(x + y*z), 1M": [(MILLION,)] * 3,
    "sum(x + y*z), 16M": [(16 * MILLION,)] * 3,
    "tanh-gelu, 1M": [(MILLION,)],
    "tanh-gelu, 16M": [(16 * MILLION,)],
    "softmax, 4096x1024": [(4096, 1024)],
    "matmul, 512": [(512, 512)] * 2,
    "matmul, 2048": [(2048, 2048)] * 2,
    "64x784-512-10 network": [(64, 784), (784, 512), (512, 10)],
}


def bodies(np: Any, softmax: Callable[[Any], Any], gelu: Callable[[Any], Any]) -> dict[str, Callable[..., Any]]:
    """The programs of a library that names things as NumPy does."""

    def weighed(x: Any, y: Any, z: Any) -> Any:
        return np.sum(x + y * z)

    return {
        "x + 1, 16": lambda x: x + 1,
        "x + y, eager, 16M": lambda x, y: x + y,
        "sum(x + y*z), 1M": weighed,
        "sum(x + y*z), 16M": weighed,
        "tanh-gelu, 1M": gelu,
        "tanh-gelu, 16M": gelu,
        "softmax, 4096x1024": softmax,
        "matmul, 512": lambda x, y: x @ y,
        "matmul, 2048": lambda x, y: x @ y,
        "64x784-512-10 network": lambda x, v, w: softmax(np.tanh(x @ v) @ w),
    }


def of_hybridflow() -> tuple[Callable[[Any], Any], dict[str, Callable[..., Any]]]:
    import hybridflow as hf

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + hf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    programs = bodies(hf, hf.nn.softmax, gelu)
    return hf.asarray, {k: f if "eager" in k else hf.function(f) for k, f in programs.items()}


def of_numpy() -> tuple[Callable[[Any], Any], dict[str, Callable[..., Any]]]:
    def gelu(x: Any) -> Any:
        return np.float32(0.5) * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return np.asarray, bodies(np, softmax, gelu)


def of_jax() -> tuple[Callable[[Any], Any], dict[str, Callable[..., Any]]]:
    import jax
    import jax.numpy as jnp

    def compiled(program: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: program(*arguments).block_until_ready()

    programs = bodies(jnp, jax.nn.softmax, jax.nn.gelu)
    return jnp.asarray, {k: compiled(f if "eager" in k else jax.jit(f)) for k, f in programs.items()}


def of_torch(threads: int) -> tuple[Callable[[Any], Any], dict[str, Callable[..., Any]]]:
    import torch

    torch.set_num_threads(threads)

    def gelu(x: Any) -> Any:
        return torch.nn.functional.gelu(x, approximate="tanh")

    return torch.from_numpy, bodies(torch, lambda x: torch.softmax(x, -1), gelu)


def serve(side: str, threads: int) -> None:
    """Answer each line, a program's name, with the seconds of a call."""
    if side in ("one thread", "threads"):
        array, programs = of_hybridflow()
    else:
        array, programs = {"numpy": of_numpy, "jax": of_jax, "torch": lambda: of_torch(threads)}[side]()
    rng = np.random.default_rng(0)
    arguments: dict[str, list[Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name == "fork and join":
            print(json.dumps([fork_and_join(threads, pause) for pause in PAUSES]), flush=True)
            continue
        if name not in arguments:
            arguments[name] = [array(rng.standard_normal(shape, np.float32)) for shape in SHAPES[name]]
            programs[name](*arguments[name])
        program, given = programs[name], arguments[name]
        program(*given)  # threads that sleep are awake, what another program left in caches is gone
        times = []
        end = time.perf_counter() + SAMPLE
        while not times or time.perf_counter() < end:
            count = 1 if SHAPES[name] != [(16,)] else 1000
            start = time.perf_counter()
            for _ in range(count):
                program(*given)
            times.append((time.perf_counter() - start) / count)
        print(json.dumps(float(np.median(times))), flush=True)


def fork_and_join(threads: int, pause: float) -> float:
    """Seconds of a job of empty pieces after so many microseconds."""
    from hybridflow.runtime.thread_pool_words import PARALLEL_FOR, words
    from hybridflow.runtime.threads import thread_pool

    struct = thread_pool.host(1 << 40)
    assert struct is not None, thread_pool.problem()
    call, nothing = _empty_jobs()
    repeats = 10_000 if pause < 100 else 50
    taken = call(words[PARALLEL_FOR], ctypes.addressof(struct), nothing, threads, repeats, int(pause * 1e3))
    return taken * 1e-9 / repeats


def _empty_jobs() -> tuple[Callable[..., int], int]:
    """A function (parallel_for, host, task, units, repeats, nanoseconds of a pause) whose result are the nanoseconds
    of all jobs, and a task that does nothing."""
    from hybridflow.runtime.machine import host_target, machine_code
    from hybridflow.runtime.native.ir_builder import I32, I64, NULL, PTR, VOID, Module, i32, i64

    module = Module()
    module.function("nothing", VOID, PTR, I64, I64, I64).ret()
    f = module.function("jobs", I64, PTR, PTR, PTR, I64, I64, I64)
    parallel_for, struct, task, units, repeats, pause = f.args
    total, moment = f.local(I64, i64(0)), f.local_array(I64, i64(2))

    def now() -> Any:
        f.call("clock_gettime", I32, i32(time.CLOCK_MONOTONIC), moment)
        return f.b.add(f.b.mul(f.load(moment, 0, I64), i64(10**9)), f.load(moment, 8, I64))

    with f.count(repeats):
        begin = now()
        with f.loop(lambda: f.b.icmp_signed("<", f.b.sub(now(), begin), pause)):
            pass
        begin = now()
        f.call_pointer(parallel_for, VOID, struct, task, NULL, units, i64(1), i64(1), i64(1 << 40))
        f.set(total, f.b.add(f.get(total, I64), f.b.sub(now(), begin)))
    f.ret(f.get(total, I64))
    image = machine_code.compile_object(str(module.ir), host_target.detect(), use="runtime")
    code = machine_code.load_object(image, "jobs", "nothing")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    types = (*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *types)(code.addresses["jobs"]), code.addresses["nothing"]


def started(side: str, threads: int) -> subprocess.Popen[str]:
    number = "1" if side == "one thread" else str(threads)
    variables = ("HF_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"} | dict.fromkeys(variables, number)
    command = [sys.executable, __file__, "--serve", side, "--threads", str(threads)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def ask(process: subprocess.Popen[str], name: str) -> Any:
    assert process.stdin is not None and process.stdout is not None
    print(name, file=process.stdin, flush=True)
    answer = json.loads(process.stdout.readline())
    resting.wait(process.pid)
    return answer


def quartiles(samples: list[float]) -> dict[str, float]:
    low, median, high = np.percentile(samples, [25, 50, 75])
    return {"median": float(median), "low": float(low), "high": float(high)}


def measured(threads: int, rounds: int) -> dict[str, Any]:
    sides = [s for s in SIDES if s not in ("jax", "torch") or importlib.util.find_spec(s)]
    processes = {side: started(side, threads) for side in sides}
    found: dict[str, Any] = {}
    jobs = np.median([ask(processes["threads"], "fork and join") for _ in range(rounds)], axis=0)
    found["fork and join"] = {f"after {pause} us": float(t) for pause, t in zip(PAUSES, jobs)}
    for name in SHAPES:
        samples: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side in sides:
                samples[side].append(ask(processes[side], name))
        found[name] = {side: quartiles(values) for side, values in samples.items()}
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of every side but one")
    parser.add_argument("--rounds", type=int, default=9, help="samples of each side and program")
    parser.add_argument("--json", action="store_true", help="print all figures, in seconds, as JSON")
    parser.add_argument("--serve", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads)
        return
    from hybridflow.cli import output

    found = measured(options.threads, options.rounds)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    jobs = found.pop("fork and join")
    print("fork and join:", ", ".join(f"{name} {output.seconds(t)}" for name, t in jobs.items()))
    sides = list(next(iter(found.values())))
    rows = []
    for name, row in found.items():
        best = min(row[side]["median"] for side in sides[2:])
        ours, alone = row["threads"]["median"], row["one thread"]["median"]
        cells = [
            f"{output.seconds(t['median'])} ({output.seconds(t['low'])} to {output.seconds(t['high'])})"
            for t in row.values()
        ]
        rows.append([name, *cells, f"{alone / ours:.2f}", f"{best / ours:.2f}"])
    print(output.table(["program", *sides, "times one thread", "times best peer"], rows))


if __name__ == "__main__":
    main()
