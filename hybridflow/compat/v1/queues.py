"""Queues, and the threads that fill them: elements wait on the host, before and after the compiled programs."""

from __future__ import annotations

import bisect
import contextlib
import functools
import glob
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compat.v1.constants import convert_to_tensor, on_host
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.errors import CancelledError, OutOfRangeError
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.graph_stack import default_session
from hybridflow.compat.v1.initializers import constant_initializer
from hybridflow.compat.v1.nodes import Info, Operation, Tensor
from hybridflow.compat.v1.recording import is_symbolic
from hybridflow.compat.v1.session import Session
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.compat.v1.variables import LOCAL, Variable

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


RUNNERS = "queue_runners"


class _QueueElements:
    """The elements of a queue in one session."""

    def __init__(self, name: str, capacity: int, least: int, pick: Callable[[int], int]) -> None:
        self._name, self._capacity, self._least, self._pick = name, capacity, least, pick
        self._elements: list[tuple[Any, ...]] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, element: tuple[Any, ...]) -> None:
        with self._changed:
            while len(self._elements) >= self._capacity > 0 and not self._closed:
                self._changed.wait()
            if self._closed:
                raise CancelledError("queue", f"{self._name} is closed.")
            self._add(element)
            self._changed.notify_all()

    def _add(self, element: tuple[Any, ...]) -> None:
        self._elements.append(element)

    def take(self, count: int, all_or_nothing: bool = True) -> list[tuple[Any, ...]]:
        with self._changed:
            while len(self._elements) < count + self._least and not self._closed:
                self._changed.wait()
            if len(self._elements) < count and (all_or_nothing or not self._elements):
                raise OutOfRangeError(
                    "queue",
                    f"{self._name} is closed and has insufficient elements (requested {count}, current size "
                    f"{len(self._elements)}).",
                )
            result = [
                self._elements.pop(self._pick(len(self._elements))) for _ in range(min(count, len(self._elements)))
            ]
            self._changed.notify_all()
            return result

    def size(self) -> int:
        return len(self._elements)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class QueueBase:
    """A queue whose elements are tuples of arrays, taken from the front."""

    _kind = _QueueElements

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: object = None,
        name: str = "fifo_queue",
        least: int = 0,
    ) -> None:
        self.dtypes = [kind_of(d) for d in (dtypes if isinstance(dtypes, (list, tuple)) else [dtypes])]
        shapes_given = [None] * len(self.dtypes) if shapes is None else shapes
        if (
            shapes is not None
            and len(self.dtypes) == 1
            and not (shapes and isinstance(shapes[0], (list, tuple, TensorShape)))
        ):
            shapes_given = [shapes]
        self.shapes = [TensorShape(s) for s in shapes_given]
        if names is not None and len(names) != len(self.dtypes):
            raise ValueError(f"there are {len(names)} names for elements of {len(self.dtypes)} parts.")
        self.names = None if names is None else list(names)
        self.name = default_graph().unique_name(name)
        self._capacity, self._least = capacity, least

    def _picker(self) -> Callable[[int], int]:
        return lambda count: 0

    def _state_in(self, state: Any) -> _QueueElements:
        result: _QueueElements = state.resource(
            self, lambda: self._kind(self.name, self._capacity, self._least, self._picker())
        )
        return result

    def _op(
        self, kind: str, name: str | None, inputs: Sequence[Tensor], infos: Sequence[Info], compute: Callable[..., Any]
    ) -> Operation:
        op = default_graph().add(f"Queue{kind}", name or f"{self.name}_{kind}", inputs, infos, compute)
        op.on_host, op.source = True, self
        return op

    def _tensors(self, vals: Sequence[Any], several: bool = False) -> list[Tensor]:
        """The parts of an element, or of ``several``.  Raises ValueError for others than the queue has."""
        if isinstance(vals, dict) != (self.names is not None):
            raise ValueError(f"{self.name} has {'' if self.names else 'no '}names for the parts of its elements.")
        if self.names is not None:
            if sorted(vals) != sorted(self.names):
                raise ValueError(f"Keys in dictionary to enqueue do not match names of {self.name}: {self.names}.")
            vals = [vals[key] for key in self.names]
        tensors = self._converted(vals)
        for tensor, kind, shape in zip(tensors, self.dtypes, self.shapes):
            if tensor.dtype is not None and tensor.dtype != kind:
                raise ValueError(f"{self.name} has elements of {kind}, {tensor.name} is {tensor.dtype.name}.")
            element_shape = tensor.shape[1:] if several else tensor.shape
            if not element_shape.is_compatible_with(shape):
                raise ValueError(
                    f"Shapes {element_shape} and {shape} are incompatible: {tensor.name} is put into {self.name}."
                )
        return tensors

    def _converted(self, vals: Any) -> list[Tensor]:
        values = (
            vals
            if isinstance(vals, (list, tuple)) and len(self.dtypes) > 1
            else [vals]
            if len(self.dtypes) == 1
            and not (isinstance(vals, (list, tuple)) and len(vals) == 1 and not np.isscalar(vals[0]))
            else vals
        )
        if len(values) != len(self.dtypes):
            raise ValueError(f"{self.name} has elements of {len(self.dtypes)} parts, {len(values)} were given.")
        return [
            convert_to_tensor(v, None if hasattr(v, "op") or hasattr(v, "value") else d)
            for v, d in zip(values, self.dtypes)
        ]

    def enqueue(self, vals: Sequence[Any], name: str | None = None) -> Operation:
        """Put an element behind the others; waits while the queue is full."""

        def compute(state: object, values: Sequence[Any]) -> list[Any]:
            self._state_in(state).put(tuple([np.array(v, d) for v, d in zip(values, self.dtypes)]))
            return []

        return self._op("Enqueue", name, self._tensors(vals), [], compute)

    def enqueue_many(self, vals: Sequence[Any], name: str | None = None) -> Operation:
        """Put each of the rows."""

        def compute(state: object, values: Sequence[Any]) -> list[Any]:
            held = self._state_in(state)
            for row in zip(*[np.asarray(v, d) for v, d in zip(values, self.dtypes)]):
                held.put(tuple([np.array(x) for x in row]))
            return []

        return self._op("EnqueueMany", name, self._tensors(vals, True), [], compute)

    def dequeue(self, name: str | None = None) -> Any:
        """Take an element; waits for one."""
        infos = [Info(_extents(s), d) for s, d in zip(self.shapes, self.dtypes)]
        return self._outputs_of(
            self._op("Dequeue", name, [], infos, lambda state, _: list(self._state_in(state).take(1)[0]))
        )

    def dequeue_many(self, n: ArrayLike, name: str | None = None) -> Any:
        """Take so many elements, stacked."""
        return self._several("DequeueMany", n, True, name)

    def dequeue_up_to(self, n: ArrayLike, name: str | None = None) -> Any:
        """The same, or those that are left once the queue is closed."""
        return self._several("DequeueUpTo", n, False, name)

    def _several(self, kind: str, n: ArrayLike, exact: bool, name: str | None) -> Any:
        count = convert_to_tensor(n)
        known = int(n) if exact and isinstance(n, int) else None
        infos = [Info(None if s.ndims is None else (known, *s.as_list()), d) for s, d in zip(self.shapes, self.dtypes)]

        def compute(state: object, values: Sequence[Any]) -> list[Any]:
            taken = self._state_in(state).take(int(values[0]), exact)
            if not taken:
                return [np.zeros((0, *[x or 0 for x in s.as_list()]), d) for s, d in zip(self.shapes, self.dtypes)]
            return [self._stacked(part) for part in zip(*taken)]

        return self._outputs_of(self._op(kind, name, [count], infos, compute))

    def _stacked(self, part: Sequence[Any]) -> np.ndarray:
        return np.stack(part)

    def _outputs_of(self, op: Operation) -> Any:
        if self.names is not None:
            return dict(zip(self.names, op.outputs))
        return op.outputs[0] if len(op.outputs) == 1 else list(op.outputs)

    def size(self, name: str | None = None) -> Tensor:
        op = self._op(
            "Size", name, [], [Info((), np.dtype("int32"))], lambda state, _: [np.int32(self._state_in(state).size())]
        )
        return op.outputs[0]

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether it was closed."""
        info = Info((), np.dtype(bool))
        op = self._op("IsClosed", name, [], [info], lambda state, _: [np.bool_(self._state_in(state).is_closed)])
        return op.outputs[0]

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Let nothing come in any more; what is there can be taken.  Who waits to put something gets a
        CancelledError, whatever ``cancel_pending_enqueues`` says."""

        def compute(state: object, values: Sequence[Any]) -> list[Any]:
            self._state_in(state).close()
            return []

        return self._op("Close", name, [], [], compute)


def _extents(shape: TensorShape) -> Any:
    return None if shape.ndims is None else tuple(shape.as_list())


class FIFOQueue(QueueBase):
    """First in, first out."""


class RandomShuffleQueue(QueueBase):
    """Elements are taken in random order, and at least ``min_after_dequeue`` of them stay."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Sequence[Any] | None = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: object = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        super().__init__(capacity, dtypes, shapes, names, shared_name, name, min_after_dequeue)
        self._seed = default_graph().seed if seed is None else seed

    def _picker(self) -> Callable[[int], int]:
        return random.Random(self._seed).randrange


class PaddingFIFOQueue(QueueBase):
    """First in, first out; where several are taken at once, shorter ones are filled up with zeros."""

    def _stacked(self, part: Sequence[Any]) -> np.ndarray:
        extents = tuple([max(sizes) for sizes in zip(*[np.shape(x) for x in part])])
        rows = [np.pad(x, [(0, most - extent) for most, extent in zip(extents, np.shape(x))]) for x in part]
        return np.stack(rows)


class _PriorityElements(_QueueElements):
    """Elements in the order of their first parts."""

    def _add(self, element: tuple[Any, ...]) -> None:
        bisect.insort(self._elements, element, key=lambda parts: parts[0].item())


class PriorityQueue(QueueBase):
    """The element whose first part, an int64, is the least comes first."""

    _kind = _PriorityElements

    def __init__(
        self,
        capacity: int,
        types: object,
        shapes: Any = None,
        names: Any = None,
        shared_name: Any = None,
        name: str = "priority_queue",
    ) -> None:
        kinds = list(types) if isinstance(types, (list, tuple)) else [types]
        several = isinstance(shapes, (list, tuple)) and len(shapes) == len(kinds) and shapes != ()
        inner = list(shapes) if several and shapes is not None else [() if shapes is None else shapes] * len(kinds)
        super().__init__(capacity, [np.int64, *kinds], [(), *inner], names, shared_name, name)


# ---- threads


class Coordinator:
    """Tells threads when to stop, and keeps the first error of theirs for ``join``."""

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._closing: list[Callable[[], None]] = []
        self._joined = False
        self._clean = clean_stop_exception_types or (OutOfRangeError,)

    def should_stop(self) -> bool:
        return self._stopped.is_set()

    def request_stop(self, ex: BaseException | None = None) -> None:
        with self._lock:
            if ex is not None and self._error is None and not isinstance(ex, self._clean) and not self.should_stop():
                self._error = ex
            self._stopped.set()
            closing, self._closing = self._closing, []
        for close in closing:
            close()

    def _on_stop(self, close: Callable[[], None]) -> None:
        self._closing.append(close)

    def register_thread(self, thread: threading.Thread) -> None:
        self._threads.append(thread)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        return self._stopped.wait(timeout)

    def clear_stop(self) -> None:
        self._stopped.clear()

    @property
    def joined(self) -> bool:
        """Whether ``join`` came to its end."""
        return self._joined

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def join(self, threads: Any = None, stop_grace_period_secs: float = 120, ignore_live_threads: bool = False) -> None:
        """Wait for threads to end.  Raises what one of them raised, RuntimeError for those that do not end."""
        for thread in [*self._threads, *(threads or ())]:
            while thread.is_alive() and not self._stopped.is_set():
                thread.join(0.05)
            thread.join(stop_grace_period_secs)
            if thread.is_alive() and not ignore_live_threads:
                raise RuntimeError(f"Coordinator stopped with threads still running: {thread.name}")
        self._joined = True
        if self._error is not None:
            raise self._error


class QueueRunner:
    """Threads that run operations which fill a queue, until it is closed."""

    def __init__(
        self,
        queue: QueueBase,
        enqueue_ops: Sequence[Operation],
        close_op: object = None,
        cancel_op: object = None,
        queue_closed_exception_types: object = None,
    ) -> None:
        self.queue, self._ops = queue, list(enqueue_ops)

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = True, start: bool = False
    ) -> list[threading.Thread]:
        """One for each operation."""
        held = self.queue._state_in(sess.state)
        if coord is not None:
            coord._on_stop(held.close)
        left = [len(self._ops)]
        lock = threading.Lock()

        def fill(op: Operation) -> None:
            try:
                while coord is None or not coord.should_stop():
                    sess.run(op)
            except (OutOfRangeError, CancelledError):
                pass
            except Exception as error:
                if coord is None:
                    raise
                coord.request_stop(error)
            finally:
                with lock:
                    left[0] -= 1
                    is_last = not left[0]
                if is_last:
                    held.close()

        result = [threading.Thread(target=fill, args=(op,), daemon=daemon) for op in self._ops]
        for thread in result:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return result


def add_queue_runner(qr: QueueRunner, collection: object = RUNNERS) -> None:
    default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Session | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str | Sequence[str] | None = RUNNERS,
) -> list[threading.Thread]:
    """Start the threads of the graph's runners."""
    chosen = sess or default_session()
    if chosen is None:
        raise ValueError("Cannot start queue runners: No default session is registered. Use `with sess.as_default()`.")
    runners = chosen.graph.get_collection(collection)
    return [t for runner in runners for t in runner.create_threads(chosen, coord, daemon, start)]


# ---- pipelines of queues


def _positions(count: int, num_epochs: int | None, shuffle: bool, seed: int | None) -> Tensor:
    """Numbers below a count, again and again, as an operation that gives the next ones."""
    key = object()

    def compute(state: Any, values: Sequence[Any]) -> list[Any]:
        told = state.resource(key, lambda: [0, random.Random(seed)])
        if num_epochs is not None and told[0] >= num_epochs:
            raise OutOfRangeError("producer", f"all {num_epochs} epochs are over.")
        told[0] += 1
        numbers = list(range(count))
        if shuffle:
            told[1].shuffle(numbers)
        return [np.array(numbers, np.int32)]

    op = default_graph().add("Epoch", None, [], [Info((count,), np.dtype("int32"))], compute)
    op.on_host = True
    return op.outputs[0]


def range_input_producer(
    limit: int,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: object = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the numbers below a limit."""
    queue = FIFOQueue(capacity, [np.int32], [[]], name=name or "range_input_producer")
    add_queue_runner(QueueRunner(queue, [queue.enqueue_many([_positions(limit, num_epochs, shuffle, seed)])]))
    return queue


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: object = None,
    name: str | None = None,
) -> list[Any]:
    """A row of each of the tensors, another one at each run."""
    tensors = [convert_to_tensor(t) for t in tensor_list]
    count = tensors[0].shape.as_list()[0]
    index = range_input_producer(int(count or 0), num_epochs, shuffle, seed, capacity, name=name).dequeue()
    return [tf["gather"](t, index) for t in tensors]


def input_producer(
    input_tensor: ArrayLike,
    element_shape: object = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: object = None,
    summary_name: object = None,
    name: str | None = None,
    cancel_op: object = None,
) -> FIFOQueue:
    """A queue of the rows of a tensor."""
    tensor = convert_to_tensor(input_tensor)
    if tensor.shape.ndims is None or tensor.shape.as_list()[0] is None:
        raise ValueError("the number of rows of an input producer must be known while the graph is built.")
    rows = tensor.shape.as_list()
    queue = FIFOQueue(capacity, [tensor.dtype], [rows[1:]], name=name or "input_producer")
    order = _positions(rows[0], num_epochs, shuffle, seed)

    def taken(values: object, positions: Any) -> list[Any]:
        return [np.asarray(values)[positions]]

    row_items = on_host("Rows", None, [tensor, order], [tensor.info], taken)
    add_queue_runner(QueueRunner(queue, [queue.enqueue_many([row_items])]))
    return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: object = None,
    name: str | None = None,
    cancel_op: object = None,
) -> FIFOQueue:
    """A queue of texts, such as names of files.  Raises ValueError for none at all."""
    if not is_symbolic(string_tensor) and not len(string_tensor):
        raise ValueError("string_input_producer requires a non-null input tensor")
    return input_producer(string_tensor, [], num_epochs, shuffle, seed, capacity, name=name or "input_producer")


def match_filenames_once(pattern: Any, name: str | None = None) -> Tensor:
    """The names of files that match, as they are when the graph is built."""
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    result: Tensor = convert_to_tensor(sorted(path for one in patterns for path in glob.glob(one)))
    return result


def limit_epochs(tensor: ArrayLike, num_epochs: int | None = None, name: str | None = None) -> Any:
    """The tensor, so many times; after that OutOfRangeError is raised."""
    if num_epochs is None:
        return tensor
    counter = Variable(constant_initializer(0)([], np.int64), False, [LOCAL], name=name or "epochs")
    with default_graph().control_dependencies([counter.count_up_to(num_epochs)]):
        return tf["identity"](convert_to_tensor(tensor))


def batch(
    tensors: object,
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: object = None,
    name: str = "batch",
) -> Any:
    """So many elements at once, of those that threads put into a queue; with ``dynamic_pad`` shorter ones are filled up
    with zeros."""
    make = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    joined = [tensors] * num_threads
    return _batched(make, (capacity,), joined, batch_size, enqueue_many, shapes, allow_smaller_final_batch, name)


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: int,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: object = None,
    name: str = "batch_join",
) -> Any:
    """The same of several sources, with a thread for each."""
    make = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return _batched(make, (capacity,), tensors_list, batch_size, enqueue_many, shapes, allow_smaller_final_batch, name)


def shuffle_batch(
    tensors: object,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: object = None,
    allow_smaller_final_batch: bool = False,
    shared_name: object = None,
    name: str = "shuffle_batch",
) -> Any:
    """The same in random order."""
    return shuffle_batch_join(
        [tensors] * num_threads,
        batch_size,
        capacity,
        min_after_dequeue,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name=name,
    )


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: object = None,
    allow_smaller_final_batch: bool = False,
    shared_name: object = None,
    name: str = "shuffle_batch_join",
) -> Any:
    """``batch_join`` in random order."""
    make = functools.partial(RandomShuffleQueue, seed=seed)
    sizes = (capacity, min_after_dequeue)
    return _batched(make, sizes, tensors_list, batch_size, enqueue_many, shapes, allow_smaller_final_batch, name)


def _batched(
    make: Callable[..., Any],
    sizes: Any,
    sources: Sequence[Any],
    batch_size: object,
    many: bool,
    shapes: Any,
    smaller: bool,
    name: str,
) -> Any:
    """Elements of a queue that a thread for each of the sources fills, in the structure of these."""
    first = sources[0]
    keys = sorted(first) if isinstance(first, dict) else None
    parts = [[x[k] for k in keys] if keys else x if isinstance(x, (list, tuple)) else [x] for x in sources]
    values = [[convert_to_tensor(t) for t in tensors] for tensors in parts]
    element_shapes = [t.shape[1:] if many else t.shape for t in values[0]] if shapes is None else shapes
    queue = make(*sizes, [t.dtype for t in values[0]], element_shapes, name=name)
    put = queue.enqueue_many if many else queue.enqueue
    add_queue_runner(QueueRunner(queue, [put(tensors if len(tensors) > 1 else tensors[0]) for tensors in values]))
    dequeued = queue.dequeue_up_to(batch_size) if smaller else queue.dequeue_many(batch_size)
    return dequeued if keys is None else dict(zip(keys, dequeued if isinstance(dequeued, list) else [dequeued]))
