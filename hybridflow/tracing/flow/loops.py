"""Loops of converted code: Python's own as long as nothing about them is a tensor, else one loop of the program.

A ``while`` whose condition turns out to be a tensor starts there: what its names hold is what is carried.  Its body
is traced, with the condition at its end, until the types of what is carried come out as they went in; numbers of
Python's that change become tensors that count as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

from hybridflow.array import elementwise
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import scalar
from hybridflow.errors import TraceError
from hybridflow.tracing.control import read_elsewhere
from hybridflow.tracing.flow import blame
from hybridflow.tracing.flow.carries import Carried, IsNew, Late
from hybridflow.tracing.flow.doubles import kin, note_doubles
from hybridflow.tracing.flow.forks import truth
from hybridflow.tracing.flow.journal import containers_of, put
from hybridflow.tracing.flow.outcomes import (
    NORMAL,
    Bundle,
    Kind,
    Values,
    given_back,
    literal_code,
    only_code,
    values_of,
)
from hybridflow.tracing.flow.paths import Path, path_in, unwound
from hybridflow.tracing.flow.places import UNBOUND
from hybridflow.tracing.flow.sides import Side
from hybridflow.tracing.flow.stacks import Stacks
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.flow.values import Conflict, as_typed, holds, is_of
from hybridflow.tracing.flow.walks import Numbered, Numbers, Turns, Walk, turns_of, walk_over
from hybridflow.tracing.nodes import assign, emit_scan, emit_while
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor
from hybridflow.tracing.trace import Trace

_MOST_PASSES = 64
_REPEATED = 8  # a ``for`` over more slices than these is a loop of the program, where its body can be one
# No names of Python's: whether there is another turn, whether the loop was broken, the number that a ``for`` counts.
_GO, _BROKE, _INDEX = ".go", ".broke", ".index"


class Loop:
    """One loop statement that runs.  ``names`` are those that it binds, ``outer`` the loop around it.

    ``fresh`` says that names have values that the code has yet to take; ``over``, that the condition is not to be
    asked any more; ``again``, that a ``for`` is to ask for the same turn again, once the names have these values.
    """

    # Most loops never change these.
    _iterator: Any = None
    _takes: Any = None  # an iterator that the user has, too
    _walk: Turns | None = None
    _numbers: range | None = None  # of Python's, of which so many turns are gone
    _gone = 0
    _where: blame.Where | None = None
    _path: Path | None = None
    _before: Path | None = None  # that of the turns which Python ran before it became a loop of the program
    _staged: _Staged | None = None
    _trial: _Before | None = None
    _breaks: Kind | None = None
    _continues: Kind | None = None
    _completed = _must_stage = fresh = over = again = False
    _attempt: _Before | None = None
    _attempts = _begun = 0

    def __init__(
        self, frame: FrameType, names: Sequence[str], outer: Loop | None, has_else: bool, lists: Sequence[str] = ()
    ) -> None:
        self._frame, self._names, self._outer, self.has_else, self._lists = frame, names, outer, has_else, lists
        self._values: Values = {}

    # ---- what converted code asks

    def over_items(self, value: Any) -> None:
        """Take turns over the items of ``value``."""
        walk = walk_over(value)
        turns = turns_of(value) if walk is None else None
        if turns is not None:
            turns.begin()
            self._walk = turns
        elif walk is not None and (isinstance(walk.length, Dim) or walk.length - walk.taken > _REPEATED):
            self._walk, self._begun = walk, walk.taken
        else:
            self._numbers = value if type(value) is range and len(value) > _REPEATED else None
            self._iterator = iter(value)
            self._takes = value if self._iterator is value else None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._walk is not None:
            return self._step(self._walk)
        if self._numbers is not None:
            return self._number(self._numbers)
        if self._path is not None and not self._turn():
            raise StopIteration
        try:
            return next(self._iterator)
        except StopIteration:
            self._completed = True
            raise

    def _step(self, walk: Turns) -> Any:
        """The next turn of a ``for`` over what is a tensor, or of the passes in which its body is traced."""
        if self._staged is None and self._path is not None and not self._turn():
            raise StopIteration
        if self._staged is not None or not isinstance(walk.length, int) or self._tries(walk):
            found = self._pass(walk)
            if found is not UNBOUND:
                return found
        try:
            return next(walk)  # type: ignore[call-overload]
        except StopIteration:
            self._completed = True
            raise

    def _pass(self, walk: Turns) -> Any:
        """The next pass over the body of a loop of the program, or the first one; UNBOUND if it cannot be one."""
        try:
            if self._staged is None:
                self._begin(walk)
                assert self._staged is not None
                return self._staged.element
            self._staged.turn_ends()
            if self._staged.asked(None):
                return self._staged.element
            self._attempt = None
            if isinstance(walk, Walk):
                walk.taken = walk.length
            raise StopIteration
        except StopIteration:
            raise
        except Exception:
            if not self.failed():
                raise
        return UNBOUND

    def _number(self, numbers: range) -> Any:
        """The next turn of a ``for`` over numbers of Python's, which Python runs.

        If it turns out that a tensor decides whether a turn leaves the loop, that turn is forgotten, and a loop of the
        program starts with it; where it cannot be one, Python goes on.
        """
        if self._staged is not None or self.again:
            self.again = False
            found = self._pass(Numbers(numbers[self._gone :]))
            if found is not UNBOUND:
                return found
        if self._trial is not None and self._left_on_trial():
            self._gone -= 1
            self.again = True
            return numbers[self._gone]
        if self._path is not None and not self._turn():
            raise StopIteration
        if self._gone == len(numbers):
            self._completed = True
            raise StopIteration
        self._gone += 1
        if not self._attempts and len(numbers) - self._gone >= _REPEATED and (not self._path or self._path.is_plain):
            self._try("for")
        return numbers[self._gone - 1]

    def _left_on_trial(self) -> bool:
        """Whether a tensor decided that the turn which is over has left the loop; it is forgotten then."""
        trial, path = self._trial, self._path
        assert trial is not None and path is not None
        self._trial = None
        ends = [one.bundle for one in path.opens] + ([] if path.bundle is None else [path.bundle])
        if {kind for end in ends for kind in end.kinds} <= {NORMAL, self.kind("_continues", "continue")}:
            path.merge_first()
            return False
        trial.back()
        self._path = None
        self.offer(trial.values)
        return True

    def _tries(self, walk: Turns) -> bool:
        """Whether to try a loop of the program: for the first turn, and if that is unlike others, for the second."""
        assert isinstance(walk, Walk)
        is_next = self._attempts == walk.taken - self._begun < 2 and walk.length - walk.taken > _REPEATED - 1
        return is_next and not self.fresh and (self._path is None or self._path.is_plain)

    def _begin(self, walk: Turns) -> None:
        self._where = where = blame.here(self._frame, "for")
        if self._path is not None:
            self._path.drop()
            self._path = None
        if self._outer is not None:
            self._outer.enter_path(where)
        if isinstance(walk.length, int):
            self._attempts += 1
            self._attempt = _Before.here(values_of(self._frame, self._names))
        self._staged = _Staged(self, None if isinstance(walk, Walk) else walk.has(walk.start), walk=walk)

    def failed(self) -> bool:
        """After an exception: whether the turn was one of a loop of the program, which cannot be: Python takes it."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return False
        attempt.back()
        self._staged, self.over = None, False
        self.offer(attempt.values)
        return True

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
            if self._path is not None and self._path.is_plain:
                self._path.drop()
                self._path = None
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
        if self._must_stage:
            self._must_stage, self._path = False, None
            self._staged = _Staged(self, scalar(True, dtypes.bool_, "while"), is_endless=True)
        else:
            self._try("while")
        return True

    def _try(self, what: str) -> None:
        """Begin a turn that may have to be forgotten."""
        if not isinstance(now().trace, Trace):
            return
        if self._path is not None:
            self._path.drop()
            self._path = None
        self.enter_path(blame.here(self._frame, what))
        assert self._path is not None
        self._path.sides = [Side(None)]
        self._trial = _Before.here(values_of(self._frame, self._names), self._path.parent)

    def _tried(self) -> None:
        """A turn of an endless loop is over."""
        trial, path = self._trial, self._path
        assert trial is not None and path is not None
        self._trial = None
        if path.is_plain:
            path.drop()
        else:
            trial.back()
            self._must_stage = True
            self.offer(trial.values)
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
        path, before = self._path, self._before
        if path is None:
            return
        self._path = self._before = None
        if not path.is_plain:
            if self._takes is not None:
                active.spent.append(self._takes)
            values = self._closed(path, values_of(self._frame, names))
            if before is not None:
                values = self._closed(before, values)
            self.offer(values)
        else:
            path.drop()
        below = active.path
        if below is not None and below.frame is self._frame and below.is_plain and below.is_base:
            active.path = below.parent

    def _closed(self, path: Path, values: Values | None) -> Values | None:
        """What names hold after all that was opened in a path of the loop's, where they hold ``values`` before."""
        bundle = path.bundle or Bundle({NORMAL: values or {}})
        bundle = path.settled(bundle, {self.kind("_breaks", "break"): NORMAL})
        active.path = path.parent
        assert path.parent is not None
        return path.parent.take(bundle)

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


class _Before(NamedTuple):
    """What there was before a turn that may have to be forgotten."""

    values: Values
    path: Path | None
    trace: Any
    mark: Any
    doubles: list[Any]
    spent: list[Any]
    appended: tuple[Any, ...]

    @classmethod
    def here(cls, values: Values, path: Path | None = None) -> _Before:
        """As it is, in ``path`` or the innermost one."""
        trace: Any = now().trace
        doubles, spent = list(active.doubles), list(active.spent)
        return cls(values, path or active.path, trace, trace.mark(), doubles, spent, active.appended)

    def back(self) -> None:
        unwound(self.path)
        self.trace.back_to(self.mark)
        active.doubles, active.spent, active.appended = self.doubles, self.spent, self.appended


class _Staged:
    """A loop over a tensor, while its body is traced again and again.  A ``for`` that takes all its turns is a scan
    over slices; all others go on while a condition holds."""

    def __init__(self, loop: Loop, pred: Tensor | None, is_endless: bool = False, walk: Any = None) -> None:
        self._loop, self._frame, self._names = loop, loop._frame, loop._names
        assert loop._where is not None
        self._where = loop._where
        self._pred, self._is_endless = None if pred is None else truth(pred), is_endless
        if loop._outer is not None:
            loop._outer.enter_path(self._where)
        self._parent = path_in(self._frame)
        self._walk: Turns | None = walk
        self._scanned = walk if isinstance(walk, Walk) else None
        self._first: Any = None if walk is None else walk.start if self._scanned is None else self._scanned.taken
        self._sources = [] if self._scanned is None else self._scanned.remaining()
        self.index: Any = self._first
        self.element: Any = None
        self._starts = values_of(self._frame, self._names)
        self._stacks = Stacks(
            self._frame, loop._lists if loop._attempt is not None and self._scanned is not None else ()
        )
        self._carried = Carried({**self._starts, _INDEX: self._first})
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
        self._inputs = [] if self._pred is None else [region.carry(self._pred.type, "go")]
        leaves = self._carried.inputs(region)
        self._inputs += leaves
        self._inputs += [region.carry_variable(v, v.name or f"variable{k}") for k, v in enumerate(self._variables)]
        self._slices = [region.carry(x.type.with_shape(x.shape[1:]), f"slice{k}") for k, x in enumerate(self._sources)]
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
        if self._scanned is not None:
            self.element = self._scanned.built(iter(self._slices))
        elif self._walk is not None:
            self.element = self._walk.element(self.index)
        self._stacks.begin()
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
        if self._scanned is not None:
            value = True
        elif self._walk is not None and not path.is_dead:
            values[_INDEX] = self._walk.following(self.index)
            value = self._walk.has(values[_INDEX])
        go: Any = value
        if isinstance(value, (SymbolicTensor, Variable)):
            go = truth(value)
        elif self._scanned is None:
            go = scalar(bool(value), dtypes.bool_, "while")
        bundle = path.bundle or Bundle({NORMAL: {**values, _GO: go, _BROKE: False}})
        bundle = path.settled(bundle, {loop.kind("_breaks", "break"): NORMAL})
        side.leave()
        active.path = self._parent
        side.check()
        if self._scanned is not None and not (bundle.only_goes_on and bundle.kinds[NORMAL][_GO] is True):
            self._count()
            return True
        walk = self._scanned
        if walk is not None and not isinstance(walk, Numbered) and read_elsewhere(walk.tensors(), self._region):
            self._begin_anew(Numbered(walk))
            return True
        changes = active.changes != self._changes
        self._stacks.end(side, changes)
        kept = self._carried.agrees(bundle.kinds.get(NORMAL), side, changes)
        if loop._attempt is not None:
            counts = not isinstance(self._walk, Numbers) and self._carried.numbers_change(_INDEX)
            if counts or self._carried.needs_python():
                raise TraceError("for", "what the loop carries is not the same in each turn.")
        if self._more_variables() or not kept:
            self._check_places()
            self._pass()
            return True
        if self._scanned is not None:
            self._emit_scan(bundle.kinds[NORMAL])
        else:
            self._emit(bundle)
        return False

    def _count(self) -> None:
        """Something leaves the loop: its turns are counted, and begin anew."""
        self._pred = truth(scalar(True, dtypes.bool_, "for"))
        self._stacks.give_up()
        self._begin_anew(None)

    def _begin_anew(self, scanned: Walk | None) -> None:
        """As a scan of something else, or as none."""
        self._scanned, self._variables = scanned, []
        self._sources = [] if scanned is None else scanned.remaining()
        self._carried = Carried({**self._starts, _INDEX: self._first})
        self._pass()

    def _lasts(self, late: Late, values: Values | None) -> dict[str, Any]:
        """What names hold after the last turn that held nothing before the first one, where there is a turn: in the
        turn, and as ``late`` has it."""
        if values is None or not self._has_turned:
            return {}
        bound = {name: values[name] for name in self._carried.unbound()}
        for value in bound.values():
            if holds(value, self._region):
                raise TraceError("for", f"a {type(value).__name__} is made in each turn.")
        return {
            name: (value, late.add(value, self._side, self._region))
            for name, value in bound.items()
            if value is not UNBOUND and not isinstance(value, Conflict)
        }

    def _emit_scan(self, values: Values) -> None:
        region, side, late = self._region, self._side, Late()
        with region.entered():
            outputs = self._carried.outputs(values, side)
        leaves = len(outputs)
        lasts = self._lasts(late, values)
        outputs += [region.value_of(variable) for variable in self._variables]
        outputs += late.outputs
        carries = len(outputs)
        outputs += self._stacks.outputs(side, region)
        own = [*self._inputs, *(region.carry(x.type, "left") for x in late.outputs)]
        with blame.at(self._where):
            starts = [*self._carried.starts(), *(v._read() for v in self._variables), *late.starts()]
            assert self._scanned is not None
            length = self._scanned.left()
            found = emit_scan(region, starts, own, self._sources, self._slices, outputs, length)
        found[:carries] = self._as_one(outputs[:carries], found[:carries])
        count = leaves + len(self._variables)
        assign(self._variables, found[leaves:count])
        ends = {id(x): tensor for x, tensor in zip(outputs, found[:carries])}
        self._stacks.take(found[carries:], length, ends, self._carried.links(values, side), side)
        self._after(self._left(found[:leaves], lasts, found[count:carries]), False, literal_code(NORMAL), {})

    @property
    def _has_turned(self) -> bool:
        """Whether there surely was a turn."""
        return self._loop._attempt is not None

    def _as_one(self, outputs: Sequence[Tensor], found: list[Tensor]) -> list[Tensor]:
        """What a loop leaves: one object in all places where its last turn left one, if there surely was a turn."""
        if not self._has_turned:
            return found
        first: dict[int, Tensor] = {}
        return [first.setdefault(id(x), tensor) for x, tensor in zip(outputs, found)]

    def _left(self, leaves: list[Tensor], lasts: dict[str, Any], lates: list[Tensor]) -> Values:
        """The values of names after the loop; places take theirs."""
        names, places = self._carried.built(leaves)
        chosen = kin({id(x) for x in self._inputs})
        note_doubles(self._carried.doubles(names, places, self._is_new() if self._has_turned else None))
        for place, value in places:
            put(place, value)
        for name, (value, added) in lasts.items():
            names[name] = Late.taken(added, lates)
            note_doubles(Late.doubles(names[name], value, self._side, chosen))
        return names

    def _is_new(self) -> IsNew:
        """What tells whether the last turn has made an object, so that it is none that was there before."""
        linked = {id(one) for _, group in active.doubles for one in group}
        return lambda value: is_of(value, self._region) and id(value) not in linked

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
            code = late.add(only_code(bundle) if bundle.code is None else bundle.code, side)
        lasts = self._lasts(late, values)
        ways = {kind: found for kind, found in bundle.kinds.items() if kind is not NORMAL}
        left = {kind: {name: late.add(x, side, region) for name, x in found.items()} for kind, found in ways.items()}
        leaves = len(outputs) - 1
        outputs += [region.value_of(variable) for variable in self._variables]
        outputs += late.outputs
        own = [*self._inputs, *(region.carry(x.type, "left") for x in late.outputs)]
        asking = Region("the condition of the loop")
        asked = [asking.carry(x.type, f"carry{k}") for k, x in enumerate(outputs)]
        with blame.at(self._where):
            assert self._pred is not None
            starts = [self._pred, *self._carried.starts(), *(v._read() for v in self._variables), *late.starts()]
            found = emit_while("while", starts, region, own, outputs, asking, asked, asked[0])
        found = self._as_one(outputs, found)
        ends = found[leaves + 1 : leaves + 1 + len(self._variables)]
        assign(self._variables, ends)
        lates = found[leaves + 1 + len(self._variables) :]
        if self._walk is not None:
            self._walk.over()
        names = self._left(found[1 : leaves + 1], lasts, lates)
        taken = {kind: {name: late.taken(x, lates) for name, x in found.items()} for kind, found in left.items()}
        self._after(names, late.taken(broke, lates), late.taken(code, lates), taken)

    def _after(self, names: Values, broke: Any, code: Tensor, left: dict[Kind, Values]) -> None:
        """Go on after the loop."""
        loop, parent = self._loop, self._parent
        loop._staged, loop._completed = None, True
        bundle = Bundle({NORMAL: names, **left})
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
            loop._before = loop._path
            loop._path = active.path = Path(self._frame, parent, None)
            loop.offer(loop._path.take(bundle))
