"""``if`` and operators, where conditions are tensors: both blocks run, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from hybridflow.array import elementwise
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast, reshape_to
from hybridflow.errors import ConcretizationError
from hybridflow.tracing.flow import blame, narrowing
from hybridflow.tracing.flow.choices import Choice
from hybridflow.tracing.flow.joins import combined
from hybridflow.tracing.flow.journal import containers_of, innermost
from hybridflow.tracing.flow.outcomes import NORMAL, VALUE, Bundle, Values, given_back, values_of
from hybridflow.tracing.flow.paths import Path, path_in
from hybridflow.tracing.flow.places import UNBOUND, is_unbound
from hybridflow.tracing.flow.sides import Side
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.flow.texts import Conflict
from hybridflow.tracing.region import Region


def truth(value: Any) -> Tensor:
    """The truth of a tensor of one element, as a scalar of bools.  Raises ShapeError for other tensors, as eagerly."""
    x = value if isinstance(value, Tensor) else value._read()
    if x.shape and any(not isinstance(n, int) or n != 1 for n in x.shape):
        raise blame.many_elements(x)
    x = reshape_to(x, ())
    return cast(x, np.dtype(bool)) if x.dtype == dtypes.bool_ else elementwise.not_equal(x, 0)


class Fork:
    """A condition that is a tensor: true once, for one block, and then false, for the other."""

    __slots__ = ("_asked", "_bundles", "_first", "_frame", "_names", "_path", "_pred", "_sides", "_values", "_where")

    def __init__(self, value: Any, frame: FrameType, names: Sequence[str], where: blame.Where) -> None:
        self._pred, self._frame, self._names, self._where = truth(value), frame, names, where
        self._path = path_in(frame)
        self._asked = False
        self._sides: list[Side] = []
        self._bundles: list[Bundle] = []
        self._first: Any = UNBOUND  # what the first block has come to, if it is an expression
        self._values: Values = values_of(frame, names)
        self._begin()

    def _begin(self) -> None:
        side = Side(Region("a branch"), innermost()).under(self._pred, not self._sides)
        for place in containers_of(self._frame):
            side.touch(place)
        if self._sides:
            side.twin, self._sides[0].twin = self._sides[0], side
            side.witnesses = self._sides[0].witnesses  # for all is as it was
        else:
            side.watch(self._frame)
        self._sides.append(side)
        active.path = Path(self._frame, self._path, side)
        side.enter()

    def _end(self, values: Values) -> None:
        path: Path | None = active.path
        if path is None or path.parent is not self._path:
            raise ConcretizationError(
                "convert",
                "a generator is stopped, or goes on, in a loop of its own under a condition that is a tensor. "
                "Take its items before, as with list(...).",
            )
        self._bundles.append(path.settled(path.bundle or Bundle({NORMAL: values}), {}))
        self._sides[-1].leave()
        active.path = self._path
        self._sides[-1].check()

    def __bool__(self) -> bool:
        if not self._asked:
            self._asked = True
            return True
        if not self._bundles:  # operators have nothing between their operands
            self.between()
        return False

    def took(self, value: Any) -> Any:
        """The first block is an expression, which has come to its value."""
        self._first = narrowing.narrowed(value)
        return value

    def between(self) -> list[Any]:
        """The first block is over: the names as they were before it."""
        values = values_of(self._frame, self._names)
        self._end(values if self._first is UNBOUND else {**values, VALUE: self._first})
        self._begin()
        return [self._values[name] for name in self._names]

    def joined(self) -> list[Any]:
        """Both blocks are over: the names as they are now."""
        values = self._after(values_of(self._frame, self._names))
        return given_back(values or {}, self._names, self._frame, self._where)

    def _after(self, values: Values) -> Values | None:
        self._end(values)
        path, pred, sides, bundles = self._path, self._pred, self._sides, self._bundles
        with blame.at(self._where):
            for left in (0, 1):
                leaves = not bundles[left].goes_on and not bundles[left].has_raised
                if leaves and bundles[1 - left].only_goes_on:
                    path.open(pred, sides[left], bundles[left], sides[1 - left], left_first=not left)
                    return bundles[1 - left].kinds[NORMAL]
            found = path.take(combined(pred, list(zip(sides, bundles)), {}))
        if path.is_plain and path.is_base:
            active.path = path.parent
        return found

    def value(self, a: Any, b: Any, binds: bool = True) -> Any:
        """The value of an expression that is ``a`` in one block, which is over, and ``b`` in the other; if that
        ``binds`` no names, they hold there what they held before, and nobody has set them back."""
        b = narrowing.narrowed(b)
        if NORMAL in self._bundles[0].kinds:  # else it has raised an error
            self._bundles[0].kinds[NORMAL].setdefault(VALUE, narrowing.narrowed(a, self._sides[:1]))
        names = values_of(self._frame, self._names) if binds else self._values
        values = self._after({**names, VALUE: b})
        assert values is not None
        found = values[VALUE]
        self._values = values
        if isinstance(found, Conflict):
            raise blame.Cause(found, self._where).error("the value")
        if isinstance(found, Choice):
            found.where = self._where.location
        return found

    @property
    def pred(self) -> Tensor:
        return self._pred

    def before(self, name: str) -> Any:
        """What a name held before the first block of an expression, which may have bound it."""
        return self._values[name]

    def held(self, name: str) -> Any:
        """What an operand bound a name to."""
        found = self._values[name]
        if is_unbound(found) or isinstance(found, Conflict):
            conflict = found if isinstance(found, Conflict) else Conflict("unbound", UNBOUND, UNBOUND)
            raise blame.Cause(conflict, self._where).error(name)
        return found
