"""Programs of TensorFlow 1 print, after changing the import, what they print with TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compat.v1 import graph, graph_stack
from tests.support.tf1_results import PROGRAMS, printed

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
NUMBER = re.compile(r"(?<![\w])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    """Each program has a default graph of its own."""
    graph.reset_default_graph()
    hf.random.set_seed(0)
    yield
    graph_stack.interactive(None)
    graph_stack.set_recording(None)
    graph.reset_default_graph()


def _words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """A text without its numbers and spaces, line by line, and the numbers."""
    words = [re.sub(r"\s+", "", NUMBER.sub("#", line)) for line in text.splitlines()]
    return [line for line in words if line], [float(x) for x in NUMBER.findall(text)]


@pytest.mark.code
@pytest.mark.parametrize("name", NAMES)
def test_program(name: str, tmp_path: Path) -> None:
    text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    path = tmp_path / f"{name}.py"
    path.write_text(text.replace("import tensorflow.compat.v1 as tf", "import hybridflow.compat.v1 as tf"), "utf-8")
    with np.printoptions():  # programs set those of the process
        words, numbers = _words_and_numbers(printed(path))
    wanted_words, wanted = _words_and_numbers((PROGRAMS / f"{name}.txt").read_text(encoding="utf-8"))
    assert words == wanted_words
    assert numbers == pytest.approx(wanted, rel=2e-4, abs=1e-5, nan_ok=True)


def test_each_program_has_a_record() -> None:
    assert sorted(path.stem for path in PROGRAMS.glob("*.txt")) == NAMES
