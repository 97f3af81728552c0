"""An ONNX graph as plain data: what of a file is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np


@dataclasses.dataclass(eq=False)
class Node:
    """One operation: the names of its operands and results ("" for none), and its attributes as Python values."""

    op: str
    domain: str
    opset: int  # of its domain, where it stands
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    proto: Any  # as the package ``onnx`` has it, for bodies that depend on types

    def __str__(self) -> str:
        full = f"{self.domain}.{self.op}" if self.domain else self.op
        return f"node {self.name!r} ({full})" if self.name else f"a node {full} that makes {self.outputs[0]!r}"

    @property
    def graphs(self) -> Iterator[Graph]:
        """The graphs among its attributes."""
        for value in self.attributes.values():
            if isinstance(value, Graph):
                yield value


@dataclasses.dataclass(eq=False)
class Port:
    """An input or an output of a graph: its dtype as ONNX numbers it, and its shape as far as it is known."""

    name: str
    element: int = 0  # 0 for what is no tensor
    shape: tuple[int | str | None, ...] | None = None


@dataclasses.dataclass(eq=False)
class Graph:
    """Nodes in an order in which they can run."""

    name: str
    inputs: list[Port]
    outputs: list[Port]
    constants: dict[str, np.ndarray]
    nodes: list[Node]

    def all_nodes(self) -> Iterator[Node]:
        """Its nodes, and those of the graphs in them."""
        for node in self.nodes:
            yield node
            for graph in node.graphs:
                yield from graph.all_nodes()


@dataclasses.dataclass(eq=False)
class Function:
    """A function of a file, or the body of an operator: a graph of its own names, whose nodes may refer to its
    attributes."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    proto: Any
    opsets: dict[str, int]


@dataclasses.dataclass(eq=False)
class File:
    """All of a file."""

    path: str
    graph: Graph
    opsets: dict[str, int]
    functions: dict[tuple[str, str], Function]
    producer: str
    size: int
