"""A thin layer over llvmlite's IR builder, for the runtime's own native functions (the pool and the entry).

They are short C-like functions over CPython's and NumPy's objects.  Locals are stack slots, which LLVM turns into
registers; what is read from memory is named by pointer, byte offset and type.  In a checked module they begin as
poison, so that a word which is read before it is set shows.

References to Python objects are owned by blocks: ``with f.owned(new_reference) as held:`` gives it back on every way
out of the block, ``f.ret`` included, unless ``held.given()`` passed it on.  A checked module counts in ``BALANCE`` the
references that are owned: it is 0 when no call is under way (see ``entry_code``), or a reference leaked or was given
back twice.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import llvmlite.ir as ir

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
PTR, VOID = ir.PointerType(), ir.VoidType()
NULL = ir.Constant(PTR, None)
FALSE, TRUE = ir.Constant(I1, 0), ir.Constant(I1, 1)

BALANCE = "owned_references"
STACK_WORDS = 512  # that one array may take of the stack, where its size is known at run time only
_POISON = 0xA5  # each byte: as an address it is none, as a number it is negative


def i32(value: int) -> ir.Constant:
    return ir.Constant(I32, value)


def i64(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


class Module:
    """An LLVM module with symbols declared on first use; ``checked`` ones count the references that they own."""

    def __init__(self, checked: bool = False) -> None:
        self.ir = ir.Module()
        self.checked = checked
        if checked:
            self.variable(BALANCE, I64)

    def text(self, name: str, value: str) -> ir.GlobalVariable:
        """The address of constant text, which ends with a zero byte."""
        data = bytearray(value.encode() + b"\0")
        type_ = ir.ArrayType(I8, len(data))
        constant = ir.GlobalVariable(self.ir, type_, name)
        constant.initializer, constant.global_constant, constant.linkage = ir.Constant(type_, data), True, "internal"
        return _untyped(constant)

    def extern(self, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
        """A function defined elsewhere: in the process, in NumPy, or given as an import when the module is linked."""
        known = self.ir.globals.get(name)
        return known or ir.Function(self.ir, ir.FunctionType(result, arguments), name)

    def symbol(self, name: str) -> ir.GlobalVariable:
        """The address of data defined elsewhere."""
        known = self.ir.globals.get(name)
        return known or _untyped(ir.GlobalVariable(self.ir, I8, name))

    def variable(self, name: str, type_: ir.Type, count: int = 1) -> ir.GlobalVariable:
        """Zero-initialised data of this module; exported, so that Python can read and write it."""
        type_ = ir.ArrayType(type_, count) if count != 1 else type_
        var = ir.GlobalVariable(self.ir, type_, name)
        var.initializer = ir.Constant(type_, None)
        return _untyped(var)

    def function(self, name: str, result: ir.Type, *arguments: ir.Type, inline: bool = False) -> Function:
        function = ir.Function(self.ir, ir.FunctionType(result, arguments), name)
        function.attributes.add("nounwind")
        if inline:
            function.attributes.add("alwaysinline")
            function.linkage = "internal"
        return Function(self, function)


class Function:
    """One function being written."""

    def __init__(self, module: Module, function: ir.Function) -> None:
        self.module, self.ir, self.args = module, function, function.args
        self._locals = ir.IRBuilder(function.append_basic_block("locals"))
        body = function.append_basic_block("body")
        self._jump = self._locals.branch(body)
        self._locals.position_before(self._jump)
        self.b = ir.IRBuilder(body)
        self._ways_out: list[_WayOut] = []  # of the present blocks, the innermost last
        self._result: ir.Value | None = None  # where what is returned waits until all of them are left

    # Memory.

    def local(self, type_: ir.Type, value: ir.Value | None = None) -> ir.Value:
        """A stack slot, allocated once per call wherever it is written."""
        slot = _untyped(self._locals.alloca(type_))
        if value is not None:
            self.b.store(value, slot)
        else:
            self._poison(self._locals, slot, i64(_bytes(type_)))
        return slot

    def local_words(self, count: int) -> ir.Value:
        """So many 64-bit words on the stack."""
        return self.local(ir.ArrayType(I64, count))

    def local_array(self, type_: ir.Type, count: ir.Value) -> ir.Value:
        """A stack array whose size is known at run time; lives until the function returns."""
        slots = _untyped(self.b.alloca(type_, count))
        self._poison(self.b, slots, self.b.mul(i64(_bytes(type_)), count))
        return slots

    def _poison(self, builder: ir.IRBuilder, start: ir.Value, size: ir.Value) -> None:
        if self.module.checked:
            fill = self.module.extern("memset", PTR, PTR, I32, I64)
            builder.call(fill, (start, i32(_POISON), size))

    @contextmanager
    def room(self, words: ir.Value, failed: ir.Value) -> Iterator[ir.Value]:
        """Memory for so many words inside the block: on the stack, or on the heap where that is a lot, since calls may
        come in threads with small stacks.  Where there is none it returns ``failed``, and MemoryError is set."""
        start = self.local(PTR)
        is_large = self.b.icmp_unsigned(">", words, i64(STACK_WORDS))
        with self.b.if_else(is_large, likely=False) as (large, small):
            with large:
                self.set(start, self.call("PyMem_RawMalloc", PTR, self.b.mul(words, i64(8))))
                with self.b.if_then(self.is_null(self.get(start, PTR)), likely=False):
                    self.call("PyErr_NoMemory", PTR)
                    self.ret(failed)
            with small:
                self.set(start, self.local_array(I64, words))

        def release() -> None:
            with self.b.if_then(is_large, likely=False):
                self.call("PyMem_RawFree", VOID, self.get(start, PTR))

        with self.leaving(release):
            yield self.get(start, PTR)

    def get(self, slot: ir.Value, type_: ir.Type) -> ir.Value:
        return self.b.load(slot, typ=type_)

    def set(self, slot: ir.Value, value: ir.Value) -> None:
        self.b.store(value, slot)

    def at(self, pointer: ir.Value, offset: int | ir.Value) -> ir.Value:
        """The address ``offset`` bytes after ``pointer``."""
        if isinstance(offset, int):
            offset = i64(offset)
        return self.b.gep(pointer, [offset], source_etype=I8)

    def load(self, pointer: ir.Value, offset: int, type_: ir.Type) -> ir.Value:
        return self.b.load(self.at(pointer, offset), typ=type_)

    def store(self, value: ir.Value, pointer: ir.Value, offset: int = 0) -> None:
        self.b.store(value, self.at(pointer, offset))

    def element(self, pointer: ir.Value, index: ir.Value, type_: ir.Type) -> ir.Value:
        """The address of element ``index`` of an array of ``type_``."""
        return self.b.gep(pointer, [index], source_etype=type_)

    # Memory that several threads use: in one order for all of them.

    def atomic_load(self, pointer: ir.Value, type_: ir.Type) -> ir.Value:
        return self.b.load_atomic(pointer, "seq_cst", type_.width // 8, typ=type_)

    def atomic_store(self, value: ir.Value, pointer: ir.Value) -> None:
        """For other threads that do not read it as a sign that something else was written."""
        self.b._insert(ir.instructions.StoreAtomicInstr(self.b.block, value, pointer, "monotonic", 8))

    def exchange(self, pointer: ir.Value, value: ir.Value) -> ir.Value:
        """Store a value; the one before."""
        return self.b.atomic_rmw("xchg", pointer, value, "seq_cst")

    def fetch_add(self, pointer: ir.Value, value: ir.Value) -> ir.Value:
        """Add a value; the sum before."""
        return self.b.atomic_rmw("add", pointer, value, "seq_cst")

    def compare_exchange(self, pointer: ir.Value, old: ir.Value, new: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Store ``new`` where ``old`` is; what was there, and whether it was ``old``."""
        both = self.b.cmpxchg(pointer, old, new, "seq_cst", "seq_cst")
        return self.b.extract_value(both, 0), self.b.extract_value(both, 1)

    def word(self, pointer: ir.Value, offset: int) -> ir.Value:
        return self.load(pointer, offset, I64)

    def pointer(self, pointer: ir.Value, offset: int) -> ir.Value:
        return self.load(pointer, offset, PTR)

    def words_after(self, pointer: ir.Value, count: ir.Value) -> ir.Value:
        """The address ``count`` 64-bit words after ``pointer``."""
        return self.element(pointer, count, I64)

    def constant(self, value: int) -> ir.Constant:
        return i64(value)

    # References.

    def incref(self, obj: ir.Value) -> ir.Value:
        """A new reference to a borrowed object, for someone to own."""
        self.call("Py_IncRef", VOID, obj)
        return obj

    @contextmanager
    def owned(self, reference: ir.Value, counted: bool = True) -> Iterator[Owned]:
        """Own a new reference, or null for none, inside the block."""
        held = Owned(self, reference, counted)
        with self.leaving(held.release):
            yield held

    @contextmanager
    def owned_array(
        self, count: ir.Value, first: ir.Value | None = None, memory: ir.Value | None = None
    ) -> Iterator[ir.Value]:
        """Memory for so many references, null at first, which are given back when the block is left.  References come
        in by ``put`` and go out by ``take``, also in functions that are given the memory.  Those before the position
        ``first`` are borrowed, and not set.  It is on the stack unless ``memory`` says where."""
        slots = self.local_array(PTR, count) if memory is None else memory
        owned = count if first is None else self.b.sub(count, first)
        start = slots if first is None else self.element(slots, first, PTR)
        with self.count(owned) as i:
            self.set(self.element(start, i, PTR), NULL)

        def release() -> None:
            with self.count(owned) as i, self.owned(self.take(self.element(start, i, PTR))):
                pass

        with self.leaving(release):
            yield slots

    @contextmanager
    def owned_slot(self, slot: ir.Value) -> Iterator[None]:
        """Give back what a slot owns when the block is left."""

        def release() -> None:
            with self.owned(self.take(slot)):
                pass

        with self.leaving(release):
            yield

    def put(self, slot: ir.Value, reference: ir.Value) -> None:
        """Store a new reference into an empty slot, which owns it from now on."""
        self.note_owned(reference, 1)
        self.set(slot, reference)

    def take(self, slot: ir.Value) -> ir.Value:
        """The reference that a slot owns, or null; the slot is empty from now on."""
        reference = self.get(slot, PTR)
        self.note_owned(reference, -1)
        self.set(slot, NULL)
        return reference

    @contextmanager
    def leaving(self, release: Callable[[], None]) -> Iterator[None]:
        """Have the code of ``release`` run on every way out of the block.  It is written once for all returns, and once
        for the end of the block."""
        way_out = _WayOut(ir.Block(self.ir, "leave"))
        self._ways_out.append(way_out)
        yield
        self._ways_out.pop()
        if not self.b.block.is_terminated:
            release()
        if way_out.is_taken:
            behind = self.b.block
            self.ir.blocks.append(way_out.block)
            self.b.position_at_end(way_out.block)
            release()
            self._go_out()
            if not behind.is_terminated:
                self.b.position_at_end(behind)

    def _go_out(self) -> None:
        """Leave the present blocks, one after the other, and return what waits."""
        if self._ways_out:
            self._ways_out[-1].is_taken = True
            self.b.branch(self._ways_out[-1].block)
        elif self._result is None:
            self.b.ret_void()
        else:
            self.b.ret(self.get(self._result, self.ir.function_type.return_type))

    def note_owned(self, reference: ir.Value, change: int) -> None:
        """Count, in a checked module, a reference that becomes owned (1) or is no longer (-1)."""
        if self.module.checked:
            variable = self.module.ir.globals[BALANCE]
            step = self.b.select(self.is_null(reference), i64(0), i64(change))
            self.set(variable, self.b.add(self.get(variable, I64), step))

    # Calls and control.

    def call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """Call a function by name, declared from the types of its arguments."""
        return self.b.call(self.module.extern(name, result, *(a.type for a in arguments)), arguments)

    def call_variadic(self, name: str, result: ir.Type, fixed: int, *arguments: ir.Value) -> ir.Value:
        """Call a function of C's that takes any arguments after the first ``fixed`` ones."""
        type_ = ir.FunctionType(result, [a.type for a in arguments[:fixed]], var_arg=True)
        function = self.module.ir.globals.get(name) or ir.Function(self.module.ir, type_, name)
        return self.b.call(function, arguments)

    def call_pointer(self, function: ir.Value, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        type_ = ir.FunctionType(result, [a.type for a in arguments])
        return self.b.call(_Callee(function, type_), arguments)

    def address_of(self, function: str) -> ir.Value:
        """The address of a function of this module."""
        return ir.FormattedConstant(PTR, self.module.ir.globals[function].get_reference())

    def monotonic_ns(self) -> ir.Value:
        """Nanoseconds, of a clock that nobody sets."""
        moment = self.local(ir.ArrayType(I64, 2))  # struct timespec of 64-bit systems: seconds, nanoseconds
        self.call("clock_gettime", I32, i32(time.CLOCK_MONOTONIC), moment)
        return self.b.add(self.b.mul(self.load(moment, 0, I64), i64(10**9)), self.load(moment, 8, I64))

    def is_null(self, pointer: ir.Value) -> ir.Value:
        return self.b.icmp_unsigned("==", pointer, NULL)

    def eq(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.icmp_unsigned("==", a, b)

    def ne(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.icmp_unsigned("!=", a, b)

    def pause(self) -> None:
        """Tell the core that it spins."""
        if platform.machine() in ("x86_64", "AMD64"):
            self.call("llvm.x86.sse2.pause", VOID)
        elif platform.machine() in ("aarch64", "arm64"):
            self.call("llvm.aarch64.hint", VOID, i32(1))

    def ret(self, value: ir.Value | None = None) -> None:
        if value is not None and not self._ways_out:
            self.b.ret(value)
            return
        if value is not None:
            if self._result is None:
                self._result = self.local(value.type)
            self.set(self._result, value)
        self._go_out()

    def ret_if(self, condition: ir.Value, value: ir.Value) -> None:
        with self.b.if_then(condition, likely=False):
            self.ret(value)

    @contextmanager
    def switch(self, value: ir.Value) -> Iterator[Callable[..., AbstractContextManager[None]]]:
        """``with f.switch(v) as case, then ``with case(3): ...`` for each, or ``case(3, 4)``; a value without a case
        does nothing."""
        end = ir.Block(self.ir, "end")  # becomes a block of the function behind those of the cases
        choice = self.b.switch(value, end)

        @contextmanager
        def case(*codes: int) -> Iterator[None]:
            block = self.ir.append_basic_block("case")
            for code in codes:
                choice.add_case(ir.Constant(value.type, code), block)
            self.b.position_at_end(block)
            yield
            if not self.b.block.is_terminated:
                self.b.branch(end)

        yield case
        self.ir.blocks.append(end)
        self.b.position_at_end(end)

    @contextmanager
    def count(self, stop: ir.Value) -> Iterator[ir.Value]:
        """A loop over 0 .. stop-1; the body sees the index."""
        index = self.local(I64, i64(0))
        with self.loop(lambda: self.b.icmp_signed("<", self.get(index, I64), stop)):
            yield self.get(index, I64)
            self.set(index, self.b.add(self.get(index, I64), i64(1)))

    @contextmanager
    def loop(self, condition: Callable[..., Any]) -> Iterator[None]:
        """``while condition():``, where ``condition`` writes the test and returns its value."""
        head, body, end = (self.ir.append_basic_block(name) for name in ("while", "do", "done"))
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(condition(), body, end)
        self.b.position_at_end(body)
        yield
        self.b.branch(head)
        self.b.position_at_end(end)


class _WayOut:
    """Where returns from a block go: to the code that gives back what it holds."""

    def __init__(self, block: ir.Block) -> None:
        self.block, self.is_taken = block, False


class Owned:
    """A reference that a block owns (see ``Function.owned``)."""

    def __init__(self, f: Function, reference: ir.Value, counted: bool) -> None:
        self._f, self.value, self._slot, self._counted = f, reference, f.local(PTR, reference), counted
        if counted:
            f.note_owned(reference, 1)

    def given(self) -> ir.Value:
        """The reference, for someone else to own from here on: a caller, a function that steals it, a field."""
        if self._counted:
            return self._f.take(self._slot)
        reference = self._f.get(self._slot, PTR)
        self._f.set(self._slot, NULL)
        return reference

    def release(self) -> None:
        f, reference = self._f, self.given()
        with f.b.if_then(f.b.not_(f.is_null(reference))):
            f.call("Py_DecRef", VOID, reference)


def _bytes(type_: ir.Type) -> int:
    """The bytes that a value takes in memory."""
    if isinstance(type_, (ir.ArrayType, ir.VectorType)):
        return int(type_.count) * _bytes(type_.element)
    if isinstance(type_, ir.IntType):
        return -(-int(type_.width) // 8)
    return 4 if isinstance(type_, ir.FloatType) else 8


def _untyped(pointer: Any) -> Any:
    """llvmlite still gives stack slots and globals typed pointers, which do not mix with opaque ones."""
    pointer.type = PTR
    return pointer


class _Callee:
    """A function pointer together with its type, in the shape that llvmlite's call instruction expects."""

    def __init__(self, pointer: ir.Value, function_type: ir.FunctionType) -> None:
        self.pointer, self.function_type, self.type = pointer, function_type, PTR

    def get_reference(self) -> str:
        return self.pointer.get_reference()
