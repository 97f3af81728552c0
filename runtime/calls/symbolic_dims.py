"""The extents of a signature as native code finds them: read from arguments, or calculated from those.

Native code keeps them in one array.  First come the symbols, then what the shapes of arguments name; the rest, and
what lies between, is calculated by steps (see ``argument_match_code``), each of which fills one place of the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from hybridflow.compiler.program import Dim, DimSource, Extent, Quotient, dividend, products_of
from hybridflow.runtime.native.records import DIM_STEP, DIM_STEPS

_Operand = Union[int, "_Place"]


class _Place(int):
    """The index of an extent in the array."""


class Dims:
    """``index`` gives the place of an extent; ``steps`` are the words of the steps, in order."""

    def __init__(self, sources: Sequence[DimSource], named: Iterable[Extent]) -> None:
        self._places: dict[Extent, int] = {}
        self._free = 0
        self.steps: list[int] = []
        for source in sources:
            self._reserve(Dim(source.name))
        read = [extent for extent in dict.fromkeys(named) if isinstance(extent, Dim)]
        for extent in read:
            if extent.symbol is not None and extent not in self._places:
                self._reserve(extent)
        slots = {extent: self._reserve(extent) for extent in read if extent.symbol is None}
        for source in sources:
            if (source.scale, source.offset) != (1, 0):
                extent_place = slots[Dim(source.name) * source.scale + source.offset]
                difference = self._step("add", _Place(extent_place), -source.offset)
                self._step("divide", difference, source.scale, self._places[Dim(source.name)])
        for extent, place in slots.items():
            del self._places[extent]
            self._step("same", _Place(place), self._calculate(extent))
            self._places[extent] = place

    def __len__(self) -> int:
        return self._free

    def index(self, extent: Dim) -> int:
        """Where native code has the extent when the steps are done."""
        return self._calculate(extent)

    def minimums(self, least: Mapping[Extent, int]) -> list[int]:
        """For each place the least value that is allowed there."""
        bounds = [-(2**63)] * len(self)
        for extent, value in least.items():
            if isinstance(extent, Dim):
                place = self._places[extent]
                bounds[place] = max(bounds[place], value)
        return bounds

    def _reserve(self, extent: Extent) -> int:
        self._places[extent] = place = self._free
        self._free += 1
        return place

    def _step(self, op: str, left: int, right: _Operand, target: int | None = None) -> _Place:
        if target is None:
            target = self._free
            self._free += 1
        is_place = isinstance(right, _Place)
        words = {"op": DIM_STEPS[op], "target": target, "left": left, "right": int(right), "is_place": int(is_place)}
        self.steps += DIM_STEP.in_order(words)
        return _Place(target)

    def _operand(self, extent: Extent) -> _Operand:
        return extent if isinstance(extent, int) else self._calculate(extent)

    def _calculate(self, extent: Dim) -> _Place:
        """The place of an extent, with the steps that fill it."""
        if extent in self._places:
            return _Place(self._places[extent])
        total: _Operand = 0
        for factor, names in products_of(extent):
            part: _Operand = factor
            for name in names:
                part = self._both("multiply", self._name(name), part)
            total = self._both("add", part, total)
        assert isinstance(total, _Place)
        self._places[extent] = int(total)
        return total

    def _name(self, name: str | Quotient) -> _Place:
        if isinstance(name, str):
            return _Place(self._places[Dim(name)])
        quotient = Dim.of_name(name)
        if quotient not in self._places:
            value, divisor = self._operand(dividend(name)), self._operand(name.divisor)
            if not isinstance(value, _Place):
                value = self._step("add", self._step("multiply", _Place(0), 0), value)
            self._places[quotient] = int(self._step("divide", value, divisor))
        return _Place(self._places[quotient])

    def _both(self, op: str, a: _Operand, b: _Operand) -> _Operand:
        if not isinstance(a, _Place) and not isinstance(b, _Place):
            return a + b if op == "add" else a * b
        if not isinstance(a, _Place):
            a, b = b, a
        if not isinstance(b, _Place) and b == (0 if op == "add" else 1):
            return a
        return self._step(op, a, b)
