"""The one emitter of LLVM IR text: explicit vectors, for every target.

A value is a ``Val``: an LLVM operand with the dtype and the number of lanes that it stands for.  Width 1 is the scalar
LLVM type, any other width the vector type.  The emitter appends lines of text, and nothing is parsed or built in
memory, because a kernel of thousands of instructions must cost a few milliseconds at most.

Representation: bool is i1 (i8 in memory), integers iN, float16 half, bfloat16 its 16 bits (storage only: convert to
float32 to compute), float32 float, float64 double.  Wherever an operand is expected beside a ``Val``, a Python number
will do: it becomes a constant of the other operand's dtype and width.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.program import Check
from hybridflow.compiler.target import Target
from hybridflow.errors import CompileError


class Val(NamedTuple):
    """An LLVM operand: its text, dtype and lanes."""

    ref: str
    dtype: np.dtype
    width: int


Number = int | float | bool
Operand = Val | Number

_LLVM = {
    dt.bool_: "i1",
    **{d: f"i{8 * d.itemsize}" for d in dt.INTEGERS},
    dt.float16: "half",
    dt.bfloat16: "i16",
    dt.float32: "float",
    dt.float64: "double",
}
_MANGLED = {d: {"half": "f16", "float": "f32", "double": "f64"}.get(text, text) for d, text in _LLVM.items()}
_COMPARE = {  # predicate: (float, signed, unsigned and bool)
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
}
# What fastmath allows: reassociation and contraction, but never "no NaNs" or "no infinities", whose results would be
# undefined for arguments that users do have.
_FAST = "reassoc contract afn arcp nsz "

_types: dict[tuple[np.dtype, int], str] = {}
_manglings: dict[tuple[np.dtype, int], str] = {}


def type_text(dtype: np.dtype, width: int = 1) -> str:
    """The LLVM type of a value."""
    text = _types.get((dtype, width))
    if text is None:
        scalar = _LLVM[dtype]
        text = _types[dtype, width] = scalar if width == 1 else f"<{width} x {scalar}>"
    return text


def memory_type(dtype: np.dtype, width: int = 1) -> str:
    """The LLVM type of a value as it lies in memory: a bool is a byte."""
    return type_text(dt.uint8 if dtype == dt.bool_ else dtype, width)


def _struct(values: Sequence[Val]) -> str:
    return f"{{ {', '.join(type_text(v.dtype, v.width) for v in values)} }}"


def _mangle(dtype: np.dtype, width: int) -> str:
    text = _manglings.get((dtype, width))
    if text is None:
        scalar = _MANGLED[dtype]
        text = _manglings[dtype, width] = scalar if width == 1 else f"v{width}{scalar}"
    return text


def _rounded_to_float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def literal_text(value: Number | np.generic, dtype: np.dtype) -> str:
    """A scalar constant as LLVM writes it; floats in hexadecimal, hence exact."""
    if dtype == dt.float64:
        return f"0x{struct.pack('>d', value).hex().upper()}"
    if dtype == dt.float32:  # written as the double of the same value
        return f"0x{struct.pack('>d', _rounded_to_float32(float(value))).hex().upper()}"
    if dtype == dt.bool_:
        return "true" if value else "false"
    if dtype == dt.float16:
        with np.errstate(over="ignore"):
            return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if dtype == dt.bfloat16:
        return str(int(np.asarray(value).astype(dtype).view(np.uint16)))
    return str(int(value))


class Emitter:
    """Writes the body of one LLVM function.

    ``width`` is the number of lanes of the values that are made from nothing (constants, loads, iota); every other
    method takes the width of its operands.  ``mask`` is the active lanes of a tail, or None when all are active.
    ``fastmath`` permits reassociation and contraction; without it each method is one IEEE operation.
    """

    def __init__(self, target: Target, width: int = 1, fastmath: bool = False) -> None:
        self.target = target
        self.width = width
        self.fastmath = fastmath
        self.mask: Val | None = None
        self.where: str | None = None  # the user's file:line of the op that is being emitted
        self.lines: list[str] = []
        self.declares: set[str] = set()
        self.globals: dict[str, str] = {}  # name -> definition: constant tables, and functions that the body calls
        self._results: dict[str, Sequence[Val]] = {}  # of the functions among them
        self.block = "entry"
        # raise_if reports through these two, which the kernel builder provides.
        self.on_check: Callable[[Check], int] | None = None
        self.status: str | None = None
        self._count = 0
        self._is_x86 = target.triple.startswith("x86_64")

    # ---- text ----

    def fresh(self, hint: str = "v") -> str:
        self._count += 1
        return f"%{hint}{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def comment(self, text: str) -> None:
        self.lines.append(f"  ; {text}")

    def assign(self, text: str, dtype: np.dtype, width: int) -> Val:
        """``%vN = text`` as a value."""
        self._count += 1
        ref = f"%v{self._count}"
        self.lines.append(f"  {ref} = {text}")
        return Val(ref, dtype, width)

    def declare(self, text: str) -> None:
        self.declares.add(text)

    # ---- control flow ----

    def new_label(self, hint: str = "L") -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def label(self, name: str) -> None:
        """Open a basic block."""
        self.lines.append(f"{name}:")
        self.block = name

    def branch(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str) -> None:
        self.line(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def phi(self, *incoming: tuple[Val, str]) -> Val:
        """The value that came along the edge from one of the labels."""
        first = incoming[0][0]
        pairs = ", ".join(f"[ {value.ref}, %{label} ]" for value, label in incoming)
        return self.assign(f"phi {type_text(first.dtype, first.width)} {pairs}", first.dtype, first.width)

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

    def call(self, name: str, function: Callable[..., Sequence[Val]], *operands: Val) -> list[Val]:
        """``function(e, *operands)`` as a function of its own, of which a module holds one for all that call it: long
        code that seldom runs costs time to compile for each copy.  ``name`` stands for what it does, lane by lane."""
        width = operands[0].width
        if width > max(self.target.lanes(8 * v.dtype.itemsize) for v in operands):
            low, high = (
                self.call(name, function, *(self.shuffle(v, None, half) for v in operands))
                for half in (range(width // 2), range(width // 2, width))
            )
            return [self.shuffle(a, b, range(width)) for a, b in zip(low, high)]
        symbol = "@" + ".".join([name, *(_mangle(v.dtype, v.width) for v in operands)])
        if symbol not in self._results:
            self._write_function(symbol, function, operands)
        results = self._results[symbol]
        arguments = ", ".join(f"{type_text(v.dtype, v.width)} {v.ref}" for v in operands)
        returned, ref = _struct(results), self.fresh()
        self.line(f"{ref} = call {returned} {symbol}({arguments})")
        return [self.assign(f"extractvalue {returned} {ref}, {k}", v.dtype, v.width) for k, v in enumerate(results)]

    def _write_function(self, symbol: str, function: Callable[..., Sequence[Val]], operands: Sequence[Val]) -> None:
        inner = Emitter(self.target, operands[0].width, self.fastmath)
        parameters = [Val(f"%a{k}", v.dtype, v.width) for k, v in enumerate(operands)]
        results = self._results[symbol] = function(inner, *parameters)
        returned, whole = _struct(results), "poison"
        for k, v in enumerate(results):
            ref = inner.fresh()
            inner.line(f"{ref} = insertvalue {returned} {whole}, {type_text(v.dtype, v.width)} {v.ref}, {k}")
            whole = ref
        inner.line(f"ret {returned} {whole}")
        given = ", ".join(f"{type_text(v.dtype, v.width)} {v.ref}" for v in parameters)
        self.declares |= inner.declares
        self.globals.update(inner.globals)
        self.globals[symbol] = "\n".join(
            [f"define internal {returned} {symbol}({given}) #0 {{", "entry:", *inner.lines, "}"]
        )

    # ---- values from nothing ----

    def const(self, value: Number | np.generic, dtype: np.dtype, width: int | None = None) -> Val:
        """A constant in every lane."""
        width = self.width if width is None else width
        text = literal_text(value, dtype)
        return Val(text if width == 1 else f"splat ({_LLVM[dtype]} {text})", dtype, width)

    def zero(self, dtype: np.dtype, width: int | None = None) -> Val:
        return self.const(0, dtype, width)

    def iota(self, dtype: np.dtype = dt.int64) -> Val:
        """0, 1, 2 ... along the lanes."""
        if self.width == 1:
            return self.const(0, dtype)
        scalar = _LLVM[dtype]
        lanes = ", ".join(f"{scalar} {literal_text(i, dtype)}" for i in range(self.width))
        return Val(f"<{lanes}>", dtype, self.width)

    def splat(self, scalar: Val) -> Val:
        """A scalar in every lane."""
        if self.width == 1 or scalar.width != 1:
            return scalar
        vector, element = type_text(scalar.dtype, self.width), type_text(scalar.dtype)
        one = self.assign(f"insertelement {vector} poison, {element} {scalar.ref}, i64 0", scalar.dtype, self.width)
        indices = f"<{self.width} x i32> zeroinitializer"
        return self.assign(f"shufflevector {vector} {one.ref}, {vector} poison, {indices}", scalar.dtype, self.width)

    def table(self, values: np.ndarray, hint: str) -> str:
        """A constant array in the module; the operand that points to it.  The same name means the same table."""
        scalar = _LLVM[values.dtype]
        items = ", ".join(f"{scalar} {literal_text(v, values.dtype)}" for v in values)
        name = f"@table_{hint}"
        self.globals[name] = f"{name} = internal constant [{values.size} x {scalar}] [{items}], align 64"
        return name

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
        align = dtype.itemsize if align is None else align
        memory, stored = memory_type(dtype, width), dt.uint8 if dtype == dt.bool_ else dtype
        if mask is None:
            value = self.assign(f"load {memory}, ptr {ptr}, align {align}", stored, width)
        elif width == 1:
            value = self._if_active(mask, stored, lambda: self.load(ptr, stored, None, align, 1))
        else:
            name, lanes = f"@llvm.masked.load.{_mangle(stored, width)}.p0", f"<{width} x i1>"
            self.declare(f"declare {memory} {name}(ptr, {lanes}, {memory})")
            zero = f"{memory} zeroinitializer"
            value = self.assign(
                f"call {memory} {name}(ptr align {align} {ptr}, {lanes} {mask.ref}, {zero})", stored, width
            )
        return self._from_memory(value, dtype)

    def load_splat(self, ptr: str, dtype: np.dtype) -> Val:
        """One element in every lane."""
        return self.splat(self.load(ptr, dtype, width=1))

    def store(
        self, value: Val, ptr: str, mask: Val | None = None, nontemporal: bool = False, align: int | None = None
    ) -> None:
        """Consecutive elements to ``ptr``, but for the lanes that ``mask`` switches off.

        ``nontemporal`` bypasses the caches where ``align`` (bytes) is the vector's size at least.
        """
        align = value.dtype.itemsize if align is None else align
        value = self._to_memory(value)
        memory = type_text(value.dtype, value.width)
        if mask is None:
            hint = ", !nontemporal !0" if nontemporal else ""
            self.line(f"store {memory} {value.ref}, ptr {ptr}, align {align}{hint}")
        elif value.width == 1:
            self._when_active(mask, lambda: self.store(value, ptr, None, nontemporal, align))
        else:
            name, lanes = f"@llvm.masked.store.{_mangle(value.dtype, value.width)}.p0", f"<{value.width} x i1>"
            self.declare(f"declare void {name}({memory}, ptr, {lanes})")
            self.line(f"call void {name}({memory} {value.ref}, ptr align {align} {ptr}, {lanes} {mask.ref})")

    def gather(self, base: str, dtype: np.dtype, offsets: Val, mask: Val | None = None) -> Val:
        """One element per lane, at ``offsets`` (int64, in elements) from ``base``; inactive lanes hold zero."""
        if offsets.width == 1:
            return self.load(self.gep(base, dtype, offsets), dtype, mask, width=1)
        width, stored = offsets.width, dt.uint8 if dtype == dt.bool_ else dtype
        memory, pointers, lanes = memory_type(dtype, width), f"<{width} x ptr>", f"<{width} x i1>"
        name = f"@llvm.masked.gather.{_mangle(stored, width)}.v{width}p0"
        self.declare(f"declare {memory} {name}({pointers}, {lanes}, {memory})")
        addresses = self._addresses(base, dtype, offsets)
        active = "splat (i1 true)" if mask is None else mask.ref
        value = self.assign(
            f"call {memory} {name}({pointers} align {dtype.itemsize} {addresses}, {lanes} {active}, "
            f"{memory} zeroinitializer)",
            stored,
            width,
        )
        return self._from_memory(value, dtype)

    def scatter(self, value: Val, base: str, offsets: Val, mask: Val | None = None) -> None:
        """One element per lane to ``offsets`` (int64, in elements) from ``base``, the last lane last."""
        dtype = value.dtype
        if value.width == 1:
            return self.store(value, self.gep(base, dtype, offsets), mask)
        value = self._to_memory(value)
        width = value.width
        memory, pointers, lanes = type_text(value.dtype, width), f"<{width} x ptr>", f"<{width} x i1>"
        name = f"@llvm.masked.scatter.{_mangle(value.dtype, width)}.v{width}p0"
        self.declare(f"declare void {name}({memory}, {pointers}, {lanes})")
        addresses = self._addresses(base, dtype, offsets)
        active = "splat (i1 true)" if mask is None else mask.ref
        self.line(
            f"call void {name}({memory} {value.ref}, {pointers} align {dtype.itemsize} {addresses}, {lanes} {active})"
        )

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

    # ---- lanes ----

    def extract(self, value: Val, lane: int | Val) -> Val:
        """One lane as a scalar."""
        if value.width == 1:
            return value
        ref = lane if isinstance(lane, int) else lane.ref
        vector = type_text(value.dtype, value.width)
        return self.assign(f"extractelement {vector} {value.ref}, i64 {ref}", value.dtype, 1)

    def insert(self, value: Val, scalar: Val, lane: int | Val) -> Val:
        """``value`` with one lane replaced."""
        if value.width == 1:
            return scalar
        ref = lane if isinstance(lane, int) else lane.ref
        vector, element = type_text(value.dtype, value.width), type_text(value.dtype)
        return self.assign(
            f"insertelement {vector} {value.ref}, {element} {scalar.ref}, i64 {ref}", value.dtype, value.width
        )

    def shuffle(self, a: Val, b: Val | None, lanes: Sequence[int]) -> Val:
        """Lanes of ``a`` (0, 1 ...) and ``b`` (counted on from a's width) in the order of ``lanes``."""
        vector = type_text(a.dtype, a.width)
        indices = ", ".join(f"i32 {lane}" for lane in lanes)
        other = "poison" if b is None else b.ref
        return self.assign(
            f"shufflevector {vector} {a.ref}, {vector} {other}, <{len(lanes)} x i32> <{indices}>", a.dtype, len(lanes)
        )

    def reverse(self, value: Val) -> Val:
        """The lanes in the opposite order."""
        return value if value.width == 1 else self.shuffle(value, None, range(value.width - 1, -1, -1))

    def any(self, mask: Val) -> str:
        """The operand (a scalar i1) that says whether some lane holds."""
        if mask.width == 1:
            return mask.ref
        name, vector = f"@llvm.vector.reduce.or.v{mask.width}i1", f"<{mask.width} x i1>"
        self.declare(f"declare i1 {name}({vector})")
        return self.assign(f"call i1 {name}({vector} {mask.ref})", dt.bool_, 1).ref

    # ---- arithmetic ----

    def add(self, a: Operand, b: Operand) -> Val:
        return self._binary("fadd", "add", a, b)

    def sub(self, a: Operand, b: Operand) -> Val:
        return self._binary("fsub", "sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Val:
        return self._binary("fmul", "mul", a, b)

    def div(self, a: Operand, b: Operand) -> Val:
        """Float division."""
        return self._binary("fdiv", "", a, b)

    def neg(self, a: Val) -> Val:
        if dt.is_float(a.dtype):
            return self.assign(f"fneg {type_text(a.dtype, a.width)} {a.ref}", a.dtype, a.width)
        return self.sub(0, a)

    def abs(self, a: Val) -> Val:
        """The magnitude; that of the least integer is itself."""
        if dt.is_float(a.dtype):
            return self._intrinsic("fabs", a)
        if not dt.is_signed(a.dtype):
            return a
        text, name = type_text(a.dtype, a.width), f"@llvm.abs.{_mangle(a.dtype, a.width)}"
        self.declare(f"declare {text} {name}({text}, i1)")
        return self.assign(f"call {text} {name}({text} {a.ref}, i1 false)", a.dtype, a.width)

    def fma(self, a: Operand, b: Operand, c: Operand) -> Val:
        """a * b + c, rounded once on every target."""
        like = next(v for v in (a, b, c) if isinstance(v, Val))
        return self._intrinsic("fma", self._like(a, like), self._like(b, like), self._like(c, like))

    def sqrt(self, a: Val) -> Val:
        return self._intrinsic("sqrt", a)

    def floor(self, a: Val) -> Val:
        return self._intrinsic("floor", a)

    def ceil(self, a: Val) -> Val:
        return self._intrinsic("ceil", a)

    def trunc(self, a: Val) -> Val:
        """Towards zero, as a float."""
        return self._intrinsic("trunc", a)

    def rint(self, a: Val) -> Val:
        """To the nearest integer, ties to even, as a float."""
        return self._intrinsic("roundeven", a)

    def copysign(self, a: Operand, sign: Operand) -> Val:
        a, sign = self._pair(a, sign)
        return self._intrinsic("copysign", a, sign)

    def minimum(self, a: Operand, b: Operand) -> Val:
        """The smaller; NaN if either is NaN, and -0.0 is less than 0.0."""
        return self._extremum("minimum", "smin", "umin", "and", a, b)

    def maximum(self, a: Operand, b: Operand) -> Val:
        """The larger; NaN if either is NaN, and 0.0 is more than -0.0."""
        return self._extremum("maximum", "smax", "umax", "or", a, b)

    def idiv(self, a: Operand, b: Operand) -> Val:
        """Integer quotient, truncated; the caller sees to it that active lanes of ``b`` are not zero."""
        a, b = self._pair(a, b)
        if not dt.is_signed(a.dtype):
            return self._binary("", "udiv", a, self._divisor(b))
        # The processor traps on least / -1, so that -1 never reaches it.
        minus = self.eq(b, -1)
        quotient = self._binary("", "sdiv", a, self._divisor(self.select(minus, 1, b)))
        return self.select(minus, self.neg(a), quotient)

    def irem(self, a: Operand, b: Operand) -> Val:
        """Integer remainder with the sign of ``a``; the caller sees to it that active lanes of ``b`` are not zero."""
        a, b = self._pair(a, b)
        if not dt.is_signed(a.dtype):
            return self._binary("", "urem", a, self._divisor(b))
        return self._binary("", "srem", a, self._divisor(self.select(self.eq(b, -1), 1, b)))

    def _divisor(self, b: Val) -> Val:
        # Lanes beyond a tail hold zero, on which a vector's division would trap.
        return b if self.mask is None or self.mask.width != b.width else self.select(self.mask, b, 1)

    # ---- bits ----

    def and_(self, a: Operand, b: Operand) -> Val:
        return self._binary("", "and", a, b)

    def or_(self, a: Operand, b: Operand) -> Val:
        return self._binary("", "or", a, b)

    def xor(self, a: Operand, b: Operand) -> Val:
        return self._binary("", "xor", a, b)

    def not_(self, a: Val) -> Val:
        return self.xor(a, True if a.dtype == dt.bool_ else -1)

    def shl(self, a: Operand, b: Operand) -> Val:
        """Shifts take amounts below the number of bits; anything else is undefined."""
        return self._binary("", "shl", a, b)

    def lshr(self, a: Operand, b: Operand) -> Val:
        return self._binary("", "lshr", a, b)

    def ashr(self, a: Operand, b: Operand) -> Val:
        return self._binary("", "ashr", a, b)

    # ---- comparison and choice ----

    def eq(self, a: Operand, b: Operand) -> Val:
        return self._compare("eq", a, b)

    def ne(self, a: Operand, b: Operand) -> Val:
        """Unequal, NaN being unequal to everything; the other comparisons are false for NaN."""
        return self._compare("ne", a, b)

    def lt(self, a: Operand, b: Operand) -> Val:
        return self._compare("lt", a, b)

    def le(self, a: Operand, b: Operand) -> Val:
        return self._compare("le", a, b)

    def gt(self, a: Operand, b: Operand) -> Val:
        return self._compare("gt", a, b)

    def ge(self, a: Operand, b: Operand) -> Val:
        return self._compare("ge", a, b)

    def is_nan(self, a: Val) -> Val:
        return self.assign(f"fcmp uno {type_text(a.dtype, a.width)} {a.ref}, {a.ref}", dt.bool_, a.width)

    def select(self, condition: Val, a: Operand, b: Operand) -> Val:
        """``a`` where the condition holds, else ``b``; a scalar condition chooses a whole vector."""
        if not isinstance(a, Val) and not isinstance(b, Val):
            raise TypeError("select needs a value among its two choices to know their dtype")
        a, b = self._pair(a, b)
        text = type_text(a.dtype, a.width)
        return self.assign(
            f"select {type_text(dt.bool_, condition.width)} {condition.ref}, {text} {a.ref}, {text} {b.ref}",
            a.dtype,
            a.width,
        )

    # ---- conversion ----

    def bitcast(self, a: Val, dtype: np.dtype) -> Val:
        """The same bits as another dtype of the same size."""
        old, new = type_text(a.dtype, a.width), type_text(dtype, a.width)
        return Val(a.ref, dtype, a.width) if old == new else self._cast("bitcast", a, dtype)

    def convert(self, a: Val, dtype: np.dtype) -> Val:
        """``a`` as ``dtype``.

        Float to integer truncates, saturates, and turns NaN into 0, so that no lane is undefined.  Narrowing rounds to
        nearest even.  To bool is "unequal to zero".  bfloat16 goes through float32, as in ml_dtypes.
        """
        if a.dtype == dtype:
            return a
        if dt.is_narrow_float(a.dtype):
            wide = self._widen_half(a) if a.dtype == dt.float16 else self._widen_bfloat(a)
            return self.convert(wide, dtype)
        if dtype == dt.float16:
            if a.dtype == dt.float64:
                # Rounding twice is harmless when the first rounding leaves a trace of what it dropped.
                return self._narrow_half(self._narrow_to_odd(a))
            return self._narrow_half(self.convert(a, dt.float32))
        if dtype == dt.bfloat16:
            return self._narrow_bfloat(self.convert(a, dt.float32))
        if dtype == dt.bool_:
            return self.ne(a, 0)
        if dt.is_float(a.dtype):
            if dt.is_float(dtype):
                return self._cast("fpext" if dtype == dt.float64 else "fptrunc", a, dtype)
            return self._float_to_int(a, dtype)
        signed = dt.is_signed(a.dtype)
        if dt.is_float(dtype):
            return self._cast("sitofp" if signed else "uitofp", a, dtype)
        if a.dtype != dt.bool_ and dtype.itemsize <= a.dtype.itemsize:
            return self.bitcast(a, dtype) if dtype.itemsize == a.dtype.itemsize else self._cast("trunc", a, dtype)
        return self._cast("sext" if signed else "zext", a, dtype)

    def truncate_to_int(self, a: Val, dtype: np.dtype) -> Val:
        """Float to integer where the caller knows that every lane fits; other lanes are undefined."""
        return self._cast("fptosi" if dt.is_signed(dtype) else "fptoui", a, dtype)

    def _float_to_int(self, a: Val, dtype: np.dtype) -> Val:
        # Compares and selects rather than llvm.fptosi.sat, which x86 takes lane by lane.
        info = np.iinfo(dtype)
        value_bits = info.bits - (info.min < 0)
        limit = 2.0**value_bits
        exact = value_bits <= np.finfo(a.dtype).nmant + 1
        largest = limit - 1 if exact else float(np.nextafter(a.dtype.type(limit), a.dtype.type(0)))
        inside = self.select(self.gt(a, largest), largest, a)
        inside = self.select(self.lt(a, float(info.min)), float(info.min), inside)
        inside = self.select(self.is_nan(a), 0.0, inside)
        # Bytes and words go through int32, whose conversion every processor has.
        through = dtype if info.bits >= 32 else dt.int32
        result = self.convert(self.truncate_to_int(inside, through), dtype)
        return result if exact else self.select(self.ge(a, limit), info.max, result)

    def _narrow_to_odd(self, a: Val) -> Val:
        """float64 to float32, towards zero, the last bit set when anything was dropped (von Neumann rounding)."""
        near = self._cast("fptrunc", a, dt.float32)
        back = self._cast("fpext", near, dt.float64)
        bits = self.bitcast(near, dt.uint32)
        # A result of too large a magnitude steps back to the next smaller one; infinity becomes the largest number.
        bits = self.select(self.gt(self.abs(back), self.abs(a)), self.sub(bits, 1), bits)
        inexact = self.and_(self.ne(back, a), self.eq(a, a))
        return self.bitcast(self.select(inexact, self.or_(bits, 1), bits), dt.float32)

    def _widen_half(self, a: Val) -> Val:
        if self.target.half:
            return self._cast("fpext", a, dt.float32)
        bits = self._cast("zext", self.bitcast(a, dt.uint16), dt.uint32)
        magnitude, sign = self.shl(self.and_(bits, 0x7FFF), 13), self.shl(self.and_(bits, 0x8000), 16)
        # As float32 bits the exponent is 112 too small; the product puts that right and normalises subnormals.
        finite = self.bitcast(self.mul(self.bitcast(magnitude, dt.float32), 2.0**112), dt.uint32)
        special = self.or_(magnitude, 0x7F800000)
        quiet = self.select(self.gt(magnitude, 0x7C00 << 13), self.or_(special, 0x400000), special)
        return self.bitcast(self.or_(self.select(self.lt(magnitude, 0x7C00 << 13), finite, quiet), sign), dt.float32)

    def _narrow_half(self, a: Val) -> Val:
        # Of constants LLVM may join it to a conversion from float64 before; x86 has only a library's function for that.
        joined = self._is_x86 and a.width == 1
        if self.target.half and not joined:
            return self._cast("fptrunc", a, dt.float16)
        bits = self.bitcast(a, dt.uint32)
        magnitude, sign = self.and_(bits, 0x7FFFFFFF), self.lshr(self.and_(bits, 0x80000000), 16)
        # Normal: add just under half a unit, plus one when the kept part is odd; a carry moves into the exponent.
        odd = self.and_(self.lshr(magnitude, 13), 1)
        normal = self.lshr(self.add(self.add(magnitude, odd), 0xFFF - (112 << 23)), 13)
        # Subnormal: beside 0.5 the unit in the last place of a float32 is that of float16's subnormals.
        beside = self.add(self.bitcast(magnitude, dt.float32), 0.5)
        subnormal = self.sub(self.bitcast(beside, dt.uint32), 0x3F000000)
        finite = self.select(self.lt(magnitude, 0x38800000), subnormal, normal)
        finite = self.select(self.ge(magnitude, 0x47800000), 0x7C00, finite)
        nan = self.or_(self.and_(self.lshr(magnitude, 13), 0x3FF), 0x7E00)
        result = self.or_(self.select(self.gt(magnitude, 0x7F800000), nan, finite), sign)
        return self.bitcast(self._cast("trunc", result, dt.uint16), dt.float16)

    def _widen_bfloat(self, a: Val) -> Val:
        bits = self._cast("zext", Val(a.ref, dt.uint16, a.width), dt.uint32)
        return self.bitcast(self.shl(bits, 16), dt.float32)

    def _narrow_bfloat(self, a: Val) -> Val:
        bits = self.bitcast(a, dt.uint32)
        odd = self.and_(self.lshr(bits, 16), 1)
        rounded = self.add(self.add(bits, odd), 0x7FFF)
        # Rounding could carry a NaN into infinity: keep its upper bits and make it quiet.
        result = self.lshr(self.select(self.is_nan(a), self.or_(bits, 0x400000), rounded), 16)
        return Val(self._cast("trunc", result, dt.uint16).ref, dt.bfloat16, a.width)

    # ---- checks ----

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

    def scale2(self, a: Val, exponent: Val) -> Val:
        """a * 2**exponent, rounded once, for |a| in [1/4, 4] and an integral float exponent.

        Exact up to overflow and gradual underflow.  AVX-512 has an instruction for it; elsewhere two products with
        powers of two, whose first is exact.  Exponents must lie within twice the dtype's range.
        """
        if self._is_x86 and self.target.masked and a.width * a.dtype.itemsize >= 16:
            return self._scalef(a, exponent)
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

    def _scalef(self, a: Val, exponent: Val) -> Val:
        bits = 8 * a.width * a.dtype.itemsize
        if bits > 512:
            half = a.width // 2
            low, high = range(half), range(half, a.width)
            parts = [self._scalef(self.shuffle(a, None, r), self.shuffle(exponent, None, r)) for r in (low, high)]
            return self.shuffle(parts[0], parts[1], range(a.width))
        name = f"@llvm.x86.avx512.mask.scalef.{'ps' if a.dtype == dt.float32 else 'pd'}.{bits}"
        vector, mask = type_text(a.dtype, a.width), f"i{max(8, a.width)}"
        # At full width the instruction also takes a rounding mode; 4 is the current one.
        mode_type, mode = (", i32", ", i32 4") if bits == 512 else ("", "")
        self.declare(f"declare {vector} {name}({vector}, {vector}, {vector}, {mask}{mode_type})")
        return self.assign(
            f"call {vector} {name}({vector} {a.ref}, {vector} {exponent.ref}, "
            f"{vector} zeroinitializer, {mask} -1{mode})",
            a.dtype,
            a.width,
        )

    @contextmanager
    def strict(self) -> Iterator[None]:
        """IEEE operations to the letter within, whatever ``fastmath`` says: for code that relies on roundings."""
        saved, self.fastmath = self.fastmath, False
        try:
            yield
        finally:
            self.fastmath = saved

    # ---- helpers ----

    def _like(self, a: Operand, like: Val) -> Val:
        return a if isinstance(a, Val) else self.const(a, like.dtype, like.width)

    def _pair(self, a: Operand, b: Operand) -> tuple[Val, Val]:
        if not isinstance(b, Val):
            return a, self.const(b, a.dtype, a.width)  # type: ignore[union-attr, return-value]
        if not isinstance(a, Val):
            return self.const(a, b.dtype, b.width), b
        return a, b

    def _binary(self, float_name: str, int_name: str, a: Operand, b: Operand) -> Val:
        a, b = self._pair(a, b)
        if dt.is_float(a.dtype):
            name = f"{float_name} {_FAST}" if self.fastmath else f"{float_name} "
        else:
            name = f"{int_name} "
        return self.assign(f"{name}{type_text(a.dtype, a.width)} {a.ref}, {b.ref}", a.dtype, a.width)

    def _compare(self, predicate: str, a: Operand, b: Operand) -> Val:
        a, b = self._pair(a, b)
        names = _COMPARE[predicate]
        if dt.is_float(a.dtype):
            name = f"fcmp {names[0]}"
        else:
            name = f"icmp {names[1 if dt.is_signed(a.dtype) else 2]}"
        return self.assign(f"{name} {type_text(a.dtype, a.width)} {a.ref}, {b.ref}", dt.bool_, a.width)

    def _extremum(self, floats: str, signed: str, unsigned: str, bools: str, a: Operand, b: Operand) -> Val:
        a, b = self._pair(a, b)
        if a.dtype == dt.bool_:
            return self._binary("", bools, a, b)
        if dt.is_float(a.dtype):
            return self._intrinsic(floats, a, b)
        return self._intrinsic(signed if dt.is_signed(a.dtype) else unsigned, a, b)

    def _intrinsic(self, name: str, *operands: Val) -> Val:
        """A call of ``llvm.name`` whose operands and result share one type."""
        first = operands[0]
        text = type_text(first.dtype, first.width)
        symbol = f"@llvm.{name}.{_mangle(first.dtype, first.width)}"
        self.declares.add(f"declare {text} {symbol}({', '.join([text] * len(operands))})")
        flags = _FAST if self.fastmath and dt.is_float(first.dtype) else ""
        arguments = ", ".join([f"{text} {v.ref}" for v in operands])
        return self.assign(f"call {flags}{text} {symbol}({arguments})", first.dtype, first.width)

    def _cast(self, name: str, a: Val, dtype: np.dtype) -> Val:
        return self.assign(
            f"{name} {type_text(a.dtype, a.width)} {a.ref} to {type_text(dtype, a.width)}", dtype, a.width
        )
