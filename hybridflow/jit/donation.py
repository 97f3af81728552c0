"""Donation: which arguments calls of a function give up, and which results may lie in their memory.

A result of the type of an argument that is given up is compiled as a new value of it, as those of variables are: the
program says whether it may be written over the old one (``compiler/program.py``).  Where it may not, or where memory is
not the tensor's own (``core.donation``), the result gets memory of its own, and nothing is copied.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hybridflow.compiler.ir.graph import Graph
from hybridflow.core import pytree
from hybridflow.core.call_binding import Binder
from hybridflow.errors import ArgumentError, ArgumentTypeError

ArgumentPath = tuple[str, Any]
"""A parameter, and which of the arguments that it gathers, by number or name; None: all that it takes."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def argument_paths(python: Callable[..., Any], name: str, argnums: Any, argnames: Any) -> tuple[ArgumentPath, ...]:
    """The parameters that ``donate_argnums`` and ``donate_argnames`` name.  Raises ArgumentError for what there is no
    parameter for, ArgumentTypeError for what is not a number or name."""
    if argnums is None and argnames is None:
        return ()
    kinds = Binder(python, name).kinds()
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else argnums
    names = () if argnames is None else (argnames,) if isinstance(argnames, str) else argnames
    for value, kind, what in ((numbers, int, "donate_argnums"), (names, str, "donate_argnames")):
        good = isinstance(value, Iterable) and all(isinstance(v, kind) and not isinstance(v, bool) for v in value)
        if not good:
            raise ArgumentTypeError(
                "function", f"{what} is {value!r}. Give one {kind.__name__}, or several in a tuple."
            )
    return tuple(
        dict.fromkeys([*(_by_number(name, kinds, n) for n in numbers), *(_by_name(name, kinds, n) for n in names)])
    )


def _by_number(function: str, kinds: Sequence[tuple[str, Any]], number: int) -> ArgumentPath:
    positional = [parameter for parameter, kind in kinds if kind in _POSITIONAL]
    gathering = next((parameter for parameter, kind in kinds if kind is inspect.Parameter.VAR_POSITIONAL), None)
    at = number if number >= 0 or gathering is not None else number + len(positional)
    if 0 <= at < len(positional):
        return positional[at], None
    if at < 0 or gathering is None:
        raise ArgumentError(
            "function", f"donate_argnums has {number}, and {function} takes {len(positional)} arguments."
        )
    return gathering, at - len(positional)


def _by_name(function: str, kinds: Sequence[tuple[str, Any]], name: str) -> ArgumentPath:
    gathers = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(parameter == name and kind not in gathers for parameter, kind in kinds):
        return name, None
    for parameter, kind in kinds:
        if kind is inspect.Parameter.VAR_KEYWORD:
            return parameter, name
    known = ", ".join(parameter for parameter, _ in kinds)
    raise ArgumentError("function", f"donate_argnames has {name!r}, and {function} has the parameters {known}.")


def leaves_of(binder: Binder, structure: pytree.Structure, donated: Sequence[ArgumentPath]) -> set[int]:
    """The positions of the leaves of bound arguments that are given up."""
    places = [place for name, which in donated for place in (binder.places(name) if which is None else [(name, which)])]
    result: set[int] = set()
    first = 0
    for (parameter, kind), part in zip(binder.kinds(), structure.children):
        for which in (which for name, which in places if name == parameter):
            result.update(_leaves_in(part, first, kind, which))
        first += part.leaves
    return result


def _leaves_in(part: pytree.Structure, first: int, kind: object, which: object) -> Iterator[int]:
    if which is None:
        yield from range(first, first + part.leaves)
        return
    entries = part.labels if kind is inspect.Parameter.VAR_KEYWORD else range(len(part.children))
    for entry, child in zip(entries, part.children):
        if entry == which:
            yield from range(first, first + child.leaves)
        first += child.leaves


def matched(inputs: Sequence[int], graph: Graph) -> dict[int, int]:
    """For inputs that are given up the outputs that may lie in their memory: the first of that type for each."""
    taken = set(graph.updates.values())
    free = {k: node for k, node in enumerate(graph.outputs) if node not in taken}
    result: dict[int, int] = {}
    for i in inputs:
        output = next((k for k, node in free.items() if node.type == graph.inputs[i].type), None)
        if output is not None:
            result[i] = output
            del free[output]
    return result


class Donation:
    """What calls of one signature give up: the ``arguments`` of those numbers among the tensors of a call, which are
    ``inputs`` of the program.  ``handed`` are those that are results as they are, ``results`` has for inputs the output
    that may lie in their memory."""

    __slots__ = ("_warned", "arguments", "handed", "inputs", "names", "results")

    def __init__(
        self,
        arguments: Sequence[int],
        inputs: Sequence[int],
        names: Sequence[str],
        handed: set[int],
        results: Mapping[int, int],
    ) -> None:
        self.arguments, self.inputs, self.names = tuple(arguments), tuple(inputs), tuple(names)
        self.handed, self.results = handed.intersection(arguments), dict(results)
        self._warned: set[int] = set()

    def warn(self, function: str, tensors: Sequence[Any], shared: set[int], where: str | None) -> None:
        """Say once of each argument in whose memory no result lies why that is, unless the program is the reason.
        ``shared`` are inputs whose memory others have, too."""
        for k, i, name in zip(self.arguments, self.inputs, self.names):
            if k in self.handed or k in self._warned or (i in self.results and i not in shared):
                continue
            self._warned.add(k)
            why = "no result that is left has its type, so its memory is free when the call is over"
            if i in shared:
                why = (
                    "others have its memory, too (a NumPy or DLPack array, a view, a variable, another argument), so "
                    "the result got memory of its own"
                )
            filename, _, line = (where or "<unknown>:0").rpartition(":")
            text = f"{function}: {name}, {tensors[k].type}, was donated, but {why}."
            warnings.warn_explicit(text, UserWarning, filename, int(line))

    def lines(self, graph: Graph, in_place: Container[int]) -> Iterator[str]:
        """What becomes of each, for people; ``in_place`` are inputs over which a result may be written."""
        for k, i, name in zip(self.arguments, self.inputs, self.names):
            if k in self.handed:
                fate = "a result as it is"
            elif i not in self.results:
                fate = "no result has its type"
            elif i in in_place:
                fate = f"output {self.results[i]} lies in its memory"
            else:
                fate = (
                    f"output {self.results[i]} has memory of its own: it is still read, or a check may fail, after it"
                )
            yield f"{name}: {graph.inputs[i].type}: {fate}"
