"""The pages that users read: what they show is what comes out, and they stay readable."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = [page for page in PAGES if page.name != "names.md"]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def examples(page: Path) -> list[tuple[int, str]]:
    """The sessions of a page, each with its line."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start(1)), match[1])
        for match in FENCE.finditer(text)
        if re.search(r"^>>> ", match[1], re.M)
    ]


def _session_of(page: Path) -> Any:
    """The page as a parameter; the one on control flow shows a function that runs eagerly."""
    return pytest.param(
        page, marks=[pytest.mark.runs_eagerly] if page.name == "control-flow.md" else [], id=named(page)
    )


@pytest.mark.parametrize("page", [_session_of(page) for page in GUIDES if examples(page)])
def test_sessions_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is one session from its top to its end."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    parser, runner, said = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS), list[str]()
    for line, session in examples(page):
        test = parser.get_doctest(session, names, named(page), str(page), line)
        test.globs = names  # in place of the copy: what one block binds the next reads
        runner.run(test, out=said.append, clear_globs=False)
    assert runner.tries and not runner.failures, "".join(said)


def prose(page: Path) -> str:
    """What a page says in sentences: no code, no tables, no headings."""
    text = re.sub(r"^(```.*?^```|    .*?|\|.*?|#.*?)$", "\n", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    return re.sub(r"\]\([^)]*\)", "]", text)


@pytest.mark.code
@pytest.mark.every_case
@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_sentences_and_paragraphs_are_short(page: Path) -> None:
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=- |\d+\. )", prose(page))]
    sentences = [sentence for text in paragraphs for sentence in re.split(r"(?<=[.:;!?])\s", text)]
    assert [text for text in paragraphs if len(text.split()) > 80] == []
    assert [text for text in sentences if len(text.split()) > 25] == []


def test_the_readme_fits_a_newcomer() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_picture_shows_the_table() -> None:
    table = re.findall(r"±\d+% +(\d\.\d\d) (jax|torch|numpy)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    picture = re.findall(r">(\d\.\d\d) × (\w+)</text>", (ROOT / "docs" / "speed.svg").read_text(encoding="utf-8"))
    names = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy"}
    assert len(picture) == 10 and picture == [(ratio, names[peer]) for ratio, peer in table]


@pytest.mark.code
@pytest.mark.every_case
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Pages of the reference are made when the site is built."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link and not link.startswith("reference/hf.")]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.code
@pytest.mark.every_case
@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "internals").glob("*.md")), ids=named)
def test_pages_on_internals_have_a_diagram_and_name_files_in_tables(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    diagrams = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert diagrams
    assert max(len(line) for diagram in diagrams for line in diagram.splitlines()) <= 78  # what a page has room for
    assert re.search(r"^\|.*`[\w/]+(\.py|/)`", text, re.MULTILINE)
