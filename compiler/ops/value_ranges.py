"""What numbers the elements of a value can be: bounds that follow from dtypes, and from what ops say of theirs.

The fact ``bounds`` of an op is a function of its result's dtype, of the bounds of its inputs, and of its attributes;
the rules here are for several ops.  It answers with those of the exact result; where these leave the dtype, integers
wrap, and nothing is known.  Of floats they are the bounds of numbers: an element may be NaN whatever they are.  What is
chosen where it compares in some way with something else is bounded by that, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, Union

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops import reference_arrays
from hybridflow.compiler.ops.op_table import Kind

Bounds = tuple[Union[int, float], Union[int, float]]

_MOST = 64  # nodes that are looked at for one answer


def of_dtype(dtype: np.dtype) -> Bounds:
    """The bounds of all numbers of a dtype."""
    if dt.is_bool(dtype):
        return 0, 1
    if dt.is_integer(dtype) or isinstance(dt.DEF[dtype].stored, dt.MiniInt):
        return dt.limits(dtype)
    return -math.inf, math.inf


def within(said: Bounds, dtype: np.dtype) -> Bounds:
    """Bounds of an exact result as those of numbers of a dtype."""
    whole = of_dtype(dtype)
    return said if whole[0] <= said[0] and said[1] <= whole[1] else whole


_NOTHING: Mapping[Node, Bounds] = {}


def bounds(
    node: Node,
    unknown: Callable[[Node], bool] = lambda node: False,
    given_bounds: Mapping[Node, Bounds] = _NOTHING,
    where_true: Node | None = None,
) -> Bounds:
    """The least and the largest number that may be among the elements of ``node``; where a condition is there, of those
    for which it is ``where_true``.  Of nodes that are ``unknown`` nothing is known but their dtype; those of others are
    ``given_bounds``."""
    known: dict[Node, Bounds] = {}

    def of(node: Node) -> Bounds:
        if node in given_bounds:
            return given_bounds[node]
        if node not in known:
            known[node] = of_dtype(node.dtype)  # while those are sought that follow from its inputs
            if len(known) <= _MOST and not (node.is_parameter or unknown(node)):
                known[node] = within(said(node), node.dtype)
        return known[node]

    def said(node: Node) -> Bounds:
        if node.op.kind is Kind.VIEW:
            return of(node.inputs[0])
        if node.op.name == "where":
            condition, x, y = node.inputs
            return union(where(condition, x), of(y))
        rule: Any = node.op.facts.get("bounds")
        return of_dtype(node.dtype) if rule is None else rule(node.dtype, *map(of, node.inputs), **node.attrs)

    def where(condition: Node, x: Node) -> Bounds:
        """Bounds of ``x`` where a condition holds."""
        low, high = of(x)
        if condition.is_parameter or dt.is_float(x.dtype):
            return low, high
        if condition.op.name == "logical_and":
            sides = [where(side, x) for side in condition.inputs]
            low, high = max(side[0] for side in sides), min(side[1] for side in sides)
        elif condition.op.name in _DECIDED_COMPARISONS and x in condition.inputs:
            a, b = condition.inputs
            least, most = (
                _DECIDED_COMPARISONS[condition.op.name]
                if x is a
                else _DECIDED_COMPARISONS[_MIRRORED_COMPARISONS[condition.op.name]]
            )
            other = of(b if x is a else a)
            low = low if least is None else max(low, other[0] + least)
            high = high if most is None else min(high, other[1] + most)
        return (low, high) if low <= high else of(x)  # it never holds

    return of(node) if where_true is None else where(where_true, node)


def union(x: Bounds, y: Bounds) -> Bounds:
    return min(x[0], y[0]), max(x[1], y[1])


# How much more than the other one, at least and at most, an integer is that compares so.
_DECIDED_COMPARISONS: dict[str, tuple[int | None, int | None]] = {
    "equal": (0, 0),
    "less": (None, -1),
    "less_equal": (None, 0),
    "greater": (1, None),
    "greater_equal": (0, None),
}
_MIRRORED_COMPARISONS = {"equal": "equal", "less": "greater", "less_equal": "greater_equal"}
_MIRRORED_COMPARISONS.update({turned: name for name, turned in _MIRRORED_COMPARISONS.items()})


def decided_comparison(name: str, x: Bounds, y: Bounds) -> bool | None:
    """Whether integers within these bounds compare in some way, where it is so for all of them, or for none."""
    if name == "not_equal":
        same = decided_comparison("equal", x, y)
        return None if same is None else not same
    least, most = _DECIDED_COMPARISONS[name]
    below, above = x[0] - y[1], x[1] - y[0]  # the least and the most that the first one may be larger
    if (least is None or below >= least) and (most is None or above <= most):
        return True
    if (least is not None and above < least) or (most is not None and below > most):
        return False
    return None


# ---- rules


def of_first(dtype: np.dtype, x: Bounds, *others: Bounds, **attrs: object) -> Bounds:
    """Elements of the first input."""
    return x


def at_ends(
    function: Callable[[int, int], int], least: int | None = None
) -> Callable[[np.dtype, Bounds, Bounds], Bounds]:
    """A function of two integers that rises or falls in each of them: it is extreme where they are.  Nothing is known
    where the second one may be below ``least``."""

    def rule(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
        if dt.is_float(dtype) or (least is not None and y[0] < least):
            return of_dtype(dtype)
        corners = [function(int(a), int(b)) for a, b in itertools.product(x, y)]
        return min(corners), max(corners)

    return rule


def negative(dtype: np.dtype, x: Bounds) -> Bounds:
    return -x[1], -x[0]


def absolute(dtype: np.dtype, x: Bounds) -> Bounds:
    return max(x[0], -x[1], 0), max(-x[0], x[1])


def power(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    """Of integers with exponents that are no more than a dtype has bits."""
    if dt.is_float(dtype) or y[0] < 0 or y[1] > 8 * dtype.itemsize:
        return of_dtype(dtype)
    most = max(abs(int(x[0])), abs(int(x[1])), 1) ** int(y[1])
    return (0 if x[0] >= 0 else -most), most


def minimum(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    return min(x[0], y[0]), min(x[1], y[1])


def maximum(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    return max(x[0], y[0]), max(x[1], y[1])


def remainder(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    """Of integers by positive ones."""
    if dt.is_float(dtype) or y[0] < 1:
        return of_dtype(dtype)
    return 0, min(x[1], y[1] - 1) if x[0] >= 0 else y[1] - 1


def common_bits(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    """Bits of numbers one of which has no sign."""
    highest = [b[1] for b in (x, y) if b[0] >= 0]
    return (0, min(highest)) if highest else of_dtype(dtype)


def all_bits(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    """Bits of two numbers, where neither has others than its last ones and its sign."""
    low, high = int(min(x[0], y[0])), int(max(x[1], y[1]))
    limit = 1 << max(high, ~low, 0).bit_length()
    return -limit if low < 0 else 0, limit - 1


def shifted_right(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    """Towards 0, or -1."""
    if y[0] >= 0 and y[1] < 8 * dtype.itemsize:
        return at_ends(lambda a, b: a >> b)(dtype, x, y)
    return min(x[0], 0), max(x[1], 0)


def shifted_left(dtype: np.dtype, x: Bounds, y: Bounds) -> Bounds:
    if y[0] >= 0 and y[1] < 8 * dtype.itemsize:
        return at_ends(lambda a, b: a << b)(dtype, x, y)
    return of_dtype(dtype)


def converted(source: Bounds, dtype: np.dtype) -> Bounds:
    """Bounds of numbers as another dtype: rounding keeps their order.  Integers wrap, and floats saturate or are NaN,
    which is 0."""
    if dt.is_float(dtype):
        low, high = (float(reference_arrays.convert(np.asarray(end), dtype)) for end in source)
        return low, high
    if dt.is_bool(dtype):
        return 0, 1  # everything but 0 is True
    least, most = of_dtype(dtype)
    if math.isinf(most):  # numbers that are stored and no more, or complex
        return least, most
    if all(isinstance(end, int) for end in source):
        return source
    low, high = (math.trunc(max(least, min(most, end))) for end in source)
    return min(low, 0), max(high, 0)


def elements(array: np.ndarray) -> Bounds:
    """Of the numbers in an array."""
    numbers = array if not dt.is_float(array.dtype) else array.astype(np.float64)
    numbers = numbers[~np.isnan(numbers)] if dt.is_float(numbers.dtype) else numbers
    if not numbers.size:
        return of_dtype(array.dtype)
    return numbers.min().item() + 0, numbers.max().item() + 0
