"""Control flow in instrumented source: statements that can go on when their condition is a tensor.

Python's own statements stay, in the user's own frame.  Where a condition is a tensor, both blocks of an ``if`` run one
after the other.  The body of a loop runs as often as it takes to know the types of what it carries; in between the
names that they bind are set back, which is what the code that is added here does:

    .1 = R.fork(TEST, names)             True, False, or a ``Conditional``, which is true once and then false
    if .1:
        THEN
        if .1 is not True: a, b = .1.between()      the names as they were before
    if not .1:
        ELSE
    if .1 is not True and .1 is not False: a, b = .1.joined()

A name that has no value is assigned ``R.unbound``, and deleted at once.  ``return``, ``break`` and ``continue`` ask
whether to leave in fact: where a condition was a tensor the frame goes on, and what follows is skipped (``R.live``).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.autograph.transform import early_exits
from hybridflow.autograph.transform.scope import LOCAL, Scope, names_bound

_MOST_GUARDS = 4


class Flow(ast.NodeTransformer):
    """The part of the instrumenter that knows statements and operators which choose."""

    _scope: Scope
    _temporaries = 0
    _unsure: frozenset[str] | set[str] = frozenset()  # names that may be read where nothing has bound them
    _inner: set[str] = set()  # names that functions made inside of this one assign
    _read: set[str] | None = None  # names that the function reads; None if any may be read
    _returns = False  # whether returns ask first
    _may_bind = True  # whether a walrus may stand here, and statements be more than one
    _finally: frozenset[str] | set[str] = (
        frozenset()
    )  # names bound in the blocks of ``try`` statements with ``finally``
    _guards = 0  # of blocks around, see ``_guarded``
    _loops: list[str | None] = []  # the loop objects of the loops around, None for loops that are not converted

    # What the instrumenter has.

    def _call(self, at: ast.AST, method: str, *args: ast.expr) -> ast.expr:
        raise NotImplementedError

    def _at(self, at: ast.AST, node: object) -> Any:
        raise NotImplementedError

    def _visit(self, node: ast.expr) -> ast.expr:
        raise NotImplementedError

    def _statements(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        raise NotImplementedError

    def _test(self, node: ast.expr) -> ast.expr:
        raise NotImplementedError

    def _mangled(self, name: str) -> str:
        raise NotImplementedError

    def _recorder_at(self, at: ast.AST) -> ast.expr:
        raise NotImplementedError

    # ---- pieces

    def _temporary(self) -> str:
        self._temporaries += 1
        return f".{self._temporaries}"

    def _load(self, at: ast.AST, name: str) -> ast.expr:
        result: ast.expr = self._at(at, ast.Name(name, ast.Load()))
        return result

    def _set(self, at: ast.AST, name: str, value: ast.expr) -> ast.stmt:
        result: ast.stmt = self._at(at, ast.Assign([self._at(at, ast.Name(name, ast.Store()))], value))
        return result

    def _bind(self, at: ast.AST, name: str, value: ast.expr) -> ast.expr:
        result: ast.expr = self._at(at, ast.NamedExpr(self._at(at, ast.Name(name, ast.Store())), value))
        return result

    def _of(self, at: ast.AST, name: str, method: str, *args: ast.expr) -> ast.expr:
        """``name.method(*args)``"""
        function = self._at(at, ast.Attribute(self._load(at, name), method, ast.Load()))
        result: ast.expr = self._at(at, ast.Call(function, list(args), []))
        return result

    def _if(self, at: ast.AST, test: ast.expr, body: list[ast.stmt], orelse: Sequence[ast.stmt] = ()) -> ast.stmt:
        result: ast.stmt = self._at(at, ast.If(test, body, list(orelse)))
        return result

    def _not(self, at: ast.AST, test: ast.expr) -> ast.expr:
        result: ast.expr = self._at(at, ast.UnaryOp(ast.Not(), test))
        return result

    def _is(self, at: ast.AST, name: str, *others: bool) -> ast.expr:
        """Whether a temporary is none of these constants."""
        tests = [
            self._at(at, ast.Compare(self._load(at, name), [ast.IsNot()], [self._at(at, ast.Constant(other))]))
            for other in others
        ]
        result: ast.expr = tests[0] if len(tests) == 1 else self._at(at, ast.BoolOp(ast.And(), tests))
        return result

    def _none(self, at: ast.AST) -> ast.expr:
        result: ast.expr = self._at(at, ast.Constant(None))
        return result

    def _names(self, at: ast.AST, names: Sequence[str]) -> ast.expr:
        held: Any = tuple(map(self._mangled, names))
        unsure = tuple(name for name in held if name in self._unsure)
        held = (*held, unsure) if unsure else held
        result: ast.expr = self._at(at, ast.Constant(held))
        return result

    def _assign_names(self, at: ast.AST, names: Sequence[str], value: ast.expr) -> list[ast.stmt]:
        """``(a, b) = value``, and those that are unbound deleted."""
        if not names:
            return [self._at(at, ast.Expr(value))]
        targets = [self._at(at, ast.Name(name, ast.Store())) for name in names]
        result = [self._at(at, ast.Assign([self._at(at, ast.Tuple(targets, ast.Store()))], value))]
        for name in names:
            unbound = self._at(at, ast.Attribute(self._recorder_at(at), "unbound", ast.Load()))
            test = self._at(at, ast.Compare(self._load(at, name), [ast.Is()], [unbound]))
            result.append(self._if(at, test, [self._at(at, ast.Delete([self._at(at, ast.Name(name, ast.Del()))]))]))
        return result

    def _bound_names(self, *nodes: ast.AST) -> list[str]:
        """The local names that nodes may bind, in an order of their own."""
        names = {name for name in names_bound(nodes) if self._scope.kind(self._mangled(name)) == LOCAL}
        return sorted(names | {name for name in self._inner if self._scope.kind(self._mangled(name)) == LOCAL})

    # ---- functions

    def _enter_function(self, body: Sequence[ast.stmt]) -> tuple[Any, ...]:
        before = self._temporaries, self._inner, self._returns, self._may_bind, self._loops, self._finally, self._guards
        used, self._inner = early_exits.names_used(body)
        read, self._read = self._read, used if body else None
        self._guards = 0
        self._temporaries, self._loops = 0, []
        self._returns, self._may_bind, self._finally = early_exits.returns_early(body), True, frozenset()
        return *before, read

    def _leave_function(self, before: tuple[Any, ...]) -> None:
        self._temporaries, self._inner, self._returns, self._may_bind, self._loops, *rest = before
        self._finally, self._guards, self._read = rest

    def _function_end(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a function, which asks at its end what it returned before."""
        if self._returns:
            last, name = body[-1], self._temporary()
            names = self._names(last, self._outer_names())
            body.append(self._set(last, name, self._call(last, "returned_by_end", names)))
            body += self._set_outer_names(last)
            body.append(self._at(last, ast.Return(self._load(last, name))))
        return body

    def _outer_names(self) -> list[str]:
        """The variables of functions around that a function assigns, of which none comes from outside."""
        return sorted(name for name in self._scope.outer if self._scope.kind(self._mangled(name)) == LOCAL)

    def _set_outer_names(self, at: ast.AST) -> list[ast.stmt]:
        """Before a function returns: such variables, set to what they hold on all of its ways."""
        names = self._outer_names()
        if not names:
            return []
        temporary = self._temporary()
        taken = self._set(at, temporary, self._call(at, "left", self._names(at, names)))
        return [
            taken,
            self._if(at, self._is_some(at, temporary), self._assign_names(at, names, self._load(at, temporary))),
        ]

    def _is_some(self, at: ast.AST, name: str) -> ast.expr:
        """Whether a temporary is not None."""
        result: ast.expr = self._at(at, ast.Compare(self._load(at, name), [ast.IsNot()], [self._none(at)]))
        return result

    def visit_Return(self, node: ast.Return) -> ast.Return | list[ast.stmt]:
        value = self._none(node) if node.value is None else self._visit(node.value)
        if not self._returns:
            node.value = None if node.value is None else value
            return node
        name = self._temporary()
        stays = self._at(node, ast.Attribute(self._recorder_at(node), "stays", ast.Load()))
        goes = self._at(node, ast.Compare(self._load(node, name), [ast.IsNot()], [stays]))
        node.value = self._load(node, name)
        names = self._names(node, sorted({*self._finally, *self._outer_names()}))
        asked = self._set(node, name, self._call(node, "returns", value, names))
        return [asked, self._if(node, goes, [*self._set_outer_names(node), node])]

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        value = self._none(node) if node.value is None else self._visit(node.value)
        node.value = self._call(node, "yields", value)
        return self._call(node, "resumed", node)

    # ---- blocks

    def _block(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements, of which those after one that may leave are skipped where it did."""
        for k, node in enumerate(nodes[:-1]):
            if not isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)) and early_exits.leaves([node]):
                rest = nodes[k + 1 :]
                before, live = self._statements_of(nodes[: k + 1]), self._call(rest[0], "live")
                return [*before, self._if(rest[0], live, self._guard_statements(rest, self._block))]
        return self._statements_of(nodes)

    def _statements_of(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        raise NotImplementedError

    def _guard_statements(
        self, nodes: Sequence[ast.stmt], made_of: Callable[[Sequence[ast.stmt]], list[ast.stmt]]
    ) -> list[ast.stmt]:
        """Statements that may be under a condition that is a tensor, where a function that they call may raise an
        error; Python does not nest more than some blocks."""
        if (
            self._guards == _MOST_GUARDS
            or not early_exits.calls(nodes)
            or (len(nodes) == 1 and isinstance(nodes[0], ast.If))
        ):
            return made_of(nodes)
        self._guards += 1
        try:
            body = made_of(nodes)
        finally:
            self._guards -= 1
        at, since = nodes[0], self._temporary()
        again = self._if(
            at, self._not(at, self._call(at, "threw", self._load(at, since))), [self._at(at, ast.Raise(None, None))]
        )
        failures = self._at(at, ast.Attribute(self._recorder_at(at), "failures", ast.Load()))
        handler = self._at(at, ast.ExceptHandler(failures, None, [again]))
        return [self._set(at, since, self._call(at, "depth")), self._at(at, ast.Try(body, [handler], [], []))]

    # ---- if

    def visit_If(self, node: ast.If) -> Any:
        if self._is_plain(node.test) or not self._may_bind:
            node.test = self._test(node.test)
            node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
            return node
        return self._conditional(node.test, self._truth(node.test), node.body, node.orelse)

    def _conditional(
        self, at: ast.AST, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]
    ) -> list[ast.stmt]:
        names, fork = self._bound_names(*body, *orelse), self._temporary()
        result = [self._set(at, fork, self._call(at, "fork", test, self._names(at, names), self._loop_around(at)))]
        between = self._assign_names(at, names, self._of(at, fork, "begin_else"))
        result.append(
            self._if(
                at,
                self._load(at, fork),
                [*self._guard_statements(body, self._statements), self._if(at, self._is(at, fork, True), between)],
            )
        )
        if orelse:
            result.append(
                self._if(at, self._not(at, self._load(at, fork)), self._guard_statements(orelse, self._statements))
            )
        joined = self._assign_names(at, names, self._of(at, fork, "merge"))
        result.append(self._if(at, self._is(at, fork, True, False), joined))
        return result

    def _is_plain(self, test: ast.expr) -> bool:
        """Whether a condition can be seen to be no tensor."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._is_plain(test.operand)
        if isinstance(test, ast.BoolOp):
            return all(map(self._is_plain, test.values))
        return isinstance(test, ast.Constant)

    # ---- operators

    def _truth(self, node: ast.expr) -> ast.expr:
        """An expression of which nothing but its truth matters."""
        if isinstance(node, ast.BoolOp) and self._may_bind and not self._is_plain(node):
            return self._operands(node, node.values, isinstance(node.op, ast.And), "truth_of_second")
        return self._visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self._is_plain(node) or not self._may_bind:
            node.values = [*map(self._test, node.values[:-1]), self._visit(node.values[-1])]
            return node
        return self._operands(node, node.values, isinstance(node.op, ast.And), "second")

    def _operands(self, at: ast.AST, values: Sequence[ast.expr], both: bool, method: str) -> ast.expr:
        """``R.second(.v := first, rest if (.f := R.fork(.v, names)) else None, .f)``"""
        see = self._visit if method == "second" else self._truth
        if len(values) == 1:
            return see(values[0])
        first = self._temporary()
        operand = self._bind(values[0], first, see(values[0]))
        return self._second(
            at, operand, first, both, lambda: self._operands(at, values[1:], both, method), method, values[1:]
        )

    def _second(
        self,
        at: ast.AST,
        operand: ast.expr,
        first: str,
        both: bool,
        rest: Callable[..., Any],
        method: str,
        nodes: Sequence[ast.expr],
    ) -> ast.expr:
        fork, names = self._temporary(), self._names(at, self._bound_names(*nodes))
        asked = self._call(at, "fork" if both else "fork_not", self._load(at, first), names, self._loop_around(at))
        second = self._at(at, ast.IfExp(self._bind(at, fork, asked), rest(), self._none(at)))
        is_and = self._at(at, ast.Constant(both))
        return self._with_names(at, self._call(at, method, operand, second, self._load(at, fork), is_and), fork, nodes)

    def _with_names(self, at: ast.AST, value: ast.expr, fork: str, nodes: Sequence[ast.expr]) -> ast.expr:
        """The value of an operator, whose operands may bind names: those that nobody reads may have no value after."""
        names_bound_here = [name for name in self._bound_names(*nodes) if name not in self._inner]
        names_bound_here = [name for name in names_bound_here if self._read is None or name in self._read]
        if not names_bound_here:
            return value
        bound = self._take_from_fork(at, fork, "value_bound_to", names_bound_here)
        both = self._at(at, ast.Tuple([value, bound], ast.Load()))
        first: ast.expr = self._at(at, ast.Subscript(both, self._at(at, ast.Constant(0)), ast.Load()))
        return first

    def _take_from_fork(self, at: ast.AST, fork: str, method: str, names: Sequence[str]) -> ast.expr:
        """Names bound to what a method of ``fork`` gives for each, if that is a Fork at all."""
        kind = self._at(at, ast.Attribute(self._load(at, fork), "__class__", ast.Load()))
        ours = self._at(at, ast.Attribute(self._recorder_at(at), "Conditional", ast.Load()))
        is_fork = self._at(at, ast.Compare(kind, [ast.Is()], [ours]))
        bound = [
            self._bind(at, name, self._of(at, fork, method, self._at(at, ast.Constant(self._mangled(name)))))
            for name in names
        ]
        result: ast.expr = self._at(at, ast.IfExp(is_fork, self._at(at, ast.Tuple(bound, ast.Load())), self._none(at)))
        return result

    def _restore_names(self, at: ast.AST, fork: str, node: ast.expr, value: ast.expr) -> ast.expr:
        """``value``, where names that ``node`` binds hold what they held before it."""
        bound = [name for name in self._bound_names(node) if name not in self._inner]
        if not bound:
            return value
        both = self._at(at, ast.Tuple([self._take_from_fork(at, fork, "before", bound), value], ast.Load()))
        result: ast.expr = self._at(at, ast.Subscript(both, self._at(at, ast.Constant(1)), ast.Load()))
        return result

    def _chain(self, node: ast.Compare) -> ast.expr:
        """``a < b < c``, each operand evaluated once."""
        if len(node.ops) == 1:
            return node
        first, middle = self._temporary(), self._temporary()
        held = self._bind(node.comparators[0], middle, node.comparators[0])
        left = self._at(node, ast.Compare(node.left, node.ops[:1], [held]))
        rest = self._at(node, ast.Compare(self._load(node, middle), node.ops[1:], node.comparators[1:]))
        operand = self._bind(node, first, left)
        return self._second(node, operand, first, True, lambda: self._chain(rest), "second", [])

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if self._is_plain(node.test) or not self._may_bind:
            node.test, node.body, node.orelse = self._test(node.test), self._visit(node.body), self._visit(node.orelse)
            return node
        fork = self._temporary()
        names = self._names(node, self._bound_names(node.body, node.orelse))
        asked = self._bind(
            node.test, fork, self._call(node.test, "fork", self._truth(node.test), names, self._loop_around(node))
        )
        took = self._call(node, "took", self._load(node, fork), self._visit(node.body))
        one = self._at(node, ast.IfExp(self._load(node, fork), took, self._none(node)))
        orelse = self._restore_names(node, fork, node.body, self._visit(node.orelse))
        other = self._at(node, ast.IfExp(self._not(node, self._load(node, fork)), orelse, self._none(node)))
        return self._with_names(node, self._call(node, "chosen", asked, one, other), fork, [node.body, node.orelse])

    # ---- loops

    def _loop_around(self, at: ast.AST) -> ast.expr:
        """The loop object of the innermost loop around."""
        loop = self._loops[-1] if self._loops else None
        return self._none(at) if loop is None else self._load(at, loop)

    def _new_loop(self, at: ast.AST, loop: str, names: Sequence[str]) -> ast.stmt:
        """The names that a loop binds, set to what they are now if it says so."""
        fresh = self._at(at, ast.Attribute(self._load(at, loop), "fresh", ast.Load()))
        return self._if(at, fresh, self._assign_names(at, names, self._of(at, loop, "values", self._names(at, names))))

    def _begin_loop(self, at: ast.AST, method: str, names: Sequence[str], node: Any, *more: ast.expr) -> ast.expr:
        has_else = self._at(at, ast.Constant(bool(node.orelse)))
        return self._call(at, method, self._names(at, names), self._loop_around(at), has_else, *more)

    def _loop_body(self, nodes: Sequence[ast.stmt], loop: str | None) -> list[ast.stmt]:
        self._loops.append(loop)
        try:
            return self._guard_statements(nodes, self._statements) if loop is not None else self._statements(nodes)
        finally:
            self._loops.pop()

    def visit_While(self, node: ast.While) -> Any:
        if not self._may_bind:
            node.test, node.body = self._test(node.test), self._loop_body(node.body, None)
            node.orelse = self._statements(node.orelse)
            return node
        at, loop = node.test, self._temporary()
        names = self._bound_names(node.test, *node.body, *node.orelse)
        statements = [self._set(at, loop, self._begin_loop(at, "loop", names, node))]
        is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if is_endless:
            asked = self._of(at, loop, "endless")
        else:
            asked = self._of(at, loop, "test", self._call(at, "condition", self._truth(node.test)))
        head: list[ast.stmt] = []
        if early_exits.leaves(node.body):
            head.append(self._new_loop(at, loop, names))
            over = self._at(at, ast.Attribute(self._load(at, loop), "over", ast.Load()))
            asked = self._at(at, ast.IfExp(over, self._of(at, loop, "test", self._none(at)), asked))
        head.append(self._if(at, self._not(at, asked), [self._at(at, ast.Break())]))
        head.append(self._new_loop(at, loop, names))
        body = self._loop_body(node.body, loop)
        statements.append(self._at(node, ast.While(self._of(at, loop, "more"), [*head, *body], [])))
        statements.append(self._new_loop(at, loop, names))
        return [*statements, *self._after_loop(at, loop, names, node.orelse)]

    def _after_loop(self, at: ast.AST, loop: str, names: Sequence[str], orelse: Sequence[ast.stmt]) -> list[ast.stmt]:
        """``else``, which runs unless there was a ``break``, and the end of what began with the loop."""
        result: list[ast.stmt] = []
        if orelse:
            result.append(self._if(at, self._of(at, loop, "completed"), self._statements(orelse)))
        result.append(self._at(at, ast.Expr(self._of(at, loop, "leave", self._names(at, names)))))
        result.append(self._new_loop(at, loop, names))
        return result

    def visit_For(self, node: ast.For) -> Any:
        if not self._may_bind:
            return self._plain_for(node)
        at, loop = node.iter, self._temporary()
        names = self._bound_names(node.target, *node.body, *node.orelse)
        targets = set(self._bound_names(node.target)) - self._inner
        appended = {
            name for name in early_exits.appended_names(node.body) if self._scope.kind(self._mangled(name)) == LOCAL
        }
        lists = sorted(appended - self._inner - targets)
        each = self._begin_loop(at, "each", names, node, self._names(at, lists), self._visit(node.iter))
        statements = [self._set(at, loop, each)]
        body = [self._new_loop(at, loop, [name for name in names if name not in targets])]
        again = self._at(at, ast.Attribute(self._load(at, loop), "again", ast.Load()))
        body.append(self._if(at, again, [self._at(at, ast.Continue())]))
        body += self._loop_body(node.body, loop)
        target, unpacking = self._loop_statement(node.target)
        body = [*unpacking, self._try_loop_body(node, loop, body)]
        statements.append(self._at(node, ast.For(target, self._load(at, loop), body, [])))
        statements.append(self._new_loop(at, loop, names))
        return [*statements, *self._after_loop(at, loop, names, node.orelse)]

    def _try_loop_body(self, at: ast.AST, loop: str, body: list[ast.stmt]) -> ast.stmt:
        """The body of a ``for``, which may be traced as a loop of the program and turn out to be none."""
        failed = self._not(at, self._of(at, loop, "failed"))
        caught = self._at(at, ast.Attribute(self._recorder_at(at), "failures", ast.Load()))
        again = self._if(at, failed, [self._at(at, ast.Raise(None, None))])
        handler = self._at(at, ast.ExceptHandler(caught, None, [again]))
        result: ast.stmt = self._at(at, ast.Try(body, [handler], [], []))
        return result

    def _plain_for(self, node: ast.For | ast.AsyncFor) -> ast.AST:
        node.iter = self._call(node.iter, "iterate", self._visit(node.iter))
        node.target, unpacking = self._loop_statement(node.target)
        node.body = [*unpacking, *self._loop_body(node.body, None)]
        node.orelse = self._statements(node.orelse)
        return node

    def _loop_statement(self, target: ast.expr) -> tuple[ast.expr, list[ast.stmt]]:
        """A target, and what follows where it takes a value apart: what is read of that is noted then."""
        if not _takes_apart(target):
            return self._visit(target), []
        name = self._temporary()
        unpacking: ast.stmt = self._at(target, ast.Assign([target], self._load(target, name)))
        return self._at(target, ast.Name(name, ast.Store())), [self.visit(unpacking)]

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self._plain_for(node)

    def visit_Break(self, node: ast.Break) -> ast.If:
        return self._jump(node, "breaks")

    def visit_Continue(self, node: ast.Continue) -> ast.If:
        return self._jump(node, "continues")

    def _jump(self, node: ast.stmt, method: str) -> Any:
        loop = self._loops[-1] if self._loops else None
        return node if loop is None else self._if(node, self._of(node, loop, method), [node])

    # ---- what must be left in order

    def visit_With(self, node: ast.With) -> Any:
        """``with``, one manager at a time.  Errors that a tensor decides about come to it as to an ``except``:

        .w = R.managed(MANAGER, ...)
        with .w as x:
            BODY
            if R.arrived(.w):
                for .e in .w:
                    a, b = .w.names()               what they were when it was raised
                    .w.exits(.e)
                a, b = .w.goes_on()
        """
        first, *rest = node.items
        if rest:
            inner = self._at(node, ast.With(rest, node.body))
            node.items, node.body = [first], [inner]
        if not self._may_bind:
            self.visit(first)
            node.body = self._statements(node.body)
            return node
        lines = [self._at(node, ast.Constant(line)) for line in (node.body[0].lineno, node.body[-1].end_lineno)]
        names = self._bound_names(*([first.optional_vars] if first.optional_vars else []), *node.body)
        unpacking: list[ast.stmt] = []
        if first.optional_vars is not None and _takes_apart(first.optional_vars):
            first.optional_vars, unpacking = self._loop_statement(first.optional_vars)
        self.visit(first)
        one, error = self._temporary(), self._temporary()
        arguments = *lines, self._names(node, names), self._loop_around(node)
        managed = self._set(node, one, self._call(node, "managed", first.context_expr, *arguments))
        first.context_expr = self._load(node, one)
        if not (early_exits.leaves(node.body) or early_exits.may_raise(node.body)):
            node.body = [*unpacking, *self._statements(node.body)]
            return [managed, node]
        begun, end, after = self._pause_around(node, names, one=one)
        body = [
            *self._assign_names(node, names, self._of(node, one, "names")),
            self._at(node, ast.Expr(self._of(node, one, "exits", self._load(node, error)))),
        ]
        target = self._at(node, ast.Name(error, ast.Store()))
        loop = self._at(node, ast.For(target, self._load(node, one), body, []))
        goes_on = self._assign_names(node, names, self._of(node, one, "goes_on"))
        arrived = self._if(node, self._call(node, "arrived", self._load(node, one)), [loop, *goes_on])
        leaves = self._leaving(node, one, begun[1].targets[0].id)  # type: ignore[attr-defined]
        node.body = [*unpacking, *self._statements(node.body), arrived, *end, *leaves]
        return [managed, *begun, node, *after]

    def _leaving(self, at: ast.stmt, one: str, pause: str) -> list[ast.stmt]:
        """The manager of a ``with`` is left, if no error has come to it:

        .f = R.leaving(.w, names)           names that functions of the manager's may assign
        if .f:
            .w.leaves()
            if .f is not True: a, b = .f.between()
        if .f is not True and .f is not False: a, b = .f.joined()
        """
        names, fork = sorted(self._bound_names()), self._temporary()
        statements: list[ast.stmt] = []
        if names:
            common = self._call(at, "common", self._load(at, pause), self._names(at, names))
            statements.append(self._if(at, self._is_some(at, pause), self._assign_names(at, names, common)))
        asked = self._call(at, "leaving", self._load(at, one), self._names(at, names))
        statements.append(self._set(at, fork, asked))
        between = self._assign_names(at, names, self._of(at, fork, "begin_else"))
        left = self._at(at, ast.Expr(self._of(at, one, "leaves")))
        statements.append(self._if(at, self._load(at, fork), [left, self._if(at, self._is(at, fork, True), between)]))
        joined = self._assign_names(at, names, self._of(at, fork, "merge"))
        return [*statements, self._if(at, self._is(at, fork, True, False), joined)]

    def _pause_around(
        self, at: ast.stmt, names: Sequence[str], ends: ast.stmt | None = None, first: int = 0, one: str | None = None
    ) -> tuple[list[ast.stmt], list[ast.stmt], list[ast.stmt]]:
        """Statements before, at the end of, and after a block at whose end something happens however it is left;
        where code of the user's runs there, which ``ends`` with a statement, it may change the names.  ``first`` is
        the line at which such a block begins, ``one`` holds the ``with`` that it belongs to."""
        manager = [] if one is None else [self._load(at, one)]
        depth, pause = self._temporary(), self._temporary()
        begun = [self._set(at, depth, self._call(at, "depth")), self._set(at, pause, self._none(at))]
        end = self._set(at, pause, self._call(at, "pause", self._load(at, depth), self._names(at, names), *manager))
        at = ends or at
        is_paused = self._is_some(at, pause)
        ended = self._at(at, ast.Constant(first))
        resumed = self._call(
            at, "resume", self._load(at, pause), self._names(at, names), ended, *copy.deepcopy(manager)
        )
        return begun, [end], [self._if(at, is_paused, self._assign_names(at, names, resumed))]

    def visit_Try(self, node: ast.Try | ast.TryStar) -> Any:
        if not self._may_bind:
            return self.generic_visit(node)
        if not node.finalbody:
            return self._with_clauses(node)
        first, last = node.body[0].lineno, node.finalbody[0].lineno - 1
        names = sorted({*self._names_of_try(node), *self._bound_names(*node.finalbody)})
        begun, end, after = self._pause_around(node, names, node.finalbody[-1], first)
        depth, pause = (statement.targets[0].id for statement in begun)  # type: ignore[attr-defined]
        lines = [self._at(node, ast.Constant(line)) for line in (first, max(first, last))]
        noted = self._call(node, "finally_", *lines, self._names(node, names), self._loop_around(node))
        before, self._finally = self._finally, self._finally | set(names)
        body = self._with_clauses(node) if node.handlers else self._statements(node.body)
        self._finally = before
        finalbody = self._statements(node.finalbody)
        common = self._call(node, "common", self._load(node, pause), self._names(node, names))
        passed = self._at(node, ast.Expr(self._call(node, "passed", self._load(node, depth))))
        paused = self._if(node, copy.deepcopy(after[0].test), self._assign_names(node, names, common))  # type: ignore[attr-defined]
        whole = self._at(node, ast.Try([*body, *end], [], [], [passed, paused, *finalbody]))
        return [self._at(node, ast.Expr(noted)), *begun, whole, *after]

    visit_TryStar = visit_Try

    def _names_of_try(self, node: ast.Try | ast.TryStar) -> list[str]:
        """The names that the blocks of a ``try`` bind, but for ``finally``."""
        blocks = [node.body, node.orelse, *(handler.body for handler in node.handlers)]
        names = set(self._bound_names(*(part for block in blocks for part in block)))
        caught = [handler.name for handler in node.handlers if handler.name]
        return sorted(names | {name for name in caught if self._scope.kind(self._mangled(name)) == LOCAL})

    def _with_clauses(self, node: ast.Try | ast.TryStar) -> list[ast.stmt]:
        """``try``, ``except`` and ``else``.  The clauses are there once more for errors that a tensor decides about:

        .t = R.tries(...)
        try:
            BODY
        except KIND as e:
            CLAUSE
        else:
            if .a := R.arrived(.t):
                for .e in .t:
                    a, b = .t.names()               what they were when it was raised
                    try: raise .e
                    except KIND as e: CLAUSE
                    except R.anything: .t.raise_unmatched()
                a, b = .t.goes_on()
            if R.live(): ELSE
            if .a: a, b = .t.ends()
        """
        names, depth, one = self._names_of_try(node), self._temporary(), self._temporary()
        clauses, is_group = copy.deepcopy(node.handlers), isinstance(node, ast.TryStar)
        arguments: tuple[Any, ...] = (node.body[0].lineno, node.body[-1].end_lineno, _caught_exceptions(node))
        values = [*(self._at(node, ast.Constant(value)) for value in arguments), self._names(node, names)]
        values += [self._at(node, ast.Constant(is_group)), self._loop_around(node)]
        begun = [
            self._set(node, one, self._call(node, "tries", *values)),
            self._set(node, depth, self._call(node, "depth")),
        ]
        body = self._statements(node.body)
        handlers = [self.visit(handler) for handler in node.handlers]
        for handler in handlers:
            caught = self._at(handler, ast.Expr(self._call(handler, "caught_really", self._load(handler, depth))))
            handler.body = [caught, *handler.body]
        if is_group:
            orelse = self._statements(node.orelse)
        else:
            orelse = self._arrivals(clauses, one, names, node.orelse)
        statement: ast.stmt = self._at(node, type(node)(body, handlers, orelse, []))
        return [*begun, statement]

    def _arrivals(
        self, clauses: list[ast.ExceptHandler], one: str, names: Sequence[str], orelse: Sequence[ast.stmt]
    ) -> list[ast.stmt]:
        at, arrived, error = clauses[0], self._temporary(), self._temporary()
        handlers = [self.visit(handler) for handler in clauses]
        if handlers[-1].type is not None:
            anything = self._at(at, ast.Attribute(self._recorder_at(at), "anything", ast.Load()))
            unmatched = self._at(at, ast.Expr(self._of(at, one, "raise_unmatched")))
            handlers.append(self._at(at, ast.ExceptHandler(anything, None, [unmatched])))
        raised = self._at(at, ast.Raise(self._load(at, error), None))
        body = [
            *self._assign_names(at, names, self._of(at, one, "names")),
            self._at(at, ast.Try([raised], handlers, [], [])),
        ]
        target = self._at(at, ast.Name(error, ast.Store()))
        loop = self._at(at, ast.For(target, self._load(at, one), body, []))
        asked = self._set(at, arrived, self._call(at, "arrived", self._load(at, one)))
        goes_on = self._assign_names(at, names, self._of(at, one, "goes_on"))
        statements = [asked, self._if(at, self._load(at, arrived), [loop, *goes_on])]
        if orelse:
            statements.append(self._if(at, self._call(at, "live"), self._statements(orelse)))
        ends = self._assign_names(at, names, self._of(at, one, "ends"))
        return [*statements, self._if(at, self._load(at, arrived), ends)]

    # ---- errors

    def visit_Raise(self, node: ast.Raise) -> Any:
        self.generic_visit(node)
        if node.exc is None:
            later = self._call(node, "raises_again")
        else:
            cause = self._none(node) if node.cause is None else node.cause
            later = self._call(node, "raises_later", copy.deepcopy(node.exc), copy.deepcopy(cause))
        return self._if(node, self._call(node, "is_staged"), [self._at(node, ast.Expr(later))], [node])

    def visit_Assert(self, node: ast.Assert) -> Any:
        if self._is_plain(node.test) or not self._may_bind:
            node.test = self._test(node.test)
            node.msg = None if node.msg is None else self._visit(node.msg)
            return node
        message = [] if node.msg is None else [node.msg]
        if not all(map(_is_simple, message)):
            negated = self._call(node, "negated", self._truth(node.test))
            return self._conditional(node.test, negated, [self._at(node, Failure.of(message))], [])
        temporary = self._temporary()
        message_parts = list(map(self._visit, message))
        later = self._call(node, "require", self._load(node, temporary), *message_parts)
        begun = self._set(node, temporary, self._truth(node.test))
        node.test = self._call(node, "test", self._load(node, temporary))
        node.msg = copy.deepcopy(message_parts[0]) if message_parts else None
        asked = self._call(node, "is_open", self._load(node, temporary))
        return [begun, self._if(node, asked, [self._at(node, ast.Expr(later))], [node])]

    def visit_Failure(self, node: Failure) -> Any:
        """An assertion that does not hold, in a branch of its own."""
        call = self._call(node, "assertion", *map(self._visit, node.message))
        raises = self._at(node, ast.Raise(copy.deepcopy(call), None))
        later = self._call(node, "raises_later", call, self._none(node))
        return self._if(node, self._call(node, "is_staged"), [self._at(node, ast.Expr(later))], [raises])


class Failure(ast.stmt):
    """``raise AssertionError(*message)``"""

    _fields = ("message",)
    message: list[ast.expr]

    @classmethod
    def of(cls, message: list[ast.expr]) -> Failure:
        result = cls()
        result.message = message
        return result


def _takes_apart(target: ast.expr | None) -> bool:
    """Whether a target unpacks what it is given."""
    return isinstance(target, (ast.Tuple, ast.List))


def _is_simple(message: ast.expr) -> bool:
    """Whether a text may be made although nobody needs it."""
    if isinstance(message, ast.JoinedStr):
        return all(isinstance(part, ast.Constant) or _shows_name(part) for part in message.values)
    return isinstance(message, (ast.Constant, ast.Name))


def _shows_name(part: ast.expr) -> bool:
    return isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)


def _caught_exceptions(node: ast.Try | ast.TryStar) -> tuple[str, ...]:
    """The names of the exceptions that a statement catches, see ``try_ranges.TryRange``."""
    names = []
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names += ["" if kind is None else ast.unparse(kind) for kind in kinds]
    return tuple(names)
