"""Muon: orthogonalized momentum for matrices, Adam for the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Unpack

from hybridflow.array.linalg import matmul
from hybridflow.array.norms import matrix_norm
from hybridflow.array.shapes import matrix_transpose
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.adam import Adam
from hybridflow.optimizers.optimizer import Rate, SharedOptions


class Muon(Adam):
    """Muon: momentum steps made nearly orthogonal.

    For matrices: steps with momentum, made nearly orthogonal by ``ns_steps`` turns of a Newton-Schulz iteration with
    the coefficients ``muon_a``, ``muon_b`` and ``muon_c``.  Other variables are updated as by ``AdamW``.

    Embeddings are other variables too (those whose name contains "embedding", with ``exclude_embeddings``), and those
    whose name matches one of the patterns of ``exclude_layers``; ``adam_beta_1``, ``adam_beta_2``, ``epsilon`` and
    ``adam_weight_decay`` are for them, and the learning rate times ``adam_lr_ratio``.  With ``rms_rate`` steps of
    matrices are multiplied by that and the root of their longer side, so that one learning rate serves both.

    Sources: Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024; Liu and others, "Muon is Scalable
    for LLM Training", 2025.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        adam_beta_1: ``beta_1`` of the weights that Adam updates.
        adam_beta_2: ``beta_2`` of the weights that Adam updates.
        adam_weight_decay: ``weight_decay`` of the weights that Adam updates.
        epsilon: a small number that keeps divisions finite.
        weight_decay: which part of the weights is taken off at each step, times the learning rate.
        exclude_layers: patterns of names of weights that Adam updates.
        exclude_embeddings: whether Adam updates embeddings.
        muon_a: the first coefficient of the iteration.
        muon_b: the second coefficient of the iteration.
        muon_c: the third coefficient of the iteration.
        adam_lr_ratio: the learning rate of Adam, as a part of the other.
        momentum: the decay rate of the running average.
        ns_steps: how many steps of Newton and Schulz are made.
        nesterov: whether the gradient is that of the next place.
        rms_rate: the root mean square that updates are scaled to.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> hf.optimizers.Muon(0.1, weight_decay=None).apply_gradients([(hf.asarray([[5.0, 0.0], [0.0, 1.0]]), w)])
    >>> w
    <Variable f32[2,2] cpu>
    [[0.9795724 2.       ]
     [3.        3.9774654]]
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        *,
        exclude_layers: Sequence[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1.0,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **options: Unpack[SharedOptions],
    ) -> None:
        super().__init__(learning_rate, adam_beta_1, adam_beta_2, epsilon, weight_decay=weight_decay, **options)
        self._in_unit(momentum=momentum)
        if not isinstance(ns_steps, int) or ns_steps < 1:
            raise self._wrong("ns_steps", ns_steps, "a positive integer")
        self._check_decay("adam_weight_decay", adam_weight_decay)
        self.adam_weight_decay, self.adam_lr_ratio = adam_weight_decay, float(adam_lr_ratio)
        self.exclude_layers, self.exclude_embeddings = list(exclude_layers or ()), bool(exclude_embeddings)
        self.muon_a, self.muon_b, self.muon_c = float(muon_a), float(muon_b), float(muon_c)
        self.momentum, self.nesterov = float(momentum), bool(nesterov)
        self.ns_steps, self.rms_rate = ns_steps, rms_rate

    def _is_matrix(self, variable: Variable) -> bool:
        """Whether steps of it are made orthogonal."""
        name = (variable.name or "").lower()
        if variable.ndim != 2 or (self.exclude_embeddings and "embedding" in name):
            return False
        return not any(re.search(pattern, variable.name or "") for pattern in self.exclude_layers)

    def _decay_of(self, variable: Variable) -> float | None:
        return super()._decay_of(variable) if self._is_matrix(variable) else self.adam_weight_decay

    def create_slots(self, variable: Variable) -> None:
        if self._is_matrix(variable):
            self.add_slot(variable, "momentum")
        else:
            super().create_slots(variable)

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        if not self._is_matrix(variable):
            super().update_step(gradient, variable, learning_rate * self.adam_lr_ratio)
            return
        momentum, share = self.get_slot(variable, "momentum"), self.momentum
        self.assign_add(momentum, gradient + (share - 1.0) * momentum)
        step = learning_rate * self._orthogonal(gradient + share * momentum if self.nesterov else +momentum)
        if self.rms_rate is not None:
            step = step * (max(variable.shape) ** 0.5 * self.rms_rate)
        self.assign_sub(variable, step)

    def _orthogonal(self, x: Tensor) -> Tensor:
        """A matrix with the singular vectors of ``x``, and singular values near 1."""
        if x.shape[0] > x.shape[1]:
            return matrix_transpose(self._orthogonal(matrix_transpose(x)))
        a, b, c = self.muon_a, self.muon_b, self.muon_c
        x = x / (matrix_norm(x) + 1e-7)
        for _ in range(self.ns_steps):
            square_ = matmul(x, matrix_transpose(x))
            x = a * x + matmul(b * square_ + c * matmul(square_, square_), x)
        return x

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["amsgrad"]
        config["adam_beta_1"], config["adam_beta_2"] = config.pop("beta_1"), config.pop("beta_2")
        exclusions = "exclude_layers", "exclude_embeddings", "adam_weight_decay", "adam_lr_ratio"
        steps = "muon_a", "muon_b", "muon_c", "momentum", "ns_steps", "nesterov", "rms_rate"
        return config | {name: getattr(self, name) for name in (*exclusions, *steps)}
