"""Programs written for TensorFlow, run after changing the import, find what TensorFlow finds."""

from __future__ import annotations

import json
import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.support.tf_results import EXPECTED, PROGRAMS, plain

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
RECORDED = json.loads(EXPECTED.read_text(encoding="utf-8"))


def ported(text: str) -> str:
    """A program with its imports changed, and nothing else."""
    text = re.sub(r"^import tensorflow\b", "import hybridflow.compat.tf", text, flags=re.M)
    return re.sub(r"^from tensorflow\b", "from hybridflow.compat.tf", text, flags=re.M)


def assert_like(found: Any, wanted: Any, place: str) -> None:
    """Equal but for rounding: numbers within 1e-4 of their size, or of 1e-5."""
    assert isinstance(found, bool) == isinstance(wanted, bool), f"{place}: {found!r}, recorded {wanted!r}"
    if isinstance(wanted, dict):
        assert sorted(found) == sorted(wanted), place
        for key in wanted:
            assert_like(found[key], wanted[key], f"{place}[{key!r}]")
    elif isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), f"{place}: {found!r}, recorded {wanted!r}"
        for k, (one, other) in enumerate(zip(found, wanted)):
            assert_like(one, other, f"{place}[{k}]")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-4, abs=1e-5, nan_ok=True), place
    else:
        assert found == wanted, f"{place}: {found!r}, recorded {wanted!r}"


@pytest.mark.code
@pytest.mark.parametrize("name", NAMES)
def test_program(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text(ported((PROGRAMS / f"{name}.py").read_text(encoding="utf-8")), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of models that are fit without callbacks and the like
        result = runpy.run_path(str(path))["RESULT"]
    assert_like(plain(result), RECORDED[name], name)


def test_each_program_has_a_record() -> None:
    assert sorted(RECORDED) == NAMES
