"""Programs of ``guard_programs`` in processes of their own: installed into a ``site-packages`` folder, given to
``python -c``, as a script on standard input, and typed into ``python -i``.

Many run in one process, one after the other, in its ``__main__``; each leaves a line of JSON behind.
"""

from __future__ import annotations

import ast
import contextlib
import json
import pathlib
import subprocess
import sys
import venv
from typing import Any

from tests.support import guard_lab
from tests.support.guard_lab import Lab, Outcome, Probe
from tests.support.paths import ROOT

SECONDS = 900  # on a busy machine
TOGETHER = 80  # programs in one process


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
        write(lab, self.results)


def write(lab: Lab, results: str) -> None:
    """Adds the outcome of a program that has run."""
    entry = lab.probe.id, repr(lab.log), lab.complaints, lab.refused
    with open(results, "a") as out:
        out.write(json.dumps(entry) + "\n")


def fits(probe: Probe) -> bool:
    """Whether the program can share a process: plain programs, and a share of those with effects."""
    alone = "module" in probe.flags or "module(" in probe.text or "output" in probe.text
    return not alone and ("cached" in probe.flags or probe.kind == "effects")


def run(probes: list[Probe], way: str, results: pathlib.Path) -> dict[str, Outcome]:
    """The outcomes by program of processes that run many each.

    A function of a program that is typed is looked for among all of its name: not too many at once.
    """
    found: dict[str, Outcome] = {}
    for first in range(0, len(probes), TOGETHER):
        found |= _run_together(probes[first : first + TOGETHER], way, results.with_suffix(f".{first}"))
    return found


def _run_together(probes: list[Probe], way: str, results: pathlib.Path) -> dict[str, Outcome]:
    setup = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tests.support.guard_batch\n"
        f"_batch = tests.support.guard_batch.Batch(globals(), {str(results)!r})\n"
    )
    form = guard_lab.typed if way == "typed" else str
    text = setup + "".join(f"_batch.begin({probe.id!r})\n{form(probe.text)}\n" for probe in probes) + "_batch.end()\n"
    arguments = {"command": ["-c", text], "input": ["-"], "typed": ["-i", "-q"]}[way]
    return _outcomes([sys.executable, *arguments], results, "" if way == "command" else text)


def run_installed(folder: pathlib.Path) -> dict[str, Outcome]:
    """The outcomes of all programs, each a module in the ``site-packages`` folder of an environment made for them."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    known = [str(ROOT), *(path for path in sys.path if "site-packages" in path)]
    (packages / "known.pth").write_text("\n".join(known))
    arguments = f"{str(packages)!r}, {str(folder / 'results')!r}"
    text = f"from tests.support import guard_batch; guard_batch.run_all({arguments})"
    return _outcomes([str(python), "-c", text], folder / "results", "")


def run_all(folder: str, results: str) -> None:
    """In the other process: all programs as modules of this folder."""
    for probe in guard_lab.read_probes():
        with contextlib.suppress(RuntimeError):
            write(guard_lab.run(probe, "graph", "folder", pathlib.Path(folder)), results)


def _outcomes(command: list[str], results: pathlib.Path, text: str) -> dict[str, Outcome]:
    given = results.with_name(f"{results.name}.in")  # a file: what comes through a pipe is gone once it is read
    given.write_text(text)
    with given.open() as stdin:
        process = subprocess.run(
            command, stdin=stdin, capture_output=True, text=True, timeout=SECONDS, cwd=results.parent
        )
    lines = results.read_text().splitlines() if results.exists() else []
    assert lines, process.stderr[-4000:]
    entries = map(json.loads, lines)
    return {name: Outcome(ast.literal_eval(log), complaints, refused) for name, log, complaints, refused in entries}
