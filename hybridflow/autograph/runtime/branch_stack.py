"""Paths: what the running code is inside of, where conditions are tensors.

Both blocks of an ``if`` over a tensor run, each into a *side*: a region of the trace, and a journal of what it changed.
Sides that go on are joined to one.  Where one leaves and the other goes on, nothing is joined yet: the trace goes on
inside of the one that does, and the fork stays *open* until the function, or the iteration of the loop, is over.  A
*path* is the stack of what is open in one block; it is dead when all of it has left."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType

from hybridflow.array import elementwise
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.branch_merge import merge_branches
from hybridflow.autograph.runtime.exception_handlers import RaisedExit
from hybridflow.autograph.runtime.exits import NORMAL, ExitKind, Exits, Values, relabel
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.undo_log import record_write
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError
from hybridflow.tracing.subtrace import SubTrace


class _OpenConditional:
    """A fork of which one side has left, and the other goes on."""

    __slots__ = ("branch", "exits", "left_first", "pred")

    def __init__(self, pred: Tensor, side: Branch, bundle: Exits, left_first: bool) -> None:
        self.pred, self.branch, self.exits, self.left_first = pred, side, bundle, left_first


class BranchScope:
    """A block of the function that runs in ``frame``; with a side of its own, or in that of its ``parent``."""

    __slots__ = ("branches", "exits", "frame", "open_conditionals", "parent", "return_kind")

    def __init__(self, frame: FrameType, parent: BranchScope | None, side: Branch | None) -> None:
        self.frame, self.parent = frame, parent
        self.branches = [] if side is None else [side]
        self.open_conditionals: list[_OpenConditional] = []
        self.exits: Exits | None = None  # how it ended, if nothing of it goes on
        same = parent is not None and parent.frame is frame
        self.return_kind: ExitKind = parent.return_kind if parent is not None and same else ExitKind("returns")

    @property
    def has_exited(self) -> bool:
        return self.exits is not None

    @property
    def is_function_body(self) -> bool:
        """Whether this is a whole function, not a block of it."""
        return self.parent is None or self.parent.frame is not self.frame

    @property
    def is_untraced(self) -> bool:
        """Whether the code runs as it would without any path: nothing of it depends on a tensor."""
        return not self.open_conditionals and self.exits is None and all(side.region is None for side in self.branches)

    def drop(self) -> None:
        """Leave the path, which is a plain one."""
        active.scope = self.parent
        for side in self.branches:
            for place, before in side.undo_log.values():
                record_write(place, before)

    def merge_outermost(self) -> None:
        """Leave the first side, which has no region, to what is around the path."""
        first = self.branches.pop(0)
        inner, active.scope = active.scope, self.parent
        for place, before in first.undo_log.values():
            record_write(place, before)
        active.scope = inner

    def close(self, bundle: Exits, alias: Mapping[ExitKind, ExitKind], down_to: int = 0) -> Exits:
        """Close what is open, but for the first few; ``bundle`` is how the path ends, ``alias`` renames outcomes."""
        while len(self.open_conditionals) > down_to:
            one, side = self.open_conditionals.pop(), self.branches.pop()
            side.leave()
            side.check_mutations()
            pairs = [(one.branch, one.exits), (side, bundle)]
            if not one.left_first:
                pairs.reverse()
            bundle = merge_branches(one.pred, pairs, alias)
        self.exits = None
        return relabel(bundle, alias)

    def _raises_on(self, bundle: Exits) -> bool:
        """Whether it is for others to know how a bundle ended, if it does not go on."""
        others = [kind for kind in bundle.by_kind if kind is not NORMAL]
        return all(isinstance(kind, RaisedExit) and kind.guarded.frame is not self.frame for kind in others)

    def open(self, pred: Tensor, left: Branch, bundle: Exits, going: Branch, left_first: bool) -> None:
        """Go on in the side ``going`` of a fork, whose other side has ``left``."""
        self.open_conditionals.append(_OpenConditional(pred, left, bundle, left_first))
        self.branches.append(going.under(pred, not left_first))
        going.snapshot(self.frame)
        going.enter()

    def resume_with(self, bundle: Exits) -> Values | None:
        """Go on after something that ended as ``bundle``: with its values, or not at all."""
        if bundle.always_falls_through:
            return bundle.by_kind[NORMAL]
        if (
            bundle.falls_through
            and self.is_function_body
            and self.is_untraced
            and self.parent is not None
            and self._raises_on(bundle)
        ):
            self.drop()
            return self.parent.resume_with(bundle)
        if not bundle.falls_through:
            self.exits = bundle
            return None
        assert bundle.code is not None
        rest = {kind: values for kind, values in bundle.by_kind.items() if kind is not NORMAL}
        pred = elementwise.equal(bundle.code, NORMAL.number)
        left, going = Branch(SubTrace("what follows")), Branch(SubTrace("what follows"))
        self.open(pred, left, Exits(rest, bundle.code if len(rest) > 1 else None), going, left_first=False)
        return bundle.by_kind[NORMAL]


def scope_of(frame: FrameType) -> BranchScope:
    """The innermost path, which is one of ``frame``'s from now on."""
    path: BranchScope | None = active.scope
    if path is None or path.frame is not frame:
        path = active.scope = BranchScope(frame, path, None)
    return path


def scope_depth() -> tuple[BranchScope | None, int]:
    """Where the running code is."""
    path: BranchScope | None = active.scope
    return path, 0 if path is None else len(path.open_conditionals)


def unwind(path: BranchScope | None) -> None:
    """Forget the paths inside of ``path``, whose code an exception has left, unless it was thrown from there."""
    while active.scope is not None and active.scope is not path and active.scope is not active.floor:
        left = active.scope
        while left.branches:
            left.branches.pop().leave()
        active.scope = left.parent


def is_conditional(frame: FrameType) -> bool:
    """Whether it depends on a tensor that the present line of ``frame`` runs."""
    path: BranchScope | None = active.scope
    while path is not None and path.frame is frame:
        if not path.is_untraced:
            return True
        path = path.parent
    return False


def depends_on_tensor() -> bool:
    """Whether it depends on a tensor that, or how often, the running code runs."""
    path: BranchScope | None = active.scope
    while path is not None:
        if not path.is_untraced:
            return True
        path = path.parent
    return False


def check_unconditional(frame: FrameType, what: str, fix: str) -> None:
    """Raise TraceError if it depends on a tensor whether the present line of ``frame`` runs."""
    if is_conditional(frame):
        raise ConcretizationError("convert", f"{what} under a condition that is a tensor. {fix}")
