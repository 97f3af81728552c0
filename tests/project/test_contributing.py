"""The code that pages for contributors show is that of the project.  ``--update-golden`` copies it there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import hybridflow as hf
from hybridflow.compiler.ops import TABLE, Kind
from tests.support.paths import ROOT

pytestmark = pytest.mark.code

PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
OPS = ROOT / "docs" / "contributing" / "add_an_op.md"
SHOWN = re.compile(r"<!-- (?P<file>\S+\.py): (?P<names>[\w, ]+) -->\n```python\n(?P<code>.*?)```\n", re.DOTALL)


def statements(path: Path, names: list[str]) -> str:
    """The functions, classes and declarations of these names as they stand in a file."""
    source = path.read_text(encoding="utf-8")
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
            first = node.value.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found[first.value] = node
    lines = source.splitlines()
    return "\n\n\n".join("\n".join(lines[found[n].lineno - 1 : found[n].end_lineno]) for n in names) + "\n"


def as_written(match: re.Match[str]) -> str:
    code = statements(ROOT / match["file"], [name.strip() for name in match["names"].split(",")])
    return f"<!-- {match['file']}: {match['names']} -->\n```python\n{code}```\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_show_code_as_it_is(page: Path, request: pytest.FixtureRequest) -> None:
    text = page.read_text(encoding="utf-8")
    made = SHOWN.sub(as_written, text)
    if request.config.getoption("--update-golden"):
        page.write_text(made, encoding="utf-8")
    else:
        assert text == made, "run with --update-golden"


@pytest.mark.parametrize("name", ["add_an_op", "add_a_pass", "add_a_layer", "add_a_dataset_op"])
def test_what_is_added_is_shown(name: str) -> None:
    page = next(page for page in PAGES if page.stem == name)
    assert SHOWN.search(page.read_text(encoding="utf-8"))


def test_the_page_shows_an_op_of_each_sort() -> None:
    shown = [match["names"].split(",")[-1].strip() for match in SHOWN.finditer(OPS.read_text(encoding="utf-8"))]
    kinds = {TABLE[name].kind for name in shown}
    assert {Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW} < kinds
    assert kinds & {Kind.SCAN, Kind.SORT, Kind.SCATTER, Kind.CONTRACT}


def test_every_elementwise_op_is_offered() -> None:
    others = {"convert": "astype", "pow_half": "pow", "pow_minus_half": "pow", "multiply_add": "matmul"}
    others |= {"log_gamma": "gammaln", "trigamma": "polygamma", "gammainc_da": "gammainc", "betainc_da": "betainc"}
    others |= {"exponent": "frexp"}
    # What keeps a value from being computed before another one, for recompute_grad; x.to_device and its derivative; and
    # Python's operators on ints, which may not outgrow 64 bits (checked_...).
    inside = {"after", "transfer", "transfer_back"}
    ops = [op.name for op in TABLE.values() if op.kind is Kind.ELEMENTWISE and not op.name.startswith("checked_")]
    names = [others.get(name, name).removeprefix("bessel_") for name in ops if name not in inside]
    offered = {*dir(hf), *hf.special.__all__}
    assert not [name for name in names if name not in offered]
