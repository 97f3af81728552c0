"""The parts of a graph that sessions run as compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hybridflow.array.creation import asarray
from hybridflow.compat.v1.errors import UnimplementedError
from hybridflow.compat.v1.evaluation import Run, as_value, needed
from hybridflow.compat.v1.feed_fetch import as_fetched, unfed
from hybridflow.compat.v1.nodes import Operation, Tensor
from hybridflow.compat.v1.recording import Sizes, is_constant
from hybridflow.compat.v1.state import State
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor as Value
from hybridflow.jit.function import function


class Known:
    """A session's state as one program sees it, with the constants that feeds leave as they are."""

    def __init__(self, state: State, feeds: Sequence[Tensor]) -> None:
        self._state = state
        self._fed = {tensor.op for tensor in feeds}
        self._changed: dict[Operation, bool] = {}
        self.variable, self.generator = state.variable, state.generator
        self.ready = state.ready

    def _is_changed(self, op: Operation) -> bool:
        """Whether what is fed decides about an operation's results."""
        stack = [op]
        while stack:
            top = stack[-1]
            if top in self._changed:
                stack.pop()
            elif top in self._fed:
                self._changed[top] = True
            elif missing := [t.op for t in top.inputs if t.op not in self._changed]:
                stack += missing
            else:
                self._changed[top] = any(self._changed[t.op] for t in top.inputs)
        return self._changed[op]

    def known(self, op: Operation) -> list[Any] | None:
        """The values of an operation that are known before anything runs."""
        if not op.outputs or not all(map(is_constant, op.outputs)) or self._is_changed(op):
            return None
        values: list[Any] = []
        for tensor in op.outputs:
            value = (tensor.info.known or ())[0]
            if tensor.info.is_size:
                values.append(Sizes(value.tolist()) if value.ndim else int(value))
            else:
                with suspended():
                    values.append(asarray(value))
        return values


class Program:
    """The part of a graph that some fetches need, given some feeds.

    What is on the host (queues, texts, data sets) runs before the program, if it needs nothing of that, or after it.
    """

    def __init__(self, state: State, targets: Sequence[Any], feeds: Sequence[Tensor]) -> None:
        self._state, self._targets, self._feeds = state, list(targets), list(feeds)
        self._known = Known(state, feeds)
        operations = needed(targets, feeds)[0]
        self._before, self._inside, self._after = _stages(operations, set(feeds))
        self._unfed = next(
            (op for op in operations if op.type == "Placeholder" and op.outputs[0] not in self._feeds), None
        )
        inside = {t for op in self._inside for t in op.outputs}
        # What comes from the host into the program, and what goes out of it.
        early = {t for op in self._before for t in op.outputs}
        used = [t for op in self._inside for t in op.inputs]
        self._given = [t for t in self._feeds if t.dtype is not None and t.dtype != object]
        self._given += [t for t in dict.fromkeys(used) if t in early and t not in self._given]
        late = [t for op in self._after for t in op.inputs] + [t for t in targets if isinstance(t, Tensor)]
        self._results = [t for t in dict.fromkeys(late) if t in inside or t.op.is_reference]
        self._variables = variables_of(self._inside, self._results, self._feeds)
        self._checked = False
        self._is_open = any(op.is_eager or _finds_shapes(op) for op in self._inside)
        self._has_gradients = any(op.type == "SymbolicGradient" for op in self._inside)
        self._count = 0
        self._compiled = function(self._once, name="session_run")

    def __call__(self, fed: Sequence[Any]) -> list[Any]:
        if self._unfed is not None:
            raise unfed(self._unfed)
        if not self._checked:
            self._state.check([v for v in self._variables.reads if v not in self._state.ready])
            for variable in self._variables.all:
                self._state.variable(variable)
        values: dict[Tensor, Any] = dict(zip(self._feeds, fed))
        self._host(self._before, values)
        if self._inside or self._results:
            results = self._program([values[t] for t in self._given])
            for tensor, value in zip(self._results, results):
                values[tensor] = value
        if not self._checked:
            self._state.ready.update(self._variables.writes)
            self._checked = not self._is_open
        self._host(self._after, values)
        return [self._fetched(target, values) for target in self._targets]

    def _program(self, arrays: list[Any]) -> Sequence[Any]:
        # What runs once, as initializers do, is not worth a program of its own, unless it is differentiated.
        self._count += 1
        if self._is_open or (self._count == 1 and not self._has_gradients):
            return self._once(*[asarray(x) for x in arrays])
        return self._compiled(*arrays)

    def _once(self, *arrays: object) -> list[Any]:
        run = Run(self._known, dict(zip(self._given, arrays)))
        run.do(self._inside)
        return [as_value(run.value(tensor)) for tensor in self._results]

    def _host(self, operations: Sequence[Operation], values: dict[Tensor, Any]) -> None:
        for op in operations:
            known = [_as_array(values[t]) if t in values else _constant(t) for t in op.inputs]
            for tensor, value in zip(op.outputs, op.compute(self._state, known)):
                values.setdefault(tensor, value)

    @staticmethod
    def _fetched(target: object, values: dict[Tensor, Any]) -> Any:
        if not isinstance(target, Tensor):
            return None
        return as_fetched(values[target] if target in values else _constant(target))


def _finds_shapes(op: Operation) -> bool:
    """Whether a function in Python says only when it runs which shape it returns: no compiled program does."""
    return op.type == "PyFunc" and not all(t.shape.is_fully_defined() for t in op.outputs)


def _constant(tensor: Tensor) -> Any:
    if tensor.info.known is None:
        raise UnimplementedError("session", f"{tensor.name} is computed of what only comes after it.")
    return tensor.info.known[0]


def _as_array(value: object) -> Any:
    return value.numpy() if isinstance(value, Value) else value


class _Variables(NamedTuple):
    """Of a program: all variables, those that must have a value before it, and those that have one after it."""

    all: list[Any]
    reads: list[Any]
    writes: list[Any]


def variables_of(
    operations: Sequence[Operation], results: Sequence[Tensor], feeds: Sequence[Tensor] = ()
) -> _Variables:
    fed = {tensor.op.source for tensor in feeds if tensor.op.is_reference}
    variables: dict[Any, None] = {}
    reads: dict[Any, None] = {}
    writes: dict[Any, None] = {}
    for op in operations:
        for variable in _read_by(op):
            variables[variable] = None
            if variable not in writes and variable not in fed:
                reads[variable] = None
        for variable in getattr(op, "writes", ()):
            variables[variable] = writes[variable] = None
    for tensor in results:
        if tensor.op.is_reference:
            variables[tensor.op.source] = None
            if tensor.op.source not in writes and tensor.op.source not in fed:
                reads[tensor.op.source] = None
    return _Variables(list(variables), list(reads), list(writes))


def _read_by(op: Operation) -> list[Any]:
    if op.is_reference:
        return []
    return [t.op.source for t in op.inputs if t.op.is_reference] + list(getattr(op, "reads", ()))


def _stages(
    operations: Sequence[Operation], fed: set[Tensor]
) -> tuple[list[Operation], list[Operation], list[Operation]]:
    """Operations on the host that come first, those of the program, and those on the host that come after it."""
    before: list[Operation] = []
    inside: list[Operation] = []
    after: list[Operation] = []
    late: set[Operation] = set()
    within: set[Operation] = set()
    for op in operations:
        sources = [t.op for t in op.inputs if t not in fed] + op.control_inputs
        if not op.on_host:
            if any(source in late for source in sources) and op.type != "NoOp":
                raise UnimplementedError(
                    "session",
                    f"{op.name} needs what {next(s.name for s in sources if s in late)} does on the host, "
                    "after the program. Run them one after the other.",
                )
            if op.type == "NoOp":
                continue
            inside.append(op)
            within.add(op)
        elif all((source not in within and source not in late) or _is_constant_op(source) for source in sources):
            before.append(op)
        else:
            after.append(op)
            late.add(op)
    return before, inside, after


def _is_constant_op(op: Operation) -> bool:
    return bool(op.outputs) and all(map(is_constant, op.outputs))
