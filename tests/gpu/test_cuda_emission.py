"""CUDA programs without a GPU: every op and a set of fused programs become PTX that assembles.

How threads are scheduled is tested in ``test_cuda_schedule.py``, real hardware in ``test_gpu.py``.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import SET_WORDS, Program
from hybridflow.compiler.target import CUDA_SM80, CUDA_SM90
from hybridflow.errors import CompileError
from hybridflow.runtime.cuda import ptx
from tests.support.device_programs import PROGRAMS, graph_of, largest_sample, traced, typical_dtypes

# Arithmetic without a rounding mode may be contracted by ptxas; the others are not IEEE's.
LOOSE = re.compile(r"\b(?:add|sub|mul|mad|fma|div|sqrt|rcp)\.(?:f16|f32|f64|approx\S*|full\S*)\b|\.ftz\b")


def assert_assembles(text):
    """Let ptxas check the text, where there is one."""
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("the PTX was generated, but there is no ptxas to check it")
    command = [assembler, "-arch=sm_90", "-O0", "-o", "/dev/null", "-"]
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.dtypes])
def test_every_op_becomes_ptx(name):
    op = TABLE[name]
    for dtype in typical_dtypes(op):
        text = ptx.assemble(compile_graph(graph_of(op, *largest_sample(op, dtype)), CUDA_SM90))
        assert not LOOSE.search(text)
    assert_assembles(text)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs_become_ptx(name):
    program = compile_graph(traced(name), CUDA_SM90)
    text = ptx.assemble(program)
    named = {launch.symbol for launch in program.launches} | ({SET_WORDS} if program.indirect else set())
    assert named == set(re.findall(r"\.visible \.entry (\w+)", text))
    assert not LOOSE.search(text)
    assert_assembles(text)


def test_ptx_names_the_target():
    graph = traced("softmax")
    for target, name in ((CUDA_SM80, "sm_80"), (CUDA_SM90, "sm_90")):
        assert f".target {name}" in ptx.assemble(compile_graph(graph, target))


def test_fastmath_lets_the_gpu_contract():
    b = GraphBuilder(TABLE, "f")
    x, y = (b.parameter(TensorType((8,), dt.float32)) for _ in range(2))
    graph = b.finish([b.add(b.multiply(x, y), x)])
    assert "fma.rn.f32" not in ptx.assemble(compile_graph(graph, CUDA_SM90))
    assert "fma.rn.f32" in ptx.assemble(compile_graph(graph, CUDA_SM90, fastmath=True))


def test_functions_that_a_gpu_lacks_are_found():
    text = (
        "declare float @expf(float)\n"
        "define ptx_kernel void @k(ptr %p) {\n"
        "  %x = load float, ptr %p\n  %y = call float @expf(float %x)\n  store float %y, ptr %p\n  ret void\n}\n"
    )
    program = Program("lacking", CUDA_SM90, text, "", (), (), (), 0)
    with pytest.raises(CompileError, match="expf"):
        ptx.assemble(program)


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("griddepcontrol.wait", CUDA_SM90, r"griddepcontrol\.wait, of which it is not known"),
        (
            "shfl.sync.idx.i32",
            CUDA_SM80.with_(sm=20),
            r"takes compute capability 3\.0 and PTX 6\.0; .* 2\.0 and PTX 7\.5",
        ),
        ("bar.warp.sync", CUDA_SM80.with_(features="+ptx50"), r"for 8\.0 and PTX 5\.0\."),
    ],
)
def test_instructions_that_a_gpu_lacks_are_found(name, target, message):
    program = Program("lacking", target, f"declare void @llvm.nvvm.{name}()\n", "", (), (), (), 0)
    with pytest.raises(CompileError, match=message):
        ptx.assemble(program)


SIGNATURES = {  # by what a name begins with: result and parameters
    "shfl": ("i32", ["i32"] * 4),
    "vote": ("i32", ["i32", "i1"]),
    "barrier": ("void", ["i32"]),
    "bar.": ("void", ["i32"]),
    "nanosleep": ("void", ["i32"]),
    "ldmatrix": ("{i32, i32, i32, i32}", ["ptr addrspace(3)"]),
    "f2tf32": ("i32", ["float"]),
    "mma.m16n8k8.row.col.tf32": ("{float, float, float, float}", ["i32"] * 6 + ["float"] * 4),
    "mma.m16n8k16.row.col.bf16": ("{float, float, float, float}", ["i32"] * 6 + ["float"] * 4),
    "mma.m16n8k16.row.col.f32": ("{float, float, float, float}", ["<2 x half>"] * 6 + ["float"] * 4),
    "read": ("i32", []),
}


def test_instructions_have_names_that_llvm_knows():
    """One that it does not know would be called like a function."""
    for name in ptx.LEAST_OF_INTRINSICS:
        result, parameters = next(kinds for start, kinds in SIGNATURES.items() if name.startswith(start))
        given = ", ".join(f"{kind} zeroinitializer" for kind in parameters)
        text = (
            f"declare {result} @llvm.nvvm.{name}({', '.join(parameters)})\n"
            f"define ptx_kernel void @k() {{\n  call {result} @llvm.nvvm.{name}({given})\n  ret void\n}}\n"
        )
        text = text.replace("i32 zeroinitializer", "i32 0").replace("float zeroinitializer", "float 0.0")
        text = text.replace("ptr addrspace(3) zeroinitializer", "ptr addrspace(3) null")
        assert "call" not in ptx.assemble(Program("known", CUDA_SM80, text, "", (), (), (), 0))


def test_the_same_program_gives_the_same_text():
    assert compile_graph(traced("training_step"), CUDA_SM90) == compile_graph(traced("training_step"), CUDA_SM90)
