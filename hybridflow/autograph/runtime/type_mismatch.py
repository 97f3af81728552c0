"""Values in messages, and why two of them are no one value."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hybridflow.autograph.runtime import object_trees
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, UNREAD
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core import pytree
from hybridflow.core.promotion import OpenFloat
from hybridflow.core.pytree import instance_dict
from hybridflow.core.tensor import Tensor
from hybridflow.tracing.symbolic_number import weak_of

ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic)


class TypeMismatch:
    """Why there is no value: ``one`` and ``other`` say what the two are."""

    __slots__ = ("kind", "one", "other")

    def __init__(self, kind: str, one: object, other: object) -> None:
        self.kind, self.one, self.other = kind, text_of(one), text_of(other)
        if kind == "kind" and type(one) is type(other) and _is_object(one):
            self.kind = "object"


def _is_object(value: object) -> bool:
    """Whether a value is an instance of a class of the user's, and not what has a name of its own."""
    return type(instance_dict(value)) is dict and not isinstance(value, (type, types.FunctionType))


def text_of(value: object) -> str:
    """A value in a message: its type where it is a tensor."""
    if value is UNBOUND or value is UNREAD:
        return "not bound"
    if isinstance(value, Tensor):
        weak = weak_of(value)
        if weak is None:
            return str(value.type)
        return f"a NumPy scalar {weak.dtype}" if weak.kind is None else f"a Python {weak.kind.__name__}"
    if isinstance(value, OpenFloat):
        return "a Python float"
    if isinstance(value, (*ATOMS, Dim)):
        return f"the Python {type(value).__name__} {value!r}" if value is not None else "None"
    if object_trees.is_container(value):
        leaves, structure = object_trees.flatten(value)
        return repr(structure) if len(leaves) > 8 else _nested(structure, iter(leaves))
    if isinstance(value, enum.Enum):
        return str(value)
    name = getattr(value, "__qualname__", None)
    return f"the {type(value).__name__} {name}" if name else f"a {type(value).__name__}"


def _nested(structure: pytree.Structure, leaves: Iterator[Any]) -> str:
    if structure.kind is None:
        leaf = next(leaves)
        if object_trees.is_container(leaf):  # which is met again in itself
            return f"a {type(leaf).__name__}"
        return text_of(leaf).removeprefix("the Python ").removeprefix("a Python ")
    texts = [_nested(child, leaves) for child in structure.children]
    in_messages: Callable[[], str] | None = getattr(structure.kind, "in_messages", None)
    if in_messages is not None:  # a container of ours
        return in_messages()
    if structure.labels:
        by_label = dict(zip(structure.labels, texts))
        texts = [f"{label!s}: {by_label[label]}" for label in structure.order or structure.labels]
    return f"{structure.kind.__name__}({', '.join(texts)})"
