"""Polynomials over symbolic extents, as bounds of index expressions.

A polynomial is a dict from products of symbols (their sorted names) to whole factors; every symbol is an extent, and
what is said of a polynomial holds wherever all of them are at least 1: loops over no elements never turn.
"""

from __future__ import annotations

import itertools

from hybridflow.compiler.ir.types import Extent, Shape, factors

Names = tuple[str, ...]
Polynomial = dict[Names, int]


def polynomial(shape: Shape) -> Polynomial:
    """The product of extents."""
    factor, names = factors(shape)
    return {names: factor}


def plus(a: Polynomial, b: Polynomial) -> Polynomial:
    total = dict(a)
    for names, factor in b.items():
        total[names] = total.get(names, 0) + factor
    return total


def times(a: Polynomial, factor: int, names: Names = ()) -> Polynomial:
    """``a`` times a whole number and a product of symbols."""
    return {tuple(sorted((*own, *names))): own_factor * factor for own, own_factor in a.items()}


def at_least_zero(a: Polynomial) -> bool:
    """Whether ``a >= 0`` can be seen: with 1 + m for each symbol, no factor is negative."""
    shifted: Polynomial = {}
    for names, factor in a.items():
        for count in range(len(names) + 1):
            for part in itertools.combinations(names, count):
                shifted[part] = shifted.get(part, 0) + factor
    return all(factor >= 0 for factor in shifted.values())


def quotient_below(low: Polynomial, divisor: Extent) -> Polynomial:
    """A lower bound of ``value // divisor`` for ``value >= low`` and ``value >= 0``."""
    if isinstance(divisor, int):
        least = {names: factor // divisor for names, factor in low.items()}
        if at_least_zero(least):
            return least
    return {}


def quotient_above(high: Polynomial, divisor: Extent) -> Polynomial | None:
    """An upper bound of ``value // divisor`` for ``0 <= value <= high``; None where none is seen."""
    if set(high) <= {()}:
        most = high.get((), 0)
        return {(): most // divisor} if isinstance(divisor, int) else {(): most}
    if isinstance(divisor, int):
        return {names: -(-factor // divisor) for names, factor in high.items()}
    whole: Polynomial = {}
    rest: Polynomial = {}
    for names, factor in high.items():
        if divisor.name in names:
            left = list(names)
            left.remove(divisor.name)
            whole[tuple(left)] = factor
        else:
            rest[names] = factor
    if set(rest) <= {()}:
        least = rest.get((), 0)
        return plus(whole, {(): max(least, -1)})  # less than nothing over n rounds down to -1 at most
    return None
