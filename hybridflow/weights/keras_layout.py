"""Where Keras's files keep the weights of a model: in the order of its layers and of their variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.core.serialization import snake_case
from hybridflow.errors import CheckpointError
from hybridflow.module import Module
from hybridflow.weights import hdf5
from hybridflow.weights.arrays import STAGE, Entry
from hybridflow.weights.assigning import Assignment, direct_variables

if TYPE_CHECKING:
    from hybridflow.layers.layer import Layer


# Parts that are layers in Keras and variables of the layer itself here.
PROJECTIONS = {
    "query": "query_dense",
    "key": "key_dense",
    "value": "value_dense",
    "output": "output_dense",
}
PROJECTED = "MultiHeadAttention", "GroupQueryAttention"
# What Keras keeps beside the weights of layers.
_BESIDE = "optimizer", "seed_generator", "_seed_generator", "seed_gen", "_metrics", "compile_metrics", "_loss_tracker"
_CONTAINERS = list, tuple, dict
# Names that say which weight of a layer it is: one alone is not given to another one, as "Variable" may be.
_SAYING = "kernel", "recurrent_kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance", "embeddings"
_UNKEPT = "count"  # of a Normalization, whose variables are mean and variance here


class _Node(NamedTuple):
    """A group of a ``.weights.h5`` file: a layer, or a list of layers."""

    name: str  # of the layer
    variables: list[tuple[str, Entry]]
    children: dict[str, Any]


def tree(file: object) -> _Node:
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
    variables = direct_variables(module)
    if type(module).__name__ in PROJECTED:
        yield from _projections(variables, node, path)
        variables = []
    for (name, variable), (source, entry) in zip(variables, node.variables):
        yield Assignment(_joined(path, name), variable, (source,), entry.shape, entry.read)
    for name, value in parts(module):
        child = node.children.get(name)
        if child is None:
            continue
        if isinstance(value, Module):
            yield from of_tree(value, child, _joined(path, name))
        else:
            yield from _of_list(value, child, _joined(path, name))


def parts(module: Module) -> Iterator[tuple[str, Any]]:
    """What a module holds by the names of its attributes, in the order in which Keras visits them: modules, and what is
    in lists, tuples and dicts, each with its place or key.

    The layers of a chain or a graph come first, those of another model where "layers" stands in the alphabet; private
    attributes come last.
    """
    attributes = dict(module._attributes())
    is_model = getattr(module, "_is_model", False)
    is_first = is_model and "layers" in attributes
    if is_model:
        attributes["layers"] = dict(in_keras_order(module))
    for name in sorted(attributes, key=lambda n: (not (is_first and n == "layers"), n.startswith("_"), n)):
        value = attributes[name]
        if isinstance(value, Module):
            yield name, value
        elif isinstance(value, _CONTAINERS):
            yield name, placed(value)


def placed(container: Any) -> list[tuple[Any, Any]]:
    """What is in a list, tuple or dict, each with its place or key."""
    return list(container.items() if isinstance(container, dict) else enumerate(container))


def _projections(variables: Sequence[tuple[str, Any]], node: _Node, path: str) -> Iterator[Assignment]:
    for part, key in PROJECTIONS.items():
        child = node.children.get(key)
        if child is not None:
            mine = [(name, variable) for name, variable in variables if name.startswith(f"{part}_")]
            for (name, variable), (source, entry) in zip(mine, child.variables):
                yield Assignment(_joined(path, name), variable, (source,), entry.shape, entry.read)


def _of_list(layers: Sequence[tuple[Any, Any]], node: _Node, path: str) -> Iterator[Assignment]:
    """Layers, each with its place, by the names that they have, where the file knows all of them; else by their
    classes, counted."""
    places = {child.name: child for child in node.children.values() if child.name}
    named = [layer for _, layer in layers if isinstance(layer, Module) and layer.variables]
    by_name = len(places) == len(node.children) and all(layer.name in places for layer in named)
    for number, key, layer in counted(layers):
        child = places.get(layer.name) if by_name else node.children.get(key)
        if child is not None and isinstance(layer, Module):
            yield from of_tree(layer, child, f"{path}.{number}")
        elif child is not None:
            yield from _of_list(placed(layer), child, f"{path}.{number}")


def counted(layers: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, str, Any]]:
    """The modules and containers among layers with their places, and what Keras calls each in a file: its class, or
    "container", with a number behind it if there were others before."""
    counts: Counter[str] = Counter()
    for number, layer in layers:
        if isinstance(layer, (Module, *_CONTAINERS)):
            kind = snake_case(type(layer).__name__) if isinstance(layer, Module) else "container"
            yield number, f"{kind}_{counts[kind]}" if counts[kind] else kind, layer
            counts[kind] += 1


def of_legacy(model: object, layers: Sequence[hdf5.LegacyLayer]) -> Iterator[Assignment]:
    """What a file of Keras 1 or 2 has for a model: layers by name, else one after another."""
    kept = [layer for layer in layers if layer.weights]
    mine = [(f"layers.{n}", layer) for n, layer in in_keras_order(model) if getattr(layer, "variables", None)]
    by_name = {_usual_name(layer.name): layer for layer in kept}
    names = [_usual_name(layer.name) for _, layer in mine]
    pairs = zip(mine, kept)
    if len(by_name) == len(kept) and len(set(names)) == len(names) and by_name.keys() >= set(names):
        pairs = zip(mine, [by_name[name] for name in names])
    elif len(kept) != len(mine):
        raise CheckpointError(
            STAGE, f"the file has {len(kept)} layers with weights, and the model {len(mine)}; their names differ."
        )
    for (path, layer), one in pairs:
        weights = [(f"{one.name}/{name}", name, entry) for name, entry in one.weights]
        yield from _of_layer(layer, weights, path)


def _usual_name(name: str) -> str:
    """A layer's name as Keras 3 would have it: its published files have some of earlier versions, "Conv/BatchNorm"."""
    return name.lower().replace("/batchnorm", "_bn").replace("/", "_")


def in_keras_order(model: Any) -> list[tuple[int, Any]]:
    """The layers of a model with their places in ``layers``, in the order that Keras has them in.

    That of a graph goes by the longest way to an output, and by the order of a search from the outputs.
    """
    layers = list(model.layers)
    if not getattr(model, "outputs", None) or not hasattr(model, "_graph"):
        return list(enumerate(layers))
    within = {id(call) for call in model._graph}
    met: dict[int, int] = {}
    stack, done = [symbol.call for symbol in reversed(model.outputs)], set()
    while stack:
        call = stack.pop()
        if id(call) in within and id(call) not in done:
            done.add(id(call))
            met.setdefault(id(call.layer), len(met))
            stack += [symbol.call for symbol in reversed(call.inputs())]
    of_calls: dict[int, int] = {}
    of_layers: dict[int, int] = {}
    for call in reversed(model._graph):
        depth = max(of_calls.get(id(call), 0), of_layers.get(id(call.layer), 0))
        of_layers[id(call.layer)] = depth
        for symbol in call.inputs():
            of_calls[id(symbol.call)] = max(depth + 1, of_calls.get(id(symbol.call), 0))
    places = range(len(layers))
    return [(n, layers[n]) for n in sorted(places, key=lambda n: _rank(layers[n], of_layers, met))]


def _rank(layer: Layer, depths: dict[int, int], met: dict[int, int]) -> tuple[int, int]:
    return -depths.get(id(layer), 0), met.get(id(layer), -1)


def _of_layer(layer: Layer, weights: Sequence[tuple[str, str, Entry]], path: str) -> Iterator[Assignment]:
    """Weights of a layer by the last part of their names, in their order; of a model by the names of its layers."""
    inner = [(n, one) for n, one in enumerate(getattr(layer, "layers", ())) if getattr(one, "variables", None)]
    if inner:
        parts = {one.name: [w for w in weights if one.name in w[1].split("/")[:-1]] for _, one in inner}
        if sum(map(len, parts.values())) == len(weights) and all(parts.values()):
            for number, one in inner:
                yield from _of_layer(one, parts[one.name], f"{path}.layers.{number}")
            return
    variables = layer._named_weights()
    if len(variables) == len(weights) == 1 and _last_part(weights[0][1]) not in _SAYING:
        ((name, variable),), ((source, _, entry),) = variables.items(), weights
        yield Assignment(_joined(path, name), variable, (source,), entry.shape, entry.read)
        return
    waiting: dict[str, list[tuple[str, Entry]]] = {}
    for source, name, entry in weights:
        waiting.setdefault(_last_part(name), []).append((source, entry))
    for name, variable in variables.items():
        leaf = name.rpartition(".")[2]
        fitting = [one for one in waiting if waiting[one] and (leaf == one or leaf.endswith(f"_{one}"))]
        if fitting:
            base = max(fitting, key=len)  # "recurrent_kernel" before "kernel"
            source, entry = waiting[base].pop(0)
            yield Assignment(_joined(path, name), variable, (source,), entry.shape, entry.read)


def _last_part(name: str) -> str:
    """What a file of Keras 1 or 2 calls a weight within its layer: "kernel" of "dense/kernel:0"."""
    return name.rpartition("/")[2].partition(":")[0]


def legacy_names(layers: Sequence[hdf5.LegacyLayer]) -> Iterator[str]:
    """The names of all weights."""
    return (f"{layer.name}/{name}" for layer in layers for name, _ in layer.weights)


def without_counts(model: Layer, unused: Sequence[str]) -> list[str]:
    """What is not used, but for the counts of Keras's Normalization layers."""
    if not any(type(module).__name__ == "Normalization" for module in model.submodules):
        return list(unused)
    return [name for name in unused if not name.endswith((f"/{_UNKEPT}", f"/{_UNKEPT}:0", "vars/2"))]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
