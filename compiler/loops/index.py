"""Index arithmetic: sums of products over loop variables, simplified with the variables' ranges.

An index expression ``Ix`` is a sum of terms ``factor * product of symbolic extents * atom``; the atom is a loop
variable, a division or remainder that did not simplify, a value computed at run time (an index read from a tensor),
or nothing (a constant).  Equal expressions are equal objects, which is how fusion recognises that two nodes are
visited in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from hybridflow import flags
from hybridflow.compiler.ir.types import Dim, Extent, Shape, factors
from hybridflow.compiler.loops.bounds import (
    Names,
    Polynomial,
    at_least_zero,
    plus,
    polynomial,
    quotient_above,
    quotient_below,
    times,
)
from hybridflow.errors import CompileError


@dataclass(frozen=True, eq=False)
class LoopVar:
    """A loop counter that runs over ``range(extent)``; each object is a variable of its own."""

    name: str
    extent: Extent


@dataclass(frozen=True)
class Quotient:
    """``floor(value / divisor)`` of a non-negative expression."""

    value: Ix
    divisor: Extent


@dataclass(frozen=True)
class Remainder:
    """``value mod divisor`` of a non-negative expression."""

    value: Ix
    divisor: Extent


@dataclass(frozen=True, eq=False)
class Computed:
    """An index found at run time: an int64 emitter value, which is a position on an axis of ``extent`` elements."""

    value: Any
    extent: Extent


Atom = Union[LoopVar, Quotient, Remainder, Computed, None]
Term = tuple[Atom, Names]


class Ix:
    """An index expression.  Supports ``+ - * // %`` with ints, extents and (for + and -) other expressions."""

    __slots__ = ("_bounds", "_hash", "terms")

    def __init__(self, terms: dict[Term, int]) -> None:
        self.terms = frozenset((term, factor) for term, factor in terms.items() if factor)
        self._hash = hash(self.terms)
        self._bounds: tuple[Polynomial | None, Polynomial | None] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ix) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        def show(term: Term, factor: int) -> str:
            atom, names = term
            parts = [str(factor)] if factor != 1 or (atom is None and not names) else []
            parts += names
            if isinstance(atom, LoopVar):
                parts.append(atom.name)
            elif isinstance(atom, (Quotient, Remainder)):
                parts.append(f"({atom.value} {'//' if isinstance(atom, Quotient) else '%'} {atom.divisor})")
            elif atom is not None:
                parts.append("?")
            return "*".join(parts)

        return " + ".join(sorted(show(t, f) for t, f in self.terms)) or "0"

    def __add__(self, other: Ix | int | Dim) -> Ix:
        terms = dict(self.terms)
        for term, factor in as_index(other).terms:
            terms[term] = terms.get(term, 0) + factor
        return _recombined(terms)

    __radd__ = __add__

    def __sub__(self, other: Ix | int | Dim) -> Ix:
        return self + as_index(other) * -1

    def __rsub__(self, other: int | Dim) -> Ix:
        return as_index(other) + self * -1

    def __mul__(self, extent: Extent) -> Ix:
        if isinstance(extent, int):
            return Ix({term: factor * extent for term, factor in self.terms})
        return Ix({(atom, tuple(sorted((*names, extent.name)))): factor for (atom, names), factor in self.terms})

    __rmul__ = __mul__

    def __floordiv__(self, divisor: Extent) -> Ix:
        quotient, rest = self._split(divisor)
        if _below(rest, divisor):
            return quotient
        return quotient + Ix({(Quotient(_dividend(rest, self), divisor), ()): 1})

    def __mod__(self, divisor: Extent) -> Ix:
        _, rest = self._split(divisor)
        if _below(rest, divisor):
            return rest
        return Ix({(Remainder(_dividend(rest, self), divisor), ()): 1})

    def _split(self, divisor: Extent) -> tuple[Ix, Ix]:
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
            if at_least_zero(plus(low, times(polynomial((divisor,)), back))):
                return whole - back, rest + as_index(divisor) * back
        return ZERO, self

    def _divided(self, divisor: Extent) -> tuple[Ix, Ix]:
        """The terms that the divisor divides, divided, and the others."""
        whole: dict[Term, int] = {}
        rest: dict[Term, int] = {}
        for (atom, names), factor in self.terms:
            if isinstance(divisor, int):
                if factor % divisor == 0:
                    whole[atom, names] = factor // divisor
                else:
                    rest[atom, names] = factor
            elif divisor.name in names:
                left = list(names)
                left.remove(divisor.name)
                whole[atom, tuple(left)] = factor
            else:
                rest[atom, names] = factor
        return Ix(whole), Ix(rest)

    @property
    def bounds(self) -> tuple[Polynomial | None, Polynomial | None]:
        """The least and the greatest value that the terms, each taken for itself, allow; None where nothing is known.
        They hold wherever no extent is 0."""
        if self._bounds is None:
            low: Polynomial | None = {}
            high: Polynomial | None = {}
            for (atom, names), factor in self.terms:
                known, symbols = factors(
                    tuple(map(Dim, names))
                )  # a loop over several axes has a product for its extent
                first, last = _range(atom) if factor > 0 else _range(atom)[::-1]
                low = None if low is None or first is None else plus(low, times(first, factor * known, symbols))
                high = None if high is None or last is None else plus(high, times(last, factor * known, symbols))
            self._bounds = low, high
        return self._bounds

    @property
    def atoms(self) -> set[Atom]:
        return {atom for (atom, _), _ in self.terms if atom is not None}

    def depends_on(self, var: LoopVar) -> bool:
        return any(_atom_depends(atom, var) for atom in self.atoms)

    def coefficient(self, var: LoopVar) -> int | None:
        """The constant factor of ``var``: 0 when absent, None when it is symbolic or hidden inside another atom."""
        result = 0
        for (atom, names), factor in self.terms:
            if atom is var:
                if names:
                    return None
                result += factor
            elif _atom_depends(atom, var):
                return None
        return result

    @property
    def divisions(self) -> int:
        """How deep divisions and remainders are nested."""
        nested = (atom.value for atom in self.atoms if isinstance(atom, (Quotient, Remainder)))
        return max((1 + value.divisions for value in nested), default=0)

    @property
    def looked_up(self) -> tuple[Extent, ...]:
        """The extents of the axes whose indices are found at run time."""
        found: dict[Extent, None] = {}
        for atom in self.atoms:
            if isinstance(atom, Computed):
                found[atom.extent] = None
            elif isinstance(atom, (Quotient, Remainder)):
                found.update(dict.fromkeys(atom.value.looked_up))
        return tuple(sorted(found, key=str))

    @property
    def is_affine(self) -> bool:
        """Whether only loop variables and constants occur."""
        return all(atom is None or isinstance(atom, LoopVar) for (atom, _), _ in self.terms)


def _recombined(terms: dict[Term, int]) -> Ix:
    """The sum, with ``d * (v // d) + v % d`` put together to ``v`` again: what splitting a position into axes and
    joining them leaves behind."""
    for (atom, names), factor in terms.items():
        if isinstance(atom, Remainder):
            known, symbols = factors((atom.divisor,))
            whole = (Quotient(atom.value, atom.divisor), tuple(sorted((*names, *symbols))))
            if terms.get(whole) == factor * known:
                rest = {term: f for term, f in terms.items() if term not in (whole, (atom, names))}
                value = atom.value * factor
                for name in names:
                    value = value * Dim(name)
                return Ix(rest) + value
    return Ix(terms)


ZERO = Ix({})


def _dividend(value: Ix, position: Ix) -> Ix:
    """What is divided, unsigned, and so may not be negative: known to be so, or a position, which is so."""
    if flags.VERIFY.value and value != position:
        low = value.bounds[0]
        if low is None or not at_least_zero(low):
            raise CompileError("index", f"{value}, a part of {position}, is divided and may be negative", "")
    return value


def _range(atom: Atom) -> tuple[Polynomial, Polynomial | None]:
    """The bounds of an atom; its upper bound is None where none is known."""
    if atom is None:
        return {(): 1}, {(): 1}
    if isinstance(atom, Quotient):
        low, high = atom.value.bounds
        least = {} if low is None else quotient_below(low, atom.divisor)
        return least, None if high is None else quotient_above(high, atom.divisor)
    extent = atom.divisor if isinstance(atom, Remainder) else atom.extent
    return {}, plus(polynomial((extent,)), {(): -1}) if extent != 0 else {}


def constant(value: int) -> Ix:
    return Ix({(None, ()): value})


def variable(var: LoopVar) -> Ix:
    """The index of a loop; the only index of an axis of one element is 0."""
    return ZERO if var.extent == 1 else Ix({(var, ()): 1})


def computed(value: Any, extent: Extent) -> Ix:
    return Ix({(Computed(value, extent), ()): 1})


def as_index(value: Ix | int | Dim) -> Ix:
    if isinstance(value, Ix):
        return value
    if isinstance(value, Dim):
        return Ix({(None, (value.name,)): 1})
    return constant(value)


def _atom_depends(atom: Atom, var: LoopVar) -> bool:
    if isinstance(atom, (Quotient, Remainder)):
        return atom.value.depends_on(var)
    # A run-time value was computed inside the innermost loop, so it varies with every variable.
    return atom is var or isinstance(atom, Computed)


def _below(value: Ix, bound: Extent) -> bool:
    """Whether 0 <= value < bound is certain."""
    if not value.terms:
        return True  # 0, or an axis without elements
    low, high = value.bounds
    if low is None or high is None:
        return False
    room = plus(plus(polynomial((bound,)), {(): -1}), times(high, -1))
    return at_least_zero(low) and at_least_zero(room)


class Index:
    """A position in a tensor of a shape, as one number (row-major) or one per axis; each form is made when asked for.

    Reshapes keep the number, so chains of elementwise ops and reshapes never divide.
    """

    __slots__ = ("_axes", "_linear", "shape")

    def __init__(self, shape: Shape, axes: Sequence[Ix] | None = None, linear: Ix | None = None) -> None:
        self.shape = shape
        self._axes = None if axes is None else tuple(axes)
        self._linear = linear

    @property
    def axes(self) -> tuple[Ix, ...]:
        if self._axes is None:
            rest, out = self.linear, []
            for extent in reversed(self.shape[1:]):
                out.append(ZERO if extent == 1 else rest % extent)
                rest = rest // extent
            self._axes = (*([rest] if self.shape else []), *reversed(out))
        return self._axes

    @property
    def linear(self) -> Ix:
        if self._linear is None:
            total = ZERO
            for ix, extent in zip(self._axes or (), self.shape):
                total = total * extent + ix
            self._linear = total
        return self._linear

    def __getitem__(self, item: Any) -> Any:
        return self.axes[item]

    def __len__(self) -> int:
        return len(self.shape)

    def __iter__(self) -> Any:
        return iter(self.axes)

    def __repr__(self) -> str:
        return f"[{self.linear}] of {self.shape}"
