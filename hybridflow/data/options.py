"""What is said of a whole pipeline: ``hf.data.Options``."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from hybridflow.data.pipeline import Node, PipelineIterator, Rows
from hybridflow.data.threads import ParallelMap
from hybridflow.errors import ArgumentError


class Options:
    """Options of a dataset: ``deterministic=False`` lets parallel maps that were not told otherwise give results as
    they come.

    The other attributes are hints to TensorFlow's own runtime; they are kept for programs that set them, and change
    nothing here.

    >>> options = hf.data.Options()
    >>> options.deterministic = False
    >>> hf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    deterministic: bool | None
    _NAMES = ("deterministic", "experimental_deterministic", "experimental_slack", "experimental_symbolic_checkpoint")
    _GROUPS = (
        "autotune",
        "experimental_distribute",
        "experimental_optimization",
        "experimental_threading",
        "threading",
    )

    def __init__(self) -> None:
        for name in self._NAMES:
            object.__setattr__(self, name, None)
        for name in (*self._GROUPS, "experimental_warm_start", "framework_type"):
            object.__setattr__(self, name, SimpleNamespace())

    def __setattr__(self, name: str, value: object) -> None:
        if name not in vars(self):
            raise ArgumentError("Options", f"there is no option {name}; there are {', '.join(sorted(vars(self)))}.")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Options) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # they change

    def merge(self, options: Options) -> Options:
        """These options, and over them those that ``options`` sets.

        Args:
            options: the other options.

        Returns:
            New options.

        >>> a, b = hf.data.Options(), hf.data.Options()
        >>> b.deterministic = True
        >>> a.merge(b).deterministic
        True
        """
        merged = copy.deepcopy(self)
        for name, value in vars(options).items():
            if isinstance(value, SimpleNamespace):
                getattr(merged, name).__dict__.update(vars(value))
            elif value is not None:
                object.__setattr__(merged, name, value)
        return merged


class Optioned(Node):
    """A node of which options were said."""

    def __init__(self, source: Node, options: Options) -> None:
        if options.deterministic is not None and any(_is_open(node) for node in below(source)):
            source = _decided(source, bool(options.deterministic), {})
        self.source, self.options = source, copy.deepcopy(options)
        self.rows: Rows | None = source.rows

    def runner(self) -> PipelineIterator:
        return self.source.runner()

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.source.cardinality()


def below(node: Node) -> Iterator[Node]:
    """A node and all that it is made of, the sources first."""
    for value in vars(node).values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Node):
                yield from below(part)
    yield node


def of_node(node: Node) -> Options:
    """The options that were said of a node, later ones over earlier ones."""
    result = Options()
    for part in below(node):
        if isinstance(part, Optioned):
            result = result.merge(part.options)
    return result


def _is_open(node: Node) -> bool:
    return isinstance(node, ParallelMap) and node.ordered is None


def _decided(node: Node, ordered: bool, copies: dict[int, Node]) -> Node:
    """The same node with an order for the maps below it of which none was said."""
    if id(node) not in copies:
        copies[id(node)] = new = copy.copy(node)
        for name, value in vars(node).items():
            if isinstance(value, Node):
                setattr(new, name, _decided(value, ordered, copies))
            elif isinstance(value, list) and any(isinstance(part, Node) for part in value):
                setattr(
                    new, name, [_decided(part, ordered, copies) if isinstance(part, Node) else part for part in value]
                )
        if isinstance(new, ParallelMap) and new.ordered is None:
            new.ordered = ordered
    return copies[id(node)]
