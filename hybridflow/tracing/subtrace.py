"""Regions: the branches and bodies of control flow while they are traced.

A region is a trace inside of a trace that goes on.  What it reads of its surroundings becomes operands of the control
flow, and inputs of the region's graph; constants are made anew inside.  Variables are read outside until the region
assigns them: what it assigned it hands on as further results, so that they are carries of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.compiler.ir.graph import Graph, Node, Role, parameter
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.op_table import Kind
from hybridflow.core.context import now, resumed, tracing
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.errors import TraceError
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import Trace

if TYPE_CHECKING:
    from hybridflow.compiler.ir.types import TensorType


def note_conditional_error(error: BaseException, stage: str | None = None) -> None:
    """An exception leaves code of which a tensor decides whether it runs: it may be that no call raises it.

    An error of the ``stage``, that of the control flow itself, is one of each call."""
    trace: Any = now().trace
    if trace is not None and isinstance(error, Exception) and (stage is None or getattr(error, "stage", "") != stage):
        trace.root.conditional_error = error


class CapturedVariable:
    """A variable that a region assigns, or that comes in as a carry: its value so far, and what was read last.

    To a tape what is read is a value of its own, cut off from what was assigned.  It has the derivative of what was
    read outside, ``outside``: the gradient with respect to a variable is that of all that was read from it.
    """

    __slots__ = ("is_assigned", "outside", "read", "value", "variable")

    def __init__(self, variable: Variable, value: Tensor, outside: Tensor | None) -> None:
        self.variable, self.value, self.outside = variable, value, outside
        self.read: Tensor | None = None
        self.is_assigned = False


class SubTrace(Trace):
    """A branch or a body, traced inside of the trace that is going on, if there is one.  ``name`` is what messages call
    it."""

    __slots__ = ("_around", "_carries", "_closure_inputs", "_held", "_outer", "operands")

    def __init__(self, name: str) -> None:
        self._around = now()
        outer: Any = self._around.trace
        super().__init__(name, parent=outer)
        self._outer: Trace | None = outer
        self.live_arrays = {} if outer is None else outer.live_arrays
        self.operands: list[Tensor] = []  # what is read of the surroundings
        self._closure_inputs: dict[int, Node] = {}  # the input of each, by its id
        self._held: dict[int, CapturedVariable] = {}
        self._carries: dict[int, Node] = {}  # inputs of its own, by the ids of tensors, which it does not keep

    def entered(self) -> AbstractContextManager[None]:
        """Record into the region."""
        return tracing(self)

    def around(self) -> AbstractContextManager[None]:
        """Record into the trace around the region, for the length of a block."""
        return resumed(self._around)

    def carry(self, type: TensorType, name: str) -> SymbolicTensor:
        """An input of the region's own.  It stays that input, even where its elements are assigned to."""
        tensor = SymbolicTensor(self._input(type, name, Role.ARGUMENT, None), self)
        self._carries[id(tensor)] = tensor._node
        return tensor

    # ---- what is outside

    def _node(self, tensor: Tensor) -> Node:
        if isinstance(tensor, SymbolicTensor) and tensor._trace is self:
            return tensor._node
        result = self._closure_inputs.get(id(tensor))
        if result is None:
            if self._outer is not None:
                node = self._outer.node_of(tensor)  # which raises for what leaked from elsewhere
                result = None if self._is_tracked(tensor) else self._constant(node)
            elif isinstance(tensor, SymbolicTensor):
                super()._node(tensor)  # raises
            if result is None:
                result = self._input(tensor.type, f"given{len(self.operands)}", Role.ARGUMENT, None)
            self._closure_inputs[id(tensor)] = result
            self.operands.append(tensor)  # constants too: an id is that of something that is there
        return result

    def _is_tracked(self, tensor: Tensor) -> bool:
        """Whether a tape around the region follows the tensor."""
        if any(tape.tracks(tensor) for tape in self._around.tapes):
            return True
        return isinstance(self._outer, SubTrace) and self._outer._is_tracked(tensor)

    def _constant(self, node: Node) -> Node | None:
        """A constant of the surroundings, made here anew; None for other values."""
        if node.is_parameter or is_token(node.type):
            return None
        if node.op.kind is Kind.CREATE and not node.inputs:
            return self._builder.emit(node.op, **node.attrs)
        if node.op is TABLE["broadcast"]:
            inner = self._constant(node.inputs[0])
            return None if inner is None else self._builder.emit(node.op, inner, **node.attrs)
        return None

    def _from_outside(self, parameter: Node) -> Tensor | None:
        return next((x for x in self.operands if self._closure_inputs[id(x)] is parameter), None)

    # ---- variables

    def carry_variable(self, variable: Variable, name: str) -> SymbolicTensor:
        """Let a variable come in as an input of the region's own."""
        tensor = self.carry(variable._tensor.type, name)
        self._held[id(variable)] = CapturedVariable(variable, tensor, self._outside(variable))
        return tensor

    def _outside(self, variable: Variable) -> Tensor | None:
        """What is read of a variable outside, where derivatives with respect to it are of interest."""
        if not variable.is_watched:
            return None
        with resumed(self._around):
            return variable._read()

    @property
    def assigned(self) -> list[Variable]:
        """The variables that the region assigns, in the order of their first assignments."""
        return [held.variable for held in self._held.values() if held.is_assigned]

    def read_variable(self, variable: Variable) -> SymbolicTensor:
        held = self._held.get(id(variable))
        if held is None:
            with resumed(self._around):
                outside: Any = variable._read()
            return outside
        if held.read is None:
            held.read = self._read_of(held)
        read: Any = held.read
        return read

    def _read_of(self, held: CapturedVariable) -> Tensor:
        if is_token(held.value.type):
            return held.value
        if held.outside is None:
            cut: Tensor = self.record(TABLE["stop_gradient"], (held.value,), {}) if held.is_assigned else held.value
            return cut
        g = parameter(held.value.type, "cotangent")
        attrs = {"derivative": Graph("derivative", (g,), (), (g,)), "made": 1, "given": 1}
        read: Tensor = self.record(TABLE["custom"], (held.value, held.outside), attrs)[0]
        return read

    def write_variable(self, variable: Variable, value: Tensor) -> None:
        held = self._held.get(id(variable))
        if held is None:
            held = self._held[id(variable)] = CapturedVariable(variable, value, self._outside(variable))
        held.value = SymbolicTensor(self._node(value), self)
        held.read, held.is_assigned = None, True

    def value_of(self, variable: Variable) -> Tensor:
        """The value that a variable has at the end of the region."""
        held = self._held.get(id(variable))
        if held is not None:
            return held.value
        with self.entered():
            return self.read_variable(variable)

    def mark(self) -> Any:
        held = {key: (h, h.value, h.read, h.is_assigned) for key, h in self._held.items()}
        return super().mark(), len(self.operands), dict(self._closure_inputs), held

    def rollback_to(self, mark: Any) -> None:
        trace_mark, operands, closure_inputs, states = mark
        super().rollback_to(trace_mark)
        del self.operands[operands:]
        self._closure_inputs, self._held = dict(closure_inputs), {key: held for key, (held, *_) in states.items()}
        for held, value, read, is_assigned in states.values():
            held.value, held.read, held.is_assigned = value, read, is_assigned

    def before_variable_creation(self) -> None:
        raise TraceError(
            "Variable",
            f"{self.name} makes a variable, and may be run many times or never. Make it before, outside of the control "
            "flow.",
        )

    # ---- derivatives of functions that say theirs themselves

    def add_custom_vjp(self, inputs: Iterable[Tensor], outputs: Iterable[Tensor], vjp: Callable[..., Any]) -> None:
        """Trace ``vjp`` at once, as a graph that belongs to ``outputs``, which get other nodes."""
        sources = [x for x in inputs if is_inexact(x.dtype)]
        has_gradient = [is_inexact(x.dtype) for x in inputs]
        symbolic = [x for x in outputs if isinstance(x, SymbolicTensor) and is_inexact(x.dtype)]
        rest = iter(symbolic)
        region = SubTrace(f"the derivative inside of {self.name}")
        cotangents = [region.carry(x.type, f"cotangent{k}") for k, x in enumerate(symbolic)]
        next_cotangent = iter(cotangents)
        with region.entered():
            cotangents_in = vjp(
                *(
                    next(next_cotangent) if is_inexact(x.dtype) and next(rest, None) is not None else None
                    for x in outputs
                )
            )
            wanted = [g for g, flag in zip(cotangents_in, has_gradient) if flag]
            totals = [builder.full(0, x.type) if g is None else g for g, x in zip(wanted, sources)]
        if region.assigned:
            raise TraceError(
                self.name,
                "the derivative of a custom_gradient or recompute_grad function prints, calls Python or assigns "
                "variables, which derivatives of branches and loops cannot do. Leave that out of the function, or call "
                "it outside of control flow that depends on tensors.",
            )
        operands = all_operands([(region, totals)])
        graph = region.graph("derivative", cotangents, operands, totals)
        attrs = {"derivative": graph, "made": len(symbolic), "given": len(sources)}
        for x, new in zip(symbolic, self.record(TABLE["custom"], (*symbolic, *sources, *operands), attrs)):
            x._node = new._node

    # ---- the result

    def graph(
        self, label: str, arguments: Sequence[Tensor], operands: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> Graph:
        """The region as a graph over its ``arguments`` inputs and then ``operands``, all that it reads among them."""
        nodes = [self._node(x) for x in outputs]
        inputs = [self._carries.get(id(x)) or self._node(x) for x in arguments]
        for k, x in enumerate(operands):
            node = self._closure_inputs.get(id(x))
            fits = node is not None and node.is_parameter
            inputs.append(node if fits and node is not None else parameter(x.type, f"unread{k}"))
        self.finished = True
        if self._outer is not None:
            self._outer.depends_on_identity |= self.depends_on_identity
        return Graph(label, tuple(inputs), tuple(self._builder.nodes), tuple(nodes))

    def read_operands(self) -> list[Tensor]:
        """The operands that are inputs."""
        return [x for x in self.operands if self._closure_inputs[id(x)].is_parameter]


def all_operands(regions: Sequence[tuple[SubTrace, Sequence[Tensor]]]) -> list[Tensor]:
    """What regions read of their surroundings to make these outputs, each tensor once."""
    operands: dict[int, Tensor] = {}
    for region, outputs in regions:
        for x in outputs:
            region.node_of(x)
        for x in region.read_operands():
            operands.setdefault(id(x), x)
    return list(operands.values())
