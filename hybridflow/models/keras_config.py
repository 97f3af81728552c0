"""Models made of the configurations that Keras 1, 2 and 3 write, as JSON or within their files.

Nothing is run: a configuration names classes of layers and their arguments.  ``Lambda`` layers hold code, and are made
only of functions that the caller gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybridflow.array import elementwise, reductions, shapes
from hybridflow.core.serialization import custom_objects, kind_of, kinds_of, snake_case
from hybridflow.errors import ArgumentError
from hybridflow.layers.functional_graph import Input
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.layers.layer import Layer
from hybridflow.layers.recurrent import REMEMBERING, RNN
from hybridflow.models.functional import Functional
from hybridflow.models.model import Model
from hybridflow.models.sequential import Sequential

_STAGE = "keras configuration"
_MODELS = "Sequential", "Functional", "Model"
# Arguments of Keras's that say nothing here, whatever their value.
_SILENT = frozenset(
    {
        *("batch_input_shape", "batch_shape", "input_dtype", "implementation", "unroll", "time_major", "ragged"),
        *(
            "sparse",
            "optional",
            "quantization_config",
            "registered_name",
            "build_config",
            "seed_generator",
            "renorm_momentum",
        ),
        *(
            "synchronized",
            "fused",
            "flash_attention",
            "function_type",
            "output_shape_type",
            "zero_output_for_mask",
            "autocast",
            "input_shape",
        ),
    }
)
# Arguments that say nothing with these values.
_USUAL: dict[str, Any] = {"attention_axes": [1], "dim_ordering": "tf", "init": "glorot_uniform", "mode": 0}
# Names that Keras 1 had, and what they are called since.
_RENAMED = {
    "nb_filter": "filters",
    "subsample": "strides",
    "border_mode": "padding",
    "bias": "use_bias",
    "init": "kernel_initializer",
    "inner_init": "recurrent_initializer",
    "output_dim": "units",
    "p": "rate",
    "inner_activation": "recurrent_activation",
}
_OLD_CLASSES = {
    "Merge": "Concatenate",
    "CuDNNLSTM": "LSTM",
    "CuDNNGRU": "GRU",
    "SyncBatchNormalization": "BatchNormalization",
}
_MAX_DEPTH = 64


def is_keras(config: object) -> bool:
    """Whether a parsed JSON text is a model's configuration of Keras's."""
    return isinstance(config, Mapping) and config.get("class_name") in _MODELS and "config" in config


def model_of(config: Mapping[str, Any], objects: Mapping[str, Any] | None = None) -> Model:
    """The model that a configuration of Keras's describes, without its weights.

    ``objects`` are classes and functions of the user's by name.  Raises ArgumentError for layers, operations and
    arguments that there are not here.
    """
    with custom_objects(objects or {}):
        return _model(config, dict(objects or {}), 0)


def _model(description: Mapping[str, Any], objects: dict[str, Any], depth: int) -> Model:
    if depth > _MAX_DEPTH:
        raise ArgumentError(_STAGE, "models are nested too deep.")
    config: Any = description.get("config")
    if description.get("class_name") == "Sequential":
        if isinstance(config, list):  # as Keras 1 has it
            return _sequential(config, None, objects, depth)
        return _sequential(_of(config, "layers"), config.get("name"), objects, depth)
    return _functional(config, objects, depth)


def _of(config: object, key: str) -> Any:
    if not isinstance(config, Mapping) or key not in config:
        raise ArgumentError(_STAGE, f"a part of it lacks {key!r}.")
    return config[key]


def _sequential(layers: Sequence[Any], name: str | None, objects: dict[str, Any], depth: int) -> Model:
    parts: list[Any] = []
    for number, one in enumerate(layers):
        shape = _batch_shape(one)
        if shape is not None and not parts and number == 0:
            parts.append(_input(one, shape))
        if one.get("class_name") != "InputLayer":
            parts.append(_layer(one, objects, depth))
    return Sequential(parts, name=name)


def _batch_shape(description: Mapping[str, Any]) -> Any:
    config = _of(description, "config")
    if not isinstance(config, Mapping):
        return None
    return config.get("batch_shape") or config.get("batch_input_shape")


def _input(description: Mapping[str, Any], shape: Sequence[Any]) -> Symbol:
    config = description["config"]
    if not isinstance(shape, (list, tuple)) or not shape:
        raise ArgumentError(_STAGE, f"an input has the shape {shape!r}.")
    name = config.get("name") if description.get("class_name") == "InputLayer" else None
    return Input(tuple(shape[1:]), shape[0], _dtype(config.get("dtype")), name)


def _dtype(name: object) -> Any:
    """A dtype, or a policy, which Keras 3 writes as an object."""
    if isinstance(name, Mapping):
        inner = name.get("config")
        name = inner.get("name") if isinstance(inner, Mapping) else None
    return name


def _layer(description: Mapping[str, Any], objects: dict[str, Any], depth: int) -> Layer:
    """A layer, or a model within the model."""
    name = description.get("class_name")
    if name in _MODELS:
        return _model(description, objects, depth + 1)
    config = _of(description, "config")
    if not isinstance(config, Mapping):
        raise ArgumentError(_STAGE, f"the arguments of {name!r} are {config!r:.60}.")
    if name == "Lambda":
        return _lambda(config, objects)
    kind = kind_of(kinds_of(Layer), _OLD_CLASSES.get(str(name), name), _STAGE)
    return kind(**_arguments(kind, config, objects, depth))


def _lambda(config: Mapping[str, Any], objects: dict[str, Any]) -> Any:
    name = config.get("name")
    function = objects.get(str(name))
    if not callable(function):
        raise ArgumentError(
            _STAGE, f"{name!r} is a Lambda layer, whose code is not run: give custom_objects={{{name!r}: function}}."
        )
    return kinds_of(Layer)["Lambda"](function, name=name)  # type: ignore[call-arg]


def _arguments(kind: type, config: Mapping[str, Any], objects: dict[str, Any], depth: int) -> dict[str, Any]:
    """The arguments of a class as it takes them here."""
    accepted = _argument_names(kind)
    result: dict[str, Any] = {}
    for key, value in config.items():
        name = key if key in accepted else _RENAMED.get(key, key)
        if name == "dtype":
            result[name] = _dtype(value)
        elif name in accepted:
            result[name] = _argument(value, objects, depth)
        elif name not in _SILENT and value not in (None, False, 0, [], {}) and value != _USUAL.get(name):
            raise ArgumentError(_STAGE, f"{kind.__name__} takes no {key} here, which is {value!r:.60} in the file.")
    return result


def _argument_names(kind: type) -> set[str]:
    """The names of the arguments that a class takes, its base classes' included."""
    names: set[str] = set()
    for owner in kind.__mro__:
        if "__init__" in vars(owner):
            parameters = inspect.signature(owner.__init__).parameters.values()  # type: ignore[misc]
            names |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    if issubclass(kind, RNN) and kind is not RNN:  # takes the arguments of the cell that it makes
        names |= {*REMEMBERING, *_OF_CELLS}
    return names - {"self"}


_OF_CELLS = "strides", "padding", "data_format", "dilation_rate", "reset_after", "unroll"


def _argument(value: object, objects: dict[str, Any], depth: int) -> Any:
    if isinstance(value, list):
        parts = [_argument(part, objects, depth) for part in value]
        return parts if any(isinstance(part, (Layer, Mapping)) for part in parts) else tuple(parts)
    if not isinstance(value, Mapping):
        return value
    name = value.get("class_name")
    if name == "__tuple__":
        return tuple(_argument(part, objects, depth) for part in value.get("items", ()))
    if isinstance(name, str) and "config" in value:
        if name == "function":  # one by its name
            return objects.get(value["config"], value["config"])
        if name in kinds_of(Layer) or name in _MODELS or name in objects:
            return _layer(value, objects, depth + 1)
        arguments = {k: _argument(v, objects, depth) for k, v in dict(value["config"]).items() if v is not None}
        return {"class_name": name, "config": arguments}
    return {key: _argument(part, objects, depth) for key, part in value.items()}


# Graphs


def _functional(config: Mapping[str, Any], objects: dict[str, Any], depth: int) -> Model:
    layers = _of(config, "layers")
    nodes: dict[tuple[str, int], Any] = {}
    waiting: list[tuple[str, Any, int, Any]] = []
    for one in layers:
        name = one.get("name") or _of(one, "config").get("name")
        if one.get("class_name") == "InputLayer":
            nodes[name, 0] = _input(one, _batch_shape(one))
            continue
        call = _operation(one, objects, depth)
        calls = one.get("inbound_nodes", ())
        waiting += [(name, call, number, node) for number, node in enumerate(calls)]
    while waiting:  # layers may stand before those that they take from
        left = [one for one in waiting if not _connected(nodes, *one)]
        if len(left) == len(waiting):
            raise ArgumentError(_STAGE, f"the layer {left[0][0]!r} takes what no layer gives.")
        waiting = left
    inputs = _ends(_of(config, "input_layers"), nodes)
    outputs = _ends(_of(config, "output_layers"), nodes)
    return Functional(inputs, outputs, name=config.get("name"))


_MERGING = "Add", "Subtract", "Multiply", "Maximum", "Minimum", "Average", "Concatenate"


class _Missing(Exception):
    """A node that was not made yet."""


def _connected(
    nodes: dict[tuple[str, int], Any], name: str, call: Callable[..., object], number: int, node: object
) -> bool:
    """Make a call of a layer, if what it takes is there."""
    try:
        args, kwargs = _of_node(node, nodes)
    except _Missing:
        return False
    if type(call).__name__ in _MERGING and len(args) > 1:  # an operation that a file of Keras 2's form calls a layer
        args = [args]
    nodes[name, number] = call(*args, **kwargs)
    return True


def _of_node(node: Any, nodes: Mapping[tuple[str, int], Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call.  Keras 3 writes them as they are, earlier ones a list of [layer, node, tensor, rest]."""
    if isinstance(node, Mapping):
        args = [_tensors(part, nodes) for part in node.get("args", ())]
        return args, {k: _tensors(v, nodes) for k, v in node.get("kwargs", {}).items() if _says_something(k, v)}
    entries = node if node and isinstance(node[0], list) else [node]
    symbols = [_symbol(entry[:3], nodes) for entry in entries]
    rest = entries[0][3] if len(entries[0]) > 3 and isinstance(entries[0][3], Mapping) else {}
    kwargs = {}
    for key, value in rest.items():
        is_symbol = isinstance(value, list) and len(value) == 3 and (str(value[0]), value[1]) in nodes
        kwargs[key] = _symbol(value, nodes) if is_symbol else value
    return [symbols[0] if len(symbols) == 1 else symbols], {k: v for k, v in kwargs.items() if _says_something(k, v)}


def _says_something(key: str, value: object) -> bool:
    """Whether an argument of a call says something: masks and training modes that are None do not."""
    return not (value is None and key in ("mask", "training", "initial_state", "attention_mask"))


def _tensors(value: object, nodes: Mapping[tuple[str, int], Any]) -> Any:
    if isinstance(value, list):
        return [_tensors(part, nodes) for part in value]
    if not isinstance(value, Mapping):
        return value
    if value.get("class_name") == "__keras_tensor__":
        return _symbol(_of(_of(value, "config"), "keras_history"), nodes)
    if value.get("class_name") == "__tuple__":
        return tuple(_tensors(part, nodes) for part in value.get("items", ()))
    return {key: _tensors(part, nodes) for key, part in value.items()}


def _symbol(history: object, nodes: Mapping[tuple[str, int], Any]) -> Any:
    if not isinstance(history, (list, tuple)) or len(history) < 3:
        raise ArgumentError(_STAGE, f"{history!r:.60} is no result of a layer.")
    name, number, place = history[:3]
    if (name, number) not in nodes:
        raise _Missing
    result = nodes[name, number]
    return result[place] if isinstance(result, (list, tuple)) else result


def _ends(description: Any, nodes: Mapping[tuple[str, int], Any]) -> Any:
    """Inputs or outputs: one, a list, or a dict of [layer, node, tensor]."""
    try:
        if isinstance(description, Mapping):
            return {key: _ends(part, nodes) for key, part in description.items()}
        if description and isinstance(description[0], str):
            return _symbol(description, nodes)
        parts = [_symbol(part, nodes) for part in description]
    except _Missing:
        raise ArgumentError(_STAGE, f"{description!r:.80} are no layers of the graph.") from None
    return parts[0] if len(parts) == 1 else parts


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "true_divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "negative": lambda x: -x,
    "matmul": lambda x, y: x @ y,
    "get_item": lambda x, key: x[key],
    "exp": elementwise.exp,
    "log": elementwise.log,
    "sqrt": elementwise.sqrt,
    "tanh": elementwise.tanh,
    "abs": elementwise.abs,
    "absolute": elementwise.abs,
    "square": elementwise.square,
    "maximum": lambda x, y: kinds_of(Layer)["Maximum"]()([x, y]),
    "minimum": lambda x, y: kinds_of(Layer)["Minimum"]()([x, y]),
    "mean": reductions.mean,
    "sum": reductions.sum,
    "max": reductions.max,
    "min": reductions.min,
    "reshape": lambda x, newshape: shapes.reshape(x, newshape),
    "transpose": lambda x, axes=None: shapes.permute_dims(x, axes),
    "expand_dims": shapes.expand_dims,
    "squeeze": shapes.squeeze,
    "concatenate": lambda xs, axis=-1: kinds_of(Layer)["Concatenate"](axis=axis)(xs),  # type: ignore[call-arg]
}


def _operation(description: Mapping[str, Any], objects: dict[str, Any], depth: int) -> Layer | Callable[..., Any]:
    """What a node of the graph calls: a layer, or one of Keras's operations, of which graphs have nodes, too."""
    module = str(description.get("module", ""))
    if not module.startswith(("keras.src.ops", "keras.ops")):
        return _layer(description, objects, depth)
    name = snake_case(str(description.get("class_name")))
    function = _OPERATIONS.get(name)
    if function is None:
        raise ArgumentError(
            _STAGE, f"the graph has the operation {description.get('class_name')!r}, which is not read."
        )
    options = {
        k: _argument(v, objects, depth) for k, v in _of(description, "config").items() if k not in ("name", "dtype")
    }
    options = {k: v for k, v in options.items() if v is not None and v is not False}
    known = kinds_of(Layer)["Lambda"]
    return _applied(function, options, known)


def _applied(function: Callable[..., Any], options: dict[str, Any], layer: Any) -> Callable[..., Any]:
    """A function of symbols: of several, operators apply; of one, a Lambda layer."""

    def call(*args: object, **kwargs: object) -> Any:
        present = {k: v for k, v in kwargs.items() if v is not None}
        symbols = [one for one in args if isinstance(one, Symbol)]
        if len(symbols) != 1:
            return function(*args, **options, **present)
        return layer(lambda x: function(*[x if one is symbols[0] else one for one in args], **options, **present))(
            symbols[0]
        )

    return call
