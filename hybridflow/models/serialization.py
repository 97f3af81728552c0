"""Configurations as JSON, and back: of layers and models, losses, metrics and optimizers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridflow import constraints, initializers, regularizers
from hybridflow.array.creation import asarray
from hybridflow.core.promotion import to_dtype
from hybridflow.core.serialization import Configured, custom_objects, described_of, description
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from hybridflow.layers.layer import Layer
from hybridflow.losses import Loss
from hybridflow.metrics import Metric
from hybridflow.optimizers import Optimizer
from hybridflow.optimizers.schedules import LearningRateSchedule

_PLAIN = bool, int, float, str, type(None)
_ROOMS: dict[str, type[Configured]] = {
    "layer": Layer,
    "loss": Loss,
    "metric": Metric,
    "optimizer": Optimizer,
    "schedule": LearningRateSchedule,
    "initializer": initializers.Initializer,
    "regularizer": regularizers.Regularizer,
    "constraint": constraints.Constraint,
}


def to_text(value: Any, stage: str, **options: Any) -> str:
    """A value of a configuration as JSON.  Raises ArgumentTypeError for what is neither plain nor has one itself.

    Functions are kept by name: ``from_text`` has to be given them.
    """
    return json.dumps(_plain(value, stage), **options)


def from_text(text: str, stage: str, objects: Mapping[str, Any] | None = None) -> Any:
    """The value that ``to_text`` wrote.  ``objects`` are functions and classes by name.

    Nothing in the text is run: it names classes that there are.  Raises ArgumentError for a text that is damaged, and
    for names that are not known.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(stage, f"the configuration is no JSON: {error}.") from None
    with custom_objects(objects or {}):
        try:
            return _created(value, stage, objects or {})
        except RecursionError:
            raise ArgumentError(stage, "the configuration is nested too deep.") from None


def _plain(value: object, stage: str) -> Any:
    if isinstance(value, (bool, str, type(None))):
        return value
    if isinstance(value, (int, float)) and type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        return [_plain(part, stage) for part in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _plain(part, stage) for key, part in value.items()}
        return {"$dict": [[_plain(key, stage), _plain(part, stage)] for key, part in value.items()]}
    return _tagged(value, stage)


def _tagged(value: object, stage: str) -> Any:
    if isinstance(value, tuple):
        return {"$tuple": [_plain(part, stage) for part in value]}
    if isinstance(value, slice):
        return {"$slice": [_plain(part, stage) for part in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"$ellipsis": True}
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, (Tensor, Variable, np.ndarray, np.generic)):
        array = np.asarray(value)
        if not array.dtype.hasobject:
            return {"$array": array.tolist(), "dtype": array.dtype.name, "tensor": isinstance(value, Tensor)}
    for room, kind in _ROOMS.items():
        if isinstance(value, kind):
            return {"$object": room, **_plain(description(value), stage)}
    name = getattr(value, "__name__", None)
    if callable(value) and isinstance(name, str):
        return {"$function": name}
    raise ArgumentTypeError(stage, f"{value!r:.80} is part of the configuration, and cannot be written into a file.")


def _created(value: object, stage: str, objects: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_created(part, stage, objects) for part in value]
    if not isinstance(value, dict):
        return value
    tag = next((key for key in value if key.startswith("$")), None)
    if tag is None:
        return {key: _created(part, stage, objects) for key, part in value.items()}
    part = value[tag] if tag in ("$object", "$function", "$array") else _created(value[tag], stage, objects)
    config = _created(value.get("config"), stage, objects) if tag == "$object" else None
    try:
        if tag == "$tuple":
            return tuple(part)
        if tag == "$dict":
            return dict(part)
        if tag == "$slice":
            return slice(*part)
        if tag == "$ellipsis":
            return ...
        if tag == "$array":
            array = np.array(part, to_dtype(value["dtype"], stage))  # of NumPy's own "U999999999" is a dtype, too
            return asarray(array) if value["tensor"] else array
        if tag == "$object":
            location = {key: value[key] for key in ("class_name", "module") if key in value}
            return described_of(_ROOMS[part], location | {"config": config}, stage)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise ArgumentError(stage, f"the configuration is damaged: {tag} is {value!r:.80} ({error}).") from None
    if tag == "$function":
        if part in objects:
            return objects[part]
        raise ArgumentError(stage, f"the function {part!r} is not kept: give custom_objects={{{part!r}: ...}}.")
    raise ArgumentError(stage, f"the configuration has a {tag!r}, which this version does not know.")
