"""Keras on hybridflow: the programs of ``programs.py``, in one interpreter of their own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")

SCRIPT = Path(__file__).with_name("programs.py")
PROGRAMS = re.findall(r"^@program\ndef (\w+)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What all programs say."""
    folder = str(tmp_path_factory.mktemp("keras"))
    environment = {**os.environ, "KERAS_BACKEND": "hybridflow", "KERAS_HOME": folder, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(SCRIPT), str(ROOT / "docs" / "guide" / "keras.md")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(outcome: str, name: str) -> None:
    assert f"passed {name}\n" in outcome, outcome
