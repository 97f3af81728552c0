"""Lines of the tables of names: what is behind a name of TensorFlow, and how its arguments become ours.

A line is ``names: target`` or ``names: target(arguments)``.  The target is a path below ``hybridflow``, or with ``~``
below ``hybridflow.compat.adapters``.  Without arguments the name is the target itself.  Arguments are TensorFlow's, in
its order, where the target has others:

- ``axis`` goes by that name, ``features>x`` by another, ``-name`` is accepted and means nothing here;
- those before ``/`` go by position, and ``&x`` is an operand: a list or a number becomes a tensor as TensorFlow makes
  one of it;
- ``axis=0`` has a default that is not the target's.

``name`` is accepted everywhere.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hybridflow.compat.adapters.values import operands
from hybridflow.core.tensor import Operators

_MISSING = object()


@dataclass(frozen=True)
class Argument:
    """One of TensorFlow's arguments: ``own`` is ours of that meaning, None for one that means nothing."""

    name: str
    own: str | None
    by_position: bool
    is_operand: bool
    default: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Entry:
    """A line of a table."""

    target: str
    arguments: tuple[Argument, ...] | None

    def resolve(self, name: str) -> Any:
        """What the name stands for.  Raises AttributeError or ImportError where the target is not there."""
        target = target_of(self.target)
        return target if self.arguments is None else adapted(target, self.arguments, name)


def target_of(path: str) -> Any:
    """What a path names.  Raises AttributeError or ImportError where nothing does."""
    start, rest = ("hybridflow.compat.adapters", path[1:]) if path.startswith("~") else ("hybridflow", path)
    result: Any = importlib.import_module(start)
    for part in filter(None, rest.split(".")):
        inner = getattr(result, part, _MISSING)
        result = importlib.import_module(f"{result.__name__}.{part}") if inner is _MISSING else inner
    return result


def parse(line: str) -> tuple[list[str], Entry]:
    """The names of a line, and what is said of them."""
    names, _, rest = line.partition(": ")
    target, bracket, inside = rest.partition("(")
    arguments = _arguments(inside.removesuffix(")")) if bracket else None
    return [name.strip() for name in names.split(",")], Entry(target.strip(), arguments)


def _arguments(text: str) -> tuple[Argument, ...]:
    parts = [part.strip() for part in text.split(",")]
    end = parts.index("/") if "/" in parts else 0
    return tuple([_argument(part, k < end) for k, part in enumerate(parts) if part and part != "/"])


def _argument(text: str, by_position: bool) -> Argument:
    text, _, default = text.partition("=")
    name, _, target = text.lstrip("&-").partition(">")
    return Argument(
        name,
        None if text.startswith("-") else target or name,
        by_position,
        text.startswith("&"),
        ast.literal_eval(default) if default else inspect.Parameter.empty,
    )


def adapted(function: Callable[..., Any], arguments: tuple[Argument, ...], name: str) -> Callable[..., Any]:
    """The function with TensorFlow's arguments.  Raises TypeError where it is called with others."""
    names = [a.name for a in arguments]
    lead = [a.name for a in arguments if a.by_position]
    targets = {a.name: a.own for a in arguments if not a.by_position}
    defaults = {a.name: a.default for a in arguments if a.default is not inspect.Parameter.empty}
    numbers = [k for k, a in enumerate(arguments) if a.is_operand]

    def bound(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        if len(args) > len(names):
            raise TypeError(f"{name}() takes {len(names)} arguments and name, {len(args)} were given")
        by_parameter = {**defaults, **dict(zip(names, args))}
        for key, value in kwargs.items():
            if key not in names:
                if key != "name":
                    raise TypeError(f"{name}() got an unexpected argument {key!r}; it takes {', '.join(names)}")
            elif key in names[: len(args)]:
                raise TypeError(f"{name}() got {key} twice")
            else:
                by_parameter[key] = value
        missing = [key for key in lead if key not in by_parameter]
        if missing:
            raise TypeError(f"{name}() lacks {', '.join(missing)}")
        values = [by_parameter[key] for key in lead]
        return values, {target: by_parameter[key] for key, target in targets.items() if target and key in by_parameter}

    def call(*args: Any, **kwargs: Any) -> Any:
        positional: Sequence[Any] = args
        if kwargs or len(args) != len(lead) or defaults:
            positional, kwargs = bound(args, kwargs)
        if numbers and not all(isinstance(positional[k], Operators) for k in numbers):
            positional = operands(positional, numbers)
        return function(*positional, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    call.__signature__ = _signature(arguments)  # type: ignore[attr-defined]
    return call


def _signature(arguments: tuple[Argument, ...]) -> inspect.Signature:
    """As TensorFlow writes it, as far as the table says."""
    usual = inspect.Parameter.POSITIONAL_OR_KEYWORD
    rest = [None if a.default is inspect.Parameter.empty else a.default for a in arguments if not a.by_position]
    lead = [inspect.Parameter(a.name, usual) for a in arguments if a.by_position]
    later = [inspect.Parameter(a.name, usual, default=d) for a, d in zip(arguments[len(lead) :], rest)]
    return inspect.Signature([*lead, *later, inspect.Parameter("name", usual, default=None)])
