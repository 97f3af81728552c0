"""Custom gradients of compiled functions: their code reads the numbers and extents of each call."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ShapeError


@pytest.mark.parametrize(
    "derivative",
    [
        lambda x, k: lambda g: g * k,
        lambda x, k: lambda g: -k * g,
        lambda x, k: lambda g: g * (2 * k + 1) / 3,
        lambda x, k: lambda g: g * k if k > 3.0 else g * 0,
        lambda x, k: lambda g: g * math.sqrt(k),
        lambda x, k: lambda g: g * (k + x.shape[0] * 0.5),
        lambda x, k: lambda g: g * hf.eye(len(x))[0],
        lambda x, k: lambda g: g * 4 if x.shape[0] == 4 else g,
        lambda x, k: lambda g: g * 4 if x.shape == (4,) else g,
        lambda x, k: lambda g: g * k if x.shape[0] > 4 else g,
    ],
)
def test_custom_gradients_read_numbers_and_extents_of_each_call(derivative):
    def call(x, k):
        @hf.custom_gradient
        def apply(x):
            return k * x, derivative(x, k)

        return apply(x)

    compiled = hf.function(call)
    for size, k in ((3, 2.5), (4, 3.5), (5, 4.5), (4, 2.0), (3, 4.0)):
        x = hf.linspace(-1, 1, size)
        plain, ours = [hf.grad(lambda x, f, k: hf.sum(f(x, k)))(x, f, k) for f in (hf.eager(call), compiled)]
        np.testing.assert_array_equal(ours, plain)


def test_a_custom_gradient_that_asks_an_open_extent_of_a_signature_is_refused():
    @hf.function(input_signature=[hf.TensorSpec([None])])
    @hf.custom_gradient
    def apply(x):
        return hf.sin(x), lambda g: g * hf.eye(len(x))[0]

    with pytest.raises(ShapeError, match="code of a derivative asks the value of x0"):
        hf.grad(lambda x: hf.sum(apply(x)))(hf.ones(3))
