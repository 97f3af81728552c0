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

from hybridflow.compiler.ir.types import Dim, Extent, Shape

Names = tuple[str, ...]


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
    """An index found at run time: an int64 emitter value."""

    value: Any


Atom = Union[LoopVar, Quotient, Remainder, Computed, None]
Term = tuple[Atom, Names]


class Ix:
    """An index expression.  Supports ``+ - * // %`` with ints, extents and (for + and -) other expressions."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: dict[Term, int]) -> None:
        self.terms = frozenset((term, factor) for term, factor in terms.items() if factor)
        self._hash = hash(self.terms)

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
        return quotient + Ix({(Quotient(rest, divisor), ()): 1})

    def __mod__(self, divisor: Extent) -> Ix:
        _, rest = self._split(divisor)
        if _below(rest, divisor):
            return rest
        return Ix({(Remainder(rest, divisor), ()): 1})

    def _split(self, divisor: Extent) -> tuple[Ix, Ix]:
        """(q, r) with self = q * divisor + r, moving every term that the divisor divides into q."""
        if divisor == 0:
            return ZERO, ZERO  # an axis without elements has no positions, and its loops never turn
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
    def is_affine(self) -> bool:
        """Whether only loop variables and constants occur."""
        return all(atom is None or isinstance(atom, LoopVar) for (atom, _), _ in self.terms)


def _recombined(terms: dict[Term, int]) -> Ix:
    """The sum, with ``d * (v // d) + v % d`` put together to ``v`` again: what splitting a position into axes and
    joining them leaves behind."""
    for (atom, names), factor in terms.items():
        if isinstance(atom, Remainder) and isinstance(atom.divisor, int):
            whole = (Quotient(atom.value, atom.divisor), names)
            if terms.get(whole) == factor * atom.divisor:
                rest = {term: f for term, f in terms.items() if term not in (whole, (atom, names))}
                value = atom.value * factor
                for name in names:
                    value = value * Dim(name)
                return Ix(rest) + value
    return Ix(terms)


ZERO = Ix({})


def constant(value: int) -> Ix:
    return Ix({(None, ()): value})


def variable(var: LoopVar) -> Ix:
    """The index of a loop; the only index of an axis of one element is 0."""
    return ZERO if var.extent == 1 else Ix({(var, ()): 1})


def computed(value: Any) -> Ix:
    return Ix({(Computed(value), ()): 1})


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
    if isinstance(bound, Dim):
        if len(value.terms) != 1:
            return False
        (((atom, names), factor),) = value.terms
        return isinstance(atom, LoopVar) and atom.extent == bound and not names and factor == 1
    high = 0
    for (atom, names), factor in value.terms:
        if names or factor < 0:
            return False
        if atom is None:
            high += factor
        elif isinstance(atom, LoopVar) and isinstance(atom.extent, int):
            high += factor * max(atom.extent - 1, 0)
        elif isinstance(atom, Remainder) and isinstance(atom.divisor, int):
            high += factor * (atom.divisor - 1)
        else:
            return False
    return high < bound


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
