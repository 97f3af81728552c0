"""Random numbers from a counter: ``hf.random``.  One seed gives the same numbers eagerly, traced, and on every device.

The functions draw from one global generator, which starts from the operating system's entropy until ``set_seed``;
``stateless_`` ones are functions of the seed that they are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.array.random import (
    Generator,
    bernoulli,
    binomial,
    bits,
    categorical,
    choice,
    exponential,
    fold_in,
    gamma,
    global_generator,
    laplace,
    normal,
    permutation,
    poisson,
    randint,
    set_seed,
    shuffle,
    split,
    stateless_bernoulli,
    stateless_binomial,
    stateless_categorical,
    stateless_choice,
    stateless_exponential,
    stateless_gamma,
    stateless_laplace,
    stateless_normal,
    stateless_permutation,
    stateless_poisson,
    stateless_randint,
    stateless_shuffle,
    stateless_truncated_normal,
    stateless_uniform,
    truncated_normal,
    uniform,
)
from hybridflow.core import name_hints as _name_hints

__all__ = [
    "Generator",
    "bernoulli",
    "binomial",
    "bits",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gamma",
    "global_generator",
    "laplace",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "set_seed",
    "shuffle",
    "split",
    "stateless_bernoulli",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_choice",
    "stateless_exponential",
    "stateless_gamma",
    "stateless_laplace",
    "stateless_normal",
    "stateless_permutation",
    "stateless_poisson",
    "stateless_randint",
    "stateless_shuffle",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
