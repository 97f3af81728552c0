"""Control flow that is traced into one node: branches, loops while a condition holds, scans over slices.

These take and return flat lists.  Values are tensors, or Python numbers, which are weak: they take the dtype of what
they meet, in the other branch or in the next iteration.  Names are for messages.  ``loop_fixed_point`` says when a
loop's body is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array.creation import arange
from hybridflow.array.indexing import getitem
from hybridflow.compiler.ir.dtypes import bool_, int64, is_inexact, is_integer
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import TensorType, same_extents
from hybridflow.compiler.ops import TABLE
from hybridflow.core.promotion import lone_dtype, result_dtype, weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, exclusive, strong, weak_cast
from hybridflow.errors import ArgumentTypeError, DTypeError, ShapeError, TraceError
from hybridflow.tracing.control_nodes import emit_cond, emit_while
from hybridflow.tracing.effect_token import ORDER
from hybridflow.tracing.loop_fixed_point import FixedPoint, is_weak, widened_dtype
from hybridflow.tracing.subtrace import SubTrace, all_operands, note_conditional_error
from hybridflow.tracing.symbolic_number import number_of

Value = Any  # a tensor or a weak number

Iteration = Callable[[list[Tensor], list[Tensor]], tuple[Sequence[Value], "Sequence[Value] | None"]]


def values_of(stage: str, leaves: Sequence[Any]) -> list[Value]:
    """Leaves as tensors, but for weak numbers."""
    return [strong(leaf, stage) for leaf in leaves]


# ---- branches


def trace_cond(
    stage: str, which: Tensor, branches: Sequence[Callable[[], Sequence[Value]]], names: Sequence[str] | None = None
) -> list[Tensor]:
    """The results of the branch that ``which`` selects.

    A bool selects the first of two where it is True; an integer selects the branch of that index, or the last one.
    ``names`` are those of the results.  Raises DTypeError or ShapeError where branches return different types.
    """
    regions, results = [], []
    for k, branch in enumerate(branches):
        region = SubTrace(f"branch {k} of {stage}")
        with region.entered():
            try:
                results.append(values_of(stage, branch()))
            except Exception as error:
                note_conditional_error(error, stage)
                raise
        regions.append(region)
    _check_counts(stage, results)
    outputs: list[list[Tensor]] = [[] for _ in branches]
    for k, parts in enumerate(zip(*results)):
        name = names[k] if names is not None else f"result {k}"
        for branch_outputs, x in zip(outputs, _merge_results(stage, name, regions, parts)):
            branch_outputs.append(x)
    return emit_cond(which, regions, outputs)


def _check_counts(stage: str, results: Sequence[Sequence[Value]]) -> None:
    for k, values in enumerate(results):
        if len(values) != len(results[0]):
            raise ArgumentTypeError(
                stage,
                f"branch 0 returns {len(results[0])} values, and branch {k} {len(values)}. Return as many from each.",
            )


def _merge_results(stage: str, name: str, regions: Sequence[SubTrace], parts: Sequence[Value]) -> list[Tensor]:
    """One result of all branches, as tensors of one type."""
    typed = [x for x in parts if not is_weak(x)]
    for x in typed:
        if x.dtype != typed[0].dtype:
            raise DTypeError(
                stage,
                f"{name} is {typed[0].type} in one branch and {x.type} in another. Return one dtype from all: convert "
                f"with hf.astype(x, hf.{typed[0].dtype}).",
            )
    dtype = result_dtype(stage, parts)
    if typed and dtype != typed[0].dtype:
        number = next(x for x in parts if is_weak(x) and result_dtype(stage, [typed[0], x]) != typed[0].dtype)
        raise DTypeError(
            stage,
            f"{name} is {typed[0].type} in one branch and the Python number {number!r} in another, which that cannot "
            f"hold. Return one dtype from all: convert with hf.astype(x, hf.{dtype}).",
        )
    result = []
    for region, x in zip(regions, parts):
        with region.entered():
            result.append(weak_cast(x, dtype, stage))
    for x in result:
        if not same_extents(x.shape, result[0].shape):
            raise ShapeError(
                stage,
                f"{name} is {result[0].type} in one branch and {x.type} in another. A compiled program knows its "
                "shapes: return one shape from all, with hf.broadcast_to, hf.reshape or hf.pad.",
            )
    return result


# ---- loops


class Carry:
    """A loop variable: what it starts with, its type, and whether that type may widen."""

    __slots__ = ("dtype", "name", "shape", "start", "weak")

    def __init__(self, stage: str, name: str, start: Value) -> None:
        self.name, self.start, self.weak = name, start, is_weak(start)
        kind = weak_kind(start)
        self.dtype = start.dtype if kind is None else lone_dtype(start, kind)
        self.shape = start.shape if isinstance(start, Tensor) else ()

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.dtype)

    def began(self, stage: str) -> Tensor:
        return weak_cast(self.start, self.dtype, stage)

    def widen(self, stage: str, x: Value) -> bool:
        """Whether an iteration's result ``x`` has the variable's type.  A weak start takes the dtype of the result.

        Raises DTypeError or ShapeError where the two have no common type.
        """
        wanted = widened_dtype(stage, self.start, self.dtype, x)
        if wanted != self.dtype:
            if not self.weak:
                raise self._dtype_error(stage, x, wanted)
            self.dtype = wanted
            return False
        shape = x.shape if isinstance(x, Tensor) else ()
        if not same_extents(shape, self.shape):
            raise self._shape_error(stage, x)
        return True

    def _dtype_error(self, stage: str, x: Value, wanted: object) -> DTypeError:
        after = f"the Python number {x!r}" if is_weak(x) else str(x.type)
        return DTypeError(
            stage,
            f"{self.name} is {self.type} before an iteration and {after} after it. A loop keeps the dtypes of what it "
            f"carries: convert it before the loop with hf.astype(x, hf.{wanted}), or at the end of an iteration with "
            f"hf.astype(x, hf.{self.dtype}).",
        )

    def _shape_error(self, stage: str, x: Value) -> ShapeError:
        after = x.type if isinstance(x, Tensor) else f"the number {x!r}"
        start = f"the number {self.start!r}" if self.weak else str(self.type)
        return ShapeError(
            stage,
            f"{self.name} is {start} before an iteration and {after} after it. A loop keeps the shapes of what it "
            "carries: start with hf.zeros of the final shape and write slices, or collect the results of iterations "
            "with hf.scan or hf.TensorArray.",
        )


class Body:
    """A loop body that is traced to its fixed point."""

    def __init__(self, stage: str, carries: Sequence[Carry], slices: Sequence[TensorType]) -> None:
        self.stage, self.carries, self.slices = stage, list(carries), list(slices)
        self._fixed_point = FixedPoint(stage)

    @property
    def variables(self) -> list[Variable]:
        """The variables that the body assigns."""
        return self._fixed_point.variables

    def trace_to_fixed_point(self, body: Iteration) -> None:
        """Trace ``body(carries, slices)``, which returns new carries, and what is stacked (None: the carries)."""
        while not self._trace_once(body):
            pass

    def _trace_once(self, body: Iteration) -> bool:
        stage, fixed_point = self.stage, self._fixed_point
        fixed_point.begin_pass()
        self.region = region = SubTrace(f"the body of {stage}")
        self.inputs: list[Tensor] = [region.carry(c.type, f"carry{k}") for k, c in enumerate(self.carries)]
        variable_inputs = fixed_point.variable_inputs(region)
        slices = [region.carry(type, f"slice{k}") for k, type in enumerate(self.slices)]
        with region.entered():
            try:
                results, stacked = body(list(self.inputs), list(slices))
            except Exception as error:
                note_conditional_error(error, stage)  # there may be no iteration
                raise
            results = values_of(stage, results)
            stacked = None if stacked is None else [as_tensor(x, stage) for x in stacked]
        if len(results) != len(self.carries):
            raise ArgumentTypeError(
                stage, f"the body returns {len(results)} values for {len(self.carries)} that the loop carries."
            )
        same_types = [carry.widen(stage, x) for carry, x in zip(self.carries, results)]
        if fixed_point.has_new_variables(region) or not all(same_types):
            return False
        with region.entered():
            self.outputs = [weak_cast(x, carry.dtype, stage) for carry, x in zip(self.carries, results)]
        self.stacked = list(self.outputs) if stacked is None else stacked
        self.outputs += fixed_point.variable_outputs(region)
        self.inputs += variable_inputs
        self.slice_inputs = slices
        return True

    def starts(self) -> list[Tensor]:
        starts = [exclusive(c.began(self.stage)) for c in self.carries]  # as eagerly: values of their own
        return [*starts, *self._fixed_point.variable_starts()]

    def finish(self, outputs: list[Tensor]) -> list[Tensor]:
        """Assign the variables, and return the carries after the last iteration, given both."""
        count = len(self.carries)
        self._fixed_point.assign_variables(outputs[count:])
        return outputs[:count]


def trace_while(
    stage: str,
    cond: Callable[[list[Tensor]], Value],
    body: Callable[[list[Tensor]], Sequence[Value]],
    carried: Sequence[Value],
    names: Sequence[str] | None = None,
    maximum: Value | None = None,
) -> list[Tensor]:
    """What is carried after iterations of ``body`` while ``cond`` holds, at most ``maximum`` of them.

    Raises DTypeError or ShapeError where an iteration changes the type of what is carried.
    """
    if maximum is not None:
        return _bounded(stage, cond, body, carried, names, maximum)
    names = names or [f"loop variable {k}" for k in range(len(carried))]
    traced = Body(stage, [Carry(stage, n, x) for n, x in zip(names, values_of(stage, carried))], ())
    traced.trace_to_fixed_point(lambda carries, _: (body(carries), ()))
    asking = SubTrace(f"the condition of {stage}")
    inputs = [asking.carry(x.type, f"carry{k}") for k, x in enumerate(traced.inputs[: len(carried)])]
    for k, variable in enumerate(traced.variables):
        inputs.append(asking.carry_variable(variable, f"variable{k}"))
    with asking.entered():
        goes_on = condition(stage, cond(list(inputs[: len(carried)])))
    if any(variable is ORDER for variable in asking.assigned):
        return _condition_per_iteration(stage, cond, body, carried, names)
    if asking.assigned:
        raise TraceError(stage, "the condition assigns a variable. It is asked once more than the body runs: assign in "
                         "the body, or before the loop.")  # fmt: skip
    ends = emit_while(stage, traced.starts(), traced.region, traced.inputs, traced.outputs, asking, inputs, goes_on)
    return traced.finish(ends)


def _condition_per_iteration(
    stage: str, cond: Callable[..., object], body: Callable[..., Any], carried: Sequence[Value], names: Sequence[str]
) -> list[Tensor]:
    """A loop whose condition has effects: it is evaluated before the loop, and at the end of each iteration."""

    def iteration(carries: list[Tensor]) -> list[Value]:
        ends = values_of(stage, body(carries[:-1]))
        if len(ends) == len(carries) - 1:  # else the loop says so
            ends = [weak_cast(x, c.dtype, stage) if is_weak(x) else x for x, c in zip(ends, carries)]
        return [*ends, condition(stage, cond(ends))]

    first = condition(stage, cond([as_tensor(x, stage) for x in carried]))
    return trace_while(stage, lambda carries: carries[-1], iteration, [*carried, first], [*names, "the condition"])[:-1]


def condition(stage: str, value: object) -> Tensor:
    """A condition as a scalar bool tensor.  Raises DTypeError or ShapeError where it is something else."""
    if not isinstance(value, (Tensor, Variable, bool, np.ndarray, np.bool_)):
        raise ArgumentTypeError(
            stage, f"the condition is a {type(value).__name__}. Expected a bool, or a tensor of one."
        )
    x = as_tensor(value, stage)
    if x.dtype != bool_:
        raise DTypeError(stage, f"the condition is {x.type}. Expected bool[]: compare it, as in x != 0.")
    if x.shape:
        raise ShapeError(stage, f"the condition is {x.type}. Expected bool[]: use hf.any or hf.all.")
    return x


def _bounded(
    stage: str,
    cond: Callable[..., object],
    body: Callable[..., Any],
    carried: Sequence[Value],
    names: Sequence[str] | None,
    maximum: Value,
) -> list[Tensor]:
    """A loop that counts its iterations; the condition is not evaluated after the last one."""
    limit = as_tensor(maximum, stage)
    if limit.shape or not is_integer(limit.dtype):
        raise DTypeError(stage, f"maximum_iterations is {limit.type}. Expected an integer.")
    limit = cast(limit, int64)

    def goes_on(carries: list[Tensor]) -> Tensor:
        def evaluate() -> list[Tensor]:
            return [condition(stage, cond(carries[:-1]))]

        (result,) = trace_cond(stage, carries[-1] < limit, (evaluate, lambda: [as_tensor(False, stage)]))
        return result

    def iteration(carries: list[Tensor]) -> list[Value]:
        return [*body(carries[:-1]), carries[-1] + 1]

    names = [*(names or [f"loop variable {k}" for k in range(len(carried))]), "the number of iterations"]
    return trace_while(stage, goes_on, iteration, [*carried, as_tensor(0, stage)], names)[:-1]


def read_elsewhere(stacked: Sequence[Tensor], region: SubTrace) -> bool:
    """Whether a loop body reads a tensor both slice by slice and in another way.

    The order of additions in its gradient then matters.  Python's loop adds a slice's gradient when its iteration is
    over; a scan adds those of all slices after the loop.  So such a loop reads its slices by index instead.
    """
    ids = [id(x) for x in stacked if is_inexact(x.dtype)]
    return len(set(ids)) < len(ids) or any(id(x) in ids for x in region.operands)


def trace_for(
    stage: str,
    length: Extent,
    body: Iteration,
    carried: Sequence[Value],
    stacked: Sequence[Tensor],
    names: Sequence[str] | None = None,
    reverse: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """``length`` iterations of ``body(carries, slices)`` over the slices of ``stacked`` along their first axes.

    ``reverse`` begins with the last slice.  The body returns new carries, and values to stack where the slices were;
    None stacks the carries themselves.  Returns the carries after the last iteration, and the stacks.  Raises as
    ``trace_while``.
    """
    names = names or [f"loop variable {k}" for k in range(len(carried))]
    carries = [Carry(stage, n, x) for n, x in zip(names, values_of(stage, carried))]
    traced = Body(stage, carries, [x.type.with_shape(x.shape[1:]) for x in stacked])
    traced.trace_to_fixed_point(body)
    if read_elsewhere(stacked, traced.region):
        rows, stacked = stacked, [arange(length)]
        traced = Body(stage, carries, [x.type.with_shape(()) for x in stacked])
        traced.trace_to_fixed_point(lambda values, at: body(values, [getitem(x, number_of(at[0])) for x in rows]))
    outputs = [*traced.outputs, *traced.stacked]
    operands = all_operands([(traced.region, outputs)])
    count = len(traced.inputs)
    graph = traced.region.graph("body", [*traced.inputs, *traced.slice_inputs], operands, outputs)
    ends = list(
        apply(
            TABLE["scan"], *traced.starts(), *stacked, *operands, body=graph, carries=count, stacked=len(stacked),
            length=length, reverse=reverse,
        )
    )  # fmt: skip
    return traced.finish(ends[:count]), ends[count:]
