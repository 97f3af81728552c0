"""What a program of the suite is: a body that any library can run, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Filter(NamedTuple):
    """The filter of a convolution, [*window, channels / groups, results], which a library may keep in its own order."""

    values: np.ndarray


class Case(NamedTuple):
    """``program(library, *arguments)``, whose arguments are arrays, filters, or dicts, lists and tuples of them.

    Of a program that trains, the first ``trained`` arguments are variables and the result is a loss: a call is a step
    of gradient descent.  ``tolerance`` is relative, and relative to the largest magnitude of a result.
    """

    program: Callable[..., Any]
    arguments: Callable[[Draw], list[Any]]
    tolerance: float = 1e-4
    trained: int = 0


class Draw:
    """Random arguments, the same in each process."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def floats(self, *shape: int, dtype: str = "float32") -> np.ndarray:
        """From a normal distribution."""
        return self.rng.standard_normal(shape, np.float32).astype(dtype, copy=False)

    def positive(self, *shape: int) -> np.ndarray:
        """Float32 from 0 to 1."""
        return self.rng.random(shape, np.float32)

    def weights(self, *shape: int) -> np.ndarray:
        """Float32 small enough for sums over all axes but the last to stay near 1."""
        return self.floats(*shape) / np.float32(np.sqrt(np.prod(shape[:-1])))

    def integers(self, low: int, high: int, *shape: int, dtype: str = "int64") -> np.ndarray:
        """From ``low`` up to ``high``, which is left out."""
        return self.rng.integers(low, high, shape).astype(dtype, copy=False)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with ``function`` of each leaf."""
    if isinstance(tree, dict):
        return {key: mapped(function, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)) and not isinstance(tree, Filter):
        return type(tree)([mapped(function, value) for value in tree])
    return function(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves in their order, those of a dict by their keys: not every library keeps the order of a dict."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)) and not isinstance(tree, Filter):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def made_ready(case: Case, library: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The program of a case as a library compiles it, and the arguments of a call, as arrays of the library."""
    given = [mapped(library.array, x) for x in case.arguments(Draw())]

    def program(*arguments: Any) -> Any:
        return case.program(library, *arguments)

    if case.trained:
        return library.trained(program, given[: case.trained]), given[case.trained :]
    return library.compiled(program), given
