"""Constants, lanes, arithmetic and comparisons as LLVM IR.

Wherever an operand is expected beside a ``Val``, a Python number will do: it becomes a constant of the other operand's
dtype and width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from hybridflow.compiler.codegen.core.llvm_values import (
    LLVM,
    Number,
    Operand,
    Val,
    known_lanes,
    literal_text,
    mangle,
    mask_of,
    type_text,
)
from hybridflow.compiler.codegen.core.llvm_writer import Writer
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.target import Target

_COMPARE = {  # predicate: (float, signed, unsigned and bool)
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
    "not_lt": ("uge", "sge", "uge"),
}
# What fastmath allows: reassociation and contraction, but never "no NaNs" or "no infinities", whose results would be
# undefined for arguments that users do have.
_FAST = "reassoc contract afn arcp nsz "


class Arithmetic(Writer):
    """``width`` is the number of lanes of the values that are made from nothing (constants, iota); every other method
    takes the width of its operands.  ``mask`` is the active lanes of a tail, or None when all are active.
    ``fastmath`` permits reassociation and contraction; without it each method is one IEEE operation.
    """

    def __init__(self, target: Target, width: int = 1, fastmath: bool = False) -> None:
        super().__init__()
        self.target = target
        self.width = width
        self.fastmath = fastmath
        self.mask: Val | None = None
        self.is_rest = False  # whether what is written are the few vectors behind turns of several
        self.is_x86 = target.triple.startswith("x86_64")
        self._chosen: set[str] = set()  # values that were chosen lane by lane

    @contextmanager
    def strict(self) -> Iterator[None]:
        """IEEE operations to the letter within, whatever ``fastmath`` says: for code that relies on roundings."""
        saved, self.fastmath = self.fastmath, False
        try:
            yield
        finally:
            self.fastmath = saved

    # ---- values from nothing ----

    def const(self, value: Number | np.generic, dtype: np.dtype, width: int | None = None) -> Val:
        """A constant in every lane."""
        width = self.width if width is None else width
        text = literal_text(value, dtype)
        return Val(text if width == 1 else f"splat ({LLVM[dtype]} {text})", dtype, width)

    def zero(self, dtype: np.dtype, width: int | None = None) -> Val:
        return self.const(0, dtype, width)

    def iota(self, dtype: np.dtype = dt.int64) -> Val:
        """0, 1, 2 ... along the lanes."""
        return self.const(0, dtype) if self.width == 1 else self.numbers(range(self.width), dtype)

    def numbers(self, values: Sequence[int], dtype: np.dtype) -> Val:
        """A vector of constant numbers."""
        scalar = LLVM[dtype]
        lanes = ", ".join(f"{scalar} {literal_text(i, dtype)}" for i in values)
        return Val(f"<{lanes}>", dtype, len(values))

    def splat(self, scalar: Val) -> Val:
        """A scalar in every lane."""
        if self.width == 1 or scalar.width != 1:
            return scalar
        vector, element = type_text(scalar.dtype, self.width), type_text(scalar.dtype)
        one = self.assign(f"insertelement {vector} poison, {element} {scalar.ref}, i64 0", scalar.dtype, self.width)
        indices = f"<{self.width} x i32> zeroinitializer"
        return self.assign(f"shufflevector {vector} {one.ref}, {vector} poison, {indices}", scalar.dtype, self.width)

    # ---- lanes ----

    def extract(self, value: Val, lane: int | Val) -> Val:
        """One lane as a scalar."""
        if value.width == 1:
            return value
        ref = lane if isinstance(lane, int) else lane.ref
        vector = type_text(value.dtype, value.width)
        return self.assign(f"extractelement {vector} {value.ref}, i64 {ref}", value.dtype, 1)

    def vector_of(self, scalars: Sequence[Val]) -> Val:
        """Scalars as the lanes of one vector."""
        whole = Val("poison", scalars[0].dtype, len(scalars))
        for lane, scalar in enumerate(scalars):
            whole = self.insert(whole, scalar, lane)
        return whole

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
        if dt.is_bool(a.dtype) and a.is_constant and (b is None or b.is_constant):
            known = [*(known_lanes(a) or ()), *(known_lanes(b) or () if b is not None else ())]
            return mask_of([known[lane] for lane in lanes])
        vector = type_text(a.dtype, a.width)
        indices = ", ".join(f"i32 {lane}" for lane in lanes)
        other = "poison" if b is None else b.ref
        return self.assign(
            f"shufflevector {vector} {a.ref}, {vector} {other}, <{len(lanes)} x i32> <{indices}>", a.dtype, len(lanes)
        )

    def opaque(self, values: Sequence[Val]) -> list[Val]:
        """The same values, as instructions that the code generator does not look behind.

        Between the rounds of a network of shuffles: it would try for each shuffle whether it can be one with all those
        before it, which takes longer than everything else that is done with them.  These networks are written in as few
        shuffles as there can be.
        """
        return [v if v.width == 1 or dt.is_bool(v.dtype) else self._opaque(v) for v in values]

    def _opaque(self, value: Val) -> Val:
        size = value.dtype.itemsize * value.width
        text, scalar = type_text(value.dtype, value.width), type_text(value.dtype)
        ref = value.ref
        if scalar in ("float", "double"):
            fenced, name = text, f"v{value.width}f{8 * value.dtype.itemsize}"
        else:  # there are fences for floats alone
            if size % 4:
                return value
            fenced, name = f"<{size // 4} x float>", f"v{size // 4}f32"
            ref = self.assign(f"bitcast {text} {ref} to {fenced}", dt.float32, size // 4).ref
        self.declares.add(f"declare {fenced} @llvm.arithmetic.fence.{name}({fenced})")
        one = self.assign(f"call {fenced} @llvm.arithmetic.fence.{name}({fenced} {ref})", value.dtype, value.width)
        if fenced == text:
            return one
        return self.assign(f"bitcast {fenced} {one.ref} to {text}", value.dtype, value.width)

    def reverse(self, value: Val) -> Val:
        """The lanes in the opposite order."""
        return value if value.width == 1 else self.shuffle(value, None, range(value.width - 1, -1, -1))

    def every(self, a: Val, step: int) -> Val:
        """Each ``step``-th lane from the first on, where that are two or more."""
        return self.shuffle(a, None, range(0, a.width, step))

    def interleaved(self, a: Val, b: Val) -> Val:
        """The lanes of two vectors in turn."""
        return self.shuffle(a, b, [lane for pair in zip(range(a.width), range(a.width, 2 * a.width)) for lane in pair])

    def halves(self, a: Val) -> Val:
        """uint64 lanes as twice as many uint32 lanes, low halves first: as they lie in memory."""
        width = 2 * a.width
        return self.assign(
            f"bitcast {type_text(a.dtype, a.width)} {a.ref} to {type_text(dt.uint32, width)}", dt.uint32, width
        )

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
        text, name = type_text(a.dtype, a.width), f"@llvm.abs.{mangle(a.dtype, a.width)}"
        self.declare(f"declare {text} {name}({text}, i1)")
        return self.assign(f"call {text} {name}({text} {a.ref}, i1 false)", a.dtype, a.width)

    def fma(self, a: Operand, b: Operand, c: Operand) -> Val:
        """a * b + c, rounded once on every target."""
        like = next(v for v in (a, b, c) if isinstance(v, Val))
        return self._intrinsic("fma", self._like(a, like), self._like(b, like), self._like(c, like))

    def mul_where(self, kept: Val, a: Val, b: Val) -> Val:
        """a * b, or 0 in lanes where ``kept`` does not hold, in which nothing is multiplied or underflows."""
        inside = self.select(kept, a, 0.0)
        return self.mul(inside, inside if a == b else self.select(kept, b, 0.0))

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

    def with_overflow(self, name: str, a: Operand, b: Operand) -> tuple[Val, Val]:
        """``add``, ``sub`` or ``mul`` of signed integers, and whether the exact result needs more bits."""
        a, b = self._pair(a, b)
        text, flags = type_text(a.dtype, a.width), type_text(dt.bool_, a.width)
        symbol = f"@llvm.s{name}.with.overflow.{mangle(a.dtype, a.width)}"
        both = f"{{ {text}, {flags} }}"
        self.declare(f"declare {both} {symbol}({text}, {text})")
        pair = self.fresh()
        self.line(f"{pair} = call {both} {symbol}({text} {a.ref}, {text} {b.ref})")
        result = self.assign(f"extractvalue {both} {pair}, 0", a.dtype, a.width)
        return result, self.assign(f"extractvalue {both} {pair}, 1", dt.bool_, a.width)

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
        if b.integer or self.mask is None or self.mask.width != b.width:
            return b
        return self.select(self.mask, b, 1)

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

    def not_lt(self, a: Operand, b: Operand) -> Val:
        """Not less, and so true for NaN: one instruction, where ``not_`` of a comparison can take two."""
        return self._compare("not_lt", a, b)

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
        chosen = self.assign(
            f"select {type_text(dt.bool_, condition.width)} {condition.ref}, {text} {a.ref}, {text} {b.ref}",
            a.dtype,
            a.width,
        )
        if condition.width > 1:
            self._chosen.add(chosen.ref)
        return chosen

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
            return self._float_extremum(floats, a, b)
        return self._intrinsic(signed if dt.is_signed(a.dtype) else unsigned, a, b)

    def _float_extremum(self, name: str, a: Val, b: Val) -> Val:
        return self._intrinsic(name, a, b)

    def _intrinsic(self, name: str, *operands: Val) -> Val:
        """A call of ``llvm.name`` whose operands and result share one type."""
        first = operands[0]
        text = type_text(first.dtype, first.width)
        symbol = f"@llvm.{name}.{mangle(first.dtype, first.width)}"
        self.declares.add(f"declare {text} {symbol}({', '.join([text] * len(operands))})")
        flags = _FAST if self.fastmath and dt.is_float(first.dtype) else ""
        arguments = ", ".join([f"{text} {v.ref}" for v in operands])
        return self.assign(f"call {flags}{text} {symbol}({arguments})", first.dtype, first.width)

    def _cast(self, name: str, a: Val, dtype: np.dtype) -> Val:
        return self.assign(
            f"{name} {type_text(a.dtype, a.width)} {a.ref} to {type_text(dtype, a.width)}", dtype, a.width
        )
