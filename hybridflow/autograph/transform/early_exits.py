"""Which statements leave the block that they stand in, and which names a block binds: what converted code must know."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from hybridflow.autograph.transform.syntax_nodes import all_descendants, children

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPOUND = (*_LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


def leaves(nodes: Iterable[ast.AST], in_loop: bool = False) -> bool:
    """Whether statements hold a ``return``, an error, or a ``break`` or ``continue`` of a loop around them."""
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Raise)) or (isinstance(node, (ast.Break, ast.Continue)) and not in_loop):
            return True
        if isinstance(node, _LOOPS):
            if leaves(node.body, True) or leaves(node.orelse, in_loop):
                return True
        elif isinstance(node, (*_COMPOUND, ast.ExceptHandler, ast.match_case)) and leaves(children(node), in_loop):
            return True
    return False


def returns_early(body: Sequence[ast.stmt]) -> bool:
    """Whether a function may return from within a compound statement, or an error may leave it."""
    return may_raise(body) or any(
        isinstance(node, ast.Assert) or (isinstance(node, _COMPOUND) and _returns(node)) for node in body
    )


def _returns(node: ast.AST) -> bool:
    return any(isinstance(part, (ast.Return, ast.Raise, ast.Assert, ast.Call)) for part in _own_statements(node))


def calls(nodes: Iterable[ast.AST]) -> bool:
    """Whether statements call something, which may raise an error."""
    return any(isinstance(part, ast.Call) for node in nodes for part in (node, *_own_statements(node)))


def may_raise(nodes: Iterable[ast.AST]) -> bool:
    """Whether statements call something, or take items or divide, which may raise an error."""
    return any(isinstance(part, _RAISING) for node in nodes for part in (node, *_own_statements(node)))


_RAISING = (ast.Call, ast.Subscript, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow, ast.LShift, ast.RShift, ast.Assert)


def _own_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, but not those in functions and classes that are made there."""
    todo = children(node)[::-1]
    while todo:
        part = todo.pop()
        if not isinstance(part, _SCOPES):
            yield part
            todo += children(part)[::-1]


def appended_names(body: Sequence[ast.stmt]) -> set[str]:
    """The names of which nothing is done in a block but ``name.append(item)``, as a statement."""
    names: dict[str, int] = {}
    for node in body:
        for part in _and_below(node):
            call = part.value if isinstance(part, ast.Expr) else None
            method = call.func if isinstance(call, ast.Call) else None
            if not isinstance(method, ast.Attribute) or method.attr != "append":
                continue
            if isinstance(method.value, ast.Name) and len(call.args) == 1 and not call.keywords:  # type: ignore[union-attr]
                names[method.value.id] = names.get(method.value.id, 0) + 1
    if not names:
        return set()
    uses: dict[str, int] = {}
    for part in all_descendants(body):
        if isinstance(part, ast.Name) and part.id in names:
            uses[part.id] = uses.get(part.id, 0) + 1
    return {name for name, count in names.items() if uses[name] == count}


def _and_below(node: ast.stmt) -> Iterator[ast.AST]:
    if not isinstance(node, _SCOPES):
        yield node
        yield from _own_statements(node)


def names_read(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements, or functions made in them, read or delete."""
    return names_used(body)[0]


def bound_by_inner(body: Sequence[ast.stmt]) -> set[str]:
    """The names of a function that functions made in it assign, by ``nonlocal``."""
    return names_used(body)[1]


def names_used(body: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """``names_read`` and ``bound_by_inner``."""
    read: set[str] = set()
    assigned: set[str] = set()
    for part in all_descendants(body):
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Store):
                read.add(part.id)
        elif isinstance(part, ast.AugAssign):
            if isinstance(part.target, ast.Name):
                read.add(part.target.id)
        elif isinstance(part, ast.Nonlocal):
            assigned.update(part.names)
    return read, assigned
