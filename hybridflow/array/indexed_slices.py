"""Tensors given as some of their rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import int32, int64, is_integer
from hybridflow.compiler.ops.sparse_grad import GatheredRows, densify
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import DTypeError, ShapeError, entered


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class IndexedSlices(Operators):
    """Sparse gradient: a tensor of ``dense_shape`` that is 0 except for the rows ``values`` at ``indices``.

    Rows with equal indices add up, in their order. Optimizers accept it as a gradient, and update only these rows where
    the others would not change. Other functions convert it to a dense tensor, each time anew.

    ``tape.gradient`` always returns tensors. The gradient of a look-up is a lazy tensor that keeps its rows until the
    dense value is read. So code need not distinguish two kinds of gradients.

    An index out of range raises IndexRangeError when the dense tensor is made.

    Args:
        values: a tensor ``[n, ...]`` of rows.
        indices: an integer tensor ``[n]``: where each row lies along the first axis.
        dense_shape: the shape of the dense tensor. May be None where it is not needed, as in ``v.scatter_add``.

    Raises:
        ShapeError: if the parts do not match.
        DTypeError: for indices that are not integers.

    >>> rows = hf.IndexedSlices(values=[[1.0, 2.0], [3.0, 4.0]], indices=[2, 2], dense_shape=(3, 2))
    >>> hf.asarray(rows).tolist()
    [[0.0, 0.0], [0.0, 0.0], [4.0, 6.0]]
    """

    values: Tensor
    indices: Tensor
    dense_shape: tuple[int, ...] | None = None

    @entered
    def __post_init__(self) -> None:
        stage = "IndexedSlices"
        values, indices = as_tensor(self.values, stage), as_tensor(self.indices, stage)
        shape = None if self.dense_shape is None else tuple([int(extent) for extent in self.dense_shape])
        if not is_integer(indices.dtype):
            raise DTypeError(stage, f"indices are {indices.type}; give integers.")
        inner = values.shape[indices.ndim :] if shape is None else shape[1:]
        if shape == () or values.shape != (*indices.shape, *inner):
            raise ShapeError(
                stage,
                f"values are {values.type}, indices {indices.type}, and dense_shape is {shape}. Expected values of "
                f"shape {[*indices.shape, *inner]}: for each index a row.",
            )
        if indices.dtype != int32:
            indices = cast(indices, int64)
        for name, value in (("values", values), ("indices", indices), ("dense_shape", shape)):
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.dense_shape is None:
            raise ShapeError("IndexedSlices", "the shape of the whole is not known. Give dense_shape.")
        return self.dense_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def device(self) -> str:
        return self.values.device

    def _rows(self) -> GatheredRows:
        return GatheredRows(self.indices, self.values)

    def _whole(self) -> Tensor:
        result: Tensor = densify(builder, self.type, self._rows())
        return result

    def numpy(self) -> np.ndarray:
        """The whole tensor as a NumPy array.

        Returns:
            An array of the dense shape, in which rows of equal indices are added up.
        """
        with suspended():
            return self._whole().numpy()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype) if copy else np.asarray(self.numpy(), dtype)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        whole = "" if self.dense_shape is None else f"{self.type} "
        return f"<IndexedSlices {whole}values={self.values!r} indices={self.indices!r}>"
