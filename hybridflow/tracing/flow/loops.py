"""Loops of converted code: Python's own as long as nothing about them is a tensor, else one loop of the program.

A ``while`` whose condition turns out to be a tensor starts there: what its names hold is what is carried.  Its body
is traced, with the condition at its end, until the types of what is carried come out as they went in; numbers of
Python's that change become tensors that count as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hybridflow.array import elementwise
from hybridflow.array.indexing import getitem
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import scalar
from hybridflow.errors import TraceError
from hybridflow.tracing.flow import blame
from hybridflow.tracing.flow.carries import Carried, Late
from hybridflow.tracing.flow.paths import (
    NORMAL,
    VALUE,
    Bundle,
    Kind,
    Path,
    Side,
    Values,
    active,
    containers_of,
    given_back,
    literal_code,
    note_doubles,
    path_in,
    put,
    truth,
    values_of,
)
from hybridflow.tracing.flow.values import as_typed
from hybridflow.tracing.nodes import assign, emit_while
from hybridflow.tracing.numbers import number_of
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor
from hybridflow.tracing.trace import Trace

_MOST_PASSES = 64
# No names of Python's: whether there is another turn, whether the loop was broken, the number that a ``for`` counts.
_GO, _BROKE, _INDEX = ".go", ".broke", ".index"


class TensorRange:
    """``range`` of numbers that are tensors, for a ``for`` statement to take."""

    def __init__(self, *bounds: Any) -> None:
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if not isinstance(step, int) or step == 0:
            raise TraceError("range", "the step of a range over a tensor is a Python int, and not 0.")
        self.start, self.stop, self.step = start, stop, step
        for bound in (start, stop):
            if isinstance(bound, Tensor) and (bound.shape or not dtypes.is_integer(bound.dtype)):
                raise TraceError("range", f"a bound of the range is {bound.type}. Expected an integer.")

    def __len__(self) -> int:
        return len(list(self))

    def __iter__(self) -> Iterator[Any]:
        raise TraceError(
            "range", "how many numbers a range over a tensor has is not known while tracing. Use for i in range(n)."
        )

    def element(self, index: Any) -> Any:
        """What a turn is given."""
        return index

    def has(self, index: Any) -> Any:
        """Whether there is a turn with this index."""
        return elementwise.less(index, self.stop) if self.step > 0 else elementwise.greater(index, self.stop)


class _Rows(TensorRange):
    """The slices of a tensor of which nobody knows how many there are."""

    def __init__(self, x: Tensor) -> None:
        super().__init__(number_of(scalar(x.shape[0], dtypes.int64, "for")))
        self._x = x

    def element(self, index: Any) -> Any:
        return getitem(self._x, index)


class Loop:
    """One loop statement that runs.  ``names`` are those that it binds, ``outer`` the loop around it.

    ``fresh`` says that names have values that the code has yet to take; ``over``, that the condition is not to be
    asked any more.
    """

    # Most loops never change these.
    _iterator: Any = None
    _takes: Any = None  # an iterator that the user has, too
    _walk: TensorRange | None = None
    _where: blame.Where | None = None
    _path: Path | None = None
    _staged: _Staged | None = None
    _trial: tuple[Values, Trace, Any] | None = None
    _breaks: Kind | None = None
    _continues: Kind | None = None
    _completed = _must_stage = fresh = over = False

    def __init__(self, frame: FrameType, names: Sequence[str], outer: Loop | None, has_else: bool) -> None:
        self._frame, self._names, self._outer, self.has_else = frame, names, outer, has_else
        self._values: Values = {}

    # ---- what converted code asks

    def over_items(self, value: Any) -> None:
        """Take turns over the items of ``value``."""
        if isinstance(value, SymbolicTensor) and value.shape and isinstance(value.shape[0], Dim):
            value = _Rows(value)
        if isinstance(value, TensorRange):
            self._walk = value
        else:
            self._iterator = iter(value)
            self._takes = value if self._iterator is value else None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._walk is not None:
            return self._step(self._walk)
        if self._path is not None and not self._turn():
            raise StopIteration
        try:
            return next(self._iterator)
        except StopIteration:
            self._completed = True
            raise

    def _step(self, walk: TensorRange) -> Any:
        """The next turn of a ``for`` whose number of turns is a tensor."""
        if self._staged is None:
            self._where = blame.here(self._frame, "for")
            self._staged = _Staged(self, walk.has(walk.start), walk=walk)
        else:
            self._staged.turn_ends()
            if not self._staged.asked(None):
                raise StopIteration
        return walk.element(self._staged.index)

    def more(self) -> bool:
        """Before a turn of a ``while``."""
        if self._staged is not None:
            self._staged.turn_ends()
        elif self._trial is not None:
            self._tried()
        elif self._path is not None:
            return self._turn()
        return True

    def test(self, value: Any) -> bool:
        """Whether a ``while`` goes on for the code, given its condition."""
        if self._staged is None and not isinstance(value, SymbolicTensor):
            self._completed = not value
            return bool(value)
        if self._staged is None:
            self._where = blame.here(self._frame, "while")
            self._staged = _Staged(self, value)
            return True
        return self._staged.asked(value)

    def endless(self) -> bool:
        """As ``test``, of a condition that is always true.

        Python runs such a loop until something leaves it.  If it turns out that a tensor decides about that, the turn
        is forgotten, and the loop starts with it.
        """
        if self._staged is not None:
            return self._staged.asked(True)
        trace: Any = now().trace
        if self._must_stage:
            self._must_stage, self._path = False, None
            self._staged = _Staged(self, scalar(True, dtypes.bool_, "while"), is_endless=True)
        elif isinstance(trace, Trace):
            self._trial = values_of(self._frame, self._names), trace, trace.mark()
            self.enter_path(blame.here(self._frame, "while"))
            assert self._path is not None
            self._path.sides = [Side(None)]
        return True

    def _tried(self) -> None:
        """A turn of an endless loop is over."""
        assert self._trial is not None and self._path is not None
        (values, trace, mark), path = self._trial, self._path
        self._trial = None
        path.drop()
        if not path.is_plain:
            while path.sides:
                path.sides.pop().leave()
            trace.back_to(mark)
            self._must_stage = True
            self.offer(values)
        self._path = None

    def values(self, names: Sequence[str]) -> list[Any]:
        """The values that names are to take."""
        self.fresh = False
        assert self._where is not None
        return given_back(self._values, names, self._frame, self._where)

    def breaks(self) -> bool:
        """Whether ``break`` leaves the loop in fact."""
        return self._jumps("_breaks", "break")

    def continues(self) -> bool:
        return self._jumps("_continues", "continue")

    def completed(self) -> bool:
        """Whether ``else`` runs."""
        return self._completed and (self._path is None or not self._path.is_dead)

    def leave(self, names: Sequence[str]) -> None:
        """The loop is over, and its ``else``."""
        path = self._path
        if path is None:
            return
        if not path.is_plain:
            if self._takes is not None:
                active.spent.append(self._takes)
            bundle = path.bundle or Bundle({NORMAL: values_of(self._frame, names)})
            bundle = path.settled(bundle, {self.kind("_breaks", "break"): NORMAL})
            active.path = path.parent
            assert path.parent is not None
            self.offer(path.parent.take(bundle))
        else:
            path.drop()
        self._path = None
        below = active.path
        if below is not None and below.frame is self._frame and below.is_plain and below.is_base:
            active.path = below.parent

    # ---- paths

    def enter_path(self, where: blame.Where) -> None:
        """Have a path: something in the loop depends on a tensor."""
        if self._path is not None or self._staged is not None:
            return
        if self._outer is not None:
            self._outer.enter_path(where)
        self._where = self._where or where
        self._path = active.path = Path(self._frame, path_in(self._frame), None)

    @property
    def _own(self) -> Path | None:
        return self._path if self._staged is None else self._staged.path

    def _jumps(self, slot: str, what: str) -> bool:
        own, path = self._own, active.path
        if own is None or (path is own and own.is_plain):
            return True
        assert path is not None
        values = values_of(self._frame, self._names)
        if self._staged is not None:
            values[_INDEX] = self._staged.index
        path.bundle = Bundle({self.kind(slot, what): {**values, _GO: False, _BROKE: slot == "_breaks"}})
        return False

    def kind(self, slot: str, what: str) -> Kind:
        found: Kind | None = getattr(self, slot)
        if found is None:
            found = Kind(what)
            setattr(self, slot, found)
        return found

    def offer(self, values: Values | None) -> None:
        if values is not None:
            self._values, self.fresh = values, True

    def _turn(self) -> bool:
        """A turn of a loop that Python runs is over; whether there may be another."""
        path = self._path
        assert path is not None
        if path.is_plain:
            return True
        bundle = path.bundle or Bundle({NORMAL: values_of(self._frame, self._names)})
        values = path.take(path.settled(bundle, {self.kind("_continues", "continue"): NORMAL}))
        self.offer(values)
        return values is not None


class _Staged:
    """A ``while`` over a tensor, while its body is traced again and again."""

    def __init__(self, loop: Loop, pred: Tensor, is_endless: bool = False, walk: Any = None) -> None:
        self._loop, self._frame, self._names = loop, loop._frame, loop._names
        assert loop._where is not None
        self._where = loop._where
        self._pred, self._is_endless = truth(pred), is_endless
        if loop._outer is not None:
            loop._outer.enter_path(self._where)
        self._parent = path_in(self._frame)
        self._walk: TensorRange | None = walk
        self.index: Any = None if walk is None else walk.start
        self._carried = Carried({**values_of(self._frame, self._names), _INDEX: self.index})
        self._containers = containers_of(self._frame)
        self._variables: list[Variable] = []
        self._passes = 0
        self.path: Path = self._parent
        self._pass()

    def _pass(self) -> None:
        """Begin to trace the body."""
        self._passes += 1
        if self._passes > _MOST_PASSES:
            raise TraceError("while", "the types of what the loop carries differ again after each turn.")
        self._region = region = Region("the body of the loop")
        self._side, self._changes = Side(region), active.changes
        go, leaves = region.carry(self._pred.type, "go"), self._carried.inputs(region)
        variables = [region.carry_variable(v, v.name or f"variable{k}") for k, v in enumerate(self._variables)]
        self._inputs = [go, *leaves, *variables]
        self.path = active.path = Path(self._frame, self._parent, self._side)
        for place in self._containers:
            self._side.touch(place)
        self._side.watch(self._frame)
        self._side.enter()
        names, places = self._carried.built(leaves)
        for place, value in places:
            put(place, value)
        note_doubles(self._carried.doubles(names, places))
        self.index = names[_INDEX]
        self._loop.offer(names)

    def turn_ends(self) -> None:
        """The body is over, and its condition is asked next, unless it has left."""
        path, loop = self.path, self._loop
        if not path.opens and not path.is_dead:
            return
        bundle = path.bundle or Bundle({NORMAL: values_of(self._frame, self._names)})
        values = path.take(path.settled(bundle, {loop.kind("_continues", "continue"): NORMAL}))
        loop.offer(values)
        loop.over = values is None

    def asked(self, value: Any) -> bool:
        """The condition was asked at the end of a turn: trace another pass, or be done."""
        path, loop, side = self.path, self._loop, self._side
        loop.over = False
        values = {**(loop._values if loop.fresh else values_of(self._frame, self._names)), _INDEX: self.index}
        if self._walk is not None and not path.is_dead:
            values[_INDEX] = elementwise.add(self.index, self._walk.step)
            value = self._walk.has(values[_INDEX])
        if isinstance(value, (SymbolicTensor, Variable)):
            go = truth(value)
        else:
            go = scalar(bool(value), dtypes.bool_, "while")
        bundle = path.bundle or Bundle({NORMAL: {**values, _GO: go, _BROKE: False}})
        bundle = path.settled(bundle, {loop.kind("_breaks", "break"): NORMAL})
        side.leave()
        active.path = self._parent
        side.check()
        kept = self._carried.agrees(bundle.kinds.get(NORMAL), side, active.changes != self._changes)
        if self._more_variables() or not kept:
            self._check_places()
            self._pass()
            return True
        self._emit(bundle)
        return False

    def _more_variables(self) -> bool:
        more = [v for v in self._region.assigned if all(v is not known for known in self._variables)]
        self._variables += more
        return bool(more)

    def _check_places(self) -> None:
        found = self._carried.conflicting_place()
        if found is not None:
            raise blame.changed_in_loop(*found, self._where)

    def _emit(self, bundle: Bundle) -> None:
        region, side, late, values = self._region, self._side, Late(), bundle.kinds.get(NORMAL)
        with region.entered():
            go = scalar(False, dtypes.bool_, "while") if values is None else as_typed(values[_GO], dtypes.bool_)
            outputs = [go, *self._carried.outputs(values, side)]
            broke = late.add(False if values is None else values[_BROKE], side)
            code = late.add(literal_code(next(iter(bundle.kinds))) if bundle.code is None else bundle.code, side)
        left = {kind: late.add(found[VALUE], side) for kind, found in bundle.kinds.items() if kind is not NORMAL}
        leaves = len(outputs) - 1
        outputs += [region.value_of(variable) for variable in self._variables]
        outputs += late.outputs
        own = [*self._inputs, *(region.carry(x.type, "left") for x in late.outputs)]
        asking = Region("the condition of the loop")
        asked = [asking.carry(x.type, f"carry{k}") for k, x in enumerate(outputs)]
        with blame.at(self._where):
            starts = [self._pred, *self._carried.starts(), *(v._read() for v in self._variables), *late.starts()]
            found = emit_while("while", starts, region, own, outputs, asking, asked, asked[0])
        ends = found[leaves + 1 : leaves + 1 + len(self._variables)]
        assign(self._variables, ends)
        lates = found[leaves + 1 + len(self._variables) :]
        names, places = self._carried.built(found[1 : leaves + 1])
        note_doubles(self._carried.doubles(names, places))
        for place, value in places:
            put(place, value)
        self._after(
            names, late.taken(broke, lates), late.taken(code, lates), {k: late.taken(v, lates) for k, v in left.items()}
        )

    def _after(self, names: Values, broke: Any, code: Tensor, left: dict[Kind, Any]) -> None:
        """Go on after the loop."""
        loop, parent = self._loop, self._parent
        loop._staged, loop._completed = None, True
        bundle = Bundle({NORMAL: names, **{kind: {VALUE: value} for kind, value in left.items()}})
        if left:
            bundle.code = code
        if left and self._is_endless and not isinstance(broke, Tensor):  # nothing else ends it
            del bundle.kinds[NORMAL]
            bundle.code = code if len(left) > 1 else None
        if isinstance(broke, Tensor) and loop.has_else:
            kind = loop.kind("_breaks", "break")
            bundle.kinds[kind] = names
            left_by = elementwise.where(broke, literal_code(kind), code)  # where it returned, ``broke`` says nothing
            bundle.code = elementwise.where(elementwise.equal(code, NORMAL.number), left_by, code)
        if bundle.only_goes_on:
            loop.offer(names)
            if parent.is_plain and parent.is_base:
                active.path = parent.parent
        else:
            loop._path = active.path = Path(self._frame, parent, None)
            loop.offer(loop._path.take(bundle))
