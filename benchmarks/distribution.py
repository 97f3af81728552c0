"""What replicas and processes cost: a step of 8 replicas beside one of 1, on one process and on two, and all-reduces.

    python benchmarks/distribution.py [--rounds N] [--steps N] [--processes N] [--json]

A network 64-256-256-10 with dropout and Adam is trained.  On one process both steps take turns; the figure is the
ratio of the least times of the processor, on one thread, as load adds to those of the clock.  With several processes
each has one thread, and so has the one that they are compared with.  The load of the machine is printed beside the
figures: of a busy one times say little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last
os.environ.setdefault("HF_NUM_THREADS", "1")

import numpy as np

import hybridflow as hf

ROOT = Path(__file__).resolve().parent.parent
REPLICAS = 8
BATCHES = 256, 2048
SIZES = 1 << 10, 1 << 20, 1 << 24  # float32 elements


def trainer(replicas: int, batch: int) -> Any:
    """A function that makes one step."""
    rng = np.random.default_rng(0)
    strategy = hf.distribute.MirroredStrategy(replicas=replicas)
    layers = hf.layers
    model = hf.Sequential(
        [
            layers.Dense(256, activation="relu"),
            layers.Dropout(0.1),
            layers.Dense(256, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.build((None, 64))
    optimizer, loss = hf.optimizers.Adam(1e-3), hf.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = rng.normal(size=(batch, 64)).astype(np.float32), rng.integers(0, 10, batch)

    @hf.function
    def step(x: Any, y: Any) -> Any:
        def replica(x: Any, y: Any) -> Any:
            with hf.GradientTape() as tape:
                value = loss(y, model(x, training=True))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
            return value

        return strategy.reduce("sum", strategy.run(replica, args=strategy.distribute_batch((x, y))))

    x, y = hf.asarray(x), hf.asarray(y)
    return lambda: step(x, y).item()


def least(function: Any, steps: int, clock: Any = time.perf_counter) -> float:
    """The least time of some calls, in ms."""
    found = []
    for _ in range(steps):
        started = clock()
        function()
        found.append(clock() - started)
    return min(found) * 1e3


def of_one_process(rounds: int, steps: int) -> dict[str, Any]:
    """Ratios of 8 replicas to 1, by batch."""
    result = {}
    for batch in BATCHES:
        sides = {replicas: trainer(replicas, batch) for replicas in (1, REPLICAS)}
        times = {replicas: [least(side, 5)] for replicas, side in sides.items()}  # which compiles
        for _ in range(rounds):
            for replicas, side in sides.items():
                times[replicas].append(least(side, steps, time.process_time))
        one, eight = (min(times[replicas][1:]) for replicas in (1, REPLICAS))
        result[str(batch)] = {"one_ms": one, "eight_ms": eight, "ratio": eight / one}
    return result


def in_a_process(path: str, rounds: int, steps: int) -> None:
    """What each process of a run measures; the first one keeps it."""
    from hybridflow.distribute.group import group

    found: dict[str, Any] = {"steps": {}, "all_reduce": {}}
    for batch in BATCHES:
        side = trainer(REPLICAS, batch)
        least(side, 5)
        found["steps"][str(batch)] = min(least(side, steps) for _ in range(rounds))
    members = group()
    if members is not None:
        for size in SIZES:
            found["all_reduce"][str(4 * size)] = _all_reduce(members, size, max(3, steps // 4))
    if hf.distribute.process_index() == 0:
        Path(path).write_text(json.dumps(found))


def _all_reduce(members: Any, size: int, count: int) -> float:
    mine, processes = np.ones((1, size), np.float32), members.size
    return least(lambda: members.summed("sum", mine, (size,), processes, None), count)


def of_processes(count: int, rounds: int, steps: int) -> Any:
    """The same steps in several processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        worker = [str(Path(__file__)), "--worker", path, "--rounds", str(rounds), "--steps", str(steps)]
        command = [sys.executable, "-m", "hybridflow", "run", "-n", str(count), "--threads", "1", *worker]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=600)
        return json.loads(Path(path).read_text())


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        in_a_process(options.worker, options.rounds, options.steps)
        return {}
    found: dict[str, Any] = {
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "one_process": of_one_process(options.rounds, options.steps),
        "processes": {str(n): of_processes(n, options.rounds, options.steps) for n in (1, options.processes)},
    }
    found["load_after"] = os.getloadavg()[0]
    if options.json:
        print(json.dumps(found, indent=1))
        return found
    print(f"load {found['load']:.1f} before and {found['load_after']:.1f} after, of {found['cores']} cores")
    for batch, row in found["one_process"].items():
        print(
            f"one process, batch {batch}: {row['one_ms']:.2f} ms of 1 replica, {row['eight_ms']:.2f} ms of {REPLICAS}: "
            f"{row['ratio']:.2f} times"
        )
    one, several = found["processes"]["1"], found["processes"][str(options.processes)]
    for batch, alone in one["steps"].items():
        shared = several["steps"][batch]
        part = alone / shared / options.processes
        print(
            f"{options.processes} processes, batch {batch}: {shared:.2f} ms, alone {alone:.2f} ms: {part:.0%} of "
            f"{options.processes} times as fast"
        )
    for size, taken in several["all_reduce"].items():
        print(f"all-reduce of {int(size):,} bytes: {taken:.3f} ms")
    return found


if __name__ == "__main__":
    main()
