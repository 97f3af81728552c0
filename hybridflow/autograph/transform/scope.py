"""Which names of a function come from outside of it: its globals and builtins, and the cells that it was made with."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, *_COMPREHENSIONS)

LOCAL, CELL, GLOBAL = "local", "cell", "global"


class Scope:
    """The names that one function, class body or comprehension binds, inside the scope that surrounds it.

    ``cells`` are the names that the outermost function finds in its closure.
    """

    def __init__(self, node: ast.AST, parent: Scope | None, cells: frozenset[str] = frozenset()) -> None:
        self.parent, self.cells = parent, cells
        self.is_class = isinstance(node, ast.ClassDef)
        self.globals: set[str] = set()
        self.outer: set[str] = set()  # declared nonlocal
        self.bound: set[str] = set()
        for name, how in _bindings(node):
            (self.globals if how == "global" else self.outer if how == "nonlocal" else self.bound).add(name)
        self.bound -= self.globals | self.outer

    def kind(self, name: str) -> str:
        """Where a name that is used directly in this scope comes from: LOCAL, CELL (the outermost function's closure)
        or GLOBAL (builtins included).  A name that a class body binds counts as local there, and nowhere else."""
        if name in self.globals:
            return GLOBAL
        if name in self.bound:
            return LOCAL
        scope: Scope | None = self
        while scope is not None:
            if scope is not self and not scope.is_class:
                if name in scope.bound:
                    return LOCAL
                if name in scope.globals:
                    return GLOBAL
            if scope.parent is None:
                return CELL if name in scope.cells else GLOBAL
            scope = scope.parent
        raise AssertionError("a scope without an outermost one")


def names_bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that nodes bind, or delete, in the scope that they stand in."""
    return {name for name, how in _in_statements(nodes) if how not in ("global", "nonlocal")}


def _bindings(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(name, how) of everything that a scope binds or declares."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            yield argument.arg, "argument"
        for variadic in (arguments.vararg, arguments.kwarg):
            if variadic is not None:
                yield variadic.arg, "argument"
    if isinstance(node, _COMPREHENSIONS):
        for generator in node.generators:
            yield from _stored(generator.target)
        return
    body = [node.body] if isinstance(node, ast.Lambda) else getattr(node, "body", [])
    yield from _in_statements(body)


def _stored(target: ast.AST) -> Iterator[tuple[str, str]]:
    for part in ast.walk(target):
        if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            yield part.id, "target"


def _in_statements(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """What the nodes bind in the scope that they stand in."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.id, "target"
        elif isinstance(node, ast.Global):
            yield from ((name, "global") for name in node.names)
        elif isinstance(node, ast.Nonlocal):
            yield from ((name, "nonlocal") for name in node.names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name.partition(".")[0], "import") for alias in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, "except"
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name, "match"
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest, "match"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, "definition"
        if isinstance(node, _COMPREHENSIONS):
            yield from _walrus(node)
        if isinstance(node, _SCOPES):
            yield from _in_statements(evaluated_outside(node))
        else:
            yield from _in_statements(ast.iter_child_nodes(node))


def _walrus(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that ``:=`` binds inside a comprehension: they belong to the scope around it."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.NamedExpr):
            yield part.target.id, "target"
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _walrus(part)


def evaluated_outside(node: ast.AST) -> list[ast.AST]:
    """The parts of a scope's node that are evaluated around it: defaults, decorators, the first iterable."""
    if isinstance(node, _COMPREHENSIONS):
        return [node.generators[0].iter]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    expressions: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    return expressions if isinstance(node, ast.Lambda) else [*node.decorator_list, *expressions]
