"""Kernels read nothing beyond their arrays: run where the pages beside them cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hybridflow.compiler import target as targets
from hybridflow.runtime.machine import host_target
from tests.support.paths import ROOT

pytestmark = [pytest.mark.code, pytest.mark.usual_level]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="protects pages as Linux does")
@pytest.mark.parametrize(
    "name", [*(name for name, target in targets.NAMED.items() if host_target.can_run(target)), "host"]
)
def test_kernels_read_nothing_beyond_their_arrays(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "support" / "guarded_reads.py"), name],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0 and ran.stdout.endswith("done\n"), (ran.stdout[-200:], ran.stderr[-2000:])
