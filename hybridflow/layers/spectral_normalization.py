"""Kernels that are divided by how much they stretch at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

from hybridflow.array.elementwise import equal, where
from hybridflow.array.linalg import matmul
from hybridflow.array.norms import vector_norm
from hybridflow.array.reductions import all as all_of
from hybridflow.array.shapes import matrix_transpose, reshape
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.initializers import TruncatedNormal
from hybridflow.layers.basic import positive
from hybridflow.layers.layer import Layer, LayerOptions, as_layer

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


class SpectralNormalization(Layer, one_tensor=True):
    """Spectral normalization: a layer whose kernel, or ``embeddings``, is divided by its largest singular value at
    each call while training.

    That value is estimated by ``power_iterations`` steps of the power method, each call's from where the one before
    ended.  The kernel itself changes; derivatives are with respect to the divided one.

    Source: Miyato, Kataoka, Koyama and Yoshida, "Spectral Normalization for Generative Adversarial Networks", 2018.

    Args:
        layer: the layer that is wrapped.
        power_iterations: how many steps of power iteration are made.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.SpectralNormalization(hf.layers.Dense(2, kernel_initializer="ones"), power_iterations=3)
    >>> hf.round(100 * layer(hf.ones((1, 2)), training=True)).tolist()
    [[100.0, 100.0]]
    """

    kernel: Variable
    vector_u: Variable
    _changes_weights = True

    def __init__(self, layer: Layer, power_iterations: int = 1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.layer = as_layer(layer)
        if not isinstance(self.layer, Layer):
            raise ArgumentTypeError(self.name, f"{layer!r:.60} is no layer.")
        self.power_iterations = positive(power_iterations, "power_iterations", self)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        kernel = getattr(self.layer, "kernel", None)
        self._which = "embeddings" if kernel is None else "kernel"
        if not isinstance(getattr(self.layer, self._which, None), Variable):
            raise ArgumentError(self.name, f"{self.layer!r} has neither a kernel nor embeddings.")
        extent = self._kernel.shape[-1]
        self.vector_u = self.add_weight((1, extent), TruncatedNormal(stddev=0.02), trainable=False)

    @property
    def _kernel(self) -> Variable:
        result: Variable = getattr(self.layer, self._which)
        return result

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        # In Keras's order: the kernel and its vector before the bias.  The kernel of a frozen layer comes with it.
        if hasattr(self, "vector_u") and self.layer.built and self.layer.trainable:
            yield f"layer.{self._which}", self._kernel
            yield "vector_u", self.vector_u
        yield from super()._attributes()

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        """What the layer makes of the inputs; while training its kernel is divided by its spectral norm first.

        Args:
            inputs: what the layer takes.
            training: whether the model is being trained.

        Returns:
            The layer's result.
        """
        if training:
            with suspended():
                self._divide()
        return self.layer(inputs)

    def _divide(self) -> None:
        kernel = self._kernel
        u = cast(as_tensor(self.vector_u, self.name), kernel.dtype)
        rows = reshape(kernel, (-1, kernel.shape[-1]))
        for _ in range(self.power_iterations):
            v = _unit(matmul(u, matrix_transpose(rows)))
            u = _unit(matmul(v, rows))
        largest = reshape(matmul(matmul(v, rows), matrix_transpose(u)), ())
        is_zero = all_of(equal(kernel, 0))  # which no direction is stretched by
        self.vector_u.assign(where(is_zero, self.vector_u, cast(u, self.vector_u.dtype)))
        kernel.assign(where(is_zero, kernel, kernel / largest))


def _unit(x: ArrayLike) -> Any:
    """A vector over its length."""
    return x / vector_norm(x)
