"""How native code makes the result of a call: a few steps over a stack of objects (see ``result_steps_code``).

The first ones put an object on the stack, the others take as many as they need, and put there what they make.  What is
on the stack in the end, one object, is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.program import Extent
from hybridflow.errors import ArgumentError
from hybridflow.runtime.dtypes import canonical
from hybridflow.runtime.native.records import (
    MAKE_CALL,
    MAKE_DICT,
    MAKE_INSTANCE,
    MAKE_LIST,
    MAKE_TUPLE,
    PUT_ARGUMENT,
    PUT_EXTENT,
    PUT_OBJECT,
    PUT_OUTPUT,
    PUT_VIEW,
)


class View(NamedTuple):
    """Elements of ``source``, an array or the bare tensor that is the argument at this position, as another tensor:
    from ``offset`` on, in bytes, with these extents and strides."""

    source: int | np.ndarray
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Make(NamedTuple):
    """One step.

    ``what``      what it does with ``operand``, and with the last ``takes`` objects of the stack
    "output"      puts there the program's output at this position
    "argument"    ... the argument at this position (of all, nested ones too, see
    ``argument_specs.flatten_arguments``), as a tensor "object"      ... this object
    "extent"      ... the extent as a Python int
    "view"        ... a tensor over memory of another one, see ``View``
    "list"        makes a list
    "tuple"       makes a tuple
    "dict"        makes a dict with the keys ``operand``
    "instance"    makes an instance of ``operand[0]`` whose attributes ``operand[1]`` are these, as
                  ``object.__new__`` and ``object.__setattr__`` do
    "call"        calls ``operand``, with one object or none
    """

    what: str
    operand: Any = None
    takes: int = 0


SINGLE = (Make("output", 0),)


def tuple_of(outputs: int) -> tuple[Make, ...]:
    """The steps that make a tuple of so many outputs."""
    return (*[Make("output", k) for k in range(outputs)], Make("tuple", None, outputs))


_PUT = ("output", "argument", "object", "extent", "view")


def handed(step: Make) -> int | None:
    """The position of the argument that the step holds, if it does."""
    if step.what == "view":
        return step.operand.source if isinstance(step.operand.source, int) else None
    return step.operand if step.what == "argument" else None


def depth(steps: Sequence[Make]) -> int:
    """How many objects the stack must hold.  Raises ArgumentError for steps that do not make one object."""
    height = most = 0
    for step in steps:
        height -= step.takes
        if height < 0 or (step.what in _PUT and step.takes) or not _fits(step):
            raise ArgumentError("native call", f"a result cannot be made like this: {step}.")
        height += 1
        most = max(most, height)
    if height != 1:
        raise ArgumentError("native call", f"{height} objects are left of a result.")
    return most


def _fits(step: Make) -> bool:
    counts = {"dict": step.operand, "instance": step.operand[1] if step.what == "instance" else ()}
    if step.what in counts:
        return len(counts[step.what]) == step.takes
    return step.what in (*_PUT, "list", "tuple") or (step.what == "call" and step.takes <= 1 and callable(step.operand))


def item(step: Make, through: Sequence[int], extent: Callable[[Extent], int]) -> tuple[int, ...]:
    """The step as an item; ``through`` are the positions of arguments that are handed through."""
    operand, count = step.operand, step.takes
    if step.what == "output":
        return PUT_OUTPUT.pack(index=operand)
    if step.what == "argument":
        return PUT_ARGUMENT.pack(index=through.index(operand))
    if step.what == "view":
        return _view_item(operand, through)
    if step.what == "object":
        return PUT_OBJECT.pack(object=id(operand))
    if step.what == "extent":
        return PUT_EXTENT.pack(extent=extent(operand))
    if step.what == "dict":
        return MAKE_DICT.pack(*map(id, operand), count=count)
    if step.what == "instance":
        return MAKE_INSTANCE.pack(*map(id, operand[1]), type=id(operand[0]), count=count)
    if step.what == "call":
        return MAKE_CALL.pack(callable=id(operand), count=count)
    return (MAKE_LIST if step.what == "list" else MAKE_TUPLE).pack(count=count)


def _view_item(view: View, through: Sequence[int]) -> tuple[int, ...]:
    source = view.source
    return PUT_VIEW.pack(
        *view.shape,
        *view.strides,
        index=through.index(source) if isinstance(source, int) else -1,
        array=0 if isinstance(source, int) else id(source),
        dtype=id(canonical(view.dtype)),
        offset=view.offset,
        ndim=len(view.shape),
    )
