"""One value in the place of two: what a name is after branches that bound it, or from iteration to iteration.

Tensors of one type become one.  Python numbers stay what they are where both are the same; else they become tensors
that go on counting as Python numbers.  Lists, tuples, dicts and dataclasses are joined item by item.  Where there is no
common value there is a ``TypeMismatch``, which matters only if it is read.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import numpy as np

from hybridflow.array import elementwise
from hybridflow.autograph.runtime import object_trees
from hybridflow.autograph.runtime.choices import MOST_OPTIONS, Choice, is_choice, options_of
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, UNREAD, is_unbound
from hybridflow.autograph.runtime.mutation_check import BUFFERS, is_iterator
from hybridflow.autograph.runtime.type_mismatch import ATOMS, TypeMismatch
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import TensorType, same_extents
from hybridflow.core import pytree
from hybridflow.core.promotion import OpenFloat, result_dtype, weak_kind
from hybridflow.core.pytree import instance_dict
from hybridflow.core.string_tensor import StringTensor
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import scalar, weak_cast
from hybridflow.tracing.symbolic_number import Weak, weak_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

ABSENT: object = type("Absent", (), {"__slots__": ()})()  # on a side that is not asked for the value
_UNKNOWN: object = type("Unknown", (), {"__slots__": ()})()  # while it is found what stands for two values


def same_constant(a: Any, b: Any) -> bool:
    """Whether two values are one to whoever looks at them."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is Dim:
        return bool(a == b)
    if isinstance(a, OpenFloat):
        return a is b
    if isinstance(a, SymbolicTensor):
        return a._node is b._node and a.is_weak == b.is_weak
    if type(a) is frozenset:
        return bool(a == b)
    if type(a) is types.MethodType:
        return a.__func__ is b.__func__ and a.__self__ is b.__self__
    if type(a) is types.FunctionType:
        return _same_function(a, b)
    return isinstance(a, ATOMS) and repr(a) == repr(b)


def _same_function(a: types.FunctionType, b: types.FunctionType) -> bool:
    """Whether two functions are one that was made twice."""
    parts = [
        (f.__code__, f.__globals__, f.__defaults__ or (), tuple((f.__kwdefaults__ or {}).items()), f.__closure__ or ())
        for f in (a, b)
    ]
    (code, names, *held), (other, others, *rest) = parts
    same = code is other and names is others and not vars(a) and not vars(b)
    return same and all(len(x) == len(y) and all(map(_same_held, x, y)) for x, y in zip(held, rest))


def _same_held(a: object, b: object) -> bool:
    return a is b or (type(a) is not types.CellType and type(a) in (*ATOMS, tuple) and a == b)


def can_merge(a: object, b: object) -> bool:
    """Whether one value may stand for two."""
    if same_constant(a, b):
        return True
    one, other = weak_of(a), weak_of(b)
    if one is not None and other is not None:
        return one.joined(other) is not None
    if _is_value(a) and _is_value(b):
        return _typed_alike(a, b) is None
    if not (object_trees.is_container(a) and object_trees.is_container(b)):
        return False
    (ones, structure), (others, other_structure) = object_trees.flatten(a), object_trees.flatten(b)
    return structure == other_structure and all(map(can_merge, ones, others))


def can_be_choice(a: object, b: object) -> bool:
    """Whether there may be a ``Choice`` of two values that have no one type."""
    if _is_value(a) and _is_value(b):
        return False
    if object_trees.is_container(a) and type(a) is type(b) and not (object_trees.is_object(a) or isinstance(a, tuple)):
        return False
    return not any(isinstance(x, BUFFERS) or is_iterator(x) for x in (a, b))


def is_traced_in(value: object, trace: object) -> bool:
    """Whether a value is a tensor that was made in ``trace``."""
    return isinstance(value, SymbolicTensor) and value._trace is trace


def is_constant(value: object) -> bool:
    """Whether a value is one that has no parts and never changes."""
    return isinstance(value, (*ATOMS, Dim, type))


def holds_traced(value: object, trace: object) -> bool:
    """Whether an object that is no container of ours holds tensors that were made in ``trace``."""
    for leaf in object_trees.flatten(value)[0]:
        attributes: Any = None if isinstance(leaf, (type, types.ModuleType)) else instance_dict(leaf)
        if type(attributes) is dict and any(
            is_traced_in(x, trace) for x in object_trees.flatten(list(attributes.values()))[0]
        ):
            return True
    return False


class BranchView(Protocol):
    """One side that was left: what it changed in place is as it was before it, and seen as it was after it."""

    region: Any

    def flatten(self, value: object, whole: Collection[int] = ...) -> tuple[list[Any], pytree.Structure]: ...

    def parts(self, value: object) -> dict[int, Any]: ...

    def items(self, value: list[Any]) -> list[Any]: ...

    def has_changed(self, value: object) -> bool: ...

    def final_value(self, value: object) -> Any: ...

    def final_state(self) -> Any: ...


# The items of two lists, what ``within`` is, and the views; None where they stay as they are.
Align = Callable[
    [Sequence[Any], Sequence[Any], Callable[[int], Any], "Sequence[BranchView]"], "tuple[list[Any], list[Any]] | None"
]


class PhiBuilder:
    """Joins values of two sides.  ``within(k)`` is a block in which ops go into side ``k``.

    What has to become one tensor is in ``outputs``, for each side; ``finished`` puts the tensors in.  ``aligned`` makes
    lists of several lengths such that can be joined item by item.
    """

    def __init__(self, within: Callable[[int], Any], views: Sequence[BranchView], aligned: Align) -> None:
        self._within, self._views, self._aligned = within, views, aligned
        self.outputs: list[list[Tensor]] = [[], []]
        self._weak: list[Weak | None] = []
        self._memo: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self.created: list[tuple[Any, ...]] = []  # what stands for two objects, and those
        self.choices: list[_Chosen] = []
        self._codes: dict[Any, _Output] = {}

    def merge(self, a: object, b: object) -> Any:
        """What stands for ``a`` and ``b``: a value, a Conflict, or something that ``finished`` makes a value of."""
        if a is b:
            return a
        if a is ABSENT or b is ABSENT:
            return self._keep_one(b if a is ABSENT else a, 0 if a is ABSENT else 1)
        if isinstance(a, TypeMismatch) or isinstance(b, TypeMismatch):
            return a if isinstance(a, TypeMismatch) else b
        if a is UNREAD or b is UNREAD:
            return a if is_unbound(a) and is_unbound(b) else TypeMismatch("unbound", a, b)
        if same_constant(a, b):
            return a
        if weak_kind(a) is not None and weak_kind(b) is not None:
            return self._numbers(a, b)
        key = id(a), id(b)
        if key not in self._memo:  # two names of one object go on to be that
            self._memo[key] = _UNKNOWN, a, b  # for what they hold, if they are in it
            self._memo[key] = self._objects(a, b), a, b
        merged = self._memo[key][0]
        return TypeMismatch("cycle", a, b) if merged is _UNKNOWN else merged

    def _objects(self, a: object, b: object) -> Any:
        if is_choice(a) or is_choice(b) or a is UNBOUND or b is UNBOUND:
            return self._choice(a, b)
        if _is_value(a) and _is_value(b):
            one, two = self._views
            result = self._tensors(one.final_value(a), two.final_value(b))
        elif object_trees.is_container(a) and object_trees.is_container(b):
            result = self._containers(a, b)
        elif can_be_choice(a, b):
            return self._choice(a, b)
        else:
            return TypeMismatch("kind", a, b)
        if not isinstance(result, TypeMismatch):
            result.of = a, b
        elif result.kind == "structure" and can_be_choice(a, b):
            return self._choice(a, b)
        return result

    def _choice(self, a: object, b: object) -> Any:
        """What stands for values without one type: a choice of what either may be."""
        slots: list[list[Any]] = [[option, ABSENT] for option in options_of(a)]
        known = len(slots)
        places = [list(range(known)), []]
        for option in options_of(b):
            free = (k for k in range(known) if slots[k][1] is ABSENT and can_merge(slots[k][0], option))
            number = next(free, len(slots))
            if number == len(slots):
                slots.append([ABSENT, option])
            else:
                slots[number][1] = option
            places[1].append(number)
        if len(slots) > MOST_OPTIONS:
            return TypeMismatch("kind", a, b)
        values = [self.merge(*slot) for slot in slots]
        conflict = next((value for value in values if isinstance(value, TypeMismatch)), None)
        if conflict is not None or len(values) == 1:
            return conflict or values[0]
        result = _Chosen(self._code(a, b, places), values, (frozenset(places[0]), frozenset(places[1])))
        self.choices.append(result)
        return result

    def _code(self, a: object, b: object, places: Sequence[Sequence[int]]) -> _Output:
        """Which of its options a choice is: one tensor for choices that are decided together."""
        key = tuple(
            [(id(value.code) if is_choice(value) else 0, *slot_place) for value, slot_place in zip((a, b), places)]
        )
        if key not in self._codes:
            codes = []
            for side, value in enumerate((a, b)):
                with self._within(side):
                    codes.append(code_of(value, places[side]))
            self._codes[key] = self.output(codes[0], codes[1])
        return self._codes[key]

    def output(self, one: Tensor, other: Tensor, weak: Weak | None = None) -> _Output:
        self.outputs[0].append(one)
        self.outputs[1].append(other)
        self._weak.append(weak)
        return _Output(len(self._weak) - 1)

    def _keep_one(self, value: object, missing: int) -> Any:
        """A value that the side ``missing`` is not asked for: there it is anything of that type."""
        view = self._views[1 - missing]
        if self._keeps_identity(value, view):
            return value
        key = (id(ABSENT), id(value)) if missing == 0 else (id(value), id(ABSENT))
        if key not in self._memo:
            self._memo[key] = _UNKNOWN, value, ABSENT
            result = self._created_in(value, missing)
            if isinstance(result, TypeMismatch):
                return result
            result.of = (value,)
            self._memo[key] = result, value, ABSENT
        result = self._memo[key][0]
        return TypeMismatch("cycle", value, value) if result is _UNKNOWN else result

    def _keeps_identity(self, value: object, view: BranchView) -> bool:
        """Whether a value goes on to be the object that it is: what of it changes is a place of its own."""
        if view.has_changed(value):
            return True
        places = [key for key, part in view.parts(value).items() if view.has_changed(part)]
        leaves = view.flatten(value, places)[0]
        return not any(is_traced_in(x, view.region) and not view.has_changed(x) for x in leaves)

    def _created_in(self, value: Any, missing: int) -> Any:
        view = self._views[1 - missing]
        if object_trees.is_container(value):
            inside = view.parts(value)
            inside.pop(id(value), None)  # of what leads back to itself
            leaves, structure = view.flatten(value, inside)
            merged = [self._keep_one(leaf, missing) for leaf in leaves]
            return next((x for x in merged if isinstance(x, TypeMismatch)), None) or _Nested(structure, merged)
        with self._within(missing):
            dummy = zeros(value.type)
        pair = (dummy, value) if missing == 0 else (value, dummy)
        return self.output(pair[0], pair[1], weak_of(value))

    def _numbers(self, a: object, b: object) -> Any:
        one, other = weak_of(a), weak_of(b)
        weak = None if one is None or other is None else one.joined(other)
        if weak is None:
            return TypeMismatch("kind", a, b)
        tensors = []
        for side, x in enumerate((a, b)):
            with self._within(side):
                tensors.append(weak.tensor(x))
        return self.output(tensors[0], tensors[1], weak)

    def _tensors(self, a: Any, b: Any) -> Any:
        typed = b if _is_weak(a) else a
        differs = _typed_alike(a, b)
        if differs is not None:
            return TypeMismatch(differs, a, b)
        tensors = []
        for side, x in enumerate((a, b)):
            with self._within(side):
                tensors.append(as_typed(x, typed.dtype))
        return self.output(tensors[0], tensors[1])

    def _containers(self, a: object, b: object) -> Any:
        # Those inside are joined as what they are: one that both hold stays the one object that it is.
        if type(a) is list and type(b) is list:
            items = [view.items(value) for view, value in zip(self._views, (a, b))]
            a, b = self._aligned(items[0], items[1], self._within, self._views) or (a, b)
        insides = []
        for view, value in zip(self._views, (a, b)):
            insides.append(view.parts(value))
            insides[-1].pop(id(value), None)  # of what leads back to itself
        one, two = self._views
        (ones, structure), (others, other) = one.flatten(a, insides[0]), two.flatten(b, insides[1])
        if structure != other:
            return TypeMismatch("structure", a, b)
        pairs = []
        for x, y in zip(ones, others):
            merged = self.merge(x, y)
            if isinstance(merged, TypeMismatch):
                is_nested = object_trees.is_container(x) or object_trees.is_container(y)
                return (
                    TypeMismatch("structure", a, b)
                    if is_nested and merged.kind in ("kind", "object", "structure")
                    else merged
                )
            pairs.append(merged)
        return _Nested(structure, pairs)

    def result(self, value: object, tensors: Sequence[Tensor]) -> Any:
        """The value with ``tensors`` in the place of outputs."""
        if isinstance(value, _Chosen):
            return self._create_choice(value, tensors)
        if not isinstance(value, (_Output, _Nested)):
            return value
        if value.made is None:
            value.made = self._create(value, tensors)
            if value.of is not None:
                self.created.append((value.made, *value.of))
        return value.made

    def _create_choice(self, value: _Chosen, tensors: Sequence[Tensor]) -> Choice:
        if value.made is None:
            options = [self.result(option, tensors) for option in value.options]
            value.made = Choice(self.result(value.code, tensors), options)
        return value.made

    def _create(self, value: _Output | _Nested, tensors: Sequence[Tensor]) -> Any:
        if isinstance(value, _Output):
            tensor = tensors[value.number]
            weak = self._weak[value.number]
            return tensor if weak is None else weak.scalar(tensor)
        return pytree.unflatten(value.structure, [self.result(leaf, tensors) for leaf in value.leaves])


class _Output:
    __slots__ = ("made", "number", "of")

    def __init__(self, number: int) -> None:
        self.number = number
        self.made: object = None
        self.of: tuple[Any, ...] | None = None  # the objects that it stands for


class _Chosen:
    """A choice: each side may be one of those ``options`` whose numbers are its ``ways``."""

    __slots__ = ("code", "made", "options", "ways")

    def __init__(self, code: _Output, options: list[Any], ways: tuple[frozenset[int], frozenset[int]]) -> None:
        self.code, self.options, self.ways = code, options, ways
        self.made: Choice | None = None


class _Nested:
    __slots__ = ("leaves", "made", "of", "structure")

    def __init__(self, structure: pytree.Structure, leaves: list[Any]) -> None:
        self.structure, self.leaves = structure, leaves
        self.made: object = None
        self.of: tuple[Any, ...] | None = None


def _typed_alike(a: Any, b: Any) -> str | None:
    """What of two tensors and numbers differs, so that none can stand for both: ``dtype`` or ``shape``."""
    typed = b if _is_weak(a) else a
    if any(x.dtype != typed.dtype for x in (a, b) if not _is_weak(x)) or (
        any(map(_is_weak, (a, b))) and result_dtype("convert", [a, b]) != typed.dtype
    ):
        return "dtype"
    return None if same_extents(_shape(a), _shape(b)) else "shape"


def code_of(value: object, places: Sequence[int]) -> Tensor:
    """Which of some options a value is, where its own options have these ``places`` among them."""
    if not is_choice(value):
        return scalar(places[0], dtypes.int32, "convert")
    if list(places) == list(range(len(places))):
        return value.code
    result = scalar(places[-1], dtypes.int32, "convert")
    for k, place in enumerate(places[:-1]):
        result = elementwise.where(elementwise.equal(value.code, k), scalar(place, dtypes.int32, "convert"), result)
    return result


def _is_value(value: object) -> bool:
    return (isinstance(value, Tensor) and type(value) is not StringTensor) or _is_weak(value)


def _is_weak(value: object) -> bool:
    return weak_kind(value) is not None


def _shape(value: object) -> Any:
    return value.shape if isinstance(value, Tensor) else ()


def as_typed(value: object, dtype: np.dtype[Any]) -> Tensor:
    """A tensor or number as a tensor of ``dtype``, in the trace that goes on."""
    tensor = weak_cast(value, dtype, "convert")
    return tensor._stand_in() if _is_weak(tensor) else tensor


def zeros(type: TensorType) -> Tensor:
    """Zeros of a type, in the trace that goes on."""
    result: Tensor = builder.full(0, type)
    return result
