"""Checks of every op's float results: what ``hf.debugging.enable_check_numerics`` switches on.

Ops that run one by one are looked at when they have run.  A program gets a check behind each op of its graph, and of
the graphs inside, before it is compiled; derivatives are programs as well.  While checks are on nothing takes a native
shortcut, and programs with checks are kept apart from those without.

An op is at fault for a NaN, and for an infinity; but for a negative one only if none went in.  That is what scores are
masked with, and goes away in an exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.dtypes import is_float
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.core.context import add_process_reason
from hybridflow.errors import InvalidArgumentError, user_location

is_on = False

_COMPUTING = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.SCAN, Kind.CONTRACT, Kind.CONVOLVE, Kind.SCATTER})
_PICKING = frozenset(
    {"where", "after", "stop_gradient", "scatter_set", "transfer", "transfer_back"}
)  # results are elements of what went in


def switch(on: bool) -> None:
    """Have every op checked from now on, in the whole process, or none."""
    global is_on
    if on != is_on:
        is_on = on
        add_process_reason(1 if on else -1)  # native code does not look at results


def _is_checked(op: Any) -> bool:
    """Whether an op computes elements, rather than moving those that there are, or making new ones."""
    return (op.kind in _COMPUTING and op.name not in _PICKING) or (op.kind is Kind.CONTROL and _is_function(op))


def _is_function(op: Any) -> bool:
    """Whether a CONTROL op is a function of LAPACK's: neither control flow, whose ops are checked, nor the user's."""
    return op.calls_host and op.name not in ("callback", "ask", "require")


def check(op: Any, inputs: Iterable[Any], out: object) -> None:
    """Raise InvalidArgumentError where the tensor, or one of the tensors, that an op made has what it must not."""
    if not _is_checked(op):
        return
    floats = None
    for part in out if isinstance(out, tuple) else (out,):
        if is_float(part.dtype):
            array = part.numpy()
            if not np.isfinite(array).all():
                floats = floats or [x.numpy() for x in inputs if is_float(x.dtype)]
                if not (np.less(array, np.inf).all() and any(np.isneginf(x).any() for x in map(_wide, floats))):
                    raise _error(op.name, user_location(), array, part.type)


def checked(graph: Graph, functions: Sequence[Callable[..., Any]]) -> tuple[Graph, Sequence[Callable[..., Any]]]:
    """The graph with a check behind each op, and the functions that it calls by number."""
    adding = _Adding(list(functions))
    return adding.graph(graph, None), adding.functions


class _Adding:
    """The checks of one program.  Its ``functions`` are those that it calls by number."""

    def __init__(self, functions: list[Callable[..., Any]]) -> None:
        self.functions = functions
        self._done: dict[Graph, Graph] = {}

    def graph(self, graph: Graph, place: str | None) -> Graph:
        """The graph with its checks.  ``place`` is the line of ops that have none."""
        if graph not in self._done:
            self._done[graph] = self._add_checks(graph, place)
        return self._done[graph]

    def _add_checks(self, graph: Graph, place: str | None) -> Graph:
        read = {node.inputs[0] for node in graph.nodes if node.op.kind is Kind.PROJECT}
        new: dict[Node, Node] = {}
        b = GraphBuilder(TABLE)
        for old in graph.nodes:
            inputs = [new.get(n, n) for n in old.inputs]
            attrs = {name: self._inside(value, old.where or place) for name, value in old.attrs.items()}
            node = new[old] = Node(old.op, inputs, attrs, old.type, old.where)
            b.nodes.append(node)
            maker = node.inputs[0] if node.op.kind is Kind.PROJECT else node
            if _is_checked(maker.op) and (node is not maker or old not in read):
                b.location = maker.where or place
                self._check(b, maker, node)
        return graph.rebuild(new, b.nodes)

    def _inside(self, value: object, place: str | None) -> Any:
        if isinstance(value, Graph):
            return self.graph(value, place)
        return tuple([self._inside(part, place) for part in value]) if isinstance(value, tuple) else value

    def _check(self, b: GraphBuilder, maker: Node, result: Node) -> None:
        """Add a check of what ``maker`` has made."""
        if not _is_float(result):
            return
        ok, no_worse = _all(b, b.isfinite(result)), _all(b, b.less(result, b.full(np.inf, result)))
        for x in filter(_is_float, maker.inputs):
            went_in = _any(b, b.equal(x, b.full(-np.inf, x)))
            ok = b.logical_or(ok, b.logical_and(no_worse, went_in))
        name, where, type = maker.op.name, b.location, result.type

        def fail(array: np.ndarray) -> NoReturn:
            raise _error(name, where, array, TensorType(array.shape, type.dtype))

        self.functions.append(fail)
        b.require(ok, result, number=len(self.functions) - 1, message=f"[{name}] the result is not finite.")


def _is_float(node: Node) -> bool:
    return isinstance(node.type, TensorType) and not is_token(node.type) and is_float(node.dtype)


def _all(b: GraphBuilder, x: Node) -> Node:
    return b.all(x, axes=tuple(range(len(x.shape)))) if x.shape else x


def _any(b: GraphBuilder, x: Node) -> Node:
    return b.any(x, axes=tuple(range(len(x.shape)))) if x.shape else x


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def _error(name: str, where: str | None, array: np.ndarray, type: TensorType) -> InvalidArgumentError:
    return InvalidArgumentError(name, f"the result has {statistics(array, type)}", where)


def statistics(array: np.ndarray, type: TensorType) -> str:
    """What an array that is not finite throughout holds, as a sentence and a half."""
    wide = _wide(array)
    nans, infinite = np.count_nonzero(np.isnan(wide)), np.count_nonzero(np.isinf(wide))
    finite = wide[np.isfinite(wide)]
    span = f" The finite ones lie between {finite.min():.6g} and {finite.max():.6g}." if finite.size else ""
    return f"{nans} NaN and {infinite} infinite of {wide.size} elements ({type}).{span}"
