"""Which statements leave the block that they stand in, and which names a block binds: what converted code must know."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPOUND = (*_LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


def leaves(nodes: Iterable[ast.AST], in_loop: bool = False) -> bool:
    """Whether statements hold a ``return``, or a ``break`` or ``continue`` of a loop around them."""
    for node in nodes:
        if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and not in_loop):
            return True
        if isinstance(node, _LOOPS):
            if leaves(node.body, True) or leaves(node.orelse, in_loop):
                return True
        elif isinstance(node, (*_COMPOUND, ast.ExceptHandler, ast.match_case)) and leaves(
            ast.iter_child_nodes(node), in_loop
        ):
            return True
    return False


def returns_early(body: Sequence[ast.stmt]) -> bool:
    """Whether a function may return from within a compound statement."""
    return any(isinstance(node, _COMPOUND) and _returns(node) for node in body)


def _returns(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Return) for part in _own(node))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, but not those in functions and classes that are made there."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, _SCOPES):
            yield part
            yield from _own(part)


def bound_by_inner(body: Sequence[ast.stmt]) -> set[str]:
    """The names of a function that functions made in it assign, by ``nonlocal``."""
    return {name for node in body for part in ast.walk(node) if isinstance(part, ast.Nonlocal) for name in part.names}
