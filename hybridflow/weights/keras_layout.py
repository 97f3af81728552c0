"""Where Keras's files keep the weights of a model: in the order of its layers and of their variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hybridflow.core.serialization import snake_case
from hybridflow.errors import CheckpointError
from hybridflow.module import Module
from hybridflow.weights import hdf5
from hybridflow.weights.arrays import STAGE, Entry
from hybridflow.weights.assigning import Assignment, direct_variables

# Parts that are layers in Keras and variables of the layer itself here.
_PROJECTIONS = {
    "query": "query_dense",
    "key": "key_dense",
    "value": "value_dense",
    "output": "output_dense",
}
_PROJECTED = "MultiHeadAttention", "GroupQueryAttention"
# What Keras keeps beside the weights of layers.
_BESIDE = "optimizer", "seed_generator", "_seed_generator", "seed_gen", "_metrics", "compile_metrics", "_loss_tracker"
_UNKEPT = "count"  # of a Normalization, whose variables are mean and variance here


class _Node(NamedTuple):
    """A group of a ``.weights.h5`` file: a layer, or a list of layers."""

    name: str  # of the layer
    variables: list[tuple[str, Entry]]
    children: dict[str, Any]


def tree(file: Any) -> _Node:
    """What a file of Keras 3 holds."""
    return _node(file, "")


def _node(group: Any, path: str) -> _Node:
    name, variables, children = "", [], {}
    for key in group:
        child = group[key]
        where = f"{path}/{key}" if path else key
        if key == "vars":
            name = hdf5.text(child.attrs.get("name", ""))
            variables = [(f"{where}/{number}", hdf5.entry(child[number])) for number in sorted(child, key=int)]
        elif hasattr(child, "keys"):
            children[key] = _node(child, where)
    return _Node(name, variables, children)


def names(node: _Node) -> Iterator[str]:
    """The paths of all weights of layers."""
    yield from (source for source, _ in node.variables)
    for key, child in node.children.items():
        if key not in _BESIDE:
            yield from names(child)


def of_tree(module: Any, node: _Node, path: str = "") -> Iterator[Assignment]:
    """What a node of a ``.weights.h5`` file has for a module."""
    own = direct_variables(module)
    if type(module).__name__ in _PROJECTED:
        yield from _projections(own, node, path)
        own = []
    for (name, variable), (source, entry) in zip(own, node.variables):
        yield Assignment(_joined(path, name), variable, (source,), entry.shape, entry.read)
    layers = getattr(module, "layers", None)
    if isinstance(layers, (list, tuple)) and "layers" in node.children:
        yield from _of_list(layers, node.children["layers"], _joined(path, "layers"))
        return
    for name, value in module._attributes():
        child = node.children.get(name)
        if child is None:
            continue
        if isinstance(value, Module):
            yield from of_tree(value, child, _joined(path, name))
        elif isinstance(value, (list, tuple)):
            yield from _of_list(value, child, _joined(path, name))


def _projections(own: Sequence[tuple[str, Any]], node: _Node, path: str) -> Iterator[Assignment]:
    for part, key in _PROJECTIONS.items():
        child = node.children.get(key)
        if child is not None:
            mine = [(name, variable) for name, variable in own if name.startswith(f"{part}_")]
            for (name, variable), (source, entry) in zip(mine, child.variables):
                yield Assignment(_joined(path, name), variable, (source,), entry.shape, entry.read)


def _of_list(layers: Sequence[Any], node: _Node, path: str) -> Iterator[Assignment]:
    """Layers by the names that they have, where the file knows all of them; else by their classes, counted."""
    places = {child.name: child for child in node.children.values() if child.name}
    named = [layer for layer in layers if isinstance(layer, Module) and layer.variables]
    by_name = len(places) == len(node.children) and all(layer.name in places for layer in named)
    counts: Counter[str] = Counter()
    for number, layer in enumerate(layers):
        if not isinstance(layer, Module):
            continue
        kind = snake_case(type(layer).__name__)
        key = f"{kind}_{counts[kind]}" if counts[kind] else kind
        counts[kind] += 1
        child = places.get(layer.name) if by_name else node.children.get(key)
        if child is not None:
            yield from of_tree(layer, child, f"{path}.{number}")


def of_legacy(model: Any, layers: Sequence[hdf5.LegacyLayer]) -> Iterator[Assignment]:
    """What a file of Keras 1 or 2 has for a model: layers by name, else one after another."""
    kept = [layer for layer in layers if layer.weights]
    mine = [(f"layers.{n}", layer) for n, layer in enumerate(model.layers) if getattr(layer, "variables", None)]
    by_name = {layer.name: layer for layer in kept}
    if not all(layer.name in by_name for _, layer in mine):
        if len(kept) != len(mine):
            raise CheckpointError(
                STAGE, f"the file has {len(kept)} layers with weights, and the model {len(mine)}; their names differ."
            )
        by_name = {layer.name: one for (_, layer), one in zip(mine, kept)}
    for path, layer in mine:
        one = by_name[layer.name]
        weights = [(f"{one.name}/{name}", name, entry) for name, entry in one.weights]
        yield from _of_layer(layer, weights, path)


def _of_layer(layer: Any, weights: Sequence[tuple[str, str, Entry]], path: str) -> Iterator[Assignment]:
    """Weights of a layer by the last part of their names, in their order; of a model by the names of its layers."""
    inner = [(n, one) for n, one in enumerate(getattr(layer, "layers", ())) if getattr(one, "variables", None)]
    if inner:
        parts = {one.name: [w for w in weights if one.name in w[1].split("/")[:-1]] for _, one in inner}
        if sum(map(len, parts.values())) == len(weights) and all(parts.values()):
            for number, one in inner:
                yield from _of_layer(one, parts[one.name], f"{path}.layers.{number}")
            return
    waiting: dict[str, list[tuple[str, Entry]]] = {}
    for source, name, entry in weights:
        base = name.rpartition("/")[2].partition(":")[0]
        waiting.setdefault(base, []).append((source, entry))
    for name, variable in layer._named_weights().items():
        leaf = name.rpartition(".")[2]
        fitting = [one for one in waiting if waiting[one] and (leaf == one or leaf.endswith(f"_{one}"))]
        if fitting:
            base = max(fitting, key=len)  # "recurrent_kernel" before "kernel"
            source, entry = waiting[base].pop(0)
            yield Assignment(_joined(path, name), variable, (source,), entry.shape, entry.read)


def legacy_names(layers: Sequence[hdf5.LegacyLayer]) -> Iterator[str]:
    """The names of all weights."""
    return (f"{layer.name}/{name}" for layer in layers for name, _ in layer.weights)


def without_counts(model: Any, unused: Sequence[str]) -> list[str]:
    """What is not used, but for the counts of Keras's Normalization layers."""
    if not any(type(module).__name__ == "Normalization" for module in model.submodules):
        return list(unused)
    return [name for name in unused if not name.endswith((f"/{_UNKEPT}", f"/{_UNKEPT}:0", "vars/2"))]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
