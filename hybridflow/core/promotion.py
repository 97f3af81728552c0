"""Dtypes of values, and the one dtype that several combine to.

Scalars are weak, Python's and NumPy's:

- tensors and NumPy arrays, those without axes too, have their own dtype, and combine by ``dtypes.promote``;
- a Python or NumPy bool, int, float or complex number takes the dtype of what it meets, if that dtype's kind can hold
  it; an int that meets only bools becomes int64, a float that meets only bools and integers becomes float32; a complex
  number makes real dtypes complex, complex128 where it meets float64 and complex64 where it meets anything else;
- alone, Python values become bool, int64, float32 and complex64, and NumPy scalars keep their dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core import pytree
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError

if TYPE_CHECKING:
    from hybridflow.core.tensor import Tensor

default_float = dtypes.float32
default_int = dtypes.int64
PYTHON_DTYPE = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float32, complex: dtypes.complex64}
_RANK = {bool: 0, int: 1, float: 2, complex: 3}
_SUPPORTED = {dtype: dtype for dtype in dtypes.ALL}  # others may be equal to these, and native code compares objects


def to_dtype(dtype: Any, stage: str) -> np.dtype[Any]:
    """The dtype that a user named: a NumPy dtype, its name, ``"f32"``, or Python's bool, int (int64), float (float32)
    or complex (complex64).

    Raises DTypeError when it is not one of hybridflow's.
    """
    if isinstance(dtype, type) and dtype in PYTHON_DTYPE:
        return PYTHON_DTYPE[dtype]
    if isinstance(dtype, str) and dtype in dtypes.FROM_SHORT:
        return dtypes.FROM_SHORT[dtype]
    try:
        result = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # NumPy reads texts as code that has to be literal
        result = None
    result = None if dtype is None or result is None else _SUPPORTED.get(result)
    if result is None:
        names = ", ".join(map(str, dtypes.ALL))
        hint = " If it is an extent, give the shape as one tuple." if isinstance(dtype, int) else ""
        if dtype == "string" or getattr(getattr(dtype, "dtype", dtype), "metadata", None):
            raise DTypeError(stage, "string is no dtype of numbers. Use hf.strings.constant or hf.strings.as_string.")
        raise DTypeError(stage, f"{dtype!r} is not a dtype here; the dtypes are {names}.{hint}")
    return result


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Whether there are tensors of the dtype."""
    return dtype in _SUPPORTED


def weak_kind(value: Any) -> type | None:
    """bool, int, float or complex when ``value`` is a Python or NumPy scalar, or an extent; None for others."""
    kind = type(value)
    if kind in _RANK:
        return kind
    if kind is Dim:
        return int
    if isinstance(value, np.generic) or (hasattr(kind, "is_weak") and value.is_weak):
        return _kind_of(value.dtype)
    if isinstance(value, (bool, int, float, complex)):
        return (
            bool if isinstance(value, bool) else next(kind for kind in (int, float, complex) if isinstance(value, kind))
        )
    return None


def _kind_of(dtype: np.dtype[Any]) -> type | None:
    """The Python scalar that has values of ``dtype``; None for dtypes that are not ours."""
    if dtype not in _SUPPORTED:
        return None
    if dtypes.is_complex(dtype):
        return complex
    whole = dtypes.is_integer(dtypes.wide_dtype(dtype))
    return bool if dtypes.is_bool(dtype) else int if whole else float


def lone_dtype(value: Any, kind: type) -> np.dtype[Any]:
    """The dtype of a weak scalar that meets nothing else."""
    if getattr(value, "narrow", kind) is not kind:
        raise value.undecided("a tensor is made of it")
    return PYTHON_DTYPE[kind] if is_pythons(value) else getattr(value, "dtype", PYTHON_DTYPE[kind])


def is_pythons(value: object) -> bool:
    """Whether a weak scalar is one of Python's, or stands for one while tracing; else it is one of NumPy's."""
    return type(value) in _RANK or getattr(value, "is_python", False)


def scalar_array(value: Any, dtype: np.dtype[Any], stage: str) -> np.ndarray:
    """A Python or NumPy scalar as a 0-d array.  Raises ArgumentError when the dtype cannot hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex) and not dtypes.is_complex(dtype):
        raise DTypeError(stage, f"the complex number {value!r} is no {dtype}. Give a complex dtype, or its real part.")
    if dtypes.is_integer(dtypes.wide_dtype(dtype)):
        value = check_integral(value, dtype, stage)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        try:
            value = float(value)  # as Python rounds it; ints within int64 are rounded once, to the dtype itself
        except OverflowError:
            raise ArgumentError(stage, f"a Python int of {value.bit_length()} bits is too large for {dtype}.") from None
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype)


def array_dtype(array: Any, stage: str, what: str = "the value") -> np.dtype[Any]:
    """The dtype that a tensor made of a NumPy array or scalar has.  Raises DTypeError when there is none for it, and
    ArgumentTypeError for a masked array."""
    refuse_mask(array, stage, what)
    dtype = _SUPPORTED.get(array.dtype.newbyteorder("=") if not array.dtype.isnative else array.dtype)
    if dtype is None:
        raise DTypeError(
            stage,
            f"{what} is an array of dtype {array.dtype}, which is not supported; the dtypes are "
            f"{', '.join(map(str, dtypes.ALL))}.",
        )
    return dtype


def refuse_mask(array: object, stage: str, what: str = "the value") -> None:
    """Raise ArgumentTypeError for a masked array, whose mask a tensor would lose."""
    if type(array) is np.ndarray or (module := sys.modules.get("numpy.ma")) is None:  # loaded where there are such
        return
    if isinstance(array, module.MaskedArray):
        raise ArgumentTypeError(
            stage,
            f"{what} is a masked array, and tensors have no mask. Give x.filled(value), or x.data to use the elements "
            "that are masked too.",
        )


def check_integral(value: float, dtype: np.dtype[Any], stage: str) -> int:
    """A Python number as an int that ``dtype`` holds; raises ArgumentError when it is none."""
    if isinstance(value, float) and not value.is_integer():
        raise ArgumentError(stage, f"the Python float {value!r} is not a whole number, so it is no {dtype}.")
    least, most = dtypes.limits(dtype)
    if not least <= value <= most:
        raise ArgumentError(stage, f"the Python number {value} does not fit {dtype} ({least} to {most}).")
    return int(value)


def promote(a: np.dtype[Any], b: np.dtype[Any], stage: str) -> np.dtype[Any]:
    try:
        return dtypes.promote(a, b)
    except TypeError as error:
        raise DTypeError(stage, f"{error}. Convert one operand with hf.astype.") from None


def result_dtype(stage: str, values: Sequence[Any]) -> np.dtype[Any]:
    """The dtype that ``values`` (tensors and Python scalars) combine to."""
    dtype: np.dtype[Any] | None = None
    weak: type | None = None
    undecided: Any = None
    for value in values:
        kind = weak_kind(value)
        if kind is not None:
            weak = kind if weak is None or _RANK[kind] > _RANK[weak] else weak
            undecided = value if getattr(value, "narrow", kind) is not kind else undecided
        else:
            dtype = value.dtype if dtype is None else promote(dtype, value.dtype, stage)
    result = _combined(stage, values, dtype, weak)
    if undecided is not None:
        other = result_dtype(stage, [x.narrow() if hasattr(x, "narrow") else x for x in values])
        if other != result:
            raise undecided.undecided(f"the result is {other} or {result}")
    return result


def _combined(stage: str, values: Sequence[Any], dtype: np.dtype[Any] | None, weak: type | None) -> np.dtype[Any]:
    if dtype is None:
        assert weak is not None
        return _of_scalars(stage, values, weak)
    if dtypes.is_stored(dtype):
        if weak is not None and _RANK[weak] > (2 if dtypes.is_float(dtypes.wide_dtype(dtype)) else 1):
            raise DTypeError(stage, f"{dtype} holds no Python {weak.__name__}. Convert the tensor with hf.astype.")
        return dtype
    if weak is complex:
        return dtypes.complex_dtype(dtype)
    if weak is float and not dtypes.is_inexact(dtype):
        return default_float
    if weak is int and dtypes.is_bool(dtype):
        return default_int
    return dtype


def _of_scalars(stage: str, values: Sequence[Any], widest: type) -> np.dtype[Any]:
    """The dtype of weak scalars among themselves: NumPy's are not weak next to Python's."""
    typed_values = [value for value in values if not is_pythons(value) and hasattr(value, "dtype")]
    if not typed_values:
        return PYTHON_DTYPE[widest]
    typed = [Typed(value.dtype) for value in typed_values]
    return result_dtype(stage, [*typed, *(value for value in values if not any(value is one for one in typed_values))])


class Typed(NamedTuple):
    """Stands for a value of which only the dtype matters."""

    dtype: np.dtype[Any]


@pytree.declare_leaf
class OpenFloat:
    """What stands for a Python float of which a program is to serve all values, see ``tracing.symbolic_float``.

    It is an instance of float to whoever asks, and weak as an operand.
    """

    __slots__ = ()

    is_python = True
    if not TYPE_CHECKING:
        __class__ = property(lambda self: float)

    def as_operand(self, dtype: np.dtype[Any], stage: str) -> Tensor:
        """The number as a tensor without axes."""
        raise NotImplementedError

    def value(self) -> float:
        """The number in the call that is traced, whose program serves no other from now on."""
        raise NotImplementedError
