"""Programs of ``guard_programs`` given to ``python -c``, as a script on standard input, and typed into ``python -i``.

Many run in one process, one after the other, in its ``__main__``; each leaves a line of JSON behind.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
from typing import Any

from tests import guard_lab
from tests.guard_lab import Lab, Probe

ROOT = pathlib.Path(__file__).parent.parent
SECONDS = 120


class Batch:
    """Lives in the other process: what stands between two programs."""

    def __init__(self, space: dict[str, Any], results: str) -> None:
        self.space, self.results = space, results
        self.probes = {probe.id: probe for probe in guard_lab.read_probes()}
        self.lab: Lab | None = None
        self.running = contextlib.ExitStack()

    def begin(self, name: str) -> None:
        """Ends the program before, and gives the one of this name an empty ``__main__``."""
        self.end()
        for key in [key for key in self.space if not key.startswith("_")]:
            del self.space[key]
        self.lab = Lab(self.probes[name], "graph")
        self.space.update(self.lab.names())
        self.running.enter_context(self.lab.running())

    def end(self) -> None:
        lab, self.lab = self.lab, None
        if lab is None:
            return
        self.running.close()
        entry = {
            "name": lab.probe.id,
            "log": list(map(repr, lab.log)),
            "refused": lab.refused,
            "complaints": lab.complaints,
        }
        with open(self.results, "a") as out:
            out.write(json.dumps(entry) + "\n")


def fits(probe: Probe) -> bool:
    """Whether the program can share a process: plain programs, and a share of those with effects."""
    alone = "module" in probe.flags or "module(" in probe.text or "output" in probe.text
    return not alone and ("cached" in probe.flags or probe.kind == "effects")


def run(probes: list[Probe], way: str, results: pathlib.Path) -> dict[str, dict[str, Any]]:
    """The entries by program of one process that runs them all."""
    setup = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tests.guard_batch\n"
        f"_batch = tests.guard_batch.Batch(globals(), {str(results)!r})\n"
    )
    write = guard_lab.typed if way == "typed" else str
    text = setup + "".join(f"_batch.begin({probe.id!r})\n{write(probe.text)}\n" for probe in probes) + "_batch.end()\n"
    arguments = {"command": ["-c", text], "input": ["-"], "typed": ["-i", "-q"]}[way]
    process = subprocess.run(
        [sys.executable, *arguments],
        input="" if way == "command" else text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=results.parent,
    )
    lines = results.read_text().splitlines() if results.exists() else []
    entries = {entry["name"]: entry for entry in map(json.loads, lines)}
    assert entries, process.stderr[-4000:]
    return entries


def difference(eager: Lab, entry: dict[str, Any] | None) -> str | None:
    """What differs from the eager run, in words; None if nothing does."""
    if entry is None:
        return "did not run to its end"
    if entry["complaints"]:
        return str(entry["complaints"])
    want, got = list(map(repr, eager.log)), entry["log"]
    if got == want or (entry["refused"] and got == want[: len(got)]):
        return None
    return f"{got}, eagerly {want}"
