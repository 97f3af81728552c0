"""Python's operators on tensors and variables.

The classes are below the functions that these are made of, so they are installed here: an operator is the function of
the same meaning, and cannot differ from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hybridflow.array import elementwise, indexing, linalg, reductions, shapes, tensor_methods
from hybridflow.core.method_install import give
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.errors import ArgumentTypeError, entered, of_arguments, of_user

_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.pow,
    "matmul": linalg.matmul,
    "and": elementwise.bitwise_and,
    "or": elementwise.bitwise_or,
    "xor": elementwise.bitwise_xor,
    "lshift": elementwise.bitwise_left_shift,
    "rshift": elementwise.bitwise_right_shift,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Tensor]] = {
    "eq": elementwise.equal,
    "ne": elementwise.not_equal,
    "lt": elementwise.less,
    "le": elementwise.less_equal,
    "gt": elementwise.greater,
    "ge": elementwise.greater_equal,
}
_OF_ONE: dict[str, Callable[[Any], Tensor]] = {
    "neg": elementwise.negative,
    "pos": elementwise.positive,
    "abs": elementwise.abs,
    "invert": elementwise.bitwise_invert,
}


@functools.wraps(linalg.matmul)
def _matmul(x: Any, y: Any, /, **options: Any) -> Any:
    # A right operand that wants no array's operators, as NumPy has it, is asked for its own: a sparse matrix.
    try:
        return linalg.matmul(x, y, **options)
    except BaseException as error:
        kind = type(y)
        wants_none = getattr(kind, "__array_ufunc__", kind) is None and hasattr(kind, "__rmatmul__")
        if wants_none and isinstance(error, ArgumentTypeError):
            return NotImplemented
        raise of_user(of_arguments(error, linalg.matmul))  # noqa: B904  # the very error


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The operator of the right operand, which Python asks when the left one does not know what to do."""

    def of_right(self: Any, other: Any, /) -> Any:
        return function(other, self)

    return of_right


def _divmod(x: Any, y: Any, /) -> tuple[Tensor, Tensor]:
    return elementwise.floor_divide(x, y), elementwise.remainder(x, y)


def _contains(x: Any, value: Any, /) -> bool:
    return bool(reductions.any(elementwise.equal(x, value)))


def _transpose_2d(x: Any) -> Tensor:
    """The transpose of a matrix.  Raises ShapeError for other ranks: use ``.mT`` or ``hf.permute_dims`` there."""
    return shapes.transpose_2d(x)


def _transpose(x: Any) -> Tensor:
    """The last two axes swapped."""
    return shapes.matrix_transpose(x)


def _adjoint_2d(x: Any) -> Tensor:
    """The conjugate transpose of a matrix.  Raises ShapeError for other ranks: use ``.mH`` there."""
    return elementwise.conj(shapes.transpose_2d(x))


def _adjoint(x: Any) -> Tensor:
    """The conjugate with the last two axes swapped."""
    return elementwise.conj(shapes.matrix_transpose(x))


def _real(x: Any) -> Tensor:
    """The real part; see ``hf.real``."""
    return elementwise.real(x)


def _imag(x: Any) -> Tensor:
    """The imaginary part; see ``hf.imag``."""
    return elementwise.imag(x)


_PROPERTIES = {
    "T": _transpose_2d,
    "mT": _transpose,
    "H": _adjoint_2d,
    "mH": _adjoint,
    "real": _real,
    "imag": _imag,
}


def install() -> None:
    """Give the classes their operators; called once, when the package is imported."""
    operators: dict[str, Callable[..., Any]] = {**_OF_TWO, **_COMPARISONS, **_OF_ONE, "getitem": indexing.getitem}
    for name, function in operators.items():
        setattr(Operators, f"__{name}__", _matmul if name == "matmul" else entered(function))
    for name, function in (*_OF_TWO.items(), ("divmod", _divmod)):
        give(Operators, f"__r{name}__", _reflected(function))
    give(Operators, "__divmod__", _divmod)
    give(Operators, "__contains__", _contains)
    tensor_methods.install()
    for name, function in _PROPERTIES.items():
        setattr(Operators, name, property(entered(function)))
