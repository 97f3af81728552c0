"""What a traced function reads from outside, and writes there: each program gives what it gives eagerly, at each call.

The programs are in ``guard_programs``, what runs them in ``guard_lab``.
"""

from __future__ import annotations

import functools
import pathlib
import tempfile

import pytest

from tests import guard_lab
from tests.guard_lab import Lab, Probe, difference

PROBES = guard_lab.read_probes()
PLACES = ["folder", "site-packages", "exec", "console"]


def run(probe: Probe, way: str, place: str) -> Lab:
    with tempfile.TemporaryDirectory() as folder:
        return guard_lab.run(probe, way, place, pathlib.Path(folder))


@functools.cache
def eagerly(probe: Probe) -> Lab:
    return run(probe, "eager", "folder")


def cases(places: list[str], probes: list[Probe] = PROBES) -> list[object]:
    return [
        pytest.param(probe, place, id=f"{place}-{probe.id}")
        for place in places
        for probe in probes
        if not (place == "console" and "module" in probe.flags)
    ]


@pytest.mark.parametrize("probe, place", cases(PLACES))
def test_agrees_with_eager(probe: Probe, place: str) -> None:
    problem = difference(eagerly(probe), run(probe, "graph", place))
    assert problem is None, f"{problem}\n\n{probe.text}"
