"""Strategies of ``tf.distribute``: one replica on one device, and several replicas that compute one after another."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import enum
import functools
import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.settings import Settings, device
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.errors import ArgumentError, DeviceError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


_strategy: contextvars.ContextVar[Any] = contextvars.ContextVar("strategy", default=None)
_replica: contextvars.ContextVar[int | None] = contextvars.ContextVar("replica", default=None)


@tf_export("distribute.OneDeviceStrategy", "distribute.MirroredStrategy", "distribute.Strategy")
class Strategy:
    """``tf.distribute.MirroredStrategy`` and its kin.

    Several devices are replicas that compute one after another in ``run``. These may draw random numbers and compute
    with what they are given. They cannot change variables: a model is trained on one device.

    Args:
        device: The device of the one replica, or a list of devices.
        devices: The list of devices; the same as one.

    Raises:
        DeviceError: For what names no device.
    """

    def __init__(self, device: Any = None, devices: Any = None, **options: object) -> None:
        names = device if isinstance(device, (list, tuple)) else devices
        self.device = names[0] if names else device if isinstance(device, str) else None
        self.num_replicas_in_sync = len(names) if names else 1
        self._streams: WeakSet[Any] = WeakSet()
        if self.num_replicas_in_sync > 1:
            self.number = hf.Variable(np.int64(-1), trainable=False, name="StateVar")  # of the replica that computes
            _let_writers_look()

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Where variables and random generators are made."""
        token = _strategy.set(self)
        try:
            with device(self.device):
                yield self
        finally:
            _strategy.reset(token)

    def run(self, fn: Callable[..., object], args: Any = (), kwargs: Any = None, options: object = None) -> Any:
        """What the function returns: values of all replicas where there are several."""
        if self.num_replicas_in_sync == 1:
            return self._of_replica(0, fn, args, kwargs or {})
        starts = [(stream, stream.state.value()) for stream in self._streams]
        results, ends = [], []
        try:
            for number in range(self.num_replicas_in_sync):
                for stream, start in starts:
                    stream.state.assign(start)
                own_args, own_kwargs = (_of(number, part) for part in (tuple(args), dict(kwargs or {})))
                self.number.assign(number)
                results.append(self._of_replica(number, fn, own_args, own_kwargs))
                ends.append([stream.state.value() for stream, _ in starts])
        finally:
            self.number.assign(-1)
        for (stream, _), *states in zip(starts, *ends, strict=True):
            stream.state.assign(functools.reduce(_further, states))
        return _together(results)

    def _of_replica(self, number: int, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        token = _replica.set(number)
        try:
            with self.scope():
                return fn(*args, **kwargs)
        finally:
            _replica.reset(token)

    def reduce(self, reduce_op: object, value: Any, axis: int | None = None) -> Any:
        """The sum or mean over replicas, and over ``axis`` of each."""
        is_sum = _is_sum(reduce_op)
        values = self.experimental_local_results(value)
        if axis is not None:
            reduction = hf.sum if is_sum else hf.mean
            values = tuple([reduction(one, axis=axis) for one in values])
        if len(values) == 1:
            return values[0]
        total = hf.tree.map(lambda *parts: sum(parts[1:], parts[0]), *values)
        return total if is_sum else hf.tree.map(lambda one: one / len(values), total)

    def experimental_distribute_dataset(self, dataset: Any, options: object = None) -> Any:
        """The dataset, of whose batches each replica is given a part."""
        return dataset if self.num_replicas_in_sync == 1 else dataset.map(self._parts)

    def _parts(self, *batch: object) -> Any:
        element = batch if len(batch) > 1 else batch[0]
        rows = hf.tree.leaves(element)[0].shape[0]
        count = self.num_replicas_in_sync
        if type(rows) is not int or rows % count:
            raise ArgumentError("distribute", f"a batch of {rows} rows cannot be shared by {count} replicas.")
        size = rows // count
        starts = range(0, rows, size)
        return PerReplica(tuple([hf.tree.map(lambda part, k=k: part[k : k + size], element) for k in starts]))

    def distribute_datasets_from_function(self, dataset_fn: Callable[..., object], options: object = None) -> Any:
        """What the function returns."""
        return dataset_fn(InputContext(self.num_replicas_in_sync))

    def experimental_local_results(self, value: TensorLike) -> tuple[Any, ...]:
        """The results of all replicas."""
        return value.values if isinstance(value, PerReplica) else (value,) * self.num_replicas_in_sync

    def gather(self, value: TensorLike, axis: int) -> Any:
        """The results of all replicas, concatenated along an axis."""
        return hf.concat(list(self.experimental_local_results(value)), axis=axis)

    def experimental_distribute_values_from_function(self, value_fn: Callable[..., object]) -> Any:
        """What the function makes of each replica's context."""
        count = self.num_replicas_in_sync
        return _together([value_fn(ValueContext(number, count)) for number in range(count)])

    @property
    def extended(self) -> Strategy:
        return self

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas."""
        return tuple([f"/job:localhost/replica:0/task:0/device:CPU:{k}" for k in range(self.num_replicas_in_sync)])


@tf_export("distribute.experimental.CentralStorageStrategy")
class CentralStorageStrategy(Strategy):
    """``tf.distribute.experimental.CentralStorageStrategy``: variables are in the memory of the process anyway."""

    def __init__(self, compute_devices: object = None, parameter_device: object = None) -> None:
        super().__init__(devices=compute_devices)


@tf_export("distribute.MultiWorkerMirroredStrategy", "distribute.experimental.MultiWorkerMirroredStrategy")
class MultiWorkerMirroredStrategy(Strategy):
    """``tf.distribute.MultiWorkerMirroredStrategy`` of one worker.

    Raises DeviceError where ``TF_CONFIG`` tells of several.
    """

    def __init__(self, cluster_resolver: object = None, communication_options: object = None) -> None:
        workers = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {}).get("worker", [])
        if len(workers) > 1:
            raise DeviceError(
                "distribute", f"TF_CONFIG has {len(workers)} workers; several processes train with hf.distribute."
            )
        super().__init__()


@tf_export("distribute.experimental.CommunicationImplementation", "distribute.experimental.CollectiveCommunication")
class CommunicationImplementation(enum.StrEnum):
    """``tf.distribute.experimental.CommunicationImplementation``: nothing is chosen among them."""

    AUTO, RING, NCCL = "AUTO", "RING", "NCCL"


export(Settings, "distribute.experimental.CommunicationOptions", "distribute.experimental.CollectiveHints")


@tf_export("distribute.DistributedValues")
@dataclasses.dataclass(frozen=True, repr=False)
class PerReplica:
    """Values of several replicas, one of each."""

    values: tuple[Any, ...]

    def __repr__(self) -> str:
        lines = ",\n".join([f"  {number}: {value!s}" for number, value in enumerate(self.values)])
        return f"PerReplica:{{\n{lines}\n}}"


def _of(number: int, value: Any) -> Any:
    """What one replica is given of a value."""
    if isinstance(value, PerReplica):
        return value.values[number]
    if type(value) in (tuple, list):
        return type(value)([_of(number, one) for one in value])
    return {key: _of(number, one) for key, one in value.items()} if type(value) is dict else value


def _together(results: list[Any]) -> Any:
    """The values of replicas as one structure of values of all."""
    first = results[0]
    if len(results) == 1 or first is None:
        return first
    if type(first) in (tuple, list):
        return type(first)([_together(list(parts)) for parts in zip(*results, strict=True)])
    if type(first) is dict:
        return {key: _together([result[key] for result in results]) for key in first}
    return PerReplica(tuple(results))


def _further(state: ArrayLike, other: ArrayLike) -> Any:
    """Of two states of a stream the one whose counter is ahead."""
    words, others = (hf.astype(one, "uint64") for one in (state, other))
    is_ahead = (others[1] > words[1]) | ((others[1] == words[1]) & (others[0] > words[0]))
    return hf.where(is_ahead, other, state)


def _is_sum(reduce_op: object) -> bool:
    return str(reduce_op).upper().endswith("SUM")


@functools.cache
def _let_writers_look() -> None:
    """Let what changes variables raise DeviceError in a replica of several."""
    for kind, names in (
        (hf.Variable, ("assign", "assign_add", "assign_sub")),
        (hf.optimizers.Optimizer, ("apply_gradients", "apply")),
    ):
        for name in names:
            if hasattr(kind, name):
                setattr(kind, name, _looking(getattr(kind, name)))


def _looking(inner: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inner)
    def call(self: Any, *args: object, **kwargs: object) -> Any:
        if _replica.get() is not None and _strategy.get().num_replicas_in_sync > 1 and not _is_state(self):
            raise DeviceError(
                "distribute",
                "a replica of several changes a variable; models are trained on one device here. "
                "Write tf.distribute.MirroredStrategy() without devices.",
            )
        return inner(self, *args, **kwargs)

    return call


def _is_state(writer: object) -> bool:
    """Whether it is the state of a random generator, which each replica has of its own, or the replica's number."""
    return isinstance(writer, hf.Variable) and writer.name == "StateVar"


def follow(stream: object) -> Strategy | None:
    """The strategy under which a random generator is made; its replicas draw of streams of their own."""
    strategy = _strategy.get()
    if strategy is None or strategy.num_replicas_in_sync == 1:
        return None
    if _replica.get() is None:
        strategy._streams.add(stream)
    return strategy


class ValueContext:
    """Which of the replicas a value is made for."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync


@tf_export("distribute.InputContext")
class InputContext:
    """Which of the pipelines is made: the only one."""

    num_input_pipelines, input_pipeline_id = 1, 0

    def __init__(self, num_replicas_in_sync: int = 1) -> None:
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The rows of a batch that each replica is given."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ArgumentError(
                "distribute", f"{global_batch_size} rows cannot be shared by {self.num_replicas_in_sync} replicas."
            )
        return global_batch_size // self.num_replicas_in_sync


export(ValueContext, "distribute.experimental.ValueContext")


@tf_export("distribute.ReduceOp")
class ReduceOp:
    """``tf.distribute.ReduceOp``."""

    SUM, MEAN = "SUM", "MEAN"


class ReplicaContext:
    """``tf.distribute.get_replica_context()``: which replica computes."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int) -> None:
        self.strategy, self.replica_id_in_sync_group = strategy, replica_id_in_sync_group

    @property
    def num_replicas_in_sync(self) -> int:
        return self.strategy.num_replicas_in_sync

    def _check_alone(self, what: str) -> None:
        if self.num_replicas_in_sync > 1:
            raise DeviceError("distribute", f"{what} among several replicas is not there: they compute in turn.")

    def all_reduce(self, reduce_op: object, value: TensorLike, options: object = None) -> Any:
        """The value, where there is no other."""
        self._check_alone("all_reduce")
        return value

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """What the function makes of the strategy and the arguments."""
        self._check_alone("merge_call")
        return merge_fn(self.strategy, *args, **(kwargs or {}))


export(ReplicaContext, "distribute.ReplicaContext")
_alone = Strategy()


@tf_export("distribute.get_replica_context")
def get_replica_context() -> ReplicaContext | None:
    """``tf.distribute.get_replica_context``: None in the scope of a strategy, outside of ``run``."""
    number = _replica.get()
    if number is None and _strategy.get() is not None:
        return None
    return ReplicaContext(get_strategy(), number or 0)


@tf_export("distribute.get_strategy")
def get_strategy() -> Strategy:
    """``tf.distribute.get_strategy``: of the scope, or the one that has one replica."""
    return _strategy.get() or _alone


@tf_export("distribute.has_strategy")
def has_strategy() -> bool:
    """``tf.distribute.has_strategy``: whether this is in a strategy's scope."""
    return _strategy.get() is not None


@tf_export("distribute.in_cross_replica_context")
def in_cross_replica_context() -> bool:
    """``tf.distribute.in_cross_replica_context``: in the scope of a strategy, outside of ``run``."""
    return _strategy.get() is not None and _replica.get() is None
