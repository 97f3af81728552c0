"""``tf.TensorArray`` in graphs: elements that loops write one after the other, in one tensor that the loops carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array.creation import zeros
from hybridflow.array.indexing import getitem, take
from hybridflow.array.setitem import updated
from hybridflow.compat.v1.arguments import as_extent
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.errors import UnimplementedError
from hybridflow.compat.v1.evaluation import as_value
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.compat.v1.recording import constant_value
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.core import pytree

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


class _Form:
    """What all states of an array have in common: elements that are written say more of their shape."""

    def __init__(self, dtype: np.dtype[Any], size: Tensor, element: TensorShape) -> None:
        self.dtype, self.size, self.element = dtype, size, element

    def extents(self, count: int | None = None) -> tuple[int | None, ...] | None:
        """The shape of several elements, all of them if nothing else is said."""
        if self.element.ndims is None:
            return None
        known = constant_value(self.size) if count is None else np.asarray(count)
        return (None if known is None else int(known), *self.element.as_list())


@pytree.declare_leaf
class TensorArray:
    """``size`` elements of one dtype and shape, 0 until they are written.  ``write`` returns the array that takes its
    place, also in ``loop_vars`` of ``tf.while_loop``.

    Where ``element_shape`` is not given, the elements that are written say it; a session raises UnimplementedError for
    an array whose elements have a part of their shape that is not known while the graph is built.
    """

    def __init__(
        self,
        dtype: object,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: object = None,
        tensor_array_name: object = None,
        handle: object = None,
        flow: object = None,
        infer_shape: bool = True,
        element_shape: TensorLike | None = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if size is None:
            raise ValueError("Size must be declared for TensorArray: arrays do not grow in graphs of hybridflow.")
        known = constant_value(size)
        if dynamic_size and known is not None and int(known) == 0:
            raise UnimplementedError(
                "TensorArray", "arrays do not grow in graphs: give TensorArray the size that it has in the end."
            )
        form = self._form = _Form(kind_of(dtype), convert_to_tensor(size), TensorShape(element_shape))

        def compute(run: object, values: Sequence[Any]) -> list[Any]:
            if not form.element.is_fully_defined():
                raise UnimplementedError(
                    "TensorArray",
                    f"its elements have the shape {form.element}, as far as it is known while the graph is built. Give "
                    "TensorArray an element_shape, or let placeholders have fixed shapes.",
                )
            extents: tuple[Any, ...] = (as_extent(values[0]), *form.element.as_list())
            return [zeros(extents, dtype=form.dtype)]

        op = default_graph().add(
            "TensorArrayV3", name or "TensorArray", [form.size], [Info(form.extents(), form.dtype)], compute
        )
        self._flow = op.outputs[0]

    def with_flow(self, flow: Tensor) -> TensorArray:
        """The same array with other elements."""
        result = object.__new__(TensorArray)
        result._form, result._flow = self._form, flow
        return result

    def _as_graph_tensor(self) -> Tensor:
        return self._flow

    @property
    def flow(self) -> Tensor:
        return self._flow

    @property
    def dtype(self) -> Any:
        return self._flow.dtype

    @property
    def element_shape(self) -> TensorShape:
        return self._form.element

    def size(self, name: str | None = None) -> Tensor:
        result: Tensor = tf["identity"](self._form.size, name=name)
        return result

    def identity(self) -> TensorArray:
        return self.with_flow(tf["identity"](self._flow))

    def close(self, name: str | None = None) -> Any:
        """Nothing is held open."""
        return tf["no_op"](name)

    def _op(
        self, type: str, name: str | None, inputs: Sequence[Tensor], shape: Any, function: Callable[..., Any]
    ) -> Tensor:
        def compute(run: object, values: Sequence[Any]) -> list[Any]:
            return [function(*[as_value(x) for x in values])]

        info = Info(shape, self._form.dtype)
        return default_graph().add(type, name or type, [self._flow, *inputs], [info], compute).outputs[0]

    def write(self, index: Any, value: ArrayLike, name: str | None = None) -> TensorArray:
        """The array with ``value`` at ``index``.  Raises ValueError for another dtype or shape."""
        element = self._checked(value)
        self._form.element = self._form.element.merge_with(element.shape)
        inputs = [convert_to_tensor(index, np.dtype("int32")), element]
        return self.with_flow(self._op("TensorArrayWriteV3", name, inputs, self._form.extents(), updated))

    def _checked(self, value: ArrayLike) -> Tensor:
        result: Tensor = convert_to_tensor(value, self._form.dtype)
        if result.dtype != self._form.dtype:
            raise ValueError(f"the value is {result.dtype.name}, of an array of {self._form.dtype}.")
        return result

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at ``index``."""
        place = convert_to_tensor(index, np.dtype("int32"))
        shape = None if self._form.element.ndims is None else tuple(self._form.element.as_list())
        return self._op("TensorArrayReadV3", name, [place], shape, getitem)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, along a first axis."""
        return self._op("TensorArrayGatherV3", name or "TensorArrayStack", [], self._form.extents(), lambda x: x)

    def gather(self, indices: ArrayLike, name: str | None = None) -> Tensor:
        """The elements at ``indices``, along a first axis."""
        places = convert_to_tensor(indices, np.dtype("int32"))
        shape = self._form.extents(0)
        shape = None if shape is None or places.shape.ndims != 1 else (places.shape.as_list()[0], *shape[1:])
        return self._op("TensorArrayGatherV3", name, [places], shape, lambda x, k: take(x, k, axis=0))

    def concat(self, name: str | None = None) -> Tensor:
        """The elements one behind the other, along their first axis."""
        result: Tensor = tf["concat"](tf["unstack"](self.stack()), 0, name=name or "TensorArrayConcat")
        return result

    def unstack(self, value: ArrayLike, name: str | None = None) -> TensorArray:
        """The array whose elements are the slices of ``value``."""
        rows = self._checked(value)
        self._form.element = self._form.element.merge_with(rows.shape[1:])
        return self.with_flow(tf["identity"](rows, name=name or "TensorArrayUnstack"))

    def scatter(self, indices: ArrayLike, value: ArrayLike, name: str | None = None) -> TensorArray:
        """The array with the slices of ``value`` at ``indices``."""
        rows = self._checked(value)
        self._form.element = self._form.element.merge_with(rows.shape[1:])
        inputs = [convert_to_tensor(indices, np.dtype("int32")), rows]
        return self.with_flow(self._op("TensorArrayScatterV3", name, inputs, self._form.extents(), updated))


def like(leaves: Sequence[Any], tensors: Sequence[Tensor]) -> list[Any]:
    """The tensors, as arrays where there are arrays among the leaves."""
    return [leaf.with_flow(t) if isinstance(leaf, TensorArray) else t for leaf, t in zip(leaves, tensors, strict=True)]


__all__ = ["TensorArray", "like"]
