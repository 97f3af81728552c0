"""The mesh axes whose replicas the running code stands for: those of the regions of ``batch_trace`` around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hybridflow.compiler.ops.batching_rules import MeshAxis
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.tracing.batch_trace import Examples


def axes_here() -> Iterator[MeshAxis]:
    """The axes, innermost first."""
    trace: Any = now().trace
    while trace is not None:
        if isinstance(trace, Examples) and trace.axis is not None:
            yield trace.axis
        trace = trace.parent


def strategy_axis() -> MeshAxis | None:
    """The axis of the strategy that runs this code as one of its replicas: optimizers, losses, metrics and batch
    normalization reduce over it by themselves."""
    trace = now().trace
    axis: MeshAxis | None = None if trace is None else trace.strategy_axis()
    return axis


def outside_replicas() -> AbstractContextManager[None]:
    """A block around the replicas of a strategy, where there is one of what each of them would have: variables that a
    replica makes start from the generators outside."""
    trace = now().trace
    if isinstance(trace, Examples) and trace.axis is not None and trace.axis.is_strategy:
        return trace.around()
    return nullcontext()


def replica_count() -> int:
    """How many replicas of a strategy run this code; 1 outside of them."""
    axis = strategy_axis()
    return 1 if axis is None else axis.size


def over_replicas(x: Tensor, reduce: str) -> Tensor:
    """The sum or mean of a value over the replicas of a strategy; the value itself outside of them."""
    axis = strategy_axis()
    return x if axis is None else builder.all_reduce(x, axis=axis.name, size=axis.size, reduce=reduce)


def of_all_replicas(x: Tensor) -> Tensor:
    """The rows of a value of all replicas of a strategy behind each other, scalars as rows; the value itself outside of
    them."""
    axis = strategy_axis()
    if axis is None:
        return x
    rows = x if x.shape else builder.reshape(x, shape=(1,))
    return builder.all_gather(rows, axis=axis.name, size=axis.size, along=0)
