"""What a model is, in Keras 3's words: the ``config.json`` of its ``.keras`` files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import constraints, initializers, regularizers
from hybridflow.core.serialization import Configured
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentTypeError
from hybridflow.layers.functional_graph import InputLayer, Operation
from hybridflow.layers.keras_tensor import Call, Symbol
from hybridflow.layers.layer import Layer
from hybridflow.losses import Loss
from hybridflow.metrics import Metric
from hybridflow.models.functional import Functional
from hybridflow.models.sequential import Sequential
from hybridflow.optimizers import Optimizer
from hybridflow.optimizers.schedules import LearningRateSchedule
from hybridflow.weights.keras_layout import in_keras_order

if TYPE_CHECKING:
    from hybridflow.models.model import Model


_STAGE = "save_model"
_ROOMS: dict[str, type] = {
    "layers": Layer,
    "losses": Loss,
    "metrics": Metric,
    "optimizers": Optimizer,
    "optimizers.schedules": LearningRateSchedule,
    "initializers": initializers.Initializer,
    "regularizers": regularizers.Regularizer,
    "constraints": constraints.Constraint,
}
# Python's operators, by the names that they have among Keras's operations.
_OPERATIONS = {
    "add": "Add",
    "sub": "Subtract",
    "mul": "Multiply",
    "truediv": "TrueDivide",
    "floordiv": "FloorDivide",
    "mod": "Mod",
    "pow": "Power",
    "matmul": "Matmul",
    "neg": "Negative",
    "abs": "Absolute",
    "lt": "Less",
    "le": "LessEqual",
    "gt": "Greater",
    "ge": "GreaterEqual",
    "getitem": "GetItem",
}
_UNKNOWN_THERE = {"Cropping1D": ("data_format",), "UpSampling1D": ("data_format",)}


def described(model: Model) -> dict[str, Any]:
    """The configuration of a model with its layers, as JSON has it.

    Raises ArgumentTypeError for what is neither plain nor has a configuration itself.
    """
    if isinstance(model, Functional) and model._is_made_of_graphs():
        return _object("keras.src.models.functional", "Functional", _graph(model))
    if type(model) is Sequential:
        result = _object("keras", "Sequential", _chain(model))
        if model._seen_shape is not None:
            result["build_config"] = {"input_shape": _plain(model._seen_shape)}
        return result
    result = _configured(model)
    result["build_config"] = {"input_shape": _plain(model._seen_shape)}
    return result


def compiled(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What ``compile`` was given, as Keras takes it."""
    known = ("optimizer", "loss", "loss_weights", "metrics", "weighted_metrics", "run_eagerly", "steps_per_execution")
    return {name: _plain(value) for name, value in arguments.items() if name in known}


def _object(module: str, name: str, config: dict[str, Any], registered: str | None = None) -> dict[str, Any]:
    return {"module": module, "class_name": name, "config": config, "registered_name": registered}


def _configured(value: Configured) -> dict[str, Any]:
    """A layer, or another object that is made of arguments."""
    kind = type(value)
    if isinstance(value, (Functional, Sequential)):
        return described(value)
    left_out = _UNKNOWN_THERE.get(kind.__name__, ())
    config = {name: _plain(part) for name, part in value.get_config().items() if name not in left_out}
    if isinstance(value, Layer):
        config["name"] = value.name
    if isinstance(value, InputLayer):
        config = {"name": value.name, "dtype": config["dtype"], "batch_shape": [value.batch_size, *value.shape]}
    if kind.__module__.partition(".")[0] != "hybridflow":
        return _object(kind.__module__, kind.__name__, config, f"Custom>{kind.__name__}")
    room = next(name for name, base in _ROOMS.items() if isinstance(value, base))
    return _object(f"keras.{room}", kind.__name__, config)


def _plain(value: object) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        if "class_name" in value and "config" in value:
            return _of_description(value)
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, slice):
        return {"class_name": "slice", "config": {n: _plain(getattr(value, n)) for n in ("start", "stop", "step")}}
    if isinstance(value, (Tensor, Variable, np.ndarray, np.generic)):
        array = np.asarray(value)
        config = {"value": array.tolist(), "dtype": array.dtype.name}
        return {"class_name": "__numpy__", "config": config} if array.ndim else array.item()
    if isinstance(value, Configured):
        return _configured(value)
    name = getattr(value, "__name__", None)
    if callable(value) and isinstance(name, str):
        return name
    raise ArgumentTypeError(_STAGE, f"{value!r:.80} is part of the configuration, and cannot be written into a file.")


def _of_description(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object that a configuration describes: with the module that it has in Keras."""
    name = value["class_name"]
    rooms = [room for room, base in _ROOMS.items() if name in _names(base)]
    config = {key: _plain(part) for key, part in dict(value["config"]).items()}
    if value.get("module") or not rooms:
        return _object(str(value.get("module", "builtins")), name, config, f"Custom>{name}")
    return _object(f"keras.{rooms[0]}", name, config)


def _names(base: type) -> set[str]:
    result, stack = set(), [base]
    while stack:
        kind = stack.pop()
        result.add(kind.__name__)
        stack += kind.__subclasses__()
    return result


def _chain(model: Sequential) -> dict[str, Any]:
    first = [model.inputs[0].call.layer] if model.inputs else []
    layers = [_configured(layer) for layer in (*first, *model.layers)]
    return {"name": model.name, "trainable": model.trainable, "dtype": str(model.dtype), "layers": layers}


def _graph(model: Functional) -> dict[str, Any]:
    calls: dict[int, list[Call]] = {}
    for call in model._graph:
        calls.setdefault(id(call.layer), []).append(call)
    places = {id(call): (call.layer.name, n) for of_one in calls.values() for n, call in enumerate(of_one)}

    def symbol(value: Symbol) -> list[Any]:
        return [*places[id(value.call)], value.index]

    def argument(value: object) -> Any:
        if isinstance(value, Symbol):
            config = {"shape": list(value.shape), "dtype": value.dtype.name, "keras_history": symbol(value)}
            return {"class_name": "__keras_tensor__", "config": config}
        if isinstance(value, (list, tuple)):
            return [argument(part) for part in value]
        if isinstance(value, dict):
            return {key: argument(part) for key, part in value.items()}
        return _plain(value)

    layers = []
    for _, layer in in_keras_order(model):
        nodes = []
        for call in calls[id(layer)]:
            if isinstance(layer, InputLayer):
                continue
            args, kwargs = call.arguments
            if isinstance(layer, Operation):
                args = _operands(layer, args)
            nodes.append({"args": [argument(part) for part in args], "kwargs": argument(kwargs)})
        description = _operation(layer) if isinstance(layer, Operation) else _configured(layer)
        layers.append({**description, "name": layer.name, "inbound_nodes": nodes})
    config = {"name": model.name, "trainable": model.trainable, "layers": layers}
    return config | {"input_layers": _nested(model.input, symbol), "output_layers": _nested(model.output, symbol)}


def _nested(value: Any, symbol: Any) -> Any:
    """Inputs or outputs: a list for each symbol, nested as they are."""
    if isinstance(value, Symbol):
        return symbol(value)
    if isinstance(value, dict):
        return {key: _nested(part, symbol) for key, part in value.items()}
    return [_nested(part, symbol) for part in value]


def _operands(layer: Operation, args: tuple[Any, ...]) -> list[Any]:
    """The operands of an operator, with one that is no symbol."""
    if layer.operation == "getitem":
        return [*args, layer.key]
    if len(args) > 1 or layer.other is None:
        return list(args)
    return [layer.other, *args] if layer.reflected else [*args, layer.other]


def _operation(layer: Operation) -> dict[str, Any]:
    return _object("keras.src.ops.numpy", _OPERATIONS[layer.operation], {"name": layer.name})
