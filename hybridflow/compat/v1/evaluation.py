"""Running the part of a graph that is asked for: in which order, and under which tapes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from hybridflow.autodiff.tape import GradientTape
from hybridflow.compat.v1.errors import UnimplementedError
from hybridflow.compat.v1.nodes import Operation, Tensor
from hybridflow.compat.v1.recording import Sizes
from hybridflow.compiler.ir.dtypes import int32
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now, recorded_by
from hybridflow.core.tensor import Tensor as Value
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast, exclusive

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


def needed(targets: Iterable[Any], fed: Iterable[Tensor], body: object = None) -> tuple[list[Operation], set[Tensor]]:
    """The operations that targets need, in an order in which they can run, and the tensors from outside of ``body``.

    What is fed is not computed.  Of operations that may run in any order, those made earlier come first.
    """
    known = set(fed)
    outside: set[Tensor] = set()
    ops: set[Operation] = set()
    waiting = list(targets)
    while waiting:
        target = waiting.pop()
        if isinstance(target, Tensor):
            if target in known:
                continue
            if target.op.body is not body:
                outside.add(target)
                continue
        op = target.op if isinstance(target, Tensor) else target
        if op in ops or op.body is not body:
            continue
        ops.add(op)
        waiting += [*op.inputs, *op.control_inputs]
    return _ordered(ops, known), outside


def _ordered(ops: set[Operation], known: set[Tensor]) -> list[Operation]:
    after: dict[Operation, list[Operation]] = {op: [] for op in ops}
    missing: dict[Operation, int] = {}
    for op in ops:
        before = {t.op for t in op.inputs if t not in known and t.op in ops}
        before.update(c for c in op.control_inputs if c in ops)
        missing[op] = len(before)
        for other in before:
            after[other].append(op)
    ready = [(op.number, op) for op in ops if not missing[op]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, op = heapq.heappop(ready)
        order.append(op)
        for other in after[op]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, (other.number, other))
    return order


class Body:
    """What a loop or branch does: tensors that stand for its arguments, and for its results."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = list(parameters)
        self.results: list[Tensor] = []
        self.targets: list[Any] = []
        self.operations: list[Operation] = []
        self.captured: list[Tensor] = []

    def close(self, results: Sequence[Tensor], others: Sequence[Operation] = ()) -> None:
        """Say what it returns, and which operations without a value run, too."""
        self.results, self.targets = list(results), [*results, *others]
        self.operations, outside = needed(self.targets, self.parameters, self)
        self.captured = sorted(outside, key=lambda t: (t.op.number, t.value_index))

    def call(self, run: Run, captured: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Its results, given values of what it captured and of its arguments."""
        inner = Run(run.state, dict(zip([*self.captured, *self.parameters], [*captured, *values])), run)
        inner.do(self.operations)
        return [inner.value(tensor) for tensor in self.results]


class Run:
    """One run of operations: values of tensors, variables of a session, and tapes for derivatives."""

    def __init__(self, state: Any, values: dict[Tensor, Any], outer: Run | None = None) -> None:
        self.state = state
        self._values = values
        self._fed = frozenset(values)
        self._watched: dict[Tensor, list[GradientTape]] = {}
        self._cut: dict[Tensor, list[GradientTape]] = {}
        self._tapes: dict[Operation, GradientTape] = {}
        self._op: Operation | None = None
        self._outer = outer

    # What operations ask for

    def value(self, tensor: Tensor) -> Any:
        """The value of a tensor, now: that of a variable is read anew each time."""
        if tensor in self._values:
            return self._values[tensor]
        if tensor.op.is_reference:
            return self.state.variable(tensor.op.source)._read()
        raise UnimplementedError("session", f"{tensor.name} belongs to a loop or branch and is used outside of it.")

    def is_known(self, tensor: Tensor) -> bool:
        return tensor in self._values

    def variable(self, variable: Any) -> Variable:
        """The session's own of a graph's variable."""
        result: Variable = self.state.variable(variable)
        return result

    def held(self, variable: Any) -> Any:
        """What stands for a variable's value in this run: the session's own, or what is fed in its place."""
        return self._values.get(variable.value()) if variable.value() in self._fed else self.variable(variable)

    def generator(self) -> Any:
        """What the present operation draws from."""
        return self.state.generator(self._op)

    # Running

    def do(self, operations: Sequence[Operation]) -> None:
        """Run operations in this order."""
        gradients = [op for op in operations if op.type == "SymbolicGradient"]
        if not gradients:
            for op in operations:
                self._one(op)
            return
        with ExitStack() as stack:
            self._open(gradients, stack)
            for tensor, value in list(self._values.items()):
                self._keep(tensor, value)
            for op in operations:
                self._one(op)

    def _one(self, op: Operation) -> None:
        if op.outputs and op.outputs[0] in self._values and all(t in self._values for t in op.outputs):
            return
        if op.is_reference:
            return
        self._op = op
        known = self.state.known(op)
        if known is not None:
            for tensor, value in zip(op.outputs, known):
                self._keep(tensor, value)
            return
        values = [self.value(tensor) for tensor in op.inputs]
        results = op.compute(self, values)
        for tensor, value in zip(op.outputs, results):
            if tensor not in self._fed:
                self._keep(tensor, value)

    def _keep(self, tensor: Tensor, value: object) -> None:
        """Let this be a tensor's value, of which tapes may be told."""
        cut, watched = self._cut.get(tensor), self._watched.get(tensor)
        if isinstance(value, Variable):
            value = value._read()
        if (cut or watched) and isinstance(value, Value):
            if cut:
                with recorded_by(tuple([tape for tape in now().tapes if tape not in cut])):
                    value = exclusive(value)
            else:
                value = exclusive(value)  # another tensor may have the very same value
            for tape in watched or ():
                tape.watch(value)
        self._values[tensor] = value

    # Derivatives

    def _open(self, gradients: Sequence[Operation], stack: ExitStack) -> None:
        """Open the tapes: one for each level of derivatives of derivatives, the highest outside, and for each
        derivative that takes some tensors as constant."""
        levels: dict[Operation, int] = {}
        for op in gradients:
            levels[op] = 1 + max(
                [levels[other] for other in gradients if other in levels and _reaches(op, other)] or [0]
            )
        shared: dict[int, GradientTape] = {}
        for op in sorted(gradients, key=lambda op: -levels[op]):
            level = levels[op]
            request = op.source
            if request.constants or level not in shared:
                tape = stack.enter_context(GradientTape(persistent=True, watch_accessed_variables=False))
                if not request.constants:
                    shared[level] = tape
            else:
                tape = shared[level]
            self._tapes[op] = tape
            for x in request.sources:
                if isinstance(x, Tensor) or x.value() in self._fed:
                    self._watched.setdefault(x if isinstance(x, Tensor) else x.value(), []).append(tape)
                else:
                    tape.watch(self.variable(x))
            for x in request.constants:
                self._cut.setdefault(x, []).append(tape)

    def gradient(self, targets: Sequence[Any], sources: Sequence[Any], weights: TensorLike) -> list[Any]:
        """What the present operation, a derivative, makes of values; sources may be variables."""
        assert self._op is not None
        tape = self._tapes[self._op]
        others = tuple([t for t in now().tapes if t is not tape and self._is_outside(t, tape)])
        with recorded_by(others):
            result: list[Any] = tape.gradient(list(targets), list(sources), weights, unconnected_gradients="zero")
        return result

    def _is_outside(self, tape: object, inner: object) -> bool:
        tapes = now().tapes
        return tapes.index(tape) < tapes.index(inner)


def _reaches(op: Operation, other: Operation) -> bool:
    """Whether an operation needs another one."""
    waiting, seen = [op], {op}
    while waiting:
        for tensor in waiting.pop().inputs:
            if tensor.op is other:
                return True
            if tensor.op not in seen:
                seen.add(tensor.op)
                waiting.append(tensor.op)
    return False


def as_value(value: TensorLike) -> Value:
    """A value of a run as a tensor: extents become int32."""
    if isinstance(value, (Sizes, int, Dim)):
        return cast(as_tensor(list(value) if isinstance(value, Sizes) else value, "session"), int32)
    return as_tensor(value, "session")
