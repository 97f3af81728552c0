"""The class Dataset: descriptions of elements, and what is made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hybridflow.core import devices, pytree
from hybridflow.core.promotion import to_dtype
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.data import (
    arguments,
    batch,
    counter,
    device_prefetch,
    elements,
    group_by_window,
    map_filter,
    reorder,
    sample_from,
    shuffle,
    snapshot,
    tensor_slices,
)
from hybridflow.data.arguments import matching
from hybridflow.data.file_cache import FileCache
from hybridflow.data.ignore_errors import tolerant
from hybridflow.data.iterator import Iterator, NumpyIterator, in_programs
from hybridflow.data.options import Optioned, Options, of_node as options_of
from hybridflow.data.pipeline import INFINITE, UNKNOWN, Node, TableNode, call_site
from hybridflow.data.processes import ProcessMap
from hybridflow.data.rebatch import Rebatch
from hybridflow.data.strings import TextSpec, array_of
from hybridflow.data.threads import AUTOTUNE, ParallelMap, Prefetch
from hybridflow.errors import ArgumentError, ArgumentTypeError, entered
from hybridflow.jit.tensor_spec import TensorSpec


class Dataset(elements.Nested):
    """A description of elements: nested tensors, one after another.  Iterating over it runs it, each time anew.

    Methods give other datasets, and leave this one as it is.  Functions that elements are passed to get the parts of
    those that are tuples as arguments.  Elements come in a fixed order unless ``deterministic=False`` asks otherwise.
    A subclass may define ``__iter__`` (and ``__len__``, ``element_spec``) itself, and has all methods too.

    >>> data = hf.data.Dataset.from_tensor_slices(([[1.0], [2.0], [3.0]], [0, 1, 0]))
    >>> data = data.map(lambda x, y: (x * 10, y)).shuffle(3, seed=1).batch(2)
    >>> len(data), data.element_spec
    (2, (TensorSpec((None, 1), 'float32'), TensorSpec((None,), 'int64')))
    >>> sorted(x.item() for images, labels in data for x in images)
    [10.0, 20.0, 30.0]
    """

    _made: Node | None = None
    _run = Iterator  # what ``iter`` gives

    @staticmethod
    def _of(node: Node) -> Dataset:
        """The dataset that a node describes, of the class that all methods give, of subclasses, too."""
        result = object.__new__(Dataset)
        result._made = node
        return result

    @property
    def _node(self) -> Node:
        return self._made or _FromIterator(self)

    # Sources

    @classmethod
    @entered
    def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Dataset:
        """The rows of nested arrays, along their first axes.  Lists are arrays; tuples and dicts are structure.

        Arrays that can be written to are copied, once; tensors, locked arrays and read-only memory maps are not.

        Args:
            tensors: arrays, in tuples and dicts, with a first axis of one extent.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ShapeError: where first axes differ, or are missing.

        >>> [x.item() for x in hf.data.Dataset.from_tensor_slices([1, 2, 3])]
        [1, 2, 3]
        """
        return cls._of(TableNode(tensor_slices.rows_of(tensors)))

    @classmethod
    @entered
    def from_tensors(cls, tensors: object, name: str | None = None) -> Dataset:
        """One element.

        Args:
            tensors: arrays, in tuples and dicts.
            name: ignored.

        Returns:
            A dataset of one element.

        >>> len(hf.data.Dataset.from_tensors(hf.ones((3, 2))))
        1
        """
        return cls._of(TableNode(tensor_slices.one_row(tensors)))

    @classmethod
    @entered
    def from_generator(
        cls,
        generator: Callable[..., Iterable[Any]],
        output_types: object = None,
        output_shapes: object = None,
        args: Sequence[Any] | None = None,
        output_signature: object = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements of ``generator(*args)``, which is called for each run.

        Args:
            generator: a function that returns an iterable.
            output_types: nested dtypes, or None.
            output_shapes: nested shapes beside ``output_types``, or None.
            args: arguments of the generator, handed to it as NumPy values.
            output_signature: nested TensorSpecs of an element. Without it, and without ``output_types``, elements are
                what comes.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ShapeError: in a run, for an element that is not of the signature.

        >>> data = hf.data.Dataset.from_generator(lambda n: iter(range(n)), args=(3,))
        >>> [x.item() for x in data.map(lambda x: x * x)]
        [0, 1, 4]
        """
        make = arguments.called("generator", generator, "from_generator")
        arguments_known = tuple([array_of(elements.converted(a, "Dataset.from_generator"))[()] for a in args or ()])
        spec = output_signature
        if spec is None and output_types is not None:
            spec = _signature(output_types, output_shapes)
        if spec is not None and not all(isinstance(s, (TensorSpec, TextSpec)) for s in pytree.flatten(spec)[0]):
            raise ArgumentTypeError("Dataset.from_generator", f"output_signature is {spec!r}; use hf.TensorSpec.")
        return cls._of(map_filter.Generated(partial(make, *arguments_known), spec))

    @classmethod
    @entered
    def range(cls, *args: Any, output_type: object = "int64", name: str | None = None) -> Dataset:
        """The numbers of ``range(*args)``.

        Args:
            *args: ints: stop, or start and stop, or start, stop and step.
            output_type: the dtype of the numbers.
            name: ignored.

        Returns:
            A dataset of scalars.

        Raises:
            ArgumentError: for a step of 0.

        >>> list(hf.data.Dataset.range(1, 10, 4).as_numpy_iterator())
        [np.int64(1), np.int64(5), np.int64(9)]
        """
        bounds = [arguments.integer("an argument", a, "range", None) for a in args]
        if len(bounds) == 3 and not bounds[2]:
            raise ArgumentError("Dataset.range", "the step is 0, so the range does not end.")
        numbers = range(*bounds)
        dtype = to_dtype(output_type, "Dataset.range")
        return cls._of(TableNode(tensor_slices.NumberTable(numbers.start, numbers.step, len(numbers), dtype)))

    @classmethod
    @entered
    def list_files(
        cls, file_pattern: object, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> Dataset:
        """The names of the files that match a pattern, or any of several, as texts.

        Args:
            file_pattern: a pattern with ``*`` and ``?``, or a list of such.
            shuffle: whether names are shuffled, anew in each iteration; else they are sorted. True unless given.
            seed: an int, or None for one drawn from ``hf.random``.
            name: ignored.

        Returns:
            A dataset of texts.

        Raises:
            ArgumentError: where no file matches.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in "ba":
        ...         open(os.path.join(folder, name + ".txt"), "w").close()
        ...     found = hf.data.Dataset.list_files(folder + "/*.txt", shuffle=False)
        >>> [os.path.basename(path) for path in found]
        ['a.txt', 'b.txt']
        """
        paths = matching(file_pattern, "Dataset.list_files")
        data = Dataset.from_tensor_slices(paths)
        return data if shuffle is False else data.shuffle(len(paths), seed)

    @classmethod
    @entered
    def counter(cls, start: int = 0, step: int = 1, dtype: DTypeLike = "int64", name: str | None = None) -> Dataset:
        """The numbers ``start``, ``start + step``, ... without an end.

        Args:
            start: the first number.
            step: what is added each time.
            dtype: the dtype of the numbers.
            name: ignored.

        Returns:
            A dataset of scalars.

        >>> [x.item() for x in hf.data.Dataset.counter(5, 2).take(3)]
        [5, 7, 9]
        """
        first, by = [arguments.integer(*bound, "counter", None) for bound in (("start", start), ("step", step))]
        return cls._of(counter.Counter(first, by, to_dtype(dtype, "Dataset.counter")))

    @classmethod
    @entered
    def random(
        cls, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Random ints of 32 bits, without an end; the same in each iteration unless ``rerandomize_each_iteration``.

        Args:
            seed: an int, or None for one drawn from ``hf.random``.
            rerandomize_each_iteration: whether each iteration has other numbers.
            name: ignored.

        Returns:
            A dataset of int64 scalars.

        >>> data = hf.data.Dataset.random(seed=4).take(3)
        >>> [x.item() for x in data] == [x.item() for x in data]
        True
        """
        return cls._of(counter.RandomNumbers(arguments.seeds(seed, "random"), bool(rerandomize_each_iteration)))

    @classmethod
    @entered
    def zip(cls, *args: Any, datasets: object = None, name: str | None = None) -> Dataset:
        """Elements of several datasets, nested as they are, as long as all of them have some.

        Args:
            *args: datasets, or one nest of datasets.
            datasets: a nest of datasets, in the place of ``args``.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: where there is no dataset.

        >>> a = hf.data.Dataset.range(3)
        >>> [(x.item(), y.item()) for x, y in hf.data.Dataset.zip(a, a.skip(1))]
        [(0, 1), (1, 2)]
        """
        nested = datasets if not args else args[0] if len(args) == 1 else args
        leaves, structure = pytree.flatten(() if nested is None else nested)
        nodes = [_node_of(leaf, "zip") for leaf in leaves]
        if not nodes:
            raise ArgumentError("Dataset.zip", "there is no dataset.")
        table = tensor_slices.zipped([node.rows for node in nodes], structure)
        return cls._of(map_filter.Zip(nodes, structure) if table is None else TableNode(table))

    @classmethod
    @entered
    def sample_from_datasets(
        cls,
        datasets: Sequence[Dataset],
        weights: object = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Each element from one of several datasets, drawn at random.

        Args:
            datasets: datasets with like elements.
            weights: a share for each dataset; equal ones unless given.
            seed: an int, or None for one drawn from ``hf.random``.
            stop_on_empty_dataset: whether it ends where one has no more elements; else it goes on with the others.
            rerandomize_each_iteration: whether each iteration draws anew.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: for weights that are not one for each dataset.

        >>> a, b = hf.data.Dataset.range(3), hf.data.Dataset.range(10, 13)
        >>> sorted(x.item() for x in hf.data.Dataset.sample_from_datasets([a, b], seed=1))
        [0, 1, 2, 10, 11, 12]
        """
        nodes = _nodes(datasets, "sample_from_datasets")
        shares = arguments.shares(weights, len(nodes), "sample_from_datasets")
        nodes = [node for node, share in zip(nodes, shares) if share]  # nothing is ever taken from the others
        seed_ = arguments.seeds(seed, "sample_from_datasets")
        draws = sample_from.Draws([share for share in shares if share], seed_, bool(rerandomize_each_iteration))
        return cls._of(sample_from.Mix(nodes, draws, bool(stop_on_empty_dataset)))

    @classmethod
    @entered
    def choose_from_datasets(
        cls,
        datasets: Sequence[Dataset],
        choice_dataset: Dataset,
        stop_on_empty_dataset: bool = True,
        name: str | None = None,
    ) -> Dataset:
        """Each element from the dataset whose number ``choice_dataset`` gives.

        Args:
            datasets: datasets with like elements.
            choice_dataset: a dataset of numbers of datasets, from 0.
            stop_on_empty_dataset: whether it ends where the chosen one has no more elements.
            name: ignored.

        Returns:
            A dataset.

        >>> a, b = hf.data.Dataset.range(3), hf.data.Dataset.range(10, 13)
        >>> choice = hf.data.Dataset.from_tensor_slices([1, 0, 0])
        >>> [x.item() for x in hf.data.Dataset.choose_from_datasets([a, b], choice)]
        [10, 0, 1]
        """
        nodes, choices = _nodes(datasets, "choose_from_datasets"), _node_of(choice_dataset, "choose_from_datasets")
        return cls._of(sample_from.Mix(nodes, choices, bool(stop_on_empty_dataset)))

    # Functions

    @entered
    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        processes: bool = False,
    ) -> Dataset:
        """What ``map_func`` makes of each element.  It runs as Python does, or compiled where it is an
        ``hf.function``.

        Args:
            map_func: a function of the parts of an element.
            num_parallel_calls: the number of threads that call it; ``AUTOTUNE`` takes threads where calls take long.
            deterministic: whether results come in the order of elements; yes unless False.
            synchronous: whether no threads are used.
            use_unbounded_threadpool: ignored.
            name: ignored.
            processes: whether processes call it in the place of threads: a function of a module, whose elements are
                pickled.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.range(3).map(lambda x: x + 1)]
        [1, 2, 3]
        """
        function = arguments.called("map_func", map_func, "map")
        calls = arguments.calls(AUTOTUNE if processes and num_parallel_calls is None else num_parallel_calls, "map")
        if synchronous and calls is not None:
            raise ArgumentError("Dataset.map", "synchronous=True goes without num_parallel_calls and processes.")
        if calls is None:
            return self._of(map_filter.Map(self._node, function, call_site("map")))
        kind = ProcessMap if processes else ParallelMap
        return self._of(kind(self._node, function, calls, deterministic, call_site("map")))

    @entered
    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements of which ``predicate`` is true.

        Args:
            predicate: a function of the parts of an element that returns a bool.
            name: ignored.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.range(5).filter(lambda x: x % 2 == 0)]
        [0, 2, 4]
        """
        predicate = arguments.called("predicate", predicate, "filter")
        return self._of(map_filter.Filter(self._node, predicate, call_site("filter")))

    @entered
    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """The elements of which the functions of the maps and filters before it do not raise.

        It stands right behind them, or a ``prefetch`` of them.  Errors of what is before these maps, a generator or a
        file, are raised as ever.

        Args:
            log_warning: whether each element that is left out is logged.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: where no map or filter stands before it.

        >>> texts = hf.data.Dataset.from_tensor_slices(["1", "two", "3"])
        >>> [x.item() for x in texts.map(int).ignore_errors()]
        [1, 3]
        """
        return self._of(tolerant(self._node, bool(log_warning)))

    @entered
    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first of which ``predicate`` is false.

        Args:
            predicate: a function of the parts of an element that returns a bool.
            name: ignored.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.range(5).take_while(lambda x: x < 2)]
        [0, 1]
        """
        predicate = arguments.called("predicate", predicate, "take_while")
        return self._of(map_filter.Filter(self._node, predicate, call_site("take_while"), ends=True))

    @entered
    def scan(self, initial_state: object, scan_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Elements that a function makes, from a state that it passes on.

        Args:
            initial_state: tensors, in tuples and dicts.
            scan_func: a function of a state and an element that returns the next state and an element.
            name: ignored.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.range(5).scan(0, lambda total, x: (total + x, total + x))]
        [0, 1, 3, 6, 10]
        """
        function = arguments.called("scan_func", scan_func, "scan")
        initial = elements.converted(initial_state, "Dataset.scan")
        return self._of(map_filter.Scan(self._node, initial, function, call_site("scan")))

    @entered
    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements of the datasets that ``map_func`` makes of elements, one dataset after another.

        Args:
            map_func: a function of the parts of an element that returns a dataset.
            name: ignored.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.range(4).flat_map(hf.data.Dataset.range)]
        [0, 0, 1, 0, 1, 2]
        """
        function = arguments.called("map_func", map_func, "flat_map")
        node_of = partial(_node_of, method="flat_map")
        return self._of(map_filter.Interleave(self._node, function, 1, 1, node_of, call_site("flat_map")))

    @entered
    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Elements of the datasets that ``map_func`` makes of elements, by turns.

        Args:
            map_func: a function of the parts of an element that returns a dataset.
            cycle_length: the number of datasets that take turns.
            block_length: the number of elements in a row from each; 1 unless given.
            num_parallel_calls: whether threads, one each, run these datasets and some that come after them in advance;
                None for no threads.
            deterministic: whether results come in the order of elements; yes unless False.
            name: ignored.

        Returns:
            A dataset.

        >>> data = hf.data.Dataset.range(3).interleave(
        ...     lambda x: hf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=1)
        >>> [x.item() for x in data]
        [0, 1, 0, 1, 0, 1, 2, 2, 2]
        """
        function = arguments.called("map_func", map_func, "interleave")
        calls = arguments.calls(num_parallel_calls, "interleave")
        automatic = cycle_length is None or cycle_length == AUTOTUNE
        cycle = _CYCLE if automatic else arguments.integer("cycle_length", cycle_length, "interleave")
        block = 1 if block_length is None else arguments.integer("block_length", block_length, "interleave")
        node_of = partial(_node_of, method="interleave")
        ahead = 0
        if calls is not None:
            node_of, ahead = partial(_prefetched, max(2, block)), min(cycle, _SPARES)
        return self._of(
            map_filter.Interleave(self._node, function, cycle, block, node_of, call_site("interleave"), ahead)
        )

    @entered
    def reduce(self, initial_state: object, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """The last state, where a function makes the next one of each element.

        Args:
            initial_state: tensors, in tuples and dicts.
            reduce_func: a function of a state and an element that returns the next state.
            name: ignored.

        Returns:
            The state after the last element.

        >>> hf.data.Dataset.range(5).reduce(0, lambda total, x: total + x).item()
        10
        """
        function = arguments.called("reduce_func", reduce_func, "reduce")
        state = elements.converted(initial_state, "Dataset.reduce")
        for element in self:
            state = elements.converted(function(state, element), "Dataset.reduce")
        return state

    @entered
    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What a function makes of this dataset.

        Args:
            transformation_func: a function of a dataset that returns one.

        Returns:
            A dataset.

        Raises:
            ArgumentTypeError: where it returns something else.

        >>> len(hf.data.Dataset.range(5).apply(lambda data: data.batch(2)))
        3
        """
        result = arguments.called("transformation_func", transformation_func, "apply")(self)
        _node_of(result, "apply")
        return result

    @entered
    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: int | None = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements of the datasets that a function makes of windows: elements with the same key.

        What is left at the end comes by rising keys.

        Args:
            key_func: a function of the parts of an element that returns an int.
            reduce_func: a function of a key and a window, a dataset, that returns a dataset.
            window_size: the number of elements of a window.
            window_size_func: a function of a key that returns the number of elements, in the place of ``window_size``.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: unless one of ``window_size`` and ``window_size_func`` is given.

        >>> data = hf.data.Dataset.range(7).group_by_window(
        ...     lambda x: x % 2, lambda key, window: window.batch(3), window_size=3)
        >>> [x.tolist() for x in data]
        [[0, 2, 4], [1, 3, 5], [6]]
        """
        method = "group_by_window"
        if (window_size is None) == (window_size_func is None):
            raise ArgumentError(f"Dataset.{method}", "give window_size or window_size_func.")
        size_of: Callable[..., Any]
        if window_size_func is not None:
            size_of = arguments.called("window_size_func", window_size_func, method)
        else:
            size_of = partial(_always, arguments.integer("window_size", window_size, method))
        key_of = arguments.called("key_func", key_func, method)
        reduce = arguments.called("reduce_func", reduce_func, method)
        node_of = partial(_node_of, method=method)
        return self._of(
            group_by_window.Windows(self._node, key_of, reduce, size_of, self._of, node_of, call_site(method))
        )

    @entered
    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: object = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Pairs of a class and an element, of which some are left out at random, so that classes come as often as is
        asked for.

        Args:
            class_func: a function of the parts of an element that returns an int.
            target_dist: the share of each class.
            initial_dist: the shares that classes have here; by default they are counted on the way.
            seed: an int, or None for one drawn from ``hf.random``.
            name: ignored.

        Returns:
            A dataset of pairs.

        Raises:
            ArgumentError: for shares that are negative or all 0.

        >>> data = hf.data.Dataset.range(1000).rejection_resample(lambda x: x % 4 == 0, [0.5, 0.5], seed=1)
        >>> found = [int(kind) for kind, x in data]
        >>> 0.4 < sum(found) / len(found) < 0.6
        True
        """
        method = "rejection_resample"
        function = arguments.called("class_func", class_func, method)
        target = np.array(arguments.shares(target_dist, np.size(target_dist), method))
        initial = None if initial_dist is None else np.array(arguments.shares(initial_dist, target.size, method))
        seed_ = arguments.seeds(seed, method)
        return self._of(group_by_window.Resampled(self._node, function, target, initial, seed_, call_site(method)))

    @entered
    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """This dataset with ``hf.data.Options``, over those that it has.

        Args:
            options: the options.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentTypeError: for anything but options.

        >>> options = hf.data.Options()
        >>> options.deterministic = False
        >>> data = hf.data.Dataset.range(3).map(lambda x: x + 1, 2).with_options(options)
        >>> sorted(x.item() for x in data)
        [1, 2, 3]
        """
        if not isinstance(options, Options):
            raise ArgumentTypeError("Dataset.with_options", f"{options!r:.60} is no hf.data.Options.")
        return self._of(Optioned(self._node, options))

    @entered
    def options(self) -> Options:
        """The options of this dataset, as ``with_options`` gave them.

        Returns:
            The options.

        >>> hf.data.Dataset.range(3).options() == hf.data.Options()
        True
        """
        return options_of(self._node)

    @entered
    def assert_cardinality(self, expected_cardinality: int) -> Dataset:
        """The same elements, of which there must be so many: a number that ``len`` then gives.

        Args:
            expected_cardinality: the number, which ``len`` then gives.

        Returns:
            A dataset.

        >>> len(hf.data.Dataset.range(9).filter(lambda x: x > 5).assert_cardinality(3))
        3
        """
        count = arguments.integer("expected_cardinality", expected_cardinality, "assert_cardinality", INFINITE)
        return self._of(reorder.Counted(self._node, count))

    @entered
    def get_single_element(self, name: str | None = None) -> Any:
        """The element of a dataset of one.

        Args:
            name: ignored.

        Returns:
            The element.

        Raises:
            ArgumentError: where there is no element, or several.

        >>> hf.data.Dataset.range(4).batch(4).get_single_element().tolist()
        [0, 1, 2, 3]
        """
        first_two = list(self.take(2))
        if len(first_two) != 1:
            raise ArgumentError(
                "Dataset.get_single_element", "there is no element." if not first_two else "there are several elements."
            )
        return first_two[0]

    # Together and apart

    @entered
    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Elements stacked, ``batch_size`` at a time.

        Batches of ``from_tensor_slices`` in order are views, without a copy.

        Args:
            batch_size: the number of elements of a batch, an int.
            drop_remainder: whether a last batch with fewer elements is left out.
            num_parallel_calls: ignored.
            deterministic: ignored.
            name: ignored.

        Returns:
            A dataset of elements with a first axis.

        Raises:
            ShapeError: in a run, for elements of different shapes.

        >>> [x.tolist() for x in hf.data.Dataset.range(5).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        arguments.calls(num_parallel_calls, "batch")
        size = arguments.integer("batch_size", batch_size, "batch")
        return self._of(batch.Batch(self._node, size, bool(drop_remainder)))

    @entered
    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: object = None,
        padding_values: object = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Batches of elements of different extents, filled up at their ends.

        Args:
            batch_size: the number of elements of a batch, an int.
            padded_shapes: nested shapes of elements. None, or an extent of None or -1, means the longest of the batch.
            padding_values: what elements are filled up with; 0 unless given.
            drop_remainder: whether a last batch with fewer elements is left out.
            name: ignored.

        Returns:
            A dataset of elements with a first axis.

        >>> data = hf.data.Dataset.range(1, 4).map(lambda n: hf.ones((int(n),)))
        >>> [x.tolist() for x in data.padded_batch(2)]
        [[[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0, 1.0]]]
        """
        size = arguments.integer("batch_size", batch_size, "padded_batch")
        return self._of(batch.PaddedBatch(self._node, size, padded_shapes, padding_values, bool(drop_remainder)))

    @entered
    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of each element.

        Args:
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ShapeError: for elements without axes.

        >>> len(list(hf.data.Dataset.range(5).batch(2).unbatch()))
        5
        """
        return self._of(batch.Unbatch(self._node))

    @entered
    def rebatch(
        self, batch_size: int | Sequence[int], drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """The rows of batches in batches of another size.

        Args:
            batch_size: the number of rows, or a list of such that take turns.
            drop_remainder: whether a last batch with fewer elements is left out.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: for an empty list.

        >>> data = hf.data.Dataset.range(5).batch(3)
        >>> [x.tolist() for x in data.rebatch(2)], [x.tolist() for x in data.rebatch([1, 3])]
        ([[0, 1], [2, 3], [4]], [[0], [1, 2, 3], [4]])
        """
        batch_sizes = batch_size if isinstance(batch_size, (list, tuple)) else [batch_size]
        sizes = [arguments.integer("batch_size", size, "rebatch") for size in batch_sizes]
        if not sizes:
            raise ArgumentError("Dataset.rebatch", "batch_size is empty.")
        return self._of(Rebatch(self._node, sizes, bool(drop_remainder)))

    @entered
    def ragged_batch(
        self, batch_size: int, drop_remainder: bool = False, row_splits_dtype: object = "int64", name: str | None = None
    ) -> Dataset:
        """Batches of elements whose first extents differ, as ragged tensors; numbers are stacked.

        Args:
            batch_size: the number of elements of a batch, an int.
            drop_remainder: whether a last batch with fewer elements is left out.
            row_splits_dtype: "int64".
            name: ignored.

        Returns:
            A dataset of ragged tensors.

        Raises:
            ArgumentError: for another ``row_splits_dtype``.

        >>> data = hf.data.Dataset.range(1, 4).map(lambda n: hf.ones((int(n),)))
        >>> [x.to_list() for x in data.ragged_batch(2)]
        [[[1.0], [1.0, 1.0]], [[1.0, 1.0, 1.0]]]
        """
        if to_dtype(row_splits_dtype, "Dataset.ragged_batch") != np.int64:
            raise ArgumentError("Dataset.ragged_batch", f"row_splits_dtype is {row_splits_dtype!r}. Expected int64.")
        size = arguments.integer("batch_size", batch_size, "ragged_batch")
        return self._of(batch.RaggedBatch(self._node, size, bool(drop_remainder)))

    @entered
    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Datasets of successive elements.

        Args:
            size: the number of elements of a window.
            shift: how far a window starts after the one before; ``size`` unless given.
            stride: how far the elements of a window are apart.
            drop_remainder: whether windows with fewer elements are left out.
            name: ignored.

        Returns:
            A dataset of datasets.

        >>> [[x.item() for x in part] for part in hf.data.Dataset.range(5).window(3, shift=2)]
        [[0, 1, 2], [2, 3, 4], [4]]
        """
        size = arguments.integer("size", size, "window")
        shift = size if shift is None else arguments.integer("shift", shift, "window")
        stride = arguments.integer("stride", stride, "window")
        return self._of(batch.Window(self._node, size, shift, stride, bool(drop_remainder), self._of))

    @entered
    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: object = None,
        padding_values: object = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Batches of elements of like length: a bucket below each boundary, one for all that are longer.

        What is left at the end comes bucket by bucket.

        Args:
            element_length_func: a function of the parts of an element that returns its length.
            bucket_boundaries: rising lengths, above which the next bucket begins.
            bucket_batch_sizes: the batch size of each bucket, one more than boundaries.
            padded_shapes: see ``padded_batch``.
            padding_values: see ``padded_batch``.
            pad_to_bucket_boundary: whether elements are filled up to the length of their bucket.
            no_padding: whether elements are stacked as they are.
            drop_remainder: whether a last batch with fewer elements is left out.
            name: ignored.

        Returns:
            A dataset of elements with a first axis.

        >>> data = hf.data.Dataset.from_tensor_slices([1, 5, 2, 6]).map(lambda n: hf.ones((int(n),)))
        >>> [x.shape for x in data.bucket_by_sequence_length(len, [4], [2, 2])]
        [(2, 2), (2, 6)]
        """
        method = "bucket_by_sequence_length"
        length_of = arguments.called("element_length_func", element_length_func, method)
        boundaries = [arguments.integer("a boundary", b, method) for b in bucket_boundaries]
        sizes = [arguments.integer("a batch size", s, method) for s in bucket_batch_sizes]
        if len(sizes) != len(boundaries) + 1 or boundaries != sorted({*boundaries}):
            raise ArgumentError(
                f"Dataset.{method}",
                f"there are {len(boundaries)} boundaries, which must rise, and {len(sizes)} batch sizes; there must be "
                "one more of these.",
            )
        together = batch.BucketBatch(
            boundaries, padded_shapes, padding_values, bool(pad_to_bucket_boundary), not no_padding
        )
        spread = partial(_spread, length_of)
        return self._of(batch.Buckets(self._node, spread, boundaries, sizes, together, bool(drop_remainder)))

    # Order

    @entered
    def take(self, count: int, name: str | None = None) -> Dataset:
        """The first ``count`` elements.

        Args:
            count: the number of elements; all of them where it is negative.
            name: ignored.

        Returns:
            A dataset.

        >>> len(hf.data.Dataset.range(5).take(2))
        2
        """
        return self._of(reorder.Take(self._node, arguments.integer("count", count, "take", None)))

    @entered
    def skip(self, count: int, name: str | None = None) -> Dataset:
        """All elements but the first ``count``.

        Args:
            count: the number of elements; nothing is left where it is negative.
            name: ignored.

        Returns:
            A dataset.

        >>> len(hf.data.Dataset.range(5).skip(2))
        3
        """
        return self._of(reorder.Skip(self._node, arguments.integer("count", count, "skip", None)))

    @entered
    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset:
        """Every ``num_shards``-th element, from the ``index``-th on.

        Args:
            num_shards: the number of shards.
            index: the number of this one, from 0.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: for an index that is no shard's.

        >>> [x.item() for x in hf.data.Dataset.range(5).shard(2, 1)]
        [1, 3]
        """
        count, number = (
            arguments.integer("num_shards", num_shards, "shard"),
            arguments.integer("index", index, "shard", 0),
        )
        if number >= count:
            raise ArgumentError("Dataset.shard", f"index is {number}; it must be less than num_shards, {count}.")
        return self._of(reorder.Shard(self._node, count, number))

    @entered
    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset:
        """All elements again and again.

        Args:
            count: how many times; None or a negative number for ever.
            name: ignored.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.range(2).repeat(2)]
        [0, 1, 0, 1]
        """
        times = -1 if count is None else arguments.integer("count", count, "repeat", None)
        return self._of(reorder.Repeat(self._node, times))

    @entered
    def shuffle(
        self,
        buffer_size: int | None,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Elements at random out of a buffer, which is filled up as they come.

        Args:
            buffer_size: the number of elements in the buffer; None for as many as the dataset has, which gives all
                permutations.
            seed: an int. By default it is drawn from ``hf.random``, so that ``hf.random.set_seed`` decides on the
                order too.
            reshuffle_each_iteration: whether each iteration has another order; yes unless False.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: for None where the number of elements is unknown.

        >>> sorted(x.item() for x in hf.data.Dataset.range(4).shuffle(4, seed=1))
        [0, 1, 2, 3]
        """
        known = self._node.cardinality()
        if buffer_size is None and known < 0:
            raise ArgumentError("Dataset.shuffle", "buffer_size must be given where the number of elements is unknown.")
        size = max(1, known) if buffer_size is None else arguments.integer("buffer_size", buffer_size, "shuffle")
        again = reshuffle_each_iteration is not False
        return self._of(shuffle.Shuffle(self._node, size, arguments.seeds(seed, "shuffle"), again))

    @entered
    def unique(self, name: str | None = None) -> Dataset:
        """The elements that no element before them equals.

        Args:
            name: ignored.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 1]).unique()]
        [1, 37, 2]
        """
        return self._of(group_by_window.Unique(self._node))

    @entered
    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """The elements of this dataset, then those of another.

        Args:
            dataset: the other dataset.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ShapeError: where it is known that elements differ.

        >>> [x.item() for x in hf.data.Dataset.range(2).concatenate(hf.data.Dataset.range(1))]
        [0, 1, 0]
        """
        return self._of(reorder.Concatenate([self._node, _node_of(dataset, "concatenate")]))

    @entered
    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """Pairs of a number and an element.

        Args:
            start: the first number.
            name: ignored.

        Returns:
            A dataset of pairs: an int64 scalar and an element.

        >>> [(n.item(), x.item()) for n, x in hf.data.Dataset.range(5, 7).enumerate()]
        [(0, 5), (1, 6)]
        """
        first = arguments.integer("start", start, "enumerate", None)
        return Dataset.zip(Dataset.range(first, first + _MANY), self)

    @entered
    def cache(self, filename: str | os.PathLike[str] = "", name: str | None = None) -> Dataset:
        """Elements that are kept from the first complete iteration on: in memory, or in a file, which later runs of
        the program read too.

        Files hold tensors and texts, in tuples and dicts.  A file is there when it is whole; who changes the pipeline
        deletes it.

        Args:
            filename: the path of a file; empty for memory.
            name: ignored.

        Returns:
            A dataset.

        >>> len(hf.data.Dataset.range(3).cache())
        3
        """
        path = os.fspath(filename)
        return self._of(FileCache(self._node, path) if path else reorder.Cache(self._node))

    @entered
    def save(
        self,
        path: object,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: object = None,
    ) -> None:
        """Write all elements into a folder, in the place of a dataset that it held before; ``Dataset.load`` reads
        them.

        Elements are tensors and texts, in tuples and dicts.

        Args:
            path: the folder, which holds the new elements when all are written.
            compression: None or "GZIP".
            shard_func: a function of the parts of an element that returns the number of its file.
            checkpoint_args: None; what is cut off begins anew.

        Raises:
            OSError: where the disk is full; the folder then holds what it held before.
            ArgumentError: for another ``compression``, or ``checkpoint_args``.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "squares")
        ...     hf.data.Dataset.range(4).map(lambda x: x * x).save(path)
        ...     [x.item() for x in hf.data.Dataset.load(path)]
        [0, 1, 4, 9]
        """
        if checkpoint_args is not None:
            raise ArgumentError("Dataset.save", "checkpoint_args is given; what is cut off begins anew here.")
        snapshot.save(self._node, _writer(path, compression, shard_func, "save"))

    @classmethod
    @entered
    def load(
        cls,
        path: str | os.PathLike[str],
        element_spec: object = None,
        compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None,
    ) -> Dataset:
        """The elements that ``save`` wrote, file after file.  The folder knows their spec and compression.

        Args:
            path: the folder.
            element_spec: the spec that elements must have, or None.
            compression: ignored.
            reader_func: a function of a dataset of the datasets in each file, which returns a dataset; or None.

        Returns:
            A dataset.

        Raises:
            DataError: where the folder is damaged or of a later version.
            FileNotFoundError: where there is none.
            ShapeError: where its elements are not of ``element_spec``.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hf.data.Dataset.range(4).batch(3).save(folder)
        ...     hf.data.Dataset.load(folder).element_spec
        TensorSpec((None,), 'int64')
        """
        node = snapshot.load(os.fspath(path))
        if element_spec is not None and node.described["spec"] is not None:
            elements.common([node.described["spec"], element_spec], "Dataset.load")
        if reader_func is None:
            return cls._of(node)
        parts = [cls._of(snapshot.Saved(node.path, node.described, [file])) for file in node.files]
        read = arguments.called("reader_func", reader_func, "load")
        return cls._of(_node_of(read(cls._of(map_filter.Generated(partial(iter, parts)))), "load"))

    @entered
    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset:
        """These elements, kept in a folder: the first complete iteration writes it as ``save`` does, later ones read
        it.

        Later runs of the program read it too.  Who changes the pipeline deletes the folder.

        Args:
            path: the folder.
            compression: "AUTO", None or "GZIP".
            reader_func: None; it is for ``Dataset.load``.
            shard_func: a function of the parts of an element that returns the number of its file.
            name: ignored.

        Returns:
            A dataset.

        Raises:
            ArgumentError: for a ``reader_func``.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = hf.data.Dataset.range(2).map(lambda x: print("called") or x).snapshot(os.path.join(folder, "s"))
        ...     [x.item() for x in data], [x.item() for x in data]
        called
        called
        ([0, 1], [0, 1])
        """
        if reader_func is not None:
            raise ArgumentError("Dataset.snapshot", "reader_func is for Dataset.load(path, reader_func=...).")
        writer = partial(_writer, path, compression, shard_func, "snapshot")
        return self._of(snapshot.Snapshot(self._node, os.fspath(path), writer))

    @entered
    def prefetch(self, buffer_size: int, name: str | None = None) -> Dataset:
        """The elements, some of which a thread makes in advance.

        Rows that lie in memory, and cheap functions, it leaves to the thread that asks for them where that takes less
        time.  Generators stay in the thread in which they began.

        Args:
            buffer_size: the number of elements, or ``AUTOTUNE``; 0 for none.
            name: ignored.

        Returns:
            A dataset.

        >>> [x.item() for x in hf.data.Dataset.range(3).prefetch(hf.data.AUTOTUNE)]
        [0, 1, 2]
        """
        size = arguments.integer("buffer_size", buffer_size, "prefetch", AUTOTUNE)
        return self._of(Prefetch(self._node, size)) if size else self

    @entered
    def prefetch_to_device(self, device: str, buffer_size: int | None = None) -> Dataset:
        """The elements on a device, some of which a thread makes in advance.

        As many are on their way to a GPU while it works on those before.  It comes last: what follows gets tensors of
        that device.  Texts stay where they are.

        Args:
            device: "cpu", "gpu", or "gpu:1" and so on.
            buffer_size: the number of elements, 2 unless given.

        Returns:
            A dataset.

        Raises:
            DeviceError: where there is no such device.
            DeviceMemoryError: where it has no room for an element.

        >>> [x.item() for x in hf.data.Dataset.range(3).prefetch_to_device("cpu")]
        [0, 1, 2]
        """
        wanted = devices.device(device).name
        size = (
            2 if buffer_size is None else arguments.integer("buffer_size", buffer_size, "prefetch_to_device", AUTOTUNE)
        )
        return self._of(device_prefetch.ToDevice(Prefetch(self._node, size) if size else self._node, wanted, size))

    # Looking at it

    def __iter__(self) -> Iterator:
        return self._run(self._node)

    def _program_iterations(self) -> Any:
        return in_programs().ElementIterations(self._node.spec, lambda: iter(self))

    @entered
    def as_numpy_iterator(self) -> NumpyIterator:
        """An iterator of the elements as NumPy arrays and scalars.

        Returns:
            An iterator.

        >>> list(hf.data.Dataset.range(2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]
        """
        return NumpyIterator(Iterator(self._node))

    @property
    def element_spec(self) -> Any:
        """The elements with a ``hf.TensorSpec`` for each tensor; None stands for extents that may differ.

        Where functions of yours make elements, the first one is made to look at it.

        >>> hf.data.Dataset.range(3).batch(2).element_spec
        TensorSpec((None,), 'int64')
        """
        return self._node.spec()

    @entered
    def cardinality(self) -> Tensor:
        """The number of elements as a tensor; ``len`` gives an int.

        Returns:
            An int64 scalar: the number, ``hf.data.INFINITE_CARDINALITY`` or ``hf.data.UNKNOWN_CARDINALITY``.

        >>> hf.data.Dataset.range(3).cardinality()
        <Tensor i64[] cpu> 3
        >>> int(hf.data.Dataset.range(3).repeat().cardinality()) == hf.data.INFINITE_CARDINALITY
        True
        """
        return wrap(np.array(self._node.cardinality(), np.int64))

    @entered
    def fingerprint(self) -> Tensor:
        """The fingerprint that TensorFlow's pipelines have; functions of Python's have no number that tells them
        apart.

        Returns:
            Nothing.

        Raises:
            ArgumentError: always.

        >>> hf.data.Dataset.range(3).fingerprint()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        hybridflow.errors.ArgumentError: [Dataset.fingerprint] the functions of a pipeline have none. ...
        """
        raise ArgumentError(
            "Dataset.fingerprint", "the functions of a pipeline have none. Name files of elements by a name of yours."
        )

    def __len__(self) -> int:
        result = self._node.cardinality()
        if result == INFINITE:
            raise ArgumentTypeError("len", "the dataset has infinitely many elements.")
        if result == UNKNOWN:
            raise ArgumentTypeError("len", "nobody knows how many elements the dataset has before they are counted.")
        return result

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        length = {INFINITE: "infinite", UNKNOWN: "of unknown length"}.get(cardinality := self._node.cardinality())
        return f"<{type(self).__name__} {length or f'of {cardinality} elements'}>"


_CYCLE = 10  # datasets that take turns where nobody says how many
_SPARES = 2  # datasets that begin before their turn comes
_MANY = 2**62


class _FromIterator(map_filter.Generated):
    """What the ``__iter__`` of a subclass gives."""

    def __init__(self, dataset: Dataset) -> None:
        kind = type(dataset)
        if kind.__iter__ is Dataset.__iter__:
            raise ArgumentError(
                kind.__name__, "a subclass of Dataset defines __iter__; others are made by its methods."
            )
        super().__init__(dataset.__iter__, None, kind.__name__)
        self.dataset = dataset

    def spec(self) -> Any:
        if type(self.dataset).element_spec is not Dataset.element_spec:
            return self.dataset.element_spec
        return super().spec()

    def cardinality(self) -> int:
        return len(self.dataset) if type(self.dataset).__len__ is not Dataset.__len__ else UNKNOWN


def _node_of(value: object, method: str) -> Node:
    """The node of a dataset.  Raises ArgumentTypeError for anything else."""
    if not isinstance(value, Dataset):
        raise ArgumentTypeError(f"Dataset.{method}", f"{type(value).__name__} is no Dataset: {value!r:.60}.")
    return value._node


def _nodes(values: Iterable[Any], method: str) -> list[Node]:
    nodes = [_node_of(value, method) for value in values]
    if not nodes:
        raise ArgumentError(f"Dataset.{method}", "there is no dataset.")
    return nodes


def _writer(path: Any, compression: object, shard_func: object, method: str) -> snapshot.Writer:
    shard_of = None if shard_func is None else arguments.called("shard_func", shard_func, method)
    return snapshot.Writer(os.fspath(path), compression, shard_of, f"Dataset.{method}")


def _prefetched(count: int, value: Dataset) -> Node:
    return Prefetch(_node_of(value, "interleave"), count)


def _always(value: int, key: object) -> int:
    return value


def _spread(function: Callable[..., Any], element: object) -> Any:
    return function(*element) if type(element) is tuple else function(element)


def _signature(types: object, shapes: object) -> Any:
    """The TensorSpecs of nested dtypes, and shapes where they are known."""
    leaves, structure = pytree.flatten(types)
    spec = batch.per_leaf(shapes, structure, batch.is_shape)
    if shapes is None:
        raise ArgumentError("Dataset.from_generator", "output_types needs output_shapes. Better: output_signature.")
    return pytree.unflatten(structure, [TensorSpec(shape, dtype) for shape, dtype in zip(spec, leaves)])
