"""The numbers of ``compiler/loops/tuning.py`` that were measured, measured again: programs at which one of them
decides, with several values for it, one thread, in turns.

    python benchmarks/thresholds.py [name ...]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ["HF_VERIFY"] = "1"  # programs are compiled, whatever the disk has of the same graphs
os.environ["HF_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf
from hybridflow.cli import measure, output
from hybridflow.compiler.codegen.core import elements, nontemporal
from hybridflow.compiler.codegen.nests import inner_reduction
from hybridflow.compiler.codegen.ordering import argsort, prefix_scan, top_k, vector_sort
from hybridflow.compiler.codegen.products import (
    cache_blocking,
    gemv,
    macro_kernel,
    matmul,
    micro_kernel,
    single_row_matmul,
)
from hybridflow.compiler.loops import fusion, materialization, schedule


class Case(NamedTuple):
    """A limit of a module, values to try, and a program with the shapes of its arguments."""

    module: Any
    name: str
    values: tuple[int, ...]
    program: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def chain(x: Any) -> Any:
    for _ in range(100):
        x = hf.tanh(x) * 1.01 + 0.1
    return x


def shared(x: Any) -> Any:
    y = x * 2 + 1
    return hf.cumulative_sum(y), y[::-1] + 1


def padded(x: Any, y: Any) -> Any:
    return hf.pad(x.T, ((0, 2), (1, 1))) + hf.pad(y.T, ((2, 0), (1, 1)))


def running(x: Any) -> Any:
    return hf.cumulative_sum(x, axis=1)


def weighed(x: Any, weights: Any) -> Any:
    return x.T @ weights


def product(x: Any, y: Any) -> Any:
    return x @ y


def rising(x: Any) -> Any:
    """The best of lines in which each element is better than those before."""
    return hf.top_k(hf.astype(hf.arange(4096), hf.float32) + x * 1e-3, 8)


SUM, COLUMNS = (lambda x: hf.sum(x)), (lambda x: hf.sum(x, axis=0))
CASES = {
    "members": Case(fusion, "MAX_MEMBERS", (32, 256, 2048), chain, ((1 << 18,),)),
    "cheap": Case(materialization, "CHEAP", (0, 10, 100), shared, ((1 << 20,),)),
    "streams": Case(nontemporal, "MAX_NONTEMPORAL_STREAMS", (0, 2), lambda x: x + 1, ((1 << 24,),)),
    "inturn": Case(inner_reduction, "CHUNKS_OF_ONE_STREAM", (1, 2, 4), SUM, ((1 << 24,),)),
    "near": Case(materialization, "NEAR", (256, 4096), padded, ((1000, 1000), (1000, 1000))),
    "turn": Case(schedule, "MAX_VECTORS", (1, 2, 4, 8), hf.exp, ((1 << 16,),)),
    "light": Case(schedule, "LIGHT", (0, 8, 48), lambda x: hf.sum(hf.exp(x), axis=1), ((256, 1024),)),
    "row": Case(
        inner_reduction,
        "LONG_ROW",
        (1, 16, 1 << 40),
        lambda x: x / hf.sqrt(hf.sum(x * x, 1, keepdims=True)),
        ((500, 256),),
    ),
    "tile": Case(schedule, "TILE", (512, 2048, 8192), COLUMNS, ((1024, 8192),)),
    "terms": Case(schedule, "MAX_TERMS", (1, 2, 4, 8), COLUMNS, ((4096, 1000),)),
    "split": Case(schedule, "SPLIT_REDUCTION", (1, 1 << 40), SUM, ((1 << 18,),)),
    "short": Case(schedule, "SHORT_LOOP", (1, 16), lambda x: hf.nn.softmax(x), ((100_000, 10),)),
    "shortline": Case(prefix_scan, "SHORT_LINE", (4, 8, 16), running, ((20_000, 6),)),
    "longline": Case(prefix_scan, "LONG_LINE", (64, 256, 1 << 40), running, ((2, 200),)),
    "fewlines": Case(prefix_scan, "FEW_LINES", (1, 4, 9), running, ((3, 1000),)),
    "neighbours": Case(gemv, "LANE_CELLS", (1 << 14, 1 << 15, 1 << 16), weighed, ((10_000, 128), (10_000, 1))),
    "longlines": Case(gemv, "LONG_LINES", (256, 1024, 1 << 40), product, ((16384, 1024), (1024, 1))),
    "packed": Case(cache_blocking, "PACKED_COLUMNS", (512, 1024, 2048), product, ((2048, 2048), (2048, 2048))),
    "together": Case(cache_blocking, "PANELS_PER_PASS", (1, 4, 8), product, ((1024, 1024), (1024, 1024))),
    "kept": Case(cache_blocking, "KEPT_ROWS", (0, 4096), product, ((1024, 1024), (1024, 1024))),
    "lines": Case(single_row_matmul, "LINES_AT_ONCE", (2, 4, 8), product, ((1, 4096), (4096, 4096))),
    "inplace": Case(cache_blocking, "NARROW", (4, 16, 32), product, ((500, 400), (400, 400))),
    "halving": Case(matmul, "MIN_SYRK_DEPTH", (1, 1 << 40), lambda x: x @ x.T, ((500, 24),)),
    "turns": Case(micro_kernel, "SUMS_PER_ITERATION", (28, 56, 112), product, ((512, 512), (512, 512))),
    "tiles": Case(macro_kernel, "FEW_TILES", (0, 4, 16), product, ((64, 512), (512, 512))),
    "panels": Case(cache_blocking, "ENOUGH_PANELS", (4, 16, 64), product, ((512, 512), (512, 384))),
    "apart": Case(elements, "MAX_STRIDED_LOAD", (1, 4, 6), lambda x: x[:, 0] * x[:, 3], ((100_000, 6),)),
    "patience": Case(top_k, "PATIENCE", (8, 32, 128, 1 << 40), rising, ((256, 4096),)),
    "pairs": Case(argsort, "ALL_PAIRS", (16, 64, 256), lambda x: hf.argsort(x, axis=1), ((1000, 64),)),
    "fewsorted": Case(vector_sort, "MAX_LANE_SORT", (32, 64, 256), lambda x: hf.sort(x, axis=1), ((4000, 128),)),
    "sort": Case(argsort, "SORT_BLOCK", (1 << 12, 1 << 15, 1 << 18), lambda x: hf.argsort(x), ((1 << 18,),)),
}


def run(label: str, case: Case) -> list[list[str]]:
    rng = np.random.default_rng(0)
    arguments = [hf.asarray(rng.standard_normal(shape, np.float32)) for shape in case.shapes]
    usual, calls, first = getattr(case.module, case.name), {}, {}
    for value in case.values:
        setattr(case.module, case.name, value)
        function = hf.function(lambda *args: case.program(*args))
        start = time.perf_counter()
        function(*arguments)
        first[value] = time.perf_counter() - start
        calls[str(value)] = measure.calls(function, *arguments)
    setattr(case.module, case.name, usual)
    timings = measure.interleaved(calls, budget=2.0, least_rounds=7)
    return [
        [
            label,
            f"{case.name} = {v}{' (as it is)' if v == usual else ''}",
            *map(output.seconds, (timings[str(v)].median, first[v])),
        ]
        for v in case.values
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*CASES, []], help="what to measure; everything unless given")
    names = parser.parse_args().names or list(CASES)
    rows = [row for name in names for row in run(name, CASES[name])]
    print(output.table(["threshold", "value", "a call", "first call"], rows))


if __name__ == "__main__":
    main()
