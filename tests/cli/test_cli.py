"""The command line: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hybridflow
from hybridflow import flags
from hybridflow.cli import bench, commands, machine_peaks, measure, output, target, threads
from hybridflow.cli.measure import Timing
from hybridflow.errors import ArgumentError
from hybridflow.runtime.machine import disk_cache
from tests.support.paths import ROOT

pytestmark = pytest.mark.code


SOURCE = """
import hybridflow as hf

def double(x):
    return x * 2.0

@hf.function(input_signature=[hf.TensorSpec((2, 3)), hf.TensorSpec((3, 4))])
def product(x, y):
    return hf.nn.relu(x @ y)

@hf.function(input_signature=[hf.TensorSpec((None, 3))])
def open_rows(x):
    return hf.sum(x, axis=0)

def broken(x):
    return x.no_such_thing

def mismatch(x, y):
    return x @ y

class Model:
    size = 3

    def step(self, batch, rest):
        return batch["x"] * rest[0], hf.take(rest[0], batch["i"])

    @hf.function
    def call(self, x):
        return x + self.size

class Sized:
    def __init__(self, size):
        self.step = size

model = Model()

constant = 3
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(sys, "path", sys.path[:])  # a process of its own would keep the folder of the file there

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = commands.run(arguments)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the least that can be measured: what is printed is tested here, not how fast this machine is."""
    interleaved = measure.interleaved
    monkeypatch.setattr(measure, "interleaved", lambda candidates, budget=0: interleaved(candidates, 0, 3))
    monkeypatch.setattr(measure, "SAMPLE_SECONDS", 1e-5)
    monkeypatch.setattr(machine_peaks, "_BYTES", 3 << 20)


# Wrong use


def test_usage(run: Run) -> None:
    assert run("--version") == (0, f"hybridflow {hybridflow.__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0 and all(word in out for word in ("bench", "explain", "profile", "ir", "doctor", "cache"))
    for arguments in ((), ("frobnicate",), ("cache",), ("cache", "drop"), ("ir", "f.py::f", "--stage", "wasm")):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "") and "usage:" in err


def test_help_says_how_limits_are_measured(run: Run) -> None:
    code, out, _ = run("bench", "--help")
    text = " ".join(out.split())
    assert code == 0 and "fused multiply-adds in registers" in text and "192 MiB" in text


@pytest.mark.parametrize("command", ["bench", "explain", "profile", "ir"])
@pytest.mark.parametrize(
    "target, message",
    [
        ("{file}", "names no function. Write FILE::function, such as train.py::step."),
        ("{folder}/progam.py::double", "there is no file {folder}/progam.py; did you mean {folder}/program.py?"),
        ("{folder}/zzz.py::double", "there is no file {folder}/zzz.py."),
        ("{folder}/none/zzz.py::double", "there is no file {folder}/none/zzz.py, nor a folder {folder}/none."),
        ("{file}::duoble", "{file} has no function duoble; did you mean double?"),
        ("{file}::zzz", "{file} has no function zzz; it has double, product, open_rows, broken, mismatch."),
        ("{file}::Model.stop", "there is no Model.stop: a Model has no attribute stop."),
        ("{file}::Sized.step", "Sized() needs arguments. Make an instance in the file and name its method."),
        ("{file}::Model.size", "Model.size is a int, not a function."),
        ("{file}::Model", "Model is a type, not a function."),
        ("{file}::constant", "constant is a int, not a function."),
    ],
)
def test_wrong_targets(run: Run, file: str, command: str, target: str, message: str) -> None:
    names = {"file": file, "folder": os.path.dirname(file)}
    code, out, err = run(command, target.format(**names))
    assert (code, out) == (2, "")
    assert err.startswith(f"[{command}] ") and err.endswith(f"{message.format(**names)}\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "shapes, message",
    [
        ("3xx4", "--shapes: '3xx4' is no shape. Write one shape per argument"),
        ("-3", "--shapes: '-3' is no shape."),
        ("3:f23", "--shapes: there is no dtype 'f23'; did you mean f32?"),
        ("3,4", "double(x) cannot be called with 2 tensors."),
        ("", "double(x) cannot be called with 0 tensors."),
    ],
)
def test_wrong_shapes(run: Run, file: str, shapes: str, message: str) -> None:
    code, out, err = run("explain", f"{file}::double", f"--shapes={shapes}")
    assert (code, out) == (2, "") and message in err and "Traceback" not in err


def test_shapes() -> None:
    texts = [str(spec) for spec in target.parse_shapes("32x128, 4:f64,scalar,10:int64,0x3:bool,scalar:u8", "bench")]
    assert texts == ["f32[32,128]", "f64[4]", "f32[]", "i64[10]", "bool[0,3]", "u8[]"]


def test_nested_shapes_and_ranges() -> None:
    nested = target.parse_shapes("{x=2x3, y=[4:i64:-5..5,{z=scalar}]} , 7", "bench")
    assert [target.text_of(spec) for spec in nested] == ["{x=f32[2,3], y=[i64[4], {z=f32[]}]}", "f32[7]"]
    batch, last = target.random_tensors(nested, "bench")
    assert batch["x"].shape == (2, 3) and batch["y"][1]["z"].shape == () and last.shape == (7,)
    (many,) = target.random_tensors(target.parse_shapes("1000:i8:-5..5", "bench"), "bench")
    assert set(many.tolist()) == set(range(-5, 5))


@pytest.mark.parametrize(
    "shapes", ["{i=3", "{3}", "3]", "3:f32:0..4", "[3,{a=2", "3:i64:5..5", "{a=3}}", "[,]", "{=3}"]
)
def test_wrong_nested_shapes(run: Run, file: str, shapes: str) -> None:
    code, out, err = run("explain", f"{file}::double", "--shapes", shapes)
    assert (code, out) == (2, "") and err.startswith("[explain] --shapes: ") and "Write one shape per argument" in err


def test_methods_and_dicts(run: Run, file: str) -> None:
    shapes = "{x=5,i=3:i64:0..5},[5]"
    for name in ("Model.step", "model.step"):
        code, out, _ = run("explain", f"{file}::{name}", "--shapes", shapes)
        assert code == 0 and 'batch["i"]: i64[3]' in out and "rest[0]: f32[5]" in out
    assert run("explain", f"{file}::model.call", "--shapes=3").code == 0
    code, out, _ = run("bench", f"{file}::Model.step", "--shapes", shapes)
    assert code == 0 and "Model.step({x=f32[5], i=i64[3]}, [f32[5]])" in out


def test_random_tensors_are_the_same_every_time() -> None:
    specs = target.parse_shapes("3x2,4:i32,5:bool,2:bf16,scalar", "bench")
    first, second = (target.random_tensors(specs, "bench") for _ in range(2))
    assert [str(t.type) for t in first] == ["f32[3,2]", "i32[4]", "bool[5]", "bf16[2]", "f32[]"]
    assert all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(first, second))
    with pytest.raises(ArgumentError, match="leaves an extent open"):
        target.random_tensors([hybridflow.TensorSpec((None, 3))], "bench")


def test_errors_of_the_program_name_its_line(run: Run, file: str) -> None:
    code, out, err = run("explain", f"{file}::broken", "--shapes=3")
    line = SOURCE.splitlines().index("    return x.no_such_thing") + 1
    assert (code, out) == (1, "")
    assert err.startswith("[explain] AttributeError: ") and err.endswith(f"  ({file}:{line})\n")
    code, out, err = run("explain", f"{file}::mismatch", "--shapes=2x3,4x5")
    line = SOURCE.splitlines().index("    return x @ y") + 1
    assert (code, out) == (1, "")
    assert err.startswith("[matmul] inner sizes differ") and err.endswith(f"(program.py:{line})\n")


def test_file_that_does_not_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("def f(:\n", encoding="utf-8")
    code, _, err = run("ir", f"{path}::f")
    assert code == 1 and err.startswith("[ir] SyntaxError: ") and "bad.py, line 1" in err and "Traceback" not in err


def test_debug_shows_the_traceback(run: Run, file: str) -> None:
    with flags.TRACEBACK("full"):
        code, _, err = run("explain", f"{file}::broken", "--shapes=3")
    assert code == 1 and "Traceback" in err


# explain and ir


def test_explain(run: Run, file: str) -> None:
    code, out, err = run("explain", f"{file}::double", "--shapes=4")
    assert (code, err) == (0, "")
    assert out.startswith("concrete function double(x: f32[4]) -> f32[4]\n")
    assert "kernels:" in out and "multiply" in out and "program.py:5" in out
    code, out, _ = run("explain", f"{file}::product", "--json")
    found = json.loads(out)
    assert code == 0 and found["signature"] == "x: f32[2,3], y: f32[3,4]"
    assert [kernel["ops"] for kernel in found["kernels"]] == [["matmul", "maximum"]]


def test_profile(run: Run, file: str) -> None:
    code, out, err = run("profile", f"{file}::double", "--shapes=4", "--runs=3")
    assert (code, err) == (0, "")
    assert (
        out.startswith("double: ")
        and "in 1 kernel, medians of 3 runs, code of level 0\n" in out
        and "program.py:5" in out
    )
    assert "flops" not in out and "flops" in run("profile", f"{file}::double", "--shapes=4", "--wide").out
    code, out, _ = run("profile", f"{file}::product", "--json", "--runs=2")
    found = json.loads(out)
    assert code == 0 and found["signature"] == "x: f32[2,3], y: f32[3,4]" and found["runs"] == 2
    assert [kernel["ops"] for kernel in found["kernels"]] == [["matmul", "maximum"]]
    for wrong in ("--runs=0", "--runs=-1"):
        code, out, err = run("profile", f"{file}::product", wrong)
        assert (code, out) == (2, "") and "give 1 or more" in err
    code, _, err = run("profile", f"{file}::open_rows")
    assert code == 2 and "leaves an extent open" in err


def test_tune(run: Run, file: str) -> None:
    with flags.CACHE_DIR("off"):
        code, out, err = run("tune", f"{file}::product", "--runs=1")
        assert (code, err) == (0, "") and out.startswith("product: ") and "kept in this process" in out
        code, out, _ = run("tune", f"{file}::product", "--json", "--runs=1")
        found = json.loads(out)
        assert code == 0 and found["runs"] == 1 and found["kernels"][0]["candidates"] > 1
        code, out, err = run("tune", f"{file}::product", "--runs=0")
        assert (code, out) == (2, "") and "give 1 or more" in err


def test_ir_golden(run: Run, file: str) -> None:
    code, out, err = run("ir", f"{file}::double", "--shapes=4:f64")
    assert (code, err) == (0, "")
    assert out.replace(file, "program.py") == (
        'graph double(%0: f64[4] "x") {\n'
        "  %1: f64[] = constant() {value=f64[] 2.0}  # program.py:5\n"
        "  %2: f64[4] = broadcast(%1) {axes=(), shape=(4,)}  # program.py:5\n"
        "  %3: f64[4] = multiply(%0, %2)  # program.py:5\n"
        "  return %3\n"
        "}\n"
    )


def test_ir_stages(run: Run, file: str) -> None:
    text = {stage: run("ir", f"{file}::product", "--stage", stage).out for stage in ("optimized", "llvm", "asm")}
    assert text["optimized"].startswith("graph product(")
    assert "define i32 @hf_main" in text["llvm"]
    assert "hf_main:" in text["asm"]
    code, out, _ = run("ir", f"{file}::product", "--json", "--stage", "llvm")
    assert code == 0 and json.loads(out) == {"stage": "llvm", "text": text["llvm"]}


def test_ir_passes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text("import hybridflow as hf\ndef f(x):\n    return -(-x) * (x + 1) + (x + 1)\n", encoding="utf-8")
    code, out, _ = run("ir", f"{path}::f", "--shapes=4", "--passes")
    assert code == 0 and "# simplify" in out and re.search(r"^-.*negative", out, re.MULTILINE)
    code, out, _ = run("ir", f"{path}::f", "--shapes=4", "--passes", "--json")
    stages = json.loads(out)
    assert stages[0]["stage"] == "input" and {"cse", "simplify"} <= {s["stage"] for s in stages}
    assert stages[-1]["text"].count("negative") == 0 and stages[-1]["text"].count("add(") == 2
    path.write_text("def f(x):\n    return x\n", encoding="utf-8")
    assert run("ir", f"{path}::f", "--shapes=4", "--passes").out.endswith("# no pass changes it\n")


# doctor and cache


def test_doctor(run: Run) -> None:
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    for word in (
        "python",
        "numpy",
        "llvm",
        "target",
        "native entry",
        "memory pool",
        "disk cache",
        "test kernel",
        "nvidia driver",
    ):
        assert word in out
    code, out, _ = run("doctor", "--json")
    assert code == 0 and {f["state"] for f in json.loads(out)} <= {"ok", "note"}


def test_doctor_says_that_native_code_cannot_be_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "fingerprint", lambda *_: None)
    code, out, _ = run("doctor")
    assert code == 0 and "compiled anew in each process" in out


def test_doctor_reports_what_breaks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no code generator")

    monkeypatch.setattr(hybridflow, "function", fail)
    code, out, _ = run("doctor")
    assert code == 1 and re.search(r"^failed +kernel +RuntimeError: no code generator$", out, re.MULTILINE)


def test_cache(run: Run, file: str, tmp_path: Path) -> None:
    with flags.CACHE_DIR(str(tmp_path / "cache")):
        assert run("cache", "ls").out == ""
        assert run("cache", "stat").out.startswith(f"{disk_cache.folder()}: 0 entries, 0 of ")
        assert run("explain", f"{file}::double", "--shapes=7").code == 0
        line = run("cache", "ls").out.splitlines()[0]
        assert re.fullmatch(r"[0-9a-f]{16} +\d+  \d{4}-\d\d-\d\d \d\d:\d\d  (program|code) of \w+", line)
        assert "code of double" in run("cache", "ls").out
        stat = json.loads(run("cache", "stat", "--json").out)
        assert stat["entries"] == len(json.loads(run("cache", "ls", "--json").out)) > 0 and stat["writable"]
        assert run("cache", "clear").out == f"{stat['entries']} entries removed\n"
        assert json.loads(run("cache", "clear", "--json").out) == {"removed": 0}
    with flags.CACHE_DIR("off"):
        assert run("cache", "stat").out == "switched off\n"


# bench


@pytest.mark.usefixtures("quick")
def test_bench_of_a_function(run: Run, file: str) -> None:
    code, out, err = run("bench", f"{file}::double", "--shapes=100")
    assert (code, err) == (0, "")
    head, columns, row = out.splitlines()
    assert re.fullmatch(r"one thread at its best: read [\d.]+ GB/s, copy [\d.]+ GB/s, \d+ GFLOP/s", head)
    assert re.split(r"  +", columns) == ["program", "eager", "graph", "speed-up", "first call", "of limit"]
    assert len(columns) <= 80
    wide = run("bench", f"{file}::double", "--shapes=100", "--wide").out.splitlines()[1]
    assert re.split(r"  +", wide) == [
        *("program", "eager", "graph", "spread", "speed-up", "first call", "kernels", "rate", "of limit")
    ]
    assert row.startswith("double(f32[100])") and "\x1b" not in out
    assert run("bench", f"{file}::product").code == 0
    code, out, err = run("bench", f"{file}::open_rows")
    assert (code, out) == (2, "") and "leaves an extent open; give the sizes to run with by --shapes" in err
    assert run("bench", f"{file}::open_rows", "--shapes=5x3").code == 0


@pytest.mark.usefixtures("quick")
def test_built_in_programs(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Each is traced and explained; only the small ones are run, as they are large."""
    from hybridflow.cli import programs

    for program in programs.BUILT_IN:
        python, arguments = program.make()
        concrete = hybridflow.function(python).get_concrete_function(*arguments)
        assert concrete.staged.compile().program.kernels, program.name
    small = tuple(p for p in programs.BUILT_IN if "784" in p.name or "step" in p.name)
    monkeypatch.setattr(programs, "BUILT_IN", small)
    code, out, _ = run("bench", "--json")
    report = json.loads(out)
    assert code == 0 and [p["name"] for p in report["programs"]] == [p.name for p in small]
    for found in report["programs"]:
        assert found["graph"]["median"] > 0 and found["first_call"] > 0 and found["limited_by"] == "arithmetic"


@pytest.mark.usefixtures("quick")
def test_compare(run: Run, file: str, tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    assert run("bench", f"{file}::double", "--shapes=100", "--output", str(path)).code == 0
    report = json.loads(path.read_text())
    (program,) = report["programs"]
    old = tmp_path / "old.json"

    def compared_with(factor: float, *more: str) -> Outcome:
        changed = {key: value * factor for key, value in program["graph"].items() if key != "samples"}
        old.write_text(json.dumps({"programs": [{**program, "graph": {**changed, "samples": 3}}]}))
        return run("bench", f"{file}::double", "--shapes=100", "--compare", str(old), *more)

    slower = compared_with(1e-3, "--fail-over", "5%")
    assert slower.code == 1 and re.search(r"^\[bench\] double\(f32\[100\]\) became slower: \+", slower.err)
    assert "change" in slower.out
    assert compared_with(1e-3).code == 0
    assert compared_with(1e3, "--fail-over", "5").code == 0
    assert compared_with(1e-3, "--fail-over", "10000000%").code == 0


def test_wrong_bench_options(run: Run, file: str, tmp_path: Path) -> None:
    target = (f"{file}::double", "--shapes=4")
    for arguments, message in (
        ((*target, "--fail-over", "5%"), "--fail-over needs --compare"),
        ((*target, "--fail-over", "much"), "'much' is no percentage; write 5%"),
        (("--shapes=4",), "--shapes needs a FILE::function"),
        ((*target, "--compare", str(tmp_path / "none.json")), "none.json: No such file"),
        ((*target, "--compare", file), "is not a file that bench --output wrote"),
        ((*target, "--output", str(tmp_path)), "is a folder; give a file"),
        ((*target, "--output", str(tmp_path / "none" / "x.json")), "cannot be written: No such file or directory"),
    ):
        code, out, err = run("bench", *arguments)
        assert (code, out) == (2, "") and message in err


@pytest.mark.usefixtures("quick")
def test_failure_leaves_the_old_output(run: Run, file: str, tmp_path: Path) -> None:
    path = tmp_path / "results" / "old.json"
    path.parent.mkdir()
    path.write_text("precious")
    assert run("bench", f"{file}::broken", "--shapes=4", "--output", str(path)).code == 1
    assert path.read_text() == "precious"
    assert os.listdir(path.parent) == ["old.json"]


def test_no_winner_while_spreads_overlap() -> None:
    machine = machine_peaks.Limits(1.0, 1.0, 1.0)

    def winner(eager: Timing, graph: Timing) -> str | None:
        return bench.Result("p", eager, graph, 0.0, 1, 1, 1, machine, "memory", 0.5).winner

    slow, fast, wide = Timing(2.0, 1.9, 2.1, 5), Timing(1.0, 0.9, 1.1, 5), Timing(1.0, 0.5, 1.95, 5)
    assert winner(slow, fast) == "graph" and winner(fast, slow) == "eager"
    assert winner(slow, wide) is None and winner(slow, slow) is None


def test_limits() -> None:
    found = machine_peaks.Limits(read=100e9, copy=50e9, flops=1e12)
    large = machine_peaks.LARGE
    assert found.least_seconds(large, 4, 1) == (pytest.approx((large + 4) / 100e9), "memory")
    assert found.least_seconds(large, large, 1) == (pytest.approx(2 * large / 50e9), "memory")
    assert found.least_seconds(1000, 1000, 10**9) == (1e-3, "arithmetic")


def test_candidates_take_turns() -> None:
    order: list[str] = []

    def sampler(name: str) -> measure.Sampler:
        def run(times: int) -> float:
            order.append(name)
            return 0.01 * times

        return run

    found = measure.interleaved({"a": sampler("a"), "b": sampler("b")}, budget=0, least_rounds=4)
    assert order[-8:] == ["a", "b"] * 4
    assert found["a"] == Timing(0.01, 0.01, 0.01, 4)


# Output


@pytest.mark.parametrize(
    "value, text", [(2.5, "2.50 s"), (0.0123, "12.3 ms"), (0.5, "500 ms"), (4.2e-6, "4.20 µs"), (61e-9, "61 ns")]
)
def test_seconds(value: float, text: str) -> None:
    assert output.seconds(value) == text


def test_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.colour("x", "red") == "x"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert output.colour("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.colour("x", "red") == "x"


def test_progress_is_for_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    output.progress("working")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    output.progress("working")
    assert capsys.readouterr().err == "\r\x1b[Kworking"


# The process


def test_runs_as_a_module(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_CORETYPE": "Haswell"}
    command = [sys.executable, "-m", "hybridflow", "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"hybridflow {hybridflow.__version__}\n")


def test_encodings_without_all_letters(file: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "hybridflow", "profile", f"{file}::double", "--shapes=10"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "?s" in done.stdout


def test_starts_anew_without_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *arguments: started.append(arguments))
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    threads.restart_without_blas_overrides()
    assert not started
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    threads.restart_without_blas_overrides()
    ((executable, arguments, environment),) = started
    assert executable == arguments[0] == sys.executable and "OPENBLAS_CORETYPE" not in environment


def test_calls_that_compile_something_do_not_settle_how_many_are_timed() -> None:
    calls = 0

    def sampler(repeats: int) -> float:
        nonlocal calls
        slow = [k for k in range(calls + 1, calls + repeats + 1) if k in (2, 3, 4, 40)]
        calls += repeats
        return 1e-6 * repeats + 0.05 * len(slow)

    timing = measure.interleaved({"f": sampler}, budget=0.0)["f"]
    assert timing.median == pytest.approx(1e-6) and calls > 5 * measure.SAMPLE_SECONDS / 1e-6
