"""A call of a function is a transaction: when it raises, every variable has the value that it had before.

Compiled programs see to that themselves: they let no new value be seen until every check has passed.  What is written
in Python meanwhile (a body that runs eagerly, the initial values of variables that a trace makes) is noted here, and
taken back when the outermost call raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hybridflow.tensor import Tensor
    from hybridflow.variable import Variable

T = TypeVar("T")


class _Write:
    """The value of a variable before a call, and the last one that the call gave it."""

    __slots__ = ("after", "before", "variable")

    def __init__(self, variable: Variable, before: Tensor) -> None:
        self.variable, self.before, self.after = variable, before, before


class _Thread(threading.local):
    writes: dict[int, _Write] | None = None  # of the call that is going on, by id of the variable


_thread = _Thread()


def is_open() -> bool:
    """Whether a call is going on in this thread whose writes may have to be taken back."""
    return _thread.writes is not None


def note(variable: Variable, before: Tensor, after: Tensor) -> None:
    """A variable is about to be written; its old value must stay what it is."""
    if _thread.writes is not None:
        _thread.writes.setdefault(id(variable), _Write(variable, before)).after = after


def run(call: Callable[[], T]) -> T:
    """``call()``; if it raises, whatever it is, variables get back the values that they had before.

    A call inside of another is part of that.  A variable that another thread has written since keeps that value.
    """
    if _thread.writes is not None:
        return call()
    writes = _thread.writes = {}
    try:
        return call()
    except BaseException:
        for write in writes.values():
            write.variable._take_back(write.after, write.before)
        raise
    finally:
        _thread.writes = None
