"""Tensors, variables, shape inference and control flow, as Keras asks for them."""

from __future__ import annotations

import builtins
import functools
import itertools
import math

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, standardize_dtype
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope, get_stateless_scope, in_stateless_scope
from keras.src.backend.common.symbolic_scope import SymbolicScope

import hybridflow as hf
from hybridflow.array.scattering import added_at, largest_at, set_at, smallest_at
from hybridflow.array.setitem import updated
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.context import tracing
from hybridflow.core.tensor import Operators
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.trace import Trace

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = True


class Variable(KerasVariable, Operators):
    """Keras's variable around one of hybridflow, which every function takes for its value."""

    def _initialize(self, value):
        self._shape = self._validate_shape(value.shape)
        self._value = hf.Variable(
            value, trainable=self._trainable, dtype=standardize_dtype(self._dtype), name=self._name
        )

    def _initialize_with_initializer(self, initializer):
        self._initialize(self._convert_to_tensor(initializer(self._shape, dtype=self._dtype)))

    def _direct_assign(self, value):
        self._value.assign(value)

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype=dtype)

    def _whole(self):
        return self.value

    def _hf_variable(self):
        return self._value

    @property
    def value(self):
        if in_stateless_scope():
            value = get_stateless_scope().get_current_value(self)
            if value is not None:
                return self._maybe_autocast(value)
        if self._value is None:  # not initialized: a placeholder, for shapes
            return self._maybe_autocast(convert_to_tensor(self._initializer(self._shape, dtype=self._dtype)))
        return self._maybe_autocast(self._value._read())

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        if self._value is not None:
            self._value.trainable = self._trainable


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    if sparse or ragged:
        kind = "sparse" if sparse else "ragged"
        raise ValueError(f"`{kind}=True` is not supported with hybridflow backend")
    if dtype is not None:
        dtype = standardize_dtype(dtype)
    if isinstance(x, Variable):
        x = x.value
    if isinstance(x, hf.Tensor):
        return x if dtype is None or x.dtype == dtype else _cast(x, dtype)
    if isinstance(x, hf.Variable):
        return convert_to_tensor(hf.asarray(x), dtype)
    if isinstance(x, (np.ndarray, np.generic)):
        return hf.asarray(x) if dtype is None or x.dtype == dtype else _cast(hf.asarray(x), dtype)
    if isinstance(x, KerasTensor):
        raise ValueError("A KerasTensor is symbolic: it has no value.  Use it in a Keras function or layer.")
    if dtype is None:
        kinds = [_kind(item) for item in tree.flatten(x)]
        dtype = result_type(*kinds) if kinds else result_type(float)
    if isinstance(x, (list, tuple)) and any(isinstance(item, (Variable, hf.Tensor)) for item in tree.flatten(x)):
        return hf.stack([convert_to_tensor(item, dtype) for item in x])
    if isinstance(x, (bool, int, float, complex, Dim)):
        if isinstance(x, float) and not dtype.startswith(("float", "bfloat", "complex")):
            return _cast(hf.asarray(x, dtype="float64"), dtype)
        if isinstance(x, int) and not isinstance(x, bool) and "int" in dtype:  # wraps, as NumPy's casts do
            return hf.asarray(np.asarray(x).astype(dtype))
        return hf.asarray(x, dtype=dtype)
    if isinstance(x, (list, tuple)) and any(isinstance(item, Dim) for item in tree.flatten(x)):
        return hf.stack([convert_to_tensor(item, dtype) for item in x])
    if hasattr(x, "__dlpack__") or hasattr(x, "__array__"):
        return convert_to_tensor(hf.asarray(x), dtype)
    return _cast(hf.asarray(np.asarray(x)), dtype)


def _cast(x, dtype):
    if x.dtype.kind == "c" and not dtype.startswith("complex"):
        x = hf.real(x)
    return hf.astype(x, dtype)


def _kind(item):
    return int if isinstance(item, Dim) else getattr(item, "dtype", type(item))


def convert_to_numpy(x):
    return np.array(convert_to_tensor(x) if isinstance(x, Variable) else x)


def is_tensor(x):
    return isinstance(x, hf.Tensor)


def shape(x):
    return tuple(x.shape)


def cast(x, dtype):
    return convert_to_tensor(x, dtype=dtype)


def compute_output_spec(fn, *args, **kwargs):
    """The shapes and dtypes of what ``fn`` makes of symbolic tensors, by a trace that is thrown away."""
    extent = Dim("dynamic")  # one for all that are open, so that two of them may meet
    with StatelessScope(), SymbolicScope():
        trace = Trace(getattr(fn, "__name__", "spec"), may_create_variables=True)
        with tracing(trace):

            def begun(x):
                if not isinstance(x, KerasTensor):
                    return x
                extents = tuple(extent if n is None else n for n in x.shape)
                return trace.argument(TensorType(extents, np.dtype(_numpy_dtype(x.dtype))), "x")

            args, kwargs = tree.map_structure(begun, (args, kwargs))
            with StatelessScope():
                outputs = fn(*args, **kwargs)
        return tree.map_structure(_specified, outputs)


@functools.cache
def _numpy_dtype(name):
    return hf.zeros((), dtype=name).dtype


def _specified(x):
    if not isinstance(x, hf.Tensor):
        return x
    return KerasTensor(tuple(n if isinstance(n, int) else None for n in x.shape), standardize_dtype(x.dtype))


def _values(nest):
    return tree.map_structure(lambda x: x.value if isinstance(x, Variable) else x, nest)


def cond(pred, true_fn, false_fn):
    pred = pred.value if isinstance(pred, Variable) else pred
    if isinstance(pred, (bool, np.bool_)):
        return true_fn() if pred else false_fn()
    return hf.cond(pred, true_fn, false_fn)


def vectorized_map(function, elements):
    return hf.vmap(function)(_tensors(elements))


def _tensors(nest):
    return tree.map_structure(convert_to_tensor, nest)


def map(f, xs):
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    xs = None if xs is None else _tensors(xs)
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    count = tree.flatten(xs)[0].shape[0] if xs is not None and tree.flatten(xs) else length
    if length is not None and isinstance(count, int) and int(length) != count:
        raise ValueError(f"Got `length` argument of {length} but the leading axis of `xs` is {count}")
    init = _tensors(init)
    if isinstance(count, int) and count == 0:
        return init, tree.map_structure(lambda x: hf.zeros((0, *x.shape), dtype=x.dtype), _made(f, init, xs))
    steps = hf.arange(int(count)) if xs is None else xs
    ys = _made(f, init, xs)

    def step(both, x):
        carry, y = f(both[0], None if xs is None else x)
        return _like(carry, both[0]), () if y is None else tree.map_structure(convert_to_tensor, y)

    start = () if ys is None else tree.map_structure(lambda x: hf.zeros(x.shape, dtype=x.dtype), ys)
    carries, outs = hf.scan(step, steps, (init, start), reverse)
    last = tree.map_structure(lambda x: x[0 if reverse else -1], carries)
    return last, None if ys is None else outs


def _like(carry, before):
    return tree.map_structure(lambda new, old: convert_to_tensor(new, old.dtype), carry, before)


def _made(f, init, xs):
    """What a step of a scan stacks, as symbolic tensors of a trace that is thrown away."""
    region = SubTrace("scan")

    def begun(x, inner=False):
        return region.carry(TensorType(tuple(x.shape)[1:] if inner else tuple(x.shape), x.dtype), "x")

    with region.entered(), StatelessScope():
        carry = tree.map_structure(begun, init)
        x = None if xs is None else tree.map_structure(lambda x: begun(x, True), xs)
        y = f(carry, x)[1]
    if y is None:
        return None
    return tree.map_structure(lambda x: _Form(convert_to_tensor(x) if not isinstance(x, hf.Tensor) else x), y)


class _Form:
    """The shape and dtype of a tensor."""

    def __init__(self, x):
        self.shape, self.dtype = tuple(x.shape), x.dtype


def associative_scan(f, elems, reverse=False, axis=0):
    elems = _tensors(elems)
    extents = [x.shape[axis] for x in tree.flatten(elems)]
    if any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in itertools.pairwise(extents)):
        raise ValueError(f"Array inputs to associative_scan must have the same first dimension. Received: {extents}")
    return hf.associative_scan(f, elems, reverse, axis)


def scatter(indices, values, shape):
    values = convert_to_tensor(values)
    return added_at(hf.zeros(shape, dtype=values.dtype), convert_to_tensor(indices), values)


def scatter_update(inputs, indices, updates, reduction=None):
    inputs = convert_to_tensor(inputs)
    indices, updates = convert_to_tensor(indices), convert_to_tensor(updates, inputs.dtype)
    if reduction == "mul":
        return inputs * _factors(inputs, indices, updates)
    ways = {None: set_at, "add": added_at, "max": largest_at, "min": smallest_at}
    if reduction not in ways:
        raise ValueError(f"Unsupported reduction: {reduction}")
    return ways[reduction](inputs, indices, updates)


def _factors(x, indices, updates):
    """The product of the updates of each place of ``x``; 1 where there are none."""
    count = math.prod(x.shape)
    key = tuple(indices[..., i] for i in range(indices.shape[-1]))
    places = hf.reshape(hf.arange(count), x.shape)[key]
    values = hf.reshape(hf.broadcast_to(updates, places.shape), (-1,))
    return hf.reshape(hf.segment_prod(values, hf.reshape(places, (-1,)), count), x.shape)


def _starts(start_indices, count):
    if isinstance(start_indices, (hf.Tensor, Variable)):
        start_indices = convert_to_tensor(start_indices)
    return [start_indices[i] for i in range(count)]


def slice(inputs, start_indices, shape):
    inputs = convert_to_tensor(inputs)
    for axis, (start, size) in enumerate(zip(_starts(start_indices, len(shape)), shape)):
        inputs = _part(inputs, axis, start, size)
    return inputs


def _part(x, axis, start, size):
    if isinstance(start, (int, np.integer)):
        size = x.shape[axis] - start if isinstance(size, int) and size == -1 else size
        return x[(builtins.slice(None),) * axis + (builtins.slice(int(start), int(start) + size),)]
    extent = x.shape[axis]
    size = extent if isinstance(size, int) and size == -1 else size
    start = hf.clip(convert_to_tensor(start, "int64"), 0, extent - size)
    return hf.take(x, start + hf.arange(size), axis=axis)


def slice_update(inputs, start_indices, updates):
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    starts = _starts(start_indices, inputs.ndim)
    if all(isinstance(start, (int, np.integer)) for start in starts):
        return updated(
            inputs, tuple(builtins.slice(int(s), int(s) + n) for s, n in zip(starts, updates.shape)), updates
        )
    key = []
    for axis, (start, n) in enumerate(zip(starts, updates.shape)):
        places = hf.clip(convert_to_tensor(start, "int64"), 0, inputs.shape[axis] - n) + hf.arange(n)
        key.append(hf.reshape(places, (1,) * axis + (-1,) + (1,) * (inputs.ndim - axis - 1)))
    return updated(inputs, tuple(key), updates)


def switch(index, branches, *operands):
    index = hf.clip(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    return hf.switch_case(index, [functools.partial(branch, *operands) for branch in branches])


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    is_tuple = isinstance(loop_vars, (tuple, list))
    start = _tensors(tuple(loop_vars) if is_tuple else (loop_vars,))

    def step(*values):
        outputs = body(*values)
        return _like(tuple(outputs) if is_tuple else (outputs,), tuple(values))

    def goes_on(*values):
        return convert_to_tensor(cond(*values), "bool")

    outputs = hf.while_loop(goes_on, step, start, maximum_iterations)
    return tuple(outputs) if is_tuple else outputs[0]


def fori_loop(lower, upper, body_fun, init_val):
    start = _tensors(init_val)
    return hf.fori_loop(lower, upper, lambda i, value: _like(body_fun(i, value), value), start)


def stop_gradient(variable):
    return hf.stop_gradient(convert_to_tensor(variable))


def unstack(x, num=None, axis=0):
    return list(hf.unstack(convert_to_tensor(x), axis=axis))


def random_seed_dtype():
    return "uint32"


def custom_gradient(fun):
    of_values = hf.custom_gradient(fun)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        return of_values(*_values(args), **_values(kwargs))

    return call


def remat(f):
    return hf.recompute_grad(f)


def device_scope(device_name):
    if not isinstance(device_name, str):
        raise ValueError(
            "Invalid value for argument `device_name`. Expected a string like 'gpu:0'. "
            f"Received: device_name='{device_name}'"
        )
    kind, _, number = device_name.lower().partition(":")
    return hf.device("cpu" if kind == "cpu" else f"gpu:{number or 0}")
