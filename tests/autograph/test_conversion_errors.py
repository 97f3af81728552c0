"""What has no meaning in a program is one error, with the user's line, what is wrong, and what to do."""

from __future__ import annotations

import array
import itertools
import logging
import operator
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
from tests.support.agreement import form
from tests.support.paths import ROOT

WRONG: list[tuple[Callable[..., Any], list[str]]] = []


def wrong(*texts: str) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        WRONG.append((function, list(texts)))
        return function

    return add


@wrong(
    "[if] y has no one type after this if",
    "f32[1], where it is false f32[2]",
    "hf.broadcast_to, hf.reshape or hf.pad",
    "    if x[0] > 0:\n       ^^^^^^^^",
)
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


@wrong(
    "y has no one type", "dict(a: f32[2], b: f32[2]), where it is false dict(a: f32[2])", "the same keys, attributes or"
)
def structures_of_branches(x):
    if x[0] > 0:
        y = {"a": x, "b": x}
    else:
        y = {"a": x}
    return y["a"]


class Point:
    me: Any

    def __init__(self, x: Any) -> None:
        self.x = x


@wrong("y has no one type", "Point(x: f32[2], me: a Point), where it is false", "They lead back to themselves")
def objects_that_hold_themselves(x: Any) -> Any:
    y = Point(x)
    y.me = y
    if x[0] > 0:
        y = Point(-x)
        y.me = y
    return y.x


@wrong("[return] which value is returned depends on a tensor", "one is f32[2], another None", "the same Python value")
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


@wrong("y has no one type after this while", "before an iteration it is f32[2], after it f32[4]")
def shape_grows_in_a_loop(x):
    y = x
    while hf.sum(y) < 100:
        y = hf.concat([y, y])
    return y


@wrong(
    "whether a value is tuple(f32[2], f32[2]) or dict(a: int 1, b: int 2)",
    "its items are taken",
    "Give it one type on all ways",
)
def items_of_what_is_a_tuple_or_a_dict(x):
    y = {"a": 1, "b": 2}
    if x[0] > 0:
        y = (x, x)
    return sum(len(part) for part in y)


@wrong("it depends on a tensor whether a value is the Python str 'a' or the Python str 'b'", "it is a key of a dict")
def chosen_text_is_a_key(x):
    return len({"a" if x[0] > 0 else "b"})


@wrong("[bool] f32[2] has 2 elements, one is needed")
def many_elements(x):
    if x:
        return x
    return x + 1


@wrong("whether ValueError is raised depends on a tensor, and it is caught by except* after the try at")
def raises_what_is_caught(x):
    try:
        if x[0] > 0:
            raise ValueError("negative")
    except* ValueError:
        x = -x
    return x


@wrong("whether an error is raised depends on a tensor, and it is caught after the try at")
def calls_python_where_it_is_caught(x):
    try:
        y = hf.py_function(lambda x: x, [x], x)
    except KeyError:
        y = x
    return y


@wrong("it is caught outside of", "which is no converted code")
def raises_through_a_library(x):
    def body(x):
        if x > 0:
            raise ValueError("positive")
        return x

    try:
        return hf.map_fn(body, x)
    except ValueError:
        return -x


@wrong("fails raises errors on all of its ways, and it depends on a tensor which of them is caught")
def raises_one_of_two(x):
    def fails(x):
        if x > 0:
            raise KeyError(1)
        else:
            raise IndexError(2)

    try:
        fails(x[0])
    except KeyError:
        return x
    except IndexError:
        return -x


@wrong("yield stands under a condition that is a tensor")
def yields_in_a_branch(x):
    def items(x):
        if x[0] > 0:
            yield x
        yield x + 1

    return sum(items(x))


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
        hf.function(function, strict=True)(hf.asarray([1.0, 2.0]))
    text = str(caught.value)
    for part in texts:
        assert part in text, text
    assert "test_conversion_errors.py:" in text
    assert len(text.splitlines()) <= 12
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not any("/hybridflow/autograph/" in frame.filename for frame in frames)


def _outcome(function: Callable[..., Any], argument: Any) -> Any:
    try:
        return form(function(argument))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.runs_eagerly
@pytest.mark.parametrize("function", [function for function, _ in WRONG], ids=lambda function: function.__name__)
def test_what_has_no_meaning_in_a_program_runs_eagerly(function: Callable[..., Any]) -> None:
    """Whether it says no more than what the strict function does, and what the eager one does."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("hybridflow").addHandler(handler)
    try:
        compiled = hf.function(function)
        for values in ([1.0, 2.0], [-1.0, 4.0], [3.0, -2.0]):  # of sums above 0: a loop doubles until they are large
            x = hf.asarray(values)
            want = _outcome(function, x)
            got = _outcome(compiled, x)
            if want == got:
                continue
            assert issubclass(got[0], hf.errors.TraceError) and not issubclass(got[0], hf.errors.ConcretizationError)
    finally:
        logging.getLogger("hybridflow").removeHandler(handler)
    assert sum("runs eagerly" in text for text in said) <= 1


def test_the_process_goes_on_after_an_error() -> None:
    compiled = hf.function(lambda x: x * 2 if hf.sum(x) > 0 else x)
    for function, _ in WRONG:
        with pytest.raises(HybridflowError):
            hf.function(function, strict=True)(hf.asarray([1.0, 2.0]))
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


def test_a_text_that_nobody_knows_is_said_to_be_unknown() -> None:
    """A program that comes through a pipe is gone when it runs."""
    done = subprocess.run([sys.executable], input=_PROGRAM, cwd=ROOT, capture_output=True, text=True, timeout=300)
    last = done.stderr.strip().splitlines()[-1]
    assert "branching on" in last and "that of f is not known: it was typed or executed where no text is kept" in last
    assert "Define it in a file, or write hf.cond or hf.where." in last


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


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "ndarray.fill": (lambda: np.zeros(2), lambda a: a.fill(1)),
    "ndarray.sort": (lambda: np.array([2.0, 1.0]), lambda a: a.sort()),
    "ndarray.__iadd__": (lambda: np.zeros(2), lambda a: a.__iadd__(1)),
    "ndarray.flat": (lambda: np.zeros(2), lambda a: operator.setitem(a.flat, 0, 1)),
    "a large ndarray": (lambda: np.zeros(1 << 19), lambda a: a.fill(1)),
    "np.copyto": (lambda: np.zeros(2), lambda a: np.copyto(a, 1)),
    "out=": (lambda: np.zeros(2), lambda a: np.add(a, 1, out=a)),
    "np.add.at": (lambda: np.zeros(2), lambda a: np.add.at(a, [0], 1)),
    "bytearray": (lambda: bytearray(b"ab"), lambda a: a.append(3)),
    "array.array": (lambda: array.array("d", [1.0]), lambda a: a.append(3)),
    "memoryview": (lambda: memoryview(bytearray(b"ab")), lambda a: operator.setitem(a, 0, 9)),
    "a list of another class": (lambda: type("Items", (list,), {})([1]), lambda a: a.append(3)),
    "a dict of another class": (lambda: type("Entries", (dict,), {})(a=1), lambda a: dict.update(a, b=2)),
    "inside of another object": (lambda: [{"a": np.zeros(2)}], lambda a: a[0]["a"].fill(1)),
    "list(it)": (lambda: iter([1, 2, 3]), list),
    "sum(it)": (lambda: iter([1, 2, 3]), sum),
    "zip(it)": (lambda: iter([1, 2, 3]), lambda it: list(zip(it, "ab"))),
    "max(*it)": (lambda: iter([1, 2, 3]), lambda it: max(*it)),
    "[*it]": (lambda: iter([1, 2, 3]), lambda it: [*it]),
    "in it": (lambda: iter([1, 2, 3]), lambda it: 2 in it),
    "a comprehension": (lambda: iter([1, 2, 3]), lambda it: [x for x in it]),  # noqa: C416
    "extend": (lambda: iter([1, 2, 3]), lambda it: [].extend(it)),
    "it.__next__": (lambda: itertools.count(), lambda it: it.__next__()),
    "a generator": (lambda: (x for x in (1, 2, 3)), set),
}


@pytest.mark.parametrize("text", CHANGES)
def test_what_a_branch_cannot_take_back_is_an_error(text: str) -> None:
    make, change = CHANGES[text]

    def branch(x):
        held = make()
        if x > 0:
            change(held)
        return x

    def loop(x):
        held = make()
        while x < 3:
            change(held)
            x = x + 1
        return x

    def after_another_has_returned(x):
        held = make()

        def own(x):
            if x > 0:
                return x
            change(held)
            return x + 1

        return own(x)

    def not_at_all(x):
        held = make()
        change(held)
        return x + 1 if x > 0 else x

    for f in (branch, loop, after_another_has_returned):
        with pytest.raises(HybridflowError, match=r"under a condition that is a tensor|is changed in a loop"):
            hf.function(f, strict=True)(hf.constant(1.0))
    assert hf.function(not_at_all)(hf.constant(1.0)) == 2


def test_an_iterator_of_which_a_tensor_decides_how_far_a_loop_came() -> None:
    def f(x):
        it = iter([1.0, 2.0, 3.0])
        for y in it:
            if x < y:
                break
        return x + sum(it)

    with pytest.raises(HybridflowError, match="how many items a loop took from a list_iterator depends on a tensor"):
        hf.function(f, strict=True)(hf.constant(1.5))


def test_a_generator_that_is_taken_from_in_a_branch() -> None:
    def f(x):
        def numbers():
            k = 0
            while True:
                k += 1
                yield k

        held = numbers()
        if x > 0:
            x = x + held.send(None)
        return x * next(held)

    with pytest.raises(HybridflowError, match="items are taken from a generator under a condition that is a tensor"):
        hf.function(f, strict=True)(hf.constant(1.5))


ALIASES: dict[str, Callable[[Any, Any, Any], Any]] = {}


def alias(function: Any) -> Any:
    ALIASES[function.__name__] = function
    return function


@alias
def one_of_two(x, a, b):
    c = a if x > 0 else b
    c[0] = c[0] + 5
    return a, b, c


@alias
def one_of_two_is_changed_by_its_own_name(x, a, b):
    if x > 0:
        c = a
    else:
        c = b
    a[0] = a[0] + 5
    return c


@alias
def another_name_of_it_in_one_branch(x, a, b):
    if x > 0:
        b = a
    b[0] += 5
    return a, b


@alias
def a_copy_in_one_branch(x, a, b):
    b = a
    if x > 0:
        b = b + b
        b = b[:2] if isinstance(b, list) else b
    b[1] = 5
    return a, b


@alias
def a_loop_without_turns(x, a, b):
    b = a
    while x > 0:
        b = [b[1], b[0]] if isinstance(b, list) else b * 2
        x = x - 1
    b[0] = 7
    return a, b


@alias
def the_first_turn_of_a_loop(x, a, b):
    b = a
    while x > 0:
        b[0] = b[0] + 1
        b = [b[1], b[0]] if isinstance(b, list) else b * 2
        x = x - 1
    return a, b


@alias
def another_name_of_what_was_made_in_a_branch(x, a, b):
    if x > 0:
        b = [b[1], b[0]] if isinstance(b, list) else b * 2
        if not x > 5:
            a = b
    b[0] = x
    return a, b


@alias
def changed_where_the_other_side_binds_another(x, a, b):
    c = a
    if x > 5:
        a = [b[0], b[1]] if isinstance(b, list) else b * 2
    else:
        a[0] = x
    c[0] = a[0] + 5
    return a, b


@alias
def another_name_of_what_a_turn_changes(x, a, b):
    while x > 0:
        a[0] = a[0] + x
        b = a
        x = x - 1
    b[1] = 5
    return a, b


@alias
def a_turn_changes_what_the_one_before_it_left(x, a, b):
    while x > 0:
        b[0] = b[0] + 1
        b = a
        x = x - 1
    return a, b


@alias
def two_names_of_what_a_turn_made(x, a, b):
    while x > 0:
        a = b = [a[1], b[0]] if isinstance(a, list) else a * 2
        x = x - 1
    a[0] = x
    return a, b


@alias
def what_a_turn_put_into_another(x, a, b):
    d = {"a": b}
    while x > 0:
        a[0] = a[0] + 1
        d["a"] = a
        x = x - 1
    a[1] = x
    return a, d["a"]


@alias
def what_a_branch_put_into_another(x, a, b):
    d = {"a": a}
    if x > 0:
        b = [b[1], b[0]] if isinstance(b, list) else b * 2
        d["a"] = b
    b[0] = x
    return b, d["a"]


@pytest.mark.parametrize("kind", ["list", "tensor"])
@pytest.mark.parametrize("name", ALIASES)
def test_which_object_is_changed_never_depends_on_a_tensor_unnoticed(name: str, kind: str) -> None:
    function = ALIASES[name]

    def f(x: Any) -> Any:
        if kind == "list":
            return function(x, [x * 1, x * 2], [x * 3, x * 4])
        return function(x, hf.stack([x * 1, x * 2]), hf.stack([x * 3, x * 4]))

    with pytest.raises(HybridflowError, match=r"it depends on a tensor which of several it is|has no one type"):
        hf.function(f, strict=True)(hf.constant(1.0))


def test_names_of_one_object_go_on_to_be_that() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            a = b = [x, x + 1]
        else:
            a = b = [x * 2, x]
        a[0] = a[0] + 5
        c = {"k": x}
        if x > 1:
            c = {"k": x * 3}
        c["k"] = c["k"] + 1  # nobody else has the other one
        return a[0], b[0], a is b, c["k"]

    compiled = hf.function(f)
    for x in (2.0, 0.5, -1.0):
        assert list(map(float, compiled(hf.constant(x)))) == list(map(float, f(hf.constant(x))))


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "repeated": lambda n: [0] * n,
    "repeated text": lambda n: n * "ab",
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_that_a_tensor_decides_about_are_no_length(text: str) -> None:
    def f(x: Any) -> Any:
        return NUMBERS[text](1 if x > 0 else 2)

    with pytest.raises(HybridflowError, match="a Python number that a tensor decides about"):
        hf.function(f, strict=True)(hf.constant(1.0))


def test_numbers_that_a_tensor_decides_about_are_instances_of_pythons_types() -> None:
    @hf.function
    def f(x: Any) -> Any:
        n, p = 1 if x > 0 else 2, 0.5 if x > 0 else 1.5
        return [isinstance(n, int), isinstance(n, float), isinstance(p, (float, str)), isinstance(n, hf.Tensor)]

    assert f(hf.constant(1.0)) == [True, False, True, False]


def test_objects_that_finally_joins_are_known_to_be_several() -> None:
    def f(x: Any) -> Any:
        box = [x * 0.5, x + 2]
        other = box
        try:
            if x > 5:
                return x
            box = [x - box[0], x * 1]
            if not x <= -0.5:
                other = box
        finally:
            x = x * 0.9
        other[1] = other[1] * x
        return box[0] + box[1] + other[1]

    with pytest.raises(HybridflowError, match="it depends on a tensor which of several it is"):
        hf.function(f, strict=True)(hf.constant(1.0))


LEFT_BY_FINALLY = ["y = y * 0.9", "made = len(made) + y", "del nothing"]


@pytest.mark.parametrize("last", LEFT_BY_FINALLY)
def test_what_finally_finds_does_not_hide_why_a_function_cannot_be_traced(last: str) -> None:
    """It runs with names whose values were those of blocks that are given up, and may fail because of that."""
    rows = hf.constant(np.arange(10, dtype="float32"))
    text = (
        "def f(x):\n    y, made = x, {}\n    try:\n        for row in rows:\n            y = y * 0.5 + row\n"
        "            made[len(made)] = row\n            if y > 3:\n                break\n            y = y + 1\n"
        f"            made[len(made)] = y\n        y = made[0] + y\n    finally:\n        {last}\n    return y\n"
    )
    names: dict[str, Any] = {"hf": hf, "rows": rows}
    exec(text, names)
    with pytest.raises(HybridflowError, match="dict is changed under a condition that is a tensor"):
        hf.function(names["f"], strict=True)(hf.constant(1.0))
    assert float(hf.function(lambda x: x * 2)(hf.constant(1.0))) == 2.0
