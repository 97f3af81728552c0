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

from .bits import same_bits

Load = Callable[[str], ModuleType]
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


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


def test_digits_prints_both_speeds(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1"])
    load("digits").main()
    text = capsys.readouterr().out
    assert "43 steps" in text and "bit for bit the same" in text
    assert re.search(r"eager \d+ µs per step", text) and re.search(r"graph \d+ µs per step, [\d.]+x", text)


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


def test_tour_runs(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    load("repl_tour")
    text = capsys.readouterr().out
    assert re.search(r"^(-?[\d.]+) \1 True$", text, re.MULTILINE), "eager and graph, equal"
    assert "no derivative passes through convert at repl_tour.py" in text
    assert "p: f32[1000] → f32[?] and 1 more" in text
    assert "[matmul] inner sizes differ: x is f32[64,3], y is f32[2,2]" in text
    assert float(re.findall(r"loss ([\d.]+)", text)[-1]) < 1e-3
