"""DataLoader: batches, order, workers of both kinds, and what they raise."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.data import DataLoader

Pair = namedtuple("Pair", "x y")


class Numbers:
    """Samples that are looked up by index, and may fail or kill their process."""

    def __init__(self, count: int = 10, fails: int | None = None, dies: int | None = None) -> None:
        self.count, self.fails, self.dies = count, fails, dies

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if index == self.fails:
            raise KeyError("sample three")
        if index == self.dies:
            os._exit(1)
        return np.full((2,), index, np.float32), index


class Hanging(Numbers):
    """The third sample never comes."""

    def __getitem__(self, index: int) -> Any:
        if index == 2:
            time.sleep(10_000)
        return super().__getitem__(index)


def fails(number: int) -> None:
    raise LookupError(f"worker {number} has no table")


def indices(loader: Any) -> list[list[int]]:
    return [y.tolist() for _, y in loader]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 3, "prefetch_factor": 1}])
def test_batches_keep_their_order(options: dict[str, Any]) -> None:
    loader = DataLoader(Numbers(), batch_size=4, **options)
    assert len(loader) == 3 and indices(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    x, _ = next(iter(loader))
    assert x.dtype == hf.float32 and x.shape == (4, 2)
    assert indices(DataLoader(Numbers(), 4, drop_last=True, **options)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert indices(DataLoader(Numbers(), 2, sampler=[5, 1, 5], **options)) == [[5, 1], [5]]
    assert indices(DataLoader(Numbers(), batch_sampler=[[1, 2, 3], [0]], **options)) == [[1, 2, 3], [0]]
    assert [y for _, y in DataLoader(Numbers(3), batch_size=None, **options)] == [0, 1, 2]
    assert not [t for t in threading.enumerate() if "loader" in t.name]


def test_shuffled_order_follows_the_seed() -> None:
    hf.random.set_seed(1)
    loader = DataLoader(Numbers(), 5, shuffle=True)
    first, second = indices(loader), indices(loader)
    hf.random.set_seed(1)
    assert indices(DataLoader(Numbers(), 5, shuffle=True)) == first != second
    assert sorted(i for batch in first for i in batch) == list(range(10))
    one, other = (indices(DataLoader(Numbers(), 5, shuffle=True, generator=g)) for g in (3, 3))
    assert one == other
    drawn = [indices(DataLoader(Numbers(), 5, shuffle=True, generator=hf.random.Generator(3))) for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_samples_of_all_kinds() -> None:
    samples = [{"x": (1.5, [i, np.int8(i)]), "pair": Pair(hf.ones((2,)) * i, "text")} for i in range(2)]
    (batch,) = DataLoader(samples, batch_size=2)
    assert batch["x"][0].dtype == hf.float64 and batch["x"][1][1].dtype == hf.int8
    assert type(batch["pair"]) is Pair and batch["pair"].x.shape == (2, 2) and batch["pair"].y == ["text", "text"]
    ragged = DataLoader([[1], [2, 3]], batch_size=2, collate_fn=lambda samples: [len(s) for s in samples])
    assert list(ragged) == [[1, 2]]
    assert [x.tolist() for x in DataLoader((i for i in range(5)), batch_size=2)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(TypeError):
        len(DataLoader(i for i in range(5)))


@pytest.mark.parametrize("options", [{"batch_size": 2}, {"drop_last": True}, {"sampler": [0]}, {"shuffle": True}])
def test_batches_are_said_once(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError):
        DataLoader(Numbers(), batch_sampler=[[0, 1]], **options)


def test_threads_end_with_the_iterator() -> None:
    elements = iter(DataLoader(Numbers(1000), 2, num_workers=2))
    next(elements)
    elements.close()
    assert not [t for t in threading.enumerate() if "loader" in t.name]


def test_what_samples_raise() -> None:
    for workers in (0, 2):
        loader = DataLoader(Numbers(fails=3), 2, num_workers=workers)
        found = iter(loader)
        next(found)
        with pytest.raises(KeyError, match="sample three"):
            next(found)
        assert not [t for t in threading.enumerate() if "loader" in t.name]


def test_processes() -> None:
    found = iter(DataLoader(Numbers(8, fails=4), 2, num_workers=1, multiprocessing_context="spawn"))
    x, y = next(found)
    assert isinstance(x, hf.Tensor) and y.tolist() == [0, 1] and next(found)[1].tolist() == [2, 3]
    with pytest.raises(KeyError, match="sample three"):
        next(found)
    with pytest.raises(errors.WorkerError, match="a worker process died"):
        indices(DataLoader(Numbers(6, dies=3), 2, num_workers=1, multiprocessing_context="spawn"))


def test_processes_that_hang_are_ended() -> None:
    loader = DataLoader(Hanging(), 2, num_workers=1, multiprocessing_context="spawn")
    found = iter(loader)
    assert next(found)[1].tolist() == [0, 1]
    assert multiprocessing.active_children()
    loader.timeout = 0.1  # the process has begun
    with pytest.raises(errors.WorkerError, match=r"more than 0.1 s"):
        next(found)
    assert not multiprocessing.active_children()


def test_what_processes_cannot_begin_with() -> None:
    loader = DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context="spawn", worker_init_fn=fails)
    with pytest.raises(LookupError, match="worker 0 has no table") as caught:
        list(loader)
    assert "raised by worker_init_fn" in caught.value.__notes__[0]
    with pytest.raises(errors.ArgumentTypeError, match=r"cannot be sent .* Use classes and functions of modules"):
        list(DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context="spawn", collate_fn=lambda samples: 1))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ([np.ones(3), np.ones(4)], r"the samples of one batch differ in shape: \(3,\) and, sample 1 .*, \(4,\)"),
        (
            [({"x": np.ones(3)}, 1), ({"x": np.ones(4)}, 2)],
            r"the parts sample\[0\]\['x'\] of one batch differ in shape",
        ),
        ([(1, 2), (1, 2, 3)], "differ in length: 2 and, sample 1 of the batch, 3"),
        ([{"a": 1}, {"b": 1}], "differ in keys: .*'a'.* and, sample 1 of the batch, .*'b'"),
        ([1, "one"], "differ in kind: int and, sample 1 of the batch, str"),
        ([{"a": 1}, 3], "differ in kind: dict and, sample 1 of the batch, int"),
        ([(3,), 4], "differ in kind: tuple and, sample 1 of the batch, int"),
    ],
)
def test_samples_that_are_unlike(samples: list[Any], text: str) -> None:
    for workers in (0, 1):
        with pytest.raises(errors.ShapeError, match=text):
            list(DataLoader(samples, 2, num_workers=workers))


def test_a_model_is_fitted_from_a_loader() -> None:
    model = hf.Sequential([hf.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(DataLoader(Numbers(), 4, shuffle=True, num_workers=2), epochs=2, verbose=0)
    assert len(history.epoch) == 2


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: DataLoader(3), errors.ArgumentTypeError, "holds no samples"),
        (lambda: DataLoader(Numbers(), 0), errors.ArgumentError, "batch_size"),
        (lambda: DataLoader(Numbers(), 2.5), errors.ArgumentTypeError, "batch_size"),  # type: ignore[arg-type]
        (lambda: DataLoader(Numbers(), num_workers=-1), errors.ArgumentError, "num_workers"),
        (lambda: DataLoader(iter([1]), shuffle=True), errors.ArgumentError, "own order"),
        (lambda: DataLoader(Numbers(), shuffle=True, sampler=[1]), errors.ArgumentError, "one of them"),
    ],
)
def test_wrong_use(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()
