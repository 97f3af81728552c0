"""The suite of benchmarks runs, compares and reports; that its figures are good nobody checks here."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf
from benchmarks import cliffs
from benchmarks.suite import __main__ as suite, measuring, picture, report
from benchmarks.suite.case import Draw, Filter, leaves, mapped
from benchmarks.suite.libraries import SIDES, NotOffered, NumPy
from benchmarks.suite.programs import CASES, KIND_OF, KINDS

pytestmark = pytest.mark.code


@pytest.mark.slow
@pytest.mark.code
def test_a_run_without_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, drawing = tmp_path / "found.json", tmp_path / "found.svg"
    given = ["--quick", "--peers", "numpy", "--only", "x + 1, 16", "dict of 10", "single matmul 4x4"]
    assert suite.main([*given, "--json", str(figures), "--picture", str(drawing)]) == 0
    found = json.loads(figures.read_text())
    assert set(found["programs"]) == {"x + 1, 16", "dict of 10 arrays", "single matmul 4x4"}
    for row in found["programs"].values():
        ours = row["sides"]["hybridflow"]
        assert {side: answer["state"] for side, answer in row["sides"].items()} == dict.fromkeys(
            found["sides"], "ready"
        )
        assert 0 < ours["low"] <= ours["median"] <= ours["high"] and ours["first"] > 0
        assert ours["temporary"] is not None and ours["operations"] > 0 and ours["bytes"] > 0
        assert row["best"] == "numpy" and row["ratio"] == row["sides"]["numpy"]["median"] / ours["median"]
    assert found["summary"]["programs"] == found["summary"]["compared"] == 3
    bars = xml.parse(drawing).getroot()
    assert bars.tag.endswith("svg") and "dict of 10 arrays" in "".join(bars.itertext())
    assert "geometric mean over 3 of 3 programs" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.code
def test_calls_and_pieces_are_compared_with_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    before = hf.config.get_num_threads()
    try:
        cliffs.main(["--only", "rows added to 64 sums,softmax 1000x1000", "--json"])
    finally:
        hf.config.set_num_threads(before)
    for row in json.loads(capsys.readouterr().out):
        assert row["call"] > 0 and row["kernels"] > 0 and row["pieces"] > 0 and row["kernel"] >= 1 and row["worst"]


def test_a_cliff_is_what_threads_cannot_make_up_for() -> None:
    fine = cliffs.Row("p", call=100e-6, kernels=90e-6, pieces=140e-6, kernel=1.6, worst="sum")
    assert not fine.cliffs(2)
    assert len(dataclasses.replace(fine, call=130e-6).cliffs(2)) == 1
    assert len(dataclasses.replace(fine, kernel=2.5).cliffs(2)) == 1 and not dataclasses.replace(
        fine, kernel=2.5
    ).cliffs(3)


def test_there_are_programs_of_all_kinds_under_one_name_each() -> None:
    assert len(CASES) >= 60 and len(CASES) == sum(map(len, KINDS.values()))
    assert set(KIND_OF.values()) == set(KINDS)


@pytest.mark.parametrize(
    "part, wrong",
    [([1.0, 2.0], ""), ([1.0, 2.00001], ""), ([1.0, 2.1], "1 of 2"), ([1.0, np.nan], "1 of 2"), ([1.0], "shape")],
)
def test_results_are_compared(part: list[float], wrong: str) -> None:
    found = measuring._difference([np.array(part)], [np.array([1.0, 2.0])], 1e-4)
    assert (wrong in found) if wrong else not found
    assert "results" in measuring._difference([], [np.zeros(1)], 1e-4)


def test_the_geometric_mean_and_what_is_slower() -> None:
    def row(ours: float, numpy: float | None) -> dict[str, object]:
        sides = {"hybridflow": {"state": "ready", "median": ours}, "eager": {"state": "ready", "median": 1.0}}
        if numpy is not None:
            sides["numpy"] = {"state": "ready", "median": numpy}
        found = {"kind": "moving", "sides": sides}
        measuring._judged(found)
        return found

    programs = {"fast": row(0.5, 2.0), "slow": row(2.0, 0.5), "alone": row(1.0, None)}
    found = report.summary(programs)
    assert found["geometric mean"] == pytest.approx(1.0) and found["compared"] == 2
    assert found["below 0.95"] == found["slower than eager"] == found["slower than numpy"] == ["slow"]
    programs["fast"]["sides"]["hybridflow"] |= {"operations": 10**9, "bytes": 10**8}  # type: ignore[index]
    limits = {"all": {"read": 1e10, "copy": 1e10, "flops": 1e11}}
    drawn = xml.fromstring(picture.svg({"programs": programs, "threads": 1, "limits": limits, "summary": found}))
    assert [e.get("fill") for e in drawn.iter() if e.text == "slow"] == ["#c00"]
    assert [e.text for e in drawn.findall(".//{*}circle/{*}title")] == ["fast"]


def test_trees_of_arguments() -> None:
    tree = {"b": [1, (2,)], "a": 3}
    assert mapped(lambda x: x + 1, tree) == {"b": [2, (3,)], "a": 4}
    assert leaves(tree) == [3, 1, 2]
    assert isinstance(mapped(lambda x: x, [Filter(np.zeros(1))])[0], Filter)


def test_what_a_library_lacks_is_not_a_failure() -> None:
    with pytest.raises(NotOffered):
        NumPy(1).top(np.zeros(3), 1)
    assert set(suite.PEERS) < set(SIDES)
    with pytest.raises(SystemExit):
        suite.parsed(["--peers", "abacus"])
    with pytest.raises(SystemExit):
        suite.parsed(["--only", "no such program"])


def test_arguments_are_the_same_in_each_process() -> None:
    first, second = (leaves(CASES["tree of 50 arrays"].arguments(Draw())) for _ in range(2))
    assert len(first) == 50
    assert all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))


SCRIPTS = sorted(path.name for path in Path(measuring.__file__).resolve().parent.parent.glob("[a-z]*.py"))


@pytest.mark.code
@pytest.mark.parametrize("script", SCRIPTS)
def test_other_benchmarks_find_what_they_import(script: str) -> None:
    path = Path(measuring.__file__).resolve().parent.parent / script
    # As a user starts it: what the path of these tests adds would hide that a script misses its own.
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, timeout=300, env=bare)
    assert done.returncode == 0 and "usage:" in done.stdout, done.stderr
