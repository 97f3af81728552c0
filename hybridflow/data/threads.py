"""Runs that other threads work for.

Threads start when the first element is asked for, and end with the generator that started them: at its end, when it
raises, and when it is closed or dropped.  They hold nothing of what the user holds, so that dropping an iterator is
enough.  A thread that is busy with a function of the user's is waited for.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from hybridflow.data.functions import Map, applied
from hybridflow.data.node import Elements, Node, OneSource, Runner, State

AUTOTUNE = -1
_CHEAP = 200e-6  # seconds that a call takes of which AUTOTUNE leaves it to the calling thread
_SAMPLE, _UNWATCHED = 4, 252  # calls that AUTOTUNE times, and that it lets pass until the next ones
_AHEAD = 8  # elements that AUTOTUNE makes in advance
_END = object()


class _Failure:
    """An exception on its way to the thread that raises it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def start(work: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=f"hybridflow.data {name}", daemon=True)
    thread.start()
    return thread


def ended(threads: list[threading.Thread]) -> None:
    """Wait for threads that were told to end; a thread may itself be the one that drops the last reference."""
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join()


class Prefetch(Node):
    """The elements of the source, up to ``count`` of which are made in advance by a thread."""

    def __init__(self, source: Node, count: int) -> None:
        self.source, self.count = source, count

    def runner(self) -> Runner:
        return PrefetchRun(self.source, _AHEAD if self.count == AUTOTUNE else self.count)

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.source.cardinality()


class PrefetchRun(OneSource):
    def __init__(self, source: Node, count: int) -> None:
        super().__init__(source)
        self.count = count
        self.ready: deque[Any] = deque()  # restored, or taken out of the queue to look at them
        self.restored = 0  # how many of those nobody made room for
        self.made: SimpleQueue[Any] = SimpleQueue()
        self.busy = threading.Lock()  # held while the source runs

    def run(self) -> Elements:
        ready, made, room = self.ready, self.made, SimpleQueue[bool]()
        for _ in range(self.count):
            room.put(True)
        maker = _Maker(self.source, made, room, self.busy)
        thread = start(maker.work, "prefetch")
        try:
            while (item := ready.popleft() if ready else made.get()) is not _END:
                if type(item) is _Failure:
                    raise item.error
                if self.restored:
                    self.restored -= 1
                else:
                    room.put(True)
                yield item
        finally:
            maker.stopped = True
            room.put(False)
            ended([thread])

    def state(self) -> State:
        with self.busy:
            try:
                while True:
                    self.ready.append(self.made.get_nowait())
            except Empty:
                pass
            held = [item for item in self.ready if item is not _END and type(item) is not _Failure]
            return {"ready": held, **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.ready.extend(state["ready"])
        self.restored = len(self.ready)


class _Maker:
    """What the thread of a prefetching run does, and all that it holds."""

    def __init__(self, source: Runner, made: SimpleQueue[Any], room: SimpleQueue[bool], busy: threading.Lock) -> None:
        self.source, self.made, self.room, self.busy = source, made, room, busy
        self.stopped = False

    def work(self) -> None:
        made, room, busy = self.made, self.room, self.busy
        try:
            found = self.source.run()
            while room.get() and not self.stopped:
                with busy:
                    item = next(found, _END)
                    made.put(item)
                if item is _END:
                    return
        except BaseException as error:
            made.put(_Failure(error))


class ParallelMap(Map):
    """``function`` of each element, called by several threads at a time; in order unless ``ordered`` is False."""

    def __init__(self, source: Node, function: Callable[..., Any], calls: int, ordered: bool | None, text: str) -> None:
        super().__init__(source, function, text)
        self.calls, self.ordered = calls, ordered

    def runner(self) -> Runner:
        return ParallelMapRun(self)


class _Task:
    """An element, and what became of it: a result or a _Failure."""

    __slots__ = ("done", "element", "result")

    def __init__(self, element: Any) -> None:
        self.element = element
        self.result: Any = None
        self.done = threading.Lock()
        self.done.acquire()


class ParallelMapRun(OneSource):
    def __init__(self, node: ParallelMap) -> None:
        super().__init__(node.source)
        self.function, self.text, self.ordered, self.calls = (
            node.function,
            node.text,
            node.ordered is not False,
            node.calls,
        )
        self.pending: deque[_Task] = deque()  # elements that were taken from the source, and not given

    def run(self) -> Elements:
        found = self.source.run()
        calls = self.calls
        if calls == AUTOTUNE:
            calls = os.cpu_count() or 1
            if (yield from self._alone(found)):
                return
        yield from self._together(found, calls)

    def _alone(self, found: Any) -> Any:
        """Elements made by this thread, as long as calls are cheap.  Returns whether that was all."""
        while self.pending:
            yield applied(self.function, self.pending.popleft().element, self.text)
        while True:
            begin, count = time.perf_counter(), 0
            for element in islice(found, _SAMPLE):
                result = applied(self.function, element, self.text)
                spent = time.perf_counter() - begin
                count += 1
                yield result
                begin = time.perf_counter() - spent
            if count < _SAMPLE:
                return True
            if spent > _CHEAP * count:
                return False
            for element in islice(found, _UNWATCHED):
                yield applied(self.function, element, self.text)

    def _together(self, found: Any, calls: int) -> Elements:
        tasks: SimpleQueue[_Task | None] = SimpleQueue()
        finished: SimpleQueue[_Task] = SimpleQueue()
        work = _worker(self.function, self.text, tasks, None if self.ordered else finished)
        for task in self.pending:  # those of a restored state
            tasks.put(task)
        threads = [start(work, f"map {number}") for number in range(calls)]
        failure: BaseException | None = None
        try:
            while True:
                try:
                    for element in islice(found, max(0, 2 * calls - len(self.pending)) if failure is None else 0):
                        task = _Task(element)
                        self.pending.append(task)
                        tasks.put(task)
                except Exception as error:
                    failure = error  # it comes after what was there before it
                if not self.pending:
                    if failure is not None:
                        raise failure
                    return
                task = self._next(finished)
                if type(task.result) is _Failure:
                    raise task.result.error
                yield task.result
        finally:
            self._clear(tasks)
            for _ in threads:
                tasks.put(None)
            ended(threads)

    def _next(self, finished: SimpleQueue[_Task]) -> _Task:
        """The first task, or the one that is done first, out of those that are pending."""
        if not self.ordered:
            task = finished.get()
            self.pending.remove(task)
            return task
        task = self.pending[0]
        task.done.acquire()
        self.pending.popleft()
        return task

    @staticmethod
    def _clear(tasks: SimpleQueue[_Task | None]) -> None:
        try:
            while True:
                tasks.get_nowait()
        except Empty:
            pass

    def state(self) -> State:
        return {"pending": [task.element for task in self.pending], **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.pending.extend(map(_Task, state["pending"]))


def _worker(
    function: Callable[..., Any], text: str, tasks: SimpleQueue[_Task | None], finished: SimpleQueue[_Task] | None
) -> Callable[[], None]:
    """What threads of a parallel map do, and all that they hold."""

    def work() -> None:
        while (task := tasks.get()) is not None:
            try:
                task.result = applied(function, task.element, text)
            except BaseException as error:
                task.result = _Failure(error)
            task.done.release()
            if finished is not None:
                finished.put(task)

    return work
