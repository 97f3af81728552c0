"""What the arguments of a native call must look like, and how that is written for native code
(``argument_match_code``).

An argument is a tensor, a fixed value, an object, or a container of such.  Their items are written in the order in
which native code comes to them: those of the call, then the children of the first container, of the second, and so on.
"""

from __future__ import annotations

import struct
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Union

import numpy as np

from hybridflow.compiler.program import Extent
from hybridflow.quick_dataclasses import dataclass
from hybridflow.runtime.dtypes import canonical
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.records import (
    EQUAL,
    FLOAT,
    IDENTITY,
    INSTANCE,
    INT,
    MAPPING,
    OPEN_INT,
    ORDERED,
    REFERENT,
    SAME_OBJECT,
    SEQUENCE,
    TENSOR,
)

MAPPINGS = (dict, defaultdict, OrderedDict)


@dataclass(frozen=True)
class TensorArg:
    """A Tensor or ndarray: dtype, and extents that are ints or symbols.  ``input`` is its place in the program, or
    None when the program does not read it.  With ``scalar`` it is one of NumPy's scalars, and nothing else; with
    ``bare`` it is a Tensor whose elements lie one after the other; with ``elsewhere`` a Tensor on another device than
    the host, whose dtype and shape native code does not see.  Whatever has strides is copied; but for a Tensor whose
    elements lie in the order of its axes reversed there may be a program that reads it so: with ``turned`` the argument
    is such a tensor, and ``bare``, with False none."""

    dtype: np.dtype[Any]
    shape: tuple[Extent, ...]
    input: int | None
    scalar: bool = False
    contiguous: bool = False
    on_device: bool = False
    transposed: bool | None = None


@dataclass(frozen=True)
class FloatArg:
    """A Python float, whatever its value: an f64 without axes to the program."""

    input: int


@dataclass(frozen=True)
class IntArg:
    """A Python int from 2 to ``MOST`` that is ``extent``: to the program an input of the shape ``(extent, 0)``, which
    it does not read."""

    extent: Extent
    input: int

    MOST = 2**31 - 1


@dataclass(frozen=True)
class LiteralArg:
    """A fixed Python value: floats, ints, str and bytes are compared by type and bits, everything else by identity."""

    value: Any


@dataclass(frozen=True)
class ObjectArg:
    """The object that a weak reference refers to."""

    reference: weakref.ref[Any]


@dataclass(frozen=True)
class SameArg:
    """The very Tensor that is the argument for the input ``input``."""

    input: int


@dataclass(frozen=True)
class SequenceArg:
    """A list, tuple or named tuple of exactly this class."""

    kind: type
    children: tuple[Argument, ...]


@dataclass(frozen=True)
class MappingArg:
    """A dict, OrderedDict or defaultdict with these keys in this order; ``factory`` is a defaultdict's."""

    kind: type
    keys: tuple[Any, ...]
    children: tuple[Argument, ...]
    factory: object = None


@dataclass(frozen=True)
class InstanceArg:
    """An instance of exactly this class, by its attributes ``names``; ``held`` are all the entries of its dict, in
    order, None where it has none."""

    kind: type
    names: tuple[str, ...]
    has_dict: tuple[str, ...] | None
    children: tuple[Argument, ...] = field(default=())


Container = SequenceArg | MappingArg | InstanceArg
Argument = Union[TensorArg, FloatArg, IntArg, LiteralArg, ObjectArg, SameArg, SequenceArg, MappingArg, InstanceArg]


def flatten_arguments(arguments: Iterable[Argument]) -> Iterator[Argument]:
    """All arguments and what is nested in them, in the order of their items."""
    level = list(arguments)
    for argument in level:  # which grows meanwhile
        yield argument
        if isinstance(argument, (SequenceArg, MappingArg, InstanceArg)):
            level += argument.children


def item(
    argument: Argument, extents: Callable[[Sequence[Extent]], list[int]], handed: int, nodes: Sequence[Argument]
) -> tuple[int, ...]:
    """The item of one argument of ``nodes``, without what is nested in it."""
    if isinstance(argument, TensorArg):
        dtype = canonical(argument.dtype)
        return TENSOR.pack(
            *extents(argument.shape),
            input=-1 if argument.input is None else argument.input,
            dtype=id(dtype),
            itemsize=dtype.itemsize,
            ndim=len(argument.shape),
            scalar=id(dtype.type) if argument.scalar else 0,
            handed=handed,
            bare=int(argument.contiguous),
            elsewhere=int(argument.on_device),
            flags=object_layout.ALIGNED
            | (object_layout.F_CONTIGUOUS if argument.transposed else object_layout.C_CONTIGUOUS),
            unlike=object_layout.F_CONTIGUOUS if argument.transposed is False else 0,
        )
    if isinstance(argument, FloatArg):
        dtype = canonical(np.dtype(np.float64))
        return TENSOR.pack(
            input=argument.input,
            dtype=id(dtype),
            itemsize=8,
            ndim=0,
            scalar=id(float),
            handed=handed,
            bare=0,
            elsewhere=0,
            flags=0,
            unlike=0,
        )
    if isinstance(argument, IntArg):
        return OPEN_INT.pack(input=argument.input, extent=extents([argument.extent])[0])
    if isinstance(argument, SameArg):
        inputs = [node.input if isinstance(node, TensorArg) else None for node in nodes]
        return SAME_OBJECT.pack(node=inputs.index(argument.input))
    if isinstance(argument, ObjectArg):
        return REFERENT.pack(reference=id(argument.reference))
    if isinstance(argument, LiteralArg):
        return _literal(argument.value)
    return _container(argument)


def _literal(value: object) -> tuple[int, ...]:
    if type(value) is float:
        return FLOAT.pack(bits=struct.unpack("<Q", struct.pack("<d", value))[0])
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return INT.pack(value=value)
    return (EQUAL if type(value) in (int, str, bytes) else IDENTITY).pack(object=id(value))


def _container(argument: Container) -> tuple[int, ...]:
    kind, size = id(argument.kind), len(argument.children)
    if isinstance(argument, SequenceArg):
        return SEQUENCE.pack(type=kind, is_list=int(argument.kind is list), size=size)
    if isinstance(argument, InstanceArg):
        held = argument.has_dict
        names = map(id, (*argument.names, *(held or ())))
        return INSTANCE.pack(*names, type=kind, size=size, held=-1 if held is None else len(held))
    keys = map(id, argument.keys)
    if argument.kind is OrderedDict:
        return ORDERED.pack(*keys, type=kind, size=size)
    factory = id(argument.factory) if argument.kind is defaultdict else 0
    return MAPPING.pack(*keys, type=kind, factory=factory, size=size)
