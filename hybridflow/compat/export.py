"""TensorFlow's names: each is entered where the function is that answers to it, by a decorator.

    @tf_export("math.reduce_max", "reduce_max", v1_names={"keep_dims": "keepdims"}, op_type="Max")
    def reduce_max(input_tensor: Operand, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Any:
        return hf.max(input_tensor, axis=axis, keepdims=keepdims)

Arguments with the annotations below arrive converted.  ``export`` enters what is plainly hybridflow's, ``export_all``
all public names of a module, and ``not_here`` says what to write in the place of a name that is missing.
"""

from __future__ import annotations

__traits__ = ("between",)

import functools
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hybridflow.core.tensor import Operators
from hybridflow.errors import ArgumentTypeError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike
    from hybridflow.layers.keras_tensor import Connecting
    from hybridflow.ragged import Ragged

# What TensorFlow makes a tensor of, where a function itself asks for no conversion.
TensorLike: TypeAlias = "ArrayLike | str | bytes | Ragged | Connecting"
Operand: TypeAlias = Any  # a tensor, or what TensorFlow makes one of: several agree on a dtype, as there
Axis: TypeAlias = Any  # an axis or several: ints, lists, tensors
ShapeArg: TypeAlias = Any  # a shape, which may be a tensor, have tensors in it, or be one number
DTypeArg: TypeAlias = Any  # a dtype, or its name or number

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")


@dataclass(frozen=True)
class Meaning:
    """What TensorFlow 1 knows of a function: other names of its arguments, and the type of its operations."""

    v1_names: Mapping[str, str]
    op_type: str | None


# By room and last name; ``"."`` is ``tf`` itself, ``"keras.layers"`` is ``tf.keras.layers``.
ROOMS: dict[str, dict[str, Any]] = {}
MEANINGS: dict[str, Meaning] = {}
ABSENT: dict[str, str] = {}
SAME: dict[str, str] = {}  # rooms that have the names of another one
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {}
_SEVERAL: list[Callable[[Any, Any], Any]] = []  # of operands that are converted together
_OF_ROWS: list[Callable[..., Any]] = []  # what a function gives of ragged tensors
_WRAPPINGS: dict[int, Callable[[Any], Any]] = {}  # by the id of an entered value, which stays
_LISTENERS: list[Callable[[object], None]] = []


class RowsGiven(ArgumentTypeError):  # it is caught here, or tells its cause
    """An operand is a ragged tensor."""

    def __init__(self) -> None:
        super().__init__("tensor", "it is ragged. Use x.to_tensor(), or tf.ragged.map_flat_values(function, x).")


def tf_export(
    *names: str, v1_names: Mapping[str, str] | None = None, op_type: str | None = None
) -> Callable[[Function], Function]:
    """Enter a function or class under dotted names of ``tf``; annotated arguments of a function are converted.

    Args:
        names: Dotted names: ``"math.exp", "exp"`` are ``tf.math.exp`` and ``tf.exp``.
        v1_names: What TensorFlow 1 called arguments, each with the name of today.
        op_type: The type of the operation in TensorFlow's graphs.

    Returns:
        A decorator; what it returns is what the names stand for.
    """

    def enter(function: Function) -> Function:
        result = converting(function)
        export(result, *names)
        if v1_names or op_type:
            MEANINGS.update(dict.fromkeys(names, Meaning(v1_names or {}, op_type)))
        return result

    return enter


def export(value: Value, *names: str) -> Value:
    """Enter a value, as it is, under dotted names of ``tf``."""
    for name in names:
        room, _, last = name.rpartition(".")
        ROOMS.setdefault(room or ".", {})[last] = value
    return value


def export_all(module: types.ModuleType, *rooms: str) -> None:
    """Enter all public names of a module in rooms, but for modules in it, and names that stand there already."""
    values = {name: getattr(module, name) for name in module.__all__}
    for room in rooms:
        entries = ROOMS.setdefault(room, {})
        for name, value in values.items():
            if not isinstance(value, types.ModuleType):
                entries.setdefault(name, value)


def same_names(room: str, *others: str) -> None:
    """Let other rooms have the names of one."""
    SAME.update(dict.fromkeys(others, room))


def not_here(room: str, answers: Mapping[str, str]) -> None:
    """Say what to write for names that are not in a room."""
    ABSENT.update({name if room == "." else f"{room}.{name}": answer for name, answer in answers.items()})


def convert_by(several: Callable[[Any, Any], Any], conversions: Mapping[str, Callable[[Any], Any]]) -> None:
    """Let arguments with these annotations be converted so; ``several`` operands are converted together.  Conversions
    raise RowsGiven for a ragged tensor."""
    _SEVERAL[:] = [several]
    _CONVERSIONS.update(conversions)


def wrap(value: object, wrapping: Callable[[Any], Any]) -> None:
    """Let all names of an entered value stand, from now on, for ``wrapping`` of what they would stand for."""
    _WRAPPINGS[id(value)] = wrapping
    for listen in _LISTENERS:
        listen(value)


def wrapped(value: object, standing: Any) -> Any:
    """What a name of an entered value stands for, which without wrapping would be ``standing``."""
    wrapping = _WRAPPINGS.get(id(value))
    return standing if wrapping is None else wrapping(standing)


def on_wrap(listen: Callable[[object], None]) -> None:
    """Have ``listen(value)`` called when the names of a value come to stand for something else."""
    _LISTENERS.append(listen)


def answer_rows(of_rows: Callable[..., Any]) -> None:
    """Let ``of_rows(function, args, kwargs)`` be what functions give where an operand is a ragged tensor."""
    _OF_ROWS[:] = [of_rows]


def converting(function: Function) -> Function:
    """The function, whose annotated arguments are converted; itself if none is."""
    if not isinstance(function, types.FunctionType):
        return function
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    kinds = {name: str(function.__annotations__.get(name)) for name in names}
    operands = [name for name, kind in kinds.items() if kind.removesuffix(" | None") == "Operand"]
    single = {name: _CONVERSIONS[kind] for name, kind in kinds.items() if kind in _CONVERSIONS}
    together = {name: k for k, name in enumerate(names) if name in operands} if len(operands) > 1 else {}
    for name in together:
        del single[name]
    if not single and not together:
        return function
    places = [(k, single[name]) for k, name in enumerate(names[: code.co_argcount]) if name in single]
    last = code.co_argcount if names[-1] == "name" and not code.co_kwonlyargcount else None

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == last and not isinstance(args[-1], str | None):
            raise TypeError(f"{function.__name__}() takes {last - 1} arguments and name, which is {args[-1]!r}")
        as_given = args
        try:
            if places and args:
                values = list(args)
                for k, convert in places:
                    if k >= len(values):
                        break
                    values[k] = convert(values[k])
                args = tuple(values)
            if kwargs:
                for name in kwargs.keys() & single.keys():
                    kwargs[name] = single[name](kwargs[name])
            if together:
                args = _converted_together(together, args, kwargs)
        except RowsGiven:
            return _OF_ROWS[0](result, as_given, kwargs)
        return function(*args, **kwargs)

    result: Function = functools.update_wrapper(call, function)  # type: ignore[assignment]
    return result


def _converted_together(places: Mapping[str, int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments with the operands among them converted, those by name in place."""
    by_place = {name: k for name, k in places.items() if k < len(args) and args[k] is not None}
    by_name = [name for name in places if name not in by_place and kwargs.get(name) is not None]
    operands = [args[k] for k in by_place.values()] + [kwargs[name] for name in by_name]
    if all(isinstance(value, Operators) for value in operands):
        return args
    converted = _SEVERAL[0](operands, range(len(operands)))
    values = list(args)
    for k, value in zip(by_place.values(), converted):
        values[k] = value
    kwargs.update(zip(by_name, converted[len(by_place) :]))
    return tuple(values)
