"""The rows of sparse tensors as elements of datasets: sparse tensors of one axis less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.data.strings import array_of, leaf_of, spec_of_array
from hybridflow.errors import ShapeError
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.sparse.formats import COO, made


class SparseColumn:
    """The rows of a sparse tensor: sparse tensors of one axis less."""

    def __init__(self, value: COO) -> None:
        if value.ndim < 2:
            raise ShapeError("Dataset.from_tensor_slices", f"{value!r} has one axis, and rows need two.")
        at, values = value.indices.numpy(), array_of(value.values)
        order = np.argsort(at[:, 0], kind="stable")
        self.at, self.values = at[order], values[order]
        self.shape, self.length = value.shape, int(value.shape[0])
        self.starts = np.searchsorted(self.at[:, 0], np.arange(self.length + 1))

    def row(self, number: int) -> Any:
        first, last = self.starts[number : number + 2]
        return COO(self.at[first:last, 1:], leaf_of(self.values[first:last]), self.shape[1:])

    def pick(self, numbers: np.ndarray) -> Any:
        counts = (self.starts[1:] - self.starts[:-1])[numbers]
        ends = np.cumsum(counts)
        places = np.arange(counts.sum()) + np.repeat(self.starts[numbers] - (ends - counts), counts)
        rows = np.repeat(np.arange(len(numbers)), counts)
        at = np.concatenate([rows[:, None], self.at[places, 1:]], axis=1)
        return COO(at, leaf_of(self.values[places]), (len(numbers), *self.shape[1:]))

    def spec(self) -> Any:
        return sparse_spec(self.shape[1:], spec_of_array((None,), self.values))

    def spec_of_several(self, extent: int | None) -> Any:
        return sparse_spec((extent, *self.shape[1:]), spec_of_array((None,), self.values))


def sparse_spec(shape: Sequence[int | None], values: object) -> Any:
    """The spec of a sparse tensor of that shape with such values."""
    coords, outline = TensorSpec((len(shape), None), np.int64), TensorSpec((*shape, 0), np.int8)
    return made(COO, coords=coords, values=values, outline=outline)
