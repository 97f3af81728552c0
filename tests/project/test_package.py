"""What gets installed, and what importing it costs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import hybridflow
from tests.support.paths import ROOT

BESIDE = {"hybridflow/py.typed", "hybridflow/__init__.pyi"}  # what the package has beside its source files
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def source_files() -> set[str]:
    """Every Python file of the package, as it is imported."""
    found = set()
    for folder, _, names in os.walk(ROOT / "hybridflow", followlinks=True):
        found |= {str(Path(folder, name).relative_to(ROOT)) for name in names if name.endswith(".py")}
    return found


def python(source: str, cwd: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """A program in a fresh interpreter that sees nothing but the given paths and what is installed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run([sys.executable, "-c", source], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, built in a copy of the repository without a network."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("hybridflow", "compiler", "runtime"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True)  # makes the sdist, and the wheel from it
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_pyproject_lists_every_package() -> None:
    packages = {str(Path(name).parent).replace(os.sep, ".") for name in source_files()}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(packages)


def test_one_version() -> None:
    assert hybridflow.__version__ == PROJECT["project"]["version"]


def test_links_are_the_only_ones() -> None:
    links = [p.name for p in (ROOT / "hybridflow").iterdir() if p.is_symlink()]
    assert sorted(links) == ["compiler", "runtime"]


@pytest.mark.code
def test_wheel_holds_each_file_once(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"hybridflow-{hybridflow.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert not any(info.external_attr >> 28 == 0o12 for info in archive.infolist()), "a link"
    assert len(names) == len(set(names))
    inside = {name for name in names if ".dist-info/" not in name}
    assert inside == source_files() | BESIDE
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert wheel.stat().st_size < 12 << 18


@pytest.mark.code
def test_sdist_holds_plain_files(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert all(m.isfile() or m.isdir() for m in members)
    inside = {m.name.partition("/")[2] for m in members if m.isfile()}
    assert source_files() | BESIDE | {"pyproject.toml", "README.md", "LICENSE"} <= inside
    assert not any(name.startswith(("compiler/", "runtime/")) for name in inside), "every file twice"


@pytest.mark.code
def test_installed_wheel_runs_from_an_empty_folder(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    done = python(
        "import hybridflow as hf\n"
        "f = hf.function(lambda x: hf.sum(x * x))\n"
        "print(f(hf.asarray([1.0, 2.0, 3.0])).item(), hf.__file__)",
        empty,
        site,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["14.0", str(site / "hybridflow" / "__init__.py")]


def test_import_prints_nothing(tmp_path: Path) -> None:
    done = python("import hybridflow", tmp_path, ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


LATER = (
    *("autodiff", "cli", "compiler.codegen", "compiler.loops", "compiler.passes"),
    *("control", "jit", "nn", "optimizers", "random", "tracing"),
)


def test_import_loads_no_compiler_and_few_modules(tmp_path: Path) -> None:
    """What a first operation does without is loaded when something needs it."""
    source = (
        "import numpy, sys; before = set(sys.modules)\n"
        "import hybridflow as hf; x = hf.ones(3); v = hf.Variable(x + 1); v.assign_add(x * v)\n"
        "print(*set(sys.modules) - before)"
    )
    loaded = python(source, tmp_path, ROOT).stdout.split()
    assert "hybridflow.core.tensor" in loaded
    heavy = [name for name in loaded if re.match(r"llvmlite|cupy|unittest|asyncio|sqlite3|http|email|logging", name)]
    assert not heavy
    ours = [name for name in loaded if name.startswith("hybridflow")]
    assert len(ours) <= 136, "importing grows: load what only some need when they need it"
    later = tuple(f"hybridflow.{name}" for name in LATER)
    assert not [name for name in ours if name.startswith(later)]


OF_MODELS = ("callbacks", "checkpoint", "compat", "data", "initializers", "layers", "losses", "metrics", "models")
OF_MODELS += ("onnx", "optimizers", "regularizers", "saved", "summary")


def test_a_first_call_loads_nothing_of_models(tmp_path: Path) -> None:
    """What a function does without is loaded when something needs it: here nothing has been compiled before."""
    source = (
        "import numpy, sys, hybridflow as hf; before = set(sys.modules)\n"
        "f = hf.function(lambda x: hf.exp(x) * 2 + 1); x = hf.ones(8); print(*set(sys.modules) - before)\n"
        "before = set(sys.modules); f(x); f(x); print(*set(sys.modules) - before)"
    )
    script = tmp_path / "first.py"
    script.write_text(source)
    program = f"import os, runpy; os.environ['HF_CACHE_DIR'] = {str(tmp_path)!r}; runpy.run_path({str(script)!r})"
    made, called = (line.split() for line in python(program, tmp_path, ROOT).stdout.splitlines())
    heavy = r"(logging|socket|multiprocessing|concurrent|hmac|csv)$"
    assert not [name for name in made + called if re.match(heavy, name)]
    assert not {f"hybridflow.{name}" for name in OF_MODELS} & {*made, *called}
    ours = [sum(name.startswith("hybridflow") for name in names) for names in (made, called)]
    assert "hybridflow.jit.function" in made and "hybridflow.compiler.pipeline" in called
    assert ours[0] <= 246 and ours[1] <= 176, "first calls load more: what only some need, when they need it"


def test_a_trace_may_be_the_first_to_meet_a_module(tmp_path: Path) -> None:
    """It is traced once, and its calls are native ones."""
    names = (*OF_MODELS, "constraints", "mixed_precision", "Input", "Model", "Module", "Sequential", "plot_model")
    lines = ["import sys, hybridflow as hf", "x = hf.ones(3)"]
    for name in names:
        lines += [
            *("@hf.function", "def f(x):", f"    return x + (1.0 if hf.{name} is not None else 2.0)"),
            "results = [float(f(x)[0]) for _ in range(4)]",
            f"assert hf.{name} is not None and results == [2.0] * 4, results",
            f"print({name!r}, f.signatures()[0]['hits'], len(f.signatures()))",
        ]
    lines += [
        *("@hf.function", "def g(x):", "    return hf.losses.mean_squared_error(x, x) + hf.nn.relu(x)[0]"),
        "print('g', float(g(x)), float(g(x)), len(g.signatures()))",
    ]
    script = tmp_path / "met.py"
    script.write_text("\n".join(lines))
    done = python(f"import runpy; runpy.run_path({str(script)!r})", tmp_path, ROOT)
    assert done.stdout.splitlines() == [f"{name} 3 1" for name in names] + ["g 1.0 1.0 1"], done.stderr
