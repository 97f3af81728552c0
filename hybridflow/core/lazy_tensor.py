"""Tensors whose elements wait until somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import pytree
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor
from hybridflow.runtime import fork_safe_locks

if TYPE_CHECKING:
    from hybridflow.compiler.ops.sparse_grad import GatheredRows


_slot: Any = vars(Tensor)["_array"]
_lock = fork_safe_locks.make()  # held while a tensor becomes one like any other, not while its elements are made


class Recipe(NamedTuple):
    """What the elements are made of: ``make()`` is their array, ``parts`` is for those that need no elements."""

    type: TensorType
    parts: Any
    make: Callable[[], Any]


@pytree.declare_leaf
class LazyTensor(Tensor):
    """A tensor that nobody has looked at.  With the first look at ``_array`` it becomes a Tensor like any other.

    Native code takes objects of the class Tensor alone, and so does not come across the recipe, which lies in the slot
    of the array.
    """

    __slots__ = ()
    _is_lazy = True

    @property
    def dtype(self) -> np.dtype[Any]:
        return _type_of(self).dtype

    @property
    def shape(self) -> Shape:
        return Shape(_type_of(self).shape)

    @property
    def type(self) -> TensorType:
        return _type_of(self)

    @property
    def _array(self) -> Any:
        recipe = _slot.__get__(self)
        if type(recipe) is Recipe:  # else another thread was faster
            _become(self, recipe.make(), recipe)
        return _slot.__get__(self)

    @_array.setter
    def _array(self, array: object) -> None:
        _become(self, array)


def _become(tensor: Tensor, array: object, recipe: Recipe | None = None) -> None:
    """Let a tensor have that array; what a recipe made only while the tensor has no other: another thread may have
    looked too, and even have assigned to its items since."""
    with _lock:
        if recipe is None or _slot.__get__(tensor) is recipe:
            _slot.__set__(tensor, array)
            tensor.__class__ = Tensor


def _type_of(tensor: Tensor) -> TensorType:
    held = _slot.__get__(tensor)
    return held.type if type(held) is Recipe else TensorType(held.shape, held.dtype)


def lazy_tensor(type: TensorType, parts: object, make: Callable[[], Any]) -> LazyTensor:
    """A tensor of a static type, whose array ``make`` returns when it is needed."""
    tensor: LazyTensor = object.__new__(LazyTensor)
    _slot.__set__(tensor, Recipe(type, parts, make))
    return tensor


def parts_of(tensor: object) -> GatheredRows | None:
    """What a tensor that nobody has looked at is made of; None for others."""
    if type(tensor) is not LazyTensor:
        return None
    held = _slot.__get__(tensor)
    return held.parts if type(held) is Recipe else None
