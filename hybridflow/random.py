"""Random numbers from a counter: ``hf.random``.  One seed gives the same numbers eagerly, traced, and on every device.

The functions draw from one global generator, which starts from the operating system's entropy until ``set_seed``;
``stateless_`` ones are functions of the seed that they are given.
"""

from __future__ import annotations

from hybridflow.array.random import (
    Generator as Generator,
    bernoulli as bernoulli,
    bits as bits,
    categorical as categorical,
    exponential as exponential,
    global_generator as global_generator,
    normal as normal,
    permutation as permutation,
    randint as randint,
    set_seed as set_seed,
    shuffle as shuffle,
    stateless_bernoulli as stateless_bernoulli,
    stateless_normal as stateless_normal,
    stateless_permutation as stateless_permutation,
    stateless_randint as stateless_randint,
    stateless_uniform as stateless_uniform,
    uniform as uniform,
)
