"""Keras on hybridflow: the programs of ``programs.py``, in one interpreter of their own."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def _is_supported() -> bool:
    """Whether a version of Keras is installed that has the interface which the backend answers."""
    try:
        version = importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError:
        return False
    return (3, 12) <= tuple(int(part) for part in version.split(".")[:2]) < (3, 16)


pytestmark = pytest.mark.skipif(not _is_supported(), reason="no supported version of Keras is installed")

SCRIPT = Path(__file__).with_name("programs.py")
PROGRAMS = re.findall(r"^@program\ndef (\w+)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What all programs say."""
    folder = str(tmp_path_factory.mktemp("keras"))
    environment = {**os.environ, "KERAS_BACKEND": "hybridflow", "KERAS_HOME": folder, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(SCRIPT), str(ROOT / "docs" / "guide" / "keras.md")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=600)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(outcome: str, name: str) -> None:
    assert f"passed {name}\n" in outcome, outcome
