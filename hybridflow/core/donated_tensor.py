"""Tensors that were given up to a call, whose results may lie in their memory.

A call takes the arrays out of the tensors before its program runs, so nobody can come to see the memory meanwhile; who
has seen it before has a reference to the array, or to what it is a view of.  So the memory is the call's own where
nobody but the call refers to the array, and the array is no view: then a program may write there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import devices, pytree
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor
from hybridflow.errors import DonatedError, short_location

_slot: Any = vars(Tensor)["_array"]


class DonatedBuffer(NamedTuple):
    """What is left of a tensor: its type, where it lay, and the call that it was given up to."""

    type: TensorType
    device: str
    call: str
    where: str | None

    def __str__(self) -> str:
        line = short_location(self.where)
        return f"{self.call}{f' ({line})' if line else ''}"


@pytree.declare_leaf
class DonatedTensor(Tensor):
    """A tensor that was given up.  It still has a type; whoever wants its elements gets an error.

    Native code takes objects of the class Tensor alone, and so leaves it to Python.
    """

    __slots__ = ()
    _is_lazy = True  # whoever needs elements looks at them, see ``looked_at``: here that is an error

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return Shape(self.type.shape)

    @property
    def type(self) -> TensorType:
        return _gift(self).type

    @property
    def device(self) -> str:
        return _gift(self).device

    @property
    def _array(self) -> NoReturn:
        gift = _gift(self)
        raise DonatedError(
            gift.call,
            f"{gift.type} was given up to a call of {gift}, whose results may lie in its memory. Use what that call "
            f"returned, or give it a copy: {gift.call}(+x).",
        )

    def __repr__(self) -> str:
        gift = _gift(self)
        return f"<Tensor {gift.type} given up to {gift}>"

    __str__ = __repr__


def _gift(tensor: Tensor) -> DonatedBuffer:
    held = _slot.__get__(tensor)
    if type(held) is DonatedBuffer:
        return held
    return DonatedBuffer(
        TensorType(held.shape, held.dtype), devices.of(held), "another thread", None
    )  # which is just giving it


class BufferDonation:
    """The tensors that a call at ``where`` gives up."""

    def __init__(self, tensors: Sequence[Tensor], call: str, where: str | None) -> None:
        self._tensors, self._call, self.where = tensors, call, where
        self._taken: list[tuple[Tensor, Any]] = []

    def take(self) -> None:
        """Take the arrays out of the tensors."""
        for tensor in self._tensors:
            if type(tensor) is Tensor:  # not the same one again
                array = tensor._array
                tensor.__class__ = DonatedTensor  # first: native code looks into the slots of tensors alone
                gift = DonatedBuffer(TensorType(array.shape, array.dtype), devices.of(array), self._call, self.where)
                _slot.__set__(tensor, gift)
                self._taken.append((tensor, array))

    def take_back(self) -> None:
        """Let the tensors have their arrays again, into which nothing was written."""
        for tensor, array in self._taken:
            _slot.__set__(tensor, array)
            tensor.__class__ = Tensor

    def owns(self, arrays: list[Any], position: int) -> bool:
        """Whether one of the ``arrays`` is among those that were taken, and nobody but these two lists refers to it: so
        a program may write there."""
        if not any(array is arrays[position] for _, array in self._taken):
            return False
        if not _is_whole(arrays[position]) or not hasattr(sys, "getrefcount"):
            return False
        return sys.getrefcount(arrays[position]) == _alone() + 1


@functools.cache
def _alone() -> int:
    """References to an array that only a list has."""
    arrays = [np.empty(1)]
    return sys.getrefcount(arrays[0])


def _is_whole(array: object) -> bool:
    """Whether an array has memory of its own, made by us or NumPy, all of it and in order."""
    if type(array) is np.ndarray:
        flags = array.flags
        return bool(flags.owndata and flags.c_contiguous and flags.aligned)
    from hybridflow.runtime.cuda import gpu_memory

    return not isinstance(array, np.ndarray) and gpu_memory.is_whole(array)
