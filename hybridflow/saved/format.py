"""The format of a file of functions: its kind, version and writer, and how nested values are JSON."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from hybridflow.core import pytree
from hybridflow.errors import ArgumentTypeError, CheckpointError
from hybridflow.flags import RELEASE
from hybridflow.jit.tensor_spec import TensorSpec

PLAIN = (bool, int, float, str, type(None))
_STANDS_FOR: dict[type, type] = {OrderedDict: dict, defaultdict: dict, tuple: list}


def fits(structure: pytree.Structure, wanted: pytree.Structure) -> bool:
    """Whether arguments are nested as a saved program takes them: a dict may be of any kind, with its keys in any
    order, and a tuple may be a list."""
    kinds = [None if one.kind is None else _STANDS_FOR.get(one.kind, one.kind) for one in (structure, wanted)]
    if kinds[0] is not kinds[1] or not structure.same_labels(wanted) or len(structure.children) != len(wanted.children):
        return False
    return all(map(fits, structure.children, wanted.children))


def packed(value: Any, what: str) -> Any:
    """Lists, tuples, dicts, plain values and TensorSpecs as what JSON has.  Raises ArgumentTypeError for others."""
    if isinstance(value, TensorSpec):
        return {"spec": [list(value.shape), value.dtype.name, value.name]}
    if isinstance(value, float):
        return {"float": value.hex()}  # infinities and NaN too
    if isinstance(value, PLAIN):
        return value
    if type(value) in (list, tuple):
        return {type(value).__name__: [packed(part, what) for part in value]}
    if type(value) is dict and all(isinstance(key, (str, int, bool)) for key in value):
        return {"dict": [[packed(key, what), packed(part, what)] for key, part in value.items()]}
    raise ArgumentTypeError(
        "saved", f"{what} holds {value!r:.80}, which cannot be kept in a file: use tuples and dicts."
    )


def unpacked(value: Any) -> Any:
    """What ``packed`` packed.  Raises CheckpointError for anything else."""
    if isinstance(value, PLAIN):
        return value
    try:
        ((kind, part),) = value.items()
        if kind == "spec":
            shape, dtype, name = part
            return TensorSpec(tuple(shape), dtype, name)
        if kind == "float":
            return float.fromhex(part)
        if kind == "dict":
            return {unpacked(key): unpacked(one) for key, one in part}
        return {"list": list, "tuple": tuple}[kind](unpacked(one) for one in part)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError("saved", f"a description in the file cannot be read: {error!r}.") from None


KIND = "hybridflow-saved"
VERSION = 3  # of the format: higher where older readers would not understand, or misunderstand, what is written
WITH_CONDITIONS = 2  # the version since which graphs say for which open extents they are
WITH_ERRORS = 3  # the version of files with programs that raise errors, which are kept beside them
WRITER = f"hybridflow {RELEASE}"
DEFAULT = "serving_default"
