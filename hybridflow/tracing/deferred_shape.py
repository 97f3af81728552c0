"""Results of functions in Python whose shapes nobody has said yet: calls that are told later what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import pytree
from hybridflow.core.context import Tracer
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ShapeError, TraceError, short_location, user_location
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


@pytree.declare_leaf
class DeferredShapeTensor(SymbolicTensor):
    """A tensor of a known dtype whose shape ``set_shape`` says, before anything else is done with it.

    ``make(shape, is_reshaped)`` returns what it is the same as from then on, or what has the same elements; ``tapes``
    are told of the former.
    """

    __slots__ = ("_created", "_dtype", "_extents", "_make", "_stage", "_tapes", "_where")
    _is_shapeless = True

    def __init__(
        self,
        stage: str,
        dtype: np.dtype[Any],
        trace: Tracer,
        make: Callable[[Any, bool], SymbolicTensor],
        tapes: Sequence[Any],
    ) -> None:
        self._trace, self.is_weak, self.is_argument, self._row = trace, False, False, None
        self._stage, self._dtype, self._make, self._tapes, self._where = stage, dtype, make, tapes, user_location(2)
        self._extents: Sequence[Any] | None = None  # as far as they are known
        self._created: tuple[Node, int] | None = None  # and how many nodes the trace had before it

    @property
    def _node(self) -> Node:
        if self._created is None:
            raise self._unknown()
        node, place = self._created
        nodes = self._nodes()
        if (place < len(nodes) and nodes[place] is node) or place < 0 or self._is_over():
            return node
        return self._settle()  # the trace went back to before it was made

    @_node.setter
    def _node(self, node: Node) -> None:
        self._created = node, -1

    def _nodes(self) -> list[Node]:
        trace: Any = self._trace
        nodes: list[Node] = trace.nodes
        return nodes

    def _is_over(self) -> bool:
        trace: Any = self._trace
        over: bool = trace.finished
        return over

    def _settle(self) -> Node:
        value = self._make(tuple(self._extents or ()), False)
        self._created = value._node, len(self._nodes()) - 1
        for tape in self._tapes:
            tape.record_custom((value,), (self,), lambda cotangent: (cotangent,))
        self._tapes = ()
        return value._node

    def set_shape(self, shape: Sequence[Any]) -> None:
        """Say what the shape is; None or -1 for an extent that another call says.  Raises ShapeError for a shape that
        does not go with what was said before."""
        if self._created is not None:
            super().set_shape(shape)
            return
        if shape is None or getattr(shape, "rank", 0) is None:
            return
        extents = [None if n is None or (isinstance(n, int) and n < 0) else n for n in shape]
        held = self._extents or [None] * len(extents)
        if len(held) != len(extents) or any(n is not None and m is not None and n != m for n, m in zip(extents, held)):
            raise ShapeError("set_shape", f"the shape is {extents}, and was said to be {list(held)}.")
        self._extents = [m if n is None else n for n, m in zip(extents, held)]
        if None not in self._extents:
            if self._is_over():
                raise TraceError("set_shape", f"{self!r} leaked out of the trace of {self._trace.name}.")
            self._settle()

    def _of_shape(self, shape: Sequence[Any]) -> Tensor:
        """What has these elements, as many as they may be, in that shape."""
        if self._created is not None:
            return self
        if any(isinstance(n, int) and n < 0 for n in shape) or sum(not isinstance(n, int) for n in shape) > 1:
            raise self._unknown()
        return self._make(tuple(shape), True)

    def _unknown(self) -> ArgumentError:
        line = short_location(self._where)
        said = "" if self._extents is None else f" but for {list(self._extents)}"
        return ArgumentError(
            self._stage,
            f"the shape of what it returned{f' at {line}' if line else ''} is not known{said}, and a compiled program "
            f"knows its shapes. Say it before anything else is done with the result: y.set_shape(shape), or give Tout "
            f"as hf.TensorSpec(shape, hf.{self._dtype}), or as a tensor of that shape and dtype.",
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        result: np.dtype[Any] = self._dtype
        return result

    def _stand_in(self) -> Tensor:
        return SymbolicTensor(self._node, self._trace)

    def __repr__(self) -> str:
        return f"<sym {self._dtype} of unknown shape>" if self._created is None else super().__repr__()


class DeferredCall:
    """A call that was recorded with no results, and has more of them each time that the shape of one is said."""

    def __init__(self, trace: Any, node: Node) -> None:
        self._trace, self._node = trace, node
        self.wanted: list[tuple[int, tuple[Any, ...], bool]] = []  # which of what is returned, its shape, if reshaped

    def result(self, number: int, dtype: np.dtype[Any], shape: tuple[Any, ...], is_reshaped: bool) -> SymbolicTensor:
        """The result of that number as a value of the program: with that shape, or reshaped to it."""
        key = number, shape, is_reshaped
        if key not in self.wanted:
            self.wanted.append(key)
            self._trace.widen(self._node, TensorType(shape, dtype))
        result: SymbolicTensor = self._trace.one_result(self._node, 1 + self.wanted.index(key))
        return result

    def chosen(self, name: str, stage: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the program gets of what was returned.  Raises ShapeError where it is no such array."""
        return [_fitted(name, stage, arrays[number], shape, again) for number, shape, again in self.wanted]


def static(shape: tuple[Any, ...]) -> list[int]:
    """A shape as far as it is known while tracing, with -1 for extents that are symbolic."""
    return [n if isinstance(n, int) else -1 for n in shape]


def _fitted(name: str, stage: str, array: np.ndarray, shape: tuple[Any, ...], is_reshaped: bool) -> np.ndarray:
    known = static(shape)
    if is_reshaped:
        try:
            return array.reshape(known)
        except ValueError:
            pass
    elif array.ndim == len(known) and all(n in (-1, m) for n, m in zip(known, array.shape)):
        return array
    actual = TensorType(array.shape, array.dtype)
    asked = "as many elements as the shape" if is_reshaped else "the shape"
    raise ShapeError(stage, f"{name} returned {actual}. Expected {asked} {tuple(shape)} that it was said to have.")
