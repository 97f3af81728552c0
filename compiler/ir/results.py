"""Types of values that are no single tensor: the several results of one node, and the token that orders effects."""

from __future__ import annotations

from typing import Any, NoReturn, Union

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.types import TensorType, same_shape
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class TupleType:
    """What a node with several results makes; ``project`` nodes read it, one result each.  Prints as
    ``(f32[2], i64[])``.

    It is no tensor: it has neither shape nor dtype, and lies nowhere in memory; its results do.
    """

    parts: tuple[TensorType, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))}{',' if len(self.parts) == 1 else ''})"

    def _no_tensor(self) -> NoReturn:
        raise TypeError(f"[type] a value of type {self} is {len(self.parts)} results; project the one that is meant")

    @property
    def shape(self) -> Any:
        self._no_tensor()

    @property
    def dtype(self) -> Any:
        self._no_tensor()


class TokenType(TensorType):
    """What an ordered effect takes and hands on: that it has happened.  To memory it is an array without elements."""

    __slots__ = ()

    def __str__(self) -> str:
        return "token"


TOKEN = TokenType((0,), dt.uint8)

ValueType = Union[TensorType, TupleType]


def is_token(type: ValueType) -> bool:
    return isinstance(type, TokenType)


def parts_of(type: ValueType) -> tuple[TensorType, ...]:
    """The types of a node's results: one, unless there are several."""
    return type.parts if isinstance(type, TupleType) else (type,)


def types_agree(a: ValueType, b: ValueType) -> bool:
    """Whether two types are equal, of shapes that are the same (see ``same_shape``)."""
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, TupleType):
        parts, others = parts_of(a), parts_of(b)
        return len(parts) == len(others) and all(map(types_agree, parts, others))
    return a.dtype == b.dtype and same_shape(a.shape, b.shape)
