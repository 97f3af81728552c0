"""The order of effects, as a trace keeps it: the token that the next effect takes is the value of a variable.

Control flow hands on what its regions read and assign; effects are so carried through branches and loops, each after
the one before it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from hybridflow.compiler.ir.results import TOKEN
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.core.context import now, tracing
from hybridflow.core.tensor import Tensor


class _Order:
    """Stands among the variables that regions assign."""

    __slots__ = ()
    name = "order"
    is_watched = False
    _tensor = SimpleNamespace(type=TOKEN)

    def _read(self) -> Any:
        trace = now().trace
        assert trace is not None
        return trace.read_variable(self)

    def assign(self, token: object) -> None:
        trace = now().trace
        assert trace is not None
        trace.write_variable(self, token)


ORDER: Any = _Order()


def call_in_order(function: Callable[..., Any], inputs: Sequence[Tensor], types: Sequence[TensorType]) -> list[Tensor]:
    """Have the program that is traced call ``function`` with the arrays of ``inputs``, after all earlier effects and
    before all later ones; the arrays of these ``types`` that it returns.  No tape is told."""
    trace: Any = now().trace
    with tracing(trace):
        number = _number(trace, function)
        token, *result = trace.record(
            TABLE["callback"], (ORDER._read(), *inputs), {"number": number, "types": tuple(types)}
        )
        ORDER.assign(token)
    return result


def ask(
    function: Callable[..., Any],
    inputs: Sequence[Tensor],
    types: Sequence[TensorType],
    is_last: bool = False,
    exchange: tuple[int, ...] = (),
) -> list[Tensor]:
    """The same of a function that computes from its arguments alone: when and how often it is called is open.  A
    derivative through what ``is_last`` is an error, through another there is none.  What has the record of an
    ``exchange`` is called natively where it can be."""
    trace: Any = now().trace
    attrs = {"number": _number(trace, function), "types": tuple(types), "is_last": is_last, "exchange": exchange}
    with tracing(trace):
        results = trace.record(TABLE["ask"], inputs, attrs)
    return list(results)


class Raising:
    """What a program calls to raise an error of a ``kind``: ``raises``, which is given arrays.  Where that cannot be
    had, as in a file, the error says the ``message`` alone, or the ``pieces`` of it: texts, and the numbers of arrays
    that say extents.  Without a kind no user sees the error."""

    __slots__ = ("_raises", "is_constant", "kind", "message", "pieces")

    def __init__(
        self,
        raises: Callable[..., NoReturn],
        kind: type[BaseException] | None,
        message: str,
        is_constant: bool,
        pieces: Sequence[str | int] = (),
    ) -> None:
        self._raises, self.kind, self.message, self.is_constant = raises, kind, message, is_constant
        self.pieces = pieces

    def __call__(self, *arrays: np.ndarray) -> NoReturn:
        self._raises(*arrays)

    def example(self) -> BaseException:
        """The error that it raises where that is known, else one that says the message."""
        try:
            if self.is_constant:
                self._raises()
            return Exception(self.message)
        except Exception as error:
            return error


def require(
    ok: Tensor,
    raises: Callable[..., NoReturn],
    inputs: Sequence[Tensor],
    kind: type[BaseException] | None,
    message: str,
    pieces: Sequence[str | int] = (),
) -> None:
    """Have the program that is traced end where ``ok``, a scalar, is False: with what ``raises`` raises, which is given
    the arrays of ``inputs``; a ``message`` is all that a GPU can say.  For the ``kind`` of error, and the ``pieces``
    of what it says, see ``Raising``."""
    trace: Any = now().trace
    raising = Raising(raises, kind, message, not inputs, pieces)
    with tracing(trace):
        trace.record(TABLE["require"], (ok, *inputs), {"number": _number(trace, raising), "message": message})


def renumbered(functions: Sequence[Callable[..., Any]]) -> Callable[[int], int]:
    """What says the number, in the program that is traced, of a function that another program calls by number."""
    trace: object = now().trace
    return functools.cache(lambda number: _number(trace, functions[number]))


def _number(trace: Any, function: Callable[..., Any]) -> int:
    trace.functions.append(function)
    return len(trace.functions) - 1
