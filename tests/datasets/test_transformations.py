"""Transformations of datasets against models in plain Python: windows by key, batches of batches, caches on disk."""

from __future__ import annotations

import collections
import dataclasses
import errno
import inspect
import pickle
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.data import Dataset, file_cache
from tests.support.dataset_runs import listed, plain, resumed_everywhere

pytestmark = pytest.mark.code

INFINITE = hf.data.INFINITE_CARDINALITY


# TensorFlow's names and defaults, as its documentation gives them; ``name`` comes last
SIGNATURES = {
    "batch": "batch_size drop_remainder=False num_parallel_calls=None deterministic=None",
    "bucket_by_sequence_length": """element_length_func bucket_boundaries bucket_batch_sizes padded_shapes=None
        padding_values=None pad_to_bucket_boundary=False no_padding=False drop_remainder=False""",
    "cache": "filename=''",
    "choose_from_datasets": "datasets choice_dataset stop_on_empty_dataset=True",
    "concatenate": "dataset",
    "counter": "start=0 step=1 dtype='int64'",
    "enumerate": "start=0",
    "filter": "predicate",
    "flat_map": "map_func",
    "from_generator": "generator output_types=None output_shapes=None args=None output_signature=None",
    "from_tensor_slices": "tensors",
    "group_by_window": "key_func reduce_func window_size=None window_size_func=None",
    "interleave": "map_func cycle_length=None block_length=None num_parallel_calls=None deterministic=None",
    "list_files": "file_pattern shuffle=None seed=None",
    "padded_batch": "batch_size padded_shapes=None padding_values=None drop_remainder=False",
    "prefetch": "buffer_size",
    "random": "seed=None rerandomize_each_iteration=None",
    "rebatch": "batch_size drop_remainder=False",
    "reduce": "initial_state reduce_func",
    "rejection_resample": "class_func target_dist initial_dist=None seed=None",
    "repeat": "count=None",
    "scan": "initial_state scan_func",
    "shard": "num_shards index",
    "shuffle": "buffer_size seed=None reshuffle_each_iteration=None",
    "skip": "count",
    "take": "count",
    "take_while": "predicate",
    "unbatch": "",
    "unique": "",
    "window": "size shift=None stride=1 drop_remainder=False",
    "with_options": "options",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_are_tensorflows(name: str) -> None:
    parameters = list(inspect.signature(getattr(Dataset, name)).parameters.values())
    found = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters if p.name != "self"]
    assert found == [*SIGNATURES[name].split(), "name=None"]


def grouped(xs: list[int], size: int) -> list[list[int]]:
    held: dict[int, list[int]] = {}
    out = []
    for x in xs:
        held.setdefault(x % 3, []).append(x)
        if len(held[x % 3]) == size:
            out.append(held.pop(x % 3))
    return out + [held[key] for key in sorted(held)]


@pytest.mark.parametrize("seed", range(6))
def test_windows_by_key(seed: int) -> None:
    draw = random.Random(seed)
    xs, size = [draw.randint(0, 9) for _ in range(draw.randint(0, 14))], draw.randint(1, 4)
    source = Dataset.from_tensor_slices(np.array(xs, np.int64)).map(lambda x: x)
    windows = grouped(xs, size)
    given: dict[str, Any] = {"window_size": size} if seed % 2 else {"window_size_func": lambda key: size}
    batches = source.group_by_window(lambda x: x % 3, lambda key, window: window.batch(size), **given)
    resumed_everywhere(batches, windows)
    singly = source.group_by_window(lambda x: x % 3, lambda key, window: window.map(lambda x: x - key), **given)
    resumed_everywhere(singly, [x - x % 3 for window in windows for x in window])


def rebatched(xs: list[int], sizes: list[int], drop: bool) -> list[list[int]]:
    out: list[list[int]] = []
    while xs:
        size = sizes[len(out) % len(sizes)]
        if len(xs) < size and drop:
            break
        out.append(xs[:size])
        xs = xs[size:]
    return out


@pytest.mark.parametrize("seed", range(8))
def test_batches_of_other_sizes(seed: int) -> None:
    draw = random.Random(seed)
    length, of = draw.randint(0, 12), draw.randint(1, 5)
    sizes, drop = [draw.randint(1, 5) for _ in range(draw.randint(1, 3))], bool(seed % 2)
    data = Dataset.range(length).map(lambda x: {"x": x, "y": (x, -x)}).batch(of)
    wanted = rebatched([*range(length)], sizes, drop)
    expected = [{"x": xs, "y": (xs, [-x for x in xs])} for xs in wanted]
    resumed_everywhere(data.rebatch(sizes if len(sizes) > 1 else sizes[0], drop), expected)


def test_rebatching_has_a_spec() -> None:
    data = Dataset.range(7).batch(3)
    assert data.rebatch(2).element_spec.shape == data.rebatch([2, 1], True).element_spec.shape == (None,)
    assert data.rebatch(2, True).element_spec.shape == (2,)


def test_unique_elements() -> None:
    xs = [3, 1, 3, 3, 2, 1, 0]
    data = Dataset.from_tensor_slices(xs).map(lambda x: x)
    resumed_everywhere(data.unique(), [3, 1, 2, 0])
    pairs = Dataset.from_tensor_slices(([1.0, -0.0, 1.0, 0.0], ["a", "b", "b", "b"]))
    assert listed(pairs.unique()) == [(1.0, "a"), (-0.0, "b"), (1.0, "b")]
    differing = Dataset.from_generator(lambda: iter([1, 1.0, [1], (1,)])).unique()
    assert len(listed(differing)) == 4


def test_numbers_without_an_end() -> None:
    data = Dataset.counter(3, -2, "int32").take(4)
    resumed_everywhere(data, [3, 1, -1, -3])
    assert Dataset.counter().cardinality() == Dataset.random().cardinality() == INFINITE
    assert Dataset.counter(dtype="int32").element_spec == hf.TensorSpec((), "int32")
    numbers = Dataset.random(seed=1).take(500)
    found = listed(numbers)
    resumed_everywhere(numbers.take(5), found[:5])
    assert all(0 <= x < 2**32 for x in found) and len({*found}) == 500
    assert abs(np.mean(found) / 2**31 - 1) < 0.2
    assert listed(Dataset.random(seed=2).take(5)) != found[:5]
    anew = Dataset.random(seed=1, rerandomize_each_iteration=True).take(3)
    assert listed(anew) != listed(anew)


@pytest.mark.parametrize("known", [True, False])
def test_resampling(known: bool) -> None:
    labels = np.random.default_rng(0).choice(3, 6000, p=[0.7, 0.2, 0.1])
    data = Dataset.from_tensor_slices(labels)
    target = [0.25, 0.5, 0.25]
    initial = [0.7, 0.2, 0.1] if known else None
    made = data.rejection_resample(lambda x: x, target, initial, seed=3)
    kinds = [int(kind) for kind, x in made]
    assert all(kind == x for kind, x in listed(made))
    assert np.allclose(np.bincount(kinds, minlength=3) / len(kinds), target, atol=0.04)
    assert len(kinds) > 1800  # not many more are left out than must be
    few = data.take(60).rejection_resample(lambda x: x, target, initial, seed=3)
    resumed_everywhere(few, listed(few))
    without = data.take(200).rejection_resample(lambda x: x, [0, 1, 1], initial, seed=3)
    assert {int(kind) for kind, _ in without} == {1, 2}
    with pytest.raises(errors.ArgumentError, match="class 7 is none of 2"):
        listed(Dataset.range(7, 8).rejection_resample(lambda x: x, [0.5, 0.5]))


def test_single_elements() -> None:
    assert Dataset.range(5).reduce(0, hf.add).item() == 10
    assert Dataset.range(5).batch(5).get_single_element().tolist() == [0, 1, 2, 3, 4]
    for data, text in ((Dataset.range(0), "no element"), (Dataset.range(2), "several")):
        with pytest.raises(errors.ArgumentError, match=text):
            data.get_single_element()


def test_promised_numbers_of_elements() -> None:
    odd = Dataset.range(6).filter(lambda x: x % 2 == 1)
    data = odd.assert_cardinality(3)
    assert len(data) == 3 and len(data.batch(2)) == 2
    resumed_everywhere(data, [1, 3, 5])
    for count, text in ((2, "more elements where 2"), (4, "are 3 elements where 4"), (INFINITE, "infinitely many")):
        with pytest.raises(errors.ArgumentError, match=text):
            listed(odd.assert_cardinality(count))


def test_options() -> None:
    options = hf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 3
    with pytest.raises(errors.ArgumentError, match="no option detreministic"):
        options.detreministic = True  # type: ignore[attr-defined]
    gate = threading.Event()

    def slow(x: Any) -> Any:
        if int(x) == 0:
            assert gate.wait(300)
        elif int(x) == 3:
            gate.set()
        return x

    open_, said = Dataset.range(4).map(slow, 2), Dataset.range(4).map(slow, 2, True)
    data = open_.repeat(1).with_options(options)
    found = listed(data)
    assert sorted(found) == [0, 1, 2, 3] and found[-1] != 3
    assert data.batch(2).options().threading.private_threadpool_size == 3
    assert listed(pickle.loads(pickle.dumps(Dataset.range(3).with_options(options)))) == [0, 1, 2]
    for ordered in (open_, said.with_options(options)):
        gate.set()
        assert listed(ordered) == [0, 1, 2, 3]
    later = hf.data.Options()
    later.deterministic = True
    assert data.with_options(later).options().deterministic is True
    assert len(Dataset.range(4).with_options(options).batch(2)) == 2


class Artificial(Dataset):
    """As TensorFlow's guide to the performance of pipelines makes one."""

    def _generator(num_samples: Any) -> Any:  # it is called as a function of the class
        for number in range(num_samples):
            yield (number,)

    def __new__(cls, num_samples: int = 3) -> Any:
        signature = (hf.TensorSpec(shape=(), dtype="int64"),)
        return Dataset.from_generator(cls._generator, output_signature=signature, args=(num_samples,))


def test_subclasses_that_give_another_dataset() -> None:
    resumed_everywhere(Artificial(2), [(0,), (1,)])
    data = Dataset.range(2).interleave(lambda _: Artificial(), num_parallel_calls=hf.data.AUTOTUNE)
    resumed_everywhere(data, [(0,), (0,), (1,), (1,), (2,), (2,)])


# Elements of every nesting


class Pair(collections.namedtuple("Pair", "x y")):
    pass


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


@pytest.mark.parametrize(
    "make", [lambda x: (x, -x), lambda x: {"a": x, "b": (x, -x)}, lambda x: Pair(x, -x), lambda x: Point(x, -x)]
)
def test_elements_keep_their_nesting(make: Callable[[Any], Any]) -> None:
    data = Dataset.range(5).map(make)
    kind = type(make(0))
    for made in (
        data.shuffle(2, seed=1),
        data.batch(2),
        data.batch(2).unbatch(),
        data.batch(2).rebatch(3),
        data.unique(),
    ):
        assert {type(element) for element in made} == {kind}
        assert type(made.element_spec) is kind


# Caches on disk


def test_caches_on_disk(tmp_path: Path) -> None:
    calls: list[int] = []

    def make(x: Any) -> Any:
        calls.append(int(x))
        return {
            "x": hf.ones((int(x), 2), "bfloat16"),
            "t": (np.array(["a"] * int(x), object) if x > 0 else "", b"\xff"),
        }

    path = tmp_path / "kept"
    data = Dataset.range(4).map(make).cache(str(path))
    expected = listed(Dataset.range(4).map(make))
    calls.clear()
    listed(data.take(2))
    assert not [*tmp_path.iterdir()] and calls == [0, 1]
    calls.clear()
    twice = listed(data.repeat(2))
    assert twice == 2 * expected and calls == [0, 1, 2, 3]
    resumed_everywhere(data, expected)
    assert [*tmp_path.iterdir()] == [path] and calls == [0, 1, 2, 3]
    again = Dataset.range(4).map(make).cache(path)  # as another run of the program
    assert listed(again) == expected and calls == [0, 1, 2, 3]
    assert next(iter(again.skip(3)))["x"].dtype == hf.bfloat16


def test_states_of_caches_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    data = Dataset.range(6).map(lambda x: x * x).cache(path)
    for count in range(6):
        running = iter(data)
        begun = [plain(next(running)) for _ in range(count)]
        state = running.state()
        running.close()
        assert begun + listed(iter(data).restore(state)) == [0, 1, 4, 9, 16, 25]
    path.unlink(missing_ok=True)
    listed(data)
    running = iter(data)
    next(running), next(running)
    state = running.state()
    assert listed(iter(data).restore(state)) == [4, 9, 16, 25]
    path.unlink()
    restored = iter(data).restore(state)
    assert plain(next(restored)) == 4
    assert listed(iter(data).restore(restored.state())) == [9, 16, 25]


def test_two_runs_that_fill_a_cache(tmp_path: Path) -> None:
    data = Dataset.range(5).cache(tmp_path / "kept")
    assert listed(Dataset.zip(data, data)) == [(x, x) for x in range(5)]
    first, second = iter(data), iter(data)
    assert [plain(next(e)) for e in (first, second, first)] == [0, 0, 1]
    assert listed(first) == [2, 3, 4] and listed(second) == [1, 2, 3, 4]
    assert [*tmp_path.iterdir()] == [tmp_path / "kept"]


def test_full_disks(tmp_path: Path, monkeypatch: Any) -> None:
    """No file is left, the error says what was being done, and the next iteration may succeed."""
    make = file_cache.tempfile.NamedTemporaryFile

    def full(**given: Any) -> Any:
        file = make(**given)
        write, left = file.write, [200]

        def limited(data: bytes) -> Any:
            left[0] -= len(data)
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(data)

        file.write = limited
        return file

    data = Dataset.range(50).cache(tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr(file_cache.tempfile, "NamedTemporaryFile", full)
        with pytest.raises(OSError, match="No space left") as caught:
            listed(data)
    assert "could not be kept in" in caught.value.__notes__[0]
    assert not [*tmp_path.iterdir()]
    assert listed(data) == [*range(50)]


def test_functions_that_raise_leave_no_file(tmp_path: Path) -> None:
    def broken(x: Any) -> Any:
        return 1 // (3 - int(x))

    with pytest.raises(ZeroDivisionError):
        listed(Dataset.range(5).map(broken).cache(tmp_path / "kept"))
    running = iter(Dataset.range(5).cache(tmp_path / "kept"))
    next(running)
    running.close()
    assert not [*tmp_path.iterdir()]


def test_damaged_caches(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    data = Dataset.range(3).map(lambda x: (x, "text")).cache(path)
    listed(data)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(errors.DataError, match="kept is damaged"):
            listed(data)
    with hf.data.TFRecordWriter(path) as file:
        file.write(b"another file of records")
    with pytest.raises(errors.DataError, match=r"kept cannot be read: .* The file is damaged\.  \(dataset_runs\.py"):
        listed(data)
    for make in (lambda x: Point(x, x), lambda x: Dataset.range(2), lambda x: {1: x}):
        with pytest.raises(errors.ArgumentTypeError, match="cannot be kept in a file"):
            listed(Dataset.range(3).map(make).cache(tmp_path / "other"))
    with pytest.raises(FileNotFoundError):
        listed(Dataset.range(3).cache(tmp_path / "nowhere" / "kept"))


WRONG: list[tuple[Callable[[Dataset], Any], str]] = [
    (lambda d: d.group_by_window(len, len), "window_size or window_size_func"),
    (lambda d: d.group_by_window(len, len, 1, len), "window_size or window_size_func"),
    (lambda d: listed(d.group_by_window(lambda x: 0, lambda k, w: w, window_size_func=lambda k: 0)), "key 0 is 0"),
    (lambda d: listed(d.group_by_window(lambda x: 0, lambda k, w: 3, 2)), "int is no Dataset"),
    (lambda d: d.rebatch([]), "batch_size is empty"),
    (lambda d: d.rebatch([1, 0]), "batch_size is 0"),
    (lambda d: listed(d.rebatch(2)), "no batch"),
    (lambda d: d.with_options(3), "no hf.data.Options"),
    (lambda d: d.rejection_resample(len, [-1, 2]), "2 numbers"),
    (lambda d: d.rejection_resample(len, [1, 2], [1]), "2 numbers"),
    (lambda d: d.ragged_batch(2, row_splits_dtype="int32"), "Expected int64"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_use(number: int) -> None:
    use, text = WRONG[number]
    with pytest.raises(errors.HybridflowError, match=text):
        use(Dataset.range(4))


def not_three(x: Any) -> Any:
    return 12 // (3 - int(x))


@pytest.mark.parametrize("options", [{}, {"num_parallel_calls": 2}, {"num_parallel_calls": hf.data.AUTOTUNE}], ids=str)
def test_errors_are_ignored(options: dict[str, Any], caplog: Any) -> None:
    data = Dataset.range(6).map(not_three, **options)
    wanted = [4, 6, 12, -12, -6]
    assert [x.item() for x in data.ignore_errors()] == wanted
    assert [x.item() for x in data.prefetch(2).ignore_errors().batch(5).unbatch()] == wanted
    assert [x.item() for x in Dataset.range(6).filter(not_three).map(not_three, **options).ignore_errors()] == wanted
    assert data.ignore_errors().element_spec == hf.TensorSpec((), "int64")
    assert data.ignore_errors().cardinality() == hf.data.UNKNOWN_CARDINALITY
    elements = iter(data.ignore_errors())
    assert [next(elements).item() for _ in range(3)] == wanted[:3]
    assert [x.item() for x in iter(data.ignore_errors()).restore(elements.state())] == wanted[3:]
    list(data.ignore_errors(log_warning=True))
    assert [record.message.endswith("ZeroDivisionError('integer division or modulo by zero')") for record in
            caplog.records] == [True]  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        list(data)  # which is what it was


def test_errors_that_are_not_ignored() -> None:
    def ends_early() -> Any:
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(Dataset.from_generator(ends_early).map(lambda x: x).ignore_errors())
    for data in (Dataset.range(3), Dataset.range(3).map(not_three).batch(2), Dataset.range(3).prefetch(1)):
        with pytest.raises(errors.ArgumentError, match="right behind the map"):
            data.ignore_errors()


def test_arguments_of_newer_versions() -> None:
    data = Dataset.range(3)
    found = data.map(lambda x: x + 1, synchronous=True, use_unbounded_threadpool=True)
    assert [x.item() for x in found] == [1, 2, 3]
    with pytest.raises(errors.ArgumentError, match="synchronous=True"):
        data.map(lambda x: x, 2, synchronous=True)
    with pytest.raises(errors.ArgumentError, match="Expected int64"):
        data.ragged_batch(2, row_splits_dtype="int32")
