"""The examples run, and show what they promise."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import hybridflow as hf
from tests.support.bits import same_bits
from tests.support.paths import ROOT

pytestmark = [pytest.mark.code, pytest.mark.usual_level]  # trainings: slow code takes longer than its compilation saves

Load = Callable[[str], ModuleType]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports an example, for the time of a test."""

    def imported(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return imported


@pytest.mark.slow
def test_digits_are_learned_with_the_same_bits(load: Load) -> None:
    pytest.importorskip("sklearn")
    digits = load("digits")
    data = digits.load()
    eager = digits.train(data, 4, lambda step: step)
    graph = digits.train(data, 4, hf.function)
    assert eager.losses.shape == (4 * (1400 // 32),)
    assert np.array_equal(eager.losses.view(np.int32), graph.losses.view(np.int32))
    assert graph.accuracy == eager.accuracy >= 0.95
    more = digits.train(data, 20, hf.function)
    assert np.array_equal(more.losses[: len(graph.losses)].view(np.int32), graph.losses.view(np.int32))
    assert more.accuracy >= 0.97


@pytest.mark.slow
def test_digits_prints_both_speeds(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1"])
    load("digits").main()
    text = capsys.readouterr().out
    assert "43 steps" in text and "bit for bit the same" in text
    assert re.search(r"eager \d+ µs per step", text) and re.search(r"graph \d+ µs per step, [\d.]+x", text)


@pytest.mark.slow
def test_a_convolutional_network_learns_and_goes_on(load: Load, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    digits = load("digits_convolutional")
    model, accuracy = digits.train(8, tmp_path, verbose=0)
    assert accuracy >= 0.97
    images = digits.load()[1][0][:5]
    saved = hf.saved.load(tmp_path / "digits.hf")
    np.testing.assert_array_equal(saved(images), model(images))
    np.testing.assert_array_equal(saved(images[:1]), model(images[:1]))
    assert not (tmp_path / "backup.safetensors").exists()  # the run has ended


@pytest.mark.slow
@pytest.mark.code
def test_a_gpt_learns_writes_and_goes_on_with_the_same_bits(load: Load, tmp_path: Path) -> None:
    gpt = load("character_gpt")
    text = gpt.Text("how much wood would a woodchuck chuck\n" * 20)
    sizes = gpt.Sizes(len(text.alphabet), context=16, width=16, heads=2, blocks=1)
    whole = gpt.Trainer(text, sizes, 60)
    losses = whole.train()
    assert losses[0] > 2.5 and losses[-1] < 2.0
    assert gpt.Trainer(text, sizes, 60, tmp_path).train(20) == losses[:20]
    second = gpt.Trainer(text, sizes, 60, tmp_path)
    assert second.train() == losses[20:]
    for one, other in zip(second.model.variables, whole.model.variables, strict=True):
        assert same_bits(one.numpy(), other.numpy())
    written = second.write("how", 30)
    assert written == whole.write("how", 30) and len(written) == 33 and set(written) <= set(text.alphabet)


@pytest.mark.code
def test_groups_of_a_graph_are_found(load: Load) -> None:
    assert load("graph_convolution").train(40, 3, 30) > 0.8


@pytest.mark.slow
@pytest.mark.code
def test_words_are_found_by_their_company(load: Load, tmp_path: Path) -> None:
    word2vec = load("word2vec")
    random = np.random.default_rng(0)
    fields = [[first + a + b for a in "abcdef" for b in "ghijkl"] for first in "xyz"]
    text = " ".join(" ".join(random.choice(fields[k % 3], 60)) for k in range(300))
    whole = word2vec.Word2Vec(word2vec.Corpus(text), width=16)
    losses = whole.train(300)
    assert losses[-1] < losses[0]
    for field in fields:
        assert set(whole.nearest(field[0], 5)) < set(field)
    assert word2vec.Word2Vec(word2vec.Corpus(text), 16, tmp_path).train(25) == losses[:25]
    second = word2vec.Word2Vec(word2vec.Corpus(text), 16, tmp_path)
    assert second.train(300) == losses[25:]
    assert same_bits(second.middle.numpy(), whole.middle.numpy())


@pytest.mark.slow
@pytest.mark.code
def test_an_lstm_remembers_and_goes_on_with_the_same_bits(load: Load, tmp_path: Path) -> None:
    lstm = load("lstm_sequences")
    whole, losses = lstm.train(500, verbose=0)
    assert losses[0] > 0.1 and losses[-1] < 0.05
    _, first = lstm.train(200, tmp_path, verbose=0)
    second, rest = lstm.train(500, tmp_path, verbose=0)
    assert first + rest == losses
    assert all(same_bits(one.numpy(), other.numpy()) for one, other in zip(second.variables, whole.variables))


@pytest.mark.slow
@pytest.mark.code
def test_an_autoencoder_draws_and_goes_on_with_the_same_bits(load: Load, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    vae = load("variational_autoencoder")
    whole, losses = vae.train(300, verbose=0)
    assert losses[0] > losses[1] > losses[2] and losses[2] < 30
    _, first = vae.train(100, tmp_path, verbose=0)
    second, rest = vae.train(300, tmp_path, verbose=0)
    assert first + rest == losses
    drawn = second.drawn([[0.0, 0.5], [1.0, -1.0]])
    assert same_bits(drawn, whole.drawn([[0.0, 0.5], [1.0, -1.0]])) and drawn.shape == (2, 8, 8)
    assert {len(line) for line in vae.shown(drawn).splitlines()} == {32}


@pytest.mark.slow
@pytest.mark.code
def test_a_step_by_hand_reads_digits_and_goes_on_with_the_same_bits(load: Load, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    digits = load("digits_by_hand")
    whole = digits.Run(60)
    losses = whole.train()
    assert whole.tested() >= 0.8
    assert digits.Run(60, tmp_path).train(25) == losses[:25]
    second = digits.Run(60, tmp_path)
    assert second.train() == losses[25:]
    assert second.tested() == whole.tested()


@pytest.mark.slow
@pytest.mark.code
def test_a_pole_is_balanced_longer_and_goes_on_with_the_same_bits(load: Load, tmp_path: Path) -> None:
    dqn = load("dqn_cart_pole")
    whole = dqn.Agent(400)
    losses = whole.train()
    assert len(losses) == 400 and all(1 <= n <= 500 for n in whole.returns(2))
    assert dqn.Agent(400, tmp_path).train(150) == losses[:150]
    second = dqn.Agent(400, tmp_path)
    assert second.train() == losses[150:]
    assert second.returns(2) == whole.returns(2)
    assert dqn.Agent(500, tmp_path).replay.count.item() == 400  # there may be more steps than it was begun with
    cart = dqn.CartPole()
    assert not cart.step(1) and np.allclose(cart.state.numpy(), [0, 0.19512195, 0, -0.29268292])


@pytest.mark.slow
@pytest.mark.code
def test_tour_of_tensorflow(load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tour = load("tour_of_tensorflow")
    tour.tensors()
    tour.gradients()
    assert set(tour.graphs(1)) == {
        "LSTM cell, eager",
        "LSTM cell, graph",
        "elementwise, eager",
        "elementwise, graph",
        "elementwise, jit_compile",
    }
    losses = tour.custom_loop(30, tmp_path / "whole")
    assert losses[-1] < losses[0] / 10
    assert tour.custom_loop(12, tmp_path / "line") + tour.custom_loop(30, tmp_path / "line") == losses
    tour.saved(tmp_path / "scaled")
    text = capsys.readouterr().out
    assert "x ** 3 at 3: 27.0 27.0 18.0" in text and "steps from 27 to 1: 111" in text
    assert "[ 2.5  5.  10. ]" in text


@pytest.mark.slow
def test_pipelines_of_the_tour(load: Load) -> None:
    tour = load("tour_of_tensorflow")
    found = tour.pipelines()
    assert len(found) == 8 and all(seconds > 0 for seconds in found.values())
    elements = tour.ArtificialDataset(3).map(tour.slow_map).prefetch(2)
    assert [element.numpy().tolist() for element in elements] == [[1], [2], [3]]


@pytest.mark.slow
def test_tour_runs(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    load("repl_tour")
    text = capsys.readouterr().out
    assert re.search(r"^(-?[\d.]+) \1 True$", text, re.MULTILINE), "eager and graph, equal"
    assert "no derivative passes through convert at repl_tour.py" in text
    assert "p: f32[1000] → f32[?] and 1 more" in text
    assert "[matmul] inner sizes differ: x is f32[64,3], y is f32[2,2]" in text
    assert float(re.findall(r"loss ([\d.]+)", text)[-1]) < 1e-3
