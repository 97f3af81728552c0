"""The best element of a run and where it first is, in two steps for each chunk: what the best value is, and, only if it
beats that of the chunks before, where.

Positions in vectors beside values would take as many registers again, and as many selections; looking for a value that
is known ends at the first.  A chunk stays in a first-level cache for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.nests.reduction import Body, Cells, Fold, State, half_of, only_active
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES

_VECTORS_PER_ITERATION = 4  # vectors at once, of which the sought value may be in any


class ArgExtremum:
    """Folds a run by a fold whose states are a value and a position; ``body`` may be asked for an element twice."""

    def __init__(self, code: KernelBuilder, allocate: Callable[[int], str], fold: Fold) -> None:
        self.code, self.e, self.fold = code, code.e, fold
        self.total = Cells(code, allocate, [fold], 1)

    def run(self, extent: Ref, body: Body) -> list[State]:
        """Scalar states of the whole run."""
        code, e, width = self.code, self.e, self.e.width
        with code.width(1):
            self.total.store(0, [self.fold.start(e)])
        with code.loop(0, extent, CHUNK) as chunk:
            begin, end = chunk.index, code.min(code.add(chunk.index, CHUNK), extent)
            value, no_number = self._best(begin, end, body)
            with code.width(1):
                ((best, _),) = self.total.load(0)
                beats = self._beats(best, value if no_number is None else e.select(no_number, math.nan, value))

            def update(at: Ref) -> None:
                with code.width(1):
                    self.total.store(0, body(at, None))

            with code.when(beats.ref), code.width(width):
                if no_number is None:
                    update(self._where(begin, end, body, lambda v: e.eq(v, e.splat(value)), _VECTORS_PER_ITERATION))
                else:
                    with code.when(no_number.ref):
                        update(self._where(begin, end, body, e.is_nan, 1))
                    with code.when(code.negation(no_number.ref)):
                        update(self._where(begin, end, body, lambda v: e.eq(v, e.splat(value)), _VECTORS_PER_ITERATION))
        with code.width(1):
            return self.total.load(0)

    # ---- values without positions

    def _beats(self, best: Val, value: Val) -> Val:
        before, behind = (self.e.const(k, self.fold.rules.positions) for k in (0, 1))
        return self.e.eq(self.fold.later(self.e, (best, before), (value, behind))[1], behind)

    def _better(self, old: Val, value: Val) -> Val:
        """The better of two values; the old one, where one of them is NaN."""
        return self.e.select(self.e.gt(value, old) if self.largest else self.e.lt(value, old), value, old)

    @cached_property
    def largest(self) -> bool:
        """Whether the largest is the best: nothing is the least there is then."""
        return bool(self.fold.identity[0][0] <= 0)

    def _best(self, begin: Ref, end: Ref, body: Body) -> tuple[Val, Val | None]:
        """The best number of a chunk, and whether there is a NaN: scalars."""
        code, e = self.code, self.e
        size, (value, dtype) = code.sub(end, begin), self.fold.identity[0]
        whole = code.add(begin, code.sub(size, code.rem(size, LANES)))
        firsts = range(0, LANES, e.width)
        bits = np.dtype(f"int{8 * dtype.itemsize}")

        def nans(values: Sequence[Val], known: list[Val]) -> list[Val]:
            """Bits that are set in lanes which have had a NaN."""
            for a, b in zip(values[::2], values[1::2] or values):
                known = [
                    e.or_(k, e.select(e.or_(e.is_nan(a), e.is_nan(b)), e.const(-1, bits), e.zero(bits))) for k in known
                ]
            return known

        carry = [e.zero(bits)] if dt.is_float(dtype) else []
        count = len(carry)
        with code.loop(begin, whole, LANES, carry + [e.const(value, dtype) for _ in firsts]) as iteration:
            values = [body(code.add(iteration.index, first), None)[0][0] for first in firsts]
            better = [self._better(old, new) for old, new in zip(iteration.carried[count:], values)]
            iteration.next = nans(values, iteration.carried[:count]) + better
        bests = list(iteration.carried[count:])
        while len(bests) > 1:
            bests = [self._better(a, b) for a, b in zip(bests[::2], bests[1::2])]
        remainder = code.sub(end, code.rem(code.sub(end, whole), e.width))
        carry = iteration.carried[:count] + bests
        for first, last, partly in ((whole, remainder, False), (remainder, end, True)):
            with code.loop(first, last, e.width, carry) as iteration:
                mask = code.lanes_below(code.sub(end, iteration.index)) if partly else None
                ((new, _),) = only_active(e, [self.fold], body(iteration.index, mask), mask)
                iteration.next = [*nans([new], iteration.carried[:count]), self._better(iteration.carried[count], new)]
            carry = iteration.carried
        best = iteration.carried[count]
        while best.width > 1:
            lower, upper = (half_of(e, best, k) for k in (0, 1))
            with code.width(lower.width):
                best = self._better(lower, upper)
        return best, (Val(e.any(e.ne(iteration.carried[0], 0)), dt.bool_, 1) if count else None)

    # ---- where a value is

    def _where(self, begin: Ref, end: Ref, body: Body, sought: Callable[[Val], Val], together: int) -> Ref:
        """The first position of what is sought in the chunk, where it is."""
        code, e = self.code, self.e

        def any_of(i: Ref) -> str:
            masks = [sought(body(code.add(i, k * e.width), None)[0][0]) for k in range(together)]
            while len(masks) > 1:
                masks = [e.or_(a, b) for a, b in zip(masks[::2], masks[1::2])]
            return e.any(masks[0])

        step = together * e.width
        if together > 1:
            begin = self._scan(begin, step, lambda i: code.compare("sgt", code.add(i, step), end), any_of)
        last: list[Val] = []

        def in_vector(i: Ref) -> str:
            mask = code.lanes_below(code.sub(end, i))
            last.append(e.and_(sought(body(i, mask)[0][0]), mask))
            return e.any(last[0])

        at = self._scan(begin, e.width, None, in_vector)
        e.declare("declare i64 @llvm.cttz.i64(i64, i1)")
        lane = e.assign(f"call i64 @llvm.cttz.i64(i64 {code.bits_of(last[0])}, i1 true)", dt.int64, 1)
        return code.add(at, lane.ref)

    def _scan(self, begin: Ref, step: int, over: Callable[[Ref], str | bool] | None, hit: Callable[[Ref], str]) -> Ref:
        """The first of ``begin``, ``begin + step``, ... at which it is over, or else there is a hit."""
        e = self.e
        head, look, following, done = (e.new_label(hint) for hint in ("head", "look", "next", "done"))
        before, i, advanced = e.block, e.fresh("i"), e.fresh("i")
        e.branch(head)
        e.label(head)
        e.line(f"{i} = phi i64 [ {begin}, %{before} ], [ {advanced}, %{following} ]")
        if over is None:
            e.branch(look)
        else:
            e.branch_if(str(over(i)), done, look)
        e.label(look)
        e.branch_if(hit(i), done, following)
        e.label(following)
        e.line(f"{advanced} = add nsw i64 {i}, {step}")
        e.branch(head)
        e.label(done)
        return i


def is_arg_extremum(e: Emitter, fold: Fold) -> bool:
    """Whether a fold is of that kind, and there are vectors to look through."""
    return fold.rules.has_position and len(fold.identity) == 2 and e.width > 1
