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
from collections.abc import Callable, Generator
from contextvars import Context
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from hybridflow import spans
from hybridflow.data.elements import size_of
from hybridflow.data.map_filter import Map, applied, results
from hybridflow.data.pipeline import Elements, Failure, Node, OneSource, PipelineIterator, State, Stepwise

AUTOTUNE = -1
_CHEAP = 200e-6  # seconds that a call takes of which AUTOTUNE leaves it to the calling thread
_SAMPLE, _UNWATCHED = 4, 252  # calls that AUTOTUNE times, and that it lets pass until the next ones
_AHEAD = 8  # elements that AUTOTUNE makes in advance
_BRIEF = 10e-6  # seconds that a call takes which is not worth a task of its own
_BRIEF_TASKS = 16  # of such calls in a row after which tasks grow
_MOST_ELEMENTS, _TASK_BYTES = 64, 1 << 20  # of a task
_TASK_SECONDS = 100e-6  # that elements of a task are waited for
_HANDOVER = 50e-6  # seconds that an element takes which is not worth being handed from thread to thread
_LATEST = 200e-6  # seconds that such elements may be late until a thread makes them again
_FEWEST, _FEWEST_CALLED, _MOST = 2, 32, 256  # elements, without and with calls, that it makes before it looks for that
_END, _LEFT = object(), object()


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

    def runner(self) -> PipelineIterator:
        return PrefetchRun(self.source, _AHEAD if self.count == AUTOTUNE else self.count)

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.source.cardinality()

    def rest(self) -> int:
        return self.source.rest()


class PrefetchRun(OneSource):
    def __init__(self, source: Node, count: int) -> None:
        super().__init__(source)
        self.count = count
        self.ready: deque[Any] = deque()  # restored, or taken out of the queue to look at them
        self.restored = 0  # how many of those nobody made room for
        self.made: SimpleQueue[Any] = SimpleQueue()
        self.busy = threading.Lock()  # held while the source runs
        self.context = Context()  # in which it runs, whichever thread that is: it sees none of the caller's tapes

    def run(self) -> Elements:
        running = self._working()
        next(running)  # the thread begins now, not with the first element
        return running

    def _working(self) -> Elements:
        iterator: Elements | None = None
        patience = fewest = _FEWEST if self.source.is_nonblocking else _FEWEST_CALLED
        if self.source.is_nonblocking and not self.ready:
            iterator = iter(self.source.run())
            yield None
        while True:
            if iterator is not None:
                count = yield from self._alone(iterator)
                if count is None:
                    return
                patience = fewest if count > patience else min(2 * patience, _MOST)
            iterator = yield from self._ahead(iterator, patience)
            if iterator is None:
                return

    def _ahead(self, elements: Elements | None, patience: int) -> Generator[Any, None, Elements | None]:
        """Elements that a thread makes in advance, after None for the first of all.  Returns those that it leaves."""
        ready, queue, room = self.ready, self.made, SimpleQueue[bool]()
        for _ in range(self.count):
            room.put(True)
        maker = _Maker(self.source, elements, queue, room, self.busy, patience)
        threads = []
        try:  # Ctrl-C may come as soon as a thread runs
            threads.append(start(partial(self.context.run, maker.work), "prefetch"))
            if elements is None:
                yield None
            while (item := ready.popleft() if ready else queue.get()) is not _END:
                if item is _LEFT:
                    return maker.found
                if type(item) is Failure:
                    raise item.error
                if self.restored:
                    self.restored -= 1
                else:
                    room.put(True)
                yield item
            return None
        finally:
            maker.stopped = True
            room.put(False)
            ended(threads)

    def _alone(self, elements: Elements) -> Generator[Any, None, int | None]:
        """Elements made when they are asked for, until they take long.  Returns how many; None where it was all."""
        run, count = self.context.run, 0
        late = float("-inf")  # seconds by which they were late; the first, which may fill a buffer, never is
        while late < _LATEST:
            with self.busy:
                begin = time.perf_counter()
                item = run(next, elements, _END)
                late = max(0.0, late + time.perf_counter() - begin - _HANDOVER)
            if item is _END:
                return None
            count += 1
            yield item
        return count

    def state(self) -> State:
        with self.busy:
            try:
                while True:
                    self.ready.append(self.made.get_nowait())
            except Empty:
                pass
            held = [item for item in self.ready if item is not _END and item is not _LEFT and type(item) is not Failure]
            return {"ready": held, **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.ready.extend(state["ready"])
        self.restored = len(self.ready)


class _Maker:
    """What the thread of a prefetching run does, and all that it holds.

    Elements that take less time than handing them over does, however little that be, it leaves to the thread that wants
    them, after ``patience`` of them.  That thread may as well make them.
    """

    def __init__(
        self,
        source: PipelineIterator,
        elements: Elements | None,
        queue: SimpleQueue[Any],
        room: SimpleQueue[bool],
        busy: threading.Lock,
        patience: int,
    ) -> None:
        self.source, self.found, self.made, self.room, self.busy = source, elements, queue, room, busy
        self.patience, self.stopped = patience, False

    def work(self) -> None:
        queue, room, busy, source = self.made, self.room, self.busy, self.source
        try:
            if self.found is None:
                self.found = iter(source.run())
            count = 0
            while room.get() and not self.stopped:
                with busy:
                    begin = time.thread_time()  # without waiting for the other thread, which holds the interpreter
                    item = next(self.found, _END)
                    seconds = time.thread_time() - begin
                    queue.put(item)
                    if item is _END:
                        return
                    count += 1
                    if count >= self.patience and seconds < _HANDOVER and source.may_move:
                        queue.put(_LEFT)
                        return
        except BaseException as error:
            queue.put(Failure(error))


class ParallelMap(Map):
    """``function`` of each element, called by several threads at a time; in order unless ``ordered`` is False."""

    def __init__(self, source: Node, function: Callable[..., Any], calls: int, ordered: bool | None, text: str) -> None:
        super().__init__(source, function, text)
        self.calls, self.ordered = calls, ordered

    def runner(self) -> PipelineIterator:
        return ParallelMapRun(self)


class _Task:
    """Elements, and what becomes of them: results, the last of which may be a Failure.

    One without elements is the end of the source, or its Failure.
    """

    __slots__ = ("done", "elements", "results")

    def __init__(self, elements: list[Any], results: list[Any] | None = None) -> None:
        self.elements, self.results = elements, [] if results is None else results
        self.done = threading.Lock()
        self.done.acquire()


class ParallelMapRun(Stepwise):
    def __init__(self, node: ParallelMap) -> None:
        super().__init__(node.source)
        self.function, self.text, self.calls = node.function, node.text, node.calls
        self.ordered = node.ordered is not False
        self.pending: deque[_Task] = deque()  # elements that were taken from the source, and not given
        self.given = 0  # elements of the first of these that were given
        self.busy = threading.Lock()  # held while the source runs

    def run(self) -> Elements:
        iterator = self.source.run()
        calls = self.calls
        if calls == AUTOTUNE:
            calls = os.cpu_count() or 1
            if (yield from self._alone(iterator)):
                return
        yield from self._together(iterator, calls)

    def _alone(self, elements: Any) -> Any:
        """Elements made by this thread, as long as calls are cheap.  Returns whether that was all."""
        while self.pending:
            task = self.pending[0]
            element = task.elements.pop(0)
            if not task.elements:
                self.pending.popleft()
            yield applied(self.function, element, self.text)
        while True:
            spent, count = 0.0, 0
            for element in islice(elements, _SAMPLE):
                begin = time.perf_counter()
                result = applied(self.function, element, self.text)
                spent += time.perf_counter() - begin
                count += 1
                yield result
                if spent > _CHEAP * _SAMPLE:
                    return False
            if count < _SAMPLE:
                return True
            yield from results(islice(elements, _UNWATCHED), self.function, self.text)

    def _together(self, elements: object, calls: int) -> Elements:
        crew = _Crew(elements, self, calls)
        threads = []
        surplus = len(self.pending) - 2 * calls  # restored ones that nobody made room for
        try:
            for number in range(calls):
                threads.append(start(crew.work, f"map {number}"))
            threads.append(start(crew.take, "map, source"))
            is_over = False
            while not is_over or self.pending:
                task = crew.given.get()
                task.done.acquire()
                if task is not self.pending[0]:  # where the order does not matter
                    self.pending.remove(task)
                    self.pending.appendleft(task)
                is_over = is_over or not task.elements
                for result in task.results:
                    if type(result) is Failure:
                        raise result.error
                    self.given += 1
                    if self.given == len(task.elements):
                        self._forget()
                        if surplus > 0:
                            surplus -= 1
                        else:
                            crew.room.put(True)
                    yield result
                if not task.elements:
                    self._forget()
        finally:
            crew.stopped = True
            crew.room.put(False)
            for _ in range(calls):
                crew.tasks.put(None)
            ended(threads)

    def _forget(self) -> None:
        """All of the first task was given."""
        self.pending.popleft()
        self.given = 0

    def state(self) -> State:
        with self.busy:
            held = [element for task in self.pending for element in task.elements]
            return {"pending": held[self.given :], **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.pending.extend([_Task([element]) for element in state["pending"]])


class _Crew:
    """What the threads of a parallel map do, and all that they hold: one takes elements, the others call the function.

    Tasks are given in the order of the elements, or as they are done.  They are of one element, until calls turn out
    to be so brief that handing an element over takes longer, where elements are there without waiting.
    """

    def __init__(self, elements: Any, run: ParallelMapRun, calls: int) -> None:
        self.found, self.function, self.text, self.ordered = elements, run.function, run.text, run.ordered
        self.pending, self.busy, self.stopped = run.pending, run.busy, False
        self.size, self.brief = 1, 0  # elements of a task, and how many tasks in a row were brief
        self.most = _MOST_ELEMENTS if run.source.is_nonblocking else 1
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
        end: list[Any] | None = None
        while end is None and self.room.get() and not self.stopped:
            with self.busy:
                elements: list[Any] = []
                try:
                    if not self._fill(elements):
                        end = []
                except BaseException as error:
                    end = [Failure(error)]
                tasks = [_Task(elements)] if elements else []
                if end is not None:
                    tasks.append(_Task([], end))
                for task in tasks:
                    self.pending.append(task)
                    self._put(task)

    def _fill(self, elements: list[Any]) -> bool:
        """Take the elements of a task: those that are there without waiting.  Returns whether there may be more."""
        begin, most = time.perf_counter(), 1
        while len(elements) < most:
            element = next(self.found, _END)
            if element is _END:
                return False
            elements.append(element)
            if time.perf_counter() - begin > _TASK_SECONDS:  # the next may take as long, and these would wait for it
                break
            if len(elements) == 1 and self.size > 1:
                most = min(self.size, _TASK_BYTES // (size_of(element) + 1))
        return True

    def work(self) -> None:
        """Call the function."""
        while (task := self.tasks.get()) is not None and not self.stopped:
            begin = time.perf_counter()
            try:
                with spans.span(self.text, "data", elements=len(task.elements)):
                    for element in task.elements:
                        task.results.append(applied(self.function, element, self.text))
            except BaseException as error:
                task.results.append(Failure(error))
            self._learn(len(task.elements), time.perf_counter() - begin)
            task.done.release()
            if not self.ordered:
                self.given.put(task)

    def _learn(self, calls: int, seconds: float) -> None:
        """How long so many calls took.  Functions that wait for one another, or sleep, are not brief."""
        if seconds > _BRIEF * calls:
            self.size, self.brief = max(1, self.size // 4), 0
            return
        self.brief += 1
        if self.brief >= _BRIEF_TASKS:
            self.size, self.brief = min(2 * self.size, self.most), 0
