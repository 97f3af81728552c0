"""Instrumented functions do what the functions do: the standard library's, as its own tests see them.

Once by their source, and once by their byte code.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT

# Gives every function of a module, and of its tests, its instrumented code, and runs the tests, but for one of difflib
# that makes the same diffs as the others, of texts a thousand times as long.
_PROGRAM = """
import gc, importlib, io, sys, types, unittest
import hybridflow
from hybridflow.guards import instrumented_code
from hybridflow.autograph.hooks.bytecode_recorder import CODE_RECORDER
from hybridflow.autograph.hooks.recorder import RECORDER
from hybridflow.autograph.transform.instrument_bytecode import instrument_code

names = [sys.argv[1], "test.test_" + sys.argv[1]]
for name in names:
    importlib.import_module(name)
count = 0
for function in [f for f in gc.get_objects() if isinstance(f, types.FunctionType) and f.__module__ in names]:
    by_code = sys.argv[2] == "byte code"
    if by_code:
        twin = instrument_code(function.__code__, CODE_RECORDER)
    else:
        twin = instrumented_code.instrument_function(function, RECORDER, CODE_RECORDER)
    if isinstance(twin, types.CodeType):
        function.__code__ = twin
        count += 1
assert count > 20, count
def single(suite):
    for test in suite:
        yield from single(test) if isinstance(test, unittest.TestSuite) else [test]
found = single(unittest.defaultTestLoader.loadTestsFromName(names[1]))
suite = unittest.TestSuite([test for test in found if not test.id().endswith(".test_recursion_limit")])
report = io.StringIO()
result = unittest.TextTestRunner(stream=report).run(suite)
print(report.getvalue(), file=sys.stderr)
assert result.testsRun > 10
sys.exit(not result.wasSuccessful())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "bisect",
        "collections",
        "configparser",
        "contextlib",
        "difflib",
        "enum",
        "fractions",
        "heapq",
        "string",
        "textwrap",
    ],
)
@pytest.mark.parametrize("by", ["source", "byte code"])
@pytest.mark.sample(4)
def test_instrumented_functions_pass_their_own_tests(name: str, by: str) -> None:
    pytest.importorskip(f"test.test_{name}", reason="this Python came without the standard library's tests")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM, name, by],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
