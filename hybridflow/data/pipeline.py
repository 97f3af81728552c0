"""How datasets are described and run.

A *node* describes: it is made once, holds its sources and arguments, can be pickled and is not changed by being run.
A *runner* is one run of a node.  ``run`` is a generator of the elements, which keeps what it has to remember in
attributes of the runner: whenever it has handed an element over, ``state`` describes what comes next, and another
runner of the node that is given that state before it starts goes on from there.  A state is nested dicts and lists of
numbers and elements.  What wants many elements at a time asks for ``next_batch`` in the place of ``run``: for lists of
them, which runs that only change the order make faster than one by one.

Elements that are rows of arrays are made as late as possible: a node whose elements are rows of a *table* in some order
says so (``rows``), and what only changes the order then works with the numbers of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hybridflow.errors import short_location, user_location

INFINITE, UNKNOWN = -1, -2
State = dict[str, Any]
Elements = Generator[Any, None, None]
NextBatch = Callable[[int], list[Any]]
Numbers = Callable[[int], np.ndarray]


class Table:
    """What has rows: each is an element."""

    length: int

    def row(self) -> Callable[[int], Any]:
        """A function that makes the element of a number."""
        raise NotImplementedError

    def span(self, start: int, stop: int) -> Any:
        """Rows from ``start`` to ``stop`` as one element with one axis more."""
        raise NotImplementedError

    def pick(self, numbers: np.ndarray) -> Any:
        """The rows of these numbers as one element with one axis more."""
        raise NotImplementedError

    def spec(self) -> Any:
        """The spec of a row."""
        raise NotImplementedError

    def span_spec(self, extent: int | None) -> Any:
        """The spec of several rows as one element; None where it follows from that of a row."""
        return None


class Rows(NamedTuple):
    """Rows of a table, in the order of the ints that ``numbers`` gives."""

    table: Table
    numbers: Node


class Node:
    """A description of elements."""

    rows: Rows | None = None

    def runner(self) -> PipelineIterator:
        """A new run, from the first element on."""
        raise NotImplementedError

    def spec(self) -> Any:
        """The elements with a TensorSpec for each tensor."""
        raise NotImplementedError

    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""
        return UNKNOWN

    def rest(self) -> int:
        """How many rows the last element has where it is known to have fewer than the others, else 0."""
        return 0


class PipelineIterator:
    """One run of a node.

    ``state_fields`` names the attributes that say what comes next; those of a base class come behind them.  They hold
    other runs, values that are kept as they are, or lists of either.  A class whose state is more than that defines
    ``state`` and ``restore``.

    ``is_nonblocking`` says that no element waits for anybody: no code of the user's makes it, which may itself wait
    until those before it were given.  ``may_move`` says that the next element may be made in another thread than the
    last: what is the user's is calls, none of which is under way in between."""

    state_fields: ClassVar[tuple[str, ...]] = ()  # those that the class adds
    _all_state_fields: ClassVar[tuple[str, ...] | None] = None  # None where nothing is declared

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "state_fields" in vars(cls):
            cls._all_state_fields = (*cls.state_fields, *(cls._all_state_fields or ()))

    @property
    def is_nonblocking(self) -> bool:
        return False

    @property
    def may_move(self) -> bool:
        return self.is_nonblocking

    def run(self) -> Elements:
        raise NotImplementedError

    def next_batch(self) -> NextBatch:
        """A function that gives a list of as many of the next elements, of fewer only where there are no more.

        In the place of ``run``: one of the two, or ``numbers``, is called, once.
        """
        iterator = self.run()
        return lambda count: list(islice(iterator, count))

    def next_indices(self) -> Numbers:
        """As ``next_batch``, where elements are numbers of rows: a function that gives arrays of them."""
        take = self.next_batch()
        return lambda count: np.array(take(count), np.int64)

    def state(self) -> State:
        """What comes next, for ``restore`` of another run of the node."""
        return {name: _saved_field(getattr(self, name)) for name in self._state_field_names()}

    def restore(self, state: State) -> None:
        """Go on where a state was taken; called before the run starts."""
        for name in reversed(self._state_field_names()):  # sources first
            setattr(self, name, restored_field(getattr(self, name), state[name]))
        self.after_restore()

    def _state_field_names(self) -> tuple[str, ...]:
        if self._all_state_fields is None:
            raise NotImplementedError(f"{type(self).__name__} has to declare state_fields")
        return self._all_state_fields

    def after_restore(self) -> None:
        """For subclasses: what is to be done once the fields of the state are set."""


def _saved_field(value: object) -> Any:
    """A field as part of a state, which stays what it is while the run goes on."""
    if isinstance(value, PipelineIterator):
        return value.state()
    return [_saved_field(part) for part in value] if type(value) is list else value


def restored_field(current: Any, value: Any) -> Any:
    """A field once it is given its value of a state, which stays what it is as well.

    A field that counts, or a list of such, is one again.  Raises TypeError for a value that is not of the field's
    kind."""
    if isinstance(current, PipelineIterator):
        current.restore(value)
        return current
    if type(current) is int and current >= 0 and (type(value) is not int or value < 0):
        raise TypeError(f"{value!r:.80} is no count")
    if type(current) is list and type(value) is not list:
        raise TypeError(f"{value!r:.80} is no list")
    if type(current) is list and current and (isinstance(current[0], PipelineIterator) or type(current[0]) is int):
        if len(current) != len(value):
            raise TypeError(f"it is of {len(value)} sources, not of {len(current)}")
        return [restored_field(part, restored) for part, restored in zip(current, value)]
    return [restored_field(None, part) for part in value] if type(value) is list else value


class Failure:
    """An exception on its way to where its turn comes, or to another thread."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class OneSource(PipelineIterator):
    """A run over one other run, from which alone it goes on."""

    state_fields: ClassVar[tuple[str, ...]] = ("source",)

    def __init__(self, source: Node) -> None:
        self.source = source.runner()


class Stepwise(OneSource):
    """A run that has nothing under way, be it a function of the user's, when it has handed an element over."""

    @property
    def may_move(self) -> bool:
        return self.source.may_move


class Passing(Stepwise):
    """A run whose elements are those of its source, or put together of them."""

    @property
    def is_nonblocking(self) -> bool:
        return self.source.is_nonblocking


class Positions(Node):
    """The ints from 0 on."""

    def __init__(self, length: int) -> None:
        self.length = length

    def runner(self) -> PipelineIterator:
        return PositionsRun(self.length)

    def cardinality(self) -> int:
        return self.length


class PositionsRun(PipelineIterator):
    state_fields = ("position",)
    is_nonblocking = True

    def __init__(self, length: int) -> None:
        self.length, self.position = length, 0

    def run(self) -> Elements:
        for position in range(self.position, self.length):
            self.position = position + 1
            yield position

    def next_batch(self) -> NextBatch:
        return self._next

    def _next(self, count: int) -> list[int]:
        start, self.position = self.position, min(self.position + count, self.length)
        return list(range(start, self.position))

    def next_indices(self) -> Numbers:
        return self._next_numbers

    def _next_numbers(self, count: int) -> np.ndarray:
        start, self.position = self.position, min(self.position + count, self.length)
        return np.arange(start, self.position, dtype=np.int64)


class TableNode(Node):
    """The rows of a table, one after another."""

    def __init__(self, table: Table) -> None:
        self.rows = Rows(table, Positions(table.length))

    def runner(self) -> PipelineIterator:
        assert self.rows is not None
        return RowsRun(self.rows)

    def spec(self) -> Any:
        assert self.rows is not None
        return self.rows.table.spec()

    def cardinality(self) -> int:
        assert self.rows is not None
        return self.rows.table.length


class RowsRun(OneSource):
    """Rows, made one by one."""

    is_nonblocking = True

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.numbers)
        self.row = rows.table.row()

    def run(self) -> Elements:
        return map(self.row, self.source.run())  # type: ignore[return-value]  # an iterator will do

    def next_batch(self) -> NextBatch:
        take, row = self.source.next_batch(), self.row
        return lambda count: list(map(row, take(count)))


class Reordering(Node):
    """A node that gives elements of its source without a look at them."""

    def __init__(self, source: Node) -> None:
        self.source = source
        if source.rows is not None:
            self.rows = Rows(source.rows.table, self.over(source.rows.numbers))

    def over(self, source: Node) -> Node:
        """The same of another source, which has no rows."""
        raise NotImplementedError

    def reordering_iterator(self) -> PipelineIterator:
        """A run where there are no rows."""
        raise NotImplementedError

    def runner(self) -> PipelineIterator:
        return self.reordering_iterator() if self.rows is None else RowsRun(self.rows)

    def spec(self) -> Any:
        return self.source.spec()


def skip(elements: Any, count: int) -> None:
    """Let ``count`` elements pass."""
    next(islice(elements, count, count), None)


def call_site(name: str) -> str:
    """What messages call a call of a method of Dataset: its name, and the user's line."""
    where = short_location(user_location(2))
    return f"Dataset.{name} of {where}" if where else f"Dataset.{name}"


def add_note(error: BaseException, text: str) -> None:
    """Note on an error of the user's function where it was given."""
    error.add_note(f"[{text}] raised by the function that it was given.")
