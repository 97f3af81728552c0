"""The one emitter of LLVM IR text: explicit vectors, for every target.

A value is a ``Val``: an LLVM operand with the dtype and the number of lanes that it stands for.  Width 1 is the scalar
LLVM type, any other width the vector type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hybridflow.compiler.codegen.core.invariant_division import Quotients
from hybridflow.compiler.codegen.core.llvm_values import (
    LLVM,
    Val,
    alignment,
    known_lanes,
    literal_text,
    mangle,
    memory_type,
    struct_text,
    type_text,
)
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.tuning import CACHE_LINE
from hybridflow.compiler.program import Check
from hybridflow.compiler.target import Target
from hybridflow.errors import CompileError

MIN_NONTEMPORAL_BYTES = 16  # bytes of a vector that there are stores past the caches for


class Emitter(Quotients):
    """What arithmetic and conversions leave: memory, code that seldom runs, checks, powers of two."""

    def __init__(self, target: Target, width: int = 1, fastmath: bool = False) -> None:
        super().__init__(target, width, fastmath)
        # raise_if reports through these two, which the kernel builder provides.
        self.on_check: Callable[[Check], int] | None = None
        self.status: str | None = None
        self.node: Node | None = None  # that is being compiled, to which checks belong
        self.where: str | None = None  # the user's line of it, for the text of checks
        self.nontemporal: dict[
            str, str | bool
        ] = {}  # arrays whose vectors are stored past the caches, and when they are
        self._results: dict[str, Sequence[Val]] = {}  # of the functions among the globals
        self.often: frozenset[str] = frozenset()  # functions that are known to be used more than once
        self._in_place: set[str] = set()  # those that ``shared`` wrote where they are used

    # ---- memory ----

    def gep(self, base: str, dtype: np.dtype, index: Val | int) -> str:
        """The address of element ``index`` (an int64 scalar) of an array of ``dtype``."""
        ref = index if isinstance(index, int) else index.ref
        address = self.fresh("p")
        self.line(f"{address} = getelementptr inbounds {memory_type(dtype)}, ptr {base}, i64 {ref}")
        return address

    def load(
        self, ptr: str, dtype: np.dtype, mask: Val | None = None, align: int | None = None, width: int | None = None
    ) -> Val:
        """Consecutive elements from ``ptr``; lanes that ``mask`` switches off read nothing and hold zero."""
        width = self.width if width is None else width
        align = alignment(dtype) if align is None else align
        if dtype == dt.complex128 and width > 1:
            return self.joined_words(self.load(ptr, dt.int64, self._of_words(mask), align, 2 * width), dtype)
        memory, stored = memory_type(dtype, width), dt.uint8 if dtype == dt.bool_ else dtype
        known = None if mask is None else known_lanes(mask)
        if mask is None or (known is not None and all(known)):
            value = self.assign(f"load {memory}, ptr {ptr}, align {align}", stored, width)
        elif known is not None and sum(known) <= 1:
            return self._load_one(ptr, dtype, known, lambda lane: lane)
        elif width == 1:
            value = self._if_active(mask, stored, lambda: self.load(ptr, stored, None, align, 1))
        else:
            name, lanes = f"@llvm.masked.load.{mangle(stored, width)}.p0", f"<{width} x i1>"
            self.declare(f"declare {memory} {name}(ptr, {lanes}, {memory})")
            zero = f"{memory} zeroinitializer"
            value = self.assign(
                f"call {memory} {name}(ptr align {align} {ptr}, {lanes} {mask.ref}, {zero})", stored, width
            )
        return self._from_memory(value, dtype)

    def _load_one(self, ptr: str, dtype: np.dtype, known: Sequence[bool], position: Callable[[int], Val | int]) -> Val:
        """Elements at the ``position`` of their lane, of which one at the most is read."""
        nothing = self.zero(dtype, len(known))
        if not any(known):
            return nothing
        lane = known.index(True)
        return self.insert(nothing, self.load(self.gep(ptr, dtype, position(lane)), dtype, width=1), lane)

    def load_splat(self, ptr: str, dtype: np.dtype) -> Val:
        """One element in every lane."""
        return self.splat(self.load(ptr, dtype, width=1))

    def store(
        self, value: Val, ptr: str, mask: Val | None = None, align: int | None = None, array: str | None = None
    ) -> None:
        """Consecutive elements to ``ptr``, which is in ``array``, but for the lanes that ``mask`` switches off.

        LLVM 22 makes a scalar store of a masked one of which it finds late that one lane is on, and then forgets what
        it has made part of it: how elements are narrowed, or which of them it is.  So what is known of a mask is known
        here: one is a constant or depends on what only the running program knows.
        """
        known = None if mask is None else known_lanes(mask)
        if known is not None and sum(known) <= 1 < len(known):
            self._store_one(value, ptr, known, lambda lane: lane)
            return
        align = alignment(value.dtype) if align is None else align
        if value.dtype == dt.complex128 and value.width > 1:
            self.store(self.words(value), ptr, self._of_words(mask), align, array)
            return
        value = self._to_memory(value)
        memory = type_text(value.dtype, value.width)
        if mask is None or (known is not None and all(known)):
            value = self._whole(value)
            past = self.nontemporal.get(array or "", False)
            if past is not False and value.width * value.dtype.itemsize >= MIN_NONTEMPORAL_BYTES:
                self._store_nontemporal(value, ptr, past)
            else:
                self.line(f"store {memory} {value.ref}, ptr {ptr}, align {align}")
        elif value.width == 1:
            self._when_active(mask, lambda: self.store(value, ptr, None, align))
        else:
            name, lanes = f"@llvm.masked.store.{mangle(value.dtype, value.width)}.p0", f"<{value.width} x i1>"
            self.declare(f"declare void {name}({memory}, ptr, {lanes})")
            self.line(f"call void {name}({memory} {value.ref}, ptr align {align} {ptr}, {lanes} {mask.ref})")

    def _store_one(self, value: Val, ptr: str, known: Sequence[bool], position: Callable[[int], Val | int]) -> None:
        """The counterpart of ``_load_one``."""
        for lane in range(len(known)):
            if known[lane]:
                self.store(self.extract(value, lane), self.gep(ptr, value.dtype, position(lane)))

    def _store_nontemporal(self, value: Val, ptr: str, when: str | bool) -> None:
        """A vector to ``ptr``: past the caches where ``when`` says so, and its address is a multiple of its size."""
        memory, align = type_text(value.dtype, value.width), min(value.width * value.dtype.itemsize, CACHE_LINE)
        address, low, past = (self.fresh(hint) for hint in "pic")
        self.line(f"{address} = ptrtoint ptr {ptr} to i64")
        self.line(f"{low} = and i64 {address}, {align - 1}")
        self.line(f"{past} = icmp eq i64 {low}, 0")
        if when is not True:
            aligned, past = past, self.fresh("c")
            self.line(f"{past} = and i1 {aligned}, {when}")

        def store(as_what: str) -> list[Val]:
            self.line(f"store {memory} {value.ref}, ptr {ptr}, align {as_what}")
            return []

        self.either_way(
            past, lambda: store(f"{align}, !nontemporal !{{i32 1}}"), lambda: store(f"{alignment(value.dtype)}")
        )

    def prefetch(self, ptr: str) -> None:
        """Ask for the line of cache at ``ptr``, which will be read; it may lie anywhere."""
        self.declare("declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)")
        self.line(f"call void @llvm.prefetch.p0(ptr {ptr}, i32 0, i32 2, i32 1)")

    def _whole(self, value: Val) -> Val:
        """A vector for a store of all its lanes, such that LLVM does not know that some were chosen: where the others
        are what lies there, it would store those alone under a mask, which without AVX-512 takes some twenty times as
        long on processors by AMD."""
        if value.ref not in self._chosen or not self.is_x86 or self.target.masked:
            return value
        return self.opaque([value])[0]

    def gather(self, base: str, dtype: np.dtype, offsets: Val, mask: Val | None = None) -> Val:
        """One element per lane, at ``offsets`` (int64, in elements) from ``base``; inactive lanes hold zero."""
        if offsets.width == 1:
            return self.load(self.gep(base, dtype, offsets), dtype, mask, width=1)
        known = None if mask is None else known_lanes(mask)
        if known is not None and sum(known) <= 1:
            return self._load_one(base, dtype, known, lambda lane: self.extract(offsets, lane))
        if dtype == dt.complex128:
            return self.joined_words(
                self.gather(base, dt.int64, self._word_offsets(offsets), self._of_words(mask)), dtype
            )
        width, stored = offsets.width, dt.uint8 if dtype == dt.bool_ else dtype
        memory, pointers, lanes = memory_type(dtype, width), f"<{width} x ptr>", f"<{width} x i1>"
        name = f"@llvm.masked.gather.{mangle(stored, width)}.v{width}p0"
        self.declare(f"declare {memory} {name}({pointers}, {lanes}, {memory})")
        addresses = self._addresses(base, dtype, offsets)
        active = "splat (i1 true)" if mask is None else mask.ref
        value = self.assign(
            f"call {memory} {name}({pointers} align {alignment(dtype)} {addresses}, {lanes} {active}, "
            f"{memory} zeroinitializer)",
            stored,
            width,
        )
        return self._from_memory(value, dtype)

    def scatter(self, value: Val, base: str, offsets: Val, mask: Val | None = None) -> None:
        """One element per lane to ``offsets`` (int64, in elements) from ``base``, the last lane last."""
        dtype = value.dtype
        known = None if mask is None else known_lanes(mask)
        if value.width == 1:
            self.store(value, self.gep(base, dtype, offsets), mask)
            return
        if known is not None and sum(known) <= 1:
            self._store_one(value, base, known, lambda lane: self.extract(offsets, lane))
            return
        if dtype == dt.complex128:
            self.scatter(self.words(value), base, self._word_offsets(offsets), self._of_words(mask))
            return
        value = self._to_memory(value)
        width = value.width
        memory, pointers, lanes = type_text(value.dtype, width), f"<{width} x ptr>", f"<{width} x i1>"
        name = f"@llvm.masked.scatter.{mangle(value.dtype, width)}.v{width}p0"
        self.declare(f"declare void {name}({memory}, {pointers}, {lanes})")
        addresses = self._addresses(base, dtype, offsets)
        active = "splat (i1 true)" if mask is None else mask.ref
        self.line(
            f"call void {name}({memory} {value.ref}, {pointers} align {alignment(dtype)} {addresses}, {lanes} {active})"
        )

    # Complex numbers of 128 bits: vectors of such integers are moved as twice as many words.

    def words(self, value: Val) -> Val:
        """Each element of 128 bits as two of 64."""
        return self._reinterpret(value, dt.int64, 2 * value.width)

    def joined_words(self, value: Val, dtype: np.dtype) -> Val:
        """Two elements, side by side, as one of twice as many bits."""
        return self._reinterpret(value, dtype, value.width // 2)

    def _reinterpret(self, value: Val, dtype: np.dtype, width: int) -> Val:
        old, new = type_text(value.dtype, value.width), type_text(dtype, width)
        return self.assign(f"bitcast {old} {value.ref} to {new}", dtype, width)

    def _of_words(self, mask: Val | None) -> Val | None:
        return None if mask is None else self.shuffle(mask, None, [k // 2 for k in range(2 * mask.width)])

    def _word_offsets(self, offsets: Val) -> Val:
        twice = self.add(offsets, offsets)
        return self.interleaved(twice, self.add(twice, 1))

    def parts(self, value: Val) -> tuple[Val, Val]:
        """Real and imaginary part of complex numbers."""
        part = dt.part_dtype(value.dtype)
        if value.width > 1:
            both = self._reinterpret(value, part, 2 * value.width)
            return self.every(both, 2), self.shuffle(both, None, range(1, both.width, 2))
        bits = np.dtype(f"uint{8 * part.itemsize}")
        whole = type_text(value.dtype)
        above = self.assign(f"lshr {whole} {value.ref}, {8 * part.itemsize}", value.dtype, 1)
        low, high = (self.assign(f"trunc {whole} {v.ref} to {type_text(bits)}", bits, 1) for v in (value, above))
        return self.bitcast(low, part), self.bitcast(high, part)

    def joined_parts(self, real: Val, imag: Val) -> Val:
        """Complex numbers of their parts."""
        dtype = dt.complex_dtype(real.dtype)
        if real.width > 1:
            return self._reinterpret(self.interleaved(real, imag), dtype, real.width)
        bits = np.dtype(f"uint{8 * real.dtype.itemsize}")
        whole, word = type_text(dtype), type_text(bits)
        low, high = (self.assign(f"zext {word} {self.bitcast(v, bits).ref} to {whole}", dtype, 1) for v in (real, imag))
        above = self.assign(f"shl {whole} {high.ref}, {8 * bits.itemsize}", dtype, 1)
        return self.assign(f"or {whole} {low.ref}, {above.ref}", dtype, 1)

    def _addresses(self, base: str, dtype: np.dtype, offsets: Val) -> str:
        ref = self.fresh("p")
        vector = type_text(offsets.dtype, offsets.width)
        self.line(f"{ref} = getelementptr inbounds {memory_type(dtype)}, ptr {base}, {vector} {offsets.ref}")
        return ref

    def _from_memory(self, value: Val, dtype: np.dtype) -> Val:
        return self.ne(value, 0) if dtype == dt.bool_ else value

    def _to_memory(self, value: Val) -> Val:
        return self._cast("zext", value, dt.uint8) if value.dtype == dt.bool_ else value

    def _if_active(self, mask: Val, dtype: np.dtype, value: Callable[[], Val]) -> Val:
        before, active, after = self.block, self.new_label("active"), self.new_label("after")
        self.branch_if(mask.ref, active, after)
        self.label(active)
        result, end = value(), self.block
        self.branch(after)
        self.label(after)
        return self.phi((result, end), (self.zero(dtype, 1), before))

    def _when_active(self, mask: Val, action: Callable[[], None]) -> None:
        active, after = self.new_label("active"), self.new_label("after")
        self.branch_if(mask.ref, active, after)
        self.label(active)
        action()
        self.branch(after)
        self.label(after)

    def table(self, values: np.ndarray, hint: str) -> str:
        """A constant array in the module; the operand that points to it.  The same name means the same table."""
        scalar = LLVM[values.dtype]
        items = ", ".join(f"{scalar} {literal_text(v, values.dtype)}" for v in values)
        name = f"@table_{hint}"
        self.globals[name] = f"{name} = internal constant [{values.size} x {scalar}] [{items}], align 64"
        return name

    # ---- code that seldom runs ----

    def rarely(
        self, condition: Val, usual: Sequence[Val], name: str, unusual: Callable[..., Sequence[Val]], *operands: Val
    ) -> list[Val]:
        """``unusual(e, *operands)`` in the lanes where ``condition`` holds, ``usual`` in the others.

        The code of ``unusual`` runs only when some lane needs it; lane by lane the result does not depend on that.
        """
        before, rare, after = self.block, self.new_label("rare"), self.new_label("after")
        self.branch_if(self.any(condition), rare, after)
        self.label(rare)
        blended = [self.select(condition, u, v) for u, v in zip(self.call(name, unusual, *operands), usual)]
        end = self.block
        self.branch(after)
        self.label(after)
        return [self.phi((v, before), (u, end)) for v, u in zip(usual, blended)]

    def mostly(
        self,
        holds: Callable[..., Val],
        quick: Callable[..., Val],
        name: str,
        general: Callable[..., Val],
        *operands: Val,
    ) -> Val:
        """``general(e, *operands)``; by ``quick(e, *operands)``, which is the same where ``holds(e, *operands)``, where
        that is so in all lanes.

        It does not pay with AVX-512, whose instructions leave ``general`` little to do, for single lanes, nor on a GPU.
        """
        if operands[0].width == 1 or self.target.kind == "cuda" or self.has_wide(operands[0]):
            return general(self, *operands)

        def called() -> list[Val]:
            # All registers of a long vector at once: calls for one after another would wait for each other.
            return self._called(self._symbol(name, operands), lambda e, *args: (general(e, *args),), operands)

        elsewhere = self.any(self.not_(holds(self, *operands)))
        hints = "unusual", "usual", "after"
        return self.either_way(elsewhere, called, lambda: [quick(self, *operands)], hints, seldom=True)[0]

    def shared(self, name: str, function: Callable[..., Val], *operands: Val) -> Val:
        """``function(e, *operands)``: in place the first time, but for what is used ``often``, and then by calls of one
        function where these cost nothing.  They do not for several vectors at once, which are work enough for all units
        of arithmetic, nor for the few that are left over; those of one vector wait for each other between calls, and
        take a fifth longer."""
        symbol = self._symbol(name, operands)
        whole = operands[0].width > self._lanes(operands) or self.is_rest
        if self.target.kind == "cuda" or not whole or (symbol not in self._in_place and name not in self.often):
            self._in_place.add(symbol)
            return function(self, *operands)
        return self._called(symbol, lambda e, *args: (function(e, *args),), operands)[0]

    def call(self, name: str, function: Callable[..., Sequence[Val]], *operands: Val) -> list[Val]:
        """``function(e, *operands)`` as a function of its own, of which a module holds one for all that call it: long
        code that seldom runs costs time to compile for each copy.  ``name`` stands for what it does, lane by lane."""
        width = operands[0].width
        if 1 < self._lanes(operands) < width:
            low, high = (
                self.call(name, function, *(self.shuffle(v, None, half) for v in operands))
                for half in (range(width // 2), range(width // 2, width))
            )
            return [self.shuffle(a, b, range(width)) for a, b in zip(low, high)]
        return self._called(self._symbol(name, operands), function, operands)

    def _lanes(self, operands: Sequence[Val]) -> int:
        """Lanes of the longest of the vectors that fill a register."""
        return max(self.target.lanes(8 * v.dtype.itemsize) for v in operands)

    def _symbol(self, name: str, operands: Sequence[Val]) -> str:
        return "@" + ".".join([name, *(mangle(v.dtype, v.width) for v in operands)])

    def _called(self, symbol: str, function: Callable[..., Sequence[Val]], operands: Sequence[Val]) -> list[Val]:
        if symbol not in self._results:
            self._write_function(symbol, function, operands)
        results = self._results[symbol]
        arguments = ", ".join(f"{type_text(v.dtype, v.width)} {v.ref}" for v in operands)
        returned, ref = struct_text(results), self.fresh()
        self.line(f"{ref} = call {returned} {symbol}({arguments})")
        return [self.assign(f"extractvalue {returned} {ref}, {k}", v.dtype, v.width) for k, v in enumerate(results)]

    def _write_function(self, symbol: str, function: Callable[..., Sequence[Val]], operands: Sequence[Val]) -> None:
        inner = Emitter(self.target, operands[0].width, self.fastmath)
        parameters = [Val(f"%a{k}", v.dtype, v.width) for k, v in enumerate(operands)]
        results = self._results[symbol] = function(inner, *parameters)
        returned, whole = struct_text(results), "poison"
        for k, v in enumerate(results):
            ref = inner.fresh()
            inner.line(f"{ref} = insertvalue {returned} {whole}, {type_text(v.dtype, v.width)} {v.ref}, {k}")
            whole = ref
        inner.line(f"ret {returned} {whole}")
        arguments = ", ".join(f"{type_text(v.dtype, v.width)} {v.ref}" for v in parameters)
        self.declares |= inner.declares
        self.globals.update(inner.globals)
        self.globals[symbol] = "\n".join(
            [f"define internal {returned} {symbol}({arguments}) #0 {{", "entry:", *inner.lines, "}"]
        )

    def sibling(self) -> Emitter:
        """An emitter for another function of the same kernel, whose checks go where this one's do."""
        other = Emitter(self.target, 1, self.fastmath)
        other.on_check, other.status = self.on_check, self.status
        other.node, other.where = self.node, self.where
        return other

    # ---- checks ----

    def at(self, node: Node) -> None:
        """What follows is the code of ``node``."""
        self.node, self.where = node, node.where

    def raise_if(self, condition: Val, check: Check) -> None:
        """Record that ``check`` failed when the condition holds in an active lane; computing goes on.

        ``status`` points to an i32 that starts at 0 and ends as minus the smallest code of a failed check, whichever
        thread came first: among negative numbers taken as unsigned the largest is the smallest code.
        """
        if self.on_check is None or self.status is None:
            raise CompileError("emitter", f"no place to report the run-time check {check.message!r}.", check.where)
        if self.mask is not None:
            condition = self.and_(condition, self.mask)
        code = self.on_check(check)
        failed, after = self.new_label("failed"), self.new_label("after")
        self.branch_if(self.any(condition), failed, after)
        self.label(failed)
        self.line(f"{self.fresh()} = atomicrmw umax ptr {self.status}, i32 {-code} monotonic")
        self.branch(after)
        self.label(after)

    # ---- exponents ----

    def scale2(self, a: Val, exponent: Val, kept: Val | None = None) -> Val:
        """a * 2**exponent, rounded once, for |a| in [1/4, 4] and an integral float exponent.

        Exact up to overflow and gradual underflow.  AVX-512 has an instruction for it; elsewhere two products with
        powers of two, whose first is exact.  Exponents must lie within twice the dtype's range.

        In lanes where ``kept`` does not hold the result is 0, whatever the operands are: to come there by underflow
        takes processors a hundred times as long.
        """
        if self.has_wide(a):
            return self.scalef(a, exponent, kept)
        if kept is not None:
            return self.select(kept, self.scale2(a, self.select(kept, exponent, 0.0)), 0.0)
        integer, mantissa, bias = (dt.int32, 23, 127) if a.dtype == dt.float32 else (dt.int64, 52, 1023)
        # Beside this number the unit in the last place is 1: the exponent's bits become an integer's.
        beside = 1.5 * 2.0**mantissa
        bits = (mantissa + bias << mantissa) | 1 << mantissa - 1
        with self.strict():
            whole = self.sub(self.bitcast(self.add(exponent, beside), integer), bits)
            half = self.ashr(whole, 1)
            first = self.bitcast(self.shl(self.add(half, bias), mantissa), a.dtype)
            second = self.bitcast(self.shl(self.add(self.sub(whole, half), bias), mantissa), a.dtype)
            return self.mul(self.mul(a, first), second)
