"""Datasets in compiled functions: a loop of the program, which takes the elements when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.data import Dataset

pytestmark = pytest.mark.code

XS = np.arange(24, dtype=np.float32).reshape(12, 2) / 8
YS = np.arange(12, dtype=np.int64) % 3
DATA = Dataset.from_tensor_slices((XS, YS))
NAMED = Dataset.from_tensor_slices({"x": XS, "y": YS}).batch(4, drop_remainder=True)
STATE = hf.Variable([0.5, -1.0])
COUNT = hf.Variable(0.0)


def total(w):
    t = w * 0
    for x, y in DATA:
        t = t + x * w * hf.astype(y, hf.float32)
        COUNT.assign_add(1.0)
    return t


def with_names(w):
    for batch in NAMED:
        w = w + hf.sum(batch["x"], axis=0)
        print(batch["y"])
    return w


def broken(w):
    n = 0
    for i, (x, y) in enumerate(DATA):
        if hf.sum(x) > 2:
            break
        if y == 1:
            continue
        n += i
        w = w + x
    else:
        w = w * 0
    return w, n


def completed(w):
    for _x, _y in DATA:
        if hf.sum(w) > 1000:
            break
    else:
        w = w - 7
    return w


def returned(w):
    for x, _ in DATA:
        for z, _ in DATA:
            if hf.sum(z * x) > 5:
                return x - z
            w = w + z
    return w


def epochs(w):
    losses = []
    for epoch in range(3):
        loss = hf.constant(0.0)
        for x, _ in DATA:
            loss = loss + hf.sum(x * w)
        losses.append(loss * epoch)
    return losses


def in_a_branch(w):
    if w[0] > 0:
        for x, _ in DATA:
            w = w + x
    return w


def trained(lr):
    total = hf.constant(0.0)
    for x, y in DATA:
        with hf.GradientTape() as tape:
            loss = (hf.sum(x * STATE) - hf.astype(y, hf.float32)) ** 2
        gradient = tape.gradient(loss, STATE)
        STATE.assign_sub(lr[0] * 0.01 * gradient)
        total = total + loss
    return total, STATE.value()


def numbered(w):
    for k, x in enumerate(Dataset.range(5), 10):
        w = w * k + hf.astype(x, hf.float32)
    return w


PROGRAMS = [total, with_names, broken, completed, returned, epochs, in_a_branch, trained, numbered]


def outcome(function: Callable[..., Any], w: Any, capsys: Any) -> Any:
    STATE.assign([0.5, -1.0])
    COUNT.assign(0.0)
    found = hf.tree.flatten(function(w))[0]
    shown = capsys.readouterr().out
    return [np.asarray(x).tobytes() for x in found], shown, COUNT.numpy().tobytes(), STATE.numpy().tobytes()


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_is_eager(function: Callable[..., Any], capsys: Any) -> None:
    compiled = hf.function(function)
    for w in ([1.0, 2.0], [-1.0, 0.25]):
        want = outcome(function, hf.constant(w), capsys)
        for _ in range(2):
            assert outcome(compiled, hf.constant(w), capsys) == want
    assert len(compiled.signatures()) == 1


def test_each_run_is_a_new_one_and_sees_what_the_pipeline_does() -> None:
    seen: list[int] = []

    def note(x: Any) -> Any:
        seen.append(int(x))
        return x

    data = Dataset.range(3).map(note)

    @hf.function
    def f(x: Any) -> Any:
        for y in data:
            x = x + y
        return x

    assert f(hf.constant(0)).item() == 3
    first = len(seen)  # one was made while tracing, to look at it
    assert f(hf.constant(1)).item() == 4 and seen[first:] == [0, 1, 2]


def test_what_the_pipeline_raises_leaves_the_function_and_it_can_run_again() -> None:
    bad = [True]

    def check(x: Any) -> Any:
        if bad[0] and x > 1:
            raise KeyError("bad element")
        return x

    data = Dataset.range(4).map(check)
    count = hf.Variable(0)

    @hf.function
    def f(x: Any) -> Any:
        for y in data:
            count.assign_add(1)
            x = x + y
        return x

    with pytest.raises(KeyError, match="bad element"):
        f(hf.constant(0))
    assert count.numpy() == 0
    bad[0] = False
    assert f(hf.constant(0)).item() == 6 and count.numpy() == 4


def test_iterators_go_on() -> None:
    running = iter(Dataset.range(7))

    @hf.function
    def some(x: Any) -> Any:
        x = x + next(running)
        if x > 2:
            x = x + 100 * next(running)
        return x

    @hf.function
    def rest(x: Any) -> Any:
        for y in running:
            x = x * 10 + y
        return x

    assert [some(hf.constant(0)).item() for _ in range(3)] == [0, 1, 2]
    assert some(hf.constant(0)).item() == 403
    assert rest(hf.constant(0)).item() == 56
    assert rest(hf.constant(3)).item() == 3
    with pytest.raises(StopIteration):
        some(hf.constant(0))


def test_another_dataset_is_another_program() -> None:
    box = {"data": Dataset.range(3)}

    @hf.function
    def f(x: Any, data: Any = None) -> Any:
        for y in box["data"] if data is None else data:
            x = x + y
        return x

    assert f(hf.constant(0)).item() == 3
    box["data"] = Dataset.range(5)
    assert f(hf.constant(0)).item() == 10
    assert f(hf.constant(0), Dataset.range(2)).item() == 1
    assert f(hf.constant(0), Dataset.range(4)).item() == 6


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_derivative_does_not_take_elements_once_more(where: str) -> None:
    data = Dataset.range(3).map(lambda x: hf.astype(x, hf.float32))

    def f(w: Any) -> Any:
        for x in data:
            w = w * w * (x + 1)
        return w

    g = hf.grad(hf.function(f)) if where == "outside" else hf.function(hf.grad(f))
    with pytest.raises(errors.TraceError, match=r"take its elements once more\. Open the tape inside of the loop"):
        g(hf.constant(1.5))


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "shapes": (lambda data: over(data.batch(3)), r"shapes may differ.*drop_remainder=True"),
    "comprehension": (lambda data: [x for x in data], "outside of compiled functions"),  # noqa: C416
    "list of enumerate": (lambda data: list(enumerate(data)), "with a for statement of its own"),
}


def over(data: Any) -> Any:
    total = hf.constant(0.0)
    for x in data:
        total = total + hf.sum(hf.astype(x, hf.float32))
    return total


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(name: str) -> None:
    use, text = WRONG[name]
    data = Dataset.range(4)
    with pytest.raises(errors.TraceError, match=text):
        hf.function(lambda x: use(data))(hf.constant(0))


def test_elements_that_are_not_what_they_were() -> None:
    signature = hf.TensorSpec((2,), hf.float32)
    data = Dataset.from_generator(lambda: iter([[1.0, 2.0], [3.0, 4.0]]), output_signature=signature)
    assert hf.function(over)(data).item() == 10
    changing = Dataset.range(3).map(lambda x: hf.ones(2) if x == 0 else hf.ones(3))
    with pytest.raises(errors.ShapeError, match=r"an element is of f32\[3\]. Expected f32\[2\]"):
        hf.function(over)(changing)


def weighted(batches: Any) -> Any:
    total = hf.constant(0.0)
    for x, y in batches:
        total = total * 0.5 + hf.sum(x * hf.astype(y, hf.float32))
    return total


class Samples:
    def __init__(self) -> None:
        self.scale = 1.0

    def __len__(self) -> int:
        return 12

    def __getitem__(self, k: int) -> Any:
        return np.float32(k) * np.float32(self.scale), k % 3


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_are_asked_when_the_program_runs(workers: int) -> None:
    samples = Samples()
    eager, own = (
        hf.data.DataLoader(samples, 4, shuffle=True, generator=hf.random.Generator.from_seed(5), num_workers=workers)
        for _ in range(2)
    )
    compiled = hf.function(lambda: weighted(own))
    found = [(weighted(eager).item(), compiled().item()) for _ in range(3)]
    samples.scale = -2.0
    found += [(weighted(eager).item(), compiled().item()) for _ in range(2)]
    assert all(a == b for a, b in found)
    assert len({a for a, _ in found}) == 5
    made_inside = hf.function(lambda: weighted(hf.data.DataLoader(samples, 5, drop_last=True)))
    assert made_inside().item() == weighted(hf.data.DataLoader(samples, 5, drop_last=True)).item()


LOADERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], str]] = {
    "last batch": (lambda: hf.data.DataLoader(Samples(), 5), weighted, "has 2 samples, the others 5.*drop_last=True"),
    "sampler of batches": (lambda: hf.data.DataLoader(Samples(), batch_sampler=[[0], [1]]), weighted, "told before"),
    "iterable": (lambda: hf.data.DataLoader(iter([(1.0, 2)])), weighted, "told before"),
    "texts": (lambda: hf.data.DataLoader(["a", "b"]), weighted, "no values for"),
    "comprehension": (lambda: hf.data.DataLoader(Samples()), lambda xs: [x for x in xs], "for x in loader"),  # noqa: C416
    "zip": (lambda: hf.data.DataLoader(Samples()), lambda xs: [a for a, _ in zip(xs, xs)], "for x in loader"),
    "next": (lambda: hf.data.DataLoader(Samples()), lambda xs: next(iter(xs)), "for x in loader"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_what_loaders_cannot_do_in_programs(name: str) -> None:
    make, use, text = LOADERS[name]
    loader = make()
    with pytest.raises(errors.TraceError, match=text):
        hf.function(lambda x: use(loader))(hf.constant(0))
