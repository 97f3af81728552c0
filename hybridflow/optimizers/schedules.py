"""Learning rates that depend on the step: ``hf.optimizers.schedules``, with Keras's names and arguments.

A schedule is called with the number of updates done so far, 0 at first, and returns the rate for the next one as a
float64 scalar.  Inside compiled functions it is part of the program: a new step is no new trace.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybridflow.array.elementwise import ceil, cos, floor, less_equal, log, maximum, minimum, pow, where
from hybridflow.compiler.ir import dtypes
from hybridflow.core.serialization import Configured, described
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError

__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "from_config",
]


class LearningRateSchedule(Configured):
    """What a learning rate may be instead of a number.  Subclasses define ``__call__(step)`` and ``get_config()``.

    >>> class Halved(hf.optimizers.schedules.LearningRateSchedule):
    ...     def __call__(self, step):
    ...         return 0.1 * 0.5 ** (step // 10)
    >>> optimizer = hf.optimizers.SGD(Halved())
    """

    def __call__(self, step: ArrayLike, /) -> Any:
        """The rate for the update that comes after ``step`` updates."""
        raise NotImplementedError(f"{type(self).__name__} has to define __call__(self, step)")


def _float(value: object) -> Tensor:
    return cast(as_tensor(value, "schedule", dtypes.float64 if isinstance(value, float) else None), dtypes.float64)


def _require_positive(schedule: LearningRateSchedule, *names: str) -> None:
    for name in names:
        value = getattr(schedule, name)
        if not value > 0:
            raise ArgumentError(type(schedule).__name__, f"{name} is {value!r}; it must be positive.")


@dataclass(frozen=True)
class ExponentialDecay(LearningRateSchedule):
    """Exponential decay: ``initial_learning_rate * decay_rate ** (step / decay_steps)``.

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: in how many steps the rate is multiplied by ``decay_rate`` once.
        decay_rate: what the rate is multiplied by.
        staircase: whether the exponent is rounded down.
        name: the name of the schedule.

    >>> hf.optimizers.schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)(20)
    <Tensor f64[] cpu> 0.025
    """

    initial_learning_rate: float
    decay_steps: float
    decay_rate: float
    staircase: bool = False
    name: str = "ExponentialDecay"

    def __post_init__(self) -> None:
        _require_positive(self, "decay_steps", "decay_rate")

    def __call__(self, step: ArrayLike, /) -> Tensor:
        return self.initial_learning_rate * pow(_float(self.decay_rate), _periods(self, step))


@dataclass(frozen=True)
class InverseTimeDecay(LearningRateSchedule):
    """Inverse time decay: ``initial_learning_rate / (1 + decay_rate * step / decay_steps)``.

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: in how many steps ``decay_rate`` is added once.
        decay_rate: what is added to the divisor.
        staircase: whether ``step / decay_steps`` is rounded down.
        name: the name of the schedule.

    >>> hf.optimizers.schedules.InverseTimeDecay(0.1, decay_steps=10, decay_rate=0.5)(20)
    <Tensor f64[] cpu> 0.05
    """

    initial_learning_rate: float
    decay_steps: float
    decay_rate: float
    staircase: bool = False
    name: str = "InverseTimeDecay"

    def __post_init__(self) -> None:
        _require_positive(self, "decay_steps")

    def __call__(self, step: ArrayLike, /) -> Tensor:
        return self.initial_learning_rate / (1 + self.decay_rate * _periods(self, step))


def _periods(schedule: ExponentialDecay | InverseTimeDecay, step: object) -> Tensor:
    periods = _float(step) / schedule.decay_steps
    return floor(periods) if schedule.staircase else periods


@dataclass(frozen=True)
class PiecewiseConstantDecay(LearningRateSchedule):
    """Piecewise constant rate: ``values[0]`` up to the step ``boundaries[0]``, that one too, then ``values[1]``, and
    on.

    Args:
        boundaries: the last step of each value but the last one, increasing.
        values: the rates, one more than there are boundaries.
        name: the name of the schedule.

    Raises:
        ArgumentError: unless the boundaries increase and there is one value more than there are boundaries.

    >>> rate = hf.optimizers.schedules.PiecewiseConstantDecay([100, 200], [0.1, 0.01, 0.001])
    >>> [rate(step).item() for step in (100, 101, 500)]
    [0.1, 0.01, 0.001]
    """

    boundaries: Sequence[float]
    values: Sequence[float]
    name: str = "PiecewiseConstant"

    def __post_init__(self) -> None:
        boundaries, values = tuple(self.boundaries), tuple(self.values)
        if len(values) != len(boundaries) + 1:
            raise ArgumentError(
                "PiecewiseConstantDecay",
                f"there are {len(values)} values for {len(boundaries)} boundaries; there must be one more than these.",
            )
        if any(not a < b for a, b in itertools.pairwise(boundaries)):
            raise ArgumentError("PiecewiseConstantDecay", f"boundaries is {list(boundaries)}; they must increase.")
        object.__setattr__(self, "boundaries", boundaries)
        object.__setattr__(self, "values", values)

    def __call__(self, step: ArrayLike, /) -> Tensor:
        at, rate = _float(step), _float(self.values[-1])
        for boundary, value in zip(reversed(self.boundaries), reversed(self.values[:-1])):
            rate = where(less_equal(at, boundary), _float(value), rate)
        return rate


@dataclass(frozen=True)
class PolynomialDecay(LearningRateSchedule):
    """Polynomial decay from ``initial_learning_rate`` to ``end_learning_rate``, as ``(1 - share) ** power``.

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: how many steps the decay takes.
        end_learning_rate: the rate that stays after that.
        power: the exponent; 1 for a straight line.
        cycle: whether the decay begins anew, over twice, three times... as many steps.
        name: the name of the schedule.

    >>> hf.optimizers.schedules.PolynomialDecay(0.1, decay_steps=10, end_learning_rate=0.0)(5)
    <Tensor f64[] cpu> 0.05
    """

    initial_learning_rate: float
    decay_steps: float
    end_learning_rate: float = 0.0001
    power: float = 1.0
    cycle: bool = False
    name: str = "PolynomialDecay"

    def __post_init__(self) -> None:
        _require_positive(self, "decay_steps")

    def __call__(self, step: ArrayLike, /) -> Tensor:
        done, total = _float(step), _float(self.decay_steps)
        if self.cycle:
            total = total * maximum(ceil(done / total), 1.0)
        else:
            done = minimum(done, total)
        span = self.initial_learning_rate - self.end_learning_rate
        return span * pow(1 - done / total, self.power) + self.end_learning_rate


def _half_cosine(share: Tensor, alpha: float, height: Tensor | float = 1.0) -> Tensor:
    """From ``height`` to 0 as ``share`` goes from 0 to 1, in what ``alpha`` leaves above itself."""
    return (1 - alpha) * (0.5 * height * (1 + cos(math.pi * share))) + alpha


@dataclass(frozen=True)
class CosineDecay(LearningRateSchedule):
    """Cosine decay: half a cosine from ``initial_learning_rate`` down to ``alpha`` times it.

    Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: how many steps the decay takes.
        alpha: the share of the rate that remains.
        name: the name of the schedule.
        warmup_target: the rate that is reached in a straight line before the decay; None for no warm-up.
        warmup_steps: how many steps the warm-up takes.

    >>> hf.optimizers.schedules.CosineDecay(0.1, decay_steps=10)(5)
    <Tensor f64[] cpu> 0.05
    """

    initial_learning_rate: float
    decay_steps: float
    alpha: float = 0.0
    name: str = "CosineDecay"
    warmup_target: float | None = None
    warmup_steps: float = 0

    def __post_init__(self) -> None:
        _require_positive(self, "decay_steps")
        if self.warmup_target is not None:
            _require_positive(self, "warmup_steps")

    def __call__(self, step: ArrayLike, /) -> Tensor:
        done = _float(step)
        if self.warmup_target is None:
            return self.initial_learning_rate * _half_cosine(minimum(done / self.decay_steps, 1.0), self.alpha)
        rise = (self.warmup_target - self.initial_learning_rate) * (done / self.warmup_steps)
        share = minimum((done - self.warmup_steps) / self.decay_steps, 1.0)
        after = self.warmup_target * _half_cosine(share, self.alpha)
        return where(done < self.warmup_steps, self.initial_learning_rate + rise, after)


@dataclass(frozen=True)
class CosineDecayRestarts(LearningRateSchedule):
    """Cosine decay with warm restarts (SGDR): half cosines one after another.

    Each is ``t_mul`` times as long as the one before and ``m_mul`` times as high, and goes down to ``alpha *
    initial_learning_rate``. Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts",
    2017.

    Args:
        initial_learning_rate: the rate at step 0.
        first_decay_steps: how many steps the first decay takes.
        t_mul: how many times as long each one is.
        m_mul: how many times as high each one is.
        alpha: the share of the rate that remains.
        name: the name of the schedule.

    >>> hf.optimizers.schedules.CosineDecayRestarts(0.1, first_decay_steps=10)(10)
    <Tensor f64[] cpu> 0.1
    """

    initial_learning_rate: float
    first_decay_steps: float
    t_mul: float = 2.0
    m_mul: float = 1.0
    alpha: float = 0.0
    name: str = "SGDRDecay"

    def __post_init__(self) -> None:
        _require_positive(self, "first_decay_steps", "t_mul", "m_mul")
        if self.t_mul < 1:
            raise ArgumentError("CosineDecayRestarts", f"t_mul is {self.t_mul!r}; it must be 1 or more.")

    def __call__(self, step: ArrayLike, /) -> Tensor:
        done = _float(step) / self.first_decay_steps  # in lengths of the first one
        if self.t_mul == 1.0:
            restarts = floor(done)
            share = done - restarts
        else:
            # The lengths so far are a geometric series; what rounding of the logarithm makes of a whole number is
            # set right by asking on which side of that restart the step is.
            restarts = floor(log(1 - done * (1 - self.t_mul)) / math.log(self.t_mul) + 0.5)
            begun = (pow(_float(self.t_mul), restarts) - 1) / (self.t_mul - 1)
            restarts = where(done < begun, restarts - 1, restarts)
            length = pow(_float(self.t_mul), restarts)
            share = (done - (length - 1) / (self.t_mul - 1)) / length
        height = pow(_float(self.m_mul), restarts)
        return self.initial_learning_rate * _half_cosine(share, self.alpha, height)


_KINDS: dict[str, type[LearningRateSchedule]] = {
    kind.__name__: kind
    for kind in (
        CosineDecay,
        CosineDecayRestarts,
        ExponentialDecay,
        InverseTimeDecay,
        PiecewiseConstantDecay,
        PolynomialDecay,
    )
}


def from_config(config: dict[str, Any]) -> LearningRateSchedule:
    """Make a learning rate schedule of its description.

    Args:
        config: ``{"class_name": ..., "config": ...}``.

    Returns:
        The schedule.

    Raises:
        ArgumentError: for an unknown class.

    >>> hf.optimizers.schedules.from_config({"class_name": "CosineDecay", "config": {"initial_learning_rate": 0.1,
    ...                                      "decay_steps": 10}})(10)
    <Tensor f64[] cpu> 0.0
    """
    return described(_KINDS, config, "schedules.from_config")
