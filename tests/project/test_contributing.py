"""The declarations that CONTRIBUTING.md shows are those of the table.  ``--update-golden`` copies them there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import hybridflow as hf
from hybridflow.compiler.ops import TABLE, Kind
from tests.support.paths import ROOT

pytestmark = pytest.mark.code

PAGE = ROOT / "CONTRIBUTING.md"
SHOWN = re.compile(r"<!-- (?P<file>\S+\.py): (?P<names>[\w, ]+) -->\n```python\n(?P<code>.*?)```\n", re.DOTALL)


def statements(path: Path, names: list[str]) -> str:
    """The functions and declarations of these names as they stand in a file."""
    source = path.read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
            first = node.value.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found[first.value] = node  # type: ignore[assignment]
    lines = source.splitlines()
    return "\n\n\n".join("\n".join(lines[found[n].lineno - 1 : found[n].end_lineno]) for n in names) + "\n"


def as_written(match: re.Match[str]) -> str:
    code = statements(ROOT / match["file"], [name.strip() for name in match["names"].split(",")])
    return f"<!-- {match['file']}: {match['names']} -->\n```python\n{code}```\n"


def test_the_page_shows_the_declarations_of_the_table(request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text(encoding="utf-8")
    made = SHOWN.sub(as_written, page)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(made, encoding="utf-8")
    else:
        assert page == made, "run with --update-golden"


def test_the_page_shows_an_op_of_each_sort() -> None:
    shown = [match["names"].split(",")[-1].strip() for match in SHOWN.finditer(PAGE.read_text(encoding="utf-8"))]
    kinds = {TABLE[name].kind for name in shown}
    assert {Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW} < kinds
    assert kinds & {Kind.SCAN, Kind.SORT, Kind.SCATTER, Kind.CONTRACT}


def test_every_elementwise_op_is_offered() -> None:
    others = {"convert": "astype", "pow_half": "pow", "pow_minus_half": "pow", "multiply_add": "matmul"}
    # What keeps a value from being computed before another one, for recompute_grad; x.to_device and its derivative; and
    # Python's operators on ints, which may not outgrow 64 bits (checked_...).
    inside = {"after", "transfer", "transfer_back"}
    ops = [op.name for op in TABLE.values() if op.kind is Kind.ELEMENTWISE and not op.name.startswith("checked_")]
    names = [others.get(name, name) for name in ops if name not in inside]
    assert not [name for name in names if not callable(getattr(hf, name, None))]
