"""What methods of ``Dataset`` are given, checked."""

from __future__ import annotations

import glob
import operator
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.array.random import bits
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor
from hybridflow.data.threads import AUTOTUNE
from hybridflow.errors import ArgumentError, ArgumentTypeError


def integer(name: str, value: Any, method: str, least: int | None = 1) -> int:
    """An int of at least so much.  Raises ArgumentTypeError or ArgumentError."""
    try:
        result = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"Dataset.{method}", f"{name} is {value!r}; it must be an int.") from None
    if isinstance(value, bool):
        raise ArgumentTypeError(f"Dataset.{method}", f"{name} is {value!r}; it must be an int.")
    if least is not None and result < least:
        raise ArgumentError(f"Dataset.{method}", f"{name} is {result}; it must be {least} or more.")
    return result


def calls(value: object, method: str) -> int | None:
    """``num_parallel_calls``: None, AUTOTUNE or how many."""
    if value is None:
        return None
    return AUTOTUNE if type(value) is int and value == AUTOTUNE else integer("num_parallel_calls", value, method)


def called(name: str, value: object, method: str) -> Callable[..., Any]:
    """A function.  Raises ArgumentTypeError for what cannot be called."""
    if not callable(value):
        raise ArgumentTypeError(f"Dataset.{method}", f"{name} is {value!r}, which cannot be called.")
    return value


def seeds(seed: object, method: str) -> tuple[int, ...]:
    """Where a stream of random numbers starts: of ``seed``, or drawn from the global generator of ``hf.random``."""
    if seed is None:
        with suspended():
            return tuple(bits((2,)).tolist())
    if isinstance(seed, Tensor):
        seed = seed.item()
    return (integer("seed", seed, method, None) % 2**64, 1)


def shares(weights: object, count: int, method: str) -> list[float]:
    """Weights of datasets as probabilities.  Raises ArgumentError for other than one each, or negative ones."""
    if weights is None:
        return [1 / count] * count
    shares_of = np.asarray(weights, np.float64)
    if shares_of.shape != (count,) or not (shares_of >= 0).all() or not 0 < shares_of.sum() < np.inf:
        raise ArgumentError(f"Dataset.{method}", f"weights must be {count} numbers of 0 or more.")
    return [float(w) for w in shares_of / shares_of.sum()]


def paths_of(filenames: Any, stage: str) -> list[str]:
    """Names of files: one, or several.  Raises ArgumentTypeError for what is no name, ArgumentError for none."""
    names = [filenames] if isinstance(filenames, (str, bytes, os.PathLike)) else filenames
    try:
        result = [os.fsdecode(path) for path in names]
    except TypeError:
        raise ArgumentTypeError(stage, f"filenames is {filenames!r:.80}; give a name, or a list of them.") from None
    if not result:
        raise ArgumentError(stage, "there is no file.")
    return result


def matching(pattern: object, stage: str) -> list[str]:
    """The sorted names of the files that match a pattern, or any of several.  Raises ArgumentError for none."""
    paths: set[str] = set()
    for one in paths_of(pattern, stage):
        paths.update(glob.glob(one))
    if not paths:
        raise ArgumentError(stage, f"no file matches {pattern!r}.")
    return sorted(paths)
