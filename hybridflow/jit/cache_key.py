"""The cache keys by which a Function tells one signature from another.

A key is hashable and equal exactly when one trace may serve both arguments: tensors by shape and dtype, Python scalars
and other immutable values by type and bits (``value_key``), variables and other objects by identity.  Identity is held
through a weak reference, so that an object made later at the same address is never mistaken for one that is gone.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir.extents import LEAST
from hybridflow.core import pytree
from hybridflow.core.promotion import array_dtype
from hybridflow.core.string_tensor import StringTensor, holds_texts, is_string
from hybridflow.core.tensor import Tensor, looked_at
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentTypeError, ShapeError, StringsWantedError, TraceError
from hybridflow.jit.tensor_spec import TensorSpec, Wanted, accepts, type_text
from hybridflow.jit.value_key import ValueKey, value_key
from hybridflow.runtime.calls.argument_specs import IntArg
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


class TensorKey:
    """Key of a tensor argument.  An extent of None or a name, from a TensorSpec, stands for any but 0 and 1.

    ``declared`` is the TensorSpec's shape, which equality does not see; None where no extent was open.  ``is_weak``:
    it is a NumPy scalar, see ``core.promotion``.
    """

    __slots__ = ("_hash", "declared", "dtype", "is_weak", "shape")

    def __init__(
        self,
        shape: tuple[Wanted, ...],
        dtype: np.dtype[Any],
        declared: tuple[Wanted, ...] | None = None,
        is_weak: bool = False,
    ) -> None:
        self.shape, self.dtype, self.is_weak = shape, dtype, is_weak
        self.declared = shape if declared is None and self.is_open else declared
        self._hash = hash((shape, dtype.num))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is TensorKey
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.is_weak == other.is_weak
        )

    @property
    def is_named(self) -> bool:
        return self.declared is not None and any(isinstance(extent, str) for extent in self.declared)

    @property
    def is_open(self) -> bool:
        return any(not isinstance(extent, int) for extent in self.shape)

    def for_shape(self, shape: tuple[Any, ...]) -> TensorKey:
        """The key under which a tensor of that shape, which fits, is traced: its extents 0 and 1 are no open ones."""
        if not self.is_open:
            return self
        pairs = zip(self.shape, shape)
        known = tuple(h if not isinstance(w, int) and isinstance(h, int) and h < LEAST else w for w, h in pairs)
        return self if known == self.shape else TensorKey(known, self.dtype, self.declared)

    def accepts_shape(self, shape: tuple[Any, ...]) -> bool:
        """Whether a tensor of that shape fits, its open extents being whatever they are."""
        return accepts(self.shape, shape)

    def __str__(self) -> str:
        return f"NumPy scalar {self.dtype}" if self.is_weak else type_text(self.shape, self.dtype)


class NumberKey:
    """Key of a Python float, or an int from LEAST to IntArg.MOST, whatever its value."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __hash__(self) -> int:
        return hash((NumberKey, self.kind))

    def __eq__(self, other: object) -> bool:
        return type(other) is NumberKey and self.kind is other.kind

    def accepts(self, value: object) -> bool:
        """Whether a value is one of these numbers."""
        return type(value) is self.kind and (not isinstance(value, int) or LEAST <= value <= IntArg.MOST)

    def __str__(self) -> str:
        return f"any {self.kind.__name__}"


class IdentityKey:
    """Key of an object by identity.  Equal to nothing, itself excepted, once the object is gone."""

    __slots__ = ("_hash", "kind", "reference", "where")

    def __init__(self, value: object) -> None:
        self.reference = weakref.ref(value)
        self._hash = id(value)
        self.kind = type(value)
        self.where = f"0x{id(value):x}"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not IdentityKey or self._hash != other._hash:
            return False
        value = self.reference()
        return value is not None and value is other.reference()

    def __str__(self) -> str:
        return f"{self.kind.__name__} object at {self.where}"


class SameKey:
    """Key of an argument that is the very tensor of an earlier one, at ``position`` among the leaves."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position

    def __hash__(self) -> int:
        return hash((SameKey, self.position))

    def __eq__(self, other: object) -> bool:
        return type(other) is SameKey and self.position == other.position

    def __str__(self) -> str:
        return f"the tensor of argument {self.position}"


_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: a class of the interpreter or of an extension module
OPEN_EXTENT = "open extent"  # the kind of a difference that ends by itself
LeafKey = TensorKey | NumberKey | ValueKey | IdentityKey | SameKey


def leaf_key(value: Any, path: str, owner: str) -> LeafKey:
    """The key of one argument leaf.  Raises ArgumentTypeError, naming ``path``, where there can be no safe key."""
    kind = type(looked_at(value))
    if kind is Tensor:
        return TensorKey(value.shape, value.dtype)
    if kind is StringTensor:
        raise StringsWantedError
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "USO" and holds_texts(value):
            raise StringsWantedError
        return TensorKey(value.shape, array_dtype(value, owner, path or "an argument"))
    if isinstance(value, np.generic):
        return TensorKey((), array_dtype(value, owner, path or "an argument"), is_weak=True)
    plain = value_key(value)
    if plain is not None:
        return plain
    if issubclass(kind, SymbolicTensor):
        raise TraceError(
            owner, f"{path} is {value!r}, which belongs to a trace that is over. Return it from its function instead."
        )
    if kind is slice:
        return ValueKey(value, tuple(_bound_key(v, path, owner) for v in (value.start, value.stop, value.step)))
    if kind.__hash__ is None or kind is types.MappingProxyType:  # hashable, sometimes, but of what others may change
        raise ArgumentTypeError(
            owner,
            f"{path} is a {kind.__name__}, whose changes would go unnoticed. "
            "Pass tensors, Python scalars, strings, lists, tuples, dicts or dataclasses of them, or a hashable object.",
        )
    try:
        return IdentityKey(value)
    except TypeError:
        raise ArgumentTypeError(
            owner,
            f"{path} is a {kind.__name__}, which cannot be weakly referenced, so it cannot be told from later objects. "
            + _remedy(value),
        ) from None


def spec_key(spec: TensorSpec) -> TensorKey:
    """The key of an argument that a spec stands for."""
    if is_string(spec.dtype):
        raise StringsWantedError
    return TensorKey(spec.shape, spec.dtype)


def _bound_key(bound: object, path: str, owner: str) -> LeafKey:
    """The key of a slice's bound, which is no argument: a tensor's value counts, so that it is told by identity."""
    if isinstance(bound, np.ndarray):
        raise ArgumentTypeError(
            owner, f"{path} is a slice with an array for a bound, whose changes would go unnoticed. Pass an integer."
        )
    return value_key(bound) or (IdentityKey(bound) if type(bound) is Tensor else leaf_key(bound, path, owner))


def _remedy(value: object) -> str:
    """What to do about an object that can neither be told by its value nor be weakly referenced."""
    written_in_python = not type(value).__flags__ & _IMMUTABLE_TYPE and "__slots__" in vars(type(value))
    if written_in_python and type(value).__itemsize__ == 0:
        return "Add '__weakref__' to its __slots__, or pass its parts."
    return "Pass its parts: tensors, Python scalars, strings, or lists, tuples and dicts of them."


def check_names(owner: str, paths: Iterable[str], keys: Iterable[LeafKey], leaves: Iterable[Any]) -> None:
    """Raise ShapeError if extents of one name differ."""
    first: dict[str, tuple[str, Any]] = {}
    for path, key, leaf in zip(paths, keys, leaves):
        named = key.declared if isinstance(key, TensorKey) and is_tensor_like(leaf) else None
        for axis, (name, extent) in enumerate(zip(named or (), getattr(leaf, "shape", ()))):
            if not isinstance(name, str):
                continue
            where, known = first.setdefault(name, (f"{path}.shape[{axis}]", extent))
            if known != extent:
                raise ShapeError(
                    owner, f"extents named {name!r} differ: {where} is {known} and {path}.shape[{axis}] is {extent}."
                )


def is_tensor_like(value: object) -> bool:
    """Whether a traced function sees ``value`` as a tensor argument."""
    return isinstance(value, (Tensor, np.ndarray, np.generic))


def _is_apart(extent: Wanted) -> bool:
    """Whether an extent is open, or one of those that open ones leave to traces of their own."""
    return not isinstance(extent, int) or extent < LEAST


def difference(old: LeafKey, new: LeafKey) -> tuple[str, str]:
    """What differs between two keys of one argument: (kind of the difference, what to do about it)."""
    if isinstance(old, TensorKey) and isinstance(new, TensorKey):
        if old.dtype != new.dtype:
            return "dtype", f"pass one dtype: convert with hf.astype(x, hf.{old.dtype}) before the call"
        if old.is_weak != new.is_weak:
            return "scalar", "pass always a tensor, hf.constant(value), or always a NumPy scalar"
        if len(old.shape) != len(new.shape):
            return "rank", "pass one rank: reshape before the call"
        if new.is_open and new.accepts_shape(old.shape):
            return OPEN_EXTENT, "the extents that differ are open from now on: one trace serves all from 2 on"
        if all(m == n or (_is_apart(m) and _is_apart(n)) for m, n in zip(old.shape, new.shape)):
            return OPEN_EXTENT, "an open extent of 0 or 1 has a trace of its own, once; larger ones share one trace"
        spec = TensorSpec([m if m == n else None for m, n in zip(old.shape, new.shape)], new.dtype)
        return "shape", f"pad or batch to one shape, or declare it in the input_signature: hf.{spec!r}"
    if isinstance(new, NumberKey):
        return OPEN_EXTENT, "the number is open from now on: one trace serves all values"
    if isinstance(old, (ValueKey, NumberKey)) and isinstance(new, ValueKey):
        if new.kind in (bool, int, float):
            return "value", "pass it as a tensor, hf.constant(value), so that it becomes an input of one trace"
        return "value", "each value is a trace of its own: keep the set of values small"
    if isinstance(old, IdentityKey) and isinstance(new, IdentityKey):
        if issubclass(new.kind, Variable):
            return "variable", "each variable is a trace of its own: pass its value, v.value(), if it is only read"
        return "object", "make the object once and pass the same one, or pass its tensors and scalars"
    if any(isinstance(key, SameKey) or getattr(key, "kind", None) is Tensor for key in (old, new)):
        return "identity", "one tensor in two places is a trace of its own where tapes or `is` tell tensors apart"
    return "type", "pass one type: for numbers hf.constant(value)"


class Key(NamedTuple):
    """What a signature is found by: the nesting and the leaves of its arguments."""

    structure: pytree.Structure
    leaves: tuple[LeafKey, ...]
