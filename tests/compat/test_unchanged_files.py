"""``hybridflow.compat.install`` and ``python -m hybridflow.tensorflow``: files run as they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError
from tests.support.paths import ROOT

PROGRAM = """
import sys
import tensorflow as tf
import tensorflow.keras.backend as K
import keras
from tensorflow import keras as same
from tensorflow.keras import layers, models
from tensorflow.keras.layers import Dense
from tensorflow.keras.optimizers.schedules import CosineDecay
from keras.models import Sequential
from tensorflow.python.keras.layers import Dropout
import tensorflow.compat.v1 as v1

@tf.function
def f(x):
    if tf.reduce_sum(x) > 0:
        return tf.nn.relu(x)
    return -x

assert layers.Dense is Dense is keras.layers.Dense and models.Sequential is Sequential and same is keras
assert tf.keras is keras and tf.compat.v1 is v1 and Dropout is tf.keras.layers.Dropout
print(f(tf.constant([1.0, -0.5])).numpy(), sys.argv[1:], __name__, tf.__name__, K.floatx())
"""


@pytest.fixture
def hooked() -> Iterator[None]:
    hf.compat.install()
    yield
    hf.compat.uninstall()


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hybridflow.tensorflow", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_a_file_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import tensorflow as tf\nN = tf.constant(2)\n")
    script = tmp_path / "script.py"
    script.write_text(PROGRAM + "from beside import N\nprint(int(N))\n")
    done = _run(str(script), "--epochs", "3")
    assert done.stdout == "[1. 0.] ['--epochs', '3'] __main__ hybridflow.compat.tf float32\n2\n", done.stderr


def test_a_file_of_tensorflow_one(tmp_path: Path) -> None:
    script = tmp_path / "old.py"
    script.write_text(
        "import tensorflow as tf\n"
        "x = tf.placeholder(tf.float32, [None])\n"
        "with tf.Session() as sess:\n"
        "    print(sess.run(tf.reduce_sum(x, keep_dims=True), {x: [1, 2]}))\n"
    )
    done = _run("--v1", str(script))
    assert done.stdout == "[3.]\n", done.stderr


def test_wrong_use() -> None:
    assert _run().returncode == 2
    done = _run("nowhere.py")
    assert done.returncode == 2 and "there is no file 'nowhere.py'" in done.stderr
    with pytest.raises(ArgumentError, match="must be 1 or 2"):
        hf.compat.install(3)


def test_modules_keep_their_descriptions(hooked: None) -> None:
    import tensorflow  # type: ignore[import-not-found,unused-ignore]
    import tensorflow.keras.layers  # type: ignore[import-not-found,unused-ignore]

    assert tensorflow.__spec__.name == "hybridflow.compat.tf"
    assert tensorflow.keras.layers.__name__ == "hybridflow.compat.tf.keras.layers"
    with pytest.raises(ModuleNotFoundError, match=r"tensorflow.feature_column.*there is no tf.feature_column here"):
        import tensorflow.feature_column  # type: ignore[import-not-found,unused-ignore]


def test_it_goes_as_it_came() -> None:
    finders, names = list(sys.meta_path), {name for name in sys.modules if name.startswith(("tensorflow", "keras"))}
    hf.compat.install()
    hf.compat.install()
    import tensorflow.nn  # type: ignore[import-not-found,unused-ignore]  # noqa: F401

    assert len(sys.meta_path) == len(finders) + 1
    hf.compat.uninstall()
    hf.compat.uninstall()
    assert sys.meta_path == finders
    assert {name for name in sys.modules if name.startswith(("tensorflow", "keras"))} == names
