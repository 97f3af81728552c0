"""Steps of models that a strategy trains: each batch cut into the parts of the replicas, and their results as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.compiler.ir.dtypes import float32, is_float
from hybridflow.compiler.ops.batching_rules import MeshAxis, axis_to_front
from hybridflow.compiler.ops.collectives import gathered, reduced
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.distribute.strategy import MirroredStrategy
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.jit.function import function


class ReplicatedStep:
    """A step of a batch as that of all replicas of a strategy.

    Programs are for one number of rows each: how a batch is cut follows from it.  ``gathers``: results are rows, which
    come behind each other; else the mean over replicas is taken of what differs between them.
    """

    def __init__(
        self, strategy: MirroredStrategy, step: Callable[..., Any], name: str, compiled: bool, gathers: bool
    ) -> None:
        self._strategy, self._step, self._name = strategy, step, name
        self._compiled, self._gathers = compiled, gathers
        self._by_rows: dict[int, Callable[..., Any]] = {}

    def __call__(self, *batch: object) -> Any:
        leaves = [leaf for leaf in pytree.flatten(batch)[0] if leaf is not None]
        rows = as_tensor(leaves[0], self._name).shape[0] if leaves and as_tensor(leaves[0], self._name).shape else 0
        step = self._by_rows.get(rows)
        if step is None:
            step = function(self._run, name=self._name) if self._compiled else self._run
            self._by_rows[rows] = step
        return step(*batch)

    def _run(self, *batch: object) -> Any:
        strategy = self._strategy
        together = _rows_of_all if self._gathers else _mean_of_all
        return strategy.join(self._step, strategy.distribute_batch(batch), None, together)


def _mean_of_all(x: Tensor, differs: bool, axis: MeshAxis) -> Tensor:
    if not differs:
        return x
    result: Tensor = reduced(builder, cast(x, x.dtype if is_float(x.dtype) else float32), True, axis, "mean")
    return result


def _rows_of_all(x: Tensor, differs: bool, axis: MeshAxis) -> Tensor:
    if not x.shape[differs:]:
        x, differs = builder.reshape(axis_to_front(builder, x, differs, axis.here), shape=(axis.here, 1)), True
    result: Tensor = gathered(builder, x, differs, axis, 0)
    return result
