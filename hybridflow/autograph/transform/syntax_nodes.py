"""Walks over syntax trees: those of ``ast`` without what holds no node, which takes a third of the time."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

# Fields whose values are contexts, strings or numbers, in all versions of Python.
_PLAIN = frozenset(
    ("ctx", "id", "attr", "type_comment", "kind", "level", "module", "conversion", "is_async", "simple", "asname")
)


class _Fields(dict[type, tuple[str, ...]]):
    """By class of node: the fields that may hold nodes."""

    def __missing__(self, kind: Any) -> tuple[str, ...]:
        fields = tuple(name for name in kind._fields if name not in _PLAIN and kind is not ast.Constant)
        self[kind] = fields
        return fields


_fields = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one in their order, without contexts."""
    nodes: list[ast.AST] = []
    for name in _fields[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            for item in value:
                if isinstance(item, ast.AST):
                    nodes.append(item)
        elif isinstance(value, ast.AST):
            nodes.append(value)
    return nodes


def descendants(*tops: ast.AST) -> Iterator[ast.AST]:
    """Nodes and all that is below them in no certain order, without contexts."""
    return all_descendants(tops)


def all_descendants(tops: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The descendants of several nodes."""
    todo = [*tops]
    fields, pop, push = _fields, todo.pop, todo.append
    while todo:
        node = pop()
        yield node
        for name in fields[node.__class__]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                for item in value:
                    if isinstance(item, ast.AST):
                        push(item)
            elif isinstance(value, ast.AST):
                push(value)
