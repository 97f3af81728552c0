"""One value in the place of two: what a name is after branches that bound it, or from turn to turn.

Tensors of one type become one.  Python numbers stay what they are where both are the same; else they become tensors
that go on counting as Python numbers.  Lists, tuples, dicts and dataclasses are joined item by item.  Where there is no
common value there is a ``Conflict``, which matters only if it is read.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import TensorType, same_extents
from hybridflow.core import pytree
from hybridflow.core.promotion import OpenFloat, result_dtype, weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import weak_cast
from hybridflow.tracing.flow import trees
from hybridflow.tracing.flow.places import UNBOUND
from hybridflow.tracing.numbers import Weak, weak_of
from hybridflow.tracing.symbolic import SymbolicTensor

ABSENT: Any = type("Absent", (), {"__slots__": ()})()  # on a side that is not asked for the value

_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic)


class Conflict:
    """Why there is no value: ``one`` and ``other`` say what the two are."""

    __slots__ = ("kind", "one", "other")

    def __init__(self, kind: str, one: Any, other: Any) -> None:
        self.kind, self.one, self.other = kind, text_of(one), text_of(other)
        if kind == "kind" and type(one) is type(other) and _is_object(one):
            self.kind = "object"


def _is_object(value: Any) -> bool:
    """Whether a value is an instance of a class of the user's, and not what has a name of its own."""
    return type(getattr(value, "__dict__", None)) is dict and not hasattr(value, "__qualname__")


def text_of(value: Any) -> str:
    """A value in a message: its type where it is a tensor."""
    if value is UNBOUND:
        return "not bound"
    if isinstance(value, Tensor):
        weak = weak_of(value)
        if weak is None:
            return str(value.type)
        return f"a NumPy scalar {weak.dtype}" if weak.kind is None else f"a Python {weak.kind.__name__}"
    if isinstance(value, OpenFloat):
        return "a Python float"
    if isinstance(value, (*_ATOMS, Dim)):
        return f"the Python {type(value).__name__} {value!r}" if value is not None else "None"
    if trees.is_container(value):
        leaves, structure = trees.flatten(value)
        return repr(structure) if len(leaves) > 8 else _nested(structure, iter(leaves))
    name = getattr(value, "__qualname__", None)
    return f"the {type(value).__name__} {name}" if name else f"a {type(value).__name__}"


def _nested(structure: pytree.Structure, leaves: Iterator[Any]) -> str:
    if structure.kind is None:
        leaf = next(leaves)
        if trees.is_container(leaf):  # which is met again in itself
            return f"a {type(leaf).__name__}"
        return text_of(leaf).removeprefix("the Python ").removeprefix("a Python ")
    texts = [_nested(child, leaves) for child in structure.children]
    if structure.labels:
        by_label = dict(zip(structure.labels, texts))
        texts = [f"{label!s}: {by_label[label]}" for label in structure.order or structure.labels]
    return f"{structure.kind.__name__}({', '.join(texts)})"


def same_atom(a: Any, b: Any) -> bool:
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
    return isinstance(a, _ATOMS) and repr(a) == repr(b)


def is_of(value: Any, trace: Any) -> bool:
    """Whether a value is a tensor that was made in ``trace``."""
    return isinstance(value, SymbolicTensor) and value._trace is trace


def is_atom(value: Any) -> bool:
    """Whether a value is one that has no parts and never changes."""
    return isinstance(value, (*_ATOMS, Dim, type))


def holds(value: Any, trace: Any) -> bool:
    """Whether an object that is no container of ours holds tensors that were made in ``trace``."""
    for leaf in trees.flatten(value)[0]:
        own: Any = None if isinstance(leaf, (type, types.ModuleType)) else getattr(leaf, "__dict__", None)
        if type(own) is dict and any(is_of(x, trace) for x in trees.flatten(list(own.values()))[0]):
            return True
    return False


class View(Protocol):
    """One side that was left: what it changed in place is as it was before it, and seen as it was after it."""

    region: Any

    def flatten(self, value: Any, whole: Collection[int] = ...) -> tuple[list[Any], pytree.Structure]: ...

    def parts(self, value: Any) -> dict[int, Any]: ...

    def has_touched(self, value: Any) -> bool: ...

    def end(self, value: Any) -> Any: ...


class Joined:
    """Joins values of two sides.  ``within(k)`` is a block in which ops go into side ``k``.

    What has to become one tensor is in ``outputs``, for each side; ``finished`` puts the tensors in.
    """

    def __init__(self, within: Callable[[int], Any], views: Sequence[View]) -> None:
        self._within, self._views = within, views
        self.outputs: list[list[Tensor]] = [[], []]
        self._weak: list[Weak | None] = []
        self._met: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self.made: list[tuple[Any, ...]] = []  # what stands for two objects, and those

    def value(self, a: Any, b: Any) -> Any:
        """What stands for ``a`` and ``b``: a value, a Conflict, or something that ``finished`` makes a value of."""
        if a is b:
            return a
        if a is ABSENT or b is ABSENT:
            return self._only(b if a is ABSENT else a, 0 if a is ABSENT else 1)
        if a is UNBOUND or b is UNBOUND or isinstance(a, Conflict) or isinstance(b, Conflict):
            return a if isinstance(a, Conflict) else b if isinstance(b, Conflict) else Conflict("unbound", a, b)
        if same_atom(a, b):
            return a
        if weak_kind(a) is not None and weak_kind(b) is not None:
            return self._numbers(a, b)
        key = id(a), id(b)
        if key not in self._met:  # two names of one object go on to be that
            self._met[key] = Conflict("cycle", a, b), a, b  # for what they hold, if they are in it
            self._met[key] = self._objects(a, b), a, b
        return self._met[key][0]

    def _objects(self, a: Any, b: Any) -> Any:
        if _is_value(a) and _is_value(b):
            one, two = self._views
            found = self._tensors(one.end(a), two.end(b))
        elif trees.is_container(a) and trees.is_container(b):
            found = self._containers(a, b)
        else:
            return Conflict("kind", a, b)
        if not isinstance(found, Conflict):
            found.of = a, b
        return found

    def output(self, one: Tensor, other: Tensor, weak: Weak | None = None) -> _Output:
        self.outputs[0].append(one)
        self.outputs[1].append(other)
        self._weak.append(weak)
        return _Output(len(self._weak) - 1)

    def _only(self, value: Any, missing: int) -> Any:
        """A value that the side ``missing`` is not asked for: there it is anything of that type."""
        view = self._views[1 - missing]
        if self._stays(value, view):
            return value
        key = (id(ABSENT), id(value)) if missing == 0 else (id(value), id(ABSENT))
        if key not in self._met:
            self._met[key] = Conflict("cycle", value, value), value, ABSENT
            found = self._made_in(value, missing)
            if isinstance(found, Conflict):
                return found
            found.of = (value,)
            self._met[key] = found, value, ABSENT
        return self._met[key][0]

    def _stays(self, value: Any, view: View) -> bool:
        """Whether a value goes on to be the object that it is: what of it changes is a place of its own."""
        if view.has_touched(value):
            return True
        places = [key for key, part in view.parts(value).items() if view.has_touched(part)]
        leaves = view.flatten(value, places)[0]
        return not any(is_of(x, view.region) and not view.has_touched(x) for x in leaves)

    def _made_in(self, value: Any, missing: int) -> Any:
        view = self._views[1 - missing]
        if trees.is_container(value):
            inside = view.parts(value)
            inside.pop(id(value), None)  # of what leads back to itself
            leaves, structure = view.flatten(value, inside)
            found = [self._only(leaf, missing) for leaf in leaves]
            return next((x for x in found if isinstance(x, Conflict)), None) or _Nested(structure, found)
        with self._within(missing):
            dummy = zeros(value.type)
        pair = (dummy, value) if missing == 0 else (value, dummy)
        return self.output(pair[0], pair[1], weak_of(value))

    def _numbers(self, a: Any, b: Any) -> Any:
        one, other = weak_of(a), weak_of(b)
        weak = None if one is None or other is None else one.joined(other)
        if weak is None:
            return Conflict("kind", a, b)
        made = []
        for side, x in enumerate((a, b)):
            with self._within(side):
                made.append(weak.tensor(x))
        return self.output(made[0], made[1], weak)

    def _tensors(self, a: Any, b: Any) -> Any:
        typed = b if _is_weak(a) else a
        if any(x.dtype != typed.dtype for x in (a, b) if not _is_weak(x)) or (
            any(map(_is_weak, (a, b))) and result_dtype("convert", [a, b]) != typed.dtype
        ):
            return Conflict("dtype", a, b)
        if not same_extents(_shape(a), _shape(b)):
            return Conflict("shape", a, b)
        made = []
        for side, x in enumerate((a, b)):
            with self._within(side):
                made.append(as_typed(x, typed.dtype))
        return self.output(made[0], made[1])

    def _containers(self, a: Any, b: Any) -> Any:
        # Those inside are joined as what they are: one that both hold stays the one object that it is.
        insides = []
        for view, value in zip(self._views, (a, b)):
            insides.append(view.parts(value))
            insides[-1].pop(id(value), None)  # of what leads back to itself
        one, two = self._views
        (ones, structure), (others, other) = one.flatten(a, insides[0]), two.flatten(b, insides[1])
        if structure != other:
            return Conflict("structure", a, b)
        found = []
        for x, y in zip(ones, others):
            made = self.value(x, y)
            if isinstance(made, Conflict):
                is_nested = trees.is_container(x) or trees.is_container(y)
                return (
                    Conflict("structure", a, b) if is_nested and made.kind in ("kind", "object", "structure") else made
                )
            found.append(made)
        return _Nested(structure, found)

    def finished(self, value: Any, tensors: Sequence[Tensor]) -> Any:
        """The value with ``tensors`` in the place of outputs."""
        if not isinstance(value, (_Output, _Nested)):
            return value
        if value.made is None:
            value.made = self._made(value, tensors)
            if value.of is not None:
                self.made.append((value.made, *value.of))
        return value.made

    def _made(self, value: _Output | _Nested, tensors: Sequence[Tensor]) -> Any:
        if isinstance(value, _Output):
            found = tensors[value.number]
            weak = self._weak[value.number]
            return found if weak is None else weak.scalar(found)
        return pytree.unflatten(value.structure, [self.finished(leaf, tensors) for leaf in value.leaves])


class _Output:
    __slots__ = ("made", "number", "of")

    def __init__(self, number: int) -> None:
        self.number = number
        self.made: Any = None
        self.of: tuple[Any, ...] | None = None  # the objects that it stands for


class _Nested:
    __slots__ = ("leaves", "made", "of", "structure")

    def __init__(self, structure: pytree.Structure, leaves: list[Any]) -> None:
        self.structure, self.leaves = structure, leaves
        self.made: Any = None
        self.of: tuple[Any, ...] | None = None


def _is_value(value: Any) -> bool:
    return isinstance(value, Tensor) or _is_weak(value)


def _is_weak(value: Any) -> bool:
    return weak_kind(value) is not None


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else ()


def as_typed(value: Any, dtype: Any) -> Tensor:
    """A tensor or number as a tensor of ``dtype``, in the trace that goes on."""
    made = weak_cast(value, dtype, "convert")
    return made._stand_in() if _is_weak(made) else made


def zeros(type: TensorType) -> Tensor:
    """Zeros of a type, in the trace that goes on."""
    found: Tensor = builder.full(0, type)
    return found
