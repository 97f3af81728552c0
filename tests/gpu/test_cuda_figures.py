"""What kernels for a GPU take up, as ``ptxas`` says: registers, memory of the block, and no spills.

``data/golden/cuda_figures.txt`` has the figures of one version of ptxas and LLVM; where there are others, only what
holds for all is checked.  ``--update-golden`` writes what they are now.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir.types import Dim
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import SET_WORDS
from hybridflow.compiler.target import CUDA_SM80, CUDA_SM90
from hybridflow.runtime.cuda import ptx
from hybridflow.runtime.machine import machine_code
from tests.support.paths import DATA

GOLDEN = DATA / "golden" / "cuda_figures.txt"
REGISTERS = 65536  # of a multiprocessor, one block of which must run
SHARED = 48 * 1024  # bytes of a block that takes no leave
KERNEL = re.compile(
    r"Compiling entry function '(\w+)' for.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers([^\n]*)",
    re.DOTALL,
)


def softmax(x):
    return hf.nn.softmax(x * 2.0, axis=-1)


def layer_norm(x):
    mean = hf.mean(x, axis=-1, keepdims=True)
    return (x - mean) * hf.rsqrt(hf.mean(hf.square(x - mean), axis=-1, keepdims=True) + 1e-5)


def gelu(x):
    return hf.nn.gelu(x)


def total(x):
    return hf.sum(x * x)


def first_of_all(x):
    return hf.argmax(x, axis=-1), hf.sum(x, axis=-1), hf.max(x, axis=-1)


def columns(x):
    return hf.sum(x, axis=0)


def running(x):
    return hf.cumulative_sum(x * 2.0, axis=-1)


def turned(x):
    return hf.exp(x.T) + 1


def product(x):
    return hf.nn.relu(x @ x.T)


def rounded_product(x):
    return hf.nn.relu(hf.matmul(x, x, precision="high"))


def wide_product(x):
    return hf.matmul(x, x.T, sum_dtype=hf.int32 if x.dtype == hf.int8 else hf.float32)


def convolved(x):
    weights = hf.reshape(x[0, :3, :3], (3, 3, 64, 1)) * hf.ones((1, 1, 1, 128))
    return hf.nn.relu(hf.nn.conv2d(x, weights, padding="SAME"))


def derivative_by_the_filter(x):
    weights = hf.reshape(x[0, :3, :3], (3, 3, 64, 1)) * hf.ones((1, 1, 1, 128))
    with hf.GradientTape() as tape:
        tape.watch(weights)
        loss = hf.sum(hf.square(hf.nn.conv2d(x, weights)))
    return tape.gradient(loss, weights)


def convolved_by_channels(x):
    return hf.nn.relu(hf.nn.depthwise_conv2d(x, hf.reshape(x[0, :3, :3], (3, 3, 64, 1)), padding="SAME"))


def derivatives_by_channels(x):
    weights = hf.reshape(x[0, :3, :3], (3, 3, 64, 1))
    with hf.GradientTape() as tape:
        tape.watch((x, weights))
        loss = hf.sum(hf.square(hf.nn.depthwise_conv2d(x, weights, strides=2, padding="SAME")))
    return tape.gradient(loss, (x, weights))


def ordered(x):
    return hf.sort(x, axis=-1), hf.argsort(x, axis=-1, descending=True)


def best(x):
    return hf.top_k(x, 8)


def gradient_of_rows(x):
    rows = hf.argmax(x, axis=0)
    with hf.GradientTape() as tape:
        tape.watch(x)
        loss = hf.sum(hf.square(hf.take(x, hf.concat([rows, rows]), axis=0)))
    return tape.gradient(loss, x)


def counted(x):
    return hf.scatter_add(hf.zeros((100,), x.dtype), x % 100, x)


def replaced(x):
    y = x.copy()
    y[hf.argmax(x, axis=1)] = 2 * x
    return y


def running_down(x):
    return hf.cumulative_sum(x * 2, axis=0)


def with_a_vector(x):
    return x @ x[0], x[0] @ x


def joined(x):
    return hf.concat([x[:, k : k + 8] * k for k in range(0, 256, 8)] + [x], axis=1)


def attended(x):
    return hf.nn.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True)


def derivative_of_attention(x):
    keys, values = x * 2, x + 1
    with hf.GradientTape() as tape:
        tape.watch((x, keys, values))
        loss = hf.sum(hf.square(hf.nn.scaled_dot_product_attention(x, keys, values)))
    return tape.gradient(loss, (x, keys, values))


CASES = {
    "gelu": (gelu, (1 << 20,)),
    "turned": (turned, (1000, 512)),
    "columns": (columns, (1000, 512)),
    "softmax by warps": (softmax, (512, 1000)),
    "softmax by blocks": (softmax, (512, 16384)),
    "softmax symbolic": (softmax, (Dim("m"), Dim("n"))),
    "layer norm by warps": (layer_norm, (512, 1024)),
    "layer norm by blocks": (layer_norm, (512, 9000)),
    "three folds by blocks": (first_of_all, (100, 40000)),
    "scan by chunks": (running, (1 << 20,)),
    "scan by lines": (running, (1000, 1000)),
    "scan of neighbouring lines": (running_down, (5000, 1000)),
    "total by chunks": (total, (1 << 20,)),
    "total by superchunks": (total, (1 << 26,)),
    "sort by radix": (ordered, (1 << 20,)),
    "sort of float64 by radix": (ordered, (4, 1 << 18), np.float64),
    "sort of int8 by radix": (ordered, (1 << 20,), np.int8),
    "sort by blocks": (ordered, (1000, 1000)),
    "sort by warps": (ordered, (1 << 16, 50)),
    "sort symbolic": (ordered, (Dim("m"), Dim("n"))),
    "first few": (best, (64, 50000)),
    "rows added up": (gradient_of_rows, (10000, 64)),
    "integers added": (counted, (1 << 20,), np.int16),
    "rows replaced": (replaced, (1000, 1000)),
    "product": (product, (4096, 4096)),
    "product of depth 256": (product, (4096, 256)),
    "product by small tiles": (product, (512, 512)),
    "product by blocks of the depth": (product, (64, 1 << 16)),
    "product symbolic": (product, (Dim("m"), Dim("n"))),
    "product of float64": (product, (1024, 1024), np.float64),
    "product of bfloat16": (wide_product, (1024, 1024), hf.bfloat16),
    "product with a vector": (with_a_vector, (4096, 4096)),
    "convolution": (convolved, (16, 56, 56, 64)),
    "derivative by the filter": (derivative_by_the_filter, (16, 56, 56, 64)),
    "convolution of few columns": (convolved_by_channels, (16, 56, 56, 64)),
    "derivatives of one of few columns": (derivatives_by_channels, (16, 56, 56, 64)),
    "joined parts": (joined, (1000, 256)),
    "attention": (attended, (4, 8, 1024, 64)),
    "attention of short rows": (attended, (32, 8, 256, 64)),
    "attention of long rows": (attended, (2, 8, 8192, 64)),
    "attention of float64": (attended, (4, 8, 512, 64), np.float64),
    "attention of open batches": (attended, (Dim("m"), 8, 512, 64)),
    "derivative of attention": (derivative_of_attention, (4, 8, 1024, 64)),
    "fragments of attention": (attended, (4, 8, 1024, 64), hf.bfloat16),
    "fragments of bfloat16": (wide_product, (4096, 4096), hf.bfloat16),
    "fragments of float16": (wide_product, (1024, 1024), np.float16),
    "fragments in small tiles": (wide_product, (256, 256), hf.bfloat16),
    "TF32": (rounded_product, (4096, 4096)),
    "TF32 in small tiles": (rounded_product, (256, 256)),
    "product of int8": (wide_product, (1024, 1024), np.int8),
}


def repeated(x):
    return hf.while_loop(lambda k, s: k < 9, lambda k, s: (k + 1, hf.nn.softmax(s @ x)), (0, x))


def walked(x):
    with hf.GradientTape() as tape:
        tape.watch(x)
        last = hf.scan(lambda s, row: hf.tanh(s @ x + row), x, hf.zeros(x.shape))
    return tape.gradient(last, x)


LOOPS = {"loop of products": (repeated, (300, 300)), "derivative of a scan": (walked, (64, 64))}
"""Their threads keep tables of addresses in memory of their own."""
ALL = {**CASES, **LOOPS}


def figures(text, target, tmp_path):
    """Of each kernel of a PTX text: its name, stack, spills, registers, shared bytes."""
    (tmp_path / "k.ptx").write_text(text)
    command = ["ptxas", "-v", f"-arch={target.cpu}", "-o", str(tmp_path / "k.cubin"), str(tmp_path / "k.ptx")]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, stack, stores, loads, registers, rest in KERNEL.findall(done.stdout + done.stderr):
        shared = re.search(r"(\d+) bytes smem", rest)
        yield name, int(stack), int(stores) + int(loads), int(registers), int(shared[1]) if shared else 0


def versions():
    found = subprocess.run(["ptxas", "--version"], text=True, capture_output=True).stdout
    version = re.search(r"V([\d.]+)", found)
    return f"ptxas {version and version[1]}, {machine_code.versions()}"


def golden():
    """What the file says: the versions, and the lines of each case."""
    first, *lines = GOLDEN.read_text().splitlines()
    return first, {
        name: [line for line in lines if line.startswith((f"{name}, sm_", f"{name}, compute_"))] for name in ALL
    }


@pytest.fixture(scope="module")
def updated(request):
    """The lines of all cases, to be written where that is asked for."""
    lines = {}
    yield lines
    if request.config.getoption("--update-golden"):
        assert lines.keys() == ALL.keys(), "all cases, in one process: -n 0"
        first = f"# {versions()}"
        GOLDEN.write_text("\n".join([first, *(line for name in ALL for line in lines[name])]) + "\n")


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.sample(5, 6)
@pytest.mark.parametrize("name", ALL)
def test_figures(name, updated, request, tmp_path):
    function, shape, *dtype = ALL[name]
    lines = updated[name] = []
    spec = hf.TensorSpec([None if isinstance(n, Dim) else n for n in shape], *(dtype or [np.float32]))
    graph = hf.function(function).get_concrete_function(spec).graph
    for target in (CUDA_SM80, CUDA_SM90):
        program = compile_graph(graph, target, name.startswith("fragments"))
        blocks = {launch.symbol: launch.block for launch in program.launches}
        lent = {launch.symbol: launch.memory for launch in program.launches}
        found = sorted(figures(ptx.assemble(program), target, tmp_path))
        found = [kernel for kernel in found if kernel[0] != SET_WORDS]  # it does not belong to what is compiled
        assert {kernel for kernel, *_ in found} == set(blocks)
        for kernel, stack, spilled, registers, shared in found:
            assert spilled == 0 and (stack == 0 or name in LOOPS), kernel
            assert registers * blocks[kernel] <= REGISTERS and shared <= SHARED, kernel
            of = f"{kernel.removesuffix('_launch')} of {blocks[kernel]} threads"
            assert shared + lent[kernel] <= max(target.block_memory, SHARED), kernel
            asked = f" and {lent[kernel]} asked for" if lent[kernel] else ""
            lines.append(f"{name}, {target.cpu}: {of}: {registers} registers, {shared} bytes shared{asked}")
    first, known = golden()
    if first == f"# {versions()}" and not request.config.getoption("--update-golden"):
        assert lines == known[name], "run with --update-golden -n 0 and read the diff"


def test_the_file_has_all_cases_and_no_others():
    _, known = golden()
    assert all(known.values())
    assert sum(map(len, known.values())) == len(GOLDEN.read_text().splitlines()) - 1
