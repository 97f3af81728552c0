"""Layers of Keras called with tensors of a graph: an operation that runs the layer with the session's variables in the
place of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hybridflow.compat.v1.graph import Graph
from hybridflow.compat.v1.graph_stack import computing
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.compat.v1.recording import as_graph_tensor, is_symbolic
from hybridflow.compat.v1.variables import Variable
from hybridflow.core import pytree
from hybridflow.core.variable import Variable as Held
from hybridflow.layers.functional_graph import Input
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.layers.layer import Layer
from hybridflow.runtime import fork_safe_locks

_lock = fork_safe_locks.make()


def connect(layer: Any, args: object, kwargs: Any) -> Any:
    """What a layer makes of tensors of a graph.  Its weights become variables of the graph, once, which start from what
    they are.  Raises ValueError for a tensor of unknown rank, or of rank 0."""
    leaves, structure = pytree.flatten((args, kwargs))
    places = [k for k, leaf in enumerate(leaves) if is_symbolic(leaf)]
    inputs = [as_graph_tensor(leaves[k]) for k in places]
    graph = inputs[0].graph

    def called(values: Sequence[Any]) -> Any:
        filled = list(leaves)
        for place, value in zip(places, values):
            filled[place] = value
        args_filled, named = pytree.unflatten(structure, filled)
        return layer(*args_filled, **named)

    with computing():
        results, nested = pytree.flatten(called([_symbol(layer, t) for t in inputs]))
    weights = _weights(graph, layer)

    def compute(run: Any, values: Sequence[Any]) -> list[Any]:
        with computing(), _lent(layer, {id(variable): run.variable(held) for variable, held in weights}):
            return pytree.flatten(called(values[: len(inputs)]))[0]

    infos = [Info(tuple(output.shape), output.dtype) for output in results]
    reads = [held.value() for _, held in weights]
    op = graph.add(type(layer).__name__, layer.name, [*inputs, *reads], infos, compute)
    if kwargs.get("training") is not None and kwargs["training"] is not False:
        op.writes = [held for _, held in weights if not held.trainable]
    return pytree.unflatten(nested, op.outputs)


def _symbol(layer: Layer, tensor: Tensor) -> Symbol:
    if tensor.info.shape is None or not tensor.info.shape:
        raise ValueError(f"{layer.name} needs the rank of {tensor.name}, and an axis of examples: {tensor.shape}.")
    return Input(tensor.info.shape[1:], tensor.info.shape[0], dtype=tensor.info.dtype)


def _weights(graph: Graph, layer: Any) -> list[tuple[Held, Variable]]:
    """The weights of a layer, each with the variable of the graph that stands for it."""
    trained = {id(variable) for variable in layer.trainable_variables}  # but for those of layers in it that are frozen
    held_by_id: dict[int, tuple[Held, Variable]] = {}
    for holder, key in _places(layer):
        for variable in _variables_in(holder[key]):
            held = graph.of_layers.get(id(variable))
            if held is None:
                held = variable, Variable(variable.numpy(), id(variable) in trained, name=variable.path)
                graph.of_layers[id(variable)] = held
            held_by_id[id(variable)] = held
    return list(held_by_id.values())


def _places(layer: Any) -> Iterator[tuple[Any, Any]]:
    """The dicts and lists in which variables lie, or tuples of them, each with the key of these."""
    for _, module in layer._named_modules():
        yield from _places_in(vars(module))


def _places_in(holder: Any) -> Iterator[tuple[Any, Any]]:
    for key, part in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
        if not isinstance(holder, tuple) and next(_variables_in(part), None) is not None:
            yield holder, key
        if isinstance(part, (list, dict, tuple)):
            yield from _places_in(part)


def _variables_in(part: object) -> Iterator[Held]:
    """A variable, or those in a tuple, which has no places to put others into."""
    if isinstance(part, Held):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from _variables_in(one)


def _with(part: object, others: dict[int, Held]) -> Any:
    """The same with other variables."""
    if not isinstance(part, tuple):
        return others.get(id(part), part)
    parts = [_with(one, others) for one in part]
    return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)


@contextmanager
def _lent(layer: object, others: dict[int, Held]) -> Iterator[None]:
    """Let a layer have other variables in the block.

    They are put where its own lie, and not into a copy of it: models of symbols, bound methods and functions in it
    would still lead to the layer itself.  So it is one thread's at a time.
    """
    with _lock:
        places = [(holder, key, holder[key]) for holder, key in _places(layer)]
        try:
            for holder, key, original in places:
                holder[key] = _with(original, others)
            yield
        finally:
            for holder, key, original in places:
                holder[key] = original


Tensor.connect = staticmethod(connect)
