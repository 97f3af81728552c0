"""Long modules, of which several threads make machine code part by part."""

import _thread
import ctypes
import re
import signal
import threading
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import Target
from hybridflow.errors import CompileError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.machine import code_store, compilation_units, host_target, machine_code, object_images

pytestmark = [pytest.mark.code, pytest.mark.usual_level]


class Stop(BaseException):
    pass


def function(name: str, lines: int, body: str = "", linkage: str = "internal ") -> str:
    """``name(x)`` is x + lines, after ``body``, which may use %x and calculates %r0."""
    body = body or "  %r0 = add i64 %x, 0"
    chain = "\n".join(f"  %r{k + 1} = add i64 %r{k}, 1" for k in range(lines))
    return f"define {linkage}i64 @{name}(i64 noundef %x) #0 {{\nentry:\n{body}\n{chain}\n  ret i64 %r{lines}\n}}\n"


# main calls by name and through a table in which functions stand that no text but the table names.
MAIN = """  %i = and i64 %x, 1
  %at = getelementptr ptr, ptr @table, i64 %i
  %f = load ptr, ptr %at
  %y = call i64 %f(i64 %x)
  %z = call i64 @long.one(i64 %y)
  %r0 = call i64 @llvm.smax.i64(i64 %z, i64 0)"""
MODULE = "".join(
    [
        f'target triple = "{host_target.target().triple}"\n\n',
        "@numbers = internal constant [2 x i64] [i64 7, i64 8]\n",
        "@table = internal constant [2 x ptr] [ptr @even, ptr @odd]\n",
        function("long.one", 230),
        function("even", 220, "  %n = load i64, ptr @numbers\n  %r0 = add i64 %x, %n"),
        function("odd", 240, "  %y = call i64 @even(i64 %x)\n  %r0 = mul i64 %y, 3"),
        function("main", 5, MAIN, ""),
        "declare i64 @llvm.smax.i64(i64, i64)\n",
        "attributes #0 = { nounwind }\n",
    ]
)


def expected(x: int) -> int:
    even = x + 7 + 220
    return (3 * even + 240 if x % 2 else even) + 230 + 5


def cut(text: str, threads: int) -> list[str]:
    """The module ``text`` as modules for so many threads."""
    module = compilation_units.split_module(text)
    assert module is not None
    groups = compilation_units.batches(module.reachable(["@main"]), lambda: threads, 8)
    return [module.together(group) for group in groups]


def called(image: bytes, *values: int, text: str = "") -> list[int]:
    module = compilation_units.split_module(text or MODULE)
    assert module is not None
    symbol = module.units["@main"].symbol
    code = machine_code.load_object(image, symbol)
    main = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses[symbol])
    return [main(x) for x in values]


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_parts_link_to_what_the_module_is(threads: int) -> None:
    pieces = cut(MODULE, threads)
    assert len(pieces) == min(threads, 3)
    module = compilation_units.split_module(MODULE)
    assert module is not None and sorted(module.units) == ["@even", "@long.one", "@main", "@odd"]
    defined = [name for piece in pieces for name in re.findall(r"^define .*?@([\w.]+)", piece, re.MULTILINE)]
    assert sorted(defined) == sorted(unit.symbol for unit in module.units.values())
    image = machine_code.compile_image(pieces, host_target.target())
    assert len(object_images.separate(image)) == len(pieces)
    assert called(image, 10, 11, -5000) == [expected(10), expected(11), max(-5000 + 227 + 230, 0) + 5]


def test_what_is_not_worth_it_stays_whole() -> None:
    def groups(*lines: int, threads: int = 4) -> list[int]:
        module = compilation_units.split_module("".join(function(f"f{k}", count) for k, count in enumerate(lines)))
        assert module is not None
        return [len(group) for group in compilation_units.batches([*module.units.values()], lambda: threads, 8)]

    module = compilation_units.split_module(function("f", 140) + function("g", 130))
    assert module is not None
    short = [*module.units.values()]
    assert compilation_units.batches(short, lambda: pytest.fail("asked without need"), 8) == [short]
    assert groups(500, 5) == [2]
    assert len(groups(*range(200, 220), threads=100)) == 8


def test_images_of_several_files() -> None:
    files = [b"one", b"", b"three" * 100]
    image = object_images.joined(files)
    assert object_images.separate(image) == files
    assert object_images.joined([b"alone"]) == b"alone"
    for damaged in (image[:10], image[:30], image[:-1], image + b"x"):
        with pytest.raises(ValueError):
            object_images.separate(damaged)
        with pytest.raises(CompileError):
            machine_code.load_object(damaged, "main")


@pytest.mark.parametrize("broken", ["long.one", "even", "odd", "main"])
def test_errors_of_parts_are_raised(broken: str) -> None:
    start = MODULE.index(f"@{broken}(i64 noundef")
    text = MODULE[:start] + MODULE[start:].replace("add i64", "add nonsense", 1)
    with pytest.raises(CompileError, match="LLVM rejects the module"):
        machine_code.compile_image(cut(text, 3), host_target.target())
    assert not uninterruptible._jobs


def test_without_threads_the_caller_makes_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refused)
    image = machine_code.compile_image(cut(MODULE, 3), host_target.target())
    assert len(object_images.separate(image)) == 3
    assert called(image, 4) == [expected(4)]


def test_threads_at_work_end_by_themselves_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised at once, and nobody waits for what goes on, not even who compiles next."""
    go_on, stopped, begun, ended, made = threading.Event(), threading.Event(), [], [], machine_code._object
    main, wanted = threading.main_thread().ident, [stopped]
    assert main is not None

    def watched(text: str, target: Target, use: Any, level: int) -> bytes:
        begun.append(text)
        while len(begun) == 2 and not stopped.wait(0.05):  # a signal right before it waits does not wake it
            signal.pthread_kill(main, signal.SIGALRM)
        assert go_on.wait(300)
        ended.append(text)
        return made(text, target, use, level)

    def stop(*_: Any) -> None:
        try:
            wanted.pop().set()
        except IndexError:  # another one, which came while the first was handled
            return
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(machine_code, "_object", watched)
            with pytest.raises(Stop):
                machine_code.compile_image(cut(MODULE, 2), host_target.target())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert called(machine_code.compile_image(cut(MODULE, 2), host_target.target()), 3) == [expected(3)]
    assert len(begun) == 2 and not ended
    go_on.set()
    for job in list(uninterruptible._jobs):
        job.wait()
    assert sorted(ended) == sorted(begun)


def test_programs_are_the_same_bits_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags.CACHE_DIR, "value", "off")

    @hf.function
    def both(x: hf.Tensor, w: hf.Tensor) -> tuple[hf.Tensor, ...]:
        y = hf.tanh(x @ w)
        return y, hf.sort(y, axis=0), hf.nn.softmax(y), hf.cumulative_sum(y, axis=1)

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((70, 90), (90, 50))]
    graph = both.get_concrete_function(*map(hf.asarray, arrays)).graph
    program = compile_graph(graph, host_target.target())
    results = []
    for threads in (1, 2, 5):
        code_store.forget()
        before = code_store.counts()
        code = code_store.load(program.text, program.target, [program.entry], lambda n=threads: n)  # type: ignore[misc]
        assert code_store.counts().compiled > before.compiled + 5
        results.append(Executable(program, code).run(arrays))
    for result in results[1:]:
        for a, b in zip(result, results[0], strict=True):
            assert a.tobytes() == b.tobytes()
