"""Index arithmetic: sums of products over loop variables, simplified with the variables' ranges.

An index expression ``IndexExpr`` is a polynomial of ``ir.extents`` whose terms may have an atom: a loop variable, a
division or remainder that did not simplify, or a value computed at run time (an index read from a tensor).  Equal
expressions are equal objects, which is how fusion recognises that two nodes are visited in the same order.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Union

from hybridflow import flags
from hybridflow.compiler.ir.extents import Dim, Extent, from_products
from hybridflow.compiler.ir.polynomial import (
    Names,
    Polynomial,
    Quotient as Quotient,
    Remainder as Remainder,
    Term,
    at_least_zero,
    bound,
    divided,
    multiplied,
    plus,
    times,
)
from hybridflow.compiler.ir.types import Shape
from hybridflow.errors import CompileError


@dataclass(frozen=True, eq=False)
class LoopVar:
    """A loop counter that runs over ``range(extent)``; each object is a variable of its own."""

    name: str
    extent: Extent


@dataclass(frozen=True, eq=False)
class ComputedAtom:
    """An index found at run time: an int64 emitter value, which is a position on an axis of ``extent`` elements.  It is
    ``alike`` in all lanes where it was looked up at one place for them; else it may vary with every loop variable."""

    value: Any
    extent: Extent
    alike: bool = False


Atom = Union[LoopVar, Quotient, Remainder, ComputedAtom, None]


class IndexExpr(Polynomial):
    """An index expression.  Supports ``+ - * // %`` with ints, extents and (for + and -) other expressions."""

    __slots__ = ()

    def __repr__(self) -> str:
        def show(term: Term, factor: int) -> str:
            atom, names = term
            parts = [str(factor)] if factor != 1 or (atom is None and not names) else []
            parts += map(str, names)
            if isinstance(atom, LoopVar):
                parts.append(atom.name)
            elif isinstance(atom, (Quotient, Remainder)):
                parts.append(f"({atom.value} {'//' if isinstance(atom, Quotient) else '%'} {atom.divisor})")
            elif atom is not None:
                parts.append("?")
            return "*".join(parts)

        return " + ".join(sorted(show(t, f) for t, f in self.terms)) or "0"

    def __add__(self, other: IndexExpr | int | Dim) -> IndexExpr:
        terms = dict(self.terms)
        for term, factor in as_index(other).terms:
            terms[term] = terms.get(term, 0) + factor
        return _recombined(terms)

    __radd__ = __add__

    def __sub__(self, other: IndexExpr | int | Dim) -> IndexExpr:
        return self + as_index(other) * -1

    def __rsub__(self, other: int | Dim) -> IndexExpr:
        return as_index(other) + self * -1

    def __mul__(self, extent: Extent) -> IndexExpr:
        if isinstance(extent, int):
            return IndexExpr({term: factor * extent for term, factor in self.terms})
        total: dict[Term, int] = {}
        for (atom, names), factor in self.terms:
            for (_, more), scale in extent.terms:
                term = atom, multiplied(names, more)
                total[term] = total.get(term, 0) + factor * scale
        return IndexExpr(total)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: Extent) -> IndexExpr:
        quotient, rest = self._split(divisor)
        if _below(rest, divisor):
            return quotient
        return quotient + _quotient(_dividend(rest, self), divisor)

    def __mod__(self, divisor: Extent) -> IndexExpr:
        _, rest = self._split(divisor)
        if _below(rest, divisor):
            return rest
        return IndexExpr({(Remainder(_dividend(rest, self), divisor), ()): 1})

    def _split(self, divisor: Extent) -> tuple[IndexExpr, IndexExpr]:
        """(q, r) with self = q * divisor + r and r >= 0, moving into q what the divisor divides.

        Of a negative r, as 6 - i leaves when 6 is divided by 3, q gives back as many divisors as make it 0 or more;
        where that cannot be shown, q is 0: a position itself is never negative.
        """
        if divisor == 0:
            return ZERO, ZERO  # an axis without elements has no positions, and its loops never turn
        whole, rest = self._divided(divisor)
        low = rest.bounds[0]
        if low is None:
            return ZERO, self
        enough = -(low.get((), 0) // divisor) if isinstance(divisor, int) else 1
        for back in (0, enough):
            if at_least_zero(plus(low, times(bound(divisor), back))):
                return whole - back, rest + as_index(divisor) * back
        return ZERO, self

    def _divided(self, divisor: Extent) -> tuple[IndexExpr, IndexExpr]:
        """The terms that the divisor divides, divided, and the others; of a constant, which may begin many rows further
        down, the part that it divides."""
        if not isinstance(divisor, int):
            whole, rest = divided(self.terms, divisor)
            return IndexExpr(whole), IndexExpr(rest)
        whole, rest = {}, {}
        for term, factor in self.terms:
            if factor % divisor == 0 or (term == (None, ()) and factor > divisor):
                whole[term] = factor // divisor
            if factor % divisor:
                rest[term] = factor % divisor if term in whole else factor
        return IndexExpr(whole), IndexExpr(rest)

    @property
    def atoms(self) -> set[Atom]:
        return {atom for (atom, _), _ in self.terms if atom is not None}

    @property
    def strides(self) -> dict[Atom, Extent]:
        """What each atom is multiplied by, the constant under None."""
        parts: dict[Atom, list[tuple[int, Names]]] = {}
        for (atom, names), factor in self.terms:
            parts.setdefault(atom, []).append((factor, names))
        return {atom: from_products(products) for atom, products in parts.items()}

    def depends_on(self, var: LoopVar) -> bool:
        return any(atom_depends(atom, var) for atom in self.atoms)

    def coefficient(self, var: LoopVar) -> int | None:
        """The constant factor of ``var``: 0 when absent, None when it is symbolic or hidden inside another atom."""
        result = 0
        for (atom, names), factor in self.terms:
            if atom is var:
                if names:
                    return None
                result += factor
            elif atom_depends(atom, var):
                return None
        return result

    @property
    def divisions(self) -> int:
        """How deep divisions and remainders are nested."""
        nested = (atom.value for atom in self.atoms if isinstance(atom, (Quotient, Remainder)))
        return max((1 + value.divisions for value in nested), default=0)

    @property
    def gathered(self) -> tuple[Extent, ...]:
        """The extents of the axes whose indices are found at run time."""
        extents: dict[Extent, None] = {}
        for atom in self.atoms:
            if isinstance(atom, ComputedAtom):
                extents[atom.extent] = None
            elif isinstance(atom, (Quotient, Remainder)):
                extents.update(dict.fromkeys(atom.value.gathered))
        return tuple(sorted(extents, key=str))

    @property
    def is_affine(self) -> bool:
        """Whether only loop variables and constants occur."""
        return all(atom is None or isinstance(atom, LoopVar) for (atom, _), _ in self.terms)


def _recombined(terms: dict[Term, int]) -> IndexExpr:
    """The sum, with ``d * (v // d) + v % d`` put together to ``v`` again: what splitting a position into axes and
    joining them leaves behind."""
    for (atom, names), factor in terms.items():
        if isinstance(atom, Remainder):
            scale = IndexExpr({(None, names): factor})
            whole = _times(_quotient(atom.value, atom.divisor), scale) * atom.divisor
            if all(terms.get(term) == f for term, f in whole.terms):
                gone = {(atom, names), *(term for term, _ in whole.terms)}
                rest = IndexExpr({term: f for term, f in terms.items() if term not in gone})
                return rest + _times(atom.value, scale)
    return IndexExpr(terms)


def _times(value: Polynomial, scale: IndexExpr) -> IndexExpr:
    """A position times a single term without an atom."""
    (((_, names), factor),) = scale.terms
    return IndexExpr({(atom, multiplied(factors, names)): f * factor for (atom, factors), f in value.terms})


ZERO = IndexExpr({})


def _quotient(value: IndexExpr, divisor: Extent) -> IndexExpr:
    """The quotient of what is not negative, and has no part that the divisor divides; of a quotient by a number, that
    of what is divided there."""
    ((atom, names), factor), *others = value.terms
    is_lone = not others and not names and factor == 1
    if is_lone and isinstance(atom, Quotient) and isinstance(atom.divisor, int) and isinstance(divisor, int):
        return atom.value // (atom.divisor * divisor)
    return IndexExpr({(Quotient(value, divisor), ()): 1})


def _dividend(value: IndexExpr, position: IndexExpr) -> IndexExpr:
    """What is divided, unsigned, and so may not be negative: known to be so, or a position, which is so."""
    if flags.VERIFY.value and value != position:
        low = value.bounds[0]
        if low is None or not at_least_zero(low):
            raise CompileError("index", f"{value}, a part of {position}, is divided and may be negative", "")
    return value


def constant(value: int) -> IndexExpr:
    return IndexExpr({(None, ()): value})


def variable(var: LoopVar) -> IndexExpr:
    """The index of a loop; the only index of an axis of one element is 0."""
    return ZERO if var.extent == 1 else IndexExpr({(var, ()): 1})


def computed(value: Any, extent: Extent, alike: bool = False) -> IndexExpr:
    return IndexExpr({(ComputedAtom(value, extent, alike), ()): 1})


def as_index(value: IndexExpr | int | Dim) -> IndexExpr:
    if isinstance(value, IndexExpr):
        return value
    return IndexExpr(dict(value.terms)) if isinstance(value, Dim) else constant(value)


def atom_depends(atom: Atom, var: LoopVar) -> bool:
    if isinstance(atom, (Quotient, Remainder)):
        return atom.value.depends_on(var)
    # A run-time value was computed inside the innermost loop.
    return atom is var or (isinstance(atom, ComputedAtom) and not atom.alike)


def _below(value: IndexExpr, limit: Extent) -> bool:
    """Whether 0 <= value < limit is certain."""
    if not value.terms:
        return True  # 0, or an axis without elements
    low, high = value.bounds
    if low is None or high is None:
        return False
    room = plus(plus(bound(limit), {(): -1}), times(high, -1))
    return at_least_zero(low) and at_least_zero(room)


@functools.lru_cache(maxsize=1024)
def _axes_of(linear: IndexExpr, shape: Shape) -> tuple[IndexExpr, ...]:
    """A row-major position as one per axis.  Fusion, schedules and emitters all ask about the same ones."""
    if len(shape) < 2:
        return (linear,) if shape else ()
    rest, out = linear, []
    for extent in reversed(shape[1:]):
        out.append(ZERO if extent == 1 else rest % extent)
        rest = rest // extent
    return (rest, *reversed(out))


class Index:
    """A position in a tensor of a shape, as one number (row-major) or one per axis; each form is made when asked for.

    Reshapes keep the number, so chains of elementwise ops and reshapes never divide.
    """

    __slots__ = ("_axes", "_linear", "shape")

    def __init__(self, shape: Shape, axes: Sequence[IndexExpr] | None = None, linear: IndexExpr | None = None) -> None:
        self.shape = shape
        self._axes = None if axes is None else tuple(axes)
        self._linear = linear

    @property
    def axes(self) -> tuple[IndexExpr, ...]:
        if self._axes is None:
            self._axes = _axes_of(self.linear, self.shape)
        return self._axes

    @property
    def linear(self) -> IndexExpr:
        if self._linear is None:
            total = ZERO
            for ix, extent in zip(self._axes or (), self.shape):
                total = total * extent + ix
            self._linear = total
        return self._linear

    @property
    def key(self) -> Hashable:
        """Equal for positions of one shape that were given in the same form."""
        return self.shape, self._linear if self._axes is None else self._axes

    def __getitem__(self, item: Any) -> Any:
        return self.axes[item]

    def __len__(self) -> int:
        return len(self.shape)

    def __iter__(self) -> Any:
        return iter(self.axes)

    def __repr__(self) -> str:
        return f"[{self.linear}] of {self.shape}"


def is_contiguous_along(ix: IndexExpr, inner: LoopVar, lane: LoopVar) -> bool:
    """Whether turns of ``inner`` are neighbours in memory, and those of ``lane`` groups of these, be it in reverse."""
    count = inner.extent
    return ix.coefficient(inner) in (1, -1) and ix.coefficient(lane) in (count, -1 * count)
