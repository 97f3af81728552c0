"""Kernels read nothing beyond their arrays: run where the pages beside them cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybridflow.compiler import target as targets
from hybridflow.runtime.machine import host

pytestmark = pytest.mark.code


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages as Linux does")
@pytest.mark.parametrize("name", [*(name for name, target in targets.NAMED.items() if host.can_run(target)), "host"])
def test_kernels_read_nothing_beyond_their_arrays(name: str) -> None:
    root = Path(__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, str(root / "tests" / "guarded_reads.py"), name],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0 and ran.stdout.endswith("done\n"), (ran.stdout[-200:], ran.stderr[-2000:])
