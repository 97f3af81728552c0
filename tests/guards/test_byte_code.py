"""Functions whose text is nowhere: their byte code is instrumented, and they are guarded like others."""

from __future__ import annotations

import ast
import dis
import inspect
import marshal
import os
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.autograph.hooks.bytecode_recorder import CODE_RECORDER
from hybridflow.autograph.hooks.recorder import RECORDER
from hybridflow.autograph.source import bytecode
from hybridflow.autograph.source.bytecode import assemble, disassemble, except_clauses
from hybridflow.autograph.transform import instrument_bytecode
from hybridflow.errors import TraceError
from hybridflow.guards import instrumented_code
from tests.support.guard_lab import Warnings
from tests.support.paths import ROOT

pytestmark = pytest.mark.every_python
GONE = "/nowhere/program.py"


def without_text(text: str, **names: Any) -> dict[str, Any]:
    """The names that a program makes, of which nothing but byte code arrives."""
    data = marshal.dumps(compile(textwrap.dedent(text), GONE, "exec", dont_inherit=True))
    found = {"__name__": "program", "hf": hf, **names}
    exec(marshal.loads(data), found)
    return found


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


MODULES = [dis, inspect, subprocess, textwrap, threading, bytecode, instrument_bytecode]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_what_is_taken_apart_and_put_together_is_the_same(module: types.ModuleType) -> None:
    text = inspect.getsource(module)
    for code in codes(compile(text, module.__file__, "exec", dont_inherit=True)):
        instructions, handlers = disassemble(code)
        again = assemble(code, [(each, [each]) for each in instructions], handlers, code.co_consts, 0)
        assert again.co_code == code.co_code
        assert list(again.co_positions()) == list(code.co_positions())
        assert dis._parse_exception_table(again) == dis._parse_exception_table(code)  # type: ignore[attr-defined]


def caught_in(function: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """The first lines of what a function's ``try`` statements guard, and what their clauses and those around catch."""

    def walk(nodes: list[ast.stmt], around: frozenset[str]) -> Iterator[tuple[int, set[str]]]:
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                continue
            inside = around
            if isinstance(node, ast.Try) and node.handlers:
                kinds = [one.type for one in node.handlers]
                names = [part for kind in kinds for part in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
                inside = around.union("BaseException" if name is None else ast.unparse(name) for name in names)
                if not isinstance(node.body[0], (ast.Try, ast.Pass, ast.Import, ast.ImportFrom)):
                    yield node.body[0].lineno, set(inside)
            for field in ("body", "handlers", "orelse", "finalbody"):
                children = [
                    child
                    for part in getattr(node, field, [])
                    for child in (part.body if isinstance(part, ast.ExceptHandler) else [part])
                ]
                yield from walk(children, inside if field == "body" else around)

    assert isinstance(function, ast.FunctionDef)
    return walk(function.body, frozenset())


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_except_clauses_are_found_in_byte_code(module: types.ModuleType) -> None:
    text = inspect.getsource(module)
    by_line = {code.co_firstlineno: code for code in codes(compile(text, "", "exec", dont_inherit=True))}
    for function in [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]:
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        wanted = list(caught_in(function))
        clauses = except_clauses(by_line[first])
        assert bool(clauses) >= bool(wanted)
        for line, names in wanted:
            covering = [set(one.catches) for one in clauses if one.first <= line <= one.last]
            assert names in covering, (function.name, line, covering)


@pytest.mark.runs_eagerly
def test_what_a_failing_op_raises_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """By ``except`` as Python runs it: the function runs eagerly.  Other clauses do not matter."""
    program = """
        import contextlib

        def caught(x, i):
            try:
                with contextlib.nullcontext():
                    return x[i]
            except (KeyError, IndexError):
                return x[0] - 1

        def of_others(x, i):
            try:
                return helper(x, i)
            except KeyError:
                return x[0]
            finally:
                str(x.shape)

        def helper(x, i):
            return x[i]

        def of_callers(x, i):
            try:
                return helper(x, i)
            except LookupError:
                return x[0] - 2
    """
    names, messages = without_text(program), listen(monkeypatch)
    x, inside, outside = hf.asarray([5.0, 6.0]), hf.asarray(1), hf.asarray(7)
    for name, answer in (("caught", 4.0), ("of_callers", 3.0)):
        f = hf.function(names[name])
        assert f(x, inside).item() == 6.0 and f(x, outside).item() == answer
        assert "whose text is not known" in messages.pop() and not messages
    g = hf.function(names["of_others"])
    assert g(x, inside).item() == 6.0 and len(g.signatures()) == 1 and not messages
    with pytest.raises(IndexError):
        g(x, outside)


def test_every_instruction_of_a_function_is_known() -> None:
    """But for those of a module's top and of the interpreter itself."""
    known = {*instrument_bytecode._QUIET, *instrument_bytecode._QUIET_INTRINSICS, *instrument_bytecode._BEFORE}
    known |= {*instrument_bytecode._REPLACED, *instrument_bytecode._NOTED}
    others = {"CACHE", "EXTENDED_ARG", "IMPORT_STAR", "PRINT_EXPR", "INTERPRETER_EXIT", "RESERVED"}
    others |= {"ENTER_EXECUTOR", "EXIT_INIT_CHECK"}
    names = {name for name, number in dis.opmap.items() if number < 256 and not name.startswith("INSTRUMENTED_")}
    assert names - known <= others


def twin(function: types.FunctionType) -> types.CodeType:
    return instrument_bytecode.instrument_code(function.__code__, CODE_RECORDER)


def test_twins_have_the_lines_and_columns_of_the_instructions() -> None:
    # fmt: off
    def f(d: Any, key: Any) -> Any:
        first = d[
            key
        ]
        return (
            first.missing
            + 1
        )
    # fmt: on

    f.__code__ = twin(f)
    for key, line, column in (("no", 1, 16), ("yes", 5, 12)):
        with pytest.raises((KeyError, AttributeError)) as caught:
            f({"yes": 1}, key)
        entry = next(entry for entry in caught.traceback if entry.name == "f")._rawentry
        place = list(f.__code__.co_positions())[entry.tb_lasti // 2]
        assert place[0] == entry.tb_lineno == f.__code__.co_firstlineno + line and place[2] == column


def test_jumps_over_more_than_an_argument_holds() -> None:
    """Each value takes some instructions, and has a place among the constants: prefixes are needed everywhere."""
    lines = [f"        total += table['k{i}'] * {i}.5" for i in range(400)]
    text = "def f(table, n):\n    total = 0.0\n    for i in range(n):\n        if i == 1: continue\n"
    found = without_text(text + "\n".join(lines) + "\n    return total\n")
    function = found["f"]
    table = {f"k{i}": float(i % 7) for i in range(400)}
    want = [function(table, n) for n in range(4)]
    function.__code__ = twin(function)
    assert [function(table, n) for n in range(4)] == want and len(function.__code__.co_consts) > 800


def test_the_stack_has_room_for_what_is_added() -> None:
    """Whatever an expression keeps on the stack, calls of the recorder come on top."""
    deep = "(d[0] + " * 60 + "d[1]" + ")" * 60
    many = ", ".join(f"d[{i % 2}]" for i in range(300))
    found = without_text(f"def f(d):\n    return {deep}, max({many}), f'{{d[0]!r:>{{d[1]}}}}', [*d, *d]\n")
    want = found["f"]([1, 2])
    found["f"].__code__ = twin(found["f"])
    assert found["f"]([1, 2]) == want


PROGRAM = """
    import types

    tools = types.ModuleType("tools")
    tools.floor = lambda x: x // 1
    k = 2.0
    table = {"a": [1.0, 2.0], "b": {"c": 3.0}}

    class Model:
        scale = 1.0

        def __init__(self, weight):
            self.weight = weight

        @property
        def both(self):
            return self.weight * self.scale

        def __call__(self, x, *, add=0.0):
            return x * self.both + add

    class Wide(Model):
        def __call__(self, x, **options):
            return super().__call__(x, **options) + 1.0

    model = Wide(3.0)

    def helper(x, by=5.0):
        return [x * i for i in range(3)][1] + by

    def made(rate):
        def inner(x):
            return x * rate + table["b"]["c"]
        def set_rate(value):
            nonlocal rate
            rate = value
        return inner, set_rate

    inner, set_rate = made(0.5)

    def f(x):
        first, *rest = table["a"]
        y = helper(x) + model(x, add=k) + inner(x)
        if first > 0 and "d" not in table and model.weight is not None:
            y = y + first * len(rest)
        return y + tools.floor(2.5) + float(f"{k:.2f}")
"""

CHANGES = [
    "k = 7.0",
    "table['a'][0] = -1.0",
    "table['a'].append(3.0); table['a'][0] = 2.0",
    "table['b']['c'] = 4.0",
    "table['d'] = 1",
    "model.weight = 5.0",
    "Model.scale = 2.0",
    "Wide.both = 11.0",
    "set_rate(0.25)",
    "helper.__defaults__ = (9.0,)",
    "def helper(x): return x",
    "tools.floor = lambda x: 100.0",
]


def test_what_byte_code_reads_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    warned = listen(monkeypatch)
    names = without_text(PROGRAM)
    function, x = hf.function(names["f"]), hf.asarray([1.0, 2.0])
    for k, change in enumerate(["pass", *CHANGES]):
        exec(compile(change, GONE, "exec"), names)
        for _ in range(3):
            assert function(x).tolist() == names["f"](x).tolist(), change
        assert len(function.signatures()) == k + 1, change
    assert not warned


def listen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is warned of from now on."""
    import logging

    kept, logger = Warnings(), logging.getLogger("hybridflow")
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, kept])
    return kept.messages


def test_what_reads_nothing_from_outside_needs_no_guard_but_its_code() -> None:
    function = hf.function(without_text("f = lambda x: x + 1")["f"])
    function(hf.ones(2))
    (variant,) = function._cache.variants()
    assert {step.read for step in variant.guards.steps} <= {"root", "weak", "code"}


def test_what_is_not_known_is_traced_at_each_call_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    warned = listen(monkeypatch)
    monkeypatch.setattr(instrument_bytecode, "_QUIET", instrument_bytecode._QUIET - {"BUILD_SET"})
    names = without_text("def helper(x): return x * len({x.ndim, k})\ndef f(x): return helper(x)", k=3)
    function = hf.function(names["f"])
    for k in (3, 1, 3):
        names["k"] = k
        assert function(hf.ones(1)).item() == len({1, k})
    assert not function.signatures()
    (said,) = warned
    assert "runs helper, of which neither the source nor the byte code can be read" in said and "BUILD_SET" in said
    with pytest.raises(TraceError, match="BUILD_SET"):
        hf.function(names["f"], strict=True)(hf.ones(1))


def test_byte_code_of_another_python_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument_bytecode, "IS_KNOWN", False)
    names = without_text("def f(x): return x * k", k=2.0)
    function = hf.function(names["f"])
    for k in (2.0, 3.0):
        names["k"] = k
        assert function(hf.ones(1)).item() == k
    assert not function.signatures()


BRANCHES = {
    "if": "def f(x):\n    if hf.sum(x) > 0:\n        return x\n    return -x\n",
    "not": "def f(x):\n    return x if not (hf.sum(x) > 0) else -x\n",
    "and": "def f(x):\n    return x if k and hf.all(x > 0) else -x\n",
    "while": "def f(x):\n    while hf.sum(x) < 9:\n        x = x * 2\n    return x\n",
    "for": "def f(x):\n    for i in range(hf.astype(hf.sum(x), 'int64')):\n        x = x * i\n    return x\n",
    "in": "def f(x):\n    return x if x[0] in (1.0, 2.0) else -x\n",
    "in a helper": "def g(x):\n    return x if hf.sum(x) > 0 else -x\ndef f(x):\n    return g(x)\n",
    "in a lambda": "def f(x):\n    return (lambda y: y if hf.sum(y) > 0 else -y)(x)\n",
    "assert": "def f(x):\n    assert hf.sum(x) > 0\n    return x\n",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_statements_that_a_tensor_decides_about_are_errors_that_say_what_to_do(name: str) -> None:
    function = hf.function(without_text(BRANCHES[name], k=True)["f"])
    for _ in range(2):
        with pytest.raises(TraceError, match=r"that of \S+ is not known.*Define it in a file, or write hf\.cond"):
            function(hf.ones(2))


def test_the_text_is_preferred_where_there_is_one() -> None:
    def f(x: Any) -> Any:
        return x * 2

    assert instrumented_code.is_converted(instrumented_code.instrument_function(f, RECORDER, CODE_RECORDER))
    made = instrumented_code.instrument_function(without_text("def f(x): return x * 2")["f"], RECORDER, CODE_RECORDER)
    assert instrumented_code.is_instrumented(made) and not instrumented_code.is_converted(made)


def test_functions_with_text_call_functions_without() -> None:
    names = without_text("def scale(x): return x * k\nclass A:\n    def __add__(self, x): return x + k\n", k=2.0)
    scale, a = names["scale"], names["A"]()

    @hf.function
    def f(x: Any) -> Any:
        y = a + scale(x)
        if hf.sum(y) > 100:
            y = scale(y)
        return y

    for k, want in ((2.0, 4.0), (3.0, 6.0), (200.0, 80000.0), (2.0, 4.0)):
        names["k"] = k
        assert [f(hf.ones(1)).item() for _ in range(2)] == [want] * 2
    assert len(f.signatures()) == 3


def test_other_threads_run_the_twin_meanwhile() -> None:
    begun, over = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        over.wait(300)

    names = without_text(
        "def g(x): return [x * k for _ in range(2)][1]\ndef f(x):\n    y = g(x)\n    w()\n    return y", k=2.0
    )
    names["w"] = wait
    thread = threading.Thread(target=lambda: hf.function(names["f"])(hf.ones(1)))
    thread.start()
    assert begun.wait(300)
    own, names["k"] = names["g"].__code__, 5.0
    assert names["g"](1.0) == 5.0 and hf.function(names["g"])(hf.ones(1)).item() == 5.0
    over.set()
    thread.join(300)
    assert instrumented_code.is_instrumented(own) and not instrumented_code.is_instrumented(names["g"].__code__)


# Programs as they are pasted

CALLS = """
import sys
import hybridflow as hf
from hybridflow.tracing.trace import Trace

traces = []
make = Trace.__init__
def count(trace, *args, **kwargs):
    traces.append(trace)
    make(trace, *args, **kwargs)

k = 2.0
def helper(x):
    return x * k

@hf.function
def f(x):
    return helper(x) + 1

x = hf.asarray([1.0, 2.0])
f(x), f(x)
Trace.__init__ = count
code = count.__code__
count.__code__ = code.replace(co_filename=make.__code__.co_filename)
print(f(x).tolist(), len(traces))
k = 3.0
print(f(x).tolist(), f(x).tolist(), len(traces))
"""
SAID = "[3.0, 5.0] 0\n[4.0, 7.0] [4.0, 7.0] 1\n"


def run(arguments: list[str], **options: Any) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, env=environment, **options
    )
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments", [[], ["-"]], ids=["python", "python -"])
def test_a_program_from_a_pipe(arguments: list[str]) -> None:
    assert run(arguments, input=CALLS) == SAID


def test_a_program_that_another_one_executes(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(CALLS)
    assert run(["-c", f"exec(open({str(path)!r}).read())"]) == SAID
    assert run(["-c", f"import runpy; runpy.run_path({str(path)!r})"]) == SAID


def test_a_program_of_which_there_is_byte_code_alone(tmp_path: Path) -> None:
    import py_compile

    path = tmp_path / "program.py"
    path.write_text(CALLS)
    made = py_compile.compile(str(path), str(tmp_path / "alone.pyc"))
    path.unlink()
    assert run([made]) == SAID
    assert run(["-c", "import sys; sys.path.insert(0, sys.argv[1]); import alone", str(tmp_path)]) == SAID


def test_a_function_that_is_sent_to_another_process(tmp_path: Path) -> None:
    """By value, as cloudpickle does: its code, its globals, its cells."""
    sender = """
        import marshal, sys
        k = 2.0
        def made(rate):
            def f(x): return x * k + rate
            return f
        f = made(1.0)
        sys.stdout.buffer.write(marshal.dumps((f.__code__, f.__closure__[0].cell_contents, k)))
    """
    receiver = """
        import marshal, sys, types
        import hybridflow as hf
        code, rate, k = marshal.load(open(sys.argv[1], "rb"))
        names = {"k": k}
        function = hf.function(types.FunctionType(code, names, "f", None, (types.CellType(rate),)))
        x = hf.asarray([1.0])
        print([function(x).item() for _ in range(3)], len(function.signatures()))
        names["k"] = 5.0
        print([function(x).item() for _ in range(3)], len(function.signatures()))
    """
    sent = tmp_path / "sent"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(sender)], capture_output=True, timeout=300, check=True)
    sent.write_bytes(done.stdout)
    assert run(["-c", textwrap.dedent(receiver), str(sent)]) == "[3.0, 3.0, 3.0] 1\n[6.0, 6.0, 6.0] 2\n"


SENT = """
import subprocess, sys
import cloudpickle
import hybridflow as hf

k = 2.0

def helper(x):
    return x * k

@hf.function(cache_size=3)
def f(x):
    return helper(x) + 1

@hf.function
def doubled(x, n):
    return x if n == 0 else doubled(x, n - 1) * 2

class Model:
    def __init__(self):
        self.rate = 3.0

    @hf.function
    def step(self, x):
        return x * self.rate

receiver = '''
import pickle, sys
import hybridflow as hf
f, task, doubled, model, lambda_ = pickle.load(sys.stdin.buffer)
x = hf.asarray([1.0])
for _ in range(3):
    print(f(x).item(), task(x).item(), doubled(x, 3).item(), model.step(x).item(), lambda_(x).item())
print(len(f.signatures()), f._options.cache_size, len(lambda_.signatures()))
'''
sent = cloudpickle.dumps([f, lambda x: f(x), doubled, Model(), hf.function(lambda x: x - k)])
print(subprocess.run([sys.executable, "-c", receiver], input=sent, capture_output=True, check=True).stdout.decode())
"""


def test_compiled_functions_are_sent_by_value() -> None:
    pytest.importorskip("cloudpickle")
    lines = run(["-"], input=SENT).split("\n")
    assert lines == ["3.0 3.0 8.0 3.0 -1.0"] * 3 + ["1 3 1", "", ""]
