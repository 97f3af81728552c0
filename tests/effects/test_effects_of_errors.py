"""Errors that a tensor decides about, in compiled functions: what they leave behind is what they leave eagerly.

Each program is a way through ``try``, ``with``, loops and calls (``FLOWS``), in which something may fail (``FAILS``)
and around that something is done (``EFFECTS``).  It is called with values for which it fails and others, and compared
with what Python does: the value or the error, all that was printed, and what the objects outside hold.
"""

from __future__ import annotations

import contextlib
import io
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.errors import TraceError
from hybridflow.jit import tracer

pytestmark = pytest.mark.code

HEAD = """
import collections
import contextlib

import numpy as np

import hybridflow as hf

TABLE = hf.asarray([1.0, 2.0, 3.0, 4.0])
VARIABLE = hf.Variable(0.0)
COUNTS = collections.Counter()
RECENT = collections.deque(maxlen=3)
DICT, LIST, SET, ARRAY = {}, [], set(), np.zeros(3)
COUNT = 0


class Thing:
    kind = 0


class Mine(Exception):
    pass


class Other(Exception):
    pass


class Manager:
    def __init__(self, swallows=False):
        self.swallows = swallows

    def __enter__(self):
        print("enters")
        return self

    def __exit__(self, kind, error, traceback):
        print("exits", kind and kind.__name__)
        return self.swallows


THING = Thing()


def checked(n):
    if n > 5:
        raise Mine("large")
    return n


def reset():
    global COUNT
    COUNT, Thing.kind = 0, 0
    VARIABLE.assign(0.0)
    vars(THING).update(value=0, count=0)
    DICT.clear()
    DICT.update(count=0)
    for held in (COUNTS, RECENT, LIST, SET):
        held.clear()
    ARRAY[:] = 0


def state():
    held = COUNT, Thing.kind, VARIABLE, dict(vars(THING)), DICT, dict(COUNTS), list(RECENT), LIST, SET, ARRAY
    return [plain(value) for value in held]


def plain(value):
    if isinstance(value, (hf.Tensor, hf.Variable)):
        return repr(value.numpy().tolist())
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else repr(value)
"""

# {k} is the number of the place.
EFFECTS = {
    "print": 'print("at", {k}, x[0])',
    "attribute": "THING.value = x[0] + {k}",
    "attribute, added to": "THING.count += {k}",
    "variable": "VARIABLE.assign_add(x[0] + {k})",
    "class attribute": "Thing.kind = {k}",
    "global": "COUNT += {k}",
    "item": 'DICT["last"] = x[0] * {k}',
    "item, added to": 'DICT["count"] = DICT["count"] + {k}',
    "counter": 'COUNTS["all"] += {k}',
    "list": "LIST.append(x[0] + {k})",
    "list of numbers": "LIST.append({k})",
    "nested": "LIST.extend([[x[0]], {k}])",
    "deque": "RECENT.append(x[0] + {k})",
    "set": "SET.add({k})",
    "array": "ARRAY[0] += {k}",
    "local": "local = local * 2 + {k}",
}

FAILS = {
    "index": ("y = TABLE[n]", "IndexError"),
    "division": ("y = x[0] + hf.astype(100 // (7 - n), 'float32')", "ZeroDivisionError"),
    "assertion": ("hf.debugging.assert_less(n, 5, message='large'); y = x[0] * 2", "hf.errors.InvalidArgumentError"),
    "assert": ("assert n < 5, 'large'; y = x[0] * 2", "AssertionError"),
    "raise": ("if n > 5: raise Mine('large')\ny = x[0] * 2", "Mine"),
    "call": ("y = x[0] * checked(n)", "Mine"),
}

# E1, E2 ... are effects, F is what fails, KIND its error.
FLOWS = {
    "plain": """
        E1
        F
        E2
    """,
    "except, else": """
        try:
            E1
            F
        except KeyError:
            E2
        except (Other, KIND) as error:
            E3
            print(type(error).__name__, error)
            y = x[0] * 100
        else:
            E4
    """,
    "bare except": """
        try:
            E1
            F
            E2
        except:
            E3
    """,
    "not caught": """
        try:
            E1
            F
        except KeyError:
            E2
        E3
    """,
    "finally": """
        try:
            E1
            F
            E2
        finally:
            E3
        E4
    """,
    "all clauses": """
        try:
            E1
            F
        except KIND:
            E2
            y = x[0] * 5
        else:
            E3
        finally:
            E4
        E5
    """,
    "raised again": """
        try:
            try:
                E1
                F
            except KIND:
                E2
                raise
            finally:
                E3
        except Exception as error:
            E4
            y = x[0] * 8
    """,
    "raise from": """
        try:
            try:
                E1
                F
            except KIND as error:
                E2
                raise Other("other") from error
        except Other as other:
            E3
            print(type(other.__cause__).__name__)
            if x[1] > 1:
                raise
    """,
    "nested": """
        try:
            try:
                E1
                F
                E2
            except KeyError:
                E3
            E4
        except KIND:
            E5
            y = x[0] * 9
    """,
    "else and except fail": """
        try:
            E1
            if x[1] > 1:
                raise Other("other")
        except Other:
            E2
            F
        else:
            E3
            F
        E4
    """,
    "finally fails": """
        try:
            E1
        finally:
            F
            E2
    """,
    "return": """
        def inner():
            y = x[0]
            try:
                E1
                F
                return y
            except KIND:
                E2
                return x[0] * 7
            finally:
                E3
        y = inner()
        E4
    """,
    "out of a function": """
        def inner():
            E1
            F
            E2
            return y
        try:
            y = inner()
            E3
        except KIND:
            E4
    """,
    "out of a lambda": """
        look = lambda n: TABLE[n]
        try:
            E1
            y = sum(look(n + k) for k in (0, 0))
            E2
        except IndexError:
            E3
        F
    """,
    "method": """
        class Counting:
            count = 0

            def run(self):
                y = x[0]
                try:
                    self.count = 1
                    E1
                    F
                    self.count = 2
                except KIND:
                    E2
                    self.count = self.count + 10
                return y + self.count
        y = Counting().run()
    """,
    "turns": """
        for k in range(3):
            try:
                E1
                n = n + k
                F
                E2
            except KIND:
                E3
                y = y - 1
            E4
    """,
    "around turns": """
        try:
            for k in range(3):
                E1
                n = n + k
                F
            E2
        except KIND:
            E3
    """,
    "tries": """
        for k in range(3):
            try:
                E1
                F
                break
            except KIND:
                E2
                n = n - 3
        else:
            E3
    """,
    "while": """
        m = n * 0
        while m < 3:
            m = m + 1
            n = n + 1
            try:
                F
                print("in", m)
            except KIND:
                print("out", m)
                y = y - 1
        E1
    """,
    "around a while": """
        m = n * 0
        try:
            while m < 3:
                m = m + 1
                n = n + 1
                F
            E1
        except KIND:
            E2
    """,
    "branch": """
        if x[1] > 1:
            try:
                E1
                F
            except KIND:
                E2
                y = x[0] * 3
        else:
            E3
        E4
    """,
    "around a branch": """
        try:
            E1
            if x[1] > 1:
                F
                E2
            E3
        except KIND:
            E4
            y = x[0] * 3
    """,
    "operators": """
        try:
            E1
            y = x[0] + TABLE[n] if x[1] > 1 else TABLE[n - 1] * 2
            E2
            z = x[1] > 1 and TABLE[n] > 1
            y = y + z
        except IndexError:
            E3
        F
    """,
    "two": """
        try:
            E1
            z = TABLE[n - 1]
            E2
            F
            y = y + z
        except (KIND, IndexError):
            E3
        E4
    """,
    "suppress": """
        with contextlib.suppress(KeyError), contextlib.suppress(KIND):
            E1
            F
            E2
        E3
    """,
    "manager": """
        with Manager() as manager:
            E1
            F
            E2
        E3
    """,
    "manager, caught": """
        try:
            with Manager(), contextlib.suppress(KeyError):
                E1
                F
                E2
        except KIND:
            E3
        E4
    """,
    "manager that swallows": """
        with Manager(True), Manager():
            E1
            F
            E2
        E3
    """,
    "manager, return": """
        def inner():
            with Manager(True):
                E1
                if x[1] > 1:
                    return x[0] * 3
                F
                return x[0] * 4
            return x[0] * 5
        y = inner()
        E2
    """,
    "generator as manager": """
        @contextlib.contextmanager
        def manager():
            print("enters")
            try:
                yield
            except KIND:
                print("catches")
            finally:
                print("exits")
        with manager():
            E1
            F
            E2
        E3
    """,
    "stack of managers": """
        def callback():
            E1
        with contextlib.ExitStack() as stack:
            stack.callback(callback)
            stack.enter_context(Manager())
            F
            E2
        E3
    """,
    "generator": """
        def items():
            y = x[0]
            yield y
            E1
            F
            E2
            yield y + 1
        try:
            for item in items():
                y = y + item
            E3
        except KIND:
            E4
    """,
}
INPUTS = (([1.0, 2.0], 2), ([2.0, 2.0], 7), ([3.0, 1.0], 3), ([4.0, 1.0], 7))
INNER = ("def inner():", "def callback():", "def items():", "def run(self):")


def program(flow: str, fail: str, effects: tuple[str, ...]) -> str:
    statement, kind = FAILS[fail]
    lines = ["def f(x, n):", "    y, local = x[0], x[0] * 0"]
    declared = "global COUNT" if "global" in effects else None
    if declared:
        lines.insert(1, f"    {declared}")
    for line in textwrap.indent(textwrap.dedent(FLOWS[flow]).strip("\n"), "    ").split("\n"):
        text, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if text[:1] == "E" and text[1:].isdigit():
            lines += [indent + EFFECTS[effect].format(k=text[1:]) for effect in effects]
        elif text == "F":
            lines += [indent + part for part in statement.split("\n")]
        else:
            lines.append(line.replace("KIND", kind))
        if text in INNER:
            lines += [indent + "    nonlocal local"] if "local" in effects else []
            lines += [f"{indent}    {declared}"] if declared else []
    return HEAD + "\n" + "\n".join([*lines, "    return y, local", ""])


def outcomes(module: Any, f: Callable[..., Any]) -> Iterator[Any]:
    for values, n in INPUTS:
        module.reset()
        before, printed = module.state(), io.StringIO()
        x, index = hf.asarray(values), hf.asarray(n, dtype="int32")
        try:
            with contextlib.redirect_stdout(printed):
                found: Any = module.plain(f(x, index))
        except TraceError:
            raise
        except Exception as error:
            text = str(error).partition("  (")[0]
            found = type(error).__name__, text, type(error.__cause__).__name__
        yield found, printed.getvalue(), module.state(), before


def compare(path: Path, text: str) -> None:
    path.write_text(text)
    modules = []
    for name in ("eager", "compiled"):
        module = types.ModuleType(name)
        exec(compile(text, str(path), "exec"), vars(module))
        modules.append(module)
    eager, compiled = modules
    pairs = zip(outcomes(eager, eager.f), outcomes(compiled, hf.function(compiled.f)), strict=True)
    for given, (want, got) in zip(INPUTS, pairs):
        assert got[:2] == want[:2], given
        for wanted, held, before in zip(want[2], got[2], got[3]):
            # What a program sets itself, it sets as a whole: after an error there is what was before.
            assert held == wanted or (isinstance(want[0], tuple) and held == before), given


@pytest.fixture(autouse=True)
def silent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", logger="hybridflow")


@pytest.mark.parametrize("fail", FAILS)
@pytest.mark.parametrize(
    "flow", [pytest.param(f, marks=pytest.mark.runs_eagerly) if f == "out of a lambda" else f for f in FLOWS]
)
def test_programs_do_what_they_do_eagerly(flow: str, fail: str, tmp_path: Path) -> None:
    compare(tmp_path / "program.py", program(flow, fail, ("print", "variable", "local")))


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("flow", ["plain", "all clauses", "raised again", "turns", "manager, caught", "generator"])
@pytest.mark.sample(4)
def test_all_effects(flow: str, effect: str, tmp_path: Path) -> None:
    for fail in ("index", "raise"):
        compare(tmp_path / f"{fail}.py", program(flow, fail, (effect,)))


@pytest.mark.parametrize("count", [2, 3])
def test_threads_leave_what_each_of_them_did(count: int) -> None:
    table, log, variable = hf.asarray([1.0, 2.0, 3.0]), [], hf.Variable(0.0)

    @hf.function
    def f(x: Any, n: Any) -> Any:
        log.append("before")
        variable.assign_add(x)
        y = table[n]
        log.append("after")
        return y

    f(hf.asarray(0.0), hf.asarray(1))
    log.clear()
    failed = []

    def run() -> None:
        for k in range(20):
            try:
                f(hf.asarray(1.0), hf.asarray(7 if k % 2 else 1))
            except IndexError:
                failed.append(k)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) == 10 * count and float(variable.numpy()) == 10.0 * count
    assert log.count("before") == 20 * count and log.count("after") == 10 * count


def test_a_body_may_wait_for_a_thread_that_calls_another_such_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both change objects that outlive the call, which calls do one at a time."""
    monkeypatch.setattr(tracer, "_PATIENCE", 0.05)
    outside: list[Any] = []
    inside: list[Any] = []
    waits: list[bool] = []
    ended: list[bool] = []
    zero = hf.zeros(1)  # one made by ``outer`` would belong to its trace, which another thread may not use

    @hf.function
    def inner(x: Any) -> Any:
        inside.append(x)
        return hf.asarray([1.0, 2.0])[hf.astype(x[0], "int64")]

    @hf.function
    def outer(x: Any) -> Any:
        outside.append(x)
        if waits:
            thread = threading.Thread(target=inner, args=(zero,), daemon=True)
            thread.start()
            thread.join(300)
            ended.append(not thread.is_alive())
        return x + 1

    inner(zero)
    outer(hf.ones(2))
    waits.append(True)
    with contextlib.suppress(TraceError):  # what another thread does meanwhile cannot be undone
        outer(hf.ones(2))
    assert ended and all(ended)
    assert len(inside) == 1 + len(ended) and not any(x.item() for x in inside)
