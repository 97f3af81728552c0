"""Python numbers that a tensor decides about: what ``1 if x > 0 else 2`` is while tracing.

Such a number goes on to be one of Python's.  It has no say in dtypes.  Operators among numbers are Python's (two bools
add up to an int, ints divide to a float), in 64 bits.  It has no attributes but those that ints and floats have. What
would need the value itself (text, keys of dicts, sizes, ``is``) is refused.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array import elementwise
from hybridflow.array.shapes import reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops import TABLE
from hybridflow.core import pytree
from hybridflow.core.context import Tracer
from hybridflow.core.promotion import OpenFloat, is_pythons, weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import cast, scalar
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.tracing import number_errors
from hybridflow.tracing.symbolic_tensor import SymbolicTensor, why_unconverted

DTYPE = {bool: dtypes.bool_, int: dtypes.int64, float: np.dtype(np.float64)}
RANK = {bool: 0, int: 1, float: 2}
_EXACT = 2**53  # whole numbers below are floats
WHAT = "a Python number that a tensor decides about"


@pytree.declare_leaf
class SymbolicNumber(SymbolicTensor):
    """A Python bool, int or float that a tensor decides about.  It has the dtype that holds its ``kind``; ``narrow``
    is the kind that it may have as well, where it depends on the tensor which: ``1 if x > 0 else 2.0``."""

    __slots__ = ("narrow",)

    is_python = True

    def __init__(self, node: Node, trace: Tracer, narrow: type | None = None) -> None:
        super().__init__(node, trace, is_weak=True)
        kind = self.kind
        self.narrow: type = kind if narrow is None or RANK[narrow] > RANK[kind] else narrow

    @property
    def kind(self) -> type:
        """bool, int or float."""
        result = weak_kind(self)
        assert result is not None
        return result

    @property
    def one_kind(self) -> type:
        """The kind.  Raises TraceError where it depends on a tensor."""
        if self.narrow is not self.kind:
            raise self.undecided("what it is used for differs between the two")
        return self.kind

    def undecided(self, why: str) -> TraceError:
        one, other = self.narrow.__name__, self.kind.__name__
        return ConcretizationError(
            "convert",
            f"it depends on a tensor whether a number is Python's {one} or {other}, and {why}. "
            f"Bind {other}s on all ways: {other}(n), or {'0.0' if self.kind is float else '0'} to begin with.",
        )

    def refused(
        self, wish: str, remedy: str, kind: Callable[[str, str], TraceError] = ConcretizationError
    ) -> TraceError:
        return kind("convert", f"{wish} {WHAT}, and has no value while tracing. {remedy}")

    def __hash__(self) -> int:
        raise self.refused(
            "a key of a dict, an item of a set or an argument of a cached function is",
            "Choose with if, or index a tensor or with hf.take.",
        )

    def __bool__(self) -> bool:
        why = why_unconverted(sys._getframe(1))
        remedy = why or "Ask it in the function's own if, while, and, or, any or all."
        raise self.refused("the truth is asked of", remedy, TraceError if why else ConcretizationError)

    def __int__(self) -> int:
        raise self.refused("int() is asked for of", "Call int in a converted function, or use hf.astype(n, hf.int64).")

    def __float__(self) -> float:
        raise self.refused("a function of floats is given", "Use hybridflow's own, as hf.exp(n).")

    def __index__(self) -> int:
        raise self.refused(
            "a size or position is", "Index tensors with it, stack what is in a list, or give sizes as arguments."
        )

    def __copy__(self) -> SymbolicNumber:
        return self

    def __deepcopy__(self, memo: object) -> SymbolicNumber:
        return self

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} that a tensor decides about>"


def is_number(value: object) -> bool:
    """Whether a value stands for a number of Python's that a tensor decides about."""
    return type(value) is SymbolicNumber


def number_of(x: Tensor, narrow: type | None = None) -> Any:
    """A tensor of the trace as one that counts as a Python number."""
    return SymbolicNumber(x._node, x._trace, narrow) if isinstance(x, SymbolicTensor) else x


def has_number(x: Tensor) -> bool:
    """Whether a tensor has a single element, which is a real number of Python's."""
    return x.size == 1 and x.dtype != np.uint64 and not dtypes.is_complex(x.dtype)


def number_in(x: Tensor) -> Any:
    """The element of a tensor as a Python number: of the kind that ``x.item()`` is of, and as that without a
    derivative."""
    kind = bool if dtypes.is_bool(x.dtype) else float if dtypes.is_float(x.dtype) else int
    return number_of(cast(elementwise.stop_gradient(reshape(x, ())), DTYPE[kind]))


def number_tensor(value: Any, kind: type) -> Tensor:
    """A number as a tensor of the dtype that holds ``kind``, in the trace that goes on."""
    return cast(value._stand_in(), DTYPE[kind]) if is_number(value) else scalar(value, DTYPE[kind], "convert")


def narrow_kind(value: Any) -> type:
    """The narrowest kind that a number may have."""
    return value.narrow if is_number(value) else _kind(value)


def _kind(value: object) -> type:
    result = weak_kind(value)
    assert result is not None
    return result


class Weak(NamedTuple):
    """How a scalar without a say in dtypes goes through a program: as a tensor of ``dtype``.  One of Python's has a
    ``kind``, and perhaps a narrower one; one of NumPy's has none."""

    dtype: np.dtype[Any]
    kind: type | None
    narrow: type | None

    def tensor(self, value: object) -> Tensor:
        """A scalar as a tensor, in the trace that goes on."""
        if self.kind is not None:
            return number_tensor(value, self.kind)
        return value._stand_in() if isinstance(value, SymbolicTensor) else scalar(value, self.dtype, "convert")

    def scalar(self, x: Tensor) -> Any:
        """The scalar that a tensor of the trace stands for."""
        if self.kind is not None:
            return number_of(x, self.narrow)
        return SymbolicTensor(x._node, x._trace, is_weak=True) if isinstance(x, SymbolicTensor) else x

    def joined(self, other: Weak) -> Weak | None:
        """What holds both; None where nothing does."""
        if self.kind is None or other.kind is None:
            numpys = self if self.kind is None else other
            return numpys if self.dtype == other.dtype and bool not in (self.narrow, other.narrow) else None
        kind = max(self.kind, other.kind, key=RANK.__getitem__)
        narrow = min(self.narrow or self.kind, other.narrow or other.kind, key=RANK.__getitem__)
        return Weak(DTYPE[kind], kind, narrow)


def weak_of(value: object) -> Weak | None:
    """How a scalar goes through a program; None for what is none, fits no dtype, or is complex."""
    kind = weak_kind(value)
    if kind is None or kind is complex or (type(value) is int and not -(2**63) <= value < 2**63):
        return None
    if is_pythons(value) or isinstance(value, Dim):
        return Weak(DTYPE[kind], kind, narrow_kind(value))
    return Weak(np.dtype(value.dtype), None, None) if hasattr(value, "dtype") else None


# ---- operators

# What an operator makes of two kinds, and the kind that it computes in.
Rule = Callable[[type, type], "tuple[type, type]"]


def _wider(a: type, b: type) -> type:
    return max(a, b, int, key=RANK.__getitem__)


def _arithmetic(a: type, b: type) -> tuple[type, type]:
    return _wider(a, b), _wider(a, b)


def _quotient(a: type, b: type) -> tuple[type, type]:
    return float, float


def _comparison(a: type, b: type) -> tuple[type, type]:
    return bool, max(a, b, key=RANK.__getitem__)


def _bits(a: type, b: type) -> tuple[type, type]:
    _no_floats(a, b)
    kind = max(a, b, key=RANK.__getitem__)
    return kind, kind


def _shift(a: type, b: type) -> tuple[type, type]:
    _no_floats(a, b)
    return int, int


def _no_floats(*kinds: type) -> None:
    if float in kinds:
        names = " and ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"unsupported operand type(s) for an operator of bits: {names}")


_OF_TWO: dict[str, tuple[Rule, Callable[..., Tensor]]] = {
    "add": (_arithmetic, elementwise.add),
    "sub": (_arithmetic, elementwise.subtract),
    "mul": (_arithmetic, elementwise.multiply),
    "truediv": (_quotient, elementwise.divide),
    "floordiv": (_arithmetic, elementwise.floor_divide),
    "mod": (_arithmetic, elementwise.remainder),
    "and": (_bits, elementwise.bitwise_and),
    "or": (_bits, elementwise.bitwise_or),
    "xor": (_bits, elementwise.bitwise_xor),
    "lshift": (_shift, elementwise.bitwise_left_shift),
    "rshift": (_shift, elementwise.bitwise_right_shift),
    "eq": (_comparison, elementwise.equal),
    "ne": (_comparison, elementwise.not_equal),
    "lt": (_comparison, elementwise.less),
    "le": (_comparison, elementwise.less_equal),
    "gt": (_comparison, elementwise.greater),
    "ge": (_comparison, elementwise.greater_equal),
}
_REFLECTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow")
_OF_ONE: dict[str, Callable[..., Tensor]] = {
    "neg": elementwise.negative,
    "pos": elementwise.positive,
    "abs": elementwise.abs,
    "invert": elementwise.bitwise_invert,
}


def _floor_quotient(a: Tensor, b: Tensor) -> Tensor:
    """``a // b`` of ints, which 64 bits do not always hold where it is ``-a``."""
    is_negated = elementwise.equal(b, -1)
    negated = apply(TABLE["checked_negative"], elementwise.where(is_negated, a, 0))
    return elementwise.where(is_negated, negated, elementwise.floor_divide(a, b))


# What operators compute of ints: none wraps, see ``compiler.ops.checked_integers``.
_CHECKED: dict[str, Callable[..., Tensor]] = {
    "add": functools.partial(apply, TABLE["checked_add"]),
    "sub": functools.partial(apply, TABLE["checked_subtract"]),
    "mul": functools.partial(apply, TABLE["checked_multiply"]),
    "pow": functools.partial(apply, TABLE["checked_pow"]),
    "lshift": functools.partial(apply, TABLE["checked_bitwise_left_shift"]),
    "floordiv": _floor_quotient,
    "neg": functools.partial(apply, TABLE["checked_negative"]),
    "abs": functools.partial(apply, TABLE["checked_abs"]),
}


def _computed(name: str, rule: Rule, compute: Callable[..., Tensor], a: object, b: Any) -> Any:
    """The operator ``name`` of two Python numbers."""
    _, kind = rule(_kind(a), _kind(b))
    narrow, _ = rule(narrow_kind(a), narrow_kind(b))
    if rule is _comparison and _meet_inexactly(a, b):
        return number_of(compute(*_compared(a, b)), narrow)
    x, y = number_tensor(a, kind), number_tensor(b, kind)
    if is_number(b) or isinstance(b, (Dim, OpenFloat)) or b <= 0:  # others divide and shift whatever they meet
        number_errors.check_operands(name, number_tensor(a, _kind(a)), number_tensor(b, _kind(b)))
    result = _CHECKED.get(name, compute)(x, y) if kind is int else compute(x, y)
    if name == "pow" and kind is float:
        number_errors.check_power(x, y, result)
    return number_of(result, narrow)


def _meet_inexactly(a: Any, b: Any) -> bool:
    """Whether an int that may be none of the floats is compared with a float."""
    if {_kind(a), _kind(b)} != {int, float}:
        return False
    return all(is_number(x) or isinstance(x, (Dim, OpenFloat)) or not -_EXACT < x < _EXACT for x in (a, b))


def _compared(a: object, b: object) -> tuple[Tensor, Tensor]:
    """Two floats that compare as an int and a float do: where the rounded int is the float, the difference and 0."""
    whole, real = (a, b) if _kind(a) is int else (b, a)
    n, x, rounded = number_tensor(whole, int), number_tensor(real, float), number_tensor(whole, float)
    beyond = cast(elementwise.greater_equal(x, 2.0**63), DTYPE[int])  # which as an int is 2**63 - 1
    difference = elementwise.subtract(elementwise.subtract(n, cast(x, DTYPE[int])), beyond)
    meet = elementwise.equal(rounded, x)
    left = elementwise.where(meet, cast(difference, DTYPE[float]), rounded)
    right = elementwise.where(meet, number_tensor(0.0, float), x)
    return (left, right) if whole is a else (right, left)


# What Python asks of the right operand of a comparison.
_ANSWERS = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def _has_own(kind: type, name: str) -> bool:
    """Whether a class that extends a number of Python's, as enumerations do, has a special method of its own."""
    return next(base for base in kind.__mro__ if name in vars(base)) not in (int, float)


def _is_ours(value: object) -> bool:
    """Whether operators of tensors know what to do with a value."""
    return isinstance(value, (Tensor, Variable, np.ndarray, np.generic))


def _power(a: Any, b: Any) -> Any:
    """``a ** b`` of Python numbers.  Of ints it is an int or a float, as the exponent has a sign or not."""
    compute = elementwise.pow if is_number(b) else lambda x, _: elementwise.pow(x, b)
    kinds = {_kind(a), _kind(b), narrow_kind(a), narrow_kind(b)}
    if float not in kinds and not is_number(b):
        return _computed("pow", _arithmetic if b >= 0 else _quotient, compute, a, b)
    if _kind(b) is not float and _kind(a) is not float:
        raise b.refused(
            "whether a power of ints is an int or a float depends on the sign of its exponent, which is",
            "Use floats, float(a) ** b.",
        )
    return _computed("pow", _quotient, compute, a, b)


def _method_of_two(name: str, is_reflected: bool) -> Callable[[Any, Any], Any]:
    general = getattr(SymbolicTensor, f"__{'r' if is_reflected else ''}{name}__")
    answer = f"__{_ANSWERS.get(name) or 'r' + name}__"

    def method(self: SymbolicNumber, other: object, *modulus: object) -> Any:
        if modulus:
            raise self.refused("three numbers, of which pow is asked, are or hold", "Write a ** b % c.")
        if not is_pythons(other) and isinstance(other, (int, float)) and not isinstance(other, np.generic):
            if not is_reflected and _has_own(type(other), answer):
                known: Any = {float: int, int: (), bool: int}[self.one_kind]  # to what Python asks first
                if not isinstance(other, known):
                    return NotImplemented
            other = int.__pos__(other) if isinstance(other, int) else float.__pos__(other)
        if is_pythons(other) or isinstance(other, Dim):
            a, b = (other, self) if is_reflected else (self, other)
            return _power(a, b) if name == "pow" else _computed(name, *_OF_TWO[name], a, b)
        return general(self, other) if _is_ours(other) else NotImplemented

    return method


def _method_of_one(name: str, compute: Callable[..., Tensor]) -> Callable[[Any], Any]:
    def method(self: SymbolicNumber) -> Any:
        if name == "invert":
            _no_floats(self.kind)
        kind = _wider(self.kind, self.kind)
        result = (_CHECKED.get(name, compute) if kind is int else compute)(number_tensor(self, kind))
        return number_of(result, _wider(self.narrow, self.narrow))

    return method


def _divmod(self: SymbolicNumber, other: object) -> Any:
    return self // other, self % other


def _rdivmod(self: SymbolicNumber, other: object) -> Any:
    return other // self, other % self


def _round(self: SymbolicNumber, digits: object = None) -> Any:
    if self.narrow is not float and self.kind is not float:
        if digits is None or (type(digits) is int and digits >= 0):
            return to_int(self)
    elif digits is None:
        return _to_integer(self, "round", elementwise.round)
    raise self.refused("digits after the point are asked for of", "Round tensors, as with hf.round(n * 100) / 100.")


# ---- functions of Python's


def _to_integer(x: SymbolicNumber, name: str, compute: Callable[[Any], Tensor]) -> Any:
    """The int that ``compute``, Python's function ``name``, makes of a float."""
    if x.kind is not float:
        return to_int(x)
    value = number_tensor(x, float)
    result = compute(value)
    number_errors.check_integral(number_errors.PYTHON[name], value, result)
    return number_of(cast(result, DTYPE[int]))


def to_int(x: SymbolicNumber) -> Any:
    """``int(x)``"""
    if x.kind is float:
        return _to_integer(x, "trunc", elementwise.trunc)
    return number_of(number_tensor(x, int))


def to_float(x: SymbolicNumber) -> Any:
    """``float(x)``"""
    return number_of(number_tensor(x, float))


def square_root(x: SymbolicNumber) -> Any:
    """``math.sqrt(x)``"""
    value = number_tensor(x, float)
    number_errors.check_root(value)
    return number_of(elementwise.sqrt(value))


def to_bool(x: SymbolicNumber) -> Any:
    """``bool(x)``"""
    return x if x.kind is bool else x != 0


def attribute(x: SymbolicNumber, name: str) -> Any:
    """``x.name``, as Python's numbers have it."""
    if not all(hasattr(kind, name) for kind in (x.kind, x.narrow)):
        raise AttributeError(f"'{x.kind.__name__}' object has no attribute '{name}'", name=name, obj=x)
    if name == "__class__":
        return x.one_kind
    if name in _METHODS:
        return types.MethodType(_METHODS[name], x)
    if name in _PARTS:
        return _PARTS[name](x)
    if name.startswith("__"):
        return getattr(x, name)
    raise x.refused(f"the attribute {name} is asked for of", "Compute it of a tensor, with hybridflow's functions.")


def _itself(x: SymbolicNumber) -> Any:
    return +x


def _imaginary(x: SymbolicNumber) -> Any:
    if x.kind is not float:
        return 0
    zero = number_tensor(0.0, float)
    return number_of(zero, _wider(x.narrow, x.narrow))


_PARTS: dict[str, Callable[[SymbolicNumber], Any]] = {
    "real": _itself,
    "imag": _imaginary,
    "numerator": to_int,
    "denominator": lambda x: 1,
}


def _is_integer(x: SymbolicNumber) -> Any:
    value = number_tensor(x, float)
    is_whole = elementwise.equal(elementwise.trunc(value), value)
    return number_of(elementwise.logical_and(is_whole, elementwise.isfinite(value)))


_METHODS: dict[str, Callable[[SymbolicNumber], Any]] = {
    "conjugate": _itself,
    "is_integer": _is_integer,
}


def refuse(value: Any, wish: str, remedy: str) -> None:
    """Raise TraceError if ``value`` is, or a container in it holds, a number that a tensor decides about."""
    leaves = [value] if not pytree.is_container(value) else pytree.flatten(value)[0]
    for leaf in leaves:
        if is_number(leaf):
            raise leaf.refused(wish, remedy)


def install() -> None:
    """Give the class its operators; called once, when something is traced for the first time."""
    for name in (*_OF_TWO, "pow"):
        setattr(SymbolicNumber, f"__{name}__", _method_of_two(name, False))
    for name in _REFLECTED:
        setattr(SymbolicNumber, f"__r{name}__", _method_of_two(name, True))
    for name, compute in _OF_ONE.items():
        setattr(SymbolicNumber, f"__{name}__", _method_of_one(name, compute))
    methods: dict[str, Any] = {
        "divmod": _divmod,
        "rdivmod": _rdivmod,
        "round": _round,
        "trunc": to_int,
        "floor": lambda self: _to_integer(self, "floor", elementwise.floor),
        "ceil": lambda self: _to_integer(self, "ceil", elementwise.ceil),
    }
    for name, method in methods.items():
        setattr(SymbolicNumber, f"__{name}__", method)
