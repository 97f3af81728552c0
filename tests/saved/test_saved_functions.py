"""Functions of files are functions: called natively, looked into, differentiated, copied, and light to load."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.checkpoint import files
from hybridflow.cli import commands
from hybridflow.compiler.ir.text import parse
from hybridflow.compiler.ops import TABLE
from tests.support.paths import ROOT

pytestmark = pytest.mark.code

RNG = np.random.default_rng(26)


def draw(*shape: int) -> Any:
    return hf.asarray(RNG.standard_normal(shape).astype("f4"))


def saved(tmp_path: Path, f: Any, **options: Any) -> Any:
    return hf.saved.load(hf.saved.save(f, tmp_path / "f.hf", **options))


def answered(f: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool]:
    """The result of a call, and whether native code gave it."""
    before = sum(call.calls for call in f._cache.native_calls())
    result = f(*args, **kwargs)
    return result, sum(call.calls for call in f._cache.native_calls()) == before + 1


def has_native_calls() -> bool:
    f = hf.function(lambda x: x + 1)
    return any(answered(f, hf.ones(3))[1] for _ in range(40_000))


def test_calls_of_one_program_are_native_for_all_extents(tmp_path: Path) -> None:
    if not has_native_calls():
        pytest.skip("this interpreter has no native calls")
    f = hf.function(lambda x: hf.exp(x) - hf.sum(x), input_signature=[hf.TensorSpec([None, 3])])
    g = saved(tmp_path, f).signatures["serving_default"]
    for n in (1, 5, 0, 2):
        g(draw(n, 3))  # says what such calls look like
    for n in (1, 2, 9, 0, 300):
        x = draw(n, 3)
        result, is_native = answered(g, x)
        assert is_native
        np.testing.assert_array_equal(result, f(x))
    assert len(g.signatures()) == 3 and not g.retraces()
    assert answered(g, np.ones((4, 3), np.float32))[1] and not answered(g, [[1.0, 2.0, 3.0]])[1]


def test_the_first_program_that_takes_a_call_answers_it_natively_too(tmp_path: Path) -> None:
    f = hf.function(lambda x: x * 2)
    closed, open_ = f.get_concrete_function(hf.TensorSpec([3])), f.get_concrete_function(hf.TensorSpec([None]))
    for order in ([closed, open_], [open_, closed]):
        g = saved(tmp_path, f, signatures=order).signatures["serving_default"]
        for _ in range(50):
            g(hf.ones(3))
        hits = {row["inputs"]: row["hits"] for row in g.signatures()}
        assert hits[f"x: {order[0].key.leaves[0]}"] == 49 and sum(hits.values()) == 49


def test_state_and_generators_go_on_natively(tmp_path: Path) -> None:
    class Noisy(hf.Module):
        def __init__(self) -> None:
            self.total = hf.Variable([0.0, 0.0], name="total")
            self.noise = hf.random.Generator(5)

        @hf.function(input_signature=[hf.TensorSpec([None, 2])])
        def step(self, x: Any) -> Any:
            self.total.assign_add(hf.sum(x, axis=0) + self.noise.normal((2,)))
            return self.total * 1.0

    original = Noisy()
    loaded = saved(tmp_path, original)
    for n in (3, 3, 2, 1, 0, 7) * 5:
        x = draw(n, 2)
        np.testing.assert_array_equal(loaded.step(x), original.step(x))
    np.testing.assert_array_equal(loaded.total.numpy(), original.total.numpy())
    before = loaded.total.numpy()
    with pytest.raises(errors.ShapeError, match="no program was saved"):
        loaded.step(draw(2, 3))
    np.testing.assert_array_equal(loaded.total.numpy(), before)


def test_what_functions_show(tmp_path: Path) -> None:
    f = hf.function(lambda x, scale=2.0: hf.sum(hf.exp(x) * scale), input_signature=[hf.TensorSpec([None])])
    g = saved(tmp_path, f).signatures["serving_default"]
    x = draw(100)
    assert str(inspect.signature(g)) == "(x, scale=2.0)"
    assert [row["ops"] for row in g.kernels(x)] == [row["ops"] for row in f.kernels(x)]
    assert "native" not in str(g.explain(x)) and "python" not in str(g.explain(x)).lower()
    assert len(g.profile(x, runs=3).kernels) == len(f.profile(x, runs=3).kernels)
    plans = [[{**row, "function": ""} for row in h.memory_plan(x)] for h in (g, f)]
    assert plans[0] == plans[1]
    assert [str(c) for c in g.concrete_functions()] == [
        str(g.get_concrete_function(hf.TensorSpec([n]))) for n in (0, 1, None)
    ]
    with pytest.raises(errors.ShapeError, match="no program was saved"):
        g.get_concrete_function(hf.TensorSpec([None, 2]))
    text = g.ir(x)
    again = parse(text, TABLE)
    assert text == g.ir() and [node.op.name for node in again.nodes] == [
        node.op.name for node in g.get_concrete_function(x).graph.nodes
    ]
    g.cache_clear()
    np.testing.assert_array_equal(g(x), f(x))


def test_gradients_of_one_tensor_in_two_places_eager_runs_vmap_and_traces(tmp_path: Path) -> None:
    spec = hf.TensorSpec([None])
    f = hf.function(lambda x, y: hf.sum(x * y + hf.sin(x)), input_signature=[spec, spec])
    g = saved(tmp_path, f)
    x, y = draw(6), draw(6)
    for pair in ((x, y), (x, x)):
        grads = []
        for h in (f, g):
            with hf.GradientTape() as tape:
                tape.watch(pair)
                z = h(*pair)
            grads.append(tape.gradient(z, list(pair)))
        for a, b in zip(*grads):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(hf.function(lambda a, b: g(a, b) * 2)(*pair), f(*pair) * 2)
    hf.config.run_functions_eagerly(True)
    try:
        eager = g(x, y)
    finally:
        hf.config.run_functions_eagerly(False)
    np.testing.assert_array_equal(eager, f(x, y))
    rows = draw(4, 6)
    np.testing.assert_array_equal(hf.vmap(lambda r: g(r, r))(rows), hf.vmap(lambda r: f(r, r))(rows))


def test_nests_of_other_kinds_and_parameters_of_all_kinds(tmp_path: Path) -> None:
    @hf.function(input_signature=[{"a": hf.TensorSpec([None]), "b": hf.TensorSpec([None])}])
    def f(pair: Any) -> Any:
        return {"difference": pair["a"] - 2 * pair["b"]}

    g = saved(tmp_path, f)
    a, b = draw(4), draw(4)
    expected = f({"a": a, "b": b})["difference"]
    for pair in ({"b": b, "a": a}, OrderedDict(b=b, a=a), OrderedDict(a=a, b=b), {"a": np.asarray(a), "b": b}):
        for _ in range(3):
            np.testing.assert_array_equal(g(pair)["difference"], expected)

    def several(x: Any, flag: Any = False, y: Any = None, *rest: Any, last: Any = 1.0) -> Any:
        return x - y * 2 - sum(rest) * last

    h = hf.function(several)
    x, y, z = draw(3), draw(3), draw(3)
    results = h(x, False, y), h(x, False, y, z), h(x, False, y, z, z, last=0.5)
    k = saved(tmp_path, h).signatures["serving_default"]
    assert str(inspect.signature(k)) == "(x, flag, y, *rest, last=1.0)"
    for given, expected in zip((k(x, False, y), k(x, False, y, z), k(x, False, y, z, z, last=0.5)), results):
        np.testing.assert_array_equal(given, expected)


def test_copies_have_variables_of_their_own_and_pickles_are_refused(tmp_path: Path) -> None:
    class Scaled(hf.Module):
        def __init__(self) -> None:
            self.factor = hf.Variable(3.0, name="factor")

        def __call__(self, x: Any, offset: float = 1.0) -> Any:
            return x * self.factor + offset

    loaded = saved(tmp_path, Scaled(), input_signature=[hf.TensorSpec([None])])
    other = copy.deepcopy(loaded)
    other.factor.assign(0.0)
    assert loaded([1.0, 2.0]).tolist() == [4.0, 7.0] and other([1.0, 2.0]).tolist() == [1.0, 1.0]
    assert other.signatures["serving_default"] is other.serving_default
    with pytest.raises(errors.ArgumentTypeError, match="load it there"):
        pickle.dumps(loaded.serving_default)


def test_plain_modules_functions_and_attributes_are_saved(tmp_path: Path) -> None:
    class Plain(hf.Module):
        def __init__(self) -> None:
            self.offset = hf.Variable([1.0, 2.0])
            self.times = hf.function(lambda x: x * self.offset, input_signature=[hf.TensorSpec([None, 2])])

        def __call__(self, x: Any) -> Any:
            return x + self.offset

    plain, x = Plain(), draw(3, 2)
    np.testing.assert_array_equal(saved(tmp_path, plain).times(x), plain.times(x))
    signature = [hf.TensorSpec([None, 2])]
    np.testing.assert_array_equal(saved(tmp_path, plain, input_signature=signature)(x), plain(x))
    np.testing.assert_array_equal(saved(tmp_path, lambda x: x - 1, input_signature=signature)(x), x - 1)
    with pytest.raises(errors.ArgumentError, match=r"Give input_signature=\[hf.TensorSpec"):
        hf.saved.save(hf.Module(), tmp_path / "m")
    with pytest.raises(errors.ArgumentError, match="give one of them"):
        hf.saved.save(plain, tmp_path / "m", plain.times, input_signature=signature)
    with pytest.raises(errors.ArgumentTypeError, match="cannot be called"):
        hf.saved.save(3, tmp_path / "m", input_signature=signature)


def test_decompositions_of_matrices_are_saved(tmp_path: Path) -> None:
    def solved(x: Any) -> Any:
        square = hf.matrix_transpose(x) @ x + 5.0 * hf.eye(x.shape[1])
        values, vectors = hf.linalg.eigh(square)
        return hf.linalg.cholesky(square), hf.linalg.inv(square), values, vectors, hf.linalg.svd(x).S, *hf.linalg.qr(x)

    f = hf.function(solved, input_signature=[hf.TensorSpec([None, 4])])
    loaded = saved(tmp_path, f)
    for n in (7, 1, 2):
        x = draw(n, 4)
        for found, wanted in zip(hf.tree.leaves(loaded(x)), hf.tree.leaves(f(x)), strict=True):
            np.testing.assert_array_equal(found, wanted)
    inverse = saved(tmp_path, hf.linalg.inv, input_signature=[hf.TensorSpec([3, 3])])
    with pytest.raises(errors.LinAlgError):
        inverse(hf.zeros((3, 3)))
    with pytest.raises(errors.ArgumentTypeError, match="calls Python functions"):
        saved(tmp_path, lambda x: hf.print(x) or hf.linalg.inv(x), input_signature=[hf.TensorSpec([3, 3])])


def test_threads_that_call_at_once(tmp_path: Path) -> None:
    f = hf.function(lambda x: hf.sum(hf.tanh(x), axis=1), input_signature=[hf.TensorSpec([None, 8])])
    g = saved(tmp_path, f)
    inputs = [draw(n, 8) for n in (1, 2, 17)]
    wanted = [f(x).numpy() for x in inputs]
    wrong: list[Any] = []

    def call() -> None:
        for _ in range(100):
            wrong.extend(n for n, x in enumerate(inputs) if not np.array_equal(g(x), wanted[n]))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_later_format_says_who_wrote_it(tmp_path: Path) -> None:
    path = hf.saved.save(lambda x: x, tmp_path / "f.hf", input_signature=[hf.TensorSpec([2])])
    file = files.File(path)
    assert file.texts["writer"] == f"hybridflow {hf.__version__}"
    files.write(path, {}, {**file.texts, "version": "4", "writer": "hybridflow 9.1"})
    with pytest.raises(
        errors.CheckpointError, match=r"format '4', written by hybridflow 9.1; this is hybridflow .* up to 3"
    ):
        hf.saved.load(path)


LIGHT = """
import json, sys
import hybridflow as hf
loaded = hf.saved.load(sys.argv[1])
result = loaded(hf.ones((2, 4))).tolist()
print(json.dumps([result, sorted(name for name in sys.modules if name.startswith("hybridflow."))]))
"""
HEAVY = (
    "layers",
    "nn",
    "optimizers",
    "losses",
    "metrics",
    "callbacks",
    "models",
    "data",
    "summary",
    "compat",
    "autodiff",
)


def test_loading_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(3, "relu"), hf.layers.Dense(2)])
    path = hf.saved.save(model, tmp_path / "model.hf")
    model(hf.ones((2, 4)))
    done = subprocess.run([sys.executable, "-c", LIGHT, path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result, modules = json.loads(done.stdout)
    assert result == model(hf.ones((2, 4))).tolist()
    assert not [name for name in modules if name.split(".")[1] in HEAVY]


def test_commands_look_into_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Two(hf.Module):
        first = hf.function(lambda self, x: x + 1, input_signature=[hf.TensorSpec([None])])
        second = hf.function(lambda self, x: x * 5, input_signature=[hf.TensorSpec([None])])

    path = hf.saved.save(lambda x: x - 3, tmp_path / "one.hf", input_signature=[hf.TensorSpec([None])])
    assert commands.run(["ir", path]) == 0 and "= subtract(" in capsys.readouterr().out
    several = hf.saved.save(Two(), tmp_path / "two.hf")
    assert commands.run(["explain", f"{several}::second"]) == 0 and "multiply" in capsys.readouterr().out
    assert commands.run(["ir", several]) == 2 and "has the functions first, second" in capsys.readouterr().err
    assert commands.run(["ir", f"{several}::third"]) == 2 and "it has first, second" in capsys.readouterr().err


class Settings(dict[str, Any]):
    """A dict of the user's."""


def test_dicts_of_classes_that_a_file_does_not_know(tmp_path: Path) -> None:
    f = hf.function(lambda d: d["a"] - d["b"])
    f({"a": hf.asarray(3.0), "b": hf.asarray(1.0)})
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    assert loaded(Settings(b=hf.asarray(2.0), a=hf.asarray(7.0))).item() == 5.0
    assert loaded({"a": hf.asarray(7.0), "b": hf.asarray(2.0)}).item() == 5.0
