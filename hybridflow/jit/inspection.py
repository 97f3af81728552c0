"""What is inside a Function, as text and tables for people and as plain data for programs."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir.text import to_text
from hybridflow.core.devices import CPU
from hybridflow.errors import ArgumentError, short_location
from hybridflow.runtime.calls import background_code

if TYPE_CHECKING:
    from hybridflow.jit.concrete_function import ConcreteFunction
    from hybridflow.jit.native_entry import Refusal
    from hybridflow.jit.retrace_log import Retrace
    from hybridflow.jit.trace_cache import Guards

STAGES = ("traced", "optimized", "llvm", "asm")


WIDTH = 80  # characters of a line, where a terminal does not say otherwise


class Text(str):
    """A text that a console shows as it prints, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Table:
    """Rows that print as an aligned table.  Each row is also a dict, for programs.

    What prints fits the terminal, or 80 characters: without the columns ``details`` and those that are empty, and with
    long cells cut.  ``wide()`` is all of it.
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], details: Iterable[str] = ()) -> None:
        self.columns = tuple(columns)
        self.details = frozenset(details)
        self.rows = [dict(zip(self.columns, row)) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    def __repr__(self) -> str:
        return self.text(shutil.get_terminal_size((WIDTH, 24)).columns)

    def wide(self) -> Text:
        """All columns, and cells as long as they are."""
        return Text(self._aligned(self.columns, None))

    def text(self, width: int) -> str:
        """The table within ``width`` characters, as far as its shortest columns allow."""
        shown = [c for c in self.columns if c not in self.details and any(_cell(row[c]) for row in self.rows)]
        return self._aligned(shown or self.columns, width)

    def _aligned(self, columns: Sequence[str], width: int | None) -> str:
        lines = [list(columns), *([_cell(row[column]) for column in columns] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        while width is not None and sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > _LEAST:
            widest = widths.index(max(widths))
            widths[widest] -= 1
        texts = [[_cut(text, most) for text, most in zip(line, widths)] for line in lines]
        return "\n".join("  ".join(t.ljust(most) for t, most in zip(line, widths)).rstrip() for line in texts)


_LEAST = 12  # characters that a column keeps


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def signatures(functions: Sequence[tuple[ConcreteFunction, int, Refusal | None]]) -> Table:
    """One row per concrete function, the number of its hits, and why it is called by way of Python, if it is."""
    rows = [
        (
            k,
            ", ".join(f"{path}: {type}" for path, type in f.arguments),
            tuple(str(node.type) for node in f.graph.outputs),
            hits,
            f.trace_ms,
            f.compile_ms,
            None if refusal is None else str(refusal),
        )
        for k, (f, hits, refusal) in enumerate(functions)
    ]
    return Table(("id", "inputs", "outputs", "hits", "trace ms", "compile ms", "in Python since"), rows)


def ir(concrete: ConcreteFunction, stage: str) -> Text:
    """The program at ``stage`` as text: the graph as traced or as fusion sees it, LLVM IR, or assembly."""
    if stage not in STAGES:
        raise ArgumentError("ir", f"there is no stage {stage!r}; the stages are {', '.join(STAGES)}.")
    if stage == "traced":
        return Text(to_text(concrete.graph))
    from hybridflow.compiler import pipeline  # loaded when something is compiled, not at import
    from hybridflow.runtime.machine import machine_code

    if stage == "optimized":
        return Text(to_text(pipeline.optimize(concrete.graph)))
    program = concrete.executable.program
    return Text(program.text if stage == "llvm" else machine_code.compile_assembly(program.text, program.target))


def diff(first: ConcreteFunction, second: ConcreteFunction, stage: str) -> Text:
    """What two programs differ in, as a unified diff of their texts at ``stage``, without locations and numbers of
    values; empty where they are alike."""
    before, after = [_anonymous(ir(one, stage)) for one in (first, second)]
    lines = difflib.unified_diff(before, after, first.name, second.name, lineterm="", n=2)
    return Text("\n".join(lines))


_MAKES = re.compile(r"^(\s*)(%\d+): ")
_VALUE = re.compile(r"%\d+")


def _anonymous(text: str) -> list[str]:
    """Lines of a program without what says only where they come from.  Values are called by their distance: how many
    lines above they are made."""
    lines: list[str] = []
    made_at: dict[str, int] = {}
    for number, line in enumerate(text.splitlines()):
        shown = re.sub(r"\s*# .*$", "", line) if number else re.sub(r'graph ("[^"]*"|\w+)', "graph", line)
        start = _MAKES.match(shown)
        parts = _VALUE.split(shown)
        names = _VALUE.findall(shown)
        if number and start is None and "=" in shown and names:
            made_at.update(dict.fromkeys(names[:1], number))  # several results, or a body's arguments
        told = [f"%{made_at[name] - number}" if name in made_at else name for name in names]
        shown = parts[0] + "".join(f"{name}{part}" for name, part in zip(told, parts[1:]))
        if start is not None:
            made_at[start[2]] = number
            shown = start[1] + shown.lstrip().partition(": ")[2]
        lines.append(shown)
    return lines


@dataclass(frozen=True)
class Explanation:
    """What one signature of a function runs.  Prints as text that fits the terminal; ``wide()`` is all of it.

    ``guards`` is how many values outside of the function are watched, ``checks`` what a call looks at for that while
    none of them changes.  ``in_python`` says why calls go by way of Python; None where native code answers them.
    """

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
    guards: int
    checks: int
    in_python: str | None
    summary: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return self._text(lambda table: repr(table))

    __repr__ = __str__

    def wide(self) -> Text:
        """All columns of the tables, and cells as long as they are."""
        return Text(self._text(Table.wide))

    def _text(self, shown: Callable[[Table], str]) -> str:
        lines = list(self.summary)
        for title, table in (("kernels", self.kernels), ("memory", self.memory)):
            if len(table):
                lines += [f"{title}:", *(f"  {line}" for line in shown(table).splitlines())]
        return "\n".join(lines)


def explain(
    concrete: ConcreteFunction,
    retraced: Iterable[Retrace],
    guards: Guards | None = None,
    refusal: Refusal | None = None,
) -> Explanation:
    """Everything there is to know about one concrete function, what it watches, why it is not called natively, and how
    its function was traced again."""
    graph = concrete.graph
    variables = tuple(f"{v.name or 'variable'}: {v._tensor.type}" for v in concrete.variables)
    captures = tuple(str(t.type) for t in concrete.captures)
    donated = tuple(_donated(concrete))
    retraces = tuple(map(str, retraced))
    devices = tuple(_devices(concrete))  # the tables below are those of the CPU's program
    kernel_table, memory_table = kernels([concrete]), memory_plan([concrete])
    watched, checks = (0, 0) if guards is None else guards.counts()
    lines = [
        repr(concrete)[1:-1],
        f"traced in {concrete.trace_ms:.2f} ms, compiled in {concrete.compile_ms:.2f} ms",
        f"{len(graph.nodes)} operations traced",
        *_code_level(concrete),
    ]
    if watched:
        lines.append(f"guards: {watched} (values from outside that are watched; {checks} checks at each call)")
    if refusal is not None:
        lines.append(f"called by way of Python: {refusal}")
    titled = (
        ("variables", variables),
        ("captured tensors", captures),
        ("donated arguments", donated),
        ("devices", devices),
        ("retraces", retraces),
    )
    for title, entries in titled:
        if entries:
            lines += [f"{title}:", *(f"  {entry}" for entry in entries)]
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
        watched,
        checks,
        None if refusal is None else str(refusal),
        tuple(lines),
    )


def _code_level(concrete: ConcreteFunction) -> Iterator[str]:
    """Which machine code calls on the CPU run now."""
    tiers = getattr(concrete.executable, "tiers", None)
    if tiers is not None:
        more = "" if tiers.is_last else "; faster code is being made"
        if tiers.failure is not None:
            more = f"; faster code could not be made: {tiers.failure}"
        yield f"machine code of LLVM's level {tiers.level}{more}"
    for failure in dict.fromkeys(background_code.failures):
        yield f"calls themselves stay at code of LLVM's level 0; faster code could not be made: {failure}"


def _donated(concrete: ConcreteFunction) -> Iterator[str]:
    """What becomes of arguments that calls give up."""
    if concrete.donation is not None:
        executable = concrete.executable
        yield from concrete.donation.lines(concrete.graph, executable.in_place)


def _devices(concrete: ConcreteFunction) -> Iterator[str]:
    """Where the function runs, if that is not the CPU alone, and what calls copy there."""
    staged = concrete.staged
    if staged.devices in ([], [CPU]):
        return
    for device in staged.devices:
        yield f"{device}: {'compiled' if device == CPU else 'compiled; what its calls find elsewhere is copied there'}"
        for (where, name, each_call), size in staged.moves.items():
            if where == device:
                yield f"  {name}, {size:,} bytes, {'at each call' if each_call else 'once'}"


def kernels(functions: Sequence[ConcreteFunction]) -> Table:
    """One row per kernel; ``level`` is LLVM's of its machine code now, None off the CPU."""
    rows = []
    for f in functions:
        program = getattr(f.executable, "program", None)
        tiers = getattr(f.executable, "tiers", None)
        level = None if tiers is None else tiers.level
        for kernel in program.kernels if program is not None else ():
            lines = tuple(map(short_location, kernel.lines))
            shown = (kernel.ops, lines, kernel.bytes, kernel.flops, kernel.note, kernel.schedule, kernel.wave, level)
            rows.append((f.name, kernel.name, *shown))
    columns = ("function", "kernel", "ops", "lines", "bytes", "flops", "note", "schedule", "wave", "level")
    return Table(columns, rows, ("schedule", "wave", "level", "ops" if len(functions) > 1 else "function"))


def memory_plan(functions: Sequence[ConcreteFunction]) -> Table:
    """One row per input, output and arena, and per update of a variable: in place, or into fresh memory because a check
    may fail after it, or because the old value is still needed.  An output in the memory of an argument that calls give
    up takes none.  The arena holds what kernels hand on, the scratch
    memory of one worker, and all that one wave of kernels needs at a time."""
    rows: list[tuple[Any, ...]] = []
    for f in functions:
        executable = f.executable
        program = getattr(executable, "program", None)
        donated = (
            {} if f.donation is None else {k: i for i, k in f.donation.results.items() if i in executable.in_place}
        )
        for role, nodes in (("input", f.graph.inputs), ("output", f.graph.outputs)):
            for k, node in enumerate(nodes):
                kind = node.attrs["role"].value if role == "input" else role
                label = node.attrs["name"] if role == "input" else ""
                size = node.type.size * node.type.dtype.itemsize if node.type.is_static else None
                if role == "input" and f.donation is not None and k in f.donation.inputs:
                    kind = "donated argument"
                if role == "output" and k in donated:
                    label, size = f"in the memory of {f.graph.inputs[donated[k]].attrs['name']}", 0
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
    return Table(("function", "kind", "name", "type", "bytes"), rows, () if len(functions) > 1 else ("function",))
