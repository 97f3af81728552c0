"""``hybridflow bench``: eager against compiled, and both against what the machine can do."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow import flags
from hybridflow.cli import machine_peaks, measure, output, programs, target as cli_target
from hybridflow.cli.machine_peaks import Limits
from hybridflow.cli.measure import Timing
from hybridflow.compiler.ir.extents import Dim, value_at
from hybridflow.compiler.loops.buffer_assignment import byte_size
from hybridflow.errors import ArgumentError
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.function import Function
from hybridflow.runtime.machine import host_target

_FORMAT = 1  # of the JSON
_DESCRIPTION = f"""Time programs eagerly (the undecorated function, called in a loop) and compiled, in turns
(A B A B ...). Without FILE::function it runs a built-in
set in under a minute. Times are medians; 'same' instead of a speed-up means that the spreads (quartiles) overlap, so
that neither is faster. The first call traces, compiles without the disk cache, and runs. {machine_peaks.HOW} 'of
limit' is the time that the machine would need at least, for the bytes of arguments and results moved once and for the
arithmetic that the kernels contain, as a share of the time measured."""


def add_to(commands: Any) -> None:
    parser = commands.add_parser("bench", help="time eager against compiled", description=_DESCRIPTION)
    parser.add_argument("target", metavar="FILE::function", nargs="?", help="time this function instead")
    parser.add_argument("--shapes", metavar="SHAPES", help=f"of random arguments: {cli_target.SHAPES_HELP}")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--wide", action="store_true", help="show spreads, numbers of kernels and rates too")
    parser.add_argument(
        "--threads", metavar="N", type=int, default=1, help="threads for programs (1, as for the limits)"
    )
    parser.add_argument("--output", metavar="FILE", help="also write the JSON to a file, whole or not at all")
    parser.add_argument("--compare", metavar="OLD.json", help="show the change against an earlier --output")
    parser.add_argument(
        "--fail-over",
        metavar="PERCENT",
        type=_percent,
        help="with --compare: exit 1 when a program got slower by more than this (5%%), and by more than the spread",
    )
    parser.set_defaults(run=run)


def _percent(text: str) -> float:
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage; write 5%")
    return value / 100


@dataclasses.dataclass(frozen=True)
class Result:
    """What one program showed.  Rates are work per second of the compiled program."""

    name: str
    eager: Timing
    graph: Timing
    first_call: float
    kernels: int
    moved: int  # bytes of arguments and results
    operations: int
    limits: Limits
    limited_by: str  # "memory" or "arithmetic"
    of_limit: float

    @property
    def winner(self) -> str | None:
        """The faster way, or None while the spreads overlap."""
        if self.eager.overlaps(self.graph):
            return None
        return "graph" if self.graph.median < self.eager.median else "eager"


def run(options: argparse.Namespace) -> int:
    if options.fail_over is not None and options.compare is None:
        raise ArgumentError("bench", "--fail-over needs --compare OLD.json.", "")
    if options.shapes is not None and options.target is None:
        raise ArgumentError("bench", "--shapes needs a FILE::function.", "")
    chosen = _chosen(options.target, options.shapes)
    old = _read_old(options.compare) if options.compare else {}
    with contextlib.ExitStack() as stack:
        stack.callback(hf.config.set_num_threads, hf.config.get_num_threads())
        hf.config.set_num_threads(options.threads)
        file = stack.enter_context(output.OutputFile(options.output, "bench")) if options.output else None
        stack.callback(output.progress, "")
        output.progress("limits of this machine")
        machine = machine_peaks.Machine()
        _warm_up()
        results = []
        for k, (name, make) in enumerate(chosen, 1):
            output.progress(f"{k}/{len(chosen)} {name}")
            results.append(_measured(name, make, machine))
        changes = _changes(results, old)
        report = _report(results, changes)
        if file is not None:
            file.write_json(report)
    if options.json:
        output.print_json(report)
    else:
        _print(results, changes, options.wide)
    return _verdict(changes, options.fail_over)


Make = Callable[[], tuple[Function, tuple[Any, ...]]]


def _chosen(target: str | None, shapes: str | None) -> list[tuple[str, Make]]:
    """Name and maker of each program to time."""
    if target is None:
        return [(program.name, _compiled(program)) for program in programs.BUILT_IN]
    function = cli_target.load(target, "bench")
    specs = cli_target.specs(function, shapes, "bench")
    arguments = cli_target.random_tensors(specs, "bench")
    name = f"{target.partition('::')[2]}({', '.join(map(cli_target.text_of, specs))})"

    def make() -> tuple[Function, tuple[Any, ...]]:
        function.cache_clear()
        return function, arguments

    return [(name, make)]


def _compiled(program: programs.Program) -> Make:
    def make() -> tuple[Function, tuple[Any, ...]]:
        python, arguments = program.make()
        return hf.function(python), arguments

    return make


def _warm_up() -> None:
    """Load the compiler, which the process pays for once and not each function."""
    with flags.CACHE_DIR("off"):
        hf.function(lambda x: hf.exp(x) + 1.0)(hf.ones((4,)))


def _measured(name: str, make: Make, machine: machine_peaks.Machine) -> Result:
    function, arguments = make()
    with flags.CACHE_DIR("off"):
        started = time.perf_counter()
        function(*arguments)
        first_call = time.perf_counter() - started
    # Both as a user would write them: whatever else is switched for the one would be timed with it.
    candidates = {
        "eager": measure.calls(function.python_function, *arguments),
        "graph": measure.calls(function, *arguments),
    }
    timings = measure.interleaved({**candidates, **machine.samplers}, budget=2.0)
    concrete = function.get_concrete_function(*arguments)
    kernels = concrete.staged.compile().program.kernels
    read, written = _bytes(concrete, arguments)
    operations = sum(kernel.flops or 0 for kernel in kernels)
    limits = machine.limits(timings)
    least, limited_by = limits.least_seconds(read, written, operations)
    return Result(
        name,
        timings["eager"],
        timings["graph"],
        first_call,
        len(kernels),
        read + written,
        operations,
        limits,
        limited_by,
        least / timings["graph"].median,
    )


def _bytes(concrete: ConcreteFunction, arguments: Sequence[hf.Tensor]) -> tuple[int, int]:
    """Bytes that any program must read and write: of the inputs, and of outputs and updated variables."""
    graph = concrete.graph
    dims: dict[str, int] = {}  # symbolic extents
    tensors = hf.tree.leaves(list(arguments))
    for node, tensor in zip(graph.arguments, tensors):
        dims.update((e.symbol, size) for e, size in zip(node.shape, tensor.shape) if isinstance(e, Dim) and e.symbol)
    sizes = [value_at(byte_size(node), dims) for node in graph.inputs]
    written = sum(value_at(byte_size(node), dims) for node in graph.outputs)
    return sum(sizes), written + sum(sizes[position] for position in graph.updates)


# Comparing with an earlier run


@dataclasses.dataclass(frozen=True)
class Change:
    """How the compiled time of a program moved, and whether by more than the spreads explain."""

    ratio: float
    is_clear: bool


def _read_old(path: str) -> dict[str, Timing]:
    """The compiled times in a file that ``--output`` wrote.  Raises ArgumentError for any other file."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        return {p["name"]: Timing(**p["graph"]) for p in report["programs"]}
    except OSError as error:
        raise ArgumentError("bench", f"--compare {path}: {error.strerror}.", "") from None
    except (ValueError, KeyError, TypeError):
        raise ArgumentError("bench", f"--compare {path} is not a file that bench --output wrote.", "") from None


def _changes(results: Sequence[Result], old: dict[str, Timing]) -> dict[str, Change]:
    changes = {}
    for result in results:
        before = old.get(result.name)
        if before is not None:
            changes[result.name] = Change(result.graph.median / before.median, not result.graph.overlaps(before))
    return changes


def _verdict(changes: dict[str, Change], allowed: float | None) -> int:
    if allowed is None:
        return 0
    slower = [name for name, change in changes.items() if change.is_clear and change.ratio > 1 + allowed]
    for name in slower:
        print(f"[bench] {name} became slower: {_change_text(changes[name])}.", file=sys.stderr)
    return 1 if slower else 0


# Reporting


def _report(results: Sequence[Result], changes: dict[str, Change]) -> dict[str, Any]:
    here = host_target.detect()
    return {
        "format": _FORMAT,
        "machine": {
            "cpu": here.cpu,
            "triple": here.triple,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "programs": [
            {
                **dataclasses.asdict(result),
                "speed_up": result.eager.median / result.graph.median,
                "winner": result.winner,
                "change": changes[result.name].ratio - 1 if result.name in changes else None,
            }
            for result in results
        ],
    }


def _print(results: Sequence[Result], changes: dict[str, Change], wide: bool) -> None:
    read, copy, flops = (max(getattr(r.limits, name) for r in results) for name in ("read", "copy", "flops"))
    print(f"one thread at its best: read {read / 1e9:.1f} GB/s, copy {copy / 1e9:.1f} GB/s, {flops / 1e9:.0f} GFLOP/s")
    columns = ["program", "eager", "graph", "spread", "speed-up", "first call", "kernels", "rate", "of limit"]
    rows = [_row(result) for result in results]
    if not wide:
        shown = [k for k, name in enumerate(columns) if name not in ("spread", "kernels", "rate")]
        columns, *rows = ([row[k] for k in shown] for row in (columns, *rows))
    if changes:
        columns.append("change")
        for row, result in zip(rows, results):
            row.append(_change_text(changes[result.name]) if result.name in changes else "new")
    print(output.table(columns, rows))


def _row(result: Result) -> list[str]:
    work, unit = (result.moved, "GB/s") if result.limited_by == "memory" else (result.operations, "GFLOP/s")
    return [
        result.name,
        output.seconds(result.eager.median),
        output.seconds(result.graph.median),
        f"±{result.graph.spread:.1%}",
        f"{result.eager.median / result.graph.median:.1f}x" if result.winner else "same",
        output.seconds(result.first_call),
        str(result.kernels),
        f"{work / result.graph.median / 1e9:.1f} {unit}",
        f"{result.of_limit:.0%}",
    ]


def _change_text(change: Change) -> str:
    return f"{change.ratio - 1:+.1%}" + ("" if change.is_clear else " (spread)")
