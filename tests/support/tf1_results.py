"""What the programs in ``tf1_printed`` print; run as a program, under TensorFlow, it records that.

``python tests/support/tf1_results.py`` writes a text beside each program with what TensorFlow itself prints (2.21 did).
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "data" / "tf1_printed"


def printed(path: Path) -> str:
    """What a program prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
    return out.getvalue()


def main(names: list[str]) -> None:
    """Run all programs, or those named, as they are."""
    for path in sorted(PROGRAMS.glob("*.py")):
        if not names or path.stem in names:
            told = subprocess.run(
                [sys.executable, "-W", "ignore", str(path)], capture_output=True, text=True, check=True
            )
            path.with_suffix(".txt").write_text(told.stdout, encoding="utf-8")


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    main(sys.argv[1:])
