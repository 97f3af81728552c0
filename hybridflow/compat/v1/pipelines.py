"""``tf.data`` of TensorFlow 1: data sets whose elements sessions take from iterators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator as Iterated, Sequence
from typing import Any

import numpy as np

from hybridflow import data
from hybridflow.compat.v1.errors import FailedPreconditionError, OutOfRangeError
from hybridflow.compat.v1.graph import Info, Operation, Tensor, computing, default_graph
from hybridflow.compat.v1.recording import as_graph_tensor, is_symbolic
from hybridflow.core import pytree


def _computed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the program's that a pipeline calls with values: nothing of it is recorded."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with computing():
            return function(*args, **kwargs)

    return call


class Dataset:
    """A data set of hybridflow's, made when an iterator begins: of values, or of tensors that are fed then."""

    def __init__(self, inputs: Sequence[Tensor], make: Callable[[Sequence[Any]], data.Dataset]) -> None:
        self._inputs, self._make = list(inputs), make

    @staticmethod
    def _of(name: str, *args: Any, **kwargs: Any) -> Dataset:
        leaves, structure = pytree.flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if is_symbolic(leaf)]
        inputs = [as_graph_tensor(leaves[k]) for k in places]

        def make(values: Sequence[Any]) -> data.Dataset:
            filled = [_computed(leaf) if callable(leaf) and not isinstance(leaf, type) else leaf for leaf in leaves]
            for place, value in zip(places, values):
                filled[place] = value
            own_args, own_kwargs = pytree.unflatten(structure, filled)
            with computing():
                made: data.Dataset = getattr(data.Dataset, name)(*own_args, **own_kwargs)
            return made

        return Dataset(inputs, make)

    def __getattr__(self, name: str) -> Any:
        method = getattr(data.Dataset, name, None)
        if name.startswith("_") or not callable(method):
            raise AttributeError(f"tf.data.Dataset has no {name!r} in hybridflow.")

        def call(*args: Any, **kwargs: Any) -> Dataset:
            own = [_computed(x) if callable(x) and not isinstance(x, type) else x for x in args]
            named = {k: _computed(x) if callable(x) and not isinstance(x, type) else x for k, x in kwargs.items()}

            def make(values: Sequence[Any]) -> data.Dataset:
                inner = [
                    x._make(values[-len(x._inputs) :] if x._inputs else []) if isinstance(x, Dataset) else x
                    for x in own
                ]
                made: data.Dataset = getattr(self._make(values), name)(*inner, **named)
                return made

            return Dataset(self._inputs, make)

        return call

    def spec(self) -> Any:
        """What is known of elements: for inputs that are fed later, as far as these are known."""
        samples = [
            np.zeros([1 if x is None else x for x in t.info.shape or ()], np.dtype(t.dtype)) for t in self._inputs
        ]
        return self._make(samples).element_spec

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that is ready in each session."""
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: Any = None) -> Iterator:
        """An iterator that begins whenever its ``initializer`` runs."""
        return make_initializable_iterator(self)


for _name in ("from_tensor_slices", "from_tensors", "from_generator", "range", "zip"):
    setattr(Dataset, _name, staticmethod(functools.partial(Dataset._of, _name)))


class TextLineDataset(Dataset):
    """The lines of files."""

    def __init__(self, filenames: Any) -> None:
        super().__init__([], lambda values: data.TextLineDataset(filenames))


class _Begun:
    """The elements that are left in one session."""

    def __init__(self) -> None:
        self.elements: Iterated[Any] | None = None

    def begin(self, dataset: data.Dataset) -> None:
        self.close()
        with computing():
            self.elements = iter(dataset)

    def next(self, name: str) -> list[Any]:
        if self.elements is None:
            raise FailedPreconditionError("iterator", f"{name} has not been initialized: run iterator.initializer.")
        try:
            with computing():
                return [np.asarray(leaf) for leaf in pytree.flatten(next(self.elements))[0]]
        except StopIteration:
            raise OutOfRangeError("iterator", "End of sequence") from None

    def close(self) -> None:
        close = getattr(self.elements, "close", None)
        self.elements = None
        if close is not None:
            close()


class Iterator:
    """Elements of data sets, one at each run of what depends on ``get_next()``."""

    def __init__(self, spec: Any, dataset: Dataset | None = None, ready: bool = False) -> None:
        self._leaves, self._structure = pytree.flatten(spec)
        self._ready = dataset if ready else None
        self.name = default_graph().unique_name("Iterator")
        self._initializer = None if dataset is None or ready else self.make_initializer(dataset)

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: Any = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator for several data sets, which ``make_initializer`` begins."""
        types, structure = pytree.flatten(output_types)
        shapes = (
            [None] * len(types) if output_shapes is None else pytree.flatten_up_to(structure, output_shapes, "shapes")
        )
        found = [x[1] if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], str) else x for x in shapes]
        return Iterator(
            pytree.unflatten(
                structure, [Info(None if s is None else tuple(s), np.dtype(t)) for t, s in zip(types, found)]
            )
        )

    @property
    def initializer(self) -> Operation:
        if self._initializer is None:
            raise ValueError("This iterator has no initializer: it is ready, or made by make_initializer(dataset).")
        return self._initializer

    @property
    def output_types(self) -> Any:
        return pytree.unflatten(self._structure, [np.dtype(leaf.dtype) for leaf in self._leaves])

    def _held(self, state: Any) -> _Begun:
        def begin() -> _Begun:
            begun = _Begun()
            if self._ready is not None:
                begun.begin(self._ready._make([]))
            return begun

        found: _Begun = state.resource(self, begin)
        return found

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """The operation that lets it begin with the first element of a data set."""

        def compute(state: Any, values: Sequence[Any]) -> list[Any]:
            self._held(state).begin(dataset._make([np.array(v) for v in values]))
            return []

        op = default_graph().add("MakeIterator", name or "MakeIterator", dataset._inputs, [], compute)
        op.on_host = True
        return op

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors of the graph.  Running it raises OutOfRangeError at the end."""
        infos = [
            Info(
                None if leaf.shape is None else tuple([x if isinstance(x, int) else None for x in leaf.shape]),
                np.dtype(leaf.dtype),
            )
            for leaf in self._leaves
        ]
        op = default_graph().add(
            "IteratorGetNext", name or "IteratorGetNext", [], infos, lambda state, _: self._held(state).next(self.name)
        )
        op.on_host = True
        return pytree.unflatten(self._structure, op.outputs)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    if dataset._inputs:
        raise ValueError("a one-shot iterator takes no tensors that are fed: use make_initializable_iterator.")
    return Iterator(dataset.spec(), dataset, ready=True)


def make_initializable_iterator(dataset: Dataset, shared_name: Any = None) -> Iterator:
    return Iterator(dataset.spec(), dataset)


NAMES = {
    "Dataset": Dataset, "TextLineDataset": TextLineDataset, "Iterator": Iterator,
    "make_one_shot_iterator": make_one_shot_iterator, "make_initializable_iterator": make_initializable_iterator,
    "AUTOTUNE": -1,
}  # fmt: skip
