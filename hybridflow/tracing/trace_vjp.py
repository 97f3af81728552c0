"""The derivatives of staged programs: the programs that run backward, and what tapes hold of a call for them.

A staged program that runs under a tape also returns the intermediate values that its derivative needs.  The derivative
is a staged program itself, made by the same reverse walk that the tape uses.  That program is recorded on outer tapes
in turn, so derivatives of any order work, and each is traced and compiled once.

Cotangents are added up in the order of eager mode, so every value must be one value to the tapes, whichever programs
read it: see ``RecomputedValue``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from hybridflow.compiler.autodiff import Record, Results, backward, records_of
from hybridflow.compiler.device_partition import InputPlacement
from hybridflow.compiler.forward_mode import forward
from hybridflow.compiler.graph_inlining import symbols_in, symbols_of_input, with_extents
from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE
from hybridflow.compiler.ops.sparse_grad import SparseGrad, is_few, lookups, mapped
from hybridflow.core.context import current, tracing
from hybridflow.core.tensor import Tensor
from hybridflow.eager import nan_checks
from hybridflow.eager.dispatch import builder
from hybridflow.runtime import fork_safe_locks
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import Trace

# Where a program runs: the name of a device, or, where it takes several, where its inputs lie.
Where = str | tuple[InputPlacement, ...]
# Pushes tangents through a record that has a derivative of its own.
Through = Callable[[Record, Sequence[Any]], Sequence[Any]]
# The positions of the watched values (``StagedProgram.values``), those that are one and the same value together.
Watched = tuple[tuple[int, ...], ...]


class StagedProgram(Protocol):
    """A finished trace that runs compiled, see ``CompiledTrace``."""

    @property
    def trace(self) -> Trace: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def sources(self) -> Sequence[object]: ...

    @property
    def values(self) -> Sequence[Node]: ...

    @property
    def later(self) -> Sequence[object]: ...

    @property
    def again(self) -> Sequence[Node]: ...

    @property
    def origin(self) -> Derivative | None: ...

    def __call__(self, arguments: Sequence[Tensor], pullback: Pullback | None = None) -> list[Tensor]: ...

    def compile(self, device: Where | None = None) -> Any: ...

    def derive(self, trace: Trace, outputs: Sequence[Node], derivative: Derivative) -> StagedProgram: ...

    def _executable(self, graph: Graph, where: Where, checked: bool) -> Any: ...

    def _inputs(self, arguments: Sequence[Tensor]) -> list[Tensor]: ...


class RecomputedValue:
    """A value of a program that no tensor holds: programs that need it compute it again, because that is cheaper.

    To tapes it is still one value.  It has one total of cotangents, from the operations of all programs that read it,
    as in eager mode, where it is one tensor; what they add up to goes on from where it was first computed.
    """

    __slots__ = ("type",)

    def __init__(self, node: Node, sizes: Mapping[str, Extent]) -> None:
        self.type = node.type.with_shape(tuple(with_extents(node.type.shape, sizes))) if sizes else node.type

    @property
    def dtype(self) -> Any:
        return self.type.dtype


class Pullback:
    """The derivative of one call: the values of its inputs and results, and the program to run on them.

    ``outer`` is the pullback that made the call, when it was a backward program's: a derivative of a derivative may use
    values of the first program that the second one does not.  ``outputs`` are the values that may have a cotangent, in
    the order in which it is called with them: the results, and what other programs compute again, as they come to be.
    """

    __slots__ = ("_derivative", "_outer", "_reads", "_recomputed", "_sizes", "_values", "outputs")

    accumulates = True  # see ``autodiff.Record``

    def __init__(
        self,
        derivative: Derivative,
        inputs: Sequence[Tensor],
        results: Sequence[Tensor],
        reads: Mapping[Node, Any],
        outer: Pullback | None,
        sizes: Mapping[str, Extent],
    ) -> None:
        self._derivative, self._outer, self._reads, self._sizes = derivative, outer, reads, sizes
        self._values = [
            inputs[position] if is_input else results[position] for is_input, position in derivative.positions
        ]
        self._recomputed: dict[Node, RecomputedValue] = {}
        inside = derivative.inside  # results that are inputs, or later reads, have their cotangents as such
        self.outputs: list[Any] = [
            result if node in inside and node not in reads else RecomputedValue(node, sizes)
            for node, result in zip(derivative.results, results)
        ]

    def __call__(self, *cotangents: Tensor | None, so_far: Sequence[Tensor | None]) -> list[Tensor | SparseGrad | None]:
        derivative = self._derivative
        nodes = (*derivative.results, *self._recomputed, *derivative.sources)
        seeds = [(node, g) for node, g in zip(nodes, (*cotangents, *so_far)) if g is not None]
        program = derivative.program(tuple([node for node, _ in seeds]))
        derivative.check_sizes(self._sizes)
        arguments = [*(g for _, g in seeds), *(self._value(node) for node in program.residuals)]
        return program(arguments, self)

    def push(self, tangents: Sequence[Tensor | None], through: Through) -> list[Any]:
        """The tangents of ``outputs`` where the watched values have these: op by op, as in eager mode.  ``through``
        pushes them through what has a derivative of its own."""
        derivative = self._derivative
        moved = tuple([k for k, t in enumerate(tangents) if t is not None])
        program = derivative.tangent_program(moved, (*derivative.results, *self._recomputed), through)
        derivative.check_sizes(self._sizes)
        arguments = [*(t for t in tangents if t is not None), *(self._value(node) for node in program.residuals)]
        return program(arguments, self)

    def rename(self, old: Tensor, new: Tensor) -> None:
        """Let ``new`` stand wherever ``old`` does: that was given another value."""
        for values in (self._values, self.outputs):
            values[:] = [new if x is old else x for x in values]
        for node, read in self._reads.items():
            if read is old:
                self._reads = {**self._reads, node: new}
        if self._outer is not None:
            self._outer.rename(old, new)

    def _value(self, node: Node) -> Tensor:
        position = self._derivative.index.get(node)
        if position is not None:
            return self._values[position]
        assert self._outer is not None, "a program keeps values of its ancestors only"
        return self._outer._value(node)

    def known(self, node: Node) -> Any:
        """What the tapes know a value of this program or of an ancestor by, when a program computes it again: a tensor
        that there is anyway, or what stands for it.  None where no derivative passes."""
        derivative = self._derivative
        if node in self._reads:
            return self._reads[node]
        position = derivative.index.get(node)
        if position is not None:
            return self._values[position]
        if node in derivative.again or node not in derivative.inside:
            assert self._outer is not None, "a program computes values of its ancestors again only"
            return self._outer.known(derivative.again.get(node, node))
        if node not in derivative.dependent:
            return None
        result = self._recomputed.get(node)
        if result is None:
            result = self._recomputed[node] = RecomputedValue(node, self._sizes)
            self.outputs.append(result)
        for tape in current.tapes:
            tape.follow(result, self.outputs)
        return result


class _Program:
    """A derivative program: ``kept`` are the forward values it takes after the cotangents or tangents; ``totals`` the
    node of the total of each group of watched values, or of the tangent of each result; None where there is no path."""

    __slots__ = ("_inputs", "_totals", "residuals", "staged")

    def __init__(self, staged: StagedProgram, totals: Sequence[Node | SparseGrad | None]) -> None:
        self.staged = staged
        self.residuals = [source for source in staged.sources if isinstance(source, Node)]
        outputs = {node: k for k, node in enumerate(staged.graph.outputs)}
        inputs = {node: i for i, node in enumerate(staged.graph.inputs)}

        def place(node: Node) -> tuple[bool, int]:
            """Whether it is an input, and its position."""
            return node not in outputs, outputs[node] if node in outputs else inputs[node]

        # Of rows that are added to zeros the places of all parts; None where there is no total.
        self._totals = [
            SparseGrad(builder, total.type, mapped(place, total.terms))
            if isinstance(total, SparseGrad)
            else None
            if total is None
            else place(total)
            for total in totals
        ]
        self._inputs = any(place(node)[0] for total in totals for node in _parts_of(total))

    def __call__(self, arguments: Sequence[Tensor], caller: Pullback) -> list[Tensor | SparseGrad | None]:
        """The totals.  One value is one tensor, be it a total of several groups or an argument that nothing is added
        to, as it is in eager mode: tapes tell values apart by identity."""
        results = self.staged(arguments, caller) if self.staged.graph.outputs else []
        inputs = self.staged._inputs(arguments) if self._inputs else []

        def node_of(place: tuple[bool, int]) -> Tensor:
            return inputs[place[1]] if place[0] else results[place[1]]

        return [
            SparseGrad(builder, t.type, mapped(node_of, t.terms))
            if isinstance(t, SparseGrad)
            else None
            if t is None
            else node_of(t)
            for t in self._totals
        ]


def _parts_of(total: Node | SparseGrad | None) -> list[Node]:
    """The nodes that a total is made of."""
    if isinstance(total, SparseGrad):
        return [node for lookup in lookups(total.terms) for node in lookup]
    return [] if total is None else [total]


def _apart(total: Any, trace: Trace) -> Any:
    """A total as a node of the trace; or as rows, where these are few, of nodes."""
    if isinstance(total, SparseGrad):
        if is_few(total):
            return SparseGrad(builder, total.type, mapped(trace.node_of, total.terms))
        total = total()
    return None if total is None else trace.node_of(total)


class Derivative:
    """The derivative of a staged program with respect to its ``watched`` values.

    ``results`` are the program's outputs and the intermediate values kept for the derivative.  All of them may have a
    cotangent: the kept values get one from the derivative of the derivative.  So may values that other programs compute
    again, and the watched ones (``sources``), from what happened after the call.  ``again`` maps what this program
    computes again to the nodes of ancestors; ``inside`` are its own nodes, ``dependent`` those with a derivative.
    """

    __slots__ = (
        "_executables",
        "_lock",
        "_programs",
        "_staged",
        "_tangent_programs",
        "_watched",
        "again",
        "dependent",
        "index",
        "inside",
        "positions",
        "results",
        "sources",
    )

    def __init__(self, staged: StagedProgram, watched: Watched) -> None:
        self._staged, self._watched = staged, watched
        self._lock = fork_safe_locks.make()
        graph = staged.graph
        self.sources = [staged.values[group[0]] for group in watched]
        self.again = dict(zip(staged.values[len(graph.inputs) + len(staged.later) :], staged.again))
        self.inside = set(graph.nodes)
        self.dependent = self._dependent()
        usual = tuple([node for node in graph.outputs if is_inexact(node.dtype)])
        first = self._trace_backward(usual, graph.outputs, everything_available=True)
        known = set(graph.outputs)
        self.results = (
            *graph.outputs,
            *(node for node in first.residuals if node in self.inside and node not in known),
        )
        # Where each value that a derivative program may take is found: (whether among the inputs, position).
        locations: dict[Node, tuple[bool, int]] = {node: (False, k) for k, node in enumerate(self.results)}
        locations.update((node, (True, i)) for i, node in enumerate(graph.inputs))
        self.positions = list(locations.values())
        self.index = {node: k for k, node in enumerate(locations)}
        extra = len(self.results) - len(graph.outputs)
        self._programs = {usual: first}
        self._tangent_programs: dict[tuple[tuple[int, ...], tuple[Node, ...]], _Program] = {}
        self._executables: dict[tuple[Where, bool], Any] | None = (
            {} if extra else None
        )  # None: the plain program will do

    def _dependent(self) -> set[Node]:
        """The nodes that depend on a watched value."""
        result = {self._staged.values[i] for group in self._watched for i in group}
        for node in self._staged.graph.nodes:
            is_several = isinstance(node.type, TupleType)
            if (is_several or is_inexact(node.dtype)) and not result.isdisjoint(node.inputs):
                result.add(node)
        return result

    def compile(self, device: Where) -> Any:
        """The forward program that also returns the kept values."""
        if self._executables is None:
            return self._staged.compile(device)
        with self._lock:
            key = device, nan_checks.is_on
            result = self._executables.get(key)
            if result is None:
                result = self._executables[key] = self._staged._executable(self.graph, *key)
            return result

    @property
    def graph(self) -> Graph:
        """The graph of the forward program."""
        graph = self._staged.graph
        if self._executables is None:
            return graph
        return Graph(graph.name, graph.inputs, graph.nodes, self.results, graph.updates)

    def check_sizes(self, sizes: Mapping[str, Extent]) -> None:
        self._staged.trace.assumptions.check_later(sizes)

    def program(self, seeded: tuple[Node, ...]) -> _Program:
        """The derivative program for cotangents of those nodes."""
        with self._lock:
            result = self._programs.get(seeded)
            if result is None:
                result = self._programs[seeded] = self._trace_backward(seeded, self.results)
            return result

    def tangent_program(self, moved: tuple[int, ...], results: tuple[Node, ...], through: Through) -> _Program:
        """The program that pushes tangents of these groups of watched values to ``results``."""
        with self._lock:
            result = self._tangent_programs.get((moved, results))
            if result is None:
                result = self._tangent_programs[moved, results] = self._trace_forward(moved, results, through)
            return result

    def _trace_forward(self, moved: Sequence[int], results: Sequence[Node], through: Through) -> _Program:
        trace, symbol = self._trace("tangent", self.results), self._symbols()
        sources = [self.sources[k] for k in moved]
        with tracing(trace):
            seeds = [(symbol(n), trace.argument(n.type, f"tangent{k}")) for k, n in enumerate(sources)]
            tangents_of = forward(builder, _records(self._staged, symbol), seeds, through)
            tangents = [tangents_of.get(id(symbol(node))) for node in results]
            totals = [_apart(tangent, trace) for tangent in tangents]
            _take_extents(trace, self._staged.trace)
        return self._finished(trace, totals)

    def _trace(self, what: str, results: Sequence[Node], everything_available: bool = False) -> Trace:
        """A trace that may take these values of the program, and the results of its ancestors."""
        available = set(results)
        origin = self._staged.origin
        while origin is not None:
            available.update(origin.results)
            origin = origin._staged.origin
        parent = self._staged.trace
        name = f"{parent.name}.{what}"
        return Trace(name, parent=parent, available=available, everything_available=everything_available)

    def _symbols(self) -> Callable[[Node], SymbolicTensor]:
        """One symbol per value: inputs that hold the same tensor are one value, as they are to the tape."""
        trace, values = self._staged.trace, self._staged.values
        symbols: dict[Node, SymbolicTensor] = {}
        for group in self._watched:
            symbols.update(dict.fromkeys([values[i] for i in group], SymbolicTensor(values[group[0]], trace)))

        def symbol(node: Node) -> SymbolicTensor:
            if node not in symbols:
                symbols[node] = SymbolicTensor(node, trace)
            return symbols[node]

        return symbol

    def _finished(self, trace: Trace, totals: Sequence[Node | SparseGrad | None]) -> _Program:
        outputs = dict.fromkeys(node for total in totals for node in _parts_of(total) if not node.is_parameter)
        return _Program(self._staged.derive(trace, tuple(outputs), self), totals)

    def _trace_backward(
        self, seeded: Sequence[Node], results: Sequence[Node], everything_available: bool = False
    ) -> _Program:
        trace, symbol = self._trace("gradient", results, everything_available), self._symbols()
        with tracing(trace):
            seeds = [(symbol(n), trace.argument(n.type, f"cotangent{k}")) for k, n in enumerate(seeded)]
            sources = [symbol(node) for node in self.sources]
            cotangents = backward(builder, _records(self._staged, symbol), seeds, sources, as_rows=True)
            totals = [_apart(total, trace) for total in cotangents]
            _take_extents(trace, self._staged.trace)
        return self._finished(trace, totals)


def _take_extents(trace: Trace, parent: Trace) -> None:
    """Make inputs of ``parent`` inputs of ``trace`` too where only they have its symbolic extents: it may fill shapes
    that none of its own inputs has."""
    have = {name for node in trace.inputs for name in symbols_of_input(node)}
    for node in (*trace.inputs, *trace.nodes):
        for name in symbols_in(node):
            if name not in have:
                source = next((n for n in parent.inputs if name in symbols_of_input(n)), None)
                if source is not None:  # or it is an extent that is found inside
                    trace.node_of(SymbolicTensor(source, parent))
                    have |= symbols_of_input(source)


def _records(staged: StagedProgram, symbol: Callable[[Node], SymbolicTensor]) -> list[Record]:
    """What was traced, as records for the reverse walk; custom gradients replace the nodes that carry them.

    What was computed again has none: its derivative is that of where it was first computed.
    """
    trace = staged.trace
    span_of = {out._node: span for span in trace.custom_vjps for out in span.outputs}
    records: list[Record] = []
    done: set[int] = set()
    again = set(staged.values[len(trace.inputs) + len(staged.later) :])
    for record in records_of([node for node in trace.nodes if node not in again]):
        span = next((span_of[node] for node in record.outputs if node in span_of), None)
        if span is None:
            if record.vjp is not None or record.op.vjp is not NOT_DIFFERENTIABLE:
                outputs = tuple(map(symbol, record.outputs))
                several = isinstance(record.outputs, Results)
                inputs = tuple(map(symbol, record.inputs))
                records.append(record._replace(inputs=inputs, outputs=Results(outputs) if several else outputs))
        elif id(span) not in done:
            done.add(id(span))
            inputs = tuple(symbol(x._node) for x in span.inputs)
            records.append(Record(None, inputs, {}, tuple(symbol(x._node) for x in span.outputs), span.vjp))
    return records
