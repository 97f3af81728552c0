"""Layers that give what passes through them a mean and a size.  float16 and bfloat16 are computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from hybridflow.array.elementwise import rsqrt, square, where
from hybridflow.array.reductions import mean, sum
from hybridflow.array.shapes import broadcast_to, expand_dims, reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, Identifier
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import cast
from hybridflow.errors import ArgumentError, AxisError, ShapeError
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.nn.functional import l2_normalize, layer_norm, rms_norm
from hybridflow.tracing.replica_axes import over_replicas


class BoundOptions(LayerOptions, total=False):
    """What layers with an offset and a factor take by name, and pass on."""

    beta_regularizer: Identifier
    gamma_regularizer: Identifier
    beta_constraint: Identifier
    gamma_constraint: Identifier


class AffineOptions(BoundOptions, total=False):
    """The same, and with what both begin."""

    beta_initializer: Identifier
    gamma_initializer: Identifier


class _Affine(Layer):
    """A normalisation with learned factors ``gamma`` and summands ``beta``, if ``scale`` and ``center`` say so."""

    supports_masking = True
    gamma: Variable | None
    beta: Variable | None

    def __init__(
        self,
        epsilon: float,
        center: bool,
        scale: bool,
        beta_initializer: Identifier = "zeros",
        gamma_initializer: Identifier = "ones",
        beta_regularizer: Identifier = None,
        gamma_regularizer: Identifier = None,
        beta_constraint: Identifier = None,
        gamma_constraint: Identifier = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.epsilon, self.center, self.scale = float(epsilon), bool(center), bool(scale)
        self._settle("beta", beta_initializer, beta_regularizer, beta_constraint)
        self._settle("gamma", gamma_initializer, gamma_regularizer, gamma_constraint)

    def _make_affine(self, shape: Sequence[int]) -> None:
        self.gamma = self._weight("gamma", shape, autocast=False) if self.scale else None
        self.beta = self._weight("beta", shape, autocast=False) if self.center else None

    def _scaled(self, centred: Tensor, variance: Tensor, shape: Sequence[int]) -> Tensor:
        """``centred / sqrt(variance + epsilon)`` times gamma plus beta, which are reshaped to ``shape``."""
        inverse = rsqrt(variance + self.epsilon)
        if self.gamma is not None:
            inverse = inverse * reshape(self.gamma, shape)
        out = centred * inverse
        return out if self.beta is None else out + reshape(self.beta, shape)


class LayerNormalization(_Affine, one_tensor=True):
    """Layer normalization: mean 0 and variance 1 over ``axis``, one or several, times ``gamma`` plus ``beta``.

    Source: Ba, Kiros and Hinton, "Layer Normalization", 2016.

    Args:
        axis: the axis or axes that it works along.
        epsilon: a small number that keeps divisions finite.
        center: whether an offset ``beta`` is added.
        scale: whether a factor ``gamma`` is applied.
        *arguments: initializers, regularizers and constraints by position, in Keras's order.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.LayerNormalization()([[1.0, 3.0], [2.0, 8.0]]).numpy().round(2)
    array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        *arguments: Identifier,
        **options: Any,
    ) -> None:
        super().__init__(epsilon, center, scale, *arguments, **options)
        self.axis = axis if isinstance(axis, int) else tuple(axis)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        self._make_affine([input_shape[axis] for axis in _axes(self, self.axis, input_shape)])

    def call(self, inputs: Tensor) -> Any:
        """Inputs with mean 0 and variance 1 over the axes of each sample, scaled and shifted by the weights.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            ShapeError: where the extents are not those of the weights.
        """
        axes = _axes(self, self.axis, inputs.shape)
        for weight in (self.gamma, self.beta):
            _check_extents(self, inputs, axes, weight)
        shape = [inputs.shape[axis] if axis in axes else 1 for axis in range(inputs.ndim)]
        factor, summand = (None if v is None else reshape(v, shape) for v in (self.gamma, self.beta))
        return layer_norm(inputs, factor, summand, tuple(axes), self.epsilon)


class RMSNormalization(Layer, one_tensor=True):
    """RMS normalization: a mean square of 1 over ``axis``, one or several, times ``scale``.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    Args:
        axis: the axis or axes that it works along.
        epsilon: a small number that keeps divisions finite.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.RMSNormalization()([3.0, 4.0]).numpy().round(3)
    array([0.849, 1.131], dtype=float32)
    """

    supports_masking = True
    scale: Variable

    def __init__(self, axis: int | Sequence[int] = -1, epsilon: float = 1e-6, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis, self.epsilon = axis if isinstance(axis, int) else tuple(axis), float(epsilon)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        self.scale = self.add_weight(
            [input_shape[a] for a in _axes(self, self.axis, input_shape)], "ones", autocast=False
        )

    def call(self, inputs: Tensor) -> Any:
        """Inputs divided by the root of their mean square over the axes, times the scale.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            ShapeError: where the extents are not those of the weights.
        """
        axes = _axes(self, self.axis, inputs.shape)
        _check_extents(self, inputs, axes, self.scale)
        shape = [inputs.shape[axis] if axis in axes else 1 for axis in range(inputs.ndim)]
        return rms_norm(inputs, reshape(self.scale, shape), tuple(axes), self.epsilon)


class UnitNormalization(Layer, one_tensor=True):
    """L2 normalization: a norm of 1 over ``axis``, one or several.

    Args:
        axis: the axis or axes that it works along.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.UnitNormalization()([3.0, 4.0])
    <Tensor f32[2] cpu> [0.6 0.8]
    """

    supports_masking = True

    def __init__(self, axis: int | Sequence[int] = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis if isinstance(axis, int) else tuple(axis)

    def call(self, inputs: Tensor) -> Any:
        """Inputs divided by their norm along the axes.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape.
        """
        return l2_normalize(inputs, self.axis, 1e-24)


class GroupNormalization(_Affine, one_tensor=True):
    """Group normalization: mean 0 and variance 1 over each of ``groups`` equal groups of channels.

    Channels lie along ``axis``; a group has all axes between these and the batch; -1 groups are as many as channels.

    Source: Wu and He, "Group Normalization", 2018. Raises ArgumentError where channels do not fall into the groups.

    Args:
        groups: the number of channel groups.
        axis: the axis or axes that it works along.
        epsilon: a small number that keeps divisions finite.
        center: whether an offset ``beta`` is added.
        scale: whether a factor ``gamma`` is applied.
        *arguments: initializers, regularizers and constraints by position, in Keras's order.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GroupNormalization(2)([[1.0, 3.0, 10.0, 12.0]]).numpy().round(2)
    array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        *arguments: Identifier,
        **options: Unpack[AffineOptions],
    ) -> None:
        super().__init__(epsilon, center, scale, *arguments, **options)
        if not isinstance(groups, int) or (groups < 1 and groups != -1):
            raise ArgumentError(self.name, f"groups is {groups!r}; it must be a positive integer, or -1.")
        self.groups, self.axis = groups, axis

    def build(self, input_shape: tuple[Any, ...]) -> None:
        channels = input_shape[_axes(self, self.axis, input_shape)[0]]
        if channels % self._count(channels):
            raise ArgumentError(self.name, f"{channels} channels do not fall into {self.groups} equal groups.")
        self._make_affine([channels])

    def _count(self, channels: int) -> int:
        return channels if self.groups == -1 else self.groups

    def call(self, inputs: Tensor) -> Any:
        """Inputs with mean 0 and variance 1 in each group of channels, scaled and shifted by the weights.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            ShapeError: where the channels are not those of the weights.
        """
        axis = _axes(self, self.axis, inputs.shape)[0]
        for weight in (self.gamma, self.beta):
            _check_extents(self, inputs, [axis], weight)
        count = self._count(inputs.shape[axis])
        cut = (count, inputs.shape[axis] // count)
        x = cast(inputs, dtypes.compute_dtype(inputs.dtype))
        x = reshape(x, (*inputs.shape[:axis], *cut, *inputs.shape[axis + 1 :]))
        over = tuple(a for a in range(1, x.ndim) if a != axis)
        centred = x - mean(x, over, keepdims=True)
        variance = mean(square(centred), over, keepdims=True)
        shape = [1] * x.ndim
        shape[axis : axis + 2] = cut
        return cast(reshape(self._scaled(centred, variance, shape), inputs.shape), inputs.dtype)


class BatchNormalization(_Affine, one_tensor=True):
    """Batch normalization: mean 0 and variance 1 of each channel along ``axis``, times ``gamma`` plus ``beta``.

    While training, mean and variance are those of the batch and of all other axes, without masked steps.
    ``moving_mean`` and ``moving_variance`` become ``momentum`` times themselves plus the rest times these. Otherwise,
    and in a layer that is not ``trainable``, those are taken.

    Source: Ioffe and Szegedy, "Batch Normalization", 2015.

    Args:
        axis: the axis or axes that it works along.
        momentum: the decay rate of the running average.
        epsilon: a small number that keeps divisions finite.
        center: whether an offset ``beta`` is added.
        scale: whether a factor ``gamma`` is applied.
        beta_initializer: what the offset starts from.
        gamma_initializer: what the factor starts from.
        moving_mean_initializer: what the running mean starts from.
        moving_variance_initializer: what the running variance starts from.
        *arguments: initializers, regularizers and constraints by position, in Keras's order.
        synchronized: whether replicas of a strategy (see ``hf.distribute``) take mean and variance of all their
            batches together. Otherwise each takes those of its own; running values are always means over replicas.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.BatchNormalization(momentum=0.5)
    >>> layer([[1.0], [3.0]], training=True).numpy().round(2)
    array([[-1.],
           [ 1.]], dtype=float32)
    >>> layer.moving_mean, layer.moving_variance
    (<Variable 'moving_mean' not trainable f32[1] cpu> [1.], <Variable 'moving_variance' not trainable f32[1] cpu> [1.])
    """

    moving_mean: Variable
    moving_variance: Variable

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Identifier = "zeros",
        gamma_initializer: Identifier = "ones",
        moving_mean_initializer: Identifier = "zeros",
        moving_variance_initializer: Identifier = "ones",
        *arguments: Identifier,
        synchronized: bool = False,
        **options: Unpack[BoundOptions],
    ) -> None:
        super().__init__(epsilon, center, scale, beta_initializer, gamma_initializer, *arguments, **options)
        self.synchronized = bool(synchronized)
        if not 0 <= momentum <= 1:
            raise ArgumentError(self.name, f"momentum is {momentum!r}; it must be from 0 to 1.")
        self.axis, self.momentum = axis, float(momentum)
        self._settle("moving_mean", moving_mean_initializer)
        self._settle("moving_variance", moving_variance_initializer)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        channels = [input_shape[_axes(self, self.axis, input_shape)[0]]]
        self._make_affine(channels)
        wide = {"trainable": False, "autocast": False, "dtype": dtypes.compute_dtype(self.dtype)}
        self.moving_mean = self._weight("moving_mean", channels, **wide)
        self.moving_variance = self._weight("moving_variance", channels, **wide)

    def call(self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None) -> Any:
        """Inputs less a mean, divided by a deviation, scaled and shifted by the weights.

        Mean and deviation are those of the batch while a trainable layer is trained, else the moving averages.

        Args:
            inputs: a tensor.
            training: whether the model is being trained.
            mask: a bool tensor of what counts for mean and deviation, or None.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            ShapeError: where the channels are not those of the weights.
        """
        axis = _axes(self, self.axis, inputs.shape)[0]
        x = cast(inputs, dtypes.compute_dtype(inputs.dtype))
        shape: list[Any] = [1] * x.ndim
        _check_extents(self, inputs, [axis], self.moving_mean)
        shape[axis] = self.moving_mean.shape[0]
        if training and self.trainable:
            over = tuple(a for a in range(x.ndim) if a != axis)
            centred, average, variance = _of_batch(x, over, mask, self.name, self.synchronized)
            self._move(self.moving_mean, over_replicas(average, "mean"))
            self._move(self.moving_variance, over_replicas(variance, "mean"))
        else:
            centred = x - reshape(self.moving_mean, shape)
            variance = reshape(self.moving_variance, shape)
        return cast(self._scaled(centred, variance, shape), inputs.dtype)

    def _move(self, variable: Variable, value: ArrayLike) -> None:
        variable.assign(variable * self.momentum + reshape(value, variable.shape) * (1 - self.momentum))


def _of_batch(
    x: Tensor, over: tuple[int, ...], mask: Tensor | None, stage: str, synchronized: bool
) -> tuple[Any, Any, Any]:
    """``x`` less its mean, the mean, and the variance, over axes whose extents become 1; ``synchronized``: those of the
    batches of all replicas of a strategy."""

    def all_of(value: Any, reduce: str) -> Tensor:
        return over_replicas(value, reduce) if synchronized else value

    if mask is None:
        average = all_of(mean(x, over, keepdims=True), "mean")
        centred = x - average
        return centred, average, all_of(mean(square(centred), over, keepdims=True), "mean")
    if mask.ndim != x.ndim - 1:
        raise ShapeError(stage, f"the mask {mask.type} must have the axes of the input {x.type} but the last one.")
    there = expand_dims(mask, axis=-1)
    weights = cast(broadcast_to(there, x.shape), x.dtype)
    count = all_of(sum(weights, over, keepdims=True), "sum") + 1e-7
    average = all_of(sum(where(there, x, 0), over, keepdims=True), "sum") / count
    centred = x - average
    return centred, average, all_of(sum(where(there, square(centred), 0), over, keepdims=True), "sum") / count


def _check_extents(layer: Layer, inputs: Tensor, axes: Sequence[int], weight: Variable | None) -> None:
    """Raise ShapeError, which names the layer, where the extents of axes are not those of a weight."""
    if weight is not None and tuple(inputs.shape[axis] for axis in axes) != tuple(weight.shape):
        built = f"{weight.shape[0]} channels" if len(axes) == 1 else f"the extents {weight.shape} of the axes {axes}"
        raise ShapeError(layer.name, f"the input is {inputs.type}; the layer was built for {built}.")


def _axes(layer: Layer, axis: Any, shape: Sequence[Any]) -> list[int]:
    """Axes of a shape, counted from the first one, in order.

    Raises AxisError, which names the layer, for one that is not there, ShapeError for one of unknown extent.
    """
    axes = []
    for one in (axis,) if isinstance(axis, int) else axis:
        if not -len(shape) <= one < len(shape):
            raise AxisError(layer.name, f"axis {one} is none of the input's, whose shape is {tuple(shape)}.")
        if not isinstance(shape[one], int):
            raise ShapeError(layer.name, f"the input has the shape {tuple(shape)}; extent {one} must be known.")
        axes.append(one % len(shape))
    return sorted(axes)
