"""Printing: at once, or whenever the program that is traced comes to it."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import is_narrow_float
from hybridflow.core.context import now
from hybridflow.core.string_tensor import StringTensor
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.effects.runtime_text import RuntimeValues
from hybridflow.errors import ArgumentTypeError, entered
from hybridflow.tracing.effect_token import call_in_order


@entered
def print(*values: Any, sep: str = " ", end: str = "\n", output_stream: Any = None, summarize: int = 3) -> None:
    """Print values each time the code runs, in a compiled function as well, in the order of the program.

    Args:
        *values: tensors, of which the elements alone are shown, or anything else.
        sep: what stands between values.
        end: what stands behind the last one.
        output_stream: an object with ``write``. By default ``sys.stderr``, as it is when something is printed.
        summarize: how many elements at each end of an axis are shown; -1 for all.

    Returns:
        None.

    >>> import sys
    >>> @hf.function
    ... def double(x):
    ...     hf.print("doubling", x, output_stream=sys.stdout)
    ...     return x * 2
    ...
    >>> double(hf.asarray([1.0, 2.5]))
    doubling [1.  2.5]
    <Tensor f32[2] cpu> [2. 5.]
    """
    if isinstance(summarize, bool) or not isinstance(summarize, int) or summarize < -1:
        raise ArgumentTypeError("print", f"summarize is {summarize!r}. Expected a number of elements, or -1 for all.")
    if output_stream is not None and not callable(getattr(output_stream, "write", None)):
        raise ArgumentTypeError("print", f"output_stream is {output_stream!r:.60}. Expected an object with write.")

    def write(values: Sequence[Any]) -> None:
        texts = [_text(value, summarize) for value in values[2:]]
        file = sys.stderr if output_stream is None else output_stream
        builtins.print(*texts, sep=values[0], end=values[1], file=file)

    if now().trace is None:
        write([sep, end, *values])
    else:
        _later(RuntimeValues([sep, end, *values], unwrapped=True), write)


def print_later(*values: Any, sep: object = None, end: object = None, **options: Any) -> None:
    """Python's ``print`` in a function that is traced."""

    def write(values: Sequence[Any]) -> None:
        builtins.print(*values[2:], sep=values[0], end=values[1], **options)

    _later(RuntimeValues([sep, end, *values]), write)


def _later(late: RuntimeValues, write: Callable[[Sequence[Any]], None]) -> None:
    call_in_order(lambda *arrays: write(late.filled(arrays)), late.tensors(), ())


def _text(value: Any, summarize: int) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Variable):
        value = value._read()
    if isinstance(value, StringTensor):
        return _texts(value.texts, summarize)
    if isinstance(value, Tensor):
        return _elements(value.numpy(), summarize)
    if type(value) in (list, tuple):
        inner = ", ".join(_text(part, summarize) for part in value)
        tail = "," if type(value) is tuple and len(value) == 1 else ""
        return f"[{inner}]" if type(value) is list else f"({inner}{tail})"
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {_text(part, summarize)}' for key, part in value.items())}}}"
    return str(value)


def _texts(array: np.ndarray, summarize: int) -> str:
    """Texts as TensorFlow prints them: one as it is, several in quotation marks."""
    if not array.ndim:
        return str(array.item().decode("utf-8", "replace"))
    threshold = sys.maxsize if summarize < 0 else 0
    formatter: Any = {"all": lambda text: f'"{text.decode("utf-8", "replace")}"'}
    return np.array2string(array, threshold=threshold, edgeitems=max(summarize, 1), formatter=formatter)


def _elements(array: np.ndarray, summarize: int) -> str:
    if is_narrow_float(array.dtype):
        array = array.astype(np.float32)
    if not array.ndim:
        return str(array[()])
    threshold = sys.maxsize if summarize < 0 else 0
    return np.array2string(array, threshold=threshold, edgeitems=max(summarize, 1))
