"""Native calls that compute nothing: their results are tensors over memory that is there.

The result of a function may lie in the memory of its arguments (a reshape, a transpose, the parts of a split), or be
made of numbers alone.  Then it is the same view at each call of that form; nothing needs to be traced to know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor
from hybridflow.runtime.calls import argument_specs as native, entry
from hybridflow.runtime.calls.native_call import NativeCall
from hybridflow.runtime.calls.result_steps import Make, View

_MOST_BYTES = 1 << 16  # of values that are kept


def view_call(args: Sequence[Any], kwargs: dict[str, Any], result: Any, is_constant: bool) -> NativeCall | None:
    """A native call that gives what lies where ``result`` does: in the memory of tensors among the arguments, or, if it
    ``is_constant`` and they are not tensors, in memory of its own.  None where it is of another kind."""
    results = [result] if type(result) is Tensor else result
    values = [*args, *kwargs.values()]
    if type(results) not in (list, tuple) or any(type(x) is not Tensor or _is_among(x, values) for x in results):
        return None
    sources = {k: value._array for k, value in enumerate(values) if type(value) is Tensor}
    arguments = [argument for argument in map(_argument, values) if argument is not None]
    views_or_none = [_constant(x._array) if is_constant and not sources else _view(x._array, sources) for x in results]
    views = [view for view in views_or_none if view is not None]
    if len(arguments) < len(values) or len(views) < len(views_or_none):
        return None
    if len({view.source for view in views if isinstance(view.source, int)}) < len(sources):
        return None  # the values of a tensor that is not seen may decide
    steps = [Make("view", view) for view in views]
    if results is result:
        steps.append(Make(type(results).__name__, takes=len(results)))
    nothing = entry.nothing()
    if nothing is None:
        return None
    return NativeCall(nothing, arguments, keywords=tuple(kwargs), results=steps)


def _is_among(x: object, values: Sequence[Any]) -> bool:
    return any(x is value for value in values)


def _argument(value: Any) -> native.Argument | None:
    kind = type(value)
    if kind is Tensor:
        return native.TensorArg(value.dtype, value.shape, None, contiguous=True)
    if kind is tuple or kind is list or kind is Shape:
        children = [child for child in map(_argument, value) if isinstance(child, _NUMBERS)]
        return native.SequenceArg(kind, tuple(children)) if len(children) == len(value) else None
    return native.LiteralArg(value) if kind in _LITERALS or isinstance(value, np.dtype) else None


_NUMBERS = (native.LiteralArg, native.SequenceArg)
_LITERALS = frozenset((bool, int, float, str, type, type(None)))


def _view(array: Any, sources: Mapping[int, Any]) -> View | None:
    """Where the elements lie in one of the sources, whose own lie one after the other."""
    for k, source in sources.items():
        if type(source) is np.ndarray and source.flags.c_contiguous and np.may_share_memory(array, source):
            offset = array.__array_interface__["data"][0] - source.__array_interface__["data"][0]
            return View(k, array.dtype, offset, array.shape, array.strides)
    return None


def _constant(array: object) -> View | None:
    """The elements in a copy that nobody changes."""
    if type(array) is not np.ndarray or array.nbytes > _MOST_BYTES:
        return None
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return View(copy, copy.dtype, 0, copy.shape, copy.strides)
