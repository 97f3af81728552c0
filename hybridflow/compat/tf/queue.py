"""TensorFlow's ``tf.queue``, outside of functions."""

from __future__ import annotations

import collections
import random as python_random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import TensorShape, as_dtype, operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.core.tensor import Operators
from hybridflow.errors import ArgumentError, DTypeError


def _of_dtype(value: TensorLike, kind: Any) -> Any:
    """A part of an element.  Raises DTypeError for a tensor of another dtype, and for fractions among integers."""
    x = operand(value)
    if x.dtype == kind.dtype:
        return x
    if isinstance(value, Operators) or (is_inexact(x.dtype) and not is_inexact(kind.dtype)):
        raise DTypeError("queue", f"a part of the element is {x.type}. Expected {kind.name}.")
    return hf.astype(x, kind.dtype)


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
        self._changed = threading.Condition()
        self._least = 0  # elements that stay until the queue is closed
        self._closed = self._cancelled = False

    def _values(self, element: Any) -> list[Any]:
        """The parts of an element, or of several along a first axis.  Raises ArgumentError or DTypeError."""
        if self.names:
            element = [element[name] for name in self.names]
        several = element if isinstance(element, (list, tuple)) else [element]
        if len(several) != len(self.dtypes):
            raise ArgumentError("queue", f"an element has {len(several)} parts. Expected {len(self.dtypes)}.")
        return [_of_dtype(one, kind) for one, kind in zip(several, self.dtypes)]

    def _wait_until(self, is_ready: Callable[[], bool], state: str) -> None:
        """Wait for other threads, with the lock held.  Raises ArgumentError where there are none, which would wait for
        ever."""
        while not is_ready():
            if threading.active_count() == 1:
                raise ArgumentError("queue", f"it is {state}, and no other thread is there that could change it.")
            self._changed.wait(0.5)  # threads may end without a word

    def enqueue(self, vals: Sequence[Any], name: str | None = None) -> None:
        """Put an element at the end, when there is room.  Raises ArgumentError where the queue is closed."""
        self._put(self._values(vals))

    def _put(self, element: list[Any]) -> None:
        with self._changed:
            if self._closed:
                raise ArgumentError("queue", "it is closed.")
            self._wait_until(
                lambda: self._cancelled or len(self._elements) < self._capacity, f"full: it has {self._capacity}"
            )
            if self._cancelled:
                raise ArgumentError("queue", "it was closed, and what waited was cancelled.")
            self._elements.append(element)
            self._changed.notify_all()

    def enqueue_many(self, vals: Sequence[Any], name: str | None = None) -> None:
        """Put the rows of tensors at the end."""
        for row in zip(*map(list, self._values(vals))):
            self._put(list(row))

    def _take(self) -> list[Any]:
        result: list[Any] = self._elements.popleft()
        return result

    def _dequeue_rows(self, n: int, at_least: int) -> list[list[Any]]:
        """The first ``n`` elements, when they are there; of a closed queue what is left.  Raises OutOfRangeError where
        a closed queue has fewer than ``at_least``."""
        with self._changed:
            self._wait_until(
                lambda: self._closed or len(self._elements) >= n + self._least,
                f"open and has {len(self._elements)} elements, of which {n} are wanted and {self._least} stay",
            )
            if len(self._elements) < at_least:
                raise StopIteration(f"the queue is closed and has {len(self._elements)} elements, {n} are wanted")
            rows = [self._take() for _ in range(min(n, len(self._elements)))]
            self._changed.notify_all()
        return rows

    def _element_of(self, parts: list[Any]) -> Any:
        if self.names:
            return dict(zip(self.names, parts))
        return parts[0] if len(parts) == 1 else parts

    def _batch(self, part: tuple[Any, ...]) -> Any:
        """One part of several elements, with a first axis for them."""
        return hf.stack(list(part))

    def dequeue(self, name: str | None = None) -> Any:
        """The first element, when it is there.  Raises OutOfRangeError where the queue is closed and empty."""
        return self._element_of(self._dequeue_rows(1, 1)[0])

    def dequeue_many(self, n: int, name: str | None = None) -> Any:
        """The first ``n`` elements, with a first axis for them, when they are there.  Raises OutOfRangeError where the
        queue is closed and has fewer."""
        return self._element_of(list(map(self._batch, zip(*self._dequeue_rows(int(n), int(n))))))

    def dequeue_up_to(self, n: int, name: str | None = None) -> Any:
        """The same; of a closed queue as many of them as there are.  Raises OutOfRangeError where there are none."""
        return self._element_of(list(map(self._batch, zip(*self._dequeue_rows(int(n), 1)))))

    def size(self, name: str | None = None) -> Any:
        """How many elements there are."""
        return hf.asarray(len(self._elements), "int32")

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> None:
        """Let nothing more be put into it, also by what waits to do so if ``cancel_pending_enqueues``."""
        with self._changed:
            self._closed, self._cancelled = True, self._cancelled or bool(cancel_pending_enqueues)
            self._changed.notify_all()

    def is_closed(self, name: str | None = None) -> Any:
        """Whether it was closed."""
        return hf.asarray(self._closed)


@tf_export("queue.FIFOQueue")
class FIFOQueue(QueueBase):
    """``tf.queue.FIFOQueue``: what came first leaves first."""

    def __init__(
        self, capacity: int, dtypes: object, shapes: object = None, names: object = None, shared_name: object = None,
        name: str = "fifo_queue",
    ) -> None:  # fmt: skip
        super().__init__(capacity, dtypes, shapes, names)
        self.name = name


@tf_export("queue.PaddingFIFOQueue")
class PaddingFIFOQueue(FIFOQueue):
    """``tf.queue.PaddingFIFOQueue``: elements that leave together are filled up with zeros to one shape."""

    def _batch(self, part: tuple[Any, ...]) -> Any:
        return _padded([x.numpy() for x in part])


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
        self, capacity: int, min_after_dequeue: int, dtypes: object, shapes: object = None, names: object = None,
        seed: int | None = None, shared_name: object = None, name: str = "random_shuffle_queue",
    ) -> None:  # fmt: skip
        super().__init__(capacity, dtypes, shapes, names)
        self.name, self._draw, self._least = name, python_random.Random(seed), int(min_after_dequeue)

    def _take(self) -> list[Any]:
        self._elements.rotate(-self._draw.randrange(len(self._elements)))
        return super()._take()


@tf_export("queue.PriorityQueue")
class PriorityQueue(QueueBase):
    """``tf.queue.PriorityQueue``: the first part of an element is its priority; the least leaves first."""

    def __init__(
        self, capacity: int, types: object, shapes: Any, names: Any = None, shared_name: object = None,
        name: str = "priority_queue",
    ) -> None:  # fmt: skip
        kinds = types if isinstance(types, (list, tuple)) else [types]
        super().__init__(capacity, ["int64", *kinds], [(), *(shapes or [None] * len(kinds))], names)
        self.name = name

    def _take(self) -> list[Any]:
        self._elements = collections.deque(sorted(self._elements, key=lambda element: int(element[0])))
        return super()._take()
