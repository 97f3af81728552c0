"""Staged programs: finished traces that run compiled, and that tapes see as one differentiable operation.

When a tape watches an input, the program that runs also returns the intermediate values that its derivative needs, and
the derivative is a staged program itself, made by the same reverse walk that the tape uses.  That program is recorded
on outer tapes in turn, so derivatives of any order work, and each is traced and compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hybridflow import devices, transaction
from hybridflow.compiler.autodiff import Record, backward
from hybridflow.compiler.ir.dtypes import is_float
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops.table import NOT_DIFFERENTIABLE
from hybridflow.context import current, tracing
from hybridflow.dispatch import apply, builder
from hybridflow.errors import TraceError
from hybridflow.execution import executable_for
from hybridflow.runtime import locks
from hybridflow.runtime.turns import in_turn, running_in_place, set_all
from hybridflow.tensor import SymbolicTensor, Tensor, wrap
from hybridflow.trace import State, Trace
from hybridflow.variable import Variable

_SMALL = 64  # bytes of an argument or variable that is moved to where a call runs: a counter, a generator's state

# The positions of the watched inputs, those that hold one and the same tensor together.
Watched = tuple[tuple[int, ...], ...]


_set_own: Any = vars(Variable)["_own"].__set__
_set_tensor: Any = vars(Variable)["_tensor"].__set__


class Staged:
    """A finished trace and its graph.  Arguments are the tensors for its ARGUMENT inputs, in order.

    ``origin`` is the derivative that a backward program belongs to.
    """

    __slots__ = (
        "__weakref__",
        "_copies",
        "_derivatives",
        "_executables",
        "_lock",
        "_updates",
        "fastmath",
        "graph",
        "origin",
        "sources",
        "trace",
    )

    def __init__(
        self, trace: Trace, outputs: Sequence[Node], fastmath: bool, origin: _Derivative | None = None
    ) -> None:
        self.trace, self.origin = trace, origin
        self.graph: Graph = trace.finish(outputs)
        self.sources = trace.sources
        self.fastmath = fastmath
        self._updates = tuple(self.graph.updates)
        self._executables: dict[str, Any] = {}
        self._copies: dict[tuple[int, str], Tensor] = {}  # captured tensors, on devices other than their own
        self._derivatives: dict[Watched, _Derivative] = {}
        self._lock = locks.make()

    def compile(self, device: str = devices.CPU) -> Any:
        """The executable of the plain program on a device, made on first use."""
        found = self._executables.get(device)
        if found is None:
            with self._lock:
                found = self._executables.get(device)
                if found is None:
                    found = self._executables[device] = executable_for(self.graph, self.fastmath, device)
        return found

    def device_for(self, arguments: Iterable[Tensor]) -> str:
        """Where a call runs: where its arguments and variables lie.  Raises DeviceError if that is not one device.

        Captured tensors are constants of the program, and go where it runs.
        """
        variables = [source.variable._tensor for source in self.sources if isinstance(source, State)]
        return devices.meeting_place(self.graph.name, [*arguments, *variables], _SMALL)

    def _on_device(self, inputs: Sequence[Tensor], device: str) -> list[Tensor]:
        """The inputs on the device where they run; captured tensors are copied there once."""
        return [x if x.device == device else self._copy(i, x, device) for i, x in enumerate(inputs)]

    def _copy(self, position: int, x: Tensor, device: str) -> Tensor:
        if not isinstance(self.sources[position], Tensor):
            return x.to_device(device)
        copy = self._copies.get((position, device))
        if copy is None:
            copy = self._copies[position, device] = x.to_device(device)
        return copy

    def __call__(self, arguments: Sequence[Tensor], pullback: _Pullback | None = None) -> list[Tensor]:
        """Run on ``arguments``: eagerly, into the trace that is going on, and onto the tapes that are active.

        ``pullback`` is the caller of a backward program.
        """
        if current.trace is not None:
            return self._inline(arguments)
        device = self.device_for(arguments)
        if not self._updates:
            return self._call_on(device, arguments, pullback)
        gates = [variable._gate for variable in self._updated_variables()]
        return in_turn(gates, lambda: self._call_on(device, arguments, pullback))

    def _call_on(self, device: str, arguments: Sequence[Tensor], pullback: _Pullback | None) -> list[Tensor]:
        inputs = self._inputs(arguments)
        if current.tapes:
            watched = self._watch(inputs)
            if watched:
                return self._recorded(inputs, watched, pullback, device)
        return self._run(self.compile(device), self._on_device(inputs, device))

    def _inputs(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """One tensor per graph input.  Nobody writes into their memory: those of variables to be updated are seen by
        this call only, unless there are tapes, which may keep them."""
        given = iter(arguments)
        alone = () if current.tapes else self._updates
        return [
            (source.variable._tensor if i in alone else source.variable._current())
            if isinstance(source, State)
            else source
            if isinstance(source, Tensor)
            else next(given)
            for i, source in enumerate(self.sources)
        ]

    def _updated_variables(self) -> list[Variable]:
        return [self.sources[position].variable for position in self._updates]  # type: ignore[union-attr]

    def _run(self, executable: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of the program; variables get their new values if nothing is raised, all at once."""
        arrays = [x._array for x in inputs]
        variables = self._updated_variables()
        done = None
        if variables and executable.may_write_in_place and not transaction.is_open():

            def write_in_place() -> tuple[list[Any], list[Any]] | None:
                owned = all(v._own is v._tensor is inputs[i] for i, v in zip(self._updates, variables))
                return executable.compute(arrays, in_place=True) if owned else None

            done = running_in_place([v._gate for v in variables], write_in_place)
        if done is None:
            done = executable.compute(arrays, in_place=False)
            self._publish(variables, done[1])
        return [wrap(out) for out in done[0]]

    @staticmethod
    def _publish(variables: Sequence[Variable], arrays: Sequence[Any]) -> None:
        """Let variables have new values, whose memory is their own."""
        if not variables:
            return
        tensors = [wrap(devices.moved(array, v.device)) for v, array in zip(variables, arrays)]
        before = [(v._own, v._tensor) for v in variables]  # let go when all is done: that may run Python code
        for variable, (_, old), new in zip(variables, before, tensors):
            transaction.note(variable, old, new)
        # First whose memory it is: a reader meanwhile takes it for visible, which is safe (see Variable._current).
        set_all(_set_own, variables, tensors)
        set_all(_set_tensor, variables, tensors)

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

    def _watch(self, inputs: Sequence[Tensor]) -> Watched:
        """Tell the tapes which variables are read; the inputs that some tape tracks."""
        tapes = current.tapes
        for source, tensor in zip(self.sources, inputs):
            if isinstance(source, State) and source.reads:
                for tape in tapes:
                    tape.watch_read(source.variable, tensor)
        groups: dict[int, list[int]] = {}
        for i, x in enumerate(inputs):
            if any(tape.tracks(x) for tape in tapes):
                groups.setdefault(id(x), []).append(i)
        return tuple(map(tuple, groups.values()))

    def _recorded(self, inputs: list[Tensor], watched: Watched, outer: _Pullback | None, device: str) -> list[Tensor]:
        with self._lock:
            derivative = self._derivatives.get(watched)
            if derivative is None:
                derivative = self._derivatives[watched] = _Derivative(self, watched)
        values = self._on_device(inputs, device)
        results = self._run(derivative.compile(device), values)
        pullback = _Pullback(derivative, values, results, outer)
        sources = tuple(inputs[group[0]] for group in watched)
        for tape in current.tapes:
            tape.record_custom(sources, tuple(results), pullback)
        return results[: len(self.graph.outputs)]


class _Pullback:
    """The derivative of one call: the values of its inputs and results, and the program to run on them.

    ``outer`` is the pullback that made the call, when it was a backward program's: a derivative of a derivative may use
    values of the first program that the second one does not.
    """

    __slots__ = ("_derivative", "_outer", "_values")

    accumulates = True  # see ``autodiff.Record``

    def __init__(
        self,
        derivative: _Derivative,
        inputs: Sequence[Tensor],
        results: Sequence[Tensor],
        outer: _Pullback | None,
    ) -> None:
        self._derivative, self._outer = derivative, outer
        self._values = [inputs[position] if is_input else results[position] for is_input, position in derivative.places]

    def __call__(self, *cotangents: Tensor | None, so_far: Sequence[Tensor | None]) -> list[Tensor | None]:
        derivative = self._derivative
        seeds = (*cotangents, *so_far)
        program = derivative.program(tuple(g is not None for g in seeds))
        values = [self._value(node) for node in program.kept]
        results = program.staged([*(g for g in seeds if g is not None), *values], self)
        return [None if k is None else results[k] for k in program.positions]

    def _value(self, node: Node) -> Tensor:
        position = self._derivative.index.get(node)
        if position is not None:
            return self._values[position]
        assert self._outer is not None, "a program keeps values of its ancestors only"
        return self._outer._value(node)


class _Backward:
    """A derivative program: ``kept`` are the forward values it takes after the cotangents, ``positions`` the result of
    each group of watched inputs, None where there is no path to it."""

    __slots__ = ("kept", "positions", "staged")

    def __init__(self, staged: Staged, positions: Sequence[int | None]) -> None:
        self.staged, self.positions = staged, positions
        self.kept = [source for source in staged.sources if isinstance(source, Node)]


class _Derivative:
    """The derivative of a staged program with respect to its ``watched`` inputs.

    ``results`` are the program's outputs and the intermediate values kept for the derivative.  All of them may have a
    cotangent: the kept values get one from the derivative of the derivative.  So may the watched inputs, from what
    happened after the call.
    """

    __slots__ = ("_executables", "_lock", "_programs", "_staged", "_watched", "index", "places", "results")

    def __init__(self, staged: Staged, watched: Watched) -> None:
        self._staged, self._watched = staged, watched
        self._lock = locks.make()
        graph = staged.graph
        usual = tuple(is_float(node.dtype) for node in graph.outputs)
        none_so_far = (False,) * len(watched)
        first = self._trace_backward(graph.outputs, usual + none_so_far, everything_available=True)
        inside, known = set(graph.nodes), set(graph.outputs)
        self.results = (*graph.outputs, *(node for node in first.kept if node in inside and node not in known))
        # Where each value that a derivative program may take is found: (whether among the inputs, position).
        found: dict[Node, tuple[bool, int]] = {node: (False, k) for k, node in enumerate(self.results)}
        found.update((node, (True, i)) for i, node in enumerate(graph.inputs))
        self.places = list(found.values())
        self.index = {node: k for k, node in enumerate(found)}
        extra = len(self.results) - len(graph.outputs)
        self._programs = {usual + (False,) * extra + none_so_far: first}
        self._executables: dict[str, Any] | None = {} if extra else None  # None: the plain program will do

    def compile(self, device: str) -> Any:
        """The forward program that also returns the kept values."""
        if self._executables is None:
            return self._staged.compile(device)
        with self._lock:
            found = self._executables.get(device)
            if found is None:
                graph = self._staged.graph
                extended = Graph(graph.name, graph.inputs, graph.nodes, self.results, graph.updates)
                found = self._executables[device] = executable_for(extended, self._staged.fastmath, device)
            return found

    def program(self, present: tuple[bool, ...]) -> _Backward:
        """The derivative program for cotangents of those results and watched inputs."""
        with self._lock:
            found = self._programs.get(present)
            if found is None:
                found = self._programs[present] = self._trace_backward(self.results, present)
            return found

    def _trace_backward(
        self, results: Sequence[Node], present: Sequence[bool], everything_available: bool = False
    ) -> _Backward:
        forward, inputs = self._staged.trace, self._staged.graph.inputs
        available = set(results)
        origin = self._staged.origin
        while origin is not None:
            available.update(origin.results)
            origin = origin._staged.origin
        trace = Trace(
            f"{forward.name}.gradient",
            parent=forward,
            available=available,
            everything_available=everything_available,
        )
        # One symbol per value: inputs that hold the same tensor are one value, as they are to the tape.
        symbols: dict[Node, SymbolicTensor] = {}
        for group in self._watched:
            symbols.update(dict.fromkeys([inputs[i] for i in group], SymbolicTensor(inputs[group[0]], forward)))

        def symbol(node: Node) -> SymbolicTensor:
            if node not in symbols:
                symbols[node] = SymbolicTensor(node, forward)
            return symbols[node]

        seeded = (*results, *(inputs[group[0]] for group in self._watched))
        with tracing(trace):
            seeds = [
                (symbol(node), trace.argument(node.type, f"cotangent{k}"))
                for k, (node, wanted) in enumerate(zip(seeded, present))
                if wanted
            ]
            sources: list[SymbolicTensor] = []
            owners: list[int] = []
            for owner, group in enumerate(self._watched):
                nodes = [inputs[group[0]]]
                for i in group:
                    source = forward.sources[i]
                    if isinstance(source, State):  # what is read after an assignment counts as well
                        nodes += [t._node for t in source.reads if t._node is not inputs[i]]
                sources += map(symbol, nodes)
                owners += [owner] * len(nodes)
            totals: list[Tensor | None] = [None] * len(self._watched)
            for owner, cotangent in zip(owners, backward(builder, _records(forward, symbol), seeds, sources)):
                if cotangent is not None:
                    total = totals[owner]
                    totals[owner] = cotangent if total is None else builder.add(total, cotangent)
            outputs: list[Node] = []
            positions: list[int | None] = []
            for total in totals:
                positions.append(None if total is None else len(outputs))
                if total is not None:
                    outputs.append(trace.node_of(total))
        return _Backward(Staged(trace, outputs, self._staged.fastmath, self), positions)


def _records(trace: Trace, symbol: Callable[[Node], SymbolicTensor]) -> list[Record]:
    """What was traced, as records for the reverse walk; custom gradients replace the nodes that carry them."""
    span_of = {out._node: span for span in trace.spans for out in span.outputs}
    records: list[Record] = []
    done: set[int] = set()
    for node in trace.nodes:
        span = span_of.get(node)
        if span is None:
            if node.op.vjp is not NOT_DIFFERENTIABLE:
                records.append(Record(node.op, tuple(map(symbol, node.inputs)), node.attrs, (symbol(node),)))
        elif id(span) not in done:
            done.add(id(span))
            inputs = tuple(symbol(x._node) for x in span.inputs)
            records.append(Record(None, inputs, {}, tuple(symbol(x._node) for x in span.outputs), span.vjp))
    return records
