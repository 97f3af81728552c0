"""Imports of libraries that begin while a function is traced are no part of what it reads."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """if True:
    import sys

    class Finder:  # the user's own, which every import asks
        def find_spec(self, *args):
            return None

    sys.meta_path.insert(0, Finder())
    import concurrent.futures
    import numpy as np
    import hybridflow as hf

    @hf.function
    def f(x):
        return {}

    f(hf.ones(2))
    print(f)
"""


@pytest.mark.parametrize("result", ["np.pad(x, 1)", "x + bool(concurrent.futures.ProcessPoolExecutor)"])
def test_what_an_import_runs_does_not_spend_the_trace(result: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(result)], capture_output=True, text=True, check=True)
    assert "1 trace, 0 hits" in done.stdout, done.stderr
