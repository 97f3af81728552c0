"""A bounded part of what ``tests.fuzz_files`` does: damaged files of every kind, read in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.fuzz_files import KINDS
from tests.support.paths import ROOT

pytestmark = pytest.mark.code


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_errors_of_ours_or_right(kind: str) -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.support.fuzz_files", "0", "125", kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
