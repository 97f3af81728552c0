"""The base of all metrics, and those that are a sum or a mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from hybridflow import initializers
from hybridflow.array.creation import ones_like, zeros_like
from hybridflow.array.elementwise import divide, equal, where
from hybridflow.array.reductions import mean, sum
from hybridflow.array.shapes import broadcast_to, reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.core import layer_context
from hybridflow.core.context import suspended
from hybridflow.core.promotion import default_float, to_dtype
from hybridflow.core.serialization import Configured, snake_case
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError, ShapeError


class Metric(Configured):
    """The base of all metrics, and of your own: state in variables, updated by each batch.

    Subclasses make variables by ``add_variable`` and define ``update_state``, which changes them, and ``result``.
    A metric that is called updates its state and returns the result of all batches since ``reset_state``.

    ``name`` is for logs; ``dtype`` is that of the result, float32 unless given.  ``reset_state`` gives variables their
    first values again, where Keras sets them to 0.

    Args:
        dtype: the dtype of its state and result.
        name: the name in logs.

    >>> class Count(hf.metrics.Metric):
    ...     def __init__(self, **options):
    ...         super().__init__(**options)
    ...         self.count = self.add_variable((), "zeros", name="count")
    ...     def update_state(self, y_true, y_pred, sample_weight=None):
    ...         self.count.assign_add(hf.astype(len(y_pred), "float32"))
    ...     def result(self):
    ...         return self.count
    >>> count = Count()
    >>> count([1.0, 2.0], [1.0, 2.0])
    <Tensor f32[] cpu> 2.0
    """

    def __init__(self, dtype: DTypeLike | None = None, name: str | None = None) -> None:
        self._dtype = default_float if dtype is None else to_dtype(dtype, type(self).__name__)
        self.name = name or snake_case(type(self).__name__)
        self._variables: list[Variable] = []
        self._starts: list[Tensor] = []

    @property
    def dtype(self) -> Any:
        """The dtype of the result."""
        return self._dtype

    @property
    def variables(self) -> list[Variable]:
        """The state."""
        return list(self._variables)

    def _checkpoint_variables(self) -> dict[str, Variable]:
        return {str(index): variable for index, variable in enumerate(self.variables)}

    def add_variable(
        self,
        shape: Sequence[int] = (),
        initializer: object = "zeros",
        dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> Variable:
        """A new variable of the state, to which ``reset_state`` gives its first value again.

        Args:
            shape: its extents.
            initializer: anything that ``hf.initializers.get`` takes, which makes its first value.
            dtype: its dtype, by default that of the metric.
            name: a name for messages, or None.

        Returns:
            The variable.
        """
        chosen = self._dtype if dtype is None else to_dtype(dtype, self.name)
        with suspended():  # it starts from nothing that a function being traced computes
            start = initializers.get(initializer)(tuple(shape), chosen)
        result = Variable(start, trainable=False, name=name)._sum_over_replicas()
        self._variables.append(result)
        self._starts.append(start)
        return result

    add_weight = add_variable

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """For subclasses: take a batch into account.

        Args:
            *args: the batch.
            **kwargs: more of it, by name.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define update_state")

    def result(self) -> Any:
        """The metric of all batches since ``reset_state``; subclasses define it.

        Returns:
            A tensor, or a dict of tensors.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define result")

    def reset_state(self) -> None:
        """Forget all batches."""
        for variable, start in zip(self._variables, self._starts):
            variable.assign(start)

    def reset_states(self) -> None:
        """Keras 2's name for ``reset_state``."""
        self.reset_state()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """``update_state`` with these arguments, and ``result``."""
        self.update_state(*args, **kwargs)
        result = self.result()
        return as_tensor(result, self.name) if isinstance(result, Variable) else result

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another metric like this; subclasses with arguments add theirs.

        Returns:
            A dict from names to values.
        """
        return {"name": self.name, "dtype": self._dtype.name} | self._own_arguments(Metric)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """An instance with the arguments that ``get_config`` returned.

        Args:
            config: what ``get_config`` returned.

        Returns:
            A new metric.
        """
        return cls(**config)

    def _there(self, y_pred: ArrayLike, values: ArrayLike, sample_weight: ArrayLike | None) -> Any:
        """The weights, 0 where the mask of predictions says that there is nothing."""
        mask = layer_context.mask_of(y_pred)
        if mask is None or mask.ndim > as_tensor(values, self.name).ndim:
            return sample_weight
        there = cast(mask, self._dtype)
        if sample_weight is None:
            return there
        weights = cast(as_tensor(sample_weight, self.name), self._dtype)
        ndim = max(weights.ndim, there.ndim)
        weights, there = (reshape(one, (*one.shape, *(1,) * (ndim - one.ndim))) for one in (weights, there))
        return weights * there

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class Sum(Metric):
    """The sum of all values, each times its weight.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.Sum()([1.0, 3.0, 5.0], sample_weight=[1.0, 1.0, 0.0])
    <Tensor f32[] cpu> 4.0
    """

    def __init__(self, name: str | None = "sum", dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable(dtype=dtypes.float64, name="total")

    def update_state(self, values: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Add the values of a batch.

        Args:
            values: a tensor of values.
            sample_weight: weights that broadcast to the values, or None.
        """
        values, weights = weighted(values, sample_weight, self._dtype, self.name)
        self.total.assign_add(total_of(values if weights is None else values * weights))

    def result(self) -> Tensor:
        return cast(as_tensor(self.total, self.name), self._dtype)


class Averaging(Metric):
    """The mean of what batches hand to ``_take``; 0 where there is nothing."""

    def __init__(self, name: str | None, dtype: DTypeLike | None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable(dtype=dtypes.float64, name="total")
        self.count = self.add_variable(dtype=dtypes.float64, name="count")

    def _take(self, values: ArrayLike, sample_weight: ArrayLike | None) -> None:
        values, weights = weighted(values, sample_weight, self._dtype, self.name)
        if weights is None:
            self.total.assign_add(total_of(values))
            self.count.assign_add(total_of(ones_like(values)))  # the number of elements may be open
        else:
            self.total.assign_add(total_of(values * weights))
            self.count.assign_add(total_of(broadcast_to(weights, values.shape)))

    def result(self) -> Tensor:
        return cast(ratio(as_tensor(self.total, self.name), self.count), self._dtype)


class Mean(Averaging):
    """The mean of all values, each with its weight; 0 where there are none.

    Sums are kept in float64: the mean of 100 million values is as right as that of ten.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> loss = hf.metrics.Mean("loss")
    >>> loss.update_state([1.0, 3.0])
    >>> loss.update_state(8.0)
    >>> loss.result()
    <Tensor f32[] cpu> 4.0
    """

    def __init__(self, name: str | None = "mean", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, values: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take the values of a batch into account.

        Args:
            values: a tensor of values.
            sample_weight: weights that broadcast to the values, or None.
        """
        self._take(values, sample_weight)


class MeanMetricWrapper(Averaging):
    """The mean of ``fn(y_true, y_pred, **kwargs)``, a value for each sample.

    Args:
        fn: a function of labels and predictions.
        name: the name in logs.
        dtype: the dtype of its state and result.
        **kwargs: keyword arguments, which are passed on.

    >>> metric = hf.metrics.MeanMetricWrapper(lambda y, p: hf.abs(y - p), "distance")
    >>> metric([1.0, 2.0], [2.0, 4.0])
    <Tensor f32[] cpu> 1.5
    """

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: DTypeLike | None = None, **kwargs: object
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None) or snake_case(type(fn).__name__), dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels, [batch, ...].
            y_pred: predictions, [batch, ...].
            sample_weight: a weight for each sample, or None.
        """
        labels, predictions = as_tensor(y_true, self.name), as_tensor(y_pred, self.name)
        values = self._fn(labels, predictions, **self._fn_kwargs)
        self._take(values, self._there(y_pred, values, sample_weight))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"fn": self._fn} | self._fn_kwargs


class OfBatches(Averaging):
    """A mean over samples whose class says what of: ``of_samples(y_true, y_pred)``."""

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """For subclasses: a value for each sample.

        Args:
            y_true: labels, [batch, ...].
            y_pred: predictions, [batch, ...].

        Returns:
            A tensor [batch, ...].

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels, [batch, ...].
            y_pred: predictions, [batch, ...].
            sample_weight: a weight for each sample, or None.
        """
        values = self.of_samples(as_tensor(y_true, self.name), as_tensor(y_pred, self.name))
        self._take(values, self._there(y_pred, values, sample_weight))


def weighted(
    values: ArrayLike, weights: ArrayLike | None, dtype: np.dtype[Any], stage: str
) -> tuple[Tensor, Tensor | None]:
    """Values and weights of one number of axes: those that weights lack are averaged over, or they broadcast.

    Raises ShapeError where weights have more axes than values.
    """
    values = cast(as_tensor(values, stage), dtype)
    if weights is None:
        return values, None
    weights = cast(as_tensor(weights, stage), dtype)
    if weights.ndim == values.ndim + 1 and weights.shape[-1] == 1:
        weights = reshape(weights, values.shape[: weights.ndim - 1])
    if weights.ndim > values.ndim:
        raise ShapeError(stage, f"there are weights {weights.type} for values {values.type}: they have more axes.")
    if 0 < weights.ndim < values.ndim:
        values = mean(values, axis=tuple(range(weights.ndim, values.ndim)))
    return values, weights


def total_of(values: Tensor) -> Tensor:
    """The sum of all, as float64."""
    return cast(sum(values), dtypes.float64)


def ratio(over: Tensor, under: ArrayLike) -> Tensor:
    """The quotient, 0 where there is nothing below."""
    nothing = equal(under, 0)
    return where(nothing, zeros_like(over), divide(over, where(nothing, 1.0, under)))


def one_of(name: str, value: object, allowed: Iterable[str], stage: str) -> str:
    """The value, which must be one of these.  Raises ArgumentError."""
    if value not in tuple(allowed):
        raise ArgumentError(stage, f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}.")
    return str(value)
