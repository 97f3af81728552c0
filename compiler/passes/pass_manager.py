"""Running passes.  A pass is a named pure function ``Graph -> Graph``; all that surrounds it is here, once.

A pass that changes nothing returns the very graph it was given, so that "changed" is a question of identity, which
no pass can answer wrongly.  What is done to a graph is done to the graphs inside of it first.
The driver verifies, dumps, times, and leaves passes out by name:

    HF_SKIP=cse,fold    leave these passes out
    HF_DUMP=folder      write 00-step-input.ir, 01-step-simplify.ir, ... , one file per change
    HF_DEBUG=2          print time and node counts per pass; 3: the graph after each change, too
    HF_VERIFY=1         hold the graph against every rule of the IR after each change (HF_DEBUG=1 and up do so as well)
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

from hybridflow import flags, spans
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.text import to_text
from hybridflow.compiler.ir.verify import RULES, STRUCTURE, verify
from hybridflow.compiler.ops import Kind
from hybridflow.errors import CompileError

GraphPass = Callable[[Graph], Graph]


def everywhere(function: GraphPass, graph: Graph) -> Graph:
    """``function`` of ``graph``, after the same of each of its sub-graphs, innermost first.

    A graph in which nothing changes stays the very same, and equal ones that are one object stay one.
    """
    return function(_inside(graph, function, {}))


def _inside(graph: Graph, function: GraphPass, done: dict[Graph, Graph]) -> Graph:
    if not [node for node in graph.nodes if node.op.kind is Kind.CONTROL]:
        return graph

    def changed(value: object) -> Any:
        if isinstance(value, Graph):
            if value not in done:
                done[value] = function(_inside(value, function, done))
            return done[value]
        if isinstance(value, tuple):
            parts = tuple([changed(part) for part in value])
            return value if all(a is b for a, b in zip(parts, value)) else parts
        return value

    new: dict[Node, Node] = {}
    nodes = []
    for old in graph.nodes:
        attrs = old.attrs
        if old.op.kind is Kind.CONTROL:
            attrs_inside = {name: changed(value) for name, value in old.attrs.items()}
            if any(attrs_inside[name] is not old.attrs[name] for name in attrs_inside):
                attrs = attrs_inside
        node = old
        if attrs is not old.attrs or any(n in new for n in old.inputs):
            node = new[old] = Node(old.op, [new.get(n, n) for n in old.inputs], attrs, old.type, old.where)
        nodes.append(node)
    return graph.rebuild(new, nodes) if new else graph


@dataclass(frozen=True)
class Pass:
    """``inside``: graphs within the graph go through it, too.  ``required``: kernels cannot be made without it."""

    name: str
    function: Callable[[Graph], Graph]
    inside: bool = True
    required: bool = False


@dataclass(frozen=True)
class Fix:
    """Passes to run in turn until none of them changes the graph, or the rounds are up: each graph on the way is as
    right as the last one, so that more rounds only make it smaller, unless two rewrites undo each other."""

    passes: tuple[Pass, ...]
    limit: int  # rounds


Step = Union[Pass, Fix]


def fix(*passes: Pass, limit: int = 25) -> Fix:
    return Fix(passes, limit)


@dataclass(frozen=True)
class Record:
    """One run of one pass."""

    name: str
    seconds: float
    before: int  # nodes
    after: int
    changed: bool


_dump_numbers = itertools.count()


class _Run:
    """One graph on its way through a pipeline."""

    def __init__(self, graph: Graph, records: list[Record] | None) -> None:
        self.graph, self.records = graph, records
        self.skipped = frozenset(flags.SKIP.value.split(",")) if flags.SKIP.value else frozenset()
        self.thorough = bool(flags.VERIFY.value or flags.DEBUG.value)

    def run(self, one: Pass) -> bool:
        """Whether the pass changed the graph."""
        if one.name in self.skipped:
            return False
        before, start = self.graph, time.perf_counter()
        with spans.span(one.name, "pass"):
            self.graph = everywhere(one.function, before) if one.inside else one.function(before)
        changed = self.graph is not before
        if self.records is not None:
            seconds = time.perf_counter() - start
            self.records.append(Record(one.name, seconds, len(before.nodes), len(self.graph.nodes), changed))
        if changed and self.thorough:
            verify(self.graph, f"after pass {one.name!r}")
        if changed:
            self.show(one.name)
        return changed

    def fix(self, group: Fix) -> None:
        """Stops as soon as every pass in a row has left the graph alone."""
        quiet = 0
        for _ in range(group.limit):
            round_start = self.graph
            for one in group.passes:
                before = self.graph
                quiet = 0 if self.run(one) else quiet + 1
                if quiet == len(group.passes):
                    return
        what = f"{', '.join(p.name for p in group.passes)} still change {self.graph.name!r} after {group.limit} rounds"
        if flags.VERIFY.value and _line_count(self.graph) >= _line_count(round_start):
            graphs = f"before {one.name}:\n{to_text(before)}after:\n{to_text(self.graph)}"
            raise CompileError("passes", f"{what}: do two rewrites undo each other?\n{graphs}", "")
        if flags.logs("passes"):
            print(f"[passes] {what}", file=sys.stderr)

    def show(self, stage: str) -> None:
        if flags.DUMP.value:
            os.makedirs(flags.DUMP.value, exist_ok=True)
            name = re.sub(r"[^\w.-]+", "_", self.graph.name)
            path = os.path.join(flags.DUMP.value, f"{next(_dump_numbers):03}-{name}-{stage}.ir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(to_text(self.graph))
        if flags.DEBUG.value >= 3:
            print(f"# {stage}\n{to_text(self.graph)}", file=sys.stderr)


def _line_count(graph: Graph) -> int:
    """The size of a graph with all that is inside of it."""
    return to_text(graph).count("\n")


def run(graph: Graph, pipeline: Sequence[Step], records: list[Record] | None = None) -> Graph:
    """The graph after every step of the pipeline.  ``records``, if given, receives one Record per pass run."""
    if records is None and flags.DEBUG.value >= 2:
        records = []
    state = _Run(graph, records)
    verify(graph, "before the first pass", RULES if state.thorough else STRUCTURE)
    state.show("input")
    for step in pipeline:
        if isinstance(step, Fix):
            state.fix(step)
        else:
            state.run(step)
    if not state.thorough:
        verify(state.graph, "after the last pass", STRUCTURE)
    if flags.DEBUG.value >= 2:
        print(summary(graph.name, records or []), file=sys.stderr)
    return state.graph


def summary(name: str, records: Sequence[Record]) -> str:
    """A table of what each pass cost and did, in the order of first appearance."""
    lines = [f"# passes on {name}", f"{'pass':<14}{'runs':>6}{'changed':>9}{'ms':>9}{'nodes':>8}"]
    for pass_name in dict.fromkeys(r.name for r in records):
        of_pass = [r for r in records if r.name == pass_name]
        milliseconds = 1e3 * sum(r.seconds for r in of_pass)
        removed = sum(r.after - r.before for r in of_pass)
        changed = sum(r.changed for r in of_pass)
        lines.append(f"{pass_name:<14}{len(of_pass):>6}{changed:>9}{milliseconds:>9.3f}{removed:>+8}")
    return "\n".join(lines)
