"""Random numbers from a counter: ``hf.random``.  One seed gives the same numbers eagerly, traced, and on every device.

The functions draw from one global generator, which starts from the operating system's entropy until ``set_seed``;
``stateless_`` ones are functions of the seed that they are given.
"""

from __future__ import annotations

from hybridflow.array.random import (
    Generator,
    bernoulli,
    bits,
    categorical,
    exponential,
    global_generator,
    normal,
    permutation,
    randint,
    set_seed,
    shuffle,
    stateless_bernoulli,
    stateless_normal,
    stateless_permutation,
    stateless_randint,
    stateless_uniform,
    uniform,
)

__all__ = [
    "Generator",
    "bernoulli",
    "bits",
    "categorical",
    "exponential",
    "global_generator",
    "normal",
    "permutation",
    "randint",
    "set_seed",
    "shuffle",
    "stateless_bernoulli",
    "stateless_normal",
    "stateless_permutation",
    "stateless_randint",
    "stateless_uniform",
    "uniform",
]
