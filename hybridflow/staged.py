"""Staged programs: finished traces that run compiled, and that tapes see as one differentiable operation.

When a tape watches an input, the program that runs also returns the intermediate values that its derivative needs, and
the derivative is a staged program itself, made by the same reverse walk that the tape uses.  That program is recorded
on outer tapes in turn, so derivatives of any order work, and each is traced and compiled once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.autodiff import Record, backward
from hybridflow.compiler.ir.dtypes import is_float
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.context import current, tracing
from hybridflow.dispatch import apply, builder
from hybridflow.errors import TraceError
from hybridflow.execution import executable_for
from hybridflow.tensor import SymbolicTensor, Tensor, wrap
from hybridflow.trace import State, Trace
from hybridflow.variable import Variable

if TYPE_CHECKING:
    from hybridflow.runtime.cpu import Executable


def _owned_array(variable: Variable) -> Any:
    """The variable's buffer for writing in place: its own if nobody else can see it, else a copy."""
    tensor = variable._tensor
    array = tensor._array
    base = array.base
    # Counted are: the slot or attribute that holds the object, the local name, and getrefcount's argument.
    alone = sys.getrefcount(tensor) == 3 and sys.getrefcount(array) == 3
    if base is not None:
        alone = alone and sys.getrefcount(base) == 3 and getattr(base, "base", None) is None
    return array if alone and array.flags.c_contiguous and array.flags.writeable else array.copy(order="C")


class Staged:
    """A finished trace and its graph.  Arguments are the tensors for its ARGUMENT inputs, in order."""

    __slots__ = (
        "__weakref__",
        "_derivatives",
        "_executable",
        "_lock",
        "_updates",
        "fastmath",
        "graph",
        "sources",
        "trace",
    )

    def __init__(self, trace: Trace, outputs: Sequence[Node], fastmath: bool) -> None:
        self.trace = trace
        self.graph: Graph = trace.finish(outputs)
        self.sources = trace.sources
        self.fastmath = fastmath
        self._updates = tuple(self.graph.updates)
        self._executable: Executable | None = None
        self._derivatives: dict[tuple[int, ...], _Derivative] = {}
        self._lock = threading.RLock()

    def compile(self) -> Executable:
        """The executable of the plain program, made on first use."""
        if self._executable is None:
            with self._lock:
                if self._executable is None:
                    self._executable = executable_for(self.graph, self.fastmath)
        return self._executable

    def __call__(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Run on ``arguments``: eagerly, into the trace that is going on, and onto the tapes that are active."""
        if current.trace is not None:
            return self._inline(arguments)
        if current.tapes:
            inputs = self._inputs(arguments)
            mask = self._watch(inputs)
            if mask:
                return self._recorded(inputs, mask)
            del inputs
        return self._run(self.compile(), self._inputs(arguments))

    def _inputs(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """One tensor per graph input."""
        given = iter(arguments)
        return [
            source.variable._tensor
            if isinstance(source, State)
            else source
            if isinstance(source, Tensor)
            else next(given)
            for source in self.sources
        ]

    def _run(self, executable: Executable, inputs: list[Tensor]) -> list[Tensor]:
        arrays = [x._array for x in inputs]
        if not self._updates:
            return [wrap(out) for out in executable.run(arrays)]
        inputs.clear()  # what only the variables hold may be written in place
        for position in self._updates:
            arrays[position] = None
        owned = [_owned_array(self.sources[position].variable) for position in self._updates]  # type: ignore[union-attr]
        for position, array in zip(self._updates, owned):
            arrays[position] = array
        outputs = executable.run(arrays)
        for position, array in zip(self._updates, owned):
            self.sources[position].variable._tensor = wrap(array)  # type: ignore[union-attr]
        return [wrap(out) for out in outputs]

    def _inline(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Record the ops of the graph anew, into the trace that is going on."""
        if self.trace.spans:
            raise TraceError(
                self.graph.name,
                "it holds a custom gradient, so it cannot be called as a concrete function inside another trace. "
                "Call the hf.function itself there.",
            )
        given = iter(arguments)
        values: dict[Node, Tensor] = {}
        for node, source in zip(self.graph.inputs, self.sources):
            if isinstance(source, State):
                values[node] = source.variable._read()
            else:
                values[node] = source if isinstance(source, Tensor) else next(given)
        for node in self.graph.nodes:
            values[node] = apply(node.op, *(values[n] for n in node.inputs), **node.attrs)
        for position, node in self.graph.updates.items():
            self.sources[position].variable.assign(values[node])  # type: ignore[union-attr]
        return [values[node] for node in self.graph.outputs]

    # Derivatives

    def _watch(self, inputs: Sequence[Tensor]) -> tuple[int, ...]:
        """Tell the tapes which variables are read; the positions of the inputs that some tape tracks."""
        tapes = current.tapes
        for source, tensor in zip(self.sources, inputs):
            if isinstance(source, State) and source.reads:
                for tape in tapes:
                    tape.watch_read(source.variable, tensor)
        return tuple(i for i, x in enumerate(inputs) if any(tape.tracks(x) for tape in tapes))

    def _recorded(self, inputs: list[Tensor], mask: tuple[int, ...]) -> list[Tensor]:
        with self._lock:
            derivative = self._derivatives.get(mask)
            if derivative is None:
                derivative = self._derivatives[mask] = _Derivative(self, mask)
        results = self._run(derivative.compile(), list(inputs))
        pullback = _Pullback(derivative, inputs, results)
        watched = tuple(inputs[i] for i in mask)
        for tape in current.tapes:
            tape.record_custom(watched, tuple(results), pullback)
        return results[: len(self.graph.outputs)]


class _Pullback:
    """The derivative of one call: the values of its inputs and results, and the program to run on them."""

    __slots__ = ("_derivative", "_values")

    def __init__(self, derivative: _Derivative, inputs: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        self._derivative = derivative
        self._values = [inputs[position] if is_input else results[position] for is_input, position in derivative.places]

    def __call__(self, *cotangents: Tensor | None) -> list[Tensor | None]:
        derivative = self._derivative
        program = derivative.program(tuple(g is not None for g in cotangents))
        values = [self._values[derivative.index[node]] for node in program.kept]
        results = program.staged([*(g for g in cotangents if g is not None), *values])
        return [None if k is None else results[k] for k in program.positions]


class _Backward:
    """A derivative program: ``kept`` are the forward values it takes after the cotangents, ``positions`` the result of
    each watched input, None where there is no path to it."""

    __slots__ = ("kept", "positions", "staged")

    def __init__(self, staged: Staged, positions: Sequence[int | None]) -> None:
        self.staged, self.positions = staged, positions
        self.kept = [source for source in staged.sources if isinstance(source, Node)]


class _Derivative:
    """The derivative of a staged program with respect to the inputs in ``mask``.

    ``results`` are the program's outputs and the intermediate values kept for the derivative.  All of them may have a
    cotangent: the kept values get one from the derivative of the derivative.
    """

    __slots__ = ("_executable", "_lock", "_mask", "_programs", "_staged", "index", "places", "results")

    def __init__(self, staged: Staged, mask: tuple[int, ...]) -> None:
        self._staged, self._mask = staged, mask
        self._lock = threading.RLock()
        graph = staged.graph
        usual = tuple(is_float(node.dtype) for node in graph.outputs)
        first = self._trace_backward(graph.outputs, usual, everything_available=True)
        known = {*graph.inputs, *graph.outputs}
        self.results = (*graph.outputs, *(node for node in first.kept if node not in known))
        # Where each value that a derivative program may take is found: (whether among the inputs, position).
        found: dict[Node, tuple[bool, int]] = {node: (False, k) for k, node in enumerate(self.results)}
        found.update((node, (True, i)) for i, node in enumerate(graph.inputs))
        self.places = list(found.values())
        self.index = {node: k for k, node in enumerate(found)}
        extra = len(self.results) - len(graph.outputs)
        self._programs = {usual + (False,) * extra: first}
        self._executable: Executable | None = None if extra else staged.compile()

    def compile(self) -> Executable:
        """The forward program that also returns the kept values."""
        with self._lock:
            if self._executable is None:
                graph = self._staged.graph
                extended = Graph(graph.name, graph.inputs, graph.nodes, self.results, graph.updates)
                self._executable = executable_for(extended, self._staged.fastmath)
            return self._executable

    def program(self, present: tuple[bool, ...]) -> _Backward:
        """The derivative program for cotangents of those results."""
        with self._lock:
            found = self._programs.get(present)
            if found is None:
                found = self._programs[present] = self._trace_backward(self.results, present)
            return found

    def _trace_backward(
        self, results: Sequence[Node], present: Iterable[bool], everything_available: bool = False
    ) -> _Backward:
        forward = self._staged.trace
        available = None if everything_available else {*self._staged.graph.inputs, *results}
        trace = Trace(f"{forward.name}.gradient", parent=forward, available=available)
        symbols: dict[Node, SymbolicTensor] = {}

        def symbol(node: Node) -> SymbolicTensor:
            if node not in symbols:
                symbols[node] = SymbolicTensor(node, forward)
            return symbols[node]

        records = _records(forward, symbol)
        with tracing(trace):
            seeds = [
                (symbol(node), trace.argument(node.type, f"cotangent{k}"))
                for k, (node, wanted) in enumerate(zip(results, present))
                if wanted
            ]
            sources: list[SymbolicTensor] = []
            owners: list[int] = []
            for position, i in enumerate(self._mask):
                source = forward.sources[i]
                nodes = [t._node for t in source.reads] if isinstance(source, State) else [self._staged.graph.inputs[i]]
                sources += map(symbol, nodes)
                owners += [position] * len(nodes)
            totals: list[Tensor | None] = [None] * len(self._mask)
            for position, cotangent in zip(owners, backward(builder, records, seeds, sources)):
                if cotangent is not None:
                    so_far = totals[position]
                    totals[position] = cotangent if so_far is None else builder.add(so_far, cotangent)
            outputs: list[Node] = []
            positions: list[int | None] = []
            for total in totals:
                positions.append(None if total is None else len(outputs))
                if total is not None:
                    outputs.append(trace.node_of(total))
        return _Backward(Staged(trace, outputs, self._staged.fastmath), positions)


def _records(trace: Trace, symbol: Any) -> list[Record]:
    """What was traced, as records for the reverse walk; custom gradients replace the nodes that carry them."""
    span_of = {out._node: span for span in trace.spans for out in span.outputs}
    records: list[Record] = []
    done: set[int] = set()
    for node in trace.nodes:
        span = span_of.get(node)
        if span is None:
            records.append(Record(node.op, tuple(map(symbol, node.inputs)), node.attrs, (symbol(node),)))
        elif id(span) not in done:
            done.add(id(span))
            inputs = tuple(symbol(x._node) for x in span.inputs)  # type: ignore[attr-defined]
            records.append(Record(None, inputs, {}, tuple(symbol(x._node) for x in span.outputs), span.vjp))
    return records
