"""What stands for tensors while layers are connected to graphs, before there is data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from hybridflow.compiler.ir.extents import known
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import pytree
from hybridflow.core.shape import Shape
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentTypeError


class Call:
    """One call of a layer while a graph is built: the layer, its arguments with symbols among them, and its results."""

    __slots__ = ("arguments", "layer", "outputs", "structure")

    def __init__(self, layer: Any, arguments: tuple[Any, dict[str, Any]]) -> None:
        self.layer, self.arguments = layer, arguments
        self.outputs: list[Symbol] = []
        self.structure: Any = None  # of the outputs

    def inputs(self) -> list[Symbol]:
        """The symbols among the arguments."""
        return [leaf for leaf in pytree.flatten(self.arguments)[0] if isinstance(leaf, Symbol)]

    def result(self) -> Any:
        """The symbols of the results, nested as the layer returns them."""
        return pytree.unflatten(self.structure, self.outputs)


class Connecting:
    """Base of what layers are called with before there is data."""

    __slots__ = ()
    # What a layer does that is called with such: set by the module that knows layers.
    connect: ClassVar[Any]


@pytree.declare_leaf
class Symbol(Connecting):
    """What stands for a tensor while layers are connected: it has a shape, None for extents that are not known, and a
    dtype, but no value.  Layers take it, and so do Python's arithmetic and indexing."""

    __slots__ = ("call", "index", "mask_type", "type")
    __array_ufunc__ = None
    shape_for: ClassVar[Any]  # the shape of what a layer makes of a shape

    def __init__(self, type: TensorType, call: Call, index: int) -> None:
        self.type, self.call, self.index = type, call, index
        self.mask_type: TensorType | None = None  # of its mask, where it has one

    @property
    def name(self) -> str:
        """The name of the layer whose result it is."""
        name: str = self.call.layer.name
        return name

    @property
    def shape(self) -> Shape:
        return Shape(known(self.type.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    def __iter__(self) -> Any:
        raise ArgumentTypeError(self.name, "a symbolic input has no rows to iterate over.")

    def __bool__(self) -> bool:
        raise ArgumentTypeError(self.name, "a symbolic input has no value, so nothing can depend on it.")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        raise ArgumentTypeError(
            self.name, "a symbolic input has no value; use layers, or hf.layers.Lambda(lambda x: ...) for functions."
        )

    def __repr__(self) -> str:
        return f"<Symbol {self.name!r} {self.dtype.name}{list(self.shape)}>"


def first_symbol(arguments: Iterable[Any]) -> Connecting | None:
    """A symbol, or what is like it, among arguments, or in lists, tuples and dicts there."""
    for value in arguments:
        result = None
        if isinstance(value, Connecting):
            return value
        if isinstance(value, (list, tuple)) and value:
            result = first_symbol(value)
        elif isinstance(value, dict):
            result = first_symbol(value.values())
        if result is not None:
            return result
    return None
