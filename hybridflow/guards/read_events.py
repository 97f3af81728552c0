"""What a recording is told of reads, writes, operators and imports."""

from __future__ import annotations

import builtins
import decimal
import inspect
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.core.context import current
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.guards import container_reads
from hybridflow.guards.attribute_reads import MISSING, before_attribute, in_class, note_mro, read_attribute
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.value_checks import ATOMS
from hybridflow.tracing.symbolic_number import SymbolicNumber
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

# Types of values of which nothing is read that could change.
INERT = (ATOMS - {decimal.Decimal}) | {Tensor, SymbolicTensor, SymbolicNumber}


def builtins_of(namespace: dict[str, Any]) -> dict[str, Any]:
    value = namespace.get("__builtins__", builtins)  # which a namespace given to types.FunctionType may lack
    return value if isinstance(value, dict) else value.__dict__


def note_name(recording: GuardBuilder, namespace: dict[str, Any], name: str) -> None:
    slot = recording.root(namespace, namespace.get("__name__", "globals()"))
    if name in namespace:
        recording.guard_read(slot, "item", name, namespace[name], name)
        return
    recording.guard_absent(slot, "item", name, name)
    names = builtins_of(namespace)
    slot = recording.root(names, "builtins")
    if name in names:
        recording.guard_read(slot, "item", name, names[name], name)
    else:
        recording.guard_absent(slot, "item", name, name)


def note_cell(recording: GuardBuilder, cell: types.CellType, name: str) -> None:
    slot = recording.cell_slot(cell, name)
    try:
        value = cell.cell_contents
    except ValueError:
        recording.guard_absent(slot, "cell", None, name)
    else:
        recording.guard_read(slot, "cell", None, value, name)


def note_truth(recording: GuardBuilder, value: object) -> None:
    if container_reads.base_container(value) is not None:
        container_reads.read_length(recording, value)
        container_reads.before_operator(recording, value, "__bool__", "__len__")
    elif isinstance(value, np.ndarray):
        container_reads.read_elements(recording, value)
    else:
        container_reads.before_operator(recording, value, "__bool__", "__len__")


_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
# What a comparison or a unary operator may call.
_OF_ONE = (*_COMPARISONS, "__neg__", "__pos__", "__invert__")


def note_operand(recording: GuardBuilder, value: object) -> None:
    container_reads.consume(recording, value)
    if not container_reads.is_plain(value):
        container_reads.before_operator(recording, value, *_OF_ONE)
        _note_precedence(recording, value, _COMPARISONS)


def _note_precedence(recording: GuardBuilder, right: object, names: Sequence[str]) -> None:
    """A right operand with such methods is asked first if its class is derived from that of the left one."""
    if any(isinstance(in_class(type(right), name), types.FunctionType) for name in names):
        note_mro(recording, type(right))


def note_operands(recording: GuardBuilder, name: str, left: object, right: object) -> None:
    plain = name.strip("_")
    for value, asked in ((left, f"__{plain}__"), (right, f"__r{plain}__")):
        if not container_reads.is_plain(value):
            container_reads.before_operator(recording, value, asked)
    if type(left) is not type(right) and not (container_reads.is_plain(left) or container_reads.is_plain(right)):
        _note_precedence(recording, right, (f"__r{plain}__",))
    live = isinstance(left, Tensor) or isinstance(right, Tensor)
    container_reads.consume(recording, left, live=live)
    container_reads.consume(recording, right, live=live)


def note_membership(recording: GuardBuilder, item: object, container: Any) -> None:
    slot = recording.slot_of(container)
    if slot is not None and type(container) in container_reads.MAPPINGS:  # not one of the user's classes
        if item in container:
            container_reads.read_item(recording, container, item, container[item], False)
        else:
            recording.guard_absent(slot, "item", item, f"{recording.texts[slot]}[{item!r}]")
        return
    container_reads.before_operator(recording, container, "__contains__", "__iter__", "__getitem__")
    container_reads.consume(recording, container)
    container_reads.consume(recording, item)


def note_identity(value: object) -> None:
    """What the program does may depend on which tensors are one object."""
    if isinstance(value, Tensor) and current.trace is not None:
        current.trace.depends_on_identity = True


def note_match(recording: GuardBuilder, value: object, names: Sequence[str], depth: int = 8) -> None:
    """Note what patterns with these attributes may look at, in the subject and in what it holds, some levels down."""
    container_reads.consume(recording, value)
    slot = recording.slot_of(value)
    if slot is not None:
        recording.guard_read(slot, "class", None, type(value), f"type({recording.texts[slot]})")
    note_mro(recording, type(value))
    parts = container_reads.items_of(value) if container_reads.base_container(value) is not None else []
    for name in (*names, *getattr(type(value), "__match_args__", ())):
        before_attribute(recording, value, name)
        attribute = _static_attribute(value, name)
        read_attribute(recording, value, name, attribute)
        parts.append(attribute)
    for part in parts if depth > 0 else ():
        if part is not MISSING and not container_reads.is_plain(part):
            note_match(recording, part, names, depth - 1)


def _static_attribute(value: object, name: str) -> Any:
    """``value.name`` where that runs nobody's code; else what is found in the class: it is recorded as it runs."""
    result = inspect.getattr_static(value, name, MISSING)
    if isinstance(result, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return getattr(value, name, MISSING)
    return result


def note_module(recording: GuardBuilder, namespace: dict[str, Any], module: str, level: int) -> types.ModuleType | None:
    if level:
        import importlib.util

        module = importlib.util.resolve_name("." * level + module, namespace.get("__package__") or "")
    result = sys.modules.get(module)
    slot = recording.root(sys.modules, "sys.modules")
    if result is None:
        recording.reason(f"imports {module}, which is not loaded", "import it outside of the function", is_effect=True)
        return None
    recording.guard_read(slot, "item", module, result, f"the module {module}")
    return result


def note_import(recording: GuardBuilder, namespace: dict[str, Any], module: str, level: int, name: str) -> None:
    module_read = note_module(recording, namespace, module, level)
    if module_read is not None and name != "*":
        read_attribute(recording, module_read, name, getattr(module_read, name, MISSING))


def note_item_write(recording: GuardBuilder, value: object) -> None:
    if not isinstance(value, Variable) and container_reads.outlives(
        recording, value
    ):  # a variable's are part of the program
        recording.effect(value, "sets items of {}")
    container_reads.before_operator(recording, value, "__setitem__", "__delitem__", "__getitem__")


def note_update(recording: GuardBuilder, name: str, value: object) -> None:
    mutable = container_reads.base_container(value) not in (None, tuple, frozenset) or isinstance(value, np.ndarray)
    if mutable and container_reads.outlives(recording, value):
        recording.effect(value, "changes {} in place")
    container_reads.consume(recording, value)
    container_reads.before_operator(recording, value, f"__i{name.strip('_')}__")
