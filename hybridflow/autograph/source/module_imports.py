"""The names of a module's top that the byte code of its functions depends on.

Of calls `name.f()`, those on imported names are compiled differently; and `super()` is, where the module itself uses
the name `super`, which therefore counts as one of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hybridflow.autograph.source.code_unit import parse

_IMPORT = re.compile(r"[ \t]*(?:import|from)\s")
_SUPER = re.compile(r"(?:def|class)\s+super\b|(?!#|def\b|class\b|async\b|@)\S.*\bsuper\b")
_SCOPE = re.compile(r"\s*(?:async\s+def|def|class)\s")
_MAX_CACHED = 64
_scanned: dict[str, tuple[list[str], frozenset[str]]] = {}


def of(tree: ast.Module) -> frozenset[str]:
    """Names in question, of imports by statements of the module itself, also inside `try` and `if`."""
    return frozenset(_names(tree))


def _names(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            for alias in child.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif "super" in (getattr(child, "id", None), getattr(child, "name", None)):
            yield "super"
        elif isinstance(child, ast.expr | ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(
            child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        ):
            yield from _names(child)


def scan_imports(filename: str, lines: list[str]) -> frozenset[str]:
    """The same from lines, without parsing all of them: right for usual modules, a guess for others.

    Remembered for as long as the file's lines are the same list.
    """
    entry = _scanned.get(filename)
    if entry is not None and entry[0] is lines:
        return entry[1]
    names: set[str] = set()
    for i, line in enumerate(lines):
        if "import" in line and _IMPORT.match(line) and not _in_scope(lines, i):
            names.update(_statement(lines, i))
        elif "super" in line and _SUPER.match(line):
            names.add("super")
    if len(_scanned) >= _MAX_CACHED:
        _scanned.clear()
    _scanned[filename] = lines, frozenset(names)
    return _scanned[filename][1]


def _statement(lines: list[str], i: int) -> Iterator[str]:
    text = lines[i].strip()
    while (text.endswith("\\") or text.count("(") > text.count(")")) and i + 1 < len(lines):
        i += 1
        text += "\n" + lines[i].rstrip()
    tree = parse(text, 0)
    return iter(()) if tree is None else _names(tree)


def _in_scope(lines: list[str], i: int) -> bool:
    """Whether line `i` belongs to a function or class, by the indentation of what stands above it."""
    indent = _indent(lines[i])
    while indent and i:
        i -= 1
        line = lines[i]
        if line.strip() and _indent(line) < indent and not line.lstrip().startswith("#"):
            if _SCOPE.match(line):
                return True
            indent = _indent(line)
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
