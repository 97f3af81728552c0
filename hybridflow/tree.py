"""Nested values: lists, tuples, dicts and dataclasses of tensors, treated leaf by leaf.

Everything that is no such container is a leaf, None included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

from hybridflow.core import name_hints as _name_hints, pytree
from hybridflow.core.pytree import Structure as Structure
from hybridflow.errors import ArgumentError, ArgumentTypeError, entered

__all__ = ["flatten", "leaves", "map", "structure", "unflatten"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


@entered
def map(function: Callable[..., Any], tree: object, *rest: object) -> Any:
    """Map a function over the leaves of trees of one structure.

    Args:
        function: takes a leaf of ``tree`` and the parts of ``rest`` in its place.
        tree: a tree.
        *rest: trees that have at least the structure of ``tree``.

    Returns:
        The results, as a tree of the structure of ``tree``.

    Raises:
        ArgumentError: where one of ``rest`` lacks the structure.

    >>> hf.tree.map(lambda w, g: w - 0.5 * g, {"w": 3.0, "b": [1.0]}, {"w": 2.0, "b": [4.0]})
    {'w': 2.0, 'b': [-1.0]}
    """
    if not callable(function):
        raise ArgumentTypeError("tree.map", f"{function!r} is not callable; the function comes first.")
    leaves, shape = pytree.flatten(tree)
    try:
        others = [
            [part for _, part in pytree.flatten_up_to(shape, other, f"tree {k}")] for k, other in enumerate(rest, 2)
        ]
    except ValueError as error:
        raise ArgumentError("tree.map", f"{error}, as in the first tree.") from None
    return pytree.unflatten(shape, [function(*parts) for parts in zip(leaves, *others)])


@entered
def flatten(tree: object) -> tuple[list[Any], Structure]:
    """Flatten a tree (a nest of lists, tuples, dicts and dataclasses) to its leaves and its structure.

    Args:
        tree: a tree.

    Returns:
        The list of leaves, those of dicts in the order of sorted keys, and the structure, which ``hf.tree.unflatten``
        takes.

    >>> hf.tree.flatten({"b": 1, "a": (2, 3)})
    ([2, 3, 1], dict(b: *, a: tuple(*, *)))
    """
    return pytree.flatten(tree)


@entered
def unflatten(structure: Structure, leaves: Any) -> Any:
    """Make the tree of a structure with other leaves.

    Args:
        structure: what ``hf.tree.flatten`` or ``hf.tree.structure`` returned.
        leaves: the leaves, in the order of ``hf.tree.flatten``.

    Returns:
        A tree.

    Raises:
        ArgumentError: if there are too few or too many leaves.

    >>> leaves, structure = hf.tree.flatten({"b": 1, "a": (2, 3)})
    >>> hf.tree.unflatten(structure, [20, 30, 10])
    {'b': 10, 'a': (20, 30)}
    """
    if not isinstance(structure, Structure):
        raise ArgumentTypeError("tree.unflatten", f"{structure!r} is no structure; the structure comes first.")
    leaf_list = list(leaves)
    if len(leaf_list) != structure.leaves:
        raise ArgumentError("tree.unflatten", f"there are {len(leaf_list)} leaves for {structure!r}.")
    return pytree.unflatten(structure, leaf_list)


@entered
def leaves(tree: object) -> list[Any]:
    """The leaves of a tree, in the order of ``hf.tree.flatten``.

    Args:
        tree: a tree.

    Returns:
        A list.

    >>> hf.tree.leaves([1, {"x": 2}])
    [1, 2]
    """
    return pytree.flatten(tree)[0]


@entered
def structure(tree: object) -> Structure:
    """The structure of a tree alone: equal for trees that differ in their leaves only.

    Args:
        tree: a tree.

    Returns:
        A structure.

    >>> hf.tree.structure([1, {"x": 2}]) == hf.tree.structure([3, {"x": 4}])
    True
    """
    return pytree.flatten(tree)[1]
