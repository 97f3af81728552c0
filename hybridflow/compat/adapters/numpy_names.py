"""``tf.experimental.numpy``: NumPy's functions, with its dtypes and its rules for numbers, of tensors.

NumPy is what is called; where an argument is a tensor it asks that for the function of ours that is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.compiler.ir.dtypes import is_bool, is_float
from hybridflow.core.promotion import is_supported
from hybridflow.core.tensor import Operators

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


_CREATING = (
    "arange array asanyarray asarray ascontiguousarray diag_indices empty eye full geomspace identity ix_ linspace "
    "logspace ones tri zeros"
)
_JOINING = "broadcast_arrays concatenate dstack hstack ix_ meshgrid stack vstack"
_ASKING = "finfo iinfo issubdtype promote_types result_type isscalar"
_OTHERS = (
    "abs absolute add all allclose amax amin any append arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax "
    "argmin argsort around array_equal atleast_1d atleast_2d atleast_3d average bitwise_and bitwise_not bitwise_or "
    "bitwise_xor broadcast_to cbrt ceil clip compress conj conjugate copy cos cosh count_nonzero cross cumprod cumsum "
    "deg2rad diag diagflat diagonal diff divide divmod dot dsplit einsum empty_like equal exp exp2 expand_dims expm1 "
    "fabs fix flip fliplr flipud float_power floor floor_divide full_like gcd greater greater_equal heaviside hsplit "
    "hypot inner isclose isfinite isinf isnan isneginf isposinf kron lcm less less_equal log log10 log1p log2 "
    "logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul max maximum mean min minimum mod "
    "moveaxis multiply nanmean nanprod nansum ndim negative nextafter nonzero not_equal ones_like outer pad polyval "
    "positive power prod ptp rad2deg ravel reciprocal remainder repeat reshape roll rot90 round select shape sign "
    "signbit sin sinc sinh size sort split sqrt square squeeze std subtract sum swapaxes take take_along_axis tan "
    "tanh tensordot tile trace transpose tril triu true_divide vander var vdot vsplit where zeros_like"
)
_CONSTANTS = (
    "bool_ e float16 float32 float64 inexact inf int16 int32 int64 int8 newaxis pi uint16 uint32 uint64 uint8 nan"
)
__all__ = sorted(
    {
        *_CREATING.split(), *_JOINING.split(), *_ASKING.split(), *_OTHERS.split(), *_CONSTANTS.split(), "ndarray",
        "experimental_enable_numpy_behavior", "float_", "int_", "flatten",
    }
)  # fmt: skip
ndarray, float_, int_ = hf.Tensor, np.float64, np.int64


def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """``tf.experimental.numpy.experimental_enable_numpy_behavior``: tensors have NumPy's methods anyway."""
    _settings["prefers_float32"] = bool(prefer_float32)


_settings = {"prefers_float32": False}


def flatten(a: TensorLike, order: str = "C") -> Any:
    """``tf.experimental.numpy.flatten``."""
    return hf.reshape(_tensor(a), (-1,))


def __getattr__(name: str) -> Any:
    if name in _CONSTANTS.split() or name in _ASKING.split():
        return getattr(np, name)
    if name in __all__:
        return _function(name)
    raise AttributeError(name)


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    theirs = getattr(np, name)
    keep = name in _CREATING.split()
    several = name in _JOINING.split()

    def call(*args: object, **kwargs: object) -> Any:
        arguments = args if keep else tuple(_operands(args, several))
        options = {key: _dtype(value) if key == "dtype" else value for key, value in kwargs.items()}
        result = _tensors(theirs(*arguments, **options))
        is_narrow = isinstance(result, hf.Tensor) and result.dtype == hf.float32 and not keep
        if is_narrow and not _has_floats((arguments, options)):
            arguments, options = hf.tree.map(_wide, (arguments, options))  # what NumPy makes of integers is float64
            result = _tensors(theirs(*arguments, **options))
        narrow = _settings["prefers_float32"] and "dtype" not in kwargs and not _has_wide(args)
        return hf.tree.map(_narrow, result) if narrow else result

    functools.update_wrapper(call, theirs, ("__name__", "__qualname__", "__doc__"))
    return call


def _operands(args: Any, several: bool) -> Any:
    """The arguments, with tensors for arrays: for the first, for all that are arrays, and for those in a list."""
    for k, value in enumerate(args):
        if several and isinstance(value, (list, tuple)):
            yield [_tensor(x) for x in value]
        else:
            yield _tensor(value) if k == 0 or isinstance(value, np.ndarray) else value


def _tensor(value: object) -> Any:
    if isinstance(value, (Operators, str)) or callable(value):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(x, Operators) for x in value):
        return hf.stack([_tensor(x) for x in value])
    array = np.asarray(value)
    return hf.asarray(array) if is_supported(array.dtype) else value


def _tensors(results: object) -> Any:
    if isinstance(results, (list, tuple)):
        return type(results)([_tensors(x) for x in results])
    is_array = isinstance(results, (np.ndarray, np.generic)) and is_supported(results.dtype)
    return hf.asarray(np.asarray(results)) if is_array else results


def _has_floats(values: Any) -> bool:
    return any(is_float(x.dtype) for x in hf.tree.leaves(values) if isinstance(x, Operators)) or "dtype" in values[1]


def _wide(value: ArrayLike) -> Any:
    is_number = isinstance(value, Operators) and not is_bool(value.dtype)
    return hf.asarray(value, hf.float64) if is_number or isinstance(value, float) else value


def _has_wide(args: object) -> bool:
    """Whether something that has a dtype of its own is float64."""
    return any(getattr(x, "dtype", hf.bool_) == hf.float64 for x in hf.tree.leaves(args))


def _narrow(x: object) -> Any:
    return hf.astype(x, hf.float32) if isinstance(x, Operators) and x.dtype == hf.float64 else x


def _dtype(value: object) -> Any:
    return getattr(value, "dtype", value) if not isinstance(value, type) else value


@tf_export("experimental.numpy.random.seed")
def seed(s: int) -> None:
    """``tf.experimental.numpy.random.seed``."""
    hf.random.set_seed(s)


@tf_export("experimental.numpy.random.rand")
def rand(*size: int) -> Any:
    """``tf.experimental.numpy.random.rand``: float64 in [0, 1)."""
    return hf.random.uniform(size, dtype=hf.float64)


@tf_export("experimental.numpy.random.randn")
def randn(*args: int) -> Any:
    """``tf.experimental.numpy.random.randn``: float64."""
    return hf.random.normal(args, dtype=hf.float64)


@tf_export("experimental.numpy.random.normal")
def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """``tf.experimental.numpy.random.normal``."""
    return hf.random.normal(_size(size), dtype=hf.float64) * scale + loc


@tf_export("experimental.numpy.random.uniform")
def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """``tf.experimental.numpy.random.uniform``."""
    return hf.random.uniform(_size(size), dtype=hf.float64) * (high - low) + low


@tf_export("experimental.numpy.random.randint")
def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Any:
    """``tf.experimental.numpy.random.randint``."""
    low, high = (0, low) if high is None else (low, high)
    return hf.random.uniform(_size(size), low, high, dtype=_dtype(dtype))


@tf_export("experimental.numpy.random.random")
def random(size: Any = None) -> Any:
    """``tf.experimental.numpy.random.random``."""
    return rand(*_size(size))


standard_normal = normal


def _size(size: Any) -> tuple[int, ...]:
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


export(standard_normal, "experimental.numpy.random.standard_normal")
