"""What goes wrong in users' programs, one fault in each file of ``faults``, and what is said of it.

Every message names the user's line, what is wrong and what to do, in a few lines.  The texts are in
``data/golden/faults.txt``; ``--update-golden`` writes what is said now: read the diff before you commit it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hybridflow.errors import HybridflowError
from tests.support.paths import DATA

FAULTS = sorted((DATA / "faults").glob("*.py"))
GOLDEN = DATA / "golden" / "faults.txt"
MOST_LINES = 12
REMEDY = re.compile(
    r"\b(ask|bind|choose|convert|do it|expected|give|guard|index|it was made by|make|pass|print|reduce|reshape|return"
    r"|return one|sort|use|write|hf\.\w+ it|must|are tensors|the signature is)\b",
    re.IGNORECASE,
)


def said(path: Path) -> str:
    """The error that a program ends with, as Python would show it."""
    with pytest.raises(HybridflowError) as caught:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "fault"})
    return f"{type(caught.value).__name__}: {caught.value}"


def known() -> dict[str, str]:
    parts = re.split(r"^== (\w+)\n", GOLDEN.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.rstrip("\n") for name, text in zip(parts[1::2], parts[2::2])}


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_message_names_line_cause_and_remedy(path: Path, request: pytest.FixtureRequest) -> None:
    text = said(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    place = re.search(rf"\({path.name}:(\d+)\)$", text)
    assert place is not None, text
    assert lines[int(place[1]) - 1].strip(), text
    assert re.match(r"\w+: \[[\w. ]+\] \S", text), text
    assert REMEDY.search(text), text
    assert len(text.splitlines()) <= MOST_LINES
    assert str(DATA) not in text  # no paths, and none of our own files
    if request.config.getoption("--update-golden"):
        texts = {**(known() if GOLDEN.exists() else {}), path.stem: text}
        names = [other.stem for other in FAULTS if other.stem in texts]
        GOLDEN.write_text("\n".join(f"== {name}\n{texts[name]}\n" for name in names), encoding="utf-8")
    assert known()[path.stem] == text


def test_there_are_many_faults_and_no_text_without_one() -> None:
    assert len(FAULTS) >= 40
    assert set(known()) == {path.stem for path in FAULTS}
