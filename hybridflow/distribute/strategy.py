"""``MirroredStrategy``: synchronous training by replicas that each have a part of the batch, and all variables."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np

from hybridflow.array.reductions import sum as sum_of
from hybridflow.compiler.ops.batching_rules import MeshAxis, axis_to_front
from hybridflow.compiler.ops.collectives import gathered, reduced
from hybridflow.control.loop_state import is_value
from hybridflow.core import pytree
from hybridflow.core.devices import list_devices
from hybridflow.core.tensor import Tensor
from hybridflow.distribute.group import group
from hybridflow.distribute.mesh import Mesh
from hybridflow.distribute.sharing import share_of
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError, entered
from hybridflow.jit.python_wrappers import converted
from hybridflow.tracing.batch_trace import over_examples

_AXIS = "replica"


@dataclasses.dataclass(frozen=True)
class PerReplica:
    """A value of each replica, as ``strategy.run`` takes and returns them.

    Args:
        stacked: the values of all, along a first axis.

    >>> hf.distribute.PerReplica(hf.asarray([1.0, 2.0])).values
    (<Tensor f32[] cpu> 1.0, <Tensor f32[] cpu> 2.0)
    """

    stacked: Any
    replicas: ClassVar[int | None] = None  # how many have one, where processes share them out

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, in the order of the replicas."""
        return tuple([self.stacked[k] for k in range(self.stacked.shape[0])])


@functools.cache
def _of_replicas(replicas: int) -> type[PerReplica]:
    """The values of a process of those of so many replicas.  Their number is part of the type, and so of what compiled
    functions are traced for."""
    return type("PerReplica", (PerReplica,), {"__doc__": PerReplica.__doc__, "replicas": replicas})


def _values(stacked: object, axis: MeshAxis) -> PerReplica:
    return PerReplica(stacked) if axis.share is None else _of_replicas(axis.size)(stacked)


def _values_of(x: Tensor, differs: bool, axis: MeshAxis) -> PerReplica:
    return _values(axis_to_front(builder, x, differs, axis.here), axis)


class MirroredStrategy:
    """Synchronous data parallelism: each replica computes with its part of a batch, and all have the same variables.

    A number of replicas is part of the program, and of its bits; how many processes share them out is not.

    In a replica optimizers add up the gradients of all, and losses that are means divide by the count of the whole
    batch. Metrics see the whole batch, and moving averages of batch normalization are means over replicas. Random
    numbers are other ones in each replica.

    Args:
        replicas: how many logical replicas there are; as many as there are GPUs, or one, unless given.
        shard_optimizer: whether processes share the state of optimizers out (ZeRO, stage 1). Each updates a part of
            each large variable, and hands it to the others. The bits are the same.

    Raises:
        ArgumentError: for a number below 1; in updates, for an optimizer that computes an element of a variable from
            others than the same one.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
    >>> x = strategy.distribute_batch(hf.arange(4.0))
    >>> strategy.reduce("sum", strategy.run(lambda x: hf.sum(x) ** 2, args=(x,)))
    <Tensor f32[] cpu> 26.0
    """

    def __init__(self, replicas: int | None = None, *, shard_optimizer: bool = False) -> None:
        if replicas is None:
            replicas = max(1, sum(1 for name in list_devices() if name.startswith("gpu")))
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 1:
            raise ArgumentError("MirroredStrategy", f"replicas is {replicas!r}. Expected a number of 1 or more.")
        if not isinstance(shard_optimizer, bool):
            raise ArgumentTypeError(
                "MirroredStrategy", f"shard_optimizer is {shard_optimizer!r:.60}. Expected True or False."
            )
        self.mesh = Mesh({_AXIS: replicas})
        self.shard_optimizer = shard_optimizer

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        return self.mesh.size

    @contextlib.contextmanager
    def scope(self) -> Iterator[MirroredStrategy]:
        """A block in which models are compiled that this strategy trains.

        Returns:
            A context manager that gives the strategy.
        """
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    # ---- running

    @entered
    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a function once for each replica, and return what each returns.

        It is traced once, with tensors that stand for one replica's values: what depends on them has no value there.

        Args:
            fn: the function.
            args: its arguments. Of a ``PerReplica``, wherever it is nested, each replica has its own value; anything
                else is the same for all.
            kwargs: those by name.

        Returns:
            What ``fn`` returns, with a ``PerReplica`` in the place of each tensor.

        Raises:
            ArgumentError: where a variable would get a value of each replica, or values are of other numbers of
                replicas.

        >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
        >>> strategy.run(lambda x: x + 1, args=(1.0,)).values
        (<Tensor f32[] cpu> 2.0, <Tensor f32[] cpu> 2.0)
        """
        return self.join(fn, args, kwargs, _values_of)

    def join(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        together: Callable[[Tensor, bool, MeshAxis], Any],
    ) -> Any:
        """Run a function on all replicas, as ``run`` does, and say what becomes of its results.

        Args:
            fn: the function.
            args: its arguments; values of ``hf.distribute.PerReplica`` differ by replica.
            kwargs: its keyword arguments, or None.
            together: a function of a result, whether it differs by replica (it is stacked then), and the mesh axis.

        Returns:
            What ``together`` makes of the results, in their structure.

        Raises:
            ArgumentTypeError: where ``fn`` is no function.
        """
        if not callable(fn):
            raise ArgumentTypeError("run", f"{fn!r:.60} is no function; the function comes first.")
        arguments = (tuple(args), dict(kwargs or {}))
        leaves, structure = _flatten(arguments)
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, PerReplica)]
        stacked = [as_tensor(leaves[k].stacked, "run") for k in places]
        axis = self._axis_of("run", [leaves[k] for k in places])
        results_of_fn: list[Any] = []

        def body(examples: list[Tensor]) -> list[Tensor]:
            replaced = list(leaves)
            for k, x in zip(places, examples):
                replaced[k] = x
            positional, by_name = pytree.unflatten(structure, replaced)
            results_of_fn.append(pytree.flatten(converted(fn, "run")(*positional, **by_name)))
            return [as_tensor(leaf, "run") for leaf in results_of_fn[0][0] if is_value(leaf)]

        results, differ = over_examples("run", body, stacked, axis.here, "different", axis=axis)
        result_leaves, shape = results_of_fn[0]
        values = iter([together(x, replaced, axis) for x, replaced in zip(results, differ) if x is not None])
        return pytree.unflatten(shape, [next(values) if is_value(leaf) else leaf for leaf in result_leaves])

    def _axis_of(self, stage: str, values: Sequence[PerReplica]) -> MeshAxis:
        """The axis along which values lie: fewer replicas than there are share out a batch that does not suffice."""
        is_shared = group() is not None
        sizes = {value.replicas or (self.mesh.size if is_shared else np.shape(value.stacked)[0]) for value in values}
        if len(sizes) > 1:
            raise ArgumentError(stage, f"the values are of {' and '.join(map(str, sorted(sizes)))} replicas.")
        size = sizes.pop() if sizes else self.mesh.size
        if not 1 <= size <= self.mesh.size:
            raise ArgumentError(stage, f"the values are of {size} replicas, and the strategy has {self.mesh.size}.")
        axis = MeshAxis(_AXIS, size, True, share_of(size), self.shard_optimizer)
        for value in values:
            if np.shape(value.stacked)[0] != axis.here:
                raise ArgumentError(
                    stage, f"there are {np.shape(value.stacked)[0]} values, and this process has {axis.here} replicas."
                )
        return axis

    # ---- values of replicas

    @entered
    def reduce(self, reduce_op: object, value: object, axis: int | None = None) -> Any:
        """What the values of all replicas come to, by the tree of replicas.

        Args:
            reduce_op: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``.
            value: a ``PerReplica``, or a nest of them. Other tensors count as the value of each replica.
            axis: an axis of each value that is summed, or averaged, first.

        Returns:
            A tensor, or a nest of them.

        Raises:
            ArgumentError: for another reduction.

        >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
        >>> strategy.reduce("mean", hf.distribute.PerReplica(hf.asarray([1.0, 2.0])))
        <Tensor f32[] cpu> 1.5
        """
        kind = str(getattr(reduce_op, "value", reduce_op)).rpartition(".")[2].lower()
        if kind not in (("sum", "mean") if axis is not None else ("sum", "mean", "max", "min")):
            raise ArgumentError("reduce", f"reduce_op is {reduce_op!r}. Expected 'sum', 'mean', 'max' or 'min'.")

        def one(leaf: Any) -> Any:
            is_per_replica = isinstance(leaf, PerReplica)
            x = as_tensor(leaf.stacked if is_per_replica else leaf, "reduce")
            along = self._axis_of("reduce", [leaf] if is_per_replica else [])
            if axis is None:
                return reduced(builder, x, is_per_replica, along, kind)
            place = axis + 1 if is_per_replica and axis >= 0 else axis
            total = reduced(builder, sum_of(x, axis=place), is_per_replica, along, "sum")
            return total / (along.size * x.shape[place]) if kind == "mean" else total

        return _map(one, value)

    @entered
    def gather(self, value: object, axis: int = 0) -> Any:
        """The values of all replicas behind each other.

        Args:
            value: a ``PerReplica``, or a nest of them.
            axis: the axis along which they come; values without axes become a vector.

        Returns:
            A tensor, or a nest of them.

        >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
        >>> strategy.gather(strategy.run(lambda: hf.ones((2,))))
        <Tensor f32[4] cpu> [1. 1. 1. 1.]
        """

        def one(leaf: object) -> Any:
            if not isinstance(leaf, PerReplica):
                raise ArgumentTypeError("gather", f"the value is {leaf!r:.60}. Expected what strategy.run returns.")
            x, along = as_tensor(leaf.stacked, "gather"), self._axis_of("gather", [leaf])
            rank = len(x.shape) - 1
            if rank == 0:
                x, rank = builder.reshape(x, shape=(*x.shape, 1)), 1
            if not -rank <= axis < rank:
                raise ShapeError("gather", f"axis is {axis}, and each value has {rank} axes.")
            return gathered(builder, x, True, along, axis % rank)

        return _map(one, value)

    def local_results(self, value: object) -> tuple[Any, ...]:
        """The values of the replicas of this process, in their order.

        Args:
            value: a result of ``run``.

        Returns:
            A tuple; of a value that is the same for all replicas, just that.

        >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
        >>> strategy.local_results(strategy.run(hf.distribute.axis_index))
        (<Tensor i64[] cpu> 0, <Tensor i64[] cpu> 1)
        """
        return value.values if isinstance(value, PerReplica) else (value,)

    # ---- data

    @entered
    def distribute_batch(self, batch: object) -> Any:
        """A batch cut into the parts of the replicas.

        Where its rows do not fall into as many equal parts as there are replicas, as few replicas less as possible have
        one: nothing is repeated, padded or dropped.

        Args:
            batch: a tensor, or a nest of them, of equal first extents.

        Returns:
            The nest, with a ``PerReplica`` in the place of each tensor.

        Raises:
            ShapeError: for tensors without rows, or of other numbers of rows.

        >>> strategy = hf.distribute.MirroredStrategy(replicas=4)
        >>> strategy.distribute_batch(hf.arange(6)).values
        (<Tensor i64[2] cpu> [0 1], <Tensor i64[2] cpu> [2 3], <Tensor i64[2] cpu> [4 5])
        """
        leaves, structure = pytree.flatten(batch)
        tensors = [as_tensor(leaf, "distribute_batch") if is_value(leaf) else None for leaf in leaves]
        shapes = [x.shape for x in tensors if x is not None]
        if any(not shape for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
            raise ShapeError(
                "distribute_batch",
                f"the batch has the shapes {', '.join(map(str, shapes))}. Expected one number of rows.",
            )
        size = self.parts_of(shapes[0][0]) if shapes else 1
        axis = MeshAxis(_AXIS, size, is_strategy=True, share=share_of(size))

        def cut(x: Tensor) -> PerReplica:
            rows = x.shape[0] // size
            part = x if axis.share is None else x[axis.share.first * rows : (axis.share.first + axis.here) * rows]
            return _values(builder.reshape(part, shape=(axis.here, rows, *x.shape[1:])), axis)

        return pytree.unflatten(structure, [leaf if x is None else cut(x) for leaf, x in zip(leaves, tensors)])

    def parts_of(self, rows: int) -> int:
        """The number of equal parts that rows are cut into: as many as there are replicas, or the next fewer that
        there are.

        Args:
            rows: the number of rows.

        Returns:
            An int.

        Raises:
            ShapeError: where there are no rows.
        """
        if rows < 1:
            raise ShapeError("distribute", "a batch has no rows.")
        return next(count for count in range(min(self.mesh.size, rows), 0, -1) if rows % count == 0)

    def distribute_dataset(self, dataset: Iterable[Any]) -> DistributedDataset:
        """A data set of global batches, each cut into the parts of the replicas.

        Args:
            dataset: anything that can be iterated over and gives batches.

        Returns:
            A DistributedDataset.

        >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
        >>> for part in strategy.distribute_dataset(hf.data.Dataset.range(4).batch(4)):
        ...     print(part.values)
        (<Tensor i64[2] cpu> [0 1], <Tensor i64[2] cpu> [2 3])
        """
        return DistributedDataset(self, dataset)

    def __repr__(self) -> str:
        return f"<MirroredStrategy replicas={self.mesh.size}>"


class DistributedDataset:
    """The batches of a data set, each cut into the parts of replicas: ``strategy.distribute_dataset`` makes one.

    Args:
        strategy: the strategy whose replicas they are.
        dataset: anything that can be iterated over and gives batches.

    >>> strategy = hf.distribute.MirroredStrategy(replicas=2)
    >>> len(hf.distribute.DistributedDataset(strategy, hf.data.Dataset.range(8).batch(4)))
    2
    """

    def __init__(self, strategy: MirroredStrategy, dataset: Iterable[Any]) -> None:
        self._strategy, self._dataset = strategy, dataset

    def __iter__(self) -> Iterator[Any]:
        for batch in self._dataset:
            yield self._strategy.distribute_batch(batch)

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]


def _flatten(value: object) -> tuple[list[Any], pytree.Structure]:
    """Leaves and structure, a PerReplica being a leaf."""
    whole: set[int] = set()

    def visit(part: object) -> None:
        if isinstance(part, PerReplica):
            whole.add(id(part))
        elif pytree.is_container(part):
            for _, child in pytree.children(part, ""):
                visit(child)

    visit(value)
    return pytree.flatten(value, whole)


def _map(function: Callable[[Any], Any], value: object) -> Any:
    leaves, structure = _flatten(value)
    return pytree.unflatten(structure, [function(leaf) for leaf in leaves])


# ---- the strategy of the running code

_current: ContextVar[MirroredStrategy | None] = ContextVar("strategy", default=None)


def has_strategy() -> bool:
    """Whether this is in the ``scope`` of a strategy.

    Returns:
        A bool.

    >>> hf.distribute.has_strategy()
    False
    """
    return _current.get() is not None


def get_strategy() -> MirroredStrategy:
    """The strategy in whose ``scope`` this is; one of a single replica where there is none.

    Returns:
        A MirroredStrategy.

    >>> with hf.distribute.MirroredStrategy(replicas=2).scope():
    ...     hf.distribute.get_strategy()
    <MirroredStrategy replicas=2>
    """
    return _current.get() or MirroredStrategy(1)
