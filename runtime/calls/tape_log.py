"""What a tape has seen, in words: the structure of a computation, beside the objects that it is made of.

Native code writes the words at the price of a few stores (``tape_log_code``), and they are compared as bytes: two
tapes with equal words have seen the same ops on values of the same types, so that what is known of the one holds for
the other.

Each value has a number, in the order of appearance.  ``values`` holds them, which keeps their ids what they are;
``words`` say, one after another,

``VALUE``     dtype number, ndim, extents: the next value comes from outside
``VARIABLE``  the next value is a variable
``READ``      two numbers: of a variable, and of the tensor that was read from it
``WATCH``     the number of a tensor that derivatives are taken with respect to
``CALL``      how many inputs and outputs, the address of what stands for it, their numbers: an output that is not there
              yet is the next value.  ``definitions`` holds what was called, for each of these items

A value is *tracked* when derivatives with respect to it are of interest.  ``table`` finds a value's entry, twice its
number, and 1 more if it is tracked: a dict by id where Python writes, a bytearray of native code's own where that does,
None where there is nothing yet.
"""

from __future__ import annotations

import operator
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.runtime.calls import front_end
from hybridflow.runtime.native.records import (
    LOG_CALL,
    LOG_INPUTS,
    LOG_OUTPUTS,
    LOG_READ,
    LOG_SEEDS,
    LOG_VALUE,
    LOG_VARIABLE,
    LOG_WANTED,
    LOG_WATCH,
    WORD,
)


class _Natives(dict[str, Callable[..., Any]]):
    """Functions on logs whose table is native code's own.  Native operators may have made such a table before there was
    native code for tapes, which is loaded then."""

    load: Callable[[], Any] | None = None

    def __missing__(self, name: str) -> Callable[..., Any]:
        if self.load is not None:
            self.load()
        function = self.get(name)
        if function is None:
            raise KeyError(name)
        return function


natives = _Natives()


class Call(NamedTuple):
    """One item ``CALL`` of a log: what was called, on which values, and the numbers of the results."""

    definition: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


class TapeLog:
    """Base of tapes.  ``_is_plain`` is whether the words say all: no other derivatives, nothing that was renamed."""

    __slots__ = ("_definitions", "_is_plain", "_table", "_values", "_words")
    _definitions: list[Any]
    _is_plain: bool
    _table: bytearray | dict[int, int] | None
    _values: list[Any]
    _words: bytearray

    def _forget_log(self) -> None:
        self._table = self._values = self._words = self._definitions = None  # type: ignore[assignment]
        self._is_plain = True

    def _entry(self, value: object) -> int:
        """Twice the number of a value, and 1 more if it is tracked; -1 where it has none."""
        table = self._table
        if type(table) is dict:
            return table.get(id(value), -1)
        return -1 if table is None else natives["entry"](self, value)

    def _is_tracked(self, value: object) -> bool:
        entry = self._entry(value)
        return entry > 0 and entry & 1 == 1

    def _place(self, value: object, tracked: bool) -> int:
        """Give a value the next number; what it is has been written, or will be."""
        table = self._table
        if table is None:
            self._values, self._definitions, self._words = [], [], bytearray()
            table = self._table = {}
        if type(table) is not dict:
            return natives["place"](self, value, tracked)
        values = self._values
        values.append(value)
        number = len(values) - 1
        while values[number] is not value:  # those of other threads have come since
            number -= 1
        table[id(value)] = 2 * number + tracked
        return number

    def _write(self, *words: int) -> None:
        self._words += packed(words)

    def _size(self) -> int:
        return 0 if self._table is None else len(self._words)

    def _check_order(self, before: int, count: int) -> None:
        """``count`` words were written where there were so many bytes.  If another thread has written others in
        between, values do not have the numbers that the order of words says."""
        if len(self._words) != before + WORD * count:
            self._is_plain = False

    def _number(self, value: object, tracked: bool = False) -> int:
        """The number of a value, which may be new; it is tracked from now on, or as it was."""
        before = self._size()
        entry = self._entry(value)
        if entry < 0:
            number = self._place(value, tracked)
            words = type_words(value)
            if words is None:
                self._is_plain = False
            else:
                self._write(*words)
                self._check_order(before, len(words))
            return number
        if tracked and not entry & 1:
            if type(self._table) is dict:
                self._table[id(value)] = entry | 1
            else:
                natives["track"](self, value)
        return entry >> 1

    def _note_watch(self, tensor: object) -> None:
        self._write(LOG_WATCH, self._number(tensor, True))

    def _note_variable_read(self, variable: object, tensor: object) -> None:
        """``tensor`` was read from ``variable``, and is tracked from now on.  The entry of a variable is odd where the
        one tensor that was read from it is not just the next value."""
        before = self._size()
        entry = self._entry(variable)
        if entry < 0:
            number = self._place(variable, self._entry(tensor) >= 0)
            self._write(LOG_VARIABLE)
            self._check_order(before, 1)
        else:
            number = self._number(variable, True)
        self._write(LOG_READ, number, self._number(tensor, True))

    def _note_call(
        self, definition: object, key: object, inputs: Sequence[Any], outputs: Sequence[Any], tracked: Any
    ) -> None:
        """``definition`` gave outputs, of which some are tracked from now on; ``key``, which it keeps alive, is one
        object for all definitions that are the same."""
        input_numbers = [self._number(x) for x in inputs]
        before = self._size()
        output_numbers = []
        for x, is_tracked in zip(outputs, tracked):
            entry = self._entry(x)
            if entry < 0:
                output_numbers.append(self._place(x, is_tracked))
            else:
                output_numbers.append(self._number(x, is_tracked))
        head = LOG_CALL | len(input_numbers) << LOG_INPUTS | len(output_numbers) << LOG_OUTPUTS
        words = (head, id(key), *input_numbers, *output_numbers)
        # One call in C, so that the calls of several threads are in one order in both.
        _forget(map(_apply, (self._definitions.append, self._words.extend), (definition, packed(words))))
        self._check_order(before, len(words))

    def _key(self, seeds: Sequence[tuple[int, Any]], wanted: Sequence[Sequence[int]], more: list[Any]) -> bytes:
        """What decides the program of a backward pass: from the cotangents, None for ones, of values by their numbers
        to sums of those of groups of values.  Cotangents that are new values are added to ``more``, which are numbered
        on from those of the log; nothing is added to the log."""
        words: list[int] = []
        pairs: list[int] = []
        places: dict[int, int] = {}
        for number, cotangent in seeds:
            place = -1
            if cotangent is not None:
                entry = self._entry(cotangent)
                place = entry >> 1 if entry >= 0 else places.get(id(cotangent), -1)
                if place < 0:
                    place = places[id(cotangent)] = len(self._values) + len(more)
                    more.append(cotangent)
                    words += type_words(cotangent) or (LOG_VALUE, -1, 0)
            pairs += (number, place)
        words += (LOG_SEEDS, len(seeds), *pairs, LOG_WANTED, len(wanted))
        for group in wanted:
            words += (len(group), *group)
        return bytes(self._words) + packed(words)

    def _items(self) -> Iterator[tuple[int, ...]]:
        """The words item by item, each with its kind first."""
        if self._table is None:
            return
        words = memoryview(bytes(self._words)).cast("q")
        place, end = 0, len(words)
        while place < end:
            kind = words[place] & (1 << LOG_INPUTS) - 1
            if kind == LOG_VALUE:
                size = 3 + words[place + 2]
            elif kind == LOG_CALL:
                size = 2 + _inputs(words[place]) + _outputs(words[place])
            else:
                size = {LOG_VARIABLE: 1, LOG_WATCH: 2, LOG_READ: 3}[kind]
            yield (kind, *words[place + (kind != LOG_CALL) : place + size])
            place += size

    def _calls(self, start: int = 0) -> list[Call]:
        """What was called, from the ``start``-th call on."""
        call_items = [item for item in self._items() if item[0] == LOG_CALL]
        calls = []
        for k, (_, head, _, *numbers) in enumerate(call_items[start:], start):
            objects = [self._values[n] for n in numbers]
            count = _inputs(head)
            calls.append(Call(self._definitions[k], tuple(objects[:count]), tuple(objects[count:])))
        return calls

    def _reads(self) -> dict[int, list[int]]:
        """The numbers of what was read from each variable, by its number, in order."""
        result: dict[int, list[int]] = {}
        for item in self._items():
            if item[0] == LOG_READ:
                result.setdefault(item[1], []).append(item[2])
        return result

    def _watched(self) -> set[int]:
        """The numbers of tensors that are watched."""
        return {item[1] for item in self._items() if item[0] == LOG_WATCH}

    def _rename(self, old: Any, new: Any) -> None:
        """Let ``new`` stand wherever ``old`` does."""
        entry = self._entry(old)
        if entry < 0:
            return
        if type(self._table) is not dict:
            self._table = {id(x): self._entry(x) for x in list(self._values)}
        self._is_plain = False
        del self._table[id(old)]
        self._table[id(new)] = entry
        self._values[entry >> 1] = new


class Recording(TapeLog):
    """Base of tapes.  A subclass defines ``__enter__``, ``__exit__``, ``watch`` and ``gradient``, which are ``_enter``,
    ``_exit``, ``_watch`` and ``_gradient`` as well.

    ``_recording`` is whether the tape is told of what happens; ``takes_wholes`` whether it may be of public functions
    in the place of the ops that they consist of; ``_used`` whether a gradient has been asked for, ``persistent``
    whether more may be.  Variables are watched when they are read if ``_watch_accessed``.
    """

    __slots__ = ("_recording", "_used", "_watch_accessed", "persistent", "takes_wholes")
    _recording: bool
    _used: bool
    _watch_accessed: bool
    persistent: bool
    takes_wholes: bool


_forget: Callable[[Iterable[Any]], None] = deque[Any](maxlen=0).extend
_apply: Callable[[Callable[[Any], Any], Any], Any] = operator.call


def packed(words: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(words)}q", *words)


def type_words(value: object) -> tuple[int, ...] | None:
    """The item for a value from outside; None where its type is not all that there is to say."""
    array: object = getattr(value, front_end.known().array_slot) if type(value) is front_end.tensor_type() else None
    if type(array) is not np.ndarray:
        return None
    return LOG_VALUE, array.dtype.num, array.ndim, *array.shape


def _inputs(head: int) -> int:
    return head >> LOG_INPUTS & (1 << LOG_OUTPUTS - LOG_INPUTS) - 1


def _outputs(head: int) -> int:
    return head >> LOG_OUTPUTS
