"""Layers that prepare data: scaled, standardized, turned into categories, mirrored."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from hybridflow.array import random
from hybridflow.array.creation import asarray
from hybridflow.array.elementwise import astype, maximum, sqrt, where
from hybridflow.array.indexing import one_hot
from hybridflow.array.reductions import max, sum
from hybridflow.array.shapes import expand_dims, flip, squeeze
from hybridflow.array.sorting import searchsorted
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.basic import positive
from hybridflow.layers.layer import Layer, LayerOptions


class Rescaling(Layer, one_tensor=True):
    """Rescaling: ``inputs * scale + offset``.

    Args:
        scale: what is multiplied.
        offset: what is added.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Rescaling(1 / 255)([0.0, 255.0])
    <Tensor f32[2] cpu> [0. 1.]
    """

    supports_masking = True

    def __init__(self, scale: ArrayLike, offset: ArrayLike = 0.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.scale, self.offset = scale, offset

    def call(self, inputs: Tensor) -> Any:
        """The inputs times the scale, plus the offset.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape, in the layer's compute dtype.
        """
        return astype(inputs, self.compute_dtype) * self.scale + self.offset


class Normalization(Layer, one_tensor=True):
    """Feature-wise normalization: ``(inputs - mean) / sqrt(variance)`` for each place along ``axis``, one or several;
    None is for all together.

    ``mean`` and ``variance`` are given, or found by ``adapt``.  ``invert`` makes data of normalized ones.

    Args:
        axis: the axis or axes that it works along.
        mean: the mean that is taken off; ``adapt`` finds it unless given.
        variance: the variance that is divided out; ``adapt`` finds it unless given.
        invert: whether the normalisation is undone.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.Normalization()
    >>> layer.adapt(np.array([[1.0, 10.0], [3.0, 30.0]]))
    >>> layer([[1.0, 30.0]])
    <Tensor f32[1,2] cpu>
    [[-1.  1.]]
    """

    def __init__(
        self,
        axis: Any = -1,
        mean: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        invert: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.axis = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        if (mean is None) != (variance is None):
            raise ArgumentError(self.name, "mean and variance are given both, or found by adapt.")
        self.input_mean, self.input_variance, self.invert = mean, variance, bool(invert)

    def _kept_axes(self, rank: int) -> tuple[int, ...]:
        """The axes that have numbers of their own, sorted."""
        if any(not -rank <= axis < rank for axis in self.axis):
            raise ShapeError(self.name, f"axis is {self.axis}; the input has {rank} axes.")
        return tuple(sorted({axis % rank for axis in self.axis}))

    def build(self, input_shape: tuple[Any, ...]) -> None:
        kept_shape = self._kept_axes(len(input_shape))
        self._shape = tuple(input_shape[axis] if axis in kept_shape else 1 for axis in range(len(input_shape)))
        if self.input_mean is None:
            extents = [input_shape[axis] for axis in kept_shape]
            self.adapt_mean = self.add_weight(extents, "zeros", dtypes.float32, trainable=False, name="mean")
            self.adapt_variance = self.add_weight(extents, "ones", dtypes.float32, trainable=False, name="variance")

    @property
    def mean(self) -> Tensor:
        """The mean that is taken off, in the shape that broadcasts with inputs.  Raises ArgumentError before the layer
        was adapted or called."""
        return self._statistics()[0]

    @property
    def variance(self) -> Tensor:
        """The variance that is divided out, likewise."""
        return self._statistics()[1]

    def _statistics(self) -> tuple[Tensor, Tensor]:
        if not self.built:
            raise ArgumentError(self.name, "there are no mean and variance yet; call adapt first.")
        if self.input_mean is None:
            return self.adapt_mean.reshape(self._shape), self.adapt_variance.reshape(self._shape)
        return self._filled(self.input_mean), self._filled(self.input_variance)

    def adapt(self, data: Any) -> None:
        """Find the mean and the variance of data.

        Args:
            data: an array, or an iterable of batches of arrays.

        Raises:
            ArgumentError: where mean and variance were given, or there are no data.
        """
        if self.input_mean is not None:
            raise ArgumentError(self.name, "mean and variance are given; adapt would find others.")
        count, total, squares = 0, np.zeros(()), np.zeros(())
        for batch in [data] if _is_integer(data) else data:
            x = np.asarray(batch, np.float64)
            if not self.built:
                self._build([asarray(x, dtype=self.compute_dtype)])
            others = tuple(axis for axis in range(x.ndim) if axis not in self._kept_axes(x.ndim))
            size = int(np.prod([x.shape[axis] for axis in others]))
            if not size:
                continue
            mean, squared = x.mean(others), x.var(others) * size  # merged as Chan and others do, which cancels little
            squares = squares + squared + (mean - total) ** 2 * (count * size / (count + size))
            total = total + (mean - total) * (size / (count + size))
            count += size
        if not self.built:
            raise ArgumentError(self.name, "the data are empty.")
        if not count:
            warnings.warn(f"{self.name}: the data are empty, and so mean and variance are NaN", stacklevel=2)
            total = squares = np.full(self.adapt_mean.shape, np.nan)
            count = 1
        self.adapt_mean.assign(total.astype("f4"))
        self.adapt_variance.assign((squares / count).astype("f4"))

    def call(self, inputs: Tensor) -> Any:
        """The inputs less the mean, divided by the deviation; the other way round where the layer is inverted.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape.
        """
        mean, variance = self._statistics()
        deviation = maximum(sqrt(astype(variance, inputs.dtype)), 1e-7)
        mean = astype(mean, inputs.dtype)
        return mean + inputs * deviation if self.invert else (inputs - mean) / deviation

    def _filled(self, values: object) -> Tensor:
        """Numbers that were given, of the shape that broadcasts with inputs."""
        extents = [self._shape[axis] for axis in self._kept_axes(len(self._shape))]
        return asarray(np.broadcast_to(np.asarray(values, "f4"), extents).reshape(self._shape))

    def get_config(self) -> dict[str, Any]:
        config = {"axis": self.axis or None, "mean": self.input_mean, "variance": self.input_variance}
        return super().get_config() | config | {"invert": self.invert}


class CategoryEncoding(Layer, one_tensor=True):
    """Encode numbers of categories as vectors of ``num_tokens``.

    The ``output_mode`` "one_hot" makes one of each number, "multi_hot" one with all along the last axis, "count" one
    that counts these.

    Args:
        num_tokens: the number of categories.
        output_mode: ``"int"``, ``"one_hot"``, ``"multi_hot"`` or ``"count"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.CategoryEncoding(4, "count")([[0, 1, 1]])
    <Tensor f32[1,4] cpu>
    [[1. 2. 0. 0.]]
    """

    def __init__(self, num_tokens: int, output_mode: str = "multi_hot", **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.num_tokens = positive(num_tokens, "num_tokens", self)
        if output_mode not in ("one_hot", "multi_hot", "count"):
            raise ArgumentError(
                self.name, f"output_mode is {output_mode!r}; it must be 'one_hot', 'multi_hot' or 'count'."
            )
        self.output_mode = output_mode

    def call(self, inputs: Tensor, count_weights: ArrayLike | None = None) -> Any:
        """An encoding of category numbers, as ``output_mode`` says.

        Args:
            inputs: integers [batch, categories], or a number for each sample.
            count_weights: a weight for each input, for ``output_mode="count"``, or None.

        Returns:
            A tensor [batch, num_tokens].

        Raises:
            ArgumentError: for weights in another mode.
        """
        if count_weights is not None and self.output_mode != "count":
            raise ArgumentError(self.name, f"count_weights are for output_mode 'count', not {self.output_mode!r}.")
        numbers = astype(inputs, dtypes.int64)
        if self.output_mode == "one_hot" and numbers.ndim > 1 and numbers.shape[-1] == 1:
            numbers = squeeze(numbers, axis=-1)
        result = one_hot(numbers, self.num_tokens, dtype=self.compute_dtype)
        if self.output_mode == "one_hot" or numbers.ndim == 0:
            return result
        if self.output_mode == "multi_hot":
            return max(result, axis=-2)
        if count_weights is not None:
            result = result * expand_dims(astype(count_weights, result.dtype).reshape(numbers.shape), axis=-1)
        return sum(result, axis=-2)


class Discretization(Layer, one_tensor=True):
    """Discretization (binning).

    The numbers of the bins that values are in: i where ``bin_boundaries[i - 1] <= value < bin_boundaries[i]``.

    With ``num_bins`` instead of boundaries, ``adapt`` finds those that so many equal parts of data have.

    Args:
        bin_boundaries: the edges between bins.
        num_bins: how many bins ``adapt`` makes.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Discretization([0.0, 1.0, 2.0])([-1.5, 1.0, 3.4])
    <Tensor i32[3] cpu> [0 2 3]
    >>> layer = hf.layers.Discretization(num_bins=2)
    >>> layer.adapt([1.0, 2.0, 3.0, 4.0])
    >>> layer.bin_boundaries
    [2.0]
    """

    def __init__(
        self,
        bin_boundaries: Sequence[float] | None = None,
        num_bins: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        if (bin_boundaries is None) == (num_bins is None):
            raise ArgumentError(self.name, "give bin_boundaries, or num_bins and adapt.")
        self.num_bins = num_bins
        self.bin_boundaries: list[float] = []
        if bin_boundaries is not None:
            self._set_boundaries(bin_boundaries)

    def adapt(self, data: Any) -> None:
        """Find the boundaries between ``num_bins`` equal parts of data.

        Args:
            data: an array, or an iterable of batches of arrays.

        Raises:
            ArgumentError: where boundaries were given, or there are no data.
        """
        if self.num_bins is None:
            raise ArgumentError(self.name, "the boundaries were given; there is nothing to adapt.")
        batches = [np.asarray(batch, np.float64).reshape(-1) for batch in ([data] if _is_integer(data) else data)]
        values = np.sort(np.concatenate([np.zeros(0), *batches]))
        if not len(values):
            raise ArgumentError(self.name, "there are no data to adapt to.")
        shares = np.arange(1, self.num_bins) / self.num_bins
        self._set_boundaries(np.interp(shares, np.arange(1, len(values) + 1) / len(values), values).tolist())

    def _set_boundaries(self, bin_boundaries: Sequence[float]) -> None:
        self.bin_boundaries = [float(one) for one in bin_boundaries]
        if sorted(self.bin_boundaries) != self.bin_boundaries or not self.bin_boundaries:
            raise ArgumentError(self.name, f"bin_boundaries is {bin_boundaries!r}; they must be numbers that rise.")

    def call(self, inputs: Tensor) -> Any:
        """The number of the bin of each input.

        Args:
            inputs: a tensor.

        Returns:
            An int32 tensor of the same shape.

        Raises:
            ArgumentError: where there are no boundaries yet.
        """
        if not self.bin_boundaries:
            raise ArgumentError(self.name, "there are no boundaries yet; call adapt first.")
        x = (
            inputs if dtypes.is_float(inputs.dtype) else astype(inputs, dtypes.float64)
        )  # boundaries may lie between integers
        return astype(
            searchsorted(asarray(np.array(self.bin_boundaries), dtype=x.dtype), x, side="right"), dtypes.int32
        )

    def get_config(self) -> dict[str, Any]:
        boundaries = {"bin_boundaries": self.bin_boundaries} if self.bin_boundaries else {"num_bins": self.num_bins}
        return super().get_config() | boundaries


class RandomFlip(Layer, one_tensor=True):
    """Random flip.

    While training, images are mirrored, each with probability 1/2: "horizontal", "vertical", or both of these.

    Args:
        mode: ``"horizontal"``, ``"vertical"`` or ``"horizontal_and_vertical"``.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.RandomFlip("horizontal", seed=1)
    >>> x = hf.asarray([[[[1.0], [2.0]]]])
    >>> sorted({layer(x, training=True)[0, 0, 0, 0].item() for _ in range(20)})
    [1.0, 2.0]
    """

    def __init__(
        self, mode: str = "horizontal_and_vertical", seed: int | None = None, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**options)
        if mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ArgumentError(
                self.name, f"mode is {mode!r}; it must be 'horizontal', 'vertical' or 'horizontal_and_vertical'."
            )
        self.mode, self.seed = mode, seed
        self.generator = None if seed is None else random.Generator(seed)

    def call(self, inputs: Tensor, training: bool | None = True) -> Any:
        """While training pictures that are flipped at random; else the pictures as they are.

        Args:
            inputs: pictures [batch, rows, columns, channels], or one without the batch.
            training: whether the model is being trained.

        Returns:
            A tensor of the same shape.

        Raises:
            ShapeError: for inputs of other axes.
        """
        if inputs.ndim not in (3, 4):
            raise ShapeError(self.name, f"the input is {inputs.type}; it must be [batch, rows, columns, channels].")
        inputs = astype(inputs, self.compute_dtype)
        if not training:
            return inputs
        source = self.generator or random.global_generator()
        for word, axis in (("horizontal", -2), ("vertical", -3)):
            if word in self.mode:
                turned = source.bernoulli(0.5, (inputs.shape[0], 1, 1, 1) if inputs.ndim == 4 else (1, 1, 1))
                inputs = where(turned, flip(inputs, axis=axis), inputs)
        return inputs


def _is_integer(data: object) -> bool:
    """Whether data are one array, or nested lists of numbers, which are one: no iterable of batches."""
    if isinstance(data, (np.ndarray, Tensor, Variable)):
        return True
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (int, float, np.generic))
