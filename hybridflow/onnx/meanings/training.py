"""Steps of optimizers, as operators: ``ai.onnx.preview.training``."""

from __future__ import annotations

from collections.abc import Callable

from hybridflow.array import elementwise as ew
from hybridflow.core.tensor import Tensor
from hybridflow.onnx.operators import TRAINING, operator
from hybridflow.onnx.running import Call


def _each(operands: tuple[Tensor, ...], kinds: int, step: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """A step for each weight: operands come by kind (weights, gradients, states), and so do results."""
    count = len(operands) // kinds
    parts = [step(*(operands[kind * count + k] for kind in range(kinds))) for k in range(count)]
    return tuple(part[kind] for kind in range(len(parts[0])) for part in parts)


@operator("Adagrad", domain=TRAINING)
def adagrad(
    call: Call,
    rate: Tensor,
    update_count: Tensor,
    *operands: Tensor,
    decay_factor: float = 0.0,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
) -> tuple[Tensor, ...]:
    rate = ew.divide(rate, ew.astype(update_count, rate.dtype) * decay_factor + 1.0)

    def step(x: Tensor, gradient: Tensor, square: Tensor) -> tuple[Tensor, ...]:
        gradient = x * norm_coefficient + gradient
        square = square + gradient * gradient
        return x - ew.divide(rate * gradient, ew.sqrt(square) + epsilon), square

    return _each(operands, 3, step)


@operator("Adam", domain=TRAINING)
def adam(
    call: Call,
    rate: Tensor,
    update_count: Tensor,
    *operands: Tensor,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Tensor, ...]:
    count = ew.astype(update_count, rate.dtype)
    corrected = ew.divide(rate * ew.sqrt(1.0 - ew.pow(beta, count)), 1.0 - ew.pow(alpha, count))
    rate = ew.where(ew.greater(update_count, 0), corrected, rate)

    def step(x: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> tuple[Tensor, ...]:
        gradient = x * norm_coefficient + gradient
        mean = mean * alpha + gradient * (1 - alpha)
        square = square * beta + gradient * gradient * (1 - beta)
        x = x - rate * ew.divide(mean, ew.sqrt(square) + epsilon)
        return x * (1 - norm_coefficient_post), mean, square

    return _each(operands, 4, step)


@operator("Momentum", domain=TRAINING)
def momentum(
    call: Call,
    rate: Tensor,
    update_count: Tensor,
    *operands: Tensor,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> tuple[Tensor, ...]:
    share = ew.where(ew.greater(update_count, 0), beta, 1.0)

    def step(x: Tensor, gradient: Tensor, velocity: Tensor) -> tuple[Tensor, ...]:
        gradient = x * norm_coefficient + gradient
        velocity = velocity * alpha + ew.astype(share, x.dtype) * gradient
        ahead = gradient + velocity * alpha if mode == "nesterov" else velocity
        return x - rate * ahead, velocity

    return _each(operands, 3, step)
