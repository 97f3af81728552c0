"""Damaged files of HDF5's kinds are errors of ours, or are read: in a process of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT


@pytest.mark.code
def test_damaged_files_of_hdf5() -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.support.damaged_hdf5", "1", "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
