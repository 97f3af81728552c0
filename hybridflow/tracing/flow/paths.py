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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array import elementwise
from hybridflow.compiler.ir import dtypes
from hybridflow.core import pytree
from hybridflow.core.blocks import block
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast, reshape_to, scalar
from hybridflow.errors import DivisionError, IndexRangeError, TraceError
from hybridflow.tracing import number_faults
from hybridflow.tracing.flow import blame
from hybridflow.tracing.flow.places import CONTAINERS, UNBOUND, Place, alias, place_of
from hybridflow.tracing.flow.values import ABSENT, Conflict, Joined, is_of
from hybridflow.tracing.flow.witnesses import BUFFERS, Witnesses, is_iterator, reaches
from hybridflow.tracing.nodes import emit_cond
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor
from hybridflow.tracing.trace import watchers


class Kind:
    """A way in which a side ends; ``number`` stands for it in programs."""

    __slots__ = ("number", "what")

    def __init__(self, what: str, number: int | None = None) -> None:
        self.what, self.number = what, next(active.numbers) if number is None else number


NORMAL = Kind("goes on", 0)
# No names of Python's: what a function returns, and the error that a side raises.
VALUE, ERROR = ".value", ".error"
Values = dict[str, Any]


class Guarded(NamedTuple):
    """Lines of a function whose errors something comes to know: ``except`` clauses, which catch the exceptions of the
    names ``catches`` (an empty one stands for whatever they may be); ``finally``, which runs after them; or the
    ``manager`` of a ``with``."""

    frame: FrameType
    first: int
    last: int
    catches: tuple[str, ...]
    names: tuple[str, ...] = ()  # what its blocks bind
    is_finally: bool = False
    is_group: bool = False  # except*
    manager: Any = None

    @property
    def place(self) -> str:
        line = self.first if self.manager is not None else self.first - 1
        return f"{os.path.basename(self.frame.f_code.co_filename)}:{line}"

    def covers(self, frame: FrameType) -> bool:
        return self.frame is frame and self.first <= frame.f_lineno <= self.last

    def may_catch(self, kind: type[BaseException]) -> bool:
        return any(_catches(self.frame, name, kind) for name in self.catches)

    def is_same(self, other: Guarded) -> bool:
        return self.frame is other.frame and self[1:4] == other[1:4] and self.is_finally == other.is_finally


class Raised(Kind):
    """A side raises an error, which comes to what guards the line."""

    __slots__ = ("guarded",)

    def __init__(self, guarded: Guarded) -> None:
        super().__init__("raises")
        self.guarded = guarded


class Bundle:
    """The ways in which something may have ended, and the values of each; ``code`` says which it was."""

    __slots__ = ("code", "common", "kinds")

    def __init__(self, kinds: dict[Kind, Values], code: Tensor | None = None) -> None:
        self.kinds, self.code = kinds, code
        self.common: Values = {}  # what names hold, however it ended, when something runs then

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

    __slots__ = ("_context", "_holders", "finals", "news", "region", "touched", "witnesses")

    def __init__(self, region: Region | None) -> None:
        self.region = region
        self.touched: dict[Any, tuple[Place, Any]] = {}  # the place, and what it held before
        self.finals: dict[Any, Any] = {}
        self.news: dict[int, Any] = {}  # objects that are made in it, by id
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

    def end(self, value: Any) -> Any:
        """A tensor with the value that the side, which was left, has given to a tensor in place."""
        place = place_of(value) if isinstance(value, SymbolicTensor) and self.has_touched(value) else None
        return value if place is None else self.finals[place.identity]

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
        self.sides.append(going)
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


class _Active(threading.local):
    """The innermost path of what this thread traces, and why names that branches bound have no value."""

    path: Path | None = None

    def __init__(self) -> None:
        self.conflicts: dict[tuple[CodeType, str], blame.Cause] = {}
        self.spent: list[Any] = []  # iterators of which it depends on a tensor how far loops came
        self.doubles: list[tuple[FrameType, tuple[Any, ...]]] = []
        self.changes = 0  # how often something was changed in place
        self.refusal: TraceError | None = None  # nobody catches it
        self.passing: BaseException | None = None  # what came through a ``finally`` that ran for it
        self.guarded: list[Guarded] = []  # what may come to know of an error, see ``guard``
        self.appended: tuple[Any, ...] = ()  # lists that turns of a loop append to, and see nothing of
        self.numbers = itertools.count(1)  # of kinds: the same ones in each trace of a function


active = _Active()


@block
def converting() -> Iterator[None]:
    """One run of converted code.  What is wrong with names that branches bind is said when they are read."""
    before = active.path, active.conflicts, active.numbers, active.spent, active.doubles, active.appended
    active.path, active.conflicts, active.numbers, active.spent, active.doubles = None, {}, itertools.count(1), [], []
    active.appended = ()
    guarded, active.guarded = active.guarded, list(active.guarded)
    try:
        yield
    except Exception as error:
        begun = _began(error)
        explained = blame.explained(begun, active.conflicts) if isinstance(begun, NameError) else begun
        if explained is error:
            raise
        raise explained from None
    finally:
        active.path, active.conflicts, active.numbers, active.spent, active.doubles, active.appended = before
        active.guarded, active.refusal, active.passing = guarded, None, None


def passed(path: Path | None) -> None:
    """A ``finally`` begins, which stood in ``path``."""
    error = sys.exc_info()[1]
    if error is not None:
        unwound(path)
        if isinstance(error, TraceError):
            active.passing = active.passing or error


def _began(error: Exception) -> Exception:
    """The error with which it began: what could not be traced, if a ``finally`` that ran for it has failed in turn.
    It finds names whose values were those of the blocks that were given up."""
    earlier: BaseException | None = error
    while earlier is not None and earlier is not active.passing:
        earlier = earlier.__context__
    return earlier if isinstance(earlier, TraceError) else error


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


_MAKING = ("__init__", "__post_init__")


def touch_attribute(value: Any, name: str, frame: FrameType) -> None:
    """``frame`` is about to change an attribute.  What an object is given while it is made belongs to the side that
    makes it, and nobody else knows it."""
    path = active.path
    while path is not None and not path.sides:
        path = path.parent
    place = place_of(value, name)
    if path is None or place is None:
        return
    news = path.sides[-1].news
    if id(value) in news:
        return
    if frame.f_code.co_name in _MAKING and _first(frame) is value and _first(path.frame) is not value:
        news[id(value)] = value
    else:
        touch(place)


def _first(frame: FrameType) -> Any:
    """The first argument of a function."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


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
    if any(one.covers(frame) and one.manager is None for one in active.guarded):  # errors are yet to be caught
        block.bundle = block.bundle or Bundle({block.returned: {**values_of(frame, names), VALUE: value}})
        return stays
    return closed(block, value)


def closed(path: Path, value: Any) -> Any:
    """What a function returns that ends in its outermost path; what it raises comes to the path around it."""
    kind = path.returned
    bundle = path.settled(path.bundle or Bundle({kind: {VALUE: value}}), {})
    active.path = path.parent
    if bundle.has_raised:
        return None
    if kind not in bundle.kinds:
        raise TraceError(
            "raise",
            f"{path.frame.f_code.co_name} raises errors on all of its ways, and it depends on a tensor which of them "
            "is caught. Raise them in the function that catches them.",
        )
    if len(bundle.kinds) > 1:
        assert path.parent is not None
        values = path.parent.take(renamed(bundle, {kind: NORMAL}))
        found = values and values[VALUE]
    else:
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
    given = given_back(values, names, frame, blame.here(frame, "if"))
    bundle.common = dict(zip(names, given))
    return given


def changed(frame: FrameType, bundle: Bundle) -> None:
    """What began with ``common`` is over: what it bound is what names hold now, however the block was left."""
    now_held = values_of(frame, list(bundle.common))
    bound = {name: value for name, value in now_held.items() if value is not bundle.common[name]}
    for values in bundle.kinds.values():
        values.update(bound)


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


def resume(frame: FrameType, bundle: Bundle, names: Sequence[str]) -> list[Any]:
    """Go on after ``pause``."""
    taken = path_in(frame).take(bundle)
    return given_back(taken or {}, names, frame, blame.here(frame, "if"))


def guard(guarded: Guarded) -> None:
    """Something comes to know of errors from now on."""
    for k, known in enumerate(active.guarded):
        if known.is_same(guarded):
            active.guarded[k] = guarded
            return
    active.guarded.append(guarded)


is_converted: list[Callable[[FrameType], bool]] = []
"""Whether the code of a frame is converted, or stands for what converted code does: ``jit`` adds what knows that."""


def catcher(kind: type[BaseException], raising: FrameType) -> Guarded | None:
    """What is the first to know of an exception that ``raising`` raises, if anything is.  Raises TraceError if that
    cannot be told while tracing, or if code that is not converted lies in between."""
    frame: FrameType | None = raising
    managers: list[Guarded] = []
    inside: list[FrameType] = []
    while frame is not None and active.guarded:
        own = [one for one in active.guarded if one.covers(frame)]
        for one in sorted(own, key=lambda one: one.last - one.first):
            if one.manager is not None:
                managers.append(one)
                if _suppresses(one.manager, kind):
                    raise _not_caught(kind, one, "it is suppressed")
            elif one.is_finally or one.may_catch(kind):
                _check_way(kind, one, inside, managers)
                return one
        inside.append(frame)
        frame = frame.f_back
    return None


def _suppresses(manager: Any, kind: type[BaseException] | None) -> bool:
    if not isinstance(manager, contextlib.suppress):
        return False
    return kind is None or issubclass(kind, manager._exceptions)  # type: ignore[attr-defined]


def _check_way(kind: Any, one: Guarded, inside: Sequence[FrameType], managers: Sequence[Guarded]) -> None:
    """Raise TraceError if an exception cannot come to ``one`` through what lies in between."""
    if one.is_group:
        raise _not_caught(kind, one, "it is caught by except*")
    for between in managers:
        if not type(between.manager).__module__.startswith("hybridflow."):
            what = f"it is caught, and the with at {between.place} knows of it,"
            raise _not_caught(kind, one, what)
    for frame in inside:
        if not any(converted(frame) for converted in is_converted):
            raise _not_caught(kind, one, f"it is caught outside of {frame.f_code.co_name}, which is no converted code,")


def _not_caught(kind: type[BaseException] | None, one: Guarded, what: str) -> TraceError:
    word = "with" if one.manager is not None else "try"
    name = "an error" if kind is None else kind.__name__
    refusal = TraceError(
        word,
        f"whether {name} is raised depends on a tensor, and {what} after the {word} at {one.place}. Choose "
        "values with if or hf.where, raise it in an if of the function that catches it, or catch it outside of the "
        "compiled function.",
    )
    active.refusal = refusal
    return refusal


def check_not_caught(kind: type[BaseException] | None, finally_too: bool = True) -> None:
    """Raise TraceError if somebody may catch an exception (any one if no kind is known) that the program, once it runs,
    raises where the code is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and active.guarded:
        for one in active.guarded:
            if not one.covers(frame):
                continue
            if one.is_finally and finally_too:
                raise _not_caught(kind, one, "a finally block runs")
            if (one.catches if kind is None else one.may_catch(kind)) or _suppresses(one.manager, kind):
                raise _not_caught(kind, one, "it is caught")
        frame = frame.f_back


def leave_by(guarded: Guarded, path: Path, error: Any) -> None:
    """The running block, which is ``path``, is left by an error that comes to what guards it."""
    frame = guarded.frame
    path.bundle = Bundle({Raised(guarded): {**values_of(frame, guarded.names), ERROR: error}})
    _have_path(frame)


def _have_path(frame: FrameType) -> None:
    """See to it that a frame which runs has a path."""
    inside, running = set(), sys._getframe(1)
    while running is not frame and running is not None:
        inside.add(running)
        running = running.f_back  # type: ignore[assignment]
    above, path = None, active.path
    while path is not None and path.frame in inside:
        above, path = path, path.parent
    if path is not None and path.frame is frame:
        return
    made = Path(frame, path, None)
    if above is None:
        active.path = made
    else:
        above.parent = made


number_faults.guards.append(check_not_caught)


def _check_op(op: Any) -> None:
    """Raise TraceError if the error that an op may raise when the program runs would be caught."""
    if active.guarded and op.name not in ("require", "cond", "while", "scan", "call"):
        is_division = op.name in ("floor_divide", "remainder")
        check_not_caught(DivisionError if is_division else IndexRangeError, finally_too=False)


watchers.append(_check_op)


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
    error = sys.exc_info()[1]
    if isinstance(error, TraceError) and error is active.refusal:
        unwound(since[0])
        raise error
    while active.path is not None and active.path is not since[0] and active.path.is_plain:
        active.path.drop()
    if depth() != since:
        unwound(since[0])
        if isinstance(error, TraceError):
            raise error
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
    x._node, x._trace = trace.node_of(alias(x)), trace
