"""Runs that other processes work for.

Processes are started anew (``spawn``), so that functions and elements go to them by pickle.  They ignore Ctrl-C, which
is for the one that asked for them, and end with the generator that started them: what is busy then is waited for, but
not for ever.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from hybridflow.core.tensor import Tensor, wrap
from hybridflow.data import elements
from hybridflow.data.map_filter import applied
from hybridflow.data.pipeline import Elements, OneSource, PipelineIterator, State
from hybridflow.data.threads import AUTOTUNE, ParallelMap
from hybridflow.errors import ArgumentTypeError, WorkerError

_GRACE = 5.0  # seconds that processes get which are busy when they are to end


class Sent:
    """A tensor on its way between processes."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


def sent(element: object) -> Any:
    """An element that can be pickled."""
    return elements.mapped(lambda leaf: Sent(leaf.numpy()) if isinstance(leaf, Tensor) else leaf, element)


def received(element: object) -> Any:
    """What ``sent`` was given."""
    return elements.mapped(lambda leaf: wrap(leaf.array) if isinstance(leaf, Sent) else leaf, element)


def died(stage: str) -> WorkerError:
    return WorkerError(
        stage, "a worker process died: out of memory, killed, or not able to begin. Iterate over the data anew."
    )


class Pool:
    """Processes that work for this one.  ``begin`` is called in each of them first, with its number and arguments."""

    def __init__(self, count: int, context: Any, begin: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._ids = context.Array("q", count)  # of the processes, as they begin
        process_arguments = (self._ids, begin, arguments)
        self._executor = concurrent.futures.ProcessPoolExecutor(count, context, _begin_process, process_arguments)

    def submit(self, function: Callable[..., Any], *args: object) -> concurrent.futures.Future[Any]:
        """``function(*args)`` of one of them.  Raises BrokenExecutor where one has died."""
        return self._executor.submit(function, *args)

    def close(self, seconds: float | None = None) -> None:
        """End them; those that are busy for so many seconds more (some, where nobody says) are killed."""
        killer = threading.Timer(_GRACE if seconds is None else seconds, self._kill)
        killer.daemon = True
        killer.start()
        try:
            self._executor.shutdown(wait=True, cancel_futures=True)
        finally:
            killer.cancel()
            killer.join()

    def _kill(self) -> None:
        ids = {*self._ids}
        for process in multiprocessing.active_children():
            if process.pid in ids:
                process.kill()


def _begin_process(ids: Any, begin: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """In a worker process.  It leaves Ctrl-C, which a terminal sends to all processes, to the one that it works for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ids.get_lock():
        number = sum(1 for known in ids if known)
        ids[number] = os.getpid()
    begin(number, *arguments)


_there: list[tuple[Callable[..., Any], str]] = []  # in a worker process: what it calls


def _begin(_: int, function: Callable[..., Any], text: str) -> None:
    _there.append((function, text))


def _applied_there(element: object) -> Any:
    function, text = _there[-1]
    return sent(applied(function, received(element), text))


class ProcessMap(ParallelMap):
    """``function`` of each element, called by several processes; in order unless ``ordered`` is False."""

    def __init__(self, source: Any, function: Callable[..., Any], calls: int, ordered: bool | None, text: str) -> None:
        super().__init__(source, function, calls, ordered, text)
        try:
            pickle.dumps(function)
        except Exception as error:  # whatever the function's parts raise
            raise ArgumentTypeError(
                "Dataset.map", f"other processes cannot be sent {function!r:.60}: {error}. Use a function of a module."
            ) from None

    def runner(self) -> PipelineIterator:
        return ProcessMapRun(self)


class _Task:
    """An element, and what will become of it."""

    __slots__ = ("element", "future")

    def __init__(self, element: object) -> None:
        self.element = element
        self.future: concurrent.futures.Future[Any] = concurrent.futures.Future()


class ProcessMapRun(OneSource):
    def __init__(self, node: ProcessMap) -> None:
        super().__init__(node.source)
        self.node, self.ordered = node, node.ordered is not False
        self.calls = (os.cpu_count() or 1) if node.calls == AUTOTUNE else node.calls
        self.pending: deque[_Task] = deque()  # elements that were taken from the source, and not given

    def run(self) -> Elements:
        pool = Pool(self.calls, multiprocessing.get_context("spawn"), _begin, (self.node.function, self.node.text))
        try:
            yield from self._map_in_processes(pool)
        except concurrent.futures.BrokenExecutor:
            raise died("Dataset.map") from None
        finally:
            pool.close()

    def _map_in_processes(self, pool: Pool) -> Elements:
        iterator = self.source.run()
        for task in self.pending:  # those of a restored state
            task.future = pool.submit(_applied_there, sent(task.element))
        failure: Exception | None = None
        while True:
            try:
                for element in islice(iterator, max(0, 2 * self.calls - len(self.pending)) if failure is None else 0):
                    task = _Task(element)
                    task.future = pool.submit(_applied_there, sent(element))
                    self.pending.append(task)
            except concurrent.futures.BrokenExecutor:
                raise
            except Exception as error:
                failure = error  # it comes after what was there before it
            if not self.pending:
                if failure is not None:
                    raise failure
                return
            yield received(self._next().future.result())

    def _next(self) -> _Task:
        """The first task, or one that is done, out of those that are pending."""
        if self.ordered:
            return self.pending.popleft()
        futures = {task.future: task for task in self.pending}
        done, _ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED)
        task = futures[next(iter(done))]
        self.pending.remove(task)
        return task

    def state(self) -> State:
        return {"pending": [task.element for task in self.pending], **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.pending.extend(map(_Task, state["pending"]))
