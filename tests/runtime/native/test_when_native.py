"""When native code for calls is made: not by a first call on a machine, at once where it lies on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybridflow.runtime.native import object_layout
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(object_layout.problem() is not None, reason=str(object_layout.problem()))

HEAD = """
import hashlib, os, sys, threading
import numpy as np
import hybridflow as hf
from hybridflow.runtime import background
from hybridflow.runtime.calls import entry
from hybridflow.runtime.machine import machine_code

compiled = []  # functions of modules of the runtime's own
real, real_image = machine_code.compile_object, machine_code.compile_image
begun, gate = threading.Event(), threading.Event()  # work behind has begun; it may go on
gate.set()

def compile_image(texts, target, use="program", level=None):
    if background.is_behind():
        begun.set()
        gate.wait()
    if not kept:
        return real_image(texts, target, use, level)
    # The store of hybridflow is empty, but LLVM need not do again what it did for another test.
    key = hashlib.blake2b(repr((texts, target, use, level, sys.version_info)).encode(), digest_size=16).hexdigest()
    path = os.path.join(kept, key)
    if not os.path.exists(path):
        with open(f"{path}.{os.getpid()}-{threading.get_ident()}", "wb") as file:
            file.write(real_image(texts, target, use, level))
        os.replace(file.name, path)
    with open(path, "rb") as file:
        return file.read()

def compile_object(text, target, use="program", **more):
    if use == "runtime":
        compiled.append(text.count("\\ndefine "))
    return real(text, target, use=use, **more)

machine_code.compile_object, machine_code.compile_image = compile_object, compile_image
f = hf.function(lambda x: hf.exp(x) * 2 + 1)
x = hf.asarray(np.ones(8, np.float32))
expected = (np.exp(np.ones(8)) * 2 + 1).astype(np.float32)

def call():
    np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-6)

def wait_for_needed():
    while (thread := background._needed.thread) is not None:
        thread.wait()
"""


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of machine code that these tests have compiled."""
    return str(tmp_path_factory.mktemp("machine_code"))


def printed(program: str, cache: Path | str, kept: str = "", **variables: str) -> list[str]:
    """What the program prints in a fresh interpreter, word by word.  Whatever it compiles takes as long as it does
    elsewhere, unless there is a folder where it may be ``kept``."""
    environment = {k: v for k, v in os.environ.items() if k != "HF_NATIVE_AFTER"}
    environment |= {"PYTHONPATH": str(ROOT), "HF_CACHE_DIR": str(cache), **variables}
    head = f"kept = {kept!r}\n{HEAD}"
    script = f"import sys, linecache\nsource = {head + program!r}\nname = '<program>'\n"
    script += (
        "linecache.cache[name] = len(source), None, source.splitlines(True), name\nexec(compile(source, name, 'exec'))"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_first_call_compiles_the_program_and_memory_alone(tmp_path: Path, kept: str) -> None:
    first = "call(); call(); print(len(compiled), max(compiled) < 20, bool(entry._enabled.made))"
    assert printed(first, tmp_path, kept) == ["1", "True", "False"]
    # The pool is on disk now, the rest is not; after enough calls it is made, and all that goes with it.
    more = """
gate.clear()
for _ in range(34): call()
print(bool(entry._enabled.made))
gate.set()
background.wait()
call()
print(bool(entry._enabled.made), type(entry.Dispatcher.__call__).__name__, len(compiled))
before = f.signatures()[0]["hits"]
for _ in range(10): call()
print(f.signatures()[0]["hits"] - before, next(iter(f._cache.variants())).native_hits >= 10)
"""
    assert printed(more, tmp_path, kept) == ["False", "True", "wrapper_descriptor", "2", "10", "True"]
    # And now all of it is on disk: the first call that finds something to call has it.
    again = "call(); print(bool(entry._enabled.made)); call(); print(bool(entry._enabled.made), len(compiled))"
    assert printed(again, tmp_path, kept) == ["False", "True", "0"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("after", "threads", "made"),
    [("0", "2", "True"), ("0", "1", "True"), ("3", "1", "False"), ("2", "1", "True"), ("2", "2", "False")],
)
def test_the_setting(after: str, threads: str, made: str, kept: str) -> None:
    """The last call that is due waits for it where nothing is made behind."""
    program = "gate.clear(); call(); print(entry._uses); call(); call(); call()"
    program += "; print(entry._uses, bool(entry._enabled.made))"
    program += "; gate.set(); background.wait(); call(); print(bool(entry._enabled.made))"
    uses = "1" if after == "0" else "3"
    assert printed(program, "off", kept, HF_NATIVE_AFTER=after, HF_NUM_THREADS=threads) == ["0", uses, made, "True"]


def test_no_call_waits_for_it(tmp_path: Path, kept: str) -> None:
    """One that did would wait for good."""
    program = """
gate.clear()
for _ in range(40): call()
begun.wait()
for _ in range(40): call()
print(bool(entry._enabled.made))
gate.set()
background.wait()
call()
print(bool(entry._enabled.made))
"""
    assert printed(program, "off", kept, HF_NUM_THREADS="2") == ["False", "True"]


def test_the_end_of_the_process_while_it_is_made(tmp_path: Path) -> None:
    program = """
import atexit
atexit.register(gate.set)
gate.clear()
for _ in range(40): call()
begun.wait()
print(background.is_at_work())
"""
    assert printed(program, "off", HF_NUM_THREADS="2") == ["True"]


@pytest.mark.slow
def test_interrupts_while_it_is_made(tmp_path: Path) -> None:
    program = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
gate.clear()
for _ in range(40): call()
begun.wait()
caught = 0
for _ in range(5):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        call()
    except KeyboardInterrupt:
        caught += 1
gate.set()
while background.is_at_work():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        call()
        background.wait()
    except KeyboardInterrupt:
        caught += 1
call()
print(caught > 0, bool(entry._enabled.made))
"""
    assert printed(program, "off", HF_NUM_THREADS="2") == ["True", "True"]


def test_ops_of_their_own_wait_as_well(tmp_path: Path, kept: str) -> None:
    program = """
for k in range(40):
    np.testing.assert_allclose(hf.expm1(x).numpy(), np.expm1(np.ones(8)).astype(np.float32), rtol=1e-6)
    if k in (5, 39): print(bool(entry._enabled.made))
    if k == 38: background.wait()
"""
    assert printed(program, "off", kept) == ["False", "True"]


def test_threads_that_call_while_it_is_made(tmp_path: Path) -> None:
    program = """
sys.setswitchinterval(1e-6)
call()
failed = []

def work():
    try:
        for _ in range(60): call()
    except BaseException as error:
        failed.append(error)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
background.wait(); call()
print(failed, bool(entry._enabled.made), f.signatures()[0]["hits"], len(f.signatures()))
"""
    assert printed(program, tmp_path) == ["[]", "True", "481", "1"]


def test_a_child_of_a_fork_makes_its_own(tmp_path: Path) -> None:
    program = """
import os
call(); call()
child = os.fork()
for _ in range(40): call()
background.wait(); call()
os.write(1, f"{bool(entry._enabled.made)}\\n".encode())
if child: print(os.waitpid(child, 0)[1])
"""
    assert printed(program, "off") == ["True", "True", "0"]


def test_a_fork_while_it_is_made(tmp_path: Path) -> None:
    program = """
import os
os.register_at_fork(before=gate.set)  # before what waits for the part that is at work
gate.clear()
for _ in range(40): call()
begun.wait()
print(background.is_at_work(), flush=True)
child = os.fork()
call()
background.wait(); call()
os.write(1, f"{bool(entry._enabled.made)}\\n".encode())
if child: print(os.waitpid(child, 0)[1])
"""
    assert printed(program, "off", HF_NUM_THREADS="2") == ["True", "True", "True", "0"]


def test_tapes_before_it_is_made(tmp_path: Path, kept: str) -> None:
    program = """
v = hf.Variable(np.float32(3))

@hf.function
def g(x): return hf.sum(x * x) * v

for k in range(3):
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    a, b = tape.gradient(y, [x, v])
    np.testing.assert_array_equal(a.numpy(), np.full(8, 6, np.float32))
    assert float(b) == 8
print(len(g.signatures()))
"""
    assert printed(program, tmp_path, kept) == ["1"]


EVERY_OP = """
from hybridflow.runtime.calls import native_tape, operators

y = x * 0.5
square = hf.asarray(np.ones((4, 4), np.float32))

def gradient():
    with hf.GradientTape() as tape:
        tape.watch(x)
        loss = hf.sum(x * x)
    return tape.gradient(loss, x)

ops = [
    lambda: x + 1, lambda: x * y, lambda: square @ square, lambda: square[1:], lambda: hf.exp(x), lambda: hf.sum(x),
    lambda: hf.maximum(x, y), lambda: hf.nn.softmax(square), lambda: hf.reshape(x, (2, 4)), lambda: hf.zeros((4, 4)),
    lambda: hf.sort(x), lambda: hf.cumulative_sum(x), lambda: hf.concat([x, y], axis=0), lambda: f(x), gradient,
]

def bits():
    return [op().numpy().tobytes() for op in ops]

def loaded():
    return len(compiled), len(entry._enabled.made), len(operators._addresses.made), len(native_tape._made)
"""


@pytest.mark.slow
def test_no_op_waits_for_it_and_all_have_it_then(tmp_path: Path, kept: str) -> None:
    """Whatever is called however often: nothing but memory is made in the loop, and all is native afterwards."""
    program = """
background._hold()
first = bits()
for _ in range(60): assert bits() == first
print(*loaded())
background._let_go()
background.wait()
for _ in range(8): assert bits() == first
background.wait()
print(*loaded(), type(hf.Tensor.__add__).__name__, type(hf.GradientTape.watch).__name__)
for _ in range(8): assert bits() == first
"""
    found = printed(EVERY_OP + program, tmp_path, kept, HF_NUM_THREADS="2")
    assert found == ["1", "0", "0", "0", "5", "1", "1", "1", "wrapper_descriptor", "method_descriptor"]


def test_what_calls_need_does_not_wait_for_better_code_and_has_the_priority_of_the_process(
    tmp_path: Path, kept: str
) -> None:
    program = """
import os
at_work, ends, nice = threading.Event(), threading.Event(), []
def note():
    nice.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
background.begin(lambda: (note(), at_work.set(), ends.wait()))
at_work.wait()
for _ in range(40): call()
background.begin(note, is_needed=True)
wait_for_needed()
call()
print(bool(entry._enabled.made), nice[1] == os.getpriority(os.PRIO_PROCESS, 0), nice[0] >= nice[1])
ends.set()
"""
    assert printed(program, tmp_path, kept, HF_NUM_THREADS="2") == ["True", "True", "True"]


@pytest.mark.slow
def test_code_that_is_made_quickly_passes_its_calls_on(tmp_path: Path, kept: str) -> None:
    program = """
import ctypes
places = []
real_load = machine_code.load_object
def load_object(image, *symbols, imports=None):
    code = real_load(image, *symbols, imports=imports)
    places.extend(address for symbol, address in code.addresses.items() if symbol.endswith(".better"))
    return code
machine_code.load_object = load_object
ends = threading.Event()
background.begin(ends.wait)
first = bits()
for _ in range(60): assert bits() == first
wait_for_needed()
for _ in range(8): assert bits() == first
wait_for_needed()
for _ in range(8): assert bits() == first
words = lambda: [ctypes.c_uint64.from_address(place).value for place in places]
print(*loaded()[1:], len(places) > 40, any(words()))
ends.set()
background.wait()
print(all(words()), len(set(words())) == len(places))
for _ in range(8): assert bits() == first
"""
    found = printed(EVERY_OP + program, tmp_path, kept, HF_NUM_THREADS="2")
    assert found == ["1", "1", "1", "True", "False", "True", "True"]
