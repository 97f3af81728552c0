"""Learning rates that change with the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import optimizers
from hybridflow.array.elementwise import astype, cos, minimum
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.nodes import Tensor
from hybridflow.compat.v1.recording import Recorded, as_graph_tensor, is_symbolic
from hybridflow.compiler.ir import dtypes

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


def _scheduled(type: str, schedule: Callable[..., Any], step: ArrayLike, name: str | None) -> Tensor:
    recorded = Recorded(lambda now: astype(schedule(now), dtypes.float32), type)
    result: Tensor = recorded(
        as_graph_tensor(step) if is_symbolic(step) else convert_to_tensor(step), name=name or type
    )
    return result


def exponential_decay(
    learning_rate: float,
    global_step: ArrayLike,
    decay_steps: float,
    decay_rate: float,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    return _scheduled(
        "ExponentialDecay",
        optimizers.schedules.ExponentialDecay(learning_rate, decay_steps, decay_rate, staircase),
        global_step,
        name,
    )


def inverse_time_decay(
    learning_rate: float,
    global_step: ArrayLike,
    decay_steps: float,
    decay_rate: float,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    return _scheduled(
        "InverseTimeDecay",
        optimizers.schedules.InverseTimeDecay(learning_rate, decay_steps, decay_rate, staircase),
        global_step,
        name,
    )


def polynomial_decay(
    learning_rate: float,
    global_step: ArrayLike,
    decay_steps: float,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    return _scheduled(
        "PolynomialDecay",
        optimizers.schedules.PolynomialDecay(learning_rate, decay_steps, end_learning_rate, power, cycle),
        global_step,
        name,
    )


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Any:
    return _scheduled(
        "PiecewiseConstant", optimizers.schedules.PiecewiseConstantDecay(list(boundaries), list(values)), x, name
    )


def cosine_decay(
    learning_rate: float, global_step: ArrayLike, decay_steps: float, alpha: float = 0.0, name: str | None = None
) -> Any:
    return _scheduled(
        "CosineDecay", optimizers.schedules.CosineDecay(learning_rate, decay_steps, alpha), global_step, name
    )


def cosine_decay_restarts(
    learning_rate: float,
    global_step: ArrayLike,
    first_decay_steps: float,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Any:
    schedule = optimizers.schedules.CosineDecayRestarts(learning_rate, first_decay_steps, t_mul, m_mul, alpha)
    return _scheduled("CosineDecayRestarts", schedule, global_step, name)


def linear_cosine_decay(
    learning_rate: float,
    global_step: ArrayLike,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """``learning_rate * ((alpha + linear) * cosine + beta)``, which fall from 1 to 0 and from 1 to -1."""

    def schedule(step: ArrayLike) -> Any:
        done = minimum(astype(step, dtypes.float32), float(decay_steps)) / float(decay_steps)
        cosine = 0.5 * (1.0 + cos(float(np.pi) * 2.0 * num_periods * done))
        return learning_rate * ((alpha + 1.0 - done) * cosine + beta)

    return _scheduled("LinearCosineDecay", schedule, global_step, name)


def natural_exp_decay(
    learning_rate: float,
    global_step: ArrayLike,
    decay_steps: float,
    decay_rate: float,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    return exponential_decay(learning_rate, global_step, decay_steps, float(np.exp(-decay_rate)), staircase, name)


NAMES: dict[str, Any] = {
    "exponential_decay": exponential_decay,
    "inverse_time_decay": inverse_time_decay,
    "polynomial_decay": polynomial_decay,
    "piecewise_constant": piecewise_constant,
    "cosine_decay": cosine_decay,
    "cosine_decay_restarts": cosine_decay_restarts,
    "linear_cosine_decay": linear_cosine_decay,
    "natural_exp_decay": natural_exp_decay,
}
