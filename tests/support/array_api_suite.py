"""Run the public suite of the Python array API standard (github.com/data-apis/array-api-tests) on hybridflow.

    python tests/support/array_api_suite.py PATH [arguments of pytest]

``PATH`` is a checkout of the suite with its submodule; it is copied, and never written to.  The suite needs pytest,
hypothesis and ndindex.  ``array_api_left_out.txt`` says which tests are left out, with reasons.
``ARRAY_API_TESTS_VERSION`` picks another version of the standard than that which hybridflow declares.  What is printed
at the end is pytest's own count.

Where the standard lets libraries choose between two results ("libraries may return ``NaN`` to match Python behavior",
of ``//`` with infinities), the suite asks for the first one.  Python's is NumPy's and ours, and is what the copy asks
for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The suite reads the results of special cases from the text of the standard.
_CHOICE = re.compile(
    r"the result is ``[^`]*``\. \(\*\*note\*\*: libraries may return ``([^`.]*)(?:\.0)?`` to match Python behavior\.\)"
)


def left_out() -> list[tuple[str, str]]:
    """(part of a test's name, reason) pairs."""
    lines = (ROOT / "tests" / "data" / "array_api_left_out.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.rpartition(": ") for line in lines if line and not line.startswith("#")]
    return [(name, reason) for name, _, reason in pairs]


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Called by the pytest that runs the suite, of which this module is a plugin."""
    import pytest

    pairs = left_out()
    for item in items:
        for name, reason in pairs:
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))
                break


def prepared(suite: Path, folder: Path) -> Path:
    """A copy of the suite that knows which choices were made."""
    copy = folder / "suite"
    shutil.copytree(suite, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", ".hypothesis"))
    for module in (copy / "array-api" / "src" / "array_api_stubs").rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        module.write_text(_CHOICE.sub(r"the result is ``\1``.", text), encoding="utf-8")
    return copy


def main(arguments: list[str]) -> int:
    if not arguments or not (Path(arguments[0]) / "array_api_tests").is_dir():
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        copy = prepared(Path(arguments[0]).resolve(), Path(folder))
        path = os.pathsep.join(filter(None, (str(ROOT), str(HERE), os.environ.get("PYTHONPATH"))))
        environment = {
            "ARRAY_API_TESTS_VERSION": "2025.12",
            **os.environ,
            "PYTHONPATH": path,
            "ARRAY_API_TESTS_MODULE": "hybridflow",
        }
        options = ["-p", "array_api_suite", "--disable-deadline", "--continue-on-collection-errors", "-q", "-rfE"]
        command = [sys.executable, "-m", "pytest", *options, "array_api_tests", *arguments[1:]]
        return subprocess.run(command, cwd=copy, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
