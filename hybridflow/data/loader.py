"""Batches of samples that are looked up one by one: ``hf.data.DataLoader``, with PyTorch's arguments."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.data.arguments import integer, seeds
from hybridflow.data.iterator import in_programs, outside_of_traces
from hybridflow.data.processes import Pool, Sent, died
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError, TraceError, WorkerError
from hybridflow.jit.tensor_spec import TensorSpec


class DataLoader:
    """Data loader: batches of the samples of a dataset, in order or shuffled.

    Batches keep their order on any number of workers. What a worker raises is raised here, with its own traceback.
    Workers end when the iterator does. What they are busy with is waited for, by processes for some seconds only, and
    not after a ``timeout``.

    Args:
        dataset: has ``__getitem__`` and ``__len__``, or is an iterable of samples.
        batch_size: how many samples a batch has; None for samples alone.
        shuffle: whether each pass has another order.
        sampler: the indices of samples, in their order.
        batch_sampler: lists of indices, one for each batch.
        num_workers: how many threads look samples up in advance.
        collate_fn: makes a batch of a list of samples; ``hf.data.default_collate`` unless given.
        drop_last: whether a last batch that is not full is left out.
        timeout: how many seconds a batch is waited for; 0 for any time.
        worker_init_fn: what each process is called with first: its number.
        multiprocessing_context: "spawn" where workers are to be processes.
        generator: a seed, or an ``hf.random.Generator``, of the order.
        prefetch_factor: how many batches each worker makes in advance.

    Raises:
        ArgumentError: for numbers out of range, or arguments that exclude each other.
        ArgumentTypeError: for a ``dataset`` that holds no samples.

    >>> squares = [(np.float32(i), i * i) for i in range(5)]
    >>> for x, y in hf.data.DataLoader(squares, batch_size=2):
    ...     print(x.tolist(), y.tolist())
    [0.0, 1.0] [0, 1]
    [2.0, 3.0] [4, 9]
    [4.0] [16]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: object = None,
        generator: Any = None,
        prefetch_factor: int | None = None,
    ) -> None:
        self.dataset = dataset
        self.batch_size = None if batch_size is None else _integer("batch_size", batch_size)
        self.num_workers = _integer("num_workers", num_workers, 0)
        self.prefetch_factor = 2 if prefetch_factor is None else _integer("prefetch_factor", prefetch_factor)
        self.sampler, self.batch_sampler, self.shuffle, self.drop_last = sampler, batch_sampler, shuffle, drop_last
        self.collate_fn = collate_fn or (default_collate if batch_size is not None or batch_sampler else _converted)
        self.timeout, self.worker_init_fn, self.generator = timeout, worker_init_fn, generator
        self.multiprocessing_context = multiprocessing_context
        self._is_map = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        if not self._is_map and not hasattr(dataset, "__iter__"):
            raise ArgumentTypeError(
                "DataLoader", f"{dataset!r:.80} has neither __getitem__ and __len__ nor __iter__: it holds no samples."
            )
        if not self._is_map and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError("DataLoader", "samples that are iterated over come in their own order.")
        if batch_sampler is not None and (batch_size != 1 or drop_last or sampler is not None):
            raise ArgumentError(
                "DataLoader", "batch_sampler says what batches are; give no batch_size, sampler, drop_last."
            )
        if shuffle and (sampler is not None or batch_sampler is not None):
            raise ArgumentError("DataLoader", "shuffle and a sampler are given; give one of them.")

    def __len__(self) -> int:
        """The number of batches.  Raises TypeError where samples are iterated over."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        count = len(self.dataset if self.sampler is None else self.sampler)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        outside_of_traces("DataLoader", "loader", "iterate outside, and pass each batch")
        if not self._is_map:
            return self._of_iterable()
        fetches = self._fetches()
        if not self.num_workers:
            return (_fetched(self.dataset, indices, self.collate_fn) for indices in fetches)
        return self._in_advance(fetches)

    def _program_iterations(self) -> Any:
        return in_programs().ElementIterations(self._spec, self.__iter__)

    def _spec(self) -> Any:
        """The types of the batches, as a first sample shows them.  Raises TraceError where it shows none, or where
        batches differ in their numbers of samples."""
        if not self._is_map or self.batch_sampler is not None or not len(self.dataset):
            raise TraceError(
                "DataLoader",
                "a loop of a compiled function knows the types that it goes through, and they cannot be told before "
                "the loader runs. Iterate outside of the compiled function, and pass each batch.",
            )
        size = self.batch_size
        count = len(self.dataset if self.sampler is None else self.sampler)  # type: ignore[arg-type]
        if size is not None and count % size and not self.drop_last:
            raise TraceError(
                "DataLoader",
                f"the last of its batches has {count % size} samples, the others {size}, and a loop of a compiled "
                "function knows the shapes that it goes through. Make it with drop_last=True, or iterate outside of "
                "the compiled function, and pass each batch.",
            )
        sample = self.dataset[0]
        batch = self.collate_fn(sample if size is None else [sample] * size)
        leaves, structure = pytree.flatten(batch)
        specs = [TensorSpec(x.shape, x.dtype) if isinstance(x, Tensor) else x for x in leaves]
        return pytree.unflatten(structure, specs)

    def _indices(self) -> Iterable[int]:
        if self.sampler is not None:
            return self.sampler
        count = len(self.dataset)
        if not self.shuffle:
            return range(count)
        seed = getattr(self.generator, "state", None)
        if seed is not None:
            start: Any = [int(word) for word in self.generator.bits((2,)).tolist()]
        else:
            start = seeds(self.generator, "DataLoader")
        order: list[int] = np.random.default_rng(start).permutation(count).tolist()
        return order

    def _fetches(self) -> Iterator[Any]:
        """What is fetched for each batch: a list of indices, or one index where there are no batches."""
        if self.batch_sampler is not None:
            yield from map(list, self.batch_sampler)
            return
        if self.batch_size is None:
            yield from self._indices()
            return
        for batch in _grouped(self._indices(), self.batch_size):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def _of_iterable(self) -> Iterator[Any]:
        if self.batch_size is None:
            for sample in self.dataset:
                yield self.collate_fn(sample)
            return
        for batch in _grouped(self.dataset, self.batch_size):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _in_advance(self, fetches: Iterator[Any]) -> Iterator[Any]:
        workers = self._threads() if self.multiprocessing_context is None else self._processes()
        waiting: deque[Any] = deque()
        hangs = False
        try:
            for indices in fetches:
                waiting.append(self._submitted(workers, indices))
                if len(waiting) >= self.num_workers * self.prefetch_factor:
                    yield self._awaited(waiting.popleft())
            while waiting:
                yield self._awaited(waiting.popleft())
        except _SlowError as error:
            hangs = True
            raise WorkerError("DataLoader", str(error)) from None
        finally:
            for future in waiting:
                future.cancel()
            if isinstance(workers, Pool):
                workers.close(0 if hangs else None)
            else:
                workers.shutdown(wait=not hangs, cancel_futures=True)

    def _threads(self) -> concurrent.futures.ThreadPoolExecutor:
        return concurrent.futures.ThreadPoolExecutor(self.num_workers, "hybridflow.data loader")

    def _processes(self) -> Pool:
        context = self.multiprocessing_context
        if isinstance(context, str):
            context = multiprocessing.get_context(context)
        return Pool(self.num_workers, context, _begin, (self.dataset, self.collate_fn, self.worker_init_fn))

    def _submitted(
        self, workers: Pool | concurrent.futures.ThreadPoolExecutor, indices: object
    ) -> concurrent.futures.Future[Any]:
        if not isinstance(workers, Pool):
            return workers.submit(_fetched, self.dataset, indices, self.collate_fn)
        try:
            return workers.submit(_fetched_there, indices)
        except concurrent.futures.BrokenExecutor:
            raise died("DataLoader") from None
        except Exception as error:  # whatever parts of the dataset raise
            raise ArgumentTypeError(
                "DataLoader",
                f"worker processes cannot be sent the dataset, collate_fn or worker_init_fn: {error}. Use classes and "
                "functions of modules.",
            ) from None

    def _awaited(self, future: concurrent.futures.Future[Any]) -> Any:
        try:
            batch = future.result(self.timeout or None)
        except concurrent.futures.BrokenExecutor:
            raise died("DataLoader") from None
        except concurrent.futures.TimeoutError:
            if future.done():
                raise  # the user's own
            raise _SlowError(f"a batch took more than {self.timeout} s (timeout).") from None
        return _as_tensors(batch) if self.multiprocessing_context is not None else batch


class _SlowError(Exception):
    """A worker takes longer than it may, and may never end."""


def default_collate(samples: list[Any]) -> Any:
    """Collate samples into a batch: arrays, tensors and numbers are stacked.

    Tuples, lists and dicts are collated part by part; texts and other things stay a list.

    Args:
        samples: a list of samples.

    Returns:
        A batch of the structure of a sample, whose tensors have one more axis in front.

    Raises:
        ShapeError: for samples that differ in kind, structure or shape.

    >>> hf.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': <Tensor f64[2] cpu> [1. 2.], 'name': ['a', 'b']}
    """
    return _collated(samples, "")


def _collated(samples: list[Any], path: str) -> Any:
    """A batch of parts of samples, which are at this path in them."""
    first = samples[0]
    if isinstance(first, Mapping):
        _check_kinds(samples, path, Mapping)
        _check_alike(samples, path, "keys", lambda sample: sorted(map(repr, sample)))
        return {key: _collated([sample[key] for sample in samples], f"{path}[{key!r}]") for key in first}
    if isinstance(first, (list, tuple)):
        _check_kinds(samples, path, (list, tuple))
        _check_alike(samples, path, "length", len)
        parts = [_collated(list(column), f"{path}[{k}]") for k, column in enumerate(zip(*samples))]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if _is_array(first):
        for number, sample in enumerate(samples):
            if not _is_array(sample):
                raise _unlike(path, number, "kind", type(first).__name__, type(sample).__name__)
        arrays = [np.asarray(sample) for sample in samples]
        _check_alike(arrays, path, "shape", lambda array: array.shape)
        return asarray(np.stack(arrays))
    return samples


def _is_array(value: object) -> bool:
    return isinstance(value, (bool, int, float, np.generic, np.ndarray, Tensor)) or hasattr(value, "__array__")


def _check_kinds(samples: list[Any], path: str, kind: Any) -> None:
    for number, sample in enumerate(samples):
        if not isinstance(sample, kind):
            raise _unlike(path, number, "kind", type(samples[0]).__name__, type(sample).__name__)


def _check_alike(samples: list[Any], path: str, what: str, of: Callable[[Any], Any]) -> None:
    """Raises ShapeError where something of the samples is not that of the first."""
    wanted = of(samples[0])
    for number, sample in enumerate(samples):
        if (kind := of(sample)) != wanted:
            raise _unlike(path, number, what, wanted, kind)


def _unlike(path: str, number: int, what: str, wanted: object, actual: object) -> ShapeError:
    part = f"the parts sample{path}" if path else "the samples"
    return ShapeError(
        "DataLoader",
        f"{part} of one batch differ in {what}: {wanted} and, sample {number} of the batch, {actual}. "
        "Make them alike, or give a collate_fn.",
    )


def _converted(sample: object) -> Any:
    """A sample alone, with tensors for arrays."""
    if isinstance(sample, Mapping):
        return {key: _converted(part) for key, part in sample.items()}
    if isinstance(sample, (list, tuple)) and not hasattr(sample, "_fields"):
        return type(sample)(map(_converted, sample))
    return asarray(sample) if isinstance(sample, np.ndarray) else sample


def _grouped(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _fetched(dataset: Any, indices: object, collate: Callable[[Any], Any]) -> Any:
    if isinstance(indices, list):
        return collate([dataset[index] for index in indices])
    return collate(dataset[indices])


_there: dict[str, Any] = {}  # in a worker process: what it works with


def _begin(number: int, dataset: object, collate: object, init: Callable[[int], Any] | None) -> None:
    _there.update(dataset=dataset, collate=collate)
    if init is not None:
        try:
            init(number)
        except Exception as error:
            error.add_note("[DataLoader] raised by worker_init_fn.")
            _there["failure"] = error


def _fetched_there(indices: object) -> Any:
    if "failure" in _there:
        raise _there["failure"]
    return _as_arrays(_fetched(_there["dataset"], indices, _there["collate"]))


def _as_arrays(value: object) -> Any:
    return _exchanged(value, Tensor, lambda tensor: Sent(tensor.numpy()))


def _as_tensors(value: object) -> Any:
    return _exchanged(value, Sent, lambda sent: asarray(sent.array))


def _exchanged(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, dict):
        return {key: _exchanged(part, kind, change) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_exchanged(part, kind, change) for part in value])
    return type(value)(_exchanged(part, kind, change) for part in value) if type(value) in (list, tuple) else value


def _integer(name: str, value: object, least: int = 1) -> int:
    return integer(name, value, "DataLoader", least)
