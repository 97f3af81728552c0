"""The examples run, and show what they promise."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import hybridflow as hf

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_are_learned_with_the_same_bits() -> None:
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


def test_digits_prints_both_speeds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1"])
    load("digits").main()
    text = capsys.readouterr().out
    assert "43 steps" in text and "bit for bit the same" in text
    assert re.search(r"eager \d+ µs per step", text) and re.search(r"graph \d+ µs per step, [\d.]+x", text)


def test_a_convolutional_network_learns_and_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    digits = load("digits_convolutional")
    model, accuracy = digits.train(8, tmp_path, verbose=0)
    assert accuracy >= 0.97
    images = digits.load()[1][0][:5]
    saved = hf.saved.load(tmp_path / "digits.hf")
    np.testing.assert_array_equal(saved(images), model(images))
    np.testing.assert_array_equal(saved(images[:1]), model(images[:1]))
    assert not (tmp_path / "backup.safetensors").exists()  # the run has ended


def test_tour_runs(capsys: pytest.CaptureFixture[str]) -> None:
    load("repl_tour")
    text = capsys.readouterr().out
    assert re.search(r"^(-?[\d.]+) \1 True$", text, re.MULTILINE), "eager and graph, equal"
    assert "no derivative passes through convert at repl_tour.py" in text
    assert "p: f32[1000] → f32[?] and 1 more" in text
    assert "[matmul] inner sizes differ: x is f32[64,3], y is f32[2,2]" in text
    assert float(re.findall(r"loss ([\d.]+)", text)[-1]) < 1e-3
