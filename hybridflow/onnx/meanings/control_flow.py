"""Graphs within graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array import elementwise as ew, shapes
from hybridflow.array.creation import zeros
from hybridflow.control.cond import cond
from hybridflow.control.loops import while_loop
from hybridflow.control.scan import scan
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError, OnnxError
from hybridflow.onnx.graph import Graph
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


MOST_TURNS = 1 << 16  # of a loop that is unrolled


@operator("If", raw=(0,))
def if_(call: Call, condition: object, *, then_branch: Graph, else_branch: Graph) -> Any:
    """What is known picks its branch while the model is traced; then the branches may differ in dtypes and shapes."""
    if isinstance(condition, np.ndarray) or now().trace is None:
        chosen = then_branch if bool(call.numbers(condition).reshape(())) else else_branch
        return tuple(call.graph(chosen))

    def run(graph: Graph) -> Any:
        def branch() -> Any:
            try:
                return tuple(call.tensor(value) for value in call.graph(graph))
            except OnnxError as error:  # as of a branch that is not for such operands, and is not taken
                raise ConcretizationError("onnx", f"a branch of {call.node} cannot be traced: {error}") from error

        return branch

    return tuple(cond(shapes.reshape(call.tensor(condition), ()), run(then_branch), run(else_branch)))


def _known(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype != object


@operator("Loop", raw=range(1024))
def loop(call: Call, limit: object = None, condition: object = None, *state: object, body: Graph) -> Any:
    """One loop of the program where tensors alone are carried and nothing is collected; iteration by iteration where
    the number of iterations is known."""
    carried = list(state)
    collected: list[list[Any]] = [[] for _ in range(len(body.outputs) - 1 - len(carried))]
    most = None if limit is None or not _is_countable(limit) else int(call.numbers(limit).reshape(()))
    if (
        not collected
        and now().trace is not None
        and not (most is not None and _goes_on(body))
        and all(not isinstance(value, list) for value in carried)
    ):
        return _as_while(call, limit, condition, carried, body)
    if limit is not None and most is None:
        most = int(call.numbers(limit).reshape(()))
    goes = condition is None or bool(call.numbers(condition).reshape(()))
    iteration = 0
    while goes and (most is None or iteration < most):
        if iteration >= MOST_TURNS and now().trace is not None:
            raise call.fault(f"it has more than {MOST_TURNS} iterations.")
        results = call.graph(body, np.array(iteration, np.int64), np.array(True), *carried)
        again, results = results[0], results[1:]
        carried, rows = results[: len(carried)], results[len(carried) :]
        for values, row in zip(collected, rows):
            values.append(row)
        iteration += 1
        if most is None or iteration < most or not _known(again):
            goes = bool(call.numbers(again).reshape(()))
    return (
        *carried,
        *(_stacked(call, values, port.shape) for values, port in zip(collected, body.outputs[1 + len(carried) :])),
    )


def _is_countable(limit: object) -> bool:
    return _known(limit)


def _goes_on(body: Graph) -> bool:
    """Whether its condition is what it was given, or always true."""
    name = body.outputs[0].name
    while True:
        if name in body.constants:
            return bool(body.constants[name].all())
        if len(body.inputs) > 1 and name == body.inputs[1].name:
            return True
        makers = [node for node in body.nodes if name in node.outputs]
        if not makers or makers[0].op != "Identity":
            return bool(makers) and makers[0].op == "Constant" and bool(np.all(makers[0].attributes.get("value", 0)))
        name = makers[0].inputs[0]


def _stacked(call: Call, values: list[Any], shape: Sequence[Any] | None) -> Tensor:
    if values:
        return shapes.stack([call.tensor(value) for value in values], axis=0)
    inner = [n if isinstance(n, int) else 0 for n in shape or ()]
    return zeros((0, *inner))


def _as_while(call: Call, limit: object, condition: object, carried: list[Any], body: Graph) -> Any:
    start = [call.tensor(value) for value in carried]
    most = None if limit is None else shapes.reshape(call.tensor(limit), ())
    goes = np.array(True) if condition is None else condition

    def again(iteration: ArrayLike, goes: ArrayLike, *values: object) -> Any:
        return goes if most is None else ew.logical_and(goes, ew.less(iteration, most))

    def step(iteration: Tensor, goes: Tensor, *values: Tensor) -> Any:
        values_after = [call.tensor(value) for value in call.graph(body, iteration, goes, *values)]
        return (iteration + 1, shapes.reshape(values_after[0], ()), *values_after[1:])

    first = call.tensor(np.array(0, np.int64)), shapes.reshape(call.tensor(goes), ())
    return tuple(while_loop(again, step, (*first, *start))[2:])


@operator("Scan", since=9)
def scan_(
    call: Call,
    *operands: Tensor,
    body: Graph,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[Any] | None = None,
    scan_output_directions: Sequence[Any] | None = None,
) -> tuple[Tensor, ...]:
    states, rows = list(operands[: len(operands) - num_scan_inputs]), list(operands[len(operands) - num_scan_inputs :])
    axes = scan_input_axes or [0] * len(rows)
    turned = scan_input_directions or [0] * len(rows)
    for k, (axis, back) in enumerate(zip(axes, turned)):
        axis = axis_of(call, axis, rows[k].ndim)
        rows[k] = shapes.moveaxis(rows[k], axis, 0) if axis else rows[k]
        rows[k] = shapes.flip(rows[k], axis=0) if back else rows[k]
    count = len(states)
    outputs = len(body.outputs) - count

    def step(state: tuple[tuple[Tensor, ...], tuple[Tensor, ...]], row: tuple[Tensor, ...]) -> Any:
        values = [call.tensor(value) for value in call.graph(body, *state[0], *row)]
        return tuple(values[:count]), tuple(values[count:])

    # What a row is like is known after one iteration; it is no part of the state that goes on.
    first = step((tuple(states), ()), tuple(row[0] for row in rows))
    empty = tuple(zeros(value.shape, dtype=value.dtype) for value in first[1])
    scanned = scan(step, tuple(rows), (tuple(states), empty))
    last = [part[-1] for part in scanned[0]]
    results = []
    for k in range(outputs):
        value = scanned[1][k]
        if scan_output_directions and scan_output_directions[k]:
            value = shapes.flip(value, axis=0)
        axis = axis_of(call, (scan_output_axes or [0] * outputs)[k], value.ndim)
        results.append(shapes.moveaxis(value, 0, axis) if axis else value)
    return (*last, *results)


@operator("Scan", since=8, until=8, raw=(0,))
def scan_of_batches(
    call: Call, lengths: object, *operands: Tensor, body: Graph, num_scan_inputs: int, directions: object = None
) -> Any:
    """With an axis of examples ahead of all operands."""
    if lengths is not None:
        raise call.fault("sequences of other lengths are not supported in opset 8.")
    examples = [
        scan_(
            call,
            *(value[k] for value in operands),
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
        )
        for k in range(operands[0].shape[0])
    ]
    return tuple(shapes.stack(list(parts), axis=0) for parts in zip(*examples))
