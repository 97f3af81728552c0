"""Threads of a GPU that run a unit together: which of them one is, barriers, and what they hand each other.

A team is a warp, or a block of several.  Its threads take the same turns of all loops around a barrier or a shuffle,
whose bounds must not depend on the thread; what one of them does alone is a load, a store or arithmetic.
"""

from __future__ import annotations

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val, type_text
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.loops.tuning import WARP

DYNAMIC_SHARED = "@lent"  # memory of the block as large as its launch asks for


def special_register(e: Emitter, register: str) -> Ref:
    """A special register (of the launch, its block or its thread) as an i64."""
    name = f"@llvm.nvvm.read.ptx.sreg.{register}"
    e.declare(f"declare i32 {name}()")
    narrow, wide = e.fresh("r"), e.fresh("r")
    e.line(f"{narrow} = call i32 {name}()")
    e.line(f"{wide} = zext i32 {narrow} to i64")
    return wide


def dynamic_shared(e: Emitter) -> str:
    """The address of the memory that the launch of this thread's block has asked for."""
    e.globals[DYNAMIC_SHARED] = f"{DYNAMIC_SHARED} = external addrspace(3) global [0 x i8], align {ALIGNMENT}"
    return f"addrspacecast (ptr addrspace(3) {DYNAMIC_SHARED} to ptr)"


def number_and_count(code: KernelBuilder, group: int) -> tuple[Ref, Ref]:
    """The number of this thread's team among those of the launch, and of how many.  A team of more than a warp is a
    block."""
    block, blocks = special_register(code.e, "ctaid.x"), special_register(code.e, "nctaid.x")
    if group > WARP:
        return block, blocks
    threads = special_register(code.e, "ntid.x")
    number = code.add(code.mul(block, threads), special_register(code.e, "tid.x"))
    return code.div(number, group), code.div(code.mul(blocks, threads), group)


class ThreadGroup:
    """The team of the thread that runs ``code``, at whose beginning it is made: of ``size`` threads, ``WARP`` or a
    multiple, which are its whole block."""

    def __init__(self, code: KernelBuilder, size: int) -> None:
        assert size % WARP == 0, size
        self.code, self.e, self.size = code, code.e, size
        self.warps = size // WARP
        thread = special_register(code.e, "tid.x")
        self.lane = code.rem(thread, WARP)
        self.warp: Ref = 0 if self.warps == 1 else code.div(thread, WARP)
        self.rank = self.lane if self.warps == 1 else thread
        self.is_first = str(code.compare("eq", self.rank, 0))  # the one that writes what all of them know

    def barrier(self) -> None:
        """Wait for the others; what they have written by then can be read."""
        if self.warps == 1:
            self.warp_barrier()
            return
        self.e.declare("declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)")
        self.e.line("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")

    def memory(self, nbytes: int) -> str:
        """The address of memory of the block, the same at each call with that size.  It holds anything at first."""
        name = f"@team_{nbytes}"
        self.e.globals[name] = f"{name} = internal addrspace(3) global [{nbytes} x i8] poison, align 16"
        return f"addrspacecast (ptr addrspace(3) {name} to ptr)"

    def from_lane_after(self, value: Val, distance: int) -> Val:
        """The value of the thread that is so many lanes behind this one in its warp; this one's own at the end."""
        return self._shuffled("down", value, distance)

    def from_first_lane(self, value: Val) -> Val:
        """The value of the warp's first thread."""
        return self._shuffled("idx", value, 0)

    def from_lane(self, value: Val, lane: Ref) -> Val:
        """The value of the warp's thread of that number, which all of them name."""
        return self._shuffled("idx", value, lane if isinstance(lane, int) else self._op(f"trunc i64 {lane} to i32"))

    def warp_barrier(self) -> None:
        """Wait for the others of the warp."""
        self.e.declare("declare void @llvm.nvvm.bar.warp.sync(i32)")
        self.e.line("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

    def ballot(self, condition: Val) -> Val:
        """For which threads of the warp a condition holds: a bit of an uint32 for each."""
        self.e.declare("declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)")
        return self.e.assign(f"call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 {condition.ref})", dt.uint32, 1)

    def sum_before(self, value: Val, memory: str) -> Val:
        """The sum of the integers of the threads before this one; ``memory`` of the block has room for one of each
        warp."""
        e, code, item = self.e, self.code, value.dtype.itemsize
        total = value
        for distance in (1, 2, 4, 8, 16):
            other = self._shuffled("up", total, distance)
            follows = Val(str(code.compare("sge", self.lane, distance)), dt.bool_, 1)
            total = e.select(follows, e.add(total, other), total)
        with code.when(code.compare("eq", self.lane, WARP - 1)):
            e.store(total, code.at(memory, self.warp, item))
        self.barrier()
        before = e.sub(total, value)
        for warp in range(self.warps - 1):
            is_before = Val(str(code.compare("sgt", self.warp, warp)), dt.bool_, 1)
            other = e.load(code.at(memory, warp, item), value.dtype)
            before = e.add(before, e.select(is_before, other, e.zero(value.dtype, 1)))
        self.barrier()
        return before

    def _shuffled(self, how: str, value: Val, lane: Ref) -> Val:
        """Shuffles move 32 bits: narrow values are widened, wide ones go in two halves."""
        e, bits = self.e, 1 if dt.is_bool(value.dtype) else 8 * value.dtype.itemsize
        as_int = value.ref
        if dt.is_float(value.dtype) and type_text(value.dtype) != f"i{bits}":
            as_int = self._op(f"bitcast {type_text(value.dtype)} {value.ref} to i{bits}")
        if bits < 32:
            moved = self._shuffle(how, self._op(f"zext i{bits} {as_int} to i32"), lane)
            shuffled = self._op(f"trunc i32 {moved} to i{bits}")
        elif bits == 32:
            shuffled = self._shuffle(how, as_int, lane)
        else:
            shifted = self._op(f"lshr i64 {as_int}, 32")
            low, high = (
                self._op(f"zext i32 {self._shuffle(how, self._op(f'trunc i64 {part} to i32'), lane)} to i64")
                for part in (as_int, shifted)
            )
            shuffled = self._op(f"or i64 {low}, {self._op(f'shl i64 {high}, 32')}")
        if as_int == value.ref:
            return Val(shuffled, value.dtype, 1)
        return e.assign(f"bitcast i{bits} {shuffled} to {type_text(value.dtype)}", value.dtype, 1)

    def _shuffle(self, how: str, word: str, lane: Ref) -> str:
        name, clamp = f"@llvm.nvvm.shfl.sync.{how}.i32", 0 if how == "up" else WARP - 1
        self.e.declare(f"declare i32 {name}(i32, i32, i32, i32)")
        return self._op(f"call i32 {name}(i32 -1, i32 {word}, i32 {lane}, i32 {clamp})")

    def _op(self, text: str) -> str:
        name = self.e.fresh("x")
        self.e.line(f"{name} = {text}")
        return name
