"""What has no meaning in a program is one error, with the user's line, what is wrong, and what to do."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import HybridflowError

ROOT = Path(__file__).resolve().parent.parent
WRONG: list[tuple[Callable[..., Any], list[str]]] = []


def wrong(*texts: str) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        WRONG.append((function, list(texts)))
        return function

    return add


@wrong(
    "[if] y has no one type after this if",
    "it is f32[2], where it is false not bound",
    "    if x[0] > 0:\n       ^^^^^^^^",
)
def bound_in_one_branch(x):
    if x[0] > 0:
        y = x
    return y


@wrong("y has no one type", "f32[1], where it is false f32[2]", "hf.broadcast_to, hf.reshape or hf.pad")
def shapes_of_branches(x):
    if x[0] > 0:
        y = x[:1]
    else:
        y = x
    return y


@wrong("y has no one type", "f32[2], where it is false i64[2]", "hf.astype")
def dtypes_of_branches(x):
    if x[0] > 0:
        y = x
    else:
        y = hf.astype(x, hf.int64)
    return y


@wrong("y has no one type", "tuple(f32[2], f32[2]), where it is false tuple(f32[2])", "the same keys or as many items")
def structures_of_branches(x):
    if x[0] > 0:
        y = (x, x)
    else:
        y = (x,)
    return y[0]


@wrong("y has no one type", "f32[2], where it is false None", "the same Python value")
def nothing_in_one_branch(x):
    y = None
    if not x[0] > 0:
        y = x
    return y


@wrong("[return] which value is returned depends on a tensor", "one is f32[2], another None")
def nothing_is_returned_from_one_branch(x):
    if x[0] > 0:
        return x


@wrong("[if] the value has no one type", "f32[2], where it is false f32[]")
def types_of_a_ternary(x):
    return x if x[0] > 0 else x[0]


@wrong("list is changed under a condition that is a tensor")
def list_grows_in_one_branch(x):
    out = []
    if x[0] > 0:
        out.append(x)
    return len(out)


@wrong("y has no one type after this while", "before a turn it is f32[2], after it f32[4]")
def shape_grows_in_a_loop(x):
    y = x
    while hf.sum(y) < 100:
        y = hf.concat([y, y])
    return y


@wrong("list is changed in a loop over a tensor")
def list_grows_in_a_loop(x):
    out, i = [], hf.constant(0)
    while i < 3:
        out.append(x)
        i = i + 1
    return out


@wrong("t has no one type after this while", "before a turn it is not bound, after it f32[2]")
def bound_in_a_loop_only(x):
    while x[0] < 5:
        t = x + 1
        x = t
    return t


@wrong("[bool] f32[2] has 2 elements, one is needed")
def many_elements(x):
    if x:
        return x
    return x + 1


@wrong("an exception is raised under a condition that is a tensor")
def raises_in_a_branch(x):
    if x[0] > 0:
        raise ValueError("negative")
    return x


@wrong("yield stands under a condition that is a tensor")
def yields_in_a_branch(x):
    def items(x):
        if x[0] > 0:
            yield x
        yield x + 1

    return sum(items(x))


@wrong("the step of a range over a tensor is a Python int")
def step_of_a_range(x):
    n = hf.astype(x[0], hf.int64)
    s = 0
    for i in range(0, 5, n):
        s = s + i
    return s


@wrong("next() is called under a condition that is a tensor")
def iterator_in_a_branch(x):
    items = iter([1.0, 2.0])
    if x[0] > 0:
        x = x + next(items)
    return x + next(items)


@wrong("a NumPy array is changed under a condition that is a tensor")
def numpy_array_in_a_branch(x):
    y = np.zeros(2)
    if x[0] > 0:
        y[0] = 5
    return x + y


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[0].__name__)
def test_message(case: tuple[Callable[..., Any], list[str]]) -> None:
    function, texts = case
    with pytest.raises(HybridflowError) as caught:
        hf.function(function)(hf.asarray([1.0, 2.0]))
    text = str(caught.value)
    for part in texts:
        assert part in text, text
    assert "test_conversion_errors.py:" in text
    assert len(text.splitlines()) <= 12
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not any("/tracing/" in frame.filename for frame in frames)


def test_the_process_goes_on_after_an_error() -> None:
    compiled = hf.function(lambda x: x * 2 if hf.sum(x) > 0 else x)
    for function, _ in WRONG:
        with pytest.raises(HybridflowError):
            hf.function(function)(hf.asarray([1.0, 2.0]))
    assert compiled(hf.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]


_PROGRAM = """
import hybridflow as hf
@hf.function
def f(x):
    while x < 10:
        if x == 3:
            return x * 100
        x = x + 2
    return x
g, h = hf.function(lambda x: 1 if x > 0 else 2), hf.function(lambda x: 3 if x > 0 else 4)
print(f(hf.constant(1)).item(), f(hf.constant(2)).item(), g(hf.constant(1)).item(), h(hf.constant(-1)).item())
"""


@pytest.mark.parametrize("how", ["-c", "stdin", "exec"])
def test_functions_without_a_file(how: str, tmp_path: Path) -> None:
    command, given = [sys.executable], subprocess.DEVNULL
    path = tmp_path / "program.txt"
    path.write_text(_PROGRAM)
    if how == "-c":
        command += ["-c", _PROGRAM]
    elif how == "exec":
        command += ["-c", f"exec({_PROGRAM!r})"]
    with path.open() as file:
        done = subprocess.run(
            command, cwd=ROOT, stdin=file if how == "stdin" else given, capture_output=True, text=True, timeout=300
        )
    assert done.stdout.split() == ["300", "10", "1", "4"], done.stderr


def test_breakpoints_stop_in_the_users_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def hook() -> None:
        frame = sys._getframe(1)
        place = frame.f_code.co_filename, frame.f_lineno - frame.f_code.co_firstlineno
        seen.append((*place, str(frame.f_locals["y"].type)))

    def f(x):
        y = x + 1
        if hf.sum(y) > 0:
            breakpoint()
            y = y[0]
        else:
            y = y[1]
            breakpoint()
        return y

    monkeypatch.setattr(sys, "breakpointhook", hook)
    hf.function(f)(hf.asarray([1.0, 2.0]))
    assert seen == [(__file__, 3, "f32[2]"), (__file__, 7, "f32[]")]
