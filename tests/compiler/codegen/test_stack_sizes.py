"""Calls in threads with little stack: kernels keep their cells in scratch memory, drivers and native calls their long
tables elsewhere, so that a program runs wherever Python does."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import ON_STACK
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import AARCH64, AVX2, AVX512, CUDA_SM90, SSE2
from hybridflow.runtime.machine import machine_code
from tests.compiler.loops.test_fusion import build
from tests.support.device_programs import PROGRAMS, traced
from tests.support.paths import ROOT

pytestmark = pytest.mark.usual_level

SIZES = [64, 96, 128, 256, 1024, 8192]  # KiB; musl gives a thread 128

SWEEP = r"""
import sys, threading
import numpy as np
import hybridflow as hf
from tests.support.bits import same_bits

rng = np.random.default_rng(0)

def array(*shape):
    return hf.asarray(rng.normal(size=shape).astype(np.float32))

def columns(x):
    wide = hf.astype(x, "float64")
    return hf.var(x, axis=0), hf.logsumexp(wide, axis=0), hf.nn.softmax(wide, axis=0)

def lines(x, b):
    return hf.sum((x - b) * (x + b), axis=(1, 2))

def wave(*xs):
    return [x * 2.0 + k for k, x in enumerate(xs)]

def carried(count, *xs):
    return hf.while_loop(lambda i, *v: i < count, lambda i, *v: (i + 1, *[a * 0.5 for a in v]), (hf.asarray(0), *xs))

def matrices(x):
    return hf.linalg.inv(x), hf.linalg.det(x)

CASES = [
    (columns, [array(300, 2100)]),
    (lines, [array(4, 300, 200), array(300, 1)]),
    (lambda x: hf.matrix_transpose(x) * 2, [array(50, 33, 5)]),
    (wave, [array(50) for _ in range(200)]),
    (carried, [hf.asarray(3), *[array(40) for _ in range(550)]]),
    (matrices, [array(20, 8, 8)]),
    (lambda x: (x @ hf.matrix_transpose(x), hf.sort(x, axis=0), hf.cumulative_sum(x, axis=0)), [array(200, 150)]),
]

def numpy_of(results):
    return [np.array(r) for r in (results if isinstance(results, (list, tuple)) else [results])]

made = []
for function, arguments in CASES:
    compiled = hf.function(function)
    compiled(*arguments)
    made.append((compiled, arguments, numpy_of(compiled(*arguments))))

for size in map(int, sys.argv[1:]):
    found = []
    threading.stack_size(size << 10)
    for compiled, arguments, _ in made:
        thread = threading.Thread(target=lambda: found.append(numpy_of(compiled(*arguments))))
        thread.start()
        thread.join()
    threading.stack_size(0)
    for got, (*_, expected) in zip(found, made, strict=True):
        assert len(got) == len(expected) and all(map(same_bits, got, expected)), size
    print(size, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_calls_in_threads_with_little_stack(threads, tmp_path):
    (tmp_path / "sweep.py").write_text(SWEEP)
    command = [sys.executable, str(tmp_path / "sweep.py"), *map(str, SIZES)]
    environment = {**os.environ, "HF_NUM_THREADS": threads, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, f"after {done.stdout.split()} KiB: {done.returncode}\n{done.stderr[-2000:]}"
    assert done.stdout.split() == list(map(str, SIZES))


_ALLOCA = re.compile(r"alloca \[(\d+) x (\w+)\]")
_BYTES = {"i8": 1, "ptr": 8, "i64": 8, "float": 4}


def on_stack(text: str) -> int:
    """The most bytes of arrays that a function of a module keeps on the stack."""
    functions = re.split(r"(?m)^(?=define )", text)
    return max(sum(int(n) * _BYTES[kind] for n, kind in _ALLOCA.findall(f)) for f in functions)


def test_functions_keep_little_on_the_stack():
    graphs = [traced(name) for name in PROGRAMS]
    for machine in (AVX512, AVX2, SSE2):
        for graph in graphs:
            program = compile_graph(graph, machine)
            assert on_stack(program.text + program.sharing) <= 2 * ON_STACK


def test_large_frames_are_probed():
    """A frame of more than a page touches each of them in turn, so that none is passed over unseen."""
    graph = build(lambda b, x: b.exp(x), [np.ones(4, dt.float32)])
    for machine, probe in ((SSE2, r"movq\s+\$0, \(%rsp\)"), (AARCH64, r"str\s+xzr, \[sp\]")):
        text = compile_graph(graph, machine).text
        head, body = text.split("entry:\n", 1)
        extra = "  %big = alloca [40000 x i8], align 64\n  call void @use(ptr %big)\n"
        changed = f"{head}entry:\n{extra}{body}declare void @use(ptr)\n"
        assert re.search(probe, machine_code.compile_assembly(changed, machine)), machine.triple
    assert "probe-stack" not in compile_graph(graph, CUDA_SM90).text
