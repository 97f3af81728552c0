"""Seconds from the start of a process to the first answer of a saved function, and microseconds of later calls.

    python benchmarks/saved_load.py [--json] [--repeats N] [FILE.hf]

Each figure is the median of fresh processes, whose machine code is on disk.  "CPU" is what the process used on all
cores; on a machine that does other work the clock says more of that work than of hybridflow.  Without a file it is a
network 64-128-128-10 with an open batch.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import hybridflow as hf

REPEATS = 9
ROWS = 4
CHILD = """
import sys, time
clock, cpu = time.perf_counter, time.process_time
times = [("", clock(), cpu())]
import hybridflow as hf
times.append(("import", clock(), cpu()))
loaded = hf.saved.load(sys.argv[1])
times.append(("load", clock(), cpu()))
specs = next(iter(loaded.signatures.values())).input_signature
inputs = [hf.zeros([ROWS if type(n) is not int else n for n in spec.shape], spec.dtype) for spec in specs]
result = loaded(*inputs)
times.append(("first answer", clock(), cpu()))
modules = sum(name.split(".")[0] == "hybridflow" for name in sys.modules)
f = next(iter(loaded.signatures.values()))
for _ in range(2000):
    f(*inputs)
def best(g):
    found = []
    for _ in range(20):
        start = clock()
        for _ in range(500):
            g(*inputs)
        found.append((clock() - start) / 500)
    return min(found) * 1e6
import json
found = {name: [b - a, d - c] for (_, a, c), (name, b, d) in zip(times, times[1:])}
print(json.dumps({**found, "process": [times[-1][1] - times[0][1], times[-1][2]], "modules": modules,
                  "call": best(f), "call of the module": best(loaded)}))
""".replace("ROWS", str(ROWS))


def network(folder: str) -> str:
    layers = [hf.Input((64,)), hf.layers.Dense(128, "relu"), hf.layers.Dense(128, "relu"), hf.layers.Dense(10)]
    return hf.saved.save(hf.Sequential(layers), os.path.join(folder, "network.hf"))


def measured(path: str) -> dict[str, Any]:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True, env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or network(folder)
        measured(path)  # which leaves byte code and machine code on the disk
        runs = [measured(path) for _ in range(options.repeats)]
    stages = ("import", "load", "first answer", "process")
    result: dict[str, Any] = {
        name: [statistics.median(run[name][k] for run in runs) for k in (0, 1)] for name in stages
    }
    result |= {name: statistics.median(run[name] for run in runs) for name in ("modules", "call", "call of the module")}
    if options.json:
        print(json.dumps(result))
        return
    print(f"{'':<14}{'clock':>9}{'CPU':>9}")
    for name in stages:
        print(f"{name:<14}{result[name][0]:>7.3f} s{result[name][1]:>7.3f} s")
    print(f"{result['modules']:.0f} modules of hybridflow; a call {result['call']:.2f} µs, ", end="")
    print(f"of the module {result['call of the module']:.2f} µs")


if __name__ == "__main__":
    main()
