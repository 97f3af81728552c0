"""The mesh axes whose replicas the running code stands for: those of the regions of ``batch_trace`` around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridflow.compiler.ops.batching_rules import MeshAxis
from hybridflow.core.context import now
from hybridflow.core.context_manager import block
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.tracing.batch_trace import Examples


def axes_here() -> Iterator[MeshAxis]:
    """The axes, innermost first."""
    here = now().trace
    for trace in () if here is None else here.enclosing():
        if isinstance(trace, Examples) and trace.axis is not None:
            yield trace.axis


def strategy_axis() -> MeshAxis | None:
    """The axis of the strategy that runs this code as one of its replicas: optimizers, losses, metrics and batch
    normalization reduce over it by themselves."""
    trace = now().trace
    axis: MeshAxis | None = None if trace is None else trace.strategy_axis()
    return axis


@block
def outside_replicas() -> Iterator[None]:
    """A block around the replicas of a strategy, where there is one of what each of them would have: variables that a
    replica makes start from the generators outside."""
    trace = now().trace
    if isinstance(trace, Examples) and trace.axis is not None and trace.axis.is_strategy:
        with trace.around():
            yield
    else:
        yield


def replica_count() -> int:
    """How many replicas of a strategy run this code; 1 outside of them."""
    axis = strategy_axis()
    return 1 if axis is None else axis.size


def over_replicas(x: Tensor, reduce: str) -> Tensor:
    """The sum or mean of a value over the replicas of a strategy; the value itself outside of them."""
    axis = strategy_axis()
    return x if axis is None else builder.all_reduce(x, axis=axis.name, size=axis.size, reduce=reduce)


BUCKET = 4 << 20  # bytes that processes exchange at a time


def sums_over_replicas(values: Sequence[Tensor]) -> list[Tensor]:
    """The sums of values over the replicas of a strategy.

    Where processes share these out, values of one dtype are exchanged together, in buckets.  Each element has a tree of
    its own, so that this changes no bit.
    """
    axis = strategy_axis()
    if axis is None or axis.share is None:
        return [over_replicas(x, "sum") for x in values]
    sums: dict[int, Tensor] = {}
    for bucket in _buckets(values):
        flat = [builder.reshape(values[k], shape=(values[k].size,)) for k in bucket]
        total = over_replicas(flat[0] if len(flat) == 1 else builder.concat(*flat, axis=0), "sum")
        start = 0
        for k, one in zip(bucket, flat):
            part = builder.slice(total, start=(start,), stop=(start + one.size,), step=(1,))
            sums[k] = builder.reshape(part, shape=values[k].shape)
            start += one.size
    return [sums[k] for k in range(len(values))]


def _buckets(values: Sequence[Tensor]) -> list[list[int]]:
    """The positions of values that are exchanged together: neighbours of one dtype."""
    result: list[list[int]] = []
    room, last = 0, None
    for k, x in enumerate(values):
        size = x.size * x.dtype.itemsize
        if x.dtype != last or size > room:
            result.append([])
            room, last = BUCKET, x.dtype
        result[-1].append(k)
        room -= size
    return result


def of_all_replicas(x: Tensor) -> Tensor:
    """The rows of a value of all replicas of a strategy behind each other, scalars as rows; the value itself outside of
    them."""
    axis = strategy_axis()
    if axis is None:
        return x
    rows = x if x.shape else builder.reshape(x, shape=(1,))
    return builder.all_gather(rows, axis=axis.name, size=axis.size, along=0)
