"""What programs do beside computing while a session runs: functions in Python, printing, assertions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow import debugging
from hybridflow.compat.v1.evaluation import as_value
from hybridflow.compat.v1.functions import TABLE as tf, convert_to_tensor
from hybridflow.compat.v1.graph import Info, Operation, default_graph
from hybridflow.effects.py_function import numpy_function
from hybridflow.jit.tensor_spec import TensorSpec


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """``func`` of arrays, called in Python whenever it runs; shapes are said by ``set_shape``, or found then."""
    inputs = [convert_to_tensor(x) for x in inp]
    several = isinstance(Tout, (list, tuple))
    dtypes = [np.dtype(t) for t in (Tout if several else [Tout])]

    def compute(run: Any, values: Sequence[Any]) -> list[Any]:
        shapes = [t.info.shape for t in op.outputs]
        specs: list[Any] = [d if s is None or None in s else TensorSpec(s, d) for s, d in zip(shapes, dtypes)]
        found = numpy_function(func, [as_value(x) for x in values], specs if several else specs[0], stateful)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    op = default_graph().add("PyFunc", name or "PyFunc", inputs, [Info(None, d) for d in dtypes], compute)
    return list(op.outputs) if several else op.outputs[0]


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """The input; whenever it runs, up to ``first_n`` times, data are printed to the standard error output."""
    inputs = [convert_to_tensor(x) for x in (input_, *data)]
    count = [0]

    def show(*arrays: np.ndarray) -> Any:
        count[0] += 1
        if first_n is None or first_n < 0 or count[0] <= first_n:
            shown = "".join(f"[{_text(np.asarray(x), summarize or 3)}]" for x in arrays)
            print(f"{message or ''}{shown}", file=sys.stderr)
        return []

    def compute(run: Any, values: Sequence[Any]) -> list[Any]:
        numpy_function(show, [as_value(x) for x in values[1:]], [])
        return [values[0]]

    op = default_graph().add("Print", name or "Print", inputs, [inputs[0].info._replace(known=None)], compute)
    return op.outputs[0]


def _text(array: np.ndarray, most: int) -> str:
    flat = array.ravel()
    return " ".join(f"{x:g}" if array.dtype.kind == "f" else str(x) for x in flat[:most]) + (
        "..." if flat.size > most else ""
    )


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> Operation:
    """Raises InvalidArgumentError with the data where the condition is not True when it runs."""
    inputs = [convert_to_tensor(condition), *[convert_to_tensor(x) for x in data if not isinstance(x, (str, bytes))]]
    texts = [x if isinstance(x, str) else x.decode() for x in data if isinstance(x, (str, bytes))]

    def compute(run: Any, values: Sequence[Any]) -> list[Any]:
        debugging.Assert(as_value(values[0]), [*texts, *[as_value(x) for x in values[1:]]], summarize)
        return []

    return default_graph().add("Assert", name or "Assert", inputs, [], compute)


def _asserting(compare: str, holds: str) -> Callable[..., Operation]:
    def check(
        x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
    ) -> Operation:
        a, b = convert_to_tensor(x), convert_to_tensor(y)
        told = [message or f"Condition x {compare} y did not hold element-wise:", a, b]
        return Assert(tf["reduce_all"](tf[holds](a, b)), list(data or told), summarize, name or "assert_" + holds)

    check.__name__ = f"assert_{holds}"
    return check


NAMES: dict[str, Any] = {
    "py_func": py_func, "numpy_function": py_func, "Print": Print, "Assert": Assert,
    "assert_equal": _asserting("==", "equal"), "assert_less": _asserting("<", "less"),
    "assert_less_equal": _asserting("<=", "less_equal"), "assert_greater": _asserting(">", "greater"),
    "assert_greater_equal": _asserting(">=", "greater_equal"),
}  # fmt: skip


def assert_positive(
    x: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
) -> Operation:
    """The same for elements that must be more than 0."""
    made: Operation = NAMES["assert_greater"](x, tf["zeros_like"](convert_to_tensor(x)), data, summarize, message, name)
    return made


NAMES["assert_positive"] = assert_positive
