"""The house as it was designed: every module has a level, and imports point downwards."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import hybridflow as hf
from tests.support.paths import ROOT

pytestmark = pytest.mark.code


# Levels by the longest prefix that fits.  Whatever is below ``hybridflow`` needs an entry of its own here, but for the
# modules of a room.
LEVELS = {
    "hybridflow.errors": 0,
    "hybridflow.flags": 0,
    "hybridflow.compiler": 1,  # the package itself, not what is in it
    "hybridflow.compiler.ir": 1,
    "hybridflow.compiler.program": 1,
    "hybridflow.compiler.target": 1,
    "hybridflow.compiler.ops": 2,
    "hybridflow.compiler.autodiff": 2,
    "hybridflow.compiler.batching": 2,
    "hybridflow.compiler.forward": 2,
    "hybridflow.compiler.inlining": 3,
    "hybridflow.compiler.parts": 3,
    "hybridflow.compiler.passes": 3,
    "hybridflow.compiler.loops": 4,
    "hybridflow.compiler.loops.index": 2,  # what a view does, to passes and to loops
    "hybridflow.compiler.loops.operands": 2,
    "hybridflow.compiler.codegen": 4,
    "hybridflow.compiler.pipeline": 5,
    "hybridflow.compiler.interpret": 5,
    "hybridflow.runtime": 6,  # the package itself
    "hybridflow.runtime.arguments": 6,
    "hybridflow.runtime.dtypes": 6,
    "hybridflow.runtime.apart": 6,
    "hybridflow.runtime.locks": 6,
    "hybridflow.runtime.handlers": 6,
    "hybridflow.runtime.collector": 6,
    "hybridflow.runtime.callbacks": 6,
    "hybridflow.runtime.program_host": 6,
    "hybridflow.runtime.team_words": 6,
    "hybridflow.runtime.machine": 6.1,
    "hybridflow.runtime.native": 6.2,
    "hybridflow.runtime.memory": 6.3,
    "hybridflow.runtime.threads": 6.3,
    "hybridflow.runtime.checksums": 6.3,
    "hybridflow.runtime.timing": 6.3,
    "hybridflow.runtime.background": 6.3,
    "hybridflow.runtime.interrupts": 6.3,
    "hybridflow.runtime.interrupts_code": 6.3,
    "hybridflow.runtime.tiers": 6.35,
    "hybridflow.runtime.cpu": 6.4,
    "hybridflow.runtime.cuda": 6.4,
    "hybridflow.runtime.calls": 6.5,
    "hybridflow.core": 7.0,
    "hybridflow.config": 7.0,
    "hybridflow.memory": 7.0,
    "hybridflow.eager": 7.1,
    "hybridflow.array": 7.2,
    "hybridflow.linalg": 7.2,
    "hybridflow.random": 7.2,
    "hybridflow.special": 7.65,
    "hybridflow.tree": 7.1,
    "hybridflow.tracing": 7.4,
    "hybridflow.autodiff": 7.42,
    "hybridflow.control": 7.45,
    "hybridflow.effects": 7.45,
    "hybridflow.jit": 7.5,
    "hybridflow.debugging": 7.5,
    "hybridflow.mapping": 7.55,
    "hybridflow.nn": 7.6,
    "hybridflow.data": 7.6,
    "hybridflow.losses": 7.6,
    "hybridflow.initializers": 7.7,
    "hybridflow.regularizers": 7.7,
    "hybridflow.constraints": 7.7,
    "hybridflow.metrics": 7.8,
    "hybridflow.layers": 7.8,
    "hybridflow.checkpoint": 7.3,  # knows no layer, optimizer or dataset: these follow protocols of core
    "hybridflow.saved": 7.825,
    "hybridflow.summary": 7.55,
    "hybridflow.callbacks": 7.83,
    "hybridflow.models": 7.85,
    "hybridflow.mixed_precision": 7.87,
    "hybridflow.optimizers": 7.7,
    "hybridflow": 7.9,  # the package itself: all that is public
    "hybridflow.compat": 7.88,  # the package itself, and what needs nothing public
    "hybridflow.compat.adapters": 7.95,
    "hybridflow.compat.entries": 7.96,
    "hybridflow.compat.tf": 7.99,
    "hybridflow.compat.v1": 7.995,
    "hybridflow.compat.tf.compat.v1": 7.997,
    "hybridflow.cli": 8,
    "hybridflow.__main__": 8,
}
# Those whose modules need entries of their own.
HOUSES = ("hybridflow", "hybridflow.compiler", "hybridflow.runtime")
THIRD_PARTY = {0: set(), 4: {"numpy"}, 5: {"numpy"}, 6: {"numpy", "ml_dtypes", "llvmlite", "cupy"}}
USUAL_THIRD_PARTY = {"numpy", "ml_dtypes"}
# Optional ones, each with the one module that may import it, when it is asked for what needs that.
OPTIONAL = {
    "hybridflow.callbacks.progress": {"tqdm"},
    "hybridflow.compat.adapters.keras_names": {"PIL"},
    "hybridflow.models.drawing": {"pydot"},
    "hybridflow.runtime.cuda.cublaslt": {"cuda", "nvmath"},
    "hybridflow.summary.events": {"tensorboardX"},
}
# The runtime knows programs and targets, and nothing of the graphs that they were made from.
RUNTIME_SEES = ("hybridflow.errors", "hybridflow.flags", "hybridflow.compiler.program", "hybridflow.compiler.target")


def level(module: str) -> float:
    """The level of a module.  Raises LookupError for one that was given none."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in HOUSES and prefix != module:
            break
        if prefix in LEVELS:
            return LEVELS[prefix]
    raise LookupError(f"{module} has no level: say in LEVELS where it belongs")


def modules() -> dict[str, Path]:
    """Every module by name."""
    found = {}
    for folder, _, files in os.walk(ROOT / "hybridflow", followlinks=True):
        for name in files:
            if name.endswith(".py"):
                path = Path(folder, name)
                parts = path.relative_to(ROOT).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(module: str, source: str) -> list[tuple[str, int]]:
    """(imported module, line) of every import statement, wherever it stands, and be it for types only."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(n if n in MODULES else str(node.module), node.lineno) for n in names]
    return found


@functools.cache
def imports_of(module: str) -> list[tuple[str, int]]:
    """The same of a module of the package."""
    return imports(module, MODULES[module].read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module: str) -> None:
    own = level(module)
    wrong = []
    for name, line in imports_of(module):
        place = f"{MODULES[module].relative_to(ROOT)}:{line} imports {name}"
        top = name.partition(".")[0]
        if top == "hybridflow":
            if level(name) > own:
                wrong.append(f"{place}, which lies above")
            if 6 <= own < 7 and level(name) < 6 and name not in RUNTIME_SEES:
                wrong.append(f"{place}, which is none of the runtime's business")
        elif top in ("compiler", "runtime"):
            wrong.append(f"{place}: write hybridflow.{name}")
        elif top not in sys.stdlib_module_names and top not in (
            THIRD_PARTY.get(int(own), USUAL_THIRD_PARTY) | OPTIONAL.get(module, set())
        ):
            wrong.append(f"{place}, which is not among what level {own} may use")
    assert not wrong, "\n".join(wrong)


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The sets of modules that import each other, however indirectly."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for name in edges[module]:
            if name not in order:
                visit(name)
            if name in stack:
                lowest[module] = min(lowest[module], lowest[name])
        if lowest[module] == order[module]:
            place = stack.index(module)
            if len(stack) - place > 1:
                found.append(sorted(stack[place:]))
            del stack[place:]

    for module in edges:
        if module not in order:
            visit(module)
    return found


@pytest.mark.slow
def test_no_two_modules_import_each_other() -> None:
    assert not circles({m: [name for name, _ in imports_of(m) if name in MODULES] for m in MODULES})


def test_circles_are_found() -> None:
    edges = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": [], "f": ["f"]}
    assert circles(edges) == [["a", "b", "c"]]


def test_rooms_have_names_of_their_own() -> None:
    rooms = [m.rpartition(".")[2] for m, path in MODULES.items() if path.name == "__init__.py" and m.count(".") == 1]
    public = {name for name in hf.__all__ if not isinstance(getattr(hf, name), types.ModuleType)}
    assert public.intersection(rooms) == {"eager"}  # a room that is loaded, and hidden, before the function is
    assert len(set(rooms)) == len(rooms)


def test_constants_of_modules_have_one_value() -> None:
    twice = []
    for module, path in MODULES.items():
        seen: set[str] = set()
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            targets: list[ast.expr] = []
            if isinstance(statement, ast.Assign):
                targets = statement.targets
            elif isinstance(statement, ast.AnnAssign):
                targets = [statement.target]
            for name in [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]:
                if name in seen:
                    twice.append((module, name))
                seen.add(name)
    assert not twice


def test_every_level_is_in_use() -> None:
    unused = [name for name in LEVELS if name not in MODULES]
    assert not unused


@pytest.mark.parametrize(
    "module",
    ["hybridflow.compiler.new", "hybridflow.compiler.new.part", "hybridflow.new", "hybridflow.runtime.new.part"],
)
def test_module_without_a_level_fails(module: str) -> None:
    with pytest.raises(LookupError, match="has no level"):
        level(module)


def test_walk_finds_what_it_should() -> None:
    source = (
        "from typing import TYPE_CHECKING\nimport numpy as np\n"
        "if TYPE_CHECKING:\n    from hybridflow.core.tensor import Tensor\n    import hybridflow as hf\n"
        "def f():\n    from hybridflow import errors\n    import cupy\n"
    )
    assert sorted(imports("sample", source)) == [
        ("cupy", 8),
        ("hybridflow", 5),
        ("hybridflow.core.tensor", 4),
        ("hybridflow.errors", 7),
        ("numpy", 2),
        ("typing", 1),
    ]


@pytest.mark.parametrize("folder", ["compiler", "runtime"])
def test_importing_the_folder_fails_at_once(folder: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode
    assert f"import hybridflow.{folder}, not the folder '{folder}'" in done.stderr


PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = ("", "compiler", "runtime", "hybridflow", "hybridflow/jit", "hybridflow/tracing")


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_files_that_prose_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page.read_text(encoding="utf-8"))
    assert not [name for name in named if not any((ROOT / room / name).exists() for room in ROOMS)]


def test_nobody_asks_for_the_frames_of_all_threads() -> None:
    """CPython 3.11 holds the list of threads while it makes them, which may set off a collection: where that frees a
    ``threading.local``, it waits for that list for good."""
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES.values()
        if re.search("_current_(frames|exceptions)", text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("_current_frames", "_current_exceptions")
    ]
    assert not calls


def test_tests_stand_in_rooms() -> None:
    """Each with a name of its own, by which people speak of it and runs are ordered."""
    modules = [path for path in (ROOT / "tests").rglob("test_*.py") if "data" not in path.parts]
    assert not [path.name for path in modules if path.parent.name in ("tests", "support")]
    assert len({path.name for path in modules}) == len(modules)
