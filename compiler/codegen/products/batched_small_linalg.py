"""Equations, inverses, determinants and Cholesky factors of small matrices: one matrix in each lane of a vector.

The order is that of ``ops/small_linalg.py``.  The matrices of a vector lie one after another in memory; squares are
turned in registers so that equal elements lie side by side while they are worked on, and turned back.  One function
serves matrices of all sizes: there are few vectors in a row, and they lie in the innermost cache.
"""

from __future__ import annotations

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import MOST_LANES, KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.small_linalg import MOST
from hybridflow.compiler.target import Target

_TABLES = 5  # of a function: both sides, and room for these and the result of matrices that do not fill a vector


def text(op: str, dtype: np.dtype, target: Target) -> str:
    """A module with the function of ``write``, which is named ``op``."""
    module = LLVMModule(target)
    write(module, op, dtype, op)
    return module.render()


def write(module: LLVMModule, op: str, dtype: np.dtype, name: str | None = None) -> str:
    """Add the function ``op(a, y, out, memory, count, n, m)`` to a module: of the addresses of ``count`` matrices of n
    rows, of as many matrices of m right-hand sides for ``solve``, of results, and of ``memory_bytes`` at a multiple of
    64.  It returns 0 if no result is irregular.  Without a ``name`` for others it is the module's own.  Returns what it
    is called."""
    e = Emitter(module.target, _width(module.target, dtype))
    Stack(e, op, dtype).emit()
    parameters = "ptr %a, ptr %y, ptr %out, ptr %memory, i64 %count, i64 %n, i64 %m"
    linkage = "" if name else "internal"
    return module.function(e, name or f"small_{op}", parameters, "i64", linkage, attributes="noinline")


def memory_bytes(target: Target, dtype: np.dtype) -> int:
    """Bytes of memory that the function for a dtype takes."""
    return _TABLES * _table_bytes(_width(target, dtype), dtype)


def _width(target: Target, dtype: np.dtype) -> int:
    return max(min(target.lanes(8 * dtype.itemsize), MOST_LANES), 2)


def _table_bytes(width: int, dtype: np.dtype) -> int:
    return MOST * MOST * width * dtype.itemsize


class Table:
    """Vectors in rows of ``columns``: element (i, j) of each of the matrices.  It is the ``number``-th in the memory
    that the function is given."""

    def __init__(self, c: KernelBuilder, dtype: np.dtype, columns: Ref, number: int) -> None:
        self.c, self.dtype, self.columns = c, dtype, columns
        assert number < _TABLES
        self.place = c.at("%memory", number * _table_bytes(c.e.width, dtype), 1)

    def at(self, i: Ref, j: Ref) -> str:
        c = self.c
        return c.at(self.place, c.mul(c.add(c.mul(i, self.columns), j), c.e.width), self.dtype.itemsize)

    def get(self, i: Ref, j: Ref) -> Val:
        return self.c.e.load(self.at(i, j), self.dtype)

    def set(self, i: Ref, j: Ref, value: Val) -> None:
        self.c.e.store(value, self.at(i, j))


class Stack:
    """Such a function being emitted."""

    def __init__(self, e: Emitter, op: str, dtype: np.dtype) -> None:
        self.e, self.c, self.op, self.dtype = e, KernelBuilder(e), op, dtype
        c, square = self.c, self.c.mul("%n", "%n")
        self.n: Ref = "%n"
        self.m: Ref = {"solve": "%m", "inv": "%n"}.get(op, 0)
        self.a, self.y = Table(c, dtype, self.n, 0), Table(c, dtype, self.m, 1)
        self.sizes: dict[str, Ref] = {"%a": square}
        if op == "solve":
            self.sizes["%y"] = c.mul("%n", "%m")
        self.result = {"solve": self.sizes.get("%y", 0), "det": 1}.get(op, square)

    def emit(self) -> None:
        c, e, width = self.c, self.e, self.e.width
        all_sizes = {**self.sizes, "%out": self.result}
        spare = {name: Table(c, self.dtype, 0, 2 + k).place for k, name in enumerate(all_sizes)}
        with c.loop(0, "%count", width, [e.const(0, dt.int64, 1)]) as at:
            left = c.sub("%count", at.index)
            alone = c.compare("slt", left, width)  # these matrices do not fill a vector: there is room beside ``spare``
            with c.when(alone), c.loop(0, width) as lane:
                # Lanes without a matrix of their own take the last one.
                source = c.add(at.index, c.min(lane.index, c.sub(left, 1)))
                for name, size in self.sizes.items():
                    self._copy(name, source, spare[name], lane.index, size)
            places = {
                name: c.choose_pointer(alone, spare[name], self._matrix(name, at.index, size))
                for name, size in all_sizes.items()
            }
            at.next = [e.or_(at.carried[0], self._vector(places))]
            with c.when(alone), c.loop(0, left) as lane:
                self._copy(spare["%out"], lane.index, "%out", c.add(at.index, lane.index), self.result)
        e.line(f"ret i64 {at.carried[0].ref}")

    def _matrix(self, base: str, number: Ref, size: Ref) -> str:
        return self.c.at(base, self.c.mul(number, size), self.dtype.itemsize)

    def _copy(self, source: str, number: Ref, to: str, place: Ref, size: Ref) -> None:
        c, item = self.c, self.dtype.itemsize
        source, to = self._matrix(source, number, size), self._matrix(to, place, size)
        with c.loop(0, size) as at, c.width(1):
            self.e.store(self.e.load(c.at(source, at.index, item), self.dtype), c.at(to, at.index, item))

    # ---- between memory and tables

    def _move(self, place: str, size: Ref, table: Table, inwards: bool) -> None:
        """All elements of a vector's matrices, from memory into a table or back."""
        c, width = self.c, self.e.width
        fits = c.compare("sge", size, width)
        with c.when(fits):
            whole = c.mul(c.div(size, width), width)
            with c.loop(0, whole, width) as at:
                self._square(place, size, table, at.index, inwards)
            with c.when(c.compare("slt", whole, size)):  # some elements once more
                self._square(place, size, table, c.sub(size, width), inwards)
        with c.when(c.negation(fits)), c.loop(0, size) as at:
            lanes = self.e.add(self.e.mul(self.e.iota(), self.e.splat(c.value(size))), self.e.splat(c.value(at.index)))
            if inwards:
                table.set(0, at.index, self.e.gather(place, self.dtype, lanes))
            else:
                self.e.scatter(table.get(0, at.index), place, lanes)

    def _square(self, place: str, size: Ref, table: Table, first: Ref, inwards: bool) -> None:
        """As many elements from ``first`` on as there are matrices."""
        c, e, item = self.c, self.e, self.dtype.itemsize
        lines = [c.at(place, c.add(c.mul(size, lane), first), item) for lane in range(e.width)]
        rows = [table.at(0, c.add(first, k)) for k in range(e.width)]
        sources, targets = (lines, rows) if inwards else (rows, lines)
        for value, target in zip(
            transpose_in_registers(e, [e.load(source, self.dtype) for source in sources]), targets
        ):
            e.store(value, target)

    # ---- what is computed

    def _vector(self, places: dict[str, str]) -> Val:
        """The results of one vector of matrices; not 0 where one is irregular."""
        e, c = self.e, self.c
        self._move(places["%a"], self.sizes["%a"], self.a, inwards=True)
        if self.op == "det":
            determinant = self._determinant()
            e.store(determinant, places["%out"])
            size, info = e.abs(determinant), np.finfo(self.dtype)
            regular = e.and_(e.ge(size, float(info.tiny)), e.lt(size, float("inf")))
        else:
            if self.op == "cholesky":
                result = self.a
                self._factor()
            else:
                result = self.y
                if self.op == "solve":
                    self._move(places["%y"], self.sizes["%y"], self.y, inwards=True)
                else:
                    self._identity()
                self._eliminate()
                self._unknowns()
            self._move(places["%out"], self.result, result, inwards=False)
            zero = e.zero(self.dtype)
            with c.loop(0, self.result, carry=[zero]) as at:
                at.next = [e.fma(result.get(0, at.index), zero, at.carried[0])]  # NaN, once something is not finite
            regular = e.eq(at.carried[0], zero)
        return c.value(c.bits_of(e.not_(regular)))

    def _identity(self) -> None:
        c, e = self.c, self.e
        with c.loop(0, self.n) as i:
            with c.loop(0, self.n) as j:
                self.y.set(i.index, j.index, e.zero(self.dtype))
            self.y.set(i.index, i.index, e.const(1, self.dtype))

    def _eliminate(self) -> Val:
        """All steps; the sign that exchanges make."""
        c, e, a = self.c, self.e, self.a
        with c.loop(0, self.n, carry=[e.const(1, self.dtype)]) as k:
            below = c.add(k.index, 1)
            with c.loop(below, self.n, carry=k.carried) as i:
                larger = e.gt(e.abs(a.get(i.index, k.index)), e.abs(a.get(k.index, k.index)))
                for table, first in ((a, k.index), (self.y, 0)):
                    with c.loop(first, table.columns, as_written=False) as j:
                        u, v = table.get(k.index, j.index), table.get(i.index, j.index)
                        table.set(k.index, j.index, e.select(larger, v, u))
                        table.set(i.index, j.index, e.select(larger, u, v))
                (sign,) = i.carried
                i.next = [e.select(larger, e.neg(sign), sign)]
            k.next = i.carried
            with c.loop(below, self.n) as i:
                minus = e.neg(e.div(a.get(i.index, k.index), a.get(k.index, k.index)))
                for table, first in ((a, below), (self.y, 0)):
                    with c.loop(first, table.columns, as_written=False) as j:
                        left = e.fma(minus, table.get(k.index, j.index), table.get(i.index, j.index))
                        table.set(i.index, j.index, left)
        return k.carried[0]

    def _unknowns(self) -> None:
        c, e, a, y = self.c, self.e, self.a, self.y
        with c.loop(0, self.n) as step:
            k = c.sub(c.sub(self.n, 1), step.index)
            pivot = a.get(k, k)
            with c.loop(0, self.m) as j:
                y.set(k, j.index, e.div(y.get(k, j.index), pivot))
            with c.loop(0, k) as i:
                minus = e.neg(a.get(i.index, k))
                with c.loop(0, self.m, as_written=False) as j:
                    y.set(i.index, j.index, e.fma(minus, y.get(k, j.index), y.get(i.index, j.index)))

    def _determinant(self) -> Val:
        c, e = self.c, self.e
        sign = self._eliminate()
        with c.loop(0, self.n, carry=[sign]) as k:
            k.next = [e.mul(k.carried[0], self.a.get(k.index, k.index))]
        return k.carried[0]

    def _factor(self) -> None:
        c, e, a = self.c, self.e, self.a
        with c.loop(0, self.n) as k:
            square, below = a.get(k.index, k.index), c.add(k.index, 1)
            pivot = e.select(e.gt(square, 0), e.sqrt(square), float("nan"))
            a.set(k.index, k.index, pivot)
            with c.loop(below, self.n) as i:
                a.set(i.index, k.index, e.div(a.get(i.index, k.index), pivot))
                a.set(k.index, i.index, e.zero(self.dtype))
            with c.loop(below, self.n) as i:
                minus = e.neg(a.get(i.index, k.index))
                with c.loop(below, c.add(i.index, 1), as_written=False) as j:
                    a.set(i.index, j.index, e.fma(minus, a.get(j.index, k.index), a.get(i.index, j.index)))
