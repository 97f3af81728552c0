"""Calls that go by way of Python say so: in a warning, once, and wherever a function shows what it is."""

from __future__ import annotations

import dataclasses
import enum
import logging

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.jit import guard_report, native_entry
from hybridflow.runtime.calls import entry

pytestmark = pytest.mark.usefixtures("native")

X = hf.asarray([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(guard_report, "reported", {})


@dataclasses.dataclass
class WithCode:
    x: object

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Mode(enum.Enum):
    FAST = 1


def prints(x):
    hf.print(x[0])
    return x * 2


def decomposes(x):
    return hf.linalg.svd(hf.stack([x, x + 1.0, x * x]))[1]


def calls_python(x):
    return hf.numpy_function(lambda v: v + 1, [x], hf.TensorSpec(x.shape, x.dtype)) * 2


V = hf.Variable(1.0)


def loops_and_assigns(x):
    while hf.sum(x) < 100:
        x = x * 1.5
        V.assign_add(1.0)
    return x


def compares(*tensors):
    return sum(k for k, a in enumerate(tensors) if a is tensors[0]) + tensors[0]


def reads_fields(value):
    return value.x * 2


REFUSED = [
    (prints, (X,), "its program calls Python (at "),
    (decomposes, (X,), "its program calls Python (svd at "),
    (calls_python, (X,), "its program calls Python (at "),
    (loops_and_assigns, (X,), "it assigns variables, and a loop in it can be interrupted"),
    (compares, tuple(hf.asarray([float(k)]) for k in range(40)), "it asks which of many tensors are one object"),
    (reads_fields, (WithCode(X),), "reading the fields of a WithCode runs code"),
]


@pytest.mark.parametrize("function, args, reason", REFUSED)
def test_the_reason_is_shown(function, args, reason, caplog):
    f = hf.function(function)
    with caplog.at_level(logging.WARNING, "hybridflow"):
        f(*args)
        assert not [r for r in caplog.records if "by way of Python" in r.getMessage()]  # a call alone loses nothing
        for _ in range(9):
            f(*args)
    told = [r.getMessage() for r in caplog.records if "by way of Python" in r.getMessage()]
    assert len(told) == 1 and told[0].startswith(f"{function.__name__} is called by way of Python"), told
    assert reason in told[0]
    explained = f.explain(*args)
    assert reason in explained.in_python and f"called by way of Python: {reason}" in str(explained)
    assert reason in f.signatures()[-1]["in Python since"] and reason in f.signatures().wide()
    assert f"called by way of Python, since {reason}" in repr(f)
    profiled = f.profile(*args, runs=1)
    assert reason in profiled.in_python and reason in str(profiled)
    assert f._cache.variants()[-1].native_hits == 0


def test_it_is_known_before_there_was_a_call():
    f = hf.function(prints)
    assert "its program calls Python" in f.explain(X).in_python


def test_native_calls_say_nothing(caplog):
    f = hf.function(lambda x, mode=Mode.FAST: x * 2 if mode is Mode.FAST else x)
    with caplog.at_level(logging.WARNING, "hybridflow"):
        for _ in range(9):
            f(X)
            f(X.numpy())
    assert not caplog.records and "Python" not in repr(f) and "Python" not in str(f.signatures())
    assert f.explain(X).in_python is None and f.profile(X, runs=1).in_python is None
    assert "by way of Python" not in str(f.explain(X))


def test_what_was_asked_for_gives_no_warning(caplog):
    f = hf.function(lambda x: x + 1, donate_argnums=(0,))
    with caplog.at_level(logging.WARNING, "hybridflow"):
        for _ in range(3):
            f(hf.asarray(np.ones(3, np.float32)))
    assert not caplog.records
    assert f.explain(X).in_python == "it takes over the memory of arguments"


def test_arguments_of_which_each_call_makes_tensors(caplog):
    f = hf.function(lambda x: x * 2, input_signature=[hf.TensorSpec([None])], name="doubled")
    with caplog.at_level(logging.WARNING, "hybridflow"):
        for _ in range(4):
            assert f([1.0, 2.0]).tolist() == [2.0, 4.0]
    assert [r.getMessage() for r in caplog.records] == [
        "doubled is called by way of Python, which takes longer than natively: an argument is a list, of which each "
        "call makes a tensor. To avoid it: pass a tensor or a NumPy array."
    ]
    assert f.explain(X).in_python is None and "an argument is a list" in f.explain([1.0, 2.0]).in_python
    assert "an argument is a list" in f.explain().in_python  # of calls so far


def test_other_forms_of_calls_stay_native():
    f = hf.function(reads_fields)

    @dataclasses.dataclass
    class Plain:
        x: object

    for _ in range(4):
        f(WithCode(X))
        f(Plain(X))
    assert f.explain(WithCode(X)).in_python is not None and f.explain(Plain(X)).in_python is None
    assert "by way of Python" in repr(f)


def test_each_function_says_it_once_in_a_process(caplog):
    with caplog.at_level(logging.WARNING, "hybridflow"):
        for _ in range(5):
            f = hf.function(prints)
            for _ in range(3):
                f(X)
    assert len([r for r in caplog.records if "by way of Python" in r.getMessage()]) == 1


def test_without_native_code(monkeypatch, caplog):
    monkeypatch.setattr(entry, "problem", lambda: "the interpreter is free-threaded")
    f = hf.function(lambda x: x * 3)
    f._call_slow(X)
    with caplog.at_level(logging.WARNING, "hybridflow"):
        for _ in range(5):
            f._call_slow(X)
    told = [r.getMessage() for r in caplog.records]
    assert told == [
        "hybridflow is called by way of Python, which takes longer than natively: the interpreter is free-threaded. "
        "To avoid it: see the command `hybridflow doctor`."
    ]
    assert f.explain(X).in_python.startswith("the interpreter is free-threaded")


def test_refusals_have_words():
    """No condition is without a reason."""
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(native_entry))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "_require"]
    raised = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "_InPythonError"]
    assert len(calls) > 10 and all(len(call.args) >= 2 for call in calls)
    assert raised and all(call.args for call in raised)
