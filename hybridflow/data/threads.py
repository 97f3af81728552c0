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
from hybridflow.data.node import Elements, Failure, Node, OneSource, Runner, State

AUTOTUNE = -1
_CHEAP = 200e-6  # seconds that a call takes of which AUTOTUNE leaves it to the calling thread
_SAMPLE, _UNWATCHED = 4, 252  # calls that AUTOTUNE times, and that it lets pass until the next ones
_AHEAD = 8  # elements that AUTOTUNE makes in advance
_END = object()


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
        running = self._working()
        next(running)  # the thread begins now, not with the first element
        return running

    def _working(self) -> Elements:
        ready, made, room = self.ready, self.made, SimpleQueue[bool]()
        for _ in range(self.count):
            room.put(True)
        maker = _Maker(self.source, made, room, self.busy)
        threads = []
        try:  # Ctrl-C may come as soon as a thread runs
            threads.append(start(maker.work, "prefetch"))
            yield None
            while (item := ready.popleft() if ready else made.get()) is not _END:
                if type(item) is Failure:
                    raise item.error
                if self.restored:
                    self.restored -= 1
                else:
                    room.put(True)
                yield item
        finally:
            maker.stopped = True
            room.put(False)
            ended(threads)

    def state(self) -> State:
        with self.busy:
            try:
                while True:
                    self.ready.append(self.made.get_nowait())
            except Empty:
                pass
            held = [item for item in self.ready if item is not _END and type(item) is not Failure]
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
            made.put(Failure(error))


class ParallelMap(Map):
    """``function`` of each element, called by several threads at a time; in order unless ``ordered`` is False."""

    def __init__(self, source: Node, function: Callable[..., Any], calls: int, ordered: bool | None, text: str) -> None:
        super().__init__(source, function, text)
        self.calls, self.ordered = calls, ordered

    def runner(self) -> Runner:
        return ParallelMapRun(self)


class _Task:
    """An element, and what became of it: a result or a Failure; ``_END`` for what is no element of the source."""

    __slots__ = ("done", "element", "result")

    def __init__(self, element: Any, result: Any = None) -> None:
        self.element, self.result = element, result
        self.done = threading.Lock()
        self.done.acquire()


class ParallelMapRun(OneSource):
    def __init__(self, node: ParallelMap) -> None:
        super().__init__(node.source)
        self.function, self.text, self.calls = node.function, node.text, node.calls
        self.ordered = node.ordered is not False
        self.pending: deque[_Task] = deque()  # elements that were taken from the source, and not given
        self.busy = threading.Lock()  # held while the source runs

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
        crew = _Crew(found, self, calls)
        threads = []
        surplus = len(self.pending) - 2 * calls  # restored ones that nobody made room for
        is_over = False
        try:
            for number in range(calls):
                threads.append(start(crew.work, f"map {number}"))
            threads.append(start(crew.take, "map, source"))
            while not is_over or self.pending:
                task = crew.given.get()
                task.done.acquire()
                self.pending.remove(task)
                if task.element is _END:
                    if type(task.result) is Failure:
                        raise task.result.error
                    is_over = True
                    continue
                if type(task.result) is Failure:
                    raise task.result.error
                if surplus > 0:
                    surplus -= 1
                else:
                    crew.room.put(True)
                yield task.result
        finally:
            crew.stopped = True
            crew.room.put(False)
            for _ in range(calls):
                crew.tasks.put(None)
            ended(threads)

    def state(self) -> State:
        with self.busy:
            return {"pending": [task.element for task in self.pending if task.element is not _END], **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.pending.extend(map(_Task, state["pending"]))


class _Crew:
    """What the threads of a parallel map do, and all that they hold: one takes elements, the others call the function.

    Tasks are given in the order of the elements, or as they are done.
    """

    def __init__(self, found: Any, run: ParallelMapRun, calls: int) -> None:
        self.found, self.function, self.text, self.ordered = found, run.function, run.text, run.ordered
        self.pending, self.busy, self.stopped = run.pending, run.busy, False
        self.tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self.given: SimpleQueue[_Task] = SimpleQueue()
        self.room: SimpleQueue[bool] = SimpleQueue()
        for task in self.pending:  # those of a restored state
            self._put(task)
        for _ in range(2 * calls - len(self.pending)):
            self.room.put(True)

    def _put(self, task: _Task) -> None:
        self.tasks.put(task)
        if self.ordered:
            self.given.put(task)

    def take(self) -> None:
        """Make tasks of elements as long as there is room for them."""
        element = None
        while element is not _END and self.room.get() and not self.stopped:
            with self.busy:
                result = None
                try:
                    element = next(self.found, _END)
                except BaseException as error:
                    element, result = _END, Failure(error)
                task = _Task(element, result)
                self.pending.append(task)
                self._put(task)

    def work(self) -> None:
        """Call the function."""
        while (task := self.tasks.get()) is not None and not self.stopped:
            if task.element is not _END:
                try:
                    task.result = applied(self.function, task.element, self.text)
                except BaseException as error:
                    task.result = Failure(error)
            task.done.release()
            if not self.ordered:
                self.given.put(task)
