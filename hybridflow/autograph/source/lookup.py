"""The source of a function, as a tree that was proved to be it: it compiles to the same byte code.

A text is cut at the function's lines, which costs a millisecond however long the file is; where the function has moved,
its text is looked for by name, and at last the whole text is parsed.
"""

from __future__ import annotations

import ast
import copy
import inspect
import os
import re
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, Generic, TypeVar

from hybridflow.autograph.source import module_imports, source_locations
from hybridflow.autograph.source.code_unit import Function, compile_code, first_line, future, owner_of, parse, same

V = TypeVar("V")

_STARTED = time.time()
_ATTEMPTS = 200  # pieces of one text that are tried


@dataclass(frozen=True)
class Source:
    """The verified source of `code`.  The tree is the receiver's own to change.

    `node` has lost its decorators, default values and annotations (see `code_unit.bare`).  Lines and columns are the
    user's, with the function where it stood when it was compiled.  `owner` is the class by whose name private names in
    it are mangled.
    """

    code: CodeType
    node: Function
    owner: str | None
    imported: frozenset[str]  # see `imports`


@dataclass(frozen=True)
class Missing:
    """No source, and why: a clause that goes on from "the source of f is not known: "."""

    reason: str

    def __bool__(self) -> bool:
        return False


class ByCode(Generic[V]):
    """Values by code object, dropped with it.  By identity: code objects in different files may be equal.

    Every operation is one of a dict, so threads need no lock.
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[CodeType], V]] = {}

    def get(self, code: CodeType) -> V | None:
        entry = self._values.get(id(code))
        return entry[1] if entry is not None and entry[0]() is code else None

    def put(self, code: CodeType, value: V) -> V:
        """Set the value if there is none yet; the one that there is now."""
        key, values = id(code), self._values

        def drop(reference: weakref.ref[CodeType]) -> None:
            entry = values.get(key)
            if entry is not None and entry[0] is reference:  # not the next code at this address
                values.pop(key, None)

        entry = values.get(key)
        if entry is not None and entry[0]() is not code:
            values.pop(key, None)  # of a code object that died here
        return values.setdefault(key, (weakref.ref(code, drop), value))[1]


_remembered: ByCode[list[str]] = ByCode()


def find(code: CodeType, function: FunctionType | None = None) -> Source | Missing:
    """The source of `code`; `function` (any that shares its globals) helps to find the module's file and loader."""
    if (code.co_name.startswith("<") and code.co_name != "<lambda>") or not code.co_flags & inspect.CO_OPTIMIZED:
        return Missing("it is not the code of a function")
    names = function.__globals__ if function is not None else _globals_of(code.co_filename)
    tried = False
    for lines in _texts(code, names):
        tried = True
        result = _match(lines, code)
        if result is not None:
            return result
    return Missing(_reason(code, tried))


def remember(function: FunctionType, frame: FrameType | None = None) -> None:
    """Keep the text of `function` if it would be lost: it came from a string that a caller just gave to `exec`.

    To be called while the function is made, as a decorator does; nearly free for functions of files.  `frame` is where
    to search from, the caller's by default.
    """
    code = function.__code__
    if not source_locations.is_synthetic_name(code.co_filename) or _remembered.get(code) is not None:
        return
    for lines in source_locations.candidates(code, function.__globals__):
        if _match(lines, code) is not None:
            _remembered.put(code, lines)
            return
    source_locations.listen()  # more of this kind will come, and helpers that are looked for when it is too late
    for lines in source_locations.of_callers(code, frame or sys._getframe(1)):
        if _match(lines, code) is not None:
            _remembered.put(code, lines)
            source_locations.keep(code.co_filename, "".join(lines))  # for the helpers beside it
            return


def _texts(code: CodeType, names: dict[str, Any]) -> Iterator[list[str]]:
    texts = _remembered.get(code)
    if texts is not None:
        yield texts
    yield from source_locations.candidates(code, names)


def _globals_of(filename: str) -> dict[str, Any]:
    """The globals of the module of a file, which know its loader; empty if no module is known to be it."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict) and names.get("__file__") == filename:
            return names
    return {}


def _reason(code: CodeType, tried: bool) -> str:
    filename = code.co_filename
    rewriter = _rewriter(code)
    if rewriter:
        return f"its byte code was rewritten by {rewriter}"
    if source_locations.is_synthetic_name(filename):
        return f"it was typed or executed where no text is kept ({filename})"
    if not tried:
        return f"its file is not there ({filename})"
    try:
        edited = os.stat(filename).st_mtime > _STARTED
    except OSError:
        edited = False
    if edited:
        return f"its file was edited since it was imported ({filename})"
    return f"its byte code is not what {filename} compiles to: the file was edited, or a tool rewrote the byte code"


def _rewriter(code: CodeType) -> str | None:
    names = set(_all_names(code))
    known = {"@pytest_ar": "pytest", "__beartype_func__": "beartype", "@py_builtins": "pytest"}
    for name in names:
        if name in known:
            return known[name]
        for tool in ("typeguard", "beartype", "birdseye"):
            if tool in name:
                return tool
    return "typeguard" if "check_argument_types" in names else None


def _all_names(code: CodeType) -> Iterator[str]:
    for each in (code, *_nested_code(code)):
        for names in (each.co_names, each.co_varnames, each.co_cellvars, each.co_freevars):
            yield from names


# ---- looking for the function in one text


def _match(lines: list[str], code: CodeType) -> Source | None:
    """The function `code` in a text: at its line, else wherever it stands now.  None if it is not there."""
    first = code.co_firstlineno - 1
    match = [first] if first < len(lines) else []
    moved = (place for place in _line_ranges(lines, code.co_name) if place != first)
    if code.co_name == "<lambda>":  # its own lines may not parse alone, while an equal one elsewhere does
        return _at(match, lines, code) or _anywhere(lines, code) or _at(moved, lines, code)
    return _at(match, lines, code) or _at(moved, lines, code) or _anywhere(lines, code)


def _at(places: Iterable[int], lines: list[str], code: CodeType) -> Source | None:
    """The function `code` at one of these lines."""
    pieces = _lambda_pieces if code.co_name == "<lambda>" else _def_pieces
    imported = module_imports.scan_imports(code.co_filename, lines).intersection(_all_names(code))
    for place in places:
        for piece in pieces(lines, place, code):
            result = _best(piece.functions(code), code, imported)
            if result is None and imported:  # a text of several that were compiled one by one, at a console
                result = _best(piece.functions(code), code, frozenset())
            if result is not None:
                return result
    return None


def _anywhere(lines: list[str], code: CodeType) -> Source | None:
    """The function `code` in the tree of the whole text."""
    functions, imported = _whole_file("".join(lines), future(code))
    candidates: list[tuple[Function, str | None]] = []
    others: list[tuple[Function, str | None]] = []
    for node, owner in functions:
        if _alike(node, code):
            (candidates if first_line(node) == code.co_firstlineno else others).append((node, owner))
    names = imported.intersection(_all_names(code))
    for alike in (candidates, others):  # what stands at its line is it, if it is equal
        result = _best([(copy.deepcopy(node), owner) for node, owner in alike], code, names)
        if result is not None:
            return result
    return None


@dataclass(frozen=True)
class _Piece:
    """Text to parse.  Lines before it are blank, so that its lines count as the text's own."""

    text: str

    def functions(self, code: CodeType) -> list[tuple[Function, str | None]]:
        """The functions in it that might be `code`, by name and parameters, with the class around them."""
        tree = parse(self.text, future(code))
        if tree is None:
            return []
        result = [(node, owner or owner_of(code)) for node, owner in _functions(tree) if _alike(node, code)]
        if len(result) > 1:  # one may be part of another, and each is changed while it is tried
            result = [(copy.deepcopy(node), owner) for node, owner in result]
        return result


@lru_cache(maxsize=2)
def _whole_file(text: str, flags: int) -> tuple[list[tuple[Function, str | None]], frozenset[str]]:
    """All functions of a text, not to be changed, with the class around each, and what the text imports at its top."""
    tree = parse(text, flags)
    return ([], frozenset()) if tree is None else (list(_functions(tree)), module_imports.of(tree))


def _functions(tree: ast.AST) -> Iterator[tuple[Function, str | None]]:
    """Functions at any depth, each with the innermost class around it."""
    todo: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while todo:
        node, owner = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node, owner
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        for name in node._fields:  # (``ast.iter_child_nodes`` takes twice as long)
            value = getattr(node, name, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and child._fields:
                    todo.append((child, inner))


def _alike(node: Function, code: CodeType) -> bool:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    a = node.args
    return (
        name == code.co_name
        and len(a.args) + len(a.posonlyargs) == code.co_argcount
        and len(a.kwonlyargs) == code.co_kwonlyargcount
        and (a.vararg is not None) == bool(code.co_flags & inspect.CO_VARARGS)
        and (a.kwarg is not None) == bool(code.co_flags & inspect.CO_VARKEYWORDS)
    )


def _best(functions: list[tuple[Function, str | None]], code: CodeType, imported: frozenset[str]) -> Source | None:
    """The one that is `code`; of equal ones, that which stands where `code` says."""
    matches = []
    for node, owner in functions:
        shift = code.co_firstlineno - first_line(node)
        if shift:
            ast.increment_lineno(node, shift)
        compiled = _verify_code(node, code, imported, owner)
        if compiled is not None:
            matches.append((Source(code, node, owner, imported), compiled, abs(shift)))
    if len(matches) > 1:
        positions = list(code.co_positions())
        matches.sort(key=lambda entry: (entry[2], list(entry[1].co_positions()) != positions))
    return matches[0][0] if matches else None


def _verify_code(node: Function, code: CodeType, imported: frozenset[str], owner: str | None) -> CodeType | None:
    """What a node compiles to, if that is `code`, also after pytest has rewritten its assertions."""
    try:
        if "@pytest_ar" in _all_names(code):
            compiled = compile_code(copy.deepcopy(node), code, imported, owner, _rewrite_asserts)
        else:
            compiled = compile_code(node, code, imported, owner)
    except (SyntaxError, ValueError, RecursionError, StopIteration):
        return None
    return compiled if same(compiled, code) else None


def _rewrite_asserts(module: ast.Module) -> None:
    """Do to assertions what pytest did when it imported the test module."""
    rewrite: Callable[..., None] | None = getattr(sys.modules.get("_pytest.assertion.rewrite"), "rewrite_asserts", None)
    if rewrite is not None:
        rewrite(module, b"")


# ---- cutting


def _line_ranges(lines: list[str], name: str) -> Iterator[int]:
    """Lines at which a function of this name may start, the last first."""
    word = re.compile(r".*\blambda\b" if name == "<lambda>" else rf"\s*(async\s+)?def\s+{re.escape(name)}\b")
    attempts = 0
    for i in range(len(lines) - 1, -1, -1):
        if word.match(lines[i]):
            while name != "<lambda>" and i and lines[i - 1].lstrip().startswith("@"):
                i -= 1
            yield i
            attempts += 1
            if attempts == _ATTEMPTS:
                return


def _def_pieces(lines: list[str], first: int, code: CodeType) -> Iterator[_Piece]:
    """The statement at line `first` (from 0), down to where a line is indented no deeper."""
    indent = _indent(lines[first])
    last = first + _height(code)
    end = min(last + 1, len(lines))
    while end < len(lines):
        line = lines[end]
        if line.strip() and _indent(line) <= indent and line.lstrip()[0] not in ")]}":
            break
        end += 1
    yield _cut(lines, first, end)
    ends = [last for code in (code, *_nested_code(code)) for _, last, _, _ in code.co_positions() if last is not None]
    end_by_positions = first + max(ends, default=0) - code.co_firstlineno + 1
    if end < end_by_positions <= len(lines):  # a string's lines may be indented less
        yield _cut(lines, first, end_by_positions)


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested_code(constant)


def _lambda_pieces(lines: list[str], first: int, code: CodeType) -> Iterator[_Piece]:
    """Lines around a lambda, as few as may parse: an expression may begin above it and end below, and they may be
    entries of a dict."""
    last = min(first + _height(code), len(lines) - 1)
    for above, below in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 2)):
        if first >= above and last + below < len(lines):
            yield _cut(lines, first - above, last + below + 1)
            if (above, below) == (0, 0) and first:
                yield _Piece("\n" * (first - 1) + "{\n" + "".join(lines[first : last + 1]) + "}")


def _height(code: CodeType) -> int:
    """The last line at which something of `code` starts, from its first."""
    lines = [line for each in (code, *_nested_code(code)) for _, _, line in each.co_lines() if line is not None]
    return max(lines, default=code.co_firstlineno) - code.co_firstlineno


def _cut(lines: list[str], first: int, end: int) -> _Piece:
    """Lines as they are, as a dedent would change strings; what is indented goes under an `if`."""
    body = "".join(lines[first:end])
    if not body[:1].isspace():
        return _Piece("\n" * first + body)
    return _Piece("\n" * (first - 1) + "if 1:\n" + body) if first else _Piece("if 1:\n" + body)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
