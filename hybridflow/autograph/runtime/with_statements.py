"""``with`` in functions that are traced: a manager comes to know of errors of which a tensor decides whether they are
raised.

Python's own statement stays, over a stand-in for the manager.  Where such errors come to it, the manager's ``__exit__``
runs for each of them in a branch of the program, as an ``except`` clause does.  It runs once more for all other ways
on.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from hybridflow.array import elementwise
from hybridflow.autograph.runtime import branch_merge, continuations, exception_handlers, undo_log
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.branch_stack import BranchScope
from hybridflow.autograph.runtime.conditional import Conditional
from hybridflow.autograph.runtime.except_clauses import Try, raise_later
from hybridflow.autograph.runtime.exception_handlers import RaisedExit
from hybridflow.autograph.runtime.exits import NORMAL, ExitKind, Exits
from hybridflow.autograph.runtime.mutable_locations import location_of
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.try_ranges import TryRange
from hybridflow.core.context import current
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.tracing.subtrace import SubTrace

_Generated = contextlib._GeneratorContextManager


class With(Try):
    """One ``with`` statement that runs, over one manager, in whose place it stands."""

    __slots__ = ("_exit", "_is_left", "_manager", "_paused", "_spare")

    def __init__(self, manager: Any, frame: FrameType, guarded: TryRange) -> None:
        super().__init__(frame, guarded)
        self._manager, self._exit = manager, type(manager).__exit__
        self._paused: Exits | None = None
        self._is_left = False
        # Managers of generators forget how they were made when they are entered.
        is_again = isinstance(manager, _Generated) and inspect.isgeneratorfunction(manager.func)
        self._spare: Any = manager._recreate_cm() if is_again else None

    def __enter__(self) -> Any:
        return type(self._manager).__enter__(self._manager)

    def __exit__(self, *error: object) -> Any:
        return None if self._is_left else self._exit(self._manager, *error)

    def leaving(self, names: Sequence[str]) -> Any:
        """Before the manager is left, as no error has come: whether it is, on the ways on that have come together.
        Functions may assign ``names``.  Otherwise Python leaves it."""
        bundle = self._paused
        if bundle is None:
            return False
        self._is_left = True
        known = [kind for kind in bundle.by_kind if self._knows_of(kind)]
        if not known or len(known) == len(bundle.by_kind):
            return not known
        assert bundle.code is not None
        is_new = elementwise.not_equal(bundle.code, known[0].number)
        for kind in known[1:]:
            is_new = elementwise.logical_and(is_new, elementwise.not_equal(bundle.code, kind.number))
        return Conditional(is_new, self._frame, names, self._where)

    def leaves(self) -> None:
        """The manager is left."""
        self._exit(self._manager, None, None, None)

    def _knows_of(self, kind: ExitKind) -> bool:
        """Whether the manager has been left already on this way out of the block: by an error."""
        return kind is self._handled or isinstance(kind, RaisedExit)

    def arrived(self) -> bool:
        """The block is over: whether errors come from it that the manager is to know of."""
        result = super().arrived()
        exception_handlers.pop_handler(self._guarded)
        return result

    def exits(self, error: BaseException) -> None:
        """The manager comes to know of an error, which goes on unless it says that it does not."""
        manager = self._manager
        if isinstance(manager, _Generated):
            manager = self._like_it()
        elif isinstance(manager, contextlib.ExitStack):
            self._keep_callbacks(manager)
        before, active.floor = active.floor, active.scope
        try:
            swallows = self._exit(manager, type(error), error, error.__traceback__)
        except TraceError:
            raise
        except Exception as another:
            swallows, error = False, another
        finally:
            active.floor = before
        if not swallows:
            raise_later(self._frame, error, error.__cause__)

    def _like_it(self) -> Any:
        """Another manager made by the same generator function, which is where this one is: what its code does up to
        there it has done already."""
        result = self._spare
        if result is None:
            raise self._refusal("no generator function makes its manager")
        self._spare = result._recreate_cm()
        side = Branch(SubTrace("a with statement"))
        parent = active.scope
        path = active.scope = BranchScope(self._frame, parent, side)
        side.snapshot(self._frame)
        side.enter()
        result.__enter__()
        if active.scope is not path or path.open_conditionals or path.exits is not None:
            raise self._refusal("its generator may raise others before its yield")
        side.leave()
        side.check_mutations()
        active.scope = parent
        return result

    def _keep_callbacks(self, stack: Any) -> None:
        """See to it that a stack has its callbacks once more for the other ways on."""
        callbacks = stack._exit_callbacks
        for _, callback in callbacks:
            owner = getattr(callback, "__self__", None)
            if isinstance(owner, (_Generated, contextlib.ExitStack)):
                raise self._refusal(f"an ExitStack holds a {type(owner).__name__}")
        undo_log.record_write(location_of(callbacks))

    def _refusal(self, what: str) -> TraceError:
        return ConcretizationError(
            "with",
            f"whether an error is raised in the with at {self._guarded.location} depends on a tensor, and {what}. "
            "Enter it with a with statement of its own, or outside of the compiled function.",
        )

    def pause(self, bundle: Exits | None) -> Exits | None:
        """All ways out of the block have come together, and it is over."""
        self._paused = bundle
        return bundle

    def resumed(self, bundle: Exits, names: Sequence[str]) -> Exits:
        """The manager has been left: what it has caught goes on."""
        continuations.apply_merged_names(self._frame, bundle)
        values = bundle.by_kind.pop(self._handled, None)
        if values is None:
            return bundle
        if NORMAL in bundle.by_kind:
            assert bundle.code is not None
            pred = elementwise.equal(bundle.code, self._handled.number)
            values = branch_merge.merge_values(pred, values, bundle.by_kind[NORMAL], names)
        code = bundle.code
        if code is not None:
            code = elementwise.where(elementwise.equal(code, self._handled.number), NORMAL.number, code)
        bundle.by_kind[NORMAL] = values
        result = Exits(bundle.by_kind, code if len(bundle.by_kind) > 1 else None)
        result.return_kind = bundle.return_kind
        return result


is_users: list[Callable[[Any], bool]] = []
"""Whether a function or a class is the user's: ``jit`` adds what knows that."""


def _knows(manager: object) -> bool:
    """Whether it matters to the user's code, or to what is raised, that a manager knows of an error."""
    if isinstance(manager, (contextlib.suppress, contextlib.ExitStack)):
        return True
    if isinstance(manager, _Generated):
        return any(known(manager.func) for known in is_users)
    exit = getattr(type(manager), "__exit__", None)
    return isinstance(exit, types.FunctionType) and any(known(exit) for known in is_users)


def manage(manager: object, frame: FrameType, first: int, last: int, names: tuple[str, ...]) -> Any:
    """The manager of a ``with`` over these lines, or what stands for it while the code is traced."""
    if current.trace is None or not _knows(manager) or not hasattr(type(manager), "__enter__"):
        return manager
    guarded = TryRange(frame, first, last, (), names, manager=manager)
    exception_handlers.push_handler(guarded)
    return With(manager, frame, guarded)
