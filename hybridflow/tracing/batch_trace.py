"""Functions of one example, run for many at once: they are traced, their graphs batched, and what comes of it is run.

``Examples`` is the region in which one example is traced, inside of another trace or of none.  What it reads of its
surroundings is the same for all examples, but for random generators: each example has one of its own, split from that
outside, unless all are to draw the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.array.random import is_state
from hybridflow.compiler.batching import EXCHANGED, batched_graph
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.dtypes import int32, int64, uint64
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Graph, Node, parameter
from hybridflow.compiler.ir.text import to_text
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.batching_rules import MeshAxis, mapped
from hybridflow.core.context import now, resumed, tracing
from hybridflow.core.tensor import Tensor
from hybridflow.core.tier_up import BATCHED_GRAPHS, remember
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply, builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError
from hybridflow.runtime import fork_safe_locks
from hybridflow.tracing.compiled_trace import CompiledTrace
from hybridflow.tracing.effect_token import ORDER
from hybridflow.tracing.subtrace import CapturedVariable, SubTrace, all_operands
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import Trace

Body = Callable[[list[Tensor]], Sequence["Tensor | None"]]

Functions = Sequence[Callable[..., Any]]
Program = tuple[CompiledTrace | None, list[tuple[bool, int]]]

# By text and what is called by number: how often it was run, and what runs it.
_known: dict[tuple[Any, ...], list[Any]] = {}
_lock = fork_safe_locks.make()


# ---- running graphs


def run_graph(graph: Graph, inputs: Sequence[Tensor], functions: Functions = ()) -> list[Tensor]:
    """The outputs of a graph without state for tensors: run, recorded by the tapes that there are, or recorded into the
    trace that is going on.

    Outside of traces its ops are run one by one at first; graphs that come again, and loops, are compiled.  What is
    called by number is among the ``functions``; in a trace, its own.  Graphs that call some are compiled at once, and
    kept for exchanges alone: the user's are other functions each time, and hold what is theirs.
    """
    if now().trace is not None:
        return _recorded(graph, inputs)
    if not all(getattr(function, "is_exchange", False) for function in functions):
        return _run(_compiled(graph, functions), inputs)
    key = (to_text(graph, locations=False), *functions)
    with _lock:
        entry = _known.pop(key, None) or [0, None]
        entry[0] += 1
        remember(_known, key, entry, BATCHED_GRAPHS.capacity)
    if (
        not functions
        and entry[0] < BATCHED_GRAPHS.threshold
        and all(node.op.kind is not Kind.CONTROL or node.op.calls_host for node in graph.nodes)
    ):
        return _recorded(graph, inputs)
    if entry[1] is None:
        entry[1] = _compiled(graph, functions)
    return _run(entry[1], inputs)


def _run(program: Program, inputs: Sequence[Tensor]) -> list[Tensor]:
    staged, places = program
    outputs = [] if staged is None else staged(inputs)
    return [inputs[k] if is_input else outputs[k] for is_input, k in places]


def _recorded(graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The ops of the graph, applied one after another at the user's lines that made them."""
    trace: Any = now().trace
    values: dict[Node, Any] = dict(zip(graph.inputs, inputs))
    before = None if trace is None else trace.place
    try:
        for node in graph.nodes:
            if node.op.kind is Kind.PROJECT:
                values[node] = values[node.inputs[0]][node.attrs["index"]]
                continue
            if trace is not None:
                trace.place = node.where
            values[node] = apply(node.op, *(values[n] for n in node.inputs), **node.attrs)
    finally:
        if trace is not None:
            trace.place = before
    return [values[n] for n in graph.outputs]


def _compiled(graph: Graph, functions: Functions = ()) -> Program:
    """The program, and where each output is: whether among the inputs, and its position."""
    trace = Trace(graph.name)
    trace.functions[:] = functions
    inputs = [trace.argument(node.type, f"x{k}") for k, node in enumerate(graph.inputs)]
    with tracing(trace):
        nodes = [trace.node_of(x) for x in _recorded(graph, inputs)]
    positions = {node: k for k, node in enumerate(trace.inputs)}
    outputs = {node: k for k, node in enumerate(dict.fromkeys(node for node in nodes if node not in positions))}
    places = [(True, positions[node]) if node in positions else (False, outputs[node]) for node in nodes]
    return CompiledTrace(trace, tuple(outputs), False) if outputs or functions else None, places


# ---- one example


class Examples(SubTrace):
    """One example while it is traced.  ``generators`` say what becomes of random numbers: each example draws its own
    ("different"), all draw the same ("same"), or that is an error ("error")."""

    __slots__ = ("_generators", "_size", "axis", "batched", "split")

    def __init__(self, name: str, size: Extent, generators: str, axis: MeshAxis | None = None) -> None:
        super().__init__(name)
        self._size, self._generators = size, generators
        self.axis = axis  # along which the examples are replicas, if they are
        self.batched: list[tuple[Tensor, Tensor]] = []  # inputs of each example's own, with the tensors for all
        self.split: set[int] = set()  # ids of the variables of generators that were split

    def example_of(self, x: Tensor, name: str) -> Tensor:
        """An input that stands for one slice of ``x`` along the first axis."""
        stand_in = self.carry(x.type.with_shape(x.shape[1:]), name)
        self.batched.append((stand_in, x))
        return stand_in

    def read_variable(self, variable: Variable) -> SymbolicTensor:
        if variable is ORDER and self.parent is None:
            return self._last_effect()
        self._meet(variable)
        return super().read_variable(variable)

    def write_variable(self, variable: Variable, value: Tensor) -> None:
        if variable is ORDER and self.parent is None:
            self._order = value
            return
        self._meet(variable)
        super().write_variable(variable, value)

    def strategy_axis(self) -> MeshAxis | None:
        if self.axis is not None and self.axis.is_strategy:
            return self.axis
        axis: MeshAxis | None = super().strategy_axis()
        return axis

    def before_variable_creation(self) -> None:
        """A replica of a strategy may make variables where its surroundings may: they are those of all replicas."""
        if self.axis is None or not self.axis.is_strategy:
            super().before_variable_creation()
        elif self._outer is not None:
            self._outer.before_variable_creation()

    def _meet(self, variable: Variable) -> None:
        """Where a generator's state is come to, let each example have a generator of its own."""
        if id(variable) in self._held or id(variable) in self.split or not is_state(variable):
            return
        if self._generators == "error":
            raise ArgumentError(
                self.name,
                "the function draws random numbers, and randomness is 'error'. Give each example a seed of its own, "
                "for the stateless functions of hf.random.",
            )
        if self._generators == "same":
            return
        self.split.add(id(variable))
        with resumed(self._around):
            seeds = self._own_seeds(variable)
        self._held[id(variable)] = CapturedVariable(variable, self.example_of(seeds, variable.name or "state"), None)

    def _own_seeds(self, variable: Variable) -> Tensor:
        """A generator's state for each example; of replicas, whoever has them, by their number."""
        share = None if self.axis is None else self.axis.share
        if self.axis is None or share is None:
            return _seeds(variable, self._size)
        seeds = _seeds(variable, self.axis.size)
        first, last = share.first, share.first + self.axis.here
        seed: Tensor = builder.slice(seeds, start=(first, 0), stop=(last, 2), step=(1, 1))
        return seed


def _seeds(variable: Variable, size: Extent) -> Tensor:
    """The state of a generator for each example: seeds drawn from one outside, whose stream goes on behind them."""
    state = variable._read()
    words = apply(TABLE["random_bits"], state, shape=(size, 2))
    wide = apply(TABLE["convert"], words, dtype=uint64)
    low, high = (
        builder.slice(wide, start=(0, k), stop=(size, k + 1), step=(1, 1)) for k in (0, 1)
    )  # fmt: skip
    factor = builder.full(2**32, low.type)
    seeds = builder.add(low, builder.multiply(high, factor))
    used = as_tensor((size + 1) // 2, "random", uint64)  # blocks of four words
    zero = builder.full(0, TensorType((1,), uint64))
    step = builder.concat(zero, builder.reshape(used, shape=(1,)), axis=0)
    variable.assign(builder.add(state, step))
    return builder.concat(seeds, builder.full(0, seeds.type), axis=1)


# ---- many examples


def over_examples(
    name: str,
    body: Body,
    xs: Sequence[Tensor],
    size: Extent,
    generators: str = "same",
    together: bool = True,
    axis: MeshAxis | None = None,
) -> tuple[list[Tensor | None], list[bool]]:
    """What ``body`` makes of each slice of ``xs`` along the first axis, of which there are ``size``: stacked along a
    first axis, or once for all examples, and which is the case.  ``together``: not one after the other.  ``axis``: they
    are the replicas along that axis of a mesh.

    Raises ArgumentError where a variable would get a value of each example.
    """
    region = Examples(name, size, generators, axis)
    stand_ins = [region.example_of(x, f"x{k}") for k, x in enumerate(xs)]
    with region.entered():
        results_of_body = body(stand_ins)
    variables = [variable for variable in region.assigned if id(variable) not in region.split]
    outputs = [*(x for x in results_of_body if x is not None), *map(region.value_of, variables)]
    operands = all_operands([(region, outputs)])
    graph = region.graph(name, [x for x, _ in region.batched], operands, outputs)
    graph = _live(graph)
    inputs = [*(x for _, x in region.batched), *operands]
    is_batched = [k < len(region.batched) for k in range(len(inputs))]
    shared = axis is not None and axis.share is not None
    if shared:
        graph, inputs, is_batched = _in_order(graph, inputs, is_batched)
    if together:
        with mapped(axis, region.functions):
            wide, flags = batched_graph(graph, is_batched, size)
    else:
        wide, flags = _one_after_another(graph, len(region.batched), size)
    results = run_graph(wide, inputs, region.functions)
    if shared:
        trace: Any = now().trace
        if trace is not None:
            trace.exchanged = results[-1]
        results, flags = results[:-1], flags[:-1]
    count = len(outputs) - len(variables)
    for variable, value, differs in zip(variables, results[count:], flags[count:]):
        _assign(name, variable, value, differs)
    rest = iter(zip(results[:count], flags))
    pairs = [(None, False) if x is None else next(rest) for x in results_of_body]
    return [x for x, _ in pairs], [flag for _, flag in pairs]


def _in_order(graph: Graph, inputs: list[Tensor], stacked: list[bool]) -> tuple[Graph, list[Tensor], list[bool]]:
    """The graph with what the last exchange before it returned as an input more, and that of its own last one as an
    output more."""
    trace: Any = now().trace
    last = None if trace is None else trace.exchanged
    last = as_tensor(0, "exchange", int32) if last is None else last
    node = parameter(last.type, EXCHANGED)
    wider = Graph(graph.name, (*graph.inputs, node), graph.nodes, (*graph.outputs, node))
    return wider, [*inputs, last], [*stacked, False]


def _assign(name: str, variable: Variable, value: Tensor, differs: bool) -> None:
    if differs:
        what = f"the variable {variable.name!r}" if variable.name else "a variable"
        raise ArgumentError(
            name,
            f"{what} is assigned a value of each example, and can have one. Return the values, and assign what is to "
            "be made of all of them, as in v.assign(hf.mean(values, axis=0)).",
        )
    variable.assign(value)


def _live(graph: Graph) -> Graph:
    """The graph without what nobody needs, but for what has an effect or may raise."""
    live = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in live or node.effect.is_observable:
            live.add(node)
            live.update(node.inputs)
    return Graph(graph.name, graph.inputs, tuple([n for n in graph.nodes if n in live]), graph.outputs)


def _one_after_another(graph: Graph, carried: int, size: Extent) -> tuple[Graph, tuple[bool, ...]]:
    """A loop over the examples."""
    b = GraphBuilder(TABLE, graph.name)
    xs = [
        b.parameter(n.type.with_shape((size, *n.shape)) if k < carried else n.type, f"x{k}")
        for k, n in enumerate(graph.inputs)
    ]
    whole = b.scan(*xs, body=graph, carries=0, stacked=carried, length=size, reverse=False)
    return b.finish(b.results(whole)), (True,) * len(graph.outputs)


def one_hots(type: TensorType) -> Tensor:
    """As many arrays of a type as it has elements, each with a 1 at one place and 0 elsewhere, stacked."""
    count = type.size
    rows = builder.iota(shape=(count, count), axis=0, dtype=int64)
    columns = builder.iota(shape=(count, count), axis=1, dtype=int64)
    matches = builder.convert(builder.equal(rows, columns), dtype=type.dtype)
    return builder.reshape(matches, shape=(count, *type.shape))
