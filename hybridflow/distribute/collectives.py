"""Collectives: what the replicas along a mesh axis compute together, inside of ``strategy.run`` or ``shard_map``.

Each has a derivative, which is a collective again: a gradient inside of a replica is that of the sum of all replicas'
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ops import collectives as _declarations  # noqa: F401  (imported for the ops)
from hybridflow.compiler.ops.batching_rules import MeshAxis
from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.distribute.group import group
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, entered
from hybridflow.tracing.effect_token import call_in_order
from hybridflow.tracing.replica_axes import axes_here

AxisNames = str | Sequence[str] | None


def axes_named(stage: str, axis: AxisNames) -> list[MeshAxis]:
    """The axes of these names, innermost first; without a name the only one that there is.  Raises ArgumentError."""
    here = list(axes_here())
    if not here:
        raise ArgumentError(
            stage,
            "there are no replicas here. Call it in a function that strategy.run or hf.distribute.shard_map runs for "
            "each of them.",
        )
    if axis is None:
        if len(here) > 1:
            raise ArgumentError(stage, f"replicas lie along {_names(here)}; give the axis.")
        return here
    names = [axis] if isinstance(axis, str) else list(axis) if isinstance(axis, (list, tuple)) else [None]
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(stage, f"axis is {axis!r}. Expected the name of a mesh axis, or several.")
        if name not in [one.name for one in here]:
            raise ArgumentError(stage, f"no replicas lie along {name!r} here, but along {_names(here)}.")
    return [one for one in here if one.name in names]


def _names(axes: Iterable[MeshAxis]) -> str:
    return " and ".join(repr(axis.name) for axis in axes)


def _one_axis(stage: str, axis: AxisNames) -> MeshAxis:
    axes = axes_named(stage, axis)
    if len(axes) > 1:
        raise ArgumentError(stage, f"axis is {axis!r}. Expected one axis.")
    return axes[0]


def _each(stage: str, value: object, collective: Callable[[Tensor], Any]) -> Any:
    leaves, structure = pytree.flatten(value)
    return pytree.unflatten(structure, [collective(as_tensor(leaf, stage)) for leaf in leaves])


@entered
def all_reduce(value: object, reduce: str = "sum", axis: AxisNames = None) -> Any:
    """The sum of the values of all replicas, or another reduction, the same for each of them.

    Values are added by one tree that depends on the number of replicas alone. Over several axes they are reduced along
    the innermost one first.

    Args:
        value: a tensor, or a nest of them.
        reduce: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``.
        axis: the name of the mesh axis, or several; the only one that there is, unless given.

    Returns:
        A tensor like ``value``, or a nest of them.

    Raises:
        ArgumentError: where there are no replicas, or for an unknown axis or reduction.
        DTypeError: for bools, and for a mean of integers.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=4)
    >>> strategy.run(lambda: hf.distribute.all_reduce(hf.distribute.axis_index())).values[0]
    <Tensor i64[] cpu> 6
    """
    axes = axes_named("all_reduce", axis)

    def reduced(x: Tensor) -> Tensor:
        for one in axes:
            x = builder.all_reduce(x, axis=one.name, size=one.size, reduce=reduce)
        return x

    return _each("all_reduce", value, reduced)


@entered
def all_gather(value: object, axis: AxisNames = None, along: int = 0) -> Any:
    """The values of all replicas behind each other, the same for each of them.

    Args:
        value: a tensor, or a nest of them. Scalars become vectors.
        axis: the name of the mesh axis.
        along: the array axis along which they come.

    Returns:
        A tensor with ``axis_size`` times the extent along that axis, or a nest of them.

    Raises:
        ArgumentError: where there are no replicas.
        AxisError: for an array axis that is not there.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=3)
    >>> strategy.run(lambda: hf.distribute.all_gather(hf.distribute.axis_index())).values[0]
    <Tensor i64[3] cpu> [0 1 2]
    """
    one = _one_axis("all_gather", axis)

    def gathered(x: Tensor) -> Any:
        x = x if x.shape else builder.reshape(x, shape=(1,))
        return builder.all_gather(x, axis=one.name, size=one.size, along=along)

    return _each("all_gather", value, gathered)


@entered
def reduce_scatter(value: object, reduce: str = "sum", axis: AxisNames = None, along: int = 0) -> Any:
    """The sum or mean of the values of all replicas, of which each has the part of its number.

    Args:
        value: a tensor, or a nest of them, whose extent falls into ``axis_size`` equal parts.
        reduce: ``"sum"`` or ``"mean"``.
        axis: the name of the mesh axis.
        along: the array axis that is cut.

    Returns:
        A tensor, or a nest of them.

    Raises:
        ShapeError: where the parts are not equal.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
    >>> strategy.run(lambda: hf.distribute.reduce_scatter(hf.arange(4))).values
    (<Tensor i64[2] cpu> [0 2], <Tensor i64[2] cpu> [4 6])
    """
    one = _one_axis("reduce_scatter", axis)
    return _each(
        "reduce_scatter",
        value,
        lambda x: builder.reduce_scatter(x, axis=one.name, size=one.size, reduce=reduce, along=along),
    )


@entered
def all_to_all(value: object, axis: AxisNames = None, split: int = 0, concat: int = 0) -> Any:
    """Each replica cuts its value into parts, one for each replica, and puts those that it is given behind each other.

    Args:
        value: a tensor, or a nest of them.
        axis: the name of the mesh axis.
        split: the array axis that is cut.
        concat: the array axis along which parts are put behind each other.

    Returns:
        A tensor, or a nest of them.

    Raises:
        ShapeError: where the parts are not equal.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
    >>> def exchanged():
    ...     return hf.distribute.all_to_all(hf.arange(2) + 10 * hf.distribute.axis_index())
    >>> strategy.run(exchanged).values
    (<Tensor i64[2] cpu> [ 0 10], <Tensor i64[2] cpu> [ 1 11])
    """
    one = _one_axis("all_to_all", axis)
    return _each(
        "all_to_all",
        value,
        lambda x: builder.all_to_all(x, axis=one.name, size=one.size, split=split, concat=concat),
    )


@entered
def broadcast(value: object, source: int = 0, axis: AxisNames = None) -> Any:
    """The value of one replica, for all of them.

    Args:
        value: a tensor, or a nest of them.
        source: the number of the replica.
        axis: the name of the mesh axis.

    Returns:
        A tensor like ``value``, or a nest of them.

    Raises:
        ArgumentError: for a number that no replica has.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=3)
    >>> strategy.run(lambda: hf.distribute.broadcast(hf.distribute.axis_index(), 2)).values[0]
    <Tensor i64[] cpu> 2
    """
    one = _one_axis("broadcast", axis)
    return _each(
        "broadcast", value, lambda x: builder.broadcast_replica(x, axis=one.name, size=one.size, source=source)
    )


@entered
def permute(value: object, pairs: Iterable[tuple[int, int]], axis: AxisNames = None) -> Any:
    """Values that go from some replicas to others.

    Args:
        value: a tensor, or a nest of them.
        pairs: ``(source, target)`` of each; a replica that is no target has zeros.
        axis: the name of the mesh axis.

    Returns:
        A tensor like ``value``, or a nest of them.

    Raises:
        ArgumentError: where a replica is the source, or the target, of two.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=3)
    >>> def shifted():
    ...     return hf.distribute.permute(hf.distribute.axis_index() + 1, [(0, 1), (1, 2)])
    >>> strategy.run(shifted).values
    (<Tensor i64[] cpu> 0, <Tensor i64[] cpu> 1, <Tensor i64[] cpu> 2)
    """
    one, chosen = _one_axis("permute", axis), tuple([tuple(pair) for pair in pairs])
    return _each("permute", value, lambda x: builder.permute_replicas(x, axis=one.name, size=one.size, pairs=chosen))


@entered
def axis_index(axis: AxisNames = None) -> Tensor:
    """The number of this replica along a mesh axis.

    Args:
        axis: the name of the mesh axis.

    Returns:
        An int64 scalar.

    Raises:
        ArgumentError: where there are no replicas.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
    >>> strategy.run(hf.distribute.axis_index).values
    (<Tensor i64[] cpu> 0, <Tensor i64[] cpu> 1)
    """
    one = _one_axis("axis_index", axis)
    result: Tensor = builder.axis_index(axis=one.name, size=one.size)
    return result


@entered
def axis_size(axis: AxisNames = None) -> int:
    """How many replicas lie along a mesh axis.

    Args:
        axis: the name of the mesh axis, or several.

    Returns:
        An int.

    Raises:
        ArgumentError: where there are no replicas.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
    >>> strategy.run(lambda: hf.distribute.axis_size() * hf.ones(())).values[0]
    <Tensor f32[] cpu> 2.0
    """
    size = 1
    for one in axes_named("axis_size", axis):
        size *= one.size
    return size


@entered
def barrier() -> None:
    """Wait until all processes have come here; one process waits for nobody.

    Returns:
        None.

    >>> hf.distribute.barrier()
    """
    processes_here = group()
    if processes_here is None or any(True for _ in axes_here()):
        return  # replicas meet in what they exchange

    def wait() -> list[np.ndarray]:
        processes_here.exchange("barrier", np.empty(0, np.uint8))
        return []

    if now().trace is None:
        wait()
    else:
        call_in_order(wait, (), ())


@entered
def process_index() -> int:
    """The number of this process among those that share the replicas out.

    What a process does must not depend on it, but for what is done once for all, as to write a file.

    Returns:
        An int, 0 where there is one process.

    >>> hf.distribute.process_index()
    0
    """
    processes_here = group()
    return 0 if processes_here is None else processes_here.rank


@entered
def process_count() -> int:
    """How many processes share the replicas out.

    Returns:
        An int.

    >>> hf.distribute.process_count()
    1
    """
    processes_here = group()
    return 1 if processes_here is None else processes_here.size
