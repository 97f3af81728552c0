"""One run of a dataset, as users hold it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from hybridflow import spans
from hybridflow.core.context import now
from hybridflow.core.tensor import wrap
from hybridflow.data.elements import mapped
from hybridflow.data.pipeline import Node, State
from hybridflow.errors import ArgumentError, TraceError, of_user
from hybridflow.runtime import uninterruptible


@uninterruptible.loaded
def in_programs() -> ModuleType:
    """How programs come by elements, which most datasets do without."""
    from hybridflow.data import compiled_iteration

    return compiled_iteration


class Iterator:
    """Iterator over the elements of a dataset, whose state can be saved; ``iter(dataset)`` makes it.

    Threads that work for it end when it does: at its end, when it raises, with ``close`` and when it is dropped. After
    an error there are no more elements.

    Args:
        node: the description of a pipeline that a dataset holds.

    >>> elements = iter(hf.data.Dataset.range(5))
    >>> next(elements).item(), next(elements).item()
    (0, 1)
    >>> state = elements.state()
    >>> again = iter(hf.data.Dataset.range(5)).restore(state)
    >>> [x.item() for x in again]
    [2, 3, 4]
    """

    __slots__ = ("__weakref__", "_elements", "_next", "_node", "_runner")

    def __init__(self, node: Node) -> None:
        outside_of_traces()
        self._runner = node.runner()
        self._node = node
        self._elements: object = None
        self._next: Any = self._begin

    def _begin(self) -> Any:
        self._elements = iter(self._runner.run())
        self._next = self._elements.__next__
        return self._next()

    def __iter__(self) -> Iterator:
        outside_of_traces()
        return self

    def __next__(self) -> Any:
        if now().trace is not None:
            return in_programs().Taken(self._node.spec, self.__next__).element()
        try:
            if spans.recorder is not None:
                with spans.span("next element", "data"):
                    return self._next()
            return self._next()
        except StopIteration:
            raise
        except BaseException as error:
            self.close()
            raise of_user(error)  # noqa: B904  # the very error

    def _optional(self) -> tuple[Any, Any]:
        """Whether there is a next element, as a tensor, and that; None, or zeros in a compiled function, if not."""
        if now().trace is not None:
            return in_programs().Taken(self._node.spec, self.__next__).optional()
        for element in self:
            return wrap(np.array(True)), element
        return wrap(np.array(False)), None

    def _program_iterations(self) -> Any:
        return in_programs().ElementIterations(self._node.spec, lambda: self, is_shared=True)

    def get_next(self) -> Any:
        """The next element, as ``next`` gives it.

        Returns:
            The element.

        Raises:
            StopIteration: where there is none.
        """
        return next(self)

    @property
    def element_spec(self) -> Any:
        """The elements with a ``hf.TensorSpec`` for each tensor."""
        return self._node.spec()

    def close(self) -> None:
        """End: there are no more elements, and no threads that make some."""
        self._elements = None
        self._next = iter(()).__next__

    def state(self) -> State:
        """What comes next, as nested dicts and lists of numbers and tensors, for ``restore``.

        Elements that are made already (those in the buffer of a shuffle, or made in advance) are part of it.

        Returns:
            Nested dicts and lists.
        """
        return {"runner": self._runner.state()}

    def restore(self, state: State) -> Iterator:
        """Go on where ``state`` was taken, of an iterator of the same dataset.

        Generators and datasets with an ``__iter__`` of their own run again up to there.

        Args:
            state: what ``state`` returned.

        Returns:
            This iterator.

        Raises:
            ArgumentError: where an element was taken already, or the state is of another dataset.

        >>> data = hf.data.Dataset.range(5)
        >>> first = iter(data)
        >>> _ = next(first), next(first)
        >>> next(iter(data).restore(first.state())).item()
        2
        """
        if self._elements is not None or self._next != self._begin:
            raise ArgumentError("Iterator.restore", "it has begun already. Restore a new one: iter(dataset).")
        try:
            self._runner.restore(state["runner"])
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ArgumentError(
                "Iterator.restore", f"the state is of another dataset, or damaged: {error!r}."
            ) from None
        return self

    def state_dict(self) -> State:
        """The state, as ``state`` gives it; so checkpoints keep an iterator.

        Returns:
            Nested dicts and lists.
        """
        return self.state()

    def load_state_dict(self, state_dict: State) -> None:
        """Go on where a state was taken, as ``restore`` does.

        Args:
            state_dict: what ``state_dict`` returned.

        Raises:
            ArgumentError: where an element was taken already, or the state is of another dataset.
        """
        self.restore(state_dict)


class NumpyIterator:
    """The elements of a dataset with NumPy arrays for tensors."""

    def __init__(self, elements: Iterator) -> None:
        self._elements = elements

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        return mapped(_numpy, next(self._elements))


def _numpy(leaf: object) -> Any:
    if not hasattr(leaf, "numpy"):  # a dataset
        return leaf
    array = leaf.numpy()
    return array if isinstance(array, bytes) or array.ndim else array[()]


def outside_of_traces(
    stage: str = "Dataset",
    noun: str = "dataset",
    other: str = "with next from an iterator that was made outside of compiled functions",
) -> None:
    """Raises TraceError inside of a compiled function."""
    trace = now().trace
    if trace is not None:
        raise TraceError(
            stage,
            f"{trace.name} is compiled, and its {noun} has elements only when it runs. Take them with a for statement "
            f"(for x in {noun}), or {other}.",
        )
