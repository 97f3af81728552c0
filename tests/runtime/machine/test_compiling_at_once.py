"""Threads that compile and link beside each other: nobody waits for others, and nobody disturbs them."""

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest

from hybridflow.errors import CompileError
from hybridflow.runtime.machine import host_target, machine_code


def module(number: int, lines: int = 40) -> str:
    """``f(x)`` is x + number * lines, after vectors that give LLVM something to do."""
    vectors = "\n".join(
        f"  %v{k + 1} = call <8 x float> @llvm.fma.v8f32(<8 x float> %v{k}, <8 x float> %v{k}, <8 x float> %v0)"
        for k in range(lines)
    )
    chain = "\n".join(f"  %r{k + 1} = add i64 %r{k}, {number}" for k in range(lines))
    return (
        "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)\n"
        f"define i64 @f(i64 noundef %x, ptr %p) {{\nentry:\n  %v0 = load <8 x float>, ptr %p, align 4\n{vectors}\n"
        f"  store <8 x float> %v{lines}, ptr %p, align 4\n  %r0 = add i64 %x, 0\n{chain}\n  ret i64 %r{lines}\n}}\n"
    )


def call(image: bytes, x: int) -> int:
    code = machine_code.load_object(image, "f")
    memory = (ctypes.c_float * 8)()
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.addresses["f"])(x, memory))


def together(works: list[Callable[[], None]]) -> None:
    """Run each in a thread; the first error is raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait(300)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_who_compiles_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on, emit = threading.Event(), threading.Event(), machine_code._emit_object
    kept = machine_code.compile_object(module(3), host_target.target())
    alone: list[bytes] = []

    def held(machine: object, made: object) -> bytes:
        if threading.get_ident() != main and not inside.is_set():
            inside.set()
            assert go_on.wait(300)
        return emit(machine, made)

    main = threading.get_ident()
    monkeypatch.setattr(machine_code, "_emit_object", held)
    thread = threading.Thread(target=lambda: alone.append(machine_code.compile_object(module(5), host_target.target())))
    thread.start()
    assert inside.wait(300)
    done: list[int] = []
    other = threading.Thread(
        target=lambda: done.extend(
            [call(kept, 1), call(machine_code.compile_object(module(7), host_target.target()), 2)]
        )
    )
    other.start()
    other.join(300)
    assert done == [1 + 3 * 40, 2 + 7 * 40] and not alone
    go_on.set()
    thread.join(300)
    assert call(alone[0], 0) == 5 * 40


@pytest.mark.parametrize("threads", [2, 3, 2 * machine_code._Places.MOST + 1])
def test_threads_make_what_each_makes_alone(threads: int) -> None:
    alone = {n: machine_code.compile_object(module(n), host_target.target()) for n in range(threads)}
    found: dict[int, list[bytes]] = {n: [] for n in range(threads)}

    def work(n: int) -> None:
        for k in range(6):
            if (n + k) % 4 == 0:  # others are not disturbed by what is wrong
                with pytest.raises(CompileError, match="LLVM rejects the module"):
                    machine_code.compile_object(module(n).replace("add i64", "add nonsense", 1), host_target.target())
            image = machine_code.compile_object(module(n), host_target.target())
            found[n].append(image)
            assert call(image, k) == k + 40 * n

    together([lambda n=n: work(n) for n in range(threads)])
    assert all(set(images) == {alone[n]} for n, images in found.items())
    assert all(lock.acquire(blocking=False) and lock.release() is None for lock in machine_code._places.locks)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_child_compiles_whatever_threads_were_in_llvm() -> None:
    program = """
        import os, signal, sys, threading
        sys.path.insert(0, FOLDER)
        from test_compiling_at_once import call, module
        from hybridflow.runtime.machine import host_target, machine_code

        stop = False

        def work(n):
            while not stop:
                machine_code.compile_object(module(n, 300), host_target.target())

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        ends = []
        for k in range(12):
            process = os.fork()
            if process == 0:
                signal.alarm(300)
                image = machine_code.compile_object(module(k), host_target.target())
                os._exit(0 if call(image, 1) == 1 + 40 * k else 1)
            ends.append(os.waitpid(process, 0)[1])
        stop = True
        for thread in threads:
            thread.join()
        print(set(ends))
""".replace("FOLDER", repr(os.path.dirname(__file__)))
    environment = {**os.environ, "HF_CACHE_DIR": "off"}
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "{0}\n"
