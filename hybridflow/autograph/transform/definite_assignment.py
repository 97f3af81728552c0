"""Where a local name is read that may have no value: definite assignment, as compilers of other languages demand it.

The analysis goes over statements in the order in which they run and keeps the names that are surely bound.  Reads of
others are marked (``is_unsure``), in functions that are made inside as well, which run at a time that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from hybridflow.autograph.transform.scope import Scope, names_bound
from hybridflow.autograph.transform.syntax_nodes import children, descendants

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Names = frozenset[str]


def mark(function: ast.AST) -> set[str]:
    """Mark the reads in a function, and in all that is inside; the names that are read so."""
    analysis = _Analysis()
    analysis.function(function, frozenset())
    return analysis.unsure


class _Analysis:
    def __init__(self) -> None:
        self.unsure: set[str] = set()
        self._local_names: Names = frozenset()  # the names of functions around that have values of their own

    def function(self, node: Any, around: Names) -> None:
        """``around`` are names of functions around that are surely bound when it is made."""
        before, bound = self._local_names, Scope(node, None).bound
        self._local_names = frozenset((before - _arguments(node)) | bound)
        sure: Names | None = frozenset((around - bound) | _arguments(node))
        if isinstance(node, ast.Lambda):
            self._expression(node.body, frozenset(sure or ()))
        else:
            self._block(node.body, sure)
        self._local_names = before

    # ---- statements: each takes the names that are bound before it, and gives those after; None where nothing follows

    def _block(self, nodes: Sequence[ast.stmt], sure: Names | None) -> Names | None:
        for node in nodes:
            sure = self._statement(node, frozenset() if sure is None else sure)
        return sure

    def _statement(self, node: ast.AST, sure: Names) -> Names | None:
        handler = getattr(self, f"_{type(node).__name__}", None)
        if handler is not None:
            result: Names | None = handler(node, sure)
            return result
        return self._parts(children(node), sure)

    def _parts(self, nodes: Iterable[ast.AST], sure: Names) -> Names:
        for node in nodes:
            sure = self._expression(node, sure)
        return sure

    def _Return(self, node: ast.Return, sure: Names) -> None:
        self._parts(children(node), sure)

    def _Raise(self, node: ast.Raise, sure: Names) -> None:
        self._parts(children(node), sure)

    def _Break(self, node: ast.Break, sure: Names) -> None:
        return None

    _Continue = _Break

    def _Assign(self, node: ast.Assign, sure: Names) -> Names:
        return self._parts([node.value, *node.targets], sure)

    def _AugAssign(self, node: ast.AugAssign, sure: Names) -> Names:
        if isinstance(node.target, ast.Name):
            self._read(node.target, sure)
        return self._parts([node.value, node.target], sure)

    def _AnnAssign(self, node: ast.AnnAssign, sure: Names) -> Names:
        if node.value is None:
            return sure
        return self._parts([node.value, node.target], sure)

    def _FunctionDef(self, node: ast.FunctionDef, sure: Names) -> Names:
        sure = self._parts([*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)], sure)
        self.function(node, sure)
        return sure | {node.name}

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef, sure: Names) -> Names:
        sure = self._parts([*node.decorator_list, *node.bases, *node.keywords], sure)
        before, self._local_names = self._local_names, self._local_names - names_bound(node.body)
        self._block(node.body, sure)
        self._local_names = before
        return sure | {node.name}

    def _Import(self, node: Any, sure: Names) -> Names:
        return sure | {alias.asname or alias.name.partition(".")[0] for alias in node.names}

    _ImportFrom = _Import

    def _If(self, node: ast.If, sure: Names) -> Names | None:
        sure = self._expression(node.test, sure)
        return _both(self._block(node.body, sure), self._block(node.orelse, sure))

    def _loop(self, node: Any, target: ast.AST | None, sure: Names) -> Names:
        sure -= _deleted_names(node)
        self._block(node.body, sure if target is None else self._expression(target, sure))
        self._block(node.orelse, sure)
        return sure

    def _For(self, node: ast.For, sure: Names) -> Names:
        return self._loop(node, node.target, self._expression(node.iter, sure))

    _AsyncFor = _For

    def _While(self, node: ast.While, sure: Names) -> Names:
        sure -= _deleted_names(node)
        return self._loop(node, None, self._expression(node.test, sure))

    def _With(self, node: ast.With, sure: Names) -> Names:
        for item in node.items:
            sure = self._parts(filter(None, (item.context_expr, item.optional_vars)), sure)
        self._block(node.body, sure)  # of which the manager may catch an error
        return sure - _deleted_names(node)

    _AsyncWith = _With

    def _Try(self, node: ast.Try, sure: Names) -> Names | None:
        ends: Names | None = self._block(node.body, sure)
        begun = sure - _deleted_names(node)
        if ends is not None:
            ends = self._block(node.orelse, ends)
        for handler in node.handlers:
            caught = begun if handler.type is None else self._expression(handler.type, begun)
            caught_name = frozenset() if handler.name is None else frozenset([handler.name])
            after = self._block(handler.body, caught | caught_name)
            ends = _both(ends, None if after is None else after - caught_name)
        last = self._block(node.finalbody, begun)
        return None if last is None or ends is None else ends | (last - begun)

    _TryStar = _Try

    def _Match(self, node: ast.Match, sure: Names) -> Names | None:
        sure = self._expression(node.subject, sure)
        ends: Names | None = sure
        for case in node.cases:
            bound = sure | names_bound([case.pattern])
            bound = bound if case.guard is None else self._expression(case.guard, bound)
            ends = _both(ends, self._block(case.body, bound))
        return ends

    def _Delete(self, node: ast.Delete, sure: Names) -> Names:
        for target in node.targets:
            sure = self._expression(target, sure)
        return sure - {target.id for target in node.targets if isinstance(target, ast.Name)}

    # ---- expressions: each gives the names that are bound after it

    def _expression(self, node: ast.AST, sure: Names) -> Names:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._read(node, sure)
                return sure
            return sure | {node.id} if isinstance(node.ctx, ast.Store) else sure
        if isinstance(node, ast.NamedExpr):
            return self._expression(node.value, sure) | {node.target.id}
        if isinstance(node, ast.BoolOp):
            after = self._expression(node.values[0], sure)
            self._parts(node.values[1:], after)
            return after
        if isinstance(node, ast.IfExp):
            after = self._expression(node.test, sure)
            return self._expression(node.body, after) & self._expression(node.orelse, after)
        if isinstance(node, ast.Compare):
            after = self._parts([node.left, node.comparators[0]], sure)
            self._parts(node.comparators[1:], after)
            return after
        if isinstance(node, _COMPREHENSIONS):
            return self._comprehension(node, sure)
        if isinstance(node, ast.Lambda):
            sure = self._parts([*node.args.defaults, *filter(None, node.args.kw_defaults)], sure)
            self.function(node, sure)
            return sure
        return self._parts(children(node), sure)

    def _comprehension(self, node: Any, sure: Names) -> Names:
        after = self._expression(node.generators[0].iter, sure)
        before, self._local_names = self._local_names, frozenset(self._local_names - Scope(node, None).bound)
        inner = after
        for k, generator in enumerate(node.generators):
            inner = inner if not k else self._expression(generator.iter, inner)
            inner = self._parts(generator.ifs, inner)
        for field in ("key", "elt", "value"):
            if hasattr(node, field):
                self._expression(getattr(node, field), inner)
        self._local_names = before
        return after

    def _read(self, node: ast.Name, sure: Names) -> None:
        if node.id in self._local_names and node.id not in sure:
            node.is_unsure = True  # type: ignore[attr-defined]
            self.unsure.add(node.id)


def _arguments(node: Any) -> set[str]:
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {argument.arg for argument in parameters if argument is not None}


def _both(one: Names | None, other: Names | None) -> Names | None:
    return other if one is None else one if other is None else one & other


def _deleted_names(node: ast.AST) -> Names:
    """The names that a statement may delete; those of exceptions end with their clauses."""
    names: set[str] = set()
    for part in descendants(node):
        if isinstance(part, ast.Name):
            if isinstance(part.ctx, ast.Del):
                names.add(part.id)
        elif isinstance(part, ast.ExceptHandler) and part.name:
            names.add(part.name)
    return frozenset(names)
