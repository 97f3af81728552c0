"""Datasets: order and content against plain Python, errors, threads, state, wrong use."""

from __future__ import annotations

import copy
import doctest
import gc
import inspect
import pickle
import queue
import random
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hybridflow as hf
from hybridflow import errors
from hybridflow.data import AUTOTUNE, Dataset, threads
from hybridflow.data.batch import Batch
from hybridflow.data.pipeline import OneSource, PipelineIterator, Positions, Table, TableNode

INFINITE, UNKNOWN = hf.data.INFINITE_CARDINALITY, hf.data.UNKNOWN_CARDINALITY


def plain(value: Any) -> Any:
    """An element as Python's numbers and lists."""
    if isinstance(value, hf.Tensor):
        return value.tolist()
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value]


def listed(data: Any) -> list[Any]:
    return [plain(element) for element in data]


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("hybridflow.data")]


@pytest.mark.parametrize("name", [name for name in dir(Dataset) if not name.startswith("_")])
def test_every_method_has_an_example_that_is_true(name: str) -> None:
    text = inspect.getdoc(getattr(Dataset, name)) or ""
    test = doctest.DocTestParser().get_doctest(text, {"hf": hf, "np": np}, name, None, None)
    assert test.examples
    said: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed == 0, "".join(said)


# Random pipelines against lists


def chunks(some: list[Any], size: int) -> list[list[Any]]:
    return [some[k : k + size] for k in range(0, len(some), size)]


def interleaved(groups: list[list[Any]], cycle: int, block: int) -> list[Any]:
    """What TensorFlow documents: ``cycle`` places give a block in turn, and are filled again when empty."""
    waiting, places, out = [list(g) for g in groups], [None] * cycle, []
    turn = 0
    while waiting or any(place is not None for place in places):
        if places[turn] is None and waiting:
            places[turn] = waiting.pop(0)
        place = places[turn]
        if place is not None:
            out += place[:block]
            if len(place) < block:
                places[turn] = None
            else:
                places[turn] = place[block:]
        turn = (turn + 1) % cycle
    return out


Step = tuple[Callable[[Dataset], Dataset], Callable[[list[int]], list[int]]]


def few(x: Any) -> Dataset:
    return Dataset.from_tensors(x).repeat(int(x) % 4)


def _third(x: int) -> int:
    return x % 3


def steps() -> st.SearchStrategy[Step]:
    """A method and what it does to a list; those that batch take apart again."""
    n, some = st.integers(1, 5), st.integers(0, 6)
    calls = st.sampled_from([None, 1, 3, AUTOTUNE])
    return st.one_of(
        some.map(lambda k: (lambda d: d.take(k), lambda xs: xs[:k])),
        some.map(lambda k: (lambda d: d.skip(k), lambda xs: xs[k:])),
        st.integers(0, 3).map(lambda k: (lambda d: d.repeat(k), lambda xs: xs * k)),
        st.tuples(n, n).map(lambda t: (lambda d: d.shard(sum(t), t[0]), lambda xs: xs[t[0] :: sum(t)])),
        calls.map(lambda c: (lambda d: d.map(lambda x: x * 2 + 1, c), lambda xs: [x * 2 + 1 for x in xs])),
        st.just((lambda d: d.filter(lambda x: x % 3 != 0), lambda xs: [x for x in xs if x % 3])),
        st.tuples(n, st.booleans()).map(
            lambda t: (
                lambda d: d.batch(*t).unbatch(),
                lambda xs: [x for part in chunks(xs, t[0]) if len(part) == t[0] or not t[1] for x in part],
            )
        ),
        st.tuples(n, n, n).map(
            lambda t: (
                lambda d: d.window(*t).flat_map(lambda w: w),
                lambda xs: [x for k in range(0, len(xs), t[1]) for x in xs[k : k + (t[0] - 1) * t[2] + 1 : t[2]]],
            )
        ),
        n.map(lambda k: (lambda d: d.concatenate(Dataset.range(k)), lambda xs: xs + list(range(k)))),
        n.map(lambda k: (lambda d: d.prefetch(k), lambda xs: xs)),
        st.just((lambda d: d.cache(), lambda xs: xs)),
        st.just((lambda d: d.shuffle(1), lambda xs: xs)),
        st.just((lambda d: d.unique(), lambda xs: list(dict.fromkeys(xs)))),
        n.map(lambda k: (lambda d: d.batch(k).rebatch([2, 3]).unbatch(), lambda xs: xs)),
        st.just((lambda d: d.group_by_window(lambda x: x % 3, lambda _, w: w, 99), lambda xs: sorted(xs, key=_third))),
        st.just((lambda d: d.enumerate(3).map(hf.add), lambda xs: [k + x for k, x in enumerate(xs, 3)])),
        st.just((lambda d: Dataset.zip(d, d.skip(1)).map(hf.add), lambda xs: list(map(sum, pairwise(xs))))),
        st.just((lambda d: d.scan(0, lambda s, x: (s + x, s + x)), lambda xs: np.cumsum(xs).tolist())),
        st.tuples(n, n, st.sampled_from([None, 2])).map(
            lambda t: (
                lambda d: d.interleave(few, *t),
                lambda xs: interleaved([[x] * (x % 4) for x in xs], t[0], t[1]),
            )
        ),
    )


@settings(max_examples=40)
@given(st.integers(0, 12), st.lists(steps(), max_size=4), st.integers(0, 12))
def test_random_pipelines_equal_lists(length: int, pipeline: list[Step], pause: int) -> None:
    """In order and content, twice over, as counted in advance, and after saving and restoring in the middle."""
    data, wanted = Dataset.range(length), list(range(length))
    for method, meaning in pipeline:
        data, wanted = method(data), meaning(wanted)
    assert listed(data) == wanted
    assert listed(data) == wanted
    assert data.cardinality() in (len(wanted), UNKNOWN)
    running = iter(data)
    begun = listed(islice(running, pause))
    state = running.state()
    assert begun + listed(running) == wanted
    assert listed(iter(data).restore(state)) == wanted[pause:]
    assert not workers()


@settings(max_examples=25)
@given(st.integers(0, 20), st.integers(1, 25), st.integers(1, 6), st.integers(0, 3))
def test_shuffles_are_permutations(length: int, size: int, batch: int, seed: int) -> None:
    """The same for rows that are gathered and for elements that are made first, none too early."""
    rows = Dataset.range(length).shuffle(size, seed)
    made = Dataset.range(length).map(lambda x: x).shuffle(size, seed)
    first = listed(rows)
    assert sorted(first) == list(range(length))
    assert first == listed(made)
    assert all(value < place + size for place, value in enumerate(first))
    second = [x for part in listed(rows.batch(batch)) for x in part]
    assert second == listed(made)
    assert sorted(second) == list(range(length))


@pytest.mark.parametrize("size", [1, 3, 700, 2999, 5000])
def test_blocks_of_shuffled_rows_are_as_one_by_one(size: int) -> None:
    """Runs that are longer than a block, interrupted within blocks, have the order of elements that are made."""
    rows = Dataset.range(3000).shuffle(size, 5)
    wanted = listed(Dataset.range(3000).map(lambda x: x).shuffle(size, 5))
    running = iter(rows)
    begun = listed(islice(running, 1500))
    assert begun == wanted[:1500]
    state = running.state()
    assert listed(running) == wanted[1500:]
    assert listed(iter(rows).restore(state)) == wanted[1500:]
    later = iter(rows).restore(state)
    listed(islice(later, 1))
    assert listed(iter(rows).restore(later.state())) == wanted[1501:]


def test_shuffles_follow_their_seeds() -> None:
    def orders(**options: Any) -> list[list[int]]:
        data = Dataset.range(50).shuffle(50, **options)
        return [listed(data), listed(data), listed(data.repeat(2))]

    a, b = orders(seed=3), orders(seed=3)
    assert a == b
    assert a[0] != a[1]  # each iteration anew
    assert a[2][:50] != a[2][50:]
    assert orders(seed=4)[0] != a[0]
    assert orders(seed=-4)[0] != orders(seed=4)[0]
    fixed = orders(seed=3, reshuffle_each_iteration=False)
    assert fixed[0] == fixed[1] == fixed[2][:50] == fixed[2][50:]
    hf.random.set_seed(1)
    first = orders()
    hf.random.set_seed(1)
    assert orders() == first
    assert orders() != first


def test_shuffles_are_fair() -> None:
    """Each of six elements comes first about as often as the others."""
    data = Dataset.range(6).shuffle(6, seed=0)
    count = np.bincount([listed(data.take(1))[0] for _ in range(1200)], minlength=6)
    assert count.min() > 140


def test_saved_shuffles_go_on() -> None:
    for data in (
        Dataset.range(30).shuffle(10).repeat(2).batch(4),
        Dataset.range(30).map(lambda x: x + 1).shuffle(10).repeat().prefetch(3).take(50),
        Dataset.sample_from_datasets([Dataset.range(20), Dataset.range(50, 90)], [1, 3]).batch(3),
        Dataset.range(30).shuffle(30).cache().map(lambda x: x * 2, 3).repeat(2),
    ):
        for pause in (0, 1, 5, 8):
            running = iter(data)
            listed(islice(running, pause))
            state = running.state()
            state = running.state()  # asking changes nothing
            rest = listed(running)
            again = iter(data).restore(state)
            assert listed(again) == rest


# Sources


def test_slices_keep_their_structure() -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4)
    data = Dataset.from_tensor_slices({"image": x, "more": (y, [True, False, True, False])})
    assert data.element_spec == {
        "image": hf.TensorSpec((3,), "float32"),
        "more": (hf.TensorSpec((), "int64"), hf.TensorSpec((), "bool")),
    }
    (batch,) = data.batch(4)
    assert plain(batch) == {"image": x.tolist(), "more": (y.tolist(), [True, False, True, False])}
    assert plain(next(iter(data))) == {"image": [0.0, 1.0, 2.0], "more": (0, True)}
    assert batch["image"].dtype == hf.float32


def test_slices_are_views_of_one_copy() -> None:
    """What the caller does to the array afterwards is not seen, and batches in order copy nothing."""
    x = np.arange(8.0)
    data = Dataset.from_tensor_slices(x)
    x[:] = -1
    first, second = data.batch(4)
    assert plain(first) == [0, 1, 2, 3]
    assert first.numpy().base is second.numpy().base or np.shares_memory(
        first.numpy(), next(iter(data.batch(8))).numpy()
    )
    locked = np.arange(8.0)
    locked.flags.writeable = False
    assert np.shares_memory(next(iter(Dataset.from_tensor_slices(locked).batch(3))).numpy(), locked)


def test_memory_maps_are_read_as_needed(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", np.arange(10))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    data = Dataset.from_tensor_slices(mapped)
    assert listed(data.batch(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert np.shares_memory(next(iter(data.batch(3))).numpy(), mapped)


def test_assigned_items_stay_in_the_loop() -> None:
    for data in (Dataset.range(3).cache(), Dataset.from_tensors(0).repeat(3), Dataset.from_tensor_slices([0, 1, 2])):
        wanted = listed(data)
        for element in data:
            element[...] = 7
        assert listed(data) == wanted


def test_generators() -> None:
    spec = (hf.TensorSpec((None,), "float32"), hf.TensorSpec((), "int64"))

    def pairs(count: int) -> Iterator[Any]:
        for k in range(count):
            yield [k] * k, k

    data = Dataset.from_generator(pairs, args=(3,), output_signature=spec)
    assert data.element_spec == spec
    assert listed(data) == listed(data) == [([], 0), ([1.0], 1), ([2.0, 2.0], 2)]
    assert data.cardinality() == UNKNOWN
    old = Dataset.from_generator(pairs, (hf.float32, hf.int64), ((None,), ()), args=[2])
    assert listed(old) == [([], 0), ([1.0], 1)]


class Squares(Dataset):
    """A dataset of a user's, without a call of the constructor of its base."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        for k in range(self.count):
            yield hf.asarray(k * k)

    def __len__(self) -> int:
        return self.count


def test_subclasses() -> None:
    data = Squares(5)
    assert listed(data) == [0, 1, 4, 9, 16]
    assert listed(data.batch(2).prefetch(1)) == [[0, 1], [4, 9], [16]]
    assert len(data.batch(2)) == 3
    assert data.element_spec == hf.TensorSpec((), "int64")

    class Artificial(Dataset):
        def __new__(cls, count: int = 3) -> Any:
            return Dataset.from_generator(
                lambda n: ((k,) for k in range(n)),
                output_signature=(hf.TensorSpec((), "int64"),),
                args=(count,),
            )

    assert listed(Artificial().prefetch(1)) == [(0,), (1,), (2,)]
    with pytest.raises(errors.ArgumentError, match="defines __iter__"):
        iter(type("Empty", (Dataset,), {})())


@pytest.mark.parametrize(
    "empty",
    [
        Dataset.range(0),
        Dataset.from_tensor_slices(np.zeros((0, 3))),
        Dataset.from_generator(lambda: iter(())),
        Dataset.range(3).take(0),
        Dataset.range(3).skip(-1),
        Dataset.range(3).filter(lambda x: False),
    ],
)
def test_empty_datasets(empty: Dataset) -> None:
    assert listed(empty) == []
    for data in (
        empty.batch(3),
        empty.map(lambda x: x, 2),
        empty.shuffle(3),
        empty.repeat(),
        empty.cache().repeat(2),
        empty.prefetch(2),
        empty.window(2),
        empty.padded_batch(2),
        empty.interleave(Dataset.from_tensors),
        Dataset.zip(empty, Dataset.range(3)),
        Dataset.sample_from_datasets([empty, empty]),
    ):
        assert listed(data) == []
    assert empty.reduce(5, lambda s, x: s + 1).item() == 5


# Together and apart


def test_batches_have_stable_specs() -> None:
    data = Dataset.from_tensor_slices((np.ones((10, 3), np.float32), np.arange(10)))
    assert data.batch(4).element_spec == (hf.TensorSpec((None, 3), "float32"), hf.TensorSpec((None,), "int64"))
    assert data.batch(4, drop_remainder=True).element_spec[0] == hf.TensorSpec((4, 3), "float32")
    assert data.repeat().batch(4).element_spec[0] == hf.TensorSpec((4, 3), "float32")
    made = data.batch(4).map(lambda x, y: (x * 2, hf.sum(y)))
    assert made.element_spec == (hf.TensorSpec((None, 3), "float32"), hf.TensorSpec((), "int64"))


def test_compiled_functions_are_traced_once() -> None:
    @hf.function
    def double(x: Any) -> Any:
        return x * 2

    data = Dataset.from_tensor_slices(np.arange(12, dtype=np.float32).reshape(12, 1)).batch(4)
    assert listed(data.map(double)) == (np.arange(12).reshape(3, 4, 1) * 2).tolist()
    assert listed(data.map(double, 2)) == (np.arange(12).reshape(3, 4, 1) * 2).tolist()
    assert len(double.traces() if callable(getattr(double, "traces", None)) else [0]) == 1


def test_padding() -> None:
    data = Dataset.range(1, 4).map(lambda n: (hf.ones((int(n), 2)), n))
    (batch,) = data.padded_batch(3, padding_values=(-1.0, None))
    assert batch[0].shape == (3, 3, 2)
    assert plain(batch)[0][0] == [[1, 1], [-1, -1], [-1, -1]]
    assert plain(batch[1]) == [1, 2, 3]
    fixed = data.padded_batch(2, padded_shapes=([4, None], []))
    assert [x.shape for x, _ in fixed] == [(2, 4, 2), (1, 4, 2)]
    assert fixed.element_spec[0] == hf.TensorSpec((None, 4, None), "float32")
    named = data.map(lambda x, n: {"x": x, "n": n}).padded_batch(3, {"x": (None, 3), "n": ()})
    assert next(iter(named))["x"].shape == (3, 3, 3)
    with pytest.raises(errors.ShapeError, match="more than"):
        listed(data.padded_batch(3, ([2, 2], [])))


def test_buckets() -> None:
    lengths = [1, 5, 2, 9, 3, 6, 1, 12]
    data = Dataset.from_tensor_slices(lengths).map(lambda n: hf.ones((int(n),)))

    def shapes(**options: Any) -> list[Any]:
        made = data.bucket_by_sequence_length(lambda x: x.shape[0], [3, 7], [2, 2, 2], **options)
        return [x.shape for x in made]

    assert shapes() == [(2, 2), (2, 5), (2, 12), (1, 1), (1, 6)]
    assert shapes(drop_remainder=True) == [(2, 2), (2, 5), (2, 12)]
    with pytest.raises(errors.ArgumentError, match="last boundary"):
        shapes(pad_to_bucket_boundary=True)
    short = data.filter(lambda x: x.shape[0] < 7)
    made = short.bucket_by_sequence_length(len, [3, 7], [2, 2, 2], pad_to_bucket_boundary=True)
    assert [x.shape for x in made] == [(2, 2), (2, 6), (1, 2), (1, 6)]


def test_windows_of_pairs() -> None:
    data = Dataset.zip(Dataset.range(5), Dataset.range(10, 15)).window(2, drop_remainder=True)
    assert [(listed(a), listed(b)) for a, b in data] == [([0, 1], [10, 11]), ([2, 3], [12, 13])]
    assert len(data) == 2


def test_samples() -> None:
    a, b = Dataset.range(200), Dataset.range(1000, 1200)
    data = Dataset.sample_from_datasets([a, b], [0.25, 0.75], seed=1)
    assert listed(data) == listed(data)
    assert sorted(listed(data)) == [*range(200), *range(1000, 1200)]
    assert 20 < sum(x < 1000 for x in listed(data)[:160]) < 60
    assert listed(Dataset.sample_from_datasets([a, b], [1, 0])) == list(range(200))
    mixed = Dataset.sample_from_datasets([a, b], seed=1, rerandomize_each_iteration=True)
    assert listed(mixed) != listed(mixed)


# Errors


def broken(x: Any) -> Any:
    if int(x) == 3:
        raise KeyError("three")  # the line that errors show
    return x


@pytest.mark.parametrize("calls", [None, 1, 3, AUTOTUNE])
@pytest.mark.parametrize("ahead", [0, 2])
def test_errors_of_functions_come_in_order(calls: int | None, ahead: int) -> None:
    """What was before the error comes first; the traceback has the user's line, and where the map was made."""
    running = iter(Dataset.range(6).map(broken, calls).prefetch(ahead))
    assert listed(islice(running, 3)) == [0, 1, 2]
    with pytest.raises(KeyError, match="three") as caught:
        next(running)
    assert "the line that errors show" in "".join(traceback.format_exception(caught.value))
    assert any("Dataset.map of test_data.py" in note for note in caught.value.__notes__)
    assert listed(running) == []
    assert not workers()


@pytest.mark.parametrize("calls", [None, 3])
def test_errors_of_sources_come_in_order(calls: int | None) -> None:
    def failing() -> Iterator[int]:
        yield from (1, 2, 3)
        raise OSError("gone")

    running = iter(Dataset.from_generator(failing).map(lambda x: x * 2, calls).prefetch(2))
    assert listed(islice(running, 3)) == [2, 4, 6]
    with pytest.raises(OSError, match="gone"):
        next(running)


def test_errors_of_other_functions() -> None:
    for data in (
        Dataset.range(5).filter(broken),
        Dataset.range(5).scan(0, lambda s, x: (s, broken(x))),
        Dataset.range(5).flat_map(lambda x: Dataset.from_tensors(broken(x))),
        Dataset.range(5).flat_map(lambda x: Dataset.from_tensors(x).map(broken)).prefetch(1),
        Dataset.range(5).interleave(lambda x: Dataset.from_tensors(x).map(broken), 2, 1, 2),
    ):
        with pytest.raises(KeyError, match="three"):
            listed(data)
        assert not workers()


def test_an_end_of_iteration_is_no_end() -> None:
    def stops(x: Any) -> Any:
        raise StopIteration

    for calls in (None, 2):
        with pytest.raises(RuntimeError):
            listed(Dataset.range(3).map(stops, calls))


def test_generators_that_change() -> None:
    spec = (hf.TensorSpec((2,), "float32"), hf.TensorSpec((), "int64"))

    def run(*values: Any) -> Any:
        return listed(Dataset.from_generator(lambda: iter(values), output_signature=spec))

    assert run(([1, 2], 3)) == [([1.0, 2.0], 3)]
    for value in (([1, 2, 3], 3), [1, 2], ([1, 2],), ([1, 2], 3, 4), 5, (hf.ones(2, dtype="float64"), 3)):
        with pytest.raises(errors.ShapeError, match="output_signature"):
            run(([1, 2], 3), value)
    with pytest.raises(errors.ShapeError, match=r"is f32\[3\] where output_signature says f32\[2\]") as caught:
        run(([1, 2], 3), ([1, 2, 3], 3))
    assert caught.value.__notes__ == ["[Dataset.from_generator] It is element 1, counted from 0."]
    with pytest.raises(errors.ShapeError, match=r"\(1,\) and, element 2 of the batch, \(2,\)"):
        listed(Dataset.from_generator(lambda: iter([[1], [2], [1, 2]])).batch(3))
    changing = [1, (1, 2)], [(1, 2), (1, 2, 3)], [[1], [1, 2]], [1, 1.5]
    for values in changing:
        with pytest.raises(errors.ShapeError, match="differ in"):
            listed(Dataset.from_generator(lambda values=values: iter(values)).batch(2))
    with pytest.raises(errors.ArgumentTypeError, match="None"):
        listed(Dataset.range(3).map(lambda x: None))


WRONG = [
    (lambda d: d.batch(0), "batch_size is 0"),
    (lambda d: Dataset.range(0, 5, 0), "the step is 0"),
    (lambda d: d.batch(2.5), "batch_size is 2.5"),
    (lambda d: d.shuffle(0), "buffer_size is 0"),
    (lambda d: d.repeat().shuffle(None), "buffer_size must be given"),
    (lambda d: d.shard(3, 3), "less than num_shards"),
    (lambda d: d.map(3), "cannot be called"),
    (lambda d: d.map(len, num_parallel_calls=0), "num_parallel_calls is 0"),
    (lambda d: d.prefetch(-2), "buffer_size is -2"),
    (lambda d: d.concatenate([1]), "list is no Dataset"),
    (lambda d: d.apply(lambda x: 3), "int is no Dataset"),
    (lambda d: d.window(2, stride=0), "stride is 0"),
    (lambda d: listed(d.flat_map(lambda x: x)), "Tensor is no Dataset"),
    (lambda d: listed(d.batch(2).map(lambda x: (x, d)).batch(2)), "cannot be put into a batch"),
    (lambda d: listed(d.unbatch()), "no batch"),
    (lambda d: d.bucket_by_sequence_length(len, [4, 2], [1, 1, 1]), "must rise"),
    (lambda d: Dataset.zip(), "no dataset"),
    (lambda d: Dataset.from_tensor_slices(3), "no axis"),
    (lambda d: Dataset.from_tensor_slices(()), "nothing to slice"),
    (lambda d: Dataset.from_tensor_slices(([1, 2], [1])), r"tensors\[1\] has 1 rows"),
    (lambda d: Dataset.from_generator([1, 2]), "cannot be called"),
    (lambda d: listed(Dataset.from_generator(lambda: 3)), "returned int, which is no iterable"),
    (lambda d: Dataset.from_generator(list, output_signature=(3,)), "use hf.TensorSpec"),
    (lambda d: Dataset.sample_from_datasets([d, d], [1]), "2 numbers"),
    (lambda d: Dataset.sample_from_datasets([]), "no dataset"),
    (lambda d: d.concatenate(Dataset.from_tensors((1, 2))).element_spec, "other elements"),
    (lambda d: len(d.repeat()), "infinitely many"),
    (lambda d: len(d.filter(lambda x: True)), "nobody knows"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_use(number: int) -> None:
    use, text = WRONG[number]
    with pytest.raises(errors.HybridflowError, match=text):
        use(Dataset.range(4))


def test_not_inside_of_compiled_functions() -> None:
    data = Dataset.range(3)
    running = iter(data)
    for use in (lambda: list(data), lambda: list(running), lambda: data.reduce(0, lambda s, x: s + x)):
        with pytest.raises(errors.TraceError, match="outside of compiled functions"):
            hf.function(lambda x, use=use: x + use()[0])(hf.ones(1))


# Threads


def test_no_thread_is_left_behind() -> None:
    def pipeline() -> Any:
        data = Dataset.range(1000).map(lambda x: x + 1, 3).prefetch(2)
        return iter(data.interleave(lambda x: Dataset.from_tensors(x).repeat(3), 2, 1, 2).prefetch(1))

    ways: list[Callable[[Any], None]] = [lambda it: it.close(), lambda it: None]
    for way in ways:
        running = pipeline()
        next(running)
        assert workers()
        way(running)
        del running
        assert not workers()
    running = pipeline()
    assert not workers()  # they start with the first element
    for _ in running:
        break
    del running
    assert not workers()
    held = [pipeline()]
    next(held[0])
    held.append(held)  # a circle
    del held
    gc.collect()
    assert not workers()


def test_slow_elements_keep_their_place() -> None:
    """The second call is over before the first, and its element comes second all the same."""
    second = threading.Event()

    def work(x: Any) -> Any:
        if int(x) == 0:
            assert second.wait(60)
        if int(x) == 1:
            second.set()
        return x

    assert listed(Dataset.range(8).map(work, 2)) == list(range(8))


def test_slow_elements_come_later_where_order_does_not_matter() -> None:
    another_came = threading.Event()

    def work(x: Any) -> Any:
        if int(x) == 0:
            assert another_came.wait(60)
        return x

    running = iter(Dataset.range(8).map(work, 2, deterministic=False))
    first = plain(next(running))
    another_came.set()
    assert first != 0
    assert sorted([first, *listed(running)]) == list(range(8))


def test_prefetching_goes_on_while_the_caller_works() -> None:
    made = [threading.Event() for _ in range(6)]

    def work(x: Any) -> Any:
        made[int(x)].set()
        return x

    running = iter(Dataset.range(6).map(work).prefetch(2))
    assert plain(next(running)) == 0
    assert made[2].wait(60)  # nobody asked for it yet
    assert not made[4].is_set()
    assert listed(running) == [1, 2, 3, 4, 5]


def _mixed(k: int, order: list[int]) -> Dataset:
    """Shuffled numbers, with what only changes the order around them."""
    steps: list[Callable[[Dataset], Dataset]] = [
        lambda d: d.shuffle(k + 1, seed=k),
        lambda d: d.repeat(2),
        lambda d: d.take(20),
        lambda d: d.skip(2),
        lambda d: d.cache(),
    ]
    data = Dataset.range(13)
    for place in order:
        data = steps[place](data)
    return data


@settings(max_examples=60)
@given(st.integers(0, 15), st.permutations(range(5)), st.integers(1, 30), st.integers(0, 8), st.booleans())
def test_many_at_a_time_are_those_of_one_by_one(
    k: int, order: list[int], size: int, pause: int, is_ahead: bool
) -> None:
    """Batches, made with or without a thread, hold what comes without them, as do those after a state was restored."""
    wanted = [chunks(listed(_mixed(k, order)), size) for _ in range(2)]

    def made() -> Dataset:
        data = _mixed(k, order).batch(size)
        return data.prefetch(3) if is_ahead else data

    data, again = made(), made()
    assert [listed(data), listed(_mixed(k, order).batch(size))] == wanted
    running = iter(again)
    begun = [plain(x) for x in islice(running, pause)]
    resumed = iter(made()).restore(running.state())
    assert begun + listed(resumed) == begun + listed(running) == wanted[0]


class _Clock:
    """Seconds as ``threads`` reads them, which go on only where a test says so: no other work of the machine counts."""

    def __init__(self) -> None:
        self.worked = self.waited = 0.0

    def perf_counter(self) -> float:
        return self.worked + self.waited

    def thread_time(self) -> float:
        return self.worked


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(threads, "time", clock)
    return clock


class _Slow(Table):
    """Numbers of rows, of which some wait and some keep the processor busy."""

    length = 60

    def __init__(self, clock: _Clock) -> None:
        self.clock = clock
        self.makers: list[str] = []

    def row(self) -> Any:
        raise NotImplementedError

    def span(self, start: int, stop: int) -> Any:
        self.makers.append(threading.current_thread().name)
        if 20 <= start < 30:
            self.clock.worked += 0.002
        if 40 <= start < 50:
            self.clock.waited += 0.002
        return hf.asarray(np.arange(start, stop))

    def spec(self) -> Any:
        return hf.TensorSpec((), "int64")


def test_elements_that_come_at_once_are_not_handed_over(clock: _Clock) -> None:
    """A thread makes those that take long, be it for work or for waiting, as soon as they do."""
    table = _Slow(clock)
    numbers = threads.Prefetch(Batch(TableNode(table), 1, False), 2)
    assert listed(numbers.runner().run()) == [[k] for k in range(60)]
    assert not workers()
    handed = {k for k, name in enumerate(table.makers) if name.startswith("hybridflow.data")}
    # The first that takes long is seen to.  A thread that waits looks like one with nothing to do: it leaves the rest,
    # but each time twice as late.
    assert handed == {*range(21, 31), 41, 42, *range(45, 49)}


def test_functions_stay_in_their_thread() -> None:
    """What began in the thread of a prefetch may want to go on there, however little time it takes."""
    names = []

    def numbers() -> Iterator[int]:
        for k in range(100):
            names.append(threading.current_thread().name)
            yield k

    assert len(listed(Dataset.from_generator(numbers).batch(2).prefetch(2))) == 50
    assert len(set(names)) == 1
    assert names[0].startswith("hybridflow.data")


def _named(steps: Callable[[Dataset], Dataset]) -> list[str]:
    """The threads in which the function of a map runs that others may follow."""
    names: list[str] = []

    def work(x: Any) -> Any:
        names.append(threading.current_thread().name)
        return x

    data = steps(Dataset.range(400).map(work)).prefetch(2)
    assert listed(data.unbatch()) == list(range(400))
    assert not workers()
    return names


@pytest.mark.parametrize(
    "steps",
    [
        lambda d: d.batch(2),
        lambda d: d.map(lambda x: x + 0).filter(lambda x: True).batch(2),
        lambda d: d.repeat(1).take(1000).batch(2),
        lambda d: d.map(lambda x: x, AUTOTUNE).batch(1).rebatch(2),
    ],
)
def test_brief_calls_are_not_handed_over(clock: _Clock, steps: Callable[[Dataset], Dataset]) -> None:
    """A thread begins, and leaves calls to the thread that asks when many of them took less time than handing over."""
    names = _named(steps)
    assert all(name.startswith("hybridflow.data") for name in names[:16])
    assert sum([not name.startswith("hybridflow.data") for name in names]) > 200


def test_functions_run_in_one_context_wherever_they_run() -> None:
    """What calls of the thread that asks for elements are recorded by, and placed on, is nothing to a prefetch's."""
    setting: ContextVar[int] = ContextVar("setting", default=0)
    v, seen = hf.Variable(3.0), []

    def work(x: Any) -> Any:
        seen.append(setting.get())
        setting.set(seen[-1] + 1)
        return x.astype("float32") * v

    setting.set(1000)
    with hf.GradientTape() as tape:
        total = sum(Dataset.range(200).map(work).prefetch(2), hf.constant(0.0))
    assert seen == list(range(200))
    assert setting.get() == 1000
    assert tape.gradient(total, v) is None


@given(st.lists(st.sampled_from(["f4", "f4", "f4", "f8", ">f4", "()", "(2,3)", "(0,3)"]), min_size=1, max_size=4))
def test_batches_of_what_differs_are_refused(kinds: list[str]) -> None:
    """Only arrays of one shape and one dtype are put together, whatever their first extents add up to."""
    shapes = {"()": (), "(2,3)": (2, 3), "(0,3)": (0, 3)}
    arrays = [np.ones(shapes.get(k, (4, 3)), k if k[-1].isdigit() else "f4") for k in kinds]
    given = iter(arrays)
    data = Dataset.range(len(kinds)).map(lambda x: hf.asarray(next(given))).batch(8)
    if len({(a.shape, a.dtype.newbyteorder("=")) for a in arrays}) == 1:
        assert np.array_equal(next(iter(data)).numpy(), np.stack(arrays))
    else:
        with pytest.raises(errors.ShapeError, match=r"element . of the batch"):
            list(data)


def test_calls_are_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def work(x: Any) -> Any:
        meeting.wait()
        return x

    assert listed(Dataset.range(6).map(work, 3)) == list(range(6))


def test_sources_go_on_while_the_caller_works() -> None:
    gone_on = threading.Event()

    def numbers() -> Iterator[int]:
        yield from range(4)  # as many as two calls have room for
        gone_on.set()
        yield 4

    running = iter(Dataset.from_generator(numbers).map(lambda x: x, 2))
    assert plain(next(running)) == 0
    assert gone_on.wait(60)
    assert listed(running) == [1, 2, 3, 4]


def test_interleaved_datasets_begin_together() -> None:
    together = threading.Barrier(2)

    def numbers(_: Any) -> Iterator[int]:
        together.wait(60)
        yield from range(2)

    data = Dataset.range(4).interleave(
        lambda x: Dataset.from_generator(numbers, args=(x,)), cycle_length=2, num_parallel_calls=2
    )
    assert listed(data) == [0, 0, 1, 1] * 2


@pytest.mark.parametrize("calls", [None, 2])
def test_errors_of_interleaved_datasets_come_in_order(calls: int | None) -> None:
    def make(x: Any) -> Dataset:
        if int(x) == 3:
            raise KeyError("three")
        return Dataset.range(int(x)).map(lambda y: x)

    found: list[int] = []
    with pytest.raises(KeyError, match="three") as caught:
        for x in Dataset.range(1, 9).interleave(make, cycle_length=2, block_length=1, num_parallel_calls=calls):
            found.append(int(x))
    assert found == [1, 2, 2] and any("Dataset.interleave of" in note for note in caught.value.__notes__)

    def broken() -> Iterator[int]:
        yield from (2, 2)
        raise OSError("no more")

    found = []
    with pytest.raises(OSError, match="no more"):
        for x in Dataset.from_generator(broken).interleave(make, cycle_length=2, num_parallel_calls=calls):
            found.append(int(x))
    assert found == [2, 2, 2, 2]
    assert not workers()


def test_automatic_calls_become_parallel() -> None:
    """Slow functions are called by other threads after a while."""
    names = set()

    def work(x: Any) -> Any:
        names.add(threading.current_thread().name)
        threading.Event().wait(0.002)
        return x

    assert listed(Dataset.range(30).map(work, AUTOTUNE)) == list(range(30))
    assert len(names) > 1


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """All calls count as brief, and as quick to come by.  How many elements the tasks of parallel maps had."""
    made: list[int] = []

    class Noted(threads._Task):
        def __init__(self, elements: list[Any], results: list[Any] | None = None) -> None:
            made.append(len(elements))
            super().__init__(elements, results)

    monkeypatch.setattr(threads, "_BRIEF", 1e9)
    monkeypatch.setattr(threads, "_TASK_SECONDS", 1e9)
    monkeypatch.setattr(threads, "_Task", Noted)
    return made


@pytest.mark.parametrize("ordered", [True, False])
def test_elements_of_brief_calls_are_handed_over_together(tasks: list[int], ordered: bool) -> None:
    found = listed(Dataset.range(3000).map(lambda x: x + 1, 2, deterministic=ordered))
    assert (found if ordered else sorted(found)) == list(range(1, 3001))
    assert sum(tasks) == 3000 and max(tasks) == threads._MOST_ELEMENTS and len(tasks) < 400
    assert not workers()


def test_elements_that_come_slowly_wait_for_no_others(tasks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_TASK_SECONDS", -1.0)  # each of them takes longer
    assert listed(Dataset.range(500).map(lambda x: x + 1, 2)) == list(range(1, 501))
    assert max(tasks) == 1


def test_generators_that_wait_for_elements_to_be_given(tasks: list[int]) -> None:
    fed: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    for k in range(10):
        fed.put(k)
    source = Dataset.from_generator(lambda: iter(fed.get, None), output_signature=hf.TensorSpec((), hf.int64))
    given = 0
    for _ in source.map(lambda x: x, 2):
        given += 1
        fed.put(given if given < 500 else None)
    assert given == 509
    assert max(tasks) == 1


def test_tasks_of_several_elements_can_be_saved_at_any_of_them(tasks: list[int]) -> None:
    data = Dataset.range(1500).map(lambda x: x * 2, 2)
    running = iter(data)
    for count in range(1, 1501):
        assert plain(next(running)) == 2 * count - 2
        if count % 97 == 0:
            again = iter(data).restore(running.state())
            assert listed(again) == list(range(2 * count, 3000, 2))
    assert max(tasks) > 1


def test_errors_within_tasks_come_in_order(tasks: list[int]) -> None:
    def work(x: Any) -> Any:
        if int(x) == 1000:
            raise KeyError("thousand")
        return x

    running = iter(Dataset.range(2000).map(work, 3))
    assert listed(islice(running, 1000)) == list(range(1000))
    with pytest.raises(KeyError, match="thousand"):
        next(running)
    assert listed(running) == [] and max(tasks) > 1 and not workers()


def test_tasks_of_large_elements_stay_small(tasks: list[int]) -> None:
    large = np.zeros(threads._TASK_BYTES // 2 - 1, np.uint8)
    data = Dataset.from_tensors(large).repeat(300)
    assert sum(1 for _ in data.map(lambda x: 0, 2)) == 300
    assert max(tasks) == 2


def test_interrupts_end_threads() -> None:
    """Ctrl-C while the caller waits for a thread."""
    blocked, go, main = threading.Event(), threading.Event(), threading.get_ident()

    def work(x: Any) -> Any:
        if int(x) == 2:
            blocked.set()
            go.wait(60)
        return x

    def interrupt() -> None:
        blocked.wait(60)
        while not go.wait(0.05):  # one that comes just before the caller waits does not wake it
            signal.pthread_kill(main, signal.SIGINT)

    def release(*_: Any) -> None:
        if not go.is_set():
            go.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, release)
    helper = threading.Thread(target=interrupt)
    try:
        helper.start()
        listed(Dataset.range(6).map(work).prefetch(1))
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("the interrupt was lost")
    finally:
        helper.join()
        signal.signal(signal.SIGINT, before)
    gc.collect()  # frames that the interrupt went through
    assert not workers()


def test_tapes_see_functions_of_the_calling_thread() -> None:
    v = hf.Variable(3.0)
    with hf.GradientTape() as tape:
        total = Dataset.range(3).map(lambda x: x.astype("float32") * v).reduce(0.0, lambda s, x: s + x)
    assert tape.gradient(total, v).item() == 3.0


# The rest


def shifted(x: Any) -> Any:
    return x + 1


def test_descriptions_are_pickled() -> None:
    data = Dataset.range(20).map(shifted, 2).cache().shuffle(5, seed=1).batch(3).prefetch(2)
    listed(data)
    again = pickle.loads(pickle.dumps(data))
    assert listed(again) == listed(data)
    assert pickle.loads(pickle.dumps(Squares(3))).batch(3).cardinality() == 1


def test_states_are_plain() -> None:
    """Numbers, strings, None, tensors, and lists and dicts of them, so that they can be written to a file."""

    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert all(type(key) is str for key in value)
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for part in value:
                check(part)
        else:
            assert value is None or type(value) in (int, bool, str, hf.Tensor), value

    data = Dataset.range(20).map(shifted, 2).cache().shuffle(5).interleave(few, 2).repeat(2).batch(3).prefetch(2)
    running = iter(data)
    next(running)
    check(running.state())


def test_restoring_wrongly() -> None:
    running = iter(Dataset.range(3))
    state = running.state()
    next(running)
    with pytest.raises(errors.ArgumentError, match="has begun already"):
        running.restore(state)
    with pytest.raises(errors.ArgumentError, match="of another dataset"):
        iter(Dataset.range(3).repeat()).restore(state)


@pytest.mark.parametrize("value", [None, -1, 1.0, True, "3", [], {}])
def test_restoring_what_is_no_count(value: Any) -> None:
    """Numbers in a state stay counts: what is none is refused as it is restored, not where it is used."""
    rows = hf.asarray(np.arange(12.0))
    data = [
        Dataset.from_tensor_slices(rows).shuffle(4, seed=1),
        Dataset.range(12).map(lambda x: x + 1).shuffle(4, seed=1).repeat(2),
        Dataset.random(seed=3).take(5).cache(),
        Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(3)], seed=2),
    ]

    def damaged(state: Any) -> Iterator[Any]:
        """The state with one number of it replaced, for each of them."""
        if type(state) is int and state >= 0:
            yield value
        elif isinstance(state, (dict, list)):
            for key, part in state.items() if isinstance(state, dict) else enumerate(state):
                for other in damaged(part) if key not in ("buffer", "ahead", "kept", "left", "limits") else ():
                    changed = copy.copy(state)
                    changed[key] = other
                    yield changed

    for dataset in data:
        running = iter(dataset)
        next(running), next(running)
        states = list(damaged(running.state()))
        assert states
        for state in states:
            with pytest.raises(errors.ArgumentError, match="or damaged"):
                iter(dataset).restore(state)


def test_lengths() -> None:
    data = Dataset.range(10)
    assert [len(data.batch(3)), len(data.batch(3, True)), len(data.repeat(2)), len(data.skip(20))] == [4, 3, 20, 0]
    assert data.repeat().batch(2).cardinality() == INFINITE
    assert data.repeat().take(7).cardinality() == 7
    assert Dataset.zip(data, data.repeat()).cardinality() == 10
    assert data.enumerate().cardinality() == 10
    found = data.batch(4).cardinality()
    assert (found.dtype, found.shape, found.numpy(), len(range(found)), f"{found}") == ("int64", (), 3, 3, "3")
    assert bool(data.filter(lambda x: True))


def test_caches_are_filled_once() -> None:
    calls = []

    def work(x: Any) -> Any:
        calls.append(int(x))
        return x

    data = Dataset.range(4).map(work).cache()
    listed(data.take(2))
    assert listed(data) == listed(data) == [0, 1, 2, 3]
    assert calls == [0, 1, 0, 1, 2, 3]
    numbers = Dataset.from_generator(lambda: iter([random.random()])).cache()
    assert listed(numbers) == listed(numbers)


def test_numpy_iterators() -> None:
    found = list(Dataset.from_tensor_slices(([[1.0], [2.0]], [3, 4])).as_numpy_iterator())
    assert type(found[0][0]) is np.ndarray and type(found[0][1]) is np.int64
    assert [(x.tolist(), y.item()) for x, y in found] == [([1.0], 3), ([2.0], 4)]


class Interrupted(threading.Thread):
    """Ctrl-C as soon as the thread runs, in the thread that starts it."""

    def start(self) -> None:
        super().start()
        raise KeyboardInterrupt


def test_an_interrupt_while_threads_start_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Dataset.range(1000)
    for dataset in (
        Dataset.from_generator(lambda: iter(range(1000))).prefetch(2),
        numbers.map(lambda x: x, num_parallel_calls=2),
        numbers.map(lambda x: x, num_parallel_calls=2).prefetch(2),
    ):
        elements = iter(dataset)
        with monkeypatch.context() as patch:
            patch.setattr(threading, "Thread", Interrupted)
            with pytest.raises(KeyboardInterrupt):
                next(elements)
        for thread in workers():  # those that nobody could wait for have been told to end
            thread.join(60)
        assert not workers()


class Held(OneSource):
    state_fields = ("kept", "runs")

    def __init__(self) -> None:
        super().__init__(Positions(9))
        self.kept: list[Any] = [[1], (2, [3])]
        self.runs = [Positions(5).runner(), Positions(6).runner()]


def test_runs_declare_their_state() -> None:
    """Fields of a base class come behind; a state stays what it was while runs go on that gave it, or were given it."""
    first, last = Held(), Held()
    assert list(first.state()) == ["kept", "runs", "source"]
    first.runs[1].next_batch()(4)
    state = first.state()
    wanted = {"kept": [[1], (2, [3])], "runs": [{"position": 0}, {"position": 4}], "source": {"position": 0}}
    first.kept[0].append("later")
    first.source.next_batch()(2)
    assert state == wanted
    last.restore(state)
    last.kept[0].append("later")
    assert state == wanted and last.runs[1].next_batch()(9) == [4, 5] and last.source.next_batch()(1) == [0]


@pytest.mark.parametrize(
    "wrong", [{"kept": None}, {"kept": (1,)}, {"runs": [{"position": 0}]}, {"runs": [{}, {}]}, {"source": None}]
)
def test_a_state_of_another_dataset_is_no_state(wrong: dict[str, Any]) -> None:
    state = Held().state() | wrong
    with pytest.raises((TypeError, KeyError)):
        Held().restore(state)
    del state[next(iter(wrong))]
    with pytest.raises(KeyError):
        Held().restore(state)


def test_a_run_that_declares_nothing_has_no_state() -> None:
    """Rather than an empty one, from which it would begin again."""
    with pytest.raises(NotImplementedError, match="PipelineIterator has to declare state_fields"):
        PipelineIterator().state()
    with pytest.raises(NotImplementedError, match="state_fields"):
        PipelineIterator().restore({})
