"""What a concrete function knows of its arguments, and so need not be told when it is called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hybridflow.core import pytree
from hybridflow.core.call_binding import Binder
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentTypeError
from hybridflow.jit.cache_key import IdentityKey, Key, SameKey, TensorKey
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.jit.value_key import ValueKey

_GONE = object()  # in the place of an object that a key remembers, and nobody holds any more


class ConcreteArguments:
    """The arguments of one signature: those that are not tensors have values, and tensors have names.

    A call may leave out what is not a tensor, or give nothing but the tensors: in the order in which they come, or by
    their names, which are those of their TensorSpecs, and else of their parameters.
    """

    __slots__ = ("_binder", "_given_names", "_key", "_plain")

    def __init__(self, binder: Binder, key: Key, leaves: Sequence[Any]) -> None:
        self._binder, self._key = binder, key
        self._plain = {
            k: leaf for k, (leaf, leaf_key) in enumerate(zip(leaves, key.leaves)) if isinstance(leaf_key, ValueKey)
        }
        self._given_names: dict[str, int] = {}  # names of TensorSpecs, and the leaves that have them

    def name_tensors(self, leaves: Sequence[Any]) -> None:
        """Let tensors have the names that TensorSpecs in their places have."""
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, TensorSpec) and leaf.name:
                self._given_names.setdefault(leaf.name, position)

    @property
    def signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments: a TensorSpec for a tensor, plain values, and a text for anything else."""
        names = {k: name for known in (self._named(), self._given_names) for name, k in reversed(known.items())}
        leaves = [
            TensorSpec(key.declared or key.shape, key.dtype, names.get(k))
            if isinstance(key, TensorKey)
            else self._plain[k]
            if k in self._plain
            else str(key)
            for k, key in enumerate(self._key.leaves)
        ]
        args, kwargs = self._binder.split(pytree.unflatten(self._key.structure, leaves))
        return tuple(args), kwargs

    def plain(self, position: int) -> Any:
        """The plain value that a leaf has.  Raises KeyError for a leaf that is none."""
        return self._plain[position]

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """One value per parameter.  Raises ArgumentTypeError where the call is of another signature."""
        try:
            bound = self._binder.bind_with(args, kwargs, self._values)
            if self._fits(bound):
                return bound
            nested = f"the arguments are nested as {pytree.flatten(bound)[1]!r}, this signature as"
            fault = ArgumentTypeError(self._binder.name, f"{nested} {self._key.structure!r}.")
        except ArgumentTypeError as error:
            fault = error
        tensors = self._tensors_alone(args, kwargs)
        if tensors is None or not self._fits(tensors):
            raise fault from None
        return tensors

    def _fits(self, values: tuple[Any, ...]) -> bool:
        return pytree.flatten(values)[1].same_entries(self._key.structure)

    def _values(self, name: str) -> Any:
        """The value of a parameter.  Raises KeyError where it has tensors, which are not known."""
        place = self._binder.parameters.index(name)
        children = self._key.structure.children
        first = sum([child.leaves for child in children[:place]])
        leaves = [self._value(first + k) for k in range(children[place].leaves)]
        if any(leaf is _GONE for leaf in leaves):
            raise KeyError(name)
        return pytree.unflatten(children[place], leaves)

    def _value(self, position: int) -> Any:
        key = self._key.leaves[position]
        if isinstance(key, IdentityKey):
            value = key.reference()
            return _GONE if value is None or isinstance(value, Tensor) else value
        return self._plain.get(position, _GONE)

    def _named(self) -> dict[str, int]:
        """The leaves that are tensors by the paths that lead to them: ``x``, ``batch_image_0``."""
        paths = self._binder.paths(self._key.structure)
        tensors = [k for k, key in enumerate(self._key.leaves) if self._is_tensor(key)]
        return {re.sub(r"\W+", "_", paths[k]).strip("_"): k for k in reversed(tensors)}

    @staticmethod
    def _is_tensor(key: object) -> bool:
        return isinstance(key, (TensorKey, SameKey)) or (
            isinstance(key, IdentityKey) and isinstance(key.reference(), Tensor)
        )

    def _tensors_alone(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """One value per parameter where a call gives the tensors and nothing else, else None."""
        left = [k for k, key in enumerate(self._key.leaves) if self._is_tensor(key)]
        if len(args) + len(kwargs) != len(left):
            return None
        leaf_values = dict(zip(left, args))
        names = {**self._named(), **self._given_names}
        for name, value in kwargs.items():
            if name not in names or names[name] in leaf_values:
                return None
            leaf_values[names[name]] = value
        leaves = [leaf_values[k] if k in leaf_values else self._value(k) for k in range(len(self._key.leaves))]
        return None if any(leaf is _GONE for leaf in leaves) else pytree.unflatten(self._key.structure, leaves)
