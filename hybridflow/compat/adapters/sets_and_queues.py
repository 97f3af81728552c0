"""``tf.sets``, ``tf.queue`` and ``tf.profiler``, outside of functions."""

from __future__ import annotations

import collections
import random as python_random
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import TensorShape, as_dtype, operand
from hybridflow.compat.export import tf_export
from hybridflow.errors import ArgumentError


def _rows(x: Any) -> tuple[list[set[Any]], tuple[int, ...], Any]:
    """The sets that lie along the last axis of a tensor, dense or sparse; its other extents, and its dtype."""
    if isinstance(x, hf.sparse.COO):
        lead = tuple(int(extent) for extent in x.shape[:-1])
        result: list[set[Any]] = [set() for _ in range(int(np.prod(lead)))]
        for index, value in zip(np.asarray(x.indices.numpy()), x.values.numpy()):
            result[int(np.ravel_multi_index(tuple(index[:-1]), lead)) if lead else 0].add(value)
        return result, lead, x.values.dtype
    array = operand(x).numpy()
    return [set(row) for row in array.reshape(-1, array.shape[-1])], array.shape[:-1], array.dtype


def _of_two(a: Any, b: Any, combine: Any) -> Any:
    left, lead, dtype = _rows(a)
    right, other, _ = _rows(b)
    if tuple(lead) != tuple(other):
        raise ArgumentError("sets", f"sets of the shapes {tuple(lead)} and {tuple(other)} do not go together.")
    rows = [sorted(combine(one, two)) for one, two in zip(left, right)]
    width = max((len(row) for row in rows), default=0)
    places = [(*np.unravel_index(k, lead), n) for k, row in enumerate(rows) for n in range(len(row))]
    indices = np.array(places, np.int64).reshape(-1, len(lead) + 1)
    values = np.array([one for row in rows for one in row], dtype)
    return hf.sparse.COO(hf.asarray(indices), hf.asarray(values), (*lead, width))


@tf_export("sets.union")
def union(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """``tf.sets.union``: of the sets along the last axis, sparse."""
    return _of_two(a, b, set.union)


@tf_export("sets.intersection")
def intersection(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """``tf.sets.intersection``: of the sets along the last axis, sparse."""
    return _of_two(a, b, set.intersection)


@tf_export("sets.difference")
def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> Any:
    """``tf.sets.difference``: of the sets along the last axis, sparse."""
    return _of_two(a, b, set.difference) if aminusb else _of_two(b, a, set.difference)


@tf_export("sets.size")
def size(a: Any, validate_indices: bool = True) -> Any:
    """``tf.sets.size``: how many elements each set has."""
    rows, lead, _ = _rows(a)
    return hf.asarray(np.array([len(row) for row in rows], np.int32).reshape(lead))


@tf_export("queue.QueueBase")
class QueueBase:
    """A queue of elements, each a list of tensors, or one tensor."""

    def __init__(self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None) -> None:
        kinds = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
        self.dtypes = [as_dtype(one) for one in kinds]
        extents = shapes if isinstance(shapes, list) else [shapes] * len(self.dtypes)
        self.shapes = [TensorShape(one) for one in extents]
        self.names, self._capacity = list(names or []), int(capacity)
        self._elements: collections.deque[Any] = collections.deque()
        self._closed = False

    def _element(self, values: Any) -> list[Any]:
        if self.names:
            values = [values[name] for name in self.names]
        several = values if isinstance(values, (list, tuple)) else [values]
        if len(several) != len(self.dtypes):
            raise ArgumentError("queue", f"an element has {len(several)} parts. Expected {len(self.dtypes)}.")
        return [hf.astype(operand(one), kind.dtype) for one, kind in zip(several, self.dtypes)]

    def enqueue(self, vals: Any, name: str | None = None) -> None:
        """Put an element at the end.  Raises ArgumentError where the queue is full, or closed."""
        if self._closed or len(self._elements) >= self._capacity:
            raise ArgumentError("queue", "it is closed." if self._closed else f"it is full: it has {self._capacity}.")
        self._elements.append(self._element(vals))

    def enqueue_many(self, vals: Any, name: str | None = None) -> None:
        """Put the rows of tensors at the end."""
        several = [vals[name] for name in self.names] if self.names else vals
        for row in zip(*[list(operand(one)) for one in several]):
            self.enqueue(dict(zip(self.names, row)) if self.names else list(row))

    def _take(self) -> list[Any]:
        if not self._elements:
            raise StopIteration("the queue is closed and empty" if self._closed else "the queue is empty")
        result: list[Any] = self._elements.popleft()
        return result

    def _given(self, parts: list[Any]) -> Any:
        if self.names:
            return dict(zip(self.names, parts))
        return parts[0] if len(parts) == 1 else parts

    def dequeue(self, name: str | None = None) -> Any:
        """The first element.  Raises OutOfRangeError where there is none."""
        return self._given(self._take())

    def dequeue_many(self, n: int, name: str | None = None) -> Any:
        """The first ``n`` elements, with a first axis for them."""
        if len(self._elements) < int(n):
            raise StopIteration(f"the queue has {len(self._elements)} elements, {n} are wanted")
        return self.dequeue_up_to(n)

    def dequeue_up_to(self, n: int, name: str | None = None) -> Any:
        """As many of the first ``n`` elements as there are."""
        rows = [self._take() for _ in range(min(int(n), len(self._elements)))]
        return self._given([hf.stack(list(part)) for part in zip(*rows)])

    def size(self, name: str | None = None) -> Any:
        """How many elements there are."""
        return hf.asarray(len(self._elements), "int32")

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> None:
        """Let nothing more be put into it."""
        self._closed = True

    def is_closed(self, name: str | None = None) -> Any:
        """Whether it was closed."""
        return hf.asarray(self._closed)


@tf_export("queue.FIFOQueue")
class FIFOQueue(QueueBase):
    """``tf.queue.FIFOQueue``: what came first leaves first."""

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: Any = None,
        name: str = "fifo_queue",
    ) -> None:  # fmt: skip
        super().__init__(capacity, dtypes, shapes, names)
        self.name = name


@tf_export("queue.PaddingFIFOQueue")
class PaddingFIFOQueue(FIFOQueue):
    """``tf.queue.PaddingFIFOQueue``: elements that leave together are filled up with zeros to one shape."""

    def dequeue_up_to(self, n: int, name: str | None = None) -> Any:
        rows = [self._take() for _ in range(min(int(n), len(self._elements)))]
        return self._given([_padded([x.numpy() for x in part]) for part in zip(*rows)])


def _padded(arrays: list[np.ndarray]) -> Any:
    most = np.max([one.shape for one in arrays], axis=0) if arrays[0].ndim else ()
    result = np.zeros((len(arrays), *most), arrays[0].dtype)
    for k, one in enumerate(arrays):
        place: Any = (k, *map(slice, one.shape))
        result[place] = one
    return hf.asarray(result)


@tf_export("queue.RandomShuffleQueue")
class RandomShuffleQueue(QueueBase):
    """``tf.queue.RandomShuffleQueue``: elements leave by chance."""

    def __init__(
        self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None, names: Any = None,
        seed: int | None = None, shared_name: Any = None, name: str = "random_shuffle_queue",
    ) -> None:  # fmt: skip
        super().__init__(capacity, dtypes, shapes, names)
        self.name, self._draw = name, python_random.Random(seed)

    def _take(self) -> list[Any]:
        if self._elements:
            self._elements.rotate(-self._draw.randrange(len(self._elements)))
        return super()._take()


@tf_export("queue.PriorityQueue")
class PriorityQueue(QueueBase):
    """``tf.queue.PriorityQueue``: the first part of an element is its priority; the least leaves first."""

    def __init__(
        self, capacity: int, types: Any, shapes: Any, names: Any = None, shared_name: Any = None,
        name: str = "priority_queue",
    ) -> None:  # fmt: skip
        kinds = types if isinstance(types, (list, tuple)) else [types]
        super().__init__(capacity, ["int64", *kinds], [(), *(shapes or [None] * len(kinds))], names)
        self.name = name

    def _take(self) -> list[Any]:
        self._elements = collections.deque(sorted(self._elements, key=lambda element: int(element[0])))
        return super()._take()


# ---- the profiler, which is ``f.profile`` here


@tf_export("profiler.experimental.start")
def start(logdir: str, options: Any = None) -> None:
    """``tf.profiler.experimental.start``: nothing is written; see ``f.profile(*args)``."""


@tf_export("profiler.experimental.stop")
def stop(save: bool = True) -> None:
    """``tf.profiler.experimental.stop``."""


@tf_export("profiler.experimental.ProfilerOptions")
class ProfilerOptions:
    """``tf.profiler.experimental.ProfilerOptions``."""

    def __init__(self, **options: Any) -> None:
        self.options = options


@tf_export("profiler.experimental.Trace", "profiler.experimental.Profile")
class Trace:
    """A block that is named in a profile of TensorFlow's."""

    def __init__(self, name: Any, *args: Any, **options: Any) -> None:
        self.name = name

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *error: object) -> None:
        return None
