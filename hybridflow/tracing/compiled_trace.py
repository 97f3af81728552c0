"""Staged programs: finished traces that run compiled, and that tapes see as one differentiable operation.

When a tape watches an input, the program that runs also returns the intermediate values that its derivative needs: see
``trace_vjp``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow import spans
from hybridflow.compiler.device_partition import InputPlacement, device_of, is_placed
from hybridflow.compiler.graph_inlining import apply_again, extents_of, with_extents
from hybridflow.compiler.ir.extents import Dim, Extent, holds, substituted
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ir.types import is_static
from hybridflow.compiler.ops.op_table import TABLE
from hybridflow.core import devices, transaction
from hybridflow.core.context import current, now
from hybridflow.core.donated_tensor import BufferDonation
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.variable import Variable, current_values
from hybridflow.eager import multi_device, nan_checks, placement
from hybridflow.eager.dispatch import builder
from hybridflow.eager.executable import executable_for, timed_executable_for
from hybridflow.errors import DeviceError, ShapeError, TraceError
from hybridflow.runtime import fork_safe_locks, host_interface
from hybridflow.runtime.calls.entry import is_due, on_tensors
from hybridflow.runtime.calls.variable_locks import run_in_place, set_all, with_locks
from hybridflow.tracing.effect_token import ORDER, renumbered
from hybridflow.tracing.trace import State, Trace
from hybridflow.tracing.trace_vjp import Derivative, Pullback, RecomputedValue, Watched, Where

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Value


_SMALL = 64  # bytes of an argument or variable that is moved to where a call runs: a counter, a generator's state

_set_own: Any = vars(Variable)["_own"].__set__
_set_tensor: Any = vars(Variable)["_tensor"].__set__


def _giving(graph: Graph, donated: Mapping[int, int]) -> Graph:
    """The graph with the outputs that may lie in the memory of inputs as the new values of these."""
    outputs = [node for k, node in enumerate(graph.outputs) if k not in donated.values()]
    updates = {**graph.updates, **{i: graph.outputs[k] for i, k in donated.items()}}
    return Graph(graph.name, graph.inputs, graph.nodes, tuple(outputs), updates)


class _ReadAfterWrite(NamedTuple):
    """What is read from a variable (the input ``position``) after an assignment: ``node``.  It is ``final`` when that
    is the value that the variable has after the call."""

    position: int
    node: Node
    final: bool


def _input_placement(source: object, arguments: Iterator[Tensor | None]) -> InputPlacement:
    """Where an input lies, and whether it has to be used there."""
    if isinstance(source, Tensor):
        return InputPlacement(source.device, False)
    x = source.variable._tensor if isinstance(source, State) else next(arguments)
    return (
        InputPlacement(devices.CPU, False)
        if x is None
        else InputPlacement(x.device, bool(x.ndim) and x._array.nbytes > _SMALL)
    )


class CompiledTrace:
    """A finished trace and its graph.  Arguments are the tensors for its ARGUMENT inputs, in order.

    ``donated`` maps inputs that calls may give up to the outputs that may lie in their memory then.
    ``origin`` is the derivative that a backward program belongs to.  ``values`` are what a tape may know of it: its
    inputs, what it reads from variables later (``later``), and the values of ancestors that it computes again, whose
    nodes there are ``again``.
    """

    __slots__ = (
        "__weakref__",
        "_copies",
        "_derivatives",
        "_executables",
        "_gives_through",
        "_is_placed",
        "_is_static",
        "_lock",
        "_on_tensors",
        "_reads",
        "_states",
        "_updates",
        "_wheres",
        "again",
        "donated",
        "fastmath",
        "graph",
        "later",
        "moves",
        "origin",
        "sources",
        "trace",
        "values",
    )

    def __init__(self, trace: Trace, outputs: Sequence[Node], fastmath: bool, origin: Derivative | None = None) -> None:
        self.trace, self.origin = trace, origin
        self.donated: Mapping[int, int] = {}
        self.graph: Graph = trace.finish(outputs)
        self.sources = trace.sources
        self.fastmath = fastmath
        again = {node: ancestor for ancestor, node in trace.lifted.items() if not node.is_parameter}
        self.again = tuple(again.values())
        self.later = tuple(_reads_after_write(self.sources))
        self.values = (*self.graph.inputs, *(read.node for read in self.later), *again)
        self._updates = tuple(self.graph.updates)
        states = [(i, source) for i, source in enumerate(self.sources) if isinstance(source, State)]
        self._states = tuple([i for i, _ in states])
        # Which of them are read, and whether the first read is that of the value which the call begins with.
        self._reads = [(i, s.reads[0]._node is self.graph.inputs[i]) for i, s in states if s.reads]
        self._is_static = all(is_static(node.type.shape) for node in self.graph.inputs)
        self._gives_through = not set(self.graph.outputs).isdisjoint(self.graph.inputs)
        self._is_placed = is_placed(self.graph)
        self._wheres: dict[
            tuple[tuple[InputPlacement, ...], str], Where
        ] = {}  # by where the inputs lie, and by the scope
        # With checks of all that is computed, and without; for calls that give inputs up, and for others.
        self._executables: dict[tuple[Where, bool, bool], Any] = {}
        self._on_tensors: dict[Any, Callable[[], Callable[..., Any] | None]] = {}  # see ``_computed``
        self._copies: dict[tuple[int, str], Tensor] = {}  # captured tensors, on devices other than their own
        self.moves: dict[tuple[str, str, bool], int] = {}  # bytes of what is copied: where, its name, at each call
        self._derivatives: dict[Watched, Derivative] = {}
        self._lock = fork_safe_locks.make()

    def derive(self, trace: Trace, outputs: Sequence[Node], derivative: Derivative) -> CompiledTrace:
        """A program of a derivative, which runs as this one does."""
        return CompiledTrace(trace, outputs, self.fastmath, derivative)

    def compile(self, device: Where | None = None, giving: bool = False) -> Any:
        """The executable of the plain program on a device, made on first use; where none is given where the code says,
        or on the CPU.  That of calls ``giving`` inputs up has outputs as their new values, where it runs on one device.
        Raises DeviceError where operands lie on different devices."""
        where = device or self._where_alone()
        key = where, nan_checks.is_on, giving and bool(self.donated) and isinstance(where, str)
        result = self._executables.get(key)
        if result is None:
            with self._lock:
                result = self._executables.get(key)
                if result is None:
                    graph = _giving(self.graph, self.donated) if key[2] else self.graph
                    result = self._executables[key] = self._executable(graph, *key[:2])
        return result

    def finish(self) -> None:
        """Have the executables that there are run the fastest code from now on."""
        for executable in list(self._executables.values()):
            if (tiers := getattr(executable, "tiers", None)) is not None:
                tiers.finish()

    def _executable(self, graph: Graph, where: Where, checked: bool) -> Any:
        functions = self.trace.functions
        if isinstance(where, str):
            return executable_for(graph, self.fastmath, where, functions, checked)
        return multi_device.MultiDeviceProgram(graph, where, self.fastmath, functions, checked, self.note_copy)

    def device_for(self, arguments: Iterable[Tensor | None]) -> Where:
        """Where a call runs: where its arguments and variables lie; where that is not one device, or the code names
        one, where each input lies, unless the program has one device all the same.

        Captured tensors are constants of the program, and go where it runs; so do small arguments and variables, and
        those that are not tensors yet, for which there is None.
        """
        arguments = list(arguments)
        if not self._is_placed:
            tensors = [x for x in arguments if x is not None]
            if self._states:
                tensors += [self.sources[i].variable._tensor for i in self._states]  # type: ignore[union-attr]
            result = placement.shared(tensors) or placement.common_device(tensors, _SMALL)
            if result is not None:
                return result
        rest = iter(arguments)
        return self._where(tuple([_input_placement(source, rest) for source in self.sources]))

    def _where(self, places: tuple[InputPlacement, ...]) -> Where:
        """Where a program whose inputs lie there runs."""
        result = self._wheres.get((places, devices.scope()))
        if result is None:
            one = device_of(self.graph, places, devices.scope())
            result = self._wheres[places, devices.scope()] = places if one is None else one
        return result

    def _where_alone(self) -> str:
        """Where it runs as far as its code says, whatever it is given; the CPU where that is nowhere, or on several."""
        device = (
            self._where((InputPlacement(devices.CPU, False),) * len(self.sources)) if self._is_placed else devices.CPU
        )
        return device if isinstance(device, str) else devices.CPU

    @property
    def is_of_cpu(self) -> bool:
        """Whether its code says nothing against running on the CPU."""
        return not self._is_placed or self._where_alone() == devices.CPU

    def _on_device(self, inputs: Sequence[Tensor], device: Where) -> list[Tensor]:
        """The inputs on the device where they run; captured tensors are copied there once.  Where a program runs on
        several, its parts have what they need copied."""
        if not isinstance(device, str) or placement.shared(inputs) == device:
            return list(inputs)
        return [x if x.device == device else self._copy(i, x, device) for i, x in enumerate(inputs)]

    def _copy(self, position: int, x: Tensor, device: str) -> Tensor:
        source, name = self.sources[position], self.graph.inputs[position].attrs["name"]
        if not isinstance(source, Tensor):
            self.note_move(device, name, x, each_call=True)
            return wrap(devices.moved(x._array, device))
        copy = self._copies.get((position, device))
        if copy is None:
            copy = self._copies[position, device] = wrap(devices.moved(x._array, device))
            self.note_move(device, name, x, each_call=False)
        return copy

    def note_move(self, device: str, name: str, x: Tensor, each_call: bool) -> None:
        """Note for ``explain`` that what is called so is copied to a device."""
        self.note_copy(device, name, int(x._array.nbytes), each_call)

    def note_copy(self, device: str, name: str, size: int, each_call: bool) -> None:
        """The same, for so many bytes."""
        self.moves[device, name, each_call] = size

    @property
    def devices(self) -> list[str]:
        """Where it has been compiled for."""
        names: set[str] = set()
        for (where, *_), executable in self._executables.items():
            names.update((where,) if isinstance(where, str) else executable.devices)
        return sorted(names)

    def run_donating(self, arguments: Sequence[Tensor], giving: BufferDonation) -> tuple[list[Tensor], set[int]]:
        """Run, where no trace goes on and no tape is active, on arguments of which some are given up.  Also returns the
        inputs among ``donated`` whose memory was not the call's own."""
        device = self.device_for(arguments)
        gates = [variable._gate for variable in self._updated_variables()]
        return with_locks(gates, lambda: self._run_giving(device, self._inputs(arguments), giving))

    def _run_giving(self, device: Where, inputs: list[Tensor], giving: BufferDonation) -> tuple[list[Tensor], set[int]]:
        executable = self._recorded_if_asked(
            self.compile(device, giving=True), device, _giving(self.graph, self.donated)
        )
        inputs = self._on_device(inputs, device)
        arrays = [x._array for x in inputs]
        donated = self.donated if isinstance(device, str) else {}
        updated = sorted({*self._updates, *donated})
        giving.take()
        try:
            shared = {i for i in donated if not giving.owns(arrays, i)}
        except Exception:  # a GPU is asked for memory like that of the arrays
            giving.take_back()
            raise
        exclusive = {i for i in donated if i not in shared and i in executable.in_place}

        def compute(in_place: Sequence[int]) -> tuple[list[Any], list[Any]]:
            try:
                outputs, updates = executable.compute(arrays, {*in_place, *exclusive})
            except Exception:  # no interrupt, which may come when all is written
                giving.take_back()
                raise
            new = dict(zip(updated, updates))
            for i, position in sorted(donated.items(), key=lambda item: item[1]):
                outputs.insert(position, new[i])
            return outputs, [new[i] for i in self._updates]

        return self._updated(executable, inputs, compute), shared

    def __call__(self, arguments: Sequence[Tensor], pullback: Pullback | None = None) -> list[Tensor]:
        """Run on ``arguments``: eagerly, into the trace that is going on, and onto the tapes that are active.

        ``pullback`` is the caller of a backward program.
        """
        if current.trace is not None:
            return self.inline(arguments)
        device = self.device_for(arguments)
        if not self._updates:
            return self._call_on(device, arguments, pullback)
        gates = [variable._gate for variable in self._updated_variables()]
        return with_locks(gates, lambda: self._call_on(device, arguments, pullback))

    def _call_on(self, device: Where, arguments: Sequence[Tensor], pullback: Pullback | None) -> list[Tensor]:
        inputs = self._inputs(arguments)
        if current.tapes:
            again = [pullback.known(node) for node in self.again] if pullback is not None else []
            known = [*inputs, *[None] * len(self.later), *again]
            watched = self._watch(known)
            if watched:
                return self._notify_tapes(self._run_recording(inputs, known, watched, pullback, device))
        executable = self._recorded_if_asked(self.compile(device), device, self.graph)
        return self._notify_tapes(self._run(executable, self._on_device(inputs, device)))

    def _recorded_if_asked(self, executable: object, device: Where, graph: Graph) -> Any:
        """What runs in the place of an executable of a graph: it tells of its kernels where somebody records them."""
        recorder = spans.recorder  # another thread may end the recording at any time
        if recorder is None or device != devices.CPU or nan_checks.is_on:
            return executable
        return recorder.record(graph, executable, self.trace.functions, self.fastmath)

    def _notify_tapes(self, outputs: list[Tensor]) -> list[Tensor]:
        """The outputs, when the tapes know which variables the program has assigned."""
        for tape in now().tapes:
            for variable in self._updated_variables():
                tape.note_assign(variable, variable._tensor)
        return outputs

    def _inputs(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """One tensor per graph input.  Nobody writes into their memory: those of variables to be updated are seen by
        this call only, unless there are tapes, which may keep them."""
        if len(arguments) == len(self.sources):
            return list(arguments)
        rest = iter(arguments)
        alone = () if current.tapes else self._updates
        states = [(i, self.sources[i].variable) for i in self._states if i not in alone]  # type: ignore[union-attr]
        read = dict(zip((i for i, _ in states), current_values([variable for _, variable in states])))
        return [
            (source.variable._tensor if i in alone else read[i])
            if isinstance(source, State)
            else source
            if isinstance(source, Tensor)
            else next(rest)
            for i, source in enumerate(self.sources)
        ]

    def timed(self, arguments: Sequence[Tensor]) -> tuple[Any, list[np.ndarray], tuple[int, ...]]:
        """What times a call: an executable for a ``runtime.timing.TimingHost``, and the arrays that it runs on, of
        which those at some positions have to be copies, as it may write there.  Raises DeviceError off the CPU."""
        device = self.device_for(arguments)
        if device != devices.CPU:
            raise DeviceError(
                self.graph.name,
                f"it runs on {device}, and kernels are timed on the CPU alone. Pass tensors that lie there.",
            )
        variables = [self.sources[i].variable for i in self._states]  # type: ignore[union-attr]
        states = dict(zip(self._states, current_values(variables)))
        rest = iter(arguments)
        inputs = [
            states[i] if i in states else source if isinstance(source, Tensor) else next(rest)
            for i, source in enumerate(self.sources)
        ]
        arrays = [x._array for x in self._on_device(inputs, device)]
        return timed_executable_for(self.graph, arrays, self.fastmath, self.trace.functions), arrays, self._updates

    def _updated_variables(self) -> list[Variable]:
        return [self.sources[position].variable for position in self._updates]  # type: ignore[union-attr]

    def _run(self, executable: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of the program; variables get their new values if nothing is raised, all at once."""
        if not self._updates:
            return self._run_compiled(executable, inputs)
        arrays = [x._array for x in inputs]
        return self._updated(executable, inputs, lambda in_place: executable.compute(arrays, in_place))

    def _updated(
        self,
        executable: Any,
        inputs: Sequence[Tensor],
        compute: Callable[[Sequence[int]], tuple[list[Any], list[Any]]],
    ) -> list[Tensor]:
        """The outputs of ``compute``, which is told which states may be written in place and also returns their new
        values; these become the variables' own."""
        variables = self._updated_variables()
        done = None
        # What is called in Python may read the variables.
        may_write = executable.in_place.issuperset(self._updates)
        if self._updates and may_write and not executable.needs_python and not transaction.is_open():

            def write_in_place() -> tuple[list[Any], list[Any]] | None:
                owned = all(v._own is v._tensor is inputs[i] for i, v in zip(self._updates, variables))
                return compute(self._updates) if owned else None

            done = run_in_place([v._gate for v in variables], write_in_place)
        if done is None:
            done = compute(())
            self._publish(variables, done[1], is_exclusive=True)
        return [wrap(out) for out in done[0]]

    def _run_to_keep(self, executable: Any, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """As ``_run``; also returns the new values of the variables, which somebody else may hold from now on."""
        if not self._updates:
            return self._run_compiled(executable, inputs), []
        outputs, updates = executable.compute([x._array for x in inputs])
        new = self._publish(self._updated_variables(), updates, is_exclusive=False)
        return [wrap(out) for out in outputs], new

    def _run_compiled(self, executable: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of a program that updates nothing: from its second run on by native code, where it takes the
        program and the inputs."""
        if executable not in self._on_tensors:
            self._on_tensors[executable] = functools.cache(functools.partial(on_tensors, executable))
        elif is_due() and (run := self._on_tensors[executable]()) is not None and host_interface.current() is None:
            outputs = run(*inputs)
            if outputs is not NotImplemented:
                return list(outputs)
        return [wrap(out) for out in executable.compute([x._array for x in inputs])[0]]

    @staticmethod
    def _publish(variables: Sequence[Variable], arrays: Sequence[Any], is_exclusive: bool) -> list[Tensor]:
        """Let variables have new values, whose memory is their own or not."""
        if not variables:
            return []
        tensors = [wrap(devices.moved(array, v.device)) for v, array in zip(variables, arrays)]
        before = [(v._own, v._tensor) for v in variables]  # let go when all is done: that may run Python code
        for variable, (_, old), new in zip(variables, before, tensors):
            transaction.note(variable, old, new)
        # First whose memory it is: a reader meanwhile takes it for visible, which is safe (see Variable._current).
        set_all(_set_own, variables, tensors if is_exclusive else [None] * len(tensors))
        set_all(_set_tensor, variables, tensors)
        return tensors

    def inline(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Apply the ops of the graph anew: into the trace that is going on, or one by one where none is."""
        if self.trace.custom_vjps:
            raise TraceError(
                self.graph.name,
                "it holds a custom gradient, so it cannot be called as a concrete function inside another trace. "
                "Call the hf.function itself there.",
            )
        rest = iter(arguments)
        values: dict[Node, Any] = {}  # of nodes with several results tuples
        for node, source in zip(self.graph.inputs, self.sources):
            if isinstance(source, State):
                values[node] = source.variable._read()
            else:
                values[node] = source if isinstance(source, Tensor) else next(rest)
        extents = extents_of(values)
        _require(self.graph, self.trace.assumptions.conditions, values, extents)
        tokens = [node for node in self.graph.nodes if is_token(node.type)]
        values.update((node, ORDER._read()) for node in tokens if node.op is TABLE["token"])
        apply_again(builder, self.graph.nodes, values, extents, renumbered(self.trace.functions))
        if tokens:
            ORDER.assign(values[tokens[-1]])
        for position, node in self.graph.updates.items():
            self.sources[position].variable.assign(values[node])  # type: ignore[union-attr]
        return [values[node] for node in self.graph.outputs]

    # Derivatives

    def _watch(self, known: Sequence[Any]) -> Watched:
        """Tell the tapes which variables are read; those of the program's values that some tape tracks."""
        tapes = now().tapes
        for i, is_read in self._reads:
            variable = self.sources[i].variable  # type: ignore[union-attr]
            for tape in tapes:
                if is_read or not tape.watches(variable):
                    tape.watch_read(variable, known[i])
        groups: dict[int, list[int]] = {}
        for i, x in enumerate(known):
            if x is not None:
                for tape in tapes:
                    if tape.tracks(x):
                        groups.setdefault(id(x), []).append(i)
                        break
        if not self.later:
            return (*map(tuple, groups.values()),)
        later = [
            (position,)
            for position, read in enumerate(self.later, len(self.sources))
            if any(tape.watches(self._variable(read)) for tape in tapes)
        ]
        return (*map(tuple, groups.values()), *later)

    def _variable(self, read: _ReadAfterWrite) -> Variable:
        return self.sources[read.position].variable  # type: ignore[union-attr]

    def _run_recording(
        self, inputs: list[Tensor], known: list[Any], watched: Watched, outer: Pullback | None, device: Where
    ) -> list[Tensor]:
        with self._lock:
            derivative = self._derivatives.get(watched)
            if derivative is None:
                derivative = self._derivatives[watched] = Derivative(self, watched)
        sizes = {} if self._is_static else extents_of(dict(zip(self.graph.inputs, inputs)))
        self.trace.assumptions.check_later(sizes)
        values = self._on_device(inputs, device)
        results, new = self._run_to_keep(
            self._recorded_if_asked(derivative.compile(device), device, derivative.graph), values
        )
        reads = (
            self._read_after_write(watched, dict(zip(derivative.results, results)), new, sizes) if self.later else {}
        )
        for read, value in reads.items():
            known[len(self.sources) + self.later.index(read)] = value
            for tape in current.tapes:
                if tape.watches(self._variable(read)):
                    tape.watch_read(self._variable(read), value)
        values_read = {read.node: value for read, value in reads.items()}
        if values_read:
            results = [
                values_read[n] if isinstance(values_read.get(n), Tensor) else x
                for n, x in zip(derivative.results, results)
            ]
        pullback = Pullback(derivative, values, results, values_read, outer, sizes)
        sources = tuple(known[group[0]] for group in watched)
        for tape in now().tapes:
            tape.record_custom(sources, pullback.outputs, pullback)
        if not self._gives_through:
            return results[: len(self.graph.outputs)]
        same = dict(zip(self.graph.inputs, inputs))  # to the tapes an input that is a result is one value
        return [same.get(node, result) for node, result in zip(self.graph.outputs, results)]

    def _read_after_write(
        self, watched: Watched, results: Mapping[Node, Tensor], new: Sequence[Tensor], sizes: Mapping[str, Extent]
    ) -> dict[_ReadAfterWrite, Any]:
        """What the tapes know the watched later reads by: the variable's new value, or what stands for one between."""
        after = dict(zip(self._updates, new))
        result: dict[_ReadAfterWrite, Any] = {}
        for position, *_ in watched:
            k = position - len(self.sources)
            if 0 <= k < len(self.later):
                read = self.later[k]
                value = after[read.position] if read.final else results.get(read.node)
                result[read] = RecomputedValue(read.node, sizes) if value is None else value
        return result


def _reads_after_write(sources: Sequence[Value | State | None]) -> Iterator[_ReadAfterWrite]:
    for i, source in enumerate(sources):
        if isinstance(source, State):  # one that has its first value again may have been read in between
            for value in source.reads:
                if value._node is not source.parameter._node:
                    is_last = source.fresh and value is source.reads[-1]
                    yield _ReadAfterWrite(i, value._node, is_last and source.is_written)


def _require(
    graph: Graph, conditions: Sequence[Dim], values: Mapping[Node, Tensor], extents: Mapping[str, Extent]
) -> None:
    """Raise ShapeError unless the extents of ``values`` are some that the graph was traced for."""
    for node in graph.inputs:
        if tuple(with_extents(node.type.shape, extents)) != values[node].shape:
            raise ShapeError(graph.name, f"{values[node].type} is given for {node.type}.")
    for condition in conditions:
        if not holds(substituted(condition, extents)):
            raise ShapeError(
                graph.name,
                f"it was traced for extents where {condition} is not negative. Call the hf.function itself here.",
            )
