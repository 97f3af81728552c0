"""``keras.ops`` that are named as in NumPy, with Keras's promotion of dtypes."""

from __future__ import annotations

import builtins
import functools
import itertools
import math

import numpy as np
from keras.src import tree
from keras.src.backend import config
from keras.src.backend.common import dtypes, standardize_dtype
from keras.src.backend.common.backend_utils import canonicalize_axis

import hybridflow as hf
from hybridflow.keras_backend.modules.core import Variable as _Variable, convert_to_tensor, is_tensor

# ---- operands


def _dtype(x):
    return standardize_dtype(x.dtype)


def _kind(x):
    """What promotion knows of an operand: the type of a Python number, which is weak."""
    return type(x) if isinstance(x, (int, float)) else x.dtype


def _operand(x):
    return x if isinstance(x, (int, float)) else convert_to_tensor(x)


def _promoted(*operands, also=()):
    """Operands in their common dtype; Python numbers are weak."""
    operands = [_operand(x) for x in operands]
    dtype = dtypes.result_type(*[_kind(x) for x in operands], *also)
    return [convert_to_tensor(x, dtype) for x in operands]


def _tensors(*operands, also=()):
    """Tensors in their common dtype; Python numbers are tensors of their own."""
    operands = [convert_to_tensor(x) for x in operands]
    dtype = dtypes.result_type(*[x.dtype for x in operands], *also)
    return [convert_to_tensor(x, dtype) for x in operands]


def _is_integral(dtype):
    return "int" in dtype or dtype == "bool"


def _float_dtype(x):
    return config.floatx() if _dtype(x) == "int64" else dtypes.result_type(x.dtype, float)


def _floats(x):
    x = convert_to_tensor(x)
    return convert_to_tensor(x, _float_dtype(x))


def _in_floats(function):
    """A function of one operand, which integers take part in as floats."""

    def call(x):
        x = convert_to_tensor(x)
        dtype = _float_dtype(x)
        return convert_to_tensor(function(convert_to_tensor(x, dtype)), dtype)

    return _named(call, function)


def _in_floatx(function):
    """The same, where integers become the default float."""

    def call(x):
        x = convert_to_tensor(x)
        return function(convert_to_tensor(x, config.floatx()) if _is_integral(_dtype(x)) else x)

    return _named(call, function)


def _as_it_is(function):
    def call(x):
        return function(convert_to_tensor(x))

    return _named(call, function)


def _of_two(function, *also):
    def call(x1, x2):
        return function(*_promoted(x1, x2, also=also))

    return _named(call, function)


def _of_two_tensors(function, *also, bool_as=None):
    def call(x1, x2):
        x1, x2 = _tensors(x1, x2, also=also)
        if bool_as and _dtype(x1) == "bool":
            x1, x2 = convert_to_tensor(x1, bool_as), convert_to_tensor(x2, bool_as)
        return function(x1, x2)

    return _named(call, function)


def _named(call, function):
    call.__name__ = getattr(function, "__name__", "operation")
    return call


def _axes(axis):
    if isinstance(axis, (list, tuple)):
        return tuple(int(a) for a in axis)
    return axis


def _flat(x, axis):
    """The operand and the axis, where None stands for all elements in one row."""
    x = convert_to_tensor(x)
    return (hf.reshape(x, (-1,)), 0) if axis is None else (x, axis)


def _wide_integer(dtype):
    """The dtype of sums and products: of 32 bits at least."""
    if dtype in ("bool", "int8", "int16"):
        return "int32"
    return "uint32" if dtype in ("uint8", "uint16") else dtype


# ---- elementwise

arccos = _in_floats(hf.acos)
arccosh = _in_floats(hf.acosh)
arcsin = _in_floats(hf.asin)
arcsinh = _in_floats(hf.asinh)
arctan = _in_floats(hf.atan)
arctanh = _in_floats(hf.atanh)
ceil = _in_floats(hf.ceil)
cos = _in_floats(hf.cos)
cosh = _in_floats(hf.cosh)
floor = _in_floats(hf.floor)
log = _in_floats(hf.log)
log10 = _in_floats(hf.log10)
log1p = _in_floats(hf.log1p)
log2 = _in_floats(hf.log2)
sin = _in_floats(hf.sin)
sinc = _in_floats(hf.special.sinc)
sinh = _in_floats(hf.sinh)
sqrt = _in_floats(hf.sqrt)
tan = _in_floats(hf.tan)
tanh = _in_floats(hf.tanh)
angle = _in_floats(hf.angle)
exp = _in_floatx(hf.exp)
exp2 = _in_floatx(hf.exp2)
expm1 = _in_floatx(hf.expm1)
fabs = _in_floatx(hf.abs)
isfinite = _as_it_is(hf.isfinite)
isinf = _as_it_is(hf.isinf)
isnan = _as_it_is(hf.isnan)
isneginf = _as_it_is(hf.isneginf)
isposinf = _as_it_is(hf.isposinf)
logical_not = _as_it_is(lambda x: hf.logical_not(convert_to_tensor(x, "bool")))
negative = _as_it_is(hf.negative)
real = _as_it_is(hf.real)
conjugate = conj = _as_it_is(hf.conj)
bitwise_not = bitwise_invert = _as_it_is(hf.bitwise_invert)
signbit = _as_it_is(lambda x: x < 0 if _is_integral(_dtype(x)) else hf.signbit(x))
reciprocal = _as_it_is(lambda x: hf.floor_divide(hf.ones_like(x), x) if _is_integral(_dtype(x)) else hf.reciprocal(x))

add = _of_two(lambda x, y: hf.logical_or(x, y) if _dtype(x) == "bool" else hf.add(x, y))
multiply = _of_two(lambda x, y: hf.logical_and(x, y) if _dtype(x) == "bool" else hf.multiply(x, y))
maximum = _of_two(lambda x, y: hf.logical_or(x, y) if _dtype(x) == "bool" else hf.maximum(x, y))
minimum = _of_two(lambda x, y: hf.logical_and(x, y) if _dtype(x) == "bool" else hf.minimum(x, y))
subtract = _of_two(hf.subtract)
divide = true_divide = _of_two(hf.divide, float)
fmax = _of_two(lambda x, y: hf.fmax(x, y) if not _is_integral(_dtype(x)) else maximum(x, y))
fmin = _of_two(lambda x, y: hf.fmin(x, y) if not _is_integral(_dtype(x)) else minimum(x, y))
equal = _of_two(hf.equal)
not_equal = _of_two(hf.not_equal)
greater = _of_two(hf.greater)
greater_equal = _of_two(hf.greater_equal)
less = _of_two(hf.less)
less_equal = _of_two(hf.less_equal)
mod = _of_two_tensors(hf.remainder, bool_as="int32")
fmod = _of_two_tensors(hf.fmod, bool_as="int32")
gcd = _of_two_tensors(hf.gcd)
lcm = _of_two_tensors(hf.lcm)
arctan2 = _of_two_tensors(hf.atan2, float)
logaddexp = _of_two_tensors(hf.logaddexp, float)
nextafter = _of_two_tensors(hf.nextafter, float)


def _bitwise(function):
    def call(x, y):
        return function(*_tensors(x, y))

    return _named(call, function)


bitwise_and = _bitwise(hf.bitwise_and)
bitwise_or = _bitwise(hf.bitwise_or)
bitwise_xor = _bitwise(hf.bitwise_xor)


def logaddexp2(x1, x2):
    x1, x2 = _tensors(x1, x2, also=(float,))
    ln2 = math.log(2.0)
    return hf.logaddexp(x1 * ln2, x2 * ln2) / ln2


def _wide_floats(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = dtypes.result_type(x1.dtype, x2.dtype)
    if dtype == "int64":
        dtype = "float64"
    elif _is_integral(dtype) and dtype != "bool":
        dtype = config.floatx()
    return convert_to_tensor(x1, dtype), convert_to_tensor(x2, dtype), dtype


def heaviside(x1, x2):
    x1, x2, dtype = _wide_floats(x1, x2)
    if dtype == "bool":
        x1, x2 = convert_to_tensor(x1, "float32"), convert_to_tensor(x2, "float32")
    return convert_to_tensor(hf.heaviside(x1, x2), dtype)


def hypot(x1, x2):
    x1, x2, dtype = _wide_floats(x1, x2)
    if dtype == "bool":
        x1, x2 = convert_to_tensor(x1, "float32"), convert_to_tensor(x2, "float32")
    return convert_to_tensor(hf.hypot(x1, x2), dtype)


def floor_divide(x1, x2):
    x1, x2 = _promoted(x1, x2)
    if _dtype(x1) == "bool":
        return convert_to_tensor(hf.floor_divide(convert_to_tensor(x1, "int8"), convert_to_tensor(x2, "int8")), "int8")
    return hf.floor_divide(x1, x2)


def divide_no_nan(x1, x2):
    x1, x2 = _promoted(x1, x2, also=(float,))
    safe = hf.where(x2 == 0, hf.ones_like(x2), x2)
    return hf.where(x2 == 0, hf.zeros_like(x2), x1 / safe)


def power(x1, x2):
    x1, x2 = _promoted(x1, x2)
    if _dtype(x1) == "bool":
        return convert_to_tensor(hf.pow(convert_to_tensor(x1, "int8"), convert_to_tensor(x2, "int8")), "int8")
    return hf.pow(x1, x2)


def _logical(function):
    def call(x1, x2):
        return function(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))

    return _named(call, function)


logical_and = _logical(hf.logical_and)
logical_or = _logical(hf.logical_or)
logical_xor = _logical(hf.logical_xor)


def _shifted(function):
    def call(x, y):
        x = convert_to_tensor(x)
        if isinstance(y, int):
            return function(x, convert_to_tensor(y, _dtype(x)))
        return function(*_tensors(x, y))

    return _named(call, function)


bitwise_left_shift = left_shift = _shifted(hf.bitwise_left_shift)
bitwise_right_shift = right_shift = _shifted(hf.bitwise_right_shift)


def absolute(x):
    x = convert_to_tensor(x)
    return x if _dtype(x) == "bool" or _dtype(x).startswith("uint") else hf.abs(x)


abs = absolute


def sign(x):
    x = convert_to_tensor(x)
    return convert_to_tensor(x, "int32") if _dtype(x) == "bool" else hf.sign(x)


def square(x):
    x = convert_to_tensor(x)
    return hf.square(convert_to_tensor(x, "int32") if _dtype(x) == "bool" else x)


def trunc(x):
    x = convert_to_tensor(x)
    return x if _is_integral(_dtype(x)) else hf.trunc(x)


def imag(x):
    x = convert_to_tensor(x)
    return hf.imag(x) if x.dtype.kind == "c" else hf.zeros_like(x)


def isreal(x):
    x = convert_to_tensor(x)
    return hf.imag(x) == 0 if x.dtype.kind == "c" else hf.ones_like(x, dtype="bool")


def cbrt(x):
    x = convert_to_tensor(x)
    dtype = _dtype(x)
    if _is_integral(dtype):
        dtype = "float64" if dtype == "int64" else config.floatx()
    return hf.cbrt(convert_to_tensor(x, dtype))


def _of_angles(function):
    def call(x):
        x = convert_to_tensor(x)
        dtype = _dtype(x)
        if dtype in ("int64", "float64"):
            dtype = "float64"
        elif dtype not in ("bfloat16", "float16"):
            dtype = config.floatx()
        return function(convert_to_tensor(x, dtype))

    return _named(call, function)


deg2rad = _of_angles(hf.deg2rad)
rad2deg = _of_angles(hf.rad2deg)


def i0(x):
    x = convert_to_tensor(x)
    dtype = "float64" if _dtype(x) in ("int64", "float64") else dtypes.result_type(x.dtype, float)
    return convert_to_tensor(hf.special.i0(convert_to_tensor(x, dtype)), dtype)


def ldexp(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = dtypes.result_type(x1.dtype, x2.dtype, float)
    if _dtype(x2) not in dtypes.INT_TYPES:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={x2.dtype}")
    return convert_to_tensor(hf.ldexp(convert_to_tensor(x1, dtype), convert_to_tensor(x2, "int32")), dtype)


def clip(x, x_min, x_max):
    x = convert_to_tensor(x)
    if _dtype(x) == "bool":
        x = convert_to_tensor(x, "int32")
    low, high = (None if v is None else convert_to_tensor(v, _dtype(x)) for v in (x_min, x_max))
    return hf.clip(x, low, high)


def round(x, decimals=0):
    x = convert_to_tensor(x)
    if _is_integral(_dtype(x)):
        if decimals >= 0:
            return x
        return convert_to_tensor(round(convert_to_tensor(x, "float64"), decimals), _dtype(x))
    if decimals == 0:
        return hf.round(x)
    scale = 10.0 ** builtins.abs(decimals)
    return hf.round(x * scale) / scale if decimals > 0 else hf.round(x / scale) * scale


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = convert_to_tensor(x)
    return x if _is_integral(_dtype(x)) else hf.nan_to_num(x, nan, posinf, neginf)


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    x1, x2 = _tensors(x1, x2)
    return hf.isclose(x1, x2, rtol, atol, equal_nan)


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return hf.all(isclose(x1, x2, rtol, atol, equal_nan))


def where(condition, x1=None, x2=None):
    if x1 is None or x2 is None:
        return nonzero(condition)
    x1, x2 = _promoted(x1, x2)
    return hf.where(convert_to_tensor(condition, "bool"), x1, x2)


def select(condlist, choicelist, default=0):
    choices = _promoted(*choicelist, default)
    result = choices[-1]
    for chosen, choice in zip(reversed(condlist), reversed(choices[:-1])):
        result = hf.where(convert_to_tensor(chosen, "bool"), choice, result)
    return result


def view(x, dtype=None):
    x = convert_to_tensor(x)
    if dtype is None or standardize_dtype(dtype) == _dtype(x):
        return x
    if type(x) is not hf.Tensor:
        raise NotImplementedError("`view` of the hybridflow backend needs a value: it runs outside of compiled steps.")
    return convert_to_tensor(np.asarray(x).view(hf.zeros((), dtype=standardize_dtype(dtype)).dtype))


# ---- creation


def array(x, dtype=None):
    return convert_to_tensor(x, dtype=dtype)


def _extents(shape):
    if isinstance(shape, (list, tuple)):
        return tuple(int(n) if is_tensor(n) else n for n in shape)
    if isinstance(shape, _Variable) or is_tensor(shape):
        value = np.asarray(shape)
        return tuple(int(n) for n in value) if value.ndim else (int(value),)
    return shape if isinstance(shape, tuple) else (shape,)


def ones(shape, dtype=None):
    return hf.ones(_extents(shape), dtype=standardize_dtype(dtype))


def zeros(shape, dtype=None):
    return hf.zeros(_extents(shape), dtype=standardize_dtype(dtype))


empty = zeros


def full(shape, fill_value, dtype=None):
    return hf.broadcast_to(convert_to_tensor(fill_value, standardize_dtype(dtype)), _extents(shape))


def _like(x, dtype):
    x = convert_to_tensor(x)
    return x.shape, standardize_dtype(dtype) if dtype is not None else _dtype(x)


def ones_like(x, dtype=None):
    shape, dtype = _like(x, dtype)
    return hf.ones(shape, dtype=dtype)


def zeros_like(x, dtype=None):
    shape, dtype = _like(x, dtype)
    return hf.zeros(shape, dtype=dtype)


empty_like = zeros_like


def full_like(x, fill_value, dtype=None):
    shape, dtype = _like(x, dtype)
    return hf.broadcast_to(convert_to_tensor(fill_value, dtype), shape)


def arange(start, stop=None, step=None, dtype=None):
    if dtype is None:
        ends = [x for x in (start, stop, step) if x is not None]
        dtype = dtypes.result_type(*[getattr(x, "dtype", int if type(x).__name__ == "Dim" else type(x)) for x in ends])
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    start, stop, step = (x.value if isinstance(x, _Variable) else x for x in (start, stop, step))
    dtype = standardize_dtype(dtype)
    if dtype == "bool":
        return convert_to_tensor(hf.arange(start, stop, step, dtype="int32"), "bool")
    if builtins.any(isinstance(x, (float, np.floating)) for x in (start, stop, step)) and "int" in dtype:
        return convert_to_tensor(np.arange(start, stop, step, dtype=dtype))
    return hf.arange(start, stop, step, dtype=dtype)


def _ends(start, stop, dtype):
    if dtype is None:
        dtype = dtypes.result_type(
            *[
                getattr(x, "dtype", type(x)) if not isinstance(x, (list, tuple)) else convert_to_tensor(x).dtype
                for x in (start, stop)
            ],
            float,
        )
    return standardize_dtype(dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    dtype = _ends(start, stop, dtype)
    compute = dtype if not _is_integral(dtype) else "float64"
    first, last = convert_to_tensor(start, compute), convert_to_tensor(stop, compute)
    if first.ndim == last.ndim == 0:
        plain = builtins.all(isinstance(x, (int, float, np.generic)) for x in (start, stop))
        ends = (float(start), float(stop)) if plain else (first, last)
        values = hf.linspace(*ends, int(num), dtype=compute, endpoint=endpoint)
    else:
        first, last = hf.broadcast_arrays(first, last)
        count = int(num) - 1 if endpoint else int(num)
        at = hf.astype(hf.arange(int(num)), compute) / builtins.max(count, 1)
        at = hf.reshape(at, (-1,) + (1,) * first.ndim)
        values = first + at * (last - first)
        if endpoint and num > 1:
            values = hf.concat([values[:-1], last[None]], axis=0)
        values = hf.moveaxis(values, 0, axis)
    if _is_integral(dtype):
        values = convert_to_tensor(hf.floor(values), dtype)
    if retstep:
        steps = builtins.max(int(num) - 1 if endpoint else int(num), 1)
        return values, (last - first) / steps
    return values


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    dtype = _ends(start, stop, dtype)
    compute = "float64" if _is_integral(dtype) or dtype == "float64" else "float32"
    powers = linspace(start, stop, num, endpoint, dtype=compute, axis=axis)
    return convert_to_tensor(hf.pow(convert_to_tensor(base, compute), powers), dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    dtype = standardize_dtype(dtype)
    first, last = convert_to_tensor(start, "float64"), convert_to_tensor(stop, "float64")
    negative_ends = hf.logical_and(first < 0, last < 0)
    powers = linspace(hf.log(hf.abs(first)), hf.log(hf.abs(last)), num, endpoint, dtype="float64", axis=axis)
    signs = hf.where(negative_ends, -1.0, 1.0)
    if signs.ndim:
        signs = hf.expand_dims(signs, axis)
    return convert_to_tensor(hf.exp(powers) * signs, dtype)


def eye(N, M=None, k=0, dtype=None):
    return hf.eye(int(N), None if M is None else int(M), k=int(k), dtype=standardize_dtype(dtype))


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    return hf.tri(N, M, k, dtype=standardize_dtype(dtype))


def vander(x, N=None, increasing=False):
    x = convert_to_tensor(x)
    computed = hf.vander(convert_to_tensor(x, dtypes.result_type(x.dtype, config.floatx())), N, increasing)
    return convert_to_tensor(computed, dtypes.result_type(x.dtype))


def meshgrid(*x, indexing="xy"):
    return list(hf.meshgrid(*[hf.reshape(convert_to_tensor(v), (-1,)) for v in x], indexing=indexing))


def _window(function):
    def call(x):
        count = int(convert_to_tensor(x))
        return convert_to_tensor(np.asarray(function(count)), config.floatx())

    return _named(call, function)


bartlett = _window(np.bartlett)
blackman = _window(np.blackman)
hamming = _window(np.hamming)
hanning = _window(np.hanning)


def kaiser(x, beta):
    return convert_to_tensor(np.kaiser(int(convert_to_tensor(x)), float(convert_to_tensor(beta))), config.floatx())


# ---- reductions


def mean(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = dtypes.result_type(x.dtype, "float32") if _is_integral(_dtype(x)) else _dtype(x)
    return convert_to_tensor(hf.mean(convert_to_tensor(x, dtype), axis=_axes(axis), keepdims=keepdims), dtype)


def sum(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = _wide_integer(_dtype(x))
    return convert_to_tensor(hf.sum(convert_to_tensor(x, dtype), axis=_axes(axis), keepdims=keepdims), dtype)


def prod(x, axis=None, keepdims=False, dtype=None):
    x = convert_to_tensor(x)
    dtype = _wide_integer(dtypes.result_type(x.dtype)) if dtype is None else standardize_dtype(dtype)
    return convert_to_tensor(hf.prod(convert_to_tensor(x, dtype), axis=_axes(axis), keepdims=keepdims), dtype)


def _extreme(name, function, of_bools, combine, initial_of):
    def call(x, axis=None, keepdims=False, initial=None):
        x = convert_to_tensor(x)
        axis = _axes(axis)
        if initial is not None:
            initial = convert_to_tensor(initial, _dtype(x))
            if 0 in x.shape:
                kept = _reduced_shape(x.shape, axis, keepdims)
                return hf.broadcast_to(initial, kept)
        if _dtype(x) == "bool":
            result = of_bools(x, axis=axis, keepdims=keepdims)
        else:
            result = function(x, axis=axis, keepdims=keepdims)
        return result if initial is None else combine(result, initial)

    call.__name__ = name
    return call


def _reduced_shape(shape, axis, keepdims):
    axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = {canonicalize_axis(a, len(shape)) for a in axes}
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


max = _extreme("max", hf.max, hf.any, maximum, None)
min = _extreme("min", hf.min, hf.all, minimum, None)


def amax(x, axis=None, keepdims=False):
    return max(x, axis, keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis, keepdims)


def ptp(x, axis=None, keepdims=False):
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def all(x, axis=None, keepdims=False):
    return hf.all(convert_to_tensor(x, "bool"), axis=_axes(axis), keepdims=keepdims)


def any(x, axis=None, keepdims=False):
    return hf.any(convert_to_tensor(x, "bool"), axis=_axes(axis), keepdims=keepdims)


def count_nonzero(x, axis=None):
    return convert_to_tensor(hf.count_nonzero(convert_to_tensor(x), axis=_axes(axis)), "int32")


def _place(function):
    def call(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        dims = x.ndim
        if _dtype(x) == "bool":
            x = convert_to_tensor(x, "int8")
        elif "float" in _dtype(x) and dims:
            x = convert_to_tensor(x, dtypes.result_type(x.dtype, "float32"))
            smallest = -np.finfo(x.dtype).tiny  # -0.0 is less than 0.0
            x = hf.where(hf.logical_and(x == 0, hf.signbit(x)), convert_to_tensor(smallest, _dtype(x)), x)
        places = function(hf.reshape(x, (-1,)) if axis is None else x, axis=0 if axis is None else axis)
        if keepdims:
            places = hf.reshape(places, (1,) * dims) if axis is None else hf.expand_dims(places, axis)
        return convert_to_tensor(places, "int32")

    return _named(call, function)


argmax = _place(hf.argmax)
argmin = _place(hf.argmin)


def _nan_place(function, place, least):
    def call(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if _is_integral(_dtype(x)):
            return place(x, axis, keepdims)
        gone = hf.isnan(x)
        position = place(hf.where(gone, convert_to_tensor(least, _dtype(x)), x), axis, keepdims)
        return hf.where(hf.all(gone, axis=axis, keepdims=keepdims), convert_to_tensor(-1, "int32"), position)

    return _named(call, function)


nanargmax = _nan_place(hf.nanargmax, argmax, -math.inf)
nanargmin = _nan_place(hf.nanargmin, argmin, math.inf)


def std(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    if _is_integral(_dtype(x)):
        x = convert_to_tensor(x, config.floatx())
    return hf.sqrt(var(x, axis, keepdims))


def var(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = dtypes.result_type(x.dtype, float)
    x = convert_to_tensor(x, dtypes.result_type(x.dtype, "float32"))
    return convert_to_tensor(hf.var(x, axis=_axes(axis), keepdims=keepdims), dtype)


def average(x, axis=None, weights=None):
    x = convert_to_tensor(x)
    if weights is None:
        return mean(convert_to_tensor(x, dtypes.result_type(x.dtype, float)), axis)
    x, weights = _tensors(x, weights, also=(float,))
    axis = _axes(axis)
    if weights.ndim != x.ndim and isinstance(axis, int):
        weights = hf.reshape(weights, [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    weights = hf.broadcast_to(weights, x.shape)
    return hf.sum(x * weights, axis=axis) / hf.sum(weights, axis=axis)


def median(x, axis=None, keepdims=False):
    x = _quantile_operand(x)
    return convert_to_tensor(hf.median(x, axis=_axes(axis), keepdims=keepdims), dtypes.result_type(x.dtype, float))


def _quantile_operand(x):
    x = convert_to_tensor(x)
    return convert_to_tensor(x, _float_dtype(x))


def _of_quantiles(function, most):
    def call(x, q, axis=None, method="linear", keepdims=False):
        x = _quantile_operand(x)
        dtype = _dtype(x)
        compute = dtype if dtype in ("float32", "float64") else "float32"
        q = convert_to_tensor(q, compute)
        quantiles = function(convert_to_tensor(x, compute), q, axis=_axes(axis), method=method, keepdims=keepdims)
        return convert_to_tensor(quantiles, dtype)

    return _named(call, function)


quantile = _of_quantiles(hf.quantile, 1)
percentile = _of_quantiles(hf.percentile, 100)
nanquantile = _of_quantiles(hf.nanquantile, 1)
nanpercentile = _of_quantiles(hf.nanpercentile, 100)


def nanmedian(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = dtypes.result_type(x.dtype, float)
    return convert_to_tensor(hf.nanmedian(convert_to_tensor(x, dtype), axis=_axes(axis), keepdims=keepdims), dtype)


def _without_nan(function, plain):
    def call(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if _is_integral(_dtype(x)):
            return plain(x, axis, keepdims)
        return convert_to_tensor(function(x, axis=_axes(axis), keepdims=keepdims), _dtype(x))

    return _named(call, function)


nanmax = _without_nan(hf.nanmax, max)
nanmin = _without_nan(hf.nanmin, min)
nansum = _without_nan(hf.nansum, sum)
nanprod = _without_nan(hf.nanprod, prod)


def _nan_statistic(function):
    def call(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        dtype = dtypes.result_type(x.dtype, float)
        x = convert_to_tensor(x, dtypes.result_type(x.dtype, "float32"))
        return convert_to_tensor(function(x, axis=_axes(axis), keepdims=keepdims), dtype)

    return _named(call, function)


nanmean = _nan_statistic(hf.nanmean)
nanstd = _nan_statistic(hf.nanstd)
nanvar = _nan_statistic(hf.nanvar)


def _cumulative(function):
    def call(x, axis=None, dtype=None):
        x, axis = _flat(x, axis)
        dtype = dtypes.result_type(dtype or x.dtype)
        dtype = "int32" if dtype == "bool" else dtype
        return convert_to_tensor(function(convert_to_tensor(x, dtype), axis=axis), dtype)

    return _named(call, function)


cumsum = _cumulative(hf.cumulative_sum)
cumprod = _cumulative(hf.cumulative_prod)


def _filled(x, value):
    return x if _is_integral(_dtype(x)) else hf.where(hf.isnan(x), convert_to_tensor(value, _dtype(x)), x)


def nancumsum(x, axis=None, dtype=None):
    return cumsum(_filled(convert_to_tensor(x), 0.0), axis, dtype)


def nancumprod(x, axis=None, dtype=None):
    return cumprod(_filled(convert_to_tensor(x), 1.0), axis, dtype)


# ---- products


def einsum(subscripts, *operands, **kwargs):
    operands = [convert_to_tensor(x) for x in operands]
    kinds = list({_dtype(x) for x in operands})
    dtype = "int32" if kinds == ["int8"] else dtypes.result_type(*kinds)
    compute = "int32" if dtype == "bool" else dtype
    return convert_to_tensor(hf.einsum(subscripts, *[convert_to_tensor(x, compute) for x in operands]), dtype)


def _product(function, x1, x2):
    x1, x2 = _tensors(x1, x2)
    if _dtype(x1) != "bool":
        return function(x1, x2)
    return convert_to_tensor(function(convert_to_tensor(x1, "int32"), convert_to_tensor(x2, "int32")), "bool")


def matmul(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if _dtype(x1) == _dtype(x2) == "int8":
        return hf.matmul(convert_to_tensor(x1, "int32"), convert_to_tensor(x2, "int32"))
    return _product(hf.matmul, x1, x2)


def dot(x1, x2):
    return _product(_dot, x1, x2)


def _dot(x, y):
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return hf.tensordot(x, y, axes=([-1], [-1 if y.ndim == 1 else -2]))


def tensordot(x1, x2, axes=2):
    axes = axes if isinstance(axes, int) else [[a] if isinstance(a, int) else list(a) for a in axes]
    return _product(lambda x, y: hf.tensordot(x, y, axes=axes), x1, x2)


def outer(x1, x2):
    return _product(lambda x, y: hf.reshape(x, (-1, 1)) * hf.reshape(y, (1, -1)), x1, x2)


def inner(x1, x2):
    return _product(lambda x, y: x * y if not (x.ndim and y.ndim) else hf.tensordot(x, y, axes=([-1], [-1])), x1, x2)


def vdot(x1, x2):
    return _product(lambda x, y: hf.tensordot(hf.conj(hf.reshape(x, (-1,))), hf.reshape(y, (-1,)), axes=1), x1, x2)


def kron(x1, x2):
    return _product(hf.kron, x1, x2)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = _tensors(x1, x2)
    x1, x2 = hf.moveaxis(x1, axisa, -1), hf.moveaxis(x2, axisb, -1)
    is_flat = x1.shape[-1] == x2.shape[-1] == 2
    x1, x2 = ([x[..., i] if i < x.shape[-1] else hf.zeros_like(x[..., 0]) for i in range(3)] for x in (x1, x2))
    last = x1[0] * x2[1] - x1[1] * x2[0]
    if is_flat:
        return last
    parts = [x1[1] * x2[2] - x1[2] * x2[1], x1[2] * x2[0] - x1[0] * x2[2], last]
    return hf.stack(parts, axis=axisc)


def trace(x, offset=0, axis1=0, axis2=1):
    return sum(diagonal(x, offset, axis1, axis2), axis=-1)


def correlate(x1, x2, mode="valid"):
    dtype = dtypes.result_type(*[getattr(x, "dtype", type(x)) for x in (convert_to_tensor(x1), convert_to_tensor(x2))])
    if dtype == "int64":
        dtype = "float64"
    elif dtype not in ("bfloat16", "float16", "float64"):
        dtype = "float32"
    return convert_to_tensor(hf.correlate(convert_to_tensor(x1, dtype), convert_to_tensor(x2, dtype), mode), dtype)


def corrcoef(x):
    x = convert_to_tensor(x)
    dtype = _dtype(x)
    if dtype in ("int64", "float64"):
        dtype = "float64"
    elif dtype not in ("bfloat16", "float16"):
        dtype = config.floatx()
    compute = dtype if dtype in ("float32", "float64") else "float32"
    return convert_to_tensor(hf.corrcoef(convert_to_tensor(x, compute)), dtype)


def slogdet(x):
    return tuple(hf.linalg.slogdet(_floats(x)))


def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = convert_to_tensor(y)
    dtype = dtypes.result_type(y.dtype, float)
    y = convert_to_tensor(y, dtype)
    x = None if x is None else convert_to_tensor(x, dtype)
    return convert_to_tensor(hf.trapezoid(y, x, convert_to_tensor(dx, dtype), axis=axis), dtype)


# ---- shapes


def broadcast_to(x, shape):
    return hf.broadcast_to(convert_to_tensor(x), _extents(shape))


def reshape(x, newshape):
    return hf.reshape(convert_to_tensor(x), _extents(newshape))


def ravel(x):
    return hf.reshape(convert_to_tensor(x), (-1,))


def expand_dims(x, axis):
    x = convert_to_tensor(x)
    axes = _axes(axis)
    if isinstance(axes, tuple):
        ndim = x.ndim + len(axes)
        for a in sorted(canonicalize_axis(a, ndim) for a in axes):
            x = hf.expand_dims(x, a)
        return x
    return hf.expand_dims(x, axes)


def squeeze(x, axis=None):
    x = convert_to_tensor(x)
    axis = _axes(axis)
    if axis is None:
        axis = tuple(i for i, n in enumerate(x.shape) if isinstance(n, int) and n == 1)
    return hf.squeeze(x, axis)


def transpose(x, axes=None):
    x = convert_to_tensor(x)
    return hf.permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


def swapaxes(x, axis1, axis2):
    x = convert_to_tensor(x)
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return hf.permute_dims(x, tuple(order))


def moveaxis(x, source, destination):
    return hf.moveaxis(convert_to_tensor(x), _axes(source), _axes(destination))


def flip(x, axis=None):
    return hf.flip(convert_to_tensor(x), axis=_axes(axis))


def fliplr(x):
    return hf.flip(convert_to_tensor(x), axis=1)


def flipud(x):
    return hf.flip(convert_to_tensor(x), axis=0)


def rot90(array, k=1, axes=(0, 1)):
    array = convert_to_tensor(array)
    if array.ndim < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: array.ndim={array.ndim}")
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    return hf.rot90(array, k, tuple(axes))


def roll(x, shift, axis=None):
    x = convert_to_tensor(x)
    shift = shift if not isinstance(shift, (list, tuple)) else tuple(shift)
    return hf.roll(x, shift, _axes(axis))


def tile(x, repeats):
    repeats = [int(n) for n in np.asarray(repeats)] if is_tensor(repeats) else repeats
    return hf.tile(convert_to_tensor(x), repeats if isinstance(repeats, int) else tuple(repeats))


def repeat(x, repeats, axis=None):
    x, axis = _flat(x, axis)
    if not isinstance(repeats, int):
        repeats = convert_to_tensor(repeats)
        if repeats.ndim == 1 and repeats.shape[0] == 1:
            repeats = repeats[0]
        if not repeats.ndim or type(repeats) is hf.Tensor:
            repeats = np.asarray(repeats)
            repeats = int(repeats) if not repeats.ndim else repeats
    return hf.repeat(x, repeats, axis=axis)


def _together(xs):
    xs = [convert_to_tensor(x) for x in xs]
    kinds = {_dtype(x) for x in xs}
    return xs if len(kinds) == 1 else [convert_to_tensor(x, dtypes.result_type(*kinds)) for x in xs]


def concatenate(xs, axis=0):
    return hf.concat(_together(xs), axis=axis)


def append(x1, x2, axis=None):
    x1, x2 = _tensors(x1, x2)
    if axis is None:
        x1, x2, axis = ravel(x1), ravel(x2), 0
    return hf.concat([x1, x2], axis=axis)


def stack(x, axis=0):
    return hf.stack(_together(x), axis=axis)


def _at_least(x, ndim):
    if ndim == 3 and x.ndim < 3:
        return {0: lambda: x[None, None, None], 1: lambda: x[None, :, None], 2: lambda: x[:, :, None]}[x.ndim]()
    return hf.reshape(x, (1,) * (ndim - x.ndim) + tuple(x.shape)) if x.ndim < ndim else x


def hstack(xs):
    xs = [_at_least(x, 1) for x in _together(xs)]
    return hf.concat(xs, axis=0 if xs[0].ndim == 1 else 1)


def vstack(xs):
    return hf.concat([_at_least(x, 2) for x in _together(xs)], axis=0)


def dstack(xs):
    return hf.concat([_at_least(x, 3) for x in _together(xs)], axis=2)


def split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    if isinstance(indices_or_sections, int):
        extent = x.shape[axis]
        if isinstance(extent, int) and extent % indices_or_sections:
            raise ValueError(f"array split does not result in an equal division: {extent} by {indices_or_sections}")
        return list(hf.split(x, indices_or_sections, axis))
    return _between(x, [int(i) for i in np.asarray(indices_or_sections)], axis)


def _between(x, places, axis):
    axis = canonicalize_axis(axis, x.ndim)
    ends = [0, *places, None]
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in itertools.pairwise(ends)]


def array_split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    size, more = divmod(x.shape[axis], indices_or_sections)
    sizes = [size + 1] * more + [size] * (indices_or_sections - more)
    return _between(x, [int(n) for n in np.cumsum(sizes)[:-1]], axis)


def hsplit(x, indices_or_sections):
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


def pad(x, pad_width, mode="constant", constant_values=None):
    if constant_values is not None and mode != "constant":
        raise ValueError(
            f"Argument `constant_values` can only be provided when `mode == 'constant'`. Received: mode={mode}"
        )
    x = convert_to_tensor(x)
    if isinstance(pad_width, int):
        pad_width = [(pad_width, pad_width)] * x.ndim
    pad_width = [tuple(p) if isinstance(p, (list, tuple)) else (p, p) for p in pad_width]
    if len(pad_width) == 1:
        pad_width = pad_width * x.ndim
    if mode != "constant":
        return hf.pad(x, pad_width, mode=mode)
    value = 0 if constant_values is None else constant_values
    if isinstance(value, (bool, int, float)):
        return hf.pad(x, pad_width, constant_values=bool(value) if _dtype(x) == "bool" else value)
    is_own = hf.pad(hf.ones(x.shape, dtype="bool"), pad_width, constant_values=False)
    return hf.where(is_own, hf.pad(x, pad_width), convert_to_tensor(value, _dtype(x)))


def copy(x):
    return hf.asarray(convert_to_tensor(x), copy=True)


def ndim(x):
    return convert_to_tensor(x).ndim


def size(x):
    return math.prod(convert_to_tensor(x).shape)


def diag(x, k=0):
    return hf.diag(convert_to_tensor(x), k)


def diagflat(x, k=0):
    return hf.diag(ravel(x), k)


def diagonal(x, offset=0, axis1=0, axis2=1):
    x = convert_to_tensor(x)
    return hf.linalg.diagonal(hf.moveaxis(x, (axis1, axis2), (-2, -1)), offset=offset)


def tril(x, k=0):
    return hf.tril(convert_to_tensor(x), k)


def triu(x, k=0):
    return hf.triu(convert_to_tensor(x), k)


# ---- places


def take(x, indices, axis=None):
    x, axis = _flat(x, axis)
    indices = convert_to_tensor(indices)
    if _dtype(indices) == "bool" or "float" in _dtype(indices):
        indices = convert_to_tensor(indices, "int32")
    count = x.shape[axis]
    return hf.take(x, hf.clip(hf.where(indices < 0, indices + count, indices), 0, count - 1), axis=axis)


def take_along_axis(x, indices, axis=None):
    x, along = _flat(x, axis)
    indices = convert_to_tensor(indices)
    if axis is None:
        indices = ravel(indices)
    if x.ndim != indices.ndim:
        raise ValueError(f"`indices` and `x` must have the same rank. Received: {indices.shape} and {x.shape}")
    along = canonicalize_axis(along, x.ndim)
    shape = (
        np.broadcast_shapes(*[tuple(1 if i == along else n for i, n in enumerate(v.shape)) for v in (x, indices)])
        if builtins.all(isinstance(n, int) for v in (x, indices) for n in v.shape)
        else None
    )
    if shape is not None:
        x = hf.broadcast_to(x, tuple(x.shape[i] if i == along else n for i, n in enumerate(shape)))
        indices = hf.broadcast_to(indices, tuple(indices.shape[i] if i == along else n for i, n in enumerate(shape)))
    return hf.take_along_axis(x, indices, axis=along)


def nonzero(x):
    return tuple(convert_to_tensor(places, "int32") for places in hf.nonzero(convert_to_tensor(x)))


def unravel_index(indices, shape):
    indices = convert_to_tensor(indices)
    dtype = dtypes.result_type(indices.dtype)
    indices = convert_to_tensor(indices, "int64")
    indices = hf.where(indices < 0, indices + math.prod(shape), indices)
    return tuple(convert_to_tensor(part, dtype) for part in hf.unravel_index(indices, tuple(shape)))


def searchsorted(sorted_sequence, values, side="left"):
    sorted_sequence, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
    if sorted_sequence.ndim != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use `keras.ops.vectorized_map` to extend it "
            f"to N-D sequences. Received: sorted_sequence.shape={sorted_sequence.shape}"
        )
    return convert_to_tensor(hf.searchsorted(*_tensors(sorted_sequence, values), side=side), "int32")


def digitize(x, bins):
    x, bins = _tensors(x, bins)
    if _dtype(x) == "bool":
        x, bins = convert_to_tensor(x, "int32"), convert_to_tensor(bins, "int32")
    return convert_to_tensor(hf.searchsorted(bins, x, side="right"), "int32")


def isin(x1, x2, assume_unique=False, invert=False):
    return hf.isin(*_tensors(x1, x2), invert=invert)


def sort(x, axis=-1):
    x, axis = _flat(x, axis)
    return hf.sort(x, axis=axis)


def argsort(x, axis=-1):
    x, axis = _flat(x, axis)
    if _dtype(x) == "bool":
        x = convert_to_tensor(x, "uint8")
    return convert_to_tensor(hf.argsort(x, axis=axis), "int32") if x.ndim else zeros(x.shape, "int32")


def argpartition(x, kth, axis=-1):
    x, axis = _flat(x, axis)
    return convert_to_tensor(hf.argpartition(x, kth, axis=axis), "int32")


def bincount(x, weights=None, minlength=0, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with hybridflow backend")
    x = convert_to_tensor(x)
    dtype = "int32"
    if weights is not None:
        weights = convert_to_tensor(weights)
        dtype = dtypes.result_type(x.dtype, weights.dtype)
    x = convert_to_tensor(x, "int64")
    minlength = 0 if minlength is None else int(minlength)
    if x.ndim == 2:
        length = builtins.max(int(hf.max(x)) + 1, minlength) if type(x) is hf.Tensor else minlength
        rows = [
            hf.bincount(x[i], None if weights is None else _weights(weights[i]), length=length)
            for i in range(x.shape[0])
        ]
        return convert_to_tensor(hf.stack(rows), dtype)
    how = {"minlength": minlength} if type(x) is hf.Tensor else {"length": minlength}
    return convert_to_tensor(hf.bincount(x, None if weights is None else _weights(weights), **how), dtype)


def _weights(x):
    return x if "float" in _dtype(x) else convert_to_tensor(x, "float64")


def diff(a, n=1, axis=-1):
    return hf.diff(convert_to_tensor(a), n=n, axis=axis)


def histogram(x, bins=10, range=None):
    x = convert_to_tensor(x)
    if range is not None:
        range = tuple(float(end) for end in range)
    counts, edges = hf.histogram(_floats(x), bins if isinstance(bins, int) else convert_to_tensor(bins), range)
    return convert_to_tensor(counts, "int32"), edges


def unique(
    x,
    sorted=True,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    size=None,
    fill_value=None,
):
    x = convert_to_tensor(x)
    output = hf.unique(x, return_index, return_inverse, return_counts, axis, equal_nan=False)
    output = list(output) if isinstance(output, tuple) else [output]
    along = 0 if axis is None else canonicalize_axis(axis, x.ndim)
    if size is not None:
        count = output[0].shape[along]
        fills = [0 if fill_value is None else fill_value]
        fills += [1] * return_index + [None] * return_inverse + [0] * return_counts
        for i, (value, fill) in enumerate(zip(output, fills)):
            if fill is None:
                continue
            at = along if i == 0 else 0
            if count > size:
                output[i] = value[(slice(None),) * at + (slice(0, size),)]
            elif count < size:
                width = [(0, 0)] * value.ndim
                width[at] = (0, size - count)
                output[i] = hf.pad(value, width, constant_values=fill)
    output[1:] = [convert_to_tensor(places, "int32") for places in output[1:]]
    return output[0] if len(output) == 1 else tuple(output)


def vectorize(pyfunc, *, excluded=None, signature=None):
    excluded = set() if excluded is None else set(excluded)

    @functools.wraps(pyfunc)
    def call(*args, **kwargs):
        names = [name for name in kwargs if name not in excluded]
        places = [i for i in range(len(args)) if i not in excluded]
        values = [convert_to_tensor(v) for v in ([args[i] for i in places] + [kwargs[name] for name in names])]
        cores = [0] * len(values)
        if signature is not None:
            inputs = signature.split("->")[0].replace(" ", "")
            cores = [0 if part == "" else part.count(",") + 1 for part in inputs[1:-1].split("),(")]
            if len(cores) != len(values):
                raise TypeError(f"wrong number of positional arguments: expected {len(cores)}, got {len(values)}")
        loops = [tuple(v.shape)[: v.ndim - core] for v, core in zip(values, cores)]
        around = np.broadcast_shapes(*loops)

        def apply(*parts):
            mapped = dict(zip(places, parts))
            named = dict(zip(names, parts[len(places) :]))
            return pyfunc(*[mapped.get(i, v) for i, v in enumerate(args)], **{**kwargs, **named})

        if not around:
            return tree.map_structure(convert_to_tensor, apply(*values))
        count = math.prod(around)
        rows = []
        for v, core in zip(values, cores):
            inner = tuple(v.shape)[v.ndim - core :]
            v = hf.reshape(v, (1,) * (len(around) + core - v.ndim) + tuple(v.shape))
            rows.append(hf.reshape(hf.broadcast_to(v, (*around, *inner)), (count, *inner)))
        out = hf.vmap(apply)(*rows)
        return tree.map_structure(lambda x: hf.reshape(x, (*around, *tuple(x.shape)[1:])), out)

    return call
