"""Running a graph through the ops' references: slow, simple, and the oracle of the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import Dim, value_at
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.errors import ShapeError


def interpret(graph: Graph, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    """The outputs, and the updates (input position -> final value), of a graph for arrays of its inputs' types."""
    dims = _bind(graph, inputs)
    values: dict[Node, np.ndarray] = dict(zip(graph.inputs, inputs))
    for node in graph.nodes:
        attrs = {name: _concrete(value, dims) for name, value in node.attrs.items()} if dims else node.attrs
        result = node.op.reference(*(values[source] for source in node.inputs), **attrs)
        expected = _concrete(node.shape, dims)
        if result.shape != expected or result.dtype != node.dtype:
            raise ShapeError(
                "interpret",
                f"{node.op.name} made {result.dtype}{list(result.shape)}. Expected {node.dtype}{list(expected)}.",
                node.where,
            )
        values[node] = result
    return [values[node] for node in graph.outputs], {k: values[node] for k, node in graph.updates.items()}


def _bind(graph: Graph, inputs: Sequence[np.ndarray]) -> dict[str, int]:
    """The values of the symbolic extents, read from the arguments' shapes."""
    if len(inputs) != len(graph.inputs):
        raise ShapeError("interpret", f"{len(inputs)} arrays are given. Expected {len(graph.inputs)}.")
    dims: dict[str, int] = {}
    for node, array in zip(graph.inputs, inputs):
        fits = array.dtype == node.dtype and array.ndim == node.type.ndim
        for size, actual in zip(node.shape, array.shape):
            if isinstance(size, Dim) and size.symbol is not None:
                dims.setdefault(size.symbol, actual)
        if not fits:
            raise _misfit(node, array)
    for node, array in zip(graph.inputs, inputs):
        if _concrete(node.shape, dims) != array.shape:
            raise _misfit(node, array)
    return dims


def _misfit(node: Node, array: np.ndarray) -> ShapeError:
    return ShapeError("interpret", f"the argument is {array.dtype}{list(array.shape)}. Expected {node.type}.")


def _concrete(value: Any, dims: Mapping[str, int]) -> Any:
    """An attribute with numbers in place of symbolic extents."""
    if isinstance(value, Dim):
        return value_at(value, dims)
    if isinstance(value, tuple):
        return tuple(_concrete(item, dims) for item in value)
    return value
