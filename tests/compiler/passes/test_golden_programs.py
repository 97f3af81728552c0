"""Golden files: what the compiler makes of whole programs, so that a change of its inside that is to change nothing can
show that it does not.

A file ``tests/data/golden/programs/<case>.program`` holds a graph and the target that it is compiled for; after
``// expect`` the graph that is fused, its kernels, the places of its values, their schedules, and the LLVM text.
Functions that are long stand there as their first line, their length and a digest.  No target is this machine's.

``--update-golden`` writes what the compiler makes now; read the diff before you commit it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybridflow.compiler.ir.extents import Extent, products_of
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.text import parse, to_text, value_names
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.loops.buffer_assignment import ArenaRange, BufferLocation, InputBuffer, Plan, plan
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph, optimize, partition
from hybridflow.compiler.program import Program
from hybridflow.compiler.target import NAMED, Target
from tests.support.paths import DATA

FOLDER = DATA / "golden" / "programs"
FILES = sorted(FOLDER.glob("*.program"))
MOST_LINES = 90  # of a function that is shown
_CASE = re.compile(r"(?P<head>(?://.*\n)*// target: (?P<target>.*)\n)(?P<text>[\s\S]*?)// expect\n(?P<rest>[\s\S]*)")


def size_text(size: Extent) -> str:
    return " + ".join("*".join([str(factor), *map(str, names)]) for factor, names in products_of(size)) or "0"


def place_text(place: BufferLocation) -> str:
    if isinstance(place, ArenaRange):
        return f"arena {size_text(place.offset)}, {size_text(place.size)} bytes"
    return f"{'input' if isinstance(place, InputBuffer) else 'output'} {place.number}"


def kernels_text(graph: Graph, found: Plan) -> Iterator[str]:
    names = value_names(graph)
    for kernel in found.kernels:
        space = kernel.cluster.space
        loops = ", ".join(f"{v.name} < {v.extent}{' folded' if r else ''}" for v, r in zip(space.vars, space.reduced))
        yield f"{kernel.cluster.kind.value} {loops}: {', '.join(n.op.name for n in kernel.nodes)}"
        yield f"  {', '.join(names[n] for n in kernel.inputs)} -> {', '.join(names[n] for n in kernel.roots)}"
        if kernel.cluster.why:
            yield f"  alone: {kernel.cluster.why}"


def plan_text(graph: Graph, found: Plan) -> Iterator[str]:
    names = value_names(graph)
    for copy in found.before:
        yield f"before: {place_text(copy.source)} to {place_text(copy.target)}, {size_text(copy.size)} bytes"
    for node, place in found.locations.items():
        if not node.is_parameter:
            yield f"{names[node]}: {place_text(place)}"
    for copy in found.after:
        yield f"after: {place_text(copy.source)} to {place_text(copy.target)}, {size_text(copy.size)} bytes"
    yield f"arena: {size_text(found.arena)} bytes"


def program_text(program: Program) -> Iterator[str]:
    yield f"memory: {size_text(program.arena_bytes)} bytes, {size_text(program.scratch_bytes)} for each worker"
    for kernel in program.kernels:
        if kernel.schedule:
            yield f"{kernel.symbol}: {kernel.schedule}"
    for check in program.checks:
        yield f"check: {check.error}: [{check.stage}] {check.message}"
    for launch in program.launches:
        places = [f"{a.kind} {size_text(a.offset) if a.kind == 'arena' else a.number}" for a in launch.arguments]
        raises = ", raises" if launch.raises else ""
        yield f"launch {launch.symbol}({', '.join(places)}): {size_text(launch.units)} units{raises}"
    for part in re.split(r"(?m)^(?=define )|(?<=^})\n", program.text + program.sharing):
        yield from shortened(part.rstrip("\n").splitlines())


def shortened(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    return [lines[0], f"  ; {len(lines)} lines, {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:32]}", "}"]


def made(graph: Graph, target: Target) -> str:
    fused = optimize(graph)
    found = plan(fused, partition(fused, target))
    parts = {
        "fused": to_text(fused).splitlines(),
        "kernels": kernels_text(fused, found),
        "places": plan_text(fused, found),
        "program": program_text(compile_graph(graph, target)),
    }
    return "".join(f"// {name}\n" + "".join(f"{line}\n" for line in lines) for name, lines in parts.items())


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_golden_program(path: Path, request: pytest.FixtureRequest) -> None:
    case = _CASE.fullmatch(path.read_text())
    assert case is not None, "expected '// target:', a graph and '// expect'"
    graph = parse(case["text"], TABLE)
    verify(graph, path.name)
    found = made(graph, NAMED[case["target"]])
    if request.config.getoption("--update-golden"):
        path.write_text(f"{case['head']}{to_text(graph)}// expect\n{found}")
    else:
        assert found == case["rest"], "run with --update-golden and read the diff"


def test_every_target_and_kind_of_kernel_has_a_case() -> None:
    texts = [path.read_text() for path in FILES]
    assert {case["target"] for case in map(_CASE.fullmatch, texts) if case} >= set(NAMED) - {"sm_80"}
    kernels = [line for text in texts for line in text.splitlines()]
    for kind in ("elementwise", "contract", "sort", "scan", "scatter", "segment"):
        assert any(line.startswith(f"{kind} ") for line in kernels), kind
    for word in ("folded", "alone:", "before:", "after:", "check:", "launch ", "arena 0,", "input 0"):
        assert any(word in line for line in kernels), word
