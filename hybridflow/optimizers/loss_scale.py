"""Losses that are scaled, so that gradients in float16 are not rounded to 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from hybridflow.array.elementwise import equal, isfinite, logical_and, multiply, where
from hybridflow.array.reductions import all as all_of
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops.sparse_grad import GatheredRows, Terms, lookups, replaced
from hybridflow.control.cond import cond
from hybridflow.core.context import suspended
from hybridflow.core.serialization import described_of, description
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.jit.function import function
from hybridflow.optimizers.optimizer import Optimizer
from hybridflow.optimizers.sparse_update import terms_of


class LossScaleOptimizer(Optimizer):
    """Dynamic loss scaling: an optimizer for losses that are multiplied by a factor, which finds that factor by
    itself.

    Small gradients become 0 in float16.  So the loss is multiplied, ``optimizer.scale_loss(loss)``, gradients are taken
    of the product, and ``apply`` divides them again.  Where one of them is not finite the factor was too large: nothing
    is updated, and ``dynamic_scale`` is halved.  After ``dynamic_growth_steps`` updates in a row it is doubled.

    ``inner_optimizer`` does the updates; learning rate, iterations and slots are its own.  ``Model.compile`` wraps the
    optimizer of a model whose policy is "mixed_float16".

    Args:
        inner_optimizer: the optimizer that gets gradients of the scale 1.
        initial_scale: what the scale of the loss starts from.
        dynamic_growth_steps: after how many finite steps the scale is doubled.
        name: what it is called in files.

    >>> optimizer = hf.mixed_precision.LossScaleOptimizer(hf.optimizers.SGD(0.5), initial_scale=8.0)
    >>> w = hf.Variable(1.0)
    >>> optimizer.apply_gradients([(hf.asarray(float("inf")), w)])
    >>> w.item(), optimizer.dynamic_scale.item()
    (1.0, 4.0)
    >>> optimizer.apply_gradients([(hf.asarray(4.0), w)])
    >>> w.item()
    0.5
    """

    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        if not isinstance(inner_optimizer, Optimizer) or isinstance(inner_optimizer, LossScaleOptimizer):
            raise ArgumentTypeError(kind, f"inner_optimizer is {inner_optimizer!r}; give an optimizer of another kind.")
        if not 0 < initial_scale < float("inf"):
            raise ArgumentError(kind, f"initial_scale is {initial_scale!r}; it must be positive and finite.")
        if not isinstance(dynamic_growth_steps, int) or dynamic_growth_steps < 1:
            raise ArgumentError(kind, f"dynamic_growth_steps is {dynamic_growth_steps!r}; it must be 1 or more.")
        super().__init__(0.0, name=name or "loss_scale_optimizer")
        self.inner_optimizer = inner_optimizer
        self.initial_scale, self.dynamic_growth_steps = float(initial_scale), dynamic_growth_steps
        self.gradient_accumulation_steps = inner_optimizer.gradient_accumulation_steps
        # Those of the inner one: there is but one state, be it looked for here or there.
        self._state, self._calls, self._rate = inner_optimizer._state, inner_optimizer._calls, inner_optimizer._rate
        with suspended():
            self.dynamic_scale = Variable(
                self.initial_scale, trainable=False, dtype=dtypes.float32, name="dynamic_scale"
            )
            self.step_counter = Variable(0, trainable=False, dtype=dtypes.int64, name="step_counter")

    def scale_loss(self, loss: ArrayLike) -> Tensor:
        """The loss times the present factor: what gradients are to be taken of.

        Args:
            loss: a scalar.

        Returns:
            A scalar.
        """
        return multiply(self.inner_optimizer.scale_loss(loss), self.dynamic_scale)

    def named_state(self) -> dict[str, Variable]:
        return self.inner_optimizer.named_state() | {
            "dynamic_scale": self.dynamic_scale,
            "step_counter": self.step_counter,
        }

    def build(self, variables: Iterable[Variable]) -> None:
        self.inner_optimizer.build(variables)

    def _forget(self, variables: Iterable[Variable]) -> None:
        self.inner_optimizer._forget(variables)

    @function
    def _update(self, gradients_given: list[Tensor | Terms], variables: list[Variable]) -> None:
        """One call of ``apply``, as a program."""
        gradients = [terms_of(gradient) or gradient for gradient in gradients_given]
        checked = [part for gradient in gradients for part in _parts(gradient)]
        finite = all_of(isfinite(checked[0]))
        for part in checked[1:]:
            finite = logical_and(finite, all_of(isfinite(part)))
        cond(finite, lambda: self._take(gradients, variables), self._shrink)

    def _take(self, gradients: Sequence[Tensor | Terms], variables: Sequence[Variable]) -> None:
        scale = self.dynamic_scale
        self.inner_optimizer._update([_divided(gradient, scale) for gradient in gradients], list(variables))
        grows = equal(self.step_counter, self.dynamic_growth_steps - 1)
        scale.assign(where(grows, scale * 2.0, scale))
        self.step_counter.assign(where(grows, 0, self.step_counter + 1))

    def _shrink(self) -> None:
        self.dynamic_scale.assign(self.dynamic_scale * 0.5)
        self.step_counter.assign(0)

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Name variables that weight decay leaves alone, as of the inner optimizer.

        Args:
            var_list: the variables, or None.
            var_names: texts that their names contain, or None.

        Raises:
            ArgumentError: once there was an update.
        """
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    def has_trained(self, variable: Variable) -> bool:
        """Whether the inner optimizer has state for a variable.

        Args:
            variable: the variable.

        Returns:
            True or False.
        """
        return self.inner_optimizer.has_trained(variable)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Make the averages of the inner optimizer, if it has them, the variables' values.

        Args:
            var_list: the variables.
        """
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inner_optimizer": description(self.inner_optimizer),
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """An instance with the arguments that ``get_config`` returned, without its state.

        Args:
            config: what ``get_config`` returned.

        Returns:
            A new optimizer.
        """
        inner = described_of(Optimizer, config["inner_optimizer"], "optimizers")
        return cls(**{**config, "inner_optimizer": inner})


def _parts(gradient: Tensor | Terms) -> list[Tensor]:
    """What a gradient consists of: itself, or its rows."""
    return [gradient] if isinstance(gradient, Tensor) else [lookup.rows for lookup in lookups(gradient)]


def _divided(gradient: Tensor | Terms, scale: Variable) -> Tensor | Terms:
    if isinstance(gradient, Tensor):
        return gradient / scale
    return replaced(lambda lookup: GatheredRows(lookup.indices, lookup.rows / scale), gradient)
