"""Parts of variables that are assigned to: ``v[1:3].assign(value)``, as TensorFlow writes ``v[1:3] = value``.

What is read of a variable by an index is a tensor like others.  Which part of which variable it is, is noted beside it
for as long as it lives.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from hybridflow.array.indexing import getitem
from hybridflow.core.methods import give
from hybridflow.core.other_names import OF_TENSOR, OtherName
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.variable import Variable

# By id of a tensor: it, its variable, and the index.
_parts: dict[int, tuple[weakref.ref[Tensor], weakref.ref[Variable], Any]] = {}


def _getitem(self: Variable, key: Any, /) -> Tensor:
    """``v[key]``: see ``hf.Tensor.__getitem__``."""
    found = getitem(self, key)
    if found is not self._tensor:  # which others may have too
        number = id(found)
        _parts[number] = weakref.ref(found, lambda _: _parts.pop(number, None)), weakref.ref(self), key
    return found


class _Assigner(OtherName):
    """``assign`` of tensors: there is none, unless one is a part of a variable."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        _, reference, key = _parts.get(id(instance), (None, None, None))
        variable = None if reference is None else reference()
        return super().__get__(instance, owner) if variable is None else functools.partial(_assign, variable, key)


def _assign(variable: Variable, key: Any, value: Any, use_locking: bool = False, name: str | None = None) -> Variable:
    """``v[key].assign(value)``: the same as ``v[key] = value``; returns the variable."""
    variable[key] = value
    return variable


def install() -> None:
    """Give the classes these methods; called once, when the package is imported."""
    give(Variable, "__getitem__", _getitem)
    setattr(Operators, "assign", _Assigner("assign", OF_TENSOR["assign"]))  # noqa: B010
