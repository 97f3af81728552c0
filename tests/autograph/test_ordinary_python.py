"""More than 200 programs of ordinary Python have the bits of eager runs where they are compiled."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support import ordinary_python
from tests.support.paths import DATA

_TEXT = (DATA / "ordinary_python.txt").read_text()
KINDS = {part.split("\n", 1)[0]: part.split("\n")[1:] for part in _TEXT.removeprefix("# ").strip().split("\n# ")}
X, Y = hf.constant([0.5, -1.25, 2.0]), hf.constant([3.0, 0.75, -0.5])


def form(value: Any) -> Any:
    """What is compared: tensors and numbers alike, as arrays with their dtypes."""
    if isinstance(value, dict):
        return [form(list(value)), form(list(value.values()))]
    if isinstance(value, (list, tuple)):
        return list(map(form, value))
    if isinstance(value, (bool, int, float, np.generic, hf.Tensor)):
        array = np.asarray(value)
        return str(array.dtype), array.shape, array.tobytes()
    return value


def program(name: str, calls: list[str]) -> Any:
    """One function of all calls, whose source is found as a doctest's is."""
    text = "def f(x, y):\n    return [\n" + "".join(f"        [{call}],\n" for call in calls) + "    ]\n"
    file = f"<ordinary python: {name}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    names = dict(vars(ordinary_python))
    exec(compile(text, file, "exec"), names)
    return names["f"]


# Long ones are few to a function: together they would have a path for each way that all of their decisions may go.
PARTS = {
    f"{kind}-{first}": calls[first : first + size]
    for kind, calls in KINDS.items()
    for size in [5 if kind == "algorithms" else len(calls)]
    for first in range(0, len(calls), size)
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.every_case
def test_compiled_is_eager(name: str) -> None:
    calls = PARTS[name]
    f = program(name, calls)
    compiled = hf.function(f)
    for x, y in ((X, Y), (-Y, X)):
        for call, want, got in zip(calls, form(f(x, y)), form(compiled(x, y)), strict=True):
            assert got == want, call


def test_there_are_as_many_as_promised() -> None:
    assert sum(map(len, KINDS.values())) >= 200
    assert [call for calls in PARTS.values() for call in calls] == [call for calls in KINDS.values() for call in calls]
