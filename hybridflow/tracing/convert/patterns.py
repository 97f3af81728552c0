"""``match`` by values as a chain of ``if``: what is compared with ``==`` may then be a tensor."""

from __future__ import annotations

import ast
from typing import Any

SUBJECT = ".subject"  # with the line it stands in; no name of the user's has a dot


def as_choices(node: ast.AST) -> None:
    """Replace, in place, each ``match`` whose patterns are values, None, True, False and names for the whole subject.

    Others look into an object, which is none that a tensor stands for.
    """
    _Choices().visit(node)


class _Choices(ast.NodeTransformer):
    _depth = 0

    def visit_Match(self, node: ast.Match) -> Any:
        self._depth += 1  # of nested ones in one line each has a subject of its own
        name = f"{SUBJECT}.{node.lineno}.{self._depth}"
        self.generic_visit(node)
        self._depth -= 1
        if not all(_is_simple(case) for case in node.cases):
            return node
        kept = ast.copy_location(ast.Assign([_named(node.subject, name, ast.Store())], node.subject), node.subject)
        return [kept, *_chain(name, node.cases)]


def _is_simple(case: ast.match_case) -> bool:
    pattern = case.pattern
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None
    return _is_value(pattern)


def _is_value(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return all(map(_is_value, pattern.patterns))
    return isinstance(pattern, (ast.MatchValue, ast.MatchSingleton))


def _chain(name: str, cases: list[ast.match_case]) -> list[ast.stmt]:
    """``if``, with the rest of the cases in its ``else``."""
    if not cases:
        return []
    case, *rest = cases
    before: list[ast.stmt] = []
    tests: list[ast.expr] = []
    if isinstance(case.pattern, ast.MatchAs):
        if case.pattern.name is not None:  # bound before the guard is asked
            target, value = _named(case.pattern, case.pattern.name, ast.Store()), _named(case.pattern, name, ast.Load())
            before.append(ast.copy_location(ast.Assign([target], value), case.pattern))
    else:
        tests.append(_test(name, case.pattern))
    if case.guard is not None:
        tests.append(case.guard)
    if not tests:
        return [*before, *case.body]
    test = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])
    return [*before, ast.copy_location(ast.If(test, case.body, _chain(name, rest)), case.pattern)]


def _test(name: str, pattern: ast.pattern) -> ast.expr:
    made: ast.expr
    if isinstance(pattern, ast.MatchOr):
        made = ast.BoolOp(ast.Or(), [_test(name, part) for part in pattern.patterns])
    elif isinstance(pattern, ast.MatchSingleton):
        constant = ast.copy_location(ast.Constant(pattern.value), pattern)
        made = ast.Compare(_named(pattern, name, ast.Load()), [ast.Is()], [constant])
    else:
        assert isinstance(pattern, ast.MatchValue)
        made = ast.Compare(_named(pattern, name, ast.Load()), [ast.Eq()], [pattern.value])
    return ast.copy_location(made, pattern)


def _named(at: Any, name: str, context: ast.expr_context) -> ast.Name:
    return ast.copy_location(ast.Name(name, context), at)
