"""What a trace takes for granted of its symbolic extents, so that Python code may decide by them.

A trace is made for all values of its symbols.  The code may ask something that depends on them: is ``n - 3`` an extent,
is ``n > 100``, are ``n`` and ``m`` equal? The answer is that of the call which is traced, and the trace serves only
calls for which it is the same: what was answered is kept as ``conditions``.  An answer that ties a symbol to others
(``m`` equals ``n``, ``n`` is 17) changes the types of the arguments instead, and the trace starts again.

Extents of 0 and 1 are no symbolic ones (see ``ir.extents``), nor are expressions that may be 0 or 1: they are settled
here when they first appear, so that ``x[1:]`` of two rows has a trace of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from hybridflow.compiler.ir import extents
from hybridflow.compiler.ir.extents import LEAST, Dim, Extent, never_negative
from hybridflow.compiler.ir.polynomial import Quotient
from hybridflow.compiler.ir.types import MAX_SIZE, Shape, is_static, product, shape_fault
from hybridflow.core.context import now
from hybridflow.errors import DeferredQuestionError, ShapeError, SymbolicExtentError, TraceEnd, user_location

_TIMES = 1 << 12  # so many times the elements of an argument can be counted: that is less than 2**48 bytes
_WORD = 2**63 - 1  # the greatest number of a program
_TYPICAL = 1 << 20  # what a symbol is taken for where no call is traced: larger than any number written in a program


class RestartTrace(TraceEnd):
    """The trace that is going on knows more of its arguments now, and has to begin anew."""


class ShapeEnv:
    """``examples`` are the values of the symbols in the call that is traced; None where a trace is made without one.

    ``values`` are what symbols turned out to stand for, ``conditions`` extents that are 0 or more in each call that
    the trace serves.  ``paths`` say where each symbol was read, for messages.

    With ``fail_on_specialization`` a trace whose code needs numbers is given up: ``wanted`` are then their names, with
    the places in the user's code.
    """

    def __init__(self, examples: Mapping[str, int] | None, paths: Mapping[str, str], gives_up: bool = False) -> None:
        self.examples, self.paths, self.fail_on_specialization = examples, dict(paths), gives_up
        self.specializations: dict[str, str | None] = {}
        self.values: dict[str, Extent] = {}
        self.conditions: list[Dim] = []
        self.is_closed = False  # when the trace is over nothing may be added
        self.is_asked_by_user = False  # by code of a derivative, which must not be told that what is unknown is false
        self.must_restart = False
        self._settled: set[Dim] = set()
        self._counted: set[Dim] = set()
        self._arguments: list[Extent] = []  # numbers of elements
        self._later: list[tuple[str, Shape]] = []  # of derivatives, whose values may be larger than all before
        self._required_later: list[Dim] = []  # what index maps of derivatives rely on

    def restart(self) -> ShapeEnv:
        """For the next run: what symbols stand for is known from the beginning."""
        fresh = ShapeEnv(self.examples, self.paths, self.fail_on_specialization)
        fresh.values = dict(self.values)
        for value in self.values.values():
            if isinstance(value, Dim):
                fresh.at_least_zero(value - LEAST)
        return fresh

    def stands_for(self, name: str) -> Extent:
        """The extent that an argument has where its type was given the symbol ``name``."""
        return self.values.get(name, Dim(name))

    def close(self) -> None:
        """The trace is over: nothing is added from now on.  What follows from other conditions is left out."""
        self.is_closed = True
        for one in list(self.conditions):
            if any(never_negative(one - other) for other in self.conditions if other is not one):
                self.conditions.remove(one)

    # ---- questions

    def at_least_zero(self, extent: Extent) -> bool:
        """Whether ``extent >= 0``, from now on."""
        known = self._known(extent)
        if known is not None:
            return known
        assert isinstance(extent, Dim)
        answer = self.example(extent) >= 0
        self._must_be_open(f"whether {extent} is negative")
        condition = extent if answer else extent * -1 - 1
        self.conditions.append(condition)
        return answer

    def required(self, extent: Dim) -> bool:
        """Whether ``extent >= 0``, which an index map relies on, from now on.

        Without a call it is taken to be so.  What a derivative relies on is looked at before that runs.  Extents that
        are found when the program runs have no example: rules alone make index maps with those.
        """
        known = self._known(extent)
        if known is not None:
            return known
        if not self._has(extent):
            return True
        if self.is_closed:
            self._required_later.append(extent)
            return True
        if self.examples is None:
            self.conditions.append(extent)
            return True
        return self.at_least_zero(extent)

    def equal(self, a: Extent, b: Extent) -> bool:
        """Whether two extents are one, from now on."""
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        difference = a - b
        if isinstance(difference, int):
            return difference == 0
        if self._known(difference - 1) or self._known(difference * -1 - 1):
            return False
        if self._known(difference) and self._known(difference * -1):
            return True
        if not self._has(difference):
            return False
        if self.is_closed:
            if self.is_asked_by_user:
                self._must_be_open(f"whether {a} is {b}")
            return False
        # Without a call, shapes that meet are taken to be equal; a number is one among many.
        if self.example(difference) != 0 and (self.examples or isinstance(a, int) or isinstance(b, int)):
            above = self.example(difference) > 0
            self.conditions.append(difference - 1 if above else difference * -1 - 1)
            return False
        self._tie(difference)
        if self.must_restart:
            raise RestartTrace
        return True

    def meet(self, first: Shape, second: Shape) -> None:
        """Of shapes that have to broadcast, in a trace without a call: let an open extent be the number that it meets.
        The trace begins anew with it; where no extent can help, nothing happens."""
        if self.examples is not None or self.is_closed:
            return
        pairs = [(a, b) for a, b in zip(reversed(first), reversed(second)) if not (type(a) is int and a == 1)]
        differences = [a - b for a, b in pairs if not (type(b) is int and b == 1)]
        if any(type(difference) is int and difference for difference in differences):
            return
        for difference in differences:
            if isinstance(difference, Dim) and self._has(difference):
                self._tie(difference)
        if self.must_restart:
            raise RestartTrace

    def number(self, extent: Dim) -> int:
        """The value of an extent: the trace serves only calls in which it has this one.  Raises SymbolicExtentError
        where there is no call."""
        if self.examples is None:
            raise SymbolicExtentError(
                self.paths.get("", "extent"),
                f"the code needs {extent} as a number, and there is no call to take it from: {self.where(extent)} is "
                "open. Give the extent in the TensorSpec, or call the function with tensors.",
            )
        self._must_be_open(f"the value of {extent}")
        if self.fail_on_specialization:
            self.require_specialization(extents.symbols(extent))
        value = self.example(extent)
        self._tie(extent - value)
        raise RestartTrace

    def fits(self, extent: Dim) -> bool:
        """Whether an extent, and all that is met on the way to it, fits 64 bits with a sign, from now on."""
        return all(map(self._fits, extents.calculated(extent)))

    def _fits(self, size: Extent) -> bool:
        """Whether ``size`` fits.  Symbols themselves do, and what arguments have elements for."""
        if isinstance(size, int):
            return size <= _WORD
        line = extents.affine(size)
        if self.is_closed or (line is not None and line[1] * MAX_SIZE + line[2] <= _WORD):
            return True
        if any(never_negative(argument * _TIMES - size) for argument in self._arguments):
            return True
        if any(factor > _WORD for factor, _ in size.products):
            return False
        if self.examples is None and self._known(_WORD - size) is None:
            self.conditions.append(_WORD - size)
            return True
        return self.at_least_zero(_WORD - size)

    def as_float(self, extent: Dim) -> Any:
        """An extent as a float of the program, where numbers may be open; else None."""
        return make_float(extent, self) if self.fail_on_specialization and not self.is_closed else None

    def require_value(self, names: Iterable[str]) -> NoReturn:
        """Ask for these arguments' numbers: of the trace, or of a derivative."""
        names = list(names)
        self._must_be_open(f"the value of {', '.join(self.paths.get(name, name) for name in names)}")
        self.require_specialization(names)

    def require_specialization(self, names: Iterable[str]) -> NoReturn:
        """Give the trace up: its code needs the values of these arguments' numbers."""
        self.specializations.update(dict.fromkeys(names, user_location()))
        self.must_restart = True
        raise RestartTrace

    def specialize(self, stage: str, shape: Shape) -> None:
        """See to it of a value's shape that no symbolic extent is 0 or 1, and that its elements can be counted."""
        if is_static(shape):
            return
        for extent in shape:
            if isinstance(extent, Dim) and extent not in self._settled:
                self._settled.add(extent)
                if extent.symbol is None and not self.at_least_zero(extent - LEAST):
                    value = self.example(extent)
                    self._tie(extent - value)
                    if not self.must_restart:  # no argument's extent can be said by that
                        raise SymbolicExtentError(
                            stage,
                            f"the extent {extent} of a result has to be open or a number, and there is no call to say "
                            f"that it is {value}: {self.where(extent)} is open. Give the extent in the TensorSpec, or "
                            "call the function with tensors.",
                        )
                    raise RestartTrace
        size = _strides_end(shape)
        if isinstance(size, Dim) and size not in self._counted:
            self._counted.add(size)
            self._count(stage, shape, size)

    def argument(self, shape: Shape) -> None:
        """A shape that an argument has."""
        self._arguments.append(_strides_end(shape))

    def _count(self, stage: str, shape: Shape, size: Dim) -> None:
        """See to it that a shape has fewer than MAX_SIZE elements.  Raises ShapeError where the example has more.

        Arguments lie in memory, and so may what is a few times as large.
        """
        if any(never_negative(argument * _TIMES - size) for argument in self._arguments):
            return
        if self.is_closed:
            if not self._known(MAX_SIZE - 1 - size):
                self._later.append((stage, shape))
        elif self.examples is None:
            self.conditions.append(MAX_SIZE - 1 - size)
        elif not self.at_least_zero(MAX_SIZE - 1 - size):
            fault = shape_fault(tuple(map(self.example, shape)))
            raise ShapeError(stage, f"the result's shape {fault}")

    def check_later(self, sizes: Mapping[str, Extent]) -> None:
        """Before a derivative runs: raise ShapeError if in a call with these extents it makes what is too large, or
        reads what there is not."""
        for stage, shape in self._later:
            names = {name for extent in shape for name in extents.symbols(extent)}
            numbers = {name: size for name, size in sizes.items() if name in names and isinstance(size, int)}
            if len(numbers) < len(names):
                continue  # found when the program runs, or by the trace that is going on
            fault = shape_fault(tuple([extents.value_at(extent, numbers) for extent in shape]))
            if fault is not None:
                raise ShapeError(stage, f"the shape of a value that a derivative needs {fault}")
        numbers = {name: size for name, size in sizes.items() if isinstance(size, int)}
        for extent in self._required_later:
            if numbers.keys() >= set(extents.symbols(extent)) and extents.value_at(extent, numbers) < 0:
                raise ShapeError(
                    "gradient", f"a derivative needs {self.where(extent)} such that {extent} is not negative"
                )

    # ---- answers

    def _known(self, extent: Extent) -> bool | None:
        """Whether ``extent >= 0`` follows from what is assumed so far."""
        return extents.follows(extent, self.conditions)

    def _has(self, extent: Extent) -> bool:
        """Whether the symbols are those of arguments, rather than extents that are found when the program runs."""
        return all(name in self.paths for name in extents.symbols(extent))

    def example(self, extent: Extent) -> int:
        """The value of an extent in the call that is traced; one that is large where there is none."""
        sizes = self.examples
        if sizes is None:
            sizes = {name: _TYPICAL + k for k, name in enumerate(extents.symbols(extent))}
        return extents.value_at(extent, sizes)

    @property
    def is_of_derivative(self) -> bool:
        """Whether what is traced now is a derivative of what was traced with these assumptions."""
        trace: Any = now().trace
        return self.is_closed and trace is not None and trace.root.assumptions is self

    def extents_by_text(self) -> dict[str, Dim]:
        """The open extents of all shapes so far by how they print, as far as each call says them."""
        of_arguments = (Dim(name) for name in self.paths if name)
        return {str(extent): extent for extent in (*of_arguments, *self._settled) if self._has(extent)}

    def _must_be_open(self, question: str) -> None:
        if self.is_of_derivative:
            raise DeferredQuestionError(
                "gradient",
                f"the code of a derivative asks {question}, and calls with others have the same program. Give the "
                "extent in the TensorSpec.",
            )
        if self.is_closed:
            raise SymbolicExtentError("extent", f"{question} is asked after the trace is over, which does not know it.")

    def _tie(self, difference: Dim) -> None:
        """Let a symbol stand for what makes ``difference`` 0; where none can, each of them for its example."""
        for name in sorted(extents.symbols(difference), key=self._order, reverse=True):
            value = _solved(difference, name)
            if value is not None and (isinstance(value, Dim) or value >= 0):
                self._replace(name, value)
                break
        else:
            if not self._divide(difference):
                if self.examples is None:  # each call says whether it is
                    self.conditions += [difference, difference * -1]
                    return
                for name in extents.symbols(difference):
                    self._replace(name, self.examples[name])
        self.must_restart = True

    def _divide(self, difference: Dim) -> bool:
        """Where ``difference`` is 0 for multiples of a number, let a symbol stand for one.  Returns whether it did."""
        names = [name for _, part in difference.products for name in part]
        for division in (name for name in names if isinstance(name, Quotient)):
            known, divisor = extents.affine(extents.dividend(division)), division.divisor
            if known is None or known[1] != 1 or not isinstance(divisor, int):
                continue
            name, _, offset = known
            part = f"{name}_by_{divisor}"
            value = Dim(part) * divisor - offset
            if extents.equal(extents.replaced(difference, name, value), 0) is not True:
                continue
            if self.examples is not None:
                count, rest = divmod(self.examples[name] + offset, divisor)
                if count < LEAST or rest:  # of others ``difference`` may be 0 too
                    continue
                self.examples = {**self.examples, part: count}
            self.paths[part] = f"{self.paths.get(name, name)}//{divisor}"
            self._replace(name, value)
            return True
        return False

    def _order(self, name: str) -> int:
        return list(self.paths).index(name) if name in self.paths else -1

    def _replace(self, name: str, value: Extent) -> None:
        for other, known in self.values.items():
            self.values[other] = extents.replaced(known, name, value)
        self.values[name] = value

    # ---- for others

    def where(self, extent: Extent) -> str:
        """The arguments' extents that an extent depends on, with their values: ``x.shape[0] is 5``."""
        parts = []
        for name in extents.symbols(extent):
            path = self.paths.get(name, name)
            parts.append(f"{path} is {self.examples[name]}" if self.examples and name in self.examples else path)
        return ", ".join(parts)


def _strides_end(shape: Shape) -> Extent:
    """The number of elements, where extents of 0 count as 1: see ``shape_fault``."""
    return product(tuple(extent for extent in shape if not isinstance(extent, int) or extent))


def _solved(difference: Dim, name: str) -> Extent | None:
    """The extent that the symbol ``name`` has to be for ``difference`` to be 0; None where that is not seen."""
    monomial = ((name,),)
    factor, rest = 0, []
    for scale, names in difference.products:
        if names in monomial:
            factor = scale
        else:
            rest.append((scale, names))
    others = extents.from_products(rest)
    if factor == 0 or name in extents.symbols(others):
        return None
    common = math.gcd(factor, *(scale for scale, _ in rest))
    if abs(factor) != common:
        return None
    return extents.from_products([(-scale // factor, names) for scale, names in rest])


def _no_float(extent: Dim, assumptions: ShapeEnv) -> Any:
    return None


make_float: Callable[[Dim, ShapeEnv], Any] = _no_float
"""Makes floats of extents; set by ``open_floats``."""


def current_shape_env() -> ShapeEnv | None:
    """What the trace that is going on assumes."""
    trace = now().trace
    return None if trace is None else trace.assumptions


extents.judge = current_shape_env


def conditions_hold(conditions: Sequence[Extent], sizes: Mapping[str, int]) -> bool:
    return all(extents.value_at(condition, sizes) >= 0 for condition in conditions)
