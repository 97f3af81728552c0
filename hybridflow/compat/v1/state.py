"""What a session keeps: the values of its variables, and what draws and queues have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array.creation import zeros
from hybridflow.array.random import Generator, global_generator
from hybridflow.compat.v1.errors import FailedPreconditionError
from hybridflow.compat.v1.nodes import Operation
from hybridflow.core.context import suspended
from hybridflow.core.variable import Variable
from hybridflow.runtime import fork_safe_locks

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


class State:
    """What a session keeps: values of variables, and what random operations draw from."""

    def __init__(self) -> None:
        self._variables: dict[Any, Variable] = {}
        self.ready: set[Any] = set()  # those variables that have a value
        self._generators: dict[Operation, Generator] = {}
        self._resources: dict[Any, Any] = {}
        self.lock = fork_safe_locks.make()

    def variable(self, variable: Any) -> Variable:
        """The session's own of a graph's variable, which may have no value yet."""
        result = self._variables.get(variable)
        if result is None:
            with self.lock, suspended():
                if variable not in self._variables:
                    shape = variable.initial_shape()
                    start = zeros(shape, dtype=np.dtype(variable.dtype))
                    self._variables[variable] = Variable(start, variable.trainable, name=variable.name.split(":")[0])
            result = self._variables[variable]
        return result

    def resource(self, key: TensorLike, make: Callable[[], Any]) -> Any:
        """What a queue or an iterator has in this session."""
        if key not in self._resources:
            with self.lock:
                if key not in self._resources:
                    self._resources[key] = make()
        return self._resources[key]

    def close(self) -> None:
        """Wake those who wait for elements of queues."""
        for resource in list(self._resources.values()):
            if hasattr(resource, "close"):
                resource.close()
        self._resources.clear()

    def load(self, variable: object, array: np.ndarray) -> None:
        """Give a variable a value, from outside of any program."""
        held = self.variable(variable)
        with suspended():
            held.assign(array)
        self.ready.add(variable)

    def check(self, variables: Sequence[Any]) -> None:
        """Raise FailedPreconditionError for one that has no value."""
        for variable in variables:
            if variable not in self.ready:
                raise FailedPreconditionError(
                    "session",
                    f"Attempting to use uninitialized value {variable.name.split(':')[0]}. Run "
                    "tf.global_variables_initializer() first.",
                )

    def generator(self, op: Operation) -> Generator:
        """What a random operation draws from: its own sequence where it or its graph has a seed."""
        graph_seed, own_seed = op.source or (None, None)
        if graph_seed is None and own_seed is None:
            return global_generator()
        result = self._generators.get(op)
        if result is None:
            with self.lock, suspended():
                first = 87654321 if graph_seed is None else graph_seed
                second = op.number if own_seed is None else own_seed
                result = self._generators.setdefault(op, Generator(_mixed(first, second)))
        return result


def _mixed(first: int, second: int) -> int:
    return ((first & 0x7FFFFFFF) << 31 | (second & 0x7FFFFFFF)) & 0x7FFFFFFFFFFFFFFF
