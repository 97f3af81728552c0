"""What ``fit``, ``evaluate`` and ``predict`` are given, as batches of inputs, labels and weights."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.random import global_generator
from hybridflow.compiler.ops import type_rules
from hybridflow.core import pytree
from hybridflow.core.promotion import refuse_mask
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.data import Dataset
from hybridflow.data.arguments import seeds
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from hybridflow.jit.function import Function
from hybridflow.sparse.formats import SparseBase


class Batch(NamedTuple):
    """Inputs, and labels and weights or None; each an array or nested arrays."""

    x: Any
    y: object = None
    sample_weight: object = None


class Batches:
    """The batches of one pass over the data, whose place may be kept."""

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        raise NotImplementedError

    def close(self) -> None:
        """There are no more."""

    def state(self) -> Any:
        """What comes next, for ``restore`` of a new pass; None where that is not known."""
        return None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""


class Feed:
    """Batches of one epoch after another.

    ``steps`` is how many batches an epoch has, None where that turns out at the end of the first.  ``own_steps`` says
    that the user chose it: then an epoch goes on where the one before ended.
    """

    def __init__(self, make: Callable[[], Batches], steps: int | None, own_steps: bool) -> None:
        self._make, self.steps, self._declared_steps = make, steps, own_steps
        self.is_empty = steps == 0  # which is known before the first epoch
        self._running: Batches | None = None
        self._begun: Batches | None = None  # of which the first batch was looked at
        self._unfinished: Batches | None = None  # of an epoch that goes on and ends with its data
        self.taken = 0  # batches of an epoch that goes on, or is to go on
        self.partial_batch_size = 0  # rows of the last batch, where it is known to have fewer than the others
        self.is_user_iterator = False  # an iterator of the user's, which cannot be begun anew
        self.single_pass = False  # an epoch ends with the data, however many steps it was to have

    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch; of one that was begun before its state was taken, those that are left."""
        try:
            if self._declared_steps:
                yield from self._limit()
                return
            batches, self._begun = self._begun or self._make(), None
            self._unfinished = batches
            try:
                for batch in batches:
                    self.taken += 1
                    yield batch
            finally:
                batches.close()
            self.steps = self.taken
        finally:
            self.taken, self._unfinished = 0, None

    def first(self) -> Batch | None:
        """The first batch of the next epoch, which still begins with it; None if there is none."""
        batches = self._running or self._begun or self._make()
        try:
            batch = next(batches)
        except StopIteration:
            return None
        again = _Again(batch, batches)
        if self._declared_steps:
            self._running = again
        else:
            self._begun = again
        return batch

    def _limit(self) -> Iterator[Batch]:
        begun_anew = False
        while self.taken < (self.steps or 0):
            if self._running is None:
                self._running = self._make()
            try:
                batch = next(self._running)
            except StopIteration:
                self._running = None
                if begun_anew or self.single_pass:
                    return  # there is nothing at all, or no more
                begun_anew = True
                continue
            begun_anew = False
            self.taken += 1
            yield batch

    def restart(self) -> None:
        """Let the next epoch begin with the first batch, where there is one."""
        if not self.is_user_iterator:
            self.close()

    def close(self) -> None:
        """Let go of what is being iterated over; the next epoch begins anew."""
        for batches in (self._running, self._begun):
            if batches is not None:
                batches.close()
        self._running = self._begun = None

    def state_dict(self) -> Any:
        """What comes next, for ``load_state_dict`` of a feed of the same data."""
        batches = self._unfinished or self._running or self._begun or self._make()
        if self._declared_steps:
            self._running = batches
        elif self._unfinished is None:
            self._begun = batches
        return {"batches": batches.state(), "taken": self.taken}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken; where none was, begin anew."""
        self.restart()
        if not isinstance(state, dict):
            return
        self.taken = state.get("taken", 0)
        if state.get("batches") is None:
            return
        batches = self._make()
        batches.restore(state["batches"])
        if self._declared_steps:
            self._running = batches
        else:
            self._begun = batches


class _Again(Batches):
    """Batches the first of which was taken, with that one again."""

    def __init__(self, first: Batch, rest: Batches) -> None:
        self._first: Batch | None = first
        self._rest = rest

    def __next__(self) -> Batch:
        batch, self._first = self._first, None
        return next(self._rest) if batch is None else batch

    def close(self) -> None:
        self._rest.close()

    def state(self) -> Any:
        return self._rest.state() if self._first is None else None


class _Changed(Batches):
    """A function of each batch."""

    def __init__(self, rest: Batches, function: Callable[[Batch], Batch]) -> None:
        self._rest, self._function = rest, function

    def __next__(self) -> Batch:
        return self._function(next(self._rest))

    def close(self) -> None:
        self._rest.close()

    def state(self) -> Any:
        return self._rest.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._rest.restore(state)


def feed(
    method: str,
    x: object,
    y: object = None,
    sample_weight: object = None,
    *,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: bool = False,
    class_weight: Mapping[int, float] | None = None,
    once: bool = False,
) -> Feed:
    """The batches that are meant: of arrays, cut in rows; or those of a dataset, generator, data loader...

    With ``once`` no epoch goes over the data twice, where there are fewer batches than ``steps``.

    Raises ArgumentTypeError for anything else, ShapeError for arrays of unlike lengths.
    """
    if steps is not None:
        steps = at_least(method, "the number of steps", steps)
    if batch_size is not None:
        batch_size = at_least(method, "batch_size", batch_size)
    if class_weight is not None and not isinstance(class_weight, Mapping):
        raise ArgumentTypeError(method, f"class_weight is {class_weight!r}; give a dict of weights by class.")
    x = _with_sparse_rows(x)
    if _is_arrays(x):
        result = _of_arrays(method, Batch(x, y, sample_weight), batch_size or 32, shuffle)
    else:
        result = _of_iterable(method, x, y, sample_weight, batch_size, shuffle)
    if class_weight:
        weigh, batches = class_weight, result._make
        result._make = lambda: _Changed(batches(), lambda batch: _weighted(method, batch, weigh))
    if steps is not None:
        result = Feed(result._make, steps, True)
    result.is_user_iterator, result.single_pass = hasattr(x, "__next__"), once
    return result


def at_least(method: str, name: str, value: object, least: int = 1) -> int:
    """An int of at least so much.  Raises ArgumentTypeError or ArgumentError."""
    result = type_rules.integer(method, name, value)
    if result < least:
        raise ArgumentError(method, f"{name} is {result}; it must be {least} or more.")
    return result


def split_off(method: str, data: Batch, share: float) -> tuple[Batch, Batch]:
    """The rows for training, and the last ones, that ``share`` of all, for validation."""
    if not isinstance(share, numbers.Real) or not 0 < share < 1:
        raise ArgumentError(method, f"validation_split is {share!r}; it must be above 0 and below 1.")
    data = data._replace(x=_with_sparse_rows(data.x))
    if not _is_arrays(data.x):
        raise ArgumentTypeError(method, "validation_split is for arrays; give validation_data.")
    arrays = Batch(*(_as_arrays(part) for part in data))
    count = _length(method, arrays)
    first = int(count * (1 - share))
    if not 0 < first < count:
        raise ArgumentError(method, f"validation_split={share!r} of {count} samples leaves nothing on one side.")
    return Batch(*(_rows(part, slice(first)) for part in arrays)), Batch(
        *(_rows(part, slice(first, None)) for part in arrays)
    )


def parts(batch: object) -> Batch:
    """Inputs, labels and weights of an element: a tuple of one to three of them, or inputs alone."""
    if isinstance(batch, tuple) and not hasattr(batch, "_fields"):
        if 1 <= len(batch) <= 3:
            return Batch(*batch)
        raise ArgumentError("fit", f"an element is a tuple of {len(batch)}; give (x,), (x, y) or (x, y, weights).")
    if batch is None:
        raise ArgumentTypeError("fit", "an element is None; give x, (x,), (x, y) or (x, y, weights).")
    return Batch(batch)


def expect_rest(step: object, source: Feed, batch: Sequence[Any]) -> None:
    """Where the last batch is known to have fewer rows than this one: let the program of a step be for any number of
    rows from the start, so that there is but one."""
    rest, source.partial_batch_size = source.partial_batch_size, 0
    leaves, structure = pytree.flatten([part for part in batch if part is not None])
    if isinstance(step, Function) and all(isinstance(x, (np.ndarray, Tensor)) and x.ndim for x in leaves):
        cut = iter(pytree.unflatten(structure, [leaf[:rest] for leaf in leaves]))
        step.expect(*[None if part is None else next(cut) for part in batch])


def check_alike(method: str, number: int, batch: Batch, before: Batch | None, error: Exception) -> None:
    """Raise ArgumentError, in place of ``error``, for a batch of another structure than the one before it."""
    if before is None:
        return
    structures = [repr(pytree.flatten(tuple(one))[1]) for one in (before, batch)]
    present = [[part is not None for part in one] for one in (before, batch)]
    if structures[0] != structures[1] or present[0] != present[1]:
        described = [", ".join(_described(part) for part in one if part is not None) for one in (before, batch)]
        raise ArgumentError(
            method,
            f"batch {number} is of another structure than those before it: ({described[1]}) after ({described[0]}).",
        ) from error


def _described(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_described(part)}' for key, part in value.items())}}}"
    if isinstance(value, (list, tuple)) and _holds_arrays(value):
        return f"[{', '.join(map(_described, value))}]"
    return f"array{getattr(value, 'shape', '')}" if _is_array(value) else type(value).__name__


# Arrays


class _SparseRows:
    """The rows of a sparse tensor, which are whole arrays in a batch."""

    def __init__(self, tensor: SparseBase) -> None:
        coo = tensor.to_coo()
        at, values = coo.indices.numpy(), coo.values.numpy()
        order = np.argsort(at[:, 0], kind="stable")
        self._at, self._values = at[order], values[order]
        self.shape = tuple([int(extent) for extent in coo.shape])
        self.dtype, self.ndim = self._values.dtype, len(self.shape)
        self._starts = np.searchsorted(self._at[:, 0], np.arange(self.shape[0] + 1))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.take(np.arange(len(self))[rows])

    def take(self, rows: np.ndarray, axis: int = 0) -> np.ndarray:
        """Some rows as an array; values at one place are added up."""
        result = np.zeros((len(rows), *self.shape[1:]), self.dtype)
        for place, row in enumerate(rows):
            part = slice(self._starts[row], self._starts[row + 1])
            np.add.at(result[place], tuple(self._at[part, 1:].T), self._values[part])
        return result


def _with_sparse_rows(value: Any) -> Any:
    """Inputs with the rows of sparse tensors in their place."""
    if isinstance(value, SparseBase):
        return _SparseRows(value)
    if isinstance(value, dict):
        return {key: _with_sparse_rows(part) for key, part in value.items()}
    if type(value) in (list, tuple) and any(isinstance(part, SparseBase) for part in value):
        return type(value)([_with_sparse_rows(part) for part in value])
    return value


def _is_arrays(value: object) -> bool:
    leaves = pytree.flatten(value)[0] if pytree.is_container(value) else [value]
    return bool(leaves) and all(_is_array(leaf) for leaf in leaves)


def _is_array(value: object) -> bool:
    return isinstance(value, (Tensor, Variable, np.ndarray, int, float, _SparseRows)) or (
        hasattr(value, "__array__") and not hasattr(value, "element_spec")
    )


def _as_arrays(value: object) -> np.ndarray | None:
    """The same with NumPy's arrays, which lists of numbers become too; a table of pandas is one."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and value and not _holds_arrays(value):
        return np.asarray(value)
    leaves, structure = pytree.flatten(value)
    return pytree.unflatten(structure, [_array(leaf) for leaf in leaves])


def _holds_arrays(value: object) -> bool:
    leaves = pytree.flatten(value)[0]
    return any(getattr(leaf, "ndim", 0) > 0 for leaf in leaves)


def _array(value: object) -> Any:
    if isinstance(value, _SparseRows):
        return value
    if isinstance(value, (Tensor, Variable)):
        return value.numpy()
    refuse_mask(value, "fit", "an array of samples")
    array = np.asarray(value)
    is_column = array.ndim == 1 and type(value).__name__ == "Series"  # of a table of pandas
    return array[:, None] if is_column else array


def _length(method: str, data: Batch) -> int:
    leaves = pytree.flatten([part for part in data if part is not None])[0]
    if any(leaf.ndim == 0 for leaf in leaves):
        raise ShapeError(method, "a scalar has no rows: inputs, labels and weights are arrays of samples.")
    lengths = {len(leaf) for leaf in leaves}
    if len(lengths) != 1:
        shapes = ", ".join(str(leaf.shape) for leaf in leaves)
        raise ShapeError(method, f"the numbers of samples differ: the arrays have the shapes {shapes}.")
    return lengths.pop()


def _rows(value: object, rows: object) -> Any:
    return _cutter(value)(rows)


def _cutter(value: Any) -> Callable[[Any], Any]:
    """What makes batches of arrays: ``_rows`` for many rows, whose nesting is looked at once."""
    if value is None:
        return lambda rows: None
    leaves, structure = pytree.flatten(value)
    if structure.kind is None:
        return lambda rows: _cut(value, rows)
    return lambda rows: pytree.unflatten(structure, [_cut(leaf, rows) for leaf in leaves])


def _cut(array: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def _of_arrays(method: str, data: Batch, batch_size: int, shuffle: bool) -> Feed:
    arrays = Batch(*(_as_arrays(part) for part in data))
    count = _length(method, arrays)
    if not count and method != "fit":
        raise ArgumentError(method, "there are no samples.")

    cuts = [_cutter(part) for part in arrays]
    result = Feed(lambda: _OfArrays(method, cuts, count, batch_size, shuffle), -(-count // batch_size), False)
    result.partial_batch_size = count % batch_size if count > batch_size else 0
    return result


class _OfArrays(Batches):
    """Rows of arrays, in the order in which they lie or in a random one."""

    def __init__(
        self, method: str, cuts: list[Callable[[Any], Any]], count: int, batch_size: int, shuffle: bool
    ) -> None:
        self._method, self._cuts, self._count, self._batch_size = method, cuts, count, batch_size
        self._shuffle, self._start = shuffle, 0
        self._seed: tuple[int, ...] | None = None
        self._order: np.ndarray | None = None

    def __next__(self) -> Batch:
        start = self._start
        if start >= self._count:
            raise StopIteration
        if self._shuffle and self._order is None:
            self._seed = self._seed or seeds(None, self._method)
            self._order = np.random.default_rng(self._seed).permutation(self._count)
        self._start = stop = start + self._batch_size
        rows = slice(start, stop) if self._order is None else self._order[start:stop]
        return Batch(*[cut(rows) for cut in self._cuts])

    def close(self) -> None:
        self._start = self._count

    def state(self) -> Any:
        return {"start": self._start, "seed": self._seed}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._start, self._seed = state["start"], state["seed"]


# Everything else


def _of_iterable(
    method: str, x: object, y: object, sample_weight: object, batch_size: int | None, shuffle: bool
) -> Feed:
    for name, value in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
        if value is not None:
            raise ArgumentError(method, f"{name} is given beside {_kind(x)}: its elements hold that.")
    if isinstance(x, Dataset):
        count = int(x.cardinality())
        result = Feed(lambda: _OfElements(x, parts, True), count if count >= 0 else None, False)
        result.partial_batch_size = x._node.rest()
        return result
    if hasattr(x, "__getitem__") and hasattr(x, "__len__") and not hasattr(x, "__iter__"):
        return Feed(lambda: _OfElements(_of_sequence(method, x, shuffle), parts, True), len(x), False)
    if not hasattr(x, "__iter__"):
        raise ArgumentTypeError(
            method, f"{_kind(x)} is no data: give arrays, a Dataset, or an iterable of batches (x, y)."
        )
    is_loader = type(x).__module__.partition(".")[0] == "torch"

    def batch_of(element: Any) -> Batch:
        is_split = isinstance(element, list) and len(element) in (2, 3) and _holds_arrays(element)
        return parts(tuple(element) if is_split or (is_loader and isinstance(element, list)) else element)

    return Feed(lambda: _OfElements(x, batch_of, not hasattr(x, "__next__")), _count(x), False)


def _count(data: Any) -> int | None:
    """How many batches there are, None where it is not known: loaders may have a length and raise when it is asked."""
    try:
        return len(data)
    except TypeError:
        return None


class _OfElements(Batches):
    """What is given by data that can be iterated over, each element as a batch; datasets know their place, and others
    are gone through again up to there.

    An iterator of the user's, which does not begin anew (``repeats``), is the user's to close.
    """

    def __init__(self, data: Any, batch_of: Callable[[Any], Batch], repeats: bool) -> None:
        self._data, self._batch_of, self._repeats = data, batch_of, repeats
        self._elements: Any = None  # begun when it is asked for: that may draw random numbers
        self._random: object = None  # where the global generator was then
        self._taken = 0

    def _begin(self) -> Any:
        if self._elements is None:
            if not isinstance(self._data, Dataset):
                self._random = np.array(global_generator().state.numpy())
            self._elements = iter(self._data)
        return self._elements

    def __next__(self) -> Batch:
        element = next(self._begin() if self._elements is None else self._elements)
        self._taken += 1
        return self._batch_of(element)

    def close(self) -> None:
        close = getattr(self._elements, "close", None) if self._elements is not self._data else None
        if close is not None:
            close()

    def state(self) -> Any:
        if isinstance(self._data, Dataset):
            return self._begin().state()
        return {"taken": self._taken, "random": self._random} if self._repeats and self._taken else None

    def restore(self, state: Mapping[str, Any]) -> None:
        if isinstance(self._data, Dataset):
            self._begin().restore(state)
            return
        generator = global_generator().state
        now = np.array(generator.numpy())
        generator.assign(state["random"])
        try:
            for _ in itertools.islice(self, state["taken"]):
                pass
        finally:
            generator.assign(now)


def _of_sequence(method: str, sequence: Any, shuffle: bool) -> Iterator[Any]:
    order = np.arange(len(sequence))
    if shuffle:
        order = np.random.default_rng(seeds(None, method)).permutation(len(sequence))
    for index in order.tolist():
        yield sequence[index]
    if hasattr(sequence, "on_epoch_end"):
        sequence.on_epoch_end()


def _weighted(method: str, batch: Batch, class_weight: Mapping[int, float]) -> Batch:
    labels = _as_arrays(batch.y)
    if not isinstance(labels, np.ndarray):
        raise ArgumentTypeError(method, "class_weight is for labels in one array.")
    if batch.sample_weight is not None:
        raise ArgumentError(method, "class_weight and sample_weight are given; give one of them.")
    if labels.ndim > 1:
        labels = labels.argmax(-1) if labels.shape[-1] > 1 else labels[..., 0]
    numbers, classes = labels.astype(np.int64), [int(number) for number in class_weight]
    if min([0, *classes, int(numbers.min(initial=0))]) < 0:
        raise ArgumentError(method, "class_weight is for classes numbered from 0; there are negative ones.")
    table = np.ones(max([int(numbers.max(initial=0)), *classes]) + 1, np.float32)
    table[classes] = list(class_weight.values())
    return Batch(batch.x, batch.y, table[numbers])


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
