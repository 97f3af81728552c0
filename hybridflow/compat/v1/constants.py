"""What graphs are given: constants, placeholders, and what is computed in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.code_traits import declare
from hybridflow.compat.v1.dtype_names import STRING, kind_of
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.literals import literal
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.compat.v1.recording import Recorded, as_graph_tensor, is_symbolic
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.compat.v1.shaping import stack
from hybridflow.compat.v1.strings import encoded, is_text
from hybridflow.compat.v1.table import Table

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


TABLE = Table()

_constant = Recorded(literal, "Const")


@declare("makes tensors")
def constant(
    value: TensorLike,
    dtype: Any = None,
    shape: object = None,
    name: str | None = None,
    verify_shape: bool = False,
) -> Any:
    """A tensor of a value; texts stay in Python."""
    if is_text(value, dtype):
        return _text(value, name)
    if isinstance(value, (list, tuple)) and _holds_tensors(value):
        return stack(list(value), name=name)
    return _constant(value, dtype, shape, name=name)


TABLE["constant"] = constant


def _holds_tensors(value: Any) -> bool:
    return any(is_symbolic(x) or (isinstance(x, (list, tuple)) and _holds_tensors(x)) for x in value)


def _text(value: TensorLike, name: str | None) -> Any:
    held = encoded(value)
    return on_host(
        "Const", name, [], [Info(np.shape(held) if not isinstance(held, bytes) else (), STRING)], lambda *_: [held]
    )


def on_host(
    type: str, name: str | None, inputs: Sequence[Any], infos: Sequence[Info], compute: Callable[..., Sequence[Any]]
) -> Any:
    """An operation that is computed in Python, of arrays, before or after the compiled program; its tensor or tensors,
    or where it has none itself."""
    graph = default_graph()
    tensors = [as_graph_tensor(x) if is_symbolic(x) else constant(x) for x in inputs]
    node = graph.add(type, name, tensors, infos, lambda state, values: compute(*values))
    node.on_host = True
    return node if not infos else node.outputs[0] if len(infos) == 1 else node.outputs


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: object = None,
    dtype_hint: object = None,
) -> Any:
    if is_symbolic(value):
        return as_graph_tensor(value)
    return constant(value, dtype, name=name)


TABLE["convert_to_tensor"] = convert_to_tensor


def placeholder(dtype: DTypeLike, shape: object = None, name: str | None = None) -> Tensor:
    """What is fed when a session runs; ``shape`` has None where any extent will do, and is None for any rank."""
    known = TensorShape(shape)
    extents = None if known.ndims is None else tuple(known.as_list())
    kind = kind_of(dtype)
    node = default_graph().add("Placeholder", name, [], [Info(extents, kind)], _not_fed, {"shape": known})
    node.on_host = kind == STRING
    return node.outputs[0]


def _not_fed(run: object, values: object) -> Any:
    raise AssertionError("sessions check what is fed")


def placeholder_with_default(input: ArrayLike, shape: object, name: str | None = None) -> Tensor:
    """The input, unless something else is fed."""
    start = convert_to_tensor(input)
    known = TensorShape(shape)
    info = Info(None if known.ndims is None else tuple(known.as_list()), start.dtype)
    node = default_graph().add("PlaceholderWithDefault", name, [start], [info], lambda run, values: values)
    return node.outputs[0]


TABLE.update(placeholder=placeholder, placeholder_with_default=placeholder_with_default)
