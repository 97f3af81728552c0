"""Paths: what the running code is inside of, where conditions are tensors.

Both blocks of an ``if`` over a tensor run, each into a *side*: a region of the trace, and a journal of what it changed.
Sides that go on are joined to one.  Where one leaves and the other goes on, nothing is joined yet: the trace goes on
inside of the one that does, and the fork stays *open* until the function, or the turn of the loop, is over.  A *path*
is the stack of what is open in one block; it is dead when all of it has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType

from hybridflow.array import elementwise
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError
from hybridflow.tracing.flow.guarding import Raised
from hybridflow.tracing.flow.joins import combined
from hybridflow.tracing.flow.journal import touch
from hybridflow.tracing.flow.outcomes import NORMAL, Bundle, Kind, Values, renamed
from hybridflow.tracing.flow.sides import Side
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.region import Region


class _Open:
    """A fork of which one side has left, and the other goes on."""

    __slots__ = ("bundle", "left_first", "pred", "side")

    def __init__(self, pred: Tensor, side: Side, bundle: Bundle, left_first: bool) -> None:
        self.pred, self.side, self.bundle, self.left_first = pred, side, bundle, left_first


class Path:
    """A block of the function that runs in ``frame``; with a side of its own, or in that of its ``parent``."""

    __slots__ = ("bundle", "frame", "opens", "parent", "returned", "sides")

    def __init__(self, frame: FrameType, parent: Path | None, side: Side | None) -> None:
        self.frame, self.parent = frame, parent
        self.sides = [] if side is None else [side]
        self.opens: list[_Open] = []
        self.bundle: Bundle | None = None  # how it ended, if nothing of it goes on
        same = parent is not None and parent.frame is frame
        self.returned: Kind = parent.returned if parent is not None and same else Kind("returns")

    @property
    def is_dead(self) -> bool:
        return self.bundle is not None

    @property
    def is_base(self) -> bool:
        """Whether this is a whole function, not a block of it."""
        return self.parent is None or self.parent.frame is not self.frame

    @property
    def is_plain(self) -> bool:
        """Whether the code runs as it would without any path: nothing of it depends on a tensor."""
        return not self.opens and self.bundle is None and all(side.region is None for side in self.sides)

    def drop(self) -> None:
        """Leave the path, which is a plain one."""
        active.path = self.parent
        for side in self.sides:
            for place, before in side.touched.values():
                touch(place, before)

    def merge_first(self) -> None:
        """Leave the first side, which has no region, to what is around the path."""
        first = self.sides.pop(0)
        inner, active.path = active.path, self.parent
        for place, before in first.touched.values():
            touch(place, before)
        active.path = inner

    def settled(self, bundle: Bundle, alias: Mapping[Kind, Kind], down_to: int = 0) -> Bundle:
        """Close what is open, but for the first few; ``bundle`` is how the path ends, ``alias`` renames outcomes."""
        while len(self.opens) > down_to:
            one, side = self.opens.pop(), self.sides.pop()
            side.leave()
            side.check()
            pairs = [(one.side, one.bundle), (side, bundle)]
            if not one.left_first:
                pairs.reverse()
            bundle = combined(one.pred, pairs, alias)
        self.bundle = None
        return renamed(bundle, alias)

    def _raises_on(self, bundle: Bundle) -> bool:
        """Whether it is for others to know how a bundle ended, if it does not go on."""
        others = [kind for kind in bundle.kinds if kind is not NORMAL]
        return all(isinstance(kind, Raised) and kind.guarded.frame is not self.frame for kind in others)

    def open(self, pred: Tensor, left: Side, bundle: Bundle, going: Side, left_first: bool) -> None:
        """Go on in the side ``going`` of a fork, whose other side has ``left``."""
        self.opens.append(_Open(pred, left, bundle, left_first))
        self.sides.append(going.under(pred, not left_first))
        going.watch(self.frame)
        going.enter()

    def take(self, bundle: Bundle) -> Values | None:
        """Go on after something that ended as ``bundle``: with its values, or not at all."""
        if bundle.only_goes_on:
            return bundle.kinds[NORMAL]
        if bundle.goes_on and self.is_base and self.is_plain and self.parent is not None and self._raises_on(bundle):
            self.drop()
            return self.parent.take(bundle)
        if not bundle.goes_on:
            self.bundle = bundle
            return None
        assert bundle.code is not None
        rest = {kind: values for kind, values in bundle.kinds.items() if kind is not NORMAL}
        pred = elementwise.equal(bundle.code, NORMAL.number)
        left, going = Side(Region("what follows")), Side(Region("what follows"))
        self.open(pred, left, Bundle(rest, bundle.code if len(rest) > 1 else None), going, left_first=False)
        return bundle.kinds[NORMAL]


def path_in(frame: FrameType) -> Path:
    """The innermost path, which is one of ``frame``'s from now on."""
    path: Path | None = active.path
    if path is None or path.frame is not frame:
        path = active.path = Path(frame, path, None)
    return path


def depth() -> tuple[Path | None, int]:
    """Where the running code is."""
    path: Path | None = active.path
    return path, 0 if path is None else len(path.opens)


def unwound(path: Path | None) -> None:
    """Forget the paths inside of ``path``, whose code an exception has left, unless it was thrown from there."""
    while active.path is not None and active.path is not path and active.path is not active.floor:
        left = active.path
        while left.sides:
            left.sides.pop().leave()
        active.path = left.parent


def is_staged(frame: FrameType) -> bool:
    """Whether it depends on a tensor that the present line of ``frame`` runs."""
    path: Path | None = active.path
    while path is not None and path.frame is frame:
        if not path.is_plain:
            return True
        path = path.parent
    return False


def check_not_staged(frame: FrameType, what: str, fix: str) -> None:
    """Raise TraceError if it depends on a tensor whether the present line of ``frame`` runs."""
    if is_staged(frame):
        raise ConcretizationError("convert", f"{what} under a condition that is a tensor. {fix}")
