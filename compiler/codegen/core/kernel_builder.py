"""Loops, branches and address arithmetic over an emitter, for kernels that are written by hand.

Positions are ``Ref``: a Python int where the number is known when compiling, else the name of an i64 value.
Arithmetic on refs folds what is known, so that static shapes give short code and symbolic ones need no other path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Union

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.llvm_values import Val, known_lanes, mask_of, type_text
from hybridflow.compiler.ir.dtypes import DType, int32, int64
from hybridflow.compiler.ir.extents import Extent, dividend, never_negative, products_of
from hybridflow.compiler.ir.polynomial import Name, Quotient
from hybridflow.compiler.target import Target

Ref = Union[int, str]

MOST_LANES = 16  # of bytes a register holds 64, but so many lanes only bloat the code of anything but copies


@dataclass
class Loop:
    """An open loop: its counter, and the values carried from one turn to the next.

    The body sets ``next`` where there are carried values; after the loop ``carried`` holds the final ones.
    """

    index: Ref
    carried: list[Val] = field(default_factory=list)
    next: Sequence[Val] = ()


def lanes_for(target: Target, dtype: DType, extent: Extent) -> int:
    """Lanes for vectors of ``dtype`` along an axis of ``extent`` elements: no more than it can fill."""
    width = min(target.lanes(8 * dtype.itemsize), MOST_LANES)
    while isinstance(extent, int) and width // 2 >= max(extent, 1):
        width //= 2
    return width


def merged_extent(extents: Sequence[Extent]) -> Extent:
    """The product of extents where it is known, else some symbolic one of them."""
    known = 1
    for extent in extents:
        if not isinstance(extent, int):
            return extent
        known *= extent
    return known


class KernelBuilder:
    """Structured code on top of emitter ``e``; ``dims`` names the symbolic extents in the order of %dims."""

    def __init__(self, e: Emitter, dims: Sequence[str] = ()) -> None:
        self.e = e
        self._symbols: dict[str, str] = {}
        for k, name in enumerate(dims):
            address = self.at("%dims", k, 8)
            self._symbols[name] = e.fresh("n")
            e.line(f"{self._symbols[name]} = load i64, ptr {address}, align 8")

    def let(self, symbol: str, value: str) -> None:
        """Say what an extent is that %dims does not have."""
        self._symbols[symbol] = value

    def extent(self, extent: Extent) -> Ref:
        """The value of an extent: the one place where its arithmetic becomes code."""
        total: Ref = 0
        for factor, names in products_of(extent):
            part: Ref = factor
            for name in names:
                part = self.mul(part, self.name(name))
            total = self.add(total, part)
        return total

    def name(self, name: Name) -> Ref:
        """The value of a symbol, or of a quotient of extents."""
        if isinstance(name, str):
            return self._symbols[name]
        return self._floor(name)

    def _floor(self, name: Quotient) -> Ref:
        divided = dividend(name)
        value, divisor = self.extent(divided), self.extent(name.divisor)
        if never_negative(divided):
            return self.div(value, divisor)
        toward_zero = self._op(f"sdiv i64 {value}, {divisor}")
        remainder = self.sub(value, self.mul(toward_zero, divisor))
        return self.choose(self.compare("slt", remainder, 0), self.sub(toward_zero, 1), toward_zero)

    def product(self, extents: Sequence[Extent]) -> Ref:
        total: Ref = 1
        for extent in extents:
            total = self.mul(total, self.extent(extent))
        return total

    # ---- i64 arithmetic

    def _op(self, text: str) -> str:
        """What an instruction without effects computes; a block that has it already has it once."""
        known = self.e.known
        name = known.get(text)
        if name is None:
            name = known[text] = self.e.fresh("i")
            self.e.line(f"{name} = {text}")
        return name

    def add(self, a: Ref, b: Ref) -> Ref:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self._op(f"add nsw i64 {a}, {b}")

    def sub(self, a: Ref, b: Ref) -> Ref:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self._op(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Ref, b: Ref) -> Ref:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        return a if b == 1 else self._op(f"mul nsw i64 {a}, {b}")

    def div(self, a: Ref, b: Ref) -> Ref:
        """Quotient of non-negative numbers; the caller sees to it that b is not 0."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return a if b == 1 else self._op(f"udiv i64 {a}, {b}")

    def rem(self, a: Ref, b: Ref) -> Ref:
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        return 0 if b == 1 else self._op(f"urem i64 {a}, {b}")

    def min(self, a: Ref, b: Ref) -> Ref:
        return self._extremum("smin", a, b) if not (isinstance(a, int) and isinstance(b, int)) else min(a, b)

    def max(self, a: Ref, b: Ref) -> Ref:
        return self._extremum("smax", a, b) if not (isinstance(a, int) and isinstance(b, int)) else max(a, b)

    def _extremum(self, name: str, a: Ref, b: Ref) -> Ref:
        self.e.declare(f"declare i64 @llvm.{name}.i64(i64, i64)")
        return self.opaque(self._op(f"call i64 @llvm.{name}.i64(i64 {a}, i64 {b})"))

    def opaque(self, ref: Ref) -> Ref:
        """The same number, which to LLVM's analysis of loops is just some number.

        Seen through, nested minima as bounds and addresses, or many addresses with terms in common, grow into
        expressions that take it longer than all the rest of code generation.
        """
        return ref if isinstance(ref, int) else self._op(f"freeze i64 {ref}")

    def choose(self, cond: str | bool, a: Ref, b: Ref) -> Ref:
        if isinstance(cond, bool):
            return a if cond else b
        return a if a == b else self._op(f"select i1 {cond}, i64 {a}, i64 {b}")

    def compare(self, predicate: str, a: Ref, b: Ref) -> str | bool:
        """``predicate`` is one of eq ne slt sle sgt sge ult; the answer is a Python bool where it is known."""
        if isinstance(a, int) and isinstance(b, int):
            return {"eq": a == b, "ne": a != b, "slt": a < b, "sle": a <= b, "sgt": a > b, "sge": a >= b}[predicate]
        return self._op(f"icmp {predicate} i64 {a}, {b}")

    def both(self, a: str | bool, b: str | bool) -> str | bool:
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        return self._op(f"and i1 {a}, {b}")

    def either(self, a: str | bool, b: str | bool) -> str | bool:
        if isinstance(a, bool):
            return True if a else b
        if isinstance(b, bool):
            return True if b else a
        return self._op(f"or i1 {a}, {b}")

    def negation(self, a: str | bool) -> str | bool:
        return not a if isinstance(a, bool) else self._op(f"xor i1 {a}, true")

    def value(self, ref: Ref) -> Val:
        """A ref as an emitter value."""
        return Val(str(ref), int64, 1)

    # ---- memory

    def at(self, base: str, position: Ref, itemsize: int) -> str:
        """The address ``position`` items after ``base``."""
        return base if position == 0 else self._op(f"getelementptr i{8 * itemsize}, ptr {base}, i64 {position}")

    def choose_pointer(self, cond: str | bool, a: str, b: str) -> str:
        if isinstance(cond, bool):
            return a if cond else b
        return self._op(f"select i1 {cond}, ptr {a}, ptr {b}")

    def pointers_differ(self, a: str, b: str) -> str:
        """Whether two addresses differ."""
        return self._op(f"icmp ne ptr {a}, {b}")

    def multiples(self, pointers: Sequence[str], of: int) -> str | bool:
        """Whether addresses are multiples of a power of two."""
        bits: str | None = None
        for pointer in pointers:
            address = self._op(f"ptrtoint ptr {pointer} to i64")
            bits = address if bits is None else self._op(f"or i64 {bits}, {address}")
        return True if bits is None else self.compare("eq", self._op(f"and i64 {bits}, {of - 1}"), 0)

    @contextmanager
    def width(self, width: int) -> Iterator[None]:
        """Emit with another vector width for a while."""
        before, self.e.width = self.e.width, width
        try:
            yield
        finally:
            self.e.width = before

    # ---- control flow

    @contextmanager
    def loop(
        self, begin: Ref, end: Ref, step: Ref = 1, carry: Sequence[Val] = (), as_written: bool = True
    ) -> Iterator[Loop]:
        """``for index in range(begin, end, step)``; where there is known to be at most one turn, no loop is written.

        ``as_written``: addresses are computed as the body says.  Otherwise LLVM looks for sums that take the place of
        multiples of the index.  That is up to half of the time of compiling a body with many addresses, and makes some
        of them slower.  It pays for short loops that are run through over and over.
        """
        if isinstance(begin, int) and isinstance(end, int) and isinstance(step, int) and end - begin <= step:
            with self._straight(begin, end > begin, carry) as loop:
                yield loop
        else:
            with self._iterations(begin, end, step, carry, as_written) as loop:
                yield loop

    @contextmanager
    def _straight(self, index: int, taken: bool, carry: Sequence[Val]) -> Iterator[Loop]:
        """The one turn of a loop; or none: what its body writes is dropped."""
        loop = Loop(index, list(carry))
        with self._if_known(taken):
            yield loop
        if taken:
            loop.carried = list(loop.next)

    @contextmanager
    def _if_known(self, taken: bool) -> Iterator[None]:
        """Code that is reached in any case, or in none."""
        e = self.e
        written, block = len(e.lines), e.block
        yield
        if not taken:
            del e.lines[written:]
            e.block = block
            e.known.clear()  # some of it is what was dropped

    @contextmanager
    def _iterations(self, begin: Ref, end: Ref, step: Ref, carry: Sequence[Val], as_written: bool) -> Iterator[Loop]:
        e = self.e
        head, body, latch, done = (e.new_label(hint) for hint in ("head", "body", "latch", "done"))
        before = e.block
        index = e.fresh("i")
        loop = Loop(index, [Val(e.fresh("c"), v.dtype, v.width) for v in carry])
        following = [e.fresh("c") for _ in carry]
        advanced = e.fresh("i")
        e.line(f"br label %{head}")
        e.label(head)
        e.line(f"{index} = phi i64 [ {begin}, %{before} ], [ {advanced}, %{latch} ]")
        for inside, start, name in zip(loop.carried, carry, following):
            kind = type_text(inside.dtype, inside.width)
            e.line(f"{inside.ref} = phi {kind} [ {start.ref}, %{before} ], [ {name}, %{latch} ]")
        more = self.compare("slt", index, end)
        e.line(f"br i1 {more}, label %{body}, label %{done}")
        e.label(body)
        yield loop
        last = e.block
        e.line(f"br label %{latch}")
        e.label(latch)
        for name, value in zip(following, loop.next, strict=True):
            e.line(f"{name} = phi {type_text(value.dtype, value.width)} [ {value.ref}, %{last} ]")
        if as_written and e.target.kind != "cuda":
            e.line(f"{advanced} = freeze i64 {self._op(f'add nsw i64 {index}, {step}')}")  # see ``opaque``
        else:
            e.line(f"{advanced} = add nsw i64 {index}, {step}")
        e.line(f"br label %{head}")
        e.label(done)

    @contextmanager
    def when(self, cond: str | bool) -> Iterator[None]:
        """``if cond``; where the condition is known there is no branch, and no code that it would never reach."""
        if isinstance(cond, bool):
            with self._if_known(cond):
                yield
            return
        e = self.e
        inside, done = e.new_label("then"), e.new_label("endif")
        e.line(f"br i1 {cond}, label %{inside}, label %{done}")
        e.label(inside)
        yield
        e.line(f"br label %{done}")
        e.label(done)

    def either_way(self, condition: str | bool, yes: Callable[[], list[Val]], no: Callable[[], list[Val]]) -> list[Val]:
        """What one of two pieces of code computes: ``yes`` where the condition holds."""
        if isinstance(condition, bool):
            return yes() if condition else no()
        return self.e.either_way(condition, yes, no)

    def lanes_below(self, count: Ref) -> Val:
        """The mask of the first ``count`` lanes."""
        e = self.e
        if isinstance(count, int):
            return mask_of([lane < count for lane in range(e.width)])
        return e.lt(e.iota(int32), e.splat(e.convert(self.value(self.min(count, e.width)), int32)))

    def bits_of(self, mask: Val) -> Ref:
        """A mask of up to 64 lanes as a number, lane 0 in its lowest bit."""
        width, bits = mask.width, mask.ref
        if width > 1:
            bits = self.e.fresh("m")
            self.e.line(f"{bits} = bitcast <{width} x i1> {mask.ref} to i{width}")
        return bits if width == 64 else self._op(f"zext i{width} {bits} to i64")

    def lanes_of(self, mask: Val) -> Ref:
        """How many lanes a mask has."""
        known = known_lanes(mask)
        if known is not None:
            return sum(known)
        bits = self.bits_of(mask)
        self.e.declare("declare i64 @llvm.ctpop.i64(i64)")
        return self._op(f"call i64 @llvm.ctpop.i64(i64 {bits})")

    def vector_loop(
        self,
        begin: Ref,
        end: Ref,
        width: int,
        body: Callable[[Ref, Val | None], None],
        exact: bool = False,
        rest_width: int | None = None,
        exact_rest: bool = False,
        halves: bool = False,
        masks: bool = False,
    ) -> None:
        """``body(index, mask)`` at vectors of ``width`` elements, and for the rest at masked vectors of ``rest_width``
        (``width`` unless given); or element by element where masks are dear, unless ``masks`` asks for them.  The
        emitter's width and mask are those of the vector.  ``exact`` promises that there is no rest, ``exact_rest`` that
        vectors of ``rest_width`` fill it; ``halves``, that the body may have vectors of any power of two, of which a
        rest of known length needs few.
        """
        e = self.e
        if exact and not (isinstance(begin, int) and isinstance(end, int)):
            with self.loop(begin, end, width) as at, self.width(width):
                body(at.index, None)
            return
        count = self.div(self.sub(end, begin), width)
        whole = self.add(begin, self.mul(count, width))
        if count == 1:
            with self.width(width):
                body(begin, None)
        elif count != 0:
            with self.loop(begin, whole, width) as at, self.width(width):
                body(at.index, None)
        if whole == end:
            return
        if rest_width is not None and exact_rest:
            with self.loop(whole, end, rest_width) as at, self._remainder(rest_width):
                body(at.index, None)
        elif not (masks or e.target.masked):
            if rest_width is not None and rest_width < width:
                vectors = self.mul(self.div(self.sub(end, whole), rest_width), rest_width)
                whole, begin = self.add(whole, vectors), whole
                with self.loop(begin, whole, rest_width) as at, self._remainder(rest_width):
                    body(at.index, None)
            if halves and isinstance(whole, int) and isinstance(end, int):
                self._in_halves(whole, end, body)
                return
            with self.loop(whole, end) as at, self._remainder(1):
                body(at.index, None)
        elif rest_width is not None and rest_width < width:
            with self.loop(whole, end, rest_width) as at, self.width(rest_width):
                self._emit_masked(at.index, end, body)
        else:
            with self.when(self.compare("slt", whole, end)), self.width(width):
                self._emit_masked(whole, end, body)

    def _in_halves(self, begin: int, end: int, body: Callable[[Ref, Val | None], None]) -> None:
        """``body`` for a rest whose length is known: at half a vector, at half of that, and so on."""
        while begin < end:
            width = 1 << (end - begin).bit_length() - 1
            with self._remainder(width):
                body(begin, None)
            begin += width

    @contextmanager
    def _remainder(self, width: int) -> Iterator[None]:
        """Write the few vectors behind turns of several."""
        with self.width(width):
            self.e.is_rest = True
            yield
            self.e.is_rest = False

    def _emit_masked(self, index: Ref, end: Ref, body: Callable[[Ref, Val | None], None]) -> None:
        e = self.e
        e.mask = self.lanes_below(self.sub(end, index))
        body(index, e.mask)
        e.mask = None

    @contextmanager
    def spans(self, begin: Ref, end: Ref, inner: Ref, as_written: bool = True) -> Iterator[tuple[Ref, Ref, Ref]]:
        """Walk the units [begin, end) of a row-major grid whose rows have ``inner`` units: for each row that the range
        touches, (row, first, last) with the part [first, last) of it that lies inside.

        ``end > begin`` implies that ``inner`` is not 0, which keeps the divisions defined.
        """
        if inner == 1:
            with self.loop(begin, end, as_written=as_written) as loop:
                yield loop.index, 0, 1
            return
        with self.when(self.compare("slt", begin, end)):
            rows = self.div(self.add(end, self.sub(inner, 1)), inner)
            with self.loop(self.div(begin, inner), rows) as loop:
                start = self.mul(loop.index, inner)
                first = self.max(self.sub(begin, start), 0)
                last = self.min(self.sub(end, start), inner)
                yield loop.index, first, last
