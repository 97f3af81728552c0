"""What a loop carries from iteration to iteration: the values of its names, and of places that its body changes.

Types are found by tracing.  At first tensors are carried with their types, and everything else is taken to be the same
in each iteration.  A number of Python's that an iteration changes becomes a tensor that counts as a Python number, or
takes the dtype of the tensor that came out.  A tensor that no iteration changes is not carried: it is read as all else
that was there before the loop.  What has no common type is a ``TypeMismatch``: it has no value when an iteration
begins, and that matters only to who reads it there."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.autograph.runtime import dynamic_list, object_trees
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.choices import MOST_OPTIONS, Choice, is_choice, options_of
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, Location, is_unbound
from hybridflow.autograph.runtime.phi import (
    as_typed,
    can_be_choice,
    can_merge,
    code_of,
    is_traced_in,
    same_constant,
    zeros,
)
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.type_mismatch import TypeMismatch
from hybridflow.compiler.ir.types import TensorType, same_extents
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.errors import TraceError
from hybridflow.tracing.loop_fixed_point import is_weak, widened_dtype
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_number import Weak, weak_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

IsNew = Callable[[Any], bool]


class _Leaf:
    """One tensor that is carried; ``weak`` says so where it stands for a scalar without a say in dtypes."""

    __slots__ = ("dtype", "input", "shape", "start", "weak")

    def __init__(self, start: Any, dtype: np.dtype[Any], shape: Any, weak: Weak | None) -> None:
        self.start, self.dtype, self.shape, self.weak = start, dtype, shape, weak
        self.input: SymbolicTensor | None = None

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.dtype)

    @property
    def is_counted(self) -> bool:
        """Whether it is a number of Python's that iterations change."""
        return self.weak is not None and not isinstance(self.start, SymbolicTensor)

    def typed(self, value: object) -> Tensor:
        """A value that the leaf takes as a tensor of its type, in the trace that goes on."""
        return self.weak.tensor(value) if self.weak is not None else as_typed(value, self.dtype)

    def result(self, tensor: Tensor) -> Any:
        return self.weak.scalar(tensor) if self.weak is not None else tensor

    def at_start(self) -> Any:
        """What an iteration finds."""
        return self.start if self.input is None else self.result(self.input)


def _leaf_of(value: object) -> Any:
    if isinstance(value, Tensor):
        weak = weak_of(value)
        return _Leaf(value, value.dtype if weak is None else weak.dtype, value.shape, weak)
    return value


class _LoopVar:
    """One name or place: how its value is nested, and its leaves; those that are not carried are values."""

    __slots__ = (
        "__weakref__",
        "_ends",
        "_fits",
        "_is_known",
        "_last",
        "_max_iterations",
        "_may_choose",
        "_may_grow",
        "_opaque",
        "_region",
        "conflict",
        "current",
        "leaves",
        "start",
        "structure",
    )

    def __init__(
        self, start: Any, may_choose: bool, iterations: Any = None, is_known: bool = False, may_grow: bool = True
    ) -> None:
        self.start, self._may_choose, self._may_grow = start, may_choose, may_grow
        self._max_iterations, self._is_known = iterations, is_known
        self.current = start  # what the iteration that is traced finds
        self._region: SubTrace | None = None  # of that iteration
        self._last: Any = UNBOUND  # what the iteration before left, where names held nothing at first
        self._fits: tuple[Any, Any] | None = None  # what an iteration left, and that as what is carried
        self._ends: list[Any] | None = None  # the objects that the latest iteration left
        self.conflict: TypeMismatch | None = None
        # Containers inside stay the objects that they are, as long as iterations leave the same ones: if these change,
        # they
        # are places of their own.
        self._flatten(object_trees.changeable_parts(start))

    def _flatten(self, whole: dict[int, Any]) -> None:
        self._opaque = whole
        leaves, self.structure = object_trees.flatten(self.start, whole)
        self.leaves = list(map(_leaf_of, leaves))

    def _replaces(self, ends: Sequence[Any], structure: pytree.Structure) -> bool:
        """Whether an iteration leaves another container in the place of one inside."""
        return structure != self.structure or any(
            id(leaf) in self._opaque and leaf is not end for leaf, end in zip(self.leaves, ends)
        )

    def carried_leaves(self) -> list[_Leaf]:
        return [] if self.conflict is not None else [leaf for leaf in self.leaves if isinstance(leaf, _Leaf)]

    def begin(self, values: object, region: SubTrace) -> Any:
        """What an iteration in ``region`` finds, given the next of ``values`` for each carried leaf."""
        self._region, self._fits = region, None
        self.current = self.built(values)
        if self.current is self.conflict and self.start is UNBOUND and not is_unbound(self._last):
            self.current = MaybeUnbound(self, region)
        return self.current

    def built(self, values: Any) -> Any:
        """The value, with the next of ``values`` for each carried leaf."""
        if self.conflict is not None:
            return self.conflict
        if not self.carried_leaves():
            return self.start
        return pytree.unflatten(
            self.structure, [leaf.result(next(values)) if isinstance(leaf, _Leaf) else leaf for leaf in self.leaves]
        )

    def alias_pairs(self, merged: object, is_new: IsNew | None) -> list[tuple[Any, ...]]:
        """The objects in what ``built`` made, each with what it is in the first iteration, and in one after another;
        after a loop that surely had an iteration, for which ``is_new`` says what the last one made, with what that left
        instead."""
        if merged is self.start or self.conflict is not None:
            return []
        starts = _objects_in(self.start, self._opaque)
        groups: Any = zip(_objects_in(merged, self._opaque), starts, self._ends or starts)
        if is_new is not None:
            groups = ((one, end) for one, _, end in groups if not is_new(end))
        return [tuple(filter(_is_changeable, group)) for group in groups]

    def carry(self, region: SubTrace) -> Choice:
        """What an iteration finds that reads a name before it binds it: nothing, or what an iteration before it has
        left.  From now on that is carried."""
        if not self._may_choose:
            raise TraceError("for", "an iteration reads what the one before it has bound.")
        with region.around():
            self.start = _widen_to_choice(UNBOUND, self._last)
        self.conflict = None
        self._flatten({})
        for leaf in self.carried_leaves():
            leaf.input = region.carry(leaf.type, "carry")
        result: Choice = self.built(iter([leaf.input for leaf in self.carried_leaves()]))
        return result

    def _chooses(self, end: object, view: Branch) -> bool:
        """Whether more choices, or options, are carried from now on: of what there was and of what an iteration
        leaves."""
        if not self._may_choose:
            return False
        with view.final_state():
            widened = _with_choices(self.start, end)
        if widened is self.start:
            return False
        self.start = widened
        self._flatten({})
        return True

    def fit(self, end: Any, view: Branch) -> Any:
        """What an iteration leaves, nested as what it finds: a choice where that is one, a list that grows likewise."""
        grows = type(end) is list and dynamic_list.is_dynamic(self.current)
        if not (grows or _has_choice(self.current)) or is_unbound(end) or isinstance(end, TypeMismatch):
            return end
        if self._fits is None or self._fits[0] is not end:
            assert self._region is not None
            with self._region.entered(), view.final_state():
                self._fits = (
                    end,
                    dynamic_list.fit_to(self.current, list(end)) if grows else _fit_choices(self.current, end),
                )
        return self._fits[1]

    def unify(self, end: object, view: Branch, asks: bool) -> tuple[bool, bool]:
        """Whether an iteration leaves a value of the type that it found; else the type becomes wider, or a conflict.
        And whether it found the objects that it left: an iteration that ``asks`` for them knows that only once another
        has left them."""
        is_known = self._ends is not None
        if isinstance(self.current, MaybeUnbound) and self.current.taken is not None:
            self.current = self.current.taken
        end = self.fit(end, view)
        same = self._unify(end, view)
        if self.conflict is None:
            self._ends = _objects_in(end, self._opaque, view)
        return same, is_known or not asks or self.conflict is not None

    def _unify(self, end: object, view: Branch) -> bool:
        if self.conflict is not None:
            if self.start is UNBOUND and not isinstance(end, (MaybeUnbound, TypeMismatch)):
                self._last = end
            return True
        if is_unbound(self.start):
            if not is_unbound(end):
                self.conflict = end if isinstance(end, TypeMismatch) else TypeMismatch("unbound", UNBOUND, end)
                self._last = UNBOUND if isinstance(end, TypeMismatch) else end
            # What nobody reads before an iteration binds it is not looked at: another pass would be the same trace.
            return is_unbound(end) or self.start is not UNBOUND
        if is_unbound(end) or isinstance(end, TypeMismatch):
            self.conflict = end if isinstance(end, TypeMismatch) else TypeMismatch("unbound", self.start, end)
            return False
        if type(end) is list and type(self.start) is list and dynamic_list.differ(self.start, view.items(end)):
            if end is self.start and view.has_changed(end):
                return True  # the very list, which is a place of its own
            with view.final_state():
                grows = self._grows(list(end))
            if grows:
                return False
        ends, structure = view.flatten(end, self._opaque)
        if self._opaque and self._replaces(ends, structure):
            self._flatten({})
            self._ends = None
            self._unify(end, view)
            return False
        if (structure != self.structure or _has_choice(self.start)) and self._chooses(end, view):
            return False
        if structure != self.structure:
            self.conflict = TypeMismatch("kind" if len(ends) == len(self.leaves) == 1 else "structure", self.start, end)
            return False
        same = True
        for k, value in enumerate(ends):
            if isinstance(value, Tensor) and view.has_changed(value):
                widened: Any = TypeMismatch("changed", self.start, end)
            else:
                widened = _widen_leaf(self.leaves[k], value)
            if isinstance(widened, TypeMismatch) and widened.kind in ("kind", "object"):
                widened = self._leaf_of_choice(k, value, widened)
            if isinstance(widened, TypeMismatch):
                self.conflict = widened
                return False
            if is_choice(widened):
                leaves = [leaf.start if isinstance(leaf, _Leaf) else leaf for leaf in self.leaves]
                self.start = pytree.unflatten(self.structure, [*leaves[:k], widened, *leaves[k + 1 :]])
                self._flatten(self._opaque)
                return False
            if widened is not self.leaves[k]:
                self.leaves[k], same = widened, False
        return same

    def _grows(self, end: list[Any]) -> bool:
        """Whether what is carried from now on is a list whose length a tensor decides."""
        is_decided = not self._is_known or dynamic_list.is_dynamic(end) or dynamic_list.is_dynamic(self.start)
        widened = dynamic_list.widen(self.start, end, self._max_iterations) if self._may_grow and is_decided else None
        if widened is None:
            return False
        self.start = widened
        self._ends = None
        self._flatten({})
        return True

    def _leaf_of_choice(self, number: int, end: object, conflict: TypeMismatch) -> Choice | TypeMismatch:
        leaf = self.leaves[number]
        start = leaf.start if isinstance(leaf, _Leaf) else leaf
        widened = _widen_to_choice(start, end) if self._may_choose and can_be_choice(start, end) else None
        return conflict if widened is None else widened

    def is_invariant(self, end: object, view: Branch) -> bool:
        """Whether an iteration leaves just what it found."""
        end = self.fit(end, view)
        ends, structure = view.flatten(end, self._opaque)
        starts = [x.at_start() if isinstance(x, _Leaf) else x for x in self.leaves]
        return self.conflict is None and structure == self.structure and all(map(same_constant, starts, ends))

    def drop_invariants(self, end: object, view: Branch) -> bool:
        """Whether there are tensors that an iteration which leaves ``end`` has not changed; they are carried no
        longer."""
        ends = self.final_leaves(end, view)
        same = [
            leaf for leaf, x in zip(self.carried_leaves(), ends) if x is leaf.input and isinstance(leaf.start, Tensor)
        ]
        self.leaves = [leaf.start if any(leaf is x for x in same) else leaf for leaf in self.leaves]
        return bool(same)

    def final_leaves(self, end: object, view: Branch) -> list[Any]:
        """The values of the carried leaves after an iteration."""
        if self.conflict is not None or not self.carried_leaves():
            return []
        end = self.fit(end, view)
        return [x for leaf, x in zip(self.leaves, view.flatten(end, self._opaque)[0]) if isinstance(leaf, _Leaf)]


def _objects_in(
    value: object, whole: Collection[int], view: Branch | None = None, met: frozenset[int] = frozenset()
) -> list[Any]:
    """A value and all that is inside of it, but not in the ``whole`` ones: as many for each value of one structure."""
    if not object_trees.is_container(value) or id(value) in whole or id(value) in met:
        return [value]
    inside = object_trees.changeable_parts(value) if view is None else view.parts(value)
    inside.pop(id(value), None)  # of what leads back to itself
    leaves, _ = object_trees.flatten(value, inside) if view is None else view.flatten(value, inside)
    around = met | {id(value)}
    return [value, *(part for leaf in leaves for part in _objects_in(leaf, whole, view, around))]


def _has_choice(value: object) -> bool:
    """Whether a value is a choice, or holds one."""
    if is_choice(value) or not active.chosen:
        return is_choice(value) and not value.is_awaited
    parts = object_trees.changeable_parts(value).values() if object_trees.is_container(value) else ()
    return any(is_choice(part) and not part.is_awaited for part in parts)


def _widen_to_choice(start: object, end: object) -> Choice | None:
    """A choice of what something was before a loop and of what an iteration leaves; it is the former."""
    options = list(options_of(start))
    for option in options_of(end):
        if not any(can_merge(option, other) for other in options):
            options.append(_placeholder(option))
    return None if len(options) > MOST_OPTIONS else Choice(code_of(start, range(len(options_of(start)))), options)


def _with_choices(start: object, end: object) -> Any:
    """``start`` with choices where it, and ``end``, have no one type."""
    if is_choice(start) or is_choice(end):
        if all(any(can_merge(option, other) for other in options_of(start)) for option in options_of(end)):
            return start if is_choice(start) else Choice(code_of(start, [0]), [start])
        widened = _widen_to_choice(start, end)
        return start if widened is None else widened
    one, other = object_trees.parts_of(start), object_trees.parts_of(end)
    if one is None or other is None or type(start) is not type(end) or one[0] != other[0]:
        grows = isinstance(start, tuple) and isinstance(end, tuple)
        needs = (one is not None or other is not None) and not grows and can_be_choice(start, end)
        widened = _widen_to_choice(start, end) if needs else None
        return start if widened is None else widened
    ones, others = list(one[1]), list(other[1])
    merged = list(map(_with_choices, ones, others))
    if len(ones) != len(others) or all(x is y for x, y in zip(merged, ones)):
        return start
    return pytree.unflatten(pytree.structure_of(start, one[0], [pytree.LEAF] * len(merged)), merged)


def _placeholder(value: object) -> Any:
    """Something of the type of a value, where nobody looks at the value."""
    leaves, structure = object_trees.flatten(value)
    zeros = [_zero(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return pytree.unflatten(structure, zeros)


def _zero(x: Tensor) -> Any:
    weak = weak_of(x)
    return zeros(x.type) if weak is None else weak.scalar(zeros(TensorType((), weak.dtype)))


def _fit_choices(model: object, end: object) -> Any:
    """``end`` with choices where ``model``, which an iteration found, has them, as far as it has such options."""
    if not _has_choice(model):
        return end
    if is_choice(model):
        return _fit_to_options(model, end)
    one, other = object_trees.parts_of(model), object_trees.parts_of(end)
    if one is None or other is None or type(model) is not type(end) or one[0] != other[0]:
        return end
    ones, others = list(one[1]), list(other[1])
    if len(ones) != len(others):
        return end
    fitted = list(map(_fit_choices, ones, others))
    if all(x is y for x, y in zip(fitted, others)):
        return end
    structure = pytree.structure_of(end, other[0], [pytree.LEAF] * len(fitted))
    return pytree.unflatten(structure, fitted)


def _fit_to_options(model: Choice, end: object) -> Any:
    """``end`` as a choice with the options of ``model``, which keep what they were where it is another."""
    options, places = list(model.options), []
    for option in options_of(end):
        number = next((k for k, other in enumerate(model.options) if can_merge(option, other)), None)
        if number is None or number in places:
            return end
        options[number] = option
        places.append(number)
    return Choice(code_of(end, places), options)


class MaybeUnbound(Choice):
    """What a name holds in an iteration that may be the first to bind it.  Who looks at it has the value of the
    iteration before carried."""

    __slots__ = ("_held", "_within", "taken")

    def __init__(self, held: _LoopVar, region: SubTrace) -> None:
        self._held, self._within = weakref.ref(held), region  # which refers to what it finds
        self.taken: Choice | None = None
        active.chosen = True

    def _take(self) -> Choice:
        if self.taken is None:
            held = self._held()
            assert held is not None, "a loop that is over has nothing to carry"
            self.taken = held.carry(self._within)
        return self.taken

    @property
    def is_awaited(self) -> bool:  # type: ignore[override]
        return self.taken is None

    @property
    def code(self) -> Any:  # type: ignore[override]
        return self._take().code

    @property
    def options(self) -> Any:  # type: ignore[override]
        return self._take().options


object_trees.containers[MaybeUnbound] = lambda value: (
    None if value.is_awaited else object_trees.containers[Choice](value)
)


def _is_changeable(value: object) -> bool:
    if is_choice(value):
        return False
    return isinstance(value, Tensor) or (object_trees.is_container(value) and not isinstance(value, tuple))


def _widen_leaf(leaf: Any, end: object) -> Any:
    """What holds both what an iteration found and what it leaves: ``leaf`` itself, a wider one, or a Conflict."""
    start = leaf.start if isinstance(leaf, _Leaf) else leaf
    if not isinstance(leaf, _Leaf):
        if same_constant(leaf, end):
            return leaf
        if isinstance(leaf, Tensor):
            return _leaf_of(leaf)  # another iteration has changed it after all
        weak = weak_of(leaf)
        if weak is None:
            return TypeMismatch("kind", start, end)
        return _widen_leaf(_Leaf(leaf, weak.dtype, (), weak), end)
    if is_weak(end):
        return _with_number(leaf, end)
    if not isinstance(end, Tensor):
        return TypeMismatch("kind", _printable(leaf), end)
    if not same_extents(leaf.shape, end.shape):
        return TypeMismatch("shape", _printable(leaf), end)
    if leaf.weak is not None:
        if widened_dtype("convert", leaf.start, leaf.dtype, end) != end.dtype:
            return TypeMismatch("dtype", _printable(leaf), end)
        return _Leaf(leaf.start, end.dtype, leaf.shape, None)
    return leaf if leaf.dtype == end.dtype else TypeMismatch("dtype", _printable(leaf), end)


def _with_number(leaf: _Leaf, end: object) -> Any:
    if leaf.weak is None:
        if leaf.shape:
            return TypeMismatch("shape", _printable(leaf), end)
        fits = widened_dtype("convert", leaf.start, leaf.dtype, end) == leaf.dtype
        return leaf if fits else TypeMismatch("dtype", _printable(leaf), end)
    weak = weak_of(end)
    joined = None if weak is None else leaf.weak.joined(weak)
    if joined is None:
        return TypeMismatch("kind", _printable(leaf), end)
    return leaf if joined == leaf.weak else _Leaf(leaf.start, joined.dtype, (), joined)


def _printable(leaf: _Leaf) -> Any:
    return leaf.start if not isinstance(leaf.start, Tensor) else SymbolicTensor(leaf.input._node, leaf.input._trace)  # type: ignore[union-attr]


def unchanged(before: object, after: object) -> bool:
    """Whether a place holds what it held."""
    (ones, structure), (others, other) = object_trees.flatten(before), object_trees.flatten(after)
    return structure == other and all(map(same_constant, ones, others))


class LoopVars:
    """All that one loop carries.  ``turns`` is how many it has at most, None where nobody knows; where just so many
    ``is_known``, a list that each of them makes longer in one way is for Python."""

    def __init__(self, values: dict[str, Any], may_choose: bool = True, iterations: Any = None, is_known: bool = False):
        self._may_choose, self._max_iterations, self._is_known = may_choose, iterations, is_known
        self._names = {name: _LoopVar(value, may_choose, iterations, is_known) for name, value in values.items()}
        self._locations: dict[Any, tuple[Location, _LoopVar]] = {}
        self._added: list[Any] = []  # the places that the latest iteration was the first to change
        self._repeats = False  # whether the iteration that is traced begins as the latest one did, these places apart
        self._is_settled = False

    def _all_vars(self) -> list[_LoopVar]:
        return [*self._names.values(), *(held for _, held in self._locations.values())]

    def _leaves(self) -> list[_Leaf]:
        return [leaf for held in self._all_vars() for leaf in held.carried_leaves()]

    def inputs(self, region: SubTrace) -> list[SymbolicTensor]:
        """New inputs of a body."""
        for k, leaf in enumerate(self._leaves()):
            leaf.input = region.carry(leaf.type, f"carry{k}")
        return [leaf.input for leaf in self._leaves() if leaf.input is not None]

    def begin(self, tensors: Sequence[Any], region: SubTrace) -> tuple[dict[str, Any], list[tuple[Location, Any]]]:
        """What an iteration in ``region`` finds, given the tensors of the leaves."""
        rest = iter(tensors)
        names = {name: held.begin(rest, region) for name, held in self._names.items()}
        return names, [(place, held.begin(rest, region)) for place, held in self._locations.values()]

    def all_inputs(self) -> list[SymbolicTensor]:
        """The inputs of a body, those among them that an iteration has asked for."""
        return [leaf.input for leaf in self._leaves() if leaf.input is not None]

    def starts(self) -> list[Tensor]:
        return [leaf.typed(leaf.start) for leaf in self._leaves()]

    def built(self, tensors: Sequence[Any]) -> tuple[dict[str, Any], list[tuple[Location, Any]]]:
        """The values of names and of places, given the tensors of the leaves."""
        rest = iter(tensors)
        names = {name: held.built(rest) for name, held in self._names.items()}
        return names, [(place, held.built(rest)) for place, held in self._locations.values()]

    def alias_pairs(
        self, names: dict[str, Any], places: Sequence[tuple[Location, Any]], is_new: IsNew | None = None
    ) -> list[tuple[Any, ...]]:
        """The objects that ``built`` made, with what they are in turns, see there."""
        values = [*names.values(), *(value for _, value in places)]
        return [group for held, value in zip(self._all_vars(), values) for group in held.alias_pairs(value, is_new)]

    def unify(self, values: dict[str, Any] | None, side: Branch, asks: bool) -> bool:
        """Whether an iteration that leaves ``values`` (None if none goes on) keeps all types.  The ``side`` of the
        iteration was left; ``asks`` says whether it matters there which objects names hold.

        A container that an iteration makes, and changes, is no place that the loop carries.  The next iteration shows
        that, if it begins as that one did: it comes to another one in its place."""
        gone = {
            key: held
            for key in self._added
            if (held := self._locations[key][1]).is_invariant(side.final_values[key], side)
        }
        repeats, kept = self._repeats and len(gone) == len(self._added), [(True, True)]
        self._locations = {key: place for key, place in self._locations.items() if key not in gone}
        self._added = []
        for name, held in self._names.items():
            if values is not None:
                kept.append(held.unify(values.get(name, UNBOUND), side, asks))
        for key, (place, _) in side.undo_log.items():
            if key in self._locations:
                kept.append(self._locations[key][1].unify(side.final_values[key], side, asks))
            elif (
                not repeats
                and key not in gone
                and not side.was_created_here(key)
                and not unchanged(place.get(), side.final_values[key])
            ):
                may_grow = dynamic_list.may_grow(place.holder)
                self._locations[key] = (
                    place,
                    _LoopVar(place.get(), self._may_choose, self._max_iterations, self._is_known, may_grow),
                )
                self._added.append(key)
        same, is_known = map(all, zip(*kept))
        self._repeats = same and is_known
        same = same and not self._added and not any(held.carried_leaves() for held in gone.values())
        if same and values is not None and not self._is_settled:
            self._is_settled = is_known
            same = not self._drop_invariants(values, side)
        return same and is_known

    def _drop_invariants(self, values: dict[str, Any], side: Branch) -> bool:
        """Whether tensors that no iteration changes are carried no longer."""
        ends = [(held, values[name]) for name, held in self._names.items()]
        ends += [
            (held, side.final_values[key]) for key, (_, held) in self._locations.items() if key in side.final_values
        ]
        settled = [held.drop_invariants(end, side) for held, end in ends]
        return any(settled)

    def needs_python(self) -> bool:
        """Whether iterations differ in what has no one type."""
        is_known = any(held.conflict is not None and not is_unbound(held.start) for held in self._names.values())
        return is_known or self.conflicting_location() is not None

    def numbers_change(self, counts: str) -> bool:
        """Whether iterations differ in numbers that Python could tell apart, but for that of the name that ``counts``
        them."""
        loop_vars = [held for name, held in self._names.items() if name != counts]
        loop_vars += [held for _, held in self._locations.values()]
        return any(leaf.is_counted for held in loop_vars for leaf in held.carried_leaves())

    def unbound(self) -> list[str]:
        """The names that held nothing before the first iteration, and then something."""
        return [name for name, held in self._names.items() if is_unbound(held.start) and held.conflict is not None]

    def conflicting_location(self) -> tuple[Location, TypeMismatch] | None:
        return next(((p, held.conflict) for p, held in self._locations.values() if held.conflict is not None), None)

    def links(self, values: dict[str, Any], side: Branch) -> list[tuple[Tensor, Any, Any]]:
        """For each carried tensor what it is in an iteration, in the first one, and what the iteration makes of it."""
        pairs = [(held, values[name]) for name, held in self._names.items()]
        pairs += [
            (held, side.final_values[key]) for key, (_, held) in self._locations.items() if key in side.final_values
        ]
        return [
            (leaf.input, leaf.start, end)
            for held, value in pairs
            for leaf, end in zip(held.carried_leaves(), held.final_leaves(value, side))
            if leaf.input is not None and leaf.weak is None
        ]

    def outputs(self, values: dict[str, Any] | None, side: Branch) -> list[Tensor]:
        """What an iteration leaves, as tensors, in the trace that goes on."""
        result: list[Tensor] = []
        for name, held in self._names.items():
            ends = (
                [leaf.input for leaf in held.carried_leaves()]
                if values is None
                else held.final_leaves(values[name], side)
            )
            result += [leaf.typed(end) for leaf, end in zip(held.carried_leaves(), ends)]
        for key, (_, held) in self._locations.items():
            is_kept = key not in side.final_values
            ends = (
                [leaf.input for leaf in held.carried_leaves()]
                if is_kept
                else held.final_leaves(side.final_values[key], side)
            )
            result += [leaf.typed(end) for leaf, end in zip(held.carried_leaves(), ends)]
        return result


class _ExitLeaf(NamedTuple):
    number: int
    weak: Weak | None

    def rebuild(self, tensors: Sequence[Tensor]) -> Any:
        tensor = tensors[self.number]
        return tensor if self.weak is None else self.weak.scalar(tensor)


class ExitValues:
    """What a loop hands on besides: how it was left, and what its function then returns."""

    def __init__(self) -> None:
        self.outputs: list[Tensor] = []

    def add(self, value: object, view: Branch, region: SubTrace | None = None) -> Any:
        """Something of which ``taken`` makes the value after the loop; one object of it for each of the iteration's, as
        the iteration left it.  Given the ``region`` of the iteration, tensors that were there before stay the objects
        that they are."""
        leaves, structure = view.flatten(value)
        numbers = []
        for leaf in leaves:
            if isinstance(leaf, Tensor) and (region is None or is_traced_in(leaf, region)):
                numbers.append(_ExitLeaf(self._number(view.final_value(leaf)), weak_of(leaf)))
            elif object_trees.is_container(leaf):
                raise TraceError("for", f"a {type(leaf).__name__} holds another one twice. Return what they hold.")
            else:
                numbers.append(leaf)
        return structure, numbers

    def _number(self, leaf: Tensor) -> int:
        result = next((k for k, x in enumerate(self.outputs) if x is leaf), None)
        if result is None:
            result = len(self.outputs)
            self.outputs.append(leaf)
        return result

    @staticmethod
    def rebuild(added: tuple[pytree.Structure, list[Any]], tensors: Sequence[Tensor]) -> Any:
        structure, numbers = added
        return pytree.unflatten(
            structure,
            [n.rebuild(tensors) if isinstance(n, _ExitLeaf) else n for n in numbers],
        )

    @staticmethod
    def alias_pairs(merged: object, value: object, view: Branch, chosen: Container[int] = ()) -> list[tuple[Any, ...]]:
        """The containers that ``taken`` made, each with what the last iteration left, which others may hold as well;
        and the tensors whose ids are ``chosen``: what the iteration left may be another one."""
        groups = zip(_objects_in(merged, ()), _objects_in(value, (), view))
        return [
            (one, end)
            for one, end in groups
            if _is_changeable(one) and (not isinstance(one, Tensor) or id(end) in chosen)
        ]

    def starts(self) -> list[Tensor]:
        return [zeros(x.type) for x in self.outputs]
