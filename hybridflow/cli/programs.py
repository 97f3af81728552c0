"""The built-in programs of ``hybridflow bench``: small pieces of what people run, with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf

if TYPE_CHECKING:
    from hybridflow.core.tensor import Tensor
    from hybridflow.core.type_aliases import ArrayLike


@dataclass(frozen=True)
class Program:
    """``make`` returns a fresh Python function, with variables of its own, and its arguments."""

    name: str
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def _normal(*shape: int, scale: float = 1.0) -> hf.Tensor:
    values = np.random.default_rng(0).standard_normal(shape, np.float32)
    return hf.asarray(values * np.float32(scale))


def _sum_of_products() -> Any:
    def sum_of_products(x: Tensor, y: Tensor, z: Tensor) -> Any:
        return hf.reduce_sum(x + y * z)

    return sum_of_products, tuple(_normal(16_000_000) for _ in range(3))


def _chain() -> Any:
    def chain(x: Tensor) -> Any:
        for _ in range(10):
            x = (x * 0.9 + 0.1) / 1.01
        return x

    return chain, (_normal(8_000_000),)


def _gelu() -> Any:
    return lambda x: hf.nn.gelu(x), (_normal(8_000_000),)


def _softmax() -> Any:
    return lambda x: hf.nn.softmax(x), (_normal(8192, 1024),)


def _layer_norm() -> Any:
    def layer_norm(x: ArrayLike, scale: ArrayLike | None, offset: ArrayLike | None) -> Any:
        return hf.nn.layer_norm(x, scale, offset)

    return layer_norm, (_normal(8192, 1024), _normal(1024), _normal(1024))


def _matmul() -> Any:
    return lambda x, y: x @ y, (_normal(1024, 1024), _normal(1024, 1024))


class _Network:
    """Two dense layers, 784-128-10, with dropout between them."""

    def __init__(self) -> None:
        self.w1, self.b1 = hf.Variable(_normal(784, 128, scale=0.05)), hf.Variable(hf.zeros((128,)))
        self.w2, self.b2 = hf.Variable(_normal(128, 10, scale=0.1)), hf.Variable(hf.zeros((10,)))
        self.variables = (self.w1, self.b1, self.w2, self.b2)
        self._generator = hf.random.Generator(0)

    def logits(self, images: Tensor) -> Any:
        flat = hf.reshape(images, (images.shape[0], 784))
        hidden = hf.nn.relu(flat @ self.w1 + self.b1)
        return hf.nn.dropout(hidden, 0.2, generator=self._generator) @ self.w2 + self.b2


def _network() -> Any:
    network = _Network()
    return lambda images: network.logits(images), (_normal(60, 28, 28),)


def _training_step() -> Any:
    network = _Network()

    def step(images: Tensor, labels: ArrayLike) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.losses.softmax_cross_entropy(labels, network.logits(images))
        for variable, gradient in zip(network.variables, tape.gradient(loss, network.variables)):
            variable.assign_sub(0.01 * gradient)
        return loss

    return step, (_normal(60, 28, 28), hf.asarray(np.arange(60) % 10))


BUILT_IN = (
    Program("sum(x + y*z), 16M", _sum_of_products),
    Program("30-op chain, 8M", _chain),
    Program("gelu, 8M", _gelu),
    Program("softmax, 8192x1024", _softmax),
    Program("layer_norm, 8192x1024", _layer_norm),
    Program("matmul, 1024x1024", _matmul),
    Program("network 784-128-10, 60", _network),
    Program("training step, same", _training_step),
)
