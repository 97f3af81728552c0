"""Python floats while tracing, where the program is to serve every value of them.

Python's own arithmetic on them becomes float64 nodes, which have the bits of Python's results: sums, differences and
products, quotients by numbers that are known, signs.  Whatever else is asked of one (how it compares, its text, its
hash, a power) needs its value: the trace is then given up, and made again for this one value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim, symbols
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.core import pytree
from hybridflow.core.promotion import OpenFloat, scalar_array
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import cast, literal
from hybridflow.tracing import shape_env as judging
from hybridflow.tracing.shape_env import ShapeEnv

FLOAT = TensorType((), np.dtype(np.float64))
_EXACT = 2**53  # whole numbers up to here are doubles


@pytree.declare_leaf
class SymbolicFloat(OpenFloat):
    """``tensor`` is the number in the program, ``example`` in the call that is traced; it follows from the arguments
    with these ``names``.  ``extent`` is the one that it is the float of, None for other floats."""

    __slots__ = ("_assumptions", "example", "extent", "names", "tensor")

    def __init__(
        self,
        tensor: Tensor,
        example: float,
        names: frozenset[str],
        assumptions: ShapeEnv,
        extent: Dim | None = None,
    ) -> None:
        self.tensor, self.example, self.names, self._assumptions = tensor, example, names, assumptions
        self.extent = extent

    __array_ufunc__ = None  # NumPy leaves operators to us

    def value(self) -> float:
        """See ``OpenFloat``.  When the trace is over it is what it was there: it may have been left in an object."""
        if self._is_open:
            self._assumptions.require_value(self.names)
        return self.example

    @property
    def _is_open(self) -> bool:
        """Whether it stands for any number: in its trace, and in those of its derivatives."""
        return not self._assumptions.is_closed or self._assumptions.is_of_derivative

    def as_operand(self, dtype: np.dtype[Any], stage: str) -> Tensor:
        if dtype in (dtypes.float32, dtypes.float64) and self._is_open:
            return cast(self.tensor, dtype)
        return literal(scalar_array(self.value(), dtype, stage))

    def _apply(self, op: str, example: float, *parts: SymbolicFloat) -> SymbolicFloat:
        tensor = apply(TABLE[op], *(part.tensor for part in parts))
        names = frozenset().union(*(part.names for part in parts))
        return SymbolicFloat(tensor, example, names, self._assumptions)

    def _like(self, number: Any) -> SymbolicFloat | None:
        """A number that Python's arithmetic would make a float first, as one of the program; None for others."""
        kind = type(number)
        if kind is SymbolicFloat:
            return number
        if kind is Dim:
            return of_extent(number, self._assumptions)
        if kind in (float, int, bool):
            known = float(number)
            return SymbolicFloat(literal(np.array(known)), known, frozenset(), self._assumptions)
        return None

    def _with(self, op: str, operation: Callable[[Any, Any], Any], left: Any, right: object) -> Any:
        """``operation`` of two numbers, one of which is this."""
        other = right if left is self else left
        if isinstance(other, (np.ndarray, np.generic)) or not self._is_open:
            left, right = (x.value() if isinstance(x, SymbolicFloat) else x for x in (left, right))
            return operation(left, right)
        if op == "divide" and type(other) is int and abs(other) > _EXACT and self.extent is not None:
            return operation(left, int(self.extent)) if right is self else operation(int(self.extent), right)
        operands = self._like(left), self._like(right)
        if operands[0] is None or operands[1] is None:
            return NotImplemented
        if op == "divide" and isinstance(right, (SymbolicFloat, Dim)) and self._may_be_zero(right):
            return left / right.value() if isinstance(right, SymbolicFloat) else left / int(right)
        return self._apply(op, operation(operands[0].example, operands[1].example), *operands)  # type: ignore[arg-type]

    @staticmethod
    def _may_be_zero(number: object) -> bool:
        """Whether a divisor may be 0, which is an error, in another call."""
        extent = number.extent if isinstance(number, SymbolicFloat) else number
        return extent is None or bool(extent == 0)

    def __add__(self, other: object) -> Any:
        return self._with("add", operator.add, self, other)

    def __radd__(self, other: object) -> Any:
        return self._with("add", operator.add, other, self)

    def __sub__(self, other: object) -> Any:
        return self._with("subtract", operator.sub, self, other)

    def __rsub__(self, other: object) -> Any:
        return self._with("subtract", operator.sub, other, self)

    def __mul__(self, other: object) -> Any:
        return self._with("multiply", operator.mul, self, other)

    def __rmul__(self, other: object) -> Any:
        return self._with("multiply", operator.mul, other, self)

    def __truediv__(self, other: object) -> Any:
        return self._with("divide", operator.truediv, self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._with("divide", operator.truediv, other, self)

    def __neg__(self) -> SymbolicFloat:
        return self._apply("negative", -self.example, self)

    def __pos__(self) -> SymbolicFloat:
        return self

    def __abs__(self) -> SymbolicFloat:
        return self._apply("abs", abs(self.example), self)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value(), dtype)

    def __getattr__(self, name: str) -> Any:
        """What floats have besides operators."""
        return getattr(self.value() if hasattr(float, name) else float, name)


def _asking(name: str) -> Callable[..., Any]:
    method_of_float = getattr(float, name)

    def method(self: SymbolicFloat, *others: object) -> Any:
        if any(isinstance(other, Tensor) for other in others):
            return NotImplemented
        numbers = [other.value() if isinstance(other, SymbolicFloat) else other for other in others]
        if name in _OPERATORS:  # of other classes too, which may answer what a float does not
            return _OPERATORS[name](self.value(), *numbers)
        return method_of_float(self.value(), *numbers)

    method.__name__ = name
    return method


_OPERATORS: dict[str, Callable[..., Any]] = {
    "__floordiv__": operator.floordiv,
    "__mod__": operator.mod,
    "__pow__": pow,
    "__eq__": operator.eq,
    "__ne__": operator.ne,
    "__lt__": operator.lt,
    "__le__": operator.le,
    "__gt__": operator.gt,
    "__ge__": operator.ge,
    "__rfloordiv__": lambda number, other: other // number,
    "__rmod__": lambda number, other: other % number,
    "__rpow__": lambda number, other: other**number,
    "__divmod__": divmod,
    "__rdivmod__": lambda number, other: divmod(other, number),
}
_ASKING = (
    *_OPERATORS,
    *("__bool__", "__int__", "__float__", "__hash__", "__str__", "__repr__", "__format__", "__round__"),
    *("__trunc__", "__floor__", "__ceil__"),
)
for _name in _ASKING:
    setattr(SymbolicFloat, _name, _asking(_name))


def of_extent(extent: Dim, assumptions: ShapeEnv) -> SymbolicFloat | None:
    """An extent as a float, exactly; None for one that is too large for that."""
    if not (assumptions.fits(extent) and extent <= _EXACT and extent >= -_EXACT):
        return None
    example, names = assumptions.example(extent), frozenset(symbols(extent))
    tensor = apply(TABLE["extent"], value=extent, dtype=FLOAT.dtype)
    return SymbolicFloat(tensor, float(example), names, assumptions, extent)


judging.make_float = of_extent
