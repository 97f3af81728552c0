"""The notebooks run from top to end and show what comes out, but for cells that say that their output varies."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from hybridflow.core.context import dialect

pytestmark = pytest.mark.code

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def run_cell(source: str, filename: str, names: dict[str, Any]) -> str:
    """What a notebook shows of a cell: what it prints, and the value of its last expression."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)  # as IPython does
    body = ast.parse(source, filename).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), filename, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), filename, "eval"), names)  # type: ignore[attr-defined]
    return printed.getvalue() + ("" if value is None else repr(value))


def shown(cell: dict[str, Any]) -> str:
    outputs = cell["outputs"]
    return "".join("".join(one["text"] if "text" in one else one["data"]["text/plain"]) for one in outputs)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    speaks_tensorflow = any("hybridflow.compat.tf" in line for cell in cells for line in cell["source"])
    monkeypatch.setattr(dialect, "is_tensorflow", speaks_tensorflow)  # as in a process of its own
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        text = run_cell("".join(cell["source"]), f"<cell {number} of {path.name}>", names)
        if "varies" not in cell["metadata"].get("tags", []):
            assert text.split() == shown(cell).split(), f"cell {number}: run the notebook and save it"


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 5
