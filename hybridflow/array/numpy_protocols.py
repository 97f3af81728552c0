"""NumPy's functions on tensors: ``np.sin(x)``, ``np.sum(x, axis=0)``, ``array + x`` give tensors, as ours do.

Most of NumPy's functions are found by their names: NumPy and this package carry those of the array API standard, so
that ``np.concatenate``, which NumPy also calls ``np.concat``, is ``hf.concat``.  An op of the table names the ufunc
that it is.  What NumPy defines by others of its functions is in ``numpy_functions``.

Everything else is left to NumPy, where nobody would notice that the result was computed apart from what is recorded:
while tracing, and under a tape that tracks an argument, it is an error.  Its arrays come back as tensors.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.shapes import expand_dims
from hybridflow.array.tensor_methods import method_of
from hybridflow.compiler.ops import TABLE
from hybridflow.core import name_hints, pytree
from hybridflow.core.context import dialect, now
from hybridflow.core.method_install import give
from hybridflow.core.promotion import is_supported
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, beside
from hybridflow.errors import ArgumentTypeError, TraceError
from hybridflow.runtime import uninterruptible

# NumPy's names of parameters that we call otherwise.
_RENAMED = {"ddof": "correction", "a_min": "min", "a_max": "max", "pad_width": "paddings"}
# What a function's parameter may be given without a counterpart, because it says what is so anyway.
_NOTHING: dict[str, tuple[Any, ...]] = {
    "out": (None,),
    "order": ("C", "K", "A", None),
    "subok": (True, False),
    "copy": (True,),
    "kind": (None, "stable"),
    "casting": ("same_kind",),
    "where": (True,),
    "mode": ("raise",),
    "sorted": (True,),
    "optimize": (True, False, "greedy", "optimal"),
    "UPLO": ("L",),
    "compute_uv": (True,),
    "hermitian": (False,),
    "overwrite_input": (False,),
}
# Methods that take what NumPy's functions of their names take, where our functions are called otherwise.
_METHODS = ("argsort", "copy", "cumsum", "dot", "ravel", "round", "sort", "std", "take", "var")
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_ACCUMULATIONS = {
    "add": "cumulative_sum", "multiply": "cumulative_prod", "maximum": "cummax", "minimum": "cummin",
    "logaddexp": "cumlogsumexp",
}  # fmt: skip


def _gives_arrays(caller: types.FrameType) -> bool:
    """Whether NumPy's functions of tensors give NumPy's arrays to what runs there, as they do of those of TensorFlow;
    where something is recorded they give tensors."""
    return dialect.is_spoken_in(caller) and now().trace is None and not now().tapes


def _array_ufunc(self: object, ufunc: np.ufunc, method: str, /, *inputs: object, **kwargs: object) -> Any:
    """NumPy's protocol for its ufuncs: the function of ours that is the same."""
    if ufunc.nin == 1 and _gives_arrays(sys._getframe(1)):
        return getattr(ufunc, method)(*_mapped(_plain, inputs), **kwargs)
    if kwargs.get("out") is None:
        function = _function_of(ufunc, method)
        is_operator = method == "__call__" and type(inputs[0]) is np.ndarray
        if function is not None and is_operator and dialect.is_spoken_in(sys._getframe(1)):
            inputs = beside(self, inputs[0]), *inputs[1:]
        if function is not None:
            return _called(ufunc, method, function, inputs, kwargs)
    return _run_in_numpy(_named(ufunc, method), getattr(ufunc, method), inputs, kwargs)


def _array_function(
    self: object, function: Callable[..., Any], types: object, args: Sequence[Any], kwargs: Mapping[str, Any], /
) -> Any:
    """NumPy's protocol for its other functions: the function of ours that is the same, else NumPy's."""
    if _gives_arrays(sys._getframe(1)):
        plain = _mapped(_plain, (args, dict(kwargs)))
        return function(*plain[0], **plain[1])
    ours = _table().get(function) if kwargs.get("out") is None else None
    if ours is not None:
        return _called(function, "__call__", ours, args, kwargs)
    return _run_in_numpy(_named(function), function, args, kwargs)


def _named(function: Callable[..., object], method: str = "__call__") -> str:
    name = f"np.{function.__name__}" if method == "__call__" else f"np.{function.__name__}.{method}"
    return name.replace("np.", "np.linalg.") if getattr(function, "__module__", "") == "numpy.linalg" else name


@functools.cache
def _function_of(ufunc: np.ufunc, method: str) -> Callable[..., Any] | None:
    if method == "__call__":
        return _table().get(ufunc)
    if method == "outer" and ufunc in _table():
        return lambda a, b: _table()[ufunc](expand_dims(a, tuple(range(-np.ndim(b), 0))), b)
    table = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {})
    name = table.get(ufunc.__name__)
    if name is None:
        return None
    ours = getattr(_package(), name)

    def fold(array: object, axis: object = 0, dtype: DTypeLike | None = None, **options: object) -> Any:
        if dtype is not None:
            options["dtype"] = dtype
        return ours(array, axis=axis, **options)

    return fold


def _package() -> ModuleType:
    return sys.modules["hybridflow"]


@uninterruptible.once
def _table() -> dict[Any, Callable[..., Any]]:
    """NumPy's functions and ours."""
    from hybridflow.array.numpy_functions import FUNCTIONS  # when the first of NumPy's functions meets a tensor

    package = _package()
    table: dict[Any, Callable[..., Any]] = {}
    for source, theirs in ((package, np), (package.linalg, np.linalg), (package.fft, np.fft)):
        for name in source.__all__:
            other, ours = getattr(theirs, name, None), getattr(source, name)
            if callable(other) and callable(ours) and not isinstance(other, type):
                table.setdefault(other, ours)
    for op in TABLE.values():
        if op.numpy is not None and hasattr(package, op.name):
            table.setdefault(op.numpy, getattr(package, op.name))
    for function in (
        np.result_type,
        np.can_cast,
        np.isdtype,
        np.from_dlpack,
        np.put_along_axis,
        np.split,
        np.outer,
        np.trace,
        np.diagonal,
    ):
        table.pop(function, None)  # other meanings, or no arrays
    methods = {getattr(np, name): method_of(name) for name in _METHODS}
    return {**table, **methods, **FUNCTIONS}


def _called(
    theirs: Callable[..., Any], method: str, ours: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Our function with what NumPy's was given."""
    binding = _binding(theirs, method, ours, len(args), tuple(kwargs))
    if binding.is_same:
        return ours(*args)

    def value(source: int | str) -> Any:
        return args[source] if isinstance(source, int) else kwargs[source]

    for key, source in binding.without:
        if not _says_nothing(key, value(source)):
            raise ArgumentTypeError(_named(theirs, method), f"{_what(ours)} has no {key}=.")
    if binding.fault is not None:
        raise ArgumentTypeError(_named(theirs, method), f"{_what(ours)} takes other arguments: {binding.fault}.")
    return ours(*map(value, binding.positional), **{key: value(source) for key, source in binding.keywords})


class _Binding(NamedTuple):
    """How our function is called with arguments for NumPy's, each named by its position or its keyword there: those
    that it takes by position, by name, and those that it has no counterpart for, with the names that NumPy has for
    them.  ``fault`` is why it cannot be called in this way."""

    positional: tuple[int | str, ...]
    keywords: tuple[tuple[str, int | str], ...]
    without: tuple[tuple[str, int | str], ...]
    fault: str | None
    is_same: bool  # it is called with the same arguments by position, and no others


@functools.lru_cache(maxsize=1024)
def _binding(
    theirs: Callable[..., Any], method: str, ours: Callable[..., Any], count: int, given_names: tuple[str, ...]
) -> _Binding:
    """What our function is given for a call of NumPy's with so many arguments by position, and others by these names:
    those that it needs by position, the others by their names."""
    names = _parameters(theirs) if method == "__call__" else None
    signature = inspect.signature(ours)
    parameters = signature.parameters
    needed = [p for p in parameters.values() if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    by_position = count if names is None else min(count, len(needed))
    positional: list[int | str] = list(range(by_position))
    by_name: dict[str, int | str] = dict(zip((names or ())[by_position:], range(by_position, count)))
    by_name.update(zip(given_names, given_names))
    keywords: dict[str, int | str] = {}
    without: list[tuple[str, int | str]] = []
    for key, source in by_name.items():
        renamed = key if key in parameters else _RENAMED.get(key, key)
        if renamed in parameters and parameters[renamed].kind is not inspect.Parameter.POSITIONAL_ONLY:
            keywords[renamed] = source
        elif names is not None and key in names[: len(needed)] and names.index(key) == len(positional):
            positional.append(source)
        else:
            without.append((key, source))
    fault = None
    try:
        signature.bind(*positional, **keywords)
    except TypeError as error:
        fault = str(error)
    is_same = fault is None and not by_name and len(positional) == count
    return _Binding(tuple(positional), tuple(keywords.items()), tuple(without), fault, is_same)


def _what(ours: Callable[..., Any]) -> str:
    """What stands for a function of NumPy, for messages."""
    for owner, module in (("hf", _package()), ("hf.linalg", _package().linalg), ("hf.fft", _package().fft)):
        if getattr(module, ours.__name__, None) is ours:
            return f"is {owner}.{ours.__name__} here, which"
    return "is made of hf's functions here, and"


def _says_nothing(key: str, value: object) -> bool:
    if value is np._NoValue:
        return True
    return isinstance(value, (str, int, type(None))) and value in _NOTHING.get(key, ())


@functools.cache
def _parameters(function: Callable[..., Any] | None) -> tuple[str, ...] | None:
    """The names of a function's parameters, where Python can tell."""
    if isinstance(function, np.ufunc) or function is None:
        return None
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return None
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    return None if several else tuple(parameters)


def _run_in_numpy(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """NumPy's own result, as tensors."""
    tensors = list(_tensors((*args, *kwargs.values())))
    state = now()
    if state.trace is not None:
        why = "has no counterpart in hybridflow, and tensors have no values while tracing."
        raise TraceError(name, f"{why} {_instead(function)}")
    if any(tape.tracks(x) for tape in state.tapes for x in tensors):
        why = "has no counterpart in hybridflow, and would compute apart from the tape that tracks its argument."
        raise ArgumentTypeError(name, f"{why} {_instead(function)} Or pass hf.stop_gradient(x).numpy().")
    plain = _mapped(_plain, (args, dict(kwargs)))
    result = function(*plain[0], **plain[1])
    return result if kwargs.get("out") is not None else _mapped(_wrapped, result)


def _instead(function: object) -> str:
    """What to write for a function of NumPy."""
    answer = name_hints.OF_MODULE.get(getattr(function, "__name__", ""))
    return "Use hf's functions." if answer is None else f"Write {answer}."


def _tensors(value: object) -> Iterator[Any]:
    if isinstance(value, (Tensor, Variable)):
        yield value._seen() if isinstance(value, Variable) else value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    if pytree.is_namedtuple(value):
        return type(value)(*(_mapped(function, item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)([_mapped(function, item) for item in value])
    if isinstance(value, dict):
        return {key: _mapped(function, item) for key, item in value.items()}
    return function(value)


def _plain(value: object) -> Any:
    return value.numpy() if isinstance(value, (Tensor, Variable)) else value


def _wrapped(value: object) -> Any:
    is_array = isinstance(value, (np.ndarray, np.generic)) and is_supported(value.dtype)
    return as_tensor(value, "numpy") if is_array else value


def install() -> None:
    """Give the classes the methods; called once, when the package is imported."""
    give(Operators, "__array_ufunc__", _array_ufunc)
    give(Operators, "__array_function__", _array_function)
