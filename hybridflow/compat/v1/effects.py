"""What programs do beside computing while a session runs: functions in Python, printing, assertions."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import debugging
from hybridflow.array.creation import asarray
from hybridflow.compat.adapters import arrays
from hybridflow.compat.adapters.control import print_
from hybridflow.compat.v1.constants import convert_to_tensor, on_host
from hybridflow.compat.v1.dtype_names import STRING, kind_of
from hybridflow.compat.v1.evaluation import as_value
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.graph_stack import computing, is_recording
from hybridflow.compat.v1.nodes import Info, Operation
from hybridflow.compat.v1.recording import Recorded, is_symbolic
from hybridflow.compat.v1.strings import encoded
from hybridflow.core import pytree
from hybridflow.effects.py_function import numpy_function
from hybridflow.jit.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """``func`` of arrays, called in Python whenever it runs; shapes are said by ``set_shape``, or found then."""
    several = isinstance(Tout, (list, tuple))
    dtypes = [kind_of(t) for t in (Tout if several else [Tout])]
    if not is_recording(True) and not any(map(is_symbolic, inp)):
        return numpy_function(func, list(inp), dtypes if several else dtypes[0], stateful)
    inputs = [convert_to_tensor(x) for x in inp]
    if STRING in dtypes or any(x.dtype == STRING for x in inputs):
        return _of_texts(func, inputs, dtypes, several, name)

    def compute(run: object, values: Sequence[Any]) -> list[Any]:
        shapes = [t.info.shape for t in op.outputs]
        specs: list[Any] = [d if s is None or None in s else TensorSpec(s, d) for s, d in zip(shapes, dtypes)]
        results = numpy_function(func, [as_value(x) for x in values], specs if several else specs[0], stateful)
        return list(results) if isinstance(results, (list, tuple)) else [results]

    op = default_graph().add("PyFunc", name or "PyFunc", inputs, [Info(None, d) for d in dtypes], compute)
    return list(op.outputs) if several else op.outputs[0]


def _of_texts(
    func: Callable[..., Any], inputs: Sequence[Any], dtypes: Sequence[Any], several: bool, name: str | None
) -> Any:
    """The same where texts go in or come out: computed on the host."""

    def compute(*arrays: object) -> list[Any]:
        results = func(*arrays)
        results = [] if results is None and not dtypes else results
        values = list(results) if isinstance(results, (list, tuple)) else [results]
        return [encoded(x) if d == STRING else np.asarray(x, d) for x, d in zip(values, dtypes)]

    result = on_host("PyFunc", name or "PyFunc", inputs, [Info(None, d) for d in dtypes], compute)
    if not dtypes:  # an operation
        return result
    return list(result) if several and len(dtypes) > 1 else [result] if several else result


def Print(
    input_: object,
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

    def compute(run: object, values: Sequence[Any]) -> list[Any]:
        numpy_function(show, [as_value(x) for x in values[1:]], [])
        return [values[0]]

    op = default_graph().add("Print", name or "Print", inputs, [inputs[0].info._replace(known=None)], compute)
    return op.outputs[0]


def _text(array: np.ndarray, most: int) -> str:
    flat = array.ravel()
    return " ".join(f"{x:g}" if array.dtype.kind == "f" else str(x) for x in flat[:most]) + (
        "..." if flat.size > most else ""
    )


def Assert(
    condition: ArrayLike, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """Raises InvalidArgumentError with the data where the condition is not True when it runs."""
    inputs = [convert_to_tensor(condition), *[convert_to_tensor(x) for x in data if not isinstance(x, (str, bytes))]]
    texts = [x if isinstance(x, str) else x.decode() for x in data if isinstance(x, (str, bytes))]

    def compute(run: object, values: Sequence[Any]) -> list[Any]:
        debugging.Assert(as_value(values[0]), [*texts, *[as_value(x) for x in values[1:]]], summarize)
        return []

    return default_graph().add("Assert", name or "Assert", inputs, [], compute)


def _asserting(compare: str, holds: str) -> Callable[..., Operation]:
    def check(
        x: ArrayLike,
        y: ArrayLike,
        data: Iterable[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        a, b = convert_to_tensor(x), convert_to_tensor(y)
        told = [message or f"Condition x {compare} y did not hold element-wise:", a, b]
        return Assert(tf["reduce_all"](tf[holds](a, b)), list(data or told), summarize, name or "assert_" + holds)

    check.__name__ = f"assert_{holds}"
    return check


def setdiff1d(
    x: ArrayLike, y: ArrayLike, index_dtype: DTypeLike = np.int32, name: str | None = None
) -> arrays.ListDiff:
    """The values of ``x`` that are not in ``y``, in their order, and where they are: on the host, since it depends on
    the values how many there are."""
    if not is_recording(True):
        return arrays.setdiff1d(x, y, index_dtype)
    values, others = convert_to_tensor(x), convert_to_tensor(y)
    kinds = [Info((None,), values.dtype), Info((None,), np.dtype(kind_of(index_dtype)))]

    def compute(kept_from: np.ndarray, other: np.ndarray) -> list[Any]:
        places = np.flatnonzero(~np.isin(kept_from, other))
        return [kept_from[places], places.astype(kind_of(index_dtype))]

    return arrays.ListDiff(*on_host("ListDiff", name, [values, others], kinds, compute))


NAMES: dict[str, Any] = {
    "py_func": py_func, "setdiff1d": setdiff1d, "numpy_function": py_func, "Print": Print, "Assert": Assert,
    "assert_equal": _asserting("==", "equal"), "assert_less": _asserting("<", "less"),
    "assert_less_equal": _asserting("<=", "less_equal"), "assert_greater": _asserting(">", "greater"),
    "assert_greater_equal": _asserting(">=", "greater_equal"),
}  # fmt: skip


def assert_positive(
    x: ArrayLike, data: object = None, summarize: object = None, message: str | None = None, name: str | None = None
) -> Operation:
    """The same for elements that must be more than 0."""
    result: Operation = NAMES["assert_greater"](
        x, tf["zeros_like"](convert_to_tensor(x)), data, summarize, message, name
    )
    return result


NAMES["assert_positive"] = assert_positive


def _checking(name: str) -> Callable[..., Operation]:
    """``tf.debugging``'s assertion of that name as an operation."""
    check = getattr(debugging, name)

    accepted = inspect.signature(check)

    def make(
        *args: Any, data: TensorLike | None = None, summarize: object = None, message: str | None = None,
        name: str | None = None,
        **options: object,
    ) -> Operation:  # fmt: skip
        accepted.bind(*args, message=message, **options)
        tensors = [convert_to_tensor(x) if is_symbolic(x) else x for x in args]
        places = [k for k, x in enumerate(tensors) if is_symbolic(x)]

        def compute(run: object, values: Sequence[Any]) -> list[Any]:
            tensors_filled = list(tensors)
            for place, value in zip(places, values):
                tensors_filled[place] = as_value(value)
            check(*tensors_filled, message=message, **options)
            return []

        inputs = [tensors[k] for k in places]
        return default_graph().add("Assert", name or check.__name__, inputs, [], compute)

    make.__name__ = name
    return make


for _name in ("negative", "non_negative", "non_positive", "near", "none_equal", "all_finite"):
    if hasattr(debugging, f"assert_{_name}"):
        NAMES[f"assert_{_name}"] = _checking(f"assert_{_name}")


def assert_rank(
    x: ArrayLike,
    rank: int,
    data: TensorLike | None = None,
    summarize: object = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Raises ValueError at once where the tensor is known to have another rank, else when it runs."""
    tensor = convert_to_tensor(x)
    if tensor.shape.ndims is not None and tensor.shape.ndims != rank:
        raise ValueError(
            f"{message or ''} Static rank condition failed for {tensor.name}: rank {tensor.shape.ndims}, expected "
            f"{rank}.".strip()
        )
    return _checking("assert_rank")(tensor, rank, message=message, name=name)


def check_numerics(tensor: object, message: str = "", name: str | None = None) -> Any:
    """The tensor.  Raises InvalidArgumentError with the message where it has a NaN or infinity when it runs."""
    return _finite(tensor, message, name=name)


def verify_tensor_all_finite(
    t: TensorLike | None = None,
    msg: str = "",
    name: str | None = None,
    x: TensorLike | None = None,
    message: str | None = None,
) -> Any:
    """The same by its older name."""
    return check_numerics(t if x is None else x, message or msg, name)


_finite = Recorded(debugging.check_numerics, "CheckNumerics")


def tf_print(*inputs: Any, **options: Any) -> Operation:
    """``tf.print``: the operation that prints, to the standard error output if nothing else is said."""
    leaves, structure = pytree.flatten(list(inputs))
    places = [k for k, leaf in enumerate(leaves) if is_symbolic(leaf)]
    name = options.pop("name", None)

    def compute(run: object, values: Sequence[Any]) -> list[Any]:
        shown = list(leaves)
        for place, value in zip(places, values):
            shown[place] = as_value(value)
        with computing():
            print_(*pytree.unflatten(structure, shown), **options)
        return []

    tensors = [convert_to_tensor(leaves[k]) for k in places]
    return default_graph().add("PrintV2", name or "PrintV2", tensors, [], compute)


def py_function(func: Callable[..., Any], inp: Sequence[Any], Tout: DTypeLike, name: str | None = None) -> Any:
    """``func`` of tensors that have values, and of which it computes at once."""

    def call(*arrays: np.ndarray) -> Any:
        with computing():
            results = func(*[asarray(x) for x in arrays])
            several = isinstance(results, (list, tuple))
            values = [x.numpy() if hasattr(x, "numpy") else np.asarray(x) for x in (results if several else [results])]
        return values if several else values[0]

    return py_func(call, inp, Tout, name=name or "EagerPyFunc")


NAMES.update(
    {
        "assert_rank": assert_rank, "check_numerics": check_numerics, "print": tf_print, "py_function": py_function,
        "verify_tensor_all_finite": verify_tensor_all_finite,
    }
)  # fmt: skip
