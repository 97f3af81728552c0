"""Layers for sequences of numbers and sequences with gaps: embeddings and masks."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.creation import asarray
from hybridflow.array.elementwise import astype, not_equal, where
from hybridflow.array.reductions import any as any_of
from hybridflow.array.shapes import expand_dims
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike, Identifier
from hybridflow.core.variable import Variable
from hybridflow.errors import DTypeError, ShapeError
from hybridflow.layers.basic import positive
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.quantize.quantized_weight import rows_of


class Embedding(Layer, one_tensor=True):
    """Embedding table.

    Integers from 0 on and below ``input_dim`` to vectors of ``output_dim`` numbers: ``[...]`` to ``[..., n]``.

    With ``mask_zero``, 0 stands for nothing: the mask of the result is False there.  ``weights`` is a list of the
    vectors to start with.  Another integer raises IndexRangeError when the result is computed.

    Args:
        input_dim: the number of indices.
        output_dim: the length of each vector.
        embeddings_initializer: what the table starts from.
        embeddings_regularizer: a regularizer of the table.
        embeddings_constraint: a constraint that is applied to the table after each update.
        mask_zero: whether index 0 stands for nothing, which later layers leave out.
        weights: the first values of the weights.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.Embedding(3, 2, mask_zero=True, weights=[np.arange(6.0).reshape(3, 2)])
    >>> layer([[2, 0]])
    <Tensor f32[1,2,2] cpu>
    [[[4. 5.]
      [0. 1.]]]
    >>> layer.compute_mask([[2, 0]])
    <Tensor bool[1,2] cpu>
    [[ True False]]
    """

    embeddings: Variable

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Identifier = "uniform",
        embeddings_regularizer: Identifier = None,
        embeddings_constraint: Identifier = None,
        mask_zero: bool = False,
        weights: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.input_dim, self.output_dim = (
            positive(input_dim, "input_dim", self),
            positive(output_dim, "output_dim", self),
        )
        self.mask_zero = bool(mask_zero)
        self._settle("embeddings", embeddings_initializer, embeddings_regularizer, embeddings_constraint)
        self._first: Any = None if weights is None else asarray(weights[0], dtype=self.dtype)

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"embeddings": (0,)}

    def build(self, input_shape: tuple[Any, ...]) -> None:
        first = {} if self._first is None else {"initializer": self._start}
        self.embeddings = self._weight("embeddings", (self.input_dim, self.output_dim), autocast=False, **first)

    def _start(self, shape: object, dtype: DTypeLike) -> Any:
        """The vectors to start with, as an initializer."""
        if self._first.shape != shape:
            raise ShapeError(self.name, f"the weights are {self._first.type}; they must have the shape {shape}.")
        return self._first

    def call(self, inputs: Tensor) -> Any:
        """The rows of the table at the inputs.

        Args:
            inputs: integers of any shape.

        Returns:
            A tensor of shape ``inputs.shape + (output_dim,)``.

        Raises:
            DTypeError: for bools.
        """
        if inputs.dtype == dtypes.bool_:
            raise DTypeError(self.name, f"the input is {inputs.type}; it must be numbers of rows, integers.")
        numbers = astype(inputs, dtypes.int64) if dtypes.is_float(inputs.dtype) else inputs
        return astype(rows_of(self.embeddings, numbers), self.compute_dtype)

    def compute_mask(self, inputs: ArrayLike, mask: Tensor | None = None) -> Any:
        return not_equal(inputs, 0) if self.mask_zero else None

    def get_config(self) -> dict[str, Any]:  # without the weights to start with
        config = {"input_dim": self.input_dim, "output_dim": self.output_dim, "mask_zero": self.mask_zero}
        return super().get_config() | config | self._settled("embeddings")


class Masking(Layer, one_tensor=True):
    """Masking: ``[batch, steps, features]`` with the steps masked, and set to 0, at which all features are
    ``mask_value``.

    Args:
        mask_value: the value of steps that are left out.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.Masking(-1.0)
    >>> layer.compute_mask(hf.asarray([[[1.0, -1.0], [-1.0, -1.0]]]))
    <Tensor bool[1,2] cpu>
    [[ True False]]
    """

    def __init__(self, mask_value: float = 0.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.mask_value = mask_value

    def call(self, inputs: Tensor) -> Any:
        """The inputs, with zeros in steps that are masked.

        Args:
            inputs: a tensor [..., features].

        Returns:
            A tensor of the same shape.

        Raises:
            ShapeError: for inputs without axes.
        """
        return where(expand_dims(self.compute_mask(inputs), axis=-1), inputs, 0)

    def compute_mask(self, inputs: Any, mask: Tensor | None = None) -> Any:
        if not inputs.ndim:
            raise ShapeError(self.name, f"the input is {inputs.type}; it must have an axis of features.")
        return any_of(not_equal(inputs, self.mask_value), axis=-1)
