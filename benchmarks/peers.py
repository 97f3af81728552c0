"""What benchmarks that compare programs side by side have in common: the peers of one process, and the table.

A peer that is not installed is left out (``pip install '.[peers]'``).  Every program is checked once: all sides must
agree before any of them is timed; then they take turns.  ``limited`` must be called before any of them is imported.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Program = Callable[..., Any]
Programs = dict[str, Program]
Side = tuple[Callable[[Any], Any], Callable[[Program], Program], Programs]


def limited(threads: int) -> None:
    """Have every library that is imported from now on use that many threads."""
    os.environ.pop("OPENBLAS_CORETYPE", None)
    count = str(threads)
    os.environ.update(OMP_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count, HF_NUM_THREADS=count)
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def parsed(doc: str | None) -> argparse.Namespace:
    """The command line; libraries are limited as it says."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="measure programs with one of these in their names")
    parser.add_argument("--json", action="store_true", help="print the medians in seconds as JSON")
    parser.add_argument("--threads", type=int, default=1, help="threads of each side (1)")
    options = parser.parse_args()
    limited(options.threads)
    return options


def sides(
    threads: int,
    ours: Callable[[], Programs],
    numpys: Callable[[], Programs],
    jaxes: Callable[[], Programs],
    torches: Callable[[], Programs],
) -> dict[str, Side]:
    """For each side what makes an argument, what makes a callable that returns when it is done, and the programs."""
    import hybridflow as hf

    found: dict[str, Side] = {
        "hybridflow": (hf.asarray, hf.function, ours()),
        "numpy": (lambda x: x, lambda program: program, numpys()),
    }
    if importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)

        def compiled(program: Program) -> Program:
            made = jax.jit(program)
            return lambda *given: jax.block_until_ready(made(*given))

        found["jax"] = (jax.numpy.asarray, compiled, jaxes())
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
        found["torch"] = (torch.from_numpy, lambda program: program, torches())
    return found


def compare(
    options: argparse.Namespace,
    present: Mapping[str, Side],
    arguments: Mapping[str, Sequence[Any]],
    tolerance: float = 1e-5,
) -> None:
    """Check and time the programs whose names have one of the words, and print how they compare."""
    from hybridflow.cli import output

    rows, results = [], {}
    for name, given in arguments.items():
        if options.words and not any(word in name for word in options.words):
            continue
        timings = _timed(name, given, present, tolerance)
        results[name] = {side: timing.median for side, timing in timings.items()}
        others = [side for side in timings if side != "hybridflow"]
        verdict = "-"
        if others:
            best = min(others, key=lambda side: timings[side].median)
            ratio = timings[best].median / timings["hybridflow"].median
            verdict = f"{ratio:.2f} {best}" + (" (same)" if timings[best].overlaps(timings["hybridflow"]) else "")
        times = [output.seconds(timings[side].median) if side in timings else "-" for side in present]
        rows.append([name, *times, verdict])
    if options.json:
        output.print_json(results)
    else:
        print(output.table(["program", *present, "best peer / ours"], rows))


def _timed(name: str, given: Sequence[Any], present: Mapping[str, Side], tolerance: float) -> Any:
    """The timing of each side that has the program."""
    import numpy as np

    from hybridflow.cli import measure

    runs: dict[str, Any] = {}
    wanted: list[Any] | None = None
    for side, (array, compiled, programs) in present.items():
        if name in programs:
            run, held = compiled(programs[name]), [array(a) for a in given]
            value = run(*held)
            parts = [np.asarray(v) for v in (value if isinstance(value, (tuple, list)) else [value])]
            wanted = parts if wanted is None else wanted
            for part, other in zip(parts, wanted, strict=True):
                scale = max(1.0, float(np.abs(other).max()) if other.size else 1.0)
                np.testing.assert_allclose(
                    part, other, rtol=tolerance, atol=tolerance * scale, err_msg=f"{name}, {side}"
                )
            runs[side] = measure.calls(run, *held)
    return measure.interleaved(runs, budget=1.0, least_rounds=7)
