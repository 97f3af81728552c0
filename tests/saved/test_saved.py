"""Saved functions and models: what runs without its source is what it was, and damaged files are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers
from hybridflow.checkpoint import files
from hybridflow.saved.format import VERSION
from tests.support.paths import ROOT

pytestmark = pytest.mark.code

RNG = np.random.default_rng(8)


def rows(n: int, *more: int) -> Any:
    return hf.asarray(RNG.standard_normal((n, *(more or (3,)))).astype("f4"))


def halving(x: Any) -> Any:
    count = 0
    while hf.max(hf.abs(x)) > 0.1:
        x = x / 2
        count += 1
    return x, hf.asarray(count)


def choosing(x: Any) -> Any:
    return hf.exp(x) if hf.sum(x) > 0 else hf.sin(x)


def by_rows(x: Any) -> Any:
    total = hf.zeros((3,))
    for row in x:
        total = hf.tanh(total + row)
    return total


CONSTANT = hf.asarray([1.0, 2.0, 3.0])
PROGRAMS: dict[str, Any] = {
    "arithmetic": lambda x: (x * CONSTANT + 1, {"sum": hf.sum(x), "rows": [hf.max(x, axis=1), "text", 3, None, 0.5]}),
    "an argument": lambda x: (x, x[:, 0]),
    "products": lambda x: hf.nn.softmax(x @ x.T),
    "sizes": lambda x: hf.reshape(x, (-1,)) * x.shape[0] + hf.arange(x.shape[0] * 3),
    "a loop": halving,
    "a choice": choosing,
    "a scan": by_rows,
    "sorting": lambda x: hf.sort(x, axis=0) + hf.cumulative_sum(x, axis=0),
    "far constants": lambda x: x + float("inf") * hf.asarray([-1.0, 0.0, np.nan]) - 0.0,
    "a branch by size": lambda x: x * 2 if x.shape[0] > 1 else x - 5,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_what_they_were(tmp_path: Path, name: str) -> None:
    f = hf.function(PROGRAMS[name], input_signature=[hf.TensorSpec([None, 3])])
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for n in (5, 1, 2, 9, 0):
        x = rows(n)
        try:
            expected = f(x)
        except errors.HybridflowError:
            with pytest.raises(errors.HybridflowError):
                loaded(x)
            continue
        found = loaded(x)
        leaves, structure = hf.tree.flatten(expected)
        others, other_structure = hf.tree.flatten(found)
        assert structure == other_structure
        for a, b in zip(leaves, others):
            assert type(a) is type(b) and getattr(a, "dtype", None) == getattr(b, "dtype", None)
            np.testing.assert_array_equal(a, b)


def network() -> Any:
    return hf.Sequential([hf.Input((4,)), layers.Dense(8, "relu"), layers.Dropout(0.5), layers.Dense(2)])


def test_models_with_any_batch_and_their_gradients(tmp_path: Path) -> None:
    model = network()
    loaded = hf.saved.load(hf.saved.save(model, tmp_path / "deep" / "model"))
    assert [v.name for v in loaded.variables] == list(model.named_variables())
    assert [v.trainable for v in loaded.variables] == [v.trainable for v in model.variables]
    for n in (1, 7, 0):
        x = rows(n, 4)
        np.testing.assert_array_equal(loaded(x), model(x))
    x = rows(6, 4)
    grads = []
    for m in (model, loaded):
        with hf.GradientTape() as tape:
            loss = hf.sum(m(x) ** 2)
        grads.append(tape.gradient(loss, m.variables))
    for a, b in zip(*grads):
        np.testing.assert_array_equal(a, b)
    inside = hf.function(lambda x: loaded(x) * 2)
    np.testing.assert_array_equal(inside(x), model(x) * 2)
    loaded.variables[0].assign(hf.zeros((4, 8)))
    assert not np.array_equal(loaded(x), model(x))


class Counter(hf.Module):
    def __init__(self) -> None:
        self.count = hf.Variable(0)
        self.noise = hf.random.Generator(3)

    @hf.function(input_signature=[hf.TensorSpec([], hf.int64)])
    def add(self, n: Any) -> Any:
        self.count.assign_add(n)
        return self.count * 10

    @hf.function(input_signature=[])
    def draw(self) -> Any:
        return self.noise.normal((3,))


def test_state_goes_on(tmp_path: Path) -> None:
    counter = Counter()
    counter.add(hf.asarray(2))
    loaded = hf.saved.load(hf.saved.save(counter, tmp_path / "counter"))
    assert set(loaded.signatures) == {"add", "draw"}
    for n in (1, 4):
        assert loaded.add(n).item() == counter.add(hf.asarray(n)).item()
    for _ in range(2):
        np.testing.assert_array_equal(loaded.draw(), counter.draw())
    with pytest.raises(errors.ArgumentError, match="functions add, draw"):
        loaded(1)


def test_arguments_of_all_kinds(tmp_path: Path) -> None:
    @hf.function
    def f(pair: Any, scale: Any = 2.0, *, flip: bool = False) -> Any:
        x = pair["a"] + pair["b"][0]
        return -x * scale if flip else x * scale

    pair = {"a": rows(2), "b": (rows(2), rows(2))}
    plain, flipped = f(pair), f(pair, flip=True)
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    np.testing.assert_array_equal(loaded(pair), plain)
    np.testing.assert_array_equal(loaded(pair, flip=True), flipped)
    np.testing.assert_array_equal(loaded(pair=pair, scale=2.0), plain)
    arrays = hf.tree.map(np.asarray, pair)
    np.testing.assert_array_equal(loaded(arrays), plain)
    with pytest.raises(errors.ShapeError, match=r'no program was saved for \(pair\["a"\]: f32\[3,3\]'):
        loaded({"a": rows(3), "b": (rows(3), rows(3))})
    with pytest.raises(errors.ShapeError, match="no program"):
        loaded(pair, 3.0)
    with pytest.raises(errors.ArgumentTypeError, match="signature is"):
        loaded(pair, wrong=1)


def test_a_plain_value_between_tensors_may_be_given_or_left_out(tmp_path: Path) -> None:
    f = hf.function(lambda x, n, y: x * n + y)
    x = rows(2)
    expected = f(x, 2.0, x)
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for _ in range(40):  # native code answers some of them
        for call in (loaded(x, 2.0, x), loaded(x, y=x), loaded(x, 2.0, y=x)):
            np.testing.assert_array_equal(call, expected)
    with pytest.raises(errors.ShapeError, match="no program was saved"):
        loaded(x, 3.0, x)
    with pytest.raises(errors.ArgumentTypeError, match="signature is"):
        loaded(x, 2.0)


def test_signatures_and_numbers_by_their_bits(tmp_path: Path) -> None:
    def signed(x: Any, *rest: Any, scale: float = 1.0, **more: float) -> Any:
        return hf.copysign(x, scale) + len(rest) + sum(more.values())

    f = hf.function(signed, reduce_retracing=False)
    x = rows(2)
    for given in ({}, {"scale": -0.0}, {"scale": 0.0}, {"scale": float("nan")}):
        f(x, **given)
    several = f(x, rows(1), rows(1), more=2.0)
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    np.testing.assert_array_equal(loaded(x, scale=-0.0), f(x, scale=-0.0))
    with pytest.warns(UserWarning, match="first numbers"):
        rates = hf.function(signed)
        rates(x, scale=2.0), rates(x, scale=3.0)
        hf.saved.save(rates, tmp_path / "rates")
    assert np.signbit(loaded(x, scale=-0.0)).all() and not np.signbit(loaded(x, scale=0.0)).any()
    assert loaded(x, scale=float("nan")).shape == x.shape
    np.testing.assert_array_equal(loaded(x, rows(1), rows(1), more=2.0), several)
    both = hf.function(lambda x, n: x * n)
    two = both(x, 2), both(x, hf.asarray(3.0))
    again = hf.saved.load(hf.saved.save(both, tmp_path / "both"))
    np.testing.assert_array_equal(again(x, 2), two[0])
    np.testing.assert_array_equal(again(x, hf.asarray(3.0)), two[1])


ELSEWHERE = """
import sys, hybridflow as hf, numpy as np
loaded = hf.saved.load(sys.argv[1])
print(repr(loaded(np.full((3, 4), 0.5, np.float32)).tolist()))
"""


def test_another_process_without_the_source(tmp_path: Path) -> None:
    model = network()
    path = hf.saved.save(model, tmp_path / "model")
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert eval(done.stdout) == model(np.full((3, 4), 0.5, np.float32)).tolist()


def test_recurrent_models(tmp_path: Path) -> None:
    model = hf.Sequential([hf.Input((5, 3)), layers.LSTM(4, return_sequences=True), layers.GRU(2)])
    loaded = hf.saved.load(hf.saved.save(model, tmp_path / "m"))
    x = rows(2, 5, 3)
    np.testing.assert_array_equal(loaded(x), model(x))


def changed(path: Path, change: Any) -> None:
    """The file with other texts, as whole as before."""
    file = files.File(path)
    texts = dict(file.texts)
    change(texts)
    files.write(path, {name: np.array(file.tensor(name)) for name in file.names}, texts)


def programs(texts: dict[str, str], change: Any) -> None:
    found = json.loads(texts["programs"])
    for one in found["serving_default"]:
        change(one)
    texts["programs"] = json.dumps(found)


def f32(shape: list[Any]) -> Any:
    return {"list": [{"spec": [shape, "float32", None]}]}


HOSTILE: dict[str, Any] = {
    "a later format": lambda t: t.update(version=str(VERSION + 1)),
    "no version": lambda t: t.update(version="x"),
    "another kind": lambda t: t.update(kind="checkpoint"),
    "no programs": lambda t: t.pop("programs"),
    "no JSON": lambda t: t.update(programs="{"),
    "another nesting": lambda t: t.update(programs="[1]"),
    "no graph": lambda t: programs(t, lambda p: p.update(graph="print(1)")),
    "an unknown op": lambda t: programs(t, lambda p: p.update(graph=p["graph"].replace("multiply", "os.system"))),
    "another type": lambda t: programs(t, lambda p: p.update(graph=p["graph"].replace("f32", "f64", 1))),
    "fewer sources": lambda t: programs(t, lambda p: p.update(sources=p["sources"][:-1])),
    "a source beyond": lambda t: programs(t, lambda p: p.update(sources=[None, 99])),
    "a constant that is not there": lambda t: programs(t, lambda p: p.update(sources=[None, "constants.9"])),
    "an argument that is none": lambda t: programs(t, lambda p: p.update(arguments=[{"exec": "1"}])),
    "a negative source": lambda t: programs(t, lambda p: p.update(sources=[None, -1])),
    "a variable that is a constant": lambda t: programs(t, lambda p: p.update(sources=[None, "variables.0"])),
    "a signature of another shape": lambda t: programs(t, lambda p: p.update(arguments=f32([7]))),
    "a signature of another rank": lambda t: programs(t, lambda p: p.update(arguments=f32([None, None]))),
    "an assigned argument": lambda t: programs(t, lambda p: p.update(graph=p["graph"][:-2] + "update %0 = %2\n}")),
    "a result beyond": lambda t: programs(t, lambda p: p.update(results={"tuple": ["output", 7]})),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_damaged_and_hostile_files_are_refused(tmp_path: Path, fault: str) -> None:
    v = hf.Variable(2.0)
    f = hf.function(lambda x: x * v, input_signature=[hf.TensorSpec([None])])
    path = Path(hf.saved.save(f, tmp_path / "f"))
    changed(path, HOSTILE[fault])
    with pytest.raises(errors.CheckpointError) as raised:
        hf.saved.load(path)
    assert str(path) in str(raised.value)


@hf.custom_gradient
def odd(x: Any) -> Any:
    return x * 2, lambda g: g * 5


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: hf.function(lambda x: x), errors.ArgumentError, "has not been called"),
        (lambda: print, errors.ArgumentTypeError, "give a function"),
        (lambda: hf.Sequential([layers.Dense(2)]), errors.ArgumentError, "does not know its input"),
        (
            lambda: hf.function(lambda x: odd(x), input_signature=[hf.TensorSpec([2])]),
            errors.ArgumentTypeError,
            "custom_gradient",
        ),
        (
            lambda: hf.function(
                lambda x: hf.py_function(np.sin, [x], hf.TensorSpec([2])), input_signature=[hf.TensorSpec([2])]
            ),
            errors.ArgumentTypeError,
            "calls Python",
        ),
    ],
)
def test_what_cannot_be_saved_says_so(tmp_path: Path, make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        hf.saved.save(make(), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_what_was_loaded_is_saved_again(tmp_path: Path) -> None:
    """With what its variables hold by then, all its signatures, and small extents."""

    class Counting(hf.Module):
        def __init__(self) -> None:
            self.total = hf.Variable([0.0, 0.0, 0.0], name="total")

        @hf.function(input_signature=[hf.TensorSpec([None, 3])])
        def add(self, x: Any) -> Any:
            self.total.assign_add(hf.sum(x, axis=0) + CONSTANT)
            return {"total": self.total + 0.0}

        @hf.function(input_signature=[hf.TensorSpec([None, 3])])
        def look(self, x: Any) -> Any:
            return x - self.total

    original = Counting()
    loaded = hf.saved.load(hf.saved.save(original, tmp_path / "first"))
    x = rows(4)
    original.add(x)
    loaded.add(x)
    again = hf.saved.load(hf.saved.save(loaded, tmp_path / "second"))
    one = hf.saved.load(hf.saved.save(loaded, tmp_path / "one", {"look": loaded.signatures["look"]}))
    assert list(again.signatures) == ["add", "look"] and [v.name for v in again.variables] == ["total"]
    for n in (3, 1, 0):
        y = rows(n)
        for _ in range(2):
            np.testing.assert_array_equal(again.add(y)["total"], original.add(y)["total"])
        np.testing.assert_array_equal(again.look(y), original.look(y))
    np.testing.assert_array_equal(one(x), loaded.look(x))  # whose variable nobody else has assigned


def test_one_sample_of_one_step_among_several_open_extents(tmp_path: Path) -> None:
    spec = hf.TensorSpec([None, None])
    f = hf.function(lambda x, y: hf.sum(x, axis=1) * hf.max(y, axis=1), input_signature=[spec, spec])
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for n, first, second in ((1, 5, 1), (1, 1, 4), (2, 1, 1), (1, 1, 1), (3, 4, 5)):
        x, y = rows(n, first), rows(n, second)
        np.testing.assert_array_equal(loaded(x, y), f(x, y))


def test_no_bit_of_a_header_changes_unseen(tmp_path: Path) -> None:
    f = hf.function(lambda x: x * 2.0, input_signature=[hf.TensorSpec([3])])
    content = Path(hf.saved.save(f, tmp_path / "f")).read_bytes()
    for place in range(0, len(content), 7):
        (tmp_path / "g").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(errors.CheckpointError):
            hf.saved.load(tmp_path / "g")


def test_lists_of_numbers_are_tensors_for_what_was_loaded(tmp_path: Path) -> None:
    double = hf.function(lambda x, pair: 2 * x + pair[0] - pair[1])
    double(hf.ones((2, 2)), [hf.ones(2), hf.ones(2)])
    double(hf.ones((3, 2)), [hf.ones(2), hf.ones(2)])
    loaded = hf.saved.load(hf.saved.save(double, tmp_path / "double"))
    found = loaded([[1, 2], [3.5, 4]], [hf.asarray([1.0, 0.0]), hf.asarray([0.0, 1.0])])
    np.testing.assert_array_equal(found, [[3, 3], [8, 7]])
    with pytest.raises(errors.ShapeError, match="no program was saved"):
        loaded([[1.0, 2.0, 3.0]], [hf.ones(2), hf.ones(2)])
    np.testing.assert_array_equal(loaded([[1.0, 2.0]], [hf.ones(2), hf.ones(2)]), [[2, 4]])


def test_models_are_exported_for_the_dtype_that_they_were_called_with(tmp_path: Path) -> None:
    model = hf.Sequential([hf.layers.Embedding(5, 2), hf.layers.Dense(1)])
    numbers = np.array([[1, 2], [3, 4]], np.int32)
    expected = model(numbers).numpy()
    model.export(tmp_path / "model")
    loaded = hf.saved.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.serve(numbers).numpy(), expected)
    np.testing.assert_array_equal(loaded.serve(numbers[:1]).numpy(), expected[:1])


def test_methods_are_saved_again(tmp_path: Path) -> None:
    class Scaled(hf.Module):
        def __init__(self) -> None:
            self.factor = hf.Variable(3.0, name="factor")

        @hf.function(input_signature=[hf.TensorSpec((None,))])
        def times(self, x: Any) -> Any:
            return x * self.factor

        @hf.function
        def never_called(self, x: Any) -> Any:
            return x

    scaled = Scaled()
    hf.saved.save(scaled, tmp_path / "a", {"serving_default": scaled.times}, with_methods=True)
    hf.saved.save(hf.saved.load(tmp_path / "a"), tmp_path / "b", with_methods=True)
    loaded = hf.saved.load(tmp_path / "b")
    assert list(loaded.signatures) == ["serving_default"]
    assert loaded.times([1.0, 2.0]).numpy().tolist() == [3.0, 6.0] and loaded.factor.numpy() == 3.0
    with pytest.raises(AttributeError, match="its functions are serving_default, times"):
        loaded.never_called  # noqa: B018
