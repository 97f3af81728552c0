"""Lists whose length a tensor decides: what is in them while tracing.

Such a list goes on to be one of Python's.  Somewhere in it is a ``DynamicList``: so many items, of which the program
knows the number, in rows of tensors.  Items before and behind it are what they are: Python appends to the list as ever.
Where branches join, and where an iteration of a loop ends, those behind it go into the rows (``folded``).
``dynamic_list_reads`` in ``jit.guards`` has what code asks of such lists.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array import elementwise, shapes
from hybridflow.array.creation import arange
from hybridflow.array.indexing import getitem, take
from hybridflow.array.reductions import count_nonzero
from hybridflow.array.selection import boolean_mask
from hybridflow.array.setitem import updated
from hybridflow.autograph.runtime import object_trees
from hybridflow.autograph.runtime.exception_handlers import without_handlers
from hybridflow.autograph.runtime.mutable_locations import CONTAINERS, location_of
from hybridflow.autograph.runtime.mutation_check import reachable_objects
from hybridflow.autograph.runtime.phi import as_typed, same_constant, zeros
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.type_mismatch import ATOMS
from hybridflow.autograph.runtime.undo_log import enclosing_branches, logged_write
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import TensorType, same_extents
from hybridflow.compiler.ops.op_table import Kind
from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.promotion import Typed, result_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast, scalar
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.tracing import data_dependent_sizes
from hybridflow.tracing.control_nodes import emit_cond
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_number import Weak, number_of, number_tensor, weak_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_STAGE = "convert"


@pytree.declare_leaf
class Form:
    """What the items of a list have in common: how they are nested, and what each leaf is: the type of a tensor, a kind
    of number, or a value."""

    __slots__ = ("leaves", "structure")

    def why_no_result(self) -> BaseException:
        """Why a compiled function cannot return it, but where its sizes are known."""
        return data_dependent_sizes.SizesWantedError()

    def __init__(self, leaves: tuple[Any, ...], structure: pytree.Structure) -> None:
        self.leaves, self.structure = leaves, structure

    @classmethod
    def of(cls, item: object) -> Form | None:
        """The form of one item; None for what has to stay the object that it is."""
        if any(type(part) not in CONTAINERS for part in object_trees.changeable_parts([item]).values()):
            return None
        leaves, structure = object_trees.flatten(item)
        kinds = [_kind_of(leaf) for leaf in leaves]
        return None if None in kinds else cls(tuple(kinds), structure)

    def merge(self, other: Form | None) -> Form | None:
        """What holds items of both; one of the two where that does."""
        if self is other:
            return self
        if other is None or self.structure != other.structure:
            return None
        leaves = tuple(map(_joined_kinds, self.leaves, other.leaves))
        if None in leaves:
            return None
        for one in (self, other):
            if all(map(_same_kinds, leaves, one.leaves)):
                return one
        return Form(leaves, self.structure)

    @property
    def numbers(self) -> bool:
        """Whether there are numbers of Python's in an item."""
        return any(isinstance(kind, Weak) for kind in self.leaves)

    @property
    def types(self) -> list[TensorType]:
        """Those of the tensors in an item."""
        return [_type_of(kind) for kind in self.leaves if not isinstance(kind, _Value)]

    def tensors(self, item: object) -> list[Tensor]:
        """The tensors in an item of the form."""
        result = []
        for kind, leaf in zip(self.leaves, object_trees.flatten(item)[0]):
            if isinstance(kind, Weak):
                result.append(kind.tensor(leaf))
            elif isinstance(kind, TensorType):
                result.append(as_typed(leaf, kind.dtype))
        return result

    def item(self, tensors: Sequence[Tensor]) -> Any:
        rest = iter(tensors)
        leaves = []
        for kind in self.leaves:
            if isinstance(kind, _Value):
                leaves.append(kind.value)
            else:
                leaves.append(kind.scalar(next(rest)) if isinstance(kind, Weak) else next(rest))
        return pytree.unflatten(self.structure, leaves)


class _Value:
    """A value that is the same in each item."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def _kind_of(leaf: object) -> TensorType | Weak | _Value | None:
    weak = weak_of(leaf)
    if weak is not None:
        return weak
    if isinstance(leaf, Tensor):
        return leaf.type
    return _Value(leaf) if isinstance(leaf, ATOMS) else None


def _type_of(kind: TensorType | Weak) -> TensorType:
    return TensorType((), kind.dtype) if isinstance(kind, Weak) else kind


def _joined_kinds(a: Any, b: Any) -> Any:
    if isinstance(a, _Value) or isinstance(b, _Value):
        same = isinstance(a, _Value) and isinstance(b, _Value) and same_constant(a.value, b.value)
        return a if same else None
    if isinstance(a, Weak) and isinstance(b, Weak):
        return a.joined(b)
    if isinstance(a, Weak) or isinstance(b, Weak):
        weak, type = (a, b) if isinstance(a, Weak) else (b, a)
        return type if type.shape == () and weak.kind is not None and _can_hold_number(type.dtype, weak.kind) else None
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a if a.dtype == b.dtype and same_extents(a.shape, b.shape) else None
    return None


def _can_hold_number(dtype: np.dtype[Any], kind: type) -> bool:
    """Whether a tensor of a dtype holds a number of Python's."""
    return result_dtype(_STAGE, [Typed(dtype), kind(1)]) == dtype


def _same_kinds(a: object, b: object) -> bool:
    return type(a) is type(b) and (isinstance(a, _Value) or a == b or a is b)


@pytree.declare_leaf
class Room:
    """Where a loop makes a list longer: how many items there is room for, see ``data_dependent_sizes``."""

    __slots__ = ("capacity", "number")

    def __init__(self, number: int, capacity: object) -> None:
        self.number, self.capacity = number, capacity


class DynamicList(NamedTuple):
    """Items of a list: the first ``count`` rows of ``stacks``, a tensor for each in an item.  ``room`` is that of the
    loop which made it, None where the list has grown in branches alone: there may be as many as there are rows.

    ``count`` is a tensor; an extent, and the number of rows, after the program was told how many there are.
    """

    count: Any
    stacks: tuple[Tensor, ...]
    form: Form
    room: Room | None
    rows: Any

    @staticmethod
    def in_messages() -> str:
        return "items whose number a tensor decides"

    @property
    def length(self) -> Tensor:
        """The number of items as a tensor."""
        return self.count if isinstance(self.count, Tensor) else scalar(self.count, dtypes.int64, _STAGE)

    def item(self, position: object) -> Any:
        """The item of a row that there is."""
        with without_handlers():
            return self.form.item([getitem(x, position) for x in self.stacks])

    def replace(self, position: object, item: object) -> DynamicList:
        """With another item in a row that there is."""
        tensors = self.form.tensors(item)
        with without_handlers():
            return self._replace(stacks=tuple([updated(x, position, new) for x, new in zip(self.stacks, tensors)]))


def note() -> None:
    """From now on there may be such lists."""
    active.grown = True


def is_dynamic(value: object) -> bool:
    """Whether a value is a list whose length a tensor decides."""
    return type(value) is list and any(type(item) is DynamicList for item in value)


def parts(items: Sequence[Any]) -> tuple[list[Any], DynamicList | None, list[Any]]:
    """The items before the ``DynamicList``, it, and those behind it."""
    k = next((k for k, item in enumerate(items) if type(item) is DynamicList), None)
    if k is None:
        return list(items), None, []
    return list(items[:k]), items[k], list(items[k + 1 :])


def _most(items: Sequence[Any]) -> Any:
    """How many items there are at most, as far as is known."""
    return sum(item.rows if type(item) is DynamicList else 1 for item in items)


def _form_of(*lists: Sequence[Any], form: Form | None = None) -> Form | None:
    """The form of all items, and of those of the form ``form``; None where they have no common one."""
    for item in (item for items in lists for item in items):
        item_form = item.form if type(item) is DynamicList else Form.of(item)
        form = item_form if form is None else form.merge(item_form)
        if form is None:
            return None
    return form


def empty(form: Form, room: Room | None, rows: Any) -> DynamicList:
    note()
    none = scalar(0, dtypes.int64, _STAGE)
    stacks = tuple([zeros(TensorType((rows, *type.shape), type.dtype)) for type in form.types])
    return DynamicList(none, stacks, form, room, rows)


def fold_items(items: Sequence[Any], form: Form, room: Room | None, rows: object) -> DynamicList:
    """All items, among which there may be some ``DynamicList``, as one with so many rows."""
    _check_unchanged(items)
    folded: DynamicList | None = None
    with without_handlers():  # there are rows for all of them
        for run in _runs(items):
            folded = _first_run(run, form, room, rows) if folded is None else _with_more(folded, run)
    return empty(form, room, rows) if folded is None else folded


def _runs(items: Sequence[Any]) -> list[Any]:
    """The ``DynamicList`` among items, and lists of what is between."""
    result: list[Any] = []
    for item in items:
        if type(item) is DynamicList:
            result.append(item)
        elif result and type(result[-1]) is list:
            result[-1].append(item)
        else:
            result.append([item])
    return result


def _first_run(run: Any, form: Form, room: Room | None, rows: Any) -> DynamicList:
    """The first run, with ``rows`` rows."""
    if type(run) is DynamicList:
        stacks = [_long(cast(x, type.dtype), rows) for x, type in zip(run.stacks, form.types)]
        if room is not None and run.room is not room and not isinstance(run.rows, int):
            data_dependent_sizes.check_room(room.number, run.length, room.capacity)
        return DynamicList(run.length, tuple(stacks), form, room, rows)
    columns = zip(*map(form.tensors, run))
    if room is not None and isinstance(rows, int) and len(run) > rows:
        raise data_dependent_sizes.SizeKnownError(data_dependent_sizes.ROOM, room.number, len(run))
    stacks = [_long(shapes.stack(list(column)), rows) for column in columns]
    note()
    return DynamicList(scalar(len(run), dtypes.int64, _STAGE), tuple(stacks), form, room, rows)


def _long(x: Tensor, rows: Any) -> Tensor:
    """A stack with so many rows."""
    extent = x.shape[0]
    if same_extents((extent,), (rows,)):
        return x
    if isinstance(extent, int) and isinstance(rows, int) and extent > rows:
        return getitem(x, slice(0, rows))
    return shapes.concat([x, zeros(TensorType((rows - extent, *x.shape[1:]), x.dtype))])


def _with_more(grown: DynamicList, run: Any) -> DynamicList:
    """With the items of a run behind it, for which there are rows."""
    form, room, count = grown.form, grown.room, grown.length
    more = run.length if type(run) is DynamicList else scalar(len(run), dtypes.int64, _STAGE)
    total = elementwise.add(count, more)
    if room is not None:
        data_dependent_sizes.check_room(room.number, total, room.capacity)
    if type(run) is DynamicList:
        at = elementwise.subtract(arange(grown.rows), count)
        at = elementwise.clip(at, 0, run.rows - 1)
        behind = elementwise.greater_equal(arange(grown.rows), count)
        stacks = []
        for x, y in zip(grown.stacks, run.stacks):
            mask = shapes.reshape(behind, (grown.rows, *[1] * (len(x.shape) - 1)))
            stacks.append(elementwise.where(mask, take(cast(y, x.dtype), at, axis=0), x))
        return DynamicList(total, tuple(stacks), form, room, grown.rows)
    stacks = list(grown.stacks)
    for k, item in enumerate(run):
        place = elementwise.add(count, k) if k else count
        stacks = [updated(x, place, new) for x, new in zip(stacks, form.tensors(item))]
    return DynamicList(total, tuple(stacks), form, room, grown.rows)


def to_array(items: Sequence[Any]) -> DynamicList | None:
    """All items of a list as one ``DynamicList``; None where they have no common form."""
    if len(items) == 1 and type(items[0]) is DynamicList:
        return items[0]
    form, room = _form_of(items), _room_of(items)
    if form is None:
        return None
    return fold_items(items, form, room, _most(items) if room is None else room.capacity)


def _room_of(items: Sequence[Any]) -> Room | None:
    return next((item.room for item in items if type(item) is DynamicList and item.room is not None), None)


def select_items(items: Sequence[Any], kept: Sequence[Any]) -> list[Any]:
    """The items that are kept, of which tensors decide."""
    first = 0
    while first < len(items) and kept[first] is True:
        first += 1
    rest = items[first:]
    form = _form_of(rest)
    if form is None:
        raise no_form()
    mask = shapes.stack([scalar(x, dtypes.bool_, _STAGE) if isinstance(x, bool) else x for x in kept[first:]])
    whole_rest = fold_items(rest, form, None, len(rest))
    stacks = [boolean_mask(x, mask, size=len(rest)) for x in whole_rest.stacks]
    count = cast(count_nonzero(mask), dtypes.int64)
    return [*items[:first], whole_rest._replace(count=count, stacks=tuple(stacks))]


def no_form() -> TraceError:
    return ConcretizationError(
        _STAGE,
        "a list whose length depends on a tensor has items of several types. Let them be tensors of one dtype and "
        "shape, numbers, or tuples of such.",
    )


# ---- branches


def may_grow(holder: object) -> bool:
    """Whether something is a list of no other class that the trace has made: nobody else sees what is in it while
    tracing."""
    return type(holder) is list and object_trees.is_created_while_tracing(holder)


def align(
    a: Sequence[Any], b: Sequence[Any], within: Callable[[int], Any], views: Sequence[Any]
) -> tuple[list[Any], list[Any]] | None:
    """The items of a list on two sides, which differ in number, as such that can be joined one by one; None where they
    stay as they are.  ``views`` are the sides, which were left: what they changed in items is seen through these."""
    if not differ(a, b):
        return None
    first = 0
    while first < min(len(a), len(b)) and type(a[first]) is not DynamicList and _is_one(a[first], b[first]):
        first += 1
    rests = a[first:], b[first:]
    form: Form | None = None
    for view, rest in zip(views, rests):
        if rest:
            with view.final_state():
                form = _form_of(rest, form=form)
            if form is None:
                break
    rooms = [room for room in map(_room_of, rests) if room is not None]
    if form is None or (len(rooms) == 2 and rooms[0] is not rooms[1]):
        return None
    room = rooms[0] if rooms else None
    rows = room.capacity if room is not None else max(map(_most, rests))
    aligned = []
    for side, rest in enumerate(rests):
        with within(side), views[side].final_state():
            aligned.append([*a[:first], fold_items(rest, form, room, rows)])
    return aligned[0], aligned[1]


def _is_one(a: object, b: object) -> bool:
    return a is b or same_constant(a, b)


def differ(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether the items of a list on two sides differ in number."""
    if len(a) != len(b):
        return True
    return active.grown and any(
        (type(x) is DynamicList) is not (type(y) is DynamicList)
        or (type(x) is DynamicList and not (x.form is y.form and x.room is y.room and same_constant(x.rows, y.rows)))
        for x, y in zip(a, b)
    )


# ---- loops


def widen(start: list[Any], end: list[Any], iterations: object) -> list[Any] | None:
    """What a list is before a loop, of which an iteration left ``end``, so that it has the form of all that iterations
    leave; None where nothing has.  ``iterations`` is how many there are, None where that is not known."""
    form, first = _form_of(start, end), 0
    if form is None:
        while first < min(len(start), len(end)) and _is_one(start[first], end[first]):
            first += 1
        form = _form_of(start[first:], end[first:])
    if form is None:
        return None
    room = _room_of(start)
    if room is None:
        inner = _room_of(end)
        initial: Any = data_dependent_sizes.INITIAL_ROOM
        if iterations is not None and inner is None:
            initial = _most(start) + iterations * max(_most(end) - _most(start), 0)
        else:
            most = _most(start)
            initial = max(initial, 2 * most) if isinstance(most, int) else 2 * most
        _check_regions()
        room = Room(*data_dependent_sizes.room(initial))
    items = [*start[:first], fold_items(start[first:], form, room, room.capacity)]
    return None if not differ(items, start) else items


def _check_regions() -> None:
    """Raise TraceError in what is traced once for many examples, whose lists have several lengths."""
    known = [side.region for side in enclosing_branches()]
    trace: object = now().trace
    while isinstance(trace, SubTrace):
        if not any(trace is region for region in known):
            raise data_dependent_sizes.SizesWantedError.of_list(trace.name)
        trace = trace.parent


def fit_to(model: Sequence[Any], end: Sequence[Any]) -> Any:
    """``end`` as a list that an iteration found as ``model``, as far as it can be."""
    before, grown, _ = parts(model)
    assert grown is not None
    if grown.room is None or len(end) < len(before) or any(type(item) is DynamicList for item in end[: len(before)]):
        return end
    rest = list(end[len(before) :])
    form = _form_of([grown], rest)
    if form is None or form is not grown.form:
        return end
    return [*end[: len(before)], fold_items(rest, form, grown.room, grown.rows)]


# ---- what is read of them


def length(items: Sequence[Any]) -> Any:
    """How many items there are, as a number of Python's."""
    before, grown, behind = parts(items)
    assert grown is not None
    if not isinstance(grown.count, Tensor):
        return grown.count + len(before) + len(behind)
    if isinstance(grown.count, SymbolicTensor):
        active.lengths.append(grown.count._node)
    return number_of(grown.count) + (len(before) + len(behind))


def is_of_length(value: SymbolicTensor) -> bool:
    """Whether a value is computed of nothing but lengths of lists, and of constants."""
    known = {id(node) for node in active.lengths}
    waiting, result = [value._node], False
    for _ in range(_MOST_NODES):
        if not waiting:
            return result
        node = waiting.pop()
        if id(node) in known:
            result = True
        elif node.is_parameter or node.may_raise or node.op.kind not in (Kind.ELEMENTWISE, Kind.VIEW, Kind.CREATE):
            return False
        else:
            waiting += node.inputs
    return False


_MOST_NODES = 32


def describe_length(count: Tensor) -> Any:
    """An integer of which the program is told what it is."""
    _check_regions()
    return data_dependent_sizes.length(count, _count_outside)


def note_taken(value: object) -> Any:
    """An item is taken out of rows, or goes into them: it is another object there, so that nobody may change it."""
    leaves = object_trees.flatten(value)[0]
    active.rowed.extend(leaf for leaf in leaves if isinstance(leaf, Tensor))
    active.rowed.extend(object_trees.changeable_parts([value]).values())
    return value


def _check_unchanged(items: Sequence[Any]) -> None:
    for item in items:
        if type(item) is DynamicList:
            continue
        for part in (*object_trees.flatten(item)[0], *object_trees.changeable_parts([item]).values()):
            if any(part is one for one in active.changed):
                raise _is_changed(part)
        note_taken(item)


def check_change(value: object) -> None:
    """Before a tensor is changed in place.  Raises TraceError where it is an item of a list whose length a tensor
    decides, or may be one in another iteration of the loop around."""
    if is_in_loop():
        active.changed.append(value)
    if any(value is one for one in active.rowed):
        raise _is_changed(value)


def _is_changed(value: object) -> TraceError:
    return ConcretizationError(
        _STAGE,
        f"a {type(value).__name__ if not isinstance(value, Tensor) else 'tensor'} is changed in place, and is an item "
        "of a list whose length depends on a tensor. Append a copy, +x, or make a new one instead of changing it.",
    )


def position(index: object, count: Tensor) -> Tensor:
    """An index of Python's, counted from the end where it is negative, as a row."""
    at = number_tensor(index, int) if not isinstance(index, Tensor) or weak_of(index) is not None else index
    at = cast(shapes.reshape(at, ()), dtypes.int64)
    return elementwise.where(elementwise.less(at, 0), elementwise.add(at, count), at)


# ---- lists whose length the program is told


def is_in_loop() -> bool:
    """Whether the code is in a loop of the program, whose iterations may find lists of several lengths."""
    return any(side.region is not None and side.condition is None for side in enclosing_branches())


def settle(values: list[Any]) -> None:
    """Let a list have its items: as many as the program says, or, where any number is served, so many rows."""
    items = _merge_runs(values)
    before, grown, behind = parts(items)
    if grown is None:
        return
    if isinstance(grown.count, Tensor):
        count = describe_length(grown.count)
        stacks = tuple([getitem(x, slice(0, count)) for x in grown.stacks])
        grown = DynamicList(count, stacks, grown.form, None, count)
    rows = [grown] if not isinstance(grown.count, int) else [note_taken(grown.item(k)) for k in range(grown.count)]
    place = location_of(values)
    assert place is not None
    logged_write(place, [*before, *rows, *behind])


def _merge_runs(items: list[Any]) -> list[Any]:
    """The items with one ``DynamicList`` in the place of several."""
    if sum(type(item) is DynamicList for item in items) < 2:
        return items
    array = to_array(items)
    if array is None:
        raise no_form()
    return [array]


def settle_all(values: list[Any]) -> None:
    """Let a list have its items, one by one: the program serves this number of them."""
    settle(values)
    before, grown, behind = parts(values)
    if grown is not None:
        count = operator.index(grown.count)
        place = location_of(values)
        assert place is not None
        logged_write(place, [*before, *(note_taken(grown.item(k)) for k in range(count)), *behind])


class Packed(NamedTuple):
    """Items of a list in the result of a program that serves any number of them: they are taken out of the ``stacks``
    when the program has run."""

    stacks: tuple[Tensor, ...]
    form: PackedForm


class PackedForm:
    """The form of items that programs return, which is no part of a trace."""

    __slots__ = ("form",)

    def __init__(self, form: Form) -> None:
        self.form = form


def pack(result: object) -> bool:
    """Let all lists in a result have their items; whether some of those are ``Packed``."""
    has_dynamic = False
    for values in reachable_objects([result]) if active.grown else ():
        if not is_dynamic(values):
            continue
        settle(values)
        before, grown, behind = parts(values)
        if grown is not None and not grown.stacks:
            settle_all(values)
        elif grown is not None:
            values[:] = [*before, Packed(grown.stacks, PackedForm(grown.form)), *behind]
            has_dynamic = True
    return has_dynamic


def unpack(result: object) -> Any:
    """A result of ``pack``, with the items of its lists."""
    for values in reachable_objects([result]):
        if type(values) is list and any(type(item) is Packed for item in values):
            values[:] = [each for item in values for each in (_items_of(item) if type(item) is Packed else (item,))]
    return result


def _items_of(packed: Packed) -> list[Any]:
    form = packed.form.form
    return [form.item([x[k] for x in packed.stacks]) for k in range(packed.stacks[0].shape[0])]


def materialize_lists(value: object) -> Any:
    """A value in which all lists have their items."""
    if active.grown:
        for part in reachable_objects([value]):
            if is_dynamic(part):
                settle_all(part)
    return value


def _count_outside(count: Tensor) -> Tensor:
    """``count`` in the trace of the function itself; 1 where the code that has it is not come to."""
    if not data_dependent_sizes.branches.can_leave():
        raise not_known()
    for side in [side for side in _branches_inside_out() if side.region is not None]:
        region = side.region
        pred, truth = side.condition
        side.leave()
        other = SubTrace("a branch")
        with other.entered():
            none = scalar(1, dtypes.int64, _STAGE)
        both = [(region, count), (other, none)]
        regions, counts = zip(*(both if truth else reversed(both)))
        trace: Any = now().trace
        (count,) = emit_cond(SymbolicTensor(pred, trace), regions, [[x] for x in counts])
    return count


class _Branches(data_dependent_sizes.Branches):
    def can_leave(self) -> bool:
        sides = [side for side in _branches_inside_out() if side.region is not None]
        trace: object = now().trace
        for side in sides:
            if side.condition is None or side.region is not trace:
                return False
            trace = trace.parent
        return not isinstance(trace, SubTrace)

    def leave(self, count: Tensor) -> Tensor:
        return _count_outside(count)


data_dependent_sizes.branches = _Branches()


def _branches_inside_out() -> list[Any]:
    result = []
    path = active.scope
    while path is not None:
        result += reversed(path.branches)
        path = path.parent
    return result


def not_known() -> TraceError:
    return ConcretizationError(
        _STAGE,
        "in a loop that depends on a tensor something needs the length of a list that depends on a tensor, too. Index "
        "it, loop over it, or ask for len(): or stack it after the loop.",
    )
