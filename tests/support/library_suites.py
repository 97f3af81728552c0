"""Run the tests of SciPy and of scikit-learn that are for any library of arrays, with tensors.

    python tests/support/library_suites.py scipy scipy.special.tests.test_logsumexp [arguments of pytest]
    python tests/support/library_suites.py sklearn sklearn.metrics.tests.test_common [arguments of pytest]

Both are to be installed with their tests, pytest beside them.  The libraries name those that their tests try; here it
is hybridflow alone.  What is printed at the end is pytest's own count.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIBRARIES = {"scipy": "array_api_backends", "sklearn": ""}  # and a mark of their tests


def pytest_configure(config: Any) -> None:
    """Called by the pytest that runs the tests, of which this module is a plugin."""
    if os.environ["LIBRARY_SUITE"] == "scipy":
        _put_into_scipy()
    else:
        _put_into_sklearn()


def _put_into_scipy() -> None:
    """The fixture ``xp`` has its parameters since it was made.  Integers become float32 here, as in PyTorch, of which
    SciPy knows."""
    import pytest
    import scipy._lib._array_api as helpers
    import scipy.conftest as tests

    import hybridflow as hf

    marks = pytest.mark.array_api_backends
    fixture = tests.xp
    marker = getattr(fixture, "_fixture_function_marker", None) or fixture._pytestfixturefunction
    object.__setattr__(marker, "params", (pytest.param(hf, id="hybridflow", marks=marks),))
    tests.xp_known_backends.add("hybridflow")
    default: Any = helpers.xp_default_dtype

    def default_dtype(xp: Any) -> Any:
        return xp.float32 if xp is hf else default(xp)

    for module in [m for name, m in sys.modules.items() if name.startswith("scipy.")]:
        if vars(module).get("xp_default_dtype") is default:
            vars(module)["xp_default_dtype"] = default_dtype


def _put_into_sklearn() -> None:
    import sklearn.utils._array_api as tests

    def namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
        yield "hybridflow"

    def combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, None, str]]:
        for dtype in ("float64", "float32"):
            yield "hybridflow", None, dtype

    tests.yield_namespaces = namespaces
    tests.yield_namespace_device_dtype_combinations = combinations


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0] not in LIBRARIES:
        print(__doc__)
        return 2
    library, *rest = arguments
    path = os.pathsep.join(filter(None, (str(HERE.parents[1]), str(HERE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "SCIPY_ARRAY_API": "1", "LIBRARY_SUITE": library}
    chosen = ["-m", LIBRARIES[library]] if LIBRARIES[library] else ["-k", "hybridflow"]
    command = [sys.executable, "-m", "pytest", "-p", "library_suites", "-p", "no:cacheprovider", "-q", "-rfE"]
    return subprocess.run([*command, *chosen, "--pyargs", *rest], env=environment, cwd="/").returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
