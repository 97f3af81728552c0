"""Blocks of GPU threads on a CPU: kernels are the very text that is emitted for CUDA, compiled for the host.

Each thread of a block is a fiber, which runs until it comes to a barrier or to an exchange between the threads of its
warp, and goes on when all whom that concerns are there; a warp goes as far as it can before the next one begins.  Which
goes first is free, so a test runs several orders: what a thread reads before another one has written it, or after a
third has written over it, comes out different, all the more since shared memory is filled with NaNs before each block.
Threads that wait for others which never come, or come elsewhere, are an error that says who waits where.  Asynchronous
copies come as late as they may: until their group is waited for there are NaNs in their place.

What this cannot show is how PTX and the hardware behave: rounding, memory between blocks, atomics side by side.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np

from hybridflow.compiler.codegen.gpu.cooperative import BARRIER
from hybridflow.runtime.machine import host_target, machine_code
from tests.support import avx512_machine, jit_helper

WARP = 32
CONTEXT_BYTES = 8192  # more than a ucontext_t and a jmp_buf have anywhere
STARTED, PLACE = 7152, 7168  # where in those bytes it stands that a thread has begun, and where it has come to
STACK_BYTES = 1 << 18
GUARD_BYTES = 64  # behind shared memory, where nobody may write
MEETING = "meeting"  # of all threads of a launch, before they call the barrier that is for all of them
DONE, READY = -1, 0  # where a thread is; else it waits at the site of that number
COPYING, STOPPED = 1, 2  # why a warp has come back: a thread of it copies, or it can go no further alone

REGISTERS = [f"{register}.{axis}" for register in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
EXCHANGE = re.compile(
    r"call (?:i32|void|{[^}]*}) @llvm\.nvvm\.((?:barrier|bar|shfl|vote|cp\.async|ldmatrix|mma)\.[\w.]+|nanosleep)"
    r"\((.*)\)$"
)
BY_WARPS = ("shfl.", "vote.", "bar.warp.", "ldmatrix.", "mma.")
MMA_WORDS = 10  # of a thread: of the first factor 4, of the second 2, sums 4
COPY = re.compile(r"cp\.async\.c[ga]\.shared\.global\.(\d+)(\.s)?")
SHARED = re.compile(r"^(@[\w.]+) = (?:internal )?addrspace\(3\) global \[(\d+) x i8\] poison", re.MULTILINE)
LENT = re.compile(r"^(@[\w.]+) = external addrspace\(3\) global \[0 x i8\]", re.MULTILINE)
MOST_SHARED = 227 * 1024  # bytes of a block
KERNEL = re.compile(r"^define ptx_kernel void @([\w.]+)\(((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)
BY_VALUE = re.compile(r" byval\(\[\d+ x i64\]\) align \d+")  # a pointer on this side of the launch

Order = Callable[[int], Sequence[int]]
ORDERS: dict[str, Order] = {
    "forward": range,
    "reversed": lambda count: range(count)[::-1],
    "shuffled": functools.cache(lambda count: np.random.default_rng(count).permutation(count).tolist()),
}

_RUNTIME = """
@emu.registers = global [12 x i32] zeroinitializer
@emu.thread = global i32 0
@emu.first = global i32 0
@emu.entry = global ptr null
@emu.given = global ptr null
@emu.contexts = global ptr null
@emu.stacks = global ptr null
@emu.waits = global ptr null
@emu.kinds = global ptr null
@emu.words = global ptr null
@emu.fragments = global ptr null
declare i32 @getcontext(ptr)
declare void @makecontext(ptr, ptr, i32, ...)
declare i32 @setcontext(ptr)
declare i32 @_setjmp(ptr) returns_twice
declare void @_longjmp(ptr, i32)

; Context 0 is that of who runs the block, those of the threads follow.
define internal ptr @emu.context(i32 %number) {{
  %base = load ptr, ptr @emu.contexts
  %wide = zext i32 %number to i64
  %offset = mul i64 %wide, {context}
  %context = getelementptr i8, ptr %base, i64 %offset
  ret ptr %context
}}

; Leaves this thread, and goes on with another one where that has come to.  Contexts themselves are for beginning only:
; changing to one asks the system about signals.
define internal void @emu.switch(ptr %from, ptr %to) {{
  %here = getelementptr i8, ptr %from, i64 {place}
  %there = getelementptr i8, ptr %to, i64 {place}
  %begun = getelementptr i8, ptr %to, i64 {started}
  %word = load i32, ptr %begun
  %again = icmp ne i32 %word, 0
  %went = call i32 @_setjmp(ptr %here) returns_twice
  %first = icmp eq i32 %went, 0
  br i1 %first, label %leave, label %back
leave:
  br i1 %again, label %continue, label %begin
continue:
  call void @_longjmp(ptr %there, i32 1)
  unreachable
begin:
  store i32 1, ptr %begun
  %failed = call i32 @setcontext(ptr %to)
  unreachable
back:
  ret void
}}

; Waits at a site, having put four words there for the others; what they have left is the answer.
define i32 @emu.wait(i32 %site, i32 %a, i32 %b, i32 %c, i32 %d) {{
  %thread = load i32, ptr @emu.thread
  %waits = load ptr, ptr @emu.waits
  %place = getelementptr i32, ptr %waits, i32 %thread
  store i32 %site, ptr %place
  %words = load ptr, ptr @emu.words
  %own = getelementptr [5 x i32], ptr %words, i32 %thread
  %pb = getelementptr i32, ptr %own, i32 1
  %pc = getelementptr i32, ptr %own, i32 2
  %pd = getelementptr i32, ptr %own, i32 3
  store i32 %a, ptr %own
  store i32 %b, ptr %pb
  store i32 %c, ptr %pc
  store i32 %d, ptr %pd
  %number = add i32 %thread, 1
  %here = call ptr @emu.context(i32 %number)
  %main = call ptr @emu.context(i32 0)
  call void @emu.switch(ptr %here, ptr %main)
  %answer = load i32, ptr %own
  ret i32 %answer
}}

define i32 @emu.ballot(i32 %site, i32 %mask, i1 %holds) {{
  %wide = zext i1 %holds to i32
  %found = call i32 @emu.wait(i32 %site, i32 %mask, i32 %wide, i32 0, i32 0)
  ret i32 %found
}}

; The addresses and the size of an asynchronous copy.
define i32 @emu.copy(i32 %site, ptr %to, ptr %from, i32 %count) {{
  %thread = load i32, ptr @emu.thread
  %words = load ptr, ptr @emu.words
  %size = getelementptr [5 x i32], ptr %words, i32 %thread, i32 4
  store i32 %count, ptr %size
  %target = ptrtoint ptr %to to i64
  %source = ptrtoint ptr %from to i64
  %a = trunc i64 %target to i32
  %target.rest = lshr i64 %target, 32
  %b = trunc i64 %target.rest to i32
  %c = trunc i64 %source to i32
  %source.rest = lshr i64 %source, 32
  %d = trunc i64 %source.rest to i32
  %went = call i32 @emu.wait(i32 %site, i32 %a, i32 %b, i32 %c, i32 %d)
  ret i32 %went
}}

; The words that this thread has of four matrices, of which it knows the address of a line.
define {{i32, i32, i32, i32}} @emu.ldmatrix(i32 %site, ptr %line) {{
  %address = ptrtoint ptr %line to i64
  %a = trunc i64 %address to i32
  %rest = lshr i64 %address, 32
  %b = trunc i64 %rest to i32
  %went = call i32 @emu.wait(i32 %site, i32 %a, i32 %b, i32 0, i32 0)
  %thread = load i32, ptr @emu.thread
  %words = load ptr, ptr @emu.words
  %own = getelementptr [5 x i32], ptr %words, i32 %thread
  %found = load {{i32, i32, i32, i32}}, ptr %own
  ret {{i32, i32, i32, i32}} %found
}}

define {{float, float, float, float}} @emu.mma(
    i32 %site, <2 x i32> %a, <2 x i32> %b, <2 x i32> %c, float %d0, float %d1, float %d2, float %d3) {{
  %thread = load i32, ptr @emu.thread
  %all = load ptr, ptr @emu.fragments
  %own = getelementptr [10 x i32], ptr %all, i32 %thread
  %pb = getelementptr i32, ptr %own, i32 2
  %pc = getelementptr i32, ptr %own, i32 4
  %p0 = getelementptr i32, ptr %own, i32 6
  %p1 = getelementptr i32, ptr %own, i32 7
  %p2 = getelementptr i32, ptr %own, i32 8
  %p3 = getelementptr i32, ptr %own, i32 9
  store <2 x i32> %a, ptr %own, align 4
  store <2 x i32> %b, ptr %pb, align 4
  store <2 x i32> %c, ptr %pc, align 4
  store float %d0, ptr %p0
  store float %d1, ptr %p1
  store float %d2, ptr %p2
  store float %d3, ptr %p3
  %went = call i32 @emu.wait(i32 %site, i32 0, i32 0, i32 0, i32 0)
  %found = load {{float, float, float, float}}, ptr %p0
  ret {{float, float, float, float}} %found
}}

define {{float, float, float, float}} @emu.mma.bf16(
    i32 %site, i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float %d0, float %d1, float %d2, float %d3) {{
  %x0 = insertelement <2 x i32> poison, i32 %a0, i32 0
  %x = insertelement <2 x i32> %x0, i32 %a1, i32 1
  %y0 = insertelement <2 x i32> poison, i32 %a2, i32 0
  %y = insertelement <2 x i32> %y0, i32 %a3, i32 1
  %z0 = insertelement <2 x i32> poison, i32 %b0, i32 0
  %z = insertelement <2 x i32> %z0, i32 %b1, i32 1
  %found = call {{float, float, float, float}} @emu.mma(i32 %site, <2 x i32> %x, <2 x i32> %y, <2 x i32> %z,
    float %d0, float %d1, float %d2, float %d3)
  ret {{float, float, float, float}} %found
}}

define float @emu.rounded(float %x) {{
  %bits = bitcast float %x to i32
  %up = add i32 %bits, 4096
  %cut = and i32 %up, -8192
  %rounded = bitcast i32 %cut to float
  %odd = fcmp uno float %x, %x
  %found = select i1 %odd, float 0x7FFFFFE000000000, float %rounded
  ret float %found
}}

define i32 @emu.f2tf32.rna(float %x) {{
  %found = call float @emu.rounded(float %x)
  %bits = bitcast float %found to i32
  ret i32 %bits
}}

define {{float, float, float, float}} @emu.mma.f16(
    i32 %site, <2 x half> %a0, <2 x half> %a1, <2 x half> %a2, <2 x half> %a3, <2 x half> %b0, <2 x half> %b1,
    float %d0, float %d1, float %d2, float %d3) {{
  %w0 = bitcast <2 x half> %a0 to i32
  %w1 = bitcast <2 x half> %a1 to i32
  %w2 = bitcast <2 x half> %a2 to i32
  %w3 = bitcast <2 x half> %a3 to i32
  %w4 = bitcast <2 x half> %b0 to i32
  %w5 = bitcast <2 x half> %b1 to i32
  %found = call {{float, float, float, float}} @emu.mma.bf16(i32 %site, i32 %w0, i32 %w1, i32 %w2, i32 %w3, i32 %w4,
    i32 %w5, float %d0, float %d1, float %d2, float %d3)
  ret {{float, float, float, float}} %found
}}

; A thread of block after block.
define internal void @emu.fiber() {{
start:
  br label %next
next:
  %entry = load ptr, ptr @emu.entry
  %given = load ptr, ptr @emu.given
  call void %entry(ptr %given)
  %went = call i32 @emu.wait(i32 -1, i32 0, i32 0, i32 0, i32 0)
  br label %next
}}

; Makes the contexts of that many threads.
define void @emu.begin(i32 %count) {{
entry:
  %stacks = load ptr, ptr @emu.stacks
  br label %head
head:
  %thread = phi i32 [ 0, %entry ], [ %number, %head ]
  %number = add i32 %thread, 1
  %context = call ptr @emu.context(i32 %number)
  %went = call i32 @getcontext(ptr %context)
  %link = getelementptr i8, ptr %context, i64 8
  store ptr null, ptr %link
  %wide = zext i32 %thread to i64
  %offset = mul i64 %wide, {stack}
  %stack = getelementptr i8, ptr %stacks, i64 %offset
  %start = getelementptr i8, ptr %context, i64 16
  store ptr %stack, ptr %start
  %size = getelementptr i8, ptr %context, i64 32
  store i64 {stack}, ptr %size
  call void (ptr, ptr, i32, ...) @makecontext(ptr %context, ptr @emu.fiber, i32 0)
  %begun = getelementptr i8, ptr %context, i64 {started}
  store i32 0, ptr %begun
  %more = icmp ult i32 %number, %count
  br i1 %more, label %head, label %done
done:
  %main = call ptr @emu.context(i32 0)
  %main.begun = getelementptr i8, ptr %main, i64 {started}
  store i32 1, ptr %main.begun
  ret void
}}

; Runs a thread until it waits or is done.
define internal void @emu.run(i32 %thread) {{
  %nx = load i32, ptr getelementptr (i32, ptr @emu.registers, i64 3)
  %ny = load i32, ptr getelementptr (i32, ptr @emu.registers, i64 4)
  %main = call ptr @emu.context(i32 0)
  store i32 %thread, ptr @emu.thread
  %x = urem i32 %thread, %nx
  %row = udiv i32 %thread, %nx
  %y = urem i32 %row, %ny
  %plane = udiv i32 %row, %ny
  %nz = load i32, ptr getelementptr (i32, ptr @emu.registers, i64 5)
  %z = urem i32 %plane, %nz
  %block = udiv i32 %plane, %nz
  %first = load i32, ptr @emu.first
  %number.x = add i32 %first, %block
  store i32 %number.x, ptr getelementptr (i32, ptr @emu.registers, i64 6)
  store i32 %x, ptr @emu.registers
  store i32 %y, ptr getelementptr (i32, ptr @emu.registers, i64 1)
  store i32 %z, ptr getelementptr (i32, ptr @emu.registers, i64 2)
  %number = add i32 %thread, 1
  %context = call ptr @emu.context(i32 %number)
  call void @emu.switch(ptr %main, ptr %context)
  ret void
}}

; The place of a word of a thread.
define internal ptr @emu.word(i32 %thread, i32 %word) {{
  %words = load ptr, ptr @emu.words
  %place = getelementptr [5 x i32], ptr %words, i32 %thread, i32 %word
  ret ptr %place
}}

; The kind of what a thread waits for; 0 where it does not.
define internal i8 @emu.kind(i32 %thread) {{
entry:
  %waits = load ptr, ptr @emu.waits
  %place = getelementptr i32, ptr %waits, i32 %thread
  %site = load i32, ptr %place
  %waiting = icmp sgt i32 %site, 0
  br i1 %waiting, label %yes, label %no
yes:
  %kinds = load ptr, ptr @emu.kinds
  %found = getelementptr i8, ptr %kinds, i32 %site
  %kind = load i8, ptr %found
  ret i8 %kind
no:
  ret i8 0
}}

; Runs a warp until it can go no further alone: what other warps should wait for comes as early as it may.  Threads go
; in this order, the first of them by number being %base.  The answer is why it stops.
define i32 @emu.go.on(ptr %order, i32 %count, i32 %base) {{
entry:
  br label %again
again:
  br label %head
head:
  %k = phi i32 [ 0, %again ], [ %following, %tail ]
  %place = getelementptr i32, ptr %order, i32 %k
  %thread = load i32, ptr %place
  %waits = load ptr, ptr @emu.waits
  %wait = getelementptr i32, ptr %waits, i32 %thread
  %site = load i32, ptr %wait
  %ready = icmp eq i32 %site, 0
  br i1 %ready, label %run, label %tail
run:
  call void @emu.run(i32 %thread)
  %kind = call i8 @emu.kind(i32 %thread)
  %copies = icmp eq i8 %kind, {copy}
  br i1 %copies, label %copying, label %tail
copying:
  ret i32 {copying}
tail:
  %following = add i32 %k, 1
  %more = icmp ult i32 %following, %count
  br i1 %more, label %head, label %whole
whole:
  %is.whole = icmp eq i32 %count, 32
  %warp = getelementptr i32, ptr %waits, i32 %base
  %common = load i32, ptr %warp
  br i1 %is.whole, label %compare, label %stopped
compare:
  %c = phi i32 [ 1, %whole ], [ %c.following, %same ]
  %c.place = getelementptr i32, ptr %warp, i32 %c
  %c.site = load i32, ptr %c.place
  %c.same = icmp eq i32 %c.site, %common
  br i1 %c.same, label %same, label %stopped
same:
  %c.following = add i32 %c, 1
  %c.more = icmp ult i32 %c.following, 32
  br i1 %c.more, label %compare, label %meet
meet:
  %met = call i8 @emu.kind(i32 %base)
  switch i8 %met, label %stopped [ i8 {vote}, label %vote
    i8 {bar}, label %go i8 {down}, label %shuffle i8 {up}, label %shuffle i8 {bfly}, label %shuffle
    i8 {idx}, label %shuffle ]
vote:
  %voted = call i1 @emu.vote(i32 %base)
  br i1 %voted, label %go, label %stopped
shuffle:
  %shuffled = call i1 @emu.shuffle(i32 %base, i8 %met)
  br i1 %shuffled, label %go, label %stopped
go:
  call void @llvm.memset.p0.i64(ptr %warp, i8 0, i64 128, i1 false)
  br label %again
stopped:
  ret i32 {stopped}
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; The bits of all threads, in place of the first word of each.  False, and nothing done, where some are left out.
define internal i1 @emu.vote(i32 %base) {{
entry:
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %following, %tail ]
  %bits = phi i32 [ 0, %entry ], [ %more.bits, %tail ]
  %thread = add i32 %base, %k
  %mask.at = call ptr @emu.word(i32 %thread, i32 0)
  %mask = load i32, ptr %mask.at
  %all = icmp eq i32 %mask, -1
  br i1 %all, label %tail, label %wrong
wrong:
  ret i1 false
tail:
  %given.at = call ptr @emu.word(i32 %thread, i32 1)
  %given = load i32, ptr %given.at
  %bit = and i32 %given, 1
  %moved = shl i32 %bit, %k
  %more.bits = or i32 %bits, %moved
  %following = add i32 %k, 1
  %more = icmp ult i32 %following, 32
  br i1 %more, label %head, label %answer
answer:
  %j = phi i32 [ 0, %tail ], [ %j.following, %answer ]
  %to = add i32 %base, %j
  %to.at = call ptr @emu.word(i32 %to, i32 0)
  store i32 %more.bits, ptr %to.at
  %j.following = add i32 %j, 1
  %j.more = icmp ult i32 %j.following, 32
  br i1 %j.more, label %answer, label %done
done:
  ret i1 true
}}

; What a shuffle gives each of the threads, in place of the first of its words (mask, value, lane, clamp).  False, and
; nothing done, where some are left out or the clamp is another.
define internal i1 @emu.shuffle(i32 %base, i8 %kind) {{
entry:
  %is.up = icmp eq i8 %kind, {up}
  %right = select i1 %is.up, i32 0, i32 31
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %following, %tail ]
  %thread = add i32 %base, %k
  %mask.at = call ptr @emu.word(i32 %thread, i32 0)
  %mask = load i32, ptr %mask.at
  %all = icmp eq i32 %mask, -1
  %clamp.at = call ptr @emu.word(i32 %thread, i32 3)
  %clamp = load i32, ptr %clamp.at
  %fits = icmp eq i32 %clamp, %right
  %good = and i1 %all, %fits
  br i1 %good, label %tail, label %wrong
wrong:
  ret i1 false
tail:
  %following = add i32 %k, 1
  %more = icmp ult i32 %following, 32
  br i1 %more, label %head, label %answer
answer:
  %j = phi i32 [ 0, %tail ], [ %j.following, %store ]
  %to = add i32 %base, %j
  %lane.at = call ptr @emu.word(i32 %to, i32 2)
  %lane = load i32, ptr %lane.at
  %below = add i32 %j, %lane
  %above = sub i32 %j, %lane
  %across = xor i32 %j, %lane
  %there = and i32 %lane, 31
  switch i8 %kind, label %store [ i8 {down}, label %is.down i8 {up}, label %is.above i8 {bfly}, label %is.across ]
is.down:
  br label %store
is.above:
  br label %store
is.across:
  br label %store
store:
  %source = phi i32 [ %there, %answer ], [ %below, %is.down ], [ %above, %is.above ], [ %across, %is.across ]
  %inside = icmp ult i32 %source, 32
  %from.lane = select i1 %inside, i32 %source, i32 %j
  %from = add i32 %base, %from.lane
  %value.at = call ptr @emu.word(i32 %from, i32 1)
  %value = load i32, ptr %value.at
  %to.at = call ptr @emu.word(i32 %to, i32 0)
  store i32 %value, ptr %to.at
  %j.following = add i32 %j, 1
  %j.more = icmp ult i32 %j.following, 32
  br i1 %j.more, label %answer, label %done
done:
  ret i1 true
}}
"""


# What a warp does together without asking anybody, and what a thread asks Python for, by the numbers of their kinds.
KINDS = {
    "shfl.sync.down": 1,
    "shfl.sync.up": 2,
    "shfl.sync.bfly": 3,
    "shfl.sync.idx": 4,
    "vote.": 5,
    "bar.warp.": 6,
    "cp.async.": 7,
}


def _number(site: str) -> int:
    return next((number for kind, number in KINDS.items() if site.startswith(kind)), 0)


class _Copy(NamedTuple):
    """An asynchronous copy: addresses, bytes at the target, and how many of them come from the source."""

    target: int
    source: int
    size: int
    count: int


class StuckThreads(AssertionError):
    """Threads wait for others that do not come."""


def _object(text: str) -> bytes:
    """Machine code of a module for this machine, made in the shortest time: a few threads run it, once or twice."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return jit_helper.machine(avx512_machine.executable(host_target.detect()), opt=0).emit_object(module)


_rooms: list[tuple[int, Any]] = []  # for how many threads, those that nobody uses


@contextlib.contextmanager
def _room(count: int) -> Iterator[tuple[int, int]]:
    """Addresses of contexts and stacks for so many threads: mostly of those that another launch had, since fresh memory
    costs more than what runs on it."""
    threads, memory = _rooms.pop() if _rooms else (0, None)
    if threads < count:
        threads, memory = count, np.empty((count + 1) * CONTEXT_BYTES + count * STACK_BYTES + 64, np.uint8)
    contexts = -(-memory.ctypes.data // 64) * 64
    try:
        yield contexts, contexts + (threads + 1) * CONTEXT_BYTES
    finally:
        _rooms.append((threads, memory))


class Blocks:
    """The kernels of a CUDA module, compiled for the host.  ``order`` says which threads, and blocks, go first."""

    def __init__(self, text: str) -> None:
        self.sites = [""]  # what is waited at, by number
        self.text = text
        self.parameters = {name: list(filter(None, found.split(", "))) for name, found in KERNEL.findall(text)}
        self.kernels = {name: BY_VALUE.sub("", found) for name, found in KERNEL.findall(text)}
        self.shared = {name[1:]: int(size) for name, size in SHARED.findall(text)}
        self.lent = [name[1:] for name in LENT.findall(text)]
        self.shared.update(dict.fromkeys(self.lent, MOST_SHARED))
        image = _object(self._for_host(text))
        fixed = [
            "registers",
            "thread",
            "first",
            "entry",
            "given",
            "contexts",
            "stacks",
            "waits",
            "kinds",
            "words",
            "fragments",
            "begin",
            "go.on",
        ]
        symbols = [f"emu.{name}" for name in fixed] + [f"emu.call.{name}" for name in self.kernels] + [*self.shared]
        self._code = machine_code.load_object(image, *symbols)
        self._pauses = [site for site, kind in enumerate(self.sites) if kind == "nanosleep"]
        self._can_meet = bool(self._pauses)
        self._kinds = np.array([_number(site) for site in self.sites], np.int8)
        self._together = {site for site, kind in enumerate(self.sites) if kind.startswith(BY_WARPS)}
        self._begin = ctypes.CFUNCTYPE(None, ctypes.c_int32)(self._code.addresses["emu.begin"])
        go_on = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
        self._run = go_on(self._code.addresses["emu.go.on"])

    def launch(
        self,
        symbol: str,
        grid: Sequence[int],
        block: Sequence[int],
        given: Sequence[int],
        order: Order,
        together: bool = False,
        memory: int = 0,
    ) -> None:
        """Run a kernel.  ``given`` are its arguments, each 64 bits.  ``together``: all blocks, which are along the
        first axis and use no memory of their own, are under way at once, and may wait for each other.  Each block asks
        for so many bytes of ``memory``."""
        self._order = order
        self.shared.update(dict.fromkeys(self.lent, memory))
        blocks, threads = ((*sizes, 1, 1)[:3] for sizes in (grid, block))
        self._size = count = threads[0] * threads[1] * threads[2]
        assert 0 < count <= 1024, f"a block of {count} threads"
        if together:
            assert blocks[1] == blocks[2] == 1
            count *= blocks[0]
        words = np.array([int(x) & 0xFFFFFFFFFFFFFFFF for x in given], np.uint64)
        self._waits, self._words = np.zeros(count, np.int32), np.zeros((count, 5), np.uint32)
        self._fragments = np.zeros((count, MMA_WORDS), np.uint32)
        with _room(count) as (contexts, stacks):
            for name, address in {
                "entry": self._code.addresses[f"emu.call.{symbol}"],
                "given": words.ctypes.data,
                "contexts": contexts,
                "stacks": stacks,
                "waits": self._waits.ctypes.data,
                "kinds": self._kinds.ctypes.data,
                "words": self._words.ctypes.data,
                "fragments": self._fragments.ctypes.data,
            }.items():
                ctypes.c_uint64.from_address(self._code.addresses[f"emu.{name}"]).value = address
            registers = (ctypes.c_int32 * 12).from_address(self._code.addresses["emu.registers"])
            numbers = list(itertools.product(*(range(n) for n in blocks[::-1])))
            first = ctypes.c_int32.from_address(self._code.addresses["emu.first"])
            starts = [k for start in range(0, count, self._size) for k in range(start, start + self._size, WARP)]
            self._warps = [
                (k, np.array(order(min(WARP, self._size - k % self._size)), np.int32) + np.int32(k)) for k in starts
            ]
            self._begin(count)
            for k in order(1 if together else len(numbers)):
                registers[:] = (0, 0, 0, *threads, *numbers[k][::-1], *blocks)
                first.value = registers[6]
                self._block(count)

    def _block(self, count: int) -> None:
        """Run a block, or several that are under way at once."""
        for name, size in self.shared.items():
            ctypes.memset(self._code.addresses[name], 0xFF, size + GUARD_BYTES)
        self._waits[:] = READY
        self._looks = 0
        # Of each thread by groups, the last of which is open.
        self._copies: dict[int, list[list[_Copy]]] = collections.defaultdict(lambda: [[]])
        size, waits = self._size, self._waits
        parts = [slice(start, start + size) for start in range(0, count, size)]
        while (waits != DONE).any():
            for k in self._order(len(self._warps)):
                self._go_on(*self._warps[k])
            released = self._can_meet and self._meet(waits)
            for k in self._order(len(parts)):
                site = int(waits[parts[k].start])
                if site > 0 and self.sites[site].startswith("barrier.") and (waits[parts[k]] == site).all():
                    waits[parts[k]] = READY
                    released = True
            if not released and (waits != DONE).any():
                raise StuckThreads(self._who_waits())
        for name, size in self.shared.items():
            guard = ctypes.string_at(self._code.addresses[name] + size, GUARD_BYTES)
            assert guard == b"\xff" * GUARD_BYTES, f"something is written behind the shared memory @{name}"

    def _go_on(self, base: int, warp: np.ndarray) -> None:
        """Run a warp, whose threads go in this order, until it can go no further alone."""
        waits, together = self._waits, slice(base, base + WARP)
        while True:
            if self._run(warp.ctypes.data, warp.size, base) == COPYING:
                thread = ctypes.c_int32.from_address(self._code.addresses["emu.thread"]).value
                self._copy(self._copies[thread], self.sites[waits[thread]], self._words[thread])
                waits[thread] = READY
                continue
            site = int(waits[base])
            if site not in self._together or warp.size < WARP or (waits[together] != site).any():
                return
            kind = self.sites[site]
            if kind.startswith("ldmatrix."):
                _load_matrices(self._words[together], ".trans." in kind)
            elif kind == "mma.m16n8k8.row.col.tf32":
                _multiply_rounded(self._fragments[together])
            elif kind.startswith("mma."):
                _multiply(self._fragments[together], ml_dtypes.bfloat16 if kind.endswith(".bf16") else np.float16)
            else:
                raise AssertionError(f"{kind} without some threads of the warp, or with another clamp")
            waits[together] = READY

    def _meet(self, waits: np.ndarray) -> bool:
        """Let go on who looks for other blocks, unless nothing has happened since: one look more than there are
        threads that could come.  All threads of a launch come to the same barriers of it."""
        for site in set(waits[waits > 0].tolist()):
            if self.sites[site] == MEETING and (waits == site).all():
                waits[:] = READY
                self._looks = 0
                return True
        pausing = np.isin(waits, self._pauses)
        self._looks += 1
        if not pausing.any() or self._looks > waits.size:
            return False
        waits[pausing] = READY
        return True

    @staticmethod
    def _copy(groups: list[list[_Copy]], kind: str, words: np.ndarray) -> None:
        """What a thread does about its asynchronous copies."""
        copy = COPY.fullmatch(kind)
        if copy is not None:
            size, (low, high, *source, count) = int(copy[1]), map(int, words)
            new = _Copy(low | high << 32, source[0] | source[1] << 32, size, count)
            assert new.target % size == new.source % size == 0 and count <= size, f"{kind} of {new}"
            ctypes.memset(new.target, 0xFF, size)
            groups[-1].append(new)
            return
        if kind in ("cp.async.commit.group", "cp.async.wait.all"):
            groups.append([])
        if kind == "cp.async.commit.group":
            return
        late = int(words[0]) if kind == "cp.async.wait.group" else 0
        while len(groups) - 1 > late:
            for one in groups.pop(0):
                ctypes.memset(one.target, 0, one.size)
                ctypes.memmove(one.target, one.source, one.count)

    def _who_waits(self) -> str:
        places = [f"{(self._waits == DONE).sum()} are done"]
        for site in sorted(set(self._waits.tolist()) - {DONE}):
            who = np.flatnonzero(self._waits == site)
            places.append(f"{who.size} (first {who[0]}) wait at {site}: {self.sites[site]}")
        return f"of {self._waits.size} threads {'; '.join(places)}"

    # ---- the text

    def _for_host(self, text: str) -> str:
        text = BY_VALUE.sub("", text)
        text = re.sub(r" addrspace\([13]\)", "", text).replace("addrspacecast ptr", "bitcast ptr")
        lines = [line for line in text.splitlines() if not line.startswith("declare") or "@llvm.nvvm." not in line]
        text = "\n".join(map(self._waiting, lines))
        for register in REGISTERS:
            text = text.replace(f"@llvm.nvvm.read.ptx.sreg.{register}()", f"@emu.{register}()")
        for name, size in self.shared.items():
            found = rf"^@{re.escape(name)} = .*$"
            text = re.sub(found, f"@{name} = global [{size + GUARD_BYTES} x i8] undef, align 64", text, flags=re.M)
        text = text.replace("define ptx_kernel ", "define ")
        text = re.sub(r"addrspacecast \(ptr (@[\w.]+) to ptr\)", r"\1", text)
        names = ["down", "up", "bfly", "idx", "vote", "bar", "copy"]
        runtime = _RUNTIME.format(
            context=CONTEXT_BYTES,
            stack=STACK_BYTES,
            place=PLACE,
            started=STARTED,
            copying=COPYING,
            stopped=STOPPED,
            **dict(zip(names, KINDS.values(), strict=True)),
        )
        calls = [_caller(name, parameters) for name, parameters in self.kernels.items()]
        return "\n".join([text, runtime, *map(_register, range(len(REGISTERS))), *calls])

    def _waiting(self, line: str) -> str:
        meeting = re.search(rf"call void @{BARRIER}\(", line)
        if meeting is not None:
            self.sites.append(MEETING)
            return f"  call i32 @emu.wait(i32 {len(self.sites) - 1}, i32 0, i32 0, i32 0, i32 0)\n{line}"
        found = EXCHANGE.search(line)
        if "@llvm.nvvm.f2tf32.rna(" in line:  # for which nobody waits
            return line.replace("@llvm.nvvm.f2tf32.rna(", "@emu.f2tf32.rna(")
        if found is None:
            assert "@llvm.nvvm." not in line or "@llvm.nvvm.read.ptx.sreg." in line, f"not emulated: {line.strip()}"
            return line
        kind, arguments = found.groups()
        self.sites.append(kind)
        copy = COPY.fullmatch(kind)
        if copy is not None:
            size = "" if copy[2] else f", i32 {copy[1]}"
            return f"{line[: found.start()]}call i32 @emu.copy(i32 {len(self.sites) - 1}, {arguments}{size})"
        site = f"{line[: found.start()]}call {{0}} @emu.{{1}}(i32 {len(self.sites) - 1}, {arguments})"
        if kind.startswith("ldmatrix."):
            return site.format("{i32, i32, i32, i32}", "ldmatrix")
        if kind.startswith("mma."):
            own = "f16" if kind.endswith(".f32") else "bf16"  # those of TF32 are words too
            return site.format("{float, float, float, float}", f"mma.{own}")
        if kind == "vote.ballot.sync":
            return site.format("i32", "ballot")
        if not kind.startswith("shfl."):
            arguments = f"{arguments or 'i32 0'}, i32 0, i32 0, i32 0"
        return f"{line[: found.start()]}call i32 @emu.wait(i32 {len(self.sites) - 1}, {arguments})"


def _load_matrices(words: np.ndarray, turned: bool) -> None:
    """What ``ldmatrix.x4`` gives each thread of a warp, in place of an address: of each matrix two neighbours in a row,
    or, ``turned``, in a column."""
    lines = []
    for low, high, *_ in words.astype(np.uint64).tolist():
        address = low | high << 32
        assert address % 16 == 0, "a line of a matrix at no multiple of 16"
        lines.append(np.frombuffer(ctypes.string_at(address, 16), np.uint16))
    matrices = np.stack(lines).reshape(4, 8, 8)
    if turned:
        matrices = matrices.transpose(0, 2, 1)
    pairs = matrices.reshape(4, WARP, 2).astype(np.uint32)
    words[:, :4] = (pairs[..., 0] | pairs[..., 1] << 16).T


def _multiply(words: np.ndarray, dtype: Any) -> None:
    """What ``mma.m16n8k16`` makes of the fragments of a warp, in place of its sums: in float64, and rounded once."""
    halves = np.ascontiguousarray(words[:, :6]).view(dtype).astype(np.float64)
    lane = np.arange(WARP)
    row, pair = lane // 4, 2 * (lane % 4)
    a, b, sums = np.empty((16, 16)), np.empty((16, 8)), np.empty((16, 8))
    own = np.ascontiguousarray(words[:, 6:]).view(np.float32)
    for k in range(2):
        for word, (down, behind) in enumerate([(0, 0), (8, 0), (0, 8), (8, 8)]):
            a[row + down, pair + behind + k] = halves[:, 2 * word + k]
        for word in range(2):
            b[pair + 8 * word + k, row] = halves[:, 8 + 2 * word + k]
            sums[row + 8 * word, pair + k] = own[:, 2 * word + k]
    with np.errstate(all="ignore"):
        found = (a @ b + sums).astype(np.float32)
    words[:, 6:] = np.stack([found[row + 8 * word, pair + k] for word in range(2) for k in range(2)], 1).view(np.uint32)


def _multiply_rounded(words: np.ndarray) -> None:
    """The same of ``mma.m16n8k8`` for TF32, whose elements must be rounded."""
    given = np.ascontiguousarray(words[:, :6]).view(np.float32).astype(np.float64)
    assert not (words[:, :6] & 0x1FFF)[~np.isnan(given)].any(), "elements that are no TF32"
    lane = np.arange(WARP)
    row, place = lane // 4, lane % 4
    a, b, sums = np.empty((16, 8)), np.empty((8, 8)), np.empty((16, 8))
    own = np.ascontiguousarray(words[:, 6:]).view(np.float32)
    for word, (down, behind) in enumerate([(0, 0), (8, 0), (0, 4), (8, 4)]):
        a[row + down, place + behind] = given[:, word]
    for word in range(2):
        b[place + 4 * word, row] = given[:, 4 + word]
        for k in range(2):
            sums[row + 8 * word, 2 * place + k] = own[:, 2 * word + k]
    with np.errstate(all="ignore"):
        found = (a @ b + sums).astype(np.float32)
    places = [(8 * word, k) for word in range(2) for k in range(2)]
    words[:, 6:] = np.stack([found[row + down, 2 * place + k] for down, k in places], 1).view(np.uint32)


def _register(number: int) -> str:
    address = f"getelementptr (i32, ptr @emu.registers, i64 {number})"
    return f"define i32 @emu.{REGISTERS[number]}() {{\n  %r = load i32, ptr {address}\n  ret i32 %r\n}}"


def _caller(name: str, parameters: str) -> str:
    """A function that takes the arguments of a kernel from memory."""
    lines, given = [], []
    for k, parameter in enumerate(filter(None, parameters.split(", "))):
        kind = parameter.split()[0]
        lines.append(f"  %p{k} = getelementptr i64, ptr %given, i64 {k}\n  %a{k} = load {kind}, ptr %p{k}")
        given.append(f"{kind} %a{k}")
    body = "\n".join([*lines, f"  call void @{name}({', '.join(given)})", "  ret void"])
    return f"define void @emu.call.{name}(ptr %given) {{\n{body}\n}}"


def words_of(*arrays: Any) -> list[int]:
    """The addresses of arrays as arguments."""
    return [array.ctypes.data for array in arrays]
