"""How factors of products are packed, and what multiplies them: the instructions that a target has, and what stands in
for them.  Whatever is chosen, the bits are those of ``ops/evaluation_order.py``: sums of integers wrap, in any order.

Some instructions take several neighbours along the depth at once, from 4 bytes that lie side by side: a *cell*.

EACH          one multiply-add for each element
RUNS          bfloat16 widened to float32, by an fma and a flush of denormal sums
UNFLUSHED     the same where no sum can be denormal
WORDS         pairs of 16-bit integers (pmaddwd): also of smaller ones, and of sums that are cut to 16 bits
SIGNED_BYTES  four bytes, the first factor's taken for unsigned (vpdpbusd): 128 is added to each, and 128 times the sums
              of the second factor are subtracted
TILES         four bytes, or pairs of bfloat16, in tile registers (tdpbssd, tdpbf16ps): see ``amx_micro_kernel.py``
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val, type_text
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops.evaluation_order import K_BLOCK, RUN, by_interleaved_runs
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass

CELL = 4  # bytes
_LEAST_WIDTH = 4  # cells that an instruction takes

_NORMAL = 2.0**-126  # the least float32 that is not denormal
_BIAS, _MANTISSA = 127, 23  # of float32
_LAST_BIT = 7  # of a bfloat16 in [1, 2) is 2**-7

MultiplyKind = Enum("MultiplyKind", "EACH RUNS UNFLUSHED WORDS SIGNED_BYTES TILES")


@dataclass(frozen=True)
class PackedFormat:
    """``packed`` is the dtype of packed elements, of which ``group`` neighbours along the depth lie side by side;
    ``sums`` that of their sums."""

    multiply: MultiplyKind
    packed: np.dtype
    sums: np.dtype
    group: int = 1

    @property
    def cell(self) -> np.dtype:
        """What a packed group is loaded as."""
        return self.packed if self.group == 1 else dt.int32

    @property
    def least_width(self) -> int:
        return 1 if self.group == 1 else _LEAST_WIDTH

    @property
    def interleaves_sums(self) -> bool:
        """Whether single elements go through the depth in runs, of which even and odd ones are summed apart."""
        return self.multiply in (MultiplyKind.RUNS, MultiplyKind.UNFLUSHED)

    @property
    def accumulators(self) -> int:
        """Sums of each element of the product that are open at once."""
        return 2 if self.interleaves_sums else 1

    @property
    def block(self) -> int:
        """Elements along the depth that are packed together: as many cells as others have elements."""
        return K_BLOCK * self.group

    @property
    def least_block(self) -> int:
        """Elements along the depth that may be summed up alone.  Sums of integers may go in any order."""
        return K_BLOCK if dt.is_float(self.sums) else self.block

    def cells(self, c: KernelBuilder, depth: Ref) -> Ref:
        return c.div(c.add(depth, self.group - 1), self.group)

    @property
    def unflushed(self) -> PackedFormat:
        return replace(self, multiply=MultiplyKind.UNFLUSHED)


def packed_format_of(target: Target, factors: np.dtype, result: np.dtype) -> PackedFormat:
    """The form of products of that dtype whose sums are rounded, or cut, to ``result``."""
    sums = dt.compute_dtype(result)
    x86 = target.kind == "cpu" and target.triple.startswith("x86_64")
    if by_interleaved_runs(factors, sums):
        if x86 and target.has("amx-bf16"):
            return PackedFormat(MultiplyKind.TILES, dt.bfloat16, sums, 2)
        return PackedFormat(MultiplyKind.RUNS, sums, sums)
    if x86 and not dt.is_float(sums) and sums.itemsize <= 4:
        bytes_ = factors == dt.int8 or result.itemsize == 1
        if bytes_ and target.has("amx-int8"):
            return PackedFormat(MultiplyKind.TILES, dt.int8, dt.int32, 4)
        if bytes_ and target.has("avx512vnni" if target.vector_bits == 512 else "avxvnni"):
            return PackedFormat(MultiplyKind.SIGNED_BYTES, dt.int8, dt.int32, 4)
        if dt.embeds(factors, dt.int16) or result.itemsize <= 2:
            return PackedFormat(MultiplyKind.WORDS, dt.int16, dt.int32, 2)
    return PackedFormat(MultiplyKind.EACH, sums, sums)


def each_of(form: PackedFormat) -> PackedFormat:
    """The form of the same sums, element by element: of integers, whose sums may go in any order."""
    if form.multiply is MultiplyKind.EACH:
        return form
    assert not dt.is_float(form.sums)
    return PackedFormat(MultiplyKind.EACH, form.sums, form.sums)


def words_of(form: PackedFormat) -> PackedFormat | None:
    """The form of the same sums by pairs of 16 bits; None where elements are not of so few, or go by themselves."""
    if form.multiply is MultiplyKind.EACH:
        return None
    return PackedFormat(MultiplyKind.WORDS, dt.int16, dt.int32, 2)


def pair_of_words(e: Emitter, first: Val, second: Val) -> Val:
    """Two integers, each cut to 16 bits, side by side."""
    return e.or_(e.and_(first, 0xFFFF), e.shl(second, 16))


def pairs_of_words(e: Emitter, first: Val, second: Val) -> Val:
    """The same of each lane, in int32.  Bytes are put side by side before they are widened: one shuffle for both."""
    if first.dtype.itemsize > dt.int16.itemsize:
        first, second = e.convert(first, dt.int16), e.convert(second, dt.int16)
    return words_of_pairs(e, e.interleaved(first, second))


def words_of_pairs(e: Emitter, pairs: Val) -> Val:
    """Elements side by side as pairs of words, in int32."""
    return e.joined_words(e.convert(pairs, dt.int16), dt.int32)


def words_in_place(form: PackedFormat, dtype: np.dtype, depth: Extent) -> bool:
    """Whether the micro-kernel may make pairs of words of a second factor that is not packed: all of its lines are
    there, and take no more room than packed ones."""
    if form.multiply is not MultiplyKind.WORDS or not isinstance(depth, int) or depth % form.group:
        return False
    return dt.is_integer(dtype) and dtype.itemsize <= form.packed.itemsize


def factor(e: Emitter, value: Val, form: PackedFormat, first: bool) -> Val:
    """Elements of the first or the second factor as they are packed."""
    value = e.convert(value, form.packed)
    if form.interleaves_sums:
        return _flush_subnormals(e, value)
    return e.xor(value, -128) if first and form.multiply is MultiplyKind.SIGNED_BYTES else value


Add = Callable[[Ref, int, list[list[Val]], Sequence[Val]], Sequence[Val]]
"""``add(first, count, chains, positions)`` adds cells from the first, which is at ``positions``, each to the sums of
one of the chains, by turns, and returns the positions behind them."""


def sum_depth(
    c: KernelBuilder,
    form: PackedFormat,
    begin: Ref,
    end: Ref,
    zeros: Sequence[Val],
    at: Sequence[Val],
    add: Add,
    together: int = 1,
    exact: bool = False,
) -> list[Val]:
    """Sums over cells [begin, end) of the depth, where a block begins, from ``zeros``; about ``together`` in a turn,
    ``exact`` promises that these leave no rest.  ``at`` are the positions of the first."""
    if not form.interleaves_sums:
        return _chains(c, begin, end, [zeros], at, add, together, exact)[0][0]
    count = len(zeros)
    with c.loop(begin, end, RUN, [*zeros, *at]) as run:
        last = c.min(c.add(run.index, RUN), end)
        (even, odd), positions = _chains(c, run.index, last, [zeros, zeros], run.carried[count:], add, 2)
        run.next = [*(join_block_sums(c.e, form, *of) for of in zip(run.carried, even, odd)), *positions]
    return run.carried[:count]


def _chains(
    c: KernelBuilder,
    begin: Ref,
    end: Ref,
    zeros: Sequence[Sequence[Val]],
    positions: Sequence[Val],
    add: Add,
    together: int,
    exact: bool = False,
) -> tuple[list[list[Val]], Sequence[Val]]:
    """The sums of each chain over [begin, end), and the positions behind it; ``together`` is a multiple of chains."""
    chains, count = [list(of) for of in zeros], len(zeros[0])
    if exact or together == 1:
        loops = [(begin, end, together)]
    else:
        whole = c.add(begin, c.mul(c.div(c.sub(end, begin), together), together))
        loops = [(begin, whole, together), (whole, end, 1)]
    for start, stop, step in loops:
        with c.loop(start, stop, step, [*(one for of in chains for one in of), *positions]) as iteration:
            inside = [iteration.carried[i * count : (i + 1) * count] for i in range(len(chains))]
            after = add(iteration.index, step, inside, iteration.carried[count * len(chains) :])
            iteration.next = [*(one for of in inside for one in of), *after]
        chains = [iteration.carried[i * count : (i + 1) * count] for i in range(len(chains))]
        positions = iteration.carried[count * len(chains) :]
    return chains, positions


def join_block_sums(e: Emitter, form: PackedFormat, total: Val, even: Val, odd: Val) -> Val:
    """The sum of a block with that of a run."""
    with e.strict():
        run = e.add(even, odd)
        if form.multiply is MultiplyKind.UNFLUSHED:
            return e.add(total, run)
        return _flush_subnormals(e, e.add(total, _flush_subnormals(e, run)))  # sums that are denormal are exact


def _flush_subnormals(e: Emitter, value: Val) -> Val:
    return e.select(e.lt(e.abs(value), _NORMAL), 0, value)


def multiply_add(e: Emitter, form: PackedFormat, a: Val, b: Val, total: Val) -> Val:
    """One step of a sum of products, over a cell of each factor: fused for floats; integers wrap."""
    if form.multiply is MultiplyKind.SIGNED_BYTES:
        return _instruction(e, "avx512.vpdpbusd", [total, a, b], ["", "i8", "i8"])
    if form.multiply is MultiplyKind.WORDS:
        name = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}[a.width]
        return e.add(_instruction(e, name, [a, b], ["i16", "i16"], dt.int32, suffix=False), total)
    if not dt.is_float(total.dtype):
        return e.add(e.mul(a, b), total)
    if form.multiply is MultiplyKind.EACH:
        return e.fma(a, b, total)
    with e.strict():
        if form.multiply is MultiplyKind.UNFLUSHED:
            return e.fma(a, b, total)
        # Whether a sum is denormal is asked after rounding as if exponents had no bounds: where it may be, all terms
        # are small enough to be scaled up.
        up = 2.0**32
        scaled = e.fma(e.mul(a, up), e.mul(b, up), e.mul(total, up * up))
        return e.select(e.lt(e.abs(scaled), _NORMAL * up * up), 0, e.fma(a, b, total))


def corrections(e: Emitter, form: PackedFormat, b: Val, total: Val) -> Val:
    """One step of what has to be subtracted from all sums of a column, over a cell of the second factor."""
    # As unsigned bytes that is 128 four times.
    return multiply_add(e, form, e.const(-0x7F7F7F80, dt.int32), b, total)


def _instruction(
    e: Emitter,
    name: str,
    operands: Sequence[Val],
    elements: Sequence[str],
    dtype: np.dtype | None = None,
    suffix: bool = True,
) -> Val:
    """A call of an x86 instruction.  Each operand is 4 bytes a lane, of ``elements``, or as it is where that is ""."""
    width = operands[0].width
    size = {"i16": 2, "i8": 1}
    types, arguments = [], []
    for value, element in zip(operands, elements):
        packed = wanted = type_text(value.dtype, width)
        ref = value.ref
        if element:
            wanted = f"<{width * CELL // size[element]} x {element}>"
            ref = e.fresh("b")
            e.line(f"{ref} = bitcast {packed} {value.ref} to {wanted}")
        types.append(wanted)
        arguments.append(f"{wanted} {ref}")
    result = operands[0].dtype if dtype is None else dtype
    symbol = f"@llvm.x86.{name}" + (f".{32 * width}" if suffix else "")
    e.declare(f"declare {type_text(result, width)} {symbol}({', '.join(types)})")
    return e.assign(f"call {type_text(result, width)} {symbol}({', '.join(arguments)})", result, width)


# ---- where no sum can be denormal


def magnitudes(e: Emitter, values: Val) -> Val:
    """Packed float32 as numbers that compare like their magnitudes, but that zeros are the largest of all."""
    return e.sub(e.shl(e.bitcast(values, dt.uint32), 1), 1)


def never_denormal(e: Emitter, least_a: Val, least_b: Val) -> str:
    """Whether no sum of products of bfloat16 can be denormal, given the least magnitudes of both factors.

    All products, hence all their sums, rounded or not, are multiples of the product of the last bits of the least ones.
    """
    exponents = e.add(*(e.lshr(least, _MANTISSA + 1) for least in (least_a, least_b)))
    return e.ge(exponents, 2 * _BIAS - (_BIAS - 1) + 2 * _LAST_BIT).ref
