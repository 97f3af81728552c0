"""Layers that make one of several inputs: sums, products, joins."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any, Unpack

from hybridflow.array.creation import ones
from hybridflow.array.elementwise import add, divide, logical_or, maximum, minimum, multiply, subtract
from hybridflow.array.linalg import einsum
from hybridflow.array.reductions import any as any_of
from hybridflow.array.shapes import broadcast_to, concat, expand_dims
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, AxisError, ShapeError
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.nn.functional import l2_normalize


class Merge(Layer):
    """The base of layers of several inputs, given as one list."""

    supports_masking = True
    _fewest: int = 1
    _most: int | None = None

    def _converted(self, value: object) -> Any:
        if not isinstance(value, (list, tuple)):
            raise ArgumentError(self.name, "the layer takes one list of inputs.")
        parts = [super(Merge, self)._converted(part) for part in value]
        for part in parts:
            self._check_tensor(part, "the layer takes one list of tensors")
        return parts

    def call(self, inputs: Sequence[Tensor]) -> Any:
        """One tensor of all inputs.

        Args:
            inputs: a list of tensors.

        Returns:
            A tensor.

        Raises:
            ArgumentError: for another number of inputs than the layer takes.
        """
        if len(inputs) < self._fewest or (self._most is not None and len(inputs) > self._most):
            count = self._most or f"at least {self._fewest}"
            raise ArgumentError(self.name, f"the list has {len(inputs)} inputs; the layer takes {count}.")
        return self.merged(inputs)

    def merged(self, inputs: Sequence[Any]) -> Any:
        """For subclasses: one tensor of all inputs.

        Args:
            inputs: a list of tensors.

        Returns:
            A tensor.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define merged(self, inputs)")

    def compute_mask(self, inputs: Sequence[Tensor], mask: Any = None) -> Any:
        """The mask of the result: where one of the inputs has something, if all have masks.

        Args:
            inputs: a list of tensors.
            mask: a list of masks, or None.

        Returns:
            A bool tensor, or None.
        """
        if mask is None or any(one is None for one in mask):
            return None
        return functools.reduce(logical_or, mask)


class _Elementwise(Merge):
    """Inputs of fewer axes get new ones behind the batch."""

    def merged(self, inputs: Sequence[Any]) -> Any:
        most = max(x.ndim for x in inputs)
        return self.combined([_with_axes(x, most) for x in inputs])

    def combined(self, inputs: Sequence[Any]) -> Any:
        """For subclasses: one tensor of all inputs, which broadcast.

        Args:
            inputs: a list of tensors.

        Returns:
            A tensor.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define combined(self, inputs)")


class Add(_Elementwise):
    """The sum of the inputs.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> hf.layers.Add()([hf.asarray([1.0, 2.0]), hf.asarray([10.0, 20.0])])
    <Tensor f32[2] cpu> [11. 22.]
    """

    def combined(self, inputs: Sequence[Any]) -> Any:
        return functools.reduce(add, inputs)


class Subtract(_Elementwise):
    """The first of two inputs less the second.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> hf.layers.Subtract()([hf.asarray([1.0, 2.0]), hf.asarray([10.0, 20.0])])
    <Tensor f32[2] cpu> [ -9. -18.]
    """

    _fewest, _most = 2, 2

    def combined(self, inputs: Sequence[Any]) -> Any:
        return subtract(*inputs)


class Multiply(_Elementwise):
    """The product of the inputs.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> hf.layers.Multiply()([hf.asarray([1.0, 2.0]), hf.asarray([10.0, 20.0])])
    <Tensor f32[2] cpu> [10. 40.]
    """

    def combined(self, inputs: Sequence[Any]) -> Any:
        return functools.reduce(multiply, inputs)


class Average(_Elementwise):
    """The mean of the inputs.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> hf.layers.Average()([hf.asarray([1.0, 2.0]), hf.asarray([10.0, 20.0])])
    <Tensor f32[2] cpu> [ 5.5 11. ]
    """

    def combined(self, inputs: Sequence[Any]) -> Any:
        return divide(functools.reduce(add, inputs), len(inputs))


class Maximum(_Elementwise):
    """The largest of the inputs, element by element.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> hf.layers.Maximum()([hf.asarray([1.0, 20.0]), hf.asarray([10.0, 2.0])])
    <Tensor f32[2] cpu> [10. 20.]
    """

    def combined(self, inputs: Sequence[Any]) -> Any:
        return functools.reduce(maximum, inputs)


class Minimum(_Elementwise):
    """The smallest of the inputs, element by element.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> hf.layers.Minimum()([hf.asarray([1.0, 20.0]), hf.asarray([10.0, 2.0])])
    <Tensor f32[2] cpu> [1. 2.]
    """

    def combined(self, inputs: Sequence[Any]) -> Any:
        return functools.reduce(minimum, inputs)


class Concatenate(Merge):
    """The inputs joined along ``axis``.

    Args:
        axis: the axis or axes that it works along.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Concatenate()([hf.ones((2, 3)), hf.zeros((2, 1))])
    <Tensor f32[2,4] cpu>
    [[1. 1. 1. 0.]
     [1. 1. 1. 0.]]
    """

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def merged(self, inputs: Sequence[Any]) -> Tensor:
        return concat(list(inputs), axis=self.axis)

    def compute_mask(self, inputs: Sequence[Any], mask: Any = None) -> Any:
        """The mask of the result: the masks of the inputs side by side, without the axis of features.

        Args:
            inputs: a list of tensors.
            mask: a list of masks, or None.

        Returns:
            A bool tensor, or None.
        """
        if mask is None or all(one is None for one in mask):
            return None
        wholes = [_full_mask(x, one) for x, one in zip(inputs, mask)]
        return any_of(concat(wholes, axis=self.axis), axis=-1)


class Dot(Merge):
    """Products of two inputs, summed over an axis of each, for every element of the batch.

    ``axes`` is one axis, or one of each input, not 0; with ``normalize`` these are first given the norm 1.

    Args:
        axes: the axes along which products are summed.
        normalize: whether vectors get the length 1 first.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Dot(axes=1)([hf.asarray([[1.0, 2.0]]), hf.asarray([[10.0, 20.0]])])
    <Tensor f32[1,1] cpu>
    [[50.]]
    """

    supports_masking = False
    _fewest, _most = 2, 2

    def __init__(self, axes: int | Sequence[int], normalize: bool = False, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axes = axes if isinstance(axes, int) else tuple(axes)
        self.normalize = bool(normalize)
        if not isinstance(axes, int) and not (len(axes) == 2 and all(isinstance(axis, int) for axis in axes)):
            raise ArgumentError(self.name, f"axes is {axes!r}; it must be an integer or a pair of them.")

    def merged(self, inputs: Sequence[Any]) -> Any:
        axes = (self.axes,) * 2 if isinstance(self.axes, int) else self.axes
        x, y = inputs
        first, second = self._axis(x, axes[0]), self._axis(y, axes[1])
        if x.shape[first] != y.shape[second]:
            raise ShapeError(
                self.name, f"axis {first} of {x.type} and axis {second} of {y.type} must have the same extent."
            )
        if self.normalize:
            x, y = l2_normalize(x, first), l2_normalize(y, second)
        names = list(ascii_lowercase)
        of_x = [names.pop(0) for _ in range(x.ndim)]
        of_y = [of_x[0], *(names.pop(0) for _ in range(y.ndim - 1))]
        of_y[second] = of_x[first]
        left = of_x[:first] + of_x[first + 1 :] + of_y[1:second] + of_y[second + 1 :]
        out = einsum(f"{''.join(of_x)},{''.join(of_y)}->{''.join(left)}", x, y)
        return expand_dims(out, axis=1) if out.ndim == 1 else out

    def _axis(self, x: Tensor, axis: int) -> int:
        if not -x.ndim <= axis < x.ndim or axis % x.ndim == 0:
            raise AxisError(self.name, f"axis {axis} of {x.type} must be one behind the batch.")
        return axis % int(x.ndim)

    def compute_mask(self, inputs: Sequence[Tensor], mask: Sequence[Tensor | None] | None = None) -> Any:
        """The mask of the result, which has none.

        Args:
            inputs: a list of tensors.
            mask: a list of masks, or None.

        Returns:
            None.
        """
        return None


def _with_axes(x: Tensor, count: int) -> Any:
    """``x`` with new axes behind the first, ``count`` in all."""
    for _ in range(count - x.ndim):
        x = expand_dims(x, axis=1)
    return x


def _full_mask(x: Tensor, mask: Any) -> Any:
    """A mask of the shape of ``x``: all True without one."""
    if mask is None:
        return ones(x.shape, dtype=dtypes.bool_)
    return broadcast_to(expand_dims(mask, axis=-1), x.shape) if mask.ndim < x.ndim else mask
