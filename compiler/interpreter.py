"""Running a graph through the ops' references: slow, simple, and the oracle of the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import Dim, affine, value_at
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import parts_of
from hybridflow.compiler.ir.types import Shape, TensorType
from hybridflow.compiler.ops import Kind
from hybridflow.errors import ShapeError


def interpret(
    graph: Graph, inputs: Sequence[np.ndarray], functions: Sequence[Callable[..., Any]] = ()
) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    """The outputs, and the updates (input position -> final value), of a graph for arrays of its inputs' types.
    ``functions`` are what its callbacks call: they return arrays, as many as the op's results."""
    values = _Run({}, functions).values(graph, inputs)
    return [values[node] for node in graph.outputs], {k: values[node] for k, node in graph.updates.items()}


class _Run:
    """One run of a program.  Called with a sub-graph and arrays, it gives the sub-graph's outputs."""

    def __init__(self, dims: dict[str, int], functions: Sequence[Callable[..., Any]]) -> None:
        self.dims, self.functions = dims, functions

    def __call__(self, graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        values = self.values(graph, arrays)
        return [values[node] for node in graph.outputs]

    def shape(self, shape: Shape) -> tuple[int, ...]:
        result: tuple[int, ...] = _concrete(shape, self.dims)
        return result

    def let(self, symbol: str, extent: int) -> None:
        self.dims[symbol] = extent

    def callback(self, number: int, arrays: Sequence[np.ndarray], types: Sequence[TensorType]) -> list[np.ndarray]:
        returned = self.functions[number](*[array.copy() for array in arrays])
        if not types:
            return []
        return list(returned) if len(types) > 1 else [returned]

    def values(self, graph: Graph, inputs: Sequence[np.ndarray]) -> dict[Node, Any]:
        """The value of each node: an array, or a tuple of arrays."""
        _bind(graph, inputs, self.dims)
        values: dict[Node, Any] = dict(zip(graph.inputs, inputs))
        for node in graph.nodes:
            dims = self.dims
            attrs = {name: _concrete(value, dims) for name, value in node.attrs.items()} if dims else node.attrs
            values_in = [values[source] for source in node.inputs]
            if node.op.kind is Kind.CONTROL:
                values_in.insert(0, self)
            values[node] = self.check_result(node, node.op.reference(*values_in, **attrs))
        return values

    def check_result(
        self, node: Node, result: np.ndarray | tuple[np.ndarray, ...]
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """What a reference made, if it is of the node's type."""
        several = isinstance(result, tuple)
        for type, array in zip(parts_of(node.type), result if several else (result,), strict=True):
            expected = self.shape(type.shape)
            if array.shape != expected or array.dtype != type.dtype:
                raise ShapeError(
                    "interpret",
                    f"{node.op.name} made {array.dtype}{list(array.shape)}. Expected {type.dtype}{list(expected)}.",
                    node.where,
                )
        return result


def _bind(graph: Graph, inputs: Sequence[np.ndarray], dims: dict[str, int]) -> None:
    """Read the values of the symbolic extents from the arguments' shapes."""
    if len(inputs) != len(graph.inputs):
        raise ShapeError("interpret", f"{len(inputs)} arrays are given. Expected {len(graph.inputs)}.")
    for node, array in zip(graph.inputs, inputs):
        fits = array.dtype == node.dtype and array.ndim == node.type.ndim
        for size, actual in zip(node.shape, array.shape):
            known = affine(size)
            if known is not None:
                name, scale, offset = known
                dims.setdefault(name, (actual - offset) // scale)
        if not fits:
            raise _misfit(node, array)
    for node, array in zip(graph.inputs, inputs):
        if _concrete(node.shape, dims) != array.shape:
            raise _misfit(node, array)


def _misfit(node: Node, array: np.ndarray) -> ShapeError:
    return ShapeError("interpret", f"the argument is {array.dtype}{list(array.shape)}. Expected {node.type}.")


def _concrete(value: object, dims: Mapping[str, int]) -> Any:
    """An attribute with numbers in place of symbolic extents."""
    if isinstance(value, Dim):
        return value_at(value, dims)
    if isinstance(value, tuple):
        return tuple(_concrete(item, dims) for item in value)
    return value
