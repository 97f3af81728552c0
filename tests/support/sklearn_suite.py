"""Run scikit-learn's own tests of estimators and metrics that take arrays of any library, on tensors.

    python tests/support/sklearn_suite.py [arguments of pytest, such as -c /dev/null --tb=line]

scikit-learn draws its tests for libraries that it knows by name; here the one is hybridflow, in float64 and float32.
What is printed at the end is pytest's own count, which is of tests on tensors alone.

Of scikit-learn 1.9 eleven of 961 fail, as tensors are immutable: ``brier_score_loss``, ``additive_chi2_kernel`` and
``chi2_kernel`` write to arrays that share a tensor's memory, or hand them to code that asks for ones to write to.
Mixtures with full covariances that begin at random write to a part of a tensor, and expect the whole to change.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DRAWN = ("yield_namespace_device_dtype_combinations", "yield_namespaces", "yield_mixed_namespace_input_permutations")


def _combinations(**options: Any) -> Iterator[tuple[str, None, str]]:
    for dtype in ("float64", "float32"):
        yield "hybridflow", None, dtype


def _namespaces(**options: Any) -> Iterator[str]:
    yield "hybridflow"


def pytest_configure(config: Any) -> None:
    """Called by the pytest that runs the suite, of which this module is a plugin."""
    import importlib

    library = importlib.import_module("sklearn.utils._array_api")
    library.yield_namespace_device_dtype_combinations = _combinations  # type: ignore[attr-defined]
    library.yield_namespaces = _namespaces  # type: ignore[attr-defined]


def modules() -> list[str]:
    """Those of scikit-learn's modules of tests that draw libraries."""
    import importlib.util

    found = importlib.util.find_spec("sklearn")
    assert found is not None and found.origin is not None
    files = sorted(Path(found.origin).parent.rglob("tests/test_*.py"))
    return [str(file) for file in files if any(name in file.read_text(encoding="utf-8") for name in DRAWN)]


def main(arguments: list[str]) -> int:
    path = os.pathsep.join(filter(None, (str(ROOT), str(HERE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "sklearn_suite", "-q", "-rfE", "-k", "hybridflow", *modules()]
    return subprocess.run([*command, *arguments], env=environment, cwd=HERE).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
