"""Datasets that put elements together, or take them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from hybridflow import ragged
from hybridflow.core import pytree
from hybridflow.core.string_tensor import StringTensor, as_strings
from hybridflow.core.tensor import Tensor
from hybridflow.data import elements
from hybridflow.data.pipeline import INFINITE, Elements, Node, OneSource, Passing, PipelineIterator, Positions, Rows
from hybridflow.data.strings import array_of, is_text, joined, leaf_of, nothing_of, with_shape
from hybridflow.data.tensor_slices import holds_rows, rows_of, spec_of_row
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.jit.tensor_spec import TensorSpec


class Batch(Node):
    """Elements stacked, ``size`` at a time; the last batch has fewer, or is left out."""

    def __init__(self, source: Node, size: int, drop_remainder: bool) -> None:
        self.source, self.size, self.drop_remainder = source, size, drop_remainder

    def runner(self) -> PipelineIterator:
        if self.source.rows is not None:
            return RowBatchRun(self.source.rows, self.size, self.drop_remainder)
        return BatchRun(self.source, self.size, self.drop_remainder, elements.batched)

    def spec(self) -> Any:
        whole = self.drop_remainder or self.source.cardinality() == INFINITE
        extent = self.size if whole else None
        rows = self.source.rows
        told = None if rows is None else rows.table.span_spec(extent)
        if told is not None:
            return told
        return elements.mapped_spec(lambda s: with_shape(s, (extent, *s.shape)), self.source.spec())

    def cardinality(self) -> int:
        return batches(self.source.cardinality(), self.size, self.drop_remainder)

    def rest(self) -> int:
        length = self.source.cardinality()
        return 0 if length < self.size or self.drop_remainder else length % self.size


def batches(length: int, size: int, drop_remainder: bool) -> int:
    """How many batches there are of so many elements."""
    if length < 0:
        return length
    return length // size if drop_remainder else -(-length // size)


class BatchRun(Passing):
    """``together`` makes an element of a list of them."""

    def __init__(self, source: Node, size: int, drop_remainder: bool, together: Callable[[list[Any]], Any]) -> None:
        super().__init__(source)
        self.size, self.least, self.together = size, size if drop_remainder else 1, together

    def run(self) -> Elements:
        take = self.source.next_batch()
        while len(some := take(self.size)) >= self.least:
            yield self.together(some)


class RowBatchRun(OneSource):
    """Batches of rows: a span of the table where they come in its order."""

    is_nonblocking = True

    def __init__(self, rows: Rows, size: int, drop_remainder: bool) -> None:
        super().__init__(rows.numbers)
        self.table, self.size, self.least = rows.table, size, size if drop_remainder else 1
        self.in_order = isinstance(rows.numbers, Positions)

    def run(self) -> Elements:
        return self._spans() if self.in_order else self._picks()

    def _spans(self) -> Elements:
        numbers: Any = self.source
        while (stop := min(numbers.position + self.size, numbers.length)) - numbers.position >= self.least:
            start, numbers.position = numbers.position, stop
            yield self.table.span(start, stop)

    def _picks(self) -> Elements:
        take = self.source.next_indices()
        while len(some := take(self.size)) >= self.least:
            yield self.table.pick(some)


class PaddedBatch(Node):
    """Elements of different extents, padded to those of the longest of a batch or to what was asked for."""

    def __init__(self, source: Node, size: int, shapes: object, values: Any, drop_remainder: bool) -> None:
        self.source, self.size, self.shapes, self.values = source, size, shapes, values
        self.drop_remainder = drop_remainder

    def runner(self) -> PipelineIterator:
        return BatchRun(self.source, self.size, self.drop_remainder, Padding(self.shapes, self.values))

    def spec(self) -> Any:
        leaves, structure = pytree.flatten(self.source.spec())
        shapes = per_leaf(self.shapes, structure, is_shape)
        extent = self.size if self.drop_remainder else None
        specs = []
        for spec, shape in zip(leaves, shapes):
            inner = (None,) * len(spec.shape) if shape is None else [None if e in (None, -1) else e for e in shape]
            specs.append(with_shape(spec, (extent, *inner)))
        return pytree.unflatten(structure, specs)

    def cardinality(self) -> int:
        return batches(self.source.cardinality(), self.size, self.drop_remainder)


def is_shape(value: object) -> bool:
    """Whether a value is the shape of one leaf: a sequence of ints and Nones."""
    return isinstance(value, (list, tuple)) and all(e is None or isinstance(e, (int, np.integer)) for e in value)


def per_leaf(value: object, structure: pytree.Structure, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """What is given for each leaf of a structure; None stands for None everywhere.  Raises ArgumentError."""
    if value is None:
        return [None] * structure.leaves
    if structure.kind is None:
        if not is_leaf(value):
            raise ArgumentError("Dataset.padded_batch", f"{value!r} does not fit elements that are tensors.")
        return [value]
    if structure.kind in pytree.MAPPINGS:
        held = [value[key] for key in structure.labels] if isinstance(value, dict) else []
    else:
        held = list(value) if isinstance(value, (list, tuple)) else []
    if len(held) != len(structure.children):
        raise ArgumentError("Dataset.padded_batch", f"{value!r} does not fit elements of structure {structure!r}.")
    return [leaf for part, child in zip(held, structure.children) for leaf in per_leaf(part, child, is_leaf)]


class Padding:
    """Makes a batch of elements of different extents.  ``shapes`` and ``values`` are given for each leaf, or None."""

    def __init__(self, shapes: object, values: Any) -> None:
        self.shapes, self.values = shapes, values

    def __call__(self, some: list[Any]) -> Any:
        structure = pytree.flatten(some[0])[1]
        shapes = iter(per_leaf(self.shapes, structure, is_shape))
        scalar = self.values is None or (np.ndim(self.values) == 0 and not isinstance(self.values, dict))
        values = iter([self.values] * structure.leaves if scalar else per_leaf(self.values, structure, is_number))
        # ``columns`` goes through dicts in the order of sorted keys, as structures do
        return elements.columns(some, lambda leaves: padded(leaves, next(shapes), next(values)), "Dataset.padded_batch")


def is_number(value: Any) -> bool:
    return value is None or np.ndim(value) == 0


def padded(leaves: list[Any], shape: Sequence[int | None] | None, value: object) -> Any:
    """Tensors of one rank in a batch, filled up with ``value``, 0 for None.

    Raises ShapeError for a shape that is too small.
    """
    stage = "Dataset.padded_batch"
    is_of_texts = is_text(leaves[0])
    arrays = [array_of(leaf) for leaf in leaves] if is_of_texts else elements.arrays_of(leaves, stage)
    rank = arrays[0].ndim
    if {array.ndim for array in arrays} != {rank} or (shape is not None and len(shape) != rank):
        raise ShapeError(stage, f"elements of ranks {[a.ndim for a in arrays][:5]} do not fit the shape {shape}.")
    longest = [max(extents) for extents in zip(*[array.shape for array in arrays])]
    wanted = [n if s in (None, -1) else s for n, s in zip(longest, shape or [None] * rank)]
    if any(n > w for n, w in zip(longest, wanted)):
        raise ShapeError(stage, f"an element has the extents {tuple(longest)}, more than {tuple(wanted)}.")
    filling: object = _nothing(leaves[0]) if value is None else array_of(value) if is_text(value) else np.asarray(value)
    if type(leaves[0]) is StringTensor and value is not None:
        filling = as_strings(value, stage).texts
    out = np.full((len(arrays), *wanted), filling, arrays[0].dtype)
    for number, array in enumerate(arrays):
        place: tuple[Any, ...] = (number, *[slice(extent) for extent in array.shape], ...)
        out[place] = array
    return leaf_of(out)


def _nothing(leaf: object) -> Any:
    """What leaves are filled up with where nobody says: 0, or the empty text."""
    return nothing_of(leaf) if is_text(leaf) else 0


class Unbatch(Node):
    """The rows of each element."""

    def __init__(self, source: Node) -> None:
        self.source = source

    def runner(self) -> PipelineIterator:
        return UnbatchRun(self.source)

    def spec(self) -> Any:
        return spec_of_row(self.source.spec())


class UnbatchRun(OneSource):
    state_fields = ("element", "position")

    def __init__(self, source: Node) -> None:
        super().__init__(source)
        self.element: Any = None
        self.position = 0  # of the next row of the element

    def run(self) -> Elements:
        if self.element is not None:
            yield from self._rows()
        for element in self.source.run():
            self.element, self.position = element, 0
            yield from self._rows()

    def _rows(self) -> Elements:
        if holds_rows(self.element):
            table = rows_of(self.element)
            for position, row in enumerate(map(table.row(), range(self.position, table.length)), self.position):
                self.position = position + 1
                yield row
            self.element = None
            return
        leaves, structure = pytree.flatten(self.element)
        arrays = rows_of_batch(leaves)
        for position in range(self.position, arrays[0].shape[0]):
            self.position = position + 1
            yield pytree.unflatten(structure, [leaf_of(array[position, ...]) for array in arrays])
        self.element = None


def rows_of_batch(leaves: list[Any]) -> list[np.ndarray]:
    """The arrays of an element that is a batch.  Raises ShapeError where their numbers of rows differ."""
    arrays = [array_of(leaf) for leaf in leaves]
    if not all(array.ndim for array in arrays) or len({array.shape[0] for array in arrays}) != 1:
        raise ShapeError("Dataset.unbatch", f"tensors of shapes {[a.shape for a in arrays]} are no batch.")
    return arrays


class Window(Node):
    """Datasets of ``size`` elements each; ``dataset`` makes one of a node."""

    def __init__(
        self, source: Node, size: int, shift: int, stride: int, drop_remainder: bool, dataset: Callable[[Node], Any]
    ) -> None:
        self.source, self.size, self.shift, self.stride = source, size, shift, stride
        self.drop_remainder, self.dataset = drop_remainder, dataset

    def runner(self) -> PipelineIterator:
        return WindowRun(self)

    def spec(self) -> Any:
        return elements.mapped_spec(lambda spec: self.dataset(Listed([], spec)), self.source.spec())

    def cardinality(self) -> int:
        length = self.source.cardinality()
        if length < 0:
            return length
        if not self.drop_remainder:
            return -(-length // self.shift)
        return max(0, (length - (self.size - 1) * self.stride - 1) // self.shift + 1)


class WindowRun(OneSource):
    state_fields = ("held", "drop")

    def __init__(self, node: Window) -> None:
        super().__init__(node.source)
        self.node = node
        self.held: list[Any] = []
        self.drop = 0  # elements that lie between two windows

    def run(self) -> Elements:
        node, windows = self.node, self.source.run()
        reach = (node.size - 1) * node.stride + 1
        while True:
            for _ in islice(windows, self.drop):
                pass
            self.drop = 0
            self.held.extend(islice(windows, reach - len(self.held)))
            chosen = self.held[:: node.stride]
            if not self.held or (node.drop_remainder and len(chosen) < node.size):
                return
            self.drop = max(0, node.shift - len(self.held))
            del self.held[: node.shift]
            yield self._window(chosen)

    def _window(self, chosen: list[Any]) -> Any:
        if type(chosen[0]) is Tensor:
            return self.node.dataset(Listed(chosen))
        flat = [pytree.flatten(element) for element in chosen]
        parts = [self.node.dataset(Listed(list(column))) for column in zip(*[leaves for leaves, _ in flat])]
        return pytree.unflatten(flat[0][1], parts)


class Listed(Node):
    """Elements of a list, which may be none of a known spec."""

    def __init__(self, held: list[Any], known: object = None) -> None:
        self.held, self.known = held, known

    def runner(self) -> PipelineIterator:
        return ListedRun(self.held)

    def spec(self) -> Any:
        if not self.held:
            return self.known
        return elements.common([elements.spec_of(element) for element in self.held], "Dataset.window")

    def cardinality(self) -> int:
        return len(self.held)


class ListedRun(PipelineIterator):
    state_fields = ("position",)

    def __init__(self, held: list[Any]) -> None:
        self.held, self.position = held, 0

    def run(self) -> Elements:
        while self.position < len(self.held):
            self.position += 1
            yield elements.fresh(self.held[self.position - 1])


class Buckets(Node):
    """Batches of elements of like length: one bucket below each boundary, and one for all longer elements."""

    def __init__(
        self,
        source: Node,
        length_of: Callable[[Any], Any],
        boundaries: list[int],
        sizes: list[int],
        together: Callable[[list[Any], int], Any],
        drop_remainder: bool,
    ) -> None:
        self.source, self.length_of, self.boundaries, self.sizes = source, length_of, boundaries, sizes
        self.together, self.drop_remainder = together, drop_remainder

    def runner(self) -> PipelineIterator:
        return BucketsRun(self)

    def spec(self) -> Any:
        return elements.mapped_spec(
            lambda spec: with_shape(spec, (None, *[None] * len(spec.shape))), self.source.spec()
        )


class BucketsRun(OneSource):
    state_fields = ("held",)

    def __init__(self, node: Buckets) -> None:
        super().__init__(node.source)
        self.node = node
        self.held: list[list[Any]] = [[] for _ in node.sizes]

    def run(self) -> Elements:
        node = self.node
        for element in self.source.run():
            bucket = int(np.searchsorted(node.boundaries, int(node.length_of(element)), "right"))
            self.held[bucket].append(element)
            if len(self.held[bucket]) == node.sizes[bucket]:
                yield self._take_bucket(bucket)
        for bucket, some in enumerate(self.held):
            if some and not node.drop_remainder:
                yield self._take_bucket(bucket)

    def _take_bucket(self, bucket: int) -> Any:
        some, self.held[bucket] = self.held[bucket], []
        return self.node.together(some, bucket)


class BucketBatch:
    """Makes a batch of the elements of a bucket: padded to the longest, to the boundary, or not at all."""

    def __init__(self, boundaries: list[int], shapes: object, values: Any, to_boundary: bool, pad: bool) -> None:
        self.boundaries, self.shapes, self.values, self.to_boundary, self.pad = (
            boundaries,
            shapes,
            values,
            to_boundary,
            pad,
        )

    def __call__(self, some: list[Any], bucket: int) -> Any:
        if not self.pad:
            return elements.batched(some, "Dataset.bucket_by_sequence_length")
        shapes = self.shapes
        if self.to_boundary:
            if bucket == len(self.boundaries):
                raise ArgumentError(
                    "Dataset.bucket_by_sequence_length",
                    "an element is as long as the last boundary or longer, so there is none to pad it to.",
                )
            leaves, structure = pytree.flatten(some[0])
            shapes_of = per_leaf(shapes, structure, is_shape)
            limit = self.boundaries[bucket] - 1
            shapes = [self._bounded(leaf.shape, shape, limit) for leaf, shape in zip(leaves, shapes_of)]
            shapes = pytree.unflatten(structure, shapes)
        return Padding(shapes, self.values)(some)

    @staticmethod
    def _bounded(shape: tuple[int, ...], shape_given: Any, limit: int) -> tuple[Any, ...]:
        wanted = shape_given if shape_given is not None else [None] * len(shape)
        return tuple([limit if extent in (None, -1) else extent for extent in wanted])


class RaggedBatch(Node):
    """Elements whose first extents differ, put into ragged tensors ``size`` at a time."""

    def __init__(self, source: Node, size: int, drop_remainder: bool) -> None:
        self.source, self.size, self.drop_remainder = source, size, drop_remainder

    def runner(self) -> PipelineIterator:
        return BatchRun(self.source, self.size, self.drop_remainder, ragged_rows)

    def spec(self) -> Any:
        whole = self.drop_remainder or self.source.cardinality() == INFINITE

        def of_leaf(spec: Any) -> Any:
            if not spec.shape:
                return with_shape(spec, (self.size if whole else None,))
            splits = TensorSpec((self.size + 1 if whole else None,), np.int64)
            return ragged.made(with_shape(spec, (None, *spec.shape[1:])), splits)

        return elements.mapped_spec(of_leaf, self.source.spec())

    def cardinality(self) -> int:
        return batches(self.source.cardinality(), self.size, self.drop_remainder)


def ragged_rows(some: list[Any]) -> Any:
    """Elements put together, each the row of a ragged tensor; numbers stacked."""
    stage = "Dataset.ragged_batch"

    def together(leaves: list[Any]) -> Any:
        if is_text(leaves[0]) and type(leaves[0]) is not StringTensor:
            raise ArgumentError(stage, "there are no ragged tensors of texts. Use padded_batch.")
        is_of_texts = type(leaves[0]) is StringTensor
        arrays = [array_of(leaf) for leaf in leaves] if is_of_texts else elements.arrays_of(leaves, stage)
        if not arrays[0].ndim:
            return elements.stacked(leaves, stage)
        if len({array.shape[1:] for array in arrays}) > 1:
            shapes = [array.shape for array in arrays][:5]
            raise ShapeError(stage, f"elements have the shapes {shapes}. Expected equal ones but for the first axis.")
        splits = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
        return ragged.made(leaf_of(joined(arrays)), leaf_of(splits))

    return elements.columns(some, together, stage)
