"""Polynomials over symbols: the arithmetic, the bounds and the text that extents and positions share.

A ``Polynomial`` is a sum of terms ``factor * product of names * atom``: names are symbols (strings) and quotients, an
atom is what only positions have (a loop's counter, say), or None.  Equal polynomials are equal objects, whatever they
were made from.  What is said of one holds for all values of its symbols, which are ``LEAST`` or more.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Union

from hybridflow.errors import SymbolicExtentError

LEAST = 2
"""The least value of a symbol."""

_MOST_TERMS = 1 << 8  # of a polynomial of which something is to be seen
_MOST_WORK = 1 << 14  # terms that are looked at for that
_MOST_ANSWERS = 1 << 13  # that are kept


@dataclass(frozen=True, eq=False)
class Quotient:
    """``floor(value / divisor)``.  As a position's atom it is of a value that is not negative.

    Equal where the terms are: extents, when compared, ask a judge for what their terms leave open, who compares
    quotients on the way."""

    value: Any  # a Polynomial: of names alone in extents, an Ix in positions
    divisor: Any  # an int, or a polynomial of names alone

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        divisor = self.divisor
        return self.value.terms, divisor if isinstance(divisor, int) else divisor.terms

    def __str__(self) -> str:
        return self.spelled

    @cached_property
    def spelled(self) -> str:
        return f"{_operand(self.value, str)}//{_operand(self.divisor, str)}"


@dataclass(frozen=True)
class Remainder:
    """``value mod divisor`` of a value that is not negative: an atom of positions."""

    value: Any
    divisor: Any


Name = Union[str, Quotient]
Names = tuple[Name, ...]  # sorted by ``name_order``
Term = tuple[Any, Names]  # an atom or None, and what it is multiplied by
Bound = dict[Names, Any]  # a polynomial without atoms, with whole or broken factors


def name_order(name: Name) -> tuple[bool, str]:
    return isinstance(name, Quotient), str(name)


def multiplied(a: Names, b: Names) -> Names:
    """The product of two products of names."""
    if not a or not b:
        return a or b
    return tuple(sorted((*a, *b), key=name_order))


def without(names: Names, part: Names) -> Names | None:
    """What is left of a product when it is divided by ``part``; None where that is no part of it."""
    left = list(names)
    for name in part:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)


class Polynomial:
    """A sum of terms with whole factors.  Immutable; equal where the terms are."""

    __slots__ = ("_bounds", "_hash", "terms")

    terms: frozenset[tuple[Term, int]]

    def __init__(self, terms: Mapping[Term, int]) -> None:
        items = terms.items()
        self.terms = frozenset(items if all(terms.values()) else [item for item in items if item[1]])
        self._hash = hash(self.terms)
        self._bounds: tuple[Bound | None, Bound | None] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    @property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """The least and the greatest value that the terms, each taken for itself, allow, over names alone; None where
        nothing is known.  They hold wherever all loops turn."""
        if self._bounds is None:
            low: Bound | None = {}
            high: Bound | None = {}
            for (atom, names), factor in self.terms:
                least, most = atom_range(atom)
                first, last = (least, most) if factor > 0 else (most, least)
                low = None if low is None or first is None else plus(low, times(first, factor, names))
                high = None if high is None or last is None else plus(high, times(last, factor, names))
            self._bounds = low, high
        return self._bounds


Whole = Union[int, Polynomial]
"""A whole number, where a polynomial has no atoms."""


def terms_of(value: Whole) -> Iterable[tuple[Term, int]]:
    """The terms and their factors; a number has one, even if it is 0."""
    return value.terms if isinstance(value, Polynomial) else (((None, ()), value),)


def atom_range(atom: Any) -> tuple[Bound, Bound | None]:
    """The bounds of an atom, which is never negative; the upper one is None where nothing is known."""
    if atom is None:
        return {(): 1}, {(): 1}
    if isinstance(atom, Quotient):
        low, high = atom.value.bounds
        least = {} if low is None else quotient_below(low, atom.divisor)
        return least, None if high is None else quotient_above(high, atom.divisor)
    extent = atom.divisor if isinstance(atom, Remainder) else atom.extent
    return {}, plus(bound(extent), {(): -1}) if extent != 0 else {}


def length(value: Whole) -> int:
    """How many terms there are, those within quotients too."""
    total = 1
    for (_, names), _ in terms_of(value):
        total += 1 + sum(length(n.value) + length(n.divisor) for n in names if isinstance(n, Quotient))
    return total


def depth(value: Whole) -> int:
    """How deep quotients lie within each other."""
    nested = (n for (_, names), _ in terms_of(value) for n in names if isinstance(n, Quotient))
    return max((1 + max(depth(n.value), depth(n.divisor)) for n in nested), default=0)


# ---- division


def divided(terms: Iterable[tuple[Term, int]], divisor: Polynomial) -> tuple[dict[Term, int], dict[Term, int]]:
    """(q, r) with ``terms = q * divisor + r``, where no term of r is a multiple of the divisor's largest product."""
    parts = sorted(divisor.terms, key=_printed_first)
    (_, leading), scale = parts[0]
    left = dict(terms)
    whole: dict[Term, int] = {}
    work = list(left)
    while work:
        term = work.pop()
        factor = left.get(term, 0)
        names = without(term[1], leading) if factor and factor % scale == 0 else None
        if names is None:
            continue
        part = term[0], names
        whole[part] = whole.get(part, 0) + factor // scale
        for (_, more), other in parts:
            key = term[0], multiplied(names, more)
            left[key] = left.get(key, 0) - other * (factor // scale)
            if key != term:
                work.append(key)
    return whole, {term: factor for term, factor in left.items() if factor}


# ---- what is known of a polynomial


class _Effort(threading.local):
    left: int | None = None  # terms that may still be looked at; None where nobody counts
    spent: int = 0  # those that were looked at


_effort = _Effort()


@contextlib.contextmanager
def limited_effort(terms: int) -> Iterator[None]:
    """Raise SymbolicExtentError once more terms were looked at: what others wrote may be made to take long."""
    _effort.left = terms
    try:
        yield
    finally:
        _effort.left = None


def _spend(terms: int) -> None:
    _effort.spent += terms
    left = _effort.left
    if left is not None:
        _effort.left = left - terms
        if left < terms:
            raise SymbolicExtentError("extent", "what is to be shown of extents takes too long.")


def bound(extent: Whole) -> Bound:
    """An extent as a polynomial over names."""
    return {names: factor for (_, names), factor in terms_of(extent) if factor}


def plus(a: Bound, b: Bound) -> Bound:
    total = dict(a)
    for names, factor in b.items():
        total[names] = total.get(names, 0) + factor
    return total


def times(a: Bound, factor: object, names: Names = ()) -> Bound:
    """``a`` times a number and a product of names."""
    return {multiplied(factors, names): own_factor * factor for factors, own_factor in a.items()}


_NO_NAMES = frozenset([()])  # of a number


def at_least_zero(a: Bound) -> bool:
    """Whether ``a >= 0`` can be seen of a whole number: with LEAST + m for each symbol, no factor is negative.

    Only products of names that are part of a negative term can have a negative factor.
    """
    if a.keys() <= _NO_NAMES:
        return bool(a.get((), 0) > -1)
    flat = _without_quotients(a)
    if flat is None:
        return False
    negative = [names for names, factor in flat.items() if factor < 0]
    work = len(flat) * (1 + sum(1 << len(names) for names in negative))
    if work > _MOST_WORK:
        return False
    _spend(work)
    parts = {part for names in negative for n in range(len(names) + 1) for part in itertools.combinations(names, n)}
    return all(_shifted_factor(flat, part) >= 0 for part in parts if part) and (
        not negative or _shifted_factor(flat, ()) > -1
    )


_answers: dict[frozenset[tuple[Term, int]], tuple[bool, int]] = {}  # and the terms that were looked at for them


def never_negative(extent: Whole) -> bool:
    """``at_least_zero`` of an extent.  Traces compare the same few extents time and again, so answers are kept; one
    that was kept counts for as much effort as if it were found anew."""
    if not isinstance(extent, Polynomial):
        return extent >= 0
    known = _answers.get(extent.terms)
    if known is not None:
        _spend(known[1])
        return known[0]
    before = _effort.spent
    answer = at_least_zero(_without_common_factor(bound(extent)))
    if len(_answers) >= _MOST_ANSWERS:
        _answers.clear()
    _answers[extent.terms] = answer, _effort.spent - before
    return answer


def _without_common_factor(a: Bound) -> Bound:
    """A sum that is negative for the same values of its symbols: divided by what all its terms have in common.

    Bounds of quotients are not rounded, so what they are off by grows with the factors: ``n//2 + (n+1)//2 - n`` is 0 as
    it is seen, since it is above -1, and of three times as much the same cannot be seen.
    """
    if not any(isinstance(name, Quotient) for names in a for name in names):
        return a
    shared = functools.reduce(operator.and_, (Counter(n for n in names if isinstance(n, str)) for names in a))
    if shared:
        part = tuple(shared.elements())
        a = {without(names, part) or (): factor for names, factor in a.items()}
    common = math.gcd(*(factor for names, factor in a.items() if names))
    return {names: factor // common for names, factor in a.items()}  # the constant down: the rest is a whole number


def _shifted_factor(a: Bound, part: Names) -> Any:
    """The factor of a product of m, where LEAST + m stands for each symbol."""
    total = 0
    for names, factor in a.items():
        ways = 1
        for name in set(part):
            ways *= math.comb(names.count(name), part.count(name))
        if ways:
            total += factor * ways * LEAST ** (len(names) - len(part))
    return total


def _without_quotients(a: Bound) -> Bound | None:
    """At most ``a``: with bounds in place of quotients.  None where one has no bound, or that would be too long."""
    while len(a) <= _MOST_TERMS:
        _spend(len(a))
        quotient = next(((n, q) for n in a for q in n if isinstance(q, Quotient) and a[n]), None)
        if quotient is None:
            return a
        names, atom = quotient
        factor = a[names]
        replacement = _quotient_bound(atom, lower=factor > 0)
        if replacement is None:
            return None
        rest = without(names, (atom,))
        assert rest is not None
        a = plus({n: f for n, f in a.items() if n != names}, times(replacement, factor, rest))
    return None


def _quotient_bound(atom: Quotient, lower: bool) -> Bound | None:
    """A bound of a quotient of extents: a broken one, since it is a bound of what is not rounded."""
    value = {names: factor for (_, names), factor in atom.value.terms}
    if isinstance(atom.divisor, int):
        shifted = plus(value, {(): 1 - atom.divisor}) if lower else value
        return {names: Fraction(factor, atom.divisor) for names, factor in shifted.items()}
    if not at_least_zero(value):
        return None
    return {} if lower else times(value, Fraction(1, LEAST))


def quotient_below(low: Bound, divisor: Whole) -> Bound:
    """A lower bound of ``value // divisor`` for ``value >= low`` and ``value >= 0``."""
    if isinstance(divisor, int):
        least = {names: factor // divisor for names, factor in low.items()}
        if at_least_zero(least):
            return least
    return {}


def quotient_above(high: Bound, divisor: Whole) -> Bound | None:
    """An upper bound of ``value // divisor`` for ``0 <= value <= high``; None where none is seen."""
    if set(high) <= {()}:
        most = high.get((), 0)
        return {(): most // divisor} if isinstance(divisor, int) else {(): most}
    if isinstance(divisor, int):
        return {names: -(-factor // divisor) for names, factor in high.items()}
    whole, rest = divided({(None, names): factor for names, factor in high.items()}.items(), divisor)
    above = {names: factor for (_, names), factor in whole.items()}
    left = {names: factor for (_, names), factor in rest.items()}
    if set(left) <= {()}:
        most = left.get((), 0)
        return plus(above, {(): max(most, -1)})  # less than nothing over n rounds down to -1 at most
    return None


# ---- text


def text(extent: Whole, name: Callable[[str], str] = str) -> str:
    """An extent as it prints: ``2*n*m+n-1``, ``n//2``, ``3*((n+1)//2)``.  ``name`` spells symbols."""
    if isinstance(extent, int):
        return str(extent)
    return _sum_text(printed_products(extent), name)


def printed_products(value: Polynomial) -> list[tuple[int, Names]]:
    """The terms in the order in which they print: larger products first."""
    return [(factor, names) for (_, names), factor in sorted(value.terms, key=_printed_first)]


def _sum_text(products: Iterable[tuple[int, Names]], name: Callable[[str], str]) -> str:
    parts: list[str] = []
    for factor, names in products:
        spelled = [name(n) if isinstance(n, str) else _division_text(n, name) for n in names]
        if abs(factor) != 1 or len(names) > 1 or (factor < 0 and not parts):
            spelled = [s if isinstance(n, str) else f"({s})" for n, s in zip(names, spelled)]
        if abs(factor) != 1 or not names:
            spelled.insert(0, str(abs(factor)))
        parts.append(("-" if factor < 0 else "+" if parts else "") + "*".join(spelled))
    return "".join(parts) or "0"


def _division_text(division: Quotient, name: Callable[[str], str]) -> str:
    return f"{_operand(division.value, name)}//{_operand(division.divisor, name)}"


def _operand(value: Polynomial | int, name: Callable[[str], str]) -> str:
    """A number or a symbol as it is, anything else in brackets."""
    if isinstance(value, int):
        return str(value)
    products = printed_products(value)
    spelled = _sum_text(products, name)
    plain = not products or (len(products) == 1 and (not products[0][1] or _is_symbol(products[0])))
    return spelled if plain else f"({spelled})"


def _is_symbol(product: tuple[int, Names]) -> bool:
    factor, names = product
    return factor == 1 and len(names) == 1 and isinstance(names[0], str)


def _printed_first(item: tuple[Term, int]) -> Any:
    """Larger products first; an order that multiplication keeps."""
    (_, names), _ = item
    return -len(names), sorted(map(name_order, names))
