"""One tensor in several places of a call: as two arguments, or as an argument and a tensor from outside.

Tapes tell values apart by identity, and so does ``is``.  A program in whose trace one of them was at work answers calls
only whose tensors are as many objects as those of its own call; other calls get a key that says which are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hybridflow.core.context import current
from hybridflow.core.tensor import Tensor
from hybridflow.jit.cache_key import IdentityKey, Key, LeafKey, SameKey, TensorKey


class AliasRule(NamedTuple):
    """When it matters to a program which of its arguments are one tensor: always, if it ``depends_on_identity``, where
    ``captured`` are the ids of the tensors from outside; with open extents (``is_open``) under tapes."""

    depends_on_identity: bool
    captured: frozenset[int]
    is_open: bool

    def key(self, key: Key, leaves: Sequence[Any]) -> Key | None:
        """The key of what answers a call with these leaves and the program's ``key``; None where the program does."""
        if self.depends_on_identity:
            return aliased_key(key, leaves, self.captured)
        if self.is_open and current.tapes:
            return aliased_key(key, leaves)  # to a tape it is one value, so it has one type
        return None


def aliased_key(key: Key, leaves: Sequence[Any], captured: frozenset[int] = frozenset()) -> Key | None:
    """``key`` with what says that a tensor is one of the ``captured`` ones, given by their ids, or that of an earlier
    argument; None where none is."""
    tensors = [id(leaf) for leaf in leaves if isinstance(leaf, Tensor)]
    if len(set(tensors)) == len(tensors) and captured.isdisjoint(tensors):
        return None
    first: dict[int, int] = {}
    keys: list[LeafKey] = list(key.leaves)
    for k, (leaf, leaf_key) in enumerate(zip(leaves, key.leaves)):
        if not (isinstance(leaf_key, TensorKey) and isinstance(leaf, Tensor)):
            continue
        if id(leaf) in captured:
            keys[k] = IdentityKey(leaf)
            continue
        k0 = first.setdefault(id(leaf), k)
        if k0 != k:
            keys[k0] = _both(keys[k0], leaf_key)
            keys[k] = SameKey(k0)
    return None if keys == list(key.leaves) else Key(key.structure, tuple(keys))


def _both(a: LeafKey, b: TensorKey) -> TensorKey:
    """The key of a tensor that fits two: an extent is open if it is in both."""
    assert isinstance(a, TensorKey)
    shape = tuple(m if isinstance(m, int) else n for m, n in zip(a.shape, b.shape))
    return a if shape == a.shape else TensorKey(shape, a.dtype, a.declared)
