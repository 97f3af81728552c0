"""Which names of a function come from outside of it: its globals and builtins, and the cells that it was made with."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hybridflow.autograph.transform.syntax_nodes import all_descendants, children

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, *_COMPREHENSIONS)

_BINDERS = (
    ast.Global,
    ast.Nonlocal,
    ast.Import,
    ast.ImportFrom,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
)

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
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                self.bound.add(argument.arg)
            for variadic in (arguments.vararg, arguments.kwarg):
                if variadic is not None:
                    self.bound.add(variadic.arg)
        if isinstance(node, _COMPREHENSIONS):
            for part in all_descendants(generator.target for generator in node.generators):
                if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
                    self.bound.add(part.id)
            return
        body = [node.body] if isinstance(node, ast.Lambda) else getattr(node, "body", [])
        _add_names(body, self.bound, self.globals, self.outer)
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
    names: set[str] = set()
    _add_names(nodes, names, set(), set())
    return names


def _add_names(nodes: Iterable[ast.AST], bound: set[str], global_: set[str], outer: set[str]) -> None:
    """Add what nodes bind in the scope that they stand in, and what they declare ``global`` or ``nonlocal``."""
    todo = [*nodes]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, (ast.Store, ast.Del)):
                bound.add(node.id)
            continue
        if isinstance(node, _SCOPES):
            if isinstance(node, _COMPREHENSIONS):
                bound.update(_walrus(node))
            elif not isinstance(node, ast.Lambda):
                bound.add(node.name)
            todo += evaluated_outside(node)
            continue
        if isinstance(node, _BINDERS):
            if isinstance(node, ast.Global):
                global_.update(node.names)
            elif isinstance(node, ast.Nonlocal):
                outer.update(node.names)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.MatchMapping):
                if node.rest:
                    bound.add(node.rest)
            elif node.name:
                bound.add(node.name)
        todo += children(node)


def _walrus(node: ast.AST) -> Iterator[str]:
    """Names that ``:=`` binds inside a comprehension: they belong to the scope around it."""
    for part in children(node):
        if isinstance(part, ast.NamedExpr):
            yield part.target.id
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
