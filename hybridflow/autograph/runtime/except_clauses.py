"""Errors that are raised under a condition that is a tensor, and that the compiled function itself catches.

Such an error leaves its block as ``return`` does (``autograph.runtime.continuations``): nobody ends the program.  Where
a ``try`` that may catch it is over, its clauses run for each of them, in branches of the program of their own; Python
chooses the clause, for the error is raised there in fact.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hybridflow.array import elementwise
from hybridflow.autograph.runtime import (
    branch_merge,
    branch_stack,
    continuations,
    diagnostics,
    exception_handlers,
    exits,
    object_trees,
    undo_log,
)
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.branch_stack import BranchScope
from hybridflow.autograph.runtime.exception_handlers import RaisedExit
from hybridflow.autograph.runtime.exits import ERROR, NORMAL, ExitKind, Exits
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.try_ranges import TryRange
from hybridflow.compiler.ir.dtypes import bool_
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import scalar
from hybridflow.effects.exception_template import parts_of_exception, said_of
from hybridflow.effects.runtime_raise import raise_unless
from hybridflow.errors import HybridflowError, IndexRangeError, ShapeError, SymbolicExtentError
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


class _Template:
    """An error, in which tensors are given later: ``[template, *tensors]`` is what a path keeps of it."""

    __slots__ = ("_error", "_said")

    def __init__(self, error: BaseException, said: object) -> None:
        self._error, self._said = error, said

    def instantiate(self, tensors: Sequence[Any]) -> BaseException:
        if not tensors:
            return self._error
        said, said_of_cause = _map(self._said, lambda leaf: tensors[leaf.number] if type(leaf) is _TensorHole else leaf)
        error = parts_of_exception(said)
        if said_of_cause:
            error.__cause__ = parts_of_exception(said_of_cause)
        return error


class _TensorHole:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def _map(value: object, leaf_of: Any) -> Any:
    """A nested value with other leaves; those of texts that are made later, and of choices, are leaves too."""
    leaves, structure = object_trees.flatten(value)
    return pytree.unflatten(structure, list(map(leaf_of, leaves)))


def _packed(error: BaseException, cause: BaseException | None) -> list[Any]:
    tensors: list[Tensor] = []

    def objects(leaf: object) -> Any:
        if not isinstance(leaf, SymbolicTensor):
            return leaf
        tensors.append(leaf)
        return _TensorHole(len(tensors) - 1)

    said = _map([said_of(error), said_of(cause)], objects)
    if not tensors and cause is not None:
        error.__cause__ = cause
    error.__traceback__ = None
    return [_Template(error, said), *tensors]


def raise_later(frame: FrameType, error: BaseException, cause: BaseException | None) -> None:
    """Raise ``error from cause`` where it depends on a tensor whether the code of ``frame`` is come to: the block is
    left, or the program ends if nothing catches it."""
    guarded = exception_handlers.handler_for(type(error), frame)
    path = branch_stack.scope_of(frame)
    if guarded is None:
        raise_unless(scalar(False, bool_, "raise"), error, cause)
        path.exits = Exits({})
    else:
        continuations.leave_by(guarded, path, _packed(error, cause))


def require(frame: FrameType, ok: Tensor, error: BaseException) -> None:
    """``assert ok`` with its error."""
    guarded = exception_handlers.handler_for(type(error), frame)
    if guarded is None:
        raise_unless(ok, error)
        return
    path = branch_stack.scope_of(frame)
    left, going = Branch(SubTrace("what follows")), Branch(SubTrace("what follows"))
    continuations.leave_by(guarded, path, _packed(error, None))
    bundle, path.exits = path.exits, None
    assert bundle is not None
    path.open(elementwise.logical_not(ok), left, bundle, going, left_first=True)


def leaves_by_error(frame: FrameType, since: tuple[BranchScope | None, int]) -> bool:
    """A block that began ``since`` was left by an exception: whether that is an error of the user's that was raised
    where it depends on a tensor whether that is come to.  The block is left by it in the program then."""
    error = sys.exc_info()[1]
    if not isinstance(error, Exception) or not (_is_of_op(error) or _is_users(error)):
        return False
    if since[0] is None or since[0].frame is not frame or not branch_stack.is_conditional(frame):
        return False
    inner = active.scope
    while inner is not None and inner is not since[0]:
        if inner.frame is frame:
            return False
        inner = inner.parent
    branch_stack.unwind(since[0])
    raise_later(frame, error, error.__cause__)
    return True


# Theirs are errors of programs alone: run eagerly, they may raise none.
_CONTROL = frozenset(("cond", "switch_case", "case", "while_loop", "fori_loop", "scan", "map_fn", "associative_scan"))


def _is_of_op(error: BaseException) -> bool:
    """Whether it is the error of an op whose operands have shapes that do not fit, as they would not eagerly."""
    if not isinstance(error, (ShapeError, IndexRangeError)) or isinstance(error, SymbolicExtentError):
        return False
    return error.stage not in _CONTROL


def _is_users(error: BaseException) -> bool:
    """Whether a statement of the user's raised an error, in a function that was called."""
    if isinstance(error, (HybridflowError, NameError)):
        return False
    entry = error.__traceback__
    if entry is None or entry.tb_next is None:
        return False
    while entry.tb_next is not None:
        entry = entry.tb_next
    return any(converted(entry.tb_frame) for converted in exception_handlers.is_converted)


class Try:
    """One ``try`` statement that runs, and its clauses for errors of which a tensor decides whether they are raised."""

    __slots__ = (
        "_begun",
        "_bundle",
        "_error",
        "_frame",
        "_guarded",
        "_handled",
        "_since",
        "_values",
        "_where",
    )

    def __init__(self, frame: FrameType, guarded: TryRange) -> None:
        self._frame, self._guarded, self._where = frame, guarded, diagnostics.here(frame, "try")
        self._since = branch_stack.scope_depth()
        self._handled = ExitKind("is caught")
        self._bundle: Exits | None = None
        self._begun: tuple[ExitKind, BranchScope, Branch] | None = None
        self._values: exits.Values = {}

    def _mine(self, bundle: Exits | None) -> list[ExitKind]:
        kinds = () if bundle is None else bundle.by_kind
        return [kind for kind in kinds if isinstance(kind, RaisedExit) and kind.guarded.is_same(self._guarded)]

    def arrived(self) -> bool:
        """The body is over: whether errors come from it that the clauses may catch."""
        path: BranchScope | None = active.scope
        if path is None or path.frame is not self._frame:
            return False
        count = self._since[1] if self._since[0] is path else 0
        bundles = [*(one.exits for one in path.open_conditionals[count:]), path.exits]
        if not any(map(self._mine, bundles)):
            return False
        self._bundle = continuations.pause(self._frame, self._since, self._guarded.names)
        return True

    def __iter__(self) -> Iterator[BaseException]:
        return self

    def __next__(self) -> BaseException:
        """The next error that the clauses are to run for."""
        self._end()
        mine = self._mine(self._bundle)
        if not mine:
            raise StopIteration
        assert self._bundle is not None
        kind, parent = mine[0], branch_stack.scope_of(self._frame)
        values = dict(self._bundle.by_kind[kind])
        template, *tensors = values.pop(ERROR)
        side = Branch(SubTrace("an except clause"))
        path = active.scope = BranchScope(self._frame, parent, side)
        for place in undo_log.containers_of(self._frame):
            side.record_write(place)
        side.enter()
        self._begun, self._values = (kind, path, side), values
        error: BaseException = template.instantiate(tensors)
        return error

    def names(self) -> list[Any]:
        """What names hold where the error was raised."""
        return exits.values_for_code(self._values, self._guarded.names, self._frame, self._where)

    def _end(self) -> None:
        """The clause is over."""
        if self._begun is None:
            return
        kind, path, side = self._begun
        self._begun = None
        values = exits.current_values(self._frame, self._guarded.names)
        bundle = path.close(path.exits or Exits({NORMAL: values}), {NORMAL: self._handled})
        side.leave()
        assert path.parent is not None and self._bundle is not None
        active.scope = path.parent
        rest, code = self._bundle.by_kind, self._bundle.code
        del rest[kind]
        # None if it was the only way in which the body ended.
        pred = scalar(True, bool_, "try") if code is None else elementwise.equal(code, kind.number)
        self._bundle = Exits(rest, code if len(rest) > 1 else None)
        path.parent.open(pred, side, bundle, Branch(SubTrace("what follows")), left_first=True)

    def raise_unmatched(self) -> None:
        """No clause catches the error: it goes on to who else may."""
        error = sys.exc_info()[1]
        assert error is not None
        raise_later(self._frame, error, error.__cause__)

    def goes_on(self) -> list[Any]:
        """All clauses have run: ``else`` is next, or what follows."""
        bundle, self._bundle = self._bundle, None
        assert bundle is not None
        return self._named(branch_stack.scope_of(self._frame).resume_with(bundle))

    def ends(self) -> list[Any]:
        """``else`` is over: what was caught goes on here as well."""
        frame, names = self._frame, self._guarded.names
        path = branch_stack.scope_of(frame)
        count = self._since[1] if self._since[0] is path else 0
        bundle = path.exits or Exits({NORMAL: exits.current_values(frame, names)})
        return self._named(path.resume_with(path.close(bundle, {self._handled: NORMAL}, count)))

    def _named(self, values: exits.Values | None) -> list[Any]:
        return exits.values_for_code(values or {}, self._guarded.names, self._frame, self._where)


def passed_on(frame: FrameType, bundle: Exits, first: int) -> Exits:
    """``finally``, of a block that begins at the line ``first``, is over, and so is what came to it."""
    for kind in list(bundle.by_kind):
        if not isinstance(kind, RaisedExit) or not _has_ended(kind.guarded, frame, first):
            continue
        bindings = bundle.by_kind[kind]
        template, *tensors = bindings[ERROR]
        error = template.instantiate(tensors)
        rest = {other: values for other, values in bundle.by_kind.items() if other is not kind}
        side = Branch(SubTrace("what is raised again"))
        path = active.scope = BranchScope(frame, branch_stack.scope_of(frame), side)
        side.enter()
        raise_later(frame, error, error.__cause__)
        assert path.exits is not None and path.parent is not None
        exits = path.exits
        for following, values in exits.by_kind.items():
            if isinstance(following, RaisedExit) and following.guarded.frame is frame:
                values.update((name, bindings[name]) for name in values if name in bindings and name != ERROR)
        side.leave()
        active.scope = path.parent
        pred = scalar(True, bool_, "try") if bundle.code is None else elementwise.equal(bundle.code, kind.number)
        left = Exits(rest, bundle.code if len(rest) > 1 else None)
        bundle = branch_merge.merge_branches(pred, [(side, exits), (Branch(SubTrace("what follows")), left)], {})
    return bundle


def _has_ended(guarded: TryRange, frame: FrameType, first: int) -> bool:
    return guarded.frame is frame and guarded.is_finally and guarded.first == first
