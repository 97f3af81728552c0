"""Functions of Python's that converted code calls in another way, for what they are given may depend on a tensor.

``range`` of a tensor is one that a loop of the program walks over; ``max`` and ``any`` compare tensors in the program;
``type`` and ``int`` know the numbers that a tensor decides about.  All others of what they are given goes to the
function itself, as it was prepared (``found``).
"""

from __future__ import annotations

import functools
import math
import operator
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hybridflow import code_traits
from hybridflow.array import creation, elementwise
from hybridflow.autograph.hooks import dynamic_list_reads, sorting
from hybridflow.autograph.hooks.object_protocols import special_method, truth
from hybridflow.autograph.hooks.per_choice import known_of_each
from hybridflow.autograph.runtime import conditional, dynamic_list
from hybridflow.autograph.runtime.choices import Choice, is_choice
from hybridflow.autograph.runtime.iterables import Reversed, enumerate_space, rows_of, zip_tensors
from hybridflow.autograph.runtime.tensor_range import LazyArange, TensorRange, zip_ranges
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import current
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.effects import runtime_text
from hybridflow.errors import ConcretizationError
from hybridflow.guards import builtin_reads
from hybridflow.guards.guard_builder import active
from hybridflow.tracing import symbolic_number
from hybridflow.tracing.symbolic_float import SymbolicFloat
from hybridflow.tracing.symbolic_number import SymbolicNumber, is_number
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

Function = Callable[..., Any]
_SEQUENCES = (tuple, list, Shape)

# Functions of ``math`` that hybridflow has by the same names; its bits may differ from those of the C library.
NAMESAKES = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "copysign", "cos", "cosh", "erf", "exp", "expm1"),
    *("hypot", "log", "log10", "log1p", "log2", "nextafter", "pow", "sin", "sinh", "tan", "tanh"),
)


def known_number(value: Any) -> Any:
    """A number whose value the user's code is about to see: the program is for this one from now on.  A trace that is
    made without a call has no values, and shows names."""
    if type(value) not in (Dim, SymbolicFloat):
        return value
    trace = current.trace
    if trace is None or (type(value) is Dim and trace.assumptions.examples is None):
        return value
    return int(value) if type(value) is Dim else value.value()


def known_values(value: Any) -> Any:
    """As ``known_number``, also within tuples and lists, which are others then."""
    if type(value) not in _SEQUENCES or not any(type(part) in (Dim, SymbolicFloat, *_SEQUENCES) for part in value):
        return known_number(value)
    parts = list(map(known_values, value))
    return value if all(map(operator.is_, parts, value)) else type(value)(parts)


def _open_kind(value: object) -> type | None:
    """The class of the number that an extent or an open float stands for to the code that asks, if that is the user's:
    ours tells extents from ints.  None for other values."""
    if type(value) is not Dim:
        return float if type(value) is SymbolicFloat else None
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and "records" in code_traits.of_file(
        frame.f_code.co_filename
    ):  # what stands in for a function
        frame = frame.f_back
    asks = "" if frame is None else frame.f_globals.get("__name__", "")
    return None if asks.partition(".")[0] == "hybridflow" else int


def is_open(value: object) -> bool:
    """Whether the truth of a value is not known before the program runs."""
    if isinstance(value, (Variable, Choice)) and current.trace is not None:
        return True
    return isinstance(value, SymbolicTensor) and value._known() is None


def check_identity(value: Any, other: Any) -> None:
    """Raise TraceError if it is not known while tracing whether two values are one object."""
    for one, two in ((value, other), (other, value)):
        if is_number(one) and one is not two and (is_number(two) or isinstance(two, (bool, int, float))):
            raise one.refused("``is`` is asked of", "Compare with ==, or ask ``if flag`` or ``if not flag``.")


def _isinstance(ask: Function) -> Function:
    def call(value: Any, kinds: Any) -> Any:
        if type(value) is LazyArange:
            return ask(value._whole(), kinds)
        kind = _open_kind(value)
        if kind is not None:
            return ask(kind(), kinds)
        if not is_number(value):
            return ask(value, kinds)
        result, other = ask(value.kind(), kinds), ask(value.narrow(), kinds)
        if result != other:
            raise value.undecided("isinstance asks which")
        return result

    return call


def _type(make: Function) -> Function:
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) is LazyArange:
            return make(args[0]._whole())
        kind = _open_kind(args[0]) if len(args) == 1 else None
        if kind is not None:
            return kind
        return args[0].one_kind if len(args) == 1 and is_number(args[0]) else make(*args, **kwargs)

    return call


def _text(make: Function) -> Function:
    return functools.partial(runtime_text.text_of, make)


def _range(make: Function) -> Function:
    def call(*bounds: object) -> Any:
        bounds = tuple(bound.value() if isinstance(bound, Variable) else bound for bound in bounds)
        traced = any(is_open(bound) or isinstance(bound, SymbolicTensor) for bound in bounds)
        return TensorRange(*bounds) if traced and len(bounds) <= 3 else make(*bounds)

    return call


def _arange(element_of: Callable[[Any, Any], Any]) -> Callable[[Function], Function]:
    """``arange`` of a tensor, over which a ``for`` goes; ``element_of`` makes a number a value of a dtype, or of
    none."""

    def special(make: Function) -> Function:
        def call(*args: object, **kwargs: object) -> Any:
            names = dict(zip(("start", "stop", "step"), args), **kwargs)
            start, stop = names.get("start", 0), names.get("stop")
            bounds = [0, start] if stop is None else [start, stop]
            bounds += [names["step"]] if names.get("step") is not None else []
            if not any(map(is_open, bounds)) or not all(map(_is_integer, bounds)) or kwargs.keys() - names.keys():
                return make(*args, **kwargs)
            dtype = kwargs.get("dtype")
            array = functools.partial(make, *args, **kwargs)
            return LazyArange(*bounds, element_of=lambda number: element_of(number, dtype), make=array)

        return call

    return special


def _is_integer(value: object) -> bool:
    """Whether a bound is an integer: a number of Python's, or a tensor of one."""
    if isinstance(value, SymbolicTensor):
        return dtypes.is_integer(value.dtype) and value.size == 1
    return isinstance(value, (int, np.integer, Dim)) and not isinstance(value, bool)


def _scalar_of_numpy(number: object, dtype: DTypeLike) -> Any:
    if type(number) is int:
        return np.dtype(dtype or np.int64).type(number)
    tensor: Any = symbolic_number.number_tensor(number, int)
    if dtype is not None:
        tensor = elementwise.astype(tensor, dtype)
    return SymbolicTensor(tensor._node, tensor._trace, is_weak=True)


def _tensor_of(number: object, dtype: DTypeLike) -> Tensor:
    tensor = symbolic_number.number_tensor(number, int)
    return tensor if dtype is None else elementwise.astype(tensor, dtype)


def _enumerate(make: Function) -> Function:
    def call(*args: object, **kwargs: object) -> Any:
        walk = (
            enumerate_space(*args, **{"begin" if k == "start" else k: v for k, v in kwargs.items()}) if args else None
        )
        return make(*args, **kwargs) if walk is None else walk

    return call


def _zip(make: Function) -> Function:
    def call(*args: Any, **kwargs: Any) -> Any:
        walk = zip_ranges(args)  # which has no truth: how many there are is not known
        if walk is None:
            walk = zip_tensors(args, kwargs.get("strict", False))
        return make(*args, **kwargs) if walk is None else walk

    return call


def _reverse(make: Function) -> Function:
    def call(*args: object) -> Any:
        if len(args) == 1 and isinstance(args[0], TensorRange):
            return args[0].backwards()
        rows = rows_of(args[0]) if len(args) == 1 else None
        return make(*args) if rows is None else Reversed(rows)

    return call


def _of_range(compute: Callable[[TensorRange], Any]) -> Callable[[Function], Function]:
    """A function of what is iterable, which may be a range over a tensor."""

    def special(make: Function) -> Function:
        def call(*args: Any, **kwargs: Any) -> Any:
            is_range = len(args) == 1 and isinstance(args[0], TensorRange) and not kwargs
            return compute(args[0]) if is_range else make(*args, **kwargs)

        return call

    return special


def _of_value(compute: Callable[[SymbolicNumber], Any]) -> Callable[[Function], Function]:
    """A function of one number, which may be the single element of a tensor."""

    def special(make: Function) -> Function:
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) == 1 and not kwargs:
                value: Any = args[0].value() if isinstance(args[0], Variable) else args[0]
                if is_number(value):
                    return compute(value)
                if is_open(value) and symbolic_number.has_number(value):
                    return compute(symbolic_number.number_in(value))
            return make(*args, **kwargs)

        return call

    return special


def _bool(make: Function) -> Function:
    convert = _of_value(symbolic_number.to_bool)(make)

    def call(*args: object, **kwargs: object) -> Any:
        return (
            convert(truth(args[0]), *args[1:], **kwargs) if args and not is_open(args[0]) else convert(*args, **kwargs)
        )

    return call


def _floats(compute: Callable[[Tensor], Tensor]) -> Callable[[Function], Function]:
    return _of_value(lambda x: symbolic_number.number_of(compute(symbolic_number.number_tensor(x, float))))


def _getattr(get: Function) -> Function:
    def call(value: Any, name: str, *default: object) -> Any:
        if not is_number(value):
            return get(value, name, *default)
        try:
            return symbolic_number.attribute(value, name)
        except AttributeError:
            if not default:
                raise
            return default[0]

    return call


def _hasattr(ask: Function) -> Function:
    return lambda value, name: hasattr(value.one_kind, name) if is_number(value) else ask(value, name)


def _is(ask: Function) -> Function:
    def call(a: object, b: object) -> Any:
        check_identity(a, b)
        return ask(a, b)

    return call


def _in_program(name: str) -> Callable[[Function], Function]:
    """A function of floats whose namesake is computed in the program."""

    def special(compute: Function) -> Function:
        def call(*args: object) -> Any:
            for value in args:
                if is_open(value) and not is_number(value):
                    raise ConcretizationError(
                        "math",
                        f"math.{name}() needs the value of {value!r}, which does not exist while tracing. "
                        f"Write hf.{name}, which the program computes.",
                    )
            return compute(*args)

        return call

    return special


# ---- of several values


def _has_rows(value: object) -> bool:
    return is_open(value) and isinstance(value, SymbolicTensor) and len(value.shape) > 0


def _filter(make: Function) -> Function:
    """``filter``, of whose items tensors may decide which are left."""

    def call(function: Callable[..., Any], values: Any, /) -> Any:
        values = dynamic_list_reads.iterate(values) if dynamic_list_reads.is_grown(values) else values
        if not isinstance(values, (list, tuple)) and not _has_rows(values):
            return make(function, values)
        recording = active.recording
        if recording is not None:
            recording.note(builtin_reads.iterate, values)
            function = recording.note(recording.prepare, function)
        items = list(values)
        kept = items if function is None or function is bool else [function(item) for item in items]
        kept = list(map(truth, kept))
        if not any(map(is_open, kept)):
            return iter([item for item, is_kept in zip(items, kept) if is_kept])
        return dynamic_list.select_items(items, [conditional.truth(x) if is_open(x) else bool(x) for x in kept])

    return call


def _may_be_open(value: object) -> bool:
    """Whether the truth of a value is not known, or is what code of the user's says."""
    return is_open(value) or special_method(value, "__bool__", "__len__") is not None


def _quantifier(decides: bool, combine: Callable[[Any, Any], Tensor]) -> Callable[[Function], Function]:
    """``any`` and ``all``, which a value of truth ``decides`` ends."""

    def special(ask: Function) -> Function:
        def call(values: Iterable[Any], /) -> Any:
            if isinstance(values, (list, tuple, dict, set, frozenset)) and not any(map(_may_be_open, values)):
                return ask(values)
            recording = active.recording
            if recording is not None:
                recording.note(builtin_reads.iterate, values)
            result: Any = None
            for value in map(truth, values):
                if is_open(value):
                    item_truth = conditional.truth(value)
                    result = item_truth if result is None else combine(result, item_truth)
                elif bool(value) is decides:
                    return decides
            return not decides if result is None else symbolic_number.number_of(result)

        return call

    return special


SPECIAL: dict[Any, Callable[[Function], Function]] = {
    range: _range,
    enumerate: _enumerate,
    zip: _zip,
    reversed: _reverse,
    len: _of_range(lambda numbers: numbers.count),
    sum: _of_range(TensorRange.total),
    np.arange: _arange(_scalar_of_numpy),
    creation.arange: _arange(_tensor_of),
    isinstance: _isinstance,
    type: _type,
    **dict.fromkeys((str, repr, format, ascii), _text),
    getattr: _getattr,
    hasattr: _hasattr,
    int: _of_value(symbolic_number.to_int),
    float: _of_value(symbolic_number.to_float),
    bool: _bool,
    max: sorting.MAX,
    min: sorting.MIN,
    any: _quantifier(True, elementwise.logical_or),
    all: _quantifier(False, elementwise.logical_and),
    sorted: sorting.sorted_,
    filter: _filter,
    operator.is_: _is,
    operator.is_not: _is,
    math.floor: _of_value(math.floor),
    math.ceil: _of_value(math.ceil),
    math.sqrt: _of_value(symbolic_number.square_root),
    math.fabs: _floats(elementwise.abs),
    math.isnan: _floats(elementwise.isnan),
    math.isinf: _floats(elementwise.isinf),
    math.isfinite: _floats(elementwise.isfinite),
    **{getattr(math, name): _in_program(name) for name in NAMESAKES},
}
_KINDS = (type, types.BuiltinFunctionType, type(creation.arange))


def special(function: Any, method: Any) -> Any:
    """What to call for ``function``, which was prepared as ``method``."""
    return SPECIAL[function](method) if type(function) in _KINDS and function in SPECIAL else method


def method_of_text(value: str, name: str, method: Callable[..., Any]) -> Any:
    """What to call for a method of a str."""
    if name == "join":
        return functools.partial(_str_join, method)
    return _text(method) if name in ("format", "format_map") else method


def _str_join(join: Function, parts: Iterable[Any]) -> Any:
    """``str.join``, of which tensors may decide what is joined."""
    if isinstance(parts, (types.GeneratorType, map, filter)):
        parts = list(parts)
    if not isinstance(parts, (list, tuple)):
        return join(parts)
    for k, part in enumerate(parts):
        if is_choice(part):
            return known_of_each(part, lambda one: _str_join(join, [*parts[:k], one, *parts[k + 1 :]]))  # noqa: B023
    if any(isinstance(part, runtime_text.RuntimeText) for part in parts):
        return runtime_text.text_of(lambda *texts: join(texts), *parts)
    return join(parts)


def method_of_tensor(value: Any, name: str, method: Callable[..., object]) -> Any:
    """What to call for a method of a tensor: its single element is a number that the program computes."""
    if name != "item" or not is_open(value):
        return method
    return functools.partial(_of_value(lambda x: x)(lambda _, *args: method(*args)), value)


def method_of_list(value: list[Any], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for a method of a list."""
    if name == "insert":
        return functools.partial(_insert, value, method)
    return sorting.method_sort(value, method) if name == "sort" else method


def _insert(values: list[Any], insert: Any, index: object, new: object) -> None:
    if isinstance(index, SymbolicTensor):
        dynamic_list_reads.insert_at(values, index, new)
    else:
        insert(index, new)


def check_repeats(left: object, right: object) -> None:
    """Raise TraceError for ``[0] * n`` of a number that is not known before the program runs."""
    for one, other in ((left, right), (right, left)):
        if type(one) in (list, tuple, str, bytes) and is_number(other):
            raise ConcretizationError(
                "convert",
                f"{symbolic_number.WHAT} meets a {type(one).__name__}, whose length would depend on it. "
                "Use tensors of a fixed size, and hf.where.",
            )
