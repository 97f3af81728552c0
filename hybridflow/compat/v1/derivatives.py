"""``tf.gradients``: derivatives as operations of the graph, computed by a tape that watches while a session runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.array.creation import zeros_like
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.evaluation import Run, as_value
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import Graph
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.compat.v1.recording import as_graph_tensor
from hybridflow.compat.v1.variables import Variable
from hybridflow.compiler.ir.dtypes import is_inexact

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


_CUTS = frozenset(
    ("StopGradient", "Shape", "Size", "Rank", "ArgMax", "ArgMin", "ZerosLike", "OnesLike", "Floor", "Round", "Sign")
)


class Request(NamedTuple):
    """What a derivative is taken of: its targets, sources (variables or tensors), and what counts as constant."""

    targets: list[Tensor]
    sources: list[Any]
    constants: list[Tensor]


def gradients(
    ys: object,
    xs: TensorLike,
    grad_ys: object = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: object = False,
    aggregation_method: object = None,
    stop_gradients: object = None,
    unconnected_gradients: str = "none",
) -> list[Any]:
    """The derivatives of the sum of ``ys`` with respect to each of ``xs``; None where they do not depend on it.

    ``grad_ys`` are weights of the ys; what depends on ``stop_gradients`` is taken as it is.
    """
    targets = [as_graph_tensor(y) for y in _listed(ys)]
    sources = [_plain(x) for x in _listed(xs)]
    constants = [as_graph_tensor(x) for x in _listed(stop_gradients)]
    graph = targets[0].graph
    weights = _listed(grad_ys)
    reached = _reached(targets, set(constants))
    connected = [k for k, x in enumerate(sources) if _tensor_of(x) in reached]
    result: list[Any] = [None] * len(sources)
    with graph.name_scope(name):
        if connected:
            computed = _recorded(graph, Request(targets, [sources[k] for k in connected], constants), weights)
            for k, gradient in zip(connected, computed):
                result[k] = gradient
        if str(unconnected_gradients).lower().endswith("zero"):
            result = [tf["zeros_like"](_tensor_of(x)) if g is None else g for x, g in zip(sources, result)]
    return result


def _recorded(graph: Graph, request: Request, weights: Sequence[Any]) -> list[Tensor]:
    count, places = len(request.targets), [k for k, w in enumerate(weights) if w is not None]
    weights_given = [convert_to_tensor(weights[k], request.targets[k].dtype, "grad_ys") for k in places]
    tensors = [x for x in request.sources if isinstance(x, Tensor)]

    def compute(run: Run, values: Sequence[Any]) -> list[Any]:
        targets = [as_value(value) for value in values[:count]]
        rest = iter(values[count + len(weights_given) :])
        sources = [next(rest) if isinstance(x, Tensor) else run.held(x) for x in request.sources]
        weights: Any = None
        if places:
            weights = [None] * count
            for k, value in zip(places, values[count : count + len(weights_given)]):
                weights[k] = value
            weights = [zeros_like(t) + 1 if w is None else w for t, w in zip(targets, weights)]
        result: list[Any] = run.gradient(targets, sources, weights)
        return result

    infos = [Info(_tensor_of(x).info.shape, _tensor_of(x).dtype) for x in request.sources]
    inputs = [*request.targets, *weights_given, *tensors]
    with graph.control_dependencies(None):
        op = graph.add("SymbolicGradient", "grad", inputs, infos, compute)
    op.source = request
    op.reads = [x for x in request.sources if isinstance(x, Variable)]
    return op.outputs


def _listed(value: object) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _plain(x: TensorLike) -> Any:
    """A source: the variable of a tensor that stands for one, or the tensor."""
    if isinstance(x, Variable):
        return x
    tensor = as_graph_tensor(x)
    return tensor.op.source if tensor.op.is_reference else tensor


def _tensor_of(x: TensorLike) -> Tensor:
    return x.value() if isinstance(x, Variable) else as_graph_tensor(x)


def _reached(targets: Sequence[Tensor], constants: set[Tensor]) -> set[Tensor]:
    """The tensors through which targets depend on something differentiably."""
    result: set[Tensor] = set()
    waiting = list(targets)
    while waiting:
        tensor = waiting.pop()
        if tensor in result or (tensor.dtype is not None and not is_inexact(np.dtype(tensor.dtype))):
            continue
        result.add(tensor)
        if tensor in constants or tensor.op.type in _CUTS:
            continue
        waiting += tensor.op.inputs
        if tensor.op.is_reference:
            result.add(tensor.op.source.value())
        for body in getattr(tensor.op, "bodies", ()):
            waiting += body.results
    return result


def hessians(
    ys: object,
    xs: TensorLike,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: object = None,
) -> list[Tensor]:
    """The second derivatives of ``ys``, of the shape of each x twice."""
    result = []
    for x in _listed(xs):
        (gradient,) = gradients(ys, x, name=name)
        tensor = _tensor_of(x)
        extents = tensor.shape.as_list()
        count = tensor.shape.num_elements()
        if count is None:
            raise ValueError(f"tf.hessians needs the shape of {tensor.name}, which is {tensor.shape}.")
        flat = tf["reshape"](gradient, [-1])
        rows = [gradients(flat[k], x, name=name)[0] for k in range(count)]
        rows = [tf["zeros_like"](tensor) if row is None else row for row in rows]
        result.append(tf["reshape"](tf["stack"](rows), [*extents, *extents]))
    return result


__all__ = ["gradients", "hessians"]
