"""The emulator of blocks: what threads exchange, and that it finds what a GPU would not forgive."""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.gpu.cooperative import CooperativeGrid
from hybridflow.compiler.target import CUDA_SM90
from tests.support.cuda_blocks import ORDERS, Blocks, StuckThreads, words_of

BARRIER = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
HEAD = """
@cells = internal addrspace(3) global [256 x i8] poison, align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.cp.async.ca.shared.global.4.s(ptr addrspace(3), ptr addrspace(1), i32)
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
define ptx_kernel void @k(ptr %x, ptr %out) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %row = getelementptr [64 x i32], ptr %out, i32 %b
  %o = getelementptr i32, ptr %row, i32 %t
  %own = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @cells to ptr), i32 %t
  %u = xor i32 %t, 63
  %other = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @cells to ptr), i32 %u
  %odd = trunc i32 %t to i1
"""


def run(body, order="forward", threads=64, blocks=1):
    x, out = np.arange(100, 164, dtype=np.int32), np.full((blocks, 64), -7, np.int32)
    kernels = Blocks(f"{HEAD}{body}\n  ret void\n}}\n")
    kernels.launch("k", (blocks,), (threads,), words_of(x, out), ORDERS[order])
    return out


def shuffled(how, lane, clamp):
    call = f"call i32 @llvm.nvvm.shfl.sync.{how}.i32(i32 -1, i32 %v, i32 {lane}, i32 {clamp})"
    return f"  %r = {call}\n  store i32 %r, ptr %o"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("how", "lane", "clamp", "source"),
    [
        ("down", 5, 31, lambda t: t + 5 if t % 32 + 5 < 32 else t),
        ("up", 3, 0, lambda t: t - 3 if t % 32 >= 3 else t),
        ("bfly", 9, 31, lambda t: t ^ 9),
        ("idx", 4, 31, lambda t: t - t % 32 + 4),
    ],
)
def test_shuffles(how, lane, clamp, source, order):
    want = [100 + source(t) for t in range(64)]
    assert run(shuffled(how, lane, clamp), order)[0].tolist() == want


READ_OTHERS = "  store i32 %v, ptr %own\n  {}\n  %r = load i32, ptr %other\n  store i32 %r, ptr %o"


@pytest.mark.parametrize("order", ORDERS)
def test_barriers(order):
    out = run(READ_OTHERS.format(BARRIER), order, blocks=3)
    assert (out == np.arange(163, 99, -1)).all()


def test_a_barrier_that_is_missing_shows():
    results = [run(READ_OTHERS.format(""), order)[0].tolist() for order in ORDERS]
    assert all(result != list(range(163, 99, -1)) for result in results)
    assert -1 in results[0]  # fresh shared memory holds no numbers


@pytest.mark.parametrize("order", ["forward", "reversed"])
def test_exchanges_of_warps_do_not_stand_for_a_barrier(order):
    meeting = "call void @llvm.nvvm.bar.warp.sync(i32 -1)"
    out = run(READ_OTHERS.format("\n  ".join([meeting] * 3)), order)[0]
    assert (out == -1).sum() == 32  # the warp that goes first sees nothing of the other


def test_shared_memory_does_not_last_from_block_to_block():
    body = "  %r = load i32, ptr %own\n  store i32 %v, ptr %own\n  store i32 %r, ptr %o"
    assert (run(body, blocks=2) == -1).all()


def branch(then, otherwise=""):
    return (
        f"  br i1 %odd, label %yes, label %no\nyes:\n  {then}\n  br label %all\n"
        f"no:\n  {otherwise}\n  br label %all\nall:"
    )


@pytest.mark.parametrize(
    "body",
    [
        branch(BARRIER),
        branch(BARRIER, BARRIER),
        branch("call void @llvm.nvvm.bar.warp.sync(i32 -1)", BARRIER),
        branch("%s = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %v, i32 0, i32 31)"),
    ],
)
def test_threads_that_part_ways_are_stuck(body):
    with pytest.raises(StuckThreads, match="of 64 threads"):
        run(body)


def test_a_warp_that_is_not_whole_cannot_exchange():
    with pytest.raises(StuckThreads, match=r"16 .* wait at 1: shfl"):
        run(shuffled("bfly", 1, 31), threads=48)


def test_writes_behind_shared_memory_are_found():
    with pytest.raises(AssertionError, match="@cells"):
        run("  %far = getelementptr i32, ptr %own, i32 1\n  store i32 %v, ptr %far")


COPIES = """
  %global = addrspacecast ptr %p to ptr addrspace(1)
  %shared = addrspacecast ptr %own to ptr addrspace(3)
  call void @llvm.nvvm.cp.async.ca.shared.global.4.s(ptr addrspace(3) %shared, ptr addrspace(1) %global, i32 {count})
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 {late})
  {barrier}
  %r = load i32, ptr %other
  store i32 %r, ptr %o
"""


@pytest.mark.parametrize("order", ORDERS)
def test_copies_come_when_they_are_waited_for(order):
    body = COPIES.format(count=4, late=1, barrier=BARRIER)
    assert run(body, order)[0].tolist() == list(range(163, 99, -1))
    assert (run(COPIES.format(count=4, late=2, barrier=BARRIER), order) == -1).all()
    assert (run(COPIES.format(count=0, late=0, barrier=BARRIER), order) == 0).all()
    assert run(COPIES.format(count=4, late=1, barrier=""), order)[0].tolist() != list(range(163, 99, -1))


def test_copies_from_between_words_are_found():
    body = COPIES.format(count=4, late=0, barrier="").replace("global.4.s", "global.16.s")
    with pytest.raises(AssertionError, match=r"cp\.async"):
        run(body)


def test_what_is_not_emulated_is_said():
    with pytest.raises(AssertionError, match="not emulated"):
        run("  call void @llvm.nvvm.membar.gl()")


def exchange_between_blocks(order, blocks=3, meets=True, astray=False, together=True):
    """Twice each of 64 threads of a block adds to its cell what the same thread of the next block has."""
    module = LLVMModule(CUDA_SM90)
    code = KernelBuilder(Emitter(CUDA_SM90, 1), ())
    launch, e = CooperativeGrid(module, code, "%word"), code.e
    own, other = (code.at("%cells", code.rem(code.add(launch.number, k), launch.count), 8) for k in (0, 64))
    for _ in range(2):
        read, mine, total = (e.fresh("v") for _ in range(3))
        e.line(f"{read} = load i64, ptr {other}")
        e.line(f"{mine} = load i64, ptr {own}")
        if meets:
            launch.barrier()
        e.line(f"{total} = add i64 {read}, {mine}")
        e.line(f"store i64 {total}, ptr {own}")
        if astray:
            odd = code.compare("eq", code.rem(launch.number, 2), 1)
            for condition in (odd, code.negation(odd)):
                with code.when(condition):
                    launch.barrier()
        elif meets:
            launch.barrier()
    e.line("ret void")
    module.function(e, "k", "ptr %cells, ptr %word", linkage="ptx_kernel", attributes='"nvvm.maxntid"="64"')
    cells, word = np.arange(64 * blocks) ** 2, np.zeros(1, np.int64)
    want = cells + np.roll(cells, -64)
    want = want + np.roll(want, -64)
    Blocks(module.render()).launch("k", (blocks,), (64,), words_of(cells, word), ORDERS[order], together)
    return cells.tolist() == want.tolist()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_blocks_that_meet(blocks, order):
    assert exchange_between_blocks(order, blocks)


def test_blocks_that_do_not_meet_show():
    assert not any(exchange_between_blocks(order, meets=False) for order in ORDERS)


def test_blocks_that_are_not_there_are_waited_for_in_vain():
    with pytest.raises(StuckThreads, match="nanosleep"):
        exchange_between_blocks("forward", together=False)


@pytest.mark.parametrize("blocks", [1, 2])
def test_threads_that_meet_at_different_places_are_stuck(blocks):
    with pytest.raises(StuckThreads, match="meeting"):
        exchange_between_blocks("forward", blocks, astray=True)
