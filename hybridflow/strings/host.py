"""Steps on the host: what works on texts runs in Python, in compiled functions too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import int64
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.context import current, suspended
from hybridflow.core.string_tensor import (
    StringTensor,
    as_strings,
    codes_of,
    is_string,
    of_codes,
    of_texts,
    string,
    texts_of,
    trace_codes,
)
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.ragged import Ragged
from hybridflow.tracing.effect_token import ask, call_in_order

Arrays = Callable[..., Any]


def known(*inputs: Tensor) -> bool:
    """Whether the elements of tensors are there, so that a step is run at once."""
    if current.trace is None:
        return True
    return all(x.is_known if isinstance(x, StringTensor) else x._known() is not None for x in inputs)


def elements(x: Tensor) -> np.ndarray:
    """The elements of a tensor that are known."""
    outcome: Any = x.texts if isinstance(x, StringTensor) else x._known()
    return outcome


def step(function: Arrays, inputs: Sequence[Tensor], types: Sequence[TensorType], in_order: bool = False) -> list[Any]:
    """What ``function`` makes of the arrays of ``inputs``, those of texts being arrays of bytes: tensors of ``types``.

    In a trace the program calls it when it runs; ``in_order`` after all earlier effects, else it is to compute from its
    arguments alone.
    """
    if current.trace is None or (not in_order and known(*inputs)):
        with suspended():
            converted = function(*[elements(x) for x in inputs])
        converted = converted if isinstance(converted, (tuple, list)) else (converted,)
        return [_tensor(array, kind) for array, kind in zip(converted, types)]
    of_text = [isinstance(x, StringTensor) for x in inputs]

    def on_arrays(*arrays: np.ndarray) -> Any:
        with suspended():
            supplied = [texts_of(a) if is_text else a for a, is_text in zip(arrays, of_text)]
            outcome = function(*supplied)
            outcome = outcome if isinstance(outcome, (tuple, list)) else (outcome,)
            out = [_array(array, kind) for array, kind in zip(outcome, types)]
        if not types:
            return None
        return out[0] if len(out) == 1 else out

    codes = [trace_codes(x) if isinstance(x, StringTensor) else x for x in inputs]
    numbers = [TensorType(kind.shape, int64) if is_string(kind.dtype) else kind for kind in types]
    results = (call_in_order if in_order else ask)(on_arrays, codes, numbers)
    return [of_codes(x) if is_string(kind.dtype) else x for x, kind in zip(results, types)]


def _tensor(array: Any, kind: TensorType) -> Tensor:
    if is_string(kind.dtype):
        return of_texts(np.asarray(array, object))
    return wrap(np.ascontiguousarray(np.asarray(array, kind.dtype)).reshape(np.shape(array)))


def _array(array: np.ndarray, kind: TensorType) -> np.ndarray:
    if is_string(kind.dtype):
        return codes_of(np.asarray(array, object))
    return np.ascontiguousarray(np.asarray(array, kind.dtype)).reshape(np.shape(array))


def extent(function: Arrays, inputs: Sequence[Tensor]) -> Any:
    """A size that ``function`` finds: a number, in a trace an extent that calls find."""
    (count,) = step(function, inputs, [TensorType((), int64)])
    return count._to_extent()


def of_each(function: Callable[[bytes], Any], texts: np.ndarray, dtype: DTypeLike | None = None) -> np.ndarray:
    """``function`` of each text of an array."""
    outcome = list(map(function, texts.ravel().tolist()))
    if dtype is not None:
        return np.array(outcome, dtype).reshape(texts.shape)
    result: np.ndarray = np.empty(len(outcome), object)
    result[:] = outcome
    return result.reshape(texts.shape)


def mapped(stage: str, function: Callable[[bytes], Any], x: Any, dtype: Any = string) -> Any:
    """``function`` of each text of a tensor or a ragged one, as texts or numbers."""
    if isinstance(x, Ragged):
        return x.with_values(mapped(stage, function, x.values, dtype))
    x = as_strings(x, stage)
    chosen = None if is_string(dtype) else dtype
    return step(lambda texts: of_each(function, texts, chosen), [x], [TensorType(x.shape, dtype)])[0]
