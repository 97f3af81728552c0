"""Functions of the user's that are called as they are, in Python, whenever the code runs: in compiled functions too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.array.shapes import reshape
from hybridflow.autodiff.tape import GradientTape
from hybridflow.autograph.runtime.exception_handlers import check_not_caught
from hybridflow.compiler.ir.dtypes import int64, is_inexact
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.context import current, suspended, tracing
from hybridflow.core.promotion import is_pythons, to_dtype
from hybridflow.core.string_tensor import (
    StringTensor,
    as_strings,
    codes_of,
    holds_texts,
    is_string,
    names_strings,
    of_codes,
    string,
    trace_codes,
)
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentTypeError, DTypeError, ShapeError, entered
from hybridflow.tracing.deferred_shape import DeferredCall, DeferredShapeTensor, static
from hybridflow.tracing.effect_token import ORDER, ask, call_in_order
from hybridflow.tracing.subtrace import SubTrace

if TYPE_CHECKING:
    from hybridflow.tracing.trace import Trace


Tensors = Sequence[Tensor]


@entered
def py_function(func: Callable[..., Any], inp: object, Tout: object, name: str | None = None) -> Any:
    """Call a Python function at each run of a compiled program, in program order, with concrete tensors.

    The function may do anything. Its exceptions pass through the compiled function unchanged. It is differentiable: a
    tape records ``func``, which a compiled function calls once more for the gradient.

    If ``Tout`` is only a dtype, a compiled function must first state the shape of the result, by
    ``y.set_shape(shape)`` or by a reshape.

    Args:
        func: the function.
        inp: its arguments: tensors, or what becomes tensors.
        Tout: what it returns: an ``hf.TensorSpec``, a tensor like it, a dtype, or a list of them. Python numbers and
            lists become tensors of that dtype; other results must have it.
        name: the name in messages.

    Returns:
        Tensors as ``Tout`` says.

    Raises:
        DTypeError: for results of another dtype.
        ShapeError: for results of another shape.

    >>> import math
    >>> @hf.function
    ... def f(x):
    ...     return hf.py_function(lambda x: math.factorial(x.item()), [x], x) + 1
    ...
    >>> f(hf.asarray(5))
    <Tensor i64[] cpu> 121
    """
    stage = name or "py_function"
    inputs, wanted = _inputs(stage, func, inp), _Wanted.of(stage, Tout)
    if current.trace is None:
        return wanted.expected(wanted.checked(func, func(*inputs)))
    func, inputs = _coded(func, inputs)
    if not wanted.is_known:
        check_not_caught(None, finally_too=False)
        return wanted.expected(_shapeless(func, func, inputs, wanted, is_differentiable=True))
    return wanted.expected(_recorded(func, inputs, wanted, 0))


@entered
def numpy_function(
    func: Callable[..., Any], inp: object, Tout: object, stateful: bool = True, name: str | None = None
) -> Any:
    """Call a Python function of NumPy arrays each time the code runs; it has no derivative.

    Otherwise as ``hf.py_function``.

    Args:
        func: the function.
        inp: its arguments: tensors, or what becomes tensors.
        Tout: what it returns: an ``hf.TensorSpec``, a tensor like it, a dtype, or a list of them.
        stateful: whether it does more than compute from its arguments. If not, equal calls may become one.
        name: the name in messages.

    Returns:
        Tensors as ``Tout`` says.

    Raises:
        DTypeError: for results of another dtype.
        ShapeError: for results of another shape.

    >>> import numpy as np
    >>> hf.numpy_function(np.unwrap, [hf.asarray([0.0, 3.0, 9.5], hf.float64)], hf.float64)
    <Tensor f64[3] cpu> [0.         3.         3.21681469]
    """
    stage = name or "numpy_function"
    inputs, wanted = _inputs(stage, func, inp), _Wanted.of(stage, Tout)

    def of_arrays(*tensors: Tensor) -> Any:
        return func(*[tensor.numpy() for tensor in tensors])

    if current.trace is None:
        with suspended():
            return wanted.expected(wanted.checked(func, of_arrays(*inputs)))
    check_not_caught(None, finally_too=False)
    on_tensors, inputs = _coded(of_arrays, inputs)
    if not wanted.is_known:
        return wanted.expected(_shapeless(func, on_tensors, inputs, wanted))
    called = call_in_order if stateful else ask
    return wanted.expected(called(_on_arrays(on_tensors, wanted, func), inputs, wanted.types()))


def _inputs(stage: str, func: object, inp: Any) -> Tensors:
    if not callable(func):
        raise ArgumentTypeError(stage, f"func is a {type(func).__name__}. Expected a function.")
    if isinstance(inp, (Tensor, Variable, np.ndarray, str, bytes)) or is_pythons(inp):
        inp = [inp]
    return [as_strings(x, stage) if holds_texts(x) else as_tensor(x, stage) for x in inp]


class _Wanted(NamedTuple):
    """What a function is to return: dtypes, and shapes as far as they are known; a single value or several."""

    stage: str
    dtypes: tuple[Any, ...]
    shapes: tuple[Any, ...]
    is_single: bool

    @classmethod
    def of(cls, stage: str, types: Any) -> _Wanted:
        if types is None:
            types = []
        is_single = not isinstance(types, (list, tuple))
        parts = [types] if is_single else types
        dtypes = tuple([string if names_strings(d) else to_dtype(d, stage) for d in map(_dtype, parts)])
        return cls(stage, dtypes, tuple([_shape(part) for part in parts]), is_single)

    @property
    def is_known(self) -> bool:
        """Whether all shapes are known."""
        return all(_is_known(shape) for shape in self.shapes)

    def types(self) -> list[TensorType]:
        """The types of the results in a program, where they are known."""
        return [TensorType(shape, _held(dtype)) for shape, dtype in zip(self.shapes, self.dtypes)]

    def one(self, number: int, shape: tuple[Any, ...]) -> _Wanted:
        """A single result, of that shape."""
        return _Wanted(self.stage, (self.dtypes[number],), (shape,), True)

    def expected(self, results: Sequence[Tensor]) -> Any:
        """Results as the caller gets them, of which those of texts may be codes."""
        results = [
            of_codes(x) if is_string(dtype) and not isinstance(x, StringTensor) else x
            for x, dtype in zip(results, self.dtypes)
        ]
        return results[0] if self.is_single else list(results) or None

    def checked(self, func: object, returned: object) -> list[Tensor]:
        """What a function returned, as tensors."""
        name = getattr(func, "__name__", type(func).__name__)
        if not self.dtypes:
            return []
        if self.is_single or (len(self.dtypes) == 1 and not isinstance(returned, (list, tuple))):
            returned = [returned]
        if not isinstance(returned, (list, tuple)) or len(returned) != len(self.dtypes):
            description = f"{len(returned)} values" if isinstance(returned, (list, tuple)) else type(returned).__name__
            raise ArgumentTypeError(
                self.stage, f"{name} returned {description}. Expected {len(self.dtypes)}, as Tout says."
            )
        return [self._one(name, k, value) for k, value in enumerate(returned)]

    def _one(self, name: str, k: int, value: object) -> Tensor:
        what, dtype, shape = f"{name} returned", self.dtypes[k], self.shapes[k]
        which = "" if self.is_single else f" as result {k}"
        if is_string(dtype) and holds_texts(value):
            value = as_strings(value, self.stage)
        if value is None or isinstance(value, (str, bytes, dict, set)):
            raise ArgumentTypeError(
                self.stage, f"{what} {type(value).__name__}{which}. Expected a tensor, as Tout says."
            )
        kept = not isinstance(value, (list, tuple)) and not is_pythons(value)
        tensor = as_tensor(value, self.stage, None if kept else dtype)
        if tensor.dtype != dtype:
            raise DTypeError(self.stage, f"{what} {tensor.type}{which}. Expected {dtype}, as Tout says.")
        fits = shape is None or len(shape) == len(tensor.shape)
        if not fits or any(isinstance(n, int) and n != m for n, m in zip(shape or (), tensor.shape)):
            raise ShapeError(
                self.stage, f"{what} {tensor.type}{which}. Expected the shape {tuple(shape)}, as Tout says."
            )
        return tensor


def _dtype(part: object) -> Any:
    return getattr(part, "dtype", part)


def _held(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a result in a program, which holds the codes of texts."""
    return int64 if is_string(dtype) else dtype


def _array(x: Tensor) -> np.ndarray:
    """A result as an array for a program."""
    return codes_of(x.texts) if isinstance(x, StringTensor) else x.numpy()


def _coded(func: Callable[..., Any], inputs: Tensors) -> tuple[Callable[..., Any], Tensors]:
    """A function and its arguments, with codes in the place of texts."""
    of_text = [isinstance(x, StringTensor) for x in inputs]
    if not any(of_text):
        return func, inputs

    @functools.wraps(func)
    def with_texts(*xs: Tensor) -> Any:
        return func(*[of_codes(x) if is_text else x for x, is_text in zip(xs, of_text)])

    return with_texts, [trace_codes(x) if isinstance(x, StringTensor) else x for x in inputs]


def _shape(part: object) -> tuple[Any, ...] | None:
    shape = getattr(part, "shape", None)
    return tuple(shape) if isinstance(shape, (tuple, list)) and hasattr(part, "dtype") else None


def _is_known(shape: tuple[Any, ...] | None) -> bool:
    return shape is not None and not any(extent is None or isinstance(extent, str) for extent in shape)


def _on_arrays(func: Callable[..., Any], wanted: _Wanted, named: object) -> Callable[..., Any]:
    """What a program calls for ``func``: with arrays, and outside of whatever surrounds the program."""

    def call(*arrays: np.ndarray) -> Any:
        with suspended():
            returned = wanted.checked(named, func(*map(wrap, arrays)))
            arrays_out = [_array(x) for x in returned]
        return arrays_out[0] if len(arrays_out) == 1 else arrays_out

    return call


def _shapeless(
    named: object, func: Callable[..., Any], inputs: Tensors, wanted: _Wanted, is_differentiable: bool = False
) -> list[Tensor]:
    """The results of ``func`` in the program that is traced, whose shapes are said later: by ``set_shape``."""
    trace: Any = current.trace
    tapes, name = list(current.tapes), getattr(named, "__name__", type(named).__name__)

    def call(*arrays: np.ndarray) -> Any:
        with suspended():
            returned = [_array(x) for x in wanted.checked(named, func(*map(wrap, arrays)))]
            chosen = late.chosen(name, wanted.stage, returned)
        return chosen[0] if len(chosen) == 1 else chosen

    call_in_order(call, inputs, ())
    late = DeferredCall(trace, trace.read_variable(ORDER)._node.inputs[0])

    def result(number: int, shape: tuple[Any, ...], is_reshaped: bool) -> Any:
        result: Tensor = late.result(number, _held(wanted.dtypes[number]), shape, is_reshaped)
        if is_differentiable:

            def one(*xs: Tensor) -> Tensor:
                returned = wanted.checked(func, func(*xs))[number]
                return reshape(returned, static(shape)) if is_reshaped else returned

            one.__name__ = name
            (result,) = _with_derivative(one, inputs, wanted.one(number, shape), [result], 0, trace, tapes)
        return result

    results: list[Tensor] = []
    for k, (dtype, shape) in enumerate(zip(wanted.dtypes, wanted.shapes)):
        results.append(DeferredShapeTensor(wanted.stage, _held(dtype), trace, functools.partial(result, k), tapes))
        if shape is not None:
            results[-1].set_shape([None if isinstance(n, str) else n for n in shape])
    return results


# ---- derivatives


_MOST = 3  # orders of derivatives that a region, which traces them at once, knows


def _recorded(func: Callable[..., Any], inputs: Tensors, wanted: _Wanted, order: int) -> list[Tensor]:
    """The results of ``func``, itself a derivative of that order, in the program that is traced; tapes and the trace
    know their derivative."""
    trace: Any = current.trace
    if not order:
        check_not_caught(None, finally_too=False)
    called, types = _on_arrays(func, wanted, func), wanted.types()
    if order == _MOST and isinstance(trace, SubTrace):
        return ask(called, inputs, types, is_last=True)
    results = ask(called, inputs, types) if order else call_in_order(called, inputs, types)
    return _with_derivative(func, inputs, wanted, results, order, trace, current.tapes)


def _with_derivative(
    func: Callable[..., object],
    inputs: Tensors,
    wanted: _Wanted,
    outs: list[Tensor],
    order: int,
    trace: Trace,
    tapes: Sequence[Any],
) -> list[Tensor]:
    """The results ``outs`` of calling ``func`` in a trace, which knows then, as do tapes, how they are derived."""
    kept = [k for k, x in enumerate(inputs) if is_inexact(x.dtype)]
    inexact = [k for k, x in enumerate(outs) if is_inexact(x.dtype)]
    if not kept or not inexact:
        return outs

    def vjp(*cotangents: Tensor | None) -> list[Tensor | None]:
        dense = [builder.full(0, outs[k].type) if cotangents[k] is None else cotangents[k] for k in inexact]
        return _derivative(func, inputs, wanted, kept, inexact, dense, order + 1)

    with tracing(trace):
        outs = [builder.stop_gradient(x) if k in inexact else x for k, x in enumerate(outs)]
    trace.add_custom_vjp(tuple(inputs), tuple(outs), vjp)
    for tape in tapes:
        tape.record_custom(tuple(inputs), tuple(outs), vjp)
    return outs


def _derivative(
    func: Callable[..., object], inputs: Tensors, wanted: _Wanted, kept: Sequence[int], inexact_outs: Sequence[int],
    cotangents: Sequence[Any], order: int,
) -> list[Tensor | None]:  # fmt: skip
    """The cotangents of inputs: by a function that calls ``func`` under a tape."""
    count = len(inputs)

    def backward(*operands: Tensor) -> list[Tensor]:
        xs, gs = operands[:count], operands[count:]
        with GradientTape() as tape:
            for k in kept:
                tape.watch(xs[k])
            outs = wanted.checked(func, func(*xs))
        targets = [outs[k] for k in inexact_outs]
        sources = [xs[k] for k in kept]
        gradients = tape.gradient(targets, sources, output_gradients=list(gs), unconnected_gradients="zero")
        return list(gradients)

    backward.__name__ = f"the derivative of {getattr(func, '__name__', 'func')}"
    types = tuple([inputs[k].type for k in kept])
    mine = _Wanted(wanted.stage, tuple([t.dtype for t in types]), tuple([t.shape for t in types]), False)
    operands = (*inputs, *cotangents)
    gradients = iter(_recorded(backward, operands, mine, order))
    return [next(gradients) if k in kept else None for k in range(count)]
