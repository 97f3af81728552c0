"""What a type checker makes of a user's file: it takes what runs, and finds what does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.code

PROGRAM = """
import numpy as np
import hybridflow as hf

@hf.function
def f(x: hf.Tensor, y: hf.Tensor) -> hf.Tensor:
    return x + y * 2 - np.float64(3)

@hf.function(fastmath=True, input_signature=[hf.TensorSpec([None], hf.float32)])
def g(x, scale=1.0):
    return x * scale

class Model:
    def __init__(self) -> None:
        self.w = hf.Variable(hf.ones((2, 2)), name="w")

    @hf.function
    def call(self, x: hf.Tensor, *, training: bool = False) -> tuple[hf.Tensor, int]:
        with hf.GradientTape() as tape:
            loss = (x @ self.w).sum(axis=0).mean()
        self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
        return loss, 1

x = hf.asarray([[1.0, 2.0], [3.0, 4.0]])
steps: int = Model().call(x, training=True)[1]
total: hf.Tensor = f(x, x).T.reshape(4)[1:].clip(0, 1) ** 2
shaped = hf.reshape(hf.zeros(4, dtype="f32"), (2, -1)) + hf.full([2, 2], 1) + hf.ones(x.shape, hf.int64)
logits = hf.nn.softmax(hf.concat([x, x]) @ np.ones((2, 2)), axis=-1)
words = f.kernels(x, x).rows, str(f.retraces()), f.ir(x, x).upper(), f.python_function(x, x).tolist()
value, gradient = hf.value_and_grad(lambda p: hf.sum(p["w"] ** 2))({"w": x})
hf.tree.map(lambda leaf: leaf + 1, {"a": x})

f(1, 2, 3, 4)  # ERROR Too many arguments
f.nonsense()  # ERROR has no attribute "nonsense"
g(x, 1, 2)  # ERROR Too many arguments
g.kernel()  # ERROR has no attribute "kernel"
Model().call(x, x)  # ERROR Too many positional arguments
Model().call(x, training="yes")  # ERROR incompatible type "str"
hf.ones("abc")  # ERROR incompatible type "str"
hf.reshape(x, 3.5)  # ERROR incompatible type "float"
hf.zeros(3, 4)  # ERROR incompatible type "int"
hf.sin(object())  # ERROR incompatible type "object"
hf.softmax(x)  # ERROR has no attribute "softmax"
x.backward()  # ERROR has no attribute "backward"
x.sum(axis="rows")  # ERROR incompatible type "str"
wrong: str = f(x, x)  # ERROR Incompatible types in assignment
"""


@pytest.mark.slow
def test_mypy_takes_what_runs_and_finds_what_does_not(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(PROGRAM, encoding="utf-8")
    options = ("--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary", "--hide-error-context")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", str(ROOT / ".mypy_cache"), "user.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    found: dict[int, str] = {}
    for line in done.stdout.splitlines():
        number, text = re.fullmatch(r"user\.py:(\d+): \w+: (.*)", line).groups()  # type: ignore[union-attr]
        found[int(number)] = found.get(int(number), "") + text
    wanted = {k: m[1] for k, line in enumerate(PROGRAM.split("\n"), 1) if (m := re.search(r"# ERROR (.*)", line))}
    assert found.keys() == wanted.keys(), done.stdout
    for number, text in wanted.items():
        assert text in found[number]


def test_the_file_runs_up_to_its_mistakes() -> None:
    exec(compile(PROGRAM.partition("f(1, 2, 3, 4)")[0], "<program>", "exec"), {"__name__": "user"})
