"""Models of inputs and outputs: a graph of layers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self

from hybridflow.array.shapes import expand_dims, squeeze
from hybridflow.core import pytree
from hybridflow.core.context import dialect
from hybridflow.core.string_tensor import is_string
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.layers.functional_graph import InputLayer
from hybridflow.layers.keras_tensor import Call, Symbol
from hybridflow.layers.layer import Layer, as_layer, describe
from hybridflow.layers.naming import settle
from hybridflow.models.model import Model
from hybridflow.sparse.formats import SparseBase


class Functional(Model):
    """Functional model.

    ``hf.Model(inputs, outputs)``: what layers make of ``hf.Input``, as a model.

    Inputs and outputs may be nested in lists and dicts; a dict of inputs is matched by names.

    Args:
        inputs: an ``hf.Input``, or a nest of them.
        outputs: what was made of them, or a nest.
        **options: ``name``, ``dtype`` and ``trainable``.

    >>> a, b = hf.Input((3,), name="a"), hf.Input((3,), name="b")
    >>> model = hf.Model([a, b], hf.layers.Subtract()([a, b]))
    >>> type(model) is hf.models.Functional
    True
    >>> model({"a": hf.ones((1, 3)), "b": hf.zeros((1, 3))})
    <Tensor f32[1,3] cpu>
    [[1. 1. 1.]]
    """

    def __init__(self, inputs: object, outputs: object, **options: object) -> None:
        super().__init__(**options)
        self.inputs, self._input_structure = self._symbols(inputs, "inputs")
        self.outputs, self._output_structure = self._symbols(outputs, "outputs")
        self._graph = self._ordered()
        self._plan, self._places = self._planned()
        layers: list[Any] = []
        for call in self._graph:
            if all(call.layer is not layer for layer in layers):
                layers.append(call.layer)
        settle(layers, self.name)
        self.layers = layers
        self.input_names = [symbol.name for symbol in self.inputs]
        self.output_names = _unique([symbol.name for symbol in self.outputs])
        self.built = True

    layers: list[Layer] = []
    _without_variables = Model._without_variables | {"_graph", "_places", "_plan"}

    def _cast(self, value: object) -> Any:
        return value if self._narrow is not None else super()._cast(value)  # each layer has a policy of its own

    @classmethod
    def _is_made_of_graphs(cls) -> bool:
        """Whether instances are made of inputs and outputs, which subclasses may choose for themselves."""
        return {"inputs", "outputs"} <= set(inspect.signature(cls.__init__).parameters)

    def _symbols(self, nested: object, what: str) -> tuple[list[Symbol], Any]:
        leaves, structure = pytree.flatten(nested)
        for leaf in leaves:
            if not isinstance(leaf, Symbol):
                raise ArgumentTypeError(self.name, f"{what} are made by hf.Input and layers; {leaf!r} is neither.")
        return leaves, structure

    def _ordered(self) -> list[Call]:
        """The calls that outputs need, each behind those that it needs."""
        order: list[Call] = []
        done: set[int] = set()
        starts = {id(symbol.call) for symbol in self.inputs}
        stack = [(symbol.call, False) for symbol in reversed(self.outputs)]
        stack += [(symbol.call, False) for symbol in reversed(self.inputs)]
        while stack:
            call, ready = stack.pop()
            if id(call) in done:
                continue
            if ready:
                done.add(id(call))
                order.append(call)
                continue
            if isinstance(call.layer, InputLayer) and id(call) not in starts:
                raise ArgumentError(
                    self.name, f"the outputs need {call.layer.name!r}, which is not among the inputs of the model."
                )
            stack.append((call, True))
            if id(call) not in starts:
                stack += [(symbol.call, False) for symbol in reversed(call.inputs())]
        return order

    def _output_names(self) -> list[str]:
        return self.output_names

    def _planned(self) -> tuple[tuple[Any, ...], tuple[tuple[int, ...], tuple[int, ...], int]]:
        """What ``call`` does, as tuples, which nobody changes: for each call of a layer the layer, where its arguments
        lie (None for those that are no symbols), these, how they are nested, and where its results lie; and where the
        inputs and outputs lie, and how many places there are."""
        places: dict[tuple[int, int], int] = {}

        def place(call: Call, index: int) -> int:
            return places.setdefault((id(call), index), len(places))

        inputs = tuple([place(symbol.call, symbol.index) for symbol in self.inputs])
        plan = []
        for call in self._graph:
            if all((id(call), index) in places for index in range(len(call.outputs))):
                continue  # an input, or a call in whose middle the model begins
            leaves, structure = pytree.flatten(call.arguments)
            are = [isinstance(leaf, Symbol) for leaf in leaves]
            inputs_places = tuple(
                [place(leaf.call, leaf.index) if is_one else None for leaf, is_one in zip(leaves, are)]
            )
            others = tuple([None if is_one else leaf for leaf, is_one in zip(leaves, are)])
            places_out = tuple([place(call, index) for index in range(len(call.outputs))])
            plan.append((call.layer, inputs_places, others, structure, places_out))
        outputs = tuple([place(symbol.call, symbol.index) for symbol in self.outputs])
        return tuple(plan), (inputs, outputs, len(places))

    def call(self, inputs: object, training: bool | None = None) -> Any:
        """The outputs of the graph of layers.

        Args:
            inputs: a tensor, or a list or dict of tensors as the model has inputs.
            training: whether the model is being trained.

        Returns:
            A tensor, or several in the structure of the model's outputs.

        Raises:
            ArgumentError: for inputs that are not like those of the model.
        """
        starts, ends, count = self._places
        values: list[Any] = [None] * count
        for place, value in zip(starts, self._matched(inputs)):
            values[place] = value
        for layer, inputs_of, others, structure, outputs_of in self._plan:
            leaves = [other if place is None else values[place] for place, other in zip(inputs_of, others)]
            args, kwargs = pytree.unflatten(structure, leaves)
            for place, value in zip(outputs_of, pytree.flatten(layer(*args, **kwargs))[0]):
                values[place] = value
        result = pytree.unflatten(self._output_structure, [values[place] for place in ends])
        is_alone = dialect.is_tensorflow and type(result) is list and len(result) == 1
        return result[0] if is_alone else result

    def _matched(self, inputs: Any) -> list[Any]:
        """The values of the inputs, in their order."""
        if isinstance(inputs, Tensor):
            values = [inputs]
        elif isinstance(inputs, Mapping):
            values = self._named(inputs)
        elif issubclass(self._input_structure.kind or object, (list, tuple)):
            values = self._in_order(inputs)
        else:
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(values) != len(self.inputs):
            raise ArgumentError(self.name, f"the model takes {len(self.inputs)} inputs, and was given {len(values)}.")
        return [fitting(value, symbol, self.name) for value, symbol in zip(values, self.inputs)]

    def _named(self, inputs: Mapping[Any, Any]) -> list[Any]:
        if self._input_structure.kind in pytree.MAPPINGS:
            return self._in_order(inputs)
        missing = [name for name in self.input_names if name not in inputs]
        if missing:
            there = ", ".join(self.input_names)
            raise ArgumentError(self.name, f"there is no input {missing[0]!r}; inputs are {there}.")
        return [inputs[name] for name in self.input_names]

    def _in_order(self, inputs: object) -> list[Any]:
        """The values of the inputs, of what is nested as they are, in the order of ``self.inputs``."""
        by_symbol = {id(symbol): value for symbol, value in self._nested(self.input, inputs, "inputs")}
        return [by_symbol[id(symbol)] for symbol in self.inputs]

    def _nested(self, wanted: Any, values: Any, path: str) -> list[tuple[Symbol, Any]]:
        """Nested symbols, each with its value in what is nested alike; dicts may hold more."""
        if isinstance(wanted, dict):
            missing = [key for key in wanted if not isinstance(values, Mapping) or key not in values]
            if missing:
                there = ", ".join(map(str, wanted))
                raise ArgumentError(self.name, f"there is no input {missing[0]!r} in {path}; it has {there}.")
            pairs = [(one, values[key], f"{path}[{key!r}]") for key, one in wanted.items()]
        elif isinstance(wanted, (list, tuple)):
            if not isinstance(values, (list, tuple)):
                values = [values]
            if len(values) != len(wanted):
                raise ArgumentError(
                    self.name, f"the model takes {len(wanted)} inputs, and was given {len(values)}, in {path}."
                )
            pairs = [(one, two, f"{path}[{n}]") for n, (one, two) in enumerate(zip(wanted, values))]
        else:
            return [(wanted, values)]
        return [pair for three in pairs for pair in self._nested(*three)]

    @property
    def input(self) -> Any:
        """The symbols of the inputs."""
        return pytree.unflatten(self._input_structure, self.inputs)

    @property
    def output(self) -> Any:
        """The symbols of the outputs."""
        return pytree.unflatten(self._output_structure, self.outputs)

    def get_config(self) -> dict[str, Any]:
        """The layers by their descriptions, and how they are connected.  Subclasses with arguments of their own have
        those instead, as layers have.

        Returns:
            A dict from names to values.
        """
        return self.graph_config() if self._is_made_of_graphs() else super().get_config()

    def graph_config(self) -> dict[str, Any]:
        """The layers by their descriptions, and how they are connected.

        Returns:
            A dict from names to values.
        """
        numbers = {id(call): number for number, call in enumerate(self._graph)}
        places = {id(layer): place for place, layer in enumerate(self.layers)}

        def plain(value: object) -> Any:
            if isinstance(value, Symbol):
                return {"symbol": [numbers[id(value.call)], value.index]}
            if isinstance(value, (list, tuple)):
                return {"tuple" if isinstance(value, tuple) else "list": [plain(part) for part in value]}
            return {"dict": {key: plain(part) for key, part in value.items()}} if isinstance(value, dict) else value

        calls = [{"layer": places[id(call.layer)], "arguments": plain(call.arguments)} for call in self._graph]
        return super().get_config() | {
            "layers": [describe(layer) for layer in self.layers],
            "calls": calls,
            "inputs": plain(self.input),
            "outputs": plain(self.output),
        }

    @classmethod
    def _from_config(cls, config: Mapping[str, Any]) -> Self:
        """A model with such layers, without their weights."""
        if "calls" not in config:
            return cls(**config)
        return cls.connect(config, [as_layer(entry) for entry in config["layers"]], cls)

    @staticmethod
    def connect(config: Mapping[str, Any], layers: Sequence[Any], kind: Any) -> Any:
        """A model of layers, connected as a configuration says.

        Args:
            config: what ``graph_config`` returned.
            layers: the layers, in its order.
            kind: the class of the model.

        Returns:
            A new model.
        """
        results: list[list[Symbol]] = []

        def revived(value: object) -> Any:
            if not isinstance(value, dict):
                return value
            kind, part = next(iter(value.items()))
            if kind == "symbol":
                return results[part[0]][part[1]]
            if kind == "dict":
                return {key: revived(one) for key, one in part.items()}
            parts = [revived(one) for one in part]
            return tuple(parts) if kind == "tuple" else parts

        for call in config["calls"]:
            layer = layers[call["layer"]]
            if isinstance(layer, InputLayer):
                results.append([layer.output])
            else:
                args, kwargs = revived(call["arguments"])
                results.append(pytree.flatten(layer(*args, **kwargs))[0])
        options = {key: value for key, value in config.items() if key in ("name", "trainable", "dtype")}
        return kind(revived(config["inputs"]), revived(config["outputs"]), **options)


Model._of_graph = Functional


def _unique(names: list[str]) -> list[str]:
    """The names, with numbers behind those that come again."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        count = seen[name] = seen.get(name, 0) + 1
        result.append(name if count == 1 else f"{name}_{count - 1}")
    return result


def _whole(value: object, symbol: Symbol, model: str) -> Tensor:
    if isinstance(value, SparseBase):
        return value.to_dense()
    return as_tensor(value, model, symbol.dtype if is_string(symbol.dtype) else None)


def fitting(value: object, symbol: Symbol, model: str) -> Any:
    """The value of an input as a tensor, with a last axis of extent 1 where it lacks that, or without one.

    A sparse tensor becomes a whole one.  Raises ArgumentError for another shape than that of the input.
    """
    value = _whole(value, symbol, model)
    if value.ndim == symbol.ndim - 1 and symbol.shape[-1] == 1:
        value = expand_dims(value, axis=-1)
    elif value.ndim == symbol.ndim + 1 and value.shape[-1] == 1:
        value = squeeze(value, axis=-1)
    fits = value.ndim == symbol.ndim and all(
        wanted is None or not isinstance(actual, int) or actual == wanted
        for actual, wanted in zip(value.shape, symbol.shape)
    )
    if not fits:
        one = "" if value.ndim != symbol.ndim - 1 else " One sample is no batch: see Dataset.batch, or x[None]."
        raise ArgumentError(model, f"the input {symbol.name!r} is {value.type}; its shape must be {symbol.shape}.{one}")
    return value
