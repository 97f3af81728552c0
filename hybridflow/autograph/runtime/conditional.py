"""``if`` and operators, where conditions are tensors: both blocks run, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from hybridflow.array import elementwise
from hybridflow.autograph.runtime import diagnostics, narrowing
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.branch_merge import merge_branches
from hybridflow.autograph.runtime.branch_stack import BranchScope, scope_of
from hybridflow.autograph.runtime.choices import is_choice
from hybridflow.autograph.runtime.exits import NORMAL, VALUE, Exits, Values, current_values, values_for_code
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, is_unbound
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.type_mismatch import TypeMismatch
from hybridflow.autograph.runtime.undo_log import containers_of, innermost_branch
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast, reshape_to
from hybridflow.errors import ConcretizationError
from hybridflow.tracing.subtrace import SubTrace


def truth(value: Any) -> Tensor:
    """The truth of a tensor of one element, as a scalar of bools.  Raises ShapeError for other tensors, as eagerly."""
    x = value if isinstance(value, Tensor) else value._read()
    if x.shape and any(not isinstance(n, int) or n != 1 for n in x.shape):
        raise diagnostics.many_elements(x)
    x = reshape_to(x, ())
    return cast(x, np.dtype(bool)) if x.dtype == dtypes.bool_ else elementwise.not_equal(x, 0)


class Conditional:
    """A condition that is a tensor: true once, for one block, and then false, for the other."""

    __slots__ = (
        "_branches",
        "_exits",
        "_first",
        "_frame",
        "_is_begun",
        "_names",
        "_pred",
        "_scope",
        "_values",
        "_where",
    )

    def __init__(self, value: object, frame: FrameType, names: Sequence[str], where: diagnostics.CodeLocation) -> None:
        self._pred, self._frame, self._names, self._where = truth(value), frame, names, where
        self._scope = scope_of(frame)
        self._is_begun = False
        self._branches: list[Branch] = []
        self._exits: list[Exits] = []
        self._first: object = UNBOUND  # what the first block has come to, if it is an expression
        self._values: Values = current_values(frame, names)
        self._begin()

    def _begin(self) -> None:
        side = Branch(SubTrace("a branch"), innermost_branch()).under(self._pred, not self._branches)
        for place in containers_of(self._frame):
            side.record_write(place)
        if self._branches:
            side.sibling, self._branches[0].sibling = self._branches[0], side
            side.mutation_snapshot = self._branches[0].mutation_snapshot  # for all is as it was
        else:
            side.snapshot(self._frame)
        self._branches.append(side)
        active.scope = BranchScope(self._frame, self._scope, side)
        side.enter()

    def _end(self, values: Values) -> None:
        path: BranchScope | None = active.scope
        if path is None or path.parent is not self._scope:
            raise ConcretizationError(
                "convert",
                "a generator is stopped, or goes on, in a loop of its own under a condition that is a tensor. "
                "Take its items before, as with list(...).",
            )
        self._exits.append(path.close(path.exits or Exits({NORMAL: values}), {}))
        self._branches[-1].leave()
        active.scope = self._scope
        self._branches[-1].check_mutations()

    def __bool__(self) -> bool:
        if not self._is_begun:
            self._is_begun = True
            return True
        if not self._exits:  # operators have nothing between their operands
            self.begin_else()
        return False

    def set_then_value(self, value: object) -> Any:
        """The first block is an expression, which has come to its value."""
        self._first = narrowing.narrow(value)
        return value

    def begin_else(self) -> list[Any]:
        """The first block is over: the names as they were before it."""
        values = current_values(self._frame, self._names)
        self._end(values if self._first is UNBOUND else {**values, VALUE: self._first})
        self._begin()
        return [self._values[name] for name in self._names]

    def merge(self) -> list[Any]:
        """Both blocks are over: the names as they are now."""
        values = self._after(current_values(self._frame, self._names))
        return values_for_code(values or {}, self._names, self._frame, self._where)

    def _after(self, values: Values) -> Values | None:
        self._end(values)
        path, pred, sides, bundles = self._scope, self._pred, self._branches, self._exits
        with diagnostics.at(self._where):
            for left in (0, 1):
                leaves = not bundles[left].falls_through and not bundles[left].always_raises
                if leaves and bundles[1 - left].always_falls_through:
                    path.open(pred, sides[left], bundles[left], sides[1 - left], left_first=not left)
                    return bundles[1 - left].by_kind[NORMAL]
            result = path.resume_with(merge_branches(pred, list(zip(sides, bundles)), {}))
        if path.is_untraced and path.is_function_body:
            active.scope = path.parent
        return result

    def value(self, a: object, b: object, binds: bool = True) -> Any:
        """The value of an expression that is ``a`` in one block, which is over, and ``b`` in the other; if that
        ``binds`` no names, they hold there what they held before, and nobody has set them back."""
        b = narrowing.narrow(b)
        if NORMAL in self._exits[0].by_kind:  # else it has raised an error
            self._exits[0].by_kind[NORMAL].setdefault(VALUE, narrowing.narrow(a, self._branches[:1]))
        names = current_values(self._frame, self._names) if binds else self._values
        values = self._after({**names, VALUE: b})
        assert values is not None
        result = values[VALUE]
        self._values = values
        if isinstance(result, TypeMismatch):
            raise diagnostics.MismatchReport(result, self._where).error("the value")
        if is_choice(result):
            result.where = self._where.location
        return result

    @property
    def pred(self) -> Tensor:
        return self._pred

    def before(self, name: str) -> Any:
        """What a name held before the first block of an expression, which may have bound it."""
        return self._values[name]

    def value_bound_to(self, name: str) -> Any:
        """What an operand bound a name to."""
        result = self._values[name]
        if is_unbound(result) or isinstance(result, TypeMismatch):
            conflict = result if isinstance(result, TypeMismatch) else TypeMismatch("unbound", UNBOUND, UNBOUND)
            raise diagnostics.MismatchReport(conflict, self._where).error(name)
        return result
