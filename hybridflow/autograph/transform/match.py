"""``match`` as a chain of ``if``: what its patterns compare may then be a tensor.

Patterns that are values become comparisons.  Others are matched by the recorder (``jit.guards.matching``), which is
told what they are in nested tuples:

    .case = R.matching(.subject, PATTERN, classes and values)
    if .case.holds and GUARD: names = .case.captured; BODY
    else: the rest of the cases
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from hybridflow.autograph.transform.syntax_nodes import descendants

SUBJECT = ".subject"  # with the line it stands in; no name of the user's has a dot
CASE = ".case"
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Subject(ast.expr):
    """The value that is matched, and the names of attributes that patterns look at."""

    _fields = ("value",)
    value: ast.expr
    names: tuple[str, ...]

    @classmethod
    def of(cls, value: ast.expr, names: tuple[str, ...]) -> Subject:
        result = cls()
        result.value, result.names = value, names
        return result


class Matching(ast.expr):
    """What comes of a pattern and a subject."""

    _fields = ("subject", "operands")
    subject: ast.expr
    operands: list[ast.expr]
    pattern: Any

    @classmethod
    def of(cls, subject: ast.expr, pattern: object, operands: list[ast.expr]) -> Matching:
        result = cls()
        result.subject, result.pattern, result.operands = subject, pattern, operands
        return result


class Holds(ast.expr):
    """Whether the subject fits."""

    _fields = ("case",)
    case: ast.expr

    @classmethod
    def of(cls, case: ast.expr) -> Holds:
        result = cls()
        result.case = case
        return result


class Captured(ast.expr):
    """What the pattern gives a name."""

    _fields = ("case",)
    case: ast.expr
    number: int

    @classmethod
    def of(cls, case: ast.expr, number: int) -> Captured:
        result = cls()
        result.case, result.number = case, number
        return result


def as_choices(node: ast.AST) -> None:
    """Replace, in place, each ``match``, unless a guard uses names of its pattern in a function of its own."""
    if not any(isinstance(part, ast.Match) for part in descendants(node)):
        return
    reads = collections.Counter(part.id for part in descendants(node) if _is_read(part))
    outer_names = {
        name for part in descendants(node) if isinstance(part, (ast.Global, ast.Nonlocal)) for name in part.names
    }
    _Choices(reads, outer_names).visit(node)


def _is_read(part: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)


class _Choices(ast.NodeTransformer):
    _depth = 0

    def __init__(self, reads: collections.Counter[str], kept: set[str]) -> None:
        self._reads, self._saved = reads, kept

    def visit_Match(self, node: ast.Match) -> Any:
        if not all(map(_is_simple, node.cases)) and any(map(_hides_names, node.cases)):
            return self.generic_visit(node)
        seen = self._read_elsewhere(node)
        self._depth += 1  # of nested ones in one line each has a subject of its own
        name = f"{SUBJECT}.{node.lineno}.{self._depth}"
        self.generic_visit(node)
        self._depth -= 1
        subject = node.subject
        if not all(map(_is_simple, node.cases)):
            parts = [part for case in node.cases for part in ast.walk(case.pattern)]
            names = tuple(sorted({n for part in parts for n in getattr(part, "kwd_attrs", ())}))
            subject = _at(node.subject, Subject.of(node.subject, names))
        kept = _at(node.subject, ast.Assign([_named(node.subject, name, ast.Store())], subject))
        return [kept, *_chain(name, node.cases, seen)]

    def _read_elsewhere(self, node: ast.Match) -> set[str]:
        """The names of patterns that are read outside of their own cases, where one may find what a case has bound
        whose guard did not hold."""
        inside: collections.Counter[str] = collections.Counter()
        names = set()
        for case in node.cases:
            captured = set(_names_of(case.pattern))
            names |= captured
            parts = [part for top in (case.guard, *case.body) if top is not None for part in ast.walk(top)]
            inside.update(part.id for part in parts if _is_read(part) and part.id in captured)
        return {name for name in names if name in self._saved or self._reads[name] > inside[name]}


def _names_of(pattern: ast.pattern) -> Iterator[str]:
    for part in ast.walk(pattern):
        if isinstance(part, (ast.MatchAs, ast.MatchStar)) and part.name is not None:
            yield part.name
        elif isinstance(part, ast.MatchMapping) and part.rest is not None:
            yield part.rest


def _hides_names(case: ast.match_case) -> bool:
    """Whether a guard has functions of its own that use names of the pattern."""
    names = set(_names_of(case.pattern))
    scopes = [part for part in ast.walk(case.guard) if isinstance(part, _SCOPES)] if case.guard is not None else []
    return any(_is_read(part) and part.id in names for scope in scopes for part in ast.walk(scope))


def _is_simple(case: ast.match_case) -> bool:
    pattern = case.pattern
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None
    return _is_value(pattern)


def _is_value(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return all(map(_is_value, pattern.patterns))
    return isinstance(pattern, (ast.MatchValue, ast.MatchSingleton))


def _chain(name: str, cases: Sequence[ast.match_case], seen: set[str]) -> list[ast.stmt]:
    """``if``, with the rest of the cases in its ``else``."""
    if not cases:
        return []
    case, *rest = cases
    if not _is_simple(case):
        return _match_statements(name, case, rest, seen)
    before: list[ast.stmt] = []
    tests: list[ast.expr] = []
    if isinstance(case.pattern, ast.MatchAs):
        if case.pattern.name is not None:  # bound before the guard is asked
            before.append(_bind(case.pattern, case.pattern.name, _named(case.pattern, name, ast.Load())))
    else:
        tests.append(_test(name, case.pattern))
    if case.guard is not None:
        tests.append(case.guard)
    if not tests:
        return [*before, *case.body]
    return [*before, _at(case.pattern, ast.If(_all(tests), case.body, _chain(name, rest, seen)))]


def _match_statements(
    name: str, case: ast.match_case, rest: Sequence[ast.match_case], seen: set[str]
) -> list[ast.stmt]:
    pattern, number = case.pattern, len(rest)
    case_name = f"{CASE}{name.removeprefix(SUBJECT)}.{number}"
    description = _Description()
    operands = description.of(pattern)
    call = _at(pattern, Matching.of(_named(pattern, name, ast.Load()), operands, description.operands))
    captures = {text: _capture(pattern, case_name, k) for text, k in description.names.items()}
    tests: list[ast.expr] = [_at(pattern, Holds.of(_named(pattern, case_name, ast.Load())))]
    otherwise = _chain(name, rest, seen)
    if case.guard is not None:
        tests.append(_Substituted(case_name, description.names).visit(case.guard))
        bound = [
            _bind(pattern, text, _capture(pattern, case_name, k))
            for text, k in description.names.items()
            if text in seen
        ]
        if bound:  # before the guard is asked
            holds = _at(pattern, Holds.of(_named(pattern, case_name, ast.Load())))
            otherwise = [_at(pattern, ast.If(holds, bound, [])), *otherwise]
    body = [*(_bind(pattern, text, value) for text, value in captures.items()), *case.body]
    return [_bind(pattern, case_name, call), _at(pattern, ast.If(_all(tests), body, otherwise))]


def _all(tests: Sequence[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else _at(tests[0], ast.BoolOp(ast.And(), list(tests)))


def _capture(at: ast.AST, case: str, number: int) -> Captured:
    result: Captured = _at(at, Captured.of(_named(at, case, ast.Load()), number))
    return result


class _Substituted(ast.NodeTransformer):
    """A guard, which reads what the pattern gives its names: they are bound later, or in the other cases not at all."""

    def __init__(self, case: str, names: dict[str, int]) -> None:
        self._case, self._names = case, names

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self._names or isinstance(node.ctx, ast.Store):
            return node
        return _capture(node, self._case, self._names[node.id])


class _Description:
    """A pattern in tuples; the numbers in them are those of ``operands``, classes and values, and of ``names``."""

    def __init__(self) -> None:
        self.operands: list[ast.expr] = []
        self.names: dict[str, int] = {}

    def of(self, pattern: object) -> tuple[Any, ...]:
        result: tuple[Any, ...] = getattr(self, f"_{type(pattern).__name__}")(pattern)
        return result

    def _all(self, patterns: Sequence[ast.pattern]) -> tuple[Any, ...]:
        return tuple(map(self.of, patterns))

    def _operand(self, value: ast.expr) -> int:
        self.operands.append(value)
        return len(self.operands) - 1

    def _name(self, name: str | None) -> int:
        return -1 if name is None else self.names.setdefault(name, len(self.names))

    def _MatchValue(self, pattern: ast.MatchValue) -> tuple[Any, ...]:
        return "value", self._operand(pattern.value)

    def _MatchSingleton(self, pattern: ast.MatchSingleton) -> tuple[Any, ...]:
        return "singleton", pattern.value

    def _MatchSequence(self, pattern: ast.MatchSequence) -> tuple[Any, ...]:
        star = next((k for k, part in enumerate(pattern.patterns) if isinstance(part, ast.MatchStar)), -1)
        return "sequence", star, self._all(pattern.patterns)

    def _MatchStar(self, pattern: ast.MatchStar) -> tuple[Any, ...]:
        return "as", None, self._name(pattern.name)

    def _MatchMapping(self, pattern: ast.MatchMapping) -> tuple[Any, ...]:
        keys = tuple(map(self._operand, pattern.keys))
        return "mapping", keys, self._all(pattern.patterns), self._name(pattern.rest)

    def _MatchClass(self, pattern: ast.MatchClass) -> tuple[Any, ...]:
        kind = self._operand(pattern.cls)
        names = tuple(pattern.kwd_attrs)
        return "class", kind, self._all(pattern.patterns), names, self._all(pattern.kwd_patterns)

    def _MatchAs(self, pattern: ast.MatchAs) -> tuple[Any, ...]:
        return "as", None if pattern.pattern is None else self.of(pattern.pattern), self._name(pattern.name)

    def _MatchOr(self, pattern: ast.MatchOr) -> tuple[Any, ...]:
        return "or", self._all(pattern.patterns)


def _test(name: str, pattern: ast.pattern) -> ast.expr:
    test: ast.expr
    if isinstance(pattern, ast.MatchOr):
        test = ast.BoolOp(ast.Or(), [_test(name, part) for part in pattern.patterns])
    elif isinstance(pattern, ast.MatchSingleton):
        test = ast.Compare(_named(pattern, name, ast.Load()), [ast.Is()], [_at(pattern, ast.Constant(pattern.value))])
    else:
        assert isinstance(pattern, ast.MatchValue)
        test = ast.Compare(_named(pattern, name, ast.Load()), [ast.Eq()], [pattern.value])
    return _at(pattern, test)


def _bind(at: ast.AST, name: str, value: ast.expr) -> ast.stmt:
    result: ast.stmt = _at(at, ast.Assign([_named(at, name, ast.Store())], value))
    return result


def _named(at: ast.AST, name: str, context: ast.expr_context) -> ast.Name:
    result: ast.Name = _at(at, ast.Name(name, context))
    return result


def _at(at: ast.AST, node: ast.AST) -> Any:
    return ast.copy_location(node, at)
