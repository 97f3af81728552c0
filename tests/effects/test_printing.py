"""What functions print: the same when compiled as eagerly, line by line, each time they run."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.errors import TraceError

pytestmark = pytest.mark.code


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


class Unknown:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<{self.text}>"


PERCENT, BRACES = "%s and %s", "{} {:>5} {k}"


def straight(x):
    print("start")
    print("x", x, [x, 1, {"a": x[0]}], Pair(x, None), sep="|", end=".\n")
    hf.print("hf", x, [x, 2.5], (x,), {"k": x}, output_stream=sys.stdout)
    unknown = Unknown("before")
    print(unknown, [unknown], x.shape, x.dtype, None, True, 1.5)
    unknown.text = "after"
    print(unknown)
    return x + 1


def texts(x):
    y = x[0]
    text = "<" + f"{y:.3f}|{x!r:>40}|{'plain':>8}|{y}" + ">"
    print(text, PERCENT % (x, 1), BRACES.format(1, 2, k=y), str(x) + repr(y), format(y, ".1f"))
    print(f"{x=} {len(x)} {x.shape}", end=f"{y}\n")
    return x


def branches(x):
    if hf.sum(x) > 0:
        print("positive", x)
        if x[0] > 10:
            print("large")
        else:
            print("small")
        n = 1
    elif x[1] < -5:
        print("very negative")
        n = 2
    else:
        n = 3
    print("n", n)
    return x * n


def loops(x):
    total, turns = hf.sum(hf.abs(x)) + 0.5, 0
    while total < 100:
        total *= 2
        turns += 1
        print(f"turn {turns}: {total:.2f}")
        if total > 50:
            print("enough")
            break
        for i in range(2):
            print(" inner", i, total)
    else:
        print("no break")
    for i, row in enumerate(x):
        if row < 0:
            print("skipped", i)
            continue
        print("row", i, row)
    return total


def functions(x):
    def body(i, y):
        hf.print("body", i, y, output_stream=sys.stdout)
        return i + 1, y * 2

    def goes_on(i, y):
        print("asked", i)
        return i < 3

    _, y = hf.while_loop(goes_on, body, (0, x))
    hf.cond(hf.sum(y) > 0, lambda: print("yes", y[0]), lambda: print("no"))
    return hf.map_fn(lambda e: (print("element", e), e + 1)[1], y)


def early(x):
    print("in")
    if x[0] > 0:
        print("leaves")
        return x
    print("stays")
    return -x


PROGRAMS = {f.__name__: f for f in (straight, texts, branches, loops, functions, early)}
OUT = io.StringIO()  # one, because which stream sys.stdout is belongs to what a function reads
VALUES = ([1.0, 2.0], [-1.0, -9.0], [-3.0, 0.5], [20.0, 1.0])


def printed(function: Callable[..., Any], *args: Any) -> tuple[str, Any]:
    OUT.seek(0)
    OUT.truncate()
    with contextlib.redirect_stdout(OUT):
        result = function(*args)
    return OUT.getvalue(), result.numpy().tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_functions_print_what_eager_ones_do(name: str) -> None:
    function = PROGRAMS[name]
    compiled = hf.function(function)
    for values in VALUES:
        x = hf.constant(values)
        expected = printed(function, x)
        assert "sym" not in expected[0]
        for _ in range(2):
            assert printed(compiled, x) == expected
    assert len(compiled.signatures()) == 1  # nothing of it is a reason to trace again


@pytest.mark.parametrize("name", ["branches", "loops", "functions"])
def test_under_a_tape_lines_are_printed_once(name: str) -> None:
    function = PROGRAMS[name]

    def gradient(f: Callable[..., Any]) -> Callable[..., Any]:
        return hf.grad(lambda x: hf.sum(f(x)))

    x = hf.constant(VALUES[0])
    expected = printed(gradient(function), x)
    assert expected[0]
    assert printed(gradient(hf.function(function)), x) == expected  # the tape is outside
    assert printed(hf.function(gradient(function)), x) == expected  # the tape is inside


def test_variables_are_shown_as_they_are_at_that_point() -> None:
    v = hf.Variable(1.0, name="v")

    def f(x):
        print(v)
        v.assign_add(x)
        print(f"{v} {v.value()}")
        if v > 2:
            print("resets", v)
            v.assign(0.0)
        print(v + 1)
        return v.value()

    def runs(function: Callable[..., Any]) -> list[Any]:
        v.assign(1.0)
        return [printed(function, hf.constant(1.0)) for _ in range(3)]

    assert runs(hf.function(f)) == runs(f)


def test_symbolic_extents_are_numbers() -> None:
    def f(x):
        print(x.shape, x.shape[0], f"{x.shape[0]:>4} rows")
        return x

    compiled = hf.function(f, input_signature=[hf.TensorSpec((None, 2))])
    for n in (2, 5):
        x = hf.ones((n, 2))
        assert printed(compiled, x) == printed(f, x)


def test_hf_print_shows_the_ends_of_long_axes_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    @hf.function
    def f(x):
        hf.print(x, "and", hf.reshape(x, (2, 5)), sep="\n", end="!\n", summarize=2)
        hf.print(x, summarize=-1)

    f(hf.arange(10))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "[0 1 ... 8 9]\nand\n[[0 1 ... 3 4]\n [5 6 ... 8 9]]!\n[0 1 2 3 4 5 6 7 8 9]\n"
    with pytest.raises(hf.errors.ArgumentTypeError, match="summarize"):
        hf.print(1, summarize=-2)


def test_nothing_depends_on_a_text_that_is_not_known_yet() -> None:
    table = {"1": 2}
    for f in (
        lambda x: f"{x}",
        lambda x: x * len(f"{x}"),
        lambda x: x * table[str(x)],
        lambda x: x if f"{x}" == "1" else -x,
        lambda x: f"{x}".upper(),
    ):
        with pytest.raises(TraceError, match="not known while tracing"):
            hf.function(f, strict=True)(hf.constant(1.0))


def test_a_stream_that_raises_ends_the_program() -> None:
    class Broken:
        def write(self, text: str) -> None:
            raise OSError("the disk is full")

    v, broken = hf.Variable(1.0), Broken()

    @hf.function
    def f(x):
        v.assign(5.0)
        hf.print(x, output_stream=broken)
        return x

    for _ in range(2):
        with pytest.raises(OSError, match="the disk is full"):
            f(hf.constant(1.0))
    assert v.numpy() == 1.0


def test_threads_print_their_own_lines_in_order() -> None:
    streams = [io.StringIO() for _ in range(2)]

    @hf.function
    def f(x, n):
        for i in range(n):
            hf.print(i, x, output_stream=streams[0] if x.dtype == hf.float32 else streams[1])
        return x

    def run(x: Any) -> None:
        for _ in range(20):
            f(x, hf.constant(3))

    threads = [threading.Thread(target=run, args=(hf.constant(1, d),)) for d in (hf.float32, hf.float64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream in streams:
        assert stream.getvalue() == "0 1.0\n1 1.0\n2 1.0\n" * 20
