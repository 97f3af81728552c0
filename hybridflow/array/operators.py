"""Python's operators on tensors and variables.

The classes are below the functions that these are made of, so they are installed here: an operator is the function of
the same meaning, and cannot differ from it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.array import elementwise, indexing, linalg, reductions, shapes, tensor_methods
from hybridflow.core.context import dialect
from hybridflow.core.method_install import give
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import beside
from hybridflow.eager.public_op import yields_to
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


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _yielding(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator of the left operand, which leaves it to a right one that wants no array's operators, as NumPy has
    it: a sparse or ragged tensor."""
    reflected = f"__{_MIRRORED.get(name, f'r{name}')}__"

    @functools.wraps(function)
    def of_left(*operands: object, **options: object) -> Tensor:  # of any number, which the function complains of
        if dialect.is_tensorflow and type(operands[-1]) is np.ndarray and dialect.is_spoken_in(sys._getframe(1)):
            operands = *operands[:-1], beside(operands[0], operands[-1])
        try:
            return function(*operands, **options)
        except BaseException as error:
            right = operands[-1] if len(operands) == 2 else None
            if isinstance(error, ArgumentTypeError) and yields_to(right) and hasattr(type(right), reflected):
                return NotImplemented
            raise of_user(of_arguments(error, function))  # noqa: B904  # the very error

    return of_left


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The operator of the right operand, which Python asks when the left one does not know what to do."""

    def of_right(self: object, other: ArrayLike, /) -> Tensor:
        return function(other, self)

    return of_right


def _divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Tensor, Tensor]:
    return elementwise.floor_divide(x, y), elementwise.remainder(x, y)


def _contains(x: ArrayLike, value: ArrayLike, /) -> bool:
    return bool(reductions.any(elementwise.equal(x, value)))


def _transpose_2d(x: ArrayLike) -> Tensor:
    """The transpose of a matrix.  Raises ShapeError for other ranks: use ``.mT`` or ``hf.permute_dims`` there."""
    return shapes.transpose_2d(x)


def _transpose(x: ArrayLike) -> Tensor:
    """The last two axes swapped."""
    return shapes.matrix_transpose(x)


def _adjoint_2d(x: ArrayLike) -> Tensor:
    """The conjugate transpose of a matrix.  Raises ShapeError for other ranks: use ``.mH`` there."""
    return elementwise.conj(shapes.transpose_2d(x))


def _adjoint(x: ArrayLike) -> Tensor:
    """The conjugate with the last two axes swapped."""
    return elementwise.conj(shapes.matrix_transpose(x))


def _real(x: ArrayLike) -> Tensor:
    """The real part; see ``hf.real``."""
    return elementwise.real(x)


def _imag(x: ArrayLike) -> Tensor:
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
    of_left = {name: _yielding(name, function) for name, function in {**_OF_TWO, **_COMPARISONS}.items()}
    others: dict[str, Callable[..., Any]] = {**_OF_ONE, "getitem": indexing.getitem}
    for name, function in {**of_left, **{name: entered(other) for name, other in others.items()}}.items():
        setattr(Operators, f"__{name}__", function)
    for name, function in (*_OF_TWO.items(), ("divmod", _divmod)):
        give(Operators, f"__r{name}__", _reflected(function))
    give(Operators, "__divmod__", _divmod)
    give(Operators, "__contains__", _contains)
    tensor_methods.install()
    for name, function in _PROPERTIES.items():
        setattr(Operators, name, property(entered(function)))
