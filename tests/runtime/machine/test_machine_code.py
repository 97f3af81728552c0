"""Compiling, linking, unloading and running programs, on hand-written modules that follow the Program contract."""

import dataclasses
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import llvmlite.binding
import numpy as np
import pytest
from llvmlite.binding import FeatureMap

from hybridflow import errors, flags
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.program import Program, Slot
from hybridflow.compiler.target import AARCH64, CUDA_SM90, SSE2
from hybridflow.runtime import cpu
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.machine import host_target, machine_code
from tests.support import runtime_programs
from tests.support.runtime_programs import accumulate

pytestmark = [pytest.mark.code, pytest.mark.usual_level]

LIBM = """
declare float @fmaf(float, float, float)
declare ptr @memcpy(ptr, ptr, i64)
define i32 @libm(ptr %buffers, ptr %dims, ptr %arena, ptr %host) {
  %x = load ptr, ptr %buffers
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %slot
  call ptr @memcpy(ptr %arena, ptr %x, i64 4)
  %v = load float, ptr %arena
  %w = call float @fmaf(float %v, float %v, float 0.5)
  store float %w, ptr %y
  ret i32 0
}
"""


def plus_one() -> Program:
    return runtime_programs.plus_one(unlucky=13)


def test_short_names_agree_with_the_compiler():
    assert {dtype: name for name, dtype in NUMPY.items()} == dtypes.SHORT


@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 1001])
def test_run(n):
    x = np.linspace(-3, 3, n, dtype=np.float32)
    (y,) = cpu.load(plus_one()).run([x])
    assert y.dtype == np.float32 and y.shape == (n,)
    np.testing.assert_array_equal(y, x + np.float32(1))


def test_outputs_are_aligned_and_special_values_pass():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    (y,) = cpu.load(plus_one()).run([x])
    assert y.ctypes.data % 64 == 0
    np.testing.assert_array_equal(y, x + np.float32(1))


def test_strided_and_unaligned_inputs_are_copied():
    program = cpu.load(plus_one())
    base = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(program.run([base[::-2]])[0], base[::-2] + 1)
    unaligned = np.zeros(17, np.uint8)[1:].view(np.float32)
    np.testing.assert_array_equal(program.run([unaligned])[0], np.ones(4))


def test_failed_check_raises_its_error():
    with pytest.raises(errors.DivisionError, match=r"\[pointwise\] 13 elements.  \(train.py:7\)") as info:
        cpu.load(plus_one()).run([np.zeros(13, np.float32)])
    assert info.value.where == "train.py:7"


@pytest.mark.parametrize(
    "arrays, error",
    [
        ([], errors.ArgumentError),
        ([np.zeros(3, np.float64)], errors.DTypeError),
        ([np.zeros(3, ">f4")], errors.DTypeError),
        ([np.float32(1).reshape(())], errors.ShapeError),
        ([np.zeros((3, 1), np.float32)], errors.ShapeError),
    ],
)
def test_wrong_arrays_raise(arrays, error):
    with pytest.raises(error):
        cpu.load(plus_one()).run(arrays)


def test_state_is_updated_in_place():
    program, state = cpu.load(accumulate()), np.arange(4.0)
    assert program.run([state, np.ones(4)]) == []
    np.testing.assert_array_equal(state, [1, 2, 3, 4])
    program.run([state, state])  # the second input is copied, not read through the first
    np.testing.assert_array_equal(state, [2, 4, 6, 8])


def test_state_that_cannot_be_written_raises():
    state = np.zeros(4)
    state.flags.writeable = False
    with pytest.raises(errors.ArgumentError, match="updated in place"):
        cpu.load(accumulate()).run([state, np.ones(4)])
    with pytest.raises(errors.ArgumentError, match="updated in place"):
        cpu.load(accumulate()).run([np.zeros(8)[::2], np.ones(4)])


def test_libm_and_arena():
    scalar = Slot((), "f32")
    program = Program("libm", host_target.target(), LIBM, "libm", (scalar,), (scalar,), (), 64)
    (y,) = cpu.load(program).run([np.array(3, np.float32)])
    assert y.shape == () and y == 9.5


def test_code_is_unloaded_with_its_executable():
    executable = cpu.load(plus_one())
    code = weakref.ref(executable._codes[-1])
    del executable
    gc.collect()
    assert code() is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("define i32 @f(", "LLVM rejects the module"),
        ("define i32 @f() { %x = add i32 1, 2.0\n ret i32 %x }", "LLVM rejects the module"),
        ("define i32 @f() { br label %a\na:\n %x = phi i32 [0, %a]\n ret i32 %x }", "LLVM rejects the module"),
    ],
)
def test_bad_text(text, message):
    with pytest.raises(errors.CompileError, match=message):
        machine_code.compile_object(text, host_target.target())


def test_levels_of_code_generation():
    """Each makes code of its own, under a key of its own; the runtime's modules are made at one."""
    program, image = plus_one(), {}
    keys, runtimes = set(), set()
    for level in ("0", "1", "2"):
        with flags.OPT(level):
            keys.add(machine_code.object_key(program.text, program.target))
            runtimes.add(machine_code.object_key(program.text, program.target, use="runtime"))
            image[level] = machine_code.compile_object(program.text, program.target)
            (y,) = cpu.load(program).run([np.arange(7, dtype=np.float32)])
            np.testing.assert_array_equal(y, np.arange(1, 8, dtype=np.float32))
    assert len(keys) == 3 and len(runtimes) == 1 and not runtimes & keys
    assert image["0"] != image["2"]


def test_flag_of_the_level(monkeypatch):
    with pytest.raises(ValueError, match="HF_OPT is one of auto, 0, 1, 2, not '3'"), flags.OPT("3"):
        pass
    monkeypatch.setenv("HF_OPT", "7")
    with pytest.raises(ValueError, match="HF_OPT='7' is not one of auto, 0, 1, 2"):
        flags.Flag("HF_OPT", "auto", "", flags.OPT.choices)
    monkeypatch.setenv("HF_OPT", "1")
    assert flags.Flag("HF_OPT", "auto", "", flags.OPT.choices).value == "1"


def test_unknown_symbol_is_named(capfd):
    text = "declare i32 @no_such_symbol()\ndefine i32 @f() { %x = call i32 @no_such_symbol()\n ret i32 %x }"
    image = machine_code.compile_object(text, host_target.target())
    with pytest.raises(errors.CompileError, match="object code of f does not link"):
        machine_code.load_object(image, "f")
    assert "no_such_symbol" in capfd.readouterr().err


def test_damaged_object_raises():
    with pytest.raises(errors.CompileError):
        machine_code.load_object(b"not an object file", "f")


@pytest.mark.parametrize("target", [AARCH64, CUDA_SM90])
def test_code_for_another_machine_is_refused(target):
    if host_target.can_run(target):
        pytest.skip("this machine is that one")
    with pytest.raises(errors.CompileError, match="cannot run code for"):
        cpu.load(dataclasses.replace(plus_one(), target=target))


def test_narrower_target_runs_here():
    if not host_target.can_run(SSE2):
        pytest.skip("not an x86-64 machine")
    with host_target.use(SSE2):
        assert host_target.target() is SSE2
        np.testing.assert_array_equal(cpu.load(plus_one()).run([np.zeros(5, np.float32)])[0], np.ones(5))
    assert host_target.target() is host_target.detect()


def test_instructions_that_do_not_go_with_wide_vectors_are_not_used(monkeypatch):
    """Those of SSE4a have no form for AVX: between instructions of 256 bits each takes 100 ns."""
    for avx, used in ((True, False), (False, True)):
        found = FeatureMap(sse2=True, sse4a=True, avx=avx)
        monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda found=found: found)
        assert host_target.detect.__wrapped__().has("sse4a") is used


def test_cache_sizes_of_a_machine_that_does_not_say(tmp_path):
    assert host_target._cache_sizes(str(tmp_path / "missing")) == {}
    (tmp_path / "index0").mkdir()
    assert host_target._cache_sizes(str(tmp_path)) == {}


def test_threads():
    failures = []

    def work(k):
        try:
            for i in range(5):
                x = np.full(k * 5 + i, k, np.float32)
                np.testing.assert_array_equal(cpu.load(plus_one()).run([x])[0] if x.size != 13 else x + 1, x + 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads the resident set from /proc")
def test_unloading_returns_memory_to_the_process():
    """LLVM's linker keeps some kilobytes per module for as long as it lives, so linkers must be let go."""
    program = plus_one()
    image = machine_code.compile_object(program.text, program.target)

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def load_and_unload(times: int) -> None:
        for _ in range(times):
            machine_code.load_object(image, program.entry)

    load_and_unload(200)
    grown = []
    for _ in range(5):  # something else may grow meanwhile; what linkers keep is there each time
        before = resident()
        load_and_unload(1000)
        grown.append(resident() - before)
        if grown[-1] < 2 << 20:  # 9 MiB with one linker for all
            return
    pytest.fail(f"grows each time: {grown}")


# Raises in each line of every ``close`` of llvmlite's objects in turn, while something is compiled in place.
_INTERRUPTED = """
    import gc, sys
    import hybridflow as hf
    from hybridflow.runtime import uninterruptible

    class Interrupt(BaseException):
        pass

    def in_close(frame, event, arg):
        return in_line if "close" in frame.f_code.co_name else None

    def in_line(frame, event, arg):
        global lines
        lines += event == "line"
        if lines == last:
            raise Interrupt
        return in_line

    uninterruptible._is_ending = True  # no thread is begun any more
    interrupted = 0
    for last in range(1, 200):
        lines = 0
        f = hf.function(lambda x: hf.tanh(x * last))
        sys.settrace(in_close)
        try:
            f(hf.ones(3))
        except Interrupt:
            interrupted += 1
        sys.settrace(None)
        gc.collect()
        if lines < last:
            break
    assert f(hf.ones(3)).shape == (3,)
    print("interrupted" if interrupted > 5 else interrupted)
"""


def run(program: str) -> str:
    """What a program prints that keeps nothing on disk."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)]
    environment = {**os.environ, "HF_CACHE_DIR": "off"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_interrupts_while_llvm_gives_memory_back() -> None:
    assert run(_INTERRUPTED) == "interrupted\n"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_module_and_its_context_are_finalized_in_any_order(order: tuple[int, int]) -> None:
    program = f"""
        import gc
        from hybridflow.runtime.machine.llvm_binding import binding

        llvm = binding()
        for how in range(3):
            context = llvm.create_context()
            module = llvm.parse_assembly("define i32 @f() {{ ret i32 1 }}", context)
            if how == 0:  # the collector of cycles goes by the order in which they were made
                cycle = [context, module]
                cycle.append(cycle)
                del cycle
            elif how == 1:
                [(context, module)[k].close() for k in {order}]
            else:  # interrupted while it was made
                del module._context
                context.close()
            del context, module
            gc.collect()
        print("fine")
    """
    assert run(program) == "fine\n"


def test_errors_that_are_kept_in_cycles_hold_nothing_of_llvm() -> None:
    """As debuggers and notebooks keep them; also those of threads that make parts."""
    program = """
        import gc, sys
        from hybridflow.errors import CompileError
        from hybridflow.runtime import uninterruptible
        from hybridflow.runtime.machine import host_target, machine_code

        def attempt(texts):
            try:
                machine_code.compile_image(texts, host_target.target())
            except (CompileError, KeyboardInterrupt) as error:
                kept = error  # error -> traceback -> this frame -> kept

        def interrupted(machine, module):
            raise KeyboardInterrupt

        lines = "".join(f"  %r{k + 1} = add i64 %r{k}, 1\\n" for k in range(300))
        long = [
            f"define i64 @f{n}(i64 noundef %x) {{\\nentry:\\n  %r0 = add i64 %x, 0\\n{lines}  ret i64 %r300\\n}}\\n"
            for n in range(3)
        ]
        emit = machine_code._emit_object
        for in_place in (False, True):
            uninterruptible._is_ending = in_place
            for texts in (["define i32 @f("], ["define i32 @f() { ret i32 1 }"], long):
                machine_code._emit_object = interrupted
                attempt(texts)
                machine_code._emit_object = emit
                gc.collect()
                kinds = "ContextRef", "ModuleRef", "PassBuilder"
                found = [x for x in gc.get_objects() if type(x).__name__ in kinds and not x.closed]
                assert not found, found  # a thread may still be about to let go of some that are closed
        assert len(machine_code.compile_image(long, host_target.target())) > 1000
        print("fine")
    """
    assert run(program) == "fine\n"


def test_bursts_of_interrupts_leave_no_lock_taken() -> None:
    program = """
        import random, signal, sys, threading
        import hybridflow as hf
        import llvmlite.binding as llvm

        class Stop(Exception): pass
        def stop(*_): raise Stop
        signal.signal(signal.SIGALRM, stop)
        random.seed(0)

        def attempt(k):
            @hf.function
            def f(x):
                for i in range(3): x = hf.tanh(x @ x) + float(k * 60 + i)
                return x
            x = hf.ones((30 + k % 5, 30 + k % 5))
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.05), 0.0005)
            try:
                f(x)
            except Stop:
                pass
            finally:
                while True:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                        return
                    except Stop:
                        pass

        def ask():
            lock = llvm.ffi.lib._lock._lock
            free.append(lock.acquire(timeout=300) and not lock.release())

        free = []
        for k in range(10):
            try:
                attempt(k)
            except Stop:
                pass
        thread = threading.Thread(target=ask)
        thread.start(), thread.join()
        @hf.function
        def last(x):
            return hf.tanh(x @ x) + 0.125
        print(free, last(hf.zeros((3, 3))).tolist()[0])
    """
    assert run(program) == "[True] [0.125, 0.125, 0.125]\n"


def test_who_wants_to_be_told_of_llvms_lock_is() -> None:
    program = """
        import llvmlite.binding as llvm
        from hybridflow.runtime.machine import host_target, machine_code

        def compiled():
            machine_code.compile_assembly("define i32 @f() { ret i32 1 }", host_target.target())
            return len(taken), len(left)

        def in_c():
            '''An interrupt within methods in Python would leave the lock taken.'''
            locks = {function._lock for function in llvm.ffi.lib._fntab.values()}
            return [type(type(lock).__enter__).__name__ for lock in locks]

        taken, left = [], []
        told = lambda: taken.append(1), lambda: left.append(1)
        assert compiled() == (0, 0) and in_c() == ["method_descriptor"]
        llvm.ffi.register_lock_callback(*told)
        some = compiled()
        assert in_c() == ["function"]
        llvm.ffi.unregister_lock_callback(*told)
        print(some[0] > 5, some[0] == some[1], compiled() == some, in_c())
"""
    assert run(program) == "True True True ['method_descriptor']\n"


def test_code_that_nobody_has_waits_for_the_next_load() -> None:
    """Its finalizer runs no Python, where an interrupt would get lost."""
    program = plus_one()
    image = machine_code.compile_object(program.text, program.target)
    machine_code.load_object(image, program.entry)
    before = len(machine_code._trackers)
    held = [machine_code.load_object(image, program.entry) for _ in range(5)]
    del held
    gc.collect()
    assert len(machine_code._dead) >= 5
    code = machine_code.load_object(image, program.entry)
    assert not machine_code._dead and len(machine_code._trackers) <= before and code.addresses
