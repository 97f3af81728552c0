"""What the programs in ``tf_programs`` found, as text; run as a program, under TensorFlow, it records that.

``python tests/support/tf_results.py`` writes ``tf_programs/expected.json`` with what TensorFlow itself says (2.21 did).
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

PROGRAMS = Path(__file__).resolve().parents[1] / "data" / "tf_programs"
EXPECTED = PROGRAMS / "expected.json"


def plain(value: Any) -> Any:
    """Nested results as what JSON knows: arrays become lists, NumPy's numbers Python's."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "numpy"):
        return plain(value.numpy())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return float(f"{value:.9g}") if isinstance(value, float) else value


def main(names: list[str]) -> None:
    """Run all programs, or those named, as they are."""
    found = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    there = {path.stem for path in PROGRAMS.glob("*.py")}
    for name in sorted(names or there):
        found[name] = plain(runpy.run_path(str(PROGRAMS / f"{name}.py"))["RESULT"])
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(there)]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    main(sys.argv[1:])
