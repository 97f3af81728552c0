"""Extents: whole numbers that are known, or polynomials over symbols.

One algebra (``polynomial``) serves the shapes of types, byte sizes and (in ``index.index_expr``) positions.

An *extent* is an int where it is known, else a ``Dim``: a polynomial without atoms that is no number.  Arithmetic on
Dims (``+ - * // %`` with ints and each other) gives extents again, so ``n + 1 - n`` is the int 1.

A symbol means a whole number of at least ``LEAST``: extents 0 and 1, which change broadcasting and the order of sums,
have programs of their own.  What is said of a polynomial (``at_least_zero``, ``compare``) holds for all such numbers.

    value_at(x, sizes)  the number, where symbols have these values
    compare(a, b)       whether a >= b: True, False, or None where it depends
    fits(x)             whether programs calculate x exactly, in 64 bits
    holds(x)            whether x >= 0, decided by the trace that is going on where it depends
    required(x)         the same where an index map relies on it, which a program checks when it is called
    larger(a, b)        an extent that is at least as large as both
    aligned(x, to)      x, or a little more, a multiple of ``to``
    at_least(x, n)      1 where x >= n, else 0
    symbols(x)          the names of its symbols, sorted
    replaced(x, n, y)   x with y in place of the symbol n
"""

from __future__ import annotations

import contextlib
import math
import numbers
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Union

from hybridflow.compiler.ir.polynomial import (
    LEAST as LEAST,
    Name,
    Names,
    Polynomial,
    Quotient,
    Term,
    divided,
    multiplied,
    name_order,
    never_negative,
    printed_products,
    terms_of,
    text,
)
from hybridflow.errors import SymbolicExtentError, asked_by_user

_LARGE = 4  # times what a size is to be a multiple of: factors of its symbols that may be rounded up by themselves
_FAR = 1 << 62  # more than any extent


class Dim(Polynomial):
    """An extent that is not known: ``Dim("n")`` is a symbol, arithmetic makes expressions of it.

    Two Dims are one extent where they are equal polynomials; a Dim is no int.  While a function is traced, comparisons
    that depend on the symbols are answered as the call that is traced has them (see ``Judge``), and so is int(n).
    """

    __slots__ = ("_text",)

    def __init__(self, name: str) -> None:
        super().__init__({(None, (name,)): 1})
        self._text: str | None = None

    @property
    def symbol(self) -> str | None:
        """The name of a plain symbol; None for an expression."""
        if len(self.terms) == 1:
            (((_, names), factor),) = self.terms
            if factor == 1 and len(names) == 1 and isinstance(names[0], str):
                return names[0]
        return None

    @property
    def products(self) -> list[tuple[int, Names]]:
        """The terms in the order in which they print: larger products first."""
        return printed_products(self)

    def __str__(self) -> str:
        if self._text is None:
            self._text = text(self, str)
        return self._text

    __repr__ = __str__

    @staticmethod
    def of_name(name: Name) -> Dim:
        """A symbol, or a quotient, by itself."""
        result = _extent({(None, (name,)): 1})
        assert isinstance(result, Dim)
        return result

    def __reduce__(self) -> Any:
        return from_products, (self.products,)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Polynomial) and self.terms == other.terms:
            return True
        if not isinstance(other, (int, Dim)):
            return False
        judge_here = _judge()
        return judge_here is not None and judge_here.equal(self, other)

    def __hash__(self) -> int:
        """Members of the user's sets, and keys of their dicts, are numbers that may be equal: the judge is asked."""
        if _judge() is not None and asked_by_user():
            return hash(int(self))
        return Polynomial.__hash__(self)

    def __ge__(self, other: object) -> Any:
        least = _rounded(other, math.ceil)
        return NotImplemented if least is None else holds(self - least)

    def __gt__(self, other: object) -> Any:
        most = _rounded(other, math.floor)
        return NotImplemented if most is None else holds(self - most - 1)

    def __le__(self, other: object) -> Any:
        most = _rounded(other, math.floor)
        return NotImplemented if most is None else not holds(self - most - 1)

    def __lt__(self, other: object) -> Any:
        least = _rounded(other, math.ceil)
        return NotImplemented if least is None else not holds(self - least)

    def __index__(self) -> int:
        return _required_judge(f"the number that {self} is").number(self)

    __int__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __bool__(self) -> bool:
        return self != 0

    def __add__(self, other: Any) -> Any:
        operand = _whole(other)
        if operand is None:
            return self._as_number(operator.add, other)
        total = dict(self.terms)
        for term, factor in terms_of(operand):
            total[term] = total.get(term, 0) + factor
        return _extent(total)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else self * -1

    def __sub__(self, other: object) -> Any:
        operand = _whole(other)
        return self._as_number(operator.sub, other) if operand is None else self + operand * -1

    def __rsub__(self, other: object) -> Any:
        operand = _whole(other)
        return self._as_number(operator.sub, other, True) if operand is None else self * -1 + operand

    def __mul__(self, other: object) -> Any:
        operand = _whole(other)
        if operand is None:
            return self._as_number(operator.mul, other)
        total: dict[Term, int] = {}
        for (_, names), factor in self.terms:
            for (_, more), scale in terms_of(operand):
                term = (None, multiplied(names, more))
                total[term] = total.get(term, 0) + factor * scale
        return _extent(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Any:
        operand = _whole(other)
        return self._as_number(operator.floordiv, other) if operand is None else _floor(self, operand)

    def __rfloordiv__(self, other: object) -> Any:
        operand = _whole(other)
        return self._as_number(operator.floordiv, other, True) if operand is None else _floor(operand, self)

    def __mod__(self, other: object) -> Any:
        operand = _whole(other)
        return self._as_number(operator.mod, other) if operand is None else self - _floor(self, operand) * operand

    def __rmod__(self, other: object) -> Any:
        operand = _whole(other)
        return self._as_number(operator.mod, other, True) if operand is None else operand - _floor(operand, self) * self

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __truediv__(self, other: object) -> Any:
        return self._as_number(operator.truediv, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._as_number(operator.truediv, other, True)

    def __pow__(self, other: object) -> Any:
        if isinstance(other, int) and 0 <= other <= 8:
            return math.prod([self] * other)
        return self._as_number(operator.pow, other)

    def __rpow__(self, other: object) -> Any:
        return self._as_number(operator.pow, other, True)

    def _as_number(self, operation: Callable[[Any, Any], Any], other: object, swapped: bool = False) -> Any:
        """What has no expression: a float that the judge makes of it, or else the trace is for one value of the
        extent."""
        if not isinstance(other, (int, float, Dim)):
            return NotImplemented
        if operation in _OF_FLOATS and (operation is operator.truediv or isinstance(other, float)):
            number = _required_judge(f"the number that {self} is").as_float(self)
            if number is not None:
                return operation(other, number) if swapped else operation(number, other)
        value, operand = int(self), int(other) if isinstance(other, Dim) else other
        return operation(operand, value) if swapped else operation(value, operand)


Extent = Union[int, Dim]
_OF_FLOATS = (operator.add, operator.sub, operator.mul, operator.truediv)
_MOST = 2**63  # larger than any extent


def _whole(value: object) -> Extent | None:
    """What arithmetic on Dims takes: ints, NumPy's too, and Dims; None for anything else."""
    if isinstance(value, (int, Dim)):
        return value
    return int(value) if isinstance(value, numbers.Integral) else None


def _rounded(value: object, how: Callable[[float], int]) -> Extent | None:
    """A number to compare with, rounded; None for what is no number."""
    if isinstance(value, float) and value == value:
        return how(min(max(value, -_MOST), _MOST))
    return _whole(value)


def _extent(terms: Mapping[Term, int]) -> Extent:
    """The extent with these terms: an int where no symbol is left."""
    nonzero = {term: factor for term, factor in terms.items() if factor}
    if not nonzero:
        return 0
    if len(nonzero) == 1 and (None, ()) in nonzero:
        return nonzero[None, ()]
    dim = Dim.__new__(Dim)
    Polynomial.__init__(dim, nonzero)
    dim._text = None
    return dim


def as_extent(value: Polynomial) -> Extent:
    """A polynomial without atoms as an extent."""
    return value if isinstance(value, Dim) else _extent(dict(value.terms))


def dividend(of: Quotient) -> Extent:
    """What is divided, where that is an extent."""
    return as_extent(of.value)


def from_products(products: Iterable[tuple[int, Names]]) -> Extent:
    """The extent that is the sum of these factors times names."""
    total: dict[Term, int] = {}
    for factor, names in products:
        total[None, names] = total.get((None, names), 0) + factor
    return _extent(total)


def products_of(extent: Extent) -> list[tuple[int, Names]]:
    """The terms of an extent as factors and names, the constant first, then in the order of their names."""
    if isinstance(extent, int):
        return [(extent, ())] if extent else []
    return sorted(((f, names) for (_, names), f in extent.terms), key=lambda p: tuple(map(name_order, p[1])))


def symbols(extent: Extent) -> tuple[str, ...]:
    """The names of the symbols, sorted."""
    names_in: set[str] = set()

    def collect(part: Any) -> None:
        for (_, names), _ in terms_of(part):
            for name in names:
                if isinstance(name, str):
                    names_in.add(name)
                else:
                    collect(name.value)
                    collect(name.divisor)

    collect(extent)
    return tuple(sorted(names_in))


def known(shape: Iterable[Extent]) -> tuple[int | None, ...]:
    """The shape with None for extents that are symbolic, of whose kind code that is traced is told nothing else."""
    return tuple(None if isinstance(extent, Dim) else extent for extent in shape)


def calculated(extent: Extent) -> Iterator[Extent]:
    """What is at least as large as each number that is met on the way to the value of an extent: the sums of the sizes
    of its terms, and of those of all that is divided in it."""
    terms = dict(terms_of(extent))
    for _, names in terms:
        for name in names:
            if not isinstance(name, str):
                yield from calculated(as_extent(name.value))
                yield from calculated(name.divisor)
    yield _extent({term: abs(factor) for term, factor in terms.items()})


def affine(extent: Extent) -> tuple[str, int, int] | None:
    """(symbol, scale, offset) of ``scale * symbol + offset`` with a scale of 1 or more; None for other extents."""
    if isinstance(extent, int):
        return None
    offset, linear = 0, None
    for factor, names in extent.products:
        if not names:
            offset = factor
        elif linear is None and len(names) == 1 and isinstance(names[0], str) and factor > 0:
            linear = names[0], factor
        else:
            return None
    return None if linear is None else (*linear, offset)


# ---- division


def _floor(value: Extent, divisor: Extent) -> Extent:
    """``value // divisor`` as in Python, whatever the sign of the divisor; where nobody can be asked for that, it is an
    extent that values have, and not 0.  Raises ZeroDivisionError."""
    if divisor == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if isinstance(divisor, int) or _judge() is None or holds(divisor):
        return quotient(value, divisor)
    return quotient(value * -1, divisor * -1)


def quotient(value: Extent, divisor: Extent) -> Extent:
    """``floor(value / divisor)`` by a divisor that is not negative, and not 0."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value // divisor
    if isinstance(divisor, int):
        return _over_number(value, divisor)
    whole, rest = divided(terms_of(value), divisor)
    left = _extent(rest)
    # The rest moves by whole divisors to where it is known to lie, if that is near.
    for back in (0, 1, -1):
        low, room = left + divisor * back, divisor - 1 - left - divisor * back
        if never_negative(low) and never_negative(room):
            return _extent(whole) - back
    if not never_negative(left):
        # Products of names are never negative, so what is divided may not be.
        if never_negative(left * -1) or not holds(left):
            below = left * -1 - 1
            return _extent(whole) - (1 + quotient(below, divisor) if holds(below) else 0)  # -1 at least, or it is 0
        if compare(divisor - 1, left):
            return _extent(whole)
    return _extent(whole) + _extent({(None, (Quotient(_polynomial(left), divisor),)): 1})


def _polynomial(extent: Extent) -> Polynomial:
    return extent if isinstance(extent, Dim) else Polynomial({(None, ()): extent})


def _over_number(value: Extent, divisor: int) -> Extent:
    """``value // divisor`` in one form: what is left to divide has factors from 0 to divisor - 1, without a common
    divisor, and is no quotient itself."""
    if divisor == 0:
        raise ZeroDivisionError("an extent is divided by 0")
    if divisor < 0:
        return _over_number(value * -1, -divisor)
    terms = dict(terms_of(value))
    whole = _extent({term: factor // divisor for term, factor in terms.items()})
    rest = {term: factor % divisor for term, factor in terms.items() if factor % divisor}
    start = rest.pop((None, ()), 0)
    if not rest:
        return whole
    common = math.gcd(divisor, *rest.values())
    left = _extent({**{term: factor // common for term, factor in rest.items()}, (None, ()): start // common})
    divisor //= common
    if divisor == 1:
        return whole + left
    if common > 1:
        return whole + _over_number(left, divisor)
    inner = [names for (_, names), factor in rest.items() if factor == 1 and len(names) == 1]
    if len(rest) == 1 and inner and isinstance(inner[0][0], Quotient) and isinstance(inner[0][0].divisor, int):
        nested = inner[0][0]
        return whole + _over_number(as_extent(nested.value) + start * nested.divisor, nested.divisor * divisor)
    if never_negative(left) and never_negative(divisor - 1 - left):
        return whole
    return whole + _extent({(None, (Quotient(_polynomial(left), divisor),)): 1})


def compare(a: Extent, b: Extent) -> bool | None:
    """Whether ``a >= b``; None where that depends on the symbols."""
    if never_negative(a - b):
        return True
    return False if never_negative(b - a - 1) else None


def equal(a: Extent, b: Extent) -> bool | None:
    """Whether two extents are one number; None where that depends on the symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a - b, int):
        return not a - b
    if never_negative(a - b) and never_negative(b - a):  # as n - (n + 1) // 2 and n // 2 are
        return True
    return False if never_negative(a - b - 1) or never_negative(b - a - 1) else None


class Judge(Protocol):
    """What answers where an answer depends on the symbols: the trace that is going on, which holds only for calls in
    which the answer is the same (see ``hybridflow.tracing.shape_env``)."""

    def at_least_zero(self, extent: Extent) -> bool: ...

    def equal(self, a: Extent, b: Extent) -> bool: ...

    def number(self, extent: Dim) -> int: ...

    def required(self, extent: Dim) -> bool:
        """Whether ``extent >= 0``, where elements are read at positions that are in range only if it is."""

    def fits(self, extent: Dim) -> bool:
        """Whether programs calculate the number exactly, in 64 bits with a sign."""

    def as_float(self, extent: Dim) -> Any:
        """Python's float of the number, where the trace need not know that; or None."""


def _nobody() -> Judge | None:
    return None


judge: Callable[[], Judge | None] = _nobody
"""Finds who is to answer; set by the front end."""


class Conditions:
    """A judge that knows that some extents are 0 or more, as ``values``, and whose answers follow from that alone.

    What index maps rely on and does not follow is kept as ``missing``.
    """

    def __init__(self, values: Iterable[Extent] = ()) -> None:
        self.values = list(values)
        self.missing: list[Dim] = []

    def at_least_zero(self, extent: Extent) -> bool:
        known = follows(extent, self.values)
        if known is None:
            raise SymbolicExtentError("extent", f"whether {extent} is negative depends on its symbols.")
        return known

    def equal(self, a: Extent, b: Extent) -> bool:
        difference = a - b
        return follows(difference, self.values) is True and follows(difference * -1, self.values) is True

    def number(self, extent: Dim) -> int:
        raise SymbolicExtentError("extent", f"the number that {extent} is depends on its symbols.")

    def required(self, extent: Dim) -> bool:
        known = follows(extent, self.values)
        if known is None:
            self.missing.append(extent)
        return known is not False

    def fits(self, extent: Dim) -> bool:
        return True

    def as_float(self, extent: Dim) -> Any:
        return None


def follows(extent: Extent, conditions: Sequence[Extent]) -> bool | None:
    """Whether ``extent >= 0`` where all ``conditions`` are; None where that does not follow."""
    for sign, answer in ((extent, True), (extent * -1 - 1, False)):
        if never_negative(sign):
            return answer
        for k, one in enumerate(conditions):
            if never_negative(sign - one) or any(never_negative(sign - one - other) for other in conditions[k:]):
                return answer
    return None


@contextlib.contextmanager
def judged_by(other: Judge) -> Iterator[None]:
    """Let ``other`` answer in this thread."""
    before = getattr(_judges, "current", None)
    _judges.current = other
    try:
        yield
    finally:
        _judges.current = before


class _Judges(threading.local):
    current: Judge | None = None


_judges = _Judges()


def _judge() -> Judge | None:
    return _judges.current or judge()


def holds(extent: Extent) -> bool:
    """Whether ``extent >= 0``, as is known or as the judge says.  Raises SymbolicExtentError if nobody can say."""
    if never_negative(extent):
        return True
    if never_negative(extent * -1 - 1):
        return False
    return _required_judge(f"whether {extent} is negative").at_least_zero(extent)


def required(extent: Extent) -> bool:
    """Whether ``extent >= 0``, which an index map relies on to stay inside of its array.

    Where that depends on the symbols the judge answers, and the program is one for calls of which it is true.  Where
    nobody is asked it is taken for granted: passes and derivatives move index maps that were checked when they were
    traced.
    """
    if isinstance(extent, int):
        return extent >= 0
    if never_negative(extent):
        return True
    if never_negative(extent * -1 - 1):
        return False
    judge_here = _judge()
    return judge_here is None or judge_here.required(extent)


def fits(extent: Dim) -> bool:
    """Whether programs calculate an extent exactly, in 64 bits with a sign; taken for granted where nobody is asked."""
    judge_here = _judge()
    return judge_here is None or judge_here.fits(extent)


def _required_judge(question: str) -> Judge:
    result = _judge()
    if result is None:
        raise SymbolicExtentError("extent", f"{question} depends on its symbols.")
    return result


# ---- numbers for symbols


def value_at(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The number, where symbols have these values.  Raises KeyError for a symbol without one."""
    if isinstance(extent, int):
        return extent
    total = 0
    for (_, names), factor in extent.terms:
        for name in names:
            if isinstance(name, str):
                factor *= sizes[name]
            else:
                factor *= value_at(as_extent(name.value), sizes) // value_at(name.divisor, sizes)
        total += factor
    return total


def substituted(extent: Extent, values: Mapping[str, Extent]) -> Extent:
    """The extent with other extents in place of its symbols.

    Raises KeyError for a symbol without one, and SymbolicExtentError where a quotient becomes one whose sign is not
    known and there is no call to ask (see ``Judge``).
    """
    if isinstance(extent, int):
        return extent
    total: Extent = 0
    for (_, names), factor in extent.terms:
        part: Extent = factor
        for name in names:
            if isinstance(name, str):
                part = part * values[name]
            else:
                value = substituted(as_extent(name.value), values)
                part = part * quotient(value, substituted(name.divisor, values))
        total = total + part
    return total


def replaced(extent: Extent, name: str, value: Extent) -> Extent:
    """The extent with another in place of one symbol; the other symbols stay.  Raises what ``substituted`` does."""
    return substituted(extent, {symbol: Dim(symbol) for symbol in symbols(extent)} | {name: value})


def larger(a: Extent, b: Extent) -> Extent:
    """At least the larger of two extents that are not negative, whatever the symbols are."""
    x, y = dict(terms_of(a)), dict(terms_of(b))
    if not any(x.values()):
        return b
    if not any(y.values()):
        return a
    return _extent({term: max(x.get(term, 0), y.get(term, 0)) for term in (*x, *y)})


def aligned(extent: Extent, to: int) -> Extent:
    """At least ``extent``, and a multiple of ``to``, whatever the symbols are.  Factors are rounded up where that adds
    little; those of small ones are divided, or rows of a few bytes would take many times as much."""
    if isinstance(extent, int):
        return -(-extent // to) * to
    large: dict[Term, int] = {}
    small: dict[Term, int] = {}
    for term, factor in terms_of(extent):
        if abs(factor) < _LARGE * to:
            small[term] = factor
        else:
            large[term] = -(-factor // to) * to
    return _extent(large) + quotient(_extent(small) + (to - 1), to) * to


def at_least(extent: Extent, least: int) -> Extent:
    """1 where an extent, which is not negative, is ``least`` or more, else 0."""
    return quotient(extent + (_FAR - least), _FAR)
