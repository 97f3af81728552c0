"""Programs of several devices, cut into parts of one each.

An op runs where its operands lie.  Those that lie on different devices are a DeviceError, unless ``transfer`` says
where one is to be; single numbers, captured tensors and small arguments follow the others, and so does what is computed
of these alone.  What is made of nothing is made where it is wanted.

A value is known by its node and by the device on which it is (``Value``).  The part that computes it comes as early as
its operands allow: parts are (stage, device), and what crosses to another device comes a stage later, so that parts of
a stage run side by side.  Values that cost nothing to make, such as broadcasts, are made anew in each part.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hybridflow.compiler.graph_inlining import symbols_in, symbols_of_input
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.graph import Effect, Graph, Node, Role, graphs_in, parameter
from hybridflow.compiler.ir.results import TupleType, is_token
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.op_table import Kind
from hybridflow.errors import DeviceError

_TRANSFER, _BACK = _MOVES = TABLE["transfer"], TABLE["transfer_back"]


class InputPlacement(NamedTuple):
    """Where an input lies; it goes where it is wanted unless it is ``fixed`` there."""

    device: str
    fixed: bool


class Value(NamedTuple):
    """The value of a node, on a device."""

    node: Node
    device: str


class Part(NamedTuple):
    """What runs on one device as a program: ``graph`` takes the values ``takes``, then an array of the shape (n, 0) for
    each of the symbols ``sizes``, and gives the values ``gives``.  ``updates`` are the inputs of the whole that it
    updates, in the order of its own inputs."""

    device: str
    graph: Graph
    takes: tuple[Value, ...]
    sizes: tuple[str, ...]
    gives: tuple[Value, ...]
    updates: tuple[int, ...]


class Cut(NamedTuple):
    """The parts, in an order in which they may run.  ``sources`` say where what a part takes from elsewhere is copied
    from, ``where`` the user's line that has it copied, if there is one."""

    parts: tuple[Part, ...]
    outputs: tuple[Value, ...]
    sources: Mapping[Value, str]
    where: Mapping[Value, str | None]


class _Hold(enum.IntEnum):
    """How firmly a value is where it is."""

    LOOSE = 0  # computed wherever it is wanted
    NUMBER = 1  # computed in one place, and copied where it is wanted, as single numbers are
    FIRM = 2


class _Placement(NamedTuple):
    device: str
    hold: _Hold
    node: Node  # what the value is, without transfers


def is_placed(graph: Graph) -> bool:
    """Whether the code says where values are to be."""
    return any(node.op in _MOVES or any(map(is_placed, graphs_in(node.attrs))) for node in graph.nodes)


def device_of(graph: Graph, inputs: Sequence[InputPlacement], otherwise: str) -> str | None:
    """The one device on which a program runs as a whole; None where it takes several.  Raises DeviceError as ``cut``
    does.  ``otherwise`` is the device where neither inputs nor code name one."""
    places = _placements(graph, inputs, otherwise)
    firm = {place.device for place in places.values() if place.hold is not _Hold.LOOSE}
    if len(firm) > 1:
        return None
    return firm.pop() if firm else max((at.device for at in inputs), default=otherwise)


def cut(graph: Graph, inputs: Sequence[InputPlacement], otherwise: str) -> Cut:
    """The parts of a program whose inputs are ``inputs``.

    Raises DeviceError, with the user's line, where operands lie on different devices, and where control flow names
    another device than the one on which it runs.
    """
    places = _placements(graph, inputs, otherwise)
    return _Cutting(graph, inputs, places).cut()


# ---- where values are


def _placements(graph: Graph, inputs: Sequence[InputPlacement], otherwise: str) -> dict[Node, _Placement]:
    result: dict[Node, _Placement] = {}
    for node, at in zip(graph.inputs, inputs, strict=True):
        result[node] = _Placement(at.device, _Hold.FIRM if at.fixed else _Hold.LOOSE, node)
    for node in graph.nodes:
        if node.op is _TRANSFER:
            result[node] = _Placement(node.attrs["device"], _hold(node, _Hold.FIRM), result[node.inputs[0]].node)
        elif node.op is _BACK:
            x, there = (result[n] for n in node.inputs)
            result[node] = _Placement(there.device, _hold(node, _Hold.FIRM), x.node)
        else:
            result[node] = _placement(graph.name, node, result, otherwise)
    return result


def _hold(node: Node, hold: _Hold) -> _Hold:
    """How firmly a result is held whose firmest operand is held so."""
    if hold is _Hold.FIRM and not isinstance(node.type, TupleType) and not node.shape:
        return _Hold.NUMBER
    return hold


def _placement(name: str, node: Node, placements: Mapping[Node, _Placement], otherwise: str) -> _Placement:
    operands = [n for n in node.inputs if not is_token(n.type)]
    named = sorted({inner for graph in graphs_in(node.attrs) for inner in _named(graph)})
    hold = max((placements[n].hold for n in operands), default=_Hold.LOOSE)
    held = [n for n in operands if placements[n].hold is hold]
    if hold is _Hold.FIRM:
        device = placements[held[0]].device
        for other in held:
            if placements[other].device != device:
                raise _device_mismatch(name, node, held[0], other, placements)
    elif hold is _Hold.LOOSE and named:
        device, hold = named[0], _Hold.FIRM
    else:
        device = max((placements[n].device for n in held), default=otherwise)  # "gpu" sorts after "cpu"
    if any(inner != device for inner in named):
        raise DeviceError(
            name,
            f"code inside of a branch or a loop puts values on {' and '.join(named)}, and that branch or loop runs on "
            f"{device}, where its operands lie. Move these with x.to_device({named[0]!r}) before.",
            node.where,
        )
    if node.effect is Effect.ORDERED:
        hold = _Hold.FIRM  # it happens once
    return _Placement(device, _hold(node, hold), node)


def _named(graph: Graph) -> Iterator[str]:
    """The devices that the nodes of a sub-graph name."""
    for node in graph.nodes:
        if node.op is _TRANSFER:
            yield node.attrs["device"]
        for inner in graphs_in(node.attrs):
            yield from _named(inner)


def _device_mismatch(name: str, node: Node, x: Node, y: Node, placements: Mapping[Node, _Placement]) -> DeviceError:
    here, there = placements[x].device, placements[y].device
    return DeviceError(
        name,
        f"the operands of {node.op.name} lie on different devices: {x.type} on {here}, {y.type} on {there}. Move one "
        f"with x.to_device({here!r}), or create it inside `with hf.device({here!r})`.",
        node.where,
    )


# ---- parts


class _Draft:
    """A part that is being made; ``own`` are its nodes for those of the whole."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.own: dict[Node, Node] = {}
        self.nodes: list[Node] = []
        self.inputs: list[Node] = []
        self.takes: list[Value] = []
        self.gives: dict[Value, None] = {}
        self.updates: dict[int, Node] = {}  # inputs of the whole, and what they become

    def take(self, node: Node) -> None:
        attrs: Any = node.attrs if node.is_parameter else {"name": f"value{len(self.inputs)}", "role": Role.ARGUMENT}
        self.own[node] = parameter(node.type, attrs["name"], attrs["role"], node.where)
        self.inputs.append(self.own[node])
        self.takes.append(Value(node, self.device))

    def add(self, node: Node, op: Any, inputs: Sequence[Node], attrs: Any) -> None:
        self.own[node] = Node(op, inputs, attrs, node.type, node.where)
        self.nodes.append(self.own[node])


class _Cutting:
    def __init__(self, graph: Graph, inputs: Sequence[InputPlacement], places: Mapping[Node, _Placement]) -> None:
        self._graph, self._places = graph, places
        self._given = dict(zip(graph.inputs, inputs))
        self._wanted: dict[Node, dict[str, str | None]] = {}  # where each value is wanted, and the line that says so
        self._stages: dict[Value, int] = {}
        self._sources: dict[Value, str] = {}
        self._drafts: dict[tuple[int, str], _Draft] = {}

    def cut(self) -> Cut:
        graph, places = self._graph, self._places
        outputs = [Value(places[node].node, places[node].device) for node in graph.outputs]
        updates = {
            i: Value(places[node].node, self._given[graph.inputs[i]].device) for i, node in graph.updates.items()
        }
        for value, node in (*zip(outputs, graph.outputs), *zip(updates.values(), graph.updates.values())):
            self._want(value, node.where)
        self._want_operands()
        for node in graph.nodes:
            for device in self._computed_on(node):
                self._stages[Value(node, device)] = max((self._ready(x, device) for x in node.inputs), default=0)
                if not _is_free(node):
                    self._compute(self._draft(self._stages[Value(node, device)], device), node)
        for value in outputs:
            draft = self._draft(self._available(value), value.device)
            if value not in self._sources:  # what was copied is there
                self._give(draft, value)
        for i, value in sorted(updates.items()):
            draft = self._draft(self._available(value), value.device)
            self._in_draft(draft, graph.inputs[i])
            draft.updates[i] = self._in_draft(draft, value.node)
        for value, device in self._sources.items():
            if value.node not in self._given:
                source = Value(value.node, device)
                self._give(self._draft(self._stages[source], device), source)
        order = sorted(self._drafts, key=lambda key: (key[0], key[1] == "cpu", key[1]))  # GPUs work beside the host
        drafts = [self._drafts[key] for key in order]
        return Cut(
            tuple([self._part(d) for d in drafts if d.gives or d.updates or any(map(_has_effect, d.nodes))]),
            tuple(outputs),
            self._sources,
            {value: self._wanted[value.node][value.device] for value in self._sources},
        )

    # ---- what is wanted where

    def _want(self, value: Value, where: str | None) -> None:
        self._wanted.setdefault(value.node, {}).setdefault(value.device, where)

    def _want_operands(self) -> None:
        for node in reversed(self._graph.nodes):
            if self._places[node].node is not node:
                continue  # a transfer
            if _has_effect(node) or (node in self._wanted and not self._follows(node)):
                self._want(Value(node, self._places[node].device), node.where)
            for device in self._computed_on(node):
                for x in node.inputs:
                    there = self._places[x].device if is_token(x.type) else device
                    self._want(Value(self._places[x].node, there), x.where if x.op in _MOVES else node.where)

    def _follows(self, node: Node) -> bool:
        """Whether a value is computed wherever it is wanted, rather than copied there."""
        return self._places[node].hold is _Hold.LOOSE or _is_free(node)

    def _computed_on(self, node: Node) -> Sequence[str]:
        place = self._places[node]
        if place.node is not node or node not in self._wanted:
            return ()
        return tuple(self._wanted[node]) if self._follows(node) else (place.device,)

    # ---- in which stage

    def _ready(self, x: Node, device: str) -> int:
        """The first stage of a part on a device that may use an operand."""
        if not is_token(x.type):
            return self._available(Value(self._places[x].node, device))
        value = Value(x, self._places[x].device)
        return self._stages[value] + (value.device != device)

    def _available(self, value: Value) -> int:
        """The first stage of a part on its device that may use a value; notes it where that is a copy."""
        if value in self._stages:
            return self._stages[value]
        input_place = self._given.get(value.node)
        source = self._places[value.node].device if input_place is None else input_place.device
        if source != value.device:
            self._sources[value] = source
        return 0 if input_place is not None else self._stages[Value(value.node, source)] + 1

    # ---- what is in the parts

    def _draft(self, stage: int, device: str) -> _Draft:
        return self._drafts.setdefault((stage, device), _Draft(device))

    def _compute(self, draft: _Draft, node: Node) -> None:
        draft.add(node, node.op, [self._in_draft(draft, self._places[x].node) for x in node.inputs], node.attrs)

    def _in_draft(self, draft: _Draft, node: Node) -> Node:
        """What a value is in a part: it is computed there, or taken from where it is."""
        if node in draft.own:
            return draft.own[node]
        if is_token(node.type):
            draft.add(node, TABLE["token"], (), {})  # parts run one after another
        elif not node.is_parameter and _is_free(node):
            self._compute(draft, node)
        else:
            draft.take(node)
            value = Value(node, draft.device)
            if value in self._stages:
                self._give(self._draft(self._stages[value], draft.device), value)
        return draft.own[node]

    def _give(self, draft: _Draft, value: Value) -> None:
        self._in_draft(draft, value.node)
        draft.gives[value] = None

    def _part(self, draft: _Draft) -> Part:
        told = {name for node in draft.inputs for name in symbols_of_input(node)}
        known = {name for node in self._graph.inputs for name in symbols_of_input(node)}
        named = [name for node in (*draft.inputs, *draft.nodes) for name in symbols_in(node)]
        sizes = tuple(dict.fromkeys([name for name in named if name in known and name not in told]))
        inputs = [*draft.inputs, *(parameter(TensorType((Dim(n), 0), dtypes.bool_), n) for n in sizes)]
        positions = {draft.own[self._graph.inputs[i]]: i for i in draft.updates}
        updates = {k: positions[node] for k, node in enumerate(inputs) if node in positions}
        graph = Graph(
            self._graph.name,
            tuple(inputs),
            tuple(draft.nodes),
            tuple([draft.own[value.node] for value in draft.gives]),
            {k: draft.updates[i] for k, i in updates.items()},
        )
        return Part(
            draft.device,
            graph,
            tuple(draft.takes),
            sizes,
            tuple(draft.gives),
            tuple(updates[k] for k in sorted(updates)),
        )


def _has_effect(node: Node) -> bool:
    return node.effect.is_observable


def _is_free(node: Node) -> bool:
    """Whether a value is made anew in each part rather than kept, or copied."""
    return node.op.kind is Kind.CREATE or node.op is TABLE["broadcast"]
