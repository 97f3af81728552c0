"""``tf.data`` of TensorFlow 1: data sets whose elements sessions take from iterators."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator as Iterated, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import data
from hybridflow.compat.adapters import files
from hybridflow.compat.adapters.values import DType
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.dtype_names import STRING, kind_of, shown
from hybridflow.compat.v1.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.graph_stack import computing, is_recording
from hybridflow.compat.v1.nodes import Info, Operation, Tensor
from hybridflow.compat.v1.recording import as_graph_tensor, is_symbolic
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.compat.v1.strings import encoded, is_text
from hybridflow.core import pytree

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.compat.v1.state import State
    from hybridflow.core.type_aliases import ArrayLike


def _computed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the program's that a pipeline calls with values: nothing of it is recorded."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        with computing():
            result = function(*args, **kwargs)
            return result._make([]) if isinstance(result, Dataset) else result

    return call


def _plain(value: object) -> Any:
    """An argument with shapes as tuples, and functions of the program's as ones that compute."""
    if isinstance(value, TensorShape):
        return None if value.ndims is None else tuple(value.as_list())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)([_plain(x) for x in value])
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    return _computed(value) if callable(value) and not isinstance(value, (type, DType, Dataset)) else value


class Dataset:
    """A data set of hybridflow's, made when an iterator begins: of values, or of tensors that are fed then."""

    def __init__(self, inputs: Sequence[Tensor], make: Callable[[Sequence[Any]], data.Dataset]) -> None:
        self._inputs, self._make = list(inputs), make

    @staticmethod
    def _of(name: str, *args: Any, **kwargs: Any) -> Dataset:
        leaves, structure = pytree.flatten(_plain((args, kwargs)))
        places = [k for k, leaf in enumerate(leaves) if is_symbolic(leaf)]
        inputs = [as_graph_tensor(leaves[k]) for k in places]
        inputs += [t for x in leaves if isinstance(x, Dataset) for t in x._inputs]

        def make(values: Sequence[Any]) -> data.Dataset:
            filled = list(leaves)
            for place, value in zip(places, values):
                filled[place] = value
            rest = list(values)[len(places) :]
            for k, leaf in enumerate(filled):
                if isinstance(leaf, Dataset):
                    filled[k], rest = leaf._make(rest[: len(leaf._inputs)]), rest[len(leaf._inputs) :]
            own_args, own_kwargs = pytree.unflatten(structure, filled)
            with computing():
                result: data.Dataset = getattr(files.Dataset, name)(*own_args, **own_kwargs)
            return result

        return Dataset(inputs, make)

    def __getattr__(self, name: str) -> Any:
        method = getattr(data.Dataset, name, None)
        if name.startswith("_") or not callable(method):
            raise AttributeError(f"tf.data.Dataset has no {name!r} in hybridflow.")

        def call(*args: object, **kwargs: object) -> Dataset:
            leaves, structure = pytree.flatten(_plain((args, kwargs)))
            others = [x for x in leaves if isinstance(x, Dataset)]

            def make(values: Sequence[Any]) -> data.Dataset:
                rest = list(values)
                filled = list(leaves)
                source, rest = self._make(rest[: len(self._inputs)]), rest[len(self._inputs) :]
                for k, leaf in enumerate(filled):
                    if isinstance(leaf, Dataset):
                        filled[k], rest = leaf._make(rest[: len(leaf._inputs)]), rest[len(leaf._inputs) :]
                args_filled, named = pytree.unflatten(structure, filled)
                result: data.Dataset = getattr(source, name)(*args_filled, **named)
                return result

            return Dataset([*self._inputs, *(t for other in others for t in other._inputs)], make)

        return call

    def spec(self) -> Any:
        """What is known of elements: for inputs that are fed later, as far as these are known."""
        samples = [  # of ones, since a number may say how many elements there are
            np.ones([1 if x is None else x for x in t.info.shape or ()], np.dtype(t.dtype)) for t in self._inputs
        ]
        return self._make(samples).element_spec

    @property
    def output_types(self) -> Any:
        leaves, structure = pytree.flatten(self.spec())
        return pytree.unflatten(structure, [shown(kind_of(leaf.dtype)) for leaf in leaves])

    @property
    def output_shapes(self) -> Any:
        leaves, structure = pytree.flatten(self.spec())
        return pytree.unflatten(structure, [_shape_of(leaf) for leaf in leaves])

    def __iter__(self) -> Any:
        """The elements, where functions compute at once.  Raises RuntimeError in a graph."""
        if is_recording(True) or self._inputs:
            raise RuntimeError("iter(dataset) is only supported when eager execution is enabled: make an iterator.")
        return iter(self._make([]))

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that is ready in each session."""
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: object = None) -> Iterator:
        """An iterator that begins whenever its ``initializer`` runs."""
        return make_initializable_iterator(self)


for _name in (
    "from_tensor_slices", "from_tensors", "from_generator", "range", "zip", "list_files", "sample_from_datasets",
    "choose_from_datasets",
):  # fmt: skip
    if not hasattr(data.Dataset, _name):
        continue
    setattr(Dataset, _name, staticmethod(functools.partial(Dataset._of, _name)))


class _OfFiles(Dataset):
    _kind: Any

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        symbolic = [filenames] if is_symbolic(filenames) else []
        how = compression_type, buffer_size, num_parallel_reads
        super().__init__(symbolic, lambda values: self._kind(_paths(values[0] if symbolic else filenames), *how))


class TextLineDataset(_OfFiles):
    """The lines of files."""

    _kind = files.TextLineDataset


class TFRecordDataset(_OfFiles):
    """The records of files."""

    _kind = files.TFRecordDataset


def _paths(names: Any) -> Any:
    """Names of files as texts: one, or a list."""
    held = names.tolist() if isinstance(names, np.ndarray) else names
    if isinstance(held, (list, tuple)):
        return [os.fsdecode(x) for x in held]
    return os.fsdecode(held)


def _array_of(leaf: TensorLike) -> Any:
    """A part of an element as sessions hold it: of texts the bytes."""
    return encoded(leaf) if is_text(leaf) else np.asarray(leaf)


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
                return [_array_of(leaf) for leaf in pytree.flatten(next(self.elements))[0]]
        except StopIteration:
            raise OutOfRangeError("iterator", "End of sequence") from None

    def close(self) -> None:
        close = getattr(self.elements, "close", None)
        self.elements = None
        if close is not None:
            close()


class Iterator:
    """Elements of data sets, one at each run of what depends on ``get_next()``."""

    def __init__(self, spec: object, dataset: Dataset | None = None, ready: bool = False) -> None:
        self._leaves, self._structure = pytree.flatten(spec)
        self._ready = dataset if ready else None
        self._handle: Tensor | None = None  # says which other one it stands for
        self.name = default_graph().unique_name("Iterator")
        self._initializer = None if dataset is None or ready else self.make_initializer(dataset)

    @staticmethod
    def from_structure(
        output_types: object, output_shapes: object = None, shared_name: object = None, output_classes: object = None
    ) -> Iterator:
        """An iterator for several data sets, which ``make_initializer`` begins."""
        types, structure = pytree.flatten(output_types)
        shapes = (
            [None] * len(types) if output_shapes is None else pytree.flatten_up_to(structure, output_shapes, "shapes")
        )
        component_shapes = [
            x[1] if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], str) else x for x in shapes
        ]
        return Iterator(
            pytree.unflatten(
                structure, [Info(None if s is None else tuple(s), kind_of(t)) for t, s in zip(types, component_shapes)]
            )
        )

    @property
    def initializer(self) -> Operation:
        if self._initializer is None:
            raise ValueError("This iterator has no initializer: it is ready, or made by make_initializer(dataset).")
        return self._initializer

    @property
    def output_types(self) -> Any:
        return pytree.unflatten(self._structure, [kind_of(leaf.dtype) for leaf in self._leaves])

    @property
    def output_shapes(self) -> Any:
        return pytree.unflatten(self._structure, [_shape_of(leaf) for leaf in self._leaves])

    def string_handle(self, name: str | None = None) -> Tensor:
        """What is fed to an iterator of ``from_string_handle`` for it to give this one's elements."""

        def compute(state: State, values: Sequence[Any]) -> list[Any]:
            state.resource(("iterator", self.name), lambda: self._state_in(state))
            return [self.name.encode()]

        op = default_graph().add("IteratorToStringHandle", name, [], [Info((), STRING)], compute)
        op.on_host = True
        return op.outputs[0]

    @staticmethod
    def from_string_handle(
        string_handle: ArrayLike, output_types: object, output_shapes: object = None, output_classes: object = None
    ) -> Iterator:
        """An iterator that stands for the one whose ``string_handle`` is fed."""
        result = Iterator.from_structure(output_types, output_shapes)
        result._handle = convert_to_tensor(string_handle)
        return result

    def _state_in(self, state: Any) -> _Begun:
        def begin() -> _Begun:
            begun = _Begun()
            if self._ready is not None:
                begun.begin(self._ready._make([]))
            return begun

        result: _Begun = state.resource(self, begin)
        return result

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """The operation that lets it begin with the first element of a data set."""

        def compute(state: object, values: Sequence[Any]) -> list[Any]:
            self._state_in(state).begin(dataset._make([np.array(v) for v in values]))
            return []

        op = default_graph().add("MakeIterator", name or "MakeIterator", dataset._inputs, [], compute)
        op.on_host = True
        return op

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors of the graph.  Running it raises OutOfRangeError at the end."""
        infos = [
            Info(
                None if leaf.shape is None else tuple([x if isinstance(x, int) else None for x in leaf.shape]),
                kind_of(leaf.dtype),
            )
            for leaf in self._leaves
        ]

        def compute(state: State, values: Sequence[Any]) -> list[Any]:
            if self._handle is None:
                return self._state_in(state).next(self.name)
            handle = values[0].item() if isinstance(values[0], np.ndarray) else values[0]
            name = handle.decode() if isinstance(handle, bytes) else str(handle)
            iterator: _Begun = state.resource(("iterator", name), lambda: _unknown(name))
            return iterator.next(name)

        inputs = [] if self._handle is None else [self._handle]
        op = default_graph().add("IteratorGetNext", name or "IteratorGetNext", inputs, infos, compute)
        op.on_host = True
        return pytree.unflatten(self._structure, op.outputs)


def _unknown(name: str) -> _Begun:
    raise InvalidArgumentError("iterator", f"{name!r} is no handle of an iterator: fetch its string_handle() first.")


def _shape_of(leaf: Any) -> TensorShape:
    return TensorShape(None if leaf.shape is None else [x if isinstance(x, int) else None for x in leaf.shape])


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The dtypes of elements, in their structure."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The shapes of elements, in their structure."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Tensors, in the structure of elements."""
    leaves, structure = pytree.flatten(dataset_or_iterator.output_types)
    return pytree.unflatten(structure, [Tensor for _ in leaves])


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    if dataset._inputs:
        raise ValueError("a one-shot iterator takes no tensors that are fed: use make_initializable_iterator.")
    return Iterator(dataset.spec(), dataset, ready=True)


def make_initializable_iterator(dataset: Dataset, shared_name: object = None) -> Iterator:
    return Iterator(dataset.spec(), dataset)


NAMES = {
    "Dataset": Dataset, "TextLineDataset": TextLineDataset, "Iterator": Iterator,
    "make_one_shot_iterator": make_one_shot_iterator, "make_initializable_iterator": make_initializable_iterator,
    "AUTOTUNE": -1, "get_output_types": get_output_types, "get_output_shapes": get_output_shapes,
    "get_output_classes": get_output_classes, "TFRecordDataset": TFRecordDataset,
}  # fmt: skip
