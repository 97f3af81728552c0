"""Nested values that branches return and loops carry: values apart from what else is among their leaves.

Tensors, variables, arrays and numbers are values.  Anything else (None, strings, objects) is a constant of the program:
it has to be the same in each branch and after each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.core import pytree
from hybridflow.core.promotion import weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError


def is_value(leaf: object) -> bool:
    return (
        isinstance(leaf, (Tensor, Variable, np.ndarray)) or weak_kind(leaf) is not None or hasattr(leaf, "__dlpack__")
    )


class Nest:
    """A nested value: its values, and what it takes to put others in their places.  ``root`` is its name."""

    __slots__ = ("_leaves", "_positions", "root", "structure")

    def __init__(self, tree: object, root: str) -> None:
        self.root = root
        self._leaves, self.structure = pytree.flatten(tree)
        self._positions = [k for k, leaf in enumerate(self._leaves) if is_value(leaf)]

    @property
    def values(self) -> list[Any]:
        return [self._leaves[k] for k in self._positions]

    @property
    def names(self) -> list[str]:
        """How each value is reached."""
        paths = pytree.paths(self.structure, self.root)
        return [paths[k] for k in self._positions]

    def filled(self, values: Sequence[Any]) -> Any:
        """The nested value with other values."""
        leaves = list(self._leaves)
        for k, value in zip(self._positions, values):
            leaves[k] = value
        return pytree.unflatten(self.structure, leaves)

    def check_like(self, stage: str, other: Nest, where: str, other_where: str) -> None:
        """Raise ArgumentTypeError unless ``other`` has this structure, and ArgumentError unless its constants are
        these."""
        if not self.structure.same_entries(other.structure):
            raise ArgumentTypeError(
                stage,
                f"{self.root} is {_text(self)} {where} and {_text(other)} {other_where}. Expected one structure: the "
                "same containers, lengths and keys.",
            )
        paths = pytree.paths(self.structure, self.root)
        for k, (one, two) in enumerate(zip(self._leaves, other._leaves)):
            if is_value(one) != is_value(two):
                raise ArgumentTypeError(
                    stage, f"{paths[k]} is {_leaf(one)} {where} and {_leaf(two)} {other_where}. Expected tensors or "
                    "numbers in both places, or in neither."
                )  # fmt: skip
            if not is_value(one) and one is not two and not (type(one) is type(two) and one == two):
                raise ArgumentError(
                    stage, f"{paths[k]} is {one!r:.60} {where} and {two!r:.60} {other_where}. What is no tensor or "
                    "number cannot depend on values of tensors."
                )  # fmt: skip


def _leaf(leaf: object) -> str:
    if isinstance(leaf, (Tensor, Variable)):
        return str(leaf.type if isinstance(leaf, Tensor) else leaf._tensor.type)
    return f"{leaf!r:.60}"


def _text(nest: Nest) -> str:
    """The structure, as messages show it: ``*`` is a leaf."""
    return _leaf(nest._leaves[0]) if nest.structure.kind is None else repr(nest.structure)
