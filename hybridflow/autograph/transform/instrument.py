"""Instrumented source: the user's function, with a call of the recorder wherever something is read or written.

The function means what it meant; each access merely passes by an object that may take note of it (its methods are
``Recorder``'s).  Names, attributes, items and calls are reported with the objects they are taken from, so that what was
read is known because it happened.  Evaluation order is kept, and every node stands where the user wrote it, so that
errors show the user's line and columns.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any, TypeVar

from hybridflow.autograph.source.code_unit import Function
from hybridflow.autograph.transform import definite_assignment
from hybridflow.autograph.transform.control_flow import Flow
from hybridflow.autograph.transform.match import Captured, Holds, Matching, Subject, as_choices
from hybridflow.autograph.transform.scope import CELL, GLOBAL, LOCAL, Scope
from hybridflow.autograph.transform.syntax_nodes import descendants

N = TypeVar("N", bound=ast.AST)

# The operators of two operands, and their functions in ``operator``.
OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.BitAnd: "and_",
    ast.FloorDiv: "floordiv",
}
# These give a bool or a tensor: whether it is true needs no further look.
_TRUTHS = (ast.Compare, ast.Constant)


def _depth(target: ast.expr) -> int:
    """How deep a target takes its value apart: 0 for a name."""
    if isinstance(target, ast.Starred):
        return _depth(target.value)
    return 1 + max(map(_depth, target.elts), default=0) if isinstance(target, (ast.Tuple, ast.List)) else 0


class LoopIterable(ast.expr):
    """The iterations of a comprehension: a function ``body`` is called with each item of ``value``."""

    _fields = ("value", "body")
    value: ast.expr
    body: ast.Lambda

    @classmethod
    def of(cls, value: ast.expr, body: ast.Lambda) -> LoopIterable:
        result = cls()
        result.value, result.body = value, body
        return result


def may_loop_over(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension has conditions, or ranges, which tensors may decide about, and needs nothing that
    functions cannot do."""
    parts = node.generators
    if any(part.is_async for part in parts) or not any(part.ifs or _is_range(part.iter) for part in parts):
        return False
    if not all(_is_name_or_names(part.target) for part in parts):
        return False
    return not any(isinstance(each, _NOT_IN_FUNCTIONS) for each in descendants(node))


def _is_range(node: ast.expr) -> bool:
    """Whether an expression is a call of ``range`` or ``arange``."""
    called = getattr(node, "func", None)
    return getattr(called, "id", getattr(called, "attr", None)) in ("range", "arange")


def _is_name_or_names(target: ast.expr) -> bool:
    names = [target] if isinstance(target, ast.Name) else getattr(target, "elts", [])
    ids = [getattr(name, "id", None) for name in names]
    return bool(ids) and None not in ids and len(set(ids)) == len(ids)


_NOT_IN_FUNCTIONS = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
# Functions that take all items of what they are given before anything else happens.
_TAKING_ALL = frozenset(("all", "any", "list", "max", "min", "sorted", "sum", "tuple"))


def instrument(node: Function, cells: frozenset[str], owner: str | None, recorder: str) -> Function:
    """Instrument a function in place.

    ``cells`` are the names in its closure, ``owner`` the class whose private names (``__x``) it mangles, ``recorder``
    the placeholder that stands for the recorder.  Decorators, defaults and annotations of the function itself are not
    touched.
    """
    as_choices(node)
    unsure = definite_assignment.mark(node)
    _Instrumenter(Scope(node, None, cells), owner, recorder, unsure).body_of(node)
    return node


def mangled(name: str, owner: str | None) -> str:
    """A name as a class body sees it (Python reference, 6.2.1.1): private names carry the class's."""
    if owner is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stripped = owner.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


class _Instrumenter(Flow):
    def __init__(self, scope: Scope, owner: str | None, recorder: str, unsure: set[str]) -> None:
        self._scope, self._owner, self._recorder = scope, owner, recorder
        self._unsure = {mangled(name, owner) for name in unsure} if owner is not None else unsure
        self._written: dict[str, str] = {}  # outside names that the present statement binds, and their kinds

    # Pieces

    def _call(self, at: ast.AST, method: str, *args: ast.expr) -> ast.expr:
        """``recorder.method(*args)``, standing where ``at`` stands."""
        function = self._at(at, ast.Attribute(self._recorder_at(at), method, ast.Load()))
        return self._at(at, ast.Call(function, list(args), []))

    def _recorder_at(self, at: ast.AST) -> ast.expr:
        return self._at(at, ast.Constant(self._recorder))

    def _at(self, at: Any, node: N) -> N:
        copied: Any = node  # ``ast.copy_location`` takes several times as long
        copied.lineno, copied.col_offset, copied.end_lineno, copied.end_col_offset = (
            at.lineno,
            at.col_offset,
            at.end_lineno,
            at.end_col_offset,
        )
        return node

    def _mangled(self, name: str) -> str:
        return mangled(name, self._owner)

    def _text(self, at: ast.AST, text: str) -> ast.expr:
        return self._at(at, ast.Constant(text))

    def _visit(self, node: ast.expr) -> ast.expr:
        result: ast.expr = self.visit(node)
        return result

    def _visit_all(self, nodes: Sequence[Any]) -> list[Any]:
        return [None if node is None else self.visit(node) for node in nodes]

    # Scopes

    def body_of(self, node: Function | ast.ClassDef) -> None:
        before = self._enter_function([] if isinstance(node, ast.Lambda) else node.body)
        try:
            if isinstance(node, ast.Lambda):
                node.body = self._visit(node.body)
            elif isinstance(node, ast.ClassDef):
                self._returns = self._may_bind = False
                node.body = self._statements(node.body)
            else:
                node.body = self._function_end(self._statements(node.body))
        finally:
            self._leave_function(before)

    def _inside(self, node: Function | ast.ClassDef, owner: str | None) -> None:
        """Instrument the body of a scope that is made inside the function."""
        before = self._scope, self._owner, self._written
        self._scope, self._owner, self._written = Scope(node, self._scope), owner, {}
        try:
            self.body_of(node)
        finally:
            self._scope, self._owner, self._written = before

    def _statements(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        return self._block(nodes)

    def _statements_of(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [statement for node in nodes for statement in self._statement(node)]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        before, self._written = self._written, {}
        try:
            statements = self.visit(node)
            statements = statements if isinstance(statements, list) else [statements]
            notes = [self._note_write(node, name, kind) for name, kind in self._written.items()]
            return [*notes, *statements]
        finally:
            self._written = before

    def _note_write(self, at: ast.stmt, name: str, kind: str) -> ast.stmt:
        if kind == GLOBAL:
            return self._at(at, ast.Expr(self._call(at, "writes_name", self._text(at, mangled(name, self._owner)))))
        return self._at(
            at, ast.Expr(self._call(at, "writes_cell", self._probe(self._at(at, ast.Name(name, ast.Load())))))
        )

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self._statements(value))
            elif isinstance(value, list):
                setattr(node, field, [self.visit(item) if isinstance(item, ast.AST) else item for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._definition(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._binds(node.name)
        node.decorator_list = [self._call(d, "fn", self._visit(d)) for d in node.decorator_list]
        self._defaults(node.args)
        self._inside(node, self._owner)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._defaults(node.args)
        self._inside(node, self._owner)
        return node

    def _defaults(self, node: ast.arguments) -> None:
        node.defaults = self._visit_all(node.defaults)
        node.kw_defaults = self._visit_all(node.kw_defaults)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._binds(node.name)
        node.decorator_list = [self._call(d, "fn", self._visit(d)) for d in node.decorator_list]
        node.bases = self._visit_all(node.bases)
        node.keywords = self._visit_all(node.keywords)
        self._inside(node, node.name)
        return node

    def _comprehension(self, node: Any) -> ast.AST:
        if isinstance(node, ast.ListComp) and self._may_bind and may_loop_over(node):
            return self._list_comprehension(node)
        node.generators = [part for generator in node.generators for part in self._unpacked_items(generator)]
        first = node.generators[0]
        first.iter = self._iterable(first)
        before = self._scope
        self._scope = Scope(node, before)
        try:
            for k, generator in enumerate(node.generators):
                if k:
                    generator.iter = self._iterable(generator)
                generator.target = self._visit(generator.target)
                generator.ifs = [self._test(test) for test in generator.ifs]
            for field in ("elt", "key", "value"):
                if hasattr(node, field):
                    setattr(node, field, self._visit(getattr(node, field)))
        finally:
            self._scope = before
        return node

    def _list_comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        """``[f(x) for x in xs if g(x)]`` as ``R.listed(lambda .o, .i: R.walk(.i, lambda x: .o.append(f(x)) if g(x) else
        None), xs)``, so that the condition may be a tensor."""
        number = self._temporary()  # those of the functions inside begin anew
        list_name, items = f"{number}.list", f"{number}.items"
        append = self._at(node, ast.Attribute(self._load(node, list_name), "append", ast.Load()))
        body: ast.expr = self._at(node, ast.Call(append, [node.elt], []))
        for k, part in reversed(list(enumerate(node.generators))):
            for test in reversed(part.ifs):
                body = self._at(test, ast.IfExp(test, body, self._none(test)))
            over = self._load(node, items) if k == 0 else part.iter
            body = self._at(
                part.iter, LoopIterable.of(over, self._at(node, ast.Lambda(self._of_target(part.target), body)))
            )
        both = ast.arguments([], [ast.arg(list_name), ast.arg(items)], None, [], [], None, [])
        for each in both.args:
            self._at(node, each)
        function = self._visit(self._at(node, ast.Lambda(both, body)))
        return self._call(node, "listed", function, self._visit(node.generators[0].iter))

    def _of_target(self, target: ast.expr) -> ast.arguments:
        """The parameters of what is called with an item: one, or all of those in a tuple."""
        names = [target] if isinstance(target, ast.Name) else target.elts  # type: ignore[attr-defined]
        parameters = [self._at(name, ast.arg(name.id)) for name in names]
        return ast.arguments([], parameters, None, [], [], None, [])

    def visit_LoopIterable(self, node: LoopIterable) -> ast.AST:
        value, body = self._visit(node.value), node.body
        several = len(body.args.args) > 1
        return self._call(node, "loop_over", value, self._visit(body), self._at(node, ast.Constant(several)))

    def _unpacked_items(self, node: ast.comprehension) -> list[ast.comprehension]:
        """``for a, b in xs`` as ``for x in xs for a, b in (x,)``: what is unpacked is read of an item."""
        if not isinstance(node.target, (ast.Tuple, ast.List)):
            return [node]
        at, name = node.target, self._temporary()
        item = self._at(at, ast.Tuple([self._load(at, name)], ast.Load()))
        outer = ast.comprehension(self._at(at, ast.Name(name, ast.Store())), node.iter, [], node.is_async)
        return [outer, ast.comprehension(node.target, item, node.ifs, 0)]

    def _iterable(self, node: ast.comprehension) -> ast.expr:
        """What a comprehension iterates over, where no walrus may stand."""
        before, self._may_bind = self._may_bind, False
        try:
            return self._iterate(self._visit(node.iter), _depth(node.target))
        finally:
            self._may_bind = before

    def _iterate(self, value: ast.expr, depth: int) -> ast.expr:
        """What is iterated over or unpacked, and its items, so many levels down."""
        levels = [self._at(value, ast.Constant(depth))] if depth else []
        return self._call(value, "iterate", value, *levels)

    def _made_by_comprehension(self, node: ast.AST) -> ast.AST:
        expression: Any = self._comprehension(node)
        return self._call(node, "made", expression)

    visit_GeneratorExp = _comprehension
    visit_ListComp = visit_SetComp = visit_DictComp = _made_by_comprehension

    # Names

    def _binds(self, name: str) -> None:
        kind = self._scope.kind(name)
        if kind != LOCAL:
            self._written[name] = kind

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id.startswith("."):  # a temporary
            return node
        kind = self._scope.kind(mangled(node.id, self._owner))
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            if kind != LOCAL:
                self._written[node.id] = kind
            return node
        if kind == LOCAL or node.id == "__class__":
            return self._call(node, "bound", node) if hasattr(node, "is_unsure") else node
        if kind == CELL:
            return self._call(node, "cell", self._probe(node))
        name = self._text(node, mangled(node.id, self._owner))
        if self._scope.is_class:  # whose namespace may hold names that no statement binds
            namespace = self._at(node, ast.Call(self._at(node, ast.Name("locals", ast.Load())), [], []))
            return self._call(node, "name_in_class", name, namespace)
        return self._call(node, "name", name)

    def _probe(self, node: ast.Name) -> ast.expr:
        """A lambda over the name, in whose closure its cell is found."""
        return self._at(node, ast.Lambda(self._no_arguments(), self._at(node, ast.Name(node.id, ast.Load()))))

    @staticmethod
    def _no_arguments() -> ast.arguments:
        return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])

    def visit_Import(self, node: ast.Import) -> Any:
        for alias in node.names:
            self._binds(alias.asname or alias.name.partition(".")[0])
        return [*(self._import(node, "imports", alias.name, 0) for alias in node.names), node]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        for alias in node.names:
            self._binds(alias.asname or alias.name)
        module = node.module or ""
        after = [self._import(node, "imported", module, node.level, alias.name) for alias in node.names]
        return [self._import(node, "imports", module, node.level), node, *after]

    def _import(self, at: ast.stmt, method: str, *values: str | int) -> ast.stmt:
        return self._at(at, ast.Expr(self._call(at, method, *(self._at(at, ast.Constant(value)) for value in values))))

    # Reads

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value, name = self._visit(node.value), self._text(node, mangled(node.attr, self._owner))
        if isinstance(node.ctx, ast.Load):
            return self._call(node, "attribute", value, name)
        node.value = self._call(node.value, "writes", value, name)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        value = self._visit(node.value)
        if isinstance(node.ctx, ast.Load):
            return self._call(node, "item", value, self._index(node.slice))
        node.value = self._call(node.value, "writes_item", value)
        node.slice = self._visit(node.slice)
        return node

    def _index(self, node: ast.expr) -> ast.expr:
        """A subscript as an expression: slices become ``slice`` objects."""
        if isinstance(node, ast.Slice):
            parts = [
                self._visit(p) if p else self._at(node, ast.Constant(None)) for p in (node.lower, node.upper, node.step)
            ]
            return self._call(node, "slice", *parts)
        if isinstance(node, ast.Tuple):
            return self._at(node, ast.Tuple([self._index(part) for part in node.elts], ast.Load()))
        return self._visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _TAKING_ALL and len(node.args) == 1 and not node.keywords:
            (argument,) = node.args
            if isinstance(argument, ast.GeneratorExp) and self._may_bind and may_loop_over(argument):
                node.args = [self._at(argument, ast.ListComp(argument.elt, argument.generators))]
        if isinstance(function, ast.Name) and function.id == "super" and not node.args and not node.keywords:
            return node  # the compiler knows it by its form
        if isinstance(function, ast.Attribute):
            name = self._text(function, mangled(function.attr, self._owner))
            node.func = self._call(function, "method", self._visit(function.value), name)
        else:
            node.func = self._call(function, "fn", self._visit(function))
        node.args = self._visit_all(node.args)
        for keyword in node.keywords:
            value = self._visit(keyword.value)
            keyword.value = value if keyword.arg is not None else self._call(keyword.value, "iterate", value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node.values = [
            self._visit(value) if key is not None else self._call(value, "iterate", self._visit(value))
            for key, value in zip(node.keys, node.values)
        ]
        node.keys = self._visit_all(node.keys)
        return self._call(node, "made", node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return self._call(node, "made", node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        value = self._visit(node.value)
        node.value = self._call(node.value, "iterate", value) if isinstance(node.ctx, ast.Load) else value
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            for each in node.elts:
                if isinstance(each, ast.Starred):
                    each.value = self._call(each.value, "unpacked", self._visit(each.value))
            node.elts = [each if isinstance(each, ast.Starred) else self.visit(each) for each in node.elts]
            return self._call(node, "made", node)
        return self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        node.value = self._call(node.value, "iterate", self._visit(node.value))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node  # folded by Python's compiler
        operator = self._text(node, OPERATORS[type(node.op)])
        return self._call(node, "binary", operator, self._visit(node.left), self._visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.operand, ast.Constant):
            return node
        if isinstance(node.op, ast.Not):
            if not self._is_plain(node.operand):
                return self._call(node, "negated", self._truth(node.operand))
            node.operand = self._test(node.operand)
        else:
            node.operand = self._use(node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            test = self._call(node, "contains", self._visit(node.left), self._visit(node.comparators[0]))
            return self._call(node, "negated", test) if isinstance(node.ops[0], ast.NotIn) else test
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self._identity_of(node)
        identity = all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        look = self._identity if identity else self._compare
        constants = [part.value for part in (node.left, *node.comparators) if isinstance(part, ast.Constant)]
        if identity and (not constants or any(isinstance(value, (bool, int, float)) for value in constants)):
            look = self._same
        node.left = look(node.left)
        node.comparators = [look(part) for part in node.comparators]
        return node if identity or not self._may_bind else self._chain(node)

    def _identity_of(self, node: ast.Compare) -> ast.expr:
        """``left is right``"""
        left, right = node.left, node.comparators[0]
        if isinstance(left, ast.Constant) and left.value is None:
            left, right = right, left
        if isinstance(right, ast.Constant) and right.value is None:
            test = self._call(node, "is_none", self._visit(left))
        else:
            test = self._call(node, "identical", self._visit(left), self._visit(right))
        return self._call(node, "negated", test) if isinstance(node.ops[0], ast.IsNot) else test

    def _use(self, node: ast.expr) -> ast.expr:
        return node if isinstance(node, ast.Constant) else self._call(node, "use", self._visit(node))

    def _compare(self, node: ast.expr) -> ast.expr:
        return node if isinstance(node, ast.Constant) else self._call(node, "compares", self._visit(node))

    def _identity(self, node: ast.expr) -> ast.expr:
        return node if isinstance(node, ast.Constant) else self._call(node, "identity", self._visit(node))

    def _same(self, node: ast.expr) -> ast.expr:
        return self._call(node, "same", self._visit(node))

    def _test(self, node: ast.expr) -> ast.expr:
        """An expression whose truth is asked for."""
        visited = self._visit(node)
        if isinstance(node, _TRUTHS) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return visited
        return self._call(node, "test", visited)

    # Statements

    def visit_withitem(self, node: ast.withitem) -> ast.AST:
        node.context_expr = self._call(node.context_expr, "enter", self._visit(node.context_expr))
        node.optional_vars = None if node.optional_vars is None else self._visit(node.optional_vars)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        value, depth = self._visit(node.value), max(map(_depth, node.targets))
        node.value = self._iterate(value, depth - 1) if depth else value
        node.targets = self._visit_all(node.targets)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)  # the annotation of a local name is never evaluated
        node.value = None if node.value is None else self._visit(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target, operator = node.target, OPERATORS[type(node.op)]
        node.value = self._use(node.value)
        if isinstance(target, ast.Attribute):
            name = self._text(target, mangled(target.attr, self._owner))
            target.value = self._call(target.value, "updates", self._visit(target.value), name)
            return node
        if isinstance(target, ast.Subscript):
            target.value = self._call(target.value, "updates_item", self._visit(target.value))
            target.slice = self._visit(target.slice)
            return node
        name = self._at(target, ast.Name(target.id, ast.Load()))
        if hasattr(target, "is_unsure"):
            name.is_unsure = True  # type: ignore[attr-defined]
        read = self._visit(name)
        self.visit(target)
        note = self._call(node, "updates_in_place", self._text(node, operator), read)
        return [self._at(node, ast.Expr(note)), node]

    def visit_Match(self, node: ast.Match) -> Any:
        notes = [self._at(node, ast.Expr(self._call(node, "tried", named))) for named in self._named_in_patterns(node)]
        names = sorted({n for case in node.cases for p in ast.walk(case.pattern) for n in getattr(p, "kwd_attrs", [])})
        node.subject = self._call(
            node.subject, "matched", self._visit(node.subject), *(self._text(node, n) for n in names)
        )
        for case in node.cases:
            case.pattern = self.visit(case.pattern)
            case.guard = None if case.guard is None else self._test(case.guard)
            case.body = self._statements(case.body)
        return [*notes, node]

    def visit_Subject(self, node: Subject) -> ast.expr:
        return self._call(node, "subject", self._visit(node.value), *(self._text(node, name) for name in node.names))

    def visit_Matching(self, node: Matching) -> ast.expr:
        pattern = self._at(node, ast.Constant(node.pattern))
        return self._call(node, "matching", self._visit(node.subject), pattern, *self._visit_all(node.operands))

    def visit_Holds(self, node: Holds) -> ast.expr:
        return self._at(node, ast.Attribute(node.case, "holds", ast.Load()))

    def visit_Captured(self, node: Captured) -> ast.expr:
        captured = self._at(node, ast.Attribute(node.case, "captured", ast.Load()))
        return self._at(node, ast.Subscript(captured, self._at(node, ast.Constant(node.number)), ast.Load()))

    def _named_in_patterns(self, node: ast.Match) -> list[ast.expr]:
        """Functions that read the constants and classes in patterns, which cannot be calls in a pattern itself."""
        expressions: list[ast.expr] = []
        for part in (part for case in node.cases for part in ast.walk(case.pattern)):
            if isinstance(part, ast.MatchValue) and isinstance(part.value, ast.Attribute):
                expressions.append(part.value)
            elif isinstance(part, ast.MatchClass):
                expressions.append(part.cls)
        return [
            self._at(node, ast.Lambda(self._no_arguments(), self._visit(copy.deepcopy(part)))) for part in expressions
        ]

    def _pattern_value(self, node: ast.AST) -> ast.AST:
        return node  # dotted names of patterns stay: they may not be calls

    visit_MatchValue = _pattern_value

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        node.patterns = self._visit_all(node.patterns)
        node.kwd_patterns = self._visit_all(node.kwd_patterns)
        return node

    def _bound_by_pattern(self, node: ast.AST) -> ast.AST:
        for field in ("name", "rest"):
            if getattr(node, field, None):
                self._binds(getattr(node, field))
        return self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _bound_by_pattern

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name:
            self._binds(node.name)
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """``f"a {b!r:>5}"`` as ``R.joined("a ", (b, "r", ">5"))``."""
        return self._call(node, "joined", *map(self._piece, node.values))

    def _piece(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.FormattedValue):
            return node
        conversion = self._text(node, "" if node.conversion < 0 else chr(node.conversion))
        spec = self._text(node, "") if node.format_spec is None else self._visit(node.format_spec)
        return self._at(node, ast.Tuple([self._visit(node.value), conversion, spec], ast.Load()))
