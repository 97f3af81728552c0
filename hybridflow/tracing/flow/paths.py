"""Paths: what the running code is inside of, where conditions are tensors.

Both blocks of an ``if`` over a tensor run, each into a *side*: a region of the trace, and a journal of what it changed.
How a side ends is an *outcome*: it goes on, returns a value, leaves a loop or begins its next turn; one that raises an
error ends the program, and has none.  Sides that go on
are joined to one.  Where one leaves and the other goes on, nothing is joined yet: the trace goes on inside of the one
that does, and the fork stays *open* until the function, or the turn of the loop, is over.  A *path* is the
stack of what is open in one block; it is dead when all of it has left.
"""

from __future__ import annotations

import builtins
import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from hybridflow.array import elementwise
from hybridflow.compiler.ir import dtypes
from hybridflow.core import pytree
from hybridflow.core.blocks import block
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast, reshape_to, scalar
from hybridflow.errors import TraceError
from hybridflow.tracing import number_faults
from hybridflow.tracing.flow import blame
from hybridflow.tracing.flow.places import CONTAINERS, UNBOUND, Place, place_of
from hybridflow.tracing.flow.values import ABSENT, Conflict, Joined, is_of
from hybridflow.tracing.flow.witnesses import BUFFERS, Witnesses, is_iterator, reaches
from hybridflow.tracing.nodes import emit_cond
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor


class Kind:
    """A way in which a side ends; ``number`` stands for it in programs."""

    __slots__ = ("number", "what")

    def __init__(self, what: str, number: int | None = None) -> None:
        self.what, self.number = what, next(active.numbers) if number is None else number


NORMAL = Kind("goes on", 0)
VALUE = "value"  # the name of what a function returns
Values = dict[str, Any]


class Bundle:
    """The ways in which something may have ended, and the values of each; ``code`` says which it was."""

    __slots__ = ("code", "kinds")

    def __init__(self, kinds: dict[Kind, Values], code: Tensor | None = None) -> None:
        self.kinds, self.code = kinds, code

    @property
    def goes_on(self) -> bool:
        return NORMAL in self.kinds

    @property
    def has_raised(self) -> bool:
        """Whether nothing comes after it: the program has ended with an error."""
        return not self.kinds

    @property
    def only_goes_on(self) -> bool:
        return self.goes_on and len(self.kinds) == 1


class Side:
    """A region that is traced, with a journal of the places that were changed; without a region, the journal alone."""

    __slots__ = ("_context", "_holders", "finals", "region", "touched", "witnesses")

    def __init__(self, region: Region | None) -> None:
        self.region = region
        self.touched: dict[Any, tuple[Place, Any]] = {}  # the place, and what it held before
        self.finals: dict[Any, Any] = {}
        self._holders: frozenset[int] = frozenset()  # the ids of what was touched, once the side was left
        self.witnesses: Witnesses | None = None
        self._context: Any = None

    def watch(self, frame: FrameType) -> None:
        """Before the side is entered: see to it that what a function's names hold is not changed unseen."""
        self.witnesses = Witnesses(value for name, value in frame.f_locals.items() if name.isidentifier())

    def enter(self) -> None:
        """Go into the side, for the first time or again."""
        if self.region is not None:
            self._context = self.region.entered()
            self._context.__enter__()
        for key, value in self.finals.items():
            self.touched[key][0].put(value)

    def leave(self) -> None:
        """Leave it; places hold what they held before."""
        self.finals = {key: place.get() for key, (place, _) in self.touched.items()}
        self._holders = frozenset(id(place.holder) for place, _ in self.touched.values())
        for place, before in self.touched.values():
            place.put(before)
        if self._context is not None:
            context, self._context = self._context, None
            context.__exit__(None, None, None)

    @block
    def seen(self) -> Iterator[None]:
        """After the side was left: places hold once more what it left in them."""
        befores = [(place, place.get()) for place, _ in self.touched.values()]
        for key, (place, _) in self.touched.items():
            place.put(self.finals[key])
        try:
            yield
        finally:
            for place, before in befores:
                place.put(before)

    def flatten(self, value: Any, whole: Collection[int] = ()) -> tuple[list[Any], pytree.Structure]:
        """The leaves of a value as the side left it, and how they are nested."""
        if not self.touched or not pytree.is_container(value):
            return pytree.flatten(value, whole)
        with self.seen():
            return pytree.flatten(value, whole)

    def parts(self, value: Any) -> dict[int, Any]:
        """The containers inside of a value as the side left it, by id."""
        if not self.touched or not pytree.is_container(value):
            return pytree.changeable_parts(value)
        with self.seen():
            return pytree.changeable_parts(value)

    def has_touched(self, value: Any) -> bool:
        """Whether a value is a place of which the side, which was left, has kept what it held before."""
        return id(value) in self._holders or id(getattr(value, "__dict__", None)) in self._holders

    def made(self, key: Any) -> bool:
        """Whether a place is of what was made in the side: nobody outside knows it."""
        before = self.touched[key][1] if key in self.touched else None
        return self.region is not None and any(is_of(x, self.region) for x in pytree.flatten(before)[0])

    def check(self) -> None:
        """After the side was left: raise TraceError if it changed what cannot be put back."""
        if self.witnesses is None:
            return
        changed = self.witnesses.changed()
        if changed is not None:
            raise cannot_be_undone(f"a {type(changed).__name__} is changed")

    def touch(self, place: Place, before: Any = UNBOUND) -> None:
        if place.identity not in self.touched:
            self.touched[place.identity] = place, place.get() if before is UNBOUND else before


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

    def open(self, pred: Tensor, left: Side, bundle: Bundle, going: Side, left_first: bool) -> None:
        """Go on in the side ``going`` of a fork, whose other side has ``left``."""
        self.opens.append(_Open(pred, left, bundle, left_first))
        self.sides.append(going)
        going.watch(self.frame)
        going.enter()

    def take(self, bundle: Bundle) -> Values | None:
        """Go on after something that ended as ``bundle``: with its values, or not at all."""
        if bundle.only_goes_on:
            return bundle.kinds[NORMAL]
        if not bundle.goes_on:
            self.bundle = bundle
            return None
        assert bundle.code is not None
        rest = {kind: values for kind, values in bundle.kinds.items() if kind is not NORMAL}
        pred = elementwise.equal(bundle.code, NORMAL.number)
        left, going = Side(Region("what follows")), Side(Region("what follows"))
        self.open(pred, left, Bundle(rest, bundle.code if len(rest) > 1 else None), going, left_first=False)
        return bundle.kinds[NORMAL]


class _Active(threading.local):
    """The innermost path of what this thread traces, and why names that branches bound have no value."""

    path: Path | None = None

    def __init__(self) -> None:
        self.conflicts: dict[tuple[CodeType, str], blame.Cause] = {}
        self.spent: list[Any] = []  # iterators of which it depends on a tensor how far loops came
        self.doubles: list[tuple[FrameType, tuple[Any, ...]]] = []
        self.changes = 0  # how often something was changed in place
        self.refusal: TraceError | None = None  # nobody catches it
        self.tries: list[tuple[FrameType, int, int, tuple[str, ...]]] = []  # see ``tries``
        self.appended: tuple[Any, ...] = ()  # lists that turns of a loop append to, and see nothing of
        self.numbers = itertools.count(1)  # of kinds: the same ones in each trace of a function


active = _Active()


@block
def converting() -> Iterator[None]:
    """One run of converted code.  What is wrong with names that branches bind is said when they are read."""
    before = active.path, active.conflicts, active.numbers, active.spent, active.doubles, active.appended
    active.path, active.conflicts, active.numbers, active.spent, active.doubles = None, {}, itertools.count(1), [], []
    active.appended = ()
    tries, active.tries = active.tries, list(active.tries)
    try:
        yield
    except NameError as error:
        explained = blame.explained(error, active.conflicts)
        if explained is error:
            raise
        raise explained from None
    finally:
        active.path, active.conflicts, active.numbers, active.spent, active.doubles, active.appended = before
        active.tries, active.refusal = tries, None


def path_in(frame: FrameType) -> Path:
    """The innermost path, which is one of ``frame``'s from now on."""
    path = active.path
    if path is None or path.frame is not frame:
        path = active.path = Path(frame, path, None)
    return path


def touch(place: Place | None, before: Any = UNBOUND) -> None:
    """Note that a place is about to be changed, or was, when it held ``before``."""
    path = active.path
    while path is not None:
        if path.sides:
            if place is not None:
                path.sides[-1].touch(place, before)
            return
        path = path.parent


def put(place: Place, value: Any) -> None:
    touch(place)
    place.put(value)


def values_of(frame: FrameType, names: Sequence[str]) -> Values:
    """What names hold now; UNBOUND for those that hold nothing."""
    held = frame.f_locals
    return {name: held.get(name, UNBOUND) for name in names}


def given_back(values: Values, names: Sequence[str], frame: FrameType, where: blame.Where) -> list[Any]:
    """Values as converted code takes them; what has none becomes UNBOUND, and it is kept why."""
    found = []
    for name in names:
        value = values.get(name, UNBOUND)
        if isinstance(value, Conflict):
            active.conflicts[frame.f_code, name] = blame.Cause(value, where)
            value = UNBOUND
        found.append(value)
    return found


# ---- joining


def literal_code(kind: Kind) -> Tensor:
    return scalar(kind.number, dtypes.int32, "convert")


def only_code(bundle: Bundle) -> Tensor:
    """The code of the one way in which something ended."""
    return literal_code(next(iter(bundle.kinds), NORMAL))


def combined(pred: Tensor, pairs: Sequence[tuple[Side, Bundle]], alias: Mapping[Kind, Kind]) -> Bundle:
    """One bundle for two sides, recorded into the trace around them."""
    regions = [side.region for side, _ in pairs]
    assert regions[0] is not None and regions[1] is not None
    both = [regions[0], regions[1]]
    joined = Joined(lambda k: both[k].entered(), [side for side, _ in pairs])
    ends = [renamed(bundle, alias, region) for (_, bundle), region in zip(pairs, both)]
    kinds = list(dict.fromkeys([*ends[0].kinds, *ends[1].kinds]))
    found = {kind: _joined_values(joined, ends[0].kinds.get(kind), ends[1].kinds.get(kind)) for kind in kinds}
    places = _joined_places(joined, [side for side, _ in pairs], [end.has_raised for end in ends])
    code = None
    if len(kinds) > 1:
        codes = []
        for end, region in zip(ends, both):
            with region.entered():
                codes.append(only_code(end) if end.code is None else end.code)
        code = joined.output(codes[0], codes[1])
    tensors = emit_cond(pred, both, joined.outputs)
    for place, value, is_new in places:
        if is_new:
            place.put(joined.finished(value, tensors))
        else:
            put(place, joined.finished(value, tensors))
    made = {
        kind: {name: joined.finished(value, tensors) for name, value in values.items()}
        for kind, values in found.items()
    }
    note_doubles(joined.made)
    return Bundle(made, None if code is None else joined.finished(code, tensors))


def note_doubles(made: Sequence[tuple[Any, ...]]) -> None:
    """Keep in mind what stands for one of several objects: none of them may be changed in place while another lives."""
    path = active.path
    if path is not None:
        active.doubles += [(path.frame, group) for group in made]


def is_appended(value: Any) -> bool:
    """Whether a value is a list that turns append to."""
    return any(value is one for one in active.appended)


def seen(value: Any) -> Any:
    """What was read of an object.  Raises TraceError for a list of which nobody knows while tracing what is in it."""
    if active.appended and is_appended(value):
        raise TraceError("for", "a list that each turn appends to is read in a turn.")
    return value


def check_single(value: Any, frame: FrameType) -> None:
    """Before ``value`` is changed in place by ``frame``: raise TraceError if it depends on a tensor whether another
    object that names still hold is that same one."""
    active.changes += 1
    met, frames = {id(value): value}, {frame}
    known = -1
    while known != len(met):  # what stands for one of several may be one of several again
        known = len(met)
        for own, group in active.doubles:
            if any(id(one) in met for one in group):
                met.update((id(one), one) for one in group)
                frames.add(own)
    del met[id(value)]
    names = [held for f in frames for name, held in f.f_locals.items() if name.isidentifier()] if met else []
    if met and reaches(names, met.values()):
        kind = "tensor" if isinstance(value, Tensor) else type(value).__name__
        raise TraceError(
            "convert",
            f"a {kind} is changed in place, and it depends on a tensor which of several it is. "
            "Copy it before, or make a new one instead of changing it.",
        )


def renamed(bundle: Bundle, alias: Mapping[Kind, Kind], region: Region | None = None) -> Bundle:
    """The bundle, which lies in ``region`` or in the trace that goes on, with other names for some outcomes.

    Of two that become one it has but one."""
    if not any(kind in alias for kind in bundle.kinds):
        return bundle
    code = bundle.code
    if code is not None:
        with contextlib.nullcontext() if region is None else region.entered():
            for kind in bundle.kinds:
                if kind in alias:
                    code = other_code(code, kind, alias[kind])
    kinds = {alias.get(kind, kind): values for kind, values in bundle.kinds.items()}
    return Bundle(kinds, code if len(kinds) > 1 else None)


def other_code(code: Tensor, kind: Kind, other: Kind) -> Tensor:
    return elementwise.where(elementwise.equal(code, kind.number), literal_code(other), code)


def _joined_values(joined: Joined, a: Values | None, b: Values | None) -> Values:
    if a is None or b is None:
        one = (b if a is None else a) or {}
        return {
            name: joined.value(ABSENT, value) if a is None else joined.value(value, ABSENT)
            for name, value in one.items()
        }
    return {name: joined.value(a.get(name, UNBOUND), b.get(name, UNBOUND)) for name in dict.fromkeys([*a, *b])}


def _joined_places(joined: Joined, sides: Sequence[Side], raised: Sequence[bool]) -> list[tuple[Place, Any, bool]]:
    """What places are to hold, and whether nobody else knows them: one side made them.  Of a side that has ``raised``
    nothing is left."""
    found: list[tuple[Place, Any, bool]] = []
    if all(raised):
        return found
    places = {key: place for side in sides for key, (place, _) in side.touched.items()}
    for key, place in places.items():
        before = place.get()
        a, b = (ABSENT if gone else side.finals.get(key, before) for side, gone in zip(sides, raised))
        news = [side.made(key) for side in sides]
        if any(news):
            found.append((place, joined.value(a if news[0] else ABSENT, b if news[1] else ABSENT), True))
            continue
        value = joined.value(a, b)
        if isinstance(value, Conflict):
            raise blame.changed(place, value)
        if value is not before:
            found.append((place, value, False))
    return found


def truth(value: Any) -> Tensor:
    """The truth of a tensor of one element, as a scalar of bools.  Raises ShapeError for other tensors, as eagerly."""
    x = value if isinstance(value, Tensor) else value._read()
    if x.shape and any(not isinstance(n, int) or n != 1 for n in x.shape):
        raise blame.many_elements(x)
    x = reshape_to(x, ())
    return cast(x, np.dtype(bool)) if x.dtype == dtypes.bool_ else elementwise.not_equal(x, 0)


# ---- if


class Fork:
    """A condition that is a tensor: true once, for one block, and then false, for the other."""

    __slots__ = ("_asked", "_bundles", "_frame", "_names", "_path", "_pred", "_sides", "_values", "_where")

    def __init__(self, value: Any, frame: FrameType, names: Sequence[str], where: blame.Where) -> None:
        self._pred, self._frame, self._names, self._where = truth(value), frame, names, where
        self._path = path_in(frame)
        self._asked = False
        self._sides: list[Side] = []
        self._bundles: list[Bundle] = []
        self._values: Values = values_of(frame, names)
        self._begin()

    def _begin(self) -> None:
        side = Side(Region("a branch"))
        for place in containers_of(self._frame):
            side.touch(place)
        if self._sides:
            side.witnesses = self._sides[0].witnesses  # for all is as it was
        else:
            side.watch(self._frame)
        self._sides.append(side)
        active.path = Path(self._frame, self._path, side)
        side.enter()

    def _end(self, values: Values) -> None:
        path = active.path
        if path is None or path.parent is not self._path:
            raise TraceError(
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

    def between(self) -> list[Any]:
        """The first block is over: the names as they were before it."""
        self._end(values_of(self._frame, self._names))
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

    def value(self, a: Any, b: Any) -> Any:
        """The value of an expression that is ``a`` in one block, which is over, and ``b`` in the other."""
        self._bundles[0].kinds[NORMAL][VALUE] = a
        values = self._after({**values_of(self._frame, self._names), VALUE: b})
        assert values is not None
        found = values[VALUE]
        self._values = values
        if isinstance(found, Conflict):
            raise blame.Cause(found, self._where).error("the value")
        return found

    def held(self, name: str) -> Any:
        """What an operand bound a name to."""
        found = self._values[name]
        if found is UNBOUND or isinstance(found, Conflict):
            conflict = found if isinstance(found, Conflict) else Conflict("unbound", UNBOUND, UNBOUND)
            raise blame.Cause(conflict, self._where).error(name)
        return found


def returned(frame: FrameType, value: Any, stays: Any, names: Sequence[str] = ()) -> Any:
    """What a function returns in fact; ``stays`` where it goes on, because a condition above was a tensor."""
    path = active.path
    if path is None or path.frame is not frame:
        return value
    block = path
    while block.is_plain and not block.is_base:
        assert block.parent is not None
        block = block.parent
    if not block.is_base:
        path.bundle = Bundle({path.returned: {**values_of(frame, names), VALUE: value}})
        return stays
    while path is not block:
        path.drop()
        assert path.parent is not None
        path = path.parent
    if block.is_plain:
        block.drop()
        return value
    return closed(block, value)


def closed(path: Path, value: Any) -> Any:
    """What a function returns that ends in its outermost path."""
    kind = path.returned
    bundle = path.settled(path.bundle or Bundle({kind: {VALUE: value}}), {})
    active.path = path.parent
    if bundle.has_raised:
        return None
    found = bundle.kinds[kind][VALUE]
    if isinstance(found, Conflict):
        raise blame.returns(found)
    return found


def containers_of(frame: FrameType) -> list[Place]:
    """The containers that a function's names hold, which functions in C may change unseen."""
    found = [place_of(value) for value in frame.f_locals.values() if type(value) in CONTAINERS]
    return [place for place in found if place is not None]


def depth() -> tuple[Path | None, int]:
    """Where the running code is."""
    path = active.path
    return path, 0 if path is None else len(path.opens)


def pause(frame: FrameType, since: tuple[Path | None, int], names: Sequence[str]) -> Bundle | None:
    """Close what was opened ``since``, so that something may run however the block was left; None if nothing was."""
    path = active.path
    if path is None or path.frame is not frame:
        return None
    count = since[1] if since[0] is path else 0
    if len(path.opens) == count and path.bundle is None:
        return None
    return path.settled(path.bundle or Bundle({NORMAL: values_of(frame, names)}), {}, count)


def common(frame: FrameType, bundle: Bundle, names: Sequence[str]) -> list[Any]:
    """What names hold after ``pause``, however the block was left."""
    (_, values), *others = bundle.kinds.items()
    for kind, other in others:
        assert bundle.code is not None
        values = _either(elementwise.equal(bundle.code, kind.number), other, values, names)
    return given_back(values, names, frame, blame.here(frame, "if"))


def _either(pred: Tensor, a: Values, b: Values, names: Sequence[str]) -> Values:
    regions = [Region("a choice"), Region("a choice")]
    joined = Joined(lambda k: regions[k].entered(), [Side(region) for region in regions])
    found = {name: joined.value(a.get(name, UNBOUND), b.get(name, UNBOUND)) for name in names}
    tensors = emit_cond(pred, regions, joined.outputs)
    made = {name: joined.finished(value, tensors) for name, value in found.items()}
    note_doubles(joined.made)
    return made


def chosen(pred: Tensor, a: Any, b: Any) -> Any:
    """``a if pred else b`` of values that are there already.  Raises TraceError where they have no one type."""
    found = _either(pred, {VALUE: a}, {VALUE: b}, [VALUE])[VALUE]
    if isinstance(found, Conflict):
        raise blame.chosen(found)
    return found


def resume(frame: FrameType, bundle: Bundle, names: Sequence[str], runs: bool) -> list[Any]:
    """Go on after ``pause``; where something ``runs`` meanwhile the names are what it left."""
    for values in bundle.kinds.values() if runs else ():
        values.update(values_of(frame, names))
    taken = path_in(frame).take(bundle)
    return given_back(taken or {}, names, frame, blame.here(frame, "if"))


def raised(frame: FrameType) -> None:
    """The running block has ended the program with an error."""
    path_in(frame).bundle = Bundle({})


def tries(frame: FrameType, first: int, last: int, catches: tuple[str, ...]) -> None:
    """The lines from ``first`` to ``last`` of a function stand in a ``try``, which ``catches`` the exceptions of these
    names; an empty one stands for whatever they may be, ``finally`` for code that runs after them."""
    here = frame, first, last, catches
    if here not in active.tries:
        active.tries.append(here)


def check_not_caught(kind: type[BaseException]) -> None:
    """Raise TraceError if somebody may catch an exception that the program, once it runs, raises where the code is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for own, first, last, catches in active.tries:
            if own is frame and first <= frame.f_lineno <= last and any(_catches(frame, x, kind) for x in catches):
                place = f"{os.path.basename(frame.f_code.co_filename)}:{first - 1}"
                what = "a finally block runs" if "finally" in catches else "it is caught"
                refusal = TraceError(
                    "try",
                    f"whether {kind.__name__} is raised depends on a tensor, and {what} after the try at {place}. A "
                    "program ends with an error: choose values with if or hf.where, or catch it outside of the "
                    "compiled function.",
                )
                active.refusal = refusal
                raise refusal
        frame = frame.f_back


number_faults.guards.append(check_not_caught)


def _catches(frame: FrameType, name: str, kind: type[BaseException]) -> bool:
    """Whether an except clause for ``name`` may catch exceptions of a kind."""
    first, *rest = name.split(".")
    for names in (frame.f_locals, frame.f_globals, vars(builtins)):
        if first in names:
            found = names[first]
            for part in rest:
                found = getattr(found, part, None)
            kinds = found if isinstance(found, tuple) else (found,)
            return not all(isinstance(one, type) for one in kinds) or issubclass(kind, kinds)
    return True


def caught(since: tuple[Path | None, int]) -> None:
    """An exception was caught.  Raises TraceError if it came out of a branch, which may not run."""
    refusal = active.refusal
    if refusal is not None and sys.exc_info()[1] is refusal:
        unwound(since[0])
        raise refusal
    if depth() != since:
        unwound(since[0])
        raise TraceError(
            "except",
            "an exception was raised under a condition that is a tensor, and it is not known while tracing whether "
            "that holds. Choose the value with hf.where, or raise and catch outside of the compiled function.",
        )


def unwound(path: Path | None) -> None:
    """Forget the paths inside of ``path``, whose code an exception has left."""
    while active.path is not None and active.path is not path:
        left = active.path
        while left.sides:
            left.sides.pop().leave()
        active.path = left.parent


def is_staged(frame: FrameType) -> bool:
    """Whether it depends on a tensor that the present line of ``frame`` runs."""
    path = active.path
    while path is not None and path.frame is frame:
        if not path.is_plain:
            return True
        path = path.parent
    return False


def check_not_staged(frame: FrameType, what: str, fix: str) -> None:
    """Raise TraceError if it depends on a tensor whether the present line of ``frame`` runs."""
    if is_staged(frame):
        raise TraceError("convert", f"{what} under a condition that is a tensor. {fix}")


def check_can_be_undone(what: str) -> None:
    """Raise TraceError if it depends on a tensor whether ``what`` happens, which cannot be taken back."""
    if any(side.region is not None for side in _sides()):
        raise cannot_be_undone(what)


def cannot_be_undone(what: str) -> TraceError:
    return TraceError("convert", f"{what} under a condition that is a tensor. Do it outside of that block.")


def _sides() -> Iterator[Side]:
    """All that the running code is inside of."""
    path = active.path
    while path is not None:
        yield from path.sides
        path = path.parent


def check_takes(*values: Any) -> None:
    """Before something may take items from ``values``: raise TraceError if one is an iterator that was there before
    the branch, or of which it depends on a tensor how far a loop came."""
    for value in values:
        if value is None or not is_iterator(value):
            continue
        if any(value is one for one in active.spent):
            raise TraceError(
                "convert",
                f"how many items a loop took from a {type(value).__name__} depends on a tensor, and it is used again. "
                "Loop over a list instead.",
            )
        if any(side.witnesses is not None and id(value) in side.witnesses.iterators for side in _sides()):
            raise cannot_be_undone(f"items are taken from a {type(value).__name__}")


def takes_are_watched() -> bool:
    """Whether there are iterators to look out for."""
    return bool(active.spent) or any(side.witnesses is not None and side.witnesses.iterators for side in _sides())


def saw(value: Any) -> None:
    """A global was read, which was there before the branch."""
    for side in _sides():
        if side.witnesses is not None and (isinstance(value, BUFFERS) or is_iterator(value)):
            side.witnesses.add(value)
            return


def rebound(x: SymbolicTensor) -> None:
    """Before ``x[i] = v``: let it take a value of the branch that is traced."""
    trace = now().trace
    if active.path is None or x.is_given or trace is x._trace or not isinstance(trace, Region):
        return
    touch(place_of(x))
    x._node, x._trace = trace.node_of(x._stand_in()), trace
