"""What a layer says of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybridflow.core import pytree
from hybridflow.core.promotion import to_dtype
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, ShapeError


class InputSpec:
    """What an input of a layer must be; set it, or a list of them, as ``input_spec`` of a layer.

    - ``dtype``, ``ndim``, ``min_ndim``, ``max_ndim``;
    - ``shape``, batch included, with None for extents of any size;
    - ``axes``: extents by the number of their axis;
    - ``allow_last_axis_squeeze``: a last extent of 1 may be there or not;
    - ``optional``: the input may be None.

    Raises ArgumentError for an axis that the number of axes leaves out.

    Args:
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        shape: the shape of one sample, without the batch; None for any extent.
        ndim: the number of axes.
        max_ndim: the largest number of axes.
        min_ndim: the least number of axes.
        axes: extents by axis.
        allow_last_axis_squeeze: whether a last axis of 1 may be missing.
        name: the name in summaries, logs and files; by default made from the class's name.
        optional: whether it may be None.

    >>> class Norms(hf.layers.Layer):
    ...     input_spec = hf.layers.InputSpec(ndim=2, axes={-1: 3})
    ...     def call(self, inputs):
    ...         return hf.linalg.vector_norm(inputs, axis=-1)
    >>> Norms()(hf.ones((4, 3))).shape
    (4,)
    """

    def __init__(
        self,
        dtype: DTypeLike | None = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
        optional: bool = False,
    ) -> None:
        self.dtype = None if dtype is None else to_dtype(dtype, "InputSpec")
        self.shape = None if shape is None else tuple(shape)
        self.ndim = ndim if self.shape is None else len(self.shape)
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        self.axes = {int(axis): extent for axis, extent in (axes or {}).items()}
        self.allow_last_axis_squeeze = allow_last_axis_squeeze
        self.name, self.optional = name, optional
        most = self.ndim if self.ndim is not None else max_ndim
        if most is not None and any(axis >= most for axis in self.axes):
            raise ArgumentError("InputSpec", f"axes names axis {max(self.axes)}, of at most {most} axes.")

    def why_not(self, value: Any) -> str | None:
        """The first property of the spec that a value lacks.

        Args:
            value: what has a shape and a dtype.

        Returns:
            A text, or None where the value fits.

        >>> hf.layers.InputSpec(ndim=2).why_not(hf.ones(3))
        '2 axes'
        """
        shape, ndim = tuple(value.shape), len(value.shape)
        if self.ndim is not None and not self.allow_last_axis_squeeze and ndim != self.ndim:
            return f"{self.ndim} axes"
        if self.min_ndim is not None and ndim < self.min_ndim:
            return f"at least {self.min_ndim} axes"
        if self.max_ndim is not None and ndim > self.max_ndim:
            return f"at most {self.max_ndim} axes"
        if self.dtype is not None and value.dtype != self.dtype:
            return f"the dtype {self.dtype}"
        for axis, extent in self.axes.items():
            if not -ndim <= axis < ndim or not _fits(extent, shape[axis]):
                return f"{extent} along axis {axis}"
        if self.shape is not None and not self._has_shape(shape):
            return f"the shape {self.shape}"
        return None

    def _has_shape(self, shape: tuple[Any, ...]) -> bool:
        wanted = self.shape or ()
        if self.allow_last_axis_squeeze:
            wanted, shape = (extents[:-1] if extents[-1:] == (1,) else extents for extents in (wanted, shape))
        return len(wanted) == len(shape) and all(map(_fits, wanted, shape))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one like this.

        Returns:
            A dict from names to values.
        """
        names = "shape", "ndim", "max_ndim", "min_ndim", "axes", "optional"
        return {"dtype": None if self.dtype is None else self.dtype.name} | {k: getattr(self, k) for k in names}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> InputSpec:
        """An instance with the arguments that ``get_config`` returned.

        Args:
            config: what ``get_config`` returned.

        Returns:
            A new spec.
        """
        return cls(**config)

    def __repr__(self) -> str:
        said = {name: getattr(self, name) for name in ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")}
        return f"InputSpec({', '.join(f'{name}={value}' for name, value in said.items() if value not in (None, {}))})"


def _fits(wanted: object, extent: object) -> bool:
    return wanted is None or not isinstance(extent, int) or extent == wanted


def check_inputs(specs: object, inputs: object, layer: str) -> None:
    """Raise ShapeError, which names the layer, where inputs are not what their specs say."""
    wanted: Sequence[Any] = specs if isinstance(specs, (list, tuple)) else [specs]
    if isinstance(inputs, dict) and all(spec is not None and spec.name in inputs for spec in wanted):
        leaves = [inputs[spec.name] for spec in wanted]
    else:
        leaves = pytree.flatten(inputs)[0]
    if len(leaves) != len(wanted):
        raise ShapeError(layer, f"there are {len(leaves)} inputs. Expected {len(wanted)}, as input_spec says.")
    for k, (spec, value) in enumerate(zip(wanted, leaves)):
        if spec is None or (value is None and spec.optional) or not hasattr(value, "shape"):
            continue
        wish = spec.why_not(value)
        if wish is not None:
            which = f"input {k}" if len(leaves) > 1 else "the input"
            raise ShapeError(
                layer, f"{which} is {value.dtype}{list(value.shape)}. Expected {wish}, as input_spec says."
            )
