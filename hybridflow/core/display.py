"""How tensors look in a REPL: ``<Tensor f32[2,3] cpu>`` and the values, summarised when there are many."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import is_bool, is_complex, is_inexact, is_narrow_float

_MAX_SHOWN = 1000  # more elements than this are summarised


def value_text(tensor: Any) -> str:
    """The values alone, as NumPy prints them."""
    array = tensor.numpy()
    if is_narrow_float(array.dtype):
        array = array.astype(np.float32)
    if array.ndim == 0:
        return str(array[()])
    return np.array2string(array, threshold=_MAX_SHOWN)


def statistics(tensor: Any) -> str:
    """``min=-3.1 max=2.9 mean=0.01 nan=2 inf=1`` over a tensor's finite values; of complex
    numbers over their lengths."""
    array = tensor.numpy()
    if is_bool(array.dtype):
        return f"true={np.count_nonzero(array)} of {array.size}"
    if not is_inexact(array.dtype):
        return f"min={array.min()} max={array.max()} mean={array.mean():.4g}"
    wide = np.abs(array).astype(np.float64) if is_complex(array.dtype) else array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    parts = [f"min={finite.min():.4g} max={finite.max():.4g} mean={finite.mean():.4g}"] if finite.size else []
    parts.append(f"nan={np.count_nonzero(np.isnan(wide))}")
    if infinite := np.count_nonzero(np.isinf(wide)):
        parts.append(f"inf={infinite}")
    return " ".join(parts)


def describe(tensor: Any, title: str = "Tensor") -> str:
    """The repr of a tensor, or of a variable that holds it."""
    head = f"<{title} {tensor.type} {tensor.device}>"
    text = value_text(tensor)
    if tensor.size > _MAX_SHOWN:
        return f"{head} {statistics(tensor)}\n{text}"
    return f"{head} {text}" if tensor.ndim < 2 and "\n" not in text else f"{head}\n{text}"
