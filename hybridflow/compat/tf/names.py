"""The names of TensorFlow that are here, as a mapping of dotted name to what it stands for."""

from __future__ import annotations

import difflib
import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

from hybridflow.compat import tables
from hybridflow.compat.entries import Entry, parse, target_of

TF = "hybridflow.compat.tf"
_LATER = {"compat": {"v1": "hybridflow.compat.v1"}, ".": {"compat": f"{TF}.compat"}}


@functools.cache
def rooms() -> dict[str, dict[str, Entry]]:
    """The entries of each room: ``"."`` is ``tf`` itself, ``"keras.layers"`` is ``tf.keras.layers``."""
    result: dict[str, dict[str, Entry]] = {}
    current: list[str] = []
    for line in filter(None, map(str.strip, tables.TABLES.splitlines())):
        if line.startswith("["):
            current = line.strip("[]").split()
            for room in current:
                result.setdefault(room, {})
        elif line.startswith("*: "):
            for room in current:
                result[room] = {**_all_of(line[3:]), **result[room]}
        else:
            names, entry = parse(line)
            for room in current:
                result[room].update(dict.fromkeys(names, entry))
    return result


def _all_of(path: str) -> dict[str, Entry]:
    """An entry for each public name of a module, but for modules in it."""
    module = target_of(path)
    listed = [name for name in module.__all__ if not isinstance(getattr(module, name), types.ModuleType)]
    return {name: Entry(f"{path}.{name}", None) for name in listed}


@functools.cache
def absent() -> dict[str, str]:
    """Dotted names that are not here, each with what to do instead."""
    result = {}
    for line in tables.ABSENT.strip().splitlines():
        place, answer = line.split(": ", 1)
        room, name = place.split()
        result[name if room == "." else f"{room}.{name}"] = answer
    return result


def inner_rooms(room: str) -> list[str]:
    """The rooms in a room, by their last names."""
    start = "" if room == "." else f"{room}."
    rooms_inside = {name[len(start) :].partition(".")[0] for name in rooms() if name != "." and name.startswith(start)}
    return sorted(rooms_inside - {""})


@functools.cache
def function_of(name: str) -> Any:
    """What a dotted name stands for: ``function_of("nn.relu")``.  Raises AttributeError where there is none."""
    room, _, last = name.rpartition(".")
    entry = rooms().get(room or ".", {}).get(last)
    if entry is None:
        raise AttributeError(missing(room or ".", last))
    function = entry.resolve(last)
    if name.startswith("keras.ops.") and isinstance(function, types.FunctionType):
        function = importlib.import_module("hybridflow.compat.adapters.symbolic").over_symbols(function)
    return _recorders[-1](name, function) if _recorders else function


_recorders: list[Callable[[str, Any], Any]] = []  # at most one


def let_record(recording: Callable[[str, Any], Any]) -> None:
    """Let names stand for what ``recording`` makes of a dotted name and a function: graphs of TensorFlow 1 are built
    with the functions of TensorFlow 2."""
    _recorders[:] = [recording]
    function_of.cache_clear()
    fill()


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


def room(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a module of this package; ``fill`` puts the names there."""
    namespace = module.removeprefix(TF).lstrip(".") or "."
    listed = sorted({*rooms().get(namespace, ()), *inner_rooms(namespace)})

    def get(name: str) -> Any:
        if name in _LATER.get(namespace, ()):
            return importlib.import_module(_LATER[namespace][name])
        raise AttributeError(name if name.startswith("__") else missing(namespace, name))

    return get, lambda: listed, listed


def fill() -> None:
    """Put into each room what its names stand for.

    At once and not when they are used, since that may be in a function while it is traced.
    """
    for namespace, entries in rooms().items():
        module = importlib.import_module(TF if namespace == "." else f"{TF}.{namespace}")
        for name in entries:
            setattr(module, name, function_of(name if namespace == "." else f"{namespace}.{name}"))
