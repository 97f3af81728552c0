"""What is inside a Function, as text and tables for people and as plain data for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir.text import to_text
from hybridflow.errors import ArgumentError, short_location

if TYPE_CHECKING:
    from hybridflow.jit.concrete import ConcreteFunction
    from hybridflow.jit.retracing import Retrace

STAGES = ("traced", "optimized", "llvm", "asm")


class Table:
    """Rows that print as an aligned table.  Each row is also a dict, for programs."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.columns = tuple(columns)
        self.rows = [dict(zip(self.columns, row)) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    def __repr__(self) -> str:
        cells = [[_cell(row[column]) for column in self.columns] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(self.columns, *cells)]
        lines = [self.columns, *cells]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def signatures(functions: Sequence[tuple[ConcreteFunction, int]]) -> Table:
    """One row per concrete function and the number of its hits."""
    rows = [
        (
            k,
            ", ".join(f"{path}: {type}" for path, type in f.arguments),
            tuple(str(node.type) for node in f.graph.outputs),
            hits,
            f.trace_ms,
            f.compile_ms,
        )
        for k, (f, hits) in enumerate(functions)
    ]
    return Table(("id", "inputs", "outputs", "hits", "trace ms", "compile ms"), rows)


def ir(concrete: ConcreteFunction, stage: str) -> str:
    """The program at ``stage`` as text: the graph as traced or as fusion sees it, LLVM IR, or assembly."""
    if stage not in STAGES:
        raise ArgumentError("ir", f"there is no stage {stage!r}; the stages are {', '.join(STAGES)}.")
    if stage == "traced":
        return to_text(concrete.graph)
    from hybridflow.compiler import pipeline  # loaded when something is compiled, not at import
    from hybridflow.runtime.machine import machine_code

    if stage == "optimized":
        return to_text(pipeline.optimize(concrete.graph))
    program = concrete.staged.compile().program
    return program.text if stage == "llvm" else machine_code.compile_assembly(program.text, program.target)


@dataclass(frozen=True)
class Explanation:
    """What one signature of a function runs.  Prints as text."""

    function: str
    signature: str
    operations: int
    variables: tuple[str, ...]
    captures: tuple[str, ...]
    trace_ms: float
    compile_ms: float
    kernels: Table
    memory: Table
    retraces: tuple[str, ...]
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def explain(concrete: ConcreteFunction, retraced: Iterable[Retrace]) -> Explanation:
    """Everything there is to know about one concrete function, and how its function was traced again."""
    graph = concrete.graph
    variables = tuple(f"{v.name or 'variable'}: {v._tensor.type}" for v in concrete.variables)
    captures = tuple(str(t.type) for t in concrete.captures)
    retraces = tuple(map(str, retraced))
    kernel_table, memory_table = kernels([concrete]), memory_plan([concrete])
    lines = [
        repr(concrete)[1:-1],
        f"traced in {concrete.trace_ms:.2f} ms, compiled in {concrete.compile_ms:.2f} ms",
        f"{len(graph.nodes)} operations traced",
    ]
    for title, entries in (("variables", variables), ("captured tensors", captures), ("retraces", retraces)):
        if entries:
            lines += [f"{title}:", *(f"  {entry}" for entry in entries)]
    for title, table in (("kernels", kernel_table), ("memory", memory_table)):
        if len(table):
            lines += [f"{title}:", *(f"  {line}" for line in repr(table).splitlines())]
    return Explanation(
        concrete.name,
        ", ".join(f"{path}: {type}" for path, type in concrete.arguments),
        len(graph.nodes),
        variables,
        captures,
        concrete.trace_ms,
        concrete.compile_ms,
        kernel_table,
        memory_table,
        retraces,
        "\n".join(lines),
    )


def kernels(functions: Sequence[ConcreteFunction]) -> Table:
    """One row per kernel."""
    rows = []
    for f in functions:
        program = getattr(f.staged.compile(), "program", None)
        for kernel in program.kernels if program is not None else ():
            lines = tuple(map(short_location, kernel.lines))
            shown = (kernel.ops, lines, kernel.bytes, kernel.flops, kernel.note, kernel.schedule, kernel.wave)
            rows.append((f.name, kernel.name, *shown))
    return Table(("function", "kernel", "ops", "lines", "bytes", "flops", "note", "schedule", "wave"), rows)


def memory_plan(functions: Sequence[ConcreteFunction]) -> Table:
    """One row per input, output and arena, and per update of a variable: in place, or into fresh memory because a check
    may fail after it, or because the old value is still needed.  The arena holds what kernels hand on, the scratch
    memory of one worker, and all that one wave of kernels needs at a time."""
    rows: list[tuple[Any, ...]] = []
    for f in functions:
        program = getattr(f.staged.compile(), "program", None)
        for role, nodes in (("input", f.graph.inputs), ("output", f.graph.outputs)):
            for node in nodes:
                kind = node.attrs["role"].value if role == "input" else role
                label = node.attrs["name"] if role == "input" else ""
                size = node.type.size * node.type.dtype.itemsize if node.type.is_static else None
                rows.append((f.name, kind, label, str(node.type), size))
        if program is not None:
            for i, node in sorted(f.graph.updates.items()):
                size = node.type.size * node.type.dtype.itemsize if node.type.is_static else None
                kind = "in-place update" if program.inputs[i].in_place else "fresh update"
                label = f.graph.inputs[i].attrs["name"]
                rows.append((f.name, kind, label, str(node.type), 0 if program.inputs[i].in_place else size))
            arena = program.memory()
            waves = 1 + max((kernel.wave for kernel in program.kernels), default=-1)
            rows.append((f.name, "arena", f"{waves} waves", "", arena if isinstance(arena, int) else None))
    return Table(("function", "kind", "name", "type", "bytes"), rows)
