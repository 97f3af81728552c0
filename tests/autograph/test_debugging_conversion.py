"""Who debugs compiled functions sees the lines that were written: breakpoints stop in them, errors and profiles name
them; and ``hf.eager`` runs a function without compiling it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.errors import TraceError
from tests.support.paths import ROOT

PROGRAM = """import hybridflow as hf

def helper(row):
    scaled = row * 2
    breakpoint()
    return scaled + 1

@hf.function
def f(x):
    total = hf.zeros(3)
    for row in x:
        if row[0] > 0:
            total = total + helper(row)
        else:
            total = total - row
    return total

print("result", f(hf.ones((12, 3))).tolist())
"""


def test_breakpoints_stop_in_the_users_lines(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    said = ["p scaled, row.shape", "l", "u", "p total", "p [n for n in locals() if n[0] != '.']", "d", *["c"] * 6]
    ran = subprocess.run(
        [sys.executable, str(path)],
        input="\n".join(said) + "\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "HF_CACHE_DIR": "off", "PATH": "/usr/bin:/bin"},
    )
    out = ran.stdout
    assert ran.returncode == 0, ran.stderr
    assert f"> {path}(6)helper()\n-> return scaled + 1" in out or f"> {path}(5)helper()\n-> breakpoint()" in out  # 3.13
    assert '<sym f32[3] from program.py:4 "multiply">, (3,)' in out
    assert f"> {path}(13)f()\n-> total = total + helper(row)" in out
    assert "  4  \t    scaled = row * 2\n" in out
    assert "['x', 'total', 'row']" in out
    assert "result [36.0, 36.0, 36.0]" in out


def said_of_an_error(path: Path, program: str) -> list[str]:
    """The lines that a program prints that ends with an error."""
    path.write_text(program)
    ran = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "HF_CACHE_DIR": "off", "PATH": "/usr/bin:/bin"},
    )
    lines = [line.strip() for line in ran.stderr.splitlines()]
    assert not any("RECORDER" in line or "recorder" in line or ".1" in line for line in lines)
    return lines


def test_errors_show_the_users_lines_alone(tmp_path: Path) -> None:
    program = PROGRAM.replace("    breakpoint()\n", "    row = hf.reshape(row, (7,))\n")
    lines = said_of_an_error(tmp_path / "program.py", program.replace("if row[0] > 0:", "if True:"))
    files = [line for line in lines if line.startswith("File ")]
    assert any('program.py", line 13, in f' in line for line in files)
    assert any('program.py", line 5, in helper' in line for line in files)
    assert "row = hf.reshape(row, (7,))" in lines


def test_errors_that_a_tensor_lets_happen_name_the_users_lines(tmp_path: Path) -> None:
    program = PROGRAM.replace("    breakpoint()\n", "    row = hf.reshape(row, (7,))\n")
    lines = said_of_an_error(tmp_path / "program.py", program)
    assert any("ShapeError: [reshape]" in line and line.endswith("(program.py:5)") for line in lines)
    assert lines[-1] == "raised by compiled code  (program.py:13)"
    files = [line for line in lines if line.startswith("File ") and "program.py" in line]
    assert [line.partition("program.py")[2] for line in files] == [
        '", line 18, in <module>',
        '", line 13, in f',
        '", line 5, in helper',
    ]
    assert lines[lines.index(files[-1]) + 1] == "row = hf.reshape(row, (7,))"


def test_profiles_show_the_users_lines() -> None:
    @hf.function
    def f(x: Any) -> Any:
        s = hf.zeros(3)
        for row in x:
            if row[0] > 0:
                s = s + hf.exp(row)
        return s

    text = str(f.kernels(hf.ones((12, 3))))
    assert "test_debugging_c" in text and "recorder" not in text


def test_eager_runs_the_body_and_what_it_calls() -> None:
    seen: list[Any] = []

    @hf.function
    def inner(x: Any) -> Any:
        seen.append(x.tolist())
        return x * 2

    @hf.function
    def outer(x: Any) -> Any:
        y = inner(x)
        seen.append(float(y))
        return y + 1

    x = hf.constant(1.5)
    for _ in range(3):
        assert hf.eager(outer)(x) == 4.0
    assert seen == [1.5, 3.0] * 3
    assert not hf.config.functions_run_eagerly()
    assert outer(x) == 4.0 and seen == [1.5, 3.0] * 4  # not compiled either: each call has to append


def test_eager_methods_gradients_and_threads() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = hf.Variable(2.0)

        @hf.eager
        def loss(self, x: Any) -> Any:
            assert float(self.w) == 2.0  # there are values
            return self.w * x

        @hf.function
        def compiled(self, x: Any) -> Any:
            return self.w * x

    model, x = Model(), hf.constant(3.0)
    with hf.GradientTape() as tape:
        loss = model.loss(x)
    assert tape.gradient(loss, model.w) == 3.0
    assert hf.eager(model.compiled)(x) == 6.0
    before = hf.eager(lambda: hf.config.functions_run_eagerly())
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(hf.config.functions_run_eagerly()))

    @hf.eager
    def starts() -> bool:
        thread.start()
        thread.join()
        return before()

    assert starts() and found == [False]


class Doubles:
    def __init__(self) -> None:
        self.factor = 2.0

    def __call__(self, x: Any) -> Any:
        return x * self.factor


class Steps:
    def __call__(self, x: Any) -> Any:
        yield x


def steps(x: Any) -> Any:
    yield x


async def later(x: Any) -> Any:
    return x


def test_eager_of_objects_and_of_what_runs_after_the_call() -> None:
    doubles = Doubles()
    run = hf.eager(doubles)
    assert run(hf.constant(1.0)) == 2.0
    assert not hasattr(run, "factor")  # which would go stale
    doubles.factor = 3.0
    assert run(hf.constant(1.0)) == 3.0
    for f in (steps, later, Steps()):
        with pytest.raises(hf.errors.ArgumentTypeError, match="is a generator or a coroutine: its body runs after"):
            hf.eager(f)


def test_eager_is_refused_while_tracing() -> None:
    @hf.eager
    def inner(x: Any) -> Any:
        return x * 2

    @hf.function
    def outer(x: Any) -> Any:
        return inner(x)

    with pytest.raises(TraceError, match=r"inner runs eagerly.*hf.eager\(f\)"):
        outer(hf.constant(1.0))
    assert hf.eager(outer)(hf.constant(1.0)) == 2.0
    with pytest.raises(hf.errors.ArgumentTypeError, match="is no function"):
        hf.eager(3)  # type: ignore[arg-type]


def test_an_exception_ends_it() -> None:
    @hf.eager
    def f(x: Any) -> Any:
        raise KeyError(x)

    with pytest.raises(KeyError):
        f(1)
    assert not hf.config.functions_run_eagerly()
