"""Programs of graphs: compiled, or as the disk keeps them.

What the compiler makes of a graph is decided by the graph, the target, the flags that passes look at, the schedules
that were measured, and the compiler's own source.  All that makes a key, so that a program which any process compiled
before costs its graph's text and one read.  The user's lines do not count: a program is kept with numbers in their
place, and is found again when its functions have moved in their file.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hybridflow import flags
from hybridflow.compiler.ir.graph import Graph, graphs_in
from hybridflow.compiler.loops.schedule_choice import USUAL, Choices
from hybridflow.compiler.program import Program
from hybridflow.compiler.target import Target
from hybridflow.eager import measured_schedules
from hybridflow.runtime import gc_pause
from hybridflow.runtime.machine import disk_cache

_Moved = Callable[["str | None"], "str | None"]


def program_for(
    graph: Graph, target: Target, fastmath: bool = False, timed: bool = False, shared: bool = False
) -> Program:
    """The program of a graph (see ``compiler.pipeline.compile_graph``)."""
    lines = _lines(graph)
    places = list(dict.fromkeys(filter(None, lines)))
    choices = measured_schedules.choices_for(target)
    key = None if _is_watched() else _key(graph, target, (fastmath, timed, shared), lines, places, choices)
    payload = disk_cache.get(key) if key is not None else None
    program = _read(payload, target, places) if payload is not None else None
    if program is None:
        # The compiler is loaded when something is compiled, not at import.
        from hybridflow.compiler.pipeline import compile_graph

        with gc_pause.paused():
            program = compile_graph(graph, target, fastmath, timed, shared, choices)
        _show(graph, program)
        if key is not None:
            disk_cache.put(key, _written(program, places), f"program of {graph.name}")
    return program


def _show(graph: Graph, program: Program) -> None:
    """What HF_LOG=kernels and HF_DEBUG=4 ask to see of a program that was made."""
    if flags.logs("kernels"):
        for kernel in program.kernels:
            ops = ", ".join(kernel.ops)
            print(f"[kernels] {graph.name}: {kernel.name} ({ops}), {kernel.bytes} bytes", file=sys.stderr)
    if flags.DEBUG.value >= 4:
        print(f"# LLVM IR of {graph.name}\n{program.text}", file=sys.stderr)


def _is_watched() -> bool:
    """Whether somebody wants to see, or to have checked, what the compiler does."""
    topics = set(flags.LOG.value.split(",")) - {"", "cache", "retrace"}
    return bool(topics or flags.DEBUG.value or flags.DUMP.value or flags.VERIFY.value)


def _key(
    graph: Graph,
    target: Target,
    options: tuple[bool, ...],
    lines: list[str | None],
    places: list[str],
    choices: Choices = USUAL,
) -> str | None:
    source = _compiler()
    if source is None or disk_cache.folder() is None:
        return None
    from hybridflow.compiler.ir.text import to_text

    numbers = {place: k for k, place in enumerate(places)}
    numbered = [numbers.get(where or "", -1) for where in lines]
    chosen = choices.forced, sorted(choices.measured.items())
    settings = source, np.__version__, target, options, flags.SKIP.value, chosen
    return f"program\n{settings}\n{numbered}\n{to_text(graph, locations=False)}"


def _lines(graph: Graph) -> list[str | None]:
    """The user's line of each node, those of sub-graphs behind the node that has them."""
    result: list[str | None] = []
    for node in (*graph.inputs, *graph.nodes):
        result.append(node.where)
        for inner in graphs_in(node.attrs):
            result += _lines(inner)
    return result


@functools.cache
def _compiler() -> str | None:
    """What stands for the source of the compiler; None where it is not to be found."""
    file = sys.modules[Program.__module__].__file__
    return disk_cache.fingerprint(os.path.dirname(os.path.abspath(file))) if file else None


def _written(program: Program, places: list[str]) -> bytes:
    import pickle

    numbers = {place: str(k) for k, place in enumerate(places)}
    moved = _relocated(program, lambda place: numbers.get(place or ""))
    return pickle.dumps(replace(moved, target=None), protocol=5)  # type: ignore[arg-type]


def _read(payload: bytes, target: Target, places: list[str]) -> Program | None:
    import pickle

    try:
        program = pickle.loads(payload)
        relocatable = replace(program, target=target)
        return _relocated(relocatable, lambda number: None if number is None else places[int(number)])
    except Exception:  # whatever damaged it: as if it were not there
        return None


def _relocated(program: Program, place: _Moved) -> Program:
    """The program with another name for each of the user's lines."""
    return replace(
        program,
        checks=tuple(replace(check, where=place(check.where)) for check in program.checks),
        kernels=tuple(
            replace(kernel, lines=tuple(line for line in map(place, kernel.lines) if line is not None))
            for kernel in program.kernels
        ),
        callbacks=tuple(replace(callback, where=place(callback.where)) for callback in program.callbacks),
    )
