"""How much of the product's code a type checker holds to something: names annotated ``Any`` only become fewer."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

MOST = 1719  # lines of hybridflow/; it was 4 238; whoever has made them fewer lowers it
ANNOTATION = re.compile(r": Any\b")


def lines(source: str) -> int:
    """How many lines annotate a parameter, an attribute or a variable with Any."""
    return sum(bool(ANNOTATION.search(line)) for line in source.split("\n"))


def test_no_more_names_are_annotated_any() -> None:
    package = ROOT / "hybridflow"
    paths = [
        path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in ("compiler", "runtime")
    ]
    assert len(paths) > 500
    assert sum(lines(path.read_text(encoding="utf-8")) for path in paths) <= MOST


def test_lines_are_counted() -> None:
    assert lines("x: Any\ny: Anything\ndef f(a: Any, b: Any) -> Any: ...\nz: dict[str, Any]\n") == 2
