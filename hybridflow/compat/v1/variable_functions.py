"""What programs ask of variables by functions: which there are, and assignments to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.compat.v1.variables import AVERAGED, GLOBAL, LOCAL, TRAINABLE, Variable
from hybridflow.compiler.ir import dtypes
from hybridflow.core.type_aliases import ArrayLike

if TYPE_CHECKING:
    from hybridflow.compat.v1.state import State


def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether a variable has a value in the session that runs this."""
    op = variable.graph.add(
        "IsVariableInitialized",
        None,
        [],
        [Info((), dtypes.bool_)],
        lambda run, values: [asarray(variable in run.state.ready)],
    )
    op.is_eager = True
    return op.outputs[0]


def report_uninitialized_variables(
    var_list: Iterable[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of variables that have no value in the session that runs this."""
    graph = default_graph()
    chosen = global_variables() + local_variables() if var_list is None else list(var_list)

    def compute(state: State, values: Sequence[Any]) -> list[Any]:
        names = [v.op.name.encode() for v in chosen if v not in state.ready]
        return [np.array(names, dtype=object)]

    op = graph.add("ReportUninitialized", name, [], [Info((None,), np.dtype(object))], compute)
    op.on_host = True
    return op.outputs[0]


def global_variables(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(GLOBAL, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(LOCAL, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(TRAINABLE, scope)


def all_variables() -> list[Any]:
    return global_variables()


def assign(
    ref: Any, value: ArrayLike, validate_shape: object = None, use_locking: object = None, name: str | None = None
) -> Any:
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: object, use_locking: object = None, name: str | None = None) -> Any:
    return ref.assign_add(value, name=name)


def assign_sub(ref: Any, value: object, use_locking: object = None, name: str | None = None) -> Any:
    return ref.assign_sub(value, name=name)


def scatter_add(ref: Any, indices: object, updates: object, use_locking: bool = False, name: str | None = None) -> Any:
    return ref.scatter_add(indices, updates, name)


def scatter_sub(ref: Any, indices: object, updates: object, use_locking: bool = False, name: str | None = None) -> Any:
    return ref.scatter_sub(indices, updates, name)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Any:
    return ref.count_up_to(limit)


def scatter_nd_update(
    ref: Any, indices: object, updates: object, use_locking: bool = True, name: str | None = None
) -> Any:
    return ref._scattered_at(indices, updates, name)


def scatter_update(
    ref: Any, indices: object, updates: object, use_locking: bool = False, name: str | None = None
) -> Any:
    return ref.scatter_update(indices, updates, name)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Those of which ``tf.train.ExponentialMovingAverage`` keeps averages."""
    return default_graph().get_collection(AVERAGED, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """Those in the collection of that name."""
    return default_graph().get_collection("model_variables", scope)
