"""The schema of a configuration: public classes by name, and the signatures of what they are made with.

A file names classes of the packages below and nothing else, so that no code of its own is ever run.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import hybridflow as hf
from hybridflow.callbacks import Callback
from hybridflow.cli.training.config import Config, suggestion
from hybridflow.cli.training.toml_lines import Path
from hybridflow.constraints import Constraint
from hybridflow.errors import HybridflowError
from hybridflow.initializers import Initializer
from hybridflow.layers.layer import Layer
from hybridflow.losses import Loss
from hybridflow.metrics import Metric
from hybridflow.optimizers import Optimizer
from hybridflow.optimizers.schedules import LearningRateSchedule
from hybridflow.regularizers import Regularizer

_FAMILIES: dict[str, tuple[Any, type]] = {
    "layers": (hf.layers, Layer),
    "optimizers": (hf.optimizers, Optimizer),
    "losses": (hf.losses, Loss),
    "metrics": (hf.metrics, Metric),
    "callbacks": (hf.callbacks, Callback),
    "initializers": (hf.initializers, Initializer),
    "regularizers": (hf.regularizers, Regularizer),
    "constraints": (hf.constraints, Constraint),
    "schedules": (hf.optimizers.schedules, LearningRateSchedule),
}
_WITHIN = ("layers", "initializers", "regularizers", "constraints", "schedules", "optimizers")  # arguments are of these
_OF_CODE = ("function", "functions", "fn", "schedule", "call")  # arguments that are functions: no file has one
_OF_FILES = ("filepath", "filename", "log_dir", "backup_dir")  # arguments of callbacks: in the folder of the run
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_JSON = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "list": "array", "dict": "object"}
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
}
_WORDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "list": "an array",
    "dict": "a table",
}


@functools.cache
def kinds(family: str) -> dict[str, type]:
    """The classes of a family that a file may name."""
    module, base = _FAMILIES[family]
    named = {name: getattr(module, name) for name in module.__all__ if name[:1].isupper()}
    return {
        name: kind
        for name, kind in named.items()
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base and not _needs_code(kind)
    }


def _needs_code(kind: type) -> bool:
    accepted = parameters(kind)
    is_open = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(kind).parameters.values())
    wanted = [name for name, one in accepted.items() if one.default is one.empty]
    return any(name in _OF_CODE for name in wanted) or (is_open and not accepted)


@functools.cache
def parameters(kind: Any) -> dict[str, inspect.Parameter]:
    """What a function or class takes by name: of a class also what it hands on to those that it derives from."""
    if not isinstance(kind, type):
        return _named(kind)
    result: dict[str, inspect.Parameter] = {}
    cell = getattr(kind, "_kind", None)  # of recurrent layers, which take the arguments of their cell
    if isinstance(cell, type):
        result |= parameters(cell)
    for owner in kind.__mro__:
        if owner is object or "__init__" not in vars(owner):
            continue
        named = _named(vars(owner)["__init__"])
        result |= {name: one for name, one in named.items() if name not in result}
        if not any(p.kind in _OPEN for p in inspect.signature(vars(owner)["__init__"]).parameters.values()):
            break
    if isinstance(cell, type):
        result.pop("cell", None)
    return result


def _named(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    signature_parameters = inspect.signature(function).parameters.values()
    return {
        p.name: p
        for p in signature_parameters
        if p.kind not in _OPEN and p.name != "self" and not p.name.startswith("_")
    }


def checked(
    config: Config, path: Path, value: object, taken: Mapping[str, inspect.Parameter], what: str
) -> dict[str, Any]:
    """A table as arguments of those names.  Raises ArgumentError for others, for wrong types, for what is missing."""
    if not isinstance(value, dict):
        raise config.error(path, f"{value!r:.60} is no table of arguments.")
    for name, part in value.items():
        if name not in taken:
            raise config.unknown((*path, name), name, taken)
        names = _types(taken[name])
        if names and not any(_is_of(part, one) for one in names):
            wanted = " or ".join(_WORDS[one] for one in names)
            raise config.error((*path, name), f"{part!r:.60} is wrong; it must be {wanted}.")
    missing = [name for name, one in taken.items() if one.default is one.empty and name not in value]
    if missing:
        raise config.error(path, f"{what} needs {', '.join(missing)}.")
    return dict(value)


def _types(parameter: inspect.Parameter) -> list[str]:
    """The types that an annotation names, if they are all such as TOML has."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    names = [re.sub(r"\[.*\]", "", part) for part in re.split(r"\s*\|\s*", re.sub(r"\[[^\]]*\]", "", text))]
    names = [name for name in names if name != "None"]
    return names if all(name in _JSON for name in names) else []


def _is_of(value: object, name: str) -> bool:
    return isinstance(value, _KINDS[name]) and (name == "bool" or not isinstance(value, bool))


def made(config: Config, path: Path, value: object, family: str) -> Any:
    """The object of ``"Flatten"`` or ``{Dense = {units = 64}}``."""
    if isinstance(value, str):
        name, place = value, path
        arguments: object = {}
    elif isinstance(value, dict) and len(value) == 1:
        name, arguments = next(iter(value.items()))
        place = (*path, name)
    else:
        raise config.error(path, f"{value!r:.60} is no object of hf.{family}; write {{Name = {{argument = 1}}}}.")
    by_name = kinds(family)
    kind = by_name.get(name) or next((k for n, k in by_name.items() if _flat(n) == _flat(name)), None)
    if kind is None:
        raise config.error(place, f"there is no {name} in hf.{family}; {suggestion(name, by_name)}")
    accepted = parameters(kind)
    values = checked(config, place, arguments, accepted, name)
    ready = {key: argument(config, (*place, key), part) for key, part in values.items()}
    return called(config, place, kind, ready)


def called(config: Config, place: Path, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What a function returns; what it raises of its arguments has the line of the one that the message names."""
    try:
        return function(**arguments)
    except (HybridflowError, TypeError, ValueError, ImportError) as error:
        text = text_of(error)
        named = [key for key in arguments if re.search(rf"\b{re.escape(key)}\b", text)]
        named += [key for key, value in arguments.items() if isinstance(value, str) and repr(value) in text]
        raise config.error((*place, *named[:1]), text) from None


def argument(config: Config, path: Path, value: object) -> Any:
    """An argument of a class: arrays are tuples, ``{HeNormal = {seed = 1}}`` is an object."""
    if isinstance(value, list):
        parts = [argument(config, (*path, k), part) for k, part in enumerate(value)]
        return parts if any(isinstance(part, (dict, Layer)) for part in parts) else tuple(parts)
    if isinstance(value, dict):
        name = next(iter(value), "")
        if len(value) == 1 and name[:1].isupper() and isinstance(value[name], dict):
            for family in _WITHIN:
                if name in kinds(family):
                    return made(config, path, value, family)
            known = [each for family in _WITHIN for each in kinds(family)]
            raise config.error((*path, name), f"there is no {name}; {suggestion(name, known)}")
        return {key: argument(config, (*path, key), part) for key, part in value.items()}
    return value


def named(config: Config, path: Path, value: object, family: str) -> Any:
    """A loss, metric or optimizer: an object, or a name that ``compile`` knows, such as "mse"."""
    if not isinstance(value, str):
        return made(config, path, value, family)
    if family == "metrics" and value.lower() in ("accuracy", "acc", "crossentropy", "ce"):
        return value  # which depend on what labels are
    module = _FAMILIES[family][0]
    try:
        module.get(value)
    except HybridflowError:
        known = kinds(family) if family == "optimizers" else {n for n in module.__all__ if n != "get"}
        raise config.error(path, f"there is no {value} in hf.{family}; {suggestion(value, known)}") from None
    return value


def in_folder(value: object, folder: str) -> Any:
    """A callback's description whose files lie in a folder."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    name, entry = next(iter(value.items()))
    if not isinstance(entry, dict):
        return value
    return {
        name: {k: os.path.join(folder, v) if k in _OF_FILES and isinstance(v, str) else v for k, v in entry.items()}
    }


def text_of(error: Exception) -> str:
    """What an error says, without its stage and its place."""
    text = " ".join(str(error).split())
    if isinstance(error, HybridflowError):
        text = re.sub(r"^\[[^\]]*\] ", "", text)
        text = re.sub(r"  ?\([^()\s]+:\d+\)$", "", text)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _flat(name: str) -> str:
    return name.replace("_", "").lower()


# JSON Schema


def schema(tables: Mapping[str, Mapping[str, inspect.Parameter]], data: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of the files, for editors: of the tables, of the kinds of data, and of all classes."""
    definitions = {
        family: {"oneOf": [{"enum": sorted(kinds(family))}, *(_object(n, k) for n, k in sorted(kinds(family).items()))]}
        for family in _FAMILIES
    }
    properties: dict[str, Any] = {"seed": {"type": "integer"}}
    for name, taken in tables.items():
        properties[name] = _table(taken)
    properties["data"] = {
        "oneOf": [
            _table(taken) | {"properties": {**_table(taken)["properties"], "kind": {"const": kind}}}
            for kind, taken in data.items()
        ]
    }
    model, training = properties["model"]["properties"], properties["training"]["properties"]
    layer = {"$ref": "#/$defs/layers"}
    model["layers"] = {"type": "array", "items": {"anyOf": [layer, {"type": "object", "required": ["inputs"]}]}}
    for name, family in (("optimizer", "optimizers"), ("loss", "losses")):
        training[name] = {"anyOf": [{"type": "string"}, {"$ref": f"#/$defs/{family}"}, {"type": ["array", "object"]}]}
    training["metrics"] = {"type": ["array", "object"]}
    training["callbacks"] = {"type": "array", "items": {"$ref": "#/$defs/callbacks"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hybridflow train",
        "type": "object",
        "properties": properties,
        "required": ["data", "model", "training"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _object(name: str, kind: type) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _table(parameters(kind))},
        "required": [name],
        "additionalProperties": False,
    }


def _table(taken: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _of_parameter(one) for name, one in taken.items()},
        "required": _required(taken.values()),
        "additionalProperties": False,
    }


def _required(wanted: Iterable[inspect.Parameter]) -> list[str]:
    return [one.name for one in wanted if one.default is one.empty]


def _of_parameter(one: inspect.Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    names = [_JSON[name] for name in _types(one)]
    if names:
        schema["type"] = names[0] if len(names) == 1 else names
    if isinstance(one.default, (bool, int, float, str)):
        schema["default"] = one.default
    return schema
