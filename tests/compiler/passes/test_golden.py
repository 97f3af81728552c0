"""Golden files: what passes make of small graphs.

A file ``tests/data/golden/<pass>/<case>.ir`` holds the input, the passes and the expected text:

    // why the case is there
    // passes: simplify, dce
    graph ...
    // expect
    graph ...          or: // expect: unchanged

``--update-golden`` writes what the passes make now; read the diff before you commit it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.passes.pass_manager import run
from hybridflow.compiler.passes.pass_pipeline import PASSES
from tests.support.paths import DATA

FOLDER = DATA / "golden"
FILES = sorted(FOLDER.glob("*/*.ir"))
_CASE = re.compile(r"(?P<head>(?://.*\n)*// passes: (?P<passes>.*)\n)(?P<text>[\s\S]*?)// expect(?P<rest>[\s\S]*)")


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    case = _CASE.fullmatch(path.read_text())
    assert case is not None, "expected '// passes:', a graph and '// expect'"
    graph = parse(case["text"], TABLE)
    verify(graph, path.name)
    made = run(graph, [PASSES[name.strip()] for name in case["passes"].split(",")])
    rest = ": unchanged\n" if made is graph else "\n" + to_text(made)
    if request.config.getoption("--update-golden"):
        path.write_text(f"{case['head']}{to_text(graph)}// expect{rest}")
    else:
        assert rest == case["rest"], "run with --update-golden and read the diff"


def test_every_pass_has_cases_that_fire_and_cases_that_do_not() -> None:
    for name in PASSES:
        quiet = ["// expect: unchanged" in path.read_text() for path in FILES if path.parent.name == name]
        assert any(quiet) and not all(quiet), name
