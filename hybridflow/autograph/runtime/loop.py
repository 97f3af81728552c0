"""Loops of converted code: Python's own as long as nothing about them is a tensor, else one loop of the program
(``traced_loop``)."""

from __future__ import annotations

import operator
import types
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hybridflow.autograph.runtime import diagnostics
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.branch_stack import BranchScope
from hybridflow.autograph.runtime.exits import (
    NORMAL,
    Exits,
    Values,
    bound_names,
    current_values,
    values_for_code,
)
from hybridflow.autograph.runtime.iterables import (
    IterationSpace,
    Numbers,
    Rows,
    TensorIterable,
    iterable_over,
    iterations_of,
)
from hybridflow.autograph.runtime.loop_statement import Before, LoopStatement
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, Location
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.traced_loop import BROKE, GO, INDEX, TracedLoop
from hybridflow.autograph.runtime.undo_log import innermost_branch, record_write
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now
from hybridflow.eager.operands import scalar
from hybridflow.errors import ConcretizationError
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import Trace


class _Name(Location):
    """A name that a loop binds, where the code that its items come from decides about iterations."""

    __slots__ = ()
    keeps_conflicts = True

    def get(self) -> Any:
        return self.holder.value_named(self.key)

    def put(self, value: Any) -> None:
        self.holder.hold(self.key, value)


_REPEATED = 8  # a ``for`` over more slices than these is a loop of the program, where its body can be one


class Loop(LoopStatement):
    """One loop statement that runs: what converted code asks of it.

    ``again`` says that a ``for`` is to ask for the same iteration again, once the names have the values that are held.
    """

    # Most loops never change these.
    _iterator: Any = None
    _takes: Any = None  # an iterator that the user has, too
    _iterable: IterationSpace | None = None
    _numbers: range | None = None  # of Python's, of which so many iterations are gone
    _gone = 0
    staged: TracedLoop | None = None
    _trial: Before | None = None
    _must_stage = again = False
    _attempts = _begun = 0
    _branch: Any = None  # in which a loop over the items of a generator began

    # ---- what converted code asks

    def over_items(self, value: Any) -> None:
        """Take turns over the items of ``value``."""
        walk = iterable_over(value)
        items = iterations_of(value) if walk is None else None
        if items is not None:
            items.begin()
            self._iterable = items
        elif walk is not None and isinstance(walk.length, Dim) and self._grows():
            walk.length = walk.stop = operator.index(walk.length)  # a trace for this number of iterations
            self._iterator = iter(walk)
        elif walk is not None and (isinstance(walk.length, Dim) or walk.length - walk.consumed > _REPEATED):
            self._iterable, self._begun = walk, walk.consumed
        else:
            self._numbers = value if type(value) is range and len(value) > _REPEATED else None
            self._iterator = iter(walk if isinstance(walk, Rows) and walk.counts else value)
            self._takes = value if self._iterator is value else None
            if type(value) is types.GeneratorType and value.gi_frame is not None and now().trace is not None:
                active.loops[value.gi_frame] = self
                self.enter_path(diagnostics.here(self.frame, "for"))  # what is inside of the generator's is left before
                self._branch = innermost_branch()

    def stops(self) -> None:
        """Before the generator whose items are taken stops at a ``yield``.
        Where it depends on a tensor whether the generator comes to it, so does what the iteration binds."""
        side = innermost_branch()
        if side is not self._branch:
            for name in self.names:
                record_write(_Name(self, name, name))

    def value_named(self, name: str) -> Any:
        """What a name holds, or is to hold."""
        return self.held.get(name, UNBOUND) if self.fresh else current_values(self.frame, (name,))[name]

    def hold(self, name: str, value: object) -> None:
        """Let a name hold a value from the next iteration on."""
        self.offer({**(self.held if self.fresh else current_values(self.frame, self.names)), name: value})

    def _grows(self) -> bool:
        """Whether names hold what becomes longer with iterations, as arrays do that have no size yet."""
        held = current_values(self.frame, self.names).values()
        return any(getattr(type(value), "grows", None) is not None and value.grows for value in held)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._iterable is not None:
            return self._step(self._iterable)
        if self._numbers is not None:
            return self._number(self._numbers)
        if self.path is not None and not self._end_iteration():
            raise StopIteration
        try:
            return next(self._iterator)
        except StopIteration:
            self.is_done = True
            raise

    def _step(self, walk: IterationSpace) -> Any:
        """The next iteration of a ``for`` over what is a tensor, or of the passes in which its body is traced."""
        if self.staged is None and self.path is not None and not self._end_iteration():
            raise StopIteration
        if self.staged is not None or not isinstance(walk.length, int) or self._should_try(walk):
            result = self._pass(walk)
            if result is not UNBOUND:
                return result
        try:
            return next(walk)  # type: ignore[call-overload]
        except StopIteration:
            self.is_done = True
            raise

    def _pass(self, walk: IterationSpace) -> Any:
        """The next pass over the body of a loop of the program, or the first one; UNBOUND if it cannot be one."""
        try:
            if self.staged is None:
                self._begin(walk)
                assert self.staged is not None
                return self.staged.element
            self.staged.finish_body()
            if self.staged.finish_iteration(None):
                return self.staged.element
            self.attempt = None
            if isinstance(walk, TensorIterable):
                walk.consumed = walk.length
            raise StopIteration
        except StopIteration:
            raise
        except Exception:
            if not self.failed():
                raise
        return UNBOUND

    def _number(self, numbers: range) -> Any:
        """The next iteration of a ``for`` over numbers of Python's, which Python runs.

        If it turns out that a tensor decides whether an iteration leaves the loop, that iteration is forgotten, and a
        loop of the program starts with it; where it cannot be one, Python goes on."""
        if self.staged is not None or self.again:
            self.again = False
            result = self._pass(Numbers(numbers[self._gone :]))
            if result is not UNBOUND:
                return result
        if self._trial is not None and self._exited_on_trial():
            self._gone -= 1
            self.again = True
            return numbers[self._gone]
        if self.path is not None and not self._end_iteration():
            raise StopIteration
        if self._gone == len(numbers):
            self.is_done = True
            raise StopIteration
        self._gone += 1
        if not self._attempts and len(numbers) - self._gone >= _REPEATED and (not self.path or self.path.is_untraced):
            self._try("for")
        return numbers[self._gone - 1]

    def _exited_on_trial(self) -> bool:
        """Whether a tensor decided that the iteration which is over has left the loop; it is forgotten then."""
        trial, path = self._trial, self.path
        assert trial is not None and path is not None
        self._trial = None
        ends = [one.exits for one in path.open_conditionals] + ([] if path.exits is None else [path.exits])
        if {kind for end in ends for kind in end.by_kind} <= {NORMAL, self.kind("_continues", "continue")}:
            path.merge_outermost()
            return False
        trial.back()
        self.path = None
        self.offer(trial.values)
        return True

    def _should_try(self, walk: IterationSpace) -> bool:
        """Whether to try a loop of the program: for the first iteration, and if that is unlike others, for the
        second."""
        assert isinstance(walk, TensorIterable)
        is_next = self._attempts == walk.consumed - self._begun < 2 and walk.length - walk.consumed > _REPEATED - 1
        return is_next and not self.fresh and (self.path is None or self.path.is_untraced)

    def _begin(self, walk: IterationSpace) -> None:
        self.where = where = diagnostics.here(self.frame, "for")
        if self.path is not None:
            self.path.drop()
            self.path = None
        if self.outer is not None:
            self.outer.enter_path(where)
        if isinstance(walk.length, int):
            self._attempts += 1
            self.attempt = Before.here(current_values(self.frame, self.names))
        self.staged = TracedLoop(
            self, None if isinstance(walk, TensorIterable) else walk.has_index(walk.start), walk=walk
        )

    def failed(self) -> bool:
        """After an exception: whether the iteration was one of a loop of the program, which cannot be: Python takes
        it."""
        attempt, self.attempt = self.attempt, None
        if attempt is None:
            return False
        attempt.back()
        self.staged, self.over = None, False
        self.offer(attempt.values)
        return True

    def more(self) -> bool:
        """Before an iteration of a ``while``."""
        if self.staged is not None:
            self.staged.finish_body()
        elif self._trial is not None:
            self._end_trial()
        elif self.path is not None:
            return self._end_iteration()
        return True

    def test(self, value: Any) -> bool:
        """Whether a ``while`` goes on for the code, given its condition."""
        if self.staged is None and not isinstance(value, SymbolicTensor):
            self.is_done = not value
            return bool(value)
        if self.staged is None:
            self.where = diagnostics.here(self.frame, "while")
            if self.path is not None and self.path.is_untraced:
                self.path.drop()
                self.path = None
            self.staged = TracedLoop(self, value)
            return True
        return self.staged.finish_iteration(value)

    def endless(self) -> bool:
        """As ``test``, of a condition that is always true.

        Python runs such a loop until something leaves it.  If it turns out that a tensor decides about that, the
        iteration is forgotten, and the loop starts with it."""
        if self.staged is not None:
            return self.staged.finish_iteration(True)
        if self._must_stage:
            self._must_stage, self.path = False, None
            self.staged = TracedLoop(self, scalar(True, dtypes.bool_, "while"), is_endless=True)
        else:
            self._try("while")
        return True

    def _try(self, what: str) -> None:
        """Begin an iteration that may have to be forgotten."""
        if not isinstance(now().trace, Trace):
            return
        if self.path is not None:
            self.path.drop()
            self.path = None
        self.enter_path(diagnostics.here(self.frame, what))
        assert self.path is not None
        self.path.branches = [Branch(None)]
        self._trial = Before.here(current_values(self.frame, self.names), self.path.parent)

    def _end_trial(self) -> None:
        """An iteration of an endless loop is over."""
        trial, path = self._trial, self.path
        assert trial is not None and path is not None
        self._trial = None
        if path.is_untraced:
            path.drop()
        else:
            trial.back()
            self._must_stage = True
            self.offer(trial.values)
        self.path = None

    def values(self, names: Sequence[str]) -> list[Any]:
        """The values that names are to take."""
        self.fresh = False
        active.offered.pop(self.frame, None)
        assert self.where is not None
        return values_for_code(self.held, bound_names(tuple(names)), self.frame, self.where)

    def breaks(self) -> bool:
        """Whether ``break`` leaves the loop in fact."""
        return self._jumps("_breaks", "break")

    def continues(self) -> bool:
        return self._jumps("_continues", "continue")

    def completed(self) -> bool:
        """Whether ``else`` runs."""
        return self.is_done and (self.path is None or not self.path.has_exited)

    def leave(self, names: Sequence[str]) -> None:
        """The loop is over, and its ``else``."""
        path, before, names = self.path, self.before, bound_names(tuple(names))
        if path is None:
            return
        self.path = self.before = None
        if not path.is_untraced:
            if self._takes is not None:
                active.spent.append(self._takes)
            values = self._close(path, current_values(self.frame, names))
            if before is not None:
                values = self._close(before, values)
            self.offer(values)
        else:
            path.drop()
        below = active.scope
        if below is not None and below.frame is self.frame and below.is_untraced and below.is_function_body:
            active.scope = below.parent

    def _generator_inside(self, scope: BranchScope) -> FrameType | None:
        """The generator that items come from, where it depends on a tensor whether it has come here."""
        inner = active.scope
        while inner is not None and inner is not scope:
            if inner.frame is not self.frame and not inner.is_untraced:
                return inner.frame
            inner = inner.parent
        return None

    def _close(self, path: BranchScope, values: Values | None) -> Values | None:
        """What names hold after all that was opened in a path of the loop's, where they hold ``values`` before."""
        bundle = path.exits or Exits({NORMAL: values or {}})
        bundle = path.close(bundle, {self.kind("_breaks", "break"): NORMAL})
        active.scope = path.parent
        assert path.parent is not None
        return path.parent.resume_with(bundle)

    # ---- paths

    @property
    def _own_scope(self) -> BranchScope | None:
        return self.path if self.staged is None else self.staged.path

    def _jumps(self, slot: str, what: str) -> bool:
        scope, path = self._own_scope, active.scope
        if scope is None or (path is scope and scope.is_untraced):
            return True
        assert path is not None
        generator = self._generator_inside(scope)
        if generator is not None:
            if slot == "_continues" and path.frame is not self.frame:
                return True  # what decides is of the generator's
            raise ConcretizationError(
                what,
                f"a loop is left while {generator.f_code.co_name} is inside of a condition that is a tensor. Take all "
                "of its items.",
            )
        values = current_values(self.frame, self.names)
        if self.staged is not None:
            values[INDEX] = self.staged.index
        path.exits = Exits({self.kind(slot, what): {**values, GO: False, BROKE: slot == "_breaks"}})
        return False

    def _end_iteration(self) -> bool:
        """An iteration of a loop that Python runs is over; whether there may be another."""
        path = self.path
        assert path is not None
        if path.is_untraced:
            return True
        bundle = path.exits or Exits({NORMAL: current_values(self.frame, self.names)})
        values = path.resume_with(path.close(bundle, {self.kind("_continues", "continue"): NORMAL}))
        self.offer(values)
        return values is not None
