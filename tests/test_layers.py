"""The house as it was designed: every module has a level, and imports point downwards."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Levels by the longest prefix that fits.  Modules of the compiler and the runtime need an entry of their own here.
LEVELS = {
    "hybridflow.errors": 0,
    "hybridflow.flags": 0,
    "hybridflow.compiler": 1,  # the package itself, not what is in it
    "hybridflow.compiler.ir": 1,
    "hybridflow.compiler.program": 1,
    "hybridflow.compiler.target": 1,
    "hybridflow.compiler.ops": 2,
    "hybridflow.compiler.autodiff": 3,
    "hybridflow.compiler.batching": 3,
    "hybridflow.compiler.forward": 3,
    "hybridflow.compiler.passes": 3,
    "hybridflow.compiler.loops": 4,
    "hybridflow.compiler.codegen": 4,
    "hybridflow.compiler.pipeline": 5,
    "hybridflow.compiler.interpret": 5,
    "hybridflow.runtime": 6,
    "hybridflow": 7,
    "hybridflow.jit": 7,
    "hybridflow.tracing": 7,
    "hybridflow.cli": 8,
    "hybridflow.__main__": 8,
}
THIRD_PARTY = {0: set(), 4: {"numpy"}, 5: {"numpy"}, 6: {"numpy", "ml_dtypes", "llvmlite", "cupy"}}
USUAL_THIRD_PARTY = {"numpy", "ml_dtypes"}
# The runtime knows programs and targets, and nothing of the graphs that they were made from.
RUNTIME_SEES = ("hybridflow.errors", "hybridflow.flags", "hybridflow.compiler.program", "hybridflow.compiler.target")


def level(module: str) -> int:
    """The level of a module.  Raises LookupError for one of the compiler that was given none."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in LEVELS:
            if prefix == "hybridflow.compiler" and module != prefix:
                break
            if prefix == "hybridflow" and len(parts) > 2:
                break  # a new package needs an entry
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
    """(imported module, line) of every import statement, wherever it stands, less those for types only."""
    skipped: set[ast.AST] = set()
    found = []
    for node in ast.walk(ast.parse(source)):  # parents before children
        if node in skipped or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            skipped.update(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(n if n in MODULES else str(node.module), node.lineno) for n in names]
    return found


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module: str) -> None:
    own = level(module)
    wrong = []
    for name, line in imports(module, MODULES[module].read_text(encoding="utf-8")):
        place = f"{MODULES[module].relative_to(ROOT)}:{line} imports {name}"
        top = name.partition(".")[0]
        if top == "hybridflow":
            if level(name) > own:
                wrong.append(f"{place}, which lies above")
            if own == 6 and level(name) < 6 and name not in RUNTIME_SEES:
                wrong.append(f"{place}, which is none of the runtime's business")
        elif top in ("compiler", "runtime"):
            wrong.append(f"{place}: write hybridflow.{name}")
        elif top not in sys.stdlib_module_names and top not in THIRD_PARTY.get(own, USUAL_THIRD_PARTY):
            wrong.append(f"{place}, which is not among what level {own} may use")
    assert not wrong, "\n".join(wrong)


def test_every_level_is_in_use() -> None:
    unused = [name for name in LEVELS if name not in MODULES]
    assert not unused


@pytest.mark.parametrize("module", ["hybridflow.compiler.new", "hybridflow.compiler.new.part", "hybridflow.new.part"])
def test_module_without_a_level_fails(module: str) -> None:
    with pytest.raises(LookupError, match="has no level"):
        level(module)


def test_walk_finds_what_it_should() -> None:
    source = (
        "from typing import TYPE_CHECKING\nimport numpy as np\n"
        "if TYPE_CHECKING:\n    from hybridflow.tensor import Tensor\n"
        "def f():\n    from hybridflow import errors\n    import cupy\n"
    )
    assert imports("sample", source) == [("typing", 1), ("numpy", 2), ("hybridflow.errors", 6), ("cupy", 7)]


@pytest.mark.parametrize("folder", ["compiler", "runtime"])
def test_importing_the_folder_fails_at_once(folder: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode
    assert f"import hybridflow.{folder}, not the folder '{folder}'" in done.stderr
