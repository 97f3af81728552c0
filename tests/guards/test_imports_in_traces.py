"""The net for code that nothing records: imports of libraries are no part of what a trace reads."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.guards import untracked_code

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


def test_code_of_libraries_is_looked_at_once(monkeypatch: Any) -> None:
    """Where ``sys.settrace`` is the net each call of a function comes to it; code of the user's is still seen."""
    monkeypatch.setattr(untracked_code, "_tool", lambda: None)
    looked, look = [], untracked_code._look
    monkeypatch.setattr(untracked_code, "_look", lambda code, recording: (looked.append(code), look(code, recording)))
    scale = [2.0]

    class Hidden:
        def __call__(self, match: Any) -> str:
            return str(scale[0])

    def traced() -> list[Any]:
        looked.clear()
        f = hf.function(lambda x: hf.sum(hf.reshape(hf.exp(x) * 2 + x[1:2], (-1,)) - 1.0))
        np.testing.assert_array_equal(f(hf.ones(8)).shape, ())
        return list(looked)

    traced()
    again = traced()
    assert len(again) < 40 and not any("hybridflow" in code.co_filename for code in again)
    g = hf.function(lambda x: x * float(re.sub("a", Hidden(), "a")))
    assert g(hf.ones(())).item() == 2.0
    scale[0] = 3.0
    assert g(hf.ones(())).item() == 3.0
