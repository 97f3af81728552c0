"""Compiled array programs against JAX and PyTorch: one thread each, in turns, in one process.

    python benchmarks/programs.py [--json]

Needs at least one of the peers (``pip install '.[peers]'``); a peer that is not installed is left out.  Every program
is checked once: all sides must agree to a small tolerance before any of them is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.pop("OPENBLAS_CORETYPE", None)  # slows NumPy's and the peers' products down; read when a library is loaded
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

import hybridflow as hf
from hybridflow.cli import measure, output

Program = Callable[..., Any]


def chain(tanh: Callable[[Any], Any]) -> Program:
    def program(x: Any) -> Any:
        for _ in range(10):
            x = tanh(x) * 1.01 + 0.1
        return x

    return program


def sides() -> dict[str, dict[str, Any]]:
    """For each side: ``array`` makes an argument, ``compiled`` a callable that returns when it is done."""
    found: dict[str, dict[str, Any]] = {
        "hybridflow": {
            "array": hf.asarray,
            "compiled": hf.function,
            "programs": {
                "sum(x + y*z), 16M": lambda x, y, z: hf.sum(x + y * z),
                "30-op chain, 1M": chain(hf.tanh),
                "exp, 8M": hf.exp,
                "gelu, 8M": hf.nn.gelu,
                "softmax, 8192x1024": hf.nn.softmax,
                "layer_norm, 8192x1024": hf.nn.layer_norm,
                "column sums, 8192x1024": lambda x: hf.sum(x, axis=0),
                "transposed sum, 2048x2048": lambda x: x + x.T,
                "matmul, 1024x1024": lambda x: x @ x,
            },
        }
    }
    if importlib.util.find_spec("jax"):
        import jax
        import jax.numpy as jnp

        def compiled(program: Program) -> Program:
            made = jax.jit(program)
            return lambda *arguments: made(*arguments).block_until_ready()

        def normal(x: Any) -> Any:
            return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

        found["jax"] = {
            "array": jnp.asarray,
            "compiled": compiled,
            "programs": {
                "sum(x + y*z), 16M": lambda x, y, z: jnp.sum(x + y * z),
                "30-op chain, 1M": chain(jnp.tanh),
                "exp, 8M": jnp.exp,
                "gelu, 8M": lambda x: jax.nn.gelu(x, approximate=False),
                "softmax, 8192x1024": jax.nn.softmax,
                "layer_norm, 8192x1024": normal,
                "column sums, 8192x1024": lambda x: jnp.sum(x, 0),
                "transposed sum, 2048x2048": lambda x: x + x.T,
                "matmul, 1024x1024": lambda x: x @ x,
            },
        }
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        found["torch"] = {
            "array": torch.from_numpy,
            "compiled": lambda program: program,  # eager: its compiler needs a C++ compiler, and is slower on these
            "programs": {
                "sum(x + y*z), 16M": lambda x, y, z: torch.sum(x + y * z),
                "30-op chain, 1M": chain(torch.tanh),
                "exp, 8M": torch.exp,
                "gelu, 8M": torch.nn.functional.gelu,
                "softmax, 8192x1024": lambda x: torch.softmax(x, -1),
                "layer_norm, 8192x1024": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
                "column sums, 8192x1024": lambda x: torch.sum(x, 0),
                "transposed sum, 2048x2048": lambda x: x + x.T,
                "matmul, 1024x1024": lambda x: x @ x,
            },
        }
    return found


def arguments(name: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    if name.startswith("sum("):
        return [rng.random(1 << 24, np.float32) for _ in range(3)]
    shape = {"1M": (1 << 20,), "8M": (8192, 1024)}.get(name.split()[-1]) or tuple(
        int(extent) for extent in name.split()[-1].split("x")
    )
    return [rng.standard_normal(shape, np.float32)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the medians in seconds as JSON")
    as_json = parser.parse_args().json
    present = sides()
    if len(present) == 1:
        sys.exit("neither jax nor torch is installed: pip install '.[peers]'")
    rows, results = [], {}
    for name in present["hybridflow"]["programs"]:
        given = arguments(name)
        runs, values = {}, {}
        for side, parts in present.items():
            run, held = parts["compiled"](parts["programs"][name]), [parts["array"](a) for a in given]
            values[side] = np.asarray(run(*held))
            runs[side] = measure.calls(run, *held)
        for side, value in values.items():
            scale = np.abs(values["hybridflow"]).max()
            np.testing.assert_allclose(value, values["hybridflow"], rtol=1e-3, atol=1e-4 * scale, err_msg=side)
        timings = measure.interleaved(runs, budget=2.0, least_rounds=7)
        results[name] = {side: timing.median for side, timing in timings.items()}
        best = min((side for side in timings if side != "hybridflow"), key=lambda side: timings[side].median)
        ratio = timings[best].median / timings["hybridflow"].median
        verdict = "same" if timings[best].overlaps(timings["hybridflow"]) else f"{ratio:.2f}x {best}"
        rows.append([name, *(output.seconds(t.median) for t in timings.values()), verdict])
    if as_json:
        output.print_json(results)
    else:
        print(output.table(["program", *present, "against the best peer"], rows))


if __name__ == "__main__":
    main()
