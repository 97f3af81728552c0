"""A loop of the program, while its body is traced.

A ``while`` whose condition turns out to be a tensor starts there: what its names hold is what is carried.  Its body
is traced, with the condition at its end, until the types of what is carried come out as they went in; numbers of
Python's that change become tensors that count as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow.array import elementwise
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import scalar
from hybridflow.errors import TraceError
from hybridflow.tracing.control import read_elsewhere
from hybridflow.tracing.flow import blame
from hybridflow.tracing.flow.carries import Awaited, Carried, IsNew, Late
from hybridflow.tracing.flow.choices import Choice
from hybridflow.tracing.flow.doubles import kin, note_doubles
from hybridflow.tracing.flow.forks import truth
from hybridflow.tracing.flow.journal import containers_of, put
from hybridflow.tracing.flow.outcomes import (
    NORMAL,
    Bundle,
    Kind,
    Values,
    literal_code,
    only_code,
    values_of,
)
from hybridflow.tracing.flow.paths import Path, path_in
from hybridflow.tracing.flow.places import UNBOUND, is_unbound
from hybridflow.tracing.flow.sides import Side
from hybridflow.tracing.flow.stacks import Stacks
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.flow.statements import LoopStatement
from hybridflow.tracing.flow.texts import Conflict
from hybridflow.tracing.flow.values import as_typed, holds, is_of
from hybridflow.tracing.flow.walks import Numbered, Numbers, Turns, Walk
from hybridflow.tracing.nodes import assign, emit_scan, emit_while
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor

_MOST_PASSES = 64
# No names of Python's: whether there is another turn, whether the loop was broken, the number that a ``for`` counts.
GO, BROKE, INDEX = ".go", ".broke", ".index"


class StagedLoop:
    """A loop over a tensor, while its body is traced again and again.  A ``for`` that takes all its turns is a scan
    over slices; all others go on while a condition holds."""

    def __init__(self, loop: LoopStatement, pred: Tensor | None, is_endless: bool = False, walk: Any = None) -> None:
        self._loop, self._frame, self._names = loop, loop.frame, loop.names
        assert loop.where is not None
        self._where = loop.where
        self._pred, self._is_endless = None if pred is None else truth(pred), is_endless
        if loop.outer is not None:
            loop.outer.enter_path(self._where)
        self._parent = path_in(self._frame)
        self._walk: Turns | None = walk
        self._scanned = walk if isinstance(walk, Walk) else None
        self._first: Any = None if walk is None else walk.start if self._scanned is None else self._scanned.taken
        self._sources = [] if self._scanned is None else self._scanned.remaining()
        self.index: Any = self._first
        self.element: Any = None
        self._starts = values_of(self._frame, self._names)
        self._stacks = Stacks(self._frame, loop.lists if loop.attempt is not None and self._scanned is not None else ())
        self._carried = self._new_carried()
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
        self._goes = [] if self._pred is None else [region.carry(self._pred.type, "go")]
        leaves = self._carried.inputs(region)
        self._held = [region.carry_variable(v, v.name or f"variable{k}") for k, v in enumerate(self._variables)]
        self._slices = [region.carry(x.type.with_shape(x.shape[1:]), f"slice{k}") for k, x in enumerate(self._sources)]
        self.path = active.path = Path(self._frame, self._parent, self._side)
        for place in self._containers:
            self._side.touch(place)
        self._side.watch(self._frame)
        self._side.enter()
        names, places = self._carried.begin(leaves, region)
        for place, value in places:
            put(place, value)
        note_doubles(self._carried.doubles(names, places))
        self.index = names[INDEX]
        if self._scanned is not None:
            self.element = self._scanned.built(iter(self._slices))
        elif self._walk is not None:
            self.element = self._walk.element(self.index)
        self._stacks.begin()
        self._loop.offer(names)

    @property
    def _inputs(self) -> list[SymbolicTensor]:
        """What the body is given from turn to turn."""
        return [*self._goes, *self._carried.all_inputs(), *self._held]

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
        values = {**(loop.held if loop.fresh else values_of(self._frame, self._names)), INDEX: self.index}
        if self._scanned is not None:
            value = True
        elif self._walk is not None and not path.is_dead:
            values[INDEX] = self._walk.following(self.index)
            value = self._walk.has(values[INDEX])
        go: Any = value
        if isinstance(value, (SymbolicTensor, Variable)):
            go = truth(value)
        elif self._scanned is None:
            go = scalar(bool(value), dtypes.bool_, "while")
        bundle = path.bundle or Bundle({NORMAL: {**values, GO: go, BROKE: False}})
        bundle = path.settled(bundle, {loop.kind("_breaks", "break"): NORMAL})
        side.leave()
        active.path = self._parent
        side.check()
        if self._scanned is not None and not (bundle.only_goes_on and bundle.kinds[NORMAL][GO] is True):
            self._count()
            return True
        walk = self._scanned
        if walk is not None and not isinstance(walk, Numbered) and read_elsewhere(walk.tensors(), self._region):
            self._begin_anew(Numbered(walk))
            return True
        changes = active.changes != self._changes
        if self._stacks.grow(side):
            self._stacks.give_up()
            self._begin_anew(walk)
            return True
        self._stacks.end(side, changes)
        kept = self._carried.agrees(bundle.kinds.get(NORMAL), side, changes)
        if loop.attempt is not None:
            counts = not isinstance(self._walk, Numbers) and self._carried.numbers_change(INDEX)
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
        self._carried = self._new_carried()
        self._pass()

    def _new_carried(self) -> Carried:
        turns = None if self._walk is None else self._walk.length
        is_attempt = self._loop.attempt is not None
        is_known = is_attempt and self._pred is None
        return Carried({**self._starts, INDEX: self._first}, not is_attempt, turns, is_known)

    def _lasts(self, late: Late, values: Values | None) -> dict[str, Any]:
        """What names hold after the last turn that held nothing before the first one, where there is a turn: in the
        turn, and as ``late`` has it."""
        bound = {} if values is None else {name: values[name] for name in self._carried.unbound()}
        if not self._has_turned:
            bound = {name: value for name, value in bound.items() if name in self._unsure}
        elif any(holds(value, self._region) for value in bound.values()):
            made = next(value for value in bound.values() if holds(value, self._region))
            raise TraceError("for", f"a {type(made).__name__} is made in each turn.")
        return {
            name: (value, late.add(value, self._side, self._region))
            for name, value in bound.items()
            if not (is_unbound(value) or isinstance(value, (Conflict, Awaited)) or holds(value, self._region))
        }

    @property
    def _unsure(self) -> frozenset[str]:
        """The names that may be read where nothing has bound them."""
        return frozenset(getattr(self._names, "unsure", ()))

    def _emit_scan(self, values: Values) -> None:
        region, side, late = self._region, self._side, Late()
        with region.entered():
            outputs = self._carried.outputs(values, side)
        leaves = len(outputs)
        lasts = self._lasts(late, values)
        turned = self._turned(late, lasts)
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
        lates = found[count:carries]
        names = self._left(found[:leaves], lasts, lates, late.taken(turned, lates))
        self._after(names, False, literal_code(NORMAL), {})

    def _turned(self, late: Late, lasts: dict[str, Any]) -> Any:
        """What is 1 after a turn, if it is needed."""
        if self._has_turned or not lasts:
            return late.add(None, self._side)
        with self._region.entered():
            return late.add(scalar(1, dtypes.int32, "for"), self._side)

    @property
    def _has_turned(self) -> bool:
        """Whether there surely was a turn."""
        return self._loop.attempt is not None

    def _as_one(self, outputs: Sequence[Tensor], found: list[Tensor]) -> list[Tensor]:
        """What a loop leaves: one object in all places where its last turn left one, if there surely was a turn."""
        if not self._has_turned:
            return found
        first: dict[int, Tensor] = {}
        return [first.setdefault(id(x), tensor) for x, tensor in zip(outputs, found)]

    def _left(
        self, leaves: list[Tensor], lasts: dict[str, Any], lates: list[Tensor], turned: Tensor | None = None
    ) -> Values:
        """The values of names after the loop; places take theirs.  ``turned`` is 1 if there was a turn."""
        names, places = self._carried.built(leaves)
        chosen = kin({id(x) for x in self._inputs})
        note_doubles(self._carried.doubles(names, places, self._is_new() if self._has_turned else None))
        for place, value in places:
            put(place, value)
        for name, (value, added) in lasts.items():
            names[name] = Late.taken(added, lates)
            if not self._has_turned:
                assert turned is not None
                names[name] = Choice(turned, [UNBOUND, names[name]])
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
            go = scalar(False, dtypes.bool_, "while") if values is None else as_typed(values[GO], dtypes.bool_)
            outputs = [go, *self._carried.outputs(values, side)]
            broke = late.add(False if values is None else values[BROKE], side)
            code = late.add(only_code(bundle) if bundle.code is None else bundle.code, side)
        lasts = self._lasts(late, values)
        turned = self._turned(late, lasts)
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
        names = self._left(found[1 : leaves + 1], lasts, lates, late.taken(turned, lates))
        taken = {kind: {name: late.taken(x, lates) for name, x in found.items()} for kind, found in left.items()}
        self._after(names, late.taken(broke, lates), late.taken(code, lates), taken)

    def _after(self, names: Values, broke: Any, code: Tensor, left: dict[Kind, Values]) -> None:
        """Go on after the loop."""
        loop, parent = self._loop, self._parent
        loop.staged, loop.is_done = None, True
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
            loop.before = loop.path
            loop.path = active.path = Path(self._frame, parent, None)
            loop.offer(loop.path.take(bundle))
