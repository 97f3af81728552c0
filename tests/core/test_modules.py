"""Modules: which variables are found, and first values."""

from __future__ import annotations

import copy
import math
import sys
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, initializers
from hybridflow.array.random import global_generator
from hybridflow.initializers import Initializer


class Line(hf.Module):
    def __init__(self, scale: float = 1.0) -> None:
        self.slope, self.offset = hf.Variable(scale, name="slope"), hf.Variable(0.0, name="offset")

    def __call__(self, x: Any) -> Any:
        return self.slope * x + self.offset


class Deep(hf.Module):
    def __init__(self) -> None:
        self.zero = hf.Variable([0.0])
        self.lines = [Line(2.0), (Line(3.0), {"b": Line(4.0), "a": hf.Variable(1)})]
        self.again = self.lines[0]
        self.me = self
        self.counter = hf.Variable(0, trainable=False)
        self.text, self.nothing, self.array = "text", None, np.ones(3)


def test_variables_are_found_wherever_they_are_once_each_in_the_order_of_names() -> None:
    deep = Deep()
    assert list(deep.named_variables()) == [
        "again.offset",
        "again.slope",
        "counter",
        "lines.1.0.offset",
        "lines.1.0.slope",
        "lines.1.1.b.offset",
        "lines.1.1.b.slope",
        "lines.1.1.a",
        "zero",
    ]
    assert [id(v) for v in deep.variables] == [id(v) for v in deep.named_variables().values()]
    assert len(deep.submodules) == 3 and deep.submodules[0] is deep.again
    assert len(deep.trainable_variables) == 8 and deep.non_trainable_variables == [deep.counter]


def test_frozen_modules_hide_what_is_in_them() -> None:
    deep = Deep()
    deep.lines[1][0].trainable = False
    assert len(deep.trainable_variables) == 6 and len(deep.variables) == 9
    deep.trainable = False
    assert deep.trainable_variables == [] and len(deep.non_trainable_variables) == 9
    deep.trainable = True
    assert len(deep.trainable_variables) == 6


class _Choosy(hf.Module):
    """Which variables it has is decided by code of its own."""

    is_open = True

    def __init__(self) -> None:
        self.first, self.parts = hf.Variable(1.0), _Swapped(a=hf.Variable(2.0), b=hf.Variable(3.0))

    @property
    def trainable(self) -> bool:
        return self.is_open

    def _attributes(self) -> Any:
        yield from [pair for pair in super()._attributes() if pair[0] not in HIDDEN]


class _Swapped(dict[str, Any]):
    def items(self) -> Any:
        return [("c", self[NAME])]


HIDDEN: list[str] = []
NAME = "a"


def test_traces_follow_what_decides_which_variables_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    module, inner = hf.Module(), _Choosy()
    module.held = [inner]  # type: ignore[attr-defined]

    @hf.function
    def total(x: hf.Tensor) -> hf.Tensor:
        return x + sum(module.trainable_variables, hf.zeros(()))

    def answers() -> float:
        eager = float(hf.zeros(()) + sum(module.trainable_variables, hf.zeros(())))
        assert float(total(hf.zeros(()))) == float(total(hf.zeros(()))) == eager
        return eager

    assert answers() == 3.0
    monkeypatch.setattr(sys.modules[__name__], "NAME", "b")
    assert answers() == 4.0
    HIDDEN.append("first")
    assert answers() == 3.0
    inner.is_open = False
    assert answers() == 0.0
    inner.is_open = True
    HIDDEN.clear()
    inner.parts["b"].trainable = False
    assert answers() == 1.0
    inner.more = hf.Variable(10.0)  # type: ignore[attr-defined]
    assert answers() == 11.0
    module.held.append(hf.Variable(100.0))  # type: ignore[attr-defined]
    assert answers() == 111.0
    module.held[0] = hf.Variable(5.0)  # type: ignore[attr-defined]
    assert answers() == 105.0


def test_names() -> None:
    class HTTPServer2Thing(hf.Module):
        pass

    thing = HTTPServer2Thing()
    assert thing.name == "http_server2_thing" and Line().name == "line"
    thing.name = "other"
    assert thing.name == "other"


def test_a_module_trains_as_it_is_and_as_an_argument() -> None:
    x = np.linspace(-1, 1, 16, dtype=np.float32)

    def step(model: Line, x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.mean((model(x) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    found = []
    for decorate in (lambda f: f, hf.function):
        model, optimizer = Line(), hf.optimizers.SGD(0.3, momentum=0.5)
        run = decorate(step)
        for _ in range(60):
            loss = run(model, x, 3 * x - 2)
        assert loss.item() < 1e-6
        found.append([v.numpy().tobytes() for v in model.variables])
    assert found[0] == found[1]


def test_a_copy_has_variables_of_its_own() -> None:
    deep = Deep()
    again = copy.deepcopy(deep)
    assert not {id(v) for v in deep.variables} & {id(v) for v in again.variables}
    assert list(again.named_variables()) == list(deep.named_variables()) and again.me is again


RANDOM = [kind for kind in initializers._KINDS.values() if "seed" in kind.__dataclass_fields__]


@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_seed_gives_the_same_values_and_none_gives_others(kind: type[Initializer], dtype: str) -> None:
    if dtype == "bfloat16" and kind is initializers.Orthogonal:
        pytest.skip("LAPACK has no bfloat16")
    seeded, free = kind(seed=7), kind()
    a, b = seeded((6, 5), dtype), seeded((6, 5), dtype)
    assert a.dtype == hf.asarray([0.0], dtype=dtype).dtype and a.shape == (6, 5)
    assert a.numpy().tobytes() == b.numpy().tobytes() != free((6, 5), dtype).numpy().tobytes()
    assert free((6, 5)).numpy().tobytes() != free((6, 5)).numpy().tobytes()
    again = kind.from_config(seeded.get_config())
    assert again == seeded and initializers.get(kind.__name__) == free


VARIANCES = {
    "GlorotUniform": 2 / (200 + 300),
    "GlorotNormal": 2 / (200 + 300),
    "HeUniform": 2 / 200,
    "HeNormal": 2 / 200,
    "LecunUniform": 1 / 200,
    "LecunNormal": 1 / 200,
    "RandomNormal": 0.05**2,
    "RandomUniform": 0.1**2 / 12,
    "TruncatedNormal": (0.05 * 0.87962566103423978) ** 2,
    "VarianceScaling": 1 / 200,
    "Orthogonal": 1 / 300,
}


@pytest.mark.parametrize("name", VARIANCES)
def test_moments(name: str) -> None:
    values = getattr(initializers, name)(seed=3)((200, 300), "float64").numpy()
    deviation = math.sqrt(VARIANCES[name])
    assert abs(values.mean()) < 5 * deviation / math.sqrt(values.size)
    assert values.var() == pytest.approx(VARIANCES[name], rel=0.03)
    if "Uniform" in name:
        assert np.abs(values).max() <= math.sqrt(3) * deviation
    if name in ("GlorotNormal", "HeNormal", "LecunNormal", "TruncatedNormal", "VarianceScaling"):
        assert np.abs(values).max() <= 2 * deviation / 0.87962566103423978


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 3, 4, 5), (0, 3)])
def test_fans_of_all_shapes(shape: tuple[int, ...]) -> None:
    assert initializers.HeNormal(seed=1)(shape).shape == shape
    big = initializers.VarianceScaling(1.0, "fan_out", "uniform", seed=1)((5, 5, 8, 64), "float64").numpy()
    assert big.var() == pytest.approx(1 / (25 * 64), rel=0.05)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 3, 4), (1, 1)])
def test_orthogonal_columns_or_rows(shape: tuple[int, ...]) -> None:
    q = initializers.Orthogonal(gain=2.0, seed=5)(shape, "float64").numpy().reshape(-1, shape[-1]) / 2
    product = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)


@pytest.mark.parametrize("kind", initializers._KINDS.values())
def test_variables_made_while_tracing_start_as_others_do(kind: type[Initializer]) -> None:
    given = {"scale": 2.0} if kind is initializers.VarianceScaling else {}
    made: list[Any] = []

    def model(x: Any) -> Any:
        if not made:
            made.append(hf.Variable(kind(**given)((4, 4), "float64")))
        return x @ made[0]

    hf.random.set_seed(4)
    hf.function(model)(np.ones((1, 4)))
    hf.random.set_seed(4)
    assert made[0].numpy().tobytes() == kind(**given)((4, 4), "float64").numpy().tobytes()


def test_what_get_takes() -> None:
    assert initializers.get("he_normal") == initializers.HeNormal()
    with pytest.raises(errors.ArgumentError, match="the description of Constant has 'confix', and no 'config'"):
        initializers.get({"class_name": "Constant", "confix": {"value": 3.0}})
    made = initializers.get({"class_name": "Constant", "config": {"value": 3.0}})
    assert made((2,)).tolist() == [3.0, 3.0]
    assert initializers.get(hf.ones) is hf.ones


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: initializers.get("he_norm"), errors.ArgumentError, "did you mean 'HeNormal'"),
        (lambda: initializers.get(3), errors.ArgumentTypeError, "3 is neither a name nor"),
        (lambda: initializers.VarianceScaling(mode="x"), errors.ArgumentError, "mode is 'x'"),
        (lambda: initializers.VarianceScaling(scale=0), errors.ArgumentError, "scale is 0"),
        (lambda: initializers.VarianceScaling(distribution="x"), errors.ArgumentError, "distribution is 'x'"),
        (lambda: initializers.Orthogonal()((3,)), errors.ArgumentError, "two extents or more"),
        (lambda: initializers.Identity()((3,)), errors.ArgumentError, "must have two extents"),
        (lambda: Initializer()((3,)), NotImplementedError, "has to define __call__"),
    ],
)
def test_wrong_use(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run()


DRAWS = {
    "uniform": lambda **k: initializers.RandomUniform(-0.25, 0.5, **k),
    "normal": lambda **k: initializers.RandomNormal(0.125, 0.3, **k),
    "truncated_normal": lambda **k: initializers.TruncatedNormal(0.125, 0.3, **k),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("distribution", DRAWS)
def test_weights_of_all_shapes_are_what_the_generator_draws(distribution: str, dtype: str) -> None:
    """And they take as much of its stream.  Large ones come of one program."""
    first, second = (-0.25, 0.5) if distribution == "uniform" else (0.125, 0.3)
    stream = hf.random.Generator(11)
    hf.random.set_seed(11)
    for shape in ((8, 8), (3, 3, 16, 5), (63,), (64,), (65,), (), (0, 5), (1, 1), (128, 257), (64, 1)):
        found = DRAWS[distribution]()(shape, dtype)
        expected = getattr(stream, distribution)(shape, first, second, dtype)
        assert found.dtype == expected.dtype and found.shape == shape
        assert np.asarray(found.numpy()).tobytes() == np.asarray(expected.numpy()).tobytes(), shape
        state = global_generator().state.numpy()
        np.testing.assert_array_equal(state, stream.state.numpy())
        seeded = DRAWS[distribution](seed=3)(shape, dtype)
        again = getattr(hf.random.Generator(3), distribution)(shape, first, second, dtype)
        assert np.asarray(seeded.numpy()).tobytes() == np.asarray(again.numpy()).tobytes()
    program = initializers._program(distribution, np.dtype(found.dtype))
    assert len(program.signatures()) == 1


def test_what_initializers_draw_in_a_trace_and_under_a_tape() -> None:
    @hf.function
    def drawn() -> Any:
        return initializers.HeNormal()((16, 8)), initializers.GlorotUniform()((16, 8))

    found = []
    for draw in (drawn, drawn.__wrapped__):
        hf.random.set_seed(2)
        found.append(draw())
    with hf.GradientTape() as tape:
        hf.random.set_seed(2)
        found.append(drawn.__wrapped__())
        x = found[-1][0]
        tape.watch(x)
        y = hf.sum(x * x)
    for pair in found[1:]:
        for one, other in zip(found[0], pair):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), 2 * x.numpy())
