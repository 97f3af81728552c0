"""Which positions are permutations: loops that compute them reach every element once."""

from __future__ import annotations

from hybridflow.compiler.index.index_expr import Atom, IndexExpr, LoopVar, Quotient, Remainder
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.extents import Extent, never_negative


def is_permutation(position: IndexExpr, space: Space) -> bool:
    """Whether the loops of ``space`` are sure to reach, at ``position``, each of as many elements as they have turns.

    That is so where the counters are taken apart into digits, of which none is left out.  The digits are put together
    again as those of a number, in any order and each counted up or down: what transposes, reshapes and reverses do.
    """
    parts: dict[LoopVar, list[tuple[int, Extent]]] = {var: [] for var in space.vars if var.extent != 1}
    radix: dict[Extent, Extent] = {}
    for atom, scale in position.strides.items():
        if atom is None:
            continue  # positions stay within the array, so what counts down starts at its last element
        split = digit(atom)
        stride = scale if never_negative(scale) else scale * -1
        if split is None or split[0] not in parts or stride in radix:
            return False
        var, first, radix[stride] = split
        parts[var].append((first, radix[stride]))
    return all(_whole(var, digits) for var, digits in parts.items()) and _number(radix)


def digit(atom: Atom) -> tuple[LoopVar, int, Extent] | None:
    """(counter, step, base) of ``counter // step % base``; None for another expression."""
    if isinstance(atom, LoopVar):
        return atom, 1, atom.extent
    if not isinstance(atom, (Quotient, Remainder)) or len(atom.value.terms) != 1:
        return None
    (((inner, names), factor),) = atom.value.terms
    split = digit(inner) if factor == 1 and not names else None
    if split is None:
        return None
    var, step, base = split
    if not isinstance(base, int) or not isinstance(atom.divisor, int) or base % atom.divisor:
        return None
    if isinstance(atom, Remainder):
        return var, step, atom.divisor
    return var, step * atom.divisor, base // atom.divisor


def _whole(var: LoopVar, digits: list[tuple[int, Extent]]) -> bool:
    """Whether the digits are all of a counter's."""
    if not isinstance(var.extent, int):
        return digits == [(1, var.extent)]
    step = 1
    for first, base in sorted(digits, key=lambda digit: digit[0]):
        if first != step or not isinstance(base, int):
            return False
        step *= base
    return step == var.extent


def _number(radix: dict[Extent, Extent]) -> bool:
    """Whether digits of these bases at these strides make a number of their own: each stride is the product of the
    bases below it."""
    left = dict(radix)
    stride: Extent = 1
    while left:
        base = left.pop(stride, None)
        if base is None:
            return False
        stride = stride * base
    return True
