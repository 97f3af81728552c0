"""Traces: what ops are recorded into while a Python function runs on symbolic tensors.

A trace turns everything it meets into graph inputs: arguments, eager tensors (captures, held alive) and variables
(state).  State is functional in the graph: reads see the latest write, and the last write leaves as an update.

A trace may have a ``parent``: a finished trace whose values, and whose parent's values, it uses freely.  Such values
become inputs of this trace, which is how a backward program finds out what the forward program has to keep for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Effect, Graph, Node, Role
from hybridflow.compiler.ir.results import TupleType, parts_of
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.op_table import Kind, OpDef
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor, looked_at
from hybridflow.core.variable import Variable
from hybridflow.eager.execute import execute
from hybridflow.errors import ConcretizationError, TraceError, short_location, user_location
from hybridflow.tracing import numpy_scalar, symbolic_number
from hybridflow.tracing.effect_token import ORDER
from hybridflow.tracing.shape_env import ShapeEnv
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


class GuardSink(Protocol):
    """What takes note of that which a program depends on besides its inputs, while that is traced."""

    def opaque_array(self, value: object, /) -> None:
        """The elements of an object that is not an array of NumPy's were read."""

    def shared_memory(self, tensor: object, array: object, /) -> None:
        """The elements of a tensor over the memory of an array that its owner may change were read."""

    def called(self, function: Callable[..., Any], text: str, /) -> Callable[..., Any]:
        """Something that may be the user's is about to be called; what to call in its place."""

    def slot_of(self, value: object, /) -> int | None:
        """Where an object that was there before the trace is found; None for what the trace made itself."""

    def on_attribute_write(self, owner: object, name: str, /) -> None:
        """An attribute of an object that was there before the trace is about to be set."""

    def written_values(self) -> list[Any]:
        """What attributes of such objects hold that were set so far."""

    def collect_outputs(self, result: object, /) -> list[tuple[Any, Any]]:
        """The attributes that each call sets beside its result, and to what: see ``jit.guards.left``."""

    @property
    def can_rerun(self) -> bool:
        """Whether all that the trace did to objects that were there before it can be undone."""

    @property
    def can_undo(self) -> bool:
        """Whether objects that were there before the trace were changed, and all of that can be undone."""

    def undo(self) -> None:
        """Give objects that were there before the trace what they held then."""

    def first_effect(self) -> Any:
        """The first of these changes, as a reason why no program repeats it."""


class State:
    """A variable inside a trace: its input, its value so far, and every distinct value that was read."""

    __slots__ = ("_strong", "_weak", "fresh", "is_assigned", "parameter", "reads", "start", "value")

    def __init__(self, variable: Variable, held: bool, parameter: SymbolicTensor) -> None:
        self._strong = variable if held else None
        self._weak = weakref.ref(variable)
        self.parameter = parameter
        self.value = parameter
        self.reads: list[SymbolicTensor] = []
        self.start: Tensor | None = variable._current()  # when the trace first met it; let go when it is over
        self.fresh = True  # whether the last entry of ``reads``, if any, is the present value
        self.is_assigned = False  # even if it was the value that it had

    @property
    def variable(self) -> Variable:
        """The variable; a caller that passed it as an argument still holds it."""
        variable = self._weak()
        assert variable is not None, "a variable argument outlives the call that passes it"
        return variable

    @property
    def is_held(self) -> bool:
        """Whether the trace keeps the variable alive, as it does unless the variable is an argument."""
        return self._strong is not None

    @property
    def is_written(self) -> bool:
        return self.value._node is not self.parameter._node


class CustomVJP(NamedTuple):
    """Values with a derivative of their own: ``vjp(*cotangents of outputs)`` returns the cotangents of ``inputs``."""

    inputs: tuple[SymbolicTensor, ...]
    outputs: tuple[SymbolicTensor, ...]
    vjp: Callable[..., Any]


watchers: list[Callable[[Any], None]] = []
"""Raise TraceError if an error of an op, which may fail when the program runs, would be caught; ``flow.guarding`` adds
what knows that."""


class Trace:
    """One run of a Python function on symbolic tensors.  ``name`` is the function's, for messages.

    ``available`` are the values of ancestors that may become inputs, besides their inputs; the others are computed
    again.  With ``everything_available`` all of the parent's may.  ``assumptions`` are those of its symbolic extents.
    """

    __slots__ = (
        "__weakref__",
        "_available",
        "_borrowed",
        "_builder",
        "_captured",
        "_everything_available",
        "_may_create",
        "_order",
        "_positions",
        "_states",
        "added_losses",
        "assumptions",
        "conditional_error",
        "created_variables",
        "custom_vjps",
        "depends_on_identity",
        "exchanged",
        "extent_finder",
        "finished",
        "functions",
        "guard_builder",
        "has_codes",
        "keeps_codes",
        "keeps_unread_checks",
        "lifted",
        "live_arrays",
        "name",
        "numbers",
        "parent",
        "place",
        "sizes",
        "sizes_wanted",
        "sources",
    )

    def __init__(
        self,
        name: str,
        *,
        parent: Trace | None = None,
        available: Collection[Node] = (),
        everything_available: bool = False,
        borrowed: Iterable[Variable] = (),
        may_create_variables: bool = False,
        assumptions: ShapeEnv | None = None,
    ) -> None:
        self.name = name
        self.parent = parent
        self.exchanged: Any = None  # what the last exchange with other processes returned, for the next one
        self.assumptions: ShapeEnv = assumptions or (ShapeEnv(None, {}) if parent is None else parent.assumptions)
        self.lifted: dict[Node, Node] = {}  # nodes of ancestors -> nodes here
        self.sources: list[Tensor | State | Node | None] = []  # per input: capture, state, ancestor's node, or argument
        self._positions: dict[Node, int] = {}  # of inputs
        self.custom_vjps: list[CustomVJP] = []
        self.numbers: dict[Any, SymbolicTensor] = {}
        self.added_losses: dict[Any, Any] = {}  # what layers add to the loss
        self.live_arrays: Mapping[int, Any] = {}  # arrays of others, by id, that the program reads anew at each call
        self.place: str | None = None  # the user's line of what is recorded, if not the one that runs
        self.guard_builder: GuardSink | None = None  # takes note of what the program depends on besides its inputs
        self.sizes: Any = None  # ``data_dependent_sizes.Sizes``, of a trace that is given some
        # What makes an extent of an integer of the program, where calls find sizes: see ``data_dependent_sizes``.
        self.extent_finder: Callable[[SymbolicTensor, Callable[[], TraceError]], Any] | None = None
        self.conditional_error: Exception | None = None  # see ``note_conditional_error``
        self.sizes_wanted: Any = None  # the ``SizesWantedError`` where it is given none, and needs some
        self.has_codes = False  # whether there are texts in it, as codes: see ``string_tensor``
        self.keeps_codes = False  # whether calls keep the texts of these until they end
        self.keeps_unread_checks = True  # whether what nobody reads may fail, as in eager code
        self.finished = False
        self.depends_on_identity = False  # whether something looked at which tensors are one object: see ``aliases``
        self.created_variables = False
        self._available, self._everything_available = available, everything_available
        self._may_create = may_create_variables
        self._borrowed = {id(v) for v in borrowed}  # variables that the caller passes, and that are not kept alive here
        self._builder = GraphBuilder(TABLE, name)
        self._captured: dict[int, Node] = {}
        self._states: dict[int, State] = {}
        self._order: Tensor | None = None  # the token of the last effect
        # What programs made of this trace, and of those that have it as parent, call by number.
        self.functions: list[Callable[..., Any]] = [] if parent is None else parent.functions

    @property
    def ends_early(self) -> bool:
        """Whether it ends where a size is wanted that nobody knows."""
        return self.sizes is not None and self.sizes.end_trace

    @classmethod
    def of_graph(cls, graph: Graph, sources: Sequence[Any], assumptions: ShapeEnv) -> Trace:
        """The trace of a graph that a file holds: ``finish`` returns that graph.  Its ``sources`` are a variable or a
        tensor for each input, and None for an argument; conditions of the graph are those of ``assumptions``."""
        trace = cls(graph.name, assumptions=assumptions)
        trace._builder.inputs, trace._builder.nodes = list(graph.inputs), list(graph.nodes)
        read = {node for reader in graph.nodes for node in reader.inputs}.union(graph.results)
        for position, (node, source) in enumerate(zip(graph.inputs, sources, strict=True)):
            trace._positions[node] = position
            trace.sources.append(source)
            if isinstance(source, Variable):
                state = trace._states[id(source)] = State(source, True, SymbolicTensor(node, trace))
                trace.sources[-1] = state
                state.reads = [state.parameter] * (node in read)
                if position in graph.updates:
                    state.value = SymbolicTensor(graph.updates[position], trace)
                    state.fresh, state.is_assigned = False, True
            elif source is None:
                assumptions.argument(node.type.shape)
        assumptions.conditions += graph.conditions
        return trace

    # Inputs

    def _input(self, type: TensorType, name: str, role: Role, source: Tensor | Node | None) -> Node:
        node = self._builder.parameter(type, name, role)
        self._positions[node] = len(self.sources)
        self.sources.append(source)
        return node

    def argument(self, type: TensorType, name: str, is_weak: bool = False) -> SymbolicTensor:
        """A new argument of the traced function; ``is_weak`` for a NumPy scalar."""
        self.assumptions.argument(type.shape)
        return SymbolicTensor(self._input(type, name, Role.ARGUMENT, None), self, is_weak, is_given=True)

    def _capture(self, tensor: Tensor) -> Node:
        node = self._captured.get(id(tensor))
        if node is None:
            node = self._input(tensor.type, f"capture{len(self._captured)}", Role.CAPTURE, looked_at(tensor))
            self._captured[id(tensor)] = node
        return node

    def _state(self, variable: Variable) -> State:
        state = self._states.get(id(variable))
        if state is None:
            name = variable.name or f"variable{len(self._states)}"
            node = self._input(variable._tensor.type, name, Role.STATE, None)
            state = State(variable, id(variable) not in self._borrowed, SymbolicTensor(node, self))
            self.sources[-1] = state
            self._states[id(variable)] = state
        return state

    def _node(self, tensor: Tensor) -> Node:
        if not isinstance(tensor, SymbolicTensor):
            return self._capture(tensor)
        node = tensor._node
        if tensor._trace is self:
            return node
        result = self.lifted.get(node)
        if result is not None:
            return result
        ancestor = self.parent
        while ancestor is not None:
            if tensor._trace is ancestor:
                return self._lift(node, ancestor)
            if node in ancestor.lifted:
                return self._lift(ancestor.lifted[node], ancestor)
            ancestor = ancestor.parent
        origin = tensor._trace.name
        is_branch = isinstance(tensor._trace, Trace) and tensor._trace.parent is not None
        kind = ConcretizationError if is_branch else TraceError
        raise kind(
            self.name,
            f"a tensor ({node.type} made by {node.op.name} at {short_location(node.where) or 'an unknown line'}) "
            f"leaked out of the trace of {origin} and is used here. It stood for a value during that trace only: "
            f"return it from {origin}, or keep it in an hf.Variable.",
        )

    # Values of ancestors

    def _computed_again(self, node: Node, owner: Trace) -> bool:
        """Whether a value of an ancestor is computed here instead of being kept: because that is free, or forced."""
        if node.is_parameter:
            return False
        if node.op.kind is Kind.CREATE or node.op.name == "broadcast":
            return True
        if owner is self.parent and self._everything_available:
            return False
        return node not in self._available

    def _lift(self, wanted: Node, owner: Trace) -> Node:
        stack = [wanted]
        while stack:
            node = stack[-1]
            if node in self.lifted:
                stack.pop()
            elif not self._computed_again(node, owner):
                self.lifted[node] = self._input(node.type, f"kept{len(self.sources)}", Role.ARGUMENT, node)
            elif missing := [n for n in node.inputs if n not in self.lifted]:
                stack.extend(missing)
            else:
                self._builder.location = node.where
                lifted = self._builder.emit(node.op, *(self.lifted[n] for n in node.inputs), **node.attrs)
                self.lifted[node] = lifted
                if isinstance(node.type, TupleType):
                    self._builder.results(lifted)  # derivatives ask for all of them
        return self.lifted[wanted]

    # Recording

    def record(self, op: OpDef, inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Any:
        """Append one op; called by ``dispatch.apply``.  Its result, or a tuple of several.

        Raises the op's errors, and TraceError for leaked tensors.
        """
        nodes = [self._node(x) for x in inputs]
        self._builder.location = self.place or user_location(2)
        node = self._builder.emit(op, *nodes, **attrs)
        if node.effect is Effect.RAISES:
            for watch in watchers:
                watch(op)
        for part in parts_of(node.type):
            self.assumptions.specialize(op.name, part.shape)
        if isinstance(node.type, TupleType):
            return tuple([SymbolicTensor(part, self) for part in self._builder.results(node)])
        return SymbolicTensor(node, self)

    def widen(self, node: Node, type: TensorType) -> None:
        """Give a call of a function in Python, recorded here, another result, behind those that it has."""
        self._builder.change(node, types=(*node.attrs["types"], type))
        self.assumptions.specialize(node.op.name, type.shape)

    def one_result(self, node: Node, index: int) -> SymbolicTensor:
        """One of the results of a node that was recorded here."""
        self._builder.location = node.where
        return SymbolicTensor(self._builder.project(node, index=index), self)

    def add_custom_vjp(self, inputs: Iterable[Tensor], outputs: Iterable[Tensor], vjp: Callable[..., Any]) -> None:
        """Give ``outputs``, just recorded, their own derivative with respect to ``inputs``."""
        from_outside, from_within = (
            tuple([SymbolicTensor(self._node(x), self) for x in inputs]),
            tuple([SymbolicTensor(x._node, self) for x in outputs if isinstance(x, SymbolicTensor)]),
        )
        self.custom_vjps.append(CustomVJP(from_outside, from_within, vjp))

    def read_variable(self, variable: Variable) -> SymbolicTensor:
        """The variable's value at this point of the trace.

        A value read after a write is cut off from what was written, as it is in eager mode: the gradient with respect
        to a variable is that of what was read from it.
        """
        if variable is ORDER:
            return self._last_effect()
        state = self._state(variable)
        if not state.reads or not state.fresh:
            value = state.value
            state.reads.append(self.record(TABLE["stop_gradient"], (value,), {}) if state.is_assigned else value)
            state.fresh = True
        return state.reads[-1]

    def write_variable(self, variable: Variable, value: Tensor) -> None:
        """Later reads of the variable in this trace see ``value``, and so does the variable after each call."""
        if variable is ORDER:
            self._order = value
            return
        state = self._state(variable)
        state.value = SymbolicTensor(self._node(value), self)
        state.fresh, state.is_assigned = False, True

    def _last_effect(self) -> Any:
        if self._order is None:
            self._order = self.record(TABLE["token"], (), {})
        return self._order

    # Going back

    def mark(self) -> Any:
        """What ``rollback_to`` takes."""
        states = {key: (s, s.value, list(s.reads), s.fresh, s.is_assigned) for key, s in self._states.items()}
        counts = len(self._builder.inputs), len(self._builder.nodes), len(self.sources), len(self.custom_vjps)
        return (
            counts,
            states,
            dict(self.lifted),
            dict(self.numbers),
            dict(self._captured),
            self._order,
            dict(self.added_losses),
        )

    def rollback_to(self, mark: Any) -> None:
        """Forget what was recorded since ``mark`` was made."""
        (inputs, nodes, sources, spans), states, lifted, numbers, captured, self._order, kept = mark
        del self._builder.inputs[inputs:], self._builder.nodes[nodes:], self.sources[sources:], self.custom_vjps[spans:]
        self.lifted, self.numbers, self._captured = dict(lifted), dict(numbers), dict(captured)
        self.added_losses = dict(kept)
        self._states = {key: state for key, (state, *_) in states.items()}
        for state, value, reads, fresh, is_assigned in states.values():
            state.value, state.reads, state.fresh, state.is_assigned = value, list(reads), fresh, is_assigned

    def known_elements(self, node: Node) -> np.ndarray | None:
        """The elements of a constant, or of a tensor from outside; None for other values."""
        if node.op is TABLE["constant"]:
            return np.asarray(node.attrs["value"].array)
        tensor = self._from_outside(node) if node.is_parameter else None
        return None if tensor is None else tensor._known()

    def _from_outside(self, parameter: Node) -> Tensor | None:
        """The tensor that an input stands for, unless each call brings its own."""
        source = self.sources[self._positions[parameter]]
        return source if isinstance(source, Tensor) else None

    def read_foreign(self, value: object) -> None:
        outside = self.root.guard_builder
        if outside is not None:
            outside.opaque_array(value)

    def read_shared(self, tensor: object, array: object) -> None:
        outside = self.root.guard_builder
        if outside is not None:
            outside.shared_memory(tensor, array)

    def called(self, function: Callable[..., Any], text: str) -> Callable[..., Any]:
        outside = self.root.guard_builder
        return function if outside is None else outside.called(function, text)

    def on_attribute_write(self, owner: object, name: str) -> None:
        """Called when code of ours is about to set an attribute of the user's."""
        outside = self.root.guard_builder
        if outside is not None:
            outside.on_attribute_write(owner, name)

    def enclosing(self) -> Iterator[Trace]:
        """This trace and those that it is part of, innermost first."""
        trace: Trace | None = self
        while trace is not None:
            yield trace
            trace = trace.parent

    @property
    def root(self) -> Trace:
        """The last of ``enclosing``, which is that of the function itself."""
        root = self
        while root.parent is not None:
            root = root.parent
        return root

    def strategy_axis(self) -> Any:
        """The mesh axis of the strategy one of whose replicas this is part of, if it is."""
        return None if self.parent is None else self.parent.strategy_axis()

    def before_variable_creation(self) -> None:
        """Called when a variable is about to be made; raises TraceError unless this is the function's first trace."""
        if not self._may_create:
            raise TraceError(
                "Variable",
                f"{self.name} makes a variable each time it is traced, and would start it anew each time. Make it "
                "once: either outside of the function, or inside under a guard such as `if self.v is None: self.v = "
                "hf.Variable(...)`.",
            )
        self.created_variables = True

    def initial_value(self, tensor: Tensor) -> Tensor:
        """The value, now, of a tensor that depends on no argument: what a variable made here starts from.

        Variables that were read and written to compute it, such as the state of a random generator, keep what was
        written: the trace itself will not run, because a function that made variables is traced again.
        """
        if not isinstance(tensor, SymbolicTensor):
            return tensor
        values: dict[Node, Any] = {}
        wanted = self._node(tensor)
        needed = self._needed([wanted], set())
        seen = set(needed)
        written = [state for state in self._states.values() if state.is_written and state.parameter._node in seen]
        needed += self._needed([state.value._node for state in written], seen)
        with suspended():
            for node in needed:
                if node.is_parameter:
                    values[node] = self._known_now(node)
                    continue
                inputs = tuple(values[n] for n in node.inputs)
                if node.op is TABLE["transfer"]:
                    values[node] = inputs[0].to_device(node.attrs["device"])
                elif node.op.name == "project":  # one of the several results of an op, which are a tuple
                    values[node] = inputs[0][node.attrs["index"]]
                else:
                    values[node], _ = execute(node.op, inputs, dict(node.attrs))
        for state in written:
            state.variable._write(values[state.value._node])
        result: Tensor = values[wanted]
        return result

    def _known_now(self, parameter: Node) -> Tensor:
        """What an input stood for when the trace began.  Raises TraceError for arguments."""
        source = self.sources[self._positions[parameter]]
        if isinstance(source, State):
            assert source.start is not None
            return source.start
        if isinstance(source, Tensor):
            return source
        raise TraceError(
            "Variable",
            f"the initial value depends on the argument {parameter.attrs['name']} of {self.name}, which has no "
            "value while tracing. Make the variable outside of the function.",
        )

    @staticmethod
    def _needed(results: Iterable[Node], seen: set[Node]) -> list[Node]:
        """The nodes that results are computed from, themselves included, but for those that were seen before: each
        behind its inputs."""
        result: list[Node] = []
        entered: set[Node] = set()
        waiting = list(results)
        while waiting:
            node = waiting[-1]
            if node in seen:
                waiting.pop()
            elif node in entered:
                waiting.pop()
                seen.add(node)
                result.append(node)
            else:
                entered.add(node)
                waiting += [n for n in node.inputs if n not in seen]
        return result

    # Results

    @property
    def inputs(self) -> list[Node]:
        return self._builder.inputs

    @property
    def nodes(self) -> list[Node]:
        return self._builder.nodes

    @property
    def states(self) -> Collection[State]:
        return self._states.values()

    def node_of(self, tensor: Tensor) -> Node:
        """The node that stands for ``tensor``; eager tensors become captures.  Raises TraceError for leaked ones."""
        return self._node(tensor)

    def finish(self, outputs: Iterable[Node]) -> Graph:
        """The graph of everything recorded.  Tensors of this trace that are used later are reported as leaked."""
        self.finished = True
        self.assumptions.close()
        for state in self._states.values():
            state.start = None
        updates = {
            i: source.value._node
            for i, source in enumerate(self.sources)
            if isinstance(source, State) and source.is_written
        }
        graph = self._builder.finish(outputs, updates)
        return graph if self.keeps_unread_checks else self._without_unread(graph)

    def _without_unread(self, graph: Graph) -> Graph:
        """The graph without nodes whose values nobody reads, except errors of the user's, and effects."""
        spans = [x for span in self.custom_vjps for x in (*span.inputs, *span.outputs)]
        live = {*graph.results, *(x._node for x in spans)}
        for node in reversed(graph.nodes):
            if node in live or (node.op.kind is Kind.CONTROL and node.effect.is_observable):
                live.add(node)
                live.update(node.inputs)
        return graph.rebuild({}, [node for node in graph.nodes if node in live])


numpy_scalar.install()
symbolic_number.install()
