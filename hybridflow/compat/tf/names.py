"""The names of TensorFlow that are here, as a mapping of dotted name to what it stands for."""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any

from hybridflow.compat import export

TF = "hybridflow.compat.tf"
# Modules that are imported when they are asked for, and names of such.
_LATER = {
    "compat": {"v1": "hybridflow.compat.v1"},
    ".": {
        "compat": f"{TF}.compat",
        "Graph": "hybridflow.compat.v1:Graph",
        "Operation": "hybridflow.compat.v1:Operation",
    },
}


def rooms() -> dict[str, dict[str, Any]]:
    """The names of each room: ``"."`` is ``tf`` itself, ``"keras.layers"`` is ``tf.keras.layers``."""
    return export.ROOMS


def absent() -> dict[str, str]:
    """Dotted names that are not here, each with what to do instead."""
    return export.ABSENT


def inner_rooms(room: str) -> list[str]:
    """The rooms in a room, by their last names."""
    start = "" if room == "." else f"{room}."
    rooms_inside = {name[len(start) :].partition(".")[0] for name in rooms() if name != "." and name.startswith(start)}
    return sorted(rooms_inside - {""})


_standing: dict[str, Any] = {}  # by dotted name: what it was found to stand for


def function_of(name: str) -> Any:
    """What a dotted name stands for: ``function_of("nn.relu")``.  Raises AttributeError where there is none."""
    if name in _standing:
        return _standing[name]
    room, _, last = name.rpartition(".")
    entries = rooms().get(room or ".", {})
    if last not in entries:
        raise AttributeError(missing(room or ".", last))
    value = entries[last]
    if name.startswith(("keras.ops.", "keras.activations.")) and isinstance(value, types.FunctionType):
        value = importlib.import_module("hybridflow.compat.adapters.symbolic").of_name(name, value)
    value = export.wrapped(entries[last], _recorders[-1](name, value) if _recorders else value)
    return _standing.setdefault(name, value)


_recorders: list[Callable[[str, Any], Any]] = []  # at most one


def let_record(recording: Callable[[str, Any], Any]) -> None:
    """Let names stand for what ``recording`` makes of a dotted name and a function: graphs of TensorFlow 1 are built
    with the functions of TensorFlow 2."""
    _recorders[:] = [recording]
    _standing.clear()
    fill()


def _stand_anew(value: object) -> None:
    """Put what the names of an entered value stand for now where they were put before."""
    for room, entries in rooms().items():
        for last in [last for last, entry in entries.items() if entry is value]:
            name = last if room == "." else f"{room}.{last}"
            if _standing.pop(name, None) is not None:
                setattr(_module_of(room), last, function_of(name))


export.on_wrap(_stand_anew)


def missing(room: str, name: str) -> str:
    """What to say of a name that is not here, with the nearest that is."""
    dotted = name if room == "." else f"{room}.{name}"
    owner = "tf" if room == "." else f"tf.{room}"
    start = f"there is no tf.{dotted} here"
    for known in (dotted, dotted.split(".", 1)[0]):
        if known in absent():
            return f"{start}: {absent()[known]}."
    elsewhere = sorted((len(other), other) for other, entries in rooms().items() if name in entries)
    if elsewhere:
        return f"{start}; write tf.{'' if elsewhere[0][1] == '.' else elsewhere[0][1] + '.'}{name}."
    close = difflib.get_close_matches(name, [*rooms().get(room, ()), *inner_rooms(room)], 1, 0.7)
    return f"{start}; did you mean {owner}.{close[0]}?" if close else f"{start}, nor a name like it in {owner}."


def _module_of(namespace: str) -> types.ModuleType:
    """The module of a room, which is made where there is no file of it."""
    name = TF if namespace == "." else f"{TF}.{namespace}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    module = types.ModuleType(name, f"TensorFlow's ``tf.{namespace}``.")
    module.__path__ = []
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    sys.modules[name] = module
    outer, _, last = name.rpartition(".")
    setattr(_module_of(outer.removeprefix(TF).lstrip(".") or "."), last, module)
    return module


def fill() -> None:
    """Put into each room what its names stand for, and answers for those that are missing.

    At once and not when they are used, since that may be in a function while it is traced.
    """
    for namespace, other in export.SAME.items():
        rooms()[namespace] = rooms()[other]
    for namespace in sorted({*rooms(), *(outer for room in rooms() for outer in _outer_rooms(room))}):
        module = _module_of(namespace)
        values = {
            name: function_of(name if namespace == "." else f"{namespace}.{name}")
            for name in rooms().get(namespace, ())
        }
        module.__dict__.update(values)
        module.__all__ = sorted({*values, *inner_rooms(namespace)})  # type: ignore[attr-defined]
        module.__dir__ = functools.partial(list, module.__all__)  # type: ignore[method-assign]
        module.__getattr__ = functools.partial(_get, namespace)  # type: ignore[method-assign]


def _outer_rooms(room: str) -> list[str]:
    parts = room.split(".")
    return [".".join(parts[:k]) for k in range(1, len(parts))] if room != "." else []


def _get(namespace: str, name: str) -> Any:
    if name in _LATER.get(namespace, ()):
        path, _, attribute = _LATER[namespace][name].partition(":")
        module = importlib.import_module(path)
        return getattr(module, attribute) if attribute else module
    raise AttributeError(name if name.startswith("__") else missing(namespace, name))
