"""Values whose tensors are not known before the program runs, and texts that are made of such values.

What a traced function shows, or says in an error, is given while it is traced and needed when the program runs.  The
tensors in it become operands; the rest is kept as it is now, be it that somebody changes it before the program runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.autograph.runtime import object_trees
from hybridflow.autograph.runtime.choices import Choice
from hybridflow.compiler.ir.dtypes import float64, int64
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core import display, pytree
from hybridflow.core.context import now
from hybridflow.core.promotion import OpenFloat
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import scalar
from hybridflow.errors import ConcretizationError, HybridflowError, user_location
from hybridflow.runtime import uninterruptible
from hybridflow.tracing.symbolic_number import is_number
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

Fill = Callable[[Any], Any]
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), type, np.generic, np.dtype)


@uninterruptible.loaded
def _likeness() -> Any:
    from hybridflow.effects import exception_template  # most programs do without

    return exception_template


class RuntimeText:
    """A text that is made when the program runs: ``make(*values)``.

    It can be shown, joined to other texts, and be part of an error.  Nothing can depend on its letters where it shows
    tensors; where it shows open extents and numbers alone, whatever does decides these.
    """

    __slots__ = ("_make", "_values", "_where")
    is_weak = is_python = False  # no number: who asks that does not want to know its letters

    def __init__(self, make: Callable[..., str], *values: object) -> None:
        self._make, self._values, self._where = make, values, user_location(2)

    def __add__(self, other: object) -> RuntimeText:
        return RuntimeText(operator.add, self, other) if isinstance(other, (str, RuntimeText)) else NotImplemented

    def __radd__(self, other: object) -> RuntimeText:
        return RuntimeText(operator.add, other, self) if isinstance(other, str) else NotImplemented

    def __mod__(self, other: object) -> RuntimeText:
        return RuntimeText(operator.mod, self, other)

    def __str__(self) -> str:
        """What can be said while tracing, where a tensor has no value yet."""
        try:
            return self._make(*self._values)
        except (TypeError, ValueError, HybridflowError):  # a number was to be formatted
            return "..."

    def __repr__(self) -> str:
        return repr(str(self))

    def mapped(self, function: Callable[[list[Any]], list[Any]]) -> RuntimeText:
        """The same text of other values."""
        result = RuntimeText(self._make, *function(list(self._values)))
        result._where = self._where
        return result

    def decided(self) -> str:
        """The text for whatever else is wanted of it: open extents and numbers that it shows have their values then.
        Raises TraceError if it shows a tensor, or a variable."""
        leaves, structure = pytree.flatten(list(self._values))
        values: list[Any] = pytree.unflatten(structure, [self._number(leaf) for leaf in leaves])
        return self._make(*values)

    def _number(self, leaf: object) -> Any:
        if type(leaf) is Dim:
            return int(leaf)
        if isinstance(leaf, OpenFloat):
            return float(leaf)  # type: ignore[arg-type]
        if isinstance(leaf, RuntimeText):
            return leaf.decided()
        if not isinstance(leaf, (SymbolicTensor, Variable)) and not (
            isinstance(leaf, BaseException) and is_runtime_value(leaf)
        ):
            return leaf
        raise ConcretizationError(
            "str",
            f"the text {self!r} shows a value that is not known while tracing, so nothing else can depend on it. "
            "Print it or raise an error with it, or return the tensor and make the text of the result.",
            self._where,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.decided(), name)


def _of_letters(name: str) -> Callable[..., Any]:
    return lambda self, *args: getattr(self.decided(), name)(*map(_decided, args))


def _decided(value: object) -> Any:
    return value.decided() if isinstance(value, RuntimeText) else value


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "hash", "len", "iter", "contains", "getitem", "mul", "rmul"):
    setattr(RuntimeText, f"__{_name}__", _of_letters(f"__{_name}__"))
RuntimeText.__bool__ = lambda self: bool(self.decided())  # type: ignore[attr-defined]


object_trees.containers[RuntimeText] = lambda text: (
    ("_make", "_values", "_where"),
    (text._make, text._values, text._where),
)


class RuntimeValues:
    """Values, nested as they may be: ``operands`` are the tensors in them that the program has to say.  Variables are
    shown as such, or stand for their values where these are ``unwrapped``."""

    def __init__(self, values: Sequence[Any], *, unwrapped: bool = False) -> None:
        self._unwrapped = unwrapped
        self.operands: list[Tensor] = []
        leaves, self._structure = pytree.flatten(list(values))
        self._leaves = [self._leaf(leaf) for leaf in leaves]

    def tensors(self) -> list[Tensor]:
        """The operands, which are not kept: the trace that they belong to ends."""
        operands, self.operands = self.operands, []
        return operands

    def filled(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """The values, with ``arrays`` for the operands."""
        result: list[Any] = pytree.unflatten(self._structure, [leaf(arrays) for leaf in self._leaves])
        return result

    def _leaf(self, leaf: object) -> Fill:
        if isinstance(leaf, SymbolicTensor):
            return self._operand(leaf, _filling(leaf))
        if isinstance(leaf, Variable):
            if self._unwrapped:
                return self._operand(leaf._read(), wrap)
            title = f"Variable {leaf.name!r}" if leaf.name else "Variable"
            title += "" if leaf.trainable else " not trainable"
            return self._operand(
                leaf._read(), lambda array: _Formatted(display.describe(wrap(array), title), wrap(array))
            )
        if type(leaf) is Dim:
            return self._operand(scalar(leaf, int64, "print"), lambda array: int(array))
        if isinstance(leaf, OpenFloat):
            return self._operand(leaf.as_operand(float64, "print"), lambda array: float(array))
        if isinstance(leaf, RuntimeText):
            return self._text(leaf)
        if isinstance(leaf, Choice):
            return self._choice(leaf)
        if isinstance(leaf, BaseException) and is_runtime_value(leaf):
            return self._error(leaf)
        if isinstance(leaf, (Tensor, *_ATOMS)):
            return lambda arrays: leaf
        shown = _Formatted(repr(leaf), str(leaf), str(leaf))
        return lambda arrays: shown

    def _operand(self, tensor: Tensor, fill: Fill) -> Fill:
        number = len(self.operands)
        self.operands.append(tensor)
        return lambda arrays: fill(arrays[number])

    def _text(self, text: RuntimeText) -> Fill:
        return self._filler(text._make, text._values)

    def _choice(self, choice: Choice) -> Fill:
        inner = RuntimeValues(choice.options, unwrapped=self._unwrapped)
        number = len(self.operands)
        self.operands.append(choice.code)
        begin = len(self.operands)
        self.operands += inner.tensors()
        end = len(self.operands)
        return lambda arrays: inner.filled(arrays[begin:end])[int(arrays[number])]

    def _error(self, error: BaseException) -> Fill:
        likeness = _likeness()
        return self._filler(lambda *said: likeness.parts_of_exception(list(said)), likeness.said_of(error))

    def _filler(self, make: Callable[..., Any], values: Sequence[Any]) -> Fill:
        inner = RuntimeValues(values)
        begin = len(self.operands)
        self.operands += inner.tensors()
        end = len(self.operands)
        return lambda arrays: make(*inner.filled(arrays[begin:end]))


def is_runtime_value(value: object) -> bool:
    """Whether something of what a value shows is not known before the program runs."""
    if isinstance(value, (SymbolicTensor, RuntimeText, Variable, Choice)) or type(value) is Dim:
        return True
    if isinstance(value, OpenFloat):
        return True
    if isinstance(value, BaseException):
        return is_runtime_value(_likeness().said_of(value))
    return pytree.is_container(value) and any(map(is_runtime_value, pytree.flatten(value)[0]))


def _filling(tensor: SymbolicTensor) -> Fill:
    """What an array shows that is given for a tensor of the trace."""
    if is_number(tensor):
        number: Any = tensor
        kind = number.one_kind
        return lambda array: kind(array)
    if not tensor.is_weak:
        return wrap
    return lambda array: array[()]  # a NumPy scalar


class _Formatted:
    """Looks like something did when the function was traced; ``formatted`` is what a specification applies to."""

    __slots__ = ("_formatted", "_repr", "_str")

    def __init__(self, shown: str, formatted: object, text: str | None = None) -> None:
        self._repr, self._formatted, self._str = shown, formatted, shown if text is None else text

    def __repr__(self) -> str:
        return self._repr

    def __str__(self) -> str:
        return self._str

    def __format__(self, spec: str) -> str:
        return format(self._formatted, spec)


# ---- texts in traced code


def joined(pieces: Sequence[Any]) -> Any:
    """``f"..."`` of texts, and of values with their conversions and format specifications."""
    parts: list[Any] = []
    for piece in pieces:
        late = not isinstance(piece, str) and _asks_at_runtime(piece)
        parts.append(piece if late or isinstance(piece, str) else _piece_text(piece))
    return "".join(parts) if all(isinstance(piece, str) for piece in parts) else RuntimeText(_joined, *parts)


def text_of(make: Callable[..., str], *args: object, **named: object) -> Any:
    """``make(*args, **named)``, a text of what it is given."""
    if not _asks_at_runtime([*args, *named.values()]):
        return make(*args, **named)
    count = len(args)
    return RuntimeText(lambda *xs: make(*xs[:count], **dict(zip(named, xs[count:]))), *args, *named.values())


def _asks_at_runtime(value: object) -> bool:
    return now().trace is not None and is_runtime_value(value)


def _joined(*pieces: Any) -> str:
    return "".join(piece if isinstance(piece, str) else _piece_text(piece) for piece in pieces)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"": lambda value: value, "r": repr, "s": str, "a": ascii}


def _piece_text(piece: tuple[Any, str, Any]) -> str:
    value, conversion, spec = piece
    return format(_CONVERSIONS[conversion](value), str(spec))
