"""Requests of one model, computed by threads of its own, several at once where the batch is open.

With a delay of 0 a batch is what came while the one before was computed: who is alone never waits.  Where programs take
less time than to wake a thread, who asks computes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np

from hybridflow.serving.endpoint import Endpoint
from hybridflow.serving.errors import RequestError
from hybridflow.serving.metrics import Metrics

_SHORT_SECONDS = 2e-4  # of a thread's time that the loop of events may be kept
_MEASURED = 16  # batches that took no longer, and more than those that did, before it is
_PENALTY = 4  # short batches that make up for one that took the time of two


class _Request:
    """Arrays that wait for their answer.  Requests of one ``kind`` may be computed at once."""

    __slots__ = ("arrays", "future", "kind", "rows")

    def __init__(self, arrays: Sequence[np.ndarray], is_batched: bool) -> None:
        self.arrays = arrays
        self.future: Future[list[np.ndarray]] = Future()
        self.rows = arrays[0].shape[0] if is_batched else 1
        self.kind = tuple(array.shape[1:] for array in arrays)


class Batcher:
    """Computes what is asked of an endpoint.

    Args:
        endpoint: the model.
        max_batch: rows that are computed at once, at most; 1: each request by itself.
        max_delay: seconds that the first of a batch waits for others.
        workers: threads.
        queue: requests that may wait; more are refused.
        metrics: where it is counted.
        labels: of the model in the metrics.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        max_batch: int,
        max_delay: float,
        workers: int,
        queue: int,
        metrics: Metrics,
        labels: dict[str, str],
    ) -> None:
        self._endpoint = endpoint
        self._max_rows = max_batch if endpoint.is_batched else 1
        self._delay, self._queue_size = max_delay, queue
        self._metrics, self._labels = metrics, labels
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._computing = 0  # threads that do
        self._short = 0  # batches that took little time, less what others took more
        self._most_rows = 0  # of these
        self._threads = [
            threading.Thread(target=self._work, name=f"hybridflow-serve-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, arrays: Sequence[np.ndarray]) -> Future[list[np.ndarray]]:
        """Ask for the outputs for these inputs.  Raises RequestError where too many wait, or the model is going."""
        request = _Request(arrays, self._endpoint.is_batched)
        with self._changed:
            if self._is_closed:
                raise RequestError(503, "the model is being unloaded.", retry=1)
            if len(self._waiting) >= self._queue_size:
                raise RequestError(503, f"{len(self._waiting)} requests wait already.", retry=1)
            self._waiting.append(request)
            self._metrics.set("hf_queue_depth", len(self._waiting), **self._labels)
            self._changed.notify()
        return request.future

    def answer_at_once(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """The outputs, computed by the thread that asks; None where that may take long, or others wait or compute."""
        rows = arrays[0].shape[0] if self._endpoint.is_batched else 1
        if self._short < _MEASURED or rows > self._most_rows or self._delay:
            return None
        if self._waiting or self._computing or self._is_closed:
            return None
        request = _Request(arrays, self._endpoint.is_batched)
        self._answer([request])
        return request.future.result()

    def close(self) -> None:
        """Take no more requests; returns when those that wait are answered."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            batch = self._next()
            if batch is None:
                return
            started = [one for one in batch if one.future.set_running_or_notify_cancel()]  # others went away
            if started:
                self._answer(started)

    def _next(self) -> list[_Request] | None:
        """The requests that are computed next; None once there are no more to come."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            if self._delay and not self._is_closed:
                until = time.monotonic() + self._delay
                while self._rows_of_next() < self._max_rows and not self._is_closed:
                    left = until - time.monotonic()
                    if left <= 0 or not self._waiting:
                        break
                    self._changed.wait(left)
                if not self._waiting:  # another thread took it
                    return []
            batch = self._take()
            self._metrics.set("hf_queue_depth", len(self._waiting), **self._labels)
            return batch

    def _rows_of_next(self) -> int:
        kind = self._waiting[0].kind if self._waiting else ()
        return sum(one.rows for one in self._waiting if one.kind == kind)

    def _take(self) -> list[_Request]:
        """The first that waits, and those behind it that fit in with it; the others keep their order."""
        first = self._waiting.popleft()
        batch, rows = [first], first.rows
        if self._max_rows == 1 or not first.rows:
            return batch
        left: deque[_Request] = deque()
        while self._waiting:
            one = self._waiting.popleft()
            if one.kind == first.kind and one.rows and rows + one.rows <= self._max_rows:
                batch.append(one)
                rows += one.rows
            else:
                left.append(one)
        self._waiting = left
        return batch

    def _answer(self, batch: list[_Request]) -> None:
        """Compute a batch; where it fails, each request by itself, so that none fails for another."""
        begin, of_thread = time.perf_counter(), time.thread_time()
        with self._changed:
            self._computing += 1
        try:
            results = self._computed(batch)
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    self._answer([one])
                return
            batch[0].future.set_exception(error)
            return
        finally:
            with self._changed:  # before anybody has the answer, and asks again
                self._computing -= 1
            self._metrics.add("hf_compute_seconds_total", time.perf_counter() - begin, **self._labels)
        rows = sum(one.rows for one in batch)
        self._measure(rows, time.thread_time() - of_thread)
        self._metrics.observe("hf_batch_size", rows, **self._labels)
        for one, result in zip(batch, results):
            one.future.set_result(result)

    def _measure(self, rows: int, seconds: float) -> None:
        """Note how long a batch took, the time left out in which others had the processor."""
        excess = int(seconds / _SHORT_SECONDS)
        if excess:
            self._short = max(0, self._short - _PENALTY * excess)
            self._most_rows = self._most_rows if self._short else 0
        else:
            self._short = min(self._short + 1, 2 * _MEASURED)
            self._most_rows = max(self._most_rows, rows)

    def _computed(self, batch: list[_Request]) -> list[list[np.ndarray]]:
        if len(batch) == 1:
            return [self._endpoint(batch[0].arrays)]
        joined = [np.concatenate(parts) for parts in zip(*[one.arrays for one in batch])]
        outputs = self._endpoint(joined)
        rows = sum(one.rows for one in batch)
        if any(output.shape[:1] != (rows,) for output in outputs):
            raise ValueError("an output does not have the rows of the inputs")  # then each by itself
        stops = np.cumsum([one.rows for one in batch])
        return [[output[stop - one.rows : stop] for output in outputs] for one, stop in zip(batch, stops.tolist())]
