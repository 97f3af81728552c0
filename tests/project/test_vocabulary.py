"""Names are the field's words: those that were retired do not come back.  Docstrings have short sentences."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.code

# Each with the field's word, which the glossary explains.
RETIRED = {
    "blame": "diagnostics",
    "doubles": "aliases",
    "ending": "exit, suffix",
    "endings": "exits, continuations",
    "journal": "undo log",
    "late": "lazy, runtime, deferred",
    "outcome": "exit",
    "outcomes": "exits",
    "sight": "view",
    "sights": "views",
    "turn": "iteration, trip",
    "turns": "iterations, trip count",
    "told": "the thing that is said",
    "twin": "sibling, instrumented code, reference",
    "twins": "instrumented code, references",
    "unseen": "untracked",
    "walk": "traverse, scan, iterate",
    "walks": "scans, iterables",
    "wholes": "taped calls",
    "witness": "snapshot",
    "witnesses": "snapshots",
}
# Of what functions bind: arguments and other local names say what they hold.
VAGUE = {"found", "given", "made", "own", "turn", "turns"}
# Two attributes of an op, which saved programs name.
OF_SAVED_PROGRAMS = {"control_flow.py", "control_flow_batching.py", "control_flow_derivatives.py"}


def words(name: str) -> list[str]:
    """``_LateTensors2`` is late, tensors, 2."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def test_words_of_names() -> None:
    assert words("_note_LateTensors2") == ["note", "late", "tensors", "2"]
    assert words("IRTurn") == ["ir", "turn"]


def names(source: str) -> Iterator[tuple[str, int]]:
    """What a module calls its classes, functions and methods, with the lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno


def locals_of(source: str) -> Iterator[tuple[str, int]]:
    """What a module binds within functions or at its own level, with the lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
            yield node.name, node.lineno


_DEFINED = re.compile(r"^ *(?:async )?(?:def|class) (\w+)", re.MULTILINE)


def may_name_retired_words(source: str) -> bool:
    """Also where the lines are part of a text: most modules need not be parsed."""
    return any(word in RETIRED for name in _DEFINED.findall(source) for word in words(name))


_VAGUE = re.compile(rf"\b(?:{'|'.join(sorted(VAGUE))})\b")


def test_local_names_are_found() -> None:
    source = "def f(found, *own):\n    for made in own: turn = made\n    try: pass\n    except E as given: pass\n"
    assert sorted(name for name, _ in locals_of(source)) == sorted(["found", "own", "made", "turn", "given"])


def test_names_are_found() -> None:
    assert list(names("class A:\n    def f(self):\n        async def g(): pass\n")) == [("A", 1), ("f", 2), ("g", 3)]
    assert all(
        may_name_retired_words(f"{text} {word}_") for text in ("  def", "async def", "class") for word in RETIRED
    )


MODULES = sorted(path for room in ("hybridflow", "compiler", "runtime") for path in (ROOT / room).rglob("*.py"))


@pytest.mark.every_case
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_retired_word_is_in_a_name(path: Path) -> None:
    where = path.relative_to(ROOT)
    source = path.read_text(encoding="utf-8")
    used = [(where.parent.name, 0), (where.stem, 0), *(names(source) if may_name_retired_words(source) else ())]
    wrong = [
        f"{where}:{line}: {name}: '{word}' is retired; the field says {RETIRED[word]}"
        for name, line in used
        for word in words(name)
        if word in RETIRED
    ]
    if where.name not in OF_SAVED_PROGRAMS and _VAGUE.search(source):
        bound = sorted({(name, line) for name, line in locals_of(source) if name in VAGUE})
        wrong += [f"{where}:{line}: {name}: say what it holds" for name, line in bound]
    assert not wrong, "\n".join(wrong)


_COLUMNS = re.compile(r"\s|>>>|\.\.\.|.*[^.:;!?`\"')\s] {2,}\S|.*``[^`]*`` {2,}|\"[\w ]+\"")  # how lines of tables look


def sentences(docstring: str) -> list[str]:
    """What is said in prose: no tables, no formulas, no examples."""
    text = re.split(r"^(?:Args|Returns|Raises|Example):$", inspect.cleandoc(docstring), maxsplit=1, flags=re.M)[0]
    prose = "\n".join("" if _COLUMNS.match(line) else line for line in text.splitlines())
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=[-*] )", prose)]
    return [sentence for part in paragraphs for sentence in re.split(r"(?<=[.:;!?])\s+", part)]


def test_sentences_are_found() -> None:
    table = 'Two words.  Three\nmore words: done.\n\nname  what it is\n"is"  the same\n    more\n\nArgs:\n    x: it.'
    assert [text for text in sentences(table) if text] == ["Two words.", "Three more words:", "done."]


_QUOTED = re.compile(r'"""(.*?)"""', re.DOTALL)


def long_sentences(source: str) -> list[str]:
    """Those above 30 words in docstrings; most modules need not be parsed."""
    if not any(len(one.split()) > 30 for text in _QUOTED.findall(source) for one in sentences(text)):
        return []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [one for text in docstrings for one in sentences(text) if len(one.split()) > 30]


def test_sentences_of_docstrings_are_short() -> None:
    assert long_sentences(f'def f():\n    """{"word " * 31}."""')
    wrong = {str(path.relative_to(ROOT)): long_sentences(path.read_text(encoding="utf-8")) for path in MODULES}
    assert not {path: found for path, found in wrong.items() if found}


_ROOMS = "autodiff|autograph|codegen|eager|effects|guards|loops|ops|passes|tracing"
_REFERENCE = re.compile(rf"``(?:hybridflow\.|compiler\.)?((?:{_ROOMS})(?:[./][a-z_]+)+)(?:\.[A-Z][\w.]*)?(?:\.py)?``")


def test_modules_that_comments_name_are_there() -> None:
    ends = {tuple(path.with_suffix("").parts[-n:]) for path in MODULES for n in (1, 2, 3, 4)}
    ends |= {tuple(path.parent.parts[-n:]) for path in MODULES for n in (2, 3)}
    missing = []
    for path in MODULES:
        for name in _REFERENCE.findall(path.read_text(encoding="utf-8")):
            parts = tuple(re.split(r"[./]", name.removesuffix(".py")))
            if parts not in ends and parts[:-1] not in ends:  # a module, or a function of one
                missing.append((str(path.relative_to(ROOT)), name))
    assert not missing
