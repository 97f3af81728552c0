"""The import hook, on a package that looks like Keras where the hook looks, each in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.paths import ROOT

CHOICE = """
def backend():
    return "hybridflow"

if backend() == "jax":
    raise AssertionError("another backend")
elif backend() == "numpy":
    from keras.src.backend.numpy.layer import NumpyLayer as BackendLayer
else:
    raise RuntimeError("no such backend")
"""


def written(folder: Path, layer: str, version: str | None = None) -> None:
    """A package ``keras`` with the module that chooses a layer."""
    for part in ("keras", "keras/src", "keras/src/layers"):
        (folder / part).mkdir()
        (folder / part / "__init__.py").touch()
    (folder / "keras/src/layers/layer.py").write_text(layer, encoding="utf-8")
    if version is not None:
        info = folder / f"keras-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: keras\nVersion: {version}\n", encoding="utf-8")


def said(folder: Path, program: str, backend: str = "hybridflow") -> str:
    paths = os.pathsep.join([str(folder), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "KERAS_BACKEND": backend}
    done = subprocess.run(
        [sys.executable, "-S", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    return done.stdout + done.stderr


IMPORT_HOOK = str(ROOT / "hybridflow" / "keras_backend" / "import_hook.py")
HOOK = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("import_hook", {IMPORT_HOOK!r})
hook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hook)
hook._HERE = "ours"
hook.install()
hook.install()
assert sum(type(finder).__name__ == "_Finder" for finder in sys.meta_path) == 1
"""


def test_the_branch_is_added_in_memory(tmp_path: Path) -> None:
    written(tmp_path, CHOICE, "3.14.0")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").touch()
    (tmp_path / "ours" / "layer.py").write_text("class Layer: pass\n", encoding="utf-8")
    before = (tmp_path / "keras/src/layers/layer.py").read_bytes()
    program = HOOK + "import keras.src.layers.layer as chosen\nprint(chosen.BackendLayer)"
    assert said(tmp_path, program) == "<class 'ours.layer.Layer'>\n"
    assert (tmp_path / "keras/src/layers/layer.py").read_bytes() == before


@pytest.mark.parametrize(
    ("layer", "version", "reason"),
    [
        (CHOICE, "3.11.3", "needs Keras from 3.12 on and before 3.16; this is 3.11.3"),
        (CHOICE, "4.0", "needs Keras from 3.12 on and before 3.16; this is 4.0"),
        ("BackendLayer = object", "3.14.0", "keras.src.layers.layer does not choose between backends"),
    ],
    ids=["older", "newer", "other source"],
)
def test_other_versions_are_refused(tmp_path: Path, layer: str, version: str, reason: str) -> None:
    written(tmp_path, layer, version)
    assert reason in said(tmp_path, HOOK + "import keras.src.layers.layer")


def test_another_backend_is_left_alone(tmp_path: Path) -> None:
    written(tmp_path, "BackendLayer = object", "2.0")
    program = (
        "import os\nos.environ['KERAS_BACKEND'] = 'jax'\n" + HOOK + "import keras.src.layers.layer\nprint('loaded')"
    )
    assert said(tmp_path, program) == "loaded\n"


def test_keras_that_was_imported_before_is_refused(tmp_path: Path) -> None:
    program = "import sys, types\nconfig = types.ModuleType('config')\nconfig.backend = lambda: 'jax'\n"
    program += "sys.modules['keras.src.backend.config'] = config\n" + HOOK
    assert "import hybridflow.keras_backend before keras" in said(tmp_path, program)


def test_an_import_that_failed_before_does_not_matter(tmp_path: Path) -> None:
    written(tmp_path, CHOICE, "3.14.0")
    program = "import sys, types\nconfig = types.ModuleType('config')\nconfig.backend = lambda: 'hybridflow'\n"
    program += "sys.modules['keras.src.backend.config'] = config\n" + HOOK
    assert said(tmp_path, program + "print('keras.src.backend.config' in sys.modules)") == "False\n"


def test_an_empty_name_is_no_choice(tmp_path: Path) -> None:
    written(tmp_path, CHOICE, "3.14.0")
    assert said(tmp_path, HOOK + "import os\nprint(os.environ['KERAS_BACKEND'])", "") == "hybridflow\n"


def test_what_to_install_without_keras(tmp_path: Path) -> None:
    assert "pip install 'hybridflow[keras]'" in said(tmp_path, HOOK)
