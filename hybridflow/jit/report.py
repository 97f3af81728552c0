"""One page about a compiled function, in HTML that asks nothing of the network and runs no scripts."""

from __future__ import annotations

import html
import linecache
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow import flags
from hybridflow.core.processes import once
from hybridflow.errors import short_location
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.inspection import Explanation
from hybridflow.jit.profiling import Profile

_AROUND = 2  # lines of source shown around those that have kernels
_MANY = 40  # buffers that are listed one by one
_MOST_ROWS = 400
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #4a7fd0; --dim: #777; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font: 13px/1.5 ui-monospace, monospace; } td code { white-space: pre-wrap; overflow-wrap: anywhere; }
td:has(code) { min-width: 10rem; } td.note { color: var(--dim); font-size: 13px; min-width: 16rem; }
.bar { background: var(--bar); display: block; height: .55rem; min-width: 1px; border-radius: 2px; }
.wide { overflow-x: auto; } td:has(.bar) { min-width: 5rem; }
dl { display: grid; grid-template-columns: minmax(6rem, 12rem) 1fr; gap: 0 .5rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
@media print { body { max-width: none; } }
"""


class Column(NamedTuple):
    """A column of a table; ``number`` aligns it to the right, ``note`` is for sentences."""

    title: str
    number: bool = False
    note: bool = False


def page(title: str, sections: Iterable[str]) -> str:
    """A whole document.  Nothing but its own style is allowed in it: no script, no request."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1>\n{''.join(sections)}</body></html>\n"
    )


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a page into a file."""
    name = os.fspath(path)

    def written() -> None:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)

    once(f"writing {os.path.basename(name)}", written)


def section(title: str, content: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{content}</section>\n" if content else ""


def table(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> str:
    """Rows of texts, numbers and bars, see ``Bar``; columns in which nothing is are left out."""
    rows = list(rows)
    used = [k for k in range(len(columns)) if any(row[k] is not None for row in rows)]
    columns, rows = [columns[k] for k in used], [[row[k] for k in used] for row in rows]
    marks = [' class="number"' if column.number else ' class="note"' if column.note else "" for column in columns]
    head = "".join(f'<th scope="col"{mark}>{html.escape(c.title)}</th>' for mark, c in zip(marks, columns))
    lines = []
    for row in rows:
        lines.append("<tr>" + "".join(f"<td{m}>{_cell(value)}</td>" for m, value in zip(marks, row)) + "</tr>")
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


class Bar(NamedTuple):
    """A share from 0 to 1, drawn."""

    share: float


class Code(NamedTuple):
    """A text in letters of one width."""

    text: str


def facts(pairs: Iterable[tuple[str, Any]]) -> str:
    """What is said of names, as a list."""
    shown = [(name, value) for name, value in pairs if value not in (None, "", ())]
    return "<dl>" + "".join(f"<dt>{html.escape(n)}</dt><dd>{_cell(v)}</dd>" for n, v in shown) + "</dl>"


def _cell(value: object) -> str:
    if isinstance(value, Bar):
        share = min(max(value.share, 0.0), 1.0)
        return f'<span class="bar" role="img" aria-label="{share:.1%}" style="width:{100 * share:.1f}%"></span>'
    if isinstance(value, Code):
        return f"<code>{html.escape(value.text)}</code>"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, tuple):
        return html.escape(", ".join(map(str, value)))
    return "" if value is None else html.escape(str(value))


# Functions


class Folded(NamedTuple):
    """Kernels that are alike: the first of them, how many there are, and their time together in microseconds."""

    row: dict[str, Any]
    copies: int
    microseconds: float


def folded(profile: Profile, notes: dict[str, dict[str, Any]]) -> list[Folded]:
    """The kernels of a profile, those alike as one, the slowest first.

    Alike are kernels of the same operations, lines, bytes, arithmetic and schedule.
    """
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in profile.kernels:
        note = notes.get(row["kernel"], {})
        key = (row["ops"], row["lines"], row["bytes"], row["flops"], note.get("schedule"), note.get("note"))
        groups.setdefault(key, []).append(row)
    groups_of_rows = [Folded(rows[0], len(rows), sum(row["µs"] for row in rows)) for rows in groups.values()]
    return sorted(groups_of_rows, key=lambda one: -one.microseconds)


def of_function(concrete: ConcreteFunction, explanation: Explanation, profile: Profile) -> str:
    """The page of one signature of a function."""
    notes = {row["kernel"]: row for row in explanation.kernels}
    kernels = folded(profile, notes)
    sections = [
        section("Summary", _summary(explanation, profile)),
        section("Kernels", _kernels(kernels, notes, len(profile.kernels))),
        section("Source", _source(concrete, profile)),
        section("Memory", _memory(explanation)),
        section("Traced again", _list(explanation.retraces)),
        section("Environment", environment()),
    ]
    return page(f"{profile.function}: {profile.total:,.2f} µs", sections)


def _summary(explanation: Explanation, profile: Profile) -> str:
    return facts(
        [
            ("signature", Code(explanation.signature) if explanation.signature else "no arguments"),
            (
                "all kernels",
                f"{profile.total:,.2f} µs in {len(profile.kernels)} kernels, medians of {profile.runs} runs",
            ),
            ("traced", f"{explanation.operations} operations in {explanation.trace_ms:.2f} ms"),
            ("compiled", f"in {explanation.compile_ms:.2f} ms, machine code of LLVM's level {profile.level}"),
            ("variables", _counted(explanation.variables)),
            ("captured tensors", _counted(explanation.captures)),
            (
                "guards",
                f"{explanation.guards}, {explanation.checks} checks at each call" if explanation.guards else None,
            ),
            ("called by way of Python", explanation.in_python),
        ]
    )


def _counted(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts with how often each comes."""
    return tuple([text if count == 1 else f"{text} ×{count}" for text, count in Counter(texts).items()])


def _kernels(kernels: Sequence[Folded], notes: dict[str, dict[str, Any]], count: int) -> str:
    if not kernels:
        return "<p>There are none: nothing is computed when it is called.</p>"
    total = sum(one.microseconds for one in kernels) or 1.0
    columns = [Column("kernel"), Column("µs", True), Column("share"), Column("±%", True), Column("GB/s", True)]
    columns += [
        Column("GFLOP/s", True),
        Column("bytes", True),
        Column("lines"),
        Column("operations, and why not fused", note=True),
    ]
    rows = []
    for one in kernels[:_MOST_ROWS]:
        row, note = one.row, notes.get(one.row["kernel"], {})
        name = row["kernel"] if one.copies == 1 else f"{row['kernel']} ×{one.copies}"
        said = "; ".join(filter(None, (", ".join(row["ops"]), note.get("note"), note.get("schedule"))))
        share = Bar(one.microseconds / total)
        figures = (row["±%"], row["GB/s"], row["GFLOP/s"], row["bytes"])
        rows.append((Code(name), one.microseconds, share, *figures, row["lines"], said))
    more = len(kernels) - _MOST_ROWS
    left_out = f"<p>{more} more kinds of kernels are left out.</p>" if more > 0 else ""
    alike = f"<p>{count} kernels; those alike stand in one row.</p>" if count != len(kernels) else ""
    return alike + table(columns, rows) + left_out


def _source(concrete: ConcreteFunction, profile: Profile) -> str:
    """Lines of the user's with the time of their kernels; that of a kernel of several lines is shared among them."""
    places = {kernel.name: kernel.lines for kernel in concrete.executable.program.kernels}
    times: dict[tuple[str, int], float] = {}
    for row in profile.kernels:
        lines = places.get(row["kernel"], ())
        for where in lines:
            file, _, line = where.rpartition(":")
            if line.isdigit():
                key = (file, int(line))
                times[key] = times.get(key, 0.0) + row["µs"] / len(lines)
    total = sum(times.values()) or 1.0
    parts = []
    for file in sorted({file for file, _ in times}):
        lines_run = sorted(line for name, line in times if name == file)
        rows: list[Any] = []
        last = 0
        for line in sorted({n for one in lines_run for n in range(max(1, one - _AROUND), one + _AROUND + 1)}):
            text = linecache.getline(file, line)
            if not text:
                continue
            if last and line > last + 1:
                rows.append((None, None, None, "⋮"))
            time = times.get((file, line))
            rows.append((line, time, None if time is None else Bar(time / total), Code(text.rstrip())))
            last = line
        if rows:
            columns = [
                Column("line", True),
                Column("µs", True),
                Column("share"),
                Column(short_location(f"{file}:0")[:-2]),
            ]
            parts.append(table(columns, rows))
    return "".join(parts)


def _memory(explanation: Explanation) -> str:
    """Buffers, those of one kind and type in one row where there are many."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    many = len(explanation.memory) > _MANY
    for number, row in enumerate(explanation.memory):
        groups.setdefault((row["kind"], row["type"]) if many else number, []).append(row)
    most = max((row["bytes"] or 0 for row in explanation.memory), default=0) or 1
    columns = [Column("kind"), Column("name"), Column("type"), Column("bytes", True), Column("share of the largest")]
    rows = []
    for alike in groups.values():
        first, size = alike[0], alike[0]["bytes"]
        name = first["name"] if len(alike) == 1 else f"{first['name']} and {len(alike) - 1} more"
        rows.append((first["kind"], name, first["type"], size, Bar((size or 0) / most)))
    return table(columns, rows)


def _list(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>" if texts else ""


def environment() -> str:
    """The machine and the versions."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    pairs = [("hybridflow", flags.RELEASE), ("Python", platform.python_version()), ("NumPy", np.__version__)]
    return facts([*pairs, ("system", platform.platform()), ("machine", machine)])


# Training


def of_history(history: Mapping[str, Sequence[float]], title: str, settings: Iterable[tuple[str, Any]]) -> str:
    """The page of a training: a curve of each value that was logged, with that of the validation."""
    names = [name for name in history if not (name.startswith("val_") and name[4:] in history)]
    drawn = []
    for name in names:
        curves = {one: list(map(float, history[one])) for one in (name, f"val_{name}") if one in history}
        drawn.append(f"<figure><figcaption>{html.escape(name)}</figcaption>{_curves(curves)}</figure>")
    last = [(name, values[0], values[-1], min(values), max(values)) for name, values in history.items() if len(values)]
    columns = [Column("value"), *(Column(name, True) for name in ("first", "last", "least", "most"))]
    rows = [(Code(name), *map(_short, values)) for name, *values in last]
    sections = [section("Summary", facts(settings) + table(columns, rows)), section("Curves", "".join(drawn))]
    return page(title, [*sections, section("Environment", environment())])


def _short(value: float) -> str:
    return f"{float(value):.6g}"


_WIDTH, _HEIGHT, _MARGIN = 640, 220, 84
_COLOURS = "#4a7fd0", "#d07a2a"


def _curves(curves: dict[str, list[float]]) -> str:
    """Lines over epochs as a picture; values that are not finite are gaps."""
    finite = [value for values in curves.values() for value in values if np.isfinite(value)]
    if not finite:
        return "<p>No value is finite.</p>"
    low, high = min(finite), max(finite)
    span, count = (high - low) or 1.0, max(map(len, curves.values()))
    parts = []
    for colour, (name, values) in zip(_COLOURS, curves.items()):
        path, is_open = [], False
        for k, value in enumerate(values):
            if not np.isfinite(value):
                is_open = False
                continue
            x = _MARGIN + (_WIDTH - _MARGIN - 8) * (k / max(count - 1, 1))
            y = 12 + (_HEIGHT - 36) * (high - value) / span
            path.append(f"{'L' if is_open else 'M'}{x:.1f},{y:.1f}")
            is_open = True
        dot = "" if len(values) > 1 else ' stroke-linecap="round"'
        drawn = f"{' '.join(path)}{' h0.1' if len(values) == 1 else ''}"
        parts.append(f'<path d="{drawn}" fill="none" stroke="{colour}" stroke-width="2"{dot}/>')
        label = f"{html.escape(name)}: {_short(values[-1])}" if values else html.escape(name)
        place = _MARGIN + 200 * len(parts) - 200
        parts.append(f'<text x="{place}" y="{_HEIGHT - 4}" fill="{colour}" font-size="12">{label}</text>')
    for value, y in ((high, 16), (low, _HEIGHT - 22)):
        parts.append(f'<text x="2" y="{y}" fill="currentColor" font-size="11">{_short(value)}</text>')
    title = html.escape(", ".join(curves))
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" {box}>{"".join(parts)}</svg>'
