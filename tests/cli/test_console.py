"""What a console shows, and what environment variables say."""

from __future__ import annotations

import copy
import pickle
import re
import traceback
from collections.abc import Callable

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.cli import commands
from hybridflow.errors import is_internal
from hybridflow.jit.inspection import Table
from tests.support.paths import ROOT


def several(x: hf.Tensor, y: hf.Tensor) -> tuple[hf.Tensor, hf.Tensor]:
    total = hf.sum(hf.exp(x - hf.max(x, axis=1, keepdims=True)) * y, axis=0)
    return hf.sort(total) @ y.T, hf.cumulative_sum(hf.tanh(total * 2 + 1) / 3, axis=0)


def test_tables_fit_a_narrow_terminal_and_have_everything_when_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    f = hf.function(several)
    x = hf.ones((20, 30))
    for table in (f.kernels(x, x), f.memory_plan(x, x), f.signatures()):
        assert max(map(len, repr(table).splitlines())) <= 80
        assert len(repr(table).splitlines()) == len(table) + 1
        assert table.wide().split("\n")[0].split() == " ".join(table.columns).split()
    assert "schedule" in f.kernels(x, x).rows[0] and "schedule" not in repr(f.kernels(x, x))
    assert max(map(len, repr(f.explain(x, x)).splitlines()[3:])) <= 82  # tables are set in by two
    assert "schedule" in f.explain(x, x).wide()


def test_long_cells_are_cut_and_short_ones_are_not() -> None:
    table = Table(("a", "b", "c"), [("x" * 50, 1, None), ("short", 22, None)])
    assert table.text(20) == "a" + " " * 17 + "b\n" + "x" * 15 + "…  1\nshort" + " " * 13 + "22"
    assert table.text(3).splitlines()[1] == "x" * 11 + "…  1"  # no narrower than that
    assert table.wide().splitlines()[1] == "x" * 50 + "  1"
    assert repr(Table(("a", "b"), [])) == "a  b"


def test_texts_show_as_they_print() -> None:
    f = hf.function(lambda x: x + 1)
    f(hf.ones(2))
    f(hf.ones(3))
    (retrace,) = f.retraces()
    assert repr(retrace) == str(retrace) and re.match(r"<lambda> at .*: x: f32\[2\] → f32\[\?\] \(", repr(retrace))
    for stage in ("traced", "optimized", "llvm", "asm"):
        text = f.ir(hf.ones(2), stage=stage)
        assert isinstance(text, str) and repr(text) == str(text) and "\n" in repr(text)


def test_every_flag_is_in_the_help_and_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["--help"]) == 0
    out, page = capsys.readouterr().out, (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    for flag in flags.ALL:
        assert flag.name in out and f"`{flag.name}`" in page
    assert max(map(len, out.splitlines())) <= 80
    used = {f"HF_{name}" for name, flag in vars(flags).items() if isinstance(flag, flags.Flag)}
    assert used == {flag.name for flag in flags.ALL}
    code = [path.read_text(encoding="utf-8") for path in (ROOT / "hybridflow").rglob("*.py")]
    code += [
        path.read_text(encoding="utf-8") for folder in ("compiler", "runtime") for path in (ROOT / folder).rglob("*.py")
    ]
    for name in (name for name, flag in vars(flags).items() if isinstance(flag, flags.Flag)):
        assert any(f"flags.{name}" in text for text in code) or name == "LOG", f"{name} is read nowhere"


def test_topics_and_levels(capsys: pytest.CaptureFixture[str]) -> None:
    f = hf.function(lambda x: hf.exp(x) + 1)
    with flags.CACHE_DIR("off"), flags.LOG("retrace,kernels"), flags.DEBUG(4):
        f(hf.ones(2))
        f(hf.ones(3))
    err = capsys.readouterr().err
    assert "[kernels] <lambda>: exp_add (exp, add), 16 bytes" in err
    assert "[retrace] <lambda> at " in err and "f32[2] → f32[?]" in err
    assert "# passes on <lambda>" in err and 'graph "<lambda>"(' in err and "# LLVM IR of <lambda>" in err


def frames(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def inner(y: hf.Tensor) -> hf.Tensor:
    return hf.concat([y, hf.ones((1, 2))])


def test_tracebacks_are_the_users_own() -> None:
    f = hf.function(lambda x: inner(x * 2))
    outside = hf.function(lambda x: f(x) + 1)
    for call in (lambda: f(hf.ones(3)), lambda: outside(hf.ones(3)), lambda: f("a"), lambda: inner(hf.ones(3))):
        with pytest.raises(hf.errors.HybridflowError) as caught:
            call()
        short = frames(caught.value)
        with flags.TRACEBACK("full"), pytest.raises(hf.errors.HybridflowError) as whole:
            call()
        full = frames(whole.value)
        assert [name for name in short if name == __file__] == [name for name in full if name == __file__]
        assert len(short) - short.count(__file__) <= 2 < len(full) - full.count(__file__)
    assert len(frames(caught.value)) <= 5


X, Y = hf.ones((2, 3)), hf.ones((4, 5))
SHORT = {
    "add": lambda: X + Y,
    "reflected": lambda: [1.0, 2.0] + X,
    "of a variable": lambda: hf.Variable(X) + Y,
    "matmul": lambda: X @ Y,
    "compare": lambda: X < Y,
    "negative": lambda: -hf.asarray([True]),
    "getitem": lambda: X[5],
    "setitem": lambda: hf.ones(3).__setitem__(9, 1),
    "T": lambda: hf.ones(3).T,
    "contains": lambda: Y in X,
    "method": lambda: X.sum(axis=9),
    "reshape": lambda: X.reshape(7),
    "function": lambda: hf.sum(X, axis=9),
    "function of two": lambda: hf.add(X, Y),
    "function of one": lambda: hf.negative(hf.asarray([True])),
    "assign": lambda: hf.Variable(X).assign(Y),
    "variable": lambda: hf.Variable("a"),
    "decomposition": lambda: hf.linalg.inv(X),
    "no decomposition": lambda: hf.linalg.cholesky(-hf.eye(3)),
    "norm": lambda: hf.linalg.matrix_norm(hf.ones(3)),
    "numpy": lambda: np.add(X, Y),
    "gradient": lambda: hf.grad(lambda x: x)(X),
    "signature": lambda: hf.function(lambda x: x + Y).get_concrete_function(X),
    "kernels": lambda: hf.function(lambda x: x + Y).kernels(X),
    "ir": lambda: hf.function(lambda x: x + Y).ir(X, stage="none"),
    "explain": lambda: hf.function(lambda x: x + Y).explain(X),
    "profile": lambda: hf.function(lambda x: x + Y).profile(X),
    "tune": lambda: hf.function(lambda x: x + Y).tune(X, runs=1),
}


@pytest.mark.parametrize("name", SHORT)
def test_tracebacks_have_no_more_than_two_frames_of_ours(name: str) -> None:
    for _ in range(5):  # natively, too
        with pytest.raises(hf.errors.HybridflowError) as caught:
            SHORT[name]()
        names = frames(caught.value)
        assert names[0] == __file__ and sum(map(is_internal, names)) <= 2, names
    with flags.TRACEBACK("full"), pytest.raises(hf.errors.HybridflowError) as caught:
        SHORT[name]()
    assert sum(map(is_internal, frames(caught.value))) > 2


def test_the_classes_of_errors_are_the_public_ones() -> None:
    with pytest.raises(np.linalg.LinAlgError) as caught:
        hf.linalg.inv(hf.ones((2, 2)))
    assert traceback.format_exception_only(caught.value)[0].startswith("hybridflow.errors.LinAlgError: [inv]")
    with pytest.raises(AttributeError) as missing:
        _ = hf.softmax
    assert traceback.format_exception_only(missing.value)[0].startswith("AttributeError: module 'hybridflow'")


@pytest.mark.parametrize("call", [lambda: hf.ones(2) + hf.ones(3), lambda: hf.linalg.inv(hf.ones((2, 2)))])
def test_errors_go_from_process_to_process(call: Callable[[], object]) -> None:
    with pytest.raises(hf.errors.HybridflowError) as caught:
        call()
    error = caught.value
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error) and again.args == error.args
        assert (again.stage, again.where, str(again)) == (error.stage, error.where, str(error))


def test_tracebacks_of_errors_of_the_users_end_where_they_were_raised() -> None:
    @hf.function
    def f(x: hf.Tensor) -> hf.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        f(hf.ones(3))
    assert frames(caught.value)[-1] == __file__
    assert caught.value.__context__ is None and caught.value.__cause__ is None
