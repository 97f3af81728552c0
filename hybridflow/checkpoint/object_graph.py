"""What a checkpoint holds of the objects that it is of: arrays, and plain values, by path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from hybridflow.core.stateful import OwnsSlots, OwnsUnbuilt, OwnsVariables, Stateful, Unbuilt
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError, CheckpointError

PLAIN = (bool, int, float, str, type(None))
OF_MODELS = ("version", "architecture", "shape", "compiled")  # what files of whole models say beside their state
OF_SOME_MODELS = ("dtype",)  # what those say as well that were written since models know the dtype of their input
WITHIN = "__state__."  # names of arrays that are part of plain values


class Group:
    """Objects by name, which have a state of their own each."""

    _objects: dict[str, Any]


class State(NamedTuple):
    """Arrays, and plain values, by path; and the further paths of variables that have several."""

    arrays: dict[str, Any]
    plain: dict[str, Any]
    shared: dict[str, str]


def state_of(objects: Mapping[str, Any]) -> State:
    """What is to be kept of objects by name.  Tensors are those that variables hold now.

    Raises ArgumentTypeError for an object that has no state.
    """
    state = State({}, {}, {})
    objects = expanded(objects)
    variables = object_paths(objects)
    first: dict[int, str] = {}
    for path, variable in variables.items():
        if first.setdefault(id(variable), path) == path:
            state.arrays[path] = variable._current()
        else:  # one that several objects share is kept once
            state.shared[path] = first[id(variable)]
    paths = {id(variable): path for path, variable in reversed(variables.items())}
    for name, value in objects.items():
        if isinstance(value, OwnsSlots):
            _add_slots(state, name, value, paths)
        elif has_state_dict(value):
            state.plain[name] = _packed(value.state_dict(), name, state.arrays)
        elif isinstance(value, PLAIN):
            state.plain[name] = value
        elif not isinstance(value, (Variable, OwnsVariables)):
            raise ArgumentTypeError(
                "checkpoint",
                f"{name} is {value!r:.80}, which has no state: give variables, modules, optimizers, metrics, random "
                "generators, iterators of datasets, objects with state_dict and load_state_dict, numbers or texts.",
            )
    return state


def has_state_dict(value: object) -> TypeGuard[Stateful]:
    """Whether it is kept as what ``state_dict`` returns, and not variable by variable."""
    return isinstance(value, Stateful) and not isinstance(value, (OwnsVariables, Variable))


def expanded(objects: Mapping[str, Any]) -> dict[str, Any]:
    """The objects, with those in lists, tuples and dicts by the paths there.

    Raises ArgumentTypeError for numbers and texts in containers: there they could not be set again.
    """
    result: dict[str, Any] = {}

    def visit(path: str, value: object, is_inside: bool) -> None:
        if isinstance(value, (list, tuple)):
            for index, part in enumerate(value):
                visit(f"{path}.{index}", part, True)
        elif isinstance(value, dict):
            for key, part in value.items():
                visit(f"{path}.{key}", part, True)
        elif isinstance(value, Group):
            for key, part in value._objects.items():
                visit(f"{path}.{key}", part, True)
        elif is_inside and isinstance(value, PLAIN):
            raise ArgumentTypeError(
                "checkpoint", f"{path} is {value!r}: numbers and texts are attributes of their own."
            )
        elif path in result:
            raise ArgumentError("checkpoint", f"{path} is the path of two objects; keys must not hold a dot.")
        else:
            result[path] = value

    for name, value in objects.items():
        visit(name, value, False)
    return result


def object_paths(objects: Mapping[str, Any]) -> dict[str, Variable]:
    """All variables by their paths but for the slots of optimizers.

    Raises ArgumentError where two of them have one path.
    """
    result: dict[str, Variable] = {}
    for name, value in expanded(objects).items():
        for path, variable in _variables(name, value):
            if result.setdefault(path, variable) is not variable:
                raise ArgumentError("checkpoint", f"{path} is the path of two variables; keys must not hold a dot.")
    return result


def _variables(name: str, value: object) -> Iterator[tuple[str, Variable]]:
    if isinstance(value, Variable):
        yield name, value
    elif isinstance(value, OwnsVariables):
        for path, variable in value._checkpoint_variables().items():
            yield f"{name}.{path}", variable


def _add_slots(state: State, name: str, owner: OwnsSlots, paths: Mapping[int, str]) -> None:
    for path, slot in _slots(name, owner, paths):
        state.arrays[path] = slot._current()


def _slots(name: str, owner: OwnsSlots, paths: Mapping[int, str]) -> Iterator[tuple[str, Variable]]:
    """The slots, each under the path of the variable that it is of."""
    for index, (variable, slots) in enumerate(owner._checkpoint_slots()):
        of = paths.get(id(variable), f"variable{index}")
        for kind, slot in slots.items():
            yield f"{name}.slots.{of}.{kind}", slot


def built(objects: Mapping[str, Any], names: list[str]) -> Callable[[], None]:
    """Let optimizers make the slots of which there are ``names``; what is returned takes those back."""
    variables = object_paths(objects)
    undo: list[Callable[[], None]] = []
    for name, value in expanded(objects).items():
        if isinstance(value, OwnsSlots):
            prefix = f"{name}.slots."
            wanted = {other[len(prefix) :].rpartition(".")[0] for other in names if other.startswith(prefix)}
            chosen = [variable for path, variable in variables.items() if path in wanted]
            undo.append(value._create_checkpoint_slots(chosen))

    def take_back() -> None:
        for step in undo:
            step()

    return take_back


def slots(objects: Mapping[str, Any]) -> dict[str, Variable]:
    """The slots of optimizers by path."""
    paths = {id(variable): path for path, variable in reversed(object_paths(objects).items())}
    result: dict[str, Variable] = {}
    for name, value in expanded(objects).items():
        if isinstance(value, OwnsSlots):
            result.update(_slots(name, value, paths))
    return result


def unbuilt(objects: Mapping[str, Any]) -> dict[str, Unbuilt]:
    """The layers that have no variables yet, by their paths."""
    return {
        f"{name}.{path}" if path else name: part
        for name, value in expanded(objects).items()
        if isinstance(value, OwnsUnbuilt)
        for path, part in value._unbuilt_parts().items()
    }


def awaited(objects: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Those of the names that are of variables which layers are still to make, and of optimizers' slots for these."""
    layers = tuple(f"{path}." for path in unbuilt(objects))
    slots = tuple(f"{name}.slots." for name, value in expanded(objects).items() if isinstance(value, OwnsSlots))
    starts = (*layers, *[slot + layer for slot in slots for layer in layers])
    return [name for name in names if name.startswith(starts)]


def _packed(value: object, path: str, arrays: dict[str, Any]) -> Any:
    """The state of an object as plain values; its arrays are put among ``arrays``."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, np.ndarray) and value.dtype.hasobject:  # texts
        flat = [_packed(text, path, arrays) for text in value.ravel()]
        return {"texts": flat, "shape": list(value.shape)}
    if isinstance(value, (Tensor, Variable, np.ndarray, np.generic)):
        name = f"{WITHIN}{len(arrays)}"
        arrays[name] = value if isinstance(value, Tensor) else np.asarray(value)
        return {"array": name, "tensor": isinstance(value, Tensor)}
    if isinstance(value, dict):
        return {"dict": [[_packed(key, path, arrays), _packed(part, path, arrays)] for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_packed(part, path, arrays) for part in value]}
    raise ArgumentTypeError("checkpoint", f"{path} holds {value!r:.80}, which cannot be kept in a file.")


def unpacked(value: Any, array: Callable[[str], Any]) -> Any:
    """What ``_packed`` packed; ``array`` reads an array by name."""
    if isinstance(value, PLAIN):
        return value
    try:
        if "array" in value:
            return array(value["array"]) if value["tensor"] else np.array(array(value["array"]))
        if "bytes" in value:
            return value["bytes"].encode("latin-1")
        if "texts" in value:
            texts = np.empty(len(value["texts"]), object)
            texts[:] = [unpacked(text, array) for text in value["texts"]]
            return texts.reshape(value["shape"])
        if "dict" in value:
            return {unpacked(key, array): unpacked(part, array) for key, part in value["dict"]}
        if "tuple" in value:
            return tuple(unpacked(part, array) for part in value["tuple"])
        return [unpacked(part, array) for part in value["list"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError("checkpoint", f"the state of an object cannot be read: {error!r}.") from None


def renamed(names: list[str], rename: Any) -> dict[str, str]:
    """Each name of a file with that of the object for which it is: by a dict of beginnings, or by a function."""
    if rename is None:
        return {name: name for name in names}
    if callable(rename):
        return {name: rename(name) for name in names}
    result = {}
    for name in names:
        new = name
        for old, other in rename.items():
            if re.fullmatch(rf"{re.escape(old)}(\..*)?", name):
                new = other + name[len(old) :]
                break
        result[name] = new
    return result
