"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from hybridflow.optimizers.adam import Adam
from hybridflow.optimizers.optimizer import Rate


class AdamW(Adam):
    """AdamW: Adam with weight decay apart from the gradient.

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        weight_decay: which part of the weights is taken off at each step, times the learning rate.
        *args: positional arguments, which are passed on.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.AdamW(0.1, weight_decay=0.5).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.85      1.9999993]
    """

    def __init__(self, learning_rate: Rate = 0.001, weight_decay: float = 0.004, *args: Any, **options: Any) -> None:
        super().__init__(learning_rate, *args, weight_decay=weight_decay, **options)
