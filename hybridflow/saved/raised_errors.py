"""Errors that programs raise, as files hold them: their type and what they say."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from hybridflow import errors
from hybridflow.compiler.ir.graph import Graph, graphs_in
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import OF_PROGRAM, CheckpointError, HybridflowError, short_location
from hybridflow.saved.format import packed, unpacked
from hybridflow.tracing.effect_token import Raising

_STAGE = re.compile(r"(.*?)\[(\w{1,80})\] (.*)", re.DOTALL)
_REQUIRE = TABLE["require"]


def records_of(functions: Sequence[Any]) -> list[Any]:
    """What a file holds of the functions that a program calls: errors that they raise; None for others."""
    return [_record_of(one) for one in functions]


def _record_of(function: object) -> list[Any] | None:
    if isinstance(function, KeptError):
        return function.record
    return _record(function, function.kind) if isinstance(function, Raising) and function.kind is not None else None


def numbers_kept(graph: Graph, records: Sequence[Any]) -> bool:
    """Whether all that a graph calls by numbers are errors with a record."""
    for node in graph.nodes:
        if node.op.calls_host and "number" in node.attrs:
            number = node.attrs["number"]
            if node.op is not _REQUIRE or number >= len(records) or records[number] is None:
                return False
        if not all(numbers_kept(inner, records) for inner in graphs_in(node.attrs)):
            return False
    return True


def kept_errors(records: Sequence[Any]) -> list[Callable[..., Any]]:
    """What a program of a file calls by numbers.  Raises ValueError where the file has something else than errors."""
    return [_refuse if record is None else KeptError(record) for record in records]


def _refuse(*arrays: object) -> NoReturn:
    raise CheckpointError("saved", "a program calls what its file does not hold.")


class KeptError:
    """What a program of a file calls to raise an error that was kept.

    Args:
        record: what the file says: the name of a class of Python's or ours, and its arguments; of the last one there
            may be pieces, with the numbers of arrays that the program gives.

    Raises ValueError where that is none.
    """

    __slots__ = ("_args", "_kind", "_pieces", "record")

    def __init__(self, record: Any) -> None:
        name, args, *pieces = record
        kind, args = _named(name), unpacked(args)
        self._pieces: list[Any] = pieces[0] if pieces else []
        if kind is None or not isinstance(args, list) or not isinstance(self._pieces, list):
            raise ValueError("an error of the program is none")
        self._kind, self._args, self.record = kind, args, record
        if not isinstance(self._made([]), Exception):
            raise ValueError("an error of the program is none")

    def __call__(self, *arrays: object) -> NoReturn:
        raise self._made(arrays)

    def _made(self, arrays: Sequence[Any]) -> Exception:
        args = self._args
        if self._pieces:
            args = [*args, "".join([one if type(one) is str else _shown(arrays, one) for one in self._pieces])]
        error = self._kind(*args)
        if not isinstance(error, HybridflowError):
            error.add_note(OF_PROGRAM)
        return error


def _shown(arrays: Sequence[Any], number: object) -> str:
    """What an array of that number says.  Raises ValueError for what is no number."""
    if type(number) is not int or number < 0:
        raise ValueError("an error of the program is none")
    return str(arrays[number].tolist()) if number < len(arrays) else "?"


def _named(name: object) -> type[Exception] | None:
    """A class of errors of ours, or of Python's."""
    if not isinstance(name, str):
        return None
    kind = getattr(errors, name, None) or getattr(builtins, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) and kind.__name__ == name else None


def _record(raising: Raising, kind_raised: type[BaseException]) -> list[Any] | None:
    """The nearest class to that of an error which others have too, and what to make one of."""
    if not issubclass(kind_raised, Exception):
        return None
    example = raising.example()
    said = str(example)
    where = getattr(example, "where", None)
    if where:
        said = said.removesuffix(f"  ({short_location(where)})")
    name = f"{kind_raised.__name__}: "
    said = said.removeprefix(name)
    pieces = _kept_pieces(raising)
    for kind in kind_raised.__mro__:
        if _named(kind.__name__) is not kind:
            continue
        args = [said if kind is kind_raised else name + said]
        if issubclass(kind, HybridflowError):
            stage = _STAGE.fullmatch(said)
            args = ["program", said] if stage is None else [stage[2], stage[1] + stage[3]]
            if pieces and stage is not None and not stage[1]:
                return [kind.__name__, packed(args[:1], "an error"), pieces]
        elif type(example) is kind:
            args = list(example.args)
        try:
            record = [kind.__name__, packed(args, "an error")]
            KeptError(record)
        except Exception:  # its constructor takes something else
            continue
        return record
    return ["Exception", packed([name + said], "an error")]


def _kept_pieces(raising: Raising) -> list[str | int]:
    """The pieces of what an error of ours says, behind its stage and before its place; none where it has none."""
    pieces = list(raising.pieces)
    if pieces and isinstance(pieces[0], str) and isinstance(pieces[-1], str):
        pieces[0] = re.sub(r"\A\[\w+\] ", "", pieces[0])
        pieces[-1] = re.sub(r"  \([^()]*:\d+\)\Z", "", pieces[-1])
    return pieces
